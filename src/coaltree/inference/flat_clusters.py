"""Flat clusters of a tree: their minimum size, the assignment of outliers, and equal rows, which are never separated."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..process.base import MERGES_PER_CALL, Process
from ..process.kernels.passes import best_partners, pass_up
from ..tree.cut import label_leaves, number_clusters
from ..tree.tree import Tree
from .equal_rows import find_equal_rows

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MIN_CLUSTER_SIZE = 2  # by default, if the table has enough rows
MAX_OUTLIER_SHARE = 0.05  # more rows in small groups are no exception, and are not pointed out
MIN_REMARK_ROWS = 20  # of a table whose outliers are pointed out


def flat_clusters(
    tree: Tree, X: FloatArray, process: Process, clusters: IntArray, outliers: NDArray[np.bool_] | None = None
) -> IntArray:
    """Label the rows of clusters, and assign the remaining rows to them, or leave outliers outside.

    A remaining row joins the cluster c with the largest ``n_c Z``. ``Z`` is the likelihood ratio of one tree, in which the row
    and the cluster merge at the height of the highest cluster, versus two independent trees.

    Parameters
    ----------
    tree : Tree
    X : ndarray of shape (n, D)
        Its rows, in the order of the leaves.
    process : Process
        A resolved one.
    clusters : ndarray of int
        Nodes, none above another.
    outliers : ndarray of bool, shape (n,), optional
        Rows that stay outside.

    Returns
    -------
    ndarray of int, shape (n,)
        Clusters are numbered in the order of their first rows; -1 for outliers.
    """
    labels = label_leaves(tree, clusters)
    if outliers is not None:
        labels[outliers] = -1
    elif len(rest := np.flatnonzero(labels < 0)):
        labels[rest] = _assign_rows(tree, X, process, clusters, rest)
    return number_clusters(labels)


def number_copies(X: FloatArray) -> IntArray:
    """Return the first row that equals each row."""
    first, (rows, groups) = np.arange(len(X)), find_equal_rows(X)
    first[rows] = rows[np.flatnonzero(np.diff(groups, prepend=-1))][groups]
    return first


def find_copies(tree: Tree, copies: IntArray) -> NDArray[np.bool_]:
    """Return which nodes have only equal rows below them, given what `number_copies` returns."""
    changes = np.append(0, np.cumsum(np.diff(copies[tree.leaf_order]) != 0))
    return np.asarray(changes[tree.first_positions] == changes[tree.first_positions + tree.leaf_counts - 1])


def unite_copies(labels: IntArray, copies: IntArray) -> IntArray:
    """Give equal rows the most frequent of their labels, the smallest of several and -1 last; drop clusters without rows.

    Examples
    --------
    >>> unite_copies(np.array([0, 1, 1, 2, -1, 2]), np.array([0, 0, 0, 3, 3, 5])).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    n_labels = int(labels.max()) + 2
    pairs, counts = np.unique(copies * n_labels + labels % n_labels, return_counts=True)
    rows, values = np.divmod(pairs, n_labels)
    order = np.lexsort([-values, counts])  # the last one of each group of rows stays
    united = labels.copy()
    united[rows[order]] = np.where(values == n_labels - 1, -1, values)[order]
    return number_clusters(united[copies])


def are_exceptions(rows: IntArray, n_rows: int) -> bool:
    """Return whether outliers are worth a remark: in a small table a single row may well be far from the others."""
    return n_rows >= MIN_REMARK_ROWS and 0 < len(rows) <= MAX_OUTLIER_SHARE * n_rows


def min_cluster_rows(min_cluster_size: float, n_rows: int, n_clusters: int | None = None) -> int:
    """Return the minimum size of a cluster as a number of rows; a share is reduced if `n_clusters` requires it."""
    if min_cluster_size >= 1:
        return int(min_cluster_size)
    size = max(math.ceil(min_cluster_size * n_rows), MIN_CLUSTER_SIZE) if min_cluster_size > 0 else 1
    return max(min(size, n_rows // int(n_clusters)), 1) if n_clusters is not None else size


def _assign_rows(tree: Tree, X: FloatArray, process: Process, clusters: IntArray, rows: IntArray) -> IntArray:
    """Return the most probable cluster of each row."""
    n = tree.n_leaves
    forest = process.forest(X, 2 * n - 1)
    for first in range(0, n - 1, MERGES_PER_CALL):  # so that Ctrl-C is not delayed
        pass_up(forest, tree.children, tree.heights, first, min(first + MERGES_PER_CALL, n - 1))
    log_sizes = np.log(tree.leaf_counts[clusters])
    top = float(tree.heights[clusters].max())
    labels = np.empty(len(rows), dtype=np.intp)
    for first in range(0, len(rows), MERGES_PER_CALL):
        part = slice(first, first + MERGES_PER_CALL)
        best_partners(forest, rows[part], clusters, log_sizes, top, labels[part])
    return labels
