"""A dendrogram with something drawn beside it, row by row, and a key to the colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .dendrogram import extent, plot_dendrogram, write_names
from .fitted import EncodedColumn, FittedModel, encoded_table
from .style import FONT, LIGHT, MIXED, SMALL_FONT, checked_panels, paint
from .visible_tree import Drawn, columns, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


Key = Mapping[str, Mapping[str, Any]]  # colours by their names, in groups

MOST_NAMES = 150
_TREE_WIDTH, _KEY_WIDTH = 2.2, 0.4  # inches
_ACROSS = 4.6  # inches along the leaves where they have no names
_MOST_LINES = 36
_KEY_PITCH = 0.19  # inches a line
_BAR_BELOW, _BAR_HEIGHT = 14.0, 7.0  # points


class Beside(NamedTuple):
    """The axes of a dendrogram, of what is beside it, and of the key, with the room along the leaves in points."""

    tree: Axes
    panel: Axes
    key: Axes
    points: float


def draw_dendrogram(
    drawn: Drawn, labels: Any, colors: Any, axes: Any, name: str, width: float, above: Sequence[str], key: Key
) -> Beside:
    """Draw a dendrogram with its key, and room for a panel beside it, whose rows are to be the tips.

    Parameters
    ----------
    drawn : Drawn
    labels, colors
        As of :func:`plot_dendrogram`.
    axes : mapping or None
        Axes by the names "dendrogram", `name` and "key"; None makes a new figure.
    name : str
        What the panel is called.
    width : float
        Its width in inches, in a new figure; 0 for as wide as high.
    above : sequence of str
        What will be written above the panel, from below to above.
    key : mapping
        The colours of the panel; those of the clusters are known.

    Returns
    -------
    Beside
        The panel has its limits along the leaves, and their names if there is room for them.
    """
    names = drawn.texts() if drawn.n_tips <= MOST_NAMES else []
    panels = checked_panels(axes, ("dendrogram", name, "key"))
    clusters = paint(drawn.whole, drawn.nodes, drawn.n_tips, labels, colors).legend
    lines = _key_lines({"cluster": clusters, **key})
    if panels is None:
        across = extent(drawn, 40.0) if names else _ACROSS
        size = (
            _TREE_WIDTH + (width or across) + _room(names, FONT) + _room([line for line, _ in lines], SMALL_FONT) + 0.9,
            _room(above, FONT) + max(across + 0.9, _KEY_PITCH * len(lines)) + 0.2,
        )
        panels = _new_panels(size, {"dendrogram": _TREE_WIDTH, name: width or across, "key": _KEY_WIDTH})
        points = 72 * across
    else:
        box = panels["dendrogram"].get_window_extent()
        points = 72 * box.height / panels["dendrogram"].figure.dpi
    tree, panel = panels["dendrogram"], panels[name]
    plot_dendrogram(
        drawn.whole, labels=labels, colors=colors, ax=tree, leaf_names=False, support=False, collapse=drawn.n_tips
    )
    legend = tree.get_legend()
    if legend is not None:
        legend.remove()  # the key has it
    panel.set_ylim(tree.get_ylim())
    panel.set_yticks([])
    for spine in panel.spines.values():
        spine.set_visible(False)
    write_names(panel, drawn, names, "left", points, insist=False)
    panels["key"].set_axis_off()
    if lines:
        _write_key(panels["key"], lines)
    return Beside(tree, panel, panels["key"], points)


def _room(texts: Sequence[str], size: float) -> float:
    """Return how many inches the longest of some texts takes."""
    return max((columns(shown(text)) for text in texts), default=0.0) * 0.6 * size / 72


def _new_panels(size: tuple[float, float], widths: Mapping[str, float]) -> dict[str, Any]:
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=size, layout="constrained")
    found: dict[str, Any] = figure.subplot_mosaic([list(widths)], width_ratios=list(widths.values()))
    return found


def edges_of(drawn: Drawn) -> FloatArray:
    """Return where the room of each tip begins along the leaves, and where the last one ends."""
    return np.concatenate([[0.0], np.cumsum(drawn.widths[drawn.tree.leaf_order])]) - 0.5


def _key_lines(key: Key) -> list[tuple[str, Any]]:
    """Return the names of colours with the colours, group by group under their headings, as far as there is room."""
    lines: list[tuple[str, Any]] = []
    for heading, group in key.items():
        if group and len(lines) + len(group) < _MOST_LINES:
            lines += [(heading, None), *group.items()]
    return lines


def _write_key(ax: Axes, lines: list[tuple[str, Any]]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(facecolor="none" if color is None else color) for _, color in lines]
    legend = ax.legend(
        handles,
        [" "] * len(lines),
        loc="upper left",
        bbox_to_anchor=(0.0, 1.0),
        frameon=False,
        fontsize=SMALL_FONT,
        handlelength=1.0,
        handleheight=0.9,
        borderaxespad=0.0,
    )
    # Written afterwards, since matplotlib hides labels that begin with an underscore.
    for text, (name, color) in zip(legend.get_texts(), lines, strict=True):
        text.set_parse_math(False)
        text.set_text(shown(name))
        if color is None:
            text.set_fontweight("bold")


def write_color_bar(beside: Beside, colors: Any, label: str, **options: Any) -> None:
    """Draw the scale of colours below the panel."""
    bar = beside.panel.inset_axes((0.0, -(_BAR_BELOW + _BAR_HEIGHT) / beside.points, 1.0, _BAR_HEIGHT / beside.points))
    beside.panel.figure.colorbar(colors, cax=bar, orientation="horizontal", **options)
    bar.set_xlabel(label, fontsize=SMALL_FONT)
    bar.tick_params(labelsize=SMALL_FONT)
