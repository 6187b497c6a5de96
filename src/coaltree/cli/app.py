"""The program ``coaltree``, to which other modules add their commands."""

from __future__ import annotations

import io
import re
import sys
from functools import cache
from typing import Annotated, Any, cast

import typer

from .. import __version__
from .._extensions import say_uncompiled
from .console import print_error

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Bayesian hierarchical clustering of tables with missing cells and mixed columns.",
    epilog="Example: coaltree fit examples/animals.csv -o results",
)

# A wrong option or argument; not every version of typer exports the class under its own name.
_UsageError = cast(type[Exception], typer.BadParameter.__mro__[1])


def run() -> None:
    """Run the command line on the arguments of the process."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a name must not stop the run.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    say_uncompiled(print_error)
    try:
        sys.exit(_command()(prog_name="coaltree", standalone_mode=False))
    except _UsageError as error:
        sys.exit(_print_usage_error(error))


@cache
def _command() -> Any:
    """Return the program with all its commands; typer reads their options anew whenever it is asked, which takes 20 ms."""
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
    """Return that an argument cannot be a negative number, which looks like an option; None for other errors."""
    option, context = getattr(error, "option_name", ""), getattr(error, "ctx", None)
    if context is None or re.fullmatch(r"-[\d.]", option) is None:
        return None
    given = next((word for word in sys.argv if word.startswith(option)), option)
    arguments = [part.metavar for part in context.command.params if part.param_type_name == "argument"]
    return f"{given} is not an option, and {' or '.join(arguments)} cannot be a negative number"


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"coaltree {__version__}")
        raise typer.Exit()


@app.callback()
def _coaltree(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    pass
