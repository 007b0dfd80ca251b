"""What the dashboard shows: one view, in the session and in the URL, so that it can be shared."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import streamlit as st

from interp.geometry import Fit

_KEY = "view"


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
    """The view of this session; a new session begins with the one of its URL."""
    if _KEY not in st.session_state:
        st.session_state[_KEY] = from_url(st.query_params.to_dict())
    view: View = st.session_state[_KEY]
    wanted = to_url(view)
    if st.query_params.to_dict() != wanted:
        st.query_params.from_dict(wanted)
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
