"""The facts of a report as plain data, independent of the estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..table.scaling import moments, standardise
from ..tree.tree import Tree
from ..workflow.profile import Profile
from .text import (
    format_number,
    format_percent,
    format_time,
    restore_values,
    round_mean,
    round_significant,
    round_to_sd,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class PowerFacts(NamedTuple):
    """A real column after its power transform, as the model sees it."""

    values: FloatArray
    expected: FloatArray
    expected_sd: FloatArray
    sd: float  # standard deviation of the transformed column at its centre, in the column's units


@dataclass(frozen=True, eq=False)
class RealFacts:
    """A real column, in its own units.

    Parameters
    ----------
    name : str
    values : ndarray of shape (n_rows,)
        NaN is missing.
    expected, expected_sd : ndarray of shape (n_inspected,)
        Prediction for the cells of the inspected rows, see `HeldOutFacts`; sd is infinite where nothing is known.
    filled, filled_sd : ndarray of shape (n_holes,)
        Prediction for the rows with missing cells.
    time : bool
        Whether values are times, as days since 1970-01-01.
    power : PowerFacts, optional
        The column after its power transform, if any. Predictions are then medians, and standard deviations half the
        width of the interval of one standard deviation around them.
    """

    name: str
    values: FloatArray
    expected: FloatArray
    expected_sd: FloatArray
    filled: FloatArray
    filled_sd: FloatArray
    time: bool = False
    power: PowerFacts | None = None
    categories: tuple[str, ...] = ()  # none

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells are missing."""
        return np.isnan(self.values)

    @cached_property
    def mean(self) -> float:
        """Mean of the observed cells."""
        return moments(self.values)[0]

    @cached_property
    def sd(self) -> float:
        """Standard deviation of the observed cells; 1 if it is 0."""
        return moments(self.values)[1]

    @property
    def cells(self) -> FloatArray:
        """Standardised values."""
        return standardise(self.values, self.mean, self.sd)

    @property
    def reference_sd(self) -> float:
        """The standard deviation to compare fitted parameters with."""
        return self.sd if self.power is None else self.power.sd

    def deviations(self, rows: IntArray) -> FloatArray:
        """Return the distances of the inspected rows from their predictions in standard deviations; NaN for missing cells."""
        scale = self if self.power is None else self.power
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # by halves, because differences of the largest numbers overflow
            return np.asarray(np.abs(scale.values[rows] / 2 - scale.expected / 2) / (scale.expected_sd / 2))

    def format_value(self, value: float, sd: float | None = None) -> str:
        """Write a value of the column, with the digits that its standard deviation supports."""
        if self.time:
            return format_time(value, None if sd is None else bool(sd >= 1))
        return format_number((restore_values(np.array([value]))[0] or 0.0) if sd is None else round_to_sd(value, sd))

    def format_mean(self, mean: float) -> str:
        """Write the mean of some rows."""
        return self.format_value(mean, 0.1 * self.sd) if self.time else format_number(round_mean(mean, self.sd))

    def format_cell(self, row: int) -> str:
        """Write the observed cell of a row."""
        return self.format_value(float(self.values[row]))

    def format_difference(self, value: float, digits: int = 3) -> str:
        """Write a difference of two values of the column."""
        return format_number(round_significant(value, digits)) + (" days" if self.time else "")

    def format_expected(self, k: int) -> str:
        """Write the prediction for the k-th inspected row."""
        if not self.expected_sd[k] < np.inf:
            return "anything"
        sd = float(self.expected_sd[k])
        return f"{self.format_value(float(self.expected[k]), sd)} ± {self.format_difference(round_to_sd(sd, sd), 12)}"


@dataclass(frozen=True, eq=False)
class CategoricalFacts:
    """A categorical column.

    Parameters
    ----------
    name : str
    categories : tuple of str
    codes : ndarray of int, shape (n_rows,)
        -1 is missing.
    expected : ndarray of shape (n_inspected, n_categories)
        Predicted probabilities for the inspected rows.
    filled : ndarray of shape (n_holes, n_categories)
        Predicted probabilities for the rows with missing cells.
    """

    name: str
    categories: tuple[str, ...]
    codes: IntArray
    expected: FloatArray
    filled: FloatArray

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells are missing."""
        return self.codes < 0

    @property
    def cells(self) -> FloatArray:
        """Codes; NaN is missing."""
        return np.where(self.missing, np.nan, self.codes)

    def format_cell(self, row: int) -> str:
        """Write the observed cell of a row."""
        return self.categories[int(self.codes[row])]

    def format_expected(self, k: int) -> str:
        """Write the prediction for the k-th inspected row."""
        best = int(self.expected[k].argmax())
        return f"{self.categories[best]} ({format_percent(float(self.expected[k, best]))})"


ColumnFacts: TypeAlias = RealFacts | CategoricalFacts


@dataclass(frozen=True, eq=False)
class HeldOutFacts:
    """The rows that were removed from the tree to see how well the others predict them.

    Parameters
    ----------
    rows : ndarray of int
    scores : ndarray of shape (n_held_out,)
        How unusual each row is given the rows that remained, see `OutlierScorer`.
    limit : float
        Rows with lower scores are outliers.
    at_once : int
        Number of rows removed together.
    inspected : ndarray of int
        The inspected rows: their cells were hidden and predicted from the rest of the row.
    evenly : ndarray of bool, shape (n_inspected,)
        Whether an inspected row was chosen regardless of its score; the others have low scores.
    hidden_at_once : int
        Number of cells of a row hidden together; 0 if none was.
    """

    rows: IntArray
    scores: FloatArray
    limit: float
    at_once: int
    inspected: IntArray
    evenly: NDArray[np.bool_]
    hidden_at_once: int


@dataclass(frozen=True, eq=False)
class SampleFacts:
    """A sample of trees by sequential Monte Carlo; unknown values are None."""

    n_trees: int
    n_distinct: int
    effective_size: float
    log_evidence: float
    log_evidence_se: float | None
    least_ess: float | None


@dataclass(frozen=True, eq=False)
class ChainFacts:
    """A sample of trees by Markov chains.

    Parameters
    ----------
    n_trees : int
    converged : bool
    verdict : str
        Whether they converged, and what to do, in words.
    r_hat : float
        The largest over the traces.
    effective_samples : float
        The smallest effective number of samples over the traces.
    acceptance : dict of str to float
        Acceptance rate of each kind of move.
    traces : list of list of float
        Log joint density of each chain after its warm-up.
    """

    n_trees: int
    converged: bool
    verdict: str
    r_hat: float
    effective_samples: float
    acceptance: dict[str, float]
    traces: list[list[float]]


@dataclass(frozen=True, eq=False)
class EvidenceFacts:
    """A comparison of models by their evidence.

    Parameters
    ----------
    words : str
        What it says, in words.
    models : sequence of tuple of str
        For each model, the best first: name, log evidence, fitted parameters, log Bayes factor, and what that says.
    """

    words: str
    models: Sequence[tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class ReportFacts:
    """All facts of a report.

    Parameters
    ----------
    title : str
    tree : Tree
        A `SummaryTree` if there is a sample of trees.
    labels : ndarray of int, shape (n_rows,)
        Flat clusters; the last one stands for outliers, if there are any.
    outliers : bool
        Whether some rows are in no cluster.
    clusters_chosen_by : str
        The rule that decided on the clusters, see `FittedModel.clusters_chosen_by`.
    cut_words : str
        That rule in words.
    columns : tuple of RealFacts or CategoricalFacts
        The columns in use, real ones first.
    profile : Profile
        Every column in every cluster.
    together : ndarray of shape (n_clusters,)
        The mean probability of two rows of a cluster to be in one.
    unused : tuple of str
        The other columns.
    incomplete_rows : ndarray of int
        The rows with missing cells, if every leaf is drawn; else none.
    held_out : HeldOutFacts
    log_ratios : ndarray of shape (n_rows - 1,)
        Log likelihood ratio of each merge: one tree against two for the rows below it.
    parameters : dict
        Parameters of every column, as ``parameters_`` of the estimators.
    draws_parameters : bool
        Whether the trees of the sample have their own parameters; else those of trees sampled for predictions are used.
    search : str or None
    neighbor_recall : float or None
    remarks : tuple of str
    sample : SampleFacts, ChainFacts or None
    version : str
    evidence : EvidenceFacts, optional
    partitions : tuple of str, optional
        The model of each partition of characters, in words.
    """

    title: str
    tree: Tree
    labels: IntArray
    outliers: bool
    clusters_chosen_by: str
    cut_words: str
    columns: tuple[ColumnFacts, ...]
    profile: Profile
    together: FloatArray
    unused: tuple[str, ...]
    incomplete_rows: IntArray
    held_out: HeldOutFacts
    log_ratios: FloatArray
    parameters: dict[str, dict[str, Any]]
    draws_parameters: bool
    search: str | None
    neighbor_recall: float | None
    remarks: tuple[str, ...]
    sample: SampleFacts | ChainFacts | None
    version: str
    evidence: EvidenceFacts | None = None
    partitions: tuple[str, ...] = ()

    @property
    def n_clusters(self) -> int:
        """Number of clusters without outliers."""
        return int(self.labels.max()) + 1 - self.outliers

    @property
    def chains(self) -> ChainFacts | None:
        """The Markov chains, if there are any."""
        return self.sample if isinstance(self.sample, ChainFacts) else None

    @property
    def real(self) -> list[RealFacts]:
        """The real columns."""
        return [column for column in self.columns if isinstance(column, RealFacts)]

    @property
    def categorical(self) -> list[CategoricalFacts]:
        """The categorical columns."""
        return [column for column in self.columns if isinstance(column, CategoricalFacts)]
