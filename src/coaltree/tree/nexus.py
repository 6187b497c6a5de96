"""NEXUS files: their statements, names and comments, and the trees in them, parsed and written.

Names are spelled as in Newick text, with the limits of other readers that :mod:`coaltree.tree.newick` lists. Character files
(`coaltree.table.nexus_characters`) share `NexusText`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..errors import InputError
from . import newick
from .newick import ParsedTree, describe_name_differences, excerpt, find_comment_end, spell_names

# As in Newick text, a quote inside an unquoted word belongs to the word (O'Brien).
_STOP = re.compile(r"""[;\[\]] | (?<![^\s()\[\],:;=*])['"]""", re.VERBOSE)
_QUOTED = re.compile(r"""'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*\"""")
_BLANKS = re.compile(r"\s*")
_NAME = re.compile(r"""(?P<quoted>'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*")|(?P<mark>,)|(?P<word>[^\s\[\],;]+)""")
HEADER = re.compile(r"""(?P<quoted>'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*")|(?P<mark>[=*])|(?P<word>[^\s\[\];=*]+)""")
"""Tokens of a statement: quoted names, ``=`` and ``*``, words."""


class NexusText:
    """The text of a NEXUS file, read statement by statement without recursion.

    Parameters
    ----------
    text : str
    preserve_underscores : bool
        Keep underscores of unquoted names instead of reading them as blanks.
    """

    def __init__(self, text: str, preserve_underscores: bool) -> None:
        self.text = text
        self.preserve_underscores = preserve_underscores

    def statements(self, hint: str) -> Iterator[tuple[str, int, int]]:
        """Yield the first word of each statement in lower case, the position after it, and that of the semicolon.

        `hint` says what to do with a text that is not a NEXUS file.
        """
        start = len(self.text) - len(self.text.lstrip("\ufeff \t\r\n"))
        if self.text[start : start + 6].upper() != "#NEXUS":
            beginning = excerpt(self.text.strip()[:40])
            raise InputError(
                f"The text begins with {beginning}, so it is not a NEXUS file, which begins with #NEXUS; pass the text of the "
                f"file rather than its name, and {hint}."
            )
        for begin, end in self._statements(start + 6):
            offset, _ = self.skip(begin)
            match = HEADER.match(self.text, offset)
            yield match.group().lower() if match else "", match.end() if match else offset, end

    def _statements(self, offset: int) -> Iterator[tuple[int, int]]:
        """Yield the beginning of each statement and the position of its semicolon."""
        begin = offset
        while match := _STOP.search(self.text, offset):
            offset = match.start()
            mark = match.group()
            if mark == ";":
                yield begin, offset
                begin = offset = offset + 1
            elif mark == "[":
                offset = self.skip_comment(offset)
            elif mark == "]":
                raise InputError(
                    f"The bracket ']' on {self.line(offset)} closes no comment; quote names that hold brackets."
                )
            else:
                quoted = _QUOTED.match(self.text, offset)
                if quoted is None:
                    raise InputError(
                        f"The quote opened on {self.line(offset)} is never closed; a quote inside a quoted name is "
                        "written twice, as in 'it''s'."
                    )
                offset = quoted.end()
        rest, _ = self.skip(begin)
        if rest < len(self.text):
            raise InputError(
                f"The file is cut off: the statement that begins with {excerpt(self.text[rest : rest + 30])} on "
                f"{self.line(rest)} has no semicolon; read the whole file."
            )

    def skip(self, offset: int) -> tuple[int, list[str]]:
        """Return the position after blanks and comments, and the comments."""
        comments: list[str] = []
        while True:
            blanks = _BLANKS.match(self.text, offset)
            offset = blanks.end() if blanks else offset
            if not self.text.startswith("[", offset):
                return offset, comments
            end = self.skip_comment(offset)
            comments.append(self.text[offset:end])
            offset = end

    def skip_comment(self, offset: int) -> int:
        """Return the position after the comment that opens at ``offset``; comments may be nested."""
        end = find_comment_end(self.text, offset)
        if end is None:
            raise InputError(f"The comment opened by '[' on {self.line(offset)} is never closed; add the missing ']'.")
        return end

    def tokens(self, pattern: re.Pattern[str], offset: int, end: int) -> Iterator[tuple[str, str, int]]:
        """Yield kind, text and end of the tokens of a statement."""
        offset, _ = self.skip(offset)
        while offset < end and (match := pattern.match(self.text, offset)):
            yield match.lastgroup or "", match.group(), match.end()
            offset, _ = self.skip(match.end())

    def names(self, offset: int, end: int) -> Iterator[tuple[str, bool]]:
        """Yield the names and commas of a statement; the flag is true for a comma."""
        for kind, token, _ in self.tokens(_NAME, offset, end):
            yield (token, True) if kind == "mark" else (self.name(kind, token), False)

    def name(self, kind: str, token: str) -> str:
        """Return the name that a token stands for."""
        if kind == "quoted":
            return token[1:-1].replace(token[0] * 2, token[0])
        return token if self.preserve_underscores else token.replace("_", " ")

    def without_comments(self, offset: int, end: int) -> str:
        """Return a part of the text with blanks instead of comments, so that positions and lines stay the same."""
        parts: list[str] = []
        while match := _STOP.search(self.text, offset, end):
            begin = match.start()
            quoted = _QUOTED.match(self.text, begin) if match.group() in "'\"" else None
            after = quoted.end() if quoted else self.skip_comment(begin) if match.group() == "[" else begin + 1
            text = self.text[begin:after]
            parts += [self.text[offset:begin], re.sub(r"[^\n]", " ", text) if match.group() == "[" else text]
            offset = after
        return "".join([*parts, self.text[offset:end]])

    def line(self, offset: int) -> str:
        """Return the line of a position, for messages."""
        return f"line {self.text.count(chr(10), 0, offset) + 1}"


def render(names: Sequence[str], trees: Iterable[tuple[str, str]], quote_names: bool = False) -> str:
    """Write a file of trees.

    Parameters
    ----------
    names : sequence of str
        Names of the leaves; number ``i`` is written as ``i + 1`` in the trees.
    trees : iterable of (str, str)
        A plain name for every tree, and its text.
    quote_names : bool, default False
        As of `spell_names`.

    Returns
    -------
    str

    Examples
    --------
    >>> print(render(["ape", "wise man"], [("T", "[&R] (1:1.0,2:1.0);")]))
    #NEXUS
    <BLANKLINE>
    Begin taxa;
        Dimensions ntax=2;
        Taxlabels
            ape
            wise_man
            ;
    End;
    <BLANKLINE>
    Begin trees;
        Translate
            1 ape,
            2 wise_man
            ;
    tree T = [&R] (1:1.0,2:1.0);
    End;
    <BLANKLINE>
    """
    labels = spell_names(names, quote_names)
    return "\n".join(
        [
            "#NEXUS",
            "",
            "Begin taxa;",
            f"    Dimensions ntax={len(labels)};",
            "    Taxlabels",
            *(f"        {label}" for label in labels),
            "        ;",
            "End;",
            "",
            "Begin trees;",
            "    Translate",
            ",\n".join(f"        {key} {label}" for key, label in enumerate(labels, 1)),
            "        ;",
            *(f"tree {name} = {text}" for name, text in trees),
            "End;",
            "",
        ]
    )


_WEIGHT = re.compile(r"\[\s*&w\s+(.*?)\s*\]", re.IGNORECASE | re.DOTALL)


def find_duplicate(names: Iterable[str]) -> str:
    """Return the first name that occurs more than once."""
    return next(name for name, count in Counter(names).items() if count > 1)


class NexusTree(NamedTuple):
    """A tree of a file with its name and weight."""

    name: str
    weight: float
    tree: ParsedTree


def parse(text: str, preserve_underscores: bool, tolerance: float) -> tuple[Sequence[str], list[NexusTree]]:
    """Parse the trees of a file.

    Parameters
    ----------
    text : str
        A NEXUS file with rooted, binary, ultrametric trees over the same leaves. Blocks other than taxa and trees are ignored,
        and comments other than weights such as ``[&W 1/3]`` and those that `newick.parse` reads.
    preserve_underscores : bool
        Keep underscores of unquoted names instead of reading them as blanks.
    tolerance : float
        Largest difference of two leaves' depths, as a share of the root's height.

    Returns
    -------
    names : sequence of str
        Of the leaves, in the order of the taxa block, else of the translate table, else of the first tree.
    trees : list of NexusTree
        At least one. Weights are 1 where the file gives none. Trees with the same text are the same object.

    Raises
    ------
    InputError
        If the text is not such a file, with the tree that is wrong.

    Examples
    --------
    >>> text = "#NEXUS begin trees; tree T = [&W 1/4] [&R] (a:1,b:1); end;"
    >>> names, [tree] = parse(text, False, 1e-6)
    >>> names, tree.name, tree.weight
    (('a', 'b'), 'T', 0.25)
    """
    if not isinstance(text, str):
        raise InputError(
            f"A NEXUS file is read from a string, not from {type(text).__name__}; pass the text of the file."
        )
    parser = _NexusParser(text, preserve_underscores, tolerance)
    parser.parse()
    return parser.order, parser.trees


class _NexusParser(NexusText):
    """One pass over the text of one file, statement by statement."""

    def __init__(self, text: str, preserve_underscores: bool, tolerance: float) -> None:
        super().__init__(text, preserve_underscores)
        self.tolerance = tolerance
        self.block = ""
        self.taxa: list[str] = []
        self.translate: dict[str, str] = {}
        # The leaf that each label in a tree stands for.
        self.leaf_by_label: dict[str, str] = {}
        self.order: tuple[str, ...] = ()
        self.trees: list[NexusTree] = []
        # Samples repeat trees, so each text is parsed once per translate table.
        self.read_texts: dict[str, ParsedTree] = {}

    def parse(self) -> None:
        """Parse the whole text."""
        had_trees = False
        for word, after, end in self.statements("read Newick text with Tree.from_newick"):
            if word == "begin":
                self.begin(after, end)
                had_trees |= self.block == "trees"
            elif word in ("end", "endblock"):
                self.block = ""
            elif self.block == "taxa" and word == "taxlabels":
                self.read_taxa(after, end)
            elif self.block == "trees" and word == "translate":
                self.read_translate(after, end)
            elif self.block == "trees" and word in ("tree", "utree"):
                self.read_tree(after, end)
        if self.block:
            last = f" after tree {excerpt(self.trees[-1].name)}" if self.trees else ""
            raise InputError(
                f"The {self.block} block is never closed, so the file seems to be cut off{last}; read the whole file, "
                "or add a line 'End;' if there is no more."
            )
        if not self.trees:
            content = "a trees block without any tree" if had_trees else "no trees block"
            raise InputError(
                f"The NEXUS file has {content}; it needs 'Begin trees;' and a line such as 'tree T = (a:1,b:1);'."
            )

    # -- statements ----------------------------------------------------------------------------

    def begin(self, offset: int, end: int) -> None:
        """Read the beginning of a block."""
        names = [name.lower() for name, _ in self.names(offset, end)]
        self.block = names[0] if names else "nameless"
        if self.block == "trees":
            self.translate = {}
            self.read_texts = {}
            self.leaf_by_label = {str(number): name for number, name in enumerate(self.taxa, 1)}
            self.leaf_by_label |= {name: name for name in self.taxa}

    def read_taxa(self, offset: int, end: int) -> None:
        """Read the names of all leaves."""
        self.taxa = [name for name, comma in self.names(offset, end) if not comma]
        self.check_distinct(self.taxa, "list of taxa")

    def read_translate(self, offset: int, end: int) -> None:
        """Read the table from labels in the block's trees to names of leaves."""
        entry: list[str] = []
        for name, comma in (*self.names(offset, end), (",", True)):
            if not comma:
                entry.append(name)
                continue
            if not entry:  # a comma after the last entry
                continue
            if len(entry) != 2:
                raise InputError(
                    f"The entry {excerpt(' '.join(entry))} of the translate table on {self.line(offset)} and after is not "
                    "a key and a name; separate entries by commas, and quote names that hold blanks or commas."
                )
            key, label = entry
            if key in self.translate:
                raise InputError(f"The key {excerpt(key)} occurs twice in the translate table; keys must differ.")
            self.translate[key] = label
            entry = []
        self.check_distinct(list(self.translate.values()), "translate table")
        self.leaf_by_label = {name: name for name in (*self.taxa, *self.translate.values())} | self.translate
        self.read_texts = {}

    def check_distinct(self, names: list[str], statement: str) -> None:
        """Raise if a name occurs twice."""
        if len(set(names)) < len(names):
            twice = find_duplicate(names)
            raise InputError(f"The name {excerpt(twice)} occurs twice in the {statement}; names must differ.")

    def read_tree(self, offset: int, end: int) -> None:
        """Read one tree."""
        title, equals = "", False
        for kind, token, after in self.tokens(HEADER, offset, end):
            offset = after
            if token == "=" and kind == "mark":
                equals = True
                break
            if kind != "mark":
                title = self.name(kind, token) if kind == "quoted" else token
        subject = f"Tree {excerpt(title)} (number {len(self.trees) + 1} of the file)"
        if not equals:
            raise InputError(
                f"{subject} has no '=' after its name on {self.line(offset)}; write 'tree T = (a:1,b:1);'."
            )
        begin, comments = self.skip(offset)
        weight = self.weight(comments, subject)
        body = self.text[begin : end + 1]
        tree = self.read_texts.get(body)
        if tree is None:
            tree = self.read_texts[body] = self.tree(begin, end, subject)
        self.trees.append(NexusTree(title, weight, tree))

    def weight(self, comments: list[str], subject: str) -> float:
        """Return the weight that a comment before a tree gives, or 1."""
        for comment in comments:
            if match := _WEIGHT.fullmatch(comment):
                parts = match.group(1).split("/")
                try:
                    numbers = [float("" if "_" in part else part) for part in parts]
                    weight = numbers[0] / numbers[1] if len(numbers) == 2 else math.nan if numbers[2:] else numbers[0]
                except (ValueError, ZeroDivisionError):
                    weight = math.nan
                if not 0 <= weight < math.inf:
                    raise InputError(
                        f"{subject} has the weight {excerpt(match.group(1))}; weights are finite numbers of at least 0, "
                        "such as 0.25 or 1/4."
                    )
                return weight
        return 1.0

    def tree(self, begin: int, end: int, subject: str) -> ParsedTree:
        """Return the tree of a statement."""
        try:
            parsed = newick.parse(self.text[begin : end + 1], self.preserve_underscores, self.tolerance)
        except InputError as error:
            raise InputError(f"{subject}: {self.relocate_error(begin, end, error)}") from None
        names = [self.leaf_name(label, subject) for label in parsed.names]
        self.set_order(names)
        differences = describe_name_differences(names, self.order)
        if differences or len(names) != len(self.order):
            reason = differences or f"it has {excerpt(find_duplicate(names))} twice"
            raise InputError(f"{subject} is not over the leaves of the file: {reason}; all trees need the same leaves.")
        return parsed._replace(names=names)

    def leaf_name(self, label: str, subject: str) -> str:
        """Return the name that a label in a tree stands for."""
        name = self.leaf_by_label.get(label, self.leaf_by_label.get(label.replace("_", " ")))
        if name is None and self.translate:
            raise InputError(
                f"{subject} has the leaf {excerpt(label)}, which is neither a key nor a name of the translate table; add it "
                "there."
            )
        return label if name is None else name

    def set_order(self, names: list[str]) -> None:
        """Fix the order of the leaves for all trees."""
        if not self.order:
            self.order = tuple(self.taxa or self.translate.values() or names)

    def relocate_error(self, begin: int, end: int, error: InputError) -> str:
        """Return the message of an error, with positions in the file instead of positions in the tree."""
        # Parse the tree again after a comment as long as the text before it, so that positions count from its beginning.
        start, equals = self.text.index("#"), self.text.rindex("=", 0, begin)
        blank = re.sub(r"[^\n]", " ", self.text[:begin])
        before = f"{blank[:start]}[{blank[start + 1 : equals]}]{blank[equals + 1 :]}"
        try:
            newick.parse(before + self.text[begin : end + 1], self.preserve_underscores, self.tolerance)
        except InputError as placed:
            return str(placed)
        return str(error)
