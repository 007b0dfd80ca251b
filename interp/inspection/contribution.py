"""Gradient × activation of a layer's channels."""

from torch import Tensor

from interp.errors import LayerError
from interp.hooks.capture import Capture
from interp.hooks.way_back import NoWayBack
from interp.models.layers import LayerInfo, channels_first
from interp.targets import Target


def split_places(tensor: Tensor, info: LayerInfo) -> tuple[Tensor, Tensor | None]:
    """The places (C, h, w) of one picture's output, and the tokens (n, C) that have none.

    A vector becomes (C, 1, 1).
    """
    if info.layout == "vector":
        return tensor[0, :, None, None], None
    extra = tensor[0, : info.extra_tokens] if info.extra_tokens else None
    return channels_first(tensor, info)[0], extra


def contributions(taken: Capture, path: str, call: int, info: LayerInfo) -> tuple[Tensor, str]:
    """What each channel adds to the target, to first order: gradient × activation, summed.

    Parameters
    ----------
    taken : Capture
        Of that layer, with gradients.
    info : LayerInfo
        Its row of the layer table at that call.

    Returns
    -------
    contributions : Tensor
        float32 (C,), over all places and extra tokens; zeros where no gradient arrives.
    note : str
        Says so in words; empty where there is nothing to say.

    Raises
    ------
    NoWayBack
        If the network runs the layer with gradients off.
    """
    features = taken.feature_map(path, call).float()
    try:
        gradient = taken.gradient(path, call).float()
    except NoWayBack:  # zeros would be wrong: nothing is known of it
        raise
    except LayerError:
        return features.new_zeros(info.channels or 0), (
            f"No gradient reaches this layer: {taken.target.label} does not depend on it, and "
            "every contribution is zero."
        )
    axis = 1 if info.layout == "nchw" else features.dim() - 1
    others = [dim for dim in range(features.dim()) if dim != axis]
    return (features * gradient).sum(others), _unreached(gradient, info, taken.target)


def _unreached(gradient: Tensor, info: LayerInfo, target: Target) -> str:
    places, extra = split_places(gradient, info)
    if places.any():
        return ""
    if extra is not None and extra.any():
        return (
            f"The score of {target.label} is read from the class token: no gradient reaches the "
            "patches here, and the contributions are those of the class token alone."
        )
    return (
        f"The gradient of {target.label} is zero everywhere in this layer, and so is every "
        "contribution."
    )
