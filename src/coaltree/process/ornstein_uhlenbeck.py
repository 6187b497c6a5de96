"""Stationary diffusion of real columns: the process, its fit to trees and its sampler."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._random import RandomState, as_generator
from .._validation import check_width, quote, to_floats
from ..errors import InputError
from ..table.scaling import ColumnScale
from ..tree.tree import Tree, check_tree
from .base import PRIOR_SCALE, PRIOR_SHAPE, RATE_RANGE, ParameterSampler, WeightedTrees
from .covariance_sampling import CovarianceSampler
from .declarations import Columns, GaussianColumns
from .gaussian import Gaussian, GaussianSampler, skip_singular
from .gaussian_columns import (
    MAX_VALUE,
    NOISE_RANGE,
    Contrasts,
    Equilibrium,
    GaussianPrior,
    best_column_noises,
    check_size,
    least_noise,
    maximize_positive,
    scale_coordinates,
)
from .layout import GaussianMessages, Messages
from .predictions import Predictions
from .slice_sampling import positive_slice_step

FloatArray = NDArray[np.float64]

MIN_RATE, MAX_RATE = 1e-30, 1e30
N_SWEEPS = 2  # over the noises of all columns, from where they are and from one noise for all of them


class OrnsteinUhlenbeck(Gaussian):
    r"""Diffusion with a pull towards the mean, at equilibrium: the stationary twin of `Brownian`.

    Every lineage is :math:`N(\mu, \Sigma)` at all times, also at the root, and two rows whose lineages meet at height :math:`h`
    have correlation :math:`e^{-2 \kappa h}` in every column, eq. (4.1). The likelihood of a merge, eq. (4.4), is therefore a
    true ratio, of one tree to two independent ones.

    Parameters
    ----------
    rate : float, default 1.0
        :math:`\kappa`, at which the past is forgotten, in all columns.
    mean : float or array-like of shape (D,), default 0.0
        :math:`\mu`.
    variance : float, array-like of shape (D,) or (D, D), default 1.0
        :math:`\Sigma`: the same for all columns, one per column, or a full covariance matrix.
    noise : float or array-like of shape (D,) or (D, D), default 0.0
        Each observation is its lineage's state plus noise of variance ``noise * variance``: one number for all columns, or
        one per column. Any noise makes the density of identical rows finite. Where `variance` is a matrix, a matrix is the
        covariance of the noise itself, in the columns' own units.

    Notes
    -----
    Missing cells are integrated out. With a full covariance matrix the table of a tree must be complete; new rows need not
    be. Where `noise` is a matrix too, `coaltree.mcmc` with ``draw_parameters=True`` takes tables with missing cells: it draws
    them, and both matrices, together with the trees, eq. (13.9) and (13.10).

    Examples
    --------
    >>> import coaltree as ct
    >>> tree = ct.Tree.from_newick("((a:1,b:1):1,c:2);")
    >>> round(ct.OrnsteinUhlenbeck(rate=0.5).log_likelihood(tree, [[0.0], [1.0], [2.0]]), 4)
    -5.1055
    """

    kind = "ornstein-uhlenbeck"

    def __init__(
        self, rate: float = 1.0, mean: ArrayLike = 0.0, variance: ArrayLike = 1.0, noise: ArrayLike = 0.0
    ) -> None:
        super().__init__(variance, noise)
        number = to_floats(rate)
        self.rate = math.nan if number is None or number.ndim else float(number)
        if not MIN_RATE <= self.rate <= MAX_RATE:
            raise InputError(
                f"rate is {quote(rate)}; it must be a number from {MIN_RATE:g} to {MAX_RATE:g}, the speed of forgetting."
            )
        means = to_floats(mean)
        if means is None:
            raise InputError(f"mean is {quote(mean)}; it must be one number or one per column.")
        self.mean = means
        if self.mean.ndim > 1 or self.mean.size == 0 or not np.all(np.isfinite(self.mean)):
            raise InputError("mean must be one finite number, or one per column.")
        for name, value in (("variance", self.variance), ("noise", self.noise)):
            if self.mean.ndim and value.ndim and len(self.mean) != len(value):
                raise InputError(
                    f"mean has {len(self.mean)} numbers, but {name} describes {len(value)} columns; the numbers must match."
                )
        self.mean.setflags(write=False)

    @property
    def n_columns(self) -> int | None:
        """Number of columns that the parameters describe; None if they fit any number."""
        return len(self.mean) if self.mean.ndim else super().n_columns

    def whiten(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return X in units of the equilibrium, and half the log variance of each column (its Jacobian)."""
        return super().whiten(X - self.mean)

    def unwhiten(self, white: FloatArray) -> FloatArray:
        """Return rows in the units of the table: the inverse of `whiten`."""
        return super().unwhiten(white) + self.mean

    def _noises(self, white: FloatArray) -> FloatArray:
        """Return the noise of each column, at least `least_noise`."""
        observed = ~np.isnan(white)
        centred = np.where(observed, white - _means(white, observed), 0.0)
        spread = (centred**2).sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
        # of the equilibrium's scale at the most: rows may lie far out, and still be as far from each other as they are
        return np.maximum(self.white_noise, least_noise(np.where(spread > 0, np.minimum(spread, 1.0), 1.0)))

    def columns(self, X: FloatArray) -> list[Columns]:
        """Declare the leaves' messages in units of the equilibrium."""
        white, _ = self.whiten(X)
        observed = ~np.isnan(white)
        white = np.where(observed, white, 0.0)
        _check_distance(white)
        check_size(np.where(observed, white - _means(white, observed), 0.0))
        noise = self._noises(np.where(observed, white, np.nan))
        shared = bool(observed.all()) and self.uniform_noise
        if shared:
            noise = np.full(X.shape[1], noise.max())
        f = 1 / np.sqrt(1 + noise)
        lost = noise * f / (1 + 1 / f)  # 1 - f without cancellation
        spread = np.full((len(X), 1), lost[0]) if shared else np.where(observed, lost, 1.0)
        return [GaussianColumns(white / np.sqrt(1 + noise), spread, shared, self.noisy, self.rate)]

    def leaf_log_likelihoods(self, X: FloatArray) -> FloatArray:
        """Return the log density of each row at equilibrium, noise included."""
        white, log_scales = self.whiten(X)
        variance = 1 + self.white_noise
        terms = -0.5 * (np.log(2 * math.pi * variance) + white**2 / variance) - log_scales
        return np.asarray(np.where(np.isnan(white), 0.0, terms).sum(axis=1))

    def simulate(self, tree: Tree, random_state: RandomState = None, *, n_columns: int | None = None) -> FloatArray:
        """Draw a table: row i is leaf i.

        Parameters
        ----------
        tree : Tree
        random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        n_columns : int, optional
            Number of columns where no parameter says it; 1 by default.

        Returns
        -------
        ndarray of shape (n_leaves, D)
        """
        tree = check_tree(tree)
        rng = as_generator(random_state)
        width = self.width(n_columns)
        decay = np.exp(-self.rate * tree.branch_lengths)
        fresh = np.sqrt(-np.expm1(-2 * self.rate * tree.branch_lengths))
        states = rng.standard_normal((tree.n_nodes, width))
        parents = tree.parents
        for node in range(tree.n_nodes - 2, -1, -1):
            states[node] = decay[node] * states[parents[node]] + fresh[node] * states[node]
        leaves = states[: tree.n_leaves]
        return self.unwhiten(leaves + np.sqrt(self.white_noise) * rng.standard_normal(leaves.shape))

    def coordinates(self, messages: Messages, height: float) -> NDArray[np.float32]:
        """Return the messages, in units of the difference that a path makes; NaN where there is none."""
        a, lost = messages[0][:2]
        known = lost < 1
        span = 2 * (np.median(lost[known]) if np.any(known) else 0.0) + 4 * self.rate * height
        return scale_coordinates(np.where(known, a, np.nan).T, span)

    @property
    def min_attachment_height(self) -> float:
        """The height at which the past is forgotten as far as by the noise, in the column with the least noise."""
        return math.log1p(float(self.white_noise.min())) / (2 * self.rate)

    def _unit_process(self) -> OrnsteinUhlenbeck:
        return OrnsteinUhlenbeck(self.rate, 0.0, 1.0, self.white_noise)

    def _root(self, mean: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
        return (1 - spread) * mean, spread * (2 - spread)

    def _child(
        self, mean: FloatArray, spread: FloatArray, above: FloatArray, length: float
    ) -> tuple[FloatArray, FloatArray]:
        # the parent says N(survival z, fresh), the message that a is N(f z, 1 - f^2)
        survival, fresh = math.exp(-self.rate * length), -math.expm1(-2 * self.rate * length)
        f, free = 1 - spread, spread * (2 - spread)
        gain = fresh * f / (fresh * f**2 + free)
        return survival * above + gain * (mean - f * survival * above), fresh * free / (fresh * f**2 + free)

    def states(self, messages: Messages, distance: FloatArray, observed: bool) -> Predictions:
        """Return the distributions of states, with the equilibrium as prior."""
        message = messages[0]
        assert isinstance(message, GaussianMessages)
        lost = message.spread
        f = (1 - lost) * np.exp(-self.rate * distance)[:, None]
        gap = lost - (1 - lost) * np.expm1(-self.rate * distance)[:, None]
        variance = gap * (1 + f) + (self.noise if observed else 0.0)
        mean = self.unwhiten(f * message.mean)
        return Predictions.from_real(mean, np.sqrt(variance) * self.deviations(mean.shape[1]))

    def resolve(self, X: FloatArray) -> Self:
        """Check that the table fits; there are no open parameters."""
        if self.n_columns is not None:
            check_width(X.shape[1], self.n_columns, "OrnsteinUhlenbeck's parameters")
        return super().resolve(X)

    def rescale_clock(self, factor: float) -> OrnsteinUhlenbeck:
        """Return the process with a slower rate."""
        return OrnsteinUhlenbeck(self.rate / factor, self.mean, self.variance, self.noise)

    def fit(self, trees: WeightedTrees, hold_noise: bool) -> OrnsteinUhlenbeck:
        """Return the most probable rate, noise, mean and variance; see `Process.fit`."""
        self._check_fit()
        return _fit(self, trees, hold_noise)

    def _log_prior(self, prior: GaussianPrior) -> float:
        total = super()._log_prior(prior)
        total += (PRIOR_SHAPE - 1) * math.log(self.rate) - self.rate / PRIOR_SCALE
        total -= 0.5 * float(np.sum((self.mean - prior.middle) ** 2 / (prior.mean_spread * prior.spread)))
        return total

    def sampler(self, X: FloatArray, hold_noise: bool) -> ParameterSampler[Any]:
        """Return a sampler of all parameters; with two covariance matrices it also draws the missing cells."""
        if self.variance.ndim == 2 and self.noise.ndim == 2:
            return CovarianceSampler(X, hold_noise)
        return OrnsteinUhlenbeckSampler(self, X, hold_noise)

    def _describe_equilibrium(self, column: int, scale: ColumnScale) -> dict[str, float]:
        mean = self.mean[column] if self.mean.ndim else self.mean
        return {"mean": float(scale.decode(np.array(float(mean)))), "rate": float(self.rate)}


def _fit(process: OrnsteinUhlenbeck, trees: WeightedTrees, hold_noise: bool) -> OrnsteinUhlenbeck:
    prior = GaussianPrior.from_table(trees.X, hold_noise)

    def contrasts_at(rate: float, noise: FloatArray | float) -> Contrasts:
        # Brownian motion in the height 1 - exp(-2 rate h), and N(mean, variance exp(-2 rate h)) at the root
        return Contrasts.from_trees(trees, prior, _brownian_heights(trees, rate), noise).to_equilibrium(
            _root_shares(trees, rate)
        )

    @skip_singular(process)
    def best_at(rate: float, noise: FloatArray | float) -> tuple[float, OrnsteinUhlenbeck]:
        sums = contrasts_at(rate, noise)
        mean, variance = _best_mean_and_variance(process.variance.ndim, sums, prior, noise)
        best = OrnsteinUhlenbeck(rate, mean, variance, noise)
        return sums.with_roots(mean).log_density(variance) + best._log_prior(prior), best

    def best_at_noise_of(start: OrnsteinUhlenbeck) -> tuple[float, OrnsteinUhlenbeck]:
        rate = maximize_positive(lambda rate: best_at(rate, start.noise)[0], start.rate, RATE_RANGE)
        return best_at(rate, start.noise)

    log_density = contrasts_at(process.rate, process.noise).with_roots(process.mean).log_density(process.variance)
    candidates = [(log_density + process._log_prior(prior), process), best_at(process.rate, process.noise)]
    if hold_noise:
        candidates.append(best_at_noise_of(process))
    elif process.noise.ndim:
        pooled = OrnsteinUhlenbeck(process.rate, process.mean, process.variance, process.noise.mean())
        for start in (candidates[-1][1], _fit(pooled, trees, hold_noise)):
            current = start
            for _ in range(N_SWEEPS):
                heights = _brownian_heights(trees, current.rate)
                mean = np.broadcast_to(current.mean, len(prior.spread))
                equilibrium = Equilibrium(mean, _root_shares(trees, current.rate))
                noises = best_column_noises(current.variance, current.noise, trees, prior, heights, equilibrium)
                candidates.append(best_at(current.rate, noises))
                candidates.append(best_at_noise_of(candidates[-1][1]))
                current = candidates[-1][1]
    else:
        candidates.append(best_at(*_best_rate_and_noise(lambda rate, noise: best_at(rate, noise)[0], process)))
    return max(candidates, key=lambda candidate: candidate[0])[1]


def _brownian_heights(trees: WeightedTrees, rate: float) -> list[FloatArray]:
    """Return the trees' heights in which stationary diffusion is Brownian motion."""
    return [-np.expm1(-2 * rate * tree.heights) for tree in trees.trees]


def _root_shares(trees: WeightedTrees, rate: float) -> FloatArray:
    """Return the share of the equilibrium's variance above the root of each tree, as a column."""
    return np.array([[math.exp(-2 * rate * tree.heights[-1])] for tree in trees.trees])


def _best_mean_and_variance(
    shape: int, sums: Contrasts, prior: GaussianPrior, noise: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """Maximise over mean and variance in turn, which are nearly independent."""
    precision = np.sum(sums.weights[:, None] / sums.root_variances, axis=0)
    pull = np.sum(sums.weights[:, None] * sums.root_means / sums.root_variances, axis=0)
    mean = prior.middle
    for _ in range(5):
        all_sums = sums.with_roots(mean)
        variance = prior.best_variance(shape, all_sums.squares(shape), all_sums.counts, noise)
        if shape == 2:
            inverse = np.linalg.inv(variance)
            weight = precision[0] * inverse + np.diag(1 / prior.spread)
            mean = np.linalg.solve(weight, inverse @ pull + prior.middle / prior.spread)
        else:
            mean = (pull / variance + prior.middle / prior.spread) / (precision / variance + 1 / prior.spread)
    return mean, variance


def _best_rate_and_noise(function: Callable[[float, float], float], process: OrnsteinUhlenbeck) -> tuple[float, float]:
    """Return the rate and the noise where a function of both is largest, starting from those of a process."""
    from scipy.optimize import minimize  # slow to import, and only fits need it

    noise = float(process.noise) if process.noisy else 0.1
    start = np.log([np.clip(process.rate, *RATE_RANGE), np.clip(noise, *NOISE_RANGE)])
    optimum = minimize(  # type: ignore[call-overload, unused-ignore]
        lambda logs: -function(*np.exp(logs)),
        start,
        method="Nelder-Mead",
        bounds=[(math.log(low), math.log(high)) for low, high in (RATE_RANGE, NOISE_RANGE)],
        options={
            "initial_simplex": start + [[0, 0], [0.7, 0], [0, 0.7]],
            "xatol": 0.01,
            "fatol": 0.01,
            "maxfev": 100,
        },
    )
    rate, noise = np.exp(optimum.x).tolist()
    return rate, noise


class OrnsteinUhlenbeckSampler(GaussianSampler[OrnsteinUhlenbeck]):
    """Draws rate, noise, mean and variance in turn: rate and noise by slices, the others given contrasts."""

    def initial_process(self, process: OrnsteinUhlenbeck) -> OrnsteinUhlenbeck:
        """Return the process with a mean for each column, and at least the noise of rounding."""
        mean = np.array(np.broadcast_to(process.mean, self.table.shape[1]))
        return OrnsteinUhlenbeck(process.rate, mean, process.variance, self._possible_noise(process))

    def draw(self, process: OrnsteinUhlenbeck, tree: Tree, rng: np.random.Generator) -> OrnsteinUhlenbeck:
        """Draw all parameters, each given the others."""
        rate, mean, variance, noise = process.rate, process.mean, process.variance, process.noise

        def sums_at(rate: float, noise: FloatArray | float) -> Contrasts:
            # Brownian motion in the height 1 - exp(-2 rate h), and N(mean, variance exp(-2 rate h)) at the root
            sums = self._contrasts(tree, -np.expm1(-2 * rate * tree.heights), noise)
            return sums.to_equilibrium(np.array([[math.exp(-2 * rate * tree.heights[-1])]]))

        def log_density(rate: float, noise: FloatArray | float) -> float:
            known = sums_at(rate, noise).with_roots(mean).log_density(variance)
            return known + self.log_prior(OrnsteinUhlenbeck(rate, mean, variance, noise))

        rate = positive_slice_step(lambda trial: log_density(trial, noise), rate, RATE_RANGE, rng)
        if self._moves_noise and noise.ndim:
            heights = -np.expm1(-2 * rate * tree.heights)
            equilibrium = Equilibrium(mean, np.array([[math.exp(-2 * rate * tree.heights[-1])]]))
            noise = self._draw_column_noises(process, tree, heights, equilibrium, rng)
        elif self._moves_noise:
            noise = np.asarray(
                positive_slice_step(lambda trial: log_density(rate, trial), float(noise), NOISE_RANGE, rng)
            )
        sums = sums_at(rate, noise)
        mean = self._draw_mean(sums, variance, rng)
        all_sums = sums.with_roots(mean)
        variance = self._prior.draw_variance(variance, all_sums.squares(variance.ndim), all_sums.counts, noise, rng)
        return OrnsteinUhlenbeck(rate, mean, variance, noise)

    def _draw_mean(self, sums: Contrasts, variance: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw the mean given the variance, eq. (13.5)."""
        spread, middle = self._prior.mean_spread * self._prior.spread, self._prior.middle
        root_mean, precision = sums.root_means[0], 1 / sums.root_variances[0]
        if variance.ndim == 2:
            inverse = precision[0] * np.linalg.inv(variance)
            weight = inverse + np.diag(1 / spread)
            centre = np.linalg.solve(weight, inverse @ root_mean + middle / spread)
            return np.asarray(centre + np.linalg.solve(np.linalg.cholesky(weight).T, rng.standard_normal(len(spread))))
        weight = precision / variance + 1 / spread
        centre = (np.where(precision > 0, root_mean, 0.0) * precision / variance + middle / spread) / weight
        return np.asarray(centre + rng.standard_normal(len(spread)) / np.sqrt(weight))

    def clock_exponent(self, process: OrnsteinUhlenbeck) -> float | None:
        """Return minus one: only the rate changes."""
        return -1.0


def _means(white: FloatArray, observed: NDArray[np.bool_]) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):  # `_check_distance` refuses such sizes
        return np.asarray(np.where(observed, white, 0.0).sum(axis=0) / np.maximum(observed.sum(axis=0), 1))


def _check_distance(white: FloatArray) -> None:
    """Raise for values so far from the mean that their squares overflow."""
    largest = np.abs(white).max(axis=0)
    if np.any(largest >= MAX_VALUE):
        column = int(np.argmax(largest >= MAX_VALUE))
        raise InputError(
            f"The values of column {column} lie up to {largest[column]:g} standard deviations from the mean of the process; it "
            f"must be less than {MAX_VALUE:g}: rescale the column, or give its own mean and variance."
        )
