"""Columns of a table: real ones as floats, categorical ones as codes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..errors import InputError, InputWarning
from .cells import Category, Cells, FloatArray, IntArray, TextCells
from .names import distinct_names
from .notation import example_of_numbers
from .selection import CategoricalFeatures, Role, resolve_roles
from .sources import Source, open_source
from .wording import Place, count, listing, row_label

MAX_CATEGORIES = 1000
"""Most distinct values that a categorical column may have."""

_PLAINLY = "write plain numbers with a point, dates as 2020-12-31"
# In a smaller table a column of text without repeats is not yet a sign of identifiers.
_IDENTIFIER_ROWS = 10


@dataclass(frozen=True, eq=False)
class RealColumn:
    """A column of numbers.

    Parameters
    ----------
    name : str
        The column's name.
    index : int
        Its position in the table.
    values : ndarray of float64, shape (n_rows,)
        The cells; NaN is missing. Points in time are days since 1970-01-01.
    """

    name: str
    index: int
    values: FloatArray


@dataclass(frozen=True, eq=False)
class CategoricalColumn:
    """A column of categories.

    Parameters
    ----------
    name : str
        The column's name.
    index : int
        Its position in the table.
    codes : ndarray of int, shape (n_rows,)
        Positions in `categories`; -1 is missing.
    categories : tuple of str, int, float or bool
        The categories that occur (those of the fit, for new rows), sorted or in the order that the frame
        declares.
    """

    name: str
    index: int
    codes: IntArray
    categories: tuple[Category, ...]


Column: TypeAlias = RealColumn | CategoricalColumn


@dataclass(frozen=True, eq=False)
class Table:
    """A table, column by column.

    Parameters
    ----------
    columns : tuple of RealColumn or CategoricalColumn
        The columns in the table's order.
    n_rows : int
        Number of rows.
    row_names : tuple of str or None
        Distinct names of the rows; None when the rows have no names.
    remarks : tuple of str
        What a user should know of how the columns were read.
    """

    columns: tuple[Column, ...]
    n_rows: int
    row_names: tuple[str, ...] | None
    remarks: tuple[str, ...] = ()

    @property
    def real(self) -> list[RealColumn]:
        """The real columns, in the table's order."""
        return [column for column in self.columns if isinstance(column, RealColumn)]

    @property
    def categorical(self) -> list[CategoricalColumn]:
        """The categorical columns, in the table's order."""
        return [column for column in self.columns if isinstance(column, CategoricalColumn)]

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(column.name for column in self.columns)


def read_columns(
    X: Any,
    categorical_features: CategoricalFeatures = "from_dtype",
    *,
    feature_names: Sequence[str] | None = None,
    categories: Mapping[str, Sequence[Category]] | None = None,
    row_names: Sequence[str] | None = None,
) -> Table:
    """Read a table.

    Parameters
    ----------
    X : frame, 2-D array or list of lists
        The table, with a row for each thing to cluster. Frames of pandas, polars and pyarrow are known, and
        any other that narwhals supports. NaN, None, NaT, pandas' NA, nulls and, in columns of text, empty
        text are missing cells.
    categorical_features : "from_dtype", None, or sequence of bool, int or str
        Which columns are categorical, as in scikit-learn's HistGradientBoosting estimators. With
        ``"from_dtype"`` text, truth values and category types are categorical, numbers and times are real.
        With a boolean mask, indices or names, the columns given are categorical, whatever their type, and all
        others are real.
    feature_names : sequence of str, optional
        Column names; by default those of the frame, or ``x0``, ``x1``, ... for an array.
    categories : mapping of str to sequence, optional
        For new rows: the categories of each categorical column of the table that was fit. The columns named
        here are categorical and all others real, so that new rows are read as the fit was;
        `categorical_features` is not looked at. A category that is not among them is read as missing, with a
        warning.
    row_names : sequence of str, optional
        Row names; by default those of a pandas index other than the default one.

    Returns
    -------
    Table

    Raises
    ------
    InputError
        When the table cannot be used; the message says where and what to try.

    Warns
    -----
    InputWarning
        For row names that are not distinct, text columns that look like identifiers, and new categories.
    """
    source = open_source(X, feature_names)
    names = source.row_names if row_names is None else _given_row_names(row_names, source.n_rows)
    roles, real_reason = _roles(categorical_features, categories, source)
    columns: list[Column] = []
    infinite: list[tuple[Column, IntArray]] = []
    identifiers: list[str] = []
    remarks: list[str] = []
    for j, (name, role) in enumerate(zip(source.names, roles, strict=True)):
        place = Place(name, names)
        cells = source.read(j, place)
        column = _read_column(j, cells, role, place, real_reason)
        bad = _infinite_rows(column)
        if len(bad):
            infinite.append((column, bad))
        if isinstance(column, CategoricalColumn) and categories is None:
            example = _written_number(column, cells, role)
            _check_number_of_categories(column, example)
            if example is not None:
                remarks.append(
                    f"Column {name!r} is text such as {example!r} and was taken as categories: {_PLAINLY}, declare it "
                    "categorical if that is what it is, or leave the column out."
                )
            elif _looks_like_identifier(column, cells):
                identifiers.append(name)
        columns.append(column)
    if infinite:
        raise _infinity_error(infinite, names)
    if identifiers:
        _warn_identifiers(identifiers)
    if categories is not None:
        columns = _recode(columns, categories)
    return Table(tuple(columns), source.n_rows, names, tuple(remarks))


def _given_row_names(row_names: Sequence[str], n_rows: int) -> tuple[str, ...]:
    if len(row_names) != n_rows:
        raise InputError(f"row_names has {count(len(row_names), 'name')}, but the table has {count(n_rows, 'row')}.")
    return distinct_names(row_names)


def _roles(
    categorical_features: CategoricalFeatures,
    categories: Mapping[str, Sequence[Category]] | None,
    source: Source,
) -> tuple[list[Role], str]:
    """Give each column its role, and the reason to add when a column that must be real holds text."""
    if categories is not None:
        absent = [name for name in categories if name not in source.names]
        if absent:
            raise InputError(
                f"The table lacks the categorical {'column' if len(absent) == 1 else 'columns'} "
                f"{listing(absent)} that it had when the model was fit."
            )
        roles: list[Role] = ["categorical" if name in categories else "real" for name in source.names]
        return roles, "but held numbers when the model was fit: mark the cell as missing or fix it"
    roles = resolve_roles(categorical_features, source.names)
    if categorical_features is None:
        return roles, (
            "and categorical_features=None takes no column as categorical: convert the column to numbers, "
            'drop it, or use categorical_features="from_dtype"'
        )
    return roles, (
        "and categorical_features does not name the column: add it there, convert it to numbers, drop it, "
        'or use categorical_features="from_dtype"'
    )


def _read_column(index: int, cells: Cells, role: Role, place: Place, real_reason: str) -> Column:
    if role == "auto" and isinstance(cells, TextCells):
        cells.check_not_mostly_numbers(place)
    if role == "categorical" or (role == "auto" and cells.categorical):
        return CategoricalColumn(place.column, index, *cells.as_categorical())
    return RealColumn(place.column, index, cells.as_real(place, real_reason))


def _infinite_rows(column: Column) -> IntArray:
    if isinstance(column, RealColumn):
        return np.flatnonzero(np.isinf(column.values))
    bad = [code for code, value in enumerate(column.categories) if isinstance(value, float) and np.isinf(value)]
    return np.flatnonzero(np.isin(column.codes, bad)) if bad else np.empty(0, dtype=np.intp)


def _infinity_error(infinite: list[tuple[Column, IntArray]], row_names: tuple[str, ...] | None) -> InputError:
    n_cells = sum(len(rows) for _, rows in infinite)
    column, rows = infinite[0]
    return InputError(
        f"The table has {count(n_cells, 'infinite cell')}, the first in column {column.name!r}, "
        f"{row_label(int(rows[0]), row_names)}: numbers must be finite or missing; replace infinity by a "
        "missing value (NaN)."
    )


def _written_number(column: CategoricalColumn, cells: Cells, role: Role) -> str | None:
    """Give a cell of a column of text that nobody declared categorical and that looks like numbers or dates."""
    if role != "auto" or not isinstance(cells, TextCells) or cells.order is not None:
        return None
    return example_of_numbers(column.codes, column.categories)


def _check_number_of_categories(column: CategoricalColumn, example: str | None) -> None:
    n_categories = len(column.categories)
    if n_categories > MAX_CATEGORIES and example is not None:
        raise InputError(
            f"Column {column.name!r} is text such as {example!r} with {n_categories} different values, and at most "
            f"{MAX_CATEGORIES} categories are allowed: {_PLAINLY}, or leave the column out."
        )
    if n_categories > MAX_CATEGORIES:
        raise InputError(
            f"Column {column.name!r} has {n_categories} categories in {count(len(column.codes), 'row')}, "
            f"and at most {MAX_CATEGORIES} are allowed: drop it, group the rare values, or use it as row "
            "names."
        )


def _looks_like_identifier(column: CategoricalColumn, cells: Cells) -> bool:
    n_rows = len(column.codes)
    is_text = isinstance(cells, TextCells) and cells.order is None
    return is_text and n_rows > _IDENTIFIER_ROWS and len(column.categories) == n_rows


def _warn_identifiers(names: list[str]) -> None:
    one = len(names) == 1
    warnings.warn(
        f"{'Column' if one else 'Columns'} {listing(names)} {'has' if one else 'have'} a different text in "
        f"every row and {'looks like an identifier' if one else 'look like identifiers'}, which adds nothing "
        f"to the tree: drop {'it' if one else 'them'} or use {'it' if one else 'one'} as the index.",
        InputWarning,
        stacklevel=3,
    )


def _recode(columns: list[Column], categories: Mapping[str, Sequence[Category]]) -> list[Column]:
    """Encode the categorical columns by the categories of the fit, and warn about others."""
    recoded: list[Column] = []
    findings: list[str] = []
    for column in columns:
        if isinstance(column, RealColumn):
            recoded.append(column)
            continue
        known = tuple(categories[column.name])
        by_value = {value: code for code, value in enumerate(known)}
        # The same file column is text in one file and numbers in another that happens to hold only digits.
        by_text = {str(value): code for code, value in enumerate(known)}
        new_codes = [by_value.get(value, by_text.get(str(value), -1)) for value in column.categories]
        # The last entry is what the code -1 of a missing cell picks.
        codes = np.array([*new_codes, -1], dtype=np.intp)[column.codes]
        recoded.append(CategoricalColumn(column.name, column.index, codes, known))
        counts = np.bincount(column.codes[column.codes >= 0], minlength=len(new_codes))
        unseen = [
            f"{value!r} ({count(int(n), 'row')})"
            for value, code, n in zip(column.categories, new_codes, counts, strict=True)
            if code < 0
        ]
        if unseen:
            more = f" and {len(unseen) - 5} more" if len(unseen) > 5 else ""
            findings.append(f"column {column.name!r}: {', '.join(unseen[:5])}{more}")
    if findings:
        warnings.warn(
            f"Categories that did not occur when the model was fit are read as missing; {'; '.join(findings)}.",
            InputWarning,
            stacklevel=3,
        )
    return recoded
