"""Rows taken off a tree: how likely the others make them, and what they expect in each of their cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..process.interface import Process
from ..process.predictions import Predictions
from ..questions.held_out import takes_holes
from ..questions.predictor import Predictor
from ..tree.pruning import without_leaves
from ..tree.tree import Tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

FEWEST_ROWS, MOST_ROWS = 100, 500
ROWS_TIMES_LEAVES = 1_000_000  # of a large tree fewer rows are looked at
ALL_LEAVES = 50_000  # of all the trees that rows are taken off
MOST_HIDDEN = 8  # times that cells of a row are hidden; in a wide table several at a time


class OffTree(NamedTuple):
    """What a tree says of rows that were taken off it."""

    rows: IntArray
    at_once: int  # rows that were taken off together
    hidden_at_once: int  # cells of a row that were hidden together; 0 if none was
    log_density: FloatArray  # (rows,), of the encoded cells
    cells: Predictions  # of each cell, given others of its row


def take_off(tree: Tree, X: FloatArray, process: Process, n_jobs: int | None = None) -> OffTree:
    """Take rows off a tree, some at a time, and ask it about them.

    All rows of a table of up to 500; of a larger one some, evenly along the leaves as they are drawn.

    Parameters
    ----------
    tree : Tree
        Of at least two leaves.
    X : ndarray of shape (n_leaves, n_columns)
    process : Process
    n_jobs : int, optional
        Threads.

    Returns
    -------
    OffTree
    """
    n, n_columns = X.shape
    n_rows = min(n, int(np.clip(ROWS_TIMES_LEAVES // n, FEWEST_ROWS, MOST_ROWS)))
    chosen = tree.leaf_order[np.linspace(0, n - 1, n_rows).round().astype(np.intp)]
    n_parts = int(np.clip(ALL_LEAVES // n, 1, n_rows))
    n_groups = min(n_columns, MOST_HIDDEN) if takes_holes(process) else 0
    parts = [chosen[k::n_parts] for k in range(n_parts)]  # neighbours are in different ones
    densities: list[FloatArray] = []
    cells: list[Predictions] = []
    for rows in parts:
        rest = Predictor([without_leaves(tree, rows)], np.ones(1), np.delete(X, rows, axis=0), process, n_jobs)
        densities.append(rest.log_density(X[rows]))
        cells.append(_expected(rest, X[rows], n_groups))
    rows = np.concatenate(parts)
    order = np.argsort(rows)
    return OffTree(
        rows[order],
        len(parts[0]),
        -(-n_columns // n_groups) if n_groups else 0,
        np.concatenate(densities)[order],
        Predictions.stacked(cells).take(order),
    )


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
