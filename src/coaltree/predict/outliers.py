"""How unusual rows are: how far their densities are below those of typical rows, at several widths of the densities.

A density alone rewards values that repeat and columns that are nearly functions of others: an extreme row is likely if its values
are frequent. With noise added to every cell, it does not matter any more whether values are exactly the same, and with much
noise the distance from the middle of the table counts more than what is next to the row. Rows of the fit are left out of the
trees, and missing cells are filled with what the rest of their row predicts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..inference.executors import in_threads
from .hidden_cells import split_rows
from .predictor import Predictor

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# `python benchmarks/outliers.py --widths` compares these, from one half of its tables to the other.
WIDTHS = (0.05, 0.4, 1.6)  # standard deviations of the noise that is added, in those that the process gives to a cell
LOW_SHARE = 0.1  # of the rows of the fit; their distance below the median is the unit of each width
MAX_DRAWS = 8  # trees
ROUNDING = 1e-9  # densities that differ by a smaller share are equal


class OutlierScorer:
    """Scores of rows: 0 for a typical row, -1 at the lowest tenth of the rows of the fit, and lower for more unusual rows.

    Parameters
    ----------
    predictor : Predictor
        Draws over normal scores are not used, because values that repeat have high densities there.
    widths : sequence of float, optional

    Attributes
    ----------
    scores : ndarray of shape (n_rows,)
        Of the rows of the predictor, each left out.
    """

    def __init__(self, predictor: Predictor, widths: Sequence[float] = WIDTHS) -> None:
        self._predictor = predictor
        every = [draw for draw in predictor.ensemble.draws if draw.scores is None] or predictor.ensemble.draws
        which = np.linspace(0, len(every) - 1, min(len(every), MAX_DRAWS)).astype(int).tolist()
        self._draws = [
            [every[k]._replace(process=every[k].process.with_more_noise(width**2)) for k in which] for width in widths
        ]
        self._wide = [Predictor(draws, np.ones(len(draws)), predictor.X, predictor.n_threads) for draws in self._draws]
        densities = self._leave_out()
        self._middle = np.median(densities, axis=0)
        self._unit = np.array([_unit(*column) for column in zip(densities.T, self._middle, strict=True)])
        self.scores = self._combine(densities)

    def score(self, X: FloatArray) -> FloatArray:
        """Return the scores of rows. A row with the cells of a row of the fit has the score of that row."""
        known = self._predictor.known_rows.find(X)
        old, new = np.flatnonzero(known >= 0), np.flatnonzero(known < 0)
        scores = np.empty(len(X))
        scores[old] = self.scores[known[old]]
        if len(new):
            filled = self._fill(X[new])
            scores[new] = self._combine(np.column_stack([wide.log_density(filled) for wide in self._wide]))
        return scores

    def _leave_out(self) -> FloatArray:
        """Return the densities of the rows of the fit, from the other rows: shape ``(n_rows, widths)``."""
        predictor = self._predictor
        densities = np.zeros((len(predictor.X), len(self._draws)))
        if len(densities) == 1:
            return densities
        X = self._fill(predictor.X)

        def leave_out(width: int, fold: IntArray) -> None:
            densities[fold, width] = predictor.without_rows(fold, self._draws[width]).log_density(X[fold])

        tasks = ((width, fold) for width in range(len(self._draws)) for fold in split_rows(predictor))
        for _ in in_threads(predictor.n_threads, leave_out, tasks):
            pass
        return densities

    def _combine(self, densities: FloatArray) -> FloatArray:
        """Return the mean over the widths of the distances from the median."""
        return np.asarray(((densities - self._middle) / self._unit).mean(axis=1))

    def _fill(self, X: FloatArray) -> FloatArray:
        """Fill missing and partly known cells with their means and most probable states, given the rest of their rows."""
        predictor, filled = self._predictor, X.copy()
        states = predictor.cells(X[:0])
        open_cells = np.isnan(X)
        open_cells[:, states.categorical] |= X[:, states.categorical] < 0
        rows = np.flatnonzero(open_cells.any(axis=1))
        if not len(rows):
            return filled
        cells = predictor.training_cells(rows) if X is predictor.X else predictor.subsample.cells(X[rows])
        expected = np.empty((len(rows), X.shape[1]))
        expected[:, cells.real] = cells.mean
        for k, column in enumerate(cells.categorical.tolist()):
            expected[:, column] = cells.probability[:, cells.start[k] : cells.start[k + 1]].argmax(axis=1)
        filled[rows] = np.where(open_cells[rows], expected, X[rows])
        return filled


def _unit(densities: FloatArray, middle: float) -> float:
    """Return the distance from the median to the lowest tenth, or to the median of lower ones if most rows are equal."""
    rounding = ROUNDING * max(1.0, float(np.abs(densities).max()))
    lower = densities[densities < middle - rounding]
    if not len(lower):
        return math.inf  # every row is typical
    return middle - min(float(np.quantile(densities, LOW_SHARE)), float(np.median(lower)))


def find_limit(share: float) -> float:
    """Return the score that a share of typical rows is below, if scores have an exponential tail.

    The median is 0, and the lowest tenth begins at -1.

    Examples
    --------
    >>> find_limit(0.5) == 0, round(find_limit(0.1), 6), find_limit(0.01) < -2
    (True, -1.0, True)
    """
    return math.log(2 * share) / math.log(0.5 / LOW_SHARE)
