"""Placements of new rows in a tree, with names, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._html import first_rows, rows_html, shorten_value
from ..errors import MissingDependencyError
from ..tree.tree import Tree
from .predictor import PlacementArrays

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


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
        The most probable cluster.
    cluster_probability : ndarray of float
        Its probability.
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
        shares: FloatArray,
        tree: Tree,
        row_names: tuple[str, ...] | None,
        index: Any = None,
    ) -> Self:
        """Add names to placements; `shares` are the probabilities of all clusters."""
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
            shares.argmax(axis=1),
            shares.max(axis=1),
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
