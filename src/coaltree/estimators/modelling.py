"""From an encoded table to a process over its columns, and back to what the process says of each by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..inference.posterior_draws import Draw
from ..process.base import Process
from ..process.brownian import Brownian
from ..process.gaussian import Gaussian
from ..process.gaussian_calibration import column_moments
from ..process.mixed import Mixed
from ..process.multinomial import Multinomial, smoothed_shares
from ..process.ornstein_uhlenbeck import OrnsteinUhlenbeck
from ..table.encoding import EncodedTable, Encoding

FloatArray = NDArray[np.float64]

FIRST_SITE_RATE, FIRST_SITE_NOISE = 0.5, 0.4  # of categorical columns, where draws begin
# The process that trees and clusters are found with. Nothing of it is fitted: parameters that predict best see too little noise
# for clusters. `python benchmarks/clusters.py --defaults` tries others: what is best on one half of its tables is no better than
# these on the other.
RATE, NOISE = 0.5, 0.5  # of real columns: how fast the past is forgotten, and the share of the variance that is noise
SITE_RATE, SITE_NOISE = 1.0, 0.2  # of categorical columns
RESOLUTION = 0.18  # correlation, noise aside, of rows that are in one cluster, where no gap is clear
MOST_CORRELATED = (
    100  # real columns that have covariance matrices in predictions: the work grows as the cube of their number
)
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


def height_of(resolution: float) -> float:
    """Return the height below which rows merge whose correlation, noise aside, is at least so much, eq. (4.1)."""
    return -math.log(resolution) / (2 * RATE) if resolution > 0 else math.inf


def check_resolution(resolution: object) -> None:
    """Raise unless it is a resolution."""
    number = isinstance(resolution, (int, float, np.integer, np.floating)) and not isinstance(resolution, bool)
    if resolution is not None and not (number and 0 <= resolution <= 1):  # type: ignore[operator]
        raise InputError(
            f"resolution is {resolution!r}; it must be None, or a number from 0, for one cluster, to 1, for the finest ones."
        )


def encoded_of(encoding: Encoding, matrix: FloatArray) -> EncodedTable:
    """Return the encoded table that a matrix was made of by `matrix_of`."""
    used = [
        [
            name
            for name, own, informative in zip(encoding.column_names, encoding.kinds, encoding.informative, strict=True)
            if own == kind and informative
        ]
        for kind in ("real", "categorical")
    ]
    n_real, n_categorical = len(used[0]), len(used[1])
    codes = matrix[:, n_real : n_real + n_categorical]
    return EncodedTable(
        matrix[:, :n_real],
        np.where(np.isnan(codes), -1, codes).astype(np.intp),
        tuple(used[0]),
        tuple(used[1]),
        tuple(len(encoding.categories_by_name[name]) for name in used[1]),
    )


def structure_process(
    matrix: FloatArray, encoded: EncodedTable, real_process: str, covariance: str | None, noise: float | None
) -> Process:
    """Return the process that trees and clusters are found with: every column has its own variance, part of it noise.

    Brownian motion has the variance that makes rows differ as under the stationary process where they are close.
    """
    share = NOISE if noise is None else noise
    own = share / (1 - share)
    covariance = (
        "diagonal" if covariance == "full" else covariance
    )  # nothing is fitted that would make columns correlate
    states = 0.0 if noise == 0 else SITE_NOISE

    def real(middle: FloatArray, spread: FloatArray) -> Process:
        rest = (1 - share) * spread
        if real_process == "brownian":
            return Brownian(_shaped(2 * RATE * rest, covariance), own / (2 * RATE))
        return OrnsteinUhlenbeck(RATE, middle, _shaped(rest, covariance), own)

    return _process_of(matrix, encoded, real, SITE_RATE, states)


def prediction_process(
    matrix: FloatArray, encoded: EncodedTable, real_process: str, covariance: str | None, noise: float | None
) -> Process:
    """Return the process from which draws for predictions begin, with parameters for each column.

    Up to `MOST_CORRELATED` stationary real columns have a covariance matrix of their diffusion and another of their noise.
    """
    correlated = covariance in (None, "full") and encoded.real.shape[1] <= MOST_CORRELATED and noise is None
    shape = None if covariance == "full" else covariance
    share = NOISE if noise is None else noise
    ratio = share / (1 - share)

    def real(middle: FloatArray, spread: FloatArray) -> Process:
        rest = (1 - share) * spread
        if real_process == "brownian":
            return Brownian(
                _shaped(2 * RATE * rest, None if covariance == "full" else covariance), share / (1 - share) / (2 * RATE)
            )
        if correlated:
            return OrnsteinUhlenbeck(RATE, middle, np.diag(rest), np.diag(share * spread))
        return OrnsteinUhlenbeck(RATE, middle, _shaped(rest, shape), ratio)

    # noise that is given is held, that of categorical columns with it: then it is that of the tree
    states = FIRST_SITE_NOISE if noise is None else SITE_NOISE if noise else 0.0
    return _process_of(matrix, encoded, real, FIRST_SITE_RATE, np.full(encoded.codes.shape[1], states))


def sampling_process(
    matrix: FloatArray, encoded: EncodedTable, real_process: str, covariance: str | None, noise: float | None
) -> Process:
    """Return the process from which Markov chains begin that draw parameters: that of predictions, without matrices.

    A summary of the chains is one tree over all rows, whose messages under a matrix would need a table without holes.
    """
    covariance = "diagonal" if covariance in (None, "full") else covariance
    return prediction_process(matrix, encoded, real_process, covariance, noise)


def _process_of(
    matrix: FloatArray,
    encoded: EncodedTable,
    real: Callable[[FloatArray, FloatArray], Process],
    site_rate: float,
    site_noise: float | FloatArray,
) -> Process:
    """Return a process for all columns: real ones by their means and variances, and categorical ones."""
    n_real, n_categorical = encoded.real.shape[1], encoded.codes.shape[1]
    if n_real + n_categorical == 0:
        return real(np.zeros(1), np.ones(1))
    parts: list[tuple[Process, NDArray[np.intp]]] = []
    if n_real:
        parts.append((real(*column_moments(matrix[:, :n_real])), np.arange(n_real)))
    if n_categorical:
        codes = matrix[:, n_real:]
        shares = [smoothed_shares(codes[:, d], states) for d, states in enumerate(encoded.n_states)]
        sites = Multinomial(np.full(n_categorical, site_rate), shares, site_noise)
        parts.append((sites, np.arange(n_real, n_real + n_categorical)))
    return parts[0][0] if len(parts) == 1 else Mixed(*parts)


def _shaped(variances: FloatArray, covariance: str | None) -> FloatArray:
    if covariance == "spherical":
        return np.asarray(variances.mean())
    return np.diag(variances) if covariance == "full" else variances


def column_signals(draws: Sequence[Draw], n_columns: int) -> FloatArray:
    """Return how much each column owes to descent, in each draw; shape ``(draws, n_columns)``.

    It is the correlation, over rows, of a cell with the same cell of the row's nearest relative: Pagel's lambda, or one minus the
    noise of a categorical column for either of the two, times what is left of a state on the way.
    """
    signals = np.empty((len(draws), n_columns))
    for k, draw in enumerate(draws):
        tree, process = draw.tree, draw.process
        way = 2 * tree.heights[tree.parents[: tree.n_leaves]]
        parts = process.parts if isinstance(process, Mixed) else ((process, tuple(range(n_columns))),)
        for part, columns in parts:
            if isinstance(part, Multinomial):
                rates, noises = (np.broadcast_to(own, len(columns)) for own in (part.rate, part.noise))
                left = np.exp(-rates[:, None] * way).mean(axis=1)
                signals[k, columns] = (1 - noises) ** 2 * left
                continue
            assert isinstance(part, Gaussian)
            own, noise = part.deviations(len(columns)) ** 2, part.noise_deviations(len(columns)) ** 2
            if isinstance(part, OrnsteinUhlenbeck):
                signals[k, columns] = own / (own + noise) * np.exp(-part.rate * way).mean()
            else:  # of the variance between rows that merge at the root
                top = tree.heights[-1]
                signals[k, columns] = (own * (top - 0.5 * way.mean())) / (own * top + noise)
    return signals


def parameters_by_name(process: Process, encoded: EncodedTable, encoding: Encoding) -> dict[str, dict[str, Any]]:
    """Return the parameters of every column that takes part, by its name and in its own units.

    A real column's ``sd`` is that of the equilibrium, or for Brownian motion that of a step over one unit of time. Of a column
    that was transformed by a power, whose exponent is ``power``, the mean is brought back, and standard deviations are told by
    how steep the transform is in the middle.
    """
    real = (n for n, k in zip(encoding.column_names, encoding.kinds, strict=True) if k == "real")
    scales = dict(zip(real, encoding.column_scales, strict=True))
    found: dict[str, dict[str, Any]] = {}
    parts = [part for part, _ in process.parts] if isinstance(process, Mixed) else [process]
    for part in parts:
        if isinstance(part, Gaussian):
            deviations = part.deviations(len(encoded.real_names))
            noises = part.noise_deviations(len(encoded.real_names))
            for d, name in enumerate(encoded.real_names):
                scale = scales[name]
                own = deviations[d] * scale.unit_at(0.0)
                found[name] = {
                    "process": "brownian" if isinstance(part, Brownian) else "ornstein-uhlenbeck",
                    "sd": float(own),
                    "noise_sd": float(noises[d] * scale.unit_at(0.0)),
                }
                if isinstance(part, OrnsteinUhlenbeck):
                    mean = float(np.broadcast_to(part.mean, len(encoded.real_names))[d])
                    found[name] |= {"mean": float(scale.decode(np.array(mean))), "rate": float(part.rate)}
                if scale.power is not None:
                    found[name]["power"] = scale.power.exponent
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
