"""Columns of Python objects: find out what they hold."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from ..errors import InputError
from .cells import Cells, FlagCells, FloatArray, NumberCells, TextCells, TimeCells
from .names import is_missing
from .wording import InputTypeError, Place

_EPOCH = dt.datetime(1970, 1, 1)
_DAY = dt.timedelta(days=1)
_PLAIN_NUMBERS = frozenset({int, float, type(None), np.float64, np.float32, np.int64, np.int32})
_NOUNS = {
    "number": "numbers",
    "flag": "truth values",
    "text": "text",
    "time": "dates",
    "duration": "durations",
}


def read_objects(values: Sequence[Any], place: Place, *, declared_text: bool) -> Cells:
    """Decide by the types of its cells how to read a column.

    Parameters
    ----------
    values : sequence
        The cells.
    place : Place
        The column, for messages.
    declared_text : bool
        Whether digits in a column of text are labels (frames) or numbers (arrays).

    Returns
    -------
    Cells

    Raises
    ------
    InputError
        When a cell is neither a number, text, a truth value, a date nor missing, or when the column mixes
        kinds that have no common reading; InputTypeError for cells of a type that no column may hold.
    """
    kinds = {kind: _type_kind(kind) for kind in set(map(type, values))}
    _refuse_other(values, kinds, place)
    present = set(kinds.values()) - {"missing"}
    if len(present) > 1:
        # NaN is a float and numpy's NaT a date, but neither makes a column of text a mixture.
        present = {kind for kind in present if _first_row(values, kinds, kind) < len(values)}
    if not present:
        return NumberCells(np.full(len(values), math.nan))
    if present == {"flag"}:
        return FlagCells(np.array([math.nan if is_missing(v) else float(v) for v in values]))
    if present <= {"number", "flag"}:
        return NumberCells(_numbers(values, set(kinds), place))
    if present <= {"text", "number", "flag"}:
        return TextCells(values, declared_text=declared_text and present == {"text"})
    if present == {"time"}:
        return TimeCells(np.array([_days(v) for v in values]))
    if present == {"duration"}:
        return NumberCells(np.array([_duration_days(v) for v in values]))
    first, second = sorted(present, key=lambda kind: _first_row(values, kinds, kind))[:2]
    i, j = _first_row(values, kinds, first), _first_row(values, kinds, second)
    raise InputError(
        f"Column {place.column!r} mixes {_NOUNS[first]} ({str(values[i])!r} in {place.row(i)}) and "
        f"{_NOUNS[second]} ({str(values[j])!r} in {place.row(j)}): convert it to one type or drop it."
    )


def _type_kind(kind: type) -> str:
    """Name what cells of a Python type are."""
    # NaT is a datetime to isinstance, timedelta64 an integer, True an int: the narrow classes come first.
    if kind is type(None) or kind.__name__ in ("NAType", "NaTType"):
        return "missing"
    if issubclass(kind, bool | np.bool_):
        return "flag"
    if issubclass(kind, dt.timedelta | np.timedelta64):
        return "duration"
    if issubclass(kind, dt.date | np.datetime64):
        return "time"
    if issubclass(kind, int | float | np.integer | np.floating | Decimal | Fraction):
        return "number"
    if issubclass(kind, str):
        return "text"
    return "complex" if issubclass(kind, complex | np.complexfloating) else "other"


def _refuse_other(values: Sequence[Any], kinds: dict[type, str], place: Place) -> None:
    if "complex" in kinds.values():
        row = next(i for i, v in enumerate(values) if kinds[type(v)] == "complex")
        raise InputError(
            f"Complex data not supported: column {place.column!r} holds {values[row]!r} in {place.row(row)}; "
            "split it into real and imaginary part or drop it."
        )
    if "other" in kinds.values():
        row = next(i for i, v in enumerate(values) if kinds[type(v)] == "other")
        # "argument must be ..." is the wording of float(), which scikit-learn's users and checks know.
        raise InputTypeError(
            f"Column {place.column!r} holds {_short(values[row])} in {place.row(row)}: argument must be a "
            f"string or a real number, not {type(values[row]).__name__!r}; convert the column or drop it."
        )


def _first_row(values: Sequence[Any], kinds: dict[type, str], wanted: str) -> int:
    """Row of the first cell of a kind that is not missing; past the end if there is none."""
    rows = (i for i, v in enumerate(values) if kinds[type(v)] == wanted and not is_missing(v))
    return next(rows, len(values))


def _numbers(values: Sequence[Any], types: set[type], place: Place) -> np.ndarray[Any, np.dtype[Any]]:
    """Convert numbers, as integers where all of them are and fit."""
    try:
        if types == {int}:
            return np.array(values, dtype=np.int64)
        if types <= _PLAIN_NUMBERS:
            return np.array(values, dtype=np.float64)
    except OverflowError:
        pass  # an integer too large for its type: the loop below finds its row, or fits it into a float
    return np.array([_number(v, i, place) for i, v in enumerate(values)])


def _number(value: Any, row: int, place: Place) -> float:
    if is_missing(value):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        raise InputError(
            f"Column {place.column!r} holds a number in {place.row(row)} that is too large for a float "
            "(the limit is about 1.8e308): mark it as missing or rescale the column."
        ) from None


def _days(value: Any) -> float:
    """Days since 1970-01-01 of a date or datetime."""
    if is_missing(value):
        return math.nan
    if isinstance(value, np.datetime64):
        return float(numpy_days(np.array([value]))[0])
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(dt.UTC).replace(tzinfo=None)
        return float((value - _EPOCH) / _DAY)
    return float(value.toordinal() - _EPOCH.toordinal())


def _duration_days(value: Any) -> float:
    if is_missing(value):
        return math.nan
    if isinstance(value, np.timedelta64):
        return float(value / np.timedelta64(1, "D"))
    return float(value / _DAY)


def numpy_days(values: np.ndarray[Any, np.dtype[Any]]) -> FloatArray:
    """Days, since 1970-01-01 for points in time, of a datetime64 or timedelta64 array."""
    days = np.full(len(values), math.nan)
    observed = ~np.isnat(values)
    spans = values[observed]
    if values.dtype.kind == "M":
        spans = spans - np.datetime64(0, "D")
    days[observed] = spans / np.timedelta64(1, "D")
    return days


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
