"""Tables of any kind as named columns of cells: frames of any library, arrays, lists of lists.

This is the one place that converts them. `open_source` looks at the table; `Source.read` reads one column at a time.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Any, Literal, NamedTuple, Self

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._validation import quote, shorten
from ..errors import InputError, MissingDependencyError
from .cells import (
    BooleanCells,
    Cells,
    FloatArray,
    LabelledCells,
    NumberCells,
    SetCells,
    TextCells,
    TimeCells,
    is_blank,
    python_value,
)
from .labels import ColumnContext, InputTypeError, column_names, count, distinct_names, index_names, is_missing, listing
from .limits import check_table_size
from .symbols import datatype_of_states, guess_datatype

_TICKS_PER_DAY = {"ms": 86_400_000, "us": 86_400_000_000}
_CONVERT = "convert it to numbers, text or dates, or drop it"

TAXON_COLUMN = "taxon"
"""The column of a polars frame of characters with the names of the taxa."""


@dataclass(frozen=True)
class Source:
    """A table, read one column at a time.

    Parameters
    ----------
    names : tuple of str
        The column names.
    n_rows : int
        Number of rows.
    row_names : tuple of str or None
        The row names, if the table has them.
    read : callable
        Returns the cells of a column, given its position and its context for messages.
    positions : tuple of int
        The position of each column of `names` in the table.
    labels : tuple or None
        The column labels of a frame, which need not be text; None for an array.
    """

    names: tuple[str, ...]
    n_rows: int
    row_names: tuple[str, ...] | None
    read: Callable[[int, ColumnContext], Cells]
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
        If `X` is not a table with at least one row and one column; InputTypeError, which is also a TypeError, if it is an
        object of the wrong type.
    """
    X = compute_dask(X)
    _check_supported(X)
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


def compute_dask(X: Any) -> Any:
    """Return a Dask array of numbers as one matrix, computed a block of rows at a time; anything else unchanged.

    Examples
    --------
    >>> compute_dask([[1, 2]])
    [[1, 2]]
    """
    if not (hasattr(X, "__dask_graph__") and hasattr(X, "numblocks")):  # without importing Dask
        return X
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        return np.asarray(X)
    check_table_size(*X.shape)
    blocks = (np.asarray(X.blocks[k].compute(), dtype=np.float64) for k in range(X.numblocks[0]))
    if np.isnan(X.shape).any():  # Dask does not know the number of rows before it computes them
        return np.concatenate(list(blocks))
    matrix, first = np.empty(X.shape), 0
    for block in blocks:
        matrix[first : first + len(block)] = block
        first += len(block)
    return matrix


def to_narwhals(X: Any) -> nw.DataFrame[Any] | None:
    """Return a frame of any library as a frame of narwhals; None for anything else."""
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except TypeError as error:  # column labels that cannot be hashed, such as a signalling NaN
        raise InputTypeError(
            f"The column names of the {type(X).__name__} cannot be read ({shorten(str(error))}): make them text."
        ) from None
    return frame if isinstance(frame, nw.DataFrame) else None


class FrameKind(NamedTuple):
    """The library of a frame, and its index if it has one."""

    library: Any = "pandas"  # for tables that are not frames
    index: Any = None

    @classmethod
    def from_table(cls, X: Any) -> Self:
        """Return the kind of a table."""
        frame = to_narwhals(X)
        return cls() if frame is None else cls(frame.implementation.value, nw.maybe_get_index(frame))

    def frame(self, columns: Mapping[str, NDArray[Any] | list[Any]]) -> Any:
        """Return columns, with one entry per row of the table, as a frame of its kind with its index.

        Raises
        ------
        MissingDependencyError
            If the table was no frame and pandas is not installed.
        """
        # Integers have 64 bits on every machine.
        columns = {
            name: cells.astype(np.int64) if isinstance(cells, np.ndarray) and cells.dtype.kind == "i" else cells
            for name, cells in columns.items()
        }
        try:
            frame = nw.from_dict(columns, backend=self.library).to_native()
        except ImportError as error:
            raise MissingDependencyError(
                f"Frames need {self.library}, which is not installed: pip install pandas."
            ) from error
        return frame if self.index is None else frame.set_axis(self.index)

    def frame_of_lines(self, columns: Mapping[str, list[Any]]) -> Any:
        """Return columns of Python values as a frame of its kind, without its index.

        Columns of several types stay as they are in pandas; other libraries have them as text.
        """
        cells: dict[str, Any] = {}
        for name, values in columns.items():
            kinds = {type(value) for value in values if value is not None}
            is_mixed = len(kinds) > 1 and not kinds <= {int, float} and self.library != "pandas"
            cells[name] = [None if value is None else str(value) for value in values] if is_mixed else values
            if kinds == {int, float}:
                cells[name] = [None if value is None else float(value) for value in values]
        return self._replace(index=None).frame(cells)


def is_table(X: Any) -> bool:
    """Return whether an object is a frame or has two dimensions."""
    if isinstance(X, list | tuple):
        return len(X) > 0 and isinstance(X[0], list | tuple | np.ndarray)
    return getattr(X, "ndim", 0) == 2 or to_narwhals(X) is not None


def _check_supported(X: Any) -> None:
    # Sparse matrices are known by their methods, without importing scipy.
    if hasattr(X, "tocsr") or hasattr(X, "tocoo"):
        raise InputTypeError(
            "Sparse data was passed for X, but dense data is required. Use `.toarray()` to convert to a "
            "dense numpy array."
        )
    if type(X).__name__ == "LazyFrame":
        raise InputTypeError("X is a lazy frame, and its rows have not been read: pass X.collect().")
    if isinstance(X, dict | str | bytes) or X is None:
        raise InputTypeError(
            f"X must be a frame, a 2-D array or a list of lists, not {type(X).__name__}: pass a dict of "
            "columns as a frame, a file through coaltree.table.read_file.read_file."
        )


def _check_shape(shape: tuple[int, ...]) -> None:
    # The words of scikit-learn, which its users and its checks know.
    if shape[0] == 0:
        raise InputError(f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required.")
    if shape[1] == 0:
        raise InputError(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    check_table_size(*shape)


def _one_dimensional_error(values: object) -> InputError:
    return InputError(
        f"Expected 2D array, got 1D array instead:\n{quote(values)}.\nReshape your data either using "
        "array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it contains a "
        "single sample."
    )


# ------------------------------------------------------------------------------------------------- frames


def _open_frame(X: Any) -> Source | None:
    """Open a frame that narwhals supports; None for anything else."""
    if isinstance(nw.from_native(X, series_only=True, pass_through=True), nw.Series):
        raise _one_dimensional_error(X)
    # The `columns` of pyarrow are the data. Only pyarrow is asked for `column_names`: pandas has columns as attributes.
    is_arrow = type(X).__module__.startswith("pyarrow")
    labels = getattr(X, "column_names" if is_arrow else "columns", None)
    if labels is None or callable(labels):
        return None
    # Before narwhals refuses repeated names, and scikit-learn mixed ones, with their own messages.
    names = column_names(labels)
    _check_labels(labels)
    frame = to_narwhals(X)
    if frame is None:
        return None
    _check_shape(frame.shape)
    # Methods of polars take the name of a series for an expression, and a name such as ^a.*$ for a pattern.
    series = [column.alias("column") for column in frame.iter_columns()]
    row_names = index_names(getattr(frame.to_native(), "index", None), frame.shape[0])
    if names[0] == TAXON_COLUMN and type(X).__module__.startswith("polars") and find_datatypes(X):
        row_names = distinct_names(series[0].to_list())
        names, labels, series = names[1:], labels[1:], series[1:]
    return Source(
        names,
        frame.shape[0],
        row_names,
        lambda j, context: _series_cells(series[j], context),
        tuple(range(len(names))),
        tuple(labels),
    )


def find_datatypes(X: Any) -> Mapping[str, str]:
    """Return the datatypes of characters of a frame of `coaltree.read_characters`; none for other tables.

    Frames of pandas have them as attributes. Those of polars have none, but begin with the taxa, and the types of their columns
    have all states of the datatype. Columns with sets of states are like the others, or what their symbols suggest.
    """
    attributes = getattr(X, "attrs", None)
    known = attributes.get("datatypes") if isinstance(attributes, dict) else None
    if isinstance(known, Mapping):
        return known
    is_frame = type(X).__module__.startswith("polars") and hasattr(X, "get_column")  # no lazy one, refused later
    if not is_frame or [*X.columns][:1] != [TAXON_COLUMN]:
        return {}
    schema = nw.from_native(X).schema
    found = {
        name: datatype
        for name, dtype in schema.items()
        if isinstance(dtype, nw.Enum) and (datatype := datatype_of_states(dtype.categories))
    }
    with_sets = {name: X.get_column(name).to_list() for name, dtype in schema.items() if dtype == nw.Object}
    if not found and not any(isinstance(cell, frozenset) for cells in with_sets.values() for cell in cells):
        return {}
    symbols = [chain.from_iterable(filter(None, cells)) for cells in with_sets.values()]
    datatype = next(iter(found.values())) if len({*found.values()}) == 1 else guess_datatype(symbols)
    return found | dict.fromkeys(with_sets, datatype)


def _check_labels(labels: Sequence[object]) -> None:
    other = [label for label in labels if not isinstance(label, str)]
    if other and len(other) < len(labels):
        raise InputTypeError(
            f"Column names must be all text or all of another type, but {listing(other)} "
            f"{'is' if len(other) == 1 else 'are'} not text: Feature names are only supported if all input features have "
            "string names. Convert them, for example X.columns = X.columns.astype(str)."
        )


def _series_cells(series: nw.Series[Any], context: ColumnContext) -> Cells:
    dtype = series.dtype
    native = series.to_native()
    # narwhals guesses the type of pandas' object columns from their cells, and guesses text if none is observed.
    if dtype == nw.Object or str(getattr(native, "dtype", "")) == "object":
        return read_objects(series.to_list(), context, declared_text=True)
    if dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128):
        return NumberCells(_read_integers(series))
    if dtype.is_numeric():
        return NumberCells(series.cast(nw.Float64).to_numpy())
    if dtype == nw.Boolean:
        return BooleanCells(series.cast(nw.Float64).to_numpy())
    if dtype == nw.String:
        return TextCells(series.to_list(), declared_text=True)
    if dtype in (nw.Categorical, nw.Enum):
        return _category_cells(series, native)
    if dtype in (nw.Datetime, nw.Date, nw.Duration):
        # Milliseconds of coarse types, which reach further than microseconds.
        unit: Literal["ms", "us"] = "us" if getattr(dtype, "time_unit", "ms") in ("us", "ns") else "ms"
        if dtype == nw.Duration:
            ticks = series.dt.total_microseconds() if unit == "us" else series.dt.total_milliseconds()
            return NumberCells(_read_integers(ticks) / _TICKS_PER_DAY[unit])
        return TimeCells(_read_integers(series.dt.timestamp(unit)) / _TICKS_PER_DAY[unit])
    return _unknown_cells(series, native, context)


def _read_integers(series: nw.Series[Any]) -> NDArray[Any]:
    """Return integers, or floats with NaN where some are missing. pyarrow refuses to cast those above 2**53 to floats."""
    missing = series.is_null().to_numpy()
    if not missing.any():
        return series.to_numpy()
    values: NDArray[Any] = series.fill_null(0).to_numpy().astype(np.float64)
    values[missing] = math.nan
    return values


def _category_cells(series: nw.Series[Any], native: Any) -> Cells:
    accessor = getattr(native, "cat", None)
    codes = getattr(accessor, "codes", None)
    if codes is not None:  # pandas, where labels may be of any type
        labels = tuple(python_value(label) for label in accessor.categories.tolist())  # type: ignore[union-attr]
        return LabelledCells(codes.to_numpy().astype(np.intp), labels)
    order = getattr(series.dtype, "categories", None) if series.dtype == nw.Enum else None
    values = series.cast(nw.String).to_list()
    # With an order the labels count as declared, so that numbers among them are fine.
    return TextCells(
        values, declared_text=True, order=tuple(order or sorted({v for v in values if isinstance(v, str)}))
    )


def _unknown_cells(series: nw.Series[Any], native: Any, context: ColumnContext) -> Cells:
    dtype = native.type if hasattr(native, "type") else native.dtype
    if series.dtype == nw.Unknown:
        values = series.to_numpy()
        if values.ndim == 1 and values.dtype.kind in "iuf":  # pandas' sparse columns, polars' null columns
            return NumberCells(values)
        if values.dtype.kind == "c":
            raise _complex_error(f"column {quote(context.column)} is of type {dtype}")
        cells = series.to_list()
        if all(is_missing(value) for value in cells):
            return NumberCells(np.full(len(series), math.nan))
        if all(is_missing(value) or isinstance(value, dt.date) for value in cells):  # date64 of pyarrow
            return read_objects(cells, context, declared_text=True)
    raise InputError(
        f"Column {quote(context.column)} is of type {dtype}, which cannot be read as a column: {_CONVERT}."
    )


def _complex_error(subject: str) -> InputError:
    return InputError(
        f"Complex data not supported: {subject}; split it into real and imaginary part, or drop the imaginary part."
    )


# ------------------------------------------------------------------------------------------------- arrays


def array_names(n_columns: int) -> tuple[str, ...]:
    """Return the names that the columns of an array get."""
    return tuple(f"x{j}" for j in range(n_columns))


def _open_array(X: Any) -> Source:
    values = list_to_array(X) if isinstance(X, list | tuple) else to_array(X)
    if values.ndim == 0:
        raise InputError(
            f"Expected 2D array, got scalar array instead:\narray={values}.\nReshape your data either using "
            "array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it contains a "
            "single sample."
        )
    if values.ndim == 1 and values.dtype.names is None:
        raise _one_dimensional_error(values)
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
        raise InputError(f"X is an array of type {values.dtype}, which cannot be read as columns: {_CONVERT}.")
    return Source(
        array_names(values.shape[1]),
        values.shape[0],
        None,
        lambda j, context: _array_cells(values[:, j], context),
        tuple(range(values.shape[1])),
    )


def _array_cells(values: NDArray[Any], context: ColumnContext) -> Cells:
    kind = values.dtype.kind
    if kind in "iuf":
        return NumberCells(values)
    if kind == "b":
        return BooleanCells(values.astype(np.float64))
    if kind == "M":
        return TimeCells(numpy_to_days(values))
    if kind == "m":
        return NumberCells(numpy_to_days(values))
    # Text in an array may be numbers that numpy converted because they stood next to text.
    return read_objects(values.tolist(), context, declared_text=False)


def to_array(X: Any) -> NDArray[Any]:
    """Return an array of anything that is one or can be converted; masked cells are missing."""
    if isinstance(X, np.ma.MaskedArray):
        # A masked cell is missing; asarray would return the value under the mask.
        if X.dtype.kind in "iuf":
            return np.where(np.ma.getmaskarray(X), np.nan, X.data)
        cells = X.data.astype(object)
        cells[np.ma.getmaskarray(X)] = None
        return cells
    if not hasattr(X, "__array__") and not hasattr(X, "__array_interface__"):
        if np.isscalar(X):
            return np.asarray(X)
        raise InputTypeError(f"X must be a frame, a 2-D array or a list of lists, not {type(X).__name__}.")
    try:
        return np.asarray(X)
    except Exception as error:  # an object of another library, such as an xarray Dataset
        hint = ", for example X.to_dataframe()" if hasattr(X, "to_dataframe") else ""
        raise InputTypeError(
            f"X is a {type(X).__name__}, which cannot be converted to an array ({quote(str(error))}): pass a frame or a 2-D "
            f"array{hint}."
        ) from None


def list_to_array(rows: Sequence[Any]) -> NDArray[Any]:
    """Return an object array, in which each column keeps the types of its cells."""
    is_row = [isinstance(row, list | tuple) or getattr(row, "ndim", 0) > 0 for row in rows]
    if not any(is_row):
        raise _one_dimensional_error(list(rows))
    if not all(is_row):
        i = is_row.index(False)
        raise InputError(f"X is a list of rows, but its entry {i} is {quote(rows[i])} and not a row.")
    n_columns = len(rows[0])
    for i, row in enumerate(rows):
        if len(row) != n_columns:
            raise InputError(
                f"All rows of X must have the same length, but row 0 has {count(n_columns, 'cell')} and row {i} "
                f"(counted from 0) has {len(row)}: fill unknown cells with None."
            )
    if n_columns and isinstance(rows[0][0], list | tuple | np.ndarray):
        raise InputError("Found array with dim 3 while dim <= 2 is required: the cells of X are lists.")
    values = np.empty((len(rows), n_columns), dtype=object)
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            values[i, j] = cell
    return values


# ------------------------------------------------------------------------------------------------- objects

_EPOCH = dt.datetime(1970, 1, 1)
_DAY = dt.timedelta(days=1)
_IN_SETS = frozenset({"text", "number", "boolean"})
_PLAIN_NUMBERS = frozenset({int, float, type(None), np.float64, np.float32, np.int64, np.int32})
_NOUNS = {
    "number": "numbers",
    "boolean": "booleans",
    "text": "text",
    "time": "dates",
    "duration": "durations",
    "set": "sets of categories",
}


def read_objects(values: Sequence[Any], context: ColumnContext, *, declared_text: bool) -> Cells:
    """Decide from the types of its cells how to read a column.

    Parameters
    ----------
    values : sequence
        The cells.
    context : ColumnContext
        The column, for messages.
    declared_text : bool
        Whether digits in a column of text are labels (frames) or numbers (arrays).

    Returns
    -------
    Cells

    Raises
    ------
    InputError
        If the column mixes kinds that do not go together; InputTypeError if a cell is neither a number, text, a boolean, a
        set of these, a date nor missing.
    """
    kinds = {kind: _classify_type(kind) for kind in set(map(type, values))}
    _check_kinds(values, kinds, context)
    present = set(kinds.values()) - {"missing"}
    if len(present) > 1:
        # NaN is a float and numpy's NaT a date, but both are missing in a column of text.
        present = {kind for kind in present if _first_row(values, kinds, kind) < len(values)}
    if not present:
        return NumberCells(np.full(len(values), math.nan))
    if present == {"boolean"}:
        return BooleanCells(np.array([math.nan if is_missing(v) else float(v) for v in values]))
    if present <= {"number", "boolean"}:
        return NumberCells(_to_numbers(values, set(kinds), context))
    if present <= {"text", "number", "boolean", "set"} and "set" in present:
        _check_sets(values, context)
        return SetCells(values)
    if present <= {"text", "number", "boolean"}:
        return TextCells(values, declared_text=declared_text and present == {"text"})
    if present == {"time"}:
        return TimeCells(np.array([_to_days(v) for v in values]))
    if present == {"duration"}:
        return NumberCells(np.array([_duration_to_days(v) for v in values]))
    first, second = sorted(present, key=lambda kind: _first_row(values, kinds, kind))[:2]
    i, j = _first_row(values, kinds, first), _first_row(values, kinds, second)
    raise InputError(
        f"Column {quote(context.column)} mixes {_NOUNS[first]} ({quote(str(values[i]))} in {context.row(i)}) and "
        f"{_NOUNS[second]} ({quote(str(values[j]))} in {context.row(j)}): convert it to one type or drop it."
    )


def _classify_type(kind: type) -> str:
    """Return the kind of cells of a Python type."""
    # NaT is a datetime to isinstance, timedelta64 an integer, True an int: the narrow classes come first.
    if kind is type(None) or kind.__name__ in ("NAType", "NaTType"):
        return "missing"
    if issubclass(kind, bool | np.bool_):
        return "boolean"
    if issubclass(kind, dt.timedelta | np.timedelta64):
        return "duration"
    if issubclass(kind, dt.date | np.datetime64):
        return "time"
    if issubclass(kind, int | float | np.integer | np.floating | Decimal | Fraction):
        return "number"
    if issubclass(kind, str):
        return "text"
    if issubclass(kind, AbstractSet):
        return "set"
    return "complex" if issubclass(kind, complex | np.complexfloating) else "other"


def _check_kinds(values: Sequence[Any], kinds: dict[type, str], context: ColumnContext) -> None:
    if "complex" in kinds.values():
        row = next(i for i, v in enumerate(values) if kinds[type(v)] == "complex")
        raise InputError(
            f"Complex data not supported: column {quote(context.column)} holds {quote(values[row])} in {context.row(row)}; "
            "split it into real and imaginary part or drop it."
        )
    if "other" in kinds.values():
        row = next(i for i, v in enumerate(values) if kinds[type(v)] == "other")
        # "argument must be ..." is the wording of float(), which scikit-learn's users and checks know.
        raise InputTypeError(
            f"Column {quote(context.column)} holds {quote(values[row])} in {context.row(row)}: argument must be a "
            f"string or a real number, not {type(values[row]).__name__!r}; convert the column or drop it."
        )


def _check_sets(values: Sequence[Any], context: ColumnContext) -> None:
    """Refuse sets that are empty or hold anything but text, numbers and booleans."""
    for i, value in enumerate(values):
        if isinstance(value, AbstractSet):
            wrong = [member for member in value if is_blank(member) or _classify_type(type(member)) not in _IN_SETS]
            wrong += [member for member in value if isinstance(member, float | np.floating) and math.isinf(member)]
            if wrong or not value:
                problem = f"holds {quote(wrong[0])}" if wrong else "is empty"
                raise InputError(
                    f"Column {quote(context.column)}, {context.row(i)}: the set {quote(set(value))} {problem}. A set names the "
                    "categories of which a cell has one, as text, numbers or booleans; use None if nothing is known."
                )


def _first_row(values: Sequence[Any], kinds: dict[type, str], kind: str) -> int:
    """Return the row of the first observed cell of a kind; the number of rows if there is none."""
    rows = (i for i, v in enumerate(values) if kinds[type(v)] == kind and not is_missing(v))
    return next(rows, len(values))


def _to_numbers(values: Sequence[Any], types: set[type], context: ColumnContext) -> np.ndarray[Any, np.dtype[Any]]:
    """Convert numbers, as integers where all of them are and fit."""
    try:
        if types == {int}:
            return np.array(values, dtype=np.int64)
        if types <= _PLAIN_NUMBERS:
            return np.array(values, dtype=np.float64)
    except OverflowError:
        pass  # an integer too large for its type: below it becomes a float, or its row is named
    return np.array([_to_number(v, i, context) for i, v in enumerate(values)])


def _to_number(value: Any, row: int, context: ColumnContext) -> float:
    if is_missing(value):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        raise InputError(
            f"Column {quote(context.column)} holds a number in {context.row(row)} that is too large for a float "
            "(the limit is about 1.8e308): mark it as missing or rescale the column."
        ) from None


def _to_days(value: Any) -> float:
    """Days since 1970-01-01 of a date or datetime."""
    if is_missing(value):
        return math.nan
    if isinstance(value, np.datetime64):
        return float(numpy_to_days(np.array([value]))[0])
    if isinstance(value, dt.datetime):
        # Not by conversion to UTC, which the first and the last day of the calendar do not survive.
        offset = value.utcoffset() or dt.timedelta(0)
        return float((value.replace(tzinfo=None) - _EPOCH - offset) / _DAY)
    return float(value.toordinal() - _EPOCH.toordinal())


def _duration_to_days(value: Any) -> float:
    if is_missing(value):
        return math.nan
    if isinstance(value, np.timedelta64):
        return float(value / np.timedelta64(1, "D"))
    return float(value / _DAY)


def numpy_to_days(values: np.ndarray[Any, np.dtype[Any]]) -> FloatArray:
    """Days, since 1970-01-01 for points in time, of a datetime64 or timedelta64 array."""
    days = np.full(len(values), math.nan)
    observed = ~np.isnat(values)
    spans = values[observed]
    if values.dtype.kind == "M":
        spans = spans - np.datetime64(0, "D")
    days[observed] = spans / np.timedelta64(1, "D")
    return days
