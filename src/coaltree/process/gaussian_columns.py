"""Gaussian columns: the messages of their leaves, checks, priors of variance and noise, and the contrasts they are fitted to.

For any noise (and rate) Felsenstein's contrasts give the best variance (and mean) in closed form, eq. (11.1). What is left is a
search over one or two numbers. Everything here works on arrays; the processes that use it are in their own modules.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import quote, to_floats
from ..errors import InputError
from .base import PRIOR_SCALE, PRIOR_SHAPE, WeightedTrees
from .declarations import GaussianColumns
from .kernels.passes import contrasts
from .layout import GaussianMessages, make_forest, read_messages

FloatArray = NDArray[np.float64]

RELATIVE_DEVIATION = 1e-10  # of noise that is always there, as a share of the data's own: see `least_noise`
MIN_VALUE, MAX_VALUE = 1e-60, 1e60  # within which products of a few squares fit into double precision
MIN_NOISE, MAX_NOISE = 1e-100, 1e100
ASYMMETRY = 1e-8  # of a covariance matrix, in units of the standard deviations: more cannot come from rounding

# Noise has an inverse Gamma prior, which keeps it away from 0 where rows repeat and the likelihood would take it there.
NOISE_SHAPE, NOISE_SCALE = 1.0, 0.05
NOISE_RANGE = (1e-6, 1e4)
MAX_ROUNDING = 0.2  # share of a column's variance that may be attributed to rounding
# Variance of a mean's prior in samplers, in units of the column's. A narrow prior around the mean of the cells would attribute to
# the mean what rows share by descent.
MEAN_SPREAD = 100.0
SEARCH_FACTOR = 10.0  # noise and rate are searched for within this factor of where they were


def diffusion_columns(white: FloatArray, log_scales: FloatArray, noise: FloatArray) -> GaussianColumns:
    """Declare columns that diffuse by Brownian motion.

    Parameters
    ----------
    white : ndarray of shape (n, D)
        The rows, in units of the diffusion; NaN is a missing cell.
    log_scales : ndarray of shape (D,)
        Logarithms of the units.
    noise : ndarray of shape () or (D,)
        Variance of the noise in units of the diffusion, one number or one for each column.
    """
    observed = ~np.isnan(white)
    complete = bool(observed.all())
    counts = np.maximum(observed.sum(axis=0), 1)
    with np.errstate(over="ignore", invalid="ignore"):  # such sizes are refused below
        means = np.where(observed, white, 0.0).sum(axis=0) / counts
    centred = np.where(observed, white - means, 0.0)  # nothing depends on the origin, and differences are exact
    check_size(centred)
    spread = (centred**2).sum(axis=0) / counts
    scale = float(spread[observed.any(axis=0)].mean()) if observed.any() else 0.0
    scale = scale if scale > 0 else 1.0
    shared = complete and bool(np.all(noise == noise.flat[0]))
    if shared:
        v = np.full((len(white), 1), np.maximum(noise.flat[0], least_noise(scale)))
    else:
        v = np.where(observed, np.maximum(noise, least_noise(np.where(spread > 0, spread, scale))), np.inf)
    return GaussianColumns(centred, v, shared, bool(np.any(noise > 0)), 0.0, log_scales, scale, means)


def column_deviations(variance: FloatArray, n_columns: int) -> FloatArray:
    """Return the standard deviation of each column, given one variance, one per column, or a covariance matrix."""
    if variance.ndim == 2:
        return np.sqrt(np.diag(variance))
    return np.sqrt(np.broadcast_to(variance, n_columns))


def least_noise(variance: ArrayLike) -> FloatArray:
    """Return a noise that keeps the density of identical rows finite and is too small to affect any other row.

    Its standard deviation is 1e-10 of the data's, and less where the data are so far apart that heights grow as their distance,
    not as its square.
    """
    variance = np.asarray(variance, dtype=np.float64)
    least: FloatArray = np.minimum(RELATIVE_DEVIATION**2 * variance, 1e-16 * np.sqrt(variance))
    return least


def check_size(centred: FloatArray) -> None:
    """Raise for columns so wide or so narrow that squares overflow or underflow."""
    largest = np.abs(centred).max(axis=0)
    wrong = ~((largest == 0) | ((largest > MIN_VALUE) & (largest < MAX_VALUE)))  # also what is NaN, by overflow
    if np.any(wrong):
        column = int(np.argmax(wrong))
        raise InputError(
            f"The values of column {column} lie {largest[column]:g} standard deviations of the diffusion from their mean; it "
            f"must be between {MIN_VALUE:g} and {MAX_VALUE:g}: rescale the column or its variance."
        )


def check_noise(noise: ArrayLike) -> FloatArray:
    """Return the noise of a Gaussian process as a read-only array: one number, one per column, or a covariance matrix."""
    checked = to_floats(noise)
    checked = np.array(np.nan) if checked is None else checked
    if checked.ndim == 2 and checked.size:
        checked = check_covariance(checked, "noise")
        checked.setflags(write=False)
        return checked
    allowed = (checked == 0) | ((checked >= MIN_NOISE) & (checked <= MAX_NOISE))
    if checked.ndim > 1 or checked.size == 0 or not np.all(allowed):
        raise InputError(
            f"noise is {quote(noise)}; it must be 0 or a number from {MIN_NOISE:g} to {MAX_NOISE:g}, the variance of the "
            "noise in units of the diffusion: one for all columns, or one per column. With a covariance matrix of the diffusion, "
            "it may also be a covariance matrix, in the units of the columns."
        )
    checked.setflags(write=False)
    return checked


def check_variance(variance: ArrayLike) -> FloatArray:
    """Return the variance of a Gaussian process as a read-only array: one number, one per column, or a covariance matrix."""
    array = to_floats(variance)
    if array is None:
        raise InputError(f"variance is {quote(variance)}; it must be one number, (D,) or (D, D).")
    if array.ndim > 2 or (array.ndim == 2 and array.shape[0] != array.shape[1]) or array.size == 0:
        raise InputError(f"variance has shape {array.shape}; it must be one number, (D,) or (D, D).")
    if not np.all(np.isfinite(array)):
        raise InputError("variance holds numbers that are not finite; variances must be finite and positive.")
    if array.ndim < 2:
        if np.any(array <= 0):
            raise InputError(f"variance holds {array.min():g}; variances must be positive.")
    else:
        array = check_covariance(array, "variance")
    array.setflags(write=False)
    return array


def check_covariance(array: FloatArray, name: str) -> FloatArray:
    """Return a covariance matrix, made exactly symmetric: a computed one may differ by rounding."""
    if array.shape[0] != array.shape[1] or not np.all(np.isfinite(array)):
        raise InputError(f"{name} has shape {array.shape}; a covariance matrix must be square and finite.")
    deviations = np.sqrt(np.abs(np.diag(array)))
    half = 0.5 * array  # sums and differences of halves do not overflow
    if np.any(np.abs(half - half.T) > 0.5 * ASYMMETRY * np.outer(deviations, deviations)):
        raise InputError(f"{name} is a matrix that is not symmetric; a covariance matrix must be.")
    array = half + half.T
    try:
        np.linalg.cholesky(array)
    except np.linalg.LinAlgError:
        raise InputError(f"{name} is a matrix that is not positive definite; a covariance matrix must be.") from None
    return array


def scale_coordinates(points: FloatArray, variance: float) -> NDArray[np.float32]:
    """Return points in single precision whose squared distances are exponents of a Gaussian with this variance."""
    largest = float(np.nanmax(np.abs(points), initial=0.0))
    scale = math.sqrt(2 * variance) if variance > 0 else 0.0
    return (points / max(scale, 1e-12 * largest, 1e-300)).astype(np.float32)


class GaussianPrior(NamedTuple):
    """The priors of a table's real columns, each in the column's own units."""

    spread: FloatArray  # (columns,), variance of the observed cells; 1 where they do not vary
    middle: FloatArray  # (columns,), their mean; 0 where there are none
    rounding: FloatArray  # (columns,), variance due to rounding; 0 if noise is held
    hold_noise: bool  # without a prior or a lower limit: the user wants it so
    mean_spread: float = 1.0  # variance of a mean's prior, in units of `spread`

    @classmethod
    def from_table(cls, X: FloatArray, hold_noise: bool) -> Self:
        """Return the priors for the columns of a table.

        The variance of rounding is a twelfth of the squared step between values. Columns with few distinct values, such as
        counts, could otherwise be explained by states that repeat exactly, whose density is unbounded.
        """
        observed = ~np.isnan(X)
        middle, spread = column_moments(X)
        steps = np.zeros(X.shape[1])
        for d, column in enumerate(X.T):
            gaps = np.diff(np.unique(column[observed[:, d]]))
            steps[d] = gaps.min() if len(gaps) else 0.0
        if hold_noise:
            steps[:] = 0.0
        return cls(spread, middle, np.minimum(steps**2 / 12, MAX_ROUNDING * spread), hold_noise)

    def log_density(self, variance: FloatArray, noise: FloatArray | float) -> float:
        """Return the log density of variance and noise, up to a constant; of the variance only if the noise is held."""
        if np.any(np.asarray(noise) > 0):
            variances = column_deviations(variance, len(self.spread)) ** 2
            least = self.least_variance(noise)
            if not variance.ndim:
                variances, least = variances[:1], self._pool_least(least, noise)
            if np.any(variances < (1 - 1e-9) * least):
                return -math.inf
        total = self._variance_log_density(variance)
        if not self.hold_noise:
            total += noise_log_prior(noise)
        return total

    def least_variance(self, noise: FloatArray | float) -> FloatArray:
        """Return the variance of each column with which its noise is that of rounding."""
        noises = np.broadcast_to(noise, len(self.spread))
        return np.where(noises > 0, self.rounding / np.where(noises > 0, noises, 1.0), 0.0)

    def _pool_least(self, least: FloatArray, noise: FloatArray | float) -> FloatArray:
        """Return the least common variance: with one noise rounding counts on average, else in every column."""
        return np.asarray(least.max() if np.ndim(noise) else least.mean())

    def _variance_log_density(self, variance: FloatArray) -> float:
        if variance.ndim == 2:
            _, log_determinant = np.linalg.slogdet(variance)
            trace = float(np.trace(np.linalg.solve(variance, np.diag(self.spread))))
            return -(PRIOR_SHAPE - 1) * float(log_determinant) - trace / PRIOR_SCALE
        scaled = variance / (self.spread if variance.ndim else self.spread.mean())
        return -float(np.sum((PRIOR_SHAPE - 1) * np.log(scaled) + 1 / (PRIOR_SCALE * scaled)))

    def best_variance(
        self, shape: int, squares: FloatArray, counts: FloatArray, noise: FloatArray | float
    ) -> FloatArray:
        """Return the most probable variance, eq. (11.1), given contrasts: one (shape 0), one per column (1) or a matrix."""
        least = self.least_variance(noise)
        if shape == 2:
            # of a Wishart prior for the precision that is the Gamma prior where there is one column
            variance = (2 / PRIOR_SCALE * np.diag(self.spread) + squares) / (2 * PRIOR_SHAPE - 2 + counts[0])
            return np.asarray(variance + np.diag(np.maximum(least - np.diag(variance), 0.0)))
        sums, spread = squares, self.spread
        if shape == 0:
            sums, spread, counts = sums.sum(), spread.mean(), counts.sum()
            least = self._pool_least(least, noise)
        return np.maximum((spread / PRIOR_SCALE + 0.5 * sums) / (PRIOR_SHAPE - 1 + 0.5 * counts), least)

    def draw_variance(
        self,
        variance: FloatArray,
        squares: FloatArray,
        counts: FloatArray,
        noise: FloatArray | float,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Draw a variance of the same shape given contrasts, eq. (13.4); keep the old one where the draw is impossible."""
        least = self.least_variance(noise)
        if variance.ndim == 2:
            from scipy.stats import wishart  # only draws of full matrices need it, and it takes long to import

            # the Wishart distribution of the precision whose mode `best_variance` returns
            scale = np.linalg.inv(2 / PRIOR_SCALE * np.diag(self.spread) + squares)
            freedom = 2 * PRIOR_SHAPE - 1 + counts[0] + len(scale)
            draw = np.linalg.inv(np.atleast_2d(wishart.rvs(freedom, scale, random_state=rng)))
            draw = 0.5 * (draw + draw.T)  # rounding leaves an inverse not quite symmetric
            return np.asarray(draw if np.all(np.diag(draw) >= least) else variance)
        sums, spread = squares, self.spread
        if variance.ndim == 0:
            sums, spread, counts = sums.sum(), spread.mean(), counts.sum()
            least = self._pool_least(least, noise)
        draw = (spread / PRIOR_SCALE + 0.5 * sums) / rng.standard_gamma(PRIOR_SHAPE + 0.5 * counts)
        return np.asarray(np.where(draw >= least, draw, variance))


def column_moments(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of the observed cells of each column, 1 for a constant one; raise where squares overflow."""
    observed = ~np.isnan(X)
    counts = np.maximum(observed.sum(axis=0), 1)
    with np.errstate(over="ignore", invalid="ignore"):
        middle = np.where(observed, X, 0.0).sum(axis=0) / counts
        spread = (np.where(observed, X - middle, 0.0) ** 2).sum(axis=0) / counts
    wrong = ~((spread <= MAX_VALUE**4) & ((spread == 0) | (spread >= MIN_VALUE**4)))
    if np.any(wrong):
        raise InputError(
            f"The values of column {int(np.argmax(wrong))} are too large, or too close to each other, for their variance to be "
            f"fitted: their standard deviation must be from {MIN_VALUE**2:g} to {MAX_VALUE**2:g}; rescale the column."
        )
    return middle, np.where(spread > 0, spread, 1.0)


def scale_to_range(cells: FloatArray, variance: FloatArray) -> FloatArray:
    """Return variances that are all the same share of the squared range of their column, as if all columns had one range.

    Columns in which a few cells are far from all others have a small variance for their range. They count less for the tree, and
    columns with two groups of values count more. Clusters of many published tables are recovered better than with equal variances
    (Milligan and Cooper, 1988, "A study of standardization of variables in cluster analysis"; `benchmarks/clusters.py`).

    Parameters
    ----------
    cells : ndarray of shape (n, D)
        NaN is a missing cell.
    variance : ndarray of shape (D,)
        Of the observed cells.

    Returns
    -------
    ndarray of shape (D,)
        The mean of ``variance`` over it is 1. Constant columns keep their variance.

    Examples
    --------
    >>> import numpy as np
    >>> cells = np.array([[0.0, 0.0], [0.0, 1.0], [2.0, 1.0], [2.0, 8.0]])
    >>> scale_to_range(cells, cells.var(axis=0)).round(2).tolist()
    [0.82, 13.12]
    """
    if not len(cells):
        return variance
    low = np.where(np.isnan(cells), np.inf, cells).min(axis=0)
    high = np.where(np.isnan(cells), -np.inf, cells).max(axis=0)
    varies = high > low
    if not varies.any():
        return variance
    weight = np.ones(len(variance))
    weight[varies] = (np.sqrt(variance[varies]) / (high[varies] - low[varies])) ** 2
    weight[varies] /= weight[varies].mean()
    return variance / weight


def noise_log_prior(noise: FloatArray | float) -> float:
    """Return the log density of a noise, or of the noises of all columns, up to a constant."""
    if np.any(np.asarray(noise) <= 0):
        return -math.inf
    return float(np.sum(-(NOISE_SHAPE + 1) * np.log(noise) - NOISE_SCALE / np.asarray(noise)))


class Contrasts(NamedTuple):
    """Weighted sums over the merges of all trees, and the messages at their roots, for variance 1."""

    counts: FloatArray  # (columns,), merges with both sides observed
    log_variances: FloatArray  # (columns,)
    scaled: (
        FloatArray  # (merges, columns), contrasts over their standard deviations, times the root of the tree's weight
    )
    root_means: FloatArray  # (trees, columns)
    root_variances: FloatArray  # (trees, columns), infinite where nothing was observed
    weights: FloatArray  # (trees,)

    @classmethod
    def from_trees(
        cls, trees: WeightedTrees, prior: GaussianPrior, heights: list[FloatArray], noise: FloatArray | float
    ) -> Self:
        """Climb all trees with the given heights, which may be transformed."""
        n, n_columns = trees.X.shape
        units = np.sqrt(prior.spread)  # in which nothing is too large or too small
        X = (trees.X - prior.middle) / units
        checked_noise = check_noise(noise)
        counts, logs = np.zeros(n_columns), np.zeros(n_columns)
        scaled, means, variances = [], [], []
        for tree, tree_heights, weight in zip(trees.trees, heights, trees.weights, strict=True):
            gaps, spans = np.empty((n - 1, n_columns)), np.empty((n - 1, n_columns))
            forest = make_forest([diffusion_columns(X, np.zeros(n_columns), checked_noise)], n)
            slot = np.arange(tree.n_nodes)
            contrasts(forest, tree.children, tree_heights, slot, gaps, spans)
            root = read_messages(forest, slot[-1:])[0]
            assert isinstance(root, GaussianMessages)
            missing = np.isnan(spans)
            gaps[missing], spans[missing] = 0.0, 1.0
            counts += weight * (n - 1 - missing.sum(axis=0))
            logs += weight * np.log(spans).sum(axis=0)
            scaled.append(gaps * (math.sqrt(weight) * units / np.sqrt(spans)))
            means.append(prior.middle + units * (root.mean[0] + root.center))
            variances.append(root.spread[0])
        return cls(counts, logs, np.concatenate(scaled), np.array(means), np.array(variances), trees.weights)

    def squares(self, shape: int) -> FloatArray:
        """Return the sums of squares of the scaled contrasts, and of their products for a variance of `shape` 2."""
        if shape == 2:
            return self.scaled.T @ self.scaled
        return np.asarray(np.einsum("kd,kd->d", self.scaled, self.scaled))

    def log_density(self, variance: FloatArray) -> float:
        """Return the log density of the contrasts."""
        constant = -0.5 * float(np.sum(self.counts) * math.log(2 * math.pi) + np.sum(self.log_variances))
        if variance.ndim == 2:
            _, log_determinant = np.linalg.slogdet(variance)
            trace = float(np.trace(np.linalg.solve(variance, self.squares(2))))
            return constant - 0.5 * (float(self.counts[0]) * float(log_determinant) + trace)
        return constant - 0.5 * float(np.sum(self.counts * np.log(variance) + self.squares(1) / variance))

    def to_equilibrium(self, remaining: FloatArray) -> Contrasts:
        """Return the sums with the remaining distance to the equilibrium added to the variances at the roots."""
        return self._replace(root_variances=self.root_variances + remaining)

    def with_roots(self, mean: FloatArray) -> Contrasts:
        """Return the sums with the roots included, as contrasts to a mean."""
        is_observed = self.root_variances[0] < math.inf
        variances = np.where(is_observed, self.root_variances, 1.0)
        gaps = np.where(is_observed, self.root_means - mean, 0.0) * np.sqrt(self.weights[:, None] / variances)
        return self._replace(
            counts=self.counts + is_observed,
            log_variances=self.log_variances + self.weights @ np.where(is_observed, np.log(variances), 0.0),
            scaled=np.concatenate([self.scaled, gaps]),
        )


class Equilibrium(NamedTuple):
    """Where the roots of trees come from under a stationary process."""

    mean: FloatArray  # (columns,)
    remaining: FloatArray  # (trees, 1), share of the equilibrium's variance above each root


def column_log_density(
    d: int,
    variance: FloatArray,
    trees: WeightedTrees,
    prior: GaussianPrior,
    heights: list[FloatArray],
    equilibrium: Equilibrium | None,
) -> Callable[[float], float]:
    """Return the log density of one column and its noise as a function of the noise; all other parameters are given.

    Parameters
    ----------
    d : int
        The column.
    variance : ndarray of shape () or (D,)
    trees : WeightedTrees
    prior : GaussianPrior
    heights : list of ndarray
        Of each tree, transformed for a stationary process.
    equilibrium : Equilibrium, optional
        Of a stationary process.
    """
    column_variance = column_deviations(variance, len(prior.spread))[d] ** 2
    column_trees = trees.select_columns([d])
    column_prior = prior._replace(spread=prior.spread[[d]], middle=prior.middle[[d]], rounding=prior.rounding[[d]])

    def log_density(noise: float) -> float:
        if column_variance < (1 - 1e-9) * column_prior.least_variance(noise)[0]:
            return -math.inf
        sums = Contrasts.from_trees(column_trees, column_prior, heights, noise)
        if equilibrium is not None:
            sums = sums.to_equilibrium(equilibrium.remaining).with_roots(equilibrium.mean[[d]])
        return sums.log_density(np.asarray(column_variance)) + noise_log_prior(noise)

    return log_density


def best_column_noises(
    variance: FloatArray,
    noise: FloatArray,
    trees: WeightedTrees,
    prior: GaussianPrior,
    heights: list[FloatArray],
    equilibrium: Equilibrium | None = None,
) -> FloatArray:
    """Return the best noise of each column, all other parameters given, so that columns are independent."""
    n_columns = len(prior.spread)
    # less noise than that of rounding has no density
    least = np.clip(prior.rounding / column_deviations(variance, n_columns) ** 2, *NOISE_RANGE)
    starts = np.broadcast_to(noise, n_columns).tolist()
    return np.array(
        [
            maximize_positive(
                column_log_density(d, variance, trees, prior, heights, equilibrium), start, (low, NOISE_RANGE[1])
            )
            for d, (start, low) in enumerate(zip(starts, least.tolist(), strict=True))
        ]
    )


def maximize_positive(function: Callable[[float], float], start: float, allowed: tuple[float, float]) -> float:
    """Return where a function of a positive number is largest: near the start if that is positive, else anywhere."""
    from scipy.optimize import minimize_scalar  # slow to import, and only fits need it

    low, high = math.log(allowed[0]), math.log(allowed[1])
    if start > 0:
        middle = min(max(math.log(start), low), high)
        low, high = max(middle - math.log(SEARCH_FACTOR), low), min(middle + math.log(SEARCH_FACTOR), high)
    else:
        trials = np.linspace(low, high, 12)
        best = int(np.argmax([function(math.exp(x)) for x in trials]))
        low, high = trials[max(best - 1, 0)], trials[min(best + 1, len(trials) - 1)]
    result = minimize_scalar(
        lambda x: -function(math.exp(x)), bounds=(low, high), method="bounded", options={"xatol": 0.01, "maxiter": 25}
    )
    return math.exp(result.x)
