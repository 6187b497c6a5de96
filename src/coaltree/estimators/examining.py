"""Rows taken off a tree: how likely the others make them, and what they expect in each of their cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..inference.posterior_draws import Draw
from ..predict.predictor import Predictor
from ..process.predictions import Predictions
from ..tree.tree import Tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MOST_ROWS = 1_000_000
MOST_DRAWS = 3  # that rows are taken off
MOST_CELLS, FEWEST_OPENED = 2_000, 100  # that are hidden; rows whose cells are hidden however many they are
ODDEST = 20  # rows whose cells are hidden in any case
ALL_LEAVES = 50_000  # of all the trees that rows are taken off, if two trees are not more
MOST_HIDDEN = 8  # times that cells of a row are hidden; in a wide table several at a time


class OffTree(NamedTuple):
    """What a tree says of rows that were taken off it."""

    rows: IntArray
    scores: FloatArray  # (rows,), log densities above what rows with the same holes have if columns know nothing of each other
    at_once: int  # rows that were taken off together
    opened: IntArray  # the rows whose cells were hidden
    evenly: NDArray[np.bool_]  # (opened,), which of them were chosen without a look at their scores
    hidden_at_once: int  # cells of a row that were hidden together; 0 if none was
    cells: Predictions  # (opened,), of each cell, given others of its row


def take_off(tree: Tree, predictor: Predictor, n_real: int) -> OffTree:
    """Take rows off the trees of a predictor, some at a time, and ask the rest about them.

    All rows are scored; of more than a million so many, evenly along the leaves as they are drawn. Cells are hidden in all
    rows of a table of up to 2,000 cells or 100 rows; of a larger one in some, evenly as well, and in those of the lowest scores.

    Parameters
    ----------
    tree : Tree
        Of at least two leaves: the one that is drawn.
    predictor : Predictor
        Over the same rows, real columns first. Of more than a few draws some are asked, evenly.
    n_real : int

    Returns
    -------
    OffTree
    """
    X = predictor.X
    n, n_columns = X.shape
    n_groups = min(n_columns, MOST_HIDDEN)
    every = predictor.ensemble.draws
    draws = [every[k] for k in np.linspace(0, len(every) - 1, min(len(every), MOST_DRAWS)).astype(int).tolist()]
    rows = _evenly(tree.leaf_order, MOST_ROWS)
    even = _evenly(rows, max(FEWEST_OPENED, MOST_CELLS // n_columns))
    scores = np.empty(n)
    opened: list[IntArray] = []
    cells: list[Predictions] = []

    def open_rows(chosen: IntArray, rest: Predictor) -> None:
        opened.append(chosen)
        cells.append(_expected(rest, X[chosen], n_groups))

    for part, rest in _parts(predictor, draws, rows):
        scores[part] = rest.log_density(X[part])
        open_rows(part[np.isin(part, even)], rest)
    rows = np.sort(rows)
    scores -= _usual(X, n_real)
    oddest = rows[np.argsort(np.round(scores[rows], 9), kind="stable")[:ODDEST]]
    for part, rest in _parts(predictor, draws, np.setdiff1d(oddest, even)):
        open_rows(part, rest)
    which = np.concatenate(opened)
    order = np.argsort(which)
    return OffTree(
        rows,
        scores[rows],
        -(-len(rows) // _n_parts(n * len(draws), len(rows))),
        which[order],
        np.isin(which[order], even),
        -(-n_columns // n_groups),
        Predictions.stack(cells).take(order),
    )


def _evenly(rows: IntArray, most: int) -> IntArray:
    """Return all rows, or so many of them."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), most)).round().astype(np.intp)]


def _n_parts(n_leaves: int, n_rows: int) -> int:
    return min(max(ALL_LEAVES // n_leaves, 2), n_rows)


def _parts(predictor: Predictor, draws: Sequence[Draw], rows: IntArray) -> Iterator[tuple[IntArray, Predictor]]:
    """Yield some of the rows, and what is left when they are off the trees, until all have been off."""
    n_parts = _n_parts(len(predictor.X) * len(draws), len(rows))
    for k in range(n_parts):
        part = rows[k::n_parts]  # neighbours are in different ones
        yield part, predictor.without_rows(part, draws)


def _usual(X: FloatArray, n_real: int) -> FloatArray:
    """Return the log density that rows would have on average if columns knew nothing of each other.

    It makes rows with few observed cells comparable with others.
    """
    total = np.zeros(len(X))
    for j, column in enumerate(X.T):
        seen = ~np.isnan(column)
        if j < n_real:
            size = np.max(np.abs(column[seen]))  # squares of very small numbers are 0
            spread = np.std(column[seen] / size) or 1.0
            mean_log = -0.5 * (np.log(2 * np.pi) + 1) - np.log(spread) - np.log(size)
        else:
            shares = np.unique(column[seen], return_counts=True)[1] / np.sum(seen)
            mean_log = np.sum(shares * np.log(shares))
        total[seen] += mean_log
    return total


def _expected(rest: Predictor, X: FloatArray, n_groups: int) -> Predictions:
    """Return what is expected in every cell if it is hidden, a group of cells at a time."""
    like = rest.cells(X[:0])
    found = like._replace(
        mean=np.full((len(X), len(like.real)), np.nan),
        sd=np.full((len(X), len(like.real)), np.inf),
        probability=np.full((len(X), int(like.start[-1])), np.nan),
    )
    rows, columns = np.indices(X.shape)
    for group in range(n_groups):
        hidden = (rows + columns) % n_groups == group
        own = rest.cells(np.where(hidden, np.nan, X))
        real, states = hidden[:, found.real], np.repeat(hidden[:, found.categorical], np.diff(found.start), axis=1)
        found.mean[real], found.sd[real] = own.mean[real], own.sd[real]
        found.probability[states] = own.probability[states]
    return found
