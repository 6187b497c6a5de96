"""Parameters fitted to trees: each has a weak prior, and no step lowers the posterior density."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from ..tree.sample import TreeSample, check_trees, check_weights
from ..tree.tree import Tree
from .base import Process, WeightedTrees, check_process
from .validation import as_matrix

FloatArray = NDArray[np.float64]


def calibrate(
    process: Process,
    trees: Tree | TreeSample | Sequence[Tree],
    X: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    hold_noise: bool = False,
) -> Process:
    """Fit the parameters of a process to a table on one tree, or on a weighted sample of trees.

    Parameters
    ----------
    process : Process
        Where the search begins. Whether a variance or a rate is one number, one a column or a matrix does not change.
    trees : Tree, TreeSample or sequence of Tree
    X : array-like of shape (n_leaves, n_columns)
        Row i belongs to leaf i; NaN is a missing cell.
    weights : array-like of shape (n_trees,), optional
        Weights of the trees; by default all the same, or those of the sample.
    hold_noise : bool, default False
        Leave the noise as it is. Noise of 0 in columns with states always stays.

    Returns
    -------
    Process
        A process of the same kind. The mean over the trees of ``log p(x | tree)``, with
        `Process.log_parameter_prior`, does not decrease.

    Examples
    --------
    >>> import coaltree as ct
    >>> tree = ct.simulate_tree(500, random_state=0)
    >>> X = ct.Brownian(4.0, noise=0.5).simulate(tree, random_state=1, n_columns=5)
    >>> fitted = ct.calibrate(ct.Brownian(), tree, X)
    >>> bool(3 < fitted.variance < 5 and 0.4 < fitted.noise < 0.7)
    True
    """
    check_process(process)
    matrix = as_matrix(X)
    if isinstance(trees, TreeSample):
        weights = trees.weights if weights is None else weights
        trees = trees.trees
    checked = check_trees([trees] if isinstance(trees, Tree) else trees)
    if checked[0].n_leaves != len(matrix):
        raise InputError(
            f"The table has {len(matrix)} row(s) and the trees have {checked[0].n_leaves} leaves; row i is leaf i."
        )
    shares = check_weights(np.ones(len(checked)) if weights is None else weights, len(checked))
    resolved = process.resolve(matrix)
    resolved.check_ascertainment(matrix)
    return fit_to_trees(resolved, checked, shares, matrix, hold_noise)


def fit_to_trees(
    process: Process, trees: Sequence[Tree], weights: FloatArray, X: FloatArray, hold_noise: bool
) -> Process:
    """Fit the parameters of a resolved process; see `calibrate`, which checks its arguments first."""
    if len(X) == 1:
        return process
    weighted = [tree for tree, weight in zip(trees, weights, strict=True) if weight > 0]
    return process.fit(WeightedTrees(weighted, weights[weights > 0], X), hold_noise)
