"""Which columns are categorical: the `categorical_features` argument, as scikit-learn means it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from ..errors import InputError
from .wording import count, listing

CategoricalFeatures: TypeAlias = str | Iterable[Any] | None
"""``"from_dtype"``, None, a boolean mask, integer indices or column names."""

Role: TypeAlias = Literal["auto", "real", "categorical"]
"""What the user wants of a column; ``"auto"`` leaves it to the column's own type."""

_ALLOWED = '"from_dtype", None, a boolean mask with one entry a column, column indices, or column names'


def resolve_roles(categorical_features: CategoricalFeatures, names: Sequence[str]) -> list[Role]:
    """Find the role of each column.

    Parameters
    ----------
    categorical_features : "from_dtype", None, or sequence of bool, int or str
        The user's choice.
    names : sequence of str
        The table's column names.

    Returns
    -------
    list of {"auto", "real", "categorical"}
        One role a column.

    Raises
    ------
    InputError
        When the choice does not fit the table.
    """
    if categorical_features is None:
        return ["real"] * len(names)
    if isinstance(categorical_features, str):
        if categorical_features == "from_dtype":
            return ["auto"] * len(names)
        hint = f"; for one column write [{categorical_features!r}]" if categorical_features in names else ""
        raise InputError(f"categorical_features must be {_ALLOWED}, not {categorical_features!r}{hint}.")
    chosen = _chosen_columns(categorical_features, names)
    return ["categorical" if j in chosen else "real" for j in range(len(names))]


def _chosen_columns(categorical_features: object, names: Sequence[str]) -> set[int]:
    entries = _entries(categorical_features)
    kinds = {_entry_kind(entry) for entry in entries}
    if len(kinds) > 1:
        raise InputError(f"categorical_features mixes {' and '.join(sorted(kinds))}: it must be {_ALLOWED}.")
    if not kinds:
        return set()
    kind = kinds.pop()
    if kind == "bool":
        if len(entries) != len(names):
            raise InputError(
                f"categorical_features is a boolean mask of length {len(entries)}, "
                f"but the table has {count(len(names), 'column')}."
            )
        return {j for j, entry in enumerate(entries) if entry}
    if kind == "int":
        outside = [entry for entry in entries if not 0 <= entry < len(names)]
        if outside:
            raise InputError(
                f"categorical_features holds the column {'index' if len(outside) == 1 else 'indices'} "
                f"{listing(outside)}, but indices go from 0 to {len(names) - 1} (negative ones are not "
                "allowed)."
            )
        return set(entries)
    if kind == "str":
        position = {name: j for j, name in enumerate(names)}
        unknown = [entry for entry in entries if entry not in position]
        if unknown:
            raise InputError(
                f"categorical_features names {listing(unknown)}, which the table does not have; "
                f"its columns are {listing(names, limit=10)}."
            )
        return {position[entry] for entry in entries}
    raise InputError(f"categorical_features must be {_ALLOWED}, but it holds entries of type {kind}.")


def _entries(categorical_features: object) -> list[Any]:
    """List the entries as Python scalars, whichever container they came in."""
    if not isinstance(categorical_features, Iterable):
        raise InputError(f"categorical_features must be {_ALLOWED}, not {categorical_features!r}.")
    if isinstance(categorical_features, np.ndarray) and categorical_features.ndim != 1:
        raise InputError(f"categorical_features must be {_ALLOWED}, not a {categorical_features.ndim}-D array.")
    return [entry.item() if isinstance(entry, np.generic) else entry for entry in categorical_features]


def _entry_kind(entry: object) -> str:
    # bool before int: True is an int to Python, but a mask entry to the user
    for kind in (bool, int, str):
        if isinstance(entry, kind):
            return kind.__name__
    return type(entry).__name__
