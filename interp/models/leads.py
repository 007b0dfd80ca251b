"""What an object leads to: the modules and tensors behind closures, methods, weak references."""

import dis
import gc
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any

import torch
from torch import Tensor, nn

PLAIN = {
    *(int, float, str, bool, complex, bytes, type(None), type),
    *(torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format),
}
PROXIES = (weakref.ProxyType, weakref.CallableProxyType)
_ENDS = (ModuleType, type, Tensor, nn.Module, CodeType, torch.Generator)
_KNOWN_CODE = ("torch.", "torchvision.")
_ENOUGH = 20_000  # objects: who holds more is a whole program, and no part of a network


class Globals(dict[str, Any]):
    """The globals of a function, with some in place of others."""

    def __init__(self, others: dict[str, Any]) -> None:
        super().__init__()
        self.others = others

    def __missing__(self, name: str) -> Any:
        return self.others[name]


def contents_of(cell: CellType) -> Any:
    """What a closure's cell holds; None where it is still empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def target_of(reference: Any) -> Any:
    """What a weak reference or proxy stands for; None where it is gone."""
    if isinstance(reference, weakref.ref):
        return reference()
    try:
        return reference.__repr__.__self__
    except ReferenceError:
        return None


def behind(value: Any) -> Iterator[Any]:
    """The value and whatever it leads to by contents, attributes, closures and references.

    It ends at modules, tensors and classes, which are told but not entered. Global names that a
    function uses are not followed (see `global_names`).
    """
    seen: set[int] = set()
    waiting = deque([value])
    while waiting and len(seen) < _ENOUGH:
        one = waiting.popleft()
        if type(one) in PLAIN or id(one) in seen:
            continue
        seen.add(id(one))
        if type(one) in PROXIES:  # which pass for what they stand for
            waiting.append(target_of(one))
            continue
        yield one
        if not isinstance(one, _ENDS):
            waiting.extend(_next(one))


def _next(value: Any) -> Iterable[Any]:
    kind = type(value)
    if kind is FunctionType:
        cells = [contents_of(cell) for cell in value.__closure__ or ()]
        kwdefaults = (value.__kwdefaults__ or {}).values()
        return [*cells, *(value.__defaults__ or ()), *kwdefaults, *vars(value).values()]
    if kind is MethodType:
        return value.__self__, value.__func__
    if kind in (BuiltinFunctionType, MethodWrapperType):
        return (value.__self__,)
    if isinstance(value, weakref.ref):
        return (target_of(value),)
    if kind is partial:
        return value.func, *value.args, *value.keywords.values()
    if isinstance(value, dict):
        return [*value.keys(), *value.values(), *getattr(value, "__dict__", {}).values()]
    return gc.get_referents(value)


def global_names(function: FunctionType) -> list[str]:
    """The globals that a function reads and that could lead anywhere, in its own code and inside.

    Those of PyTorch's own functions are none.
    """
    found: dict[str, None] = {}
    if not str(function.__module__).startswith(_KNOWN_CODE):
        for code in _codes(function.__code__):
            known = function.__globals__
            names = {n for n in code.co_names if n in known and _may_lead(known[n], known)}
            if names:
                read = (i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL")
                found.update((name, None) for name in read if name in names)
    return list(found)


def stores_globals(function: FunctionType) -> bool:
    """Whether a function assigns to a global name."""
    return any(
        step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")
        for code in _codes(function.__code__)
        for step in dis.get_instructions(code)
    )


def _may_lead(value: Any, known: dict[str, Any]) -> bool:
    if type(value) is FunctionType:
        return _file_of(value.__globals__) is _file_of(known)
    return type(value) not in PLAIN and not isinstance(
        value, ModuleType | type | BuiltinFunctionType
    )


def _file_of(names: dict[str, Any]) -> dict[str, Any]:
    while isinstance(names, Globals):
        names = names.others
    return names


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
