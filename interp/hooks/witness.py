"""Stands beside a hook: hands the module what is there now, and knows why the hook is silent."""

from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from interp.hooks.ledger import Kind
from interp.hooks.out_of_place import OutOfPlace

_BACKWARD = ("full_backward_pre", "full_backward")


class Witness:
    """Sees the calls of a module that carries a hook.

    PyTorch puts a full backward hook's nodes around the very tensors that a module is called with
    and returns. Where the network wrote over one of them, that is the tensor from before, and the
    gradient would go around the hook; so the module is called with what stands for it now. What
    it is called with is protected too: a module that changes its input gives another tensor back.
    """

    def __init__(self, kind: Kind, guard: OutOfPlace) -> None:
        self._kind = kind
        self._guard = guard
        self._silence = "the module did not run"

    def stand_by(self, module: nn.Module) -> list[RemovableHandle]:
        """Put it on a module, around the hooks it has; the handles take it off."""
        if self._kind == "forward_pre":
            return []
        handles = [module.register_forward_pre_hook(self._before, prepend=True, with_kwargs=True)]
        if self._kind in _BACKWARD:
            handles.append(module.register_forward_hook(self._after))
        return handles

    def why_silent(self) -> str:
        """Why a hook that never fired did not."""
        return self._silence

    def _before(self, module: nn.Module, args: Any, kwargs: Any) -> Any:
        self._silence = "the module did not return: an error came before that"
        given = args, kwargs
        current = self._guard.current(given)
        self._guard.keep(current)
        return None if current is given else current

    def _after(self, module: nn.Module, args: Any, output: Any) -> Any:
        self._silence = _backward_silence(output)
        current = self._guard.current(output, returned=True)
        return None if current is output else current


def _backward_silence(output: Any) -> str:
    outputs = output if isinstance(output, tuple) else (output,)
    tensors = [value for value in outputs if isinstance(value, Tensor)]
    if not tensors:
        return (
            f"the module returned a {type(output).__name__}, and PyTorch follows only a tensor or "
            "a tuple of tensors"
        )
    if not any(tensor.requires_grad for tensor in tensors):
        return "nothing that the module returned needed a gradient"
    return "no gradient came back to what the module returned"
