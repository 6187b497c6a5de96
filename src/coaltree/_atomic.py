"""Atomic writing: files are written completely or not at all, however often the program is interrupted.

A single file is written under another name and renamed. Several files are a *change* with a *room* in each folder that gets any
of them: a hidden folder ``.coaltree-TOKEN.STATE`` with the new files, links to the old ones, and a list. Renaming the room of the
first folder, the *home*, from ``.part`` to ``.complete`` makes the change. From then on whoever looks moves the new files into
place by `finish_interrupted`; all readers and writers look first. If the disk or another program prevents a move, renaming the
room to ``.undo`` takes the change back, and whoever looks restores the old files. Each step may be repeated, so nothing depends
on how far an earlier attempt came. Rooms of other folders end with ``.member``; the state is that of their home. A list only ever
moves files of the folder that its room is in.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple, Self, TypeAlias

from ._validation import quote
from .errors import InputError

LOCK_SECONDS = 10.0  # to wait for another program that writes to the same folder
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
    finish_interrupted(path.parent)
    part = _sibling(path)

    def write() -> None:
        try:
            _write_synced(part, data)
            os.replace(part, path)
        except OSError as error:
            raise _write_error(path, error) from None

    _run_and_clean(write, lambda: _remove_file(part))


def write_files_atomic(files: Mapping[Path, str | bytes | None]) -> None:
    """Write several files, in any folders: all of them or none. See `write_atomic`.

    Parameters
    ----------
    files : mapping of Path to str, bytes or None
        The files and their content; None deletes a file.

    Raises
    ------
    InputError
        If one of them cannot be written; existing files are then unchanged.
    """
    for path in files:
        _check_replaceable(path)
    if files:
        change = _Change(files)
        _run_and_clean(change.make, change.settle)


def check_writable(path: Path) -> None:
    """Check that a file can be written, before a long computation.

    Raises
    ------
    InputError
        If it cannot; the message says why.
    """
    _check_replaceable(path)
    part = _sibling(path)
    try:
        _run_and_clean(lambda: part.touch(exist_ok=False), lambda: _remove_file(part))
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
        trial = self.path / f"{_PREFIX}{secrets.token_hex(4)}.part"

        def enter() -> None:
            self._make_folders(self.path)
            finish_interrupted(self.path)
            _run_and_clean(trial.mkdir, lambda: _remove_room(trial))

        try:
            enter()
        except BaseException as error:
            self._remove_new_folders()
            if isinstance(error, OSError):
                raise InputError(
                    f"The folder {self.path} cannot be written: {_reason(error)}; choose another output folder, "
                    "or change its permissions."
                ) from None
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        def write() -> None:
            if kind is None:
                write_files_atomic({self.path / name: data for name, data in self._files.items()})
                self._made.clear()

        _run_and_clean(write, self._remove_new_folders)

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


def _run_and_clean(work: Callable[[], object], clean: Callable[[], object]) -> None:
    """Do some work and clean up, also if the work fails, and again if the cleaning is interrupted. It may be repeated."""
    try:
        try:
            work()
        finally:
            clean()
    except BaseException:
        clean()
        raise


_PREFIX = ".coaltree-"
_LIST = "list.json"


class _Room(NamedTuple):
    """What a list says of a room."""

    home: str  # the folder with the state, from here; empty for the home itself
    members: list[str]  # folders of the other rooms, from here
    files: list[tuple[str, bool, bool]]  # name, whether there is a new file, and whether there was an old one


class _Change:
    """New files, with None for those to delete, to appear together."""

    def __init__(self, files: Mapping[Path, str | bytes | None]) -> None:
        self._token = f"{_PREFIX}{secrets.token_hex(4)}"
        self._first = next(iter(files))
        self._files: dict[Path, dict[str, str | bytes | None]] = {}
        for path, data in files.items():
            folder = Path(os.path.abspath(path.parent))
            self._files.setdefault(folder, {})[path.name] = data
        self._home, *self._members = self._files

    def _room(self, folder: Path) -> Path:
        return folder / f"{self._token}{'.part' if folder == self._home else '.member'}"

    def make(self) -> None:
        """Write the files and move them into place."""
        at, is_made = self._first, False
        try:
            for folder, files in self._files.items():
                at = folder
                self._room(folder).mkdir()
                for k, (name, data) in enumerate(files.items()):
                    at = folder / name
                    if data is not None:
                        _write_synced(self._room(folder) / f"new-{k}", data)
            at = self._first
            while True:
                for folder in self._files:
                    finish_changes(folder)
                with _lock_folders(*self._files):
                    if any(_unfinished(folder) for folder in self._files):
                        continue  # of a process that was killed just now
                    for folder, files in self._files.items():
                        self._list_files(folder, list(files.items()))
                    is_made = True
                    os.replace(self._room(self._home), self._home / f"{self._token}.complete")
                    try:
                        _apply(self._home, self._token)
                    except OSError:
                        os.replace(self._home / f"{self._token}.complete", self._home / f"{self._token}.undo")
                        _apply(self._home, self._token)
                        is_made = False
                        raise
                    return
        except OSError as error:
            raise _write_error(at, error, restored=not is_made or self._room(self._home).exists()) from None

    def _list_files(self, folder: Path, files: list[tuple[str, str | bytes | None]]) -> None:
        """Keep the old files of a folder, and write its list."""
        room = self._room(folder)
        for k, (name, _) in enumerate(files):
            _keep(folder / name, room / f"old-{k}")
        entries = [(name, data is not None, (room / f"old-{k}").exists()) for k, (name, data) in enumerate(files)]
        if folder == self._home:
            contents = _Room("", [_from(folder, member) for member in self._members], entries)
        else:
            contents = _Room(_from(folder, self._home), [], entries)
        _write_synced(room / _LIST, json.dumps(contents._asdict()))

    def settle(self) -> None:
        """Leave nothing hidden, if possible: finish the change where it has been made, and drop it otherwise."""
        with contextlib.suppress(OSError):
            if _state(self._home, self._token) in ("complete", "undo"):
                _finish(self._home, self._token)
        with contextlib.suppress(OSError):
            if _state(self._home, self._token) not in ("complete", "undo"):
                for folder in self._files:
                    for state in ("part", "done", "member"):
                        _remove_room(folder / f"{self._token}.{state}")


def finish_interrupted(folder: Path) -> None:
    """Finish or take back the changes of processes that were killed or interrupted, as far as this is possible."""
    with contextlib.suppress(OSError, InputError):
        finish_changes(folder)


def finish_changes(folder: Path) -> None:
    """Do what `finish_interrupted` does, and raise an OSError if this is not possible."""
    for home, token in _unfinished(folder):
        _finish(home, token)


def _unfinished(folder: Path) -> list[tuple[Path, str]]:
    """Return the homes and tokens of changes that were made, and have rooms in a folder."""
    found = []
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if entry.name.startswith(_PREFIX))
    for name in names:
        token, _, state = name.rpartition(".")
        if state in ("complete", "undo"):
            found.append((folder, token))
        elif state == "done":
            _remove_room(folder / name)
        elif state == "member":
            contents = _read_list(folder / name)
            home = None if contents is None else folder / contents.home
            if home is None or not home.is_dir():
                continue  # it is being written, or its home was removed
            if _state(home, token) in ("complete", "undo"):
                found.append((home, token))
            elif _state(home, token) != "part":
                _remove_room(folder / name)
    return found


def _state(home: Path, token: str) -> str | None:
    """Return the state of a change; None if it is over."""
    return next((state for state in ("complete", "undo", "part", "done") if (home / f"{token}.{state}").is_dir()), None)


def _finish(home: Path, token: str) -> None:
    """Finish a change that was made, or take it back, unless another process has done so meanwhile."""
    contents = None
    for state in ("complete", "undo"):
        contents = contents or _read_list(home / f"{token}.{state}")
    members = [] if contents is None else [home / member for member in contents.members]
    with _lock_folders(home, *(member for member in members if member.is_dir())):  # a living process holds these locks
        if _state(home, token) in ("complete", "undo"):
            _apply(home, token)


def _apply(home: Path, token: str) -> None:
    """Do what the state of a change asks for in all its folders, which are locked, and remove its rooms."""
    state = _state(home, token)
    room = home / f"{token}.{state}"
    contents = _read_list(room)
    for member in [] if contents is None else contents.members:
        folder = home / member
        listed = _read_list(folder / f"{token}.member")
        if listed is not None and os.path.realpath(folder / listed.home) == os.path.realpath(home):
            _move_files(folder, folder / f"{token}.member", listed, state == "undo")
    if contents is not None:
        _move_files(home, room, contents, state == "undo")
    os.replace(room, home / f"{token}.done")  # from here on nothing can be moved or taken back
    for member in [] if contents is None else contents.members:
        _remove_room(home / member / f"{token}.member")
    _remove_room(home / f"{token}.done")


def _move_files(folder: Path, room: Path, contents: _Room, undo: bool) -> None:
    """Move the new files of a room into its folder, or restore the old ones. This may be repeated."""
    for k, (name, has_new, had_old) in enumerate(contents.files):
        path, new, old = folder / name, room / f"new-{k}", room / f"old-{k}"
        if undo:
            if had_old and old.exists() and not (has_new and new.exists()):
                os.replace(old, path)
            elif not had_old and has_new and not new.exists():
                path.unlink(missing_ok=True)
        elif not has_new:
            path.unlink(missing_ok=True)
        elif new.exists():
            os.replace(new, path)


def _read_list(room: Path) -> _Room | None:
    """Return the list of a room; None if there is none that a change wrote: its files must be in its own folder."""
    try:
        contents = _Room(**json.loads((room / _LIST).read_bytes()))
        names = [name for name, _, _ in contents.files]
        return contents if all(Path(name).name == name for name in names) else None
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
        return None


def _from(folder: Path, other: Path) -> str:
    """Return the way from one folder to another."""
    try:
        return os.path.relpath(other, folder)
    except ValueError:  # on another drive
        return str(other)


@contextlib.contextmanager
def _lock_folders(*folders: Path) -> Iterator[None]:
    """Lock folders, so that of two processes that write to them at the same time, one writes all files last."""
    _release_locks()  # what an interrupt has left: no thread needs two sets of locks at a time
    try:
        if fcntl is not None:
            for folder in sorted({folder.resolve() for folder in folders}):  # in one order, or two writers wait forever
                _locks.descriptors.append(os.open(folder, os.O_RDONLY))
                _lock(_locks.descriptors[-1])
        yield
    finally:
        _release_locks()


class _Locks(threading.local):
    """The locks of a thread."""

    def __init__(self) -> None:
        self.descriptors: list[int] = []


_locks = _Locks()


def _release_locks() -> None:
    """Release the locks of this thread, in such an order that an interrupt at most leaves a file open."""
    while _locks.descriptors:
        with contextlib.suppress(OSError):
            fcntl.flock(_locks.descriptors[-1], fcntl.LOCK_UN)
        descriptor = _locks.descriptors.pop()
        with contextlib.suppress(OSError):
            os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Wait for a lock, but not forever: its holder may have been suspended."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise OSError(errno.EAGAIN, "another program is writing there") from None
            time.sleep(0.01)
        except OSError:  # some network file systems have no locks
            return
        else:
            return


def _keep(path: Path, old: Path) -> None:
    """Keep an existing file under another name, too."""
    with contextlib.suppress(FileNotFoundError):
        try:
            os.link(path, old)
        except FileNotFoundError:
            raise
        except OSError:  # a file system without links
            shutil.copy2(path, old)


def _remove_file(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def _remove_room(room: Path) -> None:
    """Remove a room and its files. `shutil.rmtree` may turn an interrupt into an OSError."""
    with contextlib.suppress(OSError):
        for name in os.listdir(room):
            _remove_file(room / name)
        room.rmdir()


def _sibling(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")


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
        state = "its folder cannot be changed at the moment; the next command that reads or writes there completes the files"
    return InputError(f"{path} cannot be written: {_reason(error)}; {state}.")


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
