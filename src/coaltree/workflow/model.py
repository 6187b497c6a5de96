"""The fitted model: a tree or a sample of trees over the rows of a table, its flat clusters and its predictions.

Estimators, plots, reports, model files and commands all use it. Predictions are averaged over trees that Markov chains draw for
the first prediction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from .._cut import Cut, change_cut, check_cut, describe_cut, explicit_rule
from .._progress import Progress, print_progress
from .._validation import check_memory
from ..errors import InputError
from ..inference.flat_clusters import (
    are_exceptions,
    find_copies,
    flat_clusters,
    min_cluster_rows,
    number_copies,
    unite_copies,
)
from ..inference.greedy import GreedyResult, greedy
from ..inference.partition import Evidence, best_partition, cluster_points, find_apart, node_evidence, partition_into
from ..inference.partition_chances import membership_chances, number_distribution
from ..inference.posterior_draws import Draw, max_rows, posterior_draws
from ..inference.preparation import are_extreme
from ..inference.results import MCMCResult
from ..predict.calibration import MIN_HIDDEN, fit_concentrations, hide_cells, levels_by_column, spread_ties
from ..predict.hidden_cells import UnusualCells, unusual_cells
from ..predict.known_rows import KnownRows
from ..predict.outliers import OutlierScorer
from ..predict.predictor import Predictor, map_rows
from ..predict.results import Placements
from ..predict.tails import Tails
from ..process.base import Process
from ..process.characters import model_name
from ..process.multinomial import Multinomial
from ..process.normal_scores import NormalScores
from ..process.predictions import Predictions
from ..table.cells import Category
from ..table.columns import RealColumn, Table
from ..table.encoding import EncodedTable, Encoding, encode, encoded_columns, read_new_rows
from ..table.labels import count, listing
from ..tree.cut import cut_by_agreement, cut_nodes, label_leaves, resolution_to_height
from ..tree.edit import ancestor, without_leaves
from ..tree.sample import TreeSample, co_clustering_matrix, find_row
from ..tree.tree import Tree
from .processes import (
    RATE,
    Templates,
    TreeTable,
    find_tails,
    find_tree_table,
    has_scores,
    mean_process,
    means_of_scored,
    parameters_by_name,
    partition_columns,
    prediction_process,
    structure_process,
    to_encoded_table,
    to_matrix,
)
from .profile import Profile
from .settings import ClusterSettings, ImputationSettings, Settings, refuse_resolution

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MAX_PREDICTION_TREES = 200  # of a sample of trees that have their own parameters
MAX_CALIBRATION_ROWS = 1_000  # from which cells are hidden to calibrate intervals
MAX_CALIBRATION_CELLS = 20_000  # of these that are predicted
LEAST_SHOWN_CHANCE = 0.005  # of another number of clusters
_CALIBRATION_STREAM = 1  # of random numbers, apart from that of the draws


class NewRows(NamedTuple):
    """New rows as a table, and as the encoded matrix."""

    table: Table
    matrix: FloatArray


@dataclass(kw_only=True, eq=False)
class FittedModel:
    """A tree, or a sample of trees, over the rows of a table.

    Attributes
    ----------
    settings : Settings
        The parameters of the fit.
    encoding : Encoding
        How the columns were encoded.
    process : Process
        The process over the encoded columns, with all its parameters.
    matrix : ndarray of shape (n_rows, n_columns)
        The encoded table.
    result : GreedyResult
        The tree, or the summary of the sample, with its log joint, log likelihood and log ratios.
    sample : TreeSample or None
        The sample of trees: an SMCResult or an MCMCResult.
    log_evidence : float or None
        Log evidence, of a sample by sequential Monte Carlo.
    search : str or None
        How greedy inference searched for partners.
    neighbor_recall : float or None
        Share of the neighbour lists that contained the best partner.
    labels : ndarray of int or None
        Flat cluster of each row; None for imputation.
    remarks : list of str
        Remarks about the table and the fit.
    constants : list
        For each column with one value only, that value; None for the others.
    incomplete_columns : tuple of int
        The columns with missing cells.
    id_column : str or None
        The column of the table's file with the row names.
    feature_names : tuple of str or None
        Names of the columns, if the table had names.
    prediction_seed : int
        Seed of the draws that predictions are averaged over.
    """

    settings: Settings
    encoding: Encoding
    process: Process
    matrix: FloatArray
    result: GreedyResult
    sample: TreeSample | None = None
    log_evidence: float | None = None
    search: str | None = None
    neighbor_recall: float | None = None
    labels: IntArray | None = None
    remarks: list[str] = field(default_factory=list)
    constants: list[Category | None] = field(default_factory=list)
    incomplete_columns: tuple[int, ...] = ()
    id_column: str | None = None
    feature_names: tuple[str, ...] | None = None
    prediction_seed: int = 0
    known_predictor: Predictor | None = None  # None until the trees have been drawn
    known_concentrations: FloatArray | None = None  # None until intervals have been calibrated

    @property
    def tree(self) -> Tree:
        """The tree, or the summary of the sample of trees."""
        return self.result.tree

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """The parameters of every column in the search for the tree, by name and in the column's units."""
        encoded = to_encoded_table(self.encoding, self.matrix)
        return self._with_signals(parameters_by_name(self.process, encoded, self.encoding))

    def _with_signals(self, parameters: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Add the signal of every column to its parameters."""
        # strict=False: a table without columns in use has one signal without a name
        for facts, signal in zip(parameters.values(), self.tree_table.signals.signal.tolist(), strict=False):
            facts["signal"] = signal
        return parameters

    @property
    def partitions(self) -> list[dict[str, Any]]:
        """The models of the partitions of characters: name, number of columns, model, rate, frequencies, shape, ascertainment."""
        columns = partition_columns(to_encoded_table(self.encoding, self.matrix))
        parts = self.process.subprocesses(self.matrix.shape[1])
        return [
            {
                "partition": name,
                "n_columns": len(positions),
                "model": model_name(part),
                "rate": float(cast("Multinomial", part).rate),
                "frequencies": "equal" if part.hold_equilibrium else "fitted",
                "gamma_shape": part.gamma_shape,
                "ascertainment": part.ascertainment or "all",
            }
            for (name, positions), (part, _) in zip(columns.items(), parts[len(parts) - len(columns) :], strict=True)
        ]

    @cached_property
    def tree_table(self) -> TreeTable:
        """The encoded table that the tree was found in, and the signals of its columns."""
        return find_tree_table(self.matrix, self.encoding, self.settings)

    @property
    def tree_matrix(self) -> FloatArray:
        """The encoded table of the tree and its log joint, see `find_tree_table`."""
        return self.tree_table.matrix

    @cached_property
    def tails(self) -> Tails | None:
        """The maps that predictions move extreme cells with, if there are any."""
        return find_tails(self.matrix, self.encoding, self.settings)

    def move_tails(self, matrix: FloatArray) -> FloatArray:
        """Return encoded rows with extreme cells moved, as predictions need them."""
        return matrix if self.tails is None else self.tails.apply(matrix)

    # -- flat clusters ------------------------------------------------------------------------------

    @property
    def n_clusters(self) -> int:
        """Number of flat clusters."""
        assert self.labels is not None
        return int(self.labels.max()) + 1

    @property
    def cluster_settings(self) -> ClusterSettings:
        """The settings of a model with flat clusters."""
        assert isinstance(self.settings, ClusterSettings)
        return self.settings

    @property
    def clusters_chosen_by(self) -> str:
        """The rule that decided on the clusters.

        One of `CUT_RULES` if the user gave it; otherwise "evidence", "likelihood ratio" for a sample, or what leaves no choice:
        "one row" or "minimum size".
        """
        rule = explicit_rule(self.cluster_settings)
        if rule is not None:
            return rule
        if self.tree.n_leaves == 1:
            return "one row"
        min_size = self.cluster_settings.min_cluster_size
        is_large = 2 * min_cluster_rows(min_size, self.tree.n_leaves) > self.tree.n_leaves
        if is_large and min_size != Cut().min_cluster_size and self.n_clusters == 1:
            return "minimum size"
        return "evidence" if self.sample is None else "likelihood ratio"

    @property
    def cut_words(self) -> str:
        """Where the tree was cut, as the end of the sentence "5 clusters, ..."."""
        chosen_by = self.clusters_chosen_by
        return describe_cut(self.cluster_settings, chosen_by, self._number_words() if chosen_by == "evidence" else "")

    def _number_words(self) -> str:
        """Return how probable the number of clusters is, and the next best one if it is not improbable."""
        chances = self.number_chances
        others = [k for k in np.argsort(-chances, kind="stable").tolist() if k != self.n_clusters]
        own = chances[self.n_clusters] if self.n_clusters < len(chances) else 0.0
        words = f"probability {own:.2f}"
        if others and chances[others[0]] >= LEAST_SHOWN_CHANCE:
            words += f"; {count(others[0], 'cluster')}: {chances[others[0]]:.2f}"
        return f" ({words})"

    def cut(self, cut: Cut) -> IntArray:
        """Return flat clusters: a cut of one tree, or what most trees of a sample agree on."""
        check_cut(cut, self.tree.n_leaves)
        if self.sample is not None:
            labels = self._cut_sample(self.sample, cut)
        else:
            clusters = self._clusters(cut)
            is_apart = None if cut.assign_outliers else find_apart(self.tree, self._evidence, clusters)
            labels = flat_clusters(self.tree, self.tree_matrix, self.process, clusters, is_apart)
        return unite_copies(labels, self._copies)

    def _clusters(self, cut: Cut) -> IntArray:
        """Return the nodes of the tree that are the clusters, none of them inside of a subtree of equal rows."""
        min_size = min_cluster_rows(cut.min_cluster_size, self.tree.n_leaves, cut.n_clusters)
        tree = self.tree
        whole, inside = find_copies(tree, self._copies), np.zeros(tree.n_nodes, dtype=bool)
        inside[tree.children[whole[tree.n_leaves :]]] = True
        tops = np.flatnonzero(whole & ~inside)
        if explicit_rule(cut) in ("resolution", "height_threshold"):
            nodes = np.array(cut_nodes(tree, cut, min_size, RATE))
            above = tops[label_leaves(tree, tops)[tree.leaf_order[tree.first_positions[nodes]]]]
            return np.unique(np.where(inside[nodes], above, nodes))
        scores = np.where(inside, -math.inf, self._evidence.scores)
        if cut.n_clusters is None:
            return best_partition(tree, scores, min_size)
        return partition_into(min(int(cut.n_clusters), len(tops)), tree, scores, min_size)

    @cached_property
    def _evidence(self) -> Evidence:
        """The evidence of the rows below each node of the tree as one cluster."""
        actual = self.matrix if self.tree_table.levels.any() else self.tree_matrix
        points = cluster_points(self.tree, self.tree_matrix, actual, self.process, 1 / (2 * RATE))
        return node_evidence(self.tree, points)

    @cached_property
    def _weighted_scores(self) -> list[tuple[Tree, FloatArray, float]]:
        """Trees with the scores of their nodes as clusters and weights: one, or those of the sample, thinned."""
        if self.sample is None:
            return [(self.tree, self._evidence.scores, 1.0)]
        indices = np.unique(np.linspace(0, len(self.sample) - 1, MAX_PREDICTION_TREES).round().astype(int)).tolist()
        trees = [self.sample.trees[k] for k in indices]
        weights = self.sample.weights[indices] / self.sample.weights[indices].sum()
        scores = (node_evidence(tree, self._evidence.points).scores for tree in trees)
        return list(zip(trees, scores, weights.tolist(), strict=True))

    @cached_property
    def number_chances(self) -> FloatArray:
        """The probability of each number of clusters, from 0 on, over the partitions that the tree or trees allow."""
        min_size = min_cluster_rows(self.cluster_settings.min_cluster_size, self.tree.n_leaves)
        chances = np.zeros(2)
        for tree, scores, weight in self._weighted_scores:
            own = number_distribution(tree, scores, min_size)
            chances = np.pad(chances, (0, max(len(own) - len(chances), 0)))
            chances[: len(own)] += weight * own
        chances[1] += chances[0]  # without any group of that size all rows are one cluster
        chances[0] = 0.0
        return chances

    @cached_property
    def membership_chances(self) -> FloatArray:
        """The mean probability, over the other rows of each cluster, that a row is in one cluster with them."""
        assert self.labels is not None
        return sum(
            (weight * membership_chances(tree, scores, self.labels) for tree, scores, weight in self._weighted_scores),
            start=np.zeros((len(self.labels), self.n_clusters)),
        )

    def _cut_sample(self, sample: TreeSample, cut: Cut) -> IntArray:
        """Return what most trees of a sample agree on."""
        min_size = min_cluster_rows(cut.min_cluster_size, self.tree.n_leaves, cut.n_clusters)
        rule = cut
        if cut.resolution is not None:
            if self.uses_sample:
                refuse_resolution(cut)
            rule = change_cut(cut, height_threshold=resolution_to_height(cut.resolution, RATE))
        together = co_clustering_matrix(sample, rule)
        return cut_by_agreement(together, cut.n_clusters, min_size=min_size, assign_outliers=cut.assign_outliers)

    def describe_small_groups(self, cut: Cut, labels: IntArray) -> list[str]:
        """Return a remark if clusters are smaller than `min_cluster_size`, or if separate groups are too small for clusters."""
        n_clusters, n_rows = cut.n_clusters, self.tree.n_leaves
        sizes = np.bincount(labels[labels >= 0])
        n_distinct = len(np.unique(self._copies))
        if n_clusters is not None and n_clusters > n_distinct:
            return [
                f"n_clusters={n_clusters} is more than the {count(n_distinct, 'distinct row')} of the table, and equal rows are "
                f"never separated: there {'is' if len(sizes) == 1 else 'are'} {count(len(sizes), 'cluster')}."
            ]
        if cut.min_cluster_size != Cut().min_cluster_size:
            min_rows = min_cluster_rows(cut.min_cluster_size, n_rows)
            too_small = int(np.sum(sizes < min_rows))
            if len(sizes) == 1 and min_rows > n_rows:
                return [
                    f"min_cluster_size={cut.min_cluster_size:g} is more than the {count(n_rows, 'row')} of the table, so there "
                    "is one cluster. Decrease it."
                ]
            if too_small:
                return [
                    f"{too_small} of {count(len(sizes), 'cluster')} {'has' if too_small == 1 else 'have'} fewer than {min_rows} "
                    f"rows (min_cluster_size={cut.min_cluster_size:g}): there are no "
                    f"{'' if n_clusters is None else f'{n_clusters} '}clusters of that size. Decrease it."
                ]
        if explicit_rule(cut) is None and cut.assign_outliers:
            outliers = self._find_outliers(cut)
            if not are_exceptions(outliers, n_rows):
                return []
            names = listing([self.tree.leaf_names[row] for row in outliers.tolist()])
            return [
                f"{count(len(outliers), 'row is', 'rows are')} far from all others: {names}. The clusters include "
                f"{'it' if len(outliers) == 1 else 'them'}; with assign_outliers=False the label is -1."
            ]
        return []

    def _find_outliers(self, cut: Cut) -> IntArray:
        """Return rows that are far from all others; in a sample, most trees must leave them outside of clusters, too."""
        outliers = np.flatnonzero(find_apart(self.tree, self._evidence, self._clusters(cut)))
        if self.sample is None or not len(outliers):
            return outliers
        outside = np.flatnonzero(self._cut_sample(self.sample, replace(cut, assign_outliers=False)) < 0)
        return np.intersect1d(outside, outliers)

    @cached_property
    def profile(self) -> Profile:
        """Every column in every cluster."""
        assert self.labels is not None
        return Profile(encoded_columns(self.encoding), self.matrix, self.tree_table.shortened, self.labels)

    def explain(self, rows: Iterable[object], n_columns: int | None = None) -> dict[str, list[Any]]:
        """Return why rows of the fit, given by their numbers or names, are in their clusters; see `Profile.explain`."""
        assert self.labels is not None
        names = self.tree.leaf_names
        found = np.array([find_row(row, names) for row in rows], dtype=np.intp)
        chosen = [names[i] for i in found.tolist()]
        return self.profile.explain(chosen, self.matrix[found], self.labels[found], found, n_columns)

    def explain_new(
        self, rows: NewRows, n_columns: int | None = None, client: Any = None, names: Sequence[str] | None = None
    ) -> dict[str, list[Any]]:
        """Return why new rows are in the clusters that `predict_clusters` gives them; see `Profile.explain`."""
        names = names or rows.table.row_names or tuple(map(str, range(len(rows.matrix))))
        return self.profile.explain(names, rows.matrix, self.predict_clusters(rows.matrix, client), None, n_columns)

    # -- trees for predictions ----------------------------------------------------------------------

    @property
    def predictor(self) -> Predictor:
        """The object that makes predictions; its first use draws the trees."""
        if self.known_predictor is None:
            self.draw_trees(print_progress(self.settings._estimator) if self.settings.verbose else None)
        assert self.known_predictor is not None
        return self.known_predictor

    def draw_trees(self, progress: Progress | None = None) -> None:
        """Draw the trees that predictions are averaged over, unless they have been drawn."""
        with _PREDICTOR_LOCK:  # simultaneous calls from several threads draw one sample
            if self.known_predictor is None:
                self.known_predictor = self._draw_predictor(progress)

    @property
    def uses_sample(self) -> bool:
        """Whether predictions are averaged over the sample, because its trees have their own parameters."""
        return isinstance(self.sample, MCMCResult) and bool(self.sample.parameters)

    @property
    def prediction_rows(self) -> IntArray:
        """The rows over which trees are drawn for predictions.

        A random subset of the leaves of a coalescent is again a coalescent, with the same clock.
        """
        n_rows, most = len(self.matrix), max_rows(self.matrix.shape[1])
        if n_rows <= most or self.uses_sample:
            return np.arange(n_rows)
        return np.sort(np.random.default_rng(self.prediction_seed).permutation(n_rows)[:most])

    def _draw_predictor(self, progress: Progress | None) -> Predictor:
        """Draw trees with parameters for predictions, because the process for clusters overstates the noise."""
        matrix, tree, settings = self.move_tails(self.matrix), self.tree, self.settings
        if len(matrix) == 1 or not self.encoding.informative.any():
            return Predictor.from_trees([tree], np.ones(1), matrix, self.process, settings.n_jobs)
        if self.uses_sample:
            return self._thin_sample()
        rows = self.prediction_rows
        if len(rows) < len(matrix):
            tree = without_leaves(tree, np.setdiff1d(np.arange(len(matrix)), rows))
        return self._draw_from(tree, matrix[rows], self.prediction_seed, progress)

    @property
    def _noise(self) -> float | None:
        return None if self.settings.noise is None else float(self.settings.noise)

    def templates(self, encoded: EncodedTable) -> Templates:
        """Return the processes of the columns, with what the fit has set in them."""
        settings = self.settings
        return Templates(settings.real_process, settings.categorical_process).resolve(self.process, encoded)

    def _draw_from(self, tree: Tree, matrix: FloatArray, seed: int, progress: Progress | None) -> Predictor:
        """Draw trees over all rows or some, whose cells are in `matrix`, by chains that start at a tree."""
        settings, encoded = self.settings, to_encoded_table(self.encoding, matrix)
        noise, templates = self._noise, self.templates(encoded)
        if len(matrix) < len(self.matrix):
            templates = templates.without_ascertainment()
        process = prediction_process(matrix, encoded, templates, settings.covariance, noise).resolve(matrix)
        scored = None
        if has_scores(templates, settings.covariance, noise):
            rng = np.random.default_rng(seed)
            scores = NormalScores.fit(process.jitter_rounded(matrix, rng), encoded.real.shape[1])
            if scores is not None:
                score_matrix = scores.apply(matrix)
                scored_process = prediction_process(
                    score_matrix, to_encoded_table(self.encoding, score_matrix), templates, settings.covariance, noise
                )
                scored = scores, scored_process.resolve(score_matrix)
        draws = posterior_draws(
            matrix,
            process,
            tree,
            scored=scored,
            hold_noise=noise is not None,
            n_draws=settings.n_draws if isinstance(settings, ImputationSettings) else None,
            n_jobs=settings.n_jobs,
            random_state=seed,
            progress=None if progress is None else lambda share: progress(share, "drawing trees for predictions"),
        )
        return Predictor(draws, np.ones(len(draws)), matrix, settings.n_jobs)

    @property
    def interval_concentrations(self) -> FloatArray:
        """By how much the levels of each real column are moved for intervals to cover what they promise, see `calibration`.

        Found at the first use, by hiding more cells. Ones if the table is too small, or if predictions use a sample of trees.
        """
        with _CALIBRATION_LOCK:
            if self.known_concentrations is None:
                progress = print_progress(self.settings._estimator) if self.settings.verbose else None
                self.known_concentrations = self._calibrate_intervals(progress)
            return self.known_concentrations

    def _calibrate_intervals(self, progress: Progress | None) -> FloatArray:
        n_real = to_encoded_table(self.encoding, self.matrix).real.shape[1]
        rng = np.random.default_rng((self.prediction_seed, _CALIBRATION_STREAM))
        rows = np.sort(rng.permutation(self.prediction_rows)[:MAX_CALIBRATION_ROWS])
        matrix = self.move_tails(self.matrix[rows])
        hidden = hide_cells(matrix, n_real, rng)
        if self.uses_sample or hidden.sum() < MIN_HIDDEN:
            return np.ones(n_real)
        shown = np.where(hidden, np.nan, matrix)
        # The tree of the fit has seen the hidden cells: chains start at one that has not.
        encoded = to_encoded_table(self.encoding, shown)
        process = structure_process(shown, encoded, self.templates(encoded), self.settings.covariance, self._noise)
        tree = greedy(shown, process.without_ascertainment(), n_jobs=self.settings.n_jobs).tree
        predictor = self._draw_from(tree, shown, int(rng.integers(2**63)), progress)
        asked = rng.permutation(np.flatnonzero(hidden.any(axis=1)))
        asked = np.sort(asked[: 1 + int(np.searchsorted(np.cumsum(hidden[asked].sum(axis=1)), MAX_CALIBRATION_CELLS))])
        predictions = predictor.training_cells(asked, quantiles=True)
        assert predictions.quantiles is not None
        jittered = self.process.jitter_rounded(matrix, rng)
        values = spread_ties(matrix, jittered, n_real)[asked]
        levels = levels_by_column(values, hidden[asked], predictions.quantiles, predictions.real)
        return fit_concentrations(levels)

    def _thin_sample(self) -> Predictor:
        """Take evenly spaced trees with their parameters from the sample, because successive trees are similar."""
        sample = self.sample
        assert isinstance(sample, MCMCResult)
        indices = np.unique(np.linspace(0, len(sample) - 1, MAX_PREDICTION_TREES).round().astype(int)).tolist()
        processes = sample.processes()
        draws = [Draw(sample.trees[k], processes[k], self.matrix) for k in indices]
        return Predictor(draws, np.ones(len(draws)), self.matrix, self.settings.n_jobs)

    @property
    def prediction_parameters(self) -> dict[str, dict[str, Any]]:
        """The parameters of predictions by column, in its units: means over the draws, and the column's signal.

        Heavy tails mislead draws over the columns themselves about means, but not draws over normal scores.
        """
        draws, encoded = self.predictor.ensemble.draws, to_encoded_table(self.encoding, self.matrix)
        parameters = parameters_by_name(
            mean_process([draw.process for draw in draws if draw.scores is None]), encoded, self.encoding
        )
        scored = [draw for draw in draws if draw.scores is not None]
        if scored:
            assert scored[0].scores is not None
            process = mean_process([draw.process for draw in scored])
            for name, mean in means_of_scored(process, scored[0].scores, encoded, self.encoding).items():
                parameters[name]["mean"] = mean
        return dict(sorted(self._with_signals(parameters).items(), key=lambda item: -item[1]["signal"]))

    # -- predictions for rows -----------------------------------------------------------------------

    def read_rows(self, X: Any, unseen_categories: str | None = None) -> NewRows:
        """Read new rows, matching their columns with those of the fit, and encode them."""
        unseen: Any = unseen_categories or self.settings.unseen_categories
        table = read_new_rows(X, self.encoding, unseen=unseen, estimator=self.settings._estimator)
        return NewRows(table, to_matrix(encode(table, self.encoding)))

    def log_density(self, rows: NewRows, client: Any = None) -> FloatArray:
        """Return the log predictive density of rows, in the units of the table."""
        return self.encoded_log_density(rows.matrix, client) + self.log_jacobian(rows.table)

    def describe_known_rows(self, matrix: FloatArray) -> list[str]:
        """Return a remark if most of some encoded rows are rows of the fit, whose densities are those of copies."""
        known = self.predictor.known_rows.find(self.move_tails(matrix)) >= 0
        n_real = to_encoded_table(self.encoding, matrix).real.shape[1]
        # In tables of categories, new rows are often equal to some of the fit.
        if 2 * known.sum() <= min(len(known), len(self.predictor.X)) or not (n_real or len(known) == len(self.matrix)):
            return []
        return [
            "Most of these rows are rows of the fit, which find themselves in the trees, so unusual ones among them look likely; "
            "CoalescentOutlierDetector (coaltree outliers) compares each row with the others."
        ]

    def encoded_log_density(self, matrix: FloatArray, client: Any = None) -> FloatArray:
        """Return the log predictive density of encoded rows."""
        log_density: FloatArray = self._predict("log_density", matrix, client=client)
        return log_density if self.tails is None else log_density + self.tails.log_slopes(matrix)

    def log_jacobian(self, table: Table) -> FloatArray:
        """Return the log derivative of encoding the observed cells of each row."""
        total = np.zeros(table.n_rows)
        scales = iter(self.encoding.column_scales)
        for column, informative in zip(table.columns, self.encoding.informative, strict=True):
            if isinstance(column, RealColumn):
                scale = next(scales)
                if informative:
                    total += np.where(np.isnan(column.values), 0.0, scale.log_slope(column.values))
        return total

    def cluster_shares(self, matrix: FloatArray, client: Any = None) -> FloatArray:
        """Return the probability of each cluster for encoded rows, shape ``(n_rows, n_clusters)``."""
        assert self.labels is not None
        n_clusters, outliers = self.n_clusters, self.labels < 0  # outliers are in no cluster
        labels = np.where(outliers, n_clusters, self.labels)[self.prediction_rows]
        known_shares: FloatArray = self._predict("cluster_shares", matrix, labels, client=client)[:, :n_clusters]
        shares = np.zeros((len(known_shares), n_clusters))
        shares[:, : known_shares.shape[1]] = (
            known_shares  # the rows that trees were drawn over may lack the last clusters
        )
        total: FloatArray = shares.sum(axis=1, keepdims=True)  # less than 1 with outliers; otherwise 1 up to rounding
        sizes = np.bincount(self.labels[~outliers], minlength=n_clusters) / max(int(np.count_nonzero(~outliers)), 1)
        # A row that resembles only outliers may be in any cluster.
        known: FloatArray = shares / np.maximum(total, np.finfo(float).tiny)
        return np.where(total > 0, known, sizes)

    @cached_property
    def _known_rows(self) -> KnownRows:
        return KnownRows(self.matrix)

    @cached_property
    def _copies(self) -> IntArray:
        return number_copies(self.matrix)

    def recognise_clusters(self, matrix: FloatArray) -> tuple[NDArray[np.bool_], IntArray]:
        """Return which encoded rows equal a row of the fit in all cells, observed and missing, and the labels of these."""
        assert self.labels is not None
        if np.array_equal(matrix, self.matrix, equal_nan=True):
            return np.ones(len(matrix), dtype=np.bool_), self.labels.copy()
        rows = self._known_rows.find(matrix)
        return rows >= 0, np.where(rows >= 0, self.labels[rows], -1)

    def predict_clusters(self, matrix: FloatArray, client: Any = None) -> IntArray:
        """Return the clusters of encoded rows: of a row of the fit its label, of any other row the most probable one."""
        known, labels = self.recognise_clusters(matrix)
        if not known.all():
            labels[~known] = self._predict_new_clusters(matrix[~known], client)[0]
        return labels

    def _predict_new_clusters(self, matrix: FloatArray, client: Any) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the most probable cluster of encoded rows, the probabilities of clusters, and that of being an outlier.

        With ``assign_outliers=False``, outliers have the label -1. They attach outside of all clusters with a probability above
        1/2: above several clusters, above the root, or next to rows that are labelled -1. Rows with a cell that would be extreme
        next to those of the clusters are outliers with probability 1.
        """
        shares = self.cluster_shares(matrix, client)
        best = np.asarray(shares.argmax(axis=1))
        if self.cluster_settings.assign_outliers:
            return best, shares, np.zeros(len(best))
        assert self.labels is not None
        labels = np.where(self.labels < 0, self.n_clusters, self.labels)[self.prediction_rows]
        inside = self._predict("cluster_shares", matrix, labels, True, client=client)
        inside = inside[:, : min(self.n_clusters, inside.shape[1] - 1)].sum(axis=1)
        n_real = to_encoded_table(self.encoding, matrix).real.shape[1]
        extreme = are_extreme(matrix[:, :n_real], self.matrix[self.labels >= 0, :n_real])
        outside = np.where(extreme, 1.0, 1 - inside)
        return np.where(outside > 0.5, -1, best), shares, outside

    def place(self, rows: NewRows, n_nearest: int, level: float, client: Any = None, index: Any = None) -> Placements:
        """Return where rows attach to the tree; `index` is the index of their frame."""
        tree, leaves = self.tree, self.prediction_rows
        part = (
            tree
            if len(leaves) == tree.n_leaves
            else without_leaves(tree, np.setdiff1d(np.arange(tree.n_leaves), leaves))
        )
        placed = self._predict("place", rows.matrix, part, n_nearest, level, client=client)
        if part is not tree:
            nodes = [ancestor(tree, leaves[part.leaves_below(k)[0]], part.heights[k]) for k in placed.node.tolist()]
            placed = placed._replace(node=np.array(nodes, dtype=np.intp), nearest=leaves[placed.nearest])
        log_slopes = 0.0 if self.tails is None else self.tails.log_slopes(rows.matrix)
        placed = placed._replace(log_density=placed.log_density + log_slopes + self.log_jacobian(rows.table))
        clusters, shares, outside = self._predict_new_clusters(rows.matrix, client)
        known, labels = self.recognise_clusters(rows.matrix)
        clusters = np.where(known, labels, clusters)
        probability = np.where(clusters < 0, outside, np.take_along_axis(shares, clusters[:, None], axis=1)[:, 0])
        return Placements.from_arrays(placed, clusters, probability, tree, rows.table.row_names, index)

    def expected_cells(self, matrix: FloatArray, client: Any = None, quantiles: bool = False) -> Predictions:
        """Return predictions for all cells of encoded rows. Rows of the fit are recognised by their cells.

        Quantiles of missing real cells are found only on request, because they take time.
        """
        predictor = self.predictor
        known = predictor.known_rows.find(self.move_tails(matrix))
        old, new = np.flatnonzero(known >= 0), np.flatnonzero(known < 0)
        parts = []
        if len(old):
            distinct, place = np.unique(known[old], return_inverse=True)
            parts.append(predictor.training_cells(distinct, quantiles).take(place))
        if len(new) or not len(old):
            parts.append(self._predict("cells", matrix[new], quantiles, client=client))
        predictions = Predictions.stack(parts).take(np.argsort(np.concatenate([old, new]), kind="stable"))
        return predictions if self.tails is None else self.tails.restore(predictions)

    # -- outliers -----------------------------------------------------------------------------------

    @cached_property
    def outlier_scorer(self) -> OutlierScorer:
        """Scores of rows, and of the rows of the fit without themselves."""
        return OutlierScorer(self.predictor)

    def outlier_scores(self, matrix: FloatArray) -> FloatArray:
        """Return how unusual encoded rows are: 0 for a typical row, lower for an unusual one."""
        return self.outlier_scorer.score(self.move_tails(matrix))

    def unusual_cells(self, matrix: FloatArray, n_cells: int) -> list[UnusualCells]:
        """Return the most unusual cells of encoded rows; rows of the fit are left out of the trees."""
        found = unusual_cells(self.predictor, self.move_tails(matrix), n_cells)
        tails = self.tails
        return (
            found
            if tails is None
            else [cells._replace(predictions=tails.restore(cells.predictions)) for cells in found]
        )

    def sample_cells(self, matrix: FloatArray, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Draw the missing and partly known cells of encoded rows with such cells, shape ``(n_draws, n_rows, n_columns)``.

        Each draw has one of the trees, on which rows of the fit are drawn jointly; other rows are drawn one by one.
        """
        matrix = self.move_tails(matrix)
        rows = np.flatnonzero(self.encoding.incomplete_cells(matrix).any(axis=1))
        n_bytes = 8.0 * n_draws * len(rows) * matrix.shape[1]
        check_memory(n_bytes, f"{n_draws:,} draws of {len(rows):,} rows", "take fewer draws")
        predictor = self.predictor
        known = rows if predictor.is_training_table(matrix) else predictor.known_rows.find(matrix)[rows]
        draws = np.empty((n_draws, len(rows), matrix.shape[1]))
        old, new = np.flatnonzero(known >= 0), np.flatnonzero(known < 0)
        if len(old):
            distinct, place = np.unique(known[old], return_inverse=True)
            draws[:, old] = predictor.draw_training_cells(distinct, n_draws, rng)[:, place]
        if len(new):
            draws[:, new] = predictor.subsample.draw(matrix[rows[new]], n_draws, rng)
        return draws if self.tails is None else self.tails.invert(draws)

    def _predict(self, method: str, matrix: FloatArray, *arguments: Any, client: Any) -> Any:
        """Call a method of the predictor; for many rows on the Dask client, if there is one."""
        return map_rows(self.predictor, method, self.move_tails(matrix), *arguments, client=client)


_PREDICTOR_LOCK, _CALIBRATION_LOCK = Lock(), Lock()


def check_fitted_model(model: Any) -> FittedModel:
    """Return the fitted model of an estimator.

    Parameters
    ----------
    model : CoalescentClustering, CoalescentImputer, CoalescentOutlierDetector or FittedModel

    Raises
    ------
    InputError
        If it is none of these, or not fitted; the message says what to pass.
    """
    fitted = getattr(model, "_model", model)
    if isinstance(fitted, FittedModel):
        return fitted
    if hasattr(model, "fit"):
        raise InputError(f"model is a {type(model).__name__} that has not been fitted; call its fit(table) first.")
    raise InputError(
        f"model is of type {type(model).__name__}; it must be a fitted CoalescentClustering, CoalescentImputer or "
        "CoalescentOutlierDetector."
    )
