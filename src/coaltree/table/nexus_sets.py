"""Sets of characters in NEXUS files: charsets and partitions, which may refer to each other and to blocks of characters."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .._validation import quote

_HEADER = re.compile(r"\s*\*?\s*('(?:[^']|'')*'|[^\s=(*]+)\s*(?:\(([^)]*)\)\s*)?=")
_OPTION = re.compile(r"('(?:[^']|'')*'|[^\s=]+)(?:\s*=\s*('(?:[^']|'')*'|\S+))?")
_PART = re.compile(r"(?:'(?:[^']|'')*'|[^,'])+")
_PART_NAME = re.compile(r"\s*('(?:[^']|'')*'|[^:']*):")
# A number or a range ends before a blank or a comma: 12S is a name.
_ITEM = re.compile(
    r"(\d+|\.)\s*(?:-\s*(\d+|\.)\s*(?:\\\s*(\d+))?)?(?=[\s,]|$)|('(?:[^']|'')*'|[^\s,\\]+)|,|(\S)", re.ASCII
)
_WORDS = ("all", "remainder", "not", "except")


class SetError(Exception):
    """A set that cannot be read, as the end of a sentence that begins with its name."""


def unquote(name: str) -> str:
    """Return a name without its quotes."""
    return name[1:-1].replace("''", "'") if len(name) > 1 and name[0] == name[-1] == "'" else name


def parse_set(
    text: str, n_characters: int, find: Callable[[str], Collection[int] | None], taken: Iterable[int] = ()
) -> set[int]:
    r"""Return the characters of a text such as ``1-10 15 20-.\3 coding``, counted from 0.

    Parameters
    ----------
    text : str
        Numbers, ranges, names, ALL and REMAINDER. The characters after NOT or EXCEPT are taken away from those before it, or from
        all if there are none.
    n_characters : int
    find : callable
        Returns the characters of a name; None if it is not known.
    taken : iterable of int
        The characters that REMAINDER leaves out.

    Returns
    -------
    set of int

    Raises
    ------
    SetError
        If the text is not understood.

    Examples
    --------
    >>> sorted(parse_set("1-.\\3 8", 10, {}.get)), sorted(parse_set("not 3-9", 10, {}.get))
    ([0, 3, 6, 7, 9], [0, 1, 9])
    >>> sorted(parse_set("remainder", 10, {}.get, taken=range(8)))
    [8, 9]
    """
    included, excluded = set[int](), set[int]()
    chosen, n_items = included, 0
    for match in _ITEM.finditer(text):
        low, high, step, name, other = match.groups()
        word = (name or "").lower()
        n_items += 1
        if low is not None:
            first, last = (n_characters if bound == "." else int(bound[:12]) for bound in (low, high or low))
            if not 1 <= first <= last <= n_characters or (step is not None and not int(step[:12])):
                raise SetError(f"names the characters {match.group().strip()}, but they go from 1 to {n_characters:,}")
            chosen.update(range(first - 1, last, int((step or "1")[:12])))
        elif word == "all":
            chosen.update(range(n_characters))
        elif word == "remainder":
            chosen.update(set(range(n_characters)).difference(taken, included))
        elif word in ("not", "except"):
            if chosen is excluded:
                raise SetError(f"has {quote(name)} after another NOT")
            if n_items == 1:
                included.update(range(n_characters))
            chosen, n_items = excluded, 0
        elif name is not None:
            positions = find(unquote(name))
            if positions is None:
                raise SetError(f"names {quote(unquote(name))}, which is neither a number, a CHARSET nor a character")
            chosen.update(positions)
        elif other is not None:
            raise SetError(f"holds {quote(other)}, which is not a character")
        else:  # a comma
            n_items -= 1
    if not n_items:
        raise SetError("ends after NOT" if chosen is excluded else "is empty")
    return included - excluded


@dataclass(frozen=True)
class _Definition:
    """A charset, or a partition with all its parts, before it is read."""

    name: str
    text: str  # after "="
    offset: int  # of the text
    options: Mapping[str, str]

    @property
    def is_vector(self) -> bool:
        """Whether the text has a symbol for each character."""
        return "vector" in self.options

    @property
    def block(self) -> str | None:
        """The title of the block of characters that positions refer to; None for all blocks side by side."""
        return self.options.get("characters")


@dataclass(frozen=True)
class BlockRange:
    """Where the characters of a block are among those of the file."""

    title: str
    first: int
    n_characters: int


@dataclass
class CharacterSets:
    """The charsets and partitions of a file, read when all its blocks are known."""

    charsets: dict[str, _Definition] = field(default_factory=dict)  # by name in lower case
    partitions: list[_Definition] = field(default_factory=list)
    failures: list[tuple[int, str]] = field(default_factory=list)  # position in the text, and what was left out and why
    _positions: dict[str, set[int] | None] = field(default_factory=dict)  # None if a charset cannot be read

    def add(self, kind: str, text: str, offset: int, linked_block: str | None) -> None:
        """Note a statement CHARSET or PARTITION.

        Parameters
        ----------
        kind : str
            The first word of the statement, in lower case.
        text : str
            The statement after it, without comments.
        offset : int
            Its position in the file.
        linked_block : str or None
            The title of the block of characters that a LINK statement names.
        """
        match = _HEADER.match(text)
        if match is None:
            self.failures.append((offset, f"A {kind.upper()} has no name and '='"))
            return
        options = {} if linked_block is None else {"characters": linked_block}
        for option in _OPTION.finditer(match.group(2) or ""):
            options[unquote(option.group(1)).lower()] = unquote(option.group(2) or "")
        definition = _Definition(unquote(match.group(1)), text[match.end() :], offset + match.end(), options)
        if kind == "charset":
            self.charsets[definition.name.lower()] = definition
        else:
            self.partitions.append(definition)

    def resolve(self, blocks: Sequence[BlockRange], names: Sequence[str]) -> dict[str, list[int]]:
        """Return the characters of each charset and of each part of a partition, counted from 0; see also `failures`."""
        self._blocks = blocks
        # Underscores and blanks are the same here, because a name may be in quotes in one place only.
        self._by_name = {name.replace("_", " ").lower(): {j} for j, name in reversed(list(enumerate(names)))}
        self._n_characters = len(names)
        self._taken = set[int]()  # by the charsets before the one that is read
        for key in self.charsets:
            self._resolve_charset(key)
            self._taken |= self._positions[key] or set()
        found = {
            definition.name: sorted(positions)
            for key, definition in self.charsets.items()
            if (positions := self._positions[key]) is not None
        }
        for definition in self.partitions:
            try:
                parts = self._read_vector(definition) if definition.is_vector else self._read_parts(definition)
            except SetError as error:
                self._fail(definition.offset, f"PARTITION {quote(definition.name)} {error}")
                continue
            for name, positions in parts.items():
                if name.lower() not in self.charsets:
                    found[name] = sorted(positions)
        return found

    def _fail(self, offset: int, words: str) -> None:
        self.failures.append((offset, words))

    # -- charsets ------------------------------------------------------------------------------

    def _resolve_charset(self, key: str) -> None:
        """Read a charset after all those that it refers to, without recursion."""
        waiting, open_keys = [key], dict[str, None]()
        while waiting:
            key = waiting[-1]
            if key in self._positions:
                waiting.pop()
                continue
            needed = [other for other in self._references(key) if other not in self._positions]
            if key in open_keys or not needed:
                # If charsets are still needed, they refer to this one: it is read without them, and that fails.
                self._positions[key] = self._read_charset(self.charsets[key])
                open_keys.pop(key, None)
                waiting.pop()
            else:
                open_keys[key] = None
                waiting += [other for other in reversed(needed) if other not in open_keys]

    def _references(self, key: str) -> Iterator[str]:
        definition = self.charsets[key]
        if definition.is_vector:
            return
        for match in _ITEM.finditer(definition.text):
            name = match.group(4)
            if name is not None and name.lower() not in _WORDS and unquote(name).lower() in self.charsets:
                yield unquote(name).lower()

    def _read_charset(self, definition: _Definition) -> set[int] | None:
        try:
            if definition.is_vector:
                parts = self._read_vector(definition)
                if not parts.keys() <= {"0", "1"}:
                    raise SetError(f"is a vector with {quote(min(parts.keys() - {'0', '1'}))}; it must have 0 and 1")
                return parts.get("1", set())
            return self._parse(definition, definition.text, self._taken)
        except SetError as error:
            self._fail(definition.offset, f"CHARSET {quote(definition.name)} {error}")
            return None

    # -- parts ---------------------------------------------------------------------------------

    def _read_parts(self, definition: _Definition) -> dict[str, set[int]]:
        """Return the parts of a partition such as ``a: 1-200, b: remainder``; those that cannot be read are left out."""
        parts: dict[str, set[int]] = {}
        taken: set[int] = set()
        for piece in _PART.finditer(definition.text):
            match = _PART_NAME.match(piece.group())
            name = unquote(match.group(1).strip()) if match else ""
            # MrBayes writes the number of parts first, and then only names of charsets.
            if match is None or not name or name.isdigit():
                continue
            try:
                positions = self._parse(definition, piece.group()[match.end() :], taken)
            except SetError as error:
                self._fail(definition.offset + piece.start(), f"Part {quote(name)} of {quote(definition.name)} {error}")
                continue
            taken |= positions
            parts[name] = parts.get(name, set()) | positions
        return parts

    def _read_vector(self, definition: _Definition) -> dict[str, set[int]]:
        """Return the characters of each symbol, or of each word with TOKENS, of a vector."""
        symbols = definition.text.split()
        if "tokens" not in definition.options:
            symbols = list("".join(symbols))
        _, n_characters = self._range(definition)
        if len(symbols) != n_characters:
            raise SetError(f"is a vector of {len(symbols):,} symbols for {n_characters:,} characters")
        first, _ = self._range(definition)
        parts: dict[str, set[int]] = {}
        for j, symbol in enumerate(symbols, first):
            parts.setdefault(symbol, set()).add(j)
        return parts

    def _range(self, definition: _Definition) -> tuple[int, int]:
        """Return the first character that the positions of a definition count, and how many there are."""
        title = definition.block
        if title is None:
            return 0, self._n_characters
        for block in self._blocks:
            if block.title.lower() == title.lower():
                return block.first, block.n_characters
        if len(self._blocks) == 1:  # of a block without a title
            return 0, self._n_characters
        raise SetError(f"is for the block {quote(title)} of characters, which is not there")

    def _parse(self, definition: _Definition, text: str, taken: Iterable[int]) -> set[int]:
        first, n_characters = self._range(definition)

        def find(name: str) -> Collection[int] | None:
            key = name.lower()
            positions = self._by_name.get(key.replace("_", " "))
            if key in self.charsets:
                if key not in self._positions:
                    raise SetError(f"names the CHARSET {quote(name)}, which is defined by it")
                positions = self._positions[key]
                if positions is None:
                    raise SetError(f"names the CHARSET {quote(name)}, which cannot be read")
            return None if positions is None else {j - first for j in positions if 0 <= j - first < n_characters}

        found = parse_set(text, n_characters, find, (j - first for j in taken))
        return {j + first for j in found}
