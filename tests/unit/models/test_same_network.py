"""A private copy is the same network: hostile little nets, each against itself run plainly."""

from __future__ import annotations

import copy
import functools
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import torchvision
from torch import Tensor, nn
from torchvision.models.feature_extraction import create_feature_extractor

from interp import HookSession, capture, load_model
from interp.errors import HookError, LayerError, ModelError
from interp.hooks.ledger import audit
from interp.models.copies import frozen_copy, own_copy, private_copy
from interp.models.layer_info import find_layer, recommended_layer
from interp.models.light import is_simple

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"
)
STORE: dict[str, Tensor] = {}
COPIES = [private_copy, frozen_copy, own_copy]


class Base(nn.Module):
    """A convolution, a norm and a head; each case below turns it into something hostile."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4, 3)
        with torch.no_grad():
            assert self.norm.running_mean is not None
            self.norm.running_mean.fill_(0.3)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.norm(self.conv(x)).relu().mean((2, 3)))


def _picture(seed: int = 1, side: int = 8) -> Tensor:
    return torch.randn(1, 3, side, side, generator=torch.Generator().manual_seed(seed))


def _state(net: nn.Module) -> dict[str, Any]:
    tensors = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    for path, part in net.named_modules():
        tensors |= {f"{path} training": torch.tensor(part.training)}
        for name in ("_forward_pre_hooks", "_forward_hooks", "_backward_hooks"):
            hooks = vars(part)[name]
            tensors |= {f"{path} {name} {key}": hook for key, hook in hooks.items()}
    return tensors


@contextmanager
def unchanged(net: nn.Module) -> Iterator[None]:
    """The caller's network is bit for bit what it was, hooks and modes included."""
    before = _state(net)
    yield
    after = _state(net)
    assert list(before) == list(after)
    for name, value in before.items():
        same = torch.equal(value, after[name]) if isinstance(value, Tensor) else None
        assert (value is after[name]) if same is None else same, name


def _expected(make: Callable[[], nn.Module], *pictures: Tensor) -> list[Tensor]:
    """The logits of a network of its own that nothing of ours has touched."""
    net = make()
    with torch.no_grad():
        return [net(picture) for picture in pictures]


def check(make: Callable[[], nn.Module]) -> nn.Module:
    """Logits of every kind of copy, of a copy's copy, of a session and of a loaded model."""
    first, second = _picture(1), _picture(2)
    expected = _expected(make, first, second)
    net = make()
    copiers: list[Callable[[nn.Module], nn.Module]] = [
        *COPIES,
        lambda one: frozen_copy(private_copy(one)),
    ]
    for copier in copiers:
        net = make()
        with unchanged(net), torch.no_grad():
            copied = copier(net)
            if copier is private_copy:  # shares its tensors, so that a write would arrive
                copied = frozen_copy(copied)
            assert torch.equal(copied(first), expected[0])
            assert torch.equal(copied(second), expected[1])
            assert not set(map(id, copied.modules())) & set(map(id, net.modules()))
    return net


# --- hooks of the network ---


def _normalise(module: nn.Module, args: Any) -> Any:
    return ((args[0] - 0.5) / 0.2,)


def _with_pre_hook() -> nn.Module:
    net = Base()
    net.register_forward_pre_hook(_normalise)
    return net


def _with_kwargs() -> nn.Module:
    net = Base()
    net.conv.register_forward_pre_hook(lambda m, a, k: ((a[0] * 2,), k), with_kwargs=True)
    net.conv.register_forward_hook(lambda m, a, k, o: o + 1, with_kwargs=True, always_call=True)
    return net


def _bound() -> nn.Module:
    class Bound(Base):
        def keep(self, module: nn.Module, args: Any, output: Any) -> None:
            self.kept = output

        def forward(self, x: Tensor) -> Tensor:
            self.conv(x)
            return self.fc(self.norm(self.kept).mean((2, 3)))

    net = Bound()
    net.conv.register_forward_hook(net.keep)
    return net


def _partial() -> nn.Module:
    class Stores(Base):
        def forward(self, x: Tensor) -> Tensor:
            self.conv(x)
            return self.fc(self.store["map"].mean((2, 3)))

    def keep(store: dict[str, Tensor], module: nn.Module, args: Any, output: Any) -> None:
        store["map"] = output

    net = Stores()
    net.store = {}
    net.conv.register_forward_hook(functools.partial(keep, net.store))
    return net


def _closure() -> nn.Module:
    class Kept(Base):
        def forward(self, x: Tensor) -> Tensor:
            self.conv(x)
            return self.fc(self.norm(self.kept).mean((2, 3)))

    net = Kept()

    def keep(module: nn.Module, args: Any, output: Any) -> None:
        net.kept = output

    net.conv.register_forward_hook(keep)
    return net


def _global() -> nn.Module:
    net = _closure()
    net.conv._forward_hooks.clear()
    names: dict[str, Any] = {"net": net, "__builtins__": __builtins__}
    exec("def helper(o):\n    net.kept = o\ndef keep(m, a, o):\n    helper(o)", names)
    net.conv.register_forward_hook(names["keep"])
    return net


def _object() -> nn.Module:
    class Adds:
        def __init__(self, layer: nn.Module) -> None:
            self.layer = layer
            self.later = lambda x: self.layer(x) + 1

        def __call__(self, module: nn.Module, args: Any, output: Tensor) -> Tensor:
            return output + self.later(output)

    net = Base()
    net.conv.register_forward_hook(Adds(net.norm))
    return net


def _weak() -> nn.Module:
    net = Base()
    me = weakref.ref(net)
    near = weakref.proxy(net.norm)
    net.conv.register_forward_hook(lambda m, a, o: me().norm(o) + near(o))  # type: ignore[misc]
    return net


def _constant() -> nn.Module:
    net = Base()
    bias = net.fc.bias.detach()
    net.fc.register_forward_hook(lambda m, a, o: o + bias)
    return net


HOOKED = [_with_pre_hook, _with_kwargs, _bound, _partial, _closure, _global, _object, _weak]


@pytest.mark.parametrize("make", [*HOOKED, _constant])
def test_hooks_of_the_network_run_on_the_copy(make: Callable[[], nn.Module]) -> None:
    net = check(make)
    plain = Base()
    with torch.no_grad():
        assert not torch.equal(make()(_picture()), plain(_picture()))
    assert not is_simple(net)
    with HookSession(net) as session, torch.no_grad():
        assert torch.equal(session.module(_picture()), _expected(make, _picture())[0])
    assert [hook.path for hook in session.ledger.foreign] == [hook.path for hook in audit(net)]
    assert session.ledger.foreign


@pytest.mark.parametrize("make", HOOKED)
def test_hooks_of_a_loaded_network_answer_for_it(make: Callable[[], nn.Module]) -> None:
    one, two = _picture(3, 16), _picture(4, 16)
    net, expected = make(), _expected(make, one, two)
    with unchanged(net):
        model = load_model(module=net, device="cpu")
        before = audit(model.module)
        for picture, logits in zip((one, two), expected, strict=True):
            found = capture(model, picture, ["conv"])
            assert torch.equal(found.logits, logits)
            assert found.ledger.summary()["foreign"] == len(audit(net)) > 0
    assert audit(model.module) == before
    assert [(hook.path, hook.kind) for hook in before] == [(h.path, h.kind) for h in audit(net)]


def test_backward_hooks_of_the_network_change_gradients_of_the_copy_alike() -> None:
    def make() -> nn.Module:
        net = Base()
        net.fc.register_full_backward_hook(lambda m, gi, go: (gi[0] * 3,))
        net.norm.register_full_backward_pre_hook(lambda m, go: (go[0] * 5,))
        net.conv.register_backward_hook(lambda m, gi, go: (gi[0], gi[1] * 7, gi[2]))
        return net

    def gradients(run: nn.Module, weight: Tensor, x: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(run(x).sum(), [x, weight])

    plain, net = make(), make()
    x = _picture().requires_grad_()
    expected = gradients(plain, plain.conv.weight, x)
    seen: list[Tensor] = []
    with unchanged(net), HookSession(net) as session:
        session.full_backward("conv", lambda m, gi, go: seen.append(go[0]))
        found = gradients(session.module, net.conv.weight, x)
    assert all(map(torch.equal, found, expected))
    assert seen
    assert len(session.ledger.foreign) == 3


def test_a_hook_that_counts_for_the_caller_counts_on() -> None:
    net, counted = Base(), []
    net.conv.register_forward_hook(lambda *given: counted.append(1))
    frozen_copy(net)(_picture())
    assert counted == [1]


def test_a_hook_that_cannot_be_carried_over_is_refused_in_words() -> None:
    class Locked:
        def __init__(self, net: nn.Module) -> None:
            self.net = net

        def __deepcopy__(self, memo: Any) -> Any:
            raise TypeError("no")

        def __call__(self, module: nn.Module, args: Any, output: Any) -> None:
            self.net.kept = output

    net = Base()
    net.conv.register_forward_hook(Locked(net))
    with unchanged(net):
        for run in (frozen_copy, HookSession, lambda one: load_model(module=one)):
            with pytest.raises(ModelError, match=r"own hook «.*Locked» on a Conv2d .* Remove it"):
                run(net)


def test_a_session_leaves_its_own_hooks_to_itself() -> None:
    net = Base()
    with HookSession(net) as outer:
        outer.forward("conv", lambda m, a, o: o * 0)
        outer.full_backward("conv", lambda *given: None)
        with HookSession(outer.module) as inner, torch.no_grad():
            assert torch.equal(inner.module(_picture()), _expected(Base, _picture())[0])
        assert inner.ledger.foreign == ()


# --- what forward writes ---


def _fills() -> nn.Module:
    class Fills(Base):
        def forward(self, x: Tensor) -> Tensor:
            self.fc.bias.data.fill_(7.0)
            with torch.no_grad():
                self.conv.weight.mul_(0.5)
            self.norm.running_mean.copy_(x.mean((0, 2, 3))[:1].expand(4))
            self.table[0].add_(1)
            return super().forward(x) + self.table[0]

    net = Fills()
    net.table = [torch.zeros(3)]
    return net


def test_what_a_run_writes_stays_in_it() -> None:
    expected = _expected(_fills, _picture())[0]
    net = _fills().requires_grad_(False)
    for copier in (frozen_copy, own_copy):
        with unchanged(net), torch.no_grad():
            assert torch.equal(copier(net)(_picture()), expected)
            assert net.table[0].sum() == 0
    with unchanged(net), torch.no_grad(), HookSession(net) as session:
        assert torch.equal(session.module(_picture()), expected)
    with unchanged(net):
        model = load_model(module=net, device="cpu")
        assert model.layers
        large = _picture(5, 224)
        assert torch.equal(capture(model, large, ["conv"]).logits, _expected(_fills, large)[0])


@pytest.mark.parametrize("through", ["data", "no_grad", "replaced"])
def test_a_session_refuses_writes_to_the_parameters_it_shares(through: str) -> None:
    class Writes(Base):
        def forward(self, x: Tensor) -> Tensor:
            if through == "data":
                self.fc.bias.data.fill_(7.0)
            elif through == "replaced":
                self.fc.bias.data = torch.ones(3)
            else:
                with torch.no_grad():
                    self.fc.bias.mul_(2)
            return super().forward(x)

    net = Writes()
    memory = net.fc.bias.detach()
    refused = pytest.raises(HookError, match=r"writes to its parameter «fc\.bias».*requires_grad_")
    with unchanged(net), HookSession(net) as session, refused:
        session.module(_picture())
    net.fc.bias.data.add_(1)
    assert torch.equal(memory, net.fc.bias.detach())


def test_a_session_lets_the_caller_train() -> None:
    net = Base()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    before = net.fc.bias.detach().clone()
    with HookSession(net) as session:
        for _ in range(2):
            session.module(_picture()).sum().backward()
            optimizer.step()
    assert not torch.equal(net.fc.bias, before)
    assert "_call_impl" not in vars(session.module)


def test_twins_take_memory_when_they_are_written_to_and_share_it_as_before() -> None:
    class Views(Base):
        def forward(self, x: Tensor) -> Tensor:
            self.whole.add_(1)
            return super().forward(x) * self.part

    def make() -> nn.Module:
        net = Views()
        net.register_buffer("whole", torch.zeros(4))
        net.register_buffer("part", net.whole[:3])
        return net

    copied = frozen_copy(make())
    assert all(map(torch._C._is_cow_tensor, copied.parameters()))
    assert torch.equal(copied(_picture()), _expected(make, _picture())[0])
    assert all(map(torch._C._is_cow_tensor, copied.parameters()))
    assert copied.part.sum() == 3


def test_a_buffer_over_a_parameter_is_so_in_the_copy_of_a_session() -> None:
    class Looks(Base):
        def forward(self, x: Tensor) -> Tensor:
            if x.shape[-1] == 9:
                self.view.add_(1)
            return super().forward(x) * self.view.sum()

    net = Looks()
    net.register_buffer("view", net.fc.bias.detach())
    with unchanged(net), HookSession(net) as session:
        assert torch.equal(session.module(_picture()), net(_picture()))
        refused = pytest.raises(HookError, match="writes to its parameter")
        with refused:
            session.module(_picture(1, 9))


@pytest.mark.parametrize("owner", ["numpy", "shared memory"])
def test_memory_of_somebody_else_is_copied(owner: str) -> None:
    net = _fills().requires_grad_(False)
    if owner == "numpy":
        net.fc.bias.data = torch.from_numpy(net.fc.bias.detach().numpy().copy())
    else:
        net.share_memory()
    with unchanged(net), torch.no_grad():
        assert torch.equal(frozen_copy(net)(_picture()), _expected(_fills, _picture())[0])


def test_parameters_without_values_are_refused() -> None:
    for run in (private_copy, frozen_copy, HookSession):
        with pytest.raises(ModelError, match="lazy parameters: run it once before"):
            run(nn.Sequential(nn.LazyLinear(3)))


def test_first_copies_at_the_same_time_are_the_same_network() -> None:
    expected, failures = _expected(_fills, _picture())[0], []
    for _ in range(10):
        net = _fills().requires_grad_(False)
        barrier = threading.Barrier(4)

        def work(net: nn.Module = net, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            with torch.no_grad():
                failures.extend([1] * (not torch.equal(frozen_copy(net)(_picture()), expected)))

        workers = [threading.Thread(target=work) for _ in range(4)]
        with unchanged(net):
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
    assert failures == []


# --- classes that copy themselves ---


@pytest.mark.parametrize("name", ["resnet18", "googlenet", "mobilenet_v3_small"])
def test_a_feature_extractor_keeps_its_mode(name: str) -> None:
    torch.manual_seed(0)
    options = {"init_weights": False} if name == "googlenet" else {}
    body = getattr(torchvision.models, name)(weights=None, **options).eval()
    node = {"resnet18": "avgpool", "googlenet": "avgpool", "mobilenet_v3_small": "avgpool"}[name]

    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = create_feature_extractor(body, [node])

        def forward(self, x: Tensor) -> Tensor:
            return self.body(x)[node].flatten(1)

    net = Wrapped().eval()
    x = _picture(1, 64)
    with torch.no_grad():
        expected = net(x)
        with unchanged(net):
            for copier in COPIES:
                copied = copier(net)
                assert not any(part.training for part in copied.modules())
                assert torch.equal(copied(x), expected)
            trained = frozen_copy(net).train()
            trained(x)
        assert torch.equal(net(x), expected)
    with unchanged(net), torch.no_grad():
        model = load_model(module=net.train(), device="cpu")
        net.eval()
        assert torch.equal(frozen_copy(model.module)(x), expected)


def test_a_class_that_forgets_when_it_copies_itself_is_mended() -> None:
    class Forgets(Base):
        def __init__(self) -> None:
            super().__init__()
            self.scale = 1.0
            self.table = torch.zeros(3)
            self.names: list[str] = []

        def __deepcopy__(self, memo: Any) -> Forgets:
            return Forgets().train()

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) * self.scale + self.table

    def make() -> nn.Module:
        net = Forgets()
        net.scale, net.table = 3.0, torch.ones(3)
        net.fc.weight.data.mul_(2)
        net.late = [1, 2]
        return nn.Sequential(net).eval()

    check(make)
    copied = private_copy(make())
    assert copied[0].late == [1, 2]


def test_a_patched_module_that_copies_its_attributes_itself() -> None:
    class Own(nn.BatchNorm2d):
        def __deepcopy__(self, memo: Any) -> Own:
            new = Own(4)
            vars(new).update({name: copy.copy(value) for name, value in vars(self).items()})
            return new

    def make() -> nn.Module:
        net = Base()
        net.norm = Own(4)
        run = net.norm.forward
        net.norm.forward = lambda x: run(x) * 2
        return net.train()

    check(make)


def test_a_class_that_copies_itself_into_another_network_is_refused() -> None:
    class Shrinks(Base):
        def __deepcopy__(self, memo: Any) -> nn.Module:
            return nn.Linear(2, 2)

    with pytest.raises(ModelError, match=r"Shrinks copies itself .* other parts.*Remove"):
        private_copy(nn.Sequential(Shrinks()))


def test_a_class_that_is_one_for_all_is_copied_nevertheless() -> None:
    class Single(Base):
        def __deepcopy__(self, memo: Any) -> nn.Module:
            return self

    check(lambda: nn.Sequential(Single()))


# --- forward set on an instance ---


def _patched(kind: str) -> nn.Module:
    class Patched(Base):
        def other(self, x: Tensor) -> Tensor:
            return self.norm(x) * 2

    net = Patched()
    norm, original = net.norm, net.norm.forward
    if kind == "closure":
        net.norm.forward = lambda x: original(x) * 2
    elif kind == "default":
        net.act = lambda x, layer=norm: layer(x)
        net.conv.forward = lambda x, run=net.conv.forward: net.act(run(x))
    elif kind == "list":
        net.steps = [lambda x: norm(x), lambda x: x + net.fc.bias.sum()]
        net.forward = lambda x: net.fc(net.steps[1](net.steps[0](net.conv(x))).mean((2, 3)))
    elif kind == "other method":
        net.act = nn.Identity()
        net.act.forward = net.other
        net.forward = lambda x: net.fc(net.act(net.conv(x)).mean((2, 3)))
    elif kind == "MethodType":
        net.fc.forward = types.MethodType(lambda self, x: x @ self.weight.T, net.fc)
    elif kind == "partial":
        net.norm.forward = functools.partial(nn.BatchNorm2d.forward, net.norm)
    elif kind == "weak":
        me = weakref.ref(net)
        net.forward = lambda x: type(me()).forward(me(), x) * 3
    elif kind == "nonlocal":
        calls = 0

        def counting(x: Tensor) -> Tensor:
            nonlocal calls
            calls += 1
            return original(x) * calls

        net.norm.forward = counting
    return net.train()


@pytest.mark.parametrize(
    "kind",
    "closure,default,list,other method,MethodType,partial,weak,nonlocal".split(","),  # noqa: SIM905
)
def test_a_forward_that_was_set_runs_on_the_copy(kind: str) -> None:
    def make() -> nn.Module:
        return _patched(kind)

    check(make)
    net, calls = make(), dict.fromkeys(("conv", "norm", "fc"), 0)
    ran = copy.deepcopy(calls)
    plain = make()
    for path in calls:

        def count(m: nn.Module, a: Any, o: Any, path: str = path) -> None:
            calls[path] += 1

        plain.get_submodule(path).register_forward_hook(count)
    plain(_picture())
    with unchanged(net), HookSession(net) as session:
        for path in ran:

            def note(m: nn.Module, a: Any, o: Any, path: str = path) -> None:
                ran[path] += 1

            session.forward(path, note)
        session.module(_picture())
    assert ran == calls


def test_a_forward_that_cannot_be_rebuilt_is_refused_by_name() -> None:
    net = Base()
    net.norm.forward = functools.lru_cache(net.norm.forward)
    with unchanged(net), pytest.raises(ModelError, match="attribute «forward» of «BatchNorm2d»"):
        private_copy(net)


def test_attributes_in_slots_and_patches_over_patches_come_along() -> None:
    class Slots(Base):
        __slots__ = ("extra",)

        def forward(self, x: Tensor) -> Tensor:
            return self.extra[0](self.norm(self.conv(x)).mean((2, 3)))

    def slotted() -> nn.Module:
        net = Slots()
        object.__setattr__(net, "extra", [net.fc])
        return net

    def patched() -> nn.Module:
        net = Base()
        first = net.conv.forward

        @functools.wraps(first)
        def again(*args: Any, depth: int = 2, **kwargs: Any) -> Tensor:
            return again(*args, depth=depth - 1) * 2 if depth else first(*args, **kwargs)

        net.conv.forward = again
        return net

    check(slotted)
    check(patched)


def test_a_store_of_the_whole_program_serves_the_copy_as_it_serves_the_network() -> None:
    class Reads(Base):
        def forward(self, x: Tensor) -> Tensor:
            self.conv(x)
            return self.fc(STORE["map"].mean((2, 3)))

    def keep(module: nn.Module, args: Any, output: Any) -> None:
        STORE["map"] = output

    def make() -> nn.Module:
        net = Reads()
        net.conv.register_forward_hook(keep)
        return net

    check(make)


def test_what_a_hook_writes_to_a_parameter_stays_in_the_copy() -> None:
    def make() -> nn.Module:
        net = Base().requires_grad_(False)
        values = net.fc.bias.data

        def fill(module: nn.Module, args: Any) -> None:
            values.fill_(3.0)
            net.fc.weight.data.mul_(2)

        net.register_forward_pre_hook(fill)
        return net

    check(make)


def test_an_attribute_that_cannot_be_copied_is_refused_when_it_is_used() -> None:
    class Helped(Base):
        def forward(self, x: Tensor) -> Tensor:
            return next(self.helper) if x.shape[-1] == 9 else super().forward(x)

    def helper(net: nn.Module) -> Iterator[Tensor]:
        yield torch.zeros(1, 4)
        yield net.fc(torch.ones(1, 4))

    net = Helped()
    net.helper = helper(net)
    next(net.helper)
    copied = private_copy(net)
    with torch.no_grad():
        assert torch.equal(copied(_picture()), net(_picture()))
    with pytest.raises(ModelError, match="attribute «helper» of «Helped» is a generator"):
        copied(_picture(1, 9))


# --- TorchScript ---


def _scripted(how: str) -> nn.Module:
    net = Base()
    part = nn.Sequential(nn.PReLU(4), nn.BatchNorm2d(4)).eval()
    with torch.no_grad():
        part[0].weight.fill_(-1.5)
        part[1].running_mean.fill_(0.5)
        part[1].weight.fill_(2.0)
    is_script = how == "script"
    net.norm = torch.jit.script(part) if is_script else torch.jit.trace(part, net.conv(_picture()))
    return net


@pytest.mark.parametrize("how", ["script", "trace"])
def test_a_torchscript_part_is_one_layer(how: str) -> None:
    check(lambda: _scripted(how))
    net, x = _scripted(how), _picture(2, 16)
    expected = _expected(lambda: _scripted(how), x)[0]
    with unchanged(net):
        model = load_model(module=net, device="cpu")
        assert [info.path for info in model.layers] == ["conv", "norm", "fc"]
        found = capture(model, x, ["norm"])
        assert torch.equal(found.logits, expected)
        assert found.gradient("norm").abs().sum() > 0
        assert model.spec.entries[0].parameters == sum(p.numel() for p in net.parameters())
    with HookSession(net) as session:
        with pytest.raises(HookError, match=r"^layer «norm\.1» is inside TorchScript[^\n]*$"):
            session.forward("norm.1", lambda *given: None)
        session.module(x).sum().backward()
    assert all(parameter.grad is not None for parameter in net.parameters())


@pytest.mark.parametrize("how", ["script", "trace"])
def test_a_network_that_is_torchscript(how: str) -> None:
    net = torch.jit.script(Base()) if how == "script" else torch.jit.trace(Base(), _picture())
    x = _picture(2, 8)
    with torch.no_grad():
        expected = net(x)
    copied = frozen_copy(net)
    with torch.no_grad():
        assert torch.equal(copied(x), expected)
    with HookSession(net) as session, torch.no_grad():
        assert torch.equal(session.module(x), expected)
        with pytest.raises(HookError, match="TorchScript, which takes no hooks"):
            session.forward("conv", lambda *given: None)


def test_a_loaded_network_that_is_torchscript_says_so() -> None:
    net, x = torch.jit.script(Base()), _picture(2, 224)
    model = load_model(module=net, device="cpu")
    assert (model.spec.name, model.layers) == ("Base", ())
    with torch.no_grad():
        assert torch.equal(capture(model, x, [""]).logits, net(x))
    with pytest.raises(LayerError, match=r"is one piece.*TorchScript"):
        recommended_layer(model.layers)
    with pytest.raises(LayerError, match=r"^no layer «conv» in this model[^\n]*TorchScript"):
        find_layer(model.layers, "conv")


def test_training_statistics_of_a_torchscript_part_stay_in_the_copy() -> None:
    net = _scripted("script")
    with unchanged(net):
        frozen_copy(net).train()(_picture())


def test_parameters_that_are_no_plain_numbers_are_shared_as_they_are() -> None:
    class Sparse(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.eye(3).to_sparse())

        def forward(self, x: Tensor) -> Tensor:
            return torch.sparse.mm(self.table, x.mT).mT

    for net in (Sparse(), nn.Linear(3, 3).to("meta")):
        x = torch.ones(1, 3, device=next(net.parameters()).device)
        with HookSession(net) as session:
            assert session.module(x).shape == (1, 3)
