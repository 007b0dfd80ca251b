"""A user's hook as PyTorch calls it, and what the ledger notes of each call."""

import time
from collections.abc import Callable
from typing import Any

from torch import Tensor

from interp.hooks.ledger import HookLedger, HookRecord
from interp.hooks.out_of_place import OutOfPlace
from interp.hooks.writes import tensors_in


class Callback:
    """A user's hook as PyTorch calls it: timed, counted, and with what it saw protected."""

    def __init__(
        self,
        fn: Callable[..., Any],
        record: HookRecord,
        ledger: HookLedger,
        guard: OutOfPlace,
        with_kwargs: bool = False,
    ) -> None:
        self.fn, self.record, self.ledger, self.guard = fn, record, ledger, guard
        self.with_kwargs = with_kwargs
        self.__qualname__ = getattr(fn, "__qualname__", type(fn).__qualname__)

    def __call__(self, *given: Any) -> Any:
        if self.record.removed_at is not None:  # PyTorch still calls it for a graph made before
            return None
        if self.record.kind == "forward_pre":
            return self._before(*given)
        if self.record.kind == "forward":
            return self._after(*given)
        result = self._call(given[-1], *given)
        if result is not None:
            self.ledger.changed(self.record, shapes_of(result))
        return result

    def _before(self, module: Any, args: Any, kwargs: Any) -> Any:
        given = args, kwargs
        value = self.guard.current(given)
        self.guard.keep(value)
        result = self._call(value, module, *(value if self.with_kwargs else value[:1]))
        if result is None:
            return self._settled(given, value)
        self.ledger.changed(self.record, shapes_of(result))
        if self.with_kwargs:
            return result
        return (result if isinstance(result, tuple) else (result,)), value[1]

    def _after(self, module: Any, args: Any, kwargs: Any, output: Any) -> Any:
        value = self.guard.current(output, returned=True)
        self.record.returned = no_tensor(value)
        self.guard.keep((args, kwargs, value))
        between = (args, kwargs) if self.with_kwargs else (args,)
        result = self._call(value, module, *between, value)
        if result is None:
            return self._settled(output, value)
        self.ledger.changed(self.record, shapes_of(result))
        return result

    def _settled(self, given: Any, value: Any) -> Any:
        """What PyTorch is to go on with when the hook returned None; None for what it gave."""
        now = self.guard.current(value, returned=True)
        if now is not value:
            self.ledger.changed(self.record, shapes_of(now))
        return None if now is given else now

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
