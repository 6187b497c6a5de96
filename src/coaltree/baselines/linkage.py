"""Classical linkage (scipy) as a `Tree`, also for tables of states with missing cells."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import quote
from ..errors import InputError
from ..table.matrix import as_matrix
from ..tree.tree import Tree

MAX_STATES = 10_000  # each becomes a column of zeros and ones

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def count_states(X: FloatArray) -> IntArray:
    """Return the number of states of each column, one more than its largest code; refuse cells that are not codes."""
    bad = np.argwhere((X < 0) | (np.floor(X) != X) & ~np.isnan(X))
    if len(bad):
        row, column = bad[0]
        raise InputError(
            f"Row {row}, column {column} holds {X[row, column]:g}; cells must be codes 0, 1, 2, ... or NaN for missing."
        )
    large = np.argwhere(X >= MAX_STATES)
    if len(large):
        row, column = large[0]
        raise InputError(
            f"Row {row}, column {column} holds the code {X[row, column]:g}; codes must be below {MAX_STATES:,}: number the "
            "states of each column from 0."
        )
    largest: IntArray = np.where(np.isnan(X), 0.0, X).max(axis=0).astype(np.intp)
    return largest + 1


def indicators(X: FloatArray, n_states: IntArray) -> FloatArray:
    """Return a column of zeros and ones for each state of each column, NaN where the cell is missing."""
    states = np.concatenate([np.arange(n) for n in n_states]).astype(np.float64)
    column = np.repeat(X, n_states, axis=1)
    return np.where(np.isnan(column), np.nan, column == states)


def disagreement(X: FloatArray, rows: IntArray | None = None) -> FloatArray:
    """Return the share of differing cells among those observed in both of two rows; 1 if there are none.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Codes, NaN for missing.
    rows : ndarray of int, optional
        Rows to compare with all others; default all.

    Returns
    -------
    ndarray of shape (len(rows), n_rows)
    """
    observed = (~np.isnan(X)).astype(np.float64)
    states = np.nan_to_num(indicators(X, count_states(X)))
    part = slice(None) if rows is None else rows
    shared = observed[part] @ observed.T
    equal = states[part] @ states.T
    return np.where(shared > 0, 1 - equal / np.maximum(shared, 1), 1.0)


METHODS = ("average", "complete", "single", "ward")
METRICS = ("euclidean", "hamming")


def linkage_tree(
    X: ArrayLike, method: str = "average", *, metric: str = "euclidean", leaf_names: Sequence[str] | None = None
) -> Tree:
    """Return the tree of a classical linkage.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_columns)
        Numbers, or codes of states with ``metric="hamming"``.
    method : {"average", "complete", "single", "ward"}, default "average"
        Distance between clusters, as in scipy.
    metric : {"euclidean", "hamming"}, default "euclidean"
        Distance between rows: Euclidean between complete rows, or the share of differing cells among those observed in
        both, 1 if there are none. Ward's method needs Euclidean distances.
    leaf_names : sequence of str, optional
        Names of the rows.

    Returns
    -------
    Tree
        Heights are scipy's distances.

    Raises
    ------
    InputError
        If cells are missing and the distance is Euclidean, or an option is invalid.

    Notes
    -----
    scipy stores the distances of all pairs: ``4 n (n - 1)`` bytes.

    Examples
    --------
    >>> from coaltree.baselines import linkage_tree
    >>> linkage_tree([[0.0], [1.0], [5.0]], leaf_names=["a", "b", "c"]).to_newick()
    '(c:4.5,(a:1.0,b:1.0):3.5);'
    """
    if not isinstance(method, str) or method not in METHODS:
        raise InputError(f"method is {quote(method)}; it must be {' or '.join(map(repr, METHODS))}.")
    if not isinstance(metric, str) or metric not in METRICS:
        raise InputError(f"metric is {quote(metric)}; it must be {' or '.join(map(repr, METRICS))}.")
    if metric == "hamming" and method == "ward":
        raise InputError("method='ward' is for Euclidean distances; use another method, or metric='euclidean'.")
    table = as_matrix(X)
    if metric == "euclidean" and np.isnan(table).any():
        row, column = np.argwhere(np.isnan(table))[0]
        raise InputError(
            f"The cell in row {row}, column {column} is missing, and Euclidean distances need complete rows: fill the "
            "cells, or use metric='hamming' for a table of states."
        )
    if len(table) == 1:
        return Tree(np.empty((0, 2)), [0.0], leaf_names)
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import pdist, squareform

    # Scaled so that no square overflows; a power of 2 loses no digit.
    unit = math.ldexp(1.0, math.frexp(np.abs(table).max())[1] - 1) if metric == "euclidean" else 1.0
    distances = pdist(table / unit) if metric == "euclidean" else squareform(disagreement(table), checks=False)
    Z: FloatArray = linkage(distances, method)  # type: ignore[arg-type, unused-ignore]  # one of METHODS
    Z[:, 2] *= unit
    # Distances that differ by rounding may be in the wrong order.
    Z[:, 2] = np.maximum.accumulate(Z[:, 2])
    return Tree.from_linkage(Z, leaf_names)
