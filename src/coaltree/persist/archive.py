"""Archives: uncompressed zip files of ``.npy`` and JSON members that end with a digest of all their bytes.

The same content makes the same file. Nothing is pickled or compressed, so no array can be larger than its file. A file may come
from anywhere: the digest is verified first, sizes are checked before memory is allocated, and JSON values when they are read.
"""

from __future__ import annotations

import hashlib
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

# The earliest time of a zip file: a file must not reveal when or where it was written.
_EPOCH = (1980, 1, 1, 0, 0, 0)
_CREATED_ON_UNIX, _FILE_MODE = 3, 0o644 << 16
_ZIP_SIGNATURE = b"PK\x03\x04"
# The comment at the end of the zip file: this, and the digest of everything before it in hexadecimal digits.
_DIGEST_LABEL = b"coaltree sha256:"
_DIGEST_LENGTH = 2 * hashlib.sha256().digest_size
_CHUNK = 1 << 20
# The header of an array has 128 bytes; other programs may write longer ones.
_MAX_HEADER_BYTES = 4096
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    RuntimeError,  # encrypted, or made by a later zip
    ValueError,  # names that are not text, or offsets before the beginning of the file
    OverflowError,
    EOFError,
    OSError,
)

_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


class MissingDigestError(InputError):
    """The file does not end with a digest: it is of an earlier format, truncated, or something else."""


def pack(members: Mapping[str, bytes]) -> bytes:
    """Return a zip file of named members that ends with a digest; the same for the same members.

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
            info.create_system, info.external_attr = _CREATED_ON_UNIX, _FILE_MODE
            archive.writestr(info, data)
        archive.comment = _DIGEST_LABEL + b"0" * _DIGEST_LENGTH
    end = packed.tell() - _DIGEST_LENGTH
    digest = hashlib.sha256(packed.getbuffer()[:end]).hexdigest().encode()
    packed.seek(end)
    packed.write(digest)
    return packed.getvalue()


def array_to_bytes(array: NDArray[Any], dtype: str) -> bytes:
    """Return an array as an .npy file, in its order in memory."""
    file = io.BytesIO()
    np.lib.format.write_array(file, array.astype(dtype, order="K", copy=False), version=(1, 0), allow_pickle=False)
    return file.getvalue()


def array_from_bytes(data: bytes) -> NDArray[Any]:
    """Return the array of an .npy file, after checking that its size is what the header says.

    Raises
    ------
    InputError
        If it is not such a file; the message says why, without the file's name.
    """
    stream = io.BytesIO(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            version = np.lib.format.read_magic(stream)
            read_header = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[version]
            shape, fortran_order, dtype = read_header(stream)
    except Exception:  # the header is Python source, and numpy raises any error of its tokenizer and parser
        raise InputError("it is not an .npy file") from None
    if dtype.hasobject or len(data) - stream.tell() != dtype.itemsize * math.prod(shape):
        raise InputError("its size is not what its header says, or it holds objects")
    flat = np.frombuffer(data, dtype=dtype, offset=stream.tell())
    return flat.reshape(shape, order="F" if fortran_order else "C")


class Archive:
    """A zip file of arrays, open for reading.

    Parameters
    ----------
    file : binary file
        Open for reading, at its beginning.
    verify : bool, default True
        Compare the digest with the content. Without this check nothing in the archive can be trusted.

    Raises
    ------
    MissingDigestError
        If there is no digest to compare with.
    InputError
        If it is not a file that `pack` made, or was altered since. The message says why, without the file's name.
    """

    def __init__(self, file: BinaryIO, verify: bool = True) -> None:
        try:
            if file.read(len(_ZIP_SIGNATURE)) != _ZIP_SIGNATURE:
                raise InputError("it does not begin like a model file")
            size = file.seek(0, io.SEEK_END)
            if verify:
                _verify_digest(file, size)
            self._zip = zipfile.ZipFile(file)
        except InputError:
            raise
        except zipfile.BadZipFile:
            raise InputError("its end is missing or damaged; the file may have been copied incompletely") from None
        except _ZIP_ERRORS as error:
            raise InputError(_describe(error)) from None
        infos = self._zip.infolist()
        self._infos = {info.filename: info for info in infos}
        if len(self._infos) < len(infos):
            raise InputError("two of its members have the same name")
        if any(info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size for info in infos):
            raise InputError("it is compressed, and model files are not")
        if sum(info.file_size for info in infos) > size:
            raise InputError("it declares more data than it has")

    @property
    def names(self) -> set[str]:
        """Names of the members."""
        return set(self._infos)

    def read(self, name: str, max_bytes: float = math.inf) -> bytes:
        """Return the data of a member that has at most `max_bytes` bytes."""
        if name not in self._infos:
            raise InputError(f"it has no {name}")
        size = self._infos[name].file_size
        if size > max_bytes:
            raise InputError(f"its {name} has {size} bytes; at most {max_bytes:.0f} are expected")
        try:
            data = self._zip.read(name)
        except _ZIP_ERRORS as error:
            raise InputError(_describe(error)) from None
        if len(data) != size:
            raise InputError(f"its {name} is truncated")
        return data

    def read_array(self, name: str, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return an array, which must have the given type and shape; checked before memory is allocated."""
        expected = np.dtype(dtype)
        size = expected.itemsize * math.prod(shape)
        data = self.read(name, size + _MAX_HEADER_BYTES)
        try:
            array = array_from_bytes(data)
        except InputError as error:
            raise InputError(f"its {name} is not a valid array: {error}") from None
        if array.dtype != expected or array.shape != shape:
            raise InputError(
                f"its {name} is an array {array.shape} of {array.dtype}; expected is {shape} of {expected}"
            )
        # A writable copy in the byte order of the machine.
        return array.astype(expected.newbyteorder("="), order="K")


def _verify_digest(file: BinaryIO, size: int) -> None:
    """Raise unless the file ends with the digest of everything before it."""
    end = size - _DIGEST_LENGTH
    label = end - len(_DIGEST_LABEL)
    if label < 0 or file.seek(label) != label or file.read(len(_DIGEST_LABEL)) != _DIGEST_LABEL:
        raise MissingDigestError("it has no digest at its end; the file may have been copied incompletely")
    expected = file.read(_DIGEST_LENGTH)
    digest = hashlib.sha256()
    file.seek(0)
    remaining = end
    while remaining and (chunk := file.read(min(_CHUNK, remaining))):
        digest.update(chunk)
        remaining -= len(chunk)
    if digest.hexdigest().encode() != expected:
        raise InputError("its digest does not match its content: it was altered or damaged after it was saved")
    file.seek(0)


def _describe(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).rstrip(".") or type(error).__name__


def to_json(value: Any) -> bytes:
    """Write plain values as strict JSON; lone surrogates, which file names may have, are preserved."""
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode(errors="surrogatepass")


def from_json(data: bytes, source: str = "its model.json") -> Any:
    """Read strict JSON."""
    try:
        return json.loads(data.decode(errors="surrogatepass"), parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        raise InputError(f"{source} is not JSON") from None


def _reject_constant(constant: str) -> None:
    raise ValueError(constant)


def number_to_json(value: float) -> float | str:
    """Return a float for JSON with all its digits; infinities and NaN become text."""
    value = float(value)
    return value if math.isfinite(value) else str(value)


def read_number(value: Any, subject: str) -> float:
    """Return a number that `number_to_json` wrote."""
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    return read_finite(value, subject)


def read_finite(value: Any, subject: str) -> float:
    """Return a finite number."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            pass
    raise _type_error(value, subject, "a number")


def read_integer(value: Any, subject: str, minimum: int = 0) -> int:
    """Return an integer of at least `minimum` that fits into 64 bits."""
    if isinstance(value, int) and not isinstance(value, bool) and minimum <= value < 2**63:
        return value
    raise _type_error(value, subject, f"a whole number of at least {minimum}")


def read_bool(value: Any, subject: str) -> bool:
    """Return a boolean."""
    if isinstance(value, bool):
        return value
    raise _type_error(value, subject, "true or false")


def read_text(value: Any, subject: str) -> str:
    """Return a string."""
    if isinstance(value, str):
        return value
    raise _type_error(value, subject, "text")


def read_list(value: Any, subject: str) -> list[Any]:
    """Return a list."""
    if isinstance(value, list):
        return value
    raise _type_error(value, subject, "a list")


def read_object(value: Any, subject: str) -> dict[str, Any]:
    """Return an object, a dict with strings as keys."""
    if isinstance(value, dict):
        return value
    raise _type_error(value, subject, "an object")


def read_field(value: Any, name: str, subject: str) -> Any:
    """Return a required field of an object."""
    fields = read_object(value, subject)
    if name not in fields:
        raise InputError(f"{subject} has no {name!r}")
    return fields[name]


def _type_error(value: Any, subject: str, expected: str) -> InputError:
    text = repr(value)
    return InputError(f"{subject} is {text if len(text) <= 40 else text[:37] + '...'}, not {expected}")
