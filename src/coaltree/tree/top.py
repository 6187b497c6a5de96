"""The top of a tree: its oldest merges, with what hangs below them as tips."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .tree import Tree


class Top(NamedTuple):
    """A tree cut down to its oldest merges."""

    tree: Tree  # its leaves are the tips, at height 0 and without their names
    nodes: NDArray[np.intp]  # (2 n_tips - 1,), which node of the whole tree each of its nodes is


def top_of(tree: Tree, n_tips: int) -> Top:
    """Cut a tree down to its oldest merges.

    Parameters
    ----------
    tree : Tree
    n_tips : int
        From 1 to the number of leaves; one more than the number of merges that are kept.

    Returns
    -------
    Top
        Sides are as in the whole tree.

    Examples
    --------
    >>> from coaltree import Tree
    >>> top = top_of(Tree.from_newick("((a:1,b:1):2,(c:2,d:2):1);"), 3)
    >>> top.nodes.tolist()
    [2, 3, 4, 5, 6]
    >>> top.tree.children.tolist()
    [[0, 1], [2, 3]]
    """
    first = tree.n_nodes - n_tips + 1
    kept = tree.children[first - tree.n_leaves :]
    tips = kept[kept < first] if n_tips > 1 else np.array([tree.root])
    nodes = np.concatenate([tips, np.arange(first, tree.n_nodes)])
    number = np.empty(tree.n_nodes, dtype=np.intp)
    number[nodes] = np.arange(len(nodes))
    heights = np.concatenate([np.zeros(n_tips), tree.heights[first:]])
    return Top(Tree(number[kept], heights), nodes)
