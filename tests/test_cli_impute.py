"""The command impute: which cells of a file are filled, and with what."""

import csv
import gzip
import io
import os

import numpy as np
import polars as pl
import pytest

import coaltree as ct
from command_line import check_sentence, command_in, contents

pytestmark = pytest.mark.usefixtures("short_chains", "blank_pictures")

# Quotes, blanks, an odd line ending and spellings that must survive; day and n are whole, flag is a truth value.
TEXT = (
    "id,x,note,c,y,day,n,flag,z\r\n"
    'a,1.00,"keep, this",u, 2.0 ,2024-01-01,3,TRUE,1\r\n'
    "b,1.5,NA,u,,2024-01-03,,TRUE,1\r\n"
    "c,9.0,,v,8.0,,9,FALSE,2\r\n"
    '"d, e",8.50,x,?,7.75,2024-03-01,8,,2\n'
    "f_g,,y,v,7.5,2024-03-02,9,FALSE,\r\n"
)
HOLES = [("b", "y"), ("b", "n"), ("c", "day"), ("d, e", "c"), ("d, e", "flag"), ("f_g", "x"), ("f_g", "z")]
OPTIONS = ("--drop", "note", "--categorical", "z")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Models of the table above: a clustering by the command line's own way to read, and an imputer."""
    folder = tmp_path_factory.mktemp("models")
    frame = pl.read_csv(TEXT.encode(), null_values=["NA", "?", ""], try_parse_dates=True).drop("id", "note")
    frame = frame.with_columns(pl.col("z").cast(pl.String), pl.col("y").str.strip_chars().cast(float))
    ct.CoalescentClustering().fit(frame).save(folder / "clustering.coaltree")
    ct.CoalescentImputer(add_indicator=True).fit(frame).save(folder / "imputer.coaltree")
    array = frame.select("x", "y").to_numpy()
    ct.CoalescentClustering().fit(array).save(folder / "array.coaltree")
    return folder


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    (tmp_path / "t.csv").write_bytes(TEXT.encode())
    return command_in(tmp_path, monkeypatch, capsys)


def table_of(text):
    rows = list(csv.reader(io.StringIO(text, newline="")))
    return {(row[0], name): cell for row in rows[1:] for name, cell in zip(rows[0], row, strict=True)}


def check_filled(text, holes=HOLES):
    """Check that holes are filled, in the spelling of their columns, and that all else is as it was."""
    before, after = table_of(TEXT), table_of(text)
    assert before.keys() == after.keys()
    assert {place for place in before if before[place] != after[place]} == set(holes)
    if holes == HOLES:
        assert after["b", "n"].removeprefix("-").isdecimal()
        assert after["d, e", "flag"] in ("TRUE", "FALSE")
        assert after["d, e", "c"] in ("u", "v")
        assert after["f_g", "z"] in ("1", "2")
        assert after["c", "day"].startswith("202")
        float(after["b", "y"]), float(after["f_g", "x"])
    return after


# -- what comes out ------------------------------------------------------------------------------------


def test_impute_fills_only_missing_cells(command, tmp_path):
    code, out, err = command("impute", "t.csv", "-o", "out.csv", *OPTIONS)
    assert (code, out) == (0, ""), err
    filled = (tmp_path / "out.csv").read_bytes().decode()
    check_filled(filled)
    assert "t.csv: 5 rows, row names from column 'id'" in err
    assert err.splitlines()[-1] == "filled 7 cells in 7 columns"
    # Other cells keep their text.
    for piece in (
        "id,x,note,c,y,day,n,flag,z\r\n",
        'a,1.00,"keep, this",u, 2.0 ,2024-01-01,3,TRUE,1\r\n',
        "b,1.5,NA,u,",
    ):
        assert piece in filled
    assert filled.count("\r\n") == filled.count("\n") == 6
    code, out, _ = command("impute", "t.csv", "-o", "-", *OPTIONS)
    assert code == 0
    assert "\r\n".join(out.split("\r\n")).encode() == filled.encode()
    assert command("impute", "t.csv", "-o", "-", "-q", *OPTIONS)[1:] == (out, "")


def test_impute_matches_estimator(command, tmp_path):
    (tmp_path / "n.csv").write_text("x,y\n1.0,2.0\n1.5,\n9.0,8.0\n8.5,7.75\n,7.5\n2.0,2.5\n")
    arguments = ("--real-process", "brownian", "--noise", "0.1")
    assert command("impute", "n.csv", "-o", "o.csv", *arguments)[0] == 0
    frame = pl.read_csv(tmp_path / "n.csv")
    model = ct.CoalescentImputer(real_process="brownian", noise=0.1).fit(frame)
    np.testing.assert_allclose(pl.read_csv(tmp_path / "o.csv"), model.transform(frame), rtol=1e-5)
    assert command("impute", "n.csv", "-o", "p.csv")[0] == 0
    assert (tmp_path / "p.csv").read_text() != (tmp_path / "o.csv").read_text()


def test_impute_with_tree_sample(command, tmp_path):
    (tmp_path / "n.csv").write_text("x,y\n1.0,2.0\n1.5,\n9.0,8.0\n8.5,7.75\n,7.5\n2.0,2.5\n")
    options = ("--inference", "smc", "--particles", "10", "--runs", "2")
    for name, seed in (("a", "5"), ("b", "5"), ("c", "6")):
        code, _, err = command("impute", "n.csv", "-o", f"{name}.csv", *options, "--seed", seed)
        assert code == 0, err
    frame = pl.read_csv(tmp_path / "n.csv")
    parameters = {"inference": "smc", "n_particles": 10, "n_runs": 2}
    expected = ct.CoalescentImputer(**parameters, random_state=5).fit_transform(frame)
    np.testing.assert_allclose(pl.read_csv(tmp_path / "a.csv"), expected, rtol=1e-5)
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text() != (tmp_path / "c.csv").read_text()


@pytest.mark.parametrize("name", ["clustering", "imputer"])
def test_impute_with_model_file(command, models, tmp_path, name):
    code, out, err = command(
        "impute", "t.csv", "-o", "out.csv", "--model", models / f"{name}.coaltree", "--drop", "note"
    )
    assert (code, out) == (0, ""), err
    after = check_filled((tmp_path / "out.csv").read_bytes().decode())
    assert "note" not in err
    assert err.splitlines() == ["filled 7 cells in 7 columns"]
    # The model is taken as it is: fitted to the same table, it says the same.
    command("impute", "t.csv", "-o", "own.csv", *OPTIONS)
    assert table_of((tmp_path / "own.csv").read_bytes().decode()) == after
    # New rows, a column that the fit did not have, and another order; z is written as numbers.
    (tmp_path / "new.csv").write_text("who,z,flag,n,day,y,c,x\np,,TRUE,3,2024-01-02,,u,1.2\nq,2,,9,2024-03-01,8,w,\n")
    code, _, err = command(
        "impute", "new.csv", "-o", "new2.csv", "--model", models / f"{name}.coaltree", "--n-jobs", "1"
    )
    assert code == 0, err
    before, after = table_of((tmp_path / "new.csv").read_text()), table_of((tmp_path / "new2.csv").read_text())
    assert {place for place in before if before[place] != after[place]} == {
        ("p", "z"), ("p", "y"), ("q", "flag"), ("q", "x"),
    }  # fmt: skip
    assert after["p", "z"] == "1"
    assert "note: Categories that did not occur when the model was fit are read as missing; column 'c': 'w'" in err
    assert err.splitlines()[-1] == "filled 4 cells in 4 columns"


def test_impute_with_model_of_array(command, models, tmp_path):
    """The model's columns have no names, so the columns of the file are matched by position."""
    (tmp_path / "n.csv").write_text("length,width\n1.0,\n,8.0\n")
    code, _, err = command("impute", "n.csv", "-o", "o.csv", "--sd", "s.csv", "--model", models / "array.coaltree")
    assert code == 0, err
    assert pl.read_csv(tmp_path / "o.csv").null_count().row(0) == (0, 0)
    assert pl.read_csv(tmp_path / "s.csv")["column"].to_list() == ["width", "length"]


def test_impute_draws_writes_one_file_per_draw(command, tmp_path):
    options = (*OPTIONS, "--draws", "3")
    code, out, err = command("impute", "t.csv", "-o", "out.csv", *options, "--seed", "4")
    assert (code, out) == (0, ""), err
    assert err.splitlines()[-1] == "filled 7 cells in 7 columns, 3 draws"
    files = contents(tmp_path)
    assert sorted(files) == ["out.1.csv", "out.2.csv", "out.3.csv", "t.csv"]
    draws = [check_filled(files[f"out.{k}.csv"].decode()) for k in (1, 2, 3)]
    assert len({cells["b", "y"] for cells in draws}) == 3
    assert command("impute", "t.csv", "-o", "again.csv", *options, "--seed", "4")[0] == 0
    assert command("impute", "t.csv", "-o", "other.csv", *options)[0] == 0
    assert (tmp_path / "again.2.csv").read_bytes() == files["out.2.csv"]
    assert (tmp_path / "other.2.csv").read_bytes() != files["out.2.csv"]


def test_impute_draws_match_estimator(command, models, tmp_path):
    model = ct.load_model(models / "imputer.coaltree")
    code, _, err = command(
        "impute", "t.csv", "-o", "out.csv", "--model", models / "imputer.coaltree", "--drop", "note", "--draws", "2",
        "--seed", "9",
    )  # fmt: skip
    assert code == 0, err
    frame = pl.read_csv(TEXT.encode(), null_values=["NA", "?", ""], try_parse_dates=True)
    frame = frame.with_columns(pl.col("z").cast(pl.String), pl.col("y").str.strip_chars().cast(float)).drop(
        "id", "note"
    )
    for k, expected in enumerate(model.sample(frame, 2, 9)):
        cells = table_of((tmp_path / f"out.{k + 1}.csv").read_bytes().decode())
        assert float(cells["b", "y"]) == pytest.approx(expected["y"][1], rel=1e-5)
        assert int(cells["b", "n"]) == expected["n"][1]
        assert cells["c", "day"] == str(expected["day"][2])
        assert cells["d, e", "c"] == expected["c"][3]
        assert cells["d, e", "flag"] == str(expected["flag"][3]).upper()


def test_impute_uncertainty_file(command, models, tmp_path):
    model = ("--model", models / "imputer.coaltree", "--drop", "note")
    assert command("impute", "t.csv", "-o", "out.csv", "--sd", "sd.csv", *model)[0] == 0
    with (tmp_path / "sd.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    filled = table_of((tmp_path / "out.csv").read_bytes().decode())
    assert {(row["row"], row["column"]) for row in rows} == set(HOLES)
    assert [row["row"] for row in rows] == ["b", "b", "c", "d, e", "d, e", "f_g", "f_g"]
    for row in rows:
        cell = filled[row["row"], row["column"]]
        if row["column"] in ("c", "flag", "z"):
            assert row["value"].lower() == cell.lower()
            assert row["sd"] == row["low"] == row["high"] == ""
            assert 0.3 < float(row["probability"]) <= 1
        else:
            assert row["probability"] == ""
            assert float(row["sd"]) > 0
            if row["column"] == "day":
                assert row["value"] == cell
            else:
                assert float(row["value"]) == pytest.approx(float(cell), rel=1e-5)
    expected = ct.load_model(models / "imputer.coaltree")
    frame = pl.DataFrame({"x": [1.5], "c": ["u"], "y": [None], "day": [None], "n": [None], "flag": [True], "z": ["1"]})
    (tmp_path / "one.csv").write_text("x,c,y,day,n,flag,z\n1.5,u,,,,true,1\n")
    assert command("impute", "one.csv", "-o", "o.csv", "--sd", "s.csv", *model[:2])[0] == 0
    actual = pl.read_csv(tmp_path / "s.csv")
    cells = expected.predictive(frame)
    assert actual["sd"].to_list() == [cells[name].sd[0] for name in ("y", "day", "n")]
    low, high = (end[0] for end in cells["y"].interval(0.9))
    assert (float(actual["low"][0]), float(actual["high"][0])) == (pytest.approx(low), pytest.approx(high))
    assert actual["low"][1] < actual["value"][1] < actual["high"][1]  # dates
    assert int(actual["low"][2]) <= int(actual["value"][2]) <= int(actual["high"][2])
    # With draws, the csv is about the cells' best values.
    assert command("impute", "t.csv", "-o", "d.csv", "--sd", "sd2.csv", "--draws", "2", *model)[0] == 0
    assert (tmp_path / "sd2.csv").read_bytes() == (tmp_path / "sd.csv").read_bytes()
    code, out, _ = command("impute", "t.csv", "-o", "e.csv", "--sd", "-", *model)
    assert (code, out.encode()) == (0, (tmp_path / "sd.csv").read_bytes())


@pytest.mark.parametrize(
    ("name", "target"),
    [("t.tsv", "o.tab"), ("t.csv.gz", "o.csv.gz"), ("t.txt", "o.csv"), ("t.parquet", "o.pq"), ("T.CSV", "o.csv")],
)
def test_impute_keeps_file_format(command, models, tmp_path, name, target):
    frame = pl.DataFrame({"k": ["a", "b", "c"], "x": [1.0, None, 9.0], "n": [2, 3, None], "c": ["u", "v", None]})
    text = frame.write_csv(separator="\t" if "tsv" in name else ",").encode()
    if "parquet" in name:
        frame.write_parquet(tmp_path / name)
    else:
        (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    code, _, err = command("impute", name, "-o", target)
    assert code == 0, err
    data = (tmp_path / target).read_bytes()
    if "parquet" in name:
        filled = pl.read_parquet(io.BytesIO(data))
    else:
        plain = gzip.decompress(data) if target.endswith("gz") else data
        filled = pl.read_csv(plain, separator="\t" if "tsv" in name else ",")
    assert filled.columns == frame.columns
    assert filled.schema == frame.schema
    assert filled.null_count().row(0) == (0, 0, 0, 0)
    assert filled["k"].to_list() == ["a", "b", "c"]
    assert filled["x"].to_list()[::2] == [1.0, 9.0]
    if "parquet" in name:
        check_sentence(command("impute", name, "-o", "-"), "t.parquet is a parquet file", "standard output")
    else:
        # Standard output is text, also that of a compressed file.
        code, out, _ = command("impute", name, "-o", "-")
        assert (code, out.encode()) == (0, plain)
        code, _, err = command("impute", name, "-o", target, "--draws", "1")
        assert code == 0, err
        ending = ".csv.gz" if target.endswith("gz") else os.path.splitext(target)[1]
        assert (tmp_path / f"o.1{ending}").exists()


def test_impute_keeps_numeric_categories_as_numbers(command, tmp_path):
    frame = pl.DataFrame({"g": [1, 2, None, 2], "h": [1.0, None, 2.5, 2.5], "x": [1.0, 5.0, 5.1, None]})
    frame.write_parquet(tmp_path / "t.parquet")
    code, _, err = command("impute", "t.parquet", "-o", "o.parquet", "--categorical", "g,h")
    assert code == 0, err
    filled = pl.read_parquet(tmp_path / "o.parquet")
    assert filled.schema == frame.schema
    assert (filled["g"][2], filled["h"][1]) == (2, 2.5)


def test_impute_copies_complete_table(command, models, tmp_path):
    text = b"\xef\xbb\xbfid;x;c\r\na; 1,50;\"u\"\r\n\r\nb;2;'v'\r\n"
    (tmp_path / "n.csv").write_bytes(text)
    code, out, err = command("impute", "n.csv", "-o", "o.csv", "--sd", "s.csv", "--draws", "2")
    assert (code, out) == (0, ""), err
    assert (tmp_path / "o.1.csv").read_bytes() == (tmp_path / "o.2.csv").read_bytes() == text
    assert (tmp_path / "s.csv").read_text() == "row,column,value,sd,low,high,probability\n"
    assert "note: n.csv has no missing cell in the columns that are used, and is copied as it is." in err
    assert err.splitlines()[-1] == "filled 0 cells in 0 columns"
    # Holes in columns that are left out are none.
    (tmp_path / "n.csv").write_bytes(b"id,x,y\na,1,\nb,2,3\n")
    code, out, err = command("impute", "n.csv", "-o", "-", "--drop", "y")
    assert (code, out) == (0, "id,x,y\na,1,\nb,2,3\n"), err
    (tmp_path / "n.csv.gz").write_bytes(gzip.compress(b"x,y\n1,2\n2,3\n"))
    assert command("impute", "n.csv.gz", "-o", "-", "-q")[1:] == ("x,y\n1,2\n2,3\n", "")
    code, _, err = command("impute", "n.csv.gz", "-o", "o.csv.gz", "--model", models / "array.coaltree")
    assert code == 0, err
    assert (tmp_path / "o.csv.gz").read_bytes() == (tmp_path / "n.csv.gz").read_bytes()


def test_impute_leaves_unpredictable_cells_missing(command, models, tmp_path):
    """No cell of the column z was observed in the fit; the only value of the column k is known."""
    frame = pl.DataFrame({"x": [1.0, 2.0, 9.0], "z": [None] * 3, "k": [5.0] * 3}, schema_overrides={"z": pl.Float64})
    with pytest.warns(ct.errors.InputWarning):
        ct.CoalescentImputer().fit(frame).save(tmp_path / "m")
    (tmp_path / "n.csv").write_text("x,z,k\n1.2,,\n,,4.0\n")
    code, _, err = command("impute", "n.csv", "-o", "o.csv", "--model", "m", "--sd", "s.csv")
    assert code == 0, err
    rows = list(csv.DictReader(io.StringIO((tmp_path / "o.csv").read_text())))
    assert [row["z"] for row in rows] == ["", ""]
    assert [float(row["k"]) for row in rows] == [5.0, 4.0]
    assert float(rows[1]["x"])
    assert "note: 2 cells stay missing" in err
    assert "'z'" in err
    assert err.splitlines()[-1] == "filled 2 cells in 2 columns"
    assert pl.read_csv(tmp_path / "s.csv")["sd"].to_list()[0] == 0.0


def test_impute_with_custom_missing_values_and_no_row_names(command, tmp_path):
    (tmp_path / "n.csv").write_text("id,x,y\na,1.0,2.0\na,nix,2.5\nb,9.0,nix\nc,8.5,7.75\n")
    code, _, err = command("impute", "n.csv", "-o", "o.csv", "--na-value", "nix", "--no-id", "--sd", "s.csv")
    assert code == 0, err
    assert "nix" not in (tmp_path / "o.csv").read_text()
    assert pl.read_csv(tmp_path / "s.csv")["row"].to_list() == [1, 2]
    code, _, err = command("impute", "n.csv", "-o", "o.csv", "--na-value", "nix", "--id-column", "id")
    assert code == 0, err
    assert "note: 1 row name was not distinct" in err
    assert (tmp_path / "o.csv").read_text().startswith("id,x,y\na,1.0,2.0\na,")


# -- input that cannot be used -------------------------------------------------------------------------


def test_impute_new_rows_with_full_covariance(command, tmp_path):
    (tmp_path / "n.csv").write_text("x,y\n1,\n3,2\n")
    frame = pl.DataFrame({"x": [0.0, 0.4, 3.0, 3.5], "y": [1.0, 0.2, 2.0, 2.6]})
    model = ct.CoalescentClustering(covariance="full").fit(frame)
    model.save(tmp_path / "full")
    code, _, _ = command("impute", "n.csv", "-o", "o.csv", "--model", "full")
    assert code == 0
    filled = pl.read_csv(tmp_path / "o.csv")
    assert filled["x"].to_list() == [1.0, 3.0]
    assert filled["y"][1] == 2.0
    assert 0.0 < filled["y"][0] < 3.0


def test_impute_rejects_unfillable_tables(command, models, tmp_path):
    check_sentence(command("impute", "no.csv", "-o", "o.csv"), "no.csv does not exist")
    check_sentence(command("impute", "no.xlsx", "-o", "o.csv"), "no.xlsx does not exist")
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    check_sentence(command("impute", "t.xlsx", "-o", "o.xlsx"), "t.xlsx")
    (tmp_path / "n.csv").write_text("x,y\n1,\ninf,2\n")
    check_sentence(command("impute", "n.csv", "-o", "o.csv"), "infinite")
    (tmp_path / "n.csv").write_text("x,y\n1,\n3,2\n")
    check_sentence(
        command("impute", "n.csv", "-o", "o.csv", "--model", models / "imputer.coaltree"),
        "lacks the columns 'c', 'day'",
    )
    assert not (tmp_path / "o.csv").exists()
    code, out, err = command("impute", "t.csv")
    assert (code, out) == (2, "")
    assert "--output" in err


@pytest.mark.parametrize(
    ("place", "error", "code", "named"),
    [
        ("fit", KeyboardInterrupt(), 130, "interrupted"),
        ("sample", RuntimeError("odd"), 1, "RuntimeError: odd"),
        ("fill", OSError(28, "No space left on device"), 2, "No space left on device"),
        ("disk", KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_failed_impute_leaves_no_partial_files(command, tmp_path, monkeypatch, place, error, code, named):
    (tmp_path / "o.2.csv").write_text("old")
    before = contents(tmp_path)
    from coaltree.table import fill

    owner, name = {
        "fit": (ct.CoalescentImputer, "_fit_table"),
        "sample": (ct.CoalescentImputer, "sample"),
        "fill": (fill, "fill_file"),
        "disk": (os, "replace"),
    }[place]
    real, calls = getattr(owner, name), []

    def fail_first(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 1:  # on the disk: the rename that makes the change
            raise error
        return real(*arguments, **options)

    monkeypatch.setattr(owner, name, fail_first)
    check_sentence(
        command("impute", "t.csv", "-o", "o.csv", "--draws", "3", "--sd", "s.csv", *OPTIONS), named, code=code
    )
    assert contents(tmp_path) == before


def test_codes_keep_leading_zeros(command, tmp_path):
    rows = [("ab"[k % 2], k % 2 + 0.01 * k, ("01067", "20095")[k % 2]) for k in range(12)]
    lines = ["kind,x,zip", *(f"{kind},{x:g},{code if k else ''}" for k, (kind, x, code) in enumerate(rows))]
    (tmp_path / "zip.csv").write_text("\n".join(lines) + "\n")
    assert command("impute", "zip.csv", "-o", "filled.csv")[0] == 0
    filled = (tmp_path / "filled.csv").read_text().splitlines()
    assert filled == [lines[0], "a,0,01067", *lines[2:]]
