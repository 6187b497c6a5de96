"""Results of predictions: placements of new rows, and predictive distributions of missing cells.

Both have the names, units and labels of the user's tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .._html import first_rows, rows_html, shorten_value
from .._parameters import check_parameter
from ..errors import MissingDependencyError
from ..table.cells import Category
from ..table.scaling import LARGEST
from ..tree.tree import Tree
from .calibration import calibrated_deviate
from .mixtures import DEVIATES
from .predictor import PlacementArrays

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_MICROSECONDS_PER_DAY = 86_400e6
_MOST_TICKS = 9.2e18  # microseconds, about 290,000 years: more do not fit into 64 bits


@dataclass(frozen=True, eq=False)
class Placements:
    """Where rows attach to a tree. Each array has one entry per row.

    Attributes
    ----------
    row_names : tuple of str
        Names of the rows, or their numbers if they have no names.
    branch : ndarray of int
        The node below the most probable branch. The root stands for the stem.
    n_below : ndarray of int
        Number of leaves below that branch.
    probability : ndarray of float
        Probability of that branch. For a sample of trees, the probability of attaching above the same clade.
    height, height_low, height_high : ndarray of float
        Mean and interval of the height at which the row attaches, over all branches.
    nearest : list of tuple of str
        Names of the leaves with the lowest expected merges with the row.
    nearest_height : ndarray of shape (n_rows, n_nearest)
        Expected heights of these merges.
    log_density : ndarray of float
        Log predictive density of the row.
    cluster : ndarray of int
        Of a row of the fit its label, of any other row the most probable cluster; -1 for outliers, if the model has
        ``assign_outliers=False``.
    cluster_probability : ndarray of float
        Its probability; for outliers, the probability that they are outside of all clusters.
    index : pandas Index or None
        Index of the frame that the rows came from, if it had one.
    """

    row_names: tuple[str, ...]
    branch: IntArray
    n_below: IntArray
    probability: FloatArray
    height: FloatArray
    height_low: FloatArray
    height_high: FloatArray
    nearest: list[tuple[str, ...]]
    nearest_height: FloatArray
    log_density: FloatArray
    cluster: IntArray
    cluster_probability: FloatArray
    index: Any = None

    @classmethod
    def from_arrays(
        cls,
        arrays: PlacementArrays,
        cluster: IntArray,
        cluster_probability: FloatArray,
        tree: Tree,
        row_names: tuple[str, ...] | None,
        index: Any = None,
    ) -> Self:
        """Add names and clusters to placements."""
        names = np.array(tree.leaf_names, dtype=object)
        return cls(
            row_names or tuple(map(str, range(len(arrays.node)))),
            arrays.node,
            tree.leaf_counts[arrays.node],
            arrays.probability,
            arrays.height,
            arrays.height_low,
            arrays.height_high,
            [tuple(names[row]) for row in arrays.nearest],
            arrays.nearest_height,
            arrays.log_density,
            cluster,
            cluster_probability,
            index,
        )

    def __len__(self) -> int:
        return len(self.branch)

    def columns(self) -> dict[str, list[Any]]:
        """Return the table as a dict of columns: row names first, then a column for each nearest leaf, clusters last."""
        return self._columns(slice(None))

    def _columns(self, rows: slice) -> dict[str, list[Any]]:
        table: dict[str, list[Any]] = {"row": list(self.row_names[rows])}
        for name in ("branch", "n_below", "probability", "height", "height_low", "height_high", "log_density"):
            table[name] = getattr(self, name)[rows].tolist()
        for k in range(self.nearest_height.shape[1]):
            table[f"nearest_{k + 1}"] = [names[k] for names in self.nearest[rows]]
            table[f"nearest_{k + 1}_height"] = self.nearest_height[rows, k].tolist()
        for name in ("cluster", "cluster_probability"):
            table[name] = getattr(self, name)[rows].tolist()
        return table

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with the index of the rows, or their names if they have no index."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingDependencyError("pandas is not installed: use columns(), or pip install pandas.") from error
        table = pd.DataFrame(self.columns()).set_index("row")
        return table if self.index is None else table.set_axis(self.index)

    def to_polars(self) -> Any:
        """Return a polars DataFrame."""
        try:
            import polars as pl
        except ImportError as error:
            raise MissingDependencyError("polars is not installed: use columns(), or pip install polars.") from error
        return pl.DataFrame(self.columns())

    def __repr__(self) -> str:
        first = ", ".join(
            f"{shorten_value(name)}: branch {branch} ({probability:.2f})"
            for name, branch, probability in zip(self.row_names[:3], self.branch, self.probability, strict=False)
        )
        more = ", ..." if len(self) > 3 else ""
        return f"<Placements of {len(self)} rows: {first}{more}>"

    def _repr_html_(self) -> str:
        return rows_html(f"Placements of {len(self):,} rows", self._columns(first_rows(len(self))), len(self))


class CellCodes(NamedTuple):
    """Distributions of the missing cells of a column, in the units of its process."""

    mean: FloatArray  # (missing,)
    sd: FloatArray
    quantiles: FloatArray  # (missing, levels of `mixtures.LEVELS`); NaN where only mean and sd are known
    decode: Callable[[FloatArray], FloatArray]  # from these units to those of the column, increasing
    concentration: float = 1.0  # by which levels are calibrated

    def quantile(self, deviate: float) -> FloatArray:
        """Return calibrated quantiles at the level at which the standard Gaussian has the quantile `deviate`.

        Between the levels that are kept, and beyond them, quantiles are linear in those of the standard Gaussian.
        """
        deviate = calibrated_deviate(deviate, self.concentration)
        k = int(np.clip(np.searchsorted(DEVIATES, deviate) - 1, 0, len(DEVIATES) - 2))
        share = (deviate - DEVIATES[k]) / (DEVIATES[k + 1] - DEVIATES[k])
        left, right = self.quantiles[:, k], self.quantiles[:, k + 1]
        with np.errstate(over="ignore"):
            gaussian = self.mean + (deviate * self.sd if deviate else 0.0)
            return np.where(np.isnan(left), gaussian, left + share * (right - left))

    def decoded_quantile(self, deviate: float) -> FloatArray:
        """Return quantiles in the column's units."""
        codes = self.quantile(deviate)
        with np.errstate(over="ignore", invalid="ignore"):
            values = self.decode(codes)
        # Of the largest numbers a quantile may be beyond all numbers, although the standard deviation is known.
        return np.where(np.isfinite(codes), np.clip(values, -LARGEST, LARGEST), codes)


@dataclass(frozen=True, eq=False, repr=False)
class RealCells:
    """The cells of a real column. An observed cell has its value as mean, and standard deviation 0.

    Attributes
    ----------
    mean, sd : ndarray of shape (n_rows,)
        Durations are in days.
    missing : ndarray of bool, shape (n_rows,)
    codes : CellCodes, optional
        The missing cells in the units of the process, with quantiles.
    """

    mean: FloatArray
    sd: FloatArray
    missing: NDArray[np.bool_]
    codes: CellCodes | None = None

    @property
    def median(self) -> FloatArray:
        """The median. Missing cells are filled with the mean, unless ``standardize="power"``: then with the median."""
        return self._quantile(0.0)

    def interval(self, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper ends of central intervals.

        The ends are quantiles of the predictive distribution, which is a mixture over trees and places in them. If a row may
        belong to one of several clusters, the interval spans them, also where no values are between them. Beyond a level of
        0.999 the tails are taken to be Gaussian.
        """
        check_parameter("level", level)
        from scipy.special import ndtri  # slow to import, and only intervals need it

        deviate = float(ndtri(0.5 + 0.5 * level))
        return self._quantile(-deviate), self._quantile(deviate)

    def _quantile(self, deviate: float) -> FloatArray:
        quantile = self.mean.copy()
        if self.codes is not None:
            quantile[self.missing] = self.codes.decoded_quantile(deviate)
        return quantile

    def __repr__(self) -> str:
        return f"<RealCells: {_count(self.missing)}>"

    def _repr_html_(self) -> str:
        rows = first_rows(len(self.missing))
        columns = {name: getattr(self, name)[rows].tolist() for name in ("mean", "sd", "missing")}
        return rows_html(f"Real cells: {_count(self.missing)}", columns, len(self.missing))


@dataclass(frozen=True, eq=False, repr=False)
class DateCells:
    """The cells of a column of dates or times, as arrays of NumPy's ``datetime64[us]``; those with time zones are in UTC.

    Attributes
    ----------
    days : RealCells
        The same in days since 1970-01-01.
    """

    days: RealCells

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Whether cells are missing."""
        return self.days.missing

    @property
    def mean(self) -> NDArray[np.datetime64]:
        """The mean; of an observed cell its value."""
        return _to_dates(self.days.mean)

    @property
    def sd(self) -> NDArray[np.timedelta64]:
        """The standard deviation as ``timedelta64[us]``; 0 for an observed cell, and NaT where nothing is known."""
        return _to_spans(self.days.sd)

    @property
    def median(self) -> NDArray[np.datetime64]:
        """The median."""
        return _to_dates(self.days.median)

    def interval(self, level: float = 0.9) -> tuple[NDArray[np.datetime64], NDArray[np.datetime64]]:
        """Return the lower and upper ends of central intervals, see `RealCells.interval`."""
        low, high = self.days.interval(level)
        return _to_dates(low), _to_dates(high)

    def __repr__(self) -> str:
        return f"<DateCells: {_count(self.missing)}>"

    def _repr_html_(self) -> str:
        rows = first_rows(len(self.missing))
        columns: dict[str, list[Any]] = {
            name: getattr(self, name)[rows].astype(str).tolist() for name in ("mean", "sd")
        }
        columns["missing"] = self.missing[rows].tolist()
        return rows_html(f"Dates: {_count(self.missing)}", columns, len(self.missing))


def _to_spans(days: FloatArray) -> NDArray[np.timedelta64]:
    """Return numbers of days as durations, NaT where they are not finite; beyond what fits, the longest ones."""
    with np.errstate(over="ignore"):
        ticks = np.clip(np.where(np.isfinite(days), days, 0.0) * _MICROSECONDS_PER_DAY, -_MOST_TICKS, _MOST_TICKS)
    spans = np.rint(ticks).astype(np.int64).astype("timedelta64[us]")
    return np.where(np.isfinite(days), spans, np.timedelta64("NaT", "us"))


def _to_dates(days: FloatArray) -> NDArray[np.datetime64]:
    """Return numbers of days since 1970-01-01 as times."""
    return np.datetime64(0, "us") + _to_spans(days)


@dataclass(frozen=True, eq=False, repr=False)
class CategoricalCells:
    """The cells of a categorical column. An observed category has probability 1.

    Attributes
    ----------
    categories : tuple
    probability : ndarray of shape (n_rows, n_categories)
    missing : ndarray of bool, shape (n_rows,)
    """

    categories: tuple[Category, ...]
    probability: FloatArray
    missing: NDArray[np.bool_]

    def __repr__(self) -> str:
        return f"<CategoricalCells: {_count(self.missing)}, categories {shorten_value(self.categories)}>"

    def _repr_html_(self) -> str:
        rows = first_rows(len(self.missing))
        probability = self.probability[rows] if self.categories else np.zeros((rows.stop, 1))
        labels = self.categories or ("",)
        columns = {
            "most probable": [labels[k] for k in probability.argmax(axis=1)],
            "probability": probability.max(axis=1).tolist(),
            "missing": self.missing[rows].tolist(),
        }
        return rows_html(f"Categorical cells: {_count(self.missing)}", columns, len(self.missing))


class Predictive(Mapping[str, RealCells | DateCells | CategoricalCells]):
    """A mapping from the names of columns to the predictive distributions of their cells.

    Examples
    --------
    >>> import numpy as np
    >>> import coaltree as ct
    >>> X = np.array([[0.0, 0.1], [0.2, np.nan], [5.0, 5.2], [5.1, 4.9], [0.1, 0.2]])
    >>> cells = ct.CoalescentImputer().fit(X).predictive(X)
    >>> list(cells)
    ['x0', 'x1']
    >>> bool(cells["x1"].sd[1] > 0), float(cells["x1"].mean[0])
    (True, 0.1)
    """

    def __init__(self, columns: Mapping[str, RealCells | DateCells | CategoricalCells]) -> None:
        self._columns = dict(columns)

    def __getitem__(self, name: str) -> RealCells | DateCells | CategoricalCells:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        missing = sum(int(cells.missing.sum()) for cells in self._columns.values())
        names = ", ".join(list(self)[:5]) + (", ..." if len(self) > 5 else "")
        return f"<Predictive: {len(self)} columns ({names}), {missing} missing cells>"

    def _repr_html_(self) -> str:
        columns: dict[str, Sequence[object]] = {
            "column": list(self),
            "kind": [_KINDS[type(cells)] for cells in self.values()],
            "missing cells": [int(cells.missing.sum()) for cells in self.values()],
        }
        return rows_html("Predictive distributions of cells", columns, len(self))


_KINDS: dict[type, str] = {RealCells: "real", DateCells: "date", CategoricalCells: "categorical"}


def _count(missing: NDArray[np.bool_]) -> str:
    return f"{len(missing):,} rows, {int(missing.sum()):,} missing"
