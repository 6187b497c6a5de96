"""Regrafting within the particles of sequential Monte Carlo, which are partial histories: forests of subtrees.

A subtree moves within the tree of the forest that it is part of, below its top, by eq. (13.1) and (13.2) with k counting the
lineages of the whole particle. This leaves the density of the partial history invariant, and with it all weights and the
evidence.
"""

from __future__ import annotations

import numpy as np

from ... import _math as math
from ...process.kernels import messages as op
from . import history as tree
from . import regraft as regrafting

try:
    import cython
except ImportError:
    from ..._nocython import cython

NONE = -1


def regraft_particles(work, history, segments, forest, bank, particles, k, uniforms, first, last):
    """After merge k, make moves in particles first <= p < last, as many as there are uniform numbers for.

    `work`, `history` and `segments` are those of a chain over all leaves. The forest of the particles has the messages of the n
    leaves from slot `bank` on, and n more slots for scratch. A move uses 4 uniform numbers.
    """
    at, number = np.empty(history.n_nodes, dtype=np.intp), np.empty(history.n_nodes, dtype=np.intp)
    with cython.nogil:
        for p in range(first, last):
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
