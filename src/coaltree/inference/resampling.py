"""Resampling: how many copies each particle gets, `n` in all and in proportion to the weights on average."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

SCHEMES = ("systematic", "stratified", "residual", "multinomial")


def copies(scheme: str, weights: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw the number of copies of each particle.

    Parameters
    ----------
    scheme : {"systematic", "stratified", "residual", "multinomial"}
        One uniform number for all, one for each of n equal strata, whole parts first and chance for the rest, or chance alone.
    weights : ndarray of shape (n,)
        Non-negative, with sum 1.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int, shape (n,)
        With sum n; the expectation of entry i is ``n weights[i]``.
    """
    n = len(weights)
    if scheme == "multinomial":
        return rng.multinomial(n, weights).astype(np.intp)
    if scheme == "residual":
        whole = np.floor(n * weights).astype(np.intp)
        left = n - int(whole.sum())
        if left <= 0:
            return whole
        rest = n * weights - whole
        return whole + rng.multinomial(left, rest / rest.sum())
    offsets = rng.random() if scheme == "systematic" else rng.random(n)
    places = (np.arange(n) + offsets) / n
    ends = np.cumsum(weights)
    ends[-1] = 1.0  # rounding must not leave a place beyond the last end
    return np.bincount(np.searchsorted(ends, places, side="right"), minlength=n).astype(np.intp)


def moves(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Return which particles are copied where, those with a copy staying in place: sources and targets."""
    return np.repeat(np.arange(len(counts)), np.maximum(counts - 1, 0)), np.flatnonzero(counts == 0)
