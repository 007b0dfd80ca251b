"""One reading of «path#call», and every name of a module, wherever layers are named."""

import numpy as np
import pytest
import torch
from torch import nn

from interp import cli
from interp.attribution import explain
from interp.attribution.layer_calls import layer_calls
from interp.errors import LayerError
from interp.geometry import Preset
from interp.hooks.capture import capture
from interp.hooks.lab import Lab
from interp.hooks.recipe import Recipe, Step, check
from interp.hooks.script import script
from interp.hooks.session import HookSession
from interp.inspection.experiment import run_experiment
from interp.inspection.statistics import dead_units, statistics
from interp.inspection.sweep import sweep
from interp.inspection.travel import travel
from interp.models.layer_names import path_of, split_call
from interp.models.loading import load_model
from interp.picture import open_picture


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("rgb", ("rgb", 0)),
        ("rgb#1", ("rgb#1", 0)),
        ("rgb#1#2", ("rgb#1", 2)),
        ("rgb#0", ("rgb", 0)),
        ("rgb#01", ("rgb", 1)),
        ("gone#3", ("gone", 3)),
        ("gone#x", ("gone#x", 0)),
        ("gone#x#3", ("gone#x", 3)),
    ],
)
def test_a_known_path_comes_before_a_call(text, found):
    assert split_call(text, {"rgb", "rgb#1"}) == found
    assert path_of(text, {"rgb", "rgb#1"}) == found[0]


@pytest.mark.parametrize("text", ["rgb#", "rgb#x", "rgb#1#", "rgb#1#-1", "rgb#" + "9" * 10])
def test_what_is_no_call(text):
    with pytest.raises(LayerError, match=r"is no call of a layer: write «rgb(#1)?#0» for its"):
        split_call(text, {"rgb", "rgb#1"})


class Net(nn.Module):
    """A layer of two names that runs twice, and a path with a «#» beside a path without it."""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 3, 3, padding=1)
        self.b = self.a
        self.parts = nn.ModuleDict({"rgb#1": nn.Conv2d(3, 4, 1), "rgb": nn.ReLU()})
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        x = self.parts["rgb"](self.a(self.parts["rgb"](self.a(x))))
        return self.head(self.parts["rgb#1"](x).mean((2, 3)))


PLAIN = Preset(8, 8, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5), "bilinear")


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(3)
    return load_model(module=Net(), transforms=PLAIN, device="cpu")


@pytest.fixture(scope="module")
def cup(coffee):
    return open_picture(coffee)


def test_an_existing_path_wins_over_a_call_of_another(model, cup):
    conv = explain(model, cup, layers="parts.rgb#1")
    assert conv.layers == ("parts.rgb#1",)
    second = explain(model, cup, layers="parts.rgb#01")
    assert second.layers == ("parts.rgb#01",)
    assert not np.array_equal(conv.map, second.map)
    assert layer_calls(model, "parts.rgb#0") == layer_calls(model, "parts.rgb#00")
    for layer in ("parts.rgb#1", "parts.rgb#00", "parts.rgb#01", "a#1", "b#1"):
        (call,) = layer_calls(model, layer)
        assert str(call) == layer
        assert layer_calls(model, str(call)) == (call,)
    with pytest.raises(LayerError, match=r"its calls are parts\.rgb#1#0$"):
        layer_calls(model, "parts.rgb#1#2")


def test_a_heatmap_at_the_second_name_of_a_layer(model, cup):
    for call in (0, 1):
        first, second = (explain(model, cup, layers=f"{path}#{call}") for path in ("a", "b"))
        assert np.array_equal(first.map, second.map)
        assert second.layers == (f"b#{call}",)


@pytest.mark.parametrize("paths", [["b"], ["a", "b"], ["b", "a"]])
def test_a_capture_at_the_second_name_of_a_layer(model, cup, paths):
    expected, found = capture(model, cup, ["a"]), capture(model, cup, paths)
    assert found.calls("b") == 2
    for call in (0, 1):
        assert torch.equal(found.feature_map("b", call), expected.feature_map("a", call))
        torch.testing.assert_close(found.gradient("b", call), expected.gradient("a", call))


def test_the_numbers_of_every_name_of_a_layer(model, cup):
    rows = {(row.path, row.call): row for row in statistics(model, cup).rows}
    for call in (0, 1):
        assert rows["b", call].norm == rows["a", call].norm > 0
    assert {"a", "b"} <= {row.path for row in dead_units(model, [cup])}
    flow = {row.path: row for row in travel(model, cup).rows}
    assert flow["b"].gradient_norm == flow["a"].gradient_norm > 0
    assert flow["b"].parameter_norm == flow["a"].parameter_norm > 0
    swept = {path: list(sweep(model, cup, path, 1))[-1].measured.tolist() for path in ("a", "b")}
    assert swept["a"] == swept["b"]


def test_the_command_line_lists_both_names(model, monkeypatch, capsys):
    monkeypatch.setattr(cli, "load_model", lambda *given: model)
    cli.print_layers("net", None)
    lines = capsys.readouterr().out.splitlines()
    (at,) = (number for number, line in enumerate(lines) if line.split()[0] == "b")
    assert lines[at].split()[1:] == ["2", "1×3×8×8", "nchw", "Conv2d"]
    assert lines[at + 1].strip() == "the same module as «a»"


def test_hooks_on_the_second_name_of_a_layer(model):
    fired = []
    with HookSession(model.module) as session:
        session.forward("b", lambda module, args, output: fired.append("b"))
        session.module(torch.zeros(1, 3, 8, 8))
    assert fired == ["b", "b"]


@pytest.mark.parametrize("kind", ["forward_pre", "forward", "full_backward", "tensor"])
def test_a_step_on_the_second_name_of_a_layer(model, cup, kind):
    after = {}
    for path in ("a", "b", "parts.rgb#1"):
        recipe = Recipe((Step(kind, path, "scale", {"factor": 2.0}),))
        check(recipe.steps[0], model)
        with Lab(model) as lab:
            lab.sync(recipe)
            found = run_experiment(lab, cup)
        after[path] = found.after.logits.tolist(), found.after.attribution.map.tolist()
        assert f'"{path}"' in script(recipe, model, "coffee.png")
    assert after["a"] == after["b"]
    if kind in ("forward_pre", "forward"):
        assert after["parts.rgb#1"] != after["a"]


def test_channels_of_an_input_under_the_second_name(model):
    check(Step("forward_pre", "b", "channels", {"which": "2"}), model)


def test_a_name_that_is_no_layer_is_still_refused(model, cup):
    for layer in ("c", "a#2", "parts.rgb#2", "b#x"):
        with pytest.raises(LayerError):
            explain(model, cup, layers=layer)
