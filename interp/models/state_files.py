"""A state dict from a file, under the names that the net itself gives its tensors."""

import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from interp.errors import WeightsError

_SAVE = "torch.save(net.state_dict(), FILE)"
_WRAPPERS = ("state_dict", "model_state_dict", "model")
# Of DataParallel and AveragedModel, of torch.compile, and of a net that a training loop holds.
_PREFIXES = ("module.", "_orig_mod.", "model.")
_COMPILED = re.compile(r"(?<=\.)_orig_mod\.")  # of a part that was compiled by itself
_COUNT = "n_averaged"  # what AveragedModel keeps beside the net
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")  # what makes text bold in a terminal
_OBJECT = re.compile(
    r"Unsupported (?:global|class)\W+(?:GLOBAL )?([\w.]+)|instantiate class ([\w.]+)"
)


def read_state(path: str | Path) -> dict[str, Tensor]:
    """Read a state dict.

    Parameters
    ----------
    path : a `.safetensors` file, or one written by torch.save: the state dict itself or a
        dictionary that has it under "state_dict", "model_state_dict" or "model".

    Returns
    -------
    dict[str, Tensor]
        On the CPU, without what DataParallel, torch.compile, AveragedModel or a training loop's
        `model` put before every name, in whatever order they were put around the net.

    Raises
    ------
    WeightsError
        There is no such file, or it holds something else.
    """
    path = Path(path)
    if not path.is_file():
        raise WeightsError(f"there is no weights file {path}")
    state: Any
    try:
        if path.suffix == ".safetensors":
            state = load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # the readers raise nearly every kind
        raise _refusal(path, error) from error
    while isinstance(state, dict) and not _is_state(state):
        inner = next((state[key] for key in _WRAPPERS if key in state), None)
        if inner is None:
            break
        state = inner
    if not _is_state(state):
        raise WeightsError(f"{path} holds no state dict: write it with {_SAVE}")
    return unwrapped(state)


def unwrapped(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A state dict without the prefixes of what was put around the net, and their own tensors."""
    inner = {_COMPILED.sub("", name): tensor for name, tensor in state.items()}
    while inner:
        # Only AveragedModel has a count, beside a net that it calls «module».
        net = {name: tensor for name, tensor in inner.items() if name != _COUNT}
        if len(net) < len(inner) and all(name.startswith("module.") for name in net):
            inner = net
        shared = (prefix for prefix in _PREFIXES if all(n.startswith(prefix) for n in inner))
        if (prefix := next(shared, None)) is None:
            break
        inner = {name.removeprefix(prefix): tensor for name, tensor in inner.items()}
    return inner


def one_line(reason: object) -> str:
    """What an error says, in one line."""
    return " ".join(str(reason).split()) or type(reason).__name__


def _is_state(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and bool(value)
        and all(isinstance(k, str) and isinstance(v, Tensor) for k, v in value.items())
    )


def _refusal(path: Path, error: Exception) -> WeightsError:
    """The error for a file that cannot be read, without the reader's advice to run its code."""
    text = one_line(error)
    if "TorchScript" in text:
        return WeightsError(
            f"{path} holds a TorchScript program, which is not opened: save the weights of the net "
            f"that it was scripted from, with {_SAVE}"
        )
    named = _OBJECT.search(text)
    if named or (isinstance(error, pickle.UnpicklingError) and _is_pickle(path)):
        what = f" ({next(filter(None, named.groups()))})" if named else ""
        return WeightsError(
            f"{path} holds a whole pickled network or other objects{what}, which can run code when "
            f"they are read, so it is not opened: save the state dict instead, with {_SAVE}"
        )
    if isinstance(error, pickle.UnpicklingError | KeyError | EOFError):
        text = "it is not what torch.save writes"
    reason = _ESCAPE.sub("", text)[:160]
    return WeightsError(
        f"cannot read weights from {path} ({reason}): write them with {_SAVE}, or delete the file "
        "if its download broke off"
    )


def _is_pickle(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(1) == pickle.PROTO
