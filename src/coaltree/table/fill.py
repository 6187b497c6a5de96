"""Missing cells of a table, filled in: the same kind of table comes out."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from importlib import import_module
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from .cells import Category, IntArray, python_value
from .columns import category_finder
from .inputs import list_to_array
from .messages import InputTypeError, count, is_missing

_NANOSECONDS_A_DAY = 86_400 * 10**9
_NANOSECONDS = {
    "W": 7 * _NANOSECONDS_A_DAY,
    "D": _NANOSECONDS_A_DAY,
    "h": 3600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
}
_EPOCH = dt.datetime(1970, 1, 1)
# What Python's dates can say.
_FIRST_DAY = (dt.datetime.min - _EPOCH) / dt.timedelta(days=1)
_LAST_DAY = (dt.datetime.max - _EPOCH) / dt.timedelta(days=1)


def to_floats(values: Sequence[Category], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Numbers of a float type; those too large for it become its largest."""
    limit = float(np.finfo(dtype).max)
    return np.clip(np.array([_number(v) for v in values], dtype=np.float64), -limit, limit).astype(dtype)


def to_integers(values: Sequence[Category], bits: int = 0, signed: bool = True) -> list[int]:
    """Whole numbers, rounded and kept within what so many bits can hold; 0 bits stand for Python's to_integers."""
    whole = [v if isinstance(v, int) else round(_number(v)) for v in values]
    if not bits:
        return whole
    lowest = -(1 << (bits - 1)) if signed else 0
    highest = (1 << (bits - signed)) - 1
    return [min(max(v, lowest), highest) for v in whole]


def to_flags(values: Sequence[Category]) -> list[bool]:
    """Truth values; a number is true from one half on."""
    return [v.lower() == "true" if isinstance(v, str) else v >= 0.5 for v in values]


def to_decimals(values: Sequence[Category], precision: int, scale: int) -> list[Decimal]:
    """Decimal numbers with `scale` digits behind the point, and no more than `precision` in all."""
    with localcontext(prec=400):  # as many digits as a float may need in front of its point, and to spare
        unit = Decimal(1).scaleb(-scale)
        limit = (10**precision - 1) * unit
        return [min(max(_decimal(v).quantize(unit), -limit), limit) for v in values]


def to_texts(values: Sequence[Category]) -> list[str]:
    """Text; a category that was a number in the fit is written as Python writes it."""
    return [str(v) for v in values]


def to_days(values: Sequence[Category]) -> NDArray[np.int64]:
    """Whole to_days since 1970-01-01, for dates."""
    limits = np.iinfo(np.int32)
    whole = np.clip(np.rint(_days(values)), limits.min, limits.max)
    return whole.astype(np.int64)


def to_ticks(values: Sequence[Category], unit: str, step: int = 1) -> NDArray[np.int64]:
    """Times in steps of a unit since 1970-01-01, or durations, from to_days or ISO text."""
    numbers = np.rint(_days(values) * (_NANOSECONDS_A_DAY / (_NANOSECONDS[unit] * step)))
    # The lowest integer is NaT, and the largest float below 2**63 is 1024 less than it.
    return np.clip(numbers, -(2.0**63) + 1024, 2.0**63 - 1024).astype(np.int64)


def to_dtype(values: Sequence[Category], dtype: np.dtype[Any], found: Iterable[Any]) -> Any:
    """Turn values into cells of a numpy type.

    Parameters
    ----------
    values : sequence
        Numbers, to_days since 1970-01-01 or categories.
    dtype : dtype
        The type of the column.
    found : iterable
        The column, which says what a column of to_objects or text holds.

    Returns
    -------
    array or list
    """
    if dtype.kind == "f":
        return to_floats(values, dtype)
    if dtype.kind in "iu":
        return np.array(to_integers(values, 8 * dtype.itemsize, dtype.kind == "i"), dtype=dtype)
    if dtype.kind == "b":
        return np.array(to_flags(values), dtype=dtype)
    if dtype.kind in "Mm":
        unit, step = np.datetime_data(dtype)
        if unit in _NANOSECONDS:
            return to_ticks(values, unit, step).view(dtype)
        # Months and years have any length, and are rounded down.
        return to_ticks(values, "us").view(f"{dtype.kind}8[us]").astype(dtype)
    return to_objects(values, found) if dtype.kind == "O" else to_texts(to_objects(values, found))


def to_objects(values: Sequence[Category], found: Iterable[Any]) -> list[Any]:
    """Turn values into Python to_objects like those that a column holds."""
    observed = [v for v in found if not is_missing(v) and not (isinstance(v, str) and v == "")]
    kinds = set(map(type, observed))
    # A datetime is a date to isinstance, and True an int: the narrow classes come first.
    if not kinds:
        return list(values)
    if _all_of(kinds, bool | np.bool_):
        return list(to_flags(values))
    if _all_of(kinds, int | np.integer) and not any(issubclass(kind, bool) for kind in kinds):
        return list(to_integers(values))
    if _all_of(kinds, Decimal):
        return [_decimal(v) for v in values]
    if _all_of(kinds, np.datetime64 | np.timedelta64):
        return list(to_dtype(values, observed[0].dtype, ()))
    if _all_of(kinds, dt.timedelta):
        return [_same_class(dt.timedelta(days=day), observed[0]) for day in _days(values).tolist()]
    if _all_of(kinds, dt.date):
        return _times(values, [v for v in observed if isinstance(v, dt.datetime)])
    if _all_of(kinds, str) and not all(isinstance(v, str) for v in values):
        return _written_numbers(values, observed)
    return list(values)


def _times(values: Sequence[Category], like: Sequence[dt.datetime]) -> list[Any]:
    """Dates, or times in the zone and of the class of others."""
    since = np.clip(_days(values), _FIRST_DAY, _LAST_DAY)
    if not like:
        return [_EPOCH.date() + dt.timedelta(days=day) for day in np.rint(since).tolist()]
    zone = like[0].tzinfo
    times = [_EPOCH + dt.timedelta(days=day) for day in since.tolist()]
    if zone is not None:
        times = [time.replace(tzinfo=dt.UTC).astimezone(zone) for time in times]
    return [_same_class(time, like[0]) for time in times]


def _same_class(value: Any, like: Any) -> Any:
    # pandas' Timestamp and Timedelta are made from Python's.
    return value if type(like) is type(value) else type(like)(value)


def _written_numbers(values: Sequence[Category], observed: Sequence[str]) -> list[str]:
    numbers = [text for text in observed if text.strip().lower() != "nan"]
    if all(text.strip().lstrip("+-").isdecimal() for text in numbers):
        return to_texts(to_integers(values))
    return to_texts(values)


def _all_of(kinds: Iterable[type], wanted: Any) -> bool:
    return all(issubclass(kind, wanted) for kind in kinds)


def _number(value: Category) -> float:
    return float(value)


def _decimal(value: Category) -> Decimal:
    return Decimal(value) if isinstance(value, int) else Decimal(repr(_number(value)))


def _days(values: Sequence[Category]) -> NDArray[np.float64]:
    """Days of numbers, which are to_days, and of the text of times."""
    return np.array([_days_of_text(v) if isinstance(v, str) else _number(v) for v in values], dtype=np.float64)


def _days_of_text(text: str) -> float:
    return float((np.datetime64(text, "us") - np.datetime64(0, "us")) / np.timedelta64(1, "D"))


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
        values = to_dtype(new.values, dtype, cells.tolist() if dtype.kind == "O" else ())
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
    cells[new.rows] = to_texts(new.values) if wrapped is None else to_dtype(new.values, wrapped, ())
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
        for row, value in zip(new.rows.tolist(), to_objects(new.values, series.to_list()), strict=True):
            cells[row] = value
        return polars.Series(series.name, cells, dtype=dtype)
    if dtype == polars.Null:
        values = polars.Series(_alike(new.values))
        series = series.cast(values.dtype)
    elif dtype == polars.Categorical:
        # By way of text: the codes of two columns need not be the same.
        text = polars.Series(series.name, to_texts(new.values), dtype=polars.String)
        return _picked(polars, series.cast(polars.String), text, new).cast(dtype)
    elif dtype == polars.Enum:
        labels = dtype.categories.to_list()
        positions, further = _positions(new.values, labels)
        every = polars.Enum([*labels, *to_texts(further)])
        values = polars.Series([every.categories[position] for position in positions], dtype=every)
        series = series.cast(every) if further else series
    else:
        values = _polars_values(polars, dtype, new.values)
    return _picked(polars, series, values, new)


def _picked(polars: Any, series: Any, values: Any, new: Replacement) -> Any:
    return polars.concat([series, values.alias(series.name)]).gather(new.picked(len(series)))


def _polars_values(polars: Any, dtype: Any, values: Sequence[Category]) -> Any:
    if dtype.is_float():
        return polars.Series(to_floats(values, np.dtype(str(dtype).lower())), dtype=dtype)
    if dtype.is_integer():
        bits = int("".join(filter(str.isdigit, str(dtype))))
        return polars.Series(to_integers(values, bits, dtype.is_signed_integer()), dtype=dtype)
    if dtype.is_decimal():
        return polars.Series(to_decimals(values, dtype.precision or 38, dtype.scale), dtype=dtype)
    if dtype == polars.Boolean:
        return polars.Series(to_flags(values), dtype=dtype)
    if dtype == polars.String:
        return polars.Series(to_texts(values), dtype=dtype)
    if dtype == polars.Date:
        return polars.Series(to_days(values)).cast(dtype)
    if dtype in (polars.Datetime, polars.Duration):
        return polars.Series(to_ticks(values, dtype.time_unit)).cast(dtype)
    raise ValueError(f"its type is {dtype}")


def _alike(values: Sequence[Category]) -> Sequence[Category]:
    """Bring values to one type, for a column that has none."""
    return to_texts(values) if any(isinstance(value, str) for value in values) else values


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
        return arrow.array(to_floats(values, np.dtype(dtype.to_pandas_dtype())), type=dtype)
    if kind.is_integer(dtype):
        return arrow.array(to_integers(values, dtype.bit_width, kind.is_signed_integer(dtype)), type=dtype)
    if kind.is_decimal(dtype):
        return arrow.array(to_decimals(values, dtype.precision, dtype.scale), type=dtype)
    if kind.is_boolean(dtype):
        return arrow.array(to_flags(values), type=dtype)
    if kind.is_string(dtype) or kind.is_large_string(dtype):
        return arrow.array(to_texts(values), type=dtype)
    if kind.is_date32(dtype):
        return arrow.array(to_days(values).astype(np.int32)).cast(dtype)
    if kind.is_date64(dtype):
        return arrow.array(to_days(values) * 86_400_000).cast(dtype)
    if kind.is_timestamp(dtype) or kind.is_duration(dtype):
        return arrow.array(to_ticks(values, dtype.unit)).cast(dtype)
    raise ValueError(f"its type is {dtype}")


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
            values = to_dtype(replacement.values, filled.dtype, () if plain else filled[:, j].tolist())
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
