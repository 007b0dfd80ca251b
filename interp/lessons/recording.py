"""Gives the ledger a record of every hook that a lesson's code registers with PyTorch itself."""

import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from interp.hooks.callback import Callback, shapes_of
from interp.hooks.handle import HookHandle
from interp.hooks.ledger import HookLedger, HookRecord, Kind
from interp.hooks.writes import tensors_in

_METHODS: dict[tuple[type, str], Kind] = {
    (nn.Module, "register_forward_pre_hook"): "forward_pre",
    (nn.Module, "register_forward_hook"): "forward",
    (nn.Module, "register_full_backward_pre_hook"): "full_backward_pre",
    (nn.Module, "register_full_backward_hook"): "full_backward",
    (Tensor, "register_hook"): "tensor",
}
_originals = {(owner, name): getattr(owner, name) for owner, name in _METHODS}
_lock = threading.Lock()
_blocks = 0
_here = threading.local()


class RecordedHook:
    """A hook as PyTorch calls it, timed and counted; unlike `Callback` it changes nothing else."""

    def __init__(self, fn: Callable[..., Any], record: HookRecord, ledger: HookLedger) -> None:
        self.fn, self.record, self.ledger = fn, record, ledger
        self.__qualname__ = getattr(fn, "__qualname__", type(fn).__qualname__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Callable[..., Any]:
        return self.fn  # nobody registered the copy of a hook: it has no record

    def __call__(self, *given: Any) -> Any:
        value, tensors = given[-1], list(tensors_in(given))
        versions = [tensor._version for tensor in tensors]
        self.ledger.fired(self.record, shapes_of(value))
        began = time.perf_counter()
        try:
            result = self.fn(*given)
        except BaseException as error:
            self.ledger.error(self.record, error)
            raise
        finally:
            self.record.seconds += time.perf_counter() - began
        if result is not None:
            self.ledger.changed(self.record, shapes_of(result))
        elif versions != [tensor._version for tensor in tensors]:
            self.ledger.changed(self.record, shapes_of(value))
        return result


class Recorder:
    """What one block of `recorded` saw.

    Attributes
    ----------
    ledger : HookLedger
    lines : dict of int to Kind
        Lines of the source file that registered a hook, and of which kind.
    """

    def __init__(self, ledger: HookLedger, source: str) -> None:
        self.ledger, self.source = ledger, source
        self.lines: dict[int, Kind] = {}
        self.paused = False
        self._handles: list[HookHandle] = []

    def register(
        self, kind: Kind, register: Callable[..., Any], owner: Any, hook: Any, **options: Any
    ) -> Any:
        """Register a hook as asked, with a record if the lesson's own code asked for it."""
        frame = self._lesson_frame(sys._getframe(2))
        if frame is None:
            return register(owner, hook, **options)
        self.lines[frame.f_lineno] = kind
        if self.paused or isinstance(hook, Callback | RecordedHook):  # it has its record
            return register(owner, hook, **options)
        name = name_of(owner, self._variables(frame))
        record = self.ledger.register(kind, name, type(owner).__name__, "", "lesson")
        hook = RecordedHook(hook, record, self.ledger)
        handle: RemovableHandle = register(owner, hook, **options)
        self._handles.append(HookHandle(record, _twin(handle), self.ledger))
        vars(handle)["remove"] = self._handles[-1].remove
        return handle

    def settle(self) -> None:
        """Take off what the code left on, which its record then calls leaked."""
        for handle in self._handles:
            if handle.record.removed_at is None:
                handle.record.status = "leaked"
            handle.settle()
        self._handles.clear()

    def _lesson_frame(self, frame: FrameType | None) -> FrameType | None:
        """The lesson's frame that registers, directly or through a `HookSession`."""
        while frame is not None and frame.f_code.co_filename != self.source:
            if not frame.f_globals.get("__name__", "").startswith(("interp.hooks", "torch")):
                return None
            frame = frame.f_back
        return frame

    def _variables(self, frame: FrameType | None) -> dict[str, Any]:
        """Variables of the lesson's function and of what it has called, its own first."""
        found: dict[str, Any] = {}
        while frame is not None and frame.f_code.co_filename == self.source:
            found = {**frame.f_locals, **found}
            frame = frame.f_back
        return found


def name_of(owner: Tensor | nn.Module, variables: dict[str, Any]) -> str:
    """What a lesson's code calls a tensor or module: «h», «net.0», «linear.weight».

    Empty where none of the variables leads to it.
    """
    for name, value in variables.items():
        if value is owner:
            return name
        if isinstance(value, nn.Module):
            inside = [*value.named_modules(), *value.named_parameters()]
            for path, part in inside:
                if part is owner:
                    return f"{name}.{path}"
    return ""


@contextmanager
def recorded(ledger: HookLedger, source: str) -> Iterator[Recorder]:
    """Record the hooks that the code of one source file registers in this block, on this thread.

    PyTorch's registration methods are replaced while any block is open. What registers elsewhere,
    or on another thread, reaches the originals unchanged.

    Parameters
    ----------
    ledger : HookLedger
    source : str
        Path of the file, as its code objects name it.
    """
    before = getattr(_here, "recorder", None)
    recorder = Recorder(ledger, source)
    _open()
    _here.recorder = recorder
    try:
        yield recorder
    except BaseException as error:
        ledger.fail(error)
        raise
    finally:
        _here.recorder = before
        _close()
        recorder.settle()


@contextmanager
def unrecorded() -> Iterator[None]:
    """Register hooks without records in this block: to measure what a hook of PyTorch costs."""
    recorder: Recorder | None = getattr(_here, "recorder", None)
    if recorder is None:
        yield
        return
    recorder.paused = True
    try:
        yield
    finally:
        recorder.paused = False


def _open() -> None:
    global _blocks
    with _lock:
        _blocks += 1
        if _blocks == 1:
            for (owner, name), kind in _METHODS.items():
                setattr(owner, name, _noting(kind, _originals[owner, name]))


def _close() -> None:
    global _blocks
    with _lock:
        _blocks -= 1
        if _blocks == 0:
            for (owner, name), original in _originals.items():
                setattr(owner, name, original)


def _noting(kind: Kind, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def register(owner: Any, hook: Any, **options: Any) -> Any:
        recorder: Recorder | None = getattr(_here, "recorder", None)
        if recorder is None:
            return original(owner, hook, **options)
        return recorder.register(kind, original, owner, hook, **options)

    return register


def _twin(handle: RemovableHandle) -> RemovableHandle:
    """A second handle of the same hook, whose `remove` stays PyTorch's own."""
    twin = RemovableHandle.__new__(RemovableHandle)
    vars(twin).update(vars(handle))
    return twin
