"""Rows of the fit, recognised by their cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_FACTOR, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


class KnownRows:
    """An index of the rows of a table.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        NaN is a missing cell.

    Examples
    --------
    >>> import numpy as np
    >>> known = KnownRows(np.array([[0.0, np.nan], [1.0, 2.0], [0.0, np.nan]]))
    >>> known.find(np.array([[1.0, 2.0], [-0.0, np.nan], [0.0, 2.0]])).tolist()
    [1, 0, -1]
    """

    def __init__(self, X: FloatArray) -> None:
        self._cells = _to_canonical(X)
        hashes = _hash_rows(self._cells)
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]

    def find(self, X: FloatArray) -> IntArray:
        """Return the index of the first row of the table with the same cells, observed and missing; -1 if there is none."""
        cells = _to_canonical(X)
        hashes = _hash_rows(cells)
        found = np.full(len(cells), -1, dtype=np.intp)
        at = np.searchsorted(self._hashes, hashes)
        open_rows = np.arange(len(cells))
        while len(open_rows):  # once, unless different rows have the same hash
            open_rows = open_rows[at[open_rows] < len(self._hashes)]
            open_rows = open_rows[self._hashes[at[open_rows]] == hashes[open_rows]]
            rows = self._order[at[open_rows]]
            equal = (self._cells[rows] == cells[open_rows]).all(axis=1)
            found[open_rows[equal]] = rows[equal]
            open_rows = open_rows[~equal]
            at[open_rows] += 1
        return found


def _to_canonical(X: FloatArray) -> NDArray[np.uint64]:
    """Return the bits of a table, equal for equal cells: there is a single NaN, and no minus zero."""
    cells: NDArray[np.uint64] = np.ascontiguousarray(np.where(np.isnan(X), np.nan, X) + 0.0).view(np.uint64)
    return cells


def _hash_rows(cells: NDArray[np.uint64]) -> NDArray[np.uint64]:
    hashes = np.zeros(len(cells), dtype=np.uint64)
    for column in cells.T:
        hashes = (hashes ^ column) * _FACTOR
        hashes ^= hashes >> _SHIFT
    return hashes
