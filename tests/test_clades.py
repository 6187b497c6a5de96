"""Clades: numbering, Robinson-Foulds distances, and joining of clades into trees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import coaltree as ct
from coaltree.errors import InputError
from coaltree.tree.clades import clade_masks, join_clades, number_clades, robinson_foulds
from coaltree.tree.sample import TreeSample
from tree_samples import dendropy, heights_of_clades, in_dendropy, related_trees

seeds = st.integers(0, 10**6)


def names_of(mask, tree):
    return frozenset(name for i, name in enumerate(tree.leaf_names) if mask >> i & 1)


@given(st.integers(1, 12), seeds)
def test_clade_masks_match_clades(n, seed):
    tree = ct.simulate_tree(n, random_state=seed)
    values = [names_of(mask, tree) for mask in clade_masks(tree)]
    assert dict(zip(values, tree.merge_heights, strict=True)) == heights_of_clades(tree)


@given(st.integers(2, 12), seeds)
def test_equal_clades_get_equal_numbers(n, seed):
    trees = related_trees(n, 4, seed)
    numbers = number_clades(trees)
    masks = [clade_masks(tree) for tree in trees]
    flat = list(zip(numbers.ravel().tolist(), [mask for value in masks for mask in value], strict=True))
    assert len(set(flat)) == len({number for number, _ in flat}) == len({mask for _, mask in flat})
    firsts = list(dict.fromkeys(number for number, _ in flat))
    assert firsts == list(range(len(firsts)))


@given(st.integers(3, 12), seeds)
def test_robinson_foulds_matches_dendropy_and_definition(n, seed):
    a, b = related_trees(n, 2, seed)
    others = in_dendropy([a, b])
    distance = robinson_foulds(a, b)
    assert distance == len(set(heights_of_clades(a)) ^ set(heights_of_clades(b)))
    assert distance == dendropy.calculate.treecompare.symmetric_difference(*others)
    assert isinstance(distance, int)
    assert robinson_foulds(a, b, normalized=True) == distance / (2 * n - 4)
    assert robinson_foulds(b, a) == distance


def test_robinson_foulds_matches_leaves_by_name():
    a = ct.Tree.from_newick("(((a:1,b:1):1,c:2):1,d:3);")
    b = ct.Tree.from_newick("(d:3,(c:2,(b:1,a:1):1):1);")
    assert a.leaf_names != b.leaf_names
    assert robinson_foulds(a, b) == 0
    assert robinson_foulds(a, ct.Tree.from_newick("((b:1,a:1):2,(c:2,d:2):1);")) == 2


def test_normalized_robinson_foulds_of_farthest_trees_is_one():
    a = ct.Tree.from_newick("((a:1,b:1):1,(c:1,d:1):1);")
    b = ct.Tree.from_newick("((a:1,c:1):1,(b:1,d:1):1);")
    assert robinson_foulds(a, b, normalized=True) == 1.0
    for n in (1, 2):
        tree = ct.simulate_tree(n, random_state=0)
        assert robinson_foulds(tree, tree) == robinson_foulds(tree, tree, normalized=True) == 0


def test_robinson_foulds_ignores_unresolved_merges():
    texts = ["((a:1,b:1):1,c:2);", "((a:1,c:1):1,b:2);", "((b:1,c:1):1,a:2);"]
    trees = [ct.Tree.from_newick(text, "abc") for text in texts]
    star = TreeSample(trees).consensus()
    assert [robinson_foulds(star, tree) for tree in trees] == [1, 1, 1]


@pytest.mark.parametrize(
    ("names", "message"),
    [("abx", "lacks 'c' and has 'x'"), ("xyz", "lacks 'a', 'b', 'c' and has"), ("ab", "lacks 'c'; only trees")],
)
def test_robinson_foulds_rejects_different_leaves(names, message):
    tree = ct.simulate_tree(3, random_state=0, leaf_names="abc")
    with pytest.raises(InputError, match=message):
        robinson_foulds(tree, ct.simulate_tree(len(names), random_state=0, leaf_names=names))


def test_join_clades_resolves_polytomies():
    children, clades = join_clades(5, [[0, 1, 2, 3, 4], [1, 3]])
    assert children.tolist() == [[1, 3], [0, 2], [6, 4], [7, 5]]
    assert clades.tolist() == [1, -1, -1, 0]
    children, clades = join_clades(1, [])
    assert children.shape == (0, 2)
    assert clades.shape == (0,)


def test_robinson_foulds_of_deep_trees():
    n = 5_000
    children = [(0, 1)] + [(n + k, k + 2) for k in range(n - 2)]
    tree = ct.Tree(children, [0.0] * n + list(range(1, n)))
    assert clade_masks(tree)[-1] == (1 << n) - 1
    assert robinson_foulds(tree, tree) == 0


def test_robinson_foulds_rejects_non_trees():
    tree = ct.simulate_tree(3, 0)
    with pytest.raises(InputError, match=r"b is of type ndarray and not a Tree"):
        robinson_foulds(tree, tree.to_linkage())
