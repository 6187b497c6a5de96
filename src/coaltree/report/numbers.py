"""Numbers as a report writes them: as short as they can be without saying something else."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_KEPT = 9  # characters of a value that is written as it was given
_DIGITS = 6
_FIRST_DAY, _LAST_DAY = -719_528, 2_932_896  # of the years 0 to 9999
_EVEN = math.log(1.05)  # log odds below which neither side is the better one
_STRENGTHS = ((100, "very strongly"), (20, "strongly"), (3, "clearly"), (1, "weakly"))  # from which factor on
MINUS = "\N{MINUS SIGN}"


def given_values(values: NDArray[np.float64]) -> list[float | None]:
    """Return values as they were given, of those with many digits the first; None for NaN.

    Values that were standardised and brought back differ from what they were in their last digits, which are rounded off.

    Examples
    --------
    >>> import numpy as np
    >>> given_values(np.array([0.1 + 0.2, np.nan, 90000.0, 5e-6, 1 / 3]))
    [0.3, None, 90000.0, 5e-06, 0.3333333]
    """
    observed = values[~np.isnan(values)]
    largest = float(np.max(np.abs(observed))) if len(observed) else 0.0
    places = 12 - math.ceil(math.log10(largest)) if largest > 0 else 0
    found: list[float | None] = []
    for value in values.tolist():
        if value != value:
            found.append(None)
            continue
        cleaned = round(value, places) if abs(places) < 300 else value
        found.append(cleaned if len(repr(cleaned)) <= _KEPT else significant(value))
    return found


def moments(days: NDArray[np.float64]) -> list[float | None]:
    """Return points in time, as days, to the second; None for NaN."""
    return [None if day != day else round(day, 5) for day in days.tolist()]


def significant(value: float, digits: int = _DIGITS) -> float:
    """Return a number to so many digits.

    Examples
    --------
    >>> significant(1234567.0), significant(0.00123456789, 3)
    (1234570.0, 0.00123)
    """
    return float(f"{value:.{digits}g}")


def beside(value: float, sd: float) -> float:
    """Return a number to the digits that its standard deviation leaves sure.

    Examples
    --------
    >>> beside(3.21456, 0.4), beside(1234.6, 87.0), beside(1.5, 0.0)
    (3.21, 1235.0, 1.5)
    """
    if not 0 < sd < math.inf or not math.isfinite(value):
        return significant(value)
    places = 1 - math.floor(math.log10(sd))
    return float(round(value, places)) if abs(places) < 300 else significant(value)


def mean_beside(value: float, sd: float) -> float:
    """Return a mean of some rows to the digits that tell it from others in a column of such a standard deviation.

    A small one keeps three digits of its own.

    Examples
    --------
    >>> mean_beside(3.21456, 0.4), mean_beside(4.6612, 2e5), mean_beside(1e6, 2e5), mean_beside(1e-17, 0.4)
    (3.215, 4.66, 1000000.0, 0.0)
    """
    if abs(value) < 1e-9 * sd:  # what adding up has left of 0
        return 0.0
    return min(beside(value, 0.1 * sd), significant(value, 3), key=lambda shown: abs(shown - value))


def written(value: float) -> str:
    """Write a number without a needless point or sign.

    Examples
    --------
    >>> written(3.0), written(-0.25), written(-0.0), written(1234567.0)
    ('3', '−0.25', '0', '1234567')
    """
    return f"{value + 0.0:.12g}".replace("-", MINUS)


def date(days: float, whole: bool | None = None) -> str:
    """Write a point in time, given as days since 1970-01-01.

    Parameters
    ----------
    days : float
    whole : bool, optional
        Whether only the day is written; by default if it is just that.

    Examples
    --------
    >>> date(18627.0), date(18627.75), date(18627.75, whole=True), date(1e9)
    ('2020-12-31', '2020-12-31 18:00', '2020-12-31', '1000000000 days after 1970-01-01')
    """
    if not _FIRST_DAY <= days < _LAST_DAY:
        return f"{written(days)} days after 1970-01-01"
    minutes = round(days * 1440)
    day, clock = str(np.datetime64(minutes, "m")).split("T")
    only_day = minutes % 1440 == 0 if whole is None else whole
    return day if only_day else f"{day} {clock}"


def explained(log_ratio: float) -> str:
    """Say how much better one tree explains rows than two, or two than one, as the end of a sentence.

    Examples
    --------
    >>> explained(5.4), explained(-0.7)
    ('one tree explains them 220 times better than two', 'two trees explain them 2 times better than one')
    >>> explained(0.01), explained(300.0)
    ('one tree explains them as well as two', 'one tree explains them more than a million times better than two')
    """
    if abs(log_ratio) < _EVEN:
        return "one tree explains them as well as two"
    if log_ratio > 0:
        return f"one tree explains them {_times(log_ratio)} better than two"
    return f"two trees explain them {_times(-log_ratio)} better than one"


def held_together(log_ratio: float) -> str:
    """Say how strongly rows are held together.

    Examples
    --------
    >>> held_together(3.2), held_together(0.7), held_together(-0.7)
    ('strongly (25 times)', 'weakly (2 times)', 'no (two trees explain them 2 times better than one)')
    """
    return _strength(log_ratio, log_ratio)


def set_apart(log_ratio: float) -> str:
    """Say how strongly rows are set apart.

    Examples
    --------
    >>> set_apart(-5.5), set_apart(-2.0), set_apart(0.0)
    ('very strongly (240 times)', 'clearly (7.4 times)', 'no (one tree explains them as well as two)')
    """
    return _strength(-log_ratio, log_ratio)


def _strength(log_odds: float, log_ratio: float) -> str:
    if log_odds < _EVEN:
        return f"no ({explained(log_ratio)})"
    strength = next(word for least, word in _STRENGTHS if log_odds >= math.log(least))
    return f"{strength} ({_times(log_odds)})"


def _times(log_factor: float) -> str:
    factor = "more than a million" if log_factor > math.log(1e6) else f"{significant(math.exp(log_factor), 2):,g}"
    return f"{factor} times"


def percent(share: float) -> str:
    """Write a share in per cent, never as none or all where it is not.

    Examples
    --------
    >>> percent(0.4), percent(1.0), percent(0.9996), percent(1e-5), percent(0.0)
    ('40 %', '100 %', '> 99.9 %', '< 0.1 %', '0 %')
    """
    if 0 < share < 0.001:
        return "< 0.1 %"
    if 0.999 < share < 1:
        return "> 99.9 %"
    return f"{100 * share:.3g} %"
