"""A private module tree that is the same network."""

import copy
from collections import OrderedDict
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.fx import Graph, GraphModule
from torch.fx.graph_module import _WrappedCall

from interp.errors import ModelError
from interp.hooks.callback import Callback
from interp.hooks.fence import _OWN, Fence
from interp.hooks.shared import SharedParameters
from interp.models.belongings import TABLES
from interp.models.leads import PLAIN
from interp.models.light import HOOK_DICTS, MAKES_WEIGHTS, is_simple, path_copy
from interp.models.memo import CannotFollow, Memo, Uncopied
from interp.models.scripted import Scripted
from interp.models.settled import settle
from interp.models.twins import Beside, Same, Twins

__all__ = ["frozen_copy", "is_simple", "own_copy", "path_copy", "private_copy"]

M = TypeVar("M", bound=nn.Module)

_DONE = {*HOOK_DICTS, "_parameters", "_buffers", "_modules"}


def private_copy(module: M, tensors: Same | None = None) -> M:
    """A new module tree that is the same network as `module`, hooks and all.

    Modes and attributes of the copy are its own. Hooks that the network came with, and functions
    that were set in place of a method, run on the copy as well, bound to its parts where they were
    bound to those of the network; hooks of a `HookSession` stay behind. What cannot be copied and
    leads to no part of the network, such as a lock, is shared. TorchScript is one module.

    Parameters
    ----------
    module : nn.Module
        Any module tree; it is not changed.
    tensors : Same, optional
        What the copy has in place of parameters, buffers and tensors kept as attributes. By default
        the same objects, so that the copy takes no weight memory.

    Returns
    -------
    nn.Module
        Of the same classes, with the same paths and the same state dict.

    Raises
    ------
    ModelError
        A hook or a `forward` that was set leads back to the original in a way that a copy cannot
        follow, or the class copies itself into another network.
    """
    with torch.inference_mode(False):
        return cast(M, _copy(module, Memo(module, tensors or Same(), _copy)))


def frozen_copy(module: M) -> M:
    """A private copy for a run: nothing of it needs a gradient, nothing written reaches others."""
    return private_copy(module, Twins())


def own_copy(module: M) -> M:
    """A private copy that shares the parameters that need a gradient, so that it arrives there.

    Whatever needs none is a twin: what a run writes to it stays in the copy.
    """
    return private_copy(module, Beside(module))


def _copy(module: nn.Module, memo: Memo) -> nn.Module:
    if id(module) in memo:
        return cast(nn.Module, memo[id(module)])
    if isinstance(module, Scripted | torch.jit.ScriptModule):
        program = vars(module)["program"] if isinstance(module, Scripted) else module
        new: nn.Module = Scripted(program, memo.tensors)
        memo[id(module)] = new
        if isinstance(module, Scripted):
            _carry_hooks(module, new, memo)
        return new
    if isinstance(module, GraphModule):
        return _by_parts(module, object.__new__(_own_class(type(module))), memo)
    if hasattr(type(module), "__deepcopy__"):
        return _as_it_says(module, memo)
    return _by_parts(module, object.__new__(type(module)), memo)


def _by_parts(module: nn.Module, new: nn.Module, memo: Memo) -> nn.Module:
    memo[id(module)] = new
    source, state = _attributes(module), vars(new)
    state.update(source)
    # Children first: an attribute may name a child again, and must then name the child's copy.
    state["_modules"] = children = dict(source["_modules"])
    for name, child in children.items():
        children[name] = None if child is None else _copy(child, memo)
    for name in ("_parameters", "_buffers"):
        tensors = source[name].items() if source[name] else ()
        state[name] = {key: None if t is None else memo.tensors(t) for key, t in tensors}
    for name, value in source.items():
        if type(value) not in PLAIN and name not in _DONE:
            state[name] = _attribute(module, name, value, memo)
    for slot in _slots(type(module)):
        if hasattr(module, slot):
            object.__setattr__(new, slot, _attribute(module, slot, getattr(module, slot), memo))
    _carry_hooks(module, new, memo)
    # What `torch.compile` made runs the original: the copy runs its own code.
    state.pop("_compiled_call_impl", None)
    original = children.get("_orig_mod")
    if original is not None and "dynamo_ctx" in state:
        state["forward"] = original.__call__
    return new


def _slots(kind: type) -> list[str]:
    """Names of the attributes that a class keeps beside its dictionary."""
    named = (vars(base)["__slots__"] for base in kind.__mro__ if "__slots__" in vars(base))
    slots = (name for own in named for name in ([own] if isinstance(own, str) else own))
    return [name for name in slots if not name.startswith("__")]


def _attributes(module: nn.Module) -> dict[str, Any]:
    """The module's own attributes, without what a `HookSession` has put around it."""
    own = vars(module)
    fence = getattr(own.get("_call_impl"), "__self__", None)
    if not isinstance(fence, Fence):
        return own
    kept = {name: value for name, value in own.items() if name not in _OWN} | fence._before
    if isinstance(kept.get("_call_impl"), SharedParameters):
        del kept["_call_impl"]
    return kept


def _attribute(module: nn.Module, name: str, value: Any, memo: Memo) -> Any:
    if name in TABLES:
        return _what_follows(value, memo) if value else type(value)()
    if isinstance(value, Graph):
        if id(value) not in memo:
            memo[id(value)] = copy.deepcopy(value)
        return memo[id(value)]
    try:
        return memo.of(value)
    except CannotFollow as reason:
        message = (
            f"attribute «{name}» of «{type(module).__name__}» {reason}: a private copy of the "
            f"network cannot run it. Remove it, or let it use the module it belongs to"
        )
        if name in ("forward", "_call_impl"):
            raise ModelError(message) from None
        memo[id(value)] = stand_in = Uncopied(message)
        return stand_in


def _what_follows(hooks: dict[int, Any], memo: Memo) -> dict[int, Any]:
    """Hooks that save or load a state, which no run calls: those of the original will do."""
    found = type(hooks)()
    for key, hook in hooks.items():
        try:
            found[key] = memo.where_it_leads(hook)
        except CannotFollow:
            found[key] = hook
    return found


def _carry_hooks(module: nn.Module, new: nn.Module, memo: Memo) -> None:
    """Put the hooks of a module on its copy, under the same keys."""
    ours = set()
    for name in HOOK_DICTS:
        carried: OrderedDict[int, Any] = OrderedDict()
        vars(new)[name] = carried
        hooks = vars(module)[name]
        for key, hook in hooks.items() if hooks else ():
            if isinstance(hook, Callback):
                ours.add(key)
            elif key not in ours:
                carried[key] = _hook(module, hook, memo)
    if not new._backward_hooks:
        new._is_full_backward_hook = None


def _hook(module: nn.Module, hook: Any, memo: Memo) -> Any:
    if isinstance(hook, (bool, *MAKES_WEIGHTS)):
        return hook
    try:
        return memo.where_it_leads(hook)
    except CannotFollow as reason:
        called = getattr(hook, "__qualname__", type(hook).__qualname__)
        raise ModelError(
            f"the network's own hook «{called}» on a {type(module).__name__} {reason}: a private "
            "copy of the network cannot run it. Remove it, or let it use the module it is given"
        ) from None


def _own_class(kind: type) -> type:
    """The class of one graph module for another: compiling its graph anew writes into the class."""
    own = type(kind.__name__, kind.__bases__, dict(vars(kind)))
    wrapped = vars(kind).get("_wrapped_call")
    if wrapped is not None:
        own._wrapped_call = _WrappedCall(own, wrapped.cls_call)  # type: ignore[attr-defined]
    return own


def _as_it_says(module: nn.Module, memo: Memo) -> nn.Module:
    """What the class's own `__deepcopy__` makes, held against the original."""
    for part in module.modules():
        for tensors in (part._parameters, part._buffers, vars(part)):
            held = (t for t in tensors.values() if isinstance(t, Tensor))
            memo.update({id(t): memo.tensors(t) for t in held})
    new = copy.deepcopy(module, memo)
    if new is module:  # it says that it is never copied, and a run would change it
        return _by_parts(module, object.__new__(type(module)), memo)
    for part, own in settle(module, new, memo):
        for name, value in _attributes(part).items():
            if name not in vars(own) or memo.leads_back(vars(own)[name]):
                vars(own)[name] = _attribute(part, name, value, memo)
        _carry_hooks(part, own, memo)
    return new
