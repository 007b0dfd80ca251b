"""Where the hook of a step sits, how it finds its value there, and how it puts another back."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from interp.hooks.handle import HookHandle
from interp.hooks.ledger import Kind
from interp.hooks.nested import first_tensor, with_first
from interp.hooks.recipe import Step
from interp.hooks.session import HookSession

Act = Callable[[Tensor, int], Tensor | None]
_ANEW = "puts a tensor hook on in each pass"


def registered_kind(step: Step, calls: int) -> Kind:
    """The kind of hook that stands on the module for a step.

    A tensor hook on an output is put on anew in each pass, by a forward hook. A full backward hook
    is not told which call it fires for: where one of several calls is asked for, a tensor hook on
    what that call is given or returns serves in its place.
    """
    one_of_several = step.call is not None and calls > 1
    if step.kind == "tensor":
        return "tensor" if step.of_parameter else "forward"
    if step.kind == "full_backward_pre" and one_of_several:
        return "forward"
    if step.kind == "full_backward" and one_of_several:
        return "forward_pre"
    return step.kind


class Site:
    """One step's hook on a session.

    Parameters
    ----------
    session : HookSession
    step : Step
    calls : int
        How often the module runs in a pass.
    act : callable
        Given the value and the index of the call, returns the new value or None. For backward hooks
        the index counts their fires: backward order is reversed.

    Attributes
    ----------
    handle : HookHandle
        Of the hook that stays between passes.
    seen : int
        Calls of the module so far in this pass.
    acted : int
        How often `act` was given a value in this pass.
    empty : int
        How often there was no tensor to give it.
    starts : list of Tensor
        What the gradient has to be followed to for a tensor hook to fire.
    """

    def __init__(self, session: HookSession, step: Step, calls: int, act: Act) -> None:
        self.step, self.seen, self.acted, self.empty = step, 0, 0, 0
        self.starts: list[Tensor] = []
        self._session, self._act = session, act
        self._kind = registered_kind(step, calls)
        self.handle = self._register()

    def begin(self) -> None:
        """A new pass: count from 0."""
        self.seen = self.acted = self.empty = 0
        self.starts = [self.parameter] if self._kind == "tensor" else []

    def end(self) -> None:
        """Let go of what the pass made."""
        self.starts = []

    def _register(self) -> HookHandle:
        step, session = self.step, self._session
        if self._kind == "tensor":
            parameter = self.parameter.requires_grad_()  # of the private copy alone
            return session.tensor(parameter, self._gradient, path=step.path, purpose=self._why())
        options: dict[str, Any] = {
            "purpose": self._why(),
            "origin": "user",
            "prepend": step.first,
        }
        if self._kind in ("forward_pre", "forward"):
            options["with_kwargs"] = True
        fn = {
            "forward_pre": self._forward_pre,
            "forward": self._forward,
            "full_backward_pre": self._full_backward_pre,
            "full_backward": self._full_backward,
        }[self._kind]
        register: Callable[..., HookHandle] = getattr(session, self._kind)
        return register(step.path, fn, **options)

    def _why(self) -> str:
        sentence = self.step.sentence()
        if self._kind == self.step.kind:
            return sentence
        if self.step.kind == "tensor":
            return f"{_ANEW}: {sentence}"
        return f"{_ANEW}, as a full backward hook is not told which call it fires for: {sentence}"

    @property
    def parameter(self) -> Tensor:
        """The parameter, of the private copy, that a tensor hook is for."""
        parameter = self._session.module.get_submodule(self.step.path)._parameters[self.step.of]
        assert parameter is not None  # `check` has looked
        return parameter

    def _forward_pre(self, module: nn.Module, args: Any, kwargs: Any) -> Any:
        return self._at_call((args, kwargs))

    def _forward(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
        return self._at_call(output)

    def _full_backward_pre(self, module: nn.Module, grad_output: Any) -> Any:
        return self._replaced(grad_output)

    def _full_backward(self, module: nn.Module, grad_input: Any, grad_output: Any) -> Any:
        return self._replaced(grad_input)

    def _gradient(self, gradient: Tensor) -> Tensor | None:
        return self._replaced(gradient)

    def _at_call(self, value: Any) -> Any:
        call, self.seen = self.seen, self.seen + 1
        if self.step.call not in (None, call):
            return None
        if self._kind != self.step.kind:
            return self._with_tensor_hook(value, call)
        return self._replaced(value, call)

    def _replaced(self, value: Any, call: int | None = None) -> Any:
        """`value` with what `act` makes of its first tensor; None where that stays."""
        if call is None:
            call, self.seen = self.seen, self.seen + 1
        tensor = first_tensor(value)
        if tensor is None:
            self.empty += 1
            return None
        self.acted += 1
        new = self._act(tensor, call)
        return None if new is None else with_first(value, new)

    def _with_tensor_hook(self, value: Any, call: int) -> Any:
        tensor = first_tensor(value)
        if tensor is None or not tensor.is_floating_point():
            self.empty += 1
            return None
        if not torch.is_grad_enabled():
            return None
        if not tensor.requires_grad:
            self.starts.append(tensor.requires_grad_())

        def fn(gradient: Tensor) -> Tensor | None:
            self.acted += 1
            return self._act(gradient, call)

        self._session.tensor(tensor, fn, path=self.step.path, purpose=self.step.sentence())
        return None
