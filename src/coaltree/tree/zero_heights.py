"""Merges at height 0: rows that a tree does not tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .tree import Tree

# Of a smaller tree everybody sees it.
_FEWEST_LEAVES = 21


def merges_at_zero(tree: Tree) -> int:
    """Return how many merges are at height 0."""
    return int(np.count_nonzero(tree.merge_heights == 0))


def zero_heights(tree: Tree) -> str | None:
    """Say that most merges are at height 0, if they are.

    Examples
    --------
    >>> from coaltree import Tree
    >>> zero_heights(Tree([[0, 1], [2, 3]], [0.0, 0.0, 0.0, 0.0, 1.0]))  # few rows
    >>> merges = [[0, 1], *([k, 19 + k] for k in range(2, 21))]
    >>> zero_heights(Tree(merges, [0.0] * 40 + [1.0]))
    '19 of 20 merges are at height 0: those rows are the same or differ no more than the noise'
    """
    at_zero, n_merges = merges_at_zero(tree), tree.n_leaves - 1
    if tree.n_leaves < _FEWEST_LEAVES or 2 * at_zero < n_merges:
        return None
    return (
        f"{at_zero:,} of {n_merges:,} merges are at height 0: those rows are the same or differ no more than the noise"
    )
