"""CoalescentClustering with a greedy tree: attributes, invariance, cuts and edge cases."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.cluster.hierarchy import is_valid_linkage
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import NotFittedError

import coaltree as ct
from coaltree.errors import InputWarning
from named import refused

pytestmark = pytest.mark.usefixtures("short_chains")


@pytest.fixture(scope="module")
def few_replicates():
    """None here: cuts are those of a whole fit."""


def clades(tree, digits=6):
    """The tree as a set of (leaf names, height): what does not depend on the numbering."""
    return {
        (frozenset(tree.leaf_names[i] for i in tree.leaves_below(tree.n_leaves + k)), round(float(h), digits))
        for k, h in enumerate(tree.merge_heights)
    }


@pytest.fixture(scope="module")
def frame():
    """A mixed table with holes, of two groups."""
    rng = np.random.default_rng(3)
    group = np.repeat([0, 1], 15)
    frame = pd.DataFrame(
        {
            "length": rng.normal(3 * group, 0.5),
            "weight": rng.normal(100 - 40 * group, 6),
            "colour": np.where(rng.random(30) < 0.9, np.array(["red", "blue"])[group], "green"),
            "wings": rng.random(30) < 0.2 + 0.6 * group,
            "legs": pd.array(rng.integers(2, 9, 30), dtype="Int64"),
        },
        index=[f"animal {i}" for i in range(30)],
    )
    frame.loc["animal 3", "length"] = np.nan
    frame.loc["animal 8", "colour"] = None
    frame.loc["animal 9", "legs"] = pd.NA
    return frame


# Where noise is not what a test is about: to search for it takes nearly all the time of a fit.
QUICK = {"noise": 0.1}


@pytest.fixture(scope="module")
def model(frame):
    return ct.CoalescentClustering().fit(frame)


@pytest.fixture(scope="module")
def quick(frame):
    return ct.CoalescentClustering(**QUICK).fit(frame)


def test_clustering_fitted_attributes(frame, model):
    n = len(frame)
    assert model.tree_.leaf_names == tuple(frame.index)
    assert model.labels_.shape == (n,)
    assert model.n_clusters_ == len(set(model.labels_.tolist()))
    assert is_valid_linkage(model.linkage_)
    np.testing.assert_array_equal(model.linkage_[:, 2], model.distances_)
    np.testing.assert_array_equal(model.children_, model.tree_.children)
    assert model.distances_.shape == model.log_ratios_.shape == (n - 1,)
    assert np.all(np.diff(model.distances_) >= 0)
    assert isinstance(model.process_, ct.Mixed)
    assert model.log_joint_ == pytest.approx(model.log_likelihood_ + ct.log_prior(model.tree_))
    assert model.n_features_in_ == 5
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert model.remarks_ == []


def test_plain_fit_equals_greedy_on_encoded_table(frame):
    """The documented process, written out by hand."""
    real = frame[["length", "weight", "legs"]].astype(float)
    real = (real - real.mean()) / real.std(ddof=0)
    codes = frame[["colour"]].apply(lambda column: pd.Categorical(column).codes).astype(float).replace(-1, np.nan)
    X = np.column_stack([real, codes, frame["wings"].astype(float)])
    equilibria = []
    for column in X[:, 3:].T:
        counts = np.bincount(column[~np.isnan(column)].astype(int)) + 1
        equilibria.append(counts / counts.sum())
    process = ct.Mixed((ct.OrnsteinUhlenbeck(0.5), [0, 1, 2]), (ct.Multinomial(1.0, equilibria), [3, 4]))
    expected = ct.greedy(X, process)
    model = ct.CoalescentClustering(noise=0).fit(frame)
    np.testing.assert_array_equal(model.children_, expected.tree.children)
    np.testing.assert_allclose(model.distances_, expected.tree.merge_heights, rtol=1e-9)
    assert model.log_joint_ == pytest.approx(expected.log_joint)


def test_clustering_agrees_for_pandas_polars_and_arrays(frame, quick):
    numbers = frame[["length", "weight"]]
    from_pandas = ct.CoalescentClustering(**QUICK).fit(numbers)
    for other in (pl.from_pandas(numbers), numbers.to_numpy(), numbers.to_numpy().tolist()):
        again = ct.CoalescentClustering(**QUICK).fit(other)
        np.testing.assert_array_equal(again.children_, from_pandas.children_)
        np.testing.assert_array_equal(again.distances_, from_pandas.distances_)
    whole = ct.CoalescentClustering(**QUICK).fit(pl.from_pandas(frame))
    np.testing.assert_array_equal(whole.children_, quick.children_)


@pytest.mark.parametrize("how", [[2, 3], ["colour", "wings"], [False, False, True, True, False]])
def test_categorical_features_match_scikit_learn(frame, quick, how):
    model = ct.CoalescentClustering(categorical_features=how, **QUICK).fit(frame)
    np.testing.assert_array_equal(model.distances_, quick.distances_)
    numeric = ct.CoalescentClustering(categorical_features=["legs", *frame.columns[2:4]], **QUICK).fit(frame)
    assert not np.array_equal(numeric.distances_, quick.distances_)


@pytest.fixture(scope="module")
def base(model):
    return clades(model.tree_)


class TestInvariance:
    def test_tree_is_invariant_to_row_order(self, frame, base):
        shuffled = frame.sample(frac=1, random_state=1)
        assert clades(ct.CoalescentClustering().fit(shuffled).tree_) == base

    def test_tree_is_invariant_to_column_order(self, frame, base):
        assert clades(ct.CoalescentClustering().fit(frame[frame.columns[::-1]]).tree_) == base

    @pytest.mark.parametrize(("scale", "shift"), [(-1e-3, 5.0), (1e200, 0.0), (1e-200, 0.0)])
    def test_tree_is_invariant_to_units(self, frame, base, scale, shift):
        other = frame.assign(weight=scale * frame["weight"] + shift)
        assert clades(ct.CoalescentClustering().fit(other).tree_) == base

    def test_tree_is_invariant_to_category_names(self, frame, quick):
        names = {"red": "zzz", "blue": "it's", "green": "0"}
        other = ct.CoalescentClustering(**QUICK).fit(frame.assign(colour=frame["colour"].map(names)))
        assert clades(other.tree_) == clades(quick.tree_)

    def test_uninformative_columns_are_ignored(self, frame, quick):
        with pytest.warns(InputWarning, match="ignored"):
            other = ct.CoalescentClustering(**QUICK).fit(frame.assign(nothing=np.nan, one="x", same=7.0))
        assert clades(other.tree_) == clades(quick.tree_)
        assert any("'one'" in remark and "'same'" in remark for remark in other.remarks_)
        assert any("'nothing'" in remark for remark in other.remarks_)

    def test_clusters_are_invariant_to_units(self, frame, quick):
        other = ct.CoalescentClustering(**QUICK).fit_predict(frame.assign(length=1e6 * frame["length"] - 3))
        assert quick.labels_.tolist() == other.tolist()


def test_fit_applies_cut_parameters(frame):
    three = ct.CoalescentClustering(n_clusters=3, **QUICK).fit(frame)
    assert three.n_clusters_ == 3
    height = three.distances_[-3]
    by_height = ct.CoalescentClustering(height_threshold=height, **QUICK).fit(frame)
    assert by_height.labels_.tolist() == three.labels_.tolist()
    assert ct.CoalescentClustering(n_clusters=2, **QUICK).fit_predict(frame).tolist() == [0] * 15 + [1] * 15


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"inference": "magic"}, "inference magic greedy"),
        ({"rule": "best"}, "rule best rate1 max-prob min-duration"),
        ({"search": "none"}, "search none"),
        ({"n_clusters": 0}, "n_clusters 0 1"),
        ({"n_clusters": 31}, "n_clusters 31 1 30"),
        ({"n_clusters": 2.5}, "n_clusters 2.5"),
        ({"height_threshold": -1.0}, "height_threshold -1.0"),
        ({"n_clusters": 2, "height_threshold": 1.0}, "n_clusters height_threshold one"),
        ({"noise": -1.0}, "noise -1.0"),
        ({"draw_parameters": True}, "draw_parameters inference greedy mcmc"),
        ({"draw_parameters": 1}, "draw_parameters 1 True False"),
        ({"real_process": "levy"}, "real_process levy brownian ornstein-uhlenbeck"),
        ({"covariance": "tied"}, "covariance tied"),
        ({"unseen_categories": "ignore"}, "unseen_categories ignore missing error"),
    ],
)
def test_invalid_parameters_are_rejected(frame, parameters, sentence):
    with refused(sentence):
        ct.CoalescentClustering(**parameters).fit(frame)


@pytest.mark.parametrize("n", [1, 2])
def test_clustering_accepts_one_and_two_rows(n):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})[:n]
    if n == 1:
        with pytest.warns(InputWarning, match="one row"):
            model = ct.CoalescentClustering().fit(frame)
    else:
        model = ct.CoalescentClustering().fit(frame)
    assert model.labels_.shape == (n,)
    assert model.tree_.n_leaves == n


def test_identical_rows_share_cluster():
    X = np.repeat([[0.0], [5.0]], 10, axis=0)
    with pytest.warns(InputWarning, match="18 merge.* identical .* noise"):
        model = ct.CoalescentClustering(n_clusters=2, noise=0.0).fit(X)
    assert model.labels_.tolist() == [0] * 10 + [1] * 10
    assert np.isfinite(model.log_joint_)
    for noisy in (ct.CoalescentClustering(n_clusters=2, noise=0.01), ct.CoalescentClustering(n_clusters=2)):
        assert noisy.fit(X).remarks_ == []
        assert noisy.labels_.tolist() == model.labels_.tolist()


def test_uninformative_table_warns():
    with pytest.warns(InputWarning, match="No column has two different values"):
        model = ct.CoalescentClustering().fit(np.ones((4, 2)))
    assert model.labels_.tolist() == [0, 0, 0, 0]
    assert model.distances_.tolist() == [0.0, 0.0, 0.0]


def test_empty_rows_are_accepted():
    X = np.random.default_rng(0).normal(size=(8, 2))
    X[3] = np.nan
    with pytest.warns(InputWarning, match="arbitrary"):
        model = ct.CoalescentClustering().fit(X)
    assert np.isfinite(model.log_joint_)


def test_missing_value_markers_are_equivalent():
    expected = (
        ct.CoalescentClustering().fit(np.array([[1.0, 2.0], [np.nan, 2.5], [4.0, np.nan], [4.1, 9.0]])).distances_
    )
    spellings = [
        [[1.0, 2.0], [None, 2.5], [4.0, None], [4.1, 9.0]],
        np.array([[1.0, 2.0], [None, 2.5], [4.0, np.nan], [4.1, 9.0]], dtype=object),
        pd.DataFrame({"a": [1.0, None, 4.0, 4.1], "b": pd.array([2.0, 2.5, None, 9.0], dtype="Float64")}),
        pl.DataFrame({"a": [1.0, None, 4.0, 4.1], "b": [2.0, 2.5, float("nan"), 9.0]}),
    ]
    for X in spellings:
        np.testing.assert_array_equal(ct.CoalescentClustering().fit(X).distances_, expected)


@pytest.mark.parametrize(("load", "least"), [(load_iris, 0.75), (load_wine, 0.75)])
def test_clustering_recovers_classes_of_published_tables(load, least):
    """Classical tables with a tenth of the cells missing: purity is far above a third, the level of chance."""
    X, y = load(return_X_y=True)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = ct.CoalescentClustering(n_clusters=3).fit(X)
    assert ct.metrics.dendrogram_purity(model.tree_, y) > least


def test_clone_and_threads_give_equal_trees(frame):
    model = ct.CoalescentClustering(rule="min-duration", n_clusters=4, noise=0.2, real_process="brownian")
    twin = clone(model).set_params(n_jobs=2)
    assert model.fit(frame).tree_ == twin.fit(frame).tree_


def test_verbose_shows_progress(frame, capsys):
    ct.CoalescentClustering(verbose=1, **QUICK).fit(frame)
    assert "100 %" in capsys.readouterr().err


# -- other cuts of the fitted tree -----------------------------------------------------------------


@pytest.mark.parametrize("parameters", [{}, {"n_clusters": 4}, {"n_clusters": 30}, {"height_threshold": 0.7}])
def test_cut_equals_refit(frame, parameters, tmp_path):
    model = ct.CoalescentClustering(n_clusters=2).fit(frame)
    before = model.labels_.copy()
    expected = ct.CoalescentClustering(**parameters).fit(frame).labels_.tolist()
    assert model.cut(**parameters).tolist() == expected
    assert model.labels_.tolist() == before.tolist()
    model.save(tmp_path / "m")
    assert ct.load_model(tmp_path / "m").cut(**parameters).tolist() == expected


def test_invalid_cuts_are_rejected(frame):
    model = ct.CoalescentClustering()
    with pytest.raises(NotFittedError):
        model.cut(n_clusters=2)
    model.fit(frame)
    with refused("n_clusters height_threshold"):
        model.cut(n_clusters=2, height_threshold=1.0)
    with refused("n_clusters 31 1 30"):
        model.cut(n_clusters=31)
    with refused("height_threshold nan 0"):
        model.cut(height_threshold=float("nan"))


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_cut_of_one_row():
    model = ct.CoalescentClustering().fit([[1.0]])
    for parameters in ({}, {"n_clusters": 1}, {"height_threshold": 0.0}):
        assert model.cut(**parameters).tolist() == [0]


def test_log_joint_matches_tree(frame):
    model = ct.CoalescentClustering().fit(frame)
    X = np.asarray(model._model.predictor.X)
    assert model.log_joint_ == pytest.approx(ct.log_joint(model.tree_, X, model.process_))
