"""Flat clusters of a tree and its table: large enough, and every row where it most probably belongs."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..process.base import MERGES_PER_CALL, Process
from ..process.kernels.passes import best_partners, pass_up
from ..table.column_warnings import MIN_EXTREME_DISTANCE
from ..tree.cut import cut_with_min_size, number_clusters, split_heights
from ..tree.tree import Tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

FEWEST = 2  # rows of a cluster by default, if the table has that many for each
# Of successive heights of splits: a ratio that makes it clear which ones part clusters, down to a height below which the data
# say nothing; and how much higher the first is than the eighth where there is any structure at all, and that of few columns:
# there it is 1 and so much over the number of columns, as the splits of noise differ more.
CLEAR_GAP, LOWEST, FLAT, FLAT_AFTER, FLAT_OF_FEW = 2.0, 0.3, 1.5, 8, 2.8
MOST_SPLITS = 10  # among which a gap is looked for: below, few rows are left for each


def flat_clusters(
    tree: Tree,
    X: FloatArray,
    process: Process,
    *,
    n_clusters: int | None = None,
    height: float | None = None,
    otherwise: float = math.inf,
    min_cluster_size: float = 0.02,
    assign_outliers: bool = True,
) -> IntArray:
    """Cut a tree into clusters of at least some size, and say where the rows beside them belong.

    A row that is left over joins the cluster c with the largest ``n_c Z``, where ``Z`` is the likelihood ratio of the row and the
    cluster's rows being one tree, whose lineages meet where the tree is cut, against two.

    Parameters
    ----------
    tree : Tree
    X : ndarray of shape (n, D)
        Its rows, in the order of the leaves.
    process : Process
        A resolved one.
    n_clusters : int, optional
        Number of clusters.
    height : float, optional
        Clusters meet above this height.
    otherwise : float, optional
        If neither is given, the tree is cut where `natural_cut` says, or else at this height.
    min_cluster_size : float or int, default 0.02
        Rows that a cluster has at least: a share of all rows, or from 1 on a number of them.
    assign_outliers : bool, default True
        Whether rows that are left over join a cluster; else their label is -1.

    Returns
    -------
    ndarray of int, shape (n,)
        Clusters are number_clusters in the order of their first rows.
    """
    n = tree.n_leaves
    min_size = smallest_size(min_cluster_size, n, n_clusters)
    if n_clusters is None and height is None:
        height = natural_cut(tree, min_size, otherwise, X.shape[1]).height
    clusters = cut_with_min_size(tree, min_size, n_clusters=n_clusters, height=height)
    labels = np.full(n, -1, dtype=np.intp)
    for label, node in enumerate(clusters):
        labels[tree.leaves_below(node)] = label
    rest = np.flatnonzero(labels < 0)
    if assign_outliers and len(rest):
        labels[rest] = _nearest(tree, X, process, clusters, rest)
    return number_clusters(labels)


class NaturalCut(NamedTuple):
    """Where to cut a tree if nobody says, and what decided on it."""

    height: float
    reason: Literal["gap", "no structure", "default resolution"]


def natural_cut(tree: Tree, min_size: int, otherwise: float, n_columns: int = 10) -> NaturalCut:
    """Return where to cut a tree if nobody says.

    Merges of at least `min_size` leaves on both sides are splits. Where one of the first ten is at least twice as high as
    the next, the tree is cut between the two with the largest ratio. Where the first eight are about equally high, as they are
    of noise without structure, it is not cut at all.

    Parameters
    ----------
    tree : Tree
    min_size : int
    otherwise : float
        The height to cut at if neither is so.
    n_columns : int, default 10
        Of the table: the splits of noise are the more alike the more columns there are.

    Returns
    -------
    NaturalCut

    Examples
    --------
    >>> from coaltree import Tree
    >>> tree = Tree([[0, 1], [2, 3], [4, 5]], [0.0, 0.0, 0.0, 0.0, 0.01, 0.02, 0.5])
    >>> natural_cut(tree, 1, 1.6)
    NaturalCut(height=0.02, reason='gap')
    """
    heights = split_heights(tree, min_size)
    high = min(int(np.count_nonzero(heights[:-1] >= LOWEST)), MOST_SPLITS)
    if high:
        ratios = heights[:high] / np.maximum(heights[1 : high + 1], np.finfo(float).tiny)
        if ratios.max() >= CLEAR_GAP:
            return NaturalCut(float(heights[int(ratios.argmax()) + 1]), "gap")
    flat = max(FLAT, 1 + FLAT_OF_FEW / max(n_columns, 1))
    if len(heights) >= FLAT_AFTER and heights[0] < flat * heights[FLAT_AFTER - 1]:
        return NaturalCut(math.inf, "no structure")
    return NaturalCut(otherwise, "default resolution")


def passed_over(tree: Tree, min_size: int, n_clusters: int) -> IntArray:
    """Return the sizes of groups that are too small to be clusters, but stand apart more clearly than the clusters do.

    Parameters
    ----------
    tree : Tree
    min_size : int
        Rows of a cluster.
    n_clusters : int
        Number of clusters that the tree is cut into.

    Returns
    -------
    ndarray of int
        Of groups of at least two leaves that meet all others at a height at least twice that of the lowest merge that was undone,
        the largest first.
    """
    heights = split_heights(tree, min_size)
    if not 2 <= n_clusters <= len(heights) + 1:
        return np.empty(0, dtype=np.intp)
    least = tree.leaf_counts[tree.children].min(axis=1)
    apart = (least >= FEWEST) & (least < min_size) & (tree.merge_heights >= CLEAR_GAP * heights[n_clusters - 2])
    return np.sort(least[apart])[::-1]


def smallest_size(min_cluster_size: float, n_rows: int, n_clusters: int | None = None) -> int:
    """Return how many rows a cluster has at least: no more than leaves enough for the number of clusters asked for."""
    if min_cluster_size >= 1:
        return int(min_cluster_size)
    size = max(math.ceil(min_cluster_size * n_rows), FEWEST) if min_cluster_size > 0 else 1
    return max(min(size, n_rows // n_clusters), 1) if n_clusters is not None else size


def check_min_cluster_size(value: object) -> None:
    """Raise unless a value says how many rows a cluster has at least."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not (0 <= value < 1 or (value >= 1 and value == int(value))):  # type: ignore[operator, call-overload]
        raise InputError(
            f"min_cluster_size is {value!r}; it must be a whole number of rows, or a share of all rows from 0 to 1."
        )


def _nearest(tree: Tree, X: FloatArray, process: Process, clusters: list[int], rest: IntArray) -> IntArray:
    """Return the cluster of each row that is left over."""
    n = tree.n_leaves
    forest = process.forest(X, 2 * n - 1)
    for first in range(0, n - 1, MERGES_PER_CALL):  # so that Ctrl-C gets its turn
        pass_up(forest, tree.children, tree.heights, first, min(first + MERGES_PER_CALL, n - 1))
    nodes = np.array(clusters, dtype=np.intp)
    log_sizes = np.log(tree.leaf_counts[nodes])
    top = float(tree.heights[nodes].max())
    found = np.empty(len(rest), dtype=np.intp)
    for first in range(0, len(rest), MERGES_PER_CALL):
        part = slice(first, first + MERGES_PER_CALL)
        best_partners(forest, rest[part], nodes, log_sizes, top, found[part])
    return found


# From these on, a few rows that are far out are told: the share of one column in their squared distances over all columns, in
# standard deviations of the other rows; and the number of rows of the table.
SHARE, FEWEST_ROWS = 0.8, 20
MOST_GROUPS = 10  # that are looked at: each costs a look at the whole table


def stray_rows(tree: Tree, real: FloatArray, min_size: int) -> dict[int, IntArray]:
    """Return rows that hang beside all others at the top of a tree, by the column that they are far out in.

    From the root downwards, as long as one side of a split has fewer than `min_size` leaves. Nothing is returned unless the first
    of these groups is far out in one column, nor of columns that do not vary otherwise.

    Parameters
    ----------
    tree : Tree
    real : ndarray of shape (n, D)
        Real columns as the process sees them; NaN is missing.
    min_size : int
        Leaves of a side that is not a group of stray rows.

    Returns
    -------
    dict of int to ndarray of int
        Rows by column, in order.
    """
    n, node = tree.n_leaves, tree.n_nodes - 1
    found: dict[int, list[int]] = {}
    if n < FEWEST_ROWS or not real.shape[1]:
        return {}
    left = np.ones(n, dtype=bool)  # rows that are not in a group
    for _ in range(MOST_GROUPS):
        small, large = sorted(tree.children[node - n].tolist(), key=lambda child: int(tree.leaf_counts[child]))
        if tree.leaf_counts[small] >= min_size or large < n:
            break
        rows, node = tree.leaves_below(small), large
        left[rows] = False
        column = _far_column(real[rows], real[left])
        if column is not None:
            found.setdefault(column, []).extend(rows.tolist())
        elif not found:
            break
    return {column: np.sort(np.array(own, dtype=np.intp)) for column, own in found.items()}


def _far_column(group: FloatArray, others: FloatArray) -> int | None:
    """Return the one column in which a few rows are far from all others, if there is one."""
    seen = ~np.isnan(others)
    counts = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, others, 0.0).sum(axis=0) / counts
    sd = np.sqrt(np.where(seen, (others - mean) ** 2, 0.0).sum(axis=0) / counts)
    own = ~np.isnan(group)
    away = np.where(own, group - mean, 0.0).sum(axis=0) / np.maximum(own.sum(axis=0), 1)
    # a column of two values, as of yes and no, has no scale that one of them could be far out on
    varies = sd > 1e-9 * np.abs(away)
    squares = np.divide(away, sd, out=np.zeros_like(sd), where=varies) ** 2
    far = int(np.argmax(squares))
    return far if squares[far] >= max(MIN_EXTREME_DISTANCE**2, SHARE * squares.sum()) else None
