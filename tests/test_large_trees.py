"""Trees with many leaves and of shapes that are hard on recursion."""

import csv
import io
import sys

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, is_valid_linkage

from coaltree import metrics
from coaltree.persist.result_files import clusters_csv, dendrogram_png
from coaltree.tree.clades import robinson_foulds
from coaltree.tree.coalescent import simulate_tree
from coaltree.tree.cut import cut_by_count, cut_by_height, cut_by_ratio
from coaltree.tree.edit import without_leaves
from coaltree.tree.tree import Tree

N = 50_000
NAMES = [f"row {i}" for i in range(N)]


def caterpillar(n, names=None):
    """Every merge adds one leaf."""
    children = np.empty((n - 1, 2), dtype=np.intp)
    children[0] = 0, 1
    children[1:, 0] = np.arange(n, 2 * n - 2)
    children[1:, 1] = np.arange(2, n)
    return Tree(children, np.concatenate([np.zeros(n), np.arange(1.0, n)]), names)


def steps(n, names=None):
    """Merges of only four heights, 0 among them."""
    tree = simulate_tree(n, 1)
    heights = np.floor(np.linspace(0, 3, n - 1))
    return Tree(tree.children, np.concatenate([np.zeros(n), heights]), names)


@pytest.fixture(scope="module", params=["kingman", "caterpillar", "steps"])
def tree(request):
    assert 10 * sys.getrecursionlimit() < N
    if request.param == "kingman":
        return simulate_tree(N, 0, leaf_names=NAMES)
    return {"caterpillar": caterpillar, "steps": steps}[request.param](N, NAMES)


def same_partition(a, b):
    pairs = np.unique(np.stack([a, b]), axis=1).shape[1]
    return pairs == len(np.unique(a)) == len(np.unique(b))


def test_newick_round_trip_of_large_trees(tree):
    back = Tree.from_newick(tree.to_newick(quote_names=True))
    np.testing.assert_allclose(back.merge_heights, tree.merge_heights, rtol=1e-9)
    # The text has the leaves as they are drawn, and a tree is the stretches of leaves below its merges.
    assert back.leaf_names == tuple(NAMES[leaf] for leaf in tree.leaf_order.tolist())
    stretches = [np.sort(t.first_positions[N:] * N + t.leaf_counts[N:] - 1) for t in (tree, back)]
    np.testing.assert_array_equal(*stretches)


def test_distance_ignores_order_of_children(tree):
    mirrored = Tree(tree.children[:, ::-1], tree.heights, NAMES)
    assert robinson_foulds(tree, mirrored) == 0


def test_linkage_and_cuts_of_large_trees(tree):
    Z = tree.to_linkage()
    assert is_valid_linkage(Z)
    assert Tree.from_linkage(Z, NAMES) == tree
    middle = float(tree.merge_heights[N // 2])
    for height in (0.0, middle, float(tree.merge_heights[-10])):
        labels = cut_by_height(tree, height)
        assert same_partition(labels, fcluster(Z, height, criterion="distance"))
        np.testing.assert_array_equal(labels, cut_by_ratio(tree, np.where(tree.merge_heights <= height, 1.0, -1.0)))
    labels = cut_by_count(tree, 5000)
    assert labels.max() == 4999
    firsts = np.unique(labels, return_index=True)[1]
    assert np.all(np.diff(firsts) > 0)


def test_scores_and_plots_of_large_trees(tree):
    labels = cut_by_count(tree, 7)
    assert metrics.dendrogram_purity(tree, labels) == 1.0
    assert metrics.subtree_score(tree, labels) == 1.0
    rows = csv.reader(io.StringIO(clusters_csv(tree.leaf_names, labels)))
    assert sum(1 for _ in rows) == N + 1
    assert f"{N:,} leaves" in tree._repr_html_()
    assert dendrogram_png(tree, labels, "large").startswith(b"\x89PNG")


def test_without_leaves_of_large_trees(tree):
    half = without_leaves(tree, range(0, N, 2))
    assert half.leaf_names == tuple(NAMES[1::2])
    assert half.heights[-1] <= tree.heights[-1]


def test_distance_of_different_large_trees():
    n = 20_000
    # Two leaves far from each other change places: the clades that hold only one of them are others then.
    a = caterpillar(n)
    names = list(a.leaf_names)
    names[10], names[-1] = names[-1], names[10]
    assert robinson_foulds(a, a.rename(names)) == 2 * (n - 2 - 9)
