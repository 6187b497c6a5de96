"""Output of commands: the one place through which all of it goes, so that no text of a user controls the terminal."""

from __future__ import annotations

import sys
import unicodedata

import typer

from ..errors import InputError

# Control characters and escapes, formats (among them those that reverse the direction of text), surrogates, line separators.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_SHOWN = frozenset("\n\t\u200c\u200d")  # the two joiners belong to the spelling of some languages


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


def escape_controls(text: str) -> str:
    r"""Return a text in which characters that control a terminal are written as JSON writes them.

    Examples
    --------
    >>> print(escape_controls("\x1b[31mred\u202e"))
    \u001b[31mred\u202e
    """
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    return "".join(_escape(character) if _is_hidden(character) else character for character in text)


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN_CATEGORIES and character not in _SHOWN


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", errors="surrogatepass").hex()
    return "".join(f"\\u{units[k : k + 4]}" for k in range(0, len(units), 4))
