"""The colours of clusters in a dendrogram."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._optional import require_package
from ..errors import InputError
from ..metrics import encode_labels
from ..tree.tree import Tree
from .visible_tree import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# For what matplotlib's own font lacks, as far as they are installed.
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
def any_script() -> Iterator[None]:
    """Draw text in whatever script the installed fonts know, and the rest as boxes without a warning.

    Both making and drawing the text belong into the block: a text takes its fonts when it is made, and matplotlib warns
    when it is drawn.
    """
    import matplotlib
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    families = [*matplotlib.rcParams["font.family"], *(name for name in _FALLBACKS if name in installed)]
    with matplotlib.rc_context({"font.family": families}), warnings.catch_warnings():
        # Which glyphs are missing, and which scripts are set without their ligatures.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support", category=UserWarning)
        yield


# Paul Tol's "muted" scheme: nine colours that stay apart for colour-blind eyes, those that carry best first.
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
# Paul Tol's "light" scheme, for cells that are filled: it stays apart from the clusters' colours.
LIGHT = ("#44BB99", "#EEDD88", "#FFAABB", "#BBCC33", "#99DDFF", "#EE8866", "#AAAA00", "#77AADD")
PLAIN = "#3A3A3A"
MIXED = "#A6A6A6"
MAX_LEGEND = 12


class Paint(NamedTuple):
    """The colours of some nodes of a tree."""

    shades: list[Any]
    of_nodes: NDArray[np.intp]  # which of the shades each node has
    legend: dict[str, Any]  # the clusters' colours by their names; empty if none is due


def paint(tree: Tree, nodes: NDArray[np.intp], n_tips: int, labels: Iterable[Hashable] | None, colors: Any) -> Paint:
    """Choose the colours of nodes and of the branches above them.

    Parameters
    ----------
    tree : Tree
    nodes : ndarray of int
        What is drawn of the tree.
    n_tips : int
        How many of these, the first ones, have nothing drawn below them.
    labels : iterable of hashable, optional
        Cluster of each leaf.
    colors : str, sequence or mapping, optional
        As of :func:`plot_dendrogram`.

    Returns
    -------
    Paint
        A node has the colour of a cluster if all leaves below it are of that cluster, and is grey otherwise.
    """
    if labels is None:
        if colors is not None and not isinstance(colors, str):
            raise InputError("colors must be one colour when there are no labels; pass labels to colour clusters.")
        return Paint([colors or PLAIN], np.zeros(len(nodes), dtype=np.intp), {})
    given = list(labels) if isinstance(labels, Iterable) and not isinstance(labels, str) else labels
    codes, n_clusters = encode_labels(given, tree.n_leaves)
    clusters: list[Any] = list(dict.fromkeys(given))
    drawn = codes[tree.leaf_order]
    # Leaves are of one cluster if it never changes between neighbours as they are drawn.
    changes = np.concatenate([[0], np.cumsum(drawn[1:] != drawn[:-1])])
    begin = tree.first_positions[nodes]
    one = changes[begin] == changes[begin + tree.leaf_counts[nodes] - 1]
    # What a tip shows comes first: there a colour should not come again before all others have.
    tips = np.argsort(begin[:n_tips])
    palette = _palette(clusters, np.concatenate([drawn[begin[tips][one[tips]]], drawn]), colors)
    shades = [palette[code] for code in range(n_clusters)] + [MIXED]
    of_nodes = np.where(one, drawn[begin], n_clusters)
    if not 1 < n_clusters <= MAX_LEGEND:
        return Paint(shades, of_nodes, {})
    return Paint(shades, of_nodes, {str(clusters[code]): palette[code] for code in _sorted_codes(clusters)})


def _palette(clusters: list[Any], drawn: NDArray[np.intp], colors: Any) -> dict[int, Any]:
    """Return the colour of each cluster's code."""
    if isinstance(colors, Mapping):
        lacking = [cluster for cluster in clusters if cluster not in colors]
        if lacking:
            raise InputError(f"colors has no colour for the cluster {lacking[0]!r}.")
        return {code: colors[cluster] for code, cluster in enumerate(clusters)}
    choice = PALETTE if colors is None else [colors] if isinstance(colors, str) else list(colors)
    if not choice:
        raise InputError("colors is empty; give at least one colour.")
    # Where colours come again, go along the leaves, so that neighbouring clusters never share one.
    many = len(clusters) > len(choice)
    order = list(dict.fromkeys(drawn.tolist())) if many else _sorted_codes(clusters)
    return dict(zip(order, cycle(choice), strict=False))


def _sorted_codes(clusters: list[Any]) -> list[int]:
    """Sort clusters by value, or as text in which numbers count as numbers: c2 before c10; -1, for outliers, comes last."""
    if not any(isinstance(cluster, str) for cluster in clusters):
        try:
            return sorted(range(len(clusters)), key=lambda code: (clusters[code] == -1, clusters[code]))
        except TypeError:
            pass
    pieces = [re.split(r"(\d+)", str(cluster)) for cluster in clusters]
    keys = [[(int(p), "") if i % 2 else (0, p) for i, p in enumerate(piece)] for piece in pieces]
    return sorted(range(len(clusters)), key=keys.__getitem__)


FONT = 9.0
SMALL_FONT = 8.0


def need_matplotlib() -> None:
    """Raise, with a word on how to get it, unless matplotlib is installed."""
    require_package("matplotlib", "Pictures are drawn with", "plot")


def check_axes(ax: object, what: str = "ax") -> None:
    """Refuse what is neither None nor axes of matplotlib."""
    if ax is not None and not hasattr(ax, "add_collection"):
        raise InputError(
            f"{what} is of type {type(ax).__name__}; it must be matplotlib Axes, as plt.subplots() gives, or None."
        )


def checked_panels(axes: Any, names: Sequence[str]) -> dict[str, Axes] | None:
    """Return axes by the names of a picture's panels, or None if there are none yet."""
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
    """Return the axes of a new pyplot figure, in which all texts have room."""
    import matplotlib.pyplot as plt

    # The constrained layout keeps names and legend inside of the figure; it belongs to the figure alone.
    return plt.subplots(figsize=size, layout="constrained")[1]


def new_panels(names: Sequence[str], size: tuple[float, float]) -> dict[str, Axes]:
    """Return axes of a new pyplot figure, one below the other with one horizontal axis, by name."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=size, layout="constrained")
    found: dict[str, Axes] = figure.subplot_mosaic([[name] for name in names], sharex=True)
    return found


def write_label(ax: Axes, axis: str, name: str) -> None:
    """Name an axis after a column; names are text: a dollar sign in one does not begin a formula."""
    label = getattr(ax, f"set_{axis}label")(shown(name))
    label.set_parse_math(False)


def hide_spines(ax: Axes, *sides: str) -> None:
    """Take away lines around axes."""
    for side in sides:
        ax.spines[side].set_visible(False)
