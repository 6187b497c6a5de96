"""Equal rows without noise merge before all others, at height 0; that needs no search.

In a search they would all have the same few partners on their lists, which are soon used up.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .steps import Merges

IntArray = NDArray[np.intp]

BLOCK = 100_000  # rows compared at a time


class Distinct(NamedTuple):
    """The lineages that are left when equal rows have merged, by age."""

    nodes: IntArray  # number in the tree
    rows: IntArray  # one of the rows below each
    counts: IntArray  # how many there are


def merge_equal_rows(X: NDArray[np.float64], merges: Merges) -> Distinct:
    """Merge equal rows, of all pairs the one with the smallest numbers first, as the search does with ties.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        Without missing cells.
    merges : Merges
        Where the merges go, which are the first ones.

    Returns
    -------
    Distinct
    """
    n = len(X)
    order = np.lexsort(X.T)
    new = np.ones(n, dtype=bool)
    for p in range(1, n, BLOCK):
        rows = X[order[p - 1 : p + BLOCK]]
        new[p : p + BLOCK] = np.any(rows[1:] != rows[:-1], axis=1)
    starts = np.flatnonzero(new)
    counts = np.diff(np.append(starts, n))
    nodes = order[starts]
    # np.lexsort is stable, so the members of a group are in order
    groups = {
        int(nodes[g]): (g, deque(order[starts[g] : starts[g] + counts[g]].tolist()))
        for g in np.flatnonzero(counts > 1).tolist()
    }
    ready = sorted(groups)
    done = 0
    while ready:
        first = heapq.heappop(ready)
        g, members = groups.pop(first)
        members.popleft()
        merges.children[done] = first, members.popleft()
        members.append(n + done)
        done += 1
        if len(members) > 1:
            groups[members[0]] = g, members
            heapq.heappush(ready, members[0])
        else:
            nodes[g] = members[0]
    by_age = np.argsort(nodes)
    return Distinct(nodes[by_age], order[starts][by_age], counts[by_age])
