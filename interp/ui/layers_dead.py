"""Units that are zero everywhere, on one picture or on several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PureWindowsPath
from typing import TYPE_CHECKING

import streamlit as st

from interp.errors import PictureError
from interp.picture import sample_pictures
from interp.ui import cache, charts, layers_results, state
from interp.ui.layers_choice import choose_layer
from interp.ui.picture_controls import SAMPLE_TITLES
from interp.ui.state import View
from interp.ui.waiting import working

if TYPE_CHECKING:
    from interp.attribution.base import LayerCall
    from interp.hooks.ledger import HookLedger
    from interp.inspection.statistics import DeadUnits
    from interp.models.loading import LoadedModel

_KEY = "dead pictures"
_SEEN = "layers: uploads"
NAMED = 24  # channels that are listed by index


def show_dead(view: View, model: LoadedModel, layer: LayerCall | None) -> HookLedger:
    """The section «Dead units», on the pictures that are chosen in it.

    Raises
    ------
    PictureError
        If one of the pictures is not to be had.
    """
    names = _choose_pictures(view)
    key = layers_results.of_picture(view)
    with working(f"Looking for dead units on {_pictures(len(names))}"):
        found = layers_results.dead(key, names, model)
    _sentence(found.rows, len(names))
    charts.depth_bars(
        [row.path for row in found.rows],
        [len(row.dead) / row.channels for row in found.rows],
        value="dead channels, share of the layer",
        key="dead units",
        alt=f"Share of dead channels along the depth of the network. {_most(found.rows, '')}",
        percent=True,
        selected=layer.info.path if layer else "",
        on_pick=lambda path: choose_layer(model, path),
    )
    st.caption(
        "A channel is dead where it is exactly zero at every place. That happens behind a ReLU or "
        "its like, which passes nothing below zero. A click on a bar chooses the layer."
    )
    if layer:
        _of_layer(layer, found.rows, len(names))
    return found.ledger


def _choose_pictures(view: View) -> tuple[str, ...]:
    """Samples and uploads, those of the address too; by default the picture of the sidebar."""
    samples = tuple(sample_pictures())
    seen: list[str] = st.session_state.setdefault(_SEEN, [])
    if view.picture not in (*samples, *seen):
        seen.append(view.picture)
    chosen = tuple(filter(None, state.choice("pictures").split(","))) or (view.picture,)
    kept = [name for name in chosen if cache.uploads().get(name) is not None]
    offered = tuple(dict.fromkeys((*samples, *seen, *kept)))
    unknown = next((name for name in chosen if name not in offered), None)
    if unknown is not None:
        raise PictureError(
            f"the picture «{unknown[:16]}» is not known here: choose samples, such as coffee, or "
            "upload it again"
        )
    st.session_state[_KEY] = list(chosen)

    def picked() -> None:
        now = st.session_state[_KEY]
        state.change(pictures="" if now in ([], [view.picture]) else ",".join(now))

    st.multiselect(
        "Dead on all of these pictures",
        offered,
        format_func=_title,
        key=_KEY,
        on_change=picked,
        help="With more pictures fewer channels stay silent; those that do may be of no use.",
    )
    return chosen


def _title(name: str) -> str:
    file = None if name in sample_pictures() else cache.uploads().get(name)
    return PureWindowsPath(file[1]).name if file else SAMPLE_TITLES.get(name, name)


def _pictures(count: int) -> str:
    return {1: "this picture", 2: "both pictures"}.get(count, f"all {count} pictures")


def _sentence(rows: Sequence[DeadUnits], count: int) -> None:
    with_dead = [row for row in rows if row.dead]
    if not with_dead:
        st.markdown(f"**No channel is dead**: each answers somewhere on {_pictures(count)}.")
        return
    st.markdown(
        f"**{len(with_dead)} of {len(rows)} layers** have channels that are zero everywhere on "
        f"{_pictures(count)}. {_most(rows)}"
    )


def _most(rows: Sequence[DeadUnits], quote: str = "`") -> str:
    worst = max(rows, key=lambda row: len(row.dead) / row.channels, default=None)
    if worst is None or not worst.dead:
        return "No layer has any."
    share = 100 * len(worst.dead) / worst.channels
    count = f"{len(worst.dead)} of {worst.channels:,} ({share:.1f} %)"
    return f"Most in {quote}{worst.path}{quote}: {count}."


def _of_layer(layer: LayerCall, rows: Sequence[DeadUnits], count: int) -> None:
    row = next((row for row in rows if row.path == layer.info.path), None)
    if row is None:
        st.markdown(f"`{layer.info.path}` has no known channels, so none that could be dead.")
        return
    named = ", ".join(map(str, row.dead[:NAMED]))
    more = f" and {len(row.dead) - NAMED} more" if len(row.dead) > NAMED else ""
    channels = f": channels {named}{more}" if row.dead else ""
    st.markdown(
        f"`{row.path}`: **{len(row.dead)} of {row.channels:,}** dead on "
        f"{_pictures(count)}{channels}."
    )
