"""What the dashboard shows: one view, in the session and in the URL, so that it can be shared."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import streamlit as st

from interp.geometry import Fit

_KEY = "view"
_ADDRESS = "address"  # the parameters in the browser's address bar, as far as is known


@dataclass(frozen=True)
class View:
    """Everything that defines a result. An empty text is the default of that choice.

    `picture` is the name of a sample or the SHA-256 of an uploaded file.
    """

    picture: str = "coffee"
    frame: int = 0
    model: str = "efficientnet_lite0"
    weights: str = "default"
    method: str = "grad-cam"
    layer: str = ""
    target: str = ""
    fit: Fit = "crop"


def from_url(parameters: Mapping[str, str]) -> View:
    """The view that a URL's parameters describe; what they leave out is the default."""
    known: dict[str, Any] = {
        field.name: parameters[field.name] for field in fields(View) if field.name in parameters
    }
    frame = str(known.pop("frame", ""))
    return View(frame=int(frame) if frame.isdecimal() else 0, **known)


def to_url(view: View) -> dict[str, str]:
    """The parameters of a view's URL: only what is not the default."""
    default = asdict(View())
    return {name: str(value) for name, value in asdict(view).items() if value != default[name]}


def current() -> View:
    """The view of this session: the one last chosen, or that of an address gone to since then.

    A new session begins with its URL; the browser's back button leads to the URL before.
    """
    address = st.query_params.to_dict()
    state = st.session_state
    # Without an address a change is on its way to it, and what the browser says is out of date.
    if _KEY not in state or state.get(_ADDRESS) not in (None, address):
        state[_KEY] = from_url(address)
    view: View = state[_KEY]
    # An address that says the same in other words stays: writing it would be a step of its own.
    if from_url(address) != view:
        address = to_url(view)
        st.query_params.from_dict(address)
    state[_ADDRESS] = address
    return view


def change(**choices: Any) -> None:
    """Change the view, from a widget's callback. What no longer fits it goes back to its default.

    Another picture is explained for its own top prediction, another model at its own layer.
    """
    view: View = st.session_state[_KEY]
    if choices.get("picture", view.picture) != view.picture:
        choices = {"target": "", "frame": 0} | choices
    if choices.get("model", view.model) != view.model:
        choices = {"layer": "", "weights": "default"} | choices
    st.session_state[_KEY] = replace(view, **choices)
    st.session_state[_ADDRESS] = None
