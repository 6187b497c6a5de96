"""A tree that moves change in place, with the upward and downward messages of its branches.

Nodes keep their slots, leaves first; a new node takes the slot of the node that was removed. Slot b of the forest holds the
upward message of node b, slot ``nodes + b`` the downward message into the branch above it, which is made on demand. See
`coaltree.process.likelihood` for how messages travel.
"""

from __future__ import annotations

import numpy as np

from ...process.kernels import messages as op

try:
    import cython
except ImportError:
    from ..._nocython import cython

NONE = -1  # stands above the root, and below leaves


class History:
    """The parent and children of each node, and the number of live lineages at each height, for a tree of n leaves."""

    def __init__(self, n):
        self.n = n
        self.n_nodes = 2 * n - 1
        self.root = 2 * n - 2
        self.parent = np.full(2 * n - 1, -1, dtype=np.intp)  # (nodes,), NONE for the root
        self.children = np.full((2 * n - 1, 2), -1, dtype=np.intp)  # (nodes, 2), NONE for leaves
        self.ladder = np.zeros(n - 1)  # (merges,), their heights, ascending
        self.area = np.zeros(n - 1)  # (merges,), number of live lineages, integrated from 0 up to each
        # (merges,), by slot: one tree below the merge against two, as of the last look at the whole tree
        self.log_ratio = np.zeros(n - 1)
        # (nodes,): turn[b] - h is the way that what is beyond b's branch has to go to its point at height h
        self.turn = np.zeros(2 * n - 1)
        # scratch
        self.path = np.zeros(2 * n - 1, dtype=np.intp)  # (nodes,)
        self.order = np.zeros(n - 1, dtype=np.intp)  # (merges,)


def slots_of(n):
    """Return the number of slots that the forest of n leaves needs."""
    return 2 * (2 * n - 1)


def set_children(history, children, root):
    """Set the children of each merge, and the root."""
    n = history.n
    np.asarray(history.children)[n:] = children
    parent = np.asarray(history.parent)
    parent[children] = np.arange(n, 2 * n - 1)[:, None]
    parent[root] = -1
    history.root = root


def set_heights(forest, history, heights):
    """Set the heights of nodes, by slot; messages must be computed after that, see `log_likelihood_of`."""
    np.asarray(forest.height)[: history.n_nodes] = heights
    np.asarray(history.ladder)[:] = np.sort(heights[history.n :])


def merge_children(forest, history, node, scratch):
    """Compute the upward message of a node, whose height is known, from those of its children."""
    op.merge(forest, history.children[node, 0], history.children[node, 1], forest.height[node], node, scratch)


def merge_up_to(forest, history, node, last, scratch):
    """Compute the upward messages of a node and its ancestors, up to `last`; NONE for all."""
    while node != NONE:
        merge_children(forest, history, node, scratch)
        if node == last:
            return
        node = history.parent[node]


def set_area(history, first, last):
    """Sum the live lineages again from one rung of the ladder up to, but excluding, another."""
    below = before = 0.0
    if first > 0:
        below, before = history.ladder[first - 1], history.area[first - 1]
    for k in range(first, last):
        before += (history.n - k) * (history.ladder[k] - below)
        below = history.ladder[k]
        history.area[k] = before


def rung_at(history, h):
    """Return the first rung that is not below a height."""
    low, left = 0, history.n - 1
    while left > 1:  # no branches, which a processor could not foretell
        half = left // 2
        low = low + half if history.ladder[low + half - 1] < h else low
        left -= half
    return low + 1 if history.ladder[low] < h else low


def move_rung(history, old, new):
    """Move a merge from height `old` to height `new` in the ladder."""
    k = rung_at(history, old)
    first = k
    while k + 1 < history.n - 1 and history.ladder[k + 1] < new:
        history.ladder[k] = history.ladder[k + 1]
        k += 1
    while k > 0 and history.ladder[k - 1] > new:
        history.ladder[k] = history.ladder[k - 1]
        k -= 1
    history.ladder[k] = new
    end = max(first, k) + 1
    set_area(history, min(first, k), end)
    more = new - old  # so much longer has a lineage lived, as seen from above
    for k in range(end, history.n - 1):
        history.area[k] += more


def lineages_up_to(history, h):
    """Return the integral of the number of live lineages from 0 to a height."""
    k = rung_at(history, h)
    if k == 0:
        return history.n * h
    return history.area[k - 1] + (history.n - k) * (h - history.ladder[k - 1])


def log_prior_of(history):
    """Return the log prior density of the history."""
    total = below = 0.0
    for k in range(history.n - 1):
        live = history.n - k
        total -= 0.5 * live * (live - 1) * (history.ladder[k] - below)
        below = history.ladder[k]
    return total


def sibling_of(history, node):
    """Return the other child of a node's parent."""
    p = history.parent[node]
    return history.children[p, 0] + history.children[p, 1] - node


def replace_child(history, p, old, new):
    """Replace a child of a node's parent; NONE is above the root."""
    history.parent[new] = p
    if p == NONE:
        history.root = new
    elif history.children[p, 1] == old:
        history.children[p, 1] = new
    else:
        history.children[p, 0] = new


def cut_off(history, s):
    """Remove the parent of a node from the tree, so that the sibling becomes a child of the grandparent."""
    p = history.parent[s]
    replace_child(history, history.parent[p], p, sibling_of(history, s))


def hang_on(forest, history, s, p, b, h):
    """Insert a node p into the branch above b at height h, with s as its other child."""
    replace_child(history, history.parent[b], b, p)
    history.parent[b] = history.parent[s] = p
    history.children[p, 0], history.children[p, 1] = b, s
    forest.height[p] = h


def send_down(forest, history, b, scratch):
    """Compute the downward message into the branch above b from that of its parent."""
    p = history.parent[b]
    sibling, above, into = sibling_of(history, b), history.n_nodes + p, history.n_nodes + b
    top = forest.height[p]
    if p == history.root:  # nothing comes down to the root: the sibling's message goes on
        op.move(forest, sibling, into)
        history.turn[b] = 2 * top - forest.height[sibling]
    else:
        forest.height[above] = 2 * top - history.turn[p]
        op.merge(forest, sibling, above, top, into, scratch)
        history.turn[b] = top


def send_down_to(forest, history, b, scratch):
    """Compute the downward messages from the root to b."""
    count = 0
    while b != history.root:
        history.path[count] = b
        count += 1
        b = history.parent[b]
    while count > 0:
        count -= 1
        send_down(forest, history, history.path[count], scratch)


def log_likelihood_of(forest, history):
    """Return the log likelihood ratio of the whole tree; compute all upward messages and count live lineages again."""
    pair = op.Pair(forest)
    with cython.nogil:
        total = climb_tree(forest, history, pair)
    return total


def climb_tree(forest, history, pair):
    """Return `log_likelihood_of`, given a pair as scratch memory."""
    set_area(history, 0, history.n - 1)
    put_in_order(history)
    total = 0.0
    for k in range(history.n - 1):
        node = history.order[k]
        a, b = history.children[node, 0], history.children[node, 1]
        log_z = op.merge_and_log_z(forest, a, b, forest.height[node], node, pair)
        apart = op.root_log_density(forest, a) + op.root_log_density(forest, b)
        history.log_ratio[node - history.n] = log_z + op.root_log_density(forest, node) - apart
        total += log_z
    return total


def climb_scaled_tree(forest, history, factor, pair):
    """Return the log likelihood ratio of the tree with all heights multiplied by a factor.

    The tree does not change: messages are written to the slots of downward messages, which are made on demand.
    """
    put_in_order(history)
    total, n, n_nodes = 0.0, history.n, history.n_nodes
    for k in range(n - 1):
        node = history.order[k]
        a, b = history.children[node, 0], history.children[node, 1]
        a, b = a if a < n else n_nodes + a, b if b < n else n_nodes + b
        h = factor * forest.height[node]
        total += op.merge_and_log_z(forest, a, b, h, n_nodes + node, pair)
        forest.height[n_nodes + node] = h
    return total


def scale_tree(forest, history, factor):
    """Multiply all heights by a factor after `climb_scaled_tree`, which has computed the messages."""
    n, n_nodes = history.n, history.n_nodes
    for k in range(n - 1):
        op.move(forest, n_nodes + n + k, n + k)
        forest.height[n + k] = forest.height[n_nodes + n + k]
        history.ladder[k] *= factor
    set_area(history, 0, n - 1)


def put_in_order(history):
    """List the nodes of the merges in `order`, children before parents."""
    done = history.n - 2
    history.order[done] = history.root
    k = done
    while k >= 0:
        for side in range(2):
            child = history.children[history.order[k], side]
            if child >= history.n:
                done -= 1
                history.order[done] = child
        k -= 1
