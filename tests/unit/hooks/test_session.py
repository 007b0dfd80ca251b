"""Sessions: every kind of hook, what they may do, and what is left behind, however it ends."""

from __future__ import annotations

import copy
import gc
import threading
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.overrides import _len_torch_function_stack
from torch.utils.hooks import RemovableHandle

from interp.errors import HookError, LayerError
from interp.hooks.ledger import KINDS, HookLedger, HookRecord, audit
from interp.hooks.session import HookSession

pytestmark = pytest.mark.filterwarnings("ignore:For backward hooks to be called")


class Stop(BaseException):
    """As Streamlit interrupts a script: no `Exception`."""


def nothing(*given: Any) -> None: ...


def _net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        OrderedDict(
            conv=nn.Conv2d(3, 4, 3),
            norm=nn.BatchNorm2d(4),
            act=nn.ReLU(inplace=True),
            pool=nn.AdaptiveAvgPool2d(1),
            flat=nn.Flatten(),
            fc=nn.Linear(4, 5),
        )
    ).eval()


def _picture() -> Tensor:
    return torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def _live_tensors() -> int:
    gc.collect()
    return sum(issubclass(type(thing), Tensor) for thing in gc.get_objects())


def _status(session: HookSession) -> list[str]:
    return [record.status for record in session.ledger.records]


# --- the five kinds, with PyTorch's own signatures ---


def test_each_kind_gets_what_pytorch_gives_it() -> None:
    net, got = _net(), {}

    with HookSession(net) as session:
        fc = session.module.get_submodule("fc")
        x = _picture().requires_grad_()
        session.forward_pre("fc", lambda *given: got.update(forward_pre=given) or None)
        session.forward("fc", lambda *given: got.update(forward=given) or None)
        session.full_backward_pre("fc", lambda *given: got.update(backward_pre=given) or None)
        session.full_backward("fc", lambda *given: got.update(backward=given) or None)
        logits = session.module(x)
        session.tensor(logits, lambda *given: got.update(tensor=given) or None, path="fc")
        logits.backward(torch.full((2, 5), 2.0))

    pooled = net.pool(net.act(net.norm(net.conv(_picture())))).flatten(1)
    assert got["forward_pre"][0] is got["forward"][0] is got["backward"][0] is fc
    assert torch.equal(got["forward_pre"][1][0], pooled)
    assert torch.equal(got["forward"][1][0], pooled)
    assert torch.equal(got["forward"][2], net(_picture()))
    assert torch.equal(got["backward_pre"][1][0], torch.full((2, 5), 2.0))
    assert torch.equal(got["backward"][2][0], torch.full((2, 5), 2.0))
    torch.testing.assert_close(got["backward"][1][0], torch.full((2, 5), 2.0) @ net.fc.weight)
    assert torch.equal(got["tensor"][0], torch.full((2, 5), 2.0))
    kinds = [record.kind for record in session.ledger.records]
    assert kinds == list(KINDS)
    assert [record.fires for record in session.ledger.records] == [1] * 5
    assert _status(session) == ["removed"] * 5
    assert [record.class_name for record in session.ledger.records] == ["Linear"] * 5
    fired = {event.kind: event.shapes for event in session.ledger.events if event.what == "fired"}
    assert fired == {
        "forward_pre": ("2×4",),
        "forward": ("2×5",),
        "full_backward_pre": ("2×5",),
        "full_backward": ("2×5",),
        "tensor": ("2×5",),
    }


def test_what_a_hook_returns_replaces_what_it_was_given() -> None:
    net, x = _net(), _picture()
    pooled = net.pool(net.act(net.norm(net.conv(x)))).flatten(1)

    with HookSession(net) as session:
        session.forward_pre("fc", lambda module, args: args[0] * 2)
        session.forward("fc", lambda module, args, output: output + 1)
        session.full_backward_pre("fc", lambda module, grad: (grad[0] * 3,))
        session.full_backward("fc", lambda module, grad_input, grad: (grad_input[0] * 5,))
        seen: list[Tensor] = []
        handle = session.full_backward("flat", lambda m, gi, go: seen.append(go[0]))
        logits = session.module(x.requires_grad_())
        gradient = session.tensor(logits, lambda gradient: gradient * 7)
        logits.sum().backward()

    torch.testing.assert_close(logits, net.fc(pooled * 2) + 1)
    expected = torch.full((2, 5), 1.0 * 7 * 3) @ net.fc.weight * 5 * 2
    torch.testing.assert_close(seen[0], expected)
    changed = [event.hook for event in session.ledger.events if event.what == "changed"]
    assert changed == [0, 1, gradient.id, 2, 3]
    assert handle.id not in changed


def test_hooks_with_keyword_arguments() -> None:
    class Inner(nn.Module):
        def forward(self, *, x: Tensor, scale: float = 1.0) -> Tensor:
            return x * scale

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x=x, scale=2.0)

    seen: dict[str, Any] = {}

    def double_scale(module: nn.Module, args: Any, kwargs: Any) -> Any:
        seen["before"] = args, set(kwargs)
        return args, {**kwargs, "scale": 2 * kwargs["scale"]}

    with HookSession(Outer()) as session:
        session.forward_pre("inner", double_scale, with_kwargs=True)
        session.forward_pre("inner", lambda module, args: seen.update(plain=args))
        session.forward(
            "inner",
            lambda module, args, kwargs, output: seen.update(after=(args, kwargs["scale"])),
            with_kwargs=True,
        )
        session.full_backward("inner", lambda m, gi, go: seen.update(gradient=(gi, go)))
        x = torch.ones(2, requires_grad=True)
        output = session.module(x)
        output.sum().backward()

    assert torch.equal(output, torch.full((2,), 4.0))
    assert seen["before"] == ((), {"x", "scale"})
    assert seen["plain"] == ()
    assert seen["after"] == ((), 4.0)
    assert seen["gradient"][0] == ()
    assert torch.equal(seen["gradient"][1][0], torch.ones(2))
    assert torch.equal(x.grad, torch.full((2,), 4.0))


def test_prepended_hooks_run_first_and_still_see_what_is_there() -> None:
    net, order = _net(), []

    with HookSession(net) as session:
        session.forward("act", lambda *given: order.append("second"))
        session.forward("act", lambda *given: order.append("first"), prepend=True)
        session.forward_pre("act", lambda *given: order.append("before"), prepend=True)
        session.module(_picture())

    assert order == ["before", "first", "second"]


@pytest.mark.parametrize("gradients", [True, False])
def test_hooks_that_watch_leave_the_logits_bit_identical(gradients: bool) -> None:
    net, x = _net(), _picture()
    with torch.no_grad():
        plain = net(x)

    with torch.set_grad_enabled(gradients), HookSession(net) as session:
        for path, _ in net.named_modules():
            for kind in ("forward_pre", "forward", "full_backward_pre", "full_backward"):
                getattr(session, kind)(path, nothing)
        assert torch.equal(session.module(x), plain)


# --- what modules may return and be called with ---

Pair = namedtuple("Pair", "first second")


class Returns(nn.Module):
    def __init__(self, make: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.make = make

    def forward(self, x: Tensor) -> Any:
        return self.make(x)


class Uses(nn.Module):
    def __init__(self, make: Callable[[Tensor], Any], use: Callable[[Any], Tensor]) -> None:
        super().__init__()
        self.inner, self.use = Returns(make), use

    def forward(self, x: Tensor) -> Tensor:
        return self.use(self.inner(x * 1.0))


@pytest.mark.parametrize(
    ("make", "use", "silence"),
    [
        (lambda x: (x * 2, x * 3), lambda out: out[0] + out[1], ""),
        (lambda x: Pair(x * 2, x * 3), lambda out: out.first + out.second, ""),
        (lambda x: (None, x * 5), lambda out: out[1], ""),
        (
            lambda x: {"a": x * 5},
            lambda out: out["a"],
            "the module returned a dict, and",
        ),
        (lambda x: [x * 5], lambda out: out[0], "the module returned a list, and"),
        (lambda x: None, lambda out: torch.ones(2), "the module returned None, and"),
        (lambda x: x.detach(), lambda out: out, "the module ran, but no gradient came back"),
        (lambda x: x * 5, lambda out: torch.ones(2), "the module ran, but no gradient came back"),
        (lambda x: x, lambda out: out, ""),
    ],
)
def test_a_silent_backward_hook_says_why(make: Any, use: Any, silence: str) -> None:
    with HookSession(Uses(make, use)) as session:
        session.forward("inner", nothing)
        session.full_backward("inner", nothing)
        output = session.module(torch.ones(2, requires_grad=True))
        if output.requires_grad:
            output.sum().backward()

    forward, backward = session.ledger.records
    assert (forward.fires, forward.status) == (1, "removed")
    assert backward.fires == (silence == "")
    if silence:
        assert backward.status.startswith(f"never fired: {silence}")


def test_hooks_that_cannot_fire_or_did_not_say_so() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
            self.blocks = nn.ModuleList([nn.Linear(8, 8)])
            self.aux = nn.Linear(8, 2)

        def forward(self, x: Tensor) -> Tensor:
            if self.training:
                return self.aux(x)
            return self.blocks[0](self.attention(x, x, x)[0])

    with HookSession(Net().eval()) as session:
        for path, _ in session.module.named_modules():
            session.forward(path, nothing)
            session.full_backward(path, nothing)
        during = {r.path: r.status for r in session.ledger.records if r.kind == "forward"}
        session.module(torch.randn(1, 4, 8, requires_grad=True)).sum().backward()

    assert during["attention.out_proj"].startswith("cannot fire: MultiheadAttention uses")
    assert during["blocks"] == (
        "cannot fire: a ModuleList is never called itself, only what it holds"
    )
    assert during["aux"] == during["attention"] == "live"
    for record in session.ledger.records:
        if record.path in ("", "attention", "blocks.0"):
            assert (record.fires, record.status) == (1, "removed")
        elif record.path == "aux":
            assert record.status == "never fired: the module did not run"
        else:
            assert record.status == during[record.path]
            assert record.removed_at is not None


def test_a_first_layer_without_gradient_for_its_input() -> None:
    got: list[Any] = []
    with HookSession(_net()) as session:
        session.full_backward(
            "conv", lambda module, grad_input, grad_output: got.append(grad_input)
        )
        session.module(_picture()).sum().backward()

    assert got == [(None,)]


def test_a_hook_counts_every_call_and_knows_its_number() -> None:
    class Thrice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = nn.ReLU(inplace=True)

        def forward(self, x: Tensor) -> Tensor:
            return self.act(self.act(x * 2) - 1) + self.act(x * 3)

    with HookSession(Thrice()) as session:
        forward = session.forward("act", nothing)
        backward = session.full_backward("act", nothing)
        session.module(torch.ones(3, requires_grad=True)).sum().backward()

    assert forward.record.fires == backward.record.fires == 3
    for handle in (forward, backward):
        fired = [e.call for e in session.ledger.events if (e.hook, e.what) == (handle.id, "fired")]
        assert fired == [0, 1, 2]


# --- the life of a session and of a handle ---


def test_the_module_itself_is_never_hooked() -> None:
    net = _net()

    with HookSession(net) as session:
        session.forward("conv", nothing)
        session.full_backward("conv", nothing)
        assert audit(net) == []
        assert {hook.path for hook in audit(session.module)} == {"conv"}
        assert session.ledger.summary() == {"registered": 2, "removed": 0, "live": 2, "foreign": 0}

    assert audit(session.module) == []
    assert session.ledger.summary() == {"registered": 2, "removed": 2, "live": 0, "foreign": 0}


@pytest.mark.parametrize("kind", ["forward_pre", "forward", "full_backward_pre", "full_backward"])
def test_removing_a_hook_leaves_nothing_on_the_module(kind: str) -> None:
    with HookSession(_net()) as session:
        handle = getattr(session, kind)("act", nothing)
        assert handle.is_registered()
        handle.remove()
        removed_at = handle.record.removed_at
        handle.remove()
        assert not handle.is_registered()
        assert audit(session.module) == []
        session.module(_picture())

    assert handle.record.removed_at == removed_at
    assert handle.record.fires == 0
    assert [event.what for event in session.ledger.events] == ["registered", "removed"]
    assert handle.record.status.startswith("never fired: ")


def test_a_hook_removed_during_the_pass_is_not_called_again() -> None:
    fires: dict[str, int] = dict.fromkeys(("forward", "backward", "tensor"), 0)
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))

    def once(which: str) -> Callable[..., None]:
        def hook(*given: Any) -> None:
            fires[which] += 1
            handles[which].remove()

        return hook

    with HookSession(net) as session:
        handles = {
            "forward": session.forward("0", once("forward")),
            "backward": session.full_backward("0", once("backward")),
        }
        late = session.full_backward("1", nothing)
        x = torch.ones(1, 2, requires_grad=True)
        output = session.module(x)
        handles["tensor"] = session.tensor(output, once("tensor"))
        late.remove()  # after forward: PyTorch's graph still calls it
        for _ in range(2):
            output.sum().backward(retain_graph=True)
        session.module(x)

    assert fires == {"forward": 1, "backward": 1, "tensor": 1}
    assert late.record.fires == 0
    assert late.record.status.startswith("never fired: the module did not run, or no gradient")


def test_a_closed_session_raises_and_its_hooks_are_silent() -> None:
    fired: list[int] = []
    with HookSession(_net()) as session:
        session.full_backward("conv", lambda *given: fired.append(1))
        logits = session.module(_picture())

    logits.sum().backward()  # the graph outlives the session
    session.module(_picture())
    assert fired == []
    for register in (
        lambda: session.forward("conv", nothing),
        lambda: session.full_backward_pre("conv", nothing),
        lambda: session.tensor(torch.ones(1, requires_grad=True), nothing),
        lambda: session.running().__enter__(),
        lambda: session.__enter__(),
    ):
        with pytest.raises(HookError, match="closed: open a new one"):
            register()
    session.close()
    assert len(session.ledger.records) == 1


def test_a_session_that_outlives_its_passes() -> None:
    net, x = _net(), _picture()
    session = HookSession(net)
    try:
        handle = session.forward("act", nothing)
        before = _live_tensors()
        for count in (1, 2):
            with session.running():
                session.module(x)
            assert handle.record.fires == count
            assert handle.record.status == "live"
            assert _len_torch_function_stack() == 0
        with session.running(), session.running():
            session.module(x)
        assert _len_torch_function_stack() == 0
        assert _live_tensors() == before  # nothing of a pass is kept until the session closes
    finally:
        session.close()
    assert _status(session) == ["removed"]


def test_sessions_share_a_ledger_and_nothing_else() -> None:
    net, ledger = _net(), HookLedger()

    with HookSession(net, ledger) as outer:
        outer.forward("conv", nothing)
        with HookSession(net, ledger) as inner:
            inner.forward("conv", nothing)
            inner.module(_picture())
            assert [record.fires for record in ledger.records] == [0, 1]
        outer.module(_picture())

    assert [record.fires for record in ledger.records] == [1, 1]
    assert [record.id for record in ledger.records] == [0, 1]
    assert ledger.summary()["live"] == 0


def test_foreign_hooks_are_found_run_on_the_copy_and_left_alone_on_the_model() -> None:
    net, ran = _net(), []
    net.conv.register_forward_hook(lambda module, args, output: ran.append(module))
    net.fc.register_full_backward_hook(nothing)
    ledger = HookLedger()

    for _ in range(2):
        with HookSession(net, ledger) as session:
            session.module(_picture()).sum().backward()
            assert ran.pop() is session.module.get_submodule("conv")
            assert ran == []

    assert [(hook.path, hook.kind) for hook in ledger.foreign] == [
        ("conv", "forward"),
        ("fc", "full_backward"),
    ]
    assert ledger.summary()["foreign"] == 2
    assert len(audit(net)) == 2
    net(_picture())
    assert ran == [net.conv]


def test_a_hook_that_somebody_else_took_off_is_not_called_leaked() -> None:
    with HookSession(_net()) as session:
        handle = session.forward("conv", nothing)
        session.module.get_submodule("conv")._forward_hooks.clear()
        assert not handle.is_registered()
    assert _status(session) == ["never fired: the module did not run"]


def test_a_hook_that_stays_is_called_leaked(monkeypatch: pytest.MonkeyPatch) -> None:
    session = HookSession(_net())
    session.forward("conv", nothing)
    session.full_backward("fc", nothing)
    monkeypatch.setattr(RemovableHandle, "remove", lambda handle: None)
    session.close()

    assert _status(session) == ["leaked", "leaked"]


def test_refusals() -> None:
    with HookSession(_net()) as session:
        with pytest.raises(LayerError, match="no layer «cnv» in this model: did you mean conv"):
            session.forward("cnv", nothing)
        with pytest.raises(HookError, match="shape 2×3 does not: call requires_grad_"):
            session.tensor(torch.ones(2, 3), nothing)
    assert session.ledger.records == ()

    scripted = nn.Sequential(torch.jit.script(nn.Sequential(nn.ReLU())))
    with HookSession(scripted) as session, pytest.raises(HookError, match="inside TorchScript"):
        session.forward("0.0", nothing)
    assert session.ledger.records == ()


def test_shared_and_recursive_modules() -> None:
    class Recursive(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, x: Tensor, depth: int = 2) -> Tensor:
            x = torch.relu_(self.fc(x))
            return self(x, depth - 1) if depth else x

    shared = nn.Linear(2, 2)
    net = nn.ModuleDict({"a": shared, "b": shared, "deep": Recursive()})
    x = torch.ones(1, 2, requires_grad=True)

    with HookSession(net) as session:
        by_a = session.forward("a", nothing)
        by_b = session.forward("b", nothing)
        deep = session.forward("deep", nothing)
        back = session.full_backward("deep", nothing)
        fc = session.full_backward("deep.fc", nothing)
        modules = session.module
        modules["deep"](modules["b"](modules["a"](x))).sum().backward()

    assert (by_a.record.path, by_a.record.fires) == ("a", 2)
    assert (by_b.record.path, by_b.record.fires) == ("b", 2)
    assert (deep.record.fires, back.record.fires, fc.record.fires) == (3, 3, 3)


# --- what is left behind ---


@contextmanager
def _unchanged(net: nn.Module, x: Tensor) -> Iterator[None]:
    """Everything of the caller's is as it was."""
    for parameter in net.parameters():
        parameter.grad = torch.full_like(parameter, 0.5)
    before = copy.deepcopy(net.state_dict())
    flags = [parameter.requires_grad for parameter in net.parameters()]
    training = [part.training for part in net.modules()]
    x_before, x_flag = x.detach().clone(), x.requires_grad
    hooks, modes = audit(net), _len_torch_function_stack()
    grad, inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()

    yield

    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert [parameter.requires_grad for parameter in net.parameters()] == flags
    assert all(bool((p.grad == 0.5).all()) for p in net.parameters() if p.grad is not None)
    assert all(p.grad is not None for p in net.parameters())
    assert [part.training for part in net.modules()] == training
    assert torch.equal(x, x_before)
    assert x.requires_grad == x_flag
    assert audit(net) == hooks
    assert _len_torch_function_stack() == modes
    assert (torch.is_grad_enabled(), torch.is_inference_mode_enabled()) == (grad, inference)


class Faulty(nn.Module):
    def __init__(self, error: BaseException | None = None) -> None:
        super().__init__()
        self.stem, self.norm, self.fc = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 5)
        self.error = error

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu_(self.norm(self.stem(x)))
        if self.error is not None:
            raise self.error
        return self.fc(y.mean((2, 3)))


POINTS = ("pre-hook", "forward", "forward hook", "backward hook", "tensor hook", "afterwards")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, Stop])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("training", [False, True])
def test_nothing_is_left_behind(point: str, error: type[BaseException], training: bool) -> None:
    net = Faulty(error("here") if point == "forward" else None).train(training)
    x = _picture()

    def raising(at: str) -> Callable[..., None]:
        def hook(*given: Any) -> None:
            if at == point:
                raise error("here")

        return hook

    session = HookSession(net)

    def attempt() -> None:
        with session:
            session.forward_pre("fc", raising("pre-hook"))
            session.forward("norm", raising("forward hook"))
            session.full_backward("norm", raising("backward hook"))
            score = session.module(x).sum()
            session.tensor(score, raising("tensor hook"))
            torch.autograd.grad(score, [session.module.get_parameter("stem.weight")])
            raising("afterwards")()

    with _unchanged(net, x), pytest.raises(error, match="here"):
        attempt()

    assert session.closed
    assert audit(session.module) == []
    assert session.ledger.failed == f"{error.__name__}: here"
    assert session.ledger.summary()["live"] == 0
    errors = [event for event in session.ledger.events if event.what == "error"]
    assert len(errors) == ("hook" in point)
    assert all(event.detail == f"{error.__name__}: here" for event in errors)
    for record in session.ledger.records:
        assert record.removed_at is not None
        assert record.status == "removed" if record.fires else record.status.startswith("never")


def test_a_module_that_raises_silences_its_hooks() -> None:
    session = HookSession(Faulty(ValueError("here")))
    session.forward("", nothing)
    session.full_backward("", nothing)
    session.forward("fc", nothing)

    def attempt() -> None:
        with session:
            session.module(_picture())

    with pytest.raises(ValueError, match="here"):
        attempt()

    assert set(_status(session)) == {"never fired: the module did not run"}


def test_training_a_copy_leaves_statistics_alone() -> None:
    net = _net().train()
    x = _picture()
    expected = copy.deepcopy(net)(x)

    with _unchanged(net, x), HookSession(net) as session:
        session.forward("norm", nothing)
        assert session.module.training
        assert torch.equal(session.module(x), expected)
        assert session.module.get_buffer("norm.num_batches_tracked") == 1


def test_the_callers_own_backward_fills_the_callers_gradients() -> None:
    net, x = _net(), _picture()
    net(x).sum().backward()
    expected = [parameter.grad.clone() for parameter in net.parameters()]
    net.zero_grad()

    with HookSession(net) as session:
        for path, _ in net.named_modules():
            session.full_backward(path, nothing)
        session.module(x).sum().backward()

    for parameter, gradient in zip(net.parameters(), expected, strict=True):
        assert torch.equal(parameter.grad, gradient)


def test_two_threads_on_one_module_never_meet() -> None:
    net, x = _net(), _picture()
    seen: dict[str, set[str]] = {"conv": set(), "fc": set()}
    barrier = threading.Barrier(2)

    def work(path: str) -> None:
        barrier.wait()
        for _ in range(20):
            with HookSession(net) as session:
                session.forward(path, lambda *given: seen[path].add(path))
                session.full_backward(path, nothing)
                torch.autograd.grad(session.module(x).sum(), [session.module.conv.weight])
            seen[path].update(r.path for r in session.ledger.records if r.fires == 1)

    threads = [threading.Thread(target=work, args=(path,)) for path in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert seen == {"conv": {"conv"}, "fc": {"fc"}}
    assert audit(net) == []


def test_a_session_leaves_no_cycle_that_keeps_tensors() -> None:
    net = _net()
    gc.collect()
    gc.disable()
    try:
        before = _live_tensors()
        for _ in range(3):
            with HookSession(net) as session:
                for path, _ in net.named_modules():
                    session.forward(path, nothing)
                    session.full_backward(path, nothing)
                torch.autograd.grad(session.module(_picture()).sum(), [net.conv.weight])
        del session
        gc.collect()
        assert _live_tensors() == before
    finally:
        gc.enable()


def test_seconds_and_fires_are_measured() -> None:
    import time

    with HookSession(_net()) as session:
        record: HookRecord = session.forward("conv", lambda *given: time.sleep(0.02)).record
        session.module(_picture())

    assert 0.02 <= record.seconds < 1
    assert record.removed_at is not None
    assert record.registered_at + record.seconds <= record.removed_at


# --- hooks of a run beside those that outlive it ---


def test_what_is_registered_aside_goes_to_another_ledger_and_is_gone_at_the_end() -> None:
    session, other = HookSession(_net()), HookLedger()
    own = session.ledger
    session.forward("conv", nothing)

    with session.aside(other):
        session.forward("fc", nothing)
        session.full_backward("conv", nothing)
        with session.running():
            session.module(_picture())

    assert session.ledger is own
    assert [record.path for record in own.records] == ["conv"]
    assert [record.status for record in other.records] == [
        "removed",
        "never fired: the module did not run, or no gradient came back to it, or it returned "
        "something else than tensors",
    ]
    assert [found.path for found in audit(session.module)] == ["conv"]
    assert own.records[0].fires == 1
    session.close()
    assert audit(session.module) == []


def test_an_error_aside_is_told_to_the_ledger_of_the_run() -> None:
    session, other = HookSession(_net()), HookLedger()

    def stop(*given: Any) -> None:
        raise Stop

    def run() -> None:
        with session.aside(other), session.running():
            session.forward("fc", stop)
            session.module(_picture())

    with pytest.raises(Stop):
        run()

    assert (other.failed, session.ledger.failed) == ("Stop", None)
    assert audit(session.module) == []


def test_a_released_hook_is_forgotten() -> None:
    session = HookSession(_net())
    handles = [session.forward("fc", nothing) for _ in range(3)]

    session.release(handles[:2])
    session.release(handles[:2])

    assert session._handles == handles[2:]
    assert _status(session)[:2] == ["never fired: the module did not run"] * 2
    assert [found.path for found in audit(session.module)] == ["fc"]
    session.close()
