"""``plot_dendrogram``: a tree with its clusters, in a rectangle or on a circle, as axes or as the bytes of a picture."""

from __future__ import annotations

import io
import math
import sys
from bisect import bisect
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._parameters import Choices, Interval, Layout, Orientation, PictureFormat, check_parameter, optional
from .._validation import escape_controls, quote, to_floats
from ..errors import InputError, MissingDependencyError
from ..tree.tree import SummaryTree, Tree, check_tree
from .style import (
    FONT,
    SMALL_FONT,
    check_axes,
    color_nodes,
    draw_legend,
    font_fallbacks,
    hide_overlaps,
    legend_height,
    new_axes,
    require_matplotlib,
)
from .visible_tree import VisibleTree, name_width, select_visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]

_MIN_FONT, _MAX_FONT = 4.0, FONT
_MIN_CLADE_FONT = 6.0
_SUPPORT_FONT, _SUPPORT_COLOR = 6.0, "#555555"

NAMES_OPTION = Choices((True, False, "auto"))

# circular dendrograms
_GAP = 0.04  # share of the circle without leaves, where the scale is
_STEP = math.radians(2)  # between the points of an arc
_SCALE_COLOR = "#DDDDDD"
_SCALE_FONT, _SCALE_PAD = SMALL_FONT - 2, 2.0  # points of the values, and around them
_LETTER = 0.6  # mean width of a letter as a share of the font size


def plot_dendrogram(
    tree: Tree,
    *,
    labels: Iterable[Hashable] | None = None,
    ax: Axes | None = None,
    orientation: Orientation = "left",
    layout: Layout = "rectangular",
    leaf_names: bool | Literal["auto"] = "auto",
    height_label: str = "height",
    colors: str | Sequence[Any] | Mapping[Any, Any] | None = None,
    linewidth: float | None = None,
    max_leaf_names: int = 150,
    support: Iterable[float] | bool | Literal["auto"] = "auto",
    collapse: int | Literal["auto"] | None = "auto",
) -> Axes:
    """Draw a dendrogram. Of a large tree, the oldest merges are drawn.

    Parameters
    ----------
    tree : Tree
    labels : iterable of hashable, length n, optional
        Flat cluster of each leaf, in row order. A branch or a collapsed clade has the colour of a cluster if all its
        leaves are in that cluster, and is grey otherwise. Up to thirty clusters are named in a legend outside the axes.
    ax : matplotlib Axes, optional
        Where to draw; by default a new pyplot figure whose size suits the number of leaves.
    orientation : {"left", "right", "top", "bottom"}, default "left"
        The side of the root, in a rectangle.
    layout : {"rectangular", "circular"}, default "rectangular"
        With "circular" the root is in the centre and the leaves are on a circle; grey circles show heights.
    leaf_names : bool or "auto", default "auto"
        Show the names of leaves. ``"auto"`` shows them for at most ``max_leaf_names`` leaves, if they fit. Names of
        more than 30 characters are shortened.
    height_label : str, default "height"
        Label of the axis of heights.
    colors : str, sequence or mapping, optional
        One colour for the tree without ``labels``; otherwise colours of the clusters in sorted order, repeated if
        necessary, or a mapping from cluster to colour. By default up to a hundred clusters have different colours.
    linewidth : float, optional
        Width of the branches in points; by default thinner for more leaves.
    max_leaf_names : int, default 150
        Largest number of leaves or collapsed clades whose names ``"auto"`` shows.
    support : iterable of float, bool or "auto", default "auto"
        Share of trees with each merge's clade, most recent first, shown in per cent at the merge, except for NaN and the
        root; numbers that would touch others are left out. True uses the support of a :class:`SummaryTree`, and so does
        ``"auto"`` if names are shown.
    collapse : int, "auto" or None, default "auto"
        Number of clades to show; all but the oldest merges are collapsed. A clade is a wedge from its root to height 0,
        labelled with its number of leaves and ``1 + log10(leaves) / 3`` times as wide as a leaf; clades of one leaf
        remain leaves. ``"auto"`` collapses trees of more than 2,000 leaves to 50 clades; None draws every leaf.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    InputError
        If ``tree`` is not a tree, or ``labels`` or an option is invalid.

    Examples
    --------
    >>> import coaltree as ct
    >>> tree = ct.Tree.from_newick("((ape:1,man:1):2,owl:3);")
    >>> ax = ct.plot_dendrogram(tree, labels=[0, 0, 1])  # doctest: +SKIP
    >>> ax.figure.savefig("tree.png")  # doctest: +SKIP

    The ten oldest clades of a large tree:

    >>> ax = ct.plot_dendrogram(ct.simulate_tree(100_000, random_state=0), collapse=10)  # doctest: +SKIP
    """
    tree = check_tree(tree)
    check_parameter("orientation", orientation, Choices(get_args(Orientation)))
    check_parameter("layout", layout, Choices(get_args(Layout)))
    check_parameter("leaf_names", leaf_names, NAMES_OPTION)
    check_parameter("max_leaf_names", max_leaf_names, Interval(-math.inf, meaning="of leaves"))
    check_parameter("linewidth", linewidth, optional(Interval(0, sys.float_info.max, meaning="in points")))
    check_axes(ax)
    shares = _check_support(tree, support)
    visible = select_visible(tree, collapse)
    shades, node_shades, legend = color_nodes(tree, visible.nodes, visible.n_tips, labels, colors)
    require_matplotlib()
    from matplotlib.collections import LineCollection

    n = visible.n_tips
    sideways = orientation in ("left", "right")
    wants_names = leaf_names is True or (leaf_names == "auto" and n <= max_leaf_names)
    names = visible.tip_labels() if wants_names else []
    points, inches = None, None
    circle = Circle(visible) if layout == "circular" else None
    if ax is None and circle:
        side = circular_size(visible, names)
        ax, inches = new_axes((side, side + legend_height(legend, side))), side
    elif ax is None:
        ax, points = _new_axes(visible, names, sideways, legend)
    width = float(np.clip(20 / n**0.5, 0.6, 1.4)) if linewidth is None else linewidth
    branches = visible.branches()
    ax.add_collection(
        LineCollection(
            circle.branches() if circle else list(branches[:, :, ::-1] if sideways else branches),
            colors=shades
            if labels is None
            else [shades[k] for k in node_shades[visible.tree.children.ravel()].tolist()],
            linewidths=width,
            capstyle="butt",
            joinstyle="miter",
        ),
        autolim=False,
    )
    if n < tree.n_leaves:
        tips, corners = visible.wedges()
        wedges = circle.wedges() if circle else list(corners[:, :, ::-1] if sideways else corners)
        _draw_wedges(ax, wedges, [shades[node_shades[tip]] for tip in tips.tolist()], width)
    if circle:
        frame_circle(ax)
        draw_circular_names(ax, circle, names, inches, always=leaf_names is True)
        draw_circular_scale(ax, circle, height_label, inches)
        if shares is not None and (names or not isinstance(support, str)):
            draw_circular_support(ax, circle, shares)
        if legend:
            draw_legend(ax, legend)
        return ax
    frame_dendrogram(ax, visible, orientation, height_label)
    draw_names(ax, visible, names, orientation, points, always=leaf_names is True)
    if shares is not None and (names or not isinstance(support, str)):
        _draw_support(ax, visible, shares, orientation)
    if legend:
        draw_legend(ax, legend, below=orientation == "bottom")
    return ax


def _draw_wedges(ax: Axes, wedges: list[NDArray[np.float64]], shades: list[Any], width: float) -> None:
    """Draw the collapsed clades."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgba

    ax.add_collection(
        PolyCollection(
            wedges,
            facecolors=[to_rgba(shade, 0.45) for shade in shades],
            edgecolors=shades,
            linewidths=width,
            joinstyle="round",
        ),
        autolim=False,
    )


def _new_axes(visible: VisibleTree, names: list[str], sideways: bool, legend: dict[str, Any]) -> tuple[Axes, float]:
    """Create a figure with room for every name and for the legend.

    Returns the axes and their extent along the leaves in points, which matplotlib knows only after drawing.
    """
    longest = max(map(name_width, names), default=0.0) * 0.6 * _MAX_FONT / 72
    across = extent(visible, 40.0) if names else 4.6
    width, height = (5.5 + longest, across + 0.9) if sideways else (max(across + 0.9, 3.0), 4.0 + longest)
    return new_axes((width, height + legend_height(legend, width))), 72 * across


def extent(visible: VisibleTree, max_inches: float = math.inf) -> float:
    """Return the inches along the leaves that the names need."""
    if visible.n_tips < visible.original.n_leaves:
        # Clades are wider than leaves, so they need less per unit of width.
        return float(np.clip(0.1 * visible.span, 2.0, 16.0))
    # Many names are closer together: from 12 points per name down to 8.
    pitch = float(np.interp(visible.n_tips, [60, 150], [0.165, 0.11]))
    return float(np.clip(pitch * visible.n_tips, 1.1, max_inches))


def frame_dendrogram(
    ax: Axes, visible: VisibleTree, orientation: Orientation, height_label: str, highest: float | None = None
) -> None:
    """Set limits, the axis of heights and the spines; ``highest`` is the end of the axis, by default the root."""
    root = (float(visible.heights[-1]) if highest is None else highest) or 1.0
    limits = (-0.01 * root, 1.02 * root)
    # Leaves run from top to bottom and from left to right.
    places = (-0.6, visible.span - 0.4)
    if orientation in ("left", "right"):
        ax.set_xlim(limits[::-1] if orientation == "left" else limits)
        ax.set_ylim(places[::-1])
        ax.set_xlabel(height_label)
        ax.set_yticks([])
        visible_side = "bottom"
    else:
        ax.set_ylim(limits if orientation == "top" else limits[::-1])
        ax.set_xlim(places)
        ax.set_ylabel(height_label)
        ax.set_xticks([])
        visible_side = "left"
    for side, spine in ax.spines.items():
        spine.set_visible(side == visible_side)
    # The axis spans exactly the heights of the tree.
    ax.spines[visible_side].set_bounds(0.0, root)


def draw_names(
    ax: Axes,
    visible: VisibleTree,
    names: list[str],
    orientation: Orientation,
    points: float | None,
    *,
    always: bool,
    ticks: bool = True,
) -> None:
    """Write the names next to their tips, in a font size at which they do not touch.

    ``points`` is the room for all names, if the axes do not know it yet. Without ``ticks`` names are texts instead of
    tick labels, for a root on the left or right: hundreds of names are drawn in a third of the time.
    """
    if not names:
        return
    sideways = orientation in ("left", "right")
    if points is None:
        box = ax.get_window_extent()
        points = 72 * (box.height if sideways else box.width) / ax.figure.dpi
    order = visible.tree.leaf_order
    places = visible.positions[order]
    pitch = points / visible.span
    room = pitch * float(np.min(np.diff(places), initial=visible.span))
    size = float(np.clip(0.85 * room, _MIN_FONT if room >= _MIN_FONT else 1.0, _MAX_FONT))
    if not always and visible.n_tips < visible.original.n_leaves:
        size = max(size, _MIN_CLADE_FONT)
        visible_names = _choose_spaced(places * pitch, visible.counts[order], size / 0.85)
        places, names = places[visible_names], [names[k] for k in visible_names]
    elif not always and room < _MIN_FONT:
        return
    if not ticks:
        _draw_name_texts(ax, places, names, size, orientation)
        return
    axis = ax.yaxis if sideways else ax.xaxis
    # Names are plain text: a dollar sign does not begin a formula.
    axis.set_ticks(places.tolist(), labels=names, fontsize=size, parse_math=False)
    axis.set_tick_params(length=0, pad=3)
    if orientation == "left":
        ax.yaxis.tick_right()
    elif orientation == "bottom":
        ax.xaxis.tick_top()
    axis.set_tick_params(length=0)
    if not sideways:
        for text in axis.get_ticklabels():
            text.set_rotation(90)


def _draw_name_texts(
    ax: Axes, places: NDArray[np.float64], names: list[str], size: float, orientation: Orientation
) -> None:
    """Write names in place of tick labels, which are slower: each consists of five objects, measured many times."""
    from matplotlib.transforms import ScaledTranslation

    right = orientation == "left"
    pad = ScaledTranslation((3 if right else -3) / 72, 0.0, ax.figure.dpi_scale_trans)
    transform = ax.get_yaxis_transform() + pad
    for place, name in zip(places.tolist(), names, strict=True):
        ax.text(
            1.0 if right else 0.0,
            place,
            name,
            transform=transform,
            fontsize=size,
            ha="left" if right else "right",
            va="center_baseline",
            parse_math=False,
        )


def _choose_spaced(places: NDArray[np.float64], counts: NDArray[np.intp], distance: float) -> list[int]:
    """Choose tips at least a distance apart, those with the most leaves first."""
    chosen: list[int] = []
    for k in np.argsort(-counts, kind="stable").tolist():
        at = bisect(chosen, k)
        if all(abs(places[other] - places[k]) >= distance for other in chosen[max(at - 1, 0) : at + 1]):
            chosen.insert(at, k)
    return chosen


def _check_support(tree: Tree, support: Any) -> NDArray[np.float64] | None:
    """Return the support of each merge, or None if it is not shown."""
    automatic = isinstance(support, str) and support == "auto"
    if support is None or support is False or (automatic and not isinstance(tree, SummaryTree)):
        return None
    if support is True or isinstance(support, str):
        if support is not True and not automatic:
            raise InputError(f"support is {quote(support)}; it must be True, False, 'auto' or one number per merge.")
        if not isinstance(tree, SummaryTree):
            raise InputError(
                "support=True needs a tree with support values, as of TreeSample.ccd0(); pass the values instead."
            )
        return tree.support
    shares = to_floats(support)
    if shares is None:
        raise InputError(f"support is {quote(support)}; it must be True, False, 'auto' or one number per merge.")
    if shares.shape != (tree.n_leaves - 1,):
        raise InputError(f"support has shape {shares.shape}; there are {tree.n_leaves - 1} merges.")
    if np.any((shares < 0) | (shares > 1)):
        raise InputError(
            f"support holds {shares[(shares < 0) | (shares > 1)][0]:g}; shares of trees lie between 0 and 1."
        )
    return shares


def _draw_support(ax: Axes, visible: VisibleTree, shares: NDArray[np.float64], orientation: Orientation) -> None:
    """Write per cents at the merges, on the side of the root, where they fit; the support of the root itself is always 1."""
    from matplotlib.patheffects import withStroke

    n = visible.n_tips
    visible_shares = shares[len(shares) - n + 1 :]
    sideways = orientation in ("left", "right")
    away = {"left": (-2, 2), "right": (2, 2), "top": (2, 2), "bottom": (2, -2)}[orientation]
    align = {"left": "right", "right": "left", "top": "left", "bottom": "left"}[orientation]
    merges = list(
        zip(visible_shares.tolist(), visible.positions[n:].tolist(), visible.heights[n:].tolist(), strict=True)
    )
    texts = []
    for share, place, height in merges[-2::-1]:  # the oldest first, which have most room
        if share == share:
            text = ax.annotate(
                f"{100 * share:.0f}",
                (height, place) if sideways else (place, height),
                xytext=away,
                textcoords="offset points",
                ha=align,
                va="top" if orientation == "bottom" else "bottom",
                fontsize=_SUPPORT_FONT,
                color=_SUPPORT_COLOR,
                annotation_clip=True,
                path_effects=[withStroke(linewidth=1.5, foreground="white")],  # it overlaps branches
            )
            texts.append(text)
    hide_overlaps(ax, texts)


# Pictures show names for up to this number of leaves, and do not grow beyond it.
MAX_NAMED_LEAVES = 300
_DPI = 150
_ACROSS, _LONGEST = 6.0, 8.0  # inches from root to leaves, and along leaves without names
# Metadata without a date: the same tree makes the same file.
_METADATA = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}

_MARGIN = 0.2  # inches around the picture
_SAVE_OPTIONS: dict[str, dict[str, Any]] = {
    "png": {"pil_kwargs": {"compress_type": 3}}
}  # zlib's Z_RLE: nearly as small, in a third of the time


def dendrogram_bytes(
    tree: Tree,
    *,
    labels: ArrayLike | None = None,
    title: str = "",
    kind: PictureFormat = "png",
    width: float | None = None,
    height: float | None = None,
    orientation: Orientation = "left",
    layout: Layout = "rectangular",
    names: bool = True,
    collapse: int | Literal["auto"] | None = "auto",
) -> bytes:
    """Return the bytes of a picture of a tree; the same for the same tree.

    Parameters
    ----------
    tree : Tree
    labels : array-like of int, shape (n_leaves,), optional
        Cluster of each leaf, -1 for outliers.
    title : str, default ""
        Text above the tree.
    kind : {"png", "svg", "pdf"}, default "png"
    width, height : float, optional
        Inches; by default as much as the names need.
    orientation, layout, collapse
        As of `plot_dendrogram`.
    names : bool, default True
        Show the names of leaves, if they fit.

    Returns
    -------
    bytes
    """
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError(
            'Dendrograms need matplotlib, which is not installed; run: pip install "coaltree[cli]"'
        ) from error
    visible = select_visible(tree, collapse)
    size = _default_size(visible, orientation, layout, names)
    fixed = width is not None or height is not None
    figure = Figure(figsize=(width or size[0], height or size[1]), dpi=_DPI, layout="constrained" if fixed else None)
    canvas = FigureCanvasAgg(figure)
    clusters = None
    if labels is not None:
        clusters = ["outliers" if label == -1 else f"cluster {label}" for label in np.asarray(labels).tolist()]
    with font_fallbacks(), matplotlib.rc_context({"svg.hashsalt": "coaltree"}):
        # If no size is given, the axes fill the figure, so that the size of names is known, and the picture is cropped.
        ax = figure.add_subplot() if fixed else figure.add_axes((0.0, 0.0, 1.0, 1.0))
        has_names = names and visible.n_tips <= MAX_NAMED_LEAVES
        as_texts = has_names and layout == "rectangular" and orientation in ("left", "right")
        plot_dendrogram(
            tree,
            labels=clusters,
            ax=ax,
            orientation=orientation,
            layout=layout,
            leaf_names="auto" if has_names and not as_texts else False,
            max_leaf_names=MAX_NAMED_LEAVES,
            support=has_names and isinstance(tree, SummaryTree),
            collapse=collapse,
        )
        if as_texts:
            draw_names(ax, visible, visible.tip_labels(), orientation, None, always=False, ticks=False)
        if title:
            _draw_title(ax, title, fixed)
        picture = io.BytesIO()
        # The box that "tight" finds, without drawing everything twice.
        renderer = canvas.get_renderer()  # type: ignore[no-untyped-call, unused-ignore]
        box = None if fixed else figure.get_tightbbox(renderer).padded(_MARGIN)
        figure.savefig(
            picture, format=kind, dpi=_DPI, metadata=_METADATA[kind], bbox_inches=box, **_SAVE_OPTIONS.get(kind, {})
        )
    return picture.getvalue()


def _default_size(visible: VisibleTree, orientation: Orientation, layout: Layout, names: bool) -> tuple[float, float]:
    """Return width and height of a picture with room for the names."""
    if layout == "circular":
        side = circular_size(visible, visible.tip_labels() if names and visible.n_tips <= MAX_NAMED_LEAVES else [])
        return side, side
    along = extent(visible) if names and visible.n_tips <= MAX_NAMED_LEAVES else _LONGEST
    return (_ACROSS, along) if orientation in ("left", "right") else (max(along, 3.0), _ACROSS)


def _draw_title(ax: Any, title: str, fixed: bool) -> None:
    """Write the title above everything else."""
    title = escape_controls(title)
    if fixed:
        heading = ax.figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    else:
        legend = ax.get_legend()
        above = legend.get_window_extent().y1 - ax.get_window_extent().y1 if legend else 0.0
        heading = ax.set_title(title, loc="left", fontsize=11, pad=72 * max(above, 0.0) / _DPI + 5)
    heading.set_parse_math(False)


class Circle:
    """Coordinates of a tree on a circle of radius 1.

    Parameters
    ----------
    visible : VisibleTree
    """

    def __init__(self, visible: VisibleTree) -> None:
        self.visible = visible
        self.root = float(visible.heights[-1])

    def angles(self, positions: FloatArray) -> FloatArray:
        """Return angles: clockwise from the top, with a gap there."""
        share = (positions + 0.5) / self.visible.span
        return np.asarray(0.5 * math.pi - 2 * math.pi * (0.5 * _GAP + (1 - _GAP) * share))

    def radii(self, heights: FloatArray) -> FloatArray:
        """Return distances from the centre."""
        return np.asarray(1 - heights / self.root if self.root > 0 else np.ones_like(heights))

    def points(self, positions: FloatArray, heights: FloatArray) -> FloatArray:
        """Return points of the plane."""
        angles, radii = self.angles(positions), self.radii(heights)
        return np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=-1)

    def branches(self) -> list[FloatArray]:
        """Return a line for each branch: outwards from the child, then along the circle of its parent."""
        lines = []
        for line in self.visible.branches():
            (child, _, parent), (height, above, _) = line.T
            turn = abs(float(np.diff(self.angles(np.array([child, parent])))[0]))
            along = np.linspace(child, parent, 2 + int(turn / _STEP))
            lines.append(
                self.points(np.concatenate([[child], along]), np.concatenate([[height], np.full(len(along), above)]))
            )
        return lines

    def outline(self) -> FloatArray:
        """Return points along all branches and wedges, close to each other."""
        shares = np.linspace(0, 1, 33)[:, None]
        lines = self.branches()
        radial = [line[0] + shares * (line[1] - line[0]) for line in lines]
        return np.concatenate([*lines, *radial, *self.wedges()])

    def wedges(self) -> list[FloatArray]:
        """Return a sector for each collapsed clade."""
        sectors = []
        for apex, low, high in self.visible.wedges()[1]:
            base = np.linspace(low[0], high[0], 12)
            sectors.append(self.points(np.append(apex[0], base), np.append(apex[1], np.zeros(len(base)))))
        return sectors


def circular_size(visible: VisibleTree, names: list[str]) -> float:
    """Return the inches of the side of a figure in which names do not touch."""
    longest = max(map(name_width, names), default=0.0) * _LETTER * _MAX_FONT / 72
    radius = np.clip(0.14 * visible.span / (2 * math.pi), 1.6, 8.0)
    return float(2 * (radius + longest) + 0.6)


def frame_circle(ax: Axes) -> None:
    """Set limits without names, and hide the axes."""
    ax.set_aspect("equal", anchor="N")  # at the top, where the legend is
    ax.set_axis_off()
    ax.set_xlim(-1.03, 1.03)
    ax.set_ylim(-1.03, 1.03)


def draw_circular_scale(ax: Axes, circle: Circle, height_label: str, inches: float | None) -> None:
    """Draw the circles of some heights with their values, as near to the top as no branch touches them.

    Values without room are omitted, except that of the leaves. ``inches`` is the side of a new figure.
    """
    from matplotlib.ticker import MaxNLocator

    if circle.root == 0:
        return
    side = 72 * (inches or min(ax.get_window_extent().size) / ax.figure.dpi)
    point = 2 * ax.get_xlim()[1] / side
    obstacles = circle.outline()
    around = np.linspace(0, 2 * math.pi, 181)
    turns = around[np.argsort(np.minimum(around, 2 * math.pi - around), kind="stable")]  # from the top
    heights = [height for height in MaxNLocator(3).tick_values(0.0, circle.root) if 0 <= height < 0.97 * circle.root]
    unit = height_label
    for height in heights[::-1]:
        radius = 1 - height / circle.root
        ax.plot(radius * np.cos(around), radius * np.sin(around), color=_SCALE_COLOR, linewidth=0.6, zorder=0)
        text = f"{height:g} {unit}" if unit else f"{height:g}"
        half = point * (0.5 * _SCALE_FONT * np.array([_LETTER * name_width(text), 1.0]) + _SCALE_PAD)
        places = radius * np.stack([np.sin(turns), np.cos(turns)], axis=1)
        near = obstacles[np.abs(np.hypot(*obstacles.T) - radius) <= np.hypot(*half)]
        free = (place for place in places if not np.any(np.all(np.abs(near - place) < half, axis=1)))
        found = next(free, None if height else places[0])
        if found is None:
            continue
        x, y = found
        note = ax.text(x, y, text, fontsize=_SCALE_FONT, color=_SUPPORT_COLOR, ha="center", va="center")
        note.set_parse_math(False)
        note.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.5})
        unit = ""


def draw_circular_names(ax: Axes, circle: Circle, names: list[str], inches: float | None, *, always: bool) -> None:
    """Write the names outside the circle, rotated outwards, in a font size at which they do not touch.

    ``inches`` is the side of a new figure.
    """
    if not names:
        return
    visible = circle.visible
    order = visible.tree.leaf_order
    longest = max(map(name_width, names)) * _LETTER
    side = 72 * (inches or min(ax.get_window_extent().size) / ax.figure.dpi)
    # Names and circle share half of the side. The space for names depends on their size, which depends on the circle.
    pitch = 2 * math.pi * (1 - _GAP) * float(np.min(visible.widths)) / visible.span
    size = min(_MAX_FONT, 0.85 * pitch * 0.5 * side / (1 + 0.85 * pitch * longest))
    if size < _MIN_FONT and not always:
        return
    reach = 1 + (longest * size + 4) / max(0.5 * side - longest * size - 4, 0.2 * side)
    ax.set_xlim(-reach, reach)
    ax.set_ylim(-reach, reach)
    angles = circle.angles(visible.positions[order])
    for angle, name in zip(angles.tolist(), names, strict=True):
        is_left = math.cos(angle) < 0
        note = ax.text(
            1.02 * math.cos(angle),
            1.02 * math.sin(angle),
            name,
            fontsize=size,
            rotation=math.degrees(angle) + (180 if is_left else 0),
            rotation_mode="anchor",
            ha="right" if is_left else "left",
            va="center_baseline",
        )
        note.set_parse_math(False)


def draw_circular_support(ax: Axes, circle: Circle, shares: FloatArray) -> None:
    """Write per cents at the merges, where they fit; the support of the root itself is always 1."""
    from matplotlib.patheffects import withStroke

    visible, obstacles, texts = circle.visible, list(ax.texts), []
    n = visible.n_tips
    points = circle.points(visible.positions[n:], visible.heights[n:])
    visible_shares: list[Any] = shares[len(shares) - n + 1 :].tolist()
    for share, (x, y) in list(zip(visible_shares, points.tolist(), strict=True))[-2::-1]:  # the oldest first
        if share == share:
            text = ax.text(
                x,
                y,
                f"{100 * share:.0f}",
                fontsize=_SUPPORT_FONT,
                color=_SUPPORT_COLOR,
                ha="center",
                va="center",
                clip_on=True,
                path_effects=[withStroke(linewidth=1.5, foreground="white")],
            )
            texts.append(text)
    hide_overlaps(ax, texts, obstacles)
