"""Unusual tables: odd names, damaged files, extreme numbers, and objects of other libraries."""

import datetime as dt
import gzip
import os
import re
import subprocess
import sys
import tracemalloc
from decimal import Decimal

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
from sklearn.metrics import adjusted_rand_score

import coaltree as ct
from coaltree._validation import quote
from coaltree.errors import InputError, InputWarning
from coaltree.table import limits
from coaltree.table.cells import TextCells
from coaltree.table.columns import read_columns
from coaltree.table.encoding import fit_encoding, read_new_rows
from coaltree.table.fill import fill_cells, fill_file
from coaltree.table.read_file import compress, decompress, open_bytes, read_file
from command_line import command_in
from named import refused

LONG = "y" * 100_000


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no text")


# ------------------------------------------------------------------------------------- column names


@pytest.mark.parametrize("name", ["literal", "^a.*$", "*", "len", "column"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_column_names_are_not_expressions(tmp_path, name, kind):
    frame = pl.DataFrame({"id": ["p", "q", "r"], name: ["1.5", None, "2.5"], "ab": ["u", "v", None]})
    path = tmp_path / f"t.{kind}"
    frame.write_csv(path) if kind == "csv" else frame.write_parquet(path)
    file = read_file(path, real=[name], categorical=["ab"])
    assert (file.id_column, file.frame.columns) == ("id", [name, "ab"])
    assert file.frame[name].to_list() == [1.5, None, 2.5]
    for options in ({"id_column": name}, {"drop": [name]}, {"categorical": [name]}):
        read_file(path, **options)
    real, categorical = read_columns(file.frame).columns
    assert (real.name, categorical.name) == (name, "ab")
    filled = fill_cells(file.frame, {0: ([1], [7.0]), 1: ([2], ["v"])})
    assert filled.columns == [name, "ab"]
    assert filled.rows()[1:] == [(7.0, "v"), (2.5, "v")]
    (tmp_path / f"f.{kind}").write_bytes(fill_file(path, {name: ([1], ["7"]), "ab": ([2], ["v"])}))
    again = read_file(tmp_path / f"f.{kind}", id_column="").frame
    assert again.columns == ["id", name, "ab"]
    assert [float(cell) for cell in again[name]] == [1.5, 7.0, 2.5]


def test_empty_column_name_is_accepted():
    filled = fill_cells(pl.DataFrame({"": [1.0, None]}), {0: ([1], [2.0])})
    assert (filled.columns, filled.rows()) == ([""], [(1.0,), (2.0,)])


def test_column_labels_of_mixed_types_are_rejected():
    for labels in (["a", 1], ["a", None], ["a", (1, 2)], ["a", float("nan")]):
        X = pd.DataFrame(np.ones((3, 2)), columns=pd.Index(labels, dtype=object, tupleize_cols=False))
        with refused("names text", TypeError):
            ct.CoalescentClustering().fit(X)
    with refused("Unprintable text"):
        read_columns(pd.DataFrame({"a": [1.0], Unprintable(): [1.0]}))


# -------------------------------------------------------------------------------------------- files


def test_damaged_parquet_files_are_read_or_rejected(tmp_path):
    """The file is read, or an error message names it, whatever polars raises."""
    rng = np.random.default_rng(0)
    pl.DataFrame({"x": rng.normal(size=50), "t": ["u", "v"] * 25}).write_parquet(tmp_path / "t.parquet")
    good = (tmp_path / "t.parquet").read_bytes()
    messages = []
    for k in range(200):
        data = bytearray(good)
        for _ in range(1 + k % 8):
            data[rng.integers(4, len(data) - 4)] ^= 1 << int(rng.integers(8))
        (tmp_path / "bad.parquet").write_bytes(data)
        try:
            read_file(tmp_path / "bad.parquet")
        except InputError as error:
            messages.append(str(error))
    assert len(messages) > 20
    assert all(("bad.parquet" in message or "Column" in message) and len(message) < 1000 for message in messages)


def test_polars_panic_becomes_error_message(tmp_path, monkeypatch, capfd):
    class PanicException(BaseException):
        pass

    def panic(data):
        os.write(2, b"thread panicked at x.rs\nstack backtrace:\n")
        raise PanicException("index out of bounds")

    monkeypatch.setattr(pl, "read_parquet", panic)
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    with refused("t.parquet damaged"):
        read_file(tmp_path / "t.parquet")
    assert capfd.readouterr().err == ""
    monkeypatch.setattr(pl, "read_parquet", lambda data: os.write(2, b"a warning\n") and pl.DataFrame({"x": [1.0]}))
    read_file(tmp_path / "t.parquet")
    assert capfd.readouterr().err == "a warning\n"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("compressed", [False, True])
def test_utf16_text_with_byte_order_mark_is_read(tmp_path, encoding, compressed):
    """Spreadsheet programs write "Unicode text" in UTF-16."""
    data = "id\tgröße\tk\r\na\t1,5\tü\r\nb\t\tv\r\nc\t3,5\tü\r\n".encode(encoding)
    path = tmp_path / ("t.txt.gz" if compressed else "t.txt")
    path.write_bytes(gzip.compress(data) if compressed else data)
    with pytest.warns(InputWarning, match="decimal commas"):
        file = read_file(path)
    assert (file.row_names, file.frame.columns) == (("a", "b", "c"), ["größe", "k"])
    assert file.frame["größe"].to_list() == [1.5, None, 3.5]
    filled = fill_file(path, {"größe": ([1], [2.5])})
    filled = gzip.decompress(filled) if compressed else filled
    assert filled.decode("utf-8-sig") == data.decode(encoding).replace("b\t\t", "b\t2,5\t")
    assert open_bytes(data, "standard input").suffix == ".tsv"


def test_trailing_delimiters_are_handled(tmp_path, monkeypatch, capsys):
    (tmp_path / "t.csv").write_text("id,x,k,\n" + "".join(f"r{i},{i if i else ''},{'uv'[i % 2]},\n" for i in range(9)))
    assert read_file(tmp_path / "t.csv").frame.columns == ["x", "k", "Unnamed: 3"]
    run = command_in(tmp_path, monkeypatch, capsys)
    code, _, err = run("impute", "t.csv", "-o", "f.csv")
    assert code == 0
    assert "'Unnamed: 3'" in err
    lines = (tmp_path / "f.csv").read_text().splitlines()
    assert lines[0] == "id,x,k,"
    assert all(line.endswith(",") and ",," not in line for line in lines)
    (tmp_path / "t.csv").write_text("id,x,k,\na,1,u,\nb,2,v,9\n")
    with refused("Column 4 name header"):
        read_file(tmp_path / "t.csv")


def test_file_without_header_warns(tmp_path):
    (tmp_path / "t.csv").write_text("5.1,3.5,a\n4.9,3.0,b\n4.7,3.2,a\n")
    with pytest.warns(InputWarning, match="no header"):
        read_file(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("2019,2020,a\n4.9,3.0,b\n4.7,3.2,a\n")
    read_file(tmp_path / "t.csv")


# --------------------------------------------------------------------------------- dates and durations

DURATIONS = [dt.timedelta(hours=h) for h in (1, 2, 3, 50, 51)] + [None]
DATES = [dt.date(2020, 1, day) for day in (1, 2, 3, 20, 21)] + [None]
X = [0.0, 0.1, 0.2, 5.0, 5.1, 5.2]


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame({"d": DURATIONS, "x": X}),
        pa.table({"d": pa.array(DURATIONS), "x": X}),
        pa.table({"d": pa.array(DATES), "x": X}),
        pd.DataFrame({"d": pd.array(DATES, dtype=pd.ArrowDtype(pa.date32())), "x": X}),
        pd.DataFrame({"d": pd.array(DURATIONS, dtype=pd.ArrowDtype(pa.duration("ms"))), "x": X}),
    ],
    ids=["polars duration", "arrow duration", "arrow date", "pandas arrow date", "pandas arrow duration"],
)
@pytest.mark.usefixtures("short_chains")
def test_durations_and_arrow_dates_are_filled(frame):
    filled = ct.CoalescentImputer(noise=0.1).fit_transform(frame)
    assert type(filled) is type(frame)
    (column, _) = read_columns(filled).columns
    assert column.values[:5].tolist() == read_columns(frame).columns[0].values[:5].tolist()
    assert np.isfinite(column.values).all()
    # New rows of questions to a model are read in this way.
    (new, _) = read_new_rows(frame, fit_encoding(read_columns(frame))).columns
    assert new.values[:5].tolist() == column.values[:5].tolist()


@pytest.mark.usefixtures("short_chains")
def test_commands_accept_durations(tmp_path, monkeypatch, capsys):
    frame = pl.DataFrame({"id": list("abcdef"), "took": DURATIONS, "day": DATES, "x": X})
    frame.write_parquet(tmp_path / "t.parquet")
    run = command_in(tmp_path, monkeypatch, capsys)
    model = "out/model.coaltree"
    for arguments in (
        ("fit", "t.parquet", "-o", "out"),
        ("score", model, "t.parquet", "-o", "s.csv"),
        ("place", model, "t.parquet", "-o", "p.csv"),
        ("impute", "t.parquet", "--model", model, "-o", "f.parquet"),
    ):
        code, _, err = run(*arguments)
        assert (code, err if code else "") == (0, "")
    filled = pl.read_parquet(tmp_path / "f.parquet")
    assert filled.schema == frame.schema
    assert filled.null_count().row(0) == (0, 0, 0, 0)
    assert filled[:5].equals(frame[:5])


# ------------------------------------------------------------------------------------------ wide tables


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")  # some columns are constant
@pytest.mark.parametrize("kind", ["real", "categorical"])
def test_memory_of_wide_tables_grows_with_the_cells(kind):
    """Products of all pairs of columns would take ten times as much or more."""
    rng, peaks = np.random.default_rng(0), []
    for n_columns in (10, 400, 1300):  # the first one loads what is loaded late
        table = rng.normal(size=(5, n_columns)) if kind == "real" else rng.choice(list("uvw"), size=(5, n_columns))
        tracemalloc.start()
        try:
            ct.CoalescentClustering().fit(table)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[2] < 4 * peaks[1]


@pytest.mark.filterwarnings("ignore:.*depend on no other column")
def test_many_real_columns_are_clustered():
    """A table such as those of gene expression, which once failed an assertion."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 4, size=400)
    table = rng.normal(rng.normal(size=(4, 2000))[group], 1.0)
    labels = ct.CoalescentClustering().fit(table).labels_
    assert adjusted_rand_score(group, labels) == 1


# --------------------------------------------------------------------------------------------- numbers


def test_large_integers_are_read_as_floats():
    cells = [2**63 + 4096 * i for i in range(5)] + [None]
    expected = [float(cell) for cell in cells[:5]]
    for X in (
        pl.DataFrame({"u": pl.Series(cells, dtype=pl.UInt64)}),
        pa.table({"u": pa.array(cells, pa.uint64())}),
        pd.DataFrame({"u": pd.array(cells, dtype="UInt64")}),
        [[cell] for cell in cells],
    ):
        (column,) = read_columns(X).columns
        assert column.values[:5].tolist() == expected
        assert np.isnan(column.values[5])


def test_signalling_nan_among_text_is_missing():
    """It has no hash, and text is encoded by a dictionary."""
    codes, labels = TextCells(["b", Decimal("sNaN"), "a", None], False).as_categorical()
    assert codes.tolist() == [1, -1, 0, -1]
    assert labels == ("a", "b")


def test_signalling_nan_is_missing():
    cells = [Decimal("sNaN"), Decimal(1), Decimal("NaN"), Decimal(3)]
    for X in ([[cell] for cell in cells], pd.DataFrame({"d": pd.Series(cells, dtype=object)})):
        assert np.isnan(read_columns(X).columns[0].values).tolist() == [True, False, True, False]
    assert fill_cells([[cell] for cell in cells], {0: ([0, 2], [5.0, 6.0])})[:, 0].tolist() == [5, 1, 6, 3]


def test_largest_floats_are_accepted():
    table = np.array([[1e308 * (-1) ** i, i] for i in range(12)])
    model = ct.CoalescentClustering().fit(table)
    numbers = [v for column in model.parameters_.values() for v in column.values() if isinstance(v, float)]
    assert numbers
    assert np.isfinite(numbers).all()
    with refused("'x0' 1e+308 row 0 standardize"):
        ct.CoalescentClustering(standardize=False).fit(table)


@pytest.mark.usefixtures("short_chains")
def test_prediction_parameters_of_largest_floats_are_finite():
    model = ct.CoalescentClustering().fit([[1.7e308], [-1.7e308], [1.0]])
    numbers = [v for v in model.prediction_parameters_["x0"].values() if isinstance(v, float)]
    assert len(numbers) > 3
    assert np.isfinite(numbers).all()


def test_long_doubles_beyond_float64_are_rejected():
    table = np.array([["1e400"], ["1"], ["2"]]).astype(np.longdouble)
    if np.finfo(np.longdouble).max == np.finfo(np.float64).max:
        pytest.skip("no longer floats here")
    with refused("infinite row 0"):
        ct.CoalescentClustering().fit(table)
    with refused("infinite row 0"):
        ct.greedy(table, ct.Brownian())


# --------------------------------------------------------------------------------------------- objects


def test_unsupported_objects_are_rejected():
    with refused("Dataset to_dataframe", TypeError):
        read_columns(xr.Dataset({"a": ("i", [1.0, 2.0])}))
    assert read_columns(xr.DataArray(np.ones((3, 2)))).n_rows == 3
    with refused("'x0' Unprintable row 1", TypeError):
        read_columns([[1.0], [Unprintable()]])
    with refused("entry 1 Unprintable"):
        read_columns([[1.0], Unprintable()])
    with refused("categorical_features Unprintable"):
        read_columns([[1.0]], Unprintable())


@pytest.mark.parametrize("chunks", [(10, 4), (10, 2)])
def test_dask_arrays_of_unknown_length_are_read(chunks):
    values = np.random.default_rng(0).normal(size=(40, 4))
    array = da.from_array(values, chunks=chunks)
    array = array[array[:, 0] > 0]
    got = np.column_stack([column.values for column in read_columns(array).columns])
    np.testing.assert_array_equal(got, values[values[:, 0] > 0])


def test_long_texts_in_messages_are_shortened():
    def number_with_text(name="a", cell="x", index=None):
        return pd.DataFrame({name: [1.0] * 11 + [cell]}, dtype=object, index=index)

    for X in (
        number_with_text(cell=LONG),
        number_with_text(name=LONG),
        number_with_text(index=[f"{LONG}{i}" for i in range(12)]),
        [[1.0]] * 11 + [[LONG]],
        [[LONG.encode()]] * 3,
        np.array([LONG] * 5),
    ):
        with pytest.raises(InputError) as error:
            read_columns(X)
        assert len(str(error.value)) < 600
    with pytest.raises(InputError) as error:
        read_columns([[1.0]], LONG)
    assert len(str(error.value)) < 600
    assert quote(LONG).startswith("'yyy")


def test_long_parameter_values_in_messages_are_shortened():
    for value in (LONG, Unprintable(), [LONG]):
        with pytest.raises(InputError) as error:
            ct.CoalescentClustering(noise=value).fit([[1.0], [2.0]])
        assert len(str(error.value)) < 600
    with refused("process 1"):
        ct.log_joint(ct.simulate_tree(2, random_state=0), [[1.0], [2.0]], 1)


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "t.csv", "--dry-run", "--inference", LONG),
        ("fit", "t.csv", "--dry-run", "--dask", LONG),
        ("fit", "t.csv", "--dry-run", "--drop", LONG),
        ("fit", "t.csv", "-o", LONG),
        ("fit", LONG, "-o", "out"),
        ("fit", "t.nex", "-o", "out"),
        ("convert", "t.nex", "o.nwk"),
        ("score", LONG, "t.csv"),
        (LONG,),
    ],
    ids=lambda arguments: " ".join(arguments)[:30],
)
def test_commands_shorten_quoted_texts(arguments, tmp_path, monkeypatch, capsys):
    (tmp_path / "t.csv").write_text("x,y\n1,2\n3,4\n")
    (tmp_path / "t.nex").write_text(f"#NEXUS\nbegin {LONG};\nmatrix;\nend;\n")
    code, _, err = command_in(tmp_path, monkeypatch, capsys)(*arguments)
    assert code == 2
    assert max(map(len, err.splitlines())) < 1000


def test_simulation_beyond_memory_is_rejected(tmp_path, monkeypatch, capsys):
    run = command_in(tmp_path, monkeypatch, capsys)
    for arguments in (("99999999999",), ("1000", "--real", "9999999999")):
        code, _, err = run("simulate", *arguments, "-o", "o.csv")
        assert code == 2
        assert "memory" in err.splitlines()[-1]


def test_covariance_of_largest_floats_is_finite():
    process = ct.Brownian(np.diag([1.7e308, 1.7e308]))
    assert np.isfinite(process.variance).all()


def test_odd_arguments_are_rejected_briefly(tmp_path):
    with refused("n_jobs"):
        ct.CoalescentClustering(n_jobs=np.array([1, 2])).fit([[1.0], [2.0]])
    with refused("state set"):
        ct.state_set([0, 1])
    model = ct.CoalescentClustering().fit([[1.0], [2.0], [3.0]])
    for call in (model.save, ct.load_model):
        for path in (LONG, tmp_path / LONG):
            with pytest.raises(InputError, match="255 bytes") as error:
                call(path)
            assert len(str(error.value)) < 600


class NotANumber:
    def __float__(self):
        raise RuntimeError("no number")


def test_cells_with_failing_conversion_are_rejected():
    with refused("numbers"):
        ct.greedy([[1.0], [NotANumber()]], ct.Brownian())


def test_durations_and_empty_texts_can_be_categories(tmp_path):
    frame = pl.DataFrame({"d": [dt.timedelta(1), None, dt.timedelta(2)], "t": ["u", "", "v"]})
    frame.write_parquet(tmp_path / "t.parquet")
    actual = read_file(tmp_path / "t.parquet", categorical=["d", "t"], id_column="").frame
    assert actual["t"].to_list() == ["u", None, "v"]
    assert actual["d"].null_count() == 1
    assert actual["d"].n_unique() == 3


def test_unhashable_labels_are_rejected():
    labels = pd.Index([Decimal("sNaN"), "a"], dtype=object)
    with refused("names text", TypeError):
        read_columns(pd.DataFrame(np.ones((2, 2)), columns=labels))


def test_half_precision_floats_can_be_categories():
    (column,) = read_columns(np.array([[1], [2], [1]], dtype=np.float16), [0]).columns
    assert column.categories == (1, 2)


def test_model_of_one_row_can_be_loaded(tmp_path):
    with pytest.warns(InputWarning, match="one row"):
        model = ct.CoalescentClustering().fit([[1.0, 2.0]])
    density = model.score_samples([[1.0, 2.5]])
    model.save(tmp_path / "m.coaltree")
    assert ct.load_model(tmp_path / "m.coaltree").score_samples([[1.0, 2.5]]).tolist() == density.tolist()


def test_intervals_of_largest_floats_are_finite():
    table = np.array([[1e308 * (-1) ** i, i] for i in range(6)])
    table[0, 0] = np.nan
    imputer = ct.CoalescentImputer(random_state=0).fit(table)
    cells = imputer.predictive(table)["x0"]
    assert np.isfinite([*cells.interval(0.9), cells.sd]).all()


# ---------------------------------------------------------------------------------------------- limits


def test_large_tables_are_rejected_before_any_work():
    with refused("100,000,001 rows 100,000,000 GiB"):
        read_columns(np.broadcast_to(1.0, (100_000_001, 2)))
    with refused("200,000 columns 100,000"):
        read_columns(np.broadcast_to(1.0, (2, 200_000)))
    with refused("3,000,000,000 cells 2,000,000,000 22 GiB"):
        read_columns(da.zeros((50_000, 60_000), chunks=(1000, 60_000)))


def test_large_files_are_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MAX_FILE_BYTES", 1000)
    (tmp_path / "t.csv").write_text("x\n" + "1\n" * 1000)
    with refused("t.csv GiB"):
        read_file(tmp_path / "t.csv")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"x\n" + b"1\n" * 100_000))
    assert (tmp_path / "t.csv.gz").stat().st_size < 1000
    with refused("t.csv.gz GiB"):
        read_file(tmp_path / "t.csv.gz")


def test_small_compressed_files_take_little_memory():
    text = b"x,y\n" + b"1,2\n" * 100
    packed = gzip.compress(text)
    tracemalloc.start()
    try:
        assert decompress(packed, "t.csv.gz") == text
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
    assert gzip.decompress(compress(text * 5000)) == text * 5000


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is limited as on Linux")
def test_decompression_that_exceeds_free_memory_is_explained():
    """400 MB where 200 MB are left."""
    script = """
import gzip, resource
from coaltree.errors import InputError
from coaltree.table.read_file import decompress
packed = gzip.compress(b"1\\n" * 10_000_000, compresslevel=1) * 20
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 200_000_000,) * 2)
try:
    decompress(packed, "t.csv.gz")
except InputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("t.csv.gz has more than ")
    assert "MiB" in done.stdout


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is limited as on Linux")
@pytest.mark.parametrize(("mib", "code"), [(300, 2), (1000, 0)])
def test_command_line_needs_a_gigabyte_of_addresses(tmp_path, mib, code):
    """A fit reserves 1.5 GB where nothing limits it; libraries abort, or try forever, where they get too little."""
    (tmp_path / "t.csv").write_text("a,b\n1,2\n2,3\n3,5\n")
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({mib} * 2**20,) * 2)"
    script = (
        f"{limit}; import sys; from coaltree.__main__ import main; sys.argv[1:] = ['fit', 't.csv', '--dry-run']; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == code
    assert code == 0 or re.fullmatch(r"coaltree: .*300 MB.*1000 MB.*\n", done.stderr)


def test_spreadsheet_formulas_are_kept_as_text(tmp_path, monkeypatch, capsys):
    """Formulas are not escaped; the documentation warns that a spreadsheet may execute them."""
    names = ["=1+1", "+1", "-1+2", "@SUM(A1)", '=HYPERLINK("x","y")', "plain"]
    table = pl.DataFrame(
        {"id": names, "=x": [1.0, None, 2.0, 3.0, 8.0, 9.0], "c": ["@u", "-v", "@u", "=w", "=w", None]}
    )
    table.write_csv(tmp_path / "t.csv")
    run = command_in(tmp_path, monkeypatch, capsys)
    assert run("fit", "t.csv", "-o", "out")[0] == 0
    assert pl.read_csv(tmp_path / "out" / "clusters.csv", has_header=True)[:, 0].to_list() == names
    assert run("impute", "t.csv", "-o", "filled.csv")[0] == 0
    filled = pl.read_csv(tmp_path / "filled.csv")
    assert filled.columns == table.columns
    assert filled["id"].to_list() == names
    assert filled["c"].to_list()[:5] == table["c"].to_list()[:5]


def test_report_with_largest_floats_and_long_name(tmp_path, monkeypatch, capsys):
    name = "n" * 3000
    rows = "".join(f"r{i},{1.7e308 * (-1) ** i if i > 9 else i},{i % 3}\n" for i in range(12))
    (tmp_path / "t.csv").write_text(f"{name},x,y\n{rows}")
    code, _, err = command_in(tmp_path, monkeypatch, capsys)("fit", "t.csv", "-o", "out", "--report")
    assert code == 0
    assert max(map(len, err.splitlines())) < 600
