"""Regrafting: a subtree is cut off and hung up again, where the rest of the tree and the data say that it belongs.

With the rest of the tree held, a subtree with its top at height ``h_s`` hangs from a point at height h of a branch with
density in proportion to

    f(h) = exp(-integral of k from h_s to h) Z(h),

k the number of live lineages of the rest, Z the likelihood ratio of meeting there, eq. (13.1). Places are the branches of a
*region*: the clade of one of the subtree's ancestors, with the branch that leads to it; the whole tree, if the ancestor is the
root.

Each branch begins as a cell with f at its ends and in the middle; cells that matter and are not straight are halved until a
budget is spent. Draws come from pieces of exponentials through these values, or of straight lines where f begins at 0, and are
accepted by the ratio of f to the density really drawn from, eq. (13.2): f is left invariant, whatever the cells, which depend on
the rest and the subtree alone.

Functions that are called in one place are inlined: see `coaltree.compiled` for why.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import inlined, jit, kernel
from ..process import operations as op
from ._history_kernels import NONE, cut_off, hang_on, lineages_up_to, merge_up_to, move_rung, send_down, send_down_to
from ._pair_kernels import pair_shift

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

SPLITS = 24  # cells that are halved, at most
STRAIGHT = 0.05  # of a cell's logarithm: less is not worth halving it
LIGHT = 1e-3  # of all mass: a lighter cell is not worth it
TINY = 1e-12  # of a cell: what hangs nearer to its end has that density
DEEPEST = 40.0  # below the largest logarithm nothing counts as less likely, so that no place is out of reach
STEM_CELLS = 40  # above the root, at most
TAIL = 0.5  # rate at which the density that is drawn from falls above them; f falls faster
GOLDEN = 0.5 * (math.sqrt(5) - 1)
CLIMBS = 40  # steps of a golden-section search
WORTH_CLIMBING = 10.0  # cells whose largest logarithm is further below the best one's are left alone


class Cells(NamedTuple):
    """Pieces of branches, with log f at both ends and in the middle, each after the one above it; scratch of a chain."""

    node: IntArray  # (cells,), the node below the branch
    above: IntArray  # (cells,), the cell that begins where this one ends
    edge: FloatArray  # (cells, 3), heights of low end, middle and high end
    log_f: FloatArray  # (cells, 3)
    log_mass: FloatArray  # (cells, 2), of the lower and the upper half
    need: FloatArray  # (cells,), how much is to be gained by halving each
    stack: IntArray  # (nodes,)
    stack_cell: IntArray  # (nodes,)
    pair: FloatArray
    place: FloatArray
    loaded: IntArray  # (1,), the node below the branch that `place`, or for the root `pair`, is filled for
    constants: (
        FloatArray  # lineages integrated up to the subtree's top, its height, that of the parent that was taken out
    )


def new_cells(n_nodes: int, pair_size: int, place_size: int) -> Cells:
    """Return room for the cells of a tree."""
    most = n_nodes + SPLITS + STEM_CELLS + 1
    return Cells(
        np.zeros(most, dtype=np.intp),
        np.zeros(most, dtype=np.intp),
        np.zeros((most, 3)),
        np.zeros((most, 3)),
        np.zeros((most, 2)),
        np.zeros(most),
        np.zeros(n_nodes, dtype=np.intp),
        np.zeros(n_nodes, dtype=np.intp),
        np.zeros(pair_size),
        np.zeros(place_size),
        np.full(1, NONE),
        np.zeros(3),
    )


# -- f ---------------------------------------------------------------------------------------------------------------------


@jit
def log_f_at(forest, history, cells, s, b, h):
    """Return log f of hanging s from the branch above b at height h; the messages up to b and down to it are there."""
    n_nodes = len(history.parent)
    at_root = b == history.root[0]
    if cells.loaded[0] != b:  # the same branch is asked of several times in turn
        cells.loaded[0] = b
        if at_root:
            op.load_pair(forest, b, s, cells.pair)
        else:
            op.load_place(forest, b, n_nodes + b, history.turn[b], s, 2 * n_nodes, cells.place)
    log_z = op.log_z(forest, cells.pair, h) if at_root else op.log_z_at(forest, cells.place, h)
    start, low, p_height = cells.constants
    # the parent that was taken out still counts in the ladder, as a lineage more up to its height
    k = lineages_up_to(history, h) - start - (min(h, p_height) - low)
    return log_z - k


# -- cells -----------------------------------------------------------------------------------------------------------------


@jit
def _set_cell(cells, c, b, above, low, high):
    cells.node[c], cells.above[c] = b, above
    cells.edge[c, 0], cells.edge[c, 1], cells.edge[c, 2] = low, 0.5 * (low + high), high


@inlined
def _lay_stem(forest, history, cells, s):
    """Make cells of the branch above the root, that grow with the way from there; return how many there are."""
    root = history.root[0]
    low = max(forest.height[root], forest.height[s])
    op.load_pair(forest, root, s, cells.pair)
    top = max(op.highest(forest, cells.pair, 1 - TAIL), low + 1.0)
    way = 2 * low - forest.height[root] - forest.height[s] + pair_shift(forest, root, s)
    steps = 1
    while steps < STEM_CELLS and way * 2.0 ** (steps + 1) < top - low:
        steps += 1
    for c in range(steps):
        _set_cell(
            cells,
            c,
            root,
            c - 1,
            low + (top - low) * 2.0 ** -(c + 1) if c < steps - 1 else low,
            low + (top - low) * 2.0**-c,
        )
    return steps


@inlined
def _lay_branches(forest, history, cells, s, top, ceiling, descend, count):
    """Make a cell of each branch of the region, but for the one above the root; return how many there are."""
    h_s, n, waiting = forest.height[s], len(history.ladder) + 1, 0
    if top != history.root[0]:
        _set_cell(cells, count, top, NONE, max(forest.height[top], h_s), ceiling)
        count += 1
    if descend and top >= n and forest.height[top] >= h_s:  # what is at the same height may be above
        cells.stack[0], cells.stack_cell[0] = top, count - 1
        waiting = 1
    while waiting > 0:
        waiting -= 1
        node, above = cells.stack[waiting], cells.stack_cell[waiting]
        for side in range(2):
            child = history.children[node, side]
            send_down(forest, history, child)
            _set_cell(cells, count, child, above, max(forest.height[child], h_s), forest.height[node])
            if child >= n and forest.height[child] >= h_s:
                cells.stack[waiting], cells.stack_cell[waiting] = child, count
                waiting += 1
            count += 1
    return count


@inlined
def _evaluate(forest, history, cells, s, count):
    """Set log f of all cells; return the largest."""
    peak = -math.inf
    for c in range(count):
        for k in range(3):
            above = cells.above[c]
            if k == 2 and above != NONE:
                cells.log_f[c, 2] = cells.log_f[above, 0]
            else:
                cells.log_f[c, k] = log_f_at(forest, history, cells, s, cells.node[c], cells.edge[c, k])
            peak = max(peak, cells.log_f[c, k])
    return peak


@jit
def _log_mass(length, log_a, log_b):
    """Return the log of the integral of a piece from one log value to another: an exponential, or a line from 0."""
    if log_a == -math.inf:
        return log_b + math.log(0.5 * length) if length > 0 else -math.inf
    high, fall = max(log_a, log_b), abs(log_a - log_b)
    share = 1 - 0.5 * fall if fall < 1e-5 else -math.expm1(-fall) / fall
    return high + math.log(length * share) if length > 0 else -math.inf


@jit
def _weigh(cells, c, floor):
    """Set the masses of a cell's halves; nothing counts as less likely than the floor.

    But for the lower end: where nothing can hang at once, f begins at 0 as a power of the way from there does. An exponential
    from the floor on would be far below that, and a subtree that once hangs there would stay.
    """
    edge, log_f = cells.edge[c], cells.log_f[c]
    if log_f[0] < floor:
        log_f[0] = -math.inf
    for k in range(1, 3):
        log_f[k] = max(log_f[k], floor)
    for k in range(2):
        cells.log_mass[c, k] = _log_mass(edge[k + 1] - edge[k], log_f[k], log_f[k + 1])


@jit
def _set_need(cells, c, log_total):
    """Set how much is to be gained by halving a cell: its share of the mass times how far it is from straight."""
    edge, log_f, log_mass = cells.edge[c], cells.log_f[c], cells.log_mass[c]
    bend = abs(log_f[1] - 0.5 * (log_f[0] + log_f[2]))
    share = math.exp(min(max(log_mass[0], log_mass[1]) - log_total, 0.0))
    wide = 0.25 * (edge[2] - edge[0]) > 1e-14 * edge[2]
    cells.need[c] = share * min(bend, 3.0) if bend > STRAIGHT and share > LIGHT and wide else 0.0


@jit
def _sum_of_logs(cells, count, log_tail):
    top = log_tail
    for c in range(count):
        top = max(top, max(cells.log_mass[c, 0], cells.log_mass[c, 1]))
    total = math.exp(log_tail - top)
    for c in range(count):
        total += math.exp(cells.log_mass[c, 0] - top) + math.exp(cells.log_mass[c, 1] - top)
    return top + math.log(total)


@inlined
def _halve_cells(forest, history, cells, s, count, floor, log_tail):
    """Halve the cells that need it most; return how many there are and the log of all mass."""
    for c in range(count):
        _weigh(cells, c, floor)
    log_total = _sum_of_logs(cells, count, log_tail)  # as it is before: near enough for shares of it
    for c in range(count):
        _set_need(cells, c, log_total)
    for _ in range(SPLITS):
        worst = 0
        for c in range(1, count):
            if cells.need[c] > cells.need[worst]:
                worst = c
        if not cells.need[worst] > 0:
            break
        b, middle, high = cells.node[worst], cells.edge[worst, 1], cells.edge[worst, 2]
        _set_cell(cells, count, b, NONE, middle, high)
        _set_cell(cells, worst, b, NONE, cells.edge[worst, 0], middle)
        cells.log_f[count, 0], cells.log_f[count, 2] = cells.log_f[worst, 1], cells.log_f[worst, 2]
        cells.log_f[worst, 2] = cells.log_f[worst, 1]
        for half in range(2):
            c = worst if half == 0 else count
            cells.log_f[c, 1] = log_f_at(forest, history, cells, s, b, cells.edge[c, 1])
            _weigh(cells, c, floor)
            _set_need(cells, c, log_total)
        count += 1
    return count, _sum_of_logs(cells, count, log_tail)


# -- draws -----------------------------------------------------------------------------------------------------------------


@jit
def _log_g_at(cells, count, tail_from, log_tail, b, root, h):
    """Return the log of the density really drawn from, not divided by all mass."""
    if b == root and h > tail_from:
        return log_tail + math.log(TAIL) - TAIL * (h - tail_from)
    for c in range(count):
        edge, log_f = cells.edge[c], cells.log_f[c]
        if cells.node[c] == b and edge[0] <= h <= edge[2]:
            k = 0 if h < edge[1] else 1
            length = edge[k + 1] - edge[k]
            if log_f[k] == -math.inf:
                return log_f[k + 1] + math.log(max((h - edge[k]) / length, TINY)) if length > 0 else log_f[k + 1]
            return log_f[k] + ((log_f[k + 1] - log_f[k]) * (h - edge[k]) / length if length > 0 else 0.0)
    return -math.inf


@jit
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


@jit
def _draw_place(cells, count, tail_from, root, log_total, u_cell, u_place):
    """Draw a branch and a height."""
    left = u_cell
    for c in range(count):
        for k in range(2):
            share = math.exp(cells.log_mass[c, k] - log_total)
            if left < share:
                edge, log_f = cells.edge[c], cells.log_f[c]
                return cells.node[c], _draw_between(edge[k], edge[k + 1], log_f[k], log_f[k + 1], u_place)
            left -= share
    if tail_from < math.inf:
        return root, tail_from - math.log(1 - u_place) / TAIL
    return cells.node[count - 1], cells.edge[count - 1, 1]  # rounding has left nothing of the last cell


@inlined
def _highest_place(forest, history, cells, s, count, peak):
    """Return the branch and the height where f is largest, by golden sections of the cells that come near."""
    best_b, best_h, best = NONE, 0.0, -math.inf
    for c in range(count):
        highest = 0
        for k in range(1, 3):
            if cells.log_f[c, k] > cells.log_f[c, highest]:
                highest = k
        if cells.log_f[c, highest] < peak - WORTH_CLIMBING:
            continue
        b, low, high = cells.node[c], cells.edge[c, 0], cells.edge[c, 2]
        if cells.log_f[c, highest] > best:
            best_b, best_h, best = b, cells.edge[c, highest], cells.log_f[c, highest]
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_left, at_right, to_left = -math.inf, -math.inf, True
        for step in range(CLIMBS):
            h = left if to_left else right
            log_f = log_f_at(forest, history, cells, s, b, h)
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


# -- the move --------------------------------------------------------------------------------------------------------------


@jit
def ancestor_of(history, s, steps):
    """Return the ancestor so many generations above, or the root."""
    for _ in range(steps):
        if history.parent[s] == NONE:
            break
        s = history.parent[s]
    return s


@jit
def _generations_between(history, s, above):
    """Return how many generations a node is below another; NONE is above the root."""
    count = 0
    while history.parent[s] != above:
        s = history.parent[s]
        count += 1
    return count


@kernel
def regraft(forest, history, cells, s, steps, log_stay, least_gain, stem, uniforms):
    """Cut off s and hang it up again within the clade of its ancestor `steps` generations above.

    Returns whether it moved, and how much the log joint density has gained. With no steps it stays on its sibling's branch,
    and only the height of their merge is drawn. The probability of the number of steps falls by ``exp(log_stay)`` with
    each. With a least gain, the best place is taken instead of one that is drawn, if it gains more. Without a stem the root
    stays as it is, and nothing hangs above it; then s is no child of the root.

    It is kept on disk, so that it is compiled once for all kernels that call it.
    """
    p = history.parent[s]
    ancestor = ancestor_of(history, s, max(steps, 1))
    above, grandparent = history.parent[ancestor], history.parent[p]
    old_height, old_below = forest.height[p], history.children[p, 0] + history.children[p, 1] - s
    old_generations = _generations_between(history, s, above)
    cells.constants[0], cells.constants[1] = lineages_up_to(history, forest.height[s]), forest.height[s]
    cells.constants[2] = old_height
    cut_off(history, s)
    top = old_below if ancestor == p else ancestor
    if top != old_below:
        merge_up_to(forest, history, grandparent, top)
    send_down_to(forest, history, top, cells.stack)

    root, count, tail_from = history.root[0], 0, math.inf
    if top == root and stem:
        count = _lay_stem(forest, history, cells, s)
        tail_from = cells.edge[0, 2]
    ceiling = forest.height[above] if above != NONE else math.inf
    count = _lay_branches(forest, history, cells, s, top, ceiling, steps > 0, count)
    cells.loaded[0] = NONE  # what it was filled for may have changed
    peak = _evaluate(forest, history, cells, s, count)

    if least_gain < math.inf:
        b, h = _highest_place(forest, history, cells, s, count, peak)
        log_total, log_tail = 0.0, 0.0
    else:
        floor = peak - DEEPEST
        log_tail = max(cells.log_f[0, 2], floor) - math.log(TAIL) if tail_from < math.inf else -math.inf
        count, log_total = _halve_cells(forest, history, cells, s, count, floor, log_tail)
        b, h = _draw_place(cells, count, tail_from, root, log_total, uniforms[0], uniforms[1])
    gain = 0.0
    for new in range(2):
        own = log_f_at(forest, history, cells, s, b if new else old_below, h if new else old_height)
        gain += own if new else -own
    if least_gain < math.inf:
        hang_on(forest, history, s, p, b, h)
        moved = gain > least_gain
    else:
        log_ratio = gain + _log_g_at(cells, count, tail_from, log_tail, old_below, root, old_height)
        log_ratio -= _log_g_at(cells, count, tail_from, log_tail, b, root, h)
        hang_on(forest, history, s, p, b, h)
        # from there, the same clade is another number of generations above
        log_ratio += log_stay * (_generations_between(history, s, above) - old_generations)
        moved = math.log(uniforms[2]) < log_ratio
    if moved:
        move_rung(history, old_height, h)
    else:
        cut_off(history, s)
        hang_on(forest, history, s, p, old_below, old_height)
        gain = 0.0
    if moved or steps > 0:
        merge_up_to(forest, history, p, NONE if moved else ancestor)
    return moved, gain
