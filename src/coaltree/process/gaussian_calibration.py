"""Variance, noise, rate and mean of Gaussian processes, fitted to trees.

For any noise (and rate) the contrasts of Felsenstein's give the best variance (and mean) in closed form; what is left is a
search over one or two numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

from ..compiled import announced_compilation
from ..tree.tree import Tree
from ._statistics_kernels import contrasts
from .brownian import Brownian
from .evidence import RATE_RANGE, SCALE, SHAPE, Evidence
from .gaussian import Gaussian
from .ornstein_uhlenbeck import OrnsteinUhlenbeck

FloatArray = NDArray[np.float64]
AnyGaussian = TypeVar("AnyGaussian", bound=Gaussian)

# Noise has an inverse Gamma prior, which keeps it from 0 where rows repeat and the likelihood would have it there.
NOISE_SHAPE, NOISE_SCALE = 1.0, 0.05
NOISE_RANGE = (1e-6, 1e4)
MOST_ROUNDING = 0.2  # of a column's variance is put down to rounding at the most
REACH = 10.0  # noise and rate are looked for within this factor of where they were


class Contrasts(NamedTuple):
    """Sums over the merges of a tree, and what is left at its root, in units of the process's variance."""

    counts: FloatArray  # (columns,), merges with both sides observed
    log_variances: FloatArray  # (columns,)
    squares: FloatArray  # (columns, columns), of scaled contrasts; only its diagonal where cells are missing
    root_mean: FloatArray  # (columns,)
    root_variance: FloatArray  # (columns,), infinite where nothing was observed


def _contrasts(evidence: Evidence, tree: Tree, heights: FloatArray, noise: float) -> Contrasts:
    """Climb a tree with Brownian motion of variance 1, its heights perhaps warped."""
    X = evidence.X
    n, n_columns = X.shape
    gaps, variances = np.empty((n - 1, n_columns)), np.empty((n - 1, n_columns))
    forest = Brownian(1.0, noise).forest(X, n, np.zeros(n))
    with announced_compilation():
        root = contrasts(forest, tree.children, heights, gaps, variances)
    scaled = gaps / np.sqrt(variances)
    seen = ~np.isnan(scaled)
    return Contrasts(
        seen.sum(axis=0).astype(np.float64),
        np.nansum(np.log(variances), axis=0),
        scaled.T @ scaled if seen.all() else np.diag(np.nansum(scaled**2, axis=0)),
        forest.y[:, root] + forest.center,
        np.broadcast_to(forest.v[..., root], n_columns),
    )


def _best_variance(
    shape: int, squares: FloatArray, counts: FloatArray, spread: FloatArray, least: FloatArray
) -> FloatArray:
    """Return the most probable variance: one number (shape 0), one a column (1) or a matrix (2); at least so much."""
    if shape == 2:
        # of a Wishart prior for the precision that is the Gamma prior where there is one column
        variance = (2 / SCALE * np.diag(spread) + squares) / (2 * SHAPE - 2 + counts[0])
        return np.asarray(variance + np.diag(np.maximum(least - np.diag(variance), 0.0)))
    own = np.diag(squares)
    if shape == 0:
        spread, own, counts, least = spread.mean(), own.sum(), counts.sum(), least.mean()
    return np.maximum((spread / SCALE + 0.5 * own) / (SHAPE - 1 + 0.5 * counts), least)


def _rounding(X: FloatArray) -> FloatArray:
    """Return the variance that rounding gave each column: a twelfth of the squared step between its values.

    Columns of few distinct values, such as counts, would otherwise be explained by states that repeat exactly, at a density
    that has no bound.
    """
    steps = np.zeros(X.shape[1])
    for d, column in enumerate(X.T):
        gaps = np.diff(np.unique(column[~np.isnan(column)]))
        steps[d] = gaps.min() if len(gaps) else 0.0
    return np.minimum(steps**2 / 12, MOST_ROUNDING * _spread(X))


def _log_density(squares: FloatArray, counts: FloatArray, log_variances: FloatArray, variance: FloatArray) -> float:
    """Return the log density of contrasts, given their sums and the variance."""
    constant = -0.5 * float(np.sum(counts) * math.log(2 * math.pi) + np.sum(log_variances))
    if variance.ndim == 2:
        _, log_determinant = np.linalg.slogdet(variance)
        return constant - 0.5 * (
            float(counts[0]) * float(log_determinant) + float(np.trace(np.linalg.solve(variance, squares)))
        )
    return constant - 0.5 * float(np.sum(counts * np.log(variance) + np.diag(squares) / variance))


def _variance_log_prior(variance: FloatArray, spread: FloatArray) -> float:
    if variance.ndim == 2:
        _, log_determinant = np.linalg.slogdet(variance)
        trace = float(np.trace(np.linalg.solve(variance, np.diag(spread))))
        return -(SHAPE - 1) * float(log_determinant) - trace / SCALE
    scaled = variance / (spread if variance.ndim else spread.mean())
    return -float(np.sum((SHAPE - 1) * np.log(scaled) + 1 / (SCALE * scaled)))


def fit_brownian(process: Brownian, evidence: Evidence, hold_noise: bool) -> Brownian:
    """Return the most probable variance and noise."""
    spread, rounding = _spread(evidence.X), _rounding(evidence.X)

    def best_at(noise: float) -> tuple[float, Brownian]:
        sums = [_contrasts(evidence, tree, tree.heights, noise) for tree in evidence.trees]
        counts, logs, squares = (
            sum(weight * own[k] for own, weight in zip(sums, evidence.weights, strict=True)) for k in range(3)
        )
        found = Brownian(
            _best_variance(
                process.variance.ndim, squares, counts, spread, rounding / noise if noise > 0 else 0 * rounding
            ),
            noise,
        )
        return _log_density(squares, counts, logs, found.variance) + gaussian_log_prior(
            found, evidence.X, hold_noise
        ), found

    noise = process.noise
    if not hold_noise:
        noise = _best_positive(lambda trial: best_at(trial)[0], noise, NOISE_RANGE)
    return _most_probable([process, best_at(process.noise)[1], best_at(noise)[1]], evidence, hold_noise)


def gaussian_log_prior(process: Gaussian, X: FloatArray, hold_noise: bool = False) -> float:
    """Return the log density of the parameters under their priors, up to a constant; of all but the noise if that is held."""
    spread = _spread(X)
    total = _variance_log_prior(process.variance, spread)
    if not hold_noise:
        total += _noise_log_prior(process.noise)
    own, least = process.deviations(X.shape[1]) ** 2 * process.noise, _rounding(X)
    if process.variance.ndim == 0:
        own, least = own.mean(), least.mean()
    if process.noise > 0 and np.any(own < (1 - 1e-9) * least):
        return -math.inf
    if isinstance(process, OrnsteinUhlenbeck):
        total += (SHAPE - 1) * math.log(process.rate) - process.rate / SCALE
        total -= 0.5 * float(np.sum((process.mean - _middle(X)) ** 2 / spread))
    return total


def fit_stationary(process: OrnsteinUhlenbeck, evidence: Evidence, hold_noise: bool) -> OrnsteinUhlenbeck:
    """Return the most probable rate, noise, mean and variance."""

    def best_at(rate: float, noise: float) -> tuple[float, OrnsteinUhlenbeck]:
        # Brownian motion in the height 1 - exp(-2 rate h), and N(mean, variance exp(-2 rate h)) at the root
        sums = [_contrasts(evidence, tree, -np.expm1(-2 * rate * tree.heights), noise) for tree in evidence.trees]
        remaining = [math.exp(-2 * rate * tree.heights[-1]) for tree in evidence.trees]
        return _best_stationary(process.variance.ndim, rate, noise, sums, remaining, evidence, hold_noise)

    rate, noise = process.rate, process.noise
    if hold_noise:
        rate = _best_positive(lambda trial: best_at(trial, noise)[0], rate, RATE_RANGE)
    else:
        start = np.log([np.clip(rate, *RATE_RANGE), np.clip(noise if noise > 0 else 0.1, *NOISE_RANGE)])
        found = minimize(  # type: ignore[call-overload, unused-ignore]
            lambda logs: -best_at(*np.exp(logs))[0],
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
    return _most_probable(
        [process, best_at(process.rate, process.noise)[1], best_at(rate, noise)[1]], evidence, hold_noise
    )


def _best_stationary(
    shape: int,
    rate: float,
    noise: float,
    sums: list[Contrasts],
    remaining: list[float],
    evidence: Evidence,
    hold_noise: bool,
) -> tuple[float, OrnsteinUhlenbeck]:
    """Return the log posterior and the process at the best mean and variance for a rate and a noise."""
    weights, spread, middle = evidence.weights, _spread(evidence.X), _middle(evidence.X)
    least = _rounding(evidence.X) / noise if noise > 0 else np.zeros(len(spread))
    counts, logs, squares = (sum(w * own[k] for own, w in zip(sums, weights, strict=True)) for k in range(3))
    # the root's message is one more contrast, with the mean: its precision, and the precision times it
    precision = sum(w / (own.root_variance + rest) for own, rest, w in zip(sums, remaining, weights, strict=True))
    pull = sum(
        w * own.root_mean / (own.root_variance + rest) for own, rest, w in zip(sums, remaining, weights, strict=True)
    )
    seen = precision > 0
    counts = counts + seen
    logs = logs + sum(
        w * np.where(seen, np.log(np.where(seen, own.root_variance + rest, 1.0)), 0.0)
        for own, rest, w in zip(sums, remaining, weights, strict=True)
    )

    def with_root(mean: FloatArray) -> FloatArray:
        total = np.array(squares)
        for own, rest, w in zip(sums, remaining, weights, strict=True):
            gap = np.where(seen, own.root_mean - mean, 0.0) / np.sqrt(np.where(seen, own.root_variance + rest, 1.0))
            total += w * (np.outer(gap, gap) if shape == 2 else np.diag(gap**2))
        return total

    mean = middle
    for _ in range(5):
        variance = _best_variance(shape, with_root(mean), counts, spread, least)
        if variance.ndim == 2:
            inverse = np.linalg.inv(variance)
            mean = np.linalg.solve(precision[0] * inverse + np.diag(1 / spread), inverse @ pull + middle / spread)
        else:
            mean = (pull / variance + middle / spread) / (precision / variance + 1 / spread)
    found = OrnsteinUhlenbeck(rate, mean, variance, noise)
    density = _log_density(with_root(mean), counts, logs, variance)
    return density + gaussian_log_prior(found, evidence.X, hold_noise), found


def _most_probable(candidates: list[AnyGaussian], evidence: Evidence, hold_noise: bool) -> AnyGaussian:
    """Return the process with the highest posterior; the first one is not left for a worse one."""
    return max(
        candidates, key=lambda found: evidence.log_likelihood(found) + gaussian_log_prior(found, evidence.X, hold_noise)
    )


def _middle(X: FloatArray) -> FloatArray:
    """Return the mean of each column's observed cells; 0 where there are none."""
    observed = ~np.isnan(X)
    return np.asarray(np.where(observed, X, 0.0).sum(axis=0) / np.maximum(observed.sum(axis=0), 1))


def _spread(X: FloatArray) -> FloatArray:
    """Return the variance of each column's observed cells; 1 where they do not vary."""
    observed = ~np.isnan(X)
    spread = (np.where(observed, X - _middle(X), 0.0) ** 2).sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
    return np.where(spread > 0, spread, 1.0)


def _noise_log_prior(noise: float) -> float:
    return -(NOISE_SHAPE + 1) * math.log(noise) - NOISE_SCALE / noise if noise > 0 else -math.inf


def _best_positive(function: Callable[[float], float], start: float, allowed: tuple[float, float]) -> float:
    """Return where a function of a positive number is largest: near the start if there is one, else anywhere."""
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
