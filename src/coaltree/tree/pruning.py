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
    here = dict(zip(kept, range(len(kept)), strict=True))  # what each node has become, if anything of it is left
    children, heights = [], [0.0] * len(kept)
    for k, (left, right) in enumerate(tree.children.tolist()):
        a, b = here.get(left), here.get(right)
        if a is not None and b is not None:
            here[n + k] = len(heights)
            children.append((a, b))
            heights.append(float(tree.heights[n + k]))
        elif a is not None or b is not None:
            here[n + k] = b if a is None else a  # type: ignore[assignment]
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
    merges: list[tuple[float, int, int]] = []  # height and the two sides: leaves, or n and more for earlier merges
    top = others.tolist()  # the lineage that each node of the old tree stands for, above its grafts
    for node in range(tree.n_nodes):
        if node >= tree.n_leaves:
            left, right = tree.children[node - tree.n_leaves].tolist()
            merges.append((float(tree.heights[node]), top[left], top[right]))
            top.append(n + len(merges) - 1)
        for height, position in sorted(grafts.get(node, [])):
            merges.append((height, top[node], position))
            top[node] = n + len(merges) - 1
    order = sorted(range(len(merges)), key=lambda k: merges[k][0])
    rank = {n + k: n + place for place, k in enumerate(order)}
    children = [[rank.get(side, side) for side in merges[k][1:]] for k in order]
    all_heights = np.concatenate([np.zeros(n), [merges[k][0] for k in order]])
    return Tree(np.array(children, dtype=np.intp).reshape(-1, 2), all_heights, names)
