"""Sketches of binary sites: single precision, with which most pairs of a wide table are ruled out.

A scan for partners reads the messages of all live lineages, and in a wide table it is reading that takes the time. The sketch of
a lineage has one number for each site with two states, and is a quarter as long as its message.

The reflection that takes ``sqrt(q)`` to the first axis leaves of a message

    ``z = sqrt(q_1) M_1 - sqrt(q_1) (1 + sqrt(q_0) M_0) / (1 + sqrt(q_0))``,

so that two of them agree by ``S = 1 + z z'``; sketched is ``exp(rate height) z``. All sites have one rate, so that ``log Z - h``
is concave in ``1 - exp(-rate g)``, see `heights`: it rises all the way to a limit if it rises there. With ``u = exp(-rate g)``
its slope there is ``2 rate sum_d (1 / p_d - 1) - 1``, where ``p_d = 1 + u z_d z'_d``.

Sketches prove that a pair rises, and nothing else. No p is taken to be below `LEAST`, which makes the sum smaller. With a unit
roundoff of e = 2^-24, p is off by at most ``4 e |p - 1| + e p``, 1 / p by a share of at most ``4 e / LEAST + e``, and the sum, as
it is added up below, by a share of 30 e more, rounded weights included: less than `MARGIN` in all. What cannot be sketched is
not a number, and proves nothing.
"""

from __future__ import annotations

import numpy as np

from ... import _math as math

LEAST = 2.0**-6
MARGIN = 2e-5
LARGEST = 1e6  # of z: a larger one may have lost digits
LARGEST_EXPONENT = 40.0  # of rate times height: its square is far from the ends of single precision


class Sketch:
    """Sketches of lineages, a row for each slot; rows are empty where there is more to a table than binary sites of one rate."""

    def __init__(self, forest, capacity):
        n_sites = 0
        if forest.n_real == 0 and forest.common_rate > 0 and forest.n_ranks == 2:
            n_sites = int(forest.rank[2] - forest.rank[1])
        self.n_sites = n_sites
        self.total_weight = float(np.asarray(forest.site_weight)[:n_sites].sum())
        self.rows = np.full((capacity if n_sites else 0, n_sites), np.nan, dtype=np.float32)


class Glance:
    """What one thread needs to look at sketches."""

    def __init__(self, forest):
        n_sites = forest.n_sites if forest.n_real == 0 else 0
        self.one = np.empty(n_sites, dtype=np.float32)  # the sketch that others are held against
        self.term = np.empty(n_sites, dtype=np.float32)
        self.weight = np.asarray(forest.site_weight, dtype=np.float32)[:n_sites]


def enter(forest, sketch, slot):
    """Sketch the lineage in a slot."""
    growth = math.nan
    if reaches(forest, forest.height[slot]):
        growth = math.exp(forest.common_rate * forest.height[slot])
    first = forest.n_sites
    for d in range(sketch.n_sites):
        z = forest.state[slot, first + d] - forest.root_q[first + d] * (1 + forest.state[slot, d]) / (
            1 + forest.root_q[d]
        )
        sketch.rows[slot, d] = growth * z if abs(z) <= LARGEST else math.nan


def move(sketch, source, target):
    """Copy the sketch of a slot to another slot."""
    for d in range(sketch.n_sites):
        sketch.rows[target, d] = sketch.rows[source, d]


def reaches(forest, limit):
    """Return whether there are sketches for merges at a limit."""
    return forest.common_rate * limit <= LARGEST_EXPONENT


def start(forest, sketch, slot, limit, glance):
    """Hold others against a slot: `slope` is then about merges at a limit, which is within reach."""
    u = math.exp(-2 * forest.common_rate * limit)
    for d in range(sketch.n_sites):
        glance.one[d] = u * sketch.rows[slot, d]


def slope(forest, sketch, slot, glance):
    """Return a number that the slope of ``log Z`` at the limit, of a slot and the one it is held against, is not below.

    Where it is above 1, ``log Z - h`` rises all the way up to the limit.
    """
    n = sketch.n_sites
    quarter = n // 4
    one, least = 1.0, LEAST
    for d in range(n):
        p = one + glance.one[d] * sketch.rows[slot, d]
        glance.term[d] = least if p < least else p  # not a number stays what it is
    total = 0.0
    if forest.weighted_sites:
        for d in range(n):
            glance.term[d] = glance.weight[d] / glance.term[d]
        quarter = n
    else:
        # four terms by one division: 1 / p + 1 / q + 1 / r + 1 / s
        for d in range(quarter):
            p, q = glance.term[d], glance.term[quarter + d]
            r, s = glance.term[2 * quarter + d], glance.term[3 * quarter + d]
            pq, rs = p * q, r * s
            glance.term[d] = ((p + q) * rs + (r + s) * pq) / (pq * rs)
        for d in range(4 * quarter, n):
            total += 1 / float(glance.term[d])
    while quarter > 8:
        half = (quarter + 1) // 2
        for d in range(quarter - half):
            glance.term[d] += glance.term[half + d]
        quarter = half
    for d in range(quarter):
        total += glance.term[d]
    return 2 * forest.common_rate * (total * (1 - MARGIN) - sketch.total_weight)
