"""New rows are read with the columns and categories of the fit."""

import datetime as dt
import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coaltree.errors import InputError, InputWarning
from coaltree.persist.schema import encoding_from_json, encoding_to_json
from coaltree.table.columns import CategoricalColumn, RealColumn, category_finder, read_columns
from coaltree.table.encoding import encode, fit_encoding, read_new_rows
from coaltree.table.read_file import read_file
from named import refused

FIT = pd.DataFrame({
    "t": ["b", "a", "c", "a"],
    "x": [1.0, 2.5, 3.0, 7.0],
    "f": [True, False, True, True],
    "k": pd.Categorical([3, 1, 2, 1]),
    "d": pd.to_datetime(["1970-01-02", "1970-01-05", "1970-01-03", "1970-01-09"]),
})  # fmt: skip
ENCODING = fit_encoding(read_columns(FIT))
NEW = pl.DataFrame({
    "t": ["c", None, "a"],
    "x": [None, 4.5, -1.0],
    "f": [False, None, True],
    "k": [2, None, 3],
    "d": [dt.datetime(1970, 1, 1, 12), None, dt.datetime(1970, 1, 4)],
})  # fmt: skip


def check(table, order=(0, 1, 2, 3, 4)):
    """Check that the rows of NEW were read, from columns that stand in some order."""
    assert table.column_names == ("t", "x", "f", "k", "d")
    assert [column.index for column in table.columns] == list(order)
    t, x, f, k, d = table.columns
    assert (t.codes.tolist(), t.categories) == ([2, -1, 0], ("a", "b", "c"))
    assert (f.codes.tolist(), f.categories) == ([0, -1, 1], (False, True))
    assert (k.codes.tolist(), k.categories) == ([1, -1, 2], (1, 2, 3))
    np.testing.assert_array_equal(x.values, [np.nan, 4.5, -1])
    np.testing.assert_array_equal(d.values, [0.5, np.nan, 3])
    assert all(len(column.unseen) == 0 for column in table.categorical)
    encoded = encode(table, ENCODING)
    np.testing.assert_array_equal(encoded.codes, [[2, 0, 1], [-1, -1, -1], [0, 1, 2]])
    center, scale = FIT["x"].mean(), FIT["x"].std(ddof=0)
    np.testing.assert_allclose(encoded.real[:, 0], (np.array([np.nan, 4.5, -1]) - center) / scale)


FRAMES = {
    "polars": lambda frame: frame,
    "pandas": lambda frame: frame.to_pandas(),
    "pandas of objects": lambda frame: pd.DataFrame(frame.to_dict(as_series=False), dtype=object),
    "pandas on arrow": lambda frame: frame.to_pandas(use_pyarrow_extension_array=True),
    "pandas nullable": lambda frame: frame.to_pandas().convert_dtypes(),
    "pyarrow": lambda frame: frame.to_arrow(),
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 2, 0, 1, 3]])
def test_frames_are_matched_by_name(kind, order):
    X = FRAMES[kind](NEW[:, order])
    table = read_new_rows(X, ENCODING)
    assert table.row_names is None
    check(table, [order.index(j) for j in range(5)])


@given(st.permutations(range(8)), st.sampled_from(sorted(FRAMES)))
def test_frames_may_have_other_order_and_columns(order, kind):
    strange = pl.DataFrame({"s": [[1], [2], [3]], "b": [b"x", b"y", b"z"], "i": [np.inf, 1.0, 2.0]})
    X = FRAMES[kind](pl.concat([NEW, strange], how="horizontal")[:, order])
    with pytest.warns(
        InputWarning, match=r"^Columns '[sbi]', '[sbi]', '[sbi]' did not occur .* are ignored\.$"
    ) as caught:
        table = read_new_rows(X, ENCODING)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    check(table, [order.index(j) for j in range(5)])


def test_extra_column_is_ignored_with_warning():
    with pytest.warns(InputWarning, match=r"^Column 'q' did not occur when the model was fit and is ignored\.$"):
        check(read_new_rows(NEW.with_columns(q=pl.lit(1)), ENCODING))


def test_arrays_and_lists_are_matched_by_position():
    rows = [list(row) for row in NEW.rows()]
    # A frame whose labels are no names is an array.
    for X in (rows, np.array(rows, dtype=object), pd.DataFrame(rows, dtype=object)):
        table = read_new_rows(X, ENCODING)
        assert table.n_rows == len(rows)
        check(table)


@pytest.mark.parametrize("X", [np.ones((2, 1)), [[1.0], [2.0]], pd.DataFrame([[1.0], [2.0]])])
def test_wrong_number_of_columns_is_rejected(X):
    encoding = fit_encoding(read_columns(np.eye(3)))
    with pytest.raises(
        ValueError, match=r"X has 1 features, but CoalescentClustering is expecting 3 features as input"
    ):
        read_new_rows(X, encoding)
    with refused("Imputer expecting 3 features input x0 x1 x2"):
        read_new_rows(X, encoding, estimator="Imputer")


def test_arrays_with_default_names_match_by_position():
    encoding = fit_encoding(read_columns(pd.DataFrame({"x1": [1.0, 2.0], "x0": [3.0, 5.0]})))
    table = read_new_rows(np.array([[1.0, 3.0]]), encoding)
    assert [(column.name, column.values.tolist()) for column in table.columns] == [("x1", [1.0]), ("x0", [3.0])]


def test_model_of_array_accepts_frames():
    encoding = fit_encoding(read_columns(np.array([[1.0, 2.0], [3.0, 5.0]])))

    def values(X):
        return [column.values.tolist() for column in read_new_rows(X, encoding).columns]

    assert values(pl.DataFrame({"p": [1.0], "q": [2.0]})) == [[1.0], [2.0]]
    assert values(pd.DataFrame({"p": [1.0], "q": [2.0]})) == [[1.0], [2.0]]
    assert values(pl.DataFrame({"x1": [1.0], "x0": [2.0]})) == [[2.0], [1.0]]
    with refused("X 3 features CoalescentClustering expecting 2"):
        values(pl.DataFrame({"p": [1.0], "q": [2.0], "r": [1.0]}))
    with pytest.raises(InputError, match=r"lacks the column 'x0' .*has 'p'"):
        values(pl.DataFrame({"p": [1.0], "x1": [2.0]}))


def test_numeric_column_labels_match():
    encoding = fit_encoding(read_columns(pd.DataFrame(np.array([[1.0, 2.0], [3.0, 5.0]]))))
    reordered = pd.DataFrame({1: [2.0], 0: [1.0]})
    assert [column.values.tolist() for column in read_new_rows(reordered, encoding).columns] == [[1.0], [2.0]]
    named = pl.DataFrame({"p": [1.0], "q": [2.0]})
    assert [column.values.tolist() for column in read_new_rows(named, encoding).columns] == [[1.0], [2.0]]


@pytest.mark.parametrize("kind", FRAMES)
def test_absent_columns_are_rejected(kind):
    with pytest.raises(InputError) as error:
        read_new_rows(FRAMES[kind](NEW.drop("x")), ENCODING)
    for part in ("lacks the column 'x'", "add the column", "missing cells"):
        assert part in str(error.value)
    with refused("columns x d y add"):
        read_new_rows(FRAMES[kind](NEW.drop("d").rename({"x": "y"})), ENCODING)


def test_columns_of_missing_cells_are_accepted():
    frames = (
        NEW.with_columns(pl.lit(None).alias(name) for name in NEW.columns),
        pd.DataFrame({name: [None] * 3 for name in NEW.columns}),
        pa.table({name: pa.nulls(3) for name in NEW.columns}),
    )
    for X in frames:
        encoded = encode(read_new_rows(X, ENCODING), ENCODING)
        assert np.isnan(encoded.real).all()
        assert (encoded.codes == -1).all()


def test_row_names_of_new_rows_are_kept():
    X = NEW.to_pandas().set_index(pd.Index(["p", "q", "r"]))
    assert read_new_rows(X, ENCODING).row_names == ("p", "q", "r")
    assert read_new_rows(NEW, ENCODING).row_names is None


# -------------------------------------------------------------------------------- other types


@pytest.mark.parametrize(
    "cells",
    [
        pd.Series([1, 2]),
        pd.Series([1, 2], dtype="Int8"),
        pd.Series([1.0, 2.0], dtype="float32"),
        pd.Series([False, True]) + 1,
        pd.Series(["1", 2], dtype=object),
        pd.Series(pd.Categorical([1, 2])),
        pl.Series([1, 2], dtype=pl.UInt8),
        pl.Series([1, 2]).cast(pl.Decimal(5, 2)),
    ],
)
def test_numbers_of_other_dtypes_are_converted(cells):
    encoding = fit_encoding(read_columns(pd.DataFrame({"x": [0.5, 1.5]})))
    X = pd.DataFrame({"x": cells}) if isinstance(cells, pd.Series) else pl.DataFrame({"x": cells})
    (column,) = read_new_rows(X, encoding).columns
    assert isinstance(column, RealColumn)
    assert column.values.tolist() == [1, 2]


def test_numeric_text_in_arrays_is_converted():
    encoding = fit_encoding(read_columns(np.array([[0.5], [1.5]])))
    assert read_new_rows(np.array([["1"], ["2.5"]]), encoding).real[0].values.tolist() == [1, 2.5]


@pytest.mark.parametrize("dtype", ["str", object, "category"])
def test_text_in_real_column_is_read_as_numbers_or_rejected(dtype):
    encoding = fit_encoding(read_columns(pd.DataFrame({"x": [0.5, 1.5], "y": [1.0, 2.0]})))

    def read(*cells):
        return read_new_rows(pd.DataFrame({"x": pd.Series(cells, dtype=dtype), "y": ["1", "2"]}), encoding)

    assert read("1.5", "2").real[0].values.tolist() == [1.5, 2.0]
    with refused("Column x row 0 1.5a held numbers model fit 1 of 2"):
        read("1.5a", "2")


@pytest.mark.parametrize(
    ("fit", "cells", "days"),
    [
        (["2015-12-23", "2016-01-02"], ["2015-12-24", "2015-12-24T12:00"], [16793.0, 16793.5]),
        (["$ 1,250.50", "$ 3"], ["$ 2,000", "7.5"], [2000.0, 7.5]),
        (["12.5%", "3%"], ["7%", "8.5%"], [7.0, 8.5]),
        (["5 kg", "7.5 kg"], ["6 kg", "6.5"], [6.0, 6.5]),
        (["1.250,5", "3,5"], ["1.250", "2,5"], [1250.0, 2.5]),
    ],
)
def test_text_is_read_as_in_the_file_of_the_fit(tmp_path, fit, cells, days):
    (tmp_path / "t.csv").write_text("x;y\n" + "".join(f"{cell};{i}\n" for i, cell in enumerate(fit)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        file = read_file(tmp_path / "t.csv", id_column="")
    table = read_columns(file.frame, notations=file.notations)
    encoding = encoding_from_json(json.loads(json.dumps(encoding_to_json(fit_encoding(table)))))
    for frame in (pd.DataFrame({"x": cells, "y": [1, 2]}), pl.DataFrame({"x": cells, "y": ["1", "2"]})):
        assert read_new_rows(frame, encoding).real[0].values.tolist() == days
    with refused("x row 1 'no' held"):
        read_new_rows(pd.DataFrame({"x": [cells[0], "no"], "y": [1, 2]}), encoding)


@pytest.mark.parametrize(
    ("fit", "new"),
    [
        (["a", "b"], np.array(["b", "a"])),
        (pd.Categorical(["a", "b"]), pd.Series(["b", "a"], dtype="string")),
        (["a", "b"], pd.Series(pd.Categorical(["b", "a"], categories=["b", "z", "a"]))),
        (["a", "b"], pl.Series(["b", "a"], dtype=pl.Categorical)),
        (["a", "b"], pl.Series(["b", "a"], dtype=pl.Enum(["b", "a"]))),
        (pd.Categorical([1, 2]), ["2", "1"]),
        (pd.Categorical([1, 2]), [2.0, 1.0]),
        (pd.Categorical([1, 2]), ["2.0", "1.0"]),
        (pd.Categorical([1.5, 2]), ["2", "1.50"]),
        (pd.Categorical(["1", "2"]), [2, 1]),
        (pd.Categorical(["1.0", "2.0"]), [2, 1]),
        (pd.Categorical(["001", "2"]), [2, 1]),
        ([False, True], ["true", "FALSE"]),
        ([False, True], [1, 0]),
        (["false", "true"], [True, False]),
    ],
)
def test_categories_of_other_dtypes_match(fit, new):
    encoding = fit_encoding(read_columns(pd.DataFrame({"t": fit})))
    frame = pl.DataFrame({"t": new}) if isinstance(new, pl.Series) else pd.DataFrame({"t": new})
    (column,) = read_new_rows(frame, encoding).columns
    assert isinstance(column, CategoricalColumn)
    assert column.codes.tolist() == [1, 0]


def test_text_categories_match_exactly():
    find = category_finder(["7", "007", "1", "True", "nan", "1_0"])
    assert [find(value) for value in ("7", "007", "07", "1.0", "true", "a")] == [0, 1, -1, -1, -1, -1]
    assert [find(value) for value in (7, 7.0, 1, True, float("nan"), 10)] == [0, 0, 2, 3, 4, -1]
    assert [category_finder([1, 2])(value) for value in ("1", "1.0", "01", "1_", "x", 10**400)] == [0, 0, 0, -1, -1, -1]


# -------------------------------------------------------------------------- unseen categories


def test_unseen_categories_are_read_as_missing():
    X = NEW.with_columns(t=pl.Series(["z", None, "y"]), k=pl.Series([9, 2, 9]))
    with pytest.warns(InputWarning) as caught:
        table = read_new_rows(X, ENCODING)
    (warning,) = caught
    assert warning.filename == __file__
    assert str(warning.message) == (
        "Categories that did not occur when the model was fit are read as missing; column 't': 'y' (1 row), 'z' (1 row); "
        "column 'k': 9 (2 rows)."
    )
    t, f, k = table.categorical
    assert (t.codes.tolist(), t.unseen.tolist()) == ([-1, -1, -1], [0, 2])
    assert (k.codes.tolist(), k.unseen.tolist()) == ([-1, 1, -1], [0, 2])
    assert (f.codes.tolist(), f.unseen.tolist()) == ([0, -1, 1], [])
    assert f.unseen.dtype == np.intp


def test_many_unseen_categories_warn_once():
    encoding = fit_encoding(read_columns(pd.DataFrame({"t": ["a", "b"]})))
    with pytest.warns(InputWarning, match=r"'x' \(1 row\) and 2 more\.$"):
        read_new_rows(pd.DataFrame({"t": [*"axyzcde", "v"]}), encoding)


def test_unseen_categories_can_be_rejected():
    X = NEW.to_pandas().assign(t=[None, "a", "z"]).set_index(pd.Index(["p", "q", "r"]))
    with pytest.raises(InputError) as error:
        read_new_rows(X, ENCODING, unseen="error")
    assert str(error.value) == (
        "Column 't' holds 'z' in row 2 ('r'), which did not occur when the model was fit (known are 'a', 'b', 'c'): fix "
        'the cell, mark it as missing, or have such cells read as missing (unseen_categories="missing", on '
        "the command line --unseen missing)."
    )
    check(read_new_rows(NEW, ENCODING, unseen="error"))


def test_unseen_category_in_empty_column():
    encoding = fit_encoding(read_columns(pd.DataFrame({"t": pd.Series([None, None], dtype="str"), "x": [1, 2]})))
    t, _ = read_new_rows(pd.DataFrame({"t": ["a"], "x": [1]}), encoding, unseen="error").columns
    assert (t.codes.tolist(), t.unseen.tolist()) == ([-1], [0])  # the fit ignored the column


@pytest.mark.parametrize("unseen", ["ignore", None, "Missing"])
def test_invalid_unseen_option_is_rejected(unseen):
    with pytest.raises(InputError, match=f"unseen is {unseen!r}; it must be 'missing' or 'error'"):
        read_new_rows(NEW, ENCODING, unseen=unseen)


@given(st.lists(st.one_of(st.none(), st.sampled_from("abcxyz")), min_size=1, max_size=12))
def test_cells_are_either_known_missing_or_unseen(cells):
    encoding = fit_encoding(read_columns(pd.DataFrame({"t": list("abc")})))
    X = pl.DataFrame({"t": cells}, schema={"t": pl.String})
    if set(cells) & set("xyz"):
        with pytest.warns(InputWarning, match="read as missing"):
            (column,) = read_new_rows(X, encoding).columns
    else:
        (column,) = read_new_rows(X, encoding).columns
    known = [column.categories[code] if code >= 0 else None for code in column.codes]
    assert known == [cell if cell in ("a", "b", "c") else None for cell in cells]
    assert column.unseen.tolist() == [i for i, cell in enumerate(cells) if cell in ("x", "y", "z")]


# ---------------------------------------------------------------------------------- bad cells


def test_only_columns_of_fit_are_checked():
    with refused("1 infinite cell first column x row"):
        read_new_rows(NEW.with_columns(x=pl.Series([1.0, np.inf, 1.0])), ENCODING)
    with pytest.raises(InputError, match=r"Column 'x' is of type List"):
        read_new_rows(NEW.with_columns(x=pl.Series([[1], [2], [3]])), ENCODING)


def test_training_rows_are_read_as_in_fit():
    table = read_columns(FIT)
    again = encode(read_new_rows(FIT, ENCODING), ENCODING)
    first = encode(table, ENCODING)
    np.testing.assert_array_equal(again.real, first.real)
    np.testing.assert_array_equal(again.codes, first.codes)
    # Identifiers and written numbers are the business of the fit.
    assert read_new_rows(FIT, ENCODING).remarks == ()
