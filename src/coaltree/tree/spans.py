"""Which leaves are below every node, as stretches of the leaves from left to right.

Loops run over lists of numbers, one for each side: lists of pairs would keep the garbage collector busy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
