"""Refinement of a tree after the search: subtrees regrafted to where they fit best, and merges at their expected heights.

If leaves have noise, the search puts many merges at height 0 or at the height of the merge before, because their best height
would be lower still. A dendrogram then shows an order that the data do not support. Given the clades, the heights have the
posterior density

    p(heights | x, tree) ~ p(x | tree) exp(-sum_i c_i delta_i)

of eq. (1.2) and (2.1), and `expected_heights` gives every merge its mean. The given tree is *unranked*: the mean is also over
the order of merges, as long as parents are above their children. The search's order of tied merges says nothing about their
heights; keeping it would spread them as if it did.

The mean is estimated by Gibbs sampling with a fixed seed, see `coaltree.inference.kernels.height_draws`. Parents are above their
children in every draw, hence also in the mean. Trees with many rows get a closed form instead, `spread_heights`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from ..process.base import Process, check_process
from ..process.kernels.messages import Forest
from ..table.matrix import as_matrix
from ..tree.coalescent import pair_counts
from ..tree.tree import Tree, check_tree
from .chain import Chain
from .greedy import GreedyResult, explain
from .kernels.height_draws import UNIFORMS, sweep_heights
from .kernels.history import History, log_likelihood_of, set_children, set_heights, slots_of

FloatArray = NDArray[np.float64]

# regrafting
MIN_GAIN = 1e-6  # in the log joint, of a move and of a pass
SUBTREES_PER_CALL = 64  # of a kernel, so that Ctrl-C is not delayed

# expected heights
MAX_SAMPLED_ROWS = 10_000  # up to which sampling heights takes no longer than finding the tree
SEED = 0  # fixed, for reproducible heights
MIN_SWEEPS, MAX_SWEEPS = 15, 4_000
EXTRA_WORK = 200_000  # of sweeps beyond MIN_SWEEPS, in merges x columns: the larger the table, the fewer sweeps
MERGE_COLUMNS = 8  # the fixed cost of a merge, in columns
COMPLETE_SHARE, SITE_SHARE = 0.125, 0.25  # cost of a column of the complete layout, and of a site, in real columns
WARMUP_DIVISOR = 8  # the warm-up has n_sweeps / WARMUP_DIVISOR sweeps
UNIFORMS_PER_CALL = 100_000  # of a kernel, so that Ctrl-C is not delayed


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


def expected_heights(
    tree: Tree,
    X: FloatArray,
    process: Process,
    *,
    only_ties: bool = False,
    n_sweeps: int | None = None,
    max_sampled_rows: int = MAX_SAMPLED_ROWS,
) -> Tree:
    """Return the tree with its merges at their expected heights.

    Parameters
    ----------
    tree : Tree
        For example that of the greedy search.
    X : ndarray of shape (n, D)
        Its rows in the order of the leaves; NaN is a missing cell.
    process : Process
        With all parameters resolved.
    only_ties : bool, default False
        Change only merges at height 0 or at the height of the merge before, to their expected heights given the others.
    n_sweeps : int, optional
        Number of Gibbs sweeps to average. By default from 15 to 4,000, fewer for larger tables.
    max_sampled_rows : int, default 10,000
        Trees with more rows get the closed form of `spread_heights`.

    Returns
    -------
    Tree
        With the same clades. Merges are numbered by their new heights, which strictly increase. Without noise on the leaves,
        this is the given tree.

    Notes
    -----
    The time of a sweep is proportional to ``n D``. The result is deterministic.

    Mean heights are not the most probable heights: for merges that the data cannot order, height 0 is the most probable. The
    log joint density of the tree may therefore decrease.

    Examples
    --------
    >>> import numpy as np
    >>> import coaltree as ct
    >>> X = np.array([[0.0, 0.1], [0.2, 0.0], [0.1, 0.3], [2.0, 1.8]])
    >>> found = ct.greedy(X, ct.OrnsteinUhlenbeck(0.5, noise=0.3))
    >>> found.tree.merge_heights.round(1).tolist()
    [0.0, 0.0, 0.6]
    >>> expected_heights(found.tree, X, found.process).merge_heights.round(1).tolist()
    [0.1, 0.4, 1.6]
    """
    n = tree.n_leaves
    if n < 2 or not any(columns.noisy for columns in process.columns(X[:1])):
        return tree
    spread = spread_heights(tree)
    if n > max_sampled_rows:
        return spread
    forest = process.forest(X, slots_of(n))
    free = np.ones(n - 1, dtype=bool)
    if only_ties:
        free = np.diff(tree.heights[n - 1 :]) == 0
    return _with_heights(tree, mean_heights(spread, forest, n_sweeps or _n_sweeps(n, forest), free))


def spread_heights(tree: Tree) -> Tree:
    """Return the tree with merges at one height drawn apart, as waiting times of the coalescent are expected to be.

    The first merge at a height stays where it is. Those that follow at the same height are spread up to the next greater one,
    and those at height 0 above the leaves: the wait for the merge of m lineages is in proportion to its expectation,
    ``2 / (m (m - 1))``. Above the greatest height waits are as long as expected.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    Tree
        With the same merges in the same order, and heights that strictly increase.
    """
    heights = tree.heights[tree.n_leaves - 1 :]  # of a leaf, and of the merges
    expected = np.append(0.0, np.cumsum(1 / pair_counts(tree.n_leaves)))
    fixed = np.append(0, 1 + np.flatnonzero(np.diff(heights) > 0))
    spread = np.interp(expected, expected[fixed], heights[fixed])
    last = fixed[-1]
    spread[last:] = heights[last] + (expected[last:] - expected[last])
    return Tree(tree.children, np.append(np.zeros(tree.n_leaves), _strictly_increasing(spread)[1:]), tree.leaf_names)


def _strictly_increasing(heights: FloatArray) -> FloatArray:
    """Return non-negative heights made strictly increasing, with steps of at least one unit in the last place."""
    steps = np.arange(len(heights))
    bits = (heights + 0.0).view(np.int64) - steps  # the bits of non-negative numbers sort like the numbers
    return np.asarray((np.maximum.accumulate(bits) + steps).view(np.float64))


def _n_sweeps(n: int, forest: Forest) -> int:
    """Return the default number of sweeps."""
    columns = forest.n_real * (COMPLETE_SHARE if forest.complete else 1.0) + forest.n_sites * SITE_SHARE
    return min(MIN_SWEEPS + int(EXTRA_WORK / (n * (MERGE_COLUMNS + columns))), MAX_SWEEPS)


def mean_heights(
    tree: Tree, forest: Forest, n_sweeps: int, free: NDArray[np.bool_] | None = None, seed: int = SEED
) -> FloatArray:
    """Return the posterior mean of every merge height, given the clades of a tree and the data.

    Parameters
    ----------
    tree : Tree
        Its heights, which must strictly increase, are the initial state.
    forest : Forest
        With `slots_of(n)` slots. The first hold the messages of the leaves.
    n_sweeps : int
        Number of Gibbs sweeps to average.
    free : ndarray of bool, shape (n - 1,), optional
        Which merges to sample; the others stay fixed. By default all.
    seed : int, default 0

    Returns
    -------
    ndarray of shape (n - 1,)
        In the order of the tree's merges. No parent is below its children.
    """
    n = tree.n_leaves
    history = History(n)
    set_children(history, tree.children, tree.root)
    set_heights(forest, history, tree.heights)
    log_likelihood_of(forest, history)
    rng, n_warmup, done = np.random.default_rng(seed), -(-n_sweeps // WARMUP_DIVISOR), 0
    sweeps_per_call = max(1, UNIFORMS_PER_CALL // (2 * n * UNIFORMS))
    totals = np.zeros(n - 1)
    flags = np.ones(n - 1, dtype=np.uint8) if free is None else free.astype(np.uint8)
    for end in (n_warmup, n_warmup + n_sweeps):
        totals[:] = 0.0
        while done < end:
            count = min(sweeps_per_call, end - done)
            sweep_heights(forest, history, flags, rng.random((count, 2 * (n - 1), UNIFORMS)), totals)
            done += count
    return np.where(flags, totals / n_sweeps, tree.merge_heights)


def _with_heights(tree: Tree, merge_heights: FloatArray) -> Tree:
    """Return the tree with other heights, and its merges renumbered by height."""
    n = tree.n_leaves
    order = np.argsort(merge_heights, kind="stable")
    number = np.arange(2 * n - 1)
    number[n + order] = np.arange(n, 2 * n - 1)
    heights = _strictly_increasing(np.append(0.0, merge_heights[order]))
    children = np.sort(number[tree.children[order]], axis=1)
    return Tree(children, np.append(np.zeros(n), heights[1:]), tree.leaf_names)
