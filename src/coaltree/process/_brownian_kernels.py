"""Gaussian messages, in units in which every column diffuses with variance 1 per unit time.

`CompleteForest` has one variance for all columns of a lineage; `DiagonalForest` has one a column, infinite where
nothing below the lineage was observed. With ``s = v_i + v_j + g(h)``, the variance of the difference of two
messages, a column contributes ``log Z = -log(2 pi s) / 2 - d2 / (2 s)``: rise ``d2 / s^2``, drop ``1 / s``.

Times ``x = g + shift``, with ``shift <= w = v_i + v_j``, the rise ``d2 x / (g + w)^2`` first grows and then falls, so that
its least value on an interval is at one of the ends; the drop ``x / (g + w)`` only grows. That is all `least_slope` uses.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import operations as op

LOG_2PI = math.log(2 * math.pi)
TINY = 1e-300  # keeps a ratio of path lengths from being 0 / 0, far below any real one

FloatArray = NDArray[np.float64]


class CompleteForest(NamedTuple):
    """Messages of lineages without missing cells: mean ``y[:, slot]``, variance ``v[slot]`` in every column."""

    height: FloatArray  # (slots,)
    y: FloatArray  # (columns, slots)
    v: FloatArray  # (slots,)
    log_scale: float  # log |Lambda| / 2, the Jacobian of the units
    center: FloatArray  # (columns,), what was taken off every row
    root_variance: float
    noisy: bool


class DiagonalForest(NamedTuple):
    """Messages with a variance per column; an infinite variance marks a column not observed below."""

    height: FloatArray  # (slots,)
    y: FloatArray  # (columns, slots), 0 where flat
    v: FloatArray  # (columns, slots)
    least_v: FloatArray  # (slots,), the smallest of the column's variances
    log_scales: FloatArray  # (columns,), log Lambda_d / 2
    center: FloatArray  # (columns,), what was taken off every row
    root_variance: float
    noisy: bool


# -- complete tables: pair = [heights, squared distance, variances] ------------------------------------------------


@op.PAIR_SIZE.supply(CompleteForest)
def _(forest):
    return 3


@op.LOAD_PAIR.supply(CompleteForest)
def _(forest, i, j, pair):
    y = forest.y
    d2 = 0.0
    for d in range(y.shape[0]):
        gap = y[d, i] - y[d, j]
        d2 += gap * gap
    pair[0] = forest.height[i] + forest.height[j]
    pair[1] = d2
    pair[2] = forest.v[i] + forest.v[j]


@op.LOG_Z.supply(CompleteForest)
def _(forest, pair, h):
    s = pair[2] + max(2 * h - pair[0], 0.0)
    return -0.5 * forest.y.shape[0] * (LOG_2PI + math.log(s)) - forest.log_scale - pair[1] / (2 * s)


@op.SLOPES.supply(CompleteForest)
def _(forest, pair, h):
    s = pair[2] + max(2 * h - pair[0], 0.0)
    rise = pair[1] / (s * s)
    drop = forest.y.shape[0] / s
    return rise, drop, 4 * rise / s, 2 * drop / s


@op.LEAST_VARIANCE.supply(CompleteForest)
def _(forest, i):
    return forest.v[i]


@op.LEAST_SLOPE.supply(CompleteForest)
def _(forest, pair, low, high, shift):
    g_low = max(2 * low - pair[0], 0.0)
    g_high = max(2 * high - pair[0], 0.0)
    r_low = 1 / (pair[2] + g_low)
    r_high = 1 / (pair[2] + g_high)
    ratio = max(g_low + shift, TINY) / max(g_high + shift, TINY)
    return pair[1] * min(ratio * r_low * r_low, r_high * r_high) - forest.y.shape[0] * r_high


@op.DROP_FALLS_RANGE.supply(CompleteForest)
def _(forest, pair, low, high):
    r_low = 1 / (pair[2] + max(2 * low - pair[0], 0.0))
    r_high = 1 / (pair[2] + max(2 * high - pair[0], 0.0))
    return 2 * forest.y.shape[0] * r_high * r_high, 2 * forest.y.shape[0] * r_low * r_low


@op.HIGHEST.supply(CompleteForest)
def _(forest, pair, c):
    return 0.5 * (math.sqrt(pair[1] / c) - pair[2] + pair[0])


@op.ADD_LEAST_SLOPES.supply(CompleteForest)
def _(forest, i, first, last, low, high, shifts, slopes):
    # Loops run over slices from 0 on: indices that Numba knows to be non-negative are what LLVM can vectorise.
    n = last - first
    n_columns = forest.y.shape[0]
    d2 = np.zeros(n)
    for d in range(n_columns):
        yi, others = forest.y[d, i], forest.y[d, first:last]
        for k in range(n):
            gap = others[k] - yi
            d2[k] += gap * gap
    v, height = forest.v[first:last], forest.height[first:last]
    for k in range(n):
        w = forest.v[i] + v[k]
        g_low = max(2 * low - forest.height[i] - height[k], 0.0)
        g_high = max(2 * high - forest.height[i] - height[k], 0.0)
        r_low = 1 / (w + g_low)
        r_high = 1 / (w + g_high)
        ratio = max(g_low + shifts[k], TINY) / max(g_high + shifts[k], TINY)
        slopes[k] += d2[k] * min(ratio * r_low * r_low, r_high * r_high) - n_columns * r_high


@op.MERGE.supply(CompleteForest)
def _(forest, i, j, h, into):
    y = forest.y
    wi = forest.v[i] + (h - forest.height[i])
    wj = forest.v[j] + (h - forest.height[j])
    s = wi + wj
    forest.v[into] = wi * wj / s
    for d in range(y.shape[0]):
        y[d, into] = (wj * y[d, i] + wi * y[d, j]) / s


@op.MOVE.supply(CompleteForest)
def _(forest, source, target):
    forest.v[target] = forest.v[source]
    for d in range(forest.y.shape[0]):
        forest.y[d, target] = forest.y[d, source]


@op.NOISY.supply(CompleteForest)
def _(forest):
    return forest.noisy


@op.ROOT_LOG_DENSITY.supply(CompleteForest)
def _(forest, i):
    variance = forest.v[i] + forest.root_variance
    d2 = 0.0
    for d in range(forest.y.shape[0]):
        d2 += forest.y[d, i] * forest.y[d, i]
    return -0.5 * forest.y.shape[0] * (LOG_2PI + math.log(variance)) - forest.log_scale - d2 / (2 * variance)


# place = [turn, two heights, three variances, then products of the differences of two messages to the third one's mean]


@op.PLACE_SIZE.supply(CompleteForest)
def _(forest):
    return 9


@op.LOAD_PLACE.supply(CompleteForest)
def _(forest, below, beyond, turn, third, scratch, place):
    y = forest.y
    place[0], place[1], place[2] = turn, forest.height[below], forest.height[third]
    place[3], place[4], place[5] = forest.v[below], forest.v[beyond], forest.v[third]
    below_2 = both = beyond_2 = 0.0
    for d in range(y.shape[0]):
        a, b = y[d, below] - y[d, third], y[d, beyond] - y[d, third]
        below_2 += a * a
        both += a * b
        beyond_2 += b * b
    place[6], place[7], place[8] = below_2, both, beyond_2


@op.LOG_Z_AT.supply(CompleteForest)
def _(forest, place, h):
    w_below, w_beyond = place[3] + (h - place[1]), place[4] + (place[0] - h)
    share = w_beyond / (w_below + w_beyond)  # of what lies below in the mean at the point
    other = w_below / (w_below + w_beyond)
    d2 = share * share * place[6] + 2 * share * other * place[7] + other * other * place[8]
    s = share * w_below + place[5] + max(h - place[2], 0.0)
    return -0.5 * forest.y.shape[0] * (LOG_2PI + math.log(s)) - forest.log_scale - max(d2, 0.0) / (2 * s)


# -- tables with missing cells: pair = [heights, number of columns that both have, sum of their log scales,
#    then squared difference and variances of each such column] ---------------------------------------------------


@op.PAIR_SIZE.supply(DiagonalForest)
def _(forest):
    return 3 + 2 * forest.y.shape[0]


@op.LOAD_PAIR.supply(DiagonalForest)
def _(forest, i, j, pair):
    y, v = forest.y, forest.v
    count = 0
    log_scale = 0.0
    for d in range(y.shape[0]):
        w = v[d, i] + v[d, j]
        if w < math.inf:
            gap = y[d, i] - y[d, j]
            pair[3 + 2 * count] = gap * gap
            pair[4 + 2 * count] = w
            log_scale += forest.log_scales[d]
            count += 1
    pair[0] = forest.height[i] + forest.height[j]
    pair[1] = count
    pair[2] = log_scale


@op.LOG_Z.supply(DiagonalForest)
def _(forest, pair, h):
    g = max(2 * h - pair[0], 0.0)
    total = -pair[2]
    for k in range(int(pair[1])):
        s = pair[4 + 2 * k] + g
        total -= 0.5 * (LOG_2PI + math.log(s) + pair[3 + 2 * k] / s)
    return total


@op.SLOPES.supply(DiagonalForest)
def _(forest, pair, h):
    g = max(2 * h - pair[0], 0.0)
    rise = drop = rise_falls = drop_falls = 0.0
    for k in range(int(pair[1])):
        r = 1 / (pair[4 + 2 * k] + g)
        term = pair[3 + 2 * k] * r * r
        rise += term
        rise_falls += 4 * term * r
        drop += r
        drop_falls += 2 * r * r
    return rise, drop, rise_falls, drop_falls


@op.LEAST_VARIANCE.supply(DiagonalForest)
def _(forest, i):
    return forest.least_v[i]


@op.LEAST_SLOPE.supply(DiagonalForest)
def _(forest, pair, low, high, shift):
    g_low = max(2 * low - pair[0], 0.0)
    g_high = max(2 * high - pair[0], 0.0)
    ratio = max(g_low + shift, TINY) / max(g_high + shift, TINY)
    total = 0.0
    for k in range(int(pair[1])):
        r_low = 1 / (pair[4 + 2 * k] + g_low)
        r_high = 1 / (pair[4 + 2 * k] + g_high)
        total += pair[3 + 2 * k] * min(ratio * r_low * r_low, r_high * r_high) - r_high
    return total


@op.DROP_FALLS_RANGE.supply(DiagonalForest)
def _(forest, pair, low, high):
    least = most = 0.0
    for k in range(int(pair[1])):
        r_low = 1 / (pair[4 + 2 * k] + max(2 * low - pair[0], 0.0))
        r_high = 1 / (pair[4 + 2 * k] + max(2 * high - pair[0], 0.0))
        least += 2 * r_high * r_high
        most += 2 * r_low * r_low
    return least, most


@op.HIGHEST.supply(DiagonalForest)
def _(forest, pair, c):
    d2 = 0.0
    least = math.inf
    for k in range(int(pair[1])):
        d2 += pair[3 + 2 * k]
        least = min(least, pair[4 + 2 * k])
    if least == math.inf:
        return 0.0
    return 0.5 * (math.sqrt(d2 / c) - least + pair[0])


@op.ADD_LEAST_SLOPES.supply(DiagonalForest)
def _(forest, i, first, last, low, high, shifts, slopes):
    n = last - first
    height = forest.height[first:last]
    g_low = np.empty(n)
    g_high = np.empty(n)
    ratio = np.empty(n)
    for k in range(n):
        g_low[k] = max(2 * low - forest.height[i] - height[k], 0.0)
        g_high[k] = max(2 * high - forest.height[i] - height[k], 0.0)
        ratio[k] = max(g_low[k] + shifts[k], TINY) / max(g_high[k] + shifts[k], TINY)
    for d in range(forest.y.shape[0]):
        vi, yi = forest.v[d, i], forest.y[d, i]
        if vi == math.inf:
            continue
        y, v = forest.y[d, first:last], forest.v[d, first:last]
        for k in range(n):
            gap = y[k] - yi
            w = v[k] + vi  # infinite where the other is flat: both reciprocals are then 0
            r_low = 1 / (w + g_low[k])
            r_high = 1 / (w + g_high[k])
            slopes[k] += gap * gap * min(ratio[k] * r_low * r_low, r_high * r_high) - r_high


@op.MERGE.supply(DiagonalForest)
def _(forest, i, j, h, into):
    y, v = forest.y, forest.v
    climb_i = h - forest.height[i]
    climb_j = h - forest.height[j]
    least = math.inf
    for d in range(y.shape[0]):
        wi = v[d, i] + climb_i
        wj = v[d, j] + climb_j
        if wi == math.inf or wj == math.inf:  # one side says nothing: the other passes through
            y[d, into] = y[d, i] + y[d, j]  # a flat side holds 0
            v[d, into] = min(wi, wj)
        else:
            s = wi + wj
            y[d, into] = (wj * y[d, i] + wi * y[d, j]) / s
            v[d, into] = wi * wj / s
        least = min(least, v[d, into])
    forest.least_v[into] = least


@op.MOVE.supply(DiagonalForest)
def _(forest, source, target):
    forest.least_v[target] = forest.least_v[source]
    for d in range(forest.y.shape[0]):
        forest.y[d, target] = forest.y[d, source]
        forest.v[d, target] = forest.v[d, source]


@op.NOISY.supply(DiagonalForest)
def _(forest):
    return forest.noisy


@op.ROOT_LOG_DENSITY.supply(DiagonalForest)
def _(forest, i):
    total = 0.0
    for d in range(forest.y.shape[0]):
        if forest.v[d, i] < math.inf:
            variance = forest.v[d, i] + forest.root_variance
            d2 = forest.y[d, i] * forest.y[d, i]
            total -= 0.5 * (LOG_2PI + math.log(variance) + d2 / variance) + forest.log_scales[d]
    return total
