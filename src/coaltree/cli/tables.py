"""Tables of the command line: read for a fit, or as new rows for a model."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..console import Notes
from ..errors import InputWarning
from ..table.wording import count
from .options import column_names, id_setting

if TYPE_CHECKING:
    from ..table.cells import Category
    from ..table.columns import Table
    from ..table.encoding import Encoding
    from ..table.reading import FileTable


def reading_settings(
    id_column: str | None,
    no_id: bool,
    drop: Sequence[str] | None,
    categorical: Sequence[str] | None,
    na_value: Sequence[str] | None,
) -> dict[str, Any]:
    """Return the options on reading as `read_file` takes them."""
    id_column = id_setting(id_column, no_id)
    dropped, declared = column_names(drop, "--drop"), column_names(categorical, "--categorical")
    from ..table.reading import DEFAULT_NA

    return {
        "id_column": id_column,
        "drop": dropped,
        "categorical": declared,
        "na_values": [*DEFAULT_NA, *(na_value or [])],
    }


def read_table(path: Path, settings: Mapping[str, Any], notes: Notes) -> tuple[FileTable, Table]:
    """Read a table to fit a model to."""
    from ..table.columns import read_columns
    from ..table.reading import read_file

    with notes.taken():
        file = read_file(path, **settings)
        return file, read_columns(file.frame, row_names=file.row_names)


def read_new_table(path: Path, encoding: Encoding, settings: Mapping[str, Any], notes: Notes) -> FileTable:
    """Read a table for a model that has been fitted, as the table of the fit was read.

    What was categorical in the fit is so here, in the letters of the file: numbers are categories then, and a column of
    distinct texts is not taken for row names.
    """
    from ..table.reading import read_file

    known = encoding.categories_by_name
    spoken_for = {*settings["drop"], settings["id_column"]}
    declared = [name for name in _header(path) if name in known and name not in spoken_for]
    with notes.taken():
        file = read_file(path, **{**settings, "categorical": declared})
    frame = file.frame
    for name in declared:
        frame = frame.with_columns(_in_known_letters(frame[name], known[name]))
    return type(file)(frame, file.row_names, file.id_column, file.categorical)


def _header(path: Path) -> list[str]:
    """Return the names of a file's columns."""
    from ..table.delimited import check_text
    from ..table.opening import DELIMITERS, file_bytes, import_polars, read_parquet, table_suffix

    suffix = table_suffix(path)
    polars, data = import_polars(), file_bytes(path)
    if suffix not in DELIMITERS:
        return list(read_parquet(polars, data, path.name).columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # they come again when the file is read
        return list(check_text(data, path.name, DELIMITERS[suffix]).header)


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


def opening_words(table: Table, source: str, id_column: str | None) -> str:
    """Say how the table was understood."""
    kinds = [
        f"{len(columns)} {kind} ({listed([column.name for column in columns], 4)})"
        for kind, columns in (("real", table.real), ("categorical", table.categorical))
        if columns
    ]
    names = f", row names from column {id_column!r}" if id_column else ""
    if table.row_names is None:
        names = ", numbered from 0"
    return f"{source}: {count(table.n_rows, 'row')}{names}\ncolumns: {', '.join(kinds)}"


def listed(values: Sequence[object], limit: int) -> str:
    """List the first of some values, and say how many more there are."""
    if len(values) <= limit:
        return ", ".join(map(str, values))
    return f"{', '.join(map(str, values[:limit]))}, and {len(values) - limit} more"
