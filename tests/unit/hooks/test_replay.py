"""Replays against full passes with the layer's output replaced by a plain PyTorch hook."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchvision import models

from interp.errors import HookError, LayerError
from interp.hooks.ledger import HookLedger, audit
from interp.hooks.replay import Replay, ReplayError


def _picture(*size: int) -> Tensor:
    return torch.randn(*(size or (1, 3, 8, 8)), generator=torch.Generator().manual_seed(1))


def _value(net: nn.Module, x: Tensor, path: str, call: int) -> Tensor:
    """What the layer returns at that call, by a hook of PyTorch's own."""
    return _hooked(net, x, path, call, None)[0]


def _full(net: nn.Module, x: Tensor, path: str, call: int, values: Tensor) -> Tensor:
    """Logits of a full pass for each value, which a hook puts in the layer's place."""
    return torch.cat([_hooked(net, x, path, call, value[None])[1] for value in values])


def _hooked(net: nn.Module, x: Tensor, path: str, call: int, value: Tensor | None) -> Any:
    outputs: list[Tensor] = []

    def hook(module: nn.Module, args: Any, output: Any) -> Any:
        first = output["a"] if isinstance(output, dict) else output
        outputs.append(first.clone())
        if value is None or len(outputs) != call + 1:
            return None
        return {**output, "a": value.clone()} if isinstance(output, dict) else value.clone()

    handle = net.get_submodule(path).register_forward_hook(hook)
    with torch.no_grad():
        logits = net(x.clone())
    handle.remove()
    return outputs[call], logits["logits"] if isinstance(logits, dict) else logits


def _check(
    net: nn.Module, x: Tensor, path: str, call: int, *, rows: int = 3, exact: bool = True
) -> None:
    replay = Replay(net, x, path, call)
    value = _value(net, x, path, call)
    values = value + torch.randn(rows, *value.shape[1:])
    given = values.clone()
    expected = _full(net, x, path, call, values)

    torch.testing.assert_close(replay(values), expected, rtol=1e-4, atol=1e-5)
    assert torch.equal(values, given)
    if exact:
        assert torch.equal(replay.value, value)
        assert torch.equal(replay(value), replay.logits)
    assert expected.std(dim=0).max() > 0  # the layer matters


# --- small nets ---


class Residual(nn.Module):
    """Reuses one module, adds in place, and goes around two of its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.first = nn.Conv2d(4, 4, 3, padding=1)
        self.second = nn.Conv2d(4, 4, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.stem(x))
        y = self.relu(self.first(x))
        y = self.second(y)
        y += x
        y = F.relu(self.relu(y * 2 - 0.3), inplace=True)
        return self.head(y.mean(dim=(2, 3)))


class WritesBefore(nn.Module):
    """Writes over its input, over recorded outputs and a view of one, before the layer and after.

    Rows that share memory would be refused or written over.
    """

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Conv2d(3, 4, 1)
        self.two = nn.Conv2d(4, 4, 1)
        self.three = nn.Conv2d(4, 4, 1)
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        x.mul_(2)
        a = self.one(x)
        a[:, :2].add_(1)
        b = self.two(a)
        c = self.three(b)
        b.relu_()
        c += a
        a -= b
        return self.head((c * a).mean(dim=(2, 3)))


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> dict[str, Any]:
        return {"a": self.a(x), "b": (self.b(x), 0.5)}


class Dicts(nn.Module):
    """Modules that return dicts, one that runs three times, once by keyword, and a dict at last."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.Flatten()
        self.start = nn.Linear(3 * 64, 6)
        self.pair = Pair()
        self.again = nn.Sequential(nn.Linear(6, 6), nn.Tanh())
        self.head = nn.Linear(6, 5)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        found = self.pair(self.start(self.pool(x)))
        y = self.again(found["a"]) + found["b"][0] * found["b"][1]
        y = self.again(y) + y
        y = self.again(input=y)
        return {"logits": self.head(y)}


class Windows(nn.Module):
    """Folds windows into the first dimension, as some transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 1)
        self.norm = nn.LayerNorm(4)
        self.mix = nn.Linear(4, 4)
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        n, c, h, w = x.shape
        windows = self.norm(x.view(n * c, h * w // 4, 4).tanh())
        y = self.mix(windows).view(n, c, h, w)
        return self.head((x * y).mean(dim=(2, 3)))


@pytest.mark.parametrize(
    ("make", "path", "call"),
    [
        (Residual, "stem", 0),
        (Residual, "relu", 0),
        (Residual, "first", 0),
        (Residual, "relu", 1),
        (Residual, "second", 0),
        (Residual, "relu", 2),
        (Residual, "head", 0),
        (WritesBefore, "one", 0),
        (WritesBefore, "two", 0),
        (WritesBefore, "three", 0),
        (Dicts, "start", 0),
        (Dicts, "pair", 0),
        (Dicts, "pair.a", 0),
        (Dicts, "again", 0),
        (Dicts, "again.0", 1),
        (Dicts, "again.1", 2),
        (Windows, "stem", 0),
    ],
)
def test_small_nets(make: Callable[[], nn.Module], path: str, call: int) -> None:
    _check(make().eval(), _picture(), path, call)


def test_only_what_follows_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, int]] = []
    for kind in (nn.Conv2d, nn.Linear, nn.ReLU):

        def forward(part: Any, x: Tensor, own: Any = kind.forward) -> Tensor:
            ran.append((type(part).__name__, len(x)))
            return own(part, x)

        monkeypatch.setattr(kind, "forward", forward)
    replay = Replay(Residual().eval(), _picture(), "second")
    ran.clear()
    replay(replay.value.repeat(7, 1, 1, 1))
    assert ran == [("ReLU", 7), ("Linear", 7)]


def test_a_module_under_two_names_and_one_that_calls_itself() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.flat = nn.Flatten()
            self.one = nn.Linear(192, 192)
            self.other = self.one
            self.inner = nn.Linear(192, 5)

        def forward(self, x: Tensor, depth: int = 2) -> Tensor:
            x = self.flat(x)
            x = self.other(self.one(x).sin())
            return self(x, depth - 1) if depth else self.inner(x)

    for call in range(6):
        net, x = Twice().eval(), _picture()
        replay, value = Replay(net, x, "other", call), _value(net, x, "one", call)
        values = torch.cat([value, value * 0.5, value - 1])
        expected = _full(net, x, "one", call, values)
        torch.testing.assert_close(replay(values), expected, rtol=1e-4, atol=1e-6)


# --- architectures ---

ARCHITECTURES: dict[str, tuple[int, tuple[tuple[str, int], ...]]] = {
    "resnet18": (64, (("conv1", 0), ("layer2.0.bn2", 0), ("layer4.1.relu", 1))),
    "densenet121": (
        64,
        (("features.pool0", 0), ("features.denseblock3.denselayer11.norm2", 0), ("features", 0)),
    ),
    "mobilenet_v3_small": (
        64,
        (("features.0", 0), ("features.5.block.2.fc1", 0), ("features.12.1", 0)),
    ),
    "efficientnet_b0": (
        64,
        (("features.1", 0), ("features.4.1.block.1", 0), ("features.8.0", 0)),
    ),
    "convnext_tiny": (
        64,
        (("features.0", 0), ("features.3.1.block.3", 0), ("features.7.2", 0)),
    ),
    "swin_t": (64, (("features.1.0.norm1", 0), ("features.3.1.mlp.0", 0), ("norm", 0))),
    "vit": (
        64,
        (
            ("encoder.layers.encoder_layer_1.ln_2", 0),
            ("encoder.layers.encoder_layer_2", 0),
            ("encoder.layers.encoder_layer_3.ln_1", 0),
        ),
    ),
    "maxvit": (
        64,
        (
            ("blocks.0.layers.1.layers.window_attention.attn_layer.0", 0),
            ("blocks.1.layers.0.layers.MBconv.layers.conv_b", 0),
            ("blocks.1.layers.0", 0),
        ),
    ),
}


def _untrained(name: str) -> nn.Module:
    """As published but for the two that are slow to build or to run, which are smaller here."""
    if name == "vit":
        vit = models.VisionTransformer(64, 16, 4, 2, 32, 64, num_classes=10)
        nn.init.normal_(vit.heads.head.weight)  # torchvision leaves it at zero
        return vit
    if name == "maxvit":
        return models.MaxVit((64, 64), 8, 2, [8, 16], [2, 2], 8, 0.0, num_classes=10)
    net: nn.Module = getattr(models, name)(weights=None, num_classes=10)
    return net


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_architectures(name: str) -> None:
    torch.manual_seed(0)
    net = _untrained(name).eval()
    side, layers = ARCHITECTURES[name]
    for path, call in layers:
        # PyTorch's fused attention gives other last bits than attention that is hooked.
        exact = name != "vit"
        _check(net, _picture(1, 3, side, side), path, call, rows=2, exact=exact)


def test_a_module_that_returns_a_tuple() -> None:
    torch.manual_seed(0)
    net = models.VisionTransformer(32, 16, 2, 2, 8, 16, num_classes=5).eval()
    nn.init.normal_(net.heads.head.weight)
    x = _picture(1, 3, 32, 32)
    for path in ("encoder.layers.encoder_layer_1.self_attention", "conv_proj", "encoder.ln"):
        replay = Replay(net, x, path)
        assert replay(replay.value.repeat(3, *[1] * (replay.value.dim() - 1))).shape == (3, 5)
        assert not torch.allclose(replay(replay.value * 2), replay.logits)


# --- what it refuses, what it keeps, what it leaves ---


class Odd(nn.Module):
    """A net of which the end cannot be run on its own: `how` says why."""

    def __init__(self, how: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.how = how
        self.flat = nn.Flatten()
        self.one = nn.Linear(192, 6)
        self.head = nn.Linear(6, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.how(self.one(self.flat(x))))


def _one_picture_only(x: Tensor) -> Tensor:
    if len(x) > 1:
        raise ValueError("one picture\nat a time")
    return x


@pytest.mark.parametrize(
    ("how", "why"),
    [
        (_one_picture_only, "ValueError: one picture at a time"),
        (lambda x: x - x.mean(dim=0) + torch.rand_like(x), "its logits are off by"),
        (lambda x: x.flatten()[None, :6].sum(dim=1, keepdim=True).expand(1, 6), "off by inf"),
    ],
)
def test_a_network_that_cannot_be_replayed_is_refused(
    how: Callable[[Tensor], Tensor], why: str
) -> None:
    with pytest.raises(ReplayError, match=why) as raised:
        Replay(Odd(how).eval(), _picture(), "one")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("path", "call", "why"),
    [
        ("again.0", 3, "ran 3 times: no call 3"),
        ("again.0", -1, "ran 3 times: no call -1"),
        ("agian", 0, "no layer «agian» in this model: did you mean again"),
    ],
)
def test_a_layer_that_is_not_there(path: str, call: int, why: str) -> None:
    with pytest.raises(LayerError, match=why):
        Replay(Dicts().eval(), _picture(), path, call)


def test_a_layer_whose_rows_are_windows_is_refused() -> None:
    with pytest.raises(LayerError, match=r"«norm» returns \(4, 16, 4\), which is not one row"):
        Replay(Windows().eval(), _picture(), "norm")


def test_values_of_another_shape_are_refused() -> None:
    replay = Replay(Residual().eval(), _picture(), "stem")
    with pytest.raises(HookError, match=r"\(2, 4, 7, 8\) cannot stand for .*\(1, 4, 8, 8\)"):
        replay(torch.zeros(2, 4, 7, 8))


def test_it_keeps_no_more_than_it_needs() -> None:
    deep = nn.Sequential(
        nn.Sequential(nn.Conv2d(3, 8, 1), nn.Conv2d(8, 8, 1)),
        nn.Conv2d(8, 4, 1),
        nn.Sequential(nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 1), nn.ReLU()),
        nn.Flatten(),
        nn.Linear(256, 5),
    ).eval()
    ledger = HookLedger()
    Replay(deep, _picture(), "2.1", ledger=ledger)
    held = {record.path: record.bytes_held for record in ledger.records if record.bytes_held}
    assert held == {"1": 4 * 64 * 4}  # the input of «2»; nothing inside «0», «2» needs none


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_it_leaves_everything_as_it_was(mode: Any) -> None:
    net, x = Residual(), _picture().requires_grad_()
    net.eval().head.train()
    net.register_forward_hook(lambda *given: None)
    before, names = copy.deepcopy(net.state_dict()), [set(vars(part)) for part in net.modules()]
    random, ledger = torch.get_rng_state(), HookLedger()

    with mode():
        replay = Replay(net, x, "second", ledger=ledger)
        logits = replay(replay.value * 2)
        assert torch.is_inference_mode_enabled() == (mode is torch.inference_mode)
        assert torch.is_grad_enabled() == (mode is torch.enable_grad)

    assert not logits.requires_grad
    assert not logits.is_inference()
    assert torch.equal(torch.get_rng_state(), random)
    assert len(audit(net)) == 1
    assert audit(replay._copy) == audit(net)
    assert ledger.summary() == {"registered": 12, "removed": 12, "live": 0, "foreign": 1}
    assert [set(vars(part)) for part in net.modules()] == names
    assert all(torch.equal(net.state_dict()[name], before[name]) for name in before)
    assert net.head.training
    assert all(parameter.grad is None for parameter in net.parameters())
    assert x.grad is None


def test_after_an_error_in_a_replay_the_next_one_is_right() -> None:
    calls = []

    def how(x: Tensor) -> Tensor:
        calls.append(len(x))
        if len(x) == 3:
            raise ValueError("three")
        return x.sin()

    replay = Replay(Odd(how).eval(), _picture(), "one")
    with pytest.raises(ValueError, match="three"):
        replay(replay.value.repeat(3, 1))
    assert torch.equal(replay(replay.value), replay.logits)
