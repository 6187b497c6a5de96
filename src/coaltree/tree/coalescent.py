"""Kingman's coalescent as a prior over trees: its density, simulation, lineages through time, and where a new leaf attaches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._parameters import Integer
from .._random import RandomState, as_generator
from .._validation import check_memory, quote
from ..errors import InputError
from .summary import ROUNDING
from .tree import Tree, check_tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# `prior_band` simulates every waiting time below this number of lineages.
MAX_SIMULATED_LINEAGES = 1_000
N_DRAWS = 10_000
SEED = 2007
MAX_EXPONENT = 40.0  # terms below exp(-40) of the first are negligible

# Quadrature points for the attachment of a new leaf
MIN_RELATIVE_CELL = 1e-4  # length of the shortest cells, relative to the height of the upper end of the branch
BRANCH_CHUNK = 50_000
GAUSS_NODES, GAUSS_WEIGHTS = zip(*(np.polynomial.legendre.leggauss(k) for k in (1, 2, 3)), strict=True)
STEM_NODES, STEM_WEIGHTS = np.polynomial.laguerre.laggauss(6)


def pair_counts(n_leaves: int) -> NDArray[np.float64]:
    """Return the number of live pairs before each merge, most recent first: ``c_i = m (m - 1) / 2``, eq. (1.1)."""
    n_lineages = np.arange(n_leaves, 1, -1, dtype=np.float64)
    return n_lineages * (n_lineages - 1) / 2


def _check_leaf_count(n: Any) -> int:
    if not Integer(1, as_float=True).accepts(n):
        raise InputError(f"n is {quote(n)}; the number of leaves must be a whole number of at least 1.")
    count = min(int(n), 2**63)
    check_memory(100.0 * count, f"A tree with {count:,} leaves", "use fewer leaves")
    return count


def log_prior(tree: Tree) -> float:
    r"""Log density of a labelled history under Kingman's coalescent.

    Each pair of live lineages merges at rate 1, so
    :math:`\log p = -\sum_i c_i \delta_i` with :math:`c_i` live pairs during the time :math:`\delta_i`
    before merge :math:`i`, eq. (1.2). The density is over the heights for one labelled history; there is no further constant.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    float

    Examples
    --------
    >>> import coaltree as ct
    >>> ct.log_prior(ct.Tree.from_newick("((a:1,b:1):2,c:3);"))
    -5.0
    """
    tree = check_tree(tree)
    # Subtracting from 0.0 keeps the log density of a single leaf from being -0.0.
    return 0.0 - float(np.sum(pair_counts(tree.n_leaves) * np.diff(tree.heights[tree.n_leaves - 1 :])))


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


def simulate_tree(n: int, random_state: RandomState = None, *, leaf_names: Sequence[str] | None = None) -> Tree:
    """Draw a tree from Kingman's coalescent.

    Parameters
    ----------
    n : int
        Number of leaves, at least 1.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        The source of randomness.
    leaf_names : sequence of str, optional
        Names of the leaves.

    Returns
    -------
    Tree

    Examples
    --------
    >>> import coaltree as ct
    >>> ct.simulate_tree(4, random_state=0).n_leaves
    4
    """
    n = _check_leaf_count(n)
    rng = as_generator(random_state)
    waits = rng.exponential(size=n - 1) / pair_counts(n)
    live_counts = np.arange(n, 1, -1)
    # The two draws are a uniform ordered pair of distinct places among the live ones.
    first = rng.integers(0, live_counts).tolist()
    second = rng.integers(0, live_counts - 1).tolist()
    lineages = list(range(n))
    children: list[int] = []  # flat: a million pairs would keep the garbage collector busy
    for k in range(n - 1):
        i, j = first[k], second[k]
        j += j >= i
        children += (lineages[i], lineages[j])
        lineages[i] = n + k
        lineages[j] = lineages[-1]
        lineages.pop()
    return Tree(
        np.array(children, dtype=np.intp).reshape(-1, 2), np.concatenate([np.zeros(n), np.cumsum(waits)]), leaf_names
    )


class Band(NamedTuple):
    """Interval of the height at which the number of lineages falls to each count."""

    counts: NDArray[np.intp]
    low: FloatArray
    high: FloatArray


def live_lineages(tree: Tree, heights: ArrayLike) -> NDArray[np.intp]:
    """Return the number of lineages just above each height.

    Parameters
    ----------
    tree : Tree
    heights : array-like of float

    Returns
    -------
    ndarray of int
        From the number of leaves down to 1.

    Examples
    --------
    >>> live_lineages(Tree.from_newick("((a:1,b:1):2,c:3);"), [0.0, 1.0, 2.9, 5.0]).tolist()
    [3, 2, 2, 1]
    """
    counts: NDArray[np.intp] = tree.n_leaves - np.searchsorted(tree.merge_heights, heights, side="right")
    return counts


def expected_lineages(n: int, heights: ArrayLike) -> FloatArray:
    r"""Return the exact mean number of lineages at each height under Kingman's coalescent.

    It is :math:`\sum_k (2k - 1) e^{-k (k - 1) t / 2} \prod_{i < k} (n - i) / (n + i)` (Tavaré 1984), all terms positive.

    Parameters
    ----------
    n : int
        Number of leaves.
    heights : array-like of float
        At least 0.

    Returns
    -------
    ndarray of float

    Examples
    --------
    >>> expected_lineages(2, [0.0, 1.0]).round(4).tolist()  # 1 + exp(-t)
    [2.0, 1.3679]
    """
    times = np.asarray(heights, dtype=np.float64)
    i = np.arange(n)
    log_shares = np.cumsum(np.log(n - i) - np.log(n + i))
    k = np.arange(1, n + 1, dtype=np.float64)
    logs, rates = np.log(2 * k - 1) + log_shares, k * (k - 1) / 2
    means = np.empty(times.size)
    for place, time in enumerate(times.ravel().tolist()):
        last = n if time == 0 else int(np.searchsorted(rates, (MAX_EXPONENT + np.log(2.0 * n)) / time, side="right"))
        means[place] = np.exp(logs[:last] - rates[:last] * time).sum()
    return means.reshape(times.shape)


def prior_band(n: int, level: float) -> Band:
    """Return intervals of the heights at which 1, 2, 3, ... lineages remain under Kingman's coalescent.

    The intervals come from 10,000 simulations with a fixed seed. For more than 1,000 leaves, the time until 1,000
    lineages remain is drawn from the gamma distribution with its mean and variance, and the band, which is thin
    there, omits larger numbers of lineages.

    Parameters
    ----------
    n : int
        Number of leaves, at least 2.
    level : float
        Probability of the band.

    Returns
    -------
    Band
        Central intervals. At any height, the number of lineages is in the band with the same probability.
    """
    if not 0 < level < 1:
        raise InputError(f"level is {quote(level)}; it must be a number between 0 and 1.")
    rng = np.random.default_rng(SEED)
    first = min(n, MAX_SIMULATED_LINEAGES)
    early = 1 / pair_counts(n)[: n - first]
    time = np.zeros(N_DRAWS)
    if len(early):
        mean, variance = early.sum(), (early**2).sum()
        time = rng.gamma(mean**2 / variance, variance / mean, size=N_DRAWS)
    ends = np.empty((first - 1, 2))
    tails = [0.5 * (1 - level), 0.5 * (1 + level)]
    for k, rate in enumerate(pair_counts(first).tolist()):
        time = time + rng.exponential(1 / rate, size=N_DRAWS)
        ends[k] = np.quantile(time, tails)
    return Band(np.arange(first - 1, 0, -1), ends[:, 0], ends[:, 1])


def sample_band(trees: Sequence[Tree], weights: FloatArray, level: float) -> Band:
    """Return intervals of the heights at which 1, 2, 3, ... lineages remain in a weighted sample of trees."""
    heights = np.stack([tree.merge_heights for tree in trees])
    order = np.argsort(heights, axis=0, kind="stable")
    heights = np.take_along_axis(heights, order, axis=0)
    shares = np.cumsum(weights[order], axis=0)

    def quantiles(tail: float) -> FloatArray:
        places = np.sum(shares < tail - ROUNDING, axis=0)[None]
        return np.asarray(np.take_along_axis(heights, places, axis=0)[0])

    return Band(np.arange(heights.shape[1], 0, -1), quantiles(0.5 * (1 - level)), quantiles(0.5 * (1 + level)))


class AttachmentPoints(NamedTuple):
    """Quadrature points on the branches, ordered by branch, each with its prior mass."""

    nodes: IntArray  # (points,), the node below
    heights: FloatArray  # (points,)
    low: FloatArray  # (points,), lower end of the interval that the point represents
    high: FloatArray  # (points,), upper end; the intervals of a branch are adjacent
    log_masses: FloatArray  # (points,), adding up to one over all points


class Survival:
    """Survival of a new lineage, ``S(h) = exp(-integral of k from 0 to h)``, where ``k(h)`` lineages are live at height h.

    Going back from the present, a new lineage meets each of the k(h) lineages at rate 1. So S is also the density of
    attaching to one of them at height h. Over all branches and the stem above the root it integrates to one: eq. (9.2).

    Parameters
    ----------
    tree : Tree
    """

    def __init__(self, tree: Tree) -> None:
        n = tree.n_leaves
        self.knots = np.concatenate([[0.0], tree.merge_heights])
        self.lineages = np.arange(n, 0, -1).astype(np.float64)
        steps = np.diff(self.knots) * self.lineages[:-1]
        self.log_survivals = -np.concatenate([[0.0], np.cumsum(steps)])
        log_masses = self.log_survivals.copy()  # above the root there is one lineage; its tail is its survival
        log_masses[:-1] = log_masses[:-1] + _log_share(steps) - np.log(self.lineages[:-1])
        self.log_tails = np.logaddexp.accumulate(log_masses[::-1])[::-1].copy()

    def log_survival(self, heights: FloatArray) -> FloatArray:
        """Return log S at heights."""
        j = np.searchsorted(self.knots, heights, side="right") - 1
        return np.asarray(self.log_survivals[j] - self.lineages[j] * (heights - self.knots[j]))

    def log_mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the logarithm of the integral of S over intervals. Upper ends may be infinite."""
        j = np.searchsorted(self.knots, low, side="right") - 1
        finite = np.where(np.isinf(high), low, high)
        same = (np.searchsorted(self.knots, finite, side="left") - 1 <= j) & ~np.isinf(high)
        within = self.log_survival(low) + _log_share(self.lineages[j] * (finite - low)) - np.log(self.lineages[j])
        across = np.flatnonzero(~same)
        ends = np.where(np.isinf(high[across]), -np.inf, self._log_tail(finite[across]))
        tails = self._log_tail(low[across])
        with np.errstate(divide="ignore", invalid="ignore"):
            within[across] = tails + np.log(-np.expm1(np.minimum(ends - tails, 0.0)))
        return within

    def _log_tail(self, heights: FloatArray) -> FloatArray:
        j = np.searchsorted(self.knots, heights, side="right") - 1
        last = j == len(self.knots) - 1
        following = np.minimum(j + 1, len(self.knots) - 1)
        remaining = np.where(last, 0.0, self.lineages[j] * (self.knots[following] - heights))
        start = self.log_survival(heights)
        log_part = start + _log_share(np.maximum(remaining, 0.0)) - np.log(self.lineages[j])
        return np.where(last, start, np.logaddexp(log_part, self.log_tails[following]))


def _log_share(x: FloatArray | float) -> FloatArray:
    """Return ``log(1 - exp(-x))``, minus infinity at 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(-np.expm1(-np.asarray(x))))


def attachment_points(tree: Tree, shift: float = 0.0, width: float = 1.1) -> AttachmentPoints:
    """Return quadrature points on all branches and on the stem above the root.

    Each branch is divided into cells of length at most `width` on the scale of ``log(height + shift)``, because the
    likelihood changes with the order of magnitude of the height. A cell has one to three Gauss-Legendre points; their
    masses add up to the mass of the cell.

    Parameters
    ----------
    tree : Tree
    shift : float, default 0.0
        A negligible height, such as the variance of noise.
    width : float, default 1.1

    Returns
    -------
    AttachmentPoints
    """
    survival = Survival(tree)
    branches = range(0, tree.n_nodes - 1, BRANCH_CHUNK)
    points = [_branch_points(tree, survival, slice(k, k + BRANCH_CHUNK), shift, width) for k in branches]
    stem_low, stem_high = _stem_cells(tree.heights[-1], shift, width)
    root = tree.n_nodes - 1
    points.append(_cell_points(survival, np.full(len(stem_low), root), stem_low, stem_high, np.full(len(stem_low), 3)))
    top = stem_high[-1] if len(stem_high) else float(tree.heights[-1])
    points.append(_stem_tail_points(survival, root, top))
    return AttachmentPoints(*(np.concatenate(parts) for parts in zip(*points, strict=True)))


def _branch_points(tree: Tree, survival: Survival, branches: slice, shift: float, width: float) -> AttachmentPoints:
    """Return the points of a slice of the branches."""
    below, above = tree.heights[:-1][branches], tree.heights[tree.parents[:-1][branches]]
    shifts = np.maximum(shift, MIN_RELATIVE_CELL * above)
    with np.errstate(divide="ignore", invalid="ignore"):
        spans = np.where(above > below, np.log1p((above - below) / (below + shifts)), 0.0)
    counts = np.maximum(np.ceil(spans / width), 1).astype(np.intp)
    counts[above <= below] = 0
    nodes = np.repeat(np.arange(len(below)), counts)
    index = np.arange(len(nodes)) - np.repeat(np.cumsum(counts) - counts, counts)
    base = (below + shifts)[nodes]
    step = (spans / np.maximum(counts, 1))[nodes]
    low = below[nodes] + base * np.expm1(step * index)
    high = np.where(index + 1 == counts[nodes], above[nodes], below[nodes] + base * np.expm1(step * (index + 1)))
    points = _cell_points(survival, branches.start + nodes, low, high, 1 + (step > 0.15) + (step > 0.45))
    order = np.argsort(points.nodes, kind="stable")
    return AttachmentPoints(points.nodes[order], *(array[order] for array in points[1:]))


def _stem_cells(root_height: float, shift: float, width: float) -> tuple[FloatArray, FloatArray]:
    """Divide the first unit of the stem, which has most of the prior mass, into cells."""
    start = root_height + max(shift, MIN_RELATIVE_CELL * max(root_height, 1.0))
    n_cells = math.ceil(math.log1p(1 / start) / width)
    edges = root_height + start * np.expm1(np.linspace(0.0, math.log1p(1 / start), n_cells + 1))
    return edges[:-1], edges[1:]


def _stem_tail_points(survival: Survival, root: int, low: float) -> AttachmentPoints:
    """Return points on the infinite rest of the stem, where the prior decays exponentially."""
    start = float(survival.log_survival(np.array([low]))[0])
    # Beyond the last point, the mean of the rest is 1.
    gaps = np.concatenate([[0.0], -np.log1p(-np.cumsum(STEM_WEIGHTS[:-1])), [STEM_NODES[-1] + 1.0]])
    return AttachmentPoints(
        np.full(len(STEM_NODES), root),
        low + STEM_NODES,
        low + gaps[:-1],
        low + gaps[1:],
        start + np.log(STEM_WEIGHTS),
    )


def _cell_points(
    survival: Survival, nodes: IntArray, low: FloatArray, high: FloatArray, counts: IntArray
) -> AttachmentPoints:
    """Put the given number of points into each cell, and divide its mass among them."""
    points = []
    masses = survival.log_mass(low, high)
    for count in (1, 2, 3):
        cells = np.flatnonzero((counts == count) & (masses > -np.inf))
        x, w = GAUSS_NODES[count - 1], GAUSS_WEIGHTS[count - 1]
        edges = low[cells, None] + (high - low)[cells, None] * np.concatenate([[0.0], np.cumsum(0.5 * w)])
        heights = low[cells, None] + 0.5 * (high - low)[cells, None] * (1 + x)
        log_weights = np.log(w) + survival.log_survival(heights)
        log_weights -= np.logaddexp.reduce(log_weights, axis=1, keepdims=True)
        log_masses = masses[cells, None] + log_weights
        arrays = (heights, edges[:, :-1], edges[:, 1:], log_masses)
        points.append(AttachmentPoints(np.repeat(nodes[cells], count), *(array.ravel() for array in arrays)))
    return AttachmentPoints(*(np.concatenate(parts) for parts in zip(*points, strict=True)))
