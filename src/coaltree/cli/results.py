"""Results of the command line: into files, whole or not at all, or onto standard output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from ..errors import InputError
from .options import STANDARD_STREAM


def check_result(result: Path | None, sources: Mapping[str, Path | None]) -> None:
    """Refuse, before any work is done, a file that cannot be written or that the work begins with.

    Parameters
    ----------
    result : Path or None
        The file to write; None or ``-`` is standard output.
    sources : mapping of str to (Path or None)
        The files that are read, by what they are.
    """
    if result is None or result == STANDARD_STREAM:
        return
    from ..whole import check_place

    for what, source in sources.items():
        if source is not None and source.exists() and result.exists() and source.samefile(result):
            raise InputError(f"{result} is {what} itself, which is not written over: choose another name.")
    check_place(result)


def deliver(results: Mapping[Path | None, str | bytes]) -> None:
    """Write all files or none of them, and after that what goes to standard output."""
    from ..whole import write_together

    files = {path: data for path, data in results.items() if path is not None and path != STANDARD_STREAM}
    write_together(files)
    for path, data in results.items():
        if path is None or path == STANDARD_STREAM:
            # The bytes of a file, in whatever letters the terminal would have it.
            typer.echo(data.encode(errors="replace") if isinstance(data, str) else data, nl=False)


def tell(facts: Mapping[str, Any]) -> None:
    """Write facts as the one JSON object on standard output."""
    from ..output.files import json_text, plain_values

    deliver({None: json_text(plain_values(facts))})


def records(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the rows of a table that is given by its columns."""
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
