"""Files with tables: their kinds and their bytes."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import Any

from ..errors import InputError, MissingDependencyError
from .names import column_names

DELIMITERS = {".csv": None, ".txt": None, ".tsv": "\t", ".tab": "\t"}
"""What separates the fields of a kind of text file; None finds out: many programs write semicolons into a .csv file."""

_PIECE = 2**22
_READ = ".csv, .tsv, .tab, .txt (each also with .gz), .parquet and .pq"


def import_polars() -> Any:
    """Import polars, or say how to get it."""
    try:
        import polars
    except ImportError as error:
        raise MissingDependencyError(
            'Reading files needs polars, which is not installed: pip install "coaltree[cli]".'
        ) from error
    return polars


def table_suffix(path: Path) -> str:
    """Find out the kind of a file by its name: its ending, without the .gz of a compressed one."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffix = suffixes[-1] if suffixes else ""
    if suffix == ".gz":
        suffix = suffixes[-2] if len(suffixes) > 1 and suffixes[-2] in DELIMITERS else ".gz"
    if suffix not in DELIMITERS and suffix not in (".parquet", ".pq"):
        # A folder or a typing error is the more useful news, whatever the name ends with.
        _check_is_file(path)
        raise InputError(f"{path.name} is not a kind of file that is read: these are {_READ}.")
    return suffix


def _check_is_file(path: Path) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file in it.")
    if not path.exists():
        raise InputError(f"{path} does not exist.")


def file_bytes(path: Path) -> bytes:
    """Read a file, and decompress it if its name says so."""
    try:
        _check_is_file(path)
        data = _read_in_pieces(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    if not data:
        raise InputError(f"{path.name} is empty: a table needs a header and at least one row.")
    if path.suffix.lower() == ".gz":
        try:
            return gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path.name} is not a whole gzip file: {error}.") from None
    return data


def _read_in_pieces(path: Path) -> bytes:
    """Read a file so that an interrupt need not wait for the end of it."""
    data = io.BytesIO()
    with path.open("rb", buffering=0) as file:
        while piece := file.read(_PIECE):
            data.write(piece)
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
