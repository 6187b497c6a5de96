"""From an encoded table to a process over its columns, and back to what the process says of each by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..process.brownian import Brownian
from ..process.gaussian import Gaussian
from ..process.interface import Process
from ..process.mixed import Mixed
from ..process.multinomial import Multinomial, smoothed_shares
from ..process.ornstein_uhlenbeck import OrnsteinUhlenbeck
from ..table.encoding import EncodedTable, Encoding

FloatArray = NDArray[np.float64]

FIRST_NOISE = 0.1  # where the search for it begins
COVARIANCES = ("spherical", "diagonal", "full")
REAL_PROCESSES = ("brownian", "ornstein-uhlenbeck")


def matrix_of(encoded: EncodedTable) -> FloatArray:
    """Put the encoded columns side by side, real ones first, NaN for missing."""
    n_real, n_categorical = encoded.real.shape[1], encoded.codes.shape[1]
    if n_real + n_categorical == 0:
        # Nothing tells the rows apart: one column in which nothing was observed says just that.
        return np.full((len(encoded.codes), 1), np.nan)
    matrix = np.empty((len(encoded.codes), n_real + n_categorical))
    matrix[:, :n_real] = encoded.real
    matrix[:, n_real:] = encoded.codes
    matrix[:, n_real:][encoded.codes < 0] = np.nan
    return matrix


def first_process(
    matrix: FloatArray, encoded: EncodedTable, real_process: str, covariance: str, noise: float, fitted: bool
) -> Process:
    """Return a process for a matrix of encoded columns, as it is before anything is fitted to a tree.

    A stationary process has the columns' own means and variances. Brownian motion has variance 1 per unit of time, but
    if parameters are going to be `fitted` it begins with the columns' variances, so that units do not matter.
    """
    n_real, n_categorical = encoded.real.shape[1], encoded.codes.shape[1]
    if n_real + n_categorical == 0:
        return Brownian(1.0, noise)
    parts: list[tuple[Process, NDArray[np.intp]]] = []
    if n_real:
        real: Process = Brownian(1.0, noise)
        middle, spread = _moments(matrix[:, :n_real])
        if real_process == "ornstein-uhlenbeck":
            real = OrnsteinUhlenbeck(1.0, middle, _shaped(spread / (1 + noise), covariance), noise * (1 + noise))
        elif fitted:
            real = Brownian(_shaped(spread, covariance), noise)
        parts.append((real, np.arange(n_real)))
    if n_categorical:
        codes = matrix[:, n_real:]
        shares = [smoothed_shares(codes[:, d], states) for d, states in enumerate(encoded.n_states)]
        parts.append((Multinomial(np.ones(n_categorical), shares), np.arange(n_real, n_real + n_categorical)))
    return parts[0][0] if len(parts) == 1 else Mixed(*parts)


def _moments(real: FloatArray) -> tuple[FloatArray, FloatArray]:
    observed = ~np.isnan(real)
    counts = np.maximum(observed.sum(axis=0), 1)
    middle = np.where(observed, real, 0.0).sum(axis=0) / counts
    spread = (np.where(observed, real - middle, 0.0) ** 2).sum(axis=0) / counts
    return middle, np.where(spread > 0, spread, 1.0)


def _shaped(variances: FloatArray, covariance: str) -> FloatArray:
    if covariance == "spherical":
        return np.asarray(variances.mean())
    return np.diag(variances) if covariance == "full" else variances


def parameters_by_name(process: Process, encoded: EncodedTable, encoding: Encoding) -> dict[str, dict[str, Any]]:
    """Return the parameters of every column that takes part, by its name and in its own units.

    A real column's ``sd`` is that of the equilibrium, or for Brownian motion that of a step over one unit of time.
    """
    scales = dict(
        zip(
            (n for n, k in zip(encoding.column_names, encoding.kinds, strict=True) if k == "real"),
            encoding.scale,
            strict=True,
        )
    )
    centers = dict(zip(scales, encoding.center, strict=True))
    found: dict[str, dict[str, Any]] = {}
    parts = [part for part, _ in process.parts] if isinstance(process, Mixed) else [process]
    for part in parts:
        if isinstance(part, Gaussian):
            deviations = part.deviations(len(encoded.real_names))
            noises = np.broadcast_to(part.noise, len(encoded.real_names))
            for d, name in enumerate(encoded.real_names):
                own = deviations[d] * scales[name]
                found[name] = {
                    "process": "brownian" if isinstance(part, Brownian) else "ornstein-uhlenbeck",
                    "sd": float(own),
                    "noise_sd": float(np.sqrt(noises[d]) * own),
                }
                if isinstance(part, OrnsteinUhlenbeck):
                    mean = float(np.broadcast_to(part.mean, len(encoded.real_names))[d])
                    found[name] |= {"mean": float(centers[name] + mean * scales[name]), "rate": float(part.rate)}
        elif isinstance(part, Multinomial) and part.equilibrium is not None:
            rates, noises = (np.broadcast_to(own, len(part.equilibrium)) for own in (part.rate, part.noise))
            for d, name in enumerate(encoded.categorical_names):
                categories = encoding.categories_by_name[name]
                shares = dict(zip(categories, part.equilibrium[d].tolist(), strict=True))
                found[name] = {
                    "process": "multinomial",
                    "rate": float(rates[d]),
                    "noise": float(noises[d]),
                    "equilibrium": shares,
                }
    return found
