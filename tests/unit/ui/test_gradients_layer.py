"""The gradient at the input as a grey picture."""

import numpy as np

from interp.ui.gradients_layer import SIDE, saliency


def test_white_from_the_99th_percentile_on_and_black_at_zero() -> None:
    grid = np.arange(101, dtype=np.float32).repeat(100).reshape(101, 100)
    image, brightest = saliency(grid)
    assert brightest == 99
    factor = round(SIDE / 101)
    assert image.size == (100 * factor, 101 * factor)
    rows = np.asarray(image)[factor // 2 :: factor, 0, 0]
    assert rows[0] == 0
    assert rows[99] == rows[100] == 255
    assert abs(int(rows[50]) - 255 * 50 / 99) <= 1


def test_without_a_gradient_nothing_is_drawn() -> None:
    image, brightest = saliency(np.zeros((4, 4), np.float32))
    assert brightest == 0
    assert len(np.unique(image)) == 1
