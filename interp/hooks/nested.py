"""Tensors in what a module is given or returns, and the same value with others in their place."""

import copy
from collections.abc import Callable
from typing import Any

from torch import Tensor

from interp.hooks.writes import tensors_in


def first_tensor(value: Any) -> Tensor | None:
    """The first tensor in nested tuples, lists and dicts; None where there is none."""
    return next(iter(tensors_in(value)), None)


def with_first(value: Any, new: Tensor) -> Any:
    """`value` with its first tensor replaced: the same classes, everything else as it was."""
    first = first_tensor(value)
    rest = iter([new])
    return map_tensors(value, lambda tensor: next(rest, tensor) if tensor is first else tensor)


def map_tensors(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """`value` with `change` made to each tensor; the very same object where none is another.

    To each that `tensors_in` finds.
    """
    if isinstance(value, Tensor):
        return value if value.is_nested else change(value)
    if isinstance(value, dict):
        new = {key: map_tensors(item, change) for key, item in value.items()}
        if all(new[key] is item for key, item in value.items()):
            return value
        same = copy.copy(value)
        for key, item in new.items():
            same[key] = item
        return same
    if not isinstance(value, tuple | list):
        return value
    items = [map_tensors(item, change) for item in value]
    if all(new is old for new, old in zip(items, value, strict=True)):
        return value
    kind = type(value)
    return kind(*items) if hasattr(kind, "_fields") else kind(items)
