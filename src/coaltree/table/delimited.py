"""Delimited text (csv, tsv) as a polars frame.

Three steps: check the text and find its delimiter, read every column as text, give each column the type that all of its
observed cells have. The csv module names the line of a ragged row; polars does the reading.
"""

from __future__ import annotations

import codecs
import csv
import io
import warnings
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, NamedTuple

from ..errors import InputError, InputWarning
from .labels import listing
from .notation import (
    LEADING_ZERO,
    MIN_NUMBERS,
    NO_CODE,
    Notation,
    Strays,
    find_notation,
    find_strays,
    is_number,
    read_time,
)

DELIMITER_NAMES = {",": "comma", "\t": "tab", ";": "semicolon", "|": "vertical bar"}
N_SAMPLE_RECORDS = 1000
"""Records that decide on the delimiter."""

# that of UTF-32 begins with that of UTF-16
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE_BYTES = 2**16  # in text with two bytes per letter, a third of these are null bytes


@dataclass(frozen=True)
class DelimitedText:
    """Text with a valid header and the same number of fields in every row.

    Parameters
    ----------
    data : bytes
        The text in UTF-8, without byte order mark and blank lines; each line ends with a line feed.
    delimiter : str
        The delimiter of `data`.
    header : tuple of str
        The column names.
    n_rows : int
        Number of rows below the header.
    unnamed : str or None
        The name given to a first column that had none.
    whitespace : bool
        Whether the file separates fields by runs of blanks. `data` then has commas in their place.
    """

    data: bytes
    delimiter: str
    header: tuple[str, ...]
    n_rows: int
    unnamed: str | None = None
    whitespace: bool = False


def check_text(data: bytes, source: str, delimiter: str | None) -> DelimitedText:
    """Decode and check delimited text.

    Parameters
    ----------
    data : bytes
        The content of the file.
    source : str
        The name of the file, for messages.
    delimiter : str or None
        The expected delimiter; None detects it.

    Returns
    -------
    DelimitedText

    Raises
    ------
    InputError
        If the text is empty or not UTF-8, has an invalid header, no rows, or rows of different lengths.

    Warns
    -----
    InputWarning
        If the delimiter is not the expected one.
    """
    data = _normalise(data, source)
    if not any(line.strip() for line in read_lines(data)):
        raise InputError(f"{source} is empty: a table needs a header and at least one row.")
    data, delimiter, whitespace = _find_delimiter(data, source, delimiter)
    records = csv.reader(read_lines(data), delimiter=delimiter)
    try:
        names = next((record for record in records if not is_blank(record)), [])
    except csv.Error as error:
        raise InputError(f"Line {records.line_num} of {source} cannot be read: {error}.") from None
    if not names:  # only empty texts in quotes
        raise InputError(f"{source} is empty: a table needs a header and at least one row.")
    unnamed = None
    if not names[0].strip():
        unnamed = names[0] = _default_column_name([name.strip() for name in names])
    for j, name in enumerate(names):
        # Some programs end every line with a delimiter.
        if not name.strip() and _is_empty_column(data, delimiter, j):
            names[j] = _default_column_name([name.strip() for name in names], j)
    header = _check_header(names, source)
    n_lines, n_blank = _check_rows(data, delimiter, header, source)
    if n_lines == 1:
        raise InputError(f"{source} has a header but no rows.")
    if n_blank:
        data = write_records(_read_records(data, delimiter), delimiter).encode()
    return DelimitedText(data, delimiter, header, n_lines - 1, unnamed, whitespace)


def read_lines(data: bytes) -> Iterator[str]:
    """Return the lines of a text; only a line feed ends a line."""
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="\n")


def is_blank(record: Sequence[str]) -> bool:
    """Return whether a record comes from a blank line."""
    return not record or (len(record) == 1 and not record[0].strip())


def split_at_blanks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Split lines into the fields between runs of blanks."""
    stripped_lines = (line.strip() for line in lines)
    return csv.reader((line for line in stripped_lines if line), delimiter=" ", skipinitialspace=True, strict=True)


def to_utf8(data: bytes, source: str) -> bytes:
    """Convert text in UTF-16 or UTF-32, which spreadsheet programs write as "Unicode text", to UTF-8 with a byte order mark.

    Other bytes are returned as they are.
    """
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), None)
    sample = data[:_SAMPLE_BYTES]
    if encoding is None and 3 * sample.count(0) <= len(sample):
        return data
    try:
        if encoding is None:
            raise UnicodeError
        return codecs.BOM_UTF8 + data.decode(encoding).encode()
    except UnicodeError:
        raise InputError(
            f"{source} has many null bytes: it is binary, or text in UTF-16 that is damaged or has no byte order mark. Save it "
            "as UTF-8 (iconv -f utf-16le -t utf-8)."
        ) from None


def _normalise(data: bytes, source: str) -> bytes:
    """Check that a text is UTF-8, remove the byte order mark and end each line with a line feed."""
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        if not data.isascii():
            data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{source} is not UTF-8 text (byte 0x{data[error.start]:02x} in line {line}): save it as UTF-8. Files from "
            "spreadsheet programs are often Latin-1 or Windows-1252 (iconv -f latin1 -t utf-8)."
        ) from None
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def _check_rows(data: bytes, delimiter: str, header: Sequence[str], source: str) -> tuple[int, int]:
    """Count the lines with fields and the blank ones; refuse a line with another number of fields than the header."""
    n_lines = n_blank = 0
    for line, n_fields in _count_fields(data, delimiter, source):
        if n_fields == 0:
            n_blank += 1
        elif n_fields == len(header):
            n_lines += 1
        else:
            raise InputError(
                f"Line {line} of {source} has {n_fields} fields, but the header has {len(header)}: the delimiter is the "
                f"{DELIMITER_NAMES[delimiter]}, and a field that contains it needs quotes."
            )
    return n_lines, n_blank


def _count_fields(data: bytes, delimiter: str, source: str) -> Iterator[tuple[int, int]]:
    """Yield the line number of each record, counted from 1, and its number of fields, 0 for a blank line."""
    separator = delimiter.encode()
    if b'"' not in data and all(len(line) <= csv.field_size_limit() for line in io.BytesIO(data)):
        # Without quotes every delimiter separates fields. Counting them is five times faster than the csv module.
        for number, line in enumerate(io.BytesIO(data), 1):
            n_fields = line.count(separator) + 1
            yield number, n_fields if n_fields > 1 or line.decode().strip() else 0
        return
    records = csv.reader(read_lines(data), delimiter=delimiter)
    number = 1
    try:
        for record in records:
            yield number, 0 if is_blank(record) else len(record)
            number = records.line_num + 1
    except csv.Error as error:
        raise InputError(f"Line {number} of {source} cannot be read: {error}.") from None


def _check_header(record: Sequence[str], source: str) -> tuple[str, ...]:
    header = tuple(name.strip() for name in record)
    if "" in header:
        raise InputError(
            f"Column {header.index('') + 1} of {source} has no name in the header: name it, for example 'id' if it "
            "holds row names."
        )
    repeated = [name for name, times in Counter(header).items() if times > 1]
    if repeated:
        raise InputError(
            f"The header of {source} has the column {'name' if len(repeated) == 1 else 'names'} {listing(repeated)} more "
            "than once: column names must be distinct."
        )
    return header


def _is_empty_column(data: bytes, delimiter: str, column: int) -> bool:
    """Return whether a column has no text in any record, including the header."""
    try:
        return not any(
            any(text.strip() for text in record[column : column + 1]) for record in _read_records(data, delimiter)
        )
    except csv.Error:  # `_check_rows` names the line
        return False


def _default_column_name(others: Container[str], column: int = 0) -> str:
    """Name a column without a name, as pandas does."""
    name, times = f"Unnamed: {column}", 0
    while name in others:
        times += 1
        name = f"Unnamed: {column}.{times}"
    return name


def _read_records(data: bytes, delimiter: str) -> Iterator[list[str]]:
    """Return the records of lines that are not blank."""
    return (record for record in csv.reader(read_lines(data), delimiter=delimiter) if not is_blank(record))


def write_records(records: Iterable[Sequence[str]], delimiter: str, line_end: str = "\n") -> str:
    """Write records as delimited text, with quotes where necessary."""
    text = io.StringIO(newline="")

    class Lines:
        def write(self, line: str) -> int:
            return text.write(line.removesuffix("\r\n") + line_end)

    # The csv module quotes a carriage return in a field only if the line end contains one.
    csv.writer(Lines(), delimiter=delimiter, lineterminator="\r\n").writerows(records)
    return text.getvalue()


# ------------------------------------------------------------------------------------------------- delimiters


def _find_delimiter(data: bytes, source: str, expected: str | None) -> tuple[bytes, str, bool]:
    """Return the text, its delimiter, and whether blanks were replaced by commas."""
    if expected is not None and _sample_lengths(data, expected)[:1] != [1]:
        return data, expected, False
    best = max(DELIMITER_NAMES, key=lambda delimiter: _rate_delimiter(data, delimiter))
    lengths = _sample_lengths(data, best)
    if len(lengths) > 1 and lengths[0] > 1 and (expected is None or 2 * sum(n > 1 for n in lengths) > len(lengths)):
        if expected not in (None, best):
            _warn_delimiter(source, DELIMITER_NAMES[best], DELIMITER_NAMES[expected])
        return data, best, False
    if lengths[:1] == [1] and _is_split_at_blanks(data):
        _warn_delimiter(source, "blanks", DELIMITER_NAMES[expected or ","])
        records = split_at_blanks(read_lines(data))
        header, first = next(records), next(records)
        if len(header) < len(first):  # R writes no name for the row names
            header.insert(0, "")
        return write_records(chain([header, first], records), ",").encode(), ",", True
    return data, expected or best, False


def _rate_delimiter(data: bytes, delimiter: str) -> tuple[bool, int]:
    """Rate a delimiter. The best gives every record as many fields as the header, and many of them."""
    lengths = _sample_lengths(data, delimiter)
    return len(set(lengths)) == 1 and lengths[0] > 1, lengths[0] if lengths else 0


def _sample_lengths(data: bytes, delimiter: str) -> list[int]:
    """Count the fields of the first records, up to one that cannot be read."""
    lengths = []
    try:
        for record in islice(_read_records(data, delimiter), N_SAMPLE_RECORDS):
            lengths.append(len(record))
    except csv.Error:
        pass  # check_text names the line
    return lengths


def _is_split_at_blanks(data: bytes) -> bool:
    """Return whether blanks separate the fields: all rows have the same number of fields, and one column is mostly numbers.

    Without a column of numbers, two words in every line are probably a name.
    """
    try:
        header, *rows = split_at_blanks(read_lines(data))
    except (csv.Error, ValueError):
        return False
    if not rows or len(rows[0]) < 2 or {len(row) for row in rows} != {len(rows[0])}:
        return False
    if len(header) not in (len(rows[0]), len(rows[0]) - 1):
        return False
    return any(2 * sum(map(is_number, column)) > len(rows) for column in zip(*rows, strict=True))


def _warn_delimiter(source: str, delimiter: str, expected: str) -> None:
    warnings.warn(
        f"{source} has no {expected} in its header, so its fields were taken to be separated by {delimiter}.",
        InputWarning,
        stacklevel=5,
    )


# ------------------------------------------------------------------------------------------------- types

# A comma may be a decimal comma only where it does not separate fields.
_DECIMAL_COMMA_DELIMITERS = (";", "\t")
_DECIMAL_COMMA = r"^[+-]?([0-9]{1,3}(\.[0-9]{3})+|[0-9]+)?(,[0-9]+)?([eE][+-]?[0-9]+)?$"
_GROUPED_BY_POINTS = r"^[+-]?([0-9]{1,3}(\.[0-9]{3})+|[0-9]+)$"
_GROUPED_BY_COMMAS = r"^[+-]?[1-9][0-9]{0,2},[0-9]{3}$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_DATETIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?$"
_N_CELLS_AT_ONCE = 2**20


class TextColumns(NamedTuple):
    """The columns of delimited text.

    Parameters
    ----------
    texts : dict of str to polars.Series
        Columns as stripped text, null for missing: those requested, and those without another type.
    frame : polars.DataFrame
        All columns with their types.
    notations : dict of str to Notation
        How the numbers of a column are written, for columns whose numbers are not plain.
    strays : dict of str to Strays
        For columns that are text only because of some cells: those cells.
    """

    texts: dict[str, Any]
    frame: Any
    notations: dict[str, Notation]
    strays: dict[str, Strays]


def read_text_columns(
    polars: Any, text: DelimitedText, source: str, na_values: Iterable[str], keep_text: Container[str] | None = None
) -> TextColumns:
    """Read the columns of delimited text and find their types.

    Parameters
    ----------
    polars : module
    text : DelimitedText
    source : str
        The name of the file, for messages.
    na_values : iterable of str
        Texts that mark a missing cell.
    keep_text : container of str, optional
        Return the text of these columns even if they are numbers, which takes several times their memory; default all.

    Returns
    -------
    TextColumns

    Raises
    ------
    InputError
        If polars cannot read the text.
    """
    missing = sorted({"", *(value.strip() for value in na_values)})
    columns = _read_as_text(polars, text, source).get_columns()
    texts: dict[str, Any] = {}
    typed_columns: dict[str, Any] = {}
    n_at_once = max(_N_CELLS_AT_ONCE // text.n_rows, 1)
    columns.reverse()
    while columns:
        # Text takes several times the memory of numbers: release it as soon as a column has its type.
        batch = polars.DataFrame([columns.pop() for _ in range(min(n_at_once, len(columns)))])
        cell = polars.all().str.strip_chars()
        for column in batch.select(polars.when(~cell.is_in(missing)).then(cell)).iter_columns():
            name = text.header[int(column.name)]
            typed_columns[name] = _find_type(polars, column)
            keeps_text = keep_text is None or name in keep_text or typed_columns[name].dtype == polars.String
            if keeps_text or _is_grouped(polars, typed_columns[name].dtype, column, text.delimiter):
                texts[name] = column
    decimal = [
        name
        for name, column in texts.items()
        if typed_columns[name].dtype == polars.String and _has_decimal_commas(column, text.delimiter)
    ]
    # A file with decimal commas has no decimal points, so points group the digits of its integers.
    grouped = [
        name
        for name, column in texts.items()
        if decimal and _is_grouped(polars, typed_columns[name].dtype, column, text.delimiter)
    ]
    notations = {name: Notation(group=".", decimal=",") for name in decimal}
    notations |= {name: Notation(group=".", decimal="") for name in grouped}
    typed_columns |= {name: _read_local(polars, texts[name]) for name in notations}
    strays: dict[str, Strays] = {}
    for name, column in texts.items():
        if typed_columns[name].dtype == polars.String and not _holds_codes(column):
            counts = _count_texts(polars, column)
            notation = _find_notation(counts, text.delimiter, bool(decimal))
            numbers = {} if notation is None else {cell: notation.read(cell) for cell in counts}
            stray = find_strays(name, counts, notation, numbers)
            if stray is not None:
                row = int(column.is_in(list(stray.texts)).fill_null(False).arg_true()[0])
                strays[name] = stray.found_at(row, column[row])
            elif notation is not None and None not in numbers.values():
                notations[name] = notation
                typed_columns[name] = column.replace_strict(numbers, default=None, return_dtype=polars.Float64)
    return TextColumns(texts, polars.DataFrame(typed_columns), notations, strays)


def _count_texts(polars: Any, column: Any) -> dict[str, int]:
    """Return the distinct texts of a column with the number of their cells; none if most cells have no digits."""
    cells = column.drop_nulls()
    if cells.str.contains(r"\d").sum() < MIN_NUMBERS * len(cells):
        return {}
    return dict(cells.alias("cell").to_frame().group_by("cell", maintain_order=True).len().iter_rows())


def _find_notation(texts: Mapping[str, int], delimiter: str, comma_decimals: bool) -> Notation | None:
    notation = find_notation(texts, comma_decimals, delimiter == ";") if texts else None
    if notation is None or delimiter != "\t" or (notation.group, notation.decimal) != (",", "."):
        return notation
    # Between tabs, 1,250 may be one and a quarter or one thousand two hundred and fifty.
    decimal = replace(notation, group="", decimal=",")
    return None if all(decimal.read(text) is not None for text in texts) else notation


def _read_as_text(polars: Any, text: DelimitedText, source: str) -> Any:
    unclosed = InputError(f"{source} cannot be read: a quotation mark in it is not closed.")
    try:
        frame = polars.read_csv(text.data, separator=text.delimiter, infer_schema=False)
    except polars.exceptions.PolarsError as error:
        if text.data.count(b'"') % 2:
            raise unclosed from None
        raise InputError(f"{source} cannot be read: {str(error).splitlines()[0]}.") from None
    if frame.shape != (text.n_rows, len(text.header)):
        raise unclosed
    # Neutral names: methods of a series take its name for an expression.
    frame.columns = [str(j) for j in range(len(text.header))]
    return frame


def _find_type(polars: Any, column: Any) -> Any:
    """Convert a column of text to the type that all of its observed cells have; leave it text if there is none."""
    n_missing = column.null_count()
    if n_missing == len(column):
        return column.cast(polars.Float64)
    if _holds_codes(column):
        return column
    for dtype in (polars.Int64, polars.Float64):
        numbers = column.cast(dtype, strict=False)
        if numbers.null_count() == n_missing:
            return numbers
    lower = column.str.to_lowercase()
    if _holds_in_all(lower.is_in(["true", "false"])):
        return (lower == "true").alias(column.name)
    if _holds_in_all(column.str.contains(_DATE)):
        times = column.str.to_date("%Y-%m-%d", strict=False)
    elif _holds_in_all(column.str.contains(_DATETIME)):
        times = _read_datetimes(polars, column)
    else:
        return column
    # A text such as 2020-02-30 looks like a date but is not one.
    return times if times.null_count() == n_missing else column


def _read_datetimes(polars: Any, column: Any) -> Any:
    """Read ISO 8601 times. Those with an offset are converted to UTC, those without count as UTC."""
    times = [None if text is None else read_time(text) for text in column.to_list()]
    return polars.Series(column.name, times, dtype=polars.Datetime("us"))


def _holds_codes(column: Any) -> bool:
    """Return what `coaltree.table.notation.are_codes` does, for any number of cells."""
    return bool(column.str.contains(LEADING_ZERO).any()) and not bool(column.str.contains(NO_CODE).any())


def _holds_in_all(mask: Any) -> bool:
    """Return whether a mask holds in all observed cells."""
    return bool(mask.fill_null(True).all())


def _has_decimal_commas(column: Any, delimiter: str) -> bool:
    if delimiter not in _DECIMAL_COMMA_DELIMITERS:
        return False
    cells = column.drop_nulls()
    commas = cells.filter(cells.str.contains(",", literal=True))
    if commas.is_empty() or not _holds_in_all(cells.str.contains(_DECIMAL_COMMA) & cells.str.contains(r"\d")):
        return False
    # Between semicolons a comma is decimal. Between tabs, 1,250 may also be one thousand two hundred and fifty.
    return delimiter == ";" or not _holds_in_all(commas.str.contains(_GROUPED_BY_COMMAS))


def _is_grouped(polars: Any, dtype: Any, column: Any, delimiter: str) -> bool:
    """Return whether a column of text may be integers with points between groups of digits."""
    if delimiter not in _DECIMAL_COMMA_DELIMITERS or dtype not in (polars.Float64, polars.String):
        return False
    cells = column.drop_nulls()
    return (
        # The first cells decide for most columns.
        _holds_in_all(cells.head(N_SAMPLE_RECORDS).str.contains(_GROUPED_BY_POINTS))
        and bool(cells.str.contains(".", literal=True).any())
        and _holds_in_all(cells.str.contains(_GROUPED_BY_POINTS))
        and not bool(cells.str.contains(r"^[+-]?0\.").any())
    )


def _read_local(polars: Any, column: Any) -> Any:
    plain = column.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    return plain.cast(polars.Float64)
