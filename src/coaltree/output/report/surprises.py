"""Rows and cells that the rest of the table does not foretell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from .facts import ColumnFacts, Examined, RealFacts

FloatArray = NDArray[np.float64]

MOST_CELLS = 20
FEWEST_ROWS, MOST_ROWS = 5, 20
RARE = 0.001  # tail from which on a cell is called odd
CELLS_OF_ROW = 3
UNLIKELY = 0.05  # tail from which on a cell is named as what makes a row odd
ROUNDING = 1e-9


class Surprise(NamedTuple):
    """An observed cell and what was expected in its place."""

    row: int
    column: str
    value: str
    expected: str
    log_tail: float  # log of the probability of something at least as odd

    @property
    def rare(self) -> bool:
        """Whether it is one of those that are called odd."""
        return self.log_tail < math.log(RARE)


class Oddity(NamedTuple):
    """A row and how far below the typical row its score is."""

    row: int
    below: float  # in units of the distance that a quarter of the rows are below it
    far: bool  # whether it is called an outlier
    cells: list[Surprise]


class OddRows(NamedTuple):
    """The rows of the lowest scores, the oddest first: outliers, and a few in any case."""

    shown: list[Oddity]
    n_far: int
    limit: float  # of `below`, beyond which a row is called an outlier


class OddCells(NamedTuple):
    """The observed cells that are least likely given the rest of their rows, the oddest first."""

    shown: list[Surprise]
    n_rare: int
    n_cells: int  # that were looked at


def log_tails(column: ColumnFacts, examined: Examined) -> FloatArray:
    """Return of each cell of an opened row the log of the probability of something at least as odd; 0 if nothing was observed.

    Of a real cell that is a value at least as far from the mean; of a categorical one, a category at most as probable.
    """
    rows = examined.opened
    seen = ~column.missing[rows]
    found = np.zeros(len(rows))
    if isinstance(column, RealFacts):
        known = seen & (column.expected_sd > 0)
        found[known] = log_ndtr(-column.deviations(rows)[known]) + np.log(2)
        return found
    own = column.expected[seen, column.codes[rows[seen]]]
    tail = np.where(column.expected[seen] <= own[:, None] * (1 + ROUNDING), column.expected[seen], 0.0).sum(axis=1)
    found[seen] = np.log(np.clip(np.where(tail > 1 - ROUNDING, 1.0, tail), 1e-300, 1.0))
    return found


def odd_cells(columns: Sequence[ColumnFacts], examined: Examined, most: int = MOST_CELLS) -> OddCells:
    """Find the least likely of the cells in the rows that were opened evenly; those of odd rows alone would not be fair."""
    if not columns or not examined.hidden_at_once:
        return OddCells([], 0, 0)
    at = np.flatnonzero(examined.evenly)
    tails = np.column_stack([log_tails(column, examined)[at] for column in columns])
    order = np.argsort(tails, axis=None, kind="stable")[:most]
    cells = np.column_stack(np.unravel_index(order, tails.shape)).tolist()
    shown = [_surprise(columns[j], examined, int(at[k]), float(tails[k, j])) for k, j in cells if tails[k, j] < 0]
    n_cells = sum(int(np.sum(~column.missing[examined.opened[at]])) for column in columns)
    return OddCells(shown, int(np.sum(tails < np.log(RARE))), n_cells)


def odd_rows(columns: Sequence[ColumnFacts], examined: Examined) -> OddRows:
    """Find the rows of the lowest scores.

    Scores have a long lower tail, as the logarithm of a normal density has. If it falls like an exponential one,
    ``2**-(1 + b)`` of the rows are more than b times as far below the median as the lower quartile is. Rows are called outliers
    from where on a table of their number has a quarter of a row.
    """
    n = len(examined.rows)
    limit = 1 + np.log2(max(n, 1))
    if n < 3 or not columns:
        return OddRows([], 0, limit)
    quartile, median = np.quantile(examined.scores, [0.25, 0.5])
    if median - quartile <= ROUNDING * max(1.0, abs(median)):
        return OddRows([], 0, limit)
    below = (median - examined.scores) / (median - quartile)
    order = np.argsort(np.round(examined.scores, 9), kind="stable")  # as it was found which rows to open
    n_far = int(np.sum(below > limit))
    tails = [log_tails(column, examined) for column in columns] if examined.hidden_at_once else []
    shown = [
        Oddity(
            int(examined.rows[k]),
            float(below[k]),
            bool(below[k] > limit),
            _oddest_cells(columns, examined, tails, int(np.searchsorted(examined.opened, examined.rows[k]))),
        )
        for k in order[: int(np.clip(n_far, FEWEST_ROWS, MOST_ROWS))].tolist()
        if below[k] > 0
    ]
    return OddRows(shown, n_far, limit)


def _oddest_cells(
    columns: Sequence[ColumnFacts], examined: Examined, tails: list[FloatArray], k: int
) -> list[Surprise]:
    odd = sorted((float(own[k]), j) for j, own in enumerate(tails) if own[k] < np.log(UNLIKELY))
    return [_surprise(columns[j], examined, k, tail) for tail, j in odd[:CELLS_OF_ROW]]


def _surprise(column: ColumnFacts, examined: Examined, k: int, log_tail: float) -> Surprise:
    row = int(examined.opened[k])
    return Surprise(row, column.name, column.cell(row), column.expectation(k), log_tail)
