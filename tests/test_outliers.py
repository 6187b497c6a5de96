"""Outlier detection: scores, limits, explanations, odd input, model files and the command."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

import coaltree as ct
from coaltree.predict import hidden_cells
from coaltree.predict.outliers import OutlierScorer, find_limit
from coaltree.predict.predictor import Predictor
from coaltree.tree.edit import without_leaves
from command_line import command_in

pytestmark = [
    pytest.mark.usefixtures("short_chains"),
    pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning"),
]


def messy_table(n=60):
    rng = np.random.default_rng(0)
    base = rng.normal(size=n)
    table = pd.DataFrame(
        {
            "age": np.round(50 + 8 * base),
            "weight": np.round(70 + 10 * base + 2 * rng.normal(size=n), 1),
            "kind": rng.choice(["a", "b"], n),
        },
        index=[f"r{k}" for k in range(n)],
    )
    table.loc["r3", "age"] = 999
    table.loc["r10":"r20", "weight"] = np.nan
    table.loc["r11", "kind"] = None
    return table


@pytest.fixture(scope="module")
def table():
    return messy_table()


@pytest.fixture(scope="module")
def detector(table):
    return ct.CoalescentOutlierDetector().fit(table)


def test_far_cell_is_found_and_explained_in_units_of_the_table(detector, table):
    scores = detector.score_samples(table)
    assert np.argmin(scores) == 3
    assert detector.predict(table)[3] == -1
    explained = detector.explain(table.iloc[[3, 5]])
    assert len(explained) == 2
    cell = explained[0].cells[0]
    assert (cell.column, cell.value) == ("age", "999")
    low, high = map(float, cell.expected.split(" to "))
    assert 20 < low < high < 90
    assert cell.probability < 1e-3
    assert explained[0].score == scores[3]
    assert str(explained[0]).startswith("age 999; ")
    frame = explained.to_pandas()
    assert frame.index[0] == "r3"
    assert {"score", "column", "value", "expected", "probability"} == set(frame.columns)


def test_contamination_is_the_share_of_outliers_in_the_fit(table):
    detector = ct.CoalescentOutlierDetector(contamination=0.1).fit(table)
    assert (detector.fit_predict(table) < 0).sum() == 6
    decision = detector.decision_function(table)
    np.testing.assert_array_equal(decision < 0, detector.predict(table) < 0)
    np.testing.assert_allclose(decision, detector.score_samples(table) - detector.offset_)


@pytest.mark.parametrize("value", [0, 0.6, "x", True, np.nan])
def test_wrong_contamination_is_refused(value):
    with pytest.raises(ct.errors.InputError, match="contamination"):
        ct.CoalescentOutlierDetector(contamination=value).fit([[0.0], [1.0], [2.0]])


def test_scores_are_densities_of_left_out_rows_with_more_noise(monkeypatch):
    """Each row is left out alone; the noise of the processes is written out."""
    monkeypatch.setattr(hidden_cells, "N_FOLDS", 8)
    tree, process = ct.simulate_tree(8, random_state=3), ct.OrnsteinUhlenbeck(0.7, 0.2, 1.5, 0.1)
    X = process.simulate(tree, random_state=4, n_columns=2)
    predictor = Predictor.from_trees([tree], np.ones(1), X, process)
    scorer = OutlierScorer(predictor)
    expected = []
    for width in (0.05, 0.4, 1.6):
        # A cell has variance 1.5 (1 + 0.1); that times the squared width is added.
        wide = ct.OrnsteinUhlenbeck(0.7, 0.2, 1.5, 0.1 + 1.1 * width**2)
        densities = []
        for row in range(8):
            rest = Predictor.from_trees([without_leaves(tree, [row])], np.ones(1), np.delete(X, row, axis=0), wide)
            densities.append(rest.log_density(X[[row]])[0])
        middle, low = np.median(densities), np.quantile(densities, 0.1)
        expected.append((np.array(densities) - middle) / (middle - low))
    np.testing.assert_allclose(scorer.scores, np.mean(expected, axis=0), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "process",
    [
        ct.OrnsteinUhlenbeck(1.0, 0.0, [1.0, 4.0], [0.1, 0.3]),
        ct.OrnsteinUhlenbeck(1.0, 0.0, [[2.0, 0.5], [0.5, 1.0]], [[0.3, 0.1], [0.1, 0.2]]),
        ct.OrnsteinUhlenbeck(1.0, 0.0, [[2.0, 0.5], [0.5, 1.0]], 0.5),
    ],
)
def test_more_noise_adds_to_the_variance_of_cells_alone(process):
    """One leaf is normal with the equilibrium's covariance matrix and noise, to which a diagonal matrix is added."""
    variance = process.variance if process.variance.ndim == 2 else np.diag(process.variance)
    noise = process.noise if process.noise.ndim == 2 else variance * process.noise
    cells = variance + noise
    x = np.array([[0.3, -1.2]])
    wide = process.with_more_noise(0.25)
    expected = multivariate_normal(np.zeros(2), cells + 0.25 * np.diag(np.diag(cells))).logpdf(x[0])
    white, value, log_jacobian = wide.decorrelate(x)
    assert white.leaf_log_likelihoods(value)[0] + log_jacobian == pytest.approx(expected, rel=1e-9)


def test_more_noise_replaces_states_by_draws():
    """A state is kept by both noises: with probabilities 1 - noise and 1 / (1 + ratio)."""
    process = ct.Multinomial(0.5, [[0.2, 0.8]], noise=0.1).with_more_noise(0.25)
    assert 1 - process.noise == pytest.approx(0.9 / 1.25)


def test_limit_of_an_exponential_tail():
    scores = -np.random.default_rng(0).exponential(size=200_000)
    middle, low = np.median(scores), np.quantile(scores, 0.1)
    # 2,000 are expected; six standard deviations are 270
    assert abs(np.sum((scores - middle) / (middle - low) < find_limit(0.01)) - 2000) < 400


def test_rows_are_recognised_in_any_order_and_alone(detector, table):
    scores = detector.score_samples(table)
    np.testing.assert_array_equal(detector.score_samples(table.iloc[::-1]), scores[::-1])
    np.testing.assert_array_equal(detector.score_samples(table.iloc[[7]]), scores[[7]])


@pytest.mark.parametrize("X", [np.eye(3), np.zeros((5, 2)), np.arange(12.0)[:, None], np.repeat(np.eye(2), 20, axis=0)])
def test_odd_tables_get_finite_scores(X):
    detector = ct.CoalescentOutlierDetector().fit(X)
    assert np.isfinite(detector.score_samples(X)).all()
    assert np.isfinite(detector.score_samples(X + 5)).all()
    assert len(detector.explain(X[:1])) == 1


def test_density_of_rows_of_the_fit_warns(table):
    model = ct.CoalescentClustering().fit(table)
    with pytest.warns(ct.errors.InputWarning, match="rows of the fit"):
        model.score_samples(table)


def test_odd_new_rows_get_scores(detector, table):
    rows = table.iloc[[0, 1, 2]].copy()
    rows.loc["r0", :] = None
    rows.loc["r1", "kind"] = "never seen"
    rows.loc["r2", "weight"] = 1e10
    scores = detector.score_samples(rows)
    assert np.isfinite(scores).all()
    assert detector.predict(rows).tolist() == [1, 1, -1]
    explained = detector.explain(rows)
    assert explained[0].cells == ()
    assert explained[2].cells[0].column == "weight"


def test_detector_is_the_same_after_saving(detector, table, tmp_path):
    detector.save(tmp_path / "model.coaltree")
    again = ct.load_model(tmp_path / "model.coaltree")
    assert isinstance(again, ct.CoalescentOutlierDetector)
    np.testing.assert_array_equal(again.decision_function(table), detector.decision_function(table))


def test_command_lists_outliers_with_reasons(table, tmp_path, monkeypatch, capsys):
    command = command_in(tmp_path, monkeypatch, capsys)
    table.to_csv(tmp_path / "t.csv", index_label="name")
    status, _, notes = command("outliers", "t.csv", "-o", "o.csv")
    assert status == 0
    assert "r3: age 999; " in notes
    written = pd.read_csv(tmp_path / "o.csv", index_col="row")
    assert written.loc["r3", "outlier"]
    assert written.loc["r3", "why"].startswith("age 999; ")
    ct.CoalescentClustering().fit(table).save(tmp_path / "model.coaltree")
    status, out, _ = command("outliers", "t.csv", "--model", "model.coaltree", "--contamination", "0.1", "--json")
    facts = json.loads(out)
    assert (status, facts["n_outliers"], facts["rows"][3]["row"]) == (0, 6, "r3")
    assert facts["rows"][3]["outlier"]
