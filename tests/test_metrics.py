"""Scores of trees, against their definitions and higra."""

import time
import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from coaltree.errors import InputError
from coaltree.metrics import dendrogram_purity, leave_one_out_accuracy, subtree_score
from coaltree.tree.coalescent import simulate_tree
from coaltree.tree.tree import Tree
from named import refused

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import higra


@st.composite
def labelled_trees(draw, least=2):
    n = draw(st.integers(least, 14))
    tree = simulate_tree(n, draw(st.integers(0, 2**32 - 1)))
    # The second list makes unbalanced classes.
    classes = st.sampled_from(draw(st.sampled_from([[0, 1], [0, 0, 0, 0, 0, 1, 2], list(range(8))])))
    return tree, draw(st.lists(classes, min_size=n, max_size=n))


def caterpillar(n):
    children = [(0, 1)] + [(n + k - 1, k + 1) for k in range(1, n - 1)]
    return Tree(children, [0.0] * n + list(range(1, n)))


def purity_of_pair(tree, labels, i, j):
    """Share of the class in the smallest subtree that holds both leaves, found by trying all."""
    subtrees = [set(tree.leaves_below(node).tolist()) for node in range(tree.n_nodes)]
    smallest = min((leaves for leaves in subtrees if {i, j} <= leaves), key=len)
    return sum(labels[leaf] == labels[i] for leaf in smallest) / len(smallest)


def purity_by_pairs(tree, labels):
    pairs = [(i, j) for i, j in combinations(range(tree.n_leaves), 2) if labels[i] == labels[j]]
    return np.mean([purity_of_pair(tree, labels, i, j) for i, j in pairs])


def purity_by_leaves(tree, labels):
    expectations = []
    for i in range(tree.n_leaves):
        others = [j for j in range(tree.n_leaves) if j != i and labels[j] == labels[i]]
        if others:
            expectations.append(np.mean([purity_of_pair(tree, labels, i, j) for j in others]))
    return np.mean(expectations)


def subtree_score_by_definition(tree, labels):
    merges = range(tree.n_leaves, tree.n_nodes)
    pure = sum(len({labels[leaf] for leaf in tree.leaves_below(node)}) == 1 for node in merges)
    return pure / (tree.n_leaves - len(set(labels)))


def accuracy_by_definition(tree, labels):
    credit = 0.0
    for leaf in range(tree.n_leaves):
        (sibling,) = set(tree.children[tree.parents[leaf] - tree.n_leaves].tolist()) - {leaf}
        near = [labels[other] for other in tree.leaves_below(sibling)]
        most = max(map(near.count, near))
        tied = {label for label in near if near.count(label) == most}
        if labels[leaf] in tied:
            credit += 1 / len(tied)
    return credit / tree.n_leaves


# -- against the definitions -------------------------------------------------------------------


@given(labelled_trees())
def test_purity_matches_definition(case):
    tree, labels = case
    assume(len(set(labels)) < len(labels))
    assert dendrogram_purity(tree, labels) == pytest.approx(purity_by_pairs(tree, labels))
    by_leaves = dendrogram_purity(tree, labels, weighting="leaves")
    assert by_leaves == pytest.approx(purity_by_leaves(tree, labels))


@given(labelled_trees())
def test_subtree_score_matches_definition(case):
    tree, labels = case
    assume(len(set(labels)) < len(labels))
    assert subtree_score(tree, labels) == pytest.approx(subtree_score_by_definition(tree, labels))


@given(labelled_trees())
def test_leave_one_out_accuracy_matches_definition(case):
    tree, labels = case
    assert leave_one_out_accuracy(tree, labels) == pytest.approx(accuracy_by_definition(tree, labels))


@given(labelled_trees(least=12))
def test_purity_matches_higra(case):
    tree, labels = case
    parents = tree.parents.copy()
    parents[-1] = tree.root  # higra's root is its own parent
    other = higra.dendrogram_purity(higra.Tree(parents), np.array(labels))
    assert dendrogram_purity(tree, labels) == pytest.approx(other)


def test_purity_of_large_tree_matches_higra():
    tree = simulate_tree(3000, 4)
    labels = np.random.default_rng(0).geometric(0.3, size=3000)
    parents = tree.parents.copy()
    parents[-1] = tree.root
    expected = higra.dendrogram_purity(higra.Tree(parents), labels)
    assert dendrogram_purity(tree, labels) == pytest.approx(expected, rel=1e-12)


# -- by hand -----------------------------------------------------------------------------------


def test_scores_of_perfect_tree_are_one():
    tree = Tree.from_newick("(((a:1,b:1):1,c:2):1,(d:1,e:1):2);")
    labels = list("xxxyy")
    assert dendrogram_purity(tree, labels) == 1
    assert dendrogram_purity(tree, labels, weighting="leaves") == 1
    assert subtree_score(tree, labels) == 1
    assert leave_one_out_accuracy(tree, labels) == 1


def test_purity_weightings_differ_for_unequal_classes():
    tree = Tree.from_newick("((a:1,b:1):2,((c:1,x:1):1,y:2):1);")
    labels = list("pppqq")
    # Pairs: ab 1, ac and bc 3/5, xy 2/3.
    assert dendrogram_purity(tree, labels) == pytest.approx((1 + 3 / 5 + 3 / 5 + 2 / 3) / 4)
    assert dendrogram_purity(tree, labels, weighting="leaves") == pytest.approx((0.8 + 0.8 + 3 / 5 + 2 / 3 + 2 / 3) / 5)


def test_leave_one_out_shares_ties():
    tree = Tree.from_newick("((a:1,b:1):1,c:2);")
    # a and b see each other and are wrong; c sees one of each.
    assert leave_one_out_accuracy(tree, [0, 1, 1]) == pytest.approx(0.5 / 3)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([1, 1, 2]),
        np.array(["u", "u", "v"]),
        ("u", "u", "v"),
        [("a", 1), ("a", 1), ("b", 2)],
        pd.Series(["u", "u", "v"], index=[7, 8, 9]),
        pd.Series(["u", "u", "v"], dtype="category"),
        iter([1, 1, 2]),
    ],
)
def test_scores_accept_many_label_types(labels):
    assert subtree_score(Tree.from_newick("((a:1,b:1):1,c:2);"), labels) == 1


# -- size --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [10, 5000])
def test_scores_of_large_trees_with_many_classes(n_classes):
    tree = simulate_tree(10_000, 0)
    labels = np.random.default_rng(1).integers(n_classes, size=10_000)
    start = time.perf_counter()
    for score in (dendrogram_purity, subtree_score, leave_one_out_accuracy):
        assert 0 <= score(tree, labels) <= 1
    assert time.perf_counter() - start < 5


def test_scores_of_deep_caterpillar():
    n = 20_000
    tree = caterpillar(n)
    halves = np.repeat([0, 1], n // 2)
    assert leave_one_out_accuracy(tree, halves) == pytest.approx(0.5, abs=1e-3)
    assert subtree_score(tree, halves) == pytest.approx((n / 2 - 1) / (n - 2))
    assert dendrogram_purity(tree, np.zeros(n)) == pytest.approx(1)


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize("score", [dendrogram_purity, subtree_score, leave_one_out_accuracy])
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1], "2 labels 3 leaves"),
        ([0, 0, None], "label leaf 2 missing (None)"),
        ([0.0, np.nan, 0.0], "label leaf 1 missing (nan)"),
        (np.array([0.0, np.nan, 0.0]), "label leaf 1 missing (nan)"),
        (pd.Series(["a", "a", pd.NA], dtype="string"), "label leaf 2 missing (<NA>)"),
        (pd.Series(pd.to_datetime(["2020-01-01", None, None])), "label leaf 1 missing (NaT)"),
        (np.zeros((3, 1)), "label leaf 0 list labels one-dimensional"),
        ("aab", "labels str"),
        (np.array("aab"), "labels ndarray"),
        ({"a": 1, "b": 1, "c": 2}, "labels dict"),
        (3, "labels int"),
    ],
)
def test_invalid_labels_are_rejected(score, labels, message):
    with refused(message):
        score(Tree.from_newick("((a:1,b:1):1,c:2);"), labels)


def test_undefined_scores_are_rejected():
    tree = Tree.from_newick("((a:1,b:1):1,c:2);")
    with pytest.raises(InputError, match="No two leaves share a class"):
        dendrogram_purity(tree, [0, 1, 2])
    with pytest.raises(InputError, match=r"as many classes as leaves \(3\)"):
        subtree_score(tree, [0, 1, 2])
    one = Tree.from_newick("a;")
    with pytest.raises(InputError, match="No two leaves share a class"):
        dendrogram_purity(one, [0])
    with pytest.raises(InputError, match=r"as many classes as leaves \(1\)"):
        subtree_score(one, [0])
    with pytest.raises(InputError, match="one leaf, which has no sibling"):
        leave_one_out_accuracy(one, [0])


def test_unknown_purity_weighting_is_rejected():
    with refused("weighting uniform pairs leaves"):
        dendrogram_purity(Tree.from_newick("(a:1,b:1);"), [0, 0], weighting="uniform")


@pytest.mark.parametrize("weighting", ["pairs", "leaves"])
def test_perfect_purity_is_exactly_one(weighting):
    for seed in range(20):
        tree = simulate_tree(40, seed)
        assert dendrogram_purity(tree, [0] * 40, weighting=weighting) == 1.0
        # The two subtrees below the root, one class each.
        classes = np.isin(np.arange(40), tree.leaves_below(tree.children[-1, 0]))
        assert dendrogram_purity(tree, classes, weighting=weighting) == 1.0


@pytest.mark.parametrize("score", [dendrogram_purity, subtree_score, leave_one_out_accuracy])
def test_scores_reject_non_trees(score):
    with refused("tree type ndarray Tree Tree.from_linkage"):
        score(simulate_tree(3, 0).to_linkage(), [0, 0, 1])
