"""Calibration of intervals: levels of hidden cells, the concentrations fitted to them, and intervals moved by these."""

import io
import json
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import coaltree as ct
from coaltree.persist.archive import pack, to_json
from coaltree.persist.model import ModelRecord
from coaltree.predict.calibration import (
    HIDDEN_SHARE,
    MAX_TIED_SHARE,
    calibrated_deviate,
    find_levels,
    fit_concentrations,
    hide_cells,
    levels_by_column,
    spread_ties,
)
from coaltree.predict.mixtures import DEVIATES, LEVELS
from coaltree.predict.results import CellCodes
from coaltree.process.predictions import CellQuantiles
from model_files import model_bytes
from named import refused

nan = np.nan


@pytest.mark.parametrize("concentration", [0.4, 1.0, 1.3, 5.0])
def test_calibrated_intervals_cover_what_they_promise(concentration):
    """Exactly: the levels of cells are beta distributed, and the interval is one of levels."""
    levels = stats.beta(concentration, concentration)
    for probability in (0.5, 0.8, 0.9, 0.99):
        low, high = (
            stats.norm.cdf(calibrated_deviate(stats.norm.ppf(0.5 + side * probability / 2), concentration))
            for side in (-1, 1)
        )
        assert levels.cdf(high) - levels.cdf(low) == pytest.approx(probability)
        assert low == pytest.approx(1 - high)
    assert calibrated_deviate(0.0, concentration) == 0.0


def test_quantiles_are_calibrated():
    quantiles = np.array([3.0 + 2 * DEVIATES])
    wide = CellCodes(np.array([3.0]), np.array([2.0]), quantiles, lambda values: values, 2.0)
    expected = 3 + 2 * stats.norm.ppf(stats.beta(2, 2).ppf(0.05))
    assert wide.quantile(stats.norm.ppf(0.05))[0] == pytest.approx(expected)
    assert wide.quantile(0.0)[0] == 3.0
    # where quantiles are not known, they are those of a Gaussian
    unknown = wide._replace(quantiles=np.full_like(quantiles, nan))
    assert unknown.quantile(stats.norm.ppf(0.05))[0] == pytest.approx(expected)


def test_levels_invert_quantiles():
    rng = np.random.default_rng(0)
    quantiles = np.sort(rng.normal(size=(50, len(LEVELS))), axis=1)
    deviates = rng.uniform(-3, 3, 50)
    values = [CellCodes(nan, nan, q[None], None).quantile(z)[0] for q, z in zip(quantiles, deviates, strict=True)]
    np.testing.assert_allclose(find_levels(np.array(values), quantiles), stats.norm.cdf(deviates), rtol=1e-9)
    # beyond the outermost quantiles, and between equal ones
    outside = find_levels(np.array([-99.0, 99.0]), quantiles[:2])
    np.testing.assert_allclose(outside, [LEVELS[0], LEVELS[-1]])
    assert 0 < find_levels(np.zeros(1), np.zeros((1, len(LEVELS))))[0] < 1


def test_levels_belong_to_their_cells():
    X = np.array([[0.0, 5.0, nan], [1.0, nan, 0.0], [2.0, 7.0, 1.0]])
    hidden = np.array([[False, True, False], [True, False, False], [True, False, False]])
    at = np.array([[-1, 0], [1, 2], [3, -1]])  # the second column of the second row is missing, not hidden
    quantiles = CellQuantiles(at, np.array([5.0, 1.0, 9.0, 0.0])[:, None] + DEVIATES)
    first, second = levels_by_column(X, hidden, quantiles, np.array([0, 1]))
    np.testing.assert_allclose(first, stats.norm.cdf([0.0, 2.0]), rtol=1e-9)
    np.testing.assert_allclose(second, 0.5)


@pytest.mark.parametrize(("concentrations", "count"), [((1.0, 1.0, 1.0), 3000), ((3.0, 0.6, 1.0, 1.0), 3000)])
def test_concentrations_are_recovered(concentrations, count):
    """Within 15 %, more than five standard errors of the largest."""
    levels = [stats.beta(c, c).rvs(count, random_state=k) for k, c in enumerate(concentrations)]
    np.testing.assert_allclose(fit_concentrations(levels), concentrations, rtol=0.15)


def test_few_cells_change_little():
    found = fit_concentrations([np.full(5, 0.5), np.zeros(0)])
    assert np.all((found > 1) & (found < 1.2))
    np.testing.assert_array_equal(fit_concentrations([]), [])
    np.testing.assert_allclose(fit_concentrations([np.zeros(0)]), 1.0, rtol=1e-9)


def test_hidden_cells():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    X[rng.random(X.shape) < 0.3] = nan
    X[:, 2] = 1.0
    X[57, 2] = 2.0  # only this row differs
    X[:50, 1:] = nan
    X[0] = nan
    for _ in range(30):
        hidden = hide_cells(X, 5, rng)
        shown = np.where(hidden, nan, X)
        assert not hidden[np.isnan(X)].any()
        assert not hidden[:, 5].any()
        assert not (np.isnan(shown).all(axis=1) & ~np.isnan(X).all(axis=1)).any()
        assert set(shown[~np.isnan(shown[:, 2]), 2]) == {1.0, 2.0}
        share = hidden[50:, :5].sum() / (~np.isnan(X[50:, :5])).sum()
        assert 0.4 * HIDDEN_SHARE < share < 1.6 * HIDDEN_SHARE  # about 1,300 cells: six standard deviations


def test_only_frequent_values_are_spread():
    X = np.array([[0.0, 1.0]] * 3 + [[k, 2.0] for k in range(1, 20)] + [[nan, nan]])
    jittered = X + 0.25
    spread = spread_ties(X, jittered, 1)
    moved = X[:, 0] == 0.0
    assert MAX_TIED_SHARE < 3 / 22
    np.testing.assert_array_equal(spread[moved, 0], 0.25)
    np.testing.assert_array_equal(spread[~moved, 0], X[~moved, 0])
    np.testing.assert_array_equal(spread[:, 1], X[:, 1])


def table_with_totals(n, seed):
    """Return a table whose last column is the total of the others, rounded; the draws' random digits widen its intervals."""
    rng = np.random.default_rng(seed)
    X = np.round(np.exp(rng.normal(size=(n, 3)) + rng.normal(size=(n, 1))), 2)
    return pd.DataFrame(np.column_stack([X, X.sum(axis=1)]), columns=list("abct"))


@pytest.fixture(scope="module")
def totals(short_chains):
    whole = table_with_totals(150, 0)
    hidden = np.random.default_rng(1).random(whole.shape) < 0.1
    return whole, hidden, ct.CoalescentImputer(n_jobs=1).fit(whole.mask(hidden))


def test_intervals_of_totals_become_shorter(totals):
    whole, hidden, imputer = totals
    model = imputer._model
    concentrations = model.interval_concentrations
    calibrated = imputer.predictive(whole.mask(hidden))
    model.known_concentrations = np.ones(4)
    plain = imputer.predictive(whole.mask(hidden))
    model.known_concentrations = concentrations
    assert concentrations[3] > 1.1
    for k, name in enumerate("abct"):
        np.testing.assert_array_equal(calibrated[name].mean, plain[name].mean)
        np.testing.assert_array_equal(calibrated[name].sd, plain[name].sd)
        np.testing.assert_array_equal(calibrated[name].median, plain[name].median)
        (low, high), (plain_low, plain_high) = calibrated[name].interval(), plain[name].interval()
        at = calibrated[name].missing
        assert np.all(((high - low)[at] < (plain_high - plain_low)[at]) == (concentrations[k] > 1))


def test_calibration_does_not_depend_on_threads_or_questions(totals):
    whole, hidden, imputer = totals
    again = ct.CoalescentImputer(n_jobs=2).fit(whole.mask(hidden))
    concentrations = again._model.interval_concentrations  # before any prediction
    np.testing.assert_array_equal(concentrations, imputer._model.interval_concentrations)
    copied = pickle.loads(pickle.dumps(imputer))
    np.testing.assert_array_equal(copied._model.interval_concentrations, concentrations)


@pytest.mark.parametrize("known", [True, False])
def test_saved_model_has_the_same_intervals(totals, tmp_path, known):
    """Whether the file has the calibration, or it is made again."""
    whole, hidden, imputer = totals
    concentrations = imputer._model.interval_concentrations
    if not known:
        imputer._model.known_concentrations = None
    imputer.save(tmp_path / "model.coaltree")
    loaded = ct.load_model(tmp_path / "model.coaltree")
    assert (loaded._model.known_concentrations is not None) == known
    np.testing.assert_array_equal(loaded._model.interval_concentrations, concentrations)
    for name in "abct":
        ends = imputer.predictive(whole.mask(hidden))[name].interval(0.8)
        np.testing.assert_array_equal(loaded.predictive(whole.mask(hidden))[name].interval(0.8), ends)


@pytest.mark.parametrize("wrong", [[1.0], [1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, "1"], 3])
def test_damaged_calibration_is_refused(totals, wrong):
    _, _, imputer = totals
    imputer._model.interval_concentrations  # noqa: B018  found now
    with zipfile.ZipFile(io.BytesIO(model_bytes(imputer))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    facts = json.loads(members["model.json"]) | {"interval_concentrations": wrong}
    with refused("fit again concentration"):
        ModelRecord.from_bytes(pack(members | {"model.json": to_json(facts)}))


def test_small_tables_are_not_calibrated(short_chains):
    X = np.random.default_rng(0).normal(size=(20, 4))
    X[0, 0] = nan
    imputer = ct.CoalescentImputer().fit(X)
    np.testing.assert_array_equal(imputer._model.interval_concentrations, 1.0)


def test_part_of_large_table_is_calibrated(monkeypatch, short_chains):
    """Rows with categories beside them, one of which only few rows have."""
    monkeypatch.setattr("coaltree.workflow.model.MAX_CALIBRATION_ROWS", 60)
    monkeypatch.setattr("coaltree.workflow.model.MAX_CALIBRATION_CELLS", 5)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(90, 9)), columns=list("abcdefghi"))
    table["k"] = ["x"] * 88 + ["y", "z"]
    table.loc[0, "a"] = nan
    concentrations = ct.CoalescentImputer().fit(table)._model.interval_concentrations
    assert concentrations.shape == (9,)
    assert np.all((concentrations > 0.5) & (concentrations < 2))
