"""The colours of the cells of a table in a picture, of every row or of clades."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .drawn import Drawn
from .fitted import EncodedColumn, FittedModel, encoded_table
from .palette import LIGHT, MIXED

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

LIMIT = 2.5  # standard deviations from the mean at which colours of real cells end
_BLANK = "#F2F2F2"


class CellColors(NamedTuple):
    """What is drawn of a table."""

    colors: FloatArray  # (tips, columns, 4)
    missing: NDArray[np.bool_]  # (tips, columns), where nothing was observed
    key: dict[str, dict[str, Any]]  # colours of the categories, by the names of their columns


def cell_colors(
    model: FittedModel, columns: Sequence[EncodedColumn], drawn: Drawn, fill: bool, color_map: Any
) -> CellColors:
    """Choose the colours of cells, tip by tip as they are drawn.

    Real cells are standardised. A clade has the mean of its real cells, and the most frequent of its categories, the paler
    the fewer of its rows have it.

    Parameters
    ----------
    model : fitted estimator
    columns : sequence of EncodedColumn
    drawn : Drawn
    fill : bool
        Whether missing cells of single rows are filled as by the imputer.
    color_map : matplotlib Colormap
        For real cells.

    Returns
    -------
    CellColors
    """
    from matplotlib.colors import to_rgba

    table = encoded_table(model)
    shown = _filled(model, table) if fill and drawn.n_tips == len(table) else table
    tip_of = np.empty(len(table), dtype=np.intp)
    tip_of[drawn.whole.leaf_order] = np.repeat(np.arange(drawn.n_tips), drawn.counts[drawn.tree.leaf_order])
    colors = np.empty((drawn.n_tips, len(columns), 4))
    missing = np.empty((drawn.n_tips, len(columns)), dtype=bool)
    key: dict[str, dict[str, Any]] = {}
    for j, column in enumerate(columns):
        cells = shown[:, column.position]
        observed = ~np.isnan(table[:, column.position])
        missing[:, j] = np.bincount(tip_of, observed, minlength=drawn.n_tips) == 0
        if column.real:
            colors[:, j] = color_map(0.5 + 0.5 * _means(cells, observed, tip_of, drawn.n_tips) / LIMIT)
        else:
            shades, key[column.name] = _shades(column, cells[observed].astype(np.intp))
            colors[:, j] = _categories(cells, shades, tip_of, drawn.n_tips)
        if not fill or drawn.n_tips < len(table):
            colors[missing[:, j], j] = to_rgba(_BLANK)
    return CellColors(colors, missing, key)


def _means(cells: FloatArray, observed: NDArray[np.bool_], tip_of: IntArray, n_tips: int) -> FloatArray:
    """Return the mean of each tip's cells, in standard deviations from the column's."""
    own = cells[observed]
    known = ~np.isnan(cells)
    standardised = (cells[known] - own.mean()) / (own.std() or 1.0)
    counts = np.bincount(tip_of[known], minlength=n_tips)
    return np.asarray(np.bincount(tip_of[known], standardised, minlength=n_tips) / np.maximum(counts, 1))


def _shades(column: EncodedColumn, codes: IntArray) -> tuple[FloatArray, dict[str, Any]]:
    """Return the colour of each category, the most frequent ones in colours of their own, and their names."""
    from matplotlib.colors import to_rgba_array

    n_categories = len(column.categories)
    frequent = np.argsort(-np.bincount(codes, minlength=n_categories), kind="stable")
    own = np.sort(frequent if n_categories <= len(LIGHT) else frequent[: len(LIGHT)])
    shades = np.tile(to_rgba_array(MIXED), (n_categories, 1))
    shades[own] = to_rgba_array(LIGHT)[: len(own)]
    names = {str(column.categories[code]): LIGHT[k] for k, code in enumerate(own.tolist())}
    if len(own) < n_categories:
        names[f"{n_categories - len(own)} others"] = MIXED
    return shades, names


def _categories(cells: FloatArray, shades: FloatArray, tip_of: IntArray, n_tips: int) -> FloatArray:
    """Return the colour of each tip's most frequent category, mixed with white by what others have."""
    known = ~np.isnan(cells)
    at = tip_of[known] * len(shades) + cells[known].astype(np.intp)
    counts = np.bincount(at, minlength=n_tips * len(shades)).reshape(n_tips, len(shades))
    share = (counts.max(axis=1) / np.maximum(counts.sum(axis=1), 1))[:, None]
    return np.asarray(share * shades[counts.argmax(axis=1)] + (1 - share))


def _filled(model: FittedModel, table: FloatArray) -> FloatArray:
    """Return the encoded table with its missing cells filled by what is most probable."""
    rows = np.flatnonzero(np.isnan(table).any(axis=1))
    if not len(rows):
        return table
    found = model._expected_cells(table[rows])
    best = np.empty((len(rows), table.shape[1]))
    best[:, found.real] = found.mean
    for k, column in enumerate(found.categorical):
        best[:, column] = found.probability[:, found.start[k] : found.start[k + 1]].argmax(axis=1)
    filled = table.copy()
    filled[rows] = np.where(np.isnan(table[rows]), best, table[rows])
    return filled
