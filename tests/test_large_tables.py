"""Large text files: reading and filling many lines at a time gives the same result as line by line."""

import csv
import io
import tracemalloc
from contextlib import nullcontext

import numpy as np
import pytest

from coaltree.errors import InputError
from coaltree.table.delimited import check_text
from coaltree.table.fill import fill_file
from coaltree.table.read_file import read_file
from named import refused

# Whatever a cell may be without quotes; the second column is numbers in all cells that are not missing.
ODD = [
    "alpha",
    " beta ",
    "NA",
    "",
    "  ",
    "naïve",
    "\u4e2d\u6587",
    "\U0001f333",
    "?",
    "x\u2028y",
    "\u00a0",
    "a b",
    "#",
    "'",
]
NUMBERS = ["1", " 2.5", "NA", "", "-1e3 ", "+4", "nan", "0007"]
WITH_COMMAS = ["1", " 12,5", "NA", "", "1.234", "-1.234,5 ", "0007"]


def odd_text(n_rows, delimiter, ending="\n", seed=0, numbers=NUMBERS):
    rng = np.random.default_rng(seed)
    cells = [[f"row {i}" for i in range(n_rows)], rng.choice(numbers, n_rows), rng.choice(ODD, n_rows)]
    records = [delimiter.join(record) for record in zip(*cells, strict=True)]
    for i in rng.choice(n_rows, 5, replace=False):
        records[i] += ending + [" ", "", "\u2003"][i % 3]  # a blank line
    return ending.join([delimiter.join(["id", "x", "word"]), *records]) + ending


def in_quotes(text):
    """Put the first name into quotes, so that the text is read line by line."""
    return '"id"' + text.removeprefix("id")


@pytest.fixture
def write(tmp_path):
    def write(text, name):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return write


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_fast_reader_matches_line_reader(write, delimiter, ending):
    numbers = WITH_COMMAS if delimiter in ";\t" else NUMBERS
    text = odd_text(300, delimiter, ending, numbers=numbers)
    with pytest.warns(match="decimal commas") if numbers is WITH_COMMAS else nullcontext():
        fast = read_file(write(text, "fast.csv"))
    with pytest.warns(match="decimal commas") if numbers is WITH_COMMAS else nullcontext():
        slow = read_file(write(in_quotes(text), "slow.csv"))
    assert fast.row_names == slow.row_names == tuple(f"row {i}" for i in range(300))
    assert fast.frame.schema == slow.frame.schema
    assert fast.frame.equals(slow.frame)
    assert fast.frame["x"].dtype.is_float()
    assert set(fast.frame["word"].drop_nulls()) == {
        "alpha",
        "beta",
        "naïve",
        "\u4e2d\u6587",
        "\U0001f333",
        "x\u2028y",
        "a b",
        "#",
        "'",
    }


@pytest.mark.parametrize("n_columns", [1, 2, 3])
@pytest.mark.parametrize("odd", ["", "1,2", "1,2,3,4", ",", "  ", "\u2003", "é"])
def test_fast_reader_reports_same_lines(n_columns, odd):
    header = ",".join(["id", "b", "c"][:n_columns])
    row = ",".join("xyz"[:n_columns])
    text = "\n".join(["", header, row, row, odd, row, odd, row])

    def outcome(text):
        try:
            checked = check_text(text.encode(), "f.csv", ",")
        except InputError as error:
            return str(error)
        return (
            checked.header,
            checked.n_rows,
            [line for line in checked.data.decode().replace('"', "").split("\n") if line],
        )

    assert outcome(text) == outcome(text.replace("id", '"id"'))


def test_too_long_field_is_reported():
    long = "x" * 140_000
    with refused("Line 2 f.csv field larger"):
        check_text(f"a,b\n{long},1\n".encode(), "f.csv", ",")
    checked = check_text(
        ("a," + ",".join(f"b{i}" for i in range(30_000)) + "\n" + "1," * 30_000 + "1\n").encode(), "f.csv", ","
    )
    assert checked.n_rows == 1


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_filler_changes_given_cells_only(write, delimiter, ending, quoted):
    """Whether a file is read as a whole or line by line."""
    text = odd_text(200, delimiter, ending, seed=1)
    path = write(in_quotes(text) if quoted else text, "t.csv")
    frame = read_file(path).frame

    def records(text):
        return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if len(row) > 1]

    expected, fills, rng = records(text), {}, np.random.default_rng(2)
    for j, name, values in ((2, "word", ["new", "with , ; \t all", 'a "quote"']), (1, "x", [0.5, 2, -1e-7])):
        rows = rng.permutation(frame[name].is_null().arg_true().to_numpy())
        assert len(rows) > 20
        fills[name] = (rows, [values[i % 3] for i in range(len(rows))])
        for row, value in zip(*fills[name], strict=True):
            expected[row + 1][j] = str(value)
    filled = fill_file(path, fills).decode()
    actual = records(filled)
    for row in fills["x"][0]:  # numbers may be written in several ways
        assert float(actual[row + 1][1]) == float(expected[row + 1][1])
        actual[row + 1][1] = expected[row + 1][1]
    assert actual == expected
    assert read_file(write(filled, "filled.csv")).frame.null_count().row(0) == (0, 0)


@pytest.mark.parametrize("quoted", [False, True])
def test_reading_needs_little_extra_memory(write, quoted):
    """What Python allocates, so without the columns themselves, which are polars'."""
    rng = np.random.default_rng(0)
    cells = rng.normal(size=(1000, 10)).astype(str)
    body = "\n".join(",".join(row) for row in cells)
    text = "id," + ",".join(f"x{j}" for j in range(10))
    n_rows = 40_000
    rows = (body.split("\n") * (n_rows // 1000))[:n_rows]
    text += "\n" + "\n".join(f"r{i},{row}" for i, row in enumerate(rows)) + "\n"
    path = write(in_quotes(text) if quoted else text, "large.csv")
    read_file(path)  # imports
    tracemalloc.start()
    try:
        file = read_file(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert file.frame.shape == (n_rows, 10)
    assert peak < 3 * len(text)


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_index_keeps_leading_zeros(write, name):
    with pytest.warns(match="index without a name"):
        file = read_file(write(f"{name},x\n007,1.5\n008,2.5\n", "index.csv"))
    assert file.row_names == ("007", "008")


def test_last_fill_of_cell_wins(write):
    path = write("a,b\n1,\n2,x\n", "twice.csv")
    assert fill_file(path, {"b": ([0, 0], ["first", "last"])}) == b"a,b\n1,last\n2,x\n"
