"""A module that copied itself, held against the original: the same parts, tensors and modes."""

from typing import Any

from torch import Tensor, nn

from interp.errors import ModelError
from interp.models.belongings import TABLES
from interp.models.leads import PLAIN
from interp.models.memo import Memo


def settle(module: nn.Module, new: nn.Module, memo: Memo) -> list[tuple[nn.Module, nn.Module]]:
    """Give a copy made by a class's own `__deepcopy__` what it lost on the way.

    Modes, tensors and plain attributes become those of the original.

    Returns
    -------
    list of (nn.Module, nn.Module)
        Each part of the original and its copy.

    Raises
    ------
    ModelError
        It has other parts than the original, or shares one with it.
    """
    theirs = list(module.named_modules(remove_duplicate=False))
    ours = list(new.named_modules(remove_duplicate=False))
    if _kinds(theirs) != _kinds(ours):
        raise _other(module, "that has other parts")
    pairs = [(part, own) for (_, part), (_, own) in zip(theirs, ours, strict=True)]
    for part, own in pairs:
        if part is own:
            raise _other(module, f"that shares a {type(part).__name__} with the original")
        memo[id(part)] = own
        for name in ("_parameters", "_buffers"):
            if list(vars(part)[name]) != list(vars(own)[name]):
                raise _other(module, f"whose {name[1:]} have other names")
            tensors = vars(part)[name].items()
            vars(own)[name] = {key: None if t is None else memo.tensors(t) for key, t in tensors}
        for name, value in vars(part).items():
            if name not in TABLES and (type(value) in PLAIN or isinstance(value, Tensor)):
                vars(own)[name] = memo.of(value)
    return pairs


def _kinds(parts: list[tuple[str, nn.Module]]) -> list[tuple[str, type]]:
    return [(path, type(part)) for path, part in parts]


def _other(module: nn.Module, how: str) -> ModelError:
    kind: Any = type(module).__name__
    return ModelError(
        f"the class {kind} copies itself (__deepcopy__) into a network {how}: a private copy would "
        "be another network. Remove that method, or let it copy all of the module"
    )
