"""Plots of several trees: ``plot_trees`` (a sample), ``plot_tanglegram`` (two trees), ``plot_lineages`` (lineages over time)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from .._parameters import FLAG, Choices, Interval, Orientation, check_parameter, optional
from .._validation import check_count, quote
from ..errors import InputError
from ..tree.clades import clade_masks
from ..tree.coalescent import Band, expected_lineages, live_lineages, prior_band, sample_band
from ..tree.layout import node_positions
from ..tree.newick import describe_name_differences
from ..tree.sample import TreeSample
from ..tree.tree import Tree, check_tree
from .dendrogram import NAMES_OPTION, draw_names, extent, frame_dendrogram, plot_dendrogram
from .style import (
    FONT,
    MIXED,
    PALETTE,
    PLAIN,
    SMALL_FONT,
    check_axes,
    check_color,
    check_panels,
    color_nodes,
    distinct_colors,
    hide_spines,
    list_labels,
    new_axes,
    require_matplotlib,
)
from .visible_tree import VisibleTree, name_width, select_visible, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

N_COLORED = 3  # number of topologies with their own colour, the most frequent ones
_DARKNESS, _LEAST_ALPHA = 5.0, 0.02  # sum of the opacities of all trees, and the least opacity of one

_PANELS = ("left", "links", "right")
_PRIOR_COLOR = "#7A7A7A"
_N_POINTS = 200  # points of the curve of the prior
_N_ROUNDS = 20  # rounds in which the two trees of a tanglegram are rotated in alternation


def plot_trees(
    sample: TreeSample,
    *,
    ax: Axes | None = None,
    orientation: Orientation = "left",
    max_trees: int = 500,
    alpha: float | None = None,
    summary: bool = True,
    leaf_names: bool | Literal["auto"] = "auto",
    height_label: str = "height",
) -> Axes:
    """Draw all trees of a sample on top of each other, as DensiTree does.

    Where trees agree, lines coincide and are dark; elsewhere they spread. Branches are straight lines, so
    that different heights and different topologies look different. The three most frequent topologies have their own
    colours; the others are grey.

    Parameters
    ----------
    sample : TreeSample
    ax : matplotlib Axes, optional
        Where to draw; by default a new pyplot figure whose size suits the number of leaves.
    orientation : {"left", "right", "top", "bottom"}, default "left"
        The side of the root.
    max_trees : int, default 500
        Largest number of trees to draw. If there are more, some are chosen evenly by their weights.
    alpha : float, optional
        Opacity of one tree, between 0 and 1; by default less for more trees.
    summary : bool, default True
        Draw the summary tree (`TreeSample.ccd0`) over the others, in black. Leaves are in its order in any case.
    leaf_names : bool or "auto", default "auto"
        Show the names of leaves; ``"auto"`` shows them if they fit.
    height_label : str, default "height"
        Label of the axis of heights.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    InputError
        If ``sample`` is not a sample of trees, or an option is invalid.

    Examples
    --------
    >>> import coaltree as ct
    >>> trees = [ct.simulate_tree(5, random_state=k) for k in range(20)]
    >>> sample = ct.TreeSample(trees)
    >>> ax = ct.plot_trees(sample)  # doctest: +SKIP
    """
    if not isinstance(sample, TreeSample):
        raise InputError(
            f"sample is of type {type(sample).__name__}; it must be a TreeSample, as of coaltree.mcmc or sample_ of an estimator."
        )
    check_parameter("orientation", orientation, Choices(get_args(Orientation)))
    check_parameter("leaf_names", leaf_names, NAMES_OPTION)
    check_parameter("summary", summary, FLAG)
    check_parameter("alpha", alpha, optional(Interval(0, 1, open_low=True)))
    max_trees = check_count(max_trees, "max_trees")
    check_axes(ax)
    require_matplotlib()
    from matplotlib.collections import LineCollection

    middle = sample.ccd0()
    visible = select_visible(middle, None)
    chosen = choose_evenly(sample, max_trees)
    sideways = orientation in ("left", "right")
    names = visible.tip_labels() if leaf_names in (True, "auto") else []
    points = None
    if ax is None:
        longest = max(map(name_width, names), default=0.0) * 0.6 * FONT / 72
        across = extent(visible, 40.0) if names else 4.6
        ax = new_axes((5.5 + longest, across + 0.9) if sideways else (max(across + 0.9, 3.0), 4.0 + longest))
        points = 72 * across
    opacity = max(_DARKNESS / len(chosen), _LEAST_ALPHA) if alpha is None else alpha
    shades = _topology_colors(sample, chosen)
    segments = np.concatenate([straight_branches(sample.trees[k], visible) for k in chosen])
    ax.add_collection(
        LineCollection(
            list(segments[:, :, ::-1] if sideways else segments),
            colors=[shade for shade in shades for _ in range(2 * (visible.n_tips - 1))],
            linewidths=1.0,
            alpha=min(opacity, 1.0),
            capstyle="round",
        ),
        autolim=False,
    )
    if summary:
        lines = straight_branches(middle, visible)
        ax.add_collection(
            LineCollection(
                list(lines[:, :, ::-1] if sideways else lines), colors=PLAIN, linewidths=1.2, capstyle="round"
            ),
            autolim=False,
        )
    highest = max(float(middle.heights[-1]), *(float(sample.trees[k].heights[-1]) for k in chosen))
    frame_dendrogram(ax, visible, orientation, height_label, highest)
    draw_names(ax, visible, names, orientation, points, always=leaf_names is True)
    return ax


def choose_evenly(sample: TreeSample, count: int) -> list[int]:
    """Return the trees to draw: all, or the largest allowed number, each about as often as its weight demands."""
    weights = sample.weights / sample.weights.sum()
    if len(weights) <= count and np.all(weights == weights[0]):
        return list(range(len(weights)))
    at = (np.arange(count) + 0.5) / count
    chosen: list[int] = np.minimum(np.searchsorted(np.cumsum(weights), at), len(weights) - 1).tolist()
    return chosen


def straight_branches(tree: Tree, visible: VisibleTree) -> FloatArray:
    """Return a line of two points (position, height) for each branch, with leaves in the order of another tree."""
    positions = node_positions(tree.children, visible.positions[: visible.n_tips])
    child = tree.children.ravel()
    parent = np.repeat(np.arange(tree.n_leaves, tree.n_nodes), 2)
    ends = np.stack([child, parent], axis=1)
    return np.stack([positions[ends], tree.heights[ends]], axis=2)


def _topology_colors(sample: TreeSample, chosen: list[int]) -> list[str]:
    """Return the colour of each drawn tree: frequent topologies have their own."""
    topologies = [frozenset(clade_masks(tree)) for tree in sample.trees]
    shares: dict[frozenset[int], float] = {}
    for topology, weight in zip(topologies, sample.weights.tolist(), strict=True):
        shares[topology] = shares.get(topology, 0.0) + weight
    frequent = sorted(shares, key=lambda topology: -shares[topology])[:N_COLORED]
    colors = dict(zip(frequent, PALETTE, strict=False))
    return [colors.get(topologies[k], MIXED) for k in chosen]


def plot_tanglegram(
    left: Tree,
    right: Tree,
    *,
    labels: Iterable[Hashable] | None = None,
    axes: Mapping[str, Axes] | None = None,
    untangle: bool = True,
    titles: tuple[str, str] | None = None,
    height_label: str = "height",
) -> dict[str, Axes]:
    """Draw two trees over the same leaves face to face, with a line from each leaf to itself.

    Parameters
    ----------
    left, right : Tree
        Their leaves are matched by name.
    labels : iterable of hashable, length n, optional
        Flat cluster of each leaf of `left`, which colours branches and lines.
    axes : mapping of str to matplotlib Axes, optional
        Axes "left", "links" and "right"; by default those of a new pyplot figure.
    untangle : bool, default True
        Rotate clades of both trees so that few lines cross. The clades themselves do not change.
    titles : tuple of two str, optional
        Titles of the trees.
    height_label : str, default "height"
        Label of the axes of heights.

    Returns
    -------
    dict of str to matplotlib Axes
        By the names of the panels.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    InputError
        If the trees have different leaves, or an option is invalid.

    Examples
    --------
    >>> import coaltree as ct
    >>> one = ct.Tree.from_newick("((ape:1,man:1):2,owl:3);")
    >>> other = ct.Tree.from_newick("((owl:1,ape:1):1,man:2);")
    >>> axes = ct.plot_tanglegram(one, other)  # doctest: +SKIP
    """
    left, right = check_tree(left), check_tree(right)
    differences = describe_name_differences(right.leaf_names, left.leaf_names)
    if differences:
        raise InputError(f"The right tree is not over the leaves of the left one: {differences}.")
    if titles is not None and not (
        isinstance(titles, list | tuple) and len(titles) == 2 and all(isinstance(title, str) for title in titles)
    ):
        raise InputError(f"titles is {quote(titles)}; it must be two texts or None.")
    check_parameter("untangle", untangle, FLAG)
    user_panels = check_panels(axes, _PANELS)
    require_matplotlib()
    from matplotlib.collections import LineCollection

    right = right.reorder(left.leaf_names)  # leaf i is the same in both
    if untangle:
        left, right = untangle_trees(left, right)
    clusters = list_labels(labels)
    shades, of_leaves, _ = color_nodes(left, np.arange(left.n_leaves), left.n_leaves, clusters, None)
    panels = _new_panels(left) if user_panels is None else user_panels
    for name, tree in (("left", left), ("right", right)):
        plot_dendrogram(
            tree,
            labels=clusters,
            ax=panels[name],
            orientation="left" if name == "left" else "right",
            leaf_names="auto",
            height_label=height_label,
            support="auto",
            collapse=None,
        )
        legend = panels[name].get_legend()
        if legend is not None and name == "right":
            legend.remove()
    places = [np.argsort(tree.leaf_order) for tree in (left, right)]
    ends = np.stack(
        [np.stack([np.zeros(left.n_leaves), places[0]], 1), np.stack([np.ones(left.n_leaves), places[1]], 1)], 1
    )
    colors = MIXED if clusters is None else [shades[k] for k in of_leaves.tolist()]
    panels["links"].add_collection(LineCollection(list(ends), colors=colors, linewidths=0.8), autolim=False)
    panels["links"].set_xlim(0, 1)
    panels["links"].set_ylim(panels["left"].get_ylim())
    panels["links"].set_axis_off()
    for name, title in zip(("left", "right"), titles or (), strict=False):
        panels[name].set_title(short_name(title), fontsize=FONT, pad=20 if labels is not None else 6).set_parse_math(
            False
        )
    return panels


def untangle_trees(left: Tree, right: Tree) -> tuple[Tree, Tree]:
    """Rotate clades of two trees over the same leaves so that few lines between equal leaves cross.

    In turn, the children of each merge of one tree are sorted by the mean places of their leaves in the other. The best of some
    rounds is returned.

    Parameters
    ----------
    left, right : Tree

    Returns
    -------
    left, right : Tree
        With the same clades and heights.
    """
    best, fewest = (left, right), count_crossings(left, right)
    for _ in range(_N_ROUNDS):
        right = rotate_clades(right, np.argsort(left.leaf_order))
        crossings = count_crossings(left, right)
        if crossings >= fewest:
            rotated = rotate_clades(left, np.argsort(right.leaf_order))
            crossings = count_crossings(rotated, right)
            if crossings >= fewest:
                break
            left = rotated
        best, fewest = (left, right), crossings
        left = rotate_clades(left, np.argsort(right.leaf_order))
        crossings = count_crossings(left, right)
        if crossings < fewest:
            best, fewest = (left, right), crossings
    return best


def rotate_clades(tree: Tree, places: IntArray) -> Tree:
    """Return a tree with the children of each merge in the order of the mean places of their leaves."""
    total: list[Any] = np.asarray(places, dtype=np.float64).tolist()
    counts = tree.leaf_counts
    children = tree.children.copy()
    for k, (one, other) in enumerate(tree.children.tolist()):
        if total[one] / counts[one] > total[other] / counts[other]:
            children[k] = other, one
        total.append(total[one] + total[other])
    return Tree(children, tree.heights, tree.leaf_names)


def count_crossings(left: Tree, right: Tree) -> int:
    """Return how many pairs of lines between equal leaves of two trees cross."""
    order = np.argsort(right.leaf_order)[left.leaf_order].tolist()
    # By merging sorted halves: each time an element of the right half comes first, it crosses the rest of the left half.
    crossings, width = 0, 1
    while width < len(order):
        merged: list[int] = []
        for start in range(0, len(order), 2 * width):
            one, other = order[start : start + width], order[start + width : start + 2 * width]
            at = np.searchsorted(one, other)
            crossings += int(len(one) * len(other) - at.sum())
            merged += sorted(one + other)
        order, width = merged, 2 * width
    return crossings


def _new_panels(tree: Tree) -> dict[str, Axes]:
    """Return the axes of a new figure with room for the names."""
    import matplotlib.pyplot as plt

    visible = select_visible(tree, None)
    longest = max(map(name_width, visible.tip_labels()), default=0.0) * 0.6 * FONT / 72
    figure = plt.figure(figsize=(7.5 + 2 * longest, extent(visible, 40.0) + 0.9), layout="constrained")
    panels: dict[str, Axes] = figure.subplot_mosaic([list(_PANELS)], width_ratios=[3, 1.2, 3])
    return panels


def plot_lineages(
    trees: Tree | TreeSample | Sequence[Tree],
    *,
    ax: Axes | None = None,
    prior: bool = True,
    level: float = 0.95,
    log_heights: bool = False,
    color: str | None = None,
) -> Axes:
    """Draw the number of lineages at each height, with the expectation under Kingman's coalescent.

    If the prior fits the data, the tree runs inside the grey band. Below the band rows are more alike than the prior
    expects, above it less.

    Parameters
    ----------
    trees : Tree, TreeSample or sequence of Tree
        One tree is drawn as steps; a sample as its weighted median and a pointwise band of probability ``level``; a
        sequence as one line per tree.
    ax : matplotlib Axes, optional
        Where to draw; by default a new pyplot figure.
    prior : bool, default True
        Draw the exact expectation under the prior, and a pointwise band of probability ``level`` from 10,000 simulations
        with a fixed seed; the band begins at 1,000 lineages.
    level : float, default 0.95
        Probability of the bands.
    log_heights : bool, default False
        Use a logarithmic scale for heights too, which shows more of large trees.
    color : str, optional
        Colour of the trees.

    Returns
    -------
    matplotlib Axes
        The number of lineages has a logarithmic scale.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    InputError
        If ``trees`` are not trees over the same number of leaves, or an option cannot be used.

    Examples
    --------
    >>> import coaltree as ct
    >>> ax = ct.plot_lineages(ct.simulate_tree(100, random_state=0))  # doctest: +SKIP
    """
    check_parameter("level", level)
    check_parameter("prior", prior, FLAG)
    check_parameter("log_heights", log_heights, FLAG)
    if color is not None:
        check_color(color, "color")
    check_axes(ax)
    members = _list_trees(trees)
    n = members[0].n_leaves
    require_matplotlib()
    ax = new_axes((5.5, 4.0)) if ax is None else ax
    tops = [float(tree.heights[-1]) for tree in members]
    band = sample_band(members, trees.weights, level) if isinstance(trees, TreeSample) and n > 1 else None
    top = max(tops) if band is None else float(band.high[-1])
    if n > 1 and prior:
        expected = prior_band(n, level)
        _fill(ax, expected, _PRIOR_COLOR, f"prior, {100 * level:g} %")
        top = max(top, float(expected.high[-1]))
        times = np.concatenate([[0.0], np.geomspace(1e-3 / n, top, _N_POINTS)])
        ax.plot(
            times, expected_lineages(n, times), color=_PRIOR_COLOR, linestyle="--", linewidth=1.2, label="prior, mean"
        )
    if isinstance(trees, TreeSample) and band is not None:
        shade = color or PALETTE[0]
        _fill(ax, band, shade, f"sample, {100 * level:g} %")
        middle = sample_band(members, trees.weights, 0.0)
        ends, counts = [0.0, *middle.low, top], [n, *middle.counts, 1]
        ax.step(ends, counts, where="post", color=shade, linewidth=1.6, label="sample, median")
    else:
        are_many = len(members) > 1
        shades = distinct_colors(len(members))
        for k, tree in enumerate(members):
            heights = np.concatenate([[0.0], np.unique(tree.merge_heights), [top]])
            ax.step(
                heights,
                live_lineages(tree, heights),
                where="post",
                color=color or (PLAIN if not are_many else shades[k]),
                linewidth=1.0 if are_many else 1.6,
                label="tree" if not are_many else None,
            )
    ax.set_yscale("log")
    ax.set_ylim(0.9, 1.1 * n + 0.1)
    start = 0.0
    if log_heights and top > 0:
        ax.set_xscale("log")
        start = min(
            [float(tree.heights[tree.heights > 0][0]) for tree in members if tree.heights[-1] > 0], default=1e-3 * top
        )
    ax.set_xlim(start, 1.02 * top or 1.0)
    ax.set_xlabel("height")
    ax.set_ylabel("lineages")
    ax.yaxis.set_major_formatter(lambda value, position: f"{value:,.0f}" if value >= 1 else "")
    hide_spines(ax, "top", "right")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, fontsize=SMALL_FONT)
    return ax


def _fill(ax: Axes, band: Band, color: str, label: str) -> None:
    """Fill the band between its two step functions."""
    last = max(float(band.high[-1]), float(band.low[-1]))
    times = np.unique(np.concatenate([band.low, band.high, [last]]))
    start = int(band.counts[0]) + 1
    lower = start - np.searchsorted(band.low, times, side="right")
    upper = start - np.searchsorted(band.high, times, side="right")
    ax.fill_between(times, lower, upper, step="post", color=color, alpha=0.22, linewidth=0, label=label)


def _list_trees(trees: Tree | TreeSample | Sequence[Tree]) -> list[Tree]:
    if isinstance(trees, Tree):
        return [trees]
    if isinstance(trees, TreeSample):
        return list(trees.trees)
    if not isinstance(trees, list | tuple) or not trees:
        return [check_tree(trees, "trees")]
    members = [check_tree(tree, f"trees[{k}]") for k, tree in enumerate(trees)]
    for k, tree in enumerate(members):
        if tree.n_leaves != members[0].n_leaves:
            raise InputError(
                f"trees[{k}] has {tree.n_leaves} leaves and trees[0] has {members[0].n_leaves}; all trees must have the "
                "same number of leaves."
            )
    return members
