"""Columns of text that deserve a second look: numbers that were written with decoration, and identifiers."""

from __future__ import annotations

import warnings

from ..errors import InputWarning
from .cells import Cells, TextCells
from .notation import example_of_numbers
from .selection import Role
from .wording import listing

PLAINLY = "write plain numbers with a point, dates as 2020-12-31 (in a frame, as a column of dates: pd.to_datetime)"
"""What to try with numbers that are read as text."""

# In a smaller table a column of text without repeats is not yet a sign of identifiers.
_IDENTIFIER_ROWS = 10


def written_number(cells: Cells, role: Role) -> str | None:
    """Give a cell of a column of text that nobody declared categorical and that looks like numbers or dates."""
    if role != "auto" or not isinstance(cells, TextCells) or cells.order is not None:
        return None
    return example_of_numbers(*cells.as_categorical())


def looks_like_identifier(cells: Cells) -> bool:
    """Say whether a column of text has another one in every row."""
    if not isinstance(cells, TextCells) or cells.order is not None:
        return False
    codes, categories = cells.as_categorical()
    return len(codes) > _IDENTIFIER_ROWS and len(categories) == len(codes)


def warn_identifiers(names: list[str]) -> None:
    """Warn the caller of the function that calls this one."""
    one = len(names) == 1
    warnings.warn(
        f"{'Column' if one else 'Columns'} {listing(names)} {'has' if one else 'have'} a different text in "
        f"every row and {'looks like an identifier' if one else 'look like identifiers'}, which adds nothing "
        f"to the tree: drop {'it' if one else 'them'} or use {'it' if one else 'one'} as the index.",
        InputWarning,
        stacklevel=3,
    )
