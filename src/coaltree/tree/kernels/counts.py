"""The leaves below each node of a tree: their number, and where they are in the drawing order."""

from __future__ import annotations

try:
    import cython
except ImportError:
    from ..._nocython import cython


def count_leaves(children, counts):
    """Set the number of leaves at or below every node; children come before parents."""
    n = children.shape[0] + 1
    with cython.nogil:
        for node in range(n):
            counts[node] = 1
        for k in range(n - 1):
            counts[n + k] = counts[children[k, 0]] + counts[children[k, 1]]


def set_first_positions(children, counts, first):
    """Set the position of every node's first leaf in the drawing order, in which the left child comes first."""
    n = children.shape[0] + 1
    with cython.nogil:
        first[2 * n - 2] = 0
        for k in range(n - 2, -1, -1):
            first[children[k, 0]] = first[n + k]
            first[children[k, 1]] = first[n + k] + counts[children[k, 0]]
