"""Hooks on a network that writes in place: memory stays where it is, autograd's record is mended.

Two things go wrong when a network writes over a tensor that a hook was given: what the hook kept
is overwritten, and a full backward hook raises, since the tensor that PyTorch hands on is a view
that may not be written to. Here a hook is given a tensor of its own, copied only when the network
writes, and the network goes on with another over the network's own memory, behind it in the graph.
So no operation reads or writes anything else than it would without hooks: values are the same bit
for bit, whatever is a view of what. Only autograd can take two tensors over one memory for two
things. `InPlaceGuard` knows which these are, and when one was written to, the others get its
history before they are used again.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from interp.hooks.fence import Fence
from interp.hooks.memory import Memory, Through
from interp.hooks.unwatched import keeping_saved, one_by_one, unwatched
from interp.hooks.writes import storage_of, tensors_in, twin, writes

_SEVERAL_VIEWS = frozenset(
    "chunk split split_with_sizes tensor_split unbind hsplit vsplit dsplit __iter__".split()  # noqa: SIM905
)
_VIEW_PROPERTIES = frozenset("T mT H mH real imag data".split())  # noqa: SIM905


class InPlaceGuard(TorchFunctionMode):
    """While it is on, hooks and in-place operations of the network do not disturb each other.

    It is local to its thread. `fence` readies a module for full backward hooks, `own` is what a
    hook is given for a tensor of the network, and `handed_on` what the network goes on with.
    """

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0
        self._watch: Callable[[], Any] | None = None
        self._memories: dict[int, Memory] = {}
        self._seen: Any = WeakTensorKeyDictionary()
        self._first: Any = WeakTensorKeyDictionary()
        self._handed: Any = WeakTensorKeyDictionary()
        self._fences: dict[int, Fence] = {}
        self._calls: list[dict[int, int]] = []

    @property
    def on(self) -> bool:
        return self._depth > 0

    @contextmanager
    def during(self, *, late: bool = False) -> Iterator[None]:
        """Be on while a pass runs; what a pass left is let go of at its end.

        Parameters
        ----------
        late : bool
            Look at no operation before there are two names for one memory, and spare the cost of
            that: for networks that enter no modes of their own, which would be left in another
            order.
        """
        if self._depth:
            yield
            return
        with ExitStack() as watching:
            self._watch = partial(watching.enter_context, self)
            if not late:
                self._begin_to_watch()
            self._depth = 1
            try:
                yield
            finally:
                self._depth, self._watch = 0, None
                self.forget()

    def _begin_to_watch(self) -> None:
        if self._watch is not None:
            watch, self._watch = self._watch, None
            watch()

    def forget(self) -> None:
        """Let go of every tensor: the pass is over."""
        for kept in (self._memories, self._seen, self._first, self._handed, self._calls):
            kept.clear()

    def fence(self, module: nn.Module, *, own_input: bool = False) -> None:
        """Ready a module for full backward hooks; `own_input` keeps it off what it is given."""
        if id(module) not in self._fences:
            self._fences[id(module)] = Fence(module, self, own_input=own_input)

    def open(self) -> None:
        """Take every fence off again."""
        for fence in self._fences.values():
            fence.remove()
        self._fences.clear()

    # --- what hooks are given, and what the network goes on with ---

    @unwatched
    def own(self, tensor: Tensor) -> Tensor:
        """A tensor with the same values for a hook, which no write of the network changes."""
        self.settle(tensor)
        own = twin(tensor)
        before, version = self._handed.get(tensor, (None, None))
        if before is not None and version == tensor._version and not self.changed(before):
            self._first[own] = self.first(before)
        self._seen[own] = tensor.detach(), tensor._version, own._version
        return own

    @unwatched
    def changed(self, own: Tensor) -> bool:
        """Whether a hook has written to a tensor that it was given."""
        return own in self._seen and own._version != self._seen[own][2]

    @unwatched
    def handed_on(self, own: Tensor, tensor: Tensor) -> Tensor:
        """What the network goes on with after a hook was given `own` for `tensor`.

        A tensor over the same memory, behind the hook's in the graph. What the hook wrote is
        written there first.
        """
        if self.changed(own):
            self._meet(tensor)
            tensor.copy_(own)
            memory, *_ = self._seen[own]
            self._seen[own] = memory, memory._version, own._version
        elif own.requires_grad and torch.is_grad_enabled():
            (made,) = self.through((own,), (tensor,))
            self._handed[made] = own, made._version
            return made
        return tensor

    def first(self, own: Tensor) -> Tensor:
        """What the first of several hooks was given where another was given `own` for the same.

        And where the network wrote nothing between the two.

        Hooks on tensors fire from the last to the first along the graph; those of several hooks
        are to fire in the order in which they were put on.
        """
        return self._first.get(own, own)

    @unwatched
    def is_written(self, value: Any) -> bool:
        """Whether the network has written to what a tensor in `value`, given to a hook, was of.

        To be asked in a pass without gradients: in others a new history counts as a write.
        """
        for tensor in tensors_in(value):
            seen = self._seen.get(tensor)
            if seen is not None and seen[0]._version != seen[1]:
                return True
        return False

    # --- tensors over one memory ---

    @contextmanager
    def call(self, given: Any) -> Iterator[None]:
        """A call of a module that is given these values."""
        depth = len(self._calls)
        self._calls.append(self._versions(given))
        try:
            yield
        finally:
            del self._calls[depth:]

    @unwatched
    def _versions(self, given: Any) -> dict[int, int]:
        self.settle_all(given)
        return {storage_of(tensor): tensor._version for tensor in tensors_in(given)}

    @unwatched
    def settle_all(self, value: Any) -> None:
        """`settle` for every tensor in nested tuples, lists and dicts."""
        if self._memories:
            for tensor in tensors_in(value):
                self.settle(tensor)

    def _was_written_by_call(self, tensor: Tensor) -> bool:
        before = self._calls[-1].get(storage_of(tensor)) if self._calls else None
        return before is not None and before != tensor._version

    @unwatched
    def through(
        self, paths: tuple[Tensor, ...], memories: tuple[Tensor, ...]
    ) -> tuple[Tensor, ...]:
        """New tensors over the memory of some, whose gradient flows to `paths` instead.

        One node of the graph stands behind all of them. A path that needs no gradient is none:
        its memory's own tensor is handed on. Where the module that is running wrote to the memory
        that it was given, whoever names it goes on behind the new tensor, as the module's caller
        does where it throws the result away.
        """
        self._begin_to_watch()
        for tensor in memories:
            self.settle(tensor)
        made = Through.apply(memories, *paths)
        for memory, new, path in zip(memories, made, paths, strict=True):
            if path.requires_grad:
                self._join(memory, new)
        return tuple(
            new if path.requires_grad else memory
            for memory, new, path in zip(memories, made, paths, strict=True)
        )

    def _join(self, tensor: Tensor, new: Tensor) -> None:
        memory = self._memories.get(storage_of(tensor))
        if memory is None:
            memory = self._memories[storage_of(tensor)] = Memory(tensor._version)
        group = memory.group_of(tensor)
        group.add(new)
        if self._was_written_by_call(tensor):
            group.follow(new)
            memory.settle()
            memory.version = new._version

    def settle(self, value: Any) -> None:
        """If the memory of a tensor was written to under another name, give it that history."""
        if isinstance(value, Tensor):
            memory = self._memories.get(storage_of(value))
            if memory is None:
                return
            if memory.version != value._version:
                memory.settle()
                memory.version = value._version
            # A view whose base got a history is taken for a leaf until it is asked for its own.
            _ = value.grad_fn
        elif isinstance(value, list | tuple):
            for item in value:
                self.settle(item)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "__get__" and func.__self__.__name__ not in _VIEW_PROPERTIES:  # type: ignore[attr-defined]
            return func(*args, **kwargs)
        if self._memories:
            for value in args:
                self.settle(value)
            for value in kwargs.values():
                self.settle(value)
            if writes(name, kwargs):
                for tensor in tensors_in(kwargs.get("out", args[:1] or list(kwargs.values())[:1])):
                    self._meet(tensor)
        with keeping_saved():
            result = func(*args, **kwargs)
        if name in _SEVERAL_VIEWS and torch.is_grad_enabled():
            return one_by_one(args[0] if args else next(iter(kwargs.values())), result)
        return result

    def _meet(self, target: Tensor) -> None:
        """Whoever names what is to be written to goes on from there together."""
        memory = self._memories.get(storage_of(target))
        if memory is not None:
            for group in memory.groups:
                group.meet()
            memory.settle()
            memory.version = target._version
            _ = target.grad_fn
