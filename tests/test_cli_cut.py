"""The command cut, and what the summary of a fit says about its clusters."""

import csv
import io
import json
import re

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster

import coaltree as ct
from coaltree.cli.summaries import describe_fit
from coaltree.persist.result_files import fit_summary
from coaltree.table.columns import read_columns
from command_line import command_in
from named import check_named

pytestmark = pytest.mark.usefixtures("short_chains")

ODD = ["<script>alert(1)</script>", "a,b", '"quoted"', "two\nlines", "🦊"]


def table_text(n, seed=0):
    rng = np.random.default_rng(seed)
    names = [*ODD, *(f"r{i}" for i in range(len(ODD), n))][:n]
    text = io.StringIO()
    cells = rng.normal(6 * (np.arange(n) % 3), 0.5)
    csv.writer(text).writerows([["name", "x"], *([name, float(cell)] for name, cell in zip(names, cells, strict=True))])
    return text.getvalue()


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    return command_in(tmp_path, monkeypatch, capsys)


@pytest.fixture
def fitted(command, tmp_path):
    (tmp_path / "t.csv").write_text(table_text(24))
    code, _, err = command("fit", "t.csv", "-o", "out", "-q")
    assert code == 0, err
    return ct.load_model(tmp_path / "out" / "model.coaltree")


def labels_of(text):
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["name", "cluster"]
    return [name for name, _ in rows[1:]], [int(label) for _, label in rows[1:]]


def same_partition(a, b):
    return len({*zip(a, b, strict=True)}) == len({*a}) == len({*b})


# -- cut ---------------------------------------------------------------------------------------------


def test_cut_at_a_height_matches_scipy(command, fitted, tmp_path):
    """Of a model; and of the tree of a file, which has no scores, also into a given number."""
    linkage = fitted.tree_.to_linkage()
    for tree in ("t.json", "t.nwk"):
        assert command("convert", "out/model.coaltree", tree, "-q")[0] == 0
    for options, files, expected in (
        (["--n-clusters", "5"], ["t.json", "t.nwk"], fcluster(linkage, 5, "maxclust")),
        (["--height-threshold", "0.3"], ["out/model.coaltree", "t.json"], fcluster(linkage, 0.3, "distance")),
    ):
        for file in files:
            code, out, err = command("cut", file, *options, "--min-cluster-size", "1")
            assert code == 0, err
            labels = dict(zip(*labels_of(out), strict=True))
            assert same_partition([labels[name] for name in fitted.tree_.leaf_names], expected)
            sizes = np.bincount(list(labels.values())).tolist()
            assert err.splitlines()[-1] == f"{len(sizes)} clusters of {', '.join(map(str, sizes[:12]))} rows"


def test_default_cut_equals_model_clusters(command, fitted, tmp_path):
    code, out, err = command("cut", "out/model.coaltree", "-o", "c.csv", "-q")
    assert (code, out, err) == (0, "", "")
    assert (tmp_path / "c.csv").read_bytes() == (tmp_path / "out" / "clusters.csv").read_bytes()


def test_cut_json_output(command, fitted):
    code, out, err = command("cut", "out/model.coaltree", "--n-clusters", "3", "--json")
    assert code == 0, err
    facts = json.loads(out)
    assert facts["n_clusters"] == 3
    assert facts["cluster_sizes"] == [8, 8, 8]
    assert [facts["clusters"][name] for name in fitted.tree_.leaf_names] == fitted.cut(n_clusters=3).tolist()
    facts = json.loads(command("cut", "out/model.coaltree", "--n-clusters", "3", "--json", "-o", "c.csv", "-q")[1])
    assert facts["clusters"] is None
    assert facts["output"] == "c.csv"


def test_cut_of_one_row(command, tmp_path):
    (tmp_path / "t.nwk").write_text("a;")
    code, out, err = command("cut", "t.nwk", "--n-clusters", "1")
    assert (code, out) == (0, "name,cluster\na,0\n")
    assert err == "1 cluster of 1 row\n"


def test_plot_accepts_cut_options(command, fitted, tmp_path):
    height = str(float(np.mean(fitted.tree_.merge_heights[-3:-1])))
    assert same_partition(fitted.cut(height_threshold=float(height)), fitted.cut(n_clusters=3))
    for options in (["--n-clusters", "3"], ["--height-threshold", height]):
        assert command("plot", "out/model.coaltree", "-o", f"{options[0]}.svg", *options)[0] == 0
    pictures = {(tmp_path / f"{name}.svg").read_bytes() for name in ("--n-clusters", "--height-threshold")}
    assert len(pictures) == 1


# -- the search --------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["auto", "exact", "neighbors"])
def test_fit_search_option(command, tmp_path, search):
    (tmp_path / "t.csv").write_text(table_text(24))
    code, out, err = command("fit", "t.csv", "-o", "out", "--search", search)
    assert code == 0, err
    facts = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert facts["settings"]["search"] == search
    assert facts["search"] == ("neighbors" if search == "neighbors" else "exact")
    assert ("search    among near rows" in out) == (search == "neighbors")
    assert ct.load_model(tmp_path / "out" / "model.coaltree").search == search


def test_impute_search_option(command, tmp_path, monkeypatch):
    from coaltree.estimators.imputer import CoalescentImputer

    calls = []
    fit = CoalescentImputer._fit_table
    monkeypatch.setattr(
        CoalescentImputer, "_fit_table", lambda self, *rest: calls.append(self.search) or fit(self, *rest)
    )
    (tmp_path / "t.csv").write_text("name,x,c\na,1,u\nb,,u\nc,3,v\nd,5,\n")
    code, _, err = command("impute", "t.csv", "-o", "o.csv", "--search", "exact")
    assert code == 0, err
    assert calls == ["exact"]


FACTS = {
    "missing_share": 0.0, "tree_height": 1.0, "log_joint": -3.0, "inference": "greedy", "n_clusters": 1,
    "clusters_chosen_by": "n_clusters", "cluster_sizes": [9], "zero_heights": None, "n_rows": 9,
    "columns": [{"used": True}], "search": "exact", "neighbor_recall": None, "parameters": {},
    "clusters_chosen_in_words": "as requested", "n_outliers": 0, "partitions": [],
}  # fmt: skip


@pytest.mark.parametrize(
    ("search", "recall", "share", "advice"),
    [
        ("exact", None, None, False),
        ("neighbors", None, "", False),
        ("neighbors", 0.97, " 97 % ", False),
        ("neighbors", 0.5, " 50 % ", False),
        ("neighbors", 0.004, " 0 % ", True),
    ],
)
def test_summary_explains_low_recall(tmp_path, search, recall, share, advice):
    words = describe_fit(FACTS | {"search": search, "neighbor_recall": recall}, ["tree.nwk"], tmp_path)
    lines = [text for text in words.splitlines() if text.startswith("search")]
    assert len(lines) == (share is not None)
    assert all(share in line for line in lines)
    assert ("--search exact" in words) == advice


def test_summary_reports_low_recall():
    table = read_columns(np.array([[0.0], [1.0], [5.0]]))
    model = ct.CoalescentClustering()._fit_table(table)._model
    for recall, more in ((None, 0), (0.5, 0), (0.031, 1)):
        model.neighbor_recall = recall
        first, *others = fit_summary(model, table, source="t.csv", remarks=["one"])["remarks"]
        assert (first, len(others)) == ("one", more)
        assert all("3 %" in other and "--search exact" in other for other in others)


# -- closing lines -----------------------------------------------------------------------------------


def closing_line(name, facts, tmp_path):
    words = describe_fit(FACTS | facts, ["tree.nwk"], tmp_path)
    return next((line[10:] for line in words.splitlines() if line.startswith(name)), None)


def test_summary_advises_on_zero_heights(tmp_path):
    def describe(noise, inference):
        facts = {
            "zero_heights": "many",
            "parameters": {"c": {"rate": 1.0}, "x": {"noise_sd": noise}},
            "inference": inference,
        }
        sampled = dict.fromkeys(
            ("n_trees", "n_distinct_trees", "effective_size", "log_evidence", "log_evidence_se"), 1.0
        )
        return closing_line("ties", facts | sampled, tmp_path)

    def options(noise, inference):
        return re.findall(r"--[a-z]+ [\w.]+", describe(noise, inference))

    assert options(0.1, "greedy") == ["--noise 0.001", "--inference smc"]
    assert options(0.0, "greedy") == ["--inference smc"]
    assert options(0.1, "smc") == ["--noise 0.001"]
    assert describe(0.0, "smc") == "many"


@pytest.mark.parametrize(
    ("text", "named"), [("x,y\n1,2\n", "one row too few"), ("x,y\n1,2\n3,4\n", "two rows too few")]
)
def test_fit_with_too_few_rows_to_cluster(command, tmp_path, text, named):
    (tmp_path / "t.csv").write_text(text)
    code, out, err = command("fit", "t.csv", "-o", "out")
    assert code == 0, err
    (values,) = [line for line in out.splitlines() if line.startswith("clusters")]
    check_named(values, named)


def test_missing_cells_are_counted_in_used_columns(command, tmp_path):
    rows = "".join(f"{i * i % 7 if i else ''},{i % 5},,3\n" for i in range(25))
    (tmp_path / "t.csv").write_text("a,b,empty,same\n" + rows)
    code, out, err = command("fit", "t.csv", "-o", "out", "--report")
    assert code == 0, err
    assert "missing   2 % of the cells of the 2 columns in use" in out.splitlines()
    facts = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (facts["n_missing"], facts["missing_share"]) == (1, 1 / 50)
    assert [column["n_missing"] for column in facts["columns"]] == [1, 0, 25, 0]
    assert "1 missing cell in the columns in use." in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    outliers = {"clusters_chosen_in_words": "at a resolution of 0.2", "n_outliers": 2}
    assert closing_line("clusters", outliers, tmp_path) == "1 (9 rows), at a resolution of 0.2; 2 outliers"
    assert closing_line("missing", {"columns": [{"used": False}]}, tmp_path) is None


# -- merges at height 0 ------------------------------------------------------------------------------


def test_fit_reports_merges_at_height_zero(command, tmp_path):
    (tmp_path / "t.csv").write_text("x\n" + "1.5\n2.5\n7.0\n" * 10)
    code, out, err = command("fit", "t.csv", "-o", "out", "--noise", "0")
    assert code == 0, err
    (line,) = [line for line in out.splitlines() if line.startswith("ties ")]
    assert "27 of 29 merges are at height 0" in line
    assert "--inference smc" in line
    assert "--noise" not in line
    facts = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert facts["n_merges_at_zero"] == 27
    assert facts["zero_heights"] in line
    (tmp_path / "u.csv").write_text(table_text(24))
    code, out, err = command("fit", "u.csv", "-o", "out")
    assert "ties" not in out
    facts = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (facts["n_merges_at_zero"], facts["zero_heights"]) == (0, None)


# -- hints on the table ------------------------------------------------------------------------------


def test_fit_hints_at_repeated_names_and_extreme_cells(command, tmp_path):
    names = [*(f"r{i}" for i in range(29)), "r0"]
    rows = [f"{name},{i % 7 if i != 3 else 1e9}" for i, name in enumerate(names)]
    (tmp_path / "t.csv").write_text("name,x\n" + "\n".join(rows) + "\n")
    code, _, err = command("fit", "t.csv", "--dry-run")
    assert code == 0, err
    notes = [line for line in err.splitlines() if line.startswith("note: ")]
    assert len(notes) == 2
    assert "--id-column name" in notes[0]
    assert "A cell is extreme in column 'x' (1e+09 in row 3 (counted from 0), 4.8e+08 standard deviations" in notes[1]
    _, _, err = command("fit", "t.csv", "--dry-run", "--id-column", "name")
    assert "'x' (1e+09 in row 3 ('r3'), " in err
    assert "--id-column" not in err


def test_cut_can_label_or_assign_outliers(command, tmp_path):
    rng = np.random.default_rng(0)
    cells = np.append(rng.normal(size=40), 1e4)
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{a},{a / 3 + 1}\n" for a in cells))
    code, _, err = command("fit", "t.csv", "-o", "out")
    assert code == 0, err
    assert "--standardize power" in err
    assert "standardize=" not in err
    assigned = labels_of(command("cut", "out/model.coaltree")[1])[1]
    assert min(assigned) == 0
    labels = labels_of(command("cut", "out/model.coaltree", "--label-outliers")[1])[1]
    assert labels == [*assigned[:40], -1]
    assert command("fit", "t.csv", "-o", "labelled", "-q", "--label-outliers")[0] == 0
    assert labels_of(command("cut", "labelled/model.coaltree")[1])[1] == labels
    assert labels_of(command("cut", "labelled/model.coaltree", "--assign-outliers")[1])[1] == assigned
