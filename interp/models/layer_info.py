"""A row of the layer table, and how one is found by its name."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from interp.errors import LayerError
from interp.hooks.found import no_such_layer

Layout = Literal["nchw", "nhwc", "tokens", "vector", "other"]


@dataclass(frozen=True)
class LayerInfo:
    """One module of a network, as a dry run found it.

    `shape` is the shape of its first call's output and None where it never ran or returns no
    tensor; `grid` is the (h, w) of a spatial layout and `extra_tokens` how many tokens (a class
    token) stand before the patches; `order` is when its first call ended; `reason` says why it
    never ran, or why it is recommended. `later_calls` describes its second call and those after.
    `same_as` is the first path of a module that is registered under several; `call_mark` stands
    between path and call (see `call_name`). `values` says what it returns where that is no dense
    tensor of real numbers; `can_run` is False for what is never called itself; `obstacle` says why
    no gradient of the scores can be had at it, where that is known.
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
    same_as: str = ""
    call_mark: str = "#"
    values: str = ""
    can_run: bool = True
    obstacle: str = ""

    @property
    def spatial(self) -> bool:
        """Whether a heatmap can be made of it: it has a place for every value, and several."""
        return self.grid is not None and max(self.grid) > 1

    def call_name(self, call: int) -> str:
        """Text for one of its calls, such as «layer4.0.relu#1»."""
        return f"{self.path}{self.call_mark}{call}"

    @property
    def channels(self) -> int | None:
        if self.shape is None or self.layout == "other":
            return None
        return self.shape[1] if self.layout == "nchw" else self.shape[-1]

    @property
    def returned(self) -> str:
        """What it returned, in words: «1×512×7×7», «1×4×9×5 complex numbers», «no tensor»."""
        if self.shape is None:
            return "no tensor"
        shape = "×".join(map(str, self.shape)) or "a single number"
        return f"{shape} {self.values}".strip()


def recommended_layer(table: Iterable[LayerInfo]) -> LayerInfo:
    """The recommended layer of a table.

    Raises
    ------
    LayerError
        If the network has no layer with a spatial map, or no gradient can be had at any.
    """
    rows = list(table)
    for info in rows:
        if info.recommended:
            return info
    if not rows:
        raise LayerError(
            "this model is one piece, with no layer to look at: if it is TorchScript, which takes "
            "no hooks, load the module that it was scripted from"
        )
    blocked = [info for info in rows if info.obstacle]
    if blocked:
        free = [info.path for info in rows if info.spatial and not info.obstacle]
        others = " or ".join(f"«{path}»" for path in free[:3])
        raise LayerError(
            f"this model has no recommended layer, because {blocked[-1].obstacle}: "
            + (f"name a layer, such as {others}" if free else "no layer of it has gradients")
        )
    raise LayerError(
        "this model has no layer with a spatial map whose gradient reaches the scores: "
        "Grad-CAM has nothing to show for it"
    )


def find_layer(
    table: Iterable[LayerInfo], path: str, call: int = 0, *, picture: bool = False
) -> LayerInfo:
    """The row of a layer that can carry a heatmap, as it is at one of its calls.

    `picture` says that the table is of one picture, which went another way than the example.

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
        raise did_not_run(rows.values(), info, picture=picture)
    if not 0 <= call < info.calls:
        calls = ", ".join(map(info.call_name, range(info.calls)))
        runs = (
            f"ran {info.calls} time(s) for this picture"
            if picture
            else f"runs {info.calls} time(s)"
        )
        raise LayerError(f"layer «{path}» {runs}: its calls are {calls}")
    info = (info, *info.later_calls)[call]
    if not info.spatial:
        raise LayerError(
            f"layer «{path}» ({info.kind}) returns {info.returned}, which has no grid of places"
            + another(rows.values(), info)
        )
    return info


def did_not_run(
    table: Collection[LayerInfo], info: LayerInfo, *, picture: bool = False
) -> LayerError:
    """The error for a layer without a call."""
    others = another(table, info)
    if not picture:
        return LayerError(f"layer «{info.path}» never runs: {info.reason}{others}")
    return DidNotRun(
        f"layer «{info.path}» did not run for this picture: the way through this network depends "
        f"on what it is shown{others}"
    )


class DidNotRun(LayerError):
    """The layer exists and runs for other pictures."""


def another(table: Collection[LayerInfo], refused: LayerInfo, *, look_inside: bool = True) -> str:
    """What to choose in place of a layer, to go behind what is wrong with it.

    The last layer inside it, or else the recommended one; never the refused one itself, under
    whatever name. Without `look_inside` what is wrong is so of what it holds too.
    """
    module = refused.same_as or refused.path
    others = [info for info in table if info.spatial and module not in (info.path, info.same_as)]
    usable = [info for info in others if not info.obstacle]
    inside = [info for info in usable if info.path.startswith(f"{refused.path}.")]
    if not look_inside:
        usable = [info for info in usable if info not in inside]
        inside = []
    best = max(inside or usable, key=lambda info: (info.recommended, info.order), default=None)
    if best is not None:
        return f": choose another, such as «{best.path}»"
    if others:
        return ", and no gradient can be had at any other layer of this model"
    if refused.calls and not any(info.spatial for info in table):
        return ", and no layer of this model has one"
    return ", and no other layer of this model has a grid of places"


def channels_first(tensor: Tensor, info: LayerInfo) -> Tensor:
    """A layer's tensor as (N, C, h, w), whatever its layout; class tokens are left out."""
    if info.layout == "nhwc":
        return tensor.permute(0, 3, 1, 2)
    if info.layout == "tokens" and info.grid is not None:
        patches = tensor[:, info.extra_tokens :]
        return patches.transpose(1, 2).reshape(len(tensor), -1, *info.grid)
    return tensor
