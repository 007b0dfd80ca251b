"""Tensors that autograd takes for different ones and that are one piece of memory."""

from dataclasses import dataclass
from typing import Any
from weakref import ref

import torch
from torch import Tensor
from torch.autograd import Function

from interp.errors import HookError


class Through(Function):
    """Tensors over the memory of others, with the gradient flowing to a third kind."""

    @staticmethod
    def forward(ctx: Any, memories: tuple[Tensor, ...], *paths: Tensor) -> tuple[Tensor, ...]:
        made = tuple(memory.detach() for memory in memories)
        pairs = zip(made, paths, strict=True)
        ctx.mark_non_differentiable(*[one for one, path in pairs if not path.requires_grad])
        return made

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return None, *gradients


class _Became(Function):
    """A tensor whose values are there already gets the history of another one."""

    @staticmethod
    def forward(ctx: Any, old: Tensor, new: Tensor, is_view: bool) -> Tensor:
        ctx.is_view = is_view
        ctx.mark_dirty(old)
        return old

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, None]:
        # Without a zero for its part of them a view's base would lose all of its gradients.
        return torch.zeros_like(gradient) if ctx.is_view else None, gradient, None


@dataclass(frozen=True)
class _State:
    """What a write or a change of shape in place makes another.

    `history` is a view's base's, of which its own is made anew each time.
    """

    history: Any
    place: tuple[Any, ...]

    @classmethod
    def of(cls, tensor: Tensor) -> "_State":
        history = (tensor if tensor._base is None else tensor._base).grad_fn
        if tensor.layout is not torch.strided:  # a sparse tensor lies nowhere in particular
            return cls(history, (tensor.size(),))
        return cls(history, (tensor.size(), tensor.stride(), tensor.storage_offset()))


class _Same:
    """Tensors that autograd takes for different ones and that are the same piece of memory.

    The first may be a view, which ties the others to its base: it is kept as long as they are.
    """

    def __init__(self, first: Tensor) -> None:
        self.members: list[tuple[ref[Tensor], _State]] = []
        self._view = first if first._is_view() else None
        self.add(first)

    def add(self, tensor: Tensor) -> None:
        self.members.append((ref(tensor), _State.of(tensor)))

    def alive(self) -> list[tuple[Tensor, _State]]:
        found = [(tensor, state) for own, state in self.members if (tensor := own()) is not None]
        self.members = [(ref(tensor), state) for tensor, state in found]
        return found

    def settle(self, *, views: bool) -> bool:
        """Give every member the history of the one that was written to; whether there was one.

        A view's history is made anew from its base's when it is asked for, which must be told
        first: without `views` no view is asked.
        """
        alive = self.alive()
        for writer, state in alive:
            if (views or not writer._is_view()) and _State.of(writer) != state:
                self.follow(writer)
                return True
        return False

    def follow(self, writer: Tensor) -> None:
        """Give every member the history of one."""
        members = [tensor for tensor, _ in self.alive()]
        self.members = []
        for tensor in members:
            if tensor is not writer:
                _follow(tensor, writer)
        for tensor in members:
            self.add(tensor)

    def meet(self) -> None:
        """One of them is to be written to: give it the history of the newest before."""
        alive = self.alive()
        if len(alive) > 1:
            self.follow(alive[-1][0])


def _follow(other: Tensor, writer: Tensor) -> None:
    with torch.enable_grad():
        if other.shape != writer.shape or other.stride() != writer.stride():
            other.as_strided_(writer.size(), writer.stride(), writer.storage_offset())
        if writer.requires_grad:
            _Became.apply(other, writer, other._is_view())
        else:
            other.detach_()


class Memory:
    """One storage that several tensors name, and its version when they last agreed."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.groups: list[_Same] = []

    def group_of(self, tensor: Tensor) -> _Same:
        for group in self.groups:
            if any(own() is tensor for own, _ in group.members):
                return group
        group = _Same(tensor)
        self.groups.append(group)
        return group

    def settle(self) -> None:
        """Let every group follow the one of its members that was written to.

        Raises
        ------
        HookError
            If that does not come to an end, which would be a wrong gradient.
        """
        for _ in range(2 * len(self.groups) + 2):
            if not self._next_follows():
                self.groups = [group for group in self.groups if len(group.alive()) > 1]
                return
        raise HookError(
            "this network writes to one tensor under several names in a way that cannot be "
            "followed: its gradients would be wrong, so they are not given"
        )

    def _next_follows(self) -> bool:
        """Whether there was a group with a member written to; it has been told."""
        return any(g.settle(views=False) for g in self.groups) or any(
            g.settle(views=True) for g in self.groups
        )
