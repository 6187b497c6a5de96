"""Files of data sets: from a folder of one's own or from the web, and never without their checksum."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from ..errors import InputError, MissingDependencyError
from .sources import SOURCES, Source

FOLDER_VARIABLE = "COALTREE_DATA"


def fetch(name: str) -> bytes:
    """Return the content of a file, which is the one that was pinned or an error.

    It is looked for in the folder that the environment variable ``COALTREE_DATA`` names, then among earlier downloads, then
    downloaded.

    Parameters
    ----------
    name : str
        One of `SOURCES`, for example ``"wals/v2008/values.csv"``.

    Returns
    -------
    bytes

    Raises
    ------
    InputError
        When it cannot be had; the message says why.
    MissingDependencyError
        If it has to be downloaded and pooch is not installed.
    """
    source = SOURCES[name]
    own = _own_copy(name)
    path = own if own is not None else _downloaded(name, source)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    if hashlib.sha256(content).hexdigest() != source.sha256:
        raise InputError(
            f"{path} is not the file that was published (its checksum differs): remove it, so that it is downloaded "
            f"anew, or put the file from {source.address} in its place."
        )
    return content


def damaged(name: str, why: str) -> InputError:
    """Return the error for a file that cannot be what it should be."""
    return InputError(f"The file {name} is damaged: {why}; remove it, so that it is downloaded anew.")


def text_lines(name: str, encoding: str) -> list[str]:
    """Return the lines of a text file, without their ends."""
    try:
        text = fetch(name).decode(encoding)
    except UnicodeDecodeError as error:
        raise damaged(name, f"byte {error.start} is not {encoding}") from None
    # Not splitlines(): old encodings have more ends of lines than files mean.
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "" else lines


def _own_copy(name: str) -> Path | None:
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return None
    path = Path(folder) / name
    try:
        if not Path(folder).is_dir():
            raise InputError(
                f"{FOLDER_VARIABLE} is {folder!r}, which is not a folder: name one with data sets, or unset it."
            )
        return path if path.is_file() else None
    except OSError as error:
        raise InputError(
            f"{path} cannot be looked for: {error.strerror or error}; name a folder that you may read in {FOLDER_VARIABLE}, or "
            "unset it."
        ) from None


def _downloaded(name: str, source: Source) -> Path:
    """Return where a file is among the downloads, after downloading it if need be."""
    try:
        import pooch
    except ImportError as error:
        raise MissingDependencyError(
            f"{name} has to be downloaded, which needs pooch, which is not installed: "
            f'pip install "coaltree[data]", or name a folder that has the file in {FOLDER_VARIABLE}.'
        ) from error
    folder = Path(pooch.os_cache("coaltree"))
    downloads = pooch.create(
        path=folder,
        base_url="",
        registry={name: f"sha256:{source.sha256}"},
        urls={name: source.address},
        retry_if_failed=2,
    )
    try:
        return Path(downloads.fetch(name))
    except ValueError:
        raise InputError(
            f"What {source.address} sends is not the file that was published (its checksum differs), so it was not kept: try "
            f"again later, or put the file as {name} into a folder and name that in {FOLDER_VARIABLE}."
        ) from None
    except OSError as error:
        # Those of the net have no number, and those of this machine do, unless pooch has put them in its own words.
        if error.errno is not None or isinstance(error, PermissionError):
            raise InputError(
                f"{name} cannot be kept in {folder}: {error.strerror or 'Permission denied'}; make room there, or put the file "
                f"from {source.address} as {name} into another folder and name that in {FOLDER_VARIABLE}."
            ) from None
        folder_given = os.environ.get(FOLDER_VARIABLE)
        searched = f"is not in {folder_given} ({FOLDER_VARIABLE}) and " if folder_given else ""
        raise InputError(
            f"{name} {searched}could not be downloaded from {source.address} ({type(error).__name__}): look at the connection, "
            f"or put the file as {name} into a folder and name that in {FOLDER_VARIABLE}."
        ) from None
