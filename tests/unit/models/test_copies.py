"""Private copies: shared tensors, nothing else in common, and the same function."""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torchvision
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune, spectral_norm, weight_norm

from interp.hooks.ledger import audit
from interp.models.copies import frozen_copy, own_copy, private_copy
from interp.models.efficientnet_lite import efficientnet_lite0
from interp.models.light import is_simple, path_copy


class Base(nn.Module):
    """A convolution and a head; the cases below add to it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4, 3)
        self.extra()
        self.eval()

    def extra(self) -> None: ...

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.norm(self.conv(x)).mean((2, 3)))


def _picture() -> Tensor:
    return torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def _same_function(module: nn.Module, copied: nn.Module) -> None:
    with torch.no_grad():
        assert torch.equal(copied(_picture()), module(_picture()))


def test_tensors_are_shared_and_the_tree_is_not() -> None:
    net = Base()

    copied = private_copy(net)

    assert type(copied) is Base
    assert [path for path, _ in copied.named_modules()] == [p for p, _ in net.named_modules()]
    assert list(copied.state_dict()) == list(net.state_dict())
    assert not set(copied.modules()) & set(net.modules())
    for ours, theirs in zip(copied.parameters(), net.parameters(), strict=True):
        assert ours is theirs
    for ours, theirs in zip(copied.buffers(), net.buffers(), strict=True):
        assert ours is theirs
    copied.train()
    copied.conv.stride = (2, 2)
    assert not net.training
    assert net.conv.stride == (1, 1)


def test_hooks_of_the_network_come_along_and_none_goes_back() -> None:
    net = Base()
    for part in net.modules():
        part.register_forward_hook(lambda module, args, output: output * 2)
        part.register_forward_pre_hook(lambda module, args: None)
        part.register_forward_hook(lambda *given: None, with_kwargs=True, always_call=True)
        part.register_full_backward_hook(lambda *given: None)
        part.register_full_backward_pre_hook(lambda *given: None)
    before = audit(net)

    copied = private_copy(net)
    assert audit(copied) == before
    assert copied.conv._forward_hooks_with_kwargs == net.conv._forward_hooks_with_kwargs
    assert copied.conv._forward_hooks_always_called == net.conv._forward_hooks_always_called
    _same_function(copied, net)
    copied.conv.register_forward_hook(lambda module, args, output: None)

    assert audit(net) == before


def _compute_by_hooks(module: nn.Module, kind: str) -> None:
    if kind == "weight_norm":
        weight_norm(module)
        module.weight_g.data.mul_(2)
    elif kind == "spectral_norm":
        spectral_norm(module)
        module.weight_orig.data.mul_(3)
    elif kind == "prune":
        prune.l1_unstructured(module, "weight", 0.5)
        module.weight_orig.data.mul_(3)
    elif kind == "prune twice":
        prune.l1_unstructured(module, "weight", 0.3)
        prune.random_unstructured(module, "weight", 0.3)
        module.weight_orig.data.mul_(3)
    elif kind == "parametrized weight_norm":
        parametrizations.weight_norm(module)
    elif kind == "parametrized spectral_norm":
        parametrizations.spectral_norm(module)
    else:
        parametrizations.orthogonal(module)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    "kind",
    [
        "weight_norm",
        "spectral_norm",
        "prune",
        "prune twice",
        "parametrized weight_norm",
        "parametrized spectral_norm",
        "parametrized orthogonal",
    ],
)
def test_weights_that_are_computed_on_each_call(kind: str) -> None:
    net = Base()
    # The parts of the weight are set after it was last computed, as a loaded state does.
    _compute_by_hooks(net.conv, kind)
    net.eval()

    copied = private_copy(net)

    _same_function(copied, net)
    assert list(copied.state_dict()) == list(net.state_dict())
    for ours, theirs in zip(copied.parameters(), net.parameters(), strict=True):
        assert ours is theirs


def test_attributes_that_lead_back_into_the_tree_lead_into_the_copy() -> None:
    class Tangled(Base):
        def extra(self) -> None:
            self.__dict__["me"] = self
            self.parts = {"conv": self.conv, "deep": [(self.fc,)]}
            self.method = self.run
            self.partial = functools.partial(self.run)
            self.call = self.conv.__call__
            self.loop: list[Any] = []
            self.loop.append(self.loop)
            self.double: Callable[[Tensor], Tensor] = lambda x: x * 2

        def run(self, x: Tensor) -> Tensor:
            return self.parts["deep"][0][0](x)

        def forward(self, x: Tensor) -> Tensor:
            y = self.call(x) + self.parts["conv"](x)
            return self.me.double(self.method(y.mean((2, 3)))) + self.partial(y.mean((2, 3)))

    net = Tangled()
    copied = private_copy(net)
    calls: list[str] = []
    for path in ("conv", "fc"):
        copied.get_submodule(path).register_forward_hook(
            lambda *given, path=path: calls.append(path)
        )

    _same_function(net, copied)

    assert calls == ["conv", "conv", "fc", "fc"]
    assert copied.me is copied
    assert copied.method.__self__ is copied
    assert copied.loop[0] is copied.loop
    assert copied.loop is not net.loop
    copied.parts.clear()
    assert len(net.parts) == 2


def test_tensors_in_attributes_are_shared_wherever_they_are() -> None:
    class Holding(Base):
        def extra(self) -> None:
            self.table = torch.ones(3)
            self.inside = [torch.ones(2), {"a": (torch.ones(1), nn.Parameter(torch.ones(2)))}]
            self.hidden = (nn.Conv2d(4, 4, 1),)

        def forward(self, x: Tensor) -> Tensor:
            y = self.hidden[0](self.conv(x))
            self.last = {"map": y}  # no leaf: autograd's tensors cannot be deep-copied
            return self.fc(y.mean((2, 3))) + self.table

    net = Holding()
    net(_picture())

    copied = private_copy(net)

    assert copied.table is net.table
    assert copied.inside[0] is net.inside[0]
    assert copied.inside[1]["a"][0] is net.inside[1]["a"][0]
    assert copied.inside[1]["a"][1] is net.inside[1]["a"][1]
    assert copied.last["map"] is net.last["map"]
    assert copied.hidden[0] is not net.hidden[0]
    assert copied.hidden[0].weight is net.hidden[0].weight
    _same_function(net, copied)


def test_what_cannot_be_copied_is_shared() -> None:
    class Locked(Base):
        def extra(self) -> None:
            self.lock = threading.Lock()
            self.results = (number for number in range(3))

    net = Locked()

    copied = private_copy(net)

    assert copied.lock is net.lock
    assert copied.results is net.results
    _same_function(net, copied)


def test_a_module_that_says_how_it_is_copied() -> None:
    class Own(Base):
        def __deepcopy__(self, memo: dict[int, Any]) -> Own:
            new = type(self)()
            memo[id(self)] = new
            new.load_state_dict(self.state_dict())
            new.register_forward_hook(lambda *given: None)
            new.asked = True  # type: ignore[assignment]
            return new

    net = nn.Sequential(Own())
    net[0].register_forward_hook(lambda *given: None)

    copied = private_copy(net)

    assert copied[0].asked
    assert audit(copied) == audit(net)
    _same_function(net, copied)


def test_a_scripted_module() -> None:
    net = nn.Sequential(
        torch.jit.script(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())), nn.Flatten()
    )

    copied = private_copy(net)

    assert copied[0] is not net[0]
    _same_function(net, copied)


def test_a_compiled_module_runs_the_copys_own_code() -> None:
    whole = torch.compile(Base(), backend="eager")
    in_place = Base()
    in_place.compile(backend="eager")

    for net, path in ((whole, "_orig_mod.conv"), (in_place, "conv")):
        copied = private_copy(net)
        calls: list[int] = []
        copied.get_submodule(path).register_forward_hook(lambda *given: calls.append(1))  # noqa: B023
        copied(_picture())
        assert calls == [1]
        _same_function(net, copied)


def test_shared_modules_and_tied_weights_stay_so() -> None:
    shared = nn.Conv2d(3, 3, 1)
    net = nn.Sequential(shared, shared, nn.Conv2d(3, 3, 1))
    net[2].weight = shared.weight

    copied = frozen_copy(net)

    assert copied[0] is copied[1]
    assert copied[2].weight is copied[0].weight
    assert copied[2].weight is not shared.weight
    assert torch._C._is_cow_tensor(shared.weight)
    assert torch._C._is_cow_tensor(copied[0].weight)


def test_an_inference_model_gets_tensors_that_autograd_can_follow() -> None:
    with torch.inference_mode():
        net = Base()
        net.table = torch.ones(2)
        expected = net(_picture())

    with torch.inference_mode():
        copied = private_copy(net)

    assert not any(tensor.is_inference() for tensor in copied.state_dict().values())
    assert not copied.table.is_inference()
    assert [p.requires_grad for p in copied.parameters()] == [
        p.requires_grad for p in net.parameters()
    ]
    x = _picture().requires_grad_()
    assert torch.equal(copied(x), expected)
    copied(x).sum().backward()
    assert x.grad is not None


def test_frozen_parameters_are_twins_and_leave_the_flags_alone() -> None:
    net = Base()
    net.fc.requires_grad_(False)

    net.table = torch.ones(2, requires_grad=True)

    copied = frozen_copy(net)

    assert not any(parameter.requires_grad for parameter in copied.parameters())
    assert not copied.table.requires_grad
    assert net.conv.weight.requires_grad
    assert net.table.requires_grad
    pairs = [*zip(copied.parameters(), net.parameters(), strict=True), (copied.table, net.table)]
    for ours, theirs in pairs:
        # Also those that needed no gradient: a pass sets flags on what modules return.
        assert ours is not theirs
        assert torch._C._is_cow_tensor(ours)
        assert torch._C._is_cow_tensor(theirs)
        assert type(ours) is type(theirs)
    _same_function(net, copied)


def test_statistics_stay_in_the_copy() -> None:
    net = Base()
    tied = net.norm.running_mean
    net.register_buffer("again", tied)
    before = copy.deepcopy(net.state_dict())

    copied = own_copy(net).train()
    copied(_picture() + 5)

    assert copied.again is copied.norm.running_mean
    assert not torch.equal(copied.norm.running_mean, before["norm.running_mean"])
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert copied.conv.weight is net.conv.weight


def test_recurrent_layers_keep_their_flat_weights() -> None:
    net = nn.GRU(4, 5, num_layers=2, batch_first=True)
    x = torch.randn(2, 7, 4)

    copied = private_copy(net)

    assert copied._flat_weights[0] is net._flat_weights[0]
    assert torch.equal(copied(x)[0], net(x)[0])


def test_a_copy_of_a_large_net_takes_no_weight_memory(bundled: Any) -> None:
    copied = private_copy(bundled.module)

    ours = {t.data_ptr() for t in copied.state_dict().values()}
    theirs = {t.data_ptr() for t in bundled.module.state_dict().values()}
    assert ours == theirs
    with torch.no_grad():
        x = torch.randn(1, 3, 224, 224)
        assert torch.equal(copied(x), bundled.module(x))


def test_functional_layers_need_no_copy() -> None:
    # An attribute that is a plain function, or one of a module's class, is the same object.
    class Functional(Base):
        def extra(self) -> None:
            self.act = F.relu

        def forward(self, x: Tensor) -> Tensor:
            return self.fc(self.act(self.conv(x)).mean((2, 3)))

    net = Functional()

    copied = private_copy(net)

    assert copied.act is F.relu
    _same_function(net, copied)


def test_a_path_copy_owns_the_way_to_its_paths_and_shares_the_rest() -> None:
    net = nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), nn.Linear(2, 2))
    copied = path_copy(net, ["0.1"])
    mine, theirs = dict(copied.named_modules()), dict(net.named_modules())
    assert {path for path in mine if mine[path] is theirs[path]} == {"0.0", "1"}
    copied.get_submodule("0.1").register_forward_hook(lambda *given: None)
    assert audit(net) == []
    assert len(audit(copied)) == 1
    x = torch.ones(1, 2)
    assert torch.equal(copied(x), net(x))


def test_simple_is_what_can_be_reached_by_paths_alone() -> None:
    assert is_simple(torchvision.models.resnet18())
    assert is_simple(efficientnet_lite0())
    shared = nn.Linear(2, 2)
    assert not is_simple(nn.Sequential(shared, shared))
    pointing = nn.Sequential(nn.Linear(2, 2))
    pointing.head = [pointing[0]]
    assert not is_simple(pointing)
    bound = nn.Sequential(nn.Linear(2, 2))
    bound.run = bound.forward
    assert not is_simple(bound)


def test_a_class_that_may_keep_something_of_a_run_is_not_simple() -> None:
    class Remembers(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            self.last = x
            return x

    assert not is_simple(nn.Sequential(nn.Linear(2, 2), Remembers()))
    assert not is_simple(torch.ao.quantization.FakeQuantize())
