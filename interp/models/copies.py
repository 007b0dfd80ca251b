"""A private module tree over shared tensors."""

import copy
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import partial
from types import BuiltinFunctionType, FunctionType
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils.prune import BasePruningMethod
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

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
# PyTorch's own, which compute a weight from its parts: the network is another one without them.
_MAKES_WEIGHTS = (WeightNorm, SpectralNorm, BasePruningMethod)
_DONE = {*HOOK_DICTS, "_parameters", "_buffers", "_modules"}
_PLAIN = {
    *(int, float, str, bool, complex, type(None), type),
    *(torch.dtype, torch.device, torch.Size, FunctionType, BuiltinFunctionType),
}
_KEEPS_NOTHING = ("torch.nn.", "torchvision.", "interp.")
_CONTAINERS = {OrderedDict, dict, set, list, tuple}


def private_copy(module: M) -> M:
    """A new module tree that shares every tensor with `module` and carries none of its hooks.

    Hooks, train flags and attributes of the copy are its own; parameters, buffers and tensors kept
    as plain attributes are the same objects, so the copy takes no weight memory. Of the hooks only
    those stay by which PyTorch computes a weight (weight norm, spectral norm, pruning). What
    cannot be copied, such as a lock, is shared.

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


def path_copy(module: M, paths: Iterable[str]) -> M:
    """A private copy of no more than the modules on the way to `paths`; the others are shared.

    It costs next to nothing, and serves where hooks go on these paths only, no hook stands on
    the module, and `is_simple` holds: else a module could be reached by another way than its path.
    """
    root = _alone(module)
    own = {id(root)}
    for path in paths:
        part: nn.Module = root
        for name in path.split(".") if path else ():
            child = part._modules[name]
            assert child is not None
            if id(child) not in own:
                child = part._modules[name] = _alone(child)
                own.add(id(child))
            part = child
    return root


def is_simple(module: nn.Module) -> bool:
    """Whether modules lead to one another by registered names alone, each by one.

    And whether all are of classes known to keep nothing of a run in evaluation mode: of others a
    run may set attributes or count in buffers, which has to happen to a copy.
    """
    parts = [part for _, part in module.named_modules(remove_duplicate=False)]
    return (
        len(set(map(id, parts))) == len(parts)
        and all(type(part).__module__.startswith(_KEEPS_NOTHING) for part in parts)
        and all(
            name in _DONE or _holds_plain(value)
            for part in parts
            for name, value in vars(part).items()
        )
    )


def _holds_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return not value
    if type(value) in _CONTAINERS:
        return all(_holds_plain(item) for item in value)
    return type(value) in _PLAIN or (isinstance(value, partial) and type(value.func) in _PLAIN)


def _alone(module: M) -> M:
    new = type(module).__new__(type(module))
    state = vars(new)
    state.update(vars(module))
    for name in ("_modules", "_parameters", "_buffers"):
        state[name] = dict(state[name])
    state.update(_without_hooks(state))
    return new


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
            vars(part).update(_without_hooks(vars(part)))
        return whole
    new = type(module).__new__(type(module))
    memo[id(module)] = new
    source, state = vars(module), vars(new)
    state.update(source)
    # Children first: an attribute may name a child again, and must then name the child's copy.
    state["_modules"] = children = dict(source["_modules"])
    for name, child in children.items():
        children[name] = None if child is None else _copy(child, memo)
    state["_parameters"], state["_buffers"] = (
        _tensors(module._parameters),
        _tensors(module._buffers),
    )
    state.update(_without_hooks(source))
    for name, value in source.items():
        kind = type(value)
        if kind in _PLAIN or name in _DONE:
            continue
        state[name] = kind() if kind in _CONTAINERS and not value else _copied(value, memo)
    # What `torch.compile` made runs the original: the copy runs its own code.
    state.pop("_compiled_call_impl", None)
    original = children.get("_orig_mod")
    if original is not None and "dynamo_ctx" in state:
        state["forward"] = original.__call__
    return new


def _tensors(tensors: Mapping[str, Tensor | None]) -> dict[str, Tensor | None]:
    return {name: _usable(tensor) for name, tensor in tensors.items()} if tensors else {}


def _without_hooks(attributes: dict[str, Any]) -> dict[str, Any]:
    hooks: dict[str, Any] = {name: OrderedDict() for name in HOOK_DICTS}
    for key, hook in attributes["_forward_pre_hooks"].items():
        if isinstance(hook, _MAKES_WEIGHTS):
            hooks["_forward_pre_hooks"][key] = hook
    return hooks


def _copied(value: Any, memo: _Memo) -> Any:
    """An attribute for the copy: its own containers and objects, modules of the copy, tensors."""
    kind = type(value)
    if kind not in _CONTAINERS:
        if isinstance(value, nn.Module):
            return _copy(value, memo)
        return _usable(value) if isinstance(value, Tensor) else _deep_copied(value, memo)
    if kind is tuple:
        plain = _PLAIN.issuperset(map(type, value))
        return value if plain else tuple(_copied(item, memo) for item in value)
    if id(value) in memo:
        return memo[id(value)]
    new = memo[id(value)] = kind()
    if isinstance(value, dict):
        new.update((_copied(key, memo), _copied(item, memo)) for key, item in value.items())
    elif isinstance(value, set):
        new.update(_copied(item, memo) for item in value)
    else:
        new.extend(_copied(item, memo) for item in value)
    return new


def _deep_copied(value: Any, memo: _Memo) -> Any:
    if type(value) in _PLAIN:
        return value
    try:
        return copy.deepcopy(value, memo.with_tensors())
    except Exception:  # whatever the caller's class raises: it has to stay what it is
        return value


def _usable(tensor: Tensor | None) -> Tensor | None:
    """The tensor itself, or a copy of one from inference mode, which autograd cannot follow."""
    if tensor is None or not tensor.is_inference():
        return tensor
    with torch.inference_mode(False):
        copied = tensor.clone()
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(copied, requires_grad=tensor.requires_grad)
    return copied


def own_state(module: M) -> M:
    """Give a private copy buffers of its own, so that statistics that a run updates stay in it."""
    copies: dict[int, Tensor] = {}
    for part in module.modules():
        for name, buffer in part._buffers.items():
            if buffer is not None:
                if id(buffer) not in copies:
                    with torch.inference_mode(False):
                        copies[id(buffer)] = buffer.detach().clone()
                part._buffers[name] = copies[id(buffer)]
    return module


def frozen_copy(module: nn.Module) -> nn.Module:
    """A private copy for a run: with buffers of its own, and tensors that need no gradient."""
    return own_state(freeze(private_copy(module)))


def freeze(module: M) -> M:
    """Give a private copy tensors that need no gradient, over the same memory.

    Parameters, and tensors kept as plain attributes. Those that the copy shared keep their own
    flags, whatever is done to those of the copy.
    """
    aliases: dict[int, Tensor] = {}

    def alias(tensor: Tensor) -> Tensor:
        if id(tensor) not in aliases:
            same = tensor.detach()
            is_parameter = isinstance(tensor, nn.Parameter)
            aliases[id(tensor)] = nn.Parameter(same, requires_grad=False) if is_parameter else same
        return aliases[id(tensor)]

    for part in module.modules():
        tables: tuple[dict[str, Any], ...] = (part._parameters, vars(part))
        for tensors in tables:
            for name, value in tensors.items():
                if isinstance(value, Tensor):
                    tensors[name] = alias(value)
    return module
