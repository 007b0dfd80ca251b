"""What stands around the sections of the Layers page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from interp.ui.layer_picker import shape_text
from interp.ui.layers_attention import show_attention
from interp.ui.layers_channels import show_channels
from interp.ui.layers_choice import Section, choose_call
from interp.ui.layers_dead import show_dead
from interp.ui.layers_operations import show_operations
from interp.ui.state import View
from interp.ui.waiting import plain

if TYPE_CHECKING:
    from interp.attribution.base import LayerCall
    from interp.hooks.ledger import HookLedger
    from interp.inspection.statistics import Statistics
    from interp.models.loading import LoadedModel
    from interp.picture import Picture

LAYOUTS = {
    "nchw": "channels × height × width",
    "nhwc": "stored as height × width × channels",
    "tokens": "tokens × channels",
    "vector": "a vector",
    "other": "no known layout",
}


def headline(layer: LayerCall, model: LoadedModel) -> None:
    """Path, class and shape of the chosen layer, and which of its calls is shown."""
    info = (layer.info, *layer.info.later_calls)[layer.call]
    star = " :primary[★]" if layer.info.recommended else ""
    st.markdown(f"### `{layer.info.path}` {plain(layer.info.kind)}{star}")
    parts = [shape_text(info) or "no tensor", LAYOUTS[info.layout]]
    parts.append(f"{layer.info.parameters:,} parameters" if layer.info.parameters else "no weights")
    if layer.info.recommended:
        parts.append(f"recommended: {layer.info.reason}")
    st.caption(" · ".join(parts))
    choose_call(model, layer)


def show_section(
    section: Section,
    view: View,
    model: LoadedModel,
    picture: Picture,
    layer: LayerCall,
    measured: Statistics,
) -> HookLedger | None:
    """The section that is chosen; only that one is computed.

    Raises
    ------
    InterpError
        If it has nothing to show for this layer.
    """
    if section == "attention":
        return show_attention(view, model, picture)
    if section == "dead":
        return show_dead(view, model, layer)
    if section == "operations":
        return show_operations(view, model, picture, layer)
    return show_channels(view, model, picture, layer, measured)


def summary(model: LoadedModel, measured: Statistics) -> None:
    """How the numbers of the tree came about."""
    hooks = measured.ledger.summary()
    own = [info for info in model.layers if not info.same_as]
    ran = sum(info.calls > 0 for info in own)
    st.caption(
        f"{ran} of {len(own)} modules ran, all measured in one forward pass: "
        f"{hooks['registered']} hooks registered, {hooks['removed']} removed, "
        f"{1000 * measured.seconds:.0f} ms."
    )
