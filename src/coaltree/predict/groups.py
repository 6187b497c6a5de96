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

from ..process.likelihood import Beliefs
from ..process.predictions import Predictions
from ..tree.attachment import MIN_RELATIVE_CELL, AttachmentPoints, attachment_points
from .draws import Coordinates, Ensemble, RealWhitening
from .kernels.places import (
    add_logs,
    add_moments,
    add_partial_logs,
    add_partial_moments,
    bound_groups,
    find_needed,
    find_tops,
    put_exps,
    sum_logs,
    summarise,
)

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
FAR = 40.0  # a group whose likeliest place is so far below a row's, in logs, adds less than rounding
LEAST_LOG = -1e300  # of a row so far out that its density is 0 in double precision, wherever it attaches


class Rows(NamedTuple):
    """New rows as kernels read them."""

    real: FloatArray  # (systems, rows, real columns), in the coordinates of each system
    known: FlagArray  # (systems, rows, real columns), which of them are known by themselves
    states: IntArray  # (rows, categorical columns), counted over all columns; -1 for missing cells
    partial: BoolArray  # (systems, rows), whether some cells of a whitening are missing, and others are not
    patterns: IntArray  # (rows,), those with the same number lack the same cells
    missing: FlagArray  # (patterns, real columns), which these are

    def take(self, rows: slice) -> Rows:
        """Return some of them."""
        return Rows(
            np.ascontiguousarray(self.real[:, rows]),
            np.ascontiguousarray(self.known[:, rows]),
            self.states[rows],
            self.partial[:, rows],
            self.patterns[rows],
            self.missing,
        )


class Tables(NamedTuple):
    """What new leaves show at the places of some groups; places that a group lacks have no mass."""

    log_masses: FloatArray  # (groups, width)
    whole_log_masses: FloatArray  # with the log constants of all real columns
    means: FloatArray  # (groups, real columns, width)
    half_precisions: FloatArray
    log_constants: FloatArray
    log_probabilities: FloatArray  # (groups, states, width)
    probabilities: FloatArray
    shown_means: FloatArray  # as means and half_precisions, of the table's columns
    shown_half_precisions: FloatArray


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
    cells: Rows  # what they are
    first_pairs: IntArray  # (rows + 1,), where the pairs of each row begin
    pair_rows: IntArray  # (pairs,), counted within these rows
    groups: IntArray  # (pairs,)
    shares: FloatArray  # (pairs, width), of the places' posterior
    log_density: FloatArray  # (rows,)


class PlaceGroups:
    """All places of new rows on the trees of some draws, draw by draw, and what new leaves show there.

    Parameters
    ----------
    ensemble : Ensemble
    X : ndarray of shape (n, D)
        The table as it was given.
    """

    def __init__(self, ensemble: Ensemble, X: FloatArray) -> None:
        self.beliefs = []
        for draw in ensemble.draws:
            process, white, _ = draw.process.decorrelate(draw.X)
            self.beliefs.append(Beliefs(draw.tree, white, process))
        found = [
            attachment_points(own.tree, own.process.min_attachment_height, min(1.1, 3 / math.sqrt(X.shape[1])))
            for own in self.beliefs
        ]
        counts = np.array([len(own.nodes) for own in found])
        self.prunes = bool(counts.sum() > ALWAYS_LOOKED_AT)
        if self.prunes:
            found = [_near_together(own, at) for own, at in zip(self.beliefs, found, strict=True)]
        found = [
            at._replace(log_masses=at.log_masses + math.log(w)) for at, w in zip(found, ensemble.weights, strict=True)
        ]
        self.places = found[0] if len(found) == 1 else AttachmentPoints(*map(np.concatenate, zip(*found, strict=True)))
        self.bounds = np.concatenate([[0], np.cumsum(counts)])  # of the draws, in places
        self.width = int(np.max(np.ceil(counts / np.ceil(counts / WIDTH))))
        starts = [np.arange(a, b, self.width) for a, b in pairwise(self.bounds)]
        self.group_bounds = np.concatenate([[0], np.cumsum([len(own) for own in starts])])  # of the draws, in groups
        self.starts = np.concatenate(starts)
        self.stops = np.minimum(self.starts + self.width, np.repeat(self.bounds[1:], np.diff(self.group_bounds)))
        self._lock = Lock()  # beliefs at points of branches are made in memory that threads share
        self._like = self.shown_at(np.zeros(0, dtype=np.intp))  # which columns are real, which states the others have
        n_systems = int(ensemble.systems[-1]) + 1
        firsts = np.searchsorted(ensemble.systems, np.arange(n_systems))
        self.coordinates = [Coordinates(ensemble.draws[k].process, X, self._like.real) for k in firsts]
        self.blended = any(own.whitenings for own in self.coordinates)
        self.draw_systems = ensemble.systems
        self.systems = np.repeat(ensemble.systems, np.diff(self.group_bounds))  # of the groups
        self.system_bounds = np.searchsorted(self.systems, np.arange(n_systems + 1))  # in groups

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
        stacked = Predictions.stack(found)
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
        mean, half_precision = np.where(known, shown.mean, 0.0), np.where(known, 0.5 / sd**2, 0.0)
        log_constant = np.where(known, -np.log(sd) - 0.5 * math.log(2 * math.pi), 0.0)
        shown_mean, shown_half = (mean.copy(), half_precision.copy()) if self.blended else (mean, half_precision)
        systems = np.repeat(self.systems[groups], self.width)
        for k, coordinates in enumerate(self.coordinates):
            own = np.flatnonzero(systems == k)
            for whitening in coordinates.whitenings:
                log_constant[np.ix_(own, whitening.real)] += whitening.log_jacobian / len(whitening.real)
            if coordinates.whitenings:
                shown_mean[own], variance = coordinates.shown(mean[own], sd[own] ** 2)
                shown_half[own] = np.where(known[own], 0.5 / variance, 0.0)

        def turned(table: FloatArray) -> FloatArray:
            return np.ascontiguousarray(table.reshape(*at.shape, table.shape[1]).transpose(0, 2, 1))

        log_masses = np.where(lacking, -np.inf, self.places.log_masses[at])
        return Tables(
            log_masses,
            log_masses + log_constant.sum(axis=1).reshape(at.shape),
            (means := turned(mean)),
            (half_precisions := turned(half_precision)),
            turned(log_constant),
            turned(np.log(probability)),
            turned(probability),
            turned(shown_mean) if self.blended else means,
            turned(shown_half) if self.blended else half_precisions,
        )

    @cached_property
    def _numbers(self) -> int:
        """How many numbers of tables a group has."""
        tables = 5 if self.blended else 3
        return self.width * (2 + tables * len(self._like.real) + 2 * int(self._like.start[-1]))

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
                summarise(made.log_masses, made.means, made.half_precisions, made.log_probabilities, *summaries, first)
            if n * self._numbers <= KEPT:
                kept.append(made)
        return _joined(kept) if kept else None, summaries if self.prunes else None

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

    def rows(self, X: FloatArray) -> Rows:
        """Lay out rows for kernels."""
        real = np.ascontiguousarray(X[:, self._like.real])
        codes = X[:, self._like.categorical]
        missing = np.isnan(codes)
        states = np.where(missing, -1, np.where(missing, 0, codes).astype(np.intp) + self._like.start[:-1])
        missing = np.isnan(real)
        white, known, partial = zip(*(own.rows(real, missing) for own in self.coordinates), strict=True)
        patterns, which = np.zeros((1, real.shape[1]), dtype=np.bool_), np.zeros(len(real), dtype=np.intp)
        if np.any(partial):
            patterns, which = np.unique(missing, axis=0, return_inverse=True)
        return Rows(
            np.stack(white),
            np.stack(known).view(np.uint8),
            np.ascontiguousarray(states),
            np.stack(partial),
            np.ascontiguousarray(which.ravel(), dtype=np.intp),
            np.ascontiguousarray(patterns).view(np.uint8),
        )

    def bound(self, rows: Rows) -> FloatArray:
        """Return for each row and group what the log of prior times likelihood, added up over the group, cannot exceed."""
        _, summaries = self._prepared
        assert summaries is not None
        bounds = np.empty((len(rows.states), len(self.starts)))
        bound_groups(self.system_bounds, *rows[:3], *summaries, LEAST_LOG, bounds)
        for k, coordinates in enumerate(self.coordinates):
            own = slice(*self.system_bounds[k : k + 2])
            for whitening in coordinates.whitenings:
                bounds[:, own] += np.where(rows.known[k, :, whitening.real[0]], whitening.log_jacobian, 0.0)[:, None]
                self._add_partial_bounds(rows, k, whitening, summaries, bounds)
        return np.maximum(bounds, LEAST_LOG, out=bounds)

    def _add_partial_bounds(
        self, rows: Rows, system: int, whitening: RealWhitening, summaries: Summaries, bounds: FloatArray
    ) -> None:
        """Add for rows that know a whitening in part what the log density of its cells cannot exceed in each group.

        Of all covariances in a group, that of the least deviations has the least determinant, and that of the largest gives gaps
        the least length. The gap to a mean is no less than that to the middle of the means, less the way to any corner.
        """
        groups = slice(*self.system_bounds[system : system + 2])
        low, high, least, largest = (part[whitening.real, groups].T for part in summaries[1:5])  # (groups, K)
        back = np.linalg.inv(whitening.transform.basis)
        for k in np.unique(rows.patterns[rows.partial[system]]):
            observed = rows.missing[k, whitening.real] == 0
            if observed.all() or not observed.any():
                continue
            own = np.flatnonzero(rows.patterns == k)
            steps = back[:, observed]  # (K, observed)
            factor = np.linalg.cholesky(np.einsum("gk,ka,kb->gab", largest**2, steps, steps))
            log_determinants = np.linalg.slogdet(np.einsum("gk,ka,kb->gab", least**2, steps, steps))[1]
            inverse = np.linalg.inv(factor)
            corner = (0.5 * (high - low) * np.linalg.norm(inverse @ steps.T, axis=1)).sum(axis=1)
            gaps = (
                rows.real[system, own][:, whitening.real][:, None] - 0.5 * (high + low)
            ) @ steps  # (rows, groups, observed)
            lengths = np.linalg.norm(np.einsum("gab,rgb->rga", inverse, gaps), axis=2)
            constant = -0.5 * log_determinants - 0.5 * observed.sum() * math.log(2 * math.pi)
            bounds[own, groups] += constant - 0.5 * np.maximum(lengths - corner, 0.0) ** 2

    def _log_densities(self, rows: Rows, needed: BoolArray) -> FloatArray:
        """Return the log densities of rows at the groups that each needs."""
        if np.any(rows.partial):
            return self._looked(rows, np.arange(len(needed)), needed).log_density
        pair_rows, groups, first_pairs = _pairs(needed)
        tops, sums = np.empty((2, len(groups)))
        row_tops = np.full(len(needed), -np.inf)
        systems = self.systems[groups]
        for tables, chosen, slots in self._tables(groups):
            sum_logs(chosen, slots, pair_rows, systems, *rows[:3], *tables[:6], LEAST_LOG, FAR, row_tops, tops, sums)
        return _totals(first_pairs, pair_rows, row_tops, tops, sums)[0]

    def _looked(self, rows: Rows, which: IntArray, needed: BoolArray) -> Looked:
        """Look at the groups that each row needs."""
        pair_rows, groups, first_pairs = _pairs(needed)
        systems = self.systems[groups]
        logs = np.empty((len(groups), self.width))
        for tables, chosen, slots in self._tables(groups):
            add_logs(chosen, slots, pair_rows, systems, *rows[:3], *tables[:6], LEAST_LOG, logs)
            for k, own, own_slots in self._partial(rows, chosen, slots, pair_rows, systems):
                for whitening, real, _, _ in self.coordinates[k].whitenings:
                    add_partial_logs(
                        own,
                        own_slots,
                        pair_rows,
                        rows.real[k],
                        rows.patterns,
                        rows.missing,
                        real,
                        whitening.basis,
                        *tables[2:5],
                        LEAST_LOG,
                        logs,
                    )
        tops, sums = np.empty((2, len(groups)))
        find_tops(logs, tops)
        row_tops = np.maximum.reduceat(tops, first_pairs[:-1])
        put_exps(logs, row_tops[pair_rows], FAR, tops, sums)
        log_density, shares = _totals(first_pairs, pair_rows, row_tops, tops, sums)
        logs *= shares[:, None]
        return Looked(which, rows, first_pairs, pair_rows, groups, logs, log_density)

    def _partial(
        self, rows: Rows, chosen: IntArray, slots: IntArray, pair_rows: IntArray, systems: IntArray
    ) -> Iterator[tuple[int, IntArray, IntArray]]:
        """Yield systems, the pairs whose rows know a whitening in part there, ordered by slot and pattern, and their slots."""
        if not np.any(rows.partial):
            return
        own = np.flatnonzero(rows.partial[systems[chosen], pair_rows[chosen]])
        own = own[np.lexsort((rows.patterns[pair_rows[chosen[own]]], slots[own], systems[chosen[own]]))]
        for some in np.split(own, np.flatnonzero(np.diff(systems[chosen[own]])) + 1):
            if len(some):
                yield int(systems[chosen[some[0]]]), chosen[some], slots[some]

    def _needed(self, rows: Rows) -> BoolArray:
        """Say for each row which groups may matter."""
        needed = np.ones((len(rows.states), len(self.starts)), dtype=np.bool_)
        if self.prunes and len(self.starts) > FIRST:
            bounds = self.bound(rows)
            needed[:] = False
            np.put_along_axis(needed, np.argpartition(bounds, -FIRST, axis=1)[:, -FIRST:], True, axis=1)
            found = self._log_densities(rows, needed)
            find_needed(bounds, found, math.log(NEGLECTED), needed.view(np.uint8))
        return needed

    def _answers(
        self, X: FloatArray, which: IntArray, work: Callable[[Rows, IntArray, BoolArray], Answer], most: int
    ) -> list[tuple[IntArray, Answer]]:
        rows = self.rows(X[which])
        needed = self._needed(rows)
        numbers = np.cumsum(needed.sum(axis=1)) * self.width
        answers = []
        first = 0
        while first < len(which):
            before = numbers[first - 1] if first else 0
            last = max(int(np.searchsorted(numbers, before + most, side="right")), first + 1)
            some = slice(first, last)
            answers.append((which[some], work(rows.take(some), which[some], needed[some])))
            first = last
        return answers

    def log_density(self, X: FloatArray, n_threads: int) -> FloatArray:
        """Return the log densities of rows."""
        most = MANY_AT_ONCE if not np.isnan(X).any() or not self.blended else NUMBERS_AT_ONCE
        order, found = self._blocks(X, n_threads, lambda rows, _, needed: self._log_densities(rows, needed), most)
        return np.asarray(np.concatenate(found)[np.argsort(order)])

    def in_blocks(
        self, X: FloatArray, n_threads: int, work: Callable[[Looked], Answer]
    ) -> tuple[IntArray, list[Answer]]:
        """Do the work on blocks of rows, those near each other together; return their order, and what was found."""
        most = NUMBERS_AT_ONCE if self._prepared[0] else MANY_AT_ONCE
        return self._blocks(X, n_threads, lambda rows, *chosen: work(self._looked(rows, *chosen)), most)

    def _blocks(
        self, X: FloatArray, n_threads: int, work: Callable[[Rows, IntArray, BoolArray], Answer], most: int
    ) -> tuple[IntArray, list[Answer]]:
        def nearest(first: int) -> IntArray:
            return np.asarray(self.bound(self.rows(X[first : first + ROWS_AT_ONCE])).argmax(axis=1))

        starts = range(0, len(X), ROWS_AT_ONCE)
        order, holes = np.arange(len(X)), np.isnan(X)
        if self.blended and holes.any():  # rows that lack the same cells share what depends on the place only
            order = np.lexsort(holes.T)
        kept, _ = self._prepared  # before threads ask for it
        if kept is None:
            n_threads = min(n_threads, FEW_THREADS)
        n_threads = min(n_threads, len(starts))  # of one block the caller takes care: threads take long to start
        with Parallel(n_jobs=n_threads, require="sharedmem") as parallel:
            if kept is None and self.prunes and len(X) > 1:
                near = np.concatenate(parallel(delayed(nearest)(k) for k in starts))
                order = order[np.argsort(near[order], kind="stable")]
            found = parallel(delayed(self._answers)(X, order[k : k + ROWS_AT_ONCE], work, most) for k in starts)
        parts = [part for block in found for part in block]
        return np.concatenate([which for which, _ in parts]), [answer for _, answer in parts]

    def mixtures(self, looked: Looked) -> Predictions:
        """Return mean, sd and probabilities of what new leaves show, over the places that rows look at.

        Missing cells of a whitening are told given the others of their row, which a place tells by itself.
        """
        n, like, rows = len(looked.rows), self._like, looked.cells
        # of pairs that know a whitening in part, of all others; and of the cells that the former lack
        weight, moments = np.zeros((2, n)), np.zeros((2, 3, n, len(like.real)))
        conditional = np.zeros((3, n, len(like.real)))
        probability = np.zeros((n, int(like.start[-1])))
        systems = self.systems[looked.groups]
        for tables, chosen, slots in self._tables(looked.groups):
            partial = rows.partial[systems[chosen], looked.pair_rows[chosen]]
            for k in range(2):
                add_moments(
                    chosen[partial == k],
                    slots[partial == k],
                    looked.pair_rows,
                    looked.shares,
                    tables.shown_means,
                    tables.shown_half_precisions,
                    tables.probabilities,
                    weight[k],
                    moments[k, 0],
                    moments[k, 1],
                    moments[k, 2],
                    probability,
                )
            for system, own, own_slots in self._partial(rows, chosen, slots, looked.pair_rows, systems):
                for whitening, real, fill, _ in self.coordinates[system].whitenings:
                    add_partial_moments(
                        own,
                        own_slots,
                        looked.pair_rows,
                        looked.shares,
                        rows.real[system],
                        rows.patterns,
                        rows.missing,
                        real,
                        whitening.basis,
                        fill,
                        tables.means,
                        tables.half_precisions,
                        *conditional,
                    )
        (mean, square, unknown), (other, other_square, other_unknown) = moments
        if np.any(rows.partial):
            known = conditional[0] > 0
            other = np.where(known, conditional[1], other)
            other_square = np.where(known, conditional[2], other_square)
            share = (weight[1] / weight.sum(axis=0))[:, None]
            apart = other - mean
            mean = mean + share * apart
            square = square + other_square + weight[0][:, None] * share * apart**2
            unknown = unknown + other_unknown
        sd = np.where(unknown > 0, np.inf, np.sqrt(square / weight.sum(axis=0)[:, None]))
        return like._replace(mean=mean, sd=sd, probability=probability)


def _joined(tables: list[Tables]) -> Tables:
    """Put tables of groups one behind the other; what is shared stays so."""
    if len(tables) == 1:
        return tables[0]
    joined = Tables(*map(np.concatenate, zip(*tables, strict=True)))
    if tables[0].shown_means is tables[0].means:
        return joined._replace(shown_means=joined.means, shown_half_precisions=joined.half_precisions)
    return joined


def _pairs(needed: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return rows and groups of all pairs, and where those of each row begin."""
    pair_rows, groups = map(np.ascontiguousarray, np.nonzero(needed))
    return pair_rows, groups, np.concatenate([[0], np.cumsum(np.bincount(pair_rows, minlength=len(needed)))])


def _totals(
    first_pairs: IntArray, pair_rows: IntArray, row_tops: FloatArray, tops: FloatArray, sums: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the log of each row's sum, and by what each pair's numbers are multiplied to be shares of it."""
    above = row_tops[pair_rows]
    factors = np.where(tops >= above - FAR, np.exp(tops - above), 0.0)
    total = np.add.reduceat(factors * sums, first_pairs[:-1])
    return row_tops + np.log(total), factors / total[pair_rows]


def _near_together(beliefs: Beliefs, at: AttachmentPoints) -> AttachmentPoints:
    """Order places such that those of a group say much the same: by the magnitude of their height, then depth first."""
    tree = beliefs.tree
    heights = at.heights + max(
        beliefs.process.min_attachment_height, MIN_RELATIVE_CELL * MIN_RELATIVE_CELL * float(tree.heights[-1])
    )
    magnitude = np.frexp(heights)[1].astype(np.intp)
    rank = np.empty(tree.n_nodes, dtype=np.intp)
    rank[tree.depth_first] = np.arange(tree.n_nodes)
    order = np.argsort(magnitude * tree.n_nodes + rank[at.nodes], kind="stable")
    return AttachmentPoints(at.nodes[order], *(part[order] for part in at[1:]))
