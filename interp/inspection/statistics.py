"""What every layer's values look like, from one forward pass that keeps none of them."""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from weakref import ref

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from interp.attribution.explanation import check_input
from interp.errors import PictureError
from interp.geometry import Fit
from interp.hooks.ledger import HookLedger
from interp.hooks.values import unusual
from interp.inspection.outputs import ChannelAxis, sizes, watch_all
from interp.models.layers import LayerInfo
from interp.models.loading import LoadedModel
from interp.picture import Picture


@dataclass(frozen=True)
class LayerStatistics:
    """The values that one call of a layer returned.

    Attributes
    ----------
    path, call : which call of which layer, from 0.
    shape : of the first tensor that it returned, one picture.
    mean, std, largest : of all values; the standard deviation is that of the population.
    zeros : share of values that are exactly zero, 0 to 1.
    norm : Euclidean.
    channels : how many there are, or units of a vector; None where the layout is not known.
    dead : how many of them are zero everywhere.
    of : what the numbers are of where that is not the values as they are: the sizes of complex
        numbers, of which mean, std and largest are taken, or all values that a sparse or quantized
        tensor stands for.
    """

    path: str
    call: int
    shape: tuple[int, ...]
    mean: float
    std: float
    zeros: float
    largest: float
    norm: float
    channels: int | None
    dead: int | None
    of: str = ""


@dataclass(frozen=True, eq=False)
class Statistics:
    """A row for every call of every layer, in the order in which the calls ended.

    A layer that never ran, or returns no tensor with values, has no row. `logits` is float32 (K,).
    """

    rows: tuple[LayerStatistics, ...]
    ledger: HookLedger
    logits: npt.NDArray[np.float32]
    seconds: float


@dataclass(frozen=True)
class DeadUnits:
    """The channels of a layer that were zero everywhere on every picture, of its first call."""

    path: str
    channels: int
    dead: tuple[int, ...]


def statistics(model: LoadedModel, picture: Picture, fit: Fit = "crop") -> Statistics:
    """Statistics of every call of every layer, from one forward pass.

    Each value is reduced inside the hook that sees it, in float32 at least, and no feature map is
    kept. The largest is NaN where a value is.

    Raises
    ------
    PictureError
        If the picture cannot be fitted to the model's input.
    """
    check_input(model, picture, fit)
    began = time.perf_counter()
    ledger, tensor = HookLedger(), model.prepare(picture, fit)
    (measure,), logits = watch_all(model, [tensor], _Measure, ledger, "statistics")
    return Statistics(tuple(measure.rows), ledger, logits, time.perf_counter() - began)


def dead_units(
    model: LoadedModel,
    pictures: Iterable[Picture],
    fit: Fit = "crop",
    ledger: HookLedger | None = None,
) -> tuple[DeadUnits, ...]:
    """The channels of each layer that are zero everywhere on all of the pictures.

    Zeros mean something after a ReLU or its like, which a unit that is dead never passes. Layers
    without channels have no row. A picture for which a layer does not run says nothing of it.

    Parameters
    ----------
    pictures : iterable of Picture
        Shown one after the other; one is enough.
    ledger : HookLedger, optional
        To see the hooks of the run.

    Returns
    -------
    tuple of DeadUnits
        In running order.

    Raises
    ------
    PictureError
        If there is none, or one cannot be fitted to the model's input.
    """
    tensors = []
    for picture in pictures:
        check_input(model, picture, fit)
        tensors.append(model.prepare(picture, fit))
    if not tensors:
        raise PictureError("dead units are those of some pictures: give at least one")
    ledger = HookLedger() if ledger is None else ledger
    found, _ = watch_all(model, tensors, _Silent, ledger, "dead units")
    return _dead_on_all([one.channels for one in found])


Numbers = tuple[float, float, float, float, float, int | None, int | None]


class _Measure:
    """Reduces each output to a row; a tensor that passes through containers is reduced once."""

    def __init__(self, table: Iterable[LayerInfo]) -> None:
        self._axis = ChannelAxis(table)
        self._known: dict[int, tuple[ref[Tensor], tuple[int | None, int], Numbers]] = {}
        self.rows: list[LayerStatistics] = []

    def __call__(self, path: str, call: int, tensor: Tensor) -> None:
        axis = self._axis(path, call, tensor)
        # A write in place makes another version of a tensor; inference mode counts none.
        state = axis, -1 if tensor.is_inference() else tensor._version
        seen, seen_state, numbers = self._known.get(id(tensor), (None, None, None))
        same = seen is not None and seen() is tensor and seen_state == state
        if numbers is None or not same or tensor.is_inference():
            numbers = _reduce(tensor, axis)
            self._known[id(tensor)] = ref(tensor), state, numbers
        of = "the sizes of complex numbers" if tensor.is_complex() else unusual(tensor)
        self.rows.append(LayerStatistics(path, call, tuple(tensor.shape), *numbers, of))


def _reduce(tensor: Tensor, axis: int | None) -> Numbers:
    values = sizes(tensor)
    flat = _in_memory_order(values)
    count = flat.numel()
    average, largest = float(flat.mean()), float(flat.amax())
    variance = float((flat - average).square_().sum()) / count
    zeros = count - int(torch.count_nonzero(flat))
    channels = None if axis is None else values.shape[axis]
    dead = None
    if axis is not None and channels:
        # Most outputs have fewer zeros than one dead channel would give them.
        dead = int(_silent(values, axis).sum()) if zeros * channels >= count else 0
    norm = math.sqrt(count * (variance + average * average))
    return average, math.sqrt(variance), zeros / count, largest, norm, channels, dead


def _in_memory_order(values: Tensor) -> Tensor:
    """Every value once, in any order: a view wherever a channels-last or turned tensor allows."""
    order = sorted(range(values.dim()), key=values.stride, reverse=True)
    return values.permute(order).reshape(-1)


def _silent(values: Tensor, axis: int) -> Tensor:
    """Which channels are zero everywhere: bool (C,)."""
    others = [dim for dim in range(values.dim()) if dim != axis]
    return (values.amax(others) == 0) & (values.amin(others) == 0)


class _Silent:
    """Gathers the channels of first calls that were zero on a picture."""

    def __init__(self, table: Iterable[LayerInfo]) -> None:
        self._axis = ChannelAxis(table)
        self.channels: dict[str, Tensor] = {}

    def __call__(self, path: str, call: int, tensor: Tensor) -> None:
        axis = self._axis(path, call, tensor)
        if not call and axis is not None:
            self.channels[path] = _silent(sizes(tensor), axis)


def _dead_on_all(pictures: Sequence[dict[str, Tensor]]) -> tuple[DeadUnits, ...]:
    silent: dict[str, Tensor] = {}
    for channels in pictures:
        for path, here in channels.items():
            silent[path] = here & silent[path] if path in silent else here
    return tuple(
        DeadUnits(path, len(dead), tuple(dead.nonzero().flatten().tolist()))
        for path, dead in silent.items()
    )
