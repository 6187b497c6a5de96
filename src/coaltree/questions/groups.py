"""The places of new rows in groups, each with a bound of what it can add to a row's density.

A tree of a million leaves has millions of places, and a row is likely at few of them. Groups whose bounds add up to next to
nothing beside what was found elsewhere are never looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import NamedTuple, TypeVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from ..process.beliefs import Beliefs
from ..process.predictions import Predictions
from ..tree.attachment import SHORTEST, Places, places
from ..tree.tree import Tree
from .kernels.places import add_logs, add_moments, bound_groups, find_needed, summarise

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
FlagArray = NDArray[np.uint8]  # 0 or 1, as kernels read and write it
Answer = TypeVar("Answer")

WIDTH = 512  # places of a group; their numbers stay in the processor's cache while rows pass by
ALWAYS_LOOKED_AT = 50_000  # of so many places each is looked at: bounds would cost more than they spare
FIRST = 8  # groups that a row looks at to learn how little is negligible
NEGLECTED = 1e-9  # largest share of a row's density that may be in the groups that it does not look at
KEPT = 40_000_000  # numbers of tables of places that are kept; of more they are made again for every block of rows
MADE_AT_ONCE = 2_000_000
NUMBERS_AT_ONCE = 1_000_000  # rows times places that they look at in memory, for each thread
MANY_AT_ONCE, FEW_THREADS = 32_000_000, 4  # instead, where tables are made again: the more rows share them the better
ROWS_AT_ONCE = 256
LEAST_PROBABILITY = 1e-300
LEAST_LOG = -1e300  # of a row so far out that its density is 0 in double precision, wherever it attaches


class Rows(NamedTuple):
    """New rows as kernels read them."""

    real: FloatArray  # (rows, real columns)
    observed: FlagArray
    states: IntArray  # (rows, categorical columns), counted over all columns; -1 for missing cells

    def take(self, rows: slice) -> Rows:
        """Return some of them."""
        return Rows(self.real[rows], self.observed[rows], self.states[rows])


class Tables(NamedTuple):
    """What new leaves show at the places of some groups; places that a group lacks have no mass."""

    log_masses: FloatArray  # (groups, width)
    means: FloatArray  # (groups, real columns, width)
    half_precisions: FloatArray
    log_constants: FloatArray
    log_probabilities: FloatArray  # (groups, states, width)
    probabilities: FloatArray


class Summaries(NamedTuple):
    """What the places of each group have in common."""

    log_masses: FloatArray  # (groups,), of all its places together
    low: FloatArray  # (real columns, groups), the smallest mean
    high: FloatArray
    least_sd: FloatArray
    largest_sd: FloatArray
    least_log_sd: FloatArray
    largest_log_sd: FloatArray
    floor: (
        FloatArray  # (real columns, groups), of the log density: 0 where some place says nothing, else minus infinity
    )
    log_probabilities: FloatArray  # (states, groups), the largest


class Looked(NamedTuple):
    """Rows and the groups that each looks at, a pair each, ordered by rows, then by groups."""

    rows: IntArray  # which of the rows asked for
    first_pairs: IntArray  # (rows + 1,), where the pairs of each row begin
    pair_rows: IntArray  # (pairs,), counted within these rows
    groups: IntArray  # (pairs,)
    shares: FloatArray  # (pairs, width), of the places' posterior
    log_density: FloatArray  # (rows,)


class PlaceGroups:
    """All places of new rows on some trees, tree by tree, and what new leaves show there.

    Parameters
    ----------
    weights : ndarray of shape (n_trees,)
    beliefs : list of Beliefs
        Of each tree.
    n_columns : int
    """

    def __init__(self, weights: FloatArray, beliefs: list[Beliefs], n_columns: int) -> None:
        self.beliefs = beliefs
        settled = beliefs[0].process.settled_height
        found = [places(own.tree, settled, min(1.1, 3 / math.sqrt(n_columns))) for own in beliefs]
        counts = np.array([len(own.nodes) for own in found])
        self.prunes = bool(counts.sum() > ALWAYS_LOOKED_AT)
        if self.prunes:
            found = [_near_together(own.tree, at, settled) for own, at in zip(beliefs, found, strict=True)]
        found = [at._replace(log_masses=at.log_masses + math.log(w)) for at, w in zip(found, weights, strict=True)]
        self.places = found[0] if len(found) == 1 else Places(*map(np.concatenate, zip(*found, strict=True)))
        self.bounds = np.concatenate([[0], np.cumsum(counts)])  # of the trees, in places
        self.width = int(np.max(np.ceil(counts / np.ceil(counts / WIDTH))))
        starts = [np.arange(a, b, self.width) for a, b in pairwise(self.bounds)]
        self.group_bounds = np.concatenate([[0], np.cumsum([len(own) for own in starts])])  # of the trees, in groups
        self.starts = np.concatenate(starts)
        self.stops = np.minimum(self.starts + self.width, np.repeat(self.bounds[1:], np.diff(self.group_bounds)))
        self._lock = Lock()  # beliefs at points of branches are made in memory that threads share

    # -- tables -----------------------------------------------------------------------------------------------------

    def shown_at(self, at: IntArray) -> Predictions:
        """Return what new leaves show at some places."""
        found: list[Predictions] = []
        order: list[IntArray] = []
        for k, beliefs in enumerate(self.beliefs):
            own = np.flatnonzero((at >= self.bounds[k]) & (at < self.bounds[k + 1]))
            if len(own) or k == 0:
                with self._lock:
                    found.extend(beliefs.new_leaves(self.places.nodes[at[own]], self.places.heights[at[own]]))
                order.append(own)
        if len(found) == 1:
            return found[0]
        stacked = Predictions.stacked(found)
        return stacked if len(order) == 1 else stacked.take(np.argsort(np.concatenate(order), kind="stable"))

    def _made(self, groups: IntArray) -> Tables:
        """Make the tables of some groups."""
        at = self.starts[groups, None] + np.arange(self.width)
        lacking = at >= self.stops[groups, None]
        at = np.where(lacking, self.stops[groups, None] - 1, at)
        shown = self.shown_at(at.ravel())
        known = shown.sd < np.inf
        sd = np.where(known, shown.sd, 1.0)
        probability = np.maximum(shown.probability, LEAST_PROBABILITY)

        def turned(table: FloatArray) -> FloatArray:
            return np.ascontiguousarray(table.reshape(*at.shape, table.shape[1]).transpose(0, 2, 1))

        return Tables(
            np.where(lacking, -np.inf, self.places.log_masses[at]),
            turned(np.where(known, shown.mean, 0.0)),
            turned(np.where(known, 0.5 / sd**2, 0.0)),
            turned(np.where(known, -np.log(sd) - 0.5 * math.log(2 * math.pi), 0.0)),
            turned(np.log(probability)),
            turned(probability),
        )

    @cached_property
    def _like(self) -> Predictions:
        """Which columns are real, and which states the others have."""
        return self.shown_at(np.zeros(0, dtype=np.intp))

    @cached_property
    def _numbers(self) -> int:
        """How many numbers of tables a group has."""
        return self.width * (1 + 3 * len(self._like.real) + 2 * int(self._like.start[-1]))

    @cached_property
    def _prepared(self) -> tuple[Tables | None, Summaries | None]:
        """The tables of all groups if they are few enough, and the summaries if there are many."""
        n, n_real, n_states = len(self.starts), len(self._like.real), int(self._like.start[-1])
        low, high, least_sd, largest_sd, least_log_sd, largest_log_sd, floor = np.empty((7, n_real, n))
        summaries = Summaries(
            np.empty(n), low, high, least_sd, largest_sd, least_log_sd, largest_log_sd, floor, np.empty((n_states, n))
        )
        kept: list[Tables] = []
        step = max(MADE_AT_ONCE // self._numbers, 1)
        for first in range(0, n, step):
            made = self._made(np.arange(first, min(first + step, n)))
            if self.prunes:
                summarise(*made[:3], made.log_probabilities, *summaries, first)
            if n * self._numbers <= KEPT:
                kept.append(made)
        whole = Tables(*map(np.concatenate, zip(*kept, strict=True))) if len(kept) > 1 else None
        return whole or (kept[0] if kept else None), summaries if self.prunes else None

    def _tables(self, groups: IntArray) -> Iterator[tuple[Tables, IntArray, IntArray]]:
        """Yield tables, the pairs whose groups are in them, ordered by group, and the groups' slots there."""
        order = np.argsort(groups, kind="stable")
        ordered = groups[order]
        kept, _ = self._prepared
        if kept is not None:
            yield kept, order, ordered
            return
        distinct = np.unique(ordered)
        step = max(MADE_AT_ONCE // self._numbers, 1)
        for first in range(0, len(distinct), step):
            some = distinct[first : first + step]
            own = slice(*np.searchsorted(ordered, [some[0], some[-1] + 1]))
            yield self._made(some), order[own], np.searchsorted(some, ordered[own])

    # -- rows -------------------------------------------------------------------------------------------------------

    def rows(self, white: FloatArray) -> Rows:
        """Lay out rows for kernels."""
        real = np.ascontiguousarray(white[:, self._like.real])
        codes = white[:, self._like.categorical]
        missing = np.isnan(codes)
        states = np.where(missing, -1, np.where(missing, 0, codes).astype(np.intp) + self._like.start[:-1])
        return Rows(real, (~np.isnan(real)).view(np.uint8), np.ascontiguousarray(states))

    def bound(self, rows: Rows) -> FloatArray:
        """Return for each row and group what the log of prior times likelihood, added up over the group, cannot exceed."""
        _, summaries = self._prepared
        assert summaries is not None
        bounds = np.empty((len(rows.real), len(self.starts)))
        bound_groups(*rows, *summaries, LEAST_LOG, bounds)
        return bounds

    def _looked(self, rows: Rows, which: IntArray, needed: BoolArray) -> Looked:
        """Look at the groups that each row needs."""
        pair_rows, groups = map(np.ascontiguousarray, np.nonzero(needed))
        first_pairs = np.concatenate([[0], np.cumsum(np.bincount(pair_rows, minlength=len(needed)))])
        logs = np.empty((len(groups), self.width))
        for tables, chosen, slots in self._tables(groups):
            add_logs(chosen, slots, pair_rows, *rows, *tables[:5], LEAST_LOG, logs)
        top = np.maximum.reduceat(logs.max(axis=1), first_pairs[:-1])
        logs -= top[pair_rows, None]
        np.exp(logs, out=logs)
        total = np.add.reduceat(logs.sum(axis=1), first_pairs[:-1])
        logs /= total[pair_rows, None]
        return Looked(which, first_pairs, pair_rows, groups, logs, top + np.log(total))

    def _needed(self, rows: Rows) -> BoolArray:
        """Say for each row which groups may matter."""
        needed = np.ones((len(rows.real), len(self.starts)), dtype=np.bool_)
        if self.prunes and len(self.starts) > FIRST:
            bounds = self.bound(rows)
            needed[:] = False
            np.put_along_axis(needed, np.argpartition(bounds, -FIRST, axis=1)[:, -FIRST:], True, axis=1)
            found = self._looked(rows, np.arange(len(bounds)), needed).log_density
            find_needed(bounds, found, math.log(NEGLECTED), needed.view(np.uint8))
        return needed

    def _answers(
        self, white: FloatArray, which: IntArray, work: Callable[[Looked], Answer]
    ) -> list[tuple[IntArray, Answer]]:
        rows = self.rows(white[which])
        needed = self._needed(rows)
        numbers = np.cumsum(needed.sum(axis=1)) * self.width
        most = NUMBERS_AT_ONCE if self._prepared[0] else MANY_AT_ONCE
        answers = []
        first = 0
        while first < len(which):
            before = numbers[first - 1] if first else 0
            last = max(int(np.searchsorted(numbers, before + most, side="right")), first + 1)
            some = slice(first, last)
            answers.append((which[some], work(self._looked(rows.take(some), which[some], needed[some]))))
            first = last
        return answers

    def in_blocks(
        self, white: FloatArray, n_threads: int, work: Callable[[Looked], Answer]
    ) -> tuple[IntArray, list[Answer]]:
        """Do the work on blocks of rows, those near each other together; return their order, and what was found."""

        def nearest(first: int) -> IntArray:
            return np.asarray(self.bound(self.rows(white[first : first + ROWS_AT_ONCE])).argmax(axis=1))

        starts = range(0, len(white), ROWS_AT_ONCE)
        order = np.arange(len(white))
        kept, _ = self._prepared  # before threads ask for it
        if kept is None:
            n_threads = min(n_threads, FEW_THREADS)
        n_threads = min(n_threads, len(starts))  # of one block the caller takes care: threads take long to start
        with Parallel(n_jobs=n_threads, require="sharedmem") as parallel:
            if kept is None and len(white) > 1:
                order = np.argsort(np.concatenate(parallel(delayed(nearest)(k) for k in starts)), kind="stable")
            found = parallel(delayed(self._answers)(white, order[k : k + ROWS_AT_ONCE], work) for k in starts)
        parts = [part for block in found for part in block]
        return np.concatenate([which for which, _ in parts]), [answer for _, answer in parts]

    def mixtures(self, looked: Looked) -> Predictions:
        """Return mean, sd and probabilities of what new leaves show, over the places that rows look at."""
        n, like = len(looked.rows), self._like
        weight, (mean, square, unknown) = np.zeros(n), np.zeros((3, n, len(like.real)))
        probability = np.zeros((n, int(like.start[-1])))
        for tables, chosen, slots in self._tables(looked.groups):
            add_moments(
                chosen,
                slots,
                looked.pair_rows,
                looked.shares,
                tables.means,
                tables.half_precisions,
                tables.probabilities,
                weight,
                mean,
                square,
                unknown,
                probability,
            )
        sd = np.where(unknown > 0, np.inf, np.sqrt(square / weight[:, None]))
        return like._replace(mean=mean, sd=sd, probability=probability)


def _near_together(tree: Tree, at: Places, settled: float) -> Places:
    """Order places such that those of a group say much the same: by the magnitude of their height, then depth first."""
    heights = at.heights + max(settled, SHORTEST * SHORTEST * float(tree.heights[-1]))
    magnitude = np.frexp(heights)[1].astype(np.intp)
    rank = np.empty(tree.n_nodes, dtype=np.intp)
    rank[tree.depth_first] = np.arange(tree.n_nodes)
    order = np.argsort(magnitude * tree.n_nodes + rank[at.nodes], kind="stable")
    return Places(at.nodes[order], *(part[order] for part in at[1:]))
