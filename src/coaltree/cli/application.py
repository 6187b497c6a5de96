"""The command ``coaltree`` itself, to which other modules add theirs."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from .. import __version__

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Bayesian hierarchical clustering of tables, missing cells and mixed columns welcome.",
)


def run() -> None:
    """Run the command line on the arguments of the process."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a name must not end the run.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="coaltree")


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
