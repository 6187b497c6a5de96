"""Kingman's coalescent as a prior over trees: its density and draws from it."""

from __future__ import annotations

import numbers
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..streams import RandomState, as_generator
from .tree import Tree, checked_tree


def pair_counts(n_leaves: int) -> NDArray[np.float64]:
    """Return the number of live pairs before each merge, most recent first: ``c_i = m (m - 1) / 2``, eq. (1.1)."""
    live = np.arange(n_leaves, 1, -1, dtype=np.float64)
    return live * (live - 1) / 2


def _checked_count(n: object) -> int:
    if isinstance(n, bool) or not isinstance(n, numbers.Real) or n < 1 or n != n // 1:
        raise InputError(f"n is {n!r}; the number of leaves must be a whole number of at least 1.")
    return int(float(n))


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
    tree = checked_tree(tree)
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
    n = _checked_count(n)
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
