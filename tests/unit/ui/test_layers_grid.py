"""What the browser is sent of a layer's channels."""

import base64

import numpy as np
import pytest

from interp import LoadedModel, open_picture
from interp.inspection.channels import ORDERS, ChannelMaps, channel_maps
from interp.ui import channel_grid
from interp.ui.channel_grid import LONGEST_SIDE, MOST_CELLS, quantised, shrunk, titles_for


@pytest.fixture(scope="module")
def maps(bundled: LoadedModel, coffee: object) -> ChannelMaps:
    return channel_maps(bundled, open_picture(str(coffee)), "features.8.2")


def test_small_maps_are_sent_as_they_are() -> None:
    maps = np.ones((3, 7, 7), np.float32)
    assert shrunk(maps) is maps


def test_large_maps_shrink_to_means_of_whole_blocks() -> None:
    maps = np.arange(224 * 224, dtype=np.float32).reshape(1, 224, 224)
    small = shrunk(maps)
    assert small.shape == (1, LONGEST_SIDE, LONGEST_SIDE)
    assert small[0, 0, 0] == np.mean([0, 1, 224, 225])
    assert small[0, 1, 2] == maps[0, 2:4, 4:6].mean()


def test_many_maps_shrink_until_they_are_few_enough_cells() -> None:
    small = shrunk(np.zeros((512, 100, 100), np.float32))
    assert small.size <= MOST_CELLS
    assert small.shape == (512, 50, 50)


def test_every_cell_is_within_half_a_step_of_its_value() -> None:
    maps = np.random.default_rng(0).normal(size=(5, 6, 7)).astype(np.float32)
    low, high, cells = quantised(maps)
    assert cells.dtype == np.uint8
    step = (high - low) / 255
    back = low[:, None] + step[:, None] * cells
    assert np.all(np.abs(back - maps.reshape(5, -1)) <= 0.501 * step[:, None])
    assert cells.min(1).tolist() == [0] * 5
    assert cells.max(1).tolist() == [255] * 5


def test_flat_and_non_finite_maps_are_sent_without_a_warning() -> None:
    maps = np.array([[[2.0, 2.0]], [[np.nan, 1.0]], [[np.inf, -1.0]]], np.float32)
    low, high, cells = quantised(maps)
    assert low.tolist() == [2, 0, -1]
    assert high.tolist() == [2, 1, 0]
    assert cells.tolist() == [[0, 0], [0, 255], [255, 0]]


def test_the_orders_are_those_of_the_maps(maps: ChannelMaps) -> None:
    sent = channel_grid._content.__wrapped__("any", maps)
    for name in ORDERS:
        order = np.frombuffer(base64.b64decode(sent["orders"][name]), "<u4")
        assert order.tolist() == maps.order(name).tolist()
    values = np.frombuffer(base64.b64decode(sent["values"]["variance"]), "<f4")
    assert values.tolist() == maps.variance.tolist()
    assert (sent["count"], sent["height"], sent["width"], sent["signed"]) == (1280, 7, 7, False)
    assert len(base64.b64decode(sent["cells"])) == 1280 * 49


def test_single_numbers_have_no_variance_to_order_by(
    maps: ChannelMaps, bundled: LoadedModel, coffee: object
) -> None:
    assert list(titles_for(maps)) == list(ORDERS)
    vector = channel_maps(bundled, open_picture(str(coffee)), "avgpool")
    assert list(titles_for(vector)) == ["contribution", "mean", "index"]
