"""What every layer's values look like, from one forward pass that keeps none of them."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import ref

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from interp.attribution.explanation import check_input
from interp.errors import PictureError
from interp.geometry import Fit
from interp.hooks.ledger import HookLedger
from interp.hooks.nested import first_tensor
from interp.hooks.session import HookSession
from interp.hooks.undisturbed import undisturbed
from interp.models.copies import frozen_copy
from interp.models.layers import LayerInfo
from interp.models.loading import LoadedModel
from interp.picture import Picture
from interp.targets import find_logits


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


@dataclass(frozen=True, eq=False)
class Statistics:
    """A row for every call of every layer, in the order in which the calls ended.

    A layer that never ran, or returns no tensor, has no row. `logits` is float32 (K,).
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
    measure = _Measure(model.layers)
    logits = _watch_all(model, [tensor], measure, ledger, "statistics")
    return Statistics(tuple(measure.rows), ledger, logits, time.perf_counter() - began)


def dead_units(
    model: LoadedModel,
    pictures: Iterable[Picture],
    fit: Fit = "crop",
    ledger: HookLedger | None = None,
) -> tuple[DeadUnits, ...]:
    """The channels of each layer that are zero everywhere on all of the pictures.

    Zeros mean something after a ReLU or its like, which a unit that is dead never passes. Layers
    without channels have no row.

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
    silent = _Silent(model.layers)
    _watch_all(model, tensors, silent, ledger or HookLedger(), "dead units")
    return silent.found()


Look = Callable[[str, int, Tensor], None]


def _watch_all(
    model: LoadedModel, tensors: Sequence[Tensor], look: Look, ledger: HookLedger, purpose: str
) -> npt.NDArray[np.float32]:
    """Show every output of every layer to `look`, in one pass a tensor; the last one's logits."""
    copy = frozen_copy(model.module)
    with (
        undisturbed(tensors[0].device, gradients=False, seed=model.seed),
        HookSession(model.module, ledger, copy=copy) as session,
    ):
        calls: dict[str, int] = {}
        for info in model.layers:
            hook = _hook(info.path, calls, look)
            session.forward(info.path, hook, purpose=purpose, origin="engine")
        for tensor in tensors:
            calls.clear()
            logits, _ = find_logits(session.module(tensor))
        return logits[0].float().cpu().numpy().copy()


def _hook(path: str, calls: dict[str, int], look: Look) -> Callable[..., None]:
    def hook(module: nn.Module, args: Any, output: Any) -> None:
        call = calls[path] = calls.get(path, -1) + 1
        tensor = output if isinstance(output, Tensor) else first_tensor(output)
        if tensor is not None and tensor.numel():
            # What the hook itself computes needs no watching for writes in place.
            with torch._C.DisableTorchFunction():
                look(path, call, tensor)

    return hook


class _ChannelAxis:
    """Which axis of an output runs over channels, by the layer table."""

    def __init__(self, table: Iterable[LayerInfo]) -> None:
        self._rows = {info.path: (info, *info.later_calls) for info in table}

    def __call__(self, path: str, call: int, tensor: Tensor) -> int | None:
        rows = self._rows[path]
        info = rows[min(call, len(rows) - 1)]
        if info.channels is None or info.shape is None or len(info.shape) != tensor.dim():
            return None
        return 1 if info.layout == "nchw" else tensor.dim() - 1


Numbers = tuple[float, float, float, float, float, int | None, int | None]


class _Measure:
    """Reduces each output to a row; a tensor that passes through containers is reduced once."""

    def __init__(self, table: Iterable[LayerInfo]) -> None:
        self._axis = _ChannelAxis(table)
        self._known: dict[int, tuple[ref[Tensor], int | None, Numbers]] = {}
        self.rows: list[LayerStatistics] = []

    def __call__(self, path: str, call: int, tensor: Tensor) -> None:
        axis = self._axis(path, call, tensor)
        seen, seen_axis, numbers = self._known.get(id(tensor), (None, None, None))
        if numbers is None or seen is None or seen() is not tensor or seen_axis != axis:
            numbers = _reduce(tensor, axis)
            self._known[id(tensor)] = ref(tensor), axis, numbers
        self.rows.append(LayerStatistics(path, call, tuple(tensor.shape), *numbers))


def _reduce(tensor: Tensor, axis: int | None) -> Numbers:
    values = tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()
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
    """Gathers the channels that were zero on every picture."""

    def __init__(self, table: Iterable[LayerInfo]) -> None:
        self._axis = _ChannelAxis(table)
        self._all: dict[str, Tensor] = {}

    def __call__(self, path: str, call: int, tensor: Tensor) -> None:
        axis = self._axis(path, call, tensor)
        if call or axis is None:
            return
        silent = _silent(tensor, axis)
        self._all[path] = silent & self._all[path] if path in self._all else silent

    def found(self) -> tuple[DeadUnits, ...]:
        return tuple(
            DeadUnits(path, len(silent), tuple(silent.nonzero().flatten().tolist()))
            for path, silent in self._all.items()
        )
