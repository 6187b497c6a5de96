"""Flat clusters of the default cut: their size, outliers, and warnings about columns and rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import coaltree as ct
from coaltree.errors import InputError, InputWarning
from coaltree.inference.flat_clusters import flat_clusters, min_cluster_rows
from coaltree.tree.cut import (
    cut_by_height,
    cut_with_min_size,
    label_leaves,
    number_clusters,
    resolution_to_height,
)
from coaltree.workflow.processes import RATE


@pytest.fixture(scope="module")
def few_replicates():
    """None here: how good clusters are depends on the replicates."""


def blobs(n=120, centres=3, columns=4, seed=0):
    rng = np.random.default_rng(seed)
    classes = np.arange(n) % centres
    return 6 * rng.normal(size=(centres, columns))[classes] + rng.normal(size=(n, columns)), classes


def by_walking(tree, min_size, n_clusters=None, height=None):
    """Return the clusters by the definition: undo the highest splits one by one, and look which nodes are left whole."""
    n = tree.n_leaves
    below = {node: [node] for node in range(n)}
    for node, (i, j) in enumerate(tree.children.tolist(), start=n):
        below[node] = below[i] + below[j]
    splits = [
        node
        for node in range(2 * n - 2, n - 1, -1)
        if min(len(below[child]) for child in tree.children[node - n].tolist()) >= min_size
        and (height is None or tree.heights[node] > height)
    ]
    undone = splits if n_clusters is None else splits[: n_clusters - 1]
    whole = [
        child
        for node in undone
        for child in tree.children[node - n].tolist()
        if not any(set(below[other]) <= set(below[child]) for other in undone)
    ]
    return sorted(whole) if undone else [2 * n - 2]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(1, 6), st.integers(0, 10_000))
def test_cut_with_min_size_matches_definition(n, min_size, seed):
    tree = ct.simulate_tree(n, seed)
    for height in (0.0, 0.2, 0.5, 1.0, np.inf):
        assert cut_with_min_size(tree, min_size, height=height) == by_walking(tree, min_size, height=height)
    for k in range(1, len(by_walking(tree, min_size)) + 1):
        assert cut_with_min_size(tree, min_size, n_clusters=k) == by_walking(tree, min_size, n_clusters=k)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 30), st.integers(0, 10_000))
def test_cut_without_min_size_equals_plain_cut(n, seed):
    tree = ct.simulate_tree(n, seed)
    for height in (0.1, 0.7):
        actual = number_clusters(label_leaves(tree, cut_with_min_size(tree, 1, height=height)))
        np.testing.assert_array_equal(actual, cut_by_height(tree, height))


def test_number_clusters_numbers_by_first_row():
    tree = ct.Tree([[0, 2], [1, 3]], [0.0, 0.0, 0.0, 0.5, 1.0])
    assert sorted(tree.leaves_below(3).tolist()) == [0, 2]
    assert number_clusters(np.array([5, -1, 2, 5, 2])).tolist() == [0, -1, 1, 0, 1]


def test_min_cluster_rows_allows_number_of_clusters():
    assert min_cluster_rows(0.02, 1000) == 20
    assert min_cluster_rows(0.02, 20) == 2
    assert min_cluster_rows(0.02, 3, 3) == 1
    assert min_cluster_rows(7, 1000) == 7
    assert min_cluster_rows(0.0, 1000) == 1


def test_default_clusters_have_two_rows_or_more():
    assert min_cluster_rows(0.02, 3) == min_cluster_rows(0.02, 2) == 2
    for X in ([[0.0], [0.1], [9.0]], [[0.0], [9.0]]):
        assert set(ct.CoalescentClustering().fit(X).labels_) == {0}
    assert ct.CoalescentClustering(n_clusters=2).fit([[0.0], [0.1], [9.0]]).labels_.tolist() == [0, 0, 1]


def test_cut_rules_exclude_each_other():
    model = ct.CoalescentClustering(resolution=0.3).fit(blobs()[0])
    assert model.cut(n_clusters=3).max() == 2  # instead of the resolution of the fit
    for ways in ({"resolution": 0.3}, {"height_threshold": 1.0}):
        with pytest.raises(InputError, match=f"{next(iter(ways))}.*exclude"):
            model.cut(n_clusters=3, **ways)
        with pytest.raises(InputError, match="exclude each other"):
            ct.CoalescentClustering(n_clusters=3, **ways).fit(blobs()[0])
    with pytest.raises(InputError, match="resolution and n_clusters and height_threshold exclude"):
        model.cut(n_clusters=3, resolution=0.3, height_threshold=1.0)


@pytest.mark.parametrize("columns", [1, 2, 3, 5])
def test_noise_is_one_cluster(columns):
    """Of six tables of each width none was cut when this was written; where one in twelve is, three are in 1 of 105 trials."""
    counts = [
        ct.CoalescentClustering().fit(np.random.default_rng(seed).normal(size=(200, columns))).n_clusters_
        for seed in range(100, 106)
    ]
    assert sum(count > 1 for count in counts) <= 2


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_default_cut_states_reason():
    X, _ = make_blobs(300, centers=2, n_features=2, random_state=0)
    assert ct.CoalescentClustering().fit(X)._model.clusters_chosen_by == "evidence"
    assert ct.CoalescentClustering().fit(X[:1])._model.clusters_chosen_by == "one row"
    assert ct.CoalescentClustering(resolution=0.3).fit(X)._model.clusters_chosen_by == "resolution"


@pytest.mark.parametrize(("n_clusters", "n_columns", "seed"), [(2, 2, 0), (3, 2, 2), (5, 3, 3), (5, 5, 1), (8, 10, 2)])
def test_blobs_of_scikit_learn_are_found(n_clusters, n_columns, seed):
    X, classes = make_blobs(300, centers=n_clusters, n_features=n_columns, random_state=seed)
    model = ct.CoalescentClustering().fit(X)
    assert model.n_clusters_ == n_clusters
    assert adjusted_rand_score(classes, model.labels_) > 0.7


@pytest.mark.parametrize("seed", range(3))
def test_crisp_blobs_in_two_columns_are_found(seed):
    """Five blobs whose centres are at least 30 standard deviations apart."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0, 0], [4, 0], [9, 1], [9, 6], [4, 9]])
    classes = np.arange(200) % 5
    X = centres[classes] + 0.13 * rng.normal(size=(200, 2))
    model = ct.CoalescentClustering().fit(X)
    assert model.n_clusters_ == 5
    assert adjusted_rand_score(classes, model.labels_) > 0.95


@pytest.mark.parametrize(("n_rows", "n_columns"), [(200, 5), (50, 5), (200, 3), (200, 8)])
def test_combinations_of_random_categories_are_no_clusters(n_rows, n_columns):
    """Every combination of a few yes/no columns is a group of equal rows. Of four tables of each kind none was cut."""
    for seed in range(2):
        X = np.random.default_rng(100 + seed).integers(0, 2, size=(n_rows, n_columns)).astype(bool)
        assert ct.CoalescentClustering().fit(X).n_clusters_ == 1


@pytest.mark.parametrize("seed", range(3))
def test_groups_of_yes_and_no_are_found(seed):
    rng = np.random.default_rng(seed)
    classes = np.arange(300) % 3
    X = np.column_stack([rng.random(300) < np.where(classes == column % 3, 0.95, 0.05) for column in range(6)])
    model = ct.CoalescentClustering().fit(X)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(classes, model.labels_) > 0.85


def test_outlier_joins_cluster_of_highest_density():
    """The cluster's share times the density of the row given the cluster, worked out by the normal distribution."""
    # two clusters whose lineages stand at height h, and a row that is left over
    X = np.array([[-2.0], [-1.8], [1.5], [1.7], [1.6], [0.4]])
    tree = ct.Tree([[0, 1], [2, 3], [4, 7], [6, 8], [5, 9]], [0.0] * 6 + [0.1, 0.1, 0.2, 1.0, 2.0])
    process = ct.Brownian(1.0, noise=0.3)
    labels = flat_clusters(tree, X, process.resolve(X), np.array([6, 8]))

    def density(mean, variance, size):  # both lineages climb to height 0.2, where the higher cluster stands
        return size * norm.pdf(0.4, mean, np.sqrt(variance + 0.3 + 0.2))

    low = density(-1.9, 0.4 / 2 + 0.1, 2)
    pair = 0.4 / 2 + 0.1  # of two leaves at height 0.2, and the third
    weight = (1 / pair) / (1 / pair + 1 / 0.5)
    high = density(weight * 1.6 + (1 - weight) * 1.6, 1 / (1 / pair + 1 / 0.5), 3)
    assert labels.tolist() == [0, 0, 1, 1, 1, int(high > low)]
    outliers = np.arange(6) == 5
    assert flat_clusters(tree, X, process.resolve(X), np.array([6, 8]), outliers).tolist() == [0, 0, 1, 1, 1, -1]


def test_higher_resolution_splits_clusters():
    X, classes = blobs(200, 6)
    model = ct.CoalescentClustering().fit(X)
    finest = None
    for resolution in (1.0, 0.8, 0.5, 0.3, 0.2, 0.1, 0.0):
        labels = model.cut(resolution=resolution, min_cluster_size=1)
        if finest is not None:  # every cluster is a part of one of the next
            assert all(len(set(labels[finest == k])) == 1 for k in range(finest.max() + 1))
        finest = labels
    assert set(finest) == {0}
    np.testing.assert_array_equal(model.cut(), model.labels_)
    np.testing.assert_array_equal(
        model.cut(height_threshold=resolution_to_height(0.3, RATE)), model.cut(resolution=0.3)
    )
    assert adjusted_rand_score(classes, model.labels_) > 0.9


@pytest.mark.usefixtures("short_chains")
def test_many_clear_clusters_are_found():
    rng = np.random.default_rng(0)
    X = np.repeat(20 * rng.normal(size=(20, 10)), 20, axis=0) + rng.normal(size=(400, 10))
    model = ct.CoalescentClustering().fit(X)
    assert adjusted_rand_score(np.repeat(np.arange(20), 20), model.labels_) == 1


@pytest.mark.parametrize("seed", range(3))
def test_noise_within_clusters_is_not_cut(seed):
    """Fifty columns of noise put all splits above the default height of the cut."""
    rng = np.random.default_rng(seed)
    classes = np.repeat([0, 1], 100)
    X = rng.normal(size=(200, 52))
    X[classes == 1, :2] += 5
    model = ct.CoalescentClustering().fit(X)
    assert model.n_clusters_ == 2
    assert adjusted_rand_score(classes, model.labels_) > 0.8


def test_n_clusters_counts_clusters_without_outliers():
    X, classes = blobs()
    X[:2] += 20 * np.array([[1, -1, 1, -1], [-1, 1, -1, 1]])  # two rows far from all others and from each other
    model = ct.CoalescentClustering(n_clusters=3).fit(X)
    assert np.bincount(model.labels_).min() >= 0.02 * len(X)
    assert adjusted_rand_score(classes[2:], model.labels_[2:]) > 0.9
    alone = ct.CoalescentClustering(n_clusters=3, assign_outliers=False).fit(X)
    assert set(np.flatnonzero(alone.labels_ < 0)) <= {0, 1}
    assert (alone.labels_ < 0).any()
    assert alone.n_clusters_ == 3
    probabilities = alone.predict_proba(X[4:8])
    assert probabilities.shape == (4, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


def test_default_merge_heights_are_distinct():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=80).round(1), "y": rng.normal(size=80), "z": rng.choice(list("ab"), 80)})
    X.iloc[::7, 1] = np.nan
    model = ct.CoalescentClustering().fit(X)
    assert np.all(np.diff(model.distances_) > 0)
    assert model.distances_[0] > 0
    assert model.log_joint_ == pytest.approx(ct.log_joint(model.tree_, model._model.matrix, model.process_))


@pytest.mark.usefixtures("short_chains")
def test_cluster_and_prediction_parameters_are_separate():
    X, _ = blobs(60)
    model = ct.CoalescentClustering().fit(X)
    assert {parameters["rate"] for parameters in model.parameters_.values()} == {0.5}
    assert all(parameters["noise_sd"] == pytest.approx(parameters["sd"]) for parameters in model.parameters_.values())
    before = model.labels_.copy(), model.tree_
    scores = model.score_samples(X)
    assert model.prediction_parameters_["x0"] != model.parameters_["x0"]
    np.testing.assert_array_equal(model.labels_, before[0])
    assert model.tree_ is before[1]
    np.testing.assert_array_equal(ct.CoalescentClustering().fit(X).score_samples(X), scores)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("resolution", -0.1), ("resolution", 1.5), ("resolution", "fine"), ("resolution", True),
        ("min_cluster_size", -1), ("min_cluster_size", 2.5), ("min_cluster_size", "two"), ("min_cluster_size", True),
        ("assign_outliers", "no"), ("noise", 1.0),
    ],
)  # fmt: skip
def test_invalid_cluster_parameters_are_rejected(name, value):
    with pytest.raises(InputError, match=f"{name} is {value!r}"):
        ct.CoalescentClustering(**{name: value}).fit([[0.0], [1.0], [2.0]])


# -- tables that are not sensible: clusters and warnings are --------------------------------------------------------------


def fit_and_check_warnings(X, *parts, **parameters):
    """Fit, and check that there is one warning, which has all parts in it; none without any."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = ct.CoalescentClustering(**parameters).fit(X)
    sentences = [str(warning.message) for warning in caught]
    assert len(sentences) == bool(parts), sentences
    assert all(part in sentences[0] for part in parts), sentences
    assert model.remarks_ == sentences
    return model


def test_constant_column_does_not_change_clusters():
    X, _ = blobs()
    with_constant = fit_and_check_warnings(
        np.column_stack([X, np.full(len(X), 7.0)]), "1 column is constant and ignored: 'x4'"
    )
    np.testing.assert_array_equal(with_constant.labels_, fit_and_check_warnings(X).labels_)


def test_binary_column_contributes_to_clusters():
    X, classes = blobs()
    model = fit_and_check_warnings(np.column_stack([X, classes == 0]))
    assert adjusted_rand_score(classes, model.labels_) > 0.9


def test_rare_binary_column_is_not_tail():
    X, classes = blobs()
    model = fit_and_check_warnings(np.column_stack([X, np.arange(len(X)) == 5]), "depends on no other column", "'x4'")
    assert adjusted_rand_score(classes, model.labels_) > 0.9


@pytest.mark.parametrize("distance", [1e2, 1e4, 1e6])
def test_outlier_in_one_column_is_reported_without_effect(distance):
    X, classes = blobs()
    without = ct.CoalescentClustering().fit(X[1:]).labels_
    X[0, 0] = distance * X[:, 0].std()
    parts = "extreme in column 'x0'", "in row 0 (counted from 0)", "nearer to the others", 'standardize="power"'
    model = fit_and_check_warnings(X, *parts, assign_outliers=False)
    assert model.labels_[0] == -1
    assert adjusted_rand_score(without, model.labels_[1:]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        assigned = ct.CoalescentClustering().fit(X)
        drawn_in = ct.CoalescentClustering(standardize="power").fit(X)
    assert "far from all others: '0'" in assigned.remarks_[-1]
    assert adjusted_rand_score(classes, assigned.labels_) > 0.95
    assert adjusted_rand_score(classes[1:], drawn_in.labels_[1:]) > 0.9


def test_row_in_tail_is_reported():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    X[:, 2] = rng.lognormal(size=200)
    X[[5, 60], 2] = 150.0, 170.0  # together they have less of the variance than a lone cell would
    table = pd.DataFrame(X, columns=list("abcd"), index=[f"r{i}" for i in range(200)])
    parts = "Cells are extreme in column 'c'", "170 in row 60 ('r60')", "150 in row 5 ('r5')"
    model = fit_and_check_warnings(table, *parts, "nearer to the others", assign_outliers=False)
    assert np.flatnonzero(model.labels_ < 0).tolist() == [5, 60]
    fit_and_check_warnings(table, standardize="power")
    table.iloc[[5, 60], 2] = np.nan
    assert "r60" not in " ".join(ct.CoalescentClustering(min_cluster_size=1).fit(table).remarks_)


def test_noise_has_no_stray_rows():
    """Of 10 tables of normal noise, which is 8 standard deviations out once in 10^15 cells."""
    for seed in range(10):
        fit_and_check_warnings(np.random.default_rng(seed).normal(size=(120, 4)))


def test_noise_columns_do_not_hide_clusters():
    """Two columns separate three clusters by 12 deviations; fifty others are noise."""
    rng = np.random.default_rng(1)
    classes = np.arange(150) % 3
    X = np.column_stack(
        [rng.normal(size=(150, 2)) + 12 * np.array([[0, 0], [1, 0], [0, 1]])[classes], rng.normal(size=(150, 50))]
    )
    known = fit_and_check_warnings(X, n_clusters=3)
    assert adjusted_rand_score(classes, known.labels_) > 0.8
    assert np.bincount(known.labels_).min() >= 3


def test_duplicated_columns_are_reported_and_change_little():
    X, classes = blobs()
    model = fit_and_check_warnings(
        np.hstack([X, X[:, :2]]), "2 columns are copies of others", "'x4' of 'x0'; 'x5' of 'x1'"
    )
    assert adjusted_rand_score(classes, model.labels_) > 0.9
    scaled = fit_and_check_warnings(
        np.column_stack([X, 100 - 1e3 * X[:, 0]]), "1 column is a copy of another", "'x4' of 'x0'"
    )
    assert adjusted_rand_score(classes, scaled.labels_) > 0.9


def test_equal_rows_are_one_cluster():
    model = fit_and_check_warnings(np.tile([1.0, 2.0], (10, 1)), "No column has two different values")
    assert model.labels_.tolist() == [0] * 10
    groups = fit_and_check_warnings(np.repeat(np.random.default_rng(0).normal(size=(3, 4)), 10, axis=0))
    assert groups.labels_.tolist() == [0] * 10 + [1] * 10 + [2] * 10


def test_constant_categories_are_one_cluster():
    model = fit_and_check_warnings(pd.DataFrame({"a": ["x"] * 5, "b": ["y"] * 5}), "No column has two different values")
    assert model.labels_.tolist() == [0] * 5


def test_clusters_of_one_and_two_rows():
    one = fit_and_check_warnings([[1.0, 2.0]], "The table has one row")
    assert one.labels_.tolist() == [0]
    two = fit_and_check_warnings([[0.0], [1.0]])
    assert two.n_clusters_ in (1, 2)
    assert fit_and_check_warnings([[0.0], [1.0]], n_clusters=2).labels_.tolist() == [0, 1]


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
@pytest.mark.parametrize("groups", [1, 2, 3])
def test_distant_row_is_outlier(groups):
    """The other rows have the same clusters as without it; one of them may be far from its own, too."""
    rng = np.random.default_rng(groups)
    X = np.vstack([*(rng.normal(size=(50, 4)) + 6 * k for k in range(groups)), np.full((1, 4), 1e4)])
    model = ct.CoalescentClustering(assign_outliers=False).fit(X)
    assert model.labels_[-1] == -1
    assert np.sum(model.labels_ < 0) <= 2
    assert model.cut(assign_outliers=True)[:-1].tolist() == np.repeat(np.arange(groups), 50).tolist()
    assert model.cut(n_clusters=1)[-1] == -1
    assert set(model.cut(assign_outliers=True, height_threshold=float("inf"))) == {0}  # as asked for


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_rows_of_one_cluster_are_not_outliers():
    X = np.random.default_rng(0).normal(size=(200, 10))
    model = ct.CoalescentClustering(assign_outliers=False).fit(X)
    assert model.n_clusters_ == 1
    assert np.mean(model.labels_ < 0) < 0.05


@pytest.mark.parametrize("size", [31, 0.6, 5000])
def test_minimum_size_that_only_one_cluster_has_is_the_reason(size):
    X, _ = blobs(60)
    assert ct.CoalescentClustering().fit(X).n_clusters_ > 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = ct.CoalescentClustering(min_cluster_size=size).fit(X)
    assert model.n_clusters_ == 1
    assert model._model.cut_words == "because no two of the given minimum size fit"
    expected = "min_cluster_size=5000 is more than the 60 rows of the table"
    assert [expected in str(warning.message) for warning in caught] == [True] * (size == 5000)


def test_clusters_below_min_size_warn():
    X, _ = blobs(60)
    with pytest.warns(ct.errors.InputWarning, match=r"of 20 clusters.*fewer than 10 rows.*min_cluster_size=10"):
        model = ct.CoalescentClustering(n_clusters=20, min_cluster_size=10).fit(X)
    assert model.n_clusters_ == 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.cut(min_cluster_size=10)


@pytest.mark.usefixtures("short_chains")
@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_cluster_probabilities_are_at_most_one():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(60, 2)), np.full((1, 2), 1e4)])
    for assign in (True, False):
        model = ct.CoalescentClustering(assign_outliers=assign).fit(X)
        probabilities = model.predict_proba(np.vstack([X, X + 0.1]))
        assert probabilities.min() >= 0
        assert probabilities.max() <= 1
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        assert model.place(X).cluster_probability.max() <= 1


@pytest.mark.parametrize("n_far", [1, 2])
def test_few_distant_rows_are_reported(n_far):
    """Distant in all five columns, so that no single column is the reason. Four such rows are a cluster of their own."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    X[:n_far] += 20
    with pytest.warns(InputWarning, match="far from all others") as caught:
        model = ct.CoalescentClustering().fit(X)
    assert [str(warning.message) for warning in caught] == model.remarks_
    assert len(model.remarks_) == 1
    assert all(f"'{row}'" in model.remarks_[0] for row in range(n_far))
    assert f"'{n_far}'" not in model.remarks_[0]
    labels = model.cut(assign_outliers=False)
    np.testing.assert_array_equal(np.flatnonzero(labels < 0), np.arange(n_far))


def test_noise_has_no_distant_rows():
    for seed in range(5):
        assert ct.CoalescentClustering().fit(np.random.default_rng(seed).standard_normal((60, 4))).remarks_ == []


@pytest.mark.parametrize("distance", [40.0, 1e3, 1e6])
@pytest.mark.parametrize("signs", [[1, -1], [1, -1, 0.1], [1, 3]])
def test_scattered_outliers_are_not_a_cluster(distance, signs):
    """Two rows of 92 are above the minimum size. Three clear clusters stay, whatever the distance."""
    rng = np.random.default_rng(5)
    classes = np.repeat([0, 1, 2], 30)
    X = np.array([[6, 0, 0, 0], [0, 6, 0, 6], [0, 0, 6, -6]])[classes] + rng.normal(size=(90, 4))
    X = np.vstack([X, distance * np.outer(signs, [1, 1, -1, -1])])
    if len(signs) == 3:
        X[92] = -distance, 0, 0, 0  # in one column only
    with pytest.warns(InputWarning) as caught:
        model = ct.CoalescentClustering().fit(X)
    assert adjusted_rand_score(classes, model.labels_[:90]) == 1
    assert model.n_clusters_ == 3
    messages = " ".join(str(warning.message) for warning in caught)
    assert all(f"'{row}'" in messages or f"row {row} (" in messages for row in range(90, len(X)))
    labels = model.cut(assign_outliers=False)
    assert labels.tolist() == [*model.labels_[:90].tolist(), *[-1] * len(signs)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        assert model.cut(n_clusters=3).tolist()[:90] == model.labels_.tolist()[:90]


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_small_group_beside_large_clusters_is_reported():
    X, classes = blobs(300)
    X = np.vstack([X, X.mean(axis=0) + [20, 20, -20, 20] + np.random.default_rng(1).normal(size=(4, 4))])
    model = ct.CoalescentClustering().fit(X)
    assert sum(all(f"'{row}'" in remark for row in range(300, 304)) for remark in model.remarks_) == 1
    assert adjusted_rand_score(classes, model.labels_[:300]) > 0.95
    labels = model.cut(assign_outliers=False)  # a cluster has at least seven rows
    assert (labels[300:] == -1).all()
    assert np.sum(labels[:300] < 0) <= 2  # that few may be far from their cluster, too
    assert labels.max() == model.n_clusters_ - 1
    assert model.cut(min_cluster_size=4).max() == model.n_clusters_


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_blobs_have_no_outliers():
    """In 40 such tables, with 4,800 rows, no row was one when the rule was made; two are no alarm."""
    actual = 0
    for seed in range(8):
        X, _ = blobs(90, 2 + seed % 4, seed=seed)
        model = ct.CoalescentClustering(assign_outliers=False).fit(X)
        actual += int(np.sum(model.labels_ < 0)) if model.n_clusters_ > 1 else 0
    assert actual <= 2


@pytest.mark.usefixtures("short_chains")
@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_distant_new_rows_are_outliers():
    X, _ = blobs(90)
    table = np.vstack([X[:80], X.mean(axis=0) + 200])
    far = X.mean(axis=0) + 150 * np.array([[1, 1, 1, 1], [-1, 1, -1, 1], [1, 0, 0, 0]])
    model = ct.CoalescentClustering(assign_outliers=False).fit(table)
    assert model.labels_[80] == -1
    assert model.predict(far).tolist() == [-1, -1, -1]
    assert model.predict(table[80:]).tolist() == [-1]
    assert model.predict(X[80:]).min() >= 0
    np.testing.assert_allclose(model.predict_proba(far).sum(axis=1), 1.0)
    rows = np.vstack([far, X[80:]])
    places = model.place(rows)
    np.testing.assert_array_equal(places.cluster, model.predict(rows))
    assert places.cluster_probability[:3].min() > 0.5
    np.testing.assert_array_equal(places.cluster_probability[3:], model.predict_proba(X[80:]).max(axis=1))
    assigned = ct.CoalescentClustering().fit(table)
    assert assigned.predict(far).min() >= 0
    assert assigned.place(far).cluster.min() >= 0


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_outlier_in_tree_sample_is_reported():
    X, _ = blobs(60)
    X = np.vstack([X, X.mean(axis=0) + 300])
    model = ct.CoalescentClustering(inference="mcmc", n_chains=2, n_samples=40, random_state=0).fit(X)
    assert sum("far from all others: '60'" in remark for remark in model.remarks_) == 1
    assert np.flatnonzero(model.cut(assign_outliers=False) < 0).tolist() == [60]
