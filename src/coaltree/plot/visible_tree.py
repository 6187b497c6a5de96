"""What a dendrogram shows of a tree, and where: every leaf, or the top of the tree with collapsed clades."""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..tree.edit import tree_top
from ..tree.layout import display_name, display_width, node_positions
from ..tree.tree import Tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# Above so many leaves a picture shows clades rather than leaves, unless asked for otherwise, and so many of them.
MOST_LEAVES = 2_000
MOST_CLADES = 50
_GAP = 0.7  # what a clade's wedge leaves of its room
_NAME_CHARACTERS = 30
_WIDE = 1.7  # characters that a wide one takes the room of


class Drawn(NamedTuple):
    """The part of a tree that is drawn; its leaves are the tips of the picture."""

    whole: Tree
    tree: Tree
    nodes: IntArray  # which node of the whole tree each of its nodes is
    widths: FloatArray  # room of each tip along the leaves; that of a leaf is 1
    places: FloatArray  # where each of its nodes stands along the leaves

    @property
    def n_tips(self) -> int:
        """Number of tips: leaves, or clades that stand for several."""
        return self.tree.n_leaves

    @property
    def heights(self) -> FloatArray:
        """Heights of its nodes."""
        return self.whole.heights[self.nodes]

    @property
    def counts(self) -> IntArray:
        """Number of leaves that each tip stands for."""
        return self.whole.leaf_counts[self.nodes[: self.n_tips]]

    @property
    def span(self) -> float:
        """Room of all tips together."""
        return float(np.sum(self.widths))

    def branches(self) -> FloatArray:
        """Return lines of three points (place, height), two for each merge: up from the child, then across."""
        n, flat = self.n_tips, self.tree.children.ravel()
        above = np.repeat(np.arange(n, 2 * n - 1), 2)
        points = np.empty((len(flat), 3, 2))
        points[:, :2, 0] = self.places[flat][:, None]
        points[:, 2, 0] = self.places[above]
        points[:, 0, 1] = self.heights[flat]
        points[:, 1:, 1] = self.heights[above][:, None]
        return points

    def wedges(self) -> tuple[IntArray, FloatArray]:
        """Return the tips that stand for several leaves, in order, and for each a triangle (place, height) down to 0."""
        order = self.tree.leaf_order
        tips = order[self.counts[order] > 1]
        half = (self.widths[tips] - _GAP) / 2
        corners = np.zeros((len(tips), 3, 2))
        corners[:, :, 0] = self.places[tips][:, None] + half[:, None] * [0, -1, 1]
        corners[:, 0, 1] = self.heights[tips]
        return tips, corners

    def texts(self) -> list[str]:
        """Return the names of the tips as they are drawn, in order: of a leaf its own, of a clade its number of leaves."""
        order = self.tree.leaf_order
        tips = zip(self.nodes[order].tolist(), self.counts[order].tolist(), strict=True)
        return [shown(self.whole.leaf_names[node]) if count == 1 else f"n = {count:,}" for node, count in tips]


def drawn_part(tree: Tree, collapse: Any) -> Drawn:
    """Choose what is drawn of a tree, and where it stands.

    Parameters
    ----------
    tree : Tree
    collapse : int, "auto" or None
        As of :func:`plot_dendrogram`.

    Returns
    -------
    Drawn
    """
    n = tree.n_leaves
    n_tips = _checked_tips(collapse, n)
    top, nodes = tree_top(tree, n_tips) if n_tips < n else (tree, np.arange(tree.n_nodes))
    counts = tree.leaf_counts[nodes[:n_tips]]
    widths = 1 + np.log10(counts) / 3
    order = top.leaf_order
    ends = np.cumsum(widths[order])
    places = np.empty(n_tips)
    places[order] = ends - widths[order] / 2 - 0.5
    return Drawn(tree, top, nodes, widths, node_positions(top.children, places))


def _checked_tips(collapse: Any, n_leaves: int) -> int:
    if collapse is None:
        return n_leaves
    if isinstance(collapse, str) and collapse == "auto":
        return n_leaves if n_leaves <= MOST_LEAVES else MOST_CLADES
    if (
        isinstance(collapse, bool | np.bool_)
        or not isinstance(collapse, numbers.Real)
        or collapse < 1
        or collapse != collapse // 1
    ):
        raise InputError(
            f"collapse is {collapse!r}; it must be a whole number of clades of at least 1, 'auto', or None to draw all leaves."
        )
    return min(int(float(collapse)), n_leaves)


def shown(name: str) -> str:
    """Return a name as it is drawn."""
    return display_name(name, _NAME_CHARACTERS, " ")


def columns(name: str) -> float:
    """Return the room of a name, in characters."""
    return display_width(name, _WIDE)
