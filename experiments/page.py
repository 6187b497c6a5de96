"""Write docs/experiments.md: its tables come from the csv files of results, its images are copies of the figures."""

from __future__ import annotations

import re
from pathlib import Path

from coaltree._atomic import write_files_atomic
from coaltree.errors import InputError

from . import tables
from .verdicts import verdicts

DOCS = Path(__file__).parent.parent / "docs"
TABLES = {"verdicts": verdicts, **tables.TABLES}
PAGE = DOCS / "experiments.md"
PICTURES = DOCS / "images" / "experiments"
_PLACE = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def write_page(folder: Path) -> list[Path]:
    """Write the tables of a folder of results into the page and copy its figures to docs, completely or not at all.

    Returns
    -------
    list of Path
        The files written.
    """
    pictures = {PICTURES / figure.name: figure.read_bytes() for figure in sorted(folder.glob("*.png"))}
    PICTURES.mkdir(parents=True, exist_ok=True)
    files = {PAGE: fill_page(PAGE.read_text(encoding="utf-8"), folder).encode(), **pictures}
    write_files_atomic(files)
    return list(files)


def fill_page(text: str, folder: Path) -> str:
    """Return the text of the page with every table regenerated."""

    def table(match: re.Match[str]) -> str:
        name = match[2]
        if name not in TABLES:
            raise InputError(
                f"The page asks for the table {name!r}, which does not exist; known tables are {', '.join(TABLES)}."
            )
        return f"{match[1]}\n{TABLES[name](folder)}\n\n{match[3]}"

    return _PLACE.sub(table, text)
