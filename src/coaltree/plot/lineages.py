"""``plot_lineages``: the number of lineages through time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._validation import quote
from ..errors import InputError
from ..tree.coalescent import Band, expected_lineages, live_lineages, prior_band, sample_band
from ..tree.sample import TreeSample
from ..tree.tree import Tree, check_tree
from .style import PALETTE, PLAIN, SMALL_FONT, check_axes, hide_spines, new_axes, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PRIOR = "#7A7A7A"
_POINTS = 200


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
    if not (isinstance(level, int | float | np.floating) and 0 < level < 1):
        raise InputError(f"level is {quote(level)}; it must be a number between 0 and 1.")
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
        _fill(ax, expected, _PRIOR, f"prior, {100 * level:g} %")
        top = max(top, float(expected.high[-1]))
        times = np.concatenate([[0.0], np.geomspace(1e-3 / n, top, _POINTS)])
        ax.plot(times, expected_lineages(n, times), color=_PRIOR, linestyle="--", linewidth=1.2, label="prior, mean")
    if isinstance(trees, TreeSample) and band is not None:
        shade = color or PALETTE[0]
        _fill(ax, band, shade, f"sample, {100 * level:g} %")
        middle = sample_band(members, trees.weights, 0.0)
        ends, counts = [0.0, *middle.low, top], [n, *middle.counts, 1]
        ax.step(ends, counts, where="post", color=shade, linewidth=1.6, label="sample, median")
    else:
        many = len(members) > 1
        for k, tree in enumerate(members):
            heights = np.concatenate([[0.0], np.unique(tree.merge_heights), [top]])
            ax.step(
                heights,
                live_lineages(tree, heights),
                where="post",
                color=color or (PLAIN if not many else PALETTE[k % len(PALETTE)]),
                linewidth=1.0 if many else 1.6,
                label="tree" if not many else None,
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
