"""Messages of a stationary Gaussian process, in units in which its equilibrium is N(0, 1) in every column.

What lies below a lineage says of the state ``z`` at its top what one number would: ``a``, drawn from ``N(f z, 1 - f^2)``. A
message is that number and ``l = 1 - f``, which keeps its digits when f is close to 1; a flat message has ``a = 0`` and ``l = 1``.
A climb by ``t`` turns f into ``f exp(-rate t)``. Two messages have the correlation ``rho = f_i f_j exp(-rate g(h))``, and with
``d2 = (a_i - a_j)^2`` and ``m = a_i a_j`` a column contributes the log likelihood ratio

    log Z = - log(1 - rho^2) / 2 - d2 rho^2 / (1 - rho^2) / 2 + m rho / (1 + rho).

Its slope is ``2 rate`` times ``d2 rho^2 / (1 - rho^2)^2 - rho^2 / (1 - rho^2) - m rho / (1 + rho)^2``. Where ``m < 0`` the
last term counts as a rise of ``-m rho``, which is convex, and a drop for the rest.

With ``s`` for the path, ``rho = exp(-rate s)``, and ``x = g + shift <= s``: the terms ``x rho^2 / (1 - rho^2)^2`` and
``x rho / (1 + rho)^2`` first grow and then fall with h, so that their least values on an interval are at its ends;
``x / (1 - rho^2)`` only grows, ``rho`` and ``rho / (1 + rho)^2`` only fall. That is all `least_slope` uses.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import inlined, jit
from . import operations as op
from ._decay_kernels import decay

TINY = 1e-300  # keeps a ratio of path lengths from being 0 / 0, far below any real one
STEEPEST_RHO, STEEPEST_FALL = 2 - math.sqrt(3), 1 / (6 * math.sqrt(3))  # where rho / (1 + rho)^2 falls fastest with h

FloatArray = NDArray[np.float64]


class StationaryForest(NamedTuple):
    """Messages of lineages without missing cells: `lost` is the same in every column."""

    height: FloatArray  # (slots,)
    a: FloatArray  # (columns, slots)
    lost: FloatArray  # (slots,), 1 - f
    rate: float
    noisy: bool


class StationaryDiagonalForest(NamedTuple):
    """Messages with `lost` per column, 1 where nothing below was observed."""

    height: FloatArray  # (slots,)
    a: FloatArray  # (columns, slots), 0 where flat
    lost: FloatArray  # (columns, slots)
    least_lost: FloatArray  # (slots,), the smallest over the columns
    rate: float
    noisy: bool


# Terms of one column, or of many that share their rho, from rho and gap = 1 - rho.


@inlined
def _log_ratio(columns, d2, m, rho, gap):
    one = gap * (1 + rho)
    return -0.5 * (columns * math.log(one) + d2 * rho * rho / one) + m * rho / (1 + rho)


@inlined
def _least_slope(columns, d2, m, ratio, rho_low, gap_low, rho_high, gap_high):
    at_low = rho_low / (gap_low * (1 + rho_low))
    at_high = rho_high / (gap_high * (1 + rho_high))
    steep_low = rho_low / ((1 + rho_low) * (1 + rho_low))
    steep_high = rho_high / ((1 + rho_high) * (1 + rho_high))
    agree = m * steep_low if m > 0 else m * min(ratio * steep_low, steep_high)
    return (
        d2 * min(ratio * at_low * at_low, at_high * at_high)
        - columns * rho_low * rho_low / (gap_high * (1 + rho_high))
        - agree
    )


@inlined
def _slopes(columns, d2, m, rho, gap):
    one = gap * (1 + rho)
    ratio = rho * rho / one
    fall = rho / ((1 + rho) * (1 + rho))
    steep = fall * gap / (1 + rho)
    apart, together = max(-m, 0.0), max(m, 0.0)
    rise = d2 * ratio / one + apart * rho
    drop = columns * ratio + together * fall + apart * (rho - fall)
    rise_falls = 2 * d2 * ratio * (1 + rho * rho) / (one * one) + apart * rho
    drop_falls = 2 * columns * ratio / one + together * steep + apart * (rho - steep)
    return rise, drop, rise_falls, drop_falls


@inlined
def _drop_falls_range(columns, m, rho_low, gap_low, rho_high, gap_high):
    at_low = rho_low / (gap_low * (1 + rho_low))
    at_high = rho_high / (gap_high * (1 + rho_high))
    steep_low = rho_low * gap_low / (1 + rho_low) ** 3
    steep_high = rho_high * gap_high / (1 + rho_high) ** 3
    least, most = 2 * columns * at_high * at_high, 2 * columns * at_low * at_low
    if m > 0:
        least += m * min(steep_low, steep_high)
        most += m * (STEEPEST_FALL if rho_high < STEEPEST_RHO < rho_low else max(steep_low, steep_high))
    else:
        least -= m * (rho_high - steep_high)
        most -= m * (rho_low - steep_low)
    return least, most


@jit
def _highest(rate, d2, apart, c):
    """Return a path length beyond which ``2 rate (d2 rho^2 / (1 - rho^2)^2 + apart rho)`` is below c."""
    share = 0.5 * c if apart > 0 else c  # for each of the two terms
    path = math.asinh(math.sqrt(0.5 * rate * d2 / share)) / rate
    if apart > 0:
        path = max(path, math.log(max(2 * rate * apart / share, 1.0)) / rate)
    return path


@inlined
def _path_of(rate, lost):
    """Return the length of path that loses as much as a message has lost."""
    return -math.log1p(-lost) / rate if lost < 1 else math.inf


# -- complete tables: pair = [heights, d2, m, f_i f_j, 1 - f_i f_j] ------------------------------------------------


@op.PAIR_SIZE.supply(StationaryForest)
def _(forest):
    return 5


@op.LOAD_PAIR.supply(StationaryForest)
def _(forest, i, j, pair):
    a = forest.a
    d2 = m = 0.0
    for d in range(a.shape[0]):
        gap = a[d, i] - a[d, j]
        d2 += gap * gap
        m += a[d, i] * a[d, j]
    pair[0] = forest.height[i] + forest.height[j]
    pair[1], pair[2] = d2, m
    pair[3] = (1 - forest.lost[i]) * (1 - forest.lost[j])
    pair[4] = forest.lost[i] + (1 - forest.lost[i]) * forest.lost[j]


@inlined
def _rho_and_gap(rate, f, lost, g):
    return f * math.exp(-rate * g), lost - f * math.expm1(-rate * g)


@op.LOG_Z.supply(StationaryForest)
def _(forest, pair, h):
    rho, gap = _rho_and_gap(forest.rate, pair[3], pair[4], max(2 * h - pair[0], 0.0))
    return _log_ratio(forest.a.shape[0], pair[1], pair[2], rho, gap)


@op.SLOPES.supply(StationaryForest)
def _(forest, pair, h):
    rho, gap = _rho_and_gap(forest.rate, pair[3], pair[4], max(2 * h - pair[0], 0.0))
    rise, drop, rise_falls, drop_falls = _slopes(forest.a.shape[0], pair[1], pair[2], rho, gap)
    twice = 2 * forest.rate
    return twice * rise, twice * drop, twice * twice * rise_falls, twice * twice * drop_falls


@op.LEAST_VARIANCE.supply(StationaryForest)
def _(forest, i):
    return _path_of(forest.rate, forest.lost[i])


@op.LEAST_SLOPE.supply(StationaryForest)
def _(forest, pair, low, high, shift):
    g_low = max(2 * low - pair[0], 0.0)
    g_high = max(2 * high - pair[0], 0.0)
    ratio = max(g_low + shift, TINY) / max(g_high + shift, TINY)
    rho_low, gap_low = _rho_and_gap(forest.rate, pair[3], pair[4], g_low)
    rho_high, gap_high = _rho_and_gap(forest.rate, pair[3], pair[4], g_high)
    least = _least_slope(forest.a.shape[0], pair[1], pair[2], ratio, rho_low, gap_low, rho_high, gap_high)
    return 2 * forest.rate * least


@op.DROP_FALLS_RANGE.supply(StationaryForest)
def _(forest, pair, low, high):
    rho_low, gap_low = _rho_and_gap(forest.rate, pair[3], pair[4], max(2 * low - pair[0], 0.0))
    rho_high, gap_high = _rho_and_gap(forest.rate, pair[3], pair[4], max(2 * high - pair[0], 0.0))
    least, most = _drop_falls_range(forest.a.shape[0], pair[2], rho_low, gap_low, rho_high, gap_high)
    return 4 * forest.rate * forest.rate * least, 4 * forest.rate * forest.rate * most


@op.HIGHEST.supply(StationaryForest)
def _(forest, pair, c):
    path = _highest(forest.rate, pair[1], max(-pair[2], 0.0), c) - _path_of(forest.rate, pair[4])
    return 0.5 * (max(path, 0.0) + pair[0])


@op.ADD_LEAST_SLOPES.supply(StationaryForest)
def _(forest, i, first, last, low, high, shifts, slopes):
    # Loops run over slices from 0 on: indices that Numba knows to be non-negative are what LLVM can vectorise.
    n = last - first
    n_columns = forest.a.shape[0]
    rate = forest.rate
    d2, m = np.zeros(n), np.zeros(n)
    for d in range(n_columns):
        ai, others = forest.a[d, i], forest.a[d, first:last]
        for k in range(n):
            gap = others[k] - ai
            d2[k] += gap * gap
            m[k] += others[k] * ai
    lost, height = forest.lost[first:last], forest.height[first:last]
    ratio, kept_low, lost_low, kept_high, lost_high = _decays(rate, forest.height[i], height, low, high, shifts)
    f_i, lost_i = 1 - forest.lost[i], forest.lost[i]
    for k in range(n):
        f, lost_both = f_i * (1 - lost[k]), lost_i + f_i * lost[k]
        rho_low, gap_low = f * kept_low[k], lost_both + f * lost_low[k]
        rho_high, gap_high = f * kept_high[k], lost_both + f * lost_high[k]
        slopes[k] += 2 * rate * _least_slope(n_columns, d2[k], m[k], ratio[k], rho_low, gap_low, rho_high, gap_high)


@jit
def _decays(rate, height_i, height, low, high, shifts):
    """Return for each slot the ratio of path lengths, and what the low and the high path keep and lose."""
    n = len(height)
    ratio, g_low, g_high = np.empty(n), np.empty(n), np.empty(n)
    for k in range(n):
        g_low[k] = max(2 * low - height_i - height[k], 0.0)
        g_high[k] = max(2 * high - height_i - height[k], 0.0)
        ratio[k] = max(g_low[k] + shifts[k], TINY) / max(g_high[k] + shifts[k], TINY)
    kept_low, lost_low, kept_high, lost_high = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    scratch = np.empty(n)
    decay(g_low, rate, kept_low, lost_low, scratch)
    decay(g_high, rate, kept_high, lost_high, scratch)
    return ratio, kept_low, lost_low, kept_high, lost_high


@inlined
def _weights(lost, kept, gone):
    """Return the precision of a message at the top of a climb, and the weight of its ``a``."""
    f = (1 - lost) * kept
    weight = f / ((lost + (1 - lost) * gone) * (1 + f))
    return f * weight, weight


@inlined
def _lost_of(precision):
    f = math.sqrt(precision / (1 + precision))
    return 1 / ((1 + precision) * (1 + f))


@op.MERGE.supply(StationaryForest)
def _(forest, i, j, h, into):
    a, lost, rate = forest.a, forest.lost, forest.rate
    x_i, x_j = -rate * (h - forest.height[i]), -rate * (h - forest.height[j])
    precision_i, weight_i = _weights(lost[i], math.exp(x_i), -math.expm1(x_i))
    precision_j, weight_j = _weights(lost[j], math.exp(x_j), -math.expm1(x_j))
    precision = precision_i + precision_j
    scale = 1 / math.sqrt(precision * (1 + precision)) if precision > 0 else 0.0
    for d in range(a.shape[0]):
        a[d, into] = (weight_i * a[d, i] + weight_j * a[d, j]) * scale
    lost[into] = _lost_of(precision)


# place = [turn, two heights, three `lost`, then products of the differences of two messages' ``a`` to the third one's, and of it]


@op.PLACE_SIZE.supply(StationaryForest)
def _(forest):
    return 12


@op.LOAD_PLACE.supply(StationaryForest)
def _(forest, below, beyond, turn, third, scratch, place):
    a, lost = forest.a, forest.lost
    place[0], place[1], place[2] = turn, forest.height[below], forest.height[third]
    place[3], place[4], place[5] = lost[below], lost[beyond], lost[third]
    place[6:12] = 0.0
    for d in range(a.shape[0]):
        x, y, z = a[d, below] - a[d, third], a[d, beyond] - a[d, third], a[d, third]
        place[6] += x * x
        place[7] += x * y
        place[8] += y * y
        place[9] += x * z
        place[10] += y * z
        place[11] += z * z


@op.LOG_Z_AT.supply(StationaryForest)
def _(forest, place, h):
    x_below, x_beyond = -forest.rate * (h - place[1]), -forest.rate * (place[0] - h)
    precision_below, weight_below = _weights(place[3], math.exp(x_below), -math.expm1(x_below))
    precision_beyond, weight_beyond = _weights(place[4], math.exp(x_beyond), -math.expm1(x_beyond))
    precision = precision_below + precision_beyond
    scale = 1 / math.sqrt(precision * (1 + precision)) if precision > 0 else 0.0
    below, beyond = weight_below * scale, weight_beyond * scale
    more = below + beyond - 1  # the mean at the point is the third one's, so often more, and shares of the differences
    d2 = below * below * place[6] + 2 * below * beyond * place[7] + beyond * beyond * place[8]
    d2 += more * (2 * (below * place[9] + beyond * place[10]) + more * place[11])
    m = below * place[9] + beyond * place[10] + (1 + more) * place[11]
    lost = _lost_of(precision)
    f, both = (1 - lost) * (1 - place[5]), lost + (1 - lost) * place[5]
    rho, gap = _rho_and_gap(forest.rate, f, both, max(h - place[2], 0.0))
    return _log_ratio(forest.a.shape[0], max(d2, 0.0), m, rho, gap)


@op.MOVE.supply(StationaryForest)
def _(forest, source, target):
    forest.lost[target] = forest.lost[source]
    for d in range(forest.a.shape[0]):
        forest.a[d, target] = forest.a[d, source]


@op.NOISY.supply(StationaryForest)
def _(forest):
    return forest.noisy


@op.ROOT_LOG_DENSITY.supply(StationaryForest)
def _(forest, i):
    return 0.0


# -- tables with missing cells: pair = [heights, number of columns that both have,
#    then d2, m, f_i f_j and 1 - f_i f_j of each such column] -------------------------------------------------------


@op.PAIR_SIZE.supply(StationaryDiagonalForest)
def _(forest):
    return 2 + 4 * forest.a.shape[0]


@op.LOAD_PAIR.supply(StationaryDiagonalForest)
def _(forest, i, j, pair):
    a, lost = forest.a, forest.lost
    at = 2
    for d in range(a.shape[0]):
        f = (1 - lost[d, i]) * (1 - lost[d, j])
        if f > 0:
            gap = a[d, i] - a[d, j]
            pair[at], pair[at + 1], pair[at + 2] = gap * gap, a[d, i] * a[d, j], f
            pair[at + 3] = lost[d, i] + (1 - lost[d, i]) * lost[d, j]
            at += 4
    pair[0] = forest.height[i] + forest.height[j]
    pair[1] = (at - 2) // 4


@op.LOG_Z.supply(StationaryDiagonalForest)
def _(forest, pair, h):
    g = max(2 * h - pair[0], 0.0)
    kept, lost = math.exp(-forest.rate * g), -math.expm1(-forest.rate * g)
    total = 0.0
    for k in range(int(pair[1])):
        d2, m, f, lost_both = pair[2 + 4 * k], pair[3 + 4 * k], pair[4 + 4 * k], pair[5 + 4 * k]
        total += _log_ratio(1, d2, m, f * kept, lost_both + f * lost)
    return total


@op.SLOPES.supply(StationaryDiagonalForest)
def _(forest, pair, h):
    g = max(2 * h - pair[0], 0.0)
    kept, lost = math.exp(-forest.rate * g), -math.expm1(-forest.rate * g)
    rise = drop = rise_falls = drop_falls = 0.0
    for k in range(int(pair[1])):
        d2, m, f, lost_both = pair[2 + 4 * k], pair[3 + 4 * k], pair[4 + 4 * k], pair[5 + 4 * k]
        more = _slopes(1, d2, m, f * kept, lost_both + f * lost)
        rise += more[0]
        drop += more[1]
        rise_falls += more[2]
        drop_falls += more[3]
    twice = 2 * forest.rate
    return twice * rise, twice * drop, twice * twice * rise_falls, twice * twice * drop_falls


@op.LEAST_VARIANCE.supply(StationaryDiagonalForest)
def _(forest, i):
    return _path_of(forest.rate, forest.least_lost[i])


@op.LEAST_SLOPE.supply(StationaryDiagonalForest)
def _(forest, pair, low, high, shift):
    g_low = max(2 * low - pair[0], 0.0)
    g_high = max(2 * high - pair[0], 0.0)
    ratio = max(g_low + shift, TINY) / max(g_high + shift, TINY)
    kept_low, lost_low = math.exp(-forest.rate * g_low), -math.expm1(-forest.rate * g_low)
    kept_high, lost_high = math.exp(-forest.rate * g_high), -math.expm1(-forest.rate * g_high)
    total = 0.0
    for k in range(int(pair[1])):
        d2, m, f, lost_both = pair[2 + 4 * k], pair[3 + 4 * k], pair[4 + 4 * k], pair[5 + 4 * k]
        rho_low, gap_low = f * kept_low, lost_both + f * lost_low
        rho_high, gap_high = f * kept_high, lost_both + f * lost_high
        total += _least_slope(1, d2, m, ratio, rho_low, gap_low, rho_high, gap_high)
    return 2 * forest.rate * total


@op.DROP_FALLS_RANGE.supply(StationaryDiagonalForest)
def _(forest, pair, low, high):
    g_low = max(2 * low - pair[0], 0.0)
    g_high = max(2 * high - pair[0], 0.0)
    kept_low, lost_low = math.exp(-forest.rate * g_low), -math.expm1(-forest.rate * g_low)
    kept_high, lost_high = math.exp(-forest.rate * g_high), -math.expm1(-forest.rate * g_high)
    least = most = 0.0
    for k in range(int(pair[1])):
        m, f, lost_both = pair[3 + 4 * k], pair[4 + 4 * k], pair[5 + 4 * k]
        more = _drop_falls_range(1, m, f * kept_low, lost_both + f * lost_low, f * kept_high, lost_both + f * lost_high)
        least += more[0]
        most += more[1]
    return 4 * forest.rate * forest.rate * least, 4 * forest.rate * forest.rate * most


@op.HIGHEST.supply(StationaryDiagonalForest)
def _(forest, pair, c):
    d2 = apart = 0.0
    least = math.inf
    for k in range(int(pair[1])):
        d2 += pair[2 + 4 * k]
        apart += max(-pair[3 + 4 * k], 0.0)
        least = min(least, pair[5 + 4 * k])
    if least == math.inf:
        return 0.0
    path = _highest(forest.rate, d2, apart, c) - _path_of(forest.rate, least)
    return 0.5 * (max(path, 0.0) + pair[0])


@op.ADD_LEAST_SLOPES.supply(StationaryDiagonalForest)
def _(forest, i, first, last, low, high, shifts, slopes):
    n = last - first
    rate = forest.rate
    ratio, kept_low, lost_low, kept_high, lost_high = _decays(
        rate, forest.height[i], forest.height[first:last], low, high, shifts
    )
    for d in range(forest.a.shape[0]):
        ai, lost_i = forest.a[d, i], forest.lost[d, i]
        f_i = 1 - lost_i
        if f_i == 0:
            continue
        a, lost = forest.a[d, first:last], forest.lost[d, first:last]
        for k in range(n):
            gap = a[k] - ai
            f, lost_both = (
                f_i * (1 - lost[k]),
                lost_i + f_i * lost[k],
            )  # f is 0 where the other is flat, and so are all terms
            rho_low, gap_low = f * kept_low[k], lost_both + f * lost_low[k]
            rho_high, gap_high = f * kept_high[k], lost_both + f * lost_high[k]
            slopes[k] += (
                2 * rate * _least_slope(1, gap * gap, a[k] * ai, ratio[k], rho_low, gap_low, rho_high, gap_high)
            )


@op.MERGE.supply(StationaryDiagonalForest)
def _(forest, i, j, h, into):
    a, lost, rate = forest.a, forest.lost, forest.rate
    x_i, x_j = -rate * (h - forest.height[i]), -rate * (h - forest.height[j])
    kept_i, gone_i, kept_j, gone_j = math.exp(x_i), -math.expm1(x_i), math.exp(x_j), -math.expm1(x_j)
    least = 1.0
    for d in range(a.shape[0]):
        precision_i, weight_i = _weights(lost[d, i], kept_i, gone_i)
        precision_j, weight_j = _weights(lost[d, j], kept_j, gone_j)
        precision = precision_i + precision_j
        scale = 1 / math.sqrt(precision * (1 + precision)) if precision > 0 else 0.0
        a[d, into] = (weight_i * a[d, i] + weight_j * a[d, j]) * scale
        lost[d, into] = _lost_of(precision)
        least = min(least, lost[d, into])
    forest.least_lost[into] = least


@op.MOVE.supply(StationaryDiagonalForest)
def _(forest, source, target):
    forest.least_lost[target] = forest.least_lost[source]
    for d in range(forest.a.shape[0]):
        forest.a[d, target] = forest.a[d, source]
        forest.lost[d, target] = forest.lost[d, source]


@op.NOISY.supply(StationaryDiagonalForest)
def _(forest):
    return forest.noisy


@op.ROOT_LOG_DENSITY.supply(StationaryDiagonalForest)
def _(forest, i):
    return 0.0
