"""Clades, the sets of leaves below the merges of a tree: as bit masks, numbered, joined into a tree, and compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .newick import describe_name_differences
from .summary import SummaryTree
from .tree import Tree, check_tree

IntArray = NDArray[np.intp]


def clade_masks(tree: Tree) -> list[int]:
    """Return the leaves below every merge as bits of a whole number, most recent merge first.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    list of int
        Bit ``i`` is set if leaf ``i`` is below the merge.

    Examples
    --------
    >>> from coaltree import Tree
    >>> [bin(mask) for mask in clade_masks(Tree.from_newick("((a:1,b:1):2,c:3);"))]
    ['0b11', '0b111']
    """
    masks = [1 << leaf for leaf in range(tree.n_leaves)]
    for left, right in tree.children.tolist():
        masks.append(masks[left] | masks[right])
    return masks[tree.n_leaves :]


def number_clades(trees: Sequence[Tree]) -> IntArray:
    """Number the clades of several trees; equal clades have equal numbers.

    Parameters
    ----------
    trees : sequence of Tree
        Over the same leaves in the same order.

    Returns
    -------
    ndarray of int, shape (n_trees, n_leaves - 1)
        The clade of every merge, numbered 0, 1, ... in order of first occurrence.
    """
    numbers: dict[int, int] = {}
    rows = [[numbers.setdefault(mask, len(numbers)) for mask in clade_masks(tree)] for tree in trees]
    return np.array(rows, dtype=np.intp)


def join_clades(n_leaves: int, members: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Build a binary tree that has the given clades.

    Parameters
    ----------
    n_leaves : int
    members : sequence of ndarray of int
        Leaves of each clade. Any two clades are nested or disjoint; one clade has all leaves, unless there is one leaf.

    Returns
    -------
    children : ndarray of int, shape (n_leaves - 1, 2)
        Children before parents.
    clades : ndarray of int, shape (n_leaves - 1,)
        The clade that each merge completes, -1 if it only resolves a polytomy.
    """
    top = np.arange(n_leaves)
    children: list[tuple[int, int]] = []
    clades: list[int] = []
    for k in sorted(range(len(members)), key=lambda k: len(members[k])):
        node, *others = np.unique(top[members[k]]).tolist()
        for other in others:
            children.append((node, other))
            clades.append(-1)
            node = n_leaves + len(children) - 1
        clades[-1] = k
        top[members[k]] = node
    return np.array(children, dtype=np.intp).reshape(-1, 2), np.array(clades, dtype=np.intp)


def robinson_foulds(a: Tree, b: Tree, *, normalized: bool = False) -> float:
    """Count the clades that only one of two rooted trees has.

    Parameters
    ----------
    a, b : Tree
        Trees over the same leaf names, in any order. Merges of a :class:`SummaryTree` that only resolve a polytomy
        count as no clades.
    normalized : bool, default False
        Divide by ``2 (n_leaves - 2)``, the largest possible value; trees of at most two leaves have distance 0.

    Returns
    -------
    int, or float if normalized

    Raises
    ------
    InputError
        If the leaf names differ.

    Examples
    --------
    >>> from coaltree import Tree
    >>> a = Tree.from_newick("(((a:1,b:1):1,c:2):1,d:3);")
    >>> b = Tree.from_newick("(((a:1,c:1):1,b:2):1,d:3);")
    >>> robinson_foulds(a, b)
    2
    >>> robinson_foulds(a, b, normalized=True)
    0.5
    """
    a, b = check_tree(a, "a"), check_tree(b, "b")
    if a.leaf_names != b.leaf_names:
        differences = describe_name_differences(b.leaf_names, a.leaf_names)
        if differences:
            raise InputError(
                f"The second tree has other leaves than the first: {differences}; only trees over the same names "
                "can be compared."
            )
        b = b.reorder(a.leaf_names)
    distance = int(_is_clade(a).sum() + _is_clade(b).sum()) - 2 * _count_shared(a, b)
    if not normalized:
        return distance
    return distance / (2 * (a.n_leaves - 2)) if a.n_leaves > 2 else 0.0


def _count_shared(a: Tree, b: Tree) -> int:
    """Count the clades that two trees over the same leaves in the same order both have.

    The clades of the first are stretches of its leaves as they are drawn, so a clade of the second is one of them only if
    its leaves are a stretch too: no set of leaves is written down, which would take memory by the square of their number.
    """
    n = a.n_leaves
    place = a.first_positions[:n]
    lefts, rights = b.children[:, 0].tolist(), b.children[:, 1].tolist()
    low, high = place.tolist(), place.tolist()
    for left, right in zip(lefts, rights, strict=True):
        low.append(min(low[left], low[right]))
        high.append(max(high[left], high[right]))
    begin, end = np.array(low[n:], dtype=np.intp), np.array(high[n:], dtype=np.intp)
    stretches = _is_clade(b) & (end - begin + 1 == b.leaf_counts[n:])
    own = _is_clade(a)
    starts, counts = a.first_positions[n:][own], a.leaf_counts[n:][own]
    return len(np.intersect1d(starts * n + starts + counts - 1, (begin * n + end)[stretches], assume_unique=True))


def _is_clade(tree: Tree) -> NDArray[np.bool_]:
    """Tell which merges do not only resolve a polytomy."""
    return ~np.isnan(tree.support) if isinstance(tree, SummaryTree) else np.ones(tree.n_leaves - 1, dtype=np.bool_)
