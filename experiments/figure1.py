"""Figure 1: the variables of the coalescent, a path of Brownian motion down a tree, and points of the same in two dimensions."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import coaltree as ct
from coaltree.plot.style import MIXED, PALETTE, PLAIN
from coaltree.tree.layout import elbows, node_positions

from .drawing import new_figure, title_panels
from .outcome import Figures, ResultTables, Setting, Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]

TABLES = ()
STEPS = 400  # of the path, along the height of the tree


def run(setting: Setting) -> ResultTables:
    """Return nothing: the figure is drawn from draws of the model."""
    return {}


def draw(tables: Tables) -> Figures:
    """Draw the three panels."""
    with new_figure(1, 3, (12, 4.2)) as (figure, axes):
        _draw_variables(axes[0])
        _draw_path(axes[1])
        _draw_points(axes[2])
        title_panels(axes, ["the coalescent of four leaves", "Brownian motion down a tree", "in two dimensions"])
    return {"figure1": figure}


def _draw_variables(axis: Axes) -> None:
    tree = ct.Tree([[0, 1], [2, 3], [4, 5]], [0, 0, 0, 0, 0.5, 1.0, 1.8], list("1234"))
    places = node_positions(tree.children, tree.first_positions[: tree.n_leaves].astype(float))
    for bracket in elbows(tree.children, tree.heights):
        axis.plot(-bracket[:, 1], bracket[:, 0], color=PALETTE[0])
    axis.plot([-tree.heights[-1], -tree.heights[-1] - 0.35], [places[-1]] * 2, color=PALETTE[0])
    sets = ["{1}", "{2}", "{3}", "{4}", "{1,2}", "{3,4}", "{1,2,3,4}"]
    for node, (place, height) in enumerate(zip(places, tree.heights, strict=True)):
        axis.plot(-height, place, "o", color=PLAIN, markersize=3.5)
        leaf = node < tree.n_leaves
        text = f"$x_{node + 1}$" if leaf else f"$y_{{{sets[node][1:-1]}}}$"
        axis.annotate(text, (-height, place), (6, 0) if leaf else (4, 7), textcoords="offset points", va="center")
    times = [0.0, *-tree.merge_heights]
    for k, time in enumerate(times):
        axis.axvline(time, color=MIXED, linestyle=":", linewidth=1)
        axis.text(time, 3.62, f"$t_{k}$" + (" = 0" if k == 0 else ""), ha="center")
    for k, (later, earlier) in enumerate(pairwise(times)):
        axis.annotate(
            "",
            (earlier, -0.55),
            (later, -0.55),
            arrowprops={"arrowstyle": "<->", "color": PLAIN, "shrinkA": 0, "shrinkB": 0},
        )
        axis.text((earlier + later) / 2, -0.45, f"$\\delta_{k + 1}$", ha="center", va="bottom")
    partitions = ["1|2|3|4", "1 2|3|4", "1 2|3 4", "1 2 3 4"]
    for partition, left, right in zip(partitions, [*times[1:], -2.25], times, strict=True):
        axis.text((left + right) / 2, -0.95, partition, ha="center", va="center", fontsize=8)
    axis.text(0.06, -0.95, "$\\pi(t)$", va="center")
    axis.set(xlim=(-2.25, 0.3), ylim=(-1.2, 3.8), xlabel="time", yticks=[])
    axis.spines["left"].set_visible(False)


def _draw_path(axis: Axes) -> None:
    rng = np.random.default_rng(5)
    tree = ct.simulate_tree(8, rng)
    states, branches = _diffuse(tree, 1, rng)
    for node, (times, path) in branches.items():
        axis.plot(times, path[:, 0], color=PALETTE[node % len(PALETTE)], linewidth=0.8)
    n = tree.n_leaves
    axis.plot(
        -tree.heights[n:], states[n:, 0], "o", markerfacecolor="white", markeredgecolor=PLAIN, markersize=6, zorder=3
    )
    axis.plot(np.zeros(n), states[:n, 0], ".", color=PLAIN, zorder=3)
    axis.set(xlabel="time", ylabel="state")


def _draw_points(axis: Axes) -> None:
    rng = np.random.default_rng(2)
    tree = ct.simulate_tree(250, rng)
    states, _ = _diffuse(tree, 2, rng)
    for node, parent in enumerate(tree.parents[:-1]):
        axis.plot(*states[[node, parent]].T, color=PALETTE[4], linewidth=0.7, zorder=1)
    axis.plot(*states[: tree.n_leaves].T, ".", color=PLAIN, markersize=3.5)
    axis.plot(*states[-1], "o", markerfacecolor="white", markeredgecolor=PLAIN, markersize=6)
    axis.set(xlabel="first dimension", ylabel="second dimension")
    axis.set_aspect("equal", adjustable="datalim")


def _diffuse(
    tree: ct.Tree, n_columns: int, rng: np.random.Generator
) -> tuple[FloatArray, dict[int, tuple[FloatArray, FloatArray]]]:
    """Return the states at all nodes of a draw, and the path along the branch above each node but the root."""
    states = np.zeros((tree.n_nodes, n_columns))
    branches = {}
    for node in range(tree.n_nodes - 2, -1, -1):
        above, below = tree.heights[tree.parents[node]], tree.heights[node]
        steps = 1 + int(STEPS * (above - below) / tree.heights[-1])
        moves = rng.standard_normal((steps, n_columns)) * np.sqrt((above - below) / steps)
        path = states[tree.parents[node]] + np.vstack([np.zeros(n_columns), np.cumsum(moves, axis=0)])
        states[node] = path[-1]
        branches[node] = (-np.linspace(above, below, steps + 1), path)
    return states, branches
