"""A pass whatever the caller is in, which leaves the caller's random state alone."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def undisturbed(device: torch.device, *, gradients: bool) -> Iterator[None]:
    """Autograd on or off, whatever mode the caller is in; the random state is as it was at the end.

    Parameters
    ----------
    device : torch.device
        Where the pass runs; a CUDA device has a random state of its own.
    gradients : bool
        Whether autograd follows the pass.
    """
    with (
        torch.inference_mode(False),
        torch.set_grad_enabled(gradients),
        torch.random.fork_rng(devices=[device] if device.type == "cuda" else []),
    ):
        yield
