"""Columns of a table: real ones as floats, categorical ones as codes.

`read_columns` reads the rows of a fit, `read_with_categories` new rows with the categories of the fit.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._validation import quote
from ..errors import InputError, InputWarning
from .cells import (
    MAX_SET_STATES,
    Category,
    Cells,
    FloatArray,
    IntArray,
    LabelledCells,
    NumberCells,
    SetCells,
    TextCells,
    TimeCells,
    decode_set,
    encode_labels,
    find_number_text,
    is_set,
    stand_for_no_date,
)
from .inputs import Source, find_datatypes, open_source
from .labels import ColumnContext, count, distinct_names, listing, row_label
from .limits import MAX_CATEGORIES, MAX_TEXT_CATEGORIES
from .notation import PLAIN, Notation, Strays, read_days, strays_error
from .shape_hints import describe_long_table
from .symbols import CHARACTER_DATATYPES

POOLED_CATEGORY = "(other)"
"""The category of the pooled values of a text column."""

MIN_IDENTIFIER_ROWS = 11
"""From this number of rows on, a text column without repeats counts as identifiers."""

_NUMBER_TEXT_ADVICE = (
    "write plain numbers with a point, dates as 2020-12-31 (in a frame, as a column of dates: pd.to_datetime)"
)
_NUMBERS_IN_FIT = (
    "but held numbers or dates when the model was fit: fix the cell, mark it as missing, or convert the column"
)


@dataclass(frozen=True, eq=False)
class RealColumn:
    """A column of numbers.

    Parameters
    ----------
    name : str
        The column name.
    index : int
        Its position in the frame or array that was read.
    values : ndarray of float64, shape (n_rows,)
        The cells; NaN is missing. Points in time are days since 1970-01-01.
    time : bool
        Whether they are points in time.
    notation : Notation or None
        How the numbers are written in the file that the table was read from; None for plain numbers.
    declared : bool
        Whether the user says that the column is real.
    """

    name: str
    index: int
    values: FloatArray
    time: bool = False
    notation: Notation | None = None
    declared: bool = False


@dataclass(frozen=True, eq=False)
class CategoricalColumn:
    """A column of categories.

    Parameters
    ----------
    name : str
        The column name.
    index : int
        Its position in the frame or array that was read.
    codes : ndarray of int, shape (n_rows,)
        Positions in `categories`; -1 is missing, and less than -1 a set of them, see `coaltree.table.cells`.
    categories : tuple of str, int, float or bool
        The categories that occur, or those of the fit for new rows; sorted, or in the order that the frame declares.
    unseen : ndarray of int
        For new rows: the rows whose cell holds a category that did not occur in the fit.
    datatype : str or None
        For characters of taxa: one of `coaltree.table.symbols.CHARACTER_DATATYPES`.
    """

    name: str
    index: int
    codes: IntArray
    categories: tuple[Category, ...]
    unseen: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    datatype: str | None = None


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
        Distinct names of the rows; None if they have no names.
    remarks : tuple of str
        Notes for the user on how the columns were read.
    id_column : str or None
        The column of a file that held the row names; it is not among `columns`.
    """

    columns: tuple[Column, ...]
    n_rows: int
    row_names: tuple[str, ...] | None
    remarks: tuple[str, ...] = ()
    id_column: str | None = None

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
    datatypes: Mapping[str, str] | None = None,
    notations: Mapping[str, Notation] | None = None,
    real: Collection[str] = (),
) -> Table:
    """Read a table.

    Parameters
    ----------
    X : frame, 2-D array or list of lists
        The table, with a row for each thing to cluster: a frame of pandas, polars, pyarrow or any other library that
        narwhals supports. NaN, None, NaT, pandas' NA, nulls and, in columns of text, empty text are missing cells. A cell
        that is a set of categories has one of them.
    categorical_features : "from_dtype", None, or sequence of bool, int or str
        Which columns are categorical, as in scikit-learn's HistGradientBoosting estimators. With
        ``"from_dtype"`` text, booleans and category types are categorical, numbers and times are real.
        With a boolean mask, indices or names, these columns are categorical, whatever their type, and all others are real.
    feature_names : sequence of str, optional
        Column names; by default those of the frame, or ``x0``, ``x1``, ... for an array.
    categories : mapping of str to sequence, optional
        For new rows: the categories of each categorical column of the table that was fit. The columns named
        here are categorical and all others real, and `categorical_features` is ignored. A category that is not among
        them is read as missing, with a warning.
    row_names : sequence of str, optional
        Row names; by default those of a pandas index other than the default one.
    datatypes : mapping of str to str, optional
        The datatypes of columns that are characters; by default those of a frame of `coaltree.read_characters`.
    notations : mapping of str to Notation, optional
        How the numbers of some columns were written in the file that the table was read from.
    real : collection of str, optional
        Columns of numbers of which the user has said that they are real.

    Returns
    -------
    Table

    Raises
    ------
    InputError
        If the table cannot be used; the message says where and what to try.

    Warns
    -----
    InputWarning
        For row names that are not distinct, text columns that look like identifiers, and new categories.
    """
    source = open_source(X, feature_names)
    if row_names is not None:
        source = replace(source, row_names=_check_row_names(row_names, source.n_rows))
    if categories is not None:
        return read_with_categories(source, categories)
    roles = resolve_roles(categorical_features, source.names)
    datatypes = find_datatypes(X) if datatypes is None else datatypes
    columns: list[Column] = []
    identifiers: list[str] = []
    remarks: list[str] = []
    for column, cells, role in _iterate_columns(source, roles, _explain_real(categorical_features)):
        if isinstance(column, CategoricalColumn) and datatypes.get(column.name) in CHARACTER_DATATYPES:
            column = replace(column, datatype=datatypes[column.name])
        elif isinstance(column, CategoricalColumn):
            column = _drop_full_sets(column)
            example = _find_number_text(cells, role)
            if example is None and role == "auto" and _is_identifier(cells):
                identifiers.append(column.name)
                column = _ignore_column(column)
            elif example is None and _can_pool(cells, column):
                remarks.append(
                    f"Column {quote(column.name)} has {len(column.categories):,} categories: the "
                    f"{MAX_TEXT_CATEGORIES - 1} most frequent are used, and the others are pooled as {POOLED_CATEGORY!r}."
                )
                column = _pool_categories(column)
            _check_number_of_categories(column, example)
            if isinstance(cells, SetCells) and len(column.categories) > MAX_SET_STATES:
                remarks.append(
                    f"Column {quote(column.name)} has {len(column.categories)} categories, and sets may hold the first "
                    f"{MAX_SET_STATES} only: cells with sets of others are read as missing."
                )
            if role == "auto" and _has_numbers_and_sets(cells, column):
                remarks.append(
                    f"Column {quote(column.name)} has sets of numbers, and was read as categories: make these cells missing if "
                    "its numbers are measurements, or declare it categorical if they are not."
                )
            if example is not None:
                remarks.append(
                    f"Column {quote(column.name)} is text such as {example!r} and was read as categories: {_NUMBER_TEXT_ADVICE}, "
                    "declare it categorical if it is, or leave the column out."
                )
        elif isinstance(cells, TimeCells) and (n_absent := int(stand_for_no_date(cells.values).sum())):
            remarks.append(
                f"Column {quote(column.name)} holds 9999-12-31 or 0001-01-01 in {count(n_absent, 'cell')}. These dates stand for "
                "no date, and are read as missing, so imputation fills them. Declare the column categorical to keep them."
            )
        if isinstance(column, RealColumn):
            notation = notations.get(column.name) if notations else None
            column = replace(column, notation=notation, declared=role == "real" or column.name in real)
        columns.append(column)
    if identifiers:
        _warn_identifiers(identifiers)
    numbers = ((c.name, c.values if isinstance(c, RealColumn) else c.codes) for c in columns)
    remarks += describe_long_table(numbers, source.n_rows)
    return Table(tuple(columns), source.n_rows, source.row_names, tuple(remarks))


def read_with_categories(
    source: Source,
    categories: Mapping[str, Sequence[Category]],
    unseen: Literal["missing", "error"] = "missing",
    formats: Mapping[str, Notation | None] | None = None,
) -> Table:
    """Read new rows with the categories of the fit.

    Parameters
    ----------
    source : Source
        The new rows.
    categories : mapping of str to sequence
        The categories of each categorical column of the fit; all other columns are real.
    unseen : {"missing", "error"}, default="missing"
        Whether a cell with another category is read as missing, with a warning, or is an error.
    formats : mapping of str to (Notation or None), optional
        How text in a real column is read: by the notation of the fit, as times where it is None, and as plain numbers for all
        other columns.

    Returns
    -------
    Table
    """
    absent = [name for name in categories if name not in source.names]
    if absent:
        raise InputError(
            f"The table lacks the categorical {'column' if len(absent) == 1 else 'columns'} "
            f"{listing(absent)} that it had when the model was fit."
        )
    roles: list[Role] = ["categorical" if name in categories else "real" for name in source.names]
    columns: list[Column] = []
    unknown: list[str] = []
    for column, _, _ in _iterate_columns(source, roles, _NUMBERS_IN_FIT, formats or {}):
        if isinstance(column, RealColumn):
            columns.append(column)
            continue
        known_categories = tuple(categories[column.name])
        if not known_categories:  # a column that the fit ignored
            columns.append(_ignore_column(column))
            continue
        codes, rows, new = recode_categories(column.codes, column.categories, known_categories)
        if new and unseen == "error":
            raise _unseen_error(column, int(rows[0]), known_categories, source.row_names)
        if new:
            more = f" and {len(new) - 5} more" if len(new) > 5 else ""
            unknown.append(f"column {quote(column.name)}: {', '.join(new[:5])}{more}")
        columns.append(replace(column, codes=codes, categories=known_categories, unseen=rows))
    if unknown:
        warnings.warn(
            f"Categories that did not occur when the model was fit are read as missing; {'; '.join(unknown)}.",
            InputWarning,
            stacklevel=3,
        )
    return Table(tuple(columns), source.n_rows, source.row_names)


def _unseen_error(
    column: CategoricalColumn, row: int, known: Sequence[Category], row_names: tuple[str, ...] | None
) -> InputError:
    return InputError(
        f"Column {quote(column.name)} holds {quote(cell_value(column, row))} in {row_label(row, row_names)}, which "
        f"did not occur when the model was fit (known are {listing(known, limit=10) or 'no categories'}): fix the cell, "
        'mark it as missing, or have such cells read as missing (unseen_categories="missing", on the command line '
        "--unseen missing)."
    )


def _check_row_names(row_names: Sequence[str], n_rows: int) -> tuple[str, ...]:
    if len(row_names) != n_rows:
        raise InputError(f"row_names has {count(len(row_names), 'name')}, but the table has {count(n_rows, 'row')}.")
    return distinct_names(row_names)


def _explain_real(categorical_features: CategoricalFeatures) -> str:
    """Return the reason why a column must be real, which ends the message if it holds text."""
    if categorical_features is None:
        return (
            "and categorical_features=None takes no column as categorical: convert the column to numbers, "
            'drop it, or use categorical_features="from_dtype"'
        )
    return (
        "and categorical_features does not name the column: add it there, convert it to numbers, drop it, "
        'or use categorical_features="from_dtype"'
    )


def _iterate_columns(
    source: Source,
    roles: Sequence[Role],
    real_reason: str,
    formats: Mapping[str, Notation | None] | None = None,
) -> Iterator[tuple[Column, Cells, Role]]:
    """Read the columns one by one; after the last, refuse infinite cells, and text among numbers.

    With formats, text in real columns is read as in the fit.
    """
    infinite: list[tuple[Column, IntArray]] = []
    strays: list[Strays] = []
    for name, position, role in zip(source.names, source.positions, roles, strict=True):
        context = ColumnContext(name, source.row_names)
        cells = source.read(position, context)
        found: Strays | None = None
        if formats is not None and role == "real" and isinstance(cells, TextCells | LabelledCells):
            cells, found = read_as_fit(cells, name, formats.get(name, PLAIN))
        elif role != "categorical" and isinstance(cells, TextCells):
            found = cells.find_strays(name)
        if found is not None:
            strays.append(found)
            continue
        column = _read_column(position, cells, role, context, real_reason)
        bad = _infinite_rows(column)
        if len(bad):
            infinite.append((column, bad))
        yield column, cells, role
    if strays:
        raise strays_error(strays, source.row_names, options=False, fitted=formats is not None)
    if infinite:
        raise _infinity_error(infinite, source.row_names)


def read_as_fit(
    cells: TextCells | LabelledCells, name: str, notation: Notation | None
) -> tuple[NumberCells, Strays | None]:
    """Read text as numbers in the notation of the fit, or as times if it is None; return also the cells that cannot be read."""
    codes, labels = cells.as_categorical()
    read = read_days if notation is None else notation.read_new
    numbers = [
        float(label) if isinstance(label, int | float) and not isinstance(label, bool) else read(str(label))
        for label in labels
    ]
    values = np.array([*(math.nan if number is None else number for number in numbers), math.nan])[codes]
    bad = (codes >= 0) & np.array([*(number is None for number in numbers), False])[codes]
    if not bad.any():
        if notation is None:
            values[stand_for_no_date(values)] = math.nan
        return NumberCells(values), None
    n_cells = np.bincount(codes[bad], minlength=len(labels)).tolist()
    texts = {str(label): n for label, n in zip(labels, n_cells, strict=True) if n}
    held = "dates or times" if notation is None else notation.words or "numbers"
    row = int(np.argmax(bad))
    return NumberCells(values), Strays(name, held, texts, int((codes >= 0).sum())).found_at(
        row, str(labels[codes[row]])
    )


def _read_column(index: int, cells: Cells, role: Role, context: ColumnContext, real_reason: str) -> Column:
    if role == "categorical" or (role == "auto" and cells.categorical):
        return CategoricalColumn(context.column, index, *cells.as_categorical())
    return RealColumn(context.column, index, cells.as_real(context, real_reason), isinstance(cells, TimeCells))


def _infinite_rows(column: Column) -> IntArray:
    if isinstance(column, RealColumn):
        return np.flatnonzero(np.isinf(column.values))
    bad = [code for code, value in enumerate(column.categories) if isinstance(value, float) and np.isinf(value)]
    return np.flatnonzero(np.isin(column.codes, bad)) if bad else np.empty(0, dtype=np.intp)


def _infinity_error(infinite: list[tuple[Column, IntArray]], row_names: tuple[str, ...] | None) -> InputError:
    n_cells = sum(len(rows) for _, rows in infinite)
    column, rows = infinite[0]
    return InputError(
        f"The table has {count(n_cells, 'infinite cell')}, the first in column {quote(column.name)}, "
        f"{row_label(int(rows[0]), row_names)}: numbers must be finite or missing; replace infinity by a "
        "missing value (NaN)."
    )


def _find_number_text(cells: Cells, role: Role) -> str | None:
    """Return a cell of a text column that looks like numbers or dates, unless the column is declared categorical."""
    if role != "auto" or not isinstance(cells, TextCells) or cells.order is not None:
        return None
    return find_number_text(*cells.as_categorical())


def _is_identifier(cells: Cells) -> bool:
    """Return whether a text column has a different text in every row that has one."""
    if not isinstance(cells, TextCells) or cells.order is not None:
        return False
    codes, categories = cells.as_categorical()
    return MIN_IDENTIFIER_ROWS <= len(categories) == np.count_nonzero(codes >= 0)


def _has_numbers_and_sets(cells: Cells, column: CategoricalColumn) -> bool:
    """Return whether a column with sets has numbers other than 0 to 9, which often stand for states."""
    if not isinstance(cells, SetCells) or not all(isinstance(category, (int, float)) for category in column.categories):
        return False
    return not {float(category) for category in column.categories} <= set(range(10))


def _find_full_sets(codes: IntArray, n_categories: int) -> IntArray:
    """Return the cells that may be any category, and so carry no information."""
    if n_categories > MAX_SET_STATES:
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(is_set(codes) & (codes == 1 - 2**n_categories))


def _drop_full_sets(column: CategoricalColumn) -> CategoricalColumn:
    """Read cells that may be any category as missing. Their categories stay, unless no cell is known."""
    full = _find_full_sets(column.codes, len(column.categories))
    if not len(full):
        return column
    codes = column.codes.copy()
    codes[full] = -1
    return replace(column, codes=codes, categories=column.categories if (codes != -1).any() else ())


def _ignore_column(column: CategoricalColumn) -> CategoricalColumn:
    """Return a column without categories: all observed cells are unknown, so it is not used."""
    observed = np.flatnonzero(column.codes != -1)
    return replace(column, codes=np.full(len(column.codes), -1, dtype=np.intp), categories=(), unseen=observed)


def _can_pool(cells: Cells, column: CategoricalColumn) -> bool:
    return (
        isinstance(cells, TextCells)
        and cells.order is None
        and len(column.categories) > MAX_TEXT_CATEGORIES
        and all(isinstance(category, str) for category in column.categories)
    )


def _pool_categories(column: CategoricalColumn) -> CategoricalColumn:
    """Keep the most frequent categories; ties go to the first in order."""
    counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.categories))
    frequent = np.sort(np.argsort(-counts, kind="stable")[: MAX_TEXT_CATEGORIES - 1])
    renumbered = np.full(len(column.categories) + 1, len(frequent), dtype=np.intp)
    renumbered[frequent] = np.arange(len(frequent))
    renumbered[-1] = -1  # selected by the code of a missing cell
    categories = (*(column.categories[code] for code in frequent.tolist()), POOLED_CATEGORY)
    return replace(column, codes=renumbered[column.codes], categories=categories)


def _warn_identifiers(names: list[str]) -> None:
    one = len(names) == 1
    warnings.warn(
        f"{'Column' if one else 'Columns'} {listing(names)} {'has' if one else 'have'} a different text in every row, missing "
        f"cells aside, like an identifier, and {'is' if one else 'are'} ignored: drop {'it' if one else 'them'}, "
        f"use {'it' if one else 'one'} as the index, or declare {'it' if one else 'them'} categorical.",
        InputWarning,
        stacklevel=3,
    )


def _check_number_of_categories(column: CategoricalColumn, example: str | None) -> None:
    n_categories = len(column.categories)
    if n_categories > MAX_CATEGORIES and example is not None:
        raise InputError(
            f"Column {quote(column.name)} is text such as {example!r} with {n_categories:,} different values, and at most "
            f"{MAX_CATEGORIES:,} categories are allowed: {_NUMBER_TEXT_ADVICE}, or leave the column out."
        )
    if n_categories > MAX_CATEGORIES:
        raise InputError(
            f"Column {quote(column.name)} has {n_categories:,} categories in {count(len(column.codes), 'row')}, "
            f"and at most {MAX_CATEGORIES:,} are allowed: drop it, group the rare values, or use it as row "
            "names."
        )


def missing_cells(column: Column) -> NDArray[np.bool_]:
    """Return which cells of a column are missing. Categories that did not occur in the fit are not."""
    if isinstance(column, RealColumn):
        return np.isnan(column.values)
    missing: NDArray[np.bool_] = column.codes == -1
    missing[column.unseen] = False
    return missing


def incomplete_cells(column: Column) -> NDArray[np.bool_]:
    """Return the cells that imputation fills: missing ones, and those that are one of several categories."""
    missing = missing_cells(column)
    return missing if isinstance(column, RealColumn) else missing | is_set(column.codes)


def cell_value(column: CategoricalColumn, row: int) -> Category | frozenset[Category] | None:
    """Return the category of a cell, the set of its categories, or None."""
    code = int(column.codes[row])
    if code >= 0:
        return column.categories[code]
    return None if code == -1 else frozenset(column.categories[k] for k in decode_set(code))


def find_constant(column: Column) -> Category | None:
    """Return the value of a constant column; None if it has several values, or none."""
    if isinstance(column, CategoricalColumn):
        return column.categories[0] if len(column.categories) == 1 else None
    observed = column.values[~np.isnan(column.values)]
    return float(observed[0]) if len(observed) and bool(np.all(observed == observed[0])) else None


# ------------------------------------------------------------------------------------------------- roles

CategoricalFeatures: TypeAlias = str | Iterable[Any] | None
"""``"from_dtype"``, None, a boolean mask, integer indices or column names."""

Role: TypeAlias = Literal["auto", "real", "categorical"]
"""How a column is read; ``"auto"`` decides by its type."""

_ALLOWED_FEATURES = '"from_dtype", None, a boolean mask with one entry per column, column indices, or column names'


def resolve_roles(categorical_features: CategoricalFeatures, names: Sequence[str]) -> list[Role]:
    """Return the role of each column.

    Parameters
    ----------
    categorical_features : "from_dtype", None, or sequence of bool, int or str
        The user's choice.
    names : sequence of str
        The table's column names.

    Returns
    -------
    list of {"auto", "real", "categorical"}
        One role per column.

    Raises
    ------
    InputError
        If the choice does not fit the table.
    """
    if categorical_features is None:
        return ["real"] * len(names)
    if isinstance(categorical_features, str):
        if categorical_features == "from_dtype":
            return ["auto"] * len(names)
        hint = f"; for one column write [{categorical_features!r}]" if categorical_features in names else ""
        raise InputError(f"categorical_features must be {_ALLOWED_FEATURES}, not {quote(categorical_features)}{hint}.")
    categorical = _find_categorical(categorical_features, names)
    return ["categorical" if j in categorical else "real" for j in range(len(names))]


def _find_categorical(categorical_features: object, names: Sequence[str]) -> set[int]:
    entries = _to_entries(categorical_features)
    kinds = {_entry_kind(entry) for entry in entries}
    if len(kinds) > 1:
        raise InputError(f"categorical_features mixes {' and '.join(sorted(kinds))}: it must be {_ALLOWED_FEATURES}.")
    if not kinds:
        return set()
    kind = kinds.pop()
    if kind == "bool":
        if len(entries) != len(names):
            raise InputError(
                f"categorical_features is a boolean mask of length {len(entries)}, "
                f"but the table has {count(len(names), 'column')}."
            )
        return {j for j, entry in enumerate(entries) if entry}
    if kind == "int":
        outside = [entry for entry in entries if not 0 <= entry < len(names)]
        if outside:
            raise InputError(
                f"categorical_features holds the column {'index' if len(outside) == 1 else 'indices'} "
                f"{listing(outside)}, but indices go from 0 to {len(names) - 1} (negative ones are not "
                "allowed)."
            )
        return set(entries)
    if kind == "str":
        position = {name: j for j, name in enumerate(names)}
        unknown = [entry for entry in entries if entry not in position]
        if unknown:
            raise InputError(
                f"categorical_features names {listing(unknown)}, which the table lacks; "
                f"its columns are {listing(names, limit=10)}."
            )
        return {position[entry] for entry in entries}
    raise InputError(f"categorical_features must be {_ALLOWED_FEATURES}, but it holds entries of type {kind}.")


def _to_entries(categorical_features: object) -> list[Any]:
    """Return the entries as Python scalars, whatever their container."""
    if not isinstance(categorical_features, Iterable):
        raise InputError(f"categorical_features must be {_ALLOWED_FEATURES}, not {quote(categorical_features)}.")
    if isinstance(categorical_features, np.ndarray) and categorical_features.ndim != 1:
        raise InputError(
            f"categorical_features must be {_ALLOWED_FEATURES}, not a {categorical_features.ndim}-D array."
        )
    return [entry.item() if isinstance(entry, np.generic) else entry for entry in categorical_features]


def _entry_kind(entry: object) -> str:
    # bool before int: True is an int to Python, but a mask entry to the user
    for kind in (bool, int, str):
        if isinstance(entry, kind):
            return kind.__name__
    return type(entry).__name__


# ------------------------------------------------------------------------------------------------- categories

CanonicalValue: TypeAlias = float | str | None


def category_finder(known: Sequence[Category]) -> Callable[[Category], int]:
    """Return a function that finds a value among known categories, whatever its type.

    A column may be text in one file, and numbers or booleans in another that holds nothing else. Two texts are the same
    category only if all letters agree: 7 and 007 may be two categories.

    Parameters
    ----------
    known : sequence
        The categories.

    Returns
    -------
    callable
        Returns the position of a value in `known`; -1 if it is not among them.
    """
    by_value = {value: code for code, value in enumerate(known)}
    by_text = {str(value): code for code, value in enumerate(known)}
    by_canonical: dict[tuple[bool, CanonicalValue], int] = {}
    for code, value in enumerate(known):
        by_canonical.setdefault((isinstance(value, str), _canonical_value(value)), code)

    def find(value: Category) -> int:
        code = by_value.get(value, by_text.get(str(value), -1))
        canonical = _canonical_value(value)
        if code >= 0 or canonical is None:
            return code
        return by_canonical.get((not isinstance(value, str), canonical), -1)

    return find


def _canonical_value(value: Category) -> CanonicalValue:
    """Return an equal value for a number and its text, and for a boolean and its text; None for other text."""
    text = str(value).lower()
    if text in ("true", "false"):
        return text
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    # Python reads 1_0 as ten; people do not.
    return number if math.isfinite(number) and "_" not in text else None


def recode_categories(
    codes: IntArray, categories: Sequence[Category], known: Sequence[Category]
) -> tuple[IntArray, IntArray, list[str]]:
    """Encode a column by the categories of the fit.

    Parameters
    ----------
    codes : ndarray of int, shape (n_rows,)
        Codes of the cells; -1 is missing, less than -1 a set.
    categories : sequence
        What the codes stand for.
    known : sequence
        The categories of the fit.

    Returns
    -------
    codes : ndarray of int, shape (n_rows,)
        Positions in `known`; -1 is missing or not among them, as is a set with a category that is not.
    unseen : ndarray of int
        Rows of the cells that hold none of the known categories.
    new : list of str
        The categories that are not known, each with the number of its rows.
    """
    new_codes = list(map(category_finder(known), categories))
    if known and known[-1] == POOLED_CATEGORY:
        new_codes = [code if code >= 0 else len(known) - 1 for code in new_codes]
    sets = np.flatnonzero(is_set(codes))
    single = codes.copy()
    single[sets] = -1
    # The code -1 of a missing cell selects the last entry.
    recoded = np.array([*new_codes, -1], dtype=np.intp)[single]
    unseen_sets, unseen_codes = [], list(single[(single >= 0) & (recoded < 0)])
    for row in sets.tolist():
        members = {k: new_codes[k] for k in decode_set(codes[row])}
        recoded[row] = encode_labels(set(members.values())) if min(members.values()) >= 0 else -1
        if min(members.values()) < 0:
            unseen_sets.append(row)
            unseen_codes += [k for k, code in members.items() if code < 0]
    recoded[_find_full_sets(recoded, len(known))] = -1
    unseen = np.union1d(np.flatnonzero((single >= 0) & (recoded < 0)), unseen_sets).astype(np.intp)
    counts = (
        np.bincount(unseen_codes, minlength=len(categories)) if unseen_codes else np.zeros(len(categories), np.intp)
    )
    new = [f"{quote(value)} ({count(int(n), 'row')})" for value, n in zip(categories, counts, strict=True) if n]
    return recoded, unseen, new
