"""Held-out rows: their density given the other rows, and predictions of their cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..inference.executors import in_threads
from ..predict.predictor import Predictor
from ..process.predictions import Predictions
from ..tree.tree import Tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MAX_ROWS = 1_000_000  # rows with a score
MAX_DRAWS = 6  # trees from which rows are left out
MAX_CELLS, MIN_INSPECTED = 2_000, 100  # hidden cells; rows that are inspected regardless of the number of their cells
N_ODDEST = 20  # rows with the lowest scores, which are always inspected
MAX_LEAVES = 20_000  # leaves of all trees together, unless two parts need more
MAX_HIDDEN_CELLS = 1_000_000  # cells of the tables that are predicted at once
MAX_PASSES = 8  # passes over the cells of a row; in a wide table each pass hides several cells


class HeldOut(NamedTuple):
    """Predictions for held-out rows, from the other rows."""

    rows: IntArray
    scores: FloatArray  # (rows,), log densities minus those of rows with the same missing cells and independent columns
    rows_at_once: int  # rows that were left out together
    inspected: IntArray  # the rows whose cells were hidden
    evenly: NDArray[np.bool_]  # (inspected,), whether the row was chosen regardless of its score
    cells_at_once: int  # cells of a row that were hidden together; 0 if none was
    cells: Predictions  # (inspected,), predictions of each cell, given other cells of its row


def leave_out(tree: Tree, predictor: Predictor, n_real: int) -> HeldOut:
    """Leave rows out of the trees of a predictor, some at a time, and predict them from the others.

    Every row has a score, or a million evenly spaced along the leaves. All rows of a table of up to 2,000 cells or 100 rows
    are inspected: their cells are hidden and predicted. In a larger table, evenly spaced rows and those with the lowest
    scores are.

    Parameters
    ----------
    tree : Tree
        The tree of the figures, with at least two leaves.
    predictor : Predictor
        Over the same rows, real columns first. At most six of its draws are used.
    n_real : int

    Returns
    -------
    HeldOut
    """
    X = predictor.X
    n, n_columns = X.shape
    n_groups = min(n_columns, MAX_PASSES)
    every = predictor.ensemble.draws
    draws = [every[k] for k in np.linspace(0, len(every) - 1, min(len(every), MAX_DRAWS)).astype(int).tolist()]
    rows = _select_evenly(tree.leaf_order, MAX_ROWS)
    even = _select_evenly(rows, max(MIN_INSPECTED, MAX_CELLS // n_columns))
    scores = np.empty(n)

    def score_and_inspect(part: IntArray) -> tuple[IntArray, Predictions]:
        rest = predictor.without_rows(part, draws)
        scores[part] = rest.log_density(X[part])
        chosen = part[np.isin(part, even)]
        return chosen, _predict_hidden(rest, X[chosen], n_groups)

    def inspect(part: IntArray) -> tuple[IntArray, Predictions]:
        return part, _predict_hidden(predictor.without_rows(part, draws), X[part], n_groups)

    n_parts = _n_parts(n * len(draws), len(rows))
    inspected = list(in_threads(predictor.n_threads, score_and_inspect, _parts(rows, n_parts)))
    rows = np.sort(rows)
    scores -= _independent_log_density(X, n_real)
    oddest = rows[np.argsort(np.round(scores[rows], 9), kind="stable")[:N_ODDEST]]
    oddest = np.setdiff1d(oddest, even)
    inspected += in_threads(predictor.n_threads, inspect, _parts(oddest, min(n_parts, len(oddest))))
    inspected_rows = np.concatenate([rows for rows, _ in inspected])
    order = np.argsort(inspected_rows)
    return HeldOut(
        rows,
        scores[rows],
        -(-len(rows) // n_parts),
        inspected_rows[order],
        np.isin(inspected_rows[order], even),
        -(-n_columns // n_groups),
        Predictions.stack([cells for _, cells in inspected]).take(order),
    )


def _select_evenly(rows: IntArray, n_rows: int) -> IntArray:
    """Return all rows, or `n_rows` of them, evenly spaced."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), n_rows)).round().astype(np.intp)]


def _n_parts(n_leaves: int, n_rows: int) -> int:
    return min(max(MAX_LEAVES // n_leaves, 2), n_rows)


def _parts(rows: IntArray, n_parts: int) -> Iterator[tuple[IntArray]]:
    """Yield the rows that are left out together; neighbours are in different parts."""
    for k in range(n_parts):
        yield (rows[k::n_parts],)


def _independent_log_density(X: FloatArray, n_real: int) -> FloatArray:
    """Return the mean log density of rows with the same missing cells if columns were independent.

    It makes rows with few observed cells comparable with others.
    """
    total = np.zeros(len(X))
    for j, column in enumerate(X.T):
        observed = ~np.isnan(column) if j < n_real else column >= 0
        if j < n_real:
            size = np.max(np.abs(column[observed]))  # squares of very small numbers are 0
            spread = np.std(column[observed] / size) or 1.0
            mean_log = -0.5 * (np.log(2 * np.pi) + 1) - np.log(spread) - np.log(size)
        else:
            shares = np.unique(column[observed], return_counts=True)[1] / np.sum(observed)
            mean_log = np.sum(shares * np.log(shares))
        total[observed] += mean_log
    return total


def _predict_hidden(predictor: Predictor, X: FloatArray, n_groups: int) -> Predictions:
    """Predict every cell from the others of its row, hiding a group of cells at a time."""
    empty = predictor.cells(X[:0])
    predictions = empty._replace(
        mean=np.full((len(X), len(empty.real)), np.nan),
        sd=np.full((len(X), len(empty.real)), np.inf),
        probability=np.full((len(X), int(empty.start[-1])), np.nan),
    )
    rows, columns = np.indices(X.shape)
    hidden = [(rows + columns) % n_groups == k for k in range(n_groups)]
    step = max(MAX_HIDDEN_CELLS // max(X.size, 1), 1)  # all at once is fastest, but takes memory
    for first in range(0, n_groups, step):
        part = hidden[first : first + step]
        predicted = predictor.cells(np.concatenate([np.where(mask, np.nan, X) for mask in part]))
        for k, mask in enumerate(part):
            group = predicted.take(slice(k * len(X), (k + 1) * len(X)))
            real = mask[:, predictions.real]
            states = np.repeat(mask[:, predictions.categorical], np.diff(predictions.start), axis=1)
            predictions.mean[real], predictions.sd[real] = group.mean[real], group.sd[real]
            predictions.probability[states] = group.probability[states]
    return predictions
