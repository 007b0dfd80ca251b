import re
from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import nn

from interp.errors import LayerError
from interp.hooks.capture import capture
from interp.models.layer_names import split_call
from interp.models.layers import (
    LayerInfo,
    channels_first,
    find_layer,
    layer_table,
    list_layers,
    recommended_layer,
)
from interp.models.loading import load_model


@cache
def untrained(name):
    return load_model(name, weights="none", device="cpu")


class Small(nn.Module):
    """Convolution, its ReLU used four times, a side branch, and a part that never runs."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 5, 3, stride=2, padding=1)
        self.act = nn.ReLU()
        self.parts = nn.ModuleList([nn.Conv2d(5, 5, 1), nn.Conv2d(5, 7, 1)])
        self.train_only = nn.Linear(5, 2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(7, 4)

    def forward(self, x):
        x = self.act(self.conv(x))
        x = self.act(self.parts[0](x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        x = self.act(nn.functional.max_pool2d(self.parts[1](x), 2))
        return self.act(self.head(self.pool(x).flatten(1)))


@pytest.fixture(scope="module")
def small():
    return {info.path: info for info in layer_table(Small().eval(), torch.zeros(1, 3, 16, 24))}


def test_the_table_of_a_small_net(small):
    assert list(small) == [
        *("conv", "act", "parts", "parts.0", "parts.1", "train_only", "pool", "head")
    ]
    conv = small["conv"]
    assert (conv.kind, conv.calls, conv.shape) == ("Conv2d", 1, (1, 5, 8, 12))
    assert (conv.layout, conv.grid, conv.channels) == ("nchw", (8, 12), 5)
    assert conv.parameters == 3 * 5 * 9 + 5
    assert conv.spatial
    assert (small["pool"].layout, small["pool"].grid) == ("nchw", (1, 1))
    assert not small["pool"].spatial
    assert (small["head"].layout, small["head"].grid) == ("vector", None)
    assert small["head"].channels == 4
    assert not small["head"].spatial
    assert small["parts"].parameters == 5 * 5 + 5 + 5 * 7 + 7
    ran = sorted((info for info in small.values() if info.calls), key=lambda info: info.order)
    assert [i.path for i in ran] == ["conv", "act", "parts.0", "parts.1", "pool", "head"]


def test_every_call_has_its_own_shape_and_layout(small):
    act = small["act"]
    assert act.calls == 4
    rows = [find_layer(small.values(), "act", call) for call in range(3)]
    assert [row.layout for row in rows] == ["nchw", "nhwc", "nchw"]
    assert [row.grid for row in rows] == [(8, 12), (8, 12), (4, 6)]
    assert [row.channels for row in rows] == [5, 5, 7]
    with pytest.raises(LayerError, match="returns 1×4, which has no grid of places"):
        find_layer(small.values(), "act", 3)


def test_what_never_ran_says_why(small):
    assert small["parts"].calls == small["train_only"].calls == 0
    assert small["parts"].reason == (
        "a ModuleList only holds other modules and is never called itself"
    )
    assert "predicts without calling it" in small["train_only"].reason
    assert small["train_only"].shape is None
    assert small["train_only"].layout == "other"


@pytest.mark.parametrize(
    ("path", "call", "message"),
    [
        ("conf", 0, "no layer «conf» in this model: did you mean conv.?"),
        ("", 0, "no layer «» in this model: its parts are "),
        ("parts", 0, "a ModuleList only holds .*: choose another, such as «parts.1»"),
        ("train_only", 0, "never runs: .*without calling it.*: choose another, such as «parts.1»"),
        ("head", 0, "«head» .Linear. returns 1×4, which has no grid of places: choose another, "),
        ("pool", 0, "returns 1×7×1×1, which has no grid of places: choose another, such as"),
        ("conv", 1, r"runs 1 time\(s\): its calls are conv#0"),
        ("act", 4, r"runs 4 time\(s\): its calls are act#0, act#1, act#2, act#3"),
        ("conv", -1, "runs 1 time"),
    ],
)
def test_a_layer_that_will_not_do(small, path, call, message):
    with pytest.raises(LayerError, match=message) as error:
        find_layer(small.values(), path, call)
    assert "\n" not in str(error.value)


def test_what_is_suggested_would_do(small):
    for path in ("parts", "train_only", "head", "pool"):
        with pytest.raises(LayerError) as error:
            find_layer(small.values(), path)
        named = re.search(r"such as «(.+)»", str(error.value))[1]
        assert find_layer(small.values(), named).spatial


def test_the_layer_suggested_for_a_container_is_inside_it():
    with pytest.raises(LayerError, match=r"such as «blocks\.0\.layers\.1»"):
        find_layer(untrained("maxvit_t").layers, "blocks.0.layers")


def test_a_net_without_places_has_nothing_to_suggest():
    table = layer_table(nn.Sequential(nn.Flatten(), nn.Linear(12, 3)), torch.zeros(1, 3, 2, 2))
    with pytest.raises(LayerError, match="and no layer of this model has one"):
        find_layer(table, "1")
    with pytest.raises(LayerError, match="no layer with a spatial map"):
        recommended_layer(table)


class Twice(nn.Module):
    """A layer that returns a map at its first call and none at its second."""

    def __init__(self):
        super().__init__()
        self.a = nn.ReLU()
        self.b = self.a
        self.fc = nn.Linear(3 * 4 * 4, 2)
        self.idle = nn.Conv2d(3, 3, 1)

    def forward(self, x):
        return self.fc(self.a(self.a(x).flatten(1)))


@pytest.mark.parametrize("path", ["a", "b", "idle"])
def test_a_refused_layer_is_not_suggested_in_its_own_place(path):
    table = layer_table(Twice().eval(), torch.zeros(1, 3, 4, 4))
    with pytest.raises(LayerError) as error:
        find_layer(table, path, 0 if path == "idle" else 1)
    if path == "idle":
        assert str(error.value).endswith(": choose another, such as «a»")
    else:
        assert str(error.value).endswith("and no other layer of this model has a grid of places")


class Tied(nn.Module):
    """Two modules under two names each, one of them a container."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.root = self.stem
        self.a = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.ReLU())
        self.b = self.a
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.a(self.a(self.stem(x))).mean((2, 3)))


def test_a_module_of_two_names_has_a_row_for_each():
    table = layer_table(Tied().eval(), torch.zeros(1, 3, 6, 8))
    rows = {info.path: info for info in table}
    paths = ["stem", "root", "a", "a.0", "a.1", "b", "b.0", "b.1", "head"]
    assert list(rows) == paths
    for first, second in [("stem", "root"), ("a", "b"), ("a.0", "b.0"), ("a.1", "b.1")]:
        other = rows[second]
        assert other.reason == f"the same module as «{first}»"
        assert other.same_as == first
        assert not other.recommended
        one = replace(rows[first], reason="", recommended=False, later_calls=())
        assert replace(other, path=first, reason="", same_as="", later_calls=()) == one
        assert len(other.later_calls) == other.calls - 1
    assert recommended_layer(table).path == "a.0"
    assert find_layer(table, "b", 1).path == "b"


def test_what_a_module_of_two_names_is_called_with():
    model = load_model(module=Tied(), device="cpu")
    assert model.inputs["b.0"] == model.inputs["a.0"]
    assert len(model.inputs["b"]) == 2
    assert model.inputs["root"][0].shape == (1, 3, 224, 224)


class Marked(nn.Module):
    """Module paths that hold a «#»; the layer «rgb» runs three times."""

    def __init__(self):
        super().__init__()
        parts = {"rgb#1": nn.Conv2d(3, 3, 1), "rgb": nn.ReLU(), "x#y": nn.Conv2d(3, 2, 1)}
        self.parts = nn.ModuleDict(parts)

    def forward(self, x):
        x = self.parts["rgb"](self.parts["rgb"](self.parts["rgb#1"](x)))
        return self.parts["x#y"](self.parts["rgb"](x)).mean((2, 3))


def test_calls_are_written_so_that_no_other_layer_is_meant():
    table = {i.path: i for i in layer_table(Marked().eval(), torch.zeros(1, 3, 6, 8))}
    for info in table.values():
        for call in range(info.calls):
            assert split_call(info.call_name(call), table) == (info.path, call)
    assert table["parts.rgb"].call_name(1) == "parts.rgb#01"
    assert table["parts.rgb"].later_calls[1].call_name(2) == "parts.rgb#02"
    assert table["parts.x#y"].call_name(0) == "parts.x#y#0"


def test_nothing_is_left_on_the_net():
    net = Small().eval().requires_grad_(False)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    with torch.inference_mode():
        layer_table(net, torch.zeros(1, 3, 16, 16))
    assert not any(
        part._forward_hooks or part._backward_hooks or part._forward_pre_hooks
        for part in net.modules()
    )
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert not any(p.requires_grad or p.grad is not None for p in net.parameters())


class Returns(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize(
    ("function", "layout", "grid", "extra"),
    [
        (lambda x: x, "nchw", (7, 7), 0),
        (lambda x: (x, x.sum()), "nchw", (7, 7), 0),
        (lambda x: {"features": x}, "nchw", (7, 7), 0),
        (lambda x: x.permute(0, 2, 3, 1), "nhwc", (7, 7), 0),
        (lambda x: x.flatten(2).mT, "tokens", (7, 7), 0),
        (lambda x: torch.cat([torch.zeros(1, 2, 7), x.flatten(2).mT], 1), "tokens", (7, 7), 2),
        (lambda x: torch.cat([x.flatten(2).mT, torch.zeros(1, 1, 7)], 1), "other", None, 0),
        (lambda x: x.flatten(2).mT[:, 5:], "other", None, 0),
        (lambda x: x.mT, "other", None, 0),
        (lambda x: x.flatten(2), "other", None, 0),
        (lambda x: x.flatten(1), "vector", None, 0),
        (lambda x: x.mean(), "other", None, 0),
        (lambda x: None, "other", None, 0),
    ],
)
def test_layouts_where_all_sizes_are_seven(function, layout, grid, extra):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 7, 1)
            self.part = Returns(function)

        def forward(self, x):
            x = self.conv(x)
            self.part(x)
            return x.mean((2, 3))

    table = {info.path: info for info in layer_table(Net(), torch.zeros(1, 3, 7, 7))}
    part = table["part"]
    assert (part.layout, part.grid, part.extra_tokens) == (layout, grid, extra)


def test_channels_first_by_hand():
    x = torch.arange(2 * 3 * 2 * 4.0).reshape(2, 3, 2, 4)
    row = LayerInfo("x", "X", 1, (2, 3, 2, 4), "nchw", grid=(2, 4))
    assert torch.equal(channels_first(x, row), x)
    row = LayerInfo("x", "X", 1, (2, 2, 4, 3), "nhwc", grid=(2, 4))
    assert torch.equal(channels_first(x.permute(0, 2, 3, 1), row), x)
    tokens = torch.cat([torch.full((2, 2, 3), 99.0), x.flatten(2).transpose(1, 2)], 1)
    row = LayerInfo("x", "X", 1, (2, 10, 3), "tokens", grid=(2, 4), extra_tokens=2)
    assert torch.equal(channels_first(tokens, row), x)


def _swin(path, kind):
    if re.search(r"\.attn\.(qkv|proj|cpb_mlp)", path):
        return "other"
    if path in ("flatten", "head"):
        return "vector"
    return "nchw" if path in ("features.0.0", "permute", "avgpool") else "nhwc"


def _convnext(path, kind):
    if path in ("classifier", "classifier.1", "classifier.2"):
        return "vector"
    return "nhwc" if re.search(r"\.block\.[12345]$", path) else "nchw"


def _vit(path, kind):
    if path == "conv_proj":
        return "nchw"
    if path.startswith("heads"):
        return "vector"
    return "other" if path.endswith("out_proj") else "tokens"


def _maxvit(path, kind):
    if kind == "ModuleList" or re.search(
        r"_attention\.(partition_op|partition_swap|departition_swap|attn_layer|mlp_layer|stoch)",
        path,
    ):
        return "other"
    return "vector" if re.match(r"classifier($|\.[1-9])", path) else "nchw"


def _convolutional(path, kind):
    return "vector" if path in ("fc", "classifier") else "nchw"


TRUTH = {
    "swin_t": _swin,
    "swin_v2_t": _swin,
    "convnext_tiny": _convnext,
    "vit_b_32": _vit,
    "maxvit_t": _maxvit,
    "densenet121": _convolutional,
    "resnet18": _convolutional,
}


@pytest.mark.parametrize("name", TRUTH)
def test_the_layout_of_every_layer(name):
    model = untrained(name)
    table = list_layers(model)
    assert [i.path for i in table] == [path for path, _ in model.module.named_modules() if path]
    expected = {info.path: TRUTH[name](info.path, info.kind) for info in table}
    assert {info.path: info.layout for info in table} == expected
    for info in table:
        assert info.extra_tokens == (1 if info.layout == "tokens" else 0)


@pytest.mark.parametrize("name", ["resnet18", "densenet121", "swin_t", "convnext_tiny", "vit_b_32"])
def test_a_hot_patch_lands_in_its_own_corner(name):
    """At every layer: upper right in the picture is upper right in the map."""
    model = untrained(name)
    side = model.preset.crop_size
    cell = side // 7
    torch.manual_seed(0)
    plain = torch.randn(1, 3, side, side) / 10
    hot = plain.clone()
    hot[..., cell : 2 * cell, 5 * cell : 6 * cell] += 3
    # What the last layers of an untrained net do is seen anywhere.
    finest = 7 if name in ("vit_b_32", "resnet18", "densenet121") else 14
    rows = [i for i in model.layers if i.spatial and min(i.grid) >= finest]
    rows = [i for i in rows if "encoder_layer_9" not in i.path]
    paths = [info.path for info in rows]
    runs = [capture(model, x, paths, gradients=False) for x in (plain, hot)]
    seen = 0
    for info in rows:
        for call, row in enumerate((info, *info.later_calls)):
            maps = [channels_first(run.feature_map(info.path, call), row) for run in runs]
            change = (maps[1] - maps[0])[0].abs().sum(0)
            assert change.shape == row.grid
            y, x = divmod(int(change.argmax()), row.grid[1])
            assert (y + 0.5) / row.grid[0] < 0.5 < (x + 0.5) / row.grid[1], (info.path, call)
            seen += 1
    assert seen > 60


def test_a_hot_patch_is_one_token_of_a_vit():
    model = untrained("vit_b_32")
    paths = ["conv_proj", "encoder.dropout", "encoder.layers.encoder_layer_0.ln_1"]
    plain = torch.zeros(1, 3, 224, 224)
    before = capture(model, plain, paths, gradients=False)
    for row, column in ((0, 0), (1, 4), (6, 2), (6, 6)):
        hot = plain.clone()
        hot[..., 32 * row : 32 * (row + 1), 32 * column : 32 * (column + 1)] = 1
        after = capture(model, hot, paths, gradients=False)
        for path in paths:
            info = find_layer(model.layers, path)
            old, new = (channels_first(run.feature_map(path), info) for run in (before, after))
            assert (new - old)[0].abs().sum(0).nonzero().tolist() == [[row, column]]


def test_a_hot_window_of_maxvit_comes_back_to_its_place():
    model = untrained("maxvit_t")
    path = "blocks.0.layers.0.layers.window_attention.departition_op"
    info = find_layer(model.layers, path)
    plain = torch.zeros(1, 3, 224, 224)
    hot = plain.clone()
    hot[..., 60:80, 150:170] = 1
    maps = [
        channels_first(capture(model, x, [path], gradients=False).feature_map(path), info)
        for x in (plain, hot)
    ]
    change = (maps[1] - maps[0])[0].abs().sum(0)
    y, x = divmod(int(change.argmax()), 56)
    assert 15 <= y <= 20
    assert 37 <= x <= 43


def test_attention_parts_that_are_never_called_say_so():
    row = next(i for i in untrained("vit_b_32").layers if i.path.endswith("out_proj"))
    assert row.calls == 0
    assert row.reason == "MultiheadAttention uses this layer's weights and never calls it"


def test_the_table_is_made_once():
    model = untrained("resnet18")
    assert model.layers is model.layers
    assert list_layers(model) == list(model.layers)


def test_a_network_that_draws_numbers_leaves_the_random_state_alone():
    class Noisy(Small):
        def forward(self, x):
            return super().forward(x + 0.01 * torch.randn_like(x))

    net = Noisy().eval()
    before = torch.get_rng_state()
    layer_table(net, torch.zeros(1, 3, 8, 8))
    assert torch.equal(torch.get_rng_state(), before)
