"""Complete real rows as points in space, where the search for partners rules out many pairs at a time.

The best height of a pair grows with its squared distance and with the offsets of the two lineages, their height minus their
shortest path. A box that is too far away for its smallest offset contains no partner for a list. The result is the same as that
of a scan over all pairs.

Brownian rows with structure are kept in buckets of 16 points in a tree of boxes, which rules out most pairs many at a time.
Where boxes rule out too little, and for stationary rows, points are kept in blocks in the order of their slots, and all blocks
are compared with several lineages at a time in vectorised loops. A merged lineage takes the place of one of its parts.

Buckets and blocks are first examined in single precision. Only the few points that may be close, by a margin larger than the
rounding error, are then compared in double precision.
"""

from __future__ import annotations

import numpy as np

from ... import _constants as const
from ... import _math as math
from ...process.kernels import messages as op
from . import heights

SAMPLE = 64  # points of a box that say along which column it is cut
COLUMNS_AT_ONCE = 16  # of a distance, before it is seen whether it is too far already
PROBES = 32  # lists that are made to see how many pairs are looked at;
WORTHWHILE = 0.06  # a larger share of them costs more than it takes to look at all
SLACK = 1e-9  # bounds are widened by this share, far more than rounding takes
LEAST_GAP = 1e-4  # of a squared correlation from 1, for bounds on its logarithm to be within that slack
DRIFT = 1e-12  # what rounding takes from a correlation, at most
ROUNDING = 2.0**-22  # twice the share that single precision takes from the difference of two rounded numbers
BLUR = 1e-3  # squared distances in single precision may be wrong by this share and by e^2 / BLUR, for an error e of a distance
LARGEST_SINGLE, SMALLEST_SINGLE = 1e36, 1e-36  # squared distances in single precision have their digits in between
TIE = 1e-12  # keys that differ by a smaller share may count as equal
DEEPEST = 24  # levels of boxes at most, and two more
ROWS = 4  # lineages that are compared with a block at a time
FIRST_LOOKS = 12  # at the nearest older points, until a list is full


class Space:
    """Points in buckets, and boxes of boxes.

    Buckets are the boxes of the first level, and eight consecutive boxes form one of the next level. Boxes are numbered through
    all levels, each of which starts at a multiple of eight. The eight parts of a box are a row of the arrays of bounds, so that
    a point is compared with all of them at once. Without boxes, a bucket is a block of 64 points.
    """

    def __init__(self, n, n_slots, n_columns, boxes):
        self.boxes = boxes  # whether there are boxes
        self.n_points = 0  # when buckets were last made
        self.n_buckets = 0
        self.n_columns = n_columns
        self.width = padded(n_columns)
        self.level = np.zeros(DEEPEST, dtype=np.intp)  # the first box of each, from 1 on, and the first beyond them
        self.n_levels = 0
        capacity = n_boxes = 0
        if n_columns:
            set_levels(self, n)
            capacity, n_boxes = self.n_buckets, int(np.asarray(self.level)[self.n_levels + 1])
        places = max(capacity * const.BUCKET, const.BLOCK * (-(-n // const.BLOCK))) if n_columns else 0
        self.bucket = np.zeros(n_slots, dtype=np.intp)  # where a slot's point is
        self.place = np.zeros(n_slots, dtype=np.intp)  # its place in the bucket
        self.member = np.zeros(places, dtype=np.intp)  # slots, bucket by bucket
        self.offset = np.zeros(places)  # height less shortest path
        self.filled = np.zeros(max(capacity, -(-n // const.BLOCK)), dtype=np.intp)  # points of each bucket
        self.y = np.zeros(places * self.width, np.float32)  # buckets, columns, points; infinite where a place is empty
        self.norm = np.zeros(places)  # squared distance from 0,
        self.growth = np.zeros(places)  # and exp(rate offset), by which paths to all points of a block decay at once
        self.log_norm = np.zeros(places)  # of the message, see `messages.set_log_norm`
        self.largest_norm = self.largest_log_norm = 0.0  # so far, whatever the sign
        self.least_growth, self.most_growth = math.inf, 0.0
        self.low = np.zeros((n_boxes // const.FAN, n_columns, const.FAN))
        self.high = np.zeros((n_boxes // const.FAN, n_columns, const.FAN))
        n_boxes = max(n_boxes, len(self.filled))
        self.least_offset = np.zeros(n_boxes)
        self.oldest = np.zeros(n_boxes, dtype=np.intp)  # the smallest slot
        self.order = np.zeros(n, dtype=np.intp)
        self.along = np.zeros(n)
        self.bounds = np.zeros(capacity + 1, dtype=np.intp)


class Search:
    """Scratch memory of one thread: the lists of some slots, and the values that points are compared with."""

    def __init__(self, forest):
        self.count = 0
        self.row = np.zeros(ROWS, dtype=np.intp)  # slots
        self.mean = np.zeros((ROWS, padded(forest.n_real)))  # their means
        self.keys = np.zeros((ROWS, const.LIST_LENGTH))
        self.slots = np.zeros((ROWS, const.LIST_LENGTH), dtype=np.intp)
        self.norm = np.zeros(ROWS)
        # of stationary slots, for the worst on their lists, exp(-rate path) to an offset of 0; and a line above
        # -D log(1 - k^2) - 2 log Z, for a log norm of 0
        self.decay = np.zeros(ROWS)
        self.surplus = np.zeros(ROWS)
        self.slope = np.zeros(ROWS)
        # squared distances, and the least of each block; where there are boxes, those to the points of one bucket
        n_blocks = -(-forest.height.shape[0] // const.BLOCK)
        self.squares = np.empty((ROWS, n_blocks * const.BLOCK), np.float32)
        self.nearest = np.empty((ROWS, n_blocks), np.float32)
        self.least = np.empty(const.BLOCK // 4, np.float32)
        self.beyond = np.empty(const.BLOCK, np.float32)  # 1 for points that cannot get on a list
        self.gaps = np.zeros(const.FAN)  # squared distances to boxes
        # boxes still to be looked at: their level, their number on it, their squared distance
        self.waiting = np.zeros((const.FAN * DEEPEST, 2), dtype=np.intp)
        self.far = np.zeros(const.FAN * DEEPEST)
        self.looked_at = 0


def padded(n_columns):
    """Return the number of stored columns, padded with zeros: distances use four columns at a time."""
    return 4 * ((n_columns + 3) // 4)


def set_levels(space, n):
    """Set where levels start for n points in boxes, and the number of buckets, a power of two."""
    n_buckets = 1
    while n > n_buckets * const.BUCKET:
        n_buckets *= 2
    n_levels, first, boxes = 0, 0, n_buckets
    while True:
        n_levels += 1
        space.level[n_levels] = first
        first += const.FAN * ((boxes + const.FAN - 1) // const.FAN)
        if boxes <= const.FAN:
            break
        boxes //= const.FAN
    space.level[n_levels + 1] = first
    space.n_levels = n_levels
    space.n_buckets = n_buckets


# -- building --------------------------------------------------------------------------------------------------------------


def build(forest, space, n, search, pair):
    """Put the first n slots into buckets; with boxes, test whether they rule out enough pairs."""
    space.n_points = n
    space.largest_norm = space.largest_log_norm = space.most_growth = 0.0
    space.least_growth = math.inf
    if space.boxes:
        _build_boxes(forest, space, n)
        looked_at = all_older = 0
        i = n // PROBES
        while i < n:
            search.count, search.row[0] = 1, i
            _clear_lists(forest, search)
            scan_boxes(forest, space, search, pair)
            looked_at += search.looked_at
            all_older += i
            i += max(1, n // PROBES)
        space.boxes = looked_at < WORTHWHILE * all_older
    if not space.boxes:
        _build_blocks(forest, space, n)


def _build_blocks(forest, space, n):
    """Put the first n slots into blocks, in order."""
    space.n_buckets = (n + const.BLOCK - 1) // const.BLOCK
    for bucket in range(space.n_buckets):
        first = bucket * const.BLOCK
        size = min(const.BLOCK, n - first)
        space.filled[bucket], space.oldest[bucket] = size, first
        space.least_offset[bucket] = math.inf
        for p in range(size):
            _put_in_block(forest, space, bucket, p, first + p)
        for p in range(size, const.BLOCK):
            _empty_place(space, bucket, p, const.BLOCK)


def _store(forest, space, bucket, p, slot, size):
    """Store a slot at its position in a bucket of some size; return its offset."""
    offset = forest.height[slot] - forest.least[slot]
    space.bucket[slot], space.place[slot] = bucket, p
    space.member[bucket * size + p], space.offset[bucket * size + p] = slot, offset
    first, norm = bucket * size * space.width + p, 0.0
    for d in range(space.n_columns):
        x = forest.mean[slot, d]
        space.y[first + d * size] = x
        norm += x * x
    for d in range(space.n_columns, space.width):
        space.y[first + d * size] = 0.0
    space.norm[bucket * size + p] = norm
    space.log_norm[bucket * size + p] = forest.log_norm[slot]
    space.largest_norm = max(space.largest_norm, norm)
    space.largest_log_norm = max(space.largest_log_norm, abs(forest.log_norm[slot]))
    if not forest.n_brownian:
        growth = math.exp(forest.rate[0] * offset)
        space.growth[bucket * size + p] = growth
        space.least_growth, space.most_growth = min(space.least_growth, growth), max(space.most_growth, growth)
    return offset


def _put_in_block(forest, space, bucket, p, slot):
    """Store a slot at its position in a block, and extend the range of the block's offsets."""
    offset = _store(forest, space, bucket, p, slot, const.BLOCK)
    space.least_offset[bucket] = min(space.least_offset[bucket], offset)


def _empty_place(space, bucket, p, size):
    first = bucket * size * space.width + p
    for d in range(space.n_columns):
        space.y[first + d * size] = math.inf


def _build_boxes(forest, space, n):
    set_levels(space, n)
    n_boxes = space.level[space.n_levels + 1]
    for row in range(n_boxes // const.FAN):
        for d in range(space.n_columns):
            for part in range(const.FAN):
                space.low[row, d, part], space.high[row, d, part] = math.inf, -math.inf
    for box in range(n_boxes):
        space.least_offset[box] = math.inf
        space.oldest[box] = space.bucket.shape[0]
    for p in range(n):
        space.order[p] = p
    _halve(forest, space, n)
    for bucket in range(space.n_buckets):
        first, size = space.bounds[bucket], space.bounds[bucket + 1] - space.bounds[bucket]
        space.filled[bucket] = size
        for p in range(size):
            _put_in_boxes(forest, space, bucket, p, space.order[first + p])
        for p in range(size, const.BUCKET):
            _empty_place(space, bucket, p, const.BUCKET)


def _halve(forest, space, n):
    """Repeatedly split the points in two across their widest column; `bounds` gets the starts of the parts, and the end."""
    n_parts = space.n_buckets
    space.bounds[0], space.bounds[n_parts] = 0, n
    step = n_parts
    while step > 1:
        part = 0
        while part < n_parts:
            first, last = space.bounds[part], space.bounds[part + step]
            middle = (first + last) // 2
            column = _widest_column(forest, space, first, last)
            for p in range(first, last):
                space.along[p] = forest.mean[space.order[p], column]
            _select(space, first, last, middle)
            space.bounds[part + step // 2] = middle
            part += step
        step //= 2


def _widest_column(forest, space, first, last):
    """Return the column with the largest range over some of the points."""
    step = max(1, (last - first) // SAMPLE)
    widest, width = 0, -1.0
    for d in range(space.n_columns):
        low, high = math.inf, -math.inf
        p = first
        while p < last:
            x = forest.mean[space.order[p], d]
            low, high = min(low, x), max(high, x)
            p += step
        if high - low > width:
            widest, width = d, high - low
    return widest


def _select(space, first, last, middle):
    """Reorder points by `along`, so that none before the middle is larger than one after it."""
    low, high = first, last - 1
    while low < high:
        pivot = space.along[(low + high) // 2]
        a, b = low, high
        while a <= b:
            while space.along[a] < pivot:
                a += 1
            while space.along[b] > pivot:
                b -= 1
            if a <= b:
                x, slot = space.along[a], space.order[a]
                space.along[a], space.order[a] = space.along[b], space.order[b]
                space.along[b], space.order[b] = x, slot
                a += 1
                b -= 1
        if middle <= b:
            high = b
        elif middle >= a:
            low = a
        else:
            break


def _put_in_boxes(forest, space, bucket, p, slot):
    """Store a slot at its position in a bucket, and extend all boxes that contain it."""
    offset = _store(forest, space, bucket, p, slot, const.BUCKET)
    within = bucket
    for level in range(1, space.n_levels + 1):
        box = space.level[level] + within
        row, part = box // const.FAN, box % const.FAN
        for d in range(space.n_columns):
            x = forest.mean[slot, d]
            space.low[row, d, part] = min(space.low[row, d, part], x)
            space.high[row, d, part] = max(space.high[row, d, part], x)
        space.least_offset[box] = min(space.least_offset[box], offset)
        space.oldest[box] = min(space.oldest[box], slot)
        within //= const.FAN


def replace(forest, space, i, j, new):
    """Replace slot i by a new slot, and remove slot j."""
    size = const.BUCKET if space.boxes else const.BLOCK
    bucket, p = space.bucket[j], space.place[j]
    space.filled[bucket] -= 1
    last = space.filled[bucket]
    if p != last:
        moved = space.member[bucket * size + last]
        space.member[bucket * size + p], space.place[moved] = moved, p
        space.offset[bucket * size + p] = space.offset[bucket * size + last]
        space.norm[bucket * size + p] = space.norm[bucket * size + last]
        space.growth[bucket * size + p] = space.growth[bucket * size + last]
        space.log_norm[bucket * size + p] = space.log_norm[bucket * size + last]
        first = bucket * size * space.width
        for d in range(space.n_columns):
            space.y[first + d * size + p] = space.y[first + d * size + last]
    _empty_place(space, bucket, last, size)
    if space.boxes:
        _find_oldest(space, bucket)
    bucket, p = space.bucket[i], space.place[i]
    if space.boxes:
        _put_in_boxes(forest, space, bucket, p, new)
        _find_oldest(space, bucket)
    else:
        _put_in_block(forest, space, bucket, p, new)


def _find_oldest(space, bucket):
    """Find the oldest slot of a bucket again, and of all boxes that contain it."""
    oldest = space.bucket.shape[0]
    for p in range(space.filled[bucket]):
        oldest = min(oldest, space.member[bucket * const.BUCKET + p])
    within = bucket
    for level in range(1, space.n_levels + 1):
        box = space.level[level] + within
        if level > 1:
            first = space.level[level - 1] + const.FAN * within
            oldest = space.bucket.shape[0]
            for part in range(first, first + const.FAN):
                oldest = min(oldest, space.oldest[part])
        if space.oldest[box] == oldest:
            break
        space.oldest[box] = oldest
        within //= const.FAN


def renumber(forest, space, new_slot, n, used):
    """Give the n points new slot numbers, in the order of the old ones, of which some were in use."""
    if not space.boxes:
        _build_blocks(forest, space, n)
        return
    for bucket in range(space.n_buckets):
        for p in range(space.filled[bucket]):
            slot = new_slot[space.member[bucket * const.BUCKET + p]]
            space.member[bucket * const.BUCKET + p] = slot
            space.bucket[slot], space.place[slot] = bucket, p
    for box in range(space.level[space.n_levels + 1]):
        if space.oldest[box] < used:
            space.oldest[box] = new_slot[space.oldest[box]]


# -- searching -------------------------------------------------------------------------------------------------------------


def _clear_lists(forest, search):
    """Clear the lists of the slots of a search."""
    for t in range(search.count):
        for k in range(const.LIST_LENGTH):
            search.keys[t, k] = math.inf
            search.slots[t, k] = -1
        search.norm[t] = 0.0
        for d in range(forest.n_real):
            search.mean[t, d] = forest.mean[search.row[t], d]
            search.norm[t] += search.mean[t, d] * search.mean[t, d]


def scan(forest, space, search, pair):
    """Fill the lists of the best partners of some slots among the older ones."""
    _clear_lists(forest, search)
    if space.boxes:
        scan_boxes(forest, space, search, pair)
    else:
        _scan_blocks(forest, space, search, pair)


def scan_boxes(forest, space, search, pair):
    """Fill the list of the best Brownian partners of one slot among the older ones, by boxes; count the points examined."""
    i, worst = search.row[0], const.LIST_LENGTH - 1
    floor, v = forest.height[i], forest.spread[i, 0]
    search.looked_at = 0
    n_waiting, level, within, reach = 0, space.n_levels + 1, 0, math.inf
    while True:
        if level > 1:
            n_waiting = _await_parts(space, search, level - 1, within, i, reach, n_waiting)
        else:
            size = space.filled[within]
            search.looked_at = search.looked_at + size
            far = _reach_in_single(space, reach)
            if _squares_within(space, search, within, far):
                for k in range(size):
                    j = space.member[within * const.BUCKET + k]
                    if not search.squares[0, k] > far and j < i:
                        offset = space.offset[within * const.BUCKET + k]
                        op.load_pair(forest, i, j, pair)
                        key = _brownian_key(forest, i, j, pair.d2[0], offset)
                        if key < search.keys[0, worst] or (key == search.keys[0, worst] and j < search.slots[0, worst]):
                            heights.insert_partner(search.keys, search.slots, 0, const.LIST_LENGTH, key, j)
        any_near = False
        while n_waiting > 0 and not any_near:
            n_waiting -= 1
            level, within = search.waiting[n_waiting, 0], search.waiting[n_waiting, 1]
            box = space.level[level] + within
            # of equals the older ones count, so that a box of younger ones has to be better than the worst on the list
            younger = space.oldest[box] > search.slots[0, worst]
            if younger and search.keys[0, worst] == floor and not forest.noisy:
                continue
            slack = -TIE if younger else SLACK
            reach = _reach(forest, space.least_offset[box], floor, v, search.keys[0, worst], slack)
            any_near = search.far[n_waiting] <= reach
        if not any_near:
            return


def _await_parts(space, search, level, group, i, reach, n_waiting):
    """Push the boxes of a group within reach onto the stack, the nearest and oldest last; return the size of the stack."""
    first = space.level[level] + const.FAN * group
    row = first // const.FAN
    for part in range(const.FAN):
        search.gaps[part] = 0.0
    d = 0
    while d + 1 < space.n_columns:
        x, y = search.mean[0, d], search.mean[0, d + 1]
        for part in range(const.FAN):
            gap_x = max(max(space.low[row, d, part] - x, x - space.high[row, d, part]), 0.0)
            gap_y = max(max(space.low[row, d + 1, part] - y, y - space.high[row, d + 1, part]), 0.0)
            search.gaps[part] = (search.gaps[part] + gap_x * gap_x) + gap_y * gap_y
        d += 2
    if d < space.n_columns:
        x = search.mean[0, d]
        for part in range(const.FAN):
            gap_x = max(max(space.low[row, d, part] - x, x - space.high[row, d, part]), 0.0)
            search.gaps[part] += gap_x * gap_x
    last = n_waiting
    for part in range(const.FAN):
        if search.gaps[part] <= reach and space.oldest[first + part] < i:
            at = last
            while at > n_waiting and (
                search.far[at - 1] < search.gaps[part]
                or (
                    search.far[at - 1] == search.gaps[part]
                    and space.oldest[space.level[level] + search.waiting[at - 1, 1]] < space.oldest[first + part]
                )
            ):
                search.far[at] = search.far[at - 1]
                search.waiting[at, 0], search.waiting[at, 1] = search.waiting[at - 1, 0], search.waiting[at - 1, 1]
                at -= 1
            search.far[at] = search.gaps[part]
            search.waiting[at, 0], search.waiting[at, 1] = level, const.FAN * group + part
            last += 1
    return last


def _brownian_key(forest, i, j, square, offset):
    """Return the key of a pair: its best height, or a negative key, see `heights.key_up_to`."""
    floor, v, n = forest.height[i], forest.spread[i, 0], forest.n_real
    s = 2 * square / (math.sqrt(n * n + 4 * square) + n)
    h = max(0.5 * (s + ((floor - v) + offset)), floor)
    if h == floor and forest.noisy:
        s = v + (floor - offset)
        log_z = -0.5 * (n * (const.LOG_2PI + math.log(s)) + square / s) - forest.total_log_scale
        h = heights.rank_by_likeness(min(log_z - (forest.log_norm[i] + forest.log_norm[j]), 0.0))
    return h


def _reach(forest, least_offset, floor, v, limit, slack):
    """Return a squared distance beyond which no Brownian point of a box has a key up to a limit, with some slack."""
    n = forest.n_real
    if limit == math.inf:
        return math.inf
    if limit >= floor:
        rest = (floor - v) + least_offset
        s = 2 * limit - rest + slack * (abs(limit) + abs(floor) + v + abs(least_offset))
        return s * (s + n) * (1 + slack) if s >= 0 else -1.0
    # A rank: the log cosine is -d2 / (2 s) and less for a variance s of the difference, which is largest for the least offset.
    return 2 * (-1 / limit - 1 + slack) * (v + (floor - least_offset)) * (1 + slack)


def _share_of_error(space):
    """Return the largest relative error of a squared distance in single precision, in addition to `_least_error`."""
    return BLUR + space.n_columns * ROUNDING


def _least_error(space):
    """Return the largest absolute error of a squared distance between points that are close to each other and far from 0."""
    if not space.largest_norm < LARGEST_SINGLE:
        return math.inf
    return 2 * ROUNDING * ROUNDING * space.largest_norm / BLUR + SMALLEST_SINGLE


def _reach_in_single(space, reach):
    """Return a bound on squared distances in single precision that includes all points within reach."""
    return max(reach, 0.0) * (1 + _share_of_error(space)) + _least_error(space)


def _squares_within(space, search, bucket, reach):
    """Compute squared distances to the points of a bucket, infinite where there is none; return whether any is within reach."""
    # Loops over whole buckets, empty places or not: of a length that is known, and without a branch, they are vectorised.
    first, count, at = 0, 0, bucket * const.BUCKET * space.width
    while first < space.width:
        last = min(first + COLUMNS_AT_ONCE, space.width)
        while first < last:
            a, b = search.mean[0, first], search.mean[0, first + 1]
            c, d = search.mean[0, first + 2], search.mean[0, first + 3]
            for k in range(const.BUCKET):
                gap_a, gap_b = space.y[at + k] - a, space.y[at + const.BUCKET + k] - b
                gap_c, gap_d = space.y[at + 2 * const.BUCKET + k] - c, space.y[at + 3 * const.BUCKET + k] - d
                so_far = search.squares[0, k] if first > 0 else 0.0
                search.squares[0, k] = so_far + ((gap_a * gap_a + gap_b * gap_b) + (gap_c * gap_c + gap_d * gap_d))
            first += 4
            at += 4 * const.BUCKET
        count = 0
        for k in range(const.BUCKET):
            count += 1 - (search.squares[0, k] > reach)
        if count == 0:
            break
    return count > 0


def _scan_blocks(forest, space, search, pair):
    """Fill the lists of the best partners of some slots among the older ones, by comparing all blocks with these slots."""
    for bucket in range(space.n_buckets):
        for t in range(search.count):
            if space.oldest[bucket] < search.row[t]:
                _set_block_squares(space, search, bucket, t)
            else:
                search.nearest[t, bucket] = math.inf
    for t in range(search.count):
        _start_list(forest, space, search, t, pair)
        for bucket in range(space.n_buckets):
            if space.oldest[bucket] < search.row[t]:
                _scan_block(forest, space, search, bucket, t, pair)


def _start_list(forest, space, search, t, pair):
    """Examine the nearest points first: the bounds that they set rule out most others."""
    looks = 0
    for _ in range(
        FIRST_LOOKS + const.BLOCK
    ):  # younger points are passed over: in the slot's own block there may be many
        if looks == FIRST_LOOKS or search.keys[t, const.LIST_LENGTH - 1] < math.inf:
            break
        nearest = 0
        for bucket in range(1, space.n_buckets):
            if search.nearest[t, bucket] < search.nearest[t, nearest]:
                nearest = bucket
        at, end = nearest * const.BLOCK, nearest * const.BLOCK + space.filled[nearest]
        while at < end and search.squares[t, at] > search.nearest[t, nearest]:
            at += 1
        if at == end:
            break
        if space.member[at] < search.row[t]:
            _look_at(forest, space, search, t, at, pair)
            looks += 1
        search.squares[t, at] = math.inf
        search.nearest[t, nearest] = _least_square(search, t, nearest * const.BLOCK)
    if not forest.n_brownian:
        _set_stationary_reach(forest, space, search, t)


def _look_at(forest, space, search, t, at, pair):
    """Insert a point into the list of a slot, if it is older, not there yet, and good enough."""
    i, j, worst = search.row[t], space.member[at], const.LIST_LENGTH - 1
    if j >= i:
        return
    for k in range(const.LIST_LENGTH):
        if search.slots[t, k] == j:
            return
    op.load_pair(forest, i, j, pair)
    if forest.n_brownian:
        key = _brownian_key(forest, i, j, pair.d2[0], space.offset[at])
    else:
        key = _stationary_key(forest, i, j, search.keys[t, worst], pair)
    if key < search.keys[t, worst] or (key == search.keys[t, worst] and j < search.slots[t, worst]):
        heights.insert_partner(search.keys, search.slots, t, const.LIST_LENGTH, key, j)


def _scan_block(forest, space, search, bucket, t, pair):
    """Examine the points of a block that may belong on the list of a slot."""
    i, worst, first = search.row[t], search.keys[t, const.LIST_LENGTH - 1], bucket * const.BLOCK
    if forest.n_brownian:
        reach = _reach(forest, space.least_offset[bucket], forest.height[i], forest.spread[i, 0], worst, SLACK)
        far = _reach_in_single(space, reach)
        if search.nearest[t, bucket] > far:
            return
        for k in range(space.filled[bucket]):
            if not search.squares[t, first + k] > far:
                _look_at(forest, space, search, t, first + k, pair)
        return
    if worst < 0:
        _mark_unlike(forest, space, search, bucket, t)
    else:
        _mark_rising(forest, space, search, bucket, t)
    if _all_beyond(search):
        return
    for k in range(space.filled[bucket]):
        if search.beyond[k] == 0:
            _look_at(forest, space, search, t, first + k, pair)
    if search.keys[t, const.LIST_LENGTH - 1] != worst:
        _set_stationary_reach(forest, space, search, t)


def _set_stationary_reach(forest, space, search, t):
    """Set the conditions for a stationary partner to enter the list of a slot, see `_mark_rising` and `_mark_unlike`."""
    i, limit = search.row[t], search.keys[t, const.LIST_LENGTH - 1]
    floor, n = forest.height[i], float(forest.n_real)
    search.decay[t] = math.exp(-forest.rate[0] * (forest.least[i] + 2 * max(limit, floor) - floor))
    if limit >= 0:
        return
    log_z = 1 + 1 / limit + forest.log_norm[i]
    # -log(1 - k^2) is convex in k^2: no higher than the line between the ends of a range
    low, high = search.decay[t] * space.least_growth, search.decay[t] * space.most_growth
    low, high = low * low * (1 - SLACK), high * high * (1 + SLACK)
    search.slope[t], search.surplus[t] = 0.0, math.inf
    if 1 - high > LEAST_GAP:
        search.slope[t] = n * (math.log1p(-low) - math.log1p(-high)) / (high - low)
        search.surplus[t] = -2 * log_z - n * math.log1p(-low) - search.slope[t] * low
        search.surplus[t] += 10 * SLACK * (1 + abs(1 / limit) + abs(forest.log_norm[i]) + space.largest_log_norm + n)


def _mark_rising(forest, space, search, bucket, t):
    """Mark the points of a block that still rise with a slot at the worst height of its list.

    There ``d2`` is above ``G(x)`` of `heights`, here multiplied by ``k^2`` with ``k = exp(-x)``; a negative product counts as
    0.
    """
    first, n, half = bucket * const.BLOCK, float(forest.n_real), 0.5 / forest.rate[0]
    search_decay, norm = search.decay[t], search.norm[t]
    share, least = 1 - _share_of_error(space), _least_error(space)
    for k in range(const.BLOCK):
        d2 = search.squares[t, first + k] * share - least
        decay = search_decay * space.growth[first + k]
        lost, complement = 1 - decay * decay + DRIFT, 1 - decay + DRIFT
        product = 0.5 * max(norm + space.norm[first + k] - d2, 0.0)
        most = n * lost * decay * decay + half * lost * lost + product * decay * complement * complement
        search.beyond[k] = d2 * decay * decay > most * (1 + SLACK)


def _mark_unlike(forest, space, search, bucket, t):
    """Mark the points of a block that are less similar to a slot, at the height of the slot, than the worst on its list.

    With the correlation k at that height, ``k (d2 - (1 - k) (a_i^2 + a_j^2))`` is above ``(1 - k^2) (-D log(1 - k^2) - 2 log
    Z)`` where eq. (4.4) is below log Z, which is here that of the worst cosine, eq. (7.4).
    """
    first = bucket * const.BLOCK
    search_decay, surplus, slope, norm = search.decay[t], search.surplus[t], search.slope[t], search.norm[t]
    share, least = 1 - _share_of_error(space), _least_error(space)
    for k in range(const.BLOCK):
        d2 = search.squares[t, first + k] * share - least
        decay = search_decay * space.growth[first + k]
        norms = norm + space.norm[first + k]
        most = (1 - decay * decay) * (surplus - 2 * space.log_norm[first + k] + slope * (decay * decay))
        search.beyond[k] = decay * (d2 - (1 - decay) * norms) > most


def _all_beyond(search):
    """Return whether all points of a block are marked."""
    count = 0
    for k in range(const.BLOCK):
        count += search.beyond[k] > 0
    return count == const.BLOCK


def _stationary_key(forest, i, j, limit, pair):
    """Return the key of a stationary pair, see `heights.key_up_to`."""
    floor, rate, d2, product = forest.height[i], forest.rate[0], pair.d2[0], pair.product[0]
    if limit < 0 and heights.rank_by_likeness(op.log_cosine(forest, i, j, pair, floor)) > limit:
        return math.inf
    above = math.nextafter(max(limit, floor), math.inf)
    x = rate * (forest.least[i] + forest.least[j] + (floor - forest.height[j]))
    decay, complement = math.exp(-x), -math.expm1(-x)
    twice = complement * (1 + decay)
    over = twice / decay
    rises = d2 - forest.n_real * twice - over * over / (2 * rate) - product * complement * complement / decay > 0
    shift = forest.least[i] + forest.least[j]
    if rises:
        h = heights.best_height(forest, pair, shift, 1.0, floor, above)
        return max(h, math.nextafter(floor, math.inf)) if product >= 0 else h
    # at the floor already: with a negative product there may be a better height above
    h = floor if product >= 0 else heights.search_height(forest, pair, shift, 1.0, floor, above)
    if h == floor and forest.noisy:
        h = heights.rank_by_likeness(op.log_cosine(forest, i, j, pair, floor))
    return h


def _set_block_squares(space, search, bucket, t):
    """Compute squared distances to all points of a block, and the smallest of them."""
    first, at, to = 0, bucket * const.BLOCK * space.width, bucket * const.BLOCK
    while first < space.width:
        a, b = search.mean[t, first], search.mean[t, first + 1]
        c, d = search.mean[t, first + 2], search.mean[t, first + 3]
        for k in range(const.BLOCK):
            gap_a, gap_b = space.y[at + k] - a, space.y[at + const.BLOCK + k] - b
            gap_c, gap_d = space.y[at + 2 * const.BLOCK + k] - c, space.y[at + 3 * const.BLOCK + k] - d
            so_far = search.squares[t, to + k] if first > 0 else 0.0
            search.squares[t, to + k] = so_far + ((gap_a * gap_a + gap_b * gap_b) + (gap_c * gap_c + gap_d * gap_d))
        first += 4
        at += 4 * const.BLOCK
    search.nearest[t, bucket] = _least_square(search, t, to)


def _least_square(search, t, first):
    """Return the smallest squared distance of a block, in vectorised loops over four values at a time."""
    for k in range(const.BLOCK // 4):
        a, b = search.squares[t, first + k], search.squares[t, first + const.BLOCK // 4 + k]
        c, d = search.squares[t, first + const.BLOCK // 2 + k], search.squares[t, first + 3 * const.BLOCK // 4 + k]
        a, c = b if b < a else a, d if d < c else c
        search.least[k] = c if c < a else a
    for k in range(const.BLOCK // 16):
        a, b = search.least[k], search.least[const.BLOCK // 16 + k]
        c, d = search.least[const.BLOCK // 8 + k], search.least[3 * const.BLOCK // 16 + k]
        a, c = b if b < a else a, d if d < c else c
        search.least[k] = c if c < a else a
    least = search.least[0]
    for k in range(1, const.BLOCK // 16):
        least = search.least[k] if search.least[k] < least else least
    return least
