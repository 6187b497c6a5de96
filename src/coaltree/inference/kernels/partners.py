"""Lists of the best partners of each lineage, with which `rate1` evaluates only ``n^2`` pairs in all.

Every pair belongs to its younger lineage. The candidates of a lineage are those that were live when it appeared, so candidates
are only ever removed. A short sorted list of the best partners, made once, therefore stays valid until all of them are dead.
Only then is the lineage scanned again, and only if it reaches the top. Slots are ordered by age, the youngest last, and are
compacted when an eighth of them is dead.

A tournament tree keeps the smallest (key, older slot, younger slot) over all lineages. A key is a height. With noise, a pair
whose best height is below its younger lineage has a negative key instead, see `heights.key_up_to`; it merges at the height of
the last merge, so heights never decrease from merge to merge.
"""

from __future__ import annotations

import numpy as np

try:
    import cython
except ImportError:
    from ..._nocython import cython

from ... import _constants as const
from ... import _math as math
from ... import _stop as stop
from ...process.kernels import messages as op
from . import heights as pairs
from . import sketch as sketches
from . import space as points

NONE = -1  # ends a list that holds every candidate there is
STALE = -2  # ends a full list: there may be more, with this key or a larger one
LARGEST_BLOCK = 256  # pairs
SKETCHED_BLOCK = 2048  # pairs, where most are ruled out by their sketches

# How a block of pairs is thinned out, round by round: a pair that is shown to rise from its own height to the limit merges there
# or above. Rounds go on while they cost less than the searches they may spare (a search costs about as much as SEARCH_COST looks
# at one interval of one pair), and look in more pieces once the limit stands still.
SEARCH_COST = 30
MOST_PIECES = 4


class Partners:
    """The live lineages by slot, and their lists of best partners."""

    def __init__(self, forest, n):
        capacity = slots_for(n)
        size = 1 << max(capacity - 1, 1).bit_length()
        self.node = np.arange(capacity)  # number in the tree
        self.live = (np.arange(capacity) < n).astype(np.uint8)
        self.keys = np.full((capacity, const.LIST_LENGTH + 1), math.inf)  # ascending
        self.slots = np.full((capacity, const.LIST_LENGTH + 1), NONE)  # partners, then NONE or STALE
        self.place = np.zeros(capacity, dtype=np.intp)  # first entry of the list not known to be dead
        self.winner = np.zeros(2 * size, dtype=np.intp)  # of the games of the tournament, a slot each
        self.new_slot = np.zeros(capacity, dtype=np.intp)
        self.used = n  # slots in use
        self.n_live = n
        self.size = size  # leaves of the tournament
        n_columns = forest.n_real if forest.complete else 0
        self.space = points.Space(n, capacity, n_columns, n_columns > 0 and forest.n_brownian > 0)
        self.sketch = sketches.Sketch(forest, capacity)


def slots_for(n):
    """Return the number of slots that a forest of n lineages needs, including dead ones that are not yet compacted."""
    return n + n // 8 + 2


class Scratch:
    """The scratch memory of one thread that searches for partners."""

    def __init__(self, forest):
        self.pair = op.Pair(forest)
        self.search = points.Search(forest)
        self.glance = sketches.Glance(forest)
        self.key = np.empty(SKETCHED_BLOCK)  # of the pairs of a block
        self.unsettled = np.empty(
            SKETCHED_BLOCK, dtype=np.uint8
        )  # whose key is not known, nor known to be beyond the limit
        self.rises = np.empty(SKETCHED_BLOCK, dtype=np.uint8)
        self.shift = np.empty(SKETCHED_BLOCK)
        self.slope = np.empty(SKETCHED_BLOCK)
        self.top = np.empty(const.LIST_LENGTH)  # the smallest keys so far


# -- blocks of pairs in the general layout ---------------------------------------------------------------------------------


def _scan_slots(forest, partners, i, scratch):
    """Fill the list of the best partners of slot i among the older slots."""
    worst = const.LIST_LENGTH - 1
    first, size = 0, const.LIST_LENGTH
    # no height is below the younger one's own, but where there is noise there are ranks
    while first < i and (partners.keys[i, worst] > forest.height[i] or forest.noisy):
        last = min(first + size, i)
        _find_keys(forest, partners, i, first, last, scratch)
        for j in range(first, last):
            if scratch.key[j - first] < partners.keys[i, worst]:
                pairs.insert_partner(partners.keys, partners.slots, i, const.LIST_LENGTH, scratch.key[j - first], j)
        # where pairs cost little, a few of them first: the limit that they set spares second looks at the others
        first, size = last, min(8 * size, SKETCHED_BLOCK) if partners.sketch.n_sites else LARGEST_BLOCK


def _find_keys(forest, partners, i, first, last, scratch):
    """Compute the keys of slot i with slots first <= j < last.

    Only the smallest keys are needed: a pair that cannot be among the best of the block and of the list of slot i may get
    infinity.
    """
    n = last - first
    left = 0
    for k in range(const.LIST_LENGTH):
        scratch.top[k] = partners.keys[i, k]
    for k in range(n):
        scratch.key[k] = math.inf
        scratch.unsettled[k] = partners.live[first + k]
        left += partners.live[first + k]
        scratch.shift[k] = op.pair_shift(forest, i, first + k)
    floor = forest.height[i]
    if scratch.top[const.LIST_LENGTH - 1] < math.inf:
        above_floor = math.nextafter(floor, math.inf)
        pieces = 1
        if partners.sketch.n_sites:
            left = _search_sketched(forest, partners.sketch, i, first, n, left, above_floor, scratch)
        while SEARCH_COST * left > pieces * n and pieces <= MOST_PIECES:
            limit = scratch.top[const.LIST_LENGTH - 1]
            left = _settle_rising(forest, i, first, n, pieces, max(limit, above_floor), scratch)
            if SEARCH_COST * left <= n or limit < above_floor:
                break
            # The most promising pairs first: the lower limit that they set settles most of the others.
            for _ in range(min(const.LIST_LENGTH, left)):
                k = _least_unsettled(scratch, n)
                _find_key(forest, i, first, k, scratch)
                scratch.unsettled[k] = False
                left -= 1
            if scratch.top[const.LIST_LENGTH - 1] == limit:  # a finer look at the same interval
                pieces *= 4
    at_floor = 0
    for k in range(n):
        if scratch.unsettled[k]:
            _find_key(forest, i, first, k, scratch)
        at_floor += scratch.key[k] == floor
        if at_floor == const.LIST_LENGTH:
            break  # none can be lower, and of equals the first ones count


def _search_sketched(forest, sketch, i, first, n, left, above_floor, scratch):
    """Search the pairs that sketches leave open, the most promising first; return how many remain.

    None remains unless the limit is at slot i, or beyond the range of sketches.
    """
    while left:
        limit = max(scratch.top[const.LIST_LENGTH - 1], above_floor)
        if not sketches.reaches(forest, limit):
            break
        left = _settle_sketched(forest, sketch, i, first, n, limit, scratch)
        if limit == above_floor:
            break
        for _ in range(min(const.LIST_LENGTH, left)):
            k = _least_unsettled(scratch, n)
            scratch.unsettled[k] = False
            left -= 1
            if scratch.top[const.LIST_LENGTH - 1] < limit:
                limit = max(scratch.top[const.LIST_LENGTH - 1], above_floor)
                sketches.start(forest, sketch, i, limit, scratch.glance)
            if not sketches.slope(forest, sketch, first + k, scratch.glance) > 1.0:
                _find_key(forest, i, first, k, scratch)
    return left


def _settle_sketched(forest, sketch, i, first, n, limit, scratch):
    """Remove the pairs whose sketches prove that they rise all the way to the limit; return how many remain."""
    sketches.start(forest, sketch, i, limit, scratch.glance)
    left = 0
    for k in range(n):
        if scratch.unsettled[k]:
            scratch.slope[k] = sketches.slope(forest, sketch, first + k, scratch.glance)
            scratch.unsettled[k] = not scratch.slope[k] > 1.0
            left += scratch.unsettled[k]
    return left


def _settle_rising(forest, i, first, n, pieces, limit, scratch):
    """Remove the pairs that rise all the way to the limit; return how many remain."""
    for k in range(n):
        scratch.rises[k] = True
    low = forest.height[i]
    for piece in range(pieces):
        # towards the limit, where slopes are smallest, pieces get shorter
        high = limit if piece == pieces - 1 else 0.5 * (low + limit)
        fast = forest.fastest * high <= const.LARGEST_EXPONENT
        if fast:
            op.start_scan(forest, i, low, high, scratch.pair)
        for k in range(n):
            if not scratch.unsettled[k]:
                continue
            if fast:
                scratch.slope[k] = op.scan_slope(forest, i, first + k, low, high, scratch.shift[k], scratch.pair)
            else:
                op.load_pair(forest, i, first + k, scratch.pair)
                scratch.slope[k] = op.least_slope(forest, scratch.pair, low, high, scratch.shift[k])
            scratch.rises[k] = scratch.rises[k] and scratch.slope[k] > 1.0
        low = high
    left = 0
    for k in range(n):
        scratch.unsettled[k] = scratch.unsettled[k] and not scratch.rises[k]
        left += scratch.unsettled[k]
    return left


def _find_key(forest, i, first, k, scratch):
    """Compute the key of one pair if it may be among the smallest so far, and insert it."""
    key = pairs.key_within(forest, i, first + k, scratch.shift[k], scratch.top[const.LIST_LENGTH - 1], scratch.pair)
    scratch.key[k] = key
    q = const.LIST_LENGTH
    while q > 0 and key < scratch.top[q - 1]:
        q -= 1
        if q + 1 < const.LIST_LENGTH:
            scratch.top[q + 1] = scratch.top[q]
    if q < const.LIST_LENGTH:
        scratch.top[q] = key


def _least_unsettled(scratch, n):
    """Return the index of the smallest slope among the pairs that are still open."""
    best = -1
    for k in range(n):
        if scratch.unsettled[k] and (best < 0 or scratch.slope[k] < scratch.slope[best]):
            best = k
    return best


# -- lists -----------------------------------------------------------------------------------------------------------------


def enter_all(forest, partners, scratch):
    """Register the positions of all live lineages, the first slots, before any list is made."""
    with cython.nogil:
        if forest.complete:
            points.build(forest, partners.space, partners.used, scratch.search, scratch.pair)
        if partners.sketch.n_sites:
            for i in range(partners.used):
                sketches.enter(forest, partners.sketch, i, scratch.glance)


def find_partners(forest, partners, which, scratch):
    """Make the lists of some slots. They are independent, so threads can share the work, each with its own scratch memory."""
    with cython.nogil:
        _find_partners(forest, partners, which, scratch)


def _find_partners(forest, partners, which, scratch):
    n = which.shape[0]
    # rows that are looked at in one pass
    at_once = 1 if not forest.complete or partners.space.boxes else scratch.search.row.shape[0]
    first = 0
    while first < n:
        stop.poll()
        last = min(first + at_once, n)
        if forest.complete:
            scratch.search.count = last - first
            for t in range(scratch.search.count):
                scratch.search.row[t] = which[first + t]
            _find_lists_in_space(forest, partners, scratch)
        else:
            _find_list(forest, partners, which[first], scratch)
        first = last


def _find_list(forest, partners, i, scratch):
    """Make the list of one slot."""
    if forest.complete:
        scratch.search.count = 1
        scratch.search.row[0] = i
        _find_lists_in_space(forest, partners, scratch)
        return
    for k in range(const.LIST_LENGTH + 1):
        partners.keys[i, k] = math.inf
        partners.slots[i, k] = NONE
    _scan_slots(forest, partners, i, scratch)
    _close_list(partners, i)


def _find_lists_in_space(forest, partners, scratch):
    points.scan(forest, partners.space, scratch.search, scratch.pair)
    for t in range(scratch.search.count):
        i = scratch.search.row[t]
        for k in range(const.LIST_LENGTH):
            partners.keys[i, k] = scratch.search.keys[t, k]
            partners.slots[i, k] = scratch.search.slots[t, k]
        partners.keys[i, const.LIST_LENGTH] = math.inf
        partners.slots[i, const.LIST_LENGTH] = NONE
        _close_list(partners, i)


def _close_list(partners, i):
    partners.place[i] = 0
    if partners.slots[i, const.LIST_LENGTH - 1] >= 0:
        partners.keys[i, const.LIST_LENGTH] = partners.keys[i, const.LIST_LENGTH - 1]
        partners.slots[i, const.LIST_LENGTH] = STALE


# -- the tournament --------------------------------------------------------------------------------------------------------


def _beats(partners, a, b):
    place_a, place_b = partners.place[a], partners.place[b]
    key_a, key_b = partners.keys[a, place_a], partners.keys[b, place_b]
    if key_a != key_b:
        return key_a < key_b
    slot_a, slot_b = partners.slots[a, place_a], partners.slots[b, place_b]
    return slot_a < slot_b or (slot_a == slot_b and a < b)


def start_tournament(partners):
    """Play the whole tournament, with capacity for the lineages that appear before slots are compacted."""
    size = 2
    while size < partners.used + partners.used // 8 + 2:
        size *= 2
    partners.size = size
    last = partners.node.shape[0] - 1
    for leaf in range(size):
        partners.winner[size + leaf] = min(leaf, last)
    for game in range(size - 1, 0, -1):
        a, b = partners.winner[2 * game], partners.winner[2 * game + 1]
        partners.winner[game] = a if _beats(partners, a, b) else b


def _replay_games(partners, slot):
    game = (partners.size + slot) // 2
    while game > 0:
        a, b = partners.winner[2 * game], partners.winner[2 * game + 1]
        partners.winner[game] = a if _beats(partners, a, b) else b
        game //= 2


def _most_recent(forest, partners, scratch):
    """Return the slot whose best pair merges next, with its partner first on its list; NONE if no key is a number."""
    while True:
        i = partners.winner[1]
        j = partners.slots[i, partners.place[i]]
        if j == NONE:
            return NONE
        if j == STALE:
            _find_list(forest, partners, i, scratch)
        elif not partners.live[j]:
            partners.place[i] += 1
        else:
            return i
        _replay_games(partners, i)


# -- merging ---------------------------------------------------------------------------------------------------------------


def rate1_merges(forest, partners, first, last, children, heights, scratch):
    """Repeatedly merge the pair with the smallest key, eq. (7.1); write merges first <= k < last to children and heights."""
    with cython.nogil:
        _rate1_merges(forest, partners, first, last, children, heights, scratch)


def _rate1_merges(forest, partners, first, last, children, heights, scratch):
    n = children.shape[0] + 1
    for k in range(first, last):
        stop.poll()
        i = _most_recent(forest, partners, scratch)
        if i == NONE:
            for node in range(n + k, heights.shape[0]):
                heights[node] = math.nan
            break
        older = partners.slots[i, partners.place[i]]
        h = max(partners.keys[i, partners.place[i]], heights[n + k - 1])
        children[k, 0], children[k, 1], heights[n + k] = partners.node[older], partners.node[i], h
        op.merge(forest, older, i, h, partners.used, scratch.pair)
        forest.height[partners.used] = h
        if forest.noisy:
            op.set_log_norm(forest, partners.used, scratch.pair)
        _replace_pair(forest, partners, older, i, n + k, scratch)


def _replace_pair(forest, partners, i, j, node, scratch):
    """Mark slots i and j as dead and the lineage in the next free slot, already merged, as live; its list is not made yet."""
    new = partners.used
    partners.used = new + 1
    partners.n_live = partners.n_live - 1
    partners.node[new] = node
    partners.live[i] = partners.live[j] = False
    partners.live[new] = True
    for k in range(const.LIST_LENGTH + 1):
        partners.keys[i, k] = partners.keys[j, k] = math.inf
        partners.keys[new, k], partners.slots[new, k] = -math.inf, STALE
    partners.place[new] = 0
    _replay_games(partners, i)
    _replay_games(partners, j)
    _replay_games(partners, new)
    if forest.complete:  # where the younger was: a lineage that takes in many rows stays in one place
        points.replace(forest, partners.space, j, i, new)
    if partners.sketch.n_sites:
        sketches.enter(forest, partners.sketch, new, scratch.glance)
    if partners.used - partners.n_live > partners.used // 8:
        _close_up(forest, partners, scratch)


def _close_up(forest, partners, scratch):
    """Move the live lineages to the front, in order, and remove the dead ones from the lists."""
    used = partners.used
    target = 0
    for i in range(used):
        partners.new_slot[i] = NONE
        if not partners.live[i]:
            continue
        partners.new_slot[i] = target
        if target != i:
            op.move(forest, i, target)
            forest.height[target] = forest.height[i]
            if partners.sketch.n_sites:
                sketches.move(partners.sketch, i, target)
        _move_list(partners, i, target)
        target += 1
    # `live` is read above for old slots, so it is rewritten last.
    for i in range(partners.live.shape[0]):
        partners.live[i] = i < target
    for i in range(target, used):
        for k in range(const.LIST_LENGTH + 1):
            partners.keys[i, k] = math.inf
    partners.used = target
    if forest.complete and 2 * target < partners.space.n_points:
        points.build(forest, partners.space, target, scratch.search, scratch.pair)
    elif forest.complete:
        points.renumber(forest, partners.space, partners.new_slot, target, used)
    start_tournament(partners)


def _move_list(partners, i, target):
    """Move the list of a slot to another slot, not after it, without dead partners."""
    partners.node[target] = partners.node[i]
    end_key, end = partners.keys[i, const.LIST_LENGTH], partners.slots[i, const.LIST_LENGTH]
    count = 0
    for k in range(partners.place[i], const.LIST_LENGTH):
        j = partners.slots[i, k]
        if j >= 0 and partners.live[j]:
            partners.keys[target, count] = partners.keys[i, k]
            partners.slots[target, count] = partners.new_slot[j]  # an older slot: it has moved already
            count += 1
    for k in range(count, const.LIST_LENGTH + 1):
        partners.keys[target, k], partners.slots[target, k] = end_key, end
    partners.place[target] = 0


def all_pairs_merges(forest, by_probability, node, first, last, children, heights):
    """Merge pairs by `max-prob`, eq. (7.2), or `min-duration`, eq. (7.3), evaluating every live pair before every merge."""
    pair = op.Pair(forest)
    with cython.nogil:
        _all_pairs_merges(forest, by_probability, node, first, last, children, heights, pair)


def _all_pairs_merges(forest, by_probability, node, first, last, children, heights, pair):
    n = children.shape[0] + 1
    clock = heights[n + first - 1] if first > 0 else 0.0
    for k in range(first, last):
        live = n - k
        c = 0.5 * live * (live - 1)
        best_i = best_j = -1
        best_h, best_score = math.inf, -math.inf
        for i in range(live):
            stop.poll()
            for j in range(i + 1, live):
                op.load_pair(forest, i, j, pair)
                shift = op.pair_shift(forest, i, j)
                if by_probability:
                    h = pairs.best_height(forest, pair, shift, c, clock, math.inf)
                    score = op.log_z(forest, pair, h) - c * (h - clock)
                else:
                    # The height is not cut off at the clock: below it, the more recent of two heights still wins.
                    lowest = max(forest.height[i], forest.height[j])
                    h = pairs.best_height(forest, pair, shift, c, lowest, best_h)
                    score = -h
                if score > best_score or best_i < 0:
                    best_i, best_j, best_h, best_score = i, j, h, score
        clock = max(best_h, clock)
        children[k, 0], children[k, 1], heights[n + k] = node[best_i], node[best_j], clock
        op.merge(forest, best_i, best_j, clock, live, pair)
        forest.height[live], node[live] = clock, n + k
        target = 0
        for source in range(live + 1):
            if source != best_i and source != best_j:
                op.move(forest, source, target)
                forest.height[target], node[target] = forest.height[source], node[source]
                target += 1
