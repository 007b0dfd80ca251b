"""Picks: what a browser component reports once, when the reader chooses something in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import streamlit as st

T = TypeVar("T")


def answered(key: str) -> int:
    """How many picks of a component have been answered in this session.

    It goes into the component's data: Streamlit tells the browser nothing where data stay the
    same, and a pick that was refused must still give the mark back to what is chosen.
    """
    count: int = st.session_state.get(_counter(key), 0)
    return count


def answer(key: str, offered: Sequence[T], on_pick: Callable[[T], None]) -> Callable[[], None]:
    """A callback for a component's `on_picked_change`.

    Parameters
    ----------
    key : str
        Of the component.
    offered : sequence
        What can be picked. The browser may show an older offer: a pick that is not in this one is
        not passed on.
    on_pick : callable
        Called with the pick, before the script runs again.
    """

    def called() -> None:
        st.session_state[_counter(key)] = answered(key) + 1
        value = st.session_state[key]["picked"]
        if value in offered:
            on_pick(value)

    return called


def _counter(key: str) -> str:
    return f"{key}.answered"
