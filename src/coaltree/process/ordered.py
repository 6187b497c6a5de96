"""Change of ordered categories, such as answers from 1 to 5: the process, its fit to trees and its sampler."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from ..tree.tree import Tree
from .base import PRIOR_SCALE, PRIOR_SHAPE, RATE_RANGE, ParameterSampler, Process, WeightedTrees
from .declarations import ChainColumns, Columns, SiteColumns
from .gaussian_columns import maximize_positive, scale_coordinates
from .kernels.passes import climb
from .layout import Messages, SiteMessages, eigenbasis
from .multinomial import MAX_NOISE, MIN_NOISE, SITE_NOISE_PRIOR, Multinomial
from .predictions import Predictions
from .slice_sampling import positive_slice_step, slice_step

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MIN_SHARE = 1e-7  # of a level: the scores of rarer ones are rounding
MAX_SWEEPS, TOLERANCE = 50, 0.01  # over rate and noise
MAX_EXACT_ROWS = 500  # up to which greedy inference compares all pairs
FLAT = 1e-9  # largest deviation of a message from 1 that says nothing


class Ordered(Multinomial):
    r"""Independent columns of ordered categories, whose neighbouring levels exchange along the branches.

    Each level stands for a stretch of a standard normal distribution, as wide as its share :math:`q` says, and its score is the
    mean of the stretch. The level of a lineage goes up and down by one at rates that keep the shares, eq. (5.9), such that the
    score is forgotten at :math:`\lambda_d`, like the value of a diffusing column. Levels far apart thus disagree more than
    neighbours. With two levels this is `Multinomial`.

    Parameters
    ----------
    rate : float or array-like of shape (D,), default 1.0
        :math:`\lambda_d`, at which scores are forgotten: one for all columns or one per column.
    equilibrium : list of D array-likes, optional
        Shares of the levels of each column, lowest level first. By default they are estimated from the table: the share of each
        level, one more count given to every level. They are neither fitted nor sampled.
    noise : float or array-like of shape (D,), default 0.0
        An observed level has moved from that of its lineage as along a path that forgets this share of the score, eq. (5.11): one
        number for all columns, or one per column; at least 0 and below 1.

    Notes
    -----
    ``X`` holds codes 0, 1, ..., K_d - 1, from the lowest to the highest level; NaN is a missing cell.

    Examples
    --------
    Neighbouring levels are more likely on a small tree than levels far apart:

    >>> import coaltree as ct
    >>> tree = ct.Tree.from_newick("(a:0.3,b:0.3);")
    >>> process = ct.Ordered(equilibrium=[[0.2, 0.2, 0.2, 0.2, 0.2]])
    >>> [round(process.log_likelihood(tree, [[0], [k]]), 2) for k in range(5)]
    [-2.29, -3.0, -3.55, -4.17, -5.38]
    """

    kind = "ordered"
    takes_state_sets = False

    def __init__(
        self, rate: ArrayLike = 1.0, equilibrium: Sequence[ArrayLike] | None = None, noise: ArrayLike = 0.0
    ) -> None:
        super().__init__(rate, equilibrium, noise, hold_equilibrium=True)
        for d, q in enumerate(self.equilibrium or ()):
            if q.min() < MIN_SHARE:
                raise InputError(
                    f"The equilibrium of column {d} holds {q.min():g}; the share of a level must be at least {MIN_SHARE:g}. Join "
                    "rare levels with their neighbours."
                )

    __repr__ = Process.__repr__

    def resolve(self, X: FloatArray) -> Ordered:
        """Check the codes and estimate the equilibria if none were given."""
        sets = np.argwhere(X < 0)
        if len(sets):
            row, column = sets[0]
            raise InputError(
                f"Row {row}, column {column} holds {X[row, column]:g}; cells of ordered columns must be codes 0, 1, 2, ..., or "
                "NaN for missing. A cell that may be one of several levels has to be missing."
            )
        return super().resolve(X)

    def _chains(self) -> Iterator[tuple[FloatArray, FloatArray, FloatArray, float, float]]:
        """Yield generator, rates and eigenvectors of each column at rate 1, its rate, and the path that stands for its noise."""
        assert self.equilibrium is not None, "the process is resolved"
        n_columns = len(self.equilibrium)
        rates, noises = np.broadcast_to(self.rate, n_columns), np.broadcast_to(self.noise, n_columns)
        for q, rate, noise in zip(self.equilibrium, rates.tolist(), noises.tolist(), strict=True):
            yield *_unit_chain(q.tobytes()), rate, -math.log1p(-noise)

    def columns(self, X: FloatArray) -> list[Columns]:
        """Declare the leaves' messages, eq. (5.11)."""
        (exact,) = Multinomial(1.0, self.equilibrium).columns(X)
        assert isinstance(exact, SiteColumns)
        assert self.equilibrium is not None, "columns is called on a resolved process"
        start = np.cumsum([0, *map(len, self.equilibrium)])
        generators, message, shortest = [], exact.message, math.inf
        for (first, last), (generator, rates, basis, rate, path) in zip(pairwise(start), self._chains(), strict=True):
            generators.append(rate * generator)
            shortest = min(shortest, path / rate)
            if path > 0:
                message[:, first:last] = message[:, first:last] @ _transition(rates, basis, path).T
        return [ChainColumns(message, self.equilibrium, generators, bool(np.any(self.noise > 0)), shortest)]

    def _simulate(self, tree: Tree, rng: np.random.Generator) -> FloatArray:
        assert self.equilibrium is not None
        states = np.empty((tree.n_nodes, len(self.equilibrium)))
        for d, (q, (_, rates, basis, rate, _)) in enumerate(zip(self.equilibrium, self._chains(), strict=True)):
            steps = np.cumsum([_transition(rates, basis, rate * length) for length in tree.branch_lengths], axis=2)
            own = np.empty(tree.n_nodes, dtype=np.intp)
            own[-1] = rng.choice(len(q), p=q)
            for node, u in zip(range(tree.n_nodes - 2, -1, -1), rng.random(tree.n_nodes - 1).tolist(), strict=True):
                own[node] = min(int(np.searchsorted(steps[node, own[tree.parents[node]]], u)), len(q) - 1)
            states[:, d] = own
        return self._observe(states[: tree.n_leaves], rng)

    def _observe(self, states: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return observations of the states of leaves, columns last."""
        cells = states.copy()
        for d, (_, rates, basis, _, path) in enumerate(self._chains()):
            if path > 0:
                chances = np.cumsum(_transition(rates, basis, path), axis=1)[states[..., d].astype(np.intp)]
                cells[..., d] = _choose(chances, rng)
        return cells

    def coordinates(self, messages: Messages, height: float) -> NDArray[np.float32]:
        """Return the mean score of each column, in units of the difference that a path makes; NaN where nothing was observed."""
        message = messages[0]
        assert isinstance(message, SiteMessages)
        points = []
        for (first, last), (_, _, basis, rate, path) in zip(pairwise(message.start), self._chains(), strict=True):
            ratios = message.message[:, first:last]
            mean = (ratios * np.sqrt(message.q[first:last])) @ basis[:, min(1, last - first - 1)]
            mean[np.abs(ratios - 1).max(axis=1) <= FLAT] = np.nan
            points.append(scale_coordinates(mean[None], -2 * math.expm1(-path) + 4 * rate * height))
        return np.concatenate([np.empty((0, len(message.message)), dtype=np.float32), *points])

    def max_exact_rows(self, X: FloatArray) -> int:
        """Return a smaller number than for other processes: a pair takes longer, since it may have several best heights."""
        return MAX_EXACT_ROWS

    def draw(self, messages: Messages, tree: Tree, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw the level at the root and then at each node given its parent's; see `Process.draw`."""
        message = messages[0]
        assert isinstance(message, SiteMessages)
        states = np.empty((tree.n_nodes, size, len(message.rate)), dtype=np.intp)
        for d, ((first, last), (_, rates, basis, rate, _)) in enumerate(
            zip(pairwise(message.start), self._chains(), strict=True)
        ):
            from_below, q = message.message[:, first:last], message.q[first:last]
            states[-1, :, d] = _choose(np.broadcast_to(np.cumsum(q * from_below[-1]), (size, last - first)), rng)
            for node in range(tree.n_nodes - 2, -1, -1):
                chances = _transition(rates, basis, rate * tree.branch_lengths[node]) * from_below[node]
                states[node, :, d] = _choose(np.cumsum(chances, axis=1)[states[tree.parents[node], :, d]], rng)
        return self._observe(np.moveaxis(states[: tree.n_leaves], 0, 1).astype(np.float64), rng)

    def states(self, messages: Messages, distance: FloatArray, observed: bool) -> Predictions:
        """Return the distributions of states, with the equilibrium as prior."""
        message = messages[0]
        assert isinstance(message, SiteMessages)
        probability = np.empty_like(message.message)
        for (first, last), (_, rates, basis, rate, path) in zip(pairwise(message.start), self._chains(), strict=True):
            root = np.sqrt(message.q[first:last])
            kept = np.exp(-np.outer(rate * distance + (path if observed else 0.0), rates))
            shares = np.maximum(((message.message[:, first:last] * root) @ basis * kept) @ basis.T * root, 0.0)
            probability[:, first:last] = shares / shares.sum(axis=1, keepdims=True)
        return Predictions.from_categorical(message.start, probability)

    def fit(self, trees: WeightedTrees, hold_noise: bool) -> Ordered:
        """Return the most probable rates and noises, one at a time; noise of 0 stays."""

        def best(start: float, log_density: Callable[[float], float], allowed: tuple[float, float]) -> float:
            found = maximize_positive(log_density, min(max(start, allowed[0]), allowed[1]), allowed)
            return found if log_density(found) > log_density(start) else start

        process, likelihoods = self, _column_likelihoods(self, trees.X)
        for _ in range(MAX_SWEEPS):
            before, process = process, _update(process, likelihoods, trees, hold_noise, best)
            if np.allclose(before.parameter_values(), process.parameter_values(), rtol=TOLERANCE):
                break
        return process

    def sampler(self, X: FloatArray, hold_noise: bool) -> ParameterSampler[Ordered]:  # type: ignore[override]
        """Return a sampler of rates and noise."""
        return OrderedSampler(self, X, hold_noise)


class OrderedSampler(ParameterSampler[Ordered]):
    """Draws rates and noises by slices, each given the others; states are summed over."""

    def __init__(self, process: Ordered, X: FloatArray, hold_noise: bool) -> None:
        super().__init__(X)
        self._likelihoods, self._hold_noise = _column_likelihoods(process, X), hold_noise

    def draw(self, process: Ordered, tree: Tree, rng: np.random.Generator) -> Ordered:
        """Draw rates and noises."""

        def step(start: float, log_density: Callable[[float], float], allowed: tuple[float, float]) -> float:
            if allowed == RATE_RANGE:
                return positive_slice_step(log_density, start, allowed, rng)
            return slice_step(log_density, start, allowed, rng)

        trees = WeightedTrees([tree], np.ones(1), self.table)
        return _update(process, self._likelihoods, trees, self._hold_noise, step)

    def log_prior(self, process: Ordered) -> float:
        """Return the log density of the parameters; minus infinity for rates out of range."""
        possible = np.all((process.rate >= RATE_RANGE[0]) & (process.rate <= RATE_RANGE[1]))
        return process.log_parameter_prior(self.table) if possible else -math.inf

    def clock_exponent(self, process: Ordered) -> float | None:
        """Return minus the number of rates."""
        return -float(process.rate.size)


class _ColumnLikelihood:
    """The likelihood of one column on trees, at any rate and noise.

    A rate scales heights, and a noise multiplies the leaves' messages, so that both need no new ones.
    """

    def __init__(self, codes: FloatArray, q: FloatArray) -> None:
        self._forest = Ordered(1.0, [q]).forest(codes[:, None], len(codes))
        self._leaves, self._rates = np.array(self._forest.chain), np.asarray(self._forest.chain_rate)

    def log_z(self, tree: Tree, rate: float, noise: float) -> float:
        """Return the sum of the log local likelihoods."""
        np.asarray(self._forest.chain)[:] = self._leaves * (1 - noise) ** self._rates
        np.asarray(self._forest.height)[:] = 0.0
        log_z, unused = np.empty((2, tree.n_leaves - 1))
        slots = np.arange(tree.n_nodes)
        climb(self._forest, tree.children, rate * tree.heights, slots, log_z, unused, 0, tree.n_leaves - 1)
        return float(log_z.sum())


def _column_likelihoods(process: Ordered, X: FloatArray) -> list[_ColumnLikelihood]:
    """Return the likelihood of each column of a table."""
    assert process.equilibrium is not None, "the process is resolved"
    return [_ColumnLikelihood(codes, q) for codes, q in zip(X.T, process.equilibrium, strict=True)]


def _update(
    process: Ordered,
    likelihoods: list[_ColumnLikelihood],
    trees: WeightedTrees,
    hold_noise: bool,
    step: Callable[[float, Callable[[float], float], tuple[float, float]], float],
) -> Ordered:
    """Return the process after a step for each rate and each noise above 0, given its log density and its range."""
    shape = len(likelihoods)
    values = {"rate": np.array(process.rate), "noise": np.array(process.noise)}
    a, b = SITE_NOISE_PRIOR
    for name, allowed in (("rate", RATE_RANGE), ("noise", (MIN_NOISE, MAX_NOISE))):
        for at in np.ndindex(values[name].shape):
            start = float(values[name][at])
            if name == "noise" and (hold_noise or not start > 0):
                continue

            def log_density(value: float, name: str = name, at: tuple[int, ...] = at) -> float:
                values[name][at] = value
                rates, noises = np.broadcast_to(values["rate"], shape), np.broadcast_to(values["noise"], shape)
                prior = (PRIOR_SHAPE - 1) * math.log(value) - value / PRIOR_SCALE
                if name == "noise":
                    prior = (a - 1) * math.log(value) + (b - 1) * math.log1p(-value)
                known = [
                    weight * likelihoods[d].log_z(tree, float(rates[d]), float(noises[d]))
                    for d in at or range(shape)
                    for tree, weight in zip(trees.trees, trees.weights.tolist(), strict=True)
                ]
                return math.fsum(known) + prior

            values[name][at] = step(start, log_density, allowed)
    return process.replace(**values)


@lru_cache(maxsize=1024)
def _unit_chain(shares: bytes) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return generator, rates and eigenvectors of the chain of a column at rate 1, eq. (5.9)."""
    q = np.frombuffer(shares)
    normal = NormalDist()
    # of the two sides of a threshold the smaller one is exact
    below, above = np.cumsum(q)[:-1].tolist(), np.cumsum(q[::-1])[-2::-1].tolist()
    cuts = [normal.inv_cdf(p) if p < 0.5 else -normal.inv_cdf(r) for p, r in zip(below, above, strict=True)]
    density = np.array([normal.pdf(cut) for cut in cuts])
    scores = -np.diff(density, prepend=0.0, append=0.0) / q
    exchange = density / np.diff(scores)
    generator = np.diag(exchange, 1) + np.diag(exchange, -1)
    generator = (generator - np.diag(generator.sum(axis=1))) / q[:, None]
    return generator, *eigenbasis(q, generator)


def _transition(rates: FloatArray, basis: FloatArray, path: float) -> FloatArray:
    """Return the chances of each level, in a row for each level at the other end of a path."""
    root = basis[:, 0]
    chances = np.maximum((basis * np.exp(-rates * path)) @ basis.T, 0.0) * root / root[:, None]
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _choose(cumulative: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw a level for each row of cumulated chances, levels last."""
    u = rng.random((*cumulative.shape[:-1], 1)) * cumulative[..., -1:]
    return np.asarray(np.minimum((cumulative <= u).sum(axis=-1), cumulative.shape[-1] - 1))
