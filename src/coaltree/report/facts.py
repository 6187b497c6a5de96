"""What a report tells, as plain facts, whichever estimator they come from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..tree.tree import Tree
from .numbers import beside, date, given_values, mean_beside, percent, significant, written

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class PowerFacts(NamedTuple):
    """What a report needs of a real column that was transformed by a power, as the model sees it."""

    values: FloatArray
    expected: FloatArray
    expected_sd: FloatArray
    sd: float  # in the column's units, how wide a standard deviation of the transformed column is in its middle


@dataclass(frozen=True, eq=False)
class RealFacts:
    """A real column, in its own units.

    Parameters
    ----------
    name : str
    values : ndarray of shape (n_rows,)
        NaN is missing.
    expected, expected_sd : ndarray of shape (n_opened,)
        What the model expects in the cells of the rows that were opened, see `Examined`; sd is infinite where it knows nothing.
    filled, filled_sd : ndarray of shape (n_holes,)
        What it expects of the rows with holes.
    time : bool
        Whether values are points in time, as days since 1970-01-01.
    power : PowerFacts, optional
        After a power transform. What is expected is a median then, and a standard deviation is half the length of the interval
        from one below to one above it.
    """

    name: str
    values: FloatArray
    expected: FloatArray
    expected_sd: FloatArray
    filled: FloatArray
    filled_sd: FloatArray
    time: bool = False
    power: PowerFacts | None = None

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells are missing."""
        return np.isnan(self.values)

    @cached_property
    def mean(self) -> float:
        """Mean of the observed cells."""
        observed = self.values[~self.missing]
        return float(np.sum(observed / len(observed)))

    @cached_property
    def sd(self) -> float:
        """Standard deviation of the observed cells; 1 if they differ by less than can be told."""
        observed = self.values[~self.missing]
        size = float(np.max(np.abs(observed))) or 1.0  # squares of very large numbers are not finite
        return size * float(np.std(observed / size)) or 1.0

    @property
    def compared_sd(self) -> float:
        """The standard deviation that parameters are compared with."""
        return self.sd if self.power is None else self.power.sd

    def deviations(self, rows: IntArray) -> FloatArray:
        """Return how many standard deviations the opened rows' values are from what is expected; NaN where nothing is seen."""
        own = self if self.power is None else self.power
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.abs(own.values[rows] - own.expected) / own.expected_sd)

    def told(self, value: float, sd: float | None = None) -> str:
        """Write a value of the column, to the digits that its standard deviation leaves sure."""
        if self.time:
            return date(value, None if sd is None else bool(sd >= 1))
        return written((given_values(np.array([value]))[0] or 0.0) if sd is None else beside(value, sd))

    def mean_told(self, mean: float) -> str:
        """Write the mean of some rows."""
        return self.told(mean, 0.1 * self.sd) if self.time else written(mean_beside(mean, self.sd))

    def cell(self, row: int) -> str:
        """Write the observed cell of a row."""
        return self.told(float(self.values[row]))

    def distance(self, value: float, digits: int = 3) -> str:
        """Write a difference of two values of the column."""
        return written(significant(value, digits)) + (" days" if self.time else "")

    def expectation(self, k: int) -> str:
        """Say what the model expects of the k-th of the opened rows."""
        if not self.expected_sd[k] < np.inf:
            return "anything"
        sd = float(self.expected_sd[k])
        return f"{self.told(float(self.expected[k]), sd)} ± {self.distance(beside(sd, sd), 12)}"


@dataclass(frozen=True, eq=False)
class CategoricalFacts:
    """A categorical column.

    Parameters
    ----------
    name : str
    categories : tuple of str
    codes : ndarray of int, shape (n_rows,)
        -1 is missing.
    expected : ndarray of shape (n_opened, n_categories)
        Probabilities of the cells of the rows that were opened.
    filled : ndarray of shape (n_holes, n_categories)
        Of the rows with holes.
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

    def cell(self, row: int) -> str:
        """Write the observed cell of a row."""
        return self.categories[int(self.codes[row])]

    def expectation(self, k: int) -> str:
        """Say what the model expects of the k-th of the opened rows."""
        best = int(self.expected[k].argmax())
        return f"{self.categories[best]} ({percent(float(self.expected[k, best]))})"


ColumnFacts: TypeAlias = RealFacts | CategoricalFacts


@dataclass(frozen=True, eq=False)
class Examined:
    """The rows that were taken off the tree to see how well the others foretell them.

    Parameters
    ----------
    rows : ndarray of int
    scores : ndarray of shape (n_examined,)
        Log density of each row, given all that stayed on the tree, above what is usual for rows with such holes.
    at_once : int
        Rows that were taken off together.
    opened : ndarray of int
        Those of which the cells were hidden, to see how well the rest of the row foretells them.
    evenly : ndarray of bool, shape (n_opened,)
        Whether a row was opened whatever its score; the others were because it is so low.
    hidden_at_once : int
        Cells of a row that were hidden together; 0 if no cell was hidden.
    """

    rows: IntArray
    scores: FloatArray
    at_once: int
    opened: IntArray
    evenly: NDArray[np.bool_]
    hidden_at_once: int


@dataclass(frozen=True, eq=False)
class SampleFacts:
    """A sample of trees by sequential Monte Carlo; what its file does not keep is None."""

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
        In words: converged or not, and what to do.
    r_hat : float
        The largest over the traces.
    effective_samples : float
        What the sample is worth; the smallest over the traces.
    acceptance : dict of str to float
        Share of each kind of move that was accepted.
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
class ReportFacts:
    """All that a report is made of.

    Parameters
    ----------
    title : str
    tree : Tree
        A `SummaryTree` if there is a sample of trees.
    labels : ndarray of int, shape (n_rows,)
        Flat clusters.
        The last of them stands for outliers, if there are any.
    outliers : bool
        Whether there are rows in no cluster.
    clusters_chosen_by : {"n_clusters", "height", "resolution", "gap", "no structure", "default resolution", "likelihood ratio"}
    resolution : float or None
        How fine clusters are, if they were chosen by it.
    columns : tuple of RealFacts or CategoricalFacts
        The columns that take part, real ones first.
    unused : tuple of str
        The columns that do not.
    holes : ndarray of int
        The rows with missing cells, if the tree is drawn leaf by leaf; else none.
    examined : Examined
    log_ratios : ndarray of shape (n_rows - 1,)
        Of every merge: how much better one tree explains the rows below it than two.
    parameters : dict
        Of every column, as ``parameters_`` of the estimators.
    draws_parameters : bool
        Whether the sample of trees has parameters of its own for each; else they are of trees that were drawn for predictions.
    search : str or None
    neighbors_held : float or None
    remarks : tuple of str
    sample : SampleFacts, ChainFacts or None
    version : str
    """

    title: str
    tree: Tree
    labels: IntArray
    outliers: bool
    clusters_chosen_by: str
    resolution: float | None
    columns: tuple[ColumnFacts, ...]
    unused: tuple[str, ...]
    holes: IntArray
    examined: Examined
    log_ratios: FloatArray
    parameters: dict[str, dict[str, Any]]
    draws_parameters: bool
    search: str | None
    neighbors_held: float | None
    remarks: tuple[str, ...]
    sample: SampleFacts | ChainFacts | None
    version: str

    @property
    def n_clusters(self) -> int:
        """Number of clusters, outliers aside."""
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
