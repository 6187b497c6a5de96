"""Leaves removed from a tree and added to it: against the heights of pairs, and against DendroPy."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from coaltree.tree.coalescent import simulate_tree
from coaltree.tree.edit import with_leaves, without_leaves
from coaltree.tree.tree import Tree
from named import refused
from tree_samples import heights_of_clades

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import dendropy


@st.composite
def trees(draw, least=1):
    """Trees from the coalescent, some of their first merges at height 0."""
    n = draw(st.integers(least, 10))
    tree = simulate_tree(n, draw(st.integers(0, 2**32 - 1)), leaf_names=[f"leaf {i}" for i in range(n)])
    heights = tree.heights.copy()
    heights[: n + draw(st.integers(0, n - 1))] = 0.0
    return Tree(tree.children, heights, tree.leaf_names)


@st.composite
def grafts(draw):
    """A tree, and places on its branches for some new leaves, several of them perhaps on the same branch."""
    tree = draw(trees())
    count = draw(st.integers(1, 5))
    nodes = np.array(draw(st.lists(st.integers(0, tree.n_nodes - 1), min_size=count, max_size=count)))
    shares = np.array(draw(st.lists(st.floats(0, 1), min_size=count, max_size=count)))
    tops = np.append(tree.heights[tree.parents[:-1]], tree.heights[-1] + 2.0)
    heights = tree.heights[nodes] + shares * (tops - tree.heights[:])[nodes]
    heights = np.minimum(heights, tops[nodes])
    positions = np.array(draw(st.permutations(range(tree.n_leaves + count)))[:count])
    return tree, nodes, heights, positions


def common_height(tree, a, b):
    """Height of the lowest node at or above two nodes."""
    below = reference.leaves_below(tree)
    return min(tree.heights[k] for k in range(tree.n_nodes) if below[a] | below[b] <= below[k])


@given(trees(least=2), st.data())
def test_without_leaves_keeps_heights_of_other_pairs(tree, data):
    gone = data.draw(st.sets(st.integers(0, tree.n_leaves - 1), max_size=tree.n_leaves - 1))
    remaining = [leaf for leaf in range(tree.n_leaves) if leaf not in gone]
    pruned = without_leaves(tree, gone)
    assert pruned.leaf_names == tuple(tree.leaf_names[leaf] for leaf in remaining)
    expected = reference.common_heights(tree)[np.ix_(remaining, remaining)]
    np.testing.assert_array_equal(reference.common_heights(pruned), expected)


@pytest.mark.parametrize("seed", range(5))
def test_without_leaves_matches_dendropy(seed):
    rng = np.random.default_rng(seed)
    tree = simulate_tree(15, rng, leaf_names=list("abcdefghijklmno"))
    gone = rng.choice(15, size=rng.integers(1, 13), replace=False)
    other = dendropy.Tree.get(data=tree.to_newick(), schema="newick", rooting="force-rooted")
    other.prune_taxa_with_labels([tree.leaf_names[leaf] for leaf in gone])
    other.calc_node_ages(ultrametricity_precision=1e-6)
    expected = {frozenset(leaf.taxon.label for leaf in node.leaf_iter()): node.age for node in other.internal_nodes()}
    assert heights_of_clades(without_leaves(tree, gone)) == pytest.approx(expected, rel=1e-9)


def test_empty_pruning_changes_nothing():
    tree = simulate_tree(6, 0)
    assert without_leaves(tree, []) == tree


def test_pruning_to_one_leaf():
    tree = without_leaves(simulate_tree(4, 0, leaf_names="abcd"), np.array([0, 3, 1]))
    assert tree == Tree([], [0.0], ["c"])


@pytest.mark.parametrize("leaves", [[3], [-1], [0, 1, 2]])
def test_invalid_pruning_is_rejected(leaves):
    with refused("leaves 0 2"):
        without_leaves(simulate_tree(3, 0), leaves)


@given(grafts())
def test_with_leaves_merges_at_given_points(case):
    """Two points meet at the height of the lowest node above both, or at the higher one where that is above it."""
    tree, nodes, heights, positions = case
    grown = with_leaves(tree, nodes, heights, positions)
    n = grown.n_leaves
    assert n == tree.n_leaves + len(nodes)
    node_of, height_of = np.empty(n, dtype=int), np.zeros(n)
    others = [leaf for leaf in range(n) if leaf not in positions]
    node_of[others] = range(tree.n_leaves)
    node_of[positions], height_of[positions] = nodes, heights
    actual = reference.common_heights(grown)
    for i in range(n):
        for j in range(i):
            expected = max(height_of[i], height_of[j], common_height(tree, node_of[i], node_of[j]))
            assert actual[i, j] == expected, (i, j)


@given(grafts())
def test_with_leaves_and_without_leaves_are_inverse(case):
    tree, nodes, heights, positions = case
    names = [f"new {i}" for i in range(tree.n_leaves + len(nodes))]
    for name, leaf in zip(tree.leaf_names, np.setdiff1d(np.arange(len(names)), positions), strict=True):
        names[leaf] = name
    grown = with_leaves(tree, nodes, heights, positions, names)
    assert grown.leaf_names == tuple(names)
    assert without_leaves(grown, positions) == tree


def test_with_leaves_of_small_tree_by_hand():
    tree = Tree.from_newick("((a:1,b:1):2,c:3);")
    grown = with_leaves(tree, np.array([1]), np.array([0.25]), np.array([3]), "abcd")
    assert heights_of_clades(grown) == {
        frozenset("bd"): 0.25,
        frozenset("abd"): 1.0,
        frozenset("abcd"): 3.0,
    }
    above = with_leaves(tree, np.array([4]), np.array([5.0]), np.array([0]), "dabc")
    assert heights_of_clades(above) == {frozenset("ab"): 1.0, frozenset("abc"): 3.0, frozenset("abcd"): 5.0}
