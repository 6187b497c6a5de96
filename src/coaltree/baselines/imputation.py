"""Baselines that predict the missing cells of a table of states."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError

from ..errors import InputError
from ..process.validation import as_matrix
from .linkage import count_states, disagreement, indicators, linkage_tree
from .probabilistic_pca import ProbabilisticPCA

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_N_ROWS_PER_BLOCK = 256  # rows compared with all others at a time


class StateImputer(ABC):
    """Base class: `fit` reads a table of states, `predict_proba` and `predict` return its missing cells."""

    def fit(self, X: ArrayLike) -> Self:
        """Fit to a table.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            Codes 0, 1, 2, ... of states; NaN is missing.

        Returns
        -------
        self
        """
        self._table = as_matrix(X)
        self._n_states = count_states(self._table)
        max_states = int(self._n_states.max())
        counts = np.stack([(self._table == state).sum(axis=0) for state in range(max_states)], axis=1).astype(
            np.float64
        )
        counts[counts.sum(axis=1) == 0, 0] = 1.0
        self._frequencies: FloatArray = counts / counts.sum(axis=1, keepdims=True)
        self._prepare()
        return self

    def predict_proba(self, rows: ArrayLike, columns: ArrayLike) -> FloatArray:
        """Return the probabilities of the states of missing cells.

        Parameters
        ----------
        rows, columns : array-like of int, shape (n_cells,)
            Positions of the cells.

        Returns
        -------
        ndarray of shape (n_cells, n_states)
            As many states as the column with the most has; a state that a column lacks has probability 0.
        """
        if not hasattr(self, "_table"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted: call fit first.")
        cells = np.asarray(rows, dtype=np.intp), np.asarray(columns, dtype=np.intp)
        if cells[0].shape != cells[1].shape or cells[0].ndim != 1:
            raise InputError(
                f"rows and columns have the shapes {cells[0].shape} and {cells[1].shape}; both need one entry per cell."
            )
        n_rows, n_columns = self._table.shape
        if np.any((cells[0] < 0) | (cells[0] >= n_rows) | (cells[1] < 0) | (cells[1] >= n_columns)):
            raise InputError(f"A cell lies outside the table of {n_rows} rows and {n_columns} columns.")
        observed = np.flatnonzero(~np.isnan(self._table[cells]))
        if len(observed):
            raise InputError(
                f"The cell in row {cells[0][observed[0]]}, column {cells[1][observed[0]]} is not missing: remove a cell "
                "before fit to predict it."
            )
        empty = np.flatnonzero(np.asarray(np.isnan(self._table).all(axis=0))[cells[1]])
        if len(empty):
            raise InputError(
                f"Column {cells[1][empty[0]]} has no observed cell, so its states are unknown: leave it out."
            )
        return self._probabilities(*cells)

    def predict(self, rows: ArrayLike, columns: ArrayLike) -> IntArray:
        """Return the most probable states of missing cells; ties go to the most frequent state of the column.

        Parameters
        ----------
        rows, columns : array-like of int, shape (n_cells,)
            Positions of the cells.

        Returns
        -------
        ndarray of int, shape (n_cells,)
        """
        probabilities = self.predict_proba(rows, columns)
        ties = probabilities >= probabilities.max(axis=1, initial=0.0, keepdims=True) - 1e-12
        frequencies = self._frequencies[np.asarray(columns, dtype=np.intp)]
        return np.asarray(np.where(ties, frequencies, -1.0).argmax(axis=1))

    @abstractmethod
    def _prepare(self) -> None:
        """Compute what all predictions share."""

    @abstractmethod
    def _probabilities(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the probabilities of the states of valid cells."""


class ColumnMode(StateImputer):
    """Predict the frequencies of the states in the column.

    Examples
    --------
    >>> import numpy as np
    >>> from coaltree.baselines import ColumnMode
    >>> ColumnMode().fit([[0], [1], [1], [np.nan]]).predict([3], [0]).tolist()
    [1]
    """

    def _prepare(self) -> None:
        pass

    def _probabilities(self, rows: IntArray, columns: IntArray) -> FloatArray:
        return self._frequencies[columns]


class NearestRow(StateImputer):
    """Predict the cell of the nearest row, by the share of differing cells among those observed in both rows.

    Equally near rows have equal weight. Rows without a common observed cell are the farthest.

    Examples
    --------
    >>> import numpy as np
    >>> from coaltree.baselines import NearestRow
    >>> X = [[0, 0, 2], [1, 1, 1], [1, 1, np.nan]]
    >>> NearestRow().fit(X).predict([2], [2]).tolist()
    [1]
    """

    def _prepare(self) -> None:
        pass

    def _probabilities(self, rows: IntArray, columns: IntArray) -> FloatArray:
        result = np.empty((len(rows), self._frequencies.shape[1]))
        distinct = np.unique(rows)
        for first in range(0, len(distinct), _N_ROWS_PER_BLOCK):
            block = distinct[first : first + _N_ROWS_PER_BLOCK]
            distances = disagreement(self._table, block)
            for cell in np.flatnonzero(np.isin(rows, block)):
                values = self._table[:, columns[cell]]
                distance = np.where(np.isnan(values), np.inf, distances[np.searchsorted(block, rows[cell])])
                nearest = np.flatnonzero((distance <= distance.min() + 1e-12) & np.isfinite(distance))
                result[cell] = self._count_states(values[nearest], columns[cell])
        return result

    def _count_states(self, values: FloatArray, column: int) -> FloatArray:
        counts: FloatArray = np.bincount(values.astype(np.intp), minlength=self._frequencies.shape[1]).astype(
            np.float64
        )
        return counts / len(values) if len(values) else np.asarray(self._frequencies[column])


class NearestInTree(StateImputer):
    """Predict the cell of the nearest leaves in the tree of average linkage, by the distance of `NearestRow`.

    The leaves of the smallest subtree with an observed cell have equal weight.

    Examples
    --------
    >>> import numpy as np
    >>> from coaltree.baselines import NearestInTree
    >>> X = [[0, 0, 2], [1, 1, 1], [1, 1, np.nan]]
    >>> NearestInTree().fit(X).predict([2], [2]).tolist()
    [1]
    """

    def _prepare(self) -> None:
        self.tree_ = linkage_tree(self._table, "average", metric="hamming")

    def _probabilities(self, rows: IntArray, columns: IntArray) -> FloatArray:
        tree = self.tree_
        result = self._frequencies[columns]
        for column in np.unique(columns):
            cells = np.flatnonzero(columns == column)
            counts = np.zeros((tree.n_nodes, self._frequencies.shape[1]))
            counts[: tree.n_leaves] = np.equal.outer(self._table[:, column], np.arange(self._frequencies.shape[1]))
            for k, (left, right) in enumerate(tree.children):
                counts[tree.n_leaves + k] = counts[left] + counts[right]
            totals = counts.sum(axis=1)
            nodes = rows[cells]
            while True:
                higher = (totals[nodes] == 0) & (nodes != tree.root)
                if not higher.any():
                    break
                nodes = np.where(higher, tree.parents[nodes], nodes)
            observed = totals[nodes] > 0
            result[cells[observed]] = counts[nodes[observed]] / totals[nodes[observed], None]
        return result


class PrincipalComponentCells(StateImputer):
    """Predict the expectation under probabilistic principal components of the states, coded as zeros and ones.

    Negative expectations count as 0, and those of a cell are scaled to sum to 1.

    Parameters
    ----------
    n_components : int
        See `ProbabilisticPCA`.
    max_rounds : int, default 500
    tolerance : float, default 1e-6

    Examples
    --------
    >>> import numpy as np
    >>> from coaltree.baselines import PrincipalComponentCells
    >>> X = [[0, 0], [1, 1], [0, 0], [1, 1], [1, np.nan], [np.nan, 0]]
    >>> PrincipalComponentCells(1).fit(X).predict([4, 5], [1, 0]).tolist()
    [1, 0]
    """

    def __init__(self, n_components: int, *, max_rounds: int = 500, tolerance: float = 1e-6) -> None:
        self._components = ProbabilisticPCA(n_components, max_rounds=max_rounds, tolerance=tolerance)

    def _prepare(self) -> None:
        self._expected = self._components.fit(indicators(self._table, self._n_states)).filled()
        self._start = np.concatenate([[0], np.cumsum(self._n_states)])

    def _probabilities(self, rows: IntArray, columns: IntArray) -> FloatArray:
        result = np.zeros((len(rows), self._frequencies.shape[1]))
        for cell, (row, column) in enumerate(zip(rows, columns, strict=True)):
            expected = np.maximum(self._expected[row, self._start[column] : self._start[column + 1]], 0.0)
            total = expected.sum()
            if total > 0:
                result[cell, : len(expected)] = expected / total
            else:
                result[cell] = self._frequencies[column]
        return result
