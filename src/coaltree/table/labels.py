"""Labels: names of rows and columns, and how texts for users write rows, values, lists and counts."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice

from .._validation import quote
from ..errors import InputError, InputWarning


class InputTypeError(InputError, TypeError):
    """Input of a type that cannot be used; also a TypeError, as scikit-learn's users expect."""


@dataclass(frozen=True)
class ColumnContext:
    """The column that is being read, for messages.

    Parameters
    ----------
    column : str
        The name of the column.
    row_names : tuple of str or None
        Names of the rows, if the table has them.
    """

    column: str
    row_names: tuple[str, ...] | None = None

    def row(self, i: int) -> str:
        """Return the label of row `i`."""
        return row_label(i, self.row_names)


def row_label(i: int, row_names: Sequence[str] | None) -> str:
    """Return the position of a row, and its name if it has one."""
    if row_names is None:
        return f"row {i} (counted from 0)"
    return f"row {i} ({quote(row_names[i])})"


def listing(values: Collection[object], limit: int = 5) -> str:
    """Return a list of values such as ``'a', 'b' and 3 more``."""
    text = ", ".join(quote(value) for value in islice(values, limit))
    return text if len(values) <= limit else f"{text} and {len(values) - limit} more"


def count(n: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: ``1 row``, ``2,000 rows``."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def is_missing(value: object) -> bool:
    """Return whether a cell is None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ == "NAType":
        return True
    if isinstance(value, Decimal):  # a signalling NaN cannot be compared
        return value.is_nan()
    # NaN and NaT of every library are the scalars that do not equal themselves. A value whose comparison is not a plain
    # boolean, such as an array, is not missing.
    try:
        return bool(value != value)
    except Exception:  # a class of the user's
        return False


def distinct_names(labels: Iterable[object]) -> tuple[str, ...]:
    """Make distinct row names from labels.

    A missing or blank label becomes ``row <i>``, with `i` counted from 0. Of equal labels the first stays as it is, and the
    others get ``_2``, ``_3``, ...

    Parameters
    ----------
    labels : iterable
        One label per row; the parts of a tuple are joined by ``/``.

    Returns
    -------
    tuple of str

    Warns
    -----
    InputWarning
        If labels were not distinct.
    """
    # Most labels are text: save a call for each of them.
    names = [label.strip() if type(label) is str else _label_to_text(label) for label in labels]
    used = set(names)
    if "" in used:
        names = [name or f"row {i}" for i, name in enumerate(names)]
        used = set(names)
    if len(used) == len(names):
        return tuple(names)
    assigned: set[str] = set()
    next_suffix: dict[str, int] = {}
    example, n_renamed = "", 0
    for i, name in enumerate(names):
        if name not in assigned:
            assigned.add(name)
            continue
        suffix = next_suffix.get(name, 2)
        while f"{name}_{suffix}" in used:
            suffix += 1
        next_suffix[name] = suffix + 1
        names[i] = f"{name}_{suffix}"
        used.add(names[i])
        n_renamed += 1
        example = example or f"the second {quote(name)} is now {quote(names[i])}"
    warnings.warn(
        f"{count(n_renamed, 'row name was', 'row names were')} not distinct and got a suffix ({example}).",
        InputWarning,
        stacklevel=3,
    )
    return tuple(names)


def column_names(labels: Iterable[object]) -> tuple[str, ...]:
    """Convert the column labels of a frame to text, and refuse labels that occur twice.

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
        If two columns have the same name.
    """
    names = tuple(label if isinstance(label, str) else _join_parts(label) for label in labels)
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise InputError(
            f"Column names must be distinct, but {listing(repeated)} "
            f"{'occurs' if len(repeated) == 1 else 'occur'} more than once: rename or drop columns."
        )
    return names


def index_names(index: object, n_rows: int) -> tuple[str, ...] | None:
    """Return row names from a pandas index, without importing pandas.

    Parameters
    ----------
    index : object
        The ``index`` attribute of the frame; None or a method for frames without index.
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
    return distinct_names(tolist())


def _join_parts(label: object) -> str:
    try:
        return "/".join(map(str, label)) if isinstance(label, tuple) else str(label)
    except Exception:  # a class of the user's
        raise InputError(f"A label of type {type(label).__name__} cannot be converted to text: use text.") from None


def _label_to_text(label: object) -> str:
    if is_missing(label):
        return ""
    return _join_parts(label).strip()
