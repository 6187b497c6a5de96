"""The command line: fit, demo and version, from files to files."""

import csv
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score

import coaltree
from coaltree import Tree
from coaltree.errors import InputWarning
from coaltree.estimators.clustering import CoalescentClustering
from coaltree.persist import result_files as files
from coaltree.workflow import fit as workflow
from command_line import check_sentence, command_in

pytestmark = pytest.mark.usefixtures("short_chains")

ENVIRONMENT = dict(os.environ)
RESULTS = ["clusters.csv", "dendrogram.png", "model.coaltree", "summary.json", "tree.nwk"]
TEXT = (
    "id,x,y,c\n"
    "a,1.0,2.0,u\n"
    "b,1.5,,u\n"
    "c,9.0,8.0,v\n"
    '"d, e",8.5,NA,v\n'
    "f_g,?,7.5,u\n"
)  # fmt: skip


@pytest.fixture
def coaltree_command(monkeypatch, capsys, tmp_path):
    return command_in(tmp_path, monkeypatch, capsys)


@pytest.fixture
def fit(coaltree_command, tmp_path):
    """Write a table, fit it into the folder "out"; returns exit code, output and error output.

    The parameters are fitted only where a test is about that.
    """

    def run(content, *options, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return coaltree_command("fit", path, "-o", tmp_path / "out", *options)

    return run


def read_results(folder, *more):
    """Check the files and return the rows of clusters, the tree and the summary."""
    assert sorted(path.name for path in folder.iterdir()) == sorted([*RESULTS, *more])
    with (folder / "clusters.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["name", "cluster"]
    names = [name for name, _ in rows[1:]]
    tree = Tree.from_newick((folder / "tree.nwk").read_text(encoding="utf-8"), names)
    facts = json.loads((folder / "summary.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert (folder / "dendrogram.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    labels = [int(label) for _, label in rows[1:]]
    assert facts["n_rows"] == len(names) == tree.n_leaves
    assert facts["cluster_sizes"] == np.bincount(labels).tolist()
    assert facts["n_clusters"] == len(set(labels))
    return rows[1:], tree, facts


# -- what comes out ----------------------------------------------------------------------------------


def test_fit_writes_result_files(fit, tmp_path):
    code, out, err = fit(TEXT, "--n-clusters", "2")
    assert code == 0, err
    rows, tree, facts = read_results(tmp_path / "out")
    assert [name for name, _ in rows] == ["a", "b", "c", "d, e", "f_g"]
    assert [label for _, label in rows][:4] == ["0", "0", "1", "1"]
    assert facts["coaltree_version"] == coaltree.__version__
    assert facts["input"] == "table.csv"
    assert facts["id_column"] == "id"
    assert (facts["n_columns"], facts["n_missing"], facts["clusters_chosen_by"]) == (3, 3, "n_clusters")
    assert facts["missing_share"] == pytest.approx(3 / 15)
    assert facts["columns"] == [
        {"name": "x", "kind": "real", "n_categories": None, "n_missing": 1, "used": True},
        {"name": "y", "kind": "real", "n_categories": None, "n_missing": 2, "used": True},
        {"name": "c", "kind": "categorical", "n_categories": 2, "n_missing": 0, "used": True},
    ]
    assert facts["log_joint"] == pytest.approx(facts["log_likelihood"] + facts["log_prior"])
    assert facts["log_prior"] == pytest.approx(coaltree.log_prior(tree))
    assert facts["tree_height"] == pytest.approx(tree.heights[-1])
    assert facts["settings"]["n_clusters"] == 2
    assert facts["remarks"] == []
    assert "table.csv: 5 rows, row names from column 'id'" in err
    assert "columns: 2 real (x, y), 1 categorical (c)" in err
    assert "note" not in err
    assert "clusters  2 (3, 2 rows)" in out
    assert "20 % of the cells" in out
    assert out.splitlines()[-1].endswith(
        f"tree.nwk, clusters.csv, dendrogram.png, summary.json, model.coaltree in {tmp_path / 'out'}"
    )


def test_fit_matches_estimator(fit, tmp_path):
    assert fit(TEXT)[0] == 0
    rows, tree, facts = read_results(tmp_path / "out")
    frame = pl.DataFrame(
        {
            "x": [1.0, 1.5, 9.0, 8.5, None],
            "y": [2.0, None, 8.0, None, 7.5],
            "c": ["u", "u", "v", "v", "u"],
        }
    )
    model = CoalescentClustering().fit(frame)
    # merges at the same height have no order in a Newick file
    assert coaltree.robinson_foulds(tree, model.tree_.rename(tree.leaf_names)) == 0
    np.testing.assert_allclose(tree.heights, model.tree_.heights, rtol=1e-12, atol=1e-15)
    assert [int(label) for _, label in rows] == model.labels_.tolist()
    assert facts["log_joint"] == model.log_joint_
    assert facts["parameters"] == model.parameters_
    assert (facts["clusters_chosen_by"], facts["resolution"]) == (model._model.clusters_chosen_by, None)
    assert {name: facts["settings"][name] for name in ("real_process", "covariance", "noise")} == {
        name: getattr(model, name) for name in ("real_process", "covariance", "noise")
    }
    loaded = coaltree.load_model(tmp_path / "out" / "model.coaltree")
    assert loaded.tree_ == model.tree_.rename(tree.leaf_names)
    assert loaded.parameters_ == model.parameters_
    np.testing.assert_array_equal(loaded.score_samples(frame), model.score_samples(frame))
    assert loaded.feature_names_in_.tolist() == ["x", "y", "c"]


@pytest.mark.parametrize("options", [["--covariance", "spherical"], ["--real-process", "brownian", "--noise", "0.2"]])
def test_fit_real_process_option(fit, tmp_path, options):
    text = "".join(line.rpartition(",")[0] + "\n" for line in TEXT.splitlines())
    code, _, err = fit(text, *options)
    assert code == 0, err
    model = coaltree.load_model(tmp_path / "out" / "model.coaltree")
    settings = read_results(tmp_path / "out")[2]["settings"]
    if "spherical" in options:
        assert isinstance(model.process_, coaltree.OrnsteinUhlenbeck)
        assert model.process_.variance.shape == ()
        assert (model.covariance, settings["covariance"]) == ("spherical", "spherical")
    else:
        assert isinstance(model.process_, coaltree.Brownian)
        assert model.process_.noise > 0
        assert model.noise == settings["noise"] == 0.2
        assert settings["real_process"] == "brownian"


def test_fit_gives_equal_results_for_all_file_formats(coaltree_command, tmp_path):
    pl.read_csv(TEXT.encode(), null_values=["NA", "?"]).write_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text(TEXT)
    with (tmp_path / "t.tsv").open("w", newline="") as file:
        csv.writer(file, delimiter="\t").writerows(csv.reader(TEXT.splitlines()))
    actual = set()
    for suffix in ("csv", "tsv", "parquet"):
        code, _, err = coaltree_command("fit", f"t.{suffix}", "-o", suffix)
        assert code == 0, err
        read_results(tmp_path / suffix)
        actual.add(tuple((tmp_path / suffix / name).read_bytes() for name in ("tree.nwk", "clusters.csv")))
    assert len(actual) == 1


def test_fit_replaces_earlier_results(fit, tmp_path):
    assert fit(TEXT, "--n-clusters", "3")[0] == 0
    assert fit(TEXT, "--n-clusters", "2")[0] == 0
    assert read_results(tmp_path / "out")[2]["n_clusters"] == 2
    first = {name: (tmp_path / "out" / name).read_bytes() for name in RESULTS}
    (tmp_path / "out" / "mine.txt").write_text("kept")
    (tmp_path / "out" / "report.html").write_text("of another fit")
    assert fit(TEXT, "--n-clusters", "2")[0] == 0
    assert not (tmp_path / "out" / "report.html").exists()
    assert (tmp_path / "out" / "mine.txt").read_text() == "kept"
    assert {name: (tmp_path / "out" / name).read_bytes() for name in RESULTS} == first
    assert fit(TEXT, "--n-clusters", "2", "--n-jobs", "1")[0] == 0
    del first["model.coaltree"]  # which knows of the threads
    assert {name: (tmp_path / "out" / name).read_bytes() for name in first} == first


def test_fit_options_reach_table_and_model(fit, tmp_path):
    text = TEXT.replace("8.5,NA", "8.5,nix")
    code, _, err = fit(
        text, "--no-id", "--drop", "id", "--categorical", "x", "--na-value", "nix", "--rule", "max-prob",
        "--real-process", "brownian", "--noise", "0.1", "--no-standardize", "--height-threshold", "0",
    )  # fmt: skip
    assert code == 0, err
    rows, _, facts = read_results(tmp_path / "out")
    assert [name for name, _ in rows] == ["0", "1", "2", "3", "4"]
    assert [(c["name"], c["kind"]) for c in facts["columns"]] == [
        ("x", "categorical"), ("y", "real"), ("c", "categorical"),
    ]  # fmt: skip
    assert (facts["rule"], facts["clusters_chosen_by"]) == ("max-prob", "height_threshold")
    assert facts["settings"]["noise"] == 0.1
    assert facts["settings"]["standardize"] is False
    assert "numbered from 0" in err


def test_column_options_accept_repeats_and_commas(fit, tmp_path):
    text = 'k,"x, y",u,v,w\n1,2,3,4,5\n2,1,3,5,4\n3,1,1,4,4\n'
    code, _, err = fit(text, "--drop", '"x, y",u', "--drop", "v", "--id-column", "k")
    assert code == 0, err
    rows, _, facts = read_results(tmp_path / "out")
    assert [c["name"] for c in facts["columns"]] == ["w"]
    assert [name for name, _ in rows] == ["1", "2", "3"]
    assert facts["settings"]["drop"] == ["x, y", "u", "v"]


def test_fit_quiet_prints_nothing(fit, tmp_path):
    constant = TEXT.replace("u\n", "v\n")
    assert fit(constant, "--quiet") == (0, "", "")
    assert read_results(tmp_path / "out")[2]["remarks"] == ["1 column is constant and ignored: 'c'."]


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_demo_reports_agreement_with_classes(coaltree_command, tmp_path, monkeypatch, every):
    """With some or all of the wines."""
    wine = load_wine()
    wine.data, wine.target = wine.data[::every], wine.target[::every]
    monkeypatch.setattr("sklearn.datasets.load_wine", lambda: wine)
    n = len(wine.target)
    hidden = np.random.default_rng(0).random(wine.data.shape) < 0.3
    code, out, err = coaltree_command("demo")
    assert code == 0, err
    rows, tree, facts = read_results(tmp_path / "coaltree-demo", "report.html")
    assert len(rows) == n
    assert rows[0][0] == "Barolo 1"
    assert facts["missing_share"] == pytest.approx(hidden.mean())
    cultivars = [name.split()[0] for name, _ in rows]
    agreement = adjusted_rand_score(cultivars, [label for _, label in rows])
    assert f"coaltree       {agreement:.2f} " in out
    assert "Ward's method  0." in out
    assert "coaltree fit" in out
    assert f"Open {Path('coaltree-demo') / 'report.html'} in a browser" in out
    assert f"{n} wines" in (tmp_path / "coaltree-demo" / "report.html").read_text(encoding="utf-8")
    code, out, err = coaltree_command("demo", "-q", "-o", "second", "--json")
    assert (code, err) == (0, "")
    summary = json.loads(out)
    assert {name: summary[name] for name in facts} == facts
    assert summary["dendrogram_purity"] == pytest.approx(coaltree.metrics.dendrogram_purity(tree, cultivars))
    assert summary["adjusted_rand_index"] == pytest.approx(agreement)
    # Ward's method, by scipy
    X = np.where(hidden, np.nan, wine.data)
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    ward = fcluster(linkage((X - X.mean(axis=0)) / X.std(axis=0), "ward"), 3, "maxclust")
    assert summary["ward_adjusted_rand_index"] == pytest.approx(adjusted_rand_score(cultivars, ward))
    assert summary["outdir"] == "second"
    assert (tmp_path / "second" / "tree.nwk").read_text() == tree_text(tmp_path / "coaltree-demo")


def tree_text(folder):
    return (folder / "tree.nwk").read_text()


def test_version_option_prints_version(coaltree_command):
    assert coaltree_command("--version") == (0, f"coaltree {coaltree.__version__}\n", "")


def test_python_m_coaltree_runs_fit(tmp_path):
    (tmp_path / "t.csv").write_text("Ωmega,x\nä,1\nb,2\nc,4\n", encoding="utf-8")
    # Names that the terminal cannot show are spelled out.
    done = subprocess.run(
        [sys.executable, "-m", "coaltree", "fit", "t.csv", "-o", "out"],
        cwd=tmp_path, capture_output=True, timeout=300, check=False,
        env=ENVIRONMENT | {"PYTHONIOENCODING": "latin-1", "PYTHONPROFILEIMPORTTIME": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert rb"\u03a9mega" in done.stderr
    # What takes longer to import than a table to fit is left alone.
    imported = set(re.findall(r"^import time:.*\| +([\w.]+)\r?$", done.stderr.decode("latin-1"), re.MULTILINE))
    assert {"polars", "matplotlib.figure"} <= imported
    assert not imported & {"sklearn", "pandas", "scipy", "matplotlib.pyplot", "rich", "plotly"}
    rows, _, _ = read_results(tmp_path / "out")
    assert [name for name, _ in rows] == ["ä", "b", "c"]
    done = subprocess.run(
        [sys.executable, "-m", "coaltree", "fit", "no.csv", "-o", "new"],
        cwd=tmp_path, capture_output=True, timeout=300, check=False, env=ENVIRONMENT,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().splitlines() == ["coaltree: no.csv does not exist."]
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("absent", ["typer", "rich", "polars", "matplotlib"])
def test_missing_cli_dependencies_are_reported(coaltree_command, monkeypatch, absent):
    import coaltree.__main__ as module

    monkeypatch.setattr(module, "find_spec", lambda name: None if name == absent else True)
    outcome = coaltree_command("--help")
    check_sentence(outcome, absent, 'pip install "coaltree[cli]"')


# -- tables that deserve a note, and get their answer ------------------------------------------------


def test_fit_accepts_one_row(fit, tmp_path):
    code, _, err = fit("id,x\nonly,1\n")
    assert code == 0, err
    rows, tree, facts = read_results(tmp_path / "out")
    assert rows == [["only", "0"]]
    assert tree.leaf_names == ("only",)
    assert facts["tree_height"] == 0
    assert "note: " in err


def test_fit_accepts_two_rows(fit, tmp_path):
    code, _, err = fit("id,x,c\na,1,u\nb,2,v\n")
    assert code == 0, err
    rows, _, _ = read_results(tmp_path / "out")
    assert [name for name, _ in rows] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("x,k\n1,7\n2,7\n4,7\n", "1 column constant 'k'"),
        ("x,k\n1,\n2,NA\n4,?\n", "1 column observed 'k'"),
        ("id,x,y\na,1,2\nb,NA,\nc,3,5\n", "1 row observed 'b'"),
        ("x,y\n1,2\n1,2\n5,NA\n", "identical"),
        ("id,x\na,1\nb,2\na,4\n", "1 row distinct suffix 'a'"),
        ("x\n1\n1\n1\n", "no column two values"),
        ("x,t\n" + "".join(f"{i},n{i}\n" for i in range(12)), "'t' identifier"),
    ],
)  # fmt: skip
def test_fit_prints_notes_on_table(fit, tmp_path, text, named):
    options = ["--id-column", "id"] if "suffix" in named else ["--noise", "0"] if named == "identical" else []
    code, _, err = fit(text, *options)
    assert code == 0, err
    notes = [line.removeprefix("note: ") for line in err.splitlines() if line.startswith("note: ")]
    assert sum(all(word in line for word in named.split()) for line in map(str.lower, notes)) == 1, err
    assert notes == [" ".join(remark.split()) for remark in read_results(tmp_path / "out")[2]["remarks"]]
    assert "Warning" not in err


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("x,c\n1,u\n2,u\n4,once\n5,u\n", ["real", "categorical"]),
        ("x,day\n1,2024-01-01\n2,2024-02-01\n4,2023-01-01\n", ["real", "real"]),
        ("x,at\n1,2024-01-01T10:00:00\n2,2024-02-01 11:30:00\n4,\n", ["real", "real"]),
        ("x,b\n1,true\n2,False\n4,true\n", ["real", "categorical"]),
        ("c,d\nu,v\nu,w\nz,w\n", ["categorical", "categorical"]),
        ("x;y\n1;2\n2;5\n4;4\n", ["real", "real"]),
    ],
)
def test_fit_prints_column_kinds(fit, tmp_path, text, kinds):
    code, _, err = fit(text)
    assert code == 0, err
    assert [column["kind"] for column in read_results(tmp_path / "out")[2]["columns"]] == kinds
    assert "note" not in err


def test_fit_passes_on_other_warnings(fit, monkeypatch):
    original = workflow.fit_model

    def warn(*arguments):
        warnings.warn("twice\n  two", InputWarning, stacklevel=1)
        warnings.warn("twice\n  two", InputWarning, stacklevel=1)
        warnings.warn("of another kind", FutureWarning, stacklevel=1)
        return original(*arguments)

    monkeypatch.setattr(workflow, "fit_model", warn)
    with pytest.warns(FutureWarning, match="of another kind") as caught:
        code, _, err = fit(TEXT)
    assert code == 0
    assert len(caught) == 1
    assert err.count("note: twice two") == 1


# -- input that cannot be used -----------------------------------------------------------------------


def test_unreadable_table_is_reported(coaltree_command, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (tmp_path / "t.csv").write_text(TEXT)
    (tmp_path / "t.csv").chmod(0)
    check_sentence(coaltree_command("fit", "t.csv", "-o", "out"), "t.csv cannot be read: Permission denied")


# -- runs that end early -----------------------------------------------------------------------------


def failing(error):
    def fail(*arguments, **options):
        raise error

    return fail


@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize(
    ("place", "error", "code", "named"),
    [
        ("fit", KeyboardInterrupt(), 130, "interrupted"),
        ("picture", RuntimeError("odd"), 1, "RuntimeError: odd"),
        ("disk", OSError(28, "No space left on device"), 2, "No space left on device"),
    ],
)
def test_failed_fit_leaves_no_partial_files(fit, tmp_path, monkeypatch, place, earlier, error, code, named):
    before = {}
    if earlier:
        assert fit(TEXT, "--n-clusters", "2")[0] == 0
        before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    owner, name = {
        "fit": (workflow, "fit_model"),
        "picture": (files, "dendrogram_png"),
        "disk": (os, "fsync"),
    }[place]
    monkeypatch.setattr(owner, name, failing(error))
    check_sentence(fit(TEXT), named, code=code)
    if earlier:
        assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    else:
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("error", "code"), [(RuntimeError("odd"), 1), (KeyboardInterrupt(), 130)])
def test_debug_option_shows_source_location(fit, monkeypatch, error, code):
    monkeypatch.setattr(workflow, "fit_model", failing(error))
    actual, _, err = fit(TEXT, "--debug")
    assert actual == code
    assert "Traceback (most recent call last)" in err
    assert "run again" not in err


def test_progress_bar_is_shown_on_terminal(fit, monkeypatch, tmp_path):
    shares = []
    original = workflow.fit_model

    def spy(table, settings, progress, *more):
        assert progress is not None
        return original(table, settings, lambda share, word: (shares.append(share), progress(share, word)), *more)

    monkeypatch.setattr(workflow, "fit_model", spy)
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda self: True)
    monkeypatch.setenv("TERM", "xterm")
    code, out, err = fit(TEXT)
    assert code == 0, err
    assert shares[-1] == 1.0
    assert "growing the tree" in err
    assert "growing the tree" not in out
    read_results(tmp_path / "out")


# -- notes on how a file was understood ---------------------------------------------------------------


def test_number_conversions_are_noted(fit, tmp_path):
    text = ";a;b\n" + "".join(f"{i};{i % 3},{i};${i}.5\n" for i in range(6))
    code, _, err = fit(text)
    assert code == 0
    notes = [line for line in err.splitlines() if line.startswith("note: ")]
    for words in (("'Unnamed: 0'", "table.csv", "index"), ("'a'", "decimal commas"), ("'b'", "'$'", "numbers")):
        assert sum(all(word in note for word in words) for note in notes) == 1, words
    remarks = json.loads((tmp_path / "out" / "summary.json").read_text())["remarks"]
    assert sum("'b'" in remark for remark in remarks) == 1


def test_missing_font_glyphs_do_not_warn(fit):
    text = "name,a\n日本,1\nहिन्दी,2\nc,4\n"
    assert fit(text, "--quiet") == (0, "", "")
