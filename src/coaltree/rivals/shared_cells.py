"""Tables of states with missing cells, as zeros and ones, and how rows differ in the cells that both have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

MOST_STATES = 10_000  # tables of zeros and ones have a column for each

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def numbers_of_states(X: FloatArray) -> IntArray:
    """Check that a table holds codes, and return one more than the largest of each column, at least 1."""
    wrong = np.argwhere((X < 0) | (np.floor(X) != X) & ~np.isnan(X))
    if len(wrong):
        row, column = wrong[0]
        raise InputError(
            f"Row {row}, column {column} holds {X[row, column]:g}; cells must be codes 0, 1, 2, ... or NaN for missing."
        )
    many = np.argwhere(X >= MOST_STATES)
    if len(many):
        row, column = many[0]
        raise InputError(
            f"Row {row}, column {column} holds the code {X[row, column]:g}; codes must be below {MOST_STATES:,}: number the "
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
    """Return the share of cells that differ among those that both of two rows have; 1 where they have none in common.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Codes, NaN for missing.
    rows : ndarray of int, optional
        Rows to compare with all; all by default.

    Returns
    -------
    ndarray of shape (len(rows), n_rows)
    """
    seen = (~np.isnan(X)).astype(np.float64)
    states = np.nan_to_num(indicators(X, numbers_of_states(X)))
    part = slice(None) if rows is None else rows
    shared = seen[part] @ seen.T
    equal = states[part] @ states.T
    return np.where(shared > 0, 1 - equal / np.maximum(shared, 1), 1.0)
