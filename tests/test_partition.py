"""The partition of greatest evidence: scores, best partitions and their probabilities, by enumeration and by other libraries."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import coaltree as ct
from coaltree.errors import InputWarning
from coaltree.inference import partition as partitions
from coaltree.inference.kernels.partitions import log_determinants
from coaltree.inference.partition import (
    Evidence,
    best_partition,
    cluster_points,
    find_apart,
    node_evidence,
    partition_into,
    score_nodes,
)
from coaltree.inference.partition_chances import cluster_chances, membership_chances, number_distribution
from coaltree.inference.principal_points import PrincipalPoints, _fill, _lost_variance, principal_points


def all_partitions(tree, node=None):
    """Yield all sets of nodes whose leaves are a partition of those below a node."""
    node = tree.root if node is None else node
    yield (node,)
    if node >= tree.n_leaves:
        left, right = tree.children[node - tree.n_leaves].tolist()
        for first in all_partitions(tree, left):
            for second in all_partitions(tree, right):
                yield first + second


def labels_of(tree, nodes):
    labels = np.empty(tree.n_leaves, dtype=int)
    for k, node in enumerate(nodes):
        labels[tree.leaves_below(node)] = k
    return labels


class Points(ct.OrnsteinUhlenbeck):
    """A process whose coordinates are the cells."""

    def coordinates(self, messages, height):
        return self.cells.T.astype(np.float32)


def process_over(X):
    process = Points(0.5, np.zeros(X.shape[1]), np.ones(X.shape[1]), noise=0.5)
    process.cells = X
    return process


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 8), st.integers(1, 4), st.integers(0, 10_000))
def test_best_partition_is_that_of_enumeration(n, r, seed):
    rng = np.random.default_rng(seed)
    tree = ct.simulate_tree(n, rng)
    X = rng.normal(size=(n, r)) * rng.choice([1, 10]) + 3 * rng.integers(0, 2, size=(n, 1))
    best = node_evidence(tree, cluster_points(tree, X, X, process_over(X), 1.0)).scores
    found = best_partition(tree, best, 1)
    points, spread, _ = principal_points(tree, X, X, process_over(X), 1.0, partitions.N_DIMENSIONS)
    scores = score_nodes(tree, points, spread)
    sums = [scores[list(nodes)].sum(axis=0).max() for nodes in all_partitions(tree)]
    assert best[found].sum() == pytest.approx(max(sums), abs=1e-9)
    assert sorted(np.concatenate([tree.leaves_below(node) for node in found])) == list(range(n))


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 8), st.integers(1, 4), st.integers(0, 10_000))
def test_best_partition_into_a_number_is_that_of_enumeration(n, min_size, seed):
    """Of the numbers that the tree allows, without small groups and with them."""
    rng = np.random.default_rng(seed)
    tree, scores = ct.simulate_tree(n, rng), rng.normal(size=2 * n - 1)
    best = {}
    for nodes in all_partitions(tree):
        large = [node for node in nodes if tree.leaf_counts[node] >= min_size]
        total = scores[list(nodes)].sum()
        if total > best.get(len(large), (-np.inf,))[0]:
            best[len(large)] = total, set(large)
    for k in range(1, n + 1):
        found = partition_into(k, tree, scores, min_size).tolist()
        assert len(found) == k
        if k in best:
            assert set(found) == best[k][1]
    labels = labels_of(tree, partition_into(n, tree, scores, min_size))
    assert len(set(labels)) == n


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 8), st.integers(1, 3), st.integers(0, 10_000))
def test_probabilities_are_those_of_enumeration(n, min_size, seed):
    """Of nodes as clusters, of numbers of clusters with enough rows, and of pairs of rows."""
    rng = np.random.default_rng(seed)
    tree, scores = ct.simulate_tree(n, rng), 3 * rng.normal(size=2 * n - 1)
    every = list(all_partitions(tree))
    weights = np.exp([scores[list(nodes)].sum() for nodes in every])
    weights /= weights.sum()
    clusters, numbers, together = np.zeros(2 * n - 1), np.zeros(n + 1), np.zeros((n, n))
    for nodes, weight in zip(every, weights, strict=True):
        clusters[list(nodes)] += weight
        numbers[int(np.sum(tree.leaf_counts[list(nodes)] >= min_size))] += weight
        labels = labels_of(tree, nodes)
        together += weight * (labels[:, None] == labels)
    np.testing.assert_allclose(cluster_chances(tree, scores), clusters, atol=1e-12)
    actual = number_distribution(tree, scores, min_size)
    np.testing.assert_allclose(np.pad(actual, (0, n + 1 - len(actual))), numbers, atol=1e-7)
    labels = rng.integers(-1, 3, size=n)
    labels[0] = 2
    for cluster, own in enumerate(membership_chances(tree, scores, labels).T):
        for row in range(n):
            others = np.flatnonzero((labels == cluster) & (np.arange(n) != row))
            expected = together[row, others].mean() if len(others) else 1.0
            assert own[row] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("r", [1, 3])
def test_scores_are_products_of_predictive_densities(r):
    """The density of rows one by one, each given those before: multivariate t distributions, by SciPy."""
    rng = np.random.default_rng(r)
    tree, points = ct.simulate_tree(7, rng), rng.normal(size=(7, r))
    actual = score_nodes(tree, points, np.zeros((7, r)))
    variance, freedom = np.mean(points**2), r + partitions.FREEDOM
    for g, share in enumerate(partitions.SHARES_WITHIN.tolist()):
        for node in range(tree.n_nodes):
            rows = points[tree.leaves_below(node)]
            expected = math.log(partitions.CONCENTRATION) + math.lgamma(len(rows))
            weight, nu, mean = share / (1 - share), freedom, np.zeros(r)
            scatter = share * variance * (freedom - r - 1) * np.eye(r)
            for row in rows:
                shape = scatter * (weight + 1) / (weight * (nu - r + 1))
                expected += stats.multivariate_t.logpdf(row, mean, shape, nu - r + 1)
                scatter = scatter + weight / (weight + 1) * np.outer(row - mean, row - mean)
                mean = (weight * mean + row) / (weight + 1)
                weight, nu = weight + 1, nu + 1
            if len(rows) == 1:  # which may also be far from all others
                alone = stats.multivariate_t.logpdf(rows[0], np.zeros(r), variance * np.eye(r), 1)
                expected = np.logaddexp(expected, math.log(partitions.CONCENTRATION) + alone)
            assert actual[node, g] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("r", [1, 3])
def test_rows_apart_are_more_probable_on_their_own(r):
    """Than as the next row of their cluster, by SciPy's multivariate t distribution."""
    rng = np.random.default_rng(r)
    tree, share, found = ct.simulate_tree(30, rng), float(partitions.SHARES_WITHIN[3]), []
    for away in (0.0, 2.0, 3.0, 4.0, 6.0, 10.0, 30.0):
        X = rng.normal(size=(30, r))
        X[0, 0] += away
        evidence = Evidence(np.zeros(59), PrincipalPoints(X, np.zeros((30, r)), X), 3)
        actual = find_apart(tree, evidence, np.array([tree.root]))
        weight, variance = share / (1 - share), np.mean(X**2)
        total, freedom = weight + 29, partitions.FREEDOM + 30
        alone = stats.multivariate_t(np.zeros(r), variance * np.eye(r), 1)
        for i in range(30):
            others = np.delete(X, i, axis=0)
            mean, scatter = others.mean(axis=0), share * variance * (partitions.FREEDOM - 1) * np.eye(r)
            scatter += (others - mean).T @ (others - mean) + weight * 29 / total * np.outer(mean, mean)
            within = stats.multivariate_t(29 / total * mean, scatter * (total + 1) / (total * freedom), freedom)
            best = math.log(29) + within.logpdf(X[i]), math.log(partitions.CONCENTRATION) + alone.logpdf(X[i])
            assert actual[i] == (best[1] > best[0])
        found.append(bool(actual[0]))
    assert (found[0], found[-1]) == (False, True)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 30), st.integers(1, 5), st.integers(0, 10_000))
def test_log_determinants_match_numpy(n, r, seed):
    """Also far from zero, where sums of squares would lose all digits."""
    rng = np.random.default_rng(seed)
    tree, offset = ct.simulate_tree(n, rng), rng.choice([0.0, 1e7])
    points, spread = offset + rng.normal(size=(n, r)), rng.random((n, r))
    scales, out = np.array([0.1, 2.0]), np.empty((2 * n - 1, 2))
    weights = np.array([0.1, 0.7]) * (1e-14 if offset else 1.0)  # otherwise the distance from zero is all that counts
    log_determinants(tree.children, tree.leaf_counts.astype(float), points, spread, scales, weights, out)
    for node in range(tree.n_nodes):
        rows = tree.leaves_below(node)
        mean, size = points[rows].mean(axis=0), len(rows)
        scatter = (points[rows] - mean).T @ (points[rows] - mean) + np.diag(spread[rows].sum(axis=0))
        for g in range(2):
            pull = weights[g] * size / (weights[g] + size)
            expected = np.linalg.slogdet(scales[g] * np.eye(r) + scatter + pull * np.outer(mean, mean))[1]
            assert out[node, g] == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_equal_cells_lack_the_variance_of_their_stretch():
    """By integration of the normal density, and half of it for a column of yes and no: 1 - 2 / pi."""
    cells = np.repeat([3.0, 5.0, 4.0, 8.0], [10, 30, 40, 20])
    actual, ends = _lost_variance(cells), stats.norm.ppf([0.0, 0.1, 0.5, 0.8, 1.0])
    for value, low, high in zip([3.0, 4.0, 5.0, 8.0], ends[:-1], ends[1:], strict=True):
        share, first, second = (integrate.quad(lambda z, k=k: z**k * stats.norm.pdf(z), low, high)[0] for k in range(3))
        np.testing.assert_allclose(actual[cells == value], second / share - (first / share) ** 2, atol=1e-7)
    np.testing.assert_allclose(_lost_variance(np.array([0.0, 1.0] * 8)), 1 - 2 / math.pi)
    assert _lost_variance(np.arange(9.0)).tolist() == [0.0] * 9


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 40), st.integers(0, 10_000))
def test_missing_cells_are_filled_from_the_nearest_clade_with_ten_cells(n, seed):
    rng = np.random.default_rng(seed)
    tree, column = ct.simulate_tree(n, rng), rng.normal(size=n)
    known = rng.random(n) < 0.6
    known[0] = True
    filled, lost = _fill(tree, np.where(known, column, np.nan), known)
    for place, row in enumerate(np.flatnonzero(~known).tolist()):
        node = row
        while len(cells := column[(rows := tree.leaves_below(node))[known[rows]]]) < min(10, known.sum()):
            node = tree.parents[node]
        assert filled[row] == pytest.approx(cells.mean())
        assert lost[place] == pytest.approx(cells.var())
    np.testing.assert_array_equal(filled[known], column[known])


@pytest.mark.parametrize("shape", [(40, 6), (6, 40), (30, 700), (700, 30), (620, 640)])
def test_principal_points_keep_the_largest_variances(shape):
    """Against the singular values of the centred table."""
    X = np.random.default_rng(0).normal(size=shape) * np.linspace(1, 4, shape[1])
    points, spread, _ = principal_points(ct.simulate_tree(shape[0], 0), X, X, process_over(X), 1.0, 4)
    expected = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[:4]
    np.testing.assert_allclose(np.sort(np.linalg.norm(points, axis=0))[::-1], expected, rtol=1e-5)
    assert spread.max() < 1e-5  # few cells are equal in single precision


@pytest.mark.parametrize("n_levels", [2, 4])
def test_states_of_a_column_lack_together(n_levels):
    """Coordinates of n states have n - 1 dimensions, which together lack what all n coordinates do."""
    X = np.repeat(np.arange(float(n_levels)), 25)[:, None]
    process = ct.Multinomial(noise=0.1).resolve(X)
    points, spread, _ = principal_points(ct.simulate_tree(len(X), 0), X, X, process, 1.0, n_levels)
    end = stats.norm.isf(1 / n_levels)
    below, above = stats.truncnorm(-np.inf, end).var(), stats.truncnorm(end, np.inf).var()
    lacking = ((n_levels - 1) * below + above) / n_levels
    assert spread.sum() == pytest.approx((points**2).sum() * lacking, rel=1e-4)


# -- clusters of tables ------------------------------------------------------------------------------------------------


def fitted(X, **parameters):
    return ct.CoalescentClustering(**parameters).fit(X)


@pytest.mark.parametrize(
    "kind", ["Gaussian 60 x 10", "uniform 60 x 10", "Gaussian 200 x 5", "coins 400 x 5", "levels 400 x 2"]
)
def test_noise_of_any_kind_is_one_cluster(kind):
    """In benchmarks/cuts.py none of 20 tables of each kind is cut."""
    name, n, _, columns = kind.split()
    for seed in range(4):
        rng = np.random.default_rng(1000 + seed)
        shape = int(n), int(columns)
        X = {
            "Gaussian": rng.normal(size=shape),
            "uniform": rng.random(shape),
            "coins": rng.random(shape) < 0.5,
            "levels": rng.choice(list("abcd"), size=shape),
        }[name]
        assert fitted(X).n_clusters_ == 1


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_clusters_at_different_heights_are_found():
    """Three tight blobs and one that is four times as wide: no cut at one height finds all four."""
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(4), [60, 60, 60, 120])
    centres, widths = np.array([[0, 0], [4, 0], [0, 4], [14, 4]]), np.array([0.5, 0.5, 0.5, 2.0])
    model = fitted(centres[classes] + rng.normal(size=(300, 2)) * widths[classes, None])
    assert model.n_clusters_ == 4
    assert adjusted_rand_score(classes, model.labels_) > 0.95
    assert adjusted_rand_score(classes, model.cut(n_clusters=4)) > 0.95
    heights = model.tree_.merge_heights[-12:].tolist()
    assert max(adjusted_rand_score(classes, model.cut(height_threshold=height)) for height in heights) < 0.9


def test_number_of_clusters_has_a_distribution():
    X, classes = make_blobs(150, centers=3, n_features=2, random_state=2)
    model = fitted(X)
    chances = model.n_clusters_distribution_
    assert sum(chances.values()) == pytest.approx(1)
    assert min(chances) >= 1
    assert model._model.cut_words.startswith(f"by their evidence (probability {chances[model.n_clusters_]:.2f}")
    together = model.cluster_probabilities_
    assert together.shape == (150, model.n_clusters_)
    assert together.min() >= 0
    assert together.max() <= 1
    own = together[np.arange(150), model.labels_]
    assert np.mean(own) > 0.5
    assert adjusted_rand_score(classes, together.argmax(axis=1)) > 0.5


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_probabilities_of_a_sample_are_averages_over_its_trees():
    X, _ = make_blobs(24, centers=2, n_features=2, random_state=0)
    model = fitted(X, inference="mcmc", n_chains=2, n_samples=6, random_state=0)
    assert sum(model.n_clusters_distribution_.values()) == pytest.approx(1)
    parts = model._model._weighted_scores
    assert len(parts) == len(model._model.sample)
    expected = sum(w * membership_chances(tree, scores, model.labels_) for tree, scores, w in parts)
    np.testing.assert_allclose(model.cluster_probabilities_, expected)


def test_columns_in_other_units_and_order_have_the_same_clusters():
    X, _ = make_blobs(120, centers=4, n_features=5, random_state=1, cluster_std=2.0)
    model, order = fitted(X), np.random.default_rng(0).permutation(120)
    other = fitted((X * [1, 100, -1e-3, 7, 1e6] + [0, 5, 0, 1e3, 2])[order][:, [3, 0, 4, 1, 2]], n_jobs=2)
    assert adjusted_rand_score(model.labels_[order], other.labels_) == 1
    assert adjusted_rand_score(model.cut(n_clusters=9)[order], other.cut(n_clusters=9)) == 1
    chances, others = model.n_clusters_distribution_, other.n_clusters_distribution_
    assert all(others[k] == pytest.approx(chance, abs=1e-3) for k, chance in chances.items() if chance > 0.01)


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_strange_tables_have_sensible_clusters():
    """And at most one remark each."""
    rng = np.random.default_rng(0)
    blobs, classes = make_blobs(120, centers=3, n_features=4, random_state=0)
    for table in (
        np.ones((30, 3)),  # all rows are equal
        [[0.0], [1.0]],
        rng.normal(size=(100, 1)),
        pd.DataFrame({"a": ["x"] * 20, "b": ["y"] * 20}),  # categories with one level
        rng.normal(size=(20, 1000)),
        np.repeat([[False], [True]], 20, axis=0),  # one column of yes and no says nothing about clusters
    ):
        model = ct.CoalescentClustering().fit(table)
        assert model.n_clusters_ == 1
        assert len(model.remarks_) <= 1
    halves = np.repeat([[0.0, 5.0, 1.0, 4.0], [1.0, 3.0, 2.0, 7.0]], 20, axis=0)
    assert fitted(halves).labels_.tolist() == [0] * 20 + [1] * 20
    copied = ct.CoalescentClustering().fit(np.hstack([blobs, np.repeat(blobs[:, :1], 10, axis=1)]))
    assert adjusted_rand_score(classes, copied.labels_) > 0.5  # the copies count ten times
    assert len(copied.remarks_) == 1
    blobs[0, 0] = 1e9 * blobs[:, 0].std()
    far = ct.CoalescentClustering(assign_outliers=False).fit(blobs)
    assert adjusted_rand_score(classes[1:], far.labels_[1:]) == 1
    assert far.labels_[0] == -1
    assert len(far.remarks_) == 1
    few = np.repeat([[0.0, 1.0], [2.0, 3.0], [9.0, 0.0]], 5, axis=0)
    more = ct.CoalescentClustering(n_clusters=5).fit(few)
    assert len(more.remarks_) <= 1
    assert more.labels_.tolist() == [0] * 5 + [1] * 5 + [2] * 5


def test_dropping_a_column_changes_little():
    """Of a table with ten columns and five clear clusters, each column in turn."""
    X, classes = make_blobs(150, centers=5, n_features=10, random_state=3, cluster_std=3.0)
    numbers = [fitted(np.delete(X, column, axis=1)).n_clusters_ for column in range(10)]
    assert adjusted_rand_score(classes, fitted(X).labels_) > 0.85
    assert all(abs(number - 5) <= 5 / 3 for number in numbers)


def test_rows_far_out_do_not_join_or_widen_clusters():
    """Rows in small groups are in no cluster of the partition, and a remark names them."""
    X, _ = make_blobs(200, centers=2, n_features=3, random_state=1)
    X = np.vstack([X, X.mean(axis=0) + [60, -60, 60]])
    with pytest.warns(InputWarning, match="far from all others: '200'"):
        model = fitted(X)
    assert np.flatnonzero(model.cut(assign_outliers=False) < 0).tolist() == [200]
    assert model.n_clusters_ == 2


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
@pytest.mark.parametrize("distance", [30.0, 1e4, 1e6])
def test_far_rows_that_are_alike_are_a_cluster(distance):
    """Four of them, beside three clusters of 30; a fifth one, farther out, is none of them."""
    X, classes = make_blobs(90, centers=3, n_features=4, random_state=1)
    far = X.mean(axis=0) + distance + np.random.default_rng(0).normal(size=(4, 4))
    model = fitted(np.vstack([X, far, X.mean(axis=0) - 7 * distance]), assign_outliers=False)
    assert model.n_clusters_ == 4
    assert set(model.labels_[90:94]) == {model.labels_[90]}
    assert (model.labels_[90] >= 0, model.labels_[94]) == (True, -1)
    assert adjusted_rand_score(classes, model.labels_[:90]) > 0.95
