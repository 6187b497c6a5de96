"""The scales that a process is measured on: its clock, and how much of the table's variance is noise."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .brownian import Brownian
from .evidence import Noise
from .gaussian import Gaussian
from .gaussian_calibration import GaussianPrior
from .interface import Process
from .mixed import Mixed
from .multinomial import Multinomial
from .ornstein_uhlenbeck import OrnsteinUhlenbeck

FloatArray = NDArray[np.float64]
AnyGaussian = TypeVar("AnyGaussian", bound=Gaussian)


def slowed(process: Process, factor: float) -> Process:
    """Return the process by another clock: on trees `factor` times as high it says what it said before."""
    if isinstance(process, Mixed):
        return Mixed(*((slowed(part, factor), columns) for part, columns in process.parts))
    if isinstance(process, Brownian):
        return Brownian(process.variance / factor, process.noise * factor)
    if isinstance(process, OrnsteinUhlenbeck):
        return OrnsteinUhlenbeck(process.rate / factor, process.mean, process.variance, process.noise)
    if isinstance(process, Multinomial):
        return Multinomial(process.rate / factor, process.equilibrium, process.noise)
    raise InputError(f"{process!r} has no clock that can be set; only coaltree's own processes have.")


def noise_share(process: Process, X: FloatArray) -> float:
    """Return the variance of the noise as a share of the table's, of the first part with real columns; 0 if there is none."""
    if isinstance(process, Mixed):
        shares = (noise_share(part, X[:, columns]) for part, columns in process.parts if isinstance(part, Gaussian))
        return next(shares, 0.0)
    if not isinstance(process, Gaussian):
        return 0.0
    prior = GaussianPrior.of(X, "held")
    if process.noise.ndim:
        return float(np.mean(process.noise * process.deviations(X.shape[1]) ** 2 / prior.spread))
    return float(process.noise) * _mean_share(process, prior)


def rounding_share(X: FloatArray) -> float:
    """Return the share of real columns' variance that rounding gave them, on average."""
    prior = GaussianPrior.of(X, "tried")
    return float(np.mean(prior.rounding / prior.spread))


def with_noise_share(process: Process, share: float, X: FloatArray, noise: Noise) -> Process:
    """Return the process with another share of noise in all real columns, in each at least that of rounding unless held."""
    if isinstance(process, Mixed):
        return Mixed(*((with_noise_share(part, share, X[:, own], noise), own) for part, own in process.parts))
    if not isinstance(process, Gaussian):
        return process
    prior = GaussianPrior.of(X, noise)
    ratio = share / _mean_share(process, prior)
    variance = process.variance
    if ratio > 0:
        least = prior.least_variance(ratio)
        if variance.ndim == 2:
            variance = variance + np.diag(np.maximum(least - np.diag(variance), 0.0))
        else:
            variance = np.maximum(variance, least if variance.ndim else least.mean())
    if isinstance(process, OrnsteinUhlenbeck):
        return OrnsteinUhlenbeck(process.rate, process.mean, variance, ratio)
    return Brownian(variance, ratio)


def _mean_share(process: Gaussian, prior: GaussianPrior) -> float:
    """Return the process's variance in units of the table's."""
    if process.variance.ndim == 0:
        return float(process.variance / prior.spread.mean())
    own = process.variance if process.variance.ndim == 1 else np.diag(process.variance)
    return float(np.mean(own / prior.spread))
