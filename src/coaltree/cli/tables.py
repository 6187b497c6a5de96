"""Tables of the command line: read for a fit, or as new rows for a model."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..console import Notes
from ..errors import InputWarning
from .checks import column_names, id_setting
from .options import STANDARD_STREAM, TableKind

if TYPE_CHECKING:
    from ..estimators.base import CoalescentModel
    from ..table.cells import Category
    from ..table.columns import Table
    from ..table.opening import TableFile
    from ..table.reading import FileTable

STANDARD_INPUT = "standard input"


def reading_settings(
    id_column: str | None,
    no_id: bool,
    drop: Sequence[str] | None,
    categorical: Sequence[str] | None,
    na_value: Sequence[str] | None,
    real: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return the options on reading as `read_file` takes them."""
    id_column = id_setting(id_column, no_id)
    dropped, declared = column_names(drop, "--drop"), column_names(categorical, "--categorical")
    numbers = column_names(real, "--real")
    from ..table.reading import DEFAULT_NA

    return {
        "id_column": id_column,
        "drop": dropped,
        "categorical": declared,
        "real": numbers,
        "na_values": [*DEFAULT_NA, *(na_value or [])],
    }


def located(path: Path, kind: TableKind | None) -> TableFile:
    """Return the file of a table, or what standard input holds."""
    from ..table.opening import table_file, table_of_bytes

    wanted = None if kind is None else kind.value
    if path == STANDARD_STREAM:
        return table_of_bytes(sys.stdin.buffer.read(), STANDARD_INPUT, wanted)
    return table_file(path, wanted)


def read_table(table: TableFile, settings: Mapping[str, Any], notes: Notes) -> tuple[FileTable, Table]:
    """Read a table to fit a model to."""
    from ..table.columns import read_columns
    from ..table.reading import read_file

    with notes.timed("reading"), notes.taken():
        file = read_file(table, **settings)
        columns = read_columns(file.frame, row_names=file.row_names)
    return file, replace(columns, id_column=file.id_column)


def read_new_table(table: TableFile, model: CoalescentModel, settings: Mapping[str, Any], notes: Notes) -> FileTable:
    """Read a table for a model that has been fitted, as the table of the fit was read.

    Row names are in the column that held them in the fit, unless another or none is asked for. What was categorical in the fit
    is so here, in the letters of the file: numbers are categories then, and a column of distinct texts is not taken for row
    names. Numbers that stand in a column of text are numbers, if they were in the fit.
    """
    from ..table.declared import as_numbers
    from ..table.opening import import_polars
    from ..table.reading import read_file

    encoding = model.encoding_
    known = encoding.categories_by_name
    header, id_column = _header(table), settings["id_column"]
    if id_column is None and model._id_column in header and model._id_column not in settings["drop"]:
        id_column = model._id_column
    spoken_for = {*settings["drop"], id_column}
    declared = [name for name in header if name in known and name not in spoken_for]
    with notes.timed("reading"), notes.taken():
        file = read_file(table, **{**settings, "id_column": id_column, "categorical": declared})
    frame, polars = file.frame, import_polars()
    for name in declared:
        frame = frame.with_columns(_in_known_letters(frame[name], known[name]))
    for name in encoding.column_names:
        if (
            name not in known
            and name in frame.columns
            and frame[name].dtype in (polars.String, polars.Categorical, polars.Enum)
        ):
            frame = frame.with_columns(as_numbers(polars, frame[name], file.row_names))
    return type(file)(frame, file.row_names, file.id_column, file.categorical)


def _header(table: TableFile) -> list[str]:
    """Return the names of a file's columns."""
    from ..table.delimited import check_text
    from ..table.opening import DELIMITERS, file_bytes, import_polars, parquet_frame

    if table.suffix not in DELIMITERS:
        return list(parquet_frame(import_polars(), table).columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # they come again when the file is read
        return list(check_text(file_bytes(table), table.name, DELIMITERS[table.suffix]).header)


def _in_known_letters(column: Any, known: Sequence[Category]) -> Any:
    """Write numbers as the fit has written them, where it has the same ones: 1.0 may be 1 there."""
    from ..table.recoding import category_finder

    texts = column.cast(str)
    find = category_finder(known)
    letters: dict[str, str] = {}
    for text in texts.drop_nulls().unique().to_list():
        if find(text) < 0:
            try:
                code = find(float(text))
            except ValueError:
                continue
            if code >= 0:
                letters[text] = str(known[code])
    return texts.replace(letters) if letters else column
