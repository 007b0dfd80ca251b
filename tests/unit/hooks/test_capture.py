"""`capture`: feature maps and gradients of real nets from one pass, alone, in threads, repeated."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchvision.models import get_model

import interp
from interp.errors import LayerError, TargetError
from interp.hooks.capture import Capture, capture
from interp.hooks.ledger import audit

pytestmark = pytest.mark.filterwarnings("ignore:For backward hooks to be called")

LAYERS = ("features.1.0.block.0.0", "features.3.0", "features.5.1", "features.8", "features.8.0")


@pytest.fixture(scope="module")
def shown(bundled: interp.LoadedModel, coffee: Path) -> Tensor:
    return bundled.prepare(interp.open_picture(coffee))


def _small_net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.Conv2d(4, 4, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 6),
    ).eval()


def _picture(*size: int) -> Tensor:
    size = size or (2, 3, 8, 8)
    return torch.randn(size, generator=torch.Generator().manual_seed(1))


def test_against_autograd_by_hand() -> None:
    net, x = _small_net().double(), _picture().double()
    first = net[0](x).detach().requires_grad_()
    act = F.relu(first)
    second = net[2](act)
    logits = net[6](F.relu(second).mean((2, 3)))
    expected = torch.autograd.grad(logits[:, 4].sum() - logits[:, 1].sum(), [first, act, second])

    for layers in (["0", "1", "2"], ["2", "0", "1"], ["1", "2", "0"]):
        found = capture(net, x, layers, target="4-1")

        assert torch.equal(found.logits, logits)
        assert str(found.target) == "4-1"
        for path, feature_map, gradient in zip("012", (first, act, second), expected, strict=True):
            assert found.calls(path) == 1
            assert torch.equal(found.feature_map(path), feature_map)
            torch.testing.assert_close(found.gradient(path), gradient, rtol=1e-10, atol=1e-14)
    assert (found.feature_map("0") < 0).any()  # not written over by the ReLU behind it
    assert not found.feature_map("0").requires_grad
    assert not found.gradient("0").requires_grad
    assert not found.logits.requires_grad


def test_two_layers_of_equal_shape_keep_their_own_maps() -> None:
    net, x = _small_net(), _picture()
    one, other = capture(net, x, ["0", "2"]), capture(net, x, ["2", "0"])

    assert one.feature_map("0").shape == one.feature_map("2").shape
    assert not torch.equal(one.gradient("0"), one.gradient("2"))
    for path in ("0", "2"):
        assert torch.equal(one.feature_map(path), other.feature_map(path))
        assert torch.equal(one.gradient(path), other.gradient(path))
        assert torch.equal(one.gradient(path), capture(net, x, [path]).gradient(path))


def test_the_target_decides_the_gradient() -> None:
    net, x = _small_net().double(), _picture().double()
    with torch.no_grad():
        logits = net(x)
    top = int(logits[0].argmax())

    by_default = capture(net, x, ["4"])
    assert by_default.target.index == top
    assert torch.equal(by_default.gradient("4"), capture(net, x, ["4"], target=top).gradient("4"))
    probability = capture(net, x, ["4"], target=f"{top}:prob").gradient("4").flatten(1)
    odds = logits.softmax(1)
    jacobian = odds[:, [top]] * (net[6].weight[top] - odds @ net[6].weight)
    torch.testing.assert_close(probability, jacobian)
    with pytest.raises(TargetError, match="no class has the index 6"):
        capture(net, x, ["4"], target=6)


def test_a_single_logit_has_two_classes() -> None:
    net, x = _small_net(), _picture()
    net[6] = nn.Linear(4, 1)

    for_one, for_none = (capture(net, x, ["4"], target=index) for index in (1, 0))

    assert for_one.logits.shape == (2, 2)
    assert torch.equal(for_one.gradient("4"), -for_none.gradient("4"))
    assert torch.equal(for_one.gradient("4").flatten(1), net[6].weight.expand(2, 4))


def test_the_same_module_under_two_paths_and_called_twice() -> None:
    torch.manual_seed(0)
    block = nn.Sequential(nn.Conv2d(3, 3, 3, padding=1), nn.ReLU(inplace=True))
    net = nn.Sequential(block, block, nn.Flatten(), nn.Linear(192, 3)).double()
    x = _picture().double()
    first = F.relu(block[0](x)).detach().requires_grad_()
    second = F.relu(block[0](first))
    expected = torch.autograd.grad(net[3](second.flatten(1))[:, 2].sum(), [first, second])

    found = capture(net, x, ["0", "1", "1.1"], target=2)

    for path in ("0", "1", "1.1"):
        assert found.calls(path) == 2
        for call, (feature_map, gradient) in enumerate(zip((first, second), expected, strict=True)):
            assert torch.equal(found.feature_map(path, call), feature_map)
            torch.testing.assert_close(found.gradient(path, call), gradient)


def test_refusals_say_what_there_is() -> None:
    net, x = _small_net(), _picture()
    found = capture(net, x, ["0", "2"])

    for ask in (found.calls, found.feature_map, found.gradient):
        with pytest.raises(LayerError, match=r"«1» was not captured \(captured: 0, 2\)"):
            ask("1")
    for call in (1, -1):
        with pytest.raises(LayerError, match=f"«0» ran 1 times: there is no call {call}"):
            found.feature_map("0", call)
    with pytest.raises(LayerError, match="no layer «conv»"):
        capture(net, x, ["conv"])
    without = capture(net, x, ["0"], gradients=False)
    with pytest.raises(LayerError, match="or gradients were not asked for"):
        without.gradient("0")
    assert torch.equal(without.feature_map("0"), found.feature_map("0"))


def test_a_bare_module_takes_no_picture(coffee: Path) -> None:
    with pytest.raises(LayerError, match="a bare module takes a tensor"):
        capture(_small_net(), interp.open_picture(coffee), ["0"])


def test_layers_that_return_no_tensor_or_were_not_reached() -> None:
    class Side(nn.Module):
        def forward(self, x: Tensor) -> None: ...

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.side, self.unused = _small_net(), Side(), nn.Linear(2, 2)
            self.ignored = nn.Conv2d(3, 2, 1)

        def forward(self, x: Tensor) -> dict[str, Tensor]:
            self.side(x)
            self.ignored(x)
            return {"logits": self.body(x)}

    found = capture(Net(), _picture(), ["side", "unused", "ignored", "body", ""])

    with pytest.raises(LayerError, match="«side» returns no tensor: choose a layer inside it"):
        found.feature_map("side")
    assert found.calls("unused") == 0
    with pytest.raises(LayerError, match="«unused» ran 0 times"):
        found.feature_map("unused")
    assert found.feature_map("ignored").shape == (2, 2, 8, 8)
    with pytest.raises(LayerError, match=r"no gradient reached «ignored» at call 0: class \d"):
        found.gradient("ignored")
    assert torch.equal(found.gradient(""), found.gradient("body"))


@pytest.mark.parametrize(
    ("name", "layer", "calls"),
    [
        ("resnet18", "layer4.0.relu", 2),
        ("resnet50", "layer4.0.relu", 3),
        ("googlenet", "inception5b", 1),
        ("mobilenet_v3_small", "features.11.block.2.activation", 1),
    ],
)
def test_real_nets_by_a_hook_on_the_tensor(name: str, layer: str, calls: int) -> None:
    torch.manual_seed(0)
    net = (
        get_model(name, weights=None, init_weights=False)
        if name == "googlenet"
        else get_model(name)
    )
    net = net.double().eval()
    x = _picture(1, 3, 64, 64).double()
    expected: list[tuple[Tensor, Tensor]] = []

    def keep(module: Any, args: Any, output: Tensor) -> Tensor:
        output = output.clone()
        output.retain_grad()
        expected.append((output.detach().clone(), output))
        return output.clone()

    handle = net.get_submodule(layer).register_forward_hook(keep)
    net(x)[0, 5].backward()
    handle.remove()
    with torch.no_grad():
        plain = net(x)

    found = capture(net, x, [layer], target=5)

    assert torch.equal(found.logits, plain)
    assert found.calls(layer) == len(expected) == calls
    for call, (feature_map, output) in enumerate(expected):
        assert torch.equal(found.feature_map(layer, call), feature_map)
        torch.testing.assert_close(found.gradient(layer, call), output.grad, rtol=1e-8, atol=1e-18)


def test_auxiliary_heads_are_not_run_in_evaluation() -> None:
    net = get_model("googlenet", init_weights=False, aux_logits=True).eval()

    found = capture(net, _picture(1, 3, 64, 64), ["aux1", "inception5b"])

    assert found.calls("aux1") == 0
    statuses = {record.status for record in found.ledger.records if record.path == "aux1"}
    assert statuses == {"never fired: the module did not run"}


# --- the bundled model ---


def test_a_picture_and_its_tensor_give_the_same(
    bundled: interp.LoadedModel, coffee: Path, shown: Tensor
) -> None:
    by_picture = capture(bundled, interp.open_picture(coffee), ["features.8"], target="espresso")
    by_tensor = capture(bundled, shown, ["features.8"], target="967")

    assert by_picture.target.label == "espresso (967)"
    assert torch.equal(by_picture.gradient("features.8"), by_tensor.gradient("features.8"))
    with torch.no_grad():
        assert torch.equal(by_picture.logits, bundled.module(shown))
    assert audit(bundled.module) == []
    assert not any(parameter.requires_grad for parameter in bundled.module.parameters())
    assert by_picture.ledger.summary() == {"registered": 2, "removed": 2, "live": 0, "foreign": 0}


def test_foreign_hooks_on_a_loaded_model_are_part_of_it() -> None:
    model = interp.load_model("squeezenet1_1", weights="none", device="cpu")
    x = _picture(1, 3, 64, 64)
    plain = capture(model, x, ["features.9"])
    ran: list[int] = []
    model.module.features[3].register_forward_hook(lambda *given: ran.append(1) or given[2] * 0)
    with torch.no_grad():
        expected = model.module(x)
    ran.clear()

    found = capture(model, x, ["features.9"])

    assert ran == [1]
    assert torch.equal(found.logits, expected)
    assert not torch.equal(found.logits, plain.logits)
    assert [hook.path for hook in found.ledger.foreign] == ["features.3"]
    assert found.ledger.summary()["foreign"] == 1


def _same(one: Capture, other: Capture, layer: str) -> bool:
    return (
        torch.equal(one.logits, other.logits)
        and torch.equal(one.feature_map(layer), other.feature_map(layer))
        and torch.equal(one.gradient(layer), other.gradient(layer))
    )


def test_threads_on_one_model_are_bit_identical_to_one(
    bundled: interp.LoadedModel, shown: Tensor
) -> None:
    alone = {layer: capture(bundled, shown, [layer], target=967) for layer in LAYERS}
    threads_before, failures = torch.get_num_threads(), []
    barrier = threading.Barrier(2)

    def work(offset: int) -> None:
        barrier.wait()
        for run in range(20):
            layer = LAYERS[(run + offset) % len(LAYERS)]
            found = capture(bundled, shown, [layer], target=967)
            if not _same(found, alone[layer], layer):
                failures.append(f"{layer} differs")
            if {record.path for record in found.ledger.records} != {layer}:
                failures.append(f"another thread's hooks in the ledger of {layer}")
            if found.ledger.summary()["live"] or found.ledger.summary()["foreign"]:
                failures.append(f"{found.ledger.summary()}")

    workers = [threading.Thread(target=work, args=(offset,)) for offset in (0, 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert failures == []
    assert audit(bundled.module) == []
    assert torch.get_num_threads() == threads_before


def test_fifty_runs_leave_nothing(bundled: interp.LoadedModel, shown: Tensor) -> None:
    layers, small = ["features.3.0", "features.8.0", "features.8"], shown[..., ::4, ::4]

    def run(times: int) -> tuple[int, int]:
        for target in range(times):
            found = capture(bundled, small, layers, target=target)
            assert len(found.ledger.records) == 6
        del found
        return _live_tensors(), tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        tensors, size = run(10)  # the interpreter's own free lists have filled by then
        tensors_after, size_after = run(50)
    finally:
        tracemalloc.stop()

    assert tensors_after == tensors
    assert size_after - size < 200_000  # bytes; the ledgers of 50 runs would take 500 000
    assert audit(bundled.module) == []


def _live_tensors() -> int:
    gc.collect()
    return sum(issubclass(type(thing), Tensor) for thing in gc.get_objects())


def test_a_capture_keeps_only_what_it_offers(bundled: interp.LoadedModel, shown: Tensor) -> None:
    before = _live_tensors()
    found = capture(bundled, shown, ["features.8"], target=967)

    assert _live_tensors() - before == 3  # logits, one map, one gradient
    assert all(r.bytes_held == 1280 * 7 * 7 * 4 for r in found.ledger.records)
