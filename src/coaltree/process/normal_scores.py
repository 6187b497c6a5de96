"""Normal scores: monotone maps after which each real column, taken alone, is standard Gaussian.

Diffusion makes every column Gaussian. Columns that are skewed, rounded, or mostly one value are not. Half of the draws that
predictions are averaged over therefore have the columns' normal scores in place of the columns, eq. (9.8).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

MIN_VALUES = 20  # distinct observed values that a column needs
MIN_EIGENVALUE = 1e-9  # of the correlations of columns; below, columns are linearly dependent
MAX_KERNELS = 200  # of columns with more cells, so many quantiles have kernels
# A kernel is as wide as the distance to the k-th next value, times a factor; which pair of them is chosen by leaving out values.
WIDTHS = ((4, 1.0), (4, 2.0), (16, 1.0), (16, 2.0))
MIN_WIDTH = 1e-3  # of a kernel, in standard deviations of the column
# Range of the weight of one Gaussian for the whole column, which gives the map its tails.
GAUSSIAN_SHARES = (0.02, 0.98)
N_WEIGHT_STEPS = 20
TAIL = 3.0  # knots beyond the outermost values, in standard deviations; further out the map is linear
N_TAIL_KNOTS = 8
MIN_STEP = 1e-9  # between the scores of adjacent knots
# Moments of values whose scores are Gaussian are looked up in tables, by mean and standard deviation of the scores.
MAX_MEAN, MEAN_STEP = 8.0, 0.01
MIN_SD, MAX_SD, N_SDS = 0.02, 4.0, 24


class Marginal(NamedTuple):
    """An increasing map of one column, linear between knots and beyond them."""

    knots: FloatArray  # (K,), increasing
    scores: FloatArray  # (K,), increasing: the values of the map at the knots

    @classmethod
    def fit(cls, values: FloatArray) -> Self | None:
        """Estimate the distribution of a column; None if one Gaussian predicts values that are left out as well.

        The density is a mixture of one Gaussian for the whole column, and of kernels at the values that are narrow where values
        are close.

        Parameters
        ----------
        values : ndarray of shape (n,)
            Observed cells.
        """
        values = np.sort(values)
        if len(np.unique(values)) < MIN_VALUES:
            return None
        if len(values) > MAX_KERNELS:
            values = np.quantile(values, (np.arange(MAX_KERNELS) + 0.5) / MAX_KERNELS)
        with np.errstate(over="ignore"):
            middle, spread = float(values.mean()), float(values.std())
        if not (spread > 0 and math.isfinite(spread)):
            return None
        values = (values - middle) / spread
        gaussian = np.exp(-0.5 * values**2) / math.sqrt(2 * math.pi)
        gaps = np.abs(values[:, None] - values)
        ordered = np.sort(gaps, axis=1)
        best, best_widths, best_share = float(np.log(gaussian).sum()), None, 1.0
        for k, factor in WIDTHS:
            widths = np.maximum(factor * ordered[:, k], MIN_WIDTH)
            density = np.exp(-0.5 * (gaps / widths) ** 2) / (math.sqrt(2 * math.pi) * widths)
            np.fill_diagonal(density, 0.0)
            left_out_density = density.sum(axis=1) / (len(values) - 1)
            share = 0.5
            for _ in range(N_WEIGHT_STEPS):  # of expectation-maximisation
                weighted = share * gaussian
                share = float(
                    np.clip(np.mean(weighted / (weighted + (1 - share) * left_out_density)), *GAUSSIAN_SHARES)
                )
            score = float(np.log(share * gaussian + (1 - share) * left_out_density).sum())
            if score > best:
                best, best_widths, best_share = score, widths, share
        if best_widths is None:
            return None
        return cls._of_mixture(values, best_widths, best_share, middle, spread)

    @classmethod
    def _of_mixture(cls, values: FloatArray, widths: FloatArray, share: float, middle: float, spread: float) -> Self:
        from scipy.special import ndtr, ndtri  # slow to import, and only predictions need it

        tails = np.linspace(0, TAIL, N_TAIL_KNOTS + 1)[1:]
        knots = np.unique(
            np.concatenate([values[0] - tails, values[-1] + tails, values, values - widths, values + widths])
        )
        away = (knots[:, None] - values) / widths
        below = (1 - share) * ndtr(away).mean(axis=1) + share * ndtr(knots)
        above = (1 - share) * ndtr(-away).mean(axis=1) + share * ndtr(-knots)
        scores = np.where(below < 0.5, ndtri(below), -ndtri(above))
        # Knots that rounding puts too close for a slope are left out.
        points = middle + spread * knots
        min_step = max(MIN_STEP * spread, float(np.spacing(np.abs(points).max())))
        indices = [0]
        for k in range(1, len(knots)):
            if scores[k] - scores[indices[-1]] > MIN_STEP and points[k] - points[indices[-1]] > min_step:
                indices.append(k)
        return cls(points[indices], scores[indices])

    @classmethod
    def standardising(cls, middle: float, spread: float) -> Self:
        """Return the linear map that only standardises a column."""
        spread = max(spread, 4 * float(np.spacing(abs(middle))))
        return cls(np.array([middle - spread, middle + spread]), np.array([-1.0, 1.0]))

    def _segments(self, at: FloatArray, points: FloatArray) -> NDArray[np.intp]:
        return np.clip(np.searchsorted(points, at, side="right") - 1, 0, len(points) - 2)

    def _slopes(self) -> FloatArray:
        return np.diff(self.scores) / np.diff(self.knots)

    def apply(self, values: FloatArray) -> FloatArray:
        """Return the scores of values; NaN stays NaN."""
        k = self._segments(values, self.knots)
        return np.asarray(self.scores[k] + self._slopes()[k] * (values - self.knots[k]))

    def log_slope(self, values: FloatArray) -> FloatArray:
        """Return the log of the map's derivative."""
        return np.asarray(np.log(self._slopes())[self._segments(values, self.knots)])

    def invert(self, scores: FloatArray) -> FloatArray:
        """Return the values that have these scores; NaN stays NaN."""
        k = self._segments(scores, self.scores)
        return np.asarray(self.knots[k] + (scores - self.scores[k]) / self._slopes()[k])

    def moment_table(self) -> MomentTable:
        """Return mean and standard deviation of values whose scores are Gaussian, for a grid of Gaussians.

        Convolutions with the densities of Gaussians around 0, by Fourier transforms.
        """
        n_means = 2 * round(MAX_MEAN / MEAN_STEP) + 1
        size = 1 << (2 * n_means).bit_length()
        at = (np.arange(size) - size // 2) * MEAN_STEP
        inside = np.abs(at) < MAX_MEAN + 0.5 * MEAN_STEP
        # Standardised, so that squares lose no digits; held far out, where only the rounding of transforms gets.
        middle, unit = float(self.knots.mean()), float(self.knots.std())
        values = (self.invert(np.clip(at, at[0] / 2, at[-1] / 2)) - middle) / unit
        transformed = np.fft.rfft(np.stack([values, values**2]))
        means, sds = np.empty((2, N_SDS, n_means))
        for k, sd in enumerate(np.geomspace(MIN_SD, MAX_SD, N_SDS).tolist()):
            kernel = np.exp(-0.5 * (at / sd) ** 2)
            weights = np.fft.rfft(np.fft.ifftshift(kernel / kernel.sum()))
            mean, square = np.fft.irfft(transformed * weights, size)[:, inside]
            means[k], sds[k] = middle + unit * mean, unit * np.sqrt(np.maximum(square - mean**2, 0.0))
        return MomentTable(means, sds)


class MomentTable(NamedTuple):
    """Means and standard deviations of values, on a grid of standard deviations and means of their scores."""

    means: FloatArray  # (N_SDS, means)
    sds: FloatArray

    def look_up(self, mean: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Interpolate between the four nearest Gaussians of the grid."""
        across = np.clip((mean + MAX_MEAN) / MEAN_STEP, 0, self.means.shape[1] - 1.001)
        down = np.clip(np.log(sd / MIN_SD) * ((N_SDS - 1) / math.log(MAX_SD / MIN_SD)), 0, N_SDS - 1.001)
        i, j = down.astype(np.intp), across.astype(np.intp)
        down, across = down - i, across - j

        def interpolate(table: FloatArray) -> FloatArray:
            upper = table[i, j] + across * (table[i, j + 1] - table[i, j])
            lower = table[i + 1, j] + across * (table[i + 1, j + 1] - table[i + 1, j])
            return np.asarray(upper + down * (lower - upper))

        return interpolate(self.means), interpolate(self.sds)


@dataclass(frozen=True, eq=False)
class NormalScores:
    """The maps of the first columns of a table, which are its real ones."""

    marginals: tuple[Marginal, ...]

    @cached_property
    def _moment_tables(self) -> list[MomentTable]:
        return [marginal.moment_table() for marginal in self.marginals]

    @classmethod
    def fit(cls, X: FloatArray, n_real: int) -> Self | None:
        """Return the maps of a table's real columns; None if all are as good as Gaussian, or one is a total of others.

        Parameters
        ----------
        X : ndarray of shape (n, D)
            NaN is a missing cell.
        n_real : int
            Number of real columns, which come first.
        """
        columns = [column[~np.isnan(column)] for column in X.T[:n_real]]
        marginals = [Marginal.fit(column) for column in columns]
        if all(marginal is None for marginal in marginals) or _are_linearly_dependent(X[:, :n_real]):
            return None
        return cls(
            tuple(
                marginal or Marginal.standardising(float(np.mean(column)) if len(column) else 0.0, _spread(column))
                for marginal, column in zip(marginals, columns, strict=True)
            )
        )

    def apply(self, X: FloatArray) -> FloatArray:
        """Return a table with scores in place of its real cells."""
        X = X.copy()
        for d, marginal in enumerate(self.marginals):
            X[..., d] = marginal.apply(X[..., d])
        return X

    def log_slopes(self, X: FloatArray) -> FloatArray:
        """Return the log Jacobian of the observed real cells of each row."""
        total = np.zeros(len(X))
        for d, marginal in enumerate(self.marginals):
            observed = ~np.isnan(X[:, d])
            total[observed] += marginal.log_slope(X[observed, d])
        return total

    def invert(self, X: FloatArray) -> FloatArray:
        """Return a table with real cells in place of their scores."""
        X = X.copy()
        for d, marginal in enumerate(self.marginals):
            X[..., d] = marginal.invert(X[..., d])
        return X

    def moments(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and variances of real cells whose scores are Gaussian; the last axis holds the columns."""
        made, made_variance = np.empty_like(mean), np.empty_like(variance)
        for d, (marginal, table) in enumerate(zip(self.marginals, self._moment_tables, strict=True)):
            score, sd = mean[..., d], np.sqrt(variance[..., d])
            value, value_sd = table.look_up(score, np.clip(sd, MIN_SD, MAX_SD))
            # Outside the grid: the map is nearly linear over so little, or so far out.
            outside = (sd < MIN_SD) | (sd > MAX_SD) | (np.abs(score) > MAX_MEAN)
            if outside.any():
                value[outside] = marginal.invert(score[outside])
                value_sd[outside] = np.exp(-marginal.log_slope(value[outside])) * sd[outside]
            made[..., d], made_variance[..., d] = value, value_sd**2
        return made, made_variance


def _are_linearly_dependent(real: FloatArray) -> bool:
    """Return whether a column is a linear function of others, as totals and copies are. Maps would hide that."""
    complete = real[~np.isnan(real).any(axis=1)]
    if not len(complete):
        return False
    complete = complete / np.maximum(np.abs(complete).max(axis=0), np.finfo(float).tiny)  # squares must not overflow
    complete = complete[:, complete.std(axis=0) > 0]
    n, n_columns = complete.shape
    if n <= n_columns + 1 or n_columns < 2:  # any columns are dependent then
        return False
    return bool(np.linalg.eigvalsh(np.corrcoef(complete, rowvar=False))[0] < MIN_EIGENVALUE)


def _spread(values: FloatArray) -> float:
    """Return the standard deviation; 1 if the values do not vary."""
    with np.errstate(over="ignore"):
        spread = float(np.std(values)) if len(values) else 0.0
    if not math.isfinite(spread):
        return float(np.abs(values).max())
    return spread if spread > 0 else 1.0
