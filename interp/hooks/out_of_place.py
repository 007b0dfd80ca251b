"""Makes in-place operations harmless while hooks are on.

Two things go wrong when a network writes over the output of a hooked module: a stored feature map
is overwritten, and a full backward hook raises, because the tensor it hands on is a view that
autograd forbids to change. `OutOfPlace` redirects such a write to a fresh copy of the tensor, and
from then on every operation of the network that names the old tensor, or a view of it, is given
the copy. What the network computes is unchanged bit for bit, and what a hook kept stays as it was.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import (
    TorchFunctionMode,
    _len_torch_function_stack,
    _pop_mode,
    _push_mode,
)
from torch.utils.hooks import BackwardHook

from interp.hooks.redirections import Redirections
from interp.hooks.writes import (
    READS_LAYOUT,
    Place,
    as_before_the_hook,
    at,
    covers,
    part_of,
    put,
    storage_of,
    tensors_in,
    twin,
    with_strides,
    written,
)

_MODULE_CALL: CodeType = nn.Module._call_impl.__code__
_MAKES_VIEW: CodeType = BackwardHook._apply_on_tensors.__code__
_OUTPUT_HOOK: CodeType = BackwardHook.setup_output_hook.__code__
_REQUIRES_GRAD, _GRAD_FN = Tensor.requires_grad, Tensor.grad_fn
_HOOK_NODE = "BackwardHookFunctionBackward"


class OutOfPlace(TorchFunctionMode):
    """A mode, local to its thread, in which protected tensors are never written to.

    Protected is what `keep` was told, and whatever autograd already follows. Everything else is
    changed in place as the network asks, so that a pass costs nothing before the first hook.

    Parameters
    ----------
    callback : CodeType
        Code of the function that calls a user's hook. A hook sees the tensors it is given and
        those it kept as they were; only what it writes itself is redirected for it. Code around
        the pass reads and writes as it always does.
    """

    def __init__(self, callback: CodeType) -> None:
        super().__init__()
        self._callback = callback
        self._kept: dict[int, StorageWeakRef] = {}
        self._moved = Redirections()
        self._depth: int | None = None
        self._on = False

    @contextmanager
    def during(self, *, late: bool = False) -> Iterator[None]:
        """Be on while a pass runs.

        Parameters
        ----------
        late : bool
            Begin at the first hook that fires, and spare the cost of watching every operation
            before it: for a pass in which autograd follows nothing until then.
        """
        outermost = self._depth is None
        if outermost:
            self._depth = _len_torch_function_stack()
        if not late:
            self._wake()
        try:
            yield
        finally:
            if outermost:
                if self._on:
                    _pop_mode()
                self._depth, self._on = None, False
                self.forget()

    def _wake(self) -> None:
        """Go on the stack of modes, below those that the network itself has entered meanwhile."""
        if self._on or self._depth is None:
            return
        above = [_pop_mode() for _ in range(_len_torch_function_stack() - self._depth)]
        for mode in (self, *reversed(above)):
            _push_mode(mode)
        self._on = True

    def keep(self, value: Any) -> None:
        """Protect the memory of every tensor in `value` (nested tuples, lists and dicts)."""
        self._wake()
        with torch._C.DisableTorchFunction():
            for tensor in tensors_in(value):
                self._kept[storage_of(tensor)] = StorageWeakRef(tensor.untyped_storage())

    def current(self, value: Any, *, returned: bool = False) -> Any:
        """`value` with every tensor that was written to replaced by what it is now.

        What a hooked module is called with and what it returns go through here, so that its hooks
        see what is there, and its part of the graph begins and ends with it. The very same object
        where there is nothing to replace.
        """
        if not self._moved.entries:
            return value
        with torch._C.DisableTorchFunction():
            if not self._moved.has_any(value):
                return value
            return self._moved.current(value, copies=not returned)

    def is_stale(self, value: Any) -> bool:
        """Whether a tensor in `value` was written to, so that another one stands for it."""
        with torch._C.DisableTorchFunction():
            return self._moved.has_any(value)

    def forget(self) -> None:
        """Let go of every tensor: the pass is over."""
        self._kept.clear()
        self._moved.clear()

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "__get__":
            return self._attribute(func, args)
        place = written(func, args, kwargs)
        if (place is not None and self._is_protected(at(place, args, kwargs))) or (
            self._moved.entries and self._moved.has_any((args, kwargs))
        ):
            caller = self._caller()
            if caller is None and place is not None:
                self._moved.drop(at(place, args, kwargs))
            if caller is not None and caller is not _MAKES_VIEW:
                by_hook = caller is self._callback
                args = self._moved.current(args, by_hook=by_hook)
                kwargs = self._moved.current(kwargs, by_hook=by_hook)
                if place is not None and self._is_protected(at(place, args, kwargs), by_hook):
                    return self._redirect(func, place, args, kwargs, by_hook)
        if args and name in READS_LAYOUT:
            args = (as_before_the_hook(args[0]), *args[1:])
        result = func(*args, **kwargs)
        self._remember_source(args, result)
        return result

    def _attribute(self, getter: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """A shape, a flag, a grad_fn; or a view such as `data` and `T`."""
        of = getattr(getter, "__self__", None)
        if self._moved.entries and of is _REQUIRES_GRAD:
            args = (self._handed_to_hook(args[0]),)
        value = getter(*args)
        if of is _GRAD_FN:
            if self._moved.entries and type(value).__name__ == _HOOK_NODE and _gives_output():
                self._goes_through_hook(args[0])
        elif isinstance(value, Tensor):
            self._remember_source(args, value)
        return value

    def _is_protected(self, target: Tensor, by_hook: bool = False) -> bool:
        if target.requires_grad and torch.is_grad_enabled() and not by_hook:
            return True
        return storage_of(target) in self._kept

    def _redirect(
        self,
        func: Callable[..., Any],
        place: Place,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        by_hook: bool,
    ) -> Any:
        """Run an operation on a copy of what it writes to, which stands for that from now on.

        Its other arguments stay as they are, also where they are parts of what is written to:
        autograd may need their values from before.
        """
        target = at(place, args, kwargs)
        before = as_before_the_hook(target)
        draws = kwargs.get("training")  # a random mask is drawn in another way out of place
        if kwargs.get("inplace") and not draws and torch.is_grad_enabled():
            args, kwargs = put(before, place, args, {**kwargs, "inplace": False})
            result = func(*args, **kwargs)
            if storage_of(result) == storage_of(target):  # it had nothing to write
                return target
            new = result = with_strides(result, before)
        else:
            new = twin(before)
            args, kwargs = put(new, place, args, kwargs)
            result = func(*args, **kwargs)
        self._move(target, new, by_hook)
        return result

    def _move(self, target: Tensor, new: Tensor, by_hook: bool) -> None:
        """From now on `new` is what `target` was."""
        source = self._moved.source(target)
        if source is target:
            self._moved.add(target, new, by_hook)
            return
        whole = twin(source)
        detached = source.requires_grad and not target.requires_grad
        with torch.set_grad_enabled(torch.is_grad_enabled() and not detached):
            place = part_of(whole, target, source.storage_offset())
            place.copy_(part_of(new, target, target.storage_offset()))
        self._moved.add(source, whole, by_hook)
        # What is written to `new` later has to reach the whole of it.
        self._moved.cut(place, whole)
        self._moved.add(new, place, by_hook, copied=True)

    def _handed_to_hook(self, tensor: Tensor) -> Tensor:
        """What PyTorch is to put a full backward hook's node behind: what stands for a tensor now.

        It takes the very tensor that a module is called with or returns, and where the network
        wrote over that, the gradient would go around the hook. It asks each for `requires_grad`
        right after putting it on its list, which is where another one can take its place.
        """
        frame = sys._getframe(3)
        taken = frame.f_locals.get("tensors") if frame.f_code is _MAKES_VIEW else None
        if not taken or taken[-1] is not tensor:
            return tensor
        returned = frame.f_back is not None and frame.f_back.f_code is _OUTPUT_HOOK
        taken[-1] = self.current(tensor, returned=returned)
        return taken[-1]

    def _goes_through_hook(self, passed_on: Tensor) -> None:
        """A module with a backward hook returns what it wrote: `passed_on` stands for that now.

        Otherwise the network, where it goes on with the tensor that the module wrote over, would
        go around the hook.
        """
        place = self._moved.copy_in(passed_on)
        if place is None:
            self._moved.put_behind(passed_on)
        else:
            self._move(place, passed_on, by_hook=False)

    def _caller(self) -> CodeType | None:
        """Code of the hook or the module call that asks; None for code around the pass."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            if code is self._callback or code is _MODULE_CALL or code is _MAKES_VIEW:
                return code
            frame = frame.f_back
        return None

    def _remember_source(self, args: tuple[Any, ...], result: Any) -> None:
        """Keep what a view was cut from, so that a write to the view reaches all of it."""
        source = args[0] if args else None
        if not (isinstance(source, Tensor) and self._moved.is_followed(source)):
            return
        for part in result if type(result) in (tuple, list) else (result,):
            if (
                isinstance(part, Tensor)
                and storage_of(part) == storage_of(source)
                and not (covers(part) and part.requires_grad)
            ):
                self._moved.cut(part, source)


def _gives_output() -> bool:
    """Whether PyTorch is making the view that a full backward hook's module returns."""
    frame: FrameType | None = sys._getframe(3)
    for _ in range(3):  # the list of what is made, and the function that makes it
        if frame is None or frame.f_code is _OUTPUT_HOOK:
            return frame is not None
        frame = frame.f_back
    return False
