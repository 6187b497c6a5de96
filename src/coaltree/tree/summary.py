"""What summary trees are made of: the heights of clades in a sample, and merges numbered by height."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

IntArray = NDArray[np.intp]
FloatArray = NDArray[np.float64]

# Sums of the same shares in different order are equal within this.
ROUNDING = 1e-9


class CladeHeights(NamedTuple):
    """Mean, median and HPD interval of the heights of clades, one entry per clade."""

    mean: FloatArray
    median: FloatArray
    hpd: FloatArray


def clade_heights(clades: IntArray, heights: FloatArray, weights: FloatArray, selected: IntArray) -> CladeHeights:
    """Summarise the heights of clades over the trees that have them.

    Parameters
    ----------
    clades : ndarray of int, shape (n_trees, n_merges)
        Number of each merge's clade.
    heights : ndarray of float, shape (n_trees, n_merges)
    weights : ndarray of float, shape (n_trees,)
    wanted : ndarray of int, shape (n_wanted,)
        Numbers of distinct clades of trees with positive weight.

    Returns
    -------
    CladeHeights
    """
    index = np.full(int(clades.max(initial=0)) + 1, -1, dtype=np.intp)
    index[selected] = np.arange(len(selected))
    clade_index = np.where(weights[:, None] > 0, index[clades], -1)
    at = np.nonzero(clade_index >= 0)
    groups, ages, shares = clade_index[at], heights[at], weights[at[0]]
    order = np.lexsort((ages, groups))
    ages, shares = ages[order], shares[order]
    bounds = np.searchsorted(groups[order], np.arange(len(selected) + 1)).tolist()
    mean, median = np.empty((2, len(selected)))
    hpd = np.empty((len(selected), 2))
    for k in range(len(selected)):
        members = slice(bounds[k], bounds[k + 1])
        mean[k] = np.average(ages[members], weights=shares[members])
        median[k] = weighted_median(ages[members], shares[members])
        hpd[k] = shortest_interval(ages[members], shares[members])
    return CladeHeights(mean, median, hpd)


def weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """Return the weighted median, the mean of two values if it lies between them.

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
    """Return the shortest interval between two values that contains a share of the weight, the lowest if several do.

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


def order_merges(children: ArrayLike, target_heights: ArrayLike) -> tuple[IntArray, FloatArray, IntArray]:
    """Assign heights to merges and number the merges by height.

    Parameters
    ----------
    children : array-like of int, shape (n - 1, 2)
        Children before parents, in any other order.
    target_heights : array-like of float, shape (n - 1,)
        Heights of the merges. A height below that of a child is raised to it; NaN stands for the height of the parent.

    Returns
    -------
    children : ndarray of int, shape (n - 1, 2)
    heights : ndarray of float, shape (2n - 1,)
        The arguments of :class:`Tree`.
    order : ndarray of int, shape (n - 1,)
        The old number of each merge.

    Examples
    --------
    >>> children, heights, order = order_merges([[0, 1], [2, 3], [4, 5]], [2.0, 1.0, 1.5])
    >>> children.tolist(), heights.tolist(), order.tolist()
    ([[2, 3], [0, 1], [5, 4]], [0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 2.0], [1, 0, 2])
    """
    kids = np.asarray(children, dtype=np.intp).reshape(-1, 2)
    targets = np.asarray(target_heights, dtype=np.float64)
    n = len(kids) + 1
    heights = [0.0] * n
    pairs = kids.tolist()
    for (left, right), height in zip(pairs, np.nan_to_num(targets, nan=0.0).tolist(), strict=True):
        heights.append(max(height, heights[left], heights[right]))
    follows_parent = [False] * n + np.isnan(targets).tolist()
    for k in range(n - 2, -1, -1):
        for child in pairs[k]:
            if follows_parent[child]:
                heights[child] = heights[n + k]
    merges = np.array(heights[n:], dtype=np.float64)
    # A stable sort keeps children before parents of the same height.
    order = np.argsort(merges, kind="stable")
    number = np.arange(2 * n - 1)
    number[n + order] = np.arange(n, 2 * n - 1)
    return number[kids[order]], np.concatenate([np.zeros(n), merges[order]]), order
