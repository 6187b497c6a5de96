"""Kingman's coalescent as a prior over trees: its density, simulation, and the number of lineages through time."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._random import RandomState, as_generator
from .._validation import check_memory, quote
from ..errors import InputError
from .summary import ROUNDING
from .tree import Tree, check_tree

FloatArray = NDArray[np.float64]

# `prior_band` simulates every waiting time below this number of lineages.
MAX_SIMULATED_LINEAGES = 1_000
N_DRAWS = 10_000
SEED = 2007
MAX_EXPONENT = 40.0  # terms below exp(-40) of the first are negligible


def pair_counts(n_leaves: int) -> NDArray[np.float64]:
    """Return the number of live pairs before each merge, most recent first: ``c_i = m (m - 1) / 2``, eq. (1.1)."""
    live = np.arange(n_leaves, 1, -1, dtype=np.float64)
    return live * (live - 1) / 2


def _check_leaf_count(n: object) -> int:
    if isinstance(n, bool) or not isinstance(n, numbers.Real) or n < 1 or n != n // 1:
        raise InputError(f"n is {quote(n)}; the number of leaves must be a whole number of at least 1.")
    count = int(float(n))
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
    live = list(range(n))
    children: list[int] = []  # flat: a million pairs would keep the garbage collector busy
    for k in range(n - 1):
        i, j = first[k], second[k]
        j += j >= i
        children += (live[i], live[j])
        live[i] = n + k
        live[j] = live[-1]
        live.pop()
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
