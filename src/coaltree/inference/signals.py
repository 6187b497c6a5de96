"""How strongly columns depend on each other. A column that is independent of all others says nothing about groups of rows.

Rows of one group are alike in several columns at once, so groups make columns dependent. The test of a column compares it with
all others together and knows neither tree nor clusters, which the column itself would have shaped. Real columns are cut into
quarters, rare categories are pooled, and a cell of level l becomes the indicators ``(1[level] - share_l) / sqrt(share_l)``.
Products of the indicators of two columns, summed over rows, are the terms of Pearson's chi-squared statistic of their table. The
statistic of a column is its sum over all other columns. Its mean and variance under permutations of the column are known, eq.
(10.11), so nothing is permuted. Its excess, as a correlation between 0 and 1, is the signal, eq. (10.12): it tells how well rows
that are alike in the column are alike in the others.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Cochran's rule: levels with fewer cells, or tables of two columns with fewer rows for each of their cells, prove nothing.
MIN_COUNT = 5
N_QUARTERS = 4  # levels of a real column in a table with enough rows
# A column is left out if even the largest signal that agrees with the data, so many standard deviations above the one found, is,
# squared, below this share of that of the other columns. `python benchmarks/columns.py --shares` set it.
DEVIATIONS, MAX_SHARE = 1.645, 0.1
MIN_SPLIT = 0.8  # share of the variance of a real column that is between two groups of values; .75 in a uniform column
MAX_CELLS, MIN_ROWS = 300_000, 500  # of a table; larger ones are represented by a sample of rows


class Signals(NamedTuple):
    """Which columns matter."""

    signal: FloatArray  # (D,), from 0 to 1
    is_idle: NDArray[np.bool_]  # (D,), whether the column can say nothing about groups


def column_signals(X: FloatArray, n_real: int) -> Signals:
    """Return the signal of each column.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        Real columns first, then codes of categories. NaN is a missing cell, and so is a negative code.
    n_real : int
        Number of real columns.

    Returns
    -------
    Signals
        Columns are idle only next to others that have a signal.

    Examples
    --------
    >>> import numpy as np
    >>> x, y, z = np.random.default_rng(0).normal(size=(3, 500))
    >>> column_signals(np.column_stack([x, x + 0.5 * y, z, x - y]), 4).signal.round(1).tolist()
    [0.6, 0.5, 0.0, 0.3]
    """
    n, n_columns = X.shape
    n_rows = max(MAX_CELLS // max(n_columns, 1), MIN_ROWS)
    if n > n_rows:
        X = X[np.sort(np.random.default_rng(0).permutation(n)[:n_rows])]
    parts = [_indicators(X[:, d], d < n_real) for d in range(n_columns)]
    sizes = np.array([part.shape[1] for part in parts], dtype=np.intp)
    free = np.maximum(sizes - 1, 0)  # degrees of freedom
    Z = np.hstack([np.empty((len(X), 0), dtype=np.float32), *parts])
    own = np.repeat(np.arange(n_columns), sizes)
    known = ~np.isnan(X)
    known[:, n_real:] &= X[:, n_real:] >= 0
    counts = known.sum(axis=0).astype(np.float64)
    # squares of the products of each indicator with all others, its own column included
    if Z.shape[1] <= len(Z):
        squares = (Z.T @ Z).astype(np.float64) ** 2
        sums = squares.sum(axis=1)
    else:
        sums = np.einsum("if,if->f", Z, (Z @ Z.T) @ Z, dtype=np.float64)
    with_all = np.bincount(own, sums, n_columns)
    with_itself = counts**2 * free
    statistic = with_all - with_itself
    lengths = np.array([np.einsum("if,if->i", part, part, dtype=np.float64) for part in parts])
    lengths = lengths.reshape(n_columns, len(X))
    others = lengths.sum(axis=0) - lengths
    mean = free * np.einsum("ij,ji->i", others, known.astype(np.float64))
    share = counts / max(len(X), 1)
    spread = share * np.sqrt(np.maximum(with_all.sum() - 2 * statistic - with_itself, 0.0))
    size = np.sqrt(free) * spread
    usable = (size > 0) & (mean > 0)
    size, mean = np.where(usable, size, 1.0), np.where(usable, mean, 1.0)
    squared = np.where(usable, (statistic - mean) / (np.maximum(counts, 1.0) * size), 0.0).clip(0.0, 1.0)
    # the mean over columns, each weighted by itself, so that columns of noise do not count
    typical = float(squared @ squared) / max(float(squared.sum()), np.finfo(float).tiny)
    largest = squared + DEVIATIONS * math.sqrt(2) / np.maximum(counts, 1.0)
    is_idle = largest < MAX_SHARE * typical
    for d in np.flatnonzero(is_idle[:n_real]).tolist():
        is_idle[d] = not _has_groups(X[known[:, d], d])
    return Signals(np.sqrt(squared), is_idle)


def _indicators(column: FloatArray, is_real: bool) -> NDArray[np.float32]:
    """Return the standardised indicators of the levels of a column, 0 for missing cells, shape ``(n, levels)``."""
    known = ~np.isnan(column) if is_real else column >= 0
    cells = column[known]
    levels = _quarters(cells) if is_real else cells.astype(np.intp)
    counts = np.bincount(levels)
    frequent = counts >= MIN_COUNT
    new = np.where(frequent, np.cumsum(frequent) - 1, frequent.sum())  # all rare ones are the last
    levels = new[levels]
    shares = np.bincount(levels) / max(len(cells), 1)
    if len(shares) < 2:
        return np.empty((len(column), 0), dtype=np.float32)
    by_level = np.diag(1 / np.sqrt(shares)) - np.sqrt(shares)
    Z = np.zeros((len(column), len(shares)), dtype=np.float32)
    Z[known] = by_level.astype(np.float32)[levels]
    return Z


def _quarters(cells: FloatArray) -> NDArray[np.intp]:
    """Return a level for each cell, at most four of about equal size; equal cells have the same."""
    ordered = np.sort(cells)
    n_levels = min(max(math.isqrt(len(cells) // MIN_COUNT), 2), N_QUARTERS)
    levels = np.zeros(len(cells), dtype=np.intp)
    for k in range(1, n_levels):
        value = ordered[k * len(cells) // n_levels] if len(cells) else 0.0
        first, last = np.searchsorted(ordered, value), np.searchsorted(ordered, value, side="right")
        levels += cells >= value if (first + last) * n_levels >= 2 * k * len(cells) else cells > value
    return levels


def _has_groups(cells: FloatArray) -> bool:
    """Return whether the values of a real column lie in two separate groups, each with a twentieth of them."""
    ordered = np.sort(cells)
    n = len(ordered)
    ordered = (ordered - ordered.mean()) / max(float(ordered.std()), np.finfo(float).tiny)
    if np.count_nonzero(np.diff(ordered)) < N_QUARTERS:  # so few values are like categories
        return False
    below = np.arange(1, n)
    between = np.cumsum(ordered)[:-1] ** 2 * (1 / below + 1 / (n - below)) / n
    return bool(between[n // 20 : n - 1 - n // 20].max() > MIN_SPLIT)
