"""From a picture to heatmaps: the one way that the screen, the command line and the API take."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from interp.attribution.base import (
    Attribution,
    LayerCall,
    Method,
    Outcome,
    Prediction,
    Request,
    get_method,
)
from interp.attribution.layer_calls import Layers, layer_calls
from interp.attribution.notes import degenerate, notes_on, notes_on_run
from interp.errors import MethodError, ModelError, PictureError, TargetError
from interp.geometry import FITS, Fit
from interp.hooks.passes import forward_pass
from interp.hooks.surroundings import Surroundings
from interp.models.layers import DidNotRun, recommended_layer
from interp.models.loading import LoadedModel
from interp.models.routes import table_for
from interp.picture import Picture
from interp.targets import Target, class_names, parse_target, probabilities


def predict(
    model: LoadedModel, picture: Picture, k: int = 5, fit: Fit = "crop"
) -> list[Prediction]:
    """The `k` classes with the highest scores, the highest first.

    Raises
    ------
    PictureError
        If the picture cannot be fitted to the model's input.
    TargetError
        If `k` is below 1.
    """
    if k < 1:
        raise TargetError(f"no predictions were asked for (k is {k}): ask for one or more")
    check_input(model, picture, fit)
    tensor, light = model.prepare(picture, fit), model.allows_light_pass
    # As a hooked pass is run, and not plainly: PyTorch's fused attention would round otherwise.
    with forward_pass(
        model.module, tensor, (), gradients=False, light=light, seed=model.seed
    ) as run:
        return best_of(run.logits[0].float(), run.binary, model.categories, k)


def explain(
    model: LoadedModel,
    picture: Picture,
    method: str = "grad-cam",
    layers: Layers = None,
    target: str | int | Target | None = None,
    fit: Fit = "crop",
    **parameters: Any,
) -> Attribution:
    """One heatmap.

    Parameters
    ----------
    model : LoadedModel
    picture : Picture
    method : str
        A name from `list_methods`.
    layers : str or iterable of str, optional
        Module paths; `path#1` is the second call of a module. By default the recommended layer.
        Several layers give one map: the mean of theirs, each without its negative values and
        scaled to its own maximum, on the finest of their grids.
    target : str, int, Target or None
        A class index or name, a contrast `281-282`, with `:prob` or `:logprob` behind it for the
        probability. By default the top prediction.
    fit : "crop", "stretch" or "letterbox"
        How the picture is brought to the model's input.
    **parameters
        Of the method.

    Returns
    -------
    Attribution

    Raises
    ------
    InterpError
        Of the kind of what is wrong; nothing has run before layers, target and parameters are
        known to be right.
    """
    began = time.perf_counter()
    chosen, request = _request(model, picture, method, layers, target, fit, parameters)
    request, outcome = _outcome(chosen, request, layers)
    raw = outcome.maps[0] if len(outcome.maps) == 1 else _mean_of(outcome.maps, chosen.signed)
    seconds = time.perf_counter() - began
    whole = attribution_of(picture, fit, chosen, request, outcome, raw, request.layers, seconds)
    if len(outcome.maps) == 1:
        return whole
    notes = [
        f"{layer}: {words}"
        for layer, one in zip(whole.layers, outcome.maps, strict=True)
        if (words := degenerate(_read_only(one), outcome.target, signed=chosen.signed))
    ]
    return replace(whole, notes=(*whole.notes, *notes))


def explain_layers(
    model: LoadedModel,
    picture: Picture,
    layers: Iterable[str],
    method: str = "grad-cam",
    target: str | int | Target | None = None,
    fit: Fit = "crop",
    **parameters: Any,
) -> list[Attribution]:
    """A heatmap at each of several layers, all from one pass; in the order asked for.

    The parameters are those of `explain`. The attributions share one ledger and one time.
    """
    began = time.perf_counter()
    chosen, request = _request(model, picture, method, layers, target, fit, parameters)
    request, outcome = _outcome(chosen, request, layers)
    seconds = time.perf_counter() - began
    return [
        attribution_of(picture, fit, chosen, request, outcome, raw, (layer,), seconds)
        for raw, layer in zip(outcome.maps, request.layers, strict=True)
    ]


def _request(
    model: LoadedModel,
    picture: Picture,
    method: str,
    layers: Layers,
    target: str | int | Target | None,
    fit: Fit,
    parameters: dict[str, Any],
) -> tuple[Method, Request]:
    check_input(model, picture, fit)
    chosen = get_method(method)
    known = {parameter.name: parameter.default for parameter in chosen.parameters}
    for name in parameters:
        if name not in known:
            have = ", ".join(known) or "none"
            raise MethodError(f"{method} has no parameter «{name}» (it has {have})")
    wanted = parse_target(target, model.categories)
    tensor = model.prepare(picture, fit)
    calls = layer_calls(model, layers, tensor)
    return chosen, Request(model, tensor, calls, wanted, known | parameters)


def _outcome(method: Method, request: Request, layers: Layers) -> tuple[Request, Outcome]:
    """What the method finds; at the layer recommended for this very picture where none is named."""
    try:
        return request, method.run(request)
    except DidNotRun:
        if layers is not None:
            raise
        model = request.model
        own = table_for(model.module, model.layers, request.tensor)
        request = replace(request, layers=(LayerCall(recommended_layer(own)),))
        return request, method.run(request)


def check_input(model: Any, picture: Any, fit: str) -> None:
    """Refuse what is no loaded model, no picture or no fit.

    Raises
    ------
    ModelError, PictureError
    """
    if not isinstance(model, LoadedModel):
        raise ModelError(f"{type(model).__name__} is no loaded model: load it with load_model")
    if not isinstance(picture, Picture):
        raise PictureError(f"{type(picture).__name__} is no picture: open it with open_picture")
    if fit not in FITS:
        raise PictureError(f"no fit «{fit}»: there are {', '.join(FITS)}")


def attribution_of(
    picture: Picture,
    fit: Fit,
    method: Method,
    request: Request,
    outcome: Outcome,
    raw: Tensor,
    layers: Sequence[LayerCall],
    seconds: float,
) -> Attribution:
    """The result that carries one map `raw` of a method's outcome, with all that led to it."""
    model = request.model
    values, logits = _read_only(raw), _read_only(outcome.logits)
    geometry = model.geometry(picture, fit)
    notes = notes_on(
        values, model, picture, outcome.target, signed=method.signed, geometry=geometry
    )
    around = Surroundings.now(model.device)
    return Attribution(
        map=values,
        geometry=geometry,
        target=outcome.target,
        method=method.name,
        layers=tuple(map(str, layers)),
        parameters=dict(request.parameters),
        predictions=tuple(best_of(outcome.logits, outcome.binary, model.categories, 5)),
        logits=logits,
        notes=(*notes, *notes_on_run(model, around)),
        hooks=request.ledger.summary(),
        ledger=request.ledger,
        seconds=seconds,
        picture=picture,
        model_name=model.spec.name,
        weights=model.weights,
        source=model.source,
        device=str(model.device),
        fit=fit,
        signed=method.signed,
        seed=model.seed,
        conditions=around,
    )


def _read_only(tensor: Tensor) -> npt.NDArray[np.float32]:
    values: npt.NDArray[np.float32] = np.ascontiguousarray(tensor.detach().cpu(), np.float32)
    values.setflags(write=False)
    return values


def best_of(logits: Tensor, binary: bool, categories: Sequence[str], k: int) -> list[Prediction]:
    """The `k` best classes, from logits of shape (K,)."""
    odds = probabilities(logits[None], binary)[0]
    # By logit, as the target is chosen: close probabilities may be equal in float32.
    order = logits.argsort(descending=True, stable=True)[:k].tolist()
    names = Target(categories=class_names(categories))
    return [Prediction(i, names.name(i), float(odds[i]), float(logits[i])) for i in order]


def _mean_of(maps: Sequence[Tensor], signed: bool) -> Tensor:
    size = max((tuple(m.shape) for m in maps), key=lambda shape: shape[0] * shape[1])
    scaled = []
    for raw in maps:
        values = raw if signed else raw.clamp(min=0)
        peak = values.abs().max()
        values = values / peak if peak > 0 else values
        scaled.append(
            torch.nn.functional.interpolate(values[None, None], size, mode="bilinear")[0, 0]
        )
    return torch.stack(scaled).mean(dim=0)
