"""Messages over the states of categorical columns.

Column ``d`` owns the rows ``start[d] : start[d + 1]`` of ``m``, which hold ``sqrt(q_k) M_k``: then the agreement
``S = sum_k q_k M_k M'_k`` of two messages is a plain inner product, exactly 0 for two leaves in different states.
With ``b = 1 - S`` and ``u = exp(-rate g(h))`` a column contributes ``log Z = log(1 - b u)``: a rise ``2 rate b u / (1 - b u)``
where the two disagree (``0 < b <= 1``), a drop of the same form where they agree (``b < 0``).

Bounds for `least_slope`: times ``g``, the rise first grows and then falls, so that its least value on an interval is at one
of the ends; times a constant it only falls, as does the drop. The drop times ``g`` is ``2 x / (exp(x) / -b + 1)``
with ``x = rate g``: it grows up to ``x = 1 + W(z)``, where it is ``2 W(z)``, and then falls, with ``z = -b / e`` and W Lambert's
function, which is not below ``z / (1 + z)`` and, being concave, not above any of its tangents.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import inlined, jit
from . import operations as op
from ._decay_kernels import decay

TINY = 1e-285  # stands for a path of length 0, so that products with a pole at 0 stay numbers
POLE = 1e-290  # stands for 0 in a denominator: TINY / POLE is large, and products of poles are finite
INVERSE_E = math.exp(-1)
SMALLEST, LARGEST = 1e-290, 1e290  # a product beyond may have lost its digits
LARGEST_EXPONENT = 600.0  # its exponential is finite; beyond it the slow, safe way is taken

FloatArray = NDArray[np.float64]


class CategoricalForest(NamedTuple):
    """Messages of categorical columns, normalised so that ``sum_k q_k M_k = 1``."""

    height: FloatArray  # (slots,)
    m: FloatArray  # (states of all columns, slots)
    growth: FloatArray  # (columns, slots), exp(rate_d height), for `add_least_slopes`
    start: NDArray[np.intp]  # (columns + 1,)
    root_q: FloatArray  # (states of all columns,), sqrt(q)
    rate: FloatArray  # (columns,)
    common_rate: float  # NaN if columns have different ones


# pair = [heights, then b of each column, then room for SCRATCH numbers a column]
SCRATCH = 7


@op.PAIR_SIZE.supply(CategoricalForest)
def _(forest):
    return 1 + (1 + SCRATCH) * forest.rate.shape[0]


@op.LOAD_PAIR.supply(CategoricalForest)
def _(forest, i, j, pair):
    m, start = forest.m, forest.start
    pair[0] = forest.height[i] + forest.height[j]
    for d in range(forest.rate.shape[0]):
        agreement = 0.0
        for k in range(start[d], start[d + 1]):
            agreement += m[k, i] * m[k, j]
        pair[1 + d] = 1 - agreement


@jit
def _lambert_above(z):
    """Return a bound from above of Lambert's W: the lowest of four tangents, at 0, 1, e and 7."""
    return min(min(z, 0.2053 + 0.3619 * z), min(0.5 + 0.18395 * z, 0.9212 + 0.0863 * z))


@inlined
def row(pair, n_columns, k):
    """Return row k of the arrays that follow the first number, one number a column."""
    return pair[1 + k * n_columns : 1 + (k + 1) * n_columns]


@jit
def _sum_of_each_log(values):
    total = 0.0
    for value in values:
        total += math.log(value) if value > 0 else -math.inf
    return total


@jit
def sum_of_logs(values, folded):
    """Return the sum of many logarithms: products of eight values first, then of those while they are of a middling size."""
    n = len(values)
    half = (n + 1) // 2
    upper = values[half:]
    folded[half - 1] = values[half - 1]
    for d in range(n - half):
        folded[d] = values[d] * upper[d]
    n = half
    for _ in range(2):
        half = (n + 1) // 2
        upper = folded[half:n]
        for d in range(n - half):
            folded[d] *= upper[d]
        n = half
    total, product = 0.0, 1.0
    for d in range(n):
        if not SMALLEST < folded[d] < LARGEST:
            return _sum_of_each_log(values)
        if not SMALLEST < product * folded[d] < LARGEST:
            total += math.log(product)
            product = 1.0
        product *= folded[d]
    return total + math.log(product)


@jit
def decay_of(forest, g, kept, lost, scratch):
    """Put what columns keep, and lose, over a path of length g into entries for each."""
    if forest.common_rate > 0:
        x = -forest.common_rate * g
        kept[:], lost[:] = math.exp(x), -math.expm1(x)
    else:
        decay(forest.rate, g, kept, lost, scratch)


@op.LOG_Z.supply(CategoricalForest)
def _(forest, pair, h):
    n = forest.rate.shape[0]
    b, kept, lost = row(pair, n, 0), row(pair, n, 1), row(pair, n, 2)
    decay_of(forest, max(2 * h - pair[0], 0.0), kept, lost, row(pair, n, 3))
    for d in range(n):
        kept[d] = (1 - b[d]) * kept[d] + lost[d]  # 1 - b u: nothing cancels when two states differ on a short path
    return sum_of_logs(kept, row(pair, n, 3))


# Below, terms are computed in one loop, which is vectorised, and added up in another, which must not be reordered.


@op.SLOPES.supply(CategoricalForest)
def _(forest, pair, h):
    rate = forest.rate
    n = rate.shape[0]
    b, kept, lost, slope, falls = (
        row(pair, n, 0),
        row(pair, n, 1),
        row(pair, n, 2),
        row(pair, n, 3),
        row(pair, n, 4),
    )
    decay(rate, 2 * h - pair[0], kept, lost, slope)
    for d in range(n):
        over_z = 1 / max((1 - b[d]) * kept[d] + lost[d], POLE)
        slope[d] = 2 * rate[d] * b[d] * kept[d] * over_z
        falls[d] = 2 * rate[d] * slope[d] * over_z
    rise = drop = rise_falls = drop_falls = 0.0
    for d in range(n):
        rise += max(slope[d], 0.0)
        drop -= min(slope[d], 0.0)
        rise_falls += max(falls[d], 0.0)
        drop_falls -= min(falls[d], 0.0)
    return rise, drop, rise_falls, drop_falls


@op.LEAST_VARIANCE.supply(CategoricalForest)
def _(forest, i):
    return math.inf


@op.LEAST_SLOPE.supply(CategoricalForest)
def _(forest, pair, low, high, shift):
    rate = forest.rate
    n = rate.shape[0]
    b, least = row(pair, n, 0), row(pair, n, 1)
    kept_low, lost_low, kept_high, lost_high = row(pair, n, 2), row(pair, n, 3), row(pair, n, 4), row(pair, n, 5)
    g_low = max(2 * low - pair[0], TINY)
    g_high = max(2 * high - pair[0], TINY)
    whole = 1 / (g_high + shift)
    decay(rate, g_low, kept_low, lost_low, least)
    decay(rate, g_high, kept_high, lost_high, least)
    for d in range(n):
        left_low = max((1 - b[d]) * kept_low[d] + lost_low[d], POLE)
        left_high = max((1 - b[d]) * kept_high[d] + lost_high[d], POLE)
        common = 2 * rate[d] * b[d] / (left_low * left_high)
        at_low = kept_low[d] * left_high * common
        at_high = kept_high[d] * left_low * common
        rise = (min(g_low * at_low, g_high * at_high) + shift * at_high) * whole
        scaled = max(-b[d], 0.0) * INVERSE_E
        most = _lambert_above(scaled)
        peak = -2 * most if rate[d] * g_low < 1 + most else g_low * at_low
        peak = g_high * at_high if rate[d] * g_high * (1 + scaled) <= 1 + 2 * scaled else peak
        drop = max((peak + shift * at_low) * whole, at_low)
        least[d] = rise if b[d] > 0 else drop
    return np.sum(least)


@op.DROP_FALLS_RANGE.supply(CategoricalForest)
def _(forest, pair, low, high):
    # minus the derivative of a drop is 4 rate^2 y / (1 + y)^2 with y = -b u: largest, rate^2, where y = 1
    rate = forest.rate
    n = rate.shape[0]
    b, kept_low, kept_high, scratch = row(pair, n, 0), row(pair, n, 1), row(pair, n, 2), row(pair, n, 3)
    decay(rate, max(2 * low - pair[0], 0.0), kept_low, scratch, row(pair, n, 4))
    decay(rate, max(2 * high - pair[0], 0.0), kept_high, scratch, row(pair, n, 4))
    least = most = 0.0
    for d in range(n):
        y_low = max(-b[d], 0.0) * kept_low[d]
        y_high = max(-b[d], 0.0) * kept_high[d]
        at_low = 4 * rate[d] * rate[d] * y_low / ((1 + y_low) * (1 + y_low))
        at_high = 4 * rate[d] * rate[d] * y_high / ((1 + y_high) * (1 + y_high))
        least += min(at_low, at_high)
        most += rate[d] * rate[d] if y_high < 1 < y_low else max(at_low, at_high)
    return least, most


@op.HIGHEST.supply(CategoricalForest)
def _(forest, pair, c):
    disagreement = 0.0
    for d in range(forest.rate.shape[0]):
        disagreement += max(pair[1 + d], 0.0)
    return 0.5 * (2 * disagreement / c + pair[0])  # since rate b / (exp(rate g) - b) <= b / g


@op.ADD_LEAST_SLOPES.supply(CategoricalForest)
def _(forest, i, first, last, low, high, shifts, slopes):
    m, start, rate, growth, height = forest.m, forest.start, forest.rate, forest.growth, forest.height
    n_columns = rate.shape[0]
    n = last - first
    if np.max(rate) * high > LARGEST_EXPONENT:
        pair = np.empty(op.pair_size(forest))
        for j in range(first, last):
            op.load_pair(forest, i, j, pair)
            slopes[j - first] += op.least_slope(forest, pair, low, high, shifts[j - first])
        return
    # Loops run over slices from 0 on: indices that Numba knows to be non-negative are what LLVM can vectorise.
    g_low = np.empty(n)
    g_high = np.empty(n)
    whole = np.empty(n)
    longest = 0.0
    for k in range(n):
        heights = height[i] + height[first + k]
        g_low[k] = max(2 * low - heights, TINY)
        g_high[k] = max(2 * high - heights, TINY)
        whole[k] = 1 / (g_high[k] + shifts[k])
        longest = max(longest, g_high[k])
    b = np.empty(n)
    for d in range(n_columns):
        b[:] = 1.0
        for state in range(start[d], start[d + 1]):
            mi, others = m[state, i], m[state, first:last]
            for k in range(n):
                b[k] -= mi * others[k]
        grown = growth[d, first:last]
        speed = rate[d]
        low_factor = math.exp(-speed * (2 * low - height[i]))
        high_factor = math.exp(-speed * (2 * high - height[i]))
        # Slow columns, and all while the tree is young, are still short of the peak of every drop.
        before_peak = speed * longest <= 1
        for k in range(n):
            bu_low = b[k] * low_factor * grown[k]
            bu_high = b[k] * high_factor * grown[k]
            # one division for both: bu / (1 - bu) at the low and at the high end
            left_low = max(1 - bu_low, POLE)
            left_high = max(1 - bu_high, POLE)
            common = 2 * speed / (left_low * left_high)
            at_low = bu_low * left_high * common
            at_high = bu_high * left_low * common
            rise = (min(g_low[k] * at_low, g_high[k] * at_high) + shifts[k] * at_high) * whole[k]
            if before_peak:
                peak = g_high[k] * at_high
            else:
                scaled = max(-b[k], 0.0) * INVERSE_E
                most = _lambert_above(scaled)
                peak = -2 * most if speed * g_low[k] < 1 + most else g_low[k] * at_low
                peak = g_high[k] * at_high if speed * g_high[k] * (1 + scaled) <= 1 + 2 * scaled else peak
            drop = max((peak + shifts[k] * at_low) * whole[k], at_low)
            slopes[k] += rise if b[k] > 0 else drop


@op.MERGE.supply(CategoricalForest)
def _(forest, i, j, h, into):
    m, start, root_q = forest.m, forest.start, forest.root_q
    last_rate, growth = math.nan, 1.0
    keep_i = redraw_i = keep_j = redraw_j = 0.0
    for d in range(forest.rate.shape[0]):
        rate = forest.rate[d]
        if rate != last_rate:  # columns often share one
            last_rate = rate
            x_i = -rate * (h - forest.height[i])
            x_j = -rate * (h - forest.height[j])
            keep_i, redraw_i = math.exp(x_i), -math.expm1(x_i)
            keep_j, redraw_j = math.exp(x_j), -math.expm1(x_j)
            growth = math.exp(min(rate * h, LARGEST_EXPONENT))
        z = 0.0
        for k in range(start[d], start[d + 1]):
            joint = (redraw_i * root_q[k] + keep_i * m[k, i]) * (redraw_j * root_q[k] + keep_j * m[k, j])
            z += joint
            m[k, into] = joint / root_q[k]
        over_z = 1 / max(z, POLE)
        for k in range(start[d], start[d + 1]):
            # z is 0 where two states meet that no time parts: log Z is -inf there, and any message will do
            m[k, into] = m[k, into] * over_z if z > 0 else root_q[k]
        forest.growth[d, into] = growth


@op.MOVE.supply(CategoricalForest)
def _(forest, source, target):
    for k in range(forest.m.shape[0]):
        forest.m[k, target] = forest.m[k, source]
    for d in range(forest.rate.shape[0]):
        forest.growth[d, target] = forest.growth[d, source]


@op.NOISY.supply(CategoricalForest)
def _(forest):
    return False


@op.ROOT_LOG_DENSITY.supply(CategoricalForest)
def _(forest, i):
    return 0.0
