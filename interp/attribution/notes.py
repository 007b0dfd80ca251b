"""What a map does not show, in words."""

import numpy as np
import numpy.typing as npt

from interp.colours import scale_for
from interp.geometry import Geometry
from interp.hooks.surroundings import Surroundings
from interp.models.loading import LoadedModel
from interp.picture import Picture
from interp.targets import Target

SMALL = 4  # a picture is small whose shorter side is under a fourth of the input's
NARROW = 3  # a crop is narrow that shows under a third of the picture's area


def notes_on(
    raw: npt.NDArray[np.float32],
    model: LoadedModel,
    picture: Picture,
    target: Target,
    *,
    signed: bool,
    geometry: Geometry,
) -> tuple[str, ...]:
    """Sentences about anything a reader of the heatmap has to know.

    Parameters
    ----------
    raw : float32 array (h, w)
        The unscaled map.
    geometry : Geometry
        How the picture was brought to the model's input.
    """
    notes = [*picture.notes, *_on_size(geometry)]
    if not model.trained:
        notes.append(
            "The model is untrained: its weights are random, and neither its answer nor this map "
            "says anything about the picture."
        )
    words = degenerate(raw, target, signed=signed)
    return (*notes, words) if words else tuple(notes)


def _on_size(geometry: Geometry) -> list[str]:
    """Where a picture is too small for its map, or a crop too narrow for its picture."""
    notes = []
    if SMALL * min(geometry.picture_size) < min(geometry.input_size):
        notes.append(_small(geometry))
    (width, height), (left, top) = geometry.resized_size, geometry.origin
    across = min(left + geometry.input_size[0], width) - max(left, 0)
    down = min(top + geometry.input_size[1], height) - max(top, 0)
    # in whole numbers: at the limit itself a fraction would be a matter of rounding
    if geometry.fit == "crop" and NARROW * across * down < width * height:
        percent = 100 * across * down / (width * height)
        shown = f"{percent:.0f}" if percent >= 1 else f"{percent:.1g}"
        notes.append(
            f"The crop shows the model {shown} % of the picture: "
            'use fit="letterbox" or "stretch" to show it all.'
        )
    return notes


def _small(geometry: Geometry) -> str:
    (width, height), (to_width, to_height) = geometry.picture_size, geometry.resized_size
    side = "{} × {}".format(*geometry.input_size)
    across, down = to_width / width, to_height / height
    if max(across, down) <= 1:  # a thin picture in a letterbox
        return (
            f"The picture is {width} × {height} pixels and fills {to_width} × {to_height} of the "
            f"model's {side} input: the map tells few places in it apart."
        )
    if geometry.fit == "stretch" and width != height:
        times = f"resized {across:.1f} times across and {down:.1f} times down"
    else:  # the side that is not rounded to whole pixels: the shorter of a crop, else the longer
        exact = down if (width > height) == (geometry.fit == "crop") else across
        times = f"enlarged {exact:.1f} times"
    return (
        f"The picture is {width} × {height} pixels and was {times} for the model's {side} input: "
        "fine detail in the map is interpolation."
    )


def notes_on_run(model: LoadedModel, around: Surroundings) -> tuple[str, ...]:
    """Sentences about chance in the network, and about what of the caller's it ran in."""
    notes = []
    if model.chance.draws:
        notes.append(
            f"This network draws random numbers at every pass: what is shown is of seed "
            f"{model.seed}, and another seed gives another answer and another map."
        )
    if off := model.chance.unsteady:
        notes.append(
            f"This network answers differently from pass to pass, by {off:.1g} of its largest "
            "logit, though the same random seed is set: what is shown cannot be repeated exactly."
        )
    return (*notes, *around.notes())


def degenerate(raw: npt.NDArray[np.float32], target: Target, *, signed: bool) -> str:
    """Why a map shows nothing, with its raw minimum and maximum; empty where it shows something."""
    finite = raw[np.isfinite(raw)]
    if finite.size < raw.size:
        return (
            f"{raw.size - finite.size} of {raw.size} values of the map are not finite numbers: "
            "the model overflowed, and nothing is drawn."
        )
    low, high = float(finite.min()), float(finite.max())
    if raw.size == 1:
        return f"The layer has a single place, so the map ({low:.4g}) says nothing about where."
    if not scale_for(raw, signed=signed).empty:
        return ""
    if low == high == 0.0:
        return f"The map is zero everywhere: {target.label} does not depend on this layer here."
    if high <= 0.0 and not signed:
        return (
            f"No value of the map is above zero (minimum {low:.4g}, maximum {high:.4g}): nothing "
            f"in this layer raises the score of {target.label}, and nothing is drawn."
        )
    return (
        f"The map is flat (minimum {low:.4g}, maximum {high:.4g}): no region stands out, and "
        "nothing is drawn."
    )
