"""Delimited text: check a csv or tsv file line by line before its columns are read."""

from __future__ import annotations

import codecs
import csv
import io
import re
import warnings
from collections import Counter, deque
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, InputWarning
from .cells import IntArray
from .messages import listing

_BLOCK = 2**22  # bytes that are looked at together
_NEWLINE = 10
_BLANK, _ASCII = 32, 127  # up to the one and above the other, a byte may begin a blank


class Lines(NamedTuple):
    """Lines that follow each other.

    Parameters
    ----------
    first : int
        Number of the first one, counted from 1.
    begins, ends : ndarray of int, shape (n_lines,)
        Where each line begins, and where its line break or the text ends.
    delimiters : ndarray of int
        Where the delimiters are.
    n_fields : ndarray of int, shape (n_lines,)
        Number of fields of each line, at least 1.
    """

    first: int
    begins: IntArray
    ends: IntArray
    delimiters: IntArray
    n_fields: IntArray


class Counted(NamedTuple):
    """What lines there are.

    Parameters
    ----------
    n_lines : int
        Number of lines that are not blank.
    blank : list of (int, int)
        Where each blank line begins, and where the next one does.
    odd : (int, int) or None
        Number, counted from 1, and number of fields of the first line that has not as many as it should.
    """

    n_lines: int
    blank: list[tuple[int, int]]
    odd: tuple[int, int] | None


def text_lines(data: bytes) -> Iterator[str]:
    """Give the lines of a text one by one, with their line breaks; only a line feed ends a line."""
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="\n")


def blocks(data: bytes, delimiter: str) -> Iterator[Lines]:
    """Find the lines and the delimiters of a text without quotes, block by block."""
    every = np.frombuffer(data, dtype=np.uint8)
    start, first = 0, 1
    while start < len(data):
        stop = len(data)
        if stop - start > _BLOCK:
            # A line that is longer than a block is a block.
            stop = data.rfind(b"\n", start, start + _BLOCK) + 1 or data.find(b"\n", start + _BLOCK) + 1 or stop
        block = every[start:stop]
        ends = start + np.flatnonzero(block == _NEWLINE)
        if block[-1] != _NEWLINE:
            ends = np.append(ends, stop)
        delimiters = start + np.flatnonzero(block == ord(delimiter))
        begins = np.concatenate([[start], ends[:-1] + 1])
        n_fields = np.diff(np.searchsorted(delimiters, ends), prepend=0) + 1
        yield Lines(first, begins, ends, delimiters, n_fields)
        start, first = stop, first + len(ends)


def count_lines(data: bytes, delimiter: str, width: int) -> Counted | None:
    """Count the lines of a text without quotes, and look for one that has not so many fields.

    Parameters
    ----------
    data : bytes
        The text, in UTF-8.
    delimiter : str
        What separates the fields.
    width : int
        How many fields each line should have, unless it is blank.

    Returns
    -------
    Counted or None
        None if there are lines that may have a field longer than Python's csv module reads.
    """
    n_lines = 0
    blank: list[tuple[int, int]] = []
    every = np.frombuffer(data, dtype=np.uint8)
    for lines in blocks(data, delimiter):
        if int((lines.ends - lines.begins).max()) > csv.field_size_limit():
            return None
        suspect = lines.n_fields != width
        if width == 1:
            head = every[np.minimum(lines.begins, len(data) - 1)]
            suspect |= (head <= _BLANK) | (head > _ASCII)
        n_lines += len(lines.ends)
        for i in np.flatnonzero(suspect).tolist():
            begin, end, n_fields = int(lines.begins[i]), int(lines.ends[i]), int(lines.n_fields[i])
            if n_fields == 1 and not data[begin:end].decode().strip():
                blank.append((begin, min(end + 1, len(data))))
            elif n_fields != width:
                return Counted(n_lines, blank, (lines.first + i, n_fields))
    return Counted(n_lines - len(blank), blank, None)


def without(data: bytes, spans: list[tuple[int, int]]) -> bytes:
    """Leave out some stretches, which are in order."""
    view = memoryview(data)
    starts = [0, *(end for _, end in spans)]
    ends = [*(begin for begin, _ in spans), len(data)]
    return b"".join(view[start:end] for start, end in zip(starts, ends, strict=True))


UNNAMED = "Unnamed: 0"
"""What a first column without a name is called, as pandas calls it."""

# pandas gives these names to a column without a name: of a text file that was read without index_col and written
# again, perhaps several times, and of the index in a parquet file.
_WRITTEN_INDEX = re.compile(r"Unnamed: 0([._]\d+)*|__index_level_\d+__")


def name_of_unnamed(others: Container[str]) -> str:
    """Find a name for a first column that has none, as pandas does."""
    name, times = UNNAMED, 0
    while name in others:
        times += 1
        name = f"{UNNAMED}.{times}"
    return name


def is_index(name: str, unnamed: str | None) -> bool:
    """Say whether a column has the name of an index without one, or had none."""
    return name == unnamed or _WRITTEN_INDEX.fullmatch(name) is not None


def take_index(
    frame: Any, unnamed: str | None, id_column: str | None, spoken_for: Container[str], source: str
) -> tuple[str | None, list[str]]:
    """Take the first index among the columns for the row names, unless others are asked for, and leave out the rest.

    Parameters
    ----------
    frame : polars.DataFrame
    unnamed : str or None
        The column that had no name.
    id_column : str or None
        The column with the row names as asked for; "" for none.
    spoken_for : container of str
        Columns of which the user has said what they are.
    source : str
        The file's name, for messages.

    Returns
    -------
    id_column : str or None
        The column with the row names, as far as it is settled.
    left_out : list of str
        Columns to leave out.

    Raises
    ------
    InputError
        If the column without a name does not tell the rows apart.

    Warns
    -----
    InputWarning
        For every column that was found.
    """
    found = []
    for name in frame.columns:
        if not is_index(name, unnamed) or name == id_column or name in spoken_for:
            continue
        column = frame[name]
        if column.null_count() == 0 and column.n_unique() == len(column):
            found.append(name)
        elif name == unnamed:
            raise InputError(
                f"Column 1 of {source} has no name in the header, and its values are not distinct row names: give it a "
                "name, for example 'group', or leave it out."
            )
    if id_column is None and found:
        id_column = found.pop(0)
        _note(f"Column {id_column!r} of {source} is an index without a name and was taken as the row names.")
    for name in found:
        _note(
            f"Column {name!r} of {source} is an index without a name and was left out: give it a name to cluster by it."
        )
    return id_column, found


def _note(sentence: str) -> None:
    warnings.warn(sentence, InputWarning, stacklevel=4)


_DELIMITER_NAMES = {",": "comma", "\t": "tab", ";": "semicolon", "|": "vertical bar"}
# Records that are looked at to find out what separates the fields.
_SNIFFED = 1000


@dataclass(frozen=True)
class CheckedText:
    """Delimited text with a good header, and as many fields in every line.

    Parameters
    ----------
    data : bytes
        The text in UTF-8, without byte order mark and blank lines, each line ended by a line feed.
    delimiter : str
        What separates the fields.
    header : tuple of str
        The column names; a first column may lack one and is given one then.
    n_rows : int
        Number of lines below the header.
    unnamed : str or None
        Name given to a first column without one.
    at_blanks : bool
        Whether the fields of the file stand between blanks; those of `data` are separated by commas then.
    """

    data: bytes
    delimiter: str
    header: tuple[str, ...]
    n_rows: int
    unnamed: str | None = None
    at_blanks: bool = False


def check_text(data: bytes, source: str, delimiter: str | None) -> CheckedText:
    """Decode and check delimited text.

    Parameters
    ----------
    data : bytes
        The content of the file.
    source : str
        The file's name, for messages.
    delimiter : str or None
        What separates the fields, unless something else plainly does; None finds out.

    Returns
    -------
    CheckedText

    Raises
    ------
    InputError
        For text that is empty, not UTF-8, has no usable header or no rows, or lines of different length.

    Warns
    -----
    InputWarning
        When fields are separated by something else than expected.
    """
    data = _unified(data, source)
    if not any(line.strip() for line in text_lines(data)):
        raise InputError(f"{source} is empty: a table needs a header and at least one row.")
    data, delimiter, at_blanks = _separated(data, source, delimiter)
    header: tuple[str, ...] = ()
    unnamed: str | None = None
    counted: Counted | None = None
    n_rows = 0
    has_blank_lines = False
    plain = b'"' not in data
    reader = csv.reader(text_lines(data), delimiter=delimiter)
    line = 1
    try:
        for record in reader:
            if is_blank(record):
                has_blank_lines = True
            elif not header:
                if not record[0].strip():
                    unnamed = record[0] = name_of_unnamed([name.strip() for name in record])
                header = _check_header(record, source)
                # Without quotes a field is what is between delimiters, which takes no reading line by line.
                counted = count_lines(data, delimiter, len(header)) if plain else None
                if counted is not None:
                    break
            elif len(record) != len(header):
                raise _length_error(line, len(record), header, delimiter, source)
            else:
                n_rows += 1
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"Line {line} of {source} cannot be read: {error}.") from None
    if counted is not None:
        if counted.odd is not None:
            raise _length_error(*counted.odd, header, delimiter, source)
        n_rows = counted.n_lines - 1
    if n_rows == 0:
        raise InputError(f"{source} has a header but no rows.")
    if counted is not None and counted.blank:
        data = without(data, counted.blank)
    elif counted is None and has_blank_lines:
        data = _without_blank_lines(data, delimiter)
    return CheckedText(data, delimiter, header, n_rows, unnamed, at_blanks)


def _length_error(line: int, n_fields: int, header: Sequence[str], delimiter: str, source: str) -> InputError:
    return InputError(
        f"Line {line} of {source} has {n_fields} fields, but the header has {len(header)}: "
        f"fields are separated by {_DELIMITER_NAMES[delimiter]}, and one that contains it must "
        "stand in quotes."
    )


def _unified(data: bytes, source: str) -> bytes:
    """Check that a text is UTF-8, take its byte order mark off, and end its lines with line feeds."""
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        if not data.isascii():
            # By lines: the whole text in characters would take up to four times its bytes.
            deque(text_lines(data), maxlen=0)
    except UnicodeDecodeError:
        raise _not_utf8(data, source) from None
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def _not_utf8(data: bytes, source: str) -> InputError:
    try:
        data.decode()
        start = 0
    except UnicodeDecodeError as error:
        start = error.start
    line = data.count(b"\n", 0, start) + 1
    return InputError(
        f"{source} is not UTF-8 text (byte 0x{data[start]:02x} in line {line}): save it as UTF-8; "
        "files from spreadsheet programs are often Latin-1 or Windows-1252 (iconv -f latin1 -t utf-8)."
    )


def _separated(data: bytes, source: str, expected: str | None) -> tuple[bytes, str, bool]:
    """Return the text, what separates its fields, and whether blanks did, in whose place there are commas now."""
    if expected is not None and _n_fields(data, expected)[:1] != [1]:
        return data, expected, False
    found = _sniff(data)
    fields = _n_fields(data, found)
    if len(fields) > 1 and fields[0] > 1 and (expected is None or 2 * sum(n > 1 for n in fields) > len(fields)):
        if expected not in (None, found):
            _warn_separated(source, _DELIMITER_NAMES[found], _DELIMITER_NAMES[expected])
        return data, found, False
    if fields[:1] == [1] and _is_split_at_blanks(data):
        _warn_separated(source, "blanks", _DELIMITER_NAMES[expected or ","])
        records = _split_at_blanks(data)
        header, second = next(records), next(records)
        if len(header) < len(second):
            header.insert(0, "")
        return _written(chain([header, second], records), ","), ",", True
    return data, expected or found, False


def _warn_separated(source: str, found: str, expected: str) -> None:
    warnings.warn(
        f"{source} has no {expected} in its header, so its fields were taken to be separated by {found}.",
        InputWarning,
        stacklevel=5,
    )


def _sniff(data: bytes) -> str:
    """Find the delimiter that makes most fields of the header, and as many of every line; comma when none does."""

    def quality(delimiter: str) -> tuple[bool, int]:
        fields = _n_fields(data, delimiter)
        return len(set(fields)) == 1 and fields[0] > 1, fields[0] if fields else 0

    return max(_DELIMITER_NAMES, key=quality)


def _n_fields(data: bytes, delimiter: str) -> list[int]:
    """Count the fields of the first records, those that can be read."""
    fields = []
    try:
        for record in islice(csv.reader(text_lines(data), delimiter=delimiter), _SNIFFED):
            if not is_blank(record):
                fields.append(len(record))
    except csv.Error:
        pass  # the line is named when the whole text is read
    return fields


def _split_at_blanks(data: bytes) -> Iterator[list[str]]:
    lines = (line.strip() for line in text_lines(data))
    return csv.reader((line for line in lines if line), delimiter=" ", skipinitialspace=True, strict=True)


def _is_split_at_blanks(data: bytes) -> bool:
    """Say whether a text of one column, split at blanks, has as many fields in every line, some of them numbers.

    A header that lacks one field, as R writes it, has none for the row names.
    """
    try:
        records = _split_at_blanks(data)
        n_names = len(next(records))
        n_rows, width = 0, 0
        n_numbers: list[int] = []
        for record in records:
            if n_rows == 0:
                width = len(record)
                n_numbers = [0] * width
                if width < 2 or n_names not in (width, width - 1):
                    return False
            if len(record) != width:
                return False
            n_rows += 1
            for j, field in enumerate(record):
                n_numbers[j] += _is_number(field)
    except csv.Error:
        return False
    # Two words in every line are more likely a name than two fields; a column of numbers, most of them there, settles it.
    return any(2 * n > n_rows for n in n_numbers)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_blank(record: list[str]) -> bool:
    """Say whether a line is not a row of the table because there is nothing in it."""
    return not record or (len(record) == 1 and not record[0].strip())


def _check_header(record: list[str], source: str) -> tuple[str, ...]:
    header = tuple(name.strip() for name in record)
    unnamed = [j for j, name in enumerate(header) if not name]
    if unnamed:
        raise InputError(
            f"Column {unnamed[0] + 1} of {source} has no name in the header: give it one, for example 'id' "
            "if it holds row names."
        )
    repeated = [name for name, times in Counter(header).items() if times > 1]
    if repeated:
        raise InputError(
            f"The header of {source} has the column {'name' if len(repeated) == 1 else 'names'} "
            f"{listing(repeated)} more than once: column names must be distinct."
        )
    return header


def _without_blank_lines(data: bytes, delimiter: str) -> bytes:
    records = csv.reader(text_lines(data), delimiter=delimiter)
    return _written((record for record in records if not is_blank(record)), delimiter)


def _written(records: Iterable[list[str]], delimiter: str) -> bytes:
    kept = io.BytesIO()
    with io.TextIOWrapper(kept, encoding="utf-8", newline="") as text:
        csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(records)
        text.flush()
        return kept.getvalue()
