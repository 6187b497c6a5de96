"""Passes over a given tree: the contributions of its merges, the messages on its branches, and statistics for its parameters.

All processes are reversible in time, so messages from the rest of the tree travel down a branch as messages from below travel
up. A message that comes down to height h over a path of length t is merged like one that stands at ``h - t``.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from ..._nocython import cython

import numpy as np

from ... import _math as math
from ... import _stop as stop
from . import messages as op


def climb(forest, children, heights, slot, log_z, log_ratios, first, last):
    """Make merges first <= k < last of a tree; store their local likelihoods, and the ratios of one tree against two.

    `slot` has the position of the message of each node.
    """
    pair = op.Pair(forest)
    with cython.nogil:
        _climb(forest, children, heights, slot, log_z, log_ratios, first, last, pair)


def _climb(forest, children, heights, slot, log_z, log_ratios, first, last, pair):
    n = children.shape[0] + 1
    for k in range(first, last):
        if k % stop.STRIDE == 0:
            stop.poll()
        i, j, h = slot[children[k, 0]], slot[children[k, 1]], heights[n + k]
        op.load_pair(forest, i, j, pair)
        log_z[k] = op.log_z(forest, pair, h)
        apart = op.root_log_density(forest, i) + op.root_log_density(forest, j)
        op.merge(forest, i, j, h, i, pair)
        forest.height[i] = h
        slot[n + k] = i
        log_ratios[k] = log_z[k] + op.root_log_density(forest, i) - apart


def pass_up(forest, children, heights, first, last):
    """Make merges first <= k < last of a tree in a forest of ``2n - 1`` slots: slot b gets the message of node b from below."""
    pair = op.Pair(forest)
    with cython.nogil:
        _pass_up(forest, children, heights, first, last, pair)


def _pass_up(forest, children, heights, first, last, pair):
    n = children.shape[0] + 1
    for k in range(first, last):
        if k % stop.STRIDE == 0:
            stop.poll()
        op.merge(forest, children[k, 0], children[k, 1], heights[n + k], n + k, pair)
        forest.height[n + k] = heights[n + k]


def best_partners(forest, slots, candidates, log_weights, height, best):
    """Find, for each slot, the other slot that fits best at a height: the first one with the largest weighted ratio."""
    pair = op.Pair(forest)
    with cython.nogil:
        _best_partners(forest, slots, candidates, log_weights, height, best, pair)


def _best_partners(forest, slots, candidates, log_weights, height, best, pair):
    for k in range(slots.shape[0]):
        stop.poll()
        best_score = -math.inf
        best[k] = 0
        for c in range(candidates.shape[0]):
            op.load_pair(forest, slots[k], candidates[c], pair)
            score = op.log_z(forest, pair, height) + log_weights[c]
            if score > best_score:
                best_score, best[k] = score, c


def pass_up_and_down(forest, children, heights, turn):
    """Fill a forest of ``4n - 3`` slots that holds the messages of the leaves in its first n slots.

    Slot b gets the upward message of node b, slot ``2n - 1 + b`` the downward message into the branch above it, from the rest
    of the tree. ``turn[b] - h`` is the length of the path of the latter to a point of the branch at height h.
    """
    pair = op.Pair(forest)
    with cython.nogil:
        _pass_up_and_down(forest, children, heights, turn, pair)


def _pass_up_and_down(forest, children, heights, turn, pair):
    n = children.shape[0] + 1
    n_nodes = 2 * n - 1
    _pass_up(forest, children, heights, 0, n - 1, pair)
    for k in range(n - 2, -1, -1):
        if k % stop.STRIDE == 0:
            stop.poll()
        top = heights[n + k]
        for side in range(2):
            node, sibling = children[k, side], children[k, 1 - side]
            if k == n - 2:  # nothing comes down to the root: the sibling's message goes on
                op.move(forest, sibling, n_nodes + node)
                turn[node] = 2 * top - heights[sibling]
            else:
                above = n_nodes + n + k
                forest.height[above] = 2 * top - turn[n + k]
                op.merge(forest, sibling, above, top, n_nodes + node, pair)
                turn[node] = top


def meet(forest, nodes, heights, turn, first):
    """Merge the upward and downward messages at points of branches, into slots from `first` on; not above the root."""
    pair = op.Pair(forest)
    with cython.nogil:
        _meet(forest, nodes, heights, turn, first, pair)


def _meet(forest, nodes, heights, turn, first, pair):
    n_nodes = turn.shape[0]
    for p in range(nodes.shape[0]):
        if p % stop.STRIDE == 0:
            stop.poll()
        node, h = nodes[p], heights[p]
        forest.height[n_nodes + node] = 2 * h - turn[node]
        op.merge(forest, node, n_nodes + node, h, first + p, pair)


def contrasts(forest, children, heights, slot, gaps, variances):
    """Climb a tree and write the contrast of every merge to a row: its difference and variance in each column, or NaN.

    For Brownian columns. Afterwards `slot` has the position that the message of each node had.
    """
    pair = op.Pair(forest)
    with cython.nogil:
        _contrasts(forest, children, heights, slot, gaps, variances, pair)


def _contrasts(forest, children, heights, slot, gaps, variances, pair):
    n = children.shape[0] + 1
    for k in range(n - 1):
        if k % stop.STRIDE == 0:
            stop.poll()
        i, j, h = slot[children[k, 0]], slot[children[k, 1]], heights[n + k]
        g = max(2 * h - forest.height[i] - forest.height[j], 0.0)
        for d in range(forest.n_brownian):
            column = 0 if forest.complete else d
            s = forest.spread[i, column] + forest.spread[j, column] + g
            gaps[k, d] = forest.mean[i, d] - forest.mean[j, d] if s < math.inf else math.nan
            variances[k, d] = s if s < math.inf else math.nan
        op.merge(forest, i, j, h, i, pair)
        forest.height[i] = h
        slot[n + k] = i


def expected_redraws(forest, children, heights, turn, lengths, redraws, draws):
    """Compute the probability that the state of a site was redrawn on each edge, and the expected number of draws of each state.

    For a forest after `pass_up_and_down`. The edges are those of the tree without its root: the two edges that meet there are
    one, since the position of the root on it is not identified. The root is taken to be at the lower end of one of them.
    `lengths` (edges,), `redraws` (sites, edges) and `draws` (states,), in the order of the forest, are filled.
    """
    with cython.nogil:
        for k in range(draws.shape[0]):
            draws[k] = forest.state[0, k] * forest.root_q[k] if children.shape[0] == 0 else 0.0
        if children.shape[0] > 0:
            _expected_redraws(forest, children, heights, turn, lengths, redraws, draws)


def _expected_redraws(forest, children, heights, turn, lengths, redraws, draws):
    n = children.shape[0] + 1
    n_nodes = 2 * n - 1
    start_node = children[n - 2, 1]
    edge = 0
    for node in range(n_nodes - 1):
        if node % stop.STRIDE == 0:
            stop.poll()
        if node == start_node:
            continue
        length = turn[node] - heights[node]
        lengths[edge] = length
        for d in range(forest.n_sites):
            agreement = 0.0
            for r in range(forest.n_ranks):
                k = forest.rank[r] + d
                if k >= forest.rank[r + 1]:
                    break
                agreement += forest.state[node, k] * forest.state[n_nodes + node, k]
            keep, redraw = math.exp(-forest.site_rate[d] * length), -math.expm1(-forest.site_rate[d] * length)
            z = keep * agreement + redraw
            share = redraw / z if z > 0 else 1.0
            redraws[d, edge] = share
            for r in range(forest.n_ranks):
                k = forest.rank[r] + d
                if k >= forest.rank[r + 1]:
                    break
                draws[k] += share * forest.root_q[k] * forest.state[node, k]
        edge += 1
    other = children[n - 2, 0]  # what comes down to the start: the other child's message over the edge between them
    length = turn[start_node] - heights[start_node]
    for d in range(forest.n_sites):
        keep, redraw = math.exp(-forest.site_rate[d] * length), -math.expm1(-forest.site_rate[d] * length)
        z = 0.0
        for r in range(forest.n_ranks):
            k = forest.rank[r] + d
            if k >= forest.rank[r + 1]:
                break
            z += forest.state[start_node, k] * (redraw * forest.root_q[k] + keep * forest.state[other, k])
        for r in range(forest.n_ranks):
            k = forest.rank[r] + d
            if k >= forest.rank[r + 1]:
                break
            joint = forest.state[start_node, k] * (redraw * forest.root_q[k] + keep * forest.state[other, k])
            draws[k] += joint / z if z > 0 else 0.0


def draw_redraws(forest, children, heights, copies, uniforms, states, redraws, draws):
    """Draw the states of all nodes given those of the leaves, and the branches above them on which states were redrawn.

    For a forest of ``2n - 1`` slots with the messages of the leaves in its first n slots, whose site d stands for
    ``copies[d]`` columns. `uniforms` and `states` have a row for each of these columns, those of a site after those of another,
    and a column for each node. `redraws` gets how many columns were redrawn on the branch above each node, shape (sites, nodes),
    and `draws` how often each state was drawn, shape (sites, ranks); both are zero before. The state of the root is always
    redrawn.
    """
    pair = op.Pair(forest)
    with cython.nogil:
        _draw_redraws(forest, children, heights, copies, uniforms, states, redraws, draws, pair)


def _draw_redraws(forest, children, heights, copies, uniforms, states, redraws, draws, pair):
    n, last = children.shape[0] + 1, 0
    for k in range(n - 1):
        if k % stop.STRIDE == 0:
            stop.poll()
        op.merge(forest, children[k, 0], children[k, 1], heights[n + k], n + k, pair)
        forest.height[n + k] = heights[n + k]
    for d in range(forest.n_sites):
        stop.poll()
        first, last = last, last + copies[d]
        redraws[d, 2 * n - 2] = copies[d]
        for c in range(first, last):
            state = _draw_state(forest, d, 2 * n - 2, uniforms[c, 2 * n - 2])
            states[c, 2 * n - 2] = state
            draws[d, state] += 1
        for k in range(n - 2, -1, -1):
            for side in range(2):
                node = children[k, side]
                x = forest.site_rate[d] * (heights[n + k] - heights[node])
                kept, redraw = math.exp(-x), -math.expm1(-x)
                for c in range(first, last):
                    state = states[c, n + k]
                    above = forest.rank[state] + d
                    survival = kept * forest.state[node, above] / forest.root_q[above]
                    u = uniforms[c, node] * (survival + redraw)
                    if not u < survival:
                        state = _draw_state(forest, d, node, (u - survival) / redraw if redraw > 0 else u)
                        draws[d, state] += 1
                        redraws[d, node] += 1
                    states[c, node] = state


def _draw_state(forest, d, node, u):
    """Draw a state of site d from the equilibrium, given the upward message of a node."""
    best, most = 0, -1.0
    for r in range(forest.n_ranks):
        k = forest.rank[r] + d
        if k >= forest.rank[r + 1]:
            break
        share = forest.root_q[k] * forest.state[node, k]
        u -= share
        if u < 0:
            return r
        if share > most:
            best, most = r, share
    return best  # rounding has left nothing of the last state


def climb_sites(forest, children, heights, log_z):
    """Add the log likelihood of each site, relative to that of the leaves by themselves, to `log_z`, in the order of the forest.

    For a forest of ``2n - 1`` slots that holds the messages of the leaves in its first n slots.
    """
    pair, product = op.Pair(forest), np.ones(forest.n_sites)
    with cython.nogil:
        _climb_sites(forest, children, heights, log_z, product, pair)


def _climb_sites(forest, children, heights, log_z, product, pair):
    n = children.shape[0] + 1
    for k in range(n - 1):
        if k % stop.STRIDE == 0:
            stop.poll()
        i, j, h = children[k, 0], children[k, 1], heights[n + k]
        g = 2 * h - forest.height[i] - forest.height[j]
        x = forest.common_rate * g
        kept, redraw = math.exp(-x), -math.expm1(-x)
        for d in range(forest.n_sites):
            agreement = 0.0
            for r in range(forest.n_ranks):
                a = forest.rank[r] + d
                if a >= forest.rank[r + 1]:
                    break
                agreement += forest.state[i, a] * forest.state[j, a]
            if not forest.common_rate > 0:
                x = forest.site_rate[d] * g
                kept, redraw = math.exp(-x), -math.expm1(-x)
            product[d] *= kept * agreement + redraw
            if not 1e-100 < product[d] < 1e100:
                log_z[d] += math.log(product[d]) if product[d] > 0 else -math.inf
                product[d] = 1.0
        op.merge(forest, i, j, h, n + k, pair)
        forest.height[n + k] = h
    for d in range(forest.n_sites):
        log_z[d] += math.log(product[d])


def climb_unseen(children, heights, share, rate, lost, other, count, total, top):
    """Climb a tree with columns of two states, see `coaltree.process.ascertainment`.

    `lost`, `other` and `count`, the number of observed rows below, hold the leaves' values and 0, 1 and 0 in the rows of other
    nodes. `top` gets the first node of each column that has all its observed rows below, or stays as it is.
    """
    with cython.nogil:
        _climb_unseen(children, heights, share, rate, lost, other, count, total, top)


def _climb_unseen(children, heights, share, rate, lost, other, count, total, top):
    n = children.shape[0] + 1
    for k in range(n - 1):
        if k % stop.STRIDE == 0:
            stop.poll()
        for side in range(2):
            child = children[k, side]
            length = heights[n + k] - heights[child]
            last, stay, redrawn = -1.0, 1.0, 0.0
            for u in range(share.shape[0]):
                if rate[u] != last:  # mostly all are the same
                    last = rate[u]
                    stay, redrawn = math.exp(-last * length), -math.expm1(-last * length)
                q = share[u]
                above = lost[child, u] * (stay + redrawn * q) + redrawn * (1 - q) * (1 - other[child, u])
                lost[n + k, u] += (1 - lost[n + k, u]) * above
                other[n + k, u] *= stay * other[child, u] + redrawn * (
                    q * (1 - lost[child, u]) + (1 - q) * other[child, u]
                )
                count[n + k, u] += count[child, u]
        for u in range(share.shape[0]):
            if top[u] < 0 and count[n + k, u] == total[u]:
                top[u] = n + k
