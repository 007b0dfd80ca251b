"""What a channel sweep found: measured against predicted, and the channels that matter most."""

import csv
import io
from functools import partial
from pathlib import PureWindowsPath

import numpy as np
import streamlit as st

from interp.export import safe_stem
from interp.inspection.sweep import Sweep
from interp.models.loading import LoadedModel
from interp.picture import Picture
from interp.ui import charts, state
from interp.ui.sweep_channels import choose, most_important, one_channel
from interp.ui.waiting import plain
from interp.ui.words import ordinal, signed

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


def show_result(found: Sweep, model: LoadedModel, picture: Picture) -> None:
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
        one_channel(found, model, picture, channel)
    most_important(found, picture, channel)
    st.download_button(
        "CSV of all channels",
        partial(_csv, found),
        file_name=_file_name(found, model, picture),
        mime="text/csv",
        icon=":material/download:",
        key="sweep csv",
        on_click="ignore",
        help="A line for each channel done: its index, and the measured and predicted drop.",
    )


def _file_name(found: Sweep, model: LoadedModel, picture: Picture) -> str:
    info = next(info for info in model.layers if info.path == found.path)
    layer = info.call_name(found.call) if found.call else found.path
    name, untrained = PureWindowsPath(picture.name).stem, "" if model.trained else "untrained"
    parts = name, model.spec.name, untrained, layer, "sweep", found.to, found.target.slug
    return f"{safe_stem(*parts)}.csv"


def _chosen(found: Sweep, default: int) -> int:
    text = state.choice("sweep_channel")
    known = text.isdecimal() and int(text) < len(found.channels)
    return int(text) if known else default


def _headline(found: Sweep, first: int) -> str:
    drop = float(found.measured[first])
    lower = int((found.measured > 0).sum())
    higher = int((found.measured < 0).sum())
    took = f"{len(found.channels)} channels took {found.seconds:.1f} s."
    if not lower and not higher:
        return (
            f"**No channel of** `{found.path}` **matters**: whichever is silenced, the score of "
            f"*{plain(found.target.label)}* stays {found.before:.4g}. {took}"
        ).replace(" -", " −")
    return (
        f"**Channel {first}** of `{found.path}` matters most: without it the score of "
        f"*{plain(found.target.label)}* is {found.before - drop:.4g} instead of "
        f"{found.before:.4g} (**{signed(-drop)}**).{_first_predicted(found, first)} Silencing "
        f"lowers the score for {_some(lower)}, raises it for {_some(higher)} and changes nothing "
        f"for {_some(len(found.channels) - lower - higher)}. {took}"
    ).replace(" -", " −")


def _first_predicted(found: Sweep, first: int) -> str:
    """What became of the channel that gradient × activation puts first, where it is another."""
    place = int(np.argmax(np.abs(found.predicted)))
    channel = int(found.channels[place])
    if channel == first:
        return " Gradient × activation puts it first too."
    rank = int((np.abs(found.measured) > abs(found.measured[place])).sum()) + 1
    return (
        f" Gradient × activation puts channel {channel} first, which is {ordinal(rank)} when "
        f"silenced ({signed(-float(found.measured[place]))})."
    )


def _some(count: int) -> str:
    return {0: "none", 1: "1 channel"}.get(count, f"{count} channels")


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
        on_pick=choose,
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


def _csv(found: Sweep) -> str:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["channel", "measured_drop", "predicted_drop"])
    rows.writerows(
        zip(found.channels.tolist(), found.measured.tolist(), found.predicted.tolist(), strict=True)
    )
    return text.getvalue()
