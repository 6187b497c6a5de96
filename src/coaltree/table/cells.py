"""Cells of a column, before they are read as numbers or categories; and codes for sets of states.

A set of states is a cell that is partly known, such as R in DNA, which is A or G. In a table of codes it is a negative
number: minus the sum of ``2 ** k`` over its states k. The code alone determines the states, so sets need no declaration.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._validation import quote, to_whole_number
from ..errors import InputError
from .labels import ColumnContext, is_missing
from .notation import Strays, are_codes

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]
Category: TypeAlias = str | int | float | bool

_MICROSECONDS_PER_DAY = 86_400_000_000
# Above this, neighbouring integers are the same float64.
_MAX_EXACT_INTEGER = 2.0**53

NO_DATES = (-719_162.0, 2_932_896.0)
"""0001-01-01 and 9999-12-31 as days since 1970-01-01."""

MAX_SET_STATES = 53
"""States of a column in which cells may be sets: a float holds this many bits."""


class Cells(Protocol):
    """The cells of one column, before they are read as numbers or categories."""

    @property
    def categorical(self) -> bool:
        """Whether the column is categorical by its own type."""

    def as_real(self, context: ColumnContext, reason: str) -> FloatArray:
        """Read the cells as numbers, NaN for missing; `reason` ends the error when they are text."""

    def as_categorical(self) -> tuple[IntArray, tuple[Category, ...]]:
        """Read the cells as codes, -1 for missing, and the categories that occur, in order."""


@dataclass(frozen=True)
class NumberCells:
    """Integers or floats; NaN is missing."""

    values: NDArray[Any]
    categorical: bool = False

    def as_real(self, context: ColumnContext, reason: str) -> FloatArray:
        """Read the cells as numbers; always a copy."""
        with np.errstate(over="ignore"):  # longer floats become infinite, which is reported later
            return self.values.astype(np.float64)

    def as_categorical(self) -> tuple[IntArray, tuple[Category, ...]]:
        """Read each distinct number as a category, in numerical order."""
        codes, distinct = encode_numbers(self.values)
        if distinct.dtype.kind == "f":
            distinct = distinct.astype(np.float64)  # in half precision the limit below is infinite
        is_integer = distinct.dtype.kind != "f" or (
            # Integers become floats as soon as a cell is missing; the categories stay integers.
            bool(np.all(np.abs(distinct) <= _MAX_EXACT_INTEGER)) and bool(np.all(distinct == np.floor(distinct)))
        )
        return codes, tuple(int(v) if is_integer else float(v) for v in distinct.tolist())


@dataclass(frozen=True)
class BooleanCells:
    """Booleans as 0.0 and 1.0; NaN is missing."""

    values: FloatArray
    categorical: bool = True

    def as_real(self, context: ColumnContext, reason: str) -> FloatArray:
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

    def as_real(self, context: ColumnContext, reason: str) -> FloatArray:
        """Read the cells as days since 1970-01-01; those that stand for no date are missing."""
        return np.where(stand_for_no_date(self.values), math.nan, self.values)

    def as_categorical(self) -> tuple[IntArray, tuple[Category, ...]]:
        """Read each distinct time as a category with its ISO 8601 text, in order of time."""
        codes, days = encode_numbers(self.values)
        stamps = np.rint(days * _MICROSECONDS_PER_DAY).astype(np.int64).astype("datetime64[us]")
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

    def as_real(self, context: ColumnContext, reason: str) -> FloatArray:
        """Read the labels as numbers, if all that occur are numbers."""
        codes, labels = self.as_categorical()
        for code, label in enumerate(labels):
            if isinstance(label, str):
                raise _text_error(context, int(np.argmax(codes == code)), label, reason)
        # The code -1 of a missing cell selects the NaN at the end.
        return np.array([*map(float, labels), math.nan])[codes]

    def as_categorical(self) -> tuple[IntArray, tuple[Category, ...]]:
        """Return the labels that occur, in the declared order."""
        return drop_unused(self.codes, self.labels)


@dataclass(frozen=True)
class TextCells:
    """Text, perhaps mixed with numbers; empty text is missing.

    Parameters
    ----------
    values : sequence
        The cells: str, numbers, bool or missing values.
    declared_text : bool
        True if the type of the column says text, so that digits in it are labels. In an array, text may be numbers that
        numpy converted because they stood next to text.
    order : tuple of str or None
        Declared order of the categories; None sorts them.
    """

    values: Sequence[Any]
    declared_text: bool
    order: tuple[str, ...] | None = None

    @cached_property
    def _encoded(self) -> tuple[IntArray, tuple[Category, ...]]:
        values = self.values
        try:
            present = dict.fromkeys(values)
        except TypeError:  # a signalling NaN among other objects cannot be hashed
            values = [None if is_missing(value) else value for value in values]
            present = dict.fromkeys(values)
        plain = {v: python_value(v) for v in present if not is_missing(v) and not (isinstance(v, str) and v == "")}
        if self.order is None:
            labels = sorted(set(plain.values()), key=_sort_key)
        else:
            occurring = set(plain.values())
            labels = [label for label in self.order if label in occurring]
        position = {label: i for i, label in enumerate(labels)}
        # One dictionary from raw value to code, so that each cell takes one lookup.
        code = {v: position[plain[v]] if v in plain else -1 for v in present}
        return np.fromiter(map(code.__getitem__, values), np.intp, len(values)), tuple(labels)

    @cached_property
    def _parsed(self) -> list[float | None]:
        """The labels as numbers, None for those that are not."""
        return [_parse_number(label) for label in self._encoded[1]]

    @property
    def categorical(self) -> bool:
        """Whether the cells are labels and not numbers written as text."""
        return self.declared_text or None in self._parsed or self._are_codes

    @property
    def _are_codes(self) -> bool:
        return are_codes([label for label in self._encoded[1] if isinstance(label, str)])

    def as_real(self, context: ColumnContext, reason: str) -> FloatArray:
        """Read numbers written as text, unless the type of the column is text."""
        codes, labels = self._encoded
        for code, (label, number) in enumerate(zip(labels, self._parsed, strict=True)):
            if self.declared_text or number is None:
                raise _text_error(context, int(np.argmax(codes == code)), label, reason)
        return np.array([*(v for v in self._parsed if v is not None), math.nan])[codes]

    def as_categorical(self) -> tuple[IntArray, tuple[Category, ...]]:
        """Read each distinct value as a category: numbers in order, then text in order."""
        return self._encoded

    def find_strays(self, column: str) -> Strays | None:
        """Return the text in a column of mostly numbers, which is probably an error."""
        codes, labels = self._encoded
        if self.order is not None or not labels or self._are_codes:
            return None
        is_text = np.array([number is None for number in self._parsed])
        observed = codes >= 0
        bad = observed & is_text[codes]
        n_bad, n_observed = int(bad.sum()), int(observed.sum())
        if n_bad == 0 or 2 * n_bad > n_observed:
            return None
        n_cells = np.bincount(codes[bad], minlength=len(labels)).tolist()
        texts = {str(label): n for label, n in zip(labels, n_cells, strict=True) if n}
        row = int(np.argmax(bad))
        return Strays(column, "numbers", texts, n_observed).found_at(row, str(labels[codes[row]]))


@dataclass(frozen=True)
class SetCells:
    """Categories, and sets of categories for cells that have one of them; an empty text is missing.

    Parameters
    ----------
    values : sequence
        The cells: categories, sets and frozensets of them, or missing values.
    """

    values: Sequence[Any]
    categorical: bool = True

    def as_real(self, context: ColumnContext, reason: str) -> FloatArray:
        """Refuse sets, which are not numbers."""
        row = next(i for i, value in enumerate(self.values) if isinstance(value, AbstractSet))
        raise _text_error(context, row, set(self.values[row]), reason)

    def as_categorical(self) -> tuple[IntArray, tuple[Category, ...]]:
        """Read each value as a category, including those that occur only in sets; sets get their own codes."""
        values = [frozenset(value) if isinstance(value, AbstractSet) else value for value in self.values]
        members = {
            value: [
                python_value(member)
                for member in (value if isinstance(value, frozenset) else (value,))
                if not is_blank(member)
            ]
            for value in dict.fromkeys(values)
        }
        labels = tuple(sorted({label for cell in members.values() for label in cell}, key=_sort_key))
        position = {label: code for code, label in enumerate(labels)}
        # One dictionary from raw value to code, so that each cell takes one lookup.
        code = {value: encode_labels({position[label] for label in cell}) for value, cell in members.items()}
        return np.fromiter(map(code.__getitem__, values), np.intp, len(values)), labels


def state_set(*states: int) -> float:
    """Return the code of a cell that is one of several states, for tables of codes.

    Frames and lists take sets of categories as cells instead, such as ``{"A", "G"}``.

    Parameters
    ----------
    *states : int
        Codes of the states, at least one; below 53.

    Returns
    -------
    float
        Minus the sum of ``2 ** k`` over the states k; for a single state its own code.

    Raises
    ------
    InputError
        If a state is not a code, or is too large.

    Examples
    --------
    >>> import coaltree as ct
    >>> ct.state_set(0, 2), ct.state_set(1)
    (-5.0, 1.0)
    >>> process = ct.Multinomial(equilibrium=[[0.25, 0.25, 0.5]])
    >>> tree = ct.Tree.from_newick("(a:1,b:1);")
    >>> either = process.log_likelihood(tree, [[0], [ct.state_set(0, 2)]])
    >>> apart = [process.log_likelihood(tree, [[0], [k]]) for k in (0, 2)]
    >>> bool(np.isclose(either, np.logaddexp(*apart)))
    True
    """
    codes = set()
    for state in states:
        code = to_whole_number(state)
        if code is None or not 0 <= code < MAX_SET_STATES:
            raise InputError(
                f"{quote(state)} is not a state; the states of a set are codes from 0 to {MAX_SET_STATES - 1}."
            )
        codes.add(code)
    if not codes:
        raise InputError("state_set needs at least one state; a missing cell is NaN.")
    return float(encode_set(codes))


def encode_set(states: Iterable[int]) -> int:
    """Return the code of a set of distinct states; a set of one state has the code of that state."""
    known = list(states)
    return known[0] if len(known) == 1 else -sum(1 << state for state in known)


def decode_set(code: float) -> list[int]:
    """Return the states of the code of a set.

    Examples
    --------
    >>> decode_set(-5)
    [0, 2]
    """
    mask = -int(code)
    return [k for k in range(mask.bit_length()) if mask >> k & 1]


def set_members(codes: NDArray[Any], n_states: int) -> NDArray[np.bool_]:
    """Return which states are in each of some sets, shape ``(sets, n_states)``."""
    masks = -codes.astype(np.int64)
    # States beyond the 63 bits of a mask are in no set.
    bits = masks[:, None] >> np.minimum(np.arange(n_states), 62)
    return np.asarray((bits & 1 > 0) & (np.arange(n_states) < MAX_SET_STATES))


def is_set(codes: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which codes are those of sets. NaN and -1, which mark missing cells, are not."""
    with np.errstate(invalid="ignore"):
        return np.asarray(codes < -1)


def is_valid_set(codes: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which negative numbers are codes of sets of at least two states."""
    is_integer = (np.floor(codes) == codes) & (codes > -(2.0**MAX_SET_STATES))
    masks = np.where(is_integer, -codes, 0).astype(np.int64)
    return np.asarray(np.bitwise_count(masks) >= 2)


def stand_for_no_date(days: FloatArray) -> NDArray[np.bool_]:
    """Return which times are on the first or the last day of most calendars, which data bases hold where there is no date."""
    return np.asarray(np.isin(np.floor(days), NO_DATES))


def is_blank(value: object) -> bool:
    """Return whether a cell of text is missing or empty."""
    return is_missing(value) or (isinstance(value, str) and value == "")


def encode_labels(codes: AbstractSet[int]) -> int:
    """Return the code of a cell that is one of several labels; -1 (missing) if it has none, or one that sets cannot hold."""
    if len(codes) == 1:
        return next(iter(codes))
    return -1 if not codes or max(codes) >= MAX_SET_STATES else encode_set(codes)


def encode_numbers(values: NDArray[Any]) -> tuple[IntArray, NDArray[Any]]:
    """Encode an array of numbers by its distinct values, in order; NaN gets the code -1."""
    observed = ~np.isnan(values) if values.dtype.kind == "f" else np.ones(len(values), dtype=bool)
    distinct, inverse = np.unique(values[observed], return_inverse=True)
    codes = np.full(len(values), -1, dtype=np.intp)
    codes[observed] = inverse
    return codes, distinct


def drop_unused(codes: IntArray, labels: tuple[Category, ...]) -> tuple[IntArray, tuple[Category, ...]]:
    """Drop labels that do not occur, and renumber the codes."""
    used = np.unique(codes[codes >= 0])  # no sets: category types do not have them
    # The code -1 of a missing cell selects the last entry.
    renumbered = np.full(len(labels) + 1, -1, dtype=np.intp)
    renumbered[used] = np.arange(len(used))
    return renumbered[codes], tuple(labels[code] for code in used)


def python_value(value: object) -> Category:
    """Convert a label to a Python scalar; anything but numbers and booleans becomes text."""
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


def _parse_number(label: Category) -> float | None:
    if isinstance(label, bool):
        return None
    try:
        return float(label)
    except (ValueError, OverflowError):
        return None


def _text_error(context: ColumnContext, row: int, value: object, reason: str) -> InputError:
    return InputError(f"Column {quote(context.column)} holds {quote(value)} in {context.row(row)}, {reason}.")


# ------------------------------------------------------------------------------------------------- numbers as text

MIN_NUMBER_SHARE = 0.9
"""If this share of the cells of a text column look like numbers, it was probably meant as numbers."""

# Values that repeat more often than this are probably categories.
_MIN_DISTINCT_SHARE = 0.5
_MAX_NUMBER_LENGTH = 40
_SYMBOLS = r"(?:[$€£¥₹%‰°<>=~≈≤≥±()\s]|USD|EUR|GBP|JPY|CHF|CAD|AUD|CNY|INR)"
_NUMBER = re.compile(
    rf"{_SYMBOLS}*[+\u2212-]?{_SYMBOLS}*"
    r"(?:\d{1,3}(?:[.,'\u2019_\s]\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?"
    r"(?P<unit>[^\d_,;:]*)"
)
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE = re.compile(
    rf"(?:\d{{1,4}}([/.-])\d{{1,2}}\1\d{{1,4}}|\d{{1,2}}[ -]?{_MONTH}[ -]?\d{{2,4}}|{_MONTH} \d{{1,2}},? \d{{4}})"
    r"(?:[T ,]+\d{1,2}:\d{2}.*)?|\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[ap]\.?m\.?)?",
    re.IGNORECASE,
)


def find_number_text(
    codes: IntArray, categories: Sequence[Category], min_share: float = MIN_NUMBER_SHARE
) -> str | None:
    """Find whether the categories of a column look like numbers or dates with units, symbols or another notation.

    Parameters
    ----------
    codes : ndarray of int, shape (n_rows,)
        Codes of the cells; -1 is missing.
    categories : sequence
        The categories.
    min_share : float, optional
        Share of the cells that must look like it.

    Returns
    -------
    str or None
        The first such cell; None if the column looks like categories, or if most values repeat.
    """
    observed = codes[codes >= 0]
    if len(categories) < 2 or len(categories) <= _MIN_DISTINCT_SHARE * len(observed):
        return None
    if not _may_be_number_text(observed, categories, min_share):
        return None
    texts = [_to_short_text(category) for category in categories]
    if are_codes(texts):
        return None
    matches = [_NUMBER.fullmatch(text.strip()) for text in texts]
    units = [match["unit"].strip() if match else "" for match in matches]
    # Letters after a number are a unit if they are the same everywhere, and part of a name otherwise: 3a, 3b, 4a.
    letters = {unit for unit in units if any(map(str.isalpha, unit))}
    looks_numeric = np.array(
        [
            bool(_DATE.fullmatch(text.strip())) or (match is not None and (len(letters) <= 1 or unit not in letters))
            for text, match, unit in zip(texts, matches, units, strict=True)
        ]
    )
    cells = looks_numeric[observed]
    if cells.sum() < min_share * len(observed):
        return None
    return texts[int(observed[np.argmax(cells)])]


def _may_be_number_text(observed: IntArray, categories: Sequence[Category], min_share: float) -> bool:
    """Return False as soon as too many cells are neither numbers nor dates."""
    n_cells = np.bincount(observed, minlength=len(categories)).tolist()
    n_others = 0
    for category, n in zip(categories, n_cells, strict=True):
        text = _to_short_text(category).strip()
        if not _NUMBER.fullmatch(text) and not _DATE.fullmatch(text):
            n_others += n
            if len(observed) - n_others < min_share * len(observed):
                return False
    return True


def _to_short_text(category: Category) -> str:
    return category if isinstance(category, str) and len(category) <= _MAX_NUMBER_LENGTH else ""
