"""Missing cells of frames, filled in: pandas, polars and pyarrow, each by its own means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from ..errors import InputError
from . import fill_values as to
from .cells import Category, IntArray, python_value
from .recoding import category_finder


@dataclass(frozen=True, eq=False)
class Replacement:
    """What to put into a column.

    Parameters
    ----------
    rows : ndarray of int
        The rows.
    values : sequence
        Their values.
    """

    rows: IntArray
    values: Sequence[Category]

    def picked(self, n_rows: int) -> IntArray:
        """Give the entry for each row, of a column with the values behind it."""
        entries = np.arange(n_rows)
        entries[self.rows] = n_rows + np.arange(len(self.rows))
        return entries


def _fill_each(
    wanted: Mapping[int, Replacement], names: Sequence[Any], fill: Callable[[int, Replacement], Any]
) -> dict[int, Any]:
    """Fill the columns one by one, and name the one that cannot hold a value."""
    filled: dict[int, Any] = {}
    for j, replacement in wanted.items():
        try:
            filled[j] = fill(j, replacement)
        except InputError:
            raise
        except ValueError as error:
            raise InputError(f"Column {names[j]!r} cannot be filled: {error}.") from None
    return filled


def _positions(values: Sequence[Category], labels: Sequence[Category]) -> tuple[list[int], list[Category]]:
    """Find values among labels; those that are not among them are given back, as further labels."""
    find = category_finder(labels)
    further = list(dict.fromkeys(value for value in values if find(value) < 0))
    known = {value: len(labels) + i for i, value in enumerate(further)}
    return [known[value] if value in known else find(value) for value in values], further


# ------------------------------------------------------------------------------------------------- pandas


def fill_pandas(frame: Any, wanted: Mapping[int, Replacement]) -> Any:
    """Fill a frame of pandas, or of a library that has its interface."""
    filled = frame.copy()

    def fill(j: int, replacement: Replacement) -> Any:
        return _pandas_series(frame.iloc[:, j], replacement)

    for j, series in _fill_each(wanted, list(frame.columns), fill).items():
        filled.isetitem(j, series)
    return filled


def _pandas_series(series: Any, new: Replacement) -> Any:
    dtype = series.dtype
    # pandas itself is not imported: whoever has such a frame has it, and its types are known by their names.
    kind = type(dtype).__name__
    if kind == "SparseDtype":
        return _pandas_series(series.astype(dtype.subtype), new).astype(dtype)
    if kind == "DatetimeTZDtype":
        filled = _pandas_series(series.dt.tz_convert(None), new)
        return filled.dt.tz_localize("UTC").dt.tz_convert(dtype.tz)
    if kind == "CategoricalDtype":
        return _with_values(series, _pandas_categorical(series.array, new))
    if kind == "ArrowDtype":
        return _with_values(series, type(series.array)(_arrow_column(series.array.__arrow_array__(), new)))
    if isinstance(dtype, np.dtype):
        cells = series.to_numpy(copy=True)
        values = to.as_dtype(new.values, dtype, cells.tolist() if dtype.kind == "O" else ())
        if dtype.kind == "O":
            # One by one: numpy would look into times.
            for row, value in zip(new.rows, values, strict=True):
                cells[row] = value
        else:
            cells[new.rows] = values
        return type(series)(cells, index=series.index, name=series.name, dtype=dtype)
    cells = series.array.copy()
    # A type with missing cells of its own says which of numpy's it wraps; text is the one that wraps none.
    wrapped = getattr(dtype, "numpy_dtype", None)
    cells[new.rows] = to.texts(new.values) if wrapped is None else to.as_dtype(new.values, wrapped, ())
    return _with_values(series, cells)


def _with_values(series: Any, values: Any) -> Any:
    return type(series)(values, index=series.index, name=series.name)


def _pandas_categorical(cells: Any, new: Replacement) -> Any:
    labels = [python_value(label) for label in cells.categories.tolist()]
    positions, further = _positions(new.values, labels)
    codes = np.array(cells.codes, dtype=np.intp)
    codes[new.rows] = positions
    return type(cells).from_codes(codes, dtype=cells.add_categories(further).dtype if further else cells.dtype)


# ------------------------------------------------------------------------------------------------- polars


def fill_polars(frame: Any, wanted: Mapping[int, Replacement]) -> Any:
    """Fill a frame of polars."""
    polars = import_module("polars")
    columns = frame.get_columns()
    filled = _fill_each(wanted, frame.columns, lambda j, new: _polars_series(polars, columns[j], new))
    return frame.with_columns(filled.values()) if filled else frame.clone()


def _polars_series(polars: Any, series: Any, new: Replacement) -> Any:
    dtype = series.dtype
    if dtype == polars.Object:
        cells = series.to_list()
        for row, value in zip(new.rows.tolist(), to.objects(new.values, series.to_list()), strict=True):
            cells[row] = value
        return polars.Series(series.name, cells, dtype=dtype)
    if dtype == polars.Null:
        values = polars.Series(_alike(new.values))
        series = series.cast(values.dtype)
    elif dtype == polars.Categorical:
        # By way of text: the codes of two columns need not be the same.
        text = polars.Series(series.name, to.texts(new.values), dtype=polars.String)
        return _picked(polars, series.cast(polars.String), text, new).cast(dtype)
    elif dtype == polars.Enum:
        labels = dtype.categories.to_list()
        positions, further = _positions(new.values, labels)
        every = polars.Enum([*labels, *to.texts(further)])
        values = polars.Series([every.categories[position] for position in positions], dtype=every)
        series = series.cast(every) if further else series
    else:
        values = _polars_values(polars, dtype, new.values)
    return _picked(polars, series, values, new)


def _picked(polars: Any, series: Any, values: Any, new: Replacement) -> Any:
    return polars.concat([series, values.alias(series.name)]).gather(new.picked(len(series)))


def _polars_values(polars: Any, dtype: Any, values: Sequence[Category]) -> Any:
    if dtype.is_float():
        return polars.Series(to.floats(values, np.dtype(str(dtype).lower())), dtype=dtype)
    if dtype.is_integer():
        bits = int("".join(filter(str.isdigit, str(dtype))))
        return polars.Series(to.integers(values, bits, dtype.is_signed_integer()), dtype=dtype)
    if dtype.is_decimal():
        return polars.Series(to.decimals(values, dtype.precision or 38, dtype.scale), dtype=dtype)
    if dtype == polars.Boolean:
        return polars.Series(to.flags(values), dtype=dtype)
    if dtype == polars.String:
        return polars.Series(to.texts(values), dtype=dtype)
    if dtype == polars.Date:
        return polars.Series(to.days(values)).cast(dtype)
    if dtype in (polars.Datetime, polars.Duration):
        return polars.Series(to.ticks(values, dtype.time_unit)).cast(dtype)
    raise ValueError(f"its type is {dtype}")


def _alike(values: Sequence[Category]) -> Sequence[Category]:
    """Bring values to one type, for a column that has none."""
    return to.texts(values) if any(isinstance(value, str) for value in values) else values


# ------------------------------------------------------------------------------------------------- pyarrow


def fill_arrow(table: Any, wanted: Mapping[int, Replacement]) -> Any:
    """Fill a table of pyarrow."""
    filled = _fill_each(wanted, table.column_names, lambda j, new: _arrow_column(table.column(j), new))
    columns = [filled.get(j, column) for j, column in enumerate(table.columns)]
    schema = table.schema
    for j, column in filled.items():
        schema = schema.set(j, schema.field(j).with_type(column.type))
    return type(table).from_arrays(columns, schema=schema)


def _arrow_column(column: Any, new: Replacement) -> Any:
    """Fill a chunked array."""
    arrow = import_module("pyarrow")
    dtype = column.type
    if arrow.types.is_dictionary(dtype):
        return _arrow_dictionary(arrow, column, new)
    if arrow.types.is_string_view(dtype):  # of which cells cannot be taken
        return _arrow_column(column.cast(arrow.large_string()), new).cast(dtype)
    if arrow.types.is_null(dtype):
        values = arrow.array(_alike(new.values))
        column = column.cast(values.type)
    else:
        values = _arrow_values(arrow, dtype, new.values)
    return arrow.chunked_array([*column.chunks, values], type=values.type).take(new.picked(len(column)))


def _arrow_dictionary(arrow: Any, column: Any, new: Replacement) -> Any:
    dtype = column.type
    cells = arrow.chunked_array(column.unify_dictionaries().chunks, type=dtype).combine_chunks()
    labels = [python_value(label) for label in cells.dictionary.to_pylist()]
    positions, further = _positions(new.values, labels)
    dictionary = cells.dictionary
    if further:
        dictionary = arrow.concat_arrays([dictionary, _arrow_values(arrow, dtype.value_type, further)])
    codes = arrow.concat_arrays([cells.indices, arrow.array(positions, type=dtype.index_type)])
    codes = codes.take(arrow.array(new.picked(len(column))))
    return arrow.chunked_array([arrow.DictionaryArray.from_arrays(codes, dictionary, ordered=dtype.ordered)])


def _arrow_values(arrow: Any, dtype: Any, values: Sequence[Category]) -> Any:
    kind = arrow.types
    if kind.is_floating(dtype):
        return arrow.array(to.floats(values, np.dtype(dtype.to_pandas_dtype())), type=dtype)
    if kind.is_integer(dtype):
        return arrow.array(to.integers(values, dtype.bit_width, kind.is_signed_integer(dtype)), type=dtype)
    if kind.is_decimal(dtype):
        return arrow.array(to.decimals(values, dtype.precision, dtype.scale), type=dtype)
    if kind.is_boolean(dtype):
        return arrow.array(to.flags(values), type=dtype)
    if kind.is_string(dtype) or kind.is_large_string(dtype):
        return arrow.array(to.texts(values), type=dtype)
    if kind.is_date32(dtype):
        return arrow.array(to.days(values).astype(np.int32)).cast(dtype)
    if kind.is_date64(dtype):
        return arrow.array(to.days(values) * 86_400_000).cast(dtype)
    if kind.is_timestamp(dtype) or kind.is_duration(dtype):
        return arrow.array(to.ticks(values, dtype.unit)).cast(dtype)
    raise ValueError(f"its type is {dtype}")
