"""Files written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, TypeAlias

from .errors import InputError

Content: TypeAlias = str | bytes | Callable[[BinaryIO], object]
"""Text, bytes, or what writes them into a file."""


def checked_path(path: object) -> Path:
    """Return the name of a file as a path, and refuse what is none.

    Raises
    ------
    InputError
        With a word on what to pass.
    """
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if isinstance(name, str) and "\0" not in name:
        return Path(name)
    raise InputError(f"path is {path!r}; it must be the name of a file, for example 'model.coaltree', or a Path.")


def write_whole(path: str | Path, data: Content) -> None:
    """Write a file whole or not at all: whatever goes wrong, an earlier file of that name stays as it was.

    Parameters
    ----------
    path : str or Path
        The file; its folder must exist.
    data : str, bytes or callable
        The content; text is written as UTF-8. What is too large to be made in memory first writes itself into a file.

    Raises
    ------
    InputError
        When it cannot be written; the message says why.
    """
    path = checked_path(path)
    _check_replaceable(path)
    part = _beside(path, "part")
    try:
        _write_synced(part, data)
        os.replace(part, path)
    except OSError as error:
        raise _not_written(path, error) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def write_together(files: Mapping[Path, str | bytes]) -> None:
    """Write several files, in any folders, all of them or none; see `write_whole`.

    Parameters
    ----------
    files : mapping of Path to str or bytes
        The files and their content.

    Raises
    ------
    InputError
        When one of them cannot be written; earlier files of all names are then as they were.
    """
    for path in files:
        _check_replaceable(path)
    new = {path: _beside(path, "part") for path in files}
    old = {path: _beside(path, "old") for path in files}
    at = next(iter(files), Path())
    try:
        for at, data in files.items():
            _write_synced(new[at], data)
        moved: list[Path] = []
        try:
            for at in files:
                moved.append(at)
                _swap(at, new[at], old[at])
        except BaseException:
            for path in moved:
                _swap_back(path, new[path], old[path])
            raise
    except OSError as error:
        raise _not_written(at, error) from None
    finally:
        for path in files:
            with contextlib.suppress(OSError):
                new[path].unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                if path.exists():  # else the file could not be put back, and this is all there is of it
                    old[path].unlink(missing_ok=True)


def check_place(path: Path) -> None:
    """Try whether a file can be written, so that a long computation does not end at a locked door.

    Raises
    ------
    InputError
        When it cannot; the message says why.
    """
    _check_replaceable(path)
    part = _beside(path, "part")
    try:
        part.touch(exist_ok=False)
        part.unlink()
    except OSError as error:
        raise _not_written(path, error) from None


class OutputFolder:
    """A folder into which several files are written, all of them or none.

    Used as a context manager. On entering, the folder is made and tried, so that a long computation does not
    end at a locked door. Files are added in memory; they are written when the block ends well. If anything
    goes wrong, in the block or in writing, earlier files stay as they were, and a folder that was made is
    removed.

    Parameters
    ----------
    path : str or Path
        The folder. Files in it that have the name of a new one are replaced, others are left alone.

    Raises
    ------
    InputError
        When the folder cannot be made or written; the message says why.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._files: dict[str, str | bytes | None] = {}
        self._made: list[Path] = []

    def add(self, name: str, data: str | bytes) -> None:
        """Add a file; text is written as UTF-8."""
        self._files[name] = data

    @property
    def names(self) -> list[str]:
        """The files that are written, in the order in which they were added."""
        return [name for name, data in self._files.items() if data is not None]

    def leave_out(self, name: str) -> None:
        """Let a file of that name, of an earlier run, go when the others are written: it would not belong to them."""
        self._files[name] = None

    def __enter__(self) -> Self:
        stage = self._stage()
        try:
            self._make(self.path)
            stage.mkdir()
            stage.rmdir()
        except OSError as error:
            self._unmake()
            raise InputError(
                f"The folder {self.path} cannot be written: {_reason(error)}; choose another output folder, "
                "or change its permissions."
            ) from None
        except BaseException:
            with contextlib.suppress(OSError):
                stage.rmdir()
            self._unmake()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._write_all()
                self._made.clear()
        finally:
            self._unmake()

    def _make(self, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file, and a folder is needed: choose another output folder.")
        if not folder.is_dir():
            self._make(folder.parent)
            # In this order: an interrupt may come between any two steps.
            self._made.append(folder)
            folder.mkdir(exist_ok=True)

    def _unmake(self) -> None:
        for folder in reversed(self._made):
            with contextlib.suppress(OSError):  # somebody else has put a file there
                folder.rmdir()
        self._made.clear()

    def _stage(self) -> Path:
        return self.path / f".coaltree-{secrets.token_hex(4)}.part"

    def _write_all(self) -> None:
        for name in self._files:
            if (self.path / name).is_dir():
                raise InputError(f"{self.path / name} cannot be written: it is a folder; choose another output folder.")
        stage = self._stage()
        try:
            stage.mkdir()
            (stage / "new").mkdir()
            (stage / "old").mkdir()
            for name, data in self._files.items():
                if data is not None:
                    _write_synced(stage / "new" / name, data)
            self._move_in(stage)
        except OSError as error:
            raise _not_written(self.path, error) from None
        finally:
            shutil.rmtree(stage, ignore_errors=True)

    def _move_in(self, stage: Path) -> None:
        """Put the new files in the place of the old ones, or the old ones back."""
        moved = []
        try:
            for name, data in self._files.items():
                moved.append(name)
                _swap(self.path / name, None if data is None else stage / "new" / name, stage / "old" / name)
        except BaseException:
            for name in moved:
                _swap_back(self.path / name, stage / "new" / name, stage / "old" / name)
            raise


def _swap(path: Path, new: Path | None, old: Path) -> None:
    """Keep what there is of that name elsewhere, and put the new file in its place, if there is one."""
    if path.exists():
        os.replace(path, old)
    if new is not None:
        os.replace(new, path)


def _swap_back(path: Path, new: Path, old: Path) -> None:
    """Undo as much as was done of a swap, which is read off the folders: an interrupt may come between any two steps."""
    if old.exists():
        os.replace(old, path)
    elif not new.exists():
        path.unlink(missing_ok=True)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.{ending}")


def _check_replaceable(path: Path) -> None:
    """Refuse to put a file in the place of something else, such as /dev/null."""
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "not a plain file"
        raise InputError(f"{path} cannot be written: it is {kind}; choose another name.")


def _write_synced(path: Path, data: Content) -> None:
    with path.open("xb") as file:
        if callable(data):
            data(file)
        else:
            file.write(data.encode(errors="replace") if isinstance(data, str) else data)
        file.flush()
        os.fsync(file.fileno())


def _not_written(path: Path, error: OSError) -> InputError:
    return InputError(f"{path} cannot be written: {_reason(error)}; nothing was changed, choose another place.")


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
