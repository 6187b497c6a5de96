"""Baselines that predict missing cells: of a table of states, and of real columns by probabilistic principal components."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError

from .._validation import check_count, quote
from ..errors import InputError
from ..table.matrix import as_matrix
from .linkage import count_states, disagreement, indicators, linkage_tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MIN_NOISE = 1e-6  # as a share of the mean variance of the columns
MIN_CELL, MAX_CELL = 1e-100, 1e100
ROUNDING = 1e-14  # relative difference of numbers that count as equal

_N_ROWS_PER_BLOCK = 256  # rows compared with all others at a time


class ProbabilisticPCA:
    """A Gaussian with a covariance of low rank plus noise, fitted to the observed cells.

    A row is ``weights z + mean + noise``, with ``z`` standard normal and noise of one variance. Missing cells are integrated out.

    Parameters
    ----------
    n_components : int
        Dimension of ``z``, at least 1. At most the number of columns less one are used.
    max_rounds : int, default 500
        Most rounds of expectation-maximisation.
    tolerance : float, default 1e-6
        The rounds end when the mean log likelihood of a cell gains less than this in one round.

    Attributes
    ----------
    weights_ : ndarray of shape (n_columns, number of components in use)
    mean_ : ndarray of shape (n_columns,)
    noise_ : float
        Variance of the noise, at least a millionth of the mean variance of the columns (of 1 if none varies).
    log_likelihoods_ : ndarray
        Log likelihood of the observed cells, before each round and after the last.
    converged_ : bool
        Whether the rounds ended before `max_rounds`.

    Examples
    --------
    >>> import numpy as np
    >>> from coaltree.baselines import ProbabilisticPCA
    >>> X = np.array([[0.0, 0.1], [1.0, 1.1], [2.0, 1.9], [3.0, 3.0], [4.0, np.nan]])
    >>> ProbabilisticPCA(1).fit(X).filled().round(1)[-1].tolist()
    [4.0, 3.9]
    """

    def __init__(self, n_components: int, *, max_rounds: int = 500, tolerance: float = 1e-6) -> None:
        self.n_components = check_count(n_components, "n_components")
        self.max_rounds = check_count(max_rounds, "max_rounds")
        if not 0 <= tolerance < math.inf:
            raise InputError(f"tolerance is {quote(tolerance)}; it must be a number of at least 0.")
        self.tolerance = tolerance

    def fit(self, X: ArrayLike) -> Self:
        """Fit the Gaussian to a table.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            NaN is a missing cell. A column without any observed cell counts as zeros.

        Returns
        -------
        self
        """
        self._table = as_matrix(X)
        self._observed = ~np.isnan(self._table)
        largest = float(np.abs(self._table[self._observed]).max(initial=0.0))
        if not (MIN_CELL <= largest <= MAX_CELL or largest == 0.0):
            raise InputError(
                f"The largest cell is {largest:g} in size; it must lie between {MIN_CELL:g} and {MAX_CELL:g}, so that "
                "squares do not overflow: rescale the table."
            )
        self._initialise()
        self.converged_ = True
        trace = []
        for _ in range(self.max_rounds):
            means, covariances, log_likelihood = self._infer_components()
            trace.append(log_likelihood)
            if len(trace) > 1 and trace[-1] - trace[-2] < self.tolerance * max(self._observed.sum(), 1):
                break
            self._maximise(means, covariances)
        else:
            self.converged_ = False
            trace.append(self._infer_components()[2])
        self.log_likelihoods_ = np.array(trace)
        return self

    def filled(self) -> FloatArray:
        """Return the table with the expectation of each missing cell given the row's others."""
        if not hasattr(self, "weights_"):
            raise NotFittedError("This ProbabilisticPCA is not fitted: call fit first.")
        means, _, _ = self._infer_components()
        return np.where(self._observed, self._table, means @ self.weights_.T + self.mean_)

    def _initialise(self) -> None:
        """Start from the principal components of the table with missing cells at the column means."""
        n, d = self._table.shape
        counts = np.maximum(self._observed.sum(axis=0), 1)
        self._offset = np.where(self._observed, self._table, 0.0).sum(axis=0) / counts
        # Cells are centred, so that squares lose no digits.
        self._cells = centred = np.where(self._observed, self._table - self._offset, 0.0)
        self.mean_ = self._offset.copy()
        variance = float((centred**2).sum() / max(self._observed.sum(), 1))
        rounding = (ROUNDING * float(np.abs(self._offset).max())) ** 2
        self._floor = MIN_NOISE * (variance if variance > rounding else 1.0)
        _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
        n_components = max(min(self.n_components, d - 1), 1)
        q = min(n_components, len(sizes))
        variances = sizes**2 / n
        self.noise_ = max(float(variances[q:].sum()) / max(d - q, 1), self._floor)
        self.weights_ = np.zeros((d, n_components))
        self.weights_[:, :q] = axes[:q].T * np.sqrt(np.maximum(variances[:q] - self.noise_, self.noise_))

    def _infer_components(self) -> tuple[FloatArray, FloatArray, float]:
        """Return mean and covariance of each row's components given its cells, and the log likelihood of all cells."""
        q, noise = self.weights_.shape[1], self.noise_
        observed = self._observed.astype(np.float64)
        products = np.einsum("dp,dq->dpq", self.weights_, self.weights_).reshape(-1, q * q)
        precisions = (observed @ products).reshape(-1, q, q) + noise * np.eye(q)
        gaps = observed * (self._cells - (self.mean_ - self._offset))
        projected = gaps @ self.weights_
        inverses = np.linalg.inv(precisions)
        means = np.einsum("npq,nq->np", inverses, projected)
        n_observed = observed.sum(axis=1)
        log_dets = np.linalg.slogdet(precisions)[1] + (n_observed - q) * math.log(noise)
        # Of several equivalent forms, this is the least sensitive to errors of the means.
        residuals = observed * (gaps - means @ self.weights_.T)
        squares = (residuals**2).sum(axis=1) / noise + (means**2).sum(axis=1)
        log_likelihood = -0.5 * float((n_observed * math.log(2 * math.pi) + log_dets + squares).sum())
        return means, noise * inverses, log_likelihood

    def _maximise(self, means: FloatArray, covariances: FloatArray) -> None:
        """Regress every column on the components of its observed rows, and set the noise to the residual variance."""
        n, q = means.shape
        observed = self._observed.astype(np.float64)
        # A constant component carries the mean of the column.
        first = np.column_stack([means, np.ones(n)])
        second = np.einsum("np,nq->npq", first, first)
        second[:, :q, :q] += covariances
        moments = (observed.T @ second.reshape(n, -1)).reshape(-1, q + 1, q + 1)
        targets = self._cells.T @ first
        used = self._observed.any(axis=0)
        solution = np.zeros_like(targets)
        solution[used] = np.linalg.solve(moments[used], targets[used][:, :, None])[:, :, 0]
        self.weights_, self.mean_ = solution[:, :q], self._offset + solution[:, q]
        residual = (self._cells**2).sum() - (solution * targets).sum()
        self.noise_ = max(float(residual) / max(self._observed.sum(), 1), self._floor)


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
            One entry per state of the column with the most states; a state that a column lacks has probability 0.
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
        """Compute the quantities that all predictions share."""

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
