"""New rows against trees: their predictive density, their places, their missing cells."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..inference.checkpoint import add_resume_hint
from ..inference.executors import open_client
from ..inference.posterior_draws import Draw
from ..inference.thread_executor import thread_count
from ..process.base import Process
from ..process.likelihood import Beliefs
from ..process.predictions import Predictions
from ..tree.clades import clade_masks
from ..tree.edit import with_leaves, without_leaves
from ..tree.tree import Tree
from .draws import Ensemble
from .groups import Looked, PlaceGroups
from .kernels.places import add_merge_heights, add_to_clusters, attach, find_clusters

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Answer = TypeVar("Answer")

# Leaves of all trees together, and draws, that are asked about rows that are known in part; the former of few columns.
MOST_LEAVES, FEWEST_DRAWS, FEW_COLUMNS = 5_000, 3, 10
# Draws on which rows of the fit are placed anew, and what that may cost: rows with holes times rows times columns squared.
MOST_ANEW, WORK_ANEW = 10, 1.5e8
FOLDS = 100  # groups of rows that are taken off a tree and placed anew, one group at a time
DRAW_FOLDS = SAMPLE_FOLDS = 20


class Walk(NamedTuple):
    """A tree's nodes in depth-first order, in which what is near is near in memory."""

    parent: IntArray  # where in the order
    size: IntArray  # nodes at and below
    height: FloatArray
    first_leaf: IntArray  # where in the leaves' order
    leaf_order: IntArray

    @classmethod
    def of(cls, tree: Tree) -> Self:
        """Walk a tree."""
        order = tree.depth_first
        return cls(
            _rank(tree)[tree.parents[order]],
            2 * tree.leaf_counts[order] - 1,
            tree.heights[order],
            tree.first_positions[order],
            tree.leaf_order,
        )


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
    """Trees over the rows of a table, each with its parameters, and what they say of others.

    Parameters
    ----------
    draws : sequence of Draw
    weights : ndarray of shape (n_draws,)
    X : ndarray of shape (n_leaves, n_columns)
        The rows of the fit, NaN where a cell is missing.
    n_jobs : int, optional
    places_anew : bool, default False
        Whether rows of the fit are taken off the trees and placed anew where they are asked for, since the trees are too sure
        of their places. Draws from the posterior are not; for this, they have to share one process and one table.
    """

    def __init__(
        self,
        draws: Sequence[Draw],
        weights: FloatArray,
        X: FloatArray,
        n_jobs: int | None = None,
        *,
        places_anew: bool = False,
    ) -> None:
        self.ensemble = Ensemble(draws, weights)
        self.X = X
        self.places_anew = places_anew
        self.n_threads = thread_count(n_jobs)
        self._lock = Lock()
        self._last_fitted: tuple[IntArray, Predictions] | None = None

    @classmethod
    def of_trees(
        cls, trees: Sequence[Tree], weights: FloatArray, X: FloatArray, process: Process, n_jobs: int | None = None
    ) -> Self:
        """Return a predictor of trees that share a process."""
        return cls([Draw(tree, process, X) for tree in trees], weights, X, n_jobs, places_anew=True)

    @property
    def given_process(self) -> Process:
        """The process of the first draw."""
        return self.ensemble.draws[0].process

    @property
    def weights(self) -> FloatArray:
        """The share of each draw."""
        return self.ensemble.weights

    @cached_property
    def trees(self) -> list[Tree]:
        """The tree of each draw."""
        return [draw.tree for draw in self.ensemble.draws]

    @cached_property
    def few(self) -> Predictor:
        """What is asked about rows that know some cells of a covariance matrix only: that takes long, so it has fewer draws."""
        every = self.ensemble.draws
        wide = max(self.X.shape[1] / FEW_COLUMNS, 1.0)  # the work grows as the square of the number of columns
        count = min(max(int(MOST_LEAVES / (len(self.X) * wide**2)), FEWEST_DRAWS), len(every))
        if count == len(every) or not any(draw.process.whitenings() for draw in every):
            return self
        which = self._evenly(count)
        return Predictor([every[k] for k in which], self.weights[which], self.X, self.n_threads)

    def _evenly(self, count: int) -> list[int]:
        """Return so many draws, evenly from all."""
        which: list[int] = np.linspace(0, len(self.trees) - 1, count).round().astype(int).tolist()
        return which

    def known_in_part(self, X: FloatArray) -> NDArray[np.bool_]:
        """Say which rows have holes in columns of a covariance matrix."""
        whitenings = self.ensemble.draws[0].process.whitenings()
        missing = np.isnan(X)
        found = np.zeros(len(X), dtype=np.bool_)
        for own in whitenings:
            found |= missing[:, own.columns].any(axis=1)
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be computed again."""
        kept = ("ensemble", "X", "places_anew", "n_threads")
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._lock, self._last_fitted = Lock(), None

    # -- rows of the fit --------------------------------------------------------------------------------------------

    @cached_property
    def _first_rows(self) -> dict[bytes, int]:
        return {row.tobytes(): k for k, row in reversed(list(enumerate(_plain(self.X))))}

    def rows_of_fit(self, X: FloatArray) -> IntArray:
        """Return which row of the fit each row is, cell by cell and hole by hole, of equal ones the first; -1 for others."""
        return np.array([self._first_rows.get(row.tobytes(), -1) for row in _plain(X)], dtype=np.intp)

    def fitted_cells(self, rows: IntArray) -> Predictions:
        """Return what cells of rows of the fit would show, over all draws.

        One tree, or a sample that has forgotten all but one of its early merges, is too sure of the rows' places: each row is
        taken off the trees, and placed anew by what was observed of it. For trees from the posterior that changes nothing on
        average, as a step of Gibbs sampling does not; but short chains are slow to move a row whose missing cells they have
        drawn for the place where it is, so rows are placed anew on some of their trees, if that does not take too long. Else
        they are taken where the draws have them. The last answer is kept: whoever fills cells asks for their deviations next.
        """
        before = self._last_fitted
        if before is None or not np.array_equal(before[0], rows):
            before = self._last_fitted = rows.copy(), self._fitted_cells(rows)
        return before[1]

    def _fitted_cells(self, rows: IntArray) -> Predictions:
        if self.places_anew and len(self.X) == 1:
            found = [beliefs.leaves().take(rows) for beliefs in self.groups.beliefs]
        elif self.places_anew:
            found = [self._placed_anew(draw, rows) for draw in self.ensemble.draws]
        elif len(self.X) > 1 and (which := self._placed_anew_on()):
            found = [self._placed_anew(self.ensemble.draws[k], rows) for k in which]
            return _mixture(found, self.weights[which] / self.weights[which].sum())
        else:
            found = [self._at_leaf(k, rows) for k in range(len(self.trees))]
        return _mixture(found, self.weights)

    def _placed_anew_on(self) -> list[int]:
        """Return on which draws rows of the fit are placed anew; none if that takes too long."""
        n, width = self.X.shape
        with_holes = float(np.isnan(self.X).any(axis=1).sum())
        work = with_holes * n * width**2  # of one draw: the square is that of hidden cells
        count = min(MOST_ANEW, int(WORK_ANEW / max(work, 1.0)), len(self.trees))
        return self._evenly(count) if count >= FEWEST_DRAWS else []

    def _at_leaf(self, k: int, rows: IntArray) -> Predictions:
        """Return what cells of rows would show where a draw has them, by all other rows and the row's observed cells."""
        groups = self.groups
        found = groups.beliefs[k].others().take(rows)
        coordinates = groups.coordinates[int(groups.draw_systems[k])]
        return coordinates.given(found, self.X[rows])

    def _placed_anew(self, draw: Draw, rows: IntArray) -> Predictions:
        found: list[Predictions] = []
        order: list[IntArray] = []
        whole = np.unique(rows[~np.isnan(self.X[rows]).any(axis=1)])
        for group in [*self._groups(FOLDS if len(self.trees) == 1 else SAMPLE_FOLDS), *whole[:, None]]:
            asked = np.flatnonzero(np.isin(rows, group))
            if len(asked):
                found.append(self.without_rows(group, [draw]).cells(self.X[rows[asked]]))
                order.append(asked)
        return Predictions.stack(found).take(np.argsort(np.concatenate(order), kind="stable"))

    def draw_fitted(self, rows: IntArray, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw the cells of rows of the fit, all rows of a draw together; shape ``(size, rows, n_columns)``.

        Every table comes from one draw, with the cells that it has filled in. Where rows are placed anew, it has a tree of its
        own: one of those that there are, with the rows taken off and put back where they might be as well, some of them at a
        time.
        """
        tables = np.empty((size, len(rows), self.X.shape[1]))
        often = size > np.count_nonzero(self.weights)  # the cells that a draw has filled in are the same each time
        chosen = rng.choice(len(self.trees), size=size, p=self.weights, replace=bool(often))
        groups = self._groups(DRAW_FOLDS) if self.places_anew and len(self.X) > 1 else []
        for k, draw in enumerate(self.ensemble.draws[t] for t in chosen):
            tree = draw.tree
            for group in groups:
                held_out = self.without_rows(group, [draw._replace(tree=tree)])
                at, heights = held_out.draw_places(self.X[group], rng)
                tree = with_leaves(held_out.trees[0], at, heights, group, tree.leaf_names)
            drawn = Beliefs(tree, draw.X, draw.process).draw(1, rng)[0]
            filled = np.isnan(self.X) & ~np.isnan(draw.X)
            tables[k] = np.where(filled, draw.X, drawn)[rows]
        return tables

    def _groups(self, count: int) -> list[IntArray]:
        """Share the rows with holes out into at most so many groups, neighbours into different ones."""
        rows = np.flatnonzero(np.isnan(self.X).any(axis=1))
        count = min(count, len(rows))
        return [rows[k::count] for k in range(count)]

    def is_fit(self, X: FloatArray) -> bool:
        """Say whether a table is that of the fit."""
        return X.shape == self.X.shape and np.array_equal(X, self.X, equal_nan=True)

    def without_rows(self, rows: IntArray, draws: Sequence[Draw]) -> Predictor:
        """Return a predictor of draws over the same rows after some have been taken off."""
        rest = [Draw(without_leaves(own.tree, rows), own.process, np.delete(own.X, rows, axis=0)) for own in draws]
        return Predictor(rest, np.ones(len(rest)), np.delete(self.X, rows, axis=0), self.n_threads)

    # -- places ---------------------------------------------------------------------------------------------------

    @property
    def groups(self) -> PlaceGroups:
        """Where new rows may attach, on all trees; made once, whichever thread asks first."""
        with self._lock:
            if "_made_groups" not in self.__dict__:
                self._made_groups = PlaceGroups(self.ensemble, self.X)
            return self._made_groups

    @cached_property
    def _walks(self) -> list[Walk]:
        return [Walk.of(tree) for tree in self.trees]

    @cached_property
    def _ranks(self) -> IntArray:
        """Where the node below each place is in the walk through its tree."""
        nodes, bounds = self.groups.places.nodes, self.groups.bounds
        return np.concatenate(
            [_rank(tree)[nodes[slice(*ends)]] for tree, ends in zip(self.trees, pairwise(bounds), strict=True)]
        )

    def _in_blocks(self, X: FloatArray, work: Callable[[Looked], Answer]) -> tuple[IntArray, list[Answer]]:
        """Do the work on blocks of rows; return the order of the rows that puts the answers as they were asked for."""
        which, found = self.groups.in_blocks(X, self.n_threads, work)
        return np.argsort(which), found

    # -- new rows ---------------------------------------------------------------------------------------------------

    def log_density(self, X: FloatArray) -> FloatArray:
        """Return the log predictive density of rows, over all places and trees: eq. (9.6)."""
        return self.groups.log_density(X, self.n_threads)

    def cells(self, X: FloatArray) -> Predictions:
        """Return what the cells of rows would show, each row placed by its observed ones: eq. (9.7)."""
        if len(X) == 0:
            return self.groups.shown_at(np.zeros(0, dtype=np.intp))
        order, found = self._in_blocks(X, self.groups.mixtures)
        return Predictions.stack(found).take(order)

    def draw_places(self, X: FloatArray, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
        """Draw a place for each row: the node below, and the height."""
        at = self._drawn(X, 1, rng)[0]
        return self.groups.places.nodes[at], self.groups.places.heights[at]

    def _drawn(self, X: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
        """Draw places for rows; shape ``(size, rows)``."""
        u = rng.random((len(X), size))

        def work(looked: Looked) -> IntArray:
            found = np.empty((len(looked.rows), size), dtype=np.intp)
            for k, row in enumerate(looked.rows):
                own = slice(*looked.first_pairs[k : k + 2])
                cumulative = np.cumsum(looked.shares[own])
                pair, place = np.divmod(np.searchsorted(cumulative, u[row] * cumulative[-1]), self.groups.width)
                found[k] = self.groups.starts[looked.groups[own]][pair] + place
            return found

        order, found = self._in_blocks(X, work)
        return np.concatenate(found)[order].T

    def draw(self, X: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw the cells of rows, each from a place drawn for it; shape ``(size, rows, columns)``."""
        groups = self.groups
        distinct, at = np.unique(self._drawn(X, size, rng), return_inverse=True)
        systems = groups.draw_systems[np.searchsorted(groups.bounds, distinct, side="right") - 1]
        at = at.reshape(size, len(X))
        predictions = groups.shown_at(distinct)
        tables = np.full((size, *X.shape), np.nan)
        steps = rng.standard_normal((size, len(X), len(predictions.real)))
        for k, coordinates in enumerate(groups.coordinates):
            tables_at, rows = np.nonzero(systems[at] == k)
            drawn = coordinates.given(predictions.take(at[tables_at, rows]), X[rows], steps[tables_at, rows])
            tables[tables_at[:, None], rows[:, None], predictions.real] = drawn.mean
        for k, column in enumerate(predictions.categorical):
            own = slice(predictions.start[k], predictions.start[k + 1])
            cumulative = np.cumsum(predictions.probability[:, own], axis=1)[at]
            u = rng.random((size, len(X), 1)) * cumulative[..., -1:]
            tables[:, :, column] = np.minimum((cumulative <= u).sum(axis=2), cumulative.shape[-1] - 1)
        return tables

    def place(self, X: FloatArray, reference: Tree, n_nearest: int, level: float = 0.9) -> Placed:
        """Return where rows attach, on branches of a reference tree, and which leaves are nearest."""
        groups, at = self.groups, self.groups.places
        branches = self._branches_of(reference)
        self._ranks, self._walks  # noqa: B018  made once, before threads ask for them
        shortest = 1e-9 * float(at.high.max())
        tails = np.array([0.5 * (1 - level), 1 - 0.5 * (1 - level)])
        n_nearest = min(n_nearest, len(self.X))

        def work(looked: Looked) -> tuple[FloatArray, IntArray, FloatArray, FloatArray]:
            found = np.empty((len(looked.rows), 5))
            attach(
                looked.first_pairs,
                looked.groups,
                looked.shares,
                groups.starts,
                groups.stops,
                branches,
                *at[1:4],
                shortest,
                tails,
                np.zeros(reference.n_nodes),
                found,
            )
            nearest = np.empty((len(found), n_nearest), dtype=np.intp)
            nearest_heights = np.empty((len(found), n_nearest))
            if n_nearest:
                for k, merge_heights in enumerate(self._merge_heights(looked)):
                    last = np.partition(merge_heights, n_nearest - 1)[n_nearest - 1]
                    near = np.flatnonzero(merge_heights <= last)
                    nearest[k] = near[np.argsort(merge_heights[near], kind="stable")][:n_nearest]
                    nearest_heights[k] = merge_heights[nearest[k]]
            return found, nearest, nearest_heights, looked.log_density

        order, parts = self._in_blocks(X, work)
        found, nearest, nearest_heights, log_density = (np.concatenate(own)[order] for own in zip(*parts, strict=True))
        _, probability, height, low, high = found.T.copy()
        node = reference.depth_first[found[:, 0].astype(np.intp)]
        return Placed(node, probability, height, low, high, nearest, nearest_heights, log_density)

    def _merge_heights(self, looked: Looked) -> Iterator[FloatArray]:
        """Yield for each row the expected height at which it merges with each leaf."""
        groups = self.groups
        scratch = np.zeros((3, 2 * len(self.X) - 1))
        for first, last in pairwise(looked.first_pairs):
            merge_heights = np.zeros(len(self.X))
            bounds = first + np.searchsorted(looked.groups[first:last], groups.group_bounds)
            for walk, own in zip(self._walks, (slice(*ends) for ends in pairwise(bounds)), strict=True):
                add_merge_heights(
                    looked.groups[own],
                    looked.shares[own],
                    groups.starts,
                    groups.stops,
                    self._ranks,
                    groups.places.heights,
                    *walk,
                    scratch,
                    merge_heights,
                )
            yield merge_heights

    def cluster_shares(self, X: FloatArray, labels: IntArray) -> FloatArray:
        """Return for each row the probability of each cluster: a place counts for the clusters of the leaves below it."""
        groups = self.groups
        labels = np.ascontiguousarray(labels, dtype=np.intp)
        clusters = np.empty((len(self.trees), 2 * len(labels) - 1), dtype=np.intp)
        for walk, own in zip(self._walks, clusters, strict=True):
            find_clusters(labels, walk.size, walk.first_leaf, walk.leaf_order, own)
        mixed = [np.flatnonzero(own < 0) for own in clusters]
        self._ranks  # noqa: B018  made once, before threads ask for it

        def work(looked: Looked) -> FloatArray:
            found = np.zeros((len(looked.rows), int(labels.max()) + 1))
            for k, walk in enumerate(self._walks):
                add_to_clusters(
                    looked.first_pairs,
                    looked.groups,
                    looked.shares,
                    groups.group_bounds[k],
                    groups.group_bounds[k + 1],
                    groups.starts,
                    groups.stops,
                    self._ranks,
                    walk.size,
                    clusters[k],
                    mixed[k],
                    np.zeros(len(walk.size)),
                    found,
                )
            return found

        order, found = self._in_blocks(X, work)
        return np.asarray(np.concatenate(found)[order])

    def _branches_of(self, reference: Tree) -> IntArray:
        """Return on which branch of the reference tree each place is, in the order of a walk; -1 if the tree lacks it."""
        if len(self.trees) == 1:
            return self._ranks
        nodes, bounds = self.groups.places.nodes, self.groups.bounds
        branches = np.empty(len(nodes), dtype=np.intp)
        n, rank = reference.n_leaves, _rank(reference)
        known = {mask: rank[n + k] for k, mask in enumerate(clade_masks(reference))}
        for k, tree in enumerate(self.trees):
            own = slice(bounds[k], bounds[k + 1])
            ranks = np.array([*rank[:n], *(known.get(mask, -1) for mask in clade_masks(tree))])
            branches[own] = ranks[nodes[own]]
        return branches


def _rank(tree: Tree) -> IntArray:
    """Return where each node is in the walk through the tree."""
    rank = np.empty(tree.n_nodes, dtype=np.intp)
    rank[tree.depth_first] = np.arange(tree.n_nodes)
    return rank


def _plain(X: FloatArray) -> FloatArray:
    """Return equal cells as equal bytes: one NaN, and no minus zero."""
    return np.where(np.isnan(X), np.nan, X) + 0.0


def _mixture(parts: Sequence[Predictions], weights: FloatArray) -> Predictions:
    """Return the mixture of predictions of the same rows."""
    if len(parts) == 1:
        return parts[0]
    mean = sum(w * part.mean for part, w in zip(parts, weights, strict=True))
    variance = sum(w * (part.sd**2 + (part.mean - mean) ** 2) for part, w in zip(parts, weights, strict=True))
    probability = sum(w * part.probability for part, w in zip(parts, weights, strict=True))
    return parts[0]._replace(mean=np.asarray(mean), sd=np.sqrt(variance), probability=np.asarray(probability))


ROWS_AT_ONCE = 2_000  # of fewer, sending takes longer than answering


def ask(predictor: Predictor, question: str, X: NDArray[np.float64], *arguments: Any, client: Any = None) -> Any:
    """Ask a predictor about rows; of many, workers of a client answer some each, in the same words.

    Rows that are known in part are asked of fewer draws, see `Predictor.few`.

    Parameters
    ----------
    predictor : Predictor
    question : str
        The method that answers.
    X : ndarray of shape (n_rows, n_columns)
    arguments : object
        What the method takes besides.
    client : distributed.Client or str, optional

    Returns
    -------
    ndarray, Predictions or Placed
    """
    in_part = predictor.known_in_part(X)
    if in_part.any() and predictor.few is not predictor:
        order = np.argsort(np.concatenate([np.flatnonzero(in_part), np.flatnonzero(~in_part)]))
        parts = [(predictor.few, X[in_part]), (predictor, X[~in_part])]
        answers = [ask(asked, question, rows, *arguments, client=client) for asked, rows in parts if len(rows)]
        return _taken(_joined(answers), order)
    if client is None or len(X) <= ROWS_AT_ONCE:
        return getattr(predictor, question)(X, *arguments)
    sent = copy.copy(predictor)
    sent.n_threads = 1
    tasks = ((X[first : first + ROWS_AT_ONCE],) for first in range(0, len(X), ROWS_AT_ONCE))
    with open_client(client) as opened, add_resume_hint(has_checkpoint=False):
        from ..inference.dask_executor import DaskExecutor

        return _joined(
            list(DaskExecutor(opened, predictor.n_threads).run_on((sent, question, arguments), answered, tasks))
        )


def answered(asked: tuple[Predictor, str, tuple[Any, ...]], X: NDArray[np.float64]) -> Any:
    """Answer a question about some rows."""
    predictor, question, arguments = asked
    return getattr(predictor, question)(X, *arguments)


def _taken(answer: Any, order: NDArray[np.intp]) -> Any:
    """Put answers about rows into another order."""
    if isinstance(answer, Predictions):
        return answer.take(order)
    return type(answer)(*(own[order] for own in answer)) if isinstance(answer, tuple) else answer[order]


def _joined(answers: list[Any]) -> Any:
    """Put answers about rows one below the other."""
    if isinstance(answers[0], Predictions):
        return Predictions.stack(answers)
    if isinstance(answers[0], tuple):
        return type(answers[0])(*map(np.concatenate, zip(*answers, strict=True)))
    return np.concatenate(answers)
