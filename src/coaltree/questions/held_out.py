"""How well trees predict rows that they were not built from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .predictor import Predictor

FloatArray = NDArray[np.float64]

COLUMN_GROUPS = 5


def cell_log_scores(predictor: Predictor, X: FloatArray) -> FloatArray:
    """Return for each row how well its cells are predicted: the log density of some given all others, over all groups of cells.

    Every cell is in one of a few groups; neighbouring rows and columns are in different ones.
    """
    rows, columns = np.indices(X.shape)
    count = min(COLUMN_GROUPS, X.shape[1])
    whole = predictor.log_density(X)
    scores = np.zeros(len(X))
    for group in range(count):
        scores += whole - predictor.log_density(np.where((rows + columns) % count == group, np.nan, X))
    return scores
