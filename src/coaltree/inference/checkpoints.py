"""Files from which a long computation goes on, whole at any time."""

from __future__ import annotations

import contextlib
import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ClusterError, InputError
from ..whole import checked_path, write_whole


def fingerprint(subject: Any, *settings: object) -> str:
    """Return what tells one table, process and settings from others; the subject is arrays and numbers, in tuples and lists."""
    digest = hashlib.sha256(repr(settings).encode())

    def add(part: Any) -> None:
        if isinstance(part, tuple | list):
            for own in part:
                add(own)
        elif part is not None:
            digest.update(np.asarray(part).tobytes())

    add(subject)
    return digest.hexdigest()


class CheckpointFile:
    """A file with arrays of numbers and some facts; nothing in it is pickled.

    Parameters
    ----------
    path : str or Path
    mark : str
        `fingerprint` of what is computed.
    subject : str
        What it is the checkpoint of, for messages.
    """

    def __init__(self, path: str | Path, mark: str, subject: str) -> None:
        self.path = checked_path(path)
        self._mark = mark
        self._subject = subject

    def write(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write it anew."""
        text = np.frombuffer(json.dumps({**facts, "mark": self._mark}).encode(), dtype=np.uint8)
        write_whole(self.path, lambda file: np.savez(file, allow_pickle=False, facts=text, **arrays))

    def read(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]] | None:
        """Return facts and arrays, or None if there is no such file."""
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            facts = json.loads(arrays.pop("facts").tobytes())
        except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile):
            raise InputError(
                f"{self.path} is not a checkpoint of {self._subject}; choose another name, or remove it."
            ) from None
        if facts.get("mark") != self._mark:
            raise InputError(
                f"{self.path} is the checkpoint of another table, process or settings; choose another name, or remove it."
            )
        return facts, arrays


@contextlib.contextmanager
def told_how_to_go_on(path: str | Path | None = None, *, can_be_kept: bool = True) -> Iterator[None]:
    """Add to the word that a cluster was lost where the last checkpoint is, if there is or can be one."""
    try:
        yield
    except ClusterError as error:
        if path is not None and Path(path).exists():
            rest = f"what was completed is in {path}, and the same call or command goes on from there."
        elif path is not None:
            rest = f"nothing was completed that {path} could hold; start again."
        elif not can_be_kept:
            rest = "nothing was kept; start again when there is a cluster, or without one."
        else:
            rest = (
                "nothing was kept; coaltree.greedy and coaltree.mcmc go on where they were if they have a checkpoint."
            )
        raise ClusterError(f"{error}; {rest}") from None
