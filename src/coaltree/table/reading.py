"""Tables from files: csv, tsv and parquet, read with polars."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, InputWarning
from .delimited import check_text
from .index import is_index, take_index
from .names import distinct_names
from .notation import LocalNumbers, example_of_numbers
from .opening import DELIMITERS, file_bytes, import_polars, read_parquet, table_suffix
from .typed_text import type_columns
from .wording import listing

if TYPE_CHECKING:
    import polars as pl

DEFAULT_NA = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?", "#N/A")
"""What stands for a missing cell in a text file."""


@dataclass(frozen=True, eq=False)
class FileTable:
    """A table that was read from a file.

    Parameters
    ----------
    frame : polars.DataFrame
        The columns to cluster by. Those that were declared categorical are of type Enum, so that
        ``read_columns(frame)`` takes them as categorical.
    row_names : tuple of str or None
        Distinct names of the rows, from the column of identifiers.
    id_column : str or None
        Name of that column.
    categorical : tuple of str
        The columns that were declared categorical.
    """

    frame: pl.DataFrame
    row_names: tuple[str, ...] | None
    id_column: str | None
    categorical: tuple[str, ...]


def read_file(
    path: str | Path,
    *,
    id_column: str | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    na_values: Sequence[str] = DEFAULT_NA,
) -> FileTable:
    """Read a table from a file.

    Parameters
    ----------
    path : str or Path
        A .csv, .tsv, .tab or .txt file, which may be compressed (.gz), or a .parquet or .pq file.
    id_column : str, optional
        The column that holds the row names. By default the first column, if it is text, not mostly numbers,
        with a different value in every row, or has no name; ``""`` takes no column. An index that pandas wrote
        without a name is never clustered by.
    drop : sequence of str, optional
        Columns to leave out.
    categorical : sequence of str, optional
        Columns to take as categorical although they may hold numbers.
    na_values : sequence of str, optional
        What stands for a missing cell in a text file.

    Returns
    -------
    FileTable

    Raises
    ------
    InputError
        When the file cannot be read as a table; the message says why.
    MissingDependencyError
        When polars is not installed.

    Warns
    -----
    InputWarning
        For what was read otherwise than it stands in the file: decimal commas, an index without a name, fields
        separated by something unexpected, row names that are not distinct.
    """
    path = Path(path)
    suffix = table_suffix(path)
    polars = import_polars()
    local = LocalNumbers((), ())
    unnamed = texts = None
    if suffix in DELIMITERS:
        checked = check_text(file_bytes(path), path.name, DELIMITERS[suffix])
        unnamed = checked.unnamed
        as_written = {id_column or "", *categorical, *(name for name in checked.header if is_index(name, unnamed))}
        texts, frame, local = type_columns(polars, checked, path.name, na_values, as_written)
        del checked  # the whole text of the file
    else:
        frame = read_parquet(polars, file_bytes(path), path.name)
    _check_known(frame.columns, [id_column] if id_column else [], "id_column", path.name)
    _check_known(frame.columns, drop, "drop", path.name)
    _check_known(frame.columns, categorical, "categorical", path.name)
    id_column, left_out = take_index(frame, unnamed, id_column, {*drop, *categorical}, path.name)
    drop = [*drop, *left_out]
    if id_column is None:
        id_column = _automatic_id(polars, frame, drop, categorical)
    _check_used_once(id_column, drop, categorical)
    # As written in the file, so that 007 stays 007.
    labels = frame if texts is None else texts
    row_names = distinct_names(_as_text(polars, labels[id_column]).to_list()) if id_column else None
    kept = [name for name in frame.columns if name not in drop and name != id_column]
    if not kept:
        raise InputError(f"No columns of {path.name} are left to cluster by: all are dropped or hold row names.")
    for sentence in local.sentences({*kept} - {*categorical}):
        warnings.warn(sentence, InputWarning, stacklevel=2)
    declared = [_as_enum(polars, _as_text(polars, labels[name])) for name in kept if name in categorical]
    return FileTable(frame.select(kept).with_columns(declared), row_names, id_column or None, tuple(categorical))


def _automatic_id(polars: Any, frame: Any, drop: Sequence[str], categorical: Sequence[str]) -> str | None:
    name = frame.columns[0]
    column = frame[name]
    if name in drop or name in categorical or len(set(frame.columns) - set(drop)) < 2:
        return None
    if column.dtype != polars.String or column.null_count() or column.n_unique() < len(column):
        return None
    # Mostly numbers: rather a column of measurements with a slip in it or in local notation, which must not go unnoticed.
    n_text = column.cast(polars.Float64, strict=False).null_count()
    is_measured = 2 * n_text <= len(column) or example_of_numbers(np.arange(len(column)), column.to_list()) is not None
    return None if is_measured else str(name)


def _as_text(polars: Any, column: Any) -> Any:
    if column.dtype.is_nested() or column.dtype in (polars.Binary, polars.Object):
        raise InputError(
            f"Column {column.name!r} is of type {column.dtype}, which can be neither row names nor categories."
        )
    return column.cast(polars.String)


def _as_enum(polars: Any, column: Any) -> Any:
    """Make a column of text categorical, with numbers in the order of numbers."""
    values = column.drop_nulls().unique().sort()
    numbers = values.cast(polars.Float64, strict=False)
    if numbers.null_count() == 0:
        values = values.gather(numbers.arg_sort())
    return column.cast(polars.Enum(values.filter(values != "")))


def _check_known(columns: Sequence[str], wanted: Sequence[str], option: str, source: str) -> None:
    for name in wanted:
        if name not in columns:
            close = difflib.get_close_matches(name, columns, n=3, cutoff=0.6)
            hint = f"did you mean {listing(close)}?" if close else f"its columns are {listing(columns, limit=10)}."
            raise InputError(f"{source} has no column {name!r} ({option}): {hint}")


def _check_used_once(id_column: str | None, drop: Sequence[str], categorical: Sequence[str]) -> None:
    if id_column and id_column in drop:
        raise InputError(f"Column {id_column!r} cannot both hold the row names (id_column) and be dropped (drop).")
    if id_column and id_column in categorical:
        raise InputError(f"Column {id_column!r} cannot both hold the row names (id_column) and be categorical.")
    both = [name for name in categorical if name in drop]
    if both:
        raise InputError(f"Column {both[0]!r} cannot both be categorical and be dropped (drop).")
