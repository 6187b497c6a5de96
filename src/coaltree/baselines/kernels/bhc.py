"""Bayesian hierarchical clustering: greedy merges of pairs of clusters.

Rows are in coordinates in which the prior has mean 0 and the identity as scale matrix. A cluster is described by the number of
its rows, their mean and scatter, and its counts of categories. The slot of a cluster is the number of its first row.
"""

from __future__ import annotations

import numpy as np

try:
    import cython
except ImportError:
    from ..._nocython import cython

from ... import _math as math
from ... import _stop as stop


class Clusters:
    """Clusters by slot, and tables of functions of whole numbers."""

    def __init__(self, weight, mean, log_det, counts, by_size, by_count, kappa, nu, few):
        n, d = mean.shape
        self.n, self.d, self.n_states = n, d, counts.shape[1]
        self.size = np.ones(n, dtype=np.intp)  # (slots,)
        # (slots,): log of the sum over the partitions that the cluster's tree holds, prior times likelihood
        self.weight = weight
        self.mean = mean  # (slots, D)
        self.scatter = np.empty((n, d, d))  # lower triangle, about the mean; only of clusters of at least two rows
        # vectors whose outer products add up to the scatter; only of up to few rows
        self.root = np.empty((n, few - 1, d))
        # upper Cholesky factor of the posterior scale, as scatter; two more slots are scratch
        self.factor = np.empty((n + 2, max(d, few), max(d, few)))
        self.room, self.gram = n, n + 1
        self.log_det = log_det  # (slots,): log determinant of the posterior scale
        self.counts = counts  # (slots, states)
        self.by_size = by_size  # (n + 1,): prior and constants of one cluster of so many rows
        self.by_count = by_count  # (states, n + 1): what a state that was seen so often adds
        self.kappa = kappa  # rows that the prior's mean is worth
        self.nu = nu  # degrees of freedom of the prior
        self.few = few  # rows of which an update is worth it
        # the search
        self.n_live = n
        self.live = np.arange(n, dtype=np.intp)  # slots in use, in order
        self.node = np.arange(n, dtype=np.intp)  # of the tree
        # No pair of a slot is better than its best. Where that pair is gone the slot has no partner, and is looked at again
        # when it is its turn.
        self.best = np.full(n, -np.inf)
        self.partner = np.full(n, -1, dtype=np.intp)


def _cholesky(clusters, slot, d):
    """Replace the lower triangle in a slot of `factor` by the upper Cholesky factor, and return the log determinant."""
    log_det = 0.0
    for k in range(d):
        pivot = math.sqrt(clusters.factor[slot, k, k])
        log_det += 2 * math.log(pivot)
        clusters.factor[slot, k, k] = pivot
        # The column that was just done becomes a row of the upper triangle, so that inner loops run along memory.
        for i in range(k + 1, d):
            clusters.factor[slot, k, i] = clusters.factor[slot, i, k] / pivot
        for i in range(k + 1, d):
            entry = clusters.factor[slot, k, i]
            for j in range(k + 1, i + 1):
                clusters.factor[slot, i, j] -= entry * clusters.factor[slot, k, j]
    return log_det


def _posterior_scale(clusters, i, j, into):
    """Write the posterior scale of two clusters together into the lower triangle of a slot of `factor`."""
    d = clusters.d
    n_i, n_j = clusters.size[i], clusters.size[j]
    n = n_i + n_j
    between = n_i * n_j / float(n)  # C would leave out what is beyond the point
    shrunk = clusters.kappa * n / (clusters.kappa + n)
    for p in range(d):
        gap = between * (clusters.mean[i, p] - clusters.mean[j, p])
        middle = shrunk * (n_i * clusters.mean[i, p] + n_j * clusters.mean[j, p]) / n
        for q in range(p + 1):
            clusters.factor[into, p, q] = gap * (clusters.mean[i, q] - clusters.mean[j, q]) + middle * (
                (n_i * clusters.mean[i, q] + n_j * clusters.mean[j, q]) / n
            )
        clusters.factor[into, p, p] += 1.0
    if n_i > 1:
        for p in range(d):
            for q in range(p + 1):
                clusters.factor[into, p, q] += clusters.scatter[i, p, q]
    if n_j > 1:
        for p in range(d):
            for q in range(p + 1):
                clusters.factor[into, p, q] += clusters.scatter[j, p, q]


def _log_det_of_two_rows(clusters, i, j):
    """Return the log determinant of the identity and two matrices of rank one, from three products."""
    gap_gap = gap_sum = sum_sum = 0.0
    for p in range(clusters.d):
        gap = clusters.mean[i, p] - clusters.mean[j, p]
        mean_sum = clusters.mean[i, p] + clusters.mean[j, p]
        gap_gap += gap * gap
        gap_sum += gap * mean_sum
        sum_sum += mean_sum * mean_sum
    a, b = 0.5, 0.5 * clusters.kappa / (clusters.kappa + 2)
    return math.log((1 + a * gap_gap) * (1 + b * sum_sum) - a * b * gap_sum * gap_sum)


def _log_det_with_few(clusters, i, j):
    """Return the log determinant of a cluster and another one of few rows, by a low-rank update."""
    d, room, gram = clusters.d, clusters.room, clusters.gram
    n = clusters.size[j]
    kappa = clusters.kappa + clusters.size[i]
    share, weight = clusters.size[i] / kappa, math.sqrt(kappa * n / (kappa + n))
    for p in range(d):
        clusters.factor[room, 0, p] = weight * (clusters.mean[j, p] - share * clusters.mean[i, p])
    for r in range(1, n):
        for p in range(d):
            clusters.factor[room, r, p] = clusters.root[j, r - 1, p]
    for r in range(n):
        for p in range(d):
            entry = clusters.factor[room, r, p] / clusters.factor[i, p, p]
            clusters.factor[room, r, p] = entry
            for q in range(p + 1, d):
                clusters.factor[room, r, q] -= clusters.factor[i, p, q] * entry
        for s in range(r + 1):
            product = 0.0
            for p in range(d):
                product += clusters.factor[room, r, p] * clusters.factor[room, s, p]
            clusters.factor[gram, r, s] = product
        clusters.factor[gram, r, r] += 1.0
    return clusters.log_det[i] + _cholesky(clusters, gram, n)


def _log_odds(clusters, one, other):
    """Return the log odds of one cluster against all partitions that two trees hold."""
    i, j = min(one, other), max(one, other)
    if clusters.size[i] >= clusters.size[j]:
        large, small = i, j
    else:
        large, small = j, i
    if clusters.size[large] == 1:
        log_det = _log_det_of_two_rows(clusters, i, j)
    elif clusters.size[small] <= clusters.few:
        log_det = _log_det_with_few(clusters, large, small)
    else:
        _posterior_scale(clusters, i, j, clusters.room)
        log_det = _cholesky(clusters, clusters.room, clusters.d)
    n = clusters.size[i] + clusters.size[j]
    together = clusters.by_size[n] - 0.5 * (clusters.nu + n) * log_det
    for s in range(clusters.n_states):
        together += clusters.by_count[s, clusters.counts[i, s] + clusters.counts[j, s]]
    return together - clusters.weight[i] - clusters.weight[j]


def _merge(clusters, i, j, odds):
    """Merge the second cluster into the slot of the first."""
    d = clusters.d
    n_i, n_j = clusters.size[i], clusters.size[j]
    n = n_i + n_j
    _posterior_scale(clusters, i, j, i)
    between = n_i * n_j / float(n)  # C would leave out what is beyond the point
    for p in range(d):
        for q in range(p + 1):
            inside = between * (clusters.mean[i, p] - clusters.mean[j, p]) * (clusters.mean[i, q] - clusters.mean[j, q])
            if n_i > 1:
                inside += clusters.scatter[i, p, q]
            if n_j > 1:
                inside += clusters.scatter[j, p, q]
            clusters.scatter[i, p, q] = inside
    if n <= clusters.few:
        for p in range(d):
            for r in range(n_j - 1):
                clusters.root[i, n_i - 1 + r, p] = clusters.root[j, r, p]
            clusters.root[i, n - 2, p] = math.sqrt(between) * (clusters.mean[i, p] - clusters.mean[j, p])
    for p in range(d):
        clusters.mean[i, p] = (n_i * clusters.mean[i, p] + n_j * clusters.mean[j, p]) / n
    clusters.log_det[i] = _cholesky(clusters, i, d)
    for s in range(clusters.n_states):
        clusters.counts[i, s] += clusters.counts[j, s]
    apart = clusters.weight[i] + clusters.weight[j]
    clusters.weight[i] = apart + (odds + math.log1p(math.exp(-odds)) if odds > 0 else math.log1p(math.exp(odds)))
    clusters.size[i] = n


def _best_slot(clusters):
    """Return the slot of the best pair, the first among equals."""
    best = clusters.live[0]
    for k in range(1, clusters.n_live):
        if clusters.best[clusters.live[k]] > clusters.best[best]:
            best = clusters.live[k]
    return best


def _look_again(clusters, i):
    """Find the best partner of a slot among all, the first among equals."""
    for k in range(clusters.n_live):
        j = clusters.live[k]
        if j != i:
            pair = _log_odds(clusters, i, j)
            if clusters.partner[i] < 0 or pair > clusters.best[i]:
                clusters.best[i], clusters.partner[i] = pair, j


def _remove(clusters, slot):
    """Remove a slot from those in use."""
    n_live = 0
    for k in range(clusters.n_live):
        if clusters.live[k] != slot:
            clusters.live[n_live] = clusters.live[k]
            n_live += 1
    clusters.n_live = n_live


def agglomerate(clusters, merges, odds):
    """Merge the pair of highest odds until one cluster is left; among equals, the pair whose first rows come first.

    `merges` (n - 1, 2) gets the nodes that merge, rows first, and `odds` (n - 1,) their log odds.
    """
    with cython.nogil:
        for i in range(clusters.n):
            stop.poll()
            for j in range(i + 1, clusters.n):
                pair = _log_odds(clusters, i, j)
                if pair > clusters.best[i]:
                    clusters.best[i], clusters.partner[i] = pair, j
                if pair > clusters.best[j]:
                    clusters.best[j], clusters.partner[j] = pair, i
        for k in range(clusters.n - 1):
            stop.poll()
            a = _best_slot(clusters)
            while clusters.partner[a] < 0:
                stop.poll()
                _look_again(clusters, a)
                a = _best_slot(clusters)
            b = max(a, clusters.partner[a])
            a = min(a, clusters.partner[a])
            merges[k, 0], merges[k, 1], odds[k] = clusters.node[a], clusters.node[b], clusters.best[a]
            _merge(clusters, a, b, clusters.best[a])
            clusters.node[a] = clusters.n + k
            _remove(clusters, b)
            _find_new_partners(clusters, a, b)


def _find_new_partners(clusters, a, b):
    """Find the best partner of a merged slot, and update the best pairs of the others."""
    clusters.best[a], clusters.partner[a] = -math.inf, -1
    for k in range(clusters.n_live):
        i = clusters.live[k]
        if i == a:
            continue
        if clusters.partner[i] == a or clusters.partner[i] == b:
            clusters.partner[i] = -1
        pair = _log_odds(clusters, i, a)
        if pair > clusters.best[a]:
            clusters.best[a], clusters.partner[a] = pair, i
        if pair > clusters.best[i] or (pair == clusters.best[i] and a < clusters.partner[i]):
            clusters.best[i], clusters.partner[i] = pair, a
