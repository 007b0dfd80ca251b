"""A user's hook as PyTorch calls it, and what the ledger notes of each call."""

import time
from collections.abc import Callable
from typing import Any, Literal

from torch import Tensor

from interp.hooks.guard import InPlaceGuard
from interp.hooks.ledger import HookLedger, HookRecord
from interp.hooks.shown import Shown
from interp.hooks.unwatched import unwatched
from interp.hooks.writes import tensors_in

Keeps = Literal["all", "output", "nothing"]


class Callback:
    """A user's hook as PyTorch calls it: timed, counted, and with what it saw protected."""

    def __init__(
        self,
        fn: Callable[..., Any],
        record: HookRecord,
        ledger: HookLedger,
        guard: InPlaceGuard,
        *,
        with_kwargs: bool = False,
        keeps: Keeps = "all",
    ) -> None:
        self.fn, self.record, self.ledger, self.guard = fn, record, ledger, guard
        self.with_kwargs, self._keeps = with_kwargs, keeps
        self.__qualname__ = getattr(fn, "__qualname__", type(fn).__qualname__)

    def __call__(self, *given: Any) -> Any:
        if self.record.removed_at is not None:  # PyTorch still calls it for a graph made before
            return None
        return self._unwatched(*given) if self.record.origin == "engine" else self._fire(*given)

    @unwatched
    def _unwatched(self, *given: Any) -> Any:
        """The engine's own hooks do nothing that the guard would have to look at."""
        return self._fire(*given)

    def _fire(self, *given: Any) -> Any:
        if self.record.kind == "forward_pre":
            return self._before(*given)
        if self.record.kind == "forward":
            return self._after(*given)
        result = self._call(given[-1], *given)
        if result is not None:
            self.ledger.changed(self.record, shapes_of(result))
        return result

    def _before(self, module: Any, args: Any, kwargs: Any) -> Any:
        with self._shown((args, kwargs)) as seen:
            value = seen.value
            result = self._call(value, module, *(value if self.with_kwargs else value[:1]))
            if result is not None and not self.with_kwargs:
                result = (result if isinstance(result, tuple) else (result,)), value[1]
            return self._settled(seen, result)

    def _after(self, module: Any, args: Any, kwargs: Any, output: Any) -> Any:
        self.record.returned = no_tensor(output)
        beside = Shown(self.guard, (args, kwargs), own=self._keeps == "all")
        with beside, self._shown(output) as seen:
            between = beside.value if self.with_kwargs else beside.value[:1]
            result = self._call(seen.value, module, *between, seen.value)
            return self._settled(seen, result)

    def _shown(self, value: Any) -> Shown:
        return Shown(self.guard, value, own=self._keeps != "nothing")

    def _settled(self, seen: Shown, result: Any) -> Any:
        """What PyTorch is to go on with; None for what it has."""
        if result is not None or seen.was_changed():
            self.ledger.changed(self.record, shapes_of(seen.value if result is None else result))
        return seen.handed_on(result)

    def _call(self, value: Any, *arguments: Any) -> Any:
        record, began = self.record, time.perf_counter()
        self.ledger.fired(record, shapes_of(value))
        try:
            return self.fn(*arguments)
        except BaseException as error:
            self.ledger.error(record, error)
            raise
        finally:
            record.seconds += time.perf_counter() - began


def shape_of(tensor: Tensor) -> str:
    """«1×512×7×7»; «scalar» for a tensor without dimensions."""
    return "×".join(map(str, tensor.shape)) or "scalar"


def no_tensor(value: Any) -> str:
    """What a module returned where no module backward hook can fire for it: «a dict»; else ''."""
    if isinstance(value, Tensor):
        return ""
    if not isinstance(value, tuple):
        return "None" if value is None else f"a {type(value).__name__}"
    return "" if any(isinstance(part, Tensor) for part in value) else "a tuple without a tensor"


def shapes_of(value: Any) -> tuple[str, ...]:
    return tuple(shape_of(tensor) for tensor in tensors_in(value))
