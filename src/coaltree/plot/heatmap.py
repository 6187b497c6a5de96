"""A table beside its tree, with matplotlib."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..errors import InputError
from ..table.messages import listing
from .fitted import EncodedColumn, checked_model, encoded_columns
from .panels import LIMIT, Beside, CellColors, cell_colors, draw_dendrogram, edges_of, write_color_bar
from .style import FONT, need_matplotlib
from .visible_tree import Drawn, drawn_part, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_COLUMNS = 500
_COLUMN_WIDTH = 0.26  # inches
_MOST_NAMED = 60
_MOST_MARKS = 20_000


def plot_heatmap(
    model: Any,
    *,
    columns: Sequence[str] | None = None,
    labels: Iterable[Hashable] | Literal["auto"] | None = "auto",
    missing: Literal["mark", "fill"] = "mark",
    axes: Mapping[str, Axes] | None = None,
    colors: str | Sequence[Any] | Mapping[Any, Any] | None = None,
    collapse: int | Literal["auto"] | None = "auto",
) -> dict[str, Axes]:
    """Draw the table of a fitted model in the order of its tree, beside the dendrogram.

    Real cells are coloured by how many standard deviations they are from the mean of their column, categories by colours of
    their own: the eight most frequent ones of each column, and grey for all others. Columns that are constant are left out.

    Parameters
    ----------
    model : CoalescentClustering or CoalescentImputer, fitted
    columns : sequence of str, optional
        Names of the columns to draw, in this order; by default all that take part in the tree. At most 500.
    labels : iterable of hashable, "auto" or None, default "auto"
        Flat cluster of each row, for the colours of branches; ``"auto"`` takes those of the model, if it has any.
    missing : {"mark", "fill"}, default "mark"
        Missing cells are left blank, or filled with what is most probable given the rest of the table; either way they have a
        dot.
    axes : mapping of "dendrogram", "table" and "key" to matplotlib Axes, optional
        Where to draw; by default a new pyplot figure.
    colors : str, sequence or mapping, optional
        Colours of the clusters, see :func:`plot_dendrogram`.
    collapse : int, "auto" or None, default "auto"
        Number of clades to which the tree is collapsed, see :func:`plot_dendrogram`: above 2,000 rows it is 50. A clade shows
        the mean of its observed real cells, and its most frequent category, the paler the fewer of its rows have it.

    Returns
    -------
    dict of str to matplotlib Axes
        With the keys of `axes`.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    InputError
        If ``model`` is not fitted, a column is not known, or an option cannot be used.

    Examples
    --------
    >>> import coaltree as ct
    >>> model = ct.CoalescentClustering(n_clusters=2).fit([[0.0, 1.1], [0.1, 0.9], [4.0, None], [4.2, 3.0]])
    >>> axes = ct.plot_heatmap(model, missing="fill")  # doctest: +SKIP
    """
    fitted = checked_model(model)
    if missing not in ("mark", "fill"):
        raise InputError(f"missing is {missing!r}; it must be 'mark' or 'fill'.")
    wanted = _checked_columns(columns, encoded_columns(fitted.encoding_))
    if isinstance(labels, str) and labels == "auto":
        labels = getattr(fitted, "labels_", None)
    labels = None if labels is None else list(labels)
    drawn = drawn_part(fitted.tree_, collapse)
    need_matplotlib()
    import matplotlib

    color_map = matplotlib.colormaps["RdBu_r"]
    cells = cell_colors(fitted, wanted, drawn, missing == "fill", color_map)
    width = float(np.clip(_COLUMN_WIDTH * len(wanted), 1.0, 9.0))
    names = [shown(column.name) for column in wanted] if len(wanted) <= _MOST_NAMED else []
    beside = draw_dendrogram(drawn, labels, colors, axes, "table", width, names, cells.key)
    _draw_cells(beside, drawn, names, cells)
    if any(column.real for column in wanted):
        scale = matplotlib.cm.ScalarMappable(matplotlib.colors.Normalize(-LIMIT, LIMIT), color_map)
        write_color_bar(
            beside, scale, "standard deviations\nfrom the mean", extend="both", extendfrac=0.03, ticks=[-2, 0, 2]
        )
    return {"dendrogram": beside.tree, "table": beside.panel, "key": beside.key}


def _draw_cells(beside: Beside, drawn: Drawn, names: list[str], cells: CellColors) -> None:
    ax, n = beside.panel, cells.colors.shape[1]
    edges = edges_of(drawn)
    ax.pcolormesh(np.arange(n + 1) - 0.5, edges, cells.colors, rasterized=True)
    rows, places = np.nonzero(cells.missing)
    if len(rows) <= _MOST_MARKS:
        pitch = beside.points / drawn.span
        middles = (edges[:-1] + edges[1:]) / 2
        size = float(np.clip(0.3 * pitch, 0.5, 3.0))
        ax.plot(
            places, middles[rows], linestyle="none", marker="o", markersize=size, color="#777777", markeredgewidth=0
        )
    ax.set_xlim(-0.5, n - 0.5)
    ax.xaxis.tick_top()
    ax.set_xticks(range(len(names)), labels=names, rotation=90, fontsize=FONT, parse_math=False)
    ax.tick_params(axis="x", length=0)


def _checked_columns(wanted: Sequence[str] | None, known: list[EncodedColumn]) -> list[EncodedColumn]:
    if not known:
        raise InputError("No column of the table takes part in the tree, so there is nothing to draw beside it.")
    by_name = {column.name: column for column in known}
    if wanted is not None:
        names = [wanted] if isinstance(wanted, str) else list(wanted)
        absent = [name for name in names if name not in by_name]
        if absent or not names:
            raise InputError(
                f"columns names {listing(absent) if absent else 'none'}; it must name columns that take part in the tree, which "
                f"are {listing(by_name)}."
            )
        known = [by_name[name] for name in names]
    if len(known) > MOST_COLUMNS:
        raise InputError(
            f"{len(known):,} columns are too many for a picture, which has room for {MOST_COLUMNS}: name some of them in columns."
        )
    return known
