"""Probabilistic principal components of a table with holes, by expectation-maximisation."""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError

from .._validation import check_count
from ..errors import InputError
from ..process.validation import as_matrix

FloatArray = NDArray[np.float64]

SMALLEST_NOISE = 1e-6  # as a share of the mean variance of the columns
SMALLEST, LARGEST = 1e-100, 1e100  # of cells
ROUNDING = 1e-14  # what differs by less, in units of the mean, is the same number


class ProbabilisticPCA:
    """A Gaussian whose covariance is of low rank but for noise, fitted to the cells that are there.

    A row is ``weights z + mean + noise``, with ``z`` of independent standard normal numbers and noise of one variance. Missing
    cells are integrated out: of every row only what is observed counts.

    Parameters
    ----------
    n_components : int
        Dimension of ``z``, at least 1. One less than there are columns make for any covariance; more are not used.
    max_rounds : int, default 500
        Rounds of expectation-maximisation, at most.
    tolerance : float, default 1e-6
        Rounds end when the log likelihood of a cell gains less than this in one.

    Attributes
    ----------
    weights_ : ndarray of shape (n_columns, number of components in use)
    mean_ : ndarray of shape (n_columns,)
    noise_ : float
        Variance of the noise. It is kept from getting below a millionth of the columns' mean variance (of 1 if none varies).
    log_likelihoods_ : ndarray
        Of the observed cells, before each round and after the last.
    converged_ : bool
        Whether rounds ended by themselves, and not because there were as many as allowed.

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
            raise InputError(f"tolerance is {tolerance!r}; it must be a number of at least 0.")
        self.tolerance = tolerance

    def fit(self, X: ArrayLike) -> Self:
        """Fit the Gaussian to a table.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            NaN is a missing cell. A column without any observed cell is taken for zeros.

        Returns
        -------
        self
        """
        self._table = as_matrix(X)
        self._seen = ~np.isnan(self._table)
        largest = float(np.abs(self._table[self._seen]).max(initial=0.0))
        if not (SMALLEST <= largest <= LARGEST or largest == 0.0):
            raise InputError(
                f"The largest cell is {largest:g} in size; it must lie between {SMALLEST:g} and {LARGEST:g}, so that squares are "
                "numbers: rescale the table."
            )
        self._start()
        self.converged_ = True
        trace = []
        for _ in range(self.max_rounds):
            means, covariances, log_likelihood = self._latent()
            trace.append(log_likelihood)
            if len(trace) > 1 and trace[-1] - trace[-2] < self.tolerance * max(self._seen.sum(), 1):
                break
            self._improve(means, covariances)
        else:
            self.converged_ = False
            trace.append(self._latent()[2])
        self.log_likelihoods_ = np.array(trace)
        return self

    def filled(self) -> FloatArray:
        """Return the table with the expectation of each missing cell given the row's others."""
        if not hasattr(self, "weights_"):
            raise NotFittedError("This ProbabilisticPCA has no table yet: call fit first.")
        means, _, _ = self._latent()
        return np.where(self._seen, self._table, means @ self.weights_.T + self.mean_)

    def _start(self) -> None:
        """Begin with the principal components of the table whose holes have the means of their columns."""
        n, d = self._table.shape
        counts = np.maximum(self._seen.sum(axis=0), 1)
        self._offset = np.where(self._seen, self._table, 0.0).sum(axis=0) / counts
        # Cells are kept about their means, so that squares lose no digits.
        self._cells = centred = np.where(self._seen, self._table - self._offset, 0.0)
        self.mean_ = self._offset.copy()
        variance = float((centred**2).sum() / max(self._seen.sum(), 1))
        rounding = (ROUNDING * float(np.abs(self._offset).max())) ** 2
        self._floor = SMALLEST_NOISE * (variance if variance > rounding else 1.0)
        _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
        n_components = max(min(self.n_components, d - 1), 1)
        q = min(n_components, len(sizes))
        variances = sizes**2 / n
        self.noise_ = max(float(variances[q:].sum()) / max(d - q, 1), self._floor)
        self.weights_ = np.zeros((d, n_components))
        self.weights_[:, :q] = axes[:q].T * np.sqrt(np.maximum(variances[:q] - self.noise_, self.noise_))

    def _latent(self) -> tuple[FloatArray, FloatArray, float]:
        """Return mean and covariance of each row's components given its cells, and the log likelihood of all cells."""
        q, noise = self.weights_.shape[1], self.noise_
        seen = self._seen.astype(np.float64)
        products = np.einsum("dp,dq->dpq", self.weights_, self.weights_).reshape(-1, q * q)
        precisions = (seen @ products).reshape(-1, q, q) + noise * np.eye(q)
        gaps = seen * (self._cells - (self.mean_ - self._offset))
        projected = gaps @ self.weights_
        inverses = np.linalg.inv(precisions)
        means = np.einsum("npq,nq->np", inverses, projected)
        n_seen = seen.sum(axis=1)
        log_dets = np.linalg.slogdet(precisions)[1] + (n_seen - q) * math.log(noise)
        # Of the forms that this has, the one that hardly feels errors of the means.
        left = seen * (gaps - means @ self.weights_.T)
        squares = (left**2).sum(axis=1) / noise + (means**2).sum(axis=1)
        log_likelihood = -0.5 * float((n_seen * math.log(2 * math.pi) + log_dets + squares).sum())
        return means, noise * inverses, log_likelihood

    def _improve(self, means: FloatArray, covariances: FloatArray) -> None:
        """Regress every column on the components of the rows that have it, then set the noise to what is left."""
        n, q = means.shape
        seen = self._seen.astype(np.float64)
        # A component that is always 1 carries the column's mean.
        first = np.column_stack([means, np.ones(n)])
        second = np.einsum("np,nq->npq", first, first)
        second[:, :q, :q] += covariances
        moments = (seen.T @ second.reshape(n, -1)).reshape(-1, q + 1, q + 1)
        targets = self._cells.T @ first
        used = self._seen.any(axis=0)
        solution = np.zeros_like(targets)
        solution[used] = np.linalg.solve(moments[used], targets[used][:, :, None])[:, :, 0]
        self.weights_, self.mean_ = solution[:, :q], self._offset + solution[:, q]
        left = (self._cells**2).sum() - (solution * targets).sum()
        self.noise_ = max(float(left) / max(self._seen.sum(), 1), self._floor)
