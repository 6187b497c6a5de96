"""Messages over the states of categorical columns.

Column ``d`` owns the rows ``start[d] : start[d + 1]`` of ``m``, which hold ``sqrt(q_k) M_k``: then the agreement
``S = sum_k q_k M_k M'_k`` of two messages is a plain inner product, exactly 0 for two leaves in different states.
With ``b = 1 - S`` and ``u = exp(-rate g(h))`` a column contributes ``log Z = log(1 - b u)``: a rise ``2 rate b u / (1 - b u)``
where the two disagree (``0 < b <= 1``), a drop of the same form where they agree (``b < 0``).

Bounds for `least_slope`: times ``g``, the rise first grows and then falls, so that its least value on an interval is at one
of the ends; times a constant it only falls, as does the drop. The drop times ``g`` is ``2 x / (exp(x) / -b + 1)``
with ``x = rate g``: it grows up to ``x = 1 + W(z)``, where it is ``2 W(z)``, and then falls, with ``z = -b / e`` and W Lambert's
function, which lies between ``z / (1 + z)`` and ``log(1 + z) <= z (6 + z) / (6 + 4 z)``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import jit
from . import operations as op

TINY = 1e-300
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


# pair = [heights, then b of each column]


@op.PAIR_SIZE.supply(CategoricalForest)
def _(forest):
    return 1 + forest.rate.shape[0]


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
def _complement(b, x, u):
    """Return ``1 - b u`` with ``u = exp(x)``, without cancellation where two states differ and the path is short."""
    return 1 - b * u if x < -0.1 else (1 - b) * u - math.expm1(x)


@op.LOG_Z.supply(CategoricalForest)
def _(forest, pair, h):
    g = 2 * h - pair[0]
    total = 0.0
    for d in range(forest.rate.shape[0]):
        x = -forest.rate[d] * g
        z = _complement(pair[1 + d], x, math.exp(x))
        total += math.log(z) if z > 0 else -math.inf
    return total


@op.SLOPES.supply(CategoricalForest)
def _(forest, pair, h):
    g = 2 * h - pair[0]
    rise = drop = rise_falls = drop_falls = 0.0
    for d in range(forest.rate.shape[0]):
        b = pair[1 + d]
        if b == 0:
            continue
        rate = forest.rate[d]
        x = -rate * g
        u = math.exp(x)
        z = _complement(b, x, u)
        slope = 2 * rate * b * u / z if z > 0 else math.inf
        falls = 2 * rate * slope / z if z > 0 else math.inf
        if b > 0:
            rise += slope
            rise_falls += falls
        else:
            drop -= slope
            drop_falls -= falls
    return rise, drop, rise_falls, drop_falls


@op.LEAST_VARIANCE.supply(CategoricalForest)
def _(forest, i):
    return math.inf


@op.LEAST_SLOPE.supply(CategoricalForest)
def _(forest, pair, low, high, shift):
    g_low = max(2 * low - pair[0], TINY)
    g_high = max(2 * high - pair[0], TINY)
    whole = g_high + shift
    total = 0.0
    for d in range(forest.rate.shape[0]):
        b = pair[1 + d]
        if b == 0:
            continue
        rate = forest.rate[d]
        x_low = -rate * g_low
        u = math.exp(x_low)
        z = _complement(b, x_low, u)
        at_low = 2 * rate * b * u / z if z > 0 else math.inf
        x_high = -rate * g_high
        u = math.exp(x_high)
        z = _complement(b, x_high, u)
        at_high = 2 * rate * b * u / z if z > 0 else math.inf
        if b > 0:
            total += min(g_low * at_low, g_high * at_high) / whole + shift * at_high / whole
        else:
            scaled = -b / math.e
            most = scaled * (6 + scaled) / (6 + 4 * scaled)
            if -x_high <= 1 + scaled / (1 + scaled):
                peak = g_high * at_high
            elif -x_low >= 1 + most:
                peak = g_low * at_low
            else:
                peak = -2 * most
            total += max((peak + shift * at_low) / whole, at_low)
    return total


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
        pair = np.empty(1 + n_columns)
        for j in range(first, last):
            op.load_pair(forest, i, j, pair)
            slopes[j - first] += op.least_slope(forest, pair, low, high, shifts[j - first])
        return
    g_low = np.empty(n)
    g_high = np.empty(n)
    whole = np.empty(n)
    for j in range(first, last):
        k = j - first
        g_low[k] = max(2 * low - height[i] - height[j], TINY)
        g_high[k] = max(2 * high - height[i] - height[j], TINY)
        whole[k] = 1 / (g_high[k] + shifts[k])
    b = np.empty(n)
    for d in range(n_columns):
        b[:] = 1.0
        for k in range(start[d], start[d + 1]):
            mi = m[k, i]
            for j in range(first, last):
                b[j - first] -= mi * m[k, j]
        speed = rate[d]
        low_factor = math.exp(-speed * (2 * low - height[i]))
        high_factor = math.exp(-speed * (2 * high - height[i]))
        for j in range(first, last):
            k = j - first
            bu_low = b[k] * low_factor * growth[d, j]
            bu_high = b[k] * high_factor * growth[d, j]
            at_low = 2 * speed * bu_low / (1 - bu_low)
            at_high = 2 * speed * bu_high / (1 - bu_high)
            rise = (min(g_low[k] * at_low, g_high[k] * at_high) + shifts[k] * at_high) * whole[k]
            scaled = max(-b[k], 0.0) / math.e
            most = scaled * (6 + scaled) / (6 + 4 * scaled)
            peak = -2 * most if speed * g_low[k] < 1 + most else g_low[k] * at_low
            peak = g_high[k] * at_high if speed * g_high[k] * (1 + scaled) <= 1 + 2 * scaled else peak
            drop = max((peak + shifts[k] * at_low) * whole[k], at_low)
            slopes[k] += rise if b[k] > 0 else drop


@op.MERGE.supply(CategoricalForest)
def _(forest, i, j, h, into):
    m, start, root_q = forest.m, forest.start, forest.root_q
    for d in range(forest.rate.shape[0]):
        rate = forest.rate[d]
        x_i = -rate * (h - forest.height[i])
        x_j = -rate * (h - forest.height[j])
        keep_i, redraw_i = math.exp(x_i), -math.expm1(x_i)
        keep_j, redraw_j = math.exp(x_j), -math.expm1(x_j)
        z = 0.0
        for k in range(start[d], start[d + 1]):
            joint = (redraw_i * root_q[k] + keep_i * m[k, i]) * (redraw_j * root_q[k] + keep_j * m[k, j])
            z += joint
            m[k, into] = joint / root_q[k]
        for k in range(start[d], start[d + 1]):
            # z is 0 where two states meet that no time parts: log Z is -inf there, and any message will do
            m[k, into] = m[k, into] / z if z > 0 else root_q[k]
        forest.growth[d, into] = math.exp(min(rate * h, LARGEST_EXPONENT))


@op.MOVE.supply(CategoricalForest)
def _(forest, source, target):
    for k in range(forest.m.shape[0]):
        forest.m[k, target] = forest.m[k, source]
    for d in range(forest.rate.shape[0]):
        forest.growth[d, target] = forest.growth[d, source]


@op.ROOT_LOG_DENSITY.supply(CategoricalForest)
def _(forest, i):
    return 0.0
