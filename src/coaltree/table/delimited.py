"""Delimited text: check a csv or tsv file line by line before its columns are read."""

from __future__ import annotations

import codecs
import csv
import io
import warnings
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from ..errors import InputError, InputWarning
from .index import name_of_unnamed
from .lines import Counted, count_lines, text_lines, without
from .wording import listing

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
