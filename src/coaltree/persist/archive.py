"""Archives of arrays: zip files that are the same for the same content, and that are not trusted when they are read.

Nothing in them is compressed or pickled, so that no member and no array can be larger than the file that it comes in.
"""

from __future__ import annotations

import io
import json
import math
import struct
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def to_json(value: Any) -> bytes:
    """Write plain values as strict JSON, in their order; lone surrogates, which file names may have, are kept."""
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode(errors="surrogatepass")


def from_json(data: bytes, what: str = "its model.json") -> Any:
    """Read strict JSON."""
    try:
        return json.loads(data.decode(errors="surrogatepass"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise InputError(f"{what} is not JSON") from None


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def written_number(value: float) -> float | str:
    """Return a float as JSON can say it, all digits kept; infinities and NaN as text."""
    value = float(value)
    return value if math.isfinite(value) else str(value)


def read_number(value: Any, what: str) -> float:
    """Take what `written_number` wrote."""
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    return read_finite(value, what)


def read_finite(value: Any, what: str) -> float:
    """Take a finite number."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            pass
    raise _wrong(value, what, "a number")


def read_whole(value: Any, what: str, least: int = 0) -> int:
    """Take a whole number that is not too small."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return value
    raise _wrong(value, what, f"a whole number of at least {least}")


def read_flag(value: Any, what: str) -> bool:
    """Take a truth value."""
    if isinstance(value, bool):
        return value
    raise _wrong(value, what, "true or false")


def read_text(value: Any, what: str) -> str:
    """Take a text."""
    if isinstance(value, str):
        return value
    raise _wrong(value, what, "text")


def read_list(value: Any, what: str) -> list[Any]:
    """Take a list."""
    if isinstance(value, list):
        return value
    raise _wrong(value, what, "a list")


def read_object(value: Any, what: str) -> dict[str, Any]:
    """Take an object, whose keys are text."""
    if isinstance(value, dict):
        return value
    raise _wrong(value, what, "an object")


def member(value: Any, name: str, what: str) -> Any:
    """Take a member of an object, which must be there."""
    found = read_object(value, what)
    if name not in found:
        raise InputError(f"{what} has no {name!r}")
    return found[name]


def _wrong(value: Any, what: str, wanted: str) -> InputError:
    text = repr(value)
    return InputError(f"{what} is {text if len(text) <= 40 else text[:37] + '...'}, and not {wanted}")


# The earliest time that a zip file can say: it must not tell when, or where, a file was made.
_EPOCH = (1980, 1, 1, 0, 0, 0)
_ON_UNIX, _READABLE = 3, 0o644 << 16
_BEGINNING = b"PK\x03\x04"
# The header of an array is 128 bytes long, and may be longer in files that others write.
_LONGEST_HEADER = 4096
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    RuntimeError,  # what is encrypted or needs a later zip
    ValueError,  # among them names that are no text, and places before the beginning of the file
    OverflowError,
    EOFError,
    OSError,
)


def pack(members: Mapping[str, bytes]) -> bytes:
    """Put named pieces of data into a zip file: the same file for the same data.

    Parameters
    ----------
    members : mapping of str to bytes

    Returns
    -------
    bytes
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.create_system, info.external_attr = _ON_UNIX, _READABLE
            archive.writestr(info, data)
    return packed.getvalue()


def array_bytes(array: NDArray[Any], dtype: str) -> bytes:
    """Write an array as an .npy file, rows or columns first as it is in memory."""
    written = io.BytesIO()
    np.lib.format.write_array(written, array.astype(dtype, order="K", copy=False), version=(1, 0), allow_pickle=False)
    return written.getvalue()


class Archive:
    """A zip file with arrays, open for reading.

    Parameters
    ----------
    file : binary file
        Open for reading, at its beginning.

    Raises
    ------
    InputError
        When it is not a whole zip file of the kind that `pack` makes; the message says why, without the file's name.
    """

    def __init__(self, file: BinaryIO) -> None:
        try:
            if file.read(len(_BEGINNING)) != _BEGINNING:
                raise InputError("it does not begin as such a file does")
            self._size = file.seek(0, io.SEEK_END)
            self._zip = zipfile.ZipFile(file)
        except InputError:
            raise
        except zipfile.BadZipFile:
            raise InputError("its end is missing or damaged, as of a file that was not copied whole") from None
        except _BROKEN as error:
            raise InputError(_reason(error)) from None
        infos = self._zip.infolist()
        self._infos = {info.filename: info for info in infos}
        if len(self._infos) < len(infos):
            raise InputError("it holds two files of the same name")
        if any(info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size for info in infos):
            raise InputError("it is compressed, and models are not")
        if sum(info.file_size for info in infos) > self._size:
            raise InputError("it declares more data than it holds")

    @property
    def names(self) -> set[str]:
        """The names of the members."""
        return set(self._infos)

    def read(self, name: str, limit: float = math.inf) -> bytes:
        """Return the data of a member of at most so many bytes; what was damaged is found by its checksum."""
        if name not in self._infos:
            raise InputError(f"it has no {name}")
        size = self._infos[name].file_size
        if size > limit:
            raise InputError(f"its {name} has {size} bytes, where there should be at most {limit:.0f}")
        try:
            data = self._zip.read(name)
        except _BROKEN as error:
            raise InputError(_reason(error)) from None
        if len(data) != size:
            raise InputError(f"its {name} is cut off")
        return data

    def read_array(self, name: str, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return an array, which has to be of the type and the shape that are expected."""
        expected = np.dtype(dtype)
        size = expected.itemsize * math.prod(shape)
        data = self.read(name, size + _LONGEST_HEADER)
        stream = io.BytesIO(data)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                version = np.lib.format.read_magic(stream)
                found, by_column, kind = np.lib.format.read_array_header_1_0(stream)
        except Exception:  # headers are Python, and numpy passes on whatever its tokenizer and parser have to say
            raise InputError(f"its {name} is no array") from None
        if version != (1, 0):
            raise InputError(f"its {name} is of a later kind of .npy file")
        if kind != expected or found != shape:
            raise InputError(f"its {name} is an array {found} of {kind}, where {shape} of {expected} should be")
        if len(data) - stream.tell() != size:
            raise InputError(f"its {name} does not hold as many numbers as it says")
        flat = np.frombuffer(data, dtype=expected, offset=stream.tell())
        # a copy, in the computer's own byte order, that may be written to
        return flat.reshape(shape, order="F" if by_column else "C").astype(expected.newbyteorder("="), order="K")


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).rstrip(".") or type(error).__name__
