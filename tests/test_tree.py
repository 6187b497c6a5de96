"""Trees: validity, error messages, attributes, equality and order of leaves."""

import copy
import pickle
import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coaltree.errors import InputError
from coaltree.tree.tree import Tree, check_tree
from named import refused


def random_tree(n, seed):
    """Join random pairs at random heights, some of them equal."""
    rng = np.random.default_rng(seed)
    live, children = list(range(n)), []
    for k in range(n - 1):
        rng.shuffle(live)
        children.append((live.pop(), live.pop()))
        live.append(n + k)
    heights = np.sort(np.round(rng.exponential(size=n - 1), 1))
    return Tree(children, np.concatenate([np.zeros(n), heights]), [f"leaf {i}" for i in range(n)])


def leaves_in_drawing_order(tree, node):
    """Read the leaves from left to right, by the definition."""
    if node < tree.n_leaves:
        return [node]
    left, right = tree.children[node - tree.n_leaves]
    return leaves_in_drawing_order(tree, left) + leaves_in_drawing_order(tree, right)


trees = st.builds(random_tree, st.integers(1, 12), st.integers(0, 2**32 - 1))


@pytest.mark.parametrize("node", [-1, 5, 1.0, True, None, "a", [0]])
def test_leaves_below_names_a_node_that_does_not_exist(node):
    tree = Tree.from_newick("((a:1,b:1):1,c:2);")
    with pytest.raises(InputError, match="from 0 to 4"):
        tree.leaves_below(node)


@given(trees)
def test_tree_attributes_match_definitions(tree):
    n = tree.n_leaves
    assert tree.n_nodes == 2 * n - 1
    assert tree.root == 2 * n - 2
    assert tree.leaf_order.tolist() == leaves_in_drawing_order(tree, tree.root)
    length = 0.0
    for node in range(tree.n_nodes):
        below = leaves_in_drawing_order(tree, node)
        assert tree.leaf_counts[node] == len(below)
        assert tree.leaves_below(node).tolist() == below
        assert tree.leaf_order[tree.first_positions[node]] == below[0]
        parents = [n + k for k, pair in enumerate(tree.children.tolist()) if node in pair]
        assert [tree.parents[node]] == (parents or [-1])
        if parents:
            length += tree.heights[parents[0]] - tree.heights[node]
    assert tree.total_length == pytest.approx(length)
    assert tree.merge_heights.tolist() == tree.heights.tolist()[n:]


def test_one_leaf_is_valid_tree():
    tree = Tree([], [0.0])
    assert (tree.n_leaves, tree.root, tree.leaf_names, tree.total_length) == (1, 0, ("0",), 0.0)
    assert tree.leaf_order.tolist() == [0]
    assert tree.children.shape == (0, 2)


def test_leaf_names_default_to_row_numbers():
    assert Tree([[0, 1]], [0, 0, 1]).leaf_names == ("0", "1")


@pytest.mark.parametrize(
    ("children", "heights", "names", "message"),
    [
        ([0, 1], [0, 0, 1], None, "children shape (2,)"),
        ([[0, 1, 2]], [0, 0, 1], None, "children shape 1 3"),
        ([[0, 1.5]], [0, 0, 1], None, "numbers"),
        ([[0, np.nan]], [0, 0, 1], None, "numbers"),
        ([["a", "b"]], [0, 0, 1], None, "children"),
        ([[0, 1], [2]], [0, 0, 1], None, "children rows different lengths"),
        (
            [[0, 3], [1, 2]],
            [0] * 3 + [1, 2],
            None,
            "Merge 0 node 3 nodes 2",
        ),
        ([[0, -1]], [0, 0, 1], None, "Merge 0 node -1"),
        ([[0, 0]], [0, 0, 1], None, "Node 0 child 2 times"),
        ([[0, 1], [1, 2]], [0] * 3 + [1, 2], None, "Node 1 child 2 times"),
        ([[0, 1]], [0, 0], None, "heights shape (2,) tree 2 leaves 3 nodes"),
        ([[0, 1]], [0, 0, np.inf], None, "height node 2 inf"),
        ([[0, 1]], [0, np.nan, 1], None, "height node 1 nan"),
        ([[0, 1]], ["0", "0", "1"], None, "heights"),
        ([[0, 1]], [0, 0.5, 1], None, "Leaf 1 height 0.5"),
        ([[0, 1]], [0, 0, -1], None, "Merge 0 height -1 less leaves"),
        ([[0, 1], [3, 2]], [0, 0, 0, 2, 1], None, "Merge 1 height less merge 0 2"),
        ([[0, 1]], [0, 0, 1], ["a"], "1 leaf 2 leaves"),
        ([[0, 1]], [0, 0, 1], ["a", "a"], "leaf 'a'"),
        ([[0, 1]], [0, 0, 1], ["a", ""], "leaf 1 empty"),
    ],
)
def test_invalid_trees_are_rejected(children, heights, names, message):
    with refused(message):
        Tree(children, heights, names)


def test_input_error_is_value_error():
    with pytest.raises(ValueError, match="shape"):
        Tree([[0, 1]], [0, 0])


def test_tree_is_immutable():
    tree = random_tree(4, 0)
    for array in (tree.children, tree.heights, tree.parents, tree.leaf_counts, tree.leaf_order):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    for array in (tree.merge_heights, tree.first_positions, tree.leaves_below(tree.root)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError, match="'root' was not set"):
        tree.root = 1
    with pytest.raises(AttributeError, match="'_heights' was not deleted"):
        del tree._heights


def test_tree_copies_its_input():
    children, heights = np.array([[0, 1]]), np.array([0.0, 0.0, 1.0])
    tree = Tree(children, heights)
    children[0], heights[2] = 7, 7
    assert tree.children.tolist() == [[0, 1]]
    assert tree.heights[2] == 1


@given(trees)
def test_pickled_and_copied_trees_are_equal(tree):
    assert tree.total_length >= 0  # fills a cache, which must not get in the way
    for twin in (pickle.loads(pickle.dumps(tree)), copy.copy(tree), copy.deepcopy(tree)):
        assert twin == tree
        assert hash(twin) == hash(tree)
        assert twin.leaf_order.tolist() == tree.leaf_order.tolist()
        assert not twin.heights.flags.writeable


def test_equality_compares_children_heights_and_names():
    tree = Tree([[0, 1], [3, 2]], [0, 0, 0, 1, 2], ["a", "b", "c"])
    assert tree == Tree([[0, 1], [3, 2]], [0, 0, 0, 1, 2], ["a", "b", "c"])
    assert tree != Tree([[1, 0], [3, 2]], [0, 0, 0, 1, 2], ["a", "b", "c"])
    assert tree != Tree([[0, 1], [3, 2]], [0, 0, 0, 1, 3], ["a", "b", "c"])
    assert tree != Tree([[0, 1], [3, 2]], [0, 0, 0, 1, 2], ["a", "b", "d"])
    assert tree != "((a:1,b:1):1,c:2);"


def test_equal_trees_have_equal_hashes():
    plain, negative = Tree([[0, 1]], [0.0, 0.0, 0.0]), Tree([[0, 1]], [-0.0, 0.0, -0.0])
    assert plain == negative
    assert hash(plain) == hash(negative)


def test_rename_keeps_topology():
    tree = random_tree(5, 1)
    renamed = tree.rename(list("vwxyz"))
    assert renamed.leaf_names == tuple("vwxyz")
    assert np.array_equal(renamed.children, tree.children)
    with pytest.raises(InputError, match="4 leaf names were given for 5 leaves"):
        tree.rename(list("abcd"))


@given(trees, st.randoms(use_true_random=False))
def test_reorder_changes_only_leaf_order(tree, random):
    names = list(tree.leaf_names)
    random.shuffle(names)
    moved = tree.reorder(names)
    assert list(moved.leaf_names) == names
    assert np.array_equal(moved.heights, tree.heights)
    for node in range(tree.n_leaves, tree.n_nodes):
        before = [tree.leaf_names[leaf] for leaf in tree.leaves_below(node)]
        assert [moved.leaf_names[leaf] for leaf in moved.leaves_below(node)] == before
    assert moved.reorder(tree.leaf_names) == tree


def test_reorder_rejects_wrong_names():
    tree = Tree([[0, 1], [3, 2]], [0, 0, 0, 1, 2], ["a", "b", "c"])
    with pytest.raises(InputError, match="missing 'b'; unknown 'x'"):
        tree.reorder(["a", "x", "c"])
    with pytest.raises(InputError, match="2 leaf names were given for 3 leaves"):
        tree.reorder(["a", "b"])
    big = random_tree(9, 0)
    with refused("missing leaf 0 4 unknown"):
        big.reorder([str(i) for i in range(9)])


def test_deep_tree_attributes_need_no_recursion():
    n = 5000
    children = [(0, 1)] + [(n + k - 1, k + 1) for k in range(1, n - 1)]
    tree = Tree(children, [0.0] * n + list(range(1, n)))
    assert tree.leaf_order.tolist() == list(range(n))
    assert tree.total_length == pytest.approx(sum(range(1, n)) + (n - 1))


def test_repr_is_one_line():
    assert repr(Tree([[0, 1]], [0, 0, 1.25])) == "<Tree: 2 leaves, root height 1.25>"


def test_invalid_children_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError):
            Tree([[0, np.inf]], [0, 0, 1])


class _Fitted:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (_Fitted(tree_=None, fit=None), r"model\.tree_"),
        (_Fitted(fit=None), r"fit it first.*model\.tree_"),
        (_Fitted(tree=None), r"result\.tree"),
        (_Fitted(ccd0=None), r"sample\.ccd0\(\)"),
        (np.eye(4), r"Tree\.from_linkage\(Z\)"),
        ([[0, 1, 1.0, 2]], r"Tree\.from_linkage\(Z\)"),
        ("(a:1,b:1);", r"Tree\.from_newick\(text\)"),
        (Tree, "the class Tree itself"),
        (None, "NoneType"),
    ],
)
def test_non_trees_are_rejected_with_advice(value, advice):
    with pytest.raises(InputError, match=r"^what is .* not a Tree; ") as caught:
        check_tree(value, "what")
    assert re.search(advice, str(caught.value))


def test_check_tree_returns_tree():
    tree = Tree([[0, 1]], [0, 0, 1])
    assert check_tree(tree) is tree
