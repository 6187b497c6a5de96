"""The commands score and place: a model and new rows in, a csv file out."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import coaltree as ct
from coaltree.cli import app
from coaltree.workflow.model import FittedModel
from command_line import check_sentence, command_in, contents

pytestmark = pytest.mark.usefixtures("short_chains", "blank_pictures")

ENVIRONMENT = dict(os.environ)
TEXT = (
    "id,x,y,c,z\n"
    "a,1.0,2.0,u,007\n"
    "b,1.5,,u,007\n"
    "c,9.0,8.0,v,8.50\n"
    '"d, e",8.5,NA,v,8.50\n'
    "f_g,?,7.5,,007\n"
    "h,9.1,7.7,v,\n"
)  # fmt: skip
# Other columns in another order, names that the fit did not have, numbers written otherwise.
NEW = "name,z,more,y,x,c\np,7,i,2.5,1.2,u\nq,8.5,j,,8.8,v\nr,,k,3.0,,\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, new rows, the results of a fit, an imputer, and a model of an array."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "t.csv").write_text(TEXT)
    options = ["--categorical", "z", "--noise", "0.1", "-q"]
    done = CliRunner().invoke(app, ["fit", str(folder / "t.csv"), "-o", str(folder / "out"), *options])
    assert done.exit_code == 0, done.output
    frame = pl.DataFrame({"x": [1.0, None, 9.0], "c": ["u", "v", "v"]})
    ct.CoalescentImputer().fit(frame).save(folder / "imputer.coaltree")
    array = np.array([[1.0, "u"], [1.5, "u"], [9.0, "v"], [None, "v"]], dtype=object)
    ct.CoalescentClustering(unseen_categories="error").fit(array).save(folder / "array.coaltree")
    return folder


@pytest.fixture(scope="module")
def fitted(folder):
    return ct.load_model(folder / "out" / "model.coaltree")


@pytest.fixture
def command(folder, tmp_path, monkeypatch, capsys):
    (tmp_path / "model.coaltree").write_bytes((folder / "out" / "model.coaltree").read_bytes())
    (tmp_path / "imputer.coaltree").write_bytes((folder / "imputer.coaltree").read_bytes())
    (tmp_path / "array.coaltree").write_bytes((folder / "array.coaltree").read_bytes())
    (tmp_path / "t.csv").write_text(TEXT)
    (tmp_path / "new.csv").write_text(NEW)
    return command_in(tmp_path, monkeypatch, capsys)


def rows_of(text):
    rows = list(csv.reader(io.StringIO(text)))
    return rows[0], [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def frame_of_new():
    """The new rows, with the categories as the fit has them."""
    return pl.DataFrame(
        {
            "x": [1.2, 8.8, None],
            "y": [2.5, None, 3.0],
            "c": ["u", "v", None],
            "z": ["007", "8.50", None],
        }
    )


# -- score ---------------------------------------------------------------------------------------------


def test_score_matches_model(command, fitted, tmp_path):
    code, out, err = command("score", "model.coaltree", "new.csv")
    assert code == 0, err
    header, rows = rows_of(out)
    assert header == ["row", "log_density"]
    expected = fitted.score_samples(frame_of_new())
    assert [row["row"] for row in rows] == ["p", "q", "r"]
    assert [float(row["log_density"]) for row in rows] == expected.tolist()
    assert len(set(expected)) == 3
    assert err.splitlines()[-1] == f"mean log density {expected.mean():.6g} over 3 rows"
    notes = [line for line in err.splitlines() if line.startswith("note: ")]
    assert notes == ["note: Column 'more' did not occur when the model was fit and is ignored."]
    for target in (["-o", "-"], ["-o", "scores.csv"], ["--output", "sub.csv"]):
        code, again, _ = command("score", "model.coaltree", "new.csv", *target)
        assert code == 0
        assert (again or Path(target[1]).read_text()) == out
    assert contents(tmp_path)["scores.csv"] == out.encode()


def test_score_quiet_prints_only_results(command):
    code, out, err = command("score", "model.coaltree", "new.csv", "-q")
    assert (code, err) == (0, "")
    assert out.startswith("row,log_density\np,")
    assert command("score", "model.coaltree", "new.csv", "-q", "-o", "s.csv") == (0, "", "")


def test_score_reads_training_rows_as_fit_did(command, folder, fitted):
    _, out, err = command("score", "model.coaltree", "t.csv")
    frame = pl.read_csv(TEXT.encode(), null_values=["NA", "?", ""], schema_overrides={"z": pl.String})
    expected = fitted.score_samples(frame.drop("id"))
    assert [float(row["log_density"]) for row in rows_of(out)[1]] == expected.tolist()
    assert err.count("note") == err.count("rows of the fit") == 1


@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz", "parquet"])
@pytest.mark.parametrize("as_numbers", [True, False])
def test_numeric_categories_match_in_all_file_formats(command, fitted, tmp_path, kind, as_numbers):
    expected = fitted.score_samples(frame_of_new()).tolist()
    frame = frame_of_new()
    if as_numbers:
        frame = frame.with_columns(pl.Series("z", [7.0, 8.5, None]))
    if kind == "parquet":
        frame.write_parquet(tmp_path / "n.parquet")
    else:
        text = frame.write_csv(separator="\t" if kind == "tsv" else ",")
        data = text.encode()
        if kind == "csv.gz":
            import gzip

            data = gzip.compress(data)
        (tmp_path / f"n.{kind}").write_bytes(data)
    code, out, err = command("score", "model.coaltree", f"n.{kind}")
    assert code == 0, err
    assert [float(row["log_density"]) for row in rows_of(out)[1]] == expected
    assert [row["row"] for row in rows_of(out)[1]] == ["0", "1", "2"]
    assert "note" not in err


def test_categorical_first_column_is_not_row_names(command, tmp_path):
    """The first column is text that differs in every row, and categorical in the fit."""
    (tmp_path / "n.csv").write_text("c,x,y,z\nu,1,2,007\nv,9,8,8.50\n")
    code, out, err = command("score", "model.coaltree", "n.csv")
    assert code == 0, err
    assert [row["row"] for row in rows_of(out)[1]] == ["0", "1"]
    (tmp_path / "one.csv").write_text("c,x,y,z\nu,1,2,007\n")
    assert rows_of(command("score", "model.coaltree", "one.csv")[1])[1][0] == rows_of(out)[1][0]


def test_score_handles_id_columns_and_missing_cells(command, tmp_path):
    (tmp_path / "n.csv").write_text("k,x,y,c,z\n1,nix,2.5,u,007\n1,8.8,nix,v,8.50\n")
    code, out, err = command("score", "model.coaltree", "n.csv", "--id-column", "k", "--na-value", "nix")
    assert code == 0, err
    assert [row["row"] for row in rows_of(out)[1]] == ["1", "1_2"]
    assert "note: 1 row name was not distinct" in err
    code, out, err = command("score", "model.coaltree", "n.csv", "--drop", "k", "--na-value", "nix")
    assert code == 0, err
    assert [row["row"] for row in rows_of(out)[1]] == ["0", "1"]
    assert "note" not in err
    _, out, err = command("score", "model.coaltree", "new.csv", "--no-id")
    assert [row["row"] for row in rows_of(out)[1]] == ["0", "1", "2"]
    assert "note: Columns 'name', 'more' did not occur when the model was fit and are ignored." in err
    check_sentence(command("score", "model.coaltree", "n.csv", "--id-column", "k"), "Column 'x'", "'nix'", "numbers")


def test_unseen_option_handles_unknown_categories(command, tmp_path):
    (tmp_path / "n.csv").write_text("x,y,c,z\n1,2,w,007\n1,2,,007\n")
    code, out, err = command("score", "model.coaltree", "n.csv")
    assert code == 0, err
    rows = rows_of(out)[1]
    assert rows[0]["log_density"] == rows[1]["log_density"]
    assert "note: Categories that did not occur when the model was fit are read as missing; column 'c': 'w'" in err
    assert command("score", "model.coaltree", "n.csv", "--unseen", "missing")[1] == out
    check_sentence(command("score", "model.coaltree", "n.csv", "--unseen", "error"), "Column 'c' holds 'w'")
    check_sentence(command("place", "model.coaltree", "n.csv", "--unseen", "error"), "Column 'c' holds 'w'")


def test_model_of_array_matches_columns_by_position(command, tmp_path):
    """The model's own option makes unseen categories an error."""
    (tmp_path / "n.csv").write_text("size,kind\n1.2,u\n8.0,\n")
    code, out, err = command("score", "array.coaltree", "n.csv")
    assert code == 0, err
    model = ct.load_model("array.coaltree")
    expected = model.score_samples(np.array([[1.2, "u"], [8.0, None]], dtype=object))
    assert [float(row["log_density"]) for row in rows_of(out)[1]] == expected.tolist()
    (tmp_path / "n.csv").write_text("size,kind\n1.2,w\n8.0,\n")
    check_sentence(command("score", "array.coaltree", "n.csv"), "'w'")
    assert command("score", "array.coaltree", "n.csv", "--unseen", "missing")[0] == 0


# -- place ---------------------------------------------------------------------------------------------


def test_place_matches_model(command, fitted):
    code, out, err = command("place", "model.coaltree", "new.csv")
    assert code == 0, err
    header, rows = rows_of(out)
    expected = fitted.place(frame_of_new()).columns()
    assert header == [*expected]
    assert header[-2:] == ["cluster", "cluster_probability"]
    assert [row["row"] for row in rows] == ["p", "q", "r"]
    for name, values in expected.items():
        if name != "row":
            assert [row[name] for row in rows] == list(map(str, values))
    assert [int(row["cluster"]) for row in rows] == fitted.predict(frame_of_new()).tolist()
    shares = fitted.predict_proba(frame_of_new())
    assert [float(row["cluster_probability"]) for row in rows] == shares.max(axis=1).tolist()
    assert err.count("note: Column 'more'") == 1


def test_place_nearest_and_level_options(command, fitted, tmp_path):
    assert (
        command("place", "model.coaltree", "new.csv", "--nearest", "1", "--level", "0.5", "-o", "p.csv", "-q")[0] == 0
    )
    header, rows = rows_of((tmp_path / "p.csv").read_text())
    expected = fitted.place(frame_of_new(), n_nearest=1, level=0.5)
    assert [name for name in header if name.startswith("nearest")] == ["nearest_1", "nearest_1_height"]
    assert [float(row["height_high"]) for row in rows] == expected.height_high.tolist()
    assert [row["nearest_1"] for row in rows] == [names[0] for names in expected.nearest]
    header, _ = rows_of(command("place", "model.coaltree", "new.csv", "--nearest", "0")[1])
    assert not any(name.startswith("nearest") for name in header)
    header, _ = rows_of(command("place", "model.coaltree", "new.csv", "--nearest", "99")[1])
    assert "nearest_6" in header
    assert "nearest_7" not in header


# -- profile and explain -------------------------------------------------------------------------------


def test_profile_and_explain_match_model(command, fitted, tmp_path):
    """In csv and JSON; rows by name, by number and all of them, and new ones."""
    lines = rows_of(command("profile", "model.coaltree", "--columns", "2")[1])[1]
    profile = fitted.profile(n_columns=2)
    assert [line["column"] for line in lines] == profile.column.tolist()
    assert [float(line["evidence"]) for line in lines] == profile.evidence.tolist()
    whole = rows_of(command("explain", "model.coaltree")[1])[1]
    assert [float(line["log_ratio"]) for line in whole] == fitted.explain(range(6)).log_ratio.tolist()
    chosen = json.loads(command("explain", "model.coaltree", "--row", "f_g", "--row", "0", "--json")[1])
    assert chosen["n_rows"] == 2
    expected = fitted.explain(["f_g", "a"])
    for name in ("row", "column", "log_ratio"):
        assert [line[name] for line in chosen["rows"]] == expected[name].tolist()
    code, _, _ = command("explain", "model.coaltree", "new.csv", "-o", "why.csv", "--columns", "1", "-q")
    assert code == 0
    lines = rows_of((tmp_path / "why.csv").read_text())[1]
    assert [line["row"] for line in lines] == [name for name in "pqr" for _ in range(3)]
    assert [int(line["cluster"]) for line in lines[::3]] == fitted.predict(frame_of_new()).tolist()


# -- input that cannot be used -------------------------------------------------------------------------


@pytest.mark.parametrize("question", ["score", "place"])
def test_invalid_model_files_are_reported(command, tmp_path, question):
    check_sentence(command(question, "no.coaltree", "new.csv"), "no.coaltree does not exist")
    check_sentence(command(question, tmp_path, "new.csv"), "is a folder")
    check_sentence(command(question, "t.csv", "new.csv"), "t.csv")
    (tmp_path / "empty").touch()
    check_sentence(command(question, "empty", "new.csv"), "empty is empty")
    whole = (tmp_path / "model.coaltree").read_bytes()
    (tmp_path / "cut").write_bytes(whole[:-20])
    check_sentence(command(question, "cut", "new.csv"), "cut")
    check_sentence(
        command(question, "imputer.coaltree", "new.csv"),
        "imputer.coaltree holds a CoalescentImputer, which fills cells",
    )


@pytest.mark.parametrize("question", ["score", "place"])
def test_mismatched_tables_are_reported(command, tmp_path, question):
    check_sentence(command(question, "model.coaltree", "no.csv"), "no.csv does not exist")
    (tmp_path / "n.csv").write_text("id,x,y,c\na,1,2,u\n")
    check_sentence(command(question, "model.coaltree", "n.csv"), "lacks the column 'z'")
    (tmp_path / "n.csv").write_text("id,x,y,c,z\n")
    check_sentence(command(question, "model.coaltree", "n.csv"), "has a header but no rows")
    (tmp_path / "n.csv").write_text("x,y,c,z\n1,inf,u,007\n")
    check_sentence(command(question, "model.coaltree", "n.csv"), "infinite")
    check_sentence(command(question, "model.coaltree", "new.csv", "--drop", "nothing"), "no column 'nothing'")
    check_sentence(command(question, "model.coaltree", "new.csv", "--drop", "x"), "lacks the column 'x'")
    check_sentence(command(question, "model.coaltree", "new.csv", "--id-column", "nothing"), "no column 'nothing'")
    check_sentence(
        command(question, "model.coaltree", "new.csv", "--id-column", "name", "--no-id"), "--no-id and --id-column"
    )


@pytest.mark.parametrize("question", ["score", "place"])
def test_unwritable_output_is_reported(command, tmp_path, monkeypatch, question):
    (tmp_path / "s.csv").write_text("old")
    before = contents(tmp_path)
    arguments = (question, "model.coaltree", "new.csv", "-o")
    for error, code, part in (
        (KeyboardInterrupt(), 130, "interrupted"),
        (OSError(28, "No space left on device"), 2, "s.csv cannot be written: No space left on device"),
    ):

        def fail(*arguments, error=error):
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            check_sentence(command(*arguments, "s.csv"), part, code=code)
        with monkeypatch.context() as patch:
            patch.setattr(FittedModel, "read_rows", fail)
            check_sentence(command(*arguments, "s.csv"), "interrupted" if code == 130 else "No space", code=code)
    assert contents(tmp_path) == before


def test_standard_output_is_utf8(fitted, tmp_path):
    (tmp_path / "n.csv").write_text("id,x,y,c,z\n" + "".join(f"Ω{i},1,2,u,007\n" for i in range(3)), encoding="utf-8")
    fitted.score_samples(pl.DataFrame({"x": [1.0], "y": [2.0], "c": ["u"], "z": ["007"]}))
    fitted.save(tmp_path / "model.coaltree")  # with the draws, which the process would make by long chains
    command = [sys.executable, "-m", "coaltree", "score", "model.coaltree", "n.csv"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, timeout=300, check=True,
        env=ENVIRONMENT | {"PYTHONIOENCODING": "latin-1"},
    )  # fmt: skip
    assert done.stdout.decode("utf-8").splitlines()[1].startswith("Ω0,")


# -- rows of which little can be said --------------------------------------------------------------------

FAR = " a log density more than 1,000 below that of the rows of the fit: check units and cells."


@pytest.mark.parametrize(
    ("question", "instead"), [("score", "log density is 0"), ("place", "place is that of the prior")]
)
def test_rows_with_few_cells_are_noted(command, tmp_path, question, instead):
    header = "id,x,y,c,z\n"
    (tmp_path / "n.csv").write_text(header + 'p,1.2,2.5,u,007\n"a,b",,,,\nfar 🦊,9e9,2.5,u,007\n')
    code, out, err = command(question, "model.coaltree", "n.csv")
    assert code == 0, err
    assert [row["row"] for row in rows_of(out)[1]] == ["p", "a,b", "far 🦊"]
    assert [line for line in err.splitlines() if line.startswith("note: ")] == [
        f"note: 1 row has no observed cell ('a,b'): its {instead}.",
        "note: 1 row is far outside the table of the fit ('far 🦊'), with" + FAR,
    ]
    (tmp_path / "n.csv").write_text(header + "p,,,,\nq,,,,\nr,-1e9,,,\ns,1e9,,,\n")
    code, out, err = command(question, "model.coaltree", "n.csv", "--json")
    assert code == 0, err
    assert json.loads(out)["remarks"] == [
        f"2 rows have no observed cell ('p', 'q'): for each, the {instead}.",
        "2 rows are far outside the table of the fit ('r', 's'), with" + FAR,
    ]


# -- the column of row names -----------------------------------------------------------------------------

REPEATED = "x,y,id,c\n1.2,2.5,p,u\n8.8,,p,v\n,3.0,,\n"  # by itself no column of row names


@pytest.mark.parametrize("question", ["score", "place"])
def test_model_remembers_row_name_column(command, tmp_path, question):
    (tmp_path / "n.csv").write_text(REPEATED.replace("c\n", "c,z\n", 1).replace("u\n", "u,007\n").replace("v\n", "v,\n")
                                    .replace(",,\n", ",,,\n"))  # fmt: skip
    code, out, err = command(question, "model.coaltree", "n.csv")
    assert code == 0, err
    assert [row["row"] for row in rows_of(out)[1]] == ["p", "p_2", "row 2"]
    assert "'id'" not in err
    code, out, err = command(question, "model.coaltree", "n.csv", "--no-id")
    assert [row["row"] for row in rows_of(out)[1]] == ["0", "1", "2"]
    assert "Column 'id' did not occur when the model was fit and is ignored." in err
    code, out, err = command(question, "model.coaltree", "n.csv", "--drop", "id")
    assert [row["row"] for row in rows_of(out)[1]] == ["0", "1", "2"]
    assert "'id'" not in err


def test_renamed_row_name_column_is_ignored_with_note(command, tmp_path):
    (tmp_path / "n.csv").write_text("other,id,x,y,c,z\nA,p,1.2,2.5,u,007\nB,q,8.8,,v,007\n")
    code, out, err = command("score", "model.coaltree", "n.csv", "--id-column", "other")
    assert code == 0, err
    assert [row["row"] for row in rows_of(out)[1]] == ["A", "B"]
    assert "Column 'id' did not occur when the model was fit and is ignored." in err
    _, out, err = command("score", "model.coaltree", "n.csv")
    assert [row["row"] for row in rows_of(out)[1]] == ["p", "q"]
    assert "Column 'other' did not occur when the model was fit and is ignored." in err


def test_impute_with_model_keeps_row_name_column(command, tmp_path):
    (tmp_path / "n.csv").write_text("c,id,x,y,z\nu,007,1.2,,007\nv,,8.8,7.9,007\n")
    code, _, err = command("impute", "n.csv", "-o", "filled.csv", "--model", "model.coaltree", "--sd", "cells.csv")
    assert code == 0, err
    assert (tmp_path / "filled.csv").read_text().splitlines()[2] == "v,,8.8,7.9,007"
    assert [row["row"] for row in rows_of((tmp_path / "cells.csv").read_text())[1]] == ["007"]
