"""Chance in a network, and what of the caller's a map was made in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

import interp
from interp import Lab, Recipe, Step, capture, explain, predict, run_experiment, statistics, sweep
from interp.hooks.passes import forward_pass
from interp.hooks.undisturbed import random_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from interp.picture import Picture

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def espresso(coffee: Path) -> Picture:
    return interp.open_picture(coffee)


class Drops(nn.Module):
    """Dropout that evaluation does not switch off."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(3, 6, 8, 8)
        self.head = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        maps = F.dropout(self.conv(x).relu(), 0.5)
        return self.head(maps.mean((2, 3)))


@pytest.fixture(scope="module")
def drops() -> interp.LoadedModel:
    return interp.load_model(module=Drops(), device="cpu")


def _explained(model: interp.LoadedModel, picture: Picture) -> Any:
    found = explain(model, picture, layers="conv")
    return found.map.tolist(), found.logits.tolist()


def _captured(model: interp.LoadedModel, picture: Picture) -> Any:
    found = capture(model, picture, ["conv"])
    return found.logits.tolist(), found.gradient("conv").tolist()


def _swept(model: interp.LoadedModel, picture: Picture) -> Any:
    *_, found = sweep(model, picture, "conv")
    return found.measured.tolist(), found.predicted.tolist(), found.before


def _experimented(model: interp.LoadedModel, picture: Picture) -> Any:
    with Lab(model) as lab:
        lab.sync(Recipe((Step("forward", "conv", "scale", {"factor": 2.0}),)))
        found = run_experiment(lab, picture)
    return found.before.logits.tolist(), found.after.logits.tolist()


ASKS: dict[str, Callable[[interp.LoadedModel, Picture], Any]] = {
    "explain": _explained,
    "predict": predict,
    "capture": _captured,
    "statistics": lambda model, picture: statistics(model, picture).rows,
    "sweep": _swept,
    "lab": _experimented,
    "travel": lambda model, picture: interp.travel(model, picture).rows,
}


@pytest.mark.parametrize("name", ASKS)
def test_a_network_that_draws_answers_alike_whatever_the_callers_state(
    name: str, drops: interp.LoadedModel, espresso: Picture
) -> None:
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        before = random_state(CPU)
        found.append(ASKS[name](drops, espresso))
        assert random_state(CPU) == before
    assert found[0] == found[1]


def test_a_network_that_draws_is_noted_with_its_seed(
    drops: interp.LoadedModel, espresso: Picture, bundled: interp.LoadedModel
) -> None:
    found = explain(drops, espresso, layers="conv")
    (note,) = (note for note in found.notes if "random numbers at every pass" in note)
    assert "of seed 0, and another seed gives another" in note
    assert found.seed == found.manifest()["seed"] == 0
    maps = interp.channel_maps(drops, espresso, "conv")
    assert note in maps.notes
    assert maps.channel(0).manifest()["seed"] == 0
    plain = explain(bundled, espresso)
    assert plain.seed is plain.manifest()["seed"] is None
    assert plain.notes == ()


def test_a_network_that_no_seed_settles_says_so(espresso: Picture) -> None:
    class Own(Drops):
        generator = torch.Generator().manual_seed(1)

        def forward(self, x: Tensor) -> Tensor:
            maps = self.conv(x).relu()
            noise = torch.randn(maps.shape, generator=self.generator)
            return self.head((maps + noise).mean((2, 3)))

    model = interp.load_model(module=Own(), device="cpu")
    notes = explain(model, espresso, layers="conv").notes
    assert any("cannot be repeated exactly" in note for note in notes)


# --- what the caller has switched on ---


@pytest.fixture
def global_hooks() -> Iterator[None]:
    everywhere = nn.modules.module
    handles = [
        everywhere.register_module_forward_hook(lambda module, args, output: None),
        everywhere.register_module_full_backward_hook(lambda module, grads, outs: None),
    ]
    yield
    for handle in handles:
        handle.remove()


@pytest.mark.usefixtures("global_hooks")
def test_global_hooks_are_counted(espresso: Picture) -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 8, 8), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 28 * 28, 2))
    model = interp.load_model(module=net, device="cpu")
    found = explain(model, espresso, layers="0")
    assert found.notes == (
        "2 global module hooks of the caller's process ran too, and may have changed values: "
        "forward 1, full_backward 1.",
    )
    conditions = found.manifest()["conditions"]
    assert conditions["global_hooks"] == {"forward": 1, "full_backward": 1}
    assert found.seed == 0  # one of them might draw


def test_autocast_is_respected_and_noted(bundled: interp.LoadedModel, espresso: Picture) -> None:
    plain = explain(bundled, espresso)
    with torch.autocast("cpu", torch.bfloat16):
        found = explain(bundled, espresso)
        top = predict(bundled, espresso, k=1)
    assert "autocast to bfloat16" in found.notes[0]
    assert found.manifest()["conditions"]["autocast"] == "bfloat16"
    assert plain.manifest()["conditions"]["autocast"] is None
    assert not np.array_equal(found.logits, plain.logits)
    assert top[0].logit == found.predictions[0].logit


def test_a_mode_and_a_default_type_of_the_caller_are_noted(
    bundled: interp.LoadedModel, espresso: Picture
) -> None:
    class Mode(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):  # type: ignore[no-untyped-def]
            return func(*args, **(kwargs or {}))

    torch.set_default_dtype(torch.float64)
    try:
        with Mode():
            found = explain(bundled, espresso)
    finally:
        torch.set_default_dtype(torch.float32)
    assert any("float64 as PyTorch's default type" in note for note in found.notes)
    assert any(note.endswith("Mode.") for note in found.notes)
    assert found.manifest()["conditions"]["default_dtype"] == "float64"


def test_nothing_of_the_callers_makes_no_note(
    bundled: interp.LoadedModel, espresso: Picture
) -> None:
    with torch.inference_mode():
        found = explain(bundled, espresso)
    assert found.notes == ()
    written = json.loads(json.dumps(found.manifest()))
    assert written["manifest_version"] == 1
    assert written["conditions"] == {
        "global_hooks": {},
        "autocast": None,
        "default_dtype": "float32",
        "modes": [],
        "deterministic": False,
        "float32_precision": "highest",
    }


def test_the_engines_own_modes_are_not_the_callers(
    bundled: interp.LoadedModel, espresso: Picture
) -> None:
    with Lab(bundled) as lab:
        found = run_experiment(lab, espresso)
    assert found.before.attribution.manifest()["conditions"]["modes"] == []
    assert found.after.attribution.notes == ()


def test_an_experiment_compares_two_passes_of_the_same_surroundings(
    drops: interp.LoadedModel, bundled: interp.LoadedModel, espresso: Picture
) -> None:
    with Lab(bundled) as lab:
        run_experiment(lab, espresso)
        with torch.autocast("cpu", torch.bfloat16):
            found = run_experiment(lab, espresso)
    assert np.array_equal(found.before.logits, found.after.logits)
    assert "autocast to bfloat16" in found.notes[0]
    with Lab(drops) as lab:
        found = run_experiment(lab, espresso)
    assert np.array_equal(found.before.logits, found.after.logits)
    assert "random numbers at every pass" in found.notes[0]


# --- what the README says of the last bit ---


def _live(name: str) -> interp.LoadedModel:
    model = interp.load_model(name, weights="none", device="cpu")
    for path, part in model.module.named_modules():
        if isinstance(part, nn.Linear) and path.rpartition(".")[0] in ("", "heads", "head"):
            nn.init.normal_(part.weight, std=0.05)  # an untrained ViT's is zero
    return model


@pytest.mark.parametrize(
    ("name", "layers", "plain_is_fused"),
    [
        ("vit_b_16", ["encoder.layers.encoder_layer_5", "encoder.ln"], True),
        ("swin_t", ["features.1", "norm"], False),
        ("resnet18", ["layer1", "layer4.1.relu"], False),
    ],
)
def test_every_pass_has_the_same_logits_to_the_last_bit(
    name: str, layers: list[str], plain_is_fused: bool, espresso: Picture
) -> None:
    model = _live(name)
    tensor = model.prepare(espresso)
    with torch.no_grad():
        plain = model.module(tensor)
    hooked = capture(model, tensor, layers).logits
    with forward_pass(model.module, tensor, (), gradients=False) as run:
        assert torch.equal(run.logits, hooked)
    assert torch.equal(capture(model, tensor, layers, gradients=False).logits, hooked)
    assert np.array_equal(statistics(model, espresso).logits, hooked[0].numpy())
    scores = {top.index: top.logit for top in predict(model, espresso, k=1000)}
    assert torch.equal(torch.tensor([scores[i] for i in range(1000)]), hooked[0])
    # A plain pass of a ViT takes PyTorch's fused attention, which no hook can look into.
    off = float((plain - hooked).abs().max() / hooked.abs().max())
    assert off < 1e-5
    assert bool(off) is plain_is_fused
    with torch.enable_grad():
        followed = model.module(tensor.clone().requires_grad_())
    assert torch.equal(followed.detach(), hooked)
