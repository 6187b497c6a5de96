"""Where the nodes of a drawn tree stand, apart from any drawing library."""

from __future__ import annotations

import unicodedata
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .tree import Tree


def node_positions(tree: Tree, leaf_places: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return the coordinate of every node across the direction of time.

    Parameters
    ----------
    tree : Tree
    leaf_places : ndarray of float, shape (n,), optional
        Where the leaves stand; by default at 0, 1, ..., n - 1 in the order of ``tree.leaf_order``.

    Returns
    -------
    ndarray of float, shape (2n - 1,)
        A merge stands halfway between its children.
    """
    own = tree.first_positions[: tree.n_leaves].astype(np.float64) if leaf_places is None else leaf_places
    places: list[float] = own.tolist()
    for left, right in zip(tree.children[:, 0].tolist(), tree.children[:, 1].tolist(), strict=True):
        places.append((places[left] + places[right]) / 2)
    return np.array(places)


def elbows(tree: Tree) -> NDArray[np.float64]:
    """Return the bracket of every merge as a line of four points.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    ndarray of float, shape (n - 1, 4, 2)
        Points (position, height): from the left child up to the merge's height, across, and down to the
        right child.
    """
    n = tree.n_leaves
    places = node_positions(tree)
    points = np.empty((n - 1, 4, 2))
    points[:, :2, 0] = places[tree.children[:, :1]]
    points[:, 2:, 0] = places[tree.children[:, 1:]]
    points[:, 0, 1] = tree.heights[tree.children[:, 0]]
    points[:, 3, 1] = tree.heights[tree.children[:, 1]]
    points[:, 1:3, 1] = tree.heights[n:, None]
    return points


def shown_name(name: str, most: int, instead: str) -> str:
    """Shorten a name to so many characters, and replace control characters, lone surrogates and line ends."""
    if len(name) > most:
        name = name[: most - 1] + "…"
    return "".join(instead if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") else c for c in name)


def name_width(name: str, wide: float) -> float:
    """Count characters, wide ones as nearly two."""
    return sum(wide if unicodedata.east_asian_width(c) in "WF" else 1.0 for c in name)


MAX_NAMES = 60
MAX_MERGES = 200
_NAME_CHARACTERS = 40
_WIDE = 1.8  # characters that a wide one takes the room of

_TREE_WIDTH = 420.0
_MARGIN = 8.0
_SCALE_HEIGHT = 18.0


def html(tree: Tree) -> str:
    """Return one line of text and a dendrogram as HTML.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    str
        The same for the same tree, self-contained, in the colour of the text around it. Trees of more than 60
        leaves are drawn without names, and of more than 201 leaves only the 200 oldest merges are drawn.
    """
    from .edit import top_of  # only now: trees show themselves by this module, and tops are trees

    top = tree if tree.n_leaves <= MAX_MERGES + 1 else top_of(tree, MAX_MERGES + 1).tree
    named = tree.n_leaves <= MAX_NAMES
    row = 16.0 if named else max(2.0, min(8.0, 480.0 / top.n_leaves))
    summary = f"{tree.n_leaves:,} {'leaf' if tree.n_leaves == 1 else 'leaves'}, root height {tree.heights[-1]:.4g}"
    if top is not tree:
        summary += f"; the {MAX_MERGES} oldest merges are drawn"
    names = [shown_name(tree.leaf_names[leaf], _NAME_CHARACTERS, "�") for leaf in tree.leaf_order] if named else []
    width = 2 * _MARGIN + _TREE_WIDTH + max((7.0 * name_width(name, _WIDE) + 8 for name in names), default=0.0)
    height = 2 * _MARGIN + row * top.n_leaves + _SCALE_HEIGHT
    names_x = _MARGIN + _TREE_WIDTH + 6
    texts = [
        f'<text x="{names_x:.1f}" y="{_MARGIN + row * (i + 0.5) + 4:.1f}">{escape(name)}</text>'
        for i, name in enumerate(names)
    ]
    scale = f'y="{height - _MARGIN:.1f}" opacity="0.6"'
    texts.append(f'<text x="{_MARGIN:.1f}" {scale}>{tree.heights[-1]:.4g}</text>')
    if tree.heights[-1] > 0:
        texts.append(f'<text x="{_MARGIN + _TREE_WIDTH:.1f}" {scale} text-anchor="end">0</text>')
    return (
        f'<div><div>Tree: {summary}</div><svg width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="Dendrogram: {summary}" '
        f'style="max-width:100%;height:auto" font-family="sans-serif" font-size="12" fill="currentColor">'
        f'<path d="{_path(top, row)}" fill="none" stroke="currentColor" stroke-width="1.2"/>'
        f"{''.join(texts)}</svg></div>"
    )


def _path(tree: Tree, row: float) -> str:
    """Draw every merge's bracket, root at the left."""
    if tree.n_leaves == 1:
        return f"M{_MARGIN:.1f} {_MARGIN + row / 2:.1f}H{_MARGIN + _TREE_WIDTH:.1f}"
    points = elbows(tree)
    # A tree whose heights are all 0 is a comb at the present.
    span = float(tree.heights[-1]) or 1.0
    across = _MARGIN + row * (points[:, :, 0] + 0.5)
    along = _MARGIN + _TREE_WIDTH * (1.0 - points[:, :, 1] / span)
    return "".join(
        f"M{x[0]:.1f} {y[0]:.1f}H{x[1]:.1f}V{y[2]:.1f}H{x[3]:.1f}"
        for x, y in zip(along.tolist(), across.tolist(), strict=True)
    )
