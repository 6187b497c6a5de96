"""Tables in memory: column kinds, cells, names, invalid input and the encoding."""

import datetime as dt
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import assume, given
from hypothesis import strategies as st

from coaltree.errors import InputError, InputWarning
from coaltree.table.columns import (
    MAX_CATEGORIES,
    POOLED_CATEGORY,
    CategoricalColumn,
    RealColumn,
    missing_cells,
    read_columns,
)
from coaltree.table.encoding import describe, encode, fit_encoding, read_new_rows
from coaltree.table.labels import distinct_names
from named import check_named, refused

NAN = np.nan


def only(X, *args, **kwargs):
    """The one column of a table."""
    (column,) = read_columns(X, *args, **kwargs).columns
    return column


def frame(values, **kwargs):
    return pd.DataFrame({"x": pd.Series(values, **kwargs)})


# --------------------------------------------------------------------------------------------- kinds

REAL = {
    "int": (pd.Series([1, 2]), [1, 2]),
    "float": (pd.Series([1.5, NAN]), [1.5, NAN]),
    "float16": (pd.Series([1.5, 2], dtype="float16"), [1.5, 2]),
    "Int64": (pd.Series([1, None], dtype="Int64"), [1, NAN]),
    "Float64": (pd.Series([1.5, None], dtype="Float64"), [1.5, NAN]),
    "sparse": (pd.Series(pd.arrays.SparseArray([0.0, 2.0])), [0, 2]),
    "arrow int": (pd.Series([1, None], dtype="int64[pyarrow]"), [1, NAN]),
    "object numbers": (pd.Series([1, 2.5, None, pd.NA, NAN], dtype=object), [1, 2.5, NAN, NAN, NAN]),
    "object decimals": (pd.Series([Decimal("1.5"), None], dtype=object), [1.5, NAN]),
    "object bool and number": (pd.Series([True, 2.5], dtype=object), [1, 2.5]),
    "object text of numbers and numbers": (pd.Series(["1.5", 2], dtype=object), [1.5, 2]),
    "all missing object": (pd.Series([None, None], dtype=object), [NAN, NAN]),
    "date objects": (pd.Series([dt.date(1970, 1, 3), None], dtype=object), [2, NAN]),
    "datetime objects": (
        pd.Series([dt.datetime(1970, 1, 1, 12), pd.Timestamp("1970-01-02", tz="UTC"), pd.NaT], dtype=object),
        [0.5, 1, NAN],
    ),
    "numpy time objects": (
        pd.Series([np.datetime64("1970-01-02"), np.datetime64("NaT")], dtype=object),
        [1, NAN],
    ),
    "timedelta objects": (pd.Series([dt.timedelta(hours=6), pd.NaT], dtype=object), [0.25, NAN]),
    "datetime ns": (pd.Series(pd.to_datetime(["1970-01-02 06:00", None])).astype("M8[ns]"), [1.25, NAN]),
    "datetime s": (pd.Series(pd.to_datetime(["1970-01-02 06:00", None])).astype("M8[s]"), [1.25, NAN]),
    "datetime tz": (
        pd.Series(pd.to_datetime(["1970-01-02", None])).dt.tz_localize("Europe/Berlin"),
        [1 - 1 / 24, NAN],
    ),
    "timedelta": (pd.Series(pd.to_timedelta(["36h", None])), [1.5, NAN]),
    "polars decimal": (pl.Series([Decimal("1.5"), None]), [1.5, NAN]),
    "polars int128": (pl.Series([3, None], dtype=pl.Int128), [3, NAN]),
    "polars null and nan": (pl.Series([1.0, None, NAN]), [1, NAN, NAN]),
    "polars date": (pl.Series([dt.date(1970, 1, 3), None]), [2, NAN]),
    "polars datetime tz": (
        pl.Series([dt.datetime(1970, 1, 2), None]).dt.replace_time_zone("Europe/Berlin"),
        [1 - 1 / 24, NAN],
    ),
    "polars duration": (pl.Series([dt.timedelta(hours=36), None]), [1.5, NAN]),
    "polars null": (pl.Series([None, None]), [NAN, NAN]),
    "polars object": (pl.Series([1, None, 2.5], dtype=pl.Object), [1, NAN, 2.5]),
}


def as_frame(series):
    return pd.DataFrame({"x": series}) if isinstance(series, pd.Series) else pl.DataFrame({"x": series})


@pytest.mark.parametrize("name", REAL)
def test_real_columns_of_frames_are_read(name):
    series, expected = REAL[name]
    column = only(as_frame(series))
    assert isinstance(column, RealColumn)
    assert column.name == "x"
    assert column.index == 0
    assert column.values.dtype == np.float64
    np.testing.assert_allclose(column.values, expected, rtol=1e-12)


CATEGORICAL = {
    "text": (pd.Series(["b", None, "a", "", "b"]), [1, -1, 0, -1, 1], ("a", "b")),
    "object text": (pd.Series(["b", NAN, "a", pd.NA], dtype=object), [1, -1, 0, -1], ("a", "b")),
    "text of digits": (pd.Series(["10", "9"]), [0, 1], ("10", "9")),
    "few numbers in text": (pd.Series(["b", "a", 3], dtype=object), [2, 1, 0], (3, "a", "b")),
    "bool": (pd.Series([True, False]), [1, 0], (False, True)),
    "boolean": (pd.Series([True, None], dtype="boolean"), [0, -1], (True,)),
    "object bool": (pd.Series([True, False, None], dtype=object), [1, 0, -1], (False, True)),
    "category, declared order": (
        pd.Series(pd.Categorical(["lo", "hi", None], categories=["lo", "mid", "hi"])),
        [0, 1, -1],
        ("lo", "hi"),
    ),
    "category of numbers": (pd.Series(pd.Categorical([3, 1, 3])), [1, 0, 1], (1, 3)),
    "category of intervals": (pd.Series(pd.cut([0.0, 1.0], [-1, 0, 1])), [0, 1], ("(-1, 0]", "(0, 1]")),
    "ordered category": (
        pd.Series(pd.Categorical(["a", "z"], categories=["z", "a"], ordered=True)),
        [1, 0],
        ("z", "a"),
    ),
    "arrow dictionary": (
        pd.Series(["b", None, "a"], dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))),
        [1, -1, 0],
        ("a", "b"),
    ),
    "all missing text": (pd.Series([None, None], dtype="string"), [-1, -1], ()),
    "polars text": (pl.Series(["b", None, "a", ""]), [1, -1, 0, -1], ("a", "b")),
    "polars categorical": (pl.Series(["b", None, "a"], dtype=pl.Categorical), [1, -1, 0], ("a", "b")),
    "polars categorical of digits": (
        pl.Series(["1", "2", "x"], dtype=pl.Categorical),
        [0, 1, 2],
        ("1", "2", "x"),
    ),
    "polars enum": (pl.Series(["z", None, "a"], dtype=pl.Enum(["z", "q", "a"])), [0, -1, 1], ("z", "a")),
    "polars bool": (pl.Series([True, None, False]), [1, -1, 0], (False, True)),
}


@pytest.mark.parametrize("name", CATEGORICAL)
def test_categorical_columns_of_frames_are_read(name):
    series, codes, categories = CATEGORICAL[name]
    column = only(as_frame(series))
    assert isinstance(column, CategoricalColumn)
    assert column.codes.tolist() == codes
    assert column.categories == categories
    assert [type(c) for c in column.categories] == [type(c) for c in categories]


def test_pandas_polars_pyarrow_and_numpy_agree():
    data = {"a": [1.0, None, 3.0], "b": ["u", "v", None], "c": [1, 2, 3], "d": [True, False, True]}
    polars = pl.DataFrame(data)
    objects = np.array([list(row) for row in polars.rows()], dtype=object)
    tables = [
        read_columns(X)
        for X in (
            polars,
            polars.to_pandas(),
            polars.to_arrow(),
            objects,
            objects.tolist(),
            pd.DataFrame(data),
        )
    ]
    for table in tables:
        assert table.n_rows == 3
        assert table.row_names is None
        assert [c.index for c in table.real] == [0, 2]
        assert [c.index for c in table.categorical] == [1, 3]
        np.testing.assert_array_equal(table.real[0].values, [1, NAN, 3])
        np.testing.assert_array_equal(table.real[1].values, [1, 2, 3])
        assert table.categorical[0].codes.tolist() == [0, 1, -1]
        assert table.categorical[0].categories == ("u", "v")
        assert table.categorical[1].codes.tolist() == [1, 0, 1]
    assert tables[0].column_names == ("a", "b", "c", "d")
    assert tables[3].column_names == ("x0", "x1", "x2", "x3")


@given(
    st.lists(
        st.lists(st.one_of(st.none(), st.floats(allow_infinity=False)), min_size=3, max_size=3),
        min_size=1,
        max_size=9,
    )
)
def test_numbers_are_equal_in_every_container(rows):
    expected = np.array(rows, dtype=float)
    polars = pl.DataFrame(rows, schema=dict.fromkeys("abc", pl.Float64), orient="row")
    for X in (
        rows,
        expected,
        np.array(rows, dtype=object),
        polars,
        pd.DataFrame(expected),
        polars.to_arrow(),
    ):
        table = read_columns(X)
        np.testing.assert_array_equal(np.column_stack([c.values for c in table.real]), expected)


@given(st.lists(st.one_of(st.none(), st.sampled_from(["red", "green", "blue", "10", ""])), min_size=1, max_size=9))
def test_text_is_equal_in_every_container(values):
    assume(sum(v == "10" for v in values) < sum(v in ("red", "green", "blue") for v in values))
    calls = []
    pandas = frame(values, dtype=object), frame(values, dtype="str")
    for X in (*pandas, pl.DataFrame({"x": values}, schema={"x": pl.String}), [[v] for v in values]):
        column = only(X)
        assert set(column.categories) == {v for v in values if v}
        assert [column.categories[c] if c >= 0 else None for c in column.codes] == [v or None for v in values]
        calls.append(column.categories)
    assert len(set(calls)) == 1


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, np.float64])
def test_numeric_arrays_are_read_without_change(dtype):
    X = np.arange(6).reshape(3, 2).astype(dtype)
    table = read_columns(X)
    np.testing.assert_array_equal(table.real[1].values, [1, 3, 5])
    table.real[1].values[:] = 0
    assert X[0, 1] == 1  # the table does not share memory with the user's array


def test_boolean_text_and_masked_arrays_are_read():
    assert only(np.array([[True], [False]])).categories == (False, True)
    np.testing.assert_array_equal(only(np.array([["1970-01-03"], ["NaT"]], "M8[h]")).values, [2, NAN])
    np.testing.assert_array_equal(only(np.array([[36], [12]], "m8[h]")).values, [1.5, 0.5])
    masked = np.ma.array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]])
    np.testing.assert_array_equal(read_columns(masked).columns[1].values, [NAN, 4])
    masked = np.ma.array([[True], [False]], mask=[[0], [1]])
    assert only(masked).codes.tolist() == [0, -1]


def test_numbers_in_text_arrays_are_read_as_numbers():
    table = read_columns(np.array([["a", 1.5], ["b", 2.5]]))
    assert table.categorical[0].categories == ("a", "b")
    assert table.real[0].values.tolist() == [1.5, 2.5]


def test_objects_with_array_interface_are_read():
    class Wrapped:
        def __array__(self, dtype=None, copy=None):
            return np.array([[1.0], [2.0]])

    assert only(Wrapped()).values.tolist() == [1, 2]


# ----------------------------------------------------------------------------- categorical_features

MIXED = pd.DataFrame({"n": [3.0, 1.0, NAN], "t": ["a", "b", "a"], "i": [10, 9, 10]})


@pytest.mark.parametrize(
    "chosen",
    [
        [True, True, False],
        np.array([True, True, False]),
        [0, 1],
        np.array([1, 0]),
        ["n", "t"],
        pd.Series(["t", "n"]),
    ],
)
def test_categorical_features_accepts_masks_indices_and_names(chosen):
    table = read_columns(MIXED, chosen)
    assert [c.name for c in table.categorical] == ["n", "t"]
    assert table.categorical[0].categories == (1, 3)
    assert table.categorical[0].codes.tolist() == [1, 0, -1]


def test_columns_of_any_type_can_be_declared_categorical():
    X = pd.DataFrame({
        "i": [10, 9, 10], "f": [1.5, 10.0, NAN], "b": [True, False, True],
        "d": pd.to_datetime(["2020-01-02", None, "2019-12-31"]), "big": [2**60, 2**60 + 1, 2**60],
        "o": pd.Series(["x", 1, 1], dtype=object),
    })  # fmt: skip
    got = {c.name: (c.codes.tolist(), c.categories) for c in read_columns(X, list(X.columns)).categorical}
    assert got == {
        "i": ([1, 0, 1], (9, 10)),
        "f": ([0, 1, -1], (1.5, 10.0)),
        "b": ([1, 0, 1], (False, True)),
        "d": ([1, -1, 0], ("2019-12-31", "2020-01-02")),
        "big": ([0, 1, 0], (2**60, 2**60 + 1)),
        "o": ([1, 0, 0], (1, "x")),
    }


def test_declared_times_keep_hours():
    X = pl.DataFrame({"x": [dt.datetime(2020, 1, 1, 6), dt.datetime(2020, 1, 1, 5, 30)]})
    assert only(X, ["x"]).categories == ("2020-01-01T05:30:00", "2020-01-01T06:00:00")


def test_undeclared_columns_are_real():
    X = pd.DataFrame({"b": [True, False], "c": pd.Categorical([7, 5]), "t": ["x", "y"]})
    table = read_columns(X, ["t"])
    assert [c.values.tolist() for c in table.real] == [[1, 0], [7, 5]]
    assert len(read_columns(X[["b", "c"]], None).real) == 2
    assert len(read_columns(X[["b", "c"]], []).real) == 2


@pytest.mark.parametrize(
    ("chosen", "parts"),
    [
        ([True], ["length 1", "3 columns"]),
        ([3], ["3", "from 0 to 2"]),
        ([-1], ["-1", "negative"]),
        (["nn"], ["'nn'", "'n', 't', 'i'"]),
        (["n", 1], ["mixes int and str"]),
        ([True, 1, 0], ["mixes bool and int"]),
        ([1.5], ["float"]),
        ("n", ["'n'", "['n']"]),
        ("auto", ["'auto'", "from_dtype"]),
        (3, ["not 3"]),
        (np.ones((3, 1), dtype=bool), ["2-D"]),
    ],
)
def test_invalid_categorical_features_are_rejected(chosen, parts):
    with pytest.raises(InputError, match="categorical_features") as error:
        read_columns(MIXED, chosen)
    for part in parts:
        assert part in str(error.value)


@pytest.mark.parametrize(("chosen", "part"), [(None, "categorical_features=None"), (["n"], "does not name the column")])
def test_text_rejected_as_categorical(chosen, part):
    for X in (MIXED, pl.from_pandas(MIXED)):
        with pytest.raises(InputError, match=r"Column 't' holds 'a' in row 0") as error:
            read_columns(X, chosen)
        assert part in str(error.value)


def test_undeclared_category_dtype_of_text_is_rejected():
    with pytest.raises(InputError, match=r"Column 'x' holds 'q' in row 1"):
        read_columns(frame(pd.Categorical([None, "q"])), None)


# ------------------------------------------------------------------------------------- bad cells


@pytest.mark.parametrize(
    "X",
    [
        frame(["1", "2.5", "", "abc", "3"]),
        frame([1, 2.5, None, "abc", "3"], dtype=object),
        pl.DataFrame({"x": ["1", "2.5", None, "abc", "3"]}),
    ],
)
@pytest.mark.parametrize("chosen", ["from_dtype", None])
def test_text_in_numeric_column_is_rejected(X, chosen):
    with pytest.raises(InputError) as error:
        read_columns(X, chosen)
    for part in (
        "Column 'x'",
        "row 3",
        "'abc'",
        "1 of 4",
        "missing",
        "fix",
        "declare the column categorical",
    ):
        assert part in str(error.value)
    assert "abc" in only(X, ["x"]).categories


def test_text_in_numeric_column_names_row():
    X = pd.DataFrame({"x": ["1", "?"]}, index=["first", "second"])
    with pytest.raises(InputError, match=r"row 1 \('second'\) holds '\?'"):
        read_columns(X)


def test_text_in_numeric_lists_and_arrays_names_row():
    with refused("Column x1 row 2 oops"):
        read_columns([[1, 1], [2, 2], [3, "oops"]])
    with refused("Column x1 row 2 oops"):
        read_columns(np.array([[1, 1], [2, 2], [3, "oops"]]))


@pytest.mark.parametrize("index", [None, ["p", "q", "r"]])
def test_infinite_cells_are_rejected(index):
    X = pd.DataFrame({"a": [1.0, 2, 3], "b": [1.0, np.inf, -np.inf], "c": [np.inf, 1, 1]}, index=index)
    with pytest.raises(InputError) as error:
        read_columns(X)
    for part in (
        "3 infinite cells",
        "column 'b'",
        "row 1" if index is None else "row 1 ('q')",
        "finite",
        "NaN",
    ):
        assert part in str(error.value)
    with pytest.raises(InputError, match="3 infinite cells"):
        read_columns(X, ["a", "b", "c"])
    with refused("1 infinite cell first column x1 row 0"):
        read_columns([[1, float("inf")], [2, 2]])


@pytest.mark.parametrize("cell", [{"foo": "bar"}, [1, 2], b"x", object()])
def test_invalid_cell_objects_are_rejected(cell):
    X = np.empty((2, 2), dtype=object)
    X[:] = 1.0
    X[1, 0] = cell
    for table in (X, pd.DataFrame(X, columns=["x0", "x1"])):
        with pytest.raises(TypeError, match=r"argument must be .* string.* number") as error:
            read_columns(table)
        assert isinstance(error.value, InputError)
        assert "Column 'x0'" in str(error.value)
        assert "row 1" in str(error.value)


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        (["a", dt.date(2020, 1, 1)], ["text ('a' in row 0", "dates ('2020-01-01' in row 1"]),
        ([dt.date(2020, 1, 1), 3.5], ["dates", "numbers ('3.5' in row 1"]),
        ([dt.date(2020, 1, 1), NAN, dt.timedelta(1)], ["dates", "durations", "row 2"]),
    ],
)
def test_mixed_cell_types_are_rejected(values, parts):
    with pytest.raises(InputError, match="Column 'x' mixes") as error:
        read_columns(frame(values, dtype=object))
    for part in parts:
        assert part in str(error.value)


@pytest.mark.parametrize(
    ("X", "dtype"),
    [
        (pl.DataFrame({"x": [[1], [2]]}), "List"),
        (pl.DataFrame({"x": [{"a": 1}]}), "Struct"),
        (pl.DataFrame({"x": [b"a"]}), "Binary"),
        (pl.DataFrame({"x": [dt.time(1)]}), "Time"),
        (pa.table({"x": [b"a"]}), "binary"),
        (frame(pd.period_range("2020", periods=2, freq="D")), "period"),
    ],
)
def test_unsupported_dtypes_are_rejected(X, dtype):
    with pytest.raises(InputError, match=rf"Column 'x' is of type .*{dtype}.*drop it"):
        read_columns(X)


def test_complex_numbers_are_rejected():
    for X in (np.array([[1j]]), frame([1j, 2]), [[1j]], np.array([[complex(NAN), "a"]], dtype=object)):
        with pytest.raises(InputError, match=r"^Complex data not supported"):
            read_columns(X)


def test_numbers_too_large_for_float_are_rejected():
    with refused("Column x0 row 1 large"):
        read_columns([[1], [10**400]])
    assert only([[1], [10**30]]).values.tolist() == [1, 1e30]


# ---------------------------------------------------------------------------------------- shapes


@pytest.mark.parametrize(
    "X", [np.arange(3.0), [1, 2], [], pd.Series([1, 2]), pl.Series([1, 2]), pd.Index([1]), ["ab"], [{"a": 1}]]
)
def test_one_dimensional_tables_are_rejected(X):
    with pytest.raises(InputError, match="Expected 2D array, got 1D array instead") as error:
        read_columns(X)
    assert "Reshape your data" in str(error.value)


@pytest.mark.parametrize(
    ("X", "text"),
    [
        (np.empty((0, 3)), "Found array 0 sample(s) shape=(0 3) minimum 1 required"),
        (
            pd.DataFrame({"a": []}),
            "Found array 0 sample(s) shape=(0 1) minimum 1 required",
        ),
        (np.empty((4, 0)), "Found array 0 feature(s) shape=(4 0) minimum 1 required"),
        (
            pd.DataFrame(index=[1, 2]),
            "Found array 0 feature(s) shape=(2 0) minimum 1 required",
        ),
        ([[], []], "Found array 0 feature(s) shape=(2 0) minimum 1 required"),
        (np.zeros((1, 2, 3)), "dim 3"),
        ([[[1]], [[2]]], "dim 3"),
        ([[1, 2], [3]], "row 0 2 cells 1 counted"),
        ([[1, 2], 3], "entry 1 3"),
        (np.array(3.0), "got scalar array"),
        (4.0, "got scalar array"),
        (np.zeros(2, dtype=[("a", float)]), "structured array"),
        (np.array([[b"a"]]), "|S1"),
    ],
)
def test_invalid_shapes_are_rejected(X, text):
    with refused(text):
        read_columns(X)


@pytest.mark.parametrize("make", [scipy.sparse.csr_matrix, scipy.sparse.coo_array, scipy.sparse.dok_array])
def test_sparse_matrices_are_rejected(make):
    with pytest.raises(TypeError, match=r"Sparse data was passed .* dense data is required.*`\.toarray\(\)`"):
        read_columns(make(np.eye(2)))


@pytest.mark.parametrize(
    ("X", "text"),
    [
        ({"a": [1]}, "dict"),
        (None, "NoneType"),
        ("file.csv", "str"),
        ({1}, "set"),
        (pl.LazyFrame({"a": [1]}), r"X\.collect\(\)"),
    ],
)
def test_invalid_table_types_are_rejected(X, text):
    with pytest.raises(TypeError, match=text):
        read_columns(X)


# ----------------------------------------------------------------------------------------- names


def test_column_names_are_read():
    assert read_columns(pd.DataFrame({0: [1], 1: [2]})).column_names == ("0", "1")
    with refused("names 0 text", TypeError):
        read_columns(pd.DataFrame({0: [1], "b": [2]}))
    two_levels = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]))
    assert read_columns(two_levels).column_names == ("a/1", "a/2")
    assert read_columns(np.ones((1, 2)), feature_names=["p", "q"]).column_names == ("p", "q")
    assert read_columns(pd.DataFrame({"columns": [1], "column_names": [2]})).column_names == (
        "columns",
        "column_names",
    )
    with refused("feature_names 1 table 2 columns"):
        read_columns(np.ones((1, 2)), feature_names=["p"])


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]),
        pa.table([[1], [2], [3]], names=["a", "b", "a"]),
        pd.DataFrame({"a": [1]}).assign(b=1).rename(columns={"b": "a"}),
    ],
)
def test_repeated_column_names_are_rejected(X):
    with pytest.raises(InputError, match=r"distinct, but 'a' occurs more than once"):
        read_columns(X)


def test_column_names_equal_as_text_are_rejected():
    with pytest.raises(InputError, match="'1' occurs more than once"):
        read_columns(pd.DataFrame([[1, 2]], columns=[1, "1"]))


def test_row_names_are_read():
    X = pd.DataFrame({"x": [1, 2, 3]})
    assert read_columns(X).row_names is None
    assert read_columns(X[X.x > 1]).row_names == ("1", "2")
    assert read_columns(X.set_index(pd.RangeIndex(3, 6))).row_names == ("3", "4", "5")
    assert read_columns(X.set_index(pd.Index(["a", "", None]))).row_names == ("a", "row 1", "row 2")
    index = pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)])
    assert read_columns(X.set_index(index)).row_names == ("a/1", "a/2", "b/1")
    assert read_columns(X, row_names=["p", "q", "r"]).row_names == ("p", "q", "r")
    assert read_columns(pl.from_pandas(X)).row_names is None
    with refused("row_names 1 table 3 rows"):
        read_columns(X, row_names=["p"])


def test_row_names_are_made_distinct():
    X = pd.DataFrame({"x": range(5)}, index=["a", "a", "a_2", "a", "b"])
    with pytest.warns(InputWarning, match=r"2 row names were not distinct .*'a' is now 'a_3'"):
        assert read_columns(X).row_names == ("a", "a_3", "a_2", "a_4", "b")


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
@given(st.lists(st.sampled_from(["a", "a_2", "a_2_2", "b", "", "row 1", None]), max_size=12))
def test_distinct_names_returns_distinct_names(labels):
    names = distinct_names(labels)
    assert len(set(names)) == len(names) == len(labels)
    for label in labels:
        assert not label or label in names


# ------------------------------------------------------------------------------------ categories


def test_new_rows_use_categories_of_fit():
    fit = pd.DataFrame({"t": ["b", "a", "c"], "f": [True, False, True], "x": [1.0, 2.0, 3.0]})
    by_name = fit_encoding(read_columns(fit)).categories_by_name
    assert by_name == {"t": ("a", "b", "c"), "f": (False, True)}
    new = pd.DataFrame({"t": ["c", None], "f": [0, 1], "x": [None, None]})
    table = read_columns(new, categories=by_name)
    assert table.categorical[0].codes.tolist() == [2, -1]
    assert table.categorical[0].categories == ("a", "b", "c")
    assert table.categorical[1].codes.tolist() == [0, 1]
    assert np.isnan(table.real[0].values).all()


def test_unseen_categories_are_missing_with_one_warning():
    new = pd.DataFrame({"t": ["z", "a", "z", "y"], "u": [1, 2, 3, 1]})
    with pytest.warns(InputWarning) as record:
        table = read_columns(new, categories={"t": ("a",), "u": (1, 2)})
    assert table.categorical[0].codes.tolist() == [-1, 0, -1, -1]
    assert table.categorical[1].codes.tolist() == [0, 1, -1, 0]
    assert len(record) == 1
    text = str(record[0].message)
    for part in ("column 't'", "'y' (1 row)", "'z' (2 rows)", "column 'u'", "3 (1 row)", "missing"):
        assert part in text


def test_categories_match_by_text_when_types_differ():
    new = pd.DataFrame({"t": [2, 1]})
    assert only(new, categories={"t": ("1", "2", "x")}).codes.tolist() == [1, 0]
    assert only(frame(["2", "1"]), categories={"x": (1, 2)}).codes.tolist() == [1, 0]


def test_mismatched_new_rows_are_rejected():
    with pytest.raises(InputError, match="lacks the categorical column 't'"):
        read_columns(MIXED[["n"]], categories={"t": ("a",)})
    with refused("Column t 'a' row 0 held numbers model fit"):
        read_columns(MIXED, categories={})


def test_too_many_categories_are_rejected():
    X = pd.DataFrame({"x": np.arange(1500) % (MAX_CATEGORIES + 1)})
    with pytest.raises(InputError) as error:
        read_columns(X, ["x"])
    for part in ("'x'", "1,001 categories in 1,500 rows", "1,000", "drop it", "row names"):
        assert part in str(error.value)
    assert len(read_columns(X % MAX_CATEGORIES, ["x"]).categorical[0].categories) == MAX_CATEGORIES


def test_rare_texts_are_pooled():
    """99 texts are kept, those that occur most often; new rows with any other text have the pooled category."""
    common = [f"c{i:02}" for i in range(99)]
    X = frame([*common * 2, *(f"rare {i}" for i in range(40)), None])
    table = read_columns(X)
    (column,) = table.categorical
    assert column.categories == (*common, POOLED_CATEGORY)
    assert np.bincount(column.codes[:-1]).tolist() == [2] * 99 + [40]
    assert column.codes[-1] == -1
    check_named(" ".join(table.remarks), "'x' 139 99")
    encoding = fit_encoding(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (new,) = read_new_rows(frame(["c07", "never seen", None]), encoding).columns
    assert new.codes.tolist() == [7, 99, -1]
    assert len(only(frame(common * 2)).categories) == 99


def test_identifiers_are_ignored_unless_declared():
    names = [f"name {i}" for i in range(2000)]
    for X in (frame(names), pl.DataFrame({"x": names}), [[name] for name in names]):
        with pytest.warns(InputWarning, match=r"'x0?' .* every row.* ignored.* drop it"):
            table = read_columns(X)
        assert table.categorical[0].categories == ()
        assert not missing_cells(table.categorical[0]).any()
        encoding = fit_encoding(table)
        assert encoding.informative.tolist() == [False]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            new = read_new_rows(X[:2], encoding, unseen="error")
        assert not missing_cells(new.columns[0]).any()
    few = names[:11]
    assert len(read_columns(frame(few), ["x"]).categorical[0].categories) == 11
    assert len(only(frame(names[:10])).categories) == 10
    assert len(only(frame([*few, few[0]])).categories) == 11


# -------------------------------------------------------------------------------------- encoding


def test_real_columns_are_standardised():
    X = pd.DataFrame({"x": [1.0, 3.0, NAN], "t": ["a", "b", None], "c": [5.0, 5.0, NAN], "one": ["q", "q", None]})
    table = read_columns(X)
    encoding = fit_encoding(table)
    assert encoding.kinds == ("real", "categorical", "real", "categorical")
    assert encoding.informative.tolist() == [True, True, False, False]
    assert encoding.center.tolist() == [2, 5]
    assert encoding.scale.tolist() == [1, 1]
    encoded = encode(table, encoding)
    np.testing.assert_array_equal(encoded.real, [[-1], [1], [NAN]])
    assert encoded.codes.tolist() == [[0], [1], [-1]]
    assert (encoded.real_names, encoded.categorical_names, encoded.n_states) == (("x",), ("t",), (2,))
    new = read_columns(
        pd.DataFrame({"x": [4], "t": ["b"], "c": [9], "one": ["q"]}), categories=encoding.categories_by_name
    )
    encoded = encode(new, encoding)
    assert encoded.real.tolist() == [[2]]
    assert encoded.codes.tolist() == [[1]]


def test_standardize_false_keeps_units():
    table = read_columns(np.array([[1.0, 7], [3.0, 7]]))
    encoding = fit_encoding(table, standardize=False)
    assert encoding.informative.tolist() == [True, False]
    assert encode(table, encoding).real.tolist() == [[1], [3]]
    large = read_columns([[1e100], [-1e100]])
    assert encode(large, fit_encoding(large, standardize=False)).real.tolist() == [[1e100], [-1e100]]
    with refused("'x0' 1e+308 row 1 standardize"):
        fit_encoding(read_columns([[1.0], [1e308]]), standardize=False)


@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=20),
    st.sampled_from([1.7e308, 1e300, 1.0, 1e-290, 1e-300]),
    st.sampled_from([0, 1e4]),
)
def test_standardising_at_every_scale(values, unit, offset):
    values = np.array(values)
    assume(np.ptp(values) > 1e-3)
    X = (values + offset) / (offset + 1) * unit
    table = read_columns(X[:, None])
    Z = encode(table, fit_encoding(table)).real[:, 0]
    np.testing.assert_allclose(Z.mean(), 0, atol=1e-6)
    np.testing.assert_allclose(Z.std(), 1, rtol=1e-6)
    np.testing.assert_allclose(Z, (values - values.mean()) / values.std(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("values", "informative"),
    [
        ([1e15, 1e15 + 8e3, 1e15 - 8e3], True),
        ([1e15, 1e15 + 1, 1e15 + 5], True),
        ([1.7e9, 1.7e9 + 2**-11, 1.7e9 + 2**-10], True),
        ([0.1 + 0.2, 0.3], True),
        ([1.7e308, np.nextafter(1.7e308, 0)], True),
        ([5e-324, 0.0], True),
        ([1.7e308, -1.7e308], True),
        ([0.0, 0.0], False),
        ([NAN, NAN], False),
        ([3.0, NAN], False),
    ],
)
def test_extreme_columns_are_encoded_finite(values, informative):
    table = read_columns(np.array(values)[:, None])
    encoding = fit_encoding(table)
    assert encoding.informative.tolist() == [informative]
    assert np.isfinite(encoding.center).all()
    assert np.isfinite(encoding.scale).all()
    assert (encoding.scale > 0).all()
    encoded = encode(table, encoding).real
    assert encoded.shape == (len(values), int(informative))
    assert np.isfinite(encoded).all()


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=20), st.integers(-(2**52), 2**52))
def test_standardising_keeps_digits(values, shift):
    assume(len(set(values)) > 1)

    def encoded(column):
        table = read_columns(np.array(column, dtype=float)[:, None])
        return encode(table, fit_encoding(table)).real[:, 0]

    # Only the centre is rounded, which moves all rows alike.
    near, far = encoded(values), encoded([value + shift for value in values])
    np.testing.assert_allclose(far - far[0], near - near[0], rtol=1e-12, atol=1e-12)


def test_times_microseconds_apart_are_distinct():
    times = pd.to_datetime(["2024-05-01T12:00:00.000001", "2024-05-01T12:00:00.000050", "2024-05-01T12:00:00.000051"])
    table = read_columns(pd.DataFrame({"t": times}))
    encoding = fit_encoding(table)
    assert encoding.informative.all()
    assert describe(table, encoding) == []


def test_rounding_differences_are_reported():
    table = read_columns(pd.DataFrame({"a": [0.1 + 0.2, 0.3, 0.3], "b": [1e15, 1e15 + 1, 1e15 + 2]}))
    encoding = fit_encoding(table)
    assert encoding.informative.all()
    (note,) = describe(table, encoding)
    check_named(note, "'a' 1e-14 rounding")


@pytest.mark.parametrize(
    "cells",
    [
        ["$1.5", "$2", "$30"],
        ["1,000", "2,500", "999"],
        ["10%", "12.5 %", "3%"],
        ["01/02/2020", "02/02/2020", "13/5/20"],
        ["5 Jan 2020", "6 Feb 2021", "Mar 7, 2021"],
        ["12:30", "1:15 pm", "23:59:59"],
        ["3 kg", "4.5 kg", "5 kg"],
        ["EUR 3", "EUR 4", "EUR 1.250,00"],
        ["<5", "<6", "7"],
        ["1.5", "2.5", "3"],
    ],
)
def test_numbers_as_text_are_reported(cells):
    table = read_columns(pd.DataFrame({"a": cells, "b": [1.0, 2.0, 3.0]}))
    assert [column.name for column in table.categorical] == ["a"]
    (remark,) = describe(table, fit_encoding(table))
    for part in (
        f"Column 'a' is text such as {cells[0]!r}",
        "as categories",
        "plain numbers",
        "leave the column",
    ):
        assert part in remark
    # Declared, it needs no word; and repeated values are categories.
    assert read_columns(pd.DataFrame({"a": cells}, dtype="category")).remarks == ()
    assert read_columns(pd.DataFrame({"a": cells}), ["a"]).remarks == ()
    assert read_columns(pd.DataFrame({"a": cells * 4})).remarks == ()


@pytest.mark.parametrize(
    "cells",
    [
        ["3a", "3b", "4c"],
        ["x1", "x2", "x3"],
        ["ABC1", "ABC2", "ABC3"],
        ["1st", "2nd", "3rd"],
        ["#1", "#2", "#3"],
        ["CO2", "H2O", "N2"],
        ["1.2.3.4", "1.2.3.5", "1.2.3.6"],
        ["+", "-", "0"],
        ["red", "green", "12"],
        ["1" + " " * 5000 + "!" * n for n in (1, 2, 3)],
    ],
)
def test_other_text_is_not_reported_as_numbers(cells):
    assert read_columns(pd.DataFrame({"a": cells})).remarks == ()


def test_many_numbers_as_text_are_reported_once():
    X = pd.DataFrame({"a": [f"${i}" for i in range(1001)]})
    with refused("'a' $0 1,001 plain"):
        read_columns(X)
    # Few enough, they are numbers rather than identifiers.
    assert len(read_columns(X[:50]).remarks) == 1


def test_extreme_new_rows_are_encoded_finite():
    table = read_columns([[1e-300], [2e-300]])
    far = encode(read_columns([[1e300], [-1e300]]), fit_encoding(table)).real[:, 0]
    assert np.isfinite(far**2).all()
    assert far[0] > 0 > far[1]


def test_encode_requires_columns_of_fit():
    encoding = fit_encoding(read_columns(MIXED))
    with pytest.raises(InputError, match=r"lacks 'i' and adds 'j'"):
        encode(read_columns(MIXED.rename(columns={"i": "j"})), encoding)
    with pytest.raises(InputError, match="another order"):
        encode(read_columns(MIXED[["t", "n", "i"]]), encoding)
    with pytest.raises(InputError, match="Column 'i' was real"):
        encode(read_columns(MIXED, ["i", "t"]), encoding)
    with pytest.raises(InputError, match=r"Column 't' .*categories_by_name"):
        encode(read_columns(MIXED[:1]), encoding)


def test_describe_reports_unused_columns():
    X = pd.DataFrame(
        {"x": [1.0, 2, NAN], "c": [5, 5, 5], "k": ["q", "q", "q"], "m": [NAN] * 3}, index=["r0", "r1", "r2"]
    )
    table = read_columns(X)
    assert describe(table, fit_encoding(table)) == [
        "2 columns are constant and ignored: 'c', 'k'.",
        "1 column has no observed cell and is ignored: 'm'.",
        "1 row has no observed cell in the columns used (row 'r2'): its place in the tree is arbitrary.",
    ]
    table = read_columns([[1.0], [2.0], *[[None]] * 7])
    assert describe(table, fit_encoding(table)) == [
        "7 rows have no observed cell in the columns used (rows 2, 3, 4, 5, 6 and 2 more): "
        "their place in the tree is arbitrary."
    ]
    table = read_columns([[1.0], [2.0]])
    assert describe(table, fit_encoding(table)) == []
    table = read_columns([[1.0], [1.0]])
    assert "No column has two different values" in describe(table, fit_encoding(table))[-1]


# -- cells that spoil a column ----------------------------------------------------------------------


def remarks_of(frame):
    table = read_columns(frame)
    return describe(table, fit_encoding(table))


def test_dominant_cell_is_reported():
    income = np.linspace(0, 1, 25)
    income[7] = 1e6
    table = pd.DataFrame({"income, '🦊'": income, "x": np.arange(25.0) ** 2})
    (note,) = remarks_of(table)
    for part in ("\"income, '🦊'\"", "1e+06 in row 7 (counted from 0)", "3.3e+06 standard deviations"):
        assert part in note
    table.iloc[7, 0] = NAN
    assert remarks_of(table) == []


def test_many_dominant_cells_are_reported_in_one_sentence():
    values = np.random.default_rng(0).random((30, 7))
    values[np.arange(7), np.arange(7)] = -1e300
    names = [f"<b>{j}</b>" for j in range(7)]
    (remark,) = remarks_of(pd.DataFrame(values, columns=names, index=[f"r{i}" for i in range(30)]))
    assert remark.startswith("Cells are extreme in columns '<b>0</b>' (-1e+300 in row 0 ('r0'), ")
    assert (
        "'<b>4</b>' (-1e+300 in row 4 ('r4'), more than 1e+150 standard deviations from the other rows), and 2 more"
        in remark
    )
    assert "Check them, " in remark


@pytest.mark.parametrize(("far", "is_reported"), [(30, False), (50, True)])
def test_dominant_cell_threshold_matches_definition(far, is_reported):
    """By definition: without the cell, 99 % of the sum of squares is gone."""
    values = np.r_[np.tile([-1.0, 1.0], 12), far]
    rest = 24.0
    assert (rest / np.sum((values - values.mean()) ** 2) < 0.01) == is_reported
    assert bool(remarks_of(pd.DataFrame({"x": values}))) == is_reported


@pytest.mark.parametrize(
    "values",
    [
        np.r_[np.linspace(0, 1, 18), 1e6],  # few cells
        np.r_[np.zeros(99), 1.0],  # yes or no
        np.r_[np.linspace(0, 1, 98), 1e6, 1e6],  # no single one
        np.exp(np.random.default_rng(0).normal(size=1000)),
        np.random.default_rng(0).pareto(2, size=1000),
    ],
)
def test_ordinary_columns_are_not_reported(values):
    assert remarks_of(pd.DataFrame({"x": values})) == []


# -- columns that say the same ----------------------------------------------------------------------


def test_copied_columns_are_reported():
    rng = np.random.default_rng(0)
    a, b, kind = rng.normal(size=40), rng.normal(size=40), rng.integers(0, 3, 40)
    a[3] = NAN
    table = pd.DataFrame(
        {
            "a": a,
            "b": b,
            "a in other units": -3 * a + 7,
            "kind": np.array(["x", "y", "z"])[kind],
            "a again": a,
            "kind, translated": np.array(["p", "o", "q"])[kind],
            "a but one": np.where(np.arange(40) == 5, 9.0, a),
            "a without": np.where(np.arange(40) == 5, NAN, a),
            "another kind": rng.permutation(np.array(["x", "y", "z"])[kind]),
            "kind, in part": np.where(np.arange(40) % 4 == 0, None, np.array(["u", "w", "v"])[kind]),
            "b but one, in part": np.where(np.arange(40) == 7, NAN, np.where(np.arange(40) == 8, 1.0, b)),
        }
    )
    (note,) = remarks_of(table)
    assert note.startswith("5 columns are copies of others")
    for part in ("'a in other units' of 'a'", "'a again' of 'a'", "'kind, translated' of 'kind'", "'a without' of 'a'"):
        assert part in note
    copies = ["a in other units", "a again", "kind, translated", "a without", "kind, in part"]
    assert remarks_of(table.drop(columns=copies)) == []


def test_many_copied_columns_are_reported_in_one_sentence():
    values = np.random.default_rng(0).normal(size=(30, 4))
    (remark,) = remarks_of(np.hstack([values, 1e6 + values, 1e-3 * values]))
    assert remark.startswith("8 columns are copies of others")
    assert "'x8' of 'x0'; and 3 more. " in remark


@given(st.integers(2, 12), st.integers(0, 10_000))
def test_columns_equal_by_chance_are_not_reported(n, seed):
    """Tables of two rows, or with few flags, have equal columns by chance."""
    flags = np.random.default_rng(seed).integers(0, 2, (n, 40)).astype(float)
    assert not any("cop" in remark for remark in remarks_of(flags))
    assert not any("cop" in remark for remark in remarks_of(pd.DataFrame(flags[:2]).map("{:.0f}".format)))


@pytest.mark.parametrize("n_twice", [1, 5, 40])
def test_nearly_distinct_texts_are_not_copies(n_twice):
    texts = pd.DataFrame({"price": [f"price {k}" for k in range(100)], "name": [f"thing {k}" for k in range(100)]})
    table = pd.concat([texts, texts[:n_twice]], ignore_index=True).assign(x=np.arange(100.0 + n_twice) ** 2)
    assert remarks_of(table) == []
    # Evidence is categories that occur again.
    again = pd.concat([texts[:30]] * 3, ignore_index=True).assign(x=np.arange(90.0) ** 2)
    (remark,) = remarks_of(again)
    assert "'name' of 'price'" in remark


def test_number_of_groupings_decides_on_copies():
    """Five pairs can be formed in 945 ways, four groups of three in 15,400: more than 4,000 are surprising in two columns."""
    for size, n_groups, is_copy in ((2, 5, False), (3, 4, True)):
        letters = np.repeat(list("abcde")[:n_groups], size)
        table = pd.DataFrame({"one": letters, "two": np.char.add(letters, letters)})
        assert len(remarks_of(table)) == is_copy


def test_copied_columns_match_correlation_one():
    """By definition, over all pairs."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=(25, 5)) @ rng.integers(-1, 2, (5, 30))
    values = values[:, values.std(axis=0) > 0]
    correlations = np.abs(np.corrcoef(values.T)) > 1 - 1e-12
    n_copies = sum(bool(correlations[j, :j].any()) for j in range(values.shape[1]))
    assert n_copies > 0
    (remark,) = remarks_of(values)
    assert remark.startswith(f"{n_copies} column")


def test_text_identifiers_with_missing_cells_are_ignored():
    names = [f"id {i}" for i in range(30)]
    names[3] = names[7] = None
    frame = pd.DataFrame({"id": names, "x": np.arange(30.0)})
    with pytest.warns(InputWarning, match=r"'id' has a different text in every row, missing cells aside"):
        table = read_columns(frame)
    assert table.columns[0].categories == ()
    frame.loc[3, "id"] = "id 0"  # repeated
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read_columns(frame).columns[0].categories) == 28


def test_sets_in_numeric_column_make_it_categorical_with_remark():
    frame = pd.DataFrame({"s": pd.Series([1.5, 2, {1.5, 2}, 30, 30], dtype=object), "x": np.arange(5.0)})
    table = read_columns(frame)
    assert table.columns[0].categories == (1.5, 2, 30)
    assert "'s'" in table.remarks[0]
    assert "sets of numbers" in table.remarks[0]
    assert read_columns(frame, categorical_features=["s"]).remarks == ()
    letters = frame.assign(s=["A", "B", {"A", "B"}, "C", "C"])
    assert read_columns(letters).remarks == ()
    states = frame.assign(s=[0, 1, {0, 1}, 2, 2])  # as in matrices of characters
    assert read_columns(states).remarks == ()
