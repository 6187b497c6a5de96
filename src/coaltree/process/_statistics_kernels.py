"""What a tree and the messages on it say of a process's parameters."""

from __future__ import annotations

import math

import numpy as np

from ..compiled import Operation, jit, kernel
from . import operations as op
from ._brownian_kernels import CompleteForest, DiagonalForest


def _contrast(forest, i, j, h, gaps, variances):
    """Put the difference of two messages that merge at h, and its variance, into an entry for each column; else NaN."""


CONTRAST = Operation(_contrast)
contrast = CONTRAST.function


@CONTRAST.supply(CompleteForest)
def _(forest, i, j, h, gaps, variances):
    s = forest.v[i] + forest.v[j] + max(2 * h - forest.height[i] - forest.height[j], 0.0)
    for d in range(forest.y.shape[0]):
        gaps[d] = forest.y[d, i] - forest.y[d, j]
        variances[d] = s


@CONTRAST.supply(DiagonalForest)
def _(forest, i, j, h, gaps, variances):
    g = max(2 * h - forest.height[i] - forest.height[j], 0.0)
    for d in range(forest.y.shape[0]):
        s = forest.v[d, i] + forest.v[d, j] + g
        gaps[d] = forest.y[d, i] - forest.y[d, j] if s < math.inf else math.nan
        variances[d] = s if s < math.inf else math.nan


@kernel
def contrasts(forest, children, heights, gaps, variances):
    """Climb a tree and write down the contrast of every merge, a row each; return the slot that ends at the root."""
    n = len(children) + 1
    slot = np.arange(2 * n - 1)
    for k in range(n - 1):
        i, j, h = slot[children[k, 0]], slot[children[k, 1]], heights[n + k]
        contrast(forest, i, j, h, gaps[k], variances[k])
        op.merge(forest, i, j, h, i)
        forest.height[i] = h
        slot[n + k] = i
    return slot[2 * n - 2]


@kernel
def expected_redraws(forest, children, heights, turn, lengths, redraws, draws):
    """Say of every edge how probably a column's state was drawn anew on it, and how often each state was drawn in all.

    For a forest of categorical messages after `pass_up_and_down`. The edges are those of the tree without its root: the two
    that meet there are one, since nothing tells where on it the root is. The root is taken to be at the lower end
    of one of them. `lengths` (edges,), `redraws` (columns, edges) and `draws` (states,) are filled.
    """
    n = len(children) + 1
    n_nodes = 2 * n - 1
    m, start, root_q = forest.m, forest.start, forest.root_q
    draws[:] = 0.0
    if n == 1:
        for k in range(len(draws)):
            draws[k] = m[k, 0] * root_q[k]
        return
    start_node = children[n - 2, 1]
    edge = 0
    for node in range(n_nodes - 1):
        if node == start_node:
            continue
        length = turn[node] - heights[node]
        lengths[edge] = length
        for d in range(forest.rate.shape[0]):
            agreement = 0.0
            for k in range(start[d], start[d + 1]):
                agreement += m[k, node] * m[k, n_nodes + node]
            keep, redraw = math.exp(-forest.rate[d] * length), -math.expm1(-forest.rate[d] * length)
            z = keep * agreement + redraw
            share = redraw / z if z > 0 else 1.0
            redraws[d, edge] = share
            for k in range(start[d], start[d + 1]):
                draws[k] += share * root_q[k] * m[k, node]
        edge += 1
    other = children[n - 2, 0]  # what comes down to the start: the other child's message over the edge between them
    length = turn[start_node] - heights[start_node]
    for d in range(forest.rate.shape[0]):
        keep, redraw = math.exp(-forest.rate[d] * length), -math.expm1(-forest.rate[d] * length)
        z = 0.0
        for k in range(start[d], start[d + 1]):
            z += m[k, start_node] * (redraw * root_q[k] + keep * m[k, other])
        for k in range(start[d], start[d + 1]):
            draws[k] += m[k, start_node] * (redraw * root_q[k] + keep * m[k, other]) / z if z > 0 else 0.0


@kernel
def draw_redraws(forest, children, heights, uniforms, redrawn, states):
    """Draw the states of all nodes given those of the leaves, and on which of the branches above them states were drawn anew.

    For a forest of ``2n - 1`` slots with categorical messages of the leaves in its first n. `uniforms`, `redrawn` and `states`,
    of which each counts from the column's first, have shape (columns, nodes); the root's state is always drawn anew.
    """
    n = len(children) + 1
    m, start, root_q = forest.m, forest.start, forest.root_q
    for k in range(n - 1):
        op.merge(forest, children[k, 0], children[k, 1], heights[n + k], n + k)
        forest.height[n + k] = heights[n + k]
    for d in range(forest.rate.shape[0]):
        redrawn[d, 2 * n - 2] = True
        states[d, 2 * n - 2] = _draw_state(m, root_q, start, d, 2 * n - 2, uniforms[d, 2 * n - 2])
        for k in range(n - 2, -1, -1):
            above = start[d] + states[d, n + k]
            for node in children[k]:
                x = forest.rate[d] * (heights[n + k] - heights[node])
                kept, redraw = math.exp(-x) * m[above, node] / root_q[above], -math.expm1(-x)
                u = uniforms[d, node] * (kept + redraw)
                redrawn[d, node] = not u < kept
                if redrawn[d, node]:
                    states[d, node] = _draw_state(m, root_q, start, d, node, (u - kept) / redraw if redraw > 0 else u)
                else:
                    states[d, node] = above - start[d]


@jit
def _draw_state(m, root_q, start, d, node, u):
    """Draw a state of column d at equilibrium, given what lies below a node."""
    for k in range(start[d], start[d + 1]):
        u -= root_q[k] * m[k, node]
        if u < 0:
            return k - start[d]
    best = start[d]  # rounding has left nothing of the last state
    for k in range(start[d], start[d + 1]):
        if root_q[k] * m[k, node] > root_q[best] * m[best, node]:
            best = k
    return best - start[d]
