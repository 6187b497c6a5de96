"""Rules that cut a tree into flat clusters: by likelihood ratio, by number, by height or by co-clustering.

Clusters are numbered 0, 1, ... in the order of their first rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._cut import Cut, explicit_rule
from .._validation import quote
from ..errors import InputError
from .tree import Tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# A row without observed cells joins with a ratio of 1. Its log is 0 only up to rounding.
ROUNDING = 1e-9


def cut_tree(tree: Tree, cut: Cut, log_ratios: ArrayLike) -> IntArray:
    """Cut a tree by the rule of a cut, or by likelihood ratio if it has none. Clusters can have any size.

    Parameters
    ----------
    tree : Tree
    cut : Cut
        Rules that need a fitted model are ignored.
    log_ratios : array-like of shape (n_leaves - 1,)
        Log likelihood ratio of each merge; ignored if there is a rule.

    Returns
    -------
    ndarray of int, shape (n_leaves,)
        Cluster of each leaf.
    """
    rule = explicit_rule(cut, for_trees=True)
    if rule is None:
        return cut_by_ratio(tree, log_ratios)
    return number_clusters(label_leaves(tree, _RULES[rule](tree, getattr(cut, rule), 1, math.nan)))


def cut_nodes(tree: Tree, cut: Cut, min_size: int, rate: float) -> list[int]:
    """Cut a tree by the rule of a cut, with a minimum size.

    Parameters
    ----------
    tree : Tree
    cut : Cut
        With one rule.
    min_size : int
        Minimum number of leaves of a cluster.
    rate : float
        Rate of the process: rows that merge at height h have the correlation ``exp(-2 rate h)``, without noise.

    Returns
    -------
    list of int
        The nodes of the tree that are the clusters. Leaves below none of them are unassigned.
    """
    rule = explicit_rule(cut)
    assert rule is not None
    return _RULES[rule](tree, getattr(cut, rule), min_size, rate)


def label_leaves(tree: Tree, nodes: ArrayLike) -> IntArray:
    """Label the leaves by the position in `nodes` of the node above them, -1 if there is none; no node is above another."""
    node_array = np.asarray(nodes, dtype=np.intp)
    first = np.arange(1, len(node_array) + 1)
    changes = np.zeros(tree.n_leaves + 1, dtype=np.intp)
    np.add.at(changes, tree.first_positions[node_array], first)
    np.add.at(changes, tree.first_positions[node_array] + tree.leaf_counts[node_array], -first)
    labels = np.empty(tree.n_leaves, dtype=np.intp)
    labels[tree.leaf_order] = np.cumsum(changes[:-1]) - 1
    return labels


def cut_by_ratio(tree: Tree, log_ratios: ArrayLike) -> IntArray:
    """Cut where the model prefers independent trees.

    Start at the root. If one tree explains the leaves below a merge better than two independent trees, they are a
    cluster; otherwise examine both sides of the merge.

    Parameters
    ----------
    tree : Tree
    log_ratios : array-like of shape (n_leaves - 1,)
        Log likelihood ratio of each merge, eq. (10.1), most recent first.

    Returns
    -------
    ndarray of int, shape (n_leaves,)
        Cluster of each leaf.
    """
    ratios = np.asarray(log_ratios, dtype=np.float64)
    if ratios.shape != (tree.n_leaves - 1,):
        raise InputError(f"log_ratios has shape {ratios.shape}; there are {tree.n_leaves - 1} merges.")
    return _label_leaves(tree, ratios > -ROUNDING)


def cut_by_count(tree: Tree, n_clusters: int) -> IntArray:
    """Cut into a given number of clusters by undoing the oldest merges.

    Parameters
    ----------
    tree : Tree
    n_clusters : int
        From 1 to the number of leaves.

    Returns
    -------
    ndarray of int, shape (n_leaves,)
        Cluster of each leaf.
    """
    check_cluster_count(n_clusters, tree.n_leaves)
    return _label_leaves(tree, np.arange(tree.n_leaves - 1) < tree.n_leaves - int(n_clusters))


def check_cluster_count(n_clusters: object, n_rows: int) -> None:
    """Raise unless `n_clusters` is a whole number from 1 to the number of rows."""
    if (
        isinstance(n_clusters, bool)
        or not isinstance(n_clusters, (int, float, np.integer, np.floating))
        or not 1 <= n_clusters <= n_rows
        or n_clusters != int(n_clusters)
    ):
        raise InputError(
            f"n_clusters is {quote(n_clusters)}; it must be a whole number from 1 to {n_rows}, the number of rows."
        )


def cut_by_height(tree: Tree, height: float) -> IntArray:
    """Cut at a height: leaves share a cluster if their common ancestor is not above it.

    Parameters
    ----------
    tree : Tree
    height : float
        At least 0.

    Returns
    -------
    ndarray of int, shape (n_leaves,)
        Cluster of each leaf, as ``scipy.cluster.hierarchy.fcluster(..., criterion="distance")`` groups them.
    """
    if not _is_height(height):
        raise InputError(f"The height to cut at is {height!r}; it must be a number of at least 0.")
    return _label_leaves(tree, tree.merge_heights <= height)


def _is_height(height: object) -> bool:
    return isinstance(height, (int, float, np.integer, np.floating)) and bool(height >= 0)


def cut_by_agreement(
    similarity: ArrayLike, n_clusters: int | None = None, *, min_size: int = 1, assign_outliers: bool = True
) -> IntArray:
    """Cluster rows by their co-clustering probabilities, with average linkage.

    Parameters
    ----------
    similarity : array-like of shape (n, n)
        Probability that two rows are in one cluster.
    n_clusters : int, optional
        From 1 to n. By default clusters merge while the average probability between them is above 1/2.
    min_size : int, default 1
        Minimum size of a cluster, if any cluster is that large.
    assign_outliers : bool, default True
        Whether the rows of smaller groups join the cluster they are most probably in.

    Returns
    -------
    ndarray of int, shape (n,)
        Cluster of each row; -1 for rows that stay outside.
    """
    distances = 1 - np.asarray(similarity, dtype=np.float64)
    if len(distances) == 1:
        return np.zeros(1, dtype=np.intp)
    from scipy.cluster.hierarchy import linkage  # slow to import, and needed only for samples
    from scipy.spatial.distance import squareform

    tree = Tree.from_linkage(linkage(np.clip(squareform(distances, checks=False), 0.0, 1.0), "average"))
    if n_clusters is None:
        labels = cut_by_height(tree, 0.5)
        sizes = np.bincount(labels)
        if np.any(sizes >= min_size):
            labels[sizes[labels] < min_size] = -1
    else:
        labels = label_leaves(tree, cut_with_min_size(tree, min_size, n_clusters=n_clusters))
    outliers = labels < 0
    if assign_outliers and outliers.any():
        clusters = np.unique(labels[~outliers])
        members = labels[:, None] == clusters
        labels[outliers] = clusters[np.argmin(distances[outliers] @ members / members.sum(axis=0), axis=1)]
    return number_clusters(labels)


def cut_with_min_size(
    tree: Tree, min_size: int, *, n_clusters: int | None = None, height: float | None = None
) -> list[int]:
    """Cut a tree into clusters of at least `min_size` leaves; smaller branches remain unassigned.

    A merge is a split if both sides have at least `min_size` leaves. The highest splits are undone: either enough to
    make `n_clusters` clusters, or all above `height`.

    Parameters
    ----------
    tree : Tree
    min_size : int
        At least 1. It is halved until the tree has `n_clusters` clusters of this size.
    n_clusters : int, optional
        From 1 to the number of leaves.
    height : float, optional
        Give either this or `n_clusters`.

    Returns
    -------
    list of int
        The nodes of the tree that are the clusters. Leaves below none of them are unassigned.

    Examples
    --------
    >>> from coaltree import Tree
    >>> tree = Tree([[0, 1], [2, 3], [5, 6], [4, 7]], [0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.2, 1.0, 3.0])
    >>> cut_with_min_size(tree, 2, n_clusters=2)  # leaf 4 is far from all others
    [5, 6]
    >>> cut_with_min_size(tree, 1, n_clusters=2)
    [4, 7]
    """
    n = tree.n_leaves
    target = n if n_clusters is None else n_clusters
    while True:
        splits = _find_splits(tree, min_size)
        if height is not None:
            splits = splits[tree.merge_heights[splits] > height]
        if n_clusters is None or len(splits) + 1 >= target or min_size == 1:
            break
        min_size = max(min_size // 2, 1)
    undone = splits[max(len(splits) - (target - 1), 0) :]
    if len(undone) == 0:
        return [2 * n - 2]
    # In the drawing order, the two sides of each merge meet at a position that no other merge has.
    sides = tree.children[undone]
    first = tree.first_positions[sides]
    meets = np.zeros(n + 1, dtype=np.intp)
    meets[first.max(axis=1) + 1] = 1
    before = np.cumsum(meets)  # number of undone merges before each position
    undivided = before[first + tree.leaf_counts[sides]] == before[first + 1]
    return sorted(sides[undivided].tolist())


def resolution_to_height(resolution: float, rate: float) -> float:
    """Return the height at which rows with this correlation, without noise, merge, eq. (4.1)."""
    return -math.log(resolution) / (2 * rate) if resolution > 0 else math.inf


def height_to_resolution(height: FloatArray, rate: float) -> FloatArray:
    """Return the correlation, without noise, of rows that merge at each height: the inverse of `resolution_to_height`."""
    resolution: FloatArray = np.exp(-2 * rate * height)
    return resolution


# Functions of a tree, the value of the rule, the minimum size and the rate, by the name of the rule; see `cut_nodes`.
_RULES: dict[str, Callable[[Tree, Any, int, float], list[int]]] = {
    "resolution": lambda tree, value, min_size, rate: cut_with_min_size(
        tree, min_size, height=resolution_to_height(value, rate)
    ),
    "n_clusters": lambda tree, value, min_size, _: cut_with_min_size(tree, min_size, n_clusters=int(value)),
    "height_threshold": lambda tree, value, min_size, _: cut_with_min_size(tree, min_size, height=value),
}


def _find_splits(tree: Tree, min_size: int) -> IntArray:
    """Return the merges with at least `min_size` leaves on both sides."""
    return np.flatnonzero(tree.leaf_counts[tree.children].min(axis=1) >= min_size)


def number_clusters(labels: IntArray) -> IntArray:
    """Renumber clusters in the order of their first rows; -1, for rows in no cluster, stays."""
    values, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    clusters = np.flatnonzero(values >= 0)
    number = np.full(len(values), -1, dtype=np.intp)
    number[clusters[np.argsort(first[clusters])]] = np.arange(len(clusters))
    return np.asarray(number[inverse])


def _label_leaves(tree: Tree, is_joined: NDArray[np.bool_]) -> IntArray:
    """Label the leaves by the highest merges that stay together."""
    n = tree.n_leaves
    first = tree.first_positions[n:][is_joined]
    # In the drawing order, a cluster begins at every leaf that is not inside a merge that stays together, except
    # the first leaf of such a merge. These merges are nested or disjoint.
    covered = np.bincount(first + 1, minlength=n + 1)
    covered -= np.bincount(first + tree.leaf_counts[n:][is_joined], minlength=n + 1)
    begins = np.cumsum(covered[:n]) == 0
    first_rows = np.minimum.reduceat(tree.leaf_order, np.flatnonzero(begins))
    number = np.empty(len(first_rows), dtype=np.intp)
    number[np.argsort(first_rows)] = np.arange(len(first_rows))
    labels = np.empty(n, dtype=np.intp)
    labels[tree.leaf_order] = number[np.cumsum(begins) - 1]
    return labels
