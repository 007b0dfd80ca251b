"""A pass whatever the caller is in, which leaves the caller's random state alone."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch

SEED = 0
# The generators belong to the whole process: one pass at a time may draw from them.
_drawing = threading.RLock()


@contextmanager
def undisturbed(
    device: torch.device, *, gradients: bool, seed: int | None = SEED
) -> Iterator[None]:
    """Autograd on or off, whatever mode the caller is in; the random state is as it was at the end.

    A network that draws random numbers in evaluation draws the same ones in every pass: two passes
    agree to the last bit, and so does what they are before and after a hook.

    Parameters
    ----------
    device : torch.device
        Where the pass runs; a CUDA or MPS device has a random state of its own.
    gradients : bool
        Whether autograd follows the pass.
    seed : int, optional
        What the generators of PyTorch, NumPy and Python start from. Such passes wait for each
        other. None for a network that is known to draw nothing: its passes need not.
    """
    with (
        torch.inference_mode(False),
        torch.set_grad_enabled(gradients),
        nullcontext() if seed is None else _seeded(device, seed),
    ):
        yield


def random_state(device: torch.device) -> dict[str, Any]:
    """The state of every generator that a pass on the device may draw from, to be compared."""
    state: dict[str, Any] = {
        "python": random.getstate(),
        "numpy": [part.tolist() if hasattr(part, "tolist") else part for part in _numpy_state()],
        "torch": torch.get_rng_state().tolist(),
    }
    if device.type == "cuda":
        state["device"] = torch.cuda.get_rng_state(device).tolist()
    elif device.type == "mps":
        state["device"] = torch.mps.get_rng_state().tolist()
    return state


@contextmanager
def _seeded(device: torch.device, seed: int) -> Iterator[None]:
    with _drawing, torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        python, numpy = random.getstate(), _numpy_state()
        mps = torch.mps.get_rng_state() if device.type == "mps" else None
        random.seed(seed)
        np.random.seed(seed)
        # Not `torch.manual_seed`, which seeds devices whose state is not put back.
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        elif mps is not None:
            torch.mps.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
            if mps is not None:
                torch.mps.set_rng_state(mps)


def _numpy_state() -> Any:
    return np.random.get_state(legacy=True)
