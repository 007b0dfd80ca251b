"""PyTorch's full backward hooks around tensors that may be written to."""

from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.utils.hooks import BackwardHook

from interp.hooks.nested import map_tensors
from interp.hooks.unwatched import unwatched
from interp.hooks.writes import twin

_OWN = ("_call_impl", "forward", "_get_backward_hooks", "_get_backward_pre_hooks")


class Guard(Protocol):
    """What a fence asks of the guard it belongs to."""

    @property
    def on(self) -> bool: ...
    def call(self, given: Any) -> AbstractContextManager[None]: ...
    def settle_all(self, value: Any) -> None: ...
    def through(
        self, paths: tuple[Tensor, ...], memories: tuple[Tensor, ...]
    ) -> tuple[Tensor, ...]: ...


class _AroundMemory(BackwardHook):
    """PyTorch's own, but for how it stands in the graph: around the same memory, without views."""

    def __init__(self, module: nn.Module, hooks: Any, pre_hooks: Any, guard: Guard) -> None:
        super().__init__(module, hooks, pre_hooks)
        self._guard = guard

    @unwatched
    def _apply_on_tensors(self, fn: Any, args: Any) -> Any:
        places = [place for place, value in enumerate(args) if isinstance(value, Tensor)]
        tensors = tuple(args[place] for place in places)
        if not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)):
            return args, None
        made = self._guard.through(tensors, tensors)
        fn(next(tensor.grad_fn for tensor in made if tensor.requires_grad))
        values = list(args)
        for place, tensor in zip(places, made, strict=True):
            values[place] = tensor
        return (tuple(values) if type(args) is tuple else type(args)(*values)), places


class Fence:
    """Stands around one module of a private copy, and lets its full backward hooks fire.

    The hooks are registered with PyTorch as always. Only what calls them is ours: where PyTorch
    makes views of what the module is given and returns, which a network may not write to, the
    guard makes tensors that it may.
    """

    def __init__(self, module: nn.Module, guard: Guard, *, own_input: bool = False) -> None:
        self._module, self._guard, self._own_input = module, guard, own_input
        self._around: list[_AroundMemory | None] = []
        self._before = {name: vars(module)[name] for name in _OWN if name in vars(module)}
        self._call, self._forward = module._call_impl, module.forward
        self._hooks, self._pre_hooks = module._get_backward_hooks, module._get_backward_pre_hooks
        vars(module).update(
            _call_impl=self._fenced_call,
            forward=self._fenced_forward,
            _get_backward_hooks=lambda: ([], self._hooks()[1]) if guard.on else self._hooks(),
            _get_backward_pre_hooks=lambda: [] if guard.on else self._pre_hooks(),
        )

    def remove(self) -> None:
        """Leave the module as it was before."""
        for name in _OWN:
            vars(self._module).pop(name, None)
        vars(self._module).update(self._before)

    def without(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """The module's own attributes as they are without a fence around it."""
        kept = {name: value for name, value in attributes.items() if name not in _OWN}
        return kept | self._before

    def _fenced_call(self, *args: Any, **kwargs: Any) -> Any:
        if not self._guard.on:
            return self._call(*args, **kwargs)
        if torch.is_inference_mode_enabled():  # whose tensors count no writes
            with torch.inference_mode(False), torch.no_grad():
                return self._fenced_call(*args, **kwargs)
        hooks, pre_hooks = self._hooks()[0], self._pre_hooks()
        around = None
        if hooks or pre_hooks:
            around = _AroundMemory(self._module, hooks, pre_hooks, self._guard)
        if self._own_input and not self._around:
            args, kwargs = map_tensors((args, kwargs), twin)
        depth = len(self._around)
        self._around.append(around)
        try:
            with self._guard.call((args, kwargs)):
                result = self._call(*args, **kwargs)
                self._guard.settle_all(result)
                if around is None or not isinstance(result, Tensor | tuple):
                    return result
                return around.setup_output_hook(result)
        finally:
            del self._around[depth:]

    def _fenced_forward(self, *args: Any, **kwargs: Any) -> Any:
        if self._guard.on and self._around and self._around[-1] is not None:
            args = self._around[-1].setup_input_hook(args)
        return self._forward(*args, **kwargs)
