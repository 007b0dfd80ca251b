"""The layer table: what every module of a network does in one dry run, and where to look first."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from torch import Tensor, nn

from interp.errors import LayerError
from interp.hooks.nested import first_tensor
from interp.hooks.session import HookSession, no_such_layer
from interp.hooks.undisturbed import undisturbed
from interp.models.axes import LAYOUTS, Axes, AxisTrace
from interp.models.recommend import recommend

Layout = Literal["nchw", "nhwc", "tokens", "vector", "other"]


_NOTES: dict[str, Any] = {
    "with_kwargs": True,
    "keeps": "nothing",
    "purpose": "dry run",
    "origin": "engine",
}


@dataclass(frozen=True)
class LayerInfo:
    """One module of a network, as a dry run found it.

    `shape` is the shape of its first call's output and None where it never ran or returns no
    tensor; `grid` is the (h, w) of a spatial layout and `extra_tokens` how many tokens (a class
    token) stand before the patches; `order` is when its first call ended; `reason` says why it
    never ran, or why it is recommended. `later_calls` describes its second call and those after.
    """

    path: str
    kind: str
    calls: int = 0
    shape: tuple[int, ...] | None = None
    layout: Layout = "other"
    parameters: int = 0
    recommended: bool = False
    reason: str = ""
    grid: tuple[int, int] | None = None
    extra_tokens: int = 0
    order: int = -1
    later_calls: tuple["LayerInfo", ...] = ()

    @property
    def spatial(self) -> bool:
        """Whether a heatmap can be made of it: it has a place for every value, and several."""
        return self.grid is not None and max(self.grid) > 1

    @property
    def channels(self) -> int | None:
        if self.shape is None or self.layout == "other":
            return None
        return self.shape[1] if self.layout == "nchw" else self.shape[-1]


@dataclass
class _Seen:
    """What each call of a module returned, and when the first ended."""

    outputs: list[tuple[tuple[int, ...] | None, Axes | None]] = field(default_factory=list)
    order: int = -1


def layer_table(module: nn.Module, example: Tensor) -> tuple[LayerInfo, ...]:
    """Run the network once on an example and describe every module.

    Parameters
    ----------
    module : nn.Module
        In evaluation mode; it is not changed.
    example : Tensor
        Shape (1, 3, h, w).

    Returns
    -------
    tuple of LayerInfo
        In the order of `named_modules`, the root left out; one at most is `recommended`.
    """
    seen, classes = _dry_run(module, example)
    modules = dict(module.named_modules())
    table = []
    for path, part in modules.items():
        if not path:
            continue
        info = _describe(path, part, seen[path])
        parent = modules[path.rpartition(".")[0]]
        table.append(info if info.calls else replace(info, reason=_why_silent(part, parent)))
    chosen, reason = recommend(module, example, table, modules, classes)
    return tuple(
        replace(info, recommended=True, reason=reason) if info.path == chosen else info
        for info in table
    )


def recommended_layer(table: Iterable[LayerInfo]) -> LayerInfo:
    """The recommended layer of a table.

    Raises
    ------
    LayerError
        If the network has no layer with a spatial map.
    """
    for info in table:
        if info.recommended:
            return info
    raise LayerError(
        "this model has no layer with a spatial map whose gradient reaches the scores: "
        "Grad-CAM has nothing to show for it"
    )


def find_layer(table: Iterable[LayerInfo], path: str, call: int = 0) -> LayerInfo:
    """The row of a layer that can carry a heatmap, as it is at one of its calls.

    Raises
    ------
    LayerError
        If there is no such layer, it never ran or not as often, or it has no spatial map.
    """
    rows = {info.path: info for info in table}
    info = rows.get(path)
    if info is None:
        raise no_such_layer(path, rows)
    if not info.calls:
        raise LayerError(f"layer «{path}» never runs: {info.reason}{_instead(rows, path)}")
    if not 0 <= call < info.calls:
        calls = ", ".join(f"{path}#{number}" for number in range(info.calls))
        raise LayerError(f"layer «{path}» runs {info.calls} time(s): its calls are {calls}")
    info = (info, *info.later_calls)[call]
    if not info.spatial:
        shape = "×".join(map(str, info.shape or ())) or "no tensor"
        raise LayerError(
            f"layer «{path}» ({info.kind}) returns {shape}, which has no grid of places"
            + _instead(rows, path)
        )
    return info


def _instead(rows: dict[str, LayerInfo], path: str) -> str:
    """What to choose in place of a layer: the last one inside it, or else the recommended one."""
    usable = [info for info in rows.values() if info.spatial]
    inside = [info for info in usable if info.path.startswith(f"{path}.")]
    best = max(inside or usable, key=lambda info: (info.recommended, info.order), default=None)
    if best is None:
        return ", and no layer of this model has one"
    return f": choose another, such as «{best.path}»"


def _dry_run(module: nn.Module, example: Tensor) -> tuple[dict[str, _Seen], int]:
    seen = {path: _Seen() for path, _ in module.named_modules()}
    finished = 0
    with (
        undisturbed(example.device, gradients=False),
        HookSession(module) as session,
    ):
        example = example.clone()
        trace = AxisTrace(example)

        def note(path: str) -> Any:
            def hook(part: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
                nonlocal finished
                entry = seen[path]
                finished += 1
                entry.order = entry.order if entry.outputs else finished
                tensor = first_tensor(output)
                if tensor is None:
                    entry.outputs.append((None, None))
                else:
                    axes = trace.settle(tensor, (args, kwargs))
                    entry.outputs.append((tuple(tensor.shape), axes))

            return hook

        for path in seen:
            session.forward(path, note(path), **_NOTES)
        with trace:
            session.module(example)
    shape, _ = seen[""].outputs[0]
    return seen, shape[-1] if shape else 0


def _describe(path: str, part: nn.Module, seen: _Seen) -> LayerInfo:
    silent = LayerInfo(
        path=path,
        kind=type(part).__name__,
        calls=len(seen.outputs),
        parameters=sum(p.numel() for p in part.parameters()),
        order=seen.order,
    )
    rows = []
    for shape, axes in seen.outputs:
        layout, grid, extra = layout_of(shape, axes)
        rows.append(replace(silent, shape=shape, layout=layout, grid=grid, extra_tokens=extra))
    return replace(rows[0], later_calls=tuple(rows[1:])) if rows else silent


def layout_of(
    shape: tuple[int, ...] | None, axes: Axes | None
) -> tuple[Layout, tuple[int, int] | None, int]:
    """A tensor's layout, its grid of places, and how many tokens stand before the patches."""
    if shape is None:
        return "other", None, 0
    layout = LAYOUTS.get(axes.names) if axes else None
    if layout == "nchw":
        return layout, (shape[2], shape[3]), 0
    if layout == "nhwc":
        return layout, (shape[1], shape[2]), 0
    if layout == "tokens" and axes is not None:
        extra = shape[1] - axes.grid[0] * axes.grid[1]
        if extra >= 0:
            return layout, axes.grid, extra
    return ("vector" if len(shape) == 2 else "other"), None, 0


def _why_silent(part: nn.Module, parent: nn.Module) -> str:
    if type(part).forward is nn.Module.forward:
        return f"a {type(part).__name__} only holds other modules and is never called itself"
    if isinstance(parent, nn.MultiheadAttention):
        return "MultiheadAttention uses this layer's weights and never calls it"
    return (
        f"its {type(parent).__name__} predicts without calling it: an auxiliary head, a part used "
        "in training, or one whose weights are used directly"
    )


def list_layers(model: Any) -> list[LayerInfo]:
    """The layer table of a loaded model; it is made once, when it is first asked for.

    Parameters
    ----------
    model : LoadedModel

    Returns
    -------
    list of LayerInfo
        Every module but the root, in the order of `named_modules`.
    """
    return list(model.layers)


def channels_first(tensor: Tensor, info: LayerInfo) -> Tensor:
    """A layer's tensor as (N, C, h, w), whatever its layout; class tokens are left out."""
    if info.layout == "nhwc":
        return tensor.permute(0, 3, 1, 2)
    if info.layout == "tokens" and info.grid is not None:
        patches = tensor[:, info.extra_tokens :]
        return patches.transpose(1, 2).reshape(len(tensor), -1, *info.grid)
    return tensor
