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
        Where it is.
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
        """Return the content as it is, which must not be empty."""
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
        The last is returned as it is.
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


def read_parquet(polars: Any, data: bytes, source: str) -> Any:
    """Read a parquet file that has columns with distinct names, and rows."""
    try:
        frame = polars.read_parquet(data)
    except (polars.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{source} is not a parquet file that can be read: {str(error).splitlines()[0]}.") from None
    column_names(frame.columns)
    if frame.height == 0:
        raise InputError(f"{source} has columns but no rows." if frame.width else f"{source} has no columns.")
    return frame
