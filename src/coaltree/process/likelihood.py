"""The joint density of tree and table, beliefs about the states at nodes, and parameters fitted to trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._parameters import FLAG, check_parameter
from .._validation import check_count, check_memory, quote, to_floats
from ..errors import InputError
from ..table.matrix import as_matrix
from ..tree.coalescent import log_prior
from ..tree.sample import TreeSample, check_trees, check_weights
from ..tree.tree import Tree, check_tree
from .base import Process, WeightedTrees, check_process
from .kernels.passes import meet, pass_up_and_down
from .layout import Messages, read_messages
from .predictions import Predictions

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

BLOCK_SIZE = 4096  # points of branches whose messages are in memory at the same time


class Beliefs:
    """The distribution of the state at every node and at any point of a branch, given the whole table.

    One pass up the tree and one down, eq. (9.1), ``O(n D)``; the memory is that of four tables. Threads may share the object.

    Parameters
    ----------
    tree : Tree
    X : array-like of shape (n_leaves, n_columns)
        Row i belongs to leaf i; NaN is a missing cell.
    process : Process

    Examples
    --------
    >>> import coaltree as ct
    >>> tree = ct.Tree.from_newick("((a:1,b:1):1,c:2);")
    >>> beliefs = ct.Beliefs(tree, [[0.0], [1.0], [float("nan")]], ct.Brownian())
    >>> states = beliefs.nodes()
    >>> states.mean.ravel().tolist()  # a, b, c, their parents
    [0.0, 1.0, 0.5, 0.5, 0.5]
    >>> beliefs.at([0], [0.5]).mean.tolist()  # halfway up the branch above a
    [[0.25]]
    """

    def __init__(self, tree: Tree, X: ArrayLike, process: Process) -> None:
        check_process(process)
        check_tree(tree)
        matrix = as_matrix(X)
        if len(matrix) != tree.n_leaves:
            raise InputError(
                f"The table has {len(matrix)} row(s) and the tree {tree.n_leaves} leaves; row i is leaf i."
            )
        self.tree = tree
        self._n_columns = matrix.shape[1]
        self.process = process.resolve(matrix)
        self._block = min(BLOCK_SIZE, 2 * tree.n_nodes)
        self._first = 2 * tree.n_nodes - 1  # the first of the slots that points take
        slots = self._first + self._block
        self.forest = self.process.forest(matrix, slots)
        self.turn = np.zeros(tree.n_nodes)
        pass_up_and_down(self.forest, tree.children, tree.heights, self.turn)
        self._points = Lock()  # for the slots of points, and the heights of the messages that come down to them

    def nodes(self) -> Predictions:
        """Return the states at all nodes, leaves first; at leaves, the states without the noise of their cells."""
        return self.at(np.arange(self.tree.n_nodes), self.tree.heights)

    def leaves(self) -> Predictions:
        """Return the distributions of the leaves' cells, noise included: for missing cells, what to fill in."""
        n = self.tree.n_leaves
        return Predictions.stack(list(self._blocks(np.arange(n), np.zeros(n), np.zeros(n), True)))

    def others(self) -> Predictions:
        """Return the distributions of each leaf's cells given all other leaves only, noise included."""
        n, n_nodes = self.tree.n_leaves, self.tree.n_nodes
        if n == 1:
            return Beliefs(self.tree, np.full((1, self._n_columns), np.nan), self.process).leaves()
        blocks = []
        for start in range(0, n, BLOCK_SIZE):
            stop = min(start + BLOCK_SIZE, n)
            down = read_messages(self.forest, slice(n_nodes + start, n_nodes + stop))
            blocks.append(self._states(down, self.turn[start:stop], True))
        return Predictions.stack(blocks)

    def at(self, nodes: ArrayLike, heights: ArrayLike) -> Predictions:
        """Return the states at points of the branches above some nodes.

        Parameters
        ----------
        nodes : array-like of int, shape (k,)
        heights : array-like of shape (k,)
            Not below the node nor above its parent; above the root, any height.

        Returns
        -------
        Predictions
            With a row for each point.
        """
        numbers, at_heights = to_floats(nodes), to_floats(heights)
        if numbers is None or at_heights is None or not np.all(np.abs(numbers) < 2**53) or np.any(numbers % 1):
            raise InputError(
                f"nodes are {quote(nodes)} and heights {quote(heights)}; they must be whole numbers and numbers."
            )
        at_nodes, at_heights = numbers.ravel().astype(np.intp), at_heights.ravel()
        self._check_points(at_nodes, at_heights)
        return Predictions.stack(list(self._blocks(at_nodes, at_heights, np.zeros(len(at_nodes)), False)))

    def new_leaves(self, nodes: IntArray, heights: FloatArray) -> Iterator[Predictions]:
        """Yield, block by block, the distributions of the cells of new leaves that attach at points of branches."""
        return self._blocks(nodes, heights, heights, True)

    def _blocks(
        self, nodes: IntArray, heights: FloatArray, distances: FloatArray, observed: bool
    ) -> Iterator[Predictions]:
        """Yield the states at the ends of paths that leave the branches at some points."""
        root = self.tree.n_nodes - 1
        for start in range(0, max(len(nodes), 1), self._block):
            block = slice(start, start + self._block)
            inside = np.flatnonzero(nodes[block] != root)
            slots = np.full(len(nodes[block]), root)
            slots[inside] = self._first + np.arange(len(inside))
            with self._points:
                meet(self.forest, nodes[block][inside], heights[block][inside], self.turn, self._first)
                messages = read_messages(self.forest, slots)
            # what the root says has to go up the stem first
            stem = np.where(nodes[block] == root, heights[block] - self.tree.heights[root], 0.0)
            yield self._states(messages, distances[block] + stem, observed)

    def _states(self, messages: Messages, distance: FloatArray, observed: bool) -> Predictions:
        """Return the states at the ends of paths; kernels rely on their shapes."""
        states = self.process.states(messages, distance, observed)
        real, start = (len(distance), len(states.real)), states.start
        if (
            states.mean.shape != real
            or states.sd.shape != real
            or len(start) != len(states.categorical) + 1
            or states.probability.shape != (len(distance), start[-1])
        ):
            raise InputError(
                f"{type(self.process).__name__}.states returned predictions of shapes {states.mean.shape} (mean), "
                f"{states.sd.shape} (sd) and {states.probability.shape} (probability) for {len(distance)} row(s), "
                f"{real[1]} real column(s) and {len(states.categorical)} categorical column(s) of {start[-1]} states in all."
            )
        return states

    def draw(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw tables given all observed cells; see `Process.draw`."""
        size = check_count(size, "size")
        check_memory(8.0 * size * self.tree.n_nodes, f"{size:,} tables", "draw fewer")
        messages = read_messages(self.forest, slice(0, self.tree.n_nodes))
        return self.process.draw(messages, self.tree, size, rng)

    def _check_points(self, nodes: IntArray, heights: FloatArray) -> None:
        tree = self.tree
        if len(nodes) != len(heights):
            raise InputError(f"There are {len(nodes)} nodes and {len(heights)} heights; the numbers must match.")
        if np.any((nodes < 0) | (nodes >= tree.n_nodes)):
            raise InputError(f"nodes must be from 0 to {tree.n_nodes - 1}, the root.")
        tops = np.append(tree.heights[tree.parents[:-1]], np.inf)[nodes]
        wrong = np.flatnonzero(~((heights >= tree.heights[nodes]) & (heights <= tops) & np.isfinite(heights)))
        if len(wrong):
            node = int(nodes[wrong[0]])
            raise InputError(
                f"Height {heights[wrong[0]]:g} is not on the branch above node {node}, which goes from {tree.heights[node]:g} to "
                f"{tops[wrong[0]]:g}."
            )


def log_joint(tree: Tree, X: ArrayLike, process: Process) -> float:
    """Log joint density of a table and a tree, ``log p(x | tree) + log p(tree)``: eq. (2.2).

    Parameters
    ----------
    tree : Tree
    X : array-like of shape (n_leaves, n_columns)
        Row i belongs to leaf i; NaN is a missing cell.
    process : Process

    Returns
    -------
    float

    Examples
    --------
    >>> import coaltree as ct
    >>> tree = ct.Tree.from_newick("(a:1,b:1);")
    >>> round(ct.log_joint(tree, [[0.0], [2.0]], ct.Brownian()), 6)
    -3.265512
    """
    check_process(process)
    return process.log_likelihood(tree, X) + log_prior(tree)


def calibrate(
    process: Process,
    trees: Tree | TreeSample | Sequence[Tree],
    X: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    hold_noise: bool = False,
) -> Process:
    """Fit the parameters of a process to a table on one tree, or on a weighted sample of trees.

    Parameters
    ----------
    process : Process
        The initial parameters. Each stays what it is: one number, one per column, or a matrix.
    trees : Tree, TreeSample or sequence of Tree
    X : array-like of shape (n_leaves, n_columns)
        Row i belongs to leaf i; NaN is a missing cell.
    weights : array-like of shape (n_trees,), optional
        Weights of the trees; by default all the same, or those of the sample.
    hold_noise : bool, default False
        Leave the noise as it is. Noise of 0 in columns with states always stays.

    Returns
    -------
    Process
        A process of the same kind. The mean over the trees of ``log p(x | tree)``, with
        `Process.log_parameter_prior`, does not decrease.

    Examples
    --------
    >>> import coaltree as ct
    >>> tree = ct.simulate_tree(500, random_state=0)
    >>> X = ct.Brownian(4.0, noise=0.5).simulate(tree, random_state=1, n_columns=5)
    >>> fitted = ct.calibrate(ct.Brownian(), tree, X)
    >>> bool(3 < fitted.variance < 5 and 0.4 < fitted.noise < 0.7)
    True
    """
    check_process(process)
    check_parameter("hold_noise", hold_noise, FLAG)
    matrix = as_matrix(X)
    if isinstance(trees, TreeSample):
        weights = trees.weights if weights is None else weights
        trees = trees.trees
    checked = check_trees([trees] if isinstance(trees, Tree) else trees)
    if checked[0].n_leaves != len(matrix):
        raise InputError(
            f"The table has {len(matrix)} row(s) and the trees have {checked[0].n_leaves} leaves; row i is leaf i."
        )
    shares = check_weights(np.ones(len(checked)) if weights is None else weights, len(checked))
    resolved = process.resolve(matrix)
    resolved.check_ascertainment(matrix)
    return fit_to_trees(resolved, checked, shares, matrix, hold_noise)


def fit_to_trees(
    process: Process, trees: Sequence[Tree], weights: FloatArray, X: FloatArray, hold_noise: bool
) -> Process:
    """Fit the parameters of a resolved process; see `calibrate`, which checks its arguments first."""
    if len(X) == 1:
        return process
    weighted = [tree for tree, weight in zip(trees, weights, strict=True) if weight > 0]
    return process.fit(WeightedTrees(weighted, weights[weights > 0], X), hold_noise)
