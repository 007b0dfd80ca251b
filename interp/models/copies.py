"""A private module tree over shared tensors."""

import copy
from collections import OrderedDict
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

M = TypeVar("M", bound=nn.Module)

HOOK_DICTS = frozenset(
    (
        "_forward_pre_hooks",
        "_forward_pre_hooks_with_kwargs",
        "_forward_hooks",
        "_forward_hooks_with_kwargs",
        "_forward_hooks_always_called",
        "_backward_pre_hooks",
        "_backward_hooks",
    )
)
_DONE = HOOK_DICTS | {"_parameters", "_buffers", "_modules"}
_PLAIN = {int, float, str, bool, complex, type(None), torch.dtype, torch.device, torch.Size}
_EMPTY = {OrderedDict, dict, set, list}


def private_copy(module: M) -> M:
    """A new module tree that shares every tensor with `module` and carries none of its hooks.

    Hooks, train flags and attributes of the copy are its own; parameters, buffers and tensors kept
    as plain attributes are the same objects, so the copy takes no weight memory.

    Parameters
    ----------
    module : nn.Module
        Any module tree; it is not changed.

    Returns
    -------
    nn.Module
        Of the same classes, with the same paths and the same state dict.
    """
    with torch.inference_mode(False):
        return _copy(module, _Memo(module))


class _Memo(dict[int, Any]):
    """What `deepcopy` must not copy: modules that have a copy already, and every tensor."""

    def __init__(self, root: nn.Module) -> None:
        super().__init__()
        self._root: nn.Module | None = root

    def with_tensors(self) -> "_Memo":
        """Itself, with the tensors; they are gathered when a first attribute needs them."""
        if self._root is not None:
            for part in self._root.modules():
                for tensors in (part._parameters, part._buffers, vars(part)):
                    self.update({id(t): t for t in tensors.values() if isinstance(t, Tensor)})
            self._root = None
        return self


def _copy(module: M, memo: _Memo) -> M:
    if id(module) in memo:
        return memo[id(module)]
    if hasattr(type(module), "__deepcopy__") or isinstance(module, torch.jit.ScriptModule):
        whole = copy.deepcopy(module, memo.with_tensors())
        for part in whole.modules():
            vars(part).update({name: OrderedDict() for name in HOOK_DICTS if name in vars(part)})
        return whole
    new = type(module).__new__(type(module))
    memo[id(module)] = new
    source, state = vars(module), vars(new)
    # Children first: an attribute may name a child again, and must then name the child's copy.
    children = {
        name: None if child is None else _copy(child, memo)
        for name, child in module._modules.items()
    }
    state.update(source)
    for name in HOOK_DICTS & source.keys():
        state[name] = OrderedDict()
    for name in ("_parameters", "_buffers"):
        state[name] = {key: _usable(tensor) for key, tensor in source[name].items()}
    for name, value in source.items():
        kind = type(value)
        if kind in _PLAIN or name in _DONE:
            continue
        if kind in _EMPTY and not value:
            state[name] = kind()
        elif isinstance(value, Tensor):
            state[name] = _usable(value)
        elif not (kind is tuple and all(type(item) in _PLAIN for item in value)):
            state[name] = copy.deepcopy(value, memo.with_tensors())
    state["_modules"] = children
    return new


def _usable(tensor: Tensor | None) -> Tensor | None:
    """The tensor itself, or a copy of one from inference mode, which autograd cannot follow."""
    if tensor is None or not tensor.is_inference():
        return tensor
    with torch.inference_mode(False):
        copied = tensor.clone()
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(copied, requires_grad=tensor.requires_grad)
    return copied


def freeze(module: M) -> M:
    """Give a private copy parameters that need no gradient, over the same memory.

    The parameters that the copy shared keep their own flags.
    """
    aliases: dict[int, nn.Parameter] = {}
    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None and parameter.requires_grad:
                alias = aliases.get(id(parameter))
                if alias is None:
                    alias = nn.Parameter(parameter.detach(), requires_grad=False)
                    aliases[id(parameter)] = alias
                part._parameters[name] = alias
    return module
