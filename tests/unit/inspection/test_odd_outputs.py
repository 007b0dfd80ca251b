"""Modules that return no dense real tensor: right numbers of theirs, and none of another's lost."""

from __future__ import annotations

import dataclasses
import json
import math
from contextlib import suppress

import numpy as np
import pytest
import torch
from odd_nets import Base, WithOdd, loaded, noise
from torch import Tensor

from interp import (
    Lab,
    capture,
    channel_maps,
    dead_units,
    explain,
    list_layers,
    operations,
    run_experiment,
    statistics,
    travel,
)
from interp.errors import LayerError
from interp.inspection.travel import layer_values

pytestmark = [
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors"),
    pytest.mark.filterwarnings("ignore:Sparse CSR tensor support"),
    pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor"),
]


@dataclasses.dataclass
class Boxed:
    inside: Tensor


def _nested(x, layout):
    return torch.nested.nested_tensor([x[0, 0].detach(), x[0, 1, :4].detach()], layout=layout)


def _same(output, x):
    return x


ODD = {
    "complex": (torch.fft.rfft2, lambda y, x: torch.fft.irfft2(y)),
    "sparse": (lambda x: x.to_sparse(), lambda y, x: y.to_dense()),
    "sparse rows": (lambda x: x[0, 0].to_sparse_csr(), lambda y, x: x + y.to_dense()),
    "quantized": (
        lambda x: torch.quantize_per_tensor(x.detach(), 0.01, 0, torch.quint8),
        lambda y, x: x + y.dequantize(),
    ),
    "nested": (lambda x: _nested(x, torch.strided), _same),
    "jagged": (lambda x: _nested(x, torch.jagged), _same),
    "bool": (lambda x: x > 0, lambda y, x: x * y),
    "int": (lambda x: (10 * x).long(), lambda y, x: x + y),
    "eight bits": (lambda x: x.to(torch.float8_e4m3fn), _same),
    "half": (lambda x: x.half(), lambda y, x: y.float()),
    "no values": (lambda x: x.to("meta"), _same),
    "no channel": (lambda x: x[:, :0], _same),
    "no picture": (lambda x: x[:0], _same),
    "nothing flat": (lambda x: x[:, :0].reshape(1, -1), _same),
    "a number": (lambda x: x.mean(), lambda y, x: x + y),
    "lists": (lambda x: [[x, x * 2], [x * 3]], lambda y, x: y[0][1]),
    "a dataclass": (lambda x: Boxed(x * 2), lambda y, x: y.inside),
    "a generator": (lambda x: iter([x * 2]), lambda y, x: next(y)),
    "text": (lambda x: "text", _same),
    "nothing": (lambda x: None, _same),
}


@pytest.mark.parametrize("make", ODD.values(), ids=ODD)
def test_one_odd_module_takes_nothing_else_down(make):
    model, picture = loaded(WithOdd(*make)), noise()
    others = ["stem", "last", "fc"]
    assert [info.path for info in list_layers(model)] == ["stem", "last", "fc", "odd"]
    for layer in ("stem", "last"):
        captured = capture(model, picture, [layer], 1)
        assert captured.gradient(layer).any()
        assert channel_maps(model, picture, layer, target=1).contribution.any()
        weights = captured.gradient(layer).mean((2, 3), keepdim=True)
        by_hand = (captured.feature_map(layer) * weights).sum(1)[0]
        assert np.allclose(explain(model, picture, layers=layer, target=1).map, by_hand, atol=1e-6)
    rows = {row.path: row for row in statistics(model, picture).rows}
    assert set(others) <= set(rows)
    assert all(math.isfinite(row.norm) for row in rows.values())
    assert {"stem", "last"} <= {row.path for row in dead_units(model, [picture, picture])}
    assert set(others) <= {row.path for row in travel(model, picture).rows}
    assert set(others) <= {row.path for row in run_experiment(Lab(model), picture).norms}
    for ask in (explain, channel_maps, capture, operations):
        with suppress(LayerError):
            asked = "odd" if ask in (channel_maps, operations) else ["odd"]
            ask(model, picture, layers=asked) if ask is explain else ask(model, picture, asked)


class Frequencies(Base):
    """In between the real Fourier transform, twice its size, and back."""

    def __init__(self) -> None:
        super().__init__()
        self.odd = WithOdd(torch.fft.rfft2, _same).odd

    def between(self, x: Tensor) -> Tensor:
        self.kept = self.odd(x)
        return torch.fft.irfft2(self.kept * 2)


def test_complex_numbers_count_with_their_size():
    net, picture = Frequencies(), noise()
    model = loaded(net)
    score = net(model.prepare(picture))[0, 2]
    value, gradient = net.kept.detach(), torch.autograd.grad(score, net.kept)[0]
    sizes = value.abs().double()

    row = next(row for row in statistics(model, picture).rows if row.path == "odd")
    expected = (sizes.mean(), sizes.std(correction=0), sizes.max(), sizes.square().sum().sqrt())
    assert (row.mean, row.std, row.largest, row.norm) == pytest.approx(
        tuple(map(float, expected)), rel=1e-5
    )
    assert row.of == "the sizes of complex numbers"
    assert row.norm > 1.0001 * float(value.real.norm())

    captured = capture(model, picture, ["odd"], 2)
    torch.testing.assert_close(captured.gradient("odd"), gradient)
    passed = travel(model, picture, target=2).row("odd")
    assert passed.value_norm == pytest.approx(row.norm, rel=1e-5)
    assert passed.gradient_norm == pytest.approx(float(gradient.abs().norm()), rel=1e-5)
    norms = {one.path: one for one in run_experiment(Lab(model), picture, target=2).norms}
    assert norms["odd"].before == pytest.approx(row.norm, rel=1e-5)

    info = next(info for info in model.layers if info.path == "odd")
    assert (info.layout, info.channels, info.values) == ("other", None, "complex numbers")
    assert json.dumps(dataclasses.asdict(info))
    refused = (
        "1×4×16×9 complex numbers, which has no grid of places: choose another, such as «last»"
    )
    with pytest.raises(LayerError, match=refused):
        explain(model, picture, layers="odd")
    with pytest.raises(LayerError, match="returns complex numbers, and real numbers are needed"):
        layer_values(model, picture, "odd")


@pytest.mark.parametrize(
    ("name", "of"),
    [("sparse", "values of a sparse tensor"), ("quantized", "quantized values"), ("half", "")],
)
def test_other_tensors_count_with_all_that_they_stand_for(name, of):
    model, picture = loaded(WithOdd(*ODD[name])), noise()
    rows = {row.path: row for row in statistics(model, picture).rows}
    stem = capture(model, picture, ["stem"]).feature_map("stem").relu()
    row = rows["odd"]
    assert row.of == of
    assert row.zeros == pytest.approx(float((stem == 0).float().mean()), abs=0.01)
    assert row.mean == pytest.approx(float(stem.mean()), abs=0.001)
    assert row.norm == pytest.approx(float(stem.norm()), rel=0.01)
    flow = {one.path: one for one in travel(model, picture).rows}
    assert flow["odd"].value_norm == pytest.approx(row.norm, rel=1e-4)
