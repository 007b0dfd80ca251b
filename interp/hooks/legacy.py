"""Backward hooks of the old kind beside full ones."""

from collections import OrderedDict
from functools import partial
from typing import Any

from torch import Tensor, nn

from interp.hooks.callback import Callback


class OldBackwardHooks:
    """A forward hook that puts a module's old backward hooks where PyTorch would put them.

    PyTorch has no module with both kinds. This hangs them on the node behind the output, as
    `register_backward_hook` does.
    """

    def __init__(self, hooks: list[Any]) -> None:
        self.hooks = hooks

    def __call__(self, module: nn.Module, args: Any, output: Any) -> None:
        while not isinstance(output, Tensor):
            if isinstance(output, dict):
                output = next(one for one in output.values() if isinstance(one, Tensor))
            else:
                output = output[0]
        if output.grad_fn is not None:
            for hook in self.hooks:
                output.grad_fn.register_hook(partial(hook, module))


def make_room(module: nn.Module) -> None:
    """Let a module of a private copy take full backward hooks where it has old ones of its own."""
    if module._is_full_backward_hook is not False or not module._backward_hooks:
        return
    hooks = OldBackwardHooks(list(module._backward_hooks.values()))
    module._backward_hooks = OrderedDict()
    module._is_full_backward_hook = None
    module.register_forward_hook(hooks)
    for key, hook in list(module._forward_hooks.items()):
        if isinstance(hook, Callback):  # those of the network come first
            module._forward_hooks[key] = module._forward_hooks.pop(key)
