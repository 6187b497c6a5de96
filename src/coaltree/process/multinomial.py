"""Mutation of categorical columns: the process, its fit to trees and its sampler.

Rates, equilibria and noise are fitted by expectation-maximisation, and sampled by data augmentation: in both, the unknowns are
the states at all nodes and on which branches a state was redrawn from the equilibrium.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._html import shorten_value
from .._parameters import Interval
from .._random import RandomState, as_generator
from .._validation import check_column_count, check_width, quote, to_floats
from ..errors import InputError
from ..table.cells import Category, is_valid_set
from ..table.matrix import as_matrix
from ..table.scaling import ColumnScale
from ..tree.tree import Tree, check_tree
from .ascertainment import ASCERTAINMENTS, UnseenColumns, draw_events
from .base import (
    PRIOR_SCALE,
    PRIOR_SHAPE,
    RATE_RANGE,
    ParameterSampler,
    Process,
    WeightedTrees,
    indexed_names,
    log_recorded,
)
from .categorical_columns import SetCells, check_equilibria, check_noise, is_flat, project_points, smoothed_shares
from .declarations import Columns, SiteColumns
from .kernels.passes import draw_redraws, expected_redraws
from .layout import Messages, SiteMessages
from .likelihood import Beliefs
from .predictions import Predictions
from .site_rates import N_CATEGORIES, SHAPE_PRIOR_RATE, SHAPE_RANGE, SiteLikelihoods, category_rates, draw_categories
from .slice_sampling import positive_slice_step

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

SHAPE = Interval(*SHAPE_RANGE)
MIN_RATE, MAX_RATE = 1e-100, 1e100  # beyond these, squares of path lengths overflow or underflow
MAX_STATES = 10_000  # a message has a number for each state
EM_STEPS, EM_TOLERANCE = 50, 1e-3
GAMMA_TOLERANCE = 2e-4  # of the logarithms of a shape and a rate, below that of expectation-maximisation
CLOCK_STEP = 1.0  # of the logarithm of a rate, at most
SCALE_WIDTHS = (0.5, 0.1)  # of steps of the logarithm of all rates
SITE_NOISE_PRIOR = (1.0, 5.0)  # of the Beta distribution of a noise: most cells show the state of their lineage
MIN_NOISE, MAX_NOISE = 1e-6, 0.999  # that is fitted or drawn
SET_TOLERANCE = 1e-6  # of the messages in all states of a set, which are the same but for rounding
MAX_REDRAWS = 10_000  # of simulated columns that are not recorded
MAX_NAMED = 5  # columns in a message
MIN_DRAWN_SHARE = 1e-12  # of a state; equilibria with less are not drawn


class Multinomial(Process):
    r"""Independent categorical columns that mutate along the branches.

    Column :math:`d` mutates at rate :math:`\lambda_d`, and a mutation draws a new state from the equilibrium
    :math:`q_d`, which is also the distribution at the root: eq. (5.1). Messages merge by eq. (5.3) and eq. (5.4).

    Parameters
    ----------
    rate : float or array-like of shape (D,), default 1.0
        Mutations per unit of time, one rate for all columns or one per column.
    equilibrium : list of D array-likes, optional
        Probabilities of the states of each column; columns may differ in their number of states. By default they
        are estimated from the table: the share of each state, one more count given to every state.
    noise : float or array-like of shape (D,), default 0.0
        Probability that an observed cell is a fresh draw from the equilibrium instead of the state of its lineage, eq. (5.5): one
        number for all columns, or one per column; at least 0 and below 1.
    ascertainment : {"variable", "present"}, optional
        Which columns were recorded; the likelihood is conditioned on that, eq. (5.7). By default all columns are. ``"variable"``:
        only columns in which two rows show different states, as in morphological matrices (Lewis, 2001). ``"present"``: only
        columns in which some row shows another state than code 0, which means that something is absent, as in lists of cognates.
    share_equilibrium : bool, default False
        Whether all columns have one equilibrium, as the sites of a gene have (Felsenstein, 1981). It is then fitted and sampled
        from all of them together, and `equilibrium` may be a single vector. Partitions of an alignment are parts of a `Mixed`
        process, each with its own rate and equilibrium.
    hold_equilibrium : bool, default False
        Whether the equilibrium stays as it is when parameters are fitted or sampled, as the equal shares of Jukes and Cantor
        (1969) and of Lewis's Mk model (2001) do.
    relative_rate : array-like of shape (D,), optional
        Factors by which the rates of the columns are multiplied. They are neither fitted nor sampled.
    gamma_shape : float, optional
        Rates vary across columns: that of each is multiplied by one of four factors, which are equally likely, the means of the
        quarters of a gamma distribution with mean 1 and this shape (Yang, 1994), eq. (5.8). By default they do not vary. Only
        with one rate for all columns.
    site_rate : array-like of shape (D,), optional
        The factor of each column. Markov chains draw the categories of the columns together with the shape, and fits to trees
        replace the factors by their means. By default they are 1, and `simulate` draws them.
    partition : str, optional
        The name of these columns, which the names of parameters have in a `Mixed` process, such as ``rate[coding]``.

    Notes
    -----
    ``X`` holds codes 0, 1, ..., K_d - 1; NaN is a missing cell. A cell that is one of several states has the code that
    `coaltree.state_set` returns for them, eq. (5.6).

    With `ascertainment`, a column counts as recorded if its known cells show what they have to: which cells are missing is given,
    and cells with several states count as missing. Predictions of missing cells and of new rows given a tree do not depend on it.

    With `gamma_shape`, likelihoods are those given the factors of the columns, except that of `mixture_log_likelihood`.

    Examples
    --------
    >>> import coaltree as ct
    >>> tree = ct.Tree.from_newick("(a:0.5,b:0.5);")
    >>> process = ct.Multinomial(rate=1.0, equilibrium=[[0.5, 0.5]])
    >>> round(process.log_likelihood(tree, [[0], [1]]), 4)
    -1.845

    Two rows that differ in a binary column show 0 and 1, or 1 and 0:

    >>> variable = ct.Multinomial(rate=1.0, equilibrium=[[0.5, 0.5]], ascertainment="variable")
    >>> round(variable.log_likelihood(tree, [[0], [1]]), 4)
    -0.6931
    """

    kind = "multinomial"
    takes_state_sets = True

    def __init__(
        self,
        rate: ArrayLike = 1.0,
        equilibrium: Sequence[ArrayLike] | None = None,
        noise: ArrayLike = 0.0,
        ascertainment: str | None = None,
        share_equilibrium: bool = False,
        hold_equilibrium: bool = False,
        relative_rate: ArrayLike | None = None,
        gamma_shape: float | None = None,
        site_rate: ArrayLike | None = None,
        partition: str | None = None,
    ) -> None:
        rates = to_floats(rate)
        if rates is None:
            raise InputError(f"rate is {quote(rate)}; it must be one number or one per column.")
        self.rate = rates
        if self.rate.ndim > 1 or self.rate.size == 0:
            raise InputError(f"rate has shape {self.rate.shape}; it must be one number or one per column.")
        if not np.all((self.rate >= MIN_RATE) & (self.rate <= MAX_RATE)):
            raise InputError(
                f"rate holds a number that is not finite and positive, or not between {MIN_RATE:g} and {MAX_RATE:g}; "
                "mutation rates must be."
            )
        self.rate.setflags(write=False)
        for name, value in (("share_equilibrium", share_equilibrium), ("hold_equilibrium", hold_equilibrium)):
            if not isinstance(value, bool | np.bool_):
                raise InputError(f"{name} is {quote(value)}; it must be True or False.")
        self.share_equilibrium = bool(share_equilibrium)
        self.hold_equilibrium = bool(hold_equilibrium)
        self.relative_rate = None if relative_rate is None else _check_factors(relative_rate, "relative_rate")
        self.gamma_shape = None if gamma_shape is None else _check_shape(gamma_shape)
        self.site_rate = None if site_rate is None else _check_factors(site_rate, "site_rate")
        if self.gamma_shape is None and self.site_rate is not None:
            raise InputError("site_rate is given without gamma_shape; fixed factors are relative_rate.")
        if self.gamma_shape is not None and self.rate.ndim:
            raise InputError("gamma_shape says how rates vary around one rate, but rate holds one per column.")
        if equilibrium is not None and self.share_equilibrium and is_flat(equilibrium):
            equilibrium = [np.asarray(equilibrium, dtype=np.float64)]  # as long as the table, once that is known
        self.equilibrium = None if equilibrium is None else check_equilibria(equilibrium, self.share_equilibrium)
        self.noise = check_noise(noise)
        if ascertainment is not None and not (isinstance(ascertainment, str) and ascertainment in ASCERTAINMENTS):
            raise InputError(
                f"ascertainment is {quote(ascertainment)}; it must be 'variable' (constant columns were not recorded), 'present' "
                "(columns in which all cells are absent were not recorded), or None."
            )
        self.ascertainment = ascertainment
        if not isinstance(partition, str | None):
            raise InputError(f"partition is {quote(partition)}; it must be a name, or None.")
        self.partition = partition
        if self.equilibrium is not None and not (self.share_equilibrium and len(self.equilibrium) == 1):
            if self.rate.ndim:
                check_width(len(self.equilibrium), len(self.rate), "Multinomial's rate")
            if self.noise.ndim:
                check_width(len(self.equilibrium), len(self.noise), "Multinomial's noise")
            self._check_factor_widths(len(self.equilibrium))

    def __repr__(self) -> str:
        equilibrium = "None" if self.equilibrium is None else f"<{len(self.equilibrium)} columns>"
        noise = f", noise={shorten_value(self.noise)}" if np.any(self.noise > 0) else ""
        ascertainment = f", ascertainment={self.ascertainment!r}" if self.ascertainment else ""
        shared = ", share_equilibrium=True" if self.share_equilibrium else ""
        held = ", hold_equilibrium=True" if self.hold_equilibrium else ""
        relative = f", relative_rate={shorten_value(self.relative_rate)}" if self.relative_rate is not None else ""
        gamma = f", gamma_shape={self.gamma_shape:.3g}" if self.gamma_shape is not None else ""
        partition = f", partition={self.partition!r}" if self.partition is not None else ""
        return (
            f"Multinomial(rate={shorten_value(self.rate)}, equilibrium={equilibrium}{noise}{ascertainment}{shared}{held}"
            f"{relative}{gamma}{partition})"
        )

    def _check_factor_widths(self, n_columns: int) -> None:
        """Raise if there are factors of the rates of other columns."""
        for name, factors in (("relative_rate", self.relative_rate), ("site_rate", self.site_rate)):
            if factors is not None:
                check_width(n_columns, len(factors), f"Multinomial's {name}")

    @property
    def _factors(self) -> FloatArray | None:
        """The factors of the rates of the columns; None if all are 1."""
        if self.site_rate is None or self.relative_rate is None:
            return self.relative_rate if self.site_rate is None else self.site_rate
        return self.relative_rate * self.site_rate

    def column_rates(self, n_columns: int) -> FloatArray:
        """Return the rate of each column."""
        factors = self._factors
        return np.broadcast_to(self.rate if factors is None else self.rate * factors, n_columns)

    def resolve(self, X: FloatArray) -> Self:
        """Check the codes and estimate the equilibria if none were given."""
        observed = ~np.isnan(X)
        negative = X < 0
        has_sets = bool(negative.any())
        bad = observed & (np.floor(X) != X)
        if has_sets:
            bad |= negative & ~is_valid_set(np.where(negative, X, 0.0))
        wrong = np.argwhere(bad)
        if len(wrong):
            row, column = wrong[0]
            raise InputError(
                f"Row {row}, column {column} holds {X[row, column]:g}; categorical cells must be codes 0, 1, 2, ..., NaN "
                "for missing, or what coaltree.state_set returns for several states."
            )
        if self.rate.ndim:
            check_width(X.shape[1], len(self.rate), "Multinomial's rate")
        if self.noise.ndim:
            check_width(X.shape[1], len(self.noise), "Multinomial's noise")
        self._check_factor_widths(X.shape[1])
        if self.gamma_shape is not None and self.site_rate is None:
            return self.replace(site_rate=np.ones(X.shape[1])).resolve(X)
        if self.equilibrium is None:
            largest = np.argwhere(observed & (X >= MAX_STATES))
            if len(largest):
                row, column = largest[0]
                raise InputError(
                    f"Row {row}, column {column} holds code {X[row, column]:g}; a column may have at most {MAX_STATES} states, "
                    "numbered 0, 1, 2, ... without gaps."
                )
            if self.share_equilibrium:
                return self.replace(equilibrium=[smoothed_shares(X.ravel())] * X.shape[1])
            return self.replace(equilibrium=[smoothed_shares(X[:, d]) for d in range(X.shape[1])])
        if self.share_equilibrium and len(self.equilibrium) == 1 < X.shape[1]:
            return self._widen(X.shape[1]).resolve(X)
        check_width(X.shape[1], len(self.equilibrium), "Multinomial's equilibrium")
        n_states = np.array([len(q) for q in self.equilibrium])
        # The largest state of a set is the position of its first bit.
        largest_states = np.where(negative, np.frexp(np.where(negative, -X, 1.0))[1] - 1, X) if has_sets else X
        wrong = np.argwhere(observed & (n_states <= largest_states))
        if len(wrong):
            row, column = wrong[0]
            raise InputError(
                f"Row {row}, column {column} holds code {largest_states[row, column]:g}, but the equilibrium of that column has "
                f"only {n_states[column]} states, 0 to {n_states[column] - 1}."
            )
        return self

    def _widen(self, n_columns: int) -> Self:
        """Return the process with its one equilibrium for so many columns, to the last digit."""
        assert self.equilibrium is not None
        process = self.replace(equilibrium=self.equilibrium * n_columns)
        process.equilibrium = self.equilibrium * n_columns
        return process

    def columns(self, X: FloatArray) -> list[Columns]:
        """Declare the leaves' messages, eq. (5.5)."""
        assert self.equilibrium is not None, "columns is called on a resolved process"
        n_columns = X.shape[1]
        start = np.concatenate([[0], np.cumsum([len(q) for q in self.equilibrium])]).astype(np.intp)
        q, noise = np.concatenate(self.equilibrium), np.broadcast_to(self.noise, n_columns)
        message = np.ones((len(X), start[-1]))
        counts, sets = np.diff(start), SetCells.from_codes(X, self.equilibrium)
        observed = sets.without_flat(~np.isnan(X))
        np.copyto(message, np.repeat(noise, counts), where=np.repeat(observed, counts, axis=1))
        rows, columns = np.nonzero(X >= 0)
        states = start[columns] + X[rows, columns].astype(np.intp)
        message[rows, states] += (1 - noise[columns]) / q[states]
        message[sets.rows[sets.cell], sets.state] += ((1 - noise[sets.columns]) / sets.shares(q))[sets.cell]
        rate = np.array(self.column_rates(n_columns))
        return [SiteColumns(message, self.equilibrium, rate, bool(np.any(self.noise > 0)))]

    def leaf_log_likelihoods(self, X: FloatArray) -> FloatArray:
        """Return the log probability of each row's states at equilibrium."""
        assert self.equilibrium is not None, "leaf_log_likelihoods is called on a resolved process"
        start = np.cumsum([0, *map(len, self.equilibrium)]).astype(np.intp)
        columns, rows = np.nonzero(X.T >= 0)
        logs, q, sets = np.zeros(X.T.shape), np.concatenate(self.equilibrium), SetCells.from_codes(X, self.equilibrium)
        logs[columns, rows] = np.log(q)[start[columns] + X[rows, columns].astype(np.intp)]
        logs[sets.columns, sets.rows] = np.log(sets.shares(q))
        return np.asarray(logs.sum(axis=0))

    def simulate(self, tree: Tree, random_state: RandomState = None, *, n_columns: int | None = None) -> FloatArray:
        """Draw a table of state codes: row i is leaf i.

        Parameters
        ----------
        tree : Tree
        random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        n_columns : int, optional
            Number of columns; it must be that of `equilibrium`, unless this is a single vector that all columns share.

        Returns
        -------
        ndarray of shape (n_leaves, D)
        """
        if self.equilibrium is None:
            raise InputError(
                "equilibrium is None, and there is no table to estimate it from; pass equilibrium= to simulate."
            )
        tree, width = check_tree(tree), check_column_count(n_columns)
        if width is not None and self.share_equilibrium and len(self.equilibrium) == 1 < width:
            return self._widen(width).simulate(tree, random_state)
        if width is not None:
            check_width(width, len(self.equilibrium), "Multinomial's equilibrium")
        rng = as_generator(random_state)
        table = self._simulate(tree, rng)
        if self.ascertainment is None:
            return table
        for _ in range(MAX_REDRAWS):  # of columns that are not recorded
            wrong = np.flatnonzero(~self._is_recorded(table))
            if not len(wrong):
                return table
            table[:, wrong] = self._select_columns(wrong)._simulate(tree, rng)
        raise InputError(
            f"After {MAX_REDRAWS} attempts column {wrong[0]} is still one that ascertainment={self.ascertainment!r} excludes: "
            "on this tree such columns are recorded too rarely. Use a higher rate or a higher tree."
        )

    def _simulate(self, tree: Tree, rng: np.random.Generator) -> FloatArray:
        """Draw a table, whether or not its columns are recorded."""
        assert self.equilibrium is not None
        if self.gamma_shape is not None and self.site_rate is None:
            drawn = rng.choice(category_rates(self.gamma_shape), len(self.equilibrium))
            return self.replace(site_rate=drawn)._simulate(tree, rng)
        lengths = tree.branch_lengths
        rates = self.column_rates(len(self.equilibrium))
        parents = tree.parents
        states = np.empty((tree.n_nodes, len(self.equilibrium)))
        for d, q in enumerate(self.equilibrium):
            states[:, d] = rng.choice(len(q), size=tree.n_nodes, p=q)
        unchanged = rng.random((tree.n_nodes - 1, len(self.equilibrium))) < np.exp(-lengths[:, None] * rates)
        for node in range(tree.n_nodes - 2, -1, -1):
            states[node] = np.where(unchanged[node], states[parents[node]], states[node])
        return self._observe(states[: tree.n_leaves], rng)

    def _select_columns(self, columns: IntArray) -> Self:
        """Return the process of some of the columns."""
        assert self.equilibrium is not None
        rate, noise = (value[columns] if value.ndim else value for value in (self.rate, self.noise))
        relative, sites = (None if one is None else one[columns] for one in (self.relative_rate, self.site_rate))
        equilibrium = tuple(self.equilibrium[d] for d in columns)
        process = self.replace(rate=rate, equilibrium=equilibrium, noise=noise, relative_rate=relative, site_rate=sites)
        process.equilibrium = equilibrium  # to the last digit
        return process

    def _is_recorded(self, X: FloatArray) -> NDArray[np.bool_]:
        """Return which columns of a table satisfy the condition for being recorded."""
        known = np.where(X >= 0, X, np.nan)
        if self.ascertainment == "present":
            return np.asarray(np.any(known > 0, axis=0))
        lowest = np.min(known, axis=0, where=~np.isnan(known), initial=np.inf)
        return np.asarray(np.any(known > lowest, axis=0))

    def check_ascertainment(self, X: FloatArray, names: Sequence[str] | None = None) -> None:
        """Raise if the table has a column that `ascertainment` excludes."""
        if self.ascertainment is None:
            return
        wrong = np.flatnonzero(~self._is_recorded(X)).tolist()
        if not wrong:
            return
        listed_names = [quote(names[d]) if names else str(d) for d in wrong[:MAX_NAMED]]
        suffix = f" and {len(wrong) - MAX_NAMED} more" if len(wrong) > MAX_NAMED else ""
        pattern = "the same state in all their known cells" if self.ascertainment == "variable" else "only state 0"
        raise InputError(
            f"{len(wrong)} column(s) show {pattern}: {', '.join(listed_names)}{suffix}. "
            f"ascertainment={self.ascertainment!r} says that such columns were not recorded. Leave them out, or, "
            "if they were recorded, use ascertainment=None."
        )

    def with_more_noise(self, ratio: float) -> Self:
        """Return the process with states that are more often replaced by chance; see `Process.with_more_noise`."""
        return self.replace(noise=1 - (1 - self.noise) / (1 + ratio))

    def without_ascertainment(self) -> Self:
        """Return the process that records all columns."""
        return self if self.ascertainment is None else self.replace(ascertainment=None)

    def unseen_columns(self, X: FloatArray) -> UnseenColumns | None:
        """Return the columns that `ascertainment` excludes."""
        return None if self.ascertainment is None else Unseen.from_table(self, X).columns

    def _observe(self, states: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return observations of the states of leaves, columns last: noise redraws some from the equilibrium."""
        assert self.equilibrium is not None
        if not np.any(self.noise > 0):
            return states
        cells, redrawn = states.copy(), rng.random(states.shape) < self.noise
        for d, q in enumerate(self.equilibrium):
            fresh = rng.choice(len(q), size=states.shape[:-1], p=q)
            cells[..., d] = np.where(redrawn[..., d], fresh, states[..., d])
        return cells

    def coordinates(self, messages: Messages, height: float) -> NDArray[np.float32]:
        """Return the messages, each column weighted by the log likelihood that differing states cost; NaN where flat."""
        message = messages[0]
        assert isinstance(message, SiteMessages)
        points = []
        for d, (first, last) in enumerate(pairwise(message.start)):
            ratios = message.message[:, first:last].T
            scaled = (ratios * np.sqrt(message.q[first:last, None])).astype(np.float32)
            weight = math.log1p(1 / max(2 * message.rate[d] * height, 1e-6))
            scaled[:, ratios.min(axis=0) > (1 - 1e-6) * ratios.max(axis=0)] = np.nan  # nothing was observed
            scaled *= np.float32(math.sqrt(0.5 * weight)) / np.sqrt((scaled**2).sum(axis=0))
            points.append(project_points(scaled))
        return np.concatenate([np.empty((0, len(message.message)), dtype=np.float32), *points])

    @property
    def min_attachment_height(self) -> float:
        """The height below which the fastest column hardly ever mutates."""
        factors = self._factors
        fastest = 1.0 if factors is None else float(np.max(factors))
        return 0.05 / (float(np.max(self.rate)) * fastest)

    def draw(self, messages: Messages, tree: Tree, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw the state at the root and then at each node given its parent's; see `Process.draw`."""
        message = messages[0]
        assert isinstance(message, SiteMessages)
        n_columns, counts = len(message.rate), np.diff(message.start)
        column = np.repeat(np.arange(n_columns), counts)
        place = np.arange(len(column)) - message.start[column]
        likelihood = np.zeros((n_columns, counts.max()))  # of each state, columns of fewer states padded
        prior = np.zeros_like(likelihood)
        prior[column, place] = message.q
        states = np.empty((tree.n_nodes, size, n_columns), dtype=np.intp)
        for node in range(tree.n_nodes - 1, -1, -1):
            likelihood[column, place] = message.message[node]
            chances = np.broadcast_to(prior * likelihood, (size, *prior.shape))
            if node < tree.n_nodes - 1:
                survival = np.exp(-message.rate * tree.branch_lengths[node])
                above = states[tree.parents[node]]
                chances = (1 - survival)[:, None] * chances
                at_parent = np.take_along_axis(np.broadcast_to(likelihood, chances.shape), above[..., None], axis=2)
                np.put_along_axis(
                    chances,
                    above[..., None],
                    np.take_along_axis(chances, above[..., None], axis=2) + survival[:, None] * at_parent,
                    axis=2,
                )
            cumulative = np.cumsum(chances, axis=2)
            u = rng.random((size, n_columns, 1)) * cumulative[..., -1:]
            states[node] = np.minimum((cumulative <= u).sum(axis=2), counts - 1)
        at_leaves = np.moveaxis(states[: tree.n_leaves], 0, 1)
        cells = self._observe(at_leaves.astype(np.float64), rng)
        self._observe_sets(message, at_leaves, cells, rng)
        return cells

    def _observe_sets(
        self, messages: SiteMessages, states: IntArray, cells: FloatArray, rng: np.random.Generator
    ) -> None:
        """Draw the cells that are known to be one of several states again, given the states of their leaves.

        Such a cell has the same, largest message in all states of the set, eq. (5.6).
        """
        noise, n = np.broadcast_to(self.noise, len(messages.rate)), states.shape[1]
        message, first = messages.message[:n], messages.start[:-1]
        largest = np.repeat(np.maximum.reduceat(message, first, axis=1), np.diff(messages.start), axis=1)
        members = message > (1 - SET_TOLERANCE) * largest
        sizes = np.add.reduceat(members, first, axis=1, dtype=np.intp)
        for row, d in np.argwhere((sizes > 1) & (sizes < np.diff(messages.start))).tolist():
            column_states = slice(messages.start[d], messages.start[d + 1])
            states_of_set = np.flatnonzero(members[row, column_states])
            chances = noise[d] * messages.q[column_states][states_of_set] + (1 - noise[d]) * (
                states[:, row, d, None] == states_of_set
            )
            chances = np.cumsum(np.where(chances.sum(axis=1, keepdims=True) > 0, chances, 1.0), axis=1)
            ranks = (chances <= rng.random((len(chances), 1)) * chances[:, -1:]).sum(axis=1)
            cells[:, row, d] = states_of_set[np.minimum(ranks, len(states_of_set) - 1)]

    def states(self, messages: Messages, distance: FloatArray, observed: bool) -> Predictions:
        """Return the distributions of states, with the equilibrium as prior."""
        message = messages[0]
        assert isinstance(message, SiteMessages)
        survival = np.exp(-distance[:, None] * message.rate)
        if observed:
            survival = survival * (1 - self.noise)
        survival = np.repeat(survival, np.diff(message.start), axis=1)
        return Predictions.from_categorical(
            message.start, survival * (message.message * message.q) + (1 - survival) * message.q
        )

    def check_columns(self, n_states: Sequence[int]) -> None:
        """Raise unless all columns are categorical, with as many states as the equilibria have."""
        if not all(n_states):
            raise InputError("Multinomial is over other columns than the table has: it takes categorical ones")
        shapes = (), (len(n_states),)
        fits = self.rate.shape in shapes and self.noise.shape in shapes
        fits = fits and all(one is None or one.shape == shapes[1] for one in (self.relative_rate, self.site_rate))
        if [len(q) for q in self.equilibrium or ()] != list(n_states) or not fits:
            raise InputError("the process has other categories than the table")

    def parameter_names(self, columns: Sequence[int]) -> list[str]:
        """Return names of rates, of equilibria that are not held, of noises unless all are 0, and of shape and factors."""
        assert self.equilibrium is not None, "a resolved process has equilibria"
        names = indexed_names("rate", self.rate.ndim, columns)
        if self.hold_equilibrium:
            pass
        elif self.share_equilibrium:
            names += [f"equilibrium[{k}]" for k in range(len(self.equilibrium[0]))]
        else:
            for column, q in zip(columns, self.equilibrium, strict=True):
                names += [f"equilibrium[{column},{k}]" for k in range(len(q))]
        names += indexed_names("noise", self.noise.ndim, columns) if self.noise.any() else []
        return names if self.gamma_shape is None else [*names, "gamma_shape", *indexed_names("site_rate", 1, columns)]

    def parameter_values(self) -> FloatArray:
        """Return the values of `parameter_names`."""
        assert self.equilibrium is not None, "a resolved process has equilibria"
        noise = self.noise.ravel() if self.noise.any() else np.zeros(0)
        varying = () if self.gamma_shape is None or self.site_rate is None else ([self.gamma_shape], self.site_rate)
        return np.concatenate([self.rate.ravel(), *self._own_equilibria(), noise, *varying])

    @property
    def n_constraints(self) -> int:
        """Number of equilibria, each of which adds up to 1, and of factors of columns, whose distribution the shape gives."""
        return len(self._own_equilibria()) + (0 if self.site_rate is None else len(self.site_rate))

    def _own_equilibria(self) -> tuple[FloatArray, ...]:
        """Return the equilibria of the columns, or the one that they share; none if they are held."""
        assert self.equilibrium is not None, "a resolved process has equilibria"
        if self.hold_equilibrium:
            return ()
        return self.equilibrium[:1] if self.share_equilibrium else self.equilibrium

    def with_parameter_values(self, values: FloatArray) -> Self:
        """Return the process with other values; see `parameter_names`."""
        assert self.equilibrium is not None, "a resolved process has equilibria"
        size = self.rate.size
        bounds = size + np.cumsum([0, *(len(q) for q in self._own_equilibria())])
        shares: Sequence[FloatArray] = self.equilibrium
        if not self.hold_equilibrium:
            shares = np.split(values[size : bounds[-1]], bounds[1:-1] - size)
            shares *= len(self.equilibrium) if self.share_equilibrium else 1
        rest = values[bounds[-1] :]
        noise = rest[: self.noise.size].reshape(self.noise.shape) if self.noise.any() else self.noise
        varying = {}
        if self.site_rate is not None:
            gamma_shape, *_ = rest = rest[len(rest) - len(self.site_rate) - 1 :]
            varying = {"gamma_shape": float(gamma_shape), "site_rate": rest[1:]}
        process = self.replace(rate=values[:size].reshape(self.rate.shape), equilibrium=shares, noise=noise, **varying)
        process.equilibrium = tuple(shares)  # dividing by their sum again could change the last digit
        return process

    def rescale_clock(self, factor: float) -> Self:
        """Return the process with slower rates."""
        return self.replace(rate=self.rate / factor)

    def fit(self, trees: WeightedTrees, hold_noise: bool) -> Multinomial:
        """Return the most probable rates, equilibria and noise, or the result of `EM_STEPS`; noise of 0 stays."""
        return _fit(self, trees, hold_noise)

    def log_parameter_prior(self, X: FloatArray, hold_noise: bool = False) -> float:
        """Return the log density of the parameters under their weak priors."""
        resolved = self.resolve(X)
        assert resolved.equilibrium is not None
        rate = np.atleast_1d(resolved.rate)
        total = float(np.sum((PRIOR_SHAPE - 1) * np.log(rate) - rate / PRIOR_SCALE))
        noises = np.atleast_1d(resolved.noise)[np.atleast_1d(resolved.noise) > 0]
        a, b = SITE_NOISE_PRIOR
        total += float(np.sum((a - 1) * np.log(noises) + (b - 1) * np.log1p(-noises)))
        total -= 0.0 if resolved.gamma_shape is None else SHAPE_PRIOR_RATE * resolved.gamma_shape
        return total + sum(float(np.mean(np.log(q))) for q in resolved._own_equilibria())

    def site_likelihoods(self, X: FloatArray, group_of: IntArray | None = None) -> SiteLikelihoods:
        """Return the likelihoods of the columns of a resolved process given their categories; see `SiteLikelihoods`."""
        equal = self.replace(site_rate=np.ones(X.shape[1]))
        return SiteLikelihoods(equal.forest(X, 2 * len(X) - 1), group_of)

    def mixture_log_likelihood(self, tree: Tree, X: ArrayLike) -> float:
        """Return the log likelihood of a table on a tree, summed over the categories of each column: eq. (5.8).

        Parameters
        ----------
        tree : Tree
        X : array-like of shape (n_leaves, n_columns)

        Returns
        -------
        float
            Without `gamma_shape` that of `log_likelihood`.
        """
        given_categories = self.log_likelihood(tree, X)  # with its checks
        if self.gamma_shape is None:
            return given_categories
        matrix = as_matrix(X)
        resolved = self.resolve(matrix)
        mixture = resolved.site_likelihoods(matrix).log_likelihood(tree, self.gamma_shape)
        return math.fsum(resolved.leaf_log_likelihoods(matrix)) + mixture - log_recorded(resolved, tree, matrix)

    def sampler(self, X: FloatArray, hold_noise: bool) -> ParameterSampler[Multinomial]:
        """Return a sampler of rates, equilibria and noise."""
        return MultinomialSampler(self, X, hold_noise)

    def describe_columns(self, columns: Sequence[ColumnScale | Sequence[Category]]) -> list[dict[str, Any]]:
        """Return rate, noise and the share of each category."""
        assert self.equilibrium is not None, "a resolved process has equilibria"
        rates, noises = self.column_rates(len(columns)), np.broadcast_to(self.noise, len(columns))
        return [
            {
                "process": self.kind,
                "rate": float(rates[d]),
                "noise": float(noises[d]),
                "equilibrium": dict(zip(categories, q.tolist(), strict=True)),
            }
            for d, (categories, q) in enumerate(zip(columns, self.equilibrium, strict=True))
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the process as plain values; what earlier versions do not know is there only if it says something."""
        later = (
            "ascertainment",
            "share_equilibrium",
            "hold_equilibrium",
            "relative_rate",
            "gamma_shape",
            "site_rate",
            "partition",
        )
        return {name: value for name, value in super().to_dict().items() if value or name not in later}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Process:
        """Return the process that `to_dict` has written, its equilibria to the last digit."""
        process = super().from_dict(values)
        assert isinstance(process, Multinomial)
        if process.equilibrium is not None:
            # The constructor divides by the sum, which could change the last digit.
            process.equilibrium = tuple(np.array(q, dtype=np.float64) for q in values["equilibrium"])
            for q in process.equilibrium:
                q.setflags(write=False)
        return process


class Redraws(NamedTuple):
    """Expected mutations of the columns; the edges of all trees side by side."""

    lengths: FloatArray  # (edges,)
    weights: FloatArray  # (edges,), of the trees that they are in
    redraws: FloatArray  # (columns, edges), probability that the state was redrawn on the edge
    stays: FloatArray  # (columns, edges), probability that it was not; unrecorded columns are added to both
    draws: FloatArray  # (states,), expected number of draws of each
    noise_draws: FloatArray  # (columns,), expected number of cells that show a draw of the noise
    unseen_cells: FloatArray  # (columns,), expected number of cells of unrecorded columns


class Unseen(NamedTuple):
    """The columns that are not recorded, and which columns of the table they belong to."""

    columns: UnseenColumns
    process: Multinomial  # of the unseen columns, which is not conditioned
    X: FloatArray  # (rows, unseen columns)
    group_of: IntArray  # (columns of the table,)
    state_of: IntArray  # (states of the table,), among the states of all groups
    unseen_state_of: IntArray  # (states of the unseen columns,), likewise
    shown_state: IntArray  # (unseen columns,), the state that rows show, among the states of all groups

    @classmethod
    def from_table(cls, process: Multinomial, X: FloatArray) -> Unseen:
        """Find the groups of columns that are recorded under the same conditions."""
        assert process.equilibrium is not None
        known, n_columns = np.asfortranarray(X >= 0), X.shape[1]
        base = process if process.site_rate is None else process.replace(site_rate=np.ones(n_columns))
        rates, noises = base.column_rates(n_columns).tolist(), np.broadcast_to(process.noise, n_columns).tolist()
        factors = np.ones(1) if process.gamma_shape is None else category_rates(process.gamma_shape)
        groups: dict[tuple[bytes, float, float, bytes], int] = {}
        group_of, firsts = np.empty(n_columns, dtype=np.intp), list[int]()
        for d, (q, rate, noise) in enumerate(zip(process.equilibrium, rates, noises, strict=True)):
            group_of[d] = groups.setdefault((known[:, d].tobytes(), rate, noise, q.tobytes()), len(groups))
            if group_of[d] == len(firsts):
                firsts.append(d)
        widths = np.array([len(process.equilibrium[d]) for d in firsts])
        constant = process.ascertainment == "variable"
        group = np.repeat(np.arange(len(firsts)), widths if constant else 1)
        starts = np.cumsum(widths) - widths
        cell_states = np.arange(len(group)) - starts[group] if constant else np.zeros(len(group), dtype=np.intp)
        factor = np.repeat(
            factors, len(group)
        )  # of the rate, all unseen columns of one category after those of another
        group, cell_states = np.tile(group, len(factors)), np.tile(cell_states, len(factors))
        column = np.array(firsts)[group]
        plain = base.without_ascertainment()._select_columns(column)
        if process.gamma_shape is not None:
            plain = plain.replace(site_rate=factor)
            plain.equilibrium = tuple(process.equilibrium[d] for d in column)  # to the last digit
        unseen_X = np.where(known[:, column], cell_states, np.nan)
        assert plain.equilibrium is not None

        def numbered(groups: IntArray) -> IntArray:
            return np.concatenate([starts[g] + np.arange(widths[g]) for g in groups.tolist()])

        columns = UnseenColumns(
            tuple(part for part in plain.columns(unseen_X) if isinstance(part, SiteColumns)),
            known[:, column],
            np.array([q[k] for q, k in zip(plain.equilibrium, cell_states.tolist(), strict=True)]),
            np.array(rates)[column] * factor,
            np.array(noises)[column],
            np.full(len(column), 1 / len(factors)),
            group,
            np.full(len(firsts), constant),
            np.bincount(group_of, minlength=len(firsts)).astype(np.float64),
        )
        return cls(columns, plain, unseen_X, group_of, numbered(group_of), numbered(group), starts[group] + cell_states)

    def add_to(self, redraws: Redraws, trees: WeightedTrees) -> None:
        """Add the expected mutations of all unrecorded columns to those of the columns of the table."""
        group, n_groups, n_edges = self.columns.group, len(self.columns.n_recorded), len(redraws.lengths)
        n_edges //= len(trees.trees)
        known = self.columns.observed.sum(axis=0)
        for k, (tree, weight) in enumerate(zip(trees.trees, trees.weights, strict=True)):
            odds = self.columns.odds(tree.children, tree.heights)
            expected = expect_redraws(self.process, WeightedTrees([tree], np.ones(1), self.X))
            edges = slice(k * n_edges, (k + 1) * n_edges)
            for into, values in ((redraws.redraws, expected.redraws), (redraws.stays, expected.stays)):
                total = np.zeros((n_groups, n_edges))
                np.add.at(total, group, odds[:, None] * values)
                into[:, edges] += total[self.group_of]
            by_state = np.repeat(odds, [len(q) for q in self.process.equilibrium or ()]) * expected.draws
            n_states = 1 + int(self.unseen_state_of.max())
            redraws.draws[:] += weight * np.bincount(self.unseen_state_of, by_state, n_states)[self.state_of]
            for cells, per_column in ((redraws.noise_draws, expected.noise_draws), (redraws.unseen_cells, known)):
                cells[:] += weight * np.bincount(group, odds * per_column, n_groups)[self.group_of]


def _fit(process: Multinomial, trees: WeightedTrees, hold_noise: bool) -> Multinomial:
    moves_noise = not hold_noise and bool(process.noise.any())
    for _ in range(EM_STEPS):
        redraws = expect_redraws(process, trees)
        rates = _best_rates(process, redraws) if process.gamma_shape is None else process.rate
        assert process.equilibrium is not None
        equilibria = list(process.equilibrium) if process.hold_equilibrium else _best_equilibria(process, redraws)
        change = max(
            float(np.max(np.abs(np.log(rates / process.rate)))),
            max(float(np.max(np.abs(new - old))) for new, old in zip(equilibria, process.equilibrium, strict=True)),
        )
        noises = _best_noise(process, redraws, trees.X) if moves_noise else process.noise
        change = max(change, float(np.max(np.abs(noises - process.noise))))
        process = process.replace(rate=rates, equilibrium=equilibria, noise=noises)
        if process.ascertainment is not None and process.gamma_shape is None:
            scaled = _scale_rates(process, trees)
            change = max(change, float(np.max(np.abs(np.log(scaled.rate / process.rate)))))
            process = scaled
        if process.gamma_shape is not None:
            varied = _fit_gamma_rates(process, trees)
            assert varied.gamma_shape is not None, "it was fitted"
            change = max(change, abs(math.log(varied.rate / process.rate)))
            change = max(change, abs(math.log(varied.gamma_shape / process.gamma_shape)))
            process = varied
        if change < EM_TOLERANCE:
            break
    return process


def _recorded_at(process: Multinomial, X: FloatArray) -> Callable[[Tree, float, float], float]:
    """Return the log probability that all columns are recorded, as a function of tree, shape and factor of all rates."""
    assert process.gamma_shape is not None, "rates vary"
    unseen = process.unseen_columns(X)
    if unseen is None:
        return lambda tree, shape, clock: 0.0
    at_mean = unseen.rate.reshape(N_CATEGORIES, -1) / category_rates(process.gamma_shape)[:, None]

    def log_probability(tree: Tree, shape: float, clock: float) -> float:
        rates = clock * at_mean * category_rates(shape)[:, None]
        return dataclasses.replace(unseen, rate=rates.ravel()).log_recorded(tree)

    return log_probability


def _fit_gamma_rates(process: Multinomial, trees: WeightedTrees) -> Multinomial:
    """Return the process with the best shape and then rate, summed over categories, and the means of the columns' factors."""
    from scipy.optimize import minimize_scalar  # slow to import, and only fits need it

    assert process.gamma_shape is not None, "rates vary"
    sites = process.site_likelihoods(trees.X)
    log_recorded_at, rate = _recorded_at(process, trees.X), float(process.rate)

    def loss(log_shape: float, log_clock: float) -> float:
        shape, clock = math.exp(log_shape), math.exp(log_clock)
        new_rate = rate * clock
        logs = [sites.log_likelihood(tree, shape, clock) - log_recorded_at(tree, shape, clock) for tree in trees.trees]
        prior = (PRIOR_SHAPE - 1) * math.log(new_rate) - new_rate / PRIOR_SCALE - SHAPE_PRIOR_RATE * shape
        return -float(trees.weights @ np.array(logs)) - prior

    within = tuple(math.log(end) for end in SHAPE_RANGE)
    log_shape = float(minimize_scalar(lambda x: loss(x, 0.0), bounds=within, options={"xatol": GAMMA_TOLERANCE}).x)
    clocks = (math.log(RATE_RANGE[0] / rate), math.log(RATE_RANGE[1] / rate))
    around = (max(clocks[0], -CLOCK_STEP), min(clocks[1], CLOCK_STEP))
    log_clock = 0.0
    if around[0] < around[1]:
        log_clock = float(
            minimize_scalar(lambda x: loss(log_shape, x), bounds=around, options={"xatol": GAMMA_TOLERANCE}).x
        )
    shape = min(max(math.exp(log_shape), SHAPE_RANGE[0]), SHAPE_RANGE[1])  # but for rounding it is
    process = process.replace(rate=rate * math.exp(log_clock))
    rates, weights = category_rates(shape), trees.weights / trees.weights.sum()
    sites = process.site_likelihoods(trees.X)
    means = [rates @ sites.chances(sites.given_category(tree, shape)) for tree in trees.trees]
    return process.replace(gamma_shape=shape, site_rate=weights @ np.array(means))


def _scale_rates(process: Multinomial, trees: WeightedTrees) -> Multinomial:
    """Return the process with all rates multiplied by the factor of the largest likelihood, found in a few steps.

    If many columns were not recorded, expectation-maximisation alone changes rates slowly.
    """

    def log_density(log_factor: float) -> float:
        rates = process.rate * math.exp(log_factor)
        if np.any((rates < RATE_RANGE[0]) | (rates > RATE_RANGE[1])):
            return -math.inf
        scaled = process.replace(rate=rates)
        logs = [scaled.log_likelihood(tree, trees.X) for tree in trees.trees]
        return float(trees.weights @ np.array(logs)) + scaled.log_parameter_prior(trees.X)

    best, highest = 0.0, log_density(0.0)
    for width in SCALE_WIDTHS:
        low, high = log_density(best - width), log_density(best + width)
        bend = low + high - 2 * highest
        step = 0.5 * width * (low - high) / bend if -math.inf < bend < 0 else width * np.sign(high - low)
        trial = best + float(np.clip(step, -3 * width, 3 * width))
        for at, value in ((best - width, low), (best + width, high), (trial, log_density(trial))):
            if value > highest:
                best, highest = at, value
    return process.replace(rate=process.rate * math.exp(best))


def expect_redraws(process: Multinomial, trees: WeightedTrees) -> Redraws:
    """Return the expected mutations of all columns, given trees and table."""
    n, n_columns = trees.X.shape
    assert process.equilibrium is not None, "expect_redraws is called on a resolved process"
    n_edges = max(2 * n - 3, 0)
    lengths = np.empty((len(trees.trees), n_edges))
    shares = np.empty((n_columns, len(trees.trees), n_edges))
    draws, noise_draws = np.zeros(sum(len(q) for q in process.equilibrium)), np.zeros(n_columns)
    for k, (tree, weight) in enumerate(zip(trees.trees, trees.weights, strict=True)):
        beliefs = Beliefs(tree, trees.X, process)
        of_tree, of_sites = np.empty(beliefs.forest.state.shape[1]), np.empty((beliefs.forest.n_sites, n_edges))
        expected_redraws(beliefs.forest, tree.children, tree.heights, beliefs.turn, lengths[k], of_sites, of_tree)
        layout = beliefs.forest.layout
        shares[:, k] = of_sites[layout.site_of]
        draws += weight * (of_tree[layout.parts[0].at] * layout.parts[0].share)
        if process.noise.any():
            by_noise = _noise_chances(process, beliefs, trees.X)
            noise_draws += weight * by_noise.sum(axis=0)
            for d, first in enumerate(layout.parts[0].start[:-1]):
                rows = trees.X[:, d] >= 0
                np.add.at(draws, first + trees.X[rows, d].astype(np.intp), weight * by_noise[rows, d])
            sets, q = SetCells.from_codes(trees.X, process.equilibrium), np.concatenate(process.equilibrium)
            by_share = by_noise[sets.rows, sets.columns] / sets.shares(q)
            np.add.at(draws, sets.state, weight * q[sets.state] * by_share[sets.cell])
    weights = np.repeat(trees.weights, n_edges)
    redraws = shares.reshape(n_columns, -1)
    expected = Redraws(lengths.ravel(), weights, redraws, 1 - redraws, draws, noise_draws, np.zeros(n_columns))
    if process.ascertainment is not None:
        Unseen.from_table(process, trees.X).add_to(expected, trees)
    return expected


def _noise_chances(process: Multinomial, beliefs: Beliefs, X: FloatArray) -> FloatArray:
    """Return the probability of each observed cell to be noise, a draw from the equilibrium; 0 for missing cells.

    The message of a leaf is ``(1 - noise) [k observed] / q + noise``. Let b be the belief in the observed state without that
    cell. The cell is noise with probability proportional to ``noise q``, and its state with ``(1 - noise) b``. Of a set of
    states b and q are sums.
    """
    assert process.equilibrium is not None
    chances = np.zeros(X.shape)
    leaves = beliefs.nodes().take(slice(0, len(X)))  # given all cells, including their own
    noises = np.broadcast_to(process.noise, X.shape[1])
    for d, (q, noise) in enumerate(zip(process.equilibrium, noises, strict=True)):
        rows = np.flatnonzero(X[:, d] >= 0)
        codes = X[rows, d].astype(np.intp)
        belief = leaves.probability[rows, leaves.start[d] + codes]
        # a leaf in another state shows the observed one only by noise
        chances[rows, d] = (1 - belief) + belief * noise * q[codes] / (noise * q[codes] + 1 - noise)
    sets = SetCells.from_codes(X, process.equilibrium)
    at, noise, share = (sets.rows, sets.columns), noises[sets.columns], sets.shares(np.concatenate(process.equilibrium))
    belief = np.bincount(
        sets.cell, weights=leaves.probability[sets.rows[sets.cell], sets.state], minlength=len(sets.rows)
    )
    chances[at] = (1 - belief) + belief * noise * share / (noise * share + 1 - noise)
    return chances


def gradients(process: Multinomial, tree: Tree, X: ArrayLike) -> tuple[FloatArray, list[FloatArray]]:
    """Return the derivatives of ``log p(x | tree)`` by the rate and by the equilibrium of every column.

    Parameters
    ----------
    process : Multinomial
    tree : Tree
    X : array-like of shape (n_leaves, n_columns)

    Returns
    -------
    rate : ndarray of shape (n_columns,)
    equilibrium : list of ndarray
        By the probability of each state, as if they need not add up to 1.
    """
    matrix = as_matrix(X)
    resolved = process.resolve(matrix)
    assert resolved.equilibrium is not None
    expected = expect_redraws(resolved, WeightedTrees([tree], np.ones(1), matrix))
    x = resolved.column_rates(matrix.shape[1])[:, None] * expected.lengths
    with np.errstate(divide="ignore", invalid="ignore"):
        gained = np.where(x > 0, expected.redraws / np.expm1(x), 0.0)
    by_rate = np.sum(expected.lengths * (gained - expected.stays), axis=1)
    ends = np.cumsum([len(q) for q in resolved.equilibrium])[:-1]
    return by_rate, [
        column_draws / q for column_draws, q in zip(np.split(expected.draws, ends), resolved.equilibrium, strict=True)
    ]


def _best_rates(process: Multinomial, redraws: Redraws) -> FloatArray:
    """Maximise ``sum of redraws log(1 - exp(-rate length)) - (1 - redraws) rate length`` and the prior, concave: eq. (11.2)."""
    real = redraws.lengths > 0
    lengths, weights, shares, stays = (array[..., real] for array in redraws[:4])
    pooled = process.rate.ndim == 0
    rate = np.array(np.broadcast_to(process.rate, len(shares)))
    factors = process._factors
    if factors is None:
        idle = (stays * weights) @ lengths
    else:
        lengths = factors[:, None] * lengths
        idle = np.sum(stays * weights * lengths, axis=1)
    if pooled:
        idle = np.full(len(shares), idle.sum())
    low, high = np.minimum(rate, RATE_RANGE[0]), np.maximum(rate, RATE_RANGE[1])
    rate = np.clip(rate, RATE_RANGE[0], RATE_RANGE[1])
    for _ in range(60):
        x = np.minimum(rate[:, None] * lengths, 700.0)
        growth = np.expm1(x)
        slopes = shares * weights * lengths / growth
        bends = slopes * lengths * (growth + 1) / growth
        slope, bend = slopes.sum(axis=1), bends.sum(axis=1)
        if pooled:
            slope, bend = np.full(len(rate), slope.sum()), np.full(len(rate), bend.sum())
        slope += (PRIOR_SHAPE - 1) / rate - 1 / PRIOR_SCALE - idle
        bend += (PRIOR_SHAPE - 1) / rate**2
        low, high = np.where(slope > 0, rate, low), np.where(slope > 0, high, rate)
        new = rate * np.exp(np.clip(slope / (bend * rate - slope), -5, 5))  # Newton's step in the logarithm
        new = np.where((new > low) & (new < high), new, np.sqrt(low * high))
        done = np.max(np.abs(np.log(new / rate))) < 1e-6
        rate = new
        if done:
            break
    return rate[0] if pooled else rate


def _best_equilibria(process: Multinomial, redraws: Redraws) -> list[FloatArray]:
    """Return the shares of the states among all draws and one more, which is spread evenly: eq. (11.3)."""
    assert process.equilibrium is not None
    ends = np.cumsum([len(q) for q in process.equilibrium])[:-1]
    draws = np.split(redraws.draws, ends)
    shared = [np.sum(draws, axis=0)] if process.share_equilibrium else draws
    best = [(counts + 1 / len(counts)) / (counts.sum() + 1) for counts in shared]
    return best * len(draws) if process.share_equilibrium else best


def _best_noise(process: Multinomial, redraws: Redraws, X: FloatArray) -> FloatArray:
    """Return the most probable noise given how many cells it has drawn: eq. (11.4)."""
    assert process.equilibrium is not None
    observed = SetCells.from_codes(X, process.equilibrium).without_flat(~np.isnan(X))
    cells, noise_draws = observed.sum(axis=0) + redraws.unseen_cells, redraws.noise_draws
    if process.noise.ndim == 0:
        cells, noise_draws = cells.sum(), noise_draws.sum()
    a, b = SITE_NOISE_PRIOR
    # noise that was given beyond this range may stay there
    least, most = np.minimum(process.noise, MIN_NOISE), np.maximum(process.noise, MAX_NOISE)
    best = np.clip((a - 1 + noise_draws) / (a + b - 2 + cells), least, most)
    return np.where(process.noise > 0, best, 0.0)  # noise of 0 stays


class UnseenDraws(NamedTuple):
    """Events in the columns that were not recorded, by the column of the table that they belong to."""

    events: IntArray  # (columns,), mutations
    copies: FloatArray  # (columns,), unrecorded columns, each times its rate over that of its column
    draws: IntArray  # (states,), of each state
    by_noise: IntArray  # (columns,), cells that the noise has drawn
    cells: IntArray  # (columns,), cells that would show a state


class MultinomialSampler(ParameterSampler[Multinomial]):
    """Draws rates, equilibria and noise, given draws of the states at all nodes, eq. (13.6)."""

    def __init__(self, process: Multinomial, X: FloatArray, hold_noise: bool) -> None:
        super().__init__(X)
        self._moves_noise = bool(process.noise.any()) and not hold_noise
        assert process.equilibrium is not None, "the process is resolved"
        self._share_equilibrium, self._hold_equilibrium = process.share_equilibrium, process.hold_equilibrium
        self._n_states = np.array([len(q) for q in process.equilibrium])
        self._start = np.concatenate([[0], np.cumsum(self._n_states)[:-1]])  # of the states of each column among all
        self._sets = SetCells.from_codes(X, process.equilibrium)
        self._n_observed = self._sets.without_flat(~np.isnan(X)).sum(axis=0)
        self._columns, self._rows = np.nonzero(X.T >= 0)
        self._codes = X[self._rows, self._columns].astype(np.intp)
        # Equal columns with the same parameters are drawn together; in those with noise each cell is drawn by itself.
        self._pattern_of = np.arange(X.shape[1])
        if process.rate.ndim == 0 and not process.noise.any() and (self._share_equilibrium or self._hold_equilibrium):
            relative = np.ones(X.shape[1]) if process.relative_rate is None else process.relative_rate
            numbers: dict[tuple[bytes, float, bytes], int] = {}
            keys = zip(np.ascontiguousarray(X.T), relative.tolist(), process.equilibrium, strict=True)
            of_key = [numbers.setdefault((cells.tobytes(), r, q.tobytes()), len(numbers)) for cells, r, q in keys]
            self._pattern_of = np.array(of_key, dtype=np.intp)
        self._patterns = np.unique(self._pattern_of, return_index=True)[1]  # the first column of each

    def _groups(self, process: Multinomial) -> tuple[IntArray, IntArray]:
        """Return the first column of each group of equal columns with equal rates, and the group of each column."""
        if process.site_rate is None:
            return self._patterns, self._pattern_of
        factors, factor_of = np.unique(process.site_rate, return_inverse=True)
        _, firsts, group_of = np.unique(
            self._pattern_of * len(factors) + factor_of, return_index=True, return_inverse=True
        )
        return firsts, group_of

    def draw(self, process: Multinomial, tree: Tree, rng: np.random.Generator) -> Multinomial:
        """Draw the states at all nodes, and given them rates, equilibria and noise."""
        if process.gamma_shape is not None:
            process = self._draw_site_rates(process, process.gamma_shape, tree, rng)
        assert process.equilibrium is not None
        n_columns, n_nodes = self.table.shape[1], tree.n_nodes
        firsts, group_of = self._groups(process)
        part = process._select_columns(firsts)
        forest = part.forest(self.table[:, firsts], n_nodes, patterns=False)
        columns = firsts[forest.layout.sites]  # of the table, for each site
        copies = np.bincount(group_of)[forest.layout.sites]
        drawn = np.empty((n_columns, n_nodes), dtype=np.intp)
        redraws, draws = (np.zeros((len(firsts), width), dtype=np.intp) for width in (n_nodes, forest.n_ranks))
        uniforms = rng.random((n_columns, n_nodes))
        draw_redraws(forest, tree.children, tree.heights, copies, uniforms, drawn, redraws, draws)
        unseen = self._draw_unseen(process, tree, rng)
        rates = _draw_rates(process, columns, redraws[:, :-1], tree.branch_lengths, rng, unseen)
        drawn_sites, drawn_states = np.nonzero(draws)
        counts = unseen.draws
        counts[self._start[columns[drawn_sites]] + drawn_states] += draws[drawn_sites, drawn_states]
        by_noise = unseen.by_noise
        if process.noise.any():  # so that each column is a group
            states = np.empty((n_columns, tree.n_leaves), dtype=np.intp)
            states[columns] = drawn[:, : tree.n_leaves]
            from_noise = self._noise_draws(process, states[self._columns, self._rows], rng)
            set_columns, set_states = self._set_draws(process, states, rng)
            noise_states = np.concatenate([(self._start[self._columns] + self._codes)[from_noise], set_states])
            counts += np.bincount(noise_states, minlength=len(counts))
            noise_columns = np.concatenate([self._columns[from_noise], set_columns])
            by_noise = by_noise + np.bincount(noise_columns, minlength=n_columns)
        equilibria: Sequence[FloatArray] = process.equilibrium
        if not self._hold_equilibrium:
            equilibria = self._draw_equilibria(process.equilibrium, counts, rng)
        noise = process.noise
        if self._moves_noise:
            noise = _draw_noise(noise, by_noise, self._n_observed + unseen.cells, rng)
        return process.replace(rate=rates, equilibrium=equilibria, noise=noise)

    def _draw_site_rates(
        self, process: Multinomial, gamma_shape: float, tree: Tree, rng: np.random.Generator
    ) -> Multinomial:
        """Draw the shape, summed over the categories of the columns, and then their categories: eq. (13.14)."""
        firsts = self._patterns
        part = process if len(firsts) == self.table.shape[1] else process._select_columns(firsts)
        sites = part.site_likelihoods(self.table[:, firsts], self._pattern_of)
        log_recorded_at = _recorded_at(process, self.table)

        def log_density(shape: float) -> float:
            return sites.log_likelihood(tree, shape) - log_recorded_at(tree, shape, 1.0) - SHAPE_PRIOR_RATE * shape

        shape = positive_slice_step(log_density, gamma_shape, SHAPE_RANGE, rng)
        shape = min(max(shape, SHAPE_RANGE[0]), SHAPE_RANGE[1])  # but for rounding it is
        drawn = category_rates(shape)[draw_categories(sites.chances(sites.given_category(tree, shape)), rng)]
        return process.replace(gamma_shape=shape, site_rate=drawn)

    def _draw_unseen(self, process: Multinomial, tree: Tree, rng: np.random.Generator) -> UnseenDraws:
        """Draw the number of columns that were not recorded, and their events: eq. (13.11)."""
        n_columns, n_states = len(self._n_states), int(self._n_states.sum())
        zeros = np.zeros(n_columns, dtype=np.intp)
        none = UnseenDraws(zeros, np.zeros(n_columns), np.zeros(n_states, dtype=np.intp), zeros, zeros)
        if process.ascertainment is None:
            return none
        assert process.equilibrium is not None
        unseen = Unseen.from_table(process, self.table)
        columns = unseen.columns
        # Every column of the table stands for its own share of those that were not recorded.
        n_categories = 1 if process.gamma_shape is None else N_CATEGORIES
        n_unseen = len(unseen.shown_state) // n_categories
        unseen_of = np.full(1 + int(unseen.unseen_state_of.max()), -1, dtype=np.intp)
        unseen_of[unseen.shown_state[:n_unseen]] = np.arange(n_unseen)
        states = np.flatnonzero(
            unseen_of[unseen.state_of] >= 0
        )  # of the table, whose constant columns are not recorded
        which = np.concatenate([unseen_of[unseen.state_of[states]] + z * n_unseen for z in range(n_categories)])
        states = np.tile(states, n_categories)
        owner = np.repeat(np.arange(n_columns), self._n_states)[states]
        odds = columns.odds(tree.children, tree.heights)[which]
        counts = rng.poisson(rng.standard_gamma(np.ones(n_columns))[owner] * odds)
        mutations = columns.draw_mutations(tree, np.repeat(which, counts), rng)
        state_of_copy = np.repeat(np.arange(len(states)), counts)
        events, of_state, of_others, by_noise = (
            np.bincount(state_of_copy, weights=weights, minlength=len(states)).astype(np.intp) for weights in mutations
        )
        draws = none.draws
        np.add.at(draws, states, of_state)
        for d, state, count in zip(owner.tolist(), states.tolist(), of_others.tolist(), strict=True):
            if count:  # of other states, each with its share
                shares = process.equilibrium[d].copy()
                shares[state - self._start[d]] = 0.0
                draws[self._start[d] : self._start[d] + len(shares)] += rng.multinomial(count, shares / shares.sum())
        known = columns.observed.sum(axis=0)[which]
        column_events, column_noise, cells = (
            np.bincount(owner, weights, n_columns).astype(np.intp) for weights in (events, by_noise, known * counts)
        )
        speed = columns.rate[which] / process.column_rates(n_columns)[owner]
        copies = np.bincount(owner, counts * speed, n_columns).astype(np.float64)
        return UnseenDraws(column_events, copies, draws, column_noise, cells)

    def _draw_equilibria(
        self, old: Sequence[FloatArray], counts: IntArray, rng: np.random.Generator
    ) -> list[FloatArray]:
        """Draw the equilibria of all columns given how often each state was drawn from them."""
        if self._share_equilibrium:
            n_states = len(old[0])
            shared = rng.dirichlet(1 + 1 / n_states + counts.reshape(-1, n_states).sum(axis=0))
            return [shared] * len(old) if shared.min() >= MIN_DRAWN_SHARE else list(old)
        # Gamma variables over their sum are from Dirichlet's distribution
        shares = rng.standard_gamma(1 + np.repeat(1 / self._n_states, self._n_states) + counts)
        shares /= np.repeat(np.add.reduceat(shares, self._start), self._n_states)
        possible = np.minimum.reduceat(shares, self._start) >= MIN_DRAWN_SHARE
        columns = np.split(shares, self._start[1:])
        return [
            new if is_possible else before
            for new, is_possible, before in zip(columns, possible.tolist(), old, strict=True)
        ]

    def _noise_draws(self, process: Multinomial, states: IntArray, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Draw which observed cells are draws from the equilibrium, given the states of their leaves."""
        assert process.equilibrium is not None
        noise = np.broadcast_to(process.noise, len(self._start))[self._columns]
        by_noise = noise * np.concatenate(process.equilibrium)[self._start[self._columns] + self._codes]
        chance = np.where(states == self._codes, by_noise / (by_noise + 1 - noise), 1.0)
        return rng.random(len(states)) < chance

    def _set_draws(self, process: Multinomial, states: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Draw which cells with several states are draws from the equilibrium, and which state; return columns and states."""
        sets = self._sets
        if not len(sets.rows):
            return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
        assert process.equilibrium is not None
        q, noise = np.concatenate(process.equilibrium), np.broadcast_to(process.noise, len(self._start))[sets.columns]
        at_leaves = self._start[sets.columns] + states[sets.columns, sets.rows]
        inside = np.bincount(sets.cell, weights=sets.state == at_leaves[sets.cell], minlength=len(sets.rows)) > 0
        by_noise = noise * sets.shares(q)
        from_noise = np.flatnonzero(
            rng.random(len(sets.rows)) < np.where(inside, by_noise / (by_noise + 1 - noise), 1.0)
        )
        return sets.columns[from_noise], sets.choose(q, from_noise, rng)

    def log_prior(self, process: Multinomial) -> float:
        """Return the log density of the parameters; minus infinity for rates out of range."""
        possible = np.all((process.rate >= RATE_RANGE[0]) & (process.rate <= RATE_RANGE[1]))
        return process.log_parameter_prior(self.table) if possible else -math.inf

    def clock_exponent(self, process: Multinomial) -> float | None:
        """Return minus the number of rates."""
        return -float(process.rate.size)

    def log_clock_ratio(self, process: Multinomial, log_factor: float) -> float:
        """Return the log ratio of densities: only the rates change."""
        rate = np.atleast_1d(process.rate)
        slow = rate * math.exp(-log_factor)
        if slow.min() < RATE_RANGE[0] or slow.max() > RATE_RANGE[1]:
            return -math.inf
        return float(np.sum(rate - slow)) / PRIOR_SCALE - PRIOR_SHAPE * len(rate) * log_factor


def _draw_rates(
    process: Multinomial,
    columns: IntArray,
    redraws: IntArray,
    lengths: FloatArray,
    rng: np.random.Generator,
    unseen: UnseenDraws,
) -> FloatArray:
    """Draw rates, given how often there are mutations on each branch in some columns, at least one each, eq. (13.6)."""
    rate, n_columns = process.rate, len(unseen.events)
    at = np.nonzero(redraws)
    site, edge = np.repeat(at, redraws[at], axis=1)
    column = columns[site]
    drawn = draw_events(process.column_rates(n_columns)[column] * lengths[edge], rng)
    events = np.bincount(column, drawn, n_columns) + unseen.events
    time = lengths.sum() * (1.0 + unseen.copies)
    if process._factors is not None:
        time = process._factors * time
    if rate.ndim == 0:
        events, time = events.sum(), time.sum()
    new_rate = rng.standard_gamma(PRIOR_SHAPE + events) / (1 / PRIOR_SCALE + time)
    return np.where((new_rate >= RATE_RANGE[0]) & (new_rate <= RATE_RANGE[1]), new_rate, rate)


def _check_factors(factors: ArrayLike, name: str) -> FloatArray:
    """Return the factors of the rates of columns, after checking them."""
    checked = to_floats(factors)
    if (
        checked is None
        or checked.ndim != 1
        or checked.size == 0
        or not np.all((checked >= MIN_RATE) & (checked <= MAX_RATE))
    ):
        raise InputError(f"{name} is {quote(factors)}; it must be one positive number per column.")
    checked.setflags(write=False)
    return checked


def _check_shape(gamma_shape: float) -> float:
    """Return the shape of a gamma distribution of rates, after checking it."""
    if not SHAPE.accepts(gamma_shape):
        raise InputError(f"gamma_shape is {quote(gamma_shape)}; it must be {SHAPE.allowed}, or None.")
    return float(gamma_shape)


def _draw_noise(noise: FloatArray, events: IntArray, cells: IntArray, rng: np.random.Generator) -> FloatArray:
    """Draw the noise given how many cells of each column it has drawn, eq. (13.8); one for all columns or one per column."""
    if noise.ndim == 0:
        events, cells = events.sum(), cells.sum()
    new_noise = rng.beta(SITE_NOISE_PRIOR[0] + events, SITE_NOISE_PRIOR[1] + cells - events)
    return np.where((noise > 0) & (new_noise > 0) & (new_noise < MAX_NOISE), new_noise, noise)  # noise of 0 stays
