"""How high clades are in a weighted sample of trees: means, medians and intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.intp]
FloatArray = NDArray[np.float64]

# Shares that are equal but for the order in which they were added up are equal to within this.
ROUNDING = 1e-9


class CladeHeights(NamedTuple):
    """Weighted heights of some clades, one entry a clade."""

    mean: FloatArray
    median: FloatArray
    hpd: FloatArray


def clade_heights(clades: IntArray, heights: FloatArray, weights: FloatArray, wanted: IntArray) -> CladeHeights:
    """Summarise the heights of clades over the trees that have them.

    Parameters
    ----------
    clades : ndarray of int, shape (n_trees, n_merges)
        Number of each merge's clade.
    heights : ndarray of float, shape (n_trees, n_merges)
    weights : ndarray of float, shape (n_trees,)
    wanted : ndarray of int, shape (n_wanted,)
        Numbers of distinct clades that trees of positive weight have.

    Returns
    -------
    CladeHeights
    """
    place = np.full(int(clades.max(initial=0)) + 1, -1, dtype=np.intp)
    place[wanted] = np.arange(len(wanted))
    kept = np.where(weights[:, None] > 0, place[clades], -1)
    at = np.nonzero(kept >= 0)
    groups, ages, shares = kept[at], heights[at], weights[at[0]]
    order = np.lexsort((ages, groups))
    ages, shares = ages[order], shares[order]
    bounds = np.searchsorted(groups[order], np.arange(len(wanted) + 1)).tolist()
    mean, median = np.empty((2, len(wanted)))
    hpd = np.empty((len(wanted), 2))
    for k in range(len(wanted)):
        own = slice(bounds[k], bounds[k + 1])
        mean[k] = np.average(ages[own], weights=shares[own])
        median[k] = weighted_median(ages[own], shares[own])
        hpd[k] = shortest_interval(ages[own], shares[own])
    return CladeHeights(mean, median, hpd)


def weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """Return the value with half of the weight on either side, the mean of two if it lies between them.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
        Sorted.
    weights : ndarray of float, shape (n,)
        Positive.

    Examples
    --------
    >>> weighted_median(np.array([1.0, 2.0, 6.0]), np.array([1.0, 1.0, 2.0]))
    4.0
    """
    below = np.cumsum(weights) / np.sum(weights)
    k = int(np.searchsorted(below, 0.5 - ROUNDING))
    last = k if below[k] > 0.5 + ROUNDING or k + 1 == len(values) else k + 1
    return float((values[k] + values[last]) / 2)


def shortest_interval(values: FloatArray, weights: FloatArray, share: float = 0.95) -> tuple[float, float]:
    """Return the shortest interval from value to value that holds a share of the weight, the lowest of several.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
        Sorted.
    weights : ndarray of float, shape (n,)
        Positive.
    share : float, default 0.95

    Examples
    --------
    >>> shortest_interval(np.array([1.0, 5.0, 6.0, 7.0]), np.ones(4), 0.75)
    (5.0, 7.0)
    """
    upto = np.cumsum(weights) / np.sum(weights)
    before = np.concatenate([[0.0], upto[:-1]])
    last = np.searchsorted(upto, before + share - ROUNDING)
    starts = np.flatnonzero(last < len(values))
    k = starts[np.argmin(values[last[starts]] - values[starts])]
    return float(values[k]), float(values[last[k]])
