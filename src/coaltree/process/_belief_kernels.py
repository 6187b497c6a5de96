"""Messages up and down a tree, by the one operation that merges two of them.

All processes are the same backwards as forwards in time, so that what the rest of the tree says of a branch travels
down it as what lies below travels up. A message that comes down to height h over a path of length t is merged as
one that stands at ``h - t`` would be.
"""

from __future__ import annotations

from ..compiled import kernel
from . import operations as op


@kernel
def pass_up_and_down(forest, children, heights, turn):
    """Fill a forest of ``4n - 3`` slots that holds the leaves' messages in its first n.

    Slot b gets what lies at and below node b, slot ``2n - 1 + b`` all that lies beyond the branch above it.
    ``turn[b] - h`` is the length of the path that the latter has to go to a point of the branch at height h.
    """
    n = len(children) + 1
    n_nodes = 2 * n - 1
    for k in range(n - 1):
        op.merge(forest, children[k, 0], children[k, 1], heights[n + k], n + k)
        forest.height[n + k] = heights[n + k]
    for k in range(n - 2, -1, -1):
        top = heights[n + k]
        for side in range(2):
            node, sibling = children[k, side], children[k, 1 - side]
            if k == n - 2:  # nothing comes down to the root: the sibling's message goes on
                op.move(forest, sibling, n_nodes + node)
                turn[node] = 2 * top - heights[sibling]
            else:
                above = n_nodes + n + k
                forest.height[above] = 2 * top - turn[n + k]
                op.merge(forest, sibling, above, top, n_nodes + node)
                turn[node] = top


@kernel
def meet(forest, nodes, heights, turn, first):
    """Merge what comes up and what comes down at points of branches, into slots from `first` on; not above the root."""
    n_nodes = len(turn)
    for p in range(len(nodes)):
        node, h = nodes[p], heights[p]
        forest.height[n_nodes + node] = 2 * h - turn[node]
        op.merge(forest, node, n_nodes + node, h, first + p)
