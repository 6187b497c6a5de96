"""The experiments of the paper: quick runs, their numbers, and the page that shows them."""

import math
from pathlib import Path

import numpy as np
import pytest

import coaltree as ct
import exact_posterior
from experiments import figure2, nips, page, paper, tables, wals_restoration, wals_tree
from experiments.__main__ import EXPERIMENTS, main, run
from experiments.merges import merge_rows, tree_from_rows
from experiments.outcome import (
    RESULTS,
    Estimate,
    Setting,
    format_tables,
    group_numbers,
    parse_tables,
    read_texts,
    write,
)
from experiments.repeats import run_repeats
from named import refused


@pytest.mark.slow
def test_quick_runs_of_all_experiments_succeed(published_data, tmp_path, capsys):
    assert main(["all", "--quick", "--jobs", "1", "--output", str(tmp_path)]) == 0
    output = capsys.readouterr()
    assert [line.split(":")[0] for line in output.out.splitlines()] == list(EXPERIMENTS)
    assert "table1: 12 of 12" in output.err
    for picture in ("figure1", "figure2", "table1", "wals_tree", "wals_restoration", "nips_abstracts", "nips_papers"):
        assert (tmp_path / f"{picture}.png").read_bytes().startswith(b"\x89PNG")
    scores = tables.read(tmp_path, "table1")
    assert all(0 <= float(row[score]) <= 1 for row in scores for score in tables.HEADINGS)
    assert {row["data"] for row in scores} == {
        "MNIST, unit variance", "MNIST, own variance", "SPAMBASE, above 0", "SPAMBASE, medians",
    }  # fmt: skip
    for text in nips.TEXTS:
        documents = tables.read(tmp_path, f"nips_{text}_documents")
        clades = tables.read(tmp_path, f"nips_{text}_clusters")
        assert sum(int(row["documents"]) for row in clades if row["depth"] == "0") == len(documents) == 87
    assert {row["cells"] for row in tables.read(tmp_path, "wals_restoration")} == {"35"}
    # Figures can be drawn again from the tables alone.
    before = (tmp_path / "wals_tree.png").read_bytes()
    assert run("wals_tree", tmp_path, tmp_path, Setting(), redraw=True) == [tmp_path / "wals_tree.png"]
    assert (tmp_path / "wals_tree.png").read_bytes() == before


def test_page_shows_stored_results():
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.fill_page(text, RESULTS) == text, "run python -m experiments page"
    assert text.count("<!-- table: ") == text.count("<!-- end of table -->") == len(page.TABLES)
    for figure in RESULTS.glob("*.png"):
        assert (page.PICTURES / figure.name).read_bytes() == figure.read_bytes()
        assert f"images/experiments/{figure.name}" in text


def test_page_with_unknown_result_is_rejected():
    with refused("asks table x verdicts table1-paper"):
        page.fill_page("<!-- table: x -->\n<!-- end of table -->", RESULTS)


def test_missing_results_are_reported(tmp_path, capsys):
    assert main(["table1", "--redraw", "--output", str(tmp_path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("experiments: ")
    assert str(tmp_path / "table1.csv") in line


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_hidden_entry_density_matches_enumeration():
    """By the sum over all histories of three rows, their heights integrated numerically, with and without the entry."""
    X = ct.Brownian().simulate(ct.simulate_tree(3, 0), 0, n_columns=2)
    hidden = X.copy()
    hidden[0, 0] = math.nan
    with_it, without = (exact_posterior.integrals(table, ct.Brownian()).evidence for table in (X, hidden))
    exact = math.log(with_it / without)
    case = figure2.Case(columns=2, rows=3, particles=1500)
    assert figure2.log_predictive(X, case, "post-post", 0) == pytest.approx(exact, abs=0.04)
    assert figure2.log_predictive(X, case, "race", 0) == pytest.approx(exact, abs=0.04)


def test_figure2_cases_are_distinct():
    cases = figure2.cases()
    assert sum(len(panels) for panels in cases.values()) == sum(map(len, figure2.PANELS.values()))
    assert set(cases[figure2.Case()]) == set(figure2.PANELS)
    assert all(case in cases for case in figure2.WITH_REFERENCE)


def test_estimate_from_values():
    assert Estimate.from_values([1.0, 2.0, 3.0]) == pytest.approx((2.0, 1 / math.sqrt(3), 3))
    assert str(Estimate.from_values([0.5])) == "0.500"
    assert str(Estimate.from_values([0.0, 1.0])) == "0.500 ± 0.500"
    assert tables.separation(Estimate(1.0, 0.3, 9), Estimate(0.0, 0.4, 9)) == pytest.approx(2.0)
    assert tables.separation(Estimate(1.0, 0.5, 9), Estimate(0.0, math.nan, 1)) == pytest.approx(2.0)


def rows_of(*cells):
    keys = ("share", "fold", "method", "accuracy")
    return [
        dict(zip(keys, map(str, cells_of_row), strict=True)) | {"table": wals_restoration.ATLAS}
        for cells_of_row in cells
    ]


def test_paired_differences_use_common_folds():
    rows = rows_of((0.1, 0, "a", 0.5), (0.1, 1, "a", 0.9), (0.1, 0, "b", 0.4), (0.1, 1, "b", 0.6), (0.1, 2, "b", 0.0))
    assert tables.paired(rows, ("a", "b"), ["fold"], "accuracy") == pytest.approx((0.2, 0.1, 2))
    assert group_numbers(rows, ["method"], "accuracy") == {("a",): [0.5, 0.9], ("b",): [0.4, 0.6, 0.0]}


def test_simulated_tables_are_reported_separately():
    kinds = (wals_restoration.ATLAS, wals_restoration.DRAWN)
    rows = [row | {"table": kind} for kind in kinds for row in rows_of((0.2, 0, "PPCA, 5 dimensions", 0.5))]
    for kind in kinds:
        (selected,) = wals_restoration.with_best_components(rows, kind)
        assert selected["table"] == kind


def test_best_method_is_compared_with_best_baseline():
    rows = rows_of(
        (0.2, 0, "PPCA, 5 dimensions", 0.6),
        (0.2, 0, "PPCA, 10 dimensions", 0.8),
        (0.2, 0, "mode", 0.7),
        (0.2, 0, wals_restoration.TREE, 0.75),
        (0.2, 0, wals_restoration.IMPUTER, 0.85),
    )
    selected = wals_restoration.with_best_components(rows)
    assert [row["accuracy"] for row in selected if row["method"] == "PPCA, best"] == ["0.8"]
    ours, rival, lead = tables.restoration_lead(selected, "0.2")
    assert (ours, rival) == (wals_restoration.IMPUTER, "PPCA, best")
    assert lead.mean == pytest.approx(0.05)


ODD = ["<script>alert(1)</script>", "a,b", 'say "x"', "two\nlines", "🦉 owl", ""]


def test_result_tables_are_complete(tmp_path):
    values = {"odd": [{"name": name, "number": 1 / 3} for name in ODD]}
    assert write(format_tables(values), {}, tmp_path) == ["odd.csv"]
    read = parse_tables(read_texts(tmp_path, ["odd"]))["odd"]
    assert [row["name"] for row in read] == ODD
    assert {row["number"] for row in read} == {"0.333333"}
    before = (tmp_path / "odd.csv").read_bytes()
    with pytest.raises(AttributeError):
        write(format_tables({"odd": [{"name": "new"}]}), {"figure": None}, tmp_path)
    assert (tmp_path / "odd.csv").read_bytes() == before


@pytest.mark.parametrize("n", [1, 2, 30])
def test_tree_round_trip_through_merges(n):
    tree = ct.simulate_tree(n, random_state=n)
    rows = parse_tables(format_tables({"tree": merge_rows(tree, support=np.arange(n - 1))}))["tree"] if n > 1 else []
    assert tree_from_rows(rows, tree.leaf_names) == tree
    assert [row["support"] for row in rows] == [str(k) for k in range(n - 1)]


def test_top_node_is_common_ancestor():
    tree = ct.Tree.from_newick("(((a:1,b:1):1,c:2):1,(d:1,e:1):2);")
    names = {name: leaf for leaf, name in enumerate(tree.leaf_names)}
    for clade in ("ab", "abc", "de", "abcde", "a"):
        leaves = np.array(sorted(names[name] for name in clade))
        node = nips._top_node(tree, leaves)
        assert tree.leaf_counts[node] == len(clade)
        assert set(tree.leaf_order[tree.first_positions[node] :][: len(clade)]) == set(leaves)


def test_large_clades_are_split_in_halves(monkeypatch):
    tree = ct.Tree.from_newick("(((a:1,b:1):1,c:2):1,(d:1,e:1):2);")
    monkeypatch.setattr(nips, "WHOLE", 2)
    root = tree.n_leaves + len(tree.children) - 1
    actual = list(nips._with_halves(tree, [(7, 0, root)]))
    assert [(cluster, depth) for cluster, depth, _ in actual] == [(7, 0), (7, 1), (7, 2), (7, 2), (7, 1)]
    clades = ["".join(sorted(np.array(tree.leaf_names)[nips._leaves_below(tree, node)])) for *_, node in actual]
    assert clades == ["abcde", "abc", "ab", "c", "de"]


def test_words_are_ranked_by_information():
    """A word in all documents has no information; one in half of the clade has less than one in the whole clade."""
    occurs = np.array([[1, 1, 0, 1, 0], [1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [1, 1, 0, 0, 0.0]])
    words = np.array(["all", "most", "other", "rare", "none"])
    inside = np.array([True, True, False, False])
    by_information = nips._words_by_information(occurs, words)(inside)
    # shares 1, 1, 0, 1/2, 0 against 1, 3/4, 1/4, 1/4, 0: 0, 0.29, 0, 0.35, 0
    assert by_information.tolist() == ["rare", "most", "all", "other", "none"]
    above = nips._words_above(occurs, words)(inside)
    assert above[:2].tolist() == ["most", "rare"]
    assert above[-1] == "other"


def test_author_counts_are_parsed():
    assert nips.printed_counts("Koch (30) Bower (11)") == {"Koch": 30, "Bower": 11}
    assert all(len(nips.printed_counts(authors)) == 4 for *_, authors in paper.TABLE2)
    tree = ct.Tree.from_newick("((a:1,b:1):1,c:2);")
    counts = nips.count_below(tree, np.eye(3, dtype=int))
    assert counts[3:].sum(axis=1).tolist() == [2, 3]
    # one listed author differs by 3 papers, one not listed has 2 more than the last one listed
    assert nips.distances(np.array([[5, 4, 6], [8, 4, 4]]), {0: 8, 1: 4}).tolist() == [3 + 0 + 2, 0]


def test_nearest_clade_of_genus_minimises_distance():
    """By sets of leaves."""
    tree = ct.simulate_tree(12, random_state=3)
    genera = np.array(list("xxyyyzxzzyxw"))
    below = [frozenset([leaf]) for leaf in range(12)]
    for left, right in tree.children:
        below.append(below[left] | below[right])
    rows = wals_tree._genera(tree, genera, [(tree, 1.0)], wals_tree._shares([(tree, 1.0)]))
    assert [row["genus"] for row in rows[:3]] == ["x", "y", "z"]  # w has one language
    for row in rows[:3]:
        members = frozenset(np.flatnonzero(genera == row["genus"]))
        best = max(len(members & clade) / len(members | clade) for clade in below[12:])
        assert row["jaccard"] == row["sampled_jaccard"] == pytest.approx(best)
        assert row["support"] == (members in below[12:])


def test_interrupt_keeps_finished_results(capsys):
    def tasks():
        yield from (1, 2)
        raise KeyboardInterrupt

    setting = Setting(jobs=1)
    assert run_repeats(lambda task: 10 * task, tasks(), 5, setting, "sums") == [10, 20]
    assert setting.interrupted.is_set()
    assert "sums was interrupted: 2 of 5 are kept." in capsys.readouterr().err
    with pytest.raises(KeyboardInterrupt):
        run_repeats(lambda task: task, (x for x in tasks() if x > 2), 5, Setting(jobs=1), "sums")


def few_scores(setting):
    setting.interrupted.set()
    scores = {"purity": 0.5, "subtree": 0.5, "leave_one_out": 0.5}
    return {"table1": [{"data": "MNIST, unit variance", "method": "average link", "repeat": 0} | scores]}


def test_interrupted_run_stops_remaining_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("experiments.table1.run", few_scores)
    monkeypatch.setattr("experiments.nips.run", lambda setting: pytest.fail("the next one began"))
    assert main(["table1", "nips", "--output", str(tmp_path)]) == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table1.csv", "table1.png"]
    # It never takes the place of full results.
    full, partial = tmp_path / "full", tmp_path / "partial"
    assert {file.parent for file in run("table1", full, partial, Setting())} == {partial}


def test_tables_are_written_despite_drawing_errors(tmp_path, monkeypatch, capsys):
    def interrupted(tables):
        raise KeyboardInterrupt

    monkeypatch.setattr("experiments.table1.run", few_scores)
    monkeypatch.setattr("experiments.table1.draw", interrupted)
    assert main(["table1", "--output", str(tmp_path)]) == 130
    assert [path.name for path in tmp_path.iterdir()] == ["table1.csv"]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("experiments: interrupted")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figure2", "--jobs", "0"], "argument --jobs: '0' is not a whole number of at least 1"),
        (["figure2", "--repeats", "-3"], "'-3' is not a whole number of at least 1"),
        (["figure2", "--repeats", "0"], "argument --repeats: '0' is not a whole number of at least 1"),
        (["figure2", "--quick", "--repeats", "2"], "--quick has a number of repeats of its own"),
        (["page", "--quick"], "the page is made from full runs"),
        (["figure9"], "invalid choice: 'figure9'"),
    ],
)
def test_invalid_experiment_options_are_rejected(arguments, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert message in capsys.readouterr().err


def test_results_are_independent_of_processes():
    assert run_repeats(abs, [-1, -2, -3], 3, Setting(jobs=2), "sizes") == [1, 2, 3]
    assert Setting(repeats=3).n_repeats(100, quick=1) == 3
    assert Setting(repeats=300).n_repeats(100, quick=1) == 100
    assert Setting(quick=True).n_repeats(100, quick=1) == 1


def test_paper_and_results_name_same_methods():
    rows = tables.read(RESULTS, "table1")
    methods = {row["method"] for row in rows}
    from experiments import table1

    assert set(table1.PAPERS_METHODS) == set(paper.TABLE1)
    assert set(table1.PAPERS_METHODS.values()) <= methods


def test_stored_results_are_small():
    assert sum(path.stat().st_size for path in Path(RESULTS).iterdir()) < 2_000_000
