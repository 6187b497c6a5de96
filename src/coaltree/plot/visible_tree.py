"""The visible part of a tree and its coordinates: every leaf, or the oldest merges with collapsed clades."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._parameters import Integer
from .._validation import quote
from ..errors import InputError
from ..tree.edit import tree_top
from ..tree.layout import display_name, display_names, display_width, node_positions
from ..tree.tree import Tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# By default, figures of larger trees show this number of clades instead of leaves.
MAX_VISIBLE_LEAVES = 2_000
N_COLLAPSED_CLADES = 50
_GAP = 0.7  # gap between the wedges of neighbouring clades
_MAX_NAME_LENGTH = 30
_WIDE_CHARACTER = 1.7  # width of an East Asian character, in characters


class VisibleTree(NamedTuple):
    """The part of a tree that a figure shows; its leaves are the tips of the figure."""

    original: Tree
    tree: Tree
    nodes: IntArray  # the node of the original tree that each node is
    widths: FloatArray  # width of each tip along the leaves; that of a leaf is 1
    positions: FloatArray  # coordinate of each node along the leaves

    @property
    def n_tips(self) -> int:
        """Number of tips: leaves and collapsed clades."""
        return self.tree.n_leaves

    @property
    def heights(self) -> FloatArray:
        """Heights of its nodes."""
        return self.original.heights[self.nodes]

    @property
    def counts(self) -> IntArray:
        """Number of leaves of each tip."""
        return self.original.leaf_counts[self.nodes[: self.n_tips]]

    @property
    def span(self) -> float:
        """Total width of the tips."""
        return float(np.sum(self.widths))

    def branches(self) -> FloatArray:
        """Return two lines of three points (position, height) for each merge: up from the child, then across."""
        n, flat = self.n_tips, self.tree.children.ravel()
        above = np.repeat(np.arange(n, 2 * n - 1), 2)
        points = np.empty((len(flat), 3, 2))
        points[:, :2, 0] = self.positions[flat][:, None]
        points[:, 2, 0] = self.positions[above]
        points[:, 0, 1] = self.heights[flat]
        points[:, 1:, 1] = self.heights[above][:, None]
        return points

    def wedges(self) -> tuple[IntArray, FloatArray]:
        """Return the collapsed clades in drawing order, and for each a triangle of points (position, height) down to 0."""
        order = self.tree.leaf_order
        tips = order[self.counts[order] > 1]
        half = (self.widths[tips] - _GAP) / 2
        corners = np.zeros((len(tips), 3, 2))
        corners[:, :, 0] = self.positions[tips][:, None] + half[:, None] * [0, -1, 1]
        corners[:, 0, 1] = self.heights[tips]
        return tips, corners

    def tip_labels(self) -> list[str]:
        """Return the labels of the tips in drawing order: the name of a leaf, or the number of leaves of a clade."""
        order = self.tree.leaf_order
        tips = zip(self.nodes[order].tolist(), self.counts[order].tolist(), strict=True)
        return short_names([self.original.leaf_names[node] if count == 1 else f"n = {count:,}" for node, count in tips])


def select_visible(tree: Tree, collapse: Any) -> VisibleTree:
    """Select the part of a tree that a figure shows, and compute its coordinates.

    Parameters
    ----------
    tree : Tree
    collapse : int, "auto" or None
        As of :func:`plot_dendrogram`.

    Returns
    -------
    VisibleTree
    """
    n = tree.n_leaves
    n_tips = _check_collapse(collapse, n)
    top, nodes = tree_top(tree, n_tips) if n_tips < n else (tree, np.arange(tree.n_nodes))
    counts = tree.leaf_counts[nodes[:n_tips]]
    widths = 1 + np.log10(counts) / 3
    order = top.leaf_order
    ends = np.cumsum(widths[order])
    positions = np.empty(n_tips)
    positions[order] = ends - widths[order] / 2 - 0.5
    return VisibleTree(tree, top, nodes, widths, node_positions(top.children, positions))


def _check_collapse(collapse: Any, n_leaves: int) -> int:
    if collapse is None:
        return n_leaves
    if isinstance(collapse, str) and collapse == "auto":
        return n_leaves if n_leaves <= MAX_VISIBLE_LEAVES else N_COLLAPSED_CLADES
    if not Integer(1, as_float=True).accepts(collapse):
        raise InputError(
            f"collapse is {quote(collapse)}; it must be a whole number of clades of at least 1, 'auto', or None to draw "
            "all leaves."
        )
    return min(int(collapse), n_leaves)


def short_name(name: str) -> str:
    """Return a name as figures show it: on one line, of at most 30 characters."""
    return display_name(name, _MAX_NAME_LENGTH)


def short_names(names: Sequence[str]) -> list[str]:
    """Return names that figures show together, so cut that different names look different."""
    return display_names(names, _MAX_NAME_LENGTH)


def name_width(name: str) -> float:
    """Return the width of a name in characters."""
    return display_width(name, _WIDE_CHARACTER)
