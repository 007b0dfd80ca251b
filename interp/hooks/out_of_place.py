"""Makes in-place operations harmless while hooks are on.

Two things go wrong when a network writes over the output of a hooked module: a stored feature map
is overwritten, and a full backward hook raises, because the tensor it hands on is a view that
autograd forbids to change. `OutOfPlace` redirects such a write to a fresh copy of the tensor, and
from then on every operation of the network that names the old tensor, or a view of it, is given
the copy. What the network computes is unchanged bit for bit, and what a hook kept stays as it was.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

_IN_PLACE_OPERATORS = (
    "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift div".split()  # noqa: SIM905
)
_IN_PLACE_DUNDERS = {"__setitem__"} | {f"__i{name}__" for name in _IN_PLACE_OPERATORS}
_NOT_A_WRITE = frozenset({"requires_grad_", "rename_", "share_memory_", "detach_"})
_MODULE_CALL: CodeType = nn.Module._call_impl.__code__


@dataclass(frozen=True, slots=True)
class _Moved:
    """A storage that was written to: its geometry then, and the tensor that took its place."""

    storage: StorageWeakRef
    geometry: tuple[Any, ...]
    tensor: Tensor


class OutOfPlace(TorchFunctionMode):
    """A mode, local to its thread, in which protected tensors are never written to.

    Protected is what `keep` was told, and whatever autograd already follows. Everything else is
    changed in place as the network asks, so that a pass costs nothing before the first hook.

    Parameters
    ----------
    callback : CodeType
        Code of the function that calls a user's hook. A hook sees the tensors it is given and
        those it kept as they were, so nothing is redirected inside it.
    """

    def __init__(self, callback: CodeType) -> None:
        super().__init__()
        self._callback = callback
        self._kept: dict[int, StorageWeakRef] = {}
        self._moved: dict[int, _Moved] = {}
        self._cut_from = WeakTensorKeyDictionary()

    def keep(self, value: Any) -> None:
        """Protect the memory of every tensor in `value` (nested tuples, lists and dicts)."""
        for tensor in tensors_in(value):
            storage = tensor.untyped_storage()
            self._kept[storage._cdata] = StorageWeakRef(storage)

    def is_stale(self, value: Any) -> bool:
        """Whether a tensor in `value` was written to, so that a copy now stands for it."""
        return bool(self._moved) and any(
            tensor.untyped_storage()._cdata in self._moved for tensor in tensors_in(value)
        )

    def forget(self) -> None:
        """Let go of every tensor: the pass is over."""
        self._kept.clear()
        self._moved.clear()
        self._cut_from.clear()

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") == "__get__":  # shape, grad_fn, …: reads no value
            return func(*args, **kwargs)
        args = tuple(_as_before_the_hook(arg) for arg in args)
        if self._moved and self.is_stale((args, kwargs)) and self._called_by_the_network():
            args, kwargs = self._current(args), self._current(kwargs)
        target = _written(func, args, kwargs)
        if target is not None and self._is_protected(target):
            return self._redirect(func, target, args, kwargs)
        result = func(*args, **kwargs)
        self._remember_source(args, result)
        return result

    def _is_protected(self, target: Tensor) -> bool:
        if target.requires_grad and torch.is_grad_enabled():
            return True
        return target.untyped_storage()._cdata in self._kept

    def _redirect(
        self, func: Callable[..., Any], target: Tensor, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        storage = target.untyped_storage()
        if kwargs.get("inplace"):
            twin = func(*args, **{**kwargs, "inplace": False})
            if twin.untyped_storage()._cdata == storage._cdata:  # dropout in eval: nothing written
                return twin
            if _covers(target) and twin.stride() == target.stride():
                self._move(target, twin)
                return twin
        source = target
        while not _covers(source) and source in self._cut_from:
            source = self._cut_from[source]
        if not _covers(source) and source._base is not None:
            source = source._base
        self._move(source, _twin(source))
        return func(*self._current(args), **self._current(kwargs))

    def _move(self, old: Tensor, new: Tensor) -> None:
        for key in [key for key, moved in self._moved.items() if moved.storage.expired()]:
            del self._moved[key]
        storage = old.untyped_storage()
        geometry = (old.size(), old.stride(), old.storage_offset())
        self._moved[storage._cdata] = _Moved(StorageWeakRef(storage), geometry, new)

    def _current(self, value: Any) -> Any:
        """`value` with every tensor that was written to replaced by what it is now."""
        if isinstance(value, Tensor):
            moved = self._moved.get(value.untyped_storage()._cdata)
            if moved is None:
                return value
            size, stride, offset = moved.geometry
            if (value.size(), value.stride(), value.storage_offset()) == (size, stride, offset):
                return self._current(moved.tensor)
            shift = value.storage_offset() - offset + moved.tensor.storage_offset()
            return self._current(moved.tensor.as_strided(value.size(), value.stride(), shift))
        if type(value) in (tuple, list):
            return type(value)(self._current(item) for item in value)
        if type(value) is dict:
            return {key: self._current(item) for key, item in value.items()}
        return value

    def _called_by_the_network(self) -> bool:
        """Whether a module's own code asks, and not a hook or the code around the pass."""
        frame = sys._getframe(2)
        while frame is not None:
            if frame.f_code is self._callback:
                return False
            if frame.f_code is _MODULE_CALL:
                return True
            frame = frame.f_back  # type: ignore[assignment]
        return False

    def _remember_source(self, args: tuple[Any, ...], result: Any) -> None:
        """Keep what a view was cut from, so that a write to the view reaches all of it."""
        source = args[0] if args else None
        if not (isinstance(source, Tensor) and source.requires_grad):
            return
        for part in result if type(result) in (tuple, list) else (result,):
            if isinstance(part, Tensor) and part._is_view() and not _covers(part):
                self._cut_from[part] = source


def tensors_in(value: Any) -> list[Tensor]:
    """Every tensor in nested tuples, lists, dicts and dataclass-like mappings, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []


def _written(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Tensor | None:
    """The tensor that `func` is about to change in place, or None."""
    name = getattr(func, "__name__", "")
    in_place = (
        bool(kwargs.get("inplace"))
        or name in _IN_PLACE_DUNDERS
        or (name.endswith("_") and not name.endswith("__") and name not in _NOT_A_WRITE)
    )
    target = args[0] if args else kwargs.get("input")
    return target if in_place and isinstance(target, Tensor) else None


def _as_before_the_hook(value: Any) -> Any:
    """`value` with the strides that a channels-last tensor of one picture had before its hook.

    The view that a full backward hook hands on has another stride in the first dimension, which
    names no memory but makes a convolution take another kernel: the last bits of the logits would
    depend on whether somebody watches.
    """
    if type(value) is list:
        return [_as_before_the_hook(item) for item in value]
    if not (isinstance(value, Tensor) and value.dim() == 4 and value.size(0) == 1):
        return value
    numel, (_, channels, _, width) = value.numel(), value.shape
    if value.stride(0) == numel or value.stride()[1:] != (1, width * channels, channels):
        return value
    if value.grad_fn is None or value.grad_fn.name() != "BackwardHookFunctionBackward":
        return value
    rows = value.permute(0, 2, 3, 1)
    return rows.view(rows.shape).permute(0, 3, 1, 2)


def _twin(tensor: Tensor) -> Tensor:
    """A copy that autograd follows, with the very strides of the original.

    A plain clone may give a dimension of size one another stride, and a convolution then takes
    another kernel, which shows in the last bits of the logits.
    """
    twin = tensor.clone()
    if twin.stride() == tensor.stride():
        return twin
    return torch.empty_strided(
        tensor.size(), tensor.stride(), dtype=tensor.dtype, device=tensor.device
    ).copy_(tensor)


def _covers(tensor: Tensor) -> bool:
    """Whether the tensor names every element of its memory, so that a clone replaces all of it."""
    return tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()
