"""Places and lists as messages name them."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..errors import InputError, InputWarning


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


def is_missing(value: object) -> bool:
    """Say whether a cell is None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ == "NAType":
        return True
    # NaN and NaT of every library are the scalars that do not equal themselves; anything whose
    # comparison is not a plain truth value (an array in a cell) is not a missing value.
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return False


def distinct_names(labels: Iterable[object]) -> tuple[str, ...]:
    """Turn labels into row names that are all different.

    A label that is missing or blank becomes ``row <i>``, with `i` counted from 0. Of labels that occur more
    than once the first stays as it is and the others get ``_2``, ``_3``, ...

    Parameters
    ----------
    labels : iterable
        One label a row; the parts of a tuple are joined by ``/``.

    Returns
    -------
    tuple of str

    Warns
    -----
    InputWarning
        When labels had to be changed because they were not distinct.
    """
    # Text, which is what most labels are, is spared a call for each of them.
    names = [label.strip() if type(label) is str else _label_text(label) for label in labels]
    taken = set(names)
    if "" in taken:
        names = [name or f"row {i}" for i, name in enumerate(names)]
        taken = set(names)
    if len(taken) == len(names):
        return tuple(names)
    seen: set[str] = set()
    next_suffix: dict[str, int] = {}
    example, n_renamed = "", 0
    for i, name in enumerate(names):
        if name not in seen:
            seen.add(name)
            continue
        suffix = next_suffix.get(name, 2)
        while f"{name}_{suffix}" in taken:
            suffix += 1
        next_suffix[name] = suffix + 1
        names[i] = f"{name}_{suffix}"
        taken.add(names[i])
        n_renamed += 1
        example = example or f"the second {name!r} is now {names[i]!r}"
    warnings.warn(
        f"{count(n_renamed, 'row name was', 'row names were')} not distinct and got a suffix ({example}).",
        InputWarning,
        stacklevel=3,
    )
    return tuple(names)


def column_names(labels: Iterable[object]) -> tuple[str, ...]:
    """Turn a frame's column labels into text, and refuse labels that occur twice.

    Parameters
    ----------
    labels : iterable
        The column labels; the parts of a tuple are joined by ``/``.

    Returns
    -------
    tuple of str

    Raises
    ------
    InputError
        When two columns have the same name.
    """
    names = tuple(label if isinstance(label, str) else _joined(label) for label in labels)
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise InputError(
            f"Column names must be distinct, but {listing(repeated)} "
            f"{'occurs' if len(repeated) == 1 else 'occur'} more than once: rename or drop columns."
        )
    return names


def index_names(index: object, n_rows: int) -> tuple[str, ...] | None:
    """Take row names from a pandas index, without importing pandas.

    Parameters
    ----------
    index : object
        What the frame's ``index`` attribute holds; None or a method for frames that have no index.
    n_rows : int
        Number of rows of the frame.

    Returns
    -------
    tuple of str or None
        None for the default index, whose labels only repeat the positions.
    """
    tolist = getattr(index, "tolist", None)
    if not callable(tolist):
        return None
    bounds = tuple(getattr(index, bound, None) for bound in ("start", "stop", "step"))
    if type(index).__name__ == "RangeIndex" and bounds == (0, n_rows, 1):
        return None
    labels: Sequence[object] = tolist()
    return distinct_names(labels)


def _joined(label: object) -> str:
    return "/".join(str(part) for part in label) if isinstance(label, tuple) else str(label)


def _label_text(label: object) -> str:
    if is_missing(label):
        return ""
    return _joined(label).strip()
