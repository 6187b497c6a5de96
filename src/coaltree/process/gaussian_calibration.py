"""Variance, noise, rate and mean of Gaussian processes, fitted to trees.

For any noise (and rate) the contrasts of Felsenstein's give the best variance (and mean) in closed form; what is left is a
search over one or two numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .base import RATE_RANGE, SCALE, SHAPE, Evidence, Noise
from .brownian import Brownian
from .gaussian import Gaussian
from .kernels.passes import contrasts
from .layout import GaussianMessages, read_messages
from .ornstein_uhlenbeck import OrnsteinUhlenbeck

FloatArray = NDArray[np.float64]
AnyGaussian = TypeVar("AnyGaussian", bound=Gaussian)

# Noise has an inverse Gamma prior, which keeps it from 0 where rows repeat and the likelihood would have it there.
NOISE_SHAPE, NOISE_SCALE = 1.0, 0.05
NOISE_RANGE = (1e-6, 1e4)
MOST_ROUNDING = 0.2  # of a column's variance is put down to rounding at the most
SWEEPS = 2  # over the noises of all columns, from where they are and from one noise for all of them
REACH = 10.0  # noise and rate are looked for within this factor of where they were


class GaussianPrior(NamedTuple):
    """The priors of a table's real columns, each in the column's own units."""

    spread: FloatArray  # (columns,), variance of the observed cells; 1 where they do not vary
    middle: FloatArray  # (columns,), their mean; 0 where there are none
    rounding: FloatArray  # (columns,), the variance that rounding gave them; 0 if noise is held
    noise: Noise
    mean_spread: float = 1.0  # variance of a mean's prior, in units of `spread`

    @classmethod
    def of(cls, X: FloatArray, noise: Noise) -> Self:
        """Look at the columns of a table.

        Rounding has a twelfth of the squared step between values. Columns of few distinct values, such as counts, would
        otherwise be explained by states that repeat exactly, at a density that has no bound.
        """
        observed = ~np.isnan(X)
        middle, spread = column_moments(X)
        steps = np.zeros(X.shape[1])
        for d, column in enumerate(X.T):
            gaps = np.diff(np.unique(column[observed[:, d]]))
            steps[d] = gaps.min() if len(gaps) else 0.0
        if noise == "held":
            steps[:] = 0.0
        return cls(spread, middle, np.minimum(steps**2 / 12, MOST_ROUNDING * spread), noise)

    def log_density(self, process: Gaussian) -> float:
        """Return the log density of parameters, up to a constant; of all but the noise if that is held."""
        if process.noisy:
            own = process.deviations(len(self.spread)) ** 2
            least = self.least_variance(process.noise)
            if not process.variance.ndim:
                own, least = own[:1], self._for_one_variance(least, process.noise)
            if np.any(own < (1 - 1e-9) * least):
                return -math.inf
        total = self._of_variance(process.variance)
        if self.noise != "held":
            total += noise_log_prior(process.noise)
        if isinstance(process, OrnsteinUhlenbeck):
            total += (SHAPE - 1) * math.log(process.rate) - process.rate / SCALE
            total -= 0.5 * float(np.sum((process.mean - self.middle) ** 2 / (self.mean_spread * self.spread)))
        return total

    def least_variance(self, noise: FloatArray | float) -> FloatArray:
        """Return the variance of each column with which its noise is that of rounding."""
        noises = np.broadcast_to(noise, len(self.spread))
        return np.where(noises > 0, self.rounding / np.where(noises > 0, noises, 1.0), 0.0)

    def _for_one_variance(self, least: FloatArray, noise: FloatArray | float) -> FloatArray:
        """Return the least variance of all columns: with one noise rounding counts on average, else in every column."""
        return np.asarray(least.max() if np.ndim(noise) else least.mean())

    def _of_variance(self, variance: FloatArray) -> float:
        if variance.ndim == 2:
            _, log_determinant = np.linalg.slogdet(variance)
            trace = float(np.trace(np.linalg.solve(variance, np.diag(self.spread))))
            return -(SHAPE - 1) * float(log_determinant) - trace / SCALE
        scaled = variance / (self.spread if variance.ndim else self.spread.mean())
        return -float(np.sum((SHAPE - 1) * np.log(scaled) + 1 / (SCALE * scaled)))

    def best_variance(
        self, shape: int, squares: FloatArray, counts: FloatArray, noise: FloatArray | float
    ) -> FloatArray:
        """Return the most probable variance, eq. (11.1), given contrasts: one number (shape 0), one a column (1) or a matrix."""
        least = self.least_variance(noise)
        if shape == 2:
            # of a Wishart prior for the precision that is the Gamma prior where there is one column
            variance = (2 / SCALE * np.diag(self.spread) + squares) / (2 * SHAPE - 2 + counts[0])
            return np.asarray(variance + np.diag(np.maximum(least - np.diag(variance), 0.0)))
        own, spread = np.diag(squares), self.spread
        if shape == 0:
            own, spread, counts = own.sum(), spread.mean(), counts.sum()
            least = self._for_one_variance(least, noise)
        return np.maximum((spread / SCALE + 0.5 * own) / (SHAPE - 1 + 0.5 * counts), least)

    def drawn_variance(
        self,
        variance: FloatArray,
        squares: FloatArray,
        counts: FloatArray,
        noise: FloatArray | float,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Return a variance drawn given contrasts, eq. (13.4), of the same shape; the given one where a draw is ruled out."""
        least = self.least_variance(noise)
        if variance.ndim == 2:
            from scipy.stats import wishart  # only draws of full matrices need it, and it takes long to import

            # the Wishart distribution of the precision whose mode `best_variance` returns
            scale = np.linalg.inv(2 / SCALE * np.diag(self.spread) + squares)
            freedom = 2 * SHAPE - 1 + counts[0] + len(scale)
            drawn = np.linalg.inv(np.atleast_2d(wishart.rvs(freedom, scale, random_state=rng)))
            drawn = 0.5 * (drawn + drawn.T)  # rounding leaves an inverse not quite symmetric
            return np.asarray(drawn if np.all(np.diag(drawn) >= least) else variance)
        own, spread = np.diag(squares), self.spread
        if variance.ndim == 0:
            own, spread, counts = own.sum(), spread.mean(), counts.sum()
            least = self._for_one_variance(least, noise)
        drawn = (spread / SCALE + 0.5 * own) / rng.standard_gamma(SHAPE + 0.5 * counts)
        return np.asarray(np.where(drawn >= least, drawn, variance))


def column_moments(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of each column's observed cells; 0 where there are none, and 1 where they do not vary."""
    observed = ~np.isnan(X)
    counts = np.maximum(observed.sum(axis=0), 1)
    middle = np.where(observed, X, 0.0).sum(axis=0) / counts
    spread = (np.where(observed, X - middle, 0.0) ** 2).sum(axis=0) / counts
    return middle, np.where(spread > 0, spread, 1.0)


def noise_log_prior(noise: FloatArray | float) -> float:
    """Return the log density of a noise, or of the noises of all columns, up to a constant."""
    if np.any(np.asarray(noise) <= 0):
        return -math.inf
    return float(np.sum(-(NOISE_SHAPE + 1) * np.log(noise) - NOISE_SCALE / np.asarray(noise)))


class Contrasts(NamedTuple):
    """Weighted sums over the merges of all trees, and what is left at their roots, for variance 1."""

    counts: FloatArray  # (columns,), merges with both sides observed
    log_variances: FloatArray  # (columns,)
    squares: FloatArray  # (columns, columns), of scaled contrasts; only its diagonal where cells are missing
    root_means: FloatArray  # (trees, columns)
    root_variances: FloatArray  # (trees, columns), infinite where nothing was observed
    weights: FloatArray  # (trees,)

    @classmethod
    def of(cls, evidence: Evidence, prior: GaussianPrior, heights: list[FloatArray], noise: FloatArray | float) -> Self:
        """Climb all trees, their heights perhaps warped."""
        n, n_columns = evidence.X.shape
        units = np.sqrt(prior.spread)  # in which nothing is too large or too small
        X = (evidence.X - prior.middle) / units
        counts, logs, squares = np.zeros(n_columns), np.zeros(n_columns), np.zeros((n_columns, n_columns))
        means, variances = [], []
        for tree, own, weight in zip(evidence.trees, heights, evidence.weights, strict=True):
            gaps, spans = np.empty((n - 1, n_columns)), np.empty((n - 1, n_columns))
            forest, slot = Brownian(1.0, noise).forest(X, n), np.arange(tree.n_nodes)
            contrasts(forest, tree.children, own, slot, gaps, spans)
            root = read_messages(forest, slot[-1:])[0]
            assert isinstance(root, GaussianMessages)
            scaled = gaps / np.sqrt(spans)
            seen = ~np.isnan(scaled)
            counts += weight * seen.sum(axis=0)
            logs += weight * np.nansum(np.log(spans), axis=0)
            squares += weight * (scaled.T @ scaled if seen.all() else np.diag(np.nansum(scaled**2, axis=0)))
            means.append(prior.middle + units * (root.mean[0] + root.center))
            variances.append(root.spread[0])
        squares *= np.outer(units, units)
        return cls(counts, logs, squares, np.array(means), np.array(variances), evidence.weights)

    def log_density(self, variance: FloatArray) -> float:
        """Return the log density of the contrasts."""
        constant = -0.5 * float(np.sum(self.counts) * math.log(2 * math.pi) + np.sum(self.log_variances))
        if variance.ndim == 2:
            _, log_determinant = np.linalg.slogdet(variance)
            trace = float(np.trace(np.linalg.solve(variance, self.squares)))
            return constant - 0.5 * (float(self.counts[0]) * float(log_determinant) + trace)
        return constant - 0.5 * float(np.sum(self.counts * np.log(variance) + np.diag(self.squares) / variance))

    def to_equilibrium(self, remaining: FloatArray) -> Contrasts:
        """Return the sums with what is left of the way to the equilibrium added to the variances at the roots."""
        return self._replace(root_variances=self.root_variances + remaining)

    def with_roots(self, mean: FloatArray) -> Contrasts:
        """Return the sums with the roots among them, as contrasts to a mean."""
        seen = self.root_variances[0] < math.inf
        variances = np.where(seen, self.root_variances, 1.0)
        gaps = np.where(seen, self.root_means - mean, 0.0) * np.sqrt(self.weights[:, None] / variances)
        return self._replace(
            counts=self.counts + seen,
            log_variances=self.log_variances + self.weights @ np.where(seen, np.log(variances), 0.0),
            squares=self.squares + gaps.T @ gaps,
        )


def fit_brownian(process: Brownian, evidence: Evidence, noise: Noise) -> Brownian:
    """Return the most probable variance and noise."""
    prior = GaussianPrior.of(evidence.X, noise)
    heights = [tree.heights for tree in evidence.trees]

    @_if_possible(process)
    def best_at(noise: FloatArray | float) -> tuple[float, Brownian]:
        sums = Contrasts.of(evidence, prior, heights, noise)
        found = Brownian(prior.best_variance(process.variance.ndim, sums.squares, sums.counts, noise), noise)
        return sums.log_density(found.variance) + prior.log_density(found), found

    given = Contrasts.of(evidence, prior, heights, process.noise).log_density(process.variance)
    candidates = [(given + prior.log_density(process), process), best_at(process.noise)]
    if noise == "fitted" and process.noise.ndim:
        pooled = fit_brownian(Brownian(process.variance, process.noise.mean()), evidence, noise)
        for found in (candidates[-1][1], pooled):
            for _ in range(SWEEPS):
                candidates.append(best_at(_best_noises(found, evidence, prior, heights, None)))
                found = candidates[-1][1]
    elif noise == "fitted":
        candidates.append(best_at(_best_positive(lambda trial: best_at(trial)[0], float(process.noise), NOISE_RANGE)))
    return max(candidates, key=lambda candidate: candidate[0])[1]


def fit_stationary(process: OrnsteinUhlenbeck, evidence: Evidence, noise: Noise) -> OrnsteinUhlenbeck:
    """Return the most probable rate, noise, mean and variance."""
    prior = GaussianPrior.of(evidence.X, noise)

    def contrasts_at(rate: float, noise: FloatArray | float) -> Contrasts:
        # Brownian motion in the height 1 - exp(-2 rate h), and N(mean, variance exp(-2 rate h)) at the root
        return Contrasts.of(evidence, prior, _warped(evidence, rate), noise).to_equilibrium(_remaining(evidence, rate))

    @_if_possible(process)
    def best_at(rate: float, noise: FloatArray | float) -> tuple[float, OrnsteinUhlenbeck]:
        sums = contrasts_at(rate, noise)
        mean, variance = _best_mean_and_variance(process.variance.ndim, sums, prior, noise)
        found = OrnsteinUhlenbeck(rate, mean, variance, noise)
        return sums.with_roots(mean).log_density(variance) + prior.log_density(found), found

    given = contrasts_at(process.rate, process.noise).with_roots(process.mean).log_density(process.variance)
    candidates = [
        (given + prior.log_density(process), process),
        best_at(process.rate, process.noise),
    ]

    def at_best_rate(found: OrnsteinUhlenbeck) -> tuple[float, OrnsteinUhlenbeck]:
        return best_at(_best_positive(lambda rate: best_at(rate, found.noise)[0], found.rate, RATE_RANGE), found.noise)

    if noise != "fitted":
        candidates.append(at_best_rate(process))
    elif process.noise.ndim:
        pooled = OrnsteinUhlenbeck(process.rate, process.mean, process.variance, process.noise.mean())
        for found in (candidates[-1][1], fit_stationary(pooled, evidence, noise)):
            for _ in range(SWEEPS):
                remaining = _remaining(evidence, found.rate)
                noises = _best_noises(found, evidence, prior, _warped(evidence, found.rate), remaining)
                candidates.append(best_at(found.rate, noises))
                candidates.append(at_best_rate(candidates[-1][1]))
                found = candidates[-1][1]
    else:
        candidates.append(best_at(*_best_two(lambda rate, noise: best_at(rate, noise)[0], process)))
    return max(candidates, key=lambda candidate: candidate[0])[1]


def _warped(evidence: Evidence, rate: float) -> list[FloatArray]:
    """Return the trees' heights in which stationary diffusion is Brownian motion."""
    return [-np.expm1(-2 * rate * tree.heights) for tree in evidence.trees]


def _remaining(evidence: Evidence, rate: float) -> FloatArray:
    """Return how much of the equilibrium's variance is left above the root of each tree, as a column."""
    return np.array([[math.exp(-2 * rate * tree.heights[-1])] for tree in evidence.trees])


def _best_noises(
    process: Gaussian, evidence: Evidence, prior: GaussianPrior, heights: list[FloatArray], remaining: FloatArray | None
) -> FloatArray:
    """Return the best noise of each column, all else as the process has it; given that, columns are independent."""
    n_columns = len(prior.spread)
    # less noise than that of rounding has no density
    least = np.clip(prior.rounding / process.deviations(n_columns) ** 2, *NOISE_RANGE)
    return np.array(
        [
            _best_positive(
                column_log_density(process, d, evidence, prior, heights, remaining), start, (low, NOISE_RANGE[1])
            )
            for d, (start, low) in enumerate(
                zip(np.broadcast_to(process.noise, n_columns).tolist(), least.tolist(), strict=True)
            )
        ]
    )


def column_log_density(
    process: Gaussian,
    d: int,
    evidence: Evidence,
    prior: GaussianPrior,
    heights: list[FloatArray],
    remaining: FloatArray | None,
) -> Callable[[float], float]:
    """Return the log density of one column and its noise as a function of the noise, all else as the process has it.

    Parameters
    ----------
    process : Gaussian
        With a variance for all columns or one a column.
    d : int
        The column.
    evidence : Evidence
    prior : GaussianPrior
    heights : list of ndarray
        Of each tree, warped for a stationary process.
    remaining : ndarray of shape (trees, 1), optional
        For a stationary process, the share of the equilibrium's variance above each root.
    """
    variance = process.deviations(len(prior.spread))[d] ** 2
    own_evidence = evidence.columns([d])
    own = prior._replace(spread=prior.spread[[d]], middle=prior.middle[[d]], rounding=prior.rounding[[d]])

    def log_density(noise: float) -> float:
        if variance < (1 - 1e-9) * own.least_variance(noise)[0]:
            return -math.inf
        sums = Contrasts.of(own_evidence, own, heights, noise)
        if remaining is not None:
            assert isinstance(process, OrnsteinUhlenbeck)
            mean = np.broadcast_to(process.mean, len(prior.spread))[[d]]
            sums = sums.to_equilibrium(remaining).with_roots(mean)
        return sums.log_density(np.asarray(variance)) + noise_log_prior(noise)

    return log_density


def _if_possible(
    process: AnyGaussian,
) -> Callable[[Callable[..., tuple[float, AnyGaussian]]], Callable[..., tuple[float, AnyGaussian]]]:
    """Let a search go on where equal rows without noise leave a covariance matrix that cannot be inverted."""

    def decorate(best_at: Callable[..., tuple[float, AnyGaussian]]) -> Callable[..., tuple[float, AnyGaussian]]:
        def guarded(*arguments: Any) -> tuple[float, AnyGaussian]:
            try:
                return best_at(*arguments)
            except (InputError, np.linalg.LinAlgError):
                return -math.inf, process

        return guarded

    return decorate


def _best_mean_and_variance(
    shape: int, sums: Contrasts, prior: GaussianPrior, noise: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """Maximise over mean and variance in turn, which are nearly independent."""
    precision = np.sum(sums.weights[:, None] / sums.root_variances, axis=0)
    pull = np.sum(sums.weights[:, None] * sums.root_means / sums.root_variances, axis=0)
    mean = prior.middle
    for _ in range(5):
        whole = sums.with_roots(mean)
        variance = prior.best_variance(shape, whole.squares, whole.counts, noise)
        if shape == 2:
            inverse = np.linalg.inv(variance)
            weight = precision[0] * inverse + np.diag(1 / prior.spread)
            mean = np.linalg.solve(weight, inverse @ pull + prior.middle / prior.spread)
        else:
            mean = (pull / variance + prior.middle / prior.spread) / (precision / variance + 1 / prior.spread)
    return mean, variance


def _best_two(function: Callable[[float, float], float], process: OrnsteinUhlenbeck) -> tuple[float, float]:
    """Return the rate and the noise where a function of both is largest, from those of a process on."""
    from scipy.optimize import minimize  # only fits of parameters need it, and it takes long to import

    noise = float(process.noise) if process.noisy else 0.1
    start = np.log([np.clip(process.rate, *RATE_RANGE), np.clip(noise, *NOISE_RANGE)])
    found = minimize(  # type: ignore[call-overload, unused-ignore]
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
    rate, noise = np.exp(found.x).tolist()
    return rate, noise


def _best_positive(function: Callable[[float], float], start: float, allowed: tuple[float, float]) -> float:
    """Return where a function of a positive number is largest: near the start if there is one, else anywhere."""
    from scipy.optimize import minimize_scalar

    low, high = math.log(allowed[0]), math.log(allowed[1])
    if start > 0:
        middle = min(max(math.log(start), low), high)
        low, high = max(middle - math.log(REACH), low), min(middle + math.log(REACH), high)
    else:
        trials = np.linspace(low, high, 12)
        best = int(np.argmax([function(math.exp(x)) for x in trials]))
        low, high = trials[max(best - 1, 0)], trials[min(best + 1, len(trials) - 1)]
    found = minimize_scalar(
        lambda x: -function(math.exp(x)), bounds=(low, high), method="bounded", options={"xatol": 0.01, "maxiter": 25}
    )
    return math.exp(found.x)
