"""Files with tables: their kinds and their bytes."""

from __future__ import annotations

import gzip
import io
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError, MissingDependencyError
from .names import column_names

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
