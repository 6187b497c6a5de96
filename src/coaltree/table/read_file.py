"""Tables from files: csv, tsv and parquet, read with polars."""

from __future__ import annotations

import difflib
import gzip
import io
import shlex
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, InputWarning, MissingDependencyError
from .delimited import check_text, is_index, take_index
from .messages import column_names, distinct_names, listing, row_label
from .text_types import LocalNumbers, example_of_numbers, type_columns

if TYPE_CHECKING:
    import polars as pl

DELIMITERS = {".csv": None, ".txt": None, ".tsv": "\t", ".tab": "\t"}
"""What separates the fields of a kind of text file; None finds out: many programs write semicolons into a .csv file."""

_PIECE = 2**22
_READ = ".csv, .tsv, .tab, .txt (each also with .gz), .parquet and .pq"
_GZIP_BEGINS, _PARQUET_BEGINS = b"\x1f\x8b", b"PAR1"


@dataclass(frozen=True)
class TableFile:
    """A file with a table, or the bytes of one.

    Parameters
    ----------
    name : str
        What it is called in messages.
    suffix : str
        Its kind: one of `DELIMITERS`, ``".parquet"`` or ``".pq"``.
    compressed : bool
        Whether it is text that gzip has compressed.
    path : Path or None
        Where it is; a folder stands for the parquet files in it.
    data : bytes or None
        Its content, if it is nowhere: what came from standard input can be read only once.
    """

    name: str
    suffix: str
    compressed: bool
    path: Path | None = None
    data: bytes | None = None

    @property
    def ending(self) -> str:
        """What the name of a file of that kind ends with."""
        return self.suffix + (".gz" if self.compressed else "")

    def raw(self) -> bytes:
        """Return the content as it is, which must not be empty; of a folder as one file."""
        if self.path is not None and self.path.is_dir() and parquet_files(self.path):
            written = io.BytesIO()
            parquet_frame(import_polars(), self).write_parquet(written)
            return written.getvalue()
        data = self.data if self.path is None else read_bytes(self.path)
        if not data:
            raise InputError(f"{self.name} is empty: a table needs a header and at least one row.")
        return data


def import_polars() -> Any:
    """Import polars, or say how to get it."""
    try:
        import polars
    except ImportError as error:
        raise MissingDependencyError(
            'Reading files needs polars, which is not installed: pip install "coaltree[cli]".'
        ) from error
    return polars


def table_file(path: str | Path | TableFile, kind: str | None = None) -> TableFile:
    """Find out the kind of a file by its name: its ending, without the .gz of a compressed one.

    Parameters
    ----------
    path : str, Path or TableFile
        The last is returned as it is. A folder with parquet files is one table.
    kind : {"csv", "tsv", "parquet"}, optional
        The kind, whatever the name ends with.

    Returns
    -------
    TableFile

    Raises
    ------
    InputError
        For a name that ends with something else.
    """
    if isinstance(path, TableFile):
        return path
    path = Path(path)
    if path.is_dir() and kind in (None, "parquet"):
        if not parquet_files(path):
            raise InputError(f"{path} is a folder without parquet files: name a file in it.")
        return TableFile(path.resolve().name, ".parquet", False, path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compressed = suffixes[-1:] == [".gz"]
    suffix = suffixes[-1] if suffixes else ""
    if compressed:
        suffix = suffixes[-2] if len(suffixes) > 1 and suffixes[-2] in DELIMITERS else ".gz"
    if kind is not None:
        suffix = f".{kind}"
    if suffix not in DELIMITERS and suffix not in (".parquet", ".pq"):
        # A folder or a typing error is the more useful news, whatever the name ends with.
        _check_is_file(path)
        raise InputError(f"{path.name} is not a kind of file that is read: these are {_READ}.")
    return TableFile(path.name, suffix, compressed, path)


def table_of_bytes(data: bytes, name: str, kind: str | None = None) -> TableFile:
    r"""Take bytes that have no name for a table, and find out their kind by how they begin.

    Parameters
    ----------
    data : bytes
    name : str
        What they are called in messages.
    kind : {"csv", "tsv", "parquet"}, optional
        Their kind, if it is known.

    Returns
    -------
    TableFile

    Examples
    --------
    >>> table_of_bytes(b"a\tb\n1\t2\n", "standard input").suffix
    '.tsv'
    """
    compressed = data.startswith(_GZIP_BEGINS)
    if kind is None and data.startswith(_PARQUET_BEGINS):
        kind = "parquet"
    if kind is None:
        start = _decompressed(data, name) if compressed else data
        header = start.lstrip(b"\r\n").partition(b"\n")[0]
        kind = "tsv" if header.count(b"\t") > header.count(b",") + header.count(b";") else "csv"
    return TableFile(name, f".{kind}", compressed, data=data)


def _check_is_file(path: Path) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file in it.")
    if not path.exists():
        raise InputError(f"{path} does not exist.")


def file_bytes(file: TableFile) -> bytes:
    """Read a file, and decompress it if it is compressed."""
    data = file.raw()
    return _decompressed(data, file.name) if file.compressed else data


def _decompressed(data: bytes, source: str) -> bytes:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{source} is not a whole gzip file: {error}.") from None


def read_bytes(path: Path) -> bytes:
    """Read a file, in pieces, so that an interrupt need not wait for the end of it."""
    data = io.BytesIO()
    try:
        _check_is_file(path)
        with path.open("rb", buffering=0) as file:
            while piece := file.read(_PIECE):
                data.write(piece)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    return data.getvalue()


def parquet_files(folder: Path) -> list[Path]:
    """Return the parquet files of a folder, by name; hidden ones are what programs keep for themselves."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in (".parquet", ".pq") and path.is_file() and path.name[0] not in "._"
    )


def parquet_frame(polars: Any, file: TableFile) -> Any:
    """Read a parquet file, or all those of a folder one below the other, which must have the same columns."""
    if file.path is None or not file.path.is_dir():
        return _read_parquet(polars, file.raw(), file.name)
    frames: list[Any] = []
    texts = (polars.String, polars.Categorical, polars.Enum)
    for path in parquet_files(file.path):
        frame, source = _read_parquet(polars, read_bytes(path), f"{file.name}/{path.name}"), path.name
        if frames and set(frame.columns) != set(frames[0].columns):
            other = min(set(frame.columns) ^ set(frames[0].columns))
            raise InputError(
                f"{source} and the first file of {file.name} have not the same columns, one of them has {other!r}: "
                "files of a folder are one table."
            )
        for name in frame.columns if frames else ():
            kinds = [own.schema[name] for own in (frames[0], frame)]
            if polars.Null not in kinds and sum(kind in texts for kind in kinds) == 1:
                raise InputError(
                    f"Column {name!r} of {source} is {kinds[1]}, and that of the first file of {file.name} is {kinds[0]}: "
                    "files of a folder are one table, whose columns are of one type."
                )
        frames.append(frame.select(frames[0].columns) if frames else frame)
    try:
        return polars.concat(frames, how="vertical_relaxed")
    except polars.exceptions.PolarsError as error:
        raise InputError(
            f"The files of {file.name} have columns of the same name but of types that do not go together: "
            f"{str(error).splitlines()[0]}."
        ) from None


def _read_parquet(polars: Any, data: bytes, source: str) -> Any:
    """Read a parquet file that has columns with distinct names, and rows."""
    try:
        frame = polars.read_parquet(data)
    except (polars.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{source} is not a parquet file that can be read: {str(error).splitlines()[0]}.") from None
    column_names(frame.columns)
    if frame.height == 0:
        raise InputError(f"{source} has columns but no rows." if frame.width else f"{source} has no columns.")
    return frame


def as_text(polars: Any, column: Any) -> Any:
    """Return a column as text.

    Parameters
    ----------
    polars : module
    column : polars.Series

    Returns
    -------
    polars.Series

    Raises
    ------
    InputError
        For lists, bytes and other things that text cannot stand for.
    """
    if column.dtype.is_nested() or column.dtype in (polars.Binary, polars.Object):
        raise InputError(
            f"Column {column.name!r} is of type {column.dtype}, which can be neither row names nor categories."
        )
    return column.cast(polars.String)


def as_enum(polars: Any, column: Any) -> Any:
    """Make a column of text categorical, with numbers in the order of numbers.

    Parameters
    ----------
    polars : module
    column : polars.Series

    Returns
    -------
    polars.Series
    """
    values = column.drop_nulls().unique().sort()
    numbers = values.cast(polars.Float64, strict=False)
    if numbers.null_count() == 0:
        values = values.gather(numbers.arg_sort())
    return column.cast(polars.Enum(values.filter(values != "")))


def as_numbers(polars: Any, column: Any, row_names: Sequence[str] | None) -> Any:
    """Return a column as numbers: truth values as 0 and 1, text as the numbers that it spells.

    Parameters
    ----------
    polars : module
    column : polars.Series
    row_names : sequence of str or None
        For messages.

    Returns
    -------
    polars.Series

    Raises
    ------
    InputError
        When a cell is no number: nothing is taken as missing that somebody has written down.
    """
    if column.dtype.is_numeric() or column.dtype.is_temporal():
        return column
    if column.dtype == polars.Boolean:
        return column.cast(polars.Int8)
    text = as_text(polars, column)
    observed = text.is_not_null() & (text != "").fill_null(False)
    numbers = text.cast(polars.Float64, strict=False)
    odd = (observed & numbers.is_null()).arg_true()
    if len(odd):
        row = int(odd[0])
        raise InputError(
            f"Column {column.name!r} is to hold numbers, but {row_label(row, row_names)} holds {text[row]!r}, which is not "
            f"a number: fix the cell, or have it taken as missing with --na-value {text[row]!r}."
        )
    return numbers


DEFAULT_NA = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?", "#N/A")
"""What stands for a missing cell in a text file."""

# A column in which this share of the texts is distinct may well have been meant to name the rows ...
_NEARLY_ALL = 0.9
# ... unless there are fewer of them.
_NAMED_ROWS = 10
# Row names of which this share looks like dates or numbers may well have been measured.
_LIKE_NUMBERS = 0.5
# In a smaller table, whole numbers in a row may well have been measured.
_NUMBERED_ROWS = 4


@dataclass(frozen=True, eq=False)
class FileTable:
    """A table that was read from a file.

    Parameters
    ----------
    frame : polars.DataFrame
        The columns to cluster by. Those that were declared categorical are of type Enum, so that
        ``read_columns(frame)`` takes them as categorical; those that were declared real are numbers.
    row_names : tuple of str or None
        Distinct names of the rows, from the column of identifiers.
    id_column : str or None
        Name of that column.
    categorical : tuple of str
        The columns that were declared categorical.
    real : tuple of str
        The columns that were declared real.
    """

    frame: pl.DataFrame
    row_names: tuple[str, ...] | None
    id_column: str | None
    categorical: tuple[str, ...]
    real: tuple[str, ...] = ()


def read_file(
    path: str | Path | TableFile,
    *,
    id_column: str | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    real: Sequence[str] = (),
    na_values: Sequence[str] = DEFAULT_NA,
) -> FileTable:
    """Read a table from a file, for the command line: messages name its options.

    Parameters
    ----------
    path : str, Path or TableFile
        A .csv, .tsv, .tab or .txt file, which may be compressed (.gz), or a .parquet or .pq file,
        or a folder of these.
    id_column : str, optional
        The column that holds the row names. By default the first column, if it is text, not mostly numbers,
        with a different value in every row, or has no name; ``""`` takes no column. An index that pandas wrote
        without a name is never clustered by.
    drop : sequence of str, optional
        Columns to leave out.
    categorical : sequence of str, optional
        Columns to take as categorical although they may hold numbers.
    real : sequence of str, optional
        Columns to take as numbers although they may be text or truth values.
    na_values : sequence of str, optional
        What stands for a missing cell in a text file.

    Returns
    -------
    FileTable

    Raises
    ------
    InputError
        When the file cannot be read as a table; the message says why.
    MissingDependencyError
        When polars is not installed.

    Warns
    -----
    InputWarning
        For what was read otherwise than it stands in the file: decimal commas, an index without a name, fields
        separated by something unexpected, row names that are not distinct; for a first column that numbers the rows, or whose
        texts are distinct but for a few, or that was taken as row names although most of it looks like dates or numbers.
    """
    file = table_file(path)
    polars = import_polars()
    local = LocalNumbers((), ())
    unnamed = texts = None
    if file.suffix in DELIMITERS:
        checked = check_text(file_bytes(file), file.name, DELIMITERS[file.suffix])
        unnamed = checked.unnamed
        as_written = {id_column or "", *categorical, *(name for name in checked.header if is_index(name, unnamed))}
        texts, frame, local = type_columns(polars, checked, file.name, na_values, as_written)
        del checked  # the whole text of the file
    else:
        frame = parquet_frame(polars, file)
    options = {"--id-column": [id_column] if id_column else [], "--drop": drop}
    options |= {"--categorical": categorical, "--real": real}
    for option, names in options.items():
        _check_known(frame.columns, names, option, file.name)
    spoken_for = {*drop, *categorical, *real}
    id_column, left_out = take_index(frame, unnamed, id_column, spoken_for, file.name)
    if id_column is None:
        id_column = _automatic_id(polars, frame, [*drop, *left_out], spoken_for)
        if id_column is not None:
            _warn_like_numbers(id_column, frame[id_column].to_list(), file.name)
    _check_used_once(options | {"--id-column": [id_column] if id_column else []})
    drop = [*drop, *left_out]
    # As written in the file, so that 007 stays 007.
    labels = frame if texts is None else texts
    row_names = distinct_names(as_text(polars, labels[id_column]).to_list()) if id_column else None
    kept = [name for name in frame.columns if name not in drop and name != id_column]
    if not kept:
        raise InputError(f"No columns of {file.name} are left to cluster by: all are dropped or hold row names.")
    first = frame.columns[0]
    if id_column != "" and first in kept and first not in spoken_for and _numbers_the_rows(frame[first]):
        _warn_numbered(first, frame[first][0], file.name)
    if id_column is None and first in kept[:-1] and first not in spoken_for and _nearly_names(polars, frame[first]):
        _warn_nearly_names(first, frame[first], file.name)
    for sentence in local.sentences({*kept} - {*categorical}):
        warnings.warn(sentence, InputWarning, stacklevel=2)
    declared = [as_enum(polars, as_text(polars, labels[name])) for name in kept if name in categorical]
    declared += [as_numbers(polars, frame[name], row_names) for name in kept if name in real]
    return FileTable(
        frame.select(kept).with_columns(declared), row_names, id_column or None, tuple(categorical), tuple(real)
    )


def _automatic_id(polars: Any, frame: Any, drop: Sequence[str], spoken_for: set[str]) -> str | None:
    name = frame.columns[0]
    column = frame[name]
    if name in drop or name in spoken_for or len(set(frame.columns) - set(drop)) < 2:
        return None
    if column.dtype != polars.String or column.null_count() or column.n_unique() < len(column):
        return None
    return None if _is_measured(polars, column) else str(name)


def _is_measured(polars: Any, column: Any) -> bool:
    """Say whether text is mostly numbers: measurements with a slip or in local notation, which must not go unnoticed."""
    n_text = column.cast(polars.Float64, strict=False).null_count()
    return 2 * n_text <= len(column) or example_of_numbers(np.arange(len(column)), column.to_list()) is not None


def _warn_like_numbers(name: str, cells: list[str], source: str) -> None:
    example = example_of_numbers(np.arange(len(cells)), cells, _LIKE_NUMBERS)
    if example is not None:
        warnings.warn(
            f"Column {name!r} of {source} was taken as row names, because its texts are all different, but most of them look "
            f"like dates or numbers, such as {example!r}: if it names the rows, say --id-column {shlex.quote(name)}, and if not, "
            "correct the other cells, and write dates as 2020-12-31.",
            InputWarning,
            stacklevel=3,
        )


def _nearly_names(polars: Any, column: Any) -> bool:
    """Say whether a column of text, which is not one of row names, is nearly one."""
    if column.dtype != polars.String:
        return False
    observed = column.drop_nulls()
    if len(observed) < _NAMED_ROWS or observed.n_unique() < _NEARLY_ALL * len(observed):
        return False
    return not _is_measured(polars, observed)


def _warn_nearly_names(name: str, column: Any, source: str) -> None:
    n_empty = column.null_count()
    empty = f" ({n_empty} {'is' if n_empty == 1 else 'are'} empty)" if n_empty else ""
    warnings.warn(
        f"Column {name!r} of {source} was not taken as row names, because its {len(column)} cells hold only "
        f"{column.drop_nulls().n_unique()} distinct texts{empty}: if it names the rows, say --id-column {shlex.quote(name)}, and "
        "if not, --drop it, for a category that nearly every row has to itself tells nothing.",
        InputWarning,
        stacklevel=3,
    )


def _numbers_the_rows(column: Any) -> bool:
    """Say whether a column is 1, 2, 3, ..., beginning anywhere."""
    if not column.dtype.is_integer() or len(column) < _NUMBERED_ROWS or column.null_count():
        return False
    return bool((column.diff().drop_nulls() == 1).all())


def _warn_numbered(name: str, first: int, source: str) -> None:
    warnings.warn(
        f"Column {name!r} of {source} counts the rows ({first}, {first + 1}, {first + 2}, ...) and is taken as a number: "
        "if it is an identifier, say --id-column for row names, or --drop to leave it out.",
        InputWarning,
        stacklevel=3,
    )


def _check_known(columns: Sequence[str], wanted: Sequence[str], option: str, source: str) -> None:
    for name in wanted:
        if name not in columns:
            close = difflib.get_close_matches(name, columns, n=3, cutoff=0.6)
            hint = f"did you mean {listing(close)}?" if close else f"its columns are {listing(columns, limit=10)}."
            raise InputError(f"{source} has no column {name!r}, which {option} names: {hint}")


def _check_used_once(options: dict[str, Sequence[str]]) -> None:
    """Refuse a column that two options name."""
    first: dict[str, str] = {}
    for option, names in options.items():
        for name in names:
            if first.setdefault(name, option) != option:
                raise InputError(
                    f"Column {name!r} is named by both {first[name]} and {option}; name it with one of them."
                )
