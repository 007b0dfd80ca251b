"""A user's hook as PyTorch calls it, and what the ledger notes of each call."""

import time
from collections.abc import Callable
from typing import Any

from torch import Tensor

from interp.hooks.ledger import HookLedger, HookRecord
from interp.hooks.out_of_place import OutOfPlace, tensors_in


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
        record, began = self.record, time.perf_counter()
        forward = record.kind in ("forward_pre", "forward")
        if forward:
            self.guard.keep(given[1:])
        value = given[-1] if record.kind != "forward_pre" else given[1:]
        self.ledger.fired(record, shapes_of(value))
        arguments = given[:2] + given[3:] if forward and not self.with_kwargs else given
        try:
            result = self.fn(*arguments)
        except BaseException as error:
            self.ledger.error(record, error)
            raise
        finally:
            record.seconds += time.perf_counter() - began
        if result is None:
            return None
        self.ledger.changed(record, shapes_of(result))
        if record.kind == "forward_pre" and not self.with_kwargs:
            return (result if isinstance(result, tuple) else (result,)), given[2]
        return result


def shape_of(tensor: Tensor) -> str:
    """«1×512×7×7»; «scalar» for a tensor without dimensions."""
    return "×".join(map(str, tensor.shape)) or "scalar"


def shapes_of(value: Any) -> tuple[str, ...]:
    return tuple(shape_of(tensor) for tensor in tensors_in(value))
