"""What defines clusters, and why a row is in its cluster: every column in each cluster, compared with the other rows.

Columns are taken one at a time, see `coaltree.inference.column_evidence`. Whether a cluster would still be found without a column
says little about it: of two columns that say the same, each can be missed.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..inference.column_evidence import ColumnInClusters, Moments
from ..inference.partition import CONCENTRATION
from ..table.encoding import EncodedColumn
from ..table.fill import FIRST_DAY, LAST_DAY
from ..table.scaling import moments, standardise

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

SIZE, OTHERS = "(size)", "(other columns)"  # in explanations, in place of a column
MAX_CELLS_AT_ONCE = 1_000_000  # whose densities are in memory


class Differences(NamedTuple):
    """Differences between groups and all other rows in one column, one entry per group."""

    effect: FloatArray  # NaN if one side has no observed cell
    inside: FloatArray  # standardised mean, or share of the category
    outside: FloatArray
    category: IntArray  # the category of the shares; -1 for a real column


def tally(cells: FloatArray, groups: IntArray, n_groups: int, n_categories: int) -> FloatArray:
    """Return the sums over groups of rows that `differences` needs.

    Parameters
    ----------
    cells : ndarray of shape (n_rows,)
        Standardised numbers, or codes of categories; NaN is missing.
    groups : ndarray of int, shape (n_rows,)
        The group of each row.
    n_groups : int
    n_categories : int
        0 for numbers.

    Returns
    -------
    ndarray of shape (n_groups, k)
        For numbers how many there are and their sum; for categories the number of cells of each.
    """
    known = ~np.isnan(cells)
    cells, groups = cells[known], groups[known]
    if not n_categories:
        sums = np.bincount(groups, weights=cells, minlength=n_groups)
        return np.column_stack([np.bincount(groups, minlength=n_groups), sums]).astype(np.float64)
    counts = np.bincount(groups * n_categories + cells.astype(np.intp), minlength=n_groups * n_categories)
    return counts.reshape(n_groups, n_categories).astype(np.float64)


def differences(inside: FloatArray, total: FloatArray, n_categories: int) -> Differences:
    """Compare groups with all other rows.

    Parameters
    ----------
    inside : ndarray of shape (n_groups, k)
        Tallies of the groups.
    total : ndarray of shape (k,)
        Tally of all rows.
    n_categories : int
        0 for numbers.

    Returns
    -------
    Differences
        The effect in a real column is the difference of the means in standard deviations. In a categorical column it is
        the largest Cohen's h, the difference of ``2 arcsin(sqrt(share))``, over the categories; at most 3.14.
    """
    outside = total - inside
    if not n_categories:
        in_both = (inside[:, 0] > 0) & (outside[:, 0] > 0)
        within, without = (part[:, 1] / np.maximum(part[:, 0], 1) for part in (inside, outside))
        return Differences(np.where(in_both, within - without, np.nan), within, without, np.full(len(inside), -1))
    n_inside, n_outside = inside.sum(axis=1), outside.sum(axis=1)
    shares, others = (
        np.clip(part / np.maximum(size, 1)[:, None], 0.0, 1.0)
        for part, size in ((inside, n_inside), (outside, n_outside))
    )
    angles = 2 * (np.arcsin(np.sqrt(shares)) - np.arcsin(np.sqrt(others)))
    best = angles.argmax(axis=1)
    at = np.arange(len(inside)), best
    return Differences(np.where((n_inside > 0) & (n_outside > 0), angles[at], np.nan), shares[at], others[at], best)


class ProfiledColumn:
    """One column in every group of rows.

    Attributes
    ----------
    n_observed : ndarray of shape (n_groups,)
    center : ndarray of shape (n_groups,)
        Mean, or the code of the most frequent category; NaN without observed cells.
    spread : ndarray of shape (n_groups,)
        Standard deviation, or the share of that category.
    elsewhere : ndarray of shape (n_groups,)
        Mean, or share of that category, in all other rows.
    differences : Differences
    evidence : ndarray of shape (n_groups,)
    """

    def __init__(
        self, column: EncodedColumn, values: FloatArray, cells: FloatArray, groups: IntArray, n_groups: int
    ) -> None:
        """Summarise a column from its values in the table's units and its encoded cells, both NaN where missing."""
        self.name, self.is_real, self._column = column.name, column.real, column
        n_categories = len(column.categories)
        if n_categories:
            self._scale = 0.0, 1.0
            sums = tally(cells, groups, n_groups, n_categories)
            total = sums.sum(axis=0)
            self.n_observed = sums.sum(axis=1)
            mode, rows = sums.argmax(axis=1), np.arange(n_groups)
            inside, outside = self.n_observed, total.sum() - self.n_observed
            self.center, self.spread = mode.astype(np.float64), _ratio(sums[rows, mode], inside)
            self.elsewhere = _ratio(total[mode] - sums[rows, mode], outside)
        else:
            self._scale = moments(cells)[:2]
            days = values[~np.isnan(values)]
            self._has_days = column.time and bool(np.all(np.abs(days - np.rint(days)) < 1e-5))
            center, sd, _ = moments(values)
            own = Moments.of_groups(standardise(values, center, sd), groups, n_groups)
            rest = own.others()
            sums = np.column_stack([own.sizes, own.sizes * own.means])
            total = sums.sum(axis=0)
            self.n_observed = own.sizes
            ends = (days.min(), days.max()) if len(days) else (0.0, 0.0)
            with np.errstate(over="ignore"):  # rounding can carry the mean of the largest floats beyond them
                self.center, self.elsewhere = (
                    np.where(part.sizes > 0, np.clip(center + sd * part.means, *ends), np.nan) for part in (own, rest)
                )
            self.spread = sd * np.sqrt(_ratio(own.scatters, own.sizes))
        self.center = np.where(self.n_observed > 0, self.center, np.nan)
        self.differences = differences(sums, total, n_categories)
        self.clusters = ColumnInClusters(standardise(cells, *self._scale), groups, n_groups, n_categories)

    @property
    def evidence(self) -> FloatArray:
        """How clearly the column sets each group apart from the other rows, eq. (10.8)."""
        return self.clusters.evidence

    def values(self, matrix: FloatArray) -> FloatArray:
        """Return the cells of encoded rows in the units of the table; codes of categories."""
        return own_values(self._column, matrix[:, self._column.position])

    def encoded(self, matrix: FloatArray) -> FloatArray:
        """Return the cells of encoded rows, numbers with mean 0 and variance 1 in the rows of the fit."""
        return standardise(_known_cells(self._column, matrix[:, self._column.position]), *self._scale)

    def level(self, group: int) -> Any:
        """Return the category that is more frequent than elsewhere by most; None for numbers, or if nothing is known."""
        k = int(self.differences.category[group])
        return None if k < 0 or math.isnan(self.differences.effect[group]) else self._column.categories[k]

    def typical(self, cluster: int) -> Any:
        """Return the mean or the most frequent category of a cluster in the units of the table; None for no cluster."""
        return None if cluster < 0 else self.in_own_units(self.center[cluster], mean=True)

    def in_own_units(self, value: float, mean: bool = False) -> Any:
        """Return a value as a user knows it: a number, a date, a time or a category; None if it is missing.

        Means of dates are dates.
        """
        if math.isnan(value):
            return None
        if not self.is_real:
            return self._column.categories[int(value)]
        if self._column.time and FIRST_DAY <= value <= LAST_DAY:
            if mean and self._has_days:
                value = round(value)
            moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=round(value * 86_400))
            return moment.date() if self._has_days else moment
        # Encoding and decoding changes the last digits.
        return float(f"{value:.12g}") if abs(value) < 1e12 else float(value)


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    return np.where(whole > 0, part / np.maximum(whole, 1), np.nan)


class Profile:
    """Every column in every cluster.

    Parameters
    ----------
    columns : sequence of EncodedColumn
    matrix : ndarray of shape (n_rows, n_columns)
        The encoded table.
    shortened : ndarray of shape (n_rows, n_columns)
        The same with extreme cells nearer to the others, as the tree and its clusters see them.
    labels : ndarray of int, shape (n_rows,)
        Clusters; -1 for outliers.
    """

    def __init__(
        self, columns: Sequence[EncodedColumn], matrix: FloatArray, shortened: FloatArray, labels: IntArray
    ) -> None:
        self.n_clusters = int(labels.max()) + 1
        self.labels = labels
        self._matrix, self._shortened = matrix, shortened
        groups = np.where(labels < 0, self.n_clusters, labels)
        self.sizes = np.bincount(groups, minlength=self.n_clusters)
        self.columns = [
            ProfiledColumn(
                column,
                own_values(column, matrix[:, column.position]),
                _known_cells(column, shortened[:, column.position]),
                groups,
                len(self.sizes),
            )
            for column in columns
        ]

    @cached_property
    def examples(self) -> list[int]:
        """The most typical row of each group: its observed cells are the most probable ones for cells of these columns."""
        groups = np.where(self.labels < 0, self.n_clusters, self.labels)
        totals = np.zeros(len(groups))
        for column in self.columns:
            cells = column.encoded(self._shortened)
            densities, known = column.clusters.log_predictive(cells, groups, leave_out=True), ~np.isnan(cells)
            means = np.bincount(groups[known], densities[known], len(self.sizes)) / np.maximum(column.n_observed, 1)
            totals[known] += (densities - means[groups])[known]
        order = np.lexsort([-np.round(totals, 9), groups])
        return [int(row) for row in order[np.append(0, np.cumsum(self.sizes)[:-1])]]

    def strongest(self, group: int) -> list[int]:
        """Return the columns that define a group, those with the greatest evidence first."""
        evidence = np.array([column.evidence[group] for column in self.columns])
        return [int(j) for j in np.argsort(-np.round(evidence, 9), kind="stable")]

    def lines(self, n_columns: int | None = None) -> dict[str, list[Any]]:
        """Return a line for every cluster and column, the columns with the greatest evidence first."""
        fields = [
            "cluster",
            "size",
            "column",
            "typical",
            "spread",
            "elsewhere",
            "missing",
            "effect",
            "level",
            "evidence",
        ]
        lines: dict[str, list[Any]] = {name: [] for name in fields}
        for group, size in enumerate(self.sizes.tolist()):
            for j in self.strongest(group)[:n_columns]:
                column = self.columns[j]
                elsewhere = column.elsewhere[group]
                cells = (
                    column.name,
                    column.in_own_units(column.center[group], mean=True),
                    _finite(column.spread[group]),
                    column.in_own_units(elsewhere, mean=True) if column.is_real else _finite(elsewhere),
                    1 - column.n_observed[group] / size,
                    _finite(column.differences.effect[group]),
                    column.level(group),
                    column.evidence[group],
                )
                _add_line(lines, (group if group < self.n_clusters else -1, size, *cells))
        return lines

    def explain(
        self, names: Sequence[str], matrix: FloatArray, labels: IntArray, in_fit: IntArray | None, n_columns: int | None
    ) -> dict[str, list[Any]]:
        """Return why rows are in their clusters and not in the next best ones, with a line for every row and column.

        Parameters
        ----------
        names : sequence of str
            Of the rows.
        matrix : ndarray of shape (m, n_columns)
            Encoded rows.
        labels : ndarray of int, shape (m,)
            Their clusters; -1 for outliers.
        in_fit : ndarray of int or None
            Their numbers as rows of the fit, which are left out of their clusters; None for new rows.
        n_columns : int or None
            Number of columns to list for each row, those with the largest log ratios of either sign.

        Returns
        -------
        dict of str to list
        """
        seen = self._as_tree_cells(matrix) if in_fit is None else self._shortened[in_fit]
        seen = np.where(labels[:, None] < 0, matrix, seen)  # how far outside of clusters a cell is
        next_best, ratios = self._log_ratios(seen, labels, in_fit is not None)
        fields = ("row", "cluster", "next_cluster", "column", "value", "typical", "typical_next", "log_ratio")
        lines: dict[str, list[Any]] = {name: [] for name in fields}
        n_listed = len(self.columns) if n_columns is None else min(n_columns, len(self.columns))
        own = [column.values(matrix) for column in self.columns]
        order = np.argsort(-np.abs(np.round(ratios[:, 1:], 9)), axis=1, kind="stable")
        for i, (name, cluster, other) in enumerate(zip(names, labels.tolist(), next_best.tolist(), strict=True)):
            for j in order[i, :n_listed].tolist():
                column = self.columns[j]
                value = column.in_own_units(own[j][i])
                cells = (column.name, value, column.typical(cluster), column.typical(other), ratios[i, j + 1])
                _add_line(lines, (name, cluster, other, *cells))
            if n_listed < len(self.columns):
                rest = ratios[i, 1 + order[i, n_listed:]].sum()
                _add_line(lines, (name, cluster, other, OTHERS, None, None, None, rest))
            _add_line(lines, (name, cluster, other, SIZE, None, None, None, ratios[i, 0]))
        return lines

    def _log_ratios(self, matrix: FloatArray, labels: IntArray, in_fit: bool) -> tuple[IntArray, FloatArray]:
        """Return the next best clusters of rows and the log ratios to these, first that of the sizes, then of each column."""
        rows, clusters, none = np.arange(len(matrix)), np.arange(self.n_clusters), len(self.sizes)
        weights = np.log(np.append(np.maximum(self.sizes, CONCENTRATION), CONCENTRATION))
        inside = labels >= 0
        own, left_out = np.where(inside, labels, none), inside & in_fit
        cells = [column.encoded(matrix) for column in self.columns]
        totals = np.repeat(weights[None, : self.n_clusters], len(rows), axis=0)
        totals[rows[inside], labels[inside]] = -np.inf
        step = max(MAX_CELLS_AT_ONCE // self.n_clusters, 1)
        for column, own_cells in zip(self.columns, cells, strict=True):
            for first in range(0, len(rows), step):
                part = own_cells[first : first + step]
                densities = column.clusters.log_predictive(
                    np.repeat(part, self.n_clusters), np.tile(clusters, len(part))
                )
                totals[first : first + step] += densities.reshape(-1, self.n_clusters)
        best = totals.argmax(axis=1)
        next_best = np.where(np.isfinite(totals[rows, best]), best, none)
        ratios = np.empty((len(rows), len(self.columns) + 1))
        ratios[:, 0] = np.log(np.maximum(np.append(self.sizes, 0)[own] - left_out, CONCENTRATION)) - weights[next_best]
        for k, (column, own_cells) in enumerate(zip(self.columns, cells, strict=True), start=1):
            ratios[:, k] = -column.clusters.log_predictive(own_cells, next_best)
            for chosen, leave_out in ((left_out, True), (~left_out, False)):
                ratios[chosen, k] += column.clusters.log_predictive(own_cells[chosen], own[chosen], leave_out)
        return np.where(next_best == none, -1, next_best), ratios

    def _as_tree_cells(self, matrix: FloatArray) -> FloatArray:
        """Return encoded new rows with extreme cells nearer to the others, as in the rows of the fit."""
        moved = matrix.copy()
        for j in np.flatnonzero((self._matrix != self._shortened).any(axis=0) & (self._matrix is not self._shortened)):
            known = ~np.isnan(self._matrix[:, j])
            before, first = np.unique(self._matrix[known, j], return_index=True)
            nearest = np.clip(matrix[:, j], before[0], before[-1])
            moved[:, j] = np.interp(nearest, before, self._shortened[known, j][first]) + (matrix[:, j] - nearest)
        return moved


def _add_line(lines: dict[str, list[Any]], cells: Sequence[Any]) -> None:
    for column, cell in zip(lines.values(), cells, strict=True):
        column.append(float(cell) if isinstance(cell, np.floating) else cell)


def _known_cells(column: EncodedColumn, cells: FloatArray) -> FloatArray:
    """Return encoded cells, those that are one of several categories as missing."""
    return cells if column.real else np.where(cells >= 0, cells, np.nan)


def own_values(column: EncodedColumn, cells: FloatArray) -> FloatArray:
    """Return encoded cells in the units of the table; codes stay as they are."""
    return column.scale.decode(cells) if column.real else _known_cells(column, cells)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
