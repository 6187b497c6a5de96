"""Near neighbours among many points, and `rate1` along lists of them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import inlined, jit, kernel
from ..process import operations as op
from . import _categorical_pair_kernels, _stationary_pair_kernels  # noqa: F401  supply their own heights
from ._pair_kernels import insert_partner, key_up_to, pair_shift

NONE = -1


class Lists(NamedTuple):
    """Lineages by slot, in order of age, each with a list of partners that it may merge with."""

    node: NDArray[np.intp]  # (slots,), number in the tree
    heir: NDArray[
        np.intp
    ]  # (slots,), the lineage that a dead one became part of, or one on the way to it; a live one itself
    keys: NDArray[
        np.float64
    ]  # (slots, length), ascending: heights, or ranks where a pair merges at once; infinite at the end
    slots: NDArray[np.intp]  # (slots, length), the partners, NONE at the end; see `_not_below`
    seen: NDArray[np.intp]  # (slots,), the last lineage that was given this one as a partner
    heap: NDArray[np.intp]  # (slots,), slots, the one with the smallest key on top
    place: NDArray[np.intp]  # (slots,), where a slot stands in the heap
    counts: NDArray[np.intp]  # [slots in use, live ones, slots in the heap]


def new_lists(n: int, length: int) -> Lists:
    """Return empty lists for n leaves, with room for half as many merges."""
    capacity = slots_for(n)
    return Lists(
        node=np.arange(capacity),
        heir=np.arange(capacity),
        keys=np.full((capacity, length), math.inf),
        slots=np.full((capacity, length), NONE),
        seen=np.full(capacity, NONE),
        heap=np.zeros(capacity, dtype=np.intp),
        place=np.zeros(capacity, dtype=np.intp),
        counts=np.array([n, n, 0]),
    )


def slots_for(n: int) -> int:
    """Return how many slots a forest of n leaves needs for a round."""
    return n + (n + 1) // 2 + 2


# -- neighbours ----------------------------------------------------------------------------------------------------------


@kernel
def neighbours_in_cells(points, order, bounds, distances, neighbours, first, last):
    """Look at all pairs within each cell of points, order[bounds[c] : bounds[c + 1]] for first <= c < last.

    Every point keeps the nearest that it has ever been shown, by their squared distance; a point is in one cell only, so
    threads may share the cells.
    """
    n_columns = points.shape[0]
    most = 0
    for c in range(first, last):
        most = max(most, bounds[c + 1] - bounds[c])
    cell = np.empty((n_columns, most), dtype=np.float32)
    squares = np.empty(most, dtype=np.float32)
    for c in range(first, last):
        members = order[bounds[c] : bounds[c + 1]]
        size = len(members)
        for d in range(n_columns):
            for a in range(size):
                cell[d, a] = points[d, members[a]]
        for a in range(size):
            squares[:size] = 0.0
            for d in range(n_columns):
                x = cell[d, a]
                row = cell[d, :size]
                for b in range(size):
                    gap = row[b] - x
                    squares[b] += gap * gap
            squares[:size] /= np.float32(n_columns)
            _keep_nearest(distances[members[a]], neighbours[members[a]], squares, members, a)


@kernel
def neighbours_with_holes(points, order, bounds, distances, neighbours, first, last):
    """The same for points with coordinates that are NaN: distances are averages over the coordinates that two points share."""
    n_columns = points.shape[0]
    most = 0
    for c in range(first, last):
        most = max(most, bounds[c + 1] - bounds[c])
    cell, seen = np.empty((n_columns, most), dtype=np.float32), np.empty((n_columns, most), dtype=np.float32)
    squares, shared = np.empty(most, dtype=np.float32), np.empty(most, dtype=np.float32)
    empty = np.empty(most, dtype=np.bool_)
    for c in range(first, last):
        members = order[bounds[c] : bounds[c + 1]]
        size = len(members)
        empty[:size] = True
        for d in range(n_columns):
            for a in range(size):
                x = points[d, members[a]]
                seen[d, a] = not math.isnan(x)
                empty[a] &= math.isnan(x)
                cell[d, a] = x if seen[d, a] else 0.0
        for a in range(size):
            squares[:size] = 0.0
            shared[:size] = 0.0
            for d in range(n_columns):
                if seen[d, a]:
                    x = cell[d, a]
                    row, own = cell[d, :size], seen[d, :size]
                    for b in range(size):
                        gap = (row[b] - x) * own[b]
                        squares[b] += gap * gap
                        shared[b] += own[b]
            for b in range(size):
                # Without a common coordinate nothing keeps two points from merging at once, but that would fill the lists with
                # those that are NaN throughout; these are near one another.
                if shared[b] == 0:
                    squares[b] = 0.0 if empty[a] and empty[b] else math.inf
                else:
                    squares[b] /= shared[b]
            _keep_nearest(distances[members[a]], neighbours[members[a]], squares, members, a)


@kernel
def least_distances(points, probes, least, first, last):
    """Find the distance of some points to the nearest of all others, as it is kept; threads may share the probes."""
    n_columns, n = points.shape
    squares, shared = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32)
    for p in range(first, last):
        squares[:] = 0.0
        shared[:] = 0.0
        for d in range(n_columns):
            x, row = points[d, probes[p]], points[d]
            if not math.isnan(x):
                for j in range(n):
                    gap = row[j] - x
                    if not math.isnan(gap):
                        squares[j] += gap * gap
                        shared[j] += 1
        least[p] = math.inf
        for j in range(n):
            if j != probes[p] and shared[j] > 0:
                least[p] = min(least[p], squares[j] / shared[j])


@kernel
def fill_holes(points, neighbours, filled, first, last):
    """Put the mean over a point's neighbours where a coordinate is NaN, if any of them has it."""
    for i in range(first, last):
        for d in range(points.shape[0]):
            if math.isnan(points[d, i]):
                total, count = 0.0, 0
                for j in neighbours[i]:
                    if j >= 0 and not math.isnan(points[d, j]):
                        total += points[d, j]
                        count += 1
                if count > 0:
                    filled[d, i] = total / count


@inlined
def _keep_nearest(distances, neighbours, squares, members, own):
    """Put those members of a cell that are nearer than what a point has into its list."""
    for b in range(len(members)):
        if squares[b] < distances[-1] and b != own:
            _keep(distances, neighbours, squares[b], members[b])


@jit
def _keep(distances, neighbours, distance, neighbour):
    """Put a neighbour into its place, unless it has one."""
    for q in range(len(neighbours)):
        if neighbours[q] == neighbour:
            return
    q = len(neighbours) - 1
    while q > 0 and distances[q - 1] > distance:
        distances[q], neighbours[q] = distances[q - 1], neighbours[q - 1]
        q -= 1
    distances[q], neighbours[q] = distance, neighbour


@kernel
def keep_found(members, found, places, distances, neighbours):
    """Put the nearest of each member among the members themselves, nearest first, into its list where they are nearer."""
    for a in range(len(members)):
        own = members[a]
        for q in range(found.shape[1]):
            if places[a, q] < 0 or not found[a, q] < distances[own, -1]:
                break
            _keep(distances[own], neighbours[own], found[a, q], members[places[a, q]])


# -- pairs ---------------------------------------------------------------------------------------------------------------


@jit
def pair_key(forest, i, j, limit, pair):
    """Return the best height of two lineages at rate 1, or its rank; infinity if that is certain to be above the limit."""
    i, j = max(i, j), min(i, j)  # i is the younger one
    return key_up_to(forest, i, j, pair_shift(forest, i, j), limit, pair)


@jit
def _not_below(j):
    """Return how a list holds partner j whose key is only known not to be below the one that stands there; undoes itself."""
    return NONE - 1 - j


@jit
def _weighed(forest, lists, i, j, first, pair):
    """Return the key of j for the list of slot i, and how it is to be held there.

    The key is looked for only up to the first one that is known, from a place of the list on: most partners never come to
    the top.
    """
    keys, slots = lists.keys[i], lists.slots[i]
    while first < len(slots) and slots[first] < NONE:
        first += 1
    limit = keys[first] if first < len(slots) else math.inf
    key = pair_key(forest, i, j, limit, pair)
    if key < math.inf:
        return key, j
    if limit < math.inf:
        return np.nextafter(max(limit, forest.height[max(i, j)]), math.inf), _not_below(j)
    return math.inf, NONE


@kernel
def weigh_neighbours(forest, lists, neighbours, first, last):
    """Make the lists of slots first <= i < last from their neighbours; threads may share the slots."""
    pair = np.empty(op.pair_size(forest))
    for i in range(first, last):
        lists.keys[i, :] = math.inf
        lists.slots[i, :] = NONE
        for j in neighbours[i]:
            if j >= 0:
                key, held = _weighed(forest, lists, i, j, 0, pair)
                insert_partner(lists.keys[i], lists.slots[i], key, held)


@kernel
def best_keys(forest, n, probes, keys, first, last):
    """Find the key of some slots' best partners among the first n; threads may share the probes."""
    pair = np.empty(op.pair_size(forest))
    for p in range(first, last):
        keys[p] = math.inf
        for j in range(n):
            if j != probes[p]:
                keys[p] = min(keys[p], pair_key(forest, probes[p], j, keys[p], pair))


# -- a heap of slots -----------------------------------------------------------------------------------------------------


@jit
def _before(lists, a, b):
    key_a, key_b = lists.keys[a, 0], lists.keys[b, 0]
    if key_a != key_b:
        return key_a < key_b
    slot_a, slot_b = lists.slots[a, 0], lists.slots[b, 0]
    old_a, old_b = min(a, slot_a), min(b, slot_b)
    return old_a < old_b or (old_a == old_b and max(a, slot_a) < max(b, slot_b))


@jit
def _sift(lists, at):
    """Move the slot at a place of the heap to where it belongs."""
    heap, place = lists.heap, lists.place
    slot = heap[at]
    while at > 0 and _before(lists, slot, heap[(at - 1) // 2]):
        above = (at - 1) // 2
        heap[at] = heap[above]
        place[heap[at]] = at
        at = above
    size = lists.counts[2]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _before(lists, heap[child + 1], heap[child]):
            child += 1
        if not _before(lists, heap[child], slot):
            break
        heap[at] = heap[child]
        place[heap[at]] = at
        at = child
    heap[at] = slot
    place[slot] = at


@inlined
def _remove(lists, slot):
    lists.counts[2] -= 1
    last, at = lists.heap[lists.counts[2]], lists.place[slot]
    if last != slot:
        lists.heap[at] = last
        lists.place[last] = at
        _sift(lists, at)


@kernel
def start_heap(lists):
    """Put all live slots, which are the first ones, into the heap."""
    for i in range(lists.counts[1]):
        lists.heap[i] = lists.place[i] = i
        lists.counts[2] = i + 1
        _sift(lists, i)


# -- merging -------------------------------------------------------------------------------------------------------------


@jit
def _heir(lists, slot):
    """Return the live lineage that a slot is part of."""
    heir = lists.heir
    while heir[slot] != slot:
        heir[slot] = heir[heir[slot]]
        slot = heir[slot]
    return slot


@inlined
def next_pair(forest, lists, pair):
    """Return the pair that merges next, older slot first, and its key; NONE for both when the lists are at an end."""
    while True:
        i = lists.heap[0]
        keys, slots = lists.keys[i], lists.slots[i]
        j = slots[0]
        if j == NONE:
            return NONE, NONE, math.inf
        if j >= 0 and lists.heir[j] == j:
            return min(i, j), max(i, j), keys[0]
        # a partner that is dead is replaced by what it has become part of, and keys that are not known are looked for
        j = _heir(lists, j if j >= 0 else _not_below(j))
        key, held = _weighed(forest, lists, i, j, 1, pair)
        q = 0
        while q + 1 < len(keys) and keys[q + 1] < key:
            keys[q], slots[q] = keys[q + 1], slots[q + 1]
            q += 1
        keys[q], slots[q] = key, held
        _sift(lists, 0)


@inlined
def _inherit(forest, lists, parent, new, pair):
    """Give a new lineage the partners of one of those that it was merged from."""
    for q in range(lists.slots.shape[1]):
        j = lists.slots[parent, q]
        if j == NONE:
            break
        j = _heir(lists, j if j >= 0 else _not_below(j))
        if j != new and lists.seen[j] != new:
            lists.seen[j] = new
            key, held = _weighed(forest, lists, new, j, 0, pair)
            insert_partner(lists.keys[new], lists.slots[new], key, held)


@kernel
def neighbour_merges(forest, lists, goal, first, last, children, heights):
    """Merge pairs by `rate1` along the lists, merges first <= k < last, down to `goal` live lineages; return the next k."""
    n = len(children) + 1
    pair = np.empty(op.pair_size(forest))
    for k in range(first, last):
        if lists.counts[1] <= goal:
            return k
        i, j, h = next_pair(forest, lists, pair)
        if i == NONE:
            return k
        h = max(h, heights[n + k - 1])  # a pair that was overlooked in an earlier round comes too late
        children[k, 0], children[k, 1], heights[n + k] = lists.node[i], lists.node[j], h
        new = lists.counts[0]
        op.merge(forest, i, j, h, new)
        forest.height[new] = h
        lists.counts[0] += 1
        lists.counts[1] -= 1
        lists.node[new] = n + k
        lists.heir[i] = lists.heir[j] = lists.heir[new] = new
        lists.keys[new, :] = math.inf
        lists.slots[new, :] = NONE
        for parent in (i, j):
            _inherit(forest, lists, parent, new, pair)
            _remove(lists, parent)
        lists.heap[lists.counts[2]] = new
        lists.counts[2] += 1
        _sift(lists, lists.counts[2] - 1)
    return last


@kernel
def close_up(forest, lists):
    """Move the live lineages to the front, in order."""
    target = 0
    for i in range(lists.counts[0]):
        if lists.heir[i] == i:
            if target != i:
                op.move(forest, i, target)
                forest.height[target] = forest.height[i]
                lists.node[target] = lists.node[i]
            target += 1
    lists.counts[0] = target
    for i in range(len(lists.heir)):
        lists.heir[i] = i
    lists.seen[:] = NONE
