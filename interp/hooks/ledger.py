"""What happened to every hook: registered, fired, changed something, removed, and by whom."""

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from torch import nn

Kind = Literal["forward_pre", "forward", "full_backward_pre", "full_backward", "tensor"]
KINDS: tuple[Kind, ...] = (
    "forward_pre",
    "forward",
    "full_backward_pre",
    "full_backward",
    "tensor",
)
MAX_EVENTS = 5_000

_AUDITED = {
    "_forward_pre_hooks": "forward_pre",
    "_forward_hooks": "forward",
    "_backward_pre_hooks": "full_backward_pre",
    "_backward_hooks": "full_backward",
}


@dataclass(frozen=True)
class FoundHook:
    """A hook that stands on a module, whoever put it there.

    `path` is the module's path (empty for the root), `kind` one of `KINDS`, `key` the id PyTorch
    gave it and `name` what the callback calls itself.
    """

    path: str
    class_name: str
    kind: str
    key: int
    name: str


def audit(module: nn.Module) -> list[FoundHook]:
    """Walk a module tree and list every hook on it.

    Parameters
    ----------
    module : nn.Module
        It is only read.

    Returns
    -------
    list of FoundHook
        In the order of `named_modules`; empty where no hook stands.
    """
    return [found for found, _ in hooks_on(module)]


def hooks_on(module: nn.Module) -> Iterator[tuple[FoundHook, Any]]:
    """As `audit`, with each hook itself."""
    for path, part in module.named_modules():
        for attribute, kind in _AUDITED.items():
            hooks: dict[int, Any] = vars(part).get(attribute) or {}
            for key, callback in hooks.items():
                name = getattr(callback, "__qualname__", type(callback).__qualname__)
                yield FoundHook(path, type(part).__name__, kind, key, name), callback


@dataclass
class HookRecord:
    """One hook from its registration to its removal. Times are seconds since the ledger began.

    `returned` names what the module returned last where that was no tensor and no tuple with one
    in it («a dict»), which PyTorch's module backward hooks do not fire for.
    """

    id: int
    kind: Kind
    path: str
    class_name: str
    purpose: str
    origin: str
    registered_at: float
    removed_at: float | None = None
    fires: int = 0
    seconds: float = 0.0
    bytes_held: int = 0
    status: str = "live"
    returned: str = ""


@dataclass(frozen=True)
class HookEvent:
    """One thing that happened; `hook` is the id of the record it belongs to."""

    at: float
    what: Literal["registered", "fired", "changed", "removed", "error"]
    hook: int
    kind: Kind
    path: str
    call: int | None = None
    shapes: tuple[str, ...] = ()
    detail: str = ""


@dataclass
class HookLedger:
    """Every hook of one run, or of several that share the ledger.

    Only the newest `MAX_EVENTS` events are kept; `dropped_events` counts the others. Records are
    all kept.
    """

    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    failed: str | None = None
    foreign: tuple[FoundHook, ...] = ()
    dropped_events: int = 0
    _clock: float = field(default_factory=time.perf_counter, repr=False)
    _records: list[HookRecord] = field(default_factory=list, repr=False)
    _events: deque[HookEvent] = field(default_factory=lambda: deque(maxlen=MAX_EVENTS), repr=False)

    @property
    def records(self) -> tuple[HookRecord, ...]:
        return tuple(self._records)

    @property
    def events(self) -> tuple[HookEvent, ...]:
        return tuple(self._events)

    @property
    def began(self) -> float:
        """When the ledger began, on the clock of `time.perf_counter`."""
        return self._clock

    def now(self) -> float:
        """Seconds since the ledger began."""
        return time.perf_counter() - self._clock

    def register(
        self, kind: Kind, path: str, class_name: str, purpose: str, origin: str
    ) -> HookRecord:
        """Open the record of a hook that is being put on."""
        record = HookRecord(len(self._records), kind, path, class_name, purpose, origin, self.now())
        self._records.append(record)
        self._note(record, "registered", detail=purpose)
        return record

    def fired(self, record: HookRecord, shapes: tuple[str, ...]) -> None:
        """Count a fire; its call index is how often the hook had fired before."""
        self._note(record, "fired", call=record.fires, shapes=shapes)
        record.fires += 1
        if record.removed_at is None:  # whatever was expected of it
            record.status = "live"

    def changed(self, record: HookRecord, shapes: tuple[str, ...]) -> None:
        """The hook returned a value that replaces the one it was given."""
        self._note(record, "changed", call=record.fires - 1, shapes=shapes)

    def error(self, record: HookRecord, error: BaseException) -> None:
        """The hook itself raised."""
        self._note(record, "error", call=record.fires - 1, detail=describe(error))

    def removed(self, record: HookRecord) -> None:
        """The hook was taken off; a second call changes nothing."""
        if record.removed_at is None:
            record.removed_at = self.now()
            if record.status == "live":
                record.status = "removed"
            self._note(record, "removed")

    def fail(self, error: BaseException) -> None:
        """Mark the run as failed; the first reason stays."""
        self.failed = self.failed or describe(error)

    def summary(self) -> dict[str, int]:
        """Counts of hooks: `registered`, `removed`, `live` and `foreign`."""
        removed = sum(record.removed_at is not None for record in self._records)
        return {
            "registered": len(self._records),
            "removed": removed,
            "live": len(self._records) - removed,
            "foreign": len(self.foreign),
        }

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values for JSON."""
        return {
            "started": self.started,
            "seconds": self.now() if self.summary()["live"] else self._length(),
            "failed": self.failed,
            "summary": self.summary(),
            "records": [asdict(record) for record in self._records],
            "events": [asdict(event) for event in self._events],
            "dropped_events": self.dropped_events,
            "foreign": [asdict(hook) for hook in self.foreign],
        }

    def _length(self) -> float:
        return max((record.removed_at or 0.0 for record in self._records), default=0.0)

    def _note(self, record: HookRecord, what: Any, **more: Any) -> None:
        if len(self._events) == MAX_EVENTS:
            self.dropped_events += 1
        self._events.append(
            HookEvent(self.now(), what, record.id, record.kind, record.path, **more)
        )


def describe(error: BaseException) -> str:
    """An error in one line: its class and message."""
    return " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")
