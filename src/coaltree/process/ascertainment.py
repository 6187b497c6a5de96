"""Ascertainment: columns that are absent from a table because they would not have been recorded.

A morphological matrix has no constant columns, and a list of cognates has no cognate that is absent from all languages. The
likelihood of such a table is conditional: the probability of every column is divided by the probability V that a column is
recorded, eq. (5.7).

The moves of a Markov chain, the fit and the sampler of parameters can handle only products over columns. They treat the columns
that were not recorded as unknowns. If D columns were recorded, ``V^-D`` is the sum, over all numbers ``m_k`` of unrecorded
columns of each kind k with probability ``P_k``, of their negative multinomial weights times ``P_k^m_k``, eq. (13.11). Given these
numbers, the density is that of a table with these additional columns, which the weights of sites represent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..tree.tree import Tree
from .declarations import SiteColumns
from .kernels.passes import climb_unseen

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

#: Which columns a table shows: all, those with at least two states, or those with another state than the first.
ASCERTAINMENTS = ("variable", "present")
COPIES_AT_ONCE = 20_000  # whose states are in memory
MIN_RECORDED = 1e-12  # probability of a recorded column, below which that of the others cannot be told from 1


@dataclass(frozen=True)
class UnseenColumns:
    """Columns that would not have been recorded, and how many columns were recorded under the same conditions.

    Columns of the table with the same observed rows, rate, equilibrium and noise are a *group*. Each has one unseen column for
    each state, or for the first state only, that all its rows would show. If rates vary across columns, eq. (5.8), the rate of a
    group is that of a factor of 1, and there is one for each category.
    """

    declared: tuple[SiteColumns, ...]  # of the unseen columns
    observed: NDArray[np.bool_]  # (rows, unseen columns)
    share: FloatArray  # (unseen columns,), of the state in the equilibrium
    rate: FloatArray  # (unseen columns,)
    noise: FloatArray  # (unseen columns,)
    weight: FloatArray  # (unseen columns,), the share of the columns of its group that have its rate
    group: IntArray  # (unseen columns,)
    constant: NDArray[np.bool_]  # (groups,), whether all states have an unseen column
    n_recorded: FloatArray  # (groups,), columns of the table

    @staticmethod
    def join(parts: Sequence[UnseenColumns]) -> UnseenColumns | None:
        """Return the unseen columns of several parts of a table side by side; None if there are none."""
        if len(parts) < 2:
            return parts[0] if parts else None
        first = np.cumsum([0, *(len(part.n_recorded) for part in parts)])
        return UnseenColumns(
            tuple(columns for part in parts for columns in part.declared),
            np.hstack([part.observed for part in parts]),
            np.concatenate([part.share for part in parts]),
            np.concatenate([part.rate for part in parts]),
            np.concatenate([part.noise for part in parts]),
            np.concatenate([part.weight for part in parts]),
            np.concatenate([part.group + start for part, start in zip(parts, first[:-1], strict=True)]),
            np.concatenate([part.constant for part in parts]),
            np.concatenate([part.n_recorded for part in parts]),
        )

    def probabilities(self, children: IntArray, heights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the probability of every unseen column, and for each group that of a column that is recorded.

        `children` and `heights` are those of a tree, whose nodes are numbered leaves first, parents after their children.

        Other states than that of the unseen column are one state: mutations do not tell them apart. Let a be the probability
        that the rows below a node show the state if it is that of the node, and b if it is not. ``1 - a`` and b are computed,
        all terms of which are positive, so that V keeps its digits on trees of little height.
        """
        q = self.share
        lost, other, top = self._climb(children, heights)
        each = np.arange(len(q))
        top_lost, top_other = lost[top, each], other[top, each]
        unseen = self.weight * (q * (1 - top_lost) + (1 - q) * top_other)
        n_groups = len(self.n_recorded)
        # The shares of all states add up to 1, and that of one state and of the others too.
        differing = np.bincount(
            self.group, weights=self.weight * (q * top_lost - (1 - q) * top_other), minlength=n_groups
        )
        other_weight = np.bincount(self.group, weights=self.weight * (1 - q), minlength=n_groups)
        recorded = np.where(self.constant, differing, differing + other_weight)
        return unseen, np.maximum(recorded, MIN_RECORDED)

    def _climb(self, children: IntArray, heights: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return ``1 - a`` and b of all nodes, a row for each, and the last common ancestor of each column's observed rows.

        Above that nothing changes but the last digits. See `probabilities`.
        """
        n, q = len(self.observed), self.share
        shape = n + len(children), len(q)
        lost, other, count = np.zeros(shape), np.ones(shape), np.zeros(shape, dtype=np.intp)
        np.copyto(lost[:n], self.noise * (1 - q), where=self.observed)
        np.copyto(other[:n], self.noise * q, where=self.observed)
        count[:n] = self.observed
        top = np.full(len(q), -1, dtype=np.intp)
        climb_unseen(children, heights, q, self.rate, lost, other, count, count[:n].sum(axis=0), top)
        return lost, other, np.maximum(top, shape[0] - 1) if n == 1 else top

    def log_recorded(self, tree: Tree) -> float:
        """Return the log probability that all columns of the table satisfy the condition for being recorded."""
        return float(self.n_recorded @ np.log(self.probabilities(tree.children, tree.heights)[1]))

    def odds(self, children: IntArray, heights: FloatArray) -> FloatArray:
        """Return how many columns like each unseen one are expected for every recorded column of its group."""
        unseen, recorded = self.probabilities(children, heights)
        return unseen / recorded[self.group]

    def expected_counts(self, children: IntArray, heights: FloatArray, power: float = 1.0) -> FloatArray:
        """Return the expected number of columns like each unseen one, where the likelihood is raised to a power."""
        return power * self.n_recorded[self.group] * self.odds(children, heights)

    def draw_counts(
        self, children: IntArray, heights: FloatArray, rng: np.random.Generator, power: float = 1.0
    ) -> FloatArray:
        """Draw the numbers of columns like each unseen one: eq. (13.11).

        A negative multinomial variable is a Poisson variable whose mean is multiplied by a Gamma variable of each group.
        """
        means = rng.standard_gamma(power * self.n_recorded)[self.group] * self.odds(children, heights)
        return rng.poisson(means).astype(np.float64)

    def draw_mutations(self, tree: Tree, copies: IntArray, rng: np.random.Generator) -> Mutations:
        """Draw the states and mutations of unseen columns, given that all their observed rows show the state.

        Parameters
        ----------
        tree : Tree
        copies : ndarray of int
            The unseen column of each copy, each of which is drawn by itself.
        rng : numpy.random.Generator
        """
        lost, other, _ = self._climb(tree.children, tree.heights)
        mutations = Mutations(*(np.zeros(len(copies), dtype=np.intp) for _ in Mutations._fields))
        for first in range(0, len(copies), COPIES_AT_ONCE):
            block = slice(first, first + COPIES_AT_ONCE)
            self._draw_mutations(
                tree, copies[block], 1 - lost, other, rng, Mutations(*(counts[block] for counts in mutations))
            )
        return mutations

    def _draw_mutations(
        self,
        tree: Tree,
        copies: IntArray,
        same: FloatArray,
        other: FloatArray,
        rng: np.random.Generator,
        mutations: Mutations,
    ) -> None:
        """Draw the copies from the root to the leaves, and count what happens to them."""
        n, q, rate, noise = tree.n_leaves, self.share[copies], self.rate[copies], self.noise[copies]
        has_state = np.empty((tree.n_nodes, len(copies)), dtype=np.bool_)
        for node in range(tree.n_nodes - 1, -1, -1):
            to_state, to_other = q * same[node, copies], (1 - q) * other[node, copies]
            if node == tree.n_nodes - 1:  # the root is a draw from the equilibrium
                redrawn = np.ones(len(copies), dtype=np.bool_)
                new_state = rng.random(len(copies)) * (to_state + to_other) < to_state
                above = new_state
            else:
                x = rate * tree.branch_lengths[node]
                above = has_state[tree.parents[node]]
                survival = np.exp(-x) * np.where(above, same[node, copies], other[node, copies])
                left = rng.random(len(copies)) * (survival - np.expm1(-x) * (to_state + to_other)) - survival
                redrawn = left >= 0
                new_state = left < -np.expm1(-x) * to_state
                mutations.events[:] += np.where(redrawn, draw_events(x, rng), 0)
            has_state[node] = np.where(redrawn, new_state, above)
            mutations.of_state[:] += redrawn & new_state
            mutations.of_others[:] += redrawn & ~new_state
            if node < n and noise.any():
                by_noise = noise * q
                chance = np.where(has_state[node], by_noise / (by_noise + 1 - noise), 1.0)
                counts_as_cell = self.observed[node, copies] & (rng.random(len(copies)) < chance)
                mutations.of_state[:] += counts_as_cell
                mutations.by_noise[:] += counts_as_cell


class Mutations(NamedTuple):
    """What happened to columns, each of shape (columns,)."""

    events: IntArray  # mutations on all branches
    of_state: IntArray  # draws of the state that all rows show: at the root, by mutations that are the last on a branch, by noise
    of_others: IntArray  # draws of other states
    by_noise: IntArray  # cells that the noise has drawn


def draw_events(x: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw numbers of mutations on branches where x are expected, given that there is at least one.

    The time of the first is exponential, truncated at the length of the branch; the number of further mutations is Poisson.
    """
    first = -np.log1p(rng.random(x.shape) * np.expm1(-x))
    return np.asarray(1 + rng.poisson(np.maximum(x - first, 0.0)))
