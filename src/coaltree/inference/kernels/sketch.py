"""Sketches of sites: single precision, with which most pairs of a wide table are ruled out.

A scan for partners reads the messages of all live lineages, and in a wide table it is reading that takes the time. The sketch of
a lineage has one number less for each site than the site has states, and is a quarter as long as the message of binary sites, a
third as long as that of sites with three states.

The reflection that takes ``sqrt(q)`` to the first axis leaves of a message, for every state k but the first,

    ``z_k = sqrt(q_k) M_k - sqrt(q_k) (1 + sqrt(q_0) M_0) / (1 + sqrt(q_0))``,

so that two of them agree by ``S = 1 + sum_k z_k z'_k``; sketched is ``exp(rate height) z``. All sites have one rate, so that
``log Z - h`` is concave in ``1 - exp(-rate g)``, see `heights`: it rises all the way to a limit if it rises there. With
``u = exp(-rate g)`` its slope there is ``2 rate sum_d (1 / p_d - 1) - 1``, where ``p_d = 1 + u sum_k z_dk z'_dk``.

Sketches prove that a pair rises, and nothing else. No p is taken to be below `LEAST`, which makes the sum smaller. With a unit
roundoff of e = 2^-24, p of a binary site is off by at most ``4 e |p - 1| + e p``, 1 / p by a share of at most
``4 e / LEAST + e``, and the sum, as it is added up below, by a share of 30 e more, rounded weights included: less than `MARGIN`
in all. Of a site with K > 2 states, products of both signs are added up, each off by at most 4 e, their sum by at most
``(K + 3) e u sum_k |z_k z'_k|``. By Cauchy and Schwarz the last sum is at most the product of the lengths of z and z'. The
product of the largest lengths among the sites of each lineage stands for it, and that much is added to every p. What cannot be
sketched is not a number, and proves nothing.
"""

from __future__ import annotations

import numpy as np

from ... import _math as math

LEAST = 2.0**-6
MARGIN = 2e-5
LARGEST = 1e6  # of z: a larger one may have lost digits
LARGEST_EXPONENT = 40.0  # of rate times height: its square is far from the ends of single precision
ROUNDOFF = 2.0**-24


class Sketch:
    """Sketches of lineages, a row for each slot; rows are empty where there is more to a table than sites of one rate."""

    def __init__(self, forest, capacity):
        n_sites, n_numbers = 0, 0
        if forest.n_real == 0 and forest.common_rate > 0 and forest.n_ranks >= 2:
            n_sites = int(forest.rank[2] - forest.rank[1])
            n_numbers = int(forest.rank[forest.n_ranks] - forest.rank[1])
        self.n_sites = n_sites  # with two states or more
        self.n_numbers = n_numbers
        self.total_weight = float(np.asarray(forest.site_weight)[:n_sites].sum())
        self.error = (forest.n_ranks + 3) * ROUNDOFF if forest.n_ranks > 2 else 0.0
        self.rows = np.full((capacity if n_sites else 0, n_numbers), np.nan, dtype=np.float32)
        self.length = np.zeros(capacity if n_sites else 0)  # the largest of a site, of each row


class Glance:
    """What one thread needs to look at sketches."""

    def __init__(self, forest):
        is_sketched = forest.n_real == 0 and forest.n_ranks >= 2
        self.one = np.empty(
            forest.state.shape[1] if is_sketched else 0, dtype=np.float32
        )  # that others are held against
        self.term = np.empty(forest.n_sites if is_sketched else 0, dtype=np.float32)
        self.weight = np.asarray(forest.site_weight, dtype=np.float32)[: self.term.shape[0]]
        self.error = 0.0  # of p, for each unit of length of the other sketch


def enter(forest, sketch, slot, glance):
    """Sketch the lineage in a slot."""
    growth = math.nan
    if reaches(forest, forest.height[slot]):
        growth = math.exp(forest.common_rate * forest.height[slot])
    for d in range(sketch.n_sites):
        glance.term[d] = 0.0
    begin = forest.rank[1]
    largest = 0.0
    for k in range(1, forest.n_ranks):
        first = forest.rank[k]
        for d in range(forest.rank[k + 1] - first):
            z = forest.state[slot, first + d] - forest.root_q[first + d] * (1 + forest.state[slot, d]) / (
                1 + forest.root_q[d]
            )
            sketch.rows[slot, first - begin + d] = growth * z if abs(z) <= LARGEST else math.nan
            glance.term[d] += z * z
            largest = max(largest, glance.term[d])
    # rounded sums of squares, and digits that z has lost in double precision, are within the 1 that is added
    sketch.length[slot] = growth * (1 + math.sqrt(largest)) if largest <= LARGEST**2 else math.nan


def move(sketch, source, target):
    """Copy the sketch of a slot to another slot."""
    for d in range(sketch.n_numbers):
        sketch.rows[target, d] = sketch.rows[source, d]
    sketch.length[target] = sketch.length[source]


def reaches(forest, limit):
    """Return whether there are sketches for merges at a limit."""
    return forest.common_rate * limit <= LARGEST_EXPONENT


def start(forest, sketch, slot, limit, glance):
    """Hold others against a slot: `slope` is then about merges at a limit, which is within reach."""
    u = math.exp(-2 * forest.common_rate * limit)
    for d in range(sketch.n_numbers):
        glance.one[d] = u * sketch.rows[slot, d]
    glance.error = sketch.error * u * sketch.length[slot]


def slope(forest, sketch, slot, glance):
    """Return a number that the slope of ``log Z`` at the limit, of a slot and the one it is held against, is not below.

    Where it is above 1, ``log Z - h`` rises all the way up to the limit.
    """
    n = sketch.n_sites
    quarter = n // 4
    one, least = 1.0 + glance.error * sketch.length[slot] if sketch.error else 1.0, LEAST
    if forest.n_ranks == 2:
        for d in range(n):
            p = one + glance.one[d] * sketch.rows[slot, d]
            glance.term[d] = least if p < least else p  # not a number stays what it is
    else:
        for d in range(n):
            glance.term[d] = one + glance.one[d] * sketch.rows[slot, d]
        for k in range(2, forest.n_ranks):
            first = forest.rank[k] - forest.rank[1]
            for d in range(forest.rank[k + 1] - forest.rank[k]):
                glance.term[d] += glance.one[first + d] * sketch.rows[slot, first + d]
        for d in range(n):
            glance.term[d] = least if glance.term[d] < least else glance.term[d]
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
