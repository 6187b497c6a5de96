"""Particles, partial histories of the coalescent, and the four ways to extend one by a merge.

All particles share one forest: particle p owns the slots ``p n`` to ``p n + n - 1``. A merged lineage takes the first one's
slot, and `live` lists the slots in use. Each kernel extends particles ``first <= p < last`` with uniform numbers drawn
beforehand, so that threads may share the particles and the result is the same.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import jit, kernel
from ..process import operations as op
from ._grid_kernels import GRID_SHAPE, draw_height, lay_grid, log_density_at, log_survival
from ._pair_kernels import pair_shift

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class Particles(NamedTuple):
    """Who lives in each particle, and what has merged."""

    live: IntArray  # (particles, leaves), slots of the lineages that live, the rest is old
    node: IntArray  # (slots,), number in the tree
    children: IntArray  # (particles, merges, 2)
    heights: FloatArray  # (particles, merges)
    log_z: FloatArray  # (particles, merges), local likelihoods
    log_ratios: FloatArray  # (particles, merges), one tree below the merge against two independent ones
    log_weights: FloatArray  # (particles,)
    ancestor: IntArray  # (particles,), the first particle that this one descends from


class Alarms(NamedTuple):
    """For `race`: when each live pair of a particle would merge, and each lineage's first such partner."""

    height: NDArray[np.float64]  # (particles, pairs of leaves)
    partner: IntArray  # (particles, leaves), by slot; both count slots from the particle's first


def new_particles(n_particles: int, n: int) -> Particles:
    """Return particles in which nothing has merged."""
    return Particles(
        live=np.arange(n_particles * n).reshape(n_particles, n),
        node=np.tile(np.arange(n), n_particles),
        children=np.zeros((n_particles, n - 1, 2), dtype=np.intp),
        heights=np.zeros((n_particles, n - 1)),
        log_z=np.zeros((n_particles, n - 1)),
        log_ratios=np.zeros((n_particles, n - 1)),
        log_weights=np.zeros(n_particles),
        ancestor=np.arange(n_particles),
    )


def new_alarms(n_particles: int, n: int) -> Alarms:
    """Return room for the alarms of all pairs of n leaves."""
    return Alarms(np.full((n_particles, n * (n - 1) // 2), math.inf), np.full((n_particles, n), -1))


@jit
def _join(forest, particles, p, k, a, b, h, pair):
    """Merge the lineages at places a and b of the live ones, at height h."""
    n = particles.live.shape[1]
    live = particles.live[p]
    i, j = live[a], live[b]
    particles.children[p, k, 0] = min(particles.node[i], particles.node[j])
    particles.children[p, k, 1] = max(particles.node[i], particles.node[j])
    particles.heights[p, k] = h
    op.load_pair(forest, i, j, pair)
    particles.log_z[p, k] = op.log_z(forest, pair, h)
    apart = op.root_log_density(forest, i) + op.root_log_density(forest, j)
    op.merge(forest, i, j, h, i)
    forest.height[i] = h
    particles.log_ratios[p, k] = particles.log_z[p, k] + op.root_log_density(forest, i) - apart
    particles.node[i] = n + k
    live[b] = live[n - k - 1]


@jit
def _clock(particles, p, k):
    return particles.heights[p, k - 1] if k > 0 else 0.0


@kernel
def extend_prior_prior(forest, particles, k, uniforms, first, last):
    """Draw time and pair from the prior."""
    n_live = particles.live.shape[1] - k
    c = 0.5 * n_live * (n_live - 1)
    pair = np.empty(op.pair_size(forest))
    for p in range(first, last):
        h = _clock(particles, p, k) - math.log1p(-uniforms[p, 0]) / c
        a = int(uniforms[p, 1] * n_live)
        b = int(uniforms[p, 2] * (n_live - 1))
        b += b >= a
        _join(forest, particles, p, k, a, b, h, pair)
        particles.log_weights[p] += particles.log_z[p, k]


@jit
def _score(forest, live, a, b, c, clock, h, pair, grid):
    """Log of what makes a pair likely to merge next: Z at height h, or its integral over all heights if h is NaN."""
    op.load_pair(forest, live[a], live[b], pair)
    if h == h:
        return op.log_z(forest, pair, h)
    return lay_grid(forest, pair, pair_shift(forest, live[a], live[b]), c, clock, grid)[1]


@jit
def _add_logs(x, y):
    top = max(x, y)
    return top + math.log(math.exp(x - top) + math.exp(y - top)) if top > -math.inf else top


@jit
def _choose_pair(forest, live, n_live, c, clock, h, pair, grid, rows, u_row, u_partner):
    """Choose a pair in proportion to its score; return its places and the log of all scores' sum."""
    total = -math.inf
    for a in range(1, n_live):
        rows[a] = -math.inf
        for b in range(a):
            rows[a] = _add_logs(rows[a], _score(forest, live, a, b, c, clock, h, pair, grid))
        total = _add_logs(total, rows[a])
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
        share = math.exp(_score(forest, live, chosen, b, c, clock, h, pair, grid) - rows[chosen])
        if share > 0:
            partner = b
            if left < share:
                break
            left -= share
    return chosen, partner, total


@kernel
def extend_by_likelihood(forest, particles, k, uniforms, time_first, first, last):
    """Draw the time from the prior and the pair in proportion to its likelihood then, or pair first, then time.

    A pair that is drawn first is drawn in proportion to its likelihood integrated over all times, and then its time.
    """
    n_live = particles.live.shape[1] - k
    c = 0.5 * n_live * (n_live - 1)
    pair, grid, rows = np.empty(op.pair_size(forest)), np.empty(GRID_SHAPE), np.empty(n_live)
    for p in range(first, last):
        clock, live = _clock(particles, p, k), particles.live[p]
        h = clock - math.log1p(-uniforms[p, 0]) / c if time_first else math.nan
        a, b, total = _choose_pair(forest, live, n_live, c, clock, h, pair, grid, rows, uniforms[p, 1], uniforms[p, 2])
        if time_first:
            particles.log_weights[p] += total - math.log(c)
        else:
            op.load_pair(forest, live[a], live[b], pair)
            count, integral = lay_grid(forest, pair, pair_shift(forest, live[a], live[b]), c, clock, grid)
            h = clock
            if integral > -math.inf:
                h = draw_height(grid, count, uniforms[p, 0], uniforms[p, 3])
                total += op.log_z(forest, pair, h) - c * (h - clock) - log_density_at(grid, count, h)
            particles.log_weights[p] += total
        _join(forest, particles, p, k, a, b, h, pair)


# -- race --------------------------------------------------------------------------------------------------------


@jit
def _alarm_of(i, j):
    """Place of the pair of slots i and j, counted from the particle's first, among the alarms."""
    older, younger = min(i, j), max(i, j)
    return younger * (younger - 1) // 2 + older


@jit
def _pair_grid(forest, i, j, pair, grid):
    """Lay the grid of an alarm: the pair merges at rate 1 from when the younger one appeared."""
    op.load_pair(forest, i, j, pair)
    start = max(forest.height[i], forest.height[j])
    count, integral = lay_grid(forest, pair, pair_shift(forest, i, j), 1.0, start, grid)
    return count, integral, start


@kernel
def set_first_alarms(forest, particles, alarms, i, uniforms, first, last):
    """Set the alarms of leaf i with the leaves before it; leaves are the same in all particles, and so are the grids."""
    n = particles.live.shape[1]
    pair, grid = np.empty(op.pair_size(forest)), np.empty(GRID_SHAPE)
    for j in range(i):
        count, integral, _ = _pair_grid(forest, first * n + i, first * n + j, pair, grid)
        for p in range(first, last):
            h = draw_height(grid, count, uniforms[p, j, 0], uniforms[p, j, 1]) if integral > -math.inf else math.inf
            _set_alarm(alarms, p, i, j, h)


@jit
def _set_alarm(alarms, p, i, j, h):
    """Note the alarm of a pair, and at each of the two if it is the first there."""
    heights, partner = alarms.height[p], alarms.partner[p]
    heights[_alarm_of(i, j)] = h
    for one, other in ((i, j), (j, i)):
        if partner[one] < 0 or h < heights[_alarm_of(one, partner[one])]:
            partner[one] = other


@kernel
def extend_race(forest, particles, alarms, k, uniforms, first, last):
    """Merge the pair whose alarm rings first; weigh it, and all pairs that die with it; set the new lineage's alarms."""
    n = particles.live.shape[1]
    n_live = n - k
    pair, grid = np.empty(op.pair_size(forest)), np.empty(GRID_SHAPE)
    for p in range(first, last):
        live, heights, partner = particles.live[p], alarms.height[p], alarms.partner[p]
        own = p * n  # the particle's first slot
        a = 0
        for place in range(1, n_live):
            i, best = live[place] - own, live[a] - own
            if heights[_alarm_of(i, partner[i])] < heights[_alarm_of(best, partner[best])]:
                a = place
        i, j = live[a], own + partner[live[a] - own]
        h = heights[_alarm_of(i - own, j - own)]
        if not h < math.inf:
            particles.log_weights[p] = -math.inf
            h = _clock(particles, p, k)
        count, integral, start = _pair_grid(forest, i, j, pair, grid)
        if integral > -math.inf:
            log_f = op.log_z(forest, pair, h) - (h - start)
            particles.log_weights[p] += integral + log_f - log_density_at(grid, count, h)
        b = a
        for place in range(n_live):
            if live[place] == j:
                b = place
            elif place != a:
                for dying in (i, j):
                    count, integral, start = _pair_grid(forest, live[place], dying, pair, grid)
                    particles.log_weights[p] -= h - start
                    if integral > -math.inf:
                        particles.log_weights[p] -= log_survival(grid, count, h)
        _join(forest, particles, p, k, a, b, h, pair)
        _renew_alarms(forest, particles, alarms, p, n_live - 1, i, j, pair, grid, uniforms)


@jit
def _renew_alarms(forest, particles, alarms, p, n_live, new, dead, pair, grid, uniforms):
    """Set the alarms of the lineage in slot `new`, and find the first ones of those that lost theirs."""
    live, heights, partner = particles.live[p], alarms.height[p], alarms.partner[p]
    own = p * particles.live.shape[1]
    partner[new - own] = -1
    for place in range(n_live):
        i = live[place]
        if i == new:
            continue
        if partner[i - own] == new - own or partner[i - own] == dead - own:
            partner[i - own] = -1
            for other in range(n_live):
                j = live[other]
                if j != i and j != new:
                    now = partner[i - own]
                    if now < 0 or heights[_alarm_of(i - own, j - own)] < heights[_alarm_of(i - own, now)]:
                        partner[i - own] = j - own
        count, integral, _ = _pair_grid(forest, i, new, pair, grid)
        h = math.inf
        if integral > -math.inf:
            h = draw_height(grid, count, uniforms[p, place, 0], uniforms[p, place, 1])
        _set_alarm(alarms, p, i - own, new - own, h)


# -- resampling --------------------------------------------------------------------------------------------------


@kernel
def copy_particles(forest, particles, alarms, k, sources, targets):
    """After merge k, let particles be copies of others; no target is a source."""
    n = particles.live.shape[1]
    for source, target in zip(sources, targets):  # noqa: B905, Numba's zip has no strict
        shift = (target - source) * n
        for place in range(n - k - 1):
            slot = particles.live[source, place]
            particles.live[target, place] = slot + shift
            particles.node[slot + shift] = particles.node[slot]
            op.move(forest, slot, slot + shift)
            forest.height[slot + shift] = forest.height[slot]
        for merge in range(k + 1):
            particles.children[target, merge] = particles.children[source, merge]
            particles.heights[target, merge] = particles.heights[source, merge]
            particles.log_z[target, merge] = particles.log_z[source, merge]
            particles.log_ratios[target, merge] = particles.log_ratios[source, merge]
        particles.ancestor[target] = particles.ancestor[source]
        if alarms.height.shape[0] > 0:
            alarms.partner[target] = alarms.partner[source]
            for place in range(1, n - k - 1):
                for other in range(place):
                    pair = _alarm_of(
                        particles.live[source, place] - source * n, particles.live[source, other] - source * n
                    )
                    alarms.height[target, pair] = alarms.height[source, pair]
