"""SciPy's linkage matrices: written, read, and rejected if invalid."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster import hierarchy

from coaltree.errors import InputError
from coaltree.tree.coalescent import simulate_tree
from coaltree.tree.tree import Tree
from named import refused

trees = st.builds(simulate_tree, st.integers(2, 15), st.integers(0, 2**32 - 1))


def ancestors(tree, node):
    while node != -1:
        yield node
        node = tree.parents[node]


def common_height(tree, i, j):
    """Height of the first node above both leaves, by walking up."""
    above = set(ancestors(tree, i))
    return next(tree.heights[node] for node in ancestors(tree, j) if node in above)


@given(trees)
def test_scipy_accepts_linkage_matrix(tree):
    Z = tree.to_linkage()
    assert hierarchy.is_valid_linkage(Z, throw=True)
    assert Z[:, 3].tolist() == [len(tree.leaves_below(tree.n_leaves + k)) for k in range(tree.n_leaves - 1)]
    draws = hierarchy.dendrogram(Z, no_plot=True)
    assert draws["leaves"] == tree.leaf_order.tolist()


@given(trees)
def test_cophenetic_distances_equal_common_ancestor_heights(tree):
    expected = [common_height(tree, i, j) for i, j in combinations(range(tree.n_leaves), 2)]
    assert hierarchy.cophenet(tree.to_linkage()).tolist() == expected


@given(trees, st.floats(0, 3))
def test_scipy_clusters_match_common_ancestor_heights(tree, cut):
    flat = hierarchy.fcluster(tree.to_linkage(), cut, criterion="distance")
    for i, j in combinations(range(tree.n_leaves), 2):
        assert (flat[i] == flat[j]) == (common_height(tree, i, j) <= cut)


@given(trees)
def test_linkage_round_trip(tree):
    assert Tree.from_linkage(tree.to_linkage(), tree.leaf_names) == tree


@pytest.mark.parametrize("method", ["average", "ward", "single", "complete"])
def test_from_linkage_reads_scipy_output(method):
    points = np.random.default_rng(5).normal(size=(40, 3)).round(1)  # rounding makes ties
    Z = hierarchy.linkage(points, method)
    tree = Tree.from_linkage(Z, [f"row {i}" for i in range(40)])
    assert np.array_equal(tree.children, Z[:, :2])
    assert np.array_equal(tree.merge_heights, Z[:, 2])
    assert np.array_equal(tree.to_linkage(), Z)
    assert tree.leaf_names[7] == "row 7"


def test_from_linkage_rejects_inversions():
    # An equilateral triangle: the centroid of two corners is nearer to the third than they are to each other.
    Z = hierarchy.linkage([[0, 0], [1, 0], [0.5, 0.75**0.5]], "centroid")
    with refused("Row 1 linkage matrix distance 0.866025 less centroid"):
        Tree.from_linkage(Z)


@pytest.mark.parametrize(
    ("Z", "message"),
    [
        ([[0, 1, 1]], r"shape \(1, 3\)"),
        ([0, 1, 1, 2], r"shape \(4,\)"),
        ([[0, 1, np.nan, 2]], "height of node 2 is nan"),
        ([[0, 2, 1, 2]], "Merge 0 joins node 2"),
        ([[0, 0, 1, 2]], "Node 0 is a child 2 times"),
        ([[0, 1, -1, 2]], "Merge 0 has height -1"),
    ],
)
def test_from_linkage_rejects_invalid_matrices(Z, message):
    with pytest.raises(InputError, match=message):
        Tree.from_linkage(Z)


def test_linkage_of_one_leaf_is_empty():
    Z = Tree([], [0.0]).to_linkage()
    assert Z.shape == (0, 4)
    assert Tree.from_linkage(Z) == Tree([], [0.0])


@given(st.builds(simulate_tree, st.integers(2, 300), st.integers(0, 2**32 - 1)))
def test_linkage_round_trip_is_bitwise_equal(tree):
    assert Tree.from_linkage(tree.to_linkage(), tree.leaf_names) == tree
