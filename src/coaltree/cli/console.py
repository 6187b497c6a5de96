"""What the command line says while it works: notes, a progress bar, and one sentence when something goes wrong."""

from __future__ import annotations

import contextlib
import io
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

import typer

from ..errors import ExecutorError, InputError, InputWarning, MissingDependencyError


class Notes:
    """What there is to say while a command works, on standard error; sentences on the input are kept, each once.

    Parameters
    ----------
    quiet : bool
        Whether to say nothing.
    verbose : bool, default False
        Whether to say more than most people want to know.
    """

    def __init__(self, quiet: bool, verbose: bool = False) -> None:
        if quiet and verbose:
            raise InputError("--quiet and --verbose were both given; give one of them, or neither.")
        self.quiet = quiet
        self.verbose = verbose
        self.sentences: list[str] = []

    def add(self, sentences: Sequence[str]) -> None:
        """Keep sentences that are new, and print them."""
        for sentence in sentences:
            if sentence not in self.sentences:
                self.sentences.append(sentence)
                self.say(f"note: {_one_line(sentence)}")

    def say(self, text: str) -> None:
        """Print something, unless all is quiet."""
        if not self.quiet:
            typer.echo(text, err=True)

    def detail(self, text: str) -> None:
        """Print something for those who asked for more."""
        if self.verbose:
            typer.echo(text, err=True)

    @contextlib.contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Say how long a step took, to those who asked for more."""
        begin = time.perf_counter()
        yield
        self.detail(f"{step}: {time.perf_counter() - begin:.2f} s")

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Take the InputWarnings of the block as notes; other warnings go their way."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", InputWarning)
            yield
        for warning in caught:
            if issubclass(warning.category, InputWarning):
                self.add([str(warning.message)])
            else:
                warnings.showwarning(warning.message, warning.category, warning.filename, warning.lineno)


@contextlib.contextmanager
def hushed(quiet: bool) -> Iterator[None]:
    """Keep what libraries say off standard error, if all is to be quiet."""
    with contextlib.redirect_stderr(io.StringIO()) if quiet else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def progress_bar(wanted: bool) -> Iterator[Callable[[float, str], None] | None]:
    """Show a bar on standard error while the block runs, if that is a terminal."""
    if not wanted:
        with hushed(True):
            yield None
        return
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("growing the tree"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda share, word: bar.update(task, completed=share, description=word)


@contextlib.contextmanager
def reported(debug: bool) -> Iterator[None]:
    """Turn whatever goes wrong in the block into one sentence and an exit code."""
    try:
        yield
    except BrokenPipeError:  # the reader of the output has gone; typer ends quietly
        raise
    except KeyboardInterrupt:
        _fail("interrupted.", 130, debug)
    except (ExecutorError, InputError, MissingDependencyError) as error:
        _fail(str(error), 2, debug)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}.", 2, debug)
    except Exception as error:
        again = "" if debug else "; run again with --debug to see where"
        _fail(f"unexpected error ({type(error).__name__}: {error}){again}.", 1, debug)


def complain(sentence: str) -> None:
    """Say in one line what is wrong."""
    typer.echo(f"coaltree: {_one_line(sentence)}", err=True)


def _fail(sentence: str, code: int, debug: bool) -> NoReturn:
    if debug:
        traceback.print_exc()
    complain(sentence)
    raise typer.Exit(code) from None


def _one_line(text: str) -> str:
    return " ".join(text.split())
