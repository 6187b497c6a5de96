"""Sampling of two covariance matrices, of the diffusion and of the noise, and of missing cells, given a tree.

In the basis in which both matrices are diagonal the columns of the table are independent components, each with its own noise.
Given the states at the leaves, which are drawn first, the two matrices are drawn from inverse Wishart distributions, eq. (13.9).
Both are shrunk towards diagonal ones, as far as the data suggest: the strength of their priors is drawn too. Missing cells are
drawn row by row given all other rows, eq. (13.10).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..tree.tree import Tree
from .base import PRIOR_SCALE, PRIOR_SHAPE, RATE_RANGE, ParameterSampler
from .gaussian import Gaussian
from .gaussian_columns import MEAN_SPREAD, column_moments
from .kernels.components import contrasts, draw_missing, draw_states, send_up
from .slice_sampling import positive_slice_step, slice_step

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

NOISE_SHARE = 0.05  # of a column's variance that the prior expects to be noise
STRENGTH_RANGE = (1.0, 1e6)
LOG_STRENGTH_SD = 2.0  # of the prior of a strength's logarithm; in the middle it counts as much as there are columns
SCALE_RANGE = (1e-6, 1e6)  # in units of the expected variances
NOISE_FACTORS = (1e-6, 1e6)  # by which all noise is multiplied at once


class CovariancePrior:
    """A prior that shrinks a covariance matrix towards a diagonal one.

    The matrix is inverse Wishart with mean ``diag(scales)`` and ``strength + D + 1`` degrees of freedom; both are drawn. A scale
    is exponential with the expected variance as its mean, and the logarithm of the strength Gaussian around ``log D``.

    Parameters
    ----------
    expected : ndarray of shape (D,)
        Expected variances.
    """

    def __init__(self, expected: FloatArray) -> None:
        self.expected = expected
        self.scales = expected.copy()
        self.strength = float(len(expected))

    @property
    def freedom(self) -> float:
        """Degrees of freedom."""
        return self.strength + len(self.expected) + 1

    def log_density(self, covariance: FloatArray) -> float:
        """Return the log density of a covariance matrix, its strength and its scales, up to a constant."""
        log_determinant, precisions = _determinant_and_precisions(covariance)
        return self._log_density_by_strength(log_determinant, precisions)(self.strength)

    def _log_density_by_strength(self, log_determinant: float, precisions: FloatArray) -> Callable[[float], float]:
        """Return the same as a function of the strength."""
        width = len(self.expected)
        trace, prior = float(np.sum(self.scales * precisions)), float(np.sum(self.scales / self.expected))
        log_scales = float(np.sum(np.log(self.scales)))

        def log_density(strength: float) -> float:
            freedom = strength + width + 1
            wishart = 0.5 * freedom * (width * math.log(0.5 * strength) + log_scales)
            wishart -= _log_multigamma(0.5 * freedom, width)
            wishart -= 0.5 * (freedom + width + 1) * log_determinant + 0.5 * strength * trace
            away = (math.log(strength) - math.log(width)) / LOG_STRENGTH_SD
            return wishart - 0.5 * away**2 - prior

        return log_density

    def draw_covariance(self, residuals: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw the matrix given vectors, one per row, with this covariance."""
        scale = self.strength * np.diag(self.scales) + residuals.T @ residuals
        return draw_inverse_wishart(self.freedom + len(residuals), scale, rng)

    def draw_strength_and_scales(self, covariance: FloatArray, rng: np.random.Generator) -> None:
        """Draw strength and scales given the matrix."""
        log_determinant, precisions = _determinant_and_precisions(covariance)
        log_density = self._log_density_by_strength(log_determinant, precisions)
        log_strength = slice_step(
            lambda log: log_density(math.exp(log)),
            math.log(self.strength),
            (math.log(STRENGTH_RANGE[0]), math.log(STRENGTH_RANGE[1])),
            rng,
        )
        self.strength = math.exp(log_strength)
        rates = 1 / self.expected + 0.5 * self.strength * precisions
        scales = rng.standard_gamma(1 + 0.5 * self.freedom, len(rates)) / rates
        possible = (scales > SCALE_RANGE[0] * self.expected) & (scales < SCALE_RANGE[1] * self.expected)
        self.scales = np.where(possible, scales, self.scales)


def _log_multigamma(a: float, width: int) -> float:
    """Return the logarithm of the multivariate Gamma function, up to a constant that depends on the width alone."""
    return math.fsum(math.lgamma(a - 0.5 * k) for k in range(width))


def _determinant_and_precisions(covariance: FloatArray) -> tuple[float, FloatArray]:
    """Return the log determinant, and the diagonal of the inverse; of nearly singular matrices, too, that is positive."""
    lower = np.linalg.cholesky(covariance)
    root = np.linalg.solve(lower, np.eye(len(lower)))
    return 2 * float(np.sum(np.log(np.diag(lower)))), np.sum(root**2, axis=0)


def draw_inverse_wishart(freedom: float, scale: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw a covariance matrix by Bartlett's decomposition of the Wishart matrix that is its inverse."""
    width = len(scale)
    lower = np.tril(rng.standard_normal((width, width)), -1)
    lower[np.diag_indices(width)] = np.sqrt(rng.chisquare(freedom - np.arange(width)))
    # scale = R R'; the inverse Wishart matrix is R lower'^-1 lower^-1 R', symmetric by construction
    half = np.linalg.solve(lower, np.linalg.cholesky(scale).T)
    return np.asarray(half.T @ half)


class CovarianceSampler(ParameterSampler[Gaussian]):
    """Draws rate, mean and both covariance matrices of a stationary process, and the missing cells.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        NaN where a cell is missing.
    hold_noise : bool
        Leave the covariance of the noise as it is.

    Attributes
    ----------
    table : ndarray of shape (n, D)
        The table with its missing cells as last drawn; at first these are the means of their columns.
    """

    def __init__(self, X: FloatArray, hold_noise: bool) -> None:
        missing = np.isnan(X)
        self._middle, self._spread = column_moments(X)
        super().__init__(np.ascontiguousarray(np.where(missing, self._middle, X)))
        self._first = np.concatenate([[0], np.cumsum(missing.sum(axis=1))]).astype(np.intp)
        self._rows, self._missing = (np.ascontiguousarray(indices) for indices in np.nonzero(missing))
        self._moves_noise = not hold_noise
        self.diffusion, self.noise = CovariancePrior(self._spread), CovariancePrior(NOISE_SHARE * self._spread)

    def missing_cells(self) -> FloatArray:
        """Return the missing cells as last drawn, row by row."""
        return np.asarray(self.table[self._rows, self._missing])

    def state(self) -> FloatArray:
        """Return the cells as last drawn, and strengths and scales of the priors."""
        priors = [np.append(prior.scales, prior.strength) for prior in (self.diffusion, self.noise)]
        return np.concatenate([self.missing_cells(), *priors])

    def restore(self, state: FloatArray) -> None:
        """Continue from a state."""
        width, n_missing = self.table.shape[1], len(self._missing)
        self.table[self._rows, self._missing] = state[:n_missing]
        for k, prior in enumerate((self.diffusion, self.noise)):
            values = state[n_missing + k * (width + 1) :][: width + 1]
            prior.scales, prior.strength = values[:-1].copy(), float(values[-1])

    def initial_process(self, process: Gaussian) -> Gaussian:
        """Return the process with a mean for each column."""
        mean = np.array(np.broadcast_to(process.mean, self.table.shape[1]))
        return process.replace(mean=mean)

    def draw(self, process: Gaussian, tree: Tree, rng: np.random.Generator) -> Gaussian:
        """Draw all parameters and the missing cells, each given the others."""
        n, width = self.table.shape
        mean, basis = process.mean, np.ascontiguousarray(process.basis)
        noise = np.array(process.white_noise)
        centred = self.table - mean
        Z = centred @ basis
        room = np.empty((2, tree.n_nodes, width))
        gaps, spans = np.empty((n, width)), np.empty((n, width))

        def log_likelihood(rate: float, noise: FloatArray) -> float:
            contrasts(tree.children, tree.heights, rate, Z, noise, room, gaps, spans)
            return -0.5 * float(np.sum(np.log(spans)) + np.sum(gaps**2 / spans))

        rate = positive_slice_step(
            lambda trial: log_likelihood(trial, noise) + rate_log_prior(trial), process.rate, RATE_RANGE, rng
        )
        noise_covariance = process.noise
        if self._moves_noise:
            factor = self._noise_factor(noise_covariance, lambda trial: log_likelihood(rate, trial * noise), rng)
            noise, noise_covariance = factor * noise, factor * noise_covariance
        messages = self._messages(tree, rate, noise, basis, centred, Z, rng)
        self.table[self._rows, self._missing] = (centred + mean)[self._rows, self._missing]
        states = np.empty((tree.n_nodes, width))
        draw_states(tree.children, tree.heights, rate, messages, rng.standard_normal(states.shape), states)
        leaves = np.ascontiguousarray(states[:n])
        contrasts(tree.children, tree.heights, rate, leaves, np.zeros(width), room, gaps, spans)
        unwhiten = np.linalg.inv(basis)
        if self._moves_noise:
            noise_covariance = self.noise.draw_covariance((Z - leaves) @ unwhiten, rng)
            self.noise.draw_strength_and_scales(noise_covariance, rng)
        root, left = gaps[-1] @ unwhiten + mean, float(spans[-1, 0])
        mean = self._draw_mean(root, left, process.variance, rng)
        gaps[-1] = (root - mean) @ basis
        covariance = self.diffusion.draw_covariance(gaps / np.sqrt(spans) @ unwhiten, rng)
        self.diffusion.draw_strength_and_scales(covariance, rng)
        return process.replace(rate=rate, mean=mean, variance=covariance, noise=noise_covariance)

    def draw_cells(self, process: Gaussian, tree: Tree, rng: np.random.Generator) -> None:
        """Draw the missing cells only."""
        if len(self._missing):
            basis, centred = np.ascontiguousarray(process.basis), self.table - process.mean
            self._messages(tree, process.rate, np.array(process.white_noise), basis, centred, centred @ basis, rng)
            self.table[self._rows, self._missing] = (centred + process.mean)[self._rows, self._missing]

    def _messages(
        self,
        tree: Tree,
        rate: float,
        noise: FloatArray,
        basis: FloatArray,
        centred: FloatArray,
        Z: FloatArray,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Return the messages of all nodes, after the missing cells have been drawn into `centred` and Z."""
        width = len(basis)
        messages = np.empty((6, tree.n_nodes, width))
        send_up(tree.children, tree.heights, rate, Z, noise, messages)
        if len(self._missing):
            stack, stage = np.empty((2, tree.n_nodes), dtype=np.intp)
            draw_missing(
                *(tree.children, tree.heights, rate, noise, basis, self._first, self._missing),
                rng.standard_normal(len(self._missing)),
                *(messages, centred, Z, stack, stage, np.empty((width + 3, width))),
            )
        return messages

    def _noise_factor(
        self, covariance: FloatArray, log_likelihood: Callable[[float], float], rng: np.random.Generator
    ) -> float:
        """Draw a factor of all noise. States at the leaves are integrated out, as given them it could hardly move."""
        width = len(covariance)
        traces = (
            0.5 * self.noise.strength * float(np.sum(self.noise.scales * _determinant_and_precisions(covariance)[1]))
        )

        def log_density(factor: float) -> float:
            # the inverse Wishart density, times the Jacobian of multiplying all D (D + 1) / 2 entries by a factor
            powers = -0.5 * (self.noise.freedom + width + 1) * width + 0.5 * width * (width + 1)
            return log_likelihood(factor) + (powers - 1) * math.log(factor) - traces / factor

        return positive_slice_step(log_density, 1.0, NOISE_FACTORS, rng)

    def _draw_mean(self, root: FloatArray, left: float, covariance: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw the mean; the root's state differs from it by `left` times the covariance, eq. (13.5)."""
        # Matheron's rule: draw a mean and a root's state from their prior, then correct the mean by the error of the state. It
        # needs no inverse of the covariance matrix, which is nearly singular where columns repeat each other.
        spread = MEAN_SPREAD * self._spread
        mean = self._middle + np.sqrt(spread) * rng.standard_normal(len(root))
        state = mean + math.sqrt(left) * np.linalg.cholesky(covariance) @ rng.standard_normal(len(root))
        return np.asarray(mean + spread * np.linalg.solve(np.diag(spread) + left * covariance, root - state))

    def clock_exponent(self, process: Gaussian) -> float | None:
        """Return minus one: only the rate changes."""
        return -1.0

    def log_clock_ratio(self, process: Gaussian, log_factor: float) -> float:
        """Return the log ratio of the densities of the rates."""
        return rate_log_prior(process.rate / math.exp(log_factor)) - rate_log_prior(process.rate) - log_factor

    def rescale_clock(self, process: Gaussian, log_factor: float) -> tuple[Gaussian, float]:
        """Return the process with another clock, and `log_clock_ratio`."""
        log_ratio = self.log_clock_ratio(process, log_factor)
        if not math.isfinite(log_ratio):
            return process, -math.inf
        return process.replace(rate=process.rate / math.exp(log_factor)), log_ratio

    def log_prior(self, process: Gaussian) -> float:
        """Return the log density of the parameters, of the strengths and scales, up to a constant."""
        away = (process.mean - self._middle) ** 2 / (MEAN_SPREAD * self._spread)
        total = rate_log_prior(process.rate) - 0.5 * float(np.sum(away)) + self.diffusion.log_density(process.variance)
        return total + (self.noise.log_density(process.noise) if self._moves_noise else 0.0)


def rate_log_prior(rate: float) -> float:
    """Return the log density of a rate, up to a constant; minus infinity outside its range."""
    possible = RATE_RANGE[0] <= rate <= RATE_RANGE[1]
    return (PRIOR_SHAPE - 1) * math.log(rate) - rate / PRIOR_SCALE if possible else -math.inf
