"""Comparison of models by their evidence: the candidates, the ranking, and how commands and reports show it."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import coaltree as ct
from coaltree.cli import summaries
from coaltree.report import build
from coaltree.report.build import report_facts
from coaltree.report.text import MINUS
from coaltree.workflow import comparison
from coaltree.workflow.comparison import (
    BROWNIAN,
    CONDITIONS,
    ONE_RATE,
    RATES,
    STATIONARY,
    UNCONDITIONAL,
    Candidate,
    compare_models,
    describe_comparison,
    describe_factor,
    rank,
    with_proper_root,
)
from command_line import check_sentence, command_in
from named import check_named, refused
from report_pages import Page

pytestmark = [
    pytest.mark.usefixtures("short_chains", "short_runs"),
    pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning"),
]


@pytest.fixture(scope="module")
def short_runs():
    """Few samples: for tests of what is done with evidences, not of how good they are."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("N_RUNS", "N_CHAINS", "N_SAMPLES"):
            patch.setattr(comparison, name, 2)
        yield


def small_frame(n=9):
    rng = np.random.default_rng(0)
    group = np.arange(n) % 3
    frame = pd.DataFrame(
        {"mass": rng.normal(group), "cover": group.astype(str), "flies": rng.integers(0, 2, n).astype(str)}
    )
    frame.loc[1, "mass"] = frame.loc[2, "cover"] = None
    return frame


def names(columns, **parameters):
    model = ct.CoalescentClustering(**parameters).fit(small_frame()[columns])
    return compare_models(model._model)


def test_candidates_match_column_kinds():
    assert {candidate.name for candidate in names(["mass"])} == {STATIONARY, BROWNIAN}
    actual = names(["cover", "flies"])
    assert {candidate.name for candidate in actual} == {ONE_RATE, RATES}
    rates = {candidate.name: candidate.process for candidate in actual}
    assert rates[ONE_RATE].rate.ndim == 0
    assert rates[RATES].rate.shape == (2,)
    # a rate, shares of three and of two states, one noise; and another rate
    assert {candidate.name: candidate.n_fitted for candidate in actual} == {
        ONE_RATE: 1 + 2 + 1 + 1,
        RATES: 2 + 2 + 1 + 1,
    }
    both = names(["mass", "cover", "flies"])
    assert {candidate.name for candidate in both} == {
        f"{a} and {b}" for a in (STATIONARY, BROWNIAN) for b in (ONE_RATE, RATES)
    }
    custom = names(["mass"], real_process=ct.Brownian(2.0, 0.3))
    assert [candidate.name for candidate in custom] == ["numbers as given"]


def test_candidates_keep_ascertainment():
    actual = names(["cover", "flies"], categorical_process=ct.Multinomial(ascertainment="variable"))
    expected = {
        f"{rates} and {condition}"
        for rates in (ONE_RATE, RATES)
        for condition in (CONDITIONS["variable"], UNCONDITIONAL)
    }
    assert {candidate.name for candidate in actual} == expected
    for candidate in actual:
        assert candidate.process.ascertainment == ("variable" if CONDITIONS["variable"] in candidate.name else None)
    custom = names(["cover", "flies"], categorical_process=ct.Multinomial(0.3, ascertainment="variable"))
    assert [candidate.name for candidate in custom] == ["categories as given"]
    assert custom[0].process.ascertainment == "variable"


def test_comparison_is_reproducible_for_any_threads():
    first, again = names(["mass"]), names(["mass"], n_jobs=2)
    assert [candidate.facts() for candidate in first] == [candidate.facts() for candidate in again]


def test_models_are_ranked_by_evidence_less_penalty():
    process = ct.Brownian()
    actual = rank([(Candidate("a", process, 2), -100.0, 0.3, 1.0), (Candidate("b", process, 5), -97.0, 0.4, 1.0)], 50)
    best, other = actual
    assert (best.name, other.name) == ("a", "b")
    assert best.penalty == pytest.approx(math.log(50))
    assert best.log_bayes_factor == best.bayes_factor_error == 0
    assert other.log_bayes_factor == pytest.approx(3 - 1.5 * math.log(50))
    assert other.bayes_factor_error == pytest.approx(0.5)
    check_named(describe_comparison(actual), "best a posterior means held half logarithm rows")
    assert "distinguished" not in describe_comparison(actual)
    close = rank([(Candidate("a", process, 2), -100.0, 0.3, 1.0), (Candidate("b", process, 2), -100.5, 0.4, 1.0)], 50)
    check_named(describe_comparison(close), "distinguished b")


@pytest.mark.parametrize(("gap", "words"), [(7.0, "cannot"), (40.0, "far worse")])
def test_models_whose_runs_differ_have_no_standard_error(gap, words):
    """They are told apart only if they are farther apart than their runs: here those of one differ by 5, of the other by 1."""
    process, nan = ct.Brownian(), math.nan
    candidates = [(Candidate("a", process, 2), -100.0, nan, 5.0), (Candidate("b", process, 2), -100.0 - gap, 0.3, 1.0)]
    best, other = rank(candidates, 50)
    assert best.bayes_factor_error == 0
    assert math.isnan(other.bayes_factor_error)
    assert other.words.startswith(words)
    assert best.facts()["standard_error"] is None
    assert best.facts()["run_range"] == 5.0
    assert other.facts()["bayes_factor_error"] is None
    lines = summaries._describe_evidence(
        {"evidence": [best.facts(), other.facts()], "evidence_in_words": describe_comparison([best, other])}
    ).splitlines()
    assert "-100.0 (runs differ by 5)" in lines[1]
    assert "± 0.3" in lines[2]
    page = build._evidence([best, other])
    assert page.models[0][1] == f"{MINUS}100.0, runs differ by 5"
    assert page.models[1][3] == f"{MINUS}{gap:.1f}"


@pytest.mark.parametrize(
    ("factor", "error", "words"),
    [(-0.9, 0.1, "cannot"), (-2.9, 1.5, "cannot"), (-2.9, 0.1, "slightly"), (-4.9, 0.1, "clearly"), (-5.1, 0.1, "far")],
)
def test_bayes_factor_is_described_in_words(factor, error, words):
    assert describe_factor(factor, error).startswith(words)


def test_brownian_likelihood_with_proper_root_matches_dense_covariance(monkeypatch):
    """By dense covariance matrices: rows share a root of known variance and the path from it to their ancestor."""
    monkeypatch.setattr(comparison, "ROOT_WIDTH", 1e4)
    tree = ct.simulate_tree(5, random_state=0)
    X = np.random.default_rng(0).normal(size=(5, 2)) + [3.0, -1.0]
    process, mean, height = ct.Brownian([1.3, 0.4], 0.2), np.array([2.5, -1.2]), 2.0
    common = np.zeros((5, 5))
    below = [{leaf} for leaf in range(5)]
    for (left, right), at in zip(tree.children.tolist(), tree.merge_heights, strict=True):
        for i in below[left]:
            for j in below[right]:
                common[i, j] = common[j, i] = at
        below.append(below[left] | below[right])
    expected = 0.0
    for x, center, variance in zip(X.T, mean, process.variance, strict=True):
        covariance = variance * (1e4 * height - common + 0.2 * np.eye(5))
        solved = np.linalg.solve(covariance, x - center)
        expected -= 0.5 * (np.linalg.slogdet(2 * np.pi * covariance)[1] + (x - center) @ solved)
    assert with_proper_root(process, mean, height).log_likelihood(tree, X) == pytest.approx(expected, abs=1e-2)


def test_comparison_rejects_too_many_rows(monkeypatch):
    monkeypatch.setattr(comparison, "MAX_EVIDENCE_ROWS", 8)
    with refused("evidence 3 8 rows 9"):
        names(["mass"])


# -- commands and reports ------------------------------------------------------------------------------------------


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    small_frame().to_csv(tmp_path / "t.csv", index=False)
    return command_in(tmp_path, monkeypatch, capsys)


def test_fit_evidence_option_writes_table(command, tmp_path):
    code, out, err = command("fit", "t.csv", "-o", "out", "--no-id", "--evidence", "--drop", "flies")
    assert code == 0, err
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    table = pd.read_csv(tmp_path / "out" / "evidence.csv")
    assert [candidate["model"] for candidate in summary["evidence"]] == table["model"].tolist()
    assert np.allclose(
        table["log_bayes_factor"] + table["log_evidence"][0] - table["penalty"][0],
        table["log_evidence"] - table["penalty"],
    )
    check_named(out, "evidence stationary Brownian Bayes fitted parameters evidence.csv")
    code, out, _ = command("fit", "t.csv", "-o", "out", "--no-id", "--json")
    assert code == 0
    assert not (tmp_path / "out" / "evidence.csv").exists()
    assert "evidence" not in json.loads(out)


def test_fit_evidence_option_rejects_too_few_rows(command, tmp_path):
    (tmp_path / "two.csv").write_text("x\n1\n2\n")
    check_sentence(command("fit", "two.csv", "-o", "out", "--evidence", "--no-id"), "--evidence")


def test_fit_evidence_option_with_constant_columns(command, tmp_path):
    (tmp_path / "same.csv").write_text("x\n1\n1\n1\n")
    code, out, err = command("fit", "same.csv", "-o", "out", "--evidence", "--no-id")
    assert code == 0, err
    check_named(out, "no column varies models")


def test_report_shows_model_comparison():
    pytest.importorskip("jinja2")
    from coaltree.report.page import page

    model = ct.CoalescentClustering().fit(small_frame()[["mass"]])._model
    compared = compare_models(model)
    text = Page(page(report_facts(model, None, compared))).text
    check_named(text, "evidence Bayes factor stationary Brownian fitted parameters posterior means")
    assert report_facts(model).evidence is None
    assert "Bayes factor" not in Page(page(report_facts(model))).text
