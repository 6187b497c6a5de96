"""A tree that is being changed, with the messages that go up and down its branches.

Nodes keep their slots, leaves first; a node that is taken out gives its slot to the one that is put in. Slot b of the forest
holds what lies at and below node b, slot ``nodes + b`` what lies beyond the branch above it (made on demand, see
`coaltree.process._belief_kernels` for how it travels), and the last slot is scratch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import jit, kernel
from ..process import operations as op

NONE = -1

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class History(NamedTuple):
    """Who is whose parent, and how many lineages live when."""

    parent: IntArray  # (nodes,), NONE for the root
    children: IntArray  # (nodes, 2), NONE for leaves
    root: IntArray  # (1,)
    ladder: FloatArray  # (merges,), their heights, ascending
    area: FloatArray  # (merges,), number of live lineages, integrated from 0 up to each
    log_ratio: (
        FloatArray  # (merges,), by slot: one tree below the merge against two, as of the last look at the whole tree
    )
    turn: (
        FloatArray  # (nodes,): turn[b] - h is the way that what is beyond b's branch has to go to its point at height h
    )


def new_history(n: int) -> History:
    """Return room for a tree of n leaves."""
    n_nodes = 2 * n - 1
    return History(
        parent=np.full(n_nodes, NONE),
        children=np.full((n_nodes, 2), NONE),
        root=np.array([n_nodes - 1]),
        ladder=np.zeros(n - 1),
        area=np.zeros(n - 1),
        log_ratio=np.zeros(n - 1),
        turn=np.zeros(n_nodes),
    )


def set_children(history: History, children: IntArray) -> None:
    """Say who has merged at each merge."""
    n = len(children) + 1
    history.children[n:] = children
    history.parent[children] = np.arange(n, 2 * n - 1)[:, None]


def slots_of(n: int) -> int:
    """Return how many slots the forest of n leaves needs."""
    return 2 * (2 * n - 1) + 1


def set_heights(forest: Any, history: History, heights: FloatArray) -> None:
    """Say how high nodes are, by slot; messages are to be made after that, see `log_likelihood_of`."""
    forest.height[: len(heights)] = heights
    history.ladder[:] = np.sort(heights[len(history.ladder) + 1 :])


@jit
def merge_children(forest, history, node):
    """Make the upward message of a node, whose height is known, from its children's."""
    op.merge(forest, history.children[node, 0], history.children[node, 1], forest.height[node], node)


@jit
def merge_up_to(forest, history, node, last):
    """Make the upward messages of a node and those above it, up to `last`; NONE for all."""
    while node != NONE:
        merge_children(forest, history, node)
        if node == last:
            return
        node = history.parent[node]


@jit
def set_area(history, first):
    """Add up the live lineages anew from a rung of the ladder on."""
    ladder, area = history.ladder, history.area
    n = len(ladder) + 1
    for k in range(first, n - 1):
        below, before = (ladder[k - 1], area[k - 1]) if k > 0 else (0.0, 0.0)
        area[k] = before + (n - k) * (ladder[k] - below)


@jit
def _rung_at(ladder, h):
    """Return the first rung that is not below a height."""
    low, high = 0, len(ladder)
    while low < high:
        middle = (low + high) // 2
        if ladder[middle] < h:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def move_rung(history, old, new):
    """Let a merge at height `old` be one at height `new`."""
    ladder = history.ladder
    k = _rung_at(ladder, old)
    first = k
    while k + 1 < len(ladder) and ladder[k + 1] < new:
        ladder[k] = ladder[k + 1]
        k += 1
    while k > 0 and ladder[k - 1] > new:
        ladder[k] = ladder[k - 1]
        k -= 1
    ladder[k] = new
    set_area(history, min(first, k))


@jit
def lineages_up_to(history, h):
    """Return the number of live lineages, integrated from 0 up to a height."""
    ladder = history.ladder
    n = len(ladder) + 1
    k = _rung_at(ladder, h)
    below, before = (ladder[k - 1], history.area[k - 1]) if k > 0 else (0.0, 0.0)
    return before + (n - k) * (h - below)


@jit
def log_prior_of(history):
    """Return the log prior density of the history."""
    ladder = history.ladder
    n, total, below = len(ladder) + 1, 0.0, 0.0
    for k in range(n - 1):
        total -= 0.5 * (n - k) * (n - k - 1) * (ladder[k] - below)
        below = ladder[k]
    return total


@jit
def sibling_of(history, node):
    """Return the other child of a node's parent."""
    p = history.parent[node]
    return history.children[p, 0] + history.children[p, 1] - node


@jit
def replace_child(history, p, old, new):
    """Let a node's parent have another child; NONE stands above the root."""
    history.parent[new] = p
    if p == NONE:
        history.root[0] = new
    else:
        history.children[p, 1 if history.children[p, 1] == old else 0] = new


@jit
def cut_off(history, s):
    """Take a node's parent out of the tree, so that its sibling hangs from its grandparent; return the parent."""
    p = history.parent[s]
    replace_child(history, history.parent[p], p, sibling_of(history, s))
    return p


@jit
def hang_on(forest, history, s, p, b, h):
    """Put a node p into the branch above b, at height h, from which s hangs."""
    above = history.parent[b]
    replace_child(history, above, b, p)
    history.parent[b] = history.parent[s] = p
    history.children[p, 0], history.children[p, 1] = b, s
    forest.height[p] = h


@jit
def send_down(forest, history, b):
    """Make the message that comes down into the branch above b, from what comes down into its parent's."""
    p, n_nodes = history.parent[b], len(history.parent)
    sibling, above, top = sibling_of(history, b), n_nodes + p, forest.height[p]
    if p == history.root[0]:  # nothing comes down to the root: the sibling's message goes on
        op.move(forest, sibling, n_nodes + b)
        history.turn[b] = 2 * top - forest.height[sibling]
    else:
        forest.height[above] = 2 * top - history.turn[p]
        op.merge(forest, sibling, above, top, n_nodes + b)
        history.turn[b] = top


@jit
def send_down_to(forest, history, b, path):
    """Make the messages that come down from the root to b; `path` is scratch, as long as there are nodes."""
    count = 0
    while b != history.root[0]:
        path[count] = b
        count += 1
        b = history.parent[b]
    for k in range(count - 1, -1, -1):
        send_down(forest, history, path[k])


@kernel
def log_likelihood_of(forest, history):
    """Return the log likelihood ratio of the whole tree; make all upward messages anew, and count live lineages anew."""
    n = len(history.ladder) + 1
    set_area(history, 0)
    pair = np.empty(op.pair_size(forest))
    order = np.empty(n - 1, np.intp)
    put_in_order(history, order)
    total = 0.0
    for k in range(n - 1):
        node = order[k]
        a, b = history.children[node]
        op.load_pair(forest, a, b, pair)
        log_z = op.log_z(forest, pair, forest.height[node])
        merge_children(forest, history, node)
        apart = op.root_log_density(forest, a) + op.root_log_density(forest, b)
        history.log_ratio[node - n] = log_z + op.root_log_density(forest, node) - apart
        total += log_z
    return total


@kernel
def put_in_order(history, order):
    """List the merges' nodes, children before parents."""
    n = len(order) + 1
    done = n - 2
    order[done] = history.root[0]
    k = done
    while k >= 0:
        for side in range(2):
            child = history.children[order[k], side]
            if child >= n:
                done -= 1
                order[done] = child
        k -= 1
