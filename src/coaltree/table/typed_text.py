"""Columns of a text file, each with the type that all of its observed cells have."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..errors import InputError
from .delimited import CheckedText
from .notation import LocalNumbers, read_local_numbers

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_DATETIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}([.]\d{1,6})?)?(Z|[+-]\d{2}:?\d{2})?")


class TextColumns(NamedTuple):
    """The columns of a text file.

    Parameters
    ----------
    texts : polars.DataFrame
        All columns as text without blanks around it; null is missing.
    frame : polars.DataFrame
        The columns with their types.
    local : LocalNumbers
        The columns in which local notation was read.
    """

    texts: Any
    frame: Any
    local: LocalNumbers


def type_columns(polars: Any, checked: CheckedText, source: str, na_values: Iterable[str]) -> TextColumns:
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

    Returns
    -------
    TextColumns

    Raises
    ------
    InputError
        When the text cannot be read.
    """
    texts = _blank_to_null(polars, _read_text(polars, checked, source), na_values)
    frame = texts.select(_typed(polars, column) for column in texts.iter_columns())
    return TextColumns(texts, *read_local_numbers(polars, texts, frame, checked.delimiter))


def _read_text(polars: Any, checked: CheckedText, source: str) -> Any:
    """Read every column as text; the types are found column by column, over all rows."""
    try:
        frame = polars.read_csv(checked.text.encode(), separator=checked.delimiter, infer_schema=False)
    except polars.exceptions.PolarsError as error:
        raise InputError(f"{source} cannot be read: {str(error).splitlines()[0]}.") from None
    if frame.shape != (checked.n_rows, len(checked.header)):
        raise InputError(f"{source} cannot be read: a quotation mark in it is not closed.")
    frame.columns = list(checked.header)
    return frame


def _blank_to_null(polars: Any, texts: Any, na_values: Iterable[str]) -> Any:
    missing = sorted({"", *(value.strip() for value in na_values)})
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
