"""The dry run that a script is written from leaves nothing behind."""

from __future__ import annotations

import torch
from lab_nets import Plain, load
from torch import Tensor

from interp.hooks.places import find_places


class _Noisy(Plain):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + 0 * torch.rand(1)


def test_a_network_that_draws_numbers_leaves_the_random_state_alone() -> None:
    model = load(_Noisy())
    before = torch.get_rng_state()

    places = find_places(model, ["fc"])

    assert places["fc"].outputs == ()
    assert torch.equal(torch.get_rng_state(), before)
