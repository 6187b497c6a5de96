"""Output of commands: the one place through which all of it goes, so that no text of a user controls the terminal."""

from __future__ import annotations

import sys

import typer

from .._validation import escape_controls
from ..errors import InputError


def write_output(data: str | bytes, *, err: bool = False, end: str = "\n") -> None:
    r"""Write text to standard output or standard error, with control characters escaped on a terminal.

    Files and pipes get the data as they are.

    Parameters
    ----------
    data : str or bytes
        Bytes are written as they are, whatever the encoding of the stream; on a terminal they must be text in UTF-8.
    err : bool, default False
        Whether to write to standard error.
    end : str, default "\n"
        What follows the text; bytes are not followed by anything.
    """
    if not (sys.stderr if err else sys.stdout).isatty():
        typer.echo(data, err=err, nl=False)
    else:
        typer.echo(escape_controls(data if isinstance(data, str) else data.decode()), err=err, nl=False)
    if isinstance(data, str):
        typer.echo(end, err=err, nl=False)


def refuse_binary(data: str | bytes) -> None:
    """Raise if standard output is a terminal, and data for it are no text."""
    if isinstance(data, bytes) and sys.stdout.isatty():
        try:
            is_text = b"\0" not in data and bool(data.decode())
        except UnicodeDecodeError:
            is_text = False
        if not is_text:
            raise InputError(
                "The result is not text, and standard output is a terminal: name a file, or send it to a file or a program "
                "(with > or |)."
            )
