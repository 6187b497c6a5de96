"""Ensembles of posterior draws, and coordinates in which the columns of a draw are independent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..inference.posterior_draws import Draw
from ..process.base import Process
from ..process.normal_scores import NormalScores
from ..process.predictions import Predictions, Whitening
from .kernels.places import whiten

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]


class RealWhitening(NamedTuple):
    """A whitening of some of the real columns."""

    transform: Whitening
    real: IntArray  # indices of its columns among the real columns
    fill: FloatArray  # values in place of missing cells
    log_jacobian: float


class Coordinates:
    """Coordinates in which the columns of a process are independent.

    Parameters
    ----------
    process : Process
    X : ndarray of shape (n, D)
        The training table, with missing cells.
    real : ndarray of int
        Its real columns.
    scores : NormalScores, optional
        The process describes these scores in place of the columns.
    """

    def __init__(self, process: Process, X: FloatArray, real: IntArray, scores: NormalScores | None = None) -> None:
        self.scores = scores
        X = self.apply_scores(X)
        positions = {column: k for k, column in enumerate(real.tolist())}
        self.whitenings = []
        for whitening in process.whitenings():
            cells = X[:, whitening.columns]
            counts = np.maximum((~np.isnan(cells)).sum(axis=0), 1)
            at = np.array([positions[column] for column in whitening.columns.tolist()], dtype=np.intp)
            log_jacobian = float(np.linalg.slogdet(whitening.basis)[1])
            basis, origin = np.ascontiguousarray(whitening.basis), np.ascontiguousarray(whitening.origin)
            transform = whitening._replace(basis=basis, origin=origin)
            self.whitenings.append(RealWhitening(transform, at, np.nansum(cells, axis=0) / counts, log_jacobian))

    def apply_scores(self, X: FloatArray) -> FloatArray:
        """Return rows with scores in place of real cells, if the process describes scores."""
        return X if self.scores is None else self.scores.apply(X)

    def undo_scores(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and variances of real cells, given those of the scores."""
        return (mean, variance) if self.scores is None else self.scores.moments(mean, variance)

    def whiten(self, real: FloatArray, missing: BoolArray) -> tuple[FloatArray, BoolArray, BoolArray]:
        """Return real cells in these coordinates, which of them are known, and which rows lack part of a whitening.

        Cells are given as scores if the process describes scores.
        """
        white, known = real.copy(), ~missing
        partial = np.zeros(len(real), dtype=np.bool_)
        for whitening, at, fill, _ in self.whitenings:
            out = np.empty((len(real), len(at)))
            cells = np.where(missing[:, at], fill, real[:, at])
            whiten(np.ascontiguousarray(cells), whitening.basis, whitening.origin, out)
            count = missing[:, at].sum(axis=1)
            white[:, at], known[:, at] = out, (count == 0)[:, None]
            partial |= (count > 0) & (count < len(at))
        return white, known, partial

    def to_columns(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Transform means and variances from these coordinates to real columns, along the last axis."""
        return self.undo_scores(*self.undo_whitenings(mean, variance))

    def undo_whitenings(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Transform means and variances to real columns, or to their scores if the process describes scores."""
        if not self.whitenings:
            return mean, variance
        mean, variance = mean.copy(), variance.copy()
        for whitening, at, _, _ in self.whitenings:
            mean[..., at], variance[..., at] = (
                whitening.invert(mean[..., at]),
                whitening.column_variances(variance[..., at]),
            )
        return mean, variance

    def condition(self, predictions: Predictions, X: FloatArray, steps: FloatArray | None = None) -> Predictions:
        """Return predictions of real columns, with missing cells conditioned on the observed cells of their row.

        Parameters
        ----------
        predictions : Predictions
            In these coordinates.
        X : ndarray of shape (n_rows, D)
            Observed cells. Their own predictions are not conditioned on anything.
        steps : ndarray, optional
            Standard normal deviates of the shape of the mean. If given, the mean that is returned is a draw.
        """
        mean, variance = self.condition_scores(predictions, X, steps)
        if self.scores is not None and steps is not None:
            mean = self.scores.invert(mean)
        else:
            mean, variance = self.undo_scores(mean, variance)
        return predictions._replace(mean=mean, sd=np.sqrt(variance))

    def condition_scores(
        self, predictions: Predictions, X: FloatArray, steps: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return means (or draws) and variances as `condition` does, of scores if the process describes scores."""
        X = self.apply_scores(X)
        known = predictions.sd < np.inf
        values = predictions.mean if steps is None else predictions.mean + np.where(known, predictions.sd, 0.0) * steps
        mean, variance = self.undo_whitenings(values, predictions.sd**2)
        for whitening, at, fill, _ in self.whitenings:
            missing = np.isnan(X[:, whitening.columns])
            patterns, which = np.unique(missing, axis=0, return_inverse=True)
            for k, pattern in enumerate(patterns):
                rows = np.flatnonzero((which.ravel() == k) & np.all(known[:, at], axis=1))
                if pattern.all() or not pattern.any() or not len(rows):
                    continue
                block = np.ix_(rows, at)
                cells = np.where(pattern, fill, X[np.ix_(rows, whitening.columns)])
                block_mean, root = whitening.condition(cells, pattern, predictions.mean[block], predictions.sd[block])
                holes = np.ix_(rows, at[pattern])
                variance[holes] = (root**2).sum(axis=2)
                mean[holes] = block_mean if steps is None else block_mean + (root @ steps[holes][:, :, None])[:, :, 0]
        return mean, variance


class Ensemble:
    """Distinct draws with weights of sum 1, sorted such that draws with the same coordinates are adjacent.

    Parameters
    ----------
    draws : sequence of Draw
    weights : ndarray of shape (n_draws,)
        Need not sum to 1. Equal draws are combined. Draws with weight 0 are dropped.
    """

    def __init__(self, draws: Sequence[Draw], weights: FloatArray) -> None:
        shares: dict[tuple[int, ...], float] = {}
        distinct: dict[tuple[int, ...], Draw] = {}
        for draw, weight in zip(draws, weights, strict=True):
            key = tuple(map(id, draw))
            distinct[key] = draw
            shares[key] = shares.get(key, 0.0) + float(weight)
        # Without whitenings, draws with the same scores have the same coordinates, whatever their parameters.
        systems: dict[tuple[int, int], int] = {}
        numbers = {
            key: systems.setdefault(
                (id(draw.scores), id(draw.process) if draw.process.whitenings() else 0), len(systems)
            )
            for key, draw in distinct.items()
            if shares[key] > 0
        }
        keys = sorted(numbers, key=lambda key: numbers[key])
        self.draws = [distinct[key] for key in keys]
        self.systems = np.array([numbers[key] for key in keys], dtype=np.intp)
        self.weights = np.array([shares[key] for key in keys])
        self.weights /= self.weights.sum()
