"""An average of greedy trees over replicates of the table, more stable than the tree of the table itself.

A greedy tree hangs on single cells: with other noise on the same leaves it would often be another one. So its noise is drawn
again. The merges of a tree are kept until m lineages are left. Of these, replicates are made: what a lineage says of its state is
moved as noise would move it. Of each replicate the greedy search makes a tree over the m lineages, by the rule ``rate1``, where
lineages i and j meet at height ``h_ij``. The similarity of two lineages is the mean over the replicates

    S_ij = mean exp(-h_ij).

Under Kingman's coalescent ``exp(-h)`` is the probability that a pair has not met by height h: a similarity between 0 and 1,
evenly spread before anything is seen. Average linkage of S, in which a lineage counts as often as it has rows, makes the tree.
Two clusters that S joins at the mean similarity s meet at height ``-log s``, as they would in a single tree.

A replicate perturbs messages, see `coaltree.process.kernels.messages`:

*Real columns*
    A message's mean has a variance given the state at the lineage's top: ``v`` for Brownian motion and ``1 - f^2`` for a
    stationary column; for a leaf, the noise. The mean is moved by a normal number of `jitter` times that deviation. Where a
    lineage is the mean of k leaves, that is what moving each of them in this way would do.
*Sites*
    A message is a mixture of a flat one, with weight ``w = min_k M_k``, and of one that rules a state out; for a leaf, w is the
    noise. With probability `drop` times w it is made flat.

Merges of one tree at equal heights, as noise makes many, count as apart by far less than any difference of interest: without
perturbation, the tree comes back.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from .._random import RandomState, as_generator
from ..process.base import Process
from ..process.kernels.messages import Forest, set_log_norms
from ..process.kernels.passes import climb
from ..process.layout import Parameters
from ..tree.traversal import first_positions, leaf_counts
from ..tree.tree import Tree
from .greedy import merge_exactly
from .kernels.partners import Partners, slots_for
from .merges import Merges, allocate_merges
from .thread_executor import thread_count

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MAX_LINEAGES = 200  # above which merges stay as they are
MIN_TREES, MAX_TREES, MAX_TREES_FILLED = 5, 10, 30
# Replicates may take a tenth of a second longer than the greedy search, which weighs as many pairs as n^2: that is so many pairs
# of no columns, and in their time a column takes so much more.
FREE_PAIRS = 300_000
REAL_COLUMN, COMPLETE_COLUMN, SITE = 0.25, 0.012, 0.016
JITTER = 0.42  # of the noise's deviation
DROP = 1.0  # of the noise's probability
APART = 1e-11  # share of a similarity by which merges at one height differ at the most
MAX_UNITS = 30.0  # of height in a tree: more are measured in a longer unit, so that similarities do not vanish


def average_trees(
    tree: Tree,
    X: FloatArray,
    process: Process,
    *,
    n_trees: int | None = None,
    most_lineages: int | None = None,
    jitter: float = JITTER,
    drop: float = DROP,
    filled: bool = False,
    n_jobs: int | None = None,
    random_state: RandomState = 0,
) -> Tree:
    """Return the average of greedy trees over replicates of the table, in which its noise is drawn again.

    Parameters
    ----------
    tree : Tree
        That of the greedy search by ``rate1``. Of its merges, those before only `most_lineages` lineages are left stay.
    X : ndarray of shape (n, D)
        Its rows in the order of the leaves; NaN is a missing cell.
    process : Process
        A resolved one.
    n_trees : int, optional
        Number of replicates. By default 10, or down to 5 where more would take much longer than the greedy search, or up to 30
        where that one takes long.
    most_lineages : int, optional
        Number of lineages whose merges are averaged, at the most. By default 200, or fewer where even 5 replicates of so many
        would take much longer than the greedy search.
    jitter : float, default 0.42
        By which share of the noise's standard deviation real values are moved.
    drop : float, default 1.0
        With which share of the noise's probability categorical values are left out.
    filled : bool, default False
        Whether missing cells were filled in, so that the greedy search of the table itself would have taken much longer: the
        numbers by default are larger then.
    n_jobs : int, optional
        Threads. The result does not depend on it.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState, default 0
        The same replicates every time, by default.

    Returns
    -------
    Tree
        Its heights are those of the greedy trees, averaged. Without noise on the leaves, or with less than three of them, it is
        the tree that was given.

    Notes
    -----
    A replicate takes a time in proportion to the square of the number of lineages, of which there are few however many rows there
    are. Random numbers are dealt out in an order of the columns and lineages that depends on what they hold, not on where they
    stand.

    Examples
    --------
    >>> import numpy as np
    >>> import coaltree as ct
    >>> X = np.array([[0.0, 0.1], [0.2, 0.0], [2.1, 2.3], [2.0, 1.8]])
    >>> found = ct.greedy(X, ct.OrnsteinUhlenbeck(0.5, noise=0.3))
    >>> average_trees(found.tree, X, found.process).children.tolist()
    [[0, 1], [2, 3], [4, 5]]
    """
    n = tree.n_leaves
    if n < 3 or not any(own.noisy for own in process.columns(X[:1])):
        return tree
    forest = process.forest(X, n, scan=True)
    m, count = _sizes(forest, n, filled)
    if most_lineages is not None:
        m = min(n, max(most_lineages, 2))
    lineages = _last_lineages(tree, forest, m)
    unit = max(1.0, tree.heights[-1] / MAX_UNITS)
    seed = int(as_generator(random_state).integers(2**63))
    found = Parallel(n_jobs=thread_count(n_jobs), require="sharedmem")(
        delayed(_replicate)(lineages, [seed, k], jitter, drop, unit) for k in range(n_trees or count)
    )
    similarity = np.mean(found, axis=0)
    children, joined = average_linkage(similarity, tree.leaf_counts[lineages.nodes])
    return _with_top(tree, lineages, children, -unit * np.log(joined))


def _sizes(forest: Forest, n: int, filled: bool = False) -> tuple[int, int]:
    """Return how many lineages and how many replicates of them take about as long as the greedy search of n rows."""
    own = 1 + (COMPLETE_COLUMN if forest.complete else REAL_COLUMN) * forest.n_real + SITE * forest.n_sites
    longer = (1 + REAL_COLUMN * forest.n_real + SITE * forest.n_sites) / own if filled else 1.0
    pairs = longer * n**2 + FREE_PAIRS / own
    m = min(n, MAX_LINEAGES, max(math.isqrt(int(pairs / MIN_TREES)), 2))
    return m, min(max(int(pairs / m**2), MIN_TREES), MAX_TREES_FILLED if filled else MAX_TREES)


class _Lineages(NamedTuple):
    """Lineages that are left of a tree, youngest last, and what they say.

    Lineages of one age, and columns, are in an order that does not depend on where they stand in the table.
    """

    nodes: IntArray  # (m,), numbers in the tree
    forest: Forest  # of m slots
    floor: float  # height of the last merge that was made
    columns: IntArray  # real columns in their order
    signs: FloatArray  # of real columns, 1 or -1: turned round by them, a column and its negative are the same
    sites: IntArray  # sites in theirs


def _last_lineages(tree: Tree, forest: Forest, m: int) -> _Lineages:
    """Climb a tree until m lineages are left; the forest, of its leaves, is used up."""
    n = tree.n_leaves
    slot, unused = np.arange(tree.n_nodes), np.empty(n - 1)
    climb(forest, tree.children, tree.heights, slot, unused, unused, 0, n - m)
    top = tree.children[n - m :]
    nodes = top[top < 2 * n - m]
    slots = slot[nodes]
    mean, height = np.asarray(forest.mean)[slots], np.asarray(forest.height)[slots]
    # what is the same however states are numbered
    peaks = _over_states(np.maximum, np.asarray(forest.state)[slots] ** 2, forest)
    columns, sites = _order_of_columns(mean), _order_of_columns(peaks)
    signs = np.where(np.sort(mean**3, axis=0).sum(axis=0) < 0, -1.0, 1.0)
    order = np.lexsort((*peaks[:, sites].T, *(signs * mean)[:, columns].T, height))
    lineages = _copy_of(forest, slots[order], m)
    return _Lineages(nodes[order], lineages, float(tree.heights[2 * n - m - 1]), columns, signs, sites)


def _order_of_columns(values: FloatArray) -> IntArray:
    """Return the columns in an order that does not depend on where columns and rows stand, unless some are equal."""
    cubes = np.sort(np.abs(values) ** 3, axis=0)  # squares of standardised columns all have the same sum
    return np.argsort(cubes.sum(axis=0), kind="stable")


def _over_states(ufunc: np.ufunc, values: FloatArray, forest: Forest) -> FloatArray:
    """Reduce numbers for all states to numbers for all sites."""
    rank = np.asarray(forest.rank)
    reduced = values[:, : forest.n_sites].copy()  # the first states
    for first, last in pairwise(rank[1:].tolist()):
        own = reduced[:, : last - first]
        ufunc(own, values[:, first:last], out=own)
    return reduced


def _copy_of(forest: Forest, slots: IntArray | slice, capacity: int) -> Forest:
    """Return a forest of `capacity` slots, the first of which hold some of another one's."""
    parameters = Parameters(
        forest.complete,
        forest.noisy,
        np.asarray(forest.log_scale),
        np.asarray(forest.root_variance),
        np.asarray(forest.group),
        np.asarray(forest.rate),
        np.asarray(forest.site_rate),
        forest.common_rate,
        np.asarray(forest.rank),
        np.asarray(forest.root_q),
    )

    def copied(own: FloatArray) -> FloatArray:
        chosen = np.asarray(own)[slots]
        copy = np.zeros((capacity, *chosen.shape[1:]))
        copy[: len(chosen)] = chosen
        return copy

    return Forest(
        copied(forest.height),
        copied(forest.mean),
        copied(forest.spread),
        copied(forest.least),
        copied(forest.state),
        copied(forest.growth),
        parameters,
        forest.layout,
    )


def _replicate(lineages: _Lineages, seed: list[int], jitter: float, drop: float, unit: float) -> FloatArray:
    """Return the similarities of all pairs of lineages in the tree of one replicate."""
    m = len(lineages.nodes)
    forest = _copy_of(lineages.forest, slice(m), slots_for(m))
    _perturb(forest, lineages, np.random.default_rng(seed), jitter, drop)
    set_log_norms(forest, m)
    children, heights = _greedy_merges(forest, m, lineages.floor)
    # in their order, if at one height
    return _similarities(children, np.exp(-heights[m:] / unit) * np.linspace(1, 1 - APART, m - 1))


def _perturb(forest: Forest, lineages: _Lineages, rng: np.random.Generator, jitter: float, drop: float) -> None:
    """Move the messages of the first slots as noise would."""
    m = len(lineages.nodes)
    if forest.n_real:
        spread = np.asarray(forest.spread)[:m]
        variance = np.where(np.isinf(spread), 0.0, spread)
        if forest.complete:
            stationary = forest.n_brownian == 0
            variance = np.broadcast_to(variance * (2 - variance) if stationary else variance, (m, forest.n_real))
        else:
            lost = variance[:, forest.n_brownian :]
            variance[:, forest.n_brownian :] = np.where(lost < 1, lost * (2 - lost), 0.0)
        moves = np.empty((m, forest.n_real))
        moves[:, lineages.columns] = rng.standard_normal((m, forest.n_real))
        np.asarray(forest.mean)[:m] += jitter * np.sqrt(variance) * moves * lineages.signs
    if forest.n_sites:
        state, root_q = np.asarray(forest.state)[:m], np.asarray(forest.root_q)
        weight = _over_states(np.minimum, state / root_q, forest)
        chance = np.empty((m, forest.n_sites))
        chance[:, lineages.sites] = rng.random((m, forest.n_sites))
        flat = chance < drop * weight
        for first, last in pairwise(np.asarray(forest.rank).tolist()):
            own = state[:, first:last]
            np.copyto(own, root_q[first:last], where=flat[:, : last - first])


def _greedy_merges(forest: Forest, m: int, floor: float) -> Merges:
    """Merge the lineages in the first m slots by the exact search."""
    merges = allocate_merges(m)
    merges.heights[m - 1] = floor  # no merge is below
    merge_exactly(forest, Partners(forest, m), 0, merges, 1, lambda share, live: None)
    return merges


def _similarities(children: IntArray, similarity: FloatArray) -> FloatArray:
    """Return the similarity of all pairs of leaves: that of the merge where they meet."""
    counts = leaf_counts(children)
    first = first_positions(children, counts)
    n = len(children) + 1
    # in drawing order a merge's leaves are two stretches side by side
    drawn = np.zeros((n, n))
    left, right = first[children[:, 0]], first[children[:, 1]]
    ends = right + counts[children[:, 1]]
    for start, middle, end, own in zip(left.tolist(), right.tolist(), ends.tolist(), similarity.tolist(), strict=True):
        drawn[start:middle, middle:end] = own
    drawn += drawn.T
    return drawn[np.ix_(first[:n], first[:n])]


def average_linkage(similarity: FloatArray, counts: IntArray) -> tuple[IntArray, FloatArray]:
    """Join the two clusters that are most similar on average over pairs of their rows, again and again.

    Parameters
    ----------
    similarity : ndarray of shape (m, m)
        Of lineages; the diagonal is not read.
    counts : ndarray of shape (m,)
        Number of rows of each lineage.

    Returns
    -------
    children : ndarray of shape (m - 1, 2)
    joined : ndarray of shape (m - 1,)
        The similarity at which clusters were joined, in falling order.
    """
    m = len(counts)
    mean, count, node = similarity.copy(), counts.astype(np.float64), np.arange(m)
    np.fill_diagonal(mean, -np.inf)
    children, joined = np.empty((m - 1, 2), dtype=np.intp), np.empty(m - 1)
    for k in range(m - 1):
        i, j = sorted(divmod(int(np.argmax(mean)), m))
        children[k], joined[k] = sorted((node[i], node[j])), mean[i, j]
        share = count[i] / (count[i] + count[j])
        mean[i] = mean[:, i] = share * mean[i] + (1 - share) * mean[j]
        mean[i, i] = mean[j] = mean[:, j] = -np.inf
        count[i] += count[j]
        node[i] = m + k
    return children, np.minimum.accumulate(joined)  # rounding might turn them round


def _with_top(tree: Tree, lineages: _Lineages, children: IntArray, heights: FloatArray) -> Tree:
    """Return a tree with other merges from the lineages on."""
    n, m = tree.n_leaves, len(lineages.nodes)
    number = np.concatenate([lineages.nodes, np.arange(2 * n - m, 2 * n - 1)])
    return Tree(
        np.concatenate([tree.children[: n - m], np.sort(number[children], axis=1)]),
        np.concatenate([tree.heights[: 2 * n - m], np.maximum(heights, lineages.floor)]),
        tree.leaf_names,
    )
