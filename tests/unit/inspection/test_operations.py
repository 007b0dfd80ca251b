"""The autograd operations inside a module, by name and edge."""

import numpy as np
import pytest
import torch
from torch import nn

from interp import audit, load_model, open_picture
from interp.errors import LayerError
from interp.geometry import Preset
from interp.inspection import operations as under_test
from interp.inspection.operations import operations

PRESET = Preset(8, 8, (0.0,) * 3, (1.0,) * 3, "bilinear")


class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(
            nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(inplace=True)
        )
        self.same, self.silent, self.add = nn.Identity(), Silent(), Add()
        self.list, self.unused = Longer(), nn.ReLU()
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        x = self.same(self.block(x))
        x = self.add(x, scale=self.silent(x))
        features = [x]
        x = self.list(features)
        features.append(x)
        return self.head(x.mean((2, 3)))


class Silent(nn.Module):
    @torch.no_grad()
    def forward(self, x):
        return x.mean()


class Add(nn.Module):
    """Writes over its input, and uses it twice."""

    def forward(self, x, scale):
        x *= scale
        x += x
        return x


class Longer(nn.Module):
    def forward(self, features):
        assert len(features) == 1
        return torch.cat(features, 1).relu()


@pytest.fixture(scope="module")
def parts():
    return load_model(module=Parts(), transforms=PRESET, device="cpu")


@pytest.fixture(scope="module")
def picture(chelsea):
    return open_picture(chelsea)


def drawn(graph):
    return [(node.name, node.title, node.inputs, node.shapes) for node in graph.nodes]


def test_a_linear_is_two_operations(parts, picture):
    graph = operations(parts, picture, "head")
    assert drawn(graph) == [
        ("Input", "input 0", (), ((1, 4),)),
        ("AccumulateGrad", "parameter bias", (), ((2,),)),
        ("AccumulateGrad", "parameter weight", (), ((2, 4),)),
        ("TBackward0", "transpose (t)", (2,), ((4, 2),)),
        ("AddmmBackward0", "addmm", (1, 0, 3), ((1, 2),)),
    ]
    assert [node.id for node in graph.nodes] == [0, 1, 2, 3, 4]
    assert (graph.path, graph.call, graph.kind, graph.note) == ("head", 0, "Linear", "")
    assert graph.ledger.summary() == {"registered": 1, "removed": 1, "live": 0, "foreign": 0}


def test_a_block_with_a_relu_in_place(parts, picture):
    graph = operations(parts, picture, "block")
    assert drawn(graph) == [
        ("Input", "input 0", (), ((1, 3, 8, 8),)),
        ("AccumulateGrad", "parameter 0.weight", (), ((4, 3, 3, 3),)),
        ("ConvolutionBackward0", "convolution", (0, 1), ((1, 4, 6, 6),)),
        ("AccumulateGrad", "parameter 1.weight", (), ((4,),)),
        ("AccumulateGrad", "parameter 1.bias", (), ((4,),)),
        ("NativeBatchNormBackward0", "batch norm (native)", (2, 3, 4), ((1, 4, 6, 6),)),
        ("ReluBackward0", "relu", (5,), ((1, 4, 6, 6),)),
    ]


def test_inputs_that_are_written_over_come_by_keyword_or_in_a_list(parts, picture):
    graph = operations(parts, picture, "add")
    assert [node.title for node in graph.nodes] == ["input 0", "input 1", "mul", "add"]
    assert [node.inputs for node in graph.nodes] == [(), (), (0, 1), (2, 2)]
    # The list is longer by now: it has to be as it was at the call.
    longer = operations(parts, picture, "list")
    assert [node.title for node in longer.nodes] == ["input 0", "cat", "relu"]


def test_modules_that_do_nothing_autograd_knows(parts, picture):
    same = operations(parts, picture, "same")
    assert [node.title for node in same.nodes] == ["input 0"]
    assert "hands its input on" in same.note
    silent = operations(parts, picture, "silent")
    assert silent.nodes == ()
    assert "Autograd follows nothing here" in silent.note


def test_one_call_of_several(picture):
    model = load_model("resnet18", weights="none", device="cpu")
    for call in (0, 1):
        graph = operations(model, picture, "layer4.0.relu", call)
        assert [node.title for node in graph.nodes] == ["input 0", "relu"]
    block = operations(model, picture, "layer4.0")
    assert [node.title for node in block.nodes if node.inputs] == [
        *("convolution", "batch norm (native)", "relu", "convolution", "batch norm (native)"),
        *("convolution", "batch norm (native)", "add", "relu"),
    ]
    add = block.nodes[-2]
    assert [block.nodes[i].title for i in add.inputs] == ["batch norm (native)"] * 2


def test_refused(parts, picture):
    with pytest.raises(LayerError, match="«unused» never runs"):
        operations(parts, picture, "unused")
    with pytest.raises(LayerError, match="«head» has no call 1"):
        operations(parts, picture, "head", 1)
    with pytest.raises(LayerError, match="no layer «heads» in this model"):
        operations(parts, picture, "heads")


def test_too_many_are_cut_and_said_so(parts, picture, monkeypatch):
    monkeypatch.setattr(under_test, "MAX_OPERATIONS", 3)
    graph = operations(parts, picture, "block")
    assert [node.title for node in graph.nodes] == ["input 0", "parameter 0.weight", "convolution"]
    assert graph.note == "7 operations: the first 3 in forward order are shown."


def test_nothing_of_the_model_is_touched(parts, picture):
    before = [(p.clone(), p.requires_grad) for p in parts.module.parameters()]
    statistics = [b.clone() for b in parts.module.buffers()]
    with torch.inference_mode():
        inside = operations(parts, picture, "block")
    assert drawn(inside) == drawn(operations(parts, picture, "block"))
    for (values, flag), parameter in zip(before, parts.module.parameters(), strict=True):
        assert torch.equal(values, parameter)
        assert (parameter.requires_grad, parameter.grad) == (flag, None)
    pairs = zip(statistics, parts.module.buffers(), strict=True)
    assert all(torch.equal(old, new) for old, new in pairs)
    assert audit(parts.module) == []


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("MaxPool2DWithIndicesBackward0", "max pool 2d with indices"),
        ("NativeLayerNormBackward0", "layer norm (native)"),
        ("MmBackward0", "matrix product (mm)"),
        ("MeanBackward1", "mean"),
        ("GeluBackward0", "gelu"),
    ],
)
def test_titles(name, title):
    assert under_test._title(name) == title


def test_attention_names_its_own_operation(picture):
    part = nn.MultiheadAttention(4, 2, batch_first=True)

    class Attends(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches, self.attend = nn.Conv2d(3, 4, 4, stride=4), part
            self.head = nn.Linear(4, 2)

        def forward(self, x):
            x = self.patches(x).flatten(2).mT
            return self.head(self.attend(x, x, x, need_weights=False)[0].mean(1))

    model = load_model(module=Attends(), transforms=PRESET, device="cpu")
    titles = [node.title for node in operations(model, picture, "attend").nodes]
    assert titles.count("input 0") == 1
    assert not any("input 1" in title for title in titles)
    assert any("attention" in title for title in titles)
    assert np.unique([title for title in titles if title.startswith("parameter")]).size == 4
