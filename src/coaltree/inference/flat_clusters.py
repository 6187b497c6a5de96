"""Flat clusters of a tree: a minimum size, the assignment of outliers, and rows that one column sets apart."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .._cut import Cut, explicit_rule
from ..process.base import MERGES_PER_CALL, Process
from ..process.kernels.passes import best_partners, pass_up
from ..table.column_warnings import MIN_EXTREME_DISTANCE
from ..tree.cut import cut_nodes, label_leaves, number_clusters
from ..tree.edit import without_leaves
from ..tree.tree import Tree
from .partition import Partition

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MIN_CLUSTER_SIZE = 2  # by default, if the table has enough rows
MIN_GAP_RATIO, MIN_GAP_HEIGHT = 2.5, 0.3  # of merges that set small groups apart
MAX_OUTLIER_SHARE = 0.05  # more rows in small groups are no exception, and are not pointed out
# Rows are stray if one column contributes this share of their squared distance to the others, in standard deviations of the
# others. Smaller tables have no stray rows.
MIN_COLUMN_SHARE, MIN_STRAY_TABLE = 0.8, 20
MAX_STRAY_GROUPS = 10  # to check; each takes a pass over the whole table


def flat_clusters(tree: Tree, X: FloatArray, process: Process, cut: Cut, rate: float, partition: Partition) -> IntArray:
    """Cut a tree into clusters with a minimum size, and assign the remaining rows to them.

    Without a rule, or for a given number, the clusters are those of a partition. A remaining row joins the cluster c with the
    largest ``n_c Z``. ``Z`` is the likelihood ratio of one tree, in which the row and the cluster merge at the height of the cut,
    versus two independent trees.

    Parameters
    ----------
    tree : Tree
    X : ndarray of shape (n, D)
        Its rows, in the order of the leaves.
    process : Process
        A resolved one.
    cut : Cut
        With one rule at most.
    rate : float
        Rate of the process that a resolution refers to.
    partition : Partition
        The best one, or the best one into the given number of clusters. Rows in its small groups are outliers.

    Returns
    -------
    ndarray of int, shape (n,)
        Clusters are numbered in the order of their first rows; -1 for rows that stay outside.
    """
    if by_evidence(cut):
        clusters = partition.clusters.tolist()
    else:
        clusters = cut_nodes(tree, cut, min_cluster_rows(cut.min_cluster_size, tree.n_leaves), rate)
    labels = label_leaves(tree, clusters)
    if not cut.assign_outliers:
        labels[find_outliers(tree, partition)] = -1
        return number_clusters(labels)
    outliers = np.flatnonzero(labels < 0)
    if len(outliers):
        labels[outliers] = _assign_rows(tree, X, process, clusters, outliers)
    return number_clusters(labels)


def by_evidence(cut: Cut) -> bool:
    """Return whether clusters are the best partition, of all or into a given number, and not a cut at one height."""
    return explicit_rule(cut) in (None, "n_clusters")


def are_exceptions(rows: IntArray, n_rows: int) -> bool:
    """Return whether outliers are worth a remark: in a small table a single row may well be far from the others."""
    return n_rows >= MIN_STRAY_TABLE and 0 < len(rows) <= MAX_OUTLIER_SHARE * n_rows


def find_outliers(tree: Tree, partition: Partition) -> IntArray:
    """Return the rows in groups of a partition that are too small for clusters, sorted; none if all groups are."""
    return np.flatnonzero(label_leaves(tree, partition.clusters) < 0)


def hang_above(tree: Tree, rows: IntArray) -> Tree:
    """Return a tree in which some leaves join above all others, one by one, so that no cluster is made of them.

    Parameters
    ----------
    tree : Tree
    rows : ndarray of int
        Some of its leaves; at least two others remain.

    Returns
    -------
    Tree
    """
    if not len(rows):
        return tree
    n, m = tree.n_leaves, tree.n_leaves - len(rows)
    rest = without_leaves(tree, rows)
    number = np.concatenate([np.setdiff1d(np.arange(n), rows), np.arange(n, n + m - 1)])
    comb = np.column_stack([rows, np.arange(n + m - 2, 2 * n - 2)])
    top = max(MIN_GAP_RATIO * float(rest.heights[-1]), MIN_GAP_HEIGHT)
    return Tree(
        np.concatenate([np.sort(number[rest.children], axis=1), comb]),
        np.concatenate([np.zeros(n), rest.merge_heights, top * np.arange(2, len(rows) + 2)]),
        tree.leaf_names,
    )


def min_cluster_rows(min_cluster_size: float, n_rows: int, n_clusters: int | None = None) -> int:
    """Return the minimum size of a cluster as a number of rows; a share is reduced if `n_clusters` requires it."""
    if min_cluster_size >= 1:
        return int(min_cluster_size)
    size = max(math.ceil(min_cluster_size * n_rows), MIN_CLUSTER_SIZE) if min_cluster_size > 0 else 1
    return max(min(size, n_rows // int(n_clusters)), 1) if n_clusters is not None else size


def _assign_rows(tree: Tree, X: FloatArray, process: Process, clusters: list[int], rows: IntArray) -> IntArray:
    """Return the most probable cluster of each row."""
    n = tree.n_leaves
    forest = process.forest(X, 2 * n - 1)
    for first in range(0, n - 1, MERGES_PER_CALL):  # so that Ctrl-C is not delayed
        pass_up(forest, tree.children, tree.heights, first, min(first + MERGES_PER_CALL, n - 1))
    nodes = np.array(clusters, dtype=np.intp)
    log_sizes = np.log(tree.leaf_counts[nodes])
    top = float(tree.heights[nodes].max())
    labels = np.empty(len(rows), dtype=np.intp)
    for first in range(0, len(rows), MERGES_PER_CALL):
        part = slice(first, first + MERGES_PER_CALL)
        best_partners(forest, rows[part], nodes, log_sizes, top, labels[part])
    return labels


def find_stray_rows(tree: Tree, real: FloatArray, min_size: int) -> dict[int, IntArray]:
    """Find small groups that split off at the top of a tree because of a single column.

    The search goes down from the root as long as one side of the split has fewer than `min_size` leaves. It ends at once if the
    first of these groups is not extreme in one column. Columns that are constant in all other rows do not count.

    Parameters
    ----------
    tree : Tree
    real : ndarray of shape (n, D)
        Encoded real columns. NaN is a missing cell.
    min_size : int
        Larger groups are not stray rows.

    Returns
    -------
    dict of int to ndarray of int
        Sorted rows by column.
    """
    n, node = tree.n_leaves, tree.n_nodes - 1
    stray: dict[int, list[int]] = {}
    if n < MIN_STRAY_TABLE or not real.shape[1]:
        return {}
    is_other = np.ones(n, dtype=bool)  # rows outside of all groups so far
    for _ in range(MAX_STRAY_GROUPS):
        small, large = sorted(tree.children[node - n].tolist(), key=lambda child: int(tree.leaf_counts[child]))
        if tree.leaf_counts[small] >= min_size or large < n:
            break
        rows, node = tree.leaves_below(small), large
        is_other[rows] = False
        column = _find_extreme_column(real[rows], real[is_other])
        if column is not None:
            stray.setdefault(column, []).extend(rows.tolist())
        elif not stray:
            break
    return {column: np.sort(np.array(group, dtype=np.intp)) for column, group in stray.items()}


def _find_extreme_column(group: FloatArray, others: FloatArray) -> int | None:
    """Return the column in which a group is far from all other rows, if there is exactly one."""
    observed = ~np.isnan(others)
    counts = np.maximum(observed.sum(axis=0), 1)
    mean = np.where(observed, others, 0.0).sum(axis=0) / counts
    sd = np.sqrt(np.where(observed, (others - mean) ** 2, 0.0).sum(axis=0) / counts)
    in_group = ~np.isnan(group)
    differences = np.where(in_group, group - mean, 0.0).sum(axis=0) / np.maximum(in_group.sum(axis=0), 1)
    # A column with two values, such as yes and no, has no scale on which one of them could be extreme.
    varies = sd > 1e-9 * np.abs(differences)
    squares = np.divide(differences, sd, out=np.zeros_like(sd), where=varies) ** 2
    largest = int(np.argmax(squares))
    return largest if squares[largest] >= max(MIN_EXTREME_DISTANCE**2, MIN_COLUMN_SHARE * squares.sum()) else None
