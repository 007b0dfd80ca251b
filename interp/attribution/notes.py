"""What a map does not show, in words."""

import numpy as np
import numpy.typing as npt

from interp.colours import scale_for
from interp.hooks.surroundings import Surroundings
from interp.models.loading import LoadedModel
from interp.picture import Picture
from interp.targets import Target


def notes_on(
    raw: npt.NDArray[np.float32],
    model: LoadedModel,
    picture: Picture,
    target: Target,
    *,
    signed: bool,
) -> tuple[str, ...]:
    """Sentences about anything a reader of the heatmap has to know.

    Parameters
    ----------
    raw : float32 array (h, w)
        The unscaled map.
    """
    notes = list(picture.notes)
    if not model.trained:
        notes.append(
            "The model is untrained: its weights are random, and neither its answer nor this map "
            "says anything about the picture."
        )
    words = degenerate(raw, target, signed=signed)
    return (*notes, words) if words else tuple(notes)


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
