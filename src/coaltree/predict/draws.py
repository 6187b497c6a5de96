"""Draws from a posterior, each with parameters of its own, and coordinates in which its columns are independent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..inference.posterior_draws import Draw
from ..process.base import Process
from ..process.predictions import Predictions, Whitening
from .kernels.places import whiten

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]


class RealWhitening(NamedTuple):
    """A whitening of some of the real columns."""

    transform: Whitening
    real: IntArray  # which of the real columns it maps
    fill: FloatArray  # values in place of missing cells
    log_jacobian: float


class Coordinates:
    """Coordinates in which the columns of a process are independent.

    Parameters
    ----------
    process : Process
    X : ndarray of shape (n, D)
        The table as it was given.
    real : ndarray of int
        Its real columns.
    """

    def __init__(self, process: Process, X: FloatArray, real: IntArray) -> None:
        order = {column: place for place, column in enumerate(real.tolist())}
        self.whitenings = []
        for whitening in process.whitenings():
            own = X[:, whitening.columns]
            counts = np.maximum((~np.isnan(own)).sum(axis=0), 1)
            places = np.array([order[column] for column in whitening.columns.tolist()], dtype=np.intp)
            log_jacobian = float(np.linalg.slogdet(whitening.basis)[1])
            basis, origin = np.ascontiguousarray(whitening.basis), np.ascontiguousarray(whitening.origin)
            transform = whitening._replace(basis=basis, origin=origin)
            self.whitenings.append(RealWhitening(transform, places, np.nansum(own, axis=0) / counts, log_jacobian))

    def rows(self, real: FloatArray, missing: BoolArray) -> tuple[FloatArray, BoolArray, BoolArray]:
        """Return real cells in these coordinates, which of them are known, and which rows know a whitening in part."""
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

    def shown(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and variances of real columns, the last axis, given those in these coordinates."""
        if not self.whitenings:
            return mean, variance
        mean, variance = mean.copy(), variance.copy()
        for whitening, at, _, _ in self.whitenings:
            mean[..., at], variance[..., at] = (
                whitening.invert(mean[..., at]),
                whitening.column_variances(variance[..., at]),
            )
        return mean, variance

    def given(self, found: Predictions, X: FloatArray, steps: FloatArray | None = None) -> Predictions:
        """Return what rows show, given their observed cells, and what they would show in these coordinates.

        Observed cells are told as if the row had none. With `steps`, normal deviates of the shape of the mean, what is returned
        as the mean is a draw.
        """
        if not self.whitenings:
            known = found.sd < np.inf
            return found if steps is None else found._replace(mean=found.mean + np.where(known, found.sd, 0.0) * steps)
        mean, variance = self.shown(found.mean, found.sd**2)
        if steps is not None:
            mean, _ = self.shown(found.mean + np.where(found.sd < np.inf, found.sd, 0.0) * steps, variance)
        for whitening, at, fill, _ in self.whitenings:
            missing = np.isnan(X[:, whitening.columns])
            patterns, which = np.unique(missing, axis=0, return_inverse=True)
            for k, pattern in enumerate(patterns):
                rows = np.flatnonzero((which.ravel() == k) & np.all(found.sd[:, at] < np.inf, axis=1))
                if pattern.all() or not pattern.any() or not len(rows):
                    continue
                here = np.ix_(rows, at)
                cells = np.where(pattern, fill, X[np.ix_(rows, whitening.columns)])
                own, root = whitening.condition(cells, pattern, found.mean[here], found.sd[here])
                holes = np.ix_(rows, at[pattern])
                variance[holes] = (root**2).sum(axis=2)
                mean[holes] = own if steps is None else own + (root @ steps[holes][:, :, None])[:, :, 0]
        return found._replace(mean=mean, sd=np.sqrt(variance))


class Ensemble:
    """Draws that are seen together, ordered such that those with the same coordinates follow one another.

    Parameters
    ----------
    draws : sequence of Draw
    weights : ndarray of shape (n_draws,)
        Of any sum. Equal draws are taken together, those of weight 0 are left out.
    """

    def __init__(self, draws: Sequence[Draw], weights: FloatArray) -> None:
        shares: dict[tuple[int, ...], float] = {}
        distinct: dict[tuple[int, ...], Draw] = {}
        for draw, weight in zip(draws, weights, strict=True):
            key = tuple(map(id, draw))
            distinct[key] = draw
            shares[key] = shares.get(key, 0.0) + float(weight)
        # columns that are independent as they are have the same coordinates, whatever the parameters
        systems: dict[int, int] = {}
        numbers = {
            key: systems.setdefault(id(draw.process) if draw.process.whitenings() else 0, len(systems))
            for key, draw in distinct.items()
            if shares[key] > 0
        }
        kept = sorted(numbers, key=lambda key: numbers[key])
        self.draws = [distinct[key] for key in kept]
        self.systems = np.array([numbers[key] for key in kept], dtype=np.intp)
        self.weights = np.array([shares[key] for key in kept])
        self.weights /= self.weights.sum()
