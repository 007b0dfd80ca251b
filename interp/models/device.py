"""Where a net runs."""

import torch
from torch import nn

from interp.errors import ModelError


def choose_device(name: str, module: nn.Module | None = None) -> torch.device:
    """The device of that name.

    Parameters
    ----------
    name : str
        "cpu", "cuda", "cuda:1", "mps"; or "auto", which takes CUDA, then MPS, then the CPU.
    module : nn.Module, optional
        "auto" leaves it where it is.

    Raises
    ------
    ModelError
        There is no such device on this machine.
    """
    counts = {
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "mps": int(torch.backends.mps.is_available()),
        "cpu": 1,
    }
    here = [kind for kind, count in counts.items() if count]
    if name == "auto":
        first = None if module is None else next(module.parameters(), None)
        return torch.device(here[0]) if first is None else first.device
    try:
        device = torch.device(name)
        known = (device.index or 0) < counts.get(device.type, 0)
    except RuntimeError:
        known = False
    if not known:
        raise ModelError(
            f"there is no device {name!r} on this machine: take auto or {' or '.join(here)}"
        )
    return device
