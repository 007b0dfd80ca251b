"""What has to be known of a network before its numbers can be trusted: chance, and its batches."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from interp.hooks.undisturbed import SEED, random_state, undisturbed
from interp.models.copies import frozen_copy
from interp.targets import find_logits

# Kernels round a batch in another way than one picture: so much of what pictures differ by is let
# pass, and so much of the largest logit where they hardly differ.
TOLERANCE = 1e-4
ROUNDING = 1e-5


@dataclass(frozen=True)
class Chance:
    """Whether a network in evaluation answers alike when it is asked again.

    Attributes
    ----------
    draws : bool
        It draws from the generators of PyTorch, NumPy or Python, which a seed settles.
    unsteady : float
        By how much two passes of one seed differ, as a share of the largest logit.
    """

    draws: bool
    unsteady: float


def chance_of(module: nn.Module, example: Tensor) -> Chance:
    """Run a network with two seeds, and again with the first where the answers differ.

    Parameters
    ----------
    module : nn.Module
        In evaluation mode; private copies of it run.
    example : Tensor
        Shape (1, 3, h, w): gives size, type and device of the random input.
    """
    picture = next(_pictures(example))
    first, moved = _logits(module, picture, SEED)
    other, moved_again = _logits(module, picture, SEED + 1)
    drew = moved and moved_again  # twice, since another thread may move the generators once
    if not drew and _distance(first, other) == 0:
        return Chance(draws=False, unsteady=0.0)
    again, _ = _logits(module, picture, SEED)
    unsteady = _distance(first, again)
    return Chance(draws=drew or not unsteady, unsteady=unsteady)


def couples_batch(module: nn.Module, example: Tensor) -> bool:
    """Whether the answer for a picture depends on what else is in its batch.

    Also where the network takes one picture at a time. Three unlike inputs, one of them black, run
    as a batch and each alone.
    """
    pictures = torch.cat(list(_pictures(example)))
    alone = torch.cat([_logits(module, picture[None], SEED)[0] for picture in pictures])
    try:
        together, _ = _logits(module, pictures, SEED)
    except torch.OutOfMemoryError:
        raise
    except Exception:  # of whatever kind the network's own code raises: it takes no batch
        return True
    if together.shape != alone.shape:
        return True
    apart = _distance(alone, alone.roll(1, dims=0))
    least = max(ROUNDING, 4 * torch.finfo(alone.dtype).eps)
    return _distance(alone, together) > max(TOLERANCE * min(apart, 1.0), least)


def _pictures(example: Tensor) -> Iterator[Tensor]:
    noise = torch.randn(2, *example.shape[1:], generator=torch.Generator().manual_seed(SEED))
    for values in (noise[:1], 3 * noise[1:] + 1, 0 * noise[:1]):
        yield values.to(example)


def _logits(module: nn.Module, pictures: Tensor, seed: int) -> tuple[Tensor, bool]:
    """Of a fresh copy, since a network may count its passes; and whether generators moved."""
    with (
        undisturbed(pictures.device, gradients=False, seed=seed),
        # What is remembered of the network must not hang on what its first caller was in.
        torch.autocast(pictures.device.type, enabled=False),
    ):
        before = random_state(pictures.device)
        logits, _ = find_logits(frozen_copy(module)(pictures.clone()))
        return logits.detach(), random_state(pictures.device) != before


def _distance(one: Tensor, other: Tensor) -> float:
    """The largest difference, as a share of the largest logit; what is no number counts as equal.

    Infinite where one of them is no number and the other is.
    """
    if not torch.equal(one.isfinite(), other.isfinite()):
        return float("inf")
    one, other = (logits[one.isfinite()].cpu().double() for logits in (one, other))
    difference = (one - other).abs().max() if one.numel() else torch.zeros(())
    if not difference:
        return 0.0
    return float(difference / one.abs().max().clamp(min=torch.finfo(torch.float64).tiny))
