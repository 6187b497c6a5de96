"""Dendrograms with matplotlib, which is imported only when one is drawn."""

from __future__ import annotations

import math
import numbers
import re
import unicodedata
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, MissingDependencyError
from ..metrics import encode_labels
from ..tree.layout import elbows, node_positions
from ..tree.summary import SummaryTree
from ..tree.tree import Tree, checked_tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
PLAIN = "#3A3A3A"
MIXED = "#A6A6A6"
MAX_LEGEND = 12
_NAME_CHARACTERS = 30
_SMALLEST_FONT, _LARGEST_FONT = 4.0, 9.0
_SUPPORT_FONT, _SUPPORT_COLOR = 6.0, "#555555"

Orientation = Literal["left", "right", "top", "bottom"]


def plot_dendrogram(
    tree: Tree,
    *,
    labels: Iterable[Hashable] | None = None,
    ax: Axes | None = None,
    orientation: Orientation = "left",
    leaf_names: bool | Literal["auto"] = "auto",
    height_label: str = "height",
    colors: str | Sequence[Any] | Mapping[Any, Any] | None = None,
    linewidth: float | None = None,
    max_leaf_names: int = 150,
    support: Iterable[float] | bool | Literal["auto"] = "auto",
) -> Axes:
    """Draw a tree.

    Parameters
    ----------
    tree : Tree
    labels : iterable of hashable, length n, optional
        Flat cluster of each leaf, in row order. A branch takes the colour of a cluster if all leaves below it
        are of that cluster, and is grey otherwise. Up to twelve clusters are named in a legend outside of
        the axes.
    ax : matplotlib Axes, optional
        Where to draw. By default a new pyplot figure, of a size that suits the number of leaves.
    orientation : {"left", "right", "top", "bottom"}, default "left"
        The side on which the root stands.
    leaf_names : bool or "auto", default "auto"
        Whether to write the leaves' names. ``"auto"`` does for at most ``max_leaf_names`` leaves, if they
        have room. Names of more than 30 characters are shortened.
    height_label : str, default "height"
        Label of the axis of heights.
    colors : str, sequence or mapping, optional
        One colour for the whole tree when there are no ``labels``; otherwise colours for the clusters in
        sorted order, used again from the first when there are more clusters, or a mapping from cluster to
        colour.
    linewidth : float, optional
        Width of the branches in points; by default thinner for more leaves.
    max_leaf_names : int, default 150
        Largest number of leaves whose names ``"auto"`` writes.
    support : iterable of float, bool or "auto", default "auto"
        Share of trees that have each merge's clade, most recent first, written in per cent beside the merge; NaN and the
        root's are not written. True takes the support of a :class:`SummaryTree`, and so does ``"auto"`` where names are written.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    InputError
        If ``tree`` is no tree, or ``labels`` or an option cannot be used.

    Examples
    --------
    >>> import coaltree as ct
    >>> tree = ct.Tree.from_newick("((ape:1,man:1):2,owl:3);")
    >>> ax = ct.plot_dendrogram(tree, labels=[0, 0, 1])  # doctest: +SKIP
    >>> ax.figure.savefig("tree.png")  # doctest: +SKIP
    """
    tree = checked_tree(tree)
    if orientation not in ("left", "right", "top", "bottom"):
        raise InputError(f"orientation is {orientation!r}; it must be 'left', 'right', 'top' or 'bottom'.")
    if leaf_names not in (True, False, "auto"):
        raise InputError(f"leaf_names is {leaf_names!r}; it must be True, False or 'auto'.")
    if not _is_number(max_leaf_names) or math.isnan(max_leaf_names):
        raise InputError(f"max_leaf_names is {max_leaf_names!r}; it must be a number of leaves.")
    if linewidth is not None and not (_is_number(linewidth) and 0 <= linewidth < math.inf):
        raise InputError(f"linewidth is {linewidth!r}; it must be a number of points of at least 0, or None.")
    if ax is not None and not hasattr(ax, "add_collection"):
        raise InputError(
            f"ax is of type {type(ax).__name__}; it must be matplotlib Axes, as plt.subplots() gives, or None."
        )
    shares = _checked_support(tree, support)
    paint, legend = _paint(tree, labels, colors)
    try:
        from matplotlib.collections import LineCollection
    except ImportError as error:
        raise MissingDependencyError(
            'Dendrograms are drawn with matplotlib, which is not installed; run: pip install "coaltree[plot]"'
        ) from error

    n = tree.n_leaves
    sideways = orientation in ("left", "right")
    wants_names = leaf_names is True or (leaf_names == "auto" and n <= max_leaf_names)
    names = [_shown(tree.leaf_names[leaf]) for leaf in tree.leaf_order] if wants_names else []
    points = None
    if ax is None:
        ax, points = _new_axes(n, names, sideways)
    ax.add_collection(
        LineCollection(
            list(_branches(tree)[:, :, ::-1] if sideways else _branches(tree)),
            colors=paint,
            linewidths=float(np.clip(20 / n**0.5, 0.6, 1.4)) if linewidth is None else linewidth,
            capstyle="butt",
            joinstyle="miter",
        ),
        autolim=False,
    )
    _frame(ax, tree, orientation, height_label)
    _write_names(ax, names, orientation, points, insist=leaf_names is True)
    if shares is not None and (names or not isinstance(support, str)):
        _write_support(ax, tree, shares, orientation)
    if legend:
        _write_legend(ax, legend, orientation)
    return ax


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def _branches(tree: Tree) -> NDArray[np.float64]:
    """Lines of three points (position, height), two for each merge: up from the child, then across."""
    points = elbows(tree)
    middle = np.stack([node_positions(tree)[tree.n_leaves :], tree.merge_heights], axis=1)[:, None]
    halves = np.stack(
        [
            np.concatenate([points[:, :2], middle], axis=1),
            np.concatenate([points[:, :1:-1], middle], axis=1),
        ],
        axis=1,
    )
    return halves.reshape(-1, 3, 2)


def _paint(tree: Tree, labels: Iterable[Hashable] | None, colors: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the colour of each branch, and the colours of the clusters by name if a legend is due."""
    if labels is None:
        if colors is not None and not isinstance(colors, str):
            raise InputError("colors must be one colour when there are no labels; pass labels to colour clusters.")
        return [colors or PLAIN], {}
    given = list(labels) if isinstance(labels, Iterable) and not isinstance(labels, str) else labels
    codes, n_clusters = encode_labels(given, tree.n_leaves)
    clusters: list[Any] = list(dict.fromkeys(given))
    palette = _palette(clusters, codes[tree.leaf_order], colors)
    below: list[int] = codes.tolist()
    for left, right in tree.children.tolist():
        below.append(below[left] if below[left] == below[right] else -1)
    shades = [palette[code] for code in range(n_clusters)] + [MIXED]
    paint = [shades[below[node]] for node in tree.children.ravel().tolist()]
    if not 1 < n_clusters <= MAX_LEGEND:
        return paint, {}
    return paint, {str(clusters[code]): palette[code] for code in _sorted_codes(clusters)}


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
    order = _sorted_codes(clusters)
    if len(clusters) > len(choice):
        # Colours come again: go along the leaves, so that neighbouring clusters never share one.
        order = list(dict.fromkeys(drawn.tolist()))
    return dict(zip(order, cycle(choice), strict=False))


def _sorted_codes(clusters: list[Any]) -> list[int]:
    """Sort clusters by value, or as text in which numbers count as numbers: c2 before c10."""
    if not any(isinstance(cluster, str) for cluster in clusters):
        try:
            return sorted(range(len(clusters)), key=clusters.__getitem__)
        except TypeError:
            pass
    pieces = [re.split(r"(\d+)", str(cluster)) for cluster in clusters]
    keys = [[(int(p), "") if i % 2 else (0, p) for i, p in enumerate(piece)] for piece in pieces]
    return sorted(range(len(clusters)), key=keys.__getitem__)


def _new_axes(n_leaves: int, names: list[str], sideways: bool) -> tuple[Axes, float]:
    """Make a figure with room for every name, or of the usual size where there are none.

    Returns the axes and their extent along the leaves in points, which they have only once they are drawn.
    """
    import matplotlib.pyplot as plt

    longest = max(map(_columns, names), default=0.0) * 0.6 * _LARGEST_FONT / 72
    # Names move closer together as they become many, from 12 points a name to 8.
    pitch = float(np.interp(n_leaves, [60, 150], [0.165, 0.11]))
    across = float(np.clip(pitch * n_leaves, 1.1, 40.0)) if names else 4.6
    size = (5.5 + longest, across + 0.9) if sideways else (max(across + 0.9, 3.0), 4.0 + longest)
    # The constrained layout keeps names and legend inside of the figure; it belongs to the figure alone.
    return plt.subplots(figsize=size, layout="constrained")[1], 72 * across


def _frame(ax: Axes, tree: Tree, orientation: Orientation, height_label: str) -> None:
    """Set limits, the axis of heights and the spines."""
    root = float(tree.heights[-1]) or 1.0
    limits = (-0.01 * root, 1.02 * root)
    # Leaves are read from the top down and from left to right.
    places = (-0.6, tree.n_leaves - 0.4)
    if orientation in ("left", "right"):
        ax.set_xlim(limits[::-1] if orientation == "left" else limits)
        ax.set_ylim(places[::-1])
        ax.set_xlabel(height_label)
        ax.set_yticks([])
        kept = "bottom"
    else:
        ax.set_ylim(limits if orientation == "top" else limits[::-1])
        ax.set_xlim(places)
        ax.set_ylabel(height_label)
        ax.set_xticks([])
        kept = "left"
    for side, spine in ax.spines.items():
        spine.set_visible(side == kept)
    # The line of the axis spans the heights of the tree and no more.
    ax.spines[kept].set_bounds(0.0, root)


def _write_names(ax: Axes, names: list[str], orientation: Orientation, points: float | None, *, insist: bool) -> None:
    """Write the names beside their leaves, in a size in which they do not touch.

    ``points`` is the room for all of them, if known better than from the axes as they stand.
    """
    if not names:
        return
    sideways = orientation in ("left", "right")
    if points is None:
        box = ax.get_window_extent()
        points = 72 * (box.height if sideways else box.width) / ax.figure.dpi
    room = points / len(names)
    if room < _SMALLEST_FONT and not insist:
        return
    size = float(np.clip(0.85 * room, _SMALLEST_FONT if room >= _SMALLEST_FONT else 1.0, _LARGEST_FONT))
    axis = ax.yaxis if sideways else ax.xaxis
    # Names are text: a dollar sign in one does not begin a formula.
    axis.set_ticks(range(len(names)), labels=names, fontsize=size, parse_math=False)
    axis.set_tick_params(length=0, pad=3)
    if orientation == "left":
        ax.yaxis.tick_right()
    elif orientation == "bottom":
        ax.xaxis.tick_top()
    axis.set_tick_params(length=0)
    if not sideways:
        for text in axis.get_ticklabels():
            text.set_rotation(90)


def _checked_support(tree: Tree, support: Any) -> NDArray[np.float64] | None:
    """Return the share of each merge, or None if there is none to write."""
    automatic = isinstance(support, str) and support == "auto"
    if support is None or support is False or (automatic and not isinstance(tree, SummaryTree)):
        return None
    if support is True or isinstance(support, str):
        if support is not True and not automatic:
            raise InputError(f"support is {support!r}; it must be True, False, 'auto' or one number a merge.")
        if not isinstance(tree, SummaryTree):
            raise InputError(
                "support=True needs a tree with support values, as of TreeSample.mcc(); pass the values instead."
            )
        return tree.support
    shares = np.asarray(list(support), dtype=np.float64)
    if shares.shape != (tree.n_leaves - 1,):
        raise InputError(f"support has shape {shares.shape}; there are {tree.n_leaves - 1} merges.")
    if np.any((shares < 0) | (shares > 1)):
        raise InputError(
            f"support holds {shares[(shares < 0) | (shares > 1)][0]:g}; shares of trees lie between 0 and 1."
        )
    return shares


def _write_support(ax: Axes, tree: Tree, shares: NDArray[np.float64], orientation: Orientation) -> None:
    """Write per cents at the merges, on the side of the root, where no branch of theirs runs; the root's says nothing."""
    from matplotlib.patheffects import withStroke

    places = node_positions(tree)[tree.n_leaves :]
    sideways = orientation in ("left", "right")
    away = {"left": (-2, 2), "right": (2, 2), "top": (2, 2), "bottom": (2, -2)}[orientation]
    align = {"left": "right", "right": "left", "top": "left", "bottom": "left"}[orientation]
    merges = list(zip(shares.tolist(), places.tolist(), tree.merge_heights.tolist(), strict=True))
    for share, place, height in merges[:-1]:
        if share == share:
            ax.annotate(
                f"{100 * share:.0f}",
                (height, place) if sideways else (place, height),
                xytext=away,
                textcoords="offset points",
                ha=align,
                va="top" if orientation == "bottom" else "bottom",
                fontsize=_SUPPORT_FONT,
                color=_SUPPORT_COLOR,
                annotation_clip=True,
                path_effects=[withStroke(linewidth=1.5, foreground="white")],  # branches run behind it
            )


def _write_legend(ax: Axes, legend: dict[str, Any], orientation: Orientation) -> None:
    """Name the clusters outside of the axes, on the side where there are no names of leaves."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=color, linewidth=2.5) for color in legend.values()]
    names = [_shown(name) for name in legend]
    below = orientation == "bottom"
    rows = -(-len(names) // max(1, int(60 / (max(map(_columns, names)) + 7))))
    drawn = ax.legend(
        handles,
        [" "] * len(names),
        loc="upper left" if below else "lower left",
        bbox_to_anchor=(0.0, 0.0 if below else 1.0),
        ncols=-(-len(names) // rows),
        frameon=False,
        fontsize=_LARGEST_FONT,
        handlelength=1.4,
        columnspacing=1.4,
        borderaxespad=0.4,
    )
    # Written afterwards, since matplotlib hides labels that begin with an underscore.
    for text, name in zip(drawn.get_texts(), names, strict=True):
        text.set_parse_math(False)
        text.set_text(name)


def _shown(name: str) -> str:
    """Shorten a name, and replace what cannot be drawn on one line."""
    if len(name) > _NAME_CHARACTERS:
        name = name[: _NAME_CHARACTERS - 1] + "…"
    return "".join(" " if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") else c for c in name)


def _columns(name: str) -> float:
    """Count characters, wide ones as nearly two."""
    return sum(1.7 if unicodedata.east_asian_width(c) in "WF" else 1.0 for c in name)
