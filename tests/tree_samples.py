"""Samples of related trees for the tests, and clades by the definition."""

import warnings

import numpy as np

import coaltree as ct
from coaltree.tree.sample import TreeSample

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import dendropy

NAMES = "abcdefghijklmnop"


def related_trees(n, n_trees, seed, names=None):
    """Trees that share many of their clades, some of them equal: agglomerations of one table with noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    trees = []
    for _ in range(n_trees):
        if trees and rng.random() < 0.2:
            trees.append(trees[rng.integers(len(trees))])
            continue
        noisy = x + 0.3 * rng.normal(size=n)
        live, children, heights = {i: noisy[i] for i in range(n)}, [], []
        while len(live) > 1:
            pairs = [(abs(live[i] - live[j]), i, j) for i in live for j in live if i < j]
            gap, i, j = min(pairs)
            node = n + len(children)
            children.append((i, j))
            heights.append(max([gap, *heights[-1:]]))
            live[node] = (live.pop(i) + live.pop(j)) / 2
        trees.append(ct.Tree(children, [0.0] * n + heights, names or NAMES[:n]))
    return trees


def related_sample(n, n_trees, seed, **more):
    weights = np.random.default_rng(seed + 1).integers(1, 6, size=n_trees)
    return TreeSample(related_trees(n, n_trees, seed), weights, **more)


def heights_of_clades(tree, node=None):
    """Height of every clade of at least two leaves, by recursion."""
    return {names: height for names, height in _below(tree, tree.root if node is None else node) if len(names) > 1}


def _below(tree, node):
    if node < tree.n_leaves:
        return [(frozenset([tree.leaf_names[node]]), 0.0)]
    left, right = (_below(tree, child) for child in tree.children[node - tree.n_leaves])
    return [*left, *right, (left[-1][0] | right[-1][0], tree.heights[node])]


def clade_of(node):
    return frozenset(leaf.taxon.label for leaf in node.leaf_iter())


def in_dendropy(trees, weights=None):
    """The trees as a dendropy list."""
    space = dendropy.TaxonNamespace(trees[0].leaf_names)
    actual = dendropy.TreeList(taxon_namespace=space)
    for k, tree in enumerate(trees):
        other = dendropy.Tree.get(data=tree.to_newick(), schema="newick", taxon_namespace=space, rooting="force-rooted")
        other.weight = 1.0 if weights is None else float(weights[k])
        actual.append(other)
    return actual
