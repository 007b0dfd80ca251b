"""The channels of the chosen layer: the grid, and one of them on the picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from interp.errors import LayerError
from interp.hooks.recipe import Step
from interp.inspection.channels import ORDERS, ChannelMaps, Order
from interp.ui import charts, lab_state, layers_results, state
from interp.ui.channel_grid import channel_grid, titles_for
from interp.ui.heatmap_view import describe, heatmap_view
from interp.ui.layers_files import downloads
from interp.ui.state import View
from interp.ui.waiting import plain, working
from interp.ui.words import number, ordinal, signed

if TYPE_CHECKING:
    from interp.attribution.base import LayerCall
    from interp.hooks.ledger import HookLedger
    from interp.inspection.statistics import Statistics
    from interp.models.loading import LoadedModel
    from interp.picture import Picture

MEANINGS: dict[Order, str] = {
    "contribution": "gradient × activation, summed over all places: the share it adds to the score",
    "mean": "the mean over all places",
    "maximum": "the largest value at any place",
    "variance": "how much it differs from place to place",
    "index": "the order in which the network has them",
}


def show_channels(
    view: View, model: LoadedModel, picture: Picture, layer: LayerCall, measured: Statistics
) -> HookLedger:
    """The section «Channels»; what it returns is the ledger of the run that it shows.

    Raises
    ------
    InterpError
        If the layer has no channels, or the channel of the address does not exist.
    """
    key = layers_results.of_layer(view, layer)
    with working(f"Reading {layer}"):
        maps = layers_results.channels(key, str(layer), layer, model, picture)
    channel = _chosen(maps)
    offered: list[Order] = [one for one in ORDERS if one in titles_for(maps)]
    order = next((one for one in offered if one == state.choice("order")), ORDERS[0])
    shared = state.choice("scale") == "shared"
    _heading(maps, order)
    channel_grid(
        maps,
        channel,
        key="channels",
        identity=repr(key),
        order=order,
        shared=shared,
        names=_class_names(maps, model),
        on_pick=lambda text: state.change(channel=text),
        on_view=_turn,
    )
    _sentence(maps, model, channel)
    single = maps.maps[0].size == 1
    for note in maps.notes if single else maps.channel(channel).notes:
        st.caption(plain(note[:1].upper() + note[1:]))
    with st.container(key="channel"):
        _large(maps, channel, layer)
    downloads(maps, measured, order, shared)
    return maps.ledger


def _turn(order: str, shared: bool) -> None:
    state.change(order="" if order == ORDERS[0] else order, scale="shared" if shared else "")


def _chosen(maps: ChannelMaps) -> int:
    """The channel of the address; by default the one that adds most."""
    text = state.choice("channel")
    if not text:
        return int(maps.order("contribution")[0])
    if not text.isdecimal() or int(text) >= maps.count:
        raise LayerError(
            f"layer «{maps.layer}» has no channel «{text}»: they are 0 to {maps.count - 1}"
        )
    return int(text)


def _class_names(maps: ChannelMaps, model: LoadedModel) -> Sequence[str]:
    """The classes, where the channels are the model's own scores."""
    last = max(model.layers, key=lambda info: info.order)
    same = f"{maps.path}.".startswith(f"{last.path}.")
    is_answer = same and maps.info.layout == "vector" and maps.count == len(model.categories)
    return model.categories if is_answer else ()


def _sentence(maps: ChannelMaps, model: LoadedModel, channel: int) -> None:
    what = "Unit" if maps.maps[0].size == 1 else "Channel"
    value = float(maps.contribution[channel])
    names = _class_names(maps, model)
    name = f" (*{plain(names[channel])}*)" if names else ""
    score = f"the score of *{plain(maps.target.label)}*"
    does = f"{'raises' if value > 0 else 'lowers'} {score} by about {number(abs(value))}"
    rank = f"{ordinal(maps.rank(channel))} of {maps.count:,} by contribution"
    st.markdown(
        f"**{what} {channel}**{name} "
        + (f"{does}: {rank}." if value else f"adds nothing to {score}."),
        help=(
            "The contribution is gradient × activation, summed over all places: how much the score "
            "would fall, to first order, if the channel were zero."
        ),
    )


def _large(maps: ChannelMaps, channel: int, layer: LayerCall) -> None:
    """One channel on the picture, and its numbers and histogram beside it."""
    if maps.maps[0].size == 1:
        _facts(maps, channel)
        _silence(maps, channel, layer)
        return
    shown, beside = st.columns([3, 2], gap="medium")
    attribution = maps.channel(channel)
    with shown:
        what = describe(attribution).partition(", for ")[0]
        heatmap_view(
            attribution,
            key="heatmap",
            title=f"channel {channel}",
            alt=f"Channel {channel} of {layer}: {what}",
        )
    with beside:
        _facts(maps, channel)
        values = {"this channel": maps.maps[channel]}
        charts.histogram(
            values,
            value="activation, no unit",
            key="channel histogram",
            alt=f"Histogram of the {maps.maps[channel].size} values of channel {channel}",
            height=190,
        )
        _silence(maps, channel, layer)


def _facts(maps: ChannelMaps, channel: int) -> None:
    values = maps.maps[channel]
    facts = [("Contribution", f"{signed(maps.contribution[channel])} ({_place(maps, channel)})")]
    if values.size == 1:
        facts.append(("Value", signed(values.flat[0])))
    else:
        facts += [
            ("Mean", f"{signed(maps.mean[channel])} ({_place(maps, channel, 'mean')})"),
            ("Largest", f"{signed(maps.maximum[channel])} ({_place(maps, channel, 'maximum')})"),
            ("Variance", f"{number(maps.variance[channel])} ({_place(maps, channel, 'variance')})"),
            ("Zeros", f"{100 * float((values == 0).mean()):.1f} % of {values.size:,} places"),
        ]
    if maps.tokens is not None:
        extra = ", ".join(signed(value) for value in maps.tokens[:, channel])
        facts.append(("Class token" if len(maps.tokens) == 1 else "Extra tokens", extra))
    st.markdown("  \n".join(f"{name}: **{text}**" for name, text in facts))
    if maps.tokens is not None:
        st.caption("The class token has no place on the picture: its value stands apart.")


def _place(maps: ChannelMaps, channel: int, by: Order = "contribution") -> str:
    return ordinal(maps.rank(channel, by))


def _silence(maps: ChannelMaps, channel: int, layer: LayerCall) -> None:
    """To the hook lab, with the hook that sets this channel to zero."""
    what = "unit" if maps.maps[0].size == 1 else "channel"
    pressed = st.button(
        f"Silence this {what}",
        icon=":material/volume_off:",
        key="silence",
        help=f"Opens the hook lab with a forward hook that sets this {what} to zero.",
    )
    if not pressed:
        return
    step = Step(
        kind="forward",
        path=layer.info.path,
        action="channels",
        values={"which": str(channel), "to": "zero"},
        call=layer.call if layer.info.calls > 1 else None,
    )
    lab_state.add(step)
    st.switch_page("pages/lab.py")


def _heading(maps: ChannelMaps, order: Order) -> None:
    what = "units" if maps.maps[0].size == 1 else "channels"
    height, width = maps.maps.shape[1:]
    grid = "" if height * width == 1 else f" Each is a map of {height} × {width} places."
    st.markdown(
        f"**All {maps.count:,} {what}**",
        help=f"{MEANINGS[order][:1].upper()}{MEANINGS[order][1:]}.{grid} A click shows one large.",
    )
