"""The average of greedy trees over perturbed replicates of the table, which is more stable than a single greedy tree.

A greedy tree depends on single cells: with other noise on the same leaves it would often be different. So the noise is drawn
again. The merges of the given tree are kept until m lineages are left. Each replicate perturbs the messages of these lineages as
noise would, and the greedy search with the rule ``rate1`` builds a tree over them, in which lineages i and j meet at height
``h_ij``. The similarity of two lineages is the mean over the replicates

    S_ij = mean exp(-h_ij).

Under Kingman's coalescent ``exp(-h)`` is the probability that a pair has not met by height h: a similarity between 0 and 1 that
is uniform under the prior. Average linkage of S, with lineages weighted by their numbers of rows, gives the tree. Clusters that
are joined at mean similarity s merge at height ``-log s``, as they would in a single tree.

Trees also depend on the scale of real columns, and no scale is best for all tables. If asked to, replicates take turns with
three: the one given in every second replicate, ranks, which compress outliers, and equal variances. In addition every column
has a random weight, with a gamma distribution, so that no single column decides. Means of messages are linear in the cells, so
scales and weights are applied to lineages, which takes no time.

A replicate perturbs messages, see `coaltree.process.kernels.messages`:

*Real columns*
    A message's mean has a variance given the state at the top of the lineage: ``v`` for Brownian motion and ``1 - f^2`` for a
    stationary column; for a leaf, the noise. The mean moves by a normal deviate with `jitter` times that standard deviation. If
    a lineage is the mean of k leaves, perturbing each leaf has the same effect.
*Sites*
    A message is a mixture of a flat one, with weight ``w = min_k M_k``, and one that excludes a state; for a leaf, w is the
    noise. It becomes flat with probability `drop` times w.
*Chains*
    A message is tilted towards higher or lower levels, by as much as a real one would move; columns have random weights, too.

Noise causes many ties in height. Tied merges keep their order by a negligible difference in similarity, so that without
perturbation the given tree is returned.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._random import RandomState, as_generator
from ..process.base import Process
from ..process.kernels.messages import Forest, set_log_norms
from ..process.kernels.passes import climb
from ..process.layout import Parameters
from ..tree.arrays import Merges, allocate_merges, first_positions, leaf_counts
from ..tree.tree import Tree
from .executors import in_threads, thread_count
from .greedy import merge_exactly
from .kernels.partners import Partners, slots_for

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MAX_LINEAGES = 200  # whose merges are averaged; earlier merges stay
MIN_TREES, MAX_TREES, MAX_TREES_FILLED = 12, 20, 30
MANY_ROWS = 1_000  # from which on more than `MIN_TREES` gave no better trees, `benchmarks/clusters.py --folder`
# Replicates may take a tenth of a second longer than the greedy search, which considers n^2 pairs. The allowance is in pairs
# without columns, and the costs of columns are relative to such a pair.
FREE_PAIRS = 500_000
MAX_PAIRS = 20_000_000  # also without columns: replicates of wide tables, whose trees are nearly certain, take seconds
REAL_COLUMN_COST, COMPLETE_COLUMN_COST, SITE_COST, CHAIN_COST = 0.25, 0.012, 0.016, 4.0
JITTER = 0.42  # of the noise's standard deviation
DROP = 1.0  # of the noise's probability
WEIGHT_SHAPE = 4.0  # of the gamma distribution of the columns' weights
TIED_RANKS = 1e-9  # of a column's range: smaller differences are rounding
TIE_SPREAD = 1e-11  # largest relative difference in similarity of tied merges
MAX_SCALED_HEIGHT = 30.0  # heights of higher trees are scaled down, so that similarities do not underflow


def average_trees(
    tree: Tree,
    X: FloatArray,
    process: Process,
    *,
    n_trees: int | None = None,
    max_lineages: int | None = None,
    jitter: float = JITTER,
    drop: float = DROP,
    rescale: bool = False,
    filled: bool = False,
    n_jobs: int | None = None,
    random_state: RandomState = 2,
) -> Tree:
    """Return the average of greedy trees over replicates of the table with new noise.

    Parameters
    ----------
    tree : Tree
        The result of the greedy search with the rule ``rate1``. Its merges stay until `max_lineages` lineages are left.
    X : ndarray of shape (n, D)
        Its rows in the order of the leaves; NaN is a missing cell.
    process : Process
        With all parameters resolved.
    n_trees : int, optional
        Number of replicates. By default between 12 and 20, or up to 30 for filled tables, such that they take about as long as
        the greedy search; 12 from 1,000 rows on.
    max_lineages : int, optional
        Maximum number of lineages whose merges are averaged. By default 200, or fewer if 12 replicates of so many would take
        much longer than the greedy search.
    jitter : float, default 0.42
        Perturbation of real values, as a share of the noise's standard deviation.
    drop : float, default 1.0
        Probability of dropping a categorical value, as a share of the noise's probability.
    rescale : bool, default False
        Whether replicates differ in the scales and weights of real columns too. Otherwise these are those of the process.
    filled : bool, default False
        Whether missing cells were filled. The greedy search of the incomplete table would have taken much longer, so the
        defaults above are larger.
    n_jobs : int, optional
        Number of threads. The result does not depend on it.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState, default 2
        By default a fixed seed.

    Returns
    -------
    Tree
        With average heights of the greedy trees. Without noise on the leaves, or with fewer than three leaves, this is the
        given tree.

    Notes
    -----
    The time of a replicate is proportional to the square of the number of lineages, which is bounded for any number of rows.
    Random numbers are assigned to columns and lineages by their contents, so the result does not depend on the order of rows and
    columns.

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
    if n < 3 or not any(columns.noisy for columns in process.columns(X[:1])):
        return tree
    forest = process.forest(X, n, scan=True, patterns=False)  # columns are perturbed one by one
    m, count = _choose_sizes(forest, n, filled)
    if max_lineages is not None:
        m = min(n, max(max_lineages, 2))
    deviation = _leaf_deviations(forest, n) if rescale else np.empty(0)
    lineages = _last_lineages(tree, forest, m)
    if rescale and forest.n_real:
        lineages = _with_scales(lineages, deviation, tree.leaf_counts[lineages.nodes])
    unit = max(1.0, tree.heights[-1] / MAX_SCALED_HEIGHT)
    seed = int(as_generator(random_state).integers(2**63))
    tasks = [(lineages, seed, k, jitter, drop, unit) for k in range(n_trees or count)]
    similarity = np.mean(list(in_threads(thread_count(n_jobs), _replicate, tasks)), axis=0)
    children, merge_similarity = average_linkage(similarity, tree.leaf_counts[lineages.nodes])
    return _replace_top(tree, lineages, children, -unit * np.log(merge_similarity))


def _choose_sizes(forest: Forest, n: int, filled: bool = False) -> tuple[int, int]:
    """Return numbers of lineages and replicates that take about as long as the greedy search of n rows."""
    real_cost = COMPLETE_COLUMN_COST if forest.complete else REAL_COLUMN_COST
    cost_of_states = SITE_COST * forest.n_sites + CHAIN_COST * forest.n_chains
    cost = 1 + real_cost * forest.n_real + cost_of_states
    incomplete_cost = 1 + REAL_COLUMN_COST * forest.n_real + cost_of_states
    pairs = min((incomplete_cost if filled else cost) * n**2, MAX_PAIRS) / cost + FREE_PAIRS / cost
    m = min(n, MAX_LINEAGES, max(math.isqrt(int(pairs / MIN_TREES)), 2))
    most = MIN_TREES if n >= MANY_ROWS else MAX_TREES_FILLED if filled else MAX_TREES
    return m, min(max(int(pairs / m**2), MIN_TREES), most)


class _Lineages(NamedTuple):
    """The last m lineages of a tree, highest last, with their messages.

    Columns, and lineages of equal height, are sorted by content, so that the order of the table does not matter.
    """

    nodes: IntArray  # (m,), node numbers in the tree
    forest: Forest  # with m slots
    floor: float  # height of the last merge below these lineages
    columns: IntArray  # sorted real columns
    signs: FloatArray  # of real columns, 1 or -1, which make a column and its negative equal
    sites: IntArray  # sorted sites
    scales: tuple[_Scale, ...] = ()  # of real columns, that replicates take turns with; none for those of the forest


class _Scale(NamedTuple):
    """The means of real columns on one scale."""

    mean: FloatArray  # (m, real columns)
    variance: FloatArray  # (real columns,), of the leaves


def _last_lineages(tree: Tree, forest: Forest, m: int) -> _Lineages:
    """Climb a tree until m lineages are left. This overwrites the forest with the leaves' messages."""
    n = tree.n_leaves
    slot, unused = np.arange(tree.n_nodes), np.empty(n - 1)
    climb(forest, tree.children, tree.heights, slot, unused, unused, 0, n - m)
    top = tree.children[n - m :]
    nodes = top[top < 2 * n - m]
    slots = slot[nodes]
    mean, height = np.asarray(forest.mean)[slots], np.asarray(forest.height)[slots]
    # invariant under renumbering of the states
    peaks = _reduce_states(np.maximum, np.asarray(forest.state)[slots] ** 2, forest)
    columns, sites = _sort_columns(mean), _sort_columns(peaks)
    signs = np.where(np.sort(mean**3, axis=0).sum(axis=0) < 0, -1.0, 1.0)
    chain = np.asarray(forest.chain)[slots]
    order = np.lexsort((*chain.T, *peaks[:, sites].T, *(signs * mean)[:, columns].T, height))
    lineages = _copy_forest(forest, slots[order], m)
    return _Lineages(nodes[order], lineages, float(tree.heights[2 * n - m - 1]), columns, signs, sites)


def _sort_columns(values: FloatArray) -> IntArray:
    """Sort columns by content. The result is independent of the order of columns and rows, except for ties."""
    cubes = np.sort(np.abs(values) ** 3, axis=0)  # the squares of standardized columns all have the same sum
    return np.argsort(cubes.sum(axis=0), kind="stable")


def _reduce_states(ufunc: np.ufunc, values: FloatArray, forest: Forest) -> FloatArray:
    """Reduce an array over all states to one over all sites."""
    rank = np.asarray(forest.rank)
    reduced = values[:, : forest.n_sites].copy()  # the first states
    for first, last in pairwise(rank[1:].tolist()):
        part = reduced[:, : last - first]
        ufunc(part, values[:, first:last], out=part)
    return reduced


def _copy_forest(forest: Forest, slots: IntArray | slice, capacity: int) -> Forest:
    """Return a forest with `capacity` slots whose first slots are copies of some slots of another."""
    parameters = Parameters(
        forest.complete,
        forest.noisy,
        np.asarray(forest.log_scale),
        np.asarray(forest.root_variance),
        np.asarray(forest.group),
        np.asarray(forest.together),
        np.asarray(forest.rate),
        np.asarray(forest.site_rate),
        forest.common_rate,
        np.asarray(forest.rank),
        np.asarray(forest.root_q),
        np.asarray(forest.site_weight),
        np.asarray(forest.real_weight),
        np.asarray(forest.chain_start),
        np.asarray(forest.chain_rate),
        np.asarray(forest.basis),
        np.asarray(forest.fastest_exit),
        np.asarray(forest.chain_weight),
    )

    def copy_slots(array: FloatArray) -> FloatArray:
        chosen = np.asarray(array)[slots]
        copy = np.zeros((capacity, *chosen.shape[1:]))
        copy[: len(chosen)] = chosen
        return copy

    return Forest(
        copy_slots(forest.height),
        copy_slots(forest.mean),
        copy_slots(forest.spread),
        copy_slots(forest.least),
        copy_slots(forest.state),
        copy_slots(forest.growth),
        copy_slots(forest.chain),
        parameters,
        forest.layout,
    )


def _leaf_deviations(forest: Forest, n: int) -> FloatArray:
    """Return the standard deviations of real columns over the leaves that have them, in the units of messages."""
    values, observed = np.asarray(forest.mean)[:n], _observed_mask(forest, n)
    counts = np.maximum(observed.sum(axis=0), 1)
    mean = np.where(observed, values, 0.0).sum(axis=0) / counts
    deviation: FloatArray = np.sqrt((np.where(observed, values - mean, 0.0) ** 2).sum(axis=0) / counts)
    return deviation


def _observed_mask(forest: Forest, n: int) -> NDArray[np.bool_]:
    """Return which real columns are known below the first n slots."""
    spread = np.broadcast_to(np.asarray(forest.spread)[:n], (n, forest.n_real))
    is_stationary = np.arange(forest.n_real) >= forest.n_brownian
    return np.where(is_stationary, spread < 1, np.isfinite(spread))


def _with_scales(lineages: _Lineages, deviation: FloatArray, counts: IntArray) -> _Lineages:
    """Add the scales that replicates take turns with: the one given twice, ranks, and equal variances."""
    m = len(lineages.nodes)
    mean, variance = np.asarray(lineages.forest.mean)[:m].copy(), deviation**2
    varies = variance > 0
    if not varies.any():
        return lineages
    common = variance[varies].mean()
    factor = np.ones(len(variance))
    factor[varies] = np.sqrt(common / variance[varies])
    weights = counts[:, None].astype(np.float64) * _observed_mask(lineages.forest, m)
    unchanged, ranks = _Scale(mean, variance), _Scale(_to_ranks(mean, weights), variance)
    equal = _Scale(mean * factor, np.where(varies, common, 0.0))
    return lineages._replace(scales=(unchanged, ranks, unchanged, equal))


def _to_ranks(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Replace values by their ranks within columns, with the same weighted means and variances.

    A value of weight w counts as w equal values, of weight 0 not at all. Tied values share the mean of their ranks.
    """
    order = np.argsort(values, axis=0, kind="stable")
    ordered, ordered_weights = np.take_along_axis(values, order, axis=0), np.take_along_axis(weights, order, axis=0)
    last = np.cumsum(ordered_weights, axis=0)
    first = last - ordered_weights
    tied = np.diff(ordered, axis=0) <= TIED_RANKS * (ordered[-1] - ordered[0])
    end = np.zeros((1, values.shape[1]), dtype=bool)
    first = np.maximum.accumulate(np.where(np.vstack([end, tied]), -np.inf, first), axis=0)
    last = np.minimum.accumulate(np.where(np.vstack([tied, end]), np.inf, last)[::-1], axis=0)[::-1]
    ranks = np.empty_like(values)
    np.put_along_axis(ranks, order, first + last, axis=0)
    total = np.maximum(weights.sum(axis=0), 1)

    def moments(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean = (weights * x).sum(axis=0) / total
        return mean, np.sqrt((weights * (x - mean) ** 2).sum(axis=0) / total)

    (mean, deviation), (middle, spread) = moments(values), moments(ranks)
    ratio = np.divide(deviation, spread, out=np.zeros_like(spread), where=spread > 0)
    return np.where(weights > 0, mean + (ranks - middle) * ratio, 0.0)


def _replicate(lineages: _Lineages, seed: int, k: int, jitter: float, drop: float, unit: float) -> FloatArray:
    """Return the similarities of all pairs of lineages in the tree of replicate k."""
    m = len(lineages.nodes)
    forest = _copy_forest(lineages.forest, slice(m), slots_for(m))
    rng = np.random.default_rng([seed, k])
    if lineages.scales:
        mean, variance = lineages.scales[k % len(lineages.scales)]
        weights = np.empty(forest.n_real)
        weights[lineages.columns] = rng.gamma(WEIGHT_SHAPE, size=forest.n_real)
        weights *= variance.sum() / (weights @ variance)  # the mean squared distance of two leaves stays
        np.asarray(forest.mean)[:m] = np.sqrt(weights) * mean
    if forest.n_chains:
        weights = rng.gamma(WEIGHT_SHAPE, size=forest.n_chains)
        forest.set_chain_weights(weights / weights.mean())
    _perturb(forest, lineages, rng, jitter, drop)
    set_log_norms(forest, m)
    children, heights = _greedy_merges(forest, m, lineages.floor)
    # tied merges keep their order
    return _similarities(children, np.exp(-heights[m:] / unit) * np.linspace(1, 1 - TIE_SPREAD, m - 1))


def _perturb(forest: Forest, lineages: _Lineages, rng: np.random.Generator, jitter: float, drop: float) -> None:
    """Perturb the messages in the first slots as noise would."""
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
        weight = _reduce_states(np.minimum, state / root_q, forest)
        chance = np.empty((m, forest.n_sites))
        chance[:, lineages.sites] = rng.random((m, forest.n_sites))
        flat = chance < drop * weight
        for first, last in pairwise(np.asarray(forest.rank).tolist()):
            states = state[:, first:last]
            np.copyto(states, root_q[first:last], where=flat[:, : last - first])
    for d in range(forest.n_chains):
        _tilt(forest, d, m, jitter * rng.standard_normal(m))


def _tilt(forest: Forest, d: int, m: int, moves: FloatArray) -> None:
    """Tilt the messages of a chain towards higher or lower levels, as far as noise would move a real value."""
    states = slice(*np.asarray(forest.chain_start)[d : d + 2].tolist())
    chain = np.asarray(forest.chain)[:m, states]
    basis = np.asarray(forest.basis)[states, : chain.shape[1]]
    if chain.shape[1] < 2:
        return
    root, score = basis[:, 0], basis[:, 1] / basis[:, 0]
    shares = np.maximum(chain @ basis.T, 0.0) * root  # of the states given the rows below
    mean = shares @ score
    variance = np.maximum(shares @ score**2 - mean**2, 1e-9)
    precision = np.maximum(1 / variance - 1, 0.0)  # without what the equilibrium says
    shares *= np.exp((moves * np.sqrt(precision))[:, None] * (score - mean[:, None]))
    chain[:] = (shares / shares.sum(axis=1, keepdims=True) / root) @ basis


def _greedy_merges(forest: Forest, m: int, floor: float) -> Merges:
    """Merge the lineages in the first m slots by exact search."""
    merges = allocate_merges(m)
    merges.heights[m - 1] = floor  # a lower bound on all merges
    merge_exactly(forest, Partners(forest, m), 0, merges, 1, lambda share, live: None)
    return merges


def _similarities(children: IntArray, similarity: FloatArray) -> FloatArray:
    """Return the similarities of all pairs of leaves, which are those of the merges where they meet."""
    counts = leaf_counts(children)
    first = first_positions(children, counts)
    n = len(children) + 1
    # In depth-first order, the two sides of a merge are adjacent ranges of leaves.
    ordered = np.zeros((n, n))
    left, right = first[children[:, 0]], first[children[:, 1]]
    ends = right + counts[children[:, 1]]
    for start, middle, end, value in zip(
        left.tolist(), right.tolist(), ends.tolist(), similarity.tolist(), strict=True
    ):
        ordered[start:middle, middle:end] = value
    ordered += ordered.T
    return ordered[np.ix_(first[:n], first[:n])]


def average_linkage(similarity: FloatArray, counts: IntArray) -> tuple[IntArray, FloatArray]:
    """Repeatedly merge the two clusters with the largest mean similarity over pairs of their rows.

    Parameters
    ----------
    similarity : ndarray of shape (m, m)
        Of lineages. The diagonal is ignored.
    counts : ndarray of shape (m,)
        Number of rows of each lineage.

    Returns
    -------
    children : ndarray of shape (m - 1, 2)
    merge_similarity : ndarray of shape (m - 1,)
        The mean similarity at each merge, in descending order.
    """
    m = len(counts)
    mean, count, node = similarity.copy(), counts.astype(np.float64), np.arange(m)
    np.fill_diagonal(mean, -np.inf)
    children, merge_similarity = np.empty((m - 1, 2), dtype=np.intp), np.empty(m - 1)
    for k in range(m - 1):
        i, j = sorted(divmod(int(np.argmax(mean)), m))
        children[k], merge_similarity[k] = sorted((node[i], node[j])), mean[i, j]
        share = count[i] / (count[i] + count[j])
        mean[i] = mean[:, i] = share * mean[i] + (1 - share) * mean[j]
        mean[i, i] = mean[j] = mean[:, j] = -np.inf
        count[i] += count[j]
        node[i] = m + k
    return children, np.minimum.accumulate(merge_similarity)  # despite rounding, never increasing


def _replace_top(tree: Tree, lineages: _Lineages, children: IntArray, heights: FloatArray) -> Tree:
    """Replace the merges above the lineages."""
    n, m = tree.n_leaves, len(lineages.nodes)
    number = np.concatenate([lineages.nodes, np.arange(2 * n - m, 2 * n - 1)])
    return Tree(
        np.concatenate([tree.children[: n - m], np.sort(number[children], axis=1)]),
        np.concatenate([tree.heights[: 2 * n - m], np.maximum(heights, lineages.floor)]),
        tree.leaf_names,
    )
