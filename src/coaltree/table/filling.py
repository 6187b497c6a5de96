"""Missing cells of a table, filled in: the same kind of table comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from .cells import Category, IntArray
from .fill_values import as_dtype
from .filling_frames import Replacement, fill_arrow, fill_pandas, fill_polars
from .names import is_missing
from .sources import list_to_array
from .wording import InputTypeError, count

Fills: TypeAlias = Mapping[int, tuple[ArrayLike, Sequence[Category] | NDArray[Any]]]
"""For a column's position, rows and the values to put there."""


def fill_cells(X: Any, fills: Fills) -> Any:
    """Fill missing cells of a table.

    All other cells stay what they are, to the last bit, and so do the types of the columns: a column of integers gets
    the nearest integer that it can hold, a date the nearest day, a time the nearest tick of its unit, a category type
    the label. A column whose type holds nothing but missing cells takes the type of the values, and one whose category
    type lacks the label gets it behind the others.

    Parameters
    ----------
    X : frame, 2-D array or list of lists
        The table, of any kind that `read_columns` reads. It is not changed.
    fills : mapping of int to (rows, values)
        For a column's position in `X`, the rows of missing cells and what to put there: numbers for a real column (days
        since 1970-01-01 for times, days for durations), categories for a categorical one.

    Returns
    -------
    frame or array
        A table of the kind of `X`, with its index, names and types. For a list of lists an array: of floats where all
        cells are numbers, of objects otherwise.

    Raises
    ------
    InputError
        When a column cannot hold a value.
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return _fill_array(X, fills)
    wanted = {j: _replacement(j, fill, len(frame.columns)) for j, fill in fills.items()}
    wanted = {j: replacement for j, replacement in wanted.items() if len(replacement.rows)}
    if frame.implementation.is_polars():
        return fill_polars(X, wanted)
    if frame.implementation.is_pyarrow():
        return fill_arrow(X, wanted)
    if frame.implementation.is_pandas_like():
        return fill_pandas(X, wanted)
    raise InputTypeError(
        f"X is a frame of type {type(X).__name__}, whose cells cannot be filled: pass it as a frame of pandas, polars or "
        "pyarrow."
    )


def take_columns(X: Any, positions: Sequence[int]) -> Any:
    """Return some columns of a frame, in an order; arrays have no names to be matched by, and stay as they are."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame) or list(positions) == list(range(len(frame.columns))):
        return X
    if frame.implementation.is_pandas_like():
        return X.iloc[:, list(positions)]
    return X.select([frame.columns[j] for j in positions])


def _replacement(j: int, fill: tuple[ArrayLike, Sequence[Category] | NDArray[Any]], n_columns: int) -> Replacement:
    if not 0 <= j < n_columns:
        raise InputError(f"fills names the column {j}, but the columns of X go from 0 to {n_columns - 1}.")
    rows: IntArray = np.asarray(fill[0], dtype=np.intp).reshape(-1)
    values = [v.item() if isinstance(v, np.generic) else v for v in fill[1]]
    if len(rows) != len(values):
        raise InputError(f"fills has {count(len(values), 'value')} for {count(len(rows), 'row')} of column {j}.")
    return Replacement(rows, values)


def _fill_array(X: Any, fills: Fills) -> NDArray[Any]:
    if isinstance(X, list | tuple):
        filled = list_to_array(X)
        if _all_numbers([*filled.flat, *(value for _, values in fills.values() for value in values)]):
            numbers = [np.nan if is_missing(cell) else float(cell) for cell in filled.flat]
            filled = np.array(numbers).reshape(filled.shape)
    elif isinstance(X, np.ma.MaskedArray):
        filled = X.copy()
        filled.soften_mask()
    else:
        filled = np.array(X)
    for j, fill in fills.items():
        replacement = _replacement(j, fill, filled.shape[1])
        if not len(replacement.rows):
            continue
        plain = filled.dtype.kind in "biufMm"
        try:
            values = as_dtype(replacement.values, filled.dtype, () if plain else filled[:, j].tolist())
        except ValueError as error:
            raise InputError(f"Column {j} of X is of type {filled.dtype} and cannot be filled: {error}.") from None
        if filled.dtype.kind == "U":
            # The longest text so far says how wide the type is.
            filled = filled.astype(np.result_type(filled.dtype, np.array(values).dtype))
        if plain:
            filled[replacement.rows, j] = values
            continue
        # One by one: numpy would look into times, and a list of text has no type yet.
        for row, value in zip(replacement.rows, values, strict=True):
            filled[row, j] = value
    return filled


def _all_numbers(cells: Sequence[Any]) -> bool:
    """Say whether an array of floats holds all cells without loss."""
    return all(
        is_missing(cell)
        or (isinstance(cell, float | np.floating) and not isinstance(cell, np.longdouble))
        or (isinstance(cell, int | np.integer) and not isinstance(cell, bool) and abs(int(cell)) <= 2**53)
        for cell in cells
    )
