"""The verdicts of a report: odd rows and cells, support, samples and fit."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

import coaltree as ct
from coaltree.inference import posterior_draws
from coaltree.predict.outliers import OutlierScorer
from coaltree.predict.predictor import Predictor
from coaltree.report import held_out
from coaltree.report.build import report_facts
from coaltree.report.facts import HeldOutFacts, RealFacts
from coaltree.report.held_out import leave_out
from coaltree.report.page import page
from coaltree.report.sections import OddCell, OddCells, OddRows, describe_held_out, odd_cells, odd_rows, support_view
from coaltree.report.verdicts import verdicts
from coaltree.tree.edit import without_leaves
from report_pages import HOSTILE, Page, mixed_frame, odd, verdict


@pytest.fixture(scope="module")
def _single_rows(short_chains):
    """Leave rows out one at a time, as reports on small tables do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_out, "MAX_LEAVES", 20_000)
        yield


pytestmark = [
    pytest.mark.usefixtures("_single_rows"),
    pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning"),
]


@pytest.fixture(scope="module")
def frame():
    return mixed_frame(names=HOSTILE)


@pytest.fixture(scope="module")
def model(frame):
    return ct.CoalescentClustering(n_clusters=3).fit(frame)


@pytest.fixture(scope="module")
def facts(model):
    return report_facts(model._model, "Animals")


# -- checks ------------------------------------------------------------------------------------------


def test_rows_are_held_out_one_at_a_time(model):
    X, process = model._model.predictor.X, model.process_
    predictor = Predictor.from_trees([model.tree_], np.ones(1), X, process)
    actual = leave_out(model.tree_, predictor, OutlierScorer(predictor))
    assert (actual.rows_at_once, actual.cells_at_once) == (1, 1)
    assert actual.rows.tolist() == actual.inspected.tolist() == list(range(len(X)))
    assert actual.evenly.all()
    for row in (0, 7, 35):
        rest = Predictor.from_trees(
            [without_leaves(model.tree_, [row])], np.ones(1), np.delete(X, row, axis=0), process
        )
        for column in range(X.shape[1]):
            hidden = X[[row]].copy()
            hidden[0, column] = np.nan
            cells = rest.cells(hidden)
            if column < 3:
                assert actual.cells.mean[row, column] == pytest.approx(cells.mean[0, column], rel=1e-9)
                assert actual.cells.sd[row, column] == pytest.approx(cells.sd[0, column], rel=1e-9)
            else:
                selected = slice(*cells.start[column - 3 : column - 1])
                assert actual.cells.probability[row, selected] == pytest.approx(
                    cells.probability[0, selected], rel=1e-9
                )


def test_odd_row_and_odd_cell_are_reported(frame, monkeypatch):
    chains = {"MAX_CELLS": 10**6, "MIN_SWEEPS": 80, "MAX_SWEEPS": 80, "N_TREE_SWEEPS": 10, "N_CELL_DRAWS": 10}
    for name, value in chains.items():  # to tell what is odd
        monkeypatch.setattr(posterior_draws, name, value)
    monkeypatch.setattr(held_out, "MAX_DRAWS", 6)
    table = frame.copy()
    table.loc["row 30", ["mass", "length"]] = [70.0, 12.0]
    table.loc["row 22", "flies"] = "no"  # of a group that flies
    table.loc["row 16", "length"] = 6.0
    facts = report_facts(ct.CoalescentClustering().fit(table)._model)
    rows = odd_rows(facts.columns, facts.held_out)
    assert table.index[rows.rows[0].row] == "row 30"
    assert rows.rows[0].is_outlier
    assert rows.rows[0].below > rows.limit
    cells = odd_cells(facts.columns, facts.held_out)
    assert len(cells.cells) == 20
    assert ("row 16", "length", "6") in [(table.index[cell.row], cell.column, cell.value) for cell in cells.cells[:4]]
    tails = [cell.log_tail for cell in cells.cells]
    assert tails == sorted(tails)
    text = Page(page(facts)).text
    assert "row 30" in text
    assert "length is 6, expected" in text
    assert verdict(facts, "outliers").state == "look"


def test_cell_tails_are_tail_probabilities(facts):
    from scipy.stats import norm

    cells = odd_cells(facts.columns, facts.held_out, 1000).cells
    unlikely = sum(int(np.sum(~column.missing)) for column in facts.real) + sum(
        int(np.sum(column.codes[~column.missing] != column.expected[~column.missing].argmax(axis=1)))
        for column in facts.categorical
    )
    assert len(cells) == unlikely  # what is most probable is not odd
    by_name = {column.name: column for column in facts.columns}
    for cell in cells:
        column = by_name[cell.column]
        if cell.column in ("cover", "flies"):
            values = column.expected[cell.row]
            tail = values[values <= values[column.codes[cell.row]] + 1e-12].sum()
        else:
            tail = 2 * norm.sf(abs(column.values[cell.row] - column.expected[cell.row]) / column.expected_sd[cell.row])
        assert cell.log_tail == pytest.approx(math.log(tail), abs=1e-6)


def test_search_verdict(facts):
    actual = verdict(facts, "searched")
    assert (actual.state, "Every pair" in actual.answer) == ("good", True)
    near = verdict(replace(facts, search="neighbors", neighbor_recall=0.97), "searched")
    assert near.state == "good"
    assert "97 %" in near.answer
    assert verdict(replace(facts, search="neighbors", neighbor_recall=0.5), "searched").state == "look"


def test_parameter_verdict(facts):
    assert "fixed parameters" in verdict(facts, "parameters").answer
    assert "sampled together" in verdict(replace(facts, draws_parameters=True), "parameters").answer


def test_report_lists_warnings_once(facts):
    text = page(replace(facts, remarks=("The first.", "The <b>second</b>.")))
    assert text.count("What was noticed") == 1
    assert "<ul><li>The first.</li><li>The &lt;b&gt;second&lt;/b&gt;.</li></ul>" in text
    assert "What was noticed" not in page(replace(facts, remarks=()))


def test_held_out_rows_are_described(facts):
    assert not re.search(r"\d", describe_held_out(facts))  # every row and every cell, one at a time
    some = replace(
        facts.held_out,
        rows=facts.held_out.rows[:30],
        at_once=5,
        inspected=facts.held_out.inspected[:10],
        evenly=np.arange(10) < 8,
        hidden_at_once=3,
    )
    text = describe_held_out(replace(facts, held_out=some))
    assert re.findall(r"\d+", text) == ["30", "36", "5", "8", "3"]
    assert "evenly" in text
    assert "oddest" in text


def test_outlier_count_includes_rows_not_shown():
    rows, scores = np.arange(100), np.concatenate([np.full(20, -500.0), np.full(3, -400.0), np.linspace(-1, 1, 77)])
    column = RealFacts("x", np.zeros(100), *np.zeros((4, 0)))
    actual = odd_rows([column], HeldOutFacts(rows, scores, -3.0, 1, rows[:0], np.zeros(0, dtype=bool), 0))
    assert (actual.n_outliers, len(actual.rows)) == (23, 20)
    few = odd_rows([column], HeldOutFacts(rows, scores, -1e3, 1, rows[:0], np.zeros(0, dtype=bool), 0))
    assert (few.n_outliers, len(few.rows)) == (0, 5)


@pytest.mark.parametrize(
    ("tails", "n_cells", "state"),
    [
        ([], 180, "good"),
        ([0.0005], 90, "look"),  # one where chance makes 0.09
        ([0.0009, 0.0008], 100, "look"),
        ([0.0005], 1000, "plain"),  # one where chance makes one
        ([0.0005] * 12, 10_000, "plain"),
        ([0.0005] * 30, 10_000, "look"),
        ([1e-7, 0.0005], 1000, "look"),  # no more than by chance, but one is odder than chance makes them
    ],
)
def test_cell_verdict_agrees_with_list(facts, tails, n_cells, state):
    displayed = [OddCell(0, "mass", "1", "2", math.log(tail)) for tail in tails]
    cells = OddCells(displayed, len(displayed), n_cells)
    actual = next(
        candidate for candidate in verdicts(facts, OddRows([], 0, 6.0), cells) if "cells" in candidate.question
    )
    assert actual.state == state
    assert f"Of {n_cells:,} observed cells, " in actual.answer
    assert ("The oddest is beyond" in actual.answer) == (1e-7 in tails)


def test_row_verdict_states_number_of_rows(facts):
    actual = verdict(facts, "outliers")
    n_outliers = odd_rows(facts.columns, facts.held_out).n_outliers
    assert (actual.state == "good") == (n_outliers == 0)
    assert "the 36 rows" in actual.answer
    part = replace(facts.held_out, rows=facts.held_out.rows[:20], scores=facts.held_out.scores[:20])
    assert "20 rows, chosen evenly from all 36," in verdict(replace(facts, held_out=part), "outliers").answer


def test_all_rows_of_large_table_are_checked():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1200, 20)) + 6 * rng.integers(0, 3, (1200, 1))
    X[777, :3] += 15 * rng.choice([-1, 1], 3)
    model = ct.CoalescentClustering(noise=0.2, real_process="brownian").fit(X)
    facts = report_facts(model._model)
    assert facts.held_out.rows.tolist() == list(range(1200))
    assert 100 <= facts.held_out.evenly.sum() < len(facts.held_out.inspected)
    rows = odd_rows(facts.columns, facts.held_out)
    assert rows.rows[0].row == 777
    assert {cell.column for cell in rows.rows[0].cells} == {"x0", "x1", "x2"}
    assert {row.row for row in rows.rows} <= set(facts.held_out.inspected.tolist())
    assert f"Of {20 * facts.held_out.evenly.sum():,} observed cells of " in verdict(facts, "cells").answer


def test_zero_height_verdict(facts):
    assert not [candidate for candidate in verdicts(facts, *odd(facts)) if "fine" in candidate.question]
    heights = np.concatenate([np.zeros(36 + 30), np.arange(1.0, 6.0)])
    flat = ct.Tree([[0, 1], *([36 + k, k + 2] for k in range(34))], heights)
    actual = verdict(replace(facts, tree=flat), "fine")
    assert actual.state == "plain"
    assert actual.answer.startswith("30 of 35 merges are at height 0")
    assert "noise=0.001" in actual.answer
    assert 'inference="smc"' in actual.answer


# -- a sample of trees -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sampled():
    X = np.random.default_rng(1).normal(size=(12, 2)) + np.repeat([[0.0], [6.0]], 6, axis=0)
    X[3, 0] = np.nan
    return ct.CoalescentClustering(inference="smc", n_particles=40, random_state=0).fit(X)


def test_support_view_matches_sample(sampled):
    facts = report_facts(sampled._model)
    view, support = support_view(facts), sampled.tree_.support[:-1]
    assert sum(count for _, count, _ in view.bins) == len(support)
    weak = np.flatnonzero(support < 0.5)
    assert len(view.weak) + view.n_more == len(weak)
    document = Page(page(facts))
    assert "the share of the sampled trees that have a clade" in document.text
    weakest = np.argmin(support)
    names = [sampled.tree_.leaf_names[leaf] for leaf in np.sort(sampled.tree_.leaves_below(12 + weakest))]
    assert all(name in view.weak[0] for name in names[:4])
    shares = document.data["support"]
    assert shares[:12] == [None] * 12
    assert shares[12:-1] == pytest.approx(support.tolist(), abs=1e-3)


def test_sample_verdict(sampled, tmp_path):
    facts = report_facts(sampled._model)
    text = verdict(facts, "sampler")
    assert facts.sample.effective_size == pytest.approx(sampled.sample_.effective_size)
    assert f"worth {sampled.sample_.effective_size:.1f} trees" in text.answer
    assert text.state == ("look" if any("collapsed" in remark for remark in sampled.remarks_) else "good")
    collapsed = replace(facts, sample=replace(facts.sample, effective_size=1.2))
    assert verdict(collapsed, "sampler").state == "look"
    assert verdict(collapsed, "sampler").answer.startswith("Yes: ")
    sampled.save(tmp_path / "model.coaltree")
    again = report_facts(ct.load_model(tmp_path / "model.coaltree")._model)
    assert again.sample.effective_size == pytest.approx(facts.sample.effective_size)
    assert again.sample.least_ess == facts.sample.least_ess is not None
