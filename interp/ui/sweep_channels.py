"""The channels of a sweep: the one that is looked at, and those that matter most."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import streamlit as st
from PIL import Image

from interp import render
from interp.hooks.recipe import Step
from interp.inspection.sweep import Sweep
from interp.models.loading import LoadedModel
from interp.picture import Picture
from interp.ui import lab_state, state
from interp.ui.gallery import Tile, gallery
from interp.ui.waiting import plain
from interp.ui.words import number, ordinal, signed

MOST = 10
THUMBNAIL, LARGE = 320, 720


def choose(channel: str) -> None:
    """Look at a channel: «565», or «channel 565» as the chart names it."""
    state.change(sweep_channel=channel.removeprefix("channel "))


def one_channel(found: Sweep, model: LoadedModel, picture: Picture, channel: int) -> None:
    """One channel: where it is active, what it is worth, and the hook that silences it."""
    st.markdown(f"**Channel {channel}**")
    if _has_places(found):
        st.image(
            _on_picture(found, picture, channel, LARGE), width="stretch", alt=_words(found, channel)
        )
    values = found.maps[channel]
    flat = (
        f" It is {number(values[0, 0])} everywhere: no place stands out." if _flat(values) else ""
    )
    drop = float(found.measured[channel])
    rank = int(np.flatnonzero(found.order() == channel)[0]) + 1
    place = "most" if rank == 1 else f"{ordinal(rank)} most"
    matters = f"It matters {place} of {len(found.channels)}." if drop else "It does not matter."
    st.caption(
        f"Silenced, it changes the score by {signed(-drop)}; predicted: "
        f"{signed(-float(found.predicted[channel]))}. {matters}{flat}"
    )
    st.button(
        f"Add a hook that silences channel {channel}",
        icon=":material/add:",
        key="sweep add",
        on_click=_add,
        args=(found, model, channel),
        help="A forward hook on this layer, added to the recipe of the Hook lab.",
    )


def _add(found: Sweep, model: LoadedModel, channel: int) -> None:
    calls = next(info.calls for info in model.layers if info.path == found.path)
    step = Step(
        "forward",
        found.path,
        "channels",
        {"which": str(channel), "to": found.to},
        call=found.call if calls > 1 else None,
    )
    lab_state.add(step)
    st.toast(f"Added: {plain(step.sentence())}", icon=":material/check:")


def most_important(found: Sweep, picture: Picture, channel: int) -> None:
    """The channels that change the score most, to choose from; those that do not are left out."""
    order = [int(one) for one in found.order()[:MOST] if found.measured[one]]
    if not order:
        return
    title = "The one that matters" if len(order) == 1 else f"The {len(order)} that matter most"
    st.markdown(
        f"**{title}**",
        help="By how much the score changes when the channel is silenced, up or down.",
    )
    if not _has_places(found):
        _pills(found, order, channel)
        return
    gallery(
        [
            Tile(
                str(one),
                _on_picture(found, picture, one, THUMBNAIL),
                f"channel {one}",
                detail=signed(-float(found.measured[one])),
                alt=_words(found, one),
            )
            for one in order
        ],
        str(channel),
        key="sweep channels",
        label="Channel that matters most",
        on_pick=choose,
        columns=5,
    )


def _pills(found: Sweep, order: list[int], channel: int) -> None:
    """The channels of a vector: they have no place on the picture, so a number says it all."""
    st.session_state["sweep pills"] = channel if channel in order else None
    st.pills(
        "Channel that matters most",
        order,
        format_func=lambda one: f"channel {one}: {signed(-float(found.measured[one]))}",
        key="sweep pills",
        label_visibility="collapsed",
        on_change=_pill_pressed,
    )


def _pill_pressed() -> None:
    picked = st.session_state["sweep pills"]
    if picked is not None:  # pressed again, the one that is chosen stays
        choose(str(picked))


def _flat(values: npt.NDArray[np.float32]) -> bool:
    return values.size > 1 and bool(values.min() == values.max())


def _has_places(found: Sweep) -> bool:
    return max(found.maps.shape[1:]) > 1


def _on_picture(found: Sweep, picture: Picture, channel: int, side: int) -> Image.Image:
    """A channel's map over the picture, `side` pixels along its longer side."""
    small = picture.image.copy()
    small.thumbnail((side, side))
    values = found.maps[channel]
    heat = replace(found.geometry, picture_size=small.size).on_picture(values)
    return render.overlay(small, heat, render.scale_for(values, signed=bool((values < 0).any())))


def _words(found: Sweep, channel: int) -> str:
    values = found.maps[channel]
    row, column = np.unravel_index(int(np.abs(values).argmax()), values.shape)
    height, width = values.shape
    where = "" if height * width == 1 else f", strongest at row {row + 1} of {height}, "
    where += "" if height * width == 1 else f"column {column + 1} of {width}"
    return f"Channel {channel}: {number(values.min())} to {number(values.max())}{where}"
