"""Predictions for new rows, averaged over draws of trees: density, placement, clusters and missing cells."""

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
from ..inference.executors import DaskExecutor, Workers, open_client, thread_count
from ..inference.posterior_draws import Draw
from ..process.base import Process
from ..process.likelihood import Beliefs
from ..process.predictions import Predictions
from ..table.cells import set_members
from ..tree.clades import clade_masks
from ..tree.edit import with_leaves, without_leaves
from ..tree.tree import Tree
from .draws import Ensemble
from .groups import PointGroups, PointPosterior
from .kernels.places import add_merge_heights, add_to_clusters, attach, find_clusters
from .known_rows import KnownRows
from .mixtures import Components, Mixtures

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Result = TypeVar("Result")

MIN_DRAWS = 3  # wherever fewer draws than all are used to save time
MAX_PARTIAL_LEAVES = 5_000  # total over the draws that serve partially observed rows
MAX_CHEAP_COLUMNS = 10  # up to this width the limit above holds; wider tables use fewer draws
MAX_REATTACHMENT_DRAWS = 10
MAX_REATTACHMENT_WORK = 1.5e8  # incomplete rows x rows x columns, summed over the draws; columns squared if correlated
N_FOLDS = 100  # training rows are left out and reattached in this many groups: of a single tree,
N_DRAW_FOLDS = N_SAMPLE_FOLDS = 20  # when drawing tables, and for each tree of a sample
MAIN_SHARE = 0.9  # of the leaves below a branch, in a cluster that rows which attach there join too
ROWS_PER_TASK = 2_000  # sent to a Dask worker; sending fewer takes longer than predicting them


class Traversal(NamedTuple):
    """A tree's nodes in depth-first order, so that related nodes are close in memory."""

    parent: IntArray  # position of the parent in this order
    size: IntArray  # number of nodes in the subtree, including the node itself
    height: FloatArray
    first_leaf: IntArray  # position of the first leaf of the subtree in leaf_order
    leaf_order: IntArray

    @classmethod
    def from_tree(cls, tree: Tree) -> Self:
        """Traverse a tree."""
        order = tree.depth_first
        return cls(
            _rank(tree)[tree.parents[order]],
            2 * tree.leaf_counts[order] - 1,
            tree.heights[order],
            tree.first_positions[order],
            tree.leaf_order,
        )


class PlacementArrays(NamedTuple):
    """Where rows attach. Each array has one entry per row."""

    node: IntArray  # in the reference tree; the row attaches to the branch above this node
    probability: FloatArray
    height: FloatArray
    height_low: FloatArray
    height_high: FloatArray
    nearest: IntArray  # (rows, k), leaves
    nearest_height: FloatArray  # (rows, k), expected heights of the merges with these leaves
    log_density: FloatArray


class Predictor:
    """Predictions from a weighted ensemble of trees, each with its own parameters.

    Parameters
    ----------
    draws : sequence of Draw
    weights : ndarray of shape (n_draws,)
    X : ndarray of shape (n_leaves, n_columns)
        The training rows. NaN is a missing cell.
    n_jobs : int, optional
    reattach_rows : bool, default False
        Leave training rows out of the trees and attach them again before predicting their cells. Trees from a search need
        this, because they are overconfident about where rows belong; draws from the posterior do not. All draws must then
        share one process and one table.
    """

    def __init__(
        self,
        draws: Sequence[Draw],
        weights: FloatArray,
        X: FloatArray,
        n_jobs: int | None = None,
        *,
        reattach_rows: bool = False,
    ) -> None:
        self.ensemble = Ensemble(draws, weights)
        self.X = X
        self.reattach_rows = reattach_rows
        self.n_threads = thread_count(n_jobs)
        self._lock = Lock()
        self._last_training_cells: tuple[IntArray, Predictions] | None = None

    @classmethod
    def from_trees(
        cls, trees: Sequence[Tree], weights: FloatArray, X: FloatArray, process: Process, n_jobs: int | None = None
    ) -> Self:
        """Return a predictor for trees that share a process."""
        return cls([Draw(tree, process, X) for tree in trees], weights, X, n_jobs, reattach_rows=True)

    @property
    def weights(self) -> FloatArray:
        """The normalized weights of the draws."""
        return self.ensemble.weights

    @cached_property
    def trees(self) -> list[Tree]:
        """The tree of each draw."""
        return [draw.tree for draw in self.ensemble.draws]

    @cached_property
    def subsample(self) -> Predictor:
        """A predictor with fewer draws, for partially observed rows, which take much longer than others."""
        draws = self.ensemble.draws
        width = max(self.X.shape[1] / MAX_CHEAP_COLUMNS, 1.0)  # the work grows as the square of the number of columns
        count = min(max(int(MAX_PARTIAL_LEAVES / (len(self.X) * width**2)), MIN_DRAWS), len(draws))
        if count == len(draws) or not any(draw.process.whitenings() for draw in draws):
            return self
        which = self._spread_draws(count)
        return Predictor([draws[k] for k in which], self.weights[which], self.X, self.n_threads)

    def _spread_draws(self, count: int) -> list[int]:
        """Return the indices of `count` evenly spaced draws."""
        which: list[int] = np.linspace(0, len(self.trees) - 1, count).round().astype(int).tolist()
        return which

    def is_partially_observed(self, X: FloatArray) -> NDArray[np.bool_]:
        """Return which rows lack cells in columns that share a covariance matrix."""
        missing = np.isnan(X)
        partial = np.zeros(len(X), dtype=np.bool_)
        for whitening in self.ensemble.draws[0].process.whitenings():
            partial |= missing[:, whitening.columns].any(axis=1)
        return partial

    def __getstate__(self) -> dict[str, Any]:
        """Leave out everything that can be recomputed."""
        names = ("ensemble", "X", "reattach_rows", "n_threads")
        return {name: self.__dict__[name] for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._lock, self._last_training_cells = Lock(), None

    # -- training rows ----------------------------------------------------------------------------------------------

    @cached_property
    def known_rows(self) -> KnownRows:
        """The training rows, to recognise them by their cells."""
        return KnownRows(self.X)

    def training_cells(self, rows: IntArray, quantiles: bool = False) -> Predictions:
        """Predict the cells of training rows, averaged over all draws; on request with quantiles of missing real cells.

        A single tree, or an SMC sample whose trees share their early merges, is overconfident about where a row belongs.
        Each row is therefore left out of the trees and attached again according to its observed cells. For draws from the
        posterior this is a Gibbs step, which changes nothing on average. But short chains rarely move a row whose missing
        cells they imputed at its present position, so rows are reattached on some of the draws if that is fast enough.
        Otherwise each draw predicts a row where it is. The last result is cached: callers that fill cells ask for their
        standard deviations next.
        """
        last = self._last_training_cells
        if last is None or not np.array_equal(last[0], rows) or (quantiles and last[1].quantiles is None):
            last = self._last_training_cells = rows.copy(), self._predict_training_cells(rows, quantiles)
        return last[1]

    def _predict_training_cells(self, rows: IntArray, quantiles: bool) -> Predictions:
        if self.reattach_rows and len(self.X) == 1:
            parts = [beliefs.leaves().take(rows).restrict(self.X[rows]) for beliefs in self.groups.beliefs]
            return _mix(parts, self.weights)
        if self.reattach_rows:
            return self._reattach(list(range(len(self.trees))), rows, quantiles)
        if len(self.X) > 1 and (which := self._choose_reattachment_draws()):
            return self._reattach(which, rows, quantiles)
        return self._predict_leaves(rows, quantiles)

    def _choose_reattachment_draws(self) -> list[int]:
        """Return the draws on which training rows are reattached; none if that takes too long."""
        n, width = self.X.shape
        n_incomplete = float(np.isnan(self.X).any(axis=1).sum())
        correlated = any(draw.process.whitenings() for draw in self.ensemble.draws)
        # Per draw. Conditioning on observed cells of correlated columns is quadratic in their number.
        work = n_incomplete * n * width * (width if correlated else 1)
        count = min(MAX_REATTACHMENT_DRAWS, int(MAX_REATTACHMENT_WORK / max(work, 1.0)), len(self.trees))
        return self._spread_draws(count) if count >= MIN_DRAWS else []

    def _predict_leaves(self, rows: IntArray, quantiles: bool) -> Predictions:
        """Predict the cells of training rows at their leaves, from the other rows and the row's observed cells."""
        groups, X = self.groups, self.X[rows]
        parts, components = [], []
        for beliefs, system, weight in zip(groups.beliefs, groups.draw_systems, self.weights, strict=True):
            coordinates, predictions = groups.coordinates[int(system)], beliefs.others().take(rows)
            parts.append(coordinates.condition(predictions, X).restrict(X))
            if quantiles:
                moments = coordinates.condition_scores(predictions, X)
                requested = np.isnan(X[:, predictions.real]) & (moments[1] < np.inf)
                components.append(Components.from_cells(requested, weight, *moments, coordinates.scores is not None))
        mixed = _mix(parts, self.weights)
        if not quantiles:
            return mixed
        return mixed._replace(quantiles=Components.join(components).quantiles(mixed.mean.shape, groups.scores))

    def _reattach(self, which: list[int], rows: IntArray, quantiles: bool) -> Predictions:
        """Predict the cells of training rows, each attached again to the trees of some draws without it."""
        draws, weights = [self.ensemble.draws[k] for k in which], self.weights[which] / self.weights[which].sum()
        scores = next((draw.scores for draw in draws if draw.scores is not None), None)
        complete = np.unique(rows[~np.isnan(self.X[rows]).any(axis=1)])
        n_folds = N_FOLDS if len(self.trees) == 1 else N_SAMPLE_FOLDS
        folds = [*self._split_incomplete_rows(n_folds), *complete[:, None]]
        folds_with_rows = [(fold, at) for fold in folds if len(at := np.flatnonzero(np.isin(rows, fold)))]

        def predict(draw: Draw, fold: IntArray, at: IntArray) -> tuple[Predictions, Components | None]:
            rest, X = self.without_rows(fold, [draw]), self.X[rows[at]]
            return rest.cells_with_components(X) if quantiles else (rest.cells(X), None)

        tasks = ((draw, *fold) for fold in folds_with_rows for draw in draws)
        mixed = []
        with Workers(self.n_threads) as workers:
            results = workers.run(predict, tasks)
            for _ in folds_with_rows:
                parts, mixtures = [], Mixtures()
                for weight in weights.tolist():
                    part, components = next(results)
                    parts.append(part)
                    if components is not None:
                        mixtures.add(components, weight)
                mixed.append(_mix(parts, weights))
                if quantiles:
                    shape = parts[0].mean.shape
                    mixed[-1] = mixed[-1]._replace(quantiles=mixtures.components().quantiles(shape, scores))
        return Predictions.stack(mixed).take(
            np.argsort(np.concatenate([at for _, at in folds_with_rows]), kind="stable")
        )

    def draw_training_cells(self, rows: IntArray, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw the cells of training rows, jointly over the rows; shape ``(size, rows, n_columns)``.

        Each table comes from one draw, including the missing cells that the chain imputed. With `reattach_rows`, the table
        gets a tree of its own: the incomplete rows are left out, some at a time, and attached again at random.
        """
        tables = np.empty((size, len(rows), self.X.shape[1]))
        # Without replacement if possible: the cells that a chain imputed are the same each time a draw is used.
        replace = size > np.count_nonzero(self.weights)
        chosen = rng.choice(len(self.trees), size=size, p=self.weights, replace=bool(replace))
        folds = self._split_incomplete_rows(N_DRAW_FOLDS) if self.reattach_rows and len(self.X) > 1 else []
        for k, draw in enumerate(self.ensemble.draws[t] for t in chosen):
            tree = draw.tree
            for fold in folds:
                rest = self.without_rows(fold, [draw._replace(tree=tree)])
                nodes, heights = rest.draw_points(self.X[fold], rng)
                tree = with_leaves(rest.trees[0], nodes, heights, fold, tree.leaf_names)
            cells = Beliefs(tree, draw.X, draw.process).draw(1, rng)[0]
            imputed = np.isnan(self.X) & ~np.isnan(draw.X)
            cells = np.where(imputed, draw.X, cells)[rows]
            tables[k] = cells if draw.scores is None else draw.scores.invert(cells)
        return tables

    def _split_incomplete_rows(self, count: int) -> list[IntArray]:
        """Split the incomplete rows into at most `count` folds, with adjacent rows in different folds."""
        rows = np.flatnonzero(np.isnan(self.X).any(axis=1))
        count = min(count, len(rows))
        return [rows[k::count] for k in range(count)]

    def is_training_table(self, X: FloatArray) -> bool:
        """Return whether a table is the training table."""
        return X.shape == self.X.shape and np.array_equal(X, self.X, equal_nan=True)

    def without_rows(self, rows: IntArray, draws: Sequence[Draw]) -> Predictor:
        """Return a predictor for draws without some of the training rows."""
        rest = [
            draw._replace(tree=without_leaves(draw.tree, rows), X=np.delete(draw.X, rows, axis=0)) for draw in draws
        ]
        return Predictor(rest, np.ones(len(rest)), np.delete(self.X, rows, axis=0), self.n_threads)

    # -- attachment points ------------------------------------------------------------------------------------------

    @property
    def groups(self) -> PointGroups:
        """The attachment points of all trees; computed once, by the first thread that needs them."""
        with self._lock:
            if "_groups_cache" not in self.__dict__:
                self._groups_cache = PointGroups(self.ensemble, self.X)
            return self._groups_cache

    @cached_property
    def _traversals(self) -> list[Traversal]:
        return [Traversal.from_tree(tree) for tree in self.trees]

    @cached_property
    def _ranks(self) -> IntArray:
        """The depth-first position of the node below each attachment point."""
        nodes, bounds = self.groups.points.nodes, self.groups.bounds
        return np.concatenate(
            [_rank(tree)[nodes[slice(*ends)]] for tree, ends in zip(self.trees, pairwise(bounds), strict=True)]
        )

    def _map_blocks(self, X: FloatArray, work: Callable[[PointPosterior], Result]) -> tuple[IntArray, list[Result]]:
        """Call a function for blocks of rows; return the order that sorts the results by row, and the results."""
        rows, results = self.groups.map_blocks(X, self.n_threads, work)
        return np.argsort(rows), results

    # -- new rows ---------------------------------------------------------------------------------------------------

    def log_density(self, X: FloatArray) -> FloatArray:
        """Return the log predictive density of rows, integrated over attachment points and trees: eq. (9.6)."""
        return self.groups.log_density(X, self.n_threads)

    def cells(self, X: FloatArray, quantiles: bool = False) -> Predictions:
        """Predict all cells of rows, each row attached according to its observed cells: eq. (9.7).

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_columns)
        quantiles : bool, default False
            Whether to find quantiles of missing real cells, too.
        """
        if len(X) == 0:
            return self.groups.predict_at(np.zeros(0, dtype=np.intp))
        order, results = self._map_blocks(X, lambda posterior: self.groups.mixtures(posterior, quantiles))
        return Predictions.stack(results).take(order)

    def cells_with_components(self, X: FloatArray) -> tuple[Predictions, Components]:
        """Return what `cells` returns, and the components of the mixtures of missing real cells."""

        def work(posterior: PointPosterior) -> tuple[Predictions, Components]:
            predictions, components = self.groups.mixture_components(posterior)
            return predictions, components.renumber(posterior.rows, predictions.mean.shape[1])

        order, results = self._map_blocks(X, work)
        parts, components = zip(*results, strict=True)
        return Predictions.stack(parts).take(order), Components.join(components)

    def draw_points(self, X: FloatArray, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
        """Draw an attachment point for each row; return the nodes below, and the heights."""
        at = self._draw_points(X, 1, rng)[0]
        return self.groups.points.nodes[at], self.groups.points.heights[at]

    def _draw_points(self, X: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
        """Draw the indices of attachment points; shape ``(size, rows)``."""
        u = rng.random((len(X), size))

        def work(posterior: PointPosterior) -> IntArray:
            points = np.empty((len(posterior.rows), size), dtype=np.intp)
            for k, row in enumerate(posterior.rows):
                pairs = slice(*posterior.first_pairs[k : k + 2])
                cumulative = np.cumsum(posterior.shares[pairs])
                pair, offset = np.divmod(np.searchsorted(cumulative, u[row] * cumulative[-1]), self.groups.width)
                points[k] = self.groups.starts[posterior.groups[pairs]][pair] + offset
            return points

        order, results = self._map_blocks(X, work)
        return np.concatenate(results)[order].T

    def draw(self, X: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw the cells of rows, each at a random attachment point; shape ``(size, rows, columns)``."""
        groups = self.groups
        distinct, at = np.unique(self._draw_points(X, size, rng), return_inverse=True)
        systems = groups.draw_systems[np.searchsorted(groups.bounds, distinct, side="right") - 1]
        at = at.reshape(size, len(X))
        predictions = groups.predict_at(distinct)
        tables = np.full((size, *X.shape), np.nan)
        steps = rng.standard_normal((size, len(X), len(predictions.real)))
        for k, coordinates in enumerate(groups.coordinates):
            tables_at, rows = np.nonzero(systems[at] == k)
            cells = coordinates.condition(predictions.take(at[tables_at, rows]), X[rows], steps[tables_at, rows])
            tables[tables_at[:, None], rows[:, None], predictions.real] = cells.mean
        for k, column in enumerate(predictions.categorical):
            states = slice(predictions.start[k], predictions.start[k + 1])
            cumulative = np.cumsum(predictions.probability[:, states], axis=1)[at]
            u = rng.random((size, len(X), 1)) * cumulative[..., -1:]
            tables[:, :, column] = np.minimum((cumulative <= u).sum(axis=2), cumulative.shape[-1] - 1)
            for row in np.flatnonzero(X[:, column] < 0).tolist():  # one of several states
                members = np.flatnonzero(set_members(X[row, column, None], cumulative.shape[-1])[0])
                chances = np.cumsum(predictions.probability[at[:, row]][:, states][:, members], axis=1)
                ranks = (chances <= u[:, row] / cumulative[:, row, -1:] * chances[:, -1:]).sum(axis=1)
                tables[:, row, column] = members[np.minimum(ranks, len(members) - 1)]
        return tables

    def place(self, X: FloatArray, reference: Tree, n_nearest: int, level: float = 0.9) -> PlacementArrays:
        """Return the branches of a reference tree to which rows attach, and their nearest leaves."""
        groups, at = self.groups, self.groups.points
        branches = self._map_branches(reference)
        self._ranks, self._traversals  # noqa: B018  computed once, before threads need them
        shortest = 1e-9 * float(at.high.max())
        tails = np.array([0.5 * (1 - level), 1 - 0.5 * (1 - level)])
        n_nearest = min(n_nearest, len(self.X))

        def work(posterior: PointPosterior) -> tuple[FloatArray, IntArray, FloatArray, FloatArray]:
            attachments = np.empty((len(posterior.rows), 5))
            attach(
                posterior.first_pairs,
                posterior.groups,
                posterior.shares,
                groups.starts,
                groups.stops,
                branches,
                *at[1:4],
                shortest,
                tails,
                np.zeros(reference.n_nodes),
                attachments,
            )
            nearest = np.empty((len(attachments), n_nearest), dtype=np.intp)
            nearest_heights = np.empty((len(attachments), n_nearest))
            if n_nearest:
                for k, merge_heights in enumerate(self._merge_heights(posterior)):
                    last = np.partition(merge_heights, n_nearest - 1)[n_nearest - 1]
                    near = np.flatnonzero(merge_heights <= last)
                    nearest[k] = near[np.argsort(merge_heights[near], kind="stable")][:n_nearest]
                    nearest_heights[k] = merge_heights[nearest[k]]
            return attachments, nearest, nearest_heights, posterior.log_density

        order, parts = self._map_blocks(X, work)
        attachments, nearest, nearest_heights, log_density = (
            np.concatenate(arrays)[order] for arrays in zip(*parts, strict=True)
        )
        _, probability, height, low, high = attachments.T.copy()
        node = reference.depth_first[attachments[:, 0].astype(np.intp)]
        return PlacementArrays(node, probability, height, low, high, nearest, nearest_heights, log_density)

    def _merge_heights(self, posterior: PointPosterior) -> Iterator[FloatArray]:
        """Yield, for each row, the expected heights of its merges with all leaves."""
        groups = self.groups
        scratch = np.zeros((3, 2 * len(self.X) - 1))
        for first, last in pairwise(posterior.first_pairs):
            merge_heights = np.zeros(len(self.X))
            bounds = first + np.searchsorted(posterior.groups[first:last], groups.group_bounds)
            for traversal, points in zip(self._traversals, (slice(*ends) for ends in pairwise(bounds)), strict=True):
                add_merge_heights(
                    posterior.groups[points],
                    posterior.shares[points],
                    groups.starts,
                    groups.stops,
                    self._ranks,
                    groups.points.heights,
                    *traversal,
                    scratch,
                    merge_heights,
                )
            yield merge_heights

    def cluster_shares(self, X: FloatArray, labels: IntArray, outside: bool = False) -> FloatArray:
        """Return the probabilities of clusters for rows.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_columns)
        labels : ndarray of int, shape (n_leaves,)
            Cluster of each training row.
        outside : bool, default False
            By default, a row that attaches above several clusters belongs to each of the leaves below with equal probability. If
            true, it belongs to none, unless nearly all of these leaves are in one cluster, and nor does a row that attaches above
            the root.

        Returns
        -------
        ndarray of shape (n_rows, n_clusters) or (n_rows, n_clusters + 1)
            The last column, if `outside`, is the probability of attaching outside of all clusters.
        """
        groups = self.groups
        labels = np.ascontiguousarray(labels, dtype=np.intp)
        n_columns = int(labels.max()) + 1 + outside
        clusters = np.empty((len(self.trees), 2 * len(labels) - 1), dtype=np.intp)
        for traversal, node_clusters in zip(self._traversals, clusters, strict=True):
            find_clusters(labels, traversal.size, traversal.first_leaf, traversal.leaf_order, node_clusters)
            if outside:
                _fill_mixed(traversal, labels, n_columns - 1, node_clusters)
        mixed = [np.flatnonzero(node_clusters < 0) for node_clusters in clusters]
        self._ranks  # noqa: B018  computed once, before threads need it

        def work(posterior: PointPosterior) -> FloatArray:
            cluster_shares = np.zeros((len(posterior.rows), n_columns))
            for k, traversal in enumerate(self._traversals):
                add_to_clusters(
                    posterior.first_pairs,
                    posterior.groups,
                    posterior.shares,
                    groups.group_bounds[k],
                    groups.group_bounds[k + 1],
                    groups.starts,
                    groups.stops,
                    self._ranks,
                    traversal.size,
                    clusters[k],
                    mixed[k],
                    np.zeros(len(traversal.size)),
                    cluster_shares,
                )
            return cluster_shares

        order, results = self._map_blocks(X, work)
        return np.asarray(np.concatenate(results)[order])

    def _map_branches(self, reference: Tree) -> IntArray:
        """Return the reference tree's branch, as a depth-first position, for each attachment point; -1 if there is none."""
        if len(self.trees) == 1:
            return self._ranks
        nodes, bounds = self.groups.points.nodes, self.groups.bounds
        branches = np.empty(len(nodes), dtype=np.intp)
        n, rank = reference.n_leaves, _rank(reference)
        known = {mask: rank[n + k] for k, mask in enumerate(clade_masks(reference))}
        for k, tree in enumerate(self.trees):
            points = slice(bounds[k], bounds[k + 1])
            ranks = np.array([*rank[:n], *(known.get(mask, -1) for mask in clade_masks(tree))])
            branches[points] = ranks[nodes[points]]
        return branches


def _fill_mixed(traversal: Traversal, labels: IntArray, outside: int, clusters: IntArray) -> None:
    """Replace -1, for nodes with leaves of several clusters, by the cluster of nearly all of them, or else by `outside`.

    The root is always outside, because the branch above it is above all rows.
    """
    ordered = labels[traversal.leaf_order]
    first, count = traversal.first_leaf, (traversal.size + 1) // 2
    for cluster in range(outside):
        members = np.append(0, np.cumsum(ordered == cluster))
        inside = members[first + count] - members[first] >= MAIN_SHARE * count
        clusters[inside & (clusters < 0)] = cluster
    clusters[clusters < 0] = outside
    clusters[0] = outside


def _rank(tree: Tree) -> IntArray:
    """Return the depth-first position of each node."""
    rank = np.empty(tree.n_nodes, dtype=np.intp)
    rank[tree.depth_first] = np.arange(tree.n_nodes)
    return rank


def _mix(parts: Sequence[Predictions], weights: FloatArray) -> Predictions:
    """Return the mixture of several predictions of the same rows."""
    if len(parts) == 1:
        return parts[0]
    mean = sum(w * part.mean for part, w in zip(parts, weights, strict=True))
    variance = sum(w * (part.sd**2 + (part.mean - mean) ** 2) for part, w in zip(parts, weights, strict=True))
    probability = sum(w * part.probability for part, w in zip(parts, weights, strict=True))
    return parts[0]._replace(mean=np.asarray(mean), sd=np.sqrt(variance), probability=np.asarray(probability))


def map_rows(predictor: Predictor, method: str, X: FloatArray, *arguments: Any, client: Any = None) -> Any:
    """Call a method of a predictor for rows, on the workers of a client if there are many rows.

    The result does not depend on the client. Partially observed rows use fewer draws, see `Predictor.subsample`.

    Parameters
    ----------
    predictor : Predictor
    method : str
        Name of the method.
    X : ndarray of shape (n_rows, n_columns)
    arguments : object
        Further arguments of the method.
    client : distributed.Client or str, optional

    Returns
    -------
    ndarray, Predictions or PlacementArrays
    """
    partial = predictor.is_partially_observed(X)
    if partial.any() and predictor.subsample is not predictor:
        order = np.argsort(np.concatenate([np.flatnonzero(partial), np.flatnonzero(~partial)]))
        parts = [(predictor.subsample, X[partial]), (predictor, X[~partial])]
        results = [map_rows(part, method, rows, *arguments, client=client) for part, rows in parts if len(rows)]
        return _reorder(_concatenate(results), order)
    if client is None or len(X) <= ROWS_PER_TASK:
        return getattr(predictor, method)(X, *arguments)
    single = copy.copy(predictor)
    single.n_threads = 1
    tasks = ((X[first : first + ROWS_PER_TASK],) for first in range(0, len(X), ROWS_PER_TASK))
    with open_client(client) as opened, add_resume_hint(has_checkpoint=False):
        executor = DaskExecutor(opened, predictor.n_threads)
        return _concatenate(list(executor.run_on((single, method, arguments), call_method, tasks)))


def call_method(call: tuple[Predictor, str, tuple[Any, ...]], X: FloatArray) -> Any:
    """Call a method of a predictor for some rows, on a worker."""
    predictor, method, arguments = call
    return getattr(predictor, method)(X, *arguments)


def _reorder(result: Any, order: IntArray) -> Any:
    """Return results for rows in another order."""
    if isinstance(result, Predictions):
        return result.take(order)
    return type(result)(*(part[order] for part in result)) if isinstance(result, tuple) else result[order]


def _concatenate(results: list[Any]) -> Any:
    """Concatenate results for successive rows."""
    if isinstance(results[0], Predictions):
        return Predictions.stack(results)
    if isinstance(results[0], tuple):
        return type(results[0])(*map(np.concatenate, zip(*results, strict=True)))
    return np.concatenate(results)
