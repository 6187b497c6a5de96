"""Passes over a tree for the partitions of its leaves into subtrees: moments of the rows below each node, best and total sums.

The moments of a set of rows are their mean and their scatter, the sum of the products of deviations from it. Those of two sets
together follow from their own without cancellation. Only the nodes whose parent is still to come are in memory.
"""

from __future__ import annotations

import numpy as np

from ... import _constants as const
from ... import _math as math
from ... import _stop as stop

try:
    import cython
except ImportError:
    from ..._nocython import cython


def log_determinants(children, sizes, points, spread, scales, weights, out):
    """Set ``out[v, g]`` to ``log det(s I + S + w n / (w + n) m m')`` for the mean m and the scatter S of the n rows below v.

    `points` and `spread` have the shape (rows, r): the coordinates of rows, and variances that are added to the diagonal of the
    scatter. `scales` and `weights` are s and w for each g.
    """
    n, r = points.shape[0], points.shape[1]
    moments = np.empty((n // 2 + 2, r + r * (r + 1) // 2))  # the last row is for a leaf
    free, slot = np.arange(n // 2 + 1, dtype=np.intp), np.empty(2 * n - 1, dtype=np.intp)
    # eight values of s and w at a time; a literal where compilers are to see it
    room = (scales.shape[0] + 7) // 8 * 8
    lanes, factor = np.ones((2, room)), np.empty((r * (r + 1) // 2 + r, 8))
    lanes[0, : scales.shape[0]], lanes[1, : scales.shape[0]] = scales, weights
    with cython.nogil:
        n_free = n // 2 + 1
        for node in range(n):
            if node % stop.STRIDE == 0:
                stop.poll()
            for g in range(0, scales.shape[0], 8):
                _set_log_determinants_of_leaf(points, spread, node, lanes, g, out)
        for k in range(n - 1):
            if k % stop.STRIDE == 0:
                stop.poll()
            a, b = children[k, 0], children[k, 1]
            if a < n <= b:  # a leaf joins the moments of a merge
                a, b = b, a
            if a < n:
                n_free -= 1
                slot[a] = free[n_free]
                _load_leaf(points, spread, a, moments, slot[a])
            if b < n:
                slot[b] = n // 2 + 1
                _load_leaf(points, spread, b, moments, slot[b])
            _join(moments, slot[a], slot[b], sizes[a], sizes[b], r)
            if b >= n:
                free[n_free] = slot[b]
                n_free += 1
            slot[n + k] = slot[a]
            for g in range(0, scales.shape[0], 8):
                _set_log_determinants(moments, slot[a], sizes[n + k], r, lanes, g, factor, out, n + k)


def _load_leaf(points, spread, leaf, moments, i):
    """Set moments to those of one row."""
    at = points.shape[1]
    for a in range(points.shape[1]):
        moments[i, a] = points[leaf, a]
        for _ in range(a):
            moments[i, at] = 0.0
            at += 1
        moments[i, at] = spread[leaf, a]
        at += 1


def _join(moments, i, j, size, other, r):
    """Set moments i to those of both sets together."""
    at, share = r, other / (size + other)
    for a in range(r):
        for b in range(a + 1):
            product = (moments[j, a] - moments[i, a]) * (moments[j, b] - moments[i, b])
            moments[i, at] += moments[j, at] + size * share * product
            at += 1
    for a in range(r):
        moments[i, a] += share * (moments[j, a] - moments[i, a])


def _set_log_determinants_of_leaf(points, spread, leaf, lanes, first, out):
    """Set up to eight log determinants, from `first` on, of one row: without scatter, all but ``w m m'`` is diagonal."""
    product, total = [1.0] * 8, [0.0] * 8
    for a in range(points.shape[1]):
        square, own = points[leaf, a] * points[leaf, a], spread[leaf, a]
        for g in range(8):
            product[g] *= lanes[0, first + g] + own
            total[g] += square / (lanes[0, first + g] + own)
    for g in range(min(8, out.shape[1] - first)):
        weight = lanes[1, first + g]
        out[leaf, first + g] = math.log1p(weight / (weight + 1) * total[g])
        if const.SMALLEST < product[g] < const.LARGEST:
            out[leaf, first + g] += math.log(product[g])
        else:
            for a in range(points.shape[1]):
                out[leaf, first + g] += math.log(lanes[0, first + g] + spread[leaf, a])


def _set_log_determinants(moments, i, size, r, lanes, first, factor, out, node):
    """Set up to eight log determinants, from `first` on, of a set of rows, by Cholesky factors side by side.

    The last rows of `factor` have the inverse roots of the pivots. Numbers of eight lanes are vectors to the compiler.
    """
    x, pull, product = [0.0] * 8, [0.0] * 8, [1.0] * 8
    for g in range(8):
        pull[g] = lanes[1, first + g] * size / (lanes[1, first + g] + size)
    at, row, inverse = r, 0, r * (r + 1) // 2
    for a in range(r):
        for b in range(a + 1):
            scatter, square = moments[i, at], moments[i, a] * moments[i, b]
            for g in range(8):
                x[g] = scatter + pull[g] * square
            for c in range(b):
                one, other = a * (a + 1) // 2 + c, b * (b + 1) // 2 + c
                for g in range(8):
                    x[g] -= factor[one, g] * factor[other, g]
            if b < a:
                for g in range(8):
                    factor[row, g] = x[g] * factor[inverse + b, g]
            else:
                for g in range(8):
                    x[g] += lanes[0, first + g]
                    product[g] *= x[g]
                    factor[inverse + a, g] = 1 / math.sqrt(x[g])
            at += 1
            row += 1
    for g in range(min(8, out.shape[1] - first)):
        if const.SMALLEST < product[g] < const.LARGEST:
            out[node, first + g] = math.log(product[g])
        else:
            out[node, first + g] = 0.0
            for a in range(r):
                out[node, first + g] -= 2 * math.log(factor[inverse + a, g])


def best_sums(children, scores, best):
    """Set ``best[v]`` to the largest sum of scores over the partitions of the rows below v into subtrees, column by column."""
    n, n_columns = children.shape[0] + 1, scores.shape[1]
    with cython.nogil:
        for node in range(2 * n - 1):
            for g in range(n_columns):
                best[node, g] = scores[node, g]
                if node >= n:
                    apart = best[children[node - n, 0], g] + best[children[node - n, 1], g]
                    if apart > best[node, g]:
                        best[node, g] = apart


def best_counts(children, scores, sizes, min_size, starts, best):
    """Set ``best[starts[v] + j]`` to the largest sum of scores over partitions of the rows below v with j clusters.

    Groups of fewer than `min_size` rows are no clusters; their scores count. There is room for j below ``starts[v + 1]``. What is
    impossible is -inf.
    """
    n = children.shape[0] + 1
    with cython.nogil:
        for node in range(2 * n - 1):
            if node % stop.STRIDE == 0:
                stop.poll()
            at, width = starts[node], starts[node + 1] - starts[node]
            for j in range(width):
                best[at + j] = -math.inf
            best[at + (sizes[node] >= min_size)] = scores[node]
            if node >= n:
                a, b = children[node - n, 0], children[node - n, 1]
                for i in range(starts[a + 1] - starts[a]):
                    for j in range(min(starts[b + 1] - starts[b], width - i)):
                        apart = best[starts[a] + i] + best[starts[b] + j]
                        if apart > best[at + i + j]:
                            best[at + i + j] = apart


def find_clusters(children, scores, starts, best, counts):
    """Set ``counts[v]`` to 1 for the clusters of a best partition, see `best_counts`, and to 0 for other nodes.

    Before, all are 0 but that of the root: the number of clusters.
    """
    n = children.shape[0] + 1
    with cython.nogil:
        for node in range(2 * n - 2, n - 1, -1):
            count = counts[node]
            if count == 0 or (count == 1 and best[starts[node] + 1] == scores[node]):
                continue
            a, b = children[node - n, 0], children[node - n, 1]
            first = max(0, count - (starts[b + 1] - starts[b] - 1))
            counts[node], counts[a], counts[b] = 0, first, count - first
            for i in range(first + 1, min(count, starts[a + 1] - starts[a] - 1) + 1):
                if (
                    best[starts[a] + i] + best[starts[b] + count - i]
                    > best[starts[a] + counts[a]] + best[starts[b] + counts[b]]
                ):
                    counts[a], counts[b] = i, count - i


def log_sums(children, scores, totals):
    """Set ``totals[v]`` to the log of the sum, over the partitions of the rows below v, of the exponential of their scores."""
    n = children.shape[0] + 1
    with cython.nogil:
        for node in range(2 * n - 1):
            totals[node] = scores[node]
            if node >= n:
                apart = totals[children[node - n, 0]] + totals[children[node - n, 1]]
                high, low = apart, totals[node]
                if low > high:
                    high, low = low, high
                totals[node] = high + math.log1p(math.exp(low - high))


def add_downwards(children, values):
    """Add to the value of each node those of all nodes above it."""
    n = children.shape[0] + 1
    with cython.nogil:
        for node in range(2 * n - 2, n - 1, -1):
            values[children[node - n, 0]] += values[node]
            values[children[node - n, 1]] += values[node]
