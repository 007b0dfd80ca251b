"""A TorchScript part of a copy as one module that takes hooks as a whole."""

import copy
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn
from torch.jit import ScriptModule

from interp.models.twins import Same


class Scripted(nn.Module):
    """Calls a TorchScript module of its own, inside which nothing can be hooked.

    The program is copied, the tensors are what `tensors` gives for those of the original, under
    the names that they have there.

    Parameters
    ----------
    program : ScriptModule
        It is not changed.
    tensors : Same
        What the copy has in place of a tensor.
    """

    def __init__(self, program: ScriptModule, tensors: Same) -> None:
        super().__init__()
        own = copy.deepcopy(program)
        pairs = zip(program.modules(), own.modules(), strict=True)
        for theirs, ours in pairs:
            for name, tensor in (*_own(theirs._parameters), *_own(theirs._buffers)):
                setattr(ours, name, tensors(tensor))
        vars(self)["program"] = own  # no child: its parts are no modules that Python runs
        self._parameters = dict(own.named_parameters(remove_duplicate=False))
        self._buffers = dict(own.named_buffers(remove_duplicate=False))
        vars(self)["training"] = getattr(program, "training", False)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return vars(self)["program"](*args, **kwargs)

    def train(self, mode: bool = True) -> "Scripted":
        vars(self)["program"].train(mode)
        return super().train(mode)

    def _apply(self, *args: Any, **kwargs: Any) -> "Scripted":
        vars(self)["program"]._apply(*args, **kwargs)
        program = vars(self)["program"]
        self._parameters = dict(program.named_parameters(remove_duplicate=False))
        self._buffers = dict(program.named_buffers(remove_duplicate=False))
        return self

    def __getattr__(self, name: str) -> Any:
        program = vars(self).get("program")
        return super().__getattr__(name) if program is None else getattr(program, name)

    def __len__(self) -> int:
        return len(list(vars(self)["program"].children()))

    def __getitem__(self, place: Any) -> Any:
        return list(vars(self)["program"].children())[place]

    def __iter__(self) -> Iterator[Any]:
        return iter(list(vars(self)["program"].children()))


def _own(tensors: Any) -> list[tuple[str, Tensor]]:
    return [(name, tensor) for name, tensor in tensors.items() if tensor is not None]
