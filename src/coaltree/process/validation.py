"""Checks of tables and column counts that all processes share."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import quote, shorten
from ..errors import InputError
from ..table.inputs import compute_dask

FloatArray = NDArray[np.float64]


def as_matrix(X: ArrayLike) -> FloatArray:
    """Return X as a new float matrix. NaN marks missing cells; other values must be finite."""
    X = compute_dask(X)
    try:
        if hasattr(X, "isna") and hasattr(X, "to_numpy"):  # a pandas frame, whose pd.NA must be converted explicitly
            X = X.to_numpy(dtype=np.float64, na_value=np.nan)
        elif hasattr(X, "to_numpy"):
            X = X.to_numpy()
        given = np.asarray(X)
        if given.dtype.kind == "c":
            raise TypeError("complex numbers")
        with np.errstate(over="ignore"):  # longer floats become infinite, which is reported below
            matrix = np.array(given, dtype=np.float64)
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


def check_column_count(n_columns: object) -> int | None:
    """Return the number of columns to simulate; None stays None."""
    if n_columns is None:
        return None
    if isinstance(n_columns, bool) or not isinstance(n_columns, int | np.integer) or n_columns < 1:
        raise InputError(
            f"n_columns is {quote(n_columns)}; it must be a whole number of columns of at least 1, or None."
        )
    return int(n_columns)


def check_width(given: int, expected: int, what: str) -> None:
    """Raise unless a table has as many columns as a process describes."""
    if given != expected:
        raise InputError(f"The table has {given} column(s), but {what} describes {expected}; the numbers must match.")
