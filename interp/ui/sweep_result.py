"""What a channel sweep found: measured against predicted, and the channels that matter most."""

import csv
import io
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
from interp.ui import charts, lab_state, state
from interp.ui.gallery import Tile, gallery
from interp.ui.state import View
from interp.ui.waiting import plain

MOST = 10
THUMBNAIL, LARGE = 320, 720
# What a rank correlation of at least so much means.
MEANINGS = (
    (
        0.95,
        "gradient × activation, one backward pass, puts the channels in nearly the same order as "
        "silencing them one by one",
    ),
    (
        0.7,
        "gradient × activation puts the channels roughly in the order that silencing them gives: "
        "good for a first look",
    ),
    (
        0.3,
        "gradient × activation only hints at what silencing a channel does: what follows bends "
        "too much for a slope to tell",
    ),
    (
        -1.0,
        "gradient × activation says next to nothing about what silencing a channel does here: "
        "trust what is measured",
    ),
)


def show_result(found: Sweep, view: View, model: LoadedModel, picture: Picture) -> None:
    """The findings of a sweep, also of one that was stopped."""
    order = found.order()
    channel = _chosen(found, int(order[0]))
    for note in found.notes:
        st.info(plain(note), icon=":material/info:")
    st.markdown(_headline(found, int(order[0])))
    with st.container(key="sweep pair"):
        left, right = st.columns([3, 2], gap="large")
    with left:
        _scatter(found)
    with right:
        _channel(found, view, model, picture, channel)
    _most_important(found, picture, channel)
    st.download_button(
        "CSV of all channels",
        _csv(found),
        file_name=f"{found.target.slug}.sweep.{found.path}.{found.to}.csv",
        mime="text/csv",
        icon=":material/download:",
        key="sweep csv",
        on_click="ignore",
        help="A line for each channel done: its index, and the measured and predicted drop.",
    )


def number(value: float) -> str:
    """«−3.21», «+0.04», «0»: a change with its sign."""
    text = f"{value:+.3g}" if value else "0"
    return text.replace("-", "−")


def ordinal(rank: int) -> str:
    ending = (
        "th" if rank % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    )
    return f"{rank}{ending}"


def _chosen(found: Sweep, default: int) -> int:
    text = state.choice("sweep_channel")
    known = text.isdecimal() and int(text) < len(found.channels)
    return int(text) if known else default


def _choose(channel: str) -> None:
    state.change(sweep_channel=channel.removeprefix("channel "))


def _headline(found: Sweep, first: int) -> str:
    drop = float(found.measured[first])
    lower = int((found.measured > 0).sum())
    higher = int((found.measured < 0).sum())
    return (
        f"**Channel {first}** of `{found.path}` matters most: without it the score of "
        f"*{plain(found.target.label)}* is {found.before - drop:.4g} instead of "
        f"{found.before:.4g} (**{number(-drop)}**). Silencing lowers the score for {lower} "
        f"channels and raises it for {higher}. {len(found.channels)} channels took "
        f"{found.seconds:.1f} s."
    ).replace(" -", " −")


def _scatter(found: Sweep) -> None:
    st.markdown(
        "**Measured against predicted**",
        help=(
            "Each point is a channel. Across: the drop of the score that gradient × activation "
            "predicts, to first order. Up: the drop that was measured when the channel was "
            "silenced. On the diagonal the prediction is exact."
        ),
    )
    charts.scatter(
        found.predicted,
        found.measured,
        [f"channel {channel}" for channel in found.channels],
        x_title="predicted drop of the score",
        y_title="measured drop of the score",
        key="sweep scatter",
        alt=f"{len(found.channels)} channels of {found.path}. {_meaning(found)}",
        on_pick=_choose,
        diagonal=True,
    )
    st.caption(_meaning(found))


def _meaning(found: Sweep) -> str:
    rank = found.rank_correlation
    if rank is None:
        return "All channels are equal here: there is no order to compare."
    words = next(text for least, text in MEANINGS if rank >= least)
    part = "" if found.complete else f" over the {len(found.channels)} channels done"
    return f"Rank correlation {rank:.2f}{part}: {words}.".replace(" -", " −")


def _channel(found: Sweep, view: View, model: LoadedModel, picture: Picture, channel: int) -> None:
    """One channel: where it is active, what it is worth, and the hook that silences it."""
    st.markdown(f"**Channel {channel}**")
    if _has_places(found):
        st.image(
            _on_picture(found, picture, channel, LARGE), width="stretch", alt=_words(found, channel)
        )
    values = found.maps[channel]
    flat = f" It is {values.min():.3g} everywhere: no place stands out." if _flat(values) else ""
    rank = int(np.flatnonzero(found.order() == channel)[0]) + 1
    place = "most" if rank == 1 else f"{ordinal(rank)} most"
    st.caption(
        f"Silenced, it changes the score by {number(-float(found.measured[channel]))}; predicted: "
        f"{number(-float(found.predicted[channel]))}. It matters {place} of "
        f"{len(found.channels)}.{flat}"
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


def _most_important(found: Sweep, picture: Picture, channel: int) -> None:
    order = found.order()[:MOST]
    st.markdown(
        f"**The {len(order)} that matter most**",
        help="By how much the score changes when the channel is silenced, up or down.",
    )
    gallery(
        [
            Tile(
                str(one),
                _on_picture(found, picture, int(one), THUMBNAIL) if _has_places(found) else None,
                f"channel {one}",
                detail=number(-float(found.measured[one])),
                alt=_words(found, int(one)),
            )
            for one in order
        ],
        str(channel),
        key="sweep channels",
        label="Channel that matters most",
        on_pick=_choose,
        columns=5,
    )


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
    text = f"Channel {channel}: {values.min():.3g} to {values.max():.3g}{where}"
    return text.replace(" -", " −")


def _csv(found: Sweep) -> str:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["channel", "measured_drop", "predicted_drop"])
    rows.writerows(
        zip(found.channels.tolist(), found.measured.tolist(), found.predicted.tolist(), strict=True)
    )
    return text.getvalue()
