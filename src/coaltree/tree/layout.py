"""Coordinates of a drawn tree and widths of its labels, without a drawing library; and the sketch that notebooks show."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from html import escape
from os.path import commonprefix

import numpy as np
from numpy.typing import NDArray

from .._validation import escape_controls
from .arrays import TreeArrays, first_positions, leaf_counts, oldest_merges

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# The sketch shows at most this number of names, and of merges.
MAX_NAMED_LEAVES = 60
MAX_MERGES = 200
_MAX_NAME_LENGTH = 40
_WIDE_CHARACTER = 1.8  # width of an East Asian character, in characters
_CONTEXT = 4  # characters kept before the first one in which names differ
_LINE_ENDS = re.compile("[\t-\r\x85\u2028\u2029]")

_TREE_WIDTH = 420.0
_MARGIN = 8.0
_SCALE_HEIGHT = 18.0


def node_positions(children: IntArray, leaf_positions: FloatArray) -> FloatArray:
    """Return the coordinate of every node across the direction of time.

    Parameters
    ----------
    children : ndarray of int, shape (n - 1, 2)
    leaf_positions : ndarray of float, shape (n,)

    Returns
    -------
    ndarray of float, shape (2n - 1,)
        A merge is halfway between its children.
    """
    positions: list[float] = leaf_positions.tolist()
    for left, right in zip(children[:, 0].tolist(), children[:, 1].tolist(), strict=True):
        positions.append((positions[left] + positions[right]) / 2)
    return np.array(positions)


def elbows(children: IntArray, heights: FloatArray) -> FloatArray:
    """Return the bracket of every merge as a line of four points.

    Parameters
    ----------
    children : ndarray of int, shape (n - 1, 2)
    heights : ndarray of float, shape (2n - 1,)

    Returns
    -------
    ndarray of float, shape (n - 1, 4, 2)
        Points (position, height): from the left child up to the merge, across, and down to the right child. Leaves are
        at positions 0, 1, ..., n - 1.
    """
    n = len(children) + 1
    leaf_positions = first_positions(children, leaf_counts(children))[:n].astype(np.float64)
    positions = node_positions(children, leaf_positions)
    points = np.empty((n - 1, 4, 2))
    points[:, :2, 0] = positions[children[:, :1]]
    points[:, 2:, 0] = positions[children[:, 1:]]
    points[:, 0, 1] = heights[children[:, 0]]
    points[:, 3, 1] = heights[children[:, 1]]
    points[:, 1:3, 1] = heights[n:, None]
    return points


def display_name(name: str, max_length: int) -> str:
    """Return a name on one line, with control characters escaped; of a long name, its beginning and its end.

    Examples
    --------
    >>> display_name("a name", 36), display_name("The first of a long series of names, number 12", 36)
    ('a name', 'The first of a long ser…s, number 12')
    """
    return _cut(_one_line(name), max_length)


def display_names(names: Sequence[str], max_length: int) -> list[str]:
    """Return names as `display_name` does; of long ones that would look alike, the part from where they differ.

    Examples
    --------
    >>> display_names(["a", *(f"the isolate of a mouse, {k}, complete genome" for k in "XY")], 24)
    ['a', '…se, X, complete genome', '…se, Y, complete genome']
    """
    texts = [_one_line(name) for name in names]
    while True:
        shown = [_cut(text, max_length) for text in texts]
        alike: dict[str, set[str]] = {}
        for short, text in zip(shown, texts, strict=True):
            alike.setdefault(short, set()).add(text)
        starts = {
            short: len(commonprefix(list(group))) - _CONTEXT  # noqa: RUF071 (of names, not of paths)
            for short, group in alike.items()
            if len(group) > 1
        }
        if not starts:
            return shown
        texts = [
            f"…{text[starts[short] :]}" if short in starts else text for short, text in zip(shown, texts, strict=True)
        ]


def _one_line(name: str) -> str:
    return escape_controls(_LINE_ENDS.sub(" ", name))


def _cut(text: str, max_length: int) -> str:
    end = max_length // 3
    return text if len(text) <= max_length else f"{text[: max_length - end - 1]}…{text[-end:]}"


def display_width(name: str, wide_character: float) -> float:
    """Return the width of a name in characters; East Asian characters count as nearly two."""
    return sum(wide_character if unicodedata.east_asian_width(c) in "WF" else 1.0 for c in name)


def tree_html(tree: TreeArrays) -> str:
    """Return one line of text and a dendrogram as HTML.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    str
        Self-contained, in the text colour of the page, the same for the same tree. Trees of more than 60 leaves have no
        names. For trees of more than 201 leaves, only the 200 oldest merges are drawn.
    """
    children, heights, summary = tree.children, tree.heights, _describe(tree)
    if tree.n_leaves > MAX_MERGES + 1:
        children, nodes = oldest_merges(tree.children, MAX_MERGES + 1)
        heights = np.where(np.arange(len(nodes)) <= MAX_MERGES, 0.0, tree.heights[nodes])
        summary += f"; the {MAX_MERGES} oldest merges are drawn"
    n_tips = len(children) + 1
    has_names = tree.n_leaves <= MAX_NAMED_LEAVES
    row = 16.0 if has_names else max(2.0, min(8.0, 480.0 / n_tips))
    names = [tree.leaf_names[leaf] for leaf in tree.leaf_order] if has_names else []
    names = display_names(names, _MAX_NAME_LENGTH)
    name_widths = [7.0 * display_width(name, _WIDE_CHARACTER) + 8 for name in names]
    width = 2 * _MARGIN + _TREE_WIDTH + max(name_widths, default=0.0)
    height = 2 * _MARGIN + row * n_tips + _SCALE_HEIGHT
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
        f'<path d="{_svg_path(children, heights, row)}" fill="none" stroke="currentColor" stroke-width="1.2"/>'
        f"{''.join(texts)}</svg></div>"
    )


def _describe(tree: TreeArrays) -> str:
    return f"{tree.n_leaves:,} {'leaf' if tree.n_leaves == 1 else 'leaves'}, root height {tree.heights[-1]:.4g}"


def _svg_path(children: IntArray, heights: FloatArray, row: float) -> str:
    """Draw the bracket of every merge, with the root on the left."""
    if len(children) == 0:
        return f"M{_MARGIN:.1f} {_MARGIN + row / 2:.1f}H{_MARGIN + _TREE_WIDTH:.1f}"
    points = elbows(children, heights)
    # If all heights are 0, the tree is a comb at the present.
    span = float(heights[-1]) or 1.0
    across = _MARGIN + row * (points[:, :, 0] + 0.5)
    along = _MARGIN + _TREE_WIDTH * (1.0 - points[:, :, 1] / span)
    return "".join(
        f"M{x[0]:.1f} {y[0]:.1f}H{x[1]:.1f}V{y[2]:.1f}H{x[3]:.1f}"
        for x, y in zip(along.tolist(), across.tolist(), strict=True)
    )
