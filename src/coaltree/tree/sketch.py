"""The small picture of a tree that a notebook shows."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from .drawn_names import name_width, shown_name
from .layout import elbows

if TYPE_CHECKING:
    from .tree import Tree

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
    from .top import top_of  # only now: trees show themselves by this module, and tops are trees

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
