"""What is found out about a network by running it twice, and in batches."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import interp
from interp.geometry import Preset
from interp.models import conduct, loaded
from interp.models.conduct import Chance

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL = Preset(8, 8, (0.5, 0.5, 0.5), (0.25, 0.25, 0.25), "bilinear")


class Does(nn.Module):
    """A small classifier that does something to its feature maps."""

    def __init__(self, what: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.what = what
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.what(self.conv(x).relu()).mean((2, 3)))


def load(net: nn.Module) -> interp.LoadedModel:
    return interp.load_model(module=net, transforms=SMALL, device="cpu")


def sometimes(x: Tensor) -> Tensor:
    """Stochastic depth that is hardly ever seen to act."""
    return x * (torch.rand(()) > 1e-6)


class AlwaysTrains(nn.Module):
    """Does not hear that it is to be in evaluation mode, as some frozen backbones do not."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def train(self, mode: bool = True) -> AlwaysTrains:
        return self

    def forward(self, x: Tensor) -> Tensor:
        return self.part(x)


DRAWS: dict[str, Callable[[Tensor], Tensor]] = {
    "dropout": lambda x: F.dropout(x, 0.5),
    "dropout left in training": AlwaysTrains(nn.Dropout(0.5)),
    "noise": lambda x: x + torch.randn_like(x),
    "depth by torch": sometimes,
    "depth by hand": lambda x: x * (random.random() > 0.5),
    "noise of numpy": lambda x: x * float(np.random.rand()),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_network_that_draws_random_numbers_is_found(name: str) -> None:
    model = load(Does(DRAWS[name]))
    assert model.chance == Chance(draws=True, unsteady=0.0)
    assert model.seed == 0
    assert model.couples_batch


def test_a_generator_of_its_own_belongs_to_the_copy() -> None:
    # Each pass begins with the generator as it stands, so the answer repeats.
    own = torch.Generator().manual_seed(3)
    before = own.get_state()
    chance = load(Does(lambda x: x + torch.randn(x.shape, generator=own))).chance
    assert chance == Chance(draws=False, unsteady=0.0)
    assert torch.equal(own.get_state(), before)


def test_a_generator_that_starts_anew_at_every_pass_is_no_chance() -> None:
    def same(x: Tensor) -> Tensor:
        return x + torch.randn(x.shape, generator=torch.Generator().manual_seed(3))

    assert load(Does(same)).chance == Chance(draws=False, unsteady=0.0)


COUPLES: dict[str, Callable[[], nn.Module]] = {
    "its own statistics": lambda: Does(nn.BatchNorm2d(4, track_running_stats=False)),
    "left in training": lambda: Does(AlwaysTrains(nn.BatchNorm2d(4))),
    "mean": lambda: Does(lambda x: x - x.mean(0)),
    "largest": lambda: Does(lambda x: x / x.max()),
    "softmax": lambda: Does(lambda x: x.softmax(0)),
    "neighbour": lambda: Does(lambda x: x + x.roll(1, dims=0)),
    "one picture only": lambda: Does(lambda x: x.reshape(1, 4, 8, 8)),
}


@pytest.mark.parametrize("name", COUPLES)
def test_a_network_that_couples_the_pictures_of_a_batch_is_found(name: str) -> None:
    model = load(COUPLES[name]())
    assert model.couples_batch
    assert not model.chance.draws
    assert model.seed is None


def test_a_coupling_beside_a_large_bias_is_found() -> None:
    net = Does(nn.BatchNorm2d(4, track_running_stats=False))
    with torch.no_grad():
        net.head.bias[0] = 3e3
    assert load(net).couples_batch


@pytest.mark.parametrize("norm", [nn.InstanceNorm2d(4), nn.GroupNorm(2, 4), nn.BatchNorm2d(4)])
def test_norms_of_one_picture_couple_nothing(norm: nn.Module) -> None:
    model = load(Does(norm))
    assert not model.couples_batch
    assert model.chance == Chance(draws=False, unsteady=0.0)


@pytest.mark.parametrize("name", ["resnet18", "vit_b_16", "swin_t", "googlenet", "efficientnet_b0"])
def test_torchvisions_nets_neither_draw_nor_couple(name: str) -> None:
    model = interp.load_model(name, weights="none", device="cpu")
    for path, part in model.module.named_modules():
        if isinstance(part, nn.Linear) and path.rpartition(".")[0] in ("", "heads", "classifier"):
            nn.init.normal_(part.weight, std=0.05)  # an untrained ViT's is zero
    assert model.chance == Chance(draws=False, unsteady=0.0)
    assert not model.couples_batch


def test_a_model_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    for name in ("chance_of", "couples_batch"):
        ask = getattr(conduct, name)
        monkeypatch.setattr(loaded, name, lambda *given, ask=ask: asked.append(ask) or ask(*given))
    model = load(Does(nn.ReLU()))
    for _ in range(3):
        assert not model.chance.draws
        assert not model.couples_batch
        assert model.seed is None
    assert len(asked) == 2


def test_the_callers_autocast_is_not_remembered() -> None:
    model = load(Does(nn.ReLU()))
    with torch.autocast("cpu", torch.bfloat16):
        assert not model.couples_batch
        assert not model.chance.draws


def test_a_global_hook_that_draws_is_not_remembered() -> None:
    model = load(Does(nn.ReLU()))
    hook = nn.modules.module.register_module_forward_hook(
        lambda module, args, output: output + torch.randn_like(output)
    )
    try:
        assert model.chance.draws
        assert model.seed == 0
        assert model.couples_batch
    finally:
        hook.remove()
    assert model.chance == Chance(draws=False, unsteady=0.0)
    assert model.seed is None
    assert not model.couples_batch


def test_what_a_network_says_is_no_number_everywhere() -> None:
    assert load(Does(lambda x: x * torch.nan)).chance == Chance(draws=False, unsteady=0.0)
