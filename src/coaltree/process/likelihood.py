"""The likelihood of a table on a given tree: one pass up, merge by merge."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from ..tree.kingman import log_prior
from ..tree.tree import Tree
from .interface import Process, as_matrix
from .kernels.passes import climb

FloatArray = NDArray[np.float64]

AT_ONCE = 50_000  # merges


class MergeLogLikelihoods(NamedTuple):
    """What each merge of a tree contributes, most recent first, each of shape ``(n - 1,)``."""

    log_z: FloatArray  # local likelihoods: with the leaves' constants they add up to the likelihood
    log_ratios: FloatArray  # one tree below the merge against two independent ones


def merge_log_likelihoods(process: Process, tree: Tree, X: FloatArray) -> MergeLogLikelihoods:
    """Climb a tree with a resolved process and return what each merge contributes."""
    forest = process.forest(X, len(X))
    result = MergeLogLikelihoods(np.empty(len(X) - 1), np.empty(len(X) - 1))
    slot = np.arange(tree.n_nodes)
    for first in range(0, len(X) - 1, AT_ONCE):  # so that Ctrl-C gets its turn
        last = min(first + AT_ONCE, len(X) - 1)
        climb(forest, tree.children, tree.heights, slot, result.log_z, result.log_ratios, first, last)
    if np.any(np.isnan(result.log_z)):
        merge = int(np.argmax(np.isnan(result.log_z)))
        raise FloatingPointError(
            f"The likelihood of merge {merge}, at height {tree.heights[len(X) + merge]:g}, is not a number: the table's or "
            "the process's units are beyond what double precision holds; rescale them."
        )
    return result


def log_likelihood(process: Process, tree: Tree, X: ArrayLike) -> float:
    """Log likelihood of a table on a tree, every constant in; see `Process.log_likelihood`."""
    matrix = as_matrix(X)
    if len(matrix) != tree.n_leaves:
        raise InputError(f"The table has {len(matrix)} row(s) and the tree {tree.n_leaves} leaves; row i is leaf i.")
    resolved = process.resolve(matrix)
    merges = merge_log_likelihoods(resolved, tree, matrix)
    return math.fsum(resolved.leaf_log_likelihoods(matrix)) + float(np.sum(merges.log_z))


def log_joint(tree: Tree, X: ArrayLike, process: Process) -> float:
    """Log joint density of a table and a tree, ``log p(x | tree) + log p(tree)``: eq. (2.2).

    Parameters
    ----------
    tree : Tree
    X : array-like of shape (n_leaves, n_columns)
        Row i belongs to leaf i; NaN is a missing cell.
    process : Process

    Returns
    -------
    float

    Examples
    --------
    >>> import coaltree as ct
    >>> tree = ct.Tree.from_newick("(a:1,b:1);")
    >>> round(ct.log_joint(tree, [[0.0], [2.0]], ct.Brownian()), 6)
    -3.265512
    """
    return process.log_likelihood(tree, X) + log_prior(tree)
