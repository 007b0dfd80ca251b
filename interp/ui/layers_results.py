"""What the Layers page computes, kept for the session."""

from dataclasses import dataclass, replace

import streamlit as st

from interp.attribution.base import LayerCall
from interp.hooks.ledger import HookLedger
from interp.inspection.attention import Attention, attention
from interp.inspection.channels import ChannelMaps, channel_maps
from interp.inspection.operations import Operations, operations
from interp.inspection.statistics import DeadUnits, Statistics, dead_units, statistics
from interp.models.loading import LoadedModel
from interp.picture import Picture
from interp.ui import cache, runs
from interp.ui.state import View


def of_picture(view: View) -> View:
    """What decides a forward pass: the view without method, layer and target."""
    return replace(view, method="", layer="", target="")


def of_layer(view: View, layer: LayerCall) -> View:
    """What decides the values and gradients of one layer."""
    return replace(view, method="", layer=str(layer))


@st.cache_resource(scope="session", max_entries=4, show_spinner=False)
def layer_statistics(key: View, _model: LoadedModel, _picture: Picture) -> Statistics:
    """The statistics of every layer; the key is `of_picture`."""
    measured = statistics(_model, _picture, fit=key.fit)
    runs.note("Statistics of every layer", measured.ledger)
    return measured


@st.cache_resource(scope="session", max_entries=8, show_spinner=False)
def channels(
    key: View, layer: str, _call: LayerCall, _model: LoadedModel, _picture: Picture
) -> ChannelMaps:
    """The channels of a layer; the key is `of_layer`."""
    path, call = _call.info.path, _call.call
    maps = channel_maps(_model, _picture, path, call, target=key.target, fit=key.fit)
    runs.note(f"Channels of {layer}", maps.ledger)
    return maps


@st.cache_resource(scope="session", max_entries=2, show_spinner=False)
def attention_maps(key: View, _model: LoadedModel, _picture: Picture) -> Attention:
    """The attention weights of every block; the key is `of_picture`."""
    found = attention(_model, _picture, fit=key.fit)
    runs.note("Attention of every block", found.ledger)
    return found


@dataclass(frozen=True)
class Dead:
    """The dead units of every layer, and the hooks that found them."""

    rows: tuple[DeadUnits, ...]
    ledger: HookLedger


@st.cache_resource(scope="session", max_entries=4, show_spinner=False)
def dead(key: View, pictures: tuple[str, ...], _model: LoadedModel) -> Dead:
    """The units that are dead on all of these pictures; the key is `of_picture`.

    The frame of the key is that of its picture, where it is among them.
    """
    ledger = HookLedger()
    opened = [cache.picture(name, key.frame if name == key.picture else 0) for name in pictures]
    rows = dead_units(_model, opened, fit=key.fit, ledger=ledger)
    count = "1 picture" if len(pictures) == 1 else f"{len(pictures)} pictures"
    runs.note(f"Dead units on {count}", ledger)
    return Dead(rows, ledger)


@st.cache_resource(scope="session", max_entries=8, show_spinner=False)
def layer_operations(
    key: View, layer: str, _call: LayerCall, _model: LoadedModel, _picture: Picture
) -> Operations:
    """The autograd operations inside a layer; the key is `of_picture`."""
    found = operations(_model, _picture, _call.info.path, _call.call, fit=key.fit)
    runs.note(f"Operations of {layer}", found.ledger)
    return found
