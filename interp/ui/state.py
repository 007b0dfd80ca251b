"""What the dashboard shows: one view and the page's own choices, in the session and in the URL."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import streamlit as st

from interp.geometry import Fit

_KEY = "view"
_PAGE = "page"
_CHOICES = "choices"  # by page, what is chosen on that page alone
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


def current(name: str = "explain") -> View:
    """The view of this session: the one last chosen, or that of an address gone to since then.

    A new session begins with its URL; the browser's back button leads to the URL before. Another
    page of the dashboard, which begins without parameters, goes on with the view.
    """
    address = st.query_params.to_dict()
    state = st.session_state
    turned = state.get(_PAGE, name) != name
    state[_PAGE] = name
    # Without an address a change is on its way to it, and what the browser says is out of date.
    gone_to = state.get(_ADDRESS) not in (None, address) and not (turned and not address)
    choices = _own()
    if _KEY not in state or gone_to:
        state[_KEY] = from_url(address)
        choices.clear()
        choices.update(_choices_of(address))
    view: View = state[_KEY]
    # An address that says the same in other words stays: writing it would be a step of its own.
    if from_url(address) != view or _choices_of(address) != choices:
        address = to_url(view) | choices
        st.query_params.from_dict(address)
    state[_ADDRESS] = address
    return view


def page() -> str:
    """The name of the page that is shown; empty before one is."""
    name: str = st.session_state.get(_PAGE, "")
    return name


def choice(name: str, default: str = "") -> str:
    """What was chosen on this page under a name that is no part of the view; a text."""
    return _own().get(name, default)


def change(**choices: Any) -> None:
    """Change the view or this page's own choices, from a widget's callback.

    What no longer fits goes back to its default: another picture is explained for its own top
    prediction, another model at its own layer. A page's choice that is empty leaves the address.
    """
    view: View = st.session_state[_KEY]
    names = {field.name for field in fields(View)}
    own = _own()
    for name in [name for name in choices if name not in names]:
        own[name] = str(choices.pop(name))
        if not own[name]:
            del own[name]
    if choices.get("picture", view.picture) != view.picture:
        choices = {"target": "", "frame": 0} | choices
    if choices.get("model", view.model) != view.model:
        choices = {"layer": "", "weights": "default"} | choices
    st.session_state[_KEY] = replace(view, **choices)
    st.session_state[_ADDRESS] = None


def _own() -> dict[str, str]:
    """The choices of the page that is shown."""
    pages: dict[str, dict[str, str]] = st.session_state.setdefault(_CHOICES, {})
    return pages.setdefault(page(), {})


def _choices_of(parameters: Mapping[str, str]) -> dict[str, str]:
    names = {field.name for field in fields(View)}
    return {name: value for name, value in parameters.items() if name not in names}
