"""`make hostile`: random little nets with all that hooks stumble over, against PyTorch alone.

Each net is a seeded program over a few tensors: modules that write in place, run again or whose
result is thrown away, views, branches, writes to views, to parts and under no_grad, shapes changed
in place. What a hooked pass gives is compared with PyTorch on a deep copy without any of our hooks:
logits bit for bit, every feature map bit for bit with what the module returned, and every gradient
with autograd's at a zero that is added in place to what the module returned. Where PyTorch itself
cannot differentiate that, finite differences in float64 are the oracle.
"""

from __future__ import annotations

import copy
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from interp.hooks.passes import forward_pass
from interp.hooks.session import HookSession

SIDE, CHANNELS, SECONDS = 4, 4, 20
DATA = "data"
MODULES = ("mix", "norm", "act", "act", "block", "same", "drop", "throws", "part")
HANDED_BACK = ("same", "drop", "block.2")
Step = Callable[["Hostile", list[Tensor]], None]


class ThrowsAway(nn.Module):
    """Writes to what it is given and returns something else."""

    def forward(self, x: Tensor) -> Tensor:
        F.silu(x, inplace=True)
        return x.flip(1) * 0.5


class Part(nn.Module):
    """Returns a view of what it is given, some of it written to."""

    def forward(self, x: Tensor) -> Tensor:
        x[:, :1] *= 1.5
        return x.transpose(2, 3)


class Pair(nn.Module):
    """A tuple, a dict and keywords."""

    def forward(self, x: Tensor, *, other: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return x * 2, {"b": other + x}


class Hostile(nn.Module):
    """A program over a list of tensors of one shape, then a head."""

    def __init__(self, seed: int, length: int = 9) -> None:
        super().__init__()
        draw = random.Random(seed)
        torch.manual_seed(seed)
        self.conv = nn.Conv2d(3, CHANNELS, 3, padding=1)
        self.mix = nn.Conv2d(CHANNELS, CHANNELS, 1)
        self.norm = nn.BatchNorm2d(CHANNELS)
        self.act = draw.choice([nn.SiLU, nn.ELU, nn.Hardswish, nn.Mish, nn.CELU])(inplace=True)
        self.block = nn.Sequential(
            nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), nn.SiLU(True), nn.Dropout(0.5)
        )
        self.same, self.drop = nn.Identity(), nn.Dropout(0.5, inplace=True)
        self.throws, self.part, self.pair = ThrowsAway(), Part(), Pair()
        self.head = nn.Linear(CHANNELS, 3)
        self.steps = [draw.choice(STEPS)(draw) for _ in range(length)]
        self.detached = {step.detached for step in self.steps if hasattr(step, "detached")}
        self.double().eval()

    def forward(self, x: Tensor) -> Tensor:
        tensors = [self.conv(x)]
        for step in self.steps:
            step(self, tensors)
        total = tensors[0].sum((2, 3))
        for tensor in tensors[1:]:
            total = total + tensor.mean((2, 3))
        return self.head(total)


def _module(draw: random.Random) -> Step:
    name = draw.choice(MODULES)
    source, keep = draw.random(), draw.random() < 0.65

    def step(net: Hostile, tensors: list[Tensor]) -> None:
        result = getattr(net, name)(tensors[int(source * len(tensors))])
        if keep:
            tensors.append(result)

    return step


def _replace(draw: random.Random) -> Step:
    name, source = draw.choice(MODULES), draw.random()

    def step(net: Hostile, tensors: list[Tensor]) -> None:
        place = int(source * len(tensors))
        tensors[place] = getattr(net, name)(tensors[place])

    return step


def _pair(draw: random.Random) -> Step:
    a, b = draw.random(), draw.random()

    def step(net: Hostile, tensors: list[Tensor]) -> None:
        n = len(tensors)
        first, rest = net.pair(tensors[int(a * n)], other=tensors[int(b * n)])
        tensors += [first, rest["b"]]

    return step


def _write(draw: random.Random) -> Step:
    kind, source, other = draw.randrange(8), draw.random(), draw.random()
    low = draw.randrange(CHANNELS - 1)
    factor = draw.choice([0.5, 1.5])

    def step(net: Hostile, tensors: list[Tensor]) -> None:
        x, y = (tensors[int(at * len(tensors))] for at in (source, other))
        match kind:
            case 0:
                x.mul_(factor)
            case 1:
                x += y
            case 2:
                x[:, low : low + 2].mul_(factor)
            case 3:
                x[:, low] = 0.25
            case 4:
                F.elu(x, inplace=True)
            case 5:
                x.chunk(2, 1)[1].add_(factor)
            case 6:
                torch.ops.aten.mul_.Scalar(x, factor)
            case 7:
                torch._foreach_mul_([x], factor)

    return step


def _view(draw: random.Random) -> Step:
    kind, source = draw.randrange(4), draw.random()

    def step(net: Hostile, tensors: list[Tensor]) -> None:
        x = tensors[int(source * len(tensors))]
        views = (
            lambda: x.view_as(x) if x.is_contiguous() else x.transpose(2, 3),
            lambda: x.permute(0, 1, 3, 2),
            lambda: x.flatten(2).unflatten(2, (SIDE, SIDE)),
            lambda: x[:, :CHANNELS],
        )
        tensors.append(views[kind]())

    return step


def _shape(draw: random.Random) -> Step:
    kind, source = draw.randrange(3), draw.random()

    def step(net: Hostile, tensors: list[Tensor]) -> None:
        x = tensors[int(source * len(tensors))]
        match kind:
            case 0:
                x.transpose_(2, 3)
            case 1:
                x.unsqueeze_(0)
                x.squeeze_(0)
            case 2:
                x.t_() if x.dim() == 2 else x.swapaxes_(2, 3)

    return step


def _join(draw: random.Random) -> Step:
    a, b, times = draw.random(), draw.random(), draw.random() < 0.5

    def step(net: Hostile, tensors: list[Tensor]) -> None:
        x, y = (tensors[int(at * len(tensors))] for at in (a, b))
        tensors.append(x * y if times else x + y)

    return step


def _detached(draw: random.Random) -> Step:
    kind, source = draw.choice([DATA, "no_grad"]), draw.random()

    def step(net: Hostile, tensors: list[Tensor]) -> None:
        x = tensors[int(source * len(tensors))]
        if kind == DATA:
            x.data.mul_(1.25)
        else:
            with torch.no_grad():
                x.add_(0.5)

    step.detached = kind  # type: ignore[attr-defined]
    return step


STEPS: list[Callable[[random.Random], Step]] = [
    *(_module, _module, _module, _replace, _replace, _pair),
    *(_write, _write, _write, _view, _view, _shape, _join, _join, _detached),
]


@contextmanager
def _limit(seconds: int) -> Iterator[None]:
    """Raise where the block takes longer: nothing may hang."""

    def ring(*given: Any) -> None:
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _first(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else value[0]


def _plain_maps(net: nn.Module, x: Tensor) -> tuple[Tensor, dict[tuple[str, int], Tensor]]:
    """The logits, and a clone of what each call of each module returned."""
    plain, maps = copy.deepcopy(net), {}
    counts: Counter[str] = Counter()
    for path, part in plain.named_modules():

        def keep(module: Any, args: Any, output: Any, path: str = path) -> None:
            maps[path, counts[path]] = _first(output).clone()
            counts[path] += 1

        part.register_forward_hook(keep)
    with torch.no_grad():
        return plain(x.clone()), maps


def _with_zero(
    net: nn.Module, x: Tensor, path: str, call: int, zero: Tensor, aliased: bool
) -> Tensor:
    """The logits where `zero` is added to what one call returned: in place, or to a new tensor."""
    plain, calls = copy.deepcopy(net).requires_grad_(False), iter(range(10**6))

    def add(module: Any, args: Any, output: Any) -> Any:
        if next(calls) != call:
            return None
        if aliased:
            _first(output).add_(zero)
            return None
        new = _first(output) + zero
        return new if isinstance(output, Tensor) else (new, *output[1:])

    plain.get_submodule(path).register_forward_hook(add)
    return plain(x.clone())


def by_autograd(
    net: Hostile, x: Tensor, path: str, call: int, shape: torch.Size, aliased: bool
) -> Tensor | None:
    """The gradient of a logit at a call by PyTorch alone; None where it cannot tell."""
    zero = torch.zeros(shape, dtype=x.dtype, requires_grad=True)
    try:
        logits = _with_zero(net, x, path, call, zero, aliased)
        (gradient,) = torch.autograd.grad(logits[:, 1].sum(), zero, allow_unused=True)
    except RuntimeError:  # this is what PyTorch alone cannot differentiate
        return None
    return torch.zeros_like(zero) if gradient is None else gradient


def slope(net: Hostile, x: Tensor, path: str, call: int, way: Tensor, aliased: bool) -> float:
    """How fast a logit rises along a direction, by finite differences."""
    step = 1e-6
    with torch.no_grad():
        up, down = (
            _with_zero(net, x, path, call, sign * step * way, aliased)[:, 1].sum()
            for sign in (1, -1)
        )
    return float(up - down) / (2 * step)


def problems(seed: int) -> tuple[list[str], Counter[str]]:
    """What is wrong with a hooked pass over one random net, and what its oracles were."""
    net, kinds = Hostile(seed), Counter[str]()
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(2, 3, SIDE, SIDE, dtype=torch.float64, generator=generator)
    try:
        plain, maps = _plain_maps(net, x)
    except RuntimeError:
        return [], Counter({"no net: PyTorch cannot run it": 1})
    wrong = []
    paths = [path for path, _ in net.named_modules() if any(name == path for name, _ in maps)]
    draw = random.Random(seed)
    chosen = paths if seed % 3 else draw.sample(paths, max(1, len(paths) // 3))
    with _limit(SECONDS):
        with forward_pass(net, x, chosen) as run:
            logits = run.logits.detach()
            gradients = run.gradients(run.logits[:, 1])
            features = run.feature_maps()
        wrong += _every_hook(net, x, plain)
    if not torch.equal(logits, plain):
        wrong.append("the logits are others")
    for (path, call), expected in maps.items():
        if path in chosen:
            feature = features[path][call]
            if feature is None or not torch.equal(feature, expected):
                wrong.append(f"the feature map of {path}#{call} is another")
            found = gradients.get((path, call), torch.zeros_like(expected))
            told, right = _is_right(net, x, path, call, found)
            kinds[told] += 1
            if not right:
                wrong.append(f"the gradient of {path}#{call} is wrong ({told})")
    return wrong, kinds


def _is_right(net: Hostile, x: Tensor, path: str, call: int, found: Tensor) -> tuple[str, bool]:
    """Who could tell the gradient, and whether it is that.

    What is handed back as it came has two names: the module's, which a hook is asked about, and
    the caller's. A zero added in place is added to both.
    """
    if DATA in net.detached:  # PyTorch then computes with saved values that are others by now
        return "gradients nobody can tell", True
    readings = (True, False) if path in HANDED_BACK else (True,)
    told = [by_autograd(net, x, path, call, found.shape, aliased) for aliased in readings]
    if any(one is not None and torch.allclose(found, one, 1e-8, 1e-11) for one in told):
        return "gradients by PyTorch alone", True
    if all(one is None for one in told) and not net.detached:
        way = torch.randn(found.shape, dtype=x.dtype, generator=torch.Generator().manual_seed(1))
        here = float((found * way).sum())
        slopes = [slope(net, x, path, call, way, aliased) for aliased in readings]
        close = any(abs(here - one) <= 1e-5 * max(1.0, abs(one)) for one in slopes)
        if close or path not in HANDED_BACK:
            return "gradients by finite differences", close
    if path in HANDED_BACK:
        return "gradients of two readings, one name written to later", True
    known = any(one is not None for one in told)
    return ("gradients by PyTorch alone", False) if known else ("gradients nobody can tell", True)


def _every_hook(net: nn.Module, x: Tensor, plain: Tensor) -> list[str]:
    """Hooks of every kind on every module, with the input followed."""
    kept: list[tuple[Tensor, Tensor]] = []
    with HookSession(net) as session:
        for path, _ in session.module.named_modules():
            session.forward_pre(path, lambda module, args: None)
            session.forward(
                path, lambda module, args, out: kept.append((_first(out), _first(out).clone()))
            )
            session.full_backward(path, lambda module, given, out: None)
        shown = x.clone().requires_grad_()
        logits = session.module(shown)
        torch.autograd.grad(logits[:, 1].sum(), shown)
    wrong = [] if torch.equal(logits, plain) else ["with every hook the logits are others"]
    if not all(torch.equal(then, now) for then, now in kept):
        wrong.append("what a hook kept was written over")
    return wrong


def main() -> int:
    """Run the number of nets that is asked for; 1 where one of them went wrong."""
    torch.set_num_threads(1)
    count, start = (int(value) for value in [*sys.argv[1:], *("300", "0")[len(sys.argv) - 1 :]])
    kinds: Counter[str] = Counter()
    failed = 0
    for seed in range(start, start + count):
        try:
            wrong, told = problems(seed)
        except Exception as error:  # whatever it is, it is this net's fault to show
            wrong, told = [f"{type(error).__name__}: {str(error)[:160]}"], Counter()
        kinds += told
        failed += bool(wrong)
        for line in wrong:
            print(f"net {seed}: {line}")
    print(f"{count} nets, {failed} wrong; {', '.join(f'{n} {kind}' for kind, n in kinds.items())}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
