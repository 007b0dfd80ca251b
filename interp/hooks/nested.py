"""The first tensor in what a module is given or returns, and the same value with another one."""

import copy
from typing import Any

from torch import Tensor

from interp.hooks.writes import tensors_in


def first_tensor(value: Any) -> Tensor | None:
    """The first tensor in nested tuples, lists and dicts; None where there is none."""
    return next(iter(tensors_in(value)), None)


def with_first(value: Any, new: Tensor) -> Any:
    """`value` with its first tensor replaced: the same classes, everything else as it was."""
    if isinstance(value, Tensor):
        return new
    if isinstance(value, dict):
        key = next(key for key, item in value.items() if tensors_in(item))
        same = copy.copy(value)
        same[key] = with_first(value[key], new)
        return same
    place = next(place for place, item in enumerate(value) if tensors_in(item))
    items = [*value[:place], with_first(value[place], new), *value[place + 1 :]]
    kind = type(value)
    return kind(*items) if hasattr(kind, "_fields") else kind(items)
