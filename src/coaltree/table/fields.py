"""Where the fields of some cells are in a text file, to the character."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .cells import IntArray
from .delimited import CheckedText, is_blank
from .lines import blocks

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
