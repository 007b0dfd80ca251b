"""A private copy of no more than the way to a few layers, for networks where that is enough."""

from collections import OrderedDict
from collections.abc import Iterable
from functools import partial
from types import BuiltinFunctionType, FunctionType
from typing import Any, TypeVar

from torch import nn
from torch.nn.utils.prune import BasePruningMethod
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

from interp.models.belongings import TABLES
from interp.models.leads import PLAIN
from interp.models.memo import CONTAINERS
from interp.models.scripted import Scripted

M = TypeVar("M", bound=nn.Module)

HOOK_DICTS = tuple(name for name in TABLES if "ward" in name)
# PyTorch's own, which compute a weight from its parts: the network is another one without them.
MAKES_WEIGHTS = (WeightNorm, SpectralNorm, BasePruningMethod)
_DONE = {*HOOK_DICTS, "_parameters", "_buffers", "_modules"}
_OTHER_PATHS = (nn.MultiheadAttention, nn.TransformerEncoder, nn.TransformerEncoderLayer)
_KEEPS_NOTHING = ("torch.nn.", "torchvision.", "interp.")


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

    And whether all are of classes known to keep nothing of a run in evaluation mode, without hooks
    of their own: of others a run may set attributes or count in buffers, which has to happen to a
    copy. Attention of PyTorch's takes a faster path, with other last bits, unless all of its
    operations are looked at, which a light pass does not do.
    """
    parts = [part for _, part in module.named_modules(remove_duplicate=False)]
    return (
        len(set(map(id, parts))) == len(parts)
        and all(type(part).__module__.startswith(_KEEPS_NOTHING) for part in parts)
        and not any(isinstance(part, (Scripted, *_OTHER_PATHS)) for part in parts)
        and all(
            _no_own_hooks(value) if name in HOOK_DICTS else name in _DONE or _holds_plain(value)
            for part in parts
            for name, value in vars(part).items()
        )
    )


def _no_own_hooks(hooks: dict[int, Any]) -> bool:
    return not hooks or all(isinstance(hook, MAKES_WEIGHTS) for hook in hooks.values())


def _holds_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return not value
    if type(value) in CONTAINERS:
        return all(_holds_plain(item) for item in value)
    if isinstance(value, FunctionType):
        return value.__closure__ is None and str(value.__module__).startswith(_KEEPS_NOTHING[:2])
    if isinstance(value, partial):
        return all(map(_holds_plain, (value.func, *value.args, *value.keywords.values())))
    return type(value) in PLAIN or type(value) is BuiltinFunctionType


def _alone(module: M) -> M:
    new = object.__new__(type(module))
    state = vars(new)
    state.update(vars(module))
    for name in ("_modules", "_parameters", "_buffers"):
        state[name] = dict(state[name])
    for name in HOOK_DICTS:
        state[name] = OrderedDict(
            (key, hook) for key, hook in state[name].items() if isinstance(hook, MAKES_WEIGHTS)
        )
    return new
