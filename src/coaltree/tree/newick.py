"""Newick text, both directions, without recursion: the depth of a tree is limited by memory alone.

Which names other readers give back unchanged
---------------------------------------------
:func:`render` quotes every name that is not made of ASCII letters, digits, ``.``, ``+`` and ``-``, and
doubles the quotes inside: the form of the standard, which :func:`parse` reads back whatever the name. Two
readers have limits of their own that no other spelling would lift for both:

* DendroPy 5 reads a quoted label that is exactly ``(``, ``)``, ``,``, ``:`` or ``;`` as punctuation, tells
  names that differ only in case apart only with ``case_sensitive_taxon_labels=True``, and recurses, so that
  it gives up on trees some hundred levels deep.
* Bio.Phylo drops quotes at the beginning of a name, drops line breaks with the blanks before them, and
  takes a backslash right before a quote (so also at the end of a quoted name) for an escape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .newick_reader import Reader, numbered_by_height, short
from .plain_newick import read_plain
from .spans import first_positions, leaf_counts

_PLAIN_NAME = re.compile(r"[A-Za-z0-9.+-]+").fullmatch

Parsed = tuple[NDArray[np.intp], NDArray[np.float64], list[str]]


def parse(text: str, preserve_underscores: bool, tolerance: float) -> Parsed:
    """Read one rooted, binary, ultrametric tree.

    Parameters
    ----------
    text : str
        The tree. Comments, labels of interior nodes and a length at the root are left out.
    preserve_underscores : bool
        Keep underscores of unquoted labels instead of reading them as blanks.
    tolerance : float
        Largest difference of two leaves' depths, as a share of the root's height.

    Returns
    -------
    children : ndarray of int, shape (n - 1, 2)
        Leaves are numbered as they appear; merges by height, those of equal height as they close in the text.
    heights : ndarray of float, shape (2n - 1,)
        Added up from the leaves, the larger of the two sums at each merge.
    names : list of str

    Raises
    ------
    InputError
        When the text is not such a tree, with the place in it.
    """
    if not isinstance(text, str):
        raise InputError(
            f"A Newick tree is read from a string, not from {type(text).__name__}; pass the text of the file."
        )
    if not (isinstance(tolerance, (int, float)) and tolerance >= 0):
        raise InputError(f"tolerance is {tolerance!r}; it must be a number of at least 0.")
    plain = read_plain(text, preserve_underscores, tolerance)
    if plain is not None:
        return plain
    reader = Reader(text, preserve_underscores)
    reader.read()
    reader.check_ultrametric(tolerance)
    return *numbered_by_height(reader.children, reader.heights), reader.names


def quoted(name: str) -> str:
    """Return a name as it is written in a text."""
    return name if _PLAIN_NAME(name) else "'" + name.replace("'", "''") + "'"


def render(children: NDArray[np.intp], heights: NDArray[np.float64], names: Iterable[str]) -> str:
    """Write a tree as Newick text.

    Parameters
    ----------
    children : ndarray of int, shape (n - 1, 2)
    heights : ndarray of float, shape (2n - 1,)
    names : iterable of str
        Names of the leaves; quoted unless made of ASCII letters, digits, ``.``, ``+`` and ``-`` alone. An
        underscore is quoted too: outside of quotes it stands for a blank.

    Returns
    -------
    str
        Branch lengths have as many digits as bring the same number back.
    """
    labels = [quoted(name) for name in names]
    n = len(labels)
    if n == 1:
        return labels[0] + ";"
    flat = children.ravel()
    lengths = np.empty(2 * n - 2)
    # Adding 0.0 turns -0.0 into 0.0.
    lengths[flat] = np.repeat(heights[n:], 2) - heights[flat] + 0.0
    counts = leaf_counts(children)
    first = first_positions(children, counts)
    # A node is complete after its last leaf, and before its parent, whose number is larger: one stable sort
    # brings the nodes into the order of the text. Parentheses open before the first leaf of their merge.
    order = np.argsort(first + counts, kind="stable")
    opening = np.bincount(first[n:], minlength=n)[first[:n]].tolist()
    heads = ["," + "(" * count + label for count, label in zip(opening, labels, strict=True)]
    heads += [")"] * (n - 1)
    tails = map(repr, lengths[order[:-1]].tolist())
    parts = [f"{heads[node]}:{tail}" for node, tail in zip(order[:-1].tolist(), tails, strict=True)]
    return "".join(parts)[1:] + ");"


def check_same_names(names: Iterable[str], position: dict[str, int]) -> None:
    """Refuse an order of names that is not an order of exactly these names.

    Parameters
    ----------
    names : iterable of str
        Names of the tree's leaves.
    position : dict of str to int
        The names asked for, and where.

    Raises
    ------
    InputError
        Naming what is missing and what is unknown.
    """
    have = dict.fromkeys(names)
    unknown = [name for name in position if name not in have]
    missing = [name for name in have if name not in position]
    if unknown or missing:
        faults = []
        if missing:
            faults.append(f"missing {_listed(missing)}")
        if unknown:
            faults.append(f"unknown {_listed(unknown)}")
        raise InputError(f"The names given are not those of the tree's leaves: {'; '.join(faults)}.")


def _listed(names: list[str]) -> str:
    shown = ", ".join(short(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
