"""Tables from files: csv, tsv and parquet, read with polars."""

from __future__ import annotations

import difflib
import shlex
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, InputWarning
from .declared import as_enum, as_numbers, as_text
from .delimited import check_text
from .index import is_index, take_index
from .names import distinct_names
from .notation import LocalNumbers, example_of_numbers
from .opening import DELIMITERS, TableFile, file_bytes, import_polars, parquet_frame, table_file
from .typed_text import type_columns
from .wording import listing

if TYPE_CHECKING:
    import polars as pl

DEFAULT_NA = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?", "#N/A")
"""What stands for a missing cell in a text file."""

# A column in which this share of the texts is distinct may well have been meant to name the rows ...
_NEARLY_ALL = 0.9
# ... unless there are fewer of them.
_NAMED_ROWS = 10
# Row names of which this share looks like dates or numbers may well have been measured.
_LIKE_NUMBERS = 0.5
# In a smaller table, whole numbers in a row may well have been measured.
_NUMBERED_ROWS = 4


@dataclass(frozen=True, eq=False)
class FileTable:
    """A table that was read from a file.

    Parameters
    ----------
    frame : polars.DataFrame
        The columns to cluster by. Those that were declared categorical are of type Enum, so that
        ``read_columns(frame)`` takes them as categorical; those that were declared real are numbers.
    row_names : tuple of str or None
        Distinct names of the rows, from the column of identifiers.
    id_column : str or None
        Name of that column.
    categorical : tuple of str
        The columns that were declared categorical.
    real : tuple of str
        The columns that were declared real.
    """

    frame: pl.DataFrame
    row_names: tuple[str, ...] | None
    id_column: str | None
    categorical: tuple[str, ...]
    real: tuple[str, ...] = ()


def read_file(
    path: str | Path | TableFile,
    *,
    id_column: str | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    real: Sequence[str] = (),
    na_values: Sequence[str] = DEFAULT_NA,
) -> FileTable:
    """Read a table from a file, for the command line: messages name its options.

    Parameters
    ----------
    path : str, Path or TableFile
        A .csv, .tsv, .tab or .txt file, which may be compressed (.gz), or a .parquet or .pq file,
        or a folder of these.
    id_column : str, optional
        The column that holds the row names. By default the first column, if it is text, not mostly numbers,
        with a different value in every row, or has no name; ``""`` takes no column. An index that pandas wrote
        without a name is never clustered by.
    drop : sequence of str, optional
        Columns to leave out.
    categorical : sequence of str, optional
        Columns to take as categorical although they may hold numbers.
    real : sequence of str, optional
        Columns to take as numbers although they may be text or truth values.
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
        separated by something unexpected, row names that are not distinct; for a first column that numbers the rows, or whose
        texts are distinct but for a few, or that was taken as row names although most of it looks like dates or numbers.
    """
    file = table_file(path)
    polars = import_polars()
    local = LocalNumbers((), ())
    unnamed = texts = None
    if file.suffix in DELIMITERS:
        checked = check_text(file_bytes(file), file.name, DELIMITERS[file.suffix])
        unnamed = checked.unnamed
        as_written = {id_column or "", *categorical, *(name for name in checked.header if is_index(name, unnamed))}
        texts, frame, local = type_columns(polars, checked, file.name, na_values, as_written)
        del checked  # the whole text of the file
    else:
        frame = parquet_frame(polars, file)
    options = {"--id-column": [id_column] if id_column else [], "--drop": drop}
    options |= {"--categorical": categorical, "--real": real}
    for option, names in options.items():
        _check_known(frame.columns, names, option, file.name)
    spoken_for = {*drop, *categorical, *real}
    id_column, left_out = take_index(frame, unnamed, id_column, spoken_for, file.name)
    if id_column is None:
        id_column = _automatic_id(polars, frame, [*drop, *left_out], spoken_for)
        if id_column is not None:
            _warn_like_numbers(id_column, frame[id_column].to_list(), file.name)
    _check_used_once(options | {"--id-column": [id_column] if id_column else []})
    drop = [*drop, *left_out]
    # As written in the file, so that 007 stays 007.
    labels = frame if texts is None else texts
    row_names = distinct_names(as_text(polars, labels[id_column]).to_list()) if id_column else None
    kept = [name for name in frame.columns if name not in drop and name != id_column]
    if not kept:
        raise InputError(f"No columns of {file.name} are left to cluster by: all are dropped or hold row names.")
    first = frame.columns[0]
    if id_column != "" and first in kept and first not in spoken_for and _numbers_the_rows(frame[first]):
        _warn_numbered(first, frame[first][0], file.name)
    if id_column is None and first in kept[:-1] and first not in spoken_for and _nearly_names(polars, frame[first]):
        _warn_nearly_names(first, frame[first], file.name)
    for sentence in local.sentences({*kept} - {*categorical}):
        warnings.warn(sentence, InputWarning, stacklevel=2)
    declared = [as_enum(polars, as_text(polars, labels[name])) for name in kept if name in categorical]
    declared += [as_numbers(polars, frame[name], row_names) for name in kept if name in real]
    return FileTable(
        frame.select(kept).with_columns(declared), row_names, id_column or None, tuple(categorical), tuple(real)
    )


def _automatic_id(polars: Any, frame: Any, drop: Sequence[str], spoken_for: set[str]) -> str | None:
    name = frame.columns[0]
    column = frame[name]
    if name in drop or name in spoken_for or len(set(frame.columns) - set(drop)) < 2:
        return None
    if column.dtype != polars.String or column.null_count() or column.n_unique() < len(column):
        return None
    return None if _is_measured(polars, column) else str(name)


def _is_measured(polars: Any, column: Any) -> bool:
    """Say whether text is mostly numbers: measurements with a slip or in local notation, which must not go unnoticed."""
    n_text = column.cast(polars.Float64, strict=False).null_count()
    return 2 * n_text <= len(column) or example_of_numbers(np.arange(len(column)), column.to_list()) is not None


def _warn_like_numbers(name: str, cells: list[str], source: str) -> None:
    example = example_of_numbers(np.arange(len(cells)), cells, _LIKE_NUMBERS)
    if example is not None:
        warnings.warn(
            f"Column {name!r} of {source} was taken as row names, because its texts are all different, but most of them look "
            f"like dates or numbers, such as {example!r}: if it names the rows, say --id-column {shlex.quote(name)}, and if not, "
            "correct the other cells, and write dates as 2020-12-31.",
            InputWarning,
            stacklevel=3,
        )


def _nearly_names(polars: Any, column: Any) -> bool:
    """Say whether a column of text, which is not one of row names, is nearly one."""
    if column.dtype != polars.String:
        return False
    observed = column.drop_nulls()
    if len(observed) < _NAMED_ROWS or observed.n_unique() < _NEARLY_ALL * len(observed):
        return False
    return not _is_measured(polars, observed)


def _warn_nearly_names(name: str, column: Any, source: str) -> None:
    n_empty = column.null_count()
    empty = f" ({n_empty} {'is' if n_empty == 1 else 'are'} empty)" if n_empty else ""
    warnings.warn(
        f"Column {name!r} of {source} was not taken as row names, because its {len(column)} cells hold only "
        f"{column.drop_nulls().n_unique()} distinct texts{empty}: if it names the rows, say --id-column {shlex.quote(name)}, and "
        "if not, --drop it, for a category that nearly every row has to itself tells nothing.",
        InputWarning,
        stacklevel=3,
    )


def _numbers_the_rows(column: Any) -> bool:
    """Say whether a column is 1, 2, 3, ..., beginning anywhere."""
    if not column.dtype.is_integer() or len(column) < _NUMBERED_ROWS or column.null_count():
        return False
    return bool((column.diff().drop_nulls() == 1).all())


def _warn_numbered(name: str, first: int, source: str) -> None:
    warnings.warn(
        f"Column {name!r} of {source} counts the rows ({first}, {first + 1}, {first + 2}, ...) and is taken as a number: "
        "if it is an identifier, say --id-column for row names, or --drop to leave it out.",
        InputWarning,
        stacklevel=3,
    )


def _check_known(columns: Sequence[str], wanted: Sequence[str], option: str, source: str) -> None:
    for name in wanted:
        if name not in columns:
            close = difflib.get_close_matches(name, columns, n=3, cutoff=0.6)
            hint = f"did you mean {listing(close)}?" if close else f"its columns are {listing(columns, limit=10)}."
            raise InputError(f"{source} has no column {name!r}, which {option} names: {hint}")


def _check_used_once(options: dict[str, Sequence[str]]) -> None:
    """Refuse a column that two options name."""
    first: dict[str, str] = {}
    for option, names in options.items():
        for name in names:
            if first.setdefault(name, option) != option:
                raise InputError(
                    f"Column {name!r} is named by both {first[name]} and {option}; name it with one of them."
                )
