"""Predictions of CoalescentClustering for new rows: densities, placements and clusters."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm
from sklearn.exceptions import NotFittedError

import coaltree as ct
from coaltree.errors import InputError, InputWarning
from coaltree.predict import predictor as predictor_module
from named import refused
from test_predictor import BruteForce

pytestmark = pytest.mark.usefixtures("short_chains")

nan = np.nan


@pytest.fixture(scope="module")
def frame():
    """Three groups far apart, in columns of very different units, with holes."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], 8)
    table = pd.DataFrame(
        {
            "length": 50.0 * group + rng.normal(size=24),
            "weight": 1e-3 * (5.0 * group**2 + rng.normal(size=24)),
            "colour": np.array(["red", "blue", "green"])[group],
        },
        index=[f"animal {i}" for i in range(24)],
    )
    table.loc["animal 3", "length"] = nan
    table.loc["animal 9", "colour"] = None
    return table


@pytest.fixture(scope="module")
def model(frame):
    return ct.CoalescentClustering(n_clusters=3, noise=0.1).fit(frame)


@pytest.fixture(scope="module")
def new_rows(frame):
    rng = np.random.default_rng(1)
    rows = frame.sample(40, replace=True, random_state=2).reset_index(drop=True)
    rows["length"] += rng.normal(size=40)
    rows["weight"] += 1e-3 * rng.normal(size=40)
    rows.loc[::5, "length"] = nan
    rows.loc[::7, "colour"] = None
    rows.loc[5, ["length", "weight"]] = 300.0, 2.0
    return rows


# -- densities ---------------------------------------------------------------------------------------------------------


def test_density_of_real_column_integrates_to_one_in_its_units(frame):
    model = ct.CoalescentClustering(noise=0.1).fit(frame[["weight"]])
    x = np.linspace(-0.2, 0.2, 20_001)
    density = np.exp(model.score_samples(pd.DataFrame({"weight": x})))
    assert np.trapezoid(density, x) == pytest.approx(1.0, abs=1e-4)
    assert density.max() > 10  # the column's values lie within hundredths


def test_density_of_mixed_table_integrates_to_one(model):
    x = np.linspace(-1000, 1100, 21_001)
    total = 0.0
    for colour in ("red", "blue", "green"):
        rows = pd.DataFrame({"length": x, "weight": nan, "colour": colour})
        total += np.trapezoid(np.exp(model.score_samples(rows)), x)
    assert total == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("standardize", [True, False])
def test_units_of_a_column_shift_log_densities(frame, new_rows, standardize):
    settings = {"noise": 0.1, "standardize": standardize}
    base = ct.CoalescentClustering(**settings).fit(frame).score_samples(new_rows)
    scaled = ct.CoalescentClustering(**settings).fit(frame.assign(weight=1000 * frame["weight"]))
    predicted = scaled.score_samples(new_rows.assign(weight=1000 * new_rows["weight"]))
    np.testing.assert_allclose(predicted, base - np.where(new_rows["weight"].isna(), 0, np.log(1000)), rtol=1e-6)
    shifted = ct.CoalescentClustering(**settings).fit(frame.assign(length=frame["length"] - 20))
    predicted = shifted.score_samples(new_rows.assign(length=new_rows["length"] - 20))
    np.testing.assert_allclose(predicted, base, rtol=1e-6)


def predict_from_one_tree(model, process=None):
    """Have questions answered by the model's own tree alone, with one process."""
    process = model.process_ if process is None else process
    model._model.known_predictor = predictor_module.Predictor.from_trees(
        [model.tree_], np.ones(1), model._model.matrix, process
    )
    return process


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_density_matches_brute_force(covariance):
    """The tree with one leaf more, everywhere, in standardised units; then the units of the table."""
    rng = np.random.default_rng(4)
    X = np.array([3.0, 0.02]) * rng.normal(size=(7, 2)) @ [[1.0, 0.8], [0.0, 0.6]] + [100.0, -1.0]
    model = ct.CoalescentClustering(noise=0.1).fit(X)
    variance = [[0.9, 0.5], [0.5, 0.9]] if covariance == "full" else [0.9, 0.8]
    process = predict_from_one_tree(model, ct.OrnsteinUhlenbeck(0.5, 0.0, variance, 0.1))
    row = X[2] + [2.0, -1.0]
    white, new = ((table - X.mean(axis=0)) / X.std(axis=0) for table in (X, row))
    brute = BruteForce(model.tree_, white, process, new)
    expected = brute.log_density - np.log(X.std(axis=0)).sum()
    assert model.score_samples(row[None])[0] == pytest.approx(expected, abs=2e-3)
    placed = model.place(row[None])
    assert placed.branch[0] == brute.branches.argmax()
    assert placed.probability[0] == pytest.approx(brute.branches.max(), abs=3e-3)
    assert placed.height[0] == pytest.approx(brute.mean_height, rel=5e-3)
    assert placed.log_density[0] == model.score_samples(row[None])[0]


def test_density_of_partial_rows_with_full_covariance():
    """The density of what a row shows is that of the whole row, with the missing cell integrated out."""
    X = np.random.default_rng(0).normal(size=(6, 2))
    model = ct.CoalescentClustering(covariance="full").fit(X)
    y = np.linspace(-40, 40, 4001)
    whole = np.exp(model.score_samples(np.column_stack([np.full(len(y), 0.3), y])))
    predicted = model.score_samples(np.array([[0.3, np.nan]]))[0]
    assert predicted == pytest.approx(np.log(np.trapezoid(whole, y)), abs=1e-3)


def test_predictions_of_empty_row_equal_prior(model, frame):
    empty = pd.DataFrame({"length": [nan], "weight": [nan], "colour": [None]}, dtype=object)
    assert model.score_samples(empty)[0] == pytest.approx(0.0, abs=1e-9)
    # without data the clusters are about as probable as they are large
    assert model.predict_proba(empty)[0] == pytest.approx([1 / 3] * 3, abs=0.15)


def test_score_is_mean_log_density(model, new_rows):
    assert model.score(new_rows) == np.mean(model.score_samples(new_rows))


def test_constant_columns_do_not_change_predictions(frame, model, new_rows):
    with pytest.warns(InputWarning, match="ignored"):
        other = ct.CoalescentClustering(n_clusters=3, noise=0.1).fit(frame.assign(same=7.0, one="x", none=nan))
    rows = new_rows.assign(same=np.arange(40.0), one="x", none=3.0)
    np.testing.assert_allclose(other.score_samples(rows), model.score_samples(new_rows), rtol=1e-9)
    np.testing.assert_array_equal(other.predict(rows), model.predict(new_rows))


def test_predictions_of_uninformative_table():
    with pytest.warns(InputWarning, match="No column has two different values"):
        model = ct.CoalescentClustering().fit(np.ones((4, 2)))
    assert model.score_samples([[1.0, 5.0]]).tolist() == pytest.approx([0.0])
    assert model.predict([[1.0, 5.0]]).tolist() == [0]


@pytest.mark.parametrize("n", [1, 2])
def test_predictions_from_one_and_two_rows(n):
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 1.0]})[:n]
    model = ct.CoalescentClustering(noise=0.1)
    if n == 1:
        with pytest.warns(InputWarning, match="one row"):
            model.fit(table)
    else:
        model.fit(table)
    new = pd.DataFrame({"a": [1.1, nan], "b": [2.0, 2.0]})
    assert np.all(np.isfinite(model.score_samples(new)))
    np.testing.assert_allclose(model.predict_proba(new).sum(axis=1), 1.0)
    assert set(model.place(new).nearest[0]) == set(model.tree_.leaf_names)


def test_training_like_rows_have_higher_density(model, frame):
    away = pd.DataFrame({"length": [25.0], "weight": [0.012], "colour": ["red"]})
    assert model.score_samples(away)[0] < model.score_samples(frame.dropna()).min()


# -- clusters ----------------------------------------------------------------------------------------------------------


def test_predict_assigns_training_rows_to_their_clusters(model, frame):
    assert model.labels_.tolist() == [0] * 8 + [1] * 8 + [2] * 8
    np.testing.assert_array_equal(model.predict(frame), model.labels_)


def test_predict_proba_returns_probabilities(model, new_rows):
    predicted = model.predict_proba(new_rows)
    assert predicted.shape == (40, 3)
    assert predicted.min() >= 0
    np.testing.assert_allclose(predicted.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(new_rows), predicted.argmax(axis=1))
    between = pd.DataFrame({"length": [25.0], "weight": [nan], "colour": [None]})
    assert model.predict_proba(between)[0, 2] < model.predict_proba(between)[0, :2].min()


# -- places ------------------------------------------------------------------------------------------------------------


def test_placements_have_names_and_heights(model, frame, new_rows):
    placed = model.place(new_rows, n_nearest=4)
    assert len(placed) == 40
    assert placed.row_names == tuple(map(str, range(40)))
    assert model.place(frame[:2]).row_names == ("animal 0", "animal 1")
    tree = model.tree_
    np.testing.assert_array_equal(placed.n_below, [len(tree.leaves_below(node)) for node in placed.branch])
    assert np.all((placed.probability > 0) & (placed.probability <= 1))
    assert np.all((placed.height_low <= placed.height_high) & (placed.height_low > 0))
    assert all(len(set(names)) == 4 and set(names) <= set(frame.index) for names in placed.nearest)
    np.testing.assert_array_equal(placed.log_density, model.score_samples(new_rows))
    # nearest leaves are in the row's own group
    groups = dict(zip(frame.index, model.labels_, strict=True))
    sure = model.predict_proba(new_rows).max(axis=1) > 0.99
    for names, label in zip(np.array(placed.nearest)[sure], model.predict(new_rows)[sure], strict=True):
        assert {groups[name] for name in names} == {label}


def test_equal_training_row_is_nearest_leaf(frame):
    complete = frame[["length", "weight"]].dropna()
    model = ct.CoalescentClustering(noise=1e-6).fit(complete)
    predict_from_one_tree(model)
    placed = model.place(complete, n_nearest=1)
    assert [names[0] for names in placed.nearest] == complete.index.tolist()


def test_interval_width_grows_with_level(model, new_rows):
    narrow, wide = (model.place(new_rows, level=level) for level in (0.5, 0.95))
    assert np.all(wide.height_low <= narrow.height_low)
    assert np.all(wide.height_high >= narrow.height_high)
    assert np.any(wide.height_high > narrow.height_high)


def test_placements_convert_to_frames(model, frame):
    placed = model.place(frame[:3], n_nearest=2)
    table = placed.to_pandas()
    assert table.index.tolist() == ["animal 0", "animal 1", "animal 2"]
    columns = ["branch", "n_below", "probability", "height", "height_low", "height_high", "log_density"]
    clusters = ["cluster", "cluster_probability"]
    assert list(table) == [*columns, "nearest_1", "nearest_1_height", "nearest_2", "nearest_2_height", *clusters]
    np.testing.assert_array_equal(table["cluster"], model.predict(frame[:3]))
    np.testing.assert_array_equal(table["cluster_probability"], model.predict_proba(frame[:3]).max(axis=1))
    np.testing.assert_array_equal(table["height"], placed.height)
    np.testing.assert_array_equal(table["nearest_2_height"], placed.nearest_height[:, 1])
    assert table["nearest_1"].tolist() == [names[0] for names in placed.nearest]
    assert placed.to_polars().equals(pl.from_pandas(table.reset_index(names="row")))
    assert "3 rows" in repr(placed)
    assert "animal 0: branch" in repr(placed)
    assert list(model.place(frame[:3], n_nearest=0).to_pandas()) == [*columns, *clusters]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"n_nearest": -1}, "n_nearest is -1"),
        ({"n_nearest": True}, "n_nearest is True"),
        ({"n_nearest": 1.5}, "n_nearest is 1.5"),
        ({"level": 0.0}, "level is 0.0"),
        ({"level": 1}, "level is 1;"),
        ({"level": "0.9"}, "level is '0.9'"),
    ],
)
def test_invalid_place_arguments_are_rejected(model, frame, settings, sentence):
    with pytest.raises(InputError, match=sentence):
        model.place(frame, **settings)


def test_n_nearest_is_limited_to_leaves(model, frame):
    assert model.place(frame[:1], n_nearest=100).nearest_height.shape == (1, 24)


# -- a sample of trees -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sampled(frame):
    settings = {"inference": "smc", "n_particles": 30, "n_clusters": 3, "noise": 0.1}
    return ct.CoalescentClustering(**settings, random_state=0).fit(frame[["length", "weight"]])


def test_predictions_average_over_all_draws(sampled, frame):
    rows = frame[["length", "weight"]]
    # a row near two clusters may go with the one or with the other
    assert np.mean(sampled.predict(rows) == sampled.labels_) > 0.9
    np.testing.assert_allclose(sampled.predict_proba(rows).sum(axis=1), 1.0)
    white = (rows - rows.mean()) / rows.std(ddof=0)
    new = white[:3].to_numpy() + 0.1
    # the mean of the densities on the single trees, which are not those of the sample
    logs, weights = [], []
    for draw in sampled._model.predictor.ensemble.draws:
        alone = predictor_module.Predictor.from_trees([draw.tree], np.ones(1), white.to_numpy(), draw.process)
        logs.append(alone.log_density(new))
        weights.append(1 / len(sampled._model.predictor.trees))
    expected = np.log(np.array(weights) @ np.exp(logs)) - np.log(rows.std(ddof=0)).sum()
    predicted = sampled.score_samples(rows[:3] + 0.1 * rows.std(ddof=0))
    np.testing.assert_allclose(predicted, expected, atol=1e-3)


def test_placements_refer_to_summary_tree(sampled, frame):
    placed = sampled.place(frame[["length", "weight"]][:5])
    assert np.all(placed.branch < sampled.tree_.n_nodes)
    np.testing.assert_array_equal(placed.n_below, sampled.tree_.leaf_counts[placed.branch])
    assert np.all((placed.probability > 0) & (placed.probability <= 1))
    assert set(placed.nearest[0]) < set(frame.index)


# -- the same answers --------------------------------------------------------------------------------------------------


def answers(model, rows):
    placed = model.place(rows)
    return (
        model.score_samples(rows),
        model.predict_proba(rows),
        placed.probability,
        placed.height,
        placed.nearest_height,
    )


def test_predictions_are_independent_of_threads(model, frame, new_rows):
    twin = ct.CoalescentClustering(n_clusters=3, noise=0.1, n_jobs=2).fit(frame)
    for a, b in zip(answers(model, new_rows), answers(twin, new_rows), strict=True):
        np.testing.assert_array_equal(a, b)


def test_predictions_are_independent_of_other_rows(model, new_rows):
    whole = answers(model, new_rows)
    for some in (np.arange(40)[::-1], np.array([11]), np.array([2, 2, 30])):
        for a, b in zip(answers(model, new_rows.iloc[some].reset_index(drop=True)), whole, strict=True):
            np.testing.assert_allclose(a, b[some], rtol=1e-9)


# -- what is read ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["predict", "predict_proba", "score_samples", "score", "place"])
def test_unfitted_clustering_is_rejected(method, frame):
    with pytest.raises(NotFittedError):
        getattr(ct.CoalescentClustering(), method)(frame)


def test_columns_are_matched_by_name(model, new_rows):
    expected = model.score_samples(new_rows)
    np.testing.assert_array_equal(model.score_samples(new_rows[["colour", "weight", "length"]]), expected)
    np.testing.assert_array_equal(model.score_samples(pl.from_pandas(new_rows)), expected)
    with pytest.warns(InputWarning, match="'tail' did not occur"):
        predicted = model.score_samples(new_rows.assign(tail=1.0))
    np.testing.assert_array_equal(predicted, expected)
    with pytest.raises(InputError, match="lacks the column 'weight'"):
        model.predict(new_rows[["length", "colour"]])


def test_wrong_number_of_columns_is_rejected():
    model = ct.CoalescentClustering().fit(np.random.default_rng(0).normal(size=(6, 3)))
    with refused("X 2 features CoalescentClustering expecting 3"):
        model.predict(np.zeros((2, 2)))


def test_unseen_categories_follow_option(model, new_rows, frame):
    purple = new_rows[:1].assign(colour="purple")
    with pytest.warns(InputWarning, match="purple"):
        predicted = model.score_samples(purple)
    assert predicted[0] == model.score_samples(purple.assign(colour=None))[0]
    strict = ct.CoalescentClustering(unseen_categories="error").fit(frame)
    with pytest.raises(InputError, match="purple"):
        strict.predict(purple)


def test_density_of_independent_row_equals_equilibrium():
    """A new row is nearly independent of all others, so its density is that of the equilibrium."""
    X = np.random.default_rng(2).normal(size=(40, 1))
    model = ct.CoalescentClustering(noise=0.98).fit(X)
    predict_from_one_tree(model)
    x = np.array([[0.5], [2.0]])
    np.testing.assert_allclose(model.score_samples(x), norm.logpdf(x[:, 0], X.mean(), X.std()), atol=0.05)
