"""The parameters of a process, drawn from their posterior given a tree; their priors are those of `calibrate`.

Variances and means are drawn from their own distributions, eq. (13.4) and (13.5), noise and rate of Gaussian processes by slices.
Rates and equilibria of mutation are drawn together with what nobody saw, eq. (13.6): the states at all nodes, and how often on
each branch a state was drawn anew.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..tree.tree import Tree
from .base import RATE_RANGE, SCALE, SHAPE, Evidence, Process
from .brownian import Brownian
from .covariance_sampling import MEAN_SPREAD, CorrelatedDraws
from .gaussian import Gaussian
from .gaussian_calibration import NOISE_RANGE, Contrasts, GaussianPrior, column_log_density
from .kernels.passes import draw_redraws
from .mixed import Mixed
from .multinomial import Multinomial
from .multinomial_calibration import MOST_NOISE, SITE_NOISE_PRIOR, multinomial_log_prior
from .ornstein_uhlenbeck import OrnsteinUhlenbeck
from .sampler import ParameterDraws, positive_slice_step

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

LEAST_SHARE = 1e-12  # of a state, below which an equilibrium is not drawn


def parameter_draws(process: Process, X: FloatArray, hold_noise: bool) -> ParameterDraws:
    """Return how the parameters of a resolved process are drawn.

    Parameters
    ----------
    process : Process
    X : ndarray of shape (n, D)
    hold_noise : bool
        Leave the noise of real columns as it is.
    """
    if isinstance(process, Mixed):
        return _MixedDraws(process, X, hold_noise)
    if isinstance(process, Brownian):
        return _BrownianDraws(process, X, hold_noise)
    if isinstance(process, OrnsteinUhlenbeck):
        correlated = process.variance.ndim == 2 and process.noise.ndim == 2
        return CorrelatedDraws(X, hold_noise) if correlated else _StationaryDraws(process, X, hold_noise)
    if isinstance(process, Multinomial):
        return _MultinomialDraws(process, X, hold_noise)
    raise InputError(f"The parameters of {process!r} cannot be drawn; only those of coaltree's own processes can.")


class _GaussianDraws(ParameterDraws):
    """What Brownian motion and the stationary diffusion have in common."""

    def __init__(self, process: Gaussian, X: FloatArray, hold_noise: bool) -> None:
        super().__init__(X)
        if process.noise.ndim == 2:
            raise InputError(
                "The covariance of noise is drawn for OrnsteinUhlenbeck only; Brownian has to have one number."
            )
        self._moves_noise = bool(np.all(process.noise > 0)) and not hold_noise
        prior = GaussianPrior.of(X, "fitted" if self._moves_noise else "held")
        self._prior = prior._replace(mean_spread=MEAN_SPREAD)

    def log_prior(self, process: Process) -> float:
        assert isinstance(process, Gaussian)
        return self._prior.log_density(process)

    def _possible_noise(self, process: Gaussian) -> FloatArray:
        """Return the noise, or, if that is less than what rounding gave the cells, a little more than that."""
        rounding, own = self._prior.rounding, process.deviations(len(self._prior.rounding)) ** 2
        if process.noise.ndim:
            return np.maximum(process.noise, 1.01 * rounding / own)
        least = float(np.max(rounding / own)) if process.variance.ndim else float(rounding.mean() / own.mean())
        return np.maximum(process.noise, 1.01 * least)

    def _contrasts(self, tree: Tree, heights: FloatArray, noise: FloatArray | float) -> Contrasts:
        return Contrasts.of(self._evidence(tree), self._prior, [heights], noise)

    def _evidence(self, tree: Tree) -> Evidence:
        return Evidence([tree], np.ones(1), self.table)

    def _redrawn_noises(
        self, process: Gaussian, tree: Tree, heights: FloatArray, remaining: FloatArray | None, rng: np.random.Generator
    ) -> FloatArray:
        """Draw the noise of each column in turn; given all else, columns are independent."""
        drawn = []
        for d, noise in enumerate(process.noise):
            density = column_log_density(process, d, self._evidence(tree), self._prior, [heights], remaining)
            drawn.append(positive_slice_step(density, float(noise), NOISE_RANGE, rng))
        return np.array(drawn)


class _BrownianDraws(_GaussianDraws):
    """Variance and noise of Brownian motion."""

    def first(self, process: Process) -> Process:
        assert isinstance(process, Brownian)
        return Brownian(process.variance, self._possible_noise(process))

    def redrawn(self, process: Process, tree: Tree, rng: np.random.Generator) -> Process:
        assert isinstance(process, Brownian)
        variance, noise = process.variance, process.noise

        def log_density(trial: float) -> float:
            sums = self._contrasts(tree, tree.heights, trial)
            return sums.log_density(variance) + self._prior.log_density(Brownian(variance, trial))

        if self._moves_noise and noise.ndim:
            noise = self._redrawn_noises(process, tree, tree.heights, None, rng)
        elif self._moves_noise:
            noise = np.asarray(positive_slice_step(log_density, float(noise), NOISE_RANGE, rng))
        sums = self._contrasts(tree, tree.heights, noise)
        return Brownian(self._prior.drawn_variance(variance, sums.squares, sums.counts, noise, rng), noise)

    def clock_powers(self, process: Process) -> float | None:
        assert isinstance(process, Brownian)
        if process.noisy and not self._moves_noise:  # noise is in units of the diffusion, and would change
            return None
        n_columns = len(process.variance) if process.variance.ndim else 1
        precisions = n_columns * (n_columns + 1) / 2 if process.variance.ndim == 2 else n_columns
        return precisions + (process.noise.size if process.noisy else 0)


class _StationaryDraws(_GaussianDraws):
    """Rate, mean, variance and noise of the diffusion that has an equilibrium."""

    def first(self, process: Process) -> Process:
        assert isinstance(process, OrnsteinUhlenbeck)
        mean = np.array(np.broadcast_to(process.mean, self.table.shape[1]))
        return OrnsteinUhlenbeck(process.rate, mean, process.variance, self._possible_noise(process))

    def redrawn(self, process: Process, tree: Tree, rng: np.random.Generator) -> Process:
        assert isinstance(process, OrnsteinUhlenbeck)
        rate, mean, variance, noise = process.rate, process.mean, process.variance, process.noise

        def sums_at(rate: float, noise: FloatArray | float) -> Contrasts:
            # Brownian motion in the height 1 - exp(-2 rate h), and N(mean, variance exp(-2 rate h)) at the root
            sums = self._contrasts(tree, -np.expm1(-2 * rate * tree.heights), noise)
            return sums.to_equilibrium(np.array([[math.exp(-2 * rate * tree.heights[-1])]]))

        def log_density(rate: float, noise: FloatArray | float) -> float:
            known = sums_at(rate, noise).with_roots(mean).log_density(variance)
            return known + self._prior.log_density(OrnsteinUhlenbeck(rate, mean, variance, noise))

        rate = positive_slice_step(lambda trial: log_density(trial, noise), rate, RATE_RANGE, rng)
        if self._moves_noise and noise.ndim:
            heights = -np.expm1(-2 * rate * tree.heights)
            remaining = np.array([[math.exp(-2 * rate * tree.heights[-1])]])
            own = OrnsteinUhlenbeck(rate, mean, variance, noise)
            noise = self._redrawn_noises(own, tree, heights, remaining, rng)
        elif self._moves_noise:
            noise = np.asarray(
                positive_slice_step(lambda trial: log_density(rate, trial), float(noise), NOISE_RANGE, rng)
            )
        sums = sums_at(rate, noise)
        mean = self._drawn_mean(sums, variance, rng)
        whole = sums.with_roots(mean)
        variance = self._prior.drawn_variance(variance, whole.squares, whole.counts, noise, rng)
        return OrnsteinUhlenbeck(rate, mean, variance, noise)

    def _drawn_mean(self, sums: Contrasts, variance: FloatArray, rng: np.random.Generator) -> FloatArray:
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

    def clock_powers(self, process: Process) -> float | None:
        return -1.0  # its rate alone


class _MultinomialDraws(ParameterDraws):
    """Rates, equilibria and noise of mutation."""

    def __init__(self, process: Multinomial, X: FloatArray, hold_noise: bool) -> None:
        super().__init__(X)
        self._moves_noise = bool(process.noise.any()) and not hold_noise
        assert process.equilibrium is not None, "the process is resolved"
        self._n_states = np.array([len(q) for q in process.equilibrium])
        self._start = np.concatenate([[0], np.cumsum(self._n_states)[:-1]])  # of the states of each column among all
        observed = ~np.isnan(X.T)
        self._n_observed = observed.sum(axis=1)
        self._columns, self._rows = np.nonzero(observed)
        self._codes = X[self._rows, self._columns].astype(np.intp)

    def redrawn(self, process: Process, tree: Tree, rng: np.random.Generator) -> Process:
        assert isinstance(process, Multinomial)
        assert process.equilibrium is not None
        n_columns, n_nodes = self.table.shape[1], tree.n_nodes
        forest = process.forest(self.table, n_nodes)
        sites = forest.layout.sites
        found, found_states = (
            np.empty((n_columns, n_nodes), dtype=np.uint8),
            np.empty((n_columns, n_nodes), dtype=np.intp),
        )
        draw_redraws(forest, tree.children, tree.heights, rng.random((n_columns, n_nodes))[sites], found, found_states)
        redrawn, states = np.empty(found.shape, dtype=np.bool_), np.empty_like(found_states)
        redrawn[sites], states[sites] = found, found_states
        rates = _drawn_rates(process.rate, redrawn[:, :-1], tree.branch_lengths, rng)
        shown = self._noise_draws(process, states[self._columns, self._rows], rng)
        drawn_states = (self._start[:, None] + states)[redrawn]
        shown_states = (self._start[self._columns] + self._codes)[shown]
        equilibria = self._drawn_equilibria(process.equilibrium, np.concatenate([drawn_states, shown_states]), rng)
        noise = process.noise
        if self._moves_noise:
            by_noise = np.bincount(self._columns[shown], minlength=n_columns)
            noise = _drawn_noise(noise, by_noise, self._n_observed, rng)
        return Multinomial(rates, equilibria, noise)

    def _drawn_equilibria(
        self, old: Sequence[FloatArray], drawn: IntArray, rng: np.random.Generator
    ) -> list[FloatArray]:
        """Draw the equilibria of all columns given the states, numbered through all columns, that were drawn from them."""
        counts = np.bincount(drawn, minlength=int(self._n_states.sum()))
        # Gamma variables over their sum are from Dirichlet's distribution
        shares = rng.standard_gamma(1 + np.repeat(1 / self._n_states, self._n_states) + counts)
        shares /= np.repeat(np.add.reduceat(shares, self._start), self._n_states)
        possible = np.minimum.reduceat(shares, self._start) >= LEAST_SHARE
        columns = np.split(shares, self._start[1:])
        return [new if own else before for new, own, before in zip(columns, possible.tolist(), old, strict=True)]

    def _noise_draws(self, process: Multinomial, states: IntArray, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Draw which observed cells are draws from the equilibrium, given the states of their leaves."""
        if not process.noise.any():
            return np.zeros(len(states), dtype=np.bool_)
        assert process.equilibrium is not None
        noise = np.broadcast_to(process.noise, len(self._start))[self._columns]
        by_noise = noise * np.concatenate(process.equilibrium)[self._start[self._columns] + self._codes]
        chance = np.where(states == self._codes, by_noise / (by_noise + 1 - noise), 1.0)
        return rng.random(len(states)) < chance

    def log_prior(self, process: Process) -> float:
        assert isinstance(process, Multinomial)
        possible = np.all((process.rate >= RATE_RANGE[0]) & (process.rate <= RATE_RANGE[1]))
        return multinomial_log_prior(process, self.table) if possible else -math.inf

    def clock_powers(self, process: Process) -> float | None:
        assert isinstance(process, Multinomial)
        return -float(process.rate.size)

    def clock_gain(self, process: Process, log_factor: float) -> float:
        """Return the log ratio of densities: nothing but the rates changes."""
        assert isinstance(process, Multinomial)
        rate = np.atleast_1d(process.rate)
        slow = rate * math.exp(-log_factor)
        if slow.min() < RATE_RANGE[0] or slow.max() > RATE_RANGE[1]:
            return -math.inf
        return float(np.sum(rate - slow)) / SCALE - SHAPE * len(rate) * log_factor


def _drawn_rates(
    rate: FloatArray, redrawn: NDArray[np.bool_], lengths: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Draw rates, given on which branches states were drawn anew, eq. (13.6).

    There it happened at least once: first after an exponential time that the branch is long enough for, then as often as it may.
    """
    x = np.broadcast_to(rate, len(redrawn))[:, None] * lengths
    first = -np.log1p(rng.random(x.shape) * np.expm1(-x))
    events = np.where(redrawn, 1 + rng.poisson(np.maximum(x - first, 0.0)), 0).sum(axis=1)
    time = np.full(len(redrawn), lengths.sum())
    if rate.ndim == 0:
        events, time = events.sum(), time.sum()
    drawn = rng.standard_gamma(SHAPE + events) / (1 / SCALE + time)
    return np.where((drawn >= RATE_RANGE[0]) & (drawn <= RATE_RANGE[1]), drawn, rate)


def _drawn_noise(noise: FloatArray, events: IntArray, cells: IntArray, rng: np.random.Generator) -> FloatArray:
    """Draw the noise given how many of the cells of each column it has drawn, eq. (13.8); one for all columns or one a column."""
    if noise.ndim == 0:
        events, cells = events.sum(), cells.sum()
    drawn = rng.beta(SITE_NOISE_PRIOR[0] + events, SITE_NOISE_PRIOR[1] + cells - events)
    return np.where((noise > 0) & (drawn > 0) & (drawn < MOST_NOISE), drawn, noise)  # noise of 0 stays


class _MixedDraws(ParameterDraws):
    """Given the tree, the parts of a table have nothing to do with each other."""

    def __init__(self, process: Mixed, X: FloatArray, hold_noise: bool) -> None:
        super().__init__(X.copy())
        self._parts = [parameter_draws(part, X[:, columns], hold_noise) for part, columns in process.parts]
        self._columns = [columns for _, columns in process.parts]
        self._put_together()

    def _put_together(self) -> None:
        for own, columns in zip(self._parts, self._columns, strict=True):
            self.table[:, columns] = own.table

    def missing_cells(self) -> FloatArray:
        """Return those of all parts."""
        return np.concatenate([own.missing_cells() for own in self._parts])

    def state(self) -> FloatArray:
        """Return what all parts go on from."""
        return np.concatenate([own.state() for own in self._parts])

    def go_on_from(self, state: FloatArray) -> None:
        """Take all parts up where they were left."""
        for own in self._parts:
            used = len(own.state())
            own.go_on_from(state[:used])
            state = state[used:]
        self._put_together()

    def first(self, process: Process) -> Process:
        assert isinstance(process, Mixed)
        return Mixed(
            *((own.first(part), columns) for own, (part, columns) in zip(self._parts, process.parts, strict=True))
        )

    def redraw_cells(self, process: Process, tree: Tree, rng: np.random.Generator) -> None:
        """Draw those of all parts."""
        assert isinstance(process, Mixed)
        for own, (part, _) in zip(self._parts, process.parts, strict=True):
            own.redraw_cells(part, tree, rng)
        self._put_together()

    def redrawn(self, process: Process, tree: Tree, rng: np.random.Generator) -> Process:
        assert isinstance(process, Mixed)
        pairs = zip(self._parts, process.parts, strict=True)
        drawn = Mixed(*((own.redrawn(part, tree, rng), columns) for own, (part, columns) in pairs))
        self._put_together()
        return drawn

    def log_prior(self, process: Process) -> float:
        assert isinstance(process, Mixed)
        return sum(own.log_prior(part) for own, (part, _) in zip(self._parts, process.parts, strict=True))

    def clock_powers(self, process: Process) -> float | None:
        assert isinstance(process, Mixed)
        powers = [own.clock_powers(part) for own, (part, _) in zip(self._parts, process.parts, strict=True)]
        return None if None in powers else sum(powers)  # type: ignore[arg-type]

    def clock_gain(self, process: Process, log_factor: float) -> float:
        """Return the sum over the parts."""
        assert isinstance(process, Mixed)
        return sum(own.clock_gain(part, log_factor) for own, (part, _) in zip(self._parts, process.parts, strict=True))
