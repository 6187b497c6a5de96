"""Files with missing cells, filled in: not a character of anything else changes."""

from __future__ import annotations

import gzip
import io
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, InputWarning
from .cells import Category, IntArray
from .delimited import CheckedText, check_text
from .fields import find_fields
from .filling import fill_cells
from .opening import DELIMITERS, TableFile, file_bytes, import_polars, parquet_frame, table_file
from .reading import DEFAULT_NA
from .typed_text import TextColumns, type_columns
from .wording import listing
from .written_values import value_writer

NamedFills: TypeAlias = Mapping[str, tuple[ArrayLike, Sequence[Category] | NDArray[Any]]]
"""For a column's name, rows and the values to put there."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def fill_file(path: str | Path | TableFile, fills: NamedFills, *, na_values: Sequence[str] = DEFAULT_NA) -> bytes:
    """Fill missing cells of a file.

    In a text file every other field keeps its text and its quotes, and the lines their order and endings. Values are
    written as the column is: integers as integers where all of its cells are, other numbers rounded to 6 significant
    digits, with a comma where the column has decimal commas; dates and times in ISO 8601 with the separator, the
    precision and the zone that the column has; truth values in its spelling.

    Parameters
    ----------
    path : str, Path or TableFile
        A file that `read_file` reads.
    fills : mapping of str to (rows, values)
        For a column's name, the rows of missing cells and what to put there: numbers (days since 1970-01-01 for times)
        or categories.
    na_values : sequence of str, optional
        What stands for a missing cell in a text file.

    Returns
    -------
    bytes
        The content of a file of the same kind, compressed if that one is; the same for the same arguments.

    Raises
    ------
    InputError
        When the file cannot be read, or has no missing cell in a place to be filled.
    MissingDependencyError
        When polars is not installed.
    """
    file = table_file(path)
    polars = import_polars()
    if file.suffix not in DELIMITERS:
        return _filled_parquet(polars, parquet_frame(polars, file), fills, file.name)
    data = file_bytes(file)
    with warnings.catch_warnings():
        # Whoever has values for the file has read it, and was told.
        warnings.simplefilter("ignore", InputWarning)
        checked = check_text(data, file.name, DELIMITERS[file.suffix])
    columns = type_columns(polars, checked, file.name, na_values, fills)
    filled = _filled_text(polars, data, checked, columns, fills, file.name)
    return gzip.compress(filled, mtime=0) if file.compressed else filled


def _filled_parquet(polars: Any, frame: Any, fills: NamedFills, source: str) -> bytes:
    for name, (rows, _) in fills.items():
        _check_missing(polars, frame, name, rows, source)
    written = io.BytesIO()
    fill_cells(frame, {frame.columns.index(name): fill for name, fill in fills.items()}).write_parquet(written)
    return written.getvalue()


def _filled_text(
    polars: Any, data: bytes, checked: CheckedText, columns: TextColumns, fills: NamedFills, source: str
) -> bytes:
    mark = _BYTE_ORDER_MARK if data.startswith(_BYTE_ORDER_MARK) else b""
    wanted = {name: _check_missing(polars, columns.frame, name, rows, source) for name, (rows, _) in fills.items()}
    position = {name: j for j, name in enumerate(checked.header)}
    text, fields = find_fields(
        data.removeprefix(mark),
        checked,
        {position[name]: rows for name, rows in wanted.items()},
        {position[name]: columns.texts[name].is_not_null().to_numpy() for name in wanted},
        source,
    )
    special = re.compile(r'["\s]|^$' if checked.at_blanks else f'["\r\n{re.escape(checked.delimiter)}]')
    new: list[bytes] = []
    for name, (_, values) in fills.items():
        places = fields[position[name]]
        write = value_writer(polars, name, columns)
        for begin, end, value in zip(places.begins.tolist(), places.ends.tolist(), values, strict=True):
            plain = write(value.item() if isinstance(value, np.generic) else value)
            old = text[begin:end]
            field = _field(
                plain, old if isinstance(old, str) else old.decode(), places.quoted or bool(special.search(plain))
            )
            new.append(field.encode())
    begins = np.concatenate([np.empty(0, np.intp), *(fields[position[name]].begins for name in fills)])
    ends = np.concatenate([np.empty(0, np.intp), *(fields[position[name]].ends for name in fills)])
    order = np.argsort(begins, kind="stable")
    # Of several values for a cell the last one is taken.
    order = order[np.append(begins[order][1:] != begins[order][:-1], True)] if len(order) else order
    written = io.BytesIO()
    written.write(mark)
    done = 0
    for k, begin, end in zip(order.tolist(), begins[order].tolist(), ends[order].tolist(), strict=True):
        written.write(_encoded(text[done:begin]))
        written.write(new[k])
        done = end
    written.write(_encoded(text[done:]))
    return written.getvalue()


def _encoded(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _field(value: str, old: str, quoted: bool) -> str:
    """Write a field in the place of another one, with its quotes or its blanks."""
    if quoted or old.startswith('"'):
        return '"' + value.replace('"', '""') + '"'
    around = old.strip()
    before, _, after = old.partition(around) if around else ("", "", "")
    return before + value + after


def _check_missing(polars: Any, frame: Any, name: str, rows: ArrayLike, source: str) -> IntArray:
    """Refuse to write over a cell that holds something."""
    if name not in frame.columns:
        raise InputError(
            f"{source} has no column {name!r} to fill: its columns are {listing(frame.columns, limit=10)}."
        )
    column = frame[name]
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
            f"Column {name!r} of {source} has no missing cell in row {bad[0]} (counted from 0), so nothing is filled: "
            "the file may have changed since it was read, or other na_values were used then."
        )
    return cells
