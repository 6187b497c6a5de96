"""Columns of a file as the user declares them: row names, categories or numbers, whatever they look like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import InputError
from .wording import row_label


def as_text(polars: Any, column: Any) -> Any:
    """Return a column as text.

    Parameters
    ----------
    polars : module
    column : polars.Series

    Returns
    -------
    polars.Series

    Raises
    ------
    InputError
        For lists, bytes and other things that text cannot stand for.
    """
    if column.dtype.is_nested() or column.dtype in (polars.Binary, polars.Object):
        raise InputError(
            f"Column {column.name!r} is of type {column.dtype}, which can be neither row names nor categories."
        )
    return column.cast(polars.String)


def as_enum(polars: Any, column: Any) -> Any:
    """Make a column of text categorical, with numbers in the order of numbers.

    Parameters
    ----------
    polars : module
    column : polars.Series

    Returns
    -------
    polars.Series
    """
    values = column.drop_nulls().unique().sort()
    numbers = values.cast(polars.Float64, strict=False)
    if numbers.null_count() == 0:
        values = values.gather(numbers.arg_sort())
    return column.cast(polars.Enum(values.filter(values != "")))


def as_numbers(polars: Any, column: Any, row_names: Sequence[str] | None) -> Any:
    """Return a column as numbers: truth values as 0 and 1, text as the numbers that it spells.

    Parameters
    ----------
    polars : module
    column : polars.Series
    row_names : sequence of str or None
        For messages.

    Returns
    -------
    polars.Series

    Raises
    ------
    InputError
        When a cell is no number: nothing is taken as missing that somebody has written down.
    """
    if column.dtype.is_numeric() or column.dtype.is_temporal():
        return column
    if column.dtype == polars.Boolean:
        return column.cast(polars.Int8)
    text = as_text(polars, column)
    observed = text.is_not_null() & (text != "").fill_null(False)
    numbers = text.cast(polars.Float64, strict=False)
    odd = (observed & numbers.is_null()).arg_true()
    if len(odd):
        row = int(odd[0])
        raise InputError(
            f"Column {column.name!r} is to hold numbers, but {row_label(row, row_names)} holds {text[row]!r}, which is not "
            f"a number: fix the cell, or have it taken as missing with --na-value {text[row]!r}."
        )
    return numbers
