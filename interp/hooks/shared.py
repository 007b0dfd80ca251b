"""The parameters that a session's copy shares with the caller's network: no run writes to them."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from interp.errors import HookError
from interp.hooks.writes import storage_of
from interp.models.twins import is_plain_memory, lazy_clone


@dataclass
class _Before:
    """A parameter before a run: its memory, and its values in a twin that copies on write."""

    memory: Tensor
    values: Tensor
    version: int


class SharedParameters:
    """Stands around the calls of a copy and refuses writes to parameters that it shares.

    What a run has written is undone before that is refused. A twin of each parameter, taken when
    the call begins, tells it also where a write counts no version (`.data`): the memory is written
    to in place only after the two have been parted.

    Parameters
    ----------
    module : nn.Module
        A private copy of the caller's network, before anything else stands around its calls.
    """

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._shared = [
            (name, one)
            for name, one in module.named_parameters()
            if one.requires_grad and not one.is_meta
        ]
        self._call = module._call_impl
        if self._shared:
            vars(module)["_call_impl"] = self

    def remove(self) -> None:
        """Leave the copy as it was before."""
        if vars(self._module).get("_call_impl") is self:
            del vars(self._module)["_call_impl"]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        before = [_before(parameter) for _, parameter in self._shared]
        try:
            return self._call(*args, **kwargs)
        finally:
            pairs = zip(self._shared, before, strict=True)
            written = [name for (name, one), was in pairs if _undone(one, was)]
            if written:
                raise HookError(
                    f"this network writes to its parameter «{written[0]}» while it runs, which a "
                    "HookSession shares with the caller so that gradients arrive there: nothing "
                    "is written. Call requires_grad_(False) on it, and the session has its own"
                )


def _before(parameter: nn.Parameter) -> _Before:
    memory = parameter.data
    return _Before(memory, lazy_clone(memory), parameter._version)


def _undone(parameter: nn.Parameter, was: _Before) -> bool:
    """Whether a parameter was written to; it is then as it was before."""
    if not is_plain_memory(parameter):  # such as a sparse one, which shares no memory piecemeal
        if parameter._version == was.version:
            return False
        was.memory.copy_(was.values)
        return True
    is_parted = not torch._C._is_cow_tensor(parameter)  # type: ignore[attr-defined]
    untouched = not is_parted and parameter._version == was.version
    moved = storage_of(parameter) != storage_of(was.memory)
    if untouched and not moved:
        return False
    if not moved and _same(parameter.data, was.values):
        return False
    was.memory.copy_(was.values)
    parameter.data = was.memory
    return True


def _same(one: Tensor, other: Tensor) -> bool:
    both_nan = (one != one) & (other != other)
    return one.shape == other.shape and bool(((one == other) | both_nan).all())
