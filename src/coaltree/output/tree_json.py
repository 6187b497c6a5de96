"""One tree as JSON, in a plain schema, and back.

An object with the members

``format``, ``format_version``
    ``"coaltree tree"`` and 1.
``leaf_names``
    The names of the n leaves: distinct texts, in row order.
``children``
    n - 1 pairs of nodes, one for each merge, most recent first. Leaves are 0 to n - 1, merge k is node n + k.
``heights``
    The heights of all 2 n - 1 nodes: 0 for leaves, and never less from one merge to the next.
``support``
    For each merge the share of a sample of trees that has its clade, null where there is none; null for a tree that
    stands for no sample.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import InputError
from ..tree.summary import SummaryTree
from ..tree.tree import Tree
from .checked_json import from_json, member, read_finite, read_list, read_object, read_text, read_whole, to_json

FORMAT = "coaltree tree"
FORMAT_VERSION = 1


def tree_to_json(tree: Tree) -> bytes:
    """Write a tree as JSON.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    bytes
        Heights have all their digits.

    Examples
    --------
    >>> tree = Tree.from_newick("((ape:1,man:1):2,owl:3);")
    >>> tree_from_json(tree_to_json(tree)) == tree
    True
    """
    shares = tree.support.tolist() if isinstance(tree, SummaryTree) else None
    return to_json(
        {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "leaf_names": list(tree.leaf_names),
            "children": tree.children.tolist(),
            "heights": tree.heights.tolist(),
            "support": None if shares is None else [None if share != share else share for share in shares],
        }
    )


def tree_from_json(data: bytes) -> Tree:
    """Read a tree from JSON.

    Parameters
    ----------
    data : bytes

    Returns
    -------
    Tree
        A `SummaryTree` if it has support values.

    Raises
    ------
    InputError
        When it is not such a tree; the message says why, without a name of the file.
    """
    facts = read_object(from_json(data, "it"), "it")
    if facts.get("format") != FORMAT:
        raise InputError(f"it does not say that its format is {FORMAT!r}")
    if read_whole(member(facts, "format_version", "it"), "format_version", 1) > FORMAT_VERSION:
        raise InputError("it was written by a later version of coaltree, which this one cannot read")
    names = [read_text(name, "leaf_names") for name in read_list(member(facts, "leaf_names", "it"), "leaf_names")]
    children = [_pair(pair) for pair in read_list(member(facts, "children", "it"), "children")]
    heights = [read_finite(value, "heights") for value in read_list(member(facts, "heights", "it"), "heights")]
    pairs = np.array(children, dtype=np.intp).reshape(-1, 2)
    if facts.get("support") is None:
        return Tree(pairs, heights, names)
    shares = [
        math.nan if value is None else read_finite(value, "support") for value in read_list(facts["support"], "support")
    ]
    return SummaryTree(pairs, heights, names, shares)


def _pair(value: Any) -> list[int]:
    pair = [read_whole(node, "children") for node in read_list(value, "children")]
    if len(pair) != 2:
        raise InputError(f"children holds a merge of {len(pair)} nodes, and only binary trees are read")
    return pair
