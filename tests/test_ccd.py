"""Conditional clade distributions against the enumeration of all topologies."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coaltree as ct
from coaltree.errors import InputError
from coaltree.tree.clades import ConditionalClades
from coaltree.tree.sample import TreeSample
from tree_samples import NAMES, heights_of_clades, related_sample

seeds = st.integers(0, 10**6)


def all_topologies(names):
    """Every binary topology over the names, as a frozenset of its clades of at least two leaves."""
    if len(names) == 1:
        return [frozenset()]
    first, *others = sorted(names)
    results = []
    for size in range(len(others)):
        for chosen in combinations(others, size):
            left = frozenset([first, *chosen])
            right = frozenset(names) - left
            for a in all_topologies(left):
                results.extend(a | b | {frozenset(names)} for b in all_topologies(right))
    return results


def probabilities_by_enumeration(sample):
    """Probability of every topology whose clades are all in the sample."""
    shares = {}
    for tree, weight in zip(sample.trees, sample.weights, strict=True):
        for clade in heights_of_clades(tree):
            shares[clade] = shares.get(clade, 0.0) + weight
    products = {
        topology: math.prod(shares[clade] for clade in topology)
        for topology in all_topologies(sample.leaf_names)
        if all(shares.get(clade, 0) > 0 for clade in topology)
    }
    total = math.fsum(products.values())
    return {topology: product / total for topology, product in products.items()}


def clades_of(tree):
    return frozenset(heights_of_clades(tree))


def tree_of(topology, names):
    """A tree with the given clades."""
    node = {frozenset([name]): k for k, name in enumerate(names)}
    children = []
    for clade in sorted(topology, key=len):
        parts = [part for part in node if part < clade and not any(part < other < clade for other in topology)]
        children.append([node[part] for part in parts])
        node[clade] = len(names) + len(children) - 1
    return ct.Tree(children, [0.0] * len(names) + [float(k + 1) for k in range(len(children))], names)


def prior_sample(n, n_trees, seed):
    rng = np.random.default_rng(seed)
    return TreeSample([ct.simulate_tree(n, rng) for _ in range(n_trees)], rng.integers(0, 4, size=n_trees) + 1e-3)


def read(texts, names, weights=None):
    return TreeSample([ct.Tree.from_newick(text, names) for text in texts], weights)


# -- the distribution ------------------------------------------------------------------------------


def test_enumeration_covers_all_topologies():
    assert [len(set(all_topologies(NAMES[:n]))) for n in range(1, 7)] == [1, 1, 3, 15, 105, 945]


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 6), st.integers(1, 12), seeds, st.booleans())
def test_ccd_matches_enumeration(n, n_trees, seed, from_prior):
    sample = prior_sample(n, n_trees, seed) if from_prior else related_sample(n, n_trees, seed)
    expected = probabilities_by_enumeration(sample)
    clades = ConditionalClades(sample)
    assert clades.n_trees() == len(expected)
    values = {topology: math.exp(clades.log_probability(tree_of(topology, sample.leaf_names))) for topology in expected}
    assert values == pytest.approx(expected)
    assert sum(values.values()) == pytest.approx(1)
    assert clades.entropy() == pytest.approx(-sum(p * math.log(p) for p in expected.values()), abs=1e-12)
    best = clades_of(clades.best_tree())
    assert expected[best] == pytest.approx(max(expected.values()))
    assert clades_of(sample.ccd0()) == best


def test_topologies_with_unsampled_clades_have_probability_zero():
    sample = prior_sample(5, 3, 1)
    possible = probabilities_by_enumeration(sample)
    others = [topology for topology in all_topologies(sample.leaf_names) if topology not in possible]
    assert len(others) > 50
    clades = ConditionalClades(sample)
    assert {clades.log_probability(tree_of(topology, sample.leaf_names)) for topology in others} == {-math.inf}


def test_ccd_includes_unsampled_splits_of_sampled_clades():
    # {a, b, c} and {d, e} both occur, but in no tree do they make up the root.
    texts = ["((((a:1,b:1):1,c:2):1,d:3):1,e:4);", "((((d:1,e:1):1,c:2):1,a:3):1,b:4);"]
    clades = ConditionalClades(read(texts, "abcde"))
    assert clades.log_probability(ct.Tree.from_newick("(((a:1,b:1):1,c:2):1,(d:1,e:1):2);")) > -math.inf
    assert clades.n_trees() == 4  # the two sampled, {a, b, c | d, e} and {a, b | c, d, e}


def test_ccd_ignores_trees_of_weight_zero():
    texts = ["((a:1,b:1):1,c:2);", "((a:1,c:1):1,b:2);"]
    clades = ConditionalClades(read(texts, "abc", [1, 0]))
    assert (clades.n_trees(), clades.n_clades) == (1, 2)
    assert clades.log_probability(ct.Tree.from_newick(texts[1], "abc")) == -math.inf


def test_entropy_of_uniform_topologies():
    texts = ["((a:1,b:1):1,c:2);", "((a:1,c:1):1,b:2);", "((b:1,c:1):1,a:2);"]
    assert ConditionalClades(read(texts, "abc")).entropy() == pytest.approx(math.log(3))
    assert ConditionalClades(read(texts[:1], "abc")).entropy() == 0


@pytest.mark.parametrize("n", [1, 2])
def test_ccd_of_smallest_trees(n):
    tree = ct.simulate_tree(n, 0)
    sample = TreeSample([tree, tree])
    clades = ConditionalClades(sample)
    assert (clades.n_trees(), clades.entropy(), clades.log_probability(tree)) == (1, 0, 0)
    assert clades_of(clades.best_tree()) == clades_of(tree)
    assert sample.ccd0().merge_heights.tolist() == tree.merge_heights.tolist()


def test_ccd_is_invariant_to_leaf_order():
    sample = related_sample(6, 8, 3)
    clades = ConditionalClades(sample)
    tree = sample.trees[0]
    assert clades.log_probability(tree.reorder(tree.leaf_names[::-1])) == clades.log_probability(tree)


def test_log_probability_rejects_invalid_trees():
    texts = ["((a:1,b:1):1,c:2);", "((a:1,c:1):1,b:2);"]
    sample = read(texts, "abc")
    clades = ConditionalClades(sample)
    with pytest.raises(InputError, match="other leaves"):
        clades.log_probability(ct.Tree.from_newick("((a:1,b:1):1,x:2);"))
    with pytest.raises(InputError, match="polytomies"):
        clades.log_probability(sample.consensus())
    with pytest.raises(InputError, match="tree"):
        clades.log_probability("((a:1,b:1):1,c:2);")


# -- the summary tree ------------------------------------------------------------------------------


def test_ccd0_of_equal_trees_is_that_tree():
    tree = ct.simulate_tree(30, 5)
    summary = TreeSample([tree] * 4).ccd0()
    assert clades_of(summary) == clades_of(tree)
    assert summary.merge_heights == pytest.approx(tree.merge_heights)
    assert summary.support.tolist() == [1.0] * 29


def test_ccd0_tree_may_be_unsampled():
    # Half of the trees have {a, b} and the other half {d, e}, more than have any clade that excludes them.
    texts = [
        "(((a:1,b:1):1,c:2):1,((d:1,f:1):1,e:2):1);",
        "(((a:1,b:1):1,c:2):1,((e:1,f:1):1,d:2):1);",
        "(((a:1,c:1):1,b:2):2,((d:2,e:2):1,f:3):1);",
        "(((b:1,c:1):1,a:2):3,((d:3,e:3):1,f:4):1);",
    ]
    sample = read(texts, "abcdef")
    summary = sample.ccd0()
    assert clades_of(summary) == set(map(frozenset, ["ab", "abc", "de", "def", "abcdef"]))
    assert clades_of(summary) not in {clades_of(tree) for tree in sample.trees}
    assert {len(clade): share for clade, (share, *_) in _annotations(summary)} == {2: 0.5, 3: 1.0, 6: 1.0}
    by_clade = {clade: mean for clade, (_, mean, _) in _annotations(summary)}
    assert by_clade[frozenset("ab")] == 1.0
    assert by_clade[frozenset("de")] == 2.5
    assert by_clade[frozenset("abcdef")] == pytest.approx((3 + 3 + 4 + 5) / 4)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 12), st.integers(1, 30), seeds, st.sampled_from(["mean", "median"]))
def test_ccd0_is_at_least_as_credible_as_mcc(n, n_trees, seed, heights):
    sample = related_sample(n, n_trees, seed)
    summary, mcc = sample.ccd0(heights), sample.mcc(heights)
    assert np.log(summary.support).sum() >= np.log(mcc.support).sum() - 1e-9
    # A clade has the same annotation in every summary.
    shares = sample.clade_probabilities()
    of_mcc = dict(_annotations(mcc))
    for clade, (share, mean, median) in _annotations(summary):
        assert share == pytest.approx(shares[clade])
        if clade in of_mcc:
            assert (share, mean, median) == of_mcc[clade]


def _annotations(tree):
    columns = zip(tree.support.tolist(), tree.mean_heights.tolist(), tree.median_heights.tolist(), strict=True)
    for node, column in enumerate(columns, start=tree.n_leaves):
        yield frozenset(tree.leaf_names[leaf] for leaf in tree.leaves_below(node)), column


def test_ccd0_breaks_ties_by_documented_rule():
    texts = ["((b:1,c:1):1,a:2);", "((a:1,c:1):1,b:2);", "((a:1,b:1):1,c:2);"]
    # The parts without row a are {b, c}, {b} and {c}: the smaller ones first, then the earlier row.
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        sample = read([texts[k] for k in order], "abc")
        assert frozenset("ac") in clades_of(sample.ccd0())
    assert frozenset("ab") in clades_of(read([texts[0], texts[2]], "abc").ccd0())


@settings(max_examples=15, deadline=None)
@given(st.integers(3, 8), st.integers(2, 10), seeds)
def test_ccd0_is_invariant_to_sample_order(n, n_trees, seed):
    rng = np.random.default_rng(seed)
    trees = [ct.simulate_tree(n, rng) for _ in range(n_trees)]
    assert clades_of(TreeSample(trees[::-1]).ccd0()) == clades_of(TreeSample(trees).ccd0())


def test_ccd_of_many_leaves_and_clades():
    rng = np.random.default_rng(2)
    base = ct.simulate_tree(150, rng)
    sample = TreeSample([base] * 10 + [ct.simulate_tree(150, rng) for _ in range(40)])
    clades = ConditionalClades(sample)
    assert clades.n_clades > 3000
    assert clades_of(clades.best_tree()) == clades_of(base)
    assert 0 < clades.entropy() < math.log(clades.n_trees())


def test_unknown_heights_option_is_rejected():
    with pytest.raises(InputError, match="heights is 'keep'"):
        related_sample(4, 3, 0).ccd0("keep")


@settings(max_examples=15, deadline=None)
@given(st.integers(3, 6), st.integers(2, 10), seeds)
def test_ccd_weights_act_like_repetitions(n, n_trees, seed):
    rng = np.random.default_rng(seed)
    trees, counts = [ct.simulate_tree(n, rng) for _ in range(n_trees)], rng.integers(0, 4, size=n_trees)
    counts[0] = 1
    weighted = TreeSample(trees, counts)
    repeated = TreeSample([tree for tree, count in zip(trees, counts, strict=True) for _ in range(count)])
    assert ConditionalClades(weighted).entropy() == pytest.approx(ConditionalClades(repeated).entropy(), abs=1e-12)
    assert clades_of(weighted.ccd0()) == clades_of(repeated.ccd0())
    expected = probabilities_by_enumeration(weighted)
    assert expected[clades_of(weighted.ccd0())] == pytest.approx(max(expected.values()))
