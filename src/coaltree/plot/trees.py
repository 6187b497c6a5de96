"""``plot_trees`` and ``plot_tanglegram``: all trees of a sample on top of each other, and two trees face to face."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._parameters import Orientation
from .._validation import check_count
from ..errors import InputError
from ..tree.clades import clade_masks
from ..tree.layout import node_positions
from ..tree.newick import describe_name_differences
from ..tree.sample import TreeSample
from ..tree.tree import Tree, check_tree
from .dendrogram import draw_names, extent, frame_dendrogram, plot_dendrogram
from .style import FONT, MIXED, PALETTE, PLAIN, check_axes, check_panels, color_nodes, new_axes, require_matplotlib
from .visible_tree import VisibleTree, name_width, select_visible, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

N_COLORED = 3  # topologies with a colour of their own, the most frequent ones
_DARKNESS, _LEAST_ALPHA = 5.0, 0.02  # opacity of all trees together if each were alone, and of one

_PANELS = ("left", "links", "right")
_ROUNDS = 20  # in which the two trees are turned by each other


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

    Where trees agree, lines lie on each other and are dark; where they do not, they spread. Branches are straight lines, so
    that different heights and different topologies look different. The three most frequent topologies have colours of their
    own, the others are grey.

    Parameters
    ----------
    sample : TreeSample
    ax : matplotlib Axes, optional
        Where to draw; by default a new pyplot figure whose size suits the number of leaves.
    orientation : {"left", "right", "top", "bottom"}, default "left"
        The side of the root.
    max_trees : int, default 500
        Largest number of trees to draw; of more, some are chosen evenly by their weights.
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
        If ``sample`` is no sample of trees, or an option is invalid.

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
    if orientation not in ("left", "right", "top", "bottom"):
        raise InputError(f"orientation is {orientation!r}; it must be 'left', 'right', 'top' or 'bottom'.")
    if leaf_names not in (True, False, "auto"):
        raise InputError(f"leaf_names is {leaf_names!r}; it must be True, False or 'auto'.")
    if alpha is not None and not 0 < alpha <= 1:
        raise InputError(f"alpha is {alpha!r}; it must be above 0 and at most 1, or None.")
    max_trees = check_count(max_trees, "max_trees")
    check_axes(ax)
    require_matplotlib()
    from matplotlib.collections import LineCollection

    middle = sample.ccd0()
    visible = select_visible(middle, None)
    drawn = choose_evenly(sample, max_trees)
    sideways = orientation in ("left", "right")
    names = visible.tip_labels() if leaf_names in (True, "auto") else []
    points = None
    if ax is None:
        longest = max(map(name_width, names), default=0.0) * 0.6 * FONT / 72
        across = extent(visible, 40.0) if names else 4.6
        ax = new_axes((5.5 + longest, across + 0.9) if sideways else (max(across + 0.9, 3.0), 4.0 + longest))
        points = 72 * across
    opacity = max(_DARKNESS / len(drawn), _LEAST_ALPHA) if alpha is None else alpha
    shades = _topology_colors(sample, drawn)
    segments = np.concatenate([straight_branches(sample.trees[k], visible) for k in drawn])
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
    highest = max(float(middle.heights[-1]), *(float(sample.trees[k].heights[-1]) for k in drawn))
    frame_dendrogram(ax, visible, orientation, height_label, highest)
    draw_names(ax, visible, names, orientation, points, insist=leaf_names is True)
    return ax


def choose_evenly(sample: TreeSample, count: int) -> list[int]:
    """Return the trees to draw: all, or as many as there may be, each about as often as it weighs."""
    weights = sample.weights / sample.weights.sum()
    if len(weights) <= count and np.all(weights == weights[0]):
        return list(range(len(weights)))
    at = (np.arange(count) + 0.5) / count
    found: list[int] = np.minimum(np.searchsorted(np.cumsum(weights), at), len(weights) - 1).tolist()
    return found


def straight_branches(tree: Tree, visible: VisibleTree) -> FloatArray:
    """Return a line of two points (position, height) for each branch, with the leaves of another tree's order."""
    positions = node_positions(tree.children, visible.positions[: visible.n_tips])
    child = tree.children.ravel()
    parent = np.repeat(np.arange(tree.n_leaves, tree.n_nodes), 2)
    ends = np.stack([child, parent], axis=1)
    return np.stack([positions[ends], tree.heights[ends]], axis=2)


def _topology_colors(sample: TreeSample, drawn: list[int]) -> list[str]:
    """Return the colour of each drawn tree: frequent topologies have their own."""
    topologies = [frozenset(clade_masks(tree)) for tree in sample.trees]
    shares: dict[frozenset[int], float] = {}
    for topology, weight in zip(topologies, sample.weights.tolist(), strict=True):
        shares[topology] = shares.get(topology, 0.0) + weight
    frequent = sorted(shares, key=lambda own: -shares[own])[:N_COLORED]
    colors = dict(zip(frequent, PALETTE, strict=False))
    return [colors.get(topologies[k], MIXED) for k in drawn]


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
        Turn clades of both trees such that few lines cross. Which clades there are does not change.
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
    if titles is not None and (isinstance(titles, str) or len(titles) != 2):
        raise InputError(f"titles is {titles!r}; it must be two texts or None.")
    given = check_panels(axes, _PANELS)
    require_matplotlib()
    from matplotlib.collections import LineCollection

    right = right.reorder(left.leaf_names)  # leaf i is the same in both
    if untangle:
        left, right = untangle_trees(left, right)
    clusters = None if labels is None else list(labels)
    shades, of_leaves, _ = color_nodes(left, np.arange(left.n_leaves), left.n_leaves, clusters, None)
    panels = _new_panels(left) if given is None else given
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
    """Turn clades of two trees, whose leaves have the same numbers, such that few lines between equal leaves cross.

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
    for _ in range(_ROUNDS):
        right = turn_clades(right, np.argsort(left.leaf_order))
        crossings = count_crossings(left, right)
        if crossings >= fewest:
            turned = turn_clades(left, np.argsort(right.leaf_order))
            crossings = count_crossings(turned, right)
            if crossings >= fewest:
                break
            left = turned
        best, fewest = (left, right), crossings
        left = turn_clades(left, np.argsort(right.leaf_order))
        crossings = count_crossings(left, right)
        if crossings < fewest:
            best, fewest = (left, right), crossings
    return best


def turn_clades(tree: Tree, places: IntArray) -> Tree:
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
    # By merging sorted halves: each time one of the right comes first, it crosses the rest of the left.
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
    found: dict[str, Axes] = figure.subplot_mosaic([list(_PANELS)], width_ratios=[3, 1.2, 3])
    return found
