"""Calibration of prediction intervals: how far the quantiles of a column must move for intervals to cover what they promise.

A mixture of calibrated distributions that disagree is too wide, and short chains make distributions too narrow. So more cells of
the table are hidden, predicted, and compared with what they were. If the levels of the hidden cells in their distributions
follow a symmetric beta distribution, moving the quantiles by it makes the levels uniform, eq. (9.10).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..process.predictions import CellQuantiles
from .mixtures import DEVIATES, LEVELS

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

HIDDEN_SHARE = 0.07  # of the observed real cells
MIN_HIDDEN = 30  # cells, to calibrate at all
# A value that more than this share of a column's cells have is inside nearly all intervals, however long these are. Its cells get
# random digits, as draws of the column do.
MAX_TIED_SHARE = 0.1
LEVEL_WEIGHT = 0.5  # of a level in the likelihood, because levels of the same row or column depend on each other
# The logarithms of the columns' concentrations are Gaussian around a shared one, whose prior is Gaussian around 0. Columns differ
# as much as the table suggests.
LOG_CONCENTRATIONS = np.linspace(-1.2, 2.4, 73)
MEAN_SD = 0.2
SPREADS = np.geomspace(0.03, 2.0, 7)
SPREAD_MIDDLE, LOG_SPREAD_SD = 0.1, 1.0


def hide_cells(X: FloatArray, n_real: int, rng: np.random.Generator) -> BoolArray:
    """Choose observed real cells of a table, which come first, to be hidden. A row keeps a cell, and a column two values."""
    shown = ~np.isnan(X)
    hidden = shown & (rng.random(X.shape) < HIDDEN_SHARE)
    hidden[:, n_real:] = False
    for row in np.flatnonzero(shown.any(axis=1) & ~(shown & ~hidden).any(axis=1)):
        hidden[row, rng.choice(np.flatnonzero(hidden[row]))] = False
    for d in range(n_real):
        rest = X[shown[:, d] & ~hidden[:, d], d]
        if not len(rest) or rest.min() == rest.max():
            hidden[:, d] = False
    return hidden


def spread_ties(X: FloatArray, jittered: FloatArray, n_real: int) -> FloatArray:
    """Return a table whose most frequent real values have the random digits of the other table."""
    X = X.copy()
    for d in range(n_real):
        column = X[:, d]
        _values, which, counts = np.unique(column[~np.isnan(column)], return_inverse=True, return_counts=True)
        frequent = np.flatnonzero(~np.isnan(column))[counts[which] > MAX_TIED_SHARE * counts.sum()]
        X[frequent, d] = jittered[frequent, d]
    return X


def find_levels(values: FloatArray, quantiles: FloatArray) -> FloatArray:
    """Return the level of each value in its distribution, between the outermost levels whose quantiles are known.

    Parameters
    ----------
    values : ndarray of shape (n,)
    quantiles : ndarray of shape (n, levels)
    """
    from scipy.special import ndtr  # slow to import, and only intervals need it

    k = np.clip((quantiles <= values[:, None]).sum(axis=1) - 1, 0, len(LEVELS) - 2)
    rows = np.arange(len(values))
    left, right = quantiles[rows, k], quantiles[rows, k + 1]
    width = right - left
    share = np.clip((values - left) / np.where(width > 0, width, 1.0), 0.0, 1.0)
    share = np.where(width > 0, share, 0.5)
    return np.asarray(ndtr(DEVIATES[k] + share * (DEVIATES[k + 1] - DEVIATES[k])))


def levels_by_column(X: FloatArray, hidden: BoolArray, quantiles: CellQuantiles, real: IntArray) -> list[FloatArray]:
    """Return the levels of the hidden cells of each real column, given the quantiles of the cells of the same rows."""
    columns = []
    for k, column in enumerate(real.tolist()):
        rows = np.flatnonzero(hidden[:, column] & (quantiles.at[:, k] >= 0))
        columns.append(find_levels(X[rows, column], quantiles.values[quantiles.at[rows, k]]))
    return columns


def fit_concentrations(columns: list[FloatArray]) -> FloatArray:
    """Return the concentration of each column's levels: above 1 if its intervals are too wide, below 1 if too narrow.

    Parameters
    ----------
    columns : list of ndarray
        The levels of the hidden cells of each column.
    """
    from scipy.special import betaln, logsumexp  # slow to import, and only intervals need it

    concentrations = np.exp(LOG_CONCENTRATIONS)
    logs = np.array([np.log(levels).sum() + np.log1p(-levels).sum() for levels in columns])
    counts = np.array([len(levels) for levels in columns])
    likelihood = (concentrations - 1) * logs[:, None] - betaln(concentrations, concentrations) * counts[:, None]
    likelihood *= LEVEL_WEIGHT
    best, means = -math.inf, LOG_CONCENTRATIONS
    for spread in SPREADS.tolist():
        prior = -0.5 * ((LOG_CONCENTRATIONS[:, None] - LOG_CONCENTRATIONS) / spread) ** 2
        prior -= logsumexp(prior, axis=1, keepdims=True)
        joint = likelihood[:, None] + prior  # (columns, shared concentrations, concentrations)
        evidence = logsumexp(joint, axis=2)
        total = evidence.sum(axis=0) - 0.5 * (LOG_CONCENTRATIONS / MEAN_SD) ** 2
        total -= 0.5 * (math.log(spread / SPREAD_MIDDLE) / LOG_SPREAD_SD) ** 2
        k = int(total.argmax())
        if total[k] > best:
            best = float(total[k])
            means = np.exp(joint[:, k] - evidence[:, k, None]) @ LOG_CONCENTRATIONS
    return np.exp(means)


def calibrated_deviate(deviate: float, concentration: float) -> float:
    """Return the Gaussian quantile at the level at which the beta distribution has the level of another one: eq. (9.10)."""
    if concentration == 1.0 or deviate == 0.0:
        return deviate
    from scipy.special import betaincinv, ndtr, ndtri  # slow to import, and only intervals need it

    lower = float(ndtri(betaincinv(concentration, concentration, ndtr(-abs(deviate)))))
    return math.copysign(lower, deviate)
