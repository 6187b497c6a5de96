"""Whether Markov chains over trees have forgotten where they began, and how much their samples are worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tree.clades import number_clades
from ..tree.tree import Tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

RARE = 0.1  # clades that no chain has more often are left out of the comparison of chains, as is usual
REFERENCES = 20  # trees, distances to which are looked at for the effective number of topologies
FEWEST = 4  # samples of a chain, below which nothing can be said
LONGEST_WARM_UP = 0.5  # of the samples
WARM_UPS = 11  # that are tried


def r_hat(trace: FloatArray) -> float:
    """Return the rank-normalised R-hat of a trace of shape (chains, samples): 1 where all chains are alike.

    The halves of a single chain stand for two.
    """
    from arviz_stats.base import array_stats  # type: ignore[attr-defined, unused-ignore]

    if np.all(trace == trace.flat[0]):
        return 1.0
    if len(trace) == 1:
        half = trace.shape[1] // 2
        trace = trace[:, -2 * half :].reshape(2, half)
    return _number(array_stats.rhat, trace, "rank")


def effective_samples(trace: FloatArray) -> float:
    """Return how many independent samples a trace of shape (chains, samples) is worth, in its bulk."""
    from arviz_stats.base import array_stats  # type: ignore[attr-defined, unused-ignore]

    if np.all(trace == trace.flat[0]):
        return float(trace.size)
    return _number(array_stats.ess, trace, "bulk")


def _number(diagnostic: Any, trace: FloatArray, method: str) -> float:
    return float(diagnostic(trace, chain_axis=0, draw_axis=1, method=method)) if trace.shape[1] >= FEWEST else np.nan


def warm_up(log_joints: FloatArray) -> int:
    """Return how many samples at the beginning are best left out: such that what is left is worth most.

    Parameters
    ----------
    log_joints : ndarray of shape (n_chains, n_samples)
    """
    n = log_joints.shape[1]
    starts = np.unique(np.linspace(0, LONGEST_WARM_UP * n, WARM_UPS).astype(int))
    return int(max(starts, key=lambda start: np.nan_to_num(effective_samples(log_joints[:, start:]))))


class Topologies:
    """The clades of trees from several chains.

    Parameters
    ----------
    trees : sequence of Tree
        Chain after chain.
    n_chains : int
    """

    def __init__(self, trees: Sequence[Tree], n_chains: int) -> None:
        self._numbers = number_clades(trees)
        self._n_chains = n_chains

    def split_deviation(self) -> float:
        """Return the mean over clades of the standard deviation of their frequencies between chains; NaN for one chain."""
        chains = self._numbers.reshape(self._n_chains, -1)
        samples = len(self._numbers) / self._n_chains
        shares = np.array([np.bincount(chain, minlength=self._numbers.max() + 1) / samples for chain in chains])
        common = shares.max(axis=0) >= RARE
        return float(np.mean(np.std(shares[:, common], axis=0, ddof=1))) if self._n_chains > 1 else np.nan

    def effective_topologies(self) -> float:
        """Return the median, over reference trees, of what the distances to them are worth.

        The distance is the number of clades that only one of two trees has.
        """
        references = np.linspace(0, len(self._numbers) - 1, REFERENCES).astype(int)
        return float(np.median([effective_samples(self._distances(k)) for k in np.unique(references)]))

    def _distances(self, reference: int) -> FloatArray:
        there = np.zeros(self._numbers.max() + 1, dtype=bool)
        there[self._numbers[reference]] = True
        missing: FloatArray = 2.0 * np.sum(~there[self._numbers], axis=1)
        return missing.reshape(self._n_chains, -1)
