"""Fonts, colours and axes that all figures share."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import quote, require_package
from ..errors import InputError
from ..metrics import encode_labels
from ..tree.tree import Tree
from .visible_tree import name_width, short_name, short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

# Fonts for scripts that matplotlib's own font lacks, used if installed.
_FALLBACKS = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Noto Sans JP",
    "Noto Sans SC",
    "Noto Sans KR",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "WenQuanYi Zen Hei",
    "Hiragino Sans",
    "PingFang SC",
    "Apple SD Gothic Neo",
    "Yu Gothic",
    "Microsoft YaHei",
    "Malgun Gothic",
    "Segoe UI Symbol",
    "Arial Unicode MS",
)


@contextlib.contextmanager
def font_fallbacks() -> Iterator[None]:
    """Draw text in any script that the installed fonts support, and missing glyphs as boxes without a warning.

    Create and draw texts inside the block: a text takes its fonts when it is created, and matplotlib warns when it is
    drawn.
    """
    import matplotlib
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    families = [*matplotlib.rcParams["font.family"], *(name for name in _FALLBACKS if name in installed)]
    with matplotlib.rc_context({"font.family": families}), warnings.catch_warnings():
        # Warnings about missing glyphs and about scripts without their ligatures.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support", category=UserWarning)
        yield


# Paul Tol's "muted" scheme: nine colours that colour-blind readers can distinguish, the most visible first. For more, see
# `distinct_colors`.
PALETTE = (
    "#332288",
    "#CC6677",
    "#44AA99",
    "#999933",
    "#88CCEE",
    "#882255",
    "#117733",
    "#AA4499",
    "#DDCC77",
)
# Paul Tol's "light" scheme, for filled cells; it differs from the colours of clusters.
LIGHT = ("#44BB99", "#EEDD88", "#FFAABB", "#BBCC33", "#99DDFF", "#EE8866", "#AAAA00", "#77AADD")
PLAIN = "#3A3A3A"
MIXED = "#A6A6A6"
MAX_LEGEND = 30
MAX_COLORS = 100  # that differ; more clusters share them
_MIN_LIGHTNESS, _MAX_LIGHTNESS = 25, 80  # of colours beyond the palette, from 0 (black) to 100
_CHANNEL_STEPS = 18  # of red, green and blue, among which these are chosen


def distinct_colors(count: int) -> list[str]:
    """Return different colours: the palette, then those that are farthest from all before, from grey and from white.

    Parameters
    ----------
    count : int
        Beyond `MAX_COLORS` they repeat.

    Examples
    --------
    >>> distinct_colors(3) == list(PALETTE[:3]), len(set(distinct_colors(60)))
    (True, 60)
    """
    colors = [*PALETTE, *_more_colors()] if count > len(PALETTE) else PALETTE
    return [color for color, _ in zip(cycle(colors), range(count), strict=False)]


@cache
def _more_colors() -> list[str]:
    """Return the colours beyond the palette, by distances in the CIELAB space, which are those that eyes see."""
    steps = np.linspace(0, 255, _CHANNEL_STEPS).round().astype(int)
    candidates = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
    places = _to_lab(candidates)
    usable = (places[:, 0] >= _MIN_LIGHTNESS) & (places[:, 0] <= _MAX_LIGHTNESS)
    candidates, places = candidates[usable], places[usable]
    given = [[int(color[k : k + 2], 16) for k in (1, 3, 5)] for color in (*PALETTE, MIXED, PLAIN, "#FFFFFF")]
    distances = np.min(np.sum((places[:, None] - _to_lab(np.array(given))) ** 2, axis=2), axis=1)
    colors = []
    for _ in range(MAX_COLORS - len(PALETTE)):
        best = int(np.argmax(distances))
        colors.append("#{:02X}{:02X}{:02X}".format(*candidates[best].tolist()))
        distances = np.minimum(distances, np.sum((places - places[best]) ** 2, axis=1))
    return colors


def _to_lab(colors: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the CIELAB coordinates of sRGB colours (D65), for channels from 0 to 255."""
    shares = colors / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    matrix = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    ratios = linear @ matrix.T / matrix.sum(axis=1)
    f = np.where(ratios > (6 / 29) ** 3, np.cbrt(ratios), ratios / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)


class NodeColors(NamedTuple):
    """The colours of some nodes of a tree."""

    shades: list[Any]
    node_shades: NDArray[np.intp]  # index into `shades`
    legend: dict[str, Any]  # colour of each cluster by name; empty if there is no legend


def color_nodes(
    tree: Tree, nodes: NDArray[np.intp], n_tips: int, labels: Iterable[Hashable] | None, colors: Any
) -> NodeColors:
    """Choose the colours of nodes and of the branches above them.

    Parameters
    ----------
    tree : Tree
    nodes : ndarray of int
        The visible nodes, tips first.
    n_tips : int
        Number of tips among them.
    labels : iterable of hashable, optional
        Cluster of each leaf.
    colors : str, sequence or mapping, optional
        As of :func:`plot_dendrogram`.

    Returns
    -------
    NodeColors
        A node has the colour of a cluster if all leaves below it are of that cluster, and is grey otherwise.
    """
    if labels is None:
        if colors is not None and not isinstance(colors, str):
            raise InputError("colors must be one colour when there are no labels; pass labels to colour clusters.")
        if colors is not None:
            check_color(colors, "colors")
        return NodeColors([PLAIN if colors is None else colors], np.zeros(len(nodes), dtype=np.intp), {})
    values = list_labels(labels)
    codes, n_clusters = encode_labels(values, tree.n_leaves)
    clusters: list[Any] = list(dict.fromkeys(values))
    ordered = codes[tree.leaf_order]
    # A subtree has one cluster if the cluster never changes between neighbouring leaves.
    changes = np.concatenate([[0], np.cumsum(ordered[1:] != ordered[:-1])])
    begin = tree.first_positions[nodes]
    is_one_cluster = changes[begin] == changes[begin + tree.leaf_counts[nodes] - 1]
    # Clusters of tips come first: among them, no colour is repeated before all colours are used.
    tips = np.argsort(begin[:n_tips])
    palette = _palette(clusters, np.concatenate([ordered[begin[tips][is_one_cluster[tips]]], ordered]), colors)
    shades = [palette[code] for code in range(n_clusters)] + [MIXED]
    node_shades = np.where(is_one_cluster, ordered[begin], n_clusters)
    if not 1 < n_clusters <= MAX_LEGEND:
        return NodeColors(shades, node_shades, {})
    return NodeColors(shades, node_shades, {str(clusters[code]): palette[code] for code in _sorted_codes(clusters)})


def list_labels(labels: Any) -> Any:
    """Return labels as a list, because iterators end; what is no list of labels is left to `encode_labels`."""
    return list(labels) if isinstance(labels, Iterable) and not isinstance(labels, (str, bytes, Mapping)) else labels


def check_color(color: Any, name: str) -> None:
    """Raise unless matplotlib knows a colour."""
    require_matplotlib()
    from matplotlib.colors import is_color_like

    if not is_color_like(color):
        raise InputError(
            f"{name} holds {quote(color)}, which is no colour of matplotlib, such as 'red', '#CC6677' or (0.8, 0.4, 0.5)."
        )


def _palette(clusters: list[Any], ordered: NDArray[np.intp], colors: Any) -> dict[int, Any]:
    """Return the colour of each cluster's code."""
    if isinstance(colors, Mapping):
        missing = [cluster for cluster in clusters if cluster not in colors]
        if missing:
            raise InputError(f"colors has no colour for the cluster {quote(missing[0])}.")
        for cluster in clusters:
            check_color(colors[cluster], f"colors[{quote(cluster)}]")
        return {code: colors[cluster] for code, cluster in enumerate(clusters)}
    if colors is None:
        colors = distinct_colors(min(len(clusters), MAX_COLORS))
    choice = list(colors) if isinstance(colors, Iterable) and not isinstance(colors, str) else [colors]
    if not choice:
        raise InputError("colors is empty; give at least one colour.")
    for color in choice:
        check_color(color, "colors")
    # If colours repeat, assign them along the leaves, so that neighbouring clusters never share one.
    many = len(clusters) > len(choice)
    order = list(dict.fromkeys(ordered.tolist())) if many else _sorted_codes(clusters)
    return dict(zip(order, cycle(choice), strict=False))


def _sorted_codes(clusters: list[Any]) -> list[int]:
    """Sort clusters by value, or as text with natural order of numbers: c2 before c10. The outliers, -1, come last."""
    if not any(isinstance(cluster, str) for cluster in clusters):
        try:
            return sorted(range(len(clusters)), key=lambda code: (clusters[code] == -1, clusters[code]))
        except TypeError:
            pass
    pieces = [re.split(r"(\d+)", str(cluster)) for cluster in clusters]
    keys = [[(int(p), "") if i % 2 else (0, p) for i, p in enumerate(part)] for part in pieces]
    return sorted(range(len(clusters)), key=keys.__getitem__)


FONT = 9.0
SMALL_FONT = 8.0


def require_matplotlib() -> None:
    """Raise unless matplotlib is installed."""
    require_package("matplotlib", "Figures need", "plot")


def check_axes(ax: object, argument: str = "ax") -> None:
    """Raise unless the argument is None or matplotlib Axes."""
    if ax is not None and not hasattr(ax, "add_collection"):
        raise InputError(
            f"{argument} is of type {type(ax).__name__}; it must be matplotlib Axes, as plt.subplots() gives, or None."
        )


def check_panels(axes: Any, names: Sequence[str]) -> dict[str, Axes] | None:
    """Return the axes of a figure by panel name, or None if none were given."""
    if axes is None:
        return None
    if not isinstance(axes, Mapping) or any(name not in axes for name in names):
        raise InputError(
            f"axes must be a mapping of {', '.join(map(repr, names))} to matplotlib Axes, as plt.subplot_mosaic gives, or None."
        )
    for name in names:
        check_axes(axes[name], f"axes[{name!r}]")
    return {name: axes[name] for name in names}


def new_axes(size: tuple[float, float]) -> Axes:
    """Return the axes of a new pyplot figure with room for all texts."""
    import matplotlib.pyplot as plt

    # The constrained layout keeps names and legend inside the figure, and changes no global setting.
    return plt.subplots(figsize=size, layout="constrained")[1]


def new_panels(names: Sequence[str], size: tuple[float, float]) -> dict[str, Axes]:
    """Return the axes of a new pyplot figure by name, stacked, with a shared x axis."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=size, layout="constrained")
    axes: dict[str, Axes] = figure.subplot_mosaic([[name] for name in names], sharex=True)
    return axes


def draw_legend(ax: Axes, legend: dict[str, Any], *, below: bool = False) -> None:
    """Add a legend of the clusters above the axes or below them."""
    if not legend:
        return
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=color, linewidth=2.5) for color in legend.values()]
    names = short_names(list(legend))
    width = ax.get_window_extent().width / ax.figure.dpi
    visible = ax.legend(
        handles,
        [" "] * len(names),
        loc="upper left" if below else "lower left",
        bbox_to_anchor=(0.0, 0.0 if below else 1.0),
        ncols=-(-len(names) // _legend_rows(names, width)),
        frameon=False,
        fontsize=FONT,
        handlelength=1.4,
        columnspacing=1.4,
        borderaxespad=0.4,
    )
    # Set afterwards, because matplotlib hides labels that begin with an underscore.
    for text, name in zip(visible.get_texts(), names, strict=True):
        text.set_parse_math(False)
        text.set_text(name)


def legend_height(legend: dict[str, Any], width: float) -> float:
    """Return the inches of a legend that `draw_legend` adds to axes of some width; 0 if it is empty."""
    return 0.2 * _legend_rows(short_names(list(legend)), width) if legend else 0.0


def _legend_rows(names: list[str], width: float) -> int:
    """Return the number of rows of a legend within some inches."""
    return -(-len(names) // max(1, int(max(width, 3.0) / (0.075 * (max(map(name_width, names)) + 7)))))


def hide_overlaps(ax: Axes, texts: Sequence[Text], obstacles: Sequence[Text] = ()) -> None:
    """Leave out texts that would touch earlier ones or obstacles, each time the axes are drawn."""
    from matplotlib.artist import Artist

    class Chooser(Artist):
        """Decides which of the texts are visible; it is drawn before them and draws nothing itself."""

        def draw(self, renderer: Any) -> None:
            boxes = np.array([text.get_window_extent(renderer).extents for text in obstacles]).reshape(-1, 4)
            for text in texts:
                text.set_visible(True)
                x0, y0, x1, y1 = text.get_window_extent(renderer).extents
                touches = (boxes[:, 0] < x1) & (boxes[:, 2] > x0) & (boxes[:, 1] < y1) & (boxes[:, 3] > y0)
                text.set_visible(not touches.any())
                if text.get_visible():
                    boxes = np.vstack([boxes, [x0, y0, x1, y1]])

    chooser = Chooser()
    chooser.set_zorder(-1)
    chooser.set_in_layout(False)
    ax.add_artist(chooser)


def set_axis_label(ax: Axes, axis: str, name: str) -> None:
    """Label an axis with a column's name, as plain text: a dollar sign does not begin a formula."""
    label = getattr(ax, f"set_{axis}label")(short_name(name))
    label.set_parse_math(False)


def hide_spines(ax: Axes, *sides: str) -> None:
    """Hide spines of axes."""
    for side in sides:
        ax.spines[side].set_visible(False)
