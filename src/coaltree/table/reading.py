"""Tables from files: csv, tsv and parquet, read with polars."""

from __future__ import annotations

import datetime as dt
import difflib
import gzip
import re
import warnings
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, InputWarning, MissingDependencyError
from .delimited import CheckedText, check_text
from .index import take_index
from .names import column_names, distinct_names
from .notation import LocalNumbers, example_of_numbers, read_local_numbers
from .wording import listing

if TYPE_CHECKING:
    import polars as pl

DEFAULT_NA = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?", "#N/A")
"""What stands for a missing cell in a text file."""

_READ = ".csv, .tsv, .tab, .txt (each also with .gz), .parquet and .pq"
# None: find out. Many programs write semicolons into a .csv file.
_DELIMITERS = {".csv": None, ".txt": None, ".tsv": "\t", ".tab": "\t"}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_DATETIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}([.]\d{1,6})?)?(Z|[+-]\d{2}:?\d{2})?")


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
    suffix = _table_suffix(path)
    polars = _polars()
    data = _file_bytes(path)
    local = LocalNumbers((), ())
    unnamed = texts = None
    if suffix in _DELIMITERS:
        checked = check_text(data, path.name, _DELIMITERS[suffix])
        unnamed = checked.unnamed
        texts = _blank_to_null(polars, _read_text(polars, checked, path.name), na_values)
        frame = texts.select(_typed(polars, column) for column in texts.iter_columns())
        frame, local = read_local_numbers(polars, texts, frame, checked.delimiter)
    else:
        frame = _read_parquet(polars, data, path.name)
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


def _polars() -> Any:
    try:
        import polars
    except ImportError as error:
        raise MissingDependencyError(
            'Reading files needs polars, which is not installed: pip install "coaltree[cli]".'
        ) from error
    return polars


def _table_suffix(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffix = suffixes[-1] if suffixes else ""
    if suffix == ".gz":
        suffix = suffixes[-2] if len(suffixes) > 1 and suffixes[-2] in _DELIMITERS else ".gz"
    if suffix not in _DELIMITERS and suffix not in (".parquet", ".pq"):
        # A folder or a typing error is the more useful news, whatever the name ends with.
        _check_is_file(path)
        raise InputError(f"{path.name} is not a kind of file that is read: these are {_READ}.")
    return suffix


def _check_is_file(path: Path) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file in it.")
    if not path.exists():
        raise InputError(f"{path} does not exist.")


def _file_bytes(path: Path) -> bytes:
    try:
        _check_is_file(path)
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    if not data:
        raise InputError(f"{path.name} is empty: a table needs a header and at least one row.")
    if path.suffix.lower() == ".gz":
        try:
            return gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path.name} is not a whole gzip file: {error}.") from None
    return data


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


def _read_parquet(polars: Any, data: bytes, source: str) -> Any:
    try:
        frame = polars.read_parquet(data)
    except (polars.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{source} is not a parquet file that can be read: {str(error).splitlines()[0]}.") from None
    column_names(frame.columns)
    if frame.height == 0:
        raise InputError(f"{source} has columns but no rows." if frame.width else f"{source} has no columns.")
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
