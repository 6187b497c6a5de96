"""Bayesian hierarchical clustering, pair by pair.

Rows are in coordinates in which the prior's mean is 0 and its scale matrix the identity. A cluster is known by the number of its
rows, their mean and scatter, and its counts of categories. Slots are named after a cluster's first row.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..compiled import inlined, jit, kernel


class Clusters(NamedTuple):
    """Clusters, one a slot, and tables of what depends on whole numbers alone."""

    size: np.ndarray  # (slots,)
    weight: (
        np.ndarray
    )  # (slots,): log of the sum over the partitions that the cluster's tree holds, prior times likelihood
    mean: np.ndarray  # (slots, D)
    scatter: np.ndarray  # (slots, D, D): lower triangle, about the mean; only of clusters of at least two rows
    root: np.ndarray  # (slots, few - 1, D): vectors whose outer products add up to the scatter; only of up to few rows
    factor: np.ndarray  # (slots, D, D): upper Cholesky factor of the posterior scale; as scatter
    log_det: np.ndarray  # (slots,): log determinant of the posterior scale
    counts: np.ndarray  # (slots, states)
    by_size: np.ndarray  # (n + 1,): prior and constants of one cluster of so many rows
    by_count: np.ndarray  # (states, n + 1): what a state that was seen so often adds
    kappa: float  # rows that the prior's mean is worth
    nu: float  # degrees of freedom of the prior


@jit
def _cholesky(a, d):
    """Turn a lower triangle into the upper Cholesky factor, in place, and return the log determinant."""
    log_det = 0.0
    for k in range(d):
        pivot = math.sqrt(a[k, k])
        log_det += 2 * math.log(pivot)
        a[k, k] = pivot
        # The column that was just done becomes a row of the upper triangle, so that inner loops run along memory.
        for i in range(k + 1, d):
            a[k, i] = a[i, k] / pivot
        for i in range(k + 1, d):
            for j in range(k + 1, i + 1):
                a[i, j] -= a[k, i] * a[k, j]
    return log_det


@jit
def _posterior_scale(clusters, i, j, a):
    """Put the posterior scale of two clusters together into the lower triangle of a matrix."""
    d = clusters.mean.shape[1]
    n_i, n_j = clusters.size[i], clusters.size[j]
    n = n_i + n_j
    between = n_i * n_j / n
    shrunk = clusters.kappa * n / (clusters.kappa + n)
    for p in range(d):
        gap = between * (clusters.mean[i, p] - clusters.mean[j, p])
        middle = shrunk * (n_i * clusters.mean[i, p] + n_j * clusters.mean[j, p]) / n
        for q in range(p + 1):
            a[p, q] = gap * (clusters.mean[i, q] - clusters.mean[j, q]) + middle * (
                (n_i * clusters.mean[i, q] + n_j * clusters.mean[j, q]) / n
            )
        a[p, p] += 1.0
    if n_i > 1:
        for p in range(d):
            for q in range(p + 1):
                a[p, q] += clusters.scatter[i, p, q]
    if n_j > 1:
        for p in range(d):
            for q in range(p + 1):
                a[p, q] += clusters.scatter[j, p, q]


@inlined
def _log_det_of_two_rows(clusters, i, j):
    """Return the log determinant of the identity and two matrices of rank one, from three products."""
    gap_gap, gap_sum, sum_sum = 0.0, 0.0, 0.0
    for p in range(clusters.mean.shape[1]):
        gap = clusters.mean[i, p] - clusters.mean[j, p]
        both = clusters.mean[i, p] + clusters.mean[j, p]
        gap_gap += gap * gap
        gap_sum += gap * both
        sum_sum += both * both
    a, b = 0.5, 0.5 * clusters.kappa / (clusters.kappa + 2)
    return math.log((1 + a * gap_gap) * (1 + b * sum_sum) - a * b * gap_sum * gap_sum)


@inlined
def _log_det_with_few(clusters, i, j, solved, gram):
    """Return the log determinant of a cluster and another of few rows, by an update of their rank."""
    d = clusters.mean.shape[1]
    n = clusters.size[j]
    kappa = clusters.kappa + clusters.size[i]
    share, weight = clusters.size[i] / kappa, math.sqrt(kappa * n / (kappa + n))
    for p in range(d):
        solved[0, p] = weight * (clusters.mean[j, p] - share * clusters.mean[i, p])
    for r in range(1, n):
        for p in range(d):
            solved[r, p] = clusters.root[j, r - 1, p]
    for r in range(n):
        for p in range(d):
            solved[r, p] /= clusters.factor[i, p, p]
            for q in range(p + 1, d):
                solved[r, q] -= clusters.factor[i, p, q] * solved[r, p]
        for s in range(r + 1):
            product = 0.0
            for p in range(d):
                product += solved[r, p] * solved[s, p]
            gram[r, s] = product
        gram[r, r] += 1.0
    return clusters.log_det[i] + _cholesky(gram, n)


@jit
def _log_odds(clusters, i, j, room, gram):
    """Return the log odds of one cluster against all that two trees hold."""
    i, j = min(i, j), max(i, j)
    large, small = (i, j) if clusters.size[i] >= clusters.size[j] else (j, i)
    if clusters.size[large] == 1:
        log_det = _log_det_of_two_rows(clusters, i, j)
    elif clusters.size[small] <= len(gram):
        log_det = _log_det_with_few(clusters, large, small, room, gram)
    else:
        _posterior_scale(clusters, i, j, room)
        log_det = _cholesky(room, clusters.mean.shape[1])
    n = clusters.size[i] + clusters.size[j]
    together = clusters.by_size[n] - 0.5 * (clusters.nu + n) * log_det
    for s in range(clusters.counts.shape[1]):
        together += clusters.by_count[s, clusters.counts[i, s] + clusters.counts[j, s]]
    return together - clusters.weight[i] - clusters.weight[j]


@jit
def _merge(clusters, i, j, odds):
    """Put the second cluster into the slot of the first."""
    d = clusters.mean.shape[1]
    n_i, n_j = clusters.size[i], clusters.size[j]
    n = n_i + n_j
    _posterior_scale(clusters, i, j, clusters.factor[i])
    between = n_i * n_j / n
    for p in range(d):
        for q in range(p + 1):
            inside = between * (clusters.mean[i, p] - clusters.mean[j, p]) * (clusters.mean[i, q] - clusters.mean[j, q])
            if n_i > 1:
                inside += clusters.scatter[i, p, q]
            if n_j > 1:
                inside += clusters.scatter[j, p, q]
            clusters.scatter[i, p, q] = inside
    if n - 1 <= clusters.root.shape[1]:
        for p in range(d):
            for r in range(n_j - 1):
                clusters.root[i, n_i - 1 + r, p] = clusters.root[j, r, p]
            clusters.root[i, n - 2, p] = math.sqrt(between) * (clusters.mean[i, p] - clusters.mean[j, p])
    for p in range(d):
        clusters.mean[i, p] = (n_i * clusters.mean[i, p] + n_j * clusters.mean[j, p]) / n
    clusters.log_det[i] = _cholesky(clusters.factor[i], d)
    for s in range(clusters.counts.shape[1]):
        clusters.counts[i, s] += clusters.counts[j, s]
    apart = clusters.weight[i] + clusters.weight[j]
    clusters.weight[i] = apart + (odds + math.log1p(math.exp(-odds)) if odds > 0 else math.log1p(math.exp(odds)))
    clusters.size[i] = n


@inlined
def _look_again(clusters, live, i, best, partner, room, gram):
    """Find the best partner of a slot among all; of equals the first."""
    for j in live:
        if j != i:
            pair = _log_odds(clusters, i, j, room, gram)
            if partner[i] < 0 or pair > best[i]:
                best[i], partner[i] = pair, j


@kernel
def agglomerate(clusters, merges, odds):
    """Merge the pair of highest odds until one cluster is left, of equals the one whose first rows come first.

    `merges` (n - 1, 2) gets the nodes that merge, rows first, and `odds` (n - 1,) their log odds.
    """
    n, d = clusters.mean.shape
    few = clusters.root.shape[1] + 1
    room, gram = np.empty((max(d, few), d)), np.empty((few, few))
    live = np.arange(n)
    node = np.arange(n)
    # No pair of a slot is better than its best. Where that pair is gone the slot has no partner, and is looked at again when
    # it is its turn.
    best = np.full(n, -math.inf)
    partner = np.full(n, -1)
    for i in range(n):
        for j in range(i + 1, n):
            pair = _log_odds(clusters, i, j, room, gram)
            if pair > best[i]:
                best[i], partner[i] = pair, j
            if pair > best[j]:
                best[j], partner[j] = pair, i
    for k in range(n - 1):
        a = live[np.argmax(best[live])]
        while partner[a] < 0:
            _look_again(clusters, live, a, best, partner, room, gram)
            a = live[np.argmax(best[live])]
        b = partner[a]
        a, b = min(a, b), max(a, b)
        merges[k, 0], merges[k, 1], odds[k] = node[a], node[b], best[a]
        _merge(clusters, a, b, best[a])
        node[a] = n + k
        live = live[live != b]
        best[a], partner[a] = -math.inf, -1
        for i in live:
            if i == a:
                continue
            if partner[i] == a or partner[i] == b:
                partner[i] = -1
            pair = _log_odds(clusters, i, a, room, gram)
            if pair > best[a]:
                best[a], partner[a] = pair, i
            if pair > best[i] or (pair == best[i] and a < partner[i]):
                best[i], partner[i] = pair, a
