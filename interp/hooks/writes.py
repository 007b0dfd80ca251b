"""Which tensor an operation is about to write to, and a copy it can write to instead."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_IN_PLACE_OPERATORS = (
    "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift div".split()  # noqa: SIM905
)
_IN_PLACE_DUNDERS = {"__setitem__"} | {f"__i{name}__" for name in _IN_PLACE_OPERATORS}
_NOT_A_WRITE = frozenset({"requires_grad_", "rename_", "share_memory_", "detach_"})

# Operations that take one kernel or another by the strides of their input, or cut it up.
READS_LAYOUT = {"conv2d", "conv_transpose2d", "batch_norm", "instance_norm", "group_norm"} | {
    *("max_pool2d", "avg_pool2d", "adaptive_max_pool2d", "adaptive_avg_pool2d"),
    *("interpolate", "pixel_shuffle", "linear", "cat", "concat", "stack"),
    *("chunk", "split", "narrow", "__getitem__"),
}

Place = int | str


def written(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Place | None:
    """Where among the arguments of a call the tensor stands that it changes in place."""
    name = getattr(func, "__name__", "")
    in_place = (
        bool(kwargs.get("inplace"))
        or name in _IN_PLACE_DUNDERS
        or (name.endswith("_") and not name.endswith("__") and name not in _NOT_A_WRITE)
    )
    place: Place = (0 if args else "input") if in_place else "out"
    if place != 0 and place not in kwargs:
        return None
    return place if isinstance(at(place, args, kwargs), Tensor) else None


def at(place: Place, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The argument at a place."""
    return kwargs[place] if isinstance(place, str) else args[place]


def put(
    value: Tensor, place: Place, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with another one at that place."""
    if isinstance(place, str):
        return args, {**kwargs, place: value}
    return (*args[:place], value, *args[place + 1 :]), kwargs


def storage_of(tensor: Tensor) -> int:
    """What tells one piece of memory from another while either is alive."""
    return tensor.untyped_storage()._cdata


def covers(tensor: Tensor) -> bool:
    """Whether the tensor names every element of its memory, so that a clone replaces all of it."""
    return tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()


def twin(tensor: Tensor) -> Tensor:
    """A copy with the very strides of the original, which autograd follows where it did that."""
    with torch.set_grad_enabled(torch.is_grad_enabled() or tensor.requires_grad):
        return with_strides(tensor.clone(), tensor)


def with_strides(tensor: Tensor, like: Tensor) -> Tensor:
    """The tensor with the strides of another of its size.

    A plain clone may give a dimension of size one another stride, and a convolution then takes
    another kernel, which shows in the last bits of the logits.
    """
    if tensor.stride() == like.stride():
        return tensor
    same = torch.empty_strided(like.size(), like.stride(), dtype=tensor.dtype, device=tensor.device)
    return same.copy_(tensor)


def part_of(whole: Tensor, part: Tensor, offset: Any) -> Tensor:
    """The part of `whole` that lies where `part` lies in memory of which `offset` is the start."""
    start = part.storage_offset() - offset + whole.storage_offset()
    return whole.as_strided(part.size(), part.stride(), start)


def all_of_memory(tensor: Tensor) -> Tensor:
    """What a tensor that autograd does not follow is a part of, as one long tensor."""
    whole = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return whole.set_(tensor.untyped_storage())


def as_before_the_hook(value: Any) -> Any:
    """`value` with the strides that a channels-last tensor of one picture had before its hook.

    The view that a full backward hook hands on has another stride in the first dimension, which
    names no memory but makes a convolution take another kernel: the last bits of the logits would
    depend on whether somebody watches.
    """
    if type(value) in (tuple, list):
        return [as_before_the_hook(item) for item in value]
    if not (isinstance(value, Tensor) and value.requires_grad and value.dim() == 4):
        return value
    (pictures, channels, _, width), strides = value.shape, value.stride()
    if pictures != 1 or strides[0] == value.numel():
        return value
    if strides[1:] != (1, width * channels, channels):
        return value
    rows = value.permute(0, 2, 3, 1)
    return rows.view(rows.shape).permute(0, 3, 1, 2)


def tensors_in(value: Any) -> list[Tensor]:
    """Every tensor in nested tuples, lists, dicts and dataclass-like mappings, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []
