"""Which axis of a tensor is which: descriptions that follow the tensors of one forward pass.

A convolution makes rows and columns of its input's; permutations and reshapes split axes and put
them together again, and whatever keeps a shape keeps its axes. So the layout of a layer is known
rather than guessed from sizes, for Swin's (N, H, W, C), MaxViT's windows and ViT's tokens alike.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from interp.hooks.writes import tensors_in

LAYOUTS: dict[tuple[str, ...], Literal["nchw", "nhwc", "tokens"]] = {
    ("N", "C", "H", "W"): "nchw",
    ("N", "H", "W", "C"): "nhwc",
    ("N", "HW", "C"): "tokens",
}
_PERMUTES = {"permute", "transpose", "swapaxes", "swapdims", "movedim", "moveaxis"}
_PERMUTES |= {"T", "mT", "H", "mH"}
_RESHAPES = {"reshape", "reshape_as", "view", "view_as", "flatten", "unflatten"}
_RESHAPES |= {"squeeze", "unsqueeze"}
_JOINS = {"cat", "concat", "concatenate"}
_CUTS = {"__getitem__", "narrow", "split", "tensor_split"}
_LOSES_AXES = {"matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "addmm", "baddbmm", "einsum"}
_LOSES_AXES |= {"tensordot", "scaled_dot_product_attention"}
_LOSES_AXES |= {"new_zeros", "new_ones", "new_full", "new_empty", "zeros_like", "ones_like"}
_LOSES_AXES |= {"mean", "sum", "amax", "amin", "select", "unbind"}


@dataclass(frozen=True)
class Part:
    """`size` places along one of N, C, H and W, `step` apart; «?» is a mixture of several."""

    letter: str
    size: int
    step: int = 1


Axis = tuple[Part, ...]  # the slowest first


@dataclass(frozen=True)
class Axes:
    """What each axis of a tensor runs over.

    An axis may be longer than its parts: a class token stands before the patches.
    """

    axes: tuple[Axis, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The letters of each axis; the order of channels tells nothing, so they count once."""
        letters = ("".join(part.letter for part in axis) for axis in self.axes)
        return tuple("C" if set(text) == {"C"} else text for text in letters)

    @property
    def grid(self) -> tuple[int, int]:
        """How many rows and columns there are, where the names are those of a layout."""
        sizes = {part.letter: part.size for axis in self.axes for part in axis}
        return sizes["H"], sizes["W"]


class AxisTrace(TorchFunctionMode):
    """While it is on, the axes of every tensor that a pass makes are noted, where they are known.

    Parameters
    ----------
    picture : Tensor
        Shape (N, C, H, W), what the pass begins with.
    """

    def __init__(self, picture: Tensor) -> None:
        super().__init__()
        self._known = WeakTensorKeyDictionary()
        self._known[picture] = _of_a_picture(picture.shape)

    def settle(self, output: Tensor, inputs: Any) -> Axes | None:
        """The axes of a module's output.

        Where they could not be followed, as through attention, a module that keeps the shape of
        its input is taken to keep its axes.
        """
        if output not in self._known:
            same = [t for t in tensors_in(inputs) if t.shape == output.shape and t in self._known]
            if same:
                self._known[output] = self._known[same[0]]
        return self._known.get(output)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        outputs = [tensor for tensor in tensors_in(result) if tensor not in self._known]
        sources = [t for t in tensors_in((args, kwargs)) if t in self._known] if outputs else []
        for output in outputs:
            axes = self._derive(func, output, sources, args, kwargs)
            if axes is not None and len(axes.axes) == output.dim():
                self._known[output] = axes
        return result

    def _derive(
        self,
        func: Callable[..., Any],
        output: Tensor,
        sources: list[Tensor],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Axes | None:
        name = getattr(func, "__name__", "")
        if name == "__get__":  # a property, such as `mT`
            name = getattr(getattr(func, "__self__", None), "__name__", "")
        if not sources:
            return _of_a_picture(output.shape) if "conv2d" in name and output.dim() == 4 else None
        source, axes = sources[0], self._known[sources[0]]
        if name in _LOSES_AXES:
            return None
        if name in _PERMUTES:
            return _permuted(axes, func, args, kwargs)
        if name in _RESHAPES:
            return _reshaped(axes, source.shape, output.shape)
        if output.dim() != source.dim():
            return None
        if name == "linear":
            return _through_linear(axes, output.shape[-1])
        if "conv2d" in name:
            channels = Part("C", output.shape[1])
            axes = Axes((axes.axes[0], (channels,), *axes.axes[2:]))
        elif same := [self._known[t] for t in sources if t.shape == output.shape]:
            clear = [one for one in same if "?" not in "".join(one.names)] or same
            return clear[0] if all(one.names == clear[0].names for one in clear) else None
        # What stands behind patches is no patch, and whose patches they are must be clear.
        joined = len(sources) == 1 and tensors_in((args, kwargs))[-1] is source
        keeps_tokens = joined if name in _JOINS else name in _CUTS
        return _resized(axes, source.shape, output.shape, keeps_tokens)


def _of_a_picture(shape: Sequence[int]) -> Axes:
    return Axes(tuple((Part(letter, n),) for letter, n in zip("NCHW", shape, strict=True)))


def _mixed(size: int) -> Axis:
    return (Part("?", size),)


def _permuted(
    axes: Axes, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Axes:
    """Asks the function itself what it does, with a tensor whose sizes tell its axes apart."""
    probe = torch.empty(tuple(range(len(axes.axes))), device="meta")
    rest = {key: value for key, value in kwargs.items() if key != "input"}
    return Axes(tuple(axes.axes[i] for i in func(probe, *args[1:], **rest).shape))


def _through_linear(axes: Axes, size: int) -> Axes:
    """The last axis becomes channels, unless it mixes places that the other axes tell apart."""
    *kept, last = axes.axes
    letters = {part.letter for part in last}
    others = [part for axis in kept for part in axis]
    coarsest = {part.letter: part.step for part in reversed(last)}
    # Within a patch places are mixed for good; across patches what is left is no grid.
    crosses = any(part.step < coarsest.get(part.letter, 0) for part in others)
    channels_elsewhere = any(part.letter == "C" for part in others)
    if letters != {"C"} and (crosses or channels_elsewhere):
        return Axes((*kept, _mixed(size)))
    return Axes((*kept, (Part("C", size),)))


def _resized(
    axes: Axes, before: Sequence[int], after: Sequence[int], keeps_tokens: bool
) -> Axes | None:
    """Rows and columns may become fewer or more and still span the picture; patches in one axis
    may only be joined by tokens in front, or lose these again."""
    resized = []
    for axis, old, new in zip(axes.axes, before, after, strict=True):
        letters = {part.letter for part in axis}
        if old == new or (len(letters) > 1 and keeps_tokens):
            resized.append(axis)
        else:
            clear = len(axis) == 1 or letters == {"C"}
            resized.append((Part(axis[0].letter, new),) if clear else _mixed(new))
    return Axes(tuple(resized))


def _reshaped(axes: Axes, before: Sequence[int], after: Sequence[int]) -> Axes | None:
    """The axes after a reshape, by matching runs of axes with equal numbers of elements."""
    made: list[Axis] = []
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
        run, sizes = axes.axes[start_i:i], tuple(after[start_j:j])
        made += run if len(run) == len(sizes) == 1 else _carved(run, sizes, left)
    return Axes(tuple(made))


def _carved(run: Sequence[Axis], sizes: Sequence[int], elements: int) -> list[Axis]:
    """The parts of some axes, dealt out anew to axes of other sizes."""
    left = [part for axis in run for part in axis]
    if elements == 0 or math.prod(part.size for part in left) != elements:
        return [_mixed(size) for size in sizes]
    made: list[Axis] = []
    for size in sizes:
        axis: list[Part] = []
        need = size
        while left and (need > 1 or left[0].size == 1):
            part = left.pop(0)
            if part.size % need == 0 and part.size > need:
                inner = part.size // need
                left.insert(0, Part(part.letter, inner, part.step))
                part = Part(part.letter, need, part.step * inner)
            if need % part.size:
                return [_mixed(size) for size in sizes]
            need //= part.size
            axis.append(part)
        made.append(_fused(axis))
    return made


def _fused(parts: list[Part]) -> Axis:
    """Neighbours that were split from one axis are one again."""
    fused: list[Part] = []
    for part in parts:
        last = fused[-1] if fused else None
        if last and last.letter == part.letter and last.step == part.size * part.step:
            fused[-1] = Part(part.letter, last.size * part.size, part.step)
        else:
            fused.append(part)
    return tuple(fused)
