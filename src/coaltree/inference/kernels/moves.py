"""The moves of a Markov chain over trees, each of which leaves the posterior as it is."""

from __future__ import annotations

from ... import _math as math
from ... import _stop as stop
from . import height_draws as drawing
from . import history as tree
from . import regraft as regrafting

try:
    import cython
except ImportError:
    from ..._nocython import cython

SUBTREE, NEAR, LEAF, HEIGHTS, SCALE = range(5)  # the kinds of moves
EVERYWHERE = 0.25  # share of the moves over the whole tree that look at all of it, so that no place is out of reach


def make_moves(
    forest, history, segments, shares, log_stay, valley, stretch, uniforms, sweeps, log_joint, tried, accepted
):
    """Make as many moves as there are rows of 6 uniform numbers; return the log joint density, leaves' constants left out.

    `shares` are the moves' probabilities, added up; `tried` and `accepted` count them. Most moves do not look beyond places where
    log f is further than `valley` below the best. `sweeps` has uniform numbers for each move that draws all heights, of the shape
    that `height_draws` says.
    """
    with cython.nogil:
        log_joint = _make_moves(
            forest, history, segments, shares, log_stay, valley, stretch, uniforms, sweeps, log_joint, tried, accepted
        )
    return log_joint


def _make_moves(
    forest, history, segments, shares, log_stay, valley, stretch, uniforms, sweeps, log_joint, tried, accepted
):
    n, n_nodes, sweep = history.n, history.n_nodes, 0
    for m in range(uniforms.shape[0]):
        stop.poll()
        kind = 0
        while kind < SCALE and uniforms[m, 0] >= shares[kind]:
            kind += 1
        tried[kind] += 1
        if kind == SCALE:
            factor = math.exp(stretch * (uniforms[m, 1] - 0.5))
            moved, gain = _scale(forest, history, segments.pair, log_joint, factor, uniforms[m, 2])
        elif kind == HEIGHTS:
            tree.set_area(history, 0, n - 1)  # clears rounding errors away
            gain = drawing.sweep_once(forest, history, sweeps, sweep, segments.pair, segments.place)
            sweep, moved = sweep + 1, True
        else:
            s = int(uniforms[m, 1] * (n if kind == LEAF else n_nodes - 1))
            if kind != LEAF and s >= history.root:
                s += 1
            steps, log_chance, deepest = n_nodes, 0.0, valley
            if kind == NEAR:
                steps = int(math.log(1 - uniforms[m, 2]) / log_stay)
                steps, log_chance = steps + 1, log_stay
            elif uniforms[m, 2] < EVERYWHERE:
                deepest = math.inf
            moved, gain = regrafting.regraft(
                forest,
                history,
                segments,
                s,
                steps,
                log_chance,
                math.inf,
                True,
                True,
                deepest,
                uniforms[m, 3],
                uniforms[m, 4],
                uniforms[m, 5],
            )
        accepted[kind] += moved
        log_joint += gain
    return log_joint


def climb(forest, history, segments, first, last, least_gain):
    """Hang each subtree, from one slot to another, where it fits best; return how many moved."""
    with cython.nogil:
        moves = _climb(forest, history, segments, first, last, least_gain)
    return moves


def _climb(forest, history, segments, first, last, least_gain):
    moves, steps = 0, history.n_nodes
    for s in range(first, last):
        stop.poll()
        if s != history.root:
            moved, _ = regrafting.regraft(
                forest, history, segments, s, steps, 0.0, least_gain, True, False, math.inf, 0.0, 0.0, 0.0
            )
            moves += moved
    return moves


def _scale(forest, history, pair, log_joint, factor, u):
    """Multiply all heights by a factor, eq. (13.3); return whether that was accepted, and the gain."""
    gain = tree.climb_scaled_tree(forest, history, factor, pair) + factor * tree.log_prior_of(history) - log_joint
    accepted = math.log(u) < gain + (history.n - 1) * math.log(factor)
    if not accepted:
        return False, 0.0
    tree.scale_tree(forest, history, factor)
    return True, gain
