"""What the command line says while it works: notes, a progress bar, and one sentence when something goes wrong."""

from __future__ import annotations

import contextlib
import io
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

import typer

from .errors import InputError, InputWarning, MissingDependencyError


class Notes:
    """Sentences on the input, printed as they come and kept for the summary, each once."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.sentences: list[str] = []

    def add(self, sentences: Sequence[str]) -> None:
        """Add sentences that are new, and print them unless all is quiet."""
        for sentence in sentences:
            if sentence not in self.sentences:
                self.sentences.append(sentence)
                if not self.quiet:
                    typer.echo(f"note: {_one_line(sentence)}", err=True)

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
    """Keep the word that kernels are being compiled off standard error, if all is to be quiet."""
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
    except (InputError, MissingDependencyError) as error:
        _fail(str(error), 2, debug)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}.", 2, debug)
    except Exception as error:
        again = "" if debug else "; run again with --debug to see where"
        _fail(f"unexpected error ({type(error).__name__}: {error}){again}.", 1, debug)


def _fail(sentence: str, code: int, debug: bool) -> NoReturn:
    if debug:
        traceback.print_exc()
    typer.echo(f"coaltree: {_one_line(sentence)}", err=True)
    raise typer.Exit(code) from None


def _one_line(text: str) -> str:
    return " ".join(text.split())
