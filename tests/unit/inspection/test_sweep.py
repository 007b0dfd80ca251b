"""The channel sweep against hand-worked drops and against a naive loop of full passes."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import interp
from interp.errors import HookError, LayerError, PictureError, TargetError
from interp.hooks.ledger import audit
from interp.inspection import sweep as swept
from interp.inspection.sweep import Sweep, sweep
from interp.picture import Picture, open_picture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from interp import LoadedModel


@pytest.fixture(scope="module")
def espresso(coffee: Path) -> Picture:
    return open_picture(coffee)


class Linear(nn.Module):
    """Channel c is (c − 1) everywhere on 2 × 2 places, whatever the picture; scores by a matrix.

    `WEIGHTS[k, c, place]` says what it adds to score k.
    """

    WEIGHTS = torch.tensor(
        [
            [[1.0, 2, 3, 4], [5, 6, 7, 8], [-1, 0, 1, 0], [1, 1, 0, -3]],
            [[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, -2, -2], [0.5, 0, 0, 0]],
        ]
    )

    def __init__(self, size: int = 2) -> None:
        super().__init__()
        self.flat = nn.AdaptiveAvgPool2d(size)
        self.maps = nn.Conv2d(3, 4, 1)
        self.maps.weight.data.zero_()
        self.maps.bias.data = torch.tensor([-1.0, 0, 1, 2])
        self.head = nn.Linear(16, 2)
        self.head.weight.data = self.WEIGHTS.reshape(2, 16).clone()
        self.head.bias.data = torch.tensor([0.5, -0.5])

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.maps(self.flat(x)).flatten(1))


class Ramp(Linear):
    """Channel c has the values (c − 1) + 0, 1, 2, 3 on its places."""

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.ramp(self.maps(self.flat(x))).flatten(1))

    def __init__(self) -> None:
        super().__init__()
        self.ramp = Plus()


class Plus(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.arange(4.0).reshape(1, 1, 2, 2)


def _load(net: nn.Module) -> LoadedModel:
    return interp.load_model(module=net.eval(), categories=("cat", "dog"))


def _last(reports: Iterable[Sweep]) -> Sweep:
    *_, last = reports
    return last


# --- exact values ---


def test_drops_of_a_linear_net_are_exact(espresso: Picture) -> None:
    found = _last(sweep(_load(Linear()), espresso, "maps", target="cat"))
    # (c − 1) × the sum of the channel's weights: −1 × 10, 0 × 26, 1 × 0, 2 × −1
    assert found.measured.tolist() == [-10, 0, 0, -2]
    assert found.predicted.tolist() == [-10, 0, 0, -2]
    assert found.rank_correlation == 1.0
    assert found.before == -10 + 0 + 0 - 2 + 0.5
    assert found.order().tolist() == [0, 3, 1, 2]
    assert (found.total, found.complete, found.notes) == (4, True, ())
    assert found.maps[:, 0, 0].tolist() == [-1, 0, 1, 2]


def test_a_contrast(espresso: Picture) -> None:
    found = _last(sweep(_load(Linear()), espresso, "maps", target="cat - dog"))
    # the drops of «dog» are −1 × 0, 0 × 4, 1 × 0, 2 × 0.5
    assert found.measured.tolist() == found.predicted.tolist() == [-10, 0, 0, -3]
    assert found.target.label == "cat (0) − dog (1)"


def test_to_the_mean(espresso: Picture) -> None:
    found = _last(sweep(_load(Ramp()), espresso, "ramp", target=0, to="mean"))
    # Σ weight × (place − 1.5): 1·−1.5 + 2·−0.5 + 3·0.5 + 4·1.5, and so on
    assert found.measured.tolist() == found.predicted.tolist() == [5.0, 5.0, 2.0, -6.5]
    zero = _last(sweep(_load(Ramp()), espresso, "ramp", target=0))
    assert zero.measured.tolist() == [5 + 0.5 * 10, 5 + 1.5 * 26, 2 + 0, -6.5 - 3.5]


def test_a_probability(espresso: Picture) -> None:
    net = Linear()
    net.head.weight.data *= 0.1
    found = _last(sweep(_load(net), espresso, "maps", target="cat:prob"))
    both = {None: (-1.2 + 0.5, 0.1 - 0.5), 0: (-0.2 + 0.5, 0.1 - 0.5), 3: (-1 + 0.5, -0.5)}
    odds = {c: 1 / (1 + np.exp(dog - cat)) for c, (cat, dog) in both.items()}
    np.testing.assert_allclose(found.before, odds[None], rtol=1e-6)
    expected = [odds[None] - odds[0], 0, 0, odds[None] - odds[3]]
    np.testing.assert_allclose(found.measured, expected, atol=1e-7)
    slope = odds[None] * (1 - odds[None])
    np.testing.assert_allclose(found.predicted, [slope * -1, 0, 0, slope * -0.3], atol=1e-7)


def test_a_vector(espresso: Picture) -> None:
    found = _last(sweep(_load(Linear()), espresso, "head", target="dog"))
    assert found.measured.tolist() == found.predicted.tolist() == [0, 0.5]
    assert found.maps.shape == (2, 1, 1)
    assert found.rank_correlation == 1.0


# --- a real network ---


def _naive(model: LoadedModel, picture: Picture, found: Sweep, channels: list[int]) -> list[float]:
    """Drops by a full pass each, with a hook of PyTorch's own on a deep copy."""
    net = copy.deepcopy(model.module)
    layer, shown = net.get_submodule(found.path), model.prepare(picture)
    calls: list[int] = []

    def silence(channel: int | None) -> float:
        calls.clear()

        def hook(module: Any, args: Any, output: Tensor) -> Tensor | None:
            calls.append(1)
            if channel is None or len(calls) != found.call + 1:
                return None
            new = output.clone()
            new[:, channel] = 0 if found.to == "zero" else output[:, channel].mean()
            return new

        handle = layer.register_forward_hook(hook)
        with torch.no_grad():
            score = found.target.score(net(shown))
        handle.remove()
        return float(score)

    before = silence(None)
    return [before - silence(channel) for channel in channels]


@pytest.mark.parametrize(
    ("path", "target", "to"),
    [
        ("features.8", None, "zero"),
        ("features.7.0.block.1", "espresso", "mean"),
        ("features.6.0", "espresso-cup", "zero"),
        ("features.8.0", "espresso:prob", "zero"),
    ],
)
def test_drops_are_those_of_full_passes(
    bundled: LoadedModel, espresso: Picture, path: str, target: str | None, to: str
) -> None:
    found = _last(sweep(bundled, espresso, path, target=target, to=to))
    some = [int(c) for c in found.order()[[0, 1, 2, 3, 40, -40, -2, -1]]]
    expected = _naive(bundled, espresso, found, some)
    np.testing.assert_allclose(found.measured[some], expected, atol=1e-4)
    assert np.abs(expected).max() > 1e-3
    assert not found.notes


def test_the_channel_ranked_first_matters_more_than_the_median(
    bundled: LoadedModel, espresso: Picture
) -> None:
    found = _last(sweep(bundled, espresso, "features.8"))
    assert found.target.label == "espresso (967)"
    first = int(found.predicted.argmax())
    drop = _naive(bundled, espresso, found, [first])[0]
    assert drop > 0.1
    assert drop > np.median(found.measured)
    assert found.total == len(found.measured) == 1280
    assert found.rank_correlation == pytest.approx(1.0, abs=1e-3)  # pooling and a linear layer


def test_it_grows_batch_by_batch_and_leaves_nothing_when_left(
    bundled: LoadedModel, espresso: Picture
) -> None:
    reports = sweep(bundled, espresso, "features.8")
    first, second = next(reports), next(reports)
    assert 0 < len(first.channels) < len(second.channels) < first.total
    assert not second.complete
    np.testing.assert_array_equal(second.measured[: len(first.measured)], first.measured)
    assert second.channels.tolist() == list(range(len(second.measured)))
    assert second.ledger.summary()["live"] == 0
    assert not torch.is_inference_mode_enabled()
    assert torch.is_grad_enabled()
    reports.close()
    assert second.ledger.summary()["live"] == 0
    assert audit(bundled.module) == []


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_every_grad_mode(espresso: Picture, mode: Any) -> None:
    model = _load(Linear())
    with mode():
        reports = sweep(model, espresso, "maps", target="cat")
        found = _last(reports)
        assert torch.is_inference_mode_enabled() == (mode is torch.inference_mode)
    assert found.measured.tolist() == found.predicted.tolist() == [-10, 0, 0, -2]


# --- full passes, where nothing can be replayed ---


class OneAtATime(Linear):
    def forward(self, x: Tensor) -> Tensor:
        assert len(x) == 1, "one picture at a time"
        return super().forward(x)


def test_full_passes_take_over_and_say_so(
    espresso: Picture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swept, "FULL_PASSES", 3)
    model = _load(OneAtATime())
    reports = list(sweep(model, espresso, "maps", target="cat"))
    assert [len(report.channels) for report in reports] == [3, 4]
    last = reports[-1]
    assert last.measured.tolist() == [-10, 0, 0, -2]
    (note,) = last.notes
    assert note.startswith("Every channel took a full pass: what follows «maps» cannot be run")
    assert "one picture at a time" in note
    put = [r for r in last.ledger.records if r.purpose == "puts the silenced value there"]
    assert [(r.kind, r.path, r.fires, r.status) for r in put] == [
        ("forward", "maps", 4, "removed"),
        ("forward", "maps", 2, "removed"),
    ]
    assert last.ledger.summary()["live"] == 0
    assert audit(model.module) == []


def test_full_passes_give_the_drops_of_replays(
    bundled: LoadedModel, espresso: Picture, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = next(sweep(bundled, espresso, "features.7.0.block.1.1"))

    def refuse(*given: Any) -> None:
        raise swept.ReplayError("not today")

    monkeypatch.setattr(swept, "Replay", refuse)
    reports = sweep(bundled, espresso, "features.7.0.block.1.1")
    found = next(reports)
    reports.close()
    count = len(found.measured)
    np.testing.assert_allclose(found.measured, expected.measured[:count], atol=2e-5)


# --- networks whose pictures of a batch change each other's answers ---


class Coupled(nn.Module):
    """Something that couples a batch, then a layer, then the scores."""

    def __init__(self, what: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.maps = nn.Conv2d(3, 6, 8, 8)
        self.what = what
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.what(self.maps(x)).relu().mean((2, 3)))


COUPLING: dict[str, tuple[Callable[[], Callable[[Tensor], Tensor]], str]] = {
    "batch statistics": (lambda: nn.BatchNorm2d(6, track_running_stats=False), "run on its own"),
    "largest": (lambda: lambda x: x / x.abs().max(), "run on its own"),
    "mean": (lambda: lambda x: x - 0.5 * x.mean(0), "run on its own"),
    "softmax": (lambda: lambda x: x.softmax(0) + x, "took a full pass"),
    "one picture only": (lambda: lambda x: x.reshape(1, 6, 28, 28), "took a full pass"),
    "dropout": (lambda: lambda x: F.dropout(x, 0.5), "took a full pass"),
}


@pytest.mark.parametrize("name", COUPLING)
def test_drops_where_a_batch_is_coupled_are_those_of_one_at_a_time(
    espresso: Picture, name: str
) -> None:
    what, words = COUPLING[name]
    model = interp.load_model(module=Coupled(what()), device="cpu")
    found = _last(sweep(model, espresso, "maps", target=1))
    tensor = model.prepare(espresso)

    def score(channel: int | None) -> float:
        def silence(module: nn.Module, args: Any, output: Tensor) -> Tensor:
            output = output.clone()
            output[:, [] if channel is None else [channel]] = 0
            return output

        net = copy.deepcopy(model.module)
        net.get_submodule("maps").register_forward_hook(silence)
        torch.manual_seed(0)
        with torch.no_grad():
            return float(net(tensor)[0, 1])

    before = score(None)
    np.testing.assert_allclose(found.before, before, atol=1e-6)
    alone = [before - score(channel) for channel in range(6)]
    np.testing.assert_allclose(found.measured, alone, atol=1e-6)
    assert any(words in note for note in found.notes)


def test_a_network_that_couples_nothing_is_run_in_batches(espresso: Picture) -> None:
    model = interp.load_model(module=Coupled(nn.InstanceNorm2d(6)), device="cpu")
    assert _last(sweep(model, espresso, "maps")).notes == ()


# --- what is refused ---


@pytest.mark.parametrize(
    ("choices", "kind", "why"),
    [
        ({"path": "mapz"}, LayerError, "no layer «mapz»"),
        ({"path": "maps", "call": 1}, LayerError, "no call 1"),
        ({"path": "maps", "fit": "zoom"}, PictureError, "no fit «zoom»"),
        ({"path": "maps", "to": "noise"}, HookError, "«noise»: there are zero, mean"),
        ({"path": "maps", "target": "bird"}, TargetError, "no class is named «bird»"),
    ],
)
def test_refusals_come_at_once(
    espresso: Picture, choices: dict[str, Any], kind: type[Exception], why: str
) -> None:
    with pytest.raises(kind, match=why):
        sweep(_load(Linear()), espresso, **choices)


def test_a_layer_that_the_target_does_not_depend_on(espresso: Picture) -> None:
    class Aside(Linear):
        def __init__(self) -> None:
            super().__init__()
            self.aside = nn.Conv2d(4, 3, 1)

        def forward(self, x: Tensor) -> Tensor:
            maps = self.maps(self.flat(x))
            self.aside(maps)
            return self.head(maps.flatten(1))

    *_, found = sweep(_load(Aside()), espresso, "aside")
    assert found.measured.tolist() == found.predicted.tolist() == [0.0, 0.0, 0.0]
    assert found.rank_correlation is None
    assert any("no gradient reached «aside»" in note for note in found.notes)
