"""Frames of characters as arguments of functions that take a table of numbers and a process."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._validation import quote
from ..errors import InputError, InputWarning
from ..process.base import Process, check_process
from ..process.characters import character_process, with_shares
from ..table.cells import FloatArray
from ..table.character_columns import spell_characters
from ..table.columns import read_columns
from ..table.inputs import find_datatypes
from ..table.matrix import as_matrix, code_characters
from .clock import fit_clock


class Arguments(NamedTuple):
    """The table of a function as a matrix, its process, and the names of its rows."""

    matrix: FloatArray
    process: Process
    leaf_names: Sequence[str] | None


def read_arguments(
    X: Any, process: Process | None, leaf_names: Sequence[str] | None, search: Callable[..., Any]
) -> Arguments:
    """Return the arguments of a function; for a frame of characters with its row names, and by default with its process.

    Parameters
    ----------
    X : array-like or frame
    process : Process or None
        By default the model of the field for characters, with rates that were fitted to a greedy tree.
    leaf_names : sequence of str, optional
    search : callable
        Greedy inference.
    """
    if process is not None:
        check_process(process)
    if not find_datatypes(X):
        if process is None:
            raise InputError(
                "process is None, and only characters have a process of their own: pass a frame of ct.read_characters, or a "
                "process such as Brownian() or Multinomial()."
            )
        return Arguments(as_matrix(X), process, leaf_names)
    table = read_columns(X)
    names = table.row_names if leaf_names is None else leaf_names
    if process is not None:
        matrix, n_states = code_characters(table)
        return Arguments(matrix, with_shares(process, matrix, n_states), names)
    if table.real:
        raise InputError(
            f"process is None, and column {quote(table.real[0].name)} is no character: pass a process, leave such columns "
            "out, or use CoalescentClustering."
        )
    characters = spell_characters(table)
    for remark in characters.remarks:
        warnings.warn(remark, InputWarning, stacklevel=3)
    used = {name for partition in characters.partitions for name in partition.columns}
    columns = [column for column in characters.table.categorical if column.name in used]
    if not columns:
        raise InputError("The table has no cell that is known, so its rows cannot be distinguished.")
    codes = np.stack([np.where(column.codes == -1, np.nan, column.codes) for column in columns], axis=1)
    n_states = [len(column.categories) for column in columns]
    process = character_process(codes, [column.name for column in columns], n_states, characters.partitions)
    return Arguments(codes, fit_clock(process, codes, search), names)
