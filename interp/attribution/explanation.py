"""From a picture to heatmaps: the one way that the screen, the command line and the API take."""

import time
from collections.abc import Iterable, Sequence
from typing import Any, get_args

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
from interp.attribution.notes import notes_on
from interp.errors import LayerError, MethodError, PictureError
from interp.geometry import Fit
from interp.models.layers import find_layer, recommended_layer
from interp.models.loading import LoadedModel
from interp.picture import Picture
from interp.targets import Target, find_logits, parse_target, probabilities

Layers = str | Iterable[str] | None


def predict(
    model: LoadedModel, picture: Picture, k: int = 5, fit: Fit = "crop"
) -> list[Prediction]:
    """The `k` classes with the highest scores, the highest first.

    Raises
    ------
    PictureError
        If the picture cannot be fitted to the model's input.
    """
    tensor = model.prepare(picture, _checked(fit))
    with torch.inference_mode():
        logits, binary = find_logits(model.module(tensor))
    return _predictions(logits[0].float(), binary, model.categories, k)


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
    outcome = chosen.run(request)
    raw = outcome.maps[0] if len(outcome.maps) == 1 else _mean_of(outcome.maps, chosen.signed)
    return _attribution(picture, fit, chosen, request, outcome, raw, request.layers, began)


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
    outcome = chosen.run(request)
    return [
        _attribution(picture, fit, chosen, request, outcome, raw, (layer,), began)
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
    chosen = get_method(method)
    known = {parameter.name: parameter.default for parameter in chosen.parameters}
    for name in parameters:
        if name not in known:
            have = ", ".join(known) or "none"
            raise MethodError(f"{method} has no parameter «{name}» (it has {have})")
    wanted = parse_target(target, model.categories)
    calls = _layer_calls(model, layers)
    tensor = model.prepare(picture, _checked(fit))
    return chosen, Request(model, tensor, calls, wanted, known | parameters)


def _layer_calls(model: LoadedModel, layers: Layers) -> tuple[LayerCall, ...]:
    if layers is None:
        return (LayerCall(recommended_layer(model.layers)),)
    names = [layers] if isinstance(layers, str) else list(layers)
    if not names:
        raise LayerError("no layer was named: name one, or leave it out for the recommended one")
    return tuple(_layer_call(model, name) for name in names)


def _layer_call(model: LoadedModel, name: str) -> LayerCall:
    path, hash_sign, number = name.partition("#")
    info = find_layer(model.layers, path)
    if hash_sign and not number.isdigit():
        raise LayerError(f"«{name}» is no call of a layer: write «{path}#0» for its first")
    call = int(number or 0)
    if call >= info.calls:
        raise LayerError(
            f"layer «{path}» runs {info.calls} time(s): its calls are "
            + ", ".join(f"{path}#{n}" for n in range(info.calls))
        )
    return LayerCall(info, call)


def _checked(fit: str) -> Any:
    if fit not in get_args(Fit):
        raise PictureError(f"no fit «{fit}»: there are {', '.join(get_args(Fit))}")
    return fit


def _attribution(
    picture: Picture,
    fit: Fit,
    method: Method,
    request: Request,
    outcome: Outcome,
    raw: Tensor,
    layers: Sequence[LayerCall],
    began: float,
) -> Attribution:
    model = request.model
    values: npt.NDArray[np.float32] = np.ascontiguousarray(raw.detach().cpu().numpy(), np.float32)
    values.setflags(write=False)
    return Attribution(
        map=values,
        geometry=model.geometry(picture, fit),
        target=outcome.target,
        method=method.name,
        layers=tuple(map(str, layers)),
        parameters=dict(request.parameters),
        predictions=tuple(_predictions(outcome.logits, outcome.binary, model.categories, 5)),
        logits=outcome.logits.cpu().numpy(),
        notes=notes_on(values, model, picture, outcome.target, signed=method.signed),
        hooks=request.ledger.summary(),
        ledger=request.ledger,
        seconds=time.perf_counter() - began,
        picture=picture,
        model_name=model.spec.name,
        weights=model.weights,
        source=model.source,
        device=str(model.device),
        fit=fit,
        signed=method.signed,
    )


def _predictions(
    logits: Tensor, binary: bool, categories: Sequence[str], k: int
) -> list[Prediction]:
    odds = probabilities(logits[None], binary)[0]
    order = odds.argsort(descending=True)[:k].tolist()
    names = Target(categories=tuple(categories))
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
