"""Newick text as programs write it, read in few steps a node.

Only what is right and has no blanks or comments between its parts is read here. All other texts are left to
:class:`coaltree.tree.newick_reader.Reader`, which also knows what is wrong with one.
"""

from __future__ import annotations

import math
import re

import numpy as np
from numpy.typing import NDArray

from .newick_reader import WORD, numbered_by_height

_LABEL = rf"(?:{WORD}|'[^']*(?:''[^']*)*')"
# A leaf with the parentheses before it, or a closed parenthesis with its label, and what comes after.
_NODE = re.compile(rf"(\(*)({_LABEL})?:([0-9.eE+-]+)([,)])")
_REST = re.compile(rf"{_LABEL}?(?::([0-9.eE+-]+))?;?\s*")


def read_plain(
    text: str, preserve_underscores: bool, tolerance: float
) -> tuple[NDArray[np.intp], NDArray[np.float64], list[str]] | None:
    """Read a tree of two or more leaves as :func:`coaltree.tree.newick.parse` does, if its text is plain.

    Parameters
    ----------
    text : str
    preserve_underscores : bool
    tolerance : float

    Returns
    -------
    children : ndarray of int, shape (n - 1, 2)
    heights : ndarray of float, shape (2n - 1,)
    names : list of str
        Or None instead of all three, if the text is not plain or not such a tree.
    """
    try:
        return _read(text, preserve_underscores, tolerance)
    except (ValueError, IndexError):  # a length that is no number, or a parenthesis that closes nothing
        return None


def _read(
    text: str, preserve_underscores: bool, tolerance: float
) -> tuple[NDArray[np.intp], NDArray[np.float64], list[str]] | None:
    names: list[str] = []
    children: list[int] = []
    heights: list[float] = []
    # What is complete inside of open parentheses: the node, and how far its deepest and shallowest leaf are below its parent.
    nodes: list[int] = []
    highs: list[float] = []
    lows: list[float] = []
    opened: list[int] = []  # how much was complete where each parenthesis opens
    high = low = 0.0
    closed = False  # whether a parenthesis was just closed, so that its own label and length come
    place, match_at = 0, _NODE.match
    while match := match_at(text, place):
        opening, label, digits, mark = match.groups()
        place = match.end()
        length = float(digits) + 0.0  # turns -0.0 into 0.0
        if not length >= 0:
            return None
        if closed:
            if opening:
                return None
            nodes.append(-len(heights))
        else:
            if label is None:
                return None
            opened += [len(nodes)] * len(opening)
            if label[0] == "'":
                label = label[1:-1].replace("''", "'")
            elif not preserve_underscores and "_" in label:
                label = label.replace("_", " ")
            nodes.append(len(names))
            names.append(label)
            high = low = 0.0
        highs.append(high + length)
        lows.append(low + length)
        closed = mark == ")"
        if closed:
            if len(nodes) - opened.pop() != 2:
                return None
            right, left = nodes.pop(), nodes.pop()
            children += (left, right)
            high, low = max(highs.pop(), highs.pop()), min(lows.pop(), lows.pop())
            heights.append(high)
    rest = _REST.fullmatch(text, place)
    if not (rest and closed) or opened or nodes or not high < math.inf or high - low > tolerance * high:
        return None
    if not 0 <= float(rest.group(1) or 0) < math.inf or "" in names or len(set(names)) < len(names):
        return None
    return *numbered_by_height(children, heights), names
