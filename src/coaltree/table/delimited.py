"""Delimited text: check a csv or tsv file line by line before its columns are read."""

from __future__ import annotations

import csv
import io
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from ..errors import InputError, InputWarning
from .index import name_of_unnamed
from .wording import listing

_DELIMITER_NAMES = {",": "comma", "\t": "tab", ";": "semicolon", "|": "vertical bar"}
# Records that are looked at to find out what separates the fields.
_SNIFFED = 1000


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
        The column names; a first column may lack one and is given one then.
    n_rows : int
        Number of lines below the header.
    unnamed : str or None
        Name given to a first column without one.
    at_blanks : bool
        Whether the fields of the file stand between blanks; those of `text` are separated by commas then.
    """

    text: str
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
    text = _decode(data, source)
    if not text.strip():
        raise InputError(f"{source} is empty: a table needs a header and at least one row.")
    text, delimiter, at_blanks = _separated(text, source, delimiter)
    header: tuple[str, ...] = ()
    unnamed: str | None = None
    n_rows = 0
    has_blank_lines = False
    reader = csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter)
    line = 1
    try:
        for record in reader:
            if is_blank(record):
                has_blank_lines = True
            elif not header:
                if not record[0].strip():
                    unnamed = record[0] = name_of_unnamed([name.strip() for name in record])
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
    return CheckedText(text, delimiter, header, n_rows, unnamed, at_blanks)


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


def _separated(text: str, source: str, expected: str | None) -> tuple[str, str, bool]:
    """Return the text, what separates its fields, and whether blanks did, in whose place there are commas now."""
    if expected is not None and _n_fields(text, expected)[:1] != [1]:
        return text, expected, False
    found = _sniff(text)
    fields = _n_fields(text, found)
    if len(fields) > 1 and fields[0] > 1 and (expected is None or 2 * sum(n > 1 for n in fields) > len(fields)):
        if expected not in (None, found):
            _warn_separated(source, _DELIMITER_NAMES[found], _DELIMITER_NAMES[expected])
        return text, found, False
    if fields[:1] == [1]:
        records = _split_at_blanks(text)
        if records:
            _warn_separated(source, "blanks", _DELIMITER_NAMES[expected or ","])
            return _written(records, ","), ",", True
    return text, expected or found, False


def _warn_separated(source: str, found: str, expected: str) -> None:
    warnings.warn(
        f"{source} has no {expected} in its header, so its fields were taken to be separated by {found}.",
        InputWarning,
        stacklevel=5,
    )


def _sniff(text: str) -> str:
    """Find the delimiter that makes most fields of the header, and as many of every line; comma when none does."""

    def quality(delimiter: str) -> tuple[bool, int]:
        fields = _n_fields(text, delimiter)
        return len(set(fields)) == 1 and fields[0] > 1, fields[0] if fields else 0

    return max(_DELIMITER_NAMES, key=quality)


def _n_fields(text: str, delimiter: str) -> list[int]:
    """Count the fields of the first records, those that can be read."""
    fields = []
    try:
        for record in islice(csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter), _SNIFFED):
            if not is_blank(record):
                fields.append(len(record))
    except csv.Error:
        pass  # the line is named when the whole text is read
    return fields


def _split_at_blanks(text: str) -> list[list[str]]:
    """Split a text of one column at blanks; empty unless every line has as many fields, some of them numbers.

    A header that lacks one field, as R writes it, has none for the row names.
    """
    lines = (line.strip() for line in text.split("\n"))
    reader = csv.reader((line for line in lines if line), delimiter=" ", skipinitialspace=True, strict=True)
    try:
        records = list(reader)
    except csv.Error:
        return []
    width = len(records[-1])
    if len(records[0]) == width - 1:
        records[0].insert(0, "")
    if width < 2 or len(records) < 2 or any(len(record) != width for record in records):
        return []
    # Two words in every line are more likely a name than two fields; a column of numbers, most of them there, settles it.
    columns = zip(*records[1:], strict=True)
    return records if any(2 * sum(map(_is_number, column)) > len(column) for column in columns) else []


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


def _without_blank_lines(text: str, delimiter: str) -> str:
    records = csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter)
    return _written((record for record in records if not is_blank(record)), delimiter)


def _written(records: Iterable[list[str]], delimiter: str) -> str:
    kept = io.StringIO()
    csv.writer(kept, delimiter=delimiter, lineterminator="\n").writerows(records)
    return kept.getvalue()
