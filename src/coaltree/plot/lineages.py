"""Lineages through time, with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..tree.coalescent import Band, expected_lineages, live_lineages, prior_band, sample_band
from ..tree.sample import TreeSample
from ..tree.tree import Tree, check_tree
from .style import PALETTE, PLAIN, SMALL_FONT, check_axes, hide_spines, need_matplotlib, new_axes

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
    """Draw how many lineages are live at each height, beside what Kingman's coalescent expects.

    A tree of data that the prior fits runs inside the grey band. Below it, rows are more alike than the prior
    expects; above it, less.

    Parameters
    ----------
    trees : Tree, TreeSample or sequence of Tree
        Of one tree the steps are drawn; of a sample a band that holds each step in a share ``level`` of the trees, by their
        weights, and its middle; of a sequence every tree on its own.
    ax : matplotlib Axes, optional
        Where to draw; by default a new pyplot figure.
    prior : bool, default True
        Whether to draw the expectation, which is exact, and a pointwise band of probability ``level`` under the prior, from
        10,000 draws with a fixed seed; the band begins at 1,000 lineages.
    level : float, default 0.95
        Probability of the bands.
    log_heights : bool, default False
        Whether heights are on a logarithmic scale too, which shows more of large trees.
    color : str, optional
        Colour of the trees.

    Returns
    -------
    matplotlib Axes
        Numbers of lineages are on a logarithmic scale.

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
        raise InputError(f"level is {level!r}; it must be a number between 0 and 1.")
    check_axes(ax)
    drawn = _checked_trees(trees)
    n = drawn[0].n_leaves
    need_matplotlib()
    ax = new_axes((5.5, 4.0)) if ax is None else ax
    tops = [float(tree.heights[-1]) for tree in drawn]
    band = sample_band(drawn, trees.weights, level) if isinstance(trees, TreeSample) and n > 1 else None
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
        middle = sample_band(drawn, trees.weights, 0.0)
        ends, counts = [0.0, *middle.low, top], [n, *middle.counts, 1]
        ax.step(ends, counts, where="post", color=shade, linewidth=1.6, label="sample, median")
    else:
        many = len(drawn) > 1
        for k, tree in enumerate(drawn):
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
            [float(tree.heights[tree.heights > 0][0]) for tree in drawn if tree.heights[-1] > 0], default=1e-3 * top
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
    """Fill between the two staircases that lead down through the ends of the band."""
    last = max(float(band.high[-1]), float(band.low[-1]))
    times = np.unique(np.concatenate([band.low, band.high, [last]]))
    start = int(band.counts[0]) + 1
    fewest = start - np.searchsorted(band.low, times, side="right")
    most = start - np.searchsorted(band.high, times, side="right")
    ax.fill_between(times, fewest, most, step="post", color=color, alpha=0.22, linewidth=0, label=label)


def _checked_trees(trees: Tree | TreeSample | Sequence[Tree]) -> list[Tree]:
    if isinstance(trees, Tree):
        return [trees]
    if isinstance(trees, TreeSample):
        return list(trees.trees)
    if not isinstance(trees, list | tuple) or not trees:
        return [check_tree(trees, "trees")]
    drawn = [check_tree(tree, f"trees[{k}]") for k, tree in enumerate(trees)]
    for k, tree in enumerate(drawn):
        if tree.n_leaves != drawn[0].n_leaves:
            raise InputError(
                f"trees[{k}] has {tree.n_leaves} leaves and trees[0] has {drawn[0].n_leaves}; lineages are compared among trees "
                "of as many leaves."
            )
    return drawn
