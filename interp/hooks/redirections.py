"""Which tensor stands for another one that was written to."""

import copy
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.weak import WeakTensorKeyDictionary

from interp.hooks.writes import all_of_memory, covers, part_of, storage_of


@dataclass(slots=True)
class _Moved:
    """A piece of memory that was written to: a tensor over it, and what took its place.

    `by_hook` says that a hook wrote, not the network; `copied` that the memory is itself the new
    value, of which the tensor in its place is a part.
    """

    storage: StorageWeakRef
    size: Any
    stride: Any
    offset: Any
    tensor: Tensor
    by_hook: bool
    copied: bool


class Redirections:
    """From memory that was to be written to, to the copy that was written to instead."""

    def __init__(self) -> None:
        self.entries: dict[int, _Moved] = {}
        self._cut_from = WeakTensorKeyDictionary()

    def has_any(self, value: Any) -> bool:
        """Whether a tensor in `value` was written to, so that another one stands for it."""
        if isinstance(value, Tensor):
            return value.untyped_storage()._cdata in self.entries
        if isinstance(value, dict):
            value = value.values()
        elif not isinstance(value, tuple | list):
            return False
        for item in value:  # asked of every operation: no call for what holds no tensor
            if isinstance(item, Tensor | tuple | list | dict) and self.has_any(item):
                return True
        return False

    def add(self, old: Tensor, new: Tensor, by_hook: bool, *, copied: bool = False) -> None:
        """Let `new` stand for `old` and for every view of it."""
        for key in [key for key, moved in self.entries.items() if moved.storage.expired()]:
            del self.entries[key]
        self.entries[storage_of(old)] = _Moved(
            StorageWeakRef(old.untyped_storage()),
            old.size(),
            old.stride(),
            old.storage_offset(),
            new,
            by_hook,
            copied,
        )

    def drop(self, tensor: Tensor) -> None:
        """Nothing stands for this tensor any more."""
        self.entries.pop(storage_of(tensor), None)

    def clear(self) -> None:
        self.entries.clear()
        self._cut_from.clear()

    def current(self, value: Any, *, by_hook: bool = False, copies: bool = True) -> Any:
        """`value` with every tensor that was written to replaced by what it is now.

        Parameters
        ----------
        value : tensors in nested tuples, lists and dicts.
        by_hook : only what hooks wrote.
        copies : without it, a tensor that itself holds the new value stays.
        """
        if isinstance(value, Tensor):
            return self._current(value, by_hook, copies)
        if isinstance(value, dict):
            new = copy.copy(value)
            for key, item in value.items():
                new[key] = self.current(item, by_hook=by_hook, copies=copies)
            return new
        if isinstance(value, tuple | list):
            items = [self.current(item, by_hook=by_hook, copies=copies) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        return value

    def _current(self, tensor: Tensor, by_hook: bool, copies: bool) -> Tensor:
        moved = self.entries.get(storage_of(tensor))
        if moved is None or (by_hook and not moved.by_hook):
            return tensor
        if moved.copied and not copies and storage_of(moved.tensor) not in self.entries:
            return tensor
        new, place = moved.tensor, (tensor.size(), tensor.stride(), tensor.storage_offset())
        if place != (moved.size, moved.stride, moved.offset):
            new = part_of(new, tensor, moved.offset)
            self._cut_from[new] = moved.tensor
        return self._current(new, by_hook, copies)

    def cut(self, part: Tensor, source: Tensor) -> None:
        """Remember what a view was cut from, or detached from."""
        self._cut_from[part] = source

    def is_followed(self, tensor: Tensor) -> bool:
        """Whether autograd follows the tensor, or the one that it was cut or detached from."""
        return tensor.requires_grad or tensor in self._cut_from

    def source(self, part: Tensor) -> Tensor:
        """The tensor over all of the memory that `part` names some of, the one autograd follows."""
        source = part
        while source in self._cut_from:
            source = self._cut_from[source]
        if not covers(source) and source._base is not None:
            source = source._base
        if not covers(source) and not source.requires_grad:
            source = all_of_memory(source)
        return source

    def copy_in(self, tensor: Tensor) -> Tensor | None:
        """The place that `tensor`, which was copied there, has in a larger one."""
        moved = self.entries.get(storage_of(tensor))
        return self._current(tensor, False, True) if moved is not None and moved.copied else None

    def put_behind(self, passed_on: Tensor) -> None:
        """Where the tensor that `passed_on` was made of stands for another, let this one do so."""
        node = passed_on.grad_fn
        if node is None:
            return
        behind = node.next_functions[passed_on.output_nr][0]
        for moved in self.entries.values():
            tensor = moved.tensor
            if storage_of(tensor) == storage_of(passed_on) and (
                tensor.grad_fn is behind or getattr(behind, "variable", None) is tensor
            ):
                moved.tensor = passed_on
