"""Tables as matrices of numbers, for functions that take a process."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._validation import shorten
from ..errors import InputError
from .cells import FloatArray
from .character_columns import spell_characters
from .columns import RealColumn, Table, read_columns
from .inputs import compute_dask, find_datatypes, to_array


def as_matrix(X: ArrayLike) -> FloatArray:
    """Return X as a new float matrix. NaN marks missing cells; other values must be finite.

    Characters in a frame of `coaltree.read_characters` become codes of their alphabets.
    """
    if find_datatypes(X):
        return code_characters(read_columns(X)).matrix
    X = compute_dask(X)
    try:
        if hasattr(X, "isna") and hasattr(X, "to_numpy"):  # a pandas frame: pd.NA must be converted explicitly
            X = X.to_numpy(dtype=np.float64, na_value=np.nan)
        elif hasattr(X, "to_numpy"):
            X = X.to_numpy()
        array = to_array(X) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
        if array.dtype.kind == "c":
            raise TypeError("complex numbers")
        with np.errstate(over="ignore"):  # longer floats become infinite, which is reported below
            matrix = np.array(array, dtype=np.float64, order="C")  # sums depend on the order in memory
    except Exception as error:  # conversions of the objects in it may raise anything
        raise InputError(
            f"The table could not be read as numbers ({shorten(str(error))}). Pass real values or state codes, with NaN for "
            "missing cells, or use CoalescentClustering, which encodes text and categories itself."
        ) from None
    if matrix.ndim != 2:
        raise InputError(f"The table has {matrix.ndim} dimension(s); it must have two: rows and columns.")
    if matrix.shape[0] == 0 or matrix.shape[1] == 0:
        raise InputError(f"The table has shape {matrix.shape}; it needs at least one row and one column.")
    infinite = np.argwhere(np.isinf(matrix))
    if len(infinite):
        row, column = infinite[0]
        raise InputError(
            f"{len(infinite)} cell(s) are infinite, the first in row {row}, column {column}; cells must be finite numbers "
            "or NaN for missing. Replace infinities by NaN or by a large finite value."
        )
    return matrix


class CodedTable(NamedTuple):
    """A table of numbers and codes."""

    matrix: FloatArray
    n_states: list[int]  # of each column, 0 for real ones


def code_characters(table: Table) -> CodedTable:
    """Return the columns of a table: numbers as they are, and codes of characters in their alphabets."""
    columns = spell_characters(table, ascertainment="all").table.columns
    matrix = np.empty((table.n_rows, len(columns)))
    for j, column in enumerate(columns):
        matrix[:, j] = (
            column.values if isinstance(column, RealColumn) else np.where(column.codes == -1, np.nan, column.codes)
        )
    return CodedTable(matrix, [0 if isinstance(column, RealColumn) else len(column.categories) for column in columns])
