"""Scores of a tree against known classes of its leaves.

A table of class counts at every node would take ``n`` times as many numbers as there are classes. None of the
scores needs it: each takes about ``n log n`` steps and a few numbers a leaf, however many classes there are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ._parameters import Choices, check_parameter
from ._validation import quote
from .errors import InputError
from .table.labels import is_missing
from .tree.tree import Tree, check_tree


def dendrogram_purity(
    tree: Tree, labels: Iterable[Hashable], *, weighting: Literal["pairs", "leaves"] = "pairs"
) -> float:
    """Return the expected share of a class in the smallest subtree that contains two of its leaves.

    Draw two leaves of one class and take the smallest subtree that holds both. The score is the expectation
    of the share of that class among its leaves, eq. (12.1), computed exactly. It is 1 if every class is a subtree.

    Parameters
    ----------
    tree : Tree
    labels : iterable of hashable, length n
        The class of each leaf, in row order.
    weighting : {"pairs", "leaves"}, default "pairs"
        How two leaves of one class are drawn. ``"pairs"`` draws uniformly among all such pairs, so that a
        class of ``m`` leaves counts ``m (m - 1) / 2``. ``"leaves"`` draws a leaf uniformly among those that
        have another of their class, then another of its class, so that the class counts ``m``.

    Returns
    -------
    float
        Between 0 and 1, higher is better.

    Raises
    ------
    InputError
        If a label is missing, their number is not that of the leaves, or no two leaves share a class.

    Examples
    --------
    >>> import coaltree as ct
    >>> tree = ct.Tree.from_newick("(((a:1,b:1):1,c:2):1,d:3);")
    >>> ct.metrics.dendrogram_purity(tree, [0, 0, 1, 1])
    0.75
    >>> ct.metrics.dendrogram_purity(tree, ["x", "x", "x", "y"])
    1.0
    """
    tree = check_tree(tree)
    check_parameter("weighting", weighting, Choices(("pairs", "leaves")))
    codes, n_classes = encode_labels(labels, tree.n_leaves)
    members = np.bincount(codes, minlength=n_classes).astype(np.float64)
    if not np.any(members > 1):
        raise InputError(
            "No two leaves share a class, so there is no pair to judge the tree by; dendrogram purity needs "
            "a class with at least two leaves."
        )
    # A class of m leaves is divided by m - 1 merges: those where two neighbours of the class, in drawing
    # order, come together. So there are fewer terms than leaves, whatever the number of classes.
    order = tree.leaf_order
    by_class = np.argsort(codes[order], kind="stable")
    sorted_classes = codes[order][by_class]
    neighbors = np.flatnonzero(sorted_classes[1:] == sorted_classes[:-1])
    classes = sorted_classes[neighbors]
    merges = _common_ancestors(tree, by_class[neighbors], by_class[neighbors + 1])

    # Leaves of a class between two positions, by bisection in the keys (class, position).
    keys = sorted_classes * tree.n_leaves + by_class
    begin = tree.first_positions[merges]
    size = tree.leaf_counts[merges]
    middle = begin + tree.leaf_counts[tree.children[merges - tree.n_leaves, 0]]
    bounds = np.stack([begin, middle, begin + size])
    left, right = np.diff(np.searchsorted(keys, classes * tree.n_leaves + bounds), axis=0)
    # Where a class is pure its sum is a whole number, its number of pairs, so that a perfect score is exactly 1.
    sums = np.bincount(classes, left * right * ((left + right) / size), minlength=n_classes)
    pairs = members * (members - 1) / 2
    if weighting == "pairs":
        return float(np.sum(sums) / np.sum(pairs))
    several = pairs > 0
    shares = sums[several] / pairs[several]
    return float(np.sum(members[several] * shares) / np.sum(members[several]))


def subtree_score(tree: Tree, labels: Iterable[Hashable]) -> float:
    """Return the number of merges within one class, as a share of the largest possible number.

    Counts the interior nodes whose leaves are all of one class and divides by ``n - number of classes``, the
    count in a tree where every class is a subtree: eq. (12.2).

    Parameters
    ----------
    tree : Tree
    labels : iterable of hashable, length n
        The class of each leaf, in row order.

    Returns
    -------
    float
        Between 0 and 1, higher is better.

    Raises
    ------
    InputError
        If a label is missing, their number is not that of the leaves, or no two leaves share a class.

    Examples
    --------
    >>> import coaltree as ct
    >>> tree = ct.Tree.from_newick("(((a:1,b:1):1,c:2):1,d:3);")
    >>> ct.metrics.subtree_score(tree, [0, 0, 1, 1])
    0.5
    """
    tree = check_tree(tree)
    codes, n_classes = encode_labels(labels, tree.n_leaves)
    if n_classes == tree.n_leaves:
        raise InputError(
            f"There are as many classes as leaves ({n_classes}), so no merge can be of one class; the "
            "subtree score needs a class with at least two leaves."
        )
    # A subtree is of one class if the class never changes between neighbours in drawing order.
    leaf_codes = codes[tree.leaf_order]
    changes = np.concatenate([[0], np.cumsum(leaf_codes[1:] != leaf_codes[:-1])])
    begin = tree.first_positions[tree.n_leaves :]
    end = begin + tree.leaf_counts[tree.n_leaves :] - 1
    return float(np.count_nonzero(changes[begin] == changes[end]) / (tree.n_leaves - n_classes))


def leave_one_out_accuracy(tree: Tree, labels: Iterable[Hashable]) -> float:
    """Return the share of leaves that have the most common class of their sibling's subtree.

    Where several classes are equally common there, a leaf of one of them counts as the chance to guess it: eq. (12.3).

    Parameters
    ----------
    tree : Tree
    labels : iterable of hashable, length n
        The class of each leaf, in row order.

    Returns
    -------
    float
        Between 0 and 1, higher is better.

    Raises
    ------
    InputError
        If a label is missing, their number is not that of the leaves, or the tree has a single leaf.

    Examples
    --------
    >>> import coaltree as ct
    >>> tree = ct.Tree.from_newick("(((a:1,b:1):1,c:2):1,d:3);")
    >>> ct.metrics.leave_one_out_accuracy(tree, [0, 0, 1, 0])
    0.75
    """
    tree = check_tree(tree)
    codes, _ = encode_labels(labels, tree.n_leaves)
    n = tree.n_leaves
    if n == 1:
        raise InputError("The tree has one leaf, which has no sibling to be predicted from.")
    codes_list: list[int] = codes.tolist()
    # Class counts of the subtrees whose parent has not been reached, with the largest count and how many
    # classes have it. The smaller set of counts is added to the larger, so each count moves at most log n times.
    counts: dict[int, dict[int, int]] = {}
    top: dict[int, tuple[int, int]] = {}
    credit = 0.0
    for k, pair in enumerate(tree.children.tolist()):
        for node in pair:
            if node < n:
                counts[node], top[node] = {codes_list[node]: 1}, (1, 1)
        for leaf, sibling in (pair, pair[::-1]):
            if leaf < n:
                most, ties = top[sibling]
                credit += (counts[sibling].get(codes_list[leaf]) == most) / ties
        small, large = sorted(pair, key=lambda node: len(counts[node]))
        into = counts.pop(large)
        most, ties = top.pop(large)
        del top[small]
        for code, count in counts.pop(small).items():
            into[code] = total = into.get(code, 0) + count
            if total > most:
                most, ties = total, 1
            elif total == most:
                ties += 1
        counts[n + k], top[n + k] = into, (most, ties)
    return credit / n


def encode_labels(labels: Iterable[Hashable], n_leaves: int) -> tuple[NDArray[np.intp], int]:
    """Number the classes of the leaves, in order of appearance.

    Parameters
    ----------
    labels : iterable of hashable
    n_leaves : int

    Returns
    -------
    codes : ndarray of int, shape (n_leaves,)
    n_classes : int

    Raises
    ------
    InputError
        If there is not one label, hashable and not missing, for each leaf.
    """
    is_single = isinstance(labels, np.ndarray) and not labels.ndim
    if isinstance(labels, (str, bytes, dict, set, frozenset)) or not isinstance(labels, Iterable) or is_single:
        raise InputError(
            f"labels is a {type(labels).__name__}; it must be a list or an array with the class of each "
            "leaf, in row order."
        )
    label_list: list[Any] = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    if len(label_list) != n_leaves:
        raise InputError(f"{len(label_list)} labels were given for {n_leaves} leaves; each leaf needs one label.")
    number: dict[Any, int] = {}
    codes = np.empty(n_leaves, dtype=np.intp)
    for i, label in enumerate(label_list):
        try:
            codes[i] = number.setdefault(label, len(number))
        except TypeError:
            raise InputError(
                f"The label of leaf {i} is a {type(label).__name__}; labels must be one-dimensional, each a "
                "number, a string or something else that can be compared."
            ) from None
    for label, code in number.items():
        if is_missing(label):
            leaf = int(np.argmax(codes == code))
            raise InputError(
                f"The label of leaf {leaf} is missing ({quote(label)}); every leaf needs one, so leave such rows out first."
            )
    return codes, len(number)


def _common_ancestors(tree: Tree, left: NDArray[np.intp], right: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the last common ancestor of leaves at positions ``left < right`` of the drawing order.

    It is the oldest merge among those that join neighbouring leaves between the two, and merges are numbered
    by age. So it is a maximum over an interval, found in two overlapping windows of a power of two in width.
    """
    n = tree.n_leaves
    joins = np.empty(n - 1, dtype=np.intp)
    joins[tree.first_positions[tree.children[:, 1]] - 1] = np.arange(n, tree.n_nodes)
    ancestors = np.empty(len(left), dtype=np.intp)
    length = right - left
    width = 1
    while width < n:
        in_level = np.flatnonzero((length >= width) & (length < 2 * width))
        ancestors[in_level] = np.maximum(joins[left[in_level]], joins[right[in_level] - width])
        joins = np.maximum(joins[:-width], joins[width:])
        width *= 2
    return ancestors
