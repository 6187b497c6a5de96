"""Summary trees: their annotations, and how other programs read them."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coaltree as ct
from coaltree.errors import InputError
from coaltree.tree.sample import TreeSample
from coaltree.tree.summary import order_merges, shortest_interval, weighted_median
from coaltree.tree.tree import SummaryTree
from tree_samples import NAMES, clade_of, dendropy, heights_of_clades, related_sample

seeds = st.integers(0, 10**6)
ANNOTATIONS = ("support", "mean_heights", "median_heights", "height_hpd")
POLYTOMY = TreeSample(
    [
        ct.Tree.from_newick(text, "abcd")
        for text in ("(((a:1,b:1):1,c:2):1,d:3);", "(((a:1,c:1):1,b:2):1,d:3);", "(((b:1,c:1):1,a:2):1,d:3);")
    ]
).consensus()


def summaries(n, n_trees, seed):
    sample = related_sample(n, n_trees, seed)
    return sample, [sample.consensus(), sample.consensus(0.7, "median"), sample.mcc(), sample.mcc("keep")]


# -- medians and intervals ---------------------------------------------------------------------


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(1, 9)), min_size=1, max_size=12))
def test_weighted_median_equals_repeated_values(pairs):
    values, counts = map(np.array, zip(*sorted(pairs), strict=True))
    assert weighted_median(values, counts / counts.sum()) == pytest.approx(np.median(np.repeat(values, counts)))


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30)), min_size=1, max_size=25),
    st.sampled_from([0.5, 0.8, 0.95]),
)
def test_shortest_interval_matches_brute_force(pairs, share):
    values, counts = map(np.array, zip(*sorted(pairs), strict=True))
    holding = [
        (high - low, low)
        for low in values
        for high in values
        if low <= high and counts[(values >= low) & (values <= high)].sum() >= share * counts.sum() - 1e-9
    ]
    width, low = min(holding)
    assert shortest_interval(values.astype(float), counts / counts.sum(), share) == (low, low + width)


@given(st.integers(2, 8), st.integers(1, 25), seeds)
def test_merge_height_summarises_trees_with_its_clade(n, n_trees, seed):
    sample, trees = summaries(n, n_trees, seed)
    results = [heights_of_clades(tree) for tree in sample.trees]
    for tree in trees:
        for k in np.flatnonzero(~np.isnan(tree.support)):
            clade = frozenset(NAMES[leaf] for leaf in tree.leaves_below(n + k))
            pairs = sorted(
                (value[clade], w) for value, w in zip(results, sample.weights, strict=True) if clade in value
            )
            values, weights = map(np.array, zip(*pairs, strict=True))
            assert tree.support[k] == pytest.approx(weights.sum())
            assert tree.mean_heights[k] == pytest.approx(np.average(values, weights=weights))
            assert tree.median_heights[k] == pytest.approx(weighted_median(values, weights))
            assert tree.height_hpd[k].tolist() == pytest.approx(shortest_interval(values, weights))


# -- the tree ----------------------------------------------------------------------------------


def test_unresolved_merge_has_no_annotations():
    assert np.isnan(POLYTOMY.support).tolist() == [True, False, False]
    assert POLYTOMY.merge_heights.tolist() == [2, 2, 3]
    for name in ANNOTATIONS:
        values = getattr(POLYTOMY, name)
        assert np.isnan(values[0]).all()
        assert np.isfinite(values[1:]).all()


def test_summary_of_plain_tree():
    tree = SummaryTree.from_newick("((a:1,b:1):2,c:3);")
    assert type(tree) is SummaryTree
    assert tree.support.tolist() == [1, 1]
    assert tree.mean_heights.tolist() == tree.median_heights.tolist() == [1, 3]
    assert tree.height_hpd.tolist() == [[1, 1], [3, 3]]
    assert repr(tree) == "<SummaryTree: 3 leaves, root height 3>"


def test_annotations_cannot_be_changed():
    for tree in (POLYTOMY, pickle.loads(pickle.dumps(POLYTOMY)), copy.deepcopy(POLYTOMY)):
        for name in ANNOTATIONS:
            with pytest.raises(AttributeError, match="cannot be changed"):
                setattr(tree, name, 1)
            with pytest.raises(ValueError, match="read-only"):
                getattr(tree, name)[0] = 1


def test_summary_tree_equality_and_hash():
    twin = pickle.loads(pickle.dumps(POLYTOMY))
    assert twin == POLYTOMY
    assert hash(twin) == hash(POLYTOMY)
    assert type(twin) is SummaryTree
    plain = ct.Tree(POLYTOMY.children, POLYTOMY.heights, POLYTOMY.leaf_names)
    other = SummaryTree(POLYTOMY.children, POLYTOMY.heights, POLYTOMY.leaf_names)
    assert len({twin, POLYTOMY, plain, other}) == 3
    assert plain != POLYTOMY
    assert plain != POLYTOMY
    assert other != POLYTOMY
    assert POLYTOMY != "tree"


def test_rename_keeps_annotations():
    renamed = POLYTOMY.rename("wxyz")
    assert renamed.leaf_names == tuple("wxyz")
    moved = POLYTOMY.reorder("dbca")
    assert moved.leaf_names == tuple("dbca")
    assert heights_of_clades(moved).items() >= {(frozenset("abc"), 2.0), (frozenset("abcd"), 3.0)}
    for tree in (renamed, moved):
        for name in ANNOTATIONS:
            np.testing.assert_array_equal(getattr(tree, name), getattr(POLYTOMY, name))
    assert moved.reorder("abcd") == POLYTOMY


@pytest.mark.parametrize(
    ("name", "values"),
    [("support", [1.0]), ("mean_heights", 1.0), ("median_heights", [[1.0, 2.0]]), ("height_hpd", [1.0, 2.0])],
)
def test_annotations_of_wrong_length_are_rejected(name, values):
    with pytest.raises(InputError, match=rf"{name} has shape .*; a tree of 2 merges needs \(2,"):
        SummaryTree([[0, 1], [3, 2]], [0, 0, 0, 1, 2], **{name: values})


# -- laying out --------------------------------------------------------------------------------


@given(st.integers(1, 12), seeds)
def test_order_merges_gives_valid_tree_with_same_clades(n, seed):
    rng = np.random.default_rng(seed)
    tree = ct.simulate_tree(n, random_state=seed)
    expected = np.where(rng.random(n - 1) < 0.3, np.nan, rng.exponential(size=n - 1).round(1))
    expected[-1:] = 1.0
    children, heights, order = order_merges(tree.children, expected)
    laid = ct.Tree(children, heights, tree.leaf_names)
    actual = heights_of_clades(laid)
    assert set(actual) == set(heights_of_clades(tree))
    assert sorted(order.tolist()) == list(range(n - 1))
    for k, which in enumerate(order):
        before = frozenset(tree.leaf_names[leaf] for leaf in tree.leaves_below(n + which))
        assert before == frozenset(tree.leaf_names[leaf] for leaf in laid.leaves_below(n + k))
        height = laid.merge_heights[k]
        if np.isnan(expected[which]):
            assert height == laid.heights[laid.parents[n + k]]
        else:
            below = [
                expected[j] for j in range(which) if set(tree.leaves_below(n + j)) < set(tree.leaves_below(n + which))
            ]
            assert height == np.nanmax([expected[which], *below])


# -- text --------------------------------------------------------------------------------------


def test_summary_newick_and_nexus_text():
    assert POLYTOMY.to_newick() == "(d:3.0,(a:2.0,b:2.0,c:2.0)1:1.0)1;"
    assert POLYTOMY.to_newick(support=False) == "(d:3.0,(a:2.0,b:2.0,c:2.0):1.0);"
    tree = SummaryTree([[0, 1], [3, 2]], [0, 0, 0, 1, 2], ["a b", "it's", "c-1"], [2 / 3, 1])
    assert tree.to_newick() == "((a_b:1.0,'it''s':1.0)0.6667:1.0,c-1:2.0)1;"
    assert tree.to_nexus().splitlines()[-3:] == [
        "        ;",
        "tree SUMMARY = [&R] ((1:1.0,2:1.0)[&posterior=0.6666666666666666,height=1.0,height_mean=1.0,height_median=1.0,"
        "height_95%_HPD={1.0,1.0}]:1.0,3:2.0)[&posterior=1.0,height=2.0,height_mean=2.0,height_median=2.0,"
        "height_95%_HPD={2.0,2.0}];",
        "End;",
    ]
    assert SummaryTree([], [0.0], ["a"]).to_newick() == "a;"
    low = SummaryTree([[0, 1], [3, 2]], [0, 0, 0, 1, 2], support=[np.nan, 1])
    assert low.to_newick() == "((0:1.0,1:1.0):1.0,2:2.0)1;"  # a clade of unknown support, no polytomy


def test_resolved_summary_is_read_as_tree():
    tree = related_sample(8, 20, 3).mcc()
    again = ct.Tree.from_newick(tree.to_newick(), tree.leaf_names)
    np.testing.assert_allclose(again.heights, tree.heights, rtol=1e-12)
    assert ct.tree.clades.robinson_foulds(again, tree) == 0
    with pytest.raises(InputError, match="node with 3 children"):
        ct.Tree.from_newick(POLYTOMY.to_newick())


@given(st.integers(2, 9), st.integers(1, 12), seeds)
def test_dendropy_reads_annotations(n, n_trees, seed):
    _, trees = summaries(n, n_trees, seed)
    for tree in trees:
        other = dendropy.Tree.get(data=tree.to_nexus(), schema="nexus", extract_comment_metadata=True)
        assert other.is_rooted
        clades = {}
        for k in np.flatnonzero(~np.isnan(tree.support)):
            clades[frozenset(NAMES[leaf] for leaf in tree.leaves_below(n + k))] = k
        assert {clade_of(node) for node in other.internal_nodes()} == set(clades)
        heights = heights_of_clades(tree)
        for node in other.preorder_node_iter():
            node_heights = heights.get(clade_of(node), 0.0)
            if node.parent_node is not None:
                assert node.edge.length == pytest.approx(
                    heights[clade_of(node.parent_node)] - node_heights, rel=1e-9, abs=1e-12
                )
            if node.is_leaf():
                continue
            k = clades[clade_of(node)]
            values = {note.name: note.value for note in node.annotations}
            assert float(values["posterior"]) == tree.support[k]
            assert float(values["height"]) == tree.merge_heights[k]
            assert float(values["height_mean"]) == tree.mean_heights[k]
            assert float(values["height_median"]) == tree.median_heights[k]
            assert list(map(float, values["height_95%_HPD"])) == tree.height_hpd[k].tolist()


@given(st.integers(2, 9), st.integers(1, 12), seeds)
def test_dendropy_reads_support_as_labels(n, n_trees, seed):
    _, trees = summaries(n, n_trees, seed)
    for tree in trees:
        other = dendropy.Tree.get(data=tree.to_newick(), schema="newick")
        labels = {clade_of(node): float(node.label) for node in other.internal_nodes()}
        for k, share in enumerate(tree.support):
            label = labels.get(frozenset(NAMES[leaf] for leaf in tree.leaves_below(n + k)))
            assert (label is None) == np.isnan(share)
            if label is not None:
                assert label == pytest.approx(share, rel=1e-3)


def test_summary_of_deep_trees():
    n = 20_000
    children = [(0, 1)] + [(n + k, k + 2) for k in range(n - 2)]
    support = np.where(np.arange(n - 1) % 2, 1.0, np.nan)
    tree = SummaryTree(children, np.r_[np.zeros(n), np.arange(1.0, n) + np.isnan(support)], support=support)
    assert tree.to_newick().count("(") == np.isfinite(support).sum() + 1  # the root is always written
    assert tree.to_nexus().count("[&posterior") == np.isfinite(support).sum()


def test_invalid_support_and_intervals_are_rejected():
    with pytest.raises(InputError, match="support holds 2"):
        SummaryTree([[0, 1]], [0, 0, 1], support=[2])
    with pytest.raises(InputError, match="ends below its beginning"):
        SummaryTree([[0, 1]], [0, 0, 1], height_hpd=[[2, 1]])
