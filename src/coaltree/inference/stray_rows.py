"""Rows that the top of a tree sets apart from all others because of one column."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..table.tails import FAR
from ..tree.tree import Tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# From these on, a few rows that are far out are told: the share of one column in their squared distances over all columns, in
# standard deviations of the other rows; and the number of rows of the table.
SHARE, FEWEST_ROWS = 0.8, 20
MOST_GROUPS = 10  # that are looked at: each costs a look at the whole table


def stray_rows(tree: Tree, real: FloatArray, min_size: int) -> dict[int, IntArray]:
    """Return rows that hang beside all others at the top of a tree, by the column that they are far out in.

    From the root downwards, as long as one side of a split has fewer than `min_size` leaves. Nothing is returned unless the first
    of these groups is far out in one column, nor of columns that do not vary otherwise.

    Parameters
    ----------
    tree : Tree
    real : ndarray of shape (n, D)
        Real columns as the process sees them; NaN is missing.
    min_size : int
        Leaves of a side that is not a group of stray rows.

    Returns
    -------
    dict of int to ndarray of int
        Rows by column, in order.
    """
    n, node = tree.n_leaves, tree.n_nodes - 1
    found: dict[int, list[int]] = {}
    if n < FEWEST_ROWS or not real.shape[1]:
        return {}
    left = np.ones(n, dtype=bool)  # rows that are not in a group
    for _ in range(MOST_GROUPS):
        small, large = sorted(tree.children[node - n].tolist(), key=lambda child: int(tree.leaf_counts[child]))
        if tree.leaf_counts[small] >= min_size or large < n:
            break
        rows, node = tree.leaves_below(small), large
        left[rows] = False
        column = _far_column(real[rows], real[left])
        if column is not None:
            found.setdefault(column, []).extend(rows.tolist())
        elif not found:
            break
    return {column: np.sort(np.array(own, dtype=np.intp)) for column, own in found.items()}


def _far_column(group: FloatArray, others: FloatArray) -> int | None:
    """Return the one column in which a few rows are far from all others, if there is one."""
    seen = ~np.isnan(others)
    counts = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, others, 0.0).sum(axis=0) / counts
    sd = np.sqrt(np.where(seen, (others - mean) ** 2, 0.0).sum(axis=0) / counts)
    own = ~np.isnan(group)
    away = np.where(own, group - mean, 0.0).sum(axis=0) / np.maximum(own.sum(axis=0), 1)
    # a column of two values, as of yes and no, has no scale that one of them could be far out on
    varies = sd > 1e-9 * np.abs(away)
    squares = np.divide(away, sd, out=np.zeros_like(sd), where=varies) ** 2
    far = int(np.argmax(squares))
    return far if squares[far] >= max(FAR**2, SHARE * squares.sum()) else None
