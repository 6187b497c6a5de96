"""Fill missing cells of a frame, an array or a file.

The result has the type of the input, and all other cells keep their bits. narwhals says what a column holds; the new cells are
made once for all libraries and put in place by the library of the frame. Text files go through the csv module: read, replace
cells, write. All other cells keep their text, and the file keeps its delimiter, line ends, byte order mark and compression.
"""

from __future__ import annotations

import codecs
import csv
import datetime as dt
import io
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal, localcontext
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import quote
from ..errors import InputError, InputWarning
from .cells import Category, FloatArray, IntArray, python_value, stand_for_no_date
from .columns import category_finder
from .delimited import (
    DelimitedText,
    TextColumns,
    check_text,
    is_blank,
    read_text_columns,
    split_at_blanks,
    write_records,
)
from .inputs import list_to_array, to_narwhals
from .labels import InputTypeError, count, is_missing, listing
from .notation import Notation
from .read_file import (
    DEFAULT_NA,
    DELIMITERS,
    TableFile,
    compress,
    get_column,
    import_polars,
    open_table,
    read_parquet,
)

Fills: TypeAlias = Mapping[int, tuple[ArrayLike, Sequence[Category] | NDArray[Any]]]
"""For a column's position, rows and the values for their cells."""

NamedFills: TypeAlias = Mapping[str, tuple[ArrayLike, Sequence[Category] | NDArray[Any]]]
"""For a column name, rows and the values for their cells."""

ValueFormat: TypeAlias = Callable[[Category], str]

N_DIGITS = 6
"""Significant digits of filled numbers."""

_EPOCH = dt.datetime(1970, 1, 1)
_SECOND = 1_000_000  # microseconds
# One day less than Python's times, which leaves room for an offset.
FIRST_DAY = (dt.datetime.min - _EPOCH).days + 1
LAST_DAY = (dt.datetime.max - _EPOCH).days - 1


def fill_cells(X: Any, fills: Fills) -> Any:
    """Fill missing cells of a table.

    Columns keep their types: integers are rounded and clipped to what the type holds, dates to the nearest day, times to the
    nearest tick of their unit. A column without any type takes that of the values. A category type that lacks a label gets it
    after the others.

    Parameters
    ----------
    X : frame, 2-D array or list of lists
        The table, of any kind that `read_columns` reads. It is not changed.
    fills : mapping of int to (rows, values)
        For a column's position in `X`, the rows of missing cells and their values: numbers for a real column (days since
        1970-01-01 for times, days for durations), categories for a categorical one.

    Returns
    -------
    frame or array
        A table of the type of `X`, with its index, names and types. For a list of lists an array: of floats if all cells are
        numbers, of objects otherwise.

    Raises
    ------
    InputError
        If a column cannot hold a value.
    """
    frame = to_narwhals(X)
    if frame is None:
        return _fill_array(X, fills)
    native = frame.to_native()
    if frame.implementation.is_pandas_like():
        filled = native.copy()
        for j, cells in _fill_columns(fills, list(native.columns), lambda j: native.iloc[:, j], _fill_pandas).items():
            filled.isetitem(j, cells)
        return filled
    if frame.implementation.is_polars():
        columns = native.get_columns()
        # Methods of polars take the name of a series for an expression, and a name such as ^a.*$ for a pattern.
        new = _fill_columns(fills, native.columns, lambda j: columns[j].alias("column"), _fill_polars)
        return type(native)({column.name: new.get(j, column) for j, column in enumerate(columns)})
    if frame.implementation.is_pyarrow():
        new = _fill_columns(fills, native.column_names, native.column, _fill_arrow)
        schema = native.schema
        for j, column in new.items():
            schema = schema.set(j, schema.field(j).with_type(column.type))
        return type(native).from_arrays([new.get(j, column) for j, column in enumerate(native.columns)], schema=schema)
    raise InputTypeError(
        f"X is a frame of type {type(X).__name__}, whose cells cannot be filled: pass it as a frame of pandas, polars or "
        "pyarrow."
    )


def take_columns(X: Any, positions: Sequence[int]) -> Any:
    """Return the columns of a frame at some positions. Arrays are returned unchanged: they have no names to match."""
    frame = to_narwhals(X)
    if frame is None or list(positions) == list(range(len(frame.columns))):
        return X
    if frame.implementation.is_pandas_like():
        return X.iloc[:, list(positions)]
    return frame[:, list(positions)].to_native()


def _fill_columns(
    fills: Fills,
    names: Sequence[Any],
    column: Callable[[int], Any],
    fill: Callable[[Any, IntArray, list[Category]], Any],
) -> dict[int, Any]:
    """Fill the columns one by one; name the column that cannot hold a value."""
    filled: dict[int, Any] = {}
    for j, (rows, values) in _check_fills(fills, len(names)):
        try:
            filled[j] = fill(column(j), rows, values)
        except InputError:
            raise
        except ValueError as error:
            raise InputError(f"Column {quote(names[j])} cannot be filled: {error}.") from None
    return filled


def _check_fills(fills: Fills, n_columns: int) -> list[tuple[int, tuple[IntArray, list[Category]]]]:
    """Return the fills that have rows, with values as Python scalars."""
    checked = []
    for j, (positions, cells) in fills.items():
        if not 0 <= j < n_columns:
            raise InputError(f"fills names the column {j}, but the columns of X go from 0 to {n_columns - 1}.")
        rows: IntArray = np.asarray(positions, dtype=np.intp).reshape(-1)
        values = [value.item() if isinstance(value, np.generic) else value for value in cells]
        if len(rows) != len(values):
            raise InputError(f"fills has {count(len(values), 'value')} for {count(len(rows), 'row')} of column {j}.")
        if len(rows):
            checked.append((j, (rows, values)))
    return checked


def _fill_array(X: Any, fills: Fills) -> NDArray[Any]:
    if isinstance(X, list | tuple):
        filled = list_to_array(X)
        if all(map(_is_float, [*filled.flat, *(value for _, values in fills.values() for value in values)])):
            numbers = [np.nan if is_missing(cell) else float(cell) for cell in filled.flat]
            filled = np.array(numbers).reshape(filled.shape)
    elif isinstance(X, np.ma.MaskedArray):
        filled = X.copy()
        filled.soften_mask()
    else:
        filled = np.array(X)
    for j, (rows, values) in _check_fills(fills, filled.shape[1]):
        try:
            cells = _to_numpy(values, filled.dtype, filled[:, j])
        except ValueError as error:
            raise InputError(f"Column {j} of X is of type {filled.dtype} and cannot be filled: {error}.") from None
        if filled.dtype.kind == "U":  # as wide as the longest text so far
            filled = filled.astype(np.result_type(filled.dtype, np.array(cells).dtype))
        _set_cells(filled[:, j], rows, cells)
    return filled


def _is_float(cell: Any) -> bool:
    """Return whether a float holds a cell without loss."""
    if isinstance(cell, int | np.integer):
        return not isinstance(cell, bool) and abs(int(cell)) <= 2**53
    return is_missing(cell) or (isinstance(cell, float | np.floating) and not isinstance(cell, np.longdouble))


def _set_cells(cells: NDArray[Any], rows: IntArray, values: Sequence[Any]) -> None:
    if cells.dtype.kind in "biufMm":
        cells[rows] = values
        return
    # One by one: numpy would convert times, and a list of text has no type yet.
    for row, value in zip(rows, values, strict=True):
        cells[row] = value


# ------------------------------------------------------------------------------------------------- libraries


def _fill_pandas(series: Any, rows: IntArray, values: Sequence[Category]) -> Any:
    dtype = series.dtype
    kind = type(dtype).__name__  # pandas is not imported: its types are known by their names
    if kind == "SparseDtype":
        return _fill_pandas(series.astype(dtype.subtype), rows, values).astype(dtype)
    if kind == "DatetimeTZDtype":
        filled = _fill_pandas(series.dt.tz_convert(None), rows, values)
        return filled.dt.tz_localize("UTC").dt.tz_convert(dtype.tz)
    if isinstance(dtype, np.dtype):
        cells = series.to_numpy(copy=True)
        _set_cells(cells, rows, _to_numpy(values, dtype, cells))
        return type(series)(cells, index=series.index, name=series.name, dtype=dtype)
    cells = series.array.copy()
    if kind == "CategoricalDtype":
        positions, new = _find_labels(values, [python_value(label) for label in cells.categories.tolist()])
        codes = np.array(cells.codes, dtype=np.intp)
        codes[rows] = positions
        cells = type(cells).from_codes(codes, dtype=cells.add_categories(new).dtype if new else dtype)
    elif kind == "ArrowDtype":
        cells = type(cells)(_fill_arrow(cells.__arrow_array__(), rows, values))
    else:
        # A nullable type names the numpy type that it wraps; text wraps none.
        wrapped = getattr(dtype, "numpy_dtype", None)
        cells[rows] = _to_text(values) if wrapped is None else _to_numpy(values, wrapped, ())
    return type(series)(cells, index=series.index, name=series.name)


def _fill_polars(series: Any, rows: IntArray, values: Sequence[Category]) -> Any:
    polars = import_module("polars")
    dtype = series.dtype
    if dtype == polars.Object:
        cells = series.to_list()
        for row, value in zip(rows.tolist(), _to_objects(values, series.to_list()), strict=True):
            cells[row] = value
        return polars.Series(series.name, cells, dtype=dtype)
    if dtype == polars.Categorical:  # through text: two columns may have different codes
        return _fill_polars(series.cast(polars.String), rows, values).cast(dtype)
    if dtype == polars.Null:
        new = polars.Series(_to_one_type(values))
    elif dtype == polars.Enum:
        labels = dtype.categories.to_list()
        positions, further = _find_labels(values, labels)
        labels += _to_text(further)
        new = polars.Series([labels[position] for position in positions], dtype=polars.Enum(labels))
    elif dtype.is_decimal():
        new = polars.Series(_to_decimals(values, dtype.precision or 38, dtype.scale), dtype=dtype)
    else:
        physical = _to_physical(values, nw.from_native(series, series_only=True).dtype, dtype)
        new = polars.Series(physical, dtype=None if dtype.is_temporal() else dtype).cast(dtype)
    combined = polars.concat([series.cast(new.dtype), new.alias(series.name)])
    return combined.gather(_replace_positions(len(series), rows))


def _fill_arrow(column: Any, rows: IntArray, values: Sequence[Category]) -> Any:
    arrow = import_module("pyarrow")
    dtype = column.type
    if arrow.types.is_string_view(dtype):  # pyarrow cannot take cells of these, and older versions do not cast them
        texts = column.to_pylist()
        for row, text in zip(rows.tolist(), values, strict=True):
            texts[row] = text
        return arrow.chunked_array([arrow.array(texts, dtype)])
    positions = _replace_positions(len(column), rows)
    if arrow.types.is_dictionary(dtype):
        cells = arrow.chunked_array(column.unify_dictionaries().chunks, type=dtype).combine_chunks()
        codes_of_cells, new = _find_labels(values, [python_value(label) for label in cells.dictionary.to_pylist()])
        labels = arrow.concat_arrays([cells.dictionary, _to_arrow(arrow, new, dtype.value_type)])
        codes = arrow.concat_arrays([cells.indices, arrow.array(codes_of_cells, type=dtype.index_type)])
        codes = codes.take(arrow.array(positions))
        return arrow.chunked_array([arrow.DictionaryArray.from_arrays(codes, labels, ordered=dtype.ordered)])
    new_cells = arrow.array(_to_one_type(values)) if arrow.types.is_null(dtype) else _to_arrow(arrow, values, dtype)
    chunks = column.cast(new_cells.type).chunks
    return arrow.chunked_array([*chunks, new_cells], type=new_cells.type).take(positions)


def _to_arrow(arrow: Any, values: Sequence[Category], dtype: Any) -> Any:
    if arrow.types.is_decimal(dtype):
        return arrow.array(_to_decimals(values, dtype.precision, dtype.scale), type=dtype)
    if arrow.types.is_date64(dtype):
        return arrow.array(_to_days(values) * 86_400_000).cast(dtype)
    empty = nw.from_native(arrow.chunked_array([], type=dtype), series_only=True)
    physical = _to_physical(values, empty.dtype, dtype)
    return arrow.array(physical, type=dtype if arrow.types.is_integer(dtype) else None).cast(dtype)


def _replace_positions(n_rows: int, rows: IntArray) -> IntArray:
    """Return the position of each cell in a column to which the new cells were appended."""
    positions = np.arange(n_rows)
    positions[rows] = n_rows + np.arange(len(rows))
    return positions


def _find_labels(values: Sequence[Category], labels: Sequence[Category]) -> tuple[list[int], list[Category]]:
    """Return the position of each value among the labels, and the values to append to the labels."""
    find = category_finder(labels)
    new = list(dict.fromkeys(value for value in values if find(value) < 0))
    appended = {value: len(labels) + i for i, value in enumerate(new)}
    return [appended[value] if value in appended else find(value) for value in values], new


# ------------------------------------------------------------------------------------------------- conversions

_NANOSECONDS_PER_DAY = 86_400 * 10**9
_NANOSECONDS = {
    "W": 7 * _NANOSECONDS_PER_DAY,
    "D": _NANOSECONDS_PER_DAY,
    "h": 3600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
}


def _to_physical(values: Sequence[Category], dtype: nw.dtypes.DType, name: object) -> Any:
    """Convert values to what a frame stores for a type: times as integers, anything else as it is."""
    if dtype.is_float():
        return _to_floats(values, np.dtype(str(dtype).lower()))
    if dtype.is_integer():
        bits = int("".join(filter(str.isdigit, str(dtype))))
        return _to_integers(values, bits, dtype.is_signed_integer())
    if dtype == nw.Boolean:
        return _to_booleans(values)
    if dtype == nw.String:
        return _to_text(values)
    if dtype == nw.Date:
        return _to_days(values).astype(np.int32)
    if isinstance(dtype, nw.Datetime | nw.Duration):
        return _to_ticks(values, dtype.time_unit)
    raise ValueError(f"its type is {name}")


def _to_numpy(values: Sequence[Category], dtype: np.dtype[Any], column: Iterable[Any]) -> Any:
    """Convert values to cells of a numpy type; the column shows what a column of objects or text holds."""
    if dtype.kind == "f":
        return _to_floats(values, dtype)
    if dtype.kind in "iu":
        return np.array(_to_integers(values, 8 * dtype.itemsize, dtype.kind == "i"), dtype=dtype)
    if dtype.kind == "b":
        return np.array(_to_booleans(values), dtype=dtype)
    if dtype.kind in "Mm":
        unit, step = np.datetime_data(dtype)
        if unit in _NANOSECONDS:
            return _to_ticks(values, unit, step).view(dtype)
        # Months and years have no fixed length, and are rounded down.
        return _to_ticks(values, "us").view(f"{dtype.kind}8[us]").astype(dtype)
    cells = _to_objects(values, column.tolist() if isinstance(column, np.ndarray) else column)
    return cells if dtype.kind == "O" else _to_text(cells)


def _to_objects(values: Sequence[Category], column: Iterable[Any]) -> list[Any]:
    """Convert values to Python objects of the types that a column holds."""
    observed = [cell for cell in column if not is_missing(cell) and not (isinstance(cell, str) and cell == "")]
    kinds = set(map(type, observed))

    def all_are(kind: Any) -> bool:
        return all(issubclass(cls, kind) for cls in kinds)

    # A datetime is a date to isinstance, and True an int: the narrow classes come first.
    if not kinds:
        return list(values)
    if all_are(bool | np.bool_):
        return list(_to_booleans(values))
    if all_are(int | np.integer) and not any(issubclass(kind, bool) for kind in kinds):
        return list(_to_integers(values))
    if all_are(Decimal):
        return [_to_decimal(value) for value in values]
    if all_are(np.datetime64 | np.timedelta64):
        return list(_to_numpy(values, observed[0].dtype, ()))
    if all_are(dt.timedelta):
        return [_to_class(observed[0], dt.timedelta(days=day)) for day in _count_days(values).tolist()]
    if all_are(dt.date):
        return _to_dates(values, [cell for cell in observed if isinstance(cell, dt.datetime)])
    if all_are(str) and not all(isinstance(value, str) for value in values):
        numbers = [text.strip() for text in observed if text.strip().lower() != "nan"]
        is_integer = all(text.lstrip("+-").isdecimal() for text in numbers)
        return _to_text(_to_integers(values) if is_integer else values)
    return list(values)


def _to_dates(values: Sequence[Category], column: Sequence[dt.datetime]) -> list[Any]:
    """Convert values to dates, or to times with the class and the zone of others."""
    days = np.clip(_count_days(values), FIRST_DAY, LAST_DAY)
    if not column:
        return [_EPOCH.date() + dt.timedelta(days=day) for day in np.rint(days).tolist()]
    zone = column[0].tzinfo
    times = [_EPOCH + dt.timedelta(days=day) for day in days.tolist()]
    if zone is not None:
        times = [time.replace(tzinfo=dt.UTC).astimezone(zone) for time in times]
    return [_to_class(column[0], time) for time in times]


def _to_class(like: Any, value: Any) -> Any:
    # pandas makes its Timestamp and Timedelta from Python's classes.
    return value if type(like) is type(value) else type(like)(value)


def _to_floats(values: Sequence[Category], dtype: np.dtype[Any]) -> NDArray[Any]:
    limit = float(np.finfo(dtype).max)
    return np.clip(np.array([float(value) for value in values], dtype=np.float64), -limit, limit).astype(dtype)


def _to_integers(values: Sequence[Category], bits: int = 0, signed: bool = True) -> list[int]:
    """Round to integers, and clip them to a number of bits; 0 for no limit."""
    integers = [value if isinstance(value, int) else round(float(value)) for value in values]
    if not bits:
        return integers
    lowest = -(1 << (bits - 1)) if signed else 0
    highest = (1 << (bits - signed)) - 1
    return [min(max(value, lowest), highest) for value in integers]


def _to_booleans(values: Sequence[Category]) -> list[bool]:
    return [value.lower() == "true" if isinstance(value, str) else value >= 0.5 for value in values]


def _to_decimals(values: Sequence[Category], precision: int, scale: int) -> list[Decimal]:
    """Convert to decimals with `scale` digits after the point and at most `precision` in all."""
    with localcontext(prec=400):  # more digits than a float has before its point
        unit = Decimal(1).scaleb(-scale)
        limit = (10**precision - 1) * unit
        return [min(max(_to_decimal(value).quantize(unit), -limit), limit) for value in values]


def _to_decimal(value: Category) -> Decimal:
    return Decimal(value) if isinstance(value, int) else Decimal(repr(float(value)))


def _to_text(values: Sequence[Category]) -> list[str]:
    return [str(value) for value in values]


def _to_one_type(values: Sequence[Category]) -> Sequence[Category]:
    """Bring values to one type, for a column without a type."""
    return _to_text(values) if any(isinstance(value, str) for value in values) else values


def _to_days(values: Sequence[Category]) -> NDArray[np.int64]:
    """Round to whole days since 1970-01-01."""
    limits = np.iinfo(np.int32)
    return np.clip(np.rint(_count_days(values)), limits.min, limits.max).astype(np.int64)


def _to_ticks(values: Sequence[Category], unit: str, step: int = 1) -> NDArray[np.int64]:
    """Round days to steps of a unit since 1970-01-01."""
    ticks = np.rint(_count_days(values) * (_NANOSECONDS_PER_DAY / (_NANOSECONDS[unit] * step)))
    # The lowest integer is NaT, and the largest float below 2**63 is 1024 less than it.
    return np.clip(ticks, -(2.0**63) + 1024, 2.0**63 - 1024).astype(np.int64)


def _count_days(values: Sequence[Category]) -> FloatArray:
    """Return days since 1970-01-01, from numbers of days or from the ISO text of times."""
    epoch, day = np.datetime64(0, "us"), np.timedelta64(1, "D")
    return np.array(
        [(np.datetime64(value, "us") - epoch) / day if isinstance(value, str) else float(value) for value in values],
        dtype=np.float64,
    )


def fill_file(path: str | Path | TableFile, fills: NamedFills, *, na_values: Sequence[str] = DEFAULT_NA) -> bytes:
    """Fill missing cells of a file.

    Values are written in the format of their column: integers if all cells are integers, other numbers with 6 significant
    digits; amounts with the symbols, the groups of digits and the number of decimals of the column; dates and times in
    ISO 8601 with the separator, precision and offset of the column; booleans in its spelling. Fields of a text file are
    quoted only where necessary, and blank lines are left out.

    Parameters
    ----------
    path : str, Path or TableFile
        A file that `read_file` reads.
    fills : mapping of str to (rows, values)
        For a column name, the rows of missing cells and their values: numbers (days since 1970-01-01 for times) or
        categories.
    na_values : sequence of str, optional
        Texts that mark a missing cell.

    Returns
    -------
    bytes
        The content of a file of the same type, compressed if the file is. Same arguments give the same bytes.

    Raises
    ------
    InputError
        If the file cannot be read, or a cell to fill is not missing.
    MissingDependencyError
        If polars is not installed.
    """
    file = open_table(path)
    polars = import_polars()
    if not file.is_text:
        return _fill_parquet(polars, read_parquet(polars, file), fills, file.name)
    data = file.read()
    with warnings.catch_warnings():
        # The caller has read the file before, and has seen the warnings.
        warnings.simplefilter("ignore", InputWarning)
        text = check_text(data, file.name, DELIMITERS[file.suffix])
    columns = read_text_columns(polars, text, file.name, na_values, fills)
    filled = _fill_text(polars, data, text, columns, fills, file.name)
    return compress(filled) if file.compressed else filled


def _fill_parquet(polars: Any, frame: Any, fills: NamedFills, source: str) -> bytes:
    for name, (rows, _) in fills.items():
        _check_missing(polars, frame, name, rows, source)
    buffer = io.BytesIO()
    fill_cells(frame, {frame.columns.index(name): fill for name, fill in fills.items()}).write_parquet(buffer)
    return buffer.getvalue()


def _fill_text(
    polars: Any, data: bytes, text: DelimitedText, columns: TextColumns, fills: NamedFills, source: str
) -> bytes:
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    content = data.removeprefix(mark).decode()
    records = _split_records(content, text)
    for name, (rows, values) in fills.items():
        cells = _check_missing(polars, columns.frame, name, rows, source)
        to_text = find_format(polars, name, columns)
        j = text.header.index(name)
        for row, value in zip(cells.tolist(), values, strict=True):
            records[row + 1][j] = to_text(value.item() if isinstance(value, np.generic) else value)
    delimiter = " " if text.whitespace else text.delimiter
    return mark + write_records(records, delimiter, _find_line_end(content)).encode()


def _split_records(content: str, text: DelimitedText) -> list[list[str]]:
    """Return the header and the rows as they are in the file, without blank lines."""
    lines = io.StringIO(content, newline="")
    if text.whitespace:
        return list(split_at_blanks(lines))
    return [record for record in csv.reader(lines, delimiter=text.delimiter) if not is_blank(record)]


def _find_line_end(content: str) -> str:
    """Return the line end of the first line."""
    first = io.StringIO(content, newline="").readline()
    return next((end for end in ("\r\n", "\n", "\r") if first.endswith(end)), "\n")


def _check_missing(polars: Any, frame: Any, name: str, rows: ArrayLike, source: str) -> IntArray:
    """Return the rows; refuse to overwrite a cell that is not missing."""
    if name not in frame.columns:
        raise InputError(
            f"{source} has no column {quote(name)} to fill: its columns are {listing(frame.columns, limit=10)}."
        )
    column = get_column(frame, name)
    missing = column.is_null()
    if column.dtype.is_float():
        missing |= column.is_nan().fill_null(True)
    elif column.dtype in (polars.String, polars.Categorical, polars.Enum):
        missing |= (column.cast(polars.String) == "").fill_null(True)
    elif column.dtype in (polars.Date, polars.Datetime):
        days = column.cast(polars.Datetime("us")).dt.epoch("us").fill_null(0).to_numpy() / 86_400_000_000
        missing |= polars.Series(stand_for_no_date(days))
    cells: IntArray = np.asarray(rows, dtype=np.intp).reshape(-1)
    outside = (cells < 0) | (cells >= len(column))
    bad = cells[outside | ~missing.to_numpy()[np.where(outside, 0, cells)]]
    if len(bad):
        raise InputError(
            f"Column {quote(name)} of {source} has no missing cell in row {bad[0]} (counted from 0), so nothing is filled: "
            "the file may have changed since it was read, or other na_values were used then."
        )
    return cells


# ------------------------------------------------------------------------------------------------- formats


def find_format(polars: Any, name: str, columns: TextColumns) -> ValueFormat:
    """Find the format of the values in a column of a text file.

    Parameters
    ----------
    polars : module
    name : str
        The column name.
    columns : TextColumns
        The columns of the file.

    Returns
    -------
    callable
        Returns the text of a value. Text stays as it is.
    """
    dtype = columns.frame[name].dtype
    observed = columns.texts[name].drop_nulls().to_list()
    if dtype == polars.Boolean:
        to_text = _boolean_format(observed)
    elif dtype == polars.Date:
        to_text = _format_date
    elif dtype == polars.Datetime:
        to_text = _time_format(observed)
    else:
        to_text = _number_format(observed, columns.notations.get(name), dtype == polars.Int64)
        if not observed and any(notation.decimal == "," for notation in columns.notations.values()):
            # A column without numbers follows the others: next to decimal commas, 1.234 is read as 1234.
            to_text = _number_format(observed, Notation(decimal=","), False)
    return lambda value: value if isinstance(value, str) else to_text(value)


def _format_integer(value: Category) -> str:
    return str(value if isinstance(value, int) else round(float(value)))


def _format_number(value: Category) -> str:
    # Adding 0 removes the sign of a zero.
    return repr(float(f"{value:.{N_DIGITS}g}") + 0.0) if isinstance(value, float) else str(value)


def _number_format(observed: Sequence[str], notation: Notation | None, is_integer: bool) -> ValueFormat:
    """Return the format of numbers: in the notation of a column, as integers if all are, with the decimals of amounts."""
    if notation is None:
        is_integer = is_integer or (bool(observed) and all(text.lstrip("+-").isdecimal() for text in observed))
        return _format_integer if is_integer else _format_number
    if notation.words in ("", "decimal commas"):
        return lambda value: notation.write(_format_number(value))
    n_decimals = max((_count_decimals(text, notation) for text in observed), default=0)
    return lambda value: notation.write(f"{float(value):.{n_decimals}f}")


def _count_decimals(text: str, notation: Notation) -> int:
    """Return the number of digits after the decimal point or comma."""
    decimals = text.partition(notation.decimal)[2] if notation.decimal else ""
    return next((k for k, character in enumerate(decimals) if not character.isdigit()), len(decimals))


def _boolean_format(observed: Sequence[str]) -> ValueFormat:
    spelling = {text.lower(): text for text in reversed(observed)}

    def to_text(value: Category) -> str:
        text = "true" if float(value) >= 0.5 else "false"
        other = observed[0]
        return spelling.get(text) or (text.upper() if other.isupper() else text.title() if other.istitle() else text)

    return to_text


def _format_date(value: Category) -> str:
    return (_EPOCH + dt.timedelta(days=round(_clip_days(value)))).date().isoformat()


def _time_format(observed: Sequence[str]) -> ValueFormat:
    """Return the format of times: the offset of the first one, the finest precision of all."""
    first = observed[0]
    clocks = [text[11:].rstrip("Z").split("+")[0].split("-")[0] for text in observed]
    zone = first[11 + len(clocks[0]) :]
    offset = dt.datetime.fromisoformat(first).utcoffset() or dt.timedelta(0)
    n_decimals = max(len(clock.partition(".")[2]) for clock in clocks)
    has_seconds = any(clock.count(":") == 2 for clock in clocks)
    step = _SECOND // 10**n_decimals if has_seconds else 60 * _SECOND

    def to_text(value: Category) -> str:
        ticks = round(_clip_days(value) * 86_400 * _SECOND / step)
        time = _EPOCH + dt.timedelta(microseconds=ticks * step) + offset
        clock = f"{time:%H:%M:%S}" if has_seconds else f"{time:%H:%M}"
        decimals = f".{time.microsecond:06}"[: n_decimals + 1] if n_decimals else ""
        return f"{time.date().isoformat()}{first[10]}{clock}{decimals}{zone}"

    return to_text


def _clip_days(value: Category) -> float:
    return min(max(float(value), FIRST_DAY), LAST_DAY)
