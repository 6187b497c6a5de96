"""Flat clusters of a tree: where to cut, a minimum size, the assignment of outliers, and rows that one column sets apart."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._cut import Cut
from ..process.base import MERGES_PER_CALL, Process
from ..process.kernels.passes import best_partners, pass_up
from ..table.column_warnings import MIN_EXTREME_DISTANCE
from ..tree.cut import (
    cut_nodes,
    label_leaves,
    mean_correlation,
    number_clusters,
    resolution_to_height,
    split_heights,
)
from ..tree.edit import without_leaves
from ..tree.tree import Tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MIN_CLUSTER_SIZE = 2  # by default, if the table has enough rows
# A gap: one of the first splits is at least `min_ratio` times as high as the next, and at least as high as `min_height`. Lower
# splits have few rows each, and their heights vary by chance, so that they must differ more.
MIN_GAP_RATIO, MIN_GAP_HEIGHT, MAX_SPLITS = 2.5, 0.3, 10
MIN_LATE_GAP_RATIO, MIN_LATE_GAP_HEIGHT, MAX_LATE_SPLITS = 8.0, 0.1, 40
# Groups next to several clusters are outliers if they join one at least so many times as high as its highest split. They are
# pointed out unless they have more than this share of all rows.
MIN_OUTLIER_RATIO, MAX_OUTLIER_SHARE = 4.0, 0.05
# A table has no structure if its highest split is less than max(FLAT_RATIO, 1 + FLAT_COLUMNS / n_columns) times as high as
# split number FLAT_SPLIT. With fewer columns the splits of pure noise differ more.
FLAT_RATIO, FLAT_SPLIT, FLAT_COLUMNS = 1.35, 8, 2.8
LOW_CORRELATION = 0.18  # a split is high if rows on its two sides are less correlated
# Rows are stray if one column contributes this share of their squared distance to the others, in standard deviations of the
# others. Smaller tables have no stray rows.
MIN_COLUMN_SHARE, MIN_STRAY_TABLE = 0.8, 20
MAX_STRAY_GROUPS = 10  # to check; each takes a pass over the whole table


def flat_clusters(
    tree: Tree, X: FloatArray, process: Process, cut: Cut, rate: float, *, natural: bool = False
) -> IntArray:
    """Cut a tree into clusters with a minimum size, and assign the remaining rows to them.

    A remaining row joins the cluster c with the largest ``n_c Z``. ``Z`` is the likelihood ratio of one tree, in which the row
    and the cluster merge at the height of the cut, versus two independent trees.

    Parameters
    ----------
    tree : Tree
    X : ndarray of shape (n, D)
        Its rows, in the order of the leaves.
    process : Process
        A resolved one.
    cut : Cut
        With one rule.
    rate : float
        Rate of the process that a resolution refers to.
    natural : bool, default False
        Whether the height of the cut is that of `natural_cut`, not of the user. A single cluster then still has outliers.

    Returns
    -------
    ndarray of int, shape (n,)
        Clusters are numbered in the order of their first rows; -1 for rows that stay outside.
    """
    min_size = min_cluster_rows(cut.min_cluster_size, tree.n_leaves, cut.n_clusters)
    clusters = cut_nodes(tree, cut, min_size, rate)
    if not cut.assign_outliers:
        limit = _cut_height(tree, cut, clusters, rate, natural)
        clusters = [_without_outliers(tree, node, min_size, limit) for node in clusters]
    labels = label_leaves(tree, clusters)
    outliers = np.flatnonzero(labels < 0)
    if cut.assign_outliers and len(outliers):
        labels[outliers] = _assign_rows(tree, X, process, clusters, outliers)
    return number_clusters(labels)


def _cut_height(tree: Tree, cut: Cut, clusters: list[int], rate: float, natural: bool) -> float:
    """Return the height of a cut; 0 for a single cluster, unless the user gave the height."""
    if len(clusters) == 1 and (natural or cut.n_clusters == 1):
        return 0.0
    if cut.n_clusters is not None:
        return float(tree.heights[tree.parents[clusters]].min())
    if cut.height_threshold is not None:
        return cut.height_threshold
    assert cut.resolution is not None
    return resolution_to_height(cut.resolution, rate)


def _without_outliers(tree: Tree, node: int, min_size: int, limit: float) -> int:
    """Return the part of a cluster below the groups that a gap in height sets apart and that are too small for clusters.

    They join the cluster above the cut, and at least 2.5 times as high as its highest split if it is the only cluster. Next to
    others, four times. A cluster without splits is left whole.
    """
    n = tree.n_leaves
    path = []
    while tree.leaf_counts[node] >= 2 * min_size and node >= n:
        path.append(node)
        small, large = sorted(tree.children[node - n].tolist(), key=lambda child: int(tree.leaf_counts[child]))
        if tree.leaf_counts[small] >= min_size:
            break
        node = large
    else:
        return path[0] if path else node
    heights = tree.heights[path]
    min_ratio = MIN_OUTLIER_RATIO if limit > 0 else MIN_GAP_RATIO
    n_far = int(np.count_nonzero(heights >= max(min_ratio * heights[-1], MIN_GAP_HEIGHT, limit)))
    return path[n_far] if n_far < len(path) else node


def find_outliers(tree: Tree, height: float, min_size: int) -> IntArray:
    """Return the rows of groups that are too small for clusters and split off far above a default cut.

    Parameters
    ----------
    tree : Tree
    height : float
        The height of the cut.
    min_size : int
        Minimum size of a cluster.

    Returns
    -------
    ndarray of int
        Sorted; empty for small tables, in which a single row may well be far from the others, and if they are more than 5 % of
        all rows, which is no exception.
    """
    if tree.n_leaves < MIN_STRAY_TABLE:
        return np.empty(0, dtype=np.intp)
    cut = Cut(height_threshold=height)
    clusters = cut_nodes(tree, cut, min_size, math.nan)
    limit = _cut_height(tree, cut, clusters, math.nan, True)
    cores = [_without_outliers(tree, node, min_size, limit) for node in clusters]
    outside = (label_leaves(tree, clusters) >= 0) & (label_leaves(tree, cores) < 0)
    # Groups between the clusters are far only if they join the others far above the cut.
    above = np.zeros(tree.n_nodes, dtype=bool)
    for node in clusters:
        parent = int(tree.parents[node])
        while parent >= 0 and not above[parent]:
            above[parent] = True
            parent = int(tree.parents[parent])
    joins = np.flatnonzero(~above & above[tree.parents])
    far = tree.heights[tree.parents[joins]] >= max(MIN_GAP_RATIO * limit, MIN_GAP_HEIGHT)
    between = np.setdiff1d(joins[far], [*clusters, tree.n_nodes - 1])
    outliers = np.flatnonzero(outside | (label_leaves(tree, between.tolist()) >= 0))
    return outliers if len(outliers) <= MAX_OUTLIER_SHARE * tree.n_leaves else outliers[:0]


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


class NaturalCut(NamedTuple):
    """The default height of a cut, the reason for it, and the resolution if that is the reason."""

    height: float
    reason: Literal["one row", "gap", "no structure", "no structure within", "mean correlation"]
    resolution: float | None = None


def natural_cut(tree: Tree, min_size: int, rate: float, n_columns: int = 10) -> NaturalCut:
    """Return where to cut a tree by default.

    Splits are merges with at least `min_size` leaves on both sides. If one of the ten highest is at least 2.5 times as high as
    the next, or one of the forty highest eight times, the tree is cut between the two with the largest ratio. If the first eight
    are about equally high, as for noise without structure, or if none is high, the tree is not cut at all. If eight later ones
    are high and about equally so, it is cut above them. Otherwise it is cut at the mean correlation of two rows.

    Parameters
    ----------
    tree : Tree
    min_size : int
    rate : float
        Rate of the process, see `mean_correlation`.
    n_columns : int, default 10
        Columns of the table. The more there are, the more similar are the heights of splits of noise.

    Returns
    -------
    NaturalCut

    Notes
    -----
    Of all ways to cut the tree, the one at the mean correlation maximizes the modularity of the correlations: the sum, over all
    pairs of rows in one cluster, of the difference between their correlation and the mean over all pairs. A merge adds pairs to a
    cluster that all have the same correlation, so it should be in a cluster if that is above the mean.

    Examples
    --------
    >>> from coaltree import Tree
    >>> tree = Tree([[0, 1], [2, 3], [4, 5]], [0.0, 0.0, 0.0, 0.0, 0.01, 0.02, 0.5])
    >>> natural_cut(tree, 1, 0.5)
    NaturalCut(height=0.02, reason='gap', resolution=None)
    """
    if tree.n_leaves == 1:
        return NaturalCut(math.inf, "one row")
    heights = split_heights(tree, min_size)
    ratios = heights[:-1] / np.maximum(heights[1:], np.finfo(float).tiny)
    for min_ratio, min_height, max_splits in (
        (MIN_GAP_RATIO, MIN_GAP_HEIGHT, MAX_SPLITS),
        (MIN_LATE_GAP_RATIO, MIN_LATE_GAP_HEIGHT, MAX_LATE_SPLITS),
    ):
        first = ratios[: min(int(np.count_nonzero(heights[:-1] >= min_height)), max_splits)]
        if first.max(initial=0) >= min_ratio:
            return NaturalCut(float(heights[int(first.argmax()) + 1]), "gap")
    flat_ratio = max(FLAT_RATIO, 1 + FLAT_COLUMNS / max(n_columns, 1))
    flat = heights[: 1 - FLAT_SPLIT] < flat_ratio * heights[FLAT_SPLIT - 1 :]  # from each split to the eighth from it
    low_height = resolution_to_height(LOW_CORRELATION, rate)
    if heights.max(initial=0.0) <= low_height or flat[:1].any():
        return NaturalCut(math.inf, "no structure")
    # Many columns of noise make all splits high, also those inside of clear clusters.
    flat &= heights[FLAT_SPLIT - 1 :] > low_height
    if flat[:MAX_SPLITS].any():
        return NaturalCut(float(heights[int(flat.argmax())]), "no structure within")
    resolution = mean_correlation(tree, rate)
    return NaturalCut(resolution_to_height(resolution, rate), "mean correlation", resolution)


def find_small_groups(tree: Tree, min_size: int, n_clusters: int) -> IntArray:
    """Return the sizes of groups that are too small for clusters, but more distinct than the clusters are.

    Parameters
    ----------
    tree : Tree
    min_size : int
        Minimum size of a cluster.
    n_clusters : int
        Number of clusters that the tree is cut into.

    Returns
    -------
    ndarray of int
        In descending order, of groups of at least two leaves that merge with the others at least 2.5 times as high as the lowest
        split between clusters.
    """
    heights = split_heights(tree, min_size)
    if not 2 <= n_clusters <= len(heights) + 1:
        return np.empty(0, dtype=np.intp)
    sizes = tree.leaf_counts[tree.children].min(axis=1)
    distinct = tree.merge_heights >= MIN_GAP_RATIO * heights[n_clusters - 2]
    return np.sort(sizes[(sizes >= MIN_CLUSTER_SIZE) & (sizes < min_size) & distinct])[::-1]


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
