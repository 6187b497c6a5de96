"""Gaussian columns: the messages of leaves that diffuse, and checks of variances and noises."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import quote
from ..errors import InputError
from .layout import GaussianColumns

FloatArray = NDArray[np.float64]

RELATIVE_DEVIATION = 1e-10  # of noise that is always there, as a share of the data's own: see `least_noise`
MIN_VALUE, MAX_VALUE = 1e-60, 1e60  # within which products of a few squares fit into double precision
MIN_NOISE, MAX_NOISE = 1e-100, 1e100
ASYMMETRY = 1e-8  # of a covariance matrix, in units of the standard deviations: more cannot come from rounding


def diffusion_columns(white: FloatArray, log_scales: FloatArray, noise: FloatArray) -> GaussianColumns:
    """Declare columns that diffuse by Brownian motion.

    Parameters
    ----------
    white : ndarray of shape (n, D)
        The rows, in units of the diffusion; NaN is a missing cell.
    log_scales : ndarray of shape (D,)
        Logarithms of the units.
    noise : ndarray of shape () or (D,)
        Variance of the noise in units of the diffusion, one number or one for each column.
    """
    observed = ~np.isnan(white)
    complete = bool(observed.all())
    counts = np.maximum(observed.sum(axis=0), 1)
    means = np.where(observed, white, 0.0).sum(axis=0) / counts
    centred = np.where(observed, white - means, 0.0)  # nothing depends on the origin, and differences are exact
    check_size(centred)
    spread = (centred**2).sum(axis=0) / counts
    scale = float(spread[observed.any(axis=0)].mean()) if observed.any() else 0.0
    scale = scale if scale > 0 else 1.0
    shared = complete and bool(np.all(noise == noise.flat[0]))
    if shared:
        v = np.full((len(white), 1), np.maximum(noise.flat[0], least_noise(scale)))
    else:
        v = np.where(observed, np.maximum(noise, least_noise(np.where(spread > 0, spread, scale))), np.inf)
    return GaussianColumns(centred, v, shared, bool(np.any(noise > 0)), 0.0, log_scales, scale, means)


def column_deviations(variance: FloatArray, n_columns: int) -> FloatArray:
    """Return the standard deviation of each column, given one variance, one a column, or a covariance matrix."""
    if variance.ndim == 2:
        return np.sqrt(np.diag(variance))
    return np.sqrt(np.broadcast_to(variance, n_columns))


def least_noise(variance: ArrayLike) -> FloatArray:
    """Return a noise that keeps the density of identical rows finite and is too small to affect any other row.

    Its standard deviation is 1e-10 of the data's, and less where the data are so far apart that heights grow as their distance,
    not as its square.
    """
    variance = np.asarray(variance, dtype=np.float64)
    least: FloatArray = np.minimum(RELATIVE_DEVIATION**2 * variance, 1e-16 * np.sqrt(variance))
    return least


def check_size(centred: FloatArray) -> None:
    """Raise for columns so wide or so narrow that squares overflow or underflow."""
    largest = np.abs(centred).max(axis=0)
    wrong = (largest >= MAX_VALUE) | ((largest > 0) & (largest <= MIN_VALUE))
    if np.any(wrong):
        column = int(np.argmax(wrong))
        raise InputError(
            f"The values of column {column} lie {largest[column]:g} standard deviations of the diffusion from their mean; it "
            f"must be between {MIN_VALUE:g} and {MAX_VALUE:g}: rescale the column or its variance."
        )


def check_noise(noise: ArrayLike) -> FloatArray:
    """Return the noise of a Gaussian process as a read-only array: one number, one a column, or a covariance matrix."""
    try:
        text = np.asarray(noise).dtype.kind in "SUb"  # which numpy would read as numbers where it can
        checked = np.array(np.nan if text else noise, dtype=np.float64)
    except (TypeError, ValueError):
        checked = np.array(np.nan)
    if checked.ndim == 2 and checked.size:
        checked = check_covariance(checked, "noise")
        checked.setflags(write=False)
        return checked
    allowed = (checked == 0) | ((checked >= MIN_NOISE) & (checked <= MAX_NOISE))
    if checked.ndim > 1 or checked.size == 0 or not np.all(allowed):
        raise InputError(
            f"noise is {quote(noise)}; it must be 0 or a number from {MIN_NOISE:g} to {MAX_NOISE:g}, the variance of the "
            "noise in units of the diffusion: one for all columns, or one a column. With a covariance matrix of the diffusion it "
            "may be a covariance matrix too, in the columns' own units."
        )
    checked.setflags(write=False)
    return checked


def check_variance(variance: ArrayLike) -> FloatArray:
    """Return the variance of a Gaussian process as a read-only array: one number, one a column, or a covariance matrix."""
    try:
        array = np.array(variance, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"variance is {quote(variance)}; it must be one number, (D,) or (D, D).") from None
    if array.ndim > 2 or (array.ndim == 2 and array.shape[0] != array.shape[1]) or array.size == 0:
        raise InputError(f"variance has shape {array.shape}; it must be one number, (D,) or (D, D).")
    if not np.all(np.isfinite(array)):
        raise InputError("variance holds numbers that are not finite; variances must be finite and positive.")
    if array.ndim < 2:
        if np.any(array <= 0):
            raise InputError(f"variance holds {array.min():g}; variances must be positive.")
    else:
        array = check_covariance(array, "variance")
    array.setflags(write=False)
    return array


def check_covariance(array: FloatArray, name: str) -> FloatArray:
    """Return a covariance matrix, made exactly symmetric: a computed one may differ by rounding."""
    if array.shape[0] != array.shape[1] or not np.all(np.isfinite(array)):
        raise InputError(f"{name} has shape {array.shape}; a covariance matrix must be square and finite.")
    deviations = np.sqrt(np.abs(np.diag(array)))
    if np.any(np.abs(array - array.T) > ASYMMETRY * np.outer(deviations, deviations)):
        raise InputError(f"{name} is a matrix that is not symmetric; a covariance matrix must be.")
    array = 0.5 * (array + array.T)
    try:
        np.linalg.cholesky(array)
    except np.linalg.LinAlgError:
        raise InputError(f"{name} is a matrix that is not positive definite; a covariance matrix must be.") from None
    return array


def scale_coordinates(points: FloatArray, variance: float) -> NDArray[np.float32]:
    """Return points in single precision whose squared distances are exponents of a Gaussian with this variance."""
    largest = float(np.nanmax(np.abs(points), initial=0.0))
    scale = math.sqrt(2 * variance) if variance > 0 else 0.0
    return (points / max(scale, 1e-12 * largest, 1e-300)).astype(np.float32)
