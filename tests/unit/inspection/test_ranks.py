"""Spearman's rank correlation, by hand and beside SciPy's."""

import numpy as np
import pytest

from interp.inspection.ranks import rank_correlation


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([1, 2, 3, 4], [10, 20, 30, 40], 1.0),
        ([1, 2, 3, 4], [0, -1, -20, -21], -1.0),
        ([1, 2, 3], [2, 1, 3], 0.5),  # 1 − 6 · 2 / (3 · 8)
        ([1, 1, 2], [1, 2, 3], 3**0.5 / 2),  # ranks 1.5, 1.5, 3: 1.5 / √(1.5 · 2)
        ([5, 5, 5], [1, 2, 3], None),
        ([1], [2], None),
        ([], [], None),
    ],
)
def test_rank_correlation(one: list[int], other: list[int], expected: float | None) -> None:
    found = rank_correlation(one, other)
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-12))


def test_rank_correlation_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for _ in range(5):
        one, other = np.random.randint(0, 20, (2, 300))
        assert rank_correlation(one, other) == pytest.approx(stats.spearmanr(one, other)[0])
