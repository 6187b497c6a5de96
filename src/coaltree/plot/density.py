"""``plot_density``: the predictive density of two columns, with the tree over it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._parameters import FLAG, check_parameter
from .._validation import quote, to_floats, to_whole_number
from ..errors import InputError
from ..process.likelihood import Beliefs
from ..table.encoding import EncodedColumn, encoded_columns
from ..table.labels import listing
from ..workflow.model import FittedModel, check_fitted_model
from .style import (
    PLAIN,
    SMALL_FONT,
    check_axes,
    color_nodes,
    draw_legend,
    legend_height,
    new_axes,
    require_matplotlib,
    set_axis_label,
)
from .visible_tree import N_COLLAPSED_CLADES, select_visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]

SHARES = (0.99, 0.95, 0.9, 0.8, 0.65, 0.5, 0.35, 0.2, 0.1)
MAX_DRAWN = 1e300  # matplotlib adds margins to the ends of axes and subtracts them
MAX_TREE_LEAVES = 200  # larger trees are collapsed, because branches cross in the plane
_MARGIN = 0.2  # margin on either side, as a share of the columns' range


def plot_density(
    model: Any,
    x: str | None = None,
    y: str | None = None,
    *,
    ax: Axes | None = None,
    tree: bool = True,
    resolution: int = 64,
    shares: Sequence[float] = SHARES,
) -> Axes:
    """Draw the predictive density of a new row in two real columns, with the tree over it.

    All other columns are integrated out. Leaves are at the values of their rows, with missing cells at their mean, and
    merges at the mean of their state given the table.

    Parameters
    ----------
    model : CoalescentClustering or CoalescentImputer, fitted
    x, y : str, optional
        Names of two real columns; optional if there are exactly two.
    ax : matplotlib Axes, optional
        Where to draw; by default a new pyplot figure.
    tree : bool, default True
        Draw the tree, with the colours of the model's clusters; up to thirty are named above the axes. For more than 200 leaves,
        only the 49 oldest merges are drawn.
    resolution : int, default 64
        Points of the grid along each axis.
    shares : sequence of float
        Contours enclose the smallest areas with these shares of the density on the grid.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    InputError
        If ``model`` is not fitted, or the columns are not two real columns.

    Examples
    --------
    >>> import coaltree as ct
    >>> model = ct.CoalescentClustering().fit([[0.0, 1.1], [0.1, 0.9], [4.0, 3.1], [4.2, 3.0]])
    >>> ax = ct.plot_density(model)  # doctest: +SKIP
    """
    fitted = check_fitted_model(model)
    x_column, y_column = _check_columns_xy(x, y, encoded_columns(fitted.encoding))
    check_axes(ax)
    check_parameter("tree", tree, FLAG)
    points = to_whole_number(resolution)
    if points is None or not 2 <= points <= 1000:
        raise InputError(f"resolution is {quote(resolution)}; it must be a whole number of points from 2 to 1000.")
    inside = _check_shares(shares)
    table = fitted.matrix
    require_matplotlib()
    grids = [_grid(table[:, column.position], column, points) for column in (x_column, y_column)]
    density = _density(fitted, (x_column, y_column), grids, table.shape[1])
    levels = _levels(density, grids, inside)
    clusters = color_nodes(fitted.tree, np.arange(table.shape[0]), table.shape[0], fitted.labels, None).legend
    if ax is None:
        ax = new_axes((5.6, 5.0 + legend_height(clusters if tree else {}, 5.0)))
    if len(levels) > 1:
        ax.contourf(*grids, density, levels=[*levels, 1.001], cmap="Blues", alpha=0.9)
        ax.contour(*grids, density, levels=levels, colors="white", linewidths=0.4)
    ax.set_xlim(grids[0][0], grids[0][-1])
    ax.set_ylim(grids[1][0], grids[1][-1])
    if tree:
        _draw_tree(ax, fitted, (x_column, y_column))
        draw_legend(ax, clusters)
    set_axis_label(ax, "x", x_column.name)
    set_axis_label(ax, "y", y_column.name)
    ax.tick_params(labelsize=SMALL_FONT)
    return ax


def _grid(codes: FloatArray, column: EncodedColumn, resolution: int) -> FloatArray:
    """Return values of a column at even distances in its own units, or in those of its power transform.

    They reach beyond the observed values, but not below 0 if none of these is, and not above 0 if none is.
    """
    scale = column.scale
    observed = scale.decode(codes[~np.isnan(codes)])
    low, high = float(observed.min()), float(observed.max())
    if max(-low, high) > MAX_DRAWN:
        raise InputError(
            f"Column {quote(column.name)} holds {max(low, high, key=abs):g}, and axes show numbers of at most {MAX_DRAWN:g} in "
            "size: rescale the column."
        )
    least = 8 * resolution * float(np.spacing(max(abs(low), abs(high))))  # so that the points differ
    margin = max(_MARGIN * (high - low), least)
    start, stop = max(low - margin, -np.inf if low < 0 else 0.0), min(high + margin, np.inf if high > 0 else 0.0)
    if scale.power is None:
        return np.linspace(start, stop, resolution)
    first, last = scale.encode(np.array([start, stop])).tolist()
    grid = scale.decode(np.linspace(first, last, resolution))
    grid[[0, -1]] = start, stop
    return grid


def _density(
    model: FittedModel, columns: tuple[EncodedColumn, EncodedColumn], grids: list[FloatArray], width: int
) -> FloatArray:
    """Return the density on the grid as a share of its maximum; rows of the result follow the second column."""
    points = np.full((len(grids[0]) * len(grids[1]), width), np.nan)
    log_slopes = np.zeros(len(points))
    for column, values in zip(columns, np.meshgrid(*grids), strict=True):
        points[:, column.position] = column.scale.encode(values.ravel())
        log_slopes += column.scale.log_slope(values.ravel())
    log_density = model.encoded_log_density(points) + log_slopes
    density: FloatArray = np.exp(log_density - log_density.max()).reshape(len(grids[1]), len(grids[0]))
    return density


def _levels(density: FloatArray, grids: list[FloatArray], shares: FloatArray) -> list[float]:
    """Return the density levels that enclose the given shares, the lowest first."""
    widths = [np.gradient(grid / np.abs(grid).max()) for grid in grids]
    masses = (density * np.outer(widths[1], widths[0])).ravel()
    order = np.argsort(-density.ravel(), kind="stable")
    enclosed = np.cumsum(masses[order]) / masses.sum()
    last = np.searchsorted(enclosed, shares).clip(max=len(order) - 1)
    levels: list[float] = np.unique(density.ravel()[order][last]).tolist()
    return levels


def _draw_tree(ax: Axes, model: FittedModel, columns: tuple[EncodedColumn, EncodedColumn]) -> None:
    from matplotlib.collections import LineCollection

    table, tree = model.matrix, model.tree
    states = Beliefs(tree, table, model.process).nodes()
    # number of real columns, which come first in the encoded table
    points = states.mean[:, [column.position for column in columns]]
    cells = table[:, [column.position for column in columns]]
    points[: len(table)] = np.where(np.isnan(cells), points[: len(table)], cells)
    points = np.column_stack([c.scale.decode(values) for c, values in zip(columns, points.T, strict=True)])
    visible = select_visible(tree, None if tree.n_leaves <= MAX_TREE_LEAVES else N_COLLAPSED_CLADES)
    labels = model.labels
    shades, node_shades, _ = color_nodes(tree, visible.nodes, visible.n_tips, labels, None)
    below = visible.tree.children.ravel()
    above = np.repeat(np.arange(visible.n_tips, visible.tree.n_nodes), 2)
    places = points[visible.nodes]
    width = float(np.clip(12 / visible.n_tips**0.5, 0.5, 1.2))
    ax.add_collection(
        LineCollection(
            list(np.stack([places[below], places[above]], axis=1)),
            colors=[shades[k] for k in node_shades[below].tolist()],
            linewidths=width,
        ),
        autolim=False,
    )
    merges = places[visible.n_tips :]
    ax.plot(*merges.T, linestyle="none", marker="s", markersize=2 * width, color=PLAIN, markeredgewidth=0)
    leaf_shades = color_nodes(tree, np.arange(tree.n_leaves), tree.n_leaves, labels, None)
    ax.scatter(
        points[: tree.n_leaves, 0],
        points[: tree.n_leaves, 1],
        s=float(np.clip(1500 / tree.n_leaves, 3.0, 30.0)),
        c=[leaf_shades.shades[k] for k in leaf_shades.node_shades.tolist()],
        edgecolors="white",
        linewidths=0.4,
        zorder=3,
    )


def _check_columns_xy(
    x: str | None, y: str | None, columns: list[EncodedColumn]
) -> tuple[EncodedColumn, EncodedColumn]:
    real = {column.name: column for column in columns if column.real}
    if x is None and y is None and len(real) == 2:
        first, second = real.values()
        return first, second
    if x is None or y is None:
        raise InputError(f"x and y must name two of the real columns in use: {listing(real) or 'none'}.")
    for parameter, name in (("x", x), ("y", y)):
        if not isinstance(name, str) or name not in real:
            raise InputError(
                f"{parameter} is {quote(name)}; it must name one of the real columns in use: {listing(real) or 'none'}."
            )
    if x == y:
        raise InputError(f"x and y are both {quote(x)}; they must be different columns.")
    return real[x], real[y]


def _check_shares(shares: Sequence[float]) -> FloatArray:
    checked = to_floats(shares)
    if checked is None or checked.ndim != 1 or not len(checked) or not np.all((checked > 0) & (checked < 1)):
        raise InputError(f"shares is {quote(shares)}; it must hold numbers between 0 and 1.")
    return np.sort(checked)
