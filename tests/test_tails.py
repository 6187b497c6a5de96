"""Extreme cells in predictions: the maps that move them, and what one far value does to the predictions of other cells."""

import numpy as np
import pandas as pd
import pytest

import coaltree as ct
from coaltree.inference.preparation import shorten_gaps
from coaltree.predict.mixtures import LEVELS
from coaltree.predict.tails import KEPT_SHARE, Tails
from coaltree.process.predictions import CellQuantiles, Predictions

nan = np.nan
pytestmark = pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")  # about extreme cells


def table_with_extremes(seed=0):
    """Return a table whose second column has extreme cells on both sides, on two levels above; the third has missing cells."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    X[:4, 1] = 80.0, 81.0, 900.0, -5e4
    X[7:9, 1:] = nan
    X[11, 2] = 1e5
    return X


def test_maps_agree_with_shortened_gaps():
    X = table_with_extremes()
    tails = Tails.from_table(X)
    assert sorted(tails.maps) == [1, 2]
    shortened, levels = shorten_gaps(X)
    moved = tails.apply(X)
    np.testing.assert_allclose(moved, shortened, rtol=1e-12)
    np.testing.assert_array_equal(moved[:, 0], X[:, 0])
    np.testing.assert_allclose(moved[levels == 0], X[levels == 0], atol=1e-15)
    np.testing.assert_allclose(tails.invert(moved), X, rtol=1e-9)


def test_maps_are_increasing_and_keep_what_is_near():
    X = table_with_extremes()
    tails = Tails.from_table(X)
    column = X[:, 1]
    ordinary = column[np.abs(column) < 10]
    low, high = ordinary.min(), ordinary.max()
    gap = 0.5 * (high - low)  # a shortened one

    def moved(x):
        return tails.apply(np.column_stack([np.zeros_like(x), x, np.full_like(x, nan)]))[:, 1]

    x = np.sort(np.concatenate([np.linspace(-1e5, 1e5, 1001), np.linspace(low - 5, high + 5, 1001)]))
    assert np.all(np.diff(moved(x)) > 0)
    near = np.linspace(low - KEPT_SHARE * gap, high + KEPT_SHARE * gap, 50)
    np.testing.assert_allclose(moved(near), near, atol=1e-12)
    far = np.array([2e4, 2e4 + 3])  # beyond all cells, at the distance that they have in the column
    np.testing.assert_allclose(np.diff(moved(far)), 3)
    slopes = tails.log_slopes(np.column_stack([x, x, np.full_like(x, nan)]))
    step = 1e-6
    numerical = (moved(x + step) - moved(x - step)) / (2 * step)
    smooth = np.abs(np.exp(slopes) - numerical) < 1e-4 * (1 + np.exp(slopes))
    assert smooth.mean() > 0.99  # all but those next to a knot


def test_predictions_are_not_inside_of_gaps():
    """They are at most as far from a cell of the column as the ends of its shortened gaps, half the range of ordinary cells."""
    X = table_with_extremes()
    tails = Tails.from_table(X)
    scores = tails.maps[1].scores
    moved = np.zeros((2001, 3))
    moved[:, 1] = np.linspace(scores[1], scores[-2], len(moved))
    restored = tails.invert(moved)[:, 1]
    assert np.all(np.diff(restored) > 0)
    cells = X[~np.isnan(X[:, 1]), 1]
    ordinary = cells[np.abs(cells) < 100]
    assert np.abs(restored[:, None] - cells).min(axis=1).max() <= np.ptp(ordinary) / 2


def test_no_maps_without_extreme_cells():
    rng = np.random.default_rng(0)
    assert Tails.from_table(rng.normal(size=(100, 3))) is None
    assert Tails.from_table(np.append(rng.normal(size=10), 1e6)[:, None]) is None  # too few cells to tell
    assert Tails.from_table(np.zeros((30, 0))) is None


def test_predictions_are_mapped_back():
    X = table_with_extremes()
    tails = Tails.from_table(X)
    far = tails.apply(X)[3, 1]
    at = np.array([[-1, 0, -1], [-1, -1, 1]])
    values = np.stack([np.linspace(-9.0, far, len(LEVELS)), np.linspace(-1.0, 1.0, len(LEVELS))])
    mean, sd = np.array([[0.1, far, 0.2], [0.3, 0.4, -0.5]]), np.full((2, 3), 0.7)
    moved = Predictions.from_real(mean, sd)._replace(quantiles=CellQuantiles(at, values))
    restored = tails.restore(moved)
    np.testing.assert_allclose(restored.mean, [[0.1, -5e4, 0.2], [0.3, 0.4, -0.5]], rtol=1e-9)
    np.testing.assert_array_equal(restored.sd, sd)
    assert restored.quantiles.values[0, -1] == pytest.approx(-5e4)
    np.testing.assert_allclose(restored.quantiles.values[1], values[1], atol=1e-12)
    np.testing.assert_array_equal(moved.quantiles.values, values)  # unchanged


def filled_cells(far):
    """Return true and predicted cells of a column with one far value, which says nothing about the other columns."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=(80, 2)) + 4 * rng.integers(2, size=(80, 1)), rng.normal(size=80)])
    truth = X.copy()
    if far:
        X[5, 2] = far
    hidden = rng.random(X.shape) < 0.15
    hidden[5] = False
    imputer = ct.CoalescentImputer(n_jobs=1).fit(np.where(hidden, nan, X))
    return truth[:, 2], hidden[:, 2], imputer, np.where(hidden, nan, X)


@pytest.mark.parametrize("far", [100.0, 1e3, -1e6, 1e9])
def test_far_value_does_not_spoil_other_cells(far, short_chains):
    """Filled cells are about as near to the truth as without the far value, and intervals are about as long."""

    def figures(far):
        truth, hidden, imputer, table = filled_cells(far)
        filled, cells = imputer.transform(table)[:, 2], imputer.predictive(table)["x2"]
        low, high = cells.interval(0.9)
        error = np.sqrt(np.mean((filled - truth)[hidden] ** 2))
        return error, np.mean((high - low)[hidden]), cells.sd[hidden].max(), np.abs(cells.mean[hidden]).max()

    error, width, sd, _ = figures(0.0)
    far_error, far_width, far_sd, far_largest = figures(far)
    assert far_error < 1.3 * error
    assert far_width < 1.6 * width
    assert far_sd < 2 * sd
    assert far_largest < 3


def test_far_values_are_drawn_rarely(short_chains):
    _, hidden, imputer, table = filled_cells(1e6)
    tables = np.array(imputer.sample(table, n_draws=20, random_state=0))
    drawn = np.abs(tables[:, hidden, 2])
    assert np.mean(drawn > 10) < 0.05
    assert np.all(tables[:, 5, 2] == 1e6)
    # Means of whole columns are those of the cells, to the last digit where they are observed.
    np.testing.assert_array_equal(tables[0][~np.isnan(table)], table[~np.isnan(table)])


def test_densities_integrate_to_one(short_chains):
    rng = np.random.default_rng(0)
    x = np.append(rng.normal(size=40), [60.0, -500.0])
    model = ct.CoalescentClustering(n_jobs=1).fit(x[:, None])
    assert model._model.tails is not None
    encoding, knots = model._model.encoding, model._model.tails.maps[0]
    # midpoints of steps that are even after the map, and end at its knots, where the density jumps
    places = np.union1d(np.linspace(knots.scores[0] - 2, knots.scores[-1] + 2, 20_001), knots.scores)
    middles, ends = (
        encoding.center[0] + encoding.scale[0] * knots.invert(at) for at in (0.5 * (places[1:] + places[:-1]), places)
    )
    assert np.exp(model.score_samples(middles[:, None])) @ np.diff(ends) == pytest.approx(1, abs=0.01)


def test_saved_model_predicts_the_same(short_chains, tmp_path):
    X = pd.DataFrame(table_with_extremes(), columns=["a", "b", "c"])
    new = pd.DataFrame([[0.0, 500.0, nan], [0.2, nan, -3.0], [0.1, 1e6, 2.0]], columns=["a", "b", "c"])
    model = ct.CoalescentClustering(n_jobs=1).fit(X)
    scores, placed = model.score_samples(new), model.place(new)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(placed.log_density, scores)
    model.save(tmp_path / "m.coaltree")
    loaded = ct.load_model(tmp_path / "m.coaltree")
    np.testing.assert_array_equal(loaded.score_samples(new), scores)
    imputer = ct.CoalescentImputer(n_jobs=1).fit(X)
    filled = imputer.transform(X)
    imputer.save(tmp_path / "i.coaltree")
    loaded = ct.load_model(tmp_path / "i.coaltree")
    pd.testing.assert_frame_equal(loaded.transform(X), filled)
    pd.testing.assert_frame_equal(loaded.transform(new), imputer.transform(new))


@pytest.mark.parametrize("options", [{"noise": 0.3}, {"covariance": "spherical"}])
def test_given_scales_are_kept(options, short_chains):
    X = table_with_extremes()
    assert ct.CoalescentImputer(**options).fit(X)._model.tails is None
