"""Tempered chains (MC3, parallel tempering; Geyer, 1991): heated chains help a chain to cross valleys of the posterior.

A heated chain samples trees from ``p(x | tree)^power p(tree)`` with a power below 1, where the valleys between groups of good
trees are shallow. After each sweep, neighbours on the ladder of powers may exchange their trees, eq. (13.12). All chains together
then leave the product of their targets invariant, and the samples of the first chain, whose power is 1, follow the posterior.

Parameters that are drawn belong to the state of a chain: its target is then their prior times ``p(x | tree)^power p(tree)``.
Exchanges are of whole states. Only the first chain draws parameters. In a heated chain they stay as they are between exchanges,
which leaves its target invariant; drawing them at another power would need another sampler. During the warm-up they follow the
first chain, because with parameters that the data do not support a heated chain would never exchange its state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..process.base import ParameterSampler, Process
from ..tree.tree import Tree
from .chain import EXCHANGE, Chain

FloatArray = NDArray[np.float64]

# The standard deviation of the log likelihood grows as the square root of the number of merges. With this distance of the inverse
# powers, in units of that, about a third of the exchanges are accepted.
SPACING = 2.0


def heated_powers(n_leaves: int, n_heated: int) -> FloatArray:
    """Return the powers of heated chains over trees of some size, the largest first.

    Examples
    --------
    >>> heated_powers(26, 3).round(3).tolist()
    [0.714, 0.556, 0.455]
    """
    return np.asarray(1 / (1 + SPACING * np.arange(1, n_heated + 1) / math.sqrt(max(n_leaves - 1, 1))))


class TemperedChain(Chain):
    """A Markov chain over trees with heated companions.

    Parameters
    ----------
    X : ndarray of shape (n, D)
    process : Process
        A resolved one.
    tree : Tree
        Where all of them begin, see `Chain`.
    rngs : sequence of numpy.random.Generator
        Of the chain itself, then of each heated one.
    samplers : sequence of ParameterSampler, optional
        Of the chain itself, then of each heated one, to draw the parameters of the process in turn with the tree.
    """

    def __init__(
        self,
        X: FloatArray,
        process: Process,
        tree: Tree,
        rngs: Sequence[np.random.Generator],
        samplers: Sequence[ParameterSampler[Any] | None] | None = None,
    ) -> None:
        samplers = samplers or [None] * len(rngs)
        if samplers[0]:
            process = samplers[0].initial_process(process)  # heated chains do not draw others
        super().__init__(X, process, tree, rngs[0], samplers[0])
        powers = heated_powers(len(X), len(rngs) - 1).tolist()
        self._heated = [
            Chain(X, process, tree, rng, sampler, power)
            for rng, sampler, power in zip(rngs[1:], samplers[1:], powers, strict=True)
        ]

    def members(self) -> list[Chain]:
        """Return the chain itself and its heated companions, by falling power."""
        return [self, *self._heated]

    def move(self, count: int, *, hold: bool = False) -> None:
        """Make some moves in each of the chains, and let neighbours exchange states after every sweep."""
        for first in range(0, count, self.n_leaves):
            for chain in self.members():
                Chain.move(chain, min(self.n_leaves, count - first))
            for colder, hotter in reversed(list(pairwise(self.members()))):  # a state may come all the way in one round
                self._propose_exchange(colder, hotter)

    def _propose_exchange(self, colder: Chain, hotter: Chain) -> None:
        gain = (colder.power - hotter.power) * (hotter.log_likelihood - colder.log_likelihood)
        self.tried[EXCHANGE] += 1
        if math.log(1 - self._rng.random()) < gain:
            self.accepted[EXCHANGE] += 1
            colder.exchange_states(hotter)

    def tune(self) -> None:
        """Adapt the moves of all chains, and let heated chains take over the parameters of the first; for warm-up only."""
        for chain in self.members():
            Chain.tune(chain)
        if self._sampler:
            for chain in self._heated:
                chain.take_parameters(self)
