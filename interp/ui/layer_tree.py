"""The network as a tree: a line per module, with what it returned in numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from interp.models.layers import LayerInfo
from interp.ui.components import component
from interp.ui.layer_picker import shape_text
from interp.ui.picks import answer, answered

if TYPE_CHECKING:
    from interp.inspection.statistics import LayerStatistics

MEASURES = ("zeros", "mean", "std", "largest", "norm", "parameters")


def layer_tree(
    table: Sequence[LayerInfo],
    rows: Sequence[LayerStatistics],
    value: str,
    *,
    key: str,
    network: str,
    wide: bool,
    on_pick: Callable[[str], None],
    on_wide: Callable[[bool], None],
) -> None:
    """Show every module in the order of the network, to search, sort, fold and choose from.

    Choosing a layer or another width reruns the script; searching, sorting and folding do not.

    Parameters
    ----------
    table : the layer table.
    rows : the statistics of the layers that ran, a row per call.
    value : path of the layer that is chosen.
    key : names the tree in the session.
    network : which network this is; another one is folded anew.
    wide : whether every number has a column of its own.
    on_pick : called with the path picked, before the script runs.
    on_wide : called with the width asked for, before the script runs.
    """
    calls: dict[str, list[LayerStatistics]] = {}
    for row in rows:
        calls.setdefault(row.path, []).append(row)
    data = {
        "key": key,
        "network": network,
        "value": value,
        "wide": wide,
        "rows": [_row(info, calls) for info in table],
        "answered": answered(key),
    }
    picked = answer(key, [info.path for info in table if info.calls], on_pick)

    def turned() -> None:
        on_wide(bool(st.session_state[key]["wide"]))

    component("layer_tree")(key=key, data=data, on_picked_change=picked, on_wide_change=turned)


def _row(info: LayerInfo, calls: Mapping[str, Sequence[LayerStatistics]]) -> dict[str, Any]:
    """What the browser needs of a module; what is not set is left out, as there may be a thousand.

    The numbers are those of the first call.
    """
    row: dict[str, Any] = {
        "path": info.path,
        "kind": info.kind,
        "calls": info.calls,
        "shape": shape_text(info),
        "layout": info.layout if info.shape else "",
        "star": info.recommended,
        "reason": info.reason,
        "parameters": info.parameters,
    }
    for first in calls.get(info.path, ())[:1]:
        row |= {name: _number(getattr(first, name)) for name in MEASURES[:-1]}
        row |= {"channels": first.channels, "dead": first.dead}
    return {name: content for name, content in row.items() if content is not None and content != ""}


def _number(value: float) -> float | str:
    """A number that JSON has; the others as texts."""
    if math.isfinite(value):
        return float(f"{value:.6g}")
    return "NaN" if math.isnan(value) else ("∞" if value > 0 else "−∞")
