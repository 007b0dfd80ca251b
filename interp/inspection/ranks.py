"""Whether two lists of numbers put the same things in the same order."""

import numpy as np
import numpy.typing as npt


def rank_correlation(one: npt.ArrayLike, other: npt.ArrayLike) -> float | None:
    """Spearman's rank correlation, from -1 to 1; equal values share the mean of their ranks.

    None where all values of either are equal, or there are fewer than two.

    References
    ----------
    Spearman, The proof and measurement of association between two things, 1904.
    """
    first, second = _ranks(one), _ranks(other)
    size = np.sqrt((first**2).sum() * (second**2).sum())
    return float(np.clip((first * second).sum() / size, -1.0, 1.0)) if size else None


def _ranks(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Ranks from which their mean is subtracted."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return ranks[place] - (len(place) + 1) / 2
