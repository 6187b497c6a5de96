"""Extreme cells in predictions: they are nearer to the others there, and predictions are mapped back to the column.

One value a thousand standard deviations away would otherwise determine the scale of its column: the column would seem to follow
the tree, and a small probability of such a value would spoil the mean of every other cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ..inference.preparation import shorten_gaps
from ..process.normal_scores import Marginal
from ..process.predictions import Predictions

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


# Part of a shortened gap, beside the ordinary cells, in which values stay where they are: ends of intervals are often there.
KEPT_SHARE = 0.8
STEEP = 1.0 + 1e-9  # slope between knots above which they are the ends of a gap


@dataclass(frozen=True, eq=False)
class Tails:
    """Increasing maps that move the extreme cells of some real columns nearer to the others, see `shorten_gaps`.

    Between ordinary cells, and near them, the maps change nothing. They are linear between a few knots.

    Parameters
    ----------
    maps : dict
        The map of each real column with extreme cells.
    """

    maps: dict[int, Marginal]

    @classmethod
    def from_table(cls, real: FloatArray) -> Self | None:
        """Return the maps of a table's real columns; None if no cell is extreme."""
        shortened, levels = shorten_gaps(real)
        columns = np.flatnonzero(levels.any(axis=0)).tolist()
        if not columns:
            return None
        return cls(
            {column: _map_between(real[:, column], shortened[:, column], levels[:, column]) for column in columns}
        )

    def apply(self, X: FloatArray) -> FloatArray:
        """Return a table with extreme cells moved."""
        X = X.copy()
        for column, moved in self.maps.items():
            X[..., column] = moved.apply(X[..., column])
        return X

    def invert(self, X: FloatArray) -> FloatArray:
        """Return a table with extreme cells moved back."""
        X = X.copy()
        for column in self.maps:
            X[..., column] = self._move_back(column, X[..., column])
        return X

    def _move_back(self, column: int, cells: FloatArray) -> FloatArray:
        """Return predicted cells of a column in its units.

        There are no values in the gap below an extreme cell. Predictions there are by chance nearer to one of its ends: they
        stay as far from this end as they are.
        """
        moved = self.maps[column]
        restored = moved.invert(cells)
        is_steep = np.diff(moved.knots) > STEEP * np.diff(moved.scores)
        for k in np.flatnonzero(is_steep).tolist():
            (low, high), (low_score, high_score) = moved.knots[k : k + 2], moved.scores[k : k + 2]
            middle = (low_score + high_score) / 2
            restored = np.where((cells > low_score) & (cells < middle), low + (cells - low_score), restored)
            restored = np.where((cells >= middle) & (cells < high_score), high - (high_score - cells), restored)
        return restored

    def log_slopes(self, X: FloatArray) -> FloatArray:
        """Return the log Jacobian of the maps for each row."""
        total = np.zeros(len(X))
        for column, moved in self.maps.items():
            observed = ~np.isnan(X[:, column])
            total[observed] += moved.log_slope(X[observed, column])
        return total

    def restore(self, predictions: Predictions) -> Predictions:
        """Map means and quantiles back to the columns. Standard deviations stay those of the moved cells.

        The mean is the value at the mean of the moved cells.
        """
        mean, quantiles = predictions.mean.copy(), predictions.quantiles
        for k, column in enumerate(predictions.real.tolist()):
            if column not in self.maps:
                continue
            mean[:, k] = self._move_back(column, mean[:, k])
            if quantiles is not None:
                cells = quantiles.at[quantiles.at[:, k] >= 0, k]
                values = quantiles.values.copy()
                values[cells] = self._move_back(column, values[cells])
                quantiles = quantiles._replace(values=values)
        return predictions._replace(mean=mean, quantiles=quantiles)


def _map_between(values: FloatArray, shortened: FloatArray, levels: IntArray) -> Marginal:
    """Return the map from the cells of a column to the shortened ones, which goes on with slope 1 beyond them."""
    ends = []  # of each level: value and place of the lowest cell, and of the highest
    for level in np.unique(levels[~np.isnan(values)]).tolist():
        at = np.flatnonzero((levels == level) & ~np.isnan(values))
        low, high = at[values[at].argmin()], at[values[at].argmax()]
        ends.append((level, *((float(values[k]), float(shortened[k])) for k in (low, high))))
    knots = [ends[0][1]]
    for (_, _, left), (level, right, _) in pairwise(ends):
        near = KEPT_SHARE * (right[1] - left[1])
        inner = (left[0] + near, left[1] + near) if level > 0 else (right[0] - near, right[1] - near)
        knots += [left, inner, right]
    knots.append(ends[-1][2])
    width = knots[-1][0] - knots[0][0]
    knots = [tuple(x - width for x in knots[0]), *knots, tuple(x + width for x in knots[-1])]
    at, places = np.array(sorted(set(knots))).T  # a level may have a single cell
    return Marginal(at, places)
