"""Files with missing cells, filled in: not a character of anything else changes."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, InputWarning
from .cells import Category, IntArray
from .delimited import CheckedText, blocks, check_text, is_blank
from .fill import fill_cells
from .messages import listing
from .read_file import DEFAULT_NA, DELIMITERS, TableFile, file_bytes, import_polars, parquet_frame, table_file
from .text_types import TextColumns, type_columns

Span: TypeAlias = tuple[int, int]
"""Where a field begins and ends in a text."""

_QUOTED = r'"(?:[^"]++|"")*+"?'
_AT_BLANKS = re.compile(rf"{_QUOTED}|[^ ]+")


@dataclass(frozen=True, eq=False)
class Fields:
    """Fields of one column.

    Parameters
    ----------
    begins, ends : ndarray of int, shape (n_cells,)
        Where each begins, and where it ends.
    quoted : bool
        Whether all cells of the column that hold something stand in quotes, and there are some.
    """

    begins: IntArray
    ends: IntArray
    quoted: bool = False


def find_fields(
    data: bytes,
    checked: CheckedText,
    wanted: Mapping[int, IntArray],
    observed: Mapping[int, NDArray[np.bool_]],
    source: str,
) -> tuple[str | bytes, dict[int, Fields]]:
    """Find the fields of some cells.

    Parameters
    ----------
    data : bytes
        The file, without byte order mark.
    checked : CheckedText
        What was found out about it.
    wanted : mapping of int to ndarray of int
        For a column, by its position, the rows of the cells.
    observed : mapping of int to ndarray of bool, shape (n_rows,)
        For the same columns, which cells hold something.
    source : str
        The file's name, for messages.

    Returns
    -------
    text : str or bytes
        What the places are counted in.
    fields : dict of int to Fields
        The fields of the cells of each column, in the order of the rows asked for.

    Raises
    ------
    InputError
        When the fields are not as many as the file was found to have.
    """
    plain = (
        b'"' not in data
        and not checked.at_blanks
        and len(checked.header) > 1
        and data.count(b"\r") == data.count(b"\r\n")
    )
    if plain:
        return data, _find_plain(data, checked, wanted)
    text = data.decode()
    records = _records_at_blanks(text) if checked.at_blanks else _records(text, checked.delimiter)
    begins, ends = ({j: np.empty(checked.n_rows, dtype=np.intp) for j in wanted} for _ in range(2))
    next(records, None)
    n_rows = 0
    width = len(checked.header)
    for row, record in enumerate(records):
        if len(record) != width or row >= checked.n_rows:
            raise _unlike(source)
        for j in wanted:
            begins[j][row], ends[j][row] = record[j]
        n_rows += 1
    if n_rows != checked.n_rows:
        raise _unlike(source)
    found = {}
    for j, rows in wanted.items():
        filled = begins[j][observed[j]].tolist()
        quoted = bool(filled) and all(text[begin] == '"' for begin in filled)
        found[j] = Fields(begins[j][rows], ends[j][rows], quoted)
    return text, found


def _unlike(source: str) -> InputError:
    return InputError(f"{source} cannot be filled: put text that goes over several lines into quotes, or on one line.")


def _find_plain(data: bytes, checked: CheckedText, wanted: Mapping[int, IntArray]) -> dict[int, Fields]:
    """Find fields in a text that has been checked, has several columns and no quotes, many lines at a time."""
    width = len(checked.header)
    order = {j: np.argsort(rows, kind="stable") for j, rows in wanted.items()}
    found = {j: Fields(np.empty_like(rows), np.empty_like(rows)) for j, rows in wanted.items()}
    first = -1  # the header
    for lines in blocks(data, checked.delimiter):
        # Blank lines are those without a delimiter: all others have as many as the header.
        with_fields = lines.n_fields > 1
        line_begins, line_ends = lines.begins[with_fields], lines.ends[with_fields]
        delimiters = lines.delimiters.reshape(len(line_ends), width - 1)
        past = first + len(line_ends)
        for j, rows in wanted.items():
            start, stop = np.searchsorted(rows, [first, past], sorter=order[j])
            here = order[j][start:stop]
            at = rows[here] - first
            found[j].begins[here] = delimiters[at, j - 1] + 1 if j else line_begins[at]
            found[j].ends[here] = delimiters[at, j] if j < width - 1 else _before_return(data, line_ends[at])
        first = past
    return found


def _before_return(data: bytes, ends: IntArray) -> IntArray:
    returns: IntArray = ends - (np.frombuffer(data, dtype=np.uint8)[ends - 1] == ord("\r"))
    return returns


def _records(text: str, delimiter: str) -> Iterator[list[Span]]:
    """Find the fields of every line that is not blank, as Python's csv module does."""
    # What follows a closing quote belongs to the field.
    field = re.compile(rf"(?:{_QUOTED})?+[^{re.escape(delimiter)}\r\n]*+")
    position = 0
    record: list[Span] = []
    while position < len(text) or record:
        match = field.match(text, position)
        end = match.end() if match else position
        record.append((position, end))
        if text.startswith(delimiter, end):
            position = end + 1
            continue
        if len(record) > 1 or not is_blank([_value(text[position:end])]):
            yield record
        record = []
        position = end + (2 if text.startswith("\r\n", end) else 1)


def _records_at_blanks(text: str) -> Iterator[list[Span]]:
    for line in re.finditer(r"[^\r\n]+", text):
        content = line.group().strip()
        if content:
            begin = line.start() + line.group().index(content)
            yield [match.span() for match in _AT_BLANKS.finditer(text, begin, begin + len(content))]


def _value(field: str) -> str:
    """Take the quotes off a field."""
    quoted = re.match(_QUOTED, field)
    if quoted is None:
        return field
    return quoted.group().removesuffix('"')[1:].replace('""', '"') + field[quoted.end() :]


Write: TypeAlias = Callable[[Category], str]

_DIGITS = 6
_EPOCH = dt.datetime(1970, 1, 1)
_SECOND = 1_000_000
# One day less than Python's times can say, which leaves room for an offset.
_FIRST_DAY = (dt.datetime.min - _EPOCH).days + 1
_LAST_DAY = (dt.datetime.max - _EPOCH).days - 1


def value_writer(polars: Any, name: str, columns: TextColumns) -> Write:
    """Find out how values are written in a column of a text file.

    Text is written as it is. Numbers are written with as few digits as it takes to read them again: whole ones where
    all numbers of the column are, others after rounding to 6 significant digits.

    Parameters
    ----------
    polars : module
    name : str
        The column's name.
    columns : TextColumns
        The columns of the file.

    Returns
    -------
    callable
        Gives the text of a value.
    """
    dtype = columns.frame[name].dtype
    observed = columns.texts[name].drop_nulls().to_list()
    if dtype == polars.Boolean:
        write = _flag_writer(observed)
    elif dtype == polars.Date:
        write = _date
    elif dtype == polars.Datetime:
        write = _time_writer(observed)
    elif dtype == polars.Int64 or name in columns.local.grouped or (observed and all(map(_is_whole, observed))):
        write = _whole
    elif name in columns.local.decimal or (not observed and columns.local.decimal):
        # A column without any number goes by the others of its file: next to commas, 1.234 is read as a thousand.
        write = _with_comma
    else:
        write = _number
    return lambda value: value if isinstance(value, str) else write(value)


def _is_whole(text: str) -> bool:
    return text.lstrip("+-").isdecimal()


def _whole(value: Category) -> str:
    return str(value if isinstance(value, int) else round(float(value)))


def _number(value: Category) -> str:
    # Adding 0 takes the sign off a zero.
    return repr(float(f"{value:.{_DIGITS}g}") + 0.0) if isinstance(value, float) else str(value)


def _with_comma(value: Category) -> str:
    return _number(value).replace(".", ",")


def _flag_writer(observed: Sequence[str]) -> Write:
    spelled = {text.lower(): text for text in reversed(observed)}

    def write(value: Category) -> str:
        wanted = "true" if float(value) >= 0.5 else "false"
        if wanted in spelled:
            return spelled[wanted]
        other = observed[0]
        return wanted.upper() if other.isupper() else wanted.title() if other.istitle() else wanted

    return write


def _date(value: Category) -> str:
    return (_EPOCH + dt.timedelta(days=round(_within(value)))).date().isoformat()


def _time_writer(observed: Sequence[str]) -> Write:
    """Write times in the zone of the first one, to the finest unit that any of them has."""
    first = observed[0]
    clocks = [text[11:].rstrip("Z").split("+")[0].split("-")[0] for text in observed]
    zone = first[11 + len(clocks[0]) :]
    offset = dt.datetime.fromisoformat(first).utcoffset() or dt.timedelta(0)
    n_decimals = max(len(clock.partition(".")[2]) for clock in clocks)
    with_seconds = any(clock.count(":") == 2 for clock in clocks)
    step = _SECOND // 10**n_decimals if with_seconds else 60 * _SECOND

    def write(value: Category) -> str:
        ticks = round(_within(value) * 86_400 * _SECOND / step)
        time = _EPOCH + dt.timedelta(microseconds=ticks * step) + offset
        clock = f"{time:%H:%M:%S}" if with_seconds else f"{time:%H:%M}"
        decimals = f".{time.microsecond:06}"[: n_decimals + 1] if n_decimals else ""
        return f"{time.date().isoformat()}{first[10]}{clock}{decimals}{zone}"

    return write


def _within(value: Category) -> float:
    return min(max(float(value), _FIRST_DAY), _LAST_DAY)


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
