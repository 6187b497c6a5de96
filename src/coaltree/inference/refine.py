"""Refinement: one tree made better, until no subtree fits better elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError
from ..process.base import Process, check_process
from ..process.validation import as_matrix
from ..tree.tree import Tree, check_tree
from .chain import Chain
from .greedy import GreedyResult, explain

LEAST_GAIN = 1e-6  # of the log joint density, by a move that is made
SUBTREES_AT_ONCE = 64  # so that Ctrl-C gets its turn


def refine(
    tree: Tree, X: ArrayLike, process: Process, *, progress: Callable[[int, float], None] | None = None
) -> GreedyResult:
    """Hang every subtree where it fits best, again and again, until none fits better elsewhere.

    The log joint density never falls, and the result is the same every time.

    Parameters
    ----------
    tree : Tree
        Where to begin, for example the tree that `greedy` found.
    X : array-like of shape (n, D)
        Its rows in the order of the leaves; NaN is a missing cell.
    process : Process
    progress : callable, optional
        Called after each pass over all subtrees with the number of those that moved, and the log joint density.

    Returns
    -------
    GreedyResult

    Notes
    -----
    A pass looks at ``2 n`` subtrees and ``2 n`` branches for each.

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
        raise InputError(f"X has {len(matrix)} rows and the tree {tree.n_leaves} leaves; they must be the same.")
    resolved = process.resolve(matrix)
    before = explain(tree, matrix, resolved)
    if tree.n_leaves < 2:
        return before
    n_nodes = 2 * tree.n_leaves - 1
    chain = Chain(matrix, resolved, tree)
    gained = math.inf
    while gained > LEAST_GAIN:
        log_joint = chain.log_joint
        moved = sum(
            chain.climb(first, min(first + SUBTREES_AT_ONCE, n_nodes), LEAST_GAIN)
            for first in range(0, n_nodes, SUBTREES_AT_ONCE)
        )
        gained = chain.log_joint - log_joint
        if progress:
            progress(moved, chain.log_joint)
    found = chain.sample()
    heights = np.append(np.zeros(tree.n_leaves), found.heights)
    after = explain(Tree(found.children, heights, tree.leaf_names), matrix, resolved)
    return after if after.log_joint > before.log_joint else before
