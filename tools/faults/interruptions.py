"""Interruptions: processes that are killed or interrupted, full disks, removed folders, and two writers of one path."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from coaltree import _atomic

from .outcome import ACCEPTED, REJECTED, Outcome, Run, check, classify, contents, run_command

Rng = np.random.Generator

ENVIRONMENT = os.environ | {"MPLBACKEND": "Agg"}
PATIENCE = 120.0  # seconds that a process may take
OLD = b"results of an earlier run\n"

TABLE = "id,x,y,c\n" + "".join(
    f"r{i},{x:.4f},{'' if i % 7 == 0 else f'{y:.4f}'},{'uvw'[i % 3]}\n"
    for i, (x, y) in enumerate(np.random.default_rng(0).normal(size=(30, 2)).tolist())
)

# Every command that writes. `{model}` and `{tree}` are files of an earlier fit.
COMMANDS = {
    "fit": "fit t.csv -o out",
    "fit, report": "fit t.csv -o out --report",
    "fit, mcmc": "fit t.csv -o out --inference mcmc --chains 2 --samples 50",
    "fit, smc": "fit t.csv -o out --inference smc --particles 20",
    "impute": "impute t.csv --model {model} -o o.csv",
    "impute, draws": "impute t.csv --model {model} -o o.csv --draws 3",
    "score": "score {model} t.csv -o o.csv",
    "place": "place {model} t.csv -o o.csv",
    "cut": "cut {model} --n-clusters 2 -o o.csv",
    "convert": "convert {tree} o.nex",
    "plot": "plot {tree} -o o.svg",
    "simulate": "simulate 20 -o o.csv --tree o.nwk",
}


@cache
def _earlier_fit() -> Path:
    """Return a folder with the results of a fit, with the trees of its predictions, for commands that need a model."""
    folder = Path(tempfile.mkdtemp(prefix="coaltree-campaign-fit-"))
    import atexit

    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "t.csv").write_text(TABLE)
    run = run_command(["fit", folder / "t.csv", "-o", folder / "out", "--report", "-q"])
    check(run.code == 0, run.err)
    return folder / "out"


def _command(name: str) -> list[str]:
    model_file = _earlier_fit()
    return [
        part.format(model=model_file / "model.coaltree", tree=model_file / "tree.nwk")
        for part in COMMANDS[name].split()
    ]


@cache
def _reference(name: str, here: bool = False) -> tuple[dict[str, bytes], float]:
    """Return what a command writes undisturbed, in this process or another, and how long it takes."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "t.csv").write_text(TABLE)
        begin = time.perf_counter()
        if here:
            with contextlib.chdir(folder):
                run = run_command(_command(name))
        else:
            process = _start(_command(name), folder)
            out, err = process.communicate(timeout=PATIENCE)
            run = Run(process.returncode, out, err.decode())
        check(run.code == 0, run.err)
        files = contents(folder)
        del files["t.csv"]
        return files, time.perf_counter() - begin


def _start(command: list[str], folder: Path, **options: Any) -> subprocess.Popen[bytes]:
    # A process that was started in the background may ignore interrupts, and hands that on.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "coaltree", *command],
            cwd=folder,
            env=ENVIRONMENT,
            stdout=options.pop("stdout", subprocess.PIPE),
            stderr=subprocess.PIPE,
            **options,
        )
    finally:
        signal.signal(signal.SIGINT, handler)


def _write_old(name: str, folder: Path, rng: Rng) -> dict[str, bytes]:
    """Write results of an earlier run in the place of the new ones, or none; return what is there."""
    new, _ = _reference(name)
    if rng.random() < 0.7:
        for path in new:
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_bytes(OLD + path.encode())
    return contents(folder)


def _same(actual: bytes, expected: bytes, path: str) -> bool:
    """Compare two results of the same command; pages and pictures may hold times."""
    return actual == expected or (path.endswith((".html", ".png", ".svg")) and actual[:15] == expected[:15])


def _is_new(files: dict[str, bytes], name: str, here: bool = False) -> bool:
    new, _ = _reference(name, here)
    return files.keys() - {"t.csv"} == new.keys() and all(_same(files[path], new[path], path) for path in new)


# -- kills and signals -----------------------------------------------------------------------------------------------------


def kill_case(rng: Rng, folder: Path) -> Outcome:
    """Kill a command at a random moment, often while it writes; its folder then holds the old results or the new ones.

    A process that is killed (SIGKILL) may leave hidden files; one that is interrupted (SIGINT, SIGTERM) leaves none. Files
    that are moved one after the other are finished by the next command, which `finish_interrupted` stands for.
    """
    name = str(rng.choice(list(COMMANDS)))
    sent = [signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM][int(rng.integers(4))]
    (folder / "t.csv").write_text(TABLE)
    _, seconds = _reference(name)
    old = _write_old(name, folder, rng)
    process = _start(_command(name), folder)
    try:
        if rng.random() < 0.5:
            time.sleep(rng.random() * seconds)
        else:
            _await_writing(process, folder)
            time.sleep(rng.random() * 0.01)
        process.send_signal(sent)
        _, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    files, visible = _look(folder)
    if sent != signal.SIGKILL:
        check(visible == files, f"{name}, {sent.name}: left {sorted(files.keys() - visible.keys())}")
        # Python itself may be interrupted before the program begins, and may end by the signal itself after it.
        has_started = b"coaltree: " in err
        check(
            process.returncode in (0, 130, -signal.SIGINT) or not has_started,
            f"{name}, {sent.name}: exit code {process.returncode}: {err[-300:]!r}",
        )
        check(not has_started or b"Traceback" not in err, f"{name}, {sent.name}: {err[-300:]!r}")
    if visible == old:
        return Outcome(REJECTED, "the old results are kept")
    check(_is_new(visible, name), f"{name}, {sent.name}: a mixture of old and new: {_describe(visible, old, name)}")
    return Outcome(ACCEPTED)


def _look(folder: Path) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Look into the folders of results as the next command does; return all files, and those that are not hidden."""
    for place in (folder, folder / "out"):
        _atomic.finish_interrupted(place)
    files = contents(folder)
    return files, {path: data for path, data in files.items() if not any(p.startswith(".") for p in path.split("/"))}


def _describe(files: dict[str, bytes], old: dict[str, bytes], name: str) -> str:
    new, _ = _reference(name)
    states = {}
    for path in sorted({*files, *old, *new} - {"t.csv"}):
        data = files.get(path)
        is_new = data is not None and path in new and _same(data, new[path], path)
        states[path] = "absent" if data is None else "old" if data == old.get(path) else "new" if is_new else "other"
    return str(states)


def _await_writing(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Wait until a process has begun to write its results, or has ended.

    The first hidden file is the check, before any work, that a place can be written.
    """
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        if any(path.stat().st_size for path in _hidden(folder)):
            return
        time.sleep(0.0005)


def _hidden(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        for base in (folder, folder / "out"):
            for path in base.glob(".*"):
                if path.is_file():
                    yield path
                else:
                    yield from (child for child in path.rglob("*") if child.is_file())


# -- several interrupts ----------------------------------------------------------------------------------------------------


def double_interrupt_case(rng: Rng, folder: Path) -> Outcome:
    """Interrupt a command two or three times while it writes; the old results or the new ones are there for the next one.

    Signals are sent to a process, or interrupts are raised at calls of the file system in this one.
    """
    name = str(rng.choice(list(COMMANDS)))
    old = _interrupt_calls(rng, folder, name) if rng.random() < 0.5 else _send_signals(rng, folder, name)
    files, visible = _look(folder)
    left = {Path(path).parts[-2] if len(Path(path).parts) > 1 else path for path in files.keys() - visible.keys()}
    check(all(part.endswith((".part", ".member")) for part in left), f"{name}: left {sorted(left)}")
    if visible == old:
        return Outcome(REJECTED, "the old results are kept")
    is_new = _is_new(visible, name) or _is_new(visible, name, here=True)
    check(is_new, f"{name}, interrupts: a mixture: {_describe(visible, old, name)}")
    return Outcome(ACCEPTED)


def _send_signals(rng: Rng, folder: Path, name: str) -> dict[str, bytes]:
    """Send signals to a process that writes its results, at most some milliseconds apart; return what was there before."""
    (folder / "t.csv").write_text(TABLE)
    old = _write_old(name, folder, rng)
    process = _start(_command(name), folder)
    try:
        _await_writing(process, folder)
        for _ in range(int(rng.integers(2, 4))):
            time.sleep(rng.random() * 0.005)
            process.send_signal([signal.SIGINT, signal.SIGTERM][int(rng.integers(2))])
        process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    return old


def _interrupt_calls(rng: Rng, folder: Path, name: str) -> dict[str, bytes]:
    """Interrupt a command in this process at two or three of its calls that write; return what was there before."""
    (folder / "t.csv").write_text(TABLE)
    _reference(name, here=True)
    old = _write_old(name, folder, rng)
    moments = set((int(rng.integers(60)) + np.cumsum([0, *rng.geometric(0.2, int(rng.integers(1, 3)))])).tolist())
    command = _command(name)
    real = _atomic.os
    try:
        _atomic.os = _InterruptedCalls(moments)  # type: ignore[assignment]
        run_command(command)
    finally:
        _atomic.os = real
    return old


class _InterruptedCalls:
    """The module `os`, with interrupts just before or after some calls of its functions."""

    def __init__(self, moments: set[int]) -> None:
        self._moments, self._count = moments, 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in ("replace", "link", "fsync", "open", "close", "scandir", "listdir"):
            return real

        def call(*arguments: Any, **options: Any) -> Any:
            self._pass_moment()
            result = real(*arguments, **options)
            self._pass_moment()
            return result

        return call

    def _pass_moment(self) -> None:
        self._count += 1
        if self._count - 1 in self._moments:
            raise KeyboardInterrupt


# -- memory ----------------------------------------------------------------------------------------------------------------

MEMORY_MIB = (100, 500, 1_000, 1_100, 1_250, 1_500, 2_000)


def memory_case(rng: Rng, folder: Path) -> Outcome:
    """Limit the memory of a process; it gives its results, or one sentence, and the old results are kept."""
    return _limited_case(rng, folder, resource.RLIMIT_AS, [size * 2**20 for size in MEMORY_MIB], "memory")


def _limited_case(rng: Rng, folder: Path, limited: int, sizes: list[int], what: str) -> Outcome:
    """Limit a resource of a process to one of some sizes in bytes."""
    name = str(rng.choice(list(COMMANDS)))
    (folder / "t.csv").write_text(TABLE)
    old = _write_old(name, folder, rng)
    most = int(rng.choice(sizes))

    def limit() -> None:
        resource.setrlimit(limited, (most, most))

    process = _start(_command(name), folder, preexec_fn=limit)
    try:
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    outcome = classify(Run(process.returncode, b"" if process.returncode else out, err.decode(errors="replace")))
    files = contents(folder)
    is_intact = files == old if outcome.kind == REJECTED else _is_new(files, name)
    check(is_intact, f"{name}, {what} of at most {most:,} bytes, {outcome.kind}: {_describe(files, old, name)}")
    return outcome


# -- disks and folders -----------------------------------------------------------------------------------------------------


def disk_case(rng: Rng, folder: Path) -> Outcome:
    """A full disk, one that fails or is interrupted at some call, or a folder that is removed, in this process."""
    return _removed_folder(rng, folder) if rng.random() < 0.1 else _failing_call(rng, folder)


def process_case(rng: Rng, folder: Path) -> Outcome:
    """A limit on file sizes, a standard output that is full or closed, or two writers of one path, in other processes."""
    kinds = (_size_limit, _full_output, _two_writers)
    return kinds[int(rng.integers(len(kinds)))](rng, folder)


_ERRORS = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS, errno.EACCES)
_CALLS = ("fsync", "replace", "link", "open", "mkdir")


@contextlib.contextmanager
def _faulty(function: str, n_good: int, n_bad: float, fault: Callable[[], None]) -> Iterator[None]:
    """Let some calls for the file system by coaltree's writing fail, after some that succeed."""
    n_calls = [0]

    def wrap(real: Callable[..., Any], is_faulty: Callable[..., bool]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if is_faulty(*arguments, **options):
                n_calls[0] += 1
                if n_good < n_calls[0] <= n_good + n_bad:
                    fault()
            return real(*arguments, **options)

        return call

    def is_written(path: Any, mode: str = "r", *rest: Any, **options: Any) -> bool:
        return "x" in mode

    def anything(*arguments: Any, **options: Any) -> bool:
        return True

    if function == "open":
        place: tuple[Any, str] = (Path, "open")
        replacement = wrap(Path.open, is_written)
    elif function == "mkdir":
        place = (Path, "mkdir")
        replacement = wrap(Path.mkdir, anything)
    else:
        place = (os, function)
        replacement = wrap(getattr(os, function), anything)
    real = getattr(*place)
    setattr(*place, replacement)
    try:
        yield
    finally:
        setattr(*place, real)


def _run_with_fault(rng: Rng, folder: Path, fault: Callable[[], None], code: int) -> Outcome:
    """Run a command in this process with one fault in its writing: the old results are kept whole, or the new are whole."""
    name = str(rng.choice([candidate for candidate in COMMANDS if not candidate.startswith("fit,")]))
    (folder / "t.csv").write_text(TABLE)
    old = _write_old(name, folder, rng)
    function, n_good = str(rng.choice(_CALLS)), int(rng.choice([0, 1, 2, 3, 5, 8]))
    command = _command(name)
    # Where nothing can be renamed any more, nothing can be put back either.
    n_bad = math.inf if function != "replace" and rng.random() < 0.5 else 1
    with _faulty(function, n_good, n_bad, fault):
        run = run_command(command)
    files = contents(folder)
    where = f"{name}, fault in call {n_good} of {function}"
    if run.code == code and code != 2:
        check(
            "Traceback" not in run.err and run.err.splitlines()[-1] == "coaltree: interrupted.",
            f"{where}: {run.err[-300:]!r}",
        )
        is_whole = files == old or _is_new(files, name, here=True)
        check(is_whole, f"{where}: {_describe(files, old, name)}")
        return Outcome(REJECTED, "interrupted")
    outcome = classify(run)
    if outcome.kind == REJECTED:
        check(files == old, f"{where}: {_describe(files, old, name)}")
    else:
        check(_is_new(files, name, here=True), f"{where}: {_describe(files, old, name)}")
    return outcome


def _failing_call(rng: Rng, folder: Path) -> Outcome:
    code = int(rng.choice(_ERRORS))

    def fail() -> None:
        raise OSError(code, os.strerror(code))

    def interrupt() -> None:
        raise KeyboardInterrupt

    interrupted = rng.random() < 0.25
    return _run_with_fault(rng, folder, interrupt if interrupted else fail, 130 if interrupted else 2)


def _removed_folder(rng: Rng, folder: Path) -> Outcome:
    """Remove the folder of the results while they are computed."""
    from coaltree.workflow import fit

    (folder / "t.csv").write_text(TABLE)
    real = fit.fit_model

    def remove_and_fit(*arguments: Any, **options: Any) -> Any:
        model = real(*arguments, **options)
        shutil.rmtree(folder / "out", ignore_errors=True)
        return model

    fit.fit_model = remove_and_fit
    try:
        outcome = classify(run_command(["fit", folder / "t.csv", "-o", folder / "out"]))
    finally:
        fit.fit_model = real
    files = contents(folder)
    check(outcome.kind == ACCEPTED or list(files) == ["t.csv"], f"left {sorted(files)}")
    return outcome


def _size_limit(rng: Rng, folder: Path) -> Outcome:
    """Limit the size of files that a process can write, which ends like a full disk."""
    sizes = [100, 1000, 5000, 50_000]  # joblib's semaphores need some bytes
    return _limited_case(rng, folder, resource.RLIMIT_FSIZE, sizes, "files")


def _full_output(rng: Rng, folder: Path) -> Outcome:
    """Write to a standard output that is full, or that nobody reads."""
    name = str(rng.choice(["score", "place", "cut", "simulate"]))
    (folder / "t.csv").write_text(TABLE)
    command = _command(name)
    at = command.index("-o")
    del command[at : at + 2]
    closed = rng.random() < 0.5 or not os.path.exists("/dev/full")
    if closed:
        process = _start(command, folder)
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        err = process.stderr.read()
        process.wait(PATIENCE)
        check(b"Traceback" not in err, f"{name} into a closed pipe: {err[-300:]!r}")
        return Outcome(REJECTED, "closed pipe")
    with open("/dev/full", "wb") as full:
        process = _start(command, folder, stdout=full)
        _, err = process.communicate(timeout=PATIENCE)
    check(process.returncode != 0, f"{name} into a full device: exit code 0")
    check(b"Traceback" not in err and b"Exception ignored" not in err, f"{name} into a full device: {err[-400:]!r}")
    return Outcome(REJECTED, "full device")


def _two_writers(rng: Rng, folder: Path) -> Outcome:
    """Two processes write the results of two fits to one folder at the same time: those of one of them are there at last."""
    (folder / "t.csv").write_text(TABLE)
    (folder / "u.csv").write_text(TABLE.replace("r1", "q1"))
    processes = [_start(["fit", table, "-o", "out", "-q"], folder) for table in ("t.csv", "u.csv")]
    try:
        for process in processes:
            _, err = process.communicate(timeout=PATIENCE)
            check(process.returncode == 0, f"two writers: exit code {process.returncode}: {err[-300:]!r}")
    finally:
        for process in processes:
            process.kill()
            process.wait()
    files = contents(folder / "out")
    marks = {b"q1" in files[path] for path in ("tree.nwk", "clusters.csv", "model.coaltree")}
    marks.add(b"u.csv" in files["summary.json"])
    check(len(marks) == 1, "two writers: a mixture")
    check(not any(path.startswith(".") for path in files), f"two writers: left {sorted(files)}")
    return Outcome(ACCEPTED)
