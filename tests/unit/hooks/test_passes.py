"""One pass: where its graph starts, gradients of every call, and what it leaves as it was."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import _len_torch_function_stack
from torch.utils.checkpoint import checkpoint
from torchvision.models import densenet121, resnet18

import interp
from interp.errors import LayerError, ModelError
from interp.geometry import Preset
from interp.hooks.ledger import HookLedger, audit
from interp.hooks.passes import Pass, forward_pass

pytestmark = pytest.mark.filterwarnings("ignore:For backward hooks to be called")


class Stop(BaseException):
    """As Streamlit interrupts a script: no `Exception`."""


def _picture(*size: int, dtype: torch.dtype = torch.float32) -> Tensor:
    size = size or (2, 3, 8, 8)
    return torch.randn(*size, dtype=dtype, generator=torch.Generator().manual_seed(1))


def _resnet(*, inplace: bool = True) -> nn.Module:
    torch.manual_seed(0)
    net = resnet18(weights=None, num_classes=10).double().eval()
    for part in net.modules():
        if isinstance(part, nn.ReLU):
            part.inplace = inplace
        if isinstance(part, nn.BatchNorm2d):  # statistics that matter
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    return net


# --- gradients ---

RELU = "layer4.0.relu"


@pytest.fixture(scope="module")
def oracle() -> dict[tuple[str, int], tuple[Tensor, Tensor]]:
    """(feature map, gradient) of every call of every module, by `retain_grad` on the outputs of a
    ResNet that does nothing in place."""
    net, found = _resnet(inplace=False), {}
    for path, part in net.named_modules():
        calls: list[tuple[Tensor, Tensor]] = []
        found[path] = calls

        def keep(module: Any, args: Any, output: Tensor, calls: list[Any] = calls) -> None:
            output.retain_grad()
            calls.append((output.detach().clone(), output))  # the block adds to it in place

        part.register_forward_hook(keep)
    net(_picture(2, 3, 32, 32, dtype=torch.float64))[:, 3].sum().backward()
    return {
        (path, number): (feature_map, output.grad)
        for path, calls in found.items()
        for number, (feature_map, output) in enumerate(calls)
    }


@pytest.mark.parametrize(
    "paths",
    [
        [RELU],
        [RELU, "layer4.1.relu"],
        ["layer4.1.relu", RELU],
        ["conv1", "bn1", "relu", "maxpool"],
        ["layer4.0.conv1", "layer4.0.bn1", RELU, "layer4.0", "layer4"],
        ["fc", "avgpool", "layer1.0.relu"],
        ["everything"],
        ["everything, the last first"],
    ],
)
def test_every_call_has_its_own_map_and_gradient(oracle: Any, paths: list[str]) -> None:
    net, x = _resnet(), _picture(2, 3, 32, 32, dtype=torch.float64)
    if paths[0].startswith("everything"):
        every = [path for path, _ in net.named_modules()]
        paths = every[::-1] if "last" in paths[0] else every

    with forward_pass(net, x, paths) as run:
        maps, gradients = run.feature_maps(), run.gradients(run.logits[:, 3])

    expected = {call for call in oracle if call[0] in paths}
    assert set(gradients) == expected
    for path, call in expected:
        feature_map, gradient = oracle[path, call]
        assert torch.equal(maps[path][call], feature_map)
        torch.testing.assert_close(gradients[path, call], gradient, rtol=1e-9, atol=1e-15)
    assert len(maps.get(RELU, range(2))) == 2


def test_full_backward_hooks_give_the_gradients_of_layers_that_run_once() -> None:
    net, x = _resnet().requires_grad_(False), _picture(1, 3, 32, 32, dtype=torch.float64)
    once = [path for path, part in net.named_modules() if not isinstance(part, nn.ReLU)]

    with forward_pass(net, x, once, light=True) as run:
        gradients = run.gradients(run.logits[:, 0])

    assert set(gradients) == {(path, 0) for path in once}
    records = run.session.ledger.records
    assert {record.kind for record in records} == {"forward", "full_backward"}
    assert all(record.fires == 1 for record in records)
    assert all(record.bytes_held > 0 for record in records)


def test_a_tensor_hook_tells_calls_apart_and_says_so() -> None:
    net, x = _resnet(), _picture(1, 3, 32, 32, dtype=torch.float64)

    with forward_pass(net, x, [RELU]) as run:
        run.gradients(run.logits[:, 0])

    tensor = [record for record in run.session.ledger.records if record.kind == "tensor"]
    assert [record.purpose for record in tensor] == [
        "gradient of call 0: it tells the calls apart",
        "gradient of call 1: it tells the calls apart",
    ]
    assert [(r.path, r.class_name, r.origin, r.fires) for r in tensor] == [
        (RELU, "ReLU", "engine", 1)
    ] * 2


def test_several_scores_from_one_pass() -> None:
    net, x = _resnet(), _picture(1, 3, 32, 32, dtype=torch.float64)
    paths = ["layer3", RELU]

    with forward_pass(net, x, paths) as run:
        several = [run.gradients(run.logits[:, k]) for k in (0, 7, 0)]
        forward_fires = [r.fires for r in run.session.ledger.records if r.kind == "forward"]
    alone = []
    for k in (0, 7):
        with forward_pass(net, x, paths) as run:
            alone.append(run.gradients(run.logits[:, k]))

    assert forward_fires == [1, 2]
    for got, expected in zip(several, [*alone, alone[0]], strict=True):
        assert set(got) == set(expected)
        assert all(torch.equal(got[call], expected[call]) for call in got)
    assert not torch.equal(several[0]["layer3", 0], several[1]["layer3", 0])


def test_the_graph_starts_at_the_first_layer_asked_for() -> None:
    net = _resnet().float().requires_grad_(True)
    x = _picture(1, 3, 32, 32).requires_grad_()

    def convolutions(paths: list[str]) -> int:
        with forward_pass(net, x, paths) as run:
            seen, queue = set(), [run.logits.grad_fn]
            while queue:
                node = queue.pop()
                if node is not None and node not in seen:
                    seen.add(node)
                    queue += [before for before, _ in node.next_functions]
            leaves = [
                node for node in seen if node.name() == "struct torch::autograd::AccumulateGrad"
            ]
            assert all(leaf.variable.dim() == 4 for leaf in leaves)
            return sum(node.name() == "ConvolutionBackward0" for node in seen)

    assert convolutions(["layer4"]) == 0
    assert convolutions(["layer4.0"]) == 2
    assert convolutions(["layer4", "layer3"]) == convolutions(["layer3", "layer4"]) == 5
    assert x.grad is None
    assert all(parameter.grad is None for parameter in net.parameters())


def test_without_gradients_nothing_is_followed() -> None:
    with forward_pass(_resnet(), _picture(1, 3, 32, 32).double(), [RELU], gradients=False) as run:
        assert not run.logits.requires_grad
        assert run.gradients(run.logits[:, 0]) == {}
        assert len(run.feature_maps()[RELU]) == 2
    assert [r.kind for r in run.session.ledger.records] == ["forward"]


# --- modules that return something else than one tensor ---


class Inner(nn.Module):
    def __init__(self, make: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.make = make

    def forward(self, x: Tensor) -> Any:
        return self.make(x)


class Outer(nn.Module):
    """x² through `inner`, then a score of known gradient: 3 y₀ (and 4 y₁) where y is its output."""

    def __init__(self, make: Callable[[Tensor], Any], use: Callable[[Any], Tensor]) -> None:
        super().__init__()
        self.inner, self.use = Inner(make), use

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([self.use(self.inner(x**2)).sum(1), x.sum(1)], 1)


@pytest.mark.parametrize("input_is_followed", [False, True])
@pytest.mark.parametrize(
    ("make", "use", "kind"),
    [
        (lambda x: x, lambda y: 3 * y, "full_backward"),
        (lambda x: (x * 1, x + 1), lambda y: 3 * y[0] + 4 * y[1], "full_backward"),
        (lambda x: (None, "text", x * 1), lambda y: 3 * y[2], "tensor"),
        (lambda x: ((x * 1,), x + 1), lambda y: 3 * y[0][0] + 4 * y[1], "tensor"),
        (lambda x: [x * 1, x + 1], lambda y: 3 * y[0] + 4 * y[1], "tensor"),
        (lambda x: {"out": x * 1}, lambda y: 3 * y["out"], "tensor"),
        (lambda x: {"a": [x * 1]}, lambda y: 3 * y["a"][0], "tensor"),
    ],
)
def test_outputs_of_every_form(make: Any, use: Any, kind: str, input_is_followed: bool) -> None:
    net = nn.Sequential(nn.Identity(), Outer(make, use))
    paths = ["0", "1.inner"] if input_is_followed else ["1.inner"]
    x = _picture(2, 4)

    with forward_pass(net, x, paths) as run:
        maps = run.feature_maps()["1.inner"]
        gradients = run.gradients(run.logits[:, 0])

    assert torch.equal(maps[0], x**2)
    assert torch.equal(gradients["1.inner", 0], torch.full((2, 4), 3.0))
    if input_is_followed:
        several = isinstance(make(x), (tuple, list)) and len(make(x)) == 2
        torch.testing.assert_close(gradients["0", 0], (7.0 if several else 3.0) * 2 * x)
    fired = {r.kind for r in run.session.ledger.records if r.path == "1.inner" and r.fires}
    assert fired >= {"forward", kind}
    assert ("tensor" in fired) == (kind == "tensor")


def test_a_module_that_returns_no_tensor() -> None:
    net = Outer(lambda x: None, lambda y: torch.ones(2, 1))
    with forward_pass(net, _picture(2, 4), ["inner"]) as run:
        assert run.feature_maps() == {"inner": [None]}
        assert run.gradients(run.logits[:, 0]) == {}


def test_keyword_calls_attention_and_unused_modules() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
            self.norm, self.aux = nn.LayerNorm(8), nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            y, _ = self.attention(query=x, key=x, value=x, need_weights=False)
            return self.norm(input=y).mean(1)

    net = Net().double().eval()
    x = _picture(2, 5, 8, dtype=torch.float64)
    start = net.attention(x, x, x)[0].detach().requires_grad_()
    (expected,) = torch.autograd.grad(net.norm(start).mean(1)[:, 1].sum(), start)

    with forward_pass(net, x, ["attention", "attention.out_proj", "aux", "norm"]) as run:
        maps, gradients = run.feature_maps(), run.gradients(run.logits[:, 1])

    assert maps["attention.out_proj"] == maps["aux"] == []
    assert set(gradients) == {("attention", 0), ("norm", 0)}
    torch.testing.assert_close(maps["attention"][0], start)
    torch.testing.assert_close(gradients["attention", 0], expected)
    silent = {r.path: r.status for r in run.session.ledger.records if not r.fires}
    assert silent["attention.out_proj"].startswith("cannot fire: MultiheadAttention uses")
    assert silent["aux"] == "never fired: the module did not run"


def test_a_layer_that_the_score_does_not_depend_on() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Linear(4, 3), nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            self.unused(x)
            return self.used(x)

    with forward_pass(Net(), _picture(2, 4), ["used", "unused"]) as run:
        assert set(run.gradients(run.logits[:, 0])) == {("used", 0)}
        assert run.gradients(run.logits[:, 1].detach()) == {}
    hook, tensor = [r.status for r in run.session.ledger.records if not r.fires]
    assert hook.startswith("never fired: the module ran, but no gradient came back to it")
    assert tensor == "never fired: no gradient reached the tensor"


class Constant(nn.Module):
    """Returns a tensor of its own: a parameter, a buffer, or neither."""

    def __init__(self, of: str) -> None:
        super().__init__()
        value = torch.full((1, 4), 2.0)
        if of == "parameter":
            self.value: Any = nn.Parameter(value)
        elif of == "buffer":
            self.register_buffer("value", value)
        else:
            self.value = value.requires_grad_(of == "needs a gradient")

    def forward(self) -> Tensor:
        return self.value


@pytest.mark.parametrize("of", ["parameter", "buffer", "attribute", "needs a gradient"])
@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_a_module_that_returns_a_tensor_of_its_own(of: str, frozen: bool, fails: bool) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.constant, self.fc = Constant(of), nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            y = x * self.constant()
            if fails:
                raise ValueError("here")
            return self.fc(y)

    net, x = Net().requires_grad_(not frozen), _picture(2, 4)
    value = net.constant.value
    flag, gradient = value.requires_grad, value.grad

    try:
        with forward_pass(net, x, ["constant"]) as run:
            assert net.constant.value.requires_grad is flag  # another thread may be using it
            gradients = run.gradients(run.logits[:, 1])
        expected = (x * net.fc.weight[1]).sum(0, keepdim=True)
        torch.testing.assert_close(gradients["constant", 0], expected)
        assert not fails
    except ValueError:
        assert fails

    assert value.requires_grad is flag
    assert value.grad is gradient


def test_weights_that_are_no_parameters_and_need_a_gradient() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.randn(3, 4, requires_grad=True)  # nothing can freeze this one
            self.inner, self.fc = nn.Identity(), nn.Linear(3, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.fc(self.inner(F.linear(x, self.weight)))

    net, x = Net(), _picture(2, 4)
    with forward_pass(net, x, ["inner"]) as run:
        gradients = run.gradients(run.logits[:, 1])

    assert torch.equal(gradients["inner", 0], net.fc.weight[1].expand(2, 3))
    assert net.weight.grad is None


def test_a_network_that_runs_layers_again_in_backward() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = nn.Sequential(nn.Conv2d(3, 4, 3), nn.SiLU())
            self.fc = nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            y = (
                checkpoint(self.block, x, use_reentrant=False)
                if self.checkpoints
                else self.block(x)
            )
            return self.fc(y.mean((2, 3)))

    net, x = Net(), _picture()
    found = []
    for net.checkpoints in (False, True):
        with forward_pass(net, x, ["block.0", "block.1", "block"]) as run:
            gradients = run.gradients(run.logits[:, 0])
            assert [len(calls) for calls in run.feature_maps().values()] == [1, 1, 1]
            found.append((run.logits.detach(), gradients))

    assert torch.equal(found[0][0], found[1][0])
    assert found[0][1].keys() == found[1][1].keys()
    for call, gradient in found[0][1].items():
        assert torch.equal(gradient, found[1][1][call])


def test_densenet_which_saves_memory_by_running_again() -> None:
    torch.manual_seed(0)
    net, x = densenet121(weights=None, memory_efficient=True).eval(), _picture(1, 3, 32, 32)
    paths = ["features.denseblock1.denselayer1.conv1", "features.norm5"]
    found = []
    for efficient in (True, False):
        for part in net.modules():
            if hasattr(part, "memory_efficient"):
                part.memory_efficient = efficient
        with forward_pass(net, x, paths) as run:
            found.append(run.gradients(run.logits[:, 0]))
            assert [len(calls) for calls in run.feature_maps().values()] == [1, 1]

    assert all(torch.equal(found[0][path, 0], found[1][path, 0]) for path in paths)


# --- the caller's world ---


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
@pytest.mark.parametrize("built_in_inference", [False, True])
@pytest.mark.parametrize("input_in_inference", [False, True])
def test_it_works_in_every_grad_mode(
    mode: Any, built_in_inference: bool, input_in_inference: bool
) -> None:
    def build() -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.SiLU(True), nn.Flatten(), nn.Linear(144, 3)
        ).eval()

    reference = build()
    with torch.inference_mode(built_in_inference):
        net = build()
    with torch.inference_mode(input_in_inference):
        x = _picture().clone()
    start = reference[1](reference[0](_picture())).detach().requires_grad_()
    (expected,) = torch.autograd.grad(reference[2:](start.clone())[:, 2].sum(), start)

    with mode():
        states = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        with forward_pass(net, x, ["1", "0"]) as run:
            gradient = run.gradients(run.logits[:, 2])["1", 0]
            logits = run.logits.detach()
        assert (torch.is_grad_enabled(), torch.is_inference_mode_enabled()) == states

    assert torch.equal(logits, reference(_picture()))
    torch.testing.assert_close(gradient, expected)


def test_the_callers_tensor_is_not_written_to() -> None:
    class Normalise(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            x.sub_(0.5).mul_(2)
            x[:, 0] = 0
            return x

    net = nn.Sequential(Normalise(), nn.Flatten(), nn.Linear(192, 3))
    batch = _picture(4, 3, 8, 8)
    before = batch.clone()

    for x in (batch, batch[1:3], batch.to(memory_format=torch.channels_last), batch.numpy()[1:2]):
        x = torch.as_tensor(x)
        for paths in (["0"], ["2"], ["", "0", "2"]):
            with forward_pass(net, x, paths) as run:
                assert torch.equal(run.logits, net(x.clone()))
                assert run.gradients(run.logits[:, 0]).keys() == {(path, 0) for path in paths}

    assert torch.equal(batch, before)
    assert not batch.requires_grad


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_keep_their_type(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(True), nn.Flatten(), nn.Linear(144, 3)).to(
        dtype
    )
    x = _picture().to(dtype)

    with forward_pass(net, x, ["0", "1"]) as run:
        gradients, maps = run.gradients(run.logits[:, 0]), run.feature_maps()

        with torch.no_grad():
            assert torch.equal(run.logits, net(x))
    expected = net[3].weight[0].view(1, 4, 6, 6).expand(2, 4, 6, 6)
    assert torch.equal(gradients["1", 0], expected)
    assert torch.equal(gradients["0", 0], expected * (maps["0"][0] > 0))
    assert {t.dtype for t in gradients.values()} == {maps["0"][0].dtype} == {dtype}


class Noisy(nn.Module):
    """Moves statistics, draws random numbers, and raises where it is told to."""

    def __init__(self, error: BaseException | None) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.dropout, self.fc = nn.Dropout(0.5, inplace=True), nn.Linear(4, 3)
        self.register_buffer("runs", torch.zeros(()))
        self.error = error

    def forward(self, x: Tensor) -> Tensor:
        self.runs += 1
        y = self.dropout(torch.relu_(self.norm(self.conv(x))))
        if self.error is not None:
            raise self.error
        return self.fc(y.mean((2, 3)))


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt, Stop])
@pytest.mark.parametrize(
    "point", ["pre-hook", "forward", "forward hook", "backward hook", "afterwards"]
)
@pytest.mark.parametrize("training", [False, True])
def test_nothing_is_left_behind(point: str, error: Any, training: bool) -> None:
    net = Noisy(error("here") if error and point == "forward" else None).train(training)
    net.dropout.train()
    net.fc.requires_grad_(False)
    for parameter in net.conv.parameters():
        parameter.grad = torch.full_like(parameter, 0.5)
    state, x, ledger = copy.deepcopy(net.state_dict()), _picture().requires_grad_(), HookLedger()
    flags = [parameter.requires_grad for parameter in net.parameters()]
    modes = [part.training for part in net.modules()]
    random = torch.get_rng_state()

    def raising(at: str) -> Callable[..., None]:
        def hook(*given: Any) -> None:
            if error and at == point:
                raise error("here")

        return hook

    def whole_run(run: Pass) -> None:
        run.gradients(run.logits[:, 1])
        raising("afterwards")()

    def attempt() -> None:
        with forward_pass(net, x, ["norm", "dropout"], ledger=ledger) as run:
            whole_run(run)
            session, tensor = run.session, x.detach()
            session.forward_pre("fc", raising("pre-hook"))
            session.forward("fc", raising("forward hook"))
            session.full_backward("fc", raising("backward hook"))
            session.module(tensor).sum().backward()

    if error:
        with pytest.raises(error, match="here"):
            attempt()
    else:
        attempt()

    assert all(torch.equal(value, state[name]) for name, value in net.state_dict().items())
    assert [parameter.requires_grad for parameter in net.parameters()] == flags
    assert [part.training for part in net.modules()] == modes
    assert all(bool((parameter.grad == 0.5).all()) for parameter in net.conv.parameters())
    assert x.grad is None
    assert x.requires_grad
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.is_grad_enabled()
    assert _len_torch_function_stack() == 0
    assert audit(net) == []
    assert ledger.summary()["live"] == 0
    assert ledger.failed == (f"{error.__name__}: here" if error else None)


def test_in_evaluation_too_what_a_run_counts_or_keeps_stays_in_the_copy() -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("runs", torch.zeros(()))
            self.total = 0

        def forward(self, x: Tensor) -> Tensor:
            self.runs.add_(1)
            self.total += 1
            self.last = x
            return x * self.runs

    net = nn.Sequential(nn.Conv2d(3, 4, 3), Counts(), nn.Flatten(), nn.Linear(144, 3)).eval()
    preset = Preset(8, 8, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), "bilinear")
    model = interp.load_model(module=net, categories="abc", transforms=preset)
    for module in (net, model.module):
        before = copy.deepcopy(module.state_dict())
        for _ in range(2):
            capture = interp.capture(module if module is net else model, _picture(), ["0"])
            assert torch.equal(capture.feature_map("0"), net[0](_picture()))
        assert all(torch.equal(v, before[name]) for name, v in module.state_dict().items())
        assert module[1].total == 0
        assert not hasattr(module[1], "last")


def test_a_model_that_returns_no_logits_is_closed_too() -> None:
    ledger = HookLedger()
    net = nn.Sequential(nn.Conv2d(3, 4, 3))

    with (
        pytest.raises(ModelError, match="not class scores"),
        forward_pass(net, _picture(), ["0"], ledger=ledger),
    ):
        pass
    with (
        pytest.raises(LayerError, match="no layer «7»"),
        forward_pass(net, _picture(), ["0", "7"], ledger=ledger),
    ):
        pass

    assert ledger.summary() == {"registered": 4, "removed": 4, "live": 0, "foreign": 0}
    assert ledger.failed is not None
    assert ledger.failed.startswith("ModelError: the model returns")


def test_a_pass_is_over_with_its_block() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 3))
    with forward_pass(net, _picture(), ["0"]) as run:
        kept = run.outputs["0"][0]
        score = run.logits[:, 0]
        run.gradients(score)

    assert not run.logits.requires_grad
    assert not kept.requires_grad
    assert run.outputs == {}
    assert run.session.closed
    assert run.gradients(score) == {}
