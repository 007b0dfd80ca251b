"""The model's most likely classes, as bars in one row; picking one explains it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from interp.ui.components import component
from interp.ui.picks import answer, answered

if TYPE_CHECKING:
    from interp.attribution.base import Prediction


def predictions(
    items: Sequence[Prediction],
    chosen: int | None,
    *,
    key: str,
    on_pick: Callable[[int], None],
) -> None:
    """Show predictions as bars on one scale; picking one reruns the script, nothing else does.

    Parameters
    ----------
    items : sequence of Prediction
        The most likely first. Empty before there is a run.
    chosen : int or None
        Index of the class that is explained; it need not be among the items.
    key : str
        Names the row in the session.
    on_pick : callable
        Called with the index of the class picked, before the script runs again.
    """
    data = {
        "items": [_payload(item) for item in items],
        "chosen": chosen,
        "answered": answered(key),
    }
    picked = answer(key, [item.index for item in items], on_pick)
    component("predictions")(key=key, data=data, on_picked_change=picked)


def _payload(item: Prediction) -> dict[str, Any]:
    # A broken model answers NaN, for which JSON has no word.
    known = math.isfinite(item.probability)
    return {
        "index": item.index,
        "name": item.name,
        "percent": f"{100 * item.probability:.1f} %" if known else "not a number",
        "share": min(max(item.probability, 0.0), 1.0) if known else 0.0,
        "hint": f"{item.name} ({item.index}) · logit {item.logit:.2f}",
    }
