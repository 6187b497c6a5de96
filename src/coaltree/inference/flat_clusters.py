"""Flat clusters of a tree and its table: large enough, and every row where it most probably belongs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..process.interface import Process
from ..process.kernels.messages import Pair, load_pair, log_z, merge
from ..tree.cut import cut_into_large, leaves_below, numbered
from ..tree.tree import Tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

FEWEST = 2  # rows of a cluster by default, if the table has that many for each


def flat_clusters(
    tree: Tree,
    X: FloatArray,
    process: Process,
    *,
    n_clusters: int | None = None,
    height: float | None = None,
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
        Clusters meet above this height; one of the two has to be given.
    min_cluster_size : float or int, default 0.02
        Rows that a cluster has at least: a share of all rows, or from 1 on a number of them.
    assign_outliers : bool, default True
        Whether rows that are left over join a cluster; else their label is -1.

    Returns
    -------
    ndarray of int, shape (n,)
        Clusters are numbered in the order of their first rows.
    """
    n = tree.n_leaves
    clusters = cut_into_large(
        tree, smallest_size(min_cluster_size, n, n_clusters), n_clusters=n_clusters, height=height
    )
    labels = np.full(n, -1, dtype=np.intp)
    for label, node in enumerate(clusters):
        labels[leaves_below(tree, node)] = label
    rest = np.flatnonzero(labels < 0)
    if assign_outliers and len(rest):
        labels[rest] = _nearest(tree, X, process, clusters, rest)
    return numbered(labels)


def smallest_size(min_cluster_size: float, n_rows: int, n_clusters: int | None = None) -> int:
    """Return how many rows a cluster has at least: no more than leaves enough for the number of clusters asked for."""
    if min_cluster_size >= 1:
        return int(min_cluster_size)
    size = max(math.ceil(min_cluster_size * n_rows), FEWEST) if min_cluster_size > 0 else 1
    return max(min(size, n_rows // (n_clusters or 2)), 1)


def check_min_cluster_size(value: object) -> None:
    """Raise unless a value says how many rows a cluster has at least."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not (0 <= value < 1 or value == int(value)):  # type: ignore[operator, call-overload]
        raise InputError(
            f"min_cluster_size is {value!r}; it must be a whole number of rows, or a share of all rows from 0 to 1."
        )


def _nearest(tree: Tree, X: FloatArray, process: Process, clusters: list[int], rest: IntArray) -> IntArray:
    """Return the cluster of each row that is left over."""
    n = tree.n_leaves
    forest = process.forest(X, 2 * n - 1)
    pair = Pair(forest)
    for node, (i, j) in enumerate(tree.children.tolist(), start=n):
        merge(forest, i, j, tree.heights[node], node, pair)
        forest.height[node] = tree.heights[node]
    sizes = tree.leaf_counts[clusters].tolist()
    top = float(tree.heights[clusters].max())
    found = np.empty(len(rest), dtype=np.intp)
    for k, row in enumerate(rest.tolist()):
        scores = []
        for node, size in zip(clusters, sizes, strict=True):
            load_pair(forest, row, node, pair)
            scores.append(log_z(forest, pair, top) + math.log(size))
        found[k] = int(np.argmax(scores))
    return found
