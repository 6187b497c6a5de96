"""Which leaves are below every node, as stretches of the leaves from left to right.

Loops run over lists of numbers, one for each side: lists of pairs would keep the garbage collector busy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .tree import Tree

IntArray = NDArray[np.intp]


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
    counts = [1] * (len(children) + 1)
    for left, right in zip(children[:, 0].tolist(), children[:, 1].tolist(), strict=True):
        counts.append(counts[left] + counts[right])
    return np.array(counts, dtype=np.intp)


def first_positions(children: IntArray, counts: IntArray) -> IntArray:
    """Return where every node's leaves begin, when leaves are counted from left to right.

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
    n = len(children) + 1
    first = [0] * (2 * n - 1)
    widths = counts[children[::-1, 0]].tolist()
    parent = 2 * n - 2
    for left, right, width in zip(children[::-1, 0].tolist(), children[::-1, 1].tolist(), widths, strict=True):
        start = first[parent]
        first[left] = start
        first[right] = start + width
        parent -= 1
    return np.array(first, dtype=np.intp)


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


def told_apart(parameters: Mapping[str, Mapping[str, Any]], sampled: bool, noise: str, sampling: str) -> str:
    """Say what to try if rows should not meet at height 0; nothing if nothing helps.

    Parameters
    ----------
    parameters : mapping
        Of every column, as ``parameters_`` of the estimators.
    sampled : bool
        Whether there is a sample of trees already.
    noise, sampling : str
        What asks for a little noise and for a sample of trees, in the words of whoever is spoken to.

    Examples
    --------
    >>> told_apart({"x": {"noise_sd": 0.1}}, False, "noise=0.001", 'inference="smc"')
    'to tell them apart, try less noise (noise=0.001), or a sample of trees (inference="smc", for some hundred rows)'
    >>> told_apart({"x": {"noise_sd": 0.0}}, True, "noise=0.001", 'inference="smc"')
    ''
    """
    noisy = any(own.get("noise_sd", 0.0) > 0 for own in parameters.values())
    ways = [f"less noise ({noise})"] * noisy + [f"a sample of trees ({sampling}, for some hundred rows)"] * (
        not sampled
    )
    return f"to tell them apart, try {', or '.join(ways)}" if ways else ""
