"""Missing cells of files are filled in."""

import csv
import datetime as dt
import gzip
import io
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coaltree.errors import InputError, MissingDependencyError
from coaltree.table.columns import read_columns
from coaltree.table.fill import fill_file
from coaltree.table.read_file import read_file

EPOCH = dt.datetime(1970, 1, 1)


@pytest.fixture(scope="module")
def write(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")

    def write(content, name="table.csv"):
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def fill(path, fills, **options):
    return fill_file(path, fills, **options).decode()


def fill_column(write, cells, value, name="t.csv"):
    """Fill the cells NA of a column, and give its cells."""
    path = write("".join(f"{cell}\n" for cell in ["x", *cells]), name)
    rows = [i for i, cell in enumerate(cells) if cell == "NA"]
    return fill(path, {"x": (rows, [value] * len(rows))}).split("\n")[1:-1]


# ---------------------------------------------------------------------------- other cells stay

PLAIN = 'id,x,"y" ,t\r\na, 1,0.50,"u"\r\n\r\n"b",NA,?,v\r\nc,03,-1e3, NA '
WRITTEN = "id,x,y ,t\r\na, 1,0.50,u\r\nb,NA,?,v\r\nc,03,-1e3, NA \r\n"
FILLED = "id,x,y ,t\r\na, 1,0.50,u\r\nb,2,1.25,v\r\nc,03,-1e3,u\r\n"
FILLS = {"x": ([1], np.array([2.4])), "y": ([1], np.array([1.25])), "t": ([2], ["u"])}


@pytest.mark.parametrize("ending", ["\r\n", "\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("name", "delimiter"),
    [("t.csv", ","), ("t.csv", ";"), ("t.txt", "|"), ("t.tsv", "\t"), ("t.tsv", ","), ("t.TXT", "\t")],
)
def test_fill_file_keeps_other_cells(write, ending, mark, last, name, delimiter):
    def content(text):
        return mark + text.replace("\r\n", ending).replace(",", delimiter).encode()

    original = content(PLAIN + "\r\n" * last)
    path = write(original, name)
    assert fill_file(path, FILLS) == content(FILLED)
    assert fill_file(str(path), FILLS) == content(FILLED)
    assert fill_file(path, {}) == content(WRITTEN)
    assert path.read_bytes() == original
    packed = fill_file(write(gzip.compress(original), name + ".gz"), FILLS)
    assert gzip.decompress(packed) == content(FILLED)
    assert packed[4:8] == bytes(4)  # the time of compression
    assert packed == fill_file(write(gzip.compress(original, 1), name + ".gz"), FILLS)


RAW = {
    "i": st.one_of(st.integers(-99, 99).map(str), st.integers(0, 9).map(lambda n: f'"{n}"'), st.just(" 007 ")),
    "f": st.one_of(st.floats(-1e6, 1e6).map(repr), st.sampled_from(["1e3", '"0.50"', " +.5"])),
    "t": st.text("abé,;\"'\n\r\t ", max_size=5).map(lambda text: '"w' + text.replace('"', '""') + '"'),
    "u": st.sampled_from(["u", "v v", " v ", "ü", '"u"', "it's"]),
    "b": st.sampled_from(["true", "TRUE", "false"]),
}
GAPS = st.sampled_from(["", "NA", " NA ", "?", "nan", "  "])


@given(
    st.lists(st.fixed_dictionaries(RAW), min_size=3, max_size=9),
    st.sampled_from(",;\t|"),
    st.lists(st.sampled_from(["\n", "\r\n", "\r", "\n\n", "\r\n  \r\n"]), min_size=11, max_size=11),
    st.booleans(),
    st.data(),
)
def test_fill_file_keeps_other_cells_of_any_file(write, rows, delimiter, endings, last, data):
    """Erase cells at random, fill them, and compare the records with those of the file that has the values in their places."""
    value = {"i": ("5", 5.3), "f": ("2.5", 2.5), "t": ('say "hi"',) * 2, "u": ("u", "u"), "b": ("false", False)}
    # The first row decides what the columns are.
    rows = [{"i": "1", "f": "1.5", "t": '"a"', "u": "u", "b": "false"}, *rows]
    lines = [delimiter.join(value)]
    fills = {name: ([], []) for name in value}
    for i, row in enumerate(rows):
        cells = dict(row)
        for name in value:
            if i and data.draw(st.booleans()):
                cells[name] = data.draw(GAPS)
                fills[name][0].append(i)
                fills[name][1].append(value[name][1])
        lines.append(delimiter.join(cells[name] for name in value))
    text = "".join(line + ending for line, ending in zip(lines, endings, strict=False))
    text = text if last else text.rstrip("\r\n ")

    def records(text):
        actual = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        return [record for record in actual if len(record) > 1]

    expected = records(text)
    for j, (name, (filled_rows, _)) in enumerate(fills.items()):
        for i in filled_rows:
            expected[i + 1][j] = value[name][0]
    assert records(fill_file(write(text), fills).decode()) == expected


CELLS = st.fixed_dictionaries({
    "n": st.text("abc", min_size=1, max_size=3),
    "i": st.integers(-(10**12), 10**12),
    "f": st.floats(-1e5, 1e5).map(lambda v: float(f"{v:.6g}") + 0.0),
    "b": st.booleans(),
    "d": st.dates(),
    "w": st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)).map(lambda w: w.replace(microsecond=0)),
    "t": st.text("ab,;\"' é", min_size=1).filter(lambda text: text == text.strip()),
})  # fmt: skip


@given(st.lists(CELLS, min_size=2, max_size=8), st.sampled_from(",;\t"), st.data())
def test_fill_file_restores_erased_cells(write, rows, delimiter, data):
    def content(rows):
        text = io.StringIO()
        writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
        writer.writerows([list("nifbdwt"), *([str(row[name]) for name in "nifbdwt"] for row in rows)])
        return text.getvalue()

    def number(cell):
        if isinstance(cell, dt.datetime):
            return (cell - EPOCH) / dt.timedelta(days=1)
        return float((cell - EPOCH.date()).days) if isinstance(cell, dt.date) else cell

    rows = [{"n": "s", "i": 1, "f": 0.5, "b": True, "d": dt.date(2020, 1, 1), "w": EPOCH, "t": "z"}, *rows]
    erased = [dict(row) for row in rows]
    fills = {}
    for name in data.draw(st.sets(st.sampled_from(list(rows[0])), min_size=1)):
        gone = [i for i in range(1, len(rows)) if data.draw(st.booleans())]
        fills[name] = (np.array(gone, dtype=int), [number(rows[i][name]) for i in gone])
        for i in gone:
            erased[i][name] = "NA"
    assert fill(write(content(erased), "t.tsv" if delimiter == "\t" else "t.csv"), fills) == content(rows)


def test_fill_file_accepts_rows_and_columns_in_any_order(write):
    path = write("x,y\n1,a\nNA,\n3,b\n,NA\n")
    fills = {"y": ([3, 1], ["b", "a"]), "x": ([3, 1], [4.0, 2.0])}
    assert fill(path, fills) == "x,y\n1,a\n2,a\n3,b\n4,b\n"
    assert fill(path, {"x": ([3], [4.0])}) == "x,y\n1,a\nNA,\n3,b\n4,NA\n"


def test_fill_file_is_reproducible(write, tmp_path):
    pl.DataFrame({"x": [1.0, None], "t": ["a", None]}).write_parquet(tmp_path / "t.parquet")
    for path in (
        write("x,t\n1.5,a\n,\n"),
        write(gzip.compress(b"x,t\n1.5,a\n,\n"), "t.csv.gz"),
        tmp_path / "t.parquet",
    ):
        fills = {"x": ([1], [0.1]), "t": ([1], ["a"])}
        assert fill_file(path, fills) == fill_file(path, fills)


# ------------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("cells", "value", "text"),
    [
        (["1", "NA"], 2.5000001, "3"),
        (["1", "NA"], -0.2, "0"),
        (["+1", "-2", "NA"], 1e16, "10000000000000000"),
        (["99999999999999999999", "NA"], 2.4, "2"),
        (["1.0", "NA"], 2.0, "2.0"),
        (["1.5", "NA"], 1 / 3, "0.333333"),
        (["1.5", "NA"], 123456.789, "123457.0"),
        (["1.5", "NA"], 12345678.9, "12345700.0"),
        (["1.5", "NA"], -1.23456789e-7, "-1.23457e-07"),
        (["1.5", "NA"], 1e300, "1e+300"),
        (["1.5", "NA"], -0.0, "0.0"),
        (["1e3", "NA"], 5, "5"),
        (["NA", "NA"], 0.125, "0.125"),
        (["a", "NA"], 7, "7"),
    ],
)
def test_fill_file_formats_numbers_like_column(write, cells, value, text):
    assert fill_column(write, cells, value) == [text if cell == "NA" else cell for cell in cells]
    assert fill_column(write, cells, np.array([value])[0]) == [text if cell == "NA" else cell for cell in cells]


def test_fill_file_replaces_other_missing_markers(write):
    path = write("x,y\n-9,a\n1.5,-9\n NaN,b\n")
    got = fill(path, {"x": ([0, 2], [2.5, 3.5]), "y": ([1], ["a"])}, na_values=["-9"])
    assert got == "x,y\n2.5,a\n1.5,a\n3.5,b\n"


@pytest.mark.parametrize(("name", "delimiter"), [("t.csv", ";"), ("t.tsv", "\t")])
@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_fill_file_keeps_decimal_commas(write, name, delimiter):
    text = "n;a;b;c;d;e\nx;1,5;1.234;0.5;7;\ny;NA;NA;NA;NA;NA\nz;2;999;2.25;8;\n".replace(";", delimiter)
    path = write(text, name)
    fills = {"a": ([1], [1.25e-7]), "b": ([1], [1500.4]), "c": ([1], [1.234]), "d": ([1], [7.5]), "e": ([1], [1.234])}
    got = fill(path, fills)
    expected = "n;a;b;c;d;e\nx;1,5;1.234;0.5;7;\ny;1,25e-07;1.500;1.234;8;1,234\nz;2;999;2.25;8;\n"
    assert got == expected.replace(";", delimiter)
    before, after = read_file(path).frame, read_file(write(got, name)).frame
    filled_in = [column.drop_nulls().to_list() for column in after[1:2, :4].iter_columns()]
    assert filled_in == [[1.25e-7], [1500.0], [1.234], [8]]
    assert after.dtypes[:4] == before.dtypes[:4]


def test_fill_file_uses_decimal_commas_of_other_columns(write):
    path = write("a;e\n1,5;NA\n2,5;NA\n")
    assert fill(path, {"e": ([0, 1], [1.234, 5.0])}) == "a;e\n1,5;1,234\n2,5;5,0\n"


# -------------------------------------------------------------------------- truth values and times


@pytest.mark.parametrize(
    ("cells", "value", "text"),
    [
        (["true", "NA", "false"], True, "true"),
        (["True", "NA", "False"], False, "False"),
        (["TRUE", "NA"], False, "FALSE"),
        (["True", "NA"], False, "False"),
        (["false", "NA"], True, "true"),
        (["fALSE", "NA"], True, "true"),
        (["TRUE", "NA", "false", "False"], False, "false"),
        (["true", "NA", "false"], 0.3, "false"),
        (["true", "NA", "false"], "true", "true"),
    ],
)
def test_fill_file_formats_booleans_like_column(write, cells, value, text):
    assert fill_column(write, cells, value) == [text if cell == "NA" else cell for cell in cells]


@pytest.mark.parametrize(
    ("cells", "value", "text"),
    [
        (["2020-01-31", "NA"], 0.6, "1970-01-02"),
        (["2020-01-31", "NA"], -719_162.0, "0001-01-02"),
        (["2020-01-31", "NA"], 1e300, "9999-12-30"),
        (["2020-01-31", "NA"], "2020-02-01", "2020-02-01"),
        (["2020-01-31T12:00", "NA"], 0.25 + 40 / 86_400, "1970-01-01T06:01"),
        (["2020-01-31 12:00", "NA"], 0.25, "1970-01-01 06:00"),
        (["2020-01-31 12:00:01", "NA"], 0.25 + 0.6 / 86_400, "1970-01-01 06:00:01"),
        (["2020-01-31T12:00:01.5", "2020-01-31T12:00:01.25", "NA"], 0.25 + 0.126 / 86_400, "1970-01-01T06:00:00.13"),
        (["2020-01-31T12:00:00.123456", "NA"], 1 / 86_400e6, "1970-01-01T00:00:00.000001"),
        (["2020-01-31T12:00:00Z", "NA"], 0.25, "1970-01-01T06:00:00Z"),
        (["2020-01-31T12:00:00+01:00", "NA"], 0.25, "1970-01-01T07:00:00+01:00"),
        (["2020-01-31 12:00-0530", "NA"], 0.25, "1970-01-01 00:30-0530"),
        (["2020-01-31T12:00-05:30", "NA"], -1e300, "0001-01-01T18:30-05:30"),
    ],
)
def test_fill_file_formats_times_like_column(write, cells, value, text):
    assert fill_column(write, cells, value) == [text if cell == "NA" else cell for cell in cells]


def test_filled_files_can_be_read(write):
    rows = ["n,i,f,b,d,w,t", "q,1,0.5,TRUE,2020-01-02,2020-01-02T03:04:05,u", "r,,,,,,"]
    path = write("\n".join([*rows, "s,3,2.5,FALSE,2021-01-02,2021-01-02T03:04:05,v"]))
    before = read_file(path)
    table = read_columns(before.frame)
    fills = {column.name: ([1], [np.nanmean(column.values)]) for column in table.real}
    fills |= {column.name: ([1], [column.categories[0]]) for column in table.categorical}
    after = read_file(write(fill_file(path, fills), "again.csv"))
    assert after.frame.schema == before.frame.schema
    assert after.frame.null_count().row(0) == (0,) * 6
    assert after.frame.row(1) == (2, 1.5, False, dt.date(2020, 7, 3), dt.datetime(2020, 7, 3, 3, 4, 5), "u")


# -------------------------------------------------------------------------------------- quoting


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("a", "a"),
        ("a,b", '"a,b"'),
        ("a;b", "a;b"),
        ('a"b', '"a""b"'),
        ("a\nb", '"a\nb"'),
        ("a\rb", '"a\rb"'),
        ("é", "é"),
    ],
)
def test_fill_file_quotes_where_needed(write, value, field):
    assert fill(write("n,t\nx,u\ny,NA\n"), {"t": ([1], [value])}) == f"n,t\nx,u\ny,{field}\n"


def test_fill_file_with_quoted_lines_and_single_columns(write):
    path = write('t,x\r\n"two\r\nlines",1\r\n"a ""b""",NA\r\n\r\n"",3\r\n')
    got = fill_file(path, {"x": ([1], [2.0]), "t": ([2], ["two\nlines"])})
    assert got == b't,x\r\n"two\r\nlines",1\r\n"a ""b""",2\r\n"two\nlines",3\r\n'
    assert fill(write("x\na\nNA\nb\n"), {"x": ([1], ["b"])}) == "x\na\nb\nb\n"


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_fill_file_with_blank_separated_fields(write):
    path = write('  "a"  b c \r\n\r\nx  1 NA\r\n"y z"   NA u \r\nv 3   "w w"', "t.txt")
    file = read_file(path)
    assert (file.row_names, file.frame.columns) == (("x", "y z", "v"), ["b", "c"])
    got = fill_file(path, {"b": ([1], [2.0]), "c": ([0], ["w w"])})
    assert got == b'a b c\r\nx 1 "w w"\r\n"y z" 2 u\r\nv 3 "w w"\r\n'
    by_r = write('"a" "t"\n"x" 1 NA\n"y" NA "u"\n"z" 3 "v"\n', "r.txt")
    assert fill(by_r, {"a": ([1], [2.0]), "t": ([0], ["u"])}) == "a t\nx 1 u\ny 2 u\nz 3 v\n"


def test_fill_file_with_unnamed_index(write):
    assert fill(write(",a\n0,1\n1,\n"), {"a": ([1], [2.0])}) == ",a\n0,1\n1,2\n"


# -------------------------------------------------------------------------------------- parquet


def test_fill_file_keeps_parquet_dtypes(tmp_path):
    frame = pl.DataFrame({
        "id": ["p", "q"],
        "i": pl.Series([1, None], dtype=pl.UInt8),
        "f": pl.Series([0.5, None], dtype=pl.Float32),
        "t": ["a", None],
        "c": pl.Series(["b", None], dtype=pl.Categorical),
        "e": pl.Series(["b", None], dtype=pl.Enum(["b", "a"])),
        "b": [True, None],
        "d": [dt.date(2020, 1, 1), None],
        "w": pl.Series([EPOCH, None], dtype=pl.Datetime("ms", "Europe/Berlin")),
        "list": [[1], None],
    })  # fmt: skip
    frame.write_parquet(tmp_path / "t.parquet")
    before = pl.read_parquet(tmp_path / "t.parquet")
    fills = {"i": [2.6], "f": [0.25], "t": ["a"], "c": ["b"], "e": ["a"], "b": [False], "d": [1.0], "w": [0.5]}
    got = pl.read_parquet(fill_file(tmp_path / "t.parquet", {name: ([1], values) for name, values in fills.items()}))
    assert got.schema == before.schema
    assert got.row(0) == before.row(0)
    noon = dt.datetime(1970, 1, 1, 12, tzinfo=dt.UTC)
    assert got.row(1) == ("q", 3, 0.25, "a", "b", "a", False, dt.date(1970, 1, 2), noon, None)


def test_fill_file_parquet_with_declared_categories(tmp_path):
    pd.DataFrame({"k": pd.array([1, None, 2], dtype="Int64")}).to_parquet(tmp_path / "t.pq")
    (column,) = read_columns(read_file(tmp_path / "t.pq", categorical=["k"]).frame).columns
    got = pl.read_parquet(fill_file(tmp_path / "t.pq", {"k": ([1], [column.categories[1]])}))
    assert got["k"].to_list() == [1, 2, 2]


# ------------------------------------------------------------------------------------- bad input


def test_observed_cells_are_not_overwritten(write, tmp_path):
    pl.DataFrame({"x": [1.0, None], "t": ["a", ""]}).write_parquet(tmp_path / "t.parquet")
    for path in (write("x,t\n1,a\n,\n"), tmp_path / "t.parquet"):
        for row in (0, 2, -1):
            with pytest.raises(
                InputError, match=rf"Column 'x' of {path.name} has no missing cell in row {row} \(counted"
            ):
                fill_file(path, {"x": ([row], [1.0])})
        with pytest.raises(InputError, match=rf"{path.name} has no column 'y' to fill: its columns are 'x', 't'"):
            fill_file(path, {"y": ([1], [1.0])})
        assert fill_file(path, {"t": ([1], ["a"])})


def test_fill_file_rejects_unreadable_files(write, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"gone\.csv does not exist"):
        fill_file(tmp_path / "gone.csv", {})
    with pytest.raises(InputError, match=r"t\.xlsx"):
        fill_file(write("x\n1\n", "t.xlsx"), {})
    with pytest.raises(InputError, match="Line 3"):
        fill_file(write("a,b\n1,2\n3\n"), {})
    path = write("x,y\n1,2\n")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingDependencyError, match="coaltree"):
        fill_file(path, {})


@pytest.mark.parametrize(
    ("cells", "value", "text"),
    [
        (["$ 37.79", '"$ 1,250.00"'], 1999.987, '"$ 1,999.99"'),
        (["$5", "$7"], -6.4, "-$6"),
        (["12.5%", "3%"], 7.24, "7.2%"),
        (["5 kg", "7.25 kg"], 6.0, "6.00 kg"),
        (['"35,165.38 EUR"', '"1,000.00 EUR"'], 1234567.0, '"1,234,567.00 EUR"'),
        (['"1.250,50 €"', '"3,50 €"'], 2000.0, '"2.000,00 €"'),
    ],
)
def test_fill_file_writes_amounts_like_column(write, cells, value, text):
    path = write("a,b\n" + "".join(f"{cell},1\n" for cell in cells) + ",2\n", "t.csv")
    assert fill(path, {"a": ([2], [value])}).splitlines()[-1] == f"{text},2"
