"""Every cell of a row, predicted from the other cells of the row: cells are hidden, a group at a time."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..process.predictions import CellQuantiles, Predictions
from .mixtures import LEVELS
from .predictor import Predictor

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MAX_DRAWS = 6  # trees that explanations use
MIN_SD = 0.05  # of a prediction, in standard deviations of the column: the least width of the densities that score rows
N_FOLDS = 10  # of rows that are left out together
MIN_TAIL = 1e-300  # of a category
ROUNDING = 1e-9  # shares that differ by less are equal
MAX_HIDDEN_CELLS = 1_000_000  # cells of the tables that are predicted at once


def predict_hidden(predictor: Predictor, X: FloatArray, n_groups: int, quantiles: bool = False) -> Predictions:
    """Predict every cell from the others of its row, hiding a group of cells at a time.

    Parameters
    ----------
    predictor : Predictor
    X : ndarray of shape (n_rows, n_columns)
    n_groups : int
        With as many groups as columns, each cell is hidden alone.
    quantiles : bool, default False
        Whether to find quantiles of real cells, too.
    """
    empty = predictor.cells(X[:0])
    n_real = len(empty.real)
    at = np.arange(len(X) * n_real).reshape(len(X), n_real)
    predictions = empty._replace(
        mean=np.full((len(X), n_real), np.nan),
        sd=np.full((len(X), n_real), np.inf),
        probability=np.full((len(X), int(empty.start[-1])), np.nan),
        quantiles=CellQuantiles(at, np.full((at.size, len(LEVELS)), np.nan)) if quantiles else None,
    )
    rows, columns = np.indices(X.shape)
    hidden = [(rows + columns) % n_groups == k for k in range(n_groups)]
    step = max(MAX_HIDDEN_CELLS // max(X.size, 1), 1)  # all at once is fastest, but takes memory
    for first in range(0, n_groups, step):
        part = hidden[first : first + step]
        predicted = predictor.cells(np.concatenate([np.where(mask, np.nan, X) for mask in part]), quantiles)
        for k, mask in enumerate(part):
            group = predicted.take(slice(k * len(X), (k + 1) * len(X)))
            real = mask[:, predictions.real]
            states = np.repeat(mask[:, predictions.categorical], np.diff(predictions.start), axis=1)
            predictions.mean[real], predictions.sd[real] = group.mean[real], group.sd[real]
            predictions.probability[states] = group.probability[states]
            if predictions.quantiles is not None and group.quantiles is not None:
                known = real & (group.quantiles.at >= 0)
                predictions.quantiles.values[at[known]] = group.quantiles.values[group.quantiles.at[known]]
    return predictions


def split_rows(predictor: Predictor) -> list[IntArray]:
    """Split the rows of a predictor into folds to be left out together; neighbours are in different ones."""
    order = predictor.trees[0].leaf_order
    n_folds = min(N_FOLDS, len(order))
    return [order[k::n_folds] for k in range(n_folds)]


class UnusualCells(NamedTuple):
    """A cell of each row, and predictions of all cells from the rest of the row."""

    columns: IntArray  # (rows,)
    deviations: FloatArray  # (rows,), how far it is from its prediction, as a normal deviate; 0 if no cell is observed
    predictions: Predictions


def unusual_cells(predictor: Predictor, X: FloatArray, n_cells: int) -> list[UnusualCells]:
    """Return the cell of each row that the rest of the row predicts worst, then the next one without the first, and so on.

    One wrong cell spoils the predictions of the others, unless it is hidden. Rows of the predictor are left out.
    """
    known = predictor.known_rows.find(X) if len(predictor.X) > 1 else np.full(len(X), -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without any observed cell
        spread = np.nan_to_num(np.nanstd(predictor.X, axis=0))
    found = []
    for _ in range(min(n_cells, X.shape[1])):
        predictions = _left_out_cells(predictor, X, known)
        deviations = _deviations(predictions, X, spread)
        columns = deviations.argmax(axis=1)
        found.append(UnusualCells(columns, np.take_along_axis(deviations, columns[:, None], axis=1)[:, 0], predictions))
        X = X.copy()
        X[np.arange(len(X)), columns] = np.nan
    return found


def _left_out_cells(predictor: Predictor, X: FloatArray, known: IntArray) -> Predictions:
    """Predict every cell of rows from the others of its row, with quantiles, without the fold of a known row."""
    every = predictor.ensemble.draws
    draws = [every[k] for k in np.linspace(0, len(every) - 1, min(len(every), MAX_DRAWS)).astype(int).tolist()]
    order, blocks = [], []
    for fold in [np.array([-1]), *split_rows(predictor)]:
        rows = np.flatnonzero(np.isin(known, fold))
        if len(rows):
            rest = predictor.without_rows(fold[fold >= 0], draws)
            order.append(rows)
            blocks.append(predict_hidden(rest, X[rows], X.shape[1], quantiles=True))
    if not blocks:
        return predict_hidden(predictor, X, X.shape[1], quantiles=True)
    return Predictions.stack(blocks).take(np.argsort(np.concatenate(order), kind="stable"))


def _deviations(predictions: Predictions, X: FloatArray, spread: FloatArray) -> FloatArray:
    """Return how far cells are from their predictions, as normal deviates; 0 for missing cells."""
    from scipy.special import ndtri  # slow to import, and only explanations need it

    deviations = np.zeros(X.shape)
    real = predictions.real
    gaps = np.abs(X[:, real] - predictions.mean) / np.hypot(predictions.sd, MIN_SD * spread[real])
    deviations[:, real] = np.nan_to_num(gaps, nan=0.0)
    for k, column in enumerate(predictions.categorical.tolist()):
        rows = np.flatnonzero(X[:, column] >= 0)
        shares = predictions.probability[rows, predictions.start[k] : predictions.start[k + 1]]
        own = np.take_along_axis(shares, X[rows, column].astype(np.intp)[:, None], axis=1)
        tails = np.where(shares <= own * (1 + ROUNDING), shares, 0.0).sum(axis=1)
        deviations[rows, column] = -ndtri(np.clip(tails, MIN_TAIL, 1.0) / 2)
    return deviations
