"""The one place that registers hooks."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from torch import Tensor, nn

from interp.errors import HookError
from interp.hooks.callback import Callback, shape_of
from interp.hooks.found import find, no_such_layer, why_it_cannot_fire
from interp.hooks.guard import InPlaceGuard
from interp.hooks.handle import HookHandle
from interp.hooks.ledger import HookLedger, Kind, hooks_on
from interp.hooks.legacy import make_room
from interp.hooks.shared import SharedParameters
from interp.models.copies import own_copy

__all__ = ["HookSession", "no_such_layer"]

# PyTorch warns of a case that is meant here, a graph that starts at the hooked layer itself, and of
# one that the ledger tells of, a module that returns no tensor.
for _message in ("Full backward hook is firing when gradients", "For backward hooks to be called"):
    warnings.filterwarnings("ignore", message=_message)


class HookSession:
    """Hooks on a private copy of a module, every one in the ledger, all removed at the end.

    The copy shares the module's parameters that need a gradient and nothing else: hooks of two
    sessions never meet, the module itself never carries one, and what a run writes stays in the
    copy. Hooks that the module came with are part of the network: they run on the copy, and the
    ledger lists them as foreign. While the session is entered, in-place operations of the network
    leave what hooks saw untouched (see `guard`).

    Parameters
    ----------
    module : nn.Module
        The network; it stays as it is.
    ledger : HookLedger, optional
        To keep the records of several sessions in one place.
    copy : nn.Module, optional
        A private copy of the module that was made already.

    Attributes
    ----------
    module : nn.Module
        The copy that carries the hooks: run this one.
    ledger : HookLedger

    Examples
    --------
    >>> with HookSession(net) as session:
    ...     session.forward("layer4", lambda module, args, output: print(output.shape))
    ...     logits = session.module(picture)
    """

    def __init__(
        self,
        module: nn.Module,
        ledger: HookLedger | None = None,
        *,
        copy: nn.Module | None = None,
    ) -> None:
        self.ledger = HookLedger() if ledger is None else ledger
        known = self.ledger.foreign
        own = (found for found, hook in hooks_on(module) if not isinstance(hook, Callback))
        self.ledger.foreign += tuple(found for found in own if found not in known)
        self.module = own_copy(module) if copy is None else copy
        self._shared = SharedParameters(self.module) if copy is None else None
        self._handles: list[HookHandle] = []
        self._guard = InPlaceGuard()
        self._guard.fence(self.module, own_input=True)
        self._entered: Any = None
        self.closed = False

    def __enter__(self) -> Self:
        self._entered = self.running()
        self._entered.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._entered.__exit__(kind, error, traceback)
        finally:
            self.close()

    @contextmanager
    def running(self, *, late: bool = False) -> Iterator[None]:
        """One pass, or several, with in-place operations made harmless on this thread.

        Entering the session does this; a session whose hooks outlive a pass uses it for each.
        `late` is for networks that enter no modes of their own (see `InPlaceGuard.during`).
        """
        self._check_open()
        try:
            with self._guard.during(late=late):
                yield
        except BaseException as error:
            self.ledger.fail(error)
            raise

    @contextmanager
    def aside(self, ledger: HookLedger) -> Iterator[None]:
        """Record what is registered meanwhile in another ledger, and take it off at the end.

        For a session whose hooks outlive a run: those of the run itself leave no trace in it.
        """
        own, already = self.ledger, len(self._handles)
        self.ledger = ledger
        try:
            yield
        finally:
            self.ledger = own
            self.release(self._handles[already:])

    def release(self, handles: Iterable[HookHandle]) -> None:
        """Remove these hooks, settle their records, and forget them."""
        gone = set()
        for handle in handles:
            handle.settle()
            gone.add(id(handle))
        self._handles = [handle for handle in self._handles if id(handle) not in gone]

    def close(self) -> None:
        """Remove every hook that is left and settle its record. Nothing can be registered after."""
        self.closed = True
        for handle in self._handles:
            handle.settle()
        self._handles.clear()
        self._guard.open()
        if self._shared is not None:
            self._shared.remove()

    def forward_pre(
        self, path: str, fn: Callable[..., Any], *, with_kwargs: bool = False, **options: Any
    ) -> HookHandle:
        """Call `fn(module, args)` before the module runs; what it returns replaces the input.

        With `with_kwargs` it is `fn(module, args, kwargs)` and returns both or None. Options of
        every registration: `purpose` and `origin` for the ledger, `prepend` to run first.

        What a hook is given is its own: no later write of the network changes it, and a gradient
        that is asked for at it is the one that comes back through this module. A hook
        that neither keeps nor changes it is given the network's own tensors with `keeps="nothing"`,
        and one that does so to an output alone is spared copies of the input with "output".
        """
        return self._on_module("forward_pre", path, fn, with_kwargs, options)

    def forward(
        self, path: str, fn: Callable[..., Any], *, with_kwargs: bool = False, **options: Any
    ) -> HookHandle:
        """Call `fn(module, args, output)` after it ran; what it returns replaces the output.

        With `with_kwargs` it is `fn(module, args, kwargs, output)`.
        """
        return self._on_module("forward", path, fn, with_kwargs, options)

    def full_backward_pre(self, path: str, fn: Callable[..., Any], **options: Any) -> HookHandle:
        """Call `fn(module, grad_output)` before the module's gradients are computed.

        What it returns replaces the gradient of the output.
        """
        return self._on_module("full_backward_pre", path, fn, False, options)

    def full_backward(self, path: str, fn: Callable[..., Any], **options: Any) -> HookHandle:
        """Call `fn(module, grad_input, grad_output)` when the gradient of the input is known.

        What it returns replaces the gradient of the input. An input that needs no gradient has
        None there.
        """
        return self._on_module("full_backward", path, fn, False, options)

    def tensor(
        self,
        tensor: Tensor,
        fn: Callable[[Tensor], Tensor | None],
        *,
        path: str = "",
        purpose: str = "",
        origin: str = "user",
    ) -> HookHandle:
        """Call `fn(gradient)` when the gradient of a tensor is known; what it returns replaces it.

        `path` says in the ledger which module the tensor belongs to.

        Raises
        ------
        HookError
            If the tensor needs no gradient, so that the hook could never fire.
        """
        self._check_open()
        if not tensor.requires_grad:
            raise HookError(
                f"a tensor hook needs a tensor that requires a gradient, and this one of shape "
                f"{shape_of(tensor)} does not: call requires_grad_() on it first"
            )
        class_name = type(find(self.module, path)).__name__ if path else "Tensor"
        record = self.ledger.register("tensor", path, class_name, purpose, origin)
        callback = Callback(fn, record, self.ledger, self._guard)
        return self._keep(
            HookHandle(record, self._guard.first(tensor).register_hook(callback), self.ledger)
        )

    def was_written(self, value: Any) -> bool:
        """Whether the network has written over a tensor in `value` that a hook saw in this pass."""
        return self._guard.is_written(value)

    def _on_module(
        self,
        kind: Kind,
        path: str,
        fn: Callable[..., Any],
        with_kwargs: bool,
        options: dict[str, Any],
    ) -> HookHandle:
        self._check_open()
        module = find(self.module, path)
        purpose, origin = options.pop("purpose", ""), options.pop("origin", "user")
        record = self.ledger.register(kind, path, type(module).__name__, purpose, origin)
        keeps = options.pop("keeps", "all")
        callback = Callback(
            fn, record, self.ledger, self._guard, with_kwargs=with_kwargs, keeps=keeps
        )
        if kind in ("forward_pre", "forward"):
            options["with_kwargs"] = True
        if kind == "full_backward":
            make_room(module)
        raw = getattr(module, f"register_{kind}_hook")(callback, **options)
        if reason := why_it_cannot_fire(self.module, path, module):
            record.status = f"cannot fire: {reason}"
        elif keeps != "nothing":
            self._guard.fence(module)
        return self._keep(HookHandle(record, raw, self.ledger))

    def _keep(self, handle: HookHandle) -> HookHandle:
        self._handles.append(handle)
        return handle

    def _check_open(self) -> None:
        if self.closed:
            raise HookError("this hook session is closed: open a new one with HookSession(module)")
