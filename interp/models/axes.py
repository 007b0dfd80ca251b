"""Which axis of a tensor is which: names that follow the tensors of one forward pass.

A convolution names its output (N, C, H, W); permutations, reshapes, slices and everything that
keeps a shape carry the names on. So the layout of a layer is known rather than guessed from
sizes, for Swin's (N, H, W, C), the inside of ConvNeXt's blocks and ViT's tokens alike.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from interp.hooks.out_of_place import tensors_in

LAYOUTS: dict[tuple[str, ...], Literal["nchw", "nhwc", "tokens"]] = {
    ("N", "C", "H", "W"): "nchw",
    ("N", "H", "W", "C"): "nhwc",
    ("N", "T", "C"): "tokens",
}
_MIXES_AXES = {"matmul", "__matmul__", "bmm", "einsum", "scaled_dot_product_attention", "baddbmm"}
_RESHAPES = {"reshape", "view", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as"}
_SWAPS = {"transpose", "swapaxes", "swapdims"}
_REDUCES = {"mean", "sum", "amax", "amin", "select", "unbind"}


@dataclass(frozen=True)
class Axes:
    """`names` holds N, C, H, W or T (H and W in one) for each axis, a small letter for a part of
    one, and «?» for an axis that mixes several; `grid` is the (h, w) that T stands for."""

    names: tuple[str, ...]
    grid: tuple[int, int] | None = None


class AxisTrace(TorchFunctionMode):
    """While it is on, every tensor that a pass makes gets its axes named, where they are known."""

    def __init__(self, picture: Tensor) -> None:
        super().__init__()
        self._known = WeakTensorKeyDictionary()
        self._known[picture] = Axes(("N", "C", "H", "W"))

    def axes(self, tensor: Tensor) -> Axes | None:
        return self._known.get(tensor)

    def settle(self, output: Tensor, inputs: Any) -> Axes | None:
        """The axes of a module's output; one that keeps its input's shape keeps its axes."""
        axes = self.axes(output)
        if axes is None or axes.names not in LAYOUTS:
            same = (self.axes(t) for t in tensors_in(inputs) if t.shape == output.shape)
            kept = next((a for a in same if a is not None and a.names in LAYOUTS), None)
            if kept is not None:
                self._name(output, kept)
                return kept
        return axes

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if name != "__get__":
            for output in tensors_in(result):
                if output not in self._known:
                    self._name(output, self._derive(name, output, args, kwargs or {}))
        return result

    def _name(self, tensor: Tensor, axes: Axes | None) -> None:
        if axes is not None and len(axes.names) == tensor.dim():
            self._known[tensor] = axes

    def _derive(
        self, name: str, output: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Axes | None:
        if "conv2d" in name and output.dim() == 4:
            return Axes(("N", "C", "H", "W"))
        sources = [t for t in tensors_in((args, kwargs)) if t in self._known]
        if not sources or name in _MIXES_AXES:
            return None
        source, axes = sources[0], self._known[sources[0]]
        if name == "permute":
            order = args[1] if len(args) == 2 else args[1:]
            order = kwargs.get("dims", order)
            return Axes(tuple(axes.names[i] for i in order), axes.grid)
        if name in _SWAPS:
            return _swapped(axes, *_pair(args, kwargs))
        if name in _RESHAPES:
            return _reshaped(axes, tuple(source.shape), tuple(output.shape))
        if name == "linear":
            return Axes((*axes.names[:-1], "C"), axes.grid) if source.dim() > 1 else None
        same = next((t for t in sources if t.shape == output.shape), None)
        if same is not None:
            return self._known[same]
        keeps_rank = output.dim() == source.dim() and name not in _REDUCES
        return axes if keeps_rank else None


def _pair(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, int]:
    if len(args) >= 3:
        return args[1], args[2]
    return kwargs.get("dim0", args[1] if len(args) > 1 else 0), kwargs["dim1"]


def _swapped(axes: Axes, first: int, second: int) -> Axes:
    names = list(axes.names)
    names[first], names[second] = names[second], names[first]
    return Axes(tuple(names), axes.grid)


def _reshaped(axes: Axes, before: Sequence[int], after: Sequence[int]) -> Axes | None:
    """Names after a reshape, by matching runs of axes with equal numbers of elements."""
    names: list[str] = []
    grid = axes.grid
    i = j = 0
    while i < len(before) or j < len(after):
        start_i, start_j = i, j
        left, right = math.prod(before[i : i + 1]), math.prod(after[j : j + 1])
        i, j = i + 1, j + 1
        while left != right:
            if left < right:
                if i >= len(before):
                    return None
                left *= before[i]
                i += 1
            else:
                if j >= len(after):
                    return None
                right *= after[j]
                j += 1
        run = axes.names[start_i:i]
        if run == ("H", "W") and j - start_j == 1:
            grid = (before[start_i], before[start_i + 1])
        names += _renamed(run, tuple(after[start_j:j]), grid)
    return Axes(tuple(names), grid)


def _renamed(
    run: tuple[str, ...], sizes: tuple[int, ...], grid: tuple[int, int] | None
) -> list[str]:
    if not run:
        return ["?"] * len(sizes)
    if len(run) == len(sizes) == 1:
        return [run[0]]
    if run == ("H", "W") and len(sizes) == 1:
        return ["T"]
    if run == ("T",) and sizes == grid:
        return ["H", "W"]
    letters = {name.lower() for name in run}
    if len(letters) == 1 and len(sizes) == 1:
        return [run[0].upper()]
    if len(run) == 1:
        return [run[0].lower()] * len(sizes)
    return ["?"] * len(sizes)
