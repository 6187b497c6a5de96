"""Nearest-neighbour imputation of missing real cells, for the tree search only.

The search is many times faster on complete rows than on incomplete ones, and it finds better trees: two rows with few common
columns look similar by chance and merge too early. The mean over several similar rows is a better guess than nothing. Only the
search uses it; likelihoods and predictions use the observed cells.

The distance of two rows is the mean squared difference over the columns that both have, scaled such that its expectation for
two random rows is 2: real columns are scaled to the same range, as for the tree, and a difference in category counts 2 over the
probability that two rows differ. One additional column with just that expectation keeps rows with few common columns from
looking similar by chance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..process.gaussian_columns import column_moments, scale_to_range

FloatArray = NDArray[np.float64]

N_NEIGHBORS = 10  # rows that are averaged; more if several are equally near
EXPECTED_DISTANCE = 2.0  # squared difference of the standardized values of two random rows
RELATIVE_TOLERANCE = 1e-9  # smaller differences of distances are ties: rounding depends on the order of rows
BLOCK_ROWS = 256  # rows whose distances to all others are in memory at the same time


def fill_from_neighbors(X: FloatArray, n_real: int, *, n_neighbors: int = N_NEIGHBORS) -> FloatArray:
    """Fill missing real cells with the mean over the nearest rows that have the column.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        Real columns first, then codes of categories. NaN is a missing cell.
    n_real : int
        Number of real columns. Each has at least one observed cell.
    n_neighbors : int, default 10
        Number of rows to average; fewer if fewer have the column.

    Returns
    -------
    ndarray of shape (n, D)
        Missing categories stay missing, and so do the cells of rows without any observed cell. If no cell was filled, this is
        `X` itself.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [0.1, np.nan], [0.2, 3.0], [9.0, 8.0]])
    >>> fill_from_neighbors(X, 2, n_neighbors=2)[1].tolist()
    [0.1, 2.0]
    """
    observed = ~np.isnan(X)
    observed[:, n_real:] &= X[:, n_real:] >= 0  # one of several categories counts as missing here
    missing = ~observed[:, :n_real] & observed.any(axis=1, keepdims=True)
    incomplete = np.flatnonzero(missing.any(axis=1))
    if not len(incomplete):
        return X
    values, squares = _standardize(X, observed, n_real)
    indicator = observed.astype(np.float64)
    filled = X.copy()
    for first in range(0, len(incomplete), BLOCK_ROWS):
        rows = incomplete[first : first + BLOCK_ROWS]
        total = squares[rows] @ indicator.T + indicator[rows] @ squares.T - 2 * (values[rows] @ values.T)
        distances = (np.maximum(total, 0.0) + EXPECTED_DISTANCE) / (indicator[rows] @ indicator.T + 1)
        for column in np.flatnonzero(missing[rows].any(axis=0)).tolist():
            own = np.flatnonzero(missing[rows, column])
            others = np.flatnonzero(observed[:, column])  # never the row itself, which lacks the cell
            to_others = distances[np.ix_(own, others)]
            last = min(n_neighbors, len(others)) - 1
            limit = np.partition(to_others, last, axis=1)[:, last, None]
            near = (to_others <= limit * (1 + RELATIVE_TOLERANCE)).astype(np.float64)
            filled[rows[own], column] = near @ X[others, column] / near.sum(axis=1)
    return filled


def _standardize(X: FloatArray, observed: NDArray[np.bool_], n_real: int) -> tuple[FloatArray, FloatArray]:
    """Return coordinates of rows, 0 for missing cells, and their squared lengths in each column."""
    mean, variance = column_moments(X[:, :n_real])
    unit = np.sqrt(scale_to_range(X[:, :n_real], variance))
    real = np.where(observed[:, :n_real], X[:, :n_real] - mean, 0.0) / unit
    parts, squares = [real], [real**2]
    for codes, known in zip(X[:, n_real:].T, observed[:, n_real:].T, strict=True):
        states = np.unique(codes[known])
        indicators = (codes[:, None] == states).astype(np.float64)
        differ = 1 - np.sum((indicators.sum(axis=0) / max(known.sum(), 1)) ** 2)
        scale = 1 / differ if differ > 0 else 0.0
        parts.append(indicators * np.sqrt(scale))
        squares.append(known[:, None] * scale)
    return np.hstack(parts), np.hstack(squares)
