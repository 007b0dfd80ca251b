"""The lifecycle of all hooks of a session: the sentence that matters, and the timeline of all."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from typing import Any

from interp.hooks.ledger import KINDS, HookLedger
from interp.ui.components import component
from interp.ui.kinds import colour_properties
from interp.ui.picks import answer, answered
from interp.ui.runs import Run, Totals

WHATS = ("registered", "fired", "changed", "removed", "error")
# Its marks, tables, files and what the tab remembers are the hook panel's.
_PARTS = ("kinds", "canvas", "memory", "save", "table")
SHARED = ("hook_panel.css", *(f"hook_panel.{part}.js" for part in _PARTS))


def sentence(totals: Totals) -> str:
    """«84 hooks registered in 6 runs, all removed; 2 of yours are live.»"""
    runs = _count(totals.runs, "run")
    finished = totals.registered - totals.live
    removed = totals.removed - totals.leaked
    if finished:
        done = "all removed" if removed == finished else f"{removed:,} removed"
        parts = [f"{_count(finished, 'hook')} registered in {runs}, {done}"]
    elif totals.live:
        parts = [f"{_count(totals.live, 'hook')} registered in {runs}, none removed yet"]
    else:
        parts = [f"No hook in {runs}"]
    if totals.live:
        parts.append(_live(totals.live_of_user, totals.live - totals.live_of_user))
    if totals.leaked:
        parts.append(f"{totals.leaked:,} leaked: PyTorch still has {_them(totals.leaked)}")
    if totals.foreign:
        parts.append(f"{_count(totals.foreign, 'foreign hook')} found")
    return "; ".join(parts) + "."


def _live(of_user: int, of_program: int) -> str:
    if not of_program:
        return f"{of_user:,} of yours {_are(of_user)} live"
    if not of_user:
        return f"{of_program:,} of the program's own {_are(of_program)} live"
    return (
        f"{of_user + of_program:,} are live, {of_user:,} of them yours and "
        f"{of_program:,} set by the program for them"
    )


def lifecycle(
    runs: Sequence[Run],
    pages: dict[str, str],
    *,
    key: str,
    removable: Collection[int] = (),
    on_remove: Callable[[int], None] | None = None,
) -> None:
    """Show runs as one timeline with filters, a run to step through, tables and files to save.

    Only removing a hook reruns the script.

    Parameters
    ----------
    runs : sequence of Run
        Oldest first.
    pages : dict
        Title of each page by its name.
    key : str
        Names the component in the session.
    removable : collection of int
        Numbers of the runs whose live hooks get a button that takes them off.
    on_remove : callable, optional
        Called once with the id of the record of the hook to be taken off.
    """
    strings = _Strings()
    first = min((run.ledger.began for run in runs), default=0.0)
    data = {
        "runs": [
            _packed(run, pages, first, strings) | {"removable": run.number in removable}
            for run in runs
        ],
        "strings": strings.texts,
        "kinds": KINDS,
        "whats": WHATS,
        "colours": colour_properties(),
        "answered": answered(key),
    }
    offered = [
        f"{run.number}/{record.id}"
        for run in runs
        if run.number in removable
        for record in run.ledger.records
        if record.removed_at is None
    ]

    def remove(picked: str) -> None:
        if on_remove is not None:
            on_remove(int(picked.partition("/")[2]))

    component("lifecycle", SHARED)(
        key=key, data=data, on_picked_change=answer(key, offered, remove)
    )


class _Strings:
    """Texts by number: paths and shapes repeat in every event."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number


def _packed(run: Run, pages: dict[str, str], first: float, text: _Strings) -> dict[str, Any]:
    """A run with its events as columns: thousands of them are sent with every run of the page."""
    ledger: HookLedger = run.ledger
    events = ledger.events
    kinds = {kind: number for number, kind in enumerate(KINDS)}
    whats = {what: number for number, what in enumerate(WHATS)}
    records = [
        [
            kinds[r.kind],
            *map(text, (r.path, r.class_name, r.purpose, r.origin, r.status, r.returned)),
            _micro(r.registered_at),
            None if r.removed_at is None else _micro(r.removed_at),
            r.fires,
            _micro(r.seconds),
            r.bytes_held,
        ]
        for r in ledger.records
    ]
    return {
        "number": run.number,
        "title": run.title,
        "page": pages.get(run.page, run.page),
        "started": ledger.started,
        "began": _micro(ledger.began - first),
        "now": _micro(ledger.now()) if ledger.summary()["live"] else None,
        "failed": ledger.failed,
        "dropped": ledger.dropped_events,
        "records": records,
        "at": [_micro(e.at) for e in events],
        "what": [whats[e.what] for e in events],
        "hook": [e.hook for e in events],
        "call": [-1 if e.call is None else e.call for e in events],
        "shapes": [text(", ".join(e.shapes)) for e in events],
        "detail": [text(e.detail) for e in events],
        "foreign": [asdict(hook) for hook in ledger.foreign],
    }


def _micro(seconds: float) -> float:
    return round(seconds, 6)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _them(number: int) -> str:
    return "it" if number == 1 else "them"
