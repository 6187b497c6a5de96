"""The reader behind :func:`coaltree.tree.newick.parse`, and all that may be wrong with a text."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

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
