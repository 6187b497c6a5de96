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

Newick text as programs write it, read in few steps a node.

Only what is right and has no blanks or comments between its parts is read here. All other texts are left to
:class:`coaltree.tree.newick.Reader`, which also knows what is wrong with one.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .traversal import first_positions, leaf_counts

# A quote inside an unquoted word belongs to the word (O'Brien), as DendroPy reads it.
WORD = r"""[^\s()\[\],:;'"][^\s()\[\],:;]*"""
_TOKEN = re.compile(
    rf"""\s+ | (?P<mark>[(),:;]) | (?P<word>{WORD})
    | (?P<quoted>'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*") | (?P<comment>\[)""",
    re.VERBOSE,
)
_BRACKET = re.compile(r"[\[\]]")

# What the reader has seen of the node it stands in.
_NOTHING, _LABEL, _CLOSED, _COLON, _LENGTH = range(5)


def short(text: str) -> str:
    """Quote what was found, but not pages of it."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def end_of_comment(text: str, place: int) -> int | None:
    """Return where the comment that opens at ``place`` is over, None if nowhere; comments may be nested."""
    depth = 0
    for match in _BRACKET.finditer(text, place):
        depth += 1 if match.group() == "[" else -1
        if depth == 0:
            return match.end()
    return None


def numbered_by_height(children: list[int], heights: list[float]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the children of all merges and the heights of all nodes, with merges numbered by height.

    Parameters
    ----------
    children : list of int, length 2 (n - 1)
        Two for each merge, as merges close in the text: a leaf's number, or ``~k`` for merge ``k``.
    heights : list of float, length n - 1
        Of the merges.

    Returns
    -------
    children : ndarray of int, shape (n - 1, 2)
    heights : ndarray of float, shape (2n - 1,)
    """
    n = len(heights) + 1
    closing = np.array(heights, dtype=np.float64)
    # Children close before their parents and are not higher, so a stable sort keeps them before.
    order = np.argsort(closing, kind="stable")
    number = np.empty(n - 1, dtype=np.intp)
    number[order] = np.arange(n, 2 * n - 1)
    kids = np.array(children, dtype=np.intp).reshape(n - 1, 2)[order]
    merges = kids < 0
    kids[merges] = number[~kids[merges]]
    return kids, np.concatenate([np.zeros(n), closing[order]])


class Reader:
    """One pass over the text of one tree.

    Merges are numbered as they close, children before parents; merge ``k`` is written ``~k`` where leaves
    and merges stand side by side. Of each merge the reader keeps how far below it its deepest leaf stands,
    which is the merge's height, and its shallowest.

    Parameters
    ----------
    text : str
        One rooted, binary tree with branch lengths.
    preserve_underscores : bool
        Keep underscores of unquoted labels instead of reading them as blanks.
    """

    def __init__(self, text: str, preserve_underscores: bool) -> None:
        self.text = text
        self.preserve_underscores = preserve_underscores
        self.names: list[str] = []
        self.places: dict[str, int] = {}
        # Flat lists throughout: millions of small tuples would keep the garbage collector busy.
        self.children: list[int] = []
        self.heights: list[float] = []
        self.deepest: list[int] = []
        self.depths: list[float] = []
        self.shallowest: list[int] = []
        # Of every open parenthesis: its place, and what is complete inside it as (node, branch length).
        self.opened: list[tuple[int, list[tuple[int, float]]]] = []
        # The node it stands in, where that begins, and the length of its branch.
        self.node, self.node_place, self.length = 0, 0, 0.0
        self.seen = _NOTHING
        self.ended = False

    def read(self) -> None:
        """Read the whole text."""
        for kind, token, place in self.tokens():
            if self.ended:
                raise self.fault(
                    place,
                    f"There is text after the semicolon, {short(token)} at {{}}; only one tree is read, "
                    "so split a text of several trees first.",
                )
            if kind != "mark":
                self.take_word(kind, token, place)
            elif token == "(":
                if self.seen != _NOTHING:
                    raise self.fault(place, "The parenthesis '(' at {} follows a node; a comma is missing before it.")
                self.opened.append((place, []))
            elif token == ":":
                self.take_colon(place)
            elif token == ";":
                self.take_end(place)
                self.ended = True
            else:
                self.take_separator(token, place)
        if not self.ended:
            self.take_end(len(self.text))

    def tokens(self) -> Iterator[tuple[str, str, int]]:
        """Yield (kind, token, place) without blanks and comments."""
        text, match_at = self.text, _TOKEN.match
        place, end = int(text.startswith("\ufeff")), len(text)
        while place < end:
            match = match_at(text, place)
            if match is None:
                if text[place] == "]":
                    raise self.fault(place, "The bracket ']' at {} closes no comment; quote names that hold brackets.")
                raise self.fault(
                    place,
                    "The quote opened at {} is never closed; a quote inside a quoted name is written twice, "
                    "as in 'it''s'.",
                )
            kind = match.lastgroup
            if kind == "comment":
                place = self.after_comment(place)
                continue
            if kind is not None:
                yield kind, match.group(), place
            place = match.end()

    def after_comment(self, place: int) -> int:
        """Return where the comment that opens at ``place`` is over; comments may be nested."""
        end = end_of_comment(self.text, place)
        if end is None:
            raise self.fault(place, "The comment opened by '[' at {} is never closed; add the missing ']'.")
        return end

    # -- one token -----------------------------------------------------------------------------

    def take_word(self, kind: str, token: str, place: int) -> None:
        """Take in a label or a branch length."""
        if self.seen == _COLON:
            self.length = self.branch_length(token, place)
            self.seen = _LENGTH
        elif self.seen == _NOTHING:
            self.node, self.node_place = self.leaf(kind, token, place), place
            self.seen = _LABEL
        elif self.seen == _CLOSED:
            self.seen = _LABEL
        elif self.text.lstrip("\ufeff \t\r\n").upper().startswith("#NEXUS"):
            raise InputError("The text is a NEXUS file (it begins with #NEXUS); pass one tree of it as Newick text.")
        elif self.seen == _LENGTH:
            raise self.fault(
                place,
                f"A comma or ')' is missing before {short(token)} at {{}}, after a branch length.",
            )
        else:
            raise self.fault(
                place,
                f"There is a second label, {short(token)}, at {{}}; quote names that hold blanks, brackets "
                "or quotes, as in 'Homo sapiens'.",
            )

    def take_colon(self, place: int) -> None:
        """Take in the sign before a branch length."""
        if self.seen == _NOTHING:
            raise self.unnamed(place)
        if self.seen in (_COLON, _LENGTH):
            raise self.fault(place, "There is a second ':' at {}; a node has one branch length.")
        self.seen = _COLON

    def take_separator(self, token: str, place: int) -> None:
        """Take in a comma or a closing parenthesis: the node is complete."""
        if not self.opened:
            if token == ")":
                raise self.fault(
                    place,
                    "Unbalanced parentheses: ')' at {} closes nothing; remove it or add the missing '('.",
                )
            raise self.fault(
                place,
                "The comma at {} stands outside all parentheses; enclose the whole tree in '(' and ')'.",
            )
        if self.seen == _NOTHING:
            raise self.unnamed(place)
        if self.seen != _LENGTH:
            if self.seen == _COLON:
                raise self.fault(place, "The branch length is missing after ':' at {}; write a number there.")
            what = f"leaf {short(self.names[self.node])}" if self.node >= 0 else "node that opens"
            raise self.fault(
                self.node_place,
                f"The {what} at {{}} has no branch length; every node but the root needs one, as in '(a:1,b:1);'.",
            )
        self.opened[-1][1].append((self.node, self.length))
        if token == ",":
            self.seen = _NOTHING
        else:
            self.node_place, members = self.opened.pop()
            self.node = self.merge(members, self.node_place)
            self.seen = _CLOSED

    def take_end(self, place: int) -> None:
        """Take in the semicolon, or the end of a text without one."""
        semicolon = place < len(self.text)
        if self.opened:
            ending = f"the tree ends at {self.at(place)}" if semicolon else "the text ends"
            raise self.fault(
                self.opened[-1][0],
                f"Unbalanced parentheses: {ending}, but '(' at {{}} is still open; add the missing ')'.",
            )
        if not self.names:
            raise InputError("The Newick text is empty: it holds no tree; pass text such as '(a:1,b:1);'.")
        if self.seen == _COLON:
            raise self.fault(place, "The branch length is missing after ':' at {}; write a number there.")
        if not self.children and not semicolon:
            # A bare word is more often a file's name than a tree of one leaf.
            raise InputError(
                f"The text {short(self.text.strip())} has no parentheses and no semicolon, so it is no "
                "Newick tree; pass the text of the file rather than its name."
            )

    # -- parts of a tree -----------------------------------------------------------------------

    def leaf(self, kind: str, token: str, place: int) -> int:
        """Take in a leaf's name and return the leaf's number."""
        name = token
        if kind == "quoted":
            quote = token[0]
            name = token[1:-1].replace(quote * 2, quote)
            if not name:
                raise self.unnamed(place)
        elif not self.preserve_underscores:
            name = token.replace("_", " ")
        first = self.places.setdefault(name, place)
        if first != place:
            raise self.fault(
                place,
                f"The leaf name {short(name)} occurs twice, at {self.at(first)} and at {{}}; names must differ.",
            )
        self.names.append(name)
        return len(self.names) - 1

    def branch_length(self, token: str, place: int) -> float:
        """Take in a branch length."""
        try:
            # Python alone reads 1_000 as a number.
            length = float("" if "_" in token else token)
        except ValueError:
            length = None
        if length is None:
            raise self.fault(
                place,
                f"The branch length {short(token)} at {{}} is not a number; write it as 0.25 or 2.5e-1.",
            )
        if not math.isfinite(length):
            raise self.fault(place, f"The branch length {short(token)} at {{}} is not finite; lengths must be.")
        if length < 0:
            raise self.fault(
                place,
                f"The branch length {short(token)} at {{}} is negative; a parent is never younger than its "
                "child, so lengths must be at least 0.",
            )
        return length + 0.0  # turns -0.0 into 0.0

    def merge(self, members: list[tuple[int, float]], place: int) -> int:
        """Take in a closed parenthesis and return its node."""
        if len(members) == 1:
            raise self.fault(
                place,
                "There is a node with 1 child at {}; only binary trees are read; remove such nodes first, "
                "e.g. with dendropy's suppress_unifurcations().",
            )
        if len(members) > 2:
            root_first = " (root an unrooted tree before that)" if len(members) == 3 and not self.opened else ""
            raise self.fault(
                place,
                f"There is a node with {len(members)} children at {{}}; only binary trees are read; resolve "
                f"polytomies first, e.g. with dendropy's resolve_polytomies(){root_first}.",
            )
        (left, left_length), (right, right_length) = members
        self.children += (left, right)
        high, low, deep, shallow = self.sums(left, left_length)
        right_high, right_low, right_deep, right_shallow = self.sums(right, right_length)
        if right_high > high:
            high, deep = right_high, right_deep
        if right_low < low:
            low, shallow = right_low, right_shallow
        if high == math.inf:
            raise self.fault(
                place,
                "The branch lengths below the node at {} add up to more than a number can hold; use a larger "
                "unit of time.",
            )
        self.heights.append(high)
        self.deepest.append(deep)
        self.depths.append(low)
        self.shallowest.append(shallow)
        return -len(self.heights)

    def sums(self, node: int, length: float) -> tuple[float, float, int, int]:
        """Return how far a child's deepest and shallowest leaf are below its parent, and which they are."""
        if node >= 0:
            return length, length, node, node
        k = ~node
        return self.heights[k] + length, self.depths[k] + length, self.deepest[k], self.shallowest[k]

    # -- results -------------------------------------------------------------------------------

    def check_ultrametric(self, tolerance: float) -> None:
        """Refuse leaves whose depths differ by more than ``tolerance`` times the root's height."""
        if not self.children:
            return
        most, least = self.heights[-1], self.depths[-1]
        if most - least > tolerance * most:
            deep, shallow = self.names[self.deepest[-1]], self.names[self.shallowest[-1]]
            raise InputError(
                f"The tree is not ultrametric: leaf {short(deep)} stands {most:.12g} below the root, but "
                f"leaf {short(shallow)} only {least:.12g}; all leaves must be equally far from the root, to "
                f"within tolerance={tolerance:g} of its height."
            )

    # -- errors --------------------------------------------------------------------------------

    def at(self, place: int) -> str:
        """Name a place as people count: from 1, with line and column where there are several lines."""
        if place >= len(self.text):
            return "the end of the text"
        where = f"character {place + 1}"
        if "\n" in self.text.strip():
            breaks = [match.start() for match in re.finditer("\n", self.text)]
            line = bisect_right(breaks, place - 1)
            start = breaks[line - 1] + 1 if line else 0
            where += f" (line {line + 1}, column {place - start + 1})"
        return where

    def fault(self, place: int, message: str) -> InputError:
        """Return the error that refuses the text, with the place where ``message`` has its last braces."""
        before, after = message.rsplit("{}", 1)
        return InputError(before + self.at(place) + after)

    def unnamed(self, place: int) -> InputError:
        """Return the error that refuses a leaf without a name."""
        return self.fault(place, "There is a leaf without a name at {}; every leaf needs one.")


_PLAIN_LABEL = rf"(?:{WORD}|'[^']*(?:''[^']*)*')"
# A leaf with the parentheses before it, or a closed parenthesis with its label, and what comes after.
_NODE = re.compile(rf"(\(*)({_PLAIN_LABEL})?:([0-9.eE+-]+)([,)])")
_REST = re.compile(rf"{_PLAIN_LABEL}?(?::([0-9.eE+-]+))?;?\s*")


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


def leaf_differences(found: Iterable[str], wanted: Iterable[str]) -> str:
    """Say which names are missing from those found and which are there besides; nothing if they are the same."""
    have, want = dict.fromkeys(found), dict.fromkeys(wanted)
    parts = []
    for word, names in (
        ("lacks", [name for name in want if name not in have]),
        ("has", [name for name in have if name not in want]),
    ):
        if names:
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            parts.append(f"{word} {', '.join(map(short, names[:5]))}{more}")
    return "it " + " and ".join(parts) if parts else ""
