"""Rows and cells that the rest of the table does not foretell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from .facts import ColumnFacts, Examined, RealFacts
from .numbers import given_values, written

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MOST_CELLS = 20
FEWEST_ROWS, MOST_ROWS = 5, 20
FAR_BELOW = 3.0  # spreads below the typical row, from which on a row is called an outlier
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


class Oddity(NamedTuple):
    """A row and how far below the typical row its density is."""

    row: int
    below: float  # in spreads of the rows' log densities
    cells: list[Surprise]


def log_tails(column: ColumnFacts, examined: Examined) -> FloatArray:
    """Return of each examined cell the log of the probability of something at least as odd; 0 where nothing was observed.

    Of a real cell that is a value at least as far from the mean; of a categorical one, a category at most as probable.
    """
    rows = examined.rows
    seen = ~column.missing[rows]
    found = np.zeros(len(rows))
    if isinstance(column, RealFacts):
        known = seen & (column.expected_sd > 0)
        distance = np.abs(column.values[rows[known]] - column.expected[known]) / column.expected_sd[known]
        found[known] = log_ndtr(-distance) + np.log(2)
        return found
    own = column.expected[seen, column.codes[rows[seen]]]
    tail = np.where(column.expected[seen] <= own[:, None] * (1 + ROUNDING), column.expected[seen], 0.0).sum(axis=1)
    found[seen] = np.log(np.clip(np.where(tail > 1 - ROUNDING, 1.0, tail), 1e-300, 1.0))
    return found


def least_likely_cells(columns: Sequence[ColumnFacts], examined: Examined, most: int = MOST_CELLS) -> list[Surprise]:
    """Return the observed cells that are least likely given the rest, the oddest first."""
    if not columns or not len(examined.rows) or not examined.hidden_at_once:
        return []
    tails = np.column_stack([log_tails(column, examined) for column in columns])
    order = np.argsort(tails, axis=None, kind="stable")[:most]
    cells = np.column_stack(np.unravel_index(order, tails.shape)).tolist()
    return [_surprise(columns[j], examined, k, float(tails[k, j])) for k, j in cells if tails[k, j] < 0]


def n_beyond(columns: Sequence[ColumnFacts], examined: Examined, tail: float) -> tuple[int, int]:
    """Return how many observed cells are less likely than a tail probability, and how many were looked at."""
    limit, beyond, looked_at = np.log(tail), 0, 0
    for column in columns:
        beyond += int(np.sum(log_tails(column, examined) < limit))
        looked_at += int(np.sum(~column.missing[examined.rows]))
    return beyond, looked_at


def oddest_rows(columns: Sequence[ColumnFacts], examined: Examined) -> list[Oddity]:
    """Return the rows of the lowest predictive density: all outliers, and a few in any case."""
    if len(examined.rows) < 3 or not columns:
        return []
    scores = examined.log_density - _usual(columns, examined.rows)
    middle = float(np.median(scores))
    spread = 1.4826 * float(np.median(np.abs(scores - middle)))
    if spread <= ROUNDING * max(1.0, abs(middle)):
        return []
    below = (middle - scores) / spread
    order = np.argsort(-np.round(below, 9), kind="stable")
    n_shown = int(np.clip(np.sum(below > FAR_BELOW), FEWEST_ROWS, MOST_ROWS))
    tails = [log_tails(column, examined) for column in columns] if examined.hidden_at_once else []
    return [
        Oddity(int(examined.rows[k]), float(below[k]), _oddest_cells(columns, examined, tails, k))
        for k in order[:n_shown].tolist()
        if below[k] > 0
    ]


def _oddest_cells(
    columns: Sequence[ColumnFacts], examined: Examined, tails: list[FloatArray], k: int
) -> list[Surprise]:
    odd = sorted((float(own[k]), j) for j, own in enumerate(tails) if own[k] < np.log(UNLIKELY))
    return [_surprise(columns[j], examined, k, tail) for tail, j in odd[:CELLS_OF_ROW]]


def _usual(columns: Sequence[ColumnFacts], rows: IntArray) -> FloatArray:
    """Return the log density that rows would have on average if columns knew nothing of each other.

    It makes rows with few observed cells comparable with others.
    """
    total = np.zeros(len(rows))
    for column in columns:
        if isinstance(column, RealFacts):
            mean_log = -0.5 * np.log(2 * np.pi * np.e)  # of standardised cells
        else:
            shares = np.bincount(column.codes[~column.missing]) / np.sum(~column.missing)
            mean_log = float(np.sum(shares[shares > 0] * np.log(shares[shares > 0])))
        total += np.where(column.missing[rows], 0.0, mean_log)
    return total


def _surprise(column: ColumnFacts, examined: Examined, k: int, log_tail: float) -> Surprise:
    row = int(examined.rows[k])
    if isinstance(column, RealFacts):
        value = written(given_values(column.values[row : row + 1])[0] or 0.0)
    else:
        value = column.categories[column.codes[row]]
    return Surprise(row, column.name, value, column.expectation(k), log_tail)
