"""Read tables from files: csv, tsv and parquet.

`open_table` finds the file type, also of character files, which `coaltree.table.characters` reads. `read_file` reads the file
with polars and picks the row names and the column types. It serves the command line, so its messages name options.
"""

from __future__ import annotations

import contextlib
import difflib
import fnmatch
import gzip
import io
import os
import re
import shlex
import sys
import tempfile
import warnings
import zlib
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from .._atomic import finish_interrupted
from .._validation import quote, shorten
from ..errors import InputError, InputWarning, MissingDependencyError
from .cells import find_number_text
from .cldf import is_cldf
from .delimited import check_text, read_text_columns, to_utf8
from .formats import HEAD_BYTES, decode_head, recognise_format, recognise_other_format
from .labels import column_names, distinct_names, listing
from .limits import check_file_size
from .notation import Notation, Strays, are_codes, describe_notations, strays_error

if TYPE_CHECKING:
    import polars as pl

DELIMITERS = {".csv": None, ".txt": None, ".tsv": "\t", ".tab": "\t"}
"""The delimiter of each type of text file; None detects it, because many programs write semicolons into a .csv file."""

DEFAULT_NA = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?", "#N/A")
"""Texts that mark a missing cell."""

CHARACTER_ENDINGS = {
    ".nex": "nexus",
    ".nexus": "nexus",
    ".nxs": "nexus",
    ".fasta": "fasta",
    ".fa": "fasta",
    ".fas": "fasta",
    ".fna": "fasta",
    ".faa": "fasta",
    ".phy": "phylip",
    ".phylip": "phylip",
    ".cldf": "cldf",
}
"""The format of each type of character file; a folder with a CLDF data set counts as ``".cldf"``."""

_PARQUET = (".parquet", ".pq")
_SUPPORTED = (
    ".csv, .tsv, .tab, .txt, .nex, .nexus, .fasta, .fa, .phy (each also with .gz), .parquet, .pq and CLDF folders"
)
_HINT_ROWS = 100  # that a hint looks at
_CHUNK_BYTES = 2**20


# ------------------------------------------------------------------------------------------------- files


@dataclass(frozen=True)
class TableFile:
    """A file with a table, or its bytes.

    Parameters
    ----------
    name : str
        Its name in messages.
    suffix : str
        Its type: a key of `DELIMITERS` or `CHARACTER_ENDINGS`, ``".parquet"`` or ``".pq"``.
    compressed : bool
        Whether it is gzip-compressed text.
    path : Path or None
        Its path; a folder stands for all parquet files in it, or for a CLDF data set.
    data : bytes or None
        Its content, if it has no path: standard input can be read only once.
    """

    name: str
    suffix: str
    compressed: bool
    path: Path | None = None
    data: bytes | None = None

    @property
    def ending(self) -> str:
        """The ending of file names of this type."""
        return self.suffix + (".gz" if self.compressed else "")

    @property
    def is_text(self) -> bool:
        """Whether the file is delimited text."""
        return self.suffix in DELIMITERS

    @property
    def is_characters(self) -> bool:
        """Whether the file has characters of taxa."""
        return self.suffix in CHARACTER_ENDINGS

    @property
    def kind(self) -> str:
        """The format of a character file."""
        return CHARACTER_ENDINGS[self.suffix]

    @property
    def n_bytes(self) -> int:
        """The size of the content as stored; 0 if it cannot be found out, which reading it reports."""
        if self.path is None:
            return len(self.data or b"")
        parts = _find_parquet(self.path) if self.path.is_dir() else [self.path]
        return sum(part.stat().st_size for part in parts if part.is_file())

    def read_raw(self) -> bytes:
        """Return the content as stored, which must not be empty; that of a folder as one parquet file."""
        if self.path is not None and self.path.is_dir() and _find_parquet(self.path):
            buffer = io.BytesIO()
            read_parquet(import_polars(), self).write_parquet(buffer)
            return buffer.getvalue()
        data = self.data if self.path is None else read_bytes(self.path)
        if not data:
            raise InputError(f"{self.name} is empty: a table needs a header and at least one row.")
        return data

    def read(self) -> bytes:
        """Return the decompressed content, text in UTF-16 or UTF-32 as UTF-8."""
        data = self.read_raw()
        data = decompress(data, self.name) if self.compressed else data
        return to_utf8(data, self.name) if self.is_text or self.is_characters else data


def import_polars() -> Any:
    """Import polars, or say how to install it."""
    try:
        import polars
    except ImportError as error:
        raise MissingDependencyError(
            'Reading files needs polars, which is not installed: pip install "coaltree[cli]".'
        ) from error
    return polars


def open_table(path: str | Path | TableFile, kind: str | None = None) -> TableFile:
    """Find the type of a file from the ending of its name.

    Parameters
    ----------
    path : str, Path or TableFile
        A TableFile is returned unchanged. A folder of parquet files is one table, and so is a CLDF data set.
    kind : {"csv", "tsv", "parquet", "nexus", "fasta", "phylip", "cldf"}, optional
        The type, whatever the name ends with. By default the ending says it; files of characters and text with other endings are
        recognised by how they begin.

    Returns
    -------
    TableFile

    Raises
    ------
    InputError
        If the type is not supported.
    """
    if isinstance(path, TableFile):
        return path
    path = Path(path)
    if path.is_dir() and kind in (None, "parquet", "cldf"):
        if kind != "parquet" and is_cldf(path):
            return TableFile(path.resolve().name, ".cldf", False, path)
        if kind == "cldf" or not _find_parquet(path):
            raise InputError(f"{path} is a folder with neither parquet files nor a CLDF data set: name a file in it.")
        return TableFile(path.resolve().name, ".parquet", False, path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compressed = suffixes[-1:] == [".gz"]
    suffix = suffixes[-1] if suffixes else ""
    if compressed:
        known = {*DELIMITERS, *CHARACTER_ENDINGS}
        suffix = suffixes[-2] if len(suffixes) > 1 and suffixes[-2] in known else ".gz"
    head = ""
    if kind is not None:
        suffix = f".{kind}"
    elif suffix == ".txt" or (suffix not in DELIMITERS and suffix not in _PARQUET):
        head = _read_head(path, compressed)
        found = recognise_format(head)
        suffix = suffix if found is None else f".{found}"
    if (suffix not in DELIMITERS and suffix not in _PARQUET and suffix not in CHARACTER_ENDINGS) or suffix == ".cldf":
        # If the file does not exist, that message is more useful.
        _check_is_file(path)
        other = recognise_other_format(head)
        if other is not None:
            raise InputError(
                f"{path.name} is a file of the format {other}, which is not read: convert it to NEXUS, FASTA or PHYLIP, for "
                "example with Bio.AlignIO.convert of Biopython."
            )
        raise InputError(
            f"{path.name} has an unsupported file type; supported are {_SUPPORTED}. If the file is one of these under another "
            "name, say which: --format phylip, or format= of coaltree.read_characters."
        )
    return TableFile(path.name, suffix, compressed, path)


def open_bytes(data: bytes, name: str, kind: str | None = None) -> TableFile:
    r"""Find the type of a table without a file name from its first bytes.

    Parameters
    ----------
    data : bytes
    name : str
        The name in messages.
    kind : {"csv", "tsv", "parquet", "nexus", "fasta", "phylip"}, optional
        The type, if it is known.

    Returns
    -------
    TableFile

    Examples
    --------
    >>> open_bytes(b"a\tb\n1\t2\n", "standard input").suffix
    '.tsv'
    """
    compressed = data.startswith(b"\x1f\x8b")
    if kind is None and data.startswith(b"PAR1"):
        kind = "parquet"
    if kind is None:
        text = to_utf8(decompress(data, name) if compressed else data, name)
        found = recognise_format(decode_head(text))
        if found is not None:
            return TableFile(name, f".{found}", compressed, data=data)
        header = text.lstrip(b"\r\n").partition(b"\n")[0]
        kind = "tsv" if header.count(b"\t") > header.count(b",") + header.count(b";") else "csv"
    return TableFile(name, f".{kind}", compressed, data=data)


def _read_head(path: Path, compressed: bool) -> str:
    """Return the beginning of a file as text; empty if it cannot be read, which is reported when all of it is read."""
    if not path.is_file():
        return ""
    try:
        with path.open("rb") as file:
            data = file.read(HEAD_BYTES)
        return decode_head(zlib.decompressobj(31).decompress(data, HEAD_BYTES) if compressed else data)
    except (OSError, zlib.error):
        return ""


def read_bytes(path: Path) -> bytes:
    """Read a file in chunks, so that an interrupt does not wait for its end."""
    data = io.BytesIO()
    finish_interrupted(path.parent)
    try:
        _check_is_file(path)
        check_file_size(path.stat().st_size, str(path))
        with path.open("rb", buffering=0) as file:
            while chunk := file.read(_CHUNK_BYTES):
                data.write(chunk)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    return data.getvalue()


def _check_is_file(path: Path) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file in it.")
    if not path.exists():
        raise InputError(f"{path} does not exist.")


def decompress(data: bytes, source: str) -> bytes:
    """Return the content of a gzip file, read in chunks: a small file may hold any number of bytes."""
    content, size = io.BytesIO(), 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            while chunk := file.read(_CHUNK_BYTES):
                size += len(chunk)
                check_file_size(size, source)
                content.write(chunk)
        return content.getvalue()
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{source} is not a complete gzip file: {error}.") from None
    except MemoryError:
        raise InputError(
            f"{source} has more than {size / 2**20:,.0f} MiB when it is decompressed, which is more than the memory "
            "that is free: split it, or use a sample of the rows."
        ) from None


def compress(data: bytes) -> bytes:
    """Return a gzip file with some content, written in chunks: an interrupt does not wait for its end."""
    compressor = zlib.compressobj(9, wbits=zlib.MAX_WBITS + 16)
    parts = [compressor.compress(data[k : k + _CHUNK_BYTES]) for k in range(0, len(data), _CHUNK_BYTES)]
    return b"".join([*parts, compressor.flush()])


def _find_parquet(folder: Path) -> list[Path]:
    """Return the parquet files of a folder by name, without hidden ones."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in _PARQUET and path.is_file() and path.name[0] not in "._"
    )


# ------------------------------------------------------------------------------------------------- frames


def select_columns(frame: Any, names: Iterable[str]) -> Any:
    """Select columns of a polars frame. `frame.select` would read a name such as ``^a.*$`` as a pattern."""
    return type(frame)({name: frame.get_column(name) for name in names})


def get_column(frame: Any, name: str) -> Any:
    """Return a column of a polars frame under a neutral name: methods of a series take its name for an expression."""
    return frame.get_column(name).alias("column")


def replace_columns(frame: Any, columns: Mapping[str, Any]) -> Any:
    """Return a polars frame with some columns replaced."""
    return type(frame)({column.name: columns.get(column.name, column) for column in frame.get_columns()})


def read_header(file: TableFile) -> list[str]:
    """Return the column names of a file, without warnings: reading the file repeats them."""
    if not file.is_text:
        return list(read_parquet(import_polars(), file).columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return list(check_text(file.read(), file.name, DELIMITERS[file.suffix]).header)


def read_parquet(polars: Any, file: TableFile) -> Any:
    """Read a parquet file, or all those of a folder as one table."""
    if file.path is None or not file.path.is_dir():
        return _read_parquet_bytes(polars, file.read_raw(), file.name)
    frames: list[Any] = []
    texts = (polars.String, polars.Categorical, polars.Enum)
    for path in _find_parquet(file.path):
        frame = _read_parquet_bytes(polars, read_bytes(path), f"{file.name}/{path.name}")
        if not frames:
            frames.append(frame)
            continue
        first = frames[0]
        if set(frame.columns) != set(first.columns):
            other = min(set(frame.columns) ^ set(first.columns))
            raise InputError(
                f"{path.name} and the first file of {file.name} have different columns, for example {other!r}: the files "
                "of a folder are one table."
            )
        for name in frame.columns:
            dtypes = [first.schema[name], frame.schema[name]]
            if polars.Null not in dtypes and sum(dtype in texts for dtype in dtypes) == 1:
                raise InputError(
                    f"Column {quote(name)} is {dtypes[1]} in {path.name} and {dtypes[0]} in the first file of {file.name}: the "
                    "files of a folder are one table, whose columns have one type."
                )
        frames.append(select_columns(frame, first.columns))
    try:
        return polars.concat(frames, how="vertical_relaxed")
    except polars.exceptions.PolarsError as error:
        raise InputError(
            f"The files of {file.name} have columns of the same name with incompatible types: {_first_line(error)}."
        ) from None


@contextlib.contextmanager
def _suppress_error_output() -> Iterator[None]:
    """Drop what a block writes to standard error if it fails: a panic of polars prints a traceback of its own there."""
    try:
        descriptor = os.dup(2)
    except OSError:  # closed
        yield
        return
    with tempfile.TemporaryFile() as buffer:
        if sys.stderr is not None:
            sys.stderr.flush()
        os.dup2(buffer.fileno(), 2)
        try:
            yield
            os.dup2(descriptor, 2)
            buffer.seek(0)
            os.write(2, buffer.read())
        finally:
            os.dup2(descriptor, 2)
            os.close(descriptor)


def _read_parquet_bytes(polars: Any, data: bytes, source: str) -> Any:
    try:
        with _suppress_error_output():
            frame = polars.read_parquet(data)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # polars panics on damaged files, and raises something that is not an Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise InputError(f"{source} is not a parquet file or is damaged: {_first_line(error)}.") from None
    column_names(frame.columns)
    if frame.height == 0:
        raise InputError(f"{source} has columns but no rows." if frame.width else f"{source} has no columns.")
    return frame


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return shorten(lines[0]).rstrip(".") if lines else type(error).__name__


def to_text(polars: Any, column: Any, name: str) -> Any:
    """Return a polars column as text; refuse lists, bytes and objects."""
    if column.dtype.is_nested() or column.dtype in (polars.Binary, polars.Object):
        raise InputError(
            f"Column {quote(name)} is of type {column.dtype}, which can be neither row names nor categories."
        )
    if column.dtype == polars.Duration:  # polars does not cast these
        texts = [None if cell is None else str(cell) for cell in column.to_list()]
        return polars.Series(column.name, texts, dtype=polars.String)
    return column.cast(polars.String)


def to_numbers(polars: Any, column: Any, name: str, row_names: Sequence[str] | None) -> Any:
    """Return a polars column as numbers: booleans as 0 and 1, text as the numbers it contains.

    Raises
    ------
    InputError
        If a cell is not a number. It does not become missing silently.
    """
    if column.dtype.is_numeric() or column.dtype.is_temporal():
        return column
    if column.dtype == polars.Boolean:
        return column.cast(polars.Int8)
    text = to_text(polars, column, name)
    observed = text.is_not_null() & (text != "").fill_null(False)
    numbers = text.cast(polars.Float64, strict=False)
    bad = observed & numbers.is_null()
    if bad.any():
        texts = dict(text.filter(bad).alias("cell").value_counts(sort=True).iter_rows())
        row = int(bad.arg_true()[0])
        strays = Strays(name, "numbers", texts, int(observed.sum())).found_at(row, text[row])
        raise strays_error([strays], row_names, options=True)
    return numbers


def text_cells(frame: Any) -> list[list[str | None]]:
    """Return the first cells of the columns of a polars frame, if all of them are text; otherwise nothing."""
    columns = [column.head(_HINT_ROWS) for column in frame.get_columns()]
    is_text = all(column.dtype == import_polars().String for column in columns)
    return [column.to_list() for column in columns] if is_text else []


def _to_enum(polars: Any, column: Any) -> Any:
    """Make a column of text categorical, with numbers in numerical order."""
    column = column.set(column == "", None)  # an empty text is a missing cell
    values = column.drop_nulls().unique().sort()
    numbers = values.cast(polars.Float64, strict=False)
    if numbers.null_count() == 0:
        values = values.gather(numbers.arg_sort())
    return column.cast(polars.Enum(values))


# ------------------------------------------------------------------------------------------------- tables


@dataclass(frozen=True, eq=False)
class FileTable:
    """A table from a file.

    Parameters
    ----------
    frame : polars.DataFrame
        The columns to cluster by. Declared categorical columns are of type Enum, so that ``read_columns(frame)`` reads
        them as categorical. Declared real columns are numbers.
    row_names : tuple of str or None
        Distinct names of the rows, from the id column.
    id_column : str or None
        Name of that column.
    categorical, real : tuple of str
        The declared columns.
    datatypes : mapping of str to str
        The datatypes of the characters in a character file, also of those that were dropped, in the order of the file.
    notations : mapping of str to Notation
        How the numbers of a column are written in the file, for columns whose numbers are not plain.
    strays : tuple of Strays
        For each column that is text only because of some cells, those cells.
    """

    frame: pl.DataFrame
    row_names: tuple[str, ...] | None
    id_column: str | None
    categorical: tuple[str, ...]
    real: tuple[str, ...] = ()
    datatypes: Mapping[str, str] = field(default_factory=dict)
    notations: Mapping[str, Notation] = field(default_factory=dict)
    strays: tuple[Strays, ...] = ()


def read_file(
    path: str | Path | TableFile,
    *,
    id_column: str | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    real: Sequence[str] = (),
    as_text: Container[str] = (),
    na_values: Sequence[str] = DEFAULT_NA,
) -> FileTable:
    """Read a table from a file.

    Parameters
    ----------
    path : str, Path or TableFile
        A .csv, .tsv, .tab or .txt file, which may be compressed (.gz), a .parquet or .pq file, or a folder of these.
    id_column : str, optional
        The column with the row names; ``""`` for none. By default the first column if it has no name, or if it is text,
        not mostly numbers, with a different value in every row. An index that pandas wrote without a name is never used
        for clustering.
    drop : sequence of str, optional
        Columns to leave out, by names or patterns such as ``temp_*``.
    categorical : sequence of str, optional
        Columns to read as categorical even if they hold numbers, by names or patterns. Patterns leave out the columns that are
        dropped and the one with the row names.
    real : sequence of str, optional
        Columns to read as numbers even if they are text or booleans; likewise.
    as_text : container of str, optional
        Columns of text files to leave as text, without row names being looked for among them.
    na_values : sequence of str, optional
        Texts that mark a missing cell.

    Returns
    -------
    FileTable

    Raises
    ------
    InputError
        If the file cannot be read as a table; the message says why.
    MissingDependencyError
        If polars is not installed.

    Warns
    -----
    InputWarning
        For decimal commas, an unexpected delimiter, a header that looks like a row of numbers, an index without a name, row names
        that are not distinct, and a first column that numbers the rows, nearly identifies them, or identifies them but looks
        like dates or numbers.
    """
    file = open_table(path)
    polars = import_polars()
    unnamed, texts = None, None
    notations: dict[str, Notation] = {}
    strays: dict[str, Strays] = {}
    named = {*categorical, *real}
    if file.is_text:
        text = check_text(file.read(), file.name, DELIMITERS[file.suffix])
        unnamed = text.unnamed
        _warn_number_header(text.header, file.name)
        categorical = match_columns(text.header, categorical, "--categorical", file.name)
        keep_text = {id_column or "", *categorical}
        keep_text |= {name for name in text.header if _is_index(name, unnamed) or name in as_text}
        texts, frame, notations, strays = read_text_columns(polars, text, file.name, na_values, keep_text)
        del text  # the whole file
    else:
        frame = read_parquet(polars, file)
    drop = match_columns(frame.columns, drop, "--drop", file.name)
    options: dict[str, Sequence[str]] = {"--id-column": [id_column] if id_column else [], "--drop": drop}
    check_known(frame.columns, options["--id-column"], "--id-column", file.name)
    categorical = match_columns(frame.columns, categorical, "--categorical", file.name)
    real = match_columns(frame.columns, real, "--real", file.name)
    declared_names = {*drop, *named}
    id_column, indices = _find_index(frame, unnamed, id_column, declared_names, file.name)
    drop = [*drop, *indices]
    if id_column is None:
        id_column = _find_id_column(polars, frame, drop, declared_names)
        if id_column is not None:
            _warn_number_names(id_column, get_column(frame, id_column).to_list(), file.name)
    elsewhere = {*drop, id_column} - named
    categorical, real = ([name for name in names if name not in elsewhere] for names in (categorical, real))
    options |= {"--categorical": categorical, "--real": real}
    _check_used_once(options | {"--id-column": [id_column] if id_column else []})

    def as_written(name: str) -> Any:  # so that 007 stays 007
        return to_text(polars, texts[name] if texts is not None else get_column(frame, name), name)

    row_names = distinct_names(as_written(id_column).to_list()) if id_column else None
    names = [name for name in frame.columns if name not in drop and name != id_column]
    if not names:
        raise InputError(f"No columns of {file.name} are left to cluster by: all are dropped or hold row names.")
    first = frame.columns[0]
    if first in names and first not in declared_names:
        column = get_column(frame, first)
        if id_column != "" and _is_row_number(column):
            _warn_row_numbers(first, column, file.name)
        if id_column is None and len(names) > 1 and _is_nearly_distinct(polars, column):
            _warn_nearly_distinct(first, column, file.name)
    numbers = [name for name in names if name not in categorical and name not in as_text]
    notations = {name: notations[name] for name in numbers if name in notations}
    found = tuple(strays[name] for name in numbers if name in strays)
    for sentence in describe_notations(notations):
        warnings.warn(sentence, InputWarning, stacklevel=2)
    converted = {name: _to_enum(polars, as_written(name)) for name in names if name in categorical}
    converted |= {name: texts[name] for name in names if texts is not None and name in as_text}
    converted |= {name: to_numbers(polars, get_column(frame, name), name, row_names) for name in names if name in real}
    frame = replace_columns(select_columns(frame, names), converted)
    return FileTable(
        frame, row_names, id_column or None, tuple(categorical), tuple(real), notations=notations, strays=found
    )


# ------------------------------------------------------------------------------------------------- row names

# pandas gives these names to an index without a name, in text files and in parquet files.
_PANDAS_INDEX = re.compile(r"Unnamed: 0([._]\d+)*|__index_level_\d+__")
# A column named by such a number is probably one of a file without a header; whole numbers may be years.
_DECIMAL = re.compile(r"[-+]?\d*\.\d+([eE][-+]?\d+)?")
# A text column of at least MIN_NAMED_ROWS cells was probably meant as row names if this share of them is distinct.
MIN_DISTINCT_SHARE = 0.9
MIN_NAMED_ROWS = 10
# Row names are probably measurements if this share of them looks like numbers or dates.
MIN_NUMBER_SHARE = 0.5
# In a smaller table consecutive integers may well be measurements.
MIN_NUMBERED_ROWS = 4


def _is_index(name: str, unnamed: str | None) -> bool:
    return name == unnamed or _PANDAS_INDEX.fullmatch(name) is not None


def _find_index(
    frame: Any, unnamed: str | None, id_column: str | None, declared_names: Container[str], source: str
) -> tuple[str | None, list[str]]:
    """Find columns that are an index without a name.

    Parameters
    ----------
    frame : polars.DataFrame
    unnamed : str or None
        The column that had no name.
    id_column : str or None
        The requested id column; "" for none.
    declared_names : container of str
        Columns that options name.
    source : str
        The name of the file, for messages.

    Returns
    -------
    id_column : str or None
        The requested id column, or the first index.
    indices : list of str
        The other indices, to leave out.
    """
    indices = []
    for name in frame.columns:
        if not _is_index(name, unnamed) or name == id_column or name in declared_names:
            continue
        column = get_column(frame, name)
        if column.null_count() == 0 and column.n_unique() == len(column):
            indices.append(name)
        elif name == unnamed:
            raise InputError(
                f"Column 1 of {source} has no name in the header, and its values are not distinct row names: name it, for "
                "example 'group', or leave it out."
            )
    if id_column is None and indices:
        id_column = indices.pop(0)
        _warn(f"Column {id_column!r} of {source} is an index without a name and was read as the row names.")
    for name in indices:
        _warn(
            f"Column {quote(name)} of {source} is an index without a name and was left out: name it to cluster by it."
        )
    return id_column, indices


def _find_id_column(polars: Any, frame: Any, drop: Collection[str], declared_names: Container[str]) -> str | None:
    """Return the first column if it is text, not mostly numbers, with a different value in every row."""
    name = frame.columns[0]
    column = get_column(frame, name)
    if name in drop or name in declared_names or len(set(frame.columns) - set(drop)) < 2:
        return None
    if column.dtype != polars.String or column.null_count() or column.n_unique() < len(column):
        return None
    return None if _looks_numeric(polars, column) else str(name)


def _looks_numeric(polars: Any, column: Any) -> bool:
    """Return whether text is mostly numbers: measurements with a typing error, or in local notation."""
    if are_codes(column.drop_nulls().to_list()):
        return False
    n_text = column.cast(polars.Float64, strict=False).null_count()
    return 2 * n_text <= len(column) or find_number_text(np.arange(len(column)), column.to_list()) is not None


def _is_nearly_distinct(polars: Any, column: Any) -> bool:
    if column.dtype != polars.String:
        return False
    observed = column.drop_nulls()
    if len(observed) < MIN_NAMED_ROWS or observed.n_unique() < MIN_DISTINCT_SHARE * len(observed):
        return False
    return not _looks_numeric(polars, observed)


def _is_row_number(column: Any) -> bool:
    """Return whether a column holds consecutive integers."""
    if not column.dtype.is_integer() or len(column) < MIN_NUMBERED_ROWS or column.null_count():
        return False
    return bool((column.diff().drop_nulls() == 1).all())


def _warn_number_header(header: Sequence[str], source: str) -> None:
    numbers = [name for name in header if _DECIMAL.fullmatch(name)]
    if numbers:
        _warn(
            f"The header of {source} has names that are numbers, such as {quote(numbers[0])}. If the file has no header, its "
            "first row was taken for one: put a line with the names of the columns before it."
        )


def _warn_number_names(name: str, cells: list[str], source: str) -> None:
    example = find_number_text(np.arange(len(cells)), cells, MIN_NUMBER_SHARE)
    if example is not None:
        _warn(
            f"Column {quote(name)} of {source} was read as row names, because its texts are all different, but most of them look "
            f"like dates or numbers, such as {example!r}. If it names the rows, use --id-column {shlex.quote(name)}. If not, "
            "correct the other cells, and write dates as 2020-12-31."
        )


def _warn_nearly_distinct(name: str, column: Any, source: str) -> None:
    n_empty = column.null_count()
    empty = f" ({n_empty} {'is' if n_empty == 1 else 'are'} empty)" if n_empty else ""
    _warn(
        f"Column {quote(name)} of {source} was not read as row names, because its {len(column)} cells hold only "
        f"{column.drop_nulls().n_unique()} distinct texts{empty}. If it names the rows, use --id-column "
        f"{shlex.quote(name)}. If not, --drop it: a category that occurs in only one row carries no information."
    )


def _warn_row_numbers(name: str, column: Any, source: str) -> None:
    first = column[0]
    _warn(
        f"Column {quote(name)} of {source} counts the rows ({first}, {first + 1}, {first + 2}, ...) and is read as a "
        "number. If it is an identifier, fit with --id-column for row names, or with --drop to leave it out."
    )


def _warn(sentence: str) -> None:
    warnings.warn(sentence, InputWarning, stacklevel=4)


def match_columns(
    columns: Sequence[str],
    patterns: Iterable[str],
    option: str,
    source: str,
    groups: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[str]:
    """Return the columns that an option names.

    Parameters
    ----------
    columns : sequence of str
        All columns.
    patterns : iterable of str
        Names of groups or columns. Others are patterns as of file names: ``*`` is any text, ``?`` one character, ``[a-z]`` one of
        these.
    option, source : str
        The option and the file, for messages.
    groups : mapping of str to sequence of str, optional
        Columns with a name of their own, together.

    Returns
    -------
    list of str
        In the order of the table.

    Raises
    ------
    InputError
        If a name or pattern stands for no column.
    """
    known, chosen = set(columns), set[str]()
    for pattern in patterns:
        if pattern in groups:
            chosen.update(groups[pattern])
        elif pattern in known or not re.search(r"[*?[]", pattern):
            check_known(columns, [pattern], option, source)
            chosen.add(pattern)
        else:
            matches = re.compile(fnmatch.translate(pattern)).match
            names = {name for name in columns if matches(name)}
            names.update(*(groups[name] for name in groups if matches(name)))
            if not names:
                raise InputError(
                    f"{source} has no column that matches {quote(pattern)}, which {option} names: its columns are "
                    f"{listing(columns, limit=10)}."
                )
            chosen |= names
    return [name for name in columns if name in chosen]


def check_known(columns: Sequence[str], names: Iterable[str], option: str, source: str) -> None:
    """Refuse names of columns that a file lacks."""
    for name in names:
        if name not in columns:
            close = difflib.get_close_matches(name, columns, n=3, cutoff=0.6)
            hint = f"did you mean {listing(close)}?" if close else f"its columns are {listing(columns, limit=10)}."
            raise InputError(f"{source} has no column {quote(name)}, which {option} names: {hint}")


def _check_used_once(options: dict[str, Sequence[str]]) -> None:
    """Refuse a column that two options name."""
    first: dict[str, str] = {}
    for option, names in options.items():
        for name in names:
            if first.setdefault(name, option) != option:
                raise InputError(f"Column {quote(name)} is named by both {first[name]} and {option}; use one of them.")
