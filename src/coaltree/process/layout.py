"""How a process declares its columns, and how a forest of messages is laid out from that.

A process says of which kind its columns are, Gaussian or sites with states, what the leaves' messages are and which parameters
the kind has. `make_forest` puts the declarations of all parts of a table side by side, in the order that
`coaltree.process.kernels.messages` wants, and `read_messages` gives each part its own messages back.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .kernels.messages import Forest

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class GaussianColumns(NamedTuple):
    """Real columns that diffuse alike, in units of the diffusion; see `coaltree.process.kernels.messages`."""

    mean: FloatArray  # (rows, columns), of the leaves' messages; 0 where a cell is missing
    spread: FloatArray  # (rows, columns), or (rows, 1) if `complete`
    complete: bool  # whether no cell is missing and all columns have the same noise
    noisy: bool  # whether leaves have noise: of pairs that would merge at once the likelier ones then come first
    rate: float = 0.0  # at which the past is forgotten; 0 for Brownian motion
    log_scale: FloatArray | None = None  # (columns,), log of the units, for Brownian motion
    root_variance: float = 1.0  # of the proper root that flat clusters are compared with, for Brownian motion
    center: FloatArray | None = None  # (columns,), what was taken off every row


class SiteColumns(NamedTuple):
    """Columns of states that are redrawn from an equilibrium at some rate."""

    message: FloatArray  # (rows, states of all columns), ``M_k``, with ``sum_k q_k M_k = 1`` in every column
    equilibrium: Sequence[FloatArray]  # of each column
    rate: FloatArray  # (columns,)
    noisy: bool


Columns: TypeAlias = GaussianColumns | SiteColumns


class GaussianMessages(NamedTuple):
    """What some slots say of Gaussian columns."""

    mean: FloatArray  # (slots, columns)
    spread: FloatArray  # (slots, columns)
    center: FloatArray  # (columns,)


class SiteMessages(NamedTuple):
    """What some slots say of columns of states."""

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


class Parameters(NamedTuple):
    """What all messages of a forest have in common."""

    complete: bool
    noisy: bool
    log_scale: FloatArray
    root_variance: FloatArray
    group: IntArray
    rate: FloatArray
    site_rate: FloatArray
    common_rate: float
    rank: IntArray
    root_q: FloatArray


@dataclass(frozen=True)
class Layout:
    """Which columns of a table are where in a forest."""

    parts: tuple[_Part, ...]
    sites: IntArray  # (sites,), the column of each, counted over all columns with states


def make_forest(columns: Sequence[Columns], capacity: int, scan: bool = False) -> Forest:
    """Return a forest of `capacity` slots whose first ones hold the messages of the leaves.

    Parameters
    ----------
    columns : sequence of GaussianColumns or SiteColumns
        The declarations of all parts.
    capacity : int
    scan : bool, default False
        Whether partners of a slot are looked for among many: messages then hold what makes that fast.
    """
    real = _RealColumns.of(columns)
    sites = _Sites.of([own for own in columns if isinstance(own, SiteColumns)])
    mean, spread, least = real.messages(capacity)
    state = sites.messages(capacity)
    growth = np.ones((capacity, len(sites.order) if scan else 0))
    parameters = Parameters(
        real.complete,
        any(own.noisy for own in columns),
        np.concatenate([np.zeros(0), *(own.log_scale for own in real.brownian if own.log_scale is not None)]),
        np.concatenate([np.zeros(0), *(np.full(own.mean.shape[1], own.root_variance) for own in real.brownian)]),
        real.starts[len(real.brownian) :],
        np.array([own.rate for own in real.stationary], dtype=np.float64),
        sites.rate,
        sites.common_rate,
        sites.rank,
        sites.root_q,
    )
    real_parts, site_parts = iter(real.parts()), iter(sites.parts())
    parts = tuple(next(real_parts if isinstance(own, GaussianColumns) else site_parts) for own in columns)
    return Forest(np.zeros(capacity), mean, spread, least, state, growth, parameters, Layout(parts, sites.order))


@dataclass(frozen=True)
class _RealColumns:
    """All real columns of a table in the order of a forest: Brownian ones first."""

    declared: list[GaussianColumns]  # in the order of the table
    brownian: list[GaussianColumns]
    stationary: list[GaussianColumns]
    starts: IntArray  # where the columns of each declaration begin, in the order of the forest, and the end
    complete: bool

    @classmethod
    def of(cls, columns: Sequence[Columns]) -> _RealColumns:
        declared = [own for own in columns if isinstance(own, GaussianColumns)]
        brownian = [own for own in declared if own.rate == 0]
        stationary = [own for own in declared if own.rate > 0]
        widths = [own.mean.shape[1] for own in brownian + stationary]
        complete = len(columns) == 1 and len(declared) == 1 and declared[0].complete
        return cls(declared, brownian, stationary, np.cumsum([0, *widths]).astype(np.intp), complete)

    def messages(self, capacity: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return mean, spread and shortest path of all slots."""
        mean = np.zeros((capacity, self.starts[-1]))
        spread = np.zeros((capacity, 1 if self.complete else self.starts[-1]))
        least = np.full(capacity, np.inf)
        for own, (first, last) in zip(self.brownian + self.stationary, pairwise(self.starts), strict=True):
            n = len(own.mean)
            mean[:n, first:last] = own.mean
            spread[:n, first : first + 1 if self.complete else last] = own.spread
            smallest = own.spread.min(axis=1)
            if own.rate > 0:
                with np.errstate(divide="ignore"):
                    smallest = -np.log1p(-smallest) / own.rate
            least[:n] = np.minimum(least[:n], smallest)
        return mean, spread, least

    def parts(self) -> Iterator[_Part]:
        """Yield where the columns of each declaration are."""
        order = [id(own) for own in self.brownian + self.stationary]
        for own in self.declared:
            at = order.index(id(own))
            center = np.zeros(own.mean.shape[1]) if own.center is None else own.center
            none = np.zeros(0)
            yield _Part(slice(self.starts[at], self.starts[at + 1]), center, np.zeros(1, dtype=np.intp), none, none)


@dataclass(frozen=True)
class _Sites:
    """All sites of a table in the order of a forest: those with the most states first, states by their rank."""

    declared: list[SiteColumns]
    q: FloatArray  # (states,), column by column
    places: IntArray  # (states,), where each is in a row of the forest
    order: IntArray  # (sites,), the column of each
    rank: IntArray  # (ranks + 1,)
    rate: FloatArray  # (sites,), in the order of the forest

    @classmethod
    def of(cls, declared: list[SiteColumns]) -> _Sites:
        equilibria = [q for own in declared for q in own.equilibrium]
        counts = np.array([len(q) for q in equilibria], dtype=np.intp)
        start = np.cumsum([0, *counts]).astype(np.intp)
        order = np.argsort(-counts, kind="stable").astype(np.intp)
        ranks = [order[counts[order] > rank] for rank in range(int(counts.max(initial=0)))]
        states = np.concatenate([np.zeros(0, dtype=np.intp), *(start[own] + rank for rank, own in enumerate(ranks))])
        places = np.empty(len(states), dtype=np.intp)
        places[states] = np.arange(len(states))
        q = np.concatenate([np.zeros(0), *equilibria])
        rate = np.concatenate([np.zeros(0), *(own.rate for own in declared)])[order]
        return cls(declared, q, places, order, np.cumsum([0, *map(len, ranks)]).astype(np.intp), rate)

    @property
    def common_rate(self) -> float:
        """The rate of all sites, NaN if they have different ones."""
        return float(self.rate[0]) if len(self.rate) and np.all(self.rate == self.rate[0]) else math.nan

    @property
    def root_q(self) -> FloatArray:
        """Square roots of the equilibria, in the order of the forest."""
        root_q = np.empty(len(self.q))
        root_q[self.places] = np.sqrt(self.q)
        return root_q

    def messages(self, capacity: int) -> FloatArray:
        """Return the messages of all slots."""
        state = np.zeros((capacity, len(self.q)))
        first = 0
        for own in self.declared:
            for message in own.message.T:  # state by state: no second table in memory
                state[: len(message), self.places[first]] = message * math.sqrt(self.q[first])
                first += 1
        return state

    def parts(self) -> Iterator[_Part]:
        """Yield where the states of each declaration are."""
        first = 0
        for own in self.declared:
            start = np.cumsum([0, *(len(q) for q in own.equilibrium)]).astype(np.intp)
            here = slice(first, first + int(start[-1]))
            yield _Part(self.places[here], np.zeros(0), start, self.q[here], own.rate)
            first = here.stop


def read_messages(forest: Forest, slots: IntArray | slice) -> Messages:
    """Return what some slots of a forest say, of each declaration by itself."""
    found: Messages = []
    mean, spread, state, root_q = map(np.asarray, (forest.mean, forest.spread, forest.state, forest.root_q))
    for part in forest.layout.parts:
        if len(part.q):
            own = state[slots][:, part.at] / root_q[part.at]
            found.append(SiteMessages(own, part.start, part.q, part.rate))
        else:
            means = mean[slots, part.at]
            spreads = spread[slots] if forest.complete else spread[slots, part.at]
            found.append(GaussianMessages(means, np.broadcast_to(spreads, means.shape), part.center))
    return found
