"""The best height for a pair: where ``log Z(h) - c h`` is largest, for h at or above a lowest height.

With all columns on one clock the maximum is unique; with several rates, mixed kinds or missing cells there may be more
than one. `search_height` therefore sweeps the heights from below in intervals on which the bounds of
`coaltree.process.operations` prove what the function does: rises, falls, is concave (at most one maximum
inside) or convex (none). Nothing is sampled, so no maximum is overlooked; and a search that has risen all
the way to a `limit` stops there, which is what makes scans for the most recent pair cheap.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiled import Operation, jit
from ..process import operations as op
from ..process._brownian_kernels import CompleteForest

RESOLUTION = 1e-12  # intervals are not split below this share of their height


@jit
def _root_of_slope(forest, pair, c, low, high):
    """Find where the slope crosses zero between a height where it is positive and one where it is not."""
    h = 0.5 * (low + high)
    for _ in range(100):
        rise, drop, rise_falls, drop_falls = op.slopes(forest, pair, h)
        slope = rise - drop - c
        if slope > 0:
            low = h
        else:
            high = h
        new = h + slope / (rise_falls - drop_falls)
        if not (low < new < high):
            new = 0.5 * (low + high)
        if abs(new - h) <= 4e-16 * abs(new):
            return new
        h = new
    return h


@jit
def pair_shift(forest, i, j):
    """Return the shift with which the slopes of slots i and j are bounded."""
    shift = op.least_variance(forest, i) + op.least_variance(forest, j)
    return shift if shift < math.inf else 0.0


@jit
def search_height(forest, pair, shift, c, lowest, limit):
    """Return the best height at or above `lowest`, or infinity once it is certain not to be below `limit`."""
    highest = op.highest(forest, pair, c)
    if not highest > lowest:
        return lowest
    low, best = lowest, math.nan
    known = False  # whether the slopes at `low` are
    rise = drop = rise_falls = drop_falls = 0.0
    width = highest - lowest
    while low < highest:
        goal = highest
        if math.isnan(best):
            if low >= limit:
                return math.inf
            goal = min(highest, limit)
        high = low + width
        if not high < goal:
            high = goal
        if op.least_slope(forest, pair, low, high, shift) > c:  # rises all the way
            width = 2 * (high - low)
            low, known = high, False
            continue
        if not known:
            rise, drop, rise_falls, drop_falls = op.slopes(forest, pair, low)
            known = True
            if low == lowest and not rise - drop > c:
                best = lowest
        rise_h, drop_h, rise_falls_h, drop_falls_h = op.slopes(forest, pair, high)
        peak = math.nan
        if rise - drop_h <= c or drop_falls_h > rise_falls:
            pass  # falls all the way, or is convex: no maximum inside
        elif drop_falls < rise_falls_h or high - low <= RESOLUTION * high:  # concave, or too narrow to matter
            if rise - drop > c and not rise_h - drop_h > c:
                peak = _root_of_slope(forest, pair, c, low, high)
        else:
            # Path lengths span orders of magnitude: approach a distant low end by factors, a near one by halves.
            x_low, x_high = low - 0.5 * pair[0] + 0.5 * shift, high - 0.5 * pair[0] + 0.5 * shift
            width = 0.25 * x_high - x_low if x_high > 8 * x_low else 0.5 * (high - low)
            continue
        if not math.isnan(peak):
            if math.isnan(best):
                best = peak
            elif op.log_z(forest, pair, peak) - c * peak > op.log_z(forest, pair, best) - c * best:
                best = peak
        width = 2 * (high - low)
        low, rise, drop, rise_falls, drop_falls = high, rise_h, drop_h, rise_falls_h, drop_falls_h
    return best if best < limit else math.inf


def _best_height(forest, pair, shift, c, lowest, limit):
    """See `search_height`; processes with a closed form supply it here."""


BEST_HEIGHT = Operation(_best_height, default=search_height)
best_height = BEST_HEIGHT.function


@BEST_HEIGHT.supply(CompleteForest)
def _(forest, pair, shift, c, lowest, limit):
    n_columns = forest.y.shape[0]
    # c s^2 + D s = d2, solved without cancellation
    s = 2 * pair[1] / (math.sqrt(n_columns * n_columns + 4 * c * pair[1]) + n_columns)
    h = max(0.5 * (s - pair[2] + pair[0]), lowest)
    return h if h < limit else math.inf


@jit
def _block_by_search(forest, i, first, last, live, limit, pair, heights):
    shifts = np.empty(last - first)
    for j in range(first, last):
        shifts[j - first] = pair_shift(forest, i, j)
    if limit < math.inf:
        heights[: last - first] = 0.0
        op.add_least_slopes(forest, i, first, last, limit, shifts, heights)
    else:
        heights[: last - first] = -math.inf
    for j in range(first, last):
        if live[j] and not heights[j - first] > 1.0:
            op.load_pair(forest, i, j, pair)
            heights[j - first] = best_height(forest, pair, shifts[j - first], 1.0, forest.height[i], limit)
        else:
            heights[j - first] = math.inf


def _block_heights(forest, i, first, last, live, limit, pair, heights):
    """Best heights at rate 1 of slot i with slots first <= j < last, none of them younger; infinity from `limit` on.

    `pair` is scratch; the result is in heights[: last - first].
    """


BLOCK_HEIGHTS = Operation(_block_heights, default=_block_by_search)
block_heights = BLOCK_HEIGHTS.function


@BLOCK_HEIGHTS.supply(CompleteForest)
def _(forest, i, first, last, live, limit, pair, heights):
    y, v, height = forest.y, forest.v, forest.height
    n_columns = y.shape[0]
    n = last - first
    heights[:n] = 0.0
    for d in range(n_columns):
        yi = y[d, i]
        row = y[d, first:last]
        for k in range(n):
            gap = row[k] - yi
            heights[k] += gap * gap
    offset = height[i] - v[i]
    for k in range(n):
        j = first + k
        s = 2 * heights[k] / (math.sqrt(n_columns * n_columns + 4 * heights[k]) + n_columns)
        h = max(0.5 * (s + offset + height[j] - v[j]), height[i])
        heights[k] = h if live[j] else math.inf
