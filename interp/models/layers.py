"""The layer table: what every module of a network does in one dry run, and where to look first."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor, nn

from interp.hooks.nested import first_tensor
from interp.hooks.session import HookSession
from interp.hooks.undisturbed import undisturbed
from interp.hooks.values import unusual
from interp.models.axes import LAYOUTS, Axes, AxisTrace
from interp.models.layer_info import (
    DidNotRun,
    LayerInfo,
    Layout,
    another,
    channels_first,
    did_not_run,
    find_layer,
    recommended_layer,
)
from interp.models.layer_names import call_mark, first_names
from interp.models.recommend import recommend

__all__ = [
    "DidNotRun",
    "LayerInfo",
    "Layout",
    "another",
    "channels_first",
    "did_not_run",
    "find_layer",
    "layer_table",
    "layout_of",
    "list_layers",
    "recommended_layer",
]

_NOTES: dict[str, Any] = {
    "with_kwargs": True,
    "keeps": "nothing",
    "purpose": "dry run",
    "origin": "engine",
}


@dataclass
class _Seen:
    """What each call of a module returned, and when the first ended."""

    outputs: list[tuple[tuple[int, ...] | None, Axes | None, str]] = field(default_factory=list)
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
        In the order of `named_modules`, the root left out; one at most is `recommended`. A module
        that is registered under several paths has a row for each.
    """
    seen, classes = _dry_run(module, example)
    modules = dict(module.named_modules(remove_duplicate=False))
    first = first_names(module)
    table = []
    for path, part in modules.items():
        if path:
            info = _describe(path, part, seen[first[path]])
            parent = modules[path.rpartition(".")[0]]
            table.append(_named(info, part, parent, first[path], modules))
    own = [info for info in table if not info.same_as]
    chosen, reason, obstacles = recommend(module, example, own, modules, classes)
    table = [replace(i, obstacle=obstacles.get(i.same_as or i.path, "")) for i in table]
    return tuple(
        replace(info, recommended=True, reason=reason) if info.path == chosen else info
        for info in table
    )


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
                    entry.outputs.append((None, None, ""))
                else:
                    axes, odd = trace.settle(tensor, (args, kwargs)), unusual(tensor)
                    entry.outputs.append((tuple(tensor.shape), None if odd else axes, odd))

            return hook

        for path in seen:
            session.forward(path, note(path), **_NOTES)
        with trace:
            session.module(example)
    shape = seen[""].outputs[0][0]
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
    for shape, axes, odd in seen.outputs:
        layout, grid, extra = ("other", None, 0) if odd else layout_of(shape, axes)
        rows.append(
            replace(silent, shape=shape, layout=layout, grid=grid, extra_tokens=extra, values=odd)
        )
    return replace(rows[0], later_calls=tuple(rows[1:])) if rows else silent


def _named(
    info: LayerInfo, part: nn.Module, parent: nn.Module, first: str, known: Collection[str]
) -> LayerInfo:
    """A row, all calls of it, with how calls are written and the module's other name."""
    structural = _never_called(part, parent)
    reasons = [] if info.calls else [structural or _not_called(parent)]
    mark, same_as = call_mark(info.path, info.calls, known), "" if first == info.path else first
    if same_as:
        reasons.append(f"the same module as «{first}»")
    first_call, *later = (
        replace(row, call_mark=mark, same_as=same_as, can_run=bool(info.calls) or not structural)
        for row in (info, *info.later_calls)
    )
    return replace(first_call, later_calls=tuple(later), reason="; ".join(reasons))


def layout_of(
    shape: tuple[int, ...] | None, axes: Axes | None
) -> tuple[Layout, tuple[int, int] | None, int]:
    """A tensor's layout, its grid of places, and how many tokens stand before the patches."""
    if shape is None or 0 in shape:
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


def _never_called(part: nn.Module, parent: nn.Module) -> str:
    """Why no network ever calls a module; empty where another input may make it run."""
    if type(part).forward is nn.Module.forward:
        return f"a {type(part).__name__} only holds other modules and is never called itself"
    if isinstance(parent, nn.MultiheadAttention):
        return "MultiheadAttention uses this layer's weights and never calls it"
    return ""


def _not_called(parent: nn.Module) -> str:
    return (
        f"its {type(parent).__name__} predicts without calling it: an auxiliary head, a part used "
        "in training, one whose weights are used directly, or a way that only other pictures take"
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
