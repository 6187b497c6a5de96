"""Held-out rows: how unusual they are given the other rows, and predictions of their cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..inference.executors import in_threads
from ..predict.hidden_cells import predict_hidden
from ..predict.outliers import OutlierScorer, find_limit
from ..predict.predictor import Predictor
from ..process.predictions import Predictions
from ..tree.tree import Tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MAX_CHANCE_OUTLIERS = 0.25  # rows beyond the limit in a table without outliers, if scores have an exponential tail
MIN_ROWS = 20  # with fewer rows, the lowest tenth says little: the limit is that for as many
MAX_DRAWS = 6  # trees from which rows are left out
MAX_CELLS, MIN_INSPECTED = 2_000, 100  # hidden cells; rows that are inspected regardless of the number of their cells
N_ODDEST = 20  # rows with the lowest scores, which are always inspected
MAX_LEAVES = 20_000  # leaves of all trees together, unless two parts need more
MAX_PASSES = 8  # passes over the cells of a row; in a wide table each pass hides several cells


class HeldOut(NamedTuple):
    """Predictions for held-out rows, from the other rows."""

    rows: IntArray
    scores: FloatArray  # (rows,), see `OutlierScorer`
    limit: float  # rows with lower scores are outliers
    rows_at_once: int  # rows that were left out together
    inspected: IntArray  # the rows whose cells were hidden
    evenly: NDArray[np.bool_]  # (inspected,), whether the row was chosen regardless of its score
    cells_at_once: int  # cells of a row that were hidden together; 0 if none was
    cells: Predictions  # (inspected,), predictions of each cell, given other cells of its row


def leave_out(tree: Tree, predictor: Predictor, scorer: OutlierScorer) -> HeldOut:
    """Leave rows out of the trees of a predictor, some at a time, and predict their cells from the others.

    All rows of a table of up to 2,000 cells or 100 rows are inspected: their cells are hidden and predicted. In a larger table,
    evenly spaced rows and those with the lowest scores are.

    Parameters
    ----------
    tree : Tree
        The tree of the figures, with at least two leaves.
    predictor : Predictor
        Over the same rows, real columns first. At most six of its draws are used.
    scorer : OutlierScorer
        Of this predictor.

    Returns
    -------
    HeldOut
    """
    X = predictor.X
    n, n_columns = X.shape
    n_groups = min(n_columns, MAX_PASSES)
    every = predictor.ensemble.draws
    draws = [every[k] for k in np.linspace(0, len(every) - 1, min(len(every), MAX_DRAWS)).astype(int).tolist()]
    even = _select_evenly(tree.leaf_order, max(MIN_INSPECTED, MAX_CELLS // n_columns))
    oddest = np.argsort(np.round(scorer.scores, 9), kind="stable")[:N_ODDEST]
    chosen = np.concatenate([even, np.setdiff1d(oddest, even)])

    def inspect(part: IntArray) -> tuple[IntArray, Predictions]:
        return part, predict_hidden(predictor.without_rows(part, draws), X[part], n_groups)

    n_parts = min(max(MAX_LEAVES // (n * len(draws)), 2), len(chosen))
    inspected = list(in_threads(predictor.n_threads, inspect, _parts(chosen, n_parts)))
    inspected_rows = np.concatenate([rows for rows, _ in inspected])
    order = np.argsort(inspected_rows)
    return HeldOut(
        np.arange(n),
        scorer.scores,
        find_limit(MAX_CHANCE_OUTLIERS / max(n, MIN_ROWS)),
        -(-len(chosen) // n_parts),
        inspected_rows[order],
        np.isin(inspected_rows[order], even),
        -(-n_columns // n_groups),
        Predictions.stack([cells for _, cells in inspected]).take(order),
    )


def _select_evenly(rows: IntArray, n_rows: int) -> IntArray:
    """Return all rows, or `n_rows` of them, evenly spaced."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), n_rows)).round().astype(np.intp)]


def _parts(rows: IntArray, n_parts: int) -> Iterator[tuple[IntArray]]:
    """Yield the rows that are left out together; neighbours are in different parts."""
    for k in range(n_parts):
        yield (rows[k::n_parts],)
