"""Regrafting: a subtree is cut off and hung up again, where the rest of the tree and the data say that it belongs.

With the rest of the tree held, a subtree with its top at height ``h_s`` hangs from a point at height h of a branch with
density in proportion to

    f(h) = exp(-integral of k from h_s to h) Z(h),

k the number of live lineages of the rest, Z the likelihood ratio of meeting there, eq. (13.1). Places are the branches of a
*region*: the clade of one of the subtree's ancestors, with the branch that leads to it; the whole tree, if the ancestor is the
root.

Each branch begins as one segment with f at its ends and in the middle; segments that matter and are not straight are halved until
a budget is spent. Draws come from pieces of exponentials through these values, or of straight lines where f begins at 0, and are
accepted by the ratio of f to the density really drawn from, eq. (13.2): f is left invariant, whatever the segments, which depend
on the rest and the subtree alone.

Most of the mass is usually on the branch where the subtree hung before. A draw *elsewhere* leaves that branch out, so that it
always proposes another topology, eq. (13.13). The density drawn from is then divided by the mass of all other branches.
"""

from __future__ import annotations

import numpy as np

from ... import _math as math
from ...process.kernels import messages as op
from . import history as tree

NONE = -1
SPLITS = 3  # segments that are halved, at most
STRAIGHT = 0.5  # of a segment's logarithm: less is not worth halving it
LIGHT = 0.03  # of all mass: a lighter segment is not worth it
TINY = 1e-12  # of a segment: what hangs nearer to its end has that density
DEEPEST = 40.0  # below the largest logarithm nothing counts as less likely, so that no place is out of reach
STEM_SEGMENTS = 40  # above the root, at most
TAIL = 0.5  # rate at which the density that is drawn from falls above them; f falls faster
GOLDEN = 0.6180339887498949
CLIMBS = 40  # steps of a golden-section search
WORTH_CLIMBING = 10.0  # segments whose largest logarithm is further below the best one's are left alone


class BranchSegments:
    """Pieces of branches, with log f at both ends and in the middle, each after the one above it; scratch of a chain."""

    def __init__(self, forest, n_nodes):
        most = n_nodes + SPLITS + STEM_SEGMENTS + 1
        self.count = 0
        self.node = np.zeros(most, dtype=np.intp)  # (segments,), the node below the branch
        self.above = np.zeros(most, dtype=np.intp)  # (segments,), the segment that begins where this one ends
        self.edge = np.zeros((most, 3))  # (segments, 3), heights of low end, middle and high end
        self.log_f = np.zeros((most, 3))  # (segments, 3)
        self.log_mass = np.zeros((most, 2))  # (segments, 2), of the lower and the upper half
        self.need = np.zeros(most)  # (segments,), how much is to be gained by halving each
        self.seen = np.zeros(
            most, dtype=np.intp
        )  # (segments,), 0 where log f was not computed, as it seemed far too low
        self.stack = np.zeros(n_nodes, dtype=np.intp)  # (nodes,)
        self.stack_segment = np.zeros(n_nodes, dtype=np.intp)  # (nodes,)
        self.pair = op.Pair(forest)
        self.place = op.Place(forest)
        self.loaded = -1  # the node below the branch that `place`, or for the root `pair`, is filled for
        self.lineages_below = 0.0  # integrated up to the subtree's top
        self.lowest = 0.0  # height of the subtree's top
        self.parent_height = 0.0  # of the parent that was taken out
        self.tail_from = 0.0  # height above which the density that is drawn from has a tail; infinite if there is none
        self.log_tail = 0.0  # log mass of it


# -- f ---------------------------------------------------------------------------------------------------------------------


def log_f_at(forest, history, segments, s, b, h):
    """Return log f of hanging s from the branch above b at height h; the messages up to b and down to it are there."""
    at_root = b == history.root
    if segments.loaded != b:  # the same branch is asked of several times in turn
        segments.loaded = b
        if at_root:
            op.load_pair(forest, b, s, segments.pair)
        else:
            op.load_place(forest, b, history.n_nodes + b, history.turn[b], s, segments.place)
    log_z = op.log_z(forest, segments.pair, h) if at_root else op.log_z_at(forest, segments.place, h)
    if h == segments.lowest:  # so begin all branches that were there already
        return log_z
    # the parent that was taken out still counts in the ladder, as a lineage more up to its height
    length = min(h, segments.parent_height) - segments.lowest
    return log_z - (tree.lineages_up_to(history, h) - segments.lineages_below - length)


# -- segments --------------------------------------------------------------------------------------------------------------


def _set_segment(segments, c, b, above, low, high):
    segments.node[c], segments.above[c], segments.seen[c] = b, above, 1
    segments.edge[c, 0], segments.edge[c, 1], segments.edge[c, 2] = low, 0.5 * (low + high), high


def _lay_stem(forest, history, segments, s):
    """Make segments of the branch above the root, that grow with the way from there."""
    root = history.root
    low = max(forest.height[root], forest.height[s])
    op.load_pair(forest, root, s, segments.pair)
    top = max(op.highest(forest, segments.pair, 1 - TAIL), low + 1.0)
    length = 2 * low - forest.height[root] - forest.height[s] + op.pair_shift(forest, root, s)
    steps, grown = 1, 4 * length
    while steps < STEM_SEGMENTS and grown < top - low:
        steps += 1
        grown *= 2
    share = 1.0
    for c in range(steps):
        high = low + (top - low) * share
        share *= 0.5
        _set_segment(segments, c, root, c - 1, low + (top - low) * share if c < steps - 1 else low, high)
    segments.count = steps


def _lay_branches(forest, history, segments, s, top, ceiling, valley):
    """Make a segment of each branch of the region, but for the one above the root; return the largest log f.

    Of two children the one where f is larger comes first, so that the best places are found early. Below a node where f is
    further than `valley` below the best so far it is not computed, but counts as what it is at the node. That saves most of the
    messages, and what is drawn from still depends on the rest and the subtree alone.
    """
    h_s, n, waiting, count = forest.height[s], history.n, 0, segments.count
    peak = -math.inf
    for c in range(count):
        peak = _evaluate(forest, history, segments, s, c, peak, valley)
    if top != history.root:
        _set_segment(segments, count, top, NONE, max(forest.height[top], h_s), ceiling)
        peak = _evaluate(forest, history, segments, s, count, peak, valley)
        count += 1
    if top >= n and forest.height[top] >= h_s:  # what is at the same height may be above
        segments.stack[0], segments.stack_segment[0] = top, count - 1
        waiting = 1
    while waiting > 0:
        waiting -= 1
        node, above = segments.stack[waiting], segments.stack_segment[waiting]
        if above != NONE and (segments.seen[above] == 0 or segments.log_f[above, 0] < peak - valley):
            for side in range(2):
                child = history.children[node, side]
                _set_segment(segments, count, child, above, max(forest.height[child], h_s), forest.height[node])
                segments.seen[count] = 0
                for k in range(3):
                    segments.log_f[count, k] = segments.log_f[above, 0]
                if child >= n and forest.height[child] >= h_s:
                    segments.stack[waiting], segments.stack_segment[waiting] = child, count
                    waiting += 1
                count += 1
            continue
        before = waiting
        for side in range(2):
            child = history.children[node, side]
            tree.send_down(forest, history, child, segments.pair)
            _set_segment(segments, count, child, above, max(forest.height[child], h_s), forest.height[node])
            peak = _evaluate(forest, history, segments, s, count, peak, valley)
            if child >= n and forest.height[child] >= h_s:
                segments.stack[waiting], segments.stack_segment[waiting] = child, count
                waiting += 1
            count += 1
        # the last one is looked at next
        if waiting == before + 2 and segments.log_f[count - 2, 0] > segments.log_f[count - 1, 0]:
            segments.stack[before], segments.stack[before + 1] = segments.stack[before + 1], segments.stack[before]
            segments.stack_segment[before], segments.stack_segment[before + 1] = count - 1, count - 2
    segments.count = count
    return peak


def _evaluate(forest, history, segments, s, c, peak, valley):
    """Set log f of a segment; return the largest so far. In the middle of a valley it is not worth computing."""
    b, above = segments.node[c], segments.above[c]
    low = log_f_at(forest, history, segments, s, b, segments.edge[c, 0])
    high = segments.log_f[above, 0] if above != NONE else log_f_at(forest, history, segments, s, b, segments.edge[c, 2])
    middle = max(low, high)
    peak = max(peak, middle)
    if middle >= peak - valley:
        middle = log_f_at(forest, history, segments, s, b, segments.edge[c, 1])
    segments.log_f[c, 0], segments.log_f[c, 1], segments.log_f[c, 2] = low, middle, high
    return max(peak, middle)


def _log_mass(length, log_a, log_b):
    """Return the log of the integral of a piece from one log value to another: an exponential, or a line from 0."""
    if not length > 0:
        return -math.inf
    if log_a == -math.inf:
        return log_b + math.log(0.5 * length)
    high, fall = max(log_a, log_b), abs(log_a - log_b)
    share = 1 - 0.5 * fall if fall < 1e-5 else -math.expm1(-fall) / fall
    return high + math.log(length * share)


def _weigh(segments, c, floor):
    """Set the masses of a segment's halves; nothing counts as less likely than the floor.

    But for the lower end: where nothing can hang at once, f begins at 0 as a power of the way from there does. An exponential
    from the floor on would be far below that, and a subtree that once hangs there would stay.
    """
    if segments.log_f[c, 0] < floor:
        segments.log_f[c, 0] = -math.inf if segments.seen[c] else floor
    for k in range(1, 3):
        segments.log_f[c, k] = max(segments.log_f[c, k], floor)
    for k in range(2):
        length = segments.edge[c, k + 1] - segments.edge[c, k]
        segments.log_mass[c, k] = _log_mass(length, segments.log_f[c, k], segments.log_f[c, k + 1])


def _set_need(segments, c, log_total):
    """Set how much is to be gained by halving a segment: its share of the mass times how far it is from straight."""
    bend = abs(segments.log_f[c, 1] - 0.5 * (segments.log_f[c, 0] + segments.log_f[c, 2]))
    share = math.exp(min(max(segments.log_mass[c, 0], segments.log_mass[c, 1]) - log_total, 0.0))
    wide = 0.25 * (segments.edge[c, 2] - segments.edge[c, 0]) > 1e-14 * segments.edge[c, 2]
    segments.need[c] = share * min(bend, 3.0) if bend > STRAIGHT and share > LIGHT and wide else 0.0


def _log_of_all_mass(segments):
    top = segments.log_tail
    for c in range(segments.count):
        top = max(top, max(segments.log_mass[c, 0], segments.log_mass[c, 1]))
    total = math.exp(segments.log_tail - top)
    for c in range(segments.count):
        total += math.exp(segments.log_mass[c, 0] - top) + math.exp(segments.log_mass[c, 1] - top)
    return top + math.log(total)


def _halve_segments(forest, history, segments, s, floor):
    """Halve the segments that need it most; return the log of all mass."""
    for c in range(segments.count):
        _weigh(segments, c, floor)
    log_total = _log_of_all_mass(segments)  # as it is before: near enough for shares of it
    for c in range(segments.count):
        _set_need(segments, c, log_total)
    for _ in range(SPLITS):
        worst, count = 0, segments.count
        for c in range(1, count):
            if segments.need[c] > segments.need[worst]:
                worst = c
        if not segments.need[worst] > 0:
            break
        b, middle, high = segments.node[worst], segments.edge[worst, 1], segments.edge[worst, 2]
        _set_segment(segments, count, b, NONE, middle, high)
        _set_segment(segments, worst, b, NONE, segments.edge[worst, 0], middle)
        segments.log_f[count, 0], segments.log_f[count, 2] = segments.log_f[worst, 1], segments.log_f[worst, 2]
        segments.log_f[worst, 2] = segments.log_f[worst, 1]
        for half in range(2):
            c = worst if half == 0 else count
            segments.log_f[c, 1] = log_f_at(forest, history, segments, s, b, segments.edge[c, 1])
            _weigh(segments, c, floor)
            _set_need(segments, c, log_total)
        segments.count = count + 1
    return _log_of_all_mass(segments)


# -- draws -----------------------------------------------------------------------------------------------------------------


def _log_g_at(segments, b, root, h):
    """Return the log of the density really drawn from, not divided by all mass."""
    if b == root and h > segments.tail_from:
        return segments.log_tail + math.log(TAIL) - TAIL * (h - segments.tail_from)
    for c in range(segments.count):
        if segments.node[c] == b and segments.edge[c, 0] <= h <= segments.edge[c, 2]:
            k = 0 if h < segments.edge[c, 1] else 1
            width, distance = segments.edge[c, k + 1] - segments.edge[c, k], h - segments.edge[c, k]
            log_low, log_high = segments.log_f[c, k], segments.log_f[c, k + 1]
            if log_low == -math.inf:
                return log_high + math.log(max(distance / width, TINY)) if width > 0 else log_high
            return log_low + ((log_high - log_low) * distance / width if width > 0 else 0.0)
    return -math.inf


def _draw_between(low, high, log_low, log_high, u):
    """Draw a height from a piece, see `_log_mass`."""
    rise, length = log_high - log_low, high - low
    if log_low == -math.inf:
        h = low + math.sqrt(u) * length
    elif abs(rise) < 1e-5:
        h = low + u * length
    elif rise > 0:
        h = high + math.log1p((1 - u) * math.expm1(-rise)) * length / rise
    else:
        h = low + math.log1p(u * math.expm1(rise)) * length / rise
    return min(max(h, low), high)


def _log_mass_elsewhere(segments, b, root):
    """Return the log of the mass of all branches but b."""
    top = segments.log_tail if b != root else -math.inf
    for c in range(segments.count):
        if segments.node[c] != b:
            top = max(top, max(segments.log_mass[c, 0], segments.log_mass[c, 1]))
    if top == -math.inf:
        return top
    total = math.exp(segments.log_tail - top) if b != root else 0.0
    for c in range(segments.count):
        if segments.node[c] != b:
            total += math.exp(segments.log_mass[c, 0] - top) + math.exp(segments.log_mass[c, 1] - top)
    return top + math.log(total)


def _draw_place(segments, root, excluded, log_total, u_segment, u_height):
    """Draw a branch, but not the excluded one, and a height."""
    left, last = u_segment, NONE
    for c in range(segments.count):
        if segments.node[c] == excluded:
            continue
        last = c
        for k in range(2):
            share = math.exp(segments.log_mass[c, k] - log_total)
            if left < share:
                low, high = segments.edge[c, k], segments.edge[c, k + 1]
                h = _draw_between(low, high, segments.log_f[c, k], segments.log_f[c, k + 1], u_height)
                return segments.node[c], h
            left -= share
    if segments.tail_from < math.inf and excluded != root:
        return root, segments.tail_from - math.log(1 - u_height) / TAIL
    # rounding has left nothing of the last segment
    return segments.node[last], segments.edge[last, 1]


def _highest_place(forest, history, segments, s, peak):
    """Return the branch and the height where f is largest, by golden sections of the segments that come near."""
    best_b, best_h, best = NONE, 0.0, -math.inf
    for c in range(segments.count):
        highest = 0
        for k in range(1, 3):
            if segments.log_f[c, k] > segments.log_f[c, highest]:
                highest = k
        if segments.log_f[c, highest] < peak - WORTH_CLIMBING:
            continue
        b, low, high = segments.node[c], segments.edge[c, 0], segments.edge[c, 2]
        if segments.log_f[c, highest] > best:
            best_b, best_h, best = b, segments.edge[c, highest], segments.log_f[c, highest]
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_left, at_right, to_left = -math.inf, -math.inf, True
        for step in range(CLIMBS):
            h = left if to_left else right
            log_f = log_f_at(forest, history, segments, s, b, h)
            if log_f > best:
                best_b, best_h, best = b, h, log_f
            if to_left:
                at_left = log_f
            else:
                at_right = log_f
            if step == 0:
                to_left = False
                continue
            to_left = at_left >= at_right
            if to_left:
                high, right, at_right = right, left, at_left
                left = high - GOLDEN * (high - low)
            else:
                low, left, at_left = left, right, at_right
                right = low + GOLDEN * (high - low)
    return best_b, best_h


def _see(forest, history, segments, b):
    """Make the message that comes down to a branch where log f was not computed."""
    for c in range(segments.count):
        if segments.node[c] == b:
            if segments.seen[c] == 0:
                tree.send_down_to(forest, history, b, segments.pair)
                segments.loaded = NONE
            return


# -- the move --------------------------------------------------------------------------------------------------------------


def _ancestor_of(history, s, steps):
    """Return the ancestor so many generations above, or the root."""
    for _ in range(steps):
        if history.parent[s] == NONE:
            break
        s = history.parent[s]
    return s


def _generations_between(history, s, above):
    """Return how many generations a node is below another; NONE is above the root."""
    count = 0
    while history.parent[s] != above:
        s = history.parent[s]
        count += 1
    return count


def regraft(
    forest, history, segments, s, steps, log_stay, least_gain, stem, elsewhere, valley, u_segment, u_height, u_accept
):
    """Cut off s and hang it up again within the clade of its ancestor `steps` generations above.

    Returns whether it moved, and how much the log joint density has gained. There is at least one step, and the probability of
    the number of steps falls by ``exp(log_stay)`` with each. Beyond a valley of log f that is so deep nothing is computed, see
    `_lay_branches`. With a least gain, the best place is taken instead of one that is drawn, if it gains more. Without a stem the
    root stays as it is, and nothing hangs above it; then s is no child of the root. With `elsewhere` it is proposed to
    another branch than its own, if there is one.
    """
    p = history.parent[s]
    ancestor = _ancestor_of(history, s, steps)
    above, grandparent = history.parent[ancestor], history.parent[p]
    old_height, old_below = forest.height[p], tree.sibling_of(history, s)
    old_generations = _generations_between(history, s, above)
    segments.lowest, segments.parent_height = forest.height[s], old_height
    segments.lineages_below = tree.lineages_up_to(history, forest.height[s])
    tree.cut_off(history, s)
    top = old_below if ancestor == p else ancestor
    if top != old_below:
        tree.merge_up_to(forest, history, grandparent, top, segments.pair)
    tree.send_down_to(forest, history, top, segments.pair)

    root = history.root
    segments.count, segments.tail_from = 0, math.inf
    if top == root and stem:
        _lay_stem(forest, history, segments, s)
        segments.tail_from = segments.edge[0, 2]
    ceiling = forest.height[above] if above != NONE else math.inf
    segments.loaded = NONE  # what it was filled for may have changed
    best = least_gain < math.inf
    peak = _lay_branches(forest, history, segments, s, top, ceiling, valley)

    if best:
        b, h = _highest_place(forest, history, segments, s, peak)
    else:
        floor = peak - DEEPEST
        segments.log_tail = -math.inf
        if segments.tail_from < math.inf:
            segments.log_tail = max(segments.log_f[0, 2], floor) - math.log(TAIL)
        log_total = _halve_segments(forest, history, segments, s, floor)
        excluded = NONE
        if elsewhere:
            log_others = _log_mass_elsewhere(segments, old_below, root)
            if log_others > -math.inf:
                excluded, log_total = old_below, log_others
        b, h = _draw_place(segments, root, excluded, log_total, u_segment, u_height)
    _see(forest, history, segments, old_below)
    gain = -log_f_at(forest, history, segments, s, old_below, old_height)
    _see(forest, history, segments, b)
    gain += log_f_at(forest, history, segments, s, b, h)
    if best:
        tree.hang_on(forest, history, s, p, b, h)
        moved = gain > least_gain
    else:
        log_ratio = gain + _log_g_at(segments, old_below, root, old_height) - _log_g_at(segments, b, root, h)
        if excluded != NONE:
            log_ratio += log_total - _log_mass_elsewhere(segments, b, root)
        tree.hang_on(forest, history, s, p, b, h)
        # from there, the same clade is another number of generations above
        log_ratio += log_stay * (_generations_between(history, s, above) - old_generations)
        moved = math.log(u_accept) < log_ratio
    if moved:
        tree.move_rung(history, old_height, h)
    else:
        tree.cut_off(history, s)
        tree.hang_on(forest, history, s, p, old_below, old_height)
        gain = 0.0
    tree.merge_up_to(forest, history, p, NONE if moved else ancestor, segments.pair)
    return moved, gain
