"""Quantiles of missing real cells: against sums over all trees and attachment points, with scipy's distribution function."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import coaltree as ct
from coaltree.inference.posterior_draws import Draw
from coaltree.predict import groups as groups_module
from coaltree.predict import mixtures as mixtures_module
from coaltree.predict import predictor as predictor_module
from coaltree.predict.mixtures import DEVIATES, LEVELS, Components, Mixtures
from coaltree.predict.predictor import Predictor, map_rows
from coaltree.predict.results import CellCodes, RealCells
from coaltree.process.normal_scores import Marginal, NormalScores
from coaltree.process.predictions import CellQuantiles, Predictions
from coaltree.tree.edit import without_leaves

nan = np.nan
LINEAR = Marginal(np.array([-1.0, 1.0]), np.array([-1.0, 1.0]))
BENT = Marginal(np.array([-1.0, 0.0, 0.1, 4.0]), np.array([-2.0, -0.5, 0.5, 3.0]))


def distribution(x, weights, means, sds, marginal=None, scored=False):
    """Return the distribution function of a mixture, some components of which may be of normal scores."""
    at = np.where(scored, marginal.apply(np.array(x)), x) if marginal is not None else x
    return np.sum(weights * ndtr((at - means) / sds)) / np.sum(weights)


# -- components -----------------------------------------------------------------------------------------------------------


def components_of(rng, n, cells=1, scored=0):
    cell = np.sort(2 * rng.integers(cells, size=n) + (rng.integers(2, size=n) if scored else 0))
    return Components(cell, rng.gamma(0.3, size=n), rng.normal(size=n), np.exp(rng.normal(-2, 2, size=n)))


@pytest.mark.parametrize("scored", [0, 1])
def test_quantiles_match_mixture(scored):
    rng = np.random.default_rng(scored)
    components = components_of(rng, 60, 4, scored)
    actual = components.quantiles((2, 2), NormalScores((LINEAR, BENT)) if scored else None)
    for cell in range(4):
        selected = components.cells // 2 == cell
        mixture = (components.weights[selected], components.means[selected], np.sqrt(components.variances[selected]))
        marginal, is_score = (LINEAR, BENT)[cell % 2], components.cells[selected] % 2 == 1
        values = actual.values[actual.at.ravel()[cell]]
        below = [distribution(x, *mixture, marginal, is_score) for x in values]
        np.testing.assert_allclose(below, LEVELS, atol=1e-6)
        assert np.all(np.diff(values) > 0)


def test_quantiles_of_single_gaussian_are_exact():
    actual = Components(np.array([0]), np.array([0.3]), np.array([5.0]), np.array([4.0])).quantiles((1, 1), None)
    np.testing.assert_allclose(actual.values[0], 5 + 2 * DEVIATES, atol=2e-4)
    np.testing.assert_allclose(DEVIATES, ndtri(LEVELS), rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-140, 1e-9, 1.0, 1e140])
def test_quantiles_of_narrow_distant_modes(scale):
    """Quantiles are in the modes, however narrow these are."""
    means, sds = scale * np.array([-1.0, 1.0]), scale * np.array([1e-6, 1e-7])
    actual = Components(np.zeros(2, dtype=np.intp), np.array([0.3, 0.7]), means, sds**2).quantiles((1, 1), None)
    below = [distribution(x, np.array([0.3, 0.7]), means, sds) for x in actual.values[0]]
    np.testing.assert_allclose(below, LEVELS, atol=1e-6)
    assert np.all(np.diff(actual.values[0]) > 0)


def test_merging_components_keeps_distribution():
    rng = np.random.default_rng(0)
    n = 20_000
    means = np.where(rng.random(n) < 0.3, 3.0, 0.0) + rng.normal(size=n)
    components = Components(
        np.zeros(n, dtype=np.intp), rng.gamma(0.3, size=n), means, np.exp(rng.uniform(-3, 0, size=n))
    )
    merged = Mixtures()
    merged.add(components, 2.0)
    actual = merged.components()
    assert len(actual.cells) < 2_000
    w, m, v = components[1:]
    assert actual.weights.sum() == pytest.approx(2 * w.sum())
    mean = np.average(actual.means, weights=actual.weights)
    assert mean == pytest.approx(np.average(m, weights=w))
    assert np.average(actual.variances + (actual.means - mean) ** 2, weights=actual.weights) == pytest.approx(
        np.average(v + (m - mean) ** 2, weights=w)
    )
    for x in np.linspace(-3, 6, 50):
        expected = distribution(x, w, m, np.sqrt(v))
        assert distribution(x, *actual[1:3], np.sqrt(actual.variances)) == pytest.approx(expected, abs=2e-4)


def test_components_are_independent_of_chunking(monkeypatch):
    rng = np.random.default_rng(1)
    components = components_of(rng, 5_000, 3)
    together, alone = Mixtures(), Mixtures()
    together.add(components)
    monkeypatch.setattr(mixtures_module, "MAX_NEW_COMPONENTS", 7)
    selected = components.cells == 2
    alone.add(Components(*(part[selected] for part in components)))
    actual = together.components()
    for part, expected in zip(actual, alone.components(), strict=True):
        np.testing.assert_array_equal(part[actual.cells == 2], expected)


def test_negligible_components_are_dropped():
    mixtures = Mixtures()
    mixtures.add(
        Components(np.array([0, 0, 2, 4]), np.array([1.0, 1.0, 0.0, 1.0]), np.zeros(4), np.array([1, np.inf, 1, nan]))
    )
    actual = mixtures.components()
    assert (actual.cells.tolist(), actual.weights.tolist()) == ([0], [1.0])
    assert actual.quantiles((1, 3), None).at.tolist() == [[0, -1, -1]]


def test_extreme_components_are_accepted():
    mixtures = Mixtures()
    means = np.array([1e300, -1e300, 0.0, 0.0])
    mixtures.add(Components(np.zeros(4, dtype=np.intp), np.ones(4), means, np.array([1e-320, 1e308, 0.0, 1.0])))
    assert len(mixtures.components().cells) == 4


def test_stacked_predictions_keep_quantiles():
    blocks = [
        CellQuantiles(np.array([[0, -1]]), np.array([[1.0]])),
        CellQuantiles(np.array([[-1, 0]]), np.array([[2.0]])),
    ]
    stacked = CellQuantiles.stack(blocks)
    assert (stacked.at.tolist(), stacked.values.tolist()) == ([[0, -1], [-1, 1]], [[1.0], [2.0]])
    plain = Predictions.from_real(np.zeros((1, 2)), np.ones((1, 2)))
    both = [plain._replace(quantiles=block) for block in blocks]
    assert Predictions.stack(both).take(np.array([1, 0, 1])).quantiles.at.tolist() == [[-1, 1], [0, -1], [-1, 1]]
    assert Predictions.stack([both[0], plain]).quantiles is None


# -- predictors -----------------------------------------------------------------------------------------------------------


def skewed_table(n=40):
    """Return a table of two clusters, with columns that are skewed and correlated, and with holes."""
    rng = np.random.default_rng(5)
    Z = rng.normal(size=(n, 3)) @ np.array([[1.0, 0.8, 0.0], [0.0, 0.5, 0.4], [0.0, 0.0, 0.7]])
    Z[: n // 3] += 4
    X = np.column_stack([np.exp(0.5 * Z[:, 0]), Z[:, 1], Z[:, 2]])
    X[rng.random(X.shape) < 0.2] = nan
    X[0] = nan
    return (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)


X = skewed_table()
NEW = np.where(np.random.default_rng(0).random((6, 3)) < 0.5, nan, X[10:16] + 0.1)
COVARIANCE = np.array([[1.0, 0.7, 0.3], [0.7, 1.2, 0.5], [0.3, 0.5, 0.8]])
DIAGONAL = ct.OrnsteinUhlenbeck(0.5, 0.0, [1.0, 1.2, 0.8], 0.2)
FULL = ct.OrnsteinUhlenbeck(0.5, 0.0, COVARIANCE, 0.2 * COVARIANCE)
# Some columns with a covariance matrix, and one by itself.
PARTLY = ct.Mixed(
    (ct.OrnsteinUhlenbeck(0.5, 0.0, COVARIANCE[:2, :2], 0.2 * COVARIANCE[:2, :2]), [0, 1]), (ct.Brownian(0.5, 0.1), [2])
)


def predictor_of(case):
    """Return a predictor of up to three draws, which must not be adjusted to the table."""
    scores = NormalScores.fit(X, 3)
    assert scores is not None
    rng = np.random.default_rng(2)

    def draw(process, scores=None):
        tree = ct.simulate_tree(len(X), rng)
        table = X if scores is None else scores.apply(X)
        if process.whitenings():  # chains fill in missing cells
            table = np.where(np.isnan(table), rng.normal(size=X.shape), table)
        return Draw(tree, process, table, scores)

    draws = {
        "one tree": lambda: [draw(DIAGONAL)],
        "columns": lambda: [draw(DIAGONAL), draw(DIAGONAL)],
        "scores": lambda: [draw(DIAGONAL), draw(DIAGONAL, scores)],
        "whitened": lambda: [draw(FULL), draw(FULL)],
        "whitened scores": lambda: [draw(FULL), draw(FULL, scores), draw(FULL, scores)],
        "partly whitened": lambda: [draw(PARTLY), draw(PARTLY)],
    }[case]()
    return Predictor(draws, np.arange(1.0, len(draws) + 1), X)


CASES = ["one tree", "columns", "scores", "whitened", "whitened scores", "partly whitened"]


def all_components(predictor, row):
    """Return share, mean and standard deviation of a row's missing cells at every point, and whether these are of scores."""
    groups = predictor.groups
    _, (posterior,) = groups.map_blocks(row[None], 1, lambda posterior: posterior)
    at = [np.arange(groups.starts[g], groups.stops[g]) for g in posterior.groups]
    shares = np.concatenate([share[: len(k)] for share, k in zip(posterior.shares, at, strict=True)])
    points = np.concatenate(at)
    systems = groups.draw_systems[np.searchsorted(groups.bounds, points, side="right") - 1]
    predicted = groups.predict_at(points)
    mean, sd = np.empty((2, *predicted.mean.shape))
    for k, coordinates in enumerate(groups.coordinates):
        selected = np.flatnonzero(systems == k)
        moments = coordinates.condition_scores(predicted.take(selected), np.tile(row, (len(selected), 1)))
        mean[selected], sd[selected] = moments[0], np.sqrt(moments[1])
    scored = np.array([coordinate.scores is not None for coordinate in groups.coordinates])[systems]
    return shares, mean, sd, scored


def check_quantiles(predictions, k, row, parts, scores):
    """Compare a row's quantiles with the distribution function, given weights and components."""
    for d in range(3):
        at = predictions.quantiles.at[k, d]
        assert (at >= 0) == np.isnan(row[d])
        if at >= 0:
            below = np.zeros(len(LEVELS))
            for weight, (shares, mean, sd, scored) in parts:
                marginal = None if scores is None else scores.marginals[d]
                below += [
                    weight * distribution(x, shares, mean[:, d], sd[:, d], marginal, scored)
                    for x in predictions.quantiles.values[at]
                ]
            np.testing.assert_allclose(below, LEVELS, atol=5e-4)


@pytest.mark.parametrize("case", CASES)
def test_quantiles_of_new_rows_match_mixture(case):
    predictor = predictor_of(case)
    predicted, plain = predictor.cells(NEW, True), predictor.cells(NEW)
    assert plain.quantiles is None
    for name in ("mean", "sd", "probability"):
        np.testing.assert_array_equal(getattr(predicted, name), getattr(plain, name))
    for k, row in enumerate(NEW):
        check_quantiles(predicted, k, row, [(1.0, all_components(predictor, row))], predictor.groups.scores)


@pytest.mark.parametrize("case", CASES)
def test_quantiles_of_training_rows_match_mixture(case, monkeypatch):
    """Each row is removed from each tree; the weights of the draws do not change."""
    monkeypatch.setattr(predictor_module, "MIN_DRAWS", 1)
    predictor = predictor_of(case)
    rows = np.flatnonzero(np.isnan(X).any(axis=1))
    predicted, plain = predictor.training_cells(rows, True), predictor_of(case).training_cells(rows)
    assert plain.quantiles is None
    for name in ("mean", "sd"):
        np.testing.assert_array_equal(getattr(predicted, name), getattr(plain, name))
    n_folds = predictor_module.N_FOLDS if case == "one tree" else predictor_module.N_SAMPLE_FOLDS
    for fold in predictor._split_incomplete_rows(n_folds)[:2]:
        rests = [predictor.without_rows(fold, [draw]) for draw in predictor.ensemble.draws]
        assert rests[0].trees[0] == without_leaves(predictor.trees[0], fold)
        for row in fold:
            parts = [
                (weight, all_components(rest, X[row])) for weight, rest in zip(predictor.weights, rests, strict=True)
            ]
            check_quantiles(predicted, int(np.searchsorted(rows, row)), X[row], parts, predictor.groups.scores)


@pytest.mark.parametrize("case", CASES)
def test_quantiles_of_training_rows_at_their_leaves(case, monkeypatch):
    monkeypatch.setattr(predictor_module, "MAX_REATTACHMENT_WORK", 0)
    predictor = predictor_of(case)
    rows = np.flatnonzero(np.isnan(X).any(axis=1))
    predicted = predictor.training_cells(rows, True)
    groups = predictor.groups
    parts = []
    for k, weight in enumerate(predictor.weights):
        coordinates = groups.coordinates[groups.draw_systems[k]]
        mean, variance = coordinates.condition_scores(groups.beliefs[k].others().take(rows), X[rows])
        parts.append((weight, mean, np.sqrt(variance), coordinates.scores is not None))
    for k, row in enumerate(rows):
        values = [(w, (np.ones(1), mean[k : k + 1], sd[k : k + 1], scored)) for w, mean, sd, scored in parts]
        check_quantiles(predicted, k, X[row], values, groups.scores)


@pytest.mark.parametrize("case", ["scores", "whitened scores"])
def test_quantiles_are_independent_of_threads_and_blocks(case, monkeypatch):
    monkeypatch.setattr(predictor_module, "MIN_DRAWS", 1)
    rows = np.flatnonzero(np.isnan(X).any(axis=1))
    new = np.concatenate([NEW] * 3)
    predictor = predictor_of(case)
    expected = predictor.training_cells(rows, True), predictor.cells(new, True)
    monkeypatch.setattr(groups_module, "BLOCK_ROWS", 5)
    monkeypatch.setattr(groups_module, "MAX_BLOCK_NUMBERS", 1_000)
    monkeypatch.setattr(groups_module, "MAX_LARGE_BLOCK_NUMBERS", 2_000)
    monkeypatch.setattr(groups_module, "MAX_CACHED_NUMBERS", 0)
    monkeypatch.setattr(mixtures_module, "MAX_NEW_COMPONENTS", 100)
    other = predictor_of(case)
    other.n_threads = 3
    for item, value in zip((other.training_cells(rows, True), other.cells(new, True)), expected, strict=True):
        holes = value.quantiles.at >= 0
        np.testing.assert_array_equal(item.quantiles.at >= 0, holes)
        np.testing.assert_array_equal(
            item.quantiles.values[item.quantiles.at[holes]], value.quantiles.values[value.quantiles.at[holes]]
        )


def test_rows_that_use_fewer_draws_have_quantiles(monkeypatch):
    predictor = predictor_of("whitened scores")
    monkeypatch.setattr(predictor_module, "MAX_PARTIAL_LEAVES", 0)
    monkeypatch.setattr(predictor_module, "MIN_DRAWS", 2)
    rows = np.vstack([NEW, X[20:24], np.ones(3)])
    predicted = map_rows(predictor, "cells", rows, True)
    expected = predictor.subsample.cells(rows, True)
    assert len(predictor.subsample.trees) == 2
    holes = np.isnan(rows)
    np.testing.assert_array_equal(predicted.quantiles.at >= 0, holes)
    np.testing.assert_array_equal(
        predicted.quantiles.values[predicted.quantiles.at[holes]],
        expected.quantiles.values[expected.quantiles.at[holes]],
    )


def test_last_result_is_cached_and_interrupts_are_recoverable(monkeypatch):
    monkeypatch.setattr(predictor_module, "MIN_DRAWS", 1)
    predictor = predictor_of("columns")
    rows = np.flatnonzero(np.isnan(X).any(axis=1))
    plain = predictor.training_cells(rows)
    with monkeypatch.context() as patch:
        patch.setattr(Mixtures, "components", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            predictor.training_cells(rows, True)
    assert predictor.training_cells(rows) is plain
    predicted = predictor.training_cells(rows, True)
    assert predicted.quantiles is not None
    assert predictor.training_cells(rows) is predicted


# -- cells ----------------------------------------------------------------------------------------------------------------


def cells_of(means, sds, weights, decode=lambda codes: codes):
    """Return one observed cell, one that is a mixture, and one of which nothing is known."""
    components = Components(np.zeros(len(means), dtype=np.intp), np.array(weights), np.array(means), np.array(sds) ** 2)
    mean = float(np.average(means, weights=weights))
    sd = float(np.sqrt(np.average(np.square(sds) + (np.array(means) - mean) ** 2, weights=weights)))
    quantiles = np.vstack([components.quantiles((1, 1), None).values, np.full(len(LEVELS), nan)])
    codes = CellCodes(np.array([mean, 0.0]), np.array([sd, np.inf]), quantiles, decode)
    return RealCells(np.array([7.0, mean, 0.0]), np.array([0.0, sd, np.inf]), np.array([False, True, True]), codes)


def test_gaussian_intervals_are_symmetric():
    cells = cells_of([2.0], [3.0], [1.0])
    for level in (0.01, 0.37, 0.5, 0.9, 0.95, 0.999, 0.99999):
        low, high = cells.interval(level)
        z = ndtri(0.5 + level / 2)
        np.testing.assert_allclose([low[1], high[1]], [2 - 3 * z, 2 + 3 * z], atol=2e-3)
        assert low[0] == high[0] == 7.0
        assert (low[2], high[2]) == (-np.inf, np.inf)
    assert cells.median[1] == pytest.approx(2.0, abs=1e-5)


def test_intervals_of_two_clusters_exclude_tails():
    """The interval of a Gaussian with the same moments would end far outside the clusters."""
    cells = cells_of([0.0, 10.0], [0.1, 0.1], [0.6, 0.4])
    low, high = cells.interval(0.9)
    assert low[1] == pytest.approx(0.1 * ndtri(0.05 / 0.6), abs=1e-3)
    assert high[1] == pytest.approx(10 + 0.1 * ndtri(0.35 / 0.4), abs=1e-3)
    assert cells.median[1] == pytest.approx(0.1 * ndtri(0.5 / 0.6), abs=1e-3)
    assert cells.mean[1] - 1.645 * cells.sd[1] < -3


def test_intervals_grow_with_level():
    cells = cells_of([0.0, 5.0, 5.2], [1.0, 0.1, 2.0], [0.5, 0.2, 0.3])
    ends = np.array([cells.interval(level) for level in np.linspace(0.001, 0.99999, 500)])[:, :, 1]
    assert np.all(np.diff(ends[:, 0]) < 0)
    assert np.all(np.diff(ends[:, 1]) > 0)


def test_intervals_of_largest_floats_are_finite():
    cells = cells_of([0.0, 1.0], [1.0, 0.5], [0.5, 0.5], lambda codes: 1.7e308 * codes)
    low, high = cells.interval(0.99)
    assert np.isfinite([low[1], high[1]]).all()
    assert low[1] < -1e308 < 1e308 < high[1]
