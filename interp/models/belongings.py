"""What belongs to a network: its modules and tensors, and whatever their attributes hold."""

from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from torch import Tensor, nn

from interp.hooks.writes import storage_of
from interp.models.leads import behind, global_names

# What PyTorch keeps of every module, and what saves or loads its state: no part of a run.
TABLES = (
    *("_parameters", "_buffers", "_modules", "_state_dict_hooks", "_state_dict_pre_hooks"),
    *("_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"),
    *("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_forward_hooks"),
    *("_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
    *("_backward_pre_hooks", "_backward_hooks"),
)


_NOBODYS = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, type)


class Belongings:
    """Tells what leads to a network, or to anything of it. It looks around when first asked.

    Parameters
    ----------
    root : nn.Module
        The network; it is only read.
    """

    def __init__(self, root: nn.Module) -> None:
        self._root = root
        self._owned: set[int] | None = None
        self._memories: set[int] = set()
        self._alive: list[Any] = []

    def _everything(self) -> set[int]:
        """The ids of everything that the network's attributes hold, found when first needed."""
        if self._owned is None:
            self._owned = owned = set()
            for part in self._root.modules():
                owned.add(id(part))
                held = [v for name, v in vars(part).items() if name not in TABLES]
                for value in (*part._parameters.values(), *part._buffers.values(), *held):
                    for one in behind(value):
                        if isinstance(one, Tensor):
                            self._memories.update(memory_of(one))
                        elif not isinstance(one, _NOBODYS):
                            owned.add(id(one))
                            self._alive.append(one)
        return self._owned

    def leads(self, value: Any) -> bool:
        """Whether a value leads to a module, or to anything that the network holds."""
        owned = self._everything()
        return any(
            isinstance(one, nn.Module)
            or id(one) in owned
            or self._is_own_tensor(one)
            or (type(one) is FunctionType and self.names_a_part(one))
            for one in behind(value)
        )

    def _is_own_tensor(self, value: Any) -> bool:
        return isinstance(value, Tensor) and not self._memories.isdisjoint(memory_of(value))

    def names_a_part(self, function: FunctionType, asked: set[int] | None = None) -> bool:
        """Whether a function, or one of its own file that it calls, names a part as a global."""
        asked = set() if asked is None else asked
        asked.add(id(function))
        for name in global_names(function):
            value = function.__globals__[name]
            if type(value) is FunctionType:
                if id(value) not in asked and self.names_a_part(value, asked):
                    return True
            elif self.is_part(value):
                return True
        return False

    def is_part(self, value: Any) -> bool:
        """Whether a value is of the network, or leads to one of its modules or tensors."""
        owned = self._everything()
        return id(value) in owned or any(
            self._is_own_tensor(one) or (isinstance(one, nn.Module) and id(one) in owned)
            for one in behind(value)
        )

    def has(self, value: Any) -> bool:
        """Whether this very object is held by the network."""
        return id(value) in self._everything()


def memory_of(tensor: Tensor) -> set[int]:
    """What tells a tensor's memory from others; empty where it has none that could be shared."""
    try:
        return {storage_of(tensor)}
    except (NotImplementedError, RuntimeError, ValueError):  # such as sparse and lazy ones
        return set()
