"""Bayesian hierarchical clustering against scipy's distributions, a brute-force search, and all partitions."""

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.cluster.hierarchy import is_valid_linkage
from scipy.special import gammaln, logsumexp
from scipy.stats import betabinom, dirichlet_multinomial, multinomial, multivariate_t
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import coaltree as ct
from coaltree.baselines import BayesianHierarchicalClustering
from coaltree.baselines.bhc import EncodedRows, Hyperparameters, merge_all
from named import refused


# Nothing is skipped or expected to fail.
@parametrize_with_checks([BayesianHierarchicalClustering()])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_bhc_passes_check_estimator(estimator, check):
    check(estimator)


# -- marginal likelihoods, one row after the other ----------------------------------------------------------------------


def log_marginal_gaussian(rows, prior):
    """Log density of standardised rows under one component: a product of multivariate t predictions."""
    d = rows.shape[1]
    kappa, nu, mean = prior.mean_strength, prior.degrees_of_freedom, np.zeros(d)
    scale = np.eye(d) * prior.within * (nu - d - 1)
    total = 0.0
    for x in rows:
        freedom = nu - d + 1
        total += multivariate_t(mean, scale * (kappa + 1) / (kappa * freedom), freedom).logpdf(x)
        scale = scale + kappa / (kappa + 1) * np.outer(x - mean, x - mean)
        mean = (kappa * mean + x) / (kappa + 1)
        kappa, nu = kappa + 1, nu + 1
    return total


def log_marginal_states(codes, shares, strength):
    """Log probability of a sequence of states: that of their counts, over the number of sequences that have these."""
    counts = np.bincount(codes, minlength=len(shares))
    uniform = np.full(len(shares), 1 / len(shares))
    log_sequences = multinomial.logpmf(counts, len(codes), uniform) + len(codes) * math.log(len(shares))
    return dirichlet_multinomial.logpmf(counts, strength * shares, len(codes)) - log_sequences


def log_marginal(table, members, prior):
    """Log density of some rows of a table, standardised real columns beside lists of (codes, shares)."""
    real, columns = table
    members = list(members)
    total = log_marginal_gaussian(real[members], prior) if real.shape[1] else 0.0
    return total + sum(log_marginal_states(codes[members], shares, prior.state_strength) for codes, shares in columns)


def brute_force(table, n, prior):
    """Build the tree from the definition: nodes with their leaves, d, p(D | H1) and p(D | T)."""
    log_alpha = math.log(prior.concentration)
    nodes = {i: (frozenset([i]), log_alpha, log_marginal(table, [i], prior)) for i in range(n)}
    live, merges, probabilities = list(range(n)), [], []
    for k in range(n - 1):
        best = None
        for a, b in combinations(sorted(live, key=lambda node: min(nodes[node][0])), 2):
            (left, d_left, p_left), (right, d_right, p_right) = nodes[a], nodes[b]
            leaves = left | right
            log_d = np.logaddexp(log_alpha + gammaln(len(leaves)), d_left + d_right)
            log_pi = log_alpha + gammaln(len(leaves)) - log_d
            one = log_pi + log_marginal(table, leaves, prior)
            p = np.logaddexp(one, d_left + d_right - log_d + p_left + p_right)
            odds = one - (d_left + d_right - log_d + p_left + p_right)
            if best is None or odds > best[0]:
                best = (odds, one - p, a, b, (leaves, log_d, p))
        _, log_r, a, b, nodes[n + k] = best
        live = [node for node in live if node not in (a, b)] + [n + k]
        merges.append((a, b))
        probabilities.append(math.exp(log_r))
    _, log_d, p = nodes[2 * n - 2]
    bound = log_d + p + gammaln(prior.concentration) - gammaln(prior.concentration + n)
    return merges, probabilities, bound


def partitions(items):
    if not items:
        yield []
        return
    first, *rest = items
    for k in range(len(rest) + 1):
        for others in combinations(rest, k):
            left = [item for item in rest if item not in others]
            for partition in partitions(left):
                yield [[first, *others], *partition]


def log_evidence(table, n, prior):
    """Log density of the table under the Dirichlet process mixture, over all partitions."""
    alpha = prior.concentration
    terms = [
        sum(math.log(alpha) + gammaln(len(part)) + log_marginal(table, part, prior) for part in partition)
        for partition in partitions(list(range(n)))
    ]
    return logsumexp(terms) + gammaln(alpha) - gammaln(alpha + n)


def random_table(rng, n, d, n_states):
    """A table both as the model sees it and as the definitions here do."""
    real = rng.normal(size=(n, d)) + 2 * rng.integers(0, 2, (n, 1))
    columns, states, all_shares = [], [np.empty((n, 0), dtype=np.intp)], [np.empty(0)]
    for k in n_states:
        codes = rng.integers(0, k, n)
        shares = (np.bincount(codes, minlength=k) + 1) / (n + k)
        columns.append((codes, shares))
        states.append(np.equal.outer(codes, np.arange(k)).astype(np.intp))
        all_shares.append(shares)
    return EncodedRows(real, np.hstack(states), np.concatenate(all_shares)), (real, columns)


KINDS = [(1, ()), (3, ()), (0, (2, 2, 2)), (0, (4, 2)), (2, (3, 2))]


def random_prior(rng, d):
    alpha, within, kappa, more, strength = np.exp(rng.normal(size=5)) * [1, 0.1, 0.3, 1, 2]
    return Hyperparameters(alpha, min(within, 0.9), kappa, d + 1 + more, strength)


@pytest.mark.parametrize(("d", "n_states"), KINDS)
@pytest.mark.parametrize("n", [2, 3, 9])
def test_bhc_matches_definition(d, n_states, n):
    for seed in range(4):
        rng = np.random.default_rng([seed, n, d])
        rows, table = random_table(rng, n, d, n_states)
        prior = random_prior(rng, d)
        merges, probabilities, bound = brute_force(table, n, prior)
        actual = merge_all(rows, prior)
        assert [set(pair) for pair in actual.children.tolist()] == [set(pair) for pair in merges]
        np.testing.assert_allclose(1 / (1 + np.exp(-actual.log_odds)), probabilities, rtol=1e-8)
        assert actual.log_evidence_bound == pytest.approx(bound, rel=1e-10)


@pytest.mark.parametrize(("d", "n_states"), KINDS)
@pytest.mark.parametrize("n", [1, 2, 4, 6])
def test_evidence_bound_is_below_exact_evidence(d, n_states, n):
    rng = np.random.default_rng([n, d])
    rows, table = random_table(rng, n, d, n_states)
    prior = random_prior(rng, d)
    bound, exact = merge_all(rows, prior).log_evidence_bound, log_evidence(table, n, prior)
    if n <= 2:  # a tree of two rows holds both partitions
        assert bound == pytest.approx(exact, rel=1e-10)
    else:
        assert bound < exact
        assert bound > exact - 5


def test_binary_marginal_matches_beta_binomial():
    codes, strength = np.array([1, 0, 1, 1, 0, 1]), 3.0
    shares = np.array([0.25, 0.75])
    log_sequences = math.log(math.comb(6, 4))
    expected = betabinom.logpmf(4, 6, 0.75 * strength, 0.25 * strength) - log_sequences
    assert log_marginal_states(codes, shares, strength) == pytest.approx(expected)


@pytest.mark.parametrize("d", [8, 13])
def test_bhc_with_many_columns_matches_definition(d):
    """With many columns, clusters of two or three rows are merged by low-rank updates."""
    rng = np.random.default_rng(d)
    rows, table = random_table(rng, 11, d, ())
    prior = Hyperparameters(0.5, 0.3, 0.5, d + 2.5, 2.0)
    merges, probabilities, bound = brute_force(table, 11, prior)
    actual = merge_all(rows, prior)
    assert [set(pair) for pair in actual.children.tolist()] == [set(pair) for pair in merges]
    np.testing.assert_allclose(1 / (1 + np.exp(-actual.log_odds)), probabilities, rtol=1e-8)
    assert actual.log_evidence_bound == pytest.approx(bound, rel=1e-10)


def test_bhc_of_large_wide_table_keeps_precision():
    """Factors are updated through many merges without loss of precision."""
    rng = np.random.default_rng(8)
    rows, table = random_table(rng, 40, 20, (2,))
    prior = Hyperparameters(1.0, 0.2, 0.25, 22.0, 2.0)
    actual = merge_all(rows, prior)
    leaves = {i: [i] for i in range(40)}
    for k, (a, b) in enumerate(actual.children.tolist()):
        leaves[40 + k] = leaves[a] + leaves[b]
    weight = {i: math.log(prior.concentration) + log_marginal(table, [i], prior) for i in range(40)}
    for k, (a, b) in enumerate(actual.children.tolist()):
        members = leaves[40 + k]
        one = math.log(prior.concentration) + gammaln(len(members)) + log_marginal(table, members, prior)
        assert actual.log_odds[k] == pytest.approx(one - weight[a] - weight[b], abs=1e-8)
        weight[40 + k] = np.logaddexp(one, weight[a] + weight[b])


# -- the estimator ------------------------------------------------------------------------------------------------------


def test_bhc_fitted_attributes():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X.index = [f"flower {i}" for i in range(150)]
    model = BayesianHierarchicalClustering().fit(X)
    assert model.tree_.leaf_names == tuple(X.index)
    assert is_valid_linkage(model.linkage_)
    np.testing.assert_array_equal(model.children_, model.tree_.children)
    np.testing.assert_array_equal(model.distances_, model.tree_.merge_heights)
    np.testing.assert_allclose(model.merge_probabilities_, 1 / (1 + np.exp(-model.log_odds_)))
    np.testing.assert_allclose(model.distances_, np.maximum.accumulate(-np.log(model.merge_probabilities_)), atol=1e-12)
    assert model.n_clusters_ == len(set(model.labels_)) >= 2
    assert model.feature_names_in_.tolist() == list(X.columns)
    assert model.hyperparameters_["degrees_of_freedom"] == 6
    assert model.hyperparameters_["mean_strength"] == 1
    assert ct.metrics.dendrogram_purity(model.tree_, y) > 0.7


def test_flat_clusters_are_highest_merges_with_positive_odds():
    model = BayesianHierarchicalClustering().fit(load_iris().data[::3])
    n, tree = 50, model.tree_
    expected = {}
    stack = [tree.root]
    while stack:
        node = stack.pop()
        if node < n or model.merge_probabilities_[node - n] >= 0.5:
            expected[frozenset(tree.leaves_below(node).tolist())] = node
        else:
            stack += tree.children[node - n].tolist()
    assert {frozenset(np.flatnonzero(model.labels_ == c).tolist()) for c in set(model.labels_)} == set(expected)
    assert BayesianHierarchicalClustering(n_clusters=5).fit(load_iris().data[::3]).n_clusters_ == 5


def test_rescaling_changes_only_density():
    X = load_iris().data[::5]
    units = np.array([1.0, 10.0, 0.1, 3.0])
    first, second = BayesianHierarchicalClustering().fit(X), BayesianHierarchicalClustering().fit(X * units + 7)
    np.testing.assert_array_equal(first.children_, second.children_)
    np.testing.assert_allclose(first.log_odds_, second.log_odds_, rtol=1e-8)
    change = len(X) * np.log(units).sum()
    assert second.log_evidence_bound_ == pytest.approx(first.log_evidence_bound_ - change)


def test_optimized_hyperparameters_raise_bound():
    X = load_iris().data[::3]
    plain = BayesianHierarchicalClustering(within=0.9).fit(X)
    best = BayesianHierarchicalClustering(within=0.9, optimize=True).fit(X)
    assert best.log_evidence_bound_ > plain.log_evidence_bound_ + 1
    chosen = best.hyperparameters_
    assert chosen["within"] != 0.9
    assert chosen["mean_strength"] == pytest.approx(chosen["within"] / (1 - chosen["within"]))
    again = BayesianHierarchicalClustering(**chosen).fit(X)
    assert again.log_evidence_bound_ == pytest.approx(best.log_evidence_bound_)
    np.testing.assert_array_equal(again.children_, best.children_)
    held = BayesianHierarchicalClustering(mean_strength=0.5, optimize=True).fit(X)
    assert held.hyperparameters_["mean_strength"] == 0.5


def test_optimized_categorical_hyperparameters_raise_bound():
    rng = np.random.default_rng(0)
    X = (rng.random((30, 12)) < np.repeat([[0.9] * 6 + [0.1] * 6, [0.1] * 6 + [0.9] * 6], 15, axis=0)).astype(int)
    best = BayesianHierarchicalClustering(model="bernoulli", state_strength=20, optimize=True).fit(X)
    assert best.hyperparameters_["state_strength"] < 10
    assert best.hyperparameters_["within"] == 0.5  # there are no real columns
    assert adjusted_rand_score(np.repeat([0, 1], 15), best.labels_) > 0.8


def test_mixed_columns_are_split_by_dtype():
    rng = np.random.default_rng(1)
    group = np.repeat([0, 1], 8)
    frame = pd.DataFrame(
        {
            "length": rng.normal(2 * group),
            "<script>alert(1)</script>": np.array(["a,b", 'quote"'])[group],
            "emoji 🦉": rng.random(16) < 0.1 + 0.8 * group,
        }
    )
    model = BayesianHierarchicalClustering().fit(frame)
    assert adjusted_rand_score(group, model.labels_) > 0.5
    real, states = frame["length"].to_numpy(), frame.iloc[:, 1:].to_numpy(dtype=str)
    columns = []
    for column in states.T:
        codes = np.unique(column, return_inverse=True)[1]
        columns.append((codes, (np.bincount(codes) + 1) / (16 + 2)))
    standard = ((real - real.mean()) / real.std())[:, None]
    prior = Hyperparameters(**model.hyperparameters_)
    _, _, bound = brute_force((standard, columns), 16, prior)
    assert model.log_evidence_bound_ == pytest.approx(bound - 16 * np.log(real.std()))


def test_model_parameter_sets_column_kinds():
    X = np.random.default_rng(2).integers(0, 2, (12, 4))
    bernoulli = BayesianHierarchicalClustering(model="bernoulli").fit(X)
    multinomial_ = BayesianHierarchicalClustering(model="multinomial").fit(X)
    np.testing.assert_allclose(bernoulli.log_odds_, multinomial_.log_odds_)
    np.testing.assert_allclose(bernoulli.log_odds_, BayesianHierarchicalClustering().fit(X.astype(bool)).log_odds_)
    gaussian = BayesianHierarchicalClustering(model="gaussian").fit(X)
    np.testing.assert_allclose(gaussian.log_odds_, BayesianHierarchicalClustering().fit(X).log_odds_)
    assert not np.allclose(gaussian.log_odds_, bernoulli.log_odds_)
    # A column that is always 0 may have been 1: it tells of the sizes of clusters.
    constant = np.column_stack([X, np.zeros(12)])
    assert not np.allclose(
        BayesianHierarchicalClustering(model="bernoulli").fit(constant).log_odds_.sum(), bernoulli.log_odds_.sum()
    )
    np.testing.assert_allclose(
        BayesianHierarchicalClustering(model="multinomial").fit(constant).log_odds_, multinomial_.log_odds_
    )


def test_constant_real_columns_are_ignored():
    X = np.random.default_rng(3).normal(size=(10, 2))
    plain = BayesianHierarchicalClustering().fit(X)
    wider = BayesianHierarchicalClustering().fit(np.column_stack([X, np.full(10, 3.5)]))
    np.testing.assert_allclose(plain.log_odds_, wider.log_odds_)
    assert plain.log_evidence_bound_ == pytest.approx(wider.log_evidence_bound_)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_identical_rows_are_one_cluster(n):
    model = BayesianHierarchicalClustering().fit(np.full((n, 3), 2.0))
    assert model.tree_.n_leaves == n
    assert model.labels_.tolist() == [0] * n
    assert model.log_evidence_bound_ == pytest.approx(model.log_evidence_bound_)


def test_bhc_accepts_two_rows():
    model = BayesianHierarchicalClustering().fit([[0.0, 1.0], [1.0, 5.0]])
    assert model.children_.tolist() == [[0, 1]]
    assert model.linkage_.shape == (1, 4)


def test_ties_merge_first_pair():
    model = BayesianHierarchicalClustering().fit([[0.0], [4.0], [0.0], [4.0], [0.0], [4.0]])
    assert model.children_[0].tolist() == [0, 2]
    assert model.labels_.tolist() == [0, 1, 0, 1, 0, 1]


def test_bhc_is_invariant_to_row_order():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(25, 3))
    order = rng.permutation(25)
    first, second = BayesianHierarchicalClustering().fit(X), BayesianHierarchicalClustering().fit(X[order])
    renamed = second.tree_.rename([str(i) for i in order])
    assert ct.robinson_foulds(first.tree_, renamed.reorder(first.tree_.leaf_names)) == 0
    assert first.log_evidence_bound_ == pytest.approx(second.log_evidence_bound_)


def test_bhc_is_invariant_to_array_layout_and_dtype():
    rng = np.random.default_rng(5)
    X = np.round(rng.normal(size=(8, 3)), 1).astype(np.float32)
    children = BayesianHierarchicalClustering().fit(X).children_
    for other in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], X.astype(np.float64), X.tolist()):
        np.testing.assert_array_equal(BayesianHierarchicalClustering().fit(other).children_, children)
    for other in (X[:, :1], X > 0, X[:1], np.zeros((3, 2))):
        assert BayesianHierarchicalClustering().fit(other).tree_.n_leaves == len(other)


def test_missing_cells_are_rejected():
    with refused("table 2 missing cells (NaN) first column x1 row 0"):
        BayesianHierarchicalClustering().fit([[1.0, np.nan], [2.0, np.nan]])
    frame = pd.DataFrame({"a": ["x", None, "y"]}, index=["p", "q", "r"])
    with refused("1 missing cell (NaN) first column 'a' row ('q') complete rows"):
        BayesianHierarchicalClustering().fit(frame)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "poisson"}, "model poisson auto gaussian bernoulli multinomial"),
        ({"concentration": 0}, "concentration 0 finite"),
        ({"concentration": None}, "concentration None finite 0"),
        ({"state_strength": -1}, "state_strength -1 finite 0"),
        ({"mean_strength": math.inf}, "mean_strength inf finite 0 None"),
        ({"within": 1.0}, "within 1.0 0 1"),
        ({"within": "little"}, "within little 0 1"),
        ({"degrees_of_freedom": 3}, "degrees_of_freedom 3 2 real columns vary"),
        ({"optimize": "yes"}, "optimize yes True False"),
        ({"n_clusters": 5}, "n_clusters 5 1 3 rows"),
    ],
)
def test_invalid_parameters_are_rejected(options, message):
    with refused(message):
        BayesianHierarchicalClustering(**options).fit([[0.0, 1.0], [1.0, 3.0], [2.0, 0.0]])


def test_columns_incompatible_with_model_are_rejected():
    with refused("Column x0 2 model='bernoulli 0 1"):
        BayesianHierarchicalClustering(model="bernoulli").fit([[0], [1], [2]])
    with refused("Column 'a' categories model='gaussian"):
        BayesianHierarchicalClustering(model="gaussian").fit(pd.DataFrame({"a": ["x", "y"]}))
