"""Results of the command line: into files, whole or not at all, or onto standard output."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import typer

from ..errors import InputError
from .options import STANDARD_OUTPUT


def check_result(result: Path | None, sources: Mapping[str, Path | None]) -> None:
    """Refuse, before any work is done, a file that cannot be written or that the work begins with.

    Parameters
    ----------
    result : Path or None
        The file to write; None or ``-`` is standard output.
    sources : mapping of str to (Path or None)
        The files that are read, by what they are.
    """
    if result is None or result == STANDARD_OUTPUT:
        return
    from ..output.whole import check_place

    for what, source in sources.items():
        if source is not None and source.exists() and result.exists() and source.samefile(result):
            raise InputError(f"{result} is {what} itself, which is not written over: choose another name.")
    check_place(result)


def deliver(results: Mapping[Path | None, str | bytes]) -> None:
    """Write all files or none of them, and after that what goes to standard output."""
    from ..output.whole import write_together

    files = {path: data for path, data in results.items() if path is not None and path != STANDARD_OUTPUT}
    write_together(files)
    for path, data in results.items():
        if path is None or path == STANDARD_OUTPUT:
            # The bytes of a file, in whatever letters the terminal would have it.
            typer.echo(data.encode(errors="replace") if isinstance(data, str) else data, nl=False)
