"""Places and lists as messages name them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..errors import InputError


class InputTypeError(InputError, TypeError):
    """Input of a type that cannot be used; also a TypeError, as scikit-learn's users expect."""


@dataclass(frozen=True)
class Place:
    """The column that is being read, for messages.

    Parameters
    ----------
    column : str
        The column's name.
    row_names : tuple of str or None
        Names of the rows, where the table has them.
    """

    column: str
    row_names: tuple[str, ...] | None = None

    def row(self, i: int) -> str:
        """Name row `i` the way a user can find it."""
        return row_label(i, self.row_names)


def row_label(i: int, row_names: Sequence[str] | None) -> str:
    """Name a row by its position, and by its name where it has one."""
    if row_names is None:
        return f"row {i} (counted from 0)"
    return f"row {i} ({row_names[i]!r})"


def listing(values: Iterable[object], limit: int = 5) -> str:
    """List values as ``'a', 'b' and 3 more``."""
    shown = [repr(value) for value in values]
    if len(shown) <= limit:
        return ", ".join(shown)
    return f"{', '.join(shown[:limit])} and {len(shown) - limit} more"


def count(n: int, noun: str, plural: str | None = None) -> str:
    """Write a number with its noun: ``1 row``, ``2,000 rows``."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"
