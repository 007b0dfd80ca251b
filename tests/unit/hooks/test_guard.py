"""In-place operations with hooks on: what the network computes, what hooks saw, and gradients.

Each case is a few lines that change tensors in place, and the same written by hand without that:
autograd on the second is the oracle for the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import interp
from interp.hooks.passes import forward_pass
from interp.hooks.session import HookSession


class Net(nn.Module):
    """conv, then a case's own lines, then a head. `act` writes over its input."""

    def __init__(self, body: Callable[[Net, Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.act = nn.SiLU(inplace=True)
        self.block = nn.Sequential(nn.SiLU(inplace=True), nn.Conv2d(8, 8, 1))
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1)
        self.head = nn.Linear(8, 5)
        self.body = body
        self.double().eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(self, self.conv(x)).mean((2, 3)))


def _picture(batch: int = 2) -> Tensor:
    return torch.randn(batch, 3, 8, 8, dtype=torch.float64, generator=_generator())


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(7)


def _plain(net: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad():
        return net(x.clone())


# --- the cases: in place, and by hand without. The second gets a list for what `act` returned. ---


def thrown_away_module(n: Net, x: Tensor) -> Tensor:
    n.act(x)
    return n.conv2(x)


def thrown_away_module_(n: Net, x: Tensor, acts: list[Tensor]) -> Tensor:
    acts.append(F.silu(x))
    return n.conv2(acts[0])


def used_both_ways(n: Net, x: Tensor) -> Tensor:
    y = n.act(x)
    return n.conv2(y) * x + y


def used_both_ways_(n: Net, x: Tensor, acts: list[Tensor]) -> Tensor:
    acts.append(F.silu(x))
    return n.conv2(acts[0]) * acts[0] + acts[0]


def two_branches(n: Net, x: Tensor) -> Tensor:
    return n.block(x) + n.conv2(n.act(x)) + x


def two_branches_(n: Net, x: Tensor, acts: list[Tensor]) -> Tensor:
    first = F.silu(x)
    acts.append(F.silu(first))
    return n.block[1](first) + n.conv2(acts[0]) + acts[0]


def called_three_times(n: Net, x: Tensor) -> Tensor:
    n.act(x)
    n.act(x.sub_(0.5))
    return n.conv2(n.act(n.conv2(x))) * x


def called_three_times_(n: Net, x: Tensor, acts: list[Tensor]) -> Tensor:
    acts.append(F.silu(x))
    acts.append(F.silu(acts[0] - 0.5))
    acts.append(F.silu(n.conv2(acts[1])))
    return n.conv2(acts[2]) * acts[1]


def on_slices(n: Net, x: Tensor) -> Tensor:
    parts = [n.act(x[:, i : i + 4]) for i in (0, 4)]
    return n.conv2(torch.cat(parts, 1)) + x


def on_slices_(n: Net, x: Tensor, acts: list[Tensor]) -> Tensor:
    acts += [F.silu(x[:, i : i + 4]) for i in (0, 4)]
    return n.conv2(torch.cat(acts, 1)) + torch.cat(acts, 1)


def add(n: Net, x: Tensor) -> Tensor:
    x.add_(1)
    return n.conv2(x) * x


def add_(n: Net, x: Tensor, acts: list[Tensor]) -> Tensor:
    return n.conv2(x + 1) * (x + 1)


def residual(n: Net, x: Tensor) -> Tensor:
    y = n.conv2(x)
    y += x
    y -= 0.5
    y *= x
    y /= 2
    return y


def residual_(n: Net, x: Tensor, acts: list[Tensor]) -> Tensor:
    return (n.conv2(x) + x - 0.5) * x / 2


def functional_inplace(n: Net, x: Tensor) -> Tensor:
    F.silu(x, inplace=True)
    F.hardtanh(x, -0.5, 0.5, True)
    return n.conv2(x)


def functional_inplace_(n: Net, x: Tensor, acts: list[Tensor]) -> Tensor:
    return n.conv2(F.hardtanh(F.silu(x), -0.5, 0.5))


def underscore_functions(n: Net, x: Tensor) -> Tensor:
    torch.relu_(x)
    return n.conv2(x).sigmoid_().add_(x).clamp_(min=0.1).mul_(x)


def underscore_functions_(n: Net, x: Tensor, acts: list[Tensor]) -> Tensor:
    x = torch.relu(x)
    return (n.conv2(x).sigmoid() + x).clamp(min=0.1) * x


def clamp(n: Net, x: Tensor) -> Tensor:
    x.clamp_(0, 0.4)
    return n.conv2(x)


def clamp_(n: Net, x: Tensor, acts: list[Tensor]) -> Tensor:
    return n.conv2(x.clamp(0, 0.4))


def item(n: Net, x: Tensor) -> Tensor:
    x[:, 0] = 0
    x[x > 0.5] = 0.25
    x[:, 1:3] *= 2
    return n.conv2(x) * x


def item_(n: Net, x: Tensor, acts: list[Tensor]) -> Tensor:
    x = torch.cat([torch.zeros_like(x[:, :1]), x[:, 1:]], 1)
    x = torch.where(x > 0.5, 0.25, x)
    x = torch.cat([x[:, :1], x[:, 1:3] * 2, x[:, 3:]], 1)
    return n.conv2(x) * x


def view_zeroed(n: Net, x: Tensor) -> Tensor:
    y = x[:, :2]
    y.zero_()
    return n.conv2(x) + y.mean()


def view_zeroed_(n: Net, x: Tensor, acts: list[Tensor]) -> Tensor:
    return n.conv2(torch.cat([torch.zeros_like(x[:, :2]), x[:, 2:]], 1))


def chunks(n: Net, x: Tensor) -> Tensor:
    a, b = x.chunk(2, 1)
    a.mul_(b)
    return n.conv2(x)


def chunks_(n: Net, x: Tensor, acts: list[Tensor]) -> Tensor:
    a, b = x.chunk(2, 1)
    return n.conv2(torch.cat([a * b, b], 1))


def unbound(n: Net, x: Tensor) -> Tensor:
    for part in x.unbind(1):
        part.tanh_()
    for part in x.split(3, 1):
        part.sigmoid_()
    return n.conv2(x)


def unbound_(n: Net, x: Tensor, acts: list[Tensor]) -> Tensor:
    return n.conv2(x.tanh().sigmoid())


def overlapping_views(n: Net, x: Tensor) -> Tensor:
    y, z = x[:, 0:4], x[:, 2:6]
    y.mul_(2)
    z.add_(1)
    return n.conv2(x) * y.sum() + z.mean()


def overlapping_views_(n: Net, x: Tensor, acts: list[Tensor]) -> Tensor:
    a, b, c, d = x[:, :2] * 2, x[:, 2:4] * 2 + 1, x[:, 4:6] + 1, x[:, 6:]
    y, z = torch.cat([a, b], 1), torch.cat([b, c], 1)
    return n.conv2(torch.cat([a, b, c, d], 1)) * y.sum() + z.mean()


def view_of_a_view(n: Net, x: Tensor) -> Tensor:
    flat = x.view(-1)
    flat[5:50].zero_()
    rows = flat.view_as(x).permute(0, 2, 3, 1)
    rows[..., ::2] *= 3
    return n.conv2(x) + flat.view_as(x)


def view_of_a_view_(n: Net, x: Tensor, acts: list[Tensor]) -> Tensor:
    mask = torch.ones_like(x).flatten()
    mask[5:50] = 0
    scale = torch.tensor([3.0, 1.0]).double().repeat(4)[:, None, None]
    x = x * mask.view_as(x) * scale
    return n.conv2(x) + x


def with_its_own_part(n: Net, x: Tensor) -> Tensor:
    x[:, 1].mul_(x[:, 0])
    x.mul_(x)
    return n.conv2(x)


def with_its_own_part_(n: Net, x: Tensor, acts: list[Tensor]) -> Tensor:
    x = torch.cat([x[:, :1], x[:, 1:2] * x[:, :1], x[:, 2:]], 1)
    return n.conv2(x * x)


def transposed(n: Net, x: Tensor) -> Tensor:
    x.transpose_(2, 3)
    n.act(x)
    return n.conv2(x)


def transposed_(n: Net, x: Tensor, acts: list[Tensor]) -> Tensor:
    acts.append(F.silu(x.transpose(2, 3)))
    return n.conv2(acts[0])


def result_written(n: Net, x: Tensor) -> Tensor:
    y = n.act(x)
    y.mul_(2)
    y[:, 0] = 1
    return n.conv2(x) + y


def result_written_(n: Net, x: Tensor, acts: list[Tensor]) -> Tensor:
    acts.append(F.silu(x))
    x = acts[0] * 2
    x = torch.cat([torch.ones_like(x[:, :1]), x[:, 1:]], 1)
    return n.conv2(x) + x


def collected(n: Net, x: Tensor) -> Tensor:
    total = torch.zeros_like(x)
    total[:, :4] = x[:, :4]
    total[:, 4:] += x[:, :4]
    torch.add(total, 1, out=total) if not torch.is_grad_enabled() else total.add_(1)
    return n.conv2(total)


def collected_(n: Net, x: Tensor, acts: list[Tensor]) -> Tensor:
    return n.conv2(torch.cat([x[:, :4], x[:, :4]], 1) + 1)


def past_autograd(n: Net, x: Tensor) -> Tensor:
    x.data.mul_(2)
    x.detach()[:, 0] = 1
    with torch.no_grad():
        x.add_(1)
    return n.conv2(x) * x


def past_autograd_(n: Net, x: Tensor, acts: list[Tensor]) -> Tensor:
    new = x.detach() * 2
    new = torch.cat([torch.ones_like(new[:, :1]), new[:, 1:]], 1) + 1
    x = x + (new - x.detach())  # the values of `new`, the gradient of x: as autograd has it
    return n.conv2(x) * x


def without_gradient(n: Net, x: Tensor) -> Tensor:
    with torch.no_grad():
        x.mul_(2)
    return n.conv2(x) * x


def without_gradient_(n: Net, x: Tensor, acts: list[Tensor]) -> Tensor:
    x = x + x.detach()  # twice the values, the gradient of x: as autograd has it
    return n.conv2(x) * x


CASES = [
    (thrown_away_module, thrown_away_module_),
    (used_both_ways, used_both_ways_),
    (two_branches, two_branches_),
    (called_three_times, called_three_times_),
    (on_slices, on_slices_),
    (add, add_),
    (residual, residual_),
    (functional_inplace, functional_inplace_),
    (underscore_functions, underscore_functions_),
    (clamp, clamp_),
    (item, item_),
    (view_zeroed, view_zeroed_),
    (chunks, chunks_),
    (unbound, unbound_),
    (overlapping_views, overlapping_views_),
    (view_of_a_view, view_of_a_view_),
    (with_its_own_part, with_its_own_part_),
    (transposed, transposed_),
    (result_written, result_written_),
    (collected, collected_),
    (past_autograd, past_autograd_),
    (without_gradient, without_gradient_),
]
each_case = pytest.mark.parametrize(
    ("in_place", "by_hand"), CASES, ids=[case[0].__name__ for case in CASES]
)


def _oracle(net: Net, by_hand: Any, x: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Gradients of the score at what `conv` returned and at each call of `act`."""
    start = net.conv(x).detach().requires_grad_()
    acts: list[Tensor] = []
    score = net.head(by_hand(net, start, acts).mean((2, 3)))[:, 1].sum()
    first, *others = torch.autograd.grad(score, [start, *acts])
    return first, others


@each_case
@pytest.mark.parametrize("layers", ["conv", "act", "conv act", "all", "all, last first"])
def test_gradients_are_those_of_the_net_without_in_place_operations(
    in_place: Any, by_hand: Any, layers: str
) -> None:
    net, x = Net(in_place), _picture()
    every = [path for path, _ in net.named_modules()]
    paths = every[:: -1 if "last" in layers else 1] if "all" in layers else layers.split()
    at_conv, at_acts = _oracle(net, by_hand, x)

    with forward_pass(net, x, paths) as run:
        gradients = run.gradients(run.logits[:, 1])

        assert torch.equal(run.logits, _plain(net, x))
    if "conv" in paths:
        torch.testing.assert_close(gradients["conv", 0], at_conv, rtol=1e-10, atol=1e-13)
    if "act" in paths:
        assert sum(path == "act" for path, _ in gradients) == len(at_acts)
        for call, expected in enumerate(at_acts):
            torch.testing.assert_close(gradients["act", call], expected, rtol=1e-10, atol=1e-13)


@each_case
@pytest.mark.parametrize("input_needs_gradient", [False, True])
def test_every_hook_on_every_module_fires_and_the_logits_stay(
    in_place: Any, by_hand: Any, input_needs_gradient: bool
) -> None:
    net, x = Net(in_place), _picture()
    plain = _plain(net, x)
    follows = set()

    with HookSession(net) as session:
        for path, _ in net.named_modules():

            def watch(module: Any, args: Any, output: Tensor, path: str = path) -> None:
                if output.requires_grad:
                    follows.add(path)

            session.forward(path, watch)
            session.full_backward(path, lambda module, grad_input, grad_output: None)
        logits = session.module(x.requires_grad_(input_needs_gradient))
        logits[:, 1].sum().backward()

    assert torch.equal(logits, plain)
    fired = {r.path for r in session.ledger.records if r.kind == "full_backward" and r.fires}
    assert fired == follows
    assert "conv" in fired


@each_case
def test_what_a_hook_kept_is_not_written_over(in_place: Any, by_hand: Any) -> None:
    net, x = Net(in_place), _picture()
    kept: list[tuple[Tensor, Tensor]] = []

    for grad in (True, False):
        with torch.set_grad_enabled(grad), HookSession(net) as session:
            for path, _ in net.named_modules():
                session.forward(
                    path, lambda module, args, output: kept.append((output, output.clone()))
                )
            logits = session.module(x)

        assert torch.equal(logits, _plain(net, x))
        assert all(torch.equal(then, now) for then, now in kept)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("batch", [1, 3])
def test_convolution_kernels_do_not_notice(channels_last: bool, batch: int) -> None:
    # Strides decide which kernel a convolution takes, and the kernel the last bits.
    net = Net(used_both_ways).float()
    x = _picture(batch).float()
    if channels_last:
        net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)

    with HookSession(net) as session:
        for path, _ in net.named_modules():
            session.forward(path, lambda module, args, output: None)
            session.full_backward(path, lambda module, grad_input, grad_output: None)
        logits = session.module(x)

    assert torch.equal(logits, _plain(net, x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "act",
    [
        nn.ReLU(True),
        nn.ReLU6(True),
        nn.Hardswish(True),
        nn.Hardsigmoid(True),
        nn.SiLU(True),
        nn.Mish(True),
        nn.ELU(inplace=True),
        nn.SELU(True),
        nn.CELU(inplace=True),
        nn.LeakyReLU(0.1, True),
        nn.Threshold(0.1, 2.0, True),
        nn.Hardtanh(inplace=True),
        nn.Dropout(0.5, True),
        nn.FeatureAlphaDropout(0.5, True),
    ],
    ids=lambda act: type(act).__name__,
)
def test_in_place_activations_give_the_same_bits(act: nn.Module, dtype: torch.dtype) -> None:
    net = nn.Sequential(nn.Conv2d(3, 8, 3), act, nn.Conv2d(8, 8, 3)).to(dtype).eval()
    x = (3 * torch.randn(2, 3, 16, 16, generator=_generator())).to(dtype)

    with HookSession(net) as session:
        session.full_backward("0", lambda module, grad_input, grad_output: None)
        session.full_backward("1", lambda module, grad_input, grad_output: None)
        assert torch.equal(session.module(x), _plain(net, x))


def test_random_masks_are_the_same_in_training() -> None:
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.Dropout(0.5, True),
        nn.RReLU(inplace=True),
        nn.AlphaDropout(0.5, True),
    )
    x = torch.randn(2, 3, 8, 8)
    torch.manual_seed(3)
    plain = _plain(net, x)

    with HookSession(net) as session:
        for path, _ in net.named_modules():
            session.full_backward(path, lambda module, grad_input, grad_output: None)
        torch.manual_seed(3)
        hooked = session.module(x)

    assert torch.equal(hooked, plain)


def test_a_module_that_returns_what_it_wrote_over() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(8, 8, 1)

        def forward(self, x: Tensor) -> Tensor:
            y = self.conv(x)
            F.silu(y, inplace=True)  # thrown away
            return y

    net = Net(lambda n, x: n.conv2(n.block(x)))
    net.block = Block().double()  # type: ignore[assignment]
    x = _picture()
    start = F.silu(net.block.conv(net.conv(x))).detach().requires_grad_()
    (expected,) = torch.autograd.grad(net.head(net.conv2(start).mean((2, 3)))[:, 1].sum(), start)

    with forward_pass(net, x, ["block.conv", "block"]) as run:
        gradients = run.gradients(run.logits[:, 1])
        maps = run.feature_maps()

    assert torch.equal(maps["block"][0], start)
    assert torch.equal(maps["block.conv"][0], net.block.conv(net.conv(x)))
    torch.testing.assert_close(gradients["block", 0], expected, rtol=1e-10, atol=1e-13)


def test_a_hook_sees_the_input_as_it_is_when_the_module_is_called() -> None:
    def body(n: Net, x: Tensor) -> Tensor:
        F.silu(x, inplace=True)
        return n.conv2(x)

    net, x = Net(body), _picture()
    inputs: dict[str, Tensor] = {}

    with HookSession(net) as session:
        session.forward("conv", lambda module, args, output: None)
        session.forward_pre("conv2", lambda module, args: inputs.update(before=args[0].clone()))
        session.forward("conv2", lambda module, args, output: inputs.update(after=args[0].clone()))
        session.module(x)

    expected = F.silu(net.conv(x))
    assert torch.equal(inputs["before"], expected)
    assert torch.equal(inputs["after"], expected)


def test_a_pre_hook_alone_sees_what_the_network_wrote() -> None:
    def body(n: Net, x: Tensor) -> Tensor:
        F.silu(x, inplace=True)
        return n.conv2(x)

    net, x = Net(body), _picture()
    seen: list[Tensor] = []

    with HookSession(net) as session:
        session.forward("conv", lambda module, args, output: None)
        session.forward_pre("conv2", lambda module, args: seen.append(args[0].clone()))
        assert torch.equal(session.module(x), _plain(net, x))

    assert torch.equal(seen[0], F.silu(net.conv(x)))


class Written(nn.Module):
    """Returns what it wrote over, and throws the result away on the way."""

    def forward(self, x: Tensor) -> Tensor:
        y = x * 1
        F.silu(y, inplace=True)
        return y


def test_a_full_backward_hook_alone_stands_around_what_the_module_wrote() -> None:
    net, x = Net(lambda n, x: n.conv2(n.act(x))), _picture()
    net.act = Written()  # type: ignore[assignment]
    got: dict[str, Tensor] = {}

    with HookSession(net) as session:
        session.full_backward("act", lambda m, gi, go: got.update(act_in=gi[0], act_out=go[0]))
        session.full_backward("conv", lambda m, gi, go: got.update(conv_out=go[0]))
        logits = session.module(x)
        torch.autograd.grad(logits[:, 1].sum(), [net.conv.weight])

    start = net.conv(x).detach().requires_grad_()
    act = F.silu(start)
    score = net.head(net.conv2(act).mean((2, 3)))[:, 1].sum()
    at_start, at_act = torch.autograd.grad(score, [start, act])
    assert torch.equal(logits, _plain(net, x))
    torch.testing.assert_close(got["act_out"], at_act, rtol=1e-10, atol=1e-13)
    torch.testing.assert_close(got["act_in"], at_start, rtol=1e-10, atol=1e-13)
    torch.testing.assert_close(got["conv_out"], at_start, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", ["efficientnet_lite0", "densenet121"])
@pytest.mark.parametrize("channels_last", [False, True])
def test_every_module_of_a_real_net_in_channels_last(name: str, channels_last: bool) -> None:
    # PyTorch's view for a full backward hook has another stride than the tensor it stands for.
    net = interp.load_model(name, weights="none", device="cpu").module
    x = torch.randn(1, 3, 96, 96, generator=_generator())
    if channels_last:
        x = x.to(memory_format=torch.channels_last)

    with HookSession(net) as session:
        for path, _ in net.named_modules():
            session.forward(path, lambda module, args, output: None)
            session.full_backward(path, lambda module, grad_input, grad_output: None)
        logits = session.module(x.clone().requires_grad_())

    assert torch.equal(logits, _plain(net, x))


def test_the_caller_may_write_to_what_the_network_wrote_over() -> None:
    class First(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            x.mul_(2)
            return x + 0

    net = nn.Sequential(First(), nn.Flatten(), nn.Linear(192, 3).double())
    x = _picture()

    with HookSession(net) as session:
        session.forward_pre("", lambda module, args: None)
        session.module(x)
        x.copy_(_picture() - 1)
        second = session.module(x)

    assert torch.equal(second, _plain(net, _picture() - 1))
    assert torch.equal(x, _picture() - 1)


def test_a_module_that_hands_its_input_back_is_not_what_wrote_it() -> None:
    def body(n: Net, x: Tensor) -> Tensor:
        n.act(x)
        n.same(x)  # thrown away: no gradient goes through it
        return n.conv2(x)

    net, x = Net(body), _picture()
    net.same = nn.Identity()
    at_conv, (at_act,) = _oracle(net, thrown_away_module_, x)

    with forward_pass(net, x, ["act", "same", "conv"]) as run:
        gradients = run.gradients(run.logits[:, 1])

    torch.testing.assert_close(gradients["act", 0], at_act, rtol=1e-10, atol=1e-13)
    torch.testing.assert_close(gradients["conv", 0], at_conv, rtol=1e-10, atol=1e-13)
    backward = {r.path: r for r in run.session.ledger.records if r.kind == "full_backward"}
    assert backward["act"].fires > 0
    assert backward["same"].fires == 0


@pytest.mark.parametrize("shares", ["a view", "memory alone"])
def test_an_input_that_is_a_part_of_a_larger_tensor(shares: str) -> None:
    class First(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            x[:, 1].add_(1)
            return x * x

    net = nn.Sequential(First(), nn.Flatten(), nn.Linear(192, 3).double())
    batch = _picture(4)
    before = batch.clone()
    x = batch[1:3]
    if shares == "memory alone":
        x = torch.empty(0).double().set_(batch.untyped_storage(), 192, x.size(), x.stride())
    expected = _plain(net, x)

    for grad in (True, False):
        with torch.set_grad_enabled(grad), HookSession(net) as session:
            session.forward_pre("", lambda module, args: None)
            session.full_backward("0", lambda module, grad_input, grad_output: None)
            assert torch.equal(session.module(x), expected)

    assert torch.equal(batch, before)


def test_a_hook_that_writes_in_place_changes_what_follows() -> None:
    net, x = Net(lambda n, x: n.conv2(n.act(x))), _picture()
    seen: list[Tensor] = []

    def ablate(module: Any, args: Any, output: Tensor) -> None:
        output[:, 2] = 0
        assert output[:, 2].abs().sum() == 0  # it sees its own writing

    with HookSession(net) as session:
        session.forward("conv", lambda module, args, output: seen.append(output))
        handle = session.forward("conv", ablate)
        session.full_backward("conv", lambda module, grad_input, grad_output: None)
        session.forward("conv", lambda module, args, output: seen.append(output))
        logits = session.module(x)

    before = net.conv(x)
    after = before.clone()
    after[:, 2] = 0
    assert torch.equal(seen[0], before)
    assert torch.equal(seen[1], after)
    torch.testing.assert_close(logits, net.head(net.conv2(F.silu(after)).mean((2, 3))))
    assert [event.what for event in session.ledger.events if event.hook == handle.id][:3] == [
        "registered",
        "fired",
        "changed",
    ]


def test_a_hook_may_fill_a_tensor_of_its_own() -> None:
    net, x = Net(lambda n, x: n.conv2(n.act(n.conv2(n.act(x))))), _picture()
    means, total = torch.zeros(2).double(), torch.zeros(()).double()
    calls = iter(range(2))

    def note(module: Any, args: Any, output: Tensor) -> None:
        means[next(calls)] = output.mean()
        total.add_(output.sum())

    with HookSession(net) as session:
        session.forward("conv2", note)
        session.module(x)

    first = net.conv2(F.silu(net.conv(x)))
    second = net.conv2(F.silu(first))
    torch.testing.assert_close(means, torch.stack([first.mean(), second.mean()]))
    torch.testing.assert_close(total, first.sum() + second.sum())


def test_code_around_the_pass_writes_as_it_always_does() -> None:
    net, x = Net(lambda n, x: n.conv2(n.act(x))), _picture()

    with HookSession(net) as session:
        session.forward_pre("", lambda module, args: None)
        session.forward("", lambda module, args, output: None)
        first = session.module(x)
        total = first.sum()
        total.mul_(2)
        x.add_(1)
        second = session.module(x)
        first.sub_(first.detach().clone())

    assert torch.equal(second, _plain(net, x))
    assert torch.equal(x, _picture() + 1)
    assert first.abs().sum() == 0
    torch.testing.assert_close(total, 2 * _plain(net, _picture()).sum())


def test_nothing_is_watched_once_the_session_is_over() -> None:
    from torch.overrides import _len_torch_function_stack

    net, x = Net(add), _picture()
    with HookSession(net) as session:
        session.forward("conv", lambda module, args, output: None)
        session.module(x)
        assert _len_torch_function_stack() == 1
    y = x.clone().requires_grad_() * 2
    same = y

    y.add_(1)

    assert _len_torch_function_stack() == 0
    assert torch.equal(same, x * 2 + 1)
