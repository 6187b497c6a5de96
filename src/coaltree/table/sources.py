"""Where a table comes from: a frame, an array or a list of lists, seen as named columns of cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .blocks import computed
from .cells import Cells, FlagCells, LabelledCells, NumberCells, TextCells, TimeCells, python_value
from .names import column_names, index_names, is_missing
from .objects import numpy_days, read_objects
from .wording import InputTypeError, Place, count

_CONVERT = "convert it to numbers, text or dates, or drop it"


@dataclass(frozen=True)
class Source:
    """A table whose columns are read one at a time.

    Parameters
    ----------
    names : tuple of str
        The column names.
    n_rows : int
        Number of rows.
    row_names : tuple of str or None
        The row names, where the source has them.
    read : callable
        Gives the cells of a column, from its position and its place for messages.
    positions : tuple of int
        Where each column of `names` stands in the table that was given.
    labels : tuple or None
        The labels of a frame's columns, which may be something else than text; None for an array.
    """

    names: tuple[str, ...]
    n_rows: int
    row_names: tuple[str, ...] | None
    read: Callable[[int, Place], Cells]
    positions: tuple[int, ...]
    labels: tuple[object, ...] | None = None


def open_source(X: Any, feature_names: Sequence[str] | None = None) -> Source:
    """Look at a table of any supported kind.

    Parameters
    ----------
    X : frame, array, Dask array or list of lists
        The table.
    feature_names : sequence of str, optional
        Column names that replace those of the table.

    Returns
    -------
    Source

    Raises
    ------
    InputError
        When `X` is not a table with at least one row and one column. InputTypeError, which is a TypeError
        as well, when it is an object of the wrong type.
    """
    X = computed(X)
    _refuse_unsupported(X)
    source = _open_frame(X)
    if source is None:
        source = _open_array(X)
    if feature_names is None:
        return source
    names = column_names(feature_names)
    if len(names) != len(source.names):
        raise InputError(
            f"feature_names has {count(len(names), 'name')}, but the table has {count(len(source.names), 'column')}."
        )
    return replace(source, names=names)


def _refuse_unsupported(X: Any) -> None:
    # Sparse matrices are known by their methods, so that scipy need not be imported to refuse one.
    if hasattr(X, "tocsr") or hasattr(X, "tocoo"):
        raise InputTypeError(
            "Sparse data was passed for X, but dense data is required. Use `.toarray()` to convert to a "
            "dense numpy array."
        )
    if type(X).__name__ == "LazyFrame":
        raise InputTypeError("X is a lazy frame, whose rows are not read yet: pass X.collect().")
    if isinstance(X, dict | str | bytes) or X is None:
        raise InputTypeError(
            f"X must be a frame, a 2-D array or a list of lists, not {type(X).__name__}: pass a dict of "
            "columns as a frame, a file through coaltree.table.reading.read_file."
        )


def _check_shape(shape: tuple[int, ...]) -> None:
    if shape[0] == 0:
        raise InputError(f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required.")
    if shape[1] == 0:
        raise InputError(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required.")


def _one_dimensional(values: object) -> InputError:
    return InputError(
        f"Expected 2D array, got 1D array instead:\narray={values}.\nReshape your data either using "
        "array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it contains a "
        "single sample."
    )


# ------------------------------------------------------------------------------------------------- frames


def _open_frame(X: Any) -> Source | None:
    """Open what narwhals knows as a frame; None for anything else."""
    if isinstance(nw.from_native(X, series_only=True, pass_through=True), nw.Series):
        raise _one_dimensional(X)
    # pyarrow's `columns` are the data. Not asked of every frame: pandas gives a column of that name.
    is_arrow = type(X).__module__.startswith("pyarrow")
    labels = getattr(X, "column_names" if is_arrow else "columns", None)
    if labels is None or callable(labels):
        return None
    # Before narwhals looks: it refuses repeated names in words of its own.
    names = column_names(labels)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return None
    _check_shape(frame.shape)
    series = list(frame.iter_columns())
    row_names = index_names(getattr(frame.to_native(), "index", None), frame.shape[0])
    return Source(
        names,
        frame.shape[0],
        row_names,
        lambda j, place: _series_cells(series[j], place),
        tuple(range(len(names))),
        tuple(labels),
    )


def _series_cells(series: nw.Series[Any], place: Place) -> Cells:
    dtype = series.dtype
    native = series.to_native()
    # narwhals looks into pandas' object columns to guess a type; the guess for a column without any
    # observed cell is text, which the type of the column does not say.
    if dtype == nw.Object or str(getattr(native, "dtype", "")) == "object":
        return read_objects(series.to_list(), place, declared_text=True)
    if dtype.is_integer() and series.null_count() == 0 and dtype not in (nw.Int128, nw.UInt128):
        return NumberCells(series.to_numpy())
    if dtype.is_numeric():
        return NumberCells(series.cast(nw.Float64).to_numpy())
    if dtype == nw.Boolean:
        return FlagCells(series.cast(nw.Float64).to_numpy())
    if dtype == nw.String:
        return TextCells(series.to_list(), declared_text=True)
    if dtype in (nw.Categorical, nw.Enum):
        return _category_cells(series, native)
    if dtype in (nw.Datetime, nw.Date):
        milliseconds = series.dt.timestamp("ms") if getattr(dtype, "time_unit", "") in ("s", "ms") else None
        if milliseconds is not None:
            return TimeCells(milliseconds.cast(nw.Float64).to_numpy() / 86_400_000)
        return TimeCells(series.dt.timestamp("us").cast(nw.Float64).to_numpy() / 86_400_000_000)
    if dtype == nw.Duration:
        return NumberCells(series.dt.total_microseconds().cast(nw.Float64).to_numpy() / 86_400_000_000)
    return _unknown_cells(series, native, place)


def _category_cells(series: nw.Series[Any], native: Any) -> Cells:
    accessor = getattr(native, "cat", None)
    codes = getattr(accessor, "codes", None)
    if codes is not None:  # pandas, whose labels may be of any type
        labels = tuple(python_value(label) for label in accessor.categories.tolist())  # type: ignore[union-attr]
        return LabelledCells(codes.to_numpy().astype(np.intp), labels)
    order = getattr(series.dtype, "categories", None) if series.dtype == nw.Enum else None
    values = series.cast(nw.String).to_list()
    # With an order the labels count as declared, and numbers among them raise no question.
    return TextCells(
        values, declared_text=True, order=tuple(order or sorted({v for v in values if isinstance(v, str)}))
    )


def _unknown_cells(series: nw.Series[Any], native: Any, place: Place) -> Cells:
    dtype = native.type if hasattr(native, "type") else native.dtype
    if series.dtype == nw.Unknown:
        values = series.to_numpy()
        if values.ndim == 1 and values.dtype.kind in "iuf":  # pandas' sparse columns, polars' null columns
            return NumberCells(values)
        if values.dtype.kind == "c":
            raise _complex_error(f"column {place.column!r} is of type {dtype}")
        if all(is_missing(value) for value in series.to_list()):
            return NumberCells(np.full(len(series), math.nan))
    raise InputError(f"Column {place.column!r} is of type {dtype}, which has no reading as a column: {_CONVERT}.")


def _complex_error(what: str) -> InputError:
    return InputError(
        f"Complex data not supported: {what}; split it into real and imaginary part, or drop the imaginary part."
    )


# ------------------------------------------------------------------------------------------------- arrays


def array_names(n_columns: int) -> tuple[str, ...]:
    """Name the columns of an array, which have no names."""
    return tuple(f"x{j}" for j in range(n_columns))


def _open_array(X: Any) -> Source:
    values = list_to_array(X) if isinstance(X, list | tuple) else _any_to_array(X)
    if values.ndim == 0:
        raise InputError(
            f"Expected 2D array, got scalar array instead:\narray={values}.\nReshape your data either using "
            "array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it contains a "
            "single sample."
        )
    if values.ndim == 1 and values.dtype.names is None:
        raise _one_dimensional(values)
    if values.dtype.names is not None:
        raise InputError("X is a structured array: pass it as a frame, for example pandas.DataFrame(X).")
    if values.ndim > 2:
        raise InputError(
            f"Found array with dim {values.ndim} (shape={values.shape}) while dim <= 2 is required: "
            "a table has rows and columns only."
        )
    _check_shape(values.shape)
    if values.dtype.kind == "c":
        raise _complex_error("X is an array of complex numbers")
    if values.dtype.kind not in "biufOUTMm":
        raise InputError(f"X is an array of type {values.dtype}, which has no reading as columns: {_CONVERT}.")
    return Source(
        array_names(values.shape[1]),
        values.shape[0],
        None,
        lambda j, place: _array_cells(values[:, j], place),
        tuple(range(values.shape[1])),
    )


def _array_cells(values: NDArray[Any], place: Place) -> Cells:
    kind = values.dtype.kind
    if kind in "iuf":
        return NumberCells(values)
    if kind == "b":
        return FlagCells(values.astype(np.float64))
    if kind == "M":
        return TimeCells(numpy_days(values))
    if kind == "m":
        return NumberCells(numpy_days(values))
    # Text in an array may be numbers that numpy turned into text because they stood next to some.
    return read_objects(values.tolist(), place, declared_text=False)


def _any_to_array(X: Any) -> NDArray[Any]:
    if isinstance(X, np.ma.MaskedArray):
        # A masked cell is a missing one; asarray would bring back what the mask hides.
        if X.dtype.kind in "iuf":
            return np.where(np.ma.getmaskarray(X), np.nan, X.data)
        cells = X.data.astype(object)
        cells[np.ma.getmaskarray(X)] = None
        return cells
    if not hasattr(X, "__array__") and not hasattr(X, "__array_interface__"):
        if np.isscalar(X):
            return np.asarray(X)
        raise InputTypeError(f"X must be a frame, a 2-D array or a list of lists, not {type(X).__name__}.")
    return np.asarray(X)


def list_to_array(rows: Sequence[Any]) -> NDArray[Any]:
    """Build an object array, so that each column keeps the types of its own cells."""
    is_row = [isinstance(row, list | tuple) or getattr(row, "ndim", 0) > 0 for row in rows]
    if not any(is_row):
        raise _one_dimensional(list(rows))
    if not all(is_row):
        i = is_row.index(False)
        raise InputError(f"X is a list of rows, but its entry {i} is {rows[i]!r} and not a row.")
    n_columns = len(rows[0])
    for i, row in enumerate(rows):
        if len(row) != n_columns:
            raise InputError(
                f"All rows of X must be of one length, but row 0 has {count(n_columns, 'cell')} and row {i} "
                f"(counted from 0) has {len(row)}: fill the cells that are not known with None."
            )
    if n_columns and isinstance(rows[0][0], list | tuple | np.ndarray):
        raise InputError("Found array with dim 3 while dim <= 2 is required: the cells of X are lists.")
    values = np.empty((len(rows), n_columns), dtype=object)
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            values[i, j] = cell
    return values
