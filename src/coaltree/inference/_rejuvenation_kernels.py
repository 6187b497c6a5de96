"""Regrafting within the particles of sequential Monte Carlo, which are partial histories: forests of subtrees.

A subtree of a subtree moves within the latter, below its top, as eq. (13.1) and (13.2) have it with the lineages of the whole
particle for k. That leaves the partial history's own density as it is, and with it all weights and the evidence.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiled import jit, kernel
from ..process import operations as op
from ._history_kernels import NONE, merge_children, set_area
from ._regraft_kernels import regraft

UNIFORMS = 4  # numbers that a move takes


@kernel
def regraft_particles(work, history, cells, forest, bank, particles, k, uniforms, first, last):
    """After merge k, make moves in particles first <= p < last, as many as there are uniform numbers for.

    `work`, `history` and `cells` are those of a chain over all leaves. The particles' own forest has the messages of the n
    leaves from slot `bank` on, and n more slots for scratch.
    """
    n = particles.live.shape[1]
    at, number = np.empty(2 * n - 1, np.intp), np.empty(2 * n - 1, np.intp)
    order = np.empty(n - 1, np.intp)
    for p in range(first, last):
        _load(work, history, particles, p, k)
        moved_at_all = False
        for m in range(uniforms.shape[1]):
            u = uniforms[p, m]
            s = int(u[0] * (n + k + 1))
            top = history.parent[s]
            if top == NONE or history.parent[top] == NONE:
                continue
            while history.parent[top] != NONE:
                top = history.parent[top]
            history.root[0] = top
            moved, _ = regraft(work, history, cells, s, 2 * n, 0.0, math.inf, False, u[1:])
            moved_at_all |= moved
        if moved_at_all:
            _put_in_order(work, order, n, k)
            for j in range(n):
                number[j] = j
            for j in range(k + 1):
                number[order[j]] = n + j
            _climb(forest, history, work, particles, p, k, bank, order, number, at)


@jit
def _load(work, history, particles, p, k):
    """Make the history of a particle, and the messages of its merges; merge j is node n + j."""
    n = particles.live.shape[1]
    for b in range(len(history.parent)):
        history.parent[b] = NONE
    for j in range(n - 1):
        history.ladder[j] = particles.heights[p, j] if j <= k else math.inf
    set_area(history, 0)
    for j in range(k + 1):
        for side in range(2):
            child = particles.children[p, j, side]
            history.children[n + j, side] = child
            history.parent[child] = n + j
        work.height[n + j] = particles.heights[p, j]
        merge_children(work, history, n + j)


@jit
def _put_in_order(work, order, n, k):
    """List the merges' nodes by height; they were in order before a few of them moved."""
    for j in range(k + 1):
        node, place = n + j, j
        while place > 0 and work.height[order[place - 1]] > work.height[node]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = node


@jit
def _climb(forest, history, work, particles, p, k, bank, order, number, at):
    """Write a changed history into the particle: its merges, what they contribute, and the messages of its live lineages."""
    n = particles.live.shape[1]
    pair = np.empty(op.pair_size(forest))
    for leaf in range(n):
        at[leaf] = bank + n + leaf
        op.move(forest, bank + leaf, at[leaf])
        forest.height[at[leaf]] = 0.0
    for j in range(k + 1):
        node = order[j]
        a, b = history.children[node]
        h, i, other = work.height[node], at[a], at[b]
        particles.children[p, j, 0] = min(number[a], number[b])
        particles.children[p, j, 1] = max(number[a], number[b])
        particles.heights[p, j] = h
        op.load_pair(forest, i, other, pair)
        particles.log_z[p, j] = op.log_z(forest, pair, h)
        apart = op.root_log_density(forest, i) + op.root_log_density(forest, other)
        op.merge(forest, i, other, h, i)
        forest.height[i] = h
        particles.log_ratios[p, j] = particles.log_z[p, j] + op.root_log_density(forest, i) - apart
        at[node] = i
    for place in range(n - k - 1):
        slot = particles.live[p, place]
        node = particles.node[slot]
        op.move(forest, at[node], slot)
        forest.height[slot] = forest.height[at[node]]
        particles.node[slot] = number[node]
