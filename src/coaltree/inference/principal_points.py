"""Rows as points in a few dimensions, for the evidence of clusters: their first principal components.

They come from the points that the process gives to the neighbour search. Two kinds of cells are known less well than they seem.
A *missing* cell is described by the nearest clade in which enough rows have the column: it gets their mean, and their variance
counts as spread. *Equal* cells stand for a stretch of values. If the cells of a column came from a normal distribution, those of
a value that a share p of them has would lie in a stretch of probability p, and the variance within it counts as spread. So the
combinations of a few columns of categories are no clusters, and whole numbers are no peaks.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..process.base import Process
from ..tree.tree import Tree

FloatArray = NDArray[np.float64]

MIN_DONORS = 10  # rows of a clade that describe a missing cell, as many as fill it for the search
MAX_GRAM = 500  # columns or rows, up to which the matrix of all products is made
LEAST_TIE = 1e-3  # share of the cells of a column, below which equal ones lack next to nothing
# `python benchmarks/cuts.py` needs no more: of a state, the coordinates of all others are nearly equal.
APART = 3.0  # times as far from each other are two groups of equal cells as cells within them
LEAST_SHARE = 1e-9  # of the largest variance, below which a component is rounding


class PrincipalPoints(NamedTuple):
    """The first principal components of rows, all of shape (n, r)."""

    points: FloatArray  # with extreme cells nearer to the others
    spread: FloatArray  # variances that are not known
    actual: FloatArray  # with extreme cells where they are


def principal_points(
    tree: Tree, X: FloatArray, actual: FloatArray, process: Process, height: float, n_dimensions: int
) -> PrincipalPoints:
    """Return the first principal components of rows, and the variances that are not known.

    Parameters
    ----------
    tree : Tree
    X : ndarray of shape (n, D)
        Its rows. NaN is a missing cell.
    actual : ndarray of shape (n, D)
        The same, but for extreme cells, which `X` has nearer to the others.
    process : Process
        A resolved one; it gives the coordinates.
    height : float
        Near which lineages of different clusters merge.
    n_dimensions : int
        The largest r; fewer if the other components have no variance.
    """
    tables = (X,) if actual is X else (X, actual)
    columns: list[FloatArray] = []
    lacking: list[FloatArray] = []
    moves: list[FloatArray] = []  # of extreme cells
    forests = [process.forest(table, len(X)) for table in tables]
    parts = [process.lineage_points(forest, len(X), height) for forest in forests]
    first_state = 0  # coordinates of real columns come first
    for k, (coordinates, *others) in enumerate(zip(*parts, strict=True)):
        column = coordinates.astype(np.float64)
        known = ~np.isnan(column)
        if not known.any():
            continue
        lost = np.zeros(len(column))
        lost[known] = float(column[known].var()) * _lost_variance(column[known], k >= forests[0].n_real)
        first_state += k < forests[0].n_real
        if not known.all():
            column, lost[~known] = _fill(tree, column, known)
        columns.append(column - column.mean())
        lacking.append(lost)
        moves += [np.nan_to_num(other - coordinates).astype(np.float64) for other in others]
    points, spread = (np.array(part, dtype=np.float64).reshape(-1, tree.n_leaves) for part in (columns, lacking))
    spread[first_state:] /= _own_shares(points[first_state:])[:, None]
    axes = _principal_axes(points, n_dimensions)
    near = np.ascontiguousarray(points.T @ axes)
    far = near + np.array(moves).T @ axes if moves else near
    return PrincipalPoints(near, np.ascontiguousarray(spread.T @ axes**2), far)


def _principal_axes(points: FloatArray, n_dimensions: int) -> FloatArray:
    """Return the first principal axes of centred points, shape ``(n_columns, r)``."""
    wide = points.shape[0] > points.shape[1]
    side = points.T if wide else points
    if len(side) <= MAX_GRAM:
        values, vectors = np.linalg.eigh(side @ side.T)
    else:
        from scipy.sparse.linalg import LinearOperator, eigsh  # slow to import

        products = LinearOperator((len(side),) * 2, matvec=lambda v: side @ (side.T @ v), dtype=np.float64)
        values, vectors = eigsh(products, n_dimensions, v0=np.linspace(1.0, 2.0, len(side)))
    order = np.argsort(-values)[:n_dimensions]
    order = order[values[order] > max(LEAST_SHARE * values.max(initial=0.0), np.finfo(float).tiny)]
    axes: FloatArray = points @ vectors[:, order] / np.sqrt(values[order]) if wide else vectors[:, order]
    return axes


def _own_shares(points: FloatArray) -> FloatArray:
    """Return the share of each centred column that does not follow from other ones, such as those of the same categories.

    What one of them lacks, the others lack as well: independent errors would leave the directions in which columns vary.
    """
    shares = np.ones(len(points))
    size = int(np.clip(points.shape[1] // 2, 2, MAX_GRAM))  # more columns depend on each other by chance
    for first in range(0, len(points), size):
        block = points[first : first + size]
        values, vectors = np.linalg.eigh(block @ block.T)
        varies = values > max(LEAST_SHARE * values.max(initial=0.0), np.finfo(float).tiny)
        shares[first : first + size] = (vectors[:, varies] ** 2).sum(axis=1)
    return np.where(shares > LEAST_SHARE, shares, 1.0)


def _lost_variance(cells: FloatArray, is_state: bool = False) -> FloatArray:
    """Return, for each cell, the variance of a standard normal variable within the stretch of its value, eq. (10.7)."""
    values, inverse, counts = np.unique(cells, return_inverse=True, return_counts=True)
    gaps = np.diff(values)
    if is_state and len(values) > 2 and gaps.max() > APART * (gaps.sum() - gaps.max()):
        inverse = (inverse > gaps.argmax()).astype(np.intp)
        counts = np.bincount(inverse)
    lost, normal = np.zeros(len(counts)), NormalDist()
    last = np.cumsum(counts)
    for group in np.flatnonzero(counts > max(1, LEAST_TIE * len(cells))).tolist():
        bounds = (last[group] - counts[group]) / len(cells), last[group] / len(cells)
        ends = [normal.inv_cdf(p) if 0 < p < 1 else 0.0 for p in bounds]
        heights = [normal.pdf(z) if 0 < p < 1 else 0.0 for z, p in zip(ends, bounds, strict=True)]
        share = counts[group] / len(cells)
        mean = (heights[0] - heights[1]) / share
        lost[group] = max(1 + (ends[0] * heights[0] - ends[1] * heights[1]) / share - mean**2, 0.0)
    return lost[inverse]


def _fill(tree: Tree, column: FloatArray, known: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """Return the column with missing cells filled, and the variances of these, from the nearest clades with enough cells."""
    order, first, last = tree.leaf_order, tree.first_positions, tree.first_positions + tree.leaf_counts
    own = np.where(known, column - column[known].mean(), 0.0)[order]
    totals = [np.append(0.0, np.cumsum(part)) for part in (known[order].astype(np.float64), own, own**2)]
    counts, sums, squares = (total[last] - total[first] for total in totals)
    is_source = counts >= min(MIN_DONORS, int(known.sum()))
    rows = np.flatnonzero(~known)
    source = rows.copy()
    while len(below := np.flatnonzero(~is_source[source])):
        source[below] = tree.parents[source[below]]
    mean = sums[source] / counts[source]
    filled = column.copy()
    filled[rows] = column[known].mean() + mean
    return filled, np.maximum(squares[source] / counts[source] - mean**2, 0.0)
