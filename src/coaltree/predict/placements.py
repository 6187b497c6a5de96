"""Where new rows attach, as a table for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._html import first_rows, rows_html, shorten_value
from ..errors import MissingDependencyError
from ..tree.tree import Tree
from .predictor import Placed

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Placements:
    """Where rows attach to a tree, each array with an entry for each row.

    Attributes
    ----------
    row_names : tuple of str
        Names of the rows; their numbers if they have none.
    branch : ndarray of int
        The node of the tree below the most probable branch; the last one stands for the stem above the root.
    n_below : ndarray of int
        Number of leaves below that branch.
    probability : ndarray of float
        Probability of that branch. Of a sample of trees, the share that attaches above the same clade.
    height, height_low, height_high : ndarray of float
        Mean and interval of the height at which the row attaches, over all branches.
    nearest : list of tuple of str
        Names of the leaves that the row is expected to merge with most recently.
    nearest_height : ndarray of shape (n_rows, n_nearest)
        Expected height of its merges with them.
    log_density : ndarray of float
        Log predictive density of the row.
    cluster : ndarray of int
        The most probable cluster.
    cluster_probability : ndarray of float
        Its probability.
    index : pandas Index or None
        That of the frame that the rows came in, if it had one.
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
    def of(
        cls, placed: Placed, shares: FloatArray, tree: Tree, row_names: tuple[str, ...] | None, index: Any = None
    ) -> Self:
        """Put names to what was found; `shares` are the probabilities of all clusters."""
        names = np.array(tree.leaf_names, dtype=object)
        return cls(
            row_names or tuple(map(str, range(len(placed.node)))),
            placed.node,
            tree.leaf_counts[placed.node],
            placed.probability,
            placed.height,
            placed.height_low,
            placed.height_high,
            [tuple(names[row]) for row in placed.nearest],
            placed.nearest_height,
            placed.log_density,
            shares.argmax(axis=1),
            shares.max(axis=1),
            index,
        )

    def __len__(self) -> int:
        return len(self.branch)

    def columns(self) -> dict[str, list[Any]]:
        """Return the table column by column, row names first, the nearest leaves a column each, clusters last."""
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
        """Return a pandas frame with the index of the rows; of rows that came without one, it is their names."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingDependencyError("pandas is not installed: use columns(), or pip install pandas.") from error
        table = pd.DataFrame(self.columns()).set_index("row")
        return table if self.index is None else table.set_axis(self.index)

    def to_polars(self) -> Any:
        """Return a polars frame."""
        try:
            import polars as pl
        except ImportError as error:
            raise MissingDependencyError("polars is not installed: use columns(), or pip install polars.") from error
        return pl.DataFrame(self.columns())

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{shorten_value(name)}: branch {branch} ({probability:.2f})"
            for name, branch, probability in zip(self.row_names[:3], self.branch, self.probability, strict=False)
        )
        more = ", ..." if len(self) > 3 else ""
        return f"<Placements of {len(self)} rows: {shown}{more}>"

    def _repr_html_(self) -> str:
        return rows_html(f"Placements of {len(self):,} rows", self._columns(first_rows(len(self))), len(self))
