"""How the numbers of a real column become those that a process sees, and back."""

from __future__ import annotations

import warnings
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Standardised values are kept where their squares still are finite.
LARGEST_STANDARDISED = 1e150
LARGEST = float(np.finfo(np.float64).max)
_SMALLEST_SCALE = float(np.nextafter(0.0, 1.0))
_SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)
# Exponents beyond these are no shape that a column has, but a sign that its values are far from 1, or all but two are equal.
_EXPONENTS = -10.0, 12.0
_TAME = 1e100  # values up to this, and down to its inverse, have powers that are finite
# Of the column's range: what may be lost on the way there and back, rounding aside.
_LOST = 1e-12
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


class PowerTransform(NamedTuple):
    """The Yeo-Johnson transform of a column, made to take and to give every number.

    For exponents below 0 (above 2) the transform has an upper (lower) bound, and no value is what lies beyond. Beyond the largest
    (smallest) value of the fit it goes on along its tangent there. It is then one to one between all numbers, so that whatever is
    predicted has a finite value, and densities integrate to one.

    Parameters
    ----------
    exponent : float
        The lambda of Yeo and Johnson.
    shift, unit : float
        What is taken off first, and what is then divided by: 0 and 1, but for columns that are transformed with loss as they are.
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

        A column whose values are so large, so small or so far from 0 that the transform loses digits or has an extreme exponent
        is brought to mean 0 and standard deviation 1 first.

        Parameters
        ----------
        values : ndarray of shape (n,)
            NaN is missing.

        Returns
        -------
        PowerTransform or None
            None where any transform says the same, as of two values, or loses digits.
        """
        observed = values[~np.isnan(values)]
        if len(np.unique(observed)) < 3:
            return None
        center, scale, _ = moments(observed)
        plain = 1 / _TAME <= np.max(np.abs(observed)) <= _TAME
        for shift, unit in ((0.0, 1.0), (center, scale))[0 if plain else 1 :]:
            found = cls._of(observed, shift, unit)
            if found is not None:
                return found
        return None

    @classmethod
    def _of(cls, observed: FloatArray, shift: float, unit: float) -> Self | None:
        from sklearn.preprocessing import PowerTransformer  # only for those who ask for it

        own = standardised(observed, shift, unit)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exponent = float(PowerTransformer(standardize=False).fit(own[:, None]).lambdas_[0])
            except (ValueError, ArithmeticError, RuntimeError):
                return None  # no optimum was found, which every version of scikit-learn says in its own way
            if not _EXPONENTS[0] <= exponent <= _EXPONENTS[1]:
                return None
            found = cls(exponent, shift, unit, float(own.min()), float(own.max()))
            made = found.apply(observed)
            center, scale, varies = moments(made) if np.isfinite(made).all() else (0.0, 1.0, False)
            back = found.invert(center + scale * standardised(made, center, scale))
            lost = np.max(np.abs(back - observed)) if varies else np.inf
            allowed = _LOST * unit * (found.high - found.low) + 4 * np.spacing(np.max(np.abs(observed)))
        return found if lost <= allowed else None

    def apply(self, values: FloatArray) -> FloatArray:
        """Return the transformed values; NaN stays NaN."""
        own = standardised(values, self.shift, self.unit)
        knot = self._knot
        with np.errstate(over="ignore"):
            made = _yeo_johnson(own, self.exponent)
            if knot is not None:
                made = np.where(knot.is_below(own), knot.made + knot.slope * (own - knot.own), made)
        return np.clip(made, -LARGEST, LARGEST)

    def invert(self, made: FloatArray) -> FloatArray:
        """Return the values whose transforms are given, always finite; NaN stays NaN."""
        knot = self._knot
        with np.errstate(all="ignore"):
            from scipy.special import inv_boxcox1p

            upper = inv_boxcox1p(np.maximum(made, 0.0), self.exponent)
            own = np.where(made >= 0, upper, -inv_boxcox1p(np.maximum(-made, 0.0), 2 - self.exponent))
            if knot is not None:
                beyond = knot.sign * (made - knot.made) > 0
                own = np.where(beyond, knot.own + (made - knot.made) / knot.slope, own)
            own = np.where(np.isnan(made), np.nan, np.clip(own, -LARGEST, LARGEST))
            return np.asarray(np.clip(self.shift + self.unit * own, -LARGEST, LARGEST))

    def log_slope(self, values: FloatArray) -> FloatArray:
        """Return the log of the derivative at values."""
        own = standardised(values, self.shift, self.unit)
        if (knot := self._knot) is not None:
            own = np.where(knot.is_below(own), knot.own, own)
        return np.asarray(_log_slope(own, self.exponent) - np.log(self.unit))

    @property
    def _knot(self) -> _Knot | None:
        """Where the tangent takes over, if the transform has a bound."""
        if 0 <= self.exponent <= 2:
            return None
        own, sign = (self.high, 1.0) if self.exponent < 0 else (self.low, -1.0)
        at = np.array(own)
        return _Knot(own, float(_yeo_johnson(at, self.exponent)), float(np.exp(_log_slope(at, self.exponent))), sign)


class _Knot(NamedTuple):
    own: float
    made: float
    slope: float
    sign: float  # 1 if the tangent goes on upwards, -1 if downwards

    def is_below(self, own: FloatArray) -> NDArray[np.bool_]:
        return np.asarray(self.sign * (own - self.own) > 0)


def _yeo_johnson(own: FloatArray, exponent: float) -> FloatArray:
    from scipy.special import boxcox1p  # only for those who ask for it

    upper = boxcox1p(np.maximum(own, 0.0), exponent)
    return np.asarray(np.where(own >= 0, upper, -boxcox1p(np.maximum(-own, 0.0), 2 - exponent)))


def _log_slope(own: FloatArray, exponent: float) -> FloatArray:
    return np.asarray((exponent - 1) * np.sign(own) * np.log1p(np.abs(own)))


class ColumnScale(NamedTuple):
    """How a real column is encoded: by a power transform, if there is one, then by its mean and standard deviation.

    Parameters
    ----------
    center, scale : float
        Of the column, after the power transform.
    power : PowerTransform, optional
    """

    center: float
    scale: float
    power: PowerTransform | None = None

    @classmethod
    def fit(cls, values: FloatArray, standardize: bool | str = True) -> tuple[Self, bool]:
        """Find the scale of a column, and whether it has two different values.

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
        """Return what a process sees of values."""
        return standardised(values if self.power is None else self.power.apply(values), self.center, self.scale)

    def decode(self, encoded: FloatArray) -> FloatArray:
        """Return the values that are encoded so. Quantiles stay quantiles, and medians medians; means do not stay means."""
        if self.power is None:
            return np.asarray(self.center + self.scale * encoded)
        with np.errstate(over="ignore"):
            return self.power.invert(self.center + self.scale * encoded)

    def decode_moments(self, mean: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of values whose codes are Gaussian, or which are not transformed by a power."""
        if self.power is None:
            return self.decode(mean), self.scale * sd
        known = sd < np.inf
        values = self.decode(mean[..., None] + np.where(known, sd, 0.0)[..., None] * _NODES)
        size = np.maximum(np.max(np.abs(values), axis=-1, keepdims=True), _SMALLEST_NORMAL)
        shares = values / size
        middle = shares @ _WEIGHTS
        spread = np.sqrt((shares - middle[..., None]) ** 2 @ _WEIGHTS)
        with np.errstate(over="ignore"):
            size = size[..., 0]
            return middle * size, np.where(known, np.minimum(spread * size, LARGEST), np.inf)

    def decode_spread(self, mean: FloatArray, sd: FloatArray) -> FloatArray:
        """Return half the length of the interval that is a standard deviation to either side; infinite where nothing is known."""
        if self.power is None:
            return self.scale * sd
        known = sd < np.inf
        reach = np.where(known, sd, 0.0)
        return np.where(known, self.decode(mean + reach) / 2 - self.decode(mean - reach) / 2, np.inf)

    def log_slope(self, values: FloatArray) -> FloatArray:
        """Return the log of the derivative of `encode` at values: what the log density of a value has above that of its code."""
        slope = np.where(np.isnan(values), np.nan, 0.0) if self.power is None else self.power.log_slope(values)
        return np.asarray(slope - np.log(self.scale))

    def unit_at(self, encoded: float) -> float:
        """Return how much a value changes with its code, by which standard deviations in the column's units are told."""
        if self.power is None:
            return self.scale
        slope = float(self.log_slope(self.decode(np.array([encoded])))[0])
        return float(np.exp(np.clip(-slope, -700.0, 700.0)))


def moments(values: FloatArray) -> tuple[float, float, bool]:
    """Mean, standard deviation and whether there is any spread, for values of any size."""
    observed = values[~np.isnan(values)]
    if len(observed) == 0:
        return 0.0, 1.0, False
    # Powers of two bring the values below 1 without rounding; the sums below can then not overflow, and
    # taking the first value off keeps the digits in which large values differ.
    exponent = int(np.frexp(np.max(np.abs(observed)))[1])
    scaled = np.ldexp(observed, -exponent)
    shifted = scaled - scaled[0]
    mean = float(np.mean(shifted))
    center = float(np.ldexp(scaled[0] + mean, exponent))
    if np.all(observed == observed[0]):
        return center, 1.0, False
    spread = np.sqrt(np.mean((shifted - mean) ** 2))
    return center, max(float(np.ldexp(spread, exponent)), _SMALLEST_SCALE), True


def standardised(values: FloatArray, center: float, scale: float) -> FloatArray:
    """Return values less a centre, in units of a scale, for values of any size."""
    if center == 0.0 and scale == 1.0:
        return values
    exponent = int(np.frexp(max(abs(center), scale))[1])
    # A new row may lie further out than a float can say in units of the scale; it is then kept at the end.
    with np.errstate(over="ignore"):
        scaled = (np.ldexp(values, -exponent) - np.ldexp(center, -exponent)) / np.ldexp(scale, -exponent)
    clipped: FloatArray = np.clip(scaled, -LARGEST_STANDARDISED, LARGEST_STANDARDISED)
    return clipped
