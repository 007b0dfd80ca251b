"""What is chosen on the Layers page: the layer and its call, the section, the channel."""

from typing import Literal, get_args

import streamlit as st

from interp.attribution.base import LayerCall
from interp.inspection.frame import find_call
from interp.models.layer_names import split_call
from interp.models.layers import recommended_layer
from interp.models.loading import LoadedModel
from interp.ui import state
from interp.ui.state import View

Section = Literal["channels", "attention", "dead", "operations"]
SECTIONS: tuple[Section, ...] = get_args(Section)
SECTION_TITLES: dict[Section, str] = {
    "channels": "Channels",
    "attention": "Attention",
    "dead": "Dead units",
    "operations": "Operations",
}
_OWNER = "layers: owner"
_OF_MODEL = ("module", "channel", "head", "patch")


def forget_former_model(view: View) -> None:
    """Let go of a layer, a channel, a head and a patch that were chosen in another model.

    The view does so with what all pages share; this page's own choices would be carried over.
    """
    chosen = tuple(state.choice(name) for name in _OF_MODEL)
    former, model = st.session_state.get(_OWNER, (chosen, view.model))
    st.session_state[_OWNER] = (chosen, view.model)
    if any(chosen) and chosen == former and model != view.model:
        state.change(**dict.fromkeys(_OF_MODEL, ""))
        st.rerun()


def chosen_layer(view: View, model: LoadedModel) -> LayerCall:
    """The layer and call of the address, or the recommended one.

    Raises
    ------
    LayerError
        If there is no such layer or call, or it never runs.
    """
    text = state.choice("module") or view.layer
    if not text:
        return LayerCall(recommended_layer(model.layers))
    path, call = split_call(text, {info.path for info in model.layers})
    find_call(model, path, call)
    return LayerCall(next(info for info in model.layers if info.path == path), call)


def choose_layer(model: LoadedModel, path: str, call: int = 0) -> None:
    """Go to a layer, from a callback.

    One that can carry a heatmap is the layer of all pages; another one is this page's own.
    """
    info = next(info for info in model.layers if info.path == path)
    text = info.call_name(call) if call else path
    own = not (info, *info.later_calls)[call].spatial
    state.change(layer="" if own else text, module=text if own else "", channel="")


def choose_call(model: LoadedModel, layer: LayerCall) -> None:
    """Which of several calls of the layer is shown."""
    count = layer.info.calls
    if count < 2:
        return
    st.session_state["call"] = layer.call

    def chosen() -> None:
        choose_layer(model, layer.info.path, st.session_state["call"])

    st.segmented_control(
        "Call",
        range(count),
        format_func=lambda call: f"{call + 1} of {count}",
        required=True,
        key="call",
        help=(
            f"This module runs {count} times in one pass. Each call has an output of its own, and "
            "a hook on the module fires at each."
        ),
        on_change=chosen,
    )


def choose_section() -> Section:
    """Which section stands below the layer's name."""
    text = state.choice("section", SECTIONS[0])
    section = next((one for one in SECTIONS if one == text), SECTIONS[0])
    st.session_state["section"] = section

    def chosen() -> None:
        now = st.session_state["section"]
        state.change(section="" if now == SECTIONS[0] else now)

    st.segmented_control(
        "What to look at",
        SECTIONS,
        format_func=SECTION_TITLES.__getitem__,
        required=True,
        key="section",
        label_visibility="collapsed",
        on_change=chosen,
    )
    return section


def ways_out() -> list[tuple[str, dict[str, str]]]:
    """What to choose where the address asks for something that is not there."""
    recommended = {"layer": "", "module": "", "channel": "", "section": ""}
    ways = [("Look at the recommended layer", recommended)]
    if state.choice("channel"):
        ways.insert(0, ("Show the channel that adds most", {"channel": ""}))
    if state.choice("head"):
        ways.insert(0, ("Show the last block", {"head": ""}))
    if state.choice("patch"):
        ways.insert(0, ("Look from the first token", {"patch": ""}))
    if state.choice("pictures"):
        ways.insert(0, ("Take the picture of the sidebar", {"pictures": ""}))
    return ways
