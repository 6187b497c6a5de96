"""One Markov chain over trees."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..process import operations as op
from ..process.interface import Process
from ..process.layout import columns_together
from ..tree.tree import Tree
from ._history_kernels import (
    NONE,
    History,
    log_likelihood_of,
    new_history,
    put_in_order,
    set_children,
    slots_of,
    start_history,
)
from ._move_kernels import MOVES, UNIFORMS, climb, make_moves
from ._regraft_kernels import Cells, new_cells

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

SHARES = {"subtree": 0.3, "near": 0.35, "leaf": 0.05, "height": 0.28, "scale": 0.02}
LOG_STAY = math.log(0.6)  # with each generation more, the clade within which a subtree moves is chosen less often
FIRST_STRETCH = 1.0
WANTED = 0.3  # share of scalings that are accepted, towards which the stretch is turned during warm-up
TIE = 1e-7  # of the root's height: merges at the same height are drawn apart by about so much


class Sample(NamedTuple):
    """A tree, merges most recent first, and what the model says of it."""

    children: IntArray  # (merges, 2)
    heights: FloatArray  # (merges,)
    log_joint: float
    log_ratios: FloatArray  # (merges,)


class State(NamedTuple):
    """All that a chain goes on from."""

    children: IntArray  # (nodes, 2), by slot, NONE for leaves
    heights: FloatArray  # (nodes,), by slot
    root: int
    stretch: float
    generator: dict[str, Any]  # of random numbers


def room_for_chain(X: FloatArray, process: Process) -> tuple[Any, History, Cells]:
    """Return a forest with the messages of the rows, and room for a tree over them and its places."""
    n = len(X)
    forest = columns_together(process.forest(X, slots_of(n), np.zeros(slots_of(n))))
    return forest, new_history(n), new_cells(2 * n - 1, int(op.pair_size(forest)))


class Chain:
    """A tree over the rows of a table, and the moves that lead from it to others.

    Parameters
    ----------
    X : ndarray of shape (n, D)
    process : Process
        A resolved one.
    tree : Tree
        Where the chain begins. To be moved at random, parents must be above their children, see `without_ties`.
    rng : numpy.random.Generator, optional
        Of the moves.
    """

    def __init__(self, X: FloatArray, process: Process, tree: Tree, rng: np.random.Generator | None = None) -> None:
        n = len(X)
        self._rng = rng or np.random.default_rng(0)
        self.tried, self.accepted = np.zeros(len(MOVES), dtype=np.intp), np.zeros(len(MOVES), dtype=np.intp)
        self._shares = np.cumsum([SHARES[move] for move in MOVES])
        self._stretch = FIRST_STRETCH
        self._forest, self._history, self._cells = room_for_chain(X, process)
        self._leaves = math.fsum(process.leaf_log_likelihoods(X))
        set_children(self._history, tree.children)
        start_history(self._forest, self._history, np.arange(n, 2 * n - 1), tree.heights)
        self._count_up()

    def _count_up(self) -> None:
        """Set the log joint density, and clear rounding errors away: what follows depends on the tree alone."""
        n = len(self._history.ladder) + 1
        live = np.arange(n, 1, -1)
        waits = np.diff(self._history.ladder, prepend=0.0)
        prior = -float(np.sum(live * (live - 1) / 2 * waits))
        self._log_joint = float(log_likelihood_of(self._forest, self._history)) + prior

    @property
    def log_joint(self) -> float:
        """Log joint density of the tree and the data."""
        return self._log_joint + self._leaves

    def move(self, count: int) -> None:
        """Make some moves."""
        uniforms = self._rng.random((count, UNIFORMS))
        make_moves(
            self._forest,
            self._history,
            self._cells,
            self._shares,
            LOG_STAY,
            self._stretch,
            uniforms,
            self._log_joint,
            self.tried,
            self.accepted,
        )
        self._count_up()

    def climb(self, first: int, last: int, least_gain: float) -> int:
        """Hang some subtrees, by the slots of their tops, where each fits best; return how many moved."""
        moves = int(climb(self._forest, self._history, self._cells, first, last, least_gain))
        self._count_up()
        return moves

    def tune(self) -> None:
        """Turn the stretch of scalings towards one that is accepted now and then; for warm-up only."""
        scale = MOVES.index("scale")
        if self.tried[scale] >= 10:
            share = self.accepted[scale] / self.tried[scale]
            self._stretch = min(max(self._stretch * math.exp(share - WANTED), 1e-4), 5.0)
            self.tried[:] = self.accepted[:] = 0

    def sample(self) -> Sample:
        """Return the tree as it is."""
        n = len(self._history.ladder) + 1
        slots = np.empty(n - 1, dtype=np.intp)
        put_in_order(self._history, slots)
        slots = slots[np.argsort(self._forest.height[slots], kind="stable")]
        number = np.arange(2 * n - 1)
        number[slots] = np.arange(n, 2 * n - 1)
        return Sample(
            np.sort(number[self._history.children[slots]], axis=1),
            self._forest.height[slots],
            self.log_joint,
            self._history.log_ratio[slots - n],
        )

    def state(self) -> State:
        """Return all that the chain goes on from."""
        n_nodes = len(self._history.parent)
        return State(
            self._history.children.copy(),
            self._forest.height[:n_nodes].copy(),
            int(self._history.root[0]),
            self._stretch,
            self._rng.bit_generator.state,  # type: ignore[arg-type]
        )

    def go_on_from(self, state: State) -> None:
        """Take up a chain where it was left."""
        n = len(self._history.ladder) + 1
        set_children(self._history, state.children[n:])
        self._history.root[0] = state.root
        self._history.parent[state.root] = NONE
        self._stretch = state.stretch
        self._rng.bit_generator.state = state.generator
        order = np.empty(n - 1, dtype=np.intp)
        put_in_order(self._history, order)
        start_history(self._forest, self._history, order, state.heights)
        self._count_up()


def without_ties(tree: Tree, rng: np.random.Generator) -> Tree:
    """Return the tree with merges at the same height, or at height 0, drawn a little apart."""
    n, heights = tree.n_leaves, tree.heights.copy()
    least = TIE * (float(heights[-1]) or 1.0)
    for k in range(n, 2 * n - 1):
        heights[k] = max(heights[k], heights[k - 1]) + least * rng.exponential()
    return Tree(tree.children, heights, tree.leaf_names)
