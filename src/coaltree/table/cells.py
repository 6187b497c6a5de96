"""The cells of one column, read as numbers or as categories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .messages import Place, count, is_missing

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]
Category: TypeAlias = str | int | float | bool

_MICROSECONDS_A_DAY = 86_400_000_000
# Above this a float64 no longer tells neighbouring whole numbers apart.
_LARGEST_EXACT = 2.0**53


class Cells(Protocol):
    """The cells of one column before it is decided how to read them."""

    @property
    def categorical(self) -> bool:
        """Whether the column is categorical by its own type."""

    def as_real(self, place: Place, reason: str) -> FloatArray:
        """Read the cells as numbers, NaN for missing; `reason` ends the error when they are text."""

    def as_categorical(self) -> tuple[IntArray, tuple[Category, ...]]:
        """Read the cells as codes, -1 for missing, and the categories that occur, in order."""


@dataclass(frozen=True)
class NumberCells:
    """Integers or floats; NaN is missing."""

    values: NDArray[Any]
    categorical: bool = False

    def as_real(self, place: Place, reason: str) -> FloatArray:
        """Read the cells as numbers; always a copy."""
        return self.values.astype(np.float64)

    def as_categorical(self) -> tuple[IntArray, tuple[Category, ...]]:
        """Read each distinct number as a category, in numerical order."""
        codes, distinct = encode_numbers(self.values)
        whole = distinct.dtype.kind != "f" or (
            # Integers become floats as soon as a cell is missing; the category should not tell.
            bool(np.all(np.abs(distinct) <= _LARGEST_EXACT)) and bool(np.all(distinct == np.floor(distinct)))
        )
        return codes, tuple(int(v) if whole else float(v) for v in distinct.tolist())


@dataclass(frozen=True)
class FlagCells:
    """Truth values as 0.0 and 1.0; NaN is missing."""

    values: FloatArray
    categorical: bool = True

    def as_real(self, place: Place, reason: str) -> FloatArray:
        """Read False as 0 and True as 1."""
        return self.values.astype(np.float64)

    def as_categorical(self) -> tuple[IntArray, tuple[Category, ...]]:
        """Read the categories False and True."""
        codes, distinct = encode_numbers(self.values)
        return codes, tuple(bool(v) for v in distinct)


@dataclass(frozen=True)
class TimeCells:
    """Points in time, as days since 1970-01-01; NaN is missing."""

    values: FloatArray
    categorical: bool = False

    def as_real(self, place: Place, reason: str) -> FloatArray:
        """Read the cells as days since 1970-01-01."""
        return self.values.astype(np.float64)

    def as_categorical(self) -> tuple[IntArray, tuple[Category, ...]]:
        """Read each distinct time as a category with its ISO 8601 text, in order of time."""
        codes, days = encode_numbers(self.values)
        stamps = np.rint(days * _MICROSECONDS_A_DAY).astype(np.int64).astype("datetime64[us]")
        for unit in ("D", "s", "us"):
            if np.array_equal(stamps.astype(f"datetime64[{unit}]"), stamps):
                stamps = stamps.astype(f"datetime64[{unit}]")
                break
        return codes, tuple(str(text) for text in np.datetime_as_string(stamps))


@dataclass(frozen=True)
class LabelledCells:
    """Codes into declared labels, as pandas' category type holds them; -1 is missing."""

    codes: IntArray
    labels: tuple[Category, ...]
    categorical: bool = True

    def as_real(self, place: Place, reason: str) -> FloatArray:
        """Read the labels as numbers, where all that occur are numbers."""
        codes, labels = self.as_categorical()
        for code, label in enumerate(labels):
            if isinstance(label, str):
                raise _text_error(place, int(np.argmax(codes == code)), label, reason)
        # The NaN at the end is what the code -1 of a missing cell picks.
        return np.array([*map(float, labels), math.nan])[codes]

    def as_categorical(self) -> tuple[IntArray, tuple[Category, ...]]:
        """Keep the declared order, without the labels that do not occur."""
        return drop_unused(self.codes, self.labels)


@dataclass(frozen=True)
class TextCells:
    """Text, perhaps mixed with numbers; empty text is missing.

    Parameters
    ----------
    values : sequence
        The cells: str, numbers, bool or missing values.
    declared_text : bool
        True when the column's type says text, so that digits in it are labels; an array of text may as well
        be numbers that were written next to text.
    order : tuple of str or None
        Declared order of the categories; None sorts them.
    """

    values: Sequence[Any]
    declared_text: bool
    order: tuple[str, ...] | None = None

    @cached_property
    def _encoded(self) -> tuple[IntArray, tuple[Category, ...]]:
        present = dict.fromkeys(self.values)
        plain = {v: python_value(v) for v in present if not is_missing(v) and not (isinstance(v, str) and v == "")}
        if self.order is None:
            labels = sorted(set(plain.values()), key=_sort_key)
        else:
            occurring = set(plain.values())
            labels = [label for label in self.order if label in occurring]
        position = {label: i for i, label in enumerate(labels)}
        # One dictionary from raw value to code, so that the loop over the cells is a single lookup.
        code = {v: position[plain[v]] if v in plain else -1 for v in present}
        return np.fromiter(map(code.__getitem__, self.values), np.intp, len(self.values)), tuple(labels)

    @cached_property
    def _parsed(self) -> list[float | None]:
        """The labels as numbers, None for those that are not."""
        return [_parse(label) for label in self._encoded[1]]

    @property
    def categorical(self) -> bool:
        """Whether the cells are labels and not numbers written as text."""
        return self.declared_text or None in self._parsed

    def as_real(self, place: Place, reason: str) -> FloatArray:
        """Read numbers written as text, unless the column's type says that it is text."""
        codes, labels = self._encoded
        self.check_not_mostly_numbers(place)
        for code, (label, number) in enumerate(zip(labels, self._parsed, strict=True)):
            if self.declared_text or number is None:
                raise _text_error(place, int(np.argmax(codes == code)), label, reason)
        return np.array([*(v for v in self._parsed if v is not None), math.nan])[codes]

    def as_categorical(self) -> tuple[IntArray, tuple[Category, ...]]:
        """Read each distinct value as a category: numbers in order, then text in order."""
        return self._encoded

    def check_not_mostly_numbers(self, place: Place) -> None:
        """Raise when the column holds mostly numbers, and text that probably should not be there."""
        codes, labels = self._encoded
        if self.order is not None or not labels:
            return
        is_text = np.array([number is None for number in self._parsed])
        observed = codes >= 0
        offending = observed & is_text[codes]
        n_offending, n_observed = int(offending.sum()), int(observed.sum())
        if n_offending == 0 or 2 * n_offending > n_observed:
            return
        row = int(np.argmax(offending))
        raise InputError(
            f"Column {place.column!r} holds numbers, but {place.row(row)} holds {labels[codes[row]]!r} "
            f"({n_offending:,} of {count(n_observed, 'observed cell')} "
            f"{'is' if n_offending == 1 else 'are'} not a number): mark it as missing, fix it, "
            "or declare the column categorical."
        )


def encode_numbers(values: NDArray[Any]) -> tuple[IntArray, NDArray[Any]]:
    """Encode an array of numbers by its distinct values, in order; NaN gets the code -1."""
    observed = ~np.isnan(values) if values.dtype.kind == "f" else np.ones(len(values), dtype=bool)
    distinct, inverse = np.unique(values[observed], return_inverse=True)
    codes = np.full(len(values), -1, dtype=np.intp)
    codes[observed] = inverse
    return codes, distinct


def drop_unused(codes: IntArray, labels: tuple[Category, ...]) -> tuple[IntArray, tuple[Category, ...]]:
    """Renumber codes so that only labels that occur are kept, in their order."""
    used = np.unique(codes[codes >= 0])
    # The last entry is what the code -1 of a missing cell picks.
    renumbered = np.full(len(labels) + 1, -1, dtype=np.intp)
    renumbered[used] = np.arange(len(used))
    return renumbered[codes], tuple(labels[code] for code in used)


def python_value(value: object) -> Category:
    """Turn a label into a plain Python scalar; what is neither number nor truth value becomes its text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Decimal | Fraction):
        number = float(value)
        return int(number) if number.is_integer() else number
    if isinstance(value, bool | int | float):
        return value
    return str(value)


def _sort_key(label: Category) -> tuple[bool, Any]:
    # Numbers and text do not compare; numbers come first.
    return isinstance(label, str), label


def _parse(label: Category) -> float | None:
    if isinstance(label, bool):
        return None
    try:
        return float(label)
    except (ValueError, OverflowError):
        return None


def _text_error(place: Place, row: int, value: object, reason: str) -> InputError:
    return InputError(f"Column {place.column!r} holds {value!r} in {place.row(row)}, {reason}.")
