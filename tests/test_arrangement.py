"""The arrangement of a table before the search depends on its content only, and so do trees with ties."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coaltree as ct
from coaltree.inference.preparation import arrange, round_cells

pytestmark = pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")


def random_table(rng, n, n_real, n_states, missing):
    """Return whole numbers and codes, some of them sets, with holes."""
    real = rng.integers(0, rng.integers(2, 5), (n, n_real)).astype(float)
    codes = np.column_stack([rng.integers(0, k, n) for k in n_states] or [np.empty((n, 0))]).astype(float)
    codes[rng.random(codes.shape) < 0.05] = ct.state_set(0, 1)
    X = np.column_stack([real, codes])
    X[rng.random(X.shape) < missing] = np.nan
    return X


def recode(cells, codes):
    """Return cells with state k renamed codes[k], also in sets."""
    sets = ct.state_set(*codes[:2].tolist())
    return np.array([c if np.isnan(c) else sets if c < 0 else codes[int(c)] for c in cells])


@pytest.mark.parametrize("seed", range(60))
def test_arrange_is_invariant_to_row_and_column_order(seed):
    rng = np.random.default_rng(seed)
    n_real, n_states = int(rng.integers(0, 4)), tuple(rng.integers(2, 4, int(rng.integers(1, 4))).tolist())
    X = random_table(rng, int(rng.integers(2, 25)), n_real, n_states, rng.choice([0.0, 0.2]))
    other = X[rng.permutation(len(X))]
    for j, k in enumerate(n_states):
        other[:, n_real + j] = recode(other[:, n_real + j], rng.permutation(k))
    other[:, :n_real] *= rng.choice([-1.0, 1.0], n_real)
    sites = rng.permutation(len(n_states))
    other = other[:, [*rng.permutation(n_real), *(n_real + sites)]]
    first, second = arrange(X, n_states), arrange(other, tuple(n_states[j] for j in sites))
    np.testing.assert_array_equal(first.apply(X), second.apply(other))


def test_arrange_returns_permutation():
    rng = np.random.default_rng(0)
    X = random_table(rng, 20, 2, (3, 2), 0.2)
    order = arrange(X, (3, 2))
    arranged = order.apply(X)
    assert sorted(order.rows) == list(range(20))
    back = np.empty_like(X)
    back[np.ix_(order.rows, order.columns)] = arranged
    back[:, order.columns[:2]] *= order.signs
    for j, codes in zip(order.columns[2:].tolist(), order.codes, strict=True):
        back[:, j] = recode(back[:, j], np.argsort(codes)) if not (X[:, j] < 0).any() else X[:, j]
    np.testing.assert_array_equal(back, X)


def test_arrange_orders_indistinguishable_columns():
    """All columns are permutations of each other, and every row looks like every other one."""
    X = np.array([[1.0, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 0]])
    rng = np.random.default_rng(0)
    expected = arrange(X, ()).apply(X)
    for _ in range(10):
        other = X[np.ix_(rng.permutation(6), rng.permutation(4))]
        np.testing.assert_array_equal(arrange(other, ()).apply(other), expected)


def test_arrange_rounding_keeps_missing_cells_and_codes():
    X = np.array([[1 / 3, 2.0], [np.nan, -3.0], [-1e-12, np.nan]])
    rounded = round_cells(X, 1)
    np.testing.assert_allclose(rounded, X, atol=1e-9)
    np.testing.assert_array_equal(rounded[:, 1], X[:, 1])
    assert not np.signbit(rounded[2, 0])


# -- fits ------------------------------------------------------------------------------------------------------------------


def clades_by_content(tree, rows):
    """Count the clades, each as the sorted contents of its rows: equal rows may be swapped."""
    below = [tree.leaves_below(k) for k in range(tree.n_leaves, tree.n_nodes)]
    return Counter(tuple(sorted(rows[i] for i in value.tolist())) for value in below)


def assert_same_tree(model, other, order):
    np.testing.assert_allclose(other.tree_.heights, model.tree_.heights, rtol=1e-6, atol=1e-9)
    assert other.n_clusters_ == model.n_clusters_
    np.testing.assert_array_equal(np.sort(np.bincount(other.labels_)), np.sort(np.bincount(model.labels_)))
    assert other.log_likelihood_ - model.log_likelihood_ == pytest.approx(0, abs=1e-6)
    assert len(order) == model.tree_.n_leaves


@pytest.mark.parametrize("missing", [0.1, 0.2, 0.4])
@pytest.mark.parametrize("n_values", [3, 6, 20])
def test_fit_is_invariant_to_row_order_with_missing_cells_and_ties(n_values, missing):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, n_values, (45, 4)).astype(float)
        X[rng.random(X.shape) < missing] = np.nan
        rows = [tuple(row) for row in np.nan_to_num(X, nan=-1).tolist()]
        order = rng.permutation(len(X))
        first, second = ct.CoalescentClustering().fit(X), ct.CoalescentClustering(n_jobs=2).fit(X[order])
        assert_same_tree(first, second, order)
        expected = clades_by_content(first.tree_, rows)
        assert clades_by_content(second.tree_, [rows[i] for i in order]) == expected


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6))
def test_fit_of_small_table_is_invariant_to_order_units_and_labels(seed):
    """Symmetric tables have several equally good trees: the same heights with other rows."""
    rng = np.random.default_rng(seed)
    n, n_real, n_text = int(rng.integers(4, 25)), int(rng.integers(1, 4)), int(rng.integers(0, 3))
    real = rng.integers(0, 5, (n, n_real)).astype(float)
    real[rng.random(real.shape) < 0.2] = np.nan
    codes, holes = rng.integers(0, 3, (n, n_text)), rng.random((n, n_text)) < 0.2

    def frame(values, labels):
        columns = {f"number {j}": value for j, value in enumerate(values.T)}
        for j in range(n_text):
            columns[f"text {j}"] = np.where(holes[:, j], None, np.array(labels, dtype=object)[codes[:, j]])
        return pd.DataFrame(columns)

    order = rng.permutation(n)
    signs = rng.choice([-1.0, 1.0], n_real) * rng.choice([0.1, 3.7, 1e5], n_real)
    other = frame(real * signs + 0.3, ["z", "q", "m"]).iloc[order]
    other = other[rng.permutation(other.columns)]
    first, second = ct.CoalescentClustering().fit(frame(real, ["a", "b", "c"])), ct.CoalescentClustering().fit(other)
    assert_same_tree(first, second, order)
    assert sorted(second.tree_.leaf_counts) == sorted(first.tree_.leaf_counts)


@pytest.mark.parametrize(
    "parameters",
    [{"rule": "max-prob"}, {"refine": True}, {"noise": 0.0}, {"real_process": ct.Brownian(noise=0.5)}],
    ids=["max-prob", "refine", "no noise", "own process"],
)
def test_fit_is_invariant_to_row_order_for_other_parameters(parameters):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 4, (20, 3)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    order = rng.permutation(len(X))
    first, second = (ct.CoalescentClustering(**parameters).fit(table) for table in (X, X[order]))
    assert_same_tree(first, second, order)


def test_leaf_names_stay_with_their_rows():
    X = pd.DataFrame({"a": [5.0, 1.0, 5.1, 1.1], "b": [2.0, 9.0, 2.2, 9.3]}, index=["p", "q", "r", "s"])
    tree = ct.CoalescentClustering().fit(X).tree_
    assert tree.leaf_names == ("p", "q", "r", "s")
    assert {frozenset(tree.leaves_below(k).tolist()) for k in (4, 5)} == {frozenset({0, 2}), frozenset({1, 3})}
