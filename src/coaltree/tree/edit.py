"""New trees from old ones: with leaves in another order, without some, with more, or only the oldest merges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .arrays import oldest_merges
from .tree import Tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def renumber_leaves(tree: Tree, numbers: IntArray, leaf_names: Sequence[str] | None = None) -> Tree:
    """Return the tree with its leaves in another order.

    Parameters
    ----------
    tree : Tree
    numbers : ndarray of int, shape (n_leaves,)
        The new number of each leaf.
    leaf_names : sequence of str, optional
        In the new order.

    Returns
    -------
    Tree

    Examples
    --------
    >>> import coaltree as ct
    >>> tree = ct.Tree.from_newick("((a:1,b:1):1,c:2);")
    >>> renumber_leaves(tree, np.array([2, 0, 1]), ["b", "c", "a"]).to_newick()
    '(c:2.0,(b:1.0,a:1.0):1.0);'
    """
    number = np.concatenate([numbers, np.arange(tree.n_leaves, tree.n_nodes)])
    return Tree(np.sort(number[tree.children], axis=1), tree.heights, leaf_names)


def without_leaves(tree: Tree, leaves: Iterable[int]) -> Tree:
    """Return the tree without some leaves; the others keep their order.

    Parameters
    ----------
    tree : Tree
    leaves : iterable of int
        The leaves to remove; at least one must remain.

    Returns
    -------
    Tree

    Examples
    --------
    >>> import coaltree as ct
    >>> tree = ct.Tree.from_newick("((a:1,b:1):1,c:2);")
    >>> without_leaves(tree, [0]).to_newick()
    '(b:2.0,c:2.0);'
    """
    n = tree.n_leaves
    removed = {int(leaf) for leaf in leaves}
    if not all(0 <= leaf < n for leaf in removed) or len(removed) == n:
        raise InputError(f"leaves must be numbers from 0 to {n - 1}, and not all of them.")
    remaining = [leaf for leaf in range(n) if leaf not in removed]
    number = [-1] * n  # new number of each node, -1 if it is gone
    for place, leaf in enumerate(remaining):
        number[leaf] = place
    children: list[int] = []
    heights = [0.0] * len(remaining)
    lefts, rights = tree.children[:, 0].tolist(), tree.children[:, 1].tolist()
    for left, right, height in zip(lefts, rights, tree.merge_heights.tolist(), strict=True):
        a, b = number[left], number[right]
        if a >= 0 and b >= 0:
            number.append(len(heights))
            children += (a, b)
            heights.append(height)
        else:
            number.append(max(a, b))
    names = [tree.leaf_names[leaf] for leaf in remaining]
    return Tree(np.array(children, dtype=np.intp).reshape(-1, 2), np.array(heights), names)


def with_leaves(
    tree: Tree, nodes: IntArray, heights: FloatArray, positions: IntArray, names: Sequence[str] | None = None
) -> Tree:
    """Return the tree with new leaves attached to its branches.

    Parameters
    ----------
    tree : Tree
    nodes : ndarray of int, shape (k,)
        For each new leaf, the node below the branch it attaches to.
    heights : ndarray of shape (k,)
        Where it attaches on this branch.
    positions : ndarray of int, shape (k,)
        Its number in the new tree; the old leaves take the remaining numbers, in their order.
    names : sequence of str, optional
        Names of all leaves.

    Returns
    -------
    Tree
    """
    n = tree.n_leaves + len(nodes)
    others = np.setdiff1d(np.arange(n), positions)
    grafts: dict[int, list[tuple[float, int]]] = {}
    for node, height, position in zip(nodes.tolist(), heights.tolist(), positions.tolist(), strict=True):
        grafts.setdefault(node, []).append((height, position))
    # No parent comes before its child, and a stable sort by height keeps this order.
    ages: list[float] = []
    sides: list[int] = []  # two for each merge: a leaf, or n + k for merge k
    top = others.tolist()  # the lineage that each node of the old tree stands for, above its grafts
    flat, old_heights = tree.children.ravel().tolist(), tree.heights.tolist()
    for node in range(tree.n_nodes):
        if node >= tree.n_leaves:
            place = 2 * (node - tree.n_leaves)
            sides += (top[flat[place]], top[flat[place + 1]])
            ages.append(old_heights[node])
            top.append(n + len(ages) - 1)
        if node in grafts:
            for height, position in sorted(grafts[node]):
                sides += (top[node], position)
                ages.append(height)
                top[node] = n + len(ages) - 1
    order = np.argsort(np.array(ages), kind="stable")
    number = np.arange(2 * n - 1)
    number[n + order] = np.arange(n, 2 * n - 1)
    children = number[np.array(sides, dtype=np.intp).reshape(-1, 2)[order]]
    return Tree(children, np.concatenate([np.zeros(n), np.array(ages)[order]]), names)


def ancestor(tree: Tree, leaf: int, height: float) -> int:
    """Return the highest ancestor of a leaf that is not above a height, or the leaf itself."""
    node, root = int(leaf), tree.n_nodes - 1
    while node != root and tree.heights[tree.parents[node]] <= height:
        node = int(tree.parents[node])
    return node


class TreeTop(NamedTuple):
    """The oldest merges of a tree."""

    tree: Tree  # its leaves are the tips, at height 0, without the names of the original tree
    nodes: IntArray  # (2 n_tips - 1,), the node of the original tree that each node is


def tree_top(tree: Tree, n_tips: int) -> TreeTop:
    """Return the oldest merges of a tree.

    Parameters
    ----------
    tree : Tree
    n_tips : int
        From 1 to the number of leaves; one more than the number of merges to keep.

    Returns
    -------
    TreeTop
        Left and right are as in the original tree.

    Examples
    --------
    >>> from coaltree import Tree
    >>> top = tree_top(Tree.from_newick("((a:1,b:1):2,(c:2,d:2):1);"), 3)
    >>> top.nodes.tolist()
    [2, 3, 4, 5, 6]
    >>> top.tree.children.tolist()
    [[0, 1], [2, 3]]
    """
    children, nodes = oldest_merges(tree.children, n_tips)
    heights = tree.heights[nodes]
    heights[:n_tips] = 0.0
    return TreeTop(Tree(children, heights), nodes)
