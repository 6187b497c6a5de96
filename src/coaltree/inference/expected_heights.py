"""Expected heights: where the merges of a given tree are on average, after all that the data say.

Where leaves have noise, the search puts merges at height 0, or right upon another merge, whose best height would be lower still:
a dendrogram then shows an order that nothing tells. Given who merges with whom, heights have the posterior density

    p(heights | x, tree) ~ p(x | tree) exp(-sum_i c_i delta_i)

of eq. (1.2) and (2.1), and every merge gets its mean. The tree that is given is *unranked*: which of two merges comes first is
part of what is averaged over, as long as parents are above their children. The order in which the search made merges that it had
to cut off says nothing of their heights, and holding on to it would spread them as if it did.

The mean is that of draws, see `coaltree.inference.kernels.height_draws`, with random numbers that are always the same. Every draw
has parents above their children, hence so has the mean. Trees of many rows get a closed form instead, `spread_heights`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..process.base import Process
from ..process.kernels.messages import Forest
from ..tree.coalescent import pair_counts
from ..tree.tree import Tree
from .kernels.height_draws import UNIFORMS, sweep_heights
from .kernels.history import History, log_likelihood_of, set_children, set_heights, slots_of

FloatArray = NDArray[np.float64]

MAX_DRAWN_ROWS = 10_000  # rows, up to which drawing heights takes about as long as finding the tree, or less
SEED = 0  # of the draws, so that they are always the same
MIN_SWEEPS, MAX_SWEEPS = 15, 4_000
WORK = 200_000  # in sweeps beyond the fewest, counted in columns of merges: the larger the table, the fewer sweeps
MERGE_COLUMNS = 8  # columns that take as long as what a merge takes without any
COMPLETE_SHARE, SITE_SHARE = 0.125, 0.25  # of the time of a real column: one of the complete layout, and a site
WARM_UP = 8  # one sweep more for so many that are averaged goes before them
UNIFORMS_AT_ONCE = 100_000  # so that Ctrl-C gets its turn


def expected_heights(
    tree: Tree,
    X: FloatArray,
    process: Process,
    *,
    only_ties: bool = False,
    n_sweeps: int | None = None,
    most_drawn: int = MAX_DRAWN_ROWS,
) -> Tree:
    """Return the tree with its merges at their expected heights.

    Parameters
    ----------
    tree : Tree
        For example that of the greedy search.
    X : ndarray of shape (n, D)
        Its rows in the order of the leaves; NaN is a missing cell.
    process : Process
        A resolved one.
    only_ties : bool, default False
        Whether merges that have a height of their own stay there, and only those at height 0, or at the height of the merge
        before, get what is expected of them, given the others.
    n_sweeps : int, optional
        How often heights are drawn and averaged. By default from 15 to 4,000 times, the larger the table the fewer.
    most_drawn : int, default 10,000
        Trees of more rows get the closed form of `spread_heights`.

    Returns
    -------
    Tree
        With the same clades. Merges are numbered by their new heights, which strictly increase. Without noise on the leaves it
        is the tree that was given.

    Notes
    -----
    A sweep takes a time in proportion to ``n D``. The result is the same every time.

    Mean heights are no most probable ones: of many merges that the data cannot tell apart, height 0 is the most probable, and the
    log joint density of the tree may well fall.

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
    if n < 2 or not any(own.noisy for own in process.columns(X[:1])):
        return tree
    spread = spread_heights(tree)
    if n > most_drawn:
        return spread
    forest = process.forest(X, slots_of(n))
    free = np.ones(n - 1, dtype=bool)
    if only_ties:
        free = np.diff(tree.heights[n - 1 :]) == 0
    return _with_heights(tree, mean_heights(spread, forest, n_sweeps or _sweep_count(n, forest), free))


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
    kept = np.append(0, 1 + np.flatnonzero(np.diff(heights) > 0))
    spread = np.interp(expected, expected[kept], heights[kept])
    last = kept[-1]
    spread[last:] = heights[last] + (expected[last:] - expected[last])
    return Tree(tree.children, np.append(np.zeros(tree.n_leaves), _strict(spread)[1:]), tree.leaf_names)


def _strict(heights: FloatArray) -> FloatArray:
    """Return non-negative heights such that each is greater than the one before, if by the last digit only."""
    steps = np.arange(len(heights))
    bits = (heights + 0.0).view(np.int64) - steps  # of numbers that are not negative, bits are in the same order
    return np.asarray((np.maximum.accumulate(bits) + steps).view(np.float64))


def _sweep_count(n: int, forest: Forest) -> int:
    """Return how many sweeps are averaged by default."""
    columns = forest.n_real * (COMPLETE_SHARE if forest.complete else 1.0) + forest.n_sites * SITE_SHARE
    return min(MIN_SWEEPS + int(WORK / (n * (MERGE_COLUMNS + columns))), MAX_SWEEPS)


def mean_heights(
    tree: Tree, forest: Forest, n_sweeps: int, free: NDArray[np.bool_] | None = None, seed: int = SEED
) -> FloatArray:
    """Return the mean of draws of every merge's height, given the clades of a tree and the data.

    Parameters
    ----------
    tree : Tree
        Its heights, which must strictly increase, are where the draws begin.
    forest : Forest
        Of as many slots as `slots_of` says, the first of which hold the messages of the leaves.
    n_sweeps : int
        How often heights are drawn and averaged.
    free : ndarray of bool, shape (n - 1,), optional
        Which merges are drawn; the others stay. By default all.
    seed : int, default 0

    Returns
    -------
    ndarray of shape (n - 1,)
        In the order of the tree's merges. Parents are not below their children.
    """
    n = tree.n_leaves
    history = History(n)
    set_children(history, tree.children, tree.root)
    set_heights(forest, history, tree.heights)
    log_likelihood_of(forest, history)
    rng, warm_up, done = np.random.default_rng(seed), -(-n_sweeps // WARM_UP), 0
    at_once = max(1, UNIFORMS_AT_ONCE // (2 * n * UNIFORMS))
    totals = np.zeros(n - 1)
    drawn = np.ones(n - 1, dtype=np.uint8) if free is None else free.astype(np.uint8)
    for end in (warm_up, warm_up + n_sweeps):
        totals[:] = 0.0
        while done < end:
            count = min(at_once, end - done)
            sweep_heights(forest, history, drawn, rng.random((count, 2 * (n - 1), UNIFORMS)), totals)
            done += count
    return np.where(drawn, totals / n_sweeps, tree.merge_heights)


def _with_heights(tree: Tree, merge_heights: FloatArray) -> Tree:
    """Return the tree with other heights, its merges in their order."""
    n = tree.n_leaves
    order = np.argsort(merge_heights, kind="stable")
    number = np.arange(2 * n - 1)
    number[n + order] = np.arange(n, 2 * n - 1)
    heights = _strict(np.append(0.0, merge_heights[order]))
    children = np.sort(number[tree.children[order]], axis=1)
    return Tree(children, np.append(np.zeros(n), heights[1:]), tree.leaf_names)
