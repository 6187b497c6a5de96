"""Newick text: parsing and writing, without recursion, so that only memory limits the depth of a tree.

:func:`parse` reads plain text, as programs write it, in one pass of a regular expression per node. Any other text goes to
:class:`NewickParser`, which also reports what is wrong and where.

:func:`spell_names` writes blanks of names as underscores, because ``ape::read.tree`` and the NEXUS reader of Biopython keep
quotes as a part of names. By the standard, an underscore outside of quotes is a blank; but ape, Biopython, MrBayes and IQ-TREE
keep it, and so does this reader. Names that contain punctuation are quoted, with quotes inside doubled. Two other readers do not
restore all such names, and no spelling suits both:

* DendroPy 5 reads a quoted label that is exactly ``(``, ``)``, ``,``, ``:`` or ``;`` as punctuation, distinguishes names
  by case only with ``case_sensitive_taxon_labels=True``, and recurses, so that it fails on trees some hundred levels deep.
* Bio.Phylo drops quotes at the beginning of a name, drops line breaks with the blanks before them, and takes a backslash
  before a quote (also at the end of a quoted name) for an escape.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._parameters import FLAG, check_parameter
from .._validation import quote
from ..errors import InputError
from .arrays import first_positions, leaf_counts


class ParsedTree(NamedTuple):
    """The parts of a tree in a text."""

    children: NDArray[np.intp]  # (n - 1, 2)
    heights: NDArray[np.float64]  # (2n - 1,)
    names: list[str]
    notes: dict[str, NDArray[np.float64]]  # what a `SummaryTree` knows of its merges, as far as the text says it


# A quote inside an unquoted word belongs to the word (O'Brien), as DendroPy reads it.
WORD = r"""[^\s()\[\],:;'"][^\s()\[\],:;]*"""
_TOKEN = re.compile(
    rf"""\s+ | (?P<mark>[(),:;]) | (?P<word>{WORD})
    | (?P<quoted>'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*") | (?P<comment>\[)""",
    re.VERBOSE,
)
_BRACKET = re.compile(r"[\[\]]")

# The parts of the current node that the parser has read.
_NOTHING, _LABEL, _CLOSED, _COLON, _LENGTH = range(5)
# Letters and digits of any script, and marks that neither Newick nor NEXUS text gives a meaning.
_PLAIN_NAME = re.compile(r"(?:[^\W_]|[.+@|-])+").fullmatch
_PLAIN_LABEL = rf"(?:{WORD}|'[^']*(?:''[^']*)*')"
# A leaf with the parentheses before it, or a closed parenthesis with its label, and what comes after.
_NODE = re.compile(rf"(\(*)({_PLAIN_LABEL})?:([0-9.eE+-]+)([,)])")
_REST = re.compile(rf"({_PLAIN_LABEL})?(?::([0-9.eE+-]+))?;?\s*")

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
# Support of BEAST, MrBayes and other programs, that of NHX, and that of RAxML, which is a comment by itself.
_SUPPORT = re.compile(rf"""(?:[&,:](?:posterior|prob|support|bootstrap|B)="?|\[)({_NUMBER})"?[],:]""")
_HEIGHTS = {
    "mean_heights": re.compile(rf"[&,]height_mean=({_NUMBER})"),
    "median_heights": re.compile(rf"[&,]height_median=({_NUMBER})"),
    "height_hpd": re.compile(rf"[&,]height_95%_HPD=\{{({_NUMBER}),({_NUMBER})\}}"),
}


def parse(text: str, preserve_underscores: bool, tolerance: float) -> ParsedTree:
    """Parse one rooted, binary, ultrametric tree.

    Parameters
    ----------
    text : str
        The tree. A length at the root is ignored, and so are comments and labels of interior nodes that are no support.
    preserve_underscores : bool
        Keep underscores of unquoted labels instead of reading them as blanks.
    tolerance : float
        Largest difference of two leaves' depths, as a share of the root's height.

    Returns
    -------
    ParsedTree
        Leaves are numbered as they appear, and merges by height. Merges of equal height are numbered as they close in the text.
        Heights are sums of branch lengths from the leaves; the larger of the two sums at each merge.

    Raises
    ------
    InputError
        If the text is not such a tree, with the position of the error.
    """
    if not isinstance(text, str):
        raise InputError(
            f"A Newick tree is read from a string, not from {type(text).__name__}; pass the text of the file."
        )
    if not (isinstance(tolerance, (int, float)) and tolerance >= 0):
        raise InputError(f"tolerance is {quote(tolerance)}; it must be a number of at least 0.")
    plain = parse_plain(text, preserve_underscores, tolerance)
    return parse_tokens(text, preserve_underscores, tolerance) if plain is None else plain


def parse_tokens(text: str, preserve_underscores: bool, tolerance: float) -> ParsedTree:
    """Parse a tree that may have all that Newick text allows; see `parse`."""
    parser = NewickParser(text, preserve_underscores)
    parser.parse()
    parser.check_ultrametric(tolerance)
    return _number_by_height(parser.children, parser.heights, parser.names, parser.labels, parser.comments)


def render(children: NDArray[np.intp], heights: NDArray[np.float64], labels: Sequence[str]) -> str:
    """Write a tree as Newick text.

    Parameters
    ----------
    children : ndarray of int, shape (n - 1, 2)
    heights : ndarray of float, shape (2n - 1,)
    labels : sequence of str
        Labels of the leaves, as `spell_names` returns them.

    Returns
    -------
    str
        Branch lengths have all digits needed to restore the same number.
    """
    n = len(labels)
    if n == 1:
        return labels[0] + ";"
    flat = children.ravel()
    lengths = np.empty(2 * n - 2)
    # Adding 0.0 turns -0.0 into 0.0.
    lengths[flat] = np.repeat(heights[n:], 2) - heights[flat] + 0.0
    counts = leaf_counts(children)
    first = first_positions(children, counts)
    # A node is complete after its last leaf and before its parent, which has a larger number: one stable sort
    # brings the nodes into the order of the text. Parentheses open before the first leaf of their merge.
    order = np.argsort(first + counts, kind="stable")
    opening = np.bincount(first[n:], minlength=n)[first[:n]].tolist()
    heads = ["," + "(" * count + label for count, label in zip(opening, labels, strict=True)]
    heads += [")"] * (n - 1)
    tails = map(repr, lengths[order[:-1]].tolist())
    parts = [f"{heads[node]}:{tail}" for node, tail in zip(order[:-1].tolist(), tails, strict=True)]
    return "".join(parts)[1:] + ");"


def spell_names(names: Sequence[str], quote_names: bool = False) -> list[str]:
    """Return names as they are written in Newick and NEXUS text.

    Parameters
    ----------
    names : sequence of str
        Distinct names.
    quote_names : bool, default False
        Whether names with blanks or underscores are in quotes, so that a reader of the standard restores them.

    Returns
    -------
    list of str
        Distinct labels, whether or not a reader takes underscores for blanks.

    Examples
    --------
    >>> spell_names(["Homo sapiens", "sample_1", "it's", "Pan"])
    ['Homo_sapiens', 'sample_1', "'it''s'", 'Pan']
    >>> spell_names(["Homo sapiens", "Homo_sapiens"])
    ["'Homo sapiens'", "'Homo_sapiens'"]
    """
    check_parameter("quote_names", quote_names, FLAG)
    words = [name.replace(" ", "_") for name in names]
    counts = Counter(words)
    remove = str.maketrans("", "", "" if quote_names else " _")
    return [
        word
        if (counts[word] == 1 and _PLAIN_NAME(name.translate(remove))) or _PLAIN_NAME(name)
        else "'" + name.replace("'", "''") + "'"
        for name, word in zip(names, words, strict=True)
    ]


def check_same_names(names: Iterable[str], position: dict[str, int]) -> None:
    """Raise unless an order of names has exactly the names of the leaves.

    Parameters
    ----------
    names : iterable of str
        Names of the tree's leaves.
    position : dict of str to int
        The requested names and their positions.

    Raises
    ------
    InputError
        With the missing and the unknown names.
    """
    expected = dict.fromkeys(names)
    missing = _list_names([name for name in expected if name not in position])
    unknown = _list_names([name for name in position if name not in expected])
    if missing or unknown:
        parts = [f"missing {missing}"] * bool(missing) + [f"unknown {unknown}"] * bool(unknown)
        raise InputError(f"The names are not those of the tree's leaves: {'; '.join(parts)}.")


def describe_name_differences(names: Iterable[str], expected: Iterable[str]) -> str:
    """Say which names are missing and which are not expected; an empty string if the names are the same."""
    have, want = dict.fromkeys(names), dict.fromkeys(expected)
    missing = _list_names([name for name in want if name not in have])
    extra = _list_names([name for name in have if name not in want])
    parts = [f"lacks {missing}"] * bool(missing) + [f"has {extra}"] * bool(extra)
    return "it " + " and ".join(parts) if parts else ""


def _list_names(names: list[str]) -> str:
    text = ", ".join(map(excerpt, names[:5]))
    return text if len(names) <= 5 else f"{text} and {len(names) - 5} more"


def excerpt(text: str) -> str:
    """Return a text in quotes for a message, shortened to 60 characters."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def find_comment_end(text: str, offset: int) -> int | None:
    """Return the position after the comment that opens at ``offset``, or None if it is never closed; comments may be nested."""
    depth = 0
    for match in _BRACKET.finditer(text, offset):
        depth += 1 if match.group() == "[" else -1
        if depth == 0:
            return match.end()
    return None


def _number_by_height(
    children: list[int], heights: list[float], names: list[str], labels: list[str], comments: list[str]
) -> ParsedTree:
    """Return a tree whose merges are in the order in which they close in the text.

    There are two children for each merge: a leaf, or ``~k`` for merge ``k``.
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
    notes = {name: values[order] for name, values in _read_notes(closing, labels, comments).items()}
    return ParsedTree(kids, np.concatenate([np.zeros(n), closing[order]]), names, notes)


def _read_notes(heights: NDArray[np.float64], labels: list[str], comments: list[str]) -> dict[str, NDArray[np.float64]]:
    """Return what labels and comments say of merges; heights that they do not say are those of the merges."""
    shares = _read_shares(match.group(1) if (match := _SUPPORT.search(comment)) else "" for comment in comments)
    if shares is None:  # IQ-TREE writes several numbers, the last of which is of the bootstrap
        shares = _read_shares(label.strip("'").rsplit("/", 1)[-1] for label in labels)
    if shares is None:
        return {}
    notes = {"support": shares}
    for name, pattern in _HEIGHTS.items():
        found = [pattern.search(comment) for comment in comments]
        if any(found):
            both = (heights,) * pattern.groups
            rows = zip(found, zip(*both, strict=True), strict=True)
            values = np.array([match.groups() if match else row for match, row in rows], dtype=np.float64)
            notes[name] = values if pattern.groups == 2 else values[:, 0]
    return notes


def _read_shares(texts: Iterable[str]) -> NDArray[np.float64] | None:
    """Return shares of a sample, NaN where there is no number; None if these are no shares and no per cents.

    All trees have the clade of the root, which is the last.
    """
    shares = np.array([float(text) if re.fullmatch(_NUMBER, text) else math.nan for text in texts])
    known = shares[:-1] if len(shares) > 1 else shares
    if np.all(np.isnan(known)) or not 0 <= np.nanmin(known) <= np.nanmax(known) <= 100:
        return None
    shares = np.minimum(shares / (1 if np.nanmax(known) < 2 else 100), 1.0)  # despite rounding
    shares[-1] = 1.0
    return shares


def parse_plain(text: str, preserve_underscores: bool, tolerance: float) -> ParsedTree | None:
    """Parse a tree of two or more leaves from plain text: correct, without blanks or comments between its parts.

    Parameters
    ----------
    text : str
    preserve_underscores : bool
    tolerance : float

    Returns
    -------
    ParsedTree
        None if the text is not plain.
    """
    try:
        return _parse_plain(text, preserve_underscores, tolerance)
    except (ValueError, IndexError):  # a length that is not a number, or a parenthesis that closes nothing
        return None


def _parse_plain(text: str, preserve_underscores: bool, tolerance: float) -> ParsedTree | None:
    names: list[str] = []
    children: list[int] = []
    heights: list[float] = []
    labels: list[str] = []  # of the merges
    # Complete nodes inside open parentheses, with the depth of their deepest and shallowest leaf below their parent.
    nodes: list[int] = []
    highs: list[float] = []
    lows: list[float] = []
    open_counts: list[int] = []  # number of complete nodes where each parenthesis opens
    high = low = 0.0
    closed = False  # whether the label and length of a closed parenthesis come next
    offset, match_at = 0, _NODE.match
    while match := match_at(text, offset):
        opening, label, digits, mark = match.groups()
        offset = match.end()
        length = float(digits) + 0.0  # turns -0.0 into 0.0
        if not length >= 0:
            return None
        if closed:
            if opening:
                return None
            nodes.append(-len(heights))
            labels.append(label or "")
        else:
            if label is None:
                return None
            open_counts += [len(nodes)] * len(opening)
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
            if len(nodes) - open_counts.pop() != 2:
                return None
            right, left = nodes.pop(), nodes.pop()
            children += (left, right)
            high, low = max(highs.pop(), highs.pop()), min(lows.pop(), lows.pop())
            heights.append(high)
    rest = _REST.fullmatch(text, offset)
    if not (rest and closed) or open_counts or nodes or not high < math.inf or high - low > tolerance * high:
        return None
    if not 0 <= float(rest.group(2) or 0) < math.inf or "" in names or len(set(names)) < len(names):
        return None
    return _number_by_height(children, heights, names, [*labels, rest.group(1) or ""], [""] * len(heights))


class NewickParser:
    """One pass over the text of one tree.

    Merges are numbered as they close, children before parents; merge ``k`` is written ``~k`` where leaves
    and merges stand side by side. For each merge the parser stores the depth of its deepest leaf,
    which is the merge's height, and its shallowest leaf.

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
        self.offsets: dict[str, int] = {}
        # Flat lists throughout: millions of small tuples would keep the garbage collector busy.
        self.children: list[int] = []
        self.heights: list[float] = []
        self.labels: list[str] = []
        self.comments: list[str] = []
        self.deepest: list[int] = []
        self.depths: list[float] = []
        self.shallowest: list[int] = []
        # For every open parenthesis: its position, and the complete nodes inside it as (node, branch length).
        self.open_parentheses: list[tuple[int, list[tuple[int, float]]]] = []
        # The current node, where it begins, and the length of its branch.
        self.node, self.node_place, self.length = 0, 0, 0.0
        self.seen = _NOTHING
        self.ended = False

    def parse(self) -> None:
        """Parse the whole text."""
        for kind, token, offset in self.tokens():
            if self.ended:
                raise self.error(
                    offset,
                    f"There is text after the semicolon, {excerpt(token)} at {{}}; only one tree is read, "
                    "so split a text of several trees first.",
                )
            if kind != "mark":
                self.read_word(kind, token, offset)
            elif token == "(":
                if self.seen != _NOTHING:
                    raise self.error(offset, "The parenthesis '(' at {} follows a node; a comma is missing before it.")
                self.open_parentheses.append((offset, []))
            elif token == ":":
                self.read_colon(offset)
            elif token == ";":
                self.read_end(offset)
                self.ended = True
            else:
                self.read_separator(token, offset)
        if not self.ended:
            self.read_end(len(self.text))

    def tokens(self) -> Iterator[tuple[str, str, int]]:
        """Yield (kind, token, offset) without blanks and comments."""
        text, match_at = self.text, _TOKEN.match
        offset, end = int(text.startswith("\ufeff")), len(text)
        while offset < end:
            match = match_at(text, offset)
            if match is None:
                if text[offset] == "]":
                    raise self.error(offset, "The bracket ']' at {} closes no comment; quote names that hold brackets.")
                raise self.error(
                    offset,
                    "The quote opened at {} is never closed; a quote inside a quoted name is written twice, "
                    "as in 'it''s'.",
                )
            kind = match.lastgroup
            if kind == "comment":
                begin, offset = offset, self.skip_comment(offset)
                if self.seen >= _LABEL and self.node < 0:
                    self.comments[~self.node] += text[begin:offset]
                continue
            if kind is not None:
                yield kind, match.group(), offset
            offset = match.end()

    def skip_comment(self, offset: int) -> int:
        """Return the position after the comment that opens at ``offset``; comments may be nested."""
        end = find_comment_end(self.text, offset)
        if end is None:
            raise self.error(offset, "The comment opened by '[' at {} is never closed; add the missing ']'.")
        return end

    # -- one token -----------------------------------------------------------------------------

    def read_word(self, kind: str, token: str, offset: int) -> None:
        """Read a label or a branch length."""
        if self.seen == _COLON:
            self.length = self.parse_length(token, offset)
            self.seen = _LENGTH
        elif self.seen == _NOTHING:
            self.node, self.node_place = self.add_leaf(kind, token, offset), offset
            self.seen = _LABEL
        elif self.seen == _CLOSED:
            self.labels[~self.node] = token
            self.seen = _LABEL
        elif self.text.lstrip("\ufeff \t\r\n").upper().startswith("#NEXUS"):
            raise InputError("The text is a NEXUS file (it begins with #NEXUS); pass one tree of it as Newick text.")
        elif self.seen == _LENGTH:
            raise self.error(
                offset,
                f"A comma or ')' is missing before {excerpt(token)} at {{}}, after a branch length.",
            )
        else:
            raise self.error(
                offset,
                f"There is a second label, {excerpt(token)}, at {{}}; quote names that hold blanks, brackets "
                "or quotes, as in 'Homo sapiens'.",
            )

    def read_colon(self, offset: int) -> None:
        """Read the sign before a branch length."""
        if self.seen == _NOTHING:
            raise self.unnamed_leaf_error(offset)
        if self.seen in (_COLON, _LENGTH):
            raise self.error(offset, "There is a second ':' at {}; a node has one branch length.")
        self.seen = _COLON

    def read_separator(self, token: str, offset: int) -> None:
        """Read a comma or a closing parenthesis: the node is complete."""
        if not self.open_parentheses:
            if token == ")":
                raise self.error(
                    offset,
                    "Unbalanced parentheses: ')' at {} closes nothing; remove it or add the missing '('.",
                )
            raise self.error(
                offset,
                "The comma at {} stands outside all parentheses; enclose the whole tree in '(' and ')'.",
            )
        if self.seen == _NOTHING:
            raise self.unnamed_leaf_error(offset)
        if self.seen != _LENGTH:
            if self.seen == _COLON:
                raise self.error(offset, "The branch length is missing after ':' at {}; write a number there.")
            subject = f"leaf {excerpt(self.names[self.node])}" if self.node >= 0 else "node that opens"
            raise self.error(
                self.node_place,
                f"The {subject} at {{}} has no branch length; every node but the root needs one, as in '(a:1,b:1);'.",
            )
        self.open_parentheses[-1][1].append((self.node, self.length))
        if token == ",":
            self.seen = _NOTHING
        else:
            self.node_place, members = self.open_parentheses.pop()
            self.node = self.add_merge(members, self.node_place)
            self.seen = _CLOSED

    def read_end(self, offset: int) -> None:
        """Read the semicolon, or the end of a text without one."""
        semicolon = offset < len(self.text)
        if self.open_parentheses:
            ending = f"the tree ends at {self.locate(offset)}" if semicolon else "the text ends"
            raise self.error(
                self.open_parentheses[-1][0],
                f"Unbalanced parentheses: {ending}, but '(' at {{}} is still open; add the missing ')'.",
            )
        if not self.names:
            raise InputError("The Newick text is empty: it holds no tree; pass text such as '(a:1,b:1);'.")
        if self.seen == _COLON:
            raise self.error(offset, "The branch length is missing after ':' at {}; write a number there.")
        if not self.children and not semicolon:
            # A single word is probably a file name, not a tree of one leaf.
            raise InputError(
                f"The text {excerpt(self.text.strip())} has no parentheses and no semicolon, so it is not a "
                "Newick tree; pass the text of the file rather than its name."
            )

    # -- parts of a tree -----------------------------------------------------------------------

    def add_leaf(self, kind: str, token: str, offset: int) -> int:
        """Add a leaf and return its number."""
        name = token
        if kind == "quoted":
            quote = token[0]
            name = token[1:-1].replace(quote * 2, quote)
            if not name:
                raise self.unnamed_leaf_error(offset)
        elif not self.preserve_underscores:
            name = token.replace("_", " ")
        first = self.offsets.setdefault(name, offset)
        if first != offset:
            raise self.error(
                offset,
                f"The leaf name {excerpt(name)} occurs twice, at {self.locate(first)} and at {{}}; names must differ.",
            )
        self.names.append(name)
        return len(self.names) - 1

    def parse_length(self, token: str, offset: int) -> float:
        """Return a branch length, a finite number of at least 0."""
        try:
            # Only Python reads 1_000 as a number.
            length = float("" if "_" in token else token)
        except ValueError:
            length = None
        if length is None:
            raise self.error(
                offset,
                f"The branch length {excerpt(token)} at {{}} is not a number; write it as 0.25 or 2.5e-1.",
            )
        if not math.isfinite(length):
            raise self.error(offset, f"The branch length {excerpt(token)} at {{}} is not finite; lengths must be.")
        if length < 0:
            raise self.error(
                offset,
                f"The branch length {excerpt(token)} at {{}} is negative; a parent is never younger than its "
                "child, so lengths must be at least 0.",
            )
        return length + 0.0  # turns -0.0 into 0.0

    def add_merge(self, members: list[tuple[int, float]], offset: int) -> int:
        """Add the merge of a closed parenthesis and return its node."""
        if len(members) == 1:
            raise self.error(
                offset,
                "There is a node with 1 child at {}; only binary trees are read; remove such nodes first, "
                "e.g. with dendropy's suppress_unifurcations().",
            )
        if len(members) > 2:
            root_first = (
                " (root an unrooted tree before that)" if len(members) == 3 and not self.open_parentheses else ""
            )
            raise self.error(
                offset,
                f"There is a node with {len(members)} children at {{}}; only binary trees are read; resolve "
                f"polytomies first, e.g. with dendropy's resolve_polytomies(){root_first}.",
            )
        (left, left_length), (right, right_length) = members
        self.children += (left, right)
        high, low, deep, shallow = self.leaf_depths(left, left_length)
        right_high, right_low, right_deep, right_shallow = self.leaf_depths(right, right_length)
        if right_high > high:
            high, deep = right_high, right_deep
        if right_low < low:
            low, shallow = right_low, right_shallow
        if high == math.inf:
            raise self.error(
                offset,
                "The branch lengths below the node at {} add up to more than a number can hold; use a larger "
                "unit of time.",
            )
        self.heights.append(high)
        self.labels.append("")
        self.comments.append("")
        self.deepest.append(deep)
        self.depths.append(low)
        self.shallowest.append(shallow)
        return -len(self.heights)

    def leaf_depths(self, node: int, length: float) -> tuple[float, float, int, int]:
        """Return the depths of a child's deepest and shallowest leaf below its parent, and the two leaves."""
        if node >= 0:
            return length, length, node, node
        k = ~node
        return self.heights[k] + length, self.depths[k] + length, self.deepest[k], self.shallowest[k]

    # -- results -------------------------------------------------------------------------------

    def check_ultrametric(self, tolerance: float) -> None:
        """Raise if depths of leaves differ by more than ``tolerance`` times the root's height."""
        if not self.children:
            return
        most, least = self.heights[-1], self.depths[-1]
        if most - least > tolerance * most:
            deep, shallow = self.names[self.deepest[-1]], self.names[self.shallowest[-1]]
            raise InputError(
                f"The tree is not ultrametric: leaf {excerpt(deep)} stands {most:.12g} below the root, but "
                f"leaf {excerpt(shallow)} only {least:.12g}; all leaves must be equally far from the root, to "
                f"within tolerance={tolerance:g} of its height."
            )

    # -- errors --------------------------------------------------------------------------------

    def locate(self, offset: int) -> str:
        """Describe a position, counted from 1, with line and column if there are several lines."""
        if offset >= len(self.text):
            return "the end of the text"
        position = f"character {offset + 1}"
        if "\n" in self.text.strip():
            breaks = [match.start() for match in re.finditer("\n", self.text)]
            line = bisect_right(breaks, offset - 1)
            start = breaks[line - 1] + 1 if line else 0
            position += f" (line {line + 1}, column {offset - start + 1})"
        return position

    def error(self, offset: int, message: str) -> InputError:
        """Return an error; the last braces of ``message`` become the position."""
        before, after = message.rsplit("{}", 1)
        return InputError(before + self.locate(offset) + after)

    def unnamed_leaf_error(self, offset: int) -> InputError:
        """Return the error for a leaf without a name."""
        return self.error(offset, "There is a leaf without a name at {}; every leaf needs one.")
