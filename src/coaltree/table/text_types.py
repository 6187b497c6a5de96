"""Columns of a text file, each with the type that all of its observed cells have."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Container, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from .cells import Category, IntArray
from .delimited import CheckedText
from .messages import listing

_DECIMAL_COMMA = r"^[+-]?(\d{1,3}(\.\d{3})+|\d+)?(,\d+)?([eE][+-]?\d+)?$"
_GROUPED_BY_DOTS = r"^[+-]?(\d{1,3}(\.\d{3})+|\d+)$"
# What can separate fields that have commas in them without quotes.
_LEAVE_COMMAS = (";", "\t")
_FIRST = 1000
_GROUPED_BY_COMMAS = r"^[+-]?[1-9]\d{0,2},\d{3}$"

# A column of text is probably meant as numbers if this share of its cells reads like them ...
_MOST_CELLS = 0.9
# ... and there are as many different ones as this share of its cells.
_MOST_DISTINCT = 0.5
_LONGEST = 40
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


def example_of_numbers(codes: IntArray, categories: Sequence[Category], least: float = _MOST_CELLS) -> str | None:
    """Find out whether the categories of a column look like numbers or dates that were written with decoration.

    Parameters
    ----------
    codes : ndarray of int, shape (n_rows,)
        Codes of the cells; -1 is missing.
    categories : sequence
        The categories.
    least : float, optional
        Share of the cells that have to look so.

    Returns
    -------
    str or None
        The first such cell; None when the column looks like categories, or most values come again and again.
    """
    observed = codes[codes >= 0]
    if len(categories) < 2 or len(categories) <= _MOST_DISTINCT * len(observed):
        return None
    if not _may_be_numbers(observed, categories, least):
        return None
    texts = [_short_text(category) for category in categories]
    matches = [_NUMBER.fullmatch(text.strip()) for text in texts]
    units = [match["unit"].strip() if match else "" for match in matches]
    # Letters behind a number are a unit if they are the same everywhere, and part of a name otherwise: 3a, 3b, 4a.
    letters = {unit for unit in units if any(map(str.isalpha, unit))}
    written = np.array(
        [
            bool(_DATE.fullmatch(text.strip())) or (match is not None and (len(letters) <= 1 or unit not in letters))
            for text, match, unit in zip(texts, matches, units, strict=True)
        ]
    )
    looks = written[observed]
    if looks.sum() < least * len(observed):
        return None
    return texts[int(observed[np.argmax(looks)])]


def _may_be_numbers(observed: IntArray, categories: Sequence[Category], least: float) -> bool:
    """Look at the categories until there are too many cells with others than numbers and dates."""
    n_cells = np.bincount(observed, minlength=len(categories)).tolist()
    n_others = 0
    for category, n in zip(categories, n_cells, strict=True):
        text = _short_text(category).strip()
        if not _NUMBER.fullmatch(text) and not _DATE.fullmatch(text):
            n_others += n
            if len(observed) - n_others < least * len(observed):
                return False
    return True


def _short_text(category: Category) -> str:
    return category if isinstance(category, str) and len(category) <= _LONGEST else ""


class LocalNumbers(NamedTuple):
    """Columns in which local notation was read: decimal commas, or nothing but points between groups of digits."""

    decimal: tuple[str, ...]
    grouped: tuple[str, ...]

    def sentences(self, wanted: Container[str]) -> list[str]:
        """Say so, for some of the columns."""
        kinds = ((self.decimal, "decimal commas"), (self.grouped, "points between groups of three digits"))
        told = [([name for name in names if name in wanted], what) for names, what in kinds]
        return [
            f"Column{'s' if len(names) > 1 else ''} {listing(names)}: {what} were read as numbers."
            for names, what in told
            if names
        ]


def read_local_numbers(polars: Any, texts: Any, frame: Any, delimiter: str) -> tuple[Any, LocalNumbers]:
    """Read the columns of a text file that are numbers with decimal commas.

    A comma can be a decimal comma only where it does not separate fields. A file with decimal commas has no decimal
    points, so that points group the digits of its whole numbers.

    Parameters
    ----------
    polars : module
    texts : polars.DataFrame
        Columns as text: all that have no other type, and all that `may_be_grouped`.
    frame : polars.DataFrame
        The columns with their types.
    delimiter : str
        What separates the fields.

    Returns
    -------
    frame : polars.DataFrame
    local : LocalNumbers
    """
    if delimiter not in _LEAVE_COMMAS:
        return frame, LocalNumbers((), ())
    read = {
        name: _without_commas(polars, texts[name])
        for name in frame.columns
        if frame[name].dtype == polars.String and _has_decimal_commas(texts[name], delimiter)
    }
    decimal = tuple(read)
    grouped: list[str] = []
    if decimal:
        grouped = [name for name in texts.columns if _is_grouped(frame[name].dtype, texts[name], polars)]
        read |= {name: _without_commas(polars, texts[name]) for name in grouped}
    return frame.with_columns(read.values()), LocalNumbers(decimal, tuple(grouped))


def may_be_grouped(polars: Any, text: Any, column: Any, delimiter: str) -> bool:
    """Say whether a column of numbers may have points between groups of digits, if others have decimal commas.

    Parameters
    ----------
    polars : module
    text : polars.Series
        The column as text.
    column : polars.Series
        The column with its type.
    delimiter : str
        What separates the fields.

    Returns
    -------
    bool
    """
    return delimiter in _LEAVE_COMMAS and _is_grouped(column.dtype, text, polars)


def _has_decimal_commas(column: Any, delimiter: str) -> bool:
    cells = column.drop_nulls()
    commas = cells.filter(cells.str.contains(",", literal=True))
    if commas.is_empty() or not bool((cells.str.contains(_DECIMAL_COMMA) & cells.str.contains(r"\d")).all()):
        return False
    # Semicolons separate fields because commas do not; with tabs, 1,250 may as well be a thousand and something.
    return delimiter == ";" or not bool(commas.str.contains(_GROUPED_BY_COMMAS).all())


def _is_grouped(dtype: Any, column: Any, polars: Any) -> bool:
    if dtype not in (polars.Float64, polars.String):
        return False
    cells = column.drop_nulls()
    return (
        # The first cells settle it for most columns.
        bool(cells.head(_FIRST).str.contains(_GROUPED_BY_DOTS).all())
        and bool(cells.str.contains(".", literal=True).any())
        and bool(cells.str.contains(_GROUPED_BY_DOTS).all())
        and not bool(cells.str.contains(r"^[+-]?0\.").any())
    )


def _without_commas(polars: Any, column: Any) -> Any:
    plain = column.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    return plain.cast(polars.Float64)


_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_DATETIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}([.]\d{1,6})?)?(Z|[+-]\d{2}:?\d{2})?")
_CELLS_AT_ONCE = 2**20


class TextColumns(NamedTuple):
    """The columns of a text file.

    Parameters
    ----------
    texts : polars.DataFrame
        The columns as text without blanks around it, those that were asked for and those that are text; null is missing.
    frame : polars.DataFrame
        The columns with their types.
    local : LocalNumbers
        The columns in which local notation was read.
    """

    texts: Any
    frame: Any
    local: LocalNumbers


def type_columns(
    polars: Any,
    checked: CheckedText,
    source: str,
    na_values: Iterable[str],
    kept: Container[str] | None = None,
) -> TextColumns:
    """Read the columns of a text file, and find out their types.

    Parameters
    ----------
    polars : module
    checked : CheckedText
        The content of the file.
    source : str
        The file's name, for messages.
    na_values : iterable of str
        What stands for a missing cell.
    kept : container of str, optional
        The columns whose text is wanted even if it is numbers, which takes several times their space; by default all.

    Returns
    -------
    TextColumns

    Raises
    ------
    InputError
        When the text cannot be read.
    """
    missing = sorted({"", *(value.strip() for value in na_values)})
    read = _read_text(polars, checked, source).get_columns()
    texts: list[Any] = []
    typed: list[Any] = []
    at_once = max(_CELLS_AT_ONCE // checked.n_rows, 1)
    read.reverse()
    while read:
        # Text takes several times the space of numbers: it is let go as soon as a column has its type.
        some = [read.pop() for _ in range(min(at_once, len(read)))]
        for text in _blank_to_null(polars, polars.DataFrame(some), missing).iter_columns():
            column = _typed(polars, text)
            typed.append(column)
            if (
                kept is None
                or text.name in kept
                or column.dtype == polars.String
                or may_be_grouped(polars, text, column, checked.delimiter)
            ):
                texts.append(text)
    frame = polars.DataFrame(typed)
    columns = polars.DataFrame(texts)
    return TextColumns(columns, *read_local_numbers(polars, columns, frame, checked.delimiter))


def _read_text(polars: Any, checked: CheckedText, source: str) -> Any:
    """Read every column as text; the types are found column by column, over all rows."""
    unclosed = InputError(f"{source} cannot be read: a quotation mark in it is not closed.")
    try:
        frame = polars.read_csv(checked.data, separator=checked.delimiter, infer_schema=False)
    except polars.exceptions.PolarsError as error:
        if checked.data.count(b'"') % 2:
            raise unclosed from None
        raise InputError(f"{source} cannot be read: {str(error).splitlines()[0]}.") from None
    if frame.shape != (checked.n_rows, len(checked.header)):
        raise unclosed
    frame.columns = list(checked.header)
    return frame


def _blank_to_null(polars: Any, texts: Any, missing: Sequence[str]) -> Any:
    cell = polars.all().str.strip_chars()
    return texts.select(polars.when(~cell.is_in(missing)).then(cell))


def _typed(polars: Any, column: Any) -> Any:
    """Give a column of text the type that all of its observed cells have; text when there is none."""
    n_missing = column.null_count()
    if n_missing == len(column):
        return column.cast(polars.Float64)
    for dtype in (polars.Int64, polars.Float64):
        numbers = column.cast(dtype, strict=False)
        if numbers.null_count() == n_missing:
            return numbers
    lower = column.str.to_lowercase()
    if bool(lower.drop_nulls().is_in(["true", "false"]).all()):
        return (lower == "true").alias(column.name)
    return _times(polars, column)


def _times(polars: Any, column: Any) -> Any:
    """Read ISO 8601 dates or times; leave the column as it is when any cell is something else."""
    first = column.drop_nulls()[0]
    if not (_ISO_DATE.fullmatch(first) or _DATETIME.fullmatch(first)):
        return column
    texts = column.to_list()
    for pattern, read, dtype in (
        (_ISO_DATE, dt.date.fromisoformat, polars.Date),
        (_DATETIME, _utc, polars.Datetime("us")),
    ):
        if all(text is None or pattern.fullmatch(text) for text in texts):
            try:
                times = [None if text is None else read(text) for text in texts]
            except (ValueError, OverflowError):  # such as a 30th of February
                return column
            return polars.Series(column.name, times, dtype=dtype)
    return column


def _utc(text: str) -> dt.datetime:
    """Read a time; one with an offset is brought to UTC, as times without are taken to be."""
    time = dt.datetime.fromisoformat(text)
    return time if time.tzinfo is None else time.astimezone(dt.UTC).replace(tzinfo=None)
