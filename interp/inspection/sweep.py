"""Which channels of a layer the answer hangs on: each one silenced in turn."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from interp.attribution.explanation import check_input
from interp.attribution.notes import notes_on_run
from interp.errors import HookError, LayerError
from interp.geometry import Fit, Geometry
from interp.hooks.capture import Capture, capture
from interp.hooks.full_passes import FullPasses
from interp.hooks.ledger import HookLedger
from interp.hooks.replay import Replay, ReplayError
from interp.hooks.surroundings import Surroundings
from interp.inspection.contribution import split_places
from interp.inspection.frame import find_call, read_only
from interp.inspection.ranks import rank_correlation
from interp.models.layers import LayerInfo
from interp.models.loading import LoadedModel
from interp.picture import Picture
from interp.targets import Target, parse_target

To = Literal["zero", "mean"]
TO: tuple[To, ...] = ("zero", "mean")
BATCH_BYTES = 32 * 2**20  # of the widest tensor; larger batches are no faster
MOST_ROWS = 64
FULL_PASSES = 16  # between two reports, where nothing can be replayed

Array = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Sweep:
    """What silencing each channel of a layer does to a score, as far as it has come.

    Attributes
    ----------
    path, call : the layer, and which of its calls.
    to : "zero", or "mean" for the channel's own mean over all places.
    target : the score, resolved.
    before : the score of the picture as it is.
    channels : int array (n,)
        Those done, in order.
    measured : float32 array (n,)
        By how much the score drops when the channel is silenced; below zero where it rises.
    predicted : float32 array (n,)
        The drop that gradient × activation predicts, to first order.
    total : how many channels the layer has.
    rank_correlation : float or None
        Spearman's, between measured and predicted, from -1 to 1; None where all of either are
        equal.
    maps : float32 array (C, h, w)
        What the layer returned; (C, 1, 1) for a vector. Tokens that are no place are left out.
    geometry : from these maps to the picture.
    notes : what is out of the ordinary, in words.
    ledger : every hook of the sweep.
    seconds : float
        Computing, without the time that the caller took between two reports.
    """

    path: str
    call: int
    to: To
    target: Target
    before: float
    channels: npt.NDArray[np.intp]
    measured: Array
    predicted: Array
    total: int
    rank_correlation: float | None
    maps: Array
    geometry: Geometry
    notes: tuple[str, ...]
    ledger: HookLedger
    seconds: float

    @property
    def complete(self) -> bool:
        return len(self.channels) == self.total

    def order(self) -> npt.NDArray[np.intp]:
        """The channels done, the one that moves the score most first; equal ones by index."""
        return self.channels[np.argsort(-np.abs(self.measured), kind="stable")]


def sweep(
    model: LoadedModel,
    picture: Picture,
    path: str,
    call: int = 0,
    target: str | int | Target | None = None,
    fit: Fit = "crop",
    to: str = "zero",
) -> Iterator[Sweep]:
    """Silence each channel of a layer in turn, running only what follows the layer.

    Nothing is hooked between two reports, so that the iterator can be left at any of them.

    Parameters
    ----------
    path, call : str, int
        Any layer that returns channels: maps, tokens or a vector.
    target : str, int, Target or None
        As for `explain`.
    to : "zero" or "mean"
        What every value of the channel becomes.

    Yields
    ------
    Sweep
        After every batch of channels; the last one is complete.

    Raises
    ------
    InterpError
        Of the kind of what is wrong: at once for what can be known without a pass.
    """
    check_input(model, picture, fit)
    info = find_call(model, path, call)
    if info.channels is None or info.shape is None or info.shape[0] != 1:
        shape = "×".join(map(str, info.shape or ())) or "no tensor"
        raise LayerError(
            f"layer «{path}» ({info.kind}) returns {shape}, in which no axis is known to hold "
            "channels: choose another layer"
        )
    if to not in TO:
        raise HookError(f"a channel cannot be silenced to «{to}»: there are {', '.join(TO)}")
    wanted = parse_target(target, model.categories)
    return _reports(model, picture, info, call, wanted, fit, "zero" if to == "zero" else "mean")


def _reports(
    model: LoadedModel,
    picture: Picture,
    info: LayerInfo,
    call: int,
    wanted: Target,
    fit: Fit,
    to: To,
) -> Iterator[Sweep]:
    began = time.perf_counter()
    tensor = model.prepare(picture, fit)
    taken = capture(model, tensor, [info.path], wanted)
    value, target = taken.feature_map(info.path, call), taken.target
    axis = 1 if info.layout == "nchw" else value.dim() - 1
    silence = _silence(value, axis, to)
    predicted, unreached = _predicted(taken, info.path, call, axis, silence)
    run, rows, notes = _way_to_run(model, tensor, info.path, call, taken.ledger)
    around = notes_on_run(model, Surroundings.now(model.device))
    report = Sweep(
        path=info.path,
        call=call,
        to=to,
        target=target,
        before=float(target.score(taken.logits.float())[0]),
        channels=np.arange(0),
        measured=np.zeros(0, np.float32),
        predicted=predicted[:0],
        total=len(predicted),
        rank_correlation=None,
        maps=read_only(split_places(value, info)[0]),
        geometry=model.geometry(picture, fit),
        notes=(*picture.notes, *around, *notes, *unreached),
        ledger=taken.ledger,
        seconds=time.perf_counter() - began,
    )
    for first in range(0, len(predicted), rows):
        began = time.perf_counter()
        channels = torch.arange(first, min(first + rows, len(predicted)))
        with torch.inference_mode(False), torch.no_grad():
            # The value as it is goes along: a batch may round in another way than the pass did.
            scores = target.score(run(_rows(value, silence, channels, axis)).float())
        measured = np.append(report.measured, read_only(scores[0] - scores[1:]))
        shown = predicted[: len(measured)]
        report = replace(
            report,
            channels=np.arange(len(measured)),
            measured=measured,
            predicted=shown,
            rank_correlation=rank_correlation(measured, shown),
            seconds=report.seconds + time.perf_counter() - began,
        )
        yield report


def _silence(value: Tensor, axis: int, to: To) -> Tensor:
    """What the values of each channel become, shape (C,)."""
    if to == "zero":
        return value.new_zeros(value.shape[axis])
    places = [dim for dim in range(value.dim()) if dim != axis]
    return value.float().mean(dim=places).to(value.dtype)


def _predicted(
    taken: Capture, path: str, call: int, axis: int, silence: Tensor
) -> tuple[Array, tuple[str, ...]]:
    """Gradient × (activation − what it becomes), summed over places, shape (C,), and a note."""
    value = taken.feature_map(path, call).movedim(axis, -1).float()
    try:
        gradient = taken.gradient(path, call).movedim(axis, -1).float()
    except LayerError as error:
        return read_only(value.new_zeros(value.shape[-1])), (
            f"Predicted is 0 throughout: {error}.",
        )
    return read_only((gradient * (value - silence.float())).flatten(0, -2).sum(dim=0)), ()


def _rows(value: Tensor, silence: Tensor, channels: Tensor, axis: int) -> Tensor:
    """The value as it is, then once for each of the channels with that one silenced."""
    rows = value.expand(1 + len(channels), *value.shape[1:]).clone()
    by_channel = rows.movedim(axis, 1)
    places = by_channel.dim() - 2
    new = silence[channels].reshape(-1, *[1] * places)
    index = torch.arange(1, 1 + len(channels)), channels
    by_channel[index] = new.expand(-1, *by_channel.shape[2:])
    return rows


def _way_to_run(
    model: LoadedModel, tensor: Tensor, path: str, call: int, ledger: HookLedger
) -> tuple[Callable[[Tensor], Tensor], int, tuple[str, ...]]:
    """What gives logits for rows of values, how many channels at once, and a note."""
    given = model.module, tensor, path, call, ledger, model.seed
    if model.chance.draws:
        why = "so that all draw the same random numbers"
        return FullPasses(*given), FULL_PASSES, (f"Every channel took a full pass: {why}.",)
    try:
        replay = Replay(*given)
    except ReplayError as error:
        why = f"Every channel took a full pass: {error}."
        return FullPasses(*given), FULL_PASSES, (why,)
    if model.couples_batch:
        why = (
            "Every channel was run on its own: in this network the pictures of a batch change each "
            "other's answers, or it takes one picture at a time."
        )
        return _one_by_one(replay), FULL_PASSES, (why,)
    return replay, max(1, min(MOST_ROWS, BATCH_BYTES // replay.widest) - 1), ()


def _one_by_one(run: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda values: torch.cat([run(row) for row in values.split(1)])
