"""Particles, partial histories of the coalescent: the four proposals that extend them by a merge, and moves within them.

All particles share one forest: particle p has the slots ``p n`` to ``p n + n - 1``. A merged lineage takes the slot of its
first part, and `live` lists the slots in use. Each kernel extends particles ``first <= p < last`` with uniform numbers drawn
beforehand, so threads can share the particles without changing the result.

`regraft_particles` rejuvenates particles. A subtree moves within the tree that it is part of, below its top, by eq. (13.1) and
(13.2) with k counting the lineages of the whole particle. This leaves the density of the partial history invariant, and with it
all weights and the evidence.
"""

from __future__ import annotations

import numpy as np

from ... import _math as math
from ... import _stop as stop
from ...process.kernels import messages as op
from . import grid as grids
from . import history as tree
from . import regraft as regrafting

try:
    import cython
except ImportError:
    from ..._nocython import cython


NONE = -1


class Particles:
    """The live lineages of each particle, and its merges so far."""

    def __init__(self, n_particles, n):
        # (particles, leaves), slots of the lineages that live, the rest is old
        self.live = np.arange(n_particles * n, dtype=np.intp).reshape(n_particles, n)
        self.node = np.tile(np.arange(n, dtype=np.intp), n_particles)  # (slots,), number in the tree
        self.children = np.zeros((n_particles, n - 1, 2), dtype=np.intp)
        self.heights = np.zeros((n_particles, n - 1))
        self.log_z = np.zeros((n_particles, n - 1))  # local likelihoods
        self.log_ratios = np.zeros((n_particles, n - 1))  # one tree below the merge against two independent ones
        self.log_weights = np.zeros(n_particles)
        self.ancestor = np.arange(n_particles, dtype=np.intp)  # the first particle that this one descends from


class Alarms:
    """For `race`: the merge time drawn for each live pair of a particle, and the earliest partner of each lineage."""

    def __init__(self, n_particles, n):
        self.height = np.full((n_particles, n * (n - 1) // 2), math.inf)  # (particles, pairs of leaves)
        # (particles, leaves), by slot; both count slots from the particle's first
        self.partner = np.full((n_particles, n), -1, dtype=np.intp)


def _join(forest, particles, p, k, a, b, h, pair):
    """Merge the lineages at positions a and b among the live ones, at height h."""
    n = particles.live.shape[1]
    i, j = particles.live[p, a], particles.live[p, b]
    particles.children[p, k, 0] = min(particles.node[i], particles.node[j])
    particles.children[p, k, 1] = max(particles.node[i], particles.node[j])
    particles.heights[p, k] = h
    op.load_pair(forest, i, j, pair)
    particles.log_z[p, k] = op.log_z(forest, pair, h)
    apart = op.root_log_density(forest, i) + op.root_log_density(forest, j)
    op.merge(forest, i, j, h, i, pair)
    forest.height[i] = h
    particles.log_ratios[p, k] = particles.log_z[p, k] + op.root_log_density(forest, i) - apart
    particles.node[i] = n + k
    particles.live[p, b] = particles.live[p, n - k - 1]


def _clock(particles, p, k):
    return particles.heights[p, k - 1] if k > 0 else 0.0


def extend_prior_prior(forest, particles, k, uniforms, first, last):
    """Draw time and pair from the prior."""
    pair = op.Pair(forest)
    with cython.nogil:
        _extend_prior_prior(forest, particles, k, uniforms, first, last, pair)


def _extend_prior_prior(forest, particles, k, uniforms, first, last, pair):
    n_live = particles.live.shape[1] - k
    c = 0.5 * n_live * (n_live - 1)
    for p in range(first, last):
        stop.poll()
        h = _clock(particles, p, k) - math.log1p(-uniforms[p, 0]) / c
        a = int(uniforms[p, 1] * n_live)
        b = int(uniforms[p, 2] * (n_live - 1))
        if b >= a:
            b += 1
        _join(forest, particles, p, k, a, b, h, pair)
        particles.log_weights[p] += particles.log_z[p, k]


# -- pair in proportion to its likelihood ----------------------------------------------------------------------------


def extend_by_likelihood(forest, particles, k, uniforms, time_first, first, last):
    """Draw the time from the prior and then the pair in proportion to its likelihood, or first the pair and then the time.

    In the second case, the pair is drawn in proportion to its likelihood integrated over all times.
    """
    pair, grid, rows = op.Pair(forest), grids.Grid(), np.empty(particles.live.shape[1])
    with cython.nogil:
        _extend_by_likelihood(forest, particles, k, uniforms, time_first, first, last, pair, grid, rows)


def _extend_by_likelihood(forest, particles, k, uniforms, time_first, first, last, pair, grid, rows):
    n_live = particles.live.shape[1] - k
    c = 0.5 * n_live * (n_live - 1)
    for p in range(first, last):
        clock = _clock(particles, p, k)
        h = clock - math.log1p(-uniforms[p, 0]) / c if time_first else math.nan
        a, b, total = _choose_pair(
            forest, particles, p, n_live, c, clock, h, pair, grid, rows, uniforms[p, 1], uniforms[p, 2]
        )
        if time_first:
            particles.log_weights[p] += total - math.log(c)
        else:
            integral = _score(forest, particles.live[p, a], particles.live[p, b], c, clock, math.nan, pair, grid)
            h = clock
            if integral > -math.inf:
                h = grids.draw_height(grid, uniforms[p, 0], uniforms[p, 3])
                total += op.log_z(forest, pair, h) - c * (h - clock) - grids.log_density_at(grid, h)
            particles.log_weights[p] += total
        _join(forest, particles, p, k, a, b, h, pair)


def _score(forest, i, j, c, clock, h, pair, grid):
    """Return the log weight of a merge of two slots: Z at height h, or its integral over all heights if h is NaN."""
    op.load_pair(forest, i, j, pair)
    if not math.isnan(h):
        return op.log_z(forest, pair, h)
    return grids.lay_grid(forest, pair, op.pair_shift(forest, i, j), c, clock, grid)


def _add_logs(x, y):
    top = max(x, y)
    return top + math.log(math.exp(x - top) + math.exp(y - top)) if top > -math.inf else top


def _choose_pair(forest, particles, p, n_live, c, clock, h, pair, grid, rows, u_row, u_partner):
    """Choose a pair in proportion to its score; return its positions and the log of the sum of all scores."""
    total = -math.inf
    for a in range(1, n_live):
        stop.poll()
        row = -math.inf
        for b in range(a):
            row = _add_logs(row, _score(forest, particles.live[p, a], particles.live[p, b], c, clock, h, pair, grid))
        rows[a] = row
        total = _add_logs(total, row)
    if not -math.inf < total < math.inf:
        return 1, 0, total
    # Only the rows' sums are kept, n numbers instead of n^2: one row is gone through again.
    left, chosen = u_row, -1
    for a in range(1, n_live):
        share = math.exp(rows[a] - total)
        if share > 0:
            chosen = a
            if left < share:
                break
            left -= share
    left, partner = u_partner, -1
    for b in range(chosen):
        score = _score(forest, particles.live[p, chosen], particles.live[p, b], c, clock, h, pair, grid)
        share = math.exp(score - rows[chosen])
        if share > 0:
            partner = b
            if left < share:
                break
            left -= share
    return chosen, partner, total


# -- race ------------------------------------------------------------------------------------------------------------


def _alarm_of(i, j):
    """Return the position of the merge time of slots i and j, counted from the first slot of the particle."""
    older, younger = min(i, j), max(i, j)
    return younger * (younger - 1) // 2 + older


def _lay_pair_grid(forest, i, j, pair, grid):
    """Lay the grid of a merge time: the pair merges at rate 1 since its younger lineage appeared."""
    op.load_pair(forest, i, j, pair)
    start = max(forest.height[i], forest.height[j])
    return grids.lay_grid(forest, pair, op.pair_shift(forest, i, j), 1.0, start, grid)


def _set_alarm(alarms, p, i, j, h):
    """Store the merge time of a pair, and update the earliest partner of both lineages."""
    alarms.height[p, _alarm_of(i, j)] = h
    _note_if_first(alarms, p, i, j, h)
    _note_if_first(alarms, p, j, i, h)


def _note_if_first(alarms, p, i, j, h):
    if alarms.partner[p, i] < 0 or h < alarms.height[p, _alarm_of(i, alarms.partner[p, i])]:
        alarms.partner[p, i] = j


def set_first_alarms(forest, particles, alarms, i, uniforms, first, last):
    """Draw the merge times of leaf i with the leaves before it. Leaves are the same in all particles, and so are the grids."""
    pair, grid = op.Pair(forest), grids.Grid()
    with cython.nogil:
        _set_first_alarms(forest, particles, alarms, i, uniforms, first, last, pair, grid)


def _set_first_alarms(forest, particles, alarms, i, uniforms, first, last, pair, grid):
    n = particles.live.shape[1]
    for j in range(i):
        stop.poll()
        integral = _lay_pair_grid(forest, first * n + i, first * n + j, pair, grid)
        for p in range(first, last):
            h = math.inf
            if integral > -math.inf:
                h = grids.draw_height(grid, uniforms[p, j, 0], uniforms[p, j, 1])
            _set_alarm(alarms, p, i, j, h)


def extend_race(forest, particles, alarms, k, uniforms, first, last):
    """Merge the pair with the earliest merge time, weight it and all pairs that end with it, and draw the new lineage's times."""
    pair, grid = op.Pair(forest), grids.Grid()
    with cython.nogil:
        _extend_race(forest, particles, alarms, k, uniforms, first, last, pair, grid)


def _extend_race(forest, particles, alarms, k, uniforms, first, last, pair, grid):
    n = particles.live.shape[1]
    n_live = n - k
    for p in range(first, last):
        stop.poll()
        first_slot = p * n  # the particle's first slot
        a = _first_to_ring(particles, alarms, p, n_live, first_slot)
        i = particles.live[p, a]
        j = first_slot + alarms.partner[p, i - first_slot]
        h = alarms.height[p, _alarm_of(i - first_slot, j - first_slot)]
        if not h < math.inf:
            particles.log_weights[p] = -math.inf
            h = _clock(particles, p, k)
        integral = _lay_pair_grid(forest, i, j, pair, grid)
        if integral > -math.inf:
            log_f = op.log_z(forest, pair, h) - (h - grid.edge[0])
            particles.log_weights[p] += integral + log_f - grids.log_density_at(grid, h)
        b = a
        for place in range(n_live):
            if particles.live[p, place] == j:
                b = place
            elif place != a:
                particles.log_weights[p] -= _log_silence(forest, particles.live[p, place], i, h, pair, grid)
                particles.log_weights[p] -= _log_silence(forest, particles.live[p, place], j, h, pair, grid)
        _join(forest, particles, p, k, a, b, h, pair)
        _renew_alarms(forest, particles, alarms, p, n_live - 1, i, j, uniforms, pair, grid)


def _first_to_ring(particles, alarms, p, n_live, first_slot):
    """Return the position of a live lineage with the earliest merge time of all."""
    a, least = 0, math.inf
    for place in range(n_live):
        i = particles.live[p, place] - first_slot
        h = alarms.height[p, _alarm_of(i, alarms.partner[p, i])]
        if h < least:
            a, least = place, h
    return a


def _log_silence(forest, i, j, h, pair, grid):
    """Return the log ratio of the probabilities that two slots do not merge below h: under their grid and under the prior."""
    integral = _lay_pair_grid(forest, i, j, pair, grid)
    silence = h - grid.edge[0]
    if integral > -math.inf:
        silence += grids.log_survival(grid, h)
    return silence


def _renew_alarms(forest, particles, alarms, p, n_live, new, dead, uniforms, pair, grid):
    """Draw the merge times of the lineage in slot `new`, and find new earliest partners for lineages that lost theirs."""
    first_slot = p * particles.live.shape[1]
    alarms.partner[p, new - first_slot] = -1
    for place in range(n_live):
        i = particles.live[p, place]
        if i == new:
            continue
        if (
            alarms.partner[p, i - first_slot] == new - first_slot
            or alarms.partner[p, i - first_slot] == dead - first_slot
        ):
            _find_first_alarm(particles, alarms, p, n_live, first_slot, i, new)
        h = math.inf
        if _lay_pair_grid(forest, i, new, pair, grid) > -math.inf:
            h = grids.draw_height(grid, uniforms[p, place, 0], uniforms[p, place, 1])
        _set_alarm(alarms, p, i - first_slot, new - first_slot, h)


def _find_first_alarm(particles, alarms, p, n_live, first_slot, i, new):
    """Find the partner with the earliest merge time of the lineage in slot i, except for slot `new`."""
    alarms.partner[p, i - first_slot] = -1
    for place in range(n_live):
        j = particles.live[p, place]
        if j != i and j != new:
            partner = alarms.partner[p, i - first_slot]
            if (
                partner < 0
                or alarms.height[p, _alarm_of(i - first_slot, j - first_slot)]
                < alarms.height[p, _alarm_of(i - first_slot, partner)]
            ):
                alarms.partner[p, i - first_slot] = j - first_slot


# -- resampling ------------------------------------------------------------------------------------------------------


def copy_particles(forest, particles, alarms, k, sources, targets):
    """After merge k, replace particles by copies of others; no target is a source."""
    with cython.nogil:
        for place in range(len(sources)):
            stop.poll()
            _copy_particle(forest, particles, alarms, k, sources[place], targets[place])


def _copy_particle(forest, particles, alarms, k, source, target):
    n = particles.live.shape[1]
    shift = (target - source) * n
    for place in range(n - k - 1):
        slot = particles.live[source, place]
        particles.live[target, place] = slot + shift
        particles.node[slot + shift] = particles.node[slot]
        op.move(forest, slot, slot + shift)
        forest.height[slot + shift] = forest.height[slot]
    for merge in range(k + 1):
        particles.children[target, merge, 0] = particles.children[source, merge, 0]
        particles.children[target, merge, 1] = particles.children[source, merge, 1]
        particles.heights[target, merge] = particles.heights[source, merge]
        particles.log_z[target, merge] = particles.log_z[source, merge]
        particles.log_ratios[target, merge] = particles.log_ratios[source, merge]
    particles.ancestor[target] = particles.ancestor[source]
    if alarms.height.shape[0] > 0:
        for place in range(n):
            alarms.partner[target, place] = alarms.partner[source, place]
        for place in range(1, n - k - 1):
            for other in range(place):
                pair = _alarm_of(particles.live[source, place] - source * n, particles.live[source, other] - source * n)
                alarms.height[target, pair] = alarms.height[source, pair]


def regraft_particles(work, history, segments, forest, bank, particles, k, uniforms, first, last):
    """After merge k, make moves in particles first <= p < last, as many as there are uniform numbers for.

    `work`, `history` and `segments` are those of a chain over all leaves. The forest of the particles has the messages of the n
    leaves from slot `bank` on, and n more slots for scratch. A move uses 4 uniform numbers.
    """
    at, number = np.empty(history.n_nodes, dtype=np.intp), np.empty(history.n_nodes, dtype=np.intp)
    with cython.nogil:
        for p in range(first, last):
            stop.poll()
            _load(work, history, segments.pair, particles, p, k)
            if _move_within(work, history, segments, p, k, uniforms):
                _put_in_order(work, history, k)
                _climb(forest, history, work, segments.pair, particles, p, k, bank, number, at)


def _load(work, history, pair, particles, p, k):
    """Load the history of a particle and the messages of its merges; merge j is node n + j."""
    n = history.n
    for b in range(history.n_nodes):
        history.parent[b] = NONE
    for j in range(n - 1):
        history.ladder[j] = particles.heights[p, j] if j <= k else math.inf
    tree.set_area(history, 0, history.n - 1)
    for j in range(k + 1):
        for side in range(2):
            child = particles.children[p, j, side]
            history.children[n + j, side] = child
            history.parent[child] = n + j
        work.height[n + j] = particles.heights[p, j]
        tree.merge_children(work, history, n + j, pair)


def _move_within(work, history, segments, p, k, uniforms):
    """Make the moves of a particle; return whether any subtree has moved."""
    n, moved_at_all = history.n, False
    for m in range(uniforms.shape[1]):
        stop.poll()
        s = int(uniforms[p, m, 0] * (n + k + 1))
        top = history.parent[s]
        if top == NONE or history.parent[top] == NONE:
            continue
        while history.parent[top] != NONE:
            top = history.parent[top]
        history.root = top
        moved, _ = regrafting.regraft(
            work,
            history,
            segments,
            s,
            2 * n,
            0.0,
            math.inf,
            False,
            False,  # these moves alone change heights
            math.inf,
            uniforms[p, m, 1],
            uniforms[p, m, 2],
            uniforms[p, m, 3],
        )
        moved_at_all = moved_at_all or moved
    return moved_at_all


def _put_in_order(work, history, k):
    """List the nodes of the merges in `order` by height; they were in order before a few of them moved."""
    for j in range(k + 1):
        node, place = history.n + j, j
        while place > 0 and work.height[history.order[place - 1]] > work.height[node]:
            history.order[place] = history.order[place - 1]
            place -= 1
        history.order[place] = node


def _climb(forest, history, work, pair, particles, p, k, bank, number, at):
    """Write a changed history into the particle: its merges, their contributions, and the messages of its live lineages."""
    n = history.n
    for leaf in range(n):
        number[leaf], at[leaf] = leaf, bank + n + leaf
        op.move(forest, bank + leaf, at[leaf])
        forest.height[at[leaf]] = 0.0
    for j in range(k + 1):
        number[history.order[j]] = n + j
    for j in range(k + 1):
        node = history.order[j]
        a, b = history.children[node, 0], history.children[node, 1]
        h, i, other = work.height[node], at[a], at[b]
        particles.children[p, j, 0] = min(number[a], number[b])
        particles.children[p, j, 1] = max(number[a], number[b])
        particles.heights[p, j] = h
        op.load_pair(forest, i, other, pair)
        log_z = op.log_z(forest, pair, h)
        apart = op.root_log_density(forest, i) + op.root_log_density(forest, other)
        op.merge(forest, i, other, h, i, pair)
        forest.height[i] = h
        particles.log_z[p, j] = log_z
        particles.log_ratios[p, j] = log_z + op.root_log_density(forest, i) - apart
        at[node] = i
    for place in range(n - k - 1):
        slot = particles.live[p, place]
        node = particles.node[slot]
        op.move(forest, at[node], slot)
        forest.height[slot] = forest.height[at[node]]
        particles.node[slot] = number[node]
