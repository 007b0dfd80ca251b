"""A private module tree over shared tensors."""

import copy
from collections import OrderedDict
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

M = TypeVar("M", bound=nn.Module)

HOOK_DICTS = (
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_backward_pre_hooks",
    "_backward_hooks",
)
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
    memo: dict[int, Any] = {}
    for part in module.modules():
        for tensors in (part._parameters, part._buffers, vars(part)):
            memo.update({id(t): _usable(t) for t in tensors.values() if isinstance(t, Tensor)})
    with torch.inference_mode(False):
        return _copy(module, memo)


def _copy(module: M, memo: dict[int, Any]) -> M:
    if id(module) in memo:
        return memo[id(module)]
    if hasattr(type(module), "__deepcopy__") or isinstance(module, torch.jit.ScriptModule):
        whole = copy.deepcopy(module, memo)
        for part in whole.modules():
            vars(part).update({name: OrderedDict() for name in HOOK_DICTS if name in vars(part)})
        return whole
    new = type(module).__new__(type(module))
    memo[id(module)] = new
    # Children first: an attribute may name a child again, and must then name the child's copy.
    children = {
        name: None if child is None else _copy(child, memo)
        for name, child in module._modules.items()
    }
    state = vars(new)
    for name, value in vars(module).items():
        if name == "_modules":
            state[name] = children
        elif name in HOOK_DICTS:
            state[name] = OrderedDict()
        elif name in ("_parameters", "_buffers"):
            state[name] = {key: memo.get(id(tensor)) for key, tensor in value.items()}
        elif type(value) in _EMPTY and not value:
            state[name] = type(value)()
        else:
            state[name] = value if _is_plain(value) else copy.deepcopy(value, memo)
    return new


def _usable(tensor: Tensor) -> Tensor:
    """The tensor itself, or a copy of one from inference mode, which autograd cannot follow."""
    if not tensor.is_inference():
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


def _is_plain(value: Any) -> bool:
    """Whether it holds nothing that could lead back into the module tree."""
    if type(value) is tuple:
        return all(type(item) in _PLAIN for item in value)
    return type(value) in _PLAIN
