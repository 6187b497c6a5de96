"""The program ``coaltree``, to which other modules add their commands: notes on standard error, a progress bar, and errors."""

from __future__ import annotations

import contextlib
import errno
import io
import re
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Annotated, Any, NoReturn, cast

import typer

from .. import __version__
from .._extensions import report_uncompiled
from ..errors import ExecutorError, InputError, InputWarning, MissingDependencyError
from .terminal import write_output

# Parameters that remarks mention and that are also options. A column may have such a name: it is in quotes.
_PARAMETERS = re.compile(
    r"(?<![\w'\"])(standardize|min_cluster_size|n_clusters|resolution|noise|assign_outliers)=(\"\w+\"|True|False|[\d.]*\d)"
)
MAX_WORD, MAX_SHOWN = 300, 80  # characters: names of files with their folders are shown in full
_FLAGS = {"True": "yes", "False": "no"}

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Bayesian hierarchical clustering of tables with missing cells and mixed columns.",
    epilog="Example: coaltree fit examples/animals.csv -o results",
)

# A wrong option or argument; not every version of typer exports the class under its own name.
_UsageError = cast(type[Exception], typer.BadParameter.__mro__[1])


def spell_as_options(sentence: str) -> str:
    """Return a sentence of the library with parameters spelled as options of the command line.

    Examples
    --------
    >>> spell_as_options('Fit with standardize="power" or min_cluster_size=3.')
    'Fit with --standardize power or --min-cluster-size 3.'
    >>> spell_as_options('With assign_outliers=False the label is -1.')
    'With --label-outliers the label is -1.'
    """

    def spell(match: re.Match[str]) -> str:
        if match[1] == "assign_outliers":
            return "--assign-outliers" if match[2] == "True" else "--label-outliers"
        return f"--{match[1].replace('_', '-')} {_FLAGS.get(match[2], match[2].strip(chr(34)))}"

    return _PARAMETERS.sub(spell, sentence)


class Notes:
    """Notes of a command on standard error; remarks about the input are collected, each once.

    Parameters
    ----------
    quiet : bool
        Whether to print nothing.
    verbose : bool, default False
        Whether to print details.
    """

    def __init__(self, quiet: bool, verbose: bool = False) -> None:
        if quiet and verbose:
            raise InputError("--quiet and --verbose were both given; give one of them, or neither.")
        self.quiet = quiet
        self.verbose = verbose
        self.sentences: list[str] = []

    def add(self, sentences: Sequence[str]) -> None:
        """Collect and print remarks, unless they are known."""
        for sentence in map(spell_as_options, sentences):
            if sentence not in self.sentences:
                self.sentences.append(sentence)
                self.say(f"note: {_one_line(sentence)}")

    def say(self, text: str) -> None:
        """Print a text, unless --quiet is given."""
        if not self.quiet:
            write_output(text, err=True)

    def announce(self, text: str) -> None:
        """Print the current step on a terminal, if the step may take seconds on a busy computer."""
        if sys.stderr.isatty():
            self.say(text)

    def detail(self, text: str) -> None:
        """Print a text if --verbose is given."""
        if self.verbose:
            write_output(text, err=True)

    @contextlib.contextmanager
    def time_step(self, step: str) -> Iterator[None]:
        """Print the duration of the block if --verbose is given."""
        start = time.perf_counter()
        yield
        self.detail(f"{step}: {time.perf_counter() - start:.2f} s")

    @contextlib.contextmanager
    def capture_warnings(self) -> Iterator[None]:
        """Turn the InputWarnings of the block into notes; other warnings are shown as usual."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", InputWarning)
            yield
        for warning in caught:
            if issubclass(warning.category, InputWarning):
                self.add([str(warning.message)])
            else:
                text = io.StringIO()
                warnings.showwarning(warning.message, warning.category, warning.filename, warning.lineno, text)
                write_output(text.getvalue(), err=True, end="")


@contextlib.contextmanager
def suppress_output(quiet: bool) -> Iterator[None]:
    """Suppress what libraries print on standard error, if --quiet is given."""
    with contextlib.redirect_stderr(io.StringIO()) if quiet else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def progress_bar(visible: bool) -> Iterator[Callable[[float, str], None] | None]:
    """Show a progress bar while the block runs, if standard error is a terminal."""
    if not visible:
        with suppress_output(True):
            yield None
        return
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("growing the tree", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda share, word: bar.update(task, completed=share, description=word)


@contextlib.contextmanager
def report_errors(debug: bool) -> Iterator[None]:
    """Turn any error in the block into one sentence and an exit code."""
    try:
        yield
    except BrokenPipeError:  # the reader of the output has closed it; typer exits silently
        raise
    except KeyboardInterrupt:
        _exit_with_error("interrupted.", 130, debug)
    except (ExecutorError, InputError, MissingDependencyError) as error:
        _exit_with_error(str(error), 2, debug)
    except Exception as error:
        if _is_out_of_memory(error):
            what = error if str(error) else "an allocation failed"
            advice = "use a sample of the rows, fewer columns or threads, or a computer with more memory"
            _exit_with_error(f"not enough memory ({what}): {advice}.", 2, debug)
        if isinstance(error, OSError):
            source = f"{error.filename}: " if error.filename else ""
            _exit_with_error(f"{source}{error.strerror or error}.", 2, debug)
        again = "" if debug else "; run again with --debug to see where"
        _exit_with_error(f"unexpected error ({type(error).__name__}: {error}){again}.", 1, debug)


def _is_out_of_memory(error: Exception) -> bool:
    """Return whether memory could not be allocated, for numbers, a library or a thread."""
    lacks = isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
    words = ("cannot allocate memory", "failed to map segment", "can't start new thread")
    return lacks or any(word in str(error).lower() for word in words)


def print_error(sentence: str) -> None:
    """Print an error in one line."""
    write_output(f"coaltree: {_one_line(sentence)}", err=True)


def _exit_with_error(sentence: str, code: int, debug: bool) -> NoReturn:
    if debug:
        write_output(traceback.format_exc(), err=True, end="")
    if getattr(signal.getsignal(signal.SIGTERM), "received", False):  # see `coaltree.__main__.Interrupt`
        sentence, code = "interrupted.", 130
    print_error(sentence)
    raise typer.Exit(code) from None


def _one_line(text: str) -> str:
    """Return a text in one line, without very long words, such as an option with a whole file as its value."""
    words = (word if len(word) <= MAX_WORD else f"{word[:MAX_SHOWN]}..." for word in text.split())
    return " ".join(words)


def run() -> None:
    """Run the command line on the arguments of the process."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a name must not stop the run.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    report_uncompiled(print_error)
    try:
        sys.exit(_command()(prog_name="coaltree", standalone_mode=False))
    except _UsageError as error:
        sys.exit(_print_usage_error(error))


@cache
def _command() -> Any:
    """Return the program with all its commands, cached because typer takes 20 ms to read their options."""
    return typer.main.get_command(app)


def _print_usage_error(error: Exception) -> int:
    """Print what is wrong with the arguments of a command, and return the exit code."""
    if type(error).__name__ != "NoArgsIsHelpError":  # the help has been shown
        context = getattr(error, "ctx", None)
        command = "coaltree" if context is None else context.command_path
        sentence = _explain_negative_number(error) or str(error.format_message())  # type: ignore[attr-defined]
        print_error(f"{sentence.rstrip('.')} (see {command} --help).")
    return 2


def _explain_negative_number(error: Exception) -> str | None:
    """Return the error that an argument cannot be a negative number, which looks like an option; None for other errors."""
    option, context = getattr(error, "option_name", ""), getattr(error, "ctx", None)
    if context is None or re.fullmatch(r"-[\d.]", option) is None:
        return None
    argument = next((word for word in sys.argv if word.startswith(option)), option)
    arguments = [part.metavar for part in context.command.params if part.param_type_name == "argument"]
    return f"{argument} is not an option, and {' or '.join(arguments)} cannot be a negative number"


def _print_version(requested: bool) -> None:
    if requested:
        write_output(f"coaltree {__version__}")
        raise typer.Exit()


@app.callback()
def _coaltree(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    pass
