"""The layer that a path names, and what is wrong with it."""

import difflib
from typing import Any

import torch
from torch import nn

from interp.errors import HookError, LayerError


def find(root: nn.Module, path: str) -> nn.Module:
    """The module at a path of a private copy.

    Raises
    ------
    LayerError
        There is none.
    HookError
        It is inside a TorchScript program.
    """
    try:
        module = root.get_submodule(path)
    except AttributeError:
        paths = [name for name, _ in root.named_modules(remove_duplicate=False)]
        raise no_such_layer(path, paths) from None
    if isinstance(module, torch.jit.ScriptModule):
        raise HookError(
            f"layer «{path}» is inside TorchScript, which takes no hooks: hook all of it, or "
            "use the module that it was scripted from"
        )
    return module


def why_it_cannot_fire(root: nn.Module, path: str, module: nn.Module) -> str:
    """Why a hook on a module could never fire; empty where it may."""
    if type(module).forward is nn.Module.forward and "forward" not in vars(module):
        return f"a {type(module).__name__} is never called itself, only what it holds"
    parent, _, name = path.rpartition(".")
    if name == "out_proj" and isinstance(find(root, parent), nn.MultiheadAttention):
        return "MultiheadAttention uses this layer's weights and never calls it"
    return ""


def no_such_layer(path: str, known: Any) -> LayerError:
    """The error for a path that is no module's, with the nearest that are."""
    close = difflib.get_close_matches(path, [name for name in known if name], n=3, cutoff=0.3)
    if close:
        return LayerError(f"no layer «{path}» in this model: did you mean {' or '.join(close)}?")
    tops = ", ".join(dict.fromkeys(name.partition(".")[0] for name in known if name))
    if not tops:
        return LayerError(
            f"no layer «{path}» in this model, which is one piece: if it is TorchScript, which "
            "takes no hooks, load the module that it was scripted from"
        )
    return LayerError(f"no layer «{path}» in this model: its parts are {tops}")
