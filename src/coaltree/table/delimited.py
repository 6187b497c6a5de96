"""Delimited text: check a csv or tsv file line by line before its columns are read."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass

from ..errors import InputError
from .wording import listing

_DELIMITER_NAMES = {",": "comma", "\t": "tab", ";": "semicolon"}


@dataclass(frozen=True)
class CheckedText:
    """Delimited text with a good header, and as many fields in every line.

    Parameters
    ----------
    text : str
        The text, without byte order mark and blank lines.
    delimiter : str
        What separates the fields.
    header : tuple of str
        The column names.
    n_rows : int
        Number of lines below the header.
    """

    text: str
    delimiter: str
    header: tuple[str, ...]
    n_rows: int


def check_text(data: bytes, source: str, delimiter: str | None) -> CheckedText:
    """Decode and check delimited text.

    Parameters
    ----------
    data : bytes
        The content of the file.
    source : str
        The file's name, for messages.
    delimiter : str or None
        What separates the fields; None finds out.

    Returns
    -------
    CheckedText

    Raises
    ------
    InputError
        For text that is empty, not UTF-8, has no usable header or no rows, or lines of different length.
    """
    text = _decode(data, source)
    if not text.strip():
        raise InputError(f"{source} is empty: a table needs a header and at least one row.")
    if delimiter is None:
        delimiter = _sniff(text)
    header: tuple[str, ...] = ()
    n_rows = 0
    has_blank_lines = False
    reader = csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter)
    line = 1
    try:
        for record in reader:
            if _is_blank(record):
                has_blank_lines = True
            elif not header:
                header = _check_header(record, source)
            elif len(record) != len(header):
                raise InputError(
                    f"Line {line} of {source} has {len(record)} fields, but the header has {len(header)}: "
                    f"fields are separated by {_DELIMITER_NAMES[delimiter]}, and one that contains it must "
                    "stand in quotes."
                )
            else:
                n_rows += 1
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"Line {line} of {source} cannot be read: {error}.") from None
    if n_rows == 0:
        raise InputError(f"{source} has a header but no rows.")
    if has_blank_lines:
        text = _without_blank_lines(text, delimiter)
    return CheckedText(text, delimiter, header, n_rows)


def _decode(data: bytes, source: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{source} is not UTF-8 text (byte 0x{data[error.start]:02x} in line {line}): save it as UTF-8; "
            "files from spreadsheet programs are often Latin-1 or Windows-1252 (iconv -f latin1 -t utf-8)."
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _sniff(text: str) -> str:
    """Find the delimiter that occurs most often in the first line; comma when none does."""
    first_line = text.lstrip("\n").split("\n", 1)[0]
    return max(_DELIMITER_NAMES, key=lambda delimiter: len(next(csv.reader([first_line], delimiter=delimiter))))


def _is_blank(record: list[str]) -> bool:
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


def _without_blank_lines(text: str, delimiter: str) -> str:
    kept = io.StringIO()
    writer = csv.writer(kept, delimiter=delimiter, lineterminator="\n")
    records = csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter)
    writer.writerows(record for record in records if not _is_blank(record))
    return kept.getvalue()
