"""The likelihood of a table on a given tree: one pass up, merge by merge."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..compiled import announced_compilation, kernel
from ..errors import InputError
from ..tree.kingman import log_prior
from ..tree.tree import Tree
from . import operations as op
from .interface import Process, as_matrix

FloatArray = NDArray[np.float64]

AT_ONCE = 50_000  # merges


class MergeLogLikelihoods(NamedTuple):
    """What each merge of a tree contributes, most recent first, each of shape ``(n - 1,)``."""

    log_z: FloatArray  # local likelihoods: with the leaves' constants they add up to the likelihood
    log_ratios: FloatArray  # one tree below the merge against two independent ones


@kernel
def _climb(
    forest: Any,
    children: NDArray[np.intp],
    heights: FloatArray,
    slot: NDArray[np.intp],
    log_z: FloatArray,
    log_ratios: FloatArray,
    first: int,
    last: int,
) -> None:
    n = len(children) + 1
    pair = np.empty(op.pair_size(forest))
    for k in range(first, last):
        i, j, h = slot[children[k, 0]], slot[children[k, 1]], heights[n + k]
        op.load_pair(forest, i, j, pair)
        log_z[k] = op.log_z(forest, pair, h)
        apart = op.root_log_density(forest, i) + op.root_log_density(forest, j)
        op.merge(forest, i, j, h, i)
        forest.height[i] = h
        slot[n + k] = i
        log_ratios[k] = log_z[k] + op.root_log_density(forest, i) - apart


def merge_log_likelihoods(process: Process, tree: Tree, X: FloatArray) -> MergeLogLikelihoods:
    """Climb a tree with a resolved process and return what each merge contributes."""
    forest = process.forest(X, len(X), np.zeros(len(X)))
    result = MergeLogLikelihoods(np.empty(len(X) - 1), np.empty(len(X) - 1))
    slot = np.arange(tree.n_nodes)
    with announced_compilation():
        for first in range(0, len(X) - 1, AT_ONCE):  # so that Ctrl-C gets its turn
            last = min(first + AT_ONCE, len(X) - 1)
            _climb(forest, tree.children, tree.heights, slot, result.log_z, result.log_ratios, first, last)
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
