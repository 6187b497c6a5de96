"""Symbols of character files and the cells that they stand for: states, sets of states, missing cells.

`Characters` is what the readers of all formats return.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeAlias

from .._parameters import Gaps
from .._validation import quote
from ..errors import InputError
from .cells import Category
from .labels import listing

Cell: TypeAlias = str | float | frozenset[str] | None
"""A state, a number, a set of possible states, or None for a missing cell."""

GAP_STATE = "-"
"""The state of a gap if gaps are states."""

_NUCLEOTIDES = {
    "R": "AG",
    "Y": "CT",
    "M": "AC",
    "K": "GT",
    "S": "CG",
    "W": "AT",
    "H": "ACT",
    "B": "CGT",
    "V": "ACG",
    "D": "AGT",
    "N": "ACGT",
}
_AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
# Selenocysteine (U) and pyrrolysine (O) are so rare that they carry no information about relations.
_AMINO_AMBIGUITIES: dict[str, str | None] = {"B": "DN", "Z": "EQ", "J": "IL", "X": None, "U": None, "O": None}

_STATES = {
    "dna": "ACGT",
    "rna": "ACGU",
    "protein": _AMINO_ACIDS + "*",
    "restriction": "01",
    "standard": "0123456789",
}
# N and X are missing cells of several datatypes, and one stop codon does not make a protein.
_GUESSED_SYMBOLS = {*"".join(_STATES.values()), *_NUCLEOTIDES, *_AMINO_AMBIGUITIES} - {*"NX*"}
# Of amino acids, A, C, G and T are a fifth; so more of them are nucleotides, with errors in other cells.
_NUCLEOTIDE_SHARE = 0.8
DATATYPES = (*_STATES, "continuous")
"""The datatypes of characters; a file may mix them."""

CHARACTER_DATATYPES = (*_STATES, "cognates")
"""Those with a model of the field. Cognate sets are of lists of words."""

MOLECULES = ("dna", "rna", "protein")
"""Those whose letters are parts of molecules."""

BINARY_DATATYPES = ("restriction", "cognates")
"""Those with the states absent and present."""

# Words for absence with those for presence, in small letters.
_PRESENCE = {"0": "1", "absent": "present", "no": "yes", "false": "true", "-": "+", "n": "y"}
_ABSENT = {"0", "absent", "no", "none", "false", "-"}  # words that mean absence next to any other word
_NUMBER = re.compile(r"-?\d+(\.\d+)?")

_ALIASES = {"nucleotide": "dna", "codon": "dna", "binary": "restriction", "aminoacid": "protein", "aa": "protein"}
_ALIASES |= {"integerdata": "standard", "morph": "standard"}


def find_datatype(name: str) -> str | None:
    """Return the datatype of a name such as ``"DNA"`` or ``"nucleotide"``; None if there is none."""
    known = _ALIASES.get(name.lower(), name.lower())
    return known if known in DATATYPES else None


def datatype_of_states(states: Sequence[str]) -> str | None:
    """Return the datatype of a column that can have some states; None if they are of no datatype.

    Examples
    --------
    >>> datatype_of_states("ACGT-"), datatype_of_states("012"), datatype_of_states("01"), datatype_of_states(["SVO", "SOV"])
    ('dna', 'standard', 'restriction', None)
    """
    for datatype, alphabet in zip(MOLECULES, ("ACGT", "ACGU", _AMINO_ACIDS), strict=True):
        if [*states[: len(alphabet)]] == [*alphabet]:
            return datatype
    if not states or not {*states} <= {*_STATES["standard"]}:
        return None
    return "restriction" if [*states] == ["0", "1"] else "standard"


def alphabet_of(datatype: str, categories: Iterable[Category]) -> tuple[Category, ...]:
    """Return the states that columns of a datatype can have, given those that occur.

    Molecules have the states of their alphabet, and others only if they occur. Standard characters have digits up to the largest
    that occurs, or else the states that occur; two at least. The order of the given categories does not matter.

    Examples
    --------
    >>> alphabet_of("dna", ["A", "-"]), alphabet_of("standard", ["2", "0"]), alphabet_of("standard", ["red"])
    (('A', 'C', 'G', 'T', '-'), ('0', '1', '2'), ('red', '(other)'))
    """
    occurring = sorted(set(categories), key=_order_of)
    texts = {str(category): category for category in occurring}
    if datatype == "standard":
        if texts and all(len(text) == 1 and text in _STATES["standard"] for text in texts):
            convert: Callable[[str], Category] = str if isinstance(occurring[0], str) else int
            return tuple(map(convert, _STATES["standard"][: max(2, 1 + max(map(int, texts)))]))
        return tuple(occurring) if len(occurring) > 1 else (*occurring, *("(other)", "(none)")[: 2 - len(occurring)])
    known = {"protein": _AMINO_ACIDS, "cognates": "01"}.get(datatype) or _STATES[datatype]
    states = [texts.get(state, state) for state in known]
    return (*states, *sorted((category for category in occurring if category not in states), key=str))


def _order_of(category: Category) -> tuple[bool, float, str]:
    """Return what states are sorted by: numbers by value, then texts."""
    text = str(category)
    is_number = _NUMBER.fullmatch(text) is not None
    return not is_number, float(text) if is_number else 0.0, text


def presence_states(categories: Iterable[Category]) -> tuple[Category, Category] | None:
    """Return the states that mean absent and present, given those that occur; None if they cannot be told.

    Examples
    --------
    >>> presence_states(["1"]), presence_states(["Yes", "No"]), presence_states(["A", "absent"]), presence_states([True])
    (('0', '1'), ('No', 'Yes'), ('absent', 'A'), (False, True))
    >>> presence_states(["has", "lacks"]), presence_states(["0", "2"])
    (None, None)
    """
    occurring = sorted(set(categories), key=_order_of)
    words = {str(category).lower(): category for category in occurring}
    if len(words) < len(occurring):
        return None
    for pair in _PRESENCE.items():
        if words.keys() <= set(pair):
            example = occurring[0] if occurring else "0"
            absent, present = (words.get(word, _write_like(word, example)) for word in pair)
            return absent, present
    known = words.keys() & _ABSENT
    if len(words) != 2 or len(known) != 1 or all(word.isdigit() for word in words):
        return None
    (other,) = words.keys() - known
    return words[known.pop()], words[other]


def absent_state(categories: Iterable[Category]) -> Category | None:
    """Return the category that is a word for absence, or 0; None if there is not exactly one."""
    found = [category for category in categories if str(category).lower() in _ABSENT]
    return found[0] if len(found) == 1 else None


def _write_like(word: str, example: Category) -> Category:
    """Return a word of `_PRESENCE` as a category like the example."""
    if not isinstance(example, str):
        return type(example)(word in _PRESENCE.values())
    return word.upper() if example.isupper() else word.title() if example.istitle() else word


class SymbolError(Exception):
    """A symbol without a meaning. Readers add taxon and line to its message."""


@dataclass(frozen=True, eq=False)
class Alphabet:
    """The symbols of a datatype.

    Parameters
    ----------
    datatype : str
        One of `DATATYPES`.
    states : tuple of str
        All states, in order.
    cells : dict of str to cell
        What each symbol stands for. Sets in braces or parentheses are added when they are first decoded.
    """

    datatype: str
    states: tuple[str, ...]
    cells: dict[str, Cell]

    def decode(self, symbol: str) -> Cell:
        """Return the cell of a symbol, or of a set such as ``{AG}`` or ``(01)``.

        Raises
        ------
        SymbolError
            If the symbol is not known, with the reason.
        """
        cell = self.cells.get(symbol, self)
        if not isinstance(cell, Alphabet):
            return cell
        if self.datatype == "continuous":
            return _parse_number(symbol)
        if len(symbol) < 2 or symbol[0] not in "{(":
            if symbol in ("{", "("):
                raise SymbolError(f"the set that {symbol!r} opens is never closed")
            stop = "; * is a stop codon of proteins: write ? if the nucleotide is unknown"
            raise SymbolError(
                f"{quote(symbol)} is not a symbol of {self.datatype} data, which has {self._describe()}"
                + stop * (symbol == "*" and self.datatype in ("dna", "rna"))
            )
        members = re.sub(r"[\s,]", "", symbol[1:-1])
        if not members:
            raise SymbolError(f"{quote(symbol)} is an empty set")
        self.cells[symbol] = self.join(map(self.decode, members))
        return self.cells[symbol]

    def join(self, cells: Iterable[Cell]) -> Cell:
        """Return the set of what several symbols stand for; missing if it may be anything."""
        states: set[str] = set()
        for cell in cells:
            if cell is None:
                return None
            states.update(cell if isinstance(cell, frozenset) else [str(cell)])
        if len(states) == 1:
            return states.pop()
        # A set of all nucleotides or amino acids is a missing cell. Of other characters, not all symbols need be states.
        is_everything = self.datatype in ("dna", "rna", "protein") and states >= set(self.states) - {"*"}
        return None if is_everything else frozenset(states)

    def _describe(self) -> str:
        symbols = sorted(symbol for symbol in self.cells if len(symbol) == 1 and symbol.upper() == symbol)
        return listing(symbols, limit=40)


def make_alphabet(
    datatype: str,
    gaps: Gaps = "missing",
    *,
    symbols: str | None = None,
    missing: str = "?",
    gap: str = "-",
    respect_case: bool = False,
) -> Alphabet:
    """Return the alphabet of a datatype.

    Parameters
    ----------
    datatype : str
        One of `DATATYPES`.
    gaps : {"missing", "state"}, default="missing"
        Whether a gap is a missing cell or a state.
    symbols : str, optional
        Further states of DNA, RNA and proteins; the states of standard data, 0 to 9 by default.
    missing, gap : str
        The symbols of missing cells and of gaps.
    respect_case : bool, default=False
        Whether letters of standard data in upper and lower case are two states.

    Returns
    -------
    Alphabet
    """
    if datatype == "continuous":
        return Alphabet(datatype, (), {missing: None, gap: None})
    states = list(dict.fromkeys(_STATES[datatype]))
    if symbols is not None:
        characters = [symbol for symbol in symbols if not symbol.isspace()]
        if datatype not in ("standard", "restriction"):
            characters = [*states, *map(str.upper, characters)]
        elif not respect_case:
            # Of two letters that differ only by case, the first is the state.
            characters = list({symbol.upper(): symbol for symbol in reversed(characters)}.values())[::-1]
        states = list(dict.fromkeys(characters))
    cells: dict[str, Cell] = {state: state for state in states}
    if gaps == "state":
        states.append(GAP_STATE)
    alphabet = Alphabet(datatype, tuple(states), cells)
    if datatype in ("dna", "rna"):
        cells["U" if datatype == "dna" else "T"] = thymine = "T" if datatype == "dna" else "U"
        for code, members in _NUCLEOTIDES.items():
            cells.setdefault(code, alphabet.join(members.replace("T", thymine)))
        cells.setdefault("X", None)
    elif datatype == "protein":
        for code, ambiguous in _AMINO_AMBIGUITIES.items():
            cells.setdefault(code, None if ambiguous is None else alphabet.join(ambiguous))
    if not respect_case or datatype not in ("standard", "restriction"):
        for symbol, cell in list(cells.items()):
            cells.setdefault(symbol.lower(), cell)
            cells.setdefault(symbol.upper(), cell)
    if gap not in states or gap == GAP_STATE:
        cells[gap] = GAP_STATE if gaps == "state" else None
    cells[missing] = None
    return alphabet


def guess_datatype(rows: Iterable[Iterable[str]]) -> str:
    """Return the datatype that the symbols of aligned sequences suggest.

    Symbols that no datatype has do not count, so that a message about them names the datatype of all others.

    Examples
    --------
    >>> guess_datatype(["ACGTN-", "ACG?RA"]), guess_datatype(["ACGU"]), guess_datatype(["MKLV"]), guess_datatype(["0120"])
    ('dna', 'rna', 'protein', 'standard')
    >>> guess_datatype(["ACG!"]), guess_datatype(["ACGTAC*T"]), guess_datatype(["0101", "01A1"])
    ('dna', 'dna', 'standard')
    """
    counts: dict[str, int] = {}
    for symbol in chain.from_iterable(rows):
        counts[symbol] = counts.get(symbol, 0) + 1
    symbol_counts: dict[str, int] = {}
    for symbol, n in counts.items():
        if symbol.upper() in _GUESSED_SYMBOLS:
            symbol_counts[symbol.upper()] = symbol_counts.get(symbol.upper(), 0) + n
    if not symbol_counts:
        return "dna"
    if 2 * sum(symbol_counts.get(digit, 0) for digit in _STATES["standard"]) > sum(symbol_counts.values()):
        return "standard"
    bases = sum(symbol_counts.get(base, 0) for base in "ACGTU")
    n_symbols = sum(symbol_counts.values())
    is_possible = set(symbol_counts) <= {*"ACGTU", *_NUCLEOTIDES}
    if bases >= _NUCLEOTIDE_SHARE * n_symbols or (is_possible and 2 * bases >= n_symbols):
        return "rna" if "U" in symbol_counts and "T" not in symbol_counts else "dna"
    return "protein"


def _parse_number(text: str) -> float:
    try:
        number = float("" if "_" in text else text)
    except ValueError:
        number = float("nan")
    if not abs(number) < float("inf"):
        raise SymbolError(f"{quote(text)} is not a finite number")
    return number


@dataclass(frozen=True, eq=False)
class CharacterColumn:
    """A character: its cells for all taxa.

    Parameters
    ----------
    name : str
    datatype : str
        One of `DATATYPES`.
    cells : list of cell
    states : tuple of str
        All states that symbols of the file may stand for, in order; none for numbers.
    """

    name: str
    datatype: str
    cells: list[Cell]
    states: tuple[str, ...]

    @property
    def has_sets(self) -> bool:
        """Whether a cell is a set of states."""
        return any(isinstance(cell, frozenset) for cell in self.cells)


@dataclass(frozen=True, eq=False)
class Characters:
    """The characters of a set of taxa.

    Parameters
    ----------
    taxa : tuple of str
        Distinct names.
    columns : list of CharacterColumn
        With distinct names.
    partitions : dict of str to tuple of str
        Names of the columns of each partition that the file names.
    """

    taxa: tuple[str, ...]
    columns: list[CharacterColumn]
    partitions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass
class Row:
    """The symbols of one taxon, with the lines that they are on."""

    taxon: str
    line: int  # of the name
    symbols: list[str] = field(default_factory=list)
    ends: list[tuple[int, int]] = field(default_factory=list)  # lines, and the number of symbols at their ends

    def add(self, symbols: list[str], line: int) -> None:
        """Add the symbols of a line."""
        self.symbols += symbols
        self.ends.append((line, len(self.symbols)))

    def line_number(self, position: int) -> int:
        """Return the line of a symbol."""
        return next((line for line, end in self.ends if position < end), self.last_line)

    @property
    def last_line(self) -> int:
        """The line of the last symbol."""
        return self.ends[-1][0] if self.ends else self.line

    @property
    def label(self) -> str:
        """The taxon, for messages."""
        return f"Taxon {quote(self.taxon)}"


def decode_rows(
    rows: Sequence[Row], alphabet_of: Callable[[int], Alphabet], names: Sequence[str], source: str
) -> list[CharacterColumn]:
    """Return the columns of rows of symbols.

    Parameters
    ----------
    rows : sequence of Row
        All with a symbol for each name.
    alphabet_of : callable
        Returns the alphabet of a position.
    names : sequence of str
        Names of the columns.
    source : str
        The name of the file, for messages.

    Returns
    -------
    list of CharacterColumn

    Raises
    ------
    InputError
        With line and taxon of the first symbol without a meaning.
    """
    columns = []
    for j, name in enumerate(names):
        alphabet = alphabet_of(j)
        known = alphabet.cells
        try:
            # Sets and numbers are decoded when they first occur.
            cells = [
                known[row.symbols[j]] if row.symbols[j] in known else alphabet.decode(row.symbols[j]) for row in rows
            ]
        except SymbolError:
            raise _symbol_error(rows, j, alphabet, source) from None
        columns.append(CharacterColumn(name, alphabet.datatype, cells, alphabet.states))
    return columns


def _symbol_error(rows: Sequence[Row], position: int, alphabet: Alphabet, source: str) -> InputError:
    for row in rows:
        try:
            alphabet.decode(row.symbols[position])
        except SymbolError as error:
            return InputError(
                f"{source}, line {row.line_number(position)}: {row.label}, character {position + 1}: {error}."
            )
    raise AssertionError("a symbol was wrong")


def check_distinct_taxa(rows: Sequence[Row], source: str) -> None:
    """Refuse two rows of the same taxon."""
    lines: dict[str, int] = {}
    for row in rows:
        if not row.taxon:
            raise InputError(f"{source}, line {row.line}: the taxon has no name.")
        if row.taxon in lines:
            raise InputError(
                f"{source}, line {row.line}: {row.label} occurs twice, first on line {lines[row.taxon]}; names must differ."
            )
        lines[row.taxon] = row.line


def default_names(datatypes: Sequence[str]) -> list[str]:
    """Return the names of columns without a name: ``site1``, ``site2``, ... of molecules, ``character3``, ... of others."""
    return [
        f"{'site' if datatype in ('dna', 'rna', 'protein') else 'character'}{j + 1}"
        for j, datatype in enumerate(datatypes)
    ]
