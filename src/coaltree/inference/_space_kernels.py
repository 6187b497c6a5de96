"""Complete real rows in a tree of boxes, so that most pairs are ruled out many at a time; what is found is what a scan finds.

The best height of a pair grows with its distance and with the two lineages' offsets, their height less their variance. A box
that lies too far away for its least offset has no partner that would enter a list. Points are kept in buckets, copied
side by side; a merged lineage takes the place of one of its parts, whose box is widened to hold it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import inlined, jit
from ..process._brownian_kernels import LOG_2PI
from ._pair_kernels import insert_partner, rank_by_likelihood

BUCKET = 16  # points, at most
SAMPLE = 64  # points of a box that say along which column it is cut
COLUMNS_AT_ONCE = 16  # of a distance, before it is seen whether it is too far already
PROBES, PROBE_LENGTH = 32, 5  # lists that are made to see how many pairs are looked at;
WORTHWHILE = 0.3  # a larger share of them costs more than it takes to look at all
SLACK = 1e-9  # bounds are widened by this share, far more than rounding takes
FAN = 8  # boxes that make a larger one
TIE = 1e-12  # keys that differ by a smaller share may count as equal
DEEPEST = 24  # levels of boxes at most, and two more

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class Space(NamedTuple):
    """Boxes within boxes: buckets are those of the first level, and eight boxes in a row make one of the next level.

    Boxes are numbered through all levels, each of which begins at a multiple of eight; the eight parts of a box are a
    row of the arrays of bounds, so that a point is compared with all of them at once.
    """

    bucket: IntArray  # (slots,), where a slot's point is
    place: IntArray  # (slots,), its place in the bucket
    members: IntArray  # (buckets, BUCKET), slots
    filled: IntArray  # (buckets,)
    y: FloatArray  # (buckets, columns, BUCKET), infinite where a place is empty
    offset: FloatArray  # (buckets, BUCKET), height less variance
    low: FloatArray  # (boxes / 8, columns, 8)
    high: FloatArray  # (boxes / 8, columns, 8)
    least_offset: FloatArray  # (boxes,)
    most_offset: FloatArray  # (boxes,)
    oldest: IntArray  # (boxes,), the smallest slot
    levels: IntArray  # [how many, the first box of each, the first box beyond them]
    built: IntArray  # [points, buckets when boxes were last made; whether they are of use]


def new_space(n: int, n_slots: int, n_columns: int) -> Space:
    """Return room for n points; none where there are no columns."""
    levels = np.zeros(DEEPEST, dtype=np.intp)
    n_buckets = set_levels(levels, n) if n_columns else 0
    n_boxes = levels[levels[0] + 1]
    return Space(
        bucket=np.zeros(n_slots, dtype=np.intp),
        place=np.zeros(n_slots, dtype=np.intp),
        members=np.zeros((n_buckets, BUCKET), dtype=np.intp),
        filled=np.zeros(n_buckets, dtype=np.intp),
        y=np.zeros((n_buckets, n_columns, BUCKET)),
        offset=np.zeros((n_buckets, BUCKET)),
        low=np.zeros((n_boxes // FAN, n_columns, FAN)),
        high=np.zeros((n_boxes // FAN, n_columns, FAN)),
        least_offset=np.zeros(n_boxes),
        most_offset=np.zeros(n_boxes),
        oldest=np.zeros(n_boxes, dtype=np.intp),
        levels=levels,
        built=np.zeros(3, dtype=np.intp),
    )


def set_levels(levels, n):
    """Say where levels begin for n points; return the number of buckets, a power of two."""
    n_buckets = 1
    while n > n_buckets * BUCKET:
        n_buckets *= 2
    n_levels, first, boxes = 0, 0, n_buckets
    while True:
        n_levels += 1
        levels[n_levels] = first
        first += FAN * math.ceil(boxes / FAN)
        if boxes <= FAN:
            break
        boxes //= FAN
    levels[n_levels + 1] = first
    levels[0] = n_levels
    return n_buckets


_set_levels = jit(set_levels)  # Python calls the plain one, and has nothing to compile


# -- building ------------------------------------------------------------------------------------------------------------


@jit
def build_space(forest, space, n):
    """Put the first n slots into boxes, and see whether those rule enough pairs out."""
    n_buckets = _set_levels(space.levels, n)
    space.built[0], space.built[1] = n, n_buckets
    n_boxes = space.levels[space.levels[0] + 1]
    space.low[: n_boxes // FAN] = math.inf
    space.high[: n_boxes // FAN] = -math.inf
    space.least_offset[:n_boxes] = math.inf
    space.most_offset[:n_boxes] = -math.inf
    space.oldest[:n_boxes] = len(space.bucket)
    order = np.arange(n)
    bounds = _halved(forest, order, n_buckets)
    space.y[:n_buckets] = math.inf
    for bucket in range(n_buckets):
        members = order[bounds[bucket] : bounds[bucket + 1]]
        space.filled[bucket] = len(members)
        for p in range(len(members)):
            _put(forest, space, bucket, p, members[p])
    looked_at = all_older = 0
    for i in range(n // PROBES, n, max(1, n // PROBES)):
        looked_at += scan_space(forest, space, i, np.full(PROBE_LENGTH, math.inf), np.full(PROBE_LENGTH, -1))
        all_older += i
    space.built[2] = looked_at < WORTHWHILE * all_older


@inlined
def _halved(forest, order, n_parts):
    """Cut the points in two across their widest column, again and again; return where the parts begin, and the end."""
    n = len(order)
    bounds = np.full(n_parts + 1, n)
    bounds[0] = 0
    along = np.empty(n)
    step = n_parts
    while step > 1:
        for part in range(0, n_parts, step):
            first, last = bounds[part], bounds[part + step]
            middle = (first + last) // 2
            row = forest.y[_widest_column(forest, order[first:last])]
            for p in range(first, last):
                along[p] = row[order[p]]
            _select(along, order, first, last, middle)
            bounds[part + step // 2] = middle
        step //= 2
    return bounds


@inlined
def _widest_column(forest, members):
    """Return the column in which some of the members spread most."""
    step = max(1, len(members) // SAMPLE)
    widest, width = 0, -1.0
    for d in range(forest.y.shape[0]):
        low, high = math.inf, -math.inf
        for p in range(0, len(members), step):
            x = forest.y[d, members[p]]
            low, high = min(low, x), max(high, x)
        if high - low > width:
            widest, width = d, high - low
    return widest


@inlined
def _select(values, order, first, last, middle):
    """Reorder values[first:last], and order with it, so that none before the middle is larger than one behind it."""
    low, high = first, last - 1
    while low < high:
        pivot = values[(low + high) // 2]
        a, b = low, high
        while a <= b:
            while values[a] < pivot:
                a += 1
            while values[b] > pivot:
                b -= 1
            if a <= b:
                values[a], values[b] = values[b], values[a]
                order[a], order[b] = order[b], order[a]
                a += 1
                b -= 1
        if middle <= b:
            high = b
        elif middle >= a:
            low = a
        else:
            break


@jit
def _put(forest, space, bucket, p, slot):
    """Put a slot into its place in a bucket, and widen all boxes that this one is in."""
    offset = forest.height[slot] - forest.v[slot]
    space.bucket[slot], space.place[slot] = bucket, p
    space.members[bucket, p], space.offset[bucket, p] = slot, offset
    for d in range(forest.y.shape[0]):
        space.y[bucket, d, p] = forest.y[d, slot]
    within = bucket
    for level in range(1, space.levels[0] + 1):
        box = space.levels[level] + within
        low, high = space.low[box // FAN], space.high[box // FAN]
        part = box % FAN
        for d in range(forest.y.shape[0]):
            x = forest.y[d, slot]
            low[d, part], high[d, part] = min(low[d, part], x), max(high[d, part], x)
        space.least_offset[box] = min(space.least_offset[box], offset)
        space.most_offset[box] = max(space.most_offset[box], offset)
        space.oldest[box] = min(space.oldest[box], slot)
        within //= FAN


@inlined
def replace_in_space(forest, space, i, j, new):
    """Let a new slot take the place of slot i, and slot j go."""
    bucket, p = space.bucket[j], space.place[j]
    space.filled[bucket] -= 1
    last = space.filled[bucket]
    if p != last:
        moved = space.members[bucket, last]
        space.members[bucket, p], space.place[moved] = moved, p
        space.offset[bucket, p] = space.offset[bucket, last]
        for d in range(forest.y.shape[0]):
            space.y[bucket, d, p] = space.y[bucket, d, last]
    space.y[bucket, :, last] = math.inf
    _find_oldest(space, bucket)
    bucket, p = space.bucket[i], space.place[i]
    _put(forest, space, bucket, p, new)
    _find_oldest(space, bucket)


@jit
def _find_oldest(space, bucket):
    """Look for the oldest slot of a bucket anew, and of all boxes that this one is in."""
    oldest = len(space.bucket)
    for p in range(space.filled[bucket]):
        oldest = min(oldest, space.members[bucket, p])
    within = bucket
    for level in range(1, space.levels[0] + 1):
        box = space.levels[level] + within
        if level > 1:
            first = space.levels[level - 1] + FAN * within
            oldest = len(space.bucket)
            for part in range(first, first + FAN):
                oldest = min(oldest, space.oldest[part])
        if space.oldest[box] == oldest:
            break
        space.oldest[box] = oldest
        within //= FAN


@jit
def renumber_space(space, new_slot):
    """Give the points their new slots, which are in the order of the old ones."""
    for bucket in range(space.built[1]):
        for p in range(space.filled[bucket]):
            slot = new_slot[space.members[bucket, p]]
            space.members[bucket, p] = slot
            space.bucket[slot], space.place[slot] = bucket, p
    for box in range(space.levels[space.levels[0] + 1]):
        if space.oldest[box] < len(new_slot):
            space.oldest[box] = new_slot[space.oldest[box]]


# -- searching -----------------------------------------------------------------------------------------------------------


@jit
def scan_space(forest, space, i, keys, slots):
    """Fill the list of slot i's best partners among the older ones; return how many points were looked at."""
    # Arrays have names of their own here: every look into a tuple within the loops would count references.
    y, height, variance = forest.y, forest.height, forest.v
    levels, oldest, filled, members = space.levels, space.oldest, space.filled, space.members
    low, high, points, offset = space.low, space.high, space.y, space.offset
    least_offset, most_offset = space.least_offset, space.most_offset
    noisy, log_scale = forest.noisy, forest.log_scale
    looked_at = 0
    n_columns = y.shape[0]
    worst = len(keys) - 1
    own = np.empty(n_columns)
    for d in range(n_columns):
        own[d] = y[d, i]
    floor, v = height[i], variance[i]
    squares = np.empty(BUCKET)
    # boxes still to be looked at: their level, their number on it, their squared distance
    waiting, far = np.empty((FAN * DEEPEST, 2), dtype=np.intp), np.empty(FAN * DEEPEST)
    n_waiting, level, within, reach = 0, levels[0] + 1, 0, math.inf
    while True:
        if level > 1:
            n_waiting = _await_parts(
                levels, low, high, oldest, level - 1, within, i, own, reach, waiting, far, n_waiting, squares
            )
        else:
            size = filled[within]
            looked_at += size
            if _squares_within(points, within, own, reach, squares):
                for k in range(size):
                    j = members[within, k]
                    if squares[k] <= reach and j < i:
                        key = _height(n_columns, noisy, log_scale, floor, v, squares[k], offset[within, k])
                        if key < keys[worst] or (key == keys[worst] and j < slots[worst]):
                            insert_partner(keys, slots, key, j)
        found = False
        while n_waiting > 0 and not found:
            n_waiting -= 1
            level, within = waiting[n_waiting, 0], waiting[n_waiting, 1]
            box = levels[level] + within
            # of equals the older ones count, so that a box of younger ones has to be better than the worst on the list
            younger = oldest[box] > slots[worst]
            if younger and keys[worst] == floor and not noisy:
                continue
            reach = _reach(
                n_columns,
                log_scale,
                least_offset[box],
                most_offset[box],
                floor,
                v,
                keys[worst],
                -TIE if younger else SLACK,
            )
            found = far[n_waiting] <= reach
        if not found:
            return looked_at


@inlined
def _await_parts(levels, low, high, oldest, level, group, i, own, reach, waiting, far, n_waiting, squares):
    """Let the boxes of a group that are within reach wait, the nearest and oldest last; return how many wait then."""
    first = levels[level] + FAN * group
    row = first // FAN
    squares[:FAN] = 0.0
    for d in range(len(own)):
        x = own[d]
        for part in range(FAN):
            gap = max(max(low[row, d, part] - x, x - high[row, d, part]), 0.0)
            squares[part] += gap * gap
    last = n_waiting
    for part in range(FAN):
        if squares[part] <= reach and oldest[first + part] < i:
            at = last
            while at > n_waiting and (
                far[at - 1] < squares[part]
                or (far[at - 1] == squares[part] and oldest[levels[level] + waiting[at - 1, 1]] < oldest[first + part])
            ):
                far[at], waiting[at, 0], waiting[at, 1] = far[at - 1], waiting[at - 1, 0], waiting[at - 1, 1]
                at -= 1
            far[at], waiting[at, 0], waiting[at, 1] = squares[part], level, FAN * group + part
            last += 1
    return last


@inlined
def _height(n_columns, noisy, log_scale, floor, v, square, offset):
    """Return the best height of a pair, or its rank, see `block_heights`."""
    s = 2 * square / (math.sqrt(n_columns * n_columns + 4 * square) + n_columns)
    h = max(0.5 * (s + ((floor - v) + offset)), floor)
    if h == floor and noisy:
        s = v + (floor - offset)
        h = rank_by_likelihood(-0.5 * (n_columns * (LOG_2PI + math.log(s)) + square / s) - log_scale)
    return h


@jit
def _reach(n_columns, log_scale, least_offset, most_offset, floor, v, limit, slack):
    """Return a squared distance beyond which no point of a box has a key up to a limit, widened by some slack."""
    if limit == math.inf:
        return math.inf
    if limit >= floor:
        rest = (floor - v) + least_offset
        s = 2 * limit - rest + slack * (abs(limit) + abs(floor) + v + abs(least_offset))
        return s * (s + n_columns) * (1 + slack) if s >= 0 else -1.0
    # A rank: d2 <= s (a - D log s) for a variance s of the difference, which is largest where log s = a / D - 1
    log_z = 0.5 * (-limit + 1 / limit)
    a = -2 * (log_z - slack * (1 + abs(log_z)) + log_scale) - n_columns * LOG_2PI
    s = math.exp(min(a / n_columns - 1, 700.0))
    s = min(max(s, v + (floor - most_offset)), v + (floor - least_offset))
    return s * (a - n_columns * math.log(s)) * (1 + slack)


@inlined
def _squares_within(points, bucket, own, reach, squares):
    """Put squared distances to the points of a bucket down, infinite where there is none; return whether any is within reach."""
    # loops over whole buckets, empty places or not: of a length that is known, and without a branch, they are vectorised
    for k in range(BUCKET):
        squares[k] = 0.0
    first, count = 0, 0
    while first < len(own):
        last = min(first + COLUMNS_AT_ONCE, len(own))
        for d in range(first, last):
            x = own[d]
            for k in range(BUCKET):
                gap = points[bucket, d, k] - x
                squares[k] += gap * gap
        count = 0
        for k in range(BUCKET):
            count += squares[k] <= reach
        if count == 0:
            break
        first = last
    return count > 0
