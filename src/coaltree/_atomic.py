"""Atomic writing: files are written completely or not at all, even if the program is interrupted."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, TypeAlias

from ._validation import quote
from .errors import InputError

MAX_NAME_BYTES = 255  # of a file or folder, in all common file systems

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

Content: TypeAlias = str | bytes | Callable[[BinaryIO], object]
"""Text, bytes, or a function that writes to a binary file."""


def check_path(path: object) -> Path:
    """Return the name of a file as a path.

    Raises
    ------
    InputError
        If it is not the name of a file.
    """
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if isinstance(name, str) and "\0" not in name:
        if max(map(len, map(os.fsencode, Path(name).parts)), default=0) > MAX_NAME_BYTES:
            raise InputError(f"path is {quote(name)}; names of files and folders have at most {MAX_NAME_BYTES} bytes.")
        return Path(name)
    raise InputError(f"path is {quote(path)}; it must be the name of a file, for example 'model.coaltree', or a Path.")


def write_atomic(path: str | Path, data: Content) -> None:
    """Write a file completely or not at all; if anything fails, an existing file stays unchanged.

    Parameters
    ----------
    path : str or Path
        The file; its folder must exist.
    data : str, bytes or callable
        The content; text is written as UTF-8. A function may write content that is too large for memory.

    Raises
    ------
    InputError
        If it cannot be written; the message says why.
    """
    path = check_path(path)
    _check_replaceable(path)
    part = _sibling(path, "part")
    try:
        _write_synced(part, data)
        os.replace(part, path)
    except OSError as error:
        raise _write_error(path, error) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def write_files_atomic(files: Mapping[Path, str | bytes]) -> None:
    """Write several files, in any folders: all of them or none. See `write_atomic`.

    Parameters
    ----------
    files : mapping of Path to str or bytes
        The files and their content.

    Raises
    ------
    InputError
        If one of them cannot be written; existing files are then unchanged.
    """
    for path in files:
        _check_replaceable(path)
    new = {path: _sibling(path, "part") for path in files}
    old = {path: _sibling(path, "old") for path in files}
    at, restored = next(iter(files), Path()), True
    try:
        for at, data in files.items():
            _write_synced(new[at], data)
        backups: list[Path] = []
        with _lock_folders(*(path.parent for path in files)):
            try:
                for at in files:
                    backups.append(at)
                    _swap(at, new[at], old[at])
            except BaseException:
                restored = False
                for path in backups:
                    _undo_swap(path, new[path], old[path])
                restored = True
                raise
    except OSError as error:
        raise _write_error(at, error, restored) from None
    finally:
        for path in files:
            with contextlib.suppress(OSError):
                new[path].unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                if restored:  # otherwise this is the only copy
                    old[path].unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Check that a file can be written, before a long computation.

    Raises
    ------
    InputError
        If it cannot; the message says why.
    """
    _check_replaceable(path)
    part = _sibling(path, "part")
    try:
        part.touch(exist_ok=False)
        part.unlink()
    except OSError as error:
        raise _write_error(path, error) from None


class OutputFolder:
    """A folder to which several files are written: all of them or none.

    Use it as a context manager. Entering creates the folder and checks that it is writable, before a long
    computation. Files are added in memory and written when the block ends without an error. If the block or the
    writing fails, existing files stay unchanged and new folders are removed.

    Parameters
    ----------
    path : str or Path
        The folder. Files with the same name as a new one are replaced; others stay.

    Raises
    ------
    InputError
        If the folder cannot be created or written; the message says why.
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
        """Names of the files to write, in the order in which they were added."""
        return [name for name, data in self._files.items() if data is not None]

    def discard(self, name: str) -> None:
        """Delete a file of an earlier run when the others are written, because it does not belong to them."""
        self._files[name] = None

    def __enter__(self) -> Self:
        stage = self._stage()
        try:
            self._make_folders(self.path)
            finish_interrupted(self.path)
            stage.mkdir()
            stage.rmdir()
        except OSError as error:
            self._remove_new_folders()
            raise InputError(
                f"The folder {self.path} cannot be written: {_reason(error)}; choose another output folder, "
                "or change its permissions."
            ) from None
        except BaseException:
            with contextlib.suppress(OSError):
                stage.rmdir()
            self._remove_new_folders()
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
            self._remove_new_folders()

    def _make_folders(self, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file, not a folder; choose another output folder.")
        if not folder.is_dir():
            self._make_folders(folder.parent)
            # In this order: an interrupt may come between any two steps.
            self._made.append(folder)
            folder.mkdir(exist_ok=True)

    def _remove_new_folders(self) -> None:
        for folder in reversed(self._made):
            with contextlib.suppress(OSError):  # another program put a file there
                folder.rmdir()
        self._made.clear()

    def _stage(self) -> Path:
        return self.path / f".coaltree-{secrets.token_hex(4)}.part"

    def _write_all(self) -> None:
        for name in self._files:
            if (self.path / name).is_dir():
                raise InputError(f"{self.path / name} cannot be written: it is a folder; choose another output folder.")
        stage = self._stage()
        complete = stage.with_suffix(_COMPLETE)
        restored = True
        try:
            for folder in (stage, stage / "new", stage / "old", stage / "discard"):
                folder.mkdir()
            for name, data in self._files.items():
                if data is None:
                    (stage / "discard" / name).touch()
                else:
                    _write_synced(stage / "new" / name, data)
            with _lock_folders(self.path):
                _finish_stages(self.path)
                # From here on a process that is killed leaves a stage that the next one finishes.
                os.replace(stage, complete)
                try:
                    self._replace_files(complete)
                except BaseException:
                    restored = False
                    os.replace(complete, stage)
                    self._restore_files(stage)
                    restored = True
                    raise
        except OSError as error:
            raise _write_error(self.path, error, restored) from None
        finally:
            if restored:  # otherwise the only copies are in there
                for folder in (stage, complete):
                    shutil.rmtree(folder, ignore_errors=True)

    def _replace_files(self, stage: Path) -> None:
        for name, data in self._files.items():
            _swap(self.path / name, None if data is None else stage / "new" / name, stage / "old" / name)

    def _restore_files(self, stage: Path) -> None:
        for name, data in self._files.items():
            _undo_swap(self.path / name, None if data is None else stage / "new" / name, stage / "old" / name)


_COMPLETE = ".complete"


def finish_interrupted(folder: Path) -> None:
    """Finish the writing of a process that was killed while it moved its files into a folder."""
    with contextlib.suppress(OSError):
        if next(folder.glob(f".coaltree-*{_COMPLETE}"), None) is not None:
            with _lock_folders(folder):  # a living process holds it until it is done
                _finish_stages(folder)


def _finish_stages(folder: Path) -> None:
    """Move the files of complete stages into a folder that is locked."""
    for stage in sorted(folder.glob(f".coaltree-*{_COMPLETE}")):
        for new in sorted((stage / "new").glob("*")):
            os.replace(new, folder / new.name)
        for discarded in sorted((stage / "discard").glob("*")):
            (folder / discarded.name).unlink(missing_ok=True)
        shutil.rmtree(stage, ignore_errors=True)


@contextlib.contextmanager
def _lock_folders(*folders: Path) -> Iterator[None]:
    """Lock folders, so that of two processes that write to them at the same time, one writes all files last."""
    with contextlib.ExitStack() as locks:
        if fcntl is not None:
            for folder in sorted({folder.resolve() for folder in folders}):  # in one order, or two writers wait forever
                descriptor = os.open(folder, os.O_RDONLY)
                locks.callback(os.close, descriptor)  # which also releases the lock
                with contextlib.suppress(OSError):  # some network file systems have no locks
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def _swap(path: Path, new: Path | None, old: Path) -> None:
    """Keep a copy of an existing file, and replace it by the new one, if any. One of the two always exists."""
    with contextlib.suppress(FileNotFoundError):
        try:
            os.link(path, old)
        except FileNotFoundError:
            raise
        except OSError:  # a file system without links
            shutil.copy2(path, old)
    if new is not None:
        os.replace(new, path)
    else:
        path.unlink(missing_ok=True)


def _undo_swap(path: Path, new: Path | None, old: Path) -> None:
    """Undo a swap as far as it went, judged by the files present: an interrupt may come between any two steps."""
    if old.exists():
        os.replace(old, path)
    elif new is not None and not new.exists():
        path.unlink(missing_ok=True)


def _sibling(path: Path, ending: str) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.{ending}")


def _check_replaceable(path: Path) -> None:
    """Raise if the path is not a file, for example /dev/null."""
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


def _write_error(path: Path, error: OSError, restored: bool = True) -> InputError:
    state = "nothing was changed; choose another place"
    if not restored:
        state = "some files were replaced and could not be put back: write them again, here or in another place"
    return InputError(f"{path} cannot be written: {_reason(error)}; {state}.")


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
