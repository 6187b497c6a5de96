"""How sure flat clusters are: probabilities over all partitions of the rows that a tree allows, by their evidence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..tree.tree import Tree
from .kernels.partitions import add_downwards, log_sums

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

LEAST_CHANCE = 1e-9  # of a node not to be inside of a cluster, below which its partitions are not looked at


def cluster_chances(tree: Tree, scores: FloatArray) -> FloatArray:
    """Return the probability of each node to be a cluster, over all partitions that the tree allows, eq. (10.5).

    Parameters
    ----------
    tree : Tree
    scores : ndarray of shape (n_nodes,)
        Of nodes as clusters.

    Returns
    -------
    ndarray of shape (n_nodes,)
    """
    log_own = _log_chances_below(tree, scores)
    with np.errstate(divide="ignore"):
        apart = np.log(-np.expm1(log_own))
    above = np.zeros(tree.n_nodes)
    above[tree.children] = apart[tree.n_leaves :, None]
    add_downwards(tree.children, above)
    chances: FloatArray = np.exp(above + log_own)
    return chances


def _log_chances_below(tree: Tree, scores: FloatArray) -> FloatArray:
    """Return the log probability of each node to be one cluster, if no node above it is one."""
    totals = np.empty(tree.n_nodes)
    log_sums(tree.children, scores, totals)
    return np.minimum(scores - totals, 0.0)


def number_distribution(tree: Tree, scores: FloatArray, min_size: int) -> FloatArray:
    """Return the probability of each number of clusters, from 0 on, with at least `min_size` rows, over all partitions.

    Parameters
    ----------
    tree : Tree
    scores : ndarray of shape (n_nodes,)
        Of nodes as clusters.
    min_size : int
        Smaller groups do not count.

    Returns
    -------
    ndarray
    """
    own = np.exp(_log_chances_below(tree, scores))
    reached: list[tuple[int, float]] = [(tree.root, 1.0)]  # nodes, and their chances not to be inside of a cluster
    for node, chance in reached:
        if node >= tree.n_leaves and tree.leaf_counts[node] >= min_size and chance * (1 - own[node]) > LEAST_CHANCE:
            reached += [(child, chance * (1 - own[node])) for child in tree.children[node - tree.n_leaves].tolist()]
    found: dict[int, FloatArray] = {}
    for node, _ in reversed(reached):
        counts = np.array([0.0, 1.0]) if tree.leaf_counts[node] >= min_size else np.ones(1)
        if node >= tree.n_leaves and (first := int(tree.children[node - tree.n_leaves, 0])) in found:
            apart = np.convolve(found.pop(first), found.pop(int(tree.children[node - tree.n_leaves, 1])))
            padded = np.zeros(max(len(apart), len(counts)))
            padded[: len(counts)] = own[node] * counts
            padded[: len(apart)] += (1 - own[node]) * apart
            counts = padded[: int(np.flatnonzero(padded > LEAST_CHANCE**2)[-1]) + 1]
        found[node] = counts
    distribution: FloatArray = found[tree.root] / found[tree.root].sum()
    return distribution


def membership_chances(tree: Tree, scores: FloatArray, labels: IntArray) -> FloatArray:
    """Return the mean probability, over the other rows of each cluster, that a row is in one cluster with them, eq. (10.6).

    Parameters
    ----------
    tree : Tree
    scores : ndarray of shape (n_nodes,)
        Of nodes as clusters.
    labels : ndarray of int, shape (n,)
        Clusters of the leaves; -1 for rows in none.

    Returns
    -------
    ndarray of shape (n, n_clusters)
        1 for the only row of a cluster.
    """
    together = cluster_chances(tree, scores)  # of two rows that merge at a node, after the next line
    add_downwards(tree.children, together)
    chances = np.empty((tree.n_leaves, int(labels.max()) + 1))
    last = tree.first_positions + tree.leaf_counts
    for cluster in range(chances.shape[1]):
        total = np.append(0, np.cumsum(labels[tree.leaf_order] == cluster))
        members = total[last] - total[tree.first_positions]
        # over the members, of their probability to be together with the leaves below a node
        sums = np.zeros(tree.n_nodes)
        others_below = members[tree.n_leaves :, None] - members[tree.children]
        sums[tree.children] = others_below * together[tree.n_leaves :, None]
        add_downwards(tree.children, sums)
        others = members[tree.root] - members[: tree.n_leaves]
        chances[:, cluster] = np.where(others > 0, sums[: tree.n_leaves] / np.maximum(others, 1), 1.0)
    return np.clip(chances, 0.0, 1.0)
