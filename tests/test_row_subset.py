"""Predictions of models whose trees are drawn for a part of the rows, or for columns that depend on each other."""

import numpy as np
import pytest

import coaltree as ct
from coaltree.inference import posterior_draws


@pytest.fixture
def blobs(monkeypatch, short_chains):
    monkeypatch.setattr(posterior_draws, "MAX_ROWS", 40)
    monkeypatch.setattr(posterior_draws, "MIN_ROWS", 40)
    rng = np.random.default_rng(0)
    labels = np.arange(90) % 3
    return 6.0 * labels[:, None] * [1.0, -1.0, 0.5] + 0.3 * rng.standard_normal((90, 3)), labels


def test_row_subset_assigns_new_rows_to_clusters(blobs):
    X, labels = blobs
    model = ct.CoalescentClustering(n_clusters=3).fit(X)
    assert len(model._model.predictor.X) == 40
    new = np.array([[0.1, 0.0, 0.1], [6.0, -6.1, 3.0], [12.1, -12.0, np.nan]])
    expected = [model.labels_[labels == k][0] for k in range(3)]
    assert model.predict(new).tolist() == expected
    np.testing.assert_allclose(model.predict_proba(new).sum(axis=1), 1.0)
    assert np.isfinite(model.score_samples(new)).all()


def test_row_subset_places_rows_on_whole_tree(blobs):
    X, labels = blobs
    model = ct.CoalescentClustering(n_clusters=3).fit(X)
    placed = model.place(X[:6] + 0.01, n_nearest=4)
    for k, names in enumerate(placed.nearest):
        assert {int(labels[int(name)]) for name in names} == {int(labels[k])}
    below = [model.tree_.leaves_below(node) for node in placed.branch.tolist()]
    assert [len(rows) for rows in below] == placed.n_below.tolist()
    assert all(set(labels[rows]) == {labels[k]} for k, rows in enumerate(below) if len(rows) <= 30)


def test_row_subset_fills_missing_cells_of_all_rows(blobs, tmp_path):
    X, _ = blobs
    holes = X.copy()
    holes[::2, 1] = np.nan
    filled = ct.CoalescentImputer().fit_transform(holes)
    assert np.abs(filled - X).max() < 2
    model = ct.CoalescentClustering().fit(holes)
    model.report(tmp_path / "report.html")
    ct.plot_heatmap(model, missing="fill")
    model.save(tmp_path / "m")
    again = ct.load_model(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(holes), model.predict_proba(holes))
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))


@pytest.mark.parametrize(
    ("seed", "columns"),
    [
        pytest.param(0, [[1, 2, -3], [0, 0, 0]], id="units"),
        pytest.param(1, [[1, 0, 1], [0, 1, 1]], id="total"),
        pytest.param(2, [[1, 1, 1], [0, 0, 0]], id="copies"),
    ],
)
@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_row_subset_handles_dependent_columns(seed, columns, short_chains, monkeypatch):
    """Totals, other units and copies make covariance matrices nearly singular; their missing cells are filled exactly."""
    monkeypatch.setattr(posterior_draws, "MIN_SWEEPS", 20)  # errors are below .01 by then
    monkeypatch.setattr(posterior_draws, "MAX_SWEEPS", 20)
    X = np.random.default_rng(seed).normal(size=(2, 40)).T @ columns
    holes = X.copy()
    holes[39, 1] = holes[0, 0] = np.nan
    filled = ct.CoalescentImputer(random_state=seed).fit_transform(holes)
    np.testing.assert_allclose(filled, X, atol=0.05)
    model = ct.CoalescentClustering(random_state=seed).fit(X)
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.predict_proba(X[:2])).all()
