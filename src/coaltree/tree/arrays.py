"""Trees as arrays, without the class ``Tree``: their allocation and traversal.

Interior nodes are numbered so that children come before parents, so one loop over the merges replaces recursion. The
leaves below a node are consecutive in the drawing order; :func:`leaf_counts` and :func:`first_positions` locate them.
"""

# ruff: noqa: D102  (the classes that implement the protocols document their members)

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .kernels.counts import count_leaves, set_first_positions

IntArray = NDArray[np.intp]
FloatArray = NDArray[np.float64]


class TreeArrays(Protocol):
    """The attributes of a ``Tree`` that modules without the class use; see ``coaltree.tree.tree``."""

    @property
    def n_leaves(self) -> int: ...
    @property
    def n_nodes(self) -> int: ...
    @property
    def root(self) -> int: ...
    @property
    def leaf_names(self) -> tuple[str, ...]: ...
    @property
    def children(self) -> IntArray: ...
    @property
    def heights(self) -> FloatArray: ...
    @property
    def merge_heights(self) -> FloatArray: ...
    @property
    def parents(self) -> IntArray: ...
    @property
    def branch_lengths(self) -> FloatArray: ...
    @property
    def leaf_counts(self) -> IntArray: ...
    @property
    def first_positions(self) -> IntArray: ...
    @property
    def leaf_order(self) -> IntArray: ...
    @property
    def total_length(self) -> float: ...


class Merges(NamedTuple):
    """The arrays that define a tree."""

    children: IntArray  # (n - 1, 2)
    heights: FloatArray  # (2 n - 1,)


def allocate_merges(n: int) -> Merges:
    """Return empty arrays for the merges of n leaves."""
    return Merges(np.zeros((n - 1, 2), dtype=np.intp), np.zeros(2 * n - 1))


def leaf_counts(children: IntArray) -> IntArray:
    """Return the number of leaves at or below every node.

    Parameters
    ----------
    children : ndarray of int, shape (n - 1, 2)
        Children before parents.

    Returns
    -------
    ndarray of int, shape (2n - 1,)
    """
    counts = np.empty(2 * len(children) + 1, dtype=np.intp)
    count_leaves(np.ascontiguousarray(children), counts)
    return counts


def first_positions(children: IntArray, counts: IntArray) -> IntArray:
    """Return the position of every node's first leaf in the drawing order.

    Parameters
    ----------
    children : ndarray of int, shape (n - 1, 2)
        Children before parents.
    counts : ndarray of int, shape (2n - 1,)
        Number of leaves at or below every node.

    Returns
    -------
    ndarray of int, shape (2n - 1,)
    """
    first = np.empty(len(counts), dtype=np.intp)
    set_first_positions(np.ascontiguousarray(children), counts, first)
    return first


def oldest_merges(children: IntArray, n_tips: int) -> tuple[IntArray, IntArray]:
    """Keep the oldest merges of a tree; the subtrees below them become tips.

    Parameters
    ----------
    children : ndarray of int, shape (n - 1, 2)
        Merges by height.
    n_tips : int
        From 1 to the number of leaves; one more than the number of merges to keep.

    Returns
    -------
    children : ndarray of int, shape (n_tips - 1, 2)
        The merges, with new node numbers. Left and right stay as they are.
    nodes : ndarray of int, shape (2 n_tips - 1,)
        The old number of each new node.
    """
    n_nodes = 2 * len(children) + 1
    first = n_nodes - n_tips + 1
    merges = children[len(children) - n_tips + 1 :]
    tips = merges[merges < first] if n_tips > 1 else np.array([n_nodes - 1])
    nodes = np.concatenate([tips, np.arange(first, n_nodes)])
    number = np.empty(n_nodes, dtype=np.intp)
    number[nodes] = np.arange(len(nodes))
    return number[merges], nodes


def count_zero_heights(merge_heights: FloatArray) -> int:
    """Return how many merges are at height 0."""
    return int(np.count_nonzero(merge_heights == 0))
