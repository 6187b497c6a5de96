"""``plot_trees``: all trees of a sample on top of each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from .._validation import check_count
from ..errors import InputError
from ..tree.clades import clade_masks
from ..tree.layout import node_positions
from ..tree.sample import TreeSample
from ..tree.tree import Tree
from .dendrogram import Orientation, draw_names, extent, frame_dendrogram
from .style import FONT, MIXED, PALETTE, PLAIN, check_axes, new_axes, require_matplotlib
from .visible_tree import VisibleTree, name_width, select_visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]

N_COLORED = 3  # topologies with a colour of their own, the most frequent ones
_DARKNESS, _LEAST_ALPHA = 5.0, 0.02  # opacity of all trees together if each were alone, and of one


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
