"""Trees with leaves taken off, and with leaves put on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .tree import Tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def without_leaves(tree: Tree, leaves: Iterable[int]) -> Tree:
    """Return the tree of all other leaves, in their order.

    Parameters
    ----------
    tree : Tree
    leaves : iterable of int
        What to take off; at least one leaf must stay.

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
    gone = {int(leaf) for leaf in leaves}
    if not all(0 <= leaf < n for leaf in gone) or len(gone) == n:
        raise InputError(f"leaves must be some of 0 to {n - 1}, and not all of them.")
    kept = [leaf for leaf in range(n) if leaf not in gone]
    here = [-1] * n  # what each node has become, -1 if nothing of it is left
    for place, leaf in enumerate(kept):
        here[leaf] = place
    children: list[int] = []
    heights = [0.0] * len(kept)
    lefts, rights = tree.children[:, 0].tolist(), tree.children[:, 1].tolist()
    for left, right, height in zip(lefts, rights, tree.merge_heights.tolist(), strict=True):
        a, b = here[left], here[right]
        if a >= 0 and b >= 0:
            here.append(len(heights))
            children += (a, b)
            heights.append(height)
        else:
            here.append(max(a, b))
    names = [tree.leaf_names[leaf] for leaf in kept]
    return Tree(np.array(children, dtype=np.intp).reshape(-1, 2), np.array(heights), names)


def with_leaves(
    tree: Tree, nodes: IntArray, heights: FloatArray, positions: IntArray, names: Sequence[str] | None = None
) -> Tree:
    """Return the tree with leaves attached to its branches, each at its own point.

    Parameters
    ----------
    tree : Tree
    nodes : ndarray of int, shape (k,)
        The nodes below the branches.
    heights : ndarray of shape (k,)
        On these branches.
    positions : ndarray of int, shape (k,)
        Which leaves of the new tree they become; the old ones take the others, in their order.
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
    # Merges in an order in which no parent comes before its child, so that a stable sort by height keeps it so.
    ages: list[float] = []
    sides: list[int] = []  # two for each merge: leaves, or n and more for earlier merges
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
    """Return the last node on the way up from a leaf that is not above a height."""
    node, root = int(leaf), tree.n_nodes - 1
    while node != root and tree.heights[tree.parents[node]] <= height:
        node = int(tree.parents[node])
    return node
