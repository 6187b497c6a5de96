"""The flat clusters of greatest evidence: the best partition of the rows into subtrees.

The evidence of a partition is a product over its clusters. A cluster of n rows with coordinates X has

    score = log a + log Gamma(n) + log p(X).

The first two terms are the prior of a Dirichlet process with concentration a. p(X) is the density of a Gaussian cluster whose
mean and covariance are integrated out: the covariance is inverse Wishart with mean ``s I``, and the mean has the covariance of
the cluster, times ``(1 - s) / s``, around that of the table. The share s of the variance that is within clusters is the one
with the greatest evidence. One pass up the tree finds the best partition, into any subtrees, at whatever height:

    best(node) = max(score(node), best(left) + best(right)),

eq. (10.4). Groups below the minimum size pay for themselves like any cluster, so that rows far from all others are set apart and
do not widen a cluster. A row on its own may also come from a Cauchy distribution around the table, in which it hardly matters
how far away it is. With the best sum for each number of clusters below a node, one pass finds the best partition into a given
number. `coaltree.inference.partition_chances` has sums in place of maxima.

The coordinates are those of `coaltree.inference.principal_points`.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .._validation import check_memory
from ..process.base import Process
from ..tree.tree import Tree
from .kernels.partitions import add_downwards, best_counts, best_sums, find_clusters, log_determinants
from .principal_points import PrincipalPoints, principal_points

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# `python benchmarks/clusters.py` and `python benchmarks/cuts.py` set these three. More dimensions separate more clusters, but
# split those that are not Gaussian, as fewer degrees of freedom do; the concentration keeps noise in one cluster.
N_DIMENSIONS, FREEDOM, CONCENTRATION = 8, 100.0, 0.05
SHARES_WITHIN = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8])  # of the variance, that the evidence chooses from


class Evidence(NamedTuple):
    """The rows below each node of a tree as one cluster, see `node_evidence`."""

    scores: FloatArray  # (n_nodes,), log evidence
    points: PrincipalPoints  # of the rows
    share: int  # place of the best share of variance within


def cluster_points(tree: Tree, X: FloatArray, actual: FloatArray, process: Process, height: float) -> PrincipalPoints:
    """Return the coordinates of rows for the evidence of clusters, see `principal_points`."""
    return principal_points(tree, X, actual, process, height, N_DIMENSIONS)


def node_evidence(tree: Tree, points: PrincipalPoints) -> Evidence:
    """Return the log evidence of the rows below each node as one cluster, for the share of variance within that is best."""
    scores = score_nodes(tree, points.points, points.spread)
    best = np.empty_like(scores)
    best_sums(tree.children, scores, best)
    chosen = int(best[-1].argmax())
    return Evidence(scores[:, chosen].copy(), points, chosen)


def best_partition(tree: Tree, scores: FloatArray, min_size: int) -> IntArray:
    """Return the clusters of the partition of greatest evidence: their top nodes, in drawing order.

    Parameters
    ----------
    tree : Tree
    scores : ndarray of shape (n_nodes,)
        Of nodes as clusters.
    min_size : int
        Minimum number of rows of a cluster. Leaves below none are in smaller groups. If all are, the tree is one cluster.

    Returns
    -------
    ndarray of int
    """
    best = np.empty((tree.n_nodes, 1))
    best_sums(tree.children, scores[:, None], best)
    apart = best[:, 0] > scores
    inside = np.where(apart, 0.0, 1.0)
    add_downwards(tree.children, inside)  # the number of nodes at or above each that are not split
    clusters = np.flatnonzero(~apart & (inside == 1) & (tree.leaf_counts >= min_size))
    return _in_drawing_order(tree, clusters) if len(clusters) else np.array([tree.root])


def partition_into(n_clusters: int, tree: Tree, scores: FloatArray, min_size: int) -> IntArray:
    """Return the clusters of the partition of greatest evidence into a given number of them, in drawing order.

    Parameters
    ----------
    n_clusters : int
        From 1 to the number of leaves.
    tree, scores, min_size
        See `best_partition`. The minimum size is halved until the tree has so many clusters of this size.

    Returns
    -------
    ndarray of int
    """
    min_size = min(min_size, tree.n_leaves)
    while True:
        starts = np.append(0, np.cumsum(np.minimum(tree.leaf_counts // min_size, n_clusters) + 1))
        check_memory(8.0 * starts[-1], f"the best partition into {n_clusters:,} clusters", "increase min_cluster_size")
        best = np.empty(starts[-1])
        best_counts(tree.children, scores, tree.leaf_counts, min_size, starts, best)
        if min_size == 1 or (starts[-1] - starts[-2] > n_clusters and best[-1] > -np.inf):
            break
        min_size //= 2
    counts = np.zeros(tree.n_nodes, dtype=np.intp)
    counts[-1] = n_clusters
    find_clusters(tree.children, scores, starts, best, counts)
    return _in_drawing_order(tree, np.flatnonzero(counts))


def _in_drawing_order(tree: Tree, nodes: IntArray) -> IntArray:
    return nodes[np.argsort(tree.first_positions[nodes])]


def find_apart(tree: Tree, evidence: Evidence, clusters: IntArray) -> NDArray[np.bool_]:
    """Return which rows are in none of the clusters, or more probable on their own than in theirs, given its other rows.

    So a row far from all others is found wherever the tree puts it.

    Parameters
    ----------
    tree : Tree
    evidence : Evidence
    clusters : ndarray of int
        Nodes, none above another.

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    points, spread, actual = evidence.points
    is_apart = np.ones(tree.n_leaves, dtype=bool)
    for node in clusters.tolist():
        is_apart[tree.leaves_below(node)] = False
    r = points.shape[1]
    if r == 0:  # all rows are equal
        return is_apart
    variance = float((points**2 + spread).mean())
    prior = ClusterPrior.for_variance(variance, r).at(evidence.share)
    scale, weight = float(prior.scales[0]), float(prior.weights[0])
    alone = math.log(CONCENTRATION) + _log_alone(actual, spread, variance)
    for node in clusters[tree.leaf_counts[clusters] > 1].tolist():
        rows = tree.leaves_below(node)
        n = len(rows)
        mean, total = points[rows].mean(axis=0), weight + n
        scatter = (points[rows] - mean).T @ (points[rows] - mean) + np.diag(scale + spread[rows].sum(axis=0))
        factor = np.linalg.cholesky(scatter + weight * n / total * np.outer(mean, mean))
        # A cluster of rows with extreme cells was moved as a whole.
        shift = np.median(actual[rows] - points[rows], axis=0) if actual is not points else 0.0
        away = np.linalg.solve(factor, (actual[rows] - shift - n / total * mean).T)
        left = np.maximum(1 - total / (total - 1) * (away**2).sum(axis=0), np.finfo(float).tiny)  # without each row
        log_det = 2 * np.log(np.diag(factor)).sum()
        together = prior.log_density(np.array([n]), np.array([[log_det]]))
        others = prior.log_density(np.full(n, n - 1), (log_det + np.log(left))[:, None])
        is_apart[rows] = math.log(n - 1) + together[0, 0] - others[:, 0] < alone[rows]
    return is_apart


def _log_alone(points: FloatArray, spread: FloatArray, variance: float) -> FloatArray:
    """Return the log density of rows under a Cauchy distribution with the mean and the mean variance of the table."""
    r = points.shape[1]
    log_norm = math.lgamma((1 + r) / 2) - (1 + r) / 2 * math.log(math.pi) - r / 2 * math.log(variance)
    log_density: FloatArray = log_norm - (1 + r) / 2 * np.log1p((points**2 + spread).sum(axis=1) / variance)
    return log_density


def score_nodes(tree: Tree, points: FloatArray, spread: FloatArray) -> FloatArray:
    """Return the log evidence of the rows below each node as one cluster, eq. (10.3), for each share of variance within.

    A leaf may also come from a Cauchy distribution.

    Parameters
    ----------
    tree : Tree
    points : ndarray of shape (n, r)
        Coordinates of the rows, with mean 0.
    spread : ndarray of shape (n, r)
        Variances of the coordinates, from what is not known of the cells.

    Returns
    -------
    ndarray of shape (n_nodes, n_shares)
    """
    r = points.shape[1]
    counts, place = np.unique(tree.leaf_counts, return_inverse=True)
    prior = np.array([math.log(CONCENTRATION) + math.lgamma(count) for count in counts.tolist()])
    if r == 0:  # all rows are equal
        return np.repeat(prior[place, None], len(SHARES_WITHIN), axis=1)
    variance = float((points**2 + spread).mean())
    cluster_prior = ClusterPrior.for_variance(variance, r)
    log_dets = np.empty((tree.n_nodes, len(SHARES_WITHIN)))
    sizes = tree.leaf_counts.astype(np.float64)
    log_determinants(tree.children, sizes, points, spread, cluster_prior.scales, cluster_prior.weights, log_dets)
    log_dets = cluster_prior.log_density(sizes, log_dets)
    log_dets += prior[place, None]
    alone = math.log(CONCENTRATION) + _log_alone(points, spread, variance)
    log_dets[: tree.n_leaves] = np.logaddexp(log_dets[: tree.n_leaves], alone[:, None])
    return log_dets


class ClusterPrior(NamedTuple):
    """The prior of the mean and the covariance of a Gaussian cluster, for each share of the variance within clusters."""

    n_dimensions: int
    scales: FloatArray
    weights: FloatArray

    @classmethod
    def for_variance(cls, variance: float, n_dimensions: int) -> Self:
        """Return the prior for points with this mean variance of a coordinate."""
        return cls(n_dimensions, SHARES_WITHIN * variance * (FREEDOM - 1), SHARES_WITHIN / (1 - SHARES_WITHIN))

    def at(self, share: int) -> Self:
        """Return the prior for one of the shares."""
        return self._replace(scales=self.scales[share, None], weights=self.weights[share, None])

    def log_density(self, sizes: FloatArray, log_dets: FloatArray) -> FloatArray:
        """Return the log density of clusters, p(X) in eq. (10.3).

        Parameters
        ----------
        sizes : ndarray of shape (m,)
            Numbers of rows.
        log_dets : ndarray of shape (m, n_shares)
            Log determinants, the last factor of eq. (10.3). They are overwritten.

        Returns
        -------
        ndarray of shape (m, n_shares)
        """
        r, freedom = self.n_dimensions, self.n_dimensions + FREEDOM
        counts, place = np.unique(sizes, return_inverse=True)
        gammas = np.array([_log_gamma((freedom + count) / 2, r) for count in counts.tolist()])
        by_count = gammas - _log_gamma(freedom / 2, r) - counts * r / 2 * math.log(math.pi)
        by_share = freedom / 2 * r * np.log(self.scales) + r / 2 * np.log(
            self.weights / (self.weights + counts[:, None])
        )
        log_dets *= -(freedom + sizes[:, None]) / 2
        log_dets += (by_count[:, None] + by_share)[place]
        return log_dets


def _log_gamma(a: float, r: int) -> float:
    """Return the log of the multivariate gamma function, without its constant."""
    return sum(math.lgamma(a - j / 2) for j in range(r))
