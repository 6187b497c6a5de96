"""Equal rows merge first, without a search, so that a search compares distinct lineages only.

Their best height is 0, the lowest there is, and equal messages are the most similar: by Cauchy's inequality, no cosine of
eq. (7.4) is larger. With noise, k equal rows say more than one, so that only groups of equal size have equal messages: m equal
rows become groups of 1, 2, 4, ... rows, one for each binary digit of m that is 1, and these are left to the search. Without
noise, and where rows are empty, equal rows say no more than one. Then all of them merge.

Of several pairs the one with the smaller node numbers merges first, as in the search. So all pairs whose older lineage is a row
come before those whose older lineage is a pair, and so on: one round of merges for each power of two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..tree.arrays import Merges

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class DistinctLineages(NamedTuple):
    """The lineages that remain after equal rows have merged, ordered by age."""

    nodes: IntArray  # node number of each lineage
    rows: IntArray  # one row of each lineage
    counts: IntArray  # number of rows of each lineage


def merge_equal_rows(X: FloatArray, noisy: bool, merges: Merges) -> DistinctLineages:
    """Merge equal rows at height 0.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        NaN is a missing cell.
    noisy : bool
        Whether rows have noise.
    merges : Merges
        Receives the merges, as the first ones of the tree.

    Returns
    -------
    DistinctLineages

    Examples
    --------
    >>> import numpy as np
    >>> from coaltree.tree.arrays import allocate_merges
    >>> merges = allocate_merges(5)
    >>> merge_equal_rows(np.array([[7.0], [7.0], [1.0], [7.0], [7.0]]), True, merges).nodes.tolist()
    [2, 7]
    >>> merges.children.tolist()
    [[0, 1], [3, 4], [5, 6], [0, 0]]
    """
    n = len(X)
    members, groups = find_equal_rows(X)  # groups are side by side, their members ordered by age
    starts, sizes = _find_runs(groups)
    row = members[starts]  # one of each group
    merge_all = np.asarray(np.isnan(X[row]).all(axis=1) | (not noisy))
    total = np.where(merge_all, sizes, 0)
    alone = np.setdiff1d(np.arange(n), members, assume_unique=True)
    left = [(alone, alone, np.ones(len(alone), dtype=np.intp))]
    done, count = 0, 1  # merges, and rows of each member
    while len(members):
        starts, sizes = _find_runs(groups)
        place, size = np.arange(len(members)) - np.repeat(starts, sizes), np.repeat(sizes, sizes)
        # the last of an odd number merges with the first new pair of its group, or is left
        odd_one = (place == size - 1) & (place % 2 == 0)
        has_joiner = merge_all[groups] & (size % 2 == 1) & (size > 1)
        stays = odd_one & ~has_joiner
        left.append((members[stays], row[groups[stays]], np.maximum(count, total[groups[stays]])))
        merging = (place % 2 == 0) & ~stays  # the older of two
        older = members[merging]
        new = np.empty(len(members), dtype=np.intp)
        new[merging] = n + done + np.argsort(np.argsort(older))
        younger = np.where(odd_one, np.repeat(new[starts], sizes), np.append(members[1:], 0))[merging]
        merges.children[new[merging] - n] = np.column_stack([older, younger])
        goes_on = merging & ~(has_joiner & (place == 0))
        members, groups = new[goes_on], groups[goes_on]
        count *= 2
        done += len(older)
    nodes, rows, totals = (np.concatenate(parts) for parts in zip(*left, strict=True))
    by_age = np.argsort(nodes)
    return DistinctLineages(nodes[by_age], rows[by_age], totals[by_age])


def _find_runs(groups: IntArray) -> tuple[IntArray, IntArray]:
    """Return where runs of equal numbers start, and their lengths."""
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    return starts, np.diff(starts, append=len(groups))


def find_equal_rows(X: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the rows that equal other rows, and the number of the group of each; groups are side by side, each in order.

    Column by column, rows that differ from all others are left out: of continuous columns, one is enough.
    """
    rows, groups = np.arange(len(X)), np.zeros(len(X), dtype=np.intp)
    for column in X.T:
        codes = np.unique(column[rows], return_inverse=True)[1]
        groups = np.unique(groups * len(rows) + codes, return_inverse=True)[1]
        shared = np.bincount(groups)[groups] > 1
        rows, groups = rows[shared], groups[shared]
        if not len(rows):
            break
    order = np.argsort(groups, kind="stable")
    return rows[order], np.unique(groups[order], return_inverse=True)[1]
