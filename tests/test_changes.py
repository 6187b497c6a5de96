"""Several files appear together, whatever is interrupted and however often."""

import builtins
import io
import itertools
import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from coaltree import _atomic
from coaltree._atomic import OutputFolder, check_writable, finish_interrupted, write_atomic, write_files_atomic
from coaltree.errors import InputError

CALLS = ("replace", "link", "mkdir", "unlink", "rmdir", "fsync", "open", "close", "scandir", "stat", "lstat")
OLD = {"x.txt": "old x", "z.txt": "old z", "sub/v.txt": "old v"}


def in_one_folder(folder):
    with OutputFolder(folder) as out:
        out.add("x.txt", "new x")
        out.add("y.txt", "new y")
        out.discard("z.txt")


def in_two_folders(folder):
    write_files_atomic(
        {folder / "x.txt": "new x", folder / "sub" / "v.txt": "new v", folder / "sub" / "w.txt": "new w"}
    )


def one_file(folder):
    write_atomic(folder / "x.txt", "new x")


def a_check(folder):
    check_writable(folder / "x.txt")


WORKS = {
    in_one_folder: {"x.txt": "new x", "y.txt": "new y", "sub/v.txt": "old v"},
    in_two_folders: OLD | {"x.txt": "new x", "sub/v.txt": "new v", "sub/w.txt": "new w"},
    one_file: OLD | {"x.txt": "new x"},
    a_check: OLD,
}


@pytest.fixture
def folder(tmp_path):
    """A folder in memory, where there is one: these tests call the disk some thousand times."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as temporary:
        yield Path(temporary) / "f"


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def hidden(folder):
    return [path.name for path in folder.rglob(".*")]


def fill(folder):
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "sub").mkdir(parents=True)
    for name, text in OLD.items():
        (folder / name).write_text(text)


class Injection:
    """Raises at some moments, numbered from 0: just before each call of the operating system, and just after it."""

    def __init__(self, moments, error=KeyboardInterrupt, after=True):
        self.moments, self.error, self.after, self.count, self.depth = set(moments), error, after, 0, 0

    def pass_moment(self):
        self.count += 1
        if self.count - 1 in self.moments:
            raise self.error

    def wrap(self, function):
        def call(*arguments, **options):
            if self.depth:  # a call by a call
                return function(*arguments, **options)
            self.pass_moment()
            self.depth += 1
            try:
                result = function(*arguments, **options)
            finally:
                self.depth -= 1
            try:
                if self.after:
                    self.pass_moment()
            except BaseException:
                if hasattr(result, "close"):  # Python would close it, too, with a warning
                    result.close()
                raise
            return result

        return call


def run_with(monkeypatch, injection, work, folder):
    """Do some work; return whether it was interrupted."""
    with monkeypatch.context() as patch:
        for name in CALLS:
            real = getattr(os, name) if name != "fsync" else lambda descriptor: None  # takes most of the time
            patch.setattr(os, name, injection.wrap(real))
        patch.setattr(io, "open", injection.wrap(io.open))
        patch.setattr(builtins, "open", injection.wrap(open))
        try:
            work(folder)
        except (KeyboardInterrupt, InputError, OSError):
            return True
    return False


def count_moments(monkeypatch, work, folder, after=True):
    fill(folder)
    injection = Injection((), after=after)
    assert not run_with(monkeypatch, injection, work, folder)
    assert contents(folder) == WORKS[work]
    assert not hidden(folder)
    return injection.count


def check_whole(folder, work, moments):
    """The old files or the new ones are there as soon as somebody has looked into each folder."""
    for place in (folder, folder / "sub"):
        finish_interrupted(place)
    visible = {name: text for name, text in contents(folder).items() if "/." not in f"/{name}"}
    assert visible in (OLD, WORKS[work]), (work.__name__, moments)


@pytest.mark.parametrize("work", WORKS)
def test_single_interrupt_leaves_old_or_new_files_and_nothing_hidden(work, folder, monkeypatch):
    n_kept = 0
    count = count_moments(monkeypatch, work, folder)
    for moment in range(count):
        fill(folder)
        assert run_with(monkeypatch, Injection({moment}), work, folder)
        assert not hidden(folder), moment
        assert contents(folder) in (OLD, WORKS[work]), moment
        n_kept += contents(folder) == OLD
    assert work is a_check or 0 < n_kept < count


@pytest.mark.parametrize("work", [in_one_folder, in_two_folders])
def test_error_of_the_disk_keeps_the_old_files(work, folder, monkeypatch):
    """A single call fails, of those whose failure is not ignored; whether the error is reported or not, files are whole."""
    for moment in range(count_moments(monkeypatch, work, folder, after=False)):
        fill(folder)
        injection = Injection({moment}, OSError(5, "Input/output error"), after=False)
        reported = run_with(monkeypatch, injection, work, folder)
        check_whole(folder, work, moment)
        visible = {name: text for name, text in contents(folder).items() if "/." not in f"/{name}"}
        assert visible == (OLD if reported else WORKS[work]), moment


@pytest.mark.parametrize("work", [in_one_folder, in_two_folders])
def test_two_and_three_interrupts_leave_old_or_new_files(work, folder, monkeypatch):
    """The second comes soon after the first, while that one is being handled; the third at any time."""
    count = count_moments(monkeypatch, work, folder)
    rng = np.random.default_rng(0)
    pairs = [(first, first + gap) for first in range(count) for gap in (1, 2, 3, 5, *rng.integers(8, count, size=1))]
    triples = rng.integers(count, size=(100, 3)).tolist()
    triples += [
        (first, first + gap, first + gap + more) for first in range(0, count, 5) for gap, more in ((1, 1), (2, 5))
    ]
    outcomes = set()
    for moments in itertools.chain(pairs, triples):
        fill(folder)
        run_with(monkeypatch, Injection(moments), work, folder)
        check_whole(folder, work, moments)
        outcomes.add((folder / "x.txt").read_text())
    assert outcomes == {"old x", "new x"}


@pytest.mark.parametrize("work", [in_one_folder, in_two_folders])
def test_lookers_may_be_interrupted_too(work, folder, monkeypatch):
    """A writer stops for good somewhere, as if it were killed, and two who look are interrupted; the third is not."""
    count = count_moments(monkeypatch, work, folder)
    rng = np.random.default_rng(1)
    for first in range(count):
        fill(folder)
        run_with(monkeypatch, Injection(range(first, 10_000)), work, folder)
        for place in (folder, folder / "sub"):
            run_with(monkeypatch, Injection({int(rng.integers(60))}), finish_interrupted, place)
        check_whole(folder, work, first)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # files that Python closes later
def test_interrupt_at_any_line_leaves_nothing_hidden(folder):
    """Signals come between lines, too."""
    for line in itertools.count():
        fill(folder)
        left = [line]

        def trace(frame, event, _):
            if frame.f_code.co_filename != _atomic.__file__:
                return None
            if event == "line":
                left[0] -= 1  # noqa: B023
                if left[0] == -1:  # noqa: B023
                    raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            in_two_folders(folder)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        assert not hidden(folder), line
        assert contents(folder) in (OLD, WORKS[in_two_folders]), line
        if left[0] >= 0:
            break
    assert line > 100


def test_next_writer_finishes_an_interrupted_change(folder, monkeypatch):
    """Its files are not replaced later by those of the earlier change."""
    for first in range(count_moments(monkeypatch, in_two_folders, folder)):
        fill(folder)
        run_with(monkeypatch, Injection(range(first, 10_000)), in_two_folders, folder)
        write_atomic(folder / "x.txt", "newer x")
        check_whole_but_x(folder)


def check_whole_but_x(folder):
    for place in (folder, folder / "sub"):
        finish_interrupted(place)
    visible = {name: text for name, text in contents(folder).items() if "/." not in f"/{name}"}
    assert visible.pop("x.txt") == "newer x"
    assert visible in [{k: v for k, v in files.items() if k != "x.txt"} for files in (OLD, WORKS[in_two_folders])]


def test_hostile_lists_move_nothing_elsewhere(tmp_path):
    """A folder from somebody else may hold rooms that coaltree did not make."""
    (tmp_path / "target.txt").write_text("mine")
    folder = tmp_path / "theirs"
    room = folder / ".coaltree-00.complete"
    room.mkdir(parents=True)
    (room / "new-0").write_text("theirs")
    for name in ("../target.txt", str(tmp_path / "target.txt"), "sub/x", "..", ""):
        for kind in (True, False):
            text = f'{{"home": "", "members": [".."], "files": [["{name}", {str(kind).lower()}, true]]}}'
            (room / "list.json").write_text(text)
            finish_interrupted(folder)
            assert contents(tmp_path)["target.txt"] == "mine"
            room.mkdir(exist_ok=True)
            (room / "new-0").write_text("theirs")
    for damaged in ("", "{", "[]", '{"home": 1}', '{"home": "", "members": 5, "files": [3]}'):
        room.mkdir(exist_ok=True)
        (room / "list.json").write_text(damaged)
        finish_interrupted(folder)
    assert Path(tmp_path / "target.txt").read_text() == "mine"
