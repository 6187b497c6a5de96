"""TreeSample: weights, clades, summaries, distances and effective sizes, against their definitions and DendroPy."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coaltree as ct
from coaltree.errors import InputError
from coaltree.tree.clades import robinson_foulds
from coaltree.tree.cut import cut_by_count, cut_by_height, cut_by_ratio
from coaltree.tree.sample import TreeSample
from coaltree.tree.summary import order_merges
from named import refused
from tree_samples import NAMES, clade_of, dendropy, heights_of_clades, in_dendropy, related_sample, related_trees

seeds = st.integers(0, 10**6)


def shares_by_definition(sample):
    shares = {}
    for tree, weight in zip(sample.trees, sample.weights, strict=True):
        for clade in heights_of_clades(tree):
            shares[clade] = shares.get(clade, 0.0) + weight
    return shares


def weighted_heights(sample, clade):
    """Heights of a clade in the trees that have it, and their weights."""
    values = [
        (heights_of_clades(tree)[clade], weight)
        for tree, weight in zip(sample.trees, sample.weights, strict=True)
        if clade in heights_of_clades(tree) and weight > 0
    ]
    return np.array(values).T


def supported_clades(summary):
    """Support of the clades that a summary tree claims, by recursion."""
    heights = heights_of_clades(summary)
    by_merge = [
        frozenset(summary.leaf_names[leaf] for leaf in summary.leaves_below(node))
        for node in range(summary.n_leaves, summary.n_nodes)
    ]
    assert set(by_merge) == set(heights)
    return {clade: share for clade, share in zip(by_merge, summary.support, strict=True) if not np.isnan(share)}


# -- the sample itself ---------------------------------------------------------------------------


def test_sample_attributes():
    tree, other = ct.simulate_tree(4, 0), ct.simulate_tree(4, 1)
    sample = TreeSample([tree, other, ct.simulate_tree(4, 0)], [1, 2, 5], log_joints=[0, 3, 3])
    assert sample.trees == (tree, other, tree)
    assert sample.weights.tolist() == [0.125, 0.25, 0.625]
    assert (len(sample), sample.n_distinct, sample.n_leaves, sample.leaf_names) == (3, 2, 4, ("0", "1", "2", "3"))
    assert sample.effective_size == pytest.approx(1 / (0.75**2 + 0.25**2))  # equal trees count as one
    assert sample.best() is other
    assert repr(sample) == "<TreeSample: 3 trees (2 distinct) of 4 leaves>"
    assert TreeSample([tree] * 4).weights.tolist() == [0.25] * 4


@pytest.mark.parametrize("weights", [[1e308, 1e308], [5e-324, 5e-324], [3, 3]])
def test_only_proportions_of_weights_matter(weights):
    assert TreeSample([ct.simulate_tree(3, 0)] * 2, weights).weights.tolist() == [0.5, 0.5]


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=30).filter(any))
def test_normalised_weights_are_unchanged(weights):
    trees = [ct.simulate_tree(2, 0)] * len(weights)
    once = TreeSample(trees, weights).weights
    np.testing.assert_allclose(once, np.array(weights) / np.sum(weights), rtol=1e-12, atol=1e-300)
    assert TreeSample(trees, once).weights.tolist() == once.tolist()


def test_sample_is_read_only():
    sample = related_sample(4, 3, 0, log_joints=[1, 2, 3], log_ratios=np.zeros((3, 3)))
    for again in (sample, pickle.loads(pickle.dumps(sample)), copy.deepcopy(sample)):
        with pytest.raises(AttributeError, match="cannot be changed: 'weights'"):
            again.weights = [1]
        with pytest.raises(AttributeError, match="not deleted"):
            del again._trees
        for array in (again.weights, again.log_joints, again.log_ratios):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 2


def test_sample_copies_its_input():
    weights, joints = np.array([0.5, 0.5]), np.array([1.0, 2.0])
    sample = TreeSample([ct.simulate_tree(3, 0)] * 2, weights, log_joints=joints)
    weights[0] = joints[0] = 9
    assert sample.weights.tolist() == [0.5, 0.5]
    assert sample.log_joints.tolist() == [1, 2]


def test_pickled_sample_keeps_attributes():
    sample = related_sample(5, 4, 0, log_joints=[1, 2, 3, 4], log_ratios=np.ones((4, 4)))
    sample.consensus()
    back = pickle.loads(pickle.dumps(sample))
    assert back.trees == sample.trees
    for name in ("weights", "log_joints", "log_ratios"):
        assert np.array_equal(getattr(back, name), getattr(sample, name))
    assert not {"_clades", "_places"} & set(back.__dict__)
    assert back.consensus() == sample.consensus()


TREE = ct.Tree.from_newick("((a:1,b:1):2,c:3);")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"trees": []}, "trees empty"),
        ({"trees": TREE}, "trees Tree sequence"),
        ({"trees": [TREE, "x"]}, "Tree 1 sample str"),
        (
            {"trees": [TREE, TREE, TREE.reorder("bac")]},
            "Tree 2 sample leaves order tree 0",
        ),
        (
            {"trees": [TREE, TREE.rename("abd")]},
            "Tree 1 sample leaves tree 0 lacks c d",
        ),
        ({"weights": [1]}, "weights shape (1,) trees (2,)"),
        ({"weights": [1, -1]}, "weight tree 1 -1"),
        ({"weights": [np.nan, 1]}, "weight tree 0 nan"),
        ({"weights": [1, np.inf]}, "weight tree 1 inf"),
        ({"weights": [0, 0]}, "weights 0"),
        ({"weights": ["a", "b"]}, "weights array"),
        ({"log_joints": [1.0]}, "log_joints shape"),
        ({"log_joints": [1.0, np.nan]}, "log_joints NaN tree 1"),
        ({"log_ratios": [[1.0], [1.0]]}, "log_ratios shape 2 1 trees"),
        ({"log_ratios": [[1.0, 2.0], [np.nan, 1.0]]}, "log_ratios NaN tree 1"),
    ],
)
def test_invalid_samples_are_rejected(arguments, message):
    with refused(message):
        TreeSample(**{"trees": [TREE, TREE], **arguments})


def test_invalid_sample_queries_are_rejected():
    sample = TreeSample([TREE])
    for threshold in (0.4, 1.0, np.nan, "half", None):
        with pytest.raises(InputError, match=r"threshold is .* at least 0\.5"):
            sample.consensus(threshold)
    with refused("heights keep mean median"):
        sample.consensus(heights="keep")
    with pytest.raises(InputError, match="heights is 'modal'"):
        sample.mcc("modal")
    with pytest.raises(InputError, match="log_joints"):
        sample.best()
    with pytest.raises(InputError, match="n_clusters and height"):
        sample.co_clustering(n_clusters=2, height=1.0)
    with pytest.raises(InputError, match="log_ratios"):
        sample.co_clustering()
    with pytest.raises(InputError, match="no row named 'x'"):
        sample.merge_heights("a", "x")
    for row in (3, -1, 1.0, True, None):
        with pytest.raises(InputError, match="from 0 to 2"):
            sample.merge_heights(row, 0)


# -- clades ------------------------------------------------------------------------------------


@given(st.integers(1, 9), st.integers(1, 12), seeds)
def test_clade_probabilities_match_shares(n, n_trees, seed):
    sample = related_sample(n, n_trees, seed)
    actual = sample.clade_probabilities()
    expected = shares_by_definition(sample)
    assert actual.keys() == expected.keys()
    for clade, share in actual.items():
        assert share == pytest.approx(expected[clade], rel=1e-12)
        in_all = all(clade in heights_of_clades(tree) for tree in sample.trees)
        assert (share == 1.0) == in_all
    assert list(actual.values()) == sorted(actual.values(), reverse=True)
    if n > 1:
        assert next(iter(actual)) == frozenset(NAMES[:n])


def test_zero_weight_trees_are_ignored():
    trees = [ct.Tree.from_newick(text, "abc") for text in ("((a:1,b:1):1,c:2);", "((a:1,c:1):1,b:2);")]
    sample = TreeSample(trees, [1, 0])
    assert frozenset("ac") not in sample.clade_probabilities()
    assert sample.mcc() == TreeSample(trees[:1]).mcc()
    assert TreeSample(trees[::-1], [0, 1]).mcc() == sample.mcc()
    assert sample.distances().tolist() == [[0, 2], [2, 0]]


@given(st.integers(1, 9), st.integers(1, 8), seeds)
def test_distances_match_pairs(n, n_trees, seed):
    sample = related_sample(n, n_trees, seed)
    for normalized in (False, True):
        expected = [[robinson_foulds(a, b, normalized=normalized) for a in sample.trees] for b in sample.trees]
        np.testing.assert_allclose(sample.distances(normalized=normalized), expected, atol=1e-12)


# -- consensus ---------------------------------------------------------------------------------


@given(st.integers(3, 9), st.integers(1, 15), seeds, st.sampled_from([0.5, 0.6, 0.8]))
def test_consensus_matches_dendropy(n, n_trees, seed, threshold):
    sample = related_sample(n, n_trees, seed)
    # dendropy's limit is inclusive.
    other = in_dendropy(sample.trees, sample.weights).consensus(min_freq=threshold + 1e-6)
    tree = sample.consensus(threshold)
    shares = shares_by_definition(sample)
    expected = {clade for clade, share in shares.items() if share > threshold + 1e-9}
    actual = supported_clades(tree)
    assert set(actual) == expected
    assert {clade_of(node) for node in other.internal_nodes()} == expected
    for clade, share in actual.items():
        assert share == pytest.approx(shares[clade], rel=1e-12)
    read = dendropy.Tree.get(data=tree.to_newick(), schema="newick")
    assert {clade_of(node) for node in read.internal_nodes()} == expected


@given(st.integers(2, 9), st.integers(1, 15), seeds, st.sampled_from(["mean", "median"]))
def test_consensus_heights_are_clade_heights(n, n_trees, seed, heights):
    sample = related_sample(n, n_trees, seed)
    for tree in (sample.consensus(heights=heights), sample.mcc(heights)):
        expected = {}
        supported = supported_clades(tree)
        for clade in sorted(supported, key=len):
            values, weights = weighted_heights(sample, clade)
            # Weights are multiples of one number, so a weighted median is the median of repeated values.
            counts = np.round(weights / np.min(sample.weights) * 60).astype(int)
            summary_heights = (
                np.average(values, weights=weights) if heights == "mean" else np.median(np.repeat(values, counts))
            )
            expected[clade] = max([summary_heights, *(height for inner, height in expected.items() if inner < clade)])
        summary_heights = heights_of_clades(tree)
        for clade, height in summary_heights.items():
            above = min((other for other in supported if clade <= other), key=len)
            assert height == pytest.approx(expected[above], rel=1e-9)


def test_consensus_parents_are_not_below_children():
    # {a, b} is high in the trees where it exists, lower than that is {a, b, c} on the whole.
    texts = ["(((a:5,b:5):1,c:6):4,d:10);", "(((a:5,b:5):1,c:6):4,d:10);", *["(((a:1,c:1):1,b:2):8,d:10);"] * 3]
    trees = [ct.Tree.from_newick(text, "abcd") for text in texts]
    tree = TreeSample(trees, [0.3, 0.3, 0.2, 0.1, 0.1]).consensus()
    assert tree.mean_heights.tolist() == pytest.approx([5.0, 4.4, 10.0])
    assert tree.merge_heights.tolist() == pytest.approx([5.0, 5.0, 10.0])
    assert tree.support.tolist() == pytest.approx([0.6, 1.0, 1.0])


def test_consensus_excludes_clades_of_half():
    texts = ["((a:1,b:1):1,c:2);"] * 5 + ["((a:1,c:1):1,b:2);"] * 5
    sample = TreeSample([ct.Tree.from_newick(text, "abc") for text in texts], [0.1] * 10)
    tree = sample.consensus()
    assert np.isnan(tree.support).tolist() == [True, False]
    assert tree.merge_heights.tolist() == [2.0, 2.0]
    assert tree.to_newick() == "(a:2.0,b:2.0,c:2.0)1;"


# -- maximum clade credibility -----------------------------------------------------------------


@given(st.integers(3, 9), st.integers(1, 15), seeds)
def test_mcc_matches_dendropy_and_definition(n, n_trees, seed):
    sample = related_sample(n, n_trees, seed)
    shares = shares_by_definition(sample)
    scores = [sum(np.log(shares[clade]) for clade in heights_of_clades(tree)) for tree in sample.trees]
    best = next(k for k, score in enumerate(scores) if score > max(scores) - 1e-9)
    remaining = sample.mcc("keep")
    assert ct.Tree(remaining.children, remaining.heights, remaining.leaf_names) == sample.trees[best]
    for clade, share in supported_clades(remaining).items():
        assert share == pytest.approx(shares[clade])
    # dendropy leaves out clades of all leaves but one, so another leaf is put outside.
    outside = [ct.Tree.from_newick(f"({tree.to_newick()[:-1]}:1,z:{tree.heights[-1] + 1});") for tree in sample.trees]
    other = in_dendropy(outside, sample.weights).maximum_product_of_split_support_tree()
    assert other.log_product_of_split_support == pytest.approx(max(scores), abs=1e-9)
    assert set(heights_of_clades(sample.mcc())) == set(heights_of_clades(remaining))


def test_mcc_prefers_first_of_ties():
    trees = [ct.Tree.from_newick(f"((a:{h},b:{h}):1,c:{h + 1});") for h in (3, 1, 2)]
    tree = TreeSample(trees, [1, 5, 1]).mcc("keep")
    assert tree.heights.tolist() == trees[0].heights.tolist()


@given(seeds)
def test_mcc_takes_first_tree_of_equal_clades(seed):
    rng = np.random.default_rng(seed)
    sample = related_sample(9, 8, seed)
    best = sample.mcc("keep")
    children, heights, _ = order_merges(best.children, rng.exponential(size=8))
    pair = [ct.Tree(best.children, best.heights, NAMES[:9]), ct.Tree(children, heights, NAMES[:9])]
    for first, second in (pair, pair[::-1]):
        actual = TreeSample([first, second, *sample.trees], [5, 5, *rng.random(8)]).mcc("keep")
        assert actual.heights.tolist() == first.heights.tolist()


# -- pairs of rows -----------------------------------------------------------------------------


@given(st.integers(1, 9), st.integers(1, 6), seeds)
def test_merge_heights_match_smallest_common_clade(n, n_trees, seed):
    sample = related_sample(n, n_trees, seed)
    for i in range(n):
        for j in range(n):
            pair = {NAMES[i], NAMES[j]}
            expected = [
                min((height for clade, height in heights_of_clades(tree).items() if pair <= clade), default=0.0)
                if i != j
                else 0.0
                for tree in sample.trees
            ]
            assert sample.merge_heights(i, np.int64(j)).tolist() == expected
            assert sample.merge_heights(NAMES[i], j).tolist() == expected


@given(st.integers(1, 9), st.integers(1, 8), seeds)
def test_co_clustering_matches_share_of_cuts(n, n_trees, seed):
    rng = np.random.default_rng(seed)
    ratios = rng.normal(size=(n_trees, n - 1))
    sample = related_sample(n, n_trees, seed, log_ratios=ratios)
    k, height = 1 + seed % n, sample.trees[0].heights[-1] / 2
    for value, cuts in (
        (sample.co_clustering(n_clusters=k), [cut_by_count(tree, k) for tree in sample.trees]),
        (sample.co_clustering(height=height), [cut_by_height(tree, height) for tree in sample.trees]),
        (sample.co_clustering(), [cut_by_ratio(*case) for case in zip(sample.trees, ratios, strict=True)]),
    ):
        together = np.array([np.equal.outer(labels, labels) for labels in cuts])
        np.testing.assert_allclose(value, np.tensordot(sample.weights, together, 1), atol=1e-12)
        assert np.array_equal(value == 1, together.all(axis=0))
        assert np.array_equal(value, value.T)


def test_equal_trees_are_cut_once(monkeypatch):
    tree, other = related_trees(6, 1, 0)[0], related_trees(6, 1, 5)[0]
    sample = TreeSample([tree, other, tree, tree], log_ratios=np.zeros((4, 5)))
    cuts = []
    monkeypatch.setattr("coaltree.tree.cut.cut_by_ratio", lambda *case: cuts.append(case) or cut_by_ratio(*case))
    together = sample.co_clustering()
    assert len(cuts) == 2
    assert np.array_equal(together, np.ones((6, 6)))
    sample = TreeSample([tree, other, tree, tree], log_ratios=[[-1.0] * 5, [1.0] * 5, [-1.0] * 5, [-1.0] * 5])
    np.testing.assert_allclose(sample.co_clustering(), 0.25 + 0.75 * np.eye(6))


def test_sample_of_one_leaf():
    sample = TreeSample([ct.Tree([], [0.0], ["a"])] * 2, log_ratios=np.empty((2, 0)))
    assert sample.clade_probabilities() == {}
    assert sample.consensus().n_leaves == sample.mcc().n_leaves == 1
    assert sample.co_clustering().tolist() == [[1.0]]
    assert sample.distances(normalized=True).tolist() == [[0, 0], [0, 0]]
    assert sample.merge_heights("a", 0).tolist() == [0, 0]


def test_sample_of_deep_trees():
    n = 3_000
    children = [(0, 1)] + [(n + k, k + 2) for k in range(n - 2)]
    tree = ct.Tree(children, np.r_[np.zeros(n), np.arange(1.0, n)])
    sample = TreeSample([tree, ct.simulate_tree(n, 0), tree])
    assert np.nanmin(sample.consensus().support) == pytest.approx(2 / 3)
    assert sample.mcc("keep").children.tolist() == tree.children.tolist()
    assert TreeSample.from_nexus(sample.to_nexus()).trees[0].children.tolist() == tree.children.tolist()


# -- effective sample size of the topologies -------------------------------------------------------


def draws_of_topologies(n_topologies, n_draws, seed):
    """Independent draws of equally probable topologies of five leaves, as numbers and as trees."""
    rng = np.random.default_rng(seed)
    pool, visited = [], set()
    while len(pool) < n_topologies:
        tree = ct.simulate_tree(5, rng)
        if (clades := frozenset(heights_of_clades(tree))) not in visited:
            visited.add(clades)
            pool.append(tree)
    return pool, rng.integers(n_topologies, size=n_draws)


@pytest.mark.parametrize("n_topologies", [2, 3, 10])
def test_topology_ess_of_independent_trees_is_their_number(n_topologies):
    # In 2,000 simulated samples the median was 399, 394 and 369 for 2, 3 and 10 topologies, the smallest 165, 175 and 239.
    pool, draws = draws_of_topologies(n_topologies, 400, n_topologies)
    assert 160 < TreeSample([pool[k] for k in draws]).topology_ess() <= 400


def test_topology_ess_of_repeated_trees_counts_once():
    # 80 independent trees, each five times in a row. In 2,000 simulated samples the estimates were from 41 to 136, median 69.
    pool, draws = draws_of_topologies(10, 80, 3)
    assert 40 < TreeSample([pool[k] for k in draws for _ in range(5)]).topology_ess() < 140


def test_topology_ess_of_separate_modes_is_low():
    # Five batches; one of them is half of each: J = log 2 - log(2) / 5, and four half nats are 4 / 2J trees.
    a, b = draws_of_topologies(2, 0, 0)[0]
    assert TreeSample([a] * 200 + [b] * 200).topology_ess() == pytest.approx(2 / (0.8 * np.log(2)))
    assert TreeSample([a, b] * 200).topology_ess() == pytest.approx(400)


def test_topology_ess_decreases_with_unequal_weights():
    pool, draws = draws_of_topologies(5, 600, 1)
    weights = np.random.default_rng(2).gamma(0.5, size=600)
    allowed = weights.sum() ** 2 / (weights**2).sum()
    assert allowed < 250
    # In 1,000 simulated samples the smallest ratio was 0.63, the median 1.
    assert 0.6 * allowed < TreeSample([pool[k] for k in draws], weights).topology_ess() <= allowed * (1 + 1e-9)
    # The weight of equal neighbours may be split among them or not.
    twice = TreeSample([pool[k] for k in draws for _ in range(2)], np.repeat(weights, 2)).topology_ess()
    once = TreeSample([pool[k] for k in draws], weights).topology_ess()
    assert twice == pytest.approx(once, rel=0.25)


def test_topology_ess_of_smallest_samples():
    tree = ct.simulate_tree(5, 0)
    assert TreeSample([tree]).topology_ess() == 1
    assert TreeSample([tree] * 30).topology_ess() == pytest.approx(30)
    assert TreeSample([tree] * 30, [1] + [0] * 29).topology_ess() == 1
    assert TreeSample([ct.simulate_tree(n, 0) for n in (2, 2)]).topology_ess() == 2
    assert TreeSample([ct.simulate_tree(1, 0)] * 20).topology_ess() == pytest.approx(20)
    two = [tree, ct.simulate_tree(5, 1)]
    assert 1 <= TreeSample(two * 20, [1, 1] + [0] * 38).topology_ess() <= 2
