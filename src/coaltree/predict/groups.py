"""Attachment points in groups, each with an upper bound on its contribution to a row's density.

A tree with a million leaves has millions of attachment points, and only a few of them matter for a given row. Groups whose
bounds sum to a negligible share of the row's density are never evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..inference.executors import in_threads
from ..process.likelihood import Beliefs
from ..process.predictions import Predictions
from ..table.cells import set_members
from ..tree.coalescent import MIN_RELATIVE_CELL, AttachmentPoints, attachment_points
from .draws import Coordinates, Ensemble, RealWhitening
from .kernels.mixtures import add_pairs
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
from .mixtures import MIN_SHARE, Components, Mixtures, split

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
FlagArray = NDArray[np.uint8]  # 0 or 1, as kernels read and write it
Result = TypeVar("Result")

GROUP_SIZE = 512  # points per group: their tables stay in the processor's cache while rows are processed
MIN_POINTS_TO_PRUNE = 50_000  # below, bounds cost more than they save
N_FIRST_GROUPS = 8  # groups with the highest bounds, evaluated first to estimate a row's density
MAX_PRUNED_SHARE = 1e-9  # of a row's density, in groups that are not evaluated
MAX_CACHED_NUMBERS = 40_000_000  # in the tables of all groups; larger tables are recomputed for each block of rows
MAX_NEW_NUMBERS = 2_000_000  # in tables that are computed in one step
MAX_BLOCK_NUMBERS = 1_000_000  # rows x points in memory, per thread
# Where tables are recomputed, larger blocks on fewer threads: the more rows share a table, the better.
MAX_LARGE_BLOCK_NUMBERS, MAX_LARGE_BLOCK_THREADS = 32_000_000, 4
BLOCK_ROWS = 256
MIN_PROBABILITY = 1e-300
MAX_LOG_GAP = 40.0  # groups whose best point is further below a row's best, in logs, add less than rounding
MIN_LOG_DENSITY = -1e300  # for rows so extreme that their density underflows at every point


class Rows(NamedTuple):
    """New rows in the layout of the kernels."""

    real: FloatArray  # (systems, rows, real columns), in each system of coordinates
    known: FlagArray  # (systems, rows, real columns), which coordinates are known
    states: IntArray  # (rows, categorical columns), numbered over all columns; -1 for missing cells and sets of states
    log_slopes: FloatArray  # (systems, rows), log Jacobian of normal scores
    partial: BoolArray  # (systems, rows), whether some but not all cells of a whitening are missing
    patterns: IntArray  # (rows,), index of the row's pattern of missing cells
    missing: FlagArray  # (patterns, real columns)
    holes: FlagArray  # (rows, real columns), missing cells
    sets: IntArray  # (rows, categorical columns), index of a set of states; -1 for other cells
    members: list[IntArray]  # states of each set, numbered over all columns

    def take(self, rows: slice) -> Rows:
        """Return a slice of the rows."""
        return Rows(
            np.ascontiguousarray(self.real[:, rows]),
            np.ascontiguousarray(self.known[:, rows]),
            self.states[rows],
            np.ascontiguousarray(self.log_slopes[:, rows]),
            self.partial[:, rows],
            self.patterns[rows],
            self.missing,
            self.holes[rows],
            self.sets[rows],
            self.members,
        )

    def pairs_with_sets(self, pair_rows: IntArray) -> Iterator[tuple[int, IntArray]]:
        """Yield each set that some rows have, and the pairs of these rows."""
        if self.members:
            for k in np.unique(self.sets[self.sets >= 0]).tolist():
                has_set = (self.sets == k).any(axis=1)
                yield k, np.flatnonzero(has_set[pair_rows])


class Tables(NamedTuple):
    """Predictions for new leaves at the points of some groups. Groups with fewer points are padded with points of mass 0."""

    log_masses: FloatArray  # (groups, width)
    complete_log_masses: FloatArray  # plus the log constants of all real columns
    means: FloatArray  # (groups, real columns, width)
    half_precisions: FloatArray
    log_constants: FloatArray
    log_probabilities: FloatArray  # (groups, states, width)
    probabilities: FloatArray


class ColumnTables(NamedTuple):
    """Means and half precisions as in `Tables`, of the table's columns instead of coordinates."""

    means: FloatArray
    half_precisions: FloatArray


class Summaries(NamedTuple):
    """Ranges of the predictions in each group, from which bounds are computed."""

    log_masses: FloatArray  # (groups,), total over the points
    low: FloatArray  # (real columns, groups), the smallest mean
    high: FloatArray
    least_sd: FloatArray
    largest_sd: FloatArray
    least_log_sd: FloatArray
    largest_log_sd: FloatArray
    floor: FloatArray  # (real columns, groups), of the log density: 0 if some point has a flat message, else -inf
    log_probabilities: FloatArray  # (states, groups), the largest


class PointPosterior(NamedTuple):
    """The posterior over attachment points of some rows, as pairs of a row and a group, sorted by row, then by group."""

    rows: IntArray  # indices into the table
    cells: Rows
    first_pairs: IntArray  # (rows + 1,), where the pairs of each row begin
    pair_rows: IntArray  # (pairs,), relative to these rows
    groups: IntArray  # (pairs,)
    shares: FloatArray  # (pairs, width), posterior probabilities
    log_density: FloatArray  # (rows,)


class PointGroups:
    """All attachment points on the trees of an ensemble, draw by draw, with predictions for new leaves there.

    Parameters
    ----------
    ensemble : Ensemble
    X : ndarray of shape (n, D)
        The training table, with missing cells.
    """

    def __init__(self, ensemble: Ensemble, X: FloatArray) -> None:
        self.beliefs = []
        for draw in ensemble.draws:
            process, white, _ = draw.process.decorrelate(draw.X)
            self.beliefs.append(Beliefs(draw.tree, white, process))
        points = [
            attachment_points(beliefs.tree, beliefs.process.min_attachment_height, min(1.1, 3 / math.sqrt(X.shape[1])))
            for beliefs in self.beliefs
        ]
        counts = np.array([len(draw_points.nodes) for draw_points in points])
        self.prunes = bool(counts.sum() > MIN_POINTS_TO_PRUNE)
        if self.prunes:
            points = [
                _sort_points(beliefs, draw_points) for beliefs, draw_points in zip(self.beliefs, points, strict=True)
            ]
        points = [
            at._replace(log_masses=at.log_masses + math.log(w)) for at, w in zip(points, ensemble.weights, strict=True)
        ]
        self.points = (
            AttachmentPoints(*map(np.concatenate, zip(*points, strict=True))) if len(points) > 1 else points[0]
        )
        self.bounds = np.concatenate([[0], np.cumsum(counts)])  # of the draws, in points
        self.width = int(np.max(np.ceil(counts / np.ceil(counts / GROUP_SIZE))))
        starts = [np.arange(a, b, self.width) for a, b in pairwise(self.bounds)]
        self.group_bounds = np.concatenate(
            [[0], np.cumsum([len(group_starts) for group_starts in starts])]
        )  # of the draws, in groups
        self.starts = np.concatenate(starts)
        self.stops = np.minimum(self.starts + self.width, np.repeat(self.bounds[1:], np.diff(self.group_bounds)))
        self._column_lock = Lock()
        self._known_columns: dict[bool, ColumnTables] = {}
        self._template = self.predict_at(np.zeros(0, dtype=np.intp))  # real columns, and states of the others
        n_systems = int(ensemble.systems[-1]) + 1
        firsts = np.searchsorted(ensemble.systems, np.arange(n_systems))
        self.coordinates = [
            Coordinates(ensemble.draws[k].process, X, self._template.real, ensemble.draws[k].scores) for k in firsts
        ]
        # All draws with normal scores have the same ones.
        self.scores = next(
            (coordinates.scores for coordinates in self.coordinates if coordinates.scores is not None), None
        )
        self.is_scored = np.array(
            [coordinates.scores is not None for coordinates in self.coordinates], dtype=np.intp
        )  # systems
        self.has_whitenings = any(coordinates.whitenings for coordinates in self.coordinates)
        self.draw_systems = ensemble.systems
        self.systems = np.repeat(ensemble.systems, np.diff(self.group_bounds))  # of the groups
        self.system_bounds = np.searchsorted(self.systems, np.arange(n_systems + 1))  # in groups

    # -- tables -----------------------------------------------------------------------------------------------------

    def predict_at(self, at: IntArray) -> Predictions:
        """Predict new leaves at some attachment points."""
        parts: list[Predictions] = []
        order: list[IntArray] = []
        for k, beliefs in enumerate(self.beliefs):
            selection = np.flatnonzero((at >= self.bounds[k]) & (at < self.bounds[k + 1]))
            if len(selection) or k == 0:
                parts.extend(beliefs.new_leaves(self.points.nodes[at[selection]], self.points.heights[at[selection]]))
                order.append(selection)
        if len(parts) == 1:
            return parts[0]
        stacked = Predictions.stack(parts)
        return stacked if len(order) == 1 else stacked.take(np.argsort(np.concatenate(order), kind="stable"))

    def _make_tables(self, groups: IntArray) -> Tables:
        """Compute the tables of some groups."""
        at = self.starts[groups, None] + np.arange(self.width)
        padding = at >= self.stops[groups, None]
        at = np.where(padding, self.stops[groups, None] - 1, at)
        predictions = self.predict_at(at.ravel())
        known = predictions.sd < np.inf
        sd = np.where(known, predictions.sd, 1.0)
        probability = np.maximum(predictions.probability, MIN_PROBABILITY)
        mean, half_precision = np.where(known, predictions.mean, 0.0), np.where(known, 0.5 / sd**2, 0.0)
        log_constant = np.where(known, -np.log(sd) - 0.5 * math.log(2 * math.pi), 0.0)
        systems = np.repeat(self.systems[groups], self.width)
        for k, coordinates in enumerate(self.coordinates):
            for whitening in coordinates.whitenings:
                selection = np.flatnonzero(systems == k)
                log_constant[np.ix_(selection, whitening.real)] += whitening.log_jacobian / len(whitening.real)

        def to_group_layout(table: FloatArray) -> FloatArray:
            return np.ascontiguousarray(table.reshape(*at.shape, table.shape[1]).transpose(0, 2, 1))

        log_masses = np.where(padding, -np.inf, self.points.log_masses[at])
        return Tables(
            log_masses,
            log_masses + log_constant.sum(axis=1).reshape(at.shape),
            to_group_layout(mean),
            to_group_layout(half_precision),
            to_group_layout(log_constant),
            to_group_layout(np.log(probability)),
            to_group_layout(probability),
        )

    def _make_column_tables(self, tables: Tables, groups: IntArray, undo_scores: bool) -> ColumnTables:
        """Compute the tables of some groups in the table's columns, or in their scores. Only predictions of cells need them."""
        means, halves = tables.means, tables.half_precisions
        if not self.has_whitenings and not (undo_scores and self.scores is not None):
            return ColumnTables(means, halves)
        means, halves = means.copy(), halves.copy()
        for k, coordinates in enumerate(self.coordinates):
            selection = np.flatnonzero(self.systems[groups] == k)
            if len(selection) and (coordinates.whitenings or (undo_scores and coordinates.scores is not None)):
                known = halves[selection] > 0
                variance = np.where(known, 0.5 / np.where(known, halves[selection], 1.0), 1.0)
                transform = coordinates.to_columns if undo_scores else coordinates.undo_whitenings
                mean, variance = transform(means[selection].transpose(0, 2, 1), variance.transpose(0, 2, 1))
                means[selection] = mean.transpose(0, 2, 1)
                halves[selection] = np.where(known, 0.5 / variance.transpose(0, 2, 1), 0.0)
        return ColumnTables(means, halves)

    @cached_property
    def _table_size(self) -> int:
        """How many numbers the tables of one group hold."""
        n_tables = 5 if self.has_whitenings or self.scores is not None else 3
        return self.width * (2 + n_tables * len(self._template.real) + 2 * int(self._template.start[-1]))

    @cached_property
    def _cache(self) -> tuple[Tables | None, Summaries | None]:
        """The tables of all groups if they fit into memory, and the summaries if groups are pruned."""
        n, n_real, n_states = len(self.starts), len(self._template.real), int(self._template.start[-1])
        low, high, least_sd, largest_sd, least_log_sd, largest_log_sd, floor = np.empty((7, n_real, n))
        summaries = Summaries(
            np.empty(n), low, high, least_sd, largest_sd, least_log_sd, largest_log_sd, floor, np.empty((n_states, n))
        )
        cached: list[Tables] = []
        step = max(MAX_NEW_NUMBERS // self._table_size, 1)
        for first in range(0, n, step):
            part = self._make_tables(np.arange(first, min(first + step, n)))
            if self.prunes:
                summarise(part.log_masses, part.means, part.half_precisions, part.log_probabilities, *summaries, first)
            if n * self._table_size <= MAX_CACHED_NUMBERS:
                cached.append(part)
        tables = Tables(*map(np.concatenate, zip(*cached, strict=True))) if cached else None
        return tables, summaries if self.prunes else None

    def _column_tables(self, tables: Tables, groups: IntArray, undo_scores: bool = True) -> ColumnTables:
        """Return the column tables of some groups; of all groups, computed once, if the tables fit into memory."""
        cached, _ = self._cache
        if cached is None:
            return self._make_column_tables(tables, np.unique(groups), undo_scores)
        undo_scores = undo_scores and self.scores is not None  # without scores both are the same
        with self._column_lock:
            if undo_scores not in self._known_columns:
                self._known_columns[undo_scores] = self._make_column_tables(
                    cached, np.arange(len(self.starts)), undo_scores
                )
            return self._known_columns[undo_scores]

    def _tables(self, groups: IntArray) -> Iterator[tuple[Tables, IntArray, IntArray]]:
        """Yield tables, the pairs whose groups they hold, sorted by group, and the groups' slots in the tables."""
        order = np.argsort(groups, kind="stable")
        ordered = groups[order]
        cached, _ = self._cache
        if cached is not None:
            yield cached, order, ordered
            return
        distinct = np.unique(ordered)
        step = max(MAX_NEW_NUMBERS // self._table_size, 1)
        for first in range(0, len(distinct), step):
            part = distinct[first : first + step]
            selection = slice(*np.searchsorted(ordered, [part[0], part[-1] + 1]))
            yield self._make_tables(part), order[selection], np.searchsorted(part, ordered[selection])

    # -- rows -------------------------------------------------------------------------------------------------------

    def make_rows(self, X: FloatArray) -> Rows:
        """Lay out rows for kernels."""
        real = np.ascontiguousarray(X[:, self._template.real])
        codes = X[:, self._template.categorical]
        missing = np.isnan(codes)
        n_states = np.diff(self._template.start)
        if np.any(codes >= n_states):
            row, k = np.argwhere(codes >= n_states)[0].tolist()
            raise InputError(
                f"Row {row}, column {self._template.categorical[k]} has state {codes[row, k]:g}, but the process predicts only "
                f"{n_states[k]} states there, 0 to {n_states[k] - 1}."
            )
        states = np.where(codes >= 0, np.where(missing, 0, codes).astype(np.intp) + self._template.start[:-1], -1)
        sets, members = self._find_sets(codes)
        missing = np.isnan(real)
        # once for all draws, because maps take longer than the rest
        scored = real if self.scores is None else self.scores.apply(real)
        log_slopes = np.zeros(len(real)) if self.scores is None else self.scores.log_slopes(real)
        white, known, partial = zip(
            *(
                coordinates.whiten(scored if has_scores else real, missing)
                for coordinates, has_scores in zip(self.coordinates, self.is_scored, strict=True)
            ),
            strict=True,
        )
        patterns, which = np.zeros((1, real.shape[1]), dtype=np.bool_), np.zeros(len(real), dtype=np.intp)
        if np.any(partial):
            patterns, which = np.unique(missing, axis=0, return_inverse=True)
        return Rows(
            np.stack(white),
            np.stack(known).view(np.uint8),
            np.ascontiguousarray(states),
            self.is_scored[:, None] * log_slopes,
            np.stack(partial),
            np.ascontiguousarray(which.ravel(), dtype=np.intp),
            np.ascontiguousarray(patterns).view(np.uint8),
            np.ascontiguousarray(missing).view(np.uint8),
            sets,
            members,
        )

    def _find_sets(self, codes: FloatArray) -> tuple[IntArray, list[IntArray]]:
        """Number the distinct sets of states of all columns; return the number of each cell, and the states of each set."""
        sets, members = np.full(codes.shape, -1, dtype=np.intp), list[IntArray]()
        rows, columns = np.nonzero(codes < 0)
        numbers: dict[tuple[int, float], int] = {}
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            key = column, float(codes[row, column])
            if key not in numbers:
                numbers[key] = len(members)
                first, last = self._template.start[column : column + 2]
                members.append(first + np.flatnonzero(set_members(np.array([key[1]]), last - first)[0]))
            sets[row, column] = numbers[key]
        return sets, members

    def bound(self, rows: Rows) -> FloatArray:
        """Return, for each row and group, an upper bound on the log of prior times likelihood, summed over the group.

        The probability of a set of states is bounded by 1.
        """
        _, summaries = self._cache
        assert summaries is not None
        bounds = np.empty((len(rows.states), len(self.starts)))
        bound_groups(self.system_bounds, *rows[:3], *summaries, MIN_LOG_DENSITY, bounds)
        for k, coordinates in enumerate(self.coordinates):
            columns = slice(*self.system_bounds[k : k + 2])
            bounds[:, columns] += rows.log_slopes[k][:, None]
            for whitening in coordinates.whitenings:
                bounds[:, columns] += np.where(rows.known[k, :, whitening.real[0]], whitening.log_jacobian, 0.0)[
                    :, None
                ]
                self._add_partial_bounds(rows, k, whitening, summaries, bounds)
        return np.maximum(bounds, MIN_LOG_DENSITY, out=bounds)

    def _add_partial_bounds(
        self, rows: Rows, system: int, whitening: RealWhitening, summaries: Summaries, bounds: FloatArray
    ) -> None:
        """Add upper bounds on the log density of a whitening's cells, for rows that lack some of them.

        Among all covariances in a group, the one with the smallest standard deviations has the smallest determinant, and the
        one with the largest makes Mahalanobis distances shortest. The distance to any mean in the group is at least the
        distance to the center of their box, minus the distance from there to a corner.
        """
        groups = slice(*self.system_bounds[system : system + 2])
        low, high, least, largest = (part[whitening.real, groups].T for part in summaries[1:5])  # (groups, K)
        back = np.linalg.inv(whitening.transform.basis)
        for k in np.unique(rows.patterns[rows.partial[system]]):
            observed = rows.missing[k, whitening.real] == 0
            if observed.all() or not observed.any():
                continue
            selection = np.flatnonzero(rows.patterns == k)
            steps = back[:, observed]  # (K, observed)
            factor = np.linalg.cholesky(np.einsum("gk,ka,kb->gab", largest**2, steps, steps))
            log_determinants = np.linalg.slogdet(np.einsum("gk,ka,kb->gab", least**2, steps, steps))[1]
            inverse = np.linalg.inv(factor)
            corner = (0.5 * (high - low) * np.linalg.norm(inverse @ steps.T, axis=1)).sum(axis=1)
            gaps = (
                rows.real[system, selection][:, whitening.real][:, None] - 0.5 * (high + low)
            ) @ steps  # (rows, groups, observed)
            lengths = np.linalg.norm(np.einsum("gab,rgb->rga", inverse, gaps), axis=2)
            constant = -0.5 * log_determinants - 0.5 * observed.sum() * math.log(2 * math.pi)
            bounds[selection, groups] += constant - 0.5 * np.maximum(lengths - corner, 0.0) ** 2

    def _log_densities(self, rows: Rows, needed: BoolArray) -> FloatArray:
        """Return the log densities of rows, summed over the groups that each row needs."""
        if np.any(rows.partial) or rows.members:
            return self._evaluate(rows, np.arange(len(needed)), needed).log_density
        pair_rows, groups, first_pairs = _pairs(needed)
        tops, sums = np.empty((2, len(groups)))
        row_tops = np.full(len(needed), -np.inf)
        systems = self.systems[groups]
        for tables, chosen, slots in self._tables(groups):
            sum_logs(
                chosen,
                slots,
                pair_rows,
                systems,
                *rows[:4],
                *tables[:6],
                MIN_LOG_DENSITY,
                MAX_LOG_GAP,
                row_tops,
                tops,
                sums,
            )
        return _normalize(first_pairs, pair_rows, row_tops, tops, sums)[0]

    def _evaluate(self, rows: Rows, which: IntArray, needed: BoolArray) -> PointPosterior:
        """Compute the posterior over the points of the groups that each row needs."""
        pair_rows, groups, first_pairs = _pairs(needed)
        systems = self.systems[groups]
        logs = np.empty((len(groups), self.width))
        for tables, chosen, slots in self._tables(groups):
            add_logs(chosen, slots, pair_rows, systems, *rows[:4], *tables[:6], MIN_LOG_DENSITY, logs)
            for k, pairs in rows.pairs_with_sets(pair_rows[chosen]):
                logs[chosen[pairs]] += np.log(tables.probabilities[slots[pairs, None], rows.members[k]].sum(axis=1))
            for k, selection, selected_slots in self._partial(rows, chosen, slots, pair_rows, systems):
                for whitening, real, _, _ in self.coordinates[k].whitenings:
                    add_partial_logs(
                        selection,
                        selected_slots,
                        pair_rows,
                        rows.real[k],
                        rows.patterns,
                        rows.missing,
                        real,
                        whitening.basis,
                        *tables[2:5],
                        MIN_LOG_DENSITY,
                        logs,
                    )
        tops, sums = np.empty((2, len(groups)))
        find_tops(logs, tops)
        row_tops = np.maximum.reduceat(tops, first_pairs[:-1])
        put_exps(logs, row_tops[pair_rows], MAX_LOG_GAP, tops, sums)
        log_density, shares = _normalize(first_pairs, pair_rows, row_tops, tops, sums)
        logs *= shares[:, None]
        return PointPosterior(which, rows, first_pairs, pair_rows, groups, logs, log_density)

    def _partial(
        self, rows: Rows, chosen: IntArray, slots: IntArray, pair_rows: IntArray, systems: IntArray
    ) -> Iterator[tuple[int, IntArray, IntArray]]:
        """Yield each system, its pairs with partially observed rows, sorted by slot and pattern, and the slots."""
        if not np.any(rows.partial):
            return
        selection = np.flatnonzero(rows.partial[systems[chosen], pair_rows[chosen]])
        selection = selection[
            np.lexsort((rows.patterns[pair_rows[chosen[selection]]], slots[selection], systems[chosen[selection]]))
        ]
        for part in np.split(selection, np.flatnonzero(np.diff(systems[chosen[selection]])) + 1):
            if len(part):
                yield int(systems[chosen[part[0]]]), chosen[part], slots[part]

    def _find_needed_groups(self, rows: Rows) -> BoolArray:
        """Return which groups each row must evaluate."""
        needed = np.ones((len(rows.states), len(self.starts)), dtype=np.bool_)
        if self.prunes and len(self.starts) > N_FIRST_GROUPS:
            bounds = self.bound(rows)
            needed[:] = False
            np.put_along_axis(
                needed, np.argpartition(bounds, -N_FIRST_GROUPS, axis=1)[:, -N_FIRST_GROUPS:], True, axis=1
            )
            log_densities = self._log_densities(rows, needed)
            find_needed(bounds, log_densities, math.log(MAX_PRUNED_SHARE), needed.view(np.uint8))
        return needed

    def _map_block(
        self, X: FloatArray, which: IntArray, work: Callable[[Rows, IntArray, BoolArray], Result], max_numbers: int
    ) -> list[tuple[IntArray, Result]]:
        """Call a function for the rows of a block, in parts that hold at most `max_numbers` rows x points."""
        rows = self.make_rows(X[which])
        needed = self._find_needed_groups(rows)
        numbers = np.cumsum(needed.sum(axis=1)) * self.width
        results = []
        first = 0
        while first < len(which):
            before = numbers[first - 1] if first else 0
            last = max(int(np.searchsorted(numbers, before + max_numbers, side="right")), first + 1)
            part = slice(first, last)
            results.append((which[part], work(rows.take(part), which[part], needed[part])))
            first = last
        return results

    def log_density(self, X: FloatArray, n_threads: int) -> FloatArray:
        """Return the log predictive densities of rows."""
        size = MAX_LARGE_BLOCK_NUMBERS if not np.isnan(X).any() or not self.has_whitenings else MAX_BLOCK_NUMBERS
        order, results = self._map_blocks(X, n_threads, lambda rows, _, needed: self._log_densities(rows, needed), size)
        return np.asarray(np.concatenate(results)[np.argsort(order)])

    def map_blocks(
        self, X: FloatArray, n_threads: int, work: Callable[[PointPosterior], Result]
    ) -> tuple[IntArray, list[Result]]:
        """Call a function for blocks of similar rows; return the order in which rows were processed, and the results."""
        size = MAX_BLOCK_NUMBERS if self._cache[0] else MAX_LARGE_BLOCK_NUMBERS
        return self._map_blocks(X, n_threads, lambda rows, *chosen: work(self._evaluate(rows, *chosen)), size)

    def _map_blocks(
        self, X: FloatArray, n_threads: int, work: Callable[[Rows, IntArray, BoolArray], Result], max_numbers: int
    ) -> tuple[IntArray, list[Result]]:
        def find_best_groups(first: int) -> IntArray:
            return np.asarray(self.bound(self.make_rows(X[first : first + BLOCK_ROWS])).argmax(axis=1))

        starts = range(0, len(X), BLOCK_ROWS)
        order, missing = np.arange(len(X)), np.isnan(X)
        if (
            self.has_whitenings and missing.any()
        ):  # rows with the same missing cells share what depends on the point only
            order = np.lexsort(missing.T)
        cached, _ = self._cache  # computed before threads need it
        if cached is None:
            n_threads = min(n_threads, MAX_LARGE_BLOCK_THREADS)
        n_threads = min(n_threads, len(starts))  # a single block stays in this thread: starting others takes longer
        if cached is None and self.prunes and len(X) > 1:
            best = np.concatenate(list(in_threads(n_threads, find_best_groups, ((k,) for k in starts))))
            order = order[np.argsort(best[order], kind="stable")]
        tasks = ((X, order[k : k + BLOCK_ROWS], work, max_numbers) for k in starts)
        parts = [part for block in in_threads(n_threads, self._map_block, tasks) for part in block]
        return np.concatenate([which for which, _ in parts]), [result for _, result in parts]

    def _join_conditional(self, conditional: FloatArray) -> tuple[BoolArray, FloatArray, FloatArray]:
        """Join moments of missing cells and of their normal scores; return which are known, means and sums of squares.

        The mixture of a cell's scores is taken for one Gaussian when it is mapped back to the column.
        """
        (weight, mean, square), (other_weight, other_mean, other_square) = conditional
        known = (weight + other_weight) > 0
        scored = next((coordinates for coordinates in self.coordinates if coordinates.scores is not None), None)
        if scored is None:
            return known, mean, square
        has_scores = other_weight > 0
        variance = np.where(has_scores, other_square / np.where(has_scores, other_weight, 1.0), 1.0)
        other_mean, variance = scored.undo_scores(other_mean, variance)
        share = np.where(known, other_weight / np.where(known, weight + other_weight, 1.0), 0.0)
        apart = np.where(weight > 0, other_mean - mean, 0.0)
        joint_mean = np.where(weight > 0, mean + share * apart, other_mean)
        return known, joint_mean, square + other_weight * variance + weight * share * apart**2

    def mixtures(self, posterior: PointPosterior, quantiles: bool = False) -> Predictions:
        """Return means, standard deviations and probabilities of the cells, averaged over the posterior of the points.

        Missing cells of a whitening are conditioned on the row's observed cells. Observed cells are predicted from the
        attachment point alone. A cell that is one of several states is conditioned on that.

        Parameters
        ----------
        posterior : PointPosterior
        quantiles : bool, default False
            Whether to find quantiles of missing real cells, too.
        """
        if not quantiles:
            return self._mix(posterior, None)
        predictions, components = self.mixture_components(posterior)
        return predictions._replace(quantiles=components.quantiles(predictions.mean.shape, self.scores))

    def mixture_components(self, posterior: PointPosterior) -> tuple[Predictions, Components]:
        """Return what `mixtures` returns, and the components of the mixtures of missing real cells."""
        mixtures = Mixtures()
        return self._mix(posterior, mixtures), mixtures.components()

    def _mix(self, posterior: PointPosterior, mixtures: Mixtures | None) -> Predictions:
        """Return averages over the posterior of the points, and add the components of missing real cells to mixtures."""
        n, template, rows = len(posterior.rows), self._template, posterior.cells
        # Moments of fully and of partially observed pairs, and of the missing cells of the latter.
        weight, moments = np.zeros((2, n)), np.zeros((2, 3, n, len(template.real)))
        conditional = np.zeros((2, 3, n, len(template.real)))  # of columns, and of normal scores
        probability = np.zeros((n, int(template.start[-1])))
        in_sets = {k: np.zeros((n, len(members))) for k, members in enumerate(rows.members)}
        systems = self.systems[posterior.groups]
        counts = np.zeros(len(systems), dtype=np.intp)  # of components that each pair may add
        if mixtures is not None:
            counts = (
                np.count_nonzero(posterior.shares >= MIN_SHARE, axis=1)
                * rows.holes.sum(axis=1, dtype=np.intp)[posterior.pair_rows]
            )
        for tables, chosen, slots in self._tables(posterior.groups):
            partial = rows.partial[systems[chosen], posterior.pair_rows[chosen]]
            column_tables = self._column_tables(tables, posterior.groups[chosen])
            if mixtures is not None:
                score_tables = self._column_tables(tables, posterior.groups[chosen], undo_scores=False)
                self._add_components(
                    mixtures, posterior, score_tables, chosen[partial == 0], slots[partial == 0], counts, rows.holes
                )
            for k in range(2):
                add_moments(
                    chosen[partial == k],
                    slots[partial == k],
                    posterior.pair_rows,
                    posterior.shares,
                    *column_tables,
                    tables.probabilities,
                    weight[k],
                    moments[k, 0],
                    moments[k, 1],
                    moments[k, 2],
                    probability,
                )
            for k, pairs in rows.pairs_with_sets(posterior.pair_rows[chosen]):
                chances = tables.probabilities[slots[pairs, None], rows.members[k]]
                chances *= (posterior.shares[chosen[pairs]] / chances.sum(axis=1))[:, None]
                np.add.at(in_sets[k], posterior.pair_rows[chosen[pairs]], chances.sum(axis=2))
            for system, selection, selected_slots in self._partial(rows, chosen, slots, posterior.pair_rows, systems):
                scored, other_holes = int(self.is_scored[system]), rows.holes.copy()
                for whitening, real, fill, _ in self.coordinates[system].whitenings:
                    other_holes[:, real] = 0
                    for part in split(counts[selection]):
                        add_partial_moments(
                            selection[part],
                            selected_slots[part],
                            posterior.pair_rows,
                            posterior.shares,
                            rows.real[system],
                            rows.patterns,
                            rows.missing,
                            real,
                            whitening.basis,
                            fill,
                            tables.means,
                            tables.half_precisions,
                            None if mixtures is None else mixtures.reserve(int(counts[selection[part]].sum())),
                            MIN_SHARE,
                            scored,
                            *conditional[scored],
                        )
                if mixtures is not None and other_holes.any():
                    self._add_components(
                        mixtures, posterior, score_tables, selection, selected_slots, counts, other_holes
                    )
        (mean, square, unknown), (other, other_square, other_unknown) = moments
        if np.any(rows.partial):
            known, conditional_mean, conditional_square = self._join_conditional(conditional)
            other = np.where(known, conditional_mean, other)
            other_square = np.where(known, conditional_square, other_square)
            share = (weight[1] / weight.sum(axis=0))[:, None]
            apart = other - mean
            mean = mean + share * apart
            square = square + other_square + weight[0][:, None] * share * apart**2
            unknown = unknown + other_unknown
        sd = np.where(unknown > 0, np.inf, np.sqrt(square / weight.sum(axis=0)[:, None]))
        for k, members in enumerate(rows.members):
            selection, column = np.nonzero(rows.sets == k)
            if len(selection):
                probability[selection, template.start[column[0]] : template.start[column[0] + 1]] = 0.0
                probability[selection[:, None], members] = in_sets[k][selection]
        return template._replace(mean=mean, sd=sd, probability=probability)

    def _add_components(
        self,
        mixtures: Mixtures,
        posterior: PointPosterior,
        tables: ColumnTables,
        chosen: IntArray,
        slots: IntArray,
        counts: IntArray,
        requested: FlagArray,
    ) -> None:
        """Add the points of chosen pairs to the mixtures of wanted cells. Tables are those of columns or their scores."""
        scored = self.is_scored[self.systems[posterior.groups[chosen]]]
        for part in split(counts[chosen]):
            add_pairs(
                mixtures.reserve(int(counts[chosen[part]].sum())),
                chosen[part],
                slots[part],
                posterior.pair_rows,
                posterior.shares,
                MIN_SHARE,
                requested,
                scored[part],
                *tables,
            )


def _pairs(needed: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the rows and groups of all pairs, and where the pairs of each row begin."""
    pair_rows, groups = map(np.ascontiguousarray, np.nonzero(needed))
    return pair_rows, groups, np.concatenate([[0], np.cumsum(np.bincount(pair_rows, minlength=len(needed)))])


def _normalize(
    first_pairs: IntArray, pair_rows: IntArray, row_tops: FloatArray, tops: FloatArray, sums: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the log of each row's sum, and the factor that turns each pair's numbers into shares of that sum."""
    maxima = row_tops[pair_rows]
    factors = np.where(tops >= maxima - MAX_LOG_GAP, np.exp(tops - maxima), 0.0)
    total = np.add.reduceat(factors * sums, first_pairs[:-1])
    return row_tops + np.log(total), factors / total[pair_rows]


def _sort_points(beliefs: Beliefs, at: AttachmentPoints) -> AttachmentPoints:
    """Sort points such that those of a group have similar predictions: by magnitude of height, then depth-first."""
    tree = beliefs.tree
    heights = at.heights + max(
        beliefs.process.min_attachment_height, MIN_RELATIVE_CELL * MIN_RELATIVE_CELL * float(tree.heights[-1])
    )
    magnitude = np.frexp(heights)[1].astype(np.intp)
    rank = np.empty(tree.n_nodes, dtype=np.intp)
    rank[tree.depth_first] = np.arange(tree.n_nodes)
    order = np.argsort(magnitude * tree.n_nodes + rank[at.nodes], kind="stable")
    return AttachmentPoints(at.nodes[order], *(part[order] for part in at[1:]))
