"""``plot_tanglegram``: two trees over the same leaves, face to face."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..tree.newick import describe_name_differences
from ..tree.tree import Tree, check_tree
from .dendrogram import extent, plot_dendrogram
from .style import FONT, MIXED, check_panels, color_nodes, require_matplotlib
from .visible_tree import name_width, select_visible, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

IntArray = NDArray[np.intp]

_PANELS = ("left", "links", "right")
_ROUNDS = 20  # in which the two trees are turned by each other


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
