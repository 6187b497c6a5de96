"""Mutation of categorical columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._html import shorten_value
from .._random import RandomState, as_generator
from ..errors import InputError
from ..tree.tree import Tree, check_tree
from .base import Predictions, Process, check_width, checked_column_count
from .layout import Columns, Messages, SiteColumns, SiteMessages

FloatArray = NDArray[np.float64]

SMALLEST_RATE, LARGEST_RATE = 1e-100, 1e100  # beyond these, paths would be so long or short that their squares are lost
SMALLEST_SHARE = 1e-100
MOST_STATES = 10_000  # a message has a number for each state


class Multinomial(Process):
    r"""Independent categorical columns that mutate along the branches.

    Column :math:`d` mutates at rate :math:`\lambda_d`, and a mutation draws its state anew from the equilibrium
    :math:`q_d`, which is also the distribution at the root: eq. (5.1). Messages merge by eq. (5.3) and eq. (5.4).

    Parameters
    ----------
    rate : float or array-like of shape (D,), default 1.0
        Mutations per unit of time, one rate for all columns or one a column.
    equilibrium : list of D array-likes, optional
        Probabilities of the states of each column; columns may differ in their number of states. By default they
        are estimated from the table: the share of each state, one more count given to every state.
    noise : float or array-like of shape (D,), default 0.0
        Probability that an observed cell is a fresh draw from the equilibrium instead of the state of its lineage, eq. (5.5): one
        number for all columns, or one a column; at least 0 and below 1.

    Notes
    -----
    ``X`` holds codes 0, 1, ..., K_d - 1; NaN is a missing cell.

    Examples
    --------
    >>> import coaltree as ct
    >>> tree = ct.Tree.from_newick("(a:0.5,b:0.5);")
    >>> process = ct.Multinomial(rate=1.0, equilibrium=[[0.5, 0.5]])
    >>> round(process.log_likelihood(tree, [[0], [1]]), 4)
    -1.845
    """

    def __init__(
        self, rate: ArrayLike = 1.0, equilibrium: Sequence[ArrayLike] | None = None, noise: ArrayLike = 0.0
    ) -> None:
        try:
            self.rate = np.array(rate, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"rate is {rate!r}; it must be one number or one a column.") from None
        if self.rate.ndim > 1 or self.rate.size == 0:
            raise InputError(f"rate has shape {self.rate.shape}; it must be one number or one a column.")
        if not np.all((self.rate >= SMALLEST_RATE) & (self.rate <= LARGEST_RATE)):
            raise InputError(
                f"rate holds a number that is not finite and positive, or not between {SMALLEST_RATE:g} and {LARGEST_RATE:g}; "
                "mutation rates must be."
            )
        self.rate.setflags(write=False)
        self.equilibrium = None if equilibrium is None else _checked_equilibrium(equilibrium)
        self.noise = _checked_noise(noise)
        if self.equilibrium is not None and self.rate.ndim:
            check_width(len(self.equilibrium), len(self.rate), "Multinomial's rate")
        if self.equilibrium is not None and self.noise.ndim:
            check_width(len(self.equilibrium), len(self.noise), "Multinomial's noise")

    def __repr__(self) -> str:
        equilibrium = "None" if self.equilibrium is None else f"<{len(self.equilibrium)} columns>"
        noise = f", noise={shorten_value(self.noise)}" if np.any(self.noise > 0) else ""
        return f"Multinomial(rate={shorten_value(self.rate)}, equilibrium={equilibrium}{noise})"

    def resolve(self, X: FloatArray) -> Self:
        """Check the codes and estimate the equilibria if none were given."""
        observed = ~np.isnan(X)
        wrong = np.argwhere(observed & ((X < 0) | (np.floor(X) != X)))
        if len(wrong):
            row, column = wrong[0]
            raise InputError(
                f"Row {row}, column {column} holds {X[row, column]:g}; categorical cells must be codes 0, 1, 2, ... or NaN "
                "for missing."
            )
        if self.rate.ndim:
            check_width(X.shape[1], len(self.rate), "Multinomial's rate")
        if self.noise.ndim:
            check_width(X.shape[1], len(self.noise), "Multinomial's noise")
        if self.equilibrium is None:
            largest = np.argwhere(observed & (X >= MOST_STATES))
            if len(largest):
                row, column = largest[0]
                raise InputError(
                    f"Row {row}, column {column} holds code {X[row, column]:g}; a column may have at most {MOST_STATES} states, "
                    "numbered 0, 1, 2, ... without gaps."
                )
            return type(self)(self.rate, [smoothed_shares(X[:, d]) for d in range(X.shape[1])], self.noise)
        check_width(X.shape[1], len(self.equilibrium), "Multinomial's equilibrium")
        n_states = np.array([len(q) for q in self.equilibrium])
        wrong = np.argwhere(observed & (n_states <= X))
        if len(wrong):
            row, column = wrong[0]
            raise InputError(
                f"Row {row}, column {column} holds code {X[row, column]:g}, but the equilibrium of that column has only "
                f"{n_states[column]} states, 0 to {n_states[column] - 1}."
            )
        return self

    def columns(self, X: FloatArray) -> list[Columns]:
        """Declare the leaves' messages, eq. (5.5)."""
        assert self.equilibrium is not None, "columns is called on a resolved process"
        n_columns = X.shape[1]
        start = np.concatenate([[0], np.cumsum([len(q) for q in self.equilibrium])]).astype(np.intp)
        q, noise = np.concatenate(self.equilibrium), np.broadcast_to(self.noise, n_columns)
        message = np.ones((len(X), start[-1]))
        for d in range(n_columns):
            rows = np.flatnonzero(~np.isnan(X[:, d]))
            states = start[d] + X[rows, d].astype(np.intp)
            message[rows, start[d] : start[d + 1]] = noise[d]
            message[rows, states] += (1 - noise[d]) / q[states]
        rate = np.array(np.broadcast_to(self.rate, n_columns))
        return [SiteColumns(message, self.equilibrium, rate, bool(np.any(self.noise > 0)))]

    def leaf_log_likelihoods(self, X: FloatArray) -> FloatArray:
        """Return the log probability of each row's states at equilibrium."""
        assert self.equilibrium is not None, "leaf_log_likelihoods is called on a resolved process"
        total = np.zeros(len(X))
        for d, q in enumerate(self.equilibrium):
            rows = ~np.isnan(X[:, d])
            total[rows] += np.log(q[X[rows, d].astype(np.intp)])
        return total

    def simulate(self, tree: Tree, random_state: RandomState = None, *, n_columns: int | None = None) -> FloatArray:
        """Draw a table of state codes: row i is leaf i.

        Parameters
        ----------
        tree : Tree
        random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        n_columns : int, optional
            Number of columns; it has to be that of `equilibrium`.

        Returns
        -------
        ndarray of shape (n_leaves, D)
        """
        if self.equilibrium is None:
            raise InputError("This process leaves its equilibrium to be estimated; give equilibrium= to simulate.")
        tree, width = check_tree(tree), checked_column_count(n_columns)
        if width is not None:
            check_width(width, len(self.equilibrium), "Multinomial's equilibrium")
        rng = as_generator(random_state)
        lengths = tree.branch_lengths
        rates = np.broadcast_to(self.rate, len(self.equilibrium))
        parents = tree.parents
        states = np.empty((tree.n_nodes, len(self.equilibrium)))
        for d, q in enumerate(self.equilibrium):
            states[:, d] = rng.choice(len(q), size=tree.n_nodes, p=q)
        kept = rng.random((tree.n_nodes - 1, len(self.equilibrium))) < np.exp(-lengths[:, None] * rates)
        for node in range(tree.n_nodes - 2, -1, -1):
            states[node] = np.where(kept[node], states[parents[node]], states[node])
        return self._shown(states[: tree.n_leaves], rng)

    def _shown(self, states: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return states as leaves show them, columns last: some are drawn anew from the equilibrium."""
        assert self.equilibrium is not None
        if not np.any(self.noise > 0):
            return states
        shown, redrawn = states.copy(), rng.random(states.shape) < self.noise
        for d, q in enumerate(self.equilibrium):
            fresh = rng.choice(len(q), size=states.shape[:-1], p=q)
            shown[..., d] = np.where(redrawn[..., d], fresh, states[..., d])
        return shown

    def coordinates(self, messages: Messages, height: float) -> NDArray[np.float32]:
        """Return the messages, every column's of a length that says how much it loses where states differ; NaN where flat."""
        own = messages[0]
        assert isinstance(own, SiteMessages)
        points = np.empty((len(own.q), len(own.message)), dtype=np.float32)
        for d, (first, last) in enumerate(pairwise(own.start)):
            ratios = own.message[:, first:last].T
            scaled = (ratios * np.sqrt(own.q[first:last, None])).astype(np.float32)
            weight = math.log1p(1 / max(2 * own.rate[d] * height, 1e-6))
            scaled[:, ratios.min(axis=0) > (1 - 1e-6) * ratios.max(axis=0)] = np.nan  # nothing was observed
            scaled *= np.float32(math.sqrt(0.5 * weight)) / np.sqrt((scaled**2).sum(axis=0))
            points[first:last] = scaled
        return points

    @property
    def settled_height(self) -> float:
        """The height below which the fastest column hardly ever mutates."""
        return 0.05 / float(np.max(self.rate))

    def draw(self, messages: Messages, tree: Tree, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw the state at the root and then at each node given its parent's; see `Process.draw`."""
        own = messages[0]
        assert isinstance(own, SiteMessages)
        n_columns, counts = len(own.rate), np.diff(own.start)
        column = np.repeat(np.arange(n_columns), counts)
        place = np.arange(len(column)) - own.start[column]
        likelihood = np.zeros((n_columns, counts.max()))  # of each state, columns of fewer states padded
        prior = np.zeros_like(likelihood)
        prior[column, place] = own.q
        states = np.empty((tree.n_nodes, size, n_columns), dtype=np.intp)
        for node in range(tree.n_nodes - 1, -1, -1):
            likelihood[column, place] = own.message[node]
            chances = np.broadcast_to(prior * likelihood, (size, *prior.shape))
            if node < tree.n_nodes - 1:
                kept = np.exp(-own.rate * tree.branch_lengths[node])
                above = states[tree.parents[node]]
                chances = (1 - kept)[:, None] * chances
                at_parent = np.take_along_axis(np.broadcast_to(likelihood, chances.shape), above[..., None], axis=2)
                np.put_along_axis(
                    chances,
                    above[..., None],
                    np.take_along_axis(chances, above[..., None], axis=2) + kept[:, None] * at_parent,
                    axis=2,
                )
            cumulative = np.cumsum(chances, axis=2)
            u = rng.random((size, n_columns, 1)) * cumulative[..., -1:]
            states[node] = np.minimum((cumulative <= u).sum(axis=2), counts - 1)
        return self._shown(np.moveaxis(states[: tree.n_leaves], 0, 1).astype(np.float64), rng)

    def states(self, messages: Messages, distance: FloatArray, observed: bool) -> Predictions:
        """Return what messages say of states some way off, the equilibrium as prior."""
        own = messages[0]
        assert isinstance(own, SiteMessages)
        kept = np.exp(-distance[:, None] * own.rate)
        if observed:
            kept = kept * (1 - self.noise)
        kept = np.repeat(kept, np.diff(own.start), axis=1)
        return Predictions.of_categorical(own.start, kept * (own.message * own.q) + (1 - kept) * own.q)


def smoothed_shares(codes: FloatArray, n_states: int | None = None) -> FloatArray:
    """Return the share of each state, one more count given to every state; an all-missing column has one state."""
    seen = codes[~np.isnan(codes)].astype(np.intp)
    counts = np.bincount(seen, minlength=n_states or 1) + 1.0
    shares: FloatArray = counts / counts.sum()
    return shares


def _checked_noise(noise: ArrayLike) -> FloatArray:
    try:
        text = np.asarray(noise).dtype.kind in "SU"  # which numpy would read as numbers where it can
        checked = np.array(np.nan if text else noise, dtype=np.float64)
    except (TypeError, ValueError):
        checked = np.array(np.nan)
    if checked.ndim > 1 or checked.size == 0 or not np.all((checked >= 0) & (checked < 1)):
        raise InputError(
            f"noise is {noise!r}; it must be a probability of at least 0 and below 1, one for all columns or one a column."
        )
    checked.setflags(write=False)
    return checked


def _checked_equilibrium(equilibrium: Sequence[ArrayLike]) -> tuple[FloatArray, ...]:
    columns = []
    if isinstance(equilibrium, str) or not hasattr(equilibrium, "__iter__"):
        raise InputError(
            f"equilibrium is {equilibrium!r}; it must be a list with one vector of probabilities a column."
        )
    for d, given in enumerate(equilibrium):
        try:
            q = np.array(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                f"The equilibrium of column {d} is {given!r}; it must be one probability a state."
            ) from None
        if q.ndim != 1 or q.size == 0:
            raise InputError(f"The equilibrium of column {d} has shape {q.shape}; it must be one probability a state.")
        if not np.all(np.isfinite(q) & (q >= SMALLEST_SHARE)):
            raise InputError(
                f"The equilibrium of column {d} holds {q.min():g}; probabilities must be above 0 (and at least "
                f"{SMALLEST_SHARE:g}): leave unused states out."
            )
        if abs(q.sum() - 1) > 1e-8:
            raise InputError(f"The equilibrium of column {d} adds up to {q.sum():g}; probabilities must add up to 1.")
        q /= q.sum()
        q.setflags(write=False)
        columns.append(q)
    if not columns:
        raise InputError("equilibrium is empty; it must have one vector of probabilities for each column.")
    return tuple(columns)
