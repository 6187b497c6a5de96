"""Scales of real columns: from table units to the units of a process and back, with optional power transform."""

from __future__ import annotations

import warnings
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Standardised values are clipped so that their squares are finite.
MAX_STANDARDISED = 1e150
LARGEST = float(np.finfo(np.float64).max)
_MIN_SCALE = float(np.nextafter(0.0, 1.0))
_MIN_NORMAL = float(np.finfo(np.float64).tiny)
# An exponent outside this range shows that the values are far from 1, or that all but two are equal.
_EXPONENT_RANGE = -10.0, 12.0
_MAX_POWER_BASE = 1e100  # powers of values up to this, and down to its inverse, are finite
# Largest error of a round trip, as a share of the column's range, apart from rounding.
_MAX_ROUND_TRIP_ERROR = 1e-12
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


class PowerTransform(NamedTuple):
    """The Yeo-Johnson transform of a column, extended to map all numbers one to one.

    For exponents below 0 (above 2) the transform has an upper (lower) bound. Beyond the largest (smallest) value of the fit it
    continues along its tangent, so that every prediction has a finite value and densities integrate to one.

    Parameters
    ----------
    exponent : float
        The lambda of Yeo and Johnson.
    shift, unit : float
        Values are shifted, then divided by the unit, before the transform; 0 and 1 unless that would lose digits.
    low, high : float
        Smallest and largest observed value, after shift and unit.
    """

    exponent: float
    shift: float
    unit: float
    low: float
    high: float

    @classmethod
    def fit(cls, values: FloatArray) -> Self | None:
        """Find the exponent of maximum likelihood.

        If the transform would lose digits or have an extreme exponent, the column is standardised first.

        Parameters
        ----------
        values : ndarray of shape (n,)
            NaN is missing.

        Returns
        -------
        PowerTransform or None
            None if the column has fewer than three values, or if every transform loses digits.
        """
        observed = values[~np.isnan(values)]
        if len(np.unique(observed)) < 3:
            return None
        center, scale, _ = moments(observed)
        plain = 1 / _MAX_POWER_BASE <= np.max(np.abs(observed)) <= _MAX_POWER_BASE
        for shift, unit in ((0.0, 1.0), (center, scale))[0 if plain else 1 :]:
            transform = cls._try_unit(observed, shift, unit)
            if transform is not None:
                return transform
        return None

    @classmethod
    def _try_unit(cls, observed: FloatArray, shift: float, unit: float) -> Self | None:
        from sklearn.preprocessing import PowerTransformer  # imported only if needed

        scaled = standardise(observed, shift, unit)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exponent = float(PowerTransformer(standardize=False).fit(scaled[:, None]).lambdas_[0])
            except (ValueError, ArithmeticError, RuntimeError):
                return None  # no optimum; the error depends on the version of scikit-learn
            if not _EXPONENT_RANGE[0] <= exponent <= _EXPONENT_RANGE[1]:
                return None
            transform = cls(exponent, shift, unit, float(scaled.min()), float(scaled.max()))
            transformed = transform.apply(observed)
            center, scale, varies = moments(transformed) if np.isfinite(transformed).all() else (0.0, 1.0, False)
            back = transform.invert(center + scale * standardise(transformed, center, scale))
            error = np.max(np.abs(back - observed)) if varies else np.inf
            allowed = _MAX_ROUND_TRIP_ERROR * unit * (transform.high - transform.low) + 4 * np.spacing(
                np.max(np.abs(observed))
            )
        return transform if error <= allowed else None

    def apply(self, values: FloatArray) -> FloatArray:
        """Return the transformed values; NaN stays NaN."""
        scaled = standardise(values, self.shift, self.unit)
        knot = self._knot
        with np.errstate(over="ignore"):
            transformed = _yeo_johnson(scaled, self.exponent)
            if knot is not None:
                tangent = knot.transformed + knot.slope * (scaled - knot.scaled)
                transformed = np.where(knot.is_beyond(scaled), tangent, transformed)
        return np.clip(transformed, -LARGEST, LARGEST)

    def invert(self, transformed: FloatArray) -> FloatArray:
        """Invert the transform; the values are always finite, and NaN stays NaN."""
        knot = self._knot
        with np.errstate(all="ignore"):
            from scipy.special import inv_boxcox1p

            upper = inv_boxcox1p(np.maximum(transformed, 0.0), self.exponent)
            scaled = np.where(transformed >= 0, upper, -inv_boxcox1p(np.maximum(-transformed, 0.0), 2 - self.exponent))
            if knot is not None:
                beyond = knot.sign * (transformed - knot.transformed) > 0
                scaled = np.where(beyond, knot.scaled + (transformed - knot.transformed) / knot.slope, scaled)
            scaled = np.where(np.isnan(transformed), np.nan, np.clip(scaled, -LARGEST, LARGEST))
            return np.asarray(np.clip(self.shift + self.unit * scaled, -LARGEST, LARGEST))

    def log_slope(self, values: FloatArray) -> FloatArray:
        """Return the log of the derivative at values."""
        scaled = standardise(values, self.shift, self.unit)
        if (knot := self._knot) is not None:
            scaled = np.where(knot.is_beyond(scaled), knot.scaled, scaled)
        return np.asarray(_log_slope(scaled, self.exponent) - np.log(self.unit))

    @property
    def _knot(self) -> _Knot | None:
        """The point where the tangent begins, if the transform has a bound."""
        if 0 <= self.exponent <= 2:
            return None
        scaled, sign = (self.high, 1.0) if self.exponent < 0 else (self.low, -1.0)
        at = np.array(scaled)
        return _Knot(scaled, float(_yeo_johnson(at, self.exponent)), float(np.exp(_log_slope(at, self.exponent))), sign)


class _Knot(NamedTuple):
    scaled: float
    transformed: float
    slope: float
    sign: float  # 1 if the tangent continues upwards, -1 if downwards

    def is_beyond(self, scaled: FloatArray) -> NDArray[np.bool_]:
        return np.asarray(self.sign * (scaled - self.scaled) > 0)


def _yeo_johnson(scaled: FloatArray, exponent: float) -> FloatArray:
    from scipy.special import boxcox1p  # imported only if needed

    upper = boxcox1p(np.maximum(scaled, 0.0), exponent)
    return np.asarray(np.where(scaled >= 0, upper, -boxcox1p(np.maximum(-scaled, 0.0), 2 - exponent)))


def _log_slope(scaled: FloatArray, exponent: float) -> FloatArray:
    return np.asarray((exponent - 1) * np.sign(scaled) * np.log1p(np.abs(scaled)))


class ColumnScale(NamedTuple):
    """The scale of a real column: an optional power transform, then mean and standard deviation.

    Parameters
    ----------
    center, scale : float
        Mean and standard deviation of the column, after the power transform.
    power : PowerTransform, optional
    """

    center: float
    scale: float
    power: PowerTransform | None = None

    @classmethod
    def fit(cls, values: FloatArray, standardize: bool | str = True) -> tuple[Self, bool]:
        """Return the scale of a column, and whether the column varies.

        Parameters
        ----------
        values : ndarray of shape (n,)
            NaN is missing.
        standardize : bool or "power"

        Returns
        -------
        ColumnScale, bool
        """
        center, scale, varies = moments(values)
        if not standardize:
            return cls(0.0, 1.0), varies
        power = PowerTransform.fit(values) if standardize == "power" else None
        if power is not None:
            center, scale, _ = moments(power.apply(values))
        return cls(center, scale, power), varies

    def encode(self, values: FloatArray) -> FloatArray:
        """Return values in the units of a process."""
        return standardise(values if self.power is None else self.power.apply(values), self.center, self.scale)

    def decode(self, encoded: FloatArray) -> FloatArray:
        """Return values in the units of the table. Quantiles map to quantiles; means do not map to means."""
        with np.errstate(over="ignore"):
            values = np.asarray(self.center + self.scale * encoded)
            if self.power is not None:
                return self.power.invert(values)
            overflows = np.isinf(values) & np.isfinite(encoded)
            if overflows.any():
                # The sum may be a number all the same. Beside the largest ones a code may stand for one beyond all numbers.
                halves = np.clip(self.center / 2 + self.scale / 2 * encoded, -LARGEST / 2, LARGEST / 2)
                values = np.where(overflows, 2 * halves, values)
        return values

    def decode_moments(self, mean: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of values with Gaussian codes; exact for all codes without power transform."""
        if self.power is None:
            return self.decode(mean), self._decode_sd(sd)
        has_variance = sd < np.inf
        values = self.decode(mean[..., None] + np.where(has_variance, sd, 0.0)[..., None] * _NODES)
        size = np.maximum(np.max(np.abs(values), axis=-1, keepdims=True), _MIN_NORMAL)
        shares = values / size
        middle = shares @ _WEIGHTS
        spread = np.sqrt((shares - middle[..., None]) ** 2 @ _WEIGHTS)
        with np.errstate(over="ignore"):
            size = size[..., 0]
            return middle * size, np.where(has_variance, np.minimum(spread * size, LARGEST), np.inf)

    def decode_spread(self, mean: FloatArray, sd: FloatArray) -> FloatArray:
        """Return half the length of the interval of one standard deviation to either side; infinite where it is unknown."""
        if self.power is None:
            return self._decode_sd(sd)
        known = sd < np.inf
        reach = np.where(known, sd, 0.0)
        return np.where(known, self.decode(mean + reach) / 2 - self.decode(mean - reach) / 2, np.inf)

    def _decode_sd(self, sd: FloatArray) -> FloatArray:
        """Return standard deviations in table units; those that are known stay finite, and those above 0 positive."""
        return np.where(sd < np.inf, _multiply(sd, self.scale), np.inf)

    def log_slope(self, values: FloatArray) -> FloatArray:
        """Return the log derivative of `encode`: the log density of a value minus that of its code."""
        slope = np.where(np.isnan(values), np.nan, 0.0) if self.power is None else self.power.log_slope(values)
        return np.asarray(slope - np.log(self.scale))

    def decode_deviation(self, sd: float) -> float:
        """Return a small standard deviation at the column's centre in table units; finite, and positive unless it is 0."""
        if self.power is None:
            return float(_multiply(sd, self.scale))
        slope = float(self.log_slope(self.decode(np.zeros(1)))[0])
        return float(_multiply(sd, float(np.exp(np.clip(-slope, -700.0, 700.0)))))


def _multiply(sd: FloatArray | float, unit: float) -> FloatArray:
    """Return standard deviations times a unit, moved to the nearest number above 0 where the product is none."""
    with np.errstate(over="ignore", under="ignore"):
        product = np.clip(np.multiply(sd, unit), _MIN_SCALE, LARGEST)
    return np.where(np.equal(sd, 0.0), 0.0, product)


def moments(values: FloatArray) -> tuple[float, float, bool]:
    """Return mean, standard deviation and whether values vary, without overflow."""
    observed = values[~np.isnan(values)]
    if len(observed) == 0:
        return 0.0, 1.0, False
    # Scaled by a power of two, values are below 1 without rounding, so that sums do not overflow. Subtracting the first value
    # keeps the digits in which large values differ.
    exponent = int(np.frexp(np.max(np.abs(observed)))[1])
    scaled = np.ldexp(observed, -exponent)
    shifted = scaled - scaled[0]
    mean = float(np.mean(shifted))
    center = float(np.ldexp(scaled[0] + mean, exponent))
    if np.all(observed == observed[0]):
        return center, 1.0, False
    spread = np.sqrt(np.mean((shifted - mean) ** 2))
    return center, max(float(np.ldexp(spread, exponent)), _MIN_SCALE), True


def standardise(values: FloatArray, center: float, scale: float) -> FloatArray:
    """Return values minus a centre, divided by a scale, without overflow."""
    if center == 0.0 and scale == 1.0:
        return values
    exponent = int(np.frexp(max(abs(center), scale))[1])
    # A new row may be too far out for a float in these units; it is clipped.
    with np.errstate(over="ignore"):
        scaled = (np.ldexp(values, -exponent) - np.ldexp(center, -exponent)) / np.ldexp(scale, -exponent)
    clipped: FloatArray = np.clip(scaled, -MAX_STANDARDISED, MAX_STANDARDISED)
    return clipped
