"""The outcome of a case: accepted, rejected with an error message, or failed; and how a case is run."""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import coaltree
from coaltree.__main__ import main
from coaltree.errors import ExecutorError, InputError, InputWarning, MissingDependencyError

ACCEPTED, REJECTED, FAILED = "accepted", "rejected", "failed"
OURS = (InputError, ExecutorError, MissingDependencyError)
PACKAGE = Path(coaltree.__file__).parent
MAX_MESSAGE = 2000  # characters: a message that is longer quotes too much
MAX_SECONDS = 60.0  # processor time of a case


class Outcome(NamedTuple):
    """The outcome of a case, with the message of a rejection or a failure."""

    kind: str
    words: str = ""


class Failure(Exception):  # noqa: N818
    """A result that is not what it should be."""


class Run(NamedTuple):
    """A command that has ended."""

    code: int
    out: bytes
    err: str


Case = Callable[[np.random.Generator, Path], Outcome]
"""A case draws its input from a generator, works in an empty folder, and returns its outcome."""


def run_case(case: Case, seed: Sequence[int]) -> Outcome:
    """Run one case in a folder of its own; whatever it raises is a failure."""
    folder = Path(tempfile.mkdtemp(prefix="coaltree-campaign-"))
    begin = time.process_time()
    try:
        with contextlib.chdir(folder), _ignored_errors() as ignored:
            outcome = case(np.random.default_rng(seed), folder)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # panics of other languages are no Exception
        outcome = Outcome(FAILED, describe_error(error))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if ignored:
        return Outcome(FAILED, f"ignored errors, the first of them: {ignored[0]}")
    seconds = time.process_time() - begin
    if outcome.kind != FAILED and seconds > MAX_SECONDS:
        return Outcome(FAILED, f"took {seconds:.0f} s of processor time")
    return outcome


@contextlib.contextmanager
def _ignored_errors() -> Iterator[list[str]]:
    """List the errors that compiled kernels cannot raise: in a checked build, an index out of bounds."""

    def add(found: Any) -> None:
        if str(found.object).startswith("coaltree."):
            ignored.append(f"{found.exc_value!r} in {found.object}")

    ignored: list[str] = []
    hook, sys.unraisablehook = sys.unraisablehook, add
    try:
        yield ignored
    finally:
        sys.unraisablehook = hook


def describe_error(error: BaseException) -> str:
    """Return an error with the places where it was raised, in one line."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
    return " ".join(f"{type(error).__name__}: {str(error)[:900]} ({where})".split())


def check(condition: object, words: str) -> None:
    """Fail with some words unless a condition holds."""
    if not condition:
        raise Failure(words)


def try_call(call: Callable[[], object]) -> Outcome:
    """Call a function of the package: it is accepted, or rejected by an error of ours with a fair message.

    A warning of another kind than `InputWarning` is a failure, because users cannot act on it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", InputWarning)
        try:
            call()
        except (*OURS, TypeError, ValueError, AttributeError) as error:
            if not is_ours(error):
                raise
            check(len(str(error)) <= MAX_MESSAGE, f"a message of {len(str(error))} characters: {str(error)[:80]}")
            return Outcome(REJECTED, str(error))
    return Outcome(ACCEPTED)


def is_ours(error: BaseException) -> bool:
    """Return whether an error is one that users are promised: its type is ours, or a statement of ours raises it."""
    if isinstance(error, OURS) or type(error).__name__ == "NotFittedError":
        return True
    frame = traceback.extract_tb(error.__traceback__)[-1]
    line = frame.line or ""
    return PACKAGE in Path(frame.filename).parents and line.lstrip().startswith("raise ")


class Terminal(io.TextIOWrapper):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        """Claim it."""
        return True


@contextlib.contextmanager
def replaced_streams(
    arguments: Sequence[object], stdin: bytes, terminal: bool = False
) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Replace the arguments and streams of this process, by those of a terminal if wanted."""
    out, err = io.BytesIO(), io.BytesIO()
    originals = sys.argv, sys.stdin, sys.stdout, sys.stderr
    sys.argv = ["coaltree", *map(str, arguments)]
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
    kind = Terminal if terminal else io.TextIOWrapper
    sys.stdout, sys.stderr = (kind(stream, encoding="utf-8", write_through=True) for stream in (out, err))
    try:
        yield out, err
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(ValueError, OSError):
                stream.flush()
                stream.detach()
        sys.argv, sys.stdin, sys.stdout, sys.stderr = originals


def run_command(arguments: Sequence[object], stdin: bytes = b"", terminal: bool = False) -> Run:
    """Run a command in this process."""
    import signal

    handler = signal.getsignal(signal.SIGTERM)
    code: object = 0
    with replaced_streams(arguments, stdin, terminal) as (out, err), warnings.catch_warnings():
        warnings.simplefilter("default")
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
        finally:
            signal.signal(signal.SIGTERM, handler)
    return Run(code if isinstance(code, int) else 1, out.getvalue(), err.getvalue().decode(errors="replace"))


def classify(run: Run) -> Outcome:
    """Classify how a command ended.

    Rejected is: exit code 2, nothing on standard output, no traceback, and one sentence at the end that begins with
    ``coaltree:``. A warning of a library is a failure, and so is a long line.
    """
    lines = run.err.splitlines()
    sentences = [line for line in lines if line.startswith("coaltree: ")]
    check("Traceback" not in run.err and "panicked at" not in run.err, f"traceback: {run.err[-400:]!r}")
    check(not any("Warning: " in line for line in lines), f"warning of a library: {run.err[:400]!r}")
    check(max(map(len, lines), default=0) <= MAX_MESSAGE, f"a line of {max(map(len, lines), default=0)} characters")
    if run.code == 0:
        check(not sentences, f"exit code 0, but: {sentences}")
        return Outcome(ACCEPTED)
    check(run.code == 2, f"exit code {run.code}: {run.err[-400:]!r}")
    check(len(sentences) == 1 and lines[-1] == sentences[0], f"not one sentence: {run.err[-400:]!r}")
    check(run.out == b"", f"rejected, but wrote to standard output: {run.out[:100]!r}")
    return Outcome(REJECTED, sentences[0])


def contents(folder: Path) -> dict[str, bytes]:
    """Return everything in a folder and below, by its name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
