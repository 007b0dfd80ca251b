"""The channel sweeps of this browser session: results so far, and the one that can go on."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from interp.ui import runs
from interp.ui.state import View

if TYPE_CHECKING:
    from interp.inspection.sweep import Sweep

KEPT = 6
_RESULTS = "sweep.results"
_OPEN = "sweep.open"
_GOING = "sweep.going"


@dataclass(frozen=True)
class Wanted:
    """What defines a sweep: the view without its method and layer, and the panel's own choices."""

    view: View
    path: str
    call: int
    to: str

    @classmethod
    def of(cls, view: View, path: str, call: int, to: str) -> Wanted:
        return cls(replace(view, method="", layer=""), path, call, to)


@dataclass(frozen=True)
class _Open:
    """A sweep that has not come to its end: it goes on where it was left."""

    wanted: Wanted
    reports: Iterator[Sweep]


def result(wanted: Wanted) -> Sweep | None:
    """The newest report of a sweep, if it is kept."""
    return _results().get(wanted)


def is_going(wanted: Wanted) -> bool:
    """Whether it was started and neither came to its end nor was stopped."""
    return st.session_state.get(_GOING) == wanted


def start(wanted: Wanted) -> None:
    """Begin a sweep, or go on with it, in the next run of the script."""
    st.session_state[_GOING] = wanted


def stop() -> None:
    """Leave the sweep that is going, with what it has found so far."""
    st.session_state[_GOING] = None


def stop_others(wanted: Wanted) -> None:
    """Another choice of layer or picture stops what was going on."""
    if not is_going(wanted):
        stop()


def can_go_on(wanted: Wanted) -> bool:
    return _open_for(wanted) is not None


def open_with(wanted: Wanted, reports: Iterator[Sweep]) -> None:
    """Keep the iterator of a sweep; that of another one is let go of."""
    st.session_state[_OPEN] = _Open(wanted, reports)


def reports(wanted: Wanted) -> Iterator[Sweep]:
    """Go on with an open sweep. Each report is kept before it is given on."""
    opened = _open_for(wanted)
    if opened is None:
        return
    while True:
        try:  # around this alone: whatever else interrupts leaves the sweep open
            report = next(opened.reports, None)
        except BaseException:
            _forget(opened)
            raise
        if report is None:
            _forget(opened)
            return
        if wanted not in _results():
            runs.note(f"Channel sweep of {wanted.path}", report.ledger)
        _keep(wanted, report)
        yield report


def _open_for(wanted: Wanted) -> _Open | None:
    opened: _Open | None = st.session_state.get(_OPEN)
    return opened if opened is not None and opened.wanted == wanted else None


def _forget(opened: _Open) -> None:
    if st.session_state.get(_OPEN) is opened:
        st.session_state[_OPEN] = None
        stop()


def _results() -> OrderedDict[Wanted, Sweep]:
    results: OrderedDict[Wanted, Sweep] = st.session_state.setdefault(_RESULTS, OrderedDict())
    return results


def _keep(wanted: Wanted, report: Sweep) -> None:
    results = _results()
    results[wanted] = report
    results.move_to_end(wanted)
    while len(results) > KEPT:
        results.popitem(last=False)
