"""Kingman's coalescent: its density against two other computations, its draws against known distributions.

Statistical tests use fixed seeds, and bounds that a correct simulator fails once in 100,000 seeds.
"""

import warnings
from collections import Counter
from itertools import pairwise
from math import comb, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from coaltree.tree.coalescent import log_prior, pair_counts, simulate_tree
from coaltree.tree.tree import Tree
from named import refused

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import dendropy
    from dendropy.model.coalescent import log_probability_of_coalescent_tree

Z_BOUND = 4.5

trees = st.builds(simulate_tree, st.integers(1, 12), st.integers(0, 2**32 - 1))


def draws(n, count, seed):
    rng = np.random.default_rng(seed)
    return [simulate_tree(n, rng) for _ in range(count)]


def z_score(values, mean):
    return (np.mean(values) - mean) / (np.std(values, ddof=1) / np.sqrt(len(values)))


def common_height(tree, leaves):
    """Height of the smallest subtree that holds all the leaves."""
    expected = set(leaves)
    holders = [i for i in range(tree.n_nodes) if expected <= set(tree.leaves_below(i).tolist())]
    return tree.heights[min(holders)]


# -- density -----------------------------------------------------------------------------------


@given(trees)
def test_log_prior_integrates_number_of_pairs(tree):
    times = np.unique(tree.heights)
    expected = 0.0
    for start, end in pairwise(times):
        middle = (start + end) / 2
        live = sum(tree.heights[node] < middle < tree.heights[tree.parents[node]] for node in range(tree.n_nodes - 1))
        expected -= comb(live, 2) * (end - start)
    assert log_prior(tree) == pytest.approx(expected, rel=1e-12)


@given(st.builds(simulate_tree, st.integers(2, 12), st.integers(0, 2**32 - 1)))
def test_log_prior_matches_dendropy(tree):
    # DendroPy's density is that of the waiting times alone: it includes the rate of each.
    other = dendropy.Tree.get(data=tree.to_newick(), schema="newick")
    rates = sum(log(comb(k, 2)) for k in range(2, tree.n_leaves + 1))
    expected = log_probability_of_coalescent_tree(other, haploid_pop_size=1) - rates
    assert log_prior(tree) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_log_prior_of_small_trees_by_hand():
    assert log_prior(Tree([[0, 1], [3, 2]], [0, 0, 0, 1, 3])) == -(3 * 1 + 1 * 2)
    assert str(log_prior(Tree([], [0.0]))) == "0.0"
    assert str(log_prior(Tree([[0, 1]], [0.0, 0.0, 0.0]))) == "0.0"


def test_pair_counts_of_lineages():
    assert pair_counts(5).tolist() == [10, 6, 3, 1]
    assert pair_counts(1).tolist() == []


# -- draws -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 10])
def test_simulated_height_and_length_have_expected_means(n):
    sample = draws(n, 3000, seed=n)
    assert abs(z_score([tree.heights[-1] for tree in sample], 2 * (1 - 1 / n))) < Z_BOUND
    expected = 2 * sum(1 / k for k in range(1, n))
    assert abs(z_score([tree.total_length for tree in sample], expected)) < Z_BOUND


def test_waiting_times_are_independent_exponentials():
    sample = draws(5, 3000, seed=0)
    waits = np.array([np.diff(tree.heights[4:]) for tree in sample]) * pair_counts(5)
    for column in waits.T:
        assert stats.kstest(column, "expon").pvalue > 1e-5
    correlations = np.corrcoef(waits.T)[np.triu_indices(4, 1)]
    assert np.all(np.abs(correlations) < Z_BOUND / np.sqrt(len(sample)))


def test_labelled_histories_are_equally_likely():
    def history(tree):
        return tuple(frozenset(tree.leaves_below(node).tolist()) for node in range(4, 7))

    counts = Counter(map(history, draws(4, 5400, seed=1)))
    assert len(counts) == 18
    assert stats.chisquare(list(counts.values())).pvalue > 1e-5


@pytest.mark.parametrize("leaves", [(0, 1), (0, 3, 7), (2, 4, 5, 6)])
def test_subsets_of_leaves_follow_smaller_coalescent(leaves):
    heights = [common_height(tree, leaves) for tree in draws(8, 2000, seed=len(leaves))]
    assert abs(z_score(heights, 2 * (1 - 1 / len(leaves)))) < Z_BOUND


def test_left_and_right_are_equally_likely():
    first = sum(tree.children[0, 0] < tree.children[0, 1] for tree in draws(6, 2000, seed=3))
    assert stats.binomtest(int(first), 2000).pvalue > 1e-5


# -- use ---------------------------------------------------------------------------------------


def test_seeds_reproduce_trees():
    assert simulate_tree(20, random_state=7) == simulate_tree(20, random_state=7)
    assert simulate_tree(20, random_state=7) == simulate_tree(20, np.random.default_rng(7))
    assert simulate_tree(20, random_state=7) != simulate_tree(20, random_state=8)
    legacy = [simulate_tree(5, np.random.RandomState(3)) for _ in range(2)]
    assert legacy[0] == legacy[1]
    rng = np.random.default_rng(7)
    assert simulate_tree(20, rng) != simulate_tree(20, rng)


def test_simulate_tree_names_leaves():
    assert simulate_tree(3, 0, leaf_names=["a", "b", "c"]).leaf_names == ("a", "b", "c")


def test_simulate_tree_of_one_leaf():
    assert simulate_tree(1, 0) == Tree([], [0.0])


def test_simulate_tree_accepts_integer_types():
    assert simulate_tree(np.int64(4), 0) == simulate_tree(4.0, 0) == simulate_tree(4, 0)


def test_simulate_tree_of_many_leaves():
    tree = simulate_tree(200_000, random_state=0)
    assert tree.n_leaves == 200_000
    assert 0 < tree.heights[-1] < 50


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "3", None, float("nan"), float("inf")])
def test_invalid_numbers_of_leaves_are_rejected(n):
    with refused("leaves 1"):
        simulate_tree(n)


def test_log_prior_rejects_non_trees():
    tree = simulate_tree(3, 0)
    with refused("tree type str Tree Tree.from_newick"):
        log_prior(tree.to_newick())
