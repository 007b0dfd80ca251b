"""What is done with tensors beside a pass, and how autograd is to keep and to cut them."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from interp.hooks.writes import twin

P = ParamSpec("P")
R = TypeVar("R")


def unwatched(work: Callable[P, R]) -> Callable[P, R]:
    """What the guard itself does with tensors is nothing to be guarded."""

    @wraps(work)
    def done(*args: P.args, **kwargs: P.kwargs) -> R:
        with torch._C.DisableTorchFunction():
            return work(*args, **kwargs)

    return done


def keeping_saved() -> AbstractContextManager[Any]:
    """While an operation runs, what autograd keeps for backward is kept as it is now.

    No later write of the network changes it. Inside a transform of `torch.func`, which allows no
    such thing, PyTorch's own way stays.
    """
    allowed = torch._C._autograd._saved_tensors_hooks_is_enabled()  # type: ignore[attr-defined]
    if not (allowed and torch.is_grad_enabled()):
        return nullcontext()
    return saved_tensors_hooks(_as_saved, _as_saved_then)


@unwatched
def _as_saved(tensor: Tensor) -> Tensor:
    return tensor if type(tensor) is nn.Parameter else twin(tensor.detach())


def _as_saved_then(tensor: Tensor) -> Tensor:
    return tensor


def one_by_one(source: Tensor, parts: Any) -> Any:
    """The parts of a tensor as views of their own.

    Autograd refuses to write to one of several views made together, which a network may do where
    nobody asks for gradients.
    """
    views = [
        source.as_strided(part.size(), part.stride(), part.storage_offset())
        if part._is_view() and not source.is_nested
        else part
        for part in parts
    ]
    return tuple(views) if isinstance(parts, tuple) else type(parts)(views)
