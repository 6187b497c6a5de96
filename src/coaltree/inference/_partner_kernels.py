"""Who is each lineage's most recent partner? The bookkeeping that makes `rate1` cost ``n^2`` pairs in all.

Every pair belongs to its younger lineage, so a lineage's candidates are the ones that lived when it appeared: they only
ever die, none is added. A short sorted list of its best partners, made once, therefore stays right until all of
them are dead; only then is the lineage scanned again, and only if it comes to the top. Slots stand in order of age,
so the youngest is the last one, and are closed up when an eighth of them is dead.

The smallest (height, older slot, younger slot) over all lineages is kept at the top of a tournament tree. With noise, a
pair that would have liked to merge before its younger lineage appeared has a negative number instead, see `block_heights`;
it merges at once, so that heights never fall from merge to merge.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import Operation, inlined, jit, kernel
from ..process import operations as op
from ..process._brownian_kernels import CompleteForest
from . import _categorical_pair_kernels, _stationary_pair_kernels  # noqa: F401  supply their own heights
from ._pair_kernels import LARGEST_BLOCK, block_heights, insert_partner
from ._space_kernels import Space, build_space, new_space, renumber_space, replace_in_space, scan_space

LIST_LENGTH = 5
NONE = -1  # ends a list that holds every candidate there is
STALE = -2  # ends a full list: there may be more, at this height or above


class Partners(NamedTuple):
    """Live lineages by slot and their lists of best partners."""

    node: NDArray[np.intp]  # (slots,), number in the tree
    live: NDArray[np.bool_]  # (slots,)
    heights: NDArray[np.float64]  # (slots, LIST_LENGTH + 1), ascending
    slots: NDArray[np.intp]  # (slots, LIST_LENGTH + 1), partners, then NONE or STALE
    place: NDArray[np.intp]  # (slots,), first entry of the list not known to be dead
    winners: NDArray[np.intp]  # (2 * leaves of the tournament at most,), a slot each
    counts: NDArray[np.intp]  # [slots in use, live ones, leaves of the tournament]
    space: Space  # where lineages are, for those kinds of messages that are looked for in space


def new_partners(forest: Any, n: int) -> Partners:
    """Return empty lists for n leaves."""
    n_columns = len(forest.y) if in_space(forest) else 0
    capacity = slots_for(n)
    size = 1 << max(capacity - 1, 1).bit_length()
    return Partners(
        node=np.arange(capacity),
        live=np.arange(capacity) < n,
        heights=np.full((capacity, LIST_LENGTH + 1), math.inf),
        slots=np.full((capacity, LIST_LENGTH + 1), NONE),
        place=np.zeros(capacity, dtype=np.intp),
        winners=np.zeros(2 * size, dtype=np.intp),
        counts=np.array([n, n, size]),
        space=new_space(n, capacity, n_columns),
    )


def in_space(forest: Any) -> bool:
    """Return whether the lineages' partners are looked for in space, most being ruled out many at a time."""
    return isinstance(forest, CompleteForest)


def slots_for(n: int) -> int:
    """Return how many slots a forest of n leaves needs, with room for lineages that await closing up."""
    return n + n // 8 + 2


@inlined
def _scan_blocks(forest, partners, i, keys, slots, pair, block):
    """Fill the list of slot i's best partners among the older ones; `pair` and `block` are scratch."""
    first, size = 0, len(keys)
    # no height is below the younger one's own, but where there is noise there are ranks
    while first < i and (keys[-1] > forest.height[i] or op.noisy(forest)):
        last = min(first + size, i)
        block_heights(forest, i, first, last, partners.live, keys, pair, block)
        for j in range(first, last):
            if block[j - first] < keys[-1]:
                insert_partner(keys, slots, block[j - first], j)
        first, size = last, LARGEST_BLOCK


def _look_in_space(forest, partners, i, keys, slots):
    """Do the same by boxes, if that is worth while; return whether it was done."""


def _no_space(forest, partners, i, keys, slots):
    return False


LOOK_IN_SPACE = Operation(_look_in_space, default=_no_space)
look_in_space = LOOK_IN_SPACE.function


@LOOK_IN_SPACE.supply(CompleteForest)
def _(forest, partners, i, keys, slots):
    if partners.space.built[2]:
        scan_space(forest, partners.space, i, keys, slots)
    return partners.space.built[2] > 0


def _enter(forest, partners):
    """Note where all live lineages are."""


def _enter_nothing(forest, partners):
    pass


def _succeed(forest, partners, i, j, new):
    """Note that a slot has taken the place of two."""


def _succeed_nowhere(forest, partners, i, j, new):
    pass


def _renumber(forest, partners, new_slot, n):
    """Note that the live lineages, n of them, have new slots, in the same order."""


def _renumber_nothing(forest, partners, new_slot, n):
    pass


ENTER = Operation(_enter, default=_enter_nothing)
SUCCEED = Operation(_succeed, default=_succeed_nowhere)
RENUMBER = Operation(_renumber, default=_renumber_nothing)
enter = ENTER.function
succeed = SUCCEED.function
renumber = RENUMBER.function


@ENTER.supply(CompleteForest)
def _(forest, partners):
    build_space(forest, partners.space, partners.counts[0])


@SUCCEED.supply(CompleteForest)
def _(forest, partners, i, j, new):
    if partners.space.built[2]:
        replace_in_space(forest, partners.space, i, j, new)


@RENUMBER.supply(CompleteForest)
def _(forest, partners, new_slot, n):
    if 2 * n < partners.space.built[0]:
        build_space(forest, partners.space, n)
    elif partners.space.built[2]:
        renumber_space(partners.space, new_slot)


@kernel
def enter_all(forest, partners):
    """Make it known where all live lineages are, the first slots; to be done before any list is made."""
    enter(forest, partners)


@kernel
def find_partners(forest, partners, which):
    """Make the lists of some slots; they are independent, so threads may share them."""
    pair = np.empty(op.pair_size(forest))
    block = np.empty(LARGEST_BLOCK)
    for i in which:
        heights, slots = partners.heights[i], partners.slots[i]
        heights[:] = math.inf
        slots[:] = NONE
        partners.place[i] = 0
        keys, best = heights[:LIST_LENGTH], slots[:LIST_LENGTH]
        if not look_in_space(forest, partners, i, keys, best):
            _scan_blocks(forest, partners, i, keys, best, pair, block)
        if slots[LIST_LENGTH - 1] >= 0:
            heights[LIST_LENGTH] = heights[LIST_LENGTH - 1]
            slots[LIST_LENGTH] = STALE


@jit
def _beats(partners, a, b):
    place_a, place_b = partners.place[a], partners.place[b]
    height_a, height_b = partners.heights[a, place_a], partners.heights[b, place_b]
    if height_a != height_b:
        return height_a < height_b
    slot_a, slot_b = partners.slots[a, place_a], partners.slots[b, place_b]
    return slot_a < slot_b or (slot_a == slot_b and a < b)


@kernel
def start_tournament(partners):
    """Play the whole tournament, with room for those that follow until slots are closed up."""
    size = 2
    while size < partners.counts[0] + partners.counts[0] // 8 + 2:
        size *= 2
    partners.counts[2] = size
    for leaf in range(size):
        partners.winners[size + leaf] = min(leaf, len(partners.node) - 1)
    for game in range(size - 1, 0, -1):
        a, b = partners.winners[2 * game], partners.winners[2 * game + 1]
        partners.winners[game] = a if _beats(partners, a, b) else b


@jit
def _replay_games(partners, slot):
    game = (partners.counts[2] + slot) // 2
    while game > 0:
        a, b = partners.winners[2 * game], partners.winners[2 * game + 1]
        partners.winners[game] = a if _beats(partners, a, b) else b
        game //= 2


@inlined
def most_recent(forest, partners):
    """Return the pair that merges next: older slot, younger slot, height; NONE for both if no height is a number."""
    while True:
        i = partners.winners[1]
        place = partners.place[i]
        j = partners.slots[i, place]
        if j == NONE:
            return NONE, NONE, math.inf
        if j == STALE:
            find_partners(forest, partners, np.array([i]))
        elif not partners.live[j]:
            partners.place[i] += 1
        else:
            return j, i, partners.heights[i, place]
        _replay_games(partners, i)


@inlined
def replace_pair(forest, partners, i, j, node):
    """Let slots i and j die and the lineage in the next free slot, already merged, live; its list is still to be made."""
    new = _enter_lineage(partners, i, j, node)
    succeed(forest, partners, j, i, new)  # where the younger was: a lineage that takes in many rows stays in one place
    if partners.counts[0] - partners.counts[1] > partners.counts[0] // 8:
        _close_up(forest, partners)


# What does not depend on the messages is compiled once for all of their kinds.


@jit
def _enter_lineage(partners, i, j, node):
    """Let slots i and j die, and a lineage with an empty list live in the next free slot; return that."""
    new = partners.counts[0]
    partners.counts[0] += 1
    partners.counts[1] -= 1
    partners.node[new] = node
    partners.live[i] = partners.live[j] = False
    partners.live[new] = True
    for dead in (i, j):
        partners.heights[dead, :] = math.inf
        _replay_games(partners, dead)
    partners.heights[new, :] = -math.inf
    partners.slots[new, :] = STALE
    partners.place[new] = 0
    _replay_games(partners, new)
    return new


@inlined
def _close_up(forest, partners):
    """Move the live lineages to the front, in order, and the dead ones out of the lists."""
    used = partners.counts[0]
    new_slot = _close_up_lists(partners)
    for i in range(used):
        target = new_slot[i]
        if target != NONE and target != i:
            op.move(forest, i, target)
            forest.height[target] = forest.height[i]
    renumber(forest, partners, new_slot, partners.counts[0])
    start_tournament(partners)


@jit
def _close_up_lists(partners):
    """Close up all but the messages; return the new slot of each, NONE for the dead."""
    used = partners.counts[0]
    new_slot = np.full(used, NONE)
    target = 0
    for i in range(used):
        if not partners.live[i]:
            continue
        new_slot[i] = target
        partners.node[target] = partners.node[i]
        kept = 0
        for k in range(partners.place[i], LIST_LENGTH):
            j = partners.slots[i, k]
            if j >= 0 and partners.live[j]:
                partners.heights[target, kept] = partners.heights[i, k]
                partners.slots[target, kept] = new_slot[j]  # an older slot: it has moved already
                kept += 1
        partners.heights[target, kept:] = partners.heights[i, LIST_LENGTH]
        partners.slots[target, kept:] = partners.slots[i, LIST_LENGTH]
        partners.place[target] = 0
        target += 1
    # `live` is read above for old slots, so it is rewritten last.
    partners.live[:target] = True
    partners.live[target:] = False
    partners.heights[target:used, :] = math.inf
    partners.counts[0] = target
    return new_slot
