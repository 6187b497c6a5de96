"""The moves of a Markov chain over trees, each of which leaves the posterior as it is."""

from __future__ import annotations

import math

import numpy as np

from ..compiled import inlined, kernel
from ._history_kernels import log_likelihood_of, log_prior_of
from ._regraft_kernels import regraft

SUBTREE, NEAR, LEAF, HEIGHT, SCALE = range(5)
MOVES = ("subtree", "near", "leaf", "height", "scale")
UNIFORMS = 6  # numbers that a move takes


@kernel
def make_moves(forest, history, cells, shares, log_stay, stretch, uniforms, log_joint, tried, accepted):
    """Make as many moves as there are rows of uniform numbers; return the log joint density, leaves' constants left out.

    `shares` are the moves' probabilities, added up; `tried` and `accepted` count them.
    """
    n_nodes = len(history.parent)
    n = len(history.ladder) + 1
    for m in range(len(uniforms)):
        u = uniforms[m]
        kind = 0
        while kind < SCALE and u[0] >= shares[kind]:
            kind += 1
        tried[kind] += 1
        if kind == SCALE:
            moved, gain = _scale(forest, history, log_joint, math.exp(stretch * (u[1] - 0.5)), u[2])
        else:
            s = int(u[1] * (n if kind == LEAF else n_nodes - 1))
            if kind != LEAF and s >= history.root[0]:
                s += 1
            steps, log_chance = n_nodes, 0.0
            if kind == NEAR:
                steps, log_chance = 1 + int(math.log(1 - u[2]) / log_stay), log_stay
            elif kind == HEIGHT:
                steps = 0
            moved, gain = regraft(forest, history, cells, s, steps, log_chance, math.inf, True, u[3:])
        accepted[kind] += moved
        log_joint += gain
    return log_joint


@kernel
def climb(forest, history, cells, first, last, least_gain):
    """Hang each subtree, from one slot to another, where it fits best; return how many moved."""
    moves = 0
    no_uniforms = np.empty(0)
    for s in range(first, last):
        if s != history.root[0]:
            moved, _ = regraft(forest, history, cells, s, len(history.parent), 0.0, least_gain, True, no_uniforms)
            moves += moved
    return moves


@inlined
def _scale(forest, history, log_joint, factor, u):
    """Multiply all heights by a factor, eq. (13.3)."""
    n = len(history.ladder) + 1
    before, ladder_before = np.empty(n - 1), np.empty(n - 1)
    for k in range(n - 1):
        before[k], ladder_before[k] = forest.height[n + k], history.ladder[k]
        forest.height[n + k] = factor * before[k]
        history.ladder[k] = factor * ladder_before[k]
    gain = log_likelihood_of(forest, history) + log_prior_of(history) - log_joint
    accepted = math.log(u) < gain + (n - 1) * math.log(factor)
    if not accepted:
        gain = 0.0
        for k in range(n - 1):
            forest.height[n + k], history.ladder[k] = before[k], ladder_before[k]
        log_likelihood_of(forest, history)
    return accepted, gain
