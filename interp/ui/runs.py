"""Every run of this browser session: what it was, and the ledger of its hooks."""

import threading
from dataclasses import dataclass

import streamlit as st

from interp.hooks.ledger import HookLedger, HookRecord
from interp.ui import state

MOST_RUNS = 100
MOST_EVENTS = 40_000
_KEY = "runs"


@dataclass(frozen=True)
class Run:
    """One run: its number in this session from 1, what it computed, on which page, its hooks."""

    number: int
    title: str
    page: str
    ledger: HookLedger


@dataclass(frozen=True)
class Totals:
    """Counts over all runs of a session, those that are no longer kept among them.

    `live` hooks are still on their module; `leaked` are those whose removal failed. `forgotten` of
    the `runs` are counted here and no longer kept.
    """

    runs: int = 0
    forgotten: int = 0
    registered: int = 0
    removed: int = 0
    leaked: int = 0
    live: int = 0
    live_of_user: int = 0
    foreign: int = 0


class Runs:
    """The newest runs, within bounds; of older ones only the counts of their hooks.

    A run with a hook that is still on is kept whatever its age.
    """

    def __init__(self, most_runs: int = MOST_RUNS, most_events: int = MOST_EVENTS) -> None:
        self._most_runs, self._most_events = most_runs, most_events
        self._kept: list[Run] = []
        self._count = 0
        self._forgotten = [0, 0, 0, 0]  # registered, removed, leaked, foreign
        self._lock = threading.Lock()

    def add(self, title: str, page: str, ledger: HookLedger) -> None:
        """Keep a run; a ledger that is known already stays the run it was."""
        with self._lock:
            if any(run.ledger is ledger for run in self._kept):
                return
            self._count += 1
            self._kept.append(Run(self._count, title, page, ledger))
            while self._too_many():
                oldest = next((r for r in self._kept[:-1] if not _live(r.ledger)), None)
                if oldest is None:
                    return
                self._kept.remove(oldest)
                counts = _counts(oldest.ledger)
                self._forgotten = [a + b for a, b in zip(self._forgotten, counts, strict=True)]

    def all(self) -> tuple[Run, ...]:
        """The runs that are kept, oldest first."""
        with self._lock:
            return tuple(self._kept)

    def totals(self) -> Totals:
        with self._lock:
            kept, runs, forgotten = tuple(self._kept), self._count, self._forgotten
        counts = [forgotten, *(_counts(run.ledger) for run in kept)]
        registered, removed, leaked, foreign = (sum(column) for column in zip(*counts, strict=True))
        live = [record.origin for run in kept for record in _live(run.ledger)]
        return Totals(
            runs=runs,
            forgotten=runs - len(kept),
            registered=registered,
            removed=removed,
            leaked=leaked,
            live=len(live),
            live_of_user=len(live) - live.count("engine"),
            foreign=foreign,
        )

    def _too_many(self) -> bool:
        events = sum(len(run.ledger.events) for run in self._kept)
        return len(self._kept) > self._most_runs or events > self._most_events


def note(title: str, ledger: HookLedger) -> None:
    """Keep a run for the lifecycle page: called once, where its result was computed.

    The ledger of a run that goes on is read live, so one call is enough for it too.
    """
    _of_session().add(title, state.page(), ledger)


def all_runs() -> tuple[Run, ...]:
    """The runs of this session that are kept, oldest first."""
    return _of_session().all()


def totals() -> Totals:
    """Counts over all runs of this session."""
    return _of_session().totals()


def _of_session() -> Runs:
    runs: Runs = st.session_state.setdefault(_KEY, Runs())
    return runs


def _live(ledger: HookLedger) -> list[HookRecord]:
    return [record for record in ledger.records if record.removed_at is None]


def _counts(ledger: HookLedger) -> list[int]:
    summary = ledger.summary()
    leaked = sum(record.status == "leaked" for record in ledger.records)
    return [summary["registered"], summary["removed"], leaked, summary["foreign"]]
