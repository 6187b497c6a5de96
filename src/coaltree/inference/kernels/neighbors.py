"""Near neighbours among many points, and `rate1` along lists of them."""

from __future__ import annotations

import numpy as np

from ... import _math as math
from ... import _stop as stop
from ...process.kernels import messages as op
from . import heights as best

try:
    import cython
except ImportError:
    from ..._nocython import cython

NONE = -1
TILE = 32  # points whose distances to another one are found together; a literal where compilers are to see it
BLOCK = 1024  # points whose distances to another one are added up together, in memory that stays near


class Lists:
    """Lineages by slot, ordered by age, each with a list of candidate partners.

    The capacity is n lineages and half as many merges.
    """

    def __init__(self, n, length):
        capacity = slots_for(n)
        self.length = length
        self.node = np.arange(capacity, dtype=np.intp)  # (slots,), number in the tree
        # (slots,), the lineage that a dead one became part of, or one on the way to it; a live one itself
        self.heir = np.arange(capacity, dtype=np.intp)
        # (slots, length), ascending: heights, or ranks where a pair merges at once; infinite at the end
        self.keys = np.full((capacity, length), np.inf)
        self.slots = np.full((capacity, length), NONE, dtype=np.intp)  # the partners, NONE at the end; see `_not_below`
        # (slots,), the last lineage that was given this one as a partner
        self.seen = np.full(capacity, NONE, dtype=np.intp)
        self.heap = np.zeros(capacity, dtype=np.intp)  # (slots,), slots, the one with the smallest key on top
        self.place = np.zeros(capacity, dtype=np.intp)  # (slots,), where a slot stands in the heap
        self.counts = np.array([n, n, 0], dtype=np.intp)  # [slots in use, live ones, slots in the heap]


def slots_for(n):
    """Return the number of slots that a forest of n leaves needs for a round."""
    return n + (n + 1) // 2 + 2


# -- neighbours ----------------------------------------------------------------------------------------------------------


class Nearest:
    """The nearest points found so far for each point, with their squared distances, nearest first."""

    def __init__(self, distances, neighbors):
        self.distances = distances  # (points, length), infinite at the end
        self.neighbors = neighbors  # (points, length), NONE at the end
        self.length = distances.shape[1]


class Cell:
    """Scratch memory: the points of a cell, and a tile of them by column, whose distances are computed together."""

    def __init__(self, n_columns, most, holes):
        room = (most + TILE - 1) // TILE * TILE
        self.n_columns = n_columns
        self.size = 0
        self.members = np.zeros(room, dtype=np.intp)
        self.last = np.zeros(room, dtype=np.float32)  # the largest distance on each one's list
        self.rows = np.zeros((room, n_columns), dtype=np.float32)
        self.tile = np.zeros((n_columns, TILE), dtype=np.float32)
        self.squares = np.zeros(TILE, dtype=np.float32)
        # where coordinates may be missing, and are 0 then: 1 for those that are there; whether there are none
        self.seen = np.zeros((room if holes else 0, n_columns), dtype=np.float32)
        self.tile_seen = np.zeros((n_columns if holes else 0, TILE), dtype=np.float32)
        self.empty = np.zeros(room, dtype=np.uint8)


class Block:
    """Scratch memory: squared distances of some points to another point, and the number of coordinates in common."""

    def __init__(self):
        self.squares = np.zeros(BLOCK, dtype=np.float32)
        self.shared = np.zeros(BLOCK, dtype=np.float32)


def neighbors_in_cells(points, order, bounds, distances, neighbors, first, last):
    """Compare all pairs within each cell, the points order[bounds[c] : bounds[c + 1]] for first <= c < last.

    Every point keeps the nearest points found so far. A point is in one cell only, so threads can share the cells.
    """
    cell = Cell(points.shape[0], _largest_cell(bounds, first, last), False)
    nearest = Nearest(distances, neighbors)
    with cython.nogil:
        for c in range(first, last):
            stop.poll()
            _gather(points, order, bounds[c], bounds[c + 1], nearest, cell)
            _look_within(nearest, cell, False)


def neighbors_with_holes(points, order, bounds, distances, neighbors, first, last):
    """Do the same for points with NaN coordinates: distances are averages over the coordinates that two points have in common."""
    cell = Cell(points.shape[0], _largest_cell(bounds, first, last), True)
    nearest = Nearest(distances, neighbors)
    with cython.nogil:
        for c in range(first, last):
            stop.poll()
            _gather(points, order, bounds[c], bounds[c + 1], nearest, cell)
            _note_holes(cell)
            _look_within(nearest, cell, True)


def _largest_cell(bounds, first, last):
    most = 0
    for c in range(first, last):
        most = max(most, bounds[c + 1] - bounds[c])
    return most


def _gather(points, order, first, last, nearest, cell):
    """Copy the points order[first : last] into the cell."""
    cell.size = last - first
    for a in range(cell.size):
        cell.members[a] = order[first + a]
        cell.last[a] = nearest.distances[order[first + a], nearest.length - 1]
    for d in range(cell.n_columns):
        for a in range(cell.size):
            cell.rows[a, d] = points[d, cell.members[a]]


def _note_holes(cell):
    """Replace NaN coordinates by 0, and record where they are."""
    for a in range(cell.size):
        cell.empty[a] = True
        for d in range(cell.n_columns):
            if math.isnan(cell.rows[a, d]):
                cell.rows[a, d] = 0.0
                cell.seen[a, d] = 0.0
            else:
                cell.seen[a, d] = 1.0
                cell.empty[a] = False


def _look_within(nearest, cell, holes):
    """Compare every pair of a cell.

    A tile of points, which stays in the cache, is compared with all earlier points and with itself, so that every point sees
    the others in order.
    """
    start = 0
    while start < cell.size:
        end = min(start + TILE, cell.size)
        _set_tile(cell, start, end, holes)
        for a in range(end - 1):
            if holes:
                _set_squares_with_holes(cell, a, start)
            else:
                _set_squares(cell, a)
            if a >= start or _any_nearer(cell, a, start):
                for b in range(max(start, a + 1), end):
                    _show(nearest, cell, a, b, cell.squares[b - start])
        start = end


def _set_tile(cell, start, end, holes):
    """Copy some points of the cell side by side; entries after the last point are infinitely far away."""
    for d in range(cell.n_columns):
        for b in range(end - start):
            cell.tile[d, b] = cell.rows[start + b, d]
        for b in range(end - start, TILE):
            cell.tile[d, b] = 0.0 if holes else math.inf
    if holes:
        for d in range(cell.n_columns):
            for b in range(end - start):
                cell.tile_seen[d, b] = cell.seen[start + b, d]
            for b in range(end - start, TILE):
                cell.tile_seen[d, b] = 0.0


def _set_squares(cell, a):
    """Compute the distances of all points of the tile to one point of the cell."""
    squares = [0.0] * 32
    for d in range(cell.n_columns):
        x = cell.rows[a, d]
        for b in range(32):
            gap = cell.tile[d, b] - x
            squares[b] += gap * gap
    for b in range(32):
        cell.squares[b] = squares[b] / cell.n_columns


def _set_squares_with_holes(cell, a, start):
    squares = [0.0] * 32
    shared = [0.0] * 32
    for d in range(cell.n_columns):
        if cell.seen[a, d]:
            x = cell.rows[a, d]
            for b in range(32):
                gap = (cell.tile[d, b] - x) * cell.tile_seen[d, b]
                squares[b] += gap * gap
                shared[b] += cell.tile_seen[d, b]
    far = math.inf
    for b in range(32):
        cell.squares[b] = squares[b] / shared[b] if shared[b] > 0 else far
    # Without a common coordinate nothing keeps two points from merging at once, but that would fill the lists with those that
    # are NaN throughout; these are near one another.
    if cell.empty[a]:
        for b in range(32):
            if cell.empty[start + b]:
                cell.squares[b] = 0.0


def _any_nearer(cell, a, start):
    """Return whether any point of the tile is nearer to another point than the worst entry on the list of either."""
    any_nearer = 0
    for b in range(32):
        any_nearer |= (cell.squares[b] < cell.last[a]) | (cell.squares[b] < cell.last[start + b])
    return any_nearer != 0


def _show(nearest, cell, a, b, distance):
    """Offer two points of a cell to each other's lists."""
    if distance < cell.last[a]:
        _insert_neighbor(nearest, cell.members[a], distance, cell.members[b])
        cell.last[a] = nearest.distances[cell.members[a], nearest.length - 1]
    if distance < cell.last[b]:
        _insert_neighbor(nearest, cell.members[b], distance, cell.members[a])
        cell.last[b] = nearest.distances[cell.members[b], nearest.length - 1]


def _insert_neighbor(nearest, point, distance, neighbor):
    """Insert a neighbour into the list of a point, unless it is there already."""
    known = 0
    for q in range(nearest.length):
        known |= nearest.neighbors[point, q] == neighbor
    if known:
        return
    q = nearest.length - 1
    while q > 0 and nearest.distances[point, q - 1] > distance:
        nearest.distances[point, q] = nearest.distances[point, q - 1]
        nearest.neighbors[point, q] = nearest.neighbors[point, q - 1]
        q -= 1
    nearest.distances[point, q] = distance
    nearest.neighbors[point, q] = neighbor


def insert_neighbors(members, squares, places, distances, neighbors):
    """Insert the nearest of each member among the members, nearest first, into its list where they are nearer."""
    nearest = Nearest(distances, neighbors)
    with cython.nogil:
        for a in range(members.shape[0]):
            point = members[a]
            for q in range(squares.shape[1]):
                if places[a, q] < 0 or not squares[a, q] < nearest.distances[point, nearest.length - 1]:
                    break
                _insert_neighbor(nearest, point, squares[a, q], members[places[a, q]])


def least_distances(points, probes, least, first, last):
    """Compute the distance of some points to the nearest of all others, rounded as in the lists; threads can share the points."""
    block = Block()
    with cython.nogil:
        for p in range(first, last):
            stop.poll()
            least[p] = _least_distance(points, probes[p], block)


def _least_distance(points, point, block):
    least, one, none = math.inf, 1.0, 0.0
    start = 0
    while start < points.shape[1]:
        size = min(BLOCK, points.shape[1] - start)
        for j in range(size):
            block.squares[j] = 0.0
            block.shared[j] = 0.0
        for d in range(points.shape[0]):
            x = points[d, point]
            if not math.isnan(x):
                for j in range(size):
                    gap = points[d, start + j] - x
                    block.squares[j] += gap * gap if gap == gap else none
                    block.shared[j] += one if gap == gap else none
        for j in range(size):
            if start + j != point and block.shared[j] > 0:
                least = min(least, block.squares[j] / block.shared[j])
        start += size
    return least


def fill_holes(points, neighbors, filled, first, last):
    """Replace NaN coordinates by the mean over a point's neighbours that have the coordinate."""
    with cython.nogil:
        for i in range(first, last):
            for d in range(points.shape[0]):
                if math.isnan(points[d, i]):
                    total, count = 0.0, 0
                    for q in range(neighbors.shape[1]):
                        j = neighbors[i, q]
                        if j >= 0 and not math.isnan(points[d, j]):
                            total += points[d, j]
                            count += 1
                    if count > 0:
                        filled[d, i] = total / count


# -- pairs ---------------------------------------------------------------------------------------------------------------


def _pair_key(forest, i, j, limit, pair):
    """Return the best height of two lineages at rate 1, or its negative key; infinity if it is known to be above the limit."""
    younger, older = max(i, j), min(i, j)
    return best.key_up_to(forest, younger, older, op.pair_shift(forest, younger, older), limit, pair)


def _not_below(j):
    """Return the entry of a list for partner j with a key not below the one stored there; the inverse of itself."""
    return NONE - 1 - j


def _weighed(forest, lists, i, j, first, pair):
    """Return the key of j for the list of slot i, and its entry there.

    The key is searched only up to the first known key, from a position of the list on: most partners never reach the top.
    """
    while first < lists.length and lists.slots[i, first] < NONE:
        first += 1
    limit = lists.keys[i, first] if first < lists.length else math.inf
    key = _pair_key(forest, i, j, limit, pair)
    if key < math.inf:
        return key, j
    if limit < math.inf:
        return math.nextafter(max(limit, forest.height[max(i, j)]), math.inf), _not_below(j)
    return math.inf, NONE


def _empty(lists, i):
    """Remove all partners from a list."""
    for q in range(lists.length):
        lists.keys[i, q] = math.inf
        lists.slots[i, q] = NONE


def weigh_neighbors(forest, lists, neighbors, first, last):
    """Make the lists of slots first <= i < last from their neighbours; threads can share the slots."""
    pair = op.Pair(forest)
    with cython.nogil:
        for i in range(first, last):
            stop.poll()
            _empty(lists, i)
            for q in range(neighbors.shape[1]):
                j = neighbors[i, q]
                if j >= 0:
                    key, held = _weighed(forest, lists, i, j, 0, pair)
                    best.insert_partner(lists.keys, lists.slots, i, lists.length, key, held)


def best_keys(forest, n, probes, keys, first, last):
    """Compute the key of the best partner of some slots among the first n; threads can share the slots."""
    pair = op.Pair(forest)
    with cython.nogil:
        for p in range(first, last):
            stop.poll()
            keys[p] = math.inf
            for j in range(n):
                if j != probes[p]:
                    keys[p] = min(keys[p], _pair_key(forest, probes[p], j, keys[p], pair))


# -- a heap of slots -----------------------------------------------------------------------------------------------------


def _before(lists, a, b):
    key_a, key_b = lists.keys[a, 0], lists.keys[b, 0]
    if key_a != key_b:
        return key_a < key_b
    slot_a, slot_b = lists.slots[a, 0], lists.slots[b, 0]
    old_a, old_b = min(a, slot_a), min(b, slot_b)
    return old_a < old_b or (old_a == old_b and max(a, slot_a) < max(b, slot_b))


def _sift(lists, at):
    """Move the slot at a position of the heap to where it belongs."""
    slot = lists.heap[at]
    while at > 0 and _before(lists, slot, lists.heap[(at - 1) // 2]):
        above = (at - 1) // 2
        lists.heap[at] = lists.heap[above]
        lists.place[lists.heap[at]] = at
        at = above
    size = lists.counts[2]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _before(lists, lists.heap[child + 1], lists.heap[child]):
            child += 1
        if not _before(lists, lists.heap[child], slot):
            break
        lists.heap[at] = lists.heap[child]
        lists.place[lists.heap[at]] = at
        at = child
    lists.heap[at] = slot
    lists.place[slot] = at


def _remove(lists, slot):
    lists.counts[2] -= 1
    last, at = lists.heap[lists.counts[2]], lists.place[slot]
    if last != slot:
        lists.heap[at] = last
        lists.place[last] = at
        _sift(lists, at)


def start_heap(lists):
    """Put all live slots, which come first, into the heap."""
    with cython.nogil:
        for i in range(lists.counts[1]):
            lists.heap[i] = i
            lists.place[i] = i
            lists.counts[2] = i + 1
            _sift(lists, i)


# -- merging -------------------------------------------------------------------------------------------------------------


def _heir(lists, slot):
    """Return the live lineage that contains a slot."""
    while lists.heir[slot] != slot:
        lists.heir[slot] = lists.heir[lists.heir[slot]]
        slot = lists.heir[slot]
    return slot


def _next_pair(forest, lists, pair):
    """Return the pair that merges next, older slot first, and its key; NONE for both when the lists are exhausted."""
    while True:
        i = lists.heap[0]
        j = lists.slots[i, 0]
        if j == NONE:
            return NONE, NONE, math.inf
        if j >= 0 and lists.heir[j] == j:
            return min(i, j), max(i, j), lists.keys[i, 0]
        # a partner that is dead is replaced by what it has become part of, and keys that are not known are looked for
        j = _heir(lists, j if j >= 0 else _not_below(j))
        key, held = _weighed(forest, lists, i, j, 1, pair)
        q = 0
        while q + 1 < lists.length and lists.keys[i, q + 1] < key:
            lists.keys[i, q] = lists.keys[i, q + 1]
            lists.slots[i, q] = lists.slots[i, q + 1]
            q += 1
        lists.keys[i, q] = key
        lists.slots[i, q] = held
        _sift(lists, 0)


def _inherit(forest, lists, parent, new, pair):
    """Add the partners of one of its parts to the list of a new lineage."""
    for q in range(lists.length):
        j = lists.slots[parent, q]
        if j == NONE:
            break
        j = _heir(lists, j if j >= 0 else _not_below(j))
        if j != new and lists.seen[j] != new:
            lists.seen[j] = new
            key, held = _weighed(forest, lists, new, j, 0, pair)
            best.insert_partner(lists.keys, lists.slots, new, lists.length, key, held)


def neighbor_merges(forest, lists, goal, first, last, children, heights):
    """Merge pairs by `rate1` along the lists, merges first <= k < last, down to `goal` live lineages; return the next k."""
    pair = op.Pair(forest)
    with cython.nogil:
        reached = _neighbor_merges(forest, lists, goal, first, last, children, heights, pair)
    return reached


def _neighbor_merges(forest, lists, goal, first, last, children, heights, pair):
    n = children.shape[0] + 1
    for k in range(first, last):
        stop.poll()
        if lists.counts[1] <= goal:
            return k
        i, j, h = _next_pair(forest, lists, pair)
        if i == NONE:
            return k
        h = max(h, heights[n + k - 1])  # a pair that was overlooked in an earlier round comes too late
        children[k, 0] = lists.node[i]
        children[k, 1] = lists.node[j]
        heights[n + k] = h
        new = lists.counts[0]
        op.merge(forest, i, j, h, new, pair)
        forest.height[new] = h
        if forest.noisy:
            op.set_log_norm(forest, new, pair)
        lists.counts[0] += 1
        lists.counts[1] -= 1
        lists.node[new] = n + k
        lists.heir[i] = new
        lists.heir[j] = new
        lists.heir[new] = new
        _empty(lists, new)
        _inherit(forest, lists, i, new, pair)
        _remove(lists, i)
        _inherit(forest, lists, j, new, pair)
        _remove(lists, j)
        lists.heap[lists.counts[2]] = new
        lists.counts[2] += 1
        _sift(lists, lists.counts[2] - 1)
    return last


def close_up(forest, lists):
    """Move the live lineages to the front, in order."""
    target = 0
    with cython.nogil:
        for i in range(lists.counts[0]):
            if lists.heir[i] == i:
                if target != i:
                    op.move(forest, i, target)
                    forest.height[target] = forest.height[i]
                    lists.node[target] = lists.node[i]
                target += 1
        lists.counts[0] = target
        for i in range(lists.heir.shape[0]):
            lists.heir[i] = i
            lists.seen[i] = NONE
