"""New rows against trees: their predictive density, their places, their missing cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..compiled import announced_compilation
from ..inference.threads import thread_count
from ..process.beliefs import Beliefs
from ..process.interface import Process
from ..process.predictions import Predictions
from ..tree.attachment import Places, places
from ..tree.clades import clade_masks
from ..tree.pruning import with_leaves, without_leaves
from ..tree.tree import Tree
from ._place_kernels import add_gaussian_logs, spread_over_leaves

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Answer = TypeVar("Answer")

NUMBERS_AT_ONCE = 2_000_000  # rows times places in memory, for each thread
ROWS_AT_ONCE = 256
LEAST_PROBABILITY = 1e-300
LEAST_LOG = -1e300  # of a row so far out that its density is 0 in double precision, wherever it attaches
FOLDS = 100  # groups of rows that are taken off a tree and placed anew, one group at a time
DRAW_FOLDS = SAMPLE_FOLDS = 20


class PlaceTables(NamedTuple):
    """What new leaves show at the places, in the form in which many rows are scored."""

    predictions: Predictions
    means: FloatArray  # (real columns, places)
    half_precisions: FloatArray
    log_constants: FloatArray
    log_probabilities: FloatArray  # (states, places)


class Placed(NamedTuple):
    """Where rows attach, each array with an entry for each row."""

    node: IntArray  # of the reference tree; the row attaches to the branch above it
    probability: FloatArray
    height: FloatArray
    height_low: FloatArray
    height_high: FloatArray
    nearest: IntArray  # (rows, k), leaves
    nearest_height: FloatArray  # (rows, k), expected height at which the row merges with each
    log_density: FloatArray


class Predictor:
    """Trees over the rows of a table, and what they say of others.

    Parameters
    ----------
    trees : sequence of Tree
    weights : ndarray of shape (n_trees,)
    X : ndarray of shape (n_leaves, n_columns)
        The rows of the fit.
    process : Process
    n_jobs : int, optional
    """

    def __init__(
        self, trees: Sequence[Tree], weights: FloatArray, X: FloatArray, process: Process, n_jobs: int | None = None
    ) -> None:
        self.given_process, self.given_X = process, X
        self.process, self.X, self.log_jacobian = process.unmixed(X)
        self.n_threads = thread_count(n_jobs)
        shares: dict[int, float] = {}
        distinct = {id(tree): tree for tree in trees}
        for tree, weight in zip(trees, weights, strict=True):
            shares[id(tree)] = shares.get(id(tree), 0.0) + float(weight)
        self.trees = [tree for key, tree in distinct.items() if shares[key] > 0]
        self.weights = np.array([shares[id(tree)] for tree in self.trees])
        self.weights /= self.weights.sum()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be computed again."""
        made = ("beliefs", "places", "bounds", "tables", "_first_rows")
        return {name: value for name, value in self.__dict__.items() if name not in made}

    # -- rows of the fit --------------------------------------------------------------------------------------------

    @cached_property
    def beliefs(self) -> list[Beliefs]:
        """What the table says of the states in each tree."""
        return [Beliefs(tree, self.X, self.process) for tree in self.trees]

    @cached_property
    def _first_rows(self) -> dict[bytes, int]:
        return {row.tobytes(): k for k, row in reversed(list(enumerate(_plain(self.given_X))))}

    def rows_of_fit(self, X: FloatArray) -> IntArray:
        """Return which row of the fit each row is, cell by cell and hole by hole, of equal ones the first; -1 for others."""
        return np.array([self._first_rows.get(row.tobytes(), -1) for row in _plain(X)], dtype=np.intp)

    def fitted_cells(self, rows: IntArray) -> Predictions:
        """Return what cells of rows of the fit would show, over all trees.

        One tree, or a sample that has forgotten all but one of its early merges, is too sure of the rows' places: each row is
        taken off the trees, and placed anew by what was observed of it. For trees from the posterior that changes nothing
        on average, as a step of Gibbs sampling does not.
        """
        if len(self.X) == 1:
            return _mixture([beliefs.leaves().take(rows) for beliefs in self.beliefs], self.weights)
        return _mixture([self._placed_anew(tree, rows) for tree in self.trees], self.weights)

    def _placed_anew(self, tree: Tree, rows: IntArray) -> Predictions:
        found: list[Predictions] = []
        order: list[IntArray] = []
        whole = np.unique(rows[~np.isnan(self.X[rows]).any(axis=1)])
        for group in [*self._groups(FOLDS if len(self.trees) == 1 else SAMPLE_FOLDS), *whole[:, None]]:
            asked = np.flatnonzero(np.isin(rows, group))
            if len(asked):
                found.append(self._held_out(tree, group).cells(self.X[rows[asked]]))
                order.append(asked)
        return Predictions.stacked(found).take(np.argsort(np.concatenate(order), kind="stable"))

    def draw_fitted(self, rows: IntArray, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw the cells of rows of the fit, all rows of a draw together; shape ``(size, rows, n_columns)``.

        Every draw has a tree of its own: one of those that there are, with the rows taken off and put back where they might be
        as well, some of them at a time.
        """
        tables = np.empty((size, len(rows), self.X.shape[1]))
        chosen = rng.choice(len(self.trees), size=size, p=self.weights)
        groups = self._groups(DRAW_FOLDS) if len(self.X) > 1 else []
        for k, tree in enumerate(self.trees[t] for t in chosen):
            for group in groups:
                held_out = self._held_out(tree, group)
                at, heights = held_out.draw_places(self.X[group], rng)
                tree = with_leaves(held_out.trees[0], at, heights, group, tree.leaf_names)
            tables[k] = self.process.draw(Beliefs(tree, self.X, self.process).forest, tree, 1, rng)[0][rows]
        return tables

    def _groups(self, count: int) -> list[IntArray]:
        """Share the rows with holes out into at most so many groups, neighbours into different ones."""
        rows = np.flatnonzero(np.isnan(self.X).any(axis=1))
        count = min(count, len(rows))
        return [rows[k::count] for k in range(count)]

    def is_fit(self, X: FloatArray) -> bool:
        """Say whether a table is that of the fit."""
        return X.shape == self.given_X.shape and np.array_equal(X, self.given_X, equal_nan=True)

    def _held_out(self, tree: Tree, rows: IntArray) -> Predictor:
        return Predictor([without_leaves(tree, rows)], np.ones(1), np.delete(self.X, rows, axis=0), self.process)

    # -- places ---------------------------------------------------------------------------------------------------

    @cached_property
    def places(self) -> Places:
        """The places on all trees one after the other, tree by tree."""
        width = min(1.1, 3 / math.sqrt(self.X.shape[1]))
        found = [places(tree, self.process.settled_height, width) for tree in self.trees]
        self.bounds = np.concatenate([[0], np.cumsum([len(own.nodes) for own in found])])
        return Places(
            np.concatenate([own.nodes for own in found]),
            np.concatenate([own.heights for own in found]),
            np.concatenate([own.low for own in found]),
            np.concatenate([own.high for own in found]),
            np.concatenate([own.log_masses + math.log(w) for own, w in zip(found, self.weights, strict=True)]),
        )

    @cached_property
    def tables(self) -> PlaceTables:
        """What new leaves show at all places."""
        at = self.places
        blocks: list[Predictions] = []
        for k, beliefs in enumerate(self.beliefs):
            own = slice(self.bounds[k], self.bounds[k + 1])
            blocks.extend(beliefs.new_leaves(at.nodes[own], at.heights[own]))
        predictions = Predictions.stacked(blocks)
        known = predictions.sd < np.inf
        sd = np.where(known, predictions.sd, 1.0)
        return PlaceTables(
            predictions,
            np.ascontiguousarray(np.where(known, predictions.mean, 0.0).T),
            np.ascontiguousarray(np.where(known, 0.5 / sd**2, 0.0).T),
            np.ascontiguousarray(np.where(known, -np.log(sd) - 0.5 * math.log(2 * math.pi), 0.0).T),
            np.ascontiguousarray(np.log(np.maximum(predictions.probability, LEAST_PROBABILITY)).T),
        )

    def _log_masses(self, white: FloatArray) -> FloatArray:
        """Return for each row and place the log of prior times likelihood."""
        tables = self.tables
        predictions = tables.predictions
        logs = np.tile(self.places.log_masses, (len(white), 1))
        real = np.ascontiguousarray(white[:, predictions.real])
        add_gaussian_logs(real, ~np.isnan(real), tables.means, tables.half_precisions, tables.log_constants, logs)
        if len(predictions.categorical):
            logs += _one_hot(white[:, predictions.categorical], predictions.start) @ tables.log_probabilities
        return np.maximum(logs, LEAST_LOG, out=logs)

    def _in_blocks(self, X: FloatArray, work: Callable[[slice, FloatArray, FloatArray], Answer]) -> list[Answer]:
        """Do the work on blocks of rows: it gets the rows, the posterior shares of the places, and log densities."""
        _, white, _ = self.given_process.unmixed(X)
        n_places = len(self.places.nodes)
        step = max(1, min(NUMBERS_AT_ONCE // n_places, ROWS_AT_ONCE))  # the same for any number of threads

        def answer(first: int) -> Answer:
            rows = slice(first, first + step)
            logs = self._log_masses(white[rows])
            top = logs.max(axis=1, keepdims=True)
            shares = np.exp(logs - top, out=logs)
            total = shares.sum(axis=1, keepdims=True)
            shares /= total
            return work(rows, shares, (top + np.log(total)).ravel() + self.log_jacobian)

        with announced_compilation():
            self.tables  # noqa: B018  made once, before threads ask for it
            return list(
                Parallel(n_jobs=self.n_threads, require="sharedmem")(
                    delayed(answer)(first) for first in range(0, len(X), step)
                )
            )

    # -- new rows ---------------------------------------------------------------------------------------------------

    def log_density(self, X: FloatArray) -> FloatArray:
        """Return the log predictive density of rows, over all places and trees."""
        return np.concatenate(self._in_blocks(X, lambda rows, shares, log_density: log_density))

    def cells(self, X: FloatArray) -> Predictions:
        """Return what the cells of rows would show, each row placed by its observed ones."""
        if len(X) == 0:
            return self.tables.predictions.take(slice(0))

        def work(rows: slice, shares: FloatArray, log_density: FloatArray) -> Predictions:
            return _averaged(self.tables.predictions, shares)

        return Predictions.stacked(self._in_blocks(X, work))

    def draw_places(self, X: FloatArray, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
        """Draw a place for each row: the node below, and the height."""
        at = self._drawn(X, 1, rng)[0]
        return self.places.nodes[at], self.places.heights[at]

    def _drawn(self, X: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
        """Draw places for rows; shape ``(size, rows)``."""
        u = rng.random((len(X), size))

        def work(rows: slice, shares: FloatArray, log_density: FloatArray) -> IntArray:
            cumulative = np.cumsum(shares, axis=1)
            found = [np.searchsorted(own, some * own[-1]) for own, some in zip(cumulative, u[rows], strict=True)]
            return np.array(found)

        return np.concatenate(self._in_blocks(X, work)).T

    def draw(self, X: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw the cells of rows, each from a place drawn for it; shape ``(size, rows, columns)``."""
        at = self._drawn(X, size, rng)
        predictions = self.tables.predictions
        tables = np.full((size, *X.shape), np.nan)
        tables[:, :, predictions.real] = predictions.mean[at] + np.where(
            predictions.sd[at] < np.inf, predictions.sd[at], 0.0
        ) * rng.standard_normal((size, len(X), len(predictions.real)))
        for k, column in enumerate(predictions.categorical):
            own = slice(predictions.start[k], predictions.start[k + 1])
            cumulative = np.cumsum(predictions.probability[:, own], axis=1)[at]
            u = rng.random((size, len(X), 1)) * cumulative[..., -1:]
            tables[:, :, column] = np.minimum((cumulative <= u).sum(axis=2), cumulative.shape[-1] - 1)
        return tables

    def place(self, X: FloatArray, reference: Tree, n_nearest: int, level: float = 0.9) -> Placed:
        """Return where rows attach, on branches of a reference tree, and which leaves are nearest."""
        at = self.places
        to_branch = self._branches_of(reference)
        # a place's share is spread evenly over the stretch that it stands for, and over a hair's breadth at least
        lengths = np.maximum(at.high - at.low, 1e-9 * at.high.max())
        edges = np.concatenate([at.low, at.low + lengths])
        order = np.argsort(edges, kind="stable")
        edges = edges[order]
        tails = [0.5 * (1 - level), 1 - 0.5 * (1 - level)]

        def work(rows: slice, shares: FloatArray, log_density: FloatArray) -> Placed:
            branches = np.asarray((to_branch.T @ shares.T).T)
            best = branches.argmax(axis=1)
            _, merge_heights = self._over_leaves(shares)
            nearest = np.argsort(merge_heights, axis=1, kind="stable")[:, :n_nearest]
            densities = shares / lengths
            slopes = np.cumsum(np.hstack([densities, -densities])[:, order], axis=1)[:, :-1]
            below = np.zeros((len(shares), len(edges)))
            np.cumsum(slopes * np.diff(edges), axis=1, out=below[:, 1:])
            np.maximum.accumulate(below, axis=1, out=below)
            low, high = np.array([np.interp(tails, own, edges) for own in below]).T
            return Placed(
                best,
                np.minimum(branches[np.arange(len(best)), best], 1.0),
                shares @ at.heights,
                low,
                high,
                nearest,
                np.take_along_axis(merge_heights, nearest, axis=1),
                log_density,
            )

        found = self._in_blocks(X, work)
        return Placed(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def cluster_shares(self, X: FloatArray, labels: IntArray) -> FloatArray:
        """Return for each row the probability of each cluster: a place counts for the clusters of the leaves below it."""
        n_clusters = int(labels.max()) + 1
        members = csr_array((np.ones(len(labels)), (np.arange(len(labels)), labels)), shape=(len(labels), n_clusters))

        def work(rows: slice, shares: FloatArray, log_density: FloatArray) -> FloatArray:
            return np.asarray(self._over_leaves(shares)[0] @ members)

        return np.concatenate(self._in_blocks(X, work))

    def _over_leaves(self, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        n = len(self.X)
        leaf_shares, merge_heights = np.zeros((len(shares), n)), np.zeros((len(shares), n))
        scratch = np.empty((6, 2 * n - 1))
        at = self.places
        for k, tree in enumerate(self.trees):
            own = slice(self.bounds[k], self.bounds[k + 1])
            spread_over_leaves(
                np.ascontiguousarray(shares[:, own]),
                at.nodes[own],
                at.heights[own],
                tree.children,
                tree.heights,
                scratch,
                leaf_shares,
                merge_heights,
            )
        return leaf_shares, merge_heights

    def _branches_of(self, reference: Tree) -> csr_array:
        """Return which place is on which branch of the reference tree; those on branches that it lacks are on none."""
        at = self.places
        branches = np.empty(len(at.nodes), dtype=np.intp)
        n = reference.n_leaves
        known = {mask: n + k for k, mask in enumerate(clade_masks(reference))} if len(self.trees) > 1 else {}
        for k, tree in enumerate(self.trees):
            own = slice(self.bounds[k], self.bounds[k + 1])
            if tree is reference or len(self.trees) == 1:
                branches[own] = at.nodes[own]
            else:
                node_of = np.array([*range(n), *(known.get(mask, -1) for mask in clade_masks(tree))])
                branches[own] = node_of[at.nodes[own]]
        found = np.flatnonzero(branches >= 0)
        return csr_array((np.ones(len(found)), (found, branches[found])), shape=(len(branches), reference.n_nodes))


def _plain(X: FloatArray) -> FloatArray:
    """Return equal cells as equal bytes: one NaN, and no minus zero."""
    return np.where(np.isnan(X), np.nan, X) + 0.0


def _one_hot(codes: FloatArray, start: IntArray) -> FloatArray:
    hot = np.zeros((len(codes), start[-1]))
    rows, columns = np.nonzero(~np.isnan(codes))
    hot[rows, start[columns] + codes[rows, columns].astype(np.intp)] = 1.0
    return hot


def _averaged(predictions: Predictions, shares: FloatArray) -> Predictions:
    """Return mean, sd and probabilities of mixtures of the predictions' rows."""
    known = predictions.sd < np.inf
    mean = np.where(known, predictions.mean, 0.0)
    center = mean.mean(axis=0)  # so that squares do not cancel
    gap = mean - center
    first = shares @ gap
    second = shares @ (np.where(known, predictions.sd, 0.0) ** 2 + gap**2)
    sd = np.where(shares @ ~known > 0, np.inf, np.sqrt(np.maximum(second - first**2, 0.0)))
    return predictions._replace(mean=center + first, sd=sd, probability=shares @ predictions.probability)


def _mixture(parts: Sequence[Predictions], weights: FloatArray) -> Predictions:
    """Return the mixture of predictions of the same rows."""
    if len(parts) == 1:
        return parts[0]
    mean = sum(w * part.mean for part, w in zip(parts, weights, strict=True))
    variance = sum(w * (part.sd**2 + (part.mean - mean) ** 2) for part, w in zip(parts, weights, strict=True))
    probability = sum(w * part.probability for part, w in zip(parts, weights, strict=True))
    return parts[0]._replace(mean=np.asarray(mean), sd=np.sqrt(variance), probability=np.asarray(probability))
