"""Forests of the messages of declared columns. A missing cell has a flat message: it is integrated out.

`make_forest` combines the declarations of all parts of a table in the order that `coaltree.process.kernels.messages` requires.
`read_messages` returns the messages of each part.

Columns with the same states, rate and equilibrium have the same likelihood on every tree, even if their states are numbered
differently. Such a *site pattern* is one site of the forest, weighted by its number of columns. States of a column that have the
same messages in all rows, such as states that do not occur, are one state of the site. `Layout.site_of` has the site of each
column.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .declarations import ChainColumns, Columns, GaussianColumns, SiteColumns
from .kernels.messages import Forest

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

HASHED_ROWS = 64  # at once: no second table in memory
CELLS_AT_ONCE = 100_000  # of messages that are copied
MAX_PATTERNS = 0.75  # of all states: if more of them differ, each column is a site of its own


class GaussianMessages(NamedTuple):
    """The messages of Gaussian columns in some slots."""

    mean: FloatArray  # (slots, columns)
    spread: FloatArray  # (slots, columns)
    center: FloatArray  # (columns,)


class SiteMessages(NamedTuple):
    """The messages of columns with states in some slots."""

    message: FloatArray  # (slots, states of all columns), ``M_k``
    start: IntArray  # (columns + 1,), where the states of each column begin
    q: FloatArray  # (states of all columns,)
    rate: FloatArray  # (columns,)


Messages: TypeAlias = list[GaussianMessages | SiteMessages]


@dataclass(frozen=True)
class _Part:
    """Where the columns of one declaration are in a forest."""

    at: Any  # slice of the real columns, or the places of the states in a row
    center: FloatArray
    start: IntArray
    q: FloatArray
    rate: FloatArray
    share: FloatArray  # of each state in the probability of all states that are lumped with it


class Parameters(NamedTuple):
    """The parameters that all messages of a forest share."""

    complete: bool
    noisy: bool
    log_scale: FloatArray
    root_variance: FloatArray
    group: IntArray
    together: NDArray[np.uint8]
    rate: FloatArray
    site_rate: FloatArray
    common_rate: float
    rank: IntArray
    root_q: FloatArray
    site_weight: FloatArray
    real_weight: FloatArray
    chain_start: IntArray
    chain_rate: FloatArray
    basis: FloatArray
    fastest_exit: FloatArray
    chain_weight: FloatArray


@dataclass(frozen=True)
class Layout:
    """The positions of the columns of a table in a forest."""

    parts: tuple[_Part, ...]
    sites: IntArray  # (sites,), the column of each, or the first of them, counted over all columns with states
    site_of: IntArray  # (columns with states,), the site of each


def make_forest(columns: Sequence[Columns], capacity: int, scan: bool = False, patterns: bool = True) -> Forest:
    """Return a forest of `capacity` slots whose first ones hold the messages of the leaves.

    Parameters
    ----------
    columns : sequence of GaussianColumns, SiteColumns or ChainColumns
        The declarations of all parts.
    capacity : int
    scan : bool, default False
        Whether partners of a slot are searched for among many: messages then hold additional numbers that make it fast.
    patterns : bool, default True
        Whether equal columns with states may be one site; if not, each column has its own.
    """
    real = _RealColumns.from_columns(columns)
    sites = _Sites.from_columns([part for part in columns if isinstance(part, SiteColumns)], patterns)
    chains = [part for part in columns if isinstance(part, ChainColumns)]
    mean, spread, least = real.messages(capacity)
    if chains and not real.starts[-1]:
        least[: chains[0].n_rows] = min(part.path for part in chains)
    state, (chain, chain_parts, *chain_parameters) = sites.messages(capacity), _lay_chains(chains, capacity)
    growth = np.ones((capacity, len(sites.order) if scan else 0))
    parameters = Parameters(
        real.complete,
        any(part.noisy for part in columns),
        np.concatenate([np.zeros(0), *(part.log_scale for part in real.brownian if part.log_scale is not None)]),
        np.concatenate([np.zeros(0), *(np.full(part.mean.shape[1], part.root_variance) for part in real.brownian)]),
        real.starts[len(real.brownian) :],
        real.together,
        np.array([part.rate for part in real.stationary], dtype=np.float64),
        sites.rate,
        sites.common_rate if not chains else math.nan,
        sites.rank,
        sites.root_q,
        sites.weight,
        np.concatenate([np.zeros(0), *map(_weight_of, real.brownian + real.stationary)]),
        *chain_parameters,
    )
    kinds = {GaussianColumns: real.parts(), SiteColumns: sites.parts(), ChainColumns: iter(chain_parts)}
    layout = Layout(tuple(next(kinds[type(part)]) for part in columns), sites.order, sites.site_of)
    return Forest(np.zeros(capacity), mean, spread, least, state, growth, chain, parameters, layout)


@dataclass(frozen=True)
class _RealColumns:
    """All real columns of a table in the order of a forest: Brownian ones first."""

    declared: list[GaussianColumns]  # in the order of the table
    brownian: list[GaussianColumns]
    stationary: list[GaussianColumns]
    starts: IntArray  # where the columns of each declaration begin, in the order of the forest, and the end
    complete: bool

    @classmethod
    def from_columns(cls, columns: Sequence[Columns]) -> _RealColumns:
        declared = [part for part in columns if isinstance(part, GaussianColumns)]
        brownian = [part for part in declared if part.rate == 0]
        stationary = [part for part in declared if part.rate > 0]
        widths = [part.mean.shape[1] for part in brownian + stationary]
        complete = len(columns) == 1 and len(declared) == 1 and declared[0].complete
        if complete:  # that layout has one weight for all
            weight = declared[0].weight
            complete = widths[0] > 0 if weight is None else len(np.unique(weight)) == 1
        return cls(declared, brownian, stationary, np.cumsum([0, *widths]).astype(np.intp), complete)

    @property
    def together(self) -> NDArray[np.uint8]:
        """Whether all Brownian columns share one spread in each slot, and whether those of each stationary declaration do."""
        one_kind = len(self.brownian) == 1 and self.brownian[0].complete
        return np.array([one_kind, *(part.complete for part in self.stationary)], dtype=np.uint8)

    def messages(self, capacity: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return mean, spread and shortest path of all slots."""
        mean = np.zeros((capacity, self.starts[-1]))
        spread = np.zeros((capacity, 1 if self.complete else self.starts[-1]))
        least = np.full(capacity, np.inf)
        for part, (first, last) in zip(self.brownian + self.stationary, pairwise(self.starts), strict=True):
            n = len(part.mean)
            mean[:n, first:last] = part.mean
            spread[:n, first : first + 1 if self.complete else last] = part.spread
            smallest = part.spread.min(axis=1)
            if part.rate > 0:
                with np.errstate(divide="ignore"):
                    smallest = -np.log1p(-smallest) / part.rate
            least[:n] = np.minimum(least[:n], smallest)
        return mean, spread, least

    def parts(self) -> Iterator[_Part]:
        """Yield where the columns of each declaration are."""
        order = [id(part) for part in self.brownian + self.stationary]
        for part in self.declared:
            at = order.index(id(part))
            center = np.zeros(part.mean.shape[1]) if part.center is None else part.center
            none = np.zeros(0)
            yield _Part(
                slice(self.starts[at], self.starts[at + 1]), center, np.zeros(1, dtype=np.intp), none, none, none
            )


def _weight_of(columns: GaussianColumns | SiteColumns) -> FloatArray:
    """Return the weights of declared columns."""
    n_columns = columns.mean.shape[1] if isinstance(columns, GaussianColumns) else len(columns.equilibrium)
    return np.ones(n_columns) if columns.weight is None else columns.weight


def _find_patterns(declared: list[SiteColumns], start: IntArray, q: FloatArray, rate: FloatArray) -> IntArray:
    """Find equivalent states and columns; return, for every state, the one that represents it.

    States of one column that have the same messages, such as states that do not occur, are lumped: they have the same messages on
    every tree. Columns with the same rate, and with the same messages and probabilities of all lumps up to their order, are one
    pattern. Messages are compared by their hashes first, then in full. Where these already tell more states apart than
    `MAX_PATTERNS` allows, all states represent themselves.
    """
    table = declared[0].message if len(declared) == 1 else np.hstack([part.message for part in declared])
    hashes = _hash_columns(np.ascontiguousarray(table, dtype=np.float64).view(np.uint64))
    if 1 + np.count_nonzero(np.diff(np.sort(hashes))) > MAX_PATTERNS * len(q):
        return np.arange(len(q))
    lump = np.arange(len(q))
    for _, states in _same_widths(start):
        states = np.take_along_axis(states, np.argsort(hashes[states], axis=1, kind="stable"), axis=1)
        same = np.zeros(states.shape, dtype=np.bool_)
        for k in range(1, states.shape[1]):
            same[:, k] = _equal(table, hashes, states[:, k - 1], states[:, k])
        first = np.maximum.accumulate(np.where(same, 0, np.arange(states.shape[1])), axis=1)
        lump[states] = np.take_along_axis(states, first, axis=1)
    distinct_states = np.flatnonzero(lump == np.arange(len(q)))
    total = np.bincount(lump, weights=q, minlength=len(q))
    pattern = np.arange(len(q))
    for columns, places in _same_widths(np.searchsorted(distinct_states, start)):
        states = distinct_states[places]
        order = np.lexsort((hashes[states], total[states]), axis=1)
        states = np.take_along_axis(states, order, axis=1)
        keys = np.hstack([rate[columns, None].view(np.uint64), total[states].view(np.uint64), hashes[states]])
        keys = np.ascontiguousarray(keys).view(np.dtype((np.void, keys.shape[1] * 8))).ravel()
        _, firsts, members = np.unique(keys, return_index=True, return_inverse=True)
        first = states[firsts[members]]
        all_same = np.ones(len(states), dtype=np.bool_)
        for k in range(states.shape[1]):
            all_same &= _equal(table, hashes, first[:, k], states[:, k])
        pattern[states[all_same]] = first[all_same]
    return np.asarray(pattern[lump])


def _same_widths(start: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield, for each number of states, the columns that have it, and where their states are, a row for each column."""
    widths = np.diff(start)
    for width in np.unique(widths).tolist():
        columns = np.flatnonzero(widths == width)
        yield columns, start[columns, None] + np.arange(width)


def _equal(table: FloatArray, hashes: NDArray[np.uint64], one: IntArray, other: IntArray) -> NDArray[np.bool_]:
    """Return which pairs of columns of a table are equal."""
    same = hashes[one] == hashes[other]
    differing = np.flatnonzero(same & (one != other))  # in their numbers
    same[differing] = np.all(table[:, one[differing]] == table[:, other[differing]], axis=0)
    return np.asarray(same)


def _hash_columns(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a hash of each column: the sum of its bits times odd numbers, modulo 2^64."""
    factors = _FACTORS if len(values) <= len(_FACTORS) else _odd_numbers(len(values))
    total = np.zeros(values.shape[1], dtype=np.uint64)
    for first in range(0, len(values), HASHED_ROWS):
        rows = values[first : first + HASHED_ROWS]
        total += ((rows ^ (rows >> np.uint64(29))) * factors[first : first + len(rows), None]).sum(axis=0)
    return total


def _odd_numbers(count: int) -> NDArray[np.uint64]:
    return 2 * np.random.default_rng(0).integers(2**63, size=count, dtype=np.uint64) + np.uint64(1)


_FACTORS = _odd_numbers(1_000)  # made once, because chains over small tables often make forests


@dataclass(frozen=True)
class _Sites:
    """All sites of a table in the order of a forest: those with the most states first, states by their rank."""

    declared: list[SiteColumns]
    q: FloatArray  # (states of all columns,), column by column
    share: FloatArray  # (states of all columns,), of each in the probability of all that are lumped with it
    places: IntArray  # (states of all columns,), where each is in a row of the forest
    order: IntArray  # (sites,), the first column of each
    site_of: IntArray  # (columns,)
    rank: IntArray  # (ranks + 1,)
    rate: FloatArray  # (sites,), in the order of the forest
    weight: FloatArray  # (sites,)

    @classmethod
    def from_columns(cls, declared: list[SiteColumns], patterns: bool) -> _Sites:
        if not declared:
            return _NO_SITES
        equilibria = [q for part in declared for q in part.equilibrium]
        start = np.cumsum([0, *map(len, equilibria)]).astype(np.intp)
        q = np.concatenate([np.zeros(0), *equilibria])
        rate = np.concatenate([np.zeros(0), *(part.rate for part in declared)])
        weight = np.concatenate([np.zeros(0), *map(_weight_of, declared)])
        state = np.arange(len(q))  # the state that represents each state
        pattern_states: IntArray | None = None
        if patterns and len(q):
            pattern_states = _find_patterns(declared, start, q, rate)
            if np.count_nonzero(pattern_states == state) <= MAX_PATTERNS * len(q):
                state = pattern_states
        column = np.repeat(np.arange(len(rate)), np.diff(start))  # of each state
        share = np.ones(len(q))
        if state is pattern_states:
            _, lump = np.unique(column * len(q) + state, return_inverse=True)  # groups of states of one column
            share = q / np.bincount(lump, weights=q)[lump]
        distinct_states = np.flatnonzero(state == np.arange(len(q)))
        counts = np.bincount(column[distinct_states], minlength=len(rate))
        distinct_start = np.searchsorted(distinct_states, start)
        distinct_columns = np.flatnonzero(counts)
        order = distinct_columns[np.argsort(-counts[distinct_columns], kind="stable")].astype(np.intp)
        ranks = [order[counts[order] > rank] for rank in range(int(counts.max(initial=0)))]
        in_order = np.concatenate(
            [np.zeros(0, np.intp), *(distinct_start[sites] + rank for rank, sites in enumerate(ranks))]
        )
        places = np.empty(len(q), dtype=np.intp)
        places[distinct_states[in_order]] = np.arange(len(in_order))
        site_of = np.empty(len(rate), dtype=np.intp)
        site_of[order] = np.arange(len(order))
        site_of = site_of[column[state[start[:-1]]]]
        total = np.zeros(len(order))
        np.add.at(total, site_of, weight)
        rank = np.cumsum([0, *map(len, ranks)]).astype(np.intp)
        return cls(declared, q, share, places[state], order, site_of, rank, rate[order], total)

    @property
    def common_rate(self) -> float:
        """The rate of all sites, NaN if they have different ones."""
        return float(self.rate[0]) if len(self.rate) and np.all(self.rate == self.rate[0]) else math.nan

    @property
    def root_q(self) -> FloatArray:
        """Square roots of the equilibria, in the order of the forest."""
        root_q = np.empty(self.rank[-1])
        root_q[self.places] = np.sqrt(self.q / self.share)
        return root_q

    def messages(self, capacity: int) -> FloatArray:
        """Return the messages of all slots."""
        if not self.declared:
            return np.zeros((capacity, 0))
        state, root_q = np.zeros((capacity, self.rank[-1])), self.root_q
        first_states = np.unique(self.places, return_index=True)[1]  # of the first column of each site
        first = 0
        for part in self.declared:
            last = first + part.message.shape[1]
            own = first_states[(first_states >= first) & (first_states < last)]
            at_once = max(CELLS_AT_ONCE // max(len(part.message), 1), 1)  # no second table in memory
            for block in (own[k : k + at_once] for k in range(0, len(own), at_once)):
                places = self.places[block]
                state[: len(part.message), places] = part.message[:, block - first] * root_q[places]
            first = last
        return state

    def parts(self) -> Iterator[_Part]:
        """Yield where the states of each declaration are."""
        first = 0
        for part in self.declared:
            start = np.cumsum([0, *(len(q) for q in part.equilibrium)]).astype(np.intp)
            states = slice(first, first + int(start[-1]))
            yield _Part(self.places[states], np.zeros(0), start, self.q[states], part.rate, self.share[states])
            first = states.stop


def _no_sites() -> _Sites:
    none, nothing = np.zeros(0, dtype=np.intp), np.zeros(0)
    return _Sites([], nothing, nothing, none, none, none, np.zeros(1, dtype=np.intp), nothing, nothing)


_NO_SITES = _no_sites()  # made once, because chains over tables of numbers often make forests


def _lay_chains(declared: list[ChainColumns], capacity: int) -> tuple[Any, ...]:
    """Return the messages of chains in all slots, where those of each declaration are, and their parameters for the kernels."""
    equilibria = [q for part in declared for q in part.equilibrium]
    start = np.cumsum([0, *map(len, equilibria)]).astype(np.intp)
    rate, basis = np.zeros(start[-1]), np.zeros((start[-1], max(map(len, equilibria), default=0)))
    fastest_exit = np.zeros(len(equilibria))
    chain, parts, first, d = np.zeros((capacity, start[-1])), [], 0, 0
    for part in declared:
        for q, generator in zip(part.equilibrium, part.generator, strict=True):
            states = slice(start[d], start[d + 1])
            rate[states], basis[states, : len(q)] = eigenbasis(q, generator)
            fastest_exit[d] = -np.diag(generator).min()
            message = part.message[:, start[d] - first : start[d + 1] - first]
            chain[: part.n_rows, states] = (message * np.sqrt(q)) @ basis[states, : len(q)]
            d += 1
        own = np.cumsum([0, *map(len, part.equilibrium)]).astype(np.intp)
        at = slice(first, first + int(own[-1]))
        rates = fastest_exit[d - len(part.equilibrium) : d]
        parts.append(_Part(at, np.zeros(0), own, np.concatenate([np.zeros(0), *part.equilibrium]), rates, np.zeros(0)))
        first = at.stop
    return chain, parts, start, rate, basis, fastest_exit, np.ones(len(equilibria))


def eigenbasis(q: FloatArray, generator: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the rates and the orthonormal eigenvectors, in columns, of a reversible chain in symmetric form, eq. (5.10).

    The first is that of the equilibrium, also where the chain is not connected.
    """
    root = np.sqrt(q)
    full = np.linalg.qr(np.column_stack([root, np.eye(len(q))]))[0]
    symmetric = root[:, None] * generator / root
    rates, vectors = np.linalg.eigh(full[:, 1:].T @ (-0.5 * (symmetric + symmetric.T)) @ full[:, 1:])
    return np.concatenate([[0.0], np.maximum(rates, 0.0)]), np.column_stack([root, full[:, 1:] @ vectors])


def read_messages(forest: Forest, slots: IntArray | slice) -> Messages:
    """Return the messages in some slots of a forest, separately for each declaration."""
    messages: Messages = []
    mean, spread, state, root_q = map(np.asarray, (forest.mean, forest.spread, forest.state, forest.root_q))
    for part in forest.layout.parts:
        if not len(part.share) and len(part.q):
            chain, basis = np.asarray(forest.chain)[slots, part.at], np.asarray(forest.basis)[part.at]
            messages.append(
                SiteMessages(_to_states(chain, basis, part.start) / np.sqrt(part.q), part.start, part.q, part.rate)
            )
        elif len(part.q):
            ratios = state[slots][:, part.at] / root_q[part.at]
            messages.append(SiteMessages(ratios, part.start, part.q, part.rate))
        else:
            means = mean[slots, part.at]
            spreads = spread[slots] if forest.complete else spread[slots, part.at]
            messages.append(GaussianMessages(means, np.broadcast_to(spreads, means.shape), part.center))
    return messages


def _to_states(chain: FloatArray, basis: FloatArray, start: IntArray) -> FloatArray:
    """Return ``sqrt(q) M`` of chains, given their messages in the basis of eigenvectors."""
    states = np.empty_like(chain)
    for first, last in pairwise(start.tolist()):
        states[:, first:last] = np.maximum(chain[:, first:last] @ basis[first:last, : last - first].T, 0.0)
    return states
