"""Fill missing cells of a file.

Text files go through the csv module: read, replace cells, write. All other cells keep their text, and the file keeps its
delimiter, line ends, byte order mark and compression.
"""

from __future__ import annotations

import codecs
import csv
import datetime as dt
import gzip
import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import quote
from ..errors import InputError, InputWarning
from .cells import Category, IntArray
from .delimited import (
    DelimitedText,
    TextColumns,
    check_text,
    is_blank,
    read_text_columns,
    split_at_blanks,
    write_records,
)
from .fill import fill_cells
from .messages import listing
from .read_file import DEFAULT_NA, DELIMITERS, TableFile, get_column, import_polars, open_table, read_parquet

NamedFills: TypeAlias = Mapping[str, tuple[ArrayLike, Sequence[Category] | NDArray[Any]]]
"""For a column name, rows and the values for their cells."""

ValueFormat: TypeAlias = Callable[[Category], str]

N_DIGITS = 6
"""Significant digits of filled numbers."""

_EPOCH = dt.datetime(1970, 1, 1)
_SECOND = 1_000_000  # microseconds
# One day less than Python's times, which leaves room for an offset.
_FIRST_DAY = (dt.datetime.min - _EPOCH).days + 1
_LAST_DAY = (dt.datetime.max - _EPOCH).days - 1


def fill_file(path: str | Path | TableFile, fills: NamedFills, *, na_values: Sequence[str] = DEFAULT_NA) -> bytes:
    """Fill missing cells of a file.

    Values are written in the format of their column: integers if all cells are integers, other numbers with 6 significant
    digits, with a decimal comma where the column has them; dates and times in ISO 8601 with the separator, precision and
    offset of the column; booleans in its spelling. Fields of a text file are quoted only where necessary, and blank lines
    are left out.

    Parameters
    ----------
    path : str, Path or TableFile
        A file that `read_file` reads.
    fills : mapping of str to (rows, values)
        For a column name, the rows of missing cells and their values: numbers (days since 1970-01-01 for times) or
        categories.
    na_values : sequence of str, optional
        Texts that mark a missing cell.

    Returns
    -------
    bytes
        The content of a file of the same type, compressed if the file is. Same arguments give the same bytes.

    Raises
    ------
    InputError
        If the file cannot be read, or a cell to fill is not missing.
    MissingDependencyError
        If polars is not installed.
    """
    file = open_table(path)
    polars = import_polars()
    if not file.is_text:
        return _fill_parquet(polars, read_parquet(polars, file), fills, file.name)
    data = file.read()
    with warnings.catch_warnings():
        # The caller has read the file before, and has seen the warnings.
        warnings.simplefilter("ignore", InputWarning)
        text = check_text(data, file.name, DELIMITERS[file.suffix])
    columns = read_text_columns(polars, text, file.name, na_values, fills)
    filled = _fill_text(polars, data, text, columns, fills, file.name)
    return gzip.compress(filled, mtime=0) if file.compressed else filled


def _fill_parquet(polars: Any, frame: Any, fills: NamedFills, source: str) -> bytes:
    for name, (rows, _) in fills.items():
        _check_missing(polars, frame, name, rows, source)
    buffer = io.BytesIO()
    fill_cells(frame, {frame.columns.index(name): fill for name, fill in fills.items()}).write_parquet(buffer)
    return buffer.getvalue()


def _fill_text(
    polars: Any, data: bytes, text: DelimitedText, columns: TextColumns, fills: NamedFills, source: str
) -> bytes:
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    content = data.removeprefix(mark).decode()
    records = _split_records(content, text)
    for name, (rows, values) in fills.items():
        cells = _check_missing(polars, columns.frame, name, rows, source)
        to_text = find_format(polars, name, columns)
        j = text.header.index(name)
        for row, value in zip(cells.tolist(), values, strict=True):
            records[row + 1][j] = to_text(value.item() if isinstance(value, np.generic) else value)
    delimiter = " " if text.whitespace else text.delimiter
    return mark + write_records(records, delimiter, _find_line_end(content)).encode()


def _split_records(content: str, text: DelimitedText) -> list[list[str]]:
    """Return the header and the rows as they are in the file, without blank lines."""
    lines = io.StringIO(content, newline="")
    if text.whitespace:
        return list(split_at_blanks(lines))
    return [record for record in csv.reader(lines, delimiter=text.delimiter) if not is_blank(record)]


def _find_line_end(content: str) -> str:
    """Return what ends the first line."""
    first = io.StringIO(content, newline="").readline()
    return next((end for end in ("\r\n", "\n", "\r") if first.endswith(end)), "\n")


def _check_missing(polars: Any, frame: Any, name: str, rows: ArrayLike, source: str) -> IntArray:
    """Return the rows; refuse to overwrite a cell that is not missing."""
    if name not in frame.columns:
        raise InputError(
            f"{source} has no column {quote(name)} to fill: its columns are {listing(frame.columns, limit=10)}."
        )
    column = get_column(frame, name)
    missing = column.is_null()
    if column.dtype.is_float():
        missing |= column.is_nan().fill_null(True)
    elif column.dtype in (polars.String, polars.Categorical, polars.Enum):
        missing |= (column.cast(polars.String) == "").fill_null(True)
    cells: IntArray = np.asarray(rows, dtype=np.intp).reshape(-1)
    outside = (cells < 0) | (cells >= len(column))
    bad = cells[outside | ~missing.to_numpy()[np.where(outside, 0, cells)]]
    if len(bad):
        raise InputError(
            f"Column {quote(name)} of {source} has no missing cell in row {bad[0]} (counted from 0), so nothing is filled: "
            "the file may have changed since it was read, or other na_values were used then."
        )
    return cells


# ------------------------------------------------------------------------------------------------- formats


def find_format(polars: Any, name: str, columns: TextColumns) -> ValueFormat:
    """Find the format of the values in a column of a text file.

    Parameters
    ----------
    polars : module
    name : str
        The column name.
    columns : TextColumns
        The columns of the file.

    Returns
    -------
    callable
        Returns the text of a value. Text stays as it is.
    """
    dtype = columns.frame[name].dtype
    observed = columns.texts[name].drop_nulls().to_list()
    is_integer = bool(observed) and all(text.lstrip("+-").isdecimal() for text in observed)
    if dtype == polars.Boolean:
        to_text = _boolean_format(observed)
    elif dtype == polars.Date:
        to_text = _format_date
    elif dtype == polars.Datetime:
        to_text = _time_format(observed)
    elif dtype == polars.Int64 or name in columns.local.grouped or is_integer:
        to_text = _format_integer
    elif name in columns.local.decimal or (not observed and columns.local.decimal):
        # A column without numbers follows the others: next to decimal commas, 1.234 is read as 1234.
        to_text = _format_decimal_comma
    else:
        to_text = _format_number
    return lambda value: value if isinstance(value, str) else to_text(value)


def _format_integer(value: Category) -> str:
    return str(value if isinstance(value, int) else round(float(value)))


def _format_number(value: Category) -> str:
    # Adding 0 removes the sign of a zero.
    return repr(float(f"{value:.{N_DIGITS}g}") + 0.0) if isinstance(value, float) else str(value)


def _format_decimal_comma(value: Category) -> str:
    return _format_number(value).replace(".", ",")


def _boolean_format(observed: Sequence[str]) -> ValueFormat:
    spelling = {text.lower(): text for text in reversed(observed)}

    def to_text(value: Category) -> str:
        text = "true" if float(value) >= 0.5 else "false"
        other = observed[0]
        return spelling.get(text) or (text.upper() if other.isupper() else text.title() if other.istitle() else text)

    return to_text


def _format_date(value: Category) -> str:
    return (_EPOCH + dt.timedelta(days=round(_clip_days(value)))).date().isoformat()


def _time_format(observed: Sequence[str]) -> ValueFormat:
    """Return the format of times: the offset of the first one, the finest precision of all."""
    first = observed[0]
    clocks = [text[11:].rstrip("Z").split("+")[0].split("-")[0] for text in observed]
    zone = first[11 + len(clocks[0]) :]
    offset = dt.datetime.fromisoformat(first).utcoffset() or dt.timedelta(0)
    n_decimals = max(len(clock.partition(".")[2]) for clock in clocks)
    has_seconds = any(clock.count(":") == 2 for clock in clocks)
    step = _SECOND // 10**n_decimals if has_seconds else 60 * _SECOND

    def to_text(value: Category) -> str:
        ticks = round(_clip_days(value) * 86_400 * _SECOND / step)
        time = _EPOCH + dt.timedelta(microseconds=ticks * step) + offset
        clock = f"{time:%H:%M:%S}" if has_seconds else f"{time:%H:%M}"
        decimals = f".{time.microsecond:06}"[: n_decimals + 1] if n_decimals else ""
        return f"{time.date().isoformat()}{first[10]}{clock}{decimals}{zone}"

    return to_text


def _clip_days(value: Category) -> float:
    return min(max(float(value), _FIRST_DAY), _LAST_DAY)
