"""`Gaussian`: the base class of Brownian motion and of the stationary diffusion, and the sampler of their parameters."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_column_count, check_width
from ..errors import InputError
from ..table.cells import Category
from ..table.scaling import ColumnScale
from ..tree.tree import Tree
from .base import ParameterSampler, Process, WeightedTrees, indexed_names
from .gaussian_columns import (
    MAX_ROUNDING,
    MEAN_SPREAD,
    MIN_NOISE,
    NOISE_RANGE,
    RELATIVE_DEVIATION,
    Contrasts,
    Equilibrium,
    GaussianPrior,
    check_noise,
    check_variance,
    column_deviations,
    column_log_density,
)
from .layout import GaussianMessages, Messages
from .predictions import Whitening
from .slice_sampling import positive_slice_step

FloatArray = NDArray[np.float64]

MAX_EXACT_ROWS_IN_BLOCKS = 30_000  # for complete rows with one noise, whose distances are computed many at a time


class Gaussian(Process):
    """Real columns that diffuse with one variance each, or with a covariance matrix, and have noise at the leaves.

    Subclasses take the arguments `variance` and `noise`, and perhaps more.
    """

    rate: float = 0.0  # at which the past is forgotten
    mean: FloatArray = np.zeros(())  # towards which columns are pulled

    def __init__(self, variance: ArrayLike, noise: ArrayLike) -> None:
        self.variance = check_variance(variance)
        self.noise = check_noise(noise)
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
                "the numbers must match."
            )

    @property
    def n_columns(self) -> int | None:
        """Number of columns that the parameters describe; None if they fit any number."""
        return next((len(parameter) for parameter in (self.variance, self.noise) if parameter.ndim), None)

    @property
    def _width_source(self) -> str:
        """The parameter that determines the number of columns, for a message."""
        named = (name for name in ("variance", "mean", "noise") if np.ndim(getattr(self, name)))
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
        """The noise in units of the diffusion: one number, or one for each column of rows that `whiten` returns."""
        return self._basis[1] if self.noise.ndim == 2 else self.noise

    @property
    def basis(self) -> FloatArray:
        """V, such that the columns of ``x @ V`` are independent with variance 1, for a covariance matrix."""
        return self._basis[0]

    @cached_property
    def _basis(self) -> tuple[FloatArray, FloatArray]:
        """Return V, such that the columns of ``x @ V`` are independent with variance 1, and their noises."""
        if self.noise.ndim == 2:
            from scipy.linalg import eigh  # slow to import

            # both matrices at once: V' variance V is the identity, and V' noise V is diagonal
            noises, basis = eigh(self.noise, self.variance)
            return basis, np.maximum(noises, MIN_NOISE)
        factor = np.linalg.cholesky(self.variance)
        return np.linalg.inv(factor).T, np.broadcast_to(self.noise, len(factor))

    def resolve(self, X: FloatArray) -> Self:
        """Check that the table fits; there are no open parameters."""
        if self.n_columns is not None:
            check_width(X.shape[1], self.n_columns, self._width_source)
        if self.variance.ndim == 2 and self.noise.ndim < 2:  # with a matrix of noise, missing cells may be drawn first
            self._check_complete(X)
        return self

    def _check_complete(self, X: FloatArray) -> None:
        missing = np.argwhere(np.isnan(X))
        if len(missing):
            row, column = missing[0]
            raise InputError(
                f"{len(missing)} cell(s) are missing, the first in row {row}, column {column}; with a full covariance matrix "
                "the table must be complete. Use one variance per column, or fill the cells first."
            )

    def remarks(self, tree: Tree, X: FloatArray) -> list[str]:
        """Warn of merges that join identical rows, if no noise makes their density finite."""
        exact = np.flatnonzero(np.broadcast_to(self.white_noise, X.shape[1]) == 0)
        at_once = int(np.sum(tree.merge_heights == 0))  # those come first
        if len(exact) == 0 or at_once == 0:
            return []
        # Whether some cell of the column is observed below each node
        is_observed = np.zeros((len(X) + at_once, len(exact)), dtype=np.bool_)
        is_observed[: len(X)] = ~np.isnan(X[:, exact])
        count = 0
        for node, (left, right) in enumerate(tree.children[:at_once].tolist(), len(X)):
            count += bool(np.any(is_observed[left] & is_observed[right]))
            is_observed[node] = is_observed[left] | is_observed[right]
        if count == 0:
            return []
        cell_noun = "real cell without noise" if self.noisy else "real cell"
        return [
            f"{count} merge(s) join rows that are identical in every {cell_noun} that both have; their density is infinite "
            f"without noise and was limited, to a standard deviation of {RELATIVE_DEVIATION:g} of the data's. Use noise > 0, "
            "for example noise=0.01, or drop the duplicates."
        ]

    def whiten(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
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
        return column_deviations(self.variance, n_columns)

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

    def unwhiten(self, white: FloatArray) -> FloatArray:
        """Return rows in the units of the table: the inverse of `whiten`."""
        if self.variance.ndim == 2:
            return np.asarray(white @ np.linalg.inv(self._basis[0]))
        return np.asarray(white * self.deviations(white.shape[-1]))

    def decorrelate(self, X: FloatArray) -> tuple[Process, FloatArray, float]:
        """Return the process in units of a full covariance matrix, which makes its columns independent."""
        if self.variance.ndim < 2:
            return self, X, 0.0
        self._check_complete(X)
        white, log_scales = self.whiten(X)
        return self._unit_process(), white, -float(log_scales.sum())

    def whitenings(self) -> list[Whitening]:
        """Return one map of all columns if they have a full covariance matrix."""
        if self.variance.ndim < 2:
            return []
        basis = self._basis[0]
        return [Whitening(np.arange(len(basis)), basis, self.whiten(np.zeros((1, len(basis))))[0][0])]

    @abstractmethod
    def _unit_process(self) -> Process:
        """Return this process with variance 1 in every column."""

    def draw(self, messages: Messages, tree: Tree, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw the state at the root and then at each node given its parent's; see `Process.draw`."""
        message = messages[0]
        assert isinstance(message, GaussianMessages)
        means, variances = self._root(message.mean[tree.n_nodes - 1], message.spread[tree.n_nodes - 1])
        width = len(means)
        states = np.empty((tree.n_nodes, size, width))
        steps = rng.standard_normal((tree.n_nodes, size, width))
        states[-1] = means + np.sqrt(variances) * steps[-1]
        for node in range(tree.n_nodes - 2, -1, -1):
            above, length = states[tree.parents[node]], float(tree.branch_lengths[node])
            means, variances = self._child(message.mean[node], message.spread[node], above, length)
            states[node] = means + np.sqrt(variances) * steps[node]
        leaves = np.moveaxis(states[: tree.n_leaves], 0, 1)
        return self.unwhiten(leaves + np.sqrt(self.white_noise) * rng.standard_normal(leaves.shape) + message.center)

    def width(self, n_columns: int | None) -> int:
        """Return the number of columns to simulate; `n_columns` is the user's choice."""
        n_columns = check_column_count(n_columns)
        if self.n_columns is None:
            return 1 if n_columns is None else n_columns
        if n_columns is not None:
            check_width(n_columns, self.n_columns, self._width_source)
        return self.n_columns

    def check_columns(self, n_states: Sequence[int]) -> None:
        """Raise unless all columns are real and as many as the parameters describe."""
        if any(n_states):
            raise InputError(f"{type(self).__name__} is over other columns than the table has: it takes real ones")
        if self.n_columns not in (None, len(n_states)):
            raise InputError(
                f"{type(self).__name__} has parameters for another number of columns: {self.n_columns}, not {len(n_states)}"
            )

    def max_exact_rows(self, X: FloatArray) -> int:
        """Return more rows if these are complete and have one noise: distances are then computed many at a time."""
        in_blocks = self.uniform_noise and not np.isnan(X).any()
        return self._max_rows_in_blocks(X) if in_blocks else super().max_exact_rows(X)

    def _max_rows_in_blocks(self, X: FloatArray) -> int:
        return MAX_EXACT_ROWS_IN_BLOCKS

    def jitter_rounded(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return a copy of X with random digits in columns whose values repeat; see `Process.jitter_rounded`."""
        X = X.copy()
        for d in range(X.shape[1]):
            cells = X[~np.isnan(X[:, d]), d]
            values = np.unique(cells)
            if 1 < len(values) < len(cells):
                step = min(float(np.diff(values).min()), float(np.sqrt(12 * MAX_ROUNDING * cells.var())))
                X[:, d] += step * (rng.random(len(X)) - 0.5)
        return X

    def with_more_noise(self, ratio: float) -> Self:
        """Return the process with more noise that is independent between columns; see `Process.with_more_noise`."""
        if self.variance.ndim < 2:
            return self.replace(noise=self.noise + ratio * (1 + self.noise))
        noise = self.noise if self.noise.ndim else self.noise * self.variance
        return self.replace(noise=noise + ratio * np.diag(np.diag(self.variance + noise)))

    def parameter_names(self, columns: Sequence[int]) -> list[str]:
        """Return names of the constructor's arguments, with the columns of those that differ between columns."""
        return [
            name
            for parameter, value in self._arguments().items()
            for name in indexed_names(parameter, np.ndim(value), columns)
        ]

    def parameter_values(self) -> FloatArray:
        """Return all arguments of the constructor."""
        return np.concatenate([np.ravel(value) for value in self._arguments().values()])

    def with_parameter_values(self, values: FloatArray) -> Self:
        """Return the process with other values; see `parameter_names`."""
        arguments, used = {}, 0
        for name, old in self._arguments().items():
            arguments[name] = values[used : used + np.size(old)].reshape(np.shape(old))
            used += np.size(old)
        return type(self)(**arguments)

    def log_parameter_prior(self, X: FloatArray, hold_noise: bool = False) -> float:
        """Return the log density of the parameters under their weak priors."""
        return self._log_prior(GaussianPrior.from_table(X, hold_noise))

    def _log_prior(self, prior: GaussianPrior) -> float:
        return prior.log_density(self.variance, self.noise)

    def _check_fit(self) -> None:
        """Raise for parameters that are sampled but not fitted."""
        if self.noise.ndim == 2:
            raise InputError(
                "noise is a covariance matrix, which calibrate does not fit; mcmc with draw_parameters=True samples it for "
                "OrnsteinUhlenbeck."
            )

    def describe_columns(self, columns: Sequence[ColumnScale | Sequence[Category]]) -> list[dict[str, Any]]:
        """Return standard deviations in the units of the columns.

        ``sd`` is that of the equilibrium, or for Brownian motion that of a step over one unit of time. If a column was
        transformed by a power, standard deviations are scaled by the slope of the transform at the column's centre.
        """
        deviations, noises = self.deviations(len(columns)), self.noise_deviations(len(columns))
        described: list[dict[str, Any]] = []
        for d, scale in enumerate(columns):
            assert isinstance(scale, ColumnScale), "the columns of a Gaussian process are real"
            facts = {
                "process": self.kind,
                "sd": scale.decode_deviation(float(deviations[d])),
                "noise_sd": scale.decode_deviation(float(noises[d])),
                **self._describe_equilibrium(d, scale),
            }
            if scale.power is not None:
                facts["power"] = scale.power.exponent
            described.append(facts)
        return described

    def _describe_equilibrium(self, column: int, scale: ColumnScale) -> dict[str, float]:
        """Return parameters of a column that a process without an equilibrium does not have."""
        return {}


AnyGaussian = TypeVar("AnyGaussian", bound=Gaussian)


def skip_singular(
    process: AnyGaussian,
) -> Callable[[Callable[..., tuple[float, AnyGaussian]]], Callable[..., tuple[float, AnyGaussian]]]:
    """Let a search continue where identical rows without noise make a covariance matrix singular."""

    def decorate(best_at: Callable[..., tuple[float, AnyGaussian]]) -> Callable[..., tuple[float, AnyGaussian]]:
        def guarded(*arguments: Any) -> tuple[float, AnyGaussian]:
            try:
                return best_at(*arguments)
            except (InputError, np.linalg.LinAlgError):
                return -np.inf, process

        return guarded

    return decorate


class GaussianSampler(ParameterSampler[AnyGaussian]):
    """What the samplers of both diffusions have in common: the priors, and noise that is drawn by slices."""

    def __init__(self, process: AnyGaussian, X: FloatArray, hold_noise: bool) -> None:
        super().__init__(X)
        if process.noise.ndim == 2:
            raise InputError(
                "noise is a covariance matrix, which is sampled for OrnsteinUhlenbeck only; give Brownian one number."
            )
        self._moves_noise = bool(np.all(process.noise > 0)) and not hold_noise
        prior = GaussianPrior.from_table(X, not self._moves_noise)
        self._prior = prior._replace(mean_spread=MEAN_SPREAD)

    def log_prior(self, process: AnyGaussian) -> float:
        """Return the log density of the parameters."""
        return process._log_prior(self._prior)

    def _possible_noise(self, process: AnyGaussian) -> FloatArray:
        """Return the noise, or slightly more than that of rounding if it is less."""
        rounding, variances = self._prior.rounding, process.deviations(len(self._prior.rounding)) ** 2
        if process.noise.ndim:
            return np.maximum(process.noise, 1.01 * rounding / variances)
        least = (
            float(np.max(rounding / variances)) if process.variance.ndim else float(rounding.mean() / variances.mean())
        )
        return np.maximum(process.noise, 1.01 * least)

    def _contrasts(self, tree: Tree, heights: FloatArray, noise: FloatArray | float) -> Contrasts:
        return Contrasts.from_trees(self._weighted_trees(tree), self._prior, [heights], noise)

    def _weighted_trees(self, tree: Tree) -> WeightedTrees:
        return WeightedTrees([tree], np.ones(1), self.table)

    def _draw_column_noises(
        self,
        process: AnyGaussian,
        tree: Tree,
        heights: FloatArray,
        equilibrium: Equilibrium | None,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Draw the noise of each column in turn; given all other parameters, columns are independent."""
        noises = []
        for d, noise in enumerate(process.noise):
            density = column_log_density(
                d, process.variance, self._weighted_trees(tree), self._prior, [heights], equilibrium
            )
            noises.append(positive_slice_step(density, float(noise), NOISE_RANGE, rng))
        return np.array(noises)
