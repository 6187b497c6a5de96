"""Brownian diffusion of real columns."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from ..streams import RandomState, as_generator
from ..tree.tree import Tree
from ._brownian_kernels import CompleteForest, DiagonalForest
from .interface import Process, check_width
from .likelihood import merge_log_likelihoods

FloatArray = NDArray[np.float64]

RELATIVE_DEVIATION = 1e-10  # of noise that is always there, as a share of the data's own: see `least_noise`
SMALLEST_VALUE, LARGEST_VALUE = 1e-60, 1e60  # products of a few squares stay what double precision can hold
SMALLEST_NOISE, LARGEST_NOISE = 1e-100, 1e100


class Brownian(Process):
    r"""Brownian motion along the branches, from a flat root.

    Over a time :math:`t` a lineage moves by :math:`N(0, t \Lambda)`. The root is flat and improper, so the likelihood is
    the restricted one of Felsenstein's contrasts.

    Parameters
    ----------
    variance : float, array-like of shape (D,) or (D, D), default 1.0
        :math:`\Lambda` per unit of time: the same for all columns, one a column, or a full covariance matrix.
    noise : float, default 0.0
        Each observation is its lineage's state plus noise of variance ``noise * variance``. Any noise makes
        the density of identical rows finite.

    Notes
    -----
    Missing cells are integrated out. With a full covariance matrix the table has to be complete.

    Examples
    --------
    >>> import coaltree as ct
    >>> tree = ct.Tree.from_newick("((a:1,b:1):1,c:2);")
    >>> round(ct.Brownian().log_likelihood(tree, [[0.0], [1.0], [5.0]]), 4)
    -5.9537
    """

    def __init__(self, variance: ArrayLike = 1.0, noise: float = 0.0) -> None:
        self.variance = _checked_variance(variance)
        try:
            self.noise = float(noise)
        except (TypeError, ValueError):
            self.noise = float("nan")
        if not (self.noise == 0 or SMALLEST_NOISE <= self.noise <= LARGEST_NOISE):
            raise InputError(
                f"noise is {noise!r}; it must be 0 or a number from {SMALLEST_NOISE:g} to {LARGEST_NOISE:g}, the variance of the "
                "noise in units of the diffusion."
            )

    def __repr__(self) -> str:
        shown = f"{float(self.variance):g}" if self.variance.ndim == 0 else f"<{self.variance.shape} array>"
        return f"Brownian(variance={shown}, noise={self.noise:g})"

    def resolve(self, X: FloatArray) -> Self:
        """Check that the table fits; nothing is left open."""
        if self.variance.ndim:
            check_width(X.shape[1], len(self.variance), "Brownian's variance")
        if self.variance.ndim == 2:
            missing = np.argwhere(np.isnan(X))
            if len(missing):
                row, column = missing[0]
                raise InputError(
                    f"{len(missing)} cell(s) are missing, the first in row {row}, column {column}; with a full covariance matrix "
                    "the table has to be complete: give one variance a column, or fill the cells in."
                )
        return self

    def forest(self, X: FloatArray, capacity: int, height: FloatArray) -> CompleteForest | DiagonalForest:
        """Return the leaves' Gaussian messages in units of the diffusion."""
        n, n_columns = X.shape
        white, log_scales = self._whitened(X)
        observed = ~np.isnan(white)
        counts = np.maximum(observed.sum(axis=0), 1)
        means = np.where(observed, white, 0.0).sum(axis=0) / counts
        centred = np.where(observed, white - means, 0.0)  # nothing depends on the origin, and differences are exact
        _check_size(centred)
        spread = (centred**2).sum(axis=0) / counts
        scale = float(spread[observed.any(axis=0)].mean()) if observed.any() else 0.0
        scale = scale if scale > 0 else 1.0
        y = np.zeros((n_columns, capacity))
        y[:, :n] = centred.T
        root_mean = np.zeros(n_columns)
        if observed.all():
            v = np.zeros(capacity)
            v[:n] = np.maximum(self.noise, least_noise(scale))
            return CompleteForest(height, y, v, float(log_scales.sum()), root_mean, scale)
        noise = np.maximum(self.noise, least_noise(np.where(spread > 0, spread, scale)))
        v = np.zeros((n_columns, capacity))
        v[:, :n] = np.where(observed.T, noise[:, None], np.inf)
        return DiagonalForest(height, y, v, v.min(axis=0), log_scales, root_mean, scale)

    def leaf_log_likelihoods(self, X: FloatArray) -> FloatArray:
        """Return zeros: a leaf's message is a density and needs no constant."""
        return np.zeros(len(X))

    def remarks(self, tree: Tree, X: FloatArray) -> list[str]:
        """Say how many merges join rows that do not differ, where no noise makes their density finite."""
        if self.noise > 0 or not np.any(tree.merge_heights == 0):
            return []
        log_z = merge_log_likelihoods(self, tree, X).log_z
        count = int(np.sum((tree.merge_heights == 0) & (log_z != 0)))  # log Z is 0 where no cell is shared
        if count == 0:
            return []
        return [
            f"{count} merge(s) join rows that are identical in every real cell that both have; their density is infinite "
            f"without noise and was limited, to a standard deviation of {RELATIVE_DEVIATION:g} of the data's. Give noise > 0, "
            "for example noise=0.01, or drop the duplicates."
        ]

    def simulate(
        self,
        tree: Tree,
        random_state: RandomState = None,
        *,
        n_columns: int | None = None,
        root: ArrayLike = 0.0,
    ) -> FloatArray:
        """Draw a table: row i is leaf i.

        Parameters
        ----------
        tree : Tree
        random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        n_columns : int, optional
            Number of columns where `variance` is one number; 1 by default.
        root : float or array-like of shape (D,), default 0.0
            State at the root, which the model itself leaves open.

        Returns
        -------
        ndarray of shape (n_leaves, D)
        """
        rng = as_generator(random_state)
        if self.variance.ndim:
            width = len(self.variance)
            if n_columns is not None:
                check_width(n_columns, width, "Brownian's variance")
        else:
            width = 1 if n_columns is None else n_columns
        lengths = tree.heights[tree.parents[:-1]] - tree.heights[:-1]
        steps = rng.standard_normal((tree.n_nodes - 1, width)) * np.sqrt(lengths)[:, None]
        states = np.zeros((tree.n_nodes, width))
        parents = tree.parents
        for node in range(tree.n_nodes - 2, -1, -1):
            states[node] = states[parents[node]] + steps[node]
        leaves = states[: tree.n_leaves]
        leaves += np.sqrt(self.noise) * rng.standard_normal(leaves.shape)
        full = self.variance.ndim == 2
        leaves = leaves @ np.linalg.cholesky(self.variance).T if full else leaves * np.sqrt(self.variance)
        return np.asarray(leaves + np.asarray(root, dtype=np.float64))

    def _whitened(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return X in units of the diffusion, and half the log variance of each column (its Jacobian)."""
        if self.variance.ndim == 2:
            factor = np.linalg.cholesky(self.variance)
            return np.linalg.solve(factor, X.T).T, np.log(np.diag(factor))
        deviations = np.sqrt(np.broadcast_to(self.variance, X.shape[1]))
        return X / deviations, np.log(deviations)


def least_noise(variance: ArrayLike) -> FloatArray:
    """Return the noise that keeps the density of identical rows finite, far below what any other row would feel.

    A tenth of a billionth of the data's deviation, and less where the data are so far apart that heights grow as their
    distance, not as its square.
    """
    variance = np.asarray(variance, dtype=np.float64)
    least: FloatArray = np.minimum(RELATIVE_DEVIATION**2 * variance, 1e-16 * np.sqrt(variance))
    return least


def _check_size(centred: FloatArray) -> None:
    """Raise for columns so wide or so narrow that squares would be lost."""
    largest = np.abs(centred).max(axis=0)
    wrong = (largest >= LARGEST_VALUE) | ((largest > 0) & (largest <= SMALLEST_VALUE))
    if np.any(wrong):
        column = int(np.argmax(wrong))
        raise InputError(
            f"The values of column {column} lie {largest[column]:g} standard deviations of the diffusion from their mean; it "
            f"must be between {SMALLEST_VALUE:g} and {LARGEST_VALUE:g}: rescale the column or its variance."
        )


def _checked_variance(variance: ArrayLike) -> FloatArray:
    try:
        array = np.array(variance, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"variance is {variance!r}; it must be one number, (D,) or (D, D).") from None
    if array.ndim > 2 or (array.ndim == 2 and array.shape[0] != array.shape[1]) or array.size == 0:
        raise InputError(f"variance has shape {array.shape}; it must be one number, (D,) or (D, D).")
    if not np.all(np.isfinite(array)):
        raise InputError("variance holds numbers that are not finite; variances must be finite and positive.")
    if array.ndim < 2:
        if np.any(array <= 0):
            raise InputError(f"variance holds {array.min():g}; variances must be positive.")
    else:
        if not np.allclose(array, array.T, rtol=1e-10, atol=0):
            raise InputError("variance is a matrix that is not symmetric; a covariance matrix must be.")
        try:
            np.linalg.cholesky(array)
        except np.linalg.LinAlgError:
            raise InputError(
                "variance is a matrix that is not positive definite; a covariance matrix must be."
            ) from None
    array.setflags(write=False)
    return array
