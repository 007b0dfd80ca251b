"""Tensors as pieces of memory."""

from typing import Any

import torch
from torch import Tensor

_READS = frozenset({"__index__", "__int__", "__invert__", "__iter__"})
_NOT_A_WRITE = frozenset({"requires_grad_", "rename_", "share_memory_", "detach_"})
_COPIES_ON_WRITE = ("cpu", "cuda")


def storage_of(tensor: Tensor) -> int:
    """What tells one piece of memory from another while either is alive.

    A sparse tensor has none of its own: that of its values stands for it.
    """
    if tensor.layout is torch.sparse_coo:
        tensor = tensor._values()
    elif tensor.is_mkldnn:  # which nothing else can name
        return id(tensor)
    elif tensor.layout is not torch.strided and not tensor.is_nested:
        tensor = tensor.values()
    try:
        return tensor.untyped_storage()._cdata
    except NotImplementedError:  # what a transform such as `vmap` puts around a tensor
        return id(tensor)


def writes(name: str, kwargs: dict[str, Any]) -> bool:
    """Whether an operation says by its name, or by an argument's, that it writes in place."""
    if name.startswith("__"):
        return name == "__setitem__" or (name.startswith("__i") and name not in _READS)
    name = name.partition(".")[0]  # an overload of an operator: mul_.Scalar
    return (
        (name.endswith("_") and name not in _NOT_A_WRITE)
        or bool(kwargs.get("inplace"))
        or kwargs.get("out") is not None
    )


def twin(tensor: Tensor) -> Tensor:
    """A copy with the very strides of the original, which autograd follows where it did that.

    The memory is copied when one of the two is first written to, where PyTorch can do that.
    """
    if tensor.requires_grad and not torch.is_grad_enabled():
        with torch.enable_grad():
            return twin(tensor)
    later = copied_on_write(tensor)
    return with_strides(tensor.clone(), tensor) if later is None else later


def copied_on_write(tensor: Tensor) -> Tensor | None:
    """A copy that is made when one of the two is first written to; None where that cannot be."""
    if (
        tensor.device.type not in _COPIES_ON_WRITE
        or tensor.layout is not torch.strided
        or tensor.is_quantized
        or type(tensor) not in (Tensor, torch.nn.Parameter)
    ):
        return None
    try:
        return torch._lazy_clone(tensor)
    except RuntimeError:  # memory that somebody else owns, such as NumPy or another process
        return None


def with_strides(tensor: Tensor, like: Tensor) -> Tensor:
    """The tensor with the strides of another of its size.

    A plain clone may give a dimension of size one another stride, and a convolution then takes
    another kernel, which shows in the last bits of the logits.
    """
    is_plain = tensor.layout is torch.strided and not tensor.is_quantized
    if not is_plain or tensor.stride() == like.stride():
        return tensor
    same = torch.empty_strided(like.size(), like.stride(), dtype=tensor.dtype, device=tensor.device)
    return same.copy_(tensor)


def tensors_in(value: Any) -> list[Tensor]:
    """Every tensor in nested tuples, lists, dicts and dataclass-like mappings, in order.

    A tensor of several sizes («nested») is left out: it has no shape that could be told.
    """
    if isinstance(value, Tensor):
        return [] if value.is_nested else [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []
