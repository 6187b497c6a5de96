"""Columns of a text file, each with the type that all of its observed cells have."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Container, Iterable, Sequence
from typing import Any, NamedTuple

from ..errors import InputError
from .delimited import CheckedText
from .notation import LocalNumbers, may_be_grouped, read_local_numbers

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
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
    if not (_DATE.fullmatch(first) or _DATETIME.fullmatch(first)):
        return column
    texts = column.to_list()
    for pattern, read, dtype in (
        (_DATE, dt.date.fromisoformat, polars.Date),
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
