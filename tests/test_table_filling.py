"""Missing cells of tables in memory are filled in."""

import copy
import datetime as dt
import struct
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coaltree.errors import InputError
from coaltree.table.columns import CategoricalColumn, RealColumn, read_columns
from coaltree.table.fill import fill_cells
from named import refused

NAN = np.nan
# NaNs that a computation cannot have made: whoever copies bits keeps them.
ODD_NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_BEEF))[0]
HALF_DAY = dt.datetime(1970, 1, 2, 12)
BERLIN = dt.timezone(dt.timedelta(hours=1))


def bits(values):
    return np.ascontiguousarray(values, dtype=np.float64).view(np.uint64).tolist()


# ---------------------------------------------------------------------------------------- pandas

# name: (column with a missing cell in its second row, value, what is in the cell then)
PANDAS = {
    "float64": (pd.Series([1.5, NAN]), 2.25, 2.25),
    "float32": (pd.Series([1.5, NAN], dtype="float32"), 0.1, np.float32(0.1)),
    "float16": (pd.Series([1.5, NAN], dtype="float16"), 1e9, np.float16(65504)),
    "whole floats": (pd.Series([1.0, NAN]), 2.25, 2.25),
    "Int64": (pd.Series([1, None], dtype="Int64"), 2.6, 3),
    "Int8": (pd.Series([1, None], dtype="Int8"), -1000.0, -128),
    "UInt8": (pd.Series([1, None], dtype="UInt8"), -3.0, 0),
    "UInt64": (pd.Series([1, None], dtype="UInt64"), 1e30, 2**64 - 1),
    "Int64 categories": (pd.Series([2**60, None], dtype="Int64"), 2**60 + 1, 2**60 + 1),
    "Int64 categories of text": (pd.Series([1, None], dtype="Int64"), "2", 2),
    "Float64": (pd.Series([1.5, None], dtype="Float64"), 2.25, 2.25),
    "Float32": (pd.Series([1.5, None], dtype="Float32"), 0.1, np.float32(0.1)),
    "boolean": (pd.Series([True, None], dtype="boolean"), False, False),
    "boolean as number": (pd.Series([True, None], dtype="boolean"), 0.7, True),
    "category": (pd.Series(pd.Categorical(["b", None], categories=["b", "c", "a"])), "a", "a"),
    "ordered category": (pd.Series(pd.Categorical(["b", None], categories=["b", "a"], ordered=True)), "a", "a"),
    "category of integers": (pd.Series(pd.Categorical([3, None], categories=[3, 1])), 1, 1),
    "category of floats": (pd.Series(pd.Categorical([0.5, None], categories=[0.5, 1.5])), 1.5, 1.5),
    "category of bools": (pd.Series(pd.Categorical([True, None], categories=[False, True])), False, False),
    "category of intervals": (pd.Series(pd.cut([0.5, NAN], [0, 1, 2])), "(1, 2]", pd.Interval(1, 2)),
    "category by its text": (pd.Series(pd.Categorical([3, None], categories=[3, 1])), "1", 1),
    "str": (pd.Series(["a", None], dtype="str"), "b", "b"),
    "string": (pd.Series(["a", None], dtype="string"), "b", "b"),
    "string python": (pd.Series(["a", None], dtype="string[python]"), "b", "b"),
    "empty text": (pd.Series(["a", ""], dtype="str"), "b", "b"),
    "text of a number": (pd.Series(["1", None], dtype="str"), 2, "2"),
    "object text": (pd.Series(["a", None], dtype=object), "b", "b"),
    "object integers": (pd.Series([1, None], dtype=object), 2.6, 3),
    "object floats": (pd.Series([1.0, pd.NA], dtype=object), 2.6, 2.6),
    "object bools": (pd.Series([True, None], dtype=object), False, False),
    "object decimals": (pd.Series([Decimal("1.5"), None], dtype=object), 2.25, Decimal("2.25")),
    "object dates": (pd.Series([dt.date(1970, 1, 1), None], dtype=object), 2.6, dt.date(1970, 1, 4)),
    "object datetimes": (pd.Series([HALF_DAY, None], dtype=object), 0.25, dt.datetime(1970, 1, 1, 6)),
    "object zone": (
        pd.Series([HALF_DAY.replace(tzinfo=BERLIN), None], dtype=object),
        0.25,
        dt.datetime(1970, 1, 1, 7, tzinfo=BERLIN),
    ),
    "object timestamps": (
        pd.Series([pd.Timestamp(HALF_DAY), pd.NaT], dtype=object),
        0.25,
        pd.Timestamp(6 * 3600, unit="s"),
    ),
    "object numpy": (pd.Series([np.datetime64("1970-01-01"), None], dtype=object), 3.0, np.datetime64("1970-01-04")),
    "object durations": (pd.Series([dt.timedelta(1), None], dtype=object), 0.25, dt.timedelta(hours=6)),
    "object mixture": (pd.Series(["a", None, 3], dtype=object), 3, 3),
    "object of nothing": (pd.Series([None, None], dtype=object), 2.5, 2.5),
    "datetime ns": (pd.Series([HALF_DAY, None], dtype="M8[ns]"), 0.25, pd.Timestamp(6 * 3600, unit="s")),
    "datetime us": (
        pd.Series([HALF_DAY, None], dtype="M8[us]"),
        1 / 86_400e6,
        pd.Timestamp("1970-01-01T00:00:00.000001"),
    ),
    "datetime s": (pd.Series([HALF_DAY, None], dtype="M8[s]"), 1.4 / 86_400, pd.Timestamp(1, unit="s")),
    "datetime zone": (
        pd.Series([HALF_DAY, None], dtype="M8[ms]").dt.tz_localize("Europe/Berlin"),
        0.25,
        pd.Timestamp("1970-01-01T07:00", tz="Europe/Berlin"),
    ),
    "datetime category": (
        pd.Series([HALF_DAY, None], dtype="M8[ns]"),
        "1970-01-01T06:00:00",
        pd.Timestamp(21_600, unit="s"),
    ),
    "timedelta": (pd.Series([dt.timedelta(1), None], dtype="m8[us]"), 0.25, pd.Timedelta(hours=6)),
    "sparse": (pd.Series(pd.arrays.SparseArray([1.5, NAN])), 2.25, 2.25),
    "arrow integers": (pd.Series([1, None], dtype="int8[pyarrow]"), 500.0, 127),
    "arrow text": (pd.Series(["a", None], dtype=pd.ArrowDtype(pa.string())), "b", "b"),
    "arrow times": (
        pd.Series([HALF_DAY, None], dtype=pd.ArrowDtype(pa.timestamp("s"))),
        0.25,
        pd.Timestamp(21_600, unit="s"),
    ),
    "arrow dictionary": (
        pd.Series(["b", None, "a"], dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))),
        "a",
        "a",
    ),
}


@pytest.mark.parametrize("name", PANDAS)
def test_fill_cells_keeps_pandas_dtypes(name):
    series, value, expected = PANDAS[name]
    n = len(series)
    X = pd.DataFrame({"u": range(n), "v": series, "w": ["q"] * n})
    X.index = pd.Index([f"i{n - j}" for j in range(n)], name="names")
    X.attrs["note"] = "kept"
    before = X.copy()
    filled = fill_cells(X, {1: ([1], [value])})
    pd.testing.assert_frame_equal(X, before)
    assert type(filled) is pd.DataFrame
    assert filled.dtypes.tolist() == X.dtypes.tolist()
    assert filled.attrs == X.attrs
    pd.testing.assert_index_equal(filled.index, X.index)
    pd.testing.assert_index_equal(filled.columns, X.columns)
    got = filled["v"].iloc[1]
    assert got == expected
    if series.dtype == object:
        assert type(got) is type(expected)
    pd.testing.assert_frame_equal(filled.drop("i1" if n == 2 else "i2"), X.drop("i1" if n == 2 else "i2"))


def test_fill_cells_adds_pandas_category():
    X = pd.DataFrame({"x": pd.Categorical(["b", None, None], categories=["b", "a"], ordered=True)})
    filled = fill_cells(X, {0: ([1, 2], ["z", "a"])})
    assert filled["x"].tolist() == ["b", "z", "a"]
    assert filled["x"].dtype == pd.CategoricalDtype(["b", "a", "z"], ordered=True)


@pytest.mark.parametrize("index", [["a", "a", "b"], pd.MultiIndex.from_tuples([("a", 1), ("a", 1), ("b", 2)])])
def test_fill_cells_with_repeated_pandas_index(index):
    X = pd.DataFrame({"x": [1.0, NAN, 3.0], "y": pd.array([None, 2, 3], dtype="Int64")}, index=index)
    filled = fill_cells(X, {0: ([1], [2.0]), 1: ([0], [1.0])})
    assert filled["x"].tolist() == [1, 2, 3]
    assert filled["y"].tolist() == [1, 2, 3]
    pd.testing.assert_index_equal(filled.index, X.index)


def test_fill_cells_with_non_text_pandas_labels():
    X = pd.DataFrame(np.array([[1.0, NAN], [NAN, 4.0]]))
    filled = fill_cells(X, {1: ([0], [9.0])})
    pd.testing.assert_frame_equal(filled, pd.DataFrame(np.array([[1.0, 9.0], [NAN, 4.0]])))


def test_fill_cells_keeps_object_identity():
    first, second = "".join(["lo", "ng"]), Decimal("1.50")
    X = pd.DataFrame({"x": pd.Series([first, None, second], dtype=object)})
    filled = fill_cells(X, {0: ([1], ["z"])})
    assert filled["x"].iloc[0] is first
    assert filled["x"].iloc[2] is second
    array = np.array([[first], [None], [second]], dtype=object)
    filled = fill_cells(array, {0: ([1], ["z"])})
    assert filled[0, 0] is first
    assert filled[2, 0] is second
    assert array[1, 0] is None


# ---------------------------------------------------------------------------------------- polars

POLARS = {
    "Float64": (pl.Series([1.5, None]), 2.25, 2.25),
    "Float32": (pl.Series([1.5, None], dtype=pl.Float32), 1e300, float(np.finfo(np.float32).max)),
    "Int64": (pl.Series([1, None]), 2.6, 3),
    "Int8": (pl.Series([1, None], dtype=pl.Int8), 300.0, 127),
    "UInt16": (pl.Series([1, None], dtype=pl.UInt16), -3.0, 0),
    "UInt64": (pl.Series([1, None], dtype=pl.UInt64), 1e30, 2**64 - 1),
    "Int128": (pl.Series([1, None], dtype=pl.Int128), 1e30, int(1e30)),
    "Decimal": (pl.Series([Decimal("1.50"), None], dtype=pl.Decimal(6, 2)), 2.256, Decimal("2.26")),
    "Decimal too small": (pl.Series([Decimal("1.50"), None], dtype=pl.Decimal(4, 2)), -1e300, Decimal("-99.99")),
    "Boolean": (pl.Series([True, None]), False, False),
    "String": (pl.Series(["a", None]), "b", "b"),
    "empty String": (pl.Series(["a", ""]), "b", "b"),
    "Categorical": (pl.Series(["b", None, "a"], dtype=pl.Categorical), "a", "a"),
    "Enum": (pl.Series(["b", None], dtype=pl.Enum(["b", "c", "a"])), "a", "a"),
    "Date": (pl.Series([dt.date(1970, 1, 1), None]), 2.6, dt.date(1970, 1, 4)),
    "Datetime ms": (pl.Series([HALF_DAY, None], dtype=pl.Datetime("ms")), 1.4 / 86_400e3, dt.datetime(1970, 1, 1, 0, 0, 0, 1000)),
    "Datetime us": (pl.Series([HALF_DAY, None]), 0.25, dt.datetime(1970, 1, 1, 6)),
    "Datetime ns": (pl.Series([HALF_DAY, None], dtype=pl.Datetime("ns")), 0.25, dt.datetime(1970, 1, 1, 6)),
    "Datetime zone": (
        pl.Series([HALF_DAY, None]).dt.replace_time_zone("Europe/Berlin"),
        0.25,
        dt.datetime(1970, 1, 1, 6, tzinfo=dt.UTC),
    ),
    "Datetime category": (pl.Series([HALF_DAY, None]), "1970-01-03", dt.datetime(1970, 1, 3)),
    "Duration": (pl.Series([dt.timedelta(1), None], dtype=pl.Duration("ms")), 0.25, dt.timedelta(hours=6)),
    "Object": (pl.Series([1, None], dtype=pl.Object), 2.6, 3),
}  # fmt: skip


@pytest.mark.parametrize("name", POLARS)
def test_fill_cells_keeps_polars_dtypes(name):
    series, value, expected = POLARS[name]
    n = len(series)
    X = pl.DataFrame({"u": range(n), "v": series, "w": ["q"] * n})
    before = X["v"].to_list()
    filled = fill_cells(X, {1: ([1], [value])})
    assert X["v"].to_list() == before
    assert filled.schema == X.schema
    assert filled["v"].to_list() == [before[0], expected, *before[2:]]
    assert filled.drop("v").equals(X.drop("v"))


def test_fill_cells_adds_polars_labels_and_types():
    X = pl.DataFrame({"e": pl.Series(["b", None], dtype=pl.Enum(["b"])), "n": [None, None], "c": ["b", None]})
    X = X.with_columns(c=pl.col("c").cast(pl.Categorical))
    filled = fill_cells(X, {0: ([1], ["z"]), 1: ([0, 1], [1.5, 2]), 2: ([1], ["y"])})
    assert filled["e"].dtype == pl.Enum(["b", "z"])
    assert filled.rows() == [("b", 1.5, "b"), ("z", 2.0, "y")]
    assert fill_cells(X, {1: ([0, 1], ["a", 2])})["n"].to_list() == ["a", "2"]


def test_fill_cells_keeps_polars_nulls_and_nans():
    X = pl.DataFrame({"x": [ODD_NAN, None, -0.0, None, 1.0]})
    filled = fill_cells(X, {0: ([3], [4.0])})["x"]
    assert filled.is_null().to_list() == [False, True, False, False, False]
    assert bits(filled.drop_nulls()) == bits([ODD_NAN, -0.0, 4.0, 1.0])


# --------------------------------------------------------------------------------------- pyarrow

ARROW = {
    "double": (pa.array([1.5, None]), 2.25, 2.25),
    "float": (pa.array([1.5, None], pa.float32()), 0.25, 0.25),
    "int8": (pa.array([1, None], pa.int8()), 300.0, 127),
    "uint32": (pa.array([1, None], pa.uint32()), -3.0, 0),
    "decimal": (pa.array([Decimal("1.50"), None], pa.decimal128(6, 2)), 2.256, Decimal("2.26")),
    "bool": (pa.array([True, None]), False, False),
    "string": (pa.array(["a", None]), "b", "b"),
    "large_string": (pa.array(["a", None], pa.large_string()), "b", "b"),
    "string_view": (pa.array(["a", None], pa.string_view()), "b", "b"),
    "dictionary": (pa.array(["b", None, "a"]).dictionary_encode(), "a", "a"),
    "dictionary of integers": (pa.array([7, None, 5]).dictionary_encode(), 5, 5),
    "date32": (pa.array([dt.date(1970, 1, 1), None]), 2.6, dt.date(1970, 1, 4)),
    "date64": (pa.array([dt.date(1970, 1, 1), None], pa.date64()), 2.6, dt.date(1970, 1, 4)),
    "timestamp": (pa.array([HALF_DAY, None], pa.timestamp("s")), 1.4 / 86_400, dt.datetime(1970, 1, 1, 0, 0, 1)),
    "timestamp zone": (
        pa.array([HALF_DAY, None], pa.timestamp("us", "Europe/Berlin")),
        0.25,
        dt.datetime(1970, 1, 1, 6, tzinfo=dt.UTC),
    ),
    "duration": (pa.array([dt.timedelta(1), None], pa.duration("ms")), 0.25, dt.timedelta(hours=6)),
}


@pytest.mark.parametrize("name", ARROW)
def test_fill_cells_keeps_pyarrow_types(name):
    array, value, expected = ARROW[name]
    n = len(array)
    fields = [pa.field("u", pa.int64(), nullable=False), pa.field("v", array.type, metadata={"unit": "cm"})]
    X = pa.table(
        [pa.array(range(n)), pa.chunked_array([array[:1], array[1:]])], schema=pa.schema(fields, {"of": "table"})
    )
    before = X["v"].to_pylist()
    filled = fill_cells(X, {1: ([1], [value])})
    assert X["v"].to_pylist() == before
    assert filled.schema.equals(X.schema, check_metadata=True)
    assert filled["v"].to_pylist() == [before[0], expected, *before[2:]]
    assert filled["u"].equals(X["u"])
    filled.validate(full=True)


def test_fill_cells_adds_pyarrow_labels_and_types():
    chunks = [pa.array(["b", None]).dictionary_encode(), pa.array(["c"]).dictionary_encode()]
    X = pa.table({"d": pa.chunked_array(chunks), "n": pa.nulls(3)})
    filled = fill_cells(X, {0: ([1], ["z"]), 1: ([0, 2], [1.5, 2.0])})
    assert filled.to_pydict() == {"d": ["b", "z", "c"], "n": [1.5, None, 2.0]}


def test_fill_cells_keeps_pyarrow_nulls_and_nans():
    X = pa.table({"x": pa.array([ODD_NAN, None, -0.0, None])})
    filled = fill_cells(X, {0: ([3], [4.0])})["x"]
    assert filled.is_null().to_pylist() == [False, True, False, False]
    assert bits(filled.drop_null().to_numpy()) == bits([ODD_NAN, -0.0, 4.0])


# ------------------------------------------------------------------------------ arrays and lists


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_fill_cells_of_float_arrays(dtype, order):
    X = np.array([[1.5, NAN], [-0.0, 2.5], [NAN, NAN]], dtype=dtype, order=order)
    before = X.copy()
    filled = fill_cells(X, {0: (np.array([2]), np.array([7.25])), 1: ([0], [1e300])})
    np.testing.assert_array_equal(X, before)
    assert filled.dtype == dtype
    largest = np.finfo(dtype).max if dtype != np.float64 else 1e300
    np.testing.assert_array_equal(filled, np.array([[1.5, largest], [-0.0, 2.5], [7.25, NAN]], dtype=dtype))
    assert np.signbit(filled[1, 0])


@given(
    st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), min_size=1, max_size=8),
    st.data(),
)
def test_fill_cells_keeps_other_cells_bitwise(raw, data):
    X = np.array(raw, dtype=np.uint64).view(np.float64)
    missing = [(i, j) for i, j in np.argwhere(np.isnan(X)).tolist()]
    chosen = [cell for cell in missing if data.draw(st.booleans())]
    fills = {j: ([i for i, k in chosen if k == j], [1.25] * sum(k == j for _, k in chosen)) for j in (0, 1)}
    expected = X.view(np.uint64).copy()
    for i, j in chosen:
        expected[i, j] = np.float64(1.25).view(np.uint64)
    for make, back in (
        (lambda X: X, lambda out: out),
        (lambda X: pd.DataFrame(X, columns=["a", "b"]), lambda out: out.to_numpy()),
        (lambda X: pl.DataFrame({"a": X[:, 0], "b": X[:, 1]}), lambda out: out.to_numpy()),
        (
            lambda X: pa.table({"a": X[:, 0], "b": X[:, 1]}),
            lambda out: np.column_stack([c.to_numpy() for c in out.columns]),
        ),
    ):
        table = make(X)
        got = np.ascontiguousarray(back(fill_cells(table, fills)))
        np.testing.assert_array_equal(got.view(np.uint64), expected)
        np.testing.assert_array_equal(np.ascontiguousarray(back(table)).view(np.uint64), np.array(raw, dtype=np.uint64))


def test_fill_cells_of_object_arrays_gives_python_values():
    X = np.array([[1, "a", 0.5], [None, None, None], [3, "b", None]], dtype=object)
    filled = fill_cells(X, {0: ([1], np.array([2.4])), 1: ([1], ["b"]), 2: ([1], np.array([1.5]))})
    assert filled.dtype == object
    assert filled.tolist() == [[1, "a", 0.5], [2, "b", 1.5], [3, "b", None]]
    assert [type(cell) for cell in filled[1]] == [int, str, float]


def test_fill_cells_of_text_arrays():
    X = np.array([["a", "1", "0.5"], ["", "", "nan"]])
    filled = fill_cells(X, {0: ([1], ["longer"]), 1: ([1], [2.6]), 2: ([1], [1.25])})
    assert filled.tolist() == [["a", "1", "0.5"], ["longer", "3", "1.25"]]
    assert filled.dtype.kind == "U"
    assert X.dtype == np.dtype("U3")
    text = np.array([["a"], [""]], dtype=np.dtypes.StringDType())
    filled = fill_cells(text, {0: ([1], ["longer"])})
    assert filled.dtype == text.dtype
    assert filled.tolist() == [["a"], ["longer"]]


def test_fill_cells_of_time_arrays():
    days = np.array([["1970-01-03"], ["NaT"]], dtype="M8[D]")
    assert fill_cells(days, {0: ([1], [4.0])}).tolist() == [[dt.date(1970, 1, 3)], [dt.date(1970, 1, 5)]]
    minutes = fill_cells(days.astype("M8[m]"), {0: ([1], [1.5])})
    assert minutes.dtype == np.dtype("M8[m]")
    assert minutes[1, 0] == np.datetime64("1970-01-02T12:00")
    months = fill_cells(np.array([["NaT"]], dtype="M8[M]"), {0: ([0], [40.0])})
    assert months[0, 0] == np.datetime64("1970-02")
    nanoseconds = fill_cells(days.astype("M8[ns]"), {0: ([1], [0.5])})
    assert nanoseconds[1, 0] == np.datetime64("1970-01-01T12")
    assert fill_cells(np.array([["NaT"]], dtype="m8[h]"), {0: ([0], [0.25])})[0, 0] == np.timedelta64(6, "h")


@pytest.mark.parametrize(("unit", "right"), [("D", 3), ("h", 64), ("25s", 9158), ("s", 228_960)])
def test_fill_cells_rounds_times_to_unit(unit, right):
    filled = fill_cells(np.array([["NaT"]], dtype=f"M8[{unit}]"), {0: ([0], [2.65])})
    assert filled.astype(np.int64)[0, 0] == right


def test_fill_cells_of_masked_arrays():
    X = np.ma.array([[1, 2], [3, 4]], mask=[[0, 1], [1, 0]], hard_mask=True)
    filled = fill_cells(X, {1: ([0], [7.6])})
    assert filled.tolist() == [[1, 8], [None, 4]]
    assert filled.dtype == X.dtype
    assert X.tolist() == [[1, None], [None, 4]]


def test_fill_cells_of_lists_gives_arrays():
    filled = fill_cells([[1, 2.5], [None, 3], [NAN, pd.NA]], {0: ([1], [2.25])})
    assert filled.dtype == np.float64
    np.testing.assert_array_equal(filled, [[1, 2.5], [2.25, 3], [NAN, NAN]])
    X = [[1, "a"], [None, None]]
    filled = fill_cells(X, {0: ([1], [2.25]), 1: ([1], ["a"])})
    assert filled.dtype == object
    assert filled.tolist() == [[1, "a"], [2, "a"]]
    assert X == [[1, "a"], [None, None]]
    assert fill_cells([[2**60 + 1], [None]], {0: ([1], [2**60])}).tolist() == [[2**60 + 1], [2**60]]
    assert fill_cells([[True], [None]], {0: ([1], [False])}).tolist() == [[True], [False]]
    assert fill_cells([[1.0], [None]], {0: ([1], ["b"])}).tolist() == [[1.0], ["b"]]
    assert fill_cells(((1, 2), (3, 4)), {}).dtype == np.float64


# ------------------------------------------------------------------------------------ all of them

TABLE = {"x": [1.5, None, 3.0], "k": [1, 2, None], "t": ["u", None, "v"], "b": [None, True, False]}
CONTAINERS = {
    "polars": lambda: pl.DataFrame(TABLE),
    "pandas": lambda: pl.DataFrame(TABLE).to_pandas(),
    "pandas nullable": lambda: pl.DataFrame(TABLE).to_pandas().convert_dtypes(),
    "pandas of objects": lambda: pd.DataFrame(TABLE, dtype=object),
    "pyarrow": lambda: pl.DataFrame(TABLE).to_arrow(),
    "objects": lambda: np.array(list(map(list, zip(*TABLE.values(), strict=True))), dtype=object),
    "lists": lambda: list(map(list, zip(*TABLE.values(), strict=True))),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_filled_tables_can_be_read(kind):
    X = CONTAINERS[kind]()
    fills = {0: ([1], np.array([2.25])), 1: ([2], np.array([3.0])), 2: ([1], ["v"]), 3: ([0], [True])}
    filled = fill_cells(X, fills)
    if kind != "lists":
        assert type(filled) is type(X)
    x, k, t, b = read_columns(filled).columns
    assert isinstance(x, RealColumn)
    assert isinstance(t, CategoricalColumn)
    assert x.values.tolist() == [1.5, 2.25, 3.0]
    assert k.values.tolist() == [1, 2, 3]
    assert (t.codes.tolist(), t.categories) == ([0, 1, 1], ("u", "v"))
    assert (b.codes.tolist(), b.categories) == ([1, 1, 0], (False, True))


@pytest.mark.parametrize("kind", [*CONTAINERS, "floats", "integers"])
@pytest.mark.parametrize("fills", [{}, {0: ([], [])}, {1: (np.array([], dtype=np.intp), np.array([]))}])
def test_fill_cells_without_fills_keeps_table(kind, fills):
    arrays = {"floats": lambda: np.array([[1.0, NAN]]), "integers": lambda: np.array([[1, 2]])}
    X = (CONTAINERS | arrays)[kind]()
    before = copy.deepcopy(X)
    filled = fill_cells(X, fills)
    assert filled is not X
    if isinstance(X, pd.DataFrame):
        pd.testing.assert_frame_equal(filled, before)
        filled.iloc[0, 0] = 99.0
        pd.testing.assert_frame_equal(X, before)
    elif isinstance(X, np.ndarray):
        assert filled.dtype == X.dtype
        assert filled.tolist()[0][0] == X[0, 0]
        filled[0, 0] = 99
        assert X[0, 0] == before[0, 0]
    elif not isinstance(X, list):
        assert type(filled) is type(X)
        assert filled.equals(X)


def test_invalid_fills_are_rejected():
    X = pl.DataFrame({"x": [1.0, None]})
    with refused("column 1 columns X go 0"):
        fill_cells(X, {1: ([0], [1.0])})
    with pytest.raises(InputError, match="names the column -1"):
        fill_cells([[1.0, None]], {-1: ([0], [1.0])})
    with pytest.raises(InputError, match="fills has 2 values for 1 row of column 0"):
        fill_cells(X, {0: ([1], [1.0, 2.0])})
    for table in (X, X.to_pandas(), X.to_arrow()):
        with refused("Column x filled convert string float 'a'"):
            fill_cells(table, {0: ([1], ["a"])})
    with refused("Column 0 X type float64 filled convert"):
        fill_cells(np.array([[NAN]]), {0: ([0], ["a"])})
    with refused("Column x filled type List"):
        fill_cells(pl.DataFrame({"x": [[1], None]}), {0: ([1], [1.0])})


@given(st.floats(-(2.0**40), 2.0**40), st.sampled_from(["ms", "us"]))
def test_fill_cells_rounds_times_to_nearest_tick(seconds, unit):
    ticks_a_second = {"ms": 10**3, "us": 10**6}[unit]
    days = round(seconds) / 86_400
    X = pl.DataFrame({"x": [None]}, schema={"x": pl.Datetime(unit)})
    got = fill_cells(X, {0: ([0], [days])})["x"].to_physical()[0]
    # A float of days is exact to about 1e-16 of its size.
    assert abs(got - round(seconds) * ticks_a_second) <= 1e-15 * abs(seconds) * ticks_a_second + 0.5
