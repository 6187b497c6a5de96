"""Files of one tree: Newick, NEXUS, SciPy linkage as csv or npy, and JSON.

The JSON schema is an object with these fields:

``format``, ``format_version``
    ``"coaltree tree"`` and 1.
``leaf_names``
    Distinct names of the n leaves, in row order.
``children``
    n - 1 pairs of nodes, one per merge, most recent first. Leaves are 0 to n - 1, merge k is node n + k.
``heights``
    Heights of all 2 n - 1 nodes: 0 for leaves, non-decreasing over merges.
``support``
    The share of a sample of trees with the clade of each merge, null where unknown; null for a tree without a sample.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import quote
from ..errors import InputError
from ..tree import newick, nexus
from ..tree.sample import TreeSample
from ..tree.tree import SummaryTree, Tree
from .archive import (
    array_from_bytes,
    from_json,
    read_field,
    read_finite,
    read_integer,
    read_list,
    read_object,
    read_text,
    to_json,
)
from .result_files import csv_text

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
        If it is not such a tree; the message says why, without the file's name.
    """
    facts = read_object(from_json(data, "it"), "it")
    if facts.get("format") != FORMAT:
        raise InputError(f"its format is not {FORMAT!r}")
    if read_integer(read_field(facts, "format_version", "it"), "format_version", 1) > FORMAT_VERSION:
        raise InputError("it was written by a later version of coaltree, which this one cannot read")
    names = [read_text(name, "leaf_names") for name in read_list(read_field(facts, "leaf_names", "it"), "leaf_names")]
    children = [_read_pair(pair) for pair in read_list(read_field(facts, "children", "it"), "children")]
    heights = [read_finite(value, "heights") for value in read_list(read_field(facts, "heights", "it"), "heights")]
    pairs = np.array(children, dtype=np.intp).reshape(-1, 2)
    if facts.get("support") is None:
        return Tree(pairs, heights, names)
    shares = [
        math.nan if value is None else read_finite(value, "support") for value in read_list(facts["support"], "support")
    ]
    return SummaryTree(pairs, heights, names, shares)


def _read_pair(value: Any) -> list[int]:
    pair = [read_integer(node, "children") for node in read_list(value, "children")]
    if len(pair) != 2:
        raise InputError(f"children has a merge of {len(pair)} nodes; only binary trees can be read")
    return pair


ENDINGS = {
    "newick": (".nwk", ".newick", ".tree"),
    "nexus": (".nex", ".nexus", ".trees"),
    "linkage": (".csv",),
    "npy": (".npy",),
    "json": (".json",),
    "model": (".coaltree",),
}
"""File name endings of each kind; SciPy linkage is either csv text or a numpy array."""

_NUMBER_FIELDS = ("left", "right", "height", "leaves")
_NAME_FIELDS = ("left_name", "right_name")


def read_tree(data: bytes, kind: str, source: str) -> tuple[Tree, list[str]]:
    """Read the tree of a file.

    Parameters
    ----------
    data : bytes
        The content of the file.
    kind : str
        One of `ENDINGS`.
    source : str
        Name of the file, for messages.

    Returns
    -------
    tree : Tree
    remarks : list of str
        Remarks for the user about how it was read.

    Raises
    ------
    InputError
        If it has no rooted, binary, ultrametric tree.
    """
    if not data.strip():
        raise InputError(f"{source} is empty; a tree is expected.")
    if kind == "model":
        from .model import ModelRecord  # it imports the processes, which is slow

        return ModelRecord.from_bytes(data, source).tree, []
    readers: dict[str, Callable[[bytes], Tree]] = {
        "newick": lambda data: Tree.from_newick(data.decode()),
        "linkage": _from_linkage_csv,
        "npy": _from_npy,
        "json": tree_from_json,
    }
    try:
        return _from_nexus(data, source) if kind == "nexus" else (readers[kind](data), [])
    except UnicodeDecodeError:
        raise InputError(f"{source} is not UTF-8 text, which {kind} files must be.") from None
    except InputError as error:
        reason = str(error).rstrip(".")
        raise InputError(f"{source} is not a readable {kind} tree: {reason}.") from None


def tree_bytes(tree: Tree, kind: str, quote_names: bool = False) -> bytes:
    """Return the content of a file with a tree.

    Parameters
    ----------
    tree : Tree
    kind : str
        One of `ENDINGS` except ``"model"``.
    quote_names : bool, default False
        As of `Tree.to_newick`; for ``"newick"`` and ``"nexus"``.

    Returns
    -------
    bytes
        With the names of the leaves, except for ``"npy"``, which cannot hold them.
    """
    if kind == "newick":
        return (tree.to_newick(quote_names=quote_names) + "\n").encode(errors="replace")
    if kind == "nexus":
        return _nexus_text(tree, quote_names).encode(errors="replace")
    if kind == "json":
        return tree_to_json(tree)
    if tree.n_leaves == 1:
        raise InputError("A tree of one leaf has no merges, so it has no linkage; write it as newick, nexus or json.")
    if kind == "npy":
        written = io.BytesIO()
        np.save(written, tree.to_linkage(), allow_pickle=False)
        return written.getvalue()
    return _linkage_csv(tree).encode(errors="replace")


def _nexus_text(tree: Tree, quote_names: bool) -> str:
    if isinstance(tree, SummaryTree):
        return tree.to_nexus(quote_names=quote_names)
    keys = [str(key) for key in range(1, tree.n_leaves + 1)]
    text = newick.render(tree.children, tree.heights, keys)
    return nexus.render(tree.leaf_names, [("TREE", f"[&R] {text}")], quote_names)


def _from_nexus(data: bytes, source: str) -> tuple[Tree, list[str]]:
    sample = TreeSample.from_nexus(data.decode())
    if len(sample) == 1:
        return sample.trees[0], []
    remark = f"{source} has {len(sample)} trees; their CCD0 tree was used."
    return sample.ccd0(), [remark]


def _linkage_csv(tree: Tree) -> str:
    """Write a SciPy linkage with the names of the leaves next to their numbers."""
    matrix, n = tree.to_linkage(), tree.n_leaves
    left, right = tree.children.T.tolist()
    columns = [left, right, matrix[:, 2].tolist(), matrix[:, 3].astype(np.intp).tolist()]
    columns += [[tree.leaf_names[node] if node < n else None for node in side] for side in (left, right)]
    return csv_text(dict(zip((*_NUMBER_FIELDS, *_NAME_FIELDS), columns, strict=True)))


def _from_linkage_csv(data: bytes) -> Tree:
    """Read four columns of numbers, with or without a header, and optionally two columns of names."""
    try:
        rows = [row for row in csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True) if row]
    except csv.Error as error:
        raise InputError(f"it is not csv text ({error})") from None
    has_header = not all(_is_number(cell) for cell in rows[0][:4])
    body = rows[1:] if has_header else rows
    if not body:
        raise InputError("it has a header but no merges")
    width = len(body[0])
    if width not in (4, 6) or any(len(row) != width for row in body):
        raise InputError(
            "its lines must all have 4 fields (left, right, height, leaves), or 6 (with the names of left and right leaves)"
        )
    bad = [cell for row in body for cell in row[:4] if not _is_number(cell)]
    if bad:
        raise InputError(f"{quote(bad[0])} is not a number")
    matrix = np.array([row[:4] for row in body], dtype=np.float64)
    names = None if width == 4 else _leaf_names(matrix, [row[4:] for row in body])
    return Tree.from_linkage(matrix, names)


def _leaf_names(matrix: NDArray[np.float64], pairs: list[list[str]]) -> list[str]:
    n = len(matrix) + 1
    names = [""] * n
    for nodes, pair in zip(matrix[:, :2].tolist(), pairs, strict=True):
        for node, name in zip(nodes, pair, strict=True):
            if 0 <= node < n and node == int(node):
                names[int(node)] = name
    return names


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _from_npy(data: bytes) -> Tree:
    matrix = array_from_bytes(data)
    if matrix.dtype.kind not in "iuf" or not np.all(np.isfinite(matrix)):
        raise InputError("its values are not finite numbers")
    return Tree.from_linkage(matrix)
