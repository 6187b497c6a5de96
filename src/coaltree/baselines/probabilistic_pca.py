"""Probabilistic principal components of a table with missing cells, by expectation-maximisation."""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError

from .._validation import check_count, quote
from ..errors import InputError
from ..process.validation import as_matrix

FloatArray = NDArray[np.float64]

MIN_NOISE = 1e-6  # as a share of the mean variance of the columns
MIN_CELL, MAX_CELL = 1e-100, 1e100
ROUNDING = 1e-14  # relative difference of numbers that count as equal


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
        The rounds end when the mean log likelihood of a cell gains less than this in one.

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
        # Of the equivalent forms, the one that is least sensitive to errors of the means.
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
        left = (self._cells**2).sum() - (solution * targets).sum()
        self.noise_ = max(float(left) / max(self._observed.sum(), 1), self._floor)
