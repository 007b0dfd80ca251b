"""Statistics of every layer from one pass, by hand and against float64."""

import gc
import io
import math
import threading

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from interp import audit, load_model, open_picture
from interp.errors import PictureError
from interp.geometry import Preset
from interp.hooks.ledger import HookLedger
from interp.inspection import statistics as under_test
from interp.inspection.statistics import dead_units, statistics


def preset(side):
    return Preset(side, side, (0.0,) * 3, (1.0,) * 3, "bilinear")


def picture_of(red):
    """A picture with these values of red, 0 to 255, and no green or blue."""
    red = np.array(red, np.uint8)
    pixels = np.zeros((*red.shape, 3), np.uint8)
    pixels[..., 0] = red
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return open_picture(buffer.getvalue(), name="red.png")


class Three(nn.Module):
    """Channels 5 r, −5 r and 0; for the picture below r is 0, 0.2, 0.4 and 0.6."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 1, bias=False)
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(3, 2)
        with torch.no_grad():
            self.conv.weight.zero_()
            self.conv.weight[0, 0], self.conv.weight[1, 0] = 5.0, -5.0

    def forward(self, x):
        return self.head(self.relu(self.conv(x)).mean((2, 3)))


RED = [[0, 51], [102, 153]]


@pytest.fixture(scope="module")
def three():
    return load_model(module=Three(), transforms=preset(2), device="cpu")


def test_by_hand(three):
    result = statistics(three, picture_of(RED))
    conv, relu, head = result.rows
    assert [(row.path, row.call, row.shape) for row in result.rows] == [
        ("conv", 0, (1, 3, 2, 2)),
        ("relu", 0, (1, 3, 2, 2)),
        ("head", 0, (1, 2)),
    ]
    # 0 1 2 3, 0 −1 −2 −3 and four zeros: the in-place ReLU behind must not have changed them.
    assert conv.mean == pytest.approx(0, abs=1e-7)
    assert conv.std == pytest.approx(math.sqrt(28 / 12))
    assert conv.norm == pytest.approx(math.sqrt(28))
    assert conv.largest == pytest.approx(3)
    assert (conv.zeros, conv.channels, conv.dead) == (6 / 12, 3, 1)
    assert relu.mean == pytest.approx(0.5)
    assert relu.std == pytest.approx(math.sqrt(14 / 12 - 0.25))
    assert relu.norm == pytest.approx(math.sqrt(14))
    assert (relu.zeros, relu.channels, relu.dead) == (9 / 12, 3, 2)
    assert (head.channels, head.dead) == (2, 0)
    expected = three.module(three.prepare(picture_of(RED)))[0]
    assert np.array_equal(result.logits, expected.numpy())


def test_one_hook_a_layer_and_none_left(three):
    summary = statistics(three, picture_of(RED)).ledger.summary()
    assert summary == {"registered": 3, "removed": 3, "live": 0, "foreign": 0}
    assert audit(three.module) == []


def test_dead_on_all_pictures(three):
    first, black = picture_of(RED), picture_of(np.zeros((2, 2)))
    found = {row.path: (row.channels, row.dead) for row in dead_units(three, [first])}
    assert found["conv"] == (3, (2,))
    assert found["relu"] == (3, (1, 2))
    assert {r.path: r.dead for r in dead_units(three, [black])}["relu"] == (0, 1, 2)
    # A channel that is alive on one of the pictures is not dead, whatever their order.
    for pictures in ([first, black], [black, first]):
        assert {r.path: r.dead for r in dead_units(three, pictures)}["relu"] == (1, 2)
    ledger = HookLedger()
    dead_units(three, [first, black], ledger=ledger)
    assert ledger.summary()["live"] == 0
    assert [record.fires for record in ledger.records] == [2, 2, 2]
    with pytest.raises(PictureError, match="at least one"):
        dead_units(three, [])


class Nested(nn.Module):
    """The same tensor through three containers, a tuple, a dict, two calls and no tensor at all."""

    def __init__(self):
        super().__init__()
        self.deep = nn.Sequential(nn.Sequential(nn.Sequential(nn.Conv2d(3, 4, 1))))
        self.act = nn.ReLU()
        self.pair, self.named, self.text = Pair(), Named(), Text()
        self.unused = nn.Linear(2, 2)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        x = self.act(self.deep(x))
        x, _ = self.pair(x)
        x = self.act(self.named(x)["out"] - 0.5)
        self.text(x)
        return self.head(x.mean((2, 3)))


class Pair(nn.Module):
    def forward(self, x):
        return x * 2, None


class Named(nn.Module):
    def forward(self, x):
        return {"out": x + 1}


class Text(nn.Module):
    def forward(self, x):
        return "no tensor"


def test_a_row_for_each_call_in_running_order_and_a_tensor_is_reduced_once(monkeypatch):
    model = load_model(module=Nested(), transforms=preset(6), device="cpu")
    reduced = []
    reduce = under_test._reduce

    def counting(tensor, axis):
        reduced.append(tensor.shape)
        return reduce(tensor, axis)

    monkeypatch.setattr(under_test, "_reduce", counting)
    result = statistics(model, picture_of(np.arange(36).reshape(6, 6)))
    assert [(row.path, row.call) for row in result.rows] == [
        ("deep.0.0.0", 0),
        ("deep.0.0", 0),
        ("deep.0", 0),
        ("deep", 0),
        ("act", 0),
        ("pair", 0),
        ("named", 0),
        ("act", 1),
        ("head", 0),
    ]
    assert len(reduced) == 6
    values = {(row.path, row.call): row for row in result.rows}
    assert values["pair", 0].mean == pytest.approx(2 * values["act", 0].mean)
    assert values["named", 0].mean == pytest.approx(values["pair", 0].mean + 1)
    assert values["deep", 0].std == values["deep.0.0.0", 0].std


class Shifted(nn.Module):
    """Returns the very tensor of its convolution, after having written to it."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 1)

    def forward(self, x):
        x = self.conv(x)
        x.add_(1.0)
        return x


def test_a_tensor_written_to_on_its_way_is_another():
    net = nn.Sequential(Shifted(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model = load_model(module=net, transforms=preset(6), device="cpu")
    rows = {row.path: row for row in statistics(model, picture_of(np.eye(6) * 255)).rows}
    assert rows["0"].mean == pytest.approx(rows["0.conv"].mean + 1.0, rel=1e-6)
    assert rows["1"].mean == pytest.approx(rows["0"].mean, rel=1e-6)


@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize("layout", ["plain", "channels last", "turned", "cut"])
def test_against_float64(layout, offset):
    values = torch.randn(1, 24, 40, 56) + offset
    values = values if offset else values.relu()
    values[0, 5] = 0.0
    if layout == "channels last":
        values = values.to(memory_format=torch.channels_last)
    elif layout == "turned":
        values = values.transpose(2, 3)
    elif layout == "cut":
        values = values[:, :, ::2, 3:]
    mean, std, zeros, largest, norm, channels, dead = under_test._reduce(values, 1)
    exact = values.double()
    assert mean == pytest.approx(exact.mean().item(), rel=1e-6)
    assert std == pytest.approx(exact.std(correction=0).item(), rel=1e-5)
    assert norm == pytest.approx(exact.norm().item(), rel=1e-6)
    assert zeros == pytest.approx((exact == 0).double().mean().item(), abs=1e-12)
    assert (largest, channels, dead) == (exact.max().item(), 24, 1)


def test_no_copy_of_a_channels_last_tensor():
    values = torch.randn(1, 8, 5, 7).to(memory_format=torch.channels_last)
    for one in (values, values.permute(0, 2, 3, 1), values.transpose(2, 3), values.contiguous()):
        flat = under_test._in_memory_order(one)
        assert flat.data_ptr() == one.data_ptr()
        assert torch.equal(flat.sort().values, one.flatten().sort().values)
    spread = torch.arange(3.0)[None, :, None, None].expand(1, 3, 2, 2)
    assert under_test._in_memory_order(spread).sort().values.tolist() == [0] * 4 + [1] * 4 + [2] * 4


def test_half_precision_is_reduced_in_float32():
    values = (torch.rand(1, 2, 128, 128) + 300).half()  # whose squares are beyond half precision
    mean, std, _, _, norm, *_ = under_test._reduce(values, 1)
    exact = values.double()
    assert mean == pytest.approx(exact.mean().item(), rel=1e-6)
    assert std == pytest.approx(exact.std(correction=0).item(), rel=1e-4)
    assert norm == pytest.approx(exact.norm().item(), rel=1e-6)


def test_a_value_that_is_no_number_shows():
    values = torch.tensor([[1.0, math.nan, 0.0]])
    mean, std, zeros, largest, norm, channels, dead = under_test._reduce(values, 1)
    assert all(map(math.isnan, (mean, std, largest, norm)))
    assert (zeros, channels, dead) == (pytest.approx(1 / 3), 3, 1)


def test_every_layer_of_the_bundled_model(bundled, coffee):
    picture = open_picture(coffee)
    result = statistics(bundled, picture)
    table = {info.path: info for info in bundled.layers}
    assert len(result.rows) == sum(info.calls for info in bundled.layers)
    assert all(row.shape == table[row.path].shape for row in result.rows)
    orders = [table[row.path].order for row in result.rows]
    assert orders == sorted(orders)
    again = statistics(bundled, picture)
    assert again.rows == result.rows
    dead = {row.path: len(row.dead) for row in dead_units(bundled, [picture])}
    assert dead == {row.path: row.dead for row in result.rows}


def test_no_tensor_stays(three):
    picture = picture_of(RED)
    statistics(three, picture)

    def tensors():
        gc.collect()
        return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())

    before = tensors()
    results = [statistics(three, picture) for _ in range(3)]
    assert tensors() == before
    assert len(results) == 3


class Failing(Three):
    fails = False

    def forward(self, x):
        x = self.conv(x)
        if self.fails:
            raise RuntimeError("broken in the middle")
        return self.head(self.relu(x).mean((2, 3)))


def test_a_model_that_raises_keeps_nothing():
    model = load_model(module=Failing(), transforms=preset(2), device="cpu")
    assert len(model.layers) == 3
    model.module.fails = True
    with pytest.raises(RuntimeError, match="in the middle"):
        statistics(model, picture_of(RED))
    assert audit(model.module) == []
    assert not any(parameter.requires_grad for parameter in model.module.parameters())
    model.module.fails = False
    assert len(statistics(model, picture_of(RED)).rows) == 3


def test_threads_do_not_meet(bundled, coffee, chelsea):
    pictures = [open_picture(coffee), open_picture(chelsea)]
    alone = [statistics(bundled, picture).rows for picture in pictures]
    together = [None, None]

    def work(place):
        together[place] = statistics(bundled, pictures[place]).rows

    threads = [threading.Thread(target=work, args=(place,)) for place in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone
