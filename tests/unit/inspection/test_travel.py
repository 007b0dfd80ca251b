"""Gradients on their way through a network, against autograd by hand and against `capture`."""

import copy
import math
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from interp import HookSession, Lab, explain, run_experiment
from interp.errors import LayerError, ModelError, PictureError, TargetError
from interp.geometry import Preset
from interp.hooks.capture import capture
from interp.hooks.ledger import HookLedger, audit
from interp.inspection.gradient_watch import norm_of
from interp.inspection.travel import LIMIT, layer_values, travel
from interp.models.loading import load_model
from interp.picture import open_picture

PLAIN = Preset(2, 2, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5), "bilinear")
FAMILIES = (
    *("resnet18", "densenet121", "mobilenet_v3_small", "efficientnet_b0", "convnext_tiny"),
    *("swin_t", "vit_b_32", "maxvit_t"),
)


@cache
def untrained(name):
    return load_model(name, weights="none", device="cpu")


@pytest.fixture(scope="module")
def cup(coffee):
    return open_picture(coffee)


@pytest.fixture(scope="module")
def seen(bundled, cup):
    return travel(bundled, cup)


def loaded(net):
    return load_model(module=net, transforms=PLAIN, device="cpu")


def mlp(depth, activation, deviation):
    """A plain net of width 32, each weight drawn with `deviation` times what keeps the size."""
    torch.manual_seed(4)
    layers = [nn.Flatten(), nn.Linear(12, 32)]
    for _ in range(depth):
        layers += [activation(), nn.Linear(32, 32)]
    layers += [activation(), nn.Linear(32, 4)]
    for layer in layers:
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=deviation * math.sqrt(2 / layer.in_features))
    return nn.Sequential(*layers)


def test_one_linear_layer_by_hand(cup):
    net = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
    model = loaded(net)
    x = model.prepare(cup)
    w = net[1].weight.detach()[1]
    result = travel(model, cup, target=1)
    flat, linear = result.rows
    assert (flat.path, flat.kind, linear.path, linear.kind) == ("0", "Flatten", "1", "Linear")
    assert linear.gradient_norm == 1.0  # of the logits (0, 1)
    assert linear.zeros == 0.5
    assert flat.gradient_norm == pytest.approx(float(w.norm()), rel=1e-6)
    assert flat.zeros == 0.0
    assert flat.value_norm == pytest.approx(float(x.norm()), rel=1e-6)
    assert flat.ratio == pytest.approx(float(w.norm() / x.norm()), rel=1e-6)
    assert flat.parameter_norm is None
    # The weight's gradient has x in one row and zeros in the other, the bias has a one.
    assert linear.parameter_norm == pytest.approx(math.sqrt(float(x.norm()) ** 2 + 1), rel=1e-6)
    assert result.loss == pytest.approx(float(net(x)[0, 1].detach()), rel=1e-5)
    assert result.loss_name == "the score of class 1 (1)"
    assert result.logits_norm == 1.0
    shown = result.input_gradient
    np.testing.assert_array_equal(shown.map, w.view(3, 2, 2).abs().amax(0).numpy())
    assert not shown.signed
    assert shown.layers == ("input",)
    assert shown.on_picture().shape == (400, 600)


def test_cross_entropy_is_that_of_pytorch(cup):
    torch.manual_seed(1)
    net = nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.ReLU(), nn.Linear(5, 3))
    model = loaded(net)
    x = model.prepare(cup).requires_grad_()
    logits = net(x)
    loss = F.cross_entropy(logits, torch.tensor([2]))
    at_input, at_logits, at_weight = torch.autograd.grad(loss, [x, logits, net[1].weight])
    result = travel(model, cup, label=2)
    assert result.loss == pytest.approx(float(loss.detach()), rel=1e-5)
    assert result.loss_name == "the cross-entropy against class 2 (2)"
    assert result.logits_norm == pytest.approx(float(at_logits.norm()), rel=1e-5)
    assert result.row("3").gradient_norm == pytest.approx(float(at_logits.norm()), rel=1e-5)
    np.testing.assert_allclose(
        result.input_gradient.map, at_input[0].abs().amax(0).numpy(), rtol=1e-4, atol=1e-8
    )
    bias = (
        at_weight.norm() / x.detach().norm()
    )  # the weight's gradient is the outer product of it and x
    assert result.row("1").parameter_norm == pytest.approx(
        float(torch.hypot(at_weight.norm(), bias)), rel=1e-4
    )
    values = layer_values(model, cup, "3", label=2)
    np.testing.assert_allclose(values.gradient, at_logits.numpy(), rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(values.value, logits.detach().numpy(), rtol=1e-5)


def test_every_norm_equals_that_of_the_captured_gradient(bundled, cup, seen):
    paths = [info.path for info in bundled.layers if info.calls]
    kept = capture(bundled, cup, paths)
    assert [row.path for row in seen.rows] == sorted(
        paths, key={info.path: info.order for info in bundled.layers}.__getitem__
    )
    for row in seen.rows:
        gradient, value = kept.gradient(row.path), kept.feature_map(row.path)
        assert row.gradient_norm == pytest.approx(float(gradient.norm()), rel=1e-4), row.path
        assert row.value_norm == pytest.approx(float(value.norm()), rel=1e-4), row.path
        assert row.zeros == pytest.approx(float((gradient == 0).float().mean()), abs=1e-6)


def test_parameter_norms_equal_those_of_a_plain_backward(bundled, cup, seen):
    net = copy.deepcopy(bundled.module).requires_grad_()
    net(bundled.prepare(cup)).max().backward()
    for row in seen.rows:
        own = [p.grad for p in net.get_submodule(row.path).parameters(recurse=False)]
        if not own:
            assert row.parameter_norm is None
        else:
            expected = float(torch.cat([g.flatten() for g in own]).norm())
            assert row.parameter_norm == pytest.approx(expected, rel=2e-4), row.path
    for path in ("features.3", "features.5.1.block"):
        inside = [p.grad.flatten() for p in net.get_submodule(path).parameters()]
        assert seen.row(path).parameter_norm is None
        assert seen.row(path).inside_norm == pytest.approx(float(torch.cat(inside).norm()), 2e-4)


def test_the_trained_net_is_healthy_and_nothing_is_left(bundled, cup, seen):
    assert {row.verdict for row in seen.rows} == {""}
    assert seen.loss_name == "the score of espresso (967)"
    assert seen.ledger.summary()["live"] == 0
    assert {r.status for r in seen.ledger.records} == {"removed"}
    assert {r.kind for r in seen.ledger.records} == {"forward", "full_backward", "tensor"}
    assert audit(bundled.module) == []
    assert all(p.grad is None and not p.requires_grad for p in bundled.module.parameters())


def test_a_deep_sigmoid_net_vanishes_towards_its_input(cup):
    result = travel(loaded(mlp(10, nn.Sigmoid, 0.5)), cup)
    verdicts = [row.verdict for row in result.rows]
    assert verdicts[0] == "vanishing"
    assert verdicts[-1] == ""
    # Once it has vanished it stays so, all the way to the input.
    assert verdicts == sorted(verdicts, reverse=True)
    first = result.rows[0]
    assert first.gradient_norm < result.logits_norm / LIMIT
    assert result.sentence(first).startswith("The gradient vanishes: its norm is ")
    assert result.sentence(first).endswith(" times smaller here than at the logits.")
    assert result.sentence(result.rows[-1]) == ""


def test_large_weights_explode_towards_the_input(cup):
    result = travel(loaded(mlp(10, nn.ReLU, 4.0)), cup)
    verdicts = [row.verdict for row in result.rows]
    assert verdicts[0] == "exploding"
    assert verdicts[-1] == ""
    assert "vanishing" not in verdicts
    assert " times larger here than at the logits." in result.sentence(result.rows[0])


def test_weights_that_keep_the_size_mark_nothing(cup):
    result = travel(loaded(mlp(10, nn.ReLU, 1.0)), cup)
    assert {row.verdict for row in result.rows} == {""}


def test_the_verdict_does_not_depend_on_the_size_of_the_loss(cup):
    net = mlp(10, nn.Sigmoid, 0.5)
    by_logit = travel(loaded(net), cup, target=0)
    by_probability = travel(loaded(net), cup, target="0:prob")
    assert by_probability.logits_norm < by_logit.logits_norm
    assert [r.verdict for r in by_probability.rows] == [r.verdict for r in by_logit.rows]


def test_what_the_loss_does_not_depend_on_gets_nothing(cup):
    class Dead(nn.Module):
        def __init__(self):
            super().__init__()
            self.used = nn.Linear(12, 3)
            self.unused = nn.Linear(12, 3)

        def forward(self, x):
            x = x.flatten(1)
            self.unused(x)
            return self.used(x)

    result = travel(loaded(Dead()), cup)
    row = result.row("unused")
    assert (row.gradient_norm, row.zeros, row.parameter_norm) == (0.0, 1.0, 0.0)
    assert row.verdict == "vanishing"
    assert result.sentence(row) == "The gradient vanishes: nothing of it reaches this layer."


class Twice(nn.Module):
    """One ReLU that runs twice, weights that two layers share, and a module that gives a dict."""

    class Split(nn.Module):
        def forward(self, x):
            return {"x": 3 * x}

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(12, 12), nn.Linear(12, 12), nn.Linear(12, 3)
        self.b.weight = self.a.weight
        self.relu, self.split = nn.ReLU(inplace=True), self.Split()

    def forward(self, x):
        x = self.relu(self.a(x.flatten(1)))
        x = self.relu(self.b(x))
        return self.c(self.split(x)["x"])


def test_calls_shared_weights_and_modules_without_a_tensor(cup):
    torch.manual_seed(2)
    net = Twice()
    model = loaded(net)
    plain = copy.deepcopy(net)
    plain.relu.inplace = False
    x = model.prepare(cup)
    first = plain.relu(plain.a(x.flatten(1)))
    split = 3 * plain.relu(plain.b(first))
    at_first, at_split, shared, bias = torch.autograd.grad(
        plain.c(split)[0, 0], [first, split, plain.a.weight, plain.a.bias]
    )
    result = travel(model, cup, target=0)
    assert result.row("relu").gradient_norm == pytest.approx(float(at_first.norm()), rel=1e-5)
    assert result.row("relu").value_norm == pytest.approx(float(first.detach().norm()), rel=1e-5)
    assert result.row("split").gradient_norm == pytest.approx(float(at_split.norm()), rel=1e-5)
    both = float(torch.hypot(shared.norm(), bias.norm()))
    assert result.row("a").parameter_norm == pytest.approx(both, rel=1e-5)
    ended = {r.status for r in result.ledger.records if not r.status.startswith("never fired")}
    assert ended == {"removed"}


@pytest.mark.parametrize("name", FAMILIES)
def test_every_layer_of_a_family_has_a_row(name, cup):
    model = untrained(name)
    result = travel(model, cup)
    ran = {info.path for info in model.layers if info.calls and info.shape is not None}
    assert {row.path for row in result.rows} == ran
    orders = [row.order for row in result.rows]
    assert orders == sorted(orders)
    assert all(math.isfinite(row.gradient_norm) for row in result.rows)
    assert result.ledger.summary()["live"] == 0
    assert {r.status for r in result.ledger.records if r.kind != "tensor"} == {"removed"}


def test_norms_far_outside_of_float32_squares():
    tiny, huge = torch.full((4,), 1e-30), torch.full((4,), 1e30)
    assert norm_of(tiny) == pytest.approx(2e-30, rel=1e-5)
    assert norm_of(huge) == pytest.approx(2e30, rel=1e-5)
    assert norm_of(torch.zeros(3)) == 0.0
    assert norm_of(torch.tensor([1.0, math.inf])) == math.inf
    assert math.isnan(norm_of(torch.tensor([1.0, math.nan])))


def test_a_failure_leaves_no_hook(cup):
    class Fails(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.runs = nn.Linear(12, 3), 0

        def forward(self, x):
            x = self.fc(x.flatten(1))
            if x.requires_grad:
                raise RuntimeError("no gradients here")
            return x

    ledger = HookLedger()
    with pytest.raises(RuntimeError, match="no gradients here"):
        travel(loaded(Fails()), cup, ledger=ledger)
    assert ledger.summary()["registered"] > 0
    assert ledger.summary()["live"] == 0
    assert ledger.failed


def test_weights_of_a_layer_that_never_runs_itself_count_in_its_block(cup):
    class Attends(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.fc = nn.MultiheadAttention(4, 2), nn.Linear(12, 3)

        def forward(self, x):
            tokens = x.reshape(3, 1, 4)
            return self.fc(self.attention(tokens, tokens, tokens)[0].reshape(1, 12))

    torch.manual_seed(5)
    net = Attends()
    model = loaded(net)
    net(model.prepare(cup))[0, 1].backward()
    grads = [p.grad.flatten() for p in net.attention.parameters()]
    row = travel(model, cup, target=1).row("attention")
    assert row.inside_norm == pytest.approx(float(torch.cat(grads).norm()), rel=1e-4)
    assert row.parameter_norm < row.inside_norm


def test_scores_without_autograd_are_refused(cup):
    class Blind(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(12, 3)

        def forward(self, x):
            return self.fc(x.flatten(1)).detach()

    with pytest.raises(ModelError, match="cannot be differentiated"):
        travel(loaded(Blind()), cup)


def test_refusals(bundled, cup):
    with pytest.raises(TargetError, match="give one, not both"):
        travel(bundled, cup, target="espresso", label=3)
    with pytest.raises(TargetError, match="no class has the index 1000"):
        travel(bundled, cup, label=1000)
    with pytest.raises(LayerError, match="did you mean features"):
        layer_values(bundled, cup, "feature.8")
    with pytest.raises(LayerError, match="no call 1"):
        layer_values(bundled, cup, "features.8", call=1)
    with pytest.raises(PictureError, match="no fit «zoom»"):
        travel(bundled, cup, fit="zoom")


def test_values_of_a_layer_are_those_behind_its_numbers(bundled, cup, seen):
    values = layer_values(bundled, cup, "features.5")
    row = seen.row("features.5")
    assert values.value.shape == values.gradient.shape == (1, 112, 14, 14)
    assert np.linalg.norm(values.value) == pytest.approx(row.value_norm, rel=1e-4)
    assert np.linalg.norm(values.gradient) == pytest.approx(row.gradient_norm, rel=1e-4)


def test_rows_by_path(seen):
    assert seen.row("features.8").path == "features.8"
    with pytest.raises(LayerError, match="choose another"):
        seen.row("nowhere")


def test_a_label_is_an_index_whatever_the_classes_are_named(cup):
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * PLAIN.crop_size**2, 3))
    model = load_model(module=net, categories=("1", "10", "2"), transforms=PLAIN, device="cpu")
    assert travel(model, cup, label=1).input_gradient.target.index == 1


class LeNet(nn.Module):
    """Flattens by a view, which only some strides allow."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.c1, self.c2 = nn.Conv2d(3, 6, 5), nn.Conv2d(6, 16, 5)
        self.f1, self.f2 = nn.Linear(400, 20), nn.Linear(20, 5)
        self.strides = []

    def forward(self, x):
        self.strides.append(x.stride())
        x = F.max_pool2d(self.c1(x).relu(), 2)
        self.strides.append(x.stride())
        x = F.max_pool2d(self.c2(x).relu(), 2)
        self.strides.append(x.stride())
        x = x.view(x.size(0), -1) if x.is_contiguous() else x.permute(0, 2, 3, 1).view(1, -1)
        return self.f2(self.f1(x).relu())


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_whatever_watches_leaves_the_strides_that_a_view_needs(memory_format, cup):
    net = LeNet().to(memory_format=memory_format)
    preset = Preset(32, 32, (0.5,) * 3, (0.5,) * 3, "bilinear")
    model = load_model(module=net, transforms=preset, device="cpu")
    x = model.prepare(cup)
    values = {}
    for name in ("c1", "c2", "f1"):
        net.get_submodule(name).register_forward_hook(
            lambda part, args, output, name=name: values.update({name: output})
        )
    score = net(x)[0, 3]
    expected = dict(zip(values, torch.autograd.grad(score, list(values.values())), strict=True))
    strides = net.strides
    for part in (net.c1, net.c2, net.f1):
        part._forward_hooks.clear()

    found = travel(model, cup, target=3)
    captured = capture(model, cup, list(expected), 3)
    for name, gradient in expected.items():
        assert found.row(name).gradient_norm == pytest.approx(float(gradient.norm()), rel=1e-4)
        assert captured.gradient(name).stride() == gradient.stride()
        torch.testing.assert_close(captured.gradient(name), gradient)
    weights = expected["c2"].mean((2, 3), keepdim=True)
    by_hand = (values["c2"] * weights).sum(1)[0].detach().numpy()
    assert np.allclose(explain(model, cup, target=3).map, by_hand, atol=1e-5)
    side = run_experiment(Lab(model), cup, target=3).before
    assert np.allclose(side.attribution.map, by_hand, atol=1e-5)

    with HookSession(net) as session:
        gradients = []
        session.full_backward("c2", lambda part, inputs, outputs: gradients.append(outputs[0]))
        session.full_backward("c1", lambda part, inputs, outputs: gradients.append(outputs[0]))
        session.module(x)[0, 3].backward()
        assert session.module.strides[-3:] == strides[:3]
    for name, gradient in zip(("c2", "c1"), gradients, strict=True):
        torch.testing.assert_close(gradient, expected[name])


class Thrown(nn.Module):
    """What the in-place ReLUs return is thrown away: their write is what counts."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.stem, self.body = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.act, self.last, self.fc = nn.ReLU(True), nn.ReLU(True), nn.Linear(4, 3)

    def forward(self, x):
        x = self.stem(x)
        self.act(x)
        x = self.body(x)
        self.last(x)
        return self.fc(x.mean((2, 3)))


def test_writes_that_are_thrown_away_count_as_in_a_twin_without(cup):
    net = Thrown()
    model = load_model(
        module=net, transforms=Preset(8, 8, (0.5,) * 3, (0.5,) * 3, "bilinear"), device="cpu"
    )
    x = model.prepare(cup)
    stem = net.stem(x)
    act = stem.relu()
    body = net.body(act)
    last = body.relu()
    logits = net.fc(last.mean((2, 3)))
    watched = {"stem": stem, "act": act, "body": body, "last": last}
    expected = torch.autograd.grad(logits[0, 1], list(watched.values()))
    found = travel(model, cup, target=1)
    for (path, value), gradient in zip(watched.items(), expected, strict=True):
        row = found.row(path)
        assert gradient.any()
        assert row.gradient_norm == pytest.approx(float(gradient.norm()), rel=1e-5), path
        assert row.zeros == pytest.approx(float((gradient == 0).float().mean()))
        assert row.value_norm == pytest.approx(float(value.norm().detach()), rel=1e-5), path
        assert row.verdict == ""


def test_a_norm_counts_both_parts_of_complex_numbers_and_all_of_a_sparse_tensor():
    assert norm_of(torch.tensor([3 + 4j, 0j])) == 5.0
    assert norm_of(torch.tensor([3e30 + 4e30j])) == pytest.approx(5e30, rel=1e-6)
    assert norm_of(torch.tensor([[3.0, 0.0], [0.0, 4.0]]).to_sparse()) == 5.0
    assert math.isnan(norm_of(torch.zeros(2, device="meta")))
