"""A dendrogram with another panel beside it, row by row, and a key to the colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .dendrogram import draw_names, extent, plot_dendrogram
from .style import FONT, SMALL_FONT, check_panels, color_nodes
from .visible_tree import VisibleTree, name_width, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

Key = Mapping[str, Mapping[str, Any]]  # colours by group and name

MAX_NAMES = 150
_TREE_WIDTH, _KEY_WIDTH = 2.2, 0.4  # inches
_ACROSS = 4.6  # inches along the leaves without names
_MAX_KEY_LINES = 36
_KEY_PITCH = 0.19  # inches a line
_BAR_BELOW, _BAR_HEIGHT = 14.0, 7.0  # points


class DendrogramPanels(NamedTuple):
    """The axes of a dendrogram, of the panel next to it and of the key, and their height in points."""

    tree: Axes
    panel: Axes
    key: Axes
    points: float


def draw_dendrogram_panels(
    visible: VisibleTree, labels: Any, colors: Any, axes: Any, name: str, width: float, above: Sequence[str], key: Key
) -> DendrogramPanels:
    """Draw a dendrogram and its key, with an empty panel between them whose rows are the tips.

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
    lines = _key_lines({"cluster": clusters, **key})
    if panels is None:
        across = extent(visible, 40.0) if names else _ACROSS
        size = (
            _TREE_WIDTH
            + (width or across)
            + _text_width(names, FONT)
            + _text_width([line for line, _ in lines], SMALL_FONT)
            + 0.9,
            _text_width(above, FONT) + max(across + 0.9, _KEY_PITCH * len(lines)) + 0.2,
        )
        panels = _new_panels(size, {"dendrogram": _TREE_WIDTH, name: width or across, "key": _KEY_WIDTH})
        points = 72 * across
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
    draw_names(panel, visible, names, "left", points, insist=False)
    panels["key"].set_axis_off()
    if lines:
        _draw_key(panels["key"], lines)
    return DendrogramPanels(tree, panel, panels["key"], points)


def _text_width(texts: Sequence[str], size: float) -> float:
    """Return the width of the longest text in inches."""
    return max((name_width(short_name(text)) for text in texts), default=0.0) * 0.6 * size / 72


def _new_panels(size: tuple[float, float], widths: Mapping[str, float]) -> dict[str, Any]:
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=size, layout="constrained")
    found: dict[str, Any] = figure.subplot_mosaic([list(widths)], width_ratios=list(widths.values()))
    return found


def tip_edges(visible: VisibleTree) -> FloatArray:
    """Return the edges between the tips along the leaves."""
    return np.concatenate([[0.0], np.cumsum(visible.widths[visible.tree.leaf_order])]) - 0.5


def _key_lines(key: Key) -> list[tuple[str, Any]]:
    """Return names and colours, group by group under their headings, as far as they fit."""
    lines: list[tuple[str, Any]] = []
    for heading, group in key.items():
        if group and len(lines) + len(group) < _MAX_KEY_LINES:
            lines += [(heading, None), *group.items()]
    return lines


def _draw_key(ax: Axes, lines: list[tuple[str, Any]]) -> None:
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
    # Set afterwards, because matplotlib hides labels that begin with an underscore.
    for text, (name, color) in zip(legend.get_texts(), lines, strict=True):
        text.set_parse_math(False)
        text.set_text(short_name(name))
        if color is None:
            text.set_fontweight("bold")


def draw_color_bar(panels: DendrogramPanels, colors: Any, label: str, **options: Any) -> None:
    """Draw the colour scale below the panel."""
    bar = panels.panel.inset_axes((0.0, -(_BAR_BELOW + _BAR_HEIGHT) / panels.points, 1.0, _BAR_HEIGHT / panels.points))
    panels.panel.figure.colorbar(colors, cax=bar, orientation="horizontal", **options)
    bar.set_xlabel(label, fontsize=SMALL_FONT)
    bar.tick_params(labelsize=SMALL_FONT)
