"""Conversion of trees and samples to other libraries: the same heights, names and clades."""

import sys

import arviz
import networkx as nx
import numpy as np
import pytest

import coaltree as ct
import reference
from coaltree.errors import InputError, MissingDependencyError
from coaltree.tree import convert as libraries
from tree_samples import clade_of, heights_of_clades, related_sample

ODD = ("<script>alert(1)</script>", "a,b", 'it\'s "quoted"', "two\nlines", "🦊")


@pytest.fixture
def tree():
    return ct.simulate_tree(12, 5)


def caterpillar(n):
    children = [(0, 1)] + [(n + k - 1, k + 1) for k in range(1, n - 1)]
    return ct.Tree(children, [0.0] * n + list(range(1, n)))


# -- networkx ----------------------------------------------------------------------------------------------------------


def test_networkx_graph_leads_from_root_to_leaves(tree):
    graph = tree.to_networkx()
    assert nx.is_arborescence(graph)
    far = nx.single_source_dijkstra_path_length(graph, tree.root, weight="length")
    for node in graph:
        assert far[node] == pytest.approx(tree.heights[-1] - graph.nodes[node]["height"])
    leaves = [node for node in graph if graph.out_degree(node) == 0]
    assert [graph.nodes[leaf]["name"] for leaf in leaves] == list(tree.leaf_names)
    clades = {
        frozenset(graph.nodes[leaf]["name"] for leaf in nx.descendants(graph, node) if leaf < tree.n_leaves): facts[
            "height"
        ]
        for node, facts in graph.nodes(data=True)
        if node >= tree.n_leaves
    }
    assert clades == heights_of_clades(tree)


def test_networkx_graph_has_known_support():
    summary = related_sample(8, 20, 1).consensus(0.8)
    assert np.isnan(summary.support).any()
    graph = summary.to_networkx()
    for k, share in enumerate(summary.support):
        assert graph.nodes[8 + k].get("support", np.nan) == pytest.approx(share, nan_ok=True)
    assert "support" not in graph.nodes[0]
    assert "support" not in ct.simulate_tree(3, 0).to_networkx().nodes[4]


# -- dendropy ----------------------------------------------------------------------------------------------------------


def test_dendropy_tree_has_same_clades_and_ages(tree):
    other = tree.to_dendropy()
    assert [taxon.label for taxon in other.taxon_namespace] == list(tree.leaf_names)
    ages = {clade_of(node): node.age for node in other.preorder_node_iter() if not node.is_leaf()}
    assert ages == heights_of_clades(tree)
    other.calc_node_ages()  # from its branches
    for node in other.preorder_node_iter():
        if not node.is_leaf():
            assert node.age == pytest.approx(ages[clade_of(node)])
    back = ct.Tree.from_newick(other.as_string("newick", suppress_rooting=True), tree.leaf_names)
    np.testing.assert_allclose(back.merge_heights, tree.merge_heights)
    assert ct.robinson_foulds(back, tree) == 0


def test_dendropy_tree_has_support_annotations():
    summary = related_sample(8, 20, 1).mcc()
    values = {
        clade_of(node): node.annotations.get_value("support")
        for node in summary.to_dendropy().preorder_node_iter()
        if not node.is_leaf()
    }
    expected = {
        frozenset(summary.leaf_names[i] for i in summary.leaves_below(8 + k)): s for k, s in enumerate(summary.support)
    }
    assert values == expected


# -- tskit -------------------------------------------------------------------------------------------------------------


def test_tskit_sequence_has_same_common_ancestors(tree):
    sequence = tree.to_tskit()
    assert sequence.num_trees == 1
    assert sequence.samples().tolist() == list(range(12))
    common = reference.common_heights(tree)
    only = sequence.first()
    for i in range(12):
        assert sequence.node(i).metadata == {"name": tree.leaf_names[i]}
        for j in range(i):
            assert only.tmrca(i, j) == common[i, j]


def test_tskit_joins_merges_of_equal_height():
    tree = ct.Tree([[0, 1], [4, 2], [5, 3]], [0, 0, 0, 0, 1.0, 1.0, 2.0])
    sequence = tree.to_tskit()
    assert sequence.num_nodes == 6
    assert sorted(sequence.first().children(4)) == [0, 1, 2]
    assert sequence.first().tmrca(0, 3) == 2.0


def test_tskit_rejects_merges_at_height_zero():
    tree = ct.Tree([[0, 1], [2, 3]], [0.0] * 5)
    with pytest.raises(InputError, match=r"^2 merge.* height 0.*noise=0"):
        tree.to_tskit()


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_tskit_advice_on_zero_heights_works():
    X = np.repeat([[0.0], [1.0], [5.0]], 3, axis=0) + np.tile([[0.0], [1e-3], [1e-3]], (3, 1))
    with pytest.raises(InputError, match="at height 0"):
        ct.CoalescentClustering(noise=0.0).fit(X).tree_.to_tskit()
    tree = ct.CoalescentClustering(noise=0.0).fit(np.unique(X, axis=0)).tree_
    assert tree.to_tskit().num_samples == 6
    assert (
        ct.CoalescentClustering().fit(X).tree_.to_tskit().num_samples == 9
    )  # with noise, no two merges are at one height


# -- all of them -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["to_networkx", "to_dendropy", "to_tskit"])
def test_conversions_handle_odd_names_and_extreme_trees(method):
    odd = ct.simulate_tree(len(ODD), 1, leaf_names=ODD)
    actual = getattr(odd, method)()
    if method == "to_networkx":
        names = [actual.nodes[i]["name"] for i in range(len(ODD))]
    elif method == "to_dendropy":
        names = [taxon.label for taxon in actual.taxon_namespace]
    else:
        names = [actual.node(i).metadata["name"] for i in range(len(ODD))]
    assert names == list(ODD)
    getattr(ct.simulate_tree(1, 0), method)()
    getattr(caterpillar(3000), method)()


@pytest.mark.parametrize(
    ("library", "method"),
    [
        ("networkx", "to_networkx"),
        ("dendropy", "to_dendropy"),
        ("tskit", "to_tskit"),
        ("xarray", "to_xarray"),
        ("arviz", "to_arviz"),
    ],
)
def test_missing_library_has_install_hint(monkeypatch, library, method):
    monkeypatch.setitem(sys.modules, library, None)
    thing = related_sample(4, 3, 0)
    thing = thing if hasattr(thing, method) else thing.trees[0]
    with pytest.raises(
        MissingDependencyError, match=rf'{library}, which is not installed; run: pip install "coaltree\[interop\]"'
    ):
        getattr(thing, method)()


# -- samples -----------------------------------------------------------------------------------------------------------


def test_arviz_data_of_sample():
    sample = related_sample(6, 15, 3, log_joints=np.arange(15.0))
    data = sample.to_xarray()
    assert dict(data.sizes) == {"tree": 15}
    assert set(data) == {"weight", "root_height", "total_length", "log_joint"}
    for k, tree in enumerate(sample.trees):
        assert float(data["root_height"][k]) == tree.heights[-1]
        assert float(data["total_length"][k]) == pytest.approx(
            sum(tree.heights[tree.parents[i]] - tree.heights[i] for i in range(10))
        )
    np.testing.assert_array_equal(data["weight"], sample.weights)
    assert "log_joint" not in related_sample(6, 15, 3).to_xarray()


def test_arviz_data_of_smc_runs():
    result = ct.smc([[0.0], [0.3], [3.0]], ct.Brownian(), n_particles=5, n_runs=2, random_state=0)
    data = result.to_xarray()
    assert data["run"].to_numpy().tolist() == [0] * 5 + [1] * 5
    assert data.attrs["log_evidence"] == result.log_evidence
    stats = result.to_arviz()["sample_stats"]
    assert set(stats.data_vars) == {"lp", "run"}


def test_arviz_draws_follow_weights():
    sample = related_sample(6, 40, 3, log_joints=np.arange(40.0))
    actual = sample.to_arviz()
    heights = actual["posterior"]["root_height"]
    assert dict(heights.sizes) == {"chain": 1, "draw": 40}
    draws = actual["sample_stats"]["lp"].to_numpy().ravel().astype(int)  # which trees they are
    counts = np.bincount(draws, minlength=40)
    assert np.all(np.abs(counts - 40 * sample.weights) < 1)
    np.testing.assert_array_equal(heights.to_numpy().ravel(), [sample.trees[k].heights[-1] for k in draws])
    equal = ct.TreeSample(sample.trees).to_arviz()
    np.testing.assert_array_equal(
        equal["posterior"]["root_height"].to_numpy().ravel(), [tree.heights[-1] for tree in sample.trees]
    )


@pytest.mark.parametrize("version", ["0.23.4", "1.3.0"])
def test_both_arviz_versions_are_supported(monkeypatch, version):
    calls = []
    monkeypatch.setattr(libraries, "version", lambda package: version)
    monkeypatch.setattr(arviz, "from_dict", lambda *groups, **named: calls.append((groups, named)))
    related_sample(6, 5, 3).to_arviz()
    ((groups, named),) = calls
    assert set(named if version < "1" else groups[0]) == {"posterior"}
    assert len(groups) == (version > "1")


def test_arviz_draws_skip_trees_of_weight_zero():
    trees = [ct.simulate_tree(4, seed) for seed in range(3)]
    actual = ct.TreeSample(trees, [0.0, 1.0, 0.0]).to_arviz()
    assert set(actual["posterior"]["root_height"].to_numpy().ravel()) == {trees[1].heights[-1]}
