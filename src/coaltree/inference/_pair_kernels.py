"""The best height for a pair: where ``log Z(h) - c h`` is largest, for h at or above a lowest height.

With all columns on one clock the maximum is unique; with several rates, mixed kinds or missing cells there may be more
than one. `search_height` therefore sweeps the heights from below in intervals on which the bounds of
`coaltree.process.operations` prove what the function does: rises, falls, is concave (at most one maximum
inside) or convex (none), so that no maximum is overlooked; and a search that has risen all the way to a `limit` stops
there, which is what makes scans for the most recent pair cheap. One case defeats the bounds: real cells that are
identical and free of noise pull the merge to height 0 as strongly as categories that differ push it away. A sweep that takes
too many intervals goes on over a grid that is fine on the scale of the path length.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiled import Operation, inlined, jit
from ..process import operations as op
from ..process._brownian_kernels import LOG_2PI, CompleteForest

RESOLUTION = 1e-12  # intervals are not split below this share of their height
PATIENCE = 200  # intervals after which the sweep is content with a grid:
COARSE = 0.05  # intervals are then not split below this share of the path length

LARGEST_BLOCK = 256  # pairs

# How a block of pairs is thinned out, round by round: a pair that is shown to rise from its own height to the limit merges
# there or above. Rounds go on while they cost less than the searches they may spare (a search costs about as much
# as SEARCH_COST looks at one interval of one pair), and look in more pieces once the limit stands still.
SEARCH_COST = 30
MOST_PIECES = 4


@inlined
def pair_shift(forest, i, j):
    """Return the shift with which the slopes of slots i and j are bounded."""
    shift = op.least_variance(forest, i) + op.least_variance(forest, j)
    return shift if shift < math.inf else 0.0


@jit
def _root_of_slope(forest, pair, shift, c, low, high):
    """Find where the slope crosses zero between a height where it is positive and one where it is not."""
    h = high
    for _ in range(100):
        rise, drop, rise_falls, drop_falls = op.slopes(forest, pair, h)
        slope = rise - drop - c
        if slope > 0:
            low = h
        else:
            high = h
        # Newton's step for the slope times the path length, which is the straighter function of the two
        x = 2 * h - pair[0] + shift
        new = h - x * slope / (2 * slope - x * (rise_falls - drop_falls))
        if not (low < new < high):
            new = 0.5 * (low + high)
        if abs(new - h) <= 4e-16 * abs(new):
            return new
        h = new
    return h


@jit
def search_height(forest, pair, shift, c, lowest, limit):
    """Return the best height at or above `lowest`, or infinity once it is certain not to be below `limit`."""
    if not lowest < limit:
        return math.inf
    highest = op.highest(forest, pair, c)
    if not highest > lowest:
        return lowest
    low, best = lowest, math.nan
    goal = min(limit, highest)
    # A zero of the slope tells where to cut; the sweep proves that it is the maximum, or finds the others.
    guess = math.inf
    known = False  # whether the slopes at `low` are: those at the lowest height are seldom needed
    rise, drop, rise_falls, _ = op.slopes(forest, pair, goal)
    if not rise - drop > c:
        rise, drop, rise_falls, _ = op.slopes(forest, pair, low)
        known = True
        if rise - drop > c:
            # not from the limit: the same pair must come out the same, to the last digit, whatever the limit
            guess = _root_of_slope(forest, pair, shift, c, low, highest)
        else:
            guess = best = lowest
    width = math.nan
    intervals = 0
    while low < highest:
        intervals += 1
        if not math.isnan(best):
            goal = highest
        elif low >= limit:
            return math.inf
        if math.isnan(width):
            width = _next_width(low, guess, goal, pair[0], shift)
        high = low + width
        if not low < high < goal:
            high = goal
        rise_h, drop_h, rise_falls_h, _ = op.slopes(forest, pair, high)
        rising = rise_h - drop_h > c and op.least_slope(forest, pair, low, high, shift) > c
        if not rising:
            if not known:
                rise, drop, rise_falls, _ = op.slopes(forest, pair, low)
                if not rise - drop > c:
                    best = lowest
            known = True
            falling = rise - drop_h <= c
            least_bend, most_bend = (0.0, 0.0) if falling else op.drop_falls_range(forest, pair, low, high)
            convex = least_bend > rise_falls
            if not (falling or convex):
                middle = 0.5 * (low + high)
                narrow = high - low <= RESOLUTION * high or not low < middle < high
                if intervals > PATIENCE:
                    narrow = narrow or 2 * (high - low) <= COARSE * (2 * high - pair[0] + shift)
                if not (most_bend < rise_falls_h or narrow):  # not concave either: split
                    width = middle - low
                    continue
                if rise - drop > c and not rise_h - drop_h > c:
                    peak = guess
                    if not low <= guess <= high:
                        peak = _root_of_slope(forest, pair, shift, c, low, high)
                    if (
                        math.isnan(best)
                        or op.log_z(forest, pair, peak) - c * peak > op.log_z(forest, pair, best) - c * best
                    ):
                        best = peak
        known = True
        low, rise, drop, rise_falls = high, rise_h, drop_h, rise_falls_h
        width = math.nan
    return best if best < limit else math.inf


@inlined
def _next_width(low, guess, goal, heights, shift):
    """Return a promising width: towards a zero of the slope by ever shorter steps, across it, away by longer ones."""
    target = min(guess, goal)
    x_low = 2 * low - heights + shift
    x_target = 2 * target - heights + shift
    if x_low < 0.9 * x_target:
        width = 0.5 * (target - low) if guess < goal or x_low < 0.6 * x_target else target - low
    elif low < target:
        width = 2 * (target - low)
    else:
        width = 0.5 * x_low if x_low > 0 else goal - low
    return max(width, RESOLUTION * goal)  # so that every step is one


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


# Plain loops below: every expression of whole arrays would be compiled on its own, for seconds.


@inlined
def _block_by_search(forest, i, first, last, live, best, pair, heights):
    n, n_tops = last - first, len(best)
    tops = best.copy()
    unsettled = np.empty(n, np.bool_)  # pairs whose height is not known, nor known to be at the limit or above
    shifts, slopes = np.empty(n), np.empty(n)
    left = 0
    for k in range(n):
        heights[k] = math.inf
        unsettled[k] = live[first + k]
        left += live[first + k]
        shifts[k] = pair_shift(forest, i, first + k)
    floor = forest.height[i]
    if tops[n_tops - 1] < math.inf:
        above_floor = np.nextafter(floor, math.inf)
        pieces = np.int64(1)  # a plain 1 would be compiled twice, once as a constant
        while SEARCH_COST * left > pieces * n and pieces <= MOST_PIECES:
            limit = tops[n_tops - 1]
            left = _settle_rising(forest, i, first, last, pieces, max(limit, above_floor), shifts, slopes, unsettled)
            if SEARCH_COST * left <= n or limit < above_floor:
                break
            # The most promising pairs first: the lower limit that they set settles most of the others.
            for _ in range(min(n_tops, left)):
                k = _least(slopes, unsettled)
                heights[k] = _pair_height(forest, i, first + k, shifts[k], tops, pair)
                unsettled[k] = False
                left -= 1
            if tops[n_tops - 1] == limit:  # a finer look at the same interval
                pieces *= 4
    at_floor = 0
    for k in range(n):
        if unsettled[k]:
            heights[k] = _pair_height(forest, i, first + k, shifts[k], tops, pair)
        at_floor += heights[k] == floor
        if at_floor == n_tops:
            break  # none can be lower, and of equals the first ones count


@inlined
def _settle_rising(forest, i, first, last, pieces, limit, shifts, slopes, unsettled):
    """Strike out the pairs that rise all the way to the limit; return how many are left."""
    n = last - first
    rises = np.empty(n, np.bool_)
    for k in range(n):
        rises[k] = True
    low = forest.height[i]
    for piece in range(pieces):
        # towards the limit, where slopes are smallest, pieces get shorter
        high = limit if piece == pieces - 1 else 0.5 * (low + limit)
        for k in range(n):
            slopes[k] = 0.0
        op.add_least_slopes(forest, i, first, last, low, high, shifts, slopes)
        for k in range(n):
            rises[k] &= slopes[k] > 1.0
        low = high
    left = 0
    for k in range(n):
        unsettled[k] &= not rises[k]
        left += unsettled[k]
    return left


@jit
def _pair_height(forest, i, j, shift, tops, pair):
    """Return the key of one pair if it is among the smallest so far, and put it among them."""
    key = key_up_to(forest, i, j, shift, tops[-1], pair)
    insert(tops, key)
    return key


@inlined
def key_up_to(forest, i, j, shift, limit, pair):
    """Return the best height of slot i with an older slot j, or its rank; infinity if that is certain to be above the limit."""
    op.load_pair(forest, i, j, pair)
    floor = forest.height[i]
    # the next larger number: a pair as good as the last one kept may have the smaller index
    h = best_height(forest, pair, shift, 1.0, floor, np.nextafter(max(limit, floor), math.inf))
    if h == floor and op.noisy(forest):
        h = rank_by_likelihood(op.log_z(forest, pair, floor))
    return h


@jit
def rank_by_likelihood(log_z):
    """Return a negative number that is the smaller the larger log Z is, with its digits."""
    root = math.sqrt(log_z * log_z + 1)
    return -(log_z + root) if log_z > 0 else -1 / (root - log_z)


@inlined
def _least(values, among):
    """Return the index of the smallest of those values that count."""
    found = -1
    for k in range(len(values)):
        if among[k] and (found < 0 or values[k] < values[found]):
            found = k
    return found


@jit
def insert(ascending, value):
    """Put a value into its place in an ascending array, behind its equals, the last one dropping out; return the place."""
    place = len(ascending)
    while place > 0 and value < ascending[place - 1]:
        place -= 1
        if place + 1 < len(ascending):
            ascending[place + 1] = ascending[place]
    if place < len(ascending):
        ascending[place] = value
    return place


@jit
def insert_partner(keys, slots, key, slot):
    """Put a partner into its place in an ascending list, of equal keys the smaller slot first, the last one dropping out."""
    q = len(keys)
    while q > 0 and (key < keys[q - 1] or (key == keys[q - 1] and slot < slots[q - 1])):
        q -= 1
        if q + 1 < len(keys):
            keys[q + 1], slots[q + 1] = keys[q], slots[q]
    if q < len(keys):
        keys[q], slots[q] = key, slot


def _block_heights(forest, i, first, last, live, best, pair, heights):
    """Best heights at rate 1 of slot i with slots first <= j < last, none younger, into heights[: last - first].

    A pair that would merge before slot i appeared merges as soon as it has. Where there is noise there are many such pairs, and
    the likelier ones are to come first: what is put down for them is no height but a negative number.
    Only the smallest are asked for: pairs certain not to be among the ``len(best)`` smallest of the block and
    of the ascending heights `best` may come out infinite. `pair` is scratch.
    """


BLOCK_HEIGHTS = Operation(_block_heights, default=_block_by_search)
block_heights = BLOCK_HEIGHTS.function


@BLOCK_HEIGHTS.supply(CompleteForest)
def _(forest, i, first, last, live, best, pair, heights):
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
    floor, offset = height[i], height[i] - v[i]
    for k in range(n):
        j = first + k
        d2 = heights[k]
        s = 2 * d2 / (math.sqrt(n_columns * n_columns + 4 * d2) + n_columns)
        h = 0.5 * (s + (offset + (height[j] - v[j])))
        if h <= floor:
            h = floor
        if h == floor and forest.noisy:
            s = v[i] + (floor - (height[j] - v[j]))
            h = rank_by_likelihood(-0.5 * (n_columns * (LOG_2PI + math.log(s)) + d2 / s) - forest.log_scale)
        heights[k] = h if live[j] else math.inf
