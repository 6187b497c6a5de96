"""Values for missing cells, turned into what a column of some type can hold."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cells import Category
from .names import is_missing

_NANOSECONDS_A_DAY = 86_400 * 10**9
_NANOSECONDS = {
    "W": 7 * _NANOSECONDS_A_DAY,
    "D": _NANOSECONDS_A_DAY,
    "h": 3600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
}
_EPOCH = dt.datetime(1970, 1, 1)
# What Python's dates can say.
_FIRST_DAY = (dt.datetime.min - _EPOCH) / dt.timedelta(days=1)
_LAST_DAY = (dt.datetime.max - _EPOCH) / dt.timedelta(days=1)


def floats(values: Sequence[Category], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Numbers of a float type; those too large for it become its largest."""
    limit = float(np.finfo(dtype).max)
    return np.clip(np.array([_number(v) for v in values], dtype=np.float64), -limit, limit).astype(dtype)


def integers(values: Sequence[Category], bits: int = 0, signed: bool = True) -> list[int]:
    """Whole numbers, rounded and kept within what so many bits can hold; 0 bits stand for Python's integers."""
    whole = [v if isinstance(v, int) else round(_number(v)) for v in values]
    if not bits:
        return whole
    lowest = -(1 << (bits - 1)) if signed else 0
    highest = (1 << (bits - signed)) - 1
    return [min(max(v, lowest), highest) for v in whole]


def flags(values: Sequence[Category]) -> list[bool]:
    """Truth values; a number is true from one half on."""
    return [v.lower() == "true" if isinstance(v, str) else v >= 0.5 for v in values]


def decimals(values: Sequence[Category], precision: int, scale: int) -> list[Decimal]:
    """Decimal numbers with `scale` digits behind the point, and no more than `precision` in all."""
    with localcontext(prec=400):  # as many digits as a float may need in front of its point, and to spare
        unit = Decimal(1).scaleb(-scale)
        limit = (10**precision - 1) * unit
        return [min(max(_decimal(v).quantize(unit), -limit), limit) for v in values]


def texts(values: Sequence[Category]) -> list[str]:
    """Text; a category that was a number in the fit is written as Python writes it."""
    return [str(v) for v in values]


def days(values: Sequence[Category]) -> NDArray[np.int64]:
    """Whole days since 1970-01-01, for dates."""
    limits = np.iinfo(np.int32)
    whole = np.clip(np.rint(_days(values)), limits.min, limits.max)
    return whole.astype(np.int64)


def ticks(values: Sequence[Category], unit: str, step: int = 1) -> NDArray[np.int64]:
    """Times in steps of a unit since 1970-01-01, or durations, from days or ISO text."""
    numbers = np.rint(_days(values) * (_NANOSECONDS_A_DAY / (_NANOSECONDS[unit] * step)))
    # The lowest integer is NaT, and the largest float below 2**63 is 1024 less than it.
    return np.clip(numbers, -(2.0**63) + 1024, 2.0**63 - 1024).astype(np.int64)


def as_dtype(values: Sequence[Category], dtype: np.dtype[Any], found: Iterable[Any]) -> Any:
    """Turn values into cells of a numpy type.

    Parameters
    ----------
    values : sequence
        Numbers, days since 1970-01-01 or categories.
    dtype : dtype
        The type of the column.
    found : iterable
        The column, which says what a column of objects or text holds.

    Returns
    -------
    array or list
    """
    if dtype.kind == "f":
        return floats(values, dtype)
    if dtype.kind in "iu":
        return np.array(integers(values, 8 * dtype.itemsize, dtype.kind == "i"), dtype=dtype)
    if dtype.kind == "b":
        return np.array(flags(values), dtype=dtype)
    if dtype.kind in "Mm":
        unit, step = np.datetime_data(dtype)
        if unit in _NANOSECONDS:
            return ticks(values, unit, step).view(dtype)
        # Months and years have any length, and are rounded down.
        return ticks(values, "us").view(f"{dtype.kind}8[us]").astype(dtype)
    return objects(values, found) if dtype.kind == "O" else texts(objects(values, found))


def objects(values: Sequence[Category], found: Iterable[Any]) -> list[Any]:
    """Turn values into Python objects like those that a column holds."""
    observed = [v for v in found if not is_missing(v) and not (isinstance(v, str) and v == "")]
    kinds = set(map(type, observed))
    # A datetime is a date to isinstance, and True an int: the narrow classes come first.
    if not kinds:
        return list(values)
    if _all_of(kinds, bool | np.bool_):
        return list(flags(values))
    if _all_of(kinds, int | np.integer) and not any(issubclass(kind, bool) for kind in kinds):
        return list(integers(values))
    if _all_of(kinds, Decimal):
        return [_decimal(v) for v in values]
    if _all_of(kinds, np.datetime64 | np.timedelta64):
        return list(as_dtype(values, observed[0].dtype, ()))
    if _all_of(kinds, dt.timedelta):
        return [_same_class(dt.timedelta(days=day), observed[0]) for day in _days(values).tolist()]
    if _all_of(kinds, dt.date):
        return _times(values, [v for v in observed if isinstance(v, dt.datetime)])
    if _all_of(kinds, str) and not all(isinstance(v, str) for v in values):
        return _written_numbers(values, observed)
    return list(values)


def _times(values: Sequence[Category], like: Sequence[dt.datetime]) -> list[Any]:
    """Dates, or times in the zone and of the class of others."""
    since = np.clip(_days(values), _FIRST_DAY, _LAST_DAY)
    if not like:
        return [_EPOCH.date() + dt.timedelta(days=day) for day in np.rint(since).tolist()]
    zone = like[0].tzinfo
    times = [_EPOCH + dt.timedelta(days=day) for day in since.tolist()]
    if zone is not None:
        times = [time.replace(tzinfo=dt.UTC).astimezone(zone) for time in times]
    return [_same_class(time, like[0]) for time in times]


def _same_class(value: Any, like: Any) -> Any:
    # pandas' Timestamp and Timedelta are made from Python's.
    return value if type(like) is type(value) else type(like)(value)


def _written_numbers(values: Sequence[Category], observed: Sequence[str]) -> list[str]:
    numbers = [text for text in observed if text.strip().lower() != "nan"]
    if all(text.strip().lstrip("+-").isdecimal() for text in numbers):
        return texts(integers(values))
    return texts(values)


def _all_of(kinds: Iterable[type], wanted: Any) -> bool:
    return all(issubclass(kind, wanted) for kind in kinds)


def _number(value: Category) -> float:
    return float(value)


def _decimal(value: Category) -> Decimal:
    return Decimal(value) if isinstance(value, int) else Decimal(repr(_number(value)))


def _days(values: Sequence[Category]) -> NDArray[np.float64]:
    """Days of numbers, which are days, and of the text of times."""
    return np.array([_days_of_text(v) if isinstance(v, str) else _number(v) for v in values], dtype=np.float64)


def _days_of_text(text: str) -> float:
    return float((np.datetime64(text, "us") - np.datetime64(0, "us")) / np.timedelta64(1, "D"))
