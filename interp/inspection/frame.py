"""What results about one layer on one picture share: which call it is, and all but the map."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from interp.attribution.base import Attribution
from interp.attribution.explanation import best_of
from interp.attribution.notes import notes_on_run
from interp.errors import LayerError
from interp.geometry import Fit
from interp.hooks.found import no_such_layer
from interp.hooks.ledger import HookLedger
from interp.hooks.surroundings import Surroundings
from interp.hooks.values import numbers, unusual
from interp.models.layers import LayerInfo, did_not_run
from interp.models.loading import LoadedModel
from interp.models.routes import table_for
from interp.picture import Picture
from interp.targets import Target


def find_call(
    model: LoadedModel, path: str, call: int = 0, tensor: Tensor | None = None
) -> LayerInfo:
    """The row of the layer table for one call of any layer that ran.

    With the input `tensor` of a picture also of a call that runs for this picture alone.

    Raises
    ------
    LayerError
        If there is no such layer, it never ran, or not as often.
    """
    try:
        return _row_of(model.layers, path, call)
    except LayerError:
        if tensor is None or all(info.path != path or call < 0 for info in model.layers):
            raise
        own = table_for(model.module, model.layers, tensor)
        if own is model.layers:
            raise
    return _row_of(own, path, call, picture=True)


def _row_of(
    table: Iterable[LayerInfo], path: str, call: int, *, picture: bool = False
) -> LayerInfo:
    rows = {info.path: info for info in table}
    info = rows.get(path)
    if info is None:
        raise no_such_layer(path, rows)
    if picture and not info.calls:
        raise did_not_run(rows.values(), info, picture=True)
    if not info.calls:
        raise LayerError(f"layer «{path}» never runs: {info.reason}; choose a layer that does")
    if not 0 <= call < info.calls:
        runs = f"runs {info.calls} time(s)" + (" for this picture" if picture else "")
        raise LayerError(f"layer «{path}» has no call {call}: it {runs}, counted from 0")
    return (info, *info.later_calls)[call]


def frame_of(
    model: LoadedModel,
    picture: Picture,
    fit: Fit,
    logits: Tensor,
    target: Target,
    ledger: HookLedger,
    seconds: float,
) -> Attribution:
    """An attribution that still wants its map, method and layers; the map is NaN.

    Parameters
    ----------
    logits : Tensor
        Shape (1, K), as `find_logits` returns them.
    target : Target
        Resolved.
    """
    row = logits.detach()[0].float().cpu()
    notes = list(picture.notes)
    if not model.trained:
        notes.append("The model is untrained: its weights are random, and so is what it sees.")
    around = Surroundings.now(model.device)
    return Attribution(
        map=read_only(torch.full((1, 1), torch.nan)),
        geometry=model.geometry(picture, fit),
        target=target,
        method="none",
        layers=(),
        parameters={},
        predictions=tuple(best_of(row, target.binary, model.categories, 5)),
        logits=read_only(row),
        notes=(*notes, *notes_on_run(model, around)),
        hooks=ledger.summary(),
        ledger=ledger,
        seconds=seconds,
        picture=picture,
        model_name=model.spec.name,
        weights=model.weights,
        source=model.source,
        device=str(model.device),
        fit=fit,
        signed=False,
        seed=model.seed,
        conditions=around,
    )


def read_only(tensor: Tensor) -> npt.NDArray[np.float32]:
    """A float32 array that nobody can change, and that shares no memory with a run."""
    values = np.array(tensor.detach().float().cpu().numpy(), order="C")
    values.setflags(write=False)
    return values


def real(tensor: Tensor, path: str) -> Tensor:
    """What a layer returned as dense real numbers.

    Raises
    ------
    LayerError
        If it returned complex numbers, or a tensor without values.
    """
    dense = numbers(tensor)
    if dense is None or dense.is_complex():
        raise LayerError(
            f"layer «{path}» returns {unusual(tensor)}, and real numbers are needed: choose a "
            "layer before or behind it"
        )
    return dense
