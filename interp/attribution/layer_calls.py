"""Which calls of which layers a text means."""

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from interp.attribution.base import LayerCall
from interp.errors import LayerError
from interp.models.layer_names import split_call
from interp.models.layers import find_layer, recommended_layer
from interp.models.loading import LoadedModel
from interp.models.routes import find_for_picture

Layers = str | Iterable[str] | None


def layer_calls(
    model: LoadedModel, layers: Layers, tensor: Tensor | None = None
) -> tuple[LayerCall, ...]:
    """The layers that `explain` would take for `layers`.

    With the input `tensor` of a picture also those that run for this picture alone.

    Raises
    ------
    LayerError
        If one of them does not exist or cannot carry a heatmap.
    """
    if layers is None:
        return (LayerCall(recommended_layer(model.layers)),)
    several = isinstance(layers, Iterable) and not isinstance(layers, str)
    names: list[Any] = list(layers) if several else [layers]
    if not names:
        raise LayerError("no layer was named: name one, or leave it out for the recommended one")
    return tuple(_layer_call(model, name, tensor) for name in names)


def _layer_call(model: LoadedModel, name: Any, tensor: Tensor | None) -> LayerCall:
    if not isinstance(name, str):
        raise LayerError(
            f"a layer is named by its path, such as «layer4.1»: {type(name).__name__} is no name"
        )
    path, call = split_call(name, {info.path for info in model.layers})
    if tensor is None:
        return LayerCall(find_layer(model.layers, path, call), call)
    return LayerCall(find_for_picture(model.module, model.layers, tensor, path, call), call)
