"""What stands on the page while something takes long, and when something went wrong."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

_MARKDOWN = re.compile(r"https?://[^\s)]+|[\\`*\[\]$<>~|]|(?<![^\W_])_|_(?![^\W_])")


@contextmanager
def first_screen() -> Iterator[None]:
    """The page in outline while PyTorch is imported, which happens once in the life of the server.

    The outline is drawn before the block runs and is gone when it ends.
    """
    _behind_the_navigation()
    # There in every run: one part more or less would take all that follow for others.
    outline, beside = st.empty(), st.sidebar.empty()
    if "torch" in sys.modules:
        yield
        return
    # PyTorch's threads wait for one another in a loop. On a machine with other work to do a long
    # loop keeps from the core the very thread it waits for: 2.3 s a forward pass, against 0.04 s.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    with beside.container():
        for height in (56, 232, 64, 64):
            st.skeleton(height=height)
    with outline.container():
        st.caption("Starting: loading PyTorch. This happens once, and takes a few seconds.")
        st.skeleton(height=64)
        picture, side = st.columns([5, 2], gap="large")
        with picture:
            st.skeleton(height=440)
        with side:
            st.skeleton(height=200)
            st.skeleton(height=96)
    try:
        yield
    finally:
        outline.empty()
        beside.empty()


def _behind_the_navigation() -> None:
    """Begin again with `app.py` where Streamlit has run a page without it.

    Until the first `st.navigation` of a server's life Streamlit takes the folder `pages/` for its
    older kind of many-page app, and an address such as `/layers` for a script of its own.
    """
    if getattr(PagesManager, "uses_pages_directory", False):
        PagesManager.uses_pages_directory = False
        st.rerun()


@contextmanager
def working(text: str, height: int = 440) -> Iterator[None]:
    """A sentence and an outline in the place where a result will stand.

    Where one stands already it stays where it is, pale, and `page.css` makes of both a small sign
    at the edge that shows only after a moment.
    """
    place = st.empty()
    with place.container(key=f"working {text}"):
        st.caption(plain(text))
        st.skeleton(height=height)
    try:
        yield
    finally:
        place.empty()


def problem(error: Exception, remedies: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Say what went wrong in the place of the result, with buttons that lead on.

    Parameters
    ----------
    error : Exception
        Its message is shown as it is.
    remedies : sequence of (label, choices)
        Each a button that changes the view by these choices.
    """
    from interp.ui import state

    message = str(error)
    st.error(plain(message[:1].upper() + message[1:]), icon=":material/error:")
    with st.container(horizontal=True):
        for label, choices in remedies:
            st.button(label, key=f"remedy {label}", on_click=state.change, kwargs=choices)


def plain(text: str) -> str:
    """A text with names that a user gave, so that Streamlit shows it as it is, but for links."""
    return _MARKDOWN.sub(lambda found: found[0] if found[0][1:] else f"\\{found[0]}", text)
