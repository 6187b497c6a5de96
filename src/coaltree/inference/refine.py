"""Refinement of a tree after the search: subtrees regrafted to where they fit best."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError
from ..process.base import Process, check_process
from ..table.matrix import as_matrix
from ..tree.tree import Tree, check_tree
from .chain import Chain
from .greedy import GreedyResult, explain

MIN_GAIN = 1e-6  # in the log joint, of a move and of a pass
SUBTREES_PER_CALL = 64  # of a kernel, so that Ctrl-C is not delayed


def refine(
    tree: Tree, X: ArrayLike, process: Process, *, progress: Callable[[int, float], None] | None = None
) -> GreedyResult:
    """Move every subtree to where it fits best, repeatedly, until none fits better elsewhere.

    The log joint never decreases, and the result is deterministic.

    Parameters
    ----------
    tree : Tree
        The initial tree, for example from `greedy`.
    X : array-like of shape (n, D)
        Its rows in the order of the leaves; NaN is a missing cell.
    process : Process
    progress : callable, optional
        Called after each pass over all subtrees with the number of subtrees that moved, and the log joint.

    Returns
    -------
    GreedyResult

    Notes
    -----
    A pass considers ``2 n`` branches for each of ``2 n`` subtrees.

    Examples
    --------
    >>> import coaltree as ct
    >>> X = [[0.0, 0.0], [0.1, 0.2], [3.0, 2.0], [3.3, 2.1]]
    >>> found = ct.greedy(X, ct.Brownian())
    >>> better = ct.refine(found.tree, X, found.process)
    >>> better.log_joint >= found.log_joint
    True
    """
    check_tree(tree)
    check_process(process)
    matrix = as_matrix(X)
    if len(matrix) != tree.n_leaves:
        raise InputError(
            f"X has {len(matrix)} rows and the tree has {tree.n_leaves} leaves; the numbers must be equal."
        )
    resolved = process.resolve(matrix)
    resolved.check_ascertainment(matrix)
    before = explain(tree, matrix, resolved)
    if tree.n_leaves < 2:
        return before
    n_nodes = 2 * tree.n_leaves - 1
    chain = Chain(matrix, resolved, tree)
    gain = math.inf
    while gain > MIN_GAIN:
        log_joint = chain.log_joint
        n_moved = sum(
            chain.climb(first, min(first + SUBTREES_PER_CALL, n_nodes), MIN_GAIN)
            for first in range(0, n_nodes, SUBTREES_PER_CALL)
        )
        gain = chain.log_joint - log_joint
        if progress:
            progress(n_moved, chain.log_joint)
    sample = chain.sample()
    heights = np.append(np.zeros(tree.n_leaves), sample.heights)
    after = explain(Tree(sample.children, heights, tree.leaf_names), matrix, resolved)
    return after if after.log_joint > before.log_joint else before
