"""Rules that cut a tree into flat clusters, against their definitions and SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster

import coaltree as ct
from coaltree._cut import Cut, check_cut
from coaltree.errors import InputError
from coaltree.tree.cut import cut_by_count, cut_by_height, cut_by_ratio, cut_tree
from named import refused


def same_partition(a, b):
    return len({*zip(a, b, strict=True)}) == len({*a}) == len({*b})


def by_definition(tree, ratios, node=None):
    """The recursion of the definition, as sets of leaves."""
    node = tree.root if node is None else node
    if node < tree.n_leaves or ratios[node - tree.n_leaves] > 0:
        return [frozenset(tree.leaves_below(node).tolist())]
    left, right = tree.children[node - tree.n_leaves]
    return by_definition(tree, ratios, left) + by_definition(tree, ratios, right)


@given(st.integers(1, 30), st.integers(0, 10**6))
def test_cut_by_ratio_matches_definition(n, seed):
    tree = ct.simulate_tree(n, random_state=seed)
    ratios = np.random.default_rng(seed).normal(size=n - 1)
    labels = cut_by_ratio(tree, ratios)
    clusters = {frozenset(np.flatnonzero(labels == k).tolist()) for k in range(labels.max() + 1)}
    assert clusters == set(by_definition(tree, ratios))


@given(st.integers(2, 30), st.integers(0, 10**6))
def test_cut_by_count_and_height_match_scipy(n, seed):
    tree = ct.simulate_tree(n, random_state=seed)
    k = 1 + seed % n
    labels = cut_by_count(tree, k)
    assert len(set(labels)) == k
    assert same_partition(labels, fcluster(tree.to_linkage(), k, criterion="maxclust"))
    height = tree.merge_heights[seed % (n - 1)]
    assert same_partition(cut_by_height(tree, height), fcluster(tree.to_linkage(), height, criterion="distance"))


@given(st.integers(1, 30), st.integers(0, 10**6))
def test_cluster_numbers_follow_first_rows(n, seed):
    tree = ct.simulate_tree(n, random_state=seed)
    labels = cut_by_count(tree, 1 + seed % n)
    firsts = [int(np.argmax(labels == k)) for k in range(labels.max() + 1)]
    assert firsts == sorted(firsts)
    assert labels[0] == 0


def test_cut_by_ratio_prefers_older_cluster():
    tree = ct.Tree.from_newick("((a:1,b:1):1,(c:1,d:1):1);")
    assert cut_by_ratio(tree, [-1.0, -1.0, 1.0]).tolist() == [0, 0, 0, 0]
    assert cut_by_ratio(tree, [-1.0, 1.0, -1.0]).tolist() == [0, 1, 2, 2]


@pytest.mark.parametrize("wrong", [0, 4, 1.5, True, -1])
def test_n_clusters_out_of_range_is_rejected(wrong):
    with pytest.raises(InputError, match="from 1 to 3"):
        cut_by_count(ct.simulate_tree(3, random_state=0), wrong)


def test_invalid_cuts_are_rejected():
    tree = ct.simulate_tree(3, random_state=0)
    with pytest.raises(InputError, match="at least 0"):
        cut_by_height(tree, -0.1)
    with pytest.raises(InputError, match="at least 0"):
        cut_by_height(tree, float("nan"))
    with pytest.raises(InputError, match="2 merges"):
        cut_by_ratio(tree, [1.0])


def test_cuts_of_deep_trees():
    n = 20_000
    children = [(0, 1)] + [(n + k, k + 2) for k in range(n - 2)]
    tree = ct.Tree(children, np.r_[np.zeros(n), np.arange(1.0, n)])
    assert cut_by_height(tree, 10_000).max() == n - 10_001


def test_cut_tree_applies_one_rule():
    tree = ct.Tree([(0, 1), (2, 3), (4, 5)], [0, 0, 0, 0, 1.0, 2.0, 3.0])
    ratios = [1.0, -1.0, -1.0]
    assert cut_tree(tree, Cut(), ratios).tolist() == [0, 0, 1, 2]
    assert cut_tree(tree, Cut(n_clusters=2), ratios).tolist() == [0, 0, 1, 1]
    assert cut_tree(tree, Cut(height_threshold=0.5), ratios).tolist() == [0, 1, 2, 3]
    assert cut_tree(tree, Cut(height_threshold=3), ()).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("n_clusters", "height", "sentence"),
    [
        (2, 1.0, "n_clusters height_threshold"),
        (5, None, "n_clusters 5 1 4 rows"),
        (True, None, "n_clusters True 1"),
        (None, -1, "height_threshold -1 0"),
        (None, "high", "height_threshold high 0"),
    ],
)
def test_invalid_cut_rules_are_rejected(n_clusters, height, sentence):
    with refused(sentence):
        check_cut(Cut(n_clusters=n_clusters, height_threshold=height), 4)
