"""What the two Gaussian processes of real columns share: their units, and noise at the leaves."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from ..tree.tree import Tree
from .base import Blend, Process, check_width, checked_column_count
from .layout import GaussianMessages, Messages

FloatArray = NDArray[np.float64]

RELATIVE_DEVIATION = 1e-10  # of noise that is always there, as a share of the data's own: see `least_noise`
SMALLEST_VALUE, LARGEST_VALUE = 1e-60, 1e60  # products of a few squares stay what double precision can hold
SMALLEST_NOISE, LARGEST_NOISE = 1e-100, 1e100
ASYMMETRY = 1e-8  # of a covariance matrix, in units of the standard deviations: more is no matter of rounding


class Gaussian(Process):
    """Real columns with a variance each, or a covariance matrix, and noise in proportion to it."""

    def __init__(self, variance: ArrayLike, noise: ArrayLike) -> None:
        self.variance = _checked_variance(variance)
        self.noise = _checked_noise(noise)
        if self.noise.ndim == 1 and self.variance.ndim == 2:
            raise InputError(
                f"noise has {len(self.noise)} numbers, and variance is a matrix; with a covariance matrix it must be one number, "
                "or the covariance matrix of the noise."
            )
        if self.noise.ndim == 2 and self.variance.ndim != 2:
            raise InputError("noise is a covariance matrix, and variance is not; it must be a matrix too.")
        if self.noise.ndim and self.variance.ndim and len(self.noise) != len(self.variance):
            raise InputError(
                f"noise has {len(self.noise)} numbers, but variance describes {len(self.variance)} columns; "
                "they must be as many."
            )

    @property
    def n_columns(self) -> int | None:
        """How many columns the parameters are for; None where they fit any number."""
        return next((len(own) for own in (self.variance, self.noise) if own.ndim), None)

    @property
    def _which_width(self) -> str:
        """The parameter that says how many columns there are, for a message."""
        named = (name for name in ("variance", "mean", "noise") if np.ndim(getattr(self, name, 0.0)))
        return f"{type(self).__name__}'s {next(named)}"

    @property
    def uniform_noise(self) -> bool:
        """Whether all columns have the same noise."""
        return bool(np.all(self.white_noise == self.white_noise.flat[0]))

    @property
    def noisy(self) -> bool:
        """Whether any column has noise."""
        return bool(np.any(self.white_noise > 0))

    @property
    def white_noise(self) -> FloatArray:
        """The noise in units of the diffusion: one number, or one for each column of `whitened` rows."""
        return self._basis[1] if self.noise.ndim == 2 else self.noise

    @property
    def basis(self) -> FloatArray:
        """V, such that the columns of ``x @ V`` are independent with variance 1; for a covariance matrix."""
        return self._basis[0]

    @cached_property
    def _basis(self) -> tuple[FloatArray, FloatArray]:
        """Return V, such that the columns of ``x @ V`` are independent with variance 1, and their noises."""
        if self.noise.ndim == 2:
            from scipy.linalg import eigh  # takes its time to import

            # both matrices at once: V' variance V is the identity, and V' noise V is diagonal
            noises, basis = eigh(self.noise, self.variance)
            return basis, np.maximum(noises, SMALLEST_NOISE)
        factor = np.linalg.cholesky(self.variance)
        return np.linalg.inv(factor).T, np.broadcast_to(self.noise, len(factor))

    def resolve(self, X: FloatArray) -> Self:
        """Check that the table fits; nothing is left open."""
        if self.n_columns is not None:
            check_width(X.shape[1], self.n_columns, self._which_width)
        if self.variance.ndim == 2 and self.noise.ndim < 2:  # with its covariance, missing cells may be drawn first
            self._check_complete(X)
        return self

    def _check_complete(self, X: FloatArray) -> None:
        missing = np.argwhere(np.isnan(X))
        if len(missing):
            row, column = missing[0]
            raise InputError(
                f"{len(missing)} cell(s) are missing, the first in row {row}, column {column}; with a full covariance matrix "
                "the table has to be complete: give one variance a column, or fill the cells in."
            )

    def remarks(self, tree: Tree, X: FloatArray) -> list[str]:
        """Say how many merges join rows that do not differ, where no noise makes their density finite."""
        exact = np.flatnonzero(np.broadcast_to(self.white_noise, X.shape[1]) == 0)
        at_once = int(np.sum(tree.merge_heights == 0))  # those come first
        if len(exact) == 0 or at_once == 0:
            return []
        known = np.zeros((len(X) + at_once, len(exact)), dtype=np.bool_)  # below each node, some cell of the column
        known[: len(X)] = ~np.isnan(X[:, exact])
        count = 0
        for node, (left, right) in enumerate(tree.children[:at_once].tolist(), len(X)):
            count += bool(np.any(known[left] & known[right]))
            known[node] = known[left] | known[right]
        if count == 0:
            return []
        which = "real cell without noise" if self.noisy else "real cell"
        return [
            f"{count} merge(s) join rows that are identical in every {which} that both have; their density is infinite "
            f"without noise and was limited, to a standard deviation of {RELATIVE_DEVIATION:g} of the data's. Give noise > 0, "
            "for example noise=0.01, or drop the duplicates."
        ]

    def whitened(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return X in units of the variance, and half the log variance of each column (its Jacobian)."""
        if self.variance.ndim == 2:
            self._check_complete(X)
            basis = self.basis
            _, log_determinant = np.linalg.slogdet(basis)
            return X @ basis, np.full(len(basis), -log_determinant / len(basis))
        deviations = self.deviations(X.shape[1])
        return X / deviations, np.log(deviations)

    def deviations(self, n_columns: int) -> FloatArray:
        """Return the standard deviation of each column."""
        if self.variance.ndim == 2:
            return np.sqrt(np.diag(self.variance))
        return np.sqrt(np.broadcast_to(self.variance, n_columns))

    def noise_deviations(self, n_columns: int) -> FloatArray:
        """Return the standard deviation of each column's noise."""
        if self.noise.ndim == 2:
            return np.sqrt(np.diag(self.noise))
        return np.asarray(np.sqrt(self.noise) * self.deviations(n_columns))

    @abstractmethod
    def _root(self, mean: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the root's state given its message, in white units, a number for each column."""

    @abstractmethod
    def _child(
        self, mean: FloatArray, spread: FloatArray, above: FloatArray, length: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of a node's state given its message and its parent's state, ``(size, columns)``."""

    def coloured(self, white: FloatArray) -> FloatArray:
        """Return rows in units of the variance in those of the table, the inverse of `whitened`."""
        if self.variance.ndim == 2:
            return np.asarray(white @ np.linalg.inv(self._basis[0]))
        return np.asarray(white * self.deviations(white.shape[-1]))

    def unmixed(self, X: FloatArray) -> tuple[Process, FloatArray, float]:
        """Return this process in units of a full covariance matrix, so that its columns are independent."""
        if self.variance.ndim < 2:
            return self, X, 0.0
        self._check_complete(X)
        white, log_scales = self.whitened(X)
        return self._white(), white, -float(log_scales.sum())

    def blends(self) -> list[Blend]:
        """Return all columns together if they have a full covariance matrix."""
        if self.variance.ndim < 2:
            return []
        basis = self._basis[0]
        return [Blend(np.arange(len(basis)), basis, self.whitened(np.zeros((1, len(basis))))[0][0])]

    @abstractmethod
    def _white(self) -> Process:
        """Return this process in its own units."""

    def draw(self, messages: Messages, tree: Tree, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw the state at the root and then at each node given its parent's; see `Process.draw`."""
        own = messages[0]
        assert isinstance(own, GaussianMessages)
        means, variances = self._root(own.mean[tree.n_nodes - 1], own.spread[tree.n_nodes - 1])
        width = len(means)
        states = np.empty((tree.n_nodes, size, width))
        steps = rng.standard_normal((tree.n_nodes, size, width))
        states[-1] = means + np.sqrt(variances) * steps[-1]
        for node in range(tree.n_nodes - 2, -1, -1):
            above, length = states[tree.parents[node]], float(tree.branch_lengths[node])
            means, variances = self._child(own.mean[node], own.spread[node], above, length)
            states[node] = means + np.sqrt(variances) * steps[node]
        leaves = np.moveaxis(states[: tree.n_leaves], 0, 1)
        return self.coloured(leaves + np.sqrt(self.white_noise) * rng.standard_normal(leaves.shape) + own.center)

    def width(self, n_columns: int | None) -> int:
        """Return how many columns to simulate, where `n_columns` were asked for."""
        n_columns = checked_column_count(n_columns)
        if self.n_columns is None:
            return 1 if n_columns is None else n_columns
        if n_columns is not None:
            check_width(n_columns, self.n_columns, self._which_width)
        return self.n_columns


def least_noise(variance: ArrayLike) -> FloatArray:
    """Return the noise that keeps the density of identical rows finite, far below what any other row would feel.

    A tenth of a billionth of the data's deviation, and less where the data are so far apart that heights grow as their
    distance, not as its square.
    """
    variance = np.asarray(variance, dtype=np.float64)
    least: FloatArray = np.minimum(RELATIVE_DEVIATION**2 * variance, 1e-16 * np.sqrt(variance))
    return least


def check_size(centred: FloatArray) -> None:
    """Raise for columns so wide or so narrow that squares would be lost."""
    largest = np.abs(centred).max(axis=0)
    wrong = (largest >= LARGEST_VALUE) | ((largest > 0) & (largest <= SMALLEST_VALUE))
    if np.any(wrong):
        column = int(np.argmax(wrong))
        raise InputError(
            f"The values of column {column} lie {largest[column]:g} standard deviations of the diffusion from their mean; it "
            f"must be between {SMALLEST_VALUE:g} and {LARGEST_VALUE:g}: rescale the column or its variance."
        )


def _checked_noise(noise: ArrayLike) -> FloatArray:
    try:
        text = np.asarray(noise).dtype.kind in "SUb"  # which numpy would read as numbers where it can
        checked = np.array(np.nan if text else noise, dtype=np.float64)
    except (TypeError, ValueError):
        checked = np.array(np.nan)
    if checked.ndim == 2 and checked.size:
        checked = _checked_covariance(checked, "noise")
        checked.setflags(write=False)
        return checked
    allowed = (checked == 0) | ((checked >= SMALLEST_NOISE) & (checked <= LARGEST_NOISE))
    if checked.ndim > 1 or checked.size == 0 or not np.all(allowed):
        raise InputError(
            f"noise is {noise!r}; it must be 0 or a number from {SMALLEST_NOISE:g} to {LARGEST_NOISE:g}, the variance of the "
            "noise in units of the diffusion: one for all columns, or one a column. With a covariance matrix of the diffusion it "
            "may be a covariance matrix too, in the columns' own units."
        )
    checked.setflags(write=False)
    return checked


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
        array = _checked_covariance(array, "variance")
    array.setflags(write=False)
    return array


def _checked_covariance(array: FloatArray, name: str) -> FloatArray:
    """Return a covariance matrix, exactly symmetric: what rounding did to one that was computed is undone."""
    if array.shape[0] != array.shape[1] or not np.all(np.isfinite(array)):
        raise InputError(f"{name} has shape {array.shape}; a covariance matrix must be square and finite.")
    deviations = np.sqrt(np.abs(np.diag(array)))
    if np.any(np.abs(array - array.T) > ASYMMETRY * np.outer(deviations, deviations)):
        raise InputError(f"{name} is a matrix that is not symmetric; a covariance matrix must be.")
    array = 0.5 * (array + array.T)
    try:
        np.linalg.cholesky(array)
    except np.linalg.LinAlgError:
        raise InputError(f"{name} is a matrix that is not positive definite; a covariance matrix must be.") from None
    return array


def in_single_precision(points: FloatArray, variance: float) -> NDArray[np.float32]:
    """Return points whose squared distances are those of a Gaussian exponent; of any size, they stay numbers."""
    largest = float(np.nanmax(np.abs(points), initial=0.0))
    scale = math.sqrt(2 * variance) if variance > 0 else 0.0
    return (points / max(scale, 1e-12 * largest, 1e-300)).astype(np.float32)
