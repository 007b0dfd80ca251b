"""Networks that write, cut and reshape in ways that hooks stumble over, and what of PyTorch's own
names the guard stands on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import BackwardHook

import interp
from interp.hooks.passes import forward_pass
from interp.hooks.session import HookSession
from tests import hostile

Body = Callable[[Any, Tensor], Tensor]


class Net(nn.Module):
    """A convolution, a case's own lines, a head."""

    def __init__(self, body: Body) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a = nn.Conv2d(3, 4, 3, padding=1)
        self.act = nn.SiLU(inplace=True)
        self.drop = nn.Dropout(0.5)
        self.b = nn.Conv2d(4, 4, 1)
        self.head = nn.Linear(4, 3)
        self.body = body
        self.double().eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(self, self.a(x)).flatten(2).mean(2))


def _picture(batch: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(batch, 3, 4, 4, dtype=torch.float64, generator=generator)


class Dirty(torch.autograd.Function):
    """Writes in place as InPlace-ABN does: negative values become zero."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x.clamp_(min=0)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return gradient * (x > 0)


def _returned_itself(n: Any, h: Tensor) -> Tensor:
    t = n.drop(h[:, 1:])
    t += 0.5
    return n.b(h) + t.mean()


def _to_its_own_type(n: Any, h: Tensor) -> Tensor:
    v = h[:, :3].double()
    v += 1
    w = v.to(torch.float64)
    w *= 2
    return n.b(h) + w.sum()


def _squeezed(n: Any, h: Tensor) -> Tensor:
    h.squeeze_(0).unsqueeze_(0)
    h.transpose_(2, 3)
    return n.b(h) * h


def _aten(n: Any, h: Tensor) -> Tensor:
    torch.ops.aten.relu_(h)
    torch.ops.aten.mul_.Scalar(h, 2.0)
    return n.b(h) + h


def _foreach(n: Any, h: Tensor) -> Tensor:
    torch._foreach_mul_([h], 3.0)
    torch._foreach_add_([h[:, :2]], 1.0)
    return n.b(h) * h


def _dirty(n: Any, h: Tensor) -> Tensor:
    Dirty.apply(h)
    return n.b(h) + h


def _complex_view(n: Any, h: Tensor) -> Tensor:
    pairs = torch.view_as_complex(h.reshape(1, 4, 4, 2, 2))
    pairs.mul_(1j)
    return n.b(h) + torch.view_as_real(pairs).reshape(h.shape)


def _thrown_away(n: Any, h: Tensor) -> Tensor:
    n.act(h)
    return n.b(h)


def _written_after_it_was_handed_back(n: Any, h: Tensor) -> Tensor:
    y = n.drop(h)
    y *= 2
    return n.b(h) + y


OUT_OF_PLACE: dict[Body, Body] = {
    _returned_itself: lambda n, h: (
        n.b(torch.cat([h[:, :1], h[:, 1:] + 0.5], 1)) + (h[:, 1:] + 0.5).mean()
    ),
    _to_its_own_type: lambda n, h: (
        n.b(torch.cat([2 * (h[:, :3] + 1), h[:, 3:]], 1)) + (2 * (h[:, :3] + 1)).sum()
    ),
    _squeezed: lambda n, h: n.b(h.transpose(2, 3)) * h.transpose(2, 3),
    _aten: lambda n, h: n.b(2 * torch.relu(h)) + 2 * torch.relu(h),
    _foreach: lambda n, h: (lambda g: n.b(g) * g)(torch.cat([3 * h[:, :2] + 1, 3 * h[:, 2:]], 1)),
    _dirty: lambda n, h: n.b(torch.relu(h)) + torch.relu(h),
    _thrown_away: lambda n, h: n.b(F.silu(h)),
    _written_after_it_was_handed_back: lambda n, h: n.b(2 * h) + 2 * h,
}
each = pytest.mark.parametrize("body", OUT_OF_PLACE, ids=lambda body: body.__name__)


@each
@pytest.mark.parametrize("everywhere", [True, False])
def test_logits_maps_and_gradients(body: Body, everywhere: bool) -> None:
    net, x = Net(body), _picture()
    with torch.no_grad():
        plain, at_a = net(x.clone()), net.a(x)
    start = at_a.clone().requires_grad_()
    score = net.head(OUT_OF_PLACE[body](net, start).flatten(2).mean(2))[:, 1].sum()
    (expected,) = torch.autograd.grad(score, start)
    paths = [path for path, _ in net.named_modules()] if everywhere else ["a"]

    with forward_pass(net, x, paths) as run:
        gradients = run.gradients(run.logits[:, 1])
        assert torch.equal(run.logits, plain)
        assert torch.equal(run.feature_maps()["a"][0], at_a)
    torch.testing.assert_close(gradients["a", 0], expected, rtol=1e-10, atol=1e-13)


@each
def test_every_consumer_ends(body: Body) -> None:
    net, x = Net(body), _picture()
    model = interp.load_model(module=net, transforms=interp_preset())

    assert {info.path for info in model.layers if info.calls} >= {"a", "b", "head"}
    found = interp.capture(model, x, ["a"], "0")
    with HookSession(net) as session:
        session.full_backward("a", lambda module, given, out: None)
        assert torch.equal(session.module(x), found.logits)


def interp_preset() -> Any:
    from interp.geometry import Preset

    return Preset(4, 4, (0.0,) * 3, (1.0,) * 3, "nearest")


def test_a_complex_view_of_what_a_hook_saw() -> None:
    net, x = Net(_complex_view), _picture()
    with torch.no_grad():
        plain = net(x.clone())

    with forward_pass(net, x, ["a", "b"]) as run:
        assert torch.equal(run.logits, plain)
        assert run.gradients(run.logits[:, 1]).keys() == {("a", 0), ("b", 0)}


@pytest.mark.parametrize("around", [torch.no_grad, torch.inference_mode])
def test_a_write_counts_whatever_mode_the_caller_is_in(around: Any) -> None:
    net, x = Net(lambda n, h: n.b(h.relu_())), _picture()
    start = net.a(x).detach().requires_grad_()
    score = net.head(net.b(start.relu()).flatten(2).mean(2))[:, 1].sum()
    (expected,) = torch.autograd.grad(score, start)

    with around():
        found = interp.capture(net, x, ["a"], "1")

    torch.testing.assert_close(found.gradient("a"), expected, rtol=1e-10, atol=1e-13)


TRANSFORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "grad": lambda h: h + torch.func.grad(lambda t: (t**3).sum())(h),
    "vmap": lambda h: torch.vmap(torch.sin)(h),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_inside_a_network(name: str) -> None:
    net = Net(lambda n, h: TRANSFORMS[name](n.act(h)))
    x = _picture().requires_grad_()
    plain = net(x)
    (expected,) = torch.autograd.grad(plain[:, 1].sum(), x)

    with HookSession(net) as session:
        for path in ("a", "act"):
            session.forward(path, lambda module, args, output: None)
            session.full_backward(path, lambda module, given, out: None)
        logits = session.module(x)
        (found,) = torch.autograd.grad(logits[:, 1].sum(), x)

    assert torch.equal(logits, plain)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-13)


def test_a_gradient_of_a_gradient() -> None:
    def penalty(net: nn.Module, x: Tensor) -> Tensor:
        x = x.clone().requires_grad_()
        (first,) = torch.autograd.grad(net(x)[:, 1].sum(), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), x)[0]

    net, x = Net(lambda n, h: n.b(n.act(h)) * h), _picture()
    with HookSession(net) as session:
        for path, _ in net.named_modules():
            session.forward(path, lambda module, args, output: None)
            session.full_backward(path, lambda module, given, out: None)
        found = penalty(session.module, x)

    torch.testing.assert_close(found, penalty(net, x), rtol=1e-10, atol=1e-13)


def test_a_session_in_inference_mode() -> None:
    net, x = Net(_thrown_away), _picture()

    def double(module: Any, args: Any, output: Tensor) -> None:
        output.mul_(2)

    with torch.inference_mode():
        shown = x.clone()
        with HookSession(net) as session:
            session.forward("a", double)
            session.full_backward("b", lambda module, given, out: None)
            logits = session.module(shown)
        expected = net.head(net.b(F.silu(2 * net.a(x))).flatten(2).mean(2))

    torch.testing.assert_close(logits, expected)
    assert torch.equal(shown, x)


def test_a_tensor_hook_on_what_an_in_place_module_returned() -> None:
    net, x, got = Net(lambda n, h: n.b(n.act(h))), _picture(), {}
    act = F.silu(net.a(x)).detach().requires_grad_()
    (expected,) = torch.autograd.grad(net.head(net.b(act).flatten(2).mean(2))[:, 1].sum(), act)

    def watch(path: str) -> Callable[..., None]:
        def hook(module: Any, args: Any, output: Tensor) -> None:
            session.tensor(output, lambda gradient: got.update({path: gradient}))

        return hook

    with HookSession(net) as session:
        for path in ("a", "act"):
            session.forward(path, watch(path))
        session.module(x.clone().requires_grad_())[:, 1].sum().backward()

    torch.testing.assert_close(got["act"], expected, rtol=1e-10, atol=1e-13)


def test_an_expanded_input_is_no_hindrance() -> None:
    net = Net(_thrown_away)
    x = torch.ones(1, 1, 4, 4, dtype=torch.float64).expand(1, 3, 4, 4)

    found = interp.capture(net, x, ["a"], "1")

    assert torch.equal(found.logits, net(x))
    assert torch.equal(found.feature_map("a"), net.a(x))
    assert found.gradient("a").abs().sum() > 0


def test_a_replacing_backward_hook_counts_where_the_result_is_thrown_away() -> None:
    net, x = Net(_thrown_away), _picture().requires_grad_()
    (plain,) = torch.autograd.grad(net(x)[:, 1].sum(), x)

    with HookSession(net) as session:
        session.full_backward("act", lambda module, given, out: (3 * given[0],))
        (found,) = torch.autograd.grad(session.module(x)[:, 1].sum(), x)

    torch.testing.assert_close(found, 3 * plain, rtol=1e-10, atol=1e-13)


def test_the_networks_own_strides_stay() -> None:
    class LeNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.act = nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True)
            self.fc = nn.Linear(16, 2)

        def forward(self, x: Tensor) -> Tensor:
            x = self.act(self.conv(x))
            strides.append(x.stride())
            return self.fc(x.view(x.size(0), -1))

    strides: list[tuple[int, ...]] = []
    net, x = LeNet().eval(), torch.randn(1, 3, 4, 4)
    plain = net(x)
    with HookSession(net) as session:
        for path, _ in net.named_modules():
            session.forward(path, lambda module, args, output: None)
            session.full_backward(path, lambda module, given, out: None)
        assert torch.equal(session.module(x.clone().requires_grad_()), plain)

    assert strides[0] == strides[1]


def test_one_tensor_given_twice_stays_one() -> None:
    same: list[bool] = []

    class Asks(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            same.append(x is y)
            return x + y

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.asks = Asks()

        def forward(self, x: Tensor) -> Tensor:
            h = x * 2
            return self.asks(h, h)

    with HookSession(Outer()) as session:
        session.forward_pre("asks", lambda module, args: None)
        session.module(torch.ones(2, requires_grad=True))

    assert same == [True]


def test_shapes_that_cannot_change_under_autograd_are_refused_in_words() -> None:
    net = Net(lambda n, h: n.b(h.resize_(1, 4, 2, 2)))

    with pytest.raises(RuntimeError, match="cannot resize"):
        interp.capture(net, _picture(), ["a"], "1")


@pytest.mark.parametrize("seed", range(40))
def test_random_nets(seed: int) -> None:
    wrong, _ = hostile.problems(seed)
    assert wrong == []


# --- names of PyTorch's that are not public: each says what breaks where it is moved ---


def test_a_call_of_a_module_goes_through_call_impl() -> None:
    # Without it no fence stands around a module: full backward hooks raise at in-place writes.
    net = nn.Linear(1, 1)
    vars(net)["_call_impl"] = lambda *args, **kwargs: "ours"
    assert net(torch.ones(1)) == "ours"


def test_pytorch_asks_a_module_for_its_backward_hooks() -> None:
    # Without these two PyTorch's views would stand inside the fence, and their strides.
    net = nn.Linear(1, 1)
    asked = []
    net.register_full_backward_hook(lambda module, given, out: asked.append("called"))
    net.register_full_backward_pre_hook(lambda module, out: asked.append("called"))
    vars(net)["_get_backward_hooks"] = lambda: asked.append("hooks") or ([], [])
    vars(net)["_get_backward_pre_hooks"] = lambda: asked.append("pre-hooks") or []
    net(torch.ones(1)).backward()
    assert sorted(asked) == ["hooks", "pre-hooks"]


def test_pytorchs_backward_hook_is_put_on_tensors_in_one_place() -> None:
    # Without it a full backward hook stands behind a view that may not be written to.
    used = []

    class Watched(BackwardHook):
        def _apply_on_tensors(self, fn: Any, args: Any) -> Any:
            used.append(len(args))
            return args, None

    hook = Watched(nn.Identity(), [], [])
    hook.setup_input_hook((torch.ones(1), 2))
    hook.setup_output_hook(torch.ones(1))
    assert used == [2, 1]


def test_a_lazy_clone_copies_when_either_is_written_to() -> None:
    # Without it `twin` copies at once: right, but slower and larger.
    first = torch.zeros(2)
    second = torch._lazy_clone(first)
    first.add_(1)
    assert (first.tolist(), second.tolist()) == ([1, 1], [0, 0])


def test_the_storage_of_a_view_is_its_bases() -> None:
    # Without `_cdata` nothing tells which tensors name one memory.
    x = torch.zeros(4)
    assert x[1:].untyped_storage()._cdata == x.untyped_storage()._cdata
    assert x[1:]._base is x
    assert x[1:]._is_view()


def test_the_version_counts_writes_under_every_name() -> None:
    # Without it a write under one name would not be told to the others.
    x = torch.zeros(4)
    view, alias = x[1:], x.detach()
    view.add_(1)
    assert x._version == view._version == alias._version == 1


def test_whether_autograd_may_be_told_what_to_keep_can_be_asked() -> None:
    # Without it the guard would get in the way of `torch.func`.
    assert torch._C._autograd._saved_tensors_hooks_is_enabled()
    with torch.autograd.graph.disable_saved_tensors_hooks("by a transform"):
        assert not torch._C._autograd._saved_tensors_hooks_is_enabled()


def test_no_function_is_seen_where_the_guard_itself_is_at_work() -> None:
    # Without it the guard watches itself: slower, and it would ask itself without an end.
    seen = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Mode(), torch._C.DisableTorchFunction():
        torch.zeros(1).add_(1)
    assert seen == []
