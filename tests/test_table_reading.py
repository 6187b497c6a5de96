"""Tables are read from csv, tsv and parquet files."""

import datetime as dt
import gzip
import os
import re
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coaltree.errors import InputError, InputWarning, MissingDependencyError
from coaltree.table.columns import read_columns
from coaltree.table.delimited import check_text
from coaltree.table.read_file import read_file
from named import refused


@pytest.fixture
def write(tmp_path):
    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


PLAIN = "id,x,y,t\na,1,0.5,u\nb,NA,?,v\nc,3,-1e3,u\n"


def check_plain(file):
    assert file.id_column == "id"
    assert file.row_names == ("a", "b", "c")
    assert file.frame.columns == ["x", "y", "t"]
    assert file.frame.rows() == [(1, 0.5, "u"), (None, None, "v"), (3, -1000.0, "u")]
    assert file.frame.dtypes == [pl.Int64, pl.Float64, pl.String]


@pytest.mark.parametrize(
    ("name", "delimiter"),
    [
        ("t.csv", ","),
        ("t.CSV", ","),
        ("t.csv", ";"),
        ("t.csv", "|"),
        ("t.csv", "\t"),
        ("t.tsv", "\t"),
        ("t.tab", "\t"),
        ("t.txt", "\t"),
        ("t.txt", ";"),
        ("t.txt", ","),
    ],
)
def test_delimited_files_are_read(write, name, delimiter):
    text = PLAIN.replace(",", delimiter)
    check_plain(read_file(write(text, name)))
    check_plain(read_file(str(write(text, name))))
    check_plain(read_file(write(b"\xef\xbb\xbf" + text.encode(), name)))
    check_plain(read_file(write(text.replace("\n", "\r\n"), name)))
    check_plain(read_file(write(text.replace("\n", "\r"), name)))
    check_plain(read_file(write(gzip.compress(text.encode()), name + ".gz")))


def test_spaces_quotes_and_blank_lines_are_handled(write):
    check_plain(read_file(write('\nid, x,y , t\na, 1,0.5,u\n\n"b",NA,?, v\n  \nc,"3",-1e3,u')))
    file = read_file(write('id,t\n"a, b","say ""hi"""\nc,"two\nlines"\n\n'))
    assert file.row_names == ("a, b", "c")
    assert file.frame.rows() == [('say "hi"',), ("two\nlines",)]
    assert read_file(write("x\n1\n\n3\n")).frame.rows() == [(1,), (3,)]


def test_parquet_files_are_read(tmp_path):
    frame = pl.DataFrame({"id": ["a", "b", "c"], "x": [1, None, 3], "y": [0.5, None, -1e3], "t": ["u", "v", "u"]})
    for name in ("t.parquet", "t.pq"):
        frame.write_parquet(tmp_path / name)
        check_plain(read_file(tmp_path / name))


def test_column_types_are_inferred(write):
    file = read_file(
        write(
            "i,f,b,d,w,z,e,t,big\n"
            "1,1,TRUE,2020-01-02,2020-01-02 06:00,2020-01-02T01:00:00+01:00,,x,99999999999999999999\n"
            "2,2.5,false,NA,2020-01-02T07:00:01.5,2020-01-02T00:00:00Z,NA,2020-02-30,1\n"
        )
    )
    assert dict(file.frame.schema) == {
        "i": pl.Int64, "f": pl.Float64, "b": pl.Boolean, "d": pl.Date, "w": pl.Datetime("us"),
        "z": pl.Datetime("us"), "e": pl.Float64, "t": pl.String, "big": pl.Float64,
    }  # fmt: skip
    assert file.frame["b"].to_list() == [True, False]
    assert file.frame["d"].to_list() == [dt.date(2020, 1, 2), None]
    assert file.frame["w"][1] == dt.datetime(2020, 1, 2, 7, 0, 1, 500_000)
    assert file.frame["z"].to_list() == [dt.datetime(2020, 1, 2)] * 2
    assert file.frame["e"].to_list() == [None, None]
    assert read_file(write("d,x\n2020-02-30,1\n2020-02-28,1\n"), id_column="").frame["d"].dtype == pl.String


@pytest.mark.parametrize(
    ("cells", "is_text"),
    [
        (["20095", "", "01067", "80331"], True),
        (["1", "00", "2", "3"], True),
        (["01067", "20095", "AD100", "unknown"], True),
        (["00340434161094027318", "10340434161094027318", "1", "2"], True),
        (["0", "10", "20", "100"], False),
        (["-05", "03", "10", "00"], False),
        (["007.5", "012", "010", "0.5"], False),
        (["0.5", "0", "1e5", "0e1"], False),
    ],
)
def test_integers_with_leading_zeros_are_codes(write, cells, is_text):
    path = write("x,zip\n" + "".join(f'{i * i},"{cell}"\n' for i, cell in enumerate(cells)))
    column = read_file(path).frame["zip"]
    assert (column.dtype == pl.String) == is_text
    if is_text:
        assert column.to_list() == [cell or None for cell in cells]
        # In a frame of text they are codes too, which need no word.
        assert read_columns(pd.DataFrame({"zip": [cell or None for cell in cells]})).remarks == ()


def test_codes_can_be_declared_real(write):
    assert read_file(write("x,y\n1,01\n1,10\n2,\n"), real=["y"]).frame["y"].to_list() == [1, 10, None]


def test_leading_zeros_make_row_names(write):
    file = read_file(write("id,x\n" + "".join(f"{i:03},{i % 3}\n" for i in range(1, 20))))
    assert file.id_column == "id"
    assert file.row_names[:2] == ("001", "002")


def test_missing_value_markers_are_recognised(write):
    text = "x,y\n" + "".join(
        f"{na},1\n" for na in ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?", "#N/A")
    )
    assert read_file(write(text + "7,1\n")).frame["x"].to_list() == [None] * 11 + [7]
    file = read_file(write("x,y\n-9,NA\n1,b\n2,NA\n"), na_values=["-9"])
    assert file.frame["x"].to_list() == [None, 1, 2]
    assert file.frame["y"].to_list() == ["NA", "b", "NA"]


def test_text_deep_in_numeric_column_is_reported(write):
    text = "x,y\n" + "".join(f"{i},{i % 7}\n" for i in range(3000)) + "oops,1\n"
    file = read_file(write(text))
    with refused("Column x row 3000 oops 1 3,001"):
        read_columns(file.frame)


@given(
    st.lists(
        st.tuples(
            st.floats(allow_nan=False, allow_infinity=False),
            st.one_of(st.none(), st.text("ab,;\"' \t", min_size=1)),
        ),
        min_size=1,
    )
)
def test_frames_round_trip_through_csv(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("round") / "t.csv"
    frame = pl.DataFrame(rows, schema={"x": pl.Float64, "t": pl.String}, orient="row")
    frame.write_csv(path)
    read = read_file(path, id_column="").frame
    np.testing.assert_array_equal(read["x"].cast(pl.Float64), frame["x"])
    expected = [None if t is None else t.strip() or None for t in frame["t"]]
    assert read["t"].to_list() == expected


# --------------------------------------------------------------------------------- chosen columns


def test_row_names_are_read(write):
    path = write("a,b,x\np,7,1\nq,007,2\n")
    assert read_file(path).id_column == "a"
    file = read_file(path, id_column="b")
    assert (file.row_names, file.id_column, file.frame.columns) == (("7", "007"), "b", ["a", "x"])
    file = read_file(path, id_column="")
    assert (file.row_names, file.id_column, file.frame.columns) == (None, None, ["a", "b", "x"])


@pytest.mark.parametrize(
    "text", ["a,x\np,1\np,2\n", "a,x\np,1\nNA,2\n", "a,x\n1,1\n2,2\n", "a\np\nq\n", "a,x\n1,1\np,2\n"]
)
def test_ordinary_first_columns_are_not_row_names(write, text):
    file = read_file(write(text))
    assert (file.row_names, file.id_column) == (None, None)
    assert "a" in file.frame.columns


def test_row_names_are_made_distinct(write):
    with pytest.warns(InputWarning, match="1 row name was not distinct"):
        file = read_file(write("x,k\n1,p\n2,\n3,p\n"), id_column="k")
    assert file.row_names == ("p", "row 1", "p_2")
    assert read_columns(file.frame, row_names=file.row_names).row_names == file.row_names


def test_drop_and_categorical_options(write):
    file = read_file(write("a,x,k,z\np,1,10,1\nq,2,9,1\nr,3,NA,2\n"), drop=["a"], categorical=["k", "z"])
    assert (file.id_column, file.frame.columns, file.categorical) == (None, ["x", "k", "z"], ("k", "z"))
    table = read_columns(file.frame)
    assert [c.name for c in table.categorical] == ["k", "z"]
    assert table.categorical[0].categories == ("9", "10")
    assert table.categorical[0].codes.tolist() == [1, 0, -1]
    assert read_file(write("a,x\np,1\nq,2\n"), categorical=["a"]).id_column is None


def test_new_file_with_digits_only_matches_text_categories(write):
    fit = read_columns(read_file(write("x,t\n1,1\n1,2\n2,q\n2,r\n3,s\n"), id_column="").frame)
    new = read_file(write("x,t\n1,2\n2,1\n")).frame
    table = read_columns(new, categories={"t": fit.categorical[0].categories})
    assert table.categorical[0].codes.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"id_column": "weigth"}, ["'weigth'", "--id-column", "did you mean 'weight'"]),
        ({"id_column": "zzz"}, ["'zzz'", "'name', 'weight', 'height'"]),
        ({"drop": ["heigt"]}, ["'heigt'", "--drop", "'height'"]),
        ({"categorical": ["hight"]}, ["'hight'", "--categorical", "'height'"]),
        ({"drop": ["name", "weight", "height"]}, ["No columns", "left"]),
        ({"drop": ["weight", "height"], "id_column": "name"}, ["No columns", "left"]),
        ({"drop": ["weight"], "id_column": "weight"}, ["'weight'", "both"]),
        ({"categorical": ["weight"], "id_column": "weight"}, ["'weight'", "both"]),
        ({"categorical": ["weight"], "drop": ["weight"]}, ["'weight'", "both"]),
    ],
)
def test_invalid_read_options_are_rejected(write, options, parts):
    with pytest.raises(InputError) as error:
        read_file(write("name,weight,height\na,1,2\nb,3,4\n"), **options)
    for part in parts:
        assert part in str(error.value)


# -------------------------------------------------------------------------------------- bad files


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("", ["t.csv is empty"]),
        ("\n \n", ["t.csv is empty"]),
        ("a,b\n", ["header but no rows"]),
        ("a,b\n\n\n", ["header but no rows"]),
        ("a,b\n1,2\n3\n", ["Line 3", "1 fields", "header has 2", "comma"]),
        ("a,b\n1,2\n\n3,4,5\n", ["Line 4", "3 fields", "header has 2"]),
        ('a,b\n"x\ny",2\n3\n', ["Line 4", "1 fields"]),
        ("a,b,a\n1,2,3\n", ["'a'", "more than once"]),
        ("a, a\n1,2\n", ["'a'", "more than once"]),
        ("a,,b\n1,2,3\n", ["Column 2", "no name"]),
        (",b\nx,2\nx,3\n", ["Column 1", "no name", "not distinct"]),
        (",b\nx,2\n,3\n", ["Column 1", "no name", "not distinct"]),
        ("a,b\n1,2\nx,café\n".encode("latin-1"), ["not UTF-8", "0xe9", "line 3", "Latin-1"]),
        ("a,b\n1,2\n".encode("utf-16-le"), ["null bytes", "utf-16le"]),
        ("a,b\n1,2\n".encode("utf-16")[:-1], ["null bytes", "damaged"]),
        ("a,b\n1," + "x" * 200_000 + "\n", ["Line 2", "cannot be read"]),
    ],
)
def test_invalid_encodings_are_reported(write, content, parts):
    for path in (
        write(content, "t.csv"),
        write(gzip.compress(content if isinstance(content, bytes) else content.encode()), "t.csv.gz"),
    ):
        with pytest.raises(InputError) as error:
            read_file(path)
        for part in parts:
            assert part.replace("t.csv", path.name) in str(error.value)


@pytest.mark.parametrize("name", ["t.xlsx", "t", "t.gz", "t.parquet.gz", "t.csv.zip"])
def test_unsupported_file_types_are_rejected(write, name):
    with refused(f"{name} file .csv .tsv .parquet"):
        read_file(write("a,b\n1,2\n", name))


def test_missing_files_are_reported(tmp_path):
    for name in ("gone.csv", "gone.xlsx", "gone.parquet"):
        with pytest.raises(InputError, match=f"{name} does not exist"):
            read_file(tmp_path / name)
    (tmp_path / "folder.csv").mkdir()
    for path in (tmp_path, tmp_path / "folder.csv"):
        with pytest.raises(InputError, match="is a folder"):
            read_file(path)


def test_unreadable_files_are_reported(write, monkeypatch):
    path = write(PLAIN)
    if os.name == "posix" and os.geteuid() != 0:
        path.chmod(0)
    else:  # root reads everything

        def refuse(self, *arguments, **options):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(type(path), "open", refuse)
    with refused("table.csv Permission denied"):
        read_file(path)


def test_damaged_compressed_and_parquet_files_are_reported(write, tmp_path):
    for content in (b"no gzip at all", gzip.compress(PLAIN.encode())[:-12]):
        with pytest.raises(InputError, match=r"t\.csv\.gz .* gzip"):
            read_file(write(content, "t.csv.gz"))
    with pytest.raises(InputError, match=r"t\.parquet .* parquet file"):
        read_file(write("a,b\n1,2\n", "t.parquet"))
    with pytest.raises(InputError, match="is empty"):
        read_file(write("", "t.parquet"))
    pl.DataFrame({"a": []}).write_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="no rows"):
        read_file(tmp_path / "rows.parquet")


def test_nested_parquet_columns_are_not_row_names(tmp_path):
    pl.DataFrame({"a": [{"k": 1}], "x": [1]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"Column 'a' is of type Struct"):
        read_file(tmp_path / "t.parquet", id_column="a")


def test_missing_polars_has_install_hint(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "coaltree\[cli\]"'):
        read_file(write(PLAIN))


def test_check_text_finds_delimiter_and_header():
    checked = check_text(b"a;b\n1;2\n", "f.txt", None)
    assert (checked.delimiter, checked.header, checked.n_rows) == (";", ("a", "b"), 1)


# -- fields separated by something unexpected ---------------------------------------------------


@pytest.mark.parametrize(
    ("name", "delimiter", "word"),
    [("t.tsv", ",", "comma"), ("t.tab", ";", "semicolon"), ("t.tsv", "|", "vertical bar"), ("t.tsv", "   ", "blanks")]
    + [(name, " ", "blanks") for name in ("t.txt", "t.csv", "t.tsv")],
)
def test_unexpected_delimiters_warn(write, name, delimiter, word):
    with pytest.warns(InputWarning, match=f"{name} has no .* fields were taken to be separated by {word}") as caught:
        check_plain(read_file(write(PLAIN.replace("NA", "NA ").replace(",", delimiter), name)))
    assert caught[0].filename == __file__


def test_inconsistent_delimiters_are_rejected(write):
    with pytest.warns(InputWarning, match="comma"), pytest.raises(InputError, match=r"Line 3 of t\.tsv has 3 fields"):
        read_file(write("name,a\nx,1\ny,2,3\nz,4\n", "t.tsv"))


def test_blank_separated_files_of_r_are_read(write):
    with pytest.warns(InputWarning, match="blanks|index"):
        file = read_file(write('"a" "b c"\n"x" 1 2\n"y z" 3 4\n', "t.txt"))
    assert (file.row_names, file.frame.columns, file.frame.rows()) == (("x", "y z"), ["a", "b c"], [(1, 2), (3, 4)])


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.txt"])
@pytest.mark.parametrize("text", ["first name\nJohn Smith\nJane Doe\n", "x\n1\n2\n", "a b\n1\n2\n", "a b\n1 2\n3\n"])
def test_single_column_is_not_split(write, name, text):
    assert read_file(write(text, name)).frame.width == 1


# -- local notation -----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "delimiter"), [("t.csv", ";"), ("t.tsv", "\t")])
def test_decimal_commas_are_read(write, name, delimiter):
    text = "name;a;b;c\nx;1,5;-1.234,25;u\ny;2;NA;1,5\nz;1,5e-3;+,5;v\n".replace(";", delimiter)
    with pytest.warns(InputWarning, match="^Columns 'a', 'b': decimal commas were read as numbers.$") as caught:
        file = read_file(write(text, name))
    assert caught[0].filename == __file__
    assert file.frame.rows() == [(1.5, -1234.25, "u"), (2.0, None, "1,5"), (0.0015, 0.5, "v")]


def test_digits_of_other_scripts_are_read_next_to_decimal_commas(write):
    with pytest.warns(InputWarning, match="decimal commas"):
        assert read_file(write("n;v\na;1,5\nb;٣\nc;4,5\n")).frame.rows() == [(1.5,), (3.0,), (4.5,)]


def test_thousands_points_next_to_decimal_commas(write):
    with pytest.warns(InputWarning) as caught:
        file = read_file(write("name;a;b;c;d\nx;1,5;1.234;0.234;1.5\ny;2;999;0.5;2.25\n"))
    assert [str(warning.message) for warning in caught] == [
        "Column 'a': decimal commas were read as numbers.",
        "Column 'b': points between groups of three digits were read as numbers.",
    ]
    assert file.frame.rows() == [(1.5, 1234.0, 0.234, 1.5), (2.0, 999.0, 0.5, 2.25)]
    assert read_file(write("name;b\nx;1.234\ny;999\n")).frame.rows() == [(1.234,), (999.0,)]


def test_declared_columns_keep_commas(write):
    path = write("name;a\nx;1,5\ny;2\n")
    assert read_file(path, categorical=["a"]).frame.rows() == [("1,5",), ("2",)]
    assert read_file(path, drop=["a"]).frame.columns == ["name"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("name\ta\nx\t1,250\ny\t2,500\n", "t.tsv"),  # thousands or decimals?
        ("name;a\nx;1,5\ny;2.5\nz;1,000,000\n", "t.csv"),
        ("name,a\nx,~1.5\ny,>2\n", "t.csv"),
        ("name,a\nx,31.12.2020\ny,24.1.2021\n", "t.csv"),
    ],
)
def test_other_number_formats_are_reported(write, text, name):
    file = read_file(write(text, name))
    (remark,) = read_columns(file.frame, row_names=file.row_names).remarks
    assert "Column 'a' is text such as" in remark


AMOUNTS = {
    '"1,234.50";"999";"-12.25"': ("commas between groups", [1234.5, 999.0, -12.25]),
    "$ 37.79;$ 1.00;-$ 3": ("'$'", [37.79, 1.0, -3.0]),
    '"1,250 EUR";"12 EUR";0': ("'EUR' and commas between groups", [1250.0, 12.0, 0.0]),
    '"1.250,50 €";"3,5 €";"2 €"': ("'€' and decimal commas", [1250.5, 3.5, 2.0]),
    "12.5%;3%;100%": ("'%'", [12.5, 3.0, 100.0]),
    "5 kg;7.25 kg;6 kg": ("'kg'", [5.0, 7.25, 6.0]),
    "35 165.38;1.2;7": ("blanks between groups", [35165.38, 1.2, 7.0]),
    "1'250;2'500;1": ("apostrophes between groups", [1250.0, 2500.0, 1.0]),
    '"1,5";"2,25";"-1"': ("decimal commas", [1.5, 2.25, -1.0]),
    '"(1,250.5)";"3.5";"\u22122"': ("commas between groups", [-1250.5, 3.5, -2.0]),
    "US$5;US$6.5;US$7": ("'US$'", [5.0, 6.5, 7.0]),
}


@pytest.mark.parametrize("cells", AMOUNTS)
def test_amounts_percentages_and_groups_of_digits_are_read(write, cells):
    named, numbers = AMOUNTS[cells]
    first, second, third = cells.split(";")
    with pytest.warns(InputWarning, match=re.escape(named)):
        file = read_file(write(f"name,a,t\nx,{first},u\ny,{second},u\nz,{third},v\n"))
    assert file.frame["a"].to_list() == numbers
    assert file.row_names == ("x", "y", "z")
    assert read_file(write(f"name,a\nx,{first}\ny,{second}\n"), categorical=["a"]).frame["a"].dtype == pl.Enum


@pytest.mark.parametrize(
    "cells", ["3a 4b 5a", "A1 A2 A3", "1.2.3 1.2.4 1.3.0", "2x4 2x5 3x1", "1-2 2-3 1-4", "5mg 7ml 8g"]
)
def test_names_with_digits_are_text(write, cells):
    first, second, third = cells.split()
    assert read_file(write(f"x,a\n1,{first}\n2,{second}\n3,{third}\n")).frame["a"].dtype == pl.String


def test_all_cells_that_differ_from_their_column_are_found(write):
    text = (
        "a,b,c,d,e\n1,$ 5,2020-01-01,7%,u\n-,$ 6,unknown,8%,v\n2,7 EUR,2020-01-02,9,w\n-,$ 8,2020-02-30,6%,u\n"
        "3,$ 9,2020-01-03,5%,v\n"
    )
    file = read_file(write(text))
    assert [(part.column, part.texts, part.row) for part in file.strays] == [
        ("a", {"-": 2}, 1),
        ("b", {"7 EUR": 1}, 2),
        ("c", {"unknown": 1, "2020-02-30": 1}, 1),
        ("d", {"9": 1}, 2),
    ]
    file = read_file(write(text), drop=["b"], categorical=["c", "d"], na_values=["", "-"])
    assert file.strays == ()


# -- an index without a name --------------------------------------------------------------------


@pytest.mark.parametrize("text", [",a,b\n0,1,2\n1,3,4\n", "Unnamed: 0,a,b\n0,1,2\n1,3,4\n"])
def test_unnamed_pandas_index_is_row_names(write, text):
    path = write(text)
    with pytest.warns(InputWarning, match="'Unnamed: 0' of table.csv is an index .* row names") as caught:
        file = read_file(path)
    assert caught[0].filename == __file__
    assert (file.id_column, file.row_names, file.frame.rows()) == ("Unnamed: 0", ("0", "1"), [(1, 2), (3, 4)])
    for id_column, names, rows in (("", None, [(1, 2), (3, 4)]), ("b", ("2", "4"), [(1,), (3,)])):
        with pytest.warns(InputWarning, match="'Unnamed: 0' of table.csv is an index .* was left out"):
            file = read_file(path, id_column=id_column)
        assert (file.row_names, file.frame.rows()) == (names, rows)
    assert read_file(path, id_column="Unnamed: 0").row_names == ("0", "1")
    assert read_file(path, drop=["Unnamed: 0"]).frame.columns == ["a", "b"]
    assert read_file(path, categorical=["Unnamed: 0"]).frame.columns == ["Unnamed: 0", "a", "b"]


def test_repeated_pandas_index_is_dropped(write):
    with pytest.warns(InputWarning, match="is an index"):
        file = read_file(write(",Unnamed: 0,a\n5,0,1\n6,1,3\n"))
    assert (file.row_names, file.frame.columns) == (("5", "6"), ["a"])


def test_column_named_like_index_is_kept(write):
    assert read_file(write("Unnamed: 0,a\n0,1\n0,3\n")).frame.columns == ["Unnamed: 0", "a"]


def test_pandas_index_in_parquet_is_row_names(tmp_path):
    pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=[7, 3, 4]).to_parquet(tmp_path / "t.parquet")
    with pytest.warns(InputWarning, match="__index_level_0__"):
        file = read_file(tmp_path / "t.parquet")
    assert (file.row_names, file.frame.columns) == (("7", "3", "4"), ["a"])


def test_index_written_by_pandas_is_row_names(tmp_path):
    pd.DataFrame({"a": [1.0, 2.0], "b": ["u", "v"]}).to_csv(tmp_path / "t.csv")
    with pytest.warns(InputWarning, match="index without a name"):
        file = read_file(tmp_path / "t.csv")
    assert (file.row_names, file.frame.rows()) == (("0", "1"), [(1.0, "u"), (2.0, "v")])


# -- columns that are nearly row names --------------------------------------------------------------


NAMES = [f"animal {i}" for i in range(20)]


def first_column(cells):
    return "the name,x\n" + "".join(f"{cell},{i % 3}\n" for i, cell in enumerate(cells))


@pytest.mark.parametrize(
    ("cells", "fact"),
    [
        ([*NAMES[:-1], NAMES[0]], "19 distinct texts"),
        ([*NAMES[:-1], ""], "19 distinct texts (1 is empty)"),
        ([*NAMES[:-2], "", "NA"], "18 distinct texts (2 are empty)"),
        ([*NAMES[:-5], "", "NA", "", "?", ""], "15 distinct texts (5 are empty)"),
        (["🦊", '"<script>alert(1)</script>"', '"a,b"', *NAMES[3:-1], "🦊"], "19 distinct texts"),
    ],
)
def test_nearly_distinct_first_column_is_reported(write, cells, fact):
    with pytest.warns(InputWarning) as caught:
        file = read_file(write(first_column(cells)))
    (message,) = [str(warning.message) for warning in caught]
    for part in ("'the name'", "table.csv", "20 cells", fact, "--id-column 'the name'", "--drop"):
        assert part in message
    assert file.id_column is None
    assert file.frame.columns == ["the name", "x"]


@pytest.mark.parametrize(
    ("cells", "options"),
    [
        ([*NAMES[:-3], *NAMES[:3]], {}),  # 17 of 20
        (["u", "v"] * 10, {}),
        ([*NAMES[:8], NAMES[0]], {}),  # few rows
        ([*NAMES[:9], *[""] * 11], {}),  # few names
        ([""] * 20, {}),
        ([*NAMES[:-1], NAMES[0]], {"id_column": ""}),
        ([*NAMES[:-1], NAMES[0]], {"categorical": ["the name"]}),
        ([*NAMES[:-1], NAMES[0]], {"drop": ["the name"]}),
        ([*NAMES[:-1], NAMES[0]], {"id_column": "x", "na_values": []}),
        (NAMES, {}),
    ],
)
def test_other_first_columns_are_not_reported(write, cells, options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_file(write(first_column(cells)), **options)
    assert not [warning for warning in caught if "row names, because" in str(warning.message)]


DATES = ["2020-01-01", "01/02/2020", "not a date", "2020-05-05"]


@pytest.mark.parametrize("cells", [DATES, ["12.5 kg", "13.5 kg", "broken", "<b>"], ["$1", "$2", "$3", "$4", "a", "b,"]])
def test_numeric_row_names_are_reported(write, cells):
    with pytest.warns(InputWarning) as caught:
        file = read_file(write(first_column([f'"{cell}"' for cell in cells])))
    (message,) = [str(warning.message) for warning in caught]
    for part in ("'the name'", "table.csv", "dates or numbers", repr(cells[0]), "--id-column 'the name'", "2020-12-31"):
        assert part in message
    assert file.row_names == tuple(cells)


@pytest.mark.parametrize(
    ("cells", "options"),
    [
        (DATES, {"id_column": "the name"}),
        (DATES, {"categorical": ["the name"]}),
        ([*NAMES[:5], *DATES[:2], "2020-07-07"], {}),  # fewer than half
        (["1a", "1b", "2a", "2b"], {}),
        (["12 High Street", "14 High Street", "3 Low Road", "Town Hall"], {}),
    ],
)
def test_usual_row_names_are_not_reported(write, cells, options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_file(write(first_column(cells)), **options)
    assert not [warning for warning in caught if "look like dates or numbers, such" in str(warning.message)]


def test_single_column_is_not_reported(write):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (
            read_file(write("name\n" + "\n".join([*map(str.title, "abcdefghijklmno"), "A"]) + "\n")).row_names is None
        )
