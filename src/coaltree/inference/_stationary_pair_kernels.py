"""Best heights of pairs of complete stationary messages, nearly in closed form.

With ``x = rate s``, s the path that the messages' own losses lengthen, the slope of ``log Z - c h`` has the sign of
``d2 - G(x)``,

    G(x) = D (1 - exp(-2 x)) + (2 c / rate) sinh(x)^2 + 4 m sinh(x / 2)^2.

Where ``m >= 0``, G only grows: there is one maximum, at ``G(x) = d2``, and a pair rises all the way to a limit if G is
below d2 there. Where ``m < 0``, it does if that holds without the last term, and the general search does the rest.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiled import inlined, jit
from ..process import operations as op
from ..process._decay_kernels import decay
from ..process._stationary_kernels import StationaryForest
from ._pair_kernels import BEST_HEIGHT, BLOCK_HEIGHTS, insert, rank_by_likelihood, search_height


@jit
def _best_path(n_columns, rate, d2, m, c):
    """Return x with ``G(x) = d2``, for m >= 0: Newton's method from a path that is exact where it is short, bracketed."""
    twice = 2 * n_columns
    square = 2 * c / rate + m
    x = 2 * d2 / (twice + math.sqrt(twice * twice + 4 * square * d2))
    low, high = 0.0, math.inf
    for _ in range(100):
        sinh, half = math.sinh(x), math.sinh(0.5 * x)
        gap = -n_columns * math.expm1(-2 * x) + (2 * c / rate) * sinh * sinh + 4 * m * half * half - d2
        slope = twice * math.exp(-2 * x) + (2 * c / rate) * math.sinh(2 * x) + 2 * m * sinh
        if gap > 0:
            high = x
        else:
            low = x
        new = x - gap / slope if slope > 0 else x
        if not low < new < high:
            new = 0.5 * (low + high) if high < math.inf else 2 * x
        if abs(new - x) <= 4e-16 * new:
            return new
        x = new
    return x


@inlined
def _path_of(lost):
    return -math.log1p(-lost) if lost < 1 else math.inf


@BEST_HEIGHT.supply(StationaryForest)
def _(forest, pair, shift, c, lowest, limit):
    if pair[2] < 0:
        return search_height(forest, pair, shift, c, lowest, limit)
    x = _best_path(forest.a.shape[0], forest.rate, pair[1], pair[2], c)
    h = max(0.5 * ((x - _path_of(pair[4])) / forest.rate + pair[0]), lowest)
    return h if h < limit else math.inf


@BLOCK_HEIGHTS.supply(StationaryForest)
def _(forest, i, first, last, live, best, pair, heights):
    a, rate, floor = forest.a, forest.rate, forest.height[i]
    n_columns = a.shape[0]
    n = last - first
    d2, m, paths = np.zeros(n), np.zeros(n), np.empty(n)
    for d in range(n_columns):
        ai, others = a[d, i], a[d, first:last]
        for k in range(n):
            gap = others[k] - ai
            d2[k] += gap * gap
            m[k] += others[k] * ai
    own_path = _path_of(forest.lost[i])
    for k in range(n):
        paths[k] = own_path + _path_of(forest.lost[first + k])
    height = forest.height[first:last]
    x, kept, lost, scratch = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    rises = np.empty(n)
    for k in range(n):
        x[k] = rate * (floor - height[k]) + paths[k]
    _put_rises(n_columns, rate, d2, m, x, kept, lost, scratch, rises)
    possible = live[first:last].copy()
    tops = best.copy()
    for k in range(n):
        heights[k] = math.inf
        if possible[k] and rises[k] <= 0:  # at the floor already: with m < 0 there may be a better height above
            possible[k] = False
            settled = m[k] >= 0
            if not settled:
                op.load_pair(forest, i, first + k, pair)
                limit = np.nextafter(max(tops[-1], floor), math.inf)
                heights[k] = search_height(forest, pair, paths[k] / rate, 1.0, floor, limit)
                settled = heights[k] == floor
            if settled:
                heights[k] = floor
            if settled and forest.noisy:
                one = lost[k] * (1 + kept[k])
                log_z = -0.5 * (n_columns * math.log(one) + d2[k] * kept[k] * kept[k] / one)
                heights[k] = rank_by_likelihood(log_z + m[k] * kept[k] / (1 + kept[k]))
            insert(tops, heights[k])
    if tops[-1] <= floor:
        return
    if tops[-1] < math.inf:
        bounds = np.empty(n)
        for k in range(n):
            x[k] = rate * (2 * tops[-1] - floor - height[k]) + paths[k]
            bounds[k] = max(m[k], 0.0)
        _put_rises(n_columns, rate, d2, bounds, x, kept, lost, scratch, rises)
        for k in range(n):
            possible[k] &= rises[k] <= 1e-12 * d2[k]  # those that still rise at the limit are out of the question
    for k in range(n):
        if possible[k]:
            if m[k] >= 0:
                x_best = _best_path(n_columns, rate, d2[k], m[k], 1.0)
                heights[k] = max(0.5 * ((x_best - paths[k]) / rate + floor + height[k]), np.nextafter(floor, math.inf))
            else:
                op.load_pair(forest, i, first + k, pair)
                limit = np.nextafter(max(tops[-1], floor), math.inf)
                heights[k] = search_height(forest, pair, paths[k] / rate, 1.0, floor, limit)
            insert(tops, heights[k])


@jit
def _put_rises(n_columns, rate, d2, m, x, kept, lost, scratch, rises):
    """Put ``d2 - G(x)`` into `rises`, for c = 1, and what a path of x keeps and loses."""
    decay(x, 1.0, kept, lost, scratch)
    for k in range(len(x)):
        twice = lost[k] * (1 + kept[k])
        over = twice / kept[k]
        rises[k] = d2[k] - n_columns * twice - over * over / (2 * rate) - m[k] * lost[k] * lost[k] / kept[k]
