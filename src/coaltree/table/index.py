"""Row numbers and names that pandas wrote into a file as a column without a name."""

from __future__ import annotations

import re
import warnings
from collections.abc import Container
from typing import Any

from ..errors import InputError, InputWarning

UNNAMED = "Unnamed: 0"
"""What a first column without a name is called, as pandas calls it."""

# pandas gives these names to a column without a name: of a text file that was read without index_col and written
# again, perhaps several times, and of the index in a parquet file.
_WRITTEN_INDEX = re.compile(r"Unnamed: 0([._]\d+)*|__index_level_\d+__")


def name_of_unnamed(others: Container[str]) -> str:
    """Find a name for a first column that has none, as pandas does."""
    name, times = UNNAMED, 0
    while name in others:
        times += 1
        name = f"{UNNAMED}.{times}"
    return name


def is_index(name: str, unnamed: str | None) -> bool:
    """Say whether a column has the name of an index without one, or had none."""
    return name == unnamed or _WRITTEN_INDEX.fullmatch(name) is not None


def take_index(
    frame: Any, unnamed: str | None, id_column: str | None, spoken_for: Container[str], source: str
) -> tuple[str | None, list[str]]:
    """Take the first index among the columns for the row names, unless others are asked for, and leave out the rest.

    Parameters
    ----------
    frame : polars.DataFrame
    unnamed : str or None
        The column that had no name.
    id_column : str or None
        The column with the row names as asked for; "" for none.
    spoken_for : container of str
        Columns of which the user has said what they are.
    source : str
        The file's name, for messages.

    Returns
    -------
    id_column : str or None
        The column with the row names, as far as it is settled.
    left_out : list of str
        Columns to leave out.

    Raises
    ------
    InputError
        If the column without a name does not tell the rows apart.

    Warns
    -----
    InputWarning
        For every column that was found.
    """
    found = []
    for name in frame.columns:
        if not is_index(name, unnamed) or name == id_column or name in spoken_for:
            continue
        column = frame[name]
        if column.null_count() == 0 and column.n_unique() == len(column):
            found.append(name)
        elif name == unnamed:
            raise InputError(
                f"Column 1 of {source} has no name in the header, and its values are not distinct row names: give it a "
                "name, for example 'group', or leave it out."
            )
    if id_column is None and found:
        id_column = found.pop(0)
        _note(f"Column {id_column!r} of {source} is an index without a name and was taken as the row names.")
    for name in found:
        _note(
            f"Column {name!r} of {source} is an index without a name and was left out: give it a name to cluster by it."
        )
    return id_column, found


def _note(sentence: str) -> None:
    warnings.warn(sentence, InputWarning, stacklevel=4)
