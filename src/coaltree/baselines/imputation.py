"""Other ways to tell the missing cells of a table of states."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError

from ..errors import InputError
from ..process.validation import as_matrix
from .linkage import disagreement, indicators, linkage_tree, numbers_of_states
from .probabilistic_pca import ProbabilisticPCA

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_ROWS_AT_A_TIME = 256  # that are compared with all others


class CellRival(ABC):
    """A way to tell missing cells of a table of states from the others.

    All have the same interface: `fit` takes the table, `predict_proba` and `predict` are asked for cells that it lacks.
    """

    def fit(self, X: ArrayLike) -> Self:
        """Take a table.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            Codes 0, 1, 2, ... of states; NaN is missing.

        Returns
        -------
        self
        """
        self._table = as_matrix(X)
        self._n_states = numbers_of_states(self._table)
        most = int(self._n_states.max())
        counts = np.stack([(self._table == state).sum(axis=0) for state in range(most)], axis=1).astype(np.float64)
        counts[counts.sum(axis=1) == 0, 0] = 1.0
        self._shares: FloatArray = counts / counts.sum(axis=1, keepdims=True)
        self._learn()
        return self

    def predict_proba(self, rows: ArrayLike, columns: ArrayLike) -> FloatArray:
        """Return the probabilities of the states of missing cells.

        Parameters
        ----------
        rows, columns : array-like of int, shape (n_cells,)
            Where they are.

        Returns
        -------
        ndarray of shape (n_cells, n_states)
            As many as the column with most states has; states that a column lacks have probability 0.
        """
        if not hasattr(self, "_table"):
            raise NotFittedError(f"This {type(self).__name__} has no table yet: call fit first.")
        at = np.asarray(rows, dtype=np.intp), np.asarray(columns, dtype=np.intp)
        if at[0].shape != at[1].shape or at[0].ndim != 1:
            raise InputError(
                f"rows and columns have the shapes {at[0].shape} and {at[1].shape}; there must be one of each for every cell."
            )
        n_rows, n_columns = self._table.shape
        if np.any((at[0] < 0) | (at[0] >= n_rows) | (at[1] < 0) | (at[1] >= n_columns)):
            raise InputError(f"A cell was asked for that is not in the table of {n_rows} rows and {n_columns} columns.")
        seen = np.flatnonzero(~np.isnan(self._table[at]))
        if len(seen):
            raise InputError(
                f"The cell in row {at[0][seen[0]]}, column {at[1][seen[0]]} is not missing; hide a cell before fit to have it "
                "predicted."
            )
        empty = np.flatnonzero(np.asarray(np.isnan(self._table).all(axis=0))[at[1]])
        if len(empty):
            raise InputError(
                f"Column {at[1][empty[0]]} has no observed cell, so that nothing tells which states it has: leave it out."
            )
        return self._probabilities(*at)

    def predict(self, rows: ArrayLike, columns: ArrayLike) -> IntArray:
        """Return the most probable states of missing cells; of equals that which the column has most often.

        Parameters
        ----------
        rows, columns : array-like of int, shape (n_cells,)
            Where they are.

        Returns
        -------
        ndarray of int, shape (n_cells,)
        """
        probabilities = self.predict_proba(rows, columns)
        ties = probabilities >= probabilities.max(axis=1, initial=0.0, keepdims=True) - 1e-12
        shares = self._shares[np.asarray(columns, dtype=np.intp)]
        return np.asarray(np.where(ties, shares, -1.0).argmax(axis=1))

    @abstractmethod
    def _learn(self) -> None:
        """Do what can be done before cells are asked for."""

    @abstractmethod
    def _probabilities(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the probabilities of the states of cells that have been checked."""


class ColumnMode(CellRival):
    """Every cell has the shares of the states in its column.

    Examples
    --------
    >>> import numpy as np
    >>> from coaltree.baselines import ColumnMode
    >>> ColumnMode().fit([[0], [1], [1], [np.nan]]).predict([3], [0]).tolist()
    [1]
    """

    def _learn(self) -> None:
        pass

    def _probabilities(self, rows: IntArray, columns: IntArray) -> FloatArray:
        return self._shares[columns]


class NearestRow(CellRival):
    """A cell is that of the nearest row that has it, by the share of cells that differ among those that both have.

    Rows that are equally near count alike; those without a cell in common are farthest.

    Examples
    --------
    >>> import numpy as np
    >>> from coaltree.baselines import NearestRow
    >>> X = [[0, 0, 2], [1, 1, 1], [1, 1, np.nan]]
    >>> NearestRow().fit(X).predict([2], [2]).tolist()
    [1]
    """

    def _learn(self) -> None:
        pass

    def _probabilities(self, rows: IntArray, columns: IntArray) -> FloatArray:
        result = np.empty((len(rows), self._shares.shape[1]))
        asked = np.unique(rows)
        for first in range(0, len(asked), _ROWS_AT_A_TIME):
            part = asked[first : first + _ROWS_AT_A_TIME]
            distances = disagreement(self._table, part)
            for cell in np.flatnonzero(np.isin(rows, part)):
                values = self._table[:, columns[cell]]
                apart = np.where(np.isnan(values), np.inf, distances[np.searchsorted(part, rows[cell])])
                nearest = np.flatnonzero((apart <= apart.min() + 1e-12) & np.isfinite(apart))
                result[cell] = self._votes(values[nearest], columns[cell])
        return result

    def _votes(self, values: FloatArray, column: int) -> FloatArray:
        counts: FloatArray = np.bincount(values.astype(np.intp), minlength=self._shares.shape[1]).astype(np.float64)
        return counts / len(values) if len(values) else np.asarray(self._shares[column])


class NearestInTree(CellRival):
    """A cell is that of the leaves nearest in the tree of average linkage, by the distance of `NearestRow`.

    The smallest subtree that holds the row and another that has the cell is looked for; the leaves in it that have
    the cell are equally near and count alike.

    Examples
    --------
    >>> import numpy as np
    >>> from coaltree.baselines import NearestInTree
    >>> X = [[0, 0, 2], [1, 1, 1], [1, 1, np.nan]]
    >>> NearestInTree().fit(X).predict([2], [2]).tolist()
    [1]
    """

    def _learn(self) -> None:
        self.tree_ = linkage_tree(self._table, "average", metric="hamming")

    def _probabilities(self, rows: IntArray, columns: IntArray) -> FloatArray:
        tree = self.tree_
        result = self._shares[columns]
        for column in np.unique(columns):
            cells = np.flatnonzero(columns == column)
            counts = np.zeros((tree.n_nodes, self._shares.shape[1]))
            counts[: tree.n_leaves] = np.equal.outer(self._table[:, column], np.arange(self._shares.shape[1]))
            for k, (left, right) in enumerate(tree.children):
                counts[tree.n_leaves + k] = counts[left] + counts[right]
            totals = counts.sum(axis=1)
            nodes = rows[cells]
            while True:
                higher = (totals[nodes] == 0) & (nodes != tree.root)
                if not higher.any():
                    break
                nodes = np.where(higher, tree.parents[nodes], nodes)
            known = totals[nodes] > 0
            result[cells[known]] = counts[nodes[known]] / totals[nodes[known], None]
        return result


class PrincipalComponentCells(CellRival):
    """A cell is what probabilistic principal components of the states, as columns of zeros and ones, expect it to be.

    Expectations below 0 count as 0, and those of a cell are scaled to add up to 1.

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

    def _learn(self) -> None:
        self._expected = self._components.fit(indicators(self._table, self._n_states)).filled()
        self._start = np.concatenate([[0], np.cumsum(self._n_states)])

    def _probabilities(self, rows: IntArray, columns: IntArray) -> FloatArray:
        result = np.zeros((len(rows), self._shares.shape[1]))
        for cell, (row, column) in enumerate(zip(rows, columns, strict=True)):
            expected = np.maximum(self._expected[row, self._start[column] : self._start[column + 1]], 0.0)
            total = expected.sum()
            if total > 0:
                result[cell, : len(expected)] = expected / total
            else:
                result[cell] = self._shares[column]
        return result
