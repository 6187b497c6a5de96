"""Draws of the heights of a tree's merges, who merges with whom being given.

The heights are changed one after the other. With all others held, a merge is somewhere between the higher of its children and its
parent, with density in proportion to ``Z(h) exp(-A(h))``: Z is the likelihood of its children's messages and of what comes down
from its parent, meeting at height h, and A the number of live lineages, integrated up to h, of the tree without this merge.

A draw leaves that density as it is. It is a step of slice sampling in the coordinate ``v = w / (1 + w)``, with w what A has
gained since the children: noisy cells say little of low merges, and w is then about exponential, however many lineages live.
In that coordinate the density is ``Z exp(-w) (1 + w)^2 / k``, with k the number of live lineages at h.

A sweep goes down from the root and up again by way of all merges. A merge is drawn on the way down, when what comes down to it
is new, and on the way up, when what lies below is: the messages that it needs are always there, two merges of messages for each.
"""

from __future__ import annotations

from ... import _math as math
from ...process.kernels import messages as op
from . import history as tree

NONE = -1
TRIES = 15  # of a draw: then the height stays, which leaves the density as it is, too
UNIFORMS = TRIES + 1  # that a draw takes


def sweep_once(forest, history, uniforms, sweep, pair, place):
    """Draw the heights of all merges twice; return how much the log joint density has gained.

    `uniforms` has the shape (sweeps, 2 merges, UNIFORMS). The upward messages have to be there, see `log_likelihood_of`, and
    are there again at the end.
    """
    n, count, gain = history.n, 0, 0.0
    node, before = history.root, NONE
    while node != NONE:
        first, second, parent = history.children[node, 0], history.children[node, 1], history.parent[node]
        following = NONE
        if before == parent:  # on the way down
            if parent != NONE:
                tree.send_down(forest, history, node, pair)
            if first >= n or second >= n:
                gain += _draw_height(forest, history, node, uniforms, sweep, count, pair, place)
                count += 1
                following = first if first >= n else second
        elif before == first and second >= n:
            following = second
        if following == NONE:  # all is done below
            gain += _draw_height(forest, history, node, uniforms, sweep, count, pair, place)
            count += 1
            tree.merge_children(forest, history, node, pair)
            following = parent
        before, node = node, following
    return gain


def _draw_height(forest, history, node, uniforms, sweep, draw, pair, place):
    """Draw the height of one merge, and return how much the log joint density has gained.

    The messages of its children and of what comes down to it are there.
    """
    a, b, parent = history.children[node, 0], history.children[node, 1], history.parent[node]
    height, low, high, last = forest.height[node], max(forest.height[a], forest.height[b]), math.inf, 1.0
    old_rung = tree.rung_at(history, height)
    # without the merge itself, one lineage less lives up to its height
    at_low, length_at_height = tree.lineages_up_to(history, low) - low, history.area[old_rung] - height
    if parent == NONE:
        op.load_pair(forest, a, b, pair)
    else:
        op.load_place(forest, a, history.n_nodes + node, history.turn[node], b, place)
        high = forest.height[parent]
        w = max(tree.lineages_up_to(history, high) - height - at_low, 0.0)
        last = w / (1 + w)
    w = max(length_at_height - at_low, 0.0)
    p_low, first = w / (1 + w), 0.0
    before = _log_density(forest, parent, height, w, pair, place)
    level = before + _log_stretch(history, w, old_rung) + math.log(1 - uniforms[sweep, draw, 0])
    for k in range(TRIES):
        v = first + (last - first) * uniforms[sweep, draw, k + 1]
        w = v / (1 - v)
        h, rung = _height_at(history, at_low + w, old_rung, length_at_height)
        if low < h < high:
            log_density = _log_density(forest, parent, h, w, pair, place)
            if log_density + _log_stretch(history, w, rung) >= level:
                _move_rung(history, old_rung, rung, h, at_low + w + h)
                forest.height[node] = h
                return log_density - before
        if v < p_low:
            first = v
        else:
            last = v
    return 0.0


def _log_density(forest, parent, h, w, pair, place):
    """Return the log density of a merge at height h, where A has gained w."""
    return (op.log_z(forest, pair, h) if parent == NONE else op.log_z_at(forest, place, h)) - w


def _log_stretch(history, w, rung):
    """Return the log of dh / dv, with which the density in the coordinate v is that of h, at a rung of the ladder."""
    return math.log((1 + w) * (1 + w) / (history.n - 1 - rung))


def _height_at(history, length, old_rung, length_at_height):
    """Return the height up to which lineages add up to a length, without the merge of a rung, and the rung at that height."""
    height = history.ladder[old_rung]
    if length <= length_at_height:
        low, high = 0, old_rung
        while low < high:
            middle = (low + high) // 2
            if history.area[middle] - history.ladder[middle] < length:
                low = middle + 1
            else:
                high = middle
        below = history.ladder[low - 1] if low > 0 else 0.0
        before = history.area[low - 1] - below if low > 0 else 0.0
        return min(below + (length - before) / (history.n - low - 1), history.ladder[low]), low
    length += height
    low, high = old_rung + 1, history.n - 1
    while low < high:
        middle = (low + high) // 2
        if history.area[middle] < length:
            low = middle + 1
        else:
            high = middle
    h = history.ladder[low - 1] + (length - history.area[low - 1]) / (history.n - low)
    return min(h, history.ladder[low]) if low < history.n - 1 else h, low - 1


def _move_rung(history, old_rung, rung, h, area):
    """Let the merge of a rung be at height h, where it has another rung and lineages add up to `area`.

    At a height x they add up to ``min(x, h) - min(x, height)`` more than before. The loops can be vectorised.
    """
    height = history.ladder[old_rung]
    change = h - height
    for k in range(max(old_rung, rung) + 1, history.n - 1):
        history.area[k] += change
    for k in range(old_rung, rung):
        history.ladder[k] = history.ladder[k + 1]
    for k in range(old_rung, rung):
        history.area[k] = history.area[k + 1] + (history.ladder[k] - height)
    for k in range(old_rung, rung, -1):
        history.area[k] = history.area[k - 1] + (h - history.ladder[k - 1])
    for k in range(old_rung, rung, -1):
        history.ladder[k] = history.ladder[k - 1]
    history.ladder[rung], history.area[rung] = h, area
