"""One Markov chain over trees: its state, its moves and the draws of its parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import check_memory
from ..process.ascertainment import UnseenColumns
from ..process.base import ParameterSampler, Process
from ..process.layout import make_forest
from ..process.slice_sampling import slice_step
from ..tree.coalescent import log_prior
from ..tree.tree import Tree
from .kernels.height_draws import UNIFORMS as SWEEP_UNIFORMS
from .kernels.history import History, log_likelihood_of, put_in_order, set_children, set_heights, slots_of
from .kernels.moves import climb, make_moves
from .kernels.regraft import BranchSegments

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MOVES = ("subtree", "near", "leaf", "heights", "scale")  # as `coaltree.inference.kernels.moves` numbers them
EXCHANGE = len(MOVES)  # the number of the move of tempered chains, see `coaltree.inference.tempering`
UNIFORMS = 6  # numbers that a move takes
SHARES = {"subtree": 0.1, "near": 0.33, "leaf": 0.03, "heights": 0.34, "scale": 0.1}
# Rows: in a tree of more, what looks at all of it is rarer.
WIDE_UP_TO = {"subtree": 50, "leaf": 50, "heights": 4, "scale": 100}
LOG_STAY = math.log(0.6)  # with each generation more, the clade within which a subtree moves is chosen less often
VALLEY = 12.0  # of the log density of places: most moves do not look beyond
FIRST_STRETCH = 1.0
TARGET_ACCEPTANCE = 0.4  # share of scalings that are accepted, towards which the stretch is turned during warm-up
CLOCK_RANGE = (-10.0, 10.0)  # of the logarithm of what all heights are multiplied by when the clock is set
DERIVED_ATTRIBUTES = ("_forest", "_history", "_segments", "_unseen")  # attributes of a chain
# Attributes of the state of a chain: the tree, the parameters and missing cells that are drawn, and what follows from them.
STATE_ATTRIBUTES = (*DERIVED_ATTRIBUTES, "process", "_message_process", "_sampler", "_X", "_leaves")
CHAIN_BYTES = 45_000.0  # of a chain without its messages, by tracemalloc
TIE = 1e-7  # of the root's height: merges at the same height are drawn apart by about so much


class Sample(NamedTuple):
    """A tree with its densities and parameters; merges are ordered by height, the most recent first."""

    children: IntArray  # (merges, 2)
    heights: FloatArray  # (merges,)
    log_joint: float
    log_ratios: FloatArray  # (merges,)
    parameters: FloatArray  # of the process; none where they stay as they are
    log_parameter_prior: float  # up to a constant
    missing_cells: FloatArray  # those that are drawn, see `ParameterSampler`


class State(NamedTuple):
    """The state of a chain, from which it continues."""

    children: IntArray  # (nodes, 2), by slot, -1 for leaves
    heights: FloatArray  # (nodes,), by slot
    root: int
    stretch: float
    generator: dict[str, Any]  # of random numbers
    parameters: FloatArray  # of the process; empty where they stay as they are
    draws: FloatArray  # state of the sampler of parameters


def room_for_chain(
    X: FloatArray, process: Process, power: float = 1.0, unseen: UnseenColumns | None = None
) -> tuple[Any, Any, Any]:
    """Return a forest with the messages of the rows, and scratch memory for a tree over them and its branches.

    Unseen columns come after those of the table. They have weight 0 until their weights are set.
    """
    n = len(X)
    if unseen is None:
        forest = process.forest(X, slots_of(n))
    else:
        weightless = (replace(columns, weight=np.zeros(len(columns.equilibrium))) for columns in unseen.declared)
        forest = make_forest([*process.columns(X), *weightless], slots_of(n))
    forest.set_power(power)
    return forest, History(n), BranchSegments(forest, 2 * n - 1)


def check_chains(n_chains: int, thin: int, shape: tuple[int, ...]) -> None:
    """Refuse chains over a table of some shape, and moves between their samples, that do not fit into memory."""
    n, n_columns = shape
    n_bytes = n_chains * (CHAIN_BYTES + 8.0 * slots_of(n) * n_columns)
    check_memory(n_bytes, f"{n_chains:,} chains of {n:,} rows", "use fewer chains")
    numbers = UNIFORMS + move_shares(n)[MOVES.index("heights")] * 2 * (n - 1) * SWEEP_UNIFORMS
    check_memory(8.0 * thin * numbers, f"{thin:,} moves between two samples", "use a smaller thin")


def move_shares(n: int) -> FloatArray:
    """Return the probabilities of the moves, in the order of `MOVES`, for a tree of n leaves."""
    shares = np.array([SHARES[move] * min(1.0, WIDE_UP_TO.get(move, n) / n) for move in MOVES])
    return np.asarray(shares / shares.sum())


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
    sampler : ParameterSampler, optional
        Draws the parameters of the process in turn with the tree; without it they stay as they are.
    power : float, default 1.0
        To which the likelihood is raised: trees are drawn from ``p(x | tree)^power p(tree)``. With another power than 1 the
        parameters stay as they are, also if there is a sampler.
    """

    def __init__(
        self,
        X: FloatArray,
        process: Process,
        tree: Tree,
        rng: np.random.Generator | None = None,
        sampler: ParameterSampler[Any] | None = None,
        power: float = 1.0,
    ) -> None:
        n = len(X)
        self._power = power
        self._X, self._sampler = sampler.table if sampler else X, sampler
        self.process = sampler.initial_process(process) if sampler else process
        self._rng = rng or np.random.default_rng(0)
        self.tried, self.accepted = np.zeros((2, len(MOVES) + 1), dtype=np.intp)
        self._shares = np.cumsum(move_shares(n))
        self._stretch = FIRST_STRETCH
        children = np.concatenate([np.full((n, 2), -1, dtype=np.intp), tree.children])
        self._make_messages(process, children, 2 * n - 2, tree.heights)

    def _make_messages(self, process: Process, children: IntArray, root: int, heights: FloatArray) -> None:
        """Compute all messages of a tree, whose children and heights are given by slot."""
        self._message_process = process  # the chain's own, but for a chain that has not moved yet
        self._unseen = process.unseen_columns(self._X)
        self._forest, self._history, self._segments = room_for_chain(self._X, process, self._power, self._unseen)
        self._leaves = math.fsum(process.leaf_log_likelihoods(self._X))
        set_children(self._history, children[len(self._X) :], root)
        set_heights(self._forest, self._history, heights)
        self._update_log_joint()

    def _update_log_joint(self) -> None:
        """Set the log joint density and remove rounding errors, so that the chain depends only on the tree from here on."""
        self._log_joint = self._unconditional_log_joint()
        self._log_recorded = 0.0
        if self._unseen is not None:
            children, heights = self._numbered()
            self._log_recorded = self._log_recorded_at(self._unseen, children, heights)

    def _unconditional_log_joint(self) -> float:
        """Return the log joint density of the tree and all weighted columns, and compute all messages again."""
        return float(log_likelihood_of(self._forest, self._history)) + self._log_prior()

    def _log_prior(self) -> float:
        """Return the log prior density of the tree."""
        ladder = np.asarray(self._history.ladder)
        live = np.arange(len(ladder) + 1, 1, -1)
        waits = np.diff(ladder, prepend=0.0)
        return -float(np.sum(live * (live - 1) / 2 * waits))

    def _log_recorded_at(self, unseen: UnseenColumns, children: IntArray, heights: FloatArray) -> float:
        """Return the log probability that the columns are recorded, times the power of the chain."""
        return self._power * float(unseen.n_recorded @ np.log(unseen.probabilities(children, heights)[1]))

    def _numbered(self) -> tuple[IntArray, FloatArray]:
        """Return the children of the merges and the heights of all nodes, numbered as in a tree."""
        children, heights, _ = self._in_order()
        return children, np.append(np.zeros(self.n_leaves), heights)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: not the messages, which follow from the tree."""
        attributes = {name: value for name, value in self.__dict__.items() if name not in DERIVED_ATTRIBUTES}
        return {**attributes, "tree": self._by_slot()}

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        """Make the messages anew."""
        tree = pickled.pop("tree")
        self.__dict__.update(pickled)
        self._make_messages(self._message_process, *tree)

    @property
    def log_joint(self) -> float:
        """Log joint density of the tree and the data, with the likelihood raised to the power of the chain."""
        return self._log_joint + self._power * self._leaves - self._log_recorded

    @property
    def power(self) -> float:
        """The power to which the likelihood is raised."""
        return self._power

    @property
    def log_likelihood(self) -> float:
        """Log likelihood of the tree, not raised to any power; for chains with a positive one."""
        return (self.log_joint - self._log_prior()) / self._power

    def members(self) -> list[Chain]:
        """Return all chains that this one is made of: only itself, unless it is tempered."""
        return [self]

    @property
    def n_leaves(self) -> int:
        """Number of rows."""
        return len(self._X)

    @property
    def table(self) -> FloatArray:
        """The table of the messages, see `ParameterSampler`."""
        return self._X

    def start_at(self, tree: Tree, rng: np.random.Generator) -> None:
        """Continue from another tree with other random numbers, as a new chain would; the messages of the rows are kept."""
        self._rng = rng
        set_children(self._history, tree.children, 2 * self.n_leaves - 2)
        set_heights(self._forest, self._history, tree.heights)
        self._update_log_joint()

    def exchange_states(self, other: Chain) -> None:
        """Exchange tree, parameters and drawn cells with a chain of the same table and kind of process with another power."""
        for name in STATE_ATTRIBUTES:
            own = getattr(self, name)
            setattr(self, name, getattr(other, name))
            setattr(other, name, own)
        for chain in (self, other):
            chain._forest.set_power(chain._power)
            chain._update_log_joint()

    def take_parameters(self, other: Chain) -> None:
        """Take over the parameters and drawn cells of another chain; for warm-up only, because this is no step of a sampler."""
        assert self._sampler is not None
        assert other._sampler is not None
        self._sampler.restore(other._sampler.state().copy())
        self.process, self._X = other.process, self._sampler.table
        self._make_messages(self.process, *self._by_slot())

    def continue_with(self, process: Process) -> None:
        """Continue with other parameters of the process."""
        self.process = process
        self._make_messages(process, *self._by_slot())

    def tree(self, leaf_names: Sequence[str] | None = None) -> Tree:
        """Return the current tree."""
        children, heights, _ = self._in_order()
        return Tree(children, np.append(np.zeros(self.n_leaves), heights), leaf_names)

    def move(self, count: int, *, hold: bool = False) -> None:
        """Make some moves. Then draw the parameters if they are sampled, or only the missing cells if `hold` is true."""
        if self._unseen is None:
            self._make_moves(count)
        else:
            for first in range(0, count, self.n_leaves):
                self._move_with_unseen(self._unseen, min(self.n_leaves, count - first))
        self._update_log_joint()
        if self._sampler and hold:
            self._sampler.draw_cells(self.process, self.tree(), self._rng)
            self._X = self._sampler.table
            self._make_messages(self.process, *self._by_slot())
        elif self._sampler and self._power == 1.0:
            self._draw_parameters(self._sampler)

    def _make_moves(self, count: int) -> None:
        """Make some moves with the current weights of columns."""
        uniforms = self._rng.random((count, UNIFORMS))
        kinds = np.searchsorted(self._shares, uniforms[:, 0], side="right")
        n_sweeps = np.count_nonzero(kinds == MOVES.index("heights"))
        make_moves(
            self._forest,
            self._history,
            self._segments,
            self._shares,
            LOG_STAY,
            VALLEY,
            self._stretch,
            uniforms,
            self._rng.random((n_sweeps, 2 * (self.n_leaves - 1), SWEEP_UNIFORMS)),
            self._log_joint,
            self.tried,
            self.accepted,
        )

    def _move_with_unseen(self, unseen: UnseenColumns, count: int) -> None:
        """Draw how many columns were not recorded, eq. (13.11), make moves given these numbers, and scale the tree without them.

        Given these numbers, heights can change only a little; scaling, which sums over the numbers, changes them further.
        """
        self._forest.set_last_weights(self._power, unseen.draw_counts(*self._numbered(), self._rng, self._power))
        self._log_joint = self._unconditional_log_joint()
        self._make_moves(count)
        self._forest.set_power(self._power)
        children, numbered = self._numbered()
        _, _, heights = self._by_slot()

        def log_density(log_factor: float) -> float:
            factor = math.exp(log_factor)
            set_heights(self._forest, self._history, factor * heights)
            gain = self._unconditional_log_joint() + (self.n_leaves - 1) * log_factor
            return gain - self._log_recorded_at(unseen, children, factor * numbered)

        factor = math.exp(slice_step(log_density, 0.0, CLOCK_RANGE, self._rng))
        set_heights(self._forest, self._history, factor * heights)

    def _draw_parameters(self, sampler: ParameterSampler[Any]) -> None:
        """Draw the parameters given the tree, and rescale the clock of both: eq. (13.4) to (13.7)."""
        tree, n = self.tree(), self.n_leaves
        process, factor = sampler.draw(self.process, tree, self._rng), 1.0
        if sampler.clock_exponent(process) is not None:
            total = -log_prior(tree)

            def log_density(log_factor: float) -> float:
                # a slower process has the same likelihood on a higher tree: only the priors change
                tree_gain = (n - 1) * log_factor - math.expm1(log_factor) * total
                return tree_gain + sampler.log_clock_ratio(process, log_factor)

            log_factor = slice_step(log_density, 0.0, CLOCK_RANGE, self._rng)
            factor = math.exp(log_factor)
            process = process.rescale_clock(factor)
        self.process, self._X = process, sampler.table
        children, root, heights = self._by_slot()
        self._make_messages(process, children, root, factor * heights)

    def _by_slot(self) -> tuple[IntArray, int, FloatArray]:
        """Return children, root and heights of the tree, by slot."""
        heights = np.asarray(self._forest.height)[: self._history.n_nodes]
        return np.array(self._history.children), self._history.root, heights.copy()

    def climb(self, first: int, last: int, least_gain: float) -> int:
        """Move some subtrees, given by the slots of their tops, to where each fits best; return how many moved.

        Unrecorded columns are added to the table in their expected numbers. The log joint increases at least as much as that of
        this larger table: this is a step of expectation-maximisation.
        """
        if self._unseen is not None:
            counts = self._unseen.expected_counts(*self._numbered(), self._power)
            self._forest.set_last_weights(self._power, counts)
            self._unconditional_log_joint()
        moves = int(climb(self._forest, self._history, self._segments, first, last, least_gain))
        if self._unseen is not None:
            self._forest.set_power(self._power)
        self._update_log_joint()
        return moves

    def tune(self) -> None:
        """Adapt the scale of moves that stretch the tree to the target acceptance rate; for warm-up only."""
        scale = MOVES.index("scale")
        if self.tried[scale] >= 10:
            share = self.accepted[scale] / self.tried[scale]
            self._stretch = min(max(self._stretch * math.exp(share - TARGET_ACCEPTANCE), 1e-4), 5.0)
            self.tried[:] = self.accepted[:] = 0

    def _in_order(self) -> tuple[IntArray, FloatArray, IntArray]:
        """Return children and heights of the merges, most recent first, and their slots."""
        children, _, heights = self._by_slot()
        n = self.n_leaves
        put_in_order(self._history)
        slots = np.asarray(self._history.order)
        slots = slots[np.argsort(heights[slots], kind="stable")]
        number = np.arange(2 * n - 1)
        number[slots] = np.arange(n, 2 * n - 1)
        return np.sort(number[children[slots]], axis=1), heights[slots], slots

    def sample(self) -> Sample:
        """Return the current tree, densities and parameters as a sample."""
        children, heights, slots = self._in_order()
        return Sample(
            children,
            heights,
            self.log_joint,
            np.asarray(self._history.log_ratio)[slots - self.n_leaves],
            self._parameters(),
            self._sampler.log_prior(self.process) if self._sampler else 0.0,
            self._sampler.missing_cells() if self._sampler else np.zeros(0),
        )

    def parameter_names(self) -> list[str]:
        """Return the names of the sampled parameters."""
        return self.process.parameter_names(range(self._X.shape[1])) if self._sampler else []

    def _parameters(self) -> FloatArray:
        """Return the current parameters; none if they are not sampled."""
        return self.process.parameter_values() if self._sampler else np.zeros(0)

    def state(self) -> State:
        """Return the state from which the chain can continue."""
        children, root, heights = self._by_slot()
        return State(
            children,
            heights,
            root,
            self._stretch,
            self._rng.bit_generator.state,  # type: ignore[arg-type]
            self._parameters(),
            self._sampler.state() if self._sampler else np.zeros(0),
        )

    def restore(self, state: State) -> None:
        """Continue a chain from a state."""
        self._stretch = state.stretch
        self._rng.bit_generator.state = state.generator
        if self._sampler:
            self.process = self.process.with_parameter_values(state.parameters)
            self._sampler.restore(state.draws)
            self._X = self._sampler.table
        self._make_messages(self.process, state.children, state.root, state.heights)


def without_ties(tree: Tree, rng: np.random.Generator) -> Tree:
    """Return the tree with merges at the same height, or at height 0, moved slightly apart."""
    n, heights = tree.n_leaves, tree.heights.copy()
    least = TIE * (float(heights[-1]) or 1.0)
    for k in range(n, 2 * n - 1):
        heights[k] = max(heights[k], heights[k - 1]) + least * rng.exponential()
    return Tree(tree.children, heights, tree.leaf_names)
