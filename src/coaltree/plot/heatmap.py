"""``plot_heatmap`` and ``plot_co_clustering``: a table, or the probabilities that rows share a cluster, next to a tree."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._cut import Cut
from .._parameters import Choices, check_parameter
from .._validation import quote
from ..errors import InputError
from ..table.encoding import EncodedColumn, encoded_columns
from ..table.labels import count, listing
from ..tree.sample import TreeSample, co_clustering_matrix
from ..workflow.model import FittedModel, check_fitted_model
from .dendrogram import draw_names, extent, plot_dendrogram
from .style import (
    FONT,
    LIGHT,
    MAX_LEGEND,
    MIXED,
    SMALL_FONT,
    check_panels,
    color_nodes,
    list_labels,
    require_matplotlib,
)
from .visible_tree import VisibleTree, name_width, select_visible, short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

Key = Mapping[str, Mapping[str, Any]]  # colours by group and name
KeyLine = tuple[str, Any]  # a name and its colour, or a heading and None

MAX_NAMES = 150
_TREE_WIDTH, _KEY_WIDTH = 2.2, 0.4  # inches
_ACROSS = 4.6  # inches along the leaves without names
_MIN_KEY_LINES, _MAX_KEY_COLUMNS = MAX_LEGEND + 3, 4
_KEY_PITCH = 0.19  # inches per line
_BAR_BELOW, _BAR_HEIGHT = 14.0, 7.0  # points

MAX_COLUMNS = 500
MAX_DEVIATION = 2.5  # standard deviations from the mean at which the colour scale ends
_BLANK = "#F2F2F2"
_COLUMN_WIDTH = 0.26  # inches
_MAX_NAMED = 60
_MAX_MARKS = 20_000

MAX_ROWS = 3_000


class DendrogramPanels(NamedTuple):
    """The axes of a dendrogram, of the panel next to it and of the key, and their height in points."""

    tree: Axes
    panel: Axes
    key: Axes
    points: float


def draw_dendrogram_panels(
    visible: VisibleTree, labels: Any, colors: Any, axes: Any, name: str, width: float, above: Sequence[str], key: Key
) -> DendrogramPanels:
    """Draw a dendrogram and its key, with an empty panel between them. The rows of the panel are the tips.

    Parameters
    ----------
    visible : VisibleTree
    labels, colors
        As of :func:`plot_dendrogram`.
    axes : mapping or None
        Axes by the names "dendrogram", `name` and "key"; None makes a new figure.
    name : str
        Name of the panel.
    width : float
        Width of the panel in a new figure, in inches; 0 makes it square.
    above : sequence of str
        Texts that will be written above the panel.
    key : mapping
        Colours of the panel; those of clusters are added.

    Returns
    -------
    DendrogramPanels
        The panel has the limits of the dendrogram, and the names of the tips if they fit.
    """
    names = visible.tip_labels() if visible.n_tips <= MAX_NAMES else []
    panels = check_panels(axes, ("dendrogram", name, "key"))
    clusters = color_nodes(visible.original, visible.nodes, visible.n_tips, labels, colors).legend
    default_height = extent(visible, 40.0) if names else _ACROSS
    height = default_height if panels is None else panels["key"].get_window_extent().height / panels["key"].figure.dpi
    columns = _key_columns({"cluster": clusters, **key}, max(_MIN_KEY_LINES, int(height / _KEY_PITCH)))
    if panels is None:
        key_width = sum(_text_width([name for name, _ in column], SMALL_FONT) + 0.35 for column in columns)
        size = (
            _TREE_WIDTH + (width or default_height) + _text_width(names, FONT) + key_width + 0.6,
            _text_width(above, FONT) + max(default_height + 0.9, _KEY_PITCH * max(map(len, columns), default=0)) + 0.2,
        )
        panels = _new_panels(size, {"dendrogram": _TREE_WIDTH, name: width or default_height, "key": _KEY_WIDTH})
        points = 72 * default_height
    else:
        box = panels["dendrogram"].get_window_extent()
        points = 72 * box.height / panels["dendrogram"].figure.dpi
    tree, panel = panels["dendrogram"], panels[name]
    plot_dendrogram(
        visible.original,
        labels=labels,
        colors=colors,
        ax=tree,
        leaf_names=False,
        support=False,
        collapse=visible.n_tips,
    )
    legend = tree.get_legend()
    if legend is not None:
        legend.remove()  # the key shows the clusters
    panel.set_ylim(tree.get_ylim())
    panel.set_yticks([])
    for spine in panel.spines.values():
        spine.set_visible(False)
    draw_names(panel, visible, names, "left", points, always=False)
    panels["key"].set_axis_off()
    if columns:
        _draw_key(panels["key"], columns)
    return DendrogramPanels(tree, panel, panels["key"], points)


def _text_width(texts: Sequence[str], size: float) -> float:
    """Return the width of the longest text in inches."""
    return max(map(name_width, short_names(texts)), default=0.0) * 0.6 * size / 72


def _new_panels(size: tuple[float, float], widths: Mapping[str, float]) -> dict[str, Any]:
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=size, layout="constrained")
    panels: dict[str, Any] = figure.subplot_mosaic([list(widths)], width_ratios=list(widths.values()))
    return panels


def tip_edges(visible: VisibleTree) -> FloatArray:
    """Return the edges between the tips along the leaves."""
    return np.concatenate([[0.0], np.cumsum(visible.widths[visible.tree.leaf_order])]) - 0.5


def _key_columns(key: Key, n_lines: int) -> list[list[KeyLine]]:
    """Return the lines of each column of the key: for each group a heading, then names and colours.

    Groups that there is no room for are counted in the last line.
    """
    columns: list[list[KeyLine]] = [[]]
    for heading, group in key.items():
        lines = [(heading, None), *group.items()] if group else []
        if len(columns[-1]) + len(lines) >= n_lines:  # one line is kept for the last one
            columns.append([])
        columns[-1] += lines
    n_left = sum(color is None for column in columns[_MAX_KEY_COLUMNS:] for _, color in column)
    columns = columns[:_MAX_KEY_COLUMNS]
    if n_left:
        columns[-1].append((f"and {count(n_left, 'column')} more", None))
    return [column for column in columns if column]


def _draw_key(ax: Axes, columns: list[list[KeyLine]]) -> None:
    from matplotlib.patches import Patch

    n_lines = max(map(len, columns))
    # Shorter columns are filled up, because a legend divides its lines evenly.
    lines = [line for column in columns for line in [*column, *[("", None)] * (n_lines - len(column))]]
    handles = [Patch(facecolor="none" if color is None else color) for _, color in lines]
    legend = ax.legend(
        handles,
        [" "] * len(lines),
        loc="upper left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=len(columns),
        frameon=False,
        fontsize=SMALL_FONT,
        handlelength=1.0,
        handleheight=0.9,
        columnspacing=1.5,
        borderaxespad=0.0,
    )
    # Set afterwards, because matplotlib hides labels that begin with an underscore.
    names = short_names([name for name, _ in lines])
    for text, name, (_, color) in zip(legend.get_texts(), names, lines, strict=True):
        text.set_parse_math(False)
        text.set_text(name)
        if color is None:
            text.set_fontweight("bold")


def draw_color_bar(panels: DendrogramPanels, colors: Any, label: str, **options: Any) -> None:
    """Draw the colour scale below the panel."""
    bar = panels.panel.inset_axes((0.0, -(_BAR_BELOW + _BAR_HEIGHT) / panels.points, 1.0, _BAR_HEIGHT / panels.points))
    panels.panel.figure.colorbar(colors, cax=bar, orientation="horizontal", **options)
    bar.set_xlabel(label, fontsize=SMALL_FONT)
    bar.tick_params(labelsize=SMALL_FONT)


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
    """Draw the table of a fitted model next to its dendrogram, with rows in the order of the tree.

    The colour of a real cell is its distance from the column's mean in standard deviations. The eight most frequent
    categories of a column have their own colours; the others are grey. Constant columns are omitted.

    Parameters
    ----------
    model : CoalescentClustering or CoalescentImputer, fitted
    columns : sequence of str, optional
        Names of the columns to draw, in this order; by default all columns in use. At most 500.
    labels : iterable of hashable, "auto" or None, default "auto"
        Flat cluster of each row, for the colours of branches; ``"auto"`` uses those of the model, if any.
    missing : {"mark", "fill"}, default "mark"
        Leave missing cells blank, or fill them with the most probable value given the table; both mark them with a dot.
    axes : mapping of "dendrogram", "table" and "key" to matplotlib Axes, optional
        Where to draw; by default a new pyplot figure.
    colors : str, sequence or mapping, optional
        Colours of the clusters, see :func:`plot_dendrogram`.
    collapse : int, "auto" or None, default "auto"
        Number of clades to show, see :func:`plot_dendrogram`; by default 50 above 2,000 rows. A clade shows the mean of
        its observed real cells and its most frequent category, paler if fewer of its rows have it.

    Returns
    -------
    dict of str to matplotlib Axes
        With the keys of `axes`.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    InputError
        If ``model`` is not fitted, a column is unknown, or an option is invalid.

    Examples
    --------
    >>> import coaltree as ct
    >>> model = ct.CoalescentClustering(n_clusters=2).fit([[0.0, 1.1], [0.1, 0.9], [4.0, None], [4.2, 3.0]])
    >>> axes = ct.plot_heatmap(model, missing="fill")  # doctest: +SKIP
    """
    fitted = check_fitted_model(model)
    check_parameter("missing", missing, Choices(("mark", "fill")))
    shown_columns = _check_columns(columns, encoded_columns(fitted.encoding))
    if isinstance(labels, str) and labels == "auto":
        labels = fitted.labels
    labels = list_labels(labels)
    visible = select_visible(fitted.tree, collapse)
    require_matplotlib()
    import matplotlib

    color_map = matplotlib.colormaps["RdBu_r"]
    cells = cell_colors(fitted, shown_columns, visible, missing == "fill", color_map)
    width = float(np.clip(_COLUMN_WIDTH * len(shown_columns), 1.0, 9.0))
    names = short_names([column.name for column in shown_columns]) if len(shown_columns) <= _MAX_NAMED else []
    panels = draw_dendrogram_panels(visible, labels, colors, axes, "table", width, names, cells.key)
    _draw_cells(panels, visible, names, cells)
    if any(column.real for column in shown_columns):
        scale = matplotlib.cm.ScalarMappable(matplotlib.colors.Normalize(-MAX_DEVIATION, MAX_DEVIATION), color_map)
        draw_color_bar(
            panels, scale, "standard deviations\nfrom the mean", extend="both", extendfrac=0.03, ticks=[-2, 0, 2]
        )
    return {"dendrogram": panels.tree, "table": panels.panel, "key": panels.key}


def _draw_cells(panels: DendrogramPanels, visible: VisibleTree, names: list[str], cells: CellColors) -> None:
    ax, n = panels.panel, cells.colors.shape[1]
    edges = tip_edges(visible)
    ax.pcolormesh(np.arange(n + 1) - 0.5, edges, cells.colors, rasterized=True)
    rows, places = np.nonzero(cells.missing)
    if len(rows) <= _MAX_MARKS:
        pitch = panels.points / visible.span
        middles = (edges[:-1] + edges[1:]) / 2
        size = float(np.clip(0.3 * pitch, 0.5, 3.0))
        ax.plot(
            places, middles[rows], linestyle="none", marker="o", markersize=size, color="#777777", markeredgewidth=0
        )
    ax.set_xlim(-0.5, n - 0.5)
    ax.xaxis.tick_top()
    ax.set_xticks(range(len(names)), labels=names, rotation=90, fontsize=FONT, parse_math=False)
    ax.tick_params(axis="x", length=0)


def _check_columns(columns: Sequence[str] | None, all_columns: list[EncodedColumn]) -> list[EncodedColumn]:
    if not all_columns:
        raise InputError("No column of the table is in use, so there is nothing to draw next to the tree.")
    by_name = {column.name: column for column in all_columns}
    if columns is not None:
        try:
            names = [columns] if isinstance(columns, str) else list(columns)
            absent = [name for name in names if name not in by_name]
        except TypeError:
            raise InputError(f"columns is {quote(columns)}; it must be a list of names of columns, or None.") from None
        if absent or not names:
            raise InputError(
                f"columns names {listing(absent) if absent else 'none'}; it must name columns in use, which are "
                f"{listing(by_name)}."
            )
        all_columns = [by_name[name] for name in names]
    if len(all_columns) > MAX_COLUMNS:
        raise InputError(
            f"{len(all_columns):,} columns are too many for a figure; the limit is {MAX_COLUMNS}. Name some of them in columns."
        )
    return all_columns


class CellColors(NamedTuple):
    """The colours of a table's cells."""

    colors: FloatArray  # (tips, columns, 4)
    missing: NDArray[np.bool_]  # (tips, columns), tips without an observed cell
    key: dict[str, dict[str, Any]]  # colours of the categories, by column name


def cell_colors(
    model: FittedModel, columns: Sequence[EncodedColumn], visible: VisibleTree, fill: bool, color_map: Any
) -> CellColors:
    """Choose the colours of cells, tip by tip in drawing order.

    Real cells are standardised. A clade shows the mean of its real cells and its most frequent category, paler if fewer
    of its rows have it.

    Parameters
    ----------
    model : fitted estimator
    columns : sequence of EncodedColumn
    visible : VisibleTree
    fill : bool
        Whether to fill missing cells of single rows, as the imputer does.
    color_map : matplotlib Colormap
        For real cells.

    Returns
    -------
    CellColors
    """
    from matplotlib.colors import to_rgba

    # Cells that are one of several categories are drawn as missing ones.
    table = np.where(model.encoding.incomplete_cells(model.matrix), np.nan, model.matrix)
    values = _fill_missing(model, model.matrix) if fill and visible.n_tips == len(table) else table
    tip_of = np.empty(len(table), dtype=np.intp)
    tip_of[visible.original.leaf_order] = np.repeat(np.arange(visible.n_tips), visible.counts[visible.tree.leaf_order])
    colors = np.empty((visible.n_tips, len(columns), 4))
    missing = np.empty((visible.n_tips, len(columns)), dtype=bool)
    key: dict[str, dict[str, Any]] = {}
    for j, column in enumerate(columns):
        cells = values[:, column.position]
        observed = ~np.isnan(table[:, column.position])
        missing[:, j] = np.bincount(tip_of, observed, minlength=visible.n_tips) == 0
        if column.real:
            colors[:, j] = color_map(0.5 + 0.5 * _tip_means(cells, observed, tip_of, visible.n_tips) / MAX_DEVIATION)
        else:
            shades, key[column.name] = _category_colors(column, cells[observed].astype(np.intp))
            colors[:, j] = _tip_category_colors(cells, shades, tip_of, visible.n_tips)
        if not fill or visible.n_tips < len(table):
            colors[missing[:, j], j] = to_rgba(_BLANK)
    return CellColors(colors, missing, key)


def _tip_means(cells: FloatArray, observed: NDArray[np.bool_], tip_of: IntArray, n_tips: int) -> FloatArray:
    """Return the mean of each tip's cells, in standard deviations from the column's mean."""
    values = cells[observed]
    known = ~np.isnan(cells)
    standardised = (cells[known] - values.mean()) / (values.std() or 1.0)
    counts = np.bincount(tip_of[known], minlength=n_tips)
    return np.asarray(np.bincount(tip_of[known], standardised, minlength=n_tips) / np.maximum(counts, 1))


def _category_colors(column: EncodedColumn, codes: IntArray) -> tuple[FloatArray, dict[str, Any]]:
    """Return the colour of each category, and the key; only the most frequent have their own colours."""
    from matplotlib.colors import to_rgba_array

    n_categories = len(column.categories)
    frequent = np.argsort(-np.bincount(codes, minlength=n_categories), kind="stable")
    colored = np.sort(frequent if n_categories <= len(LIGHT) else frequent[: len(LIGHT)])
    shades = np.tile(to_rgba_array(MIXED), (n_categories, 1))
    shades[colored] = to_rgba_array(LIGHT)[: len(colored)]
    names = {str(column.categories[code]): LIGHT[k] for k, code in enumerate(colored.tolist())}
    if len(colored) < n_categories:
        names[f"{n_categories - len(colored)} others"] = MIXED
    return shades, names


def _tip_category_colors(cells: FloatArray, shades: FloatArray, tip_of: IntArray, n_tips: int) -> FloatArray:
    """Return the colour of each tip's most frequent category, mixed with white by the share of the others."""
    known = ~np.isnan(cells)
    at = tip_of[known] * len(shades) + cells[known].astype(np.intp)
    counts = np.bincount(at, minlength=n_tips * len(shades)).reshape(n_tips, len(shades))
    share = (counts.max(axis=1) / np.maximum(counts.sum(axis=1), 1))[:, None]
    return np.asarray(share * shades[counts.argmax(axis=1)] + (1 - share))


def _fill_missing(model: FittedModel, table: FloatArray) -> FloatArray:
    """Return the encoded table with missing cells filled by their most probable values."""
    incomplete = model.encoding.incomplete_cells(table)
    rows = np.flatnonzero(incomplete.any(axis=1))
    if not len(rows):
        return table
    predictions = model.expected_cells(table[rows])
    best = np.empty((len(rows), table.shape[1]))
    best[:, predictions.real] = predictions.mean
    for k, column in enumerate(predictions.categorical):
        best[:, column] = predictions.probability[:, predictions.start[k] : predictions.start[k + 1]].argmax(axis=1)
    filled = table.copy()
    filled[rows] = np.where(incomplete[rows], best, table[rows])
    return filled


def plot_co_clustering(
    sample: Any,
    *,
    n_clusters: int | None = None,
    height: float | None = None,
    axes: Mapping[str, Axes] | None = None,
) -> dict[str, Axes]:
    """Draw the probability that two rows share a flat cluster, in the order of a summary tree.

    Parameters
    ----------
    sample : TreeSample, or CoalescentClustering fitted with ``inference="smc"`` or ``"mcmc"``
        A sample is drawn next to its CCD0 tree, a model next to its tree with the colours of its
        clusters. At most 3,000 rows.
    n_clusters, height : optional
        How to cut the sampled trees, see :meth:`TreeSample.co_clustering`; by default as the model does, or by likelihood
        ratio.
    axes : mapping of "dendrogram", "matrix" and "key" to matplotlib Axes, optional
        Where to draw; by default a new pyplot figure.

    Returns
    -------
    dict of str to matplotlib Axes
        With the keys of `axes`.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    InputError
        If there is no sample of trees, or it has too many rows.

    Examples
    --------
    >>> import coaltree as ct
    >>> sample = ct.smc([[0.0], [0.1], [3.0], [3.2]], ct.OrnsteinUhlenbeck(), n_runs=2, random_state=0)
    >>> axes = ct.plot_co_clustering(sample)  # doctest: +SKIP
    """
    trees = getattr(sample, "sample_", sample)
    if not isinstance(trees, TreeSample):
        raise InputError(
            f"sample is of type {type(sample).__name__}, which has no sample of trees; pass a TreeSample, such as the result of "
            "smc(), or a model fitted with inference='smc' or 'mcmc'."
        )
    if trees.n_leaves > MAX_ROWS:
        raise InputError(
            f"The sample has {trees.n_leaves:,} rows; the matrix of all pairs is limited to {MAX_ROWS:,} rows. Draw the tree "
            "with plot_dendrogram instead."
        )
    if isinstance(sample, Cut) and n_clusters is None and height is None:
        probabilities = co_clustering_matrix(trees, sample)
    else:
        probabilities = trees.co_clustering(n_clusters=n_clusters, height=height)
    labels = getattr(sample, "labels_", None)
    visible = select_visible(trees.ccd0() if trees is sample else sample.tree_, None)
    require_matplotlib()

    panels = draw_dendrogram_panels(visible, labels, None, axes, "matrix", 0.0, (), {})
    order, edges = visible.original.leaf_order, tip_edges(visible)
    mesh = panels.panel.pcolormesh(
        edges, edges, probabilities[order][:, order], cmap="Blues", vmin=0.0, vmax=1.0, rasterized=True
    )
    panels.panel.set_xlim(edges[0], edges[-1])
    panels.panel.set_xticks([])
    draw_color_bar(panels, mesh, "probability of one cluster", ticks=[0, 0.5, 1])
    return {"dendrogram": panels.tree, "matrix": panels.panel, "key": panels.key}
