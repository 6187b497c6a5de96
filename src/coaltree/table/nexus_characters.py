"""Characters of NEXUS files: the blocks DATA and CHARACTERS. Charsets and partitions have their own module."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import compress, islice

from .._parameters import Gaps
from .._validation import quote
from ..errors import InputError, InputWarning
from ..tree.nexus import NexusText
from .labels import count
from .limits import MAX_CELLS, MAX_COLUMNS
from .nexus_sets import BlockRange, CharacterSets, SetError, parse_set, unquote
from .symbols import (
    DATATYPES,
    Alphabet,
    CharacterColumn,
    Characters,
    Row,
    SymbolError,
    check_distinct_taxa,
    decode_rows,
    default_names,
    find_datatype,
    make_alphabet,
)

_SET_BLOCKS = ("sets", "assumptions", "mrbayes", "paup", "codons", "data", "characters")
_KEY = re.compile(r"([A-Za-z]\w*)\s*(=?)\s*", re.ASCII)
_ONE = re.compile(r"""'(.)'|"(.)"|(\S)""")
_VALUE = re.compile(r"""'([^']*)'|"([^"]*)"|([A-Za-z]*\s*\([^)]*\))|(\S+)""")
_SYMBOL = re.compile(r"[{(][^{}()]*[})]|\S")
_WORD = re.compile(r"[{(][^{}()]*[})]|[^\s{}()]+|\S")
_TAXON = re.compile(r"""\s*(?:(?P<quoted>'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*")|(?P<word>[^\s'"]\S*))""")


@dataclass
class _Block:
    """The statements of a block of characters before its matrix."""

    title: str = ""
    datatype: str = "standard"
    mixed: list[tuple[str, str]] = field(default_factory=list)  # datatypes with their positions
    n_taxa: int | None = None
    n_characters: int | None = None
    symbols: str | None = None
    missing: str = "?"
    gap: str = "-"
    match: str | None = None
    equate: str = ""
    interleaved: bool = False
    labelled: bool = True
    respect_case: bool = False
    tokens: bool = False
    names: dict[int, str] = field(default_factory=dict)  # of characters, by position
    eliminated: tuple[int, int] | None = None  # where that statement is
    dropped: set[int] = field(default_factory=set)  # positions that ELIMINATE leaves out
    columns: list[CharacterColumn] = field(default_factory=list)
    line: int = 0  # of the matrix

    @property
    def has_words(self) -> bool:
        """Whether blanks separate the cells of a row."""
        return self.datatype == "continuous" or self.tokens


def parse_nexus(text: str, source: str, gaps: Gaps = "missing", preserve_underscores: bool = True) -> Characters:
    r"""Parse the characters of a NEXUS file.

    Parameters
    ----------
    text, source, gaps
        As of `coaltree.table.characters.parse_fasta`.
    preserve_underscores : bool, default=True
        Keep underscores of unquoted names instead of reading them as blanks.

    Returns
    -------
    Characters
        Columns of several blocks side by side. Partitions are the charsets of the file, and the parts of its partitions.

    Raises
    ------
    InputError
        If the file has no characters or is damaged. The message names line and taxon.

    Examples
    --------
    >>> text = '''#NEXUS
    ... begin data;
    ...   dimensions ntax=2 nchar=3;
    ...   format datatype=standard symbols="012";
    ...   matrix
    ...     human 01{12}
    ...     chimp 0?2;
    ... end;'''
    >>> [column.cells for column in parse_nexus(text, "x.nex").columns] == [["0", "0"], ["1", None], [frozenset("12"), "2"]]
    True
    """
    parser = _Parser(text, source, gaps, preserve_underscores)
    try:
        return parser.parse()
    except InputError as error:
        message = str(error)
        if not message.startswith(source):  # it comes from the text of NEXUS files, which knows no taxa
            message = f"{source}: {message}{_describe_line(text, message)}"
        raise InputError(message) from None


class _Parser(NexusText):
    """One pass over the text of one file, statement by statement."""

    def __init__(self, text: str, source: str, gaps: Gaps, preserve_underscores: bool) -> None:
        super().__init__(text, preserve_underscores)
        self.source = source
        self.gaps: Gaps = gaps
        self.taxa: list[str] = []
        self.rows: dict[str, int] = {}  # the row of each taxon
        self.block_name = ""
        self.block = _Block()
        self.blocks: list[_Block] = []
        self.sets = CharacterSets()
        self.linked_block: str | None = None  # the title of the characters that a block of sets is about

    def parse(self) -> Characters:
        """Parse the whole text."""
        block_line = ""
        for word, offset, end in self.statements("FASTA and PHYLIP files are recognised by how they begin"):
            if word == "begin":
                names = [name.lower() for name, _ in self.names(offset, end)]
                self.block_name = names[0] if names else "nameless"
                self.block, block_line, self.linked_block = _Block(), self.line(offset), None
            elif word in ("end", "endblock"):
                if self.block_name in ("data", "characters") and not self.block.line:
                    raise InputError(f"The {self.block_name} block that begins on {block_line} has no matrix.")
                self.block_name = ""
            elif self.block_name in ("taxa", "data", "characters"):
                self.read_statement(word, offset, end)
            if self.block_name in _SET_BLOCKS:
                if word == "link":
                    title = self.options(offset, end).get("characters")
                    self.linked_block = None if title is None else unquote(title)
                elif word in ("charset", "partition", "charpartition"):
                    self.sets.add(word, self.without_comments(offset, end), offset, self.linked_block)
        if self.block_name:
            raise InputError(
                f"The {self.block_name} block that begins on {block_line} is never closed, so the file seems to be cut off; read "
                "the whole file, or add a line 'End;' if there is no more."
            )
        if not self.blocks:
            raise InputError(
                f"{self.source} has no characters: a NEXUS file needs a block DATA or CHARACTERS with a matrix. Read trees, if "
                "it has some, with coaltree.TreeSample.from_nexus."
            )
        return self.join()

    def error(self, offset: int, words: str) -> InputError:
        """Return an error at a position of the text."""
        return InputError(f"{self.source}, {self.line(offset)}: {words}")

    # -- statements ----------------------------------------------------------------------------

    def read_statement(self, word: str, offset: int, end: int) -> None:
        """Read a statement of a block of taxa or characters."""
        if word == "taxlabels":
            self.taxa = [name for name, comma in self.names(offset, end) if not comma]
            if len(set(self.taxa)) < len(self.taxa):
                twice = next(name for k, name in enumerate(self.taxa) if name in self.taxa[:k])
                raise self.error(offset, f"Taxon {quote(twice)} occurs twice in TAXLABELS; names must differ.")
        elif self.block_name == "taxa":
            return
        elif word == "title":
            self.block.title = next((name for name, comma in self.names(offset, end) if not comma), "")
        elif word == "dimensions":
            options = self.options(offset, end)
            self.block.n_taxa = self.number(options, "ntax", offset)
            self.block.n_characters = self.number(options, "nchar", offset)
        elif word == "format":
            self.read_format(offset, end)
        elif word == "charlabels":
            names = [name for name, comma in self.names(offset, end) if not comma]
            self.block.names = dict(enumerate(names))
        elif word == "charstatelabels":
            self.read_character_names(offset, end)
        elif word == "eliminate":
            self.block.eliminated = (offset, end)
        elif word == "matrix":
            self.read_matrix(offset, end)

    def options(self, offset: int, end: int) -> dict[str, str]:
        """Return the options ``NAME=VALUE`` of a statement; those without a value are "yes"."""
        text, options, position = self.without_comments(offset, end), dict[str, str](), 0
        while match := _KEY.search(text, position):
            key, position = match.group(1).lower(), match.end()
            options[key] = "yes"
            if match.group(2):
                # A symbol has one character: the next option may follow at once.
                value = (_ONE if key in ("missing", "gap", "matchchar") else _VALUE).match(text, position)
                options[key] = "" if value is None else next(group for group in value.groups() if group is not None)
                position = position if value is None else value.end()
        return options

    def number(self, options: dict[str, str], name: str, offset: int) -> int | None:
        """Return a number of DIMENSIONS."""
        value = options.get(name)
        if value is None:
            return None
        if not (value.isascii() and value.isdigit()) or not 0 < int(value[:12]) <= MAX_CELLS:
            raise self.error(offset, f"{name.upper()} is {quote(value)} in DIMENSIONS; it must be a positive number.")
        return int(value)

    def read_format(self, offset: int, end: int) -> None:
        """Read how the matrix is written."""
        options, block = self.options(offset, end), self.block
        datatype = options.get("datatype", "standard")
        name, _, inside = datatype.partition("(")
        if name.strip().lower() == "mixed":
            parts = [part.partition(":") for part in inside.rstrip(") ").split(",")]
            block.mixed = [(find_datatype(part.strip()) or "", positions) for part, _, positions in parts]
        block.datatype = "mixed" if block.mixed else find_datatype(datatype) or ""
        is_microsat = datatype.lower() in ("microsat", "microsatellite")  # numbers of repeats
        if is_microsat:
            block.datatype = "standard"
        if not block.datatype or any(part in ("", "continuous") for part, _ in block.mixed):
            raise self.error(
                offset,
                f"DATATYPE is {quote(datatype)}; known are {', '.join(DATATYPES)}, and such as mixed(DNA:1-50,Standard:51-60).",
            )
        for name in ("transpose", "items", "statesformat"):
            value = options.get(name, "no").lower().strip("()")
            if value not in ("no", "average", "statespresent"):
                raise self.error(
                    offset, f"FORMAT has {name.upper()}, which is not supported: write a row for each taxon."
                )
        symbols = options.get("symbols")
        if symbols is not None:
            block.symbols = re.sub(r"(\S)\s*~\s*(\S)", _expand_range, symbols)
        for name in ("missing", "gap"):
            setattr(block, name, options.get(name, getattr(block, name)))
        block.match = options.get("matchchar")
        block.equate = options.get("equate", "")
        block.interleaved = options.get("interleave", "no").lower() == "yes"
        block.labelled = "nolabels" not in options and options.get("labels", "yes").lower() != "no"
        block.respect_case = "respectcase" in options
        block.tokens = "notokens" not in options and options.get("tokens", "no").lower() == "yes"
        block.tokens |= is_microsat

    def read_character_names(self, offset: int, end: int) -> None:
        """Read the names in CHARSTATELABELS, such as ``1 colour / red green, 2 size``; those of states are not used."""
        begins, position = True, 0
        for token, comma in self.names(offset, end):
            if comma:
                begins, position = True, 0
            elif begins:
                if not token.isascii() or not token.isdigit() or not 0 < int(token[:12]) <= MAX_COLUMNS:
                    raise self.error(
                        offset, f"CHARSTATELABELS has {quote(token)} where the number of a character belongs."
                    )
                begins, position = False, int(token)
            elif position:
                name = token.partition("/")[0].strip()
                if name:
                    self.block.names[position - 1] = name
                position = 0

    # -- the matrix ----------------------------------------------------------------------------

    def read_matrix(self, offset: int, end: int) -> None:
        """Read the matrix of a block."""
        block = self.block
        first = self.text.count("\n", 0, offset) + 1
        lines = [(first + k, line) for k, line in enumerate(self.without_comments(offset, end).split("\n"))]
        lines = [(number, line) for number, line in lines if line.strip()]
        block.line = lines[0][0] if lines else first
        if not lines:
            raise self.error(offset, "The matrix is empty.")
        rows = self.read_labelled(lines) if block.labelled else self.read_unlabelled(lines)
        self.match_taxa(rows)
        check_distinct_taxa(rows, self.source)
        n_characters = block.n_characters or len(rows[0].symbols)
        for row in rows:
            if len(row.symbols) != n_characters:
                if row.taxon.lower() in ("end", "endblock") and row is rows[-1]:
                    raise self.row_error(
                        row.line, row, "is the end of the block: the matrix needs a semicolon before it"
                    )
                reason = (
                    f"NCHAR says {n_characters:,}" if block.n_characters else f"the first taxon has {n_characters:,}"
                )
                raise self.row_error(
                    row.last_line,
                    row,
                    f"(from line {row.line}) has {count(len(row.symbols), 'character')}, but {reason}",
                )
        expected = block.n_taxa or len(self.taxa)
        if expected and len(rows) != expected and (block.n_taxa or len(rows) > expected):
            raise self.row_error(
                rows[-1].last_line,
                rows[-1],
                f"is number {len(rows)} and the last of the matrix, but NTAX says {expected:,}",
            )
        block.columns = self.make_columns(rows, n_characters, offset)
        self.add_block(rows)

    def match_taxa(self, rows: list[Row]) -> None:
        """Give the taxa of a matrix their names in TAXLABELS.

        A matrix may have their numbers instead, or names that differ in case and in quotes around underscores.
        """
        if not self.taxa:
            return
        known, spellings = set(self.taxa), dict[str, str]()
        for taxon in self.taxa:
            key = taxon.replace("_", " ").lower()
            spellings[key] = "" if key in spellings else taxon  # two taxa may differ by no more than that
        for row in rows:
            if row.taxon not in known:
                spelling = spellings.get(row.taxon.replace("_", " ").lower())
                if row.taxon.isascii() and row.taxon.isdigit() and 0 < int(row.taxon[:12]) <= len(self.taxa):
                    spelling = self.taxa[int(row.taxon) - 1]
                if not spelling:
                    raise self.row_error(row.line, row, "is not among TAXLABELS; names must agree")
                row.taxon = spelling

    def row_error(self, line: int, row: Row, words: str) -> InputError:
        return InputError(f"{self.source}, line {line}: {row.label} {words}.")

    def symbols(self, text: str) -> list[str]:
        """Return the symbols of a part of a row."""
        if self.block.has_words:
            return _WORD.findall(text)
        return _SYMBOL.findall(text) if "{" in text or "(" in text else list("".join(text.split()))

    def parse_named_row(self, number: int, line: str) -> Row:
        """Return the row that begins with this line, which has a name."""
        match = _TAXON.match(line)
        if match is None:
            raise InputError(
                f"{self.source}, line {number}: {quote(line.strip())} does not begin with the name of a taxon."
            )
        row = Row(self.name(match.lastgroup or "", match.group(match.lastgroup or 0)), number)
        symbols = self.symbols(line[match.end() :])
        if symbols:
            row.add(symbols, number)
        return row

    def read_labelled(self, lines: list[tuple[int, str]]) -> list[Row]:
        """Read rows as FORMAT says, or interleaved if it does not say so, and the other way round, if only that fits."""
        readers = [self.read_sequential, self.read_interleaved]
        declared, other = reversed(readers) if self.block.interleaved else readers
        try:
            rows, error = declared(lines), None
        except InputError as problem:
            rows, error = [], problem
        if error is None and self.fits(rows):
            return rows
        with contextlib.suppress(InputError):
            if self.fits(others := other(lines)):
                return others
        if error is not None:
            raise error
        return rows

    def fits(self, rows: list[Row]) -> bool:
        """Return whether rows are as many and as long as the block says."""
        n_characters, n_taxa = self.block.n_characters or len(rows[0].symbols), self.block.n_taxa or len(self.taxa)
        return len(rows) == (n_taxa or len(rows)) and all(len(row.symbols) == n_characters for row in rows)

    def read_sequential(self, lines: list[tuple[int, str]]) -> list[Row]:
        """Read the taxa one by one: on one line each, or on several lines until a row is complete."""
        rows = [self.parse_named_row(number, line) for number, line in lines]
        n_characters, n_taxa = self.block.n_characters, self.block.n_taxa or len(self.taxa)
        if n_characters is None or all(len(row.symbols) == n_characters for row in rows):
            return rows
        wrapped: list[Row] = []
        for number, line in lines:
            if wrapped and len(wrapped[-1].symbols) < n_characters:
                wrapped[-1].add(self.symbols(line), number)
            else:
                wrapped.append(self.parse_named_row(number, line))
        if all(len(row.symbols) == n_characters for row in wrapped):
            return wrapped
        side_by_side = self.read_side_by_side(lines, n_characters)
        if side_by_side and len(side_by_side) == (n_taxa or len(side_by_side)):
            return side_by_side
        return wrapped if len(lines) != n_taxa else rows

    def read_side_by_side(self, lines: list[tuple[int, str]], n_characters: int) -> list[Row]:
        """Read lines that have one or more complete rows each; return nothing if one has a part of a row."""
        pattern = _WORD if self.block.has_words else _SYMBOL
        rows: list[Row] = []
        for number, line in lines:
            position, end = 0, len(line.rstrip())
            while position < end:
                match = _TAXON.match(line, position)
                if match is None:
                    return []
                symbols = list(islice(pattern.finditer(line, match.end()), n_characters))
                position = symbols[-1].end() if symbols else end
                if len(symbols) < n_characters or not (position == end or line[position].isspace()):
                    return []
                rows.append(Row(self.name(match.lastgroup or "", match.group(match.lastgroup or 0)), number))
                rows[-1].add([symbol.group() for symbol in symbols], number)
        return rows

    def read_interleaved(self, lines: list[tuple[int, str]]) -> list[Row]:
        """Read blocks of lines, each with the name of a taxon and a part of its row."""
        rows: dict[str, Row] = {}
        n_taxa, order = self.block.n_taxa or len(self.taxa), list[str]()
        for k, (number, line) in enumerate(lines):
            row = self.parse_named_row(number, line)
            earlier_row = rows.get(row.taxon)
            if earlier_row is None:
                if n_taxa and len(rows) == n_taxa:
                    raise self.row_error(
                        number, row, f"is not among the {n_taxa:,} taxa of the first block of the matrix"
                    )
                rows[row.taxon] = row
                order.append(row.taxon)
            else:
                expected = order[k % len(order)]
                if row.taxon != expected:
                    raise self.row_error(
                        number, row, f"stands where {quote(expected)} belongs in this block of the matrix"
                    )
                earlier_row.add(row.symbols, number)
        return list(rows.values())

    def read_unlabelled(self, lines: list[tuple[int, str]]) -> list[Row]:
        """Read rows without names, which are those of the taxa in their order."""
        if not self.taxa:
            raise InputError(
                f"{self.source}, line {lines[0][0]}: FORMAT has NOLABELS, but no taxa are named; add TAXLABELS."
            )
        rows = [Row(taxon, lines[0][0]) for taxon in self.taxa]
        if self.block.interleaved:
            for k, (number, line) in enumerate(lines):
                rows[k % len(rows)].add(self.symbols(line), number)
            return rows
        row_number = 0
        for number, line in lines:
            if row_number < len(rows) - 1 and len(rows[row_number].symbols) >= (self.block.n_characters or 1):
                row_number += 1
                rows[row_number].line = number
            rows[row_number].add(self.symbols(line), number)
        return rows

    # -- columns -------------------------------------------------------------------------------

    def alphabet(self, datatype: str, offset: int) -> Alphabet:
        """Return the alphabet of a datatype with the symbols of the block."""
        block = self.block
        for option, symbol in (("MISSING", block.missing), ("GAP", block.gap)):
            if not symbol:
                raise self.error(offset, f"{option} has no symbol.")
        symbols = block.symbols if datatype == block.datatype or datatype == "standard" else None
        alphabet = make_alphabet(
            datatype,
            self.gaps,
            symbols=symbols,
            missing=block.missing,
            gap=block.gap,
            respect_case=block.respect_case,
        )
        for match in re.finditer(r"(\S)\s*=\s*([{(][^{}()]*[})]|\S)", block.equate):
            try:
                alphabet.cells[match.group(1)] = alphabet.decode(match.group(2))
            except SymbolError as error:
                raise self.error(offset, f"EQUATE of the symbol {quote(match.group(1))}: {error}.") from None
        return alphabet

    def make_columns(self, rows: list[Row], n_characters: int, offset: int) -> list[CharacterColumn]:
        """Return the columns of the rows of a matrix."""
        block = self.block
        if n_characters > MAX_COLUMNS:
            raise self.error(
                offset, f"The matrix has {n_characters:,} characters, and at most {MAX_COLUMNS:,} are read."
            )
        if block.match is not None:
            first = rows[0].symbols
            for row in rows[1:]:
                row.symbols = [first[j] if symbol == block.match else symbol for j, symbol in enumerate(row.symbols)]
        alphabet_of: Callable[[int], Alphabet]
        if block.tokens and block.datatype != "continuous":
            alphabets = [self.word_alphabet({row.symbols[j] for row in rows}) for j in range(n_characters)]
            alphabet_of = alphabets.__getitem__
        elif block.mixed:
            alphabets = self.mixed_alphabets(n_characters, offset)
            alphabet_of = alphabets.__getitem__
        else:
            alphabet = self.alphabet(block.datatype, offset)
            alphabet_of = lambda _: alphabet  # noqa: E731
        names = default_names([alphabet_of(j).datatype for j in range(n_characters)])
        for j, name in block.names.items():
            if j < len(names):
                names[j] = name
        if block.eliminated is not None:
            block.dropped = self.positions(*block.eliminated, n_characters, "ELIMINATE")
        return decode_rows(rows, alphabet_of, names, self.source)

    def word_alphabet(self, words: set[str]) -> Alphabet:
        """Return the alphabet of a character whose states are words."""
        states = sorted(words - {self.block.missing, self.block.gap})
        cells = {state: state for state in states if state[0] not in "{("}
        sets = {state: frozenset(state[1:-1].replace(",", " ").split()) for state in states if state[0] in "{("}
        alphabet = Alphabet(
            "standard", (*cells, *sorted({symbol for members in sets.values() for symbol in members} - {*cells})), {}
        )
        alphabet.cells.update(cells)
        alphabet.cells.update({word: alphabet.join(members) for word, members in sets.items() if members})
        alphabet.cells.update({self.block.missing: None, self.block.gap: "-" if self.gaps == "state" else None})
        return alphabet

    def mixed_alphabets(self, n_characters: int, offset: int) -> list[Alphabet]:
        """Return the alphabet of each position of a matrix of several datatypes."""
        alphabets: list[Alphabet | None] = [None] * n_characters
        for datatype, spec in self.block.mixed:
            alphabet = self.alphabet(datatype, offset)
            for j in self.parse_positions(spec, n_characters, f"DATATYPE {datatype}", offset):
                alphabets[j] = alphabet
        absent = [j for j, alphabet in enumerate(alphabets) if alphabet is None]
        if absent:
            raise self.error(offset, f"Character {absent[0] + 1} has no datatype among those of DATATYPE=mixed.")
        return [alphabet for alphabet in alphabets if alphabet is not None]

    def add_block(self, rows: list[Row]) -> None:
        """Add the columns of a block to those of earlier ones, matched by taxon."""
        for row in rows:
            self.rows.setdefault(row.taxon, len(self.rows))
        order = [row.taxon for row in rows]
        for column in self.block.columns:
            by_taxon = dict(zip(order, column.cells, strict=True))
            column.cells[:] = [by_taxon.get(taxon) for taxon in self.rows]
        for block in self.blocks:
            for column in block.columns:
                column.cells.extend([None] * (len(self.rows) - len(column.cells)))
        self.blocks.append(self.block)

    def join(self) -> Characters:
        """Return the columns of all blocks, and the partitions."""
        columns = [column for block in self.blocks for column in block.columns]
        is_used = [j not in block.dropped for block in self.blocks for j in range(len(block.columns))]
        if not any(is_used):
            raise InputError(f"{self.source} has no characters: ELIMINATE leaves none.")
        names = _make_distinct([column.name for column in columns])
        ranges, first = list[BlockRange](), 0
        for block in self.blocks:
            ranges.append(BlockRange(block.title, first, len(block.columns)))
            first += len(block.columns)
        found = self.sets.resolve(ranges, names)
        self.warn_about_sets()
        partitions = {name: tuple(names[j] for j in found[name] if is_used[j]) for name in found}
        named_columns = [replace(column, name=name) for column, name in zip(columns, names, strict=True)]
        return Characters(tuple(self.rows), list(compress(named_columns, is_used)), partitions)

    def warn_about_sets(self) -> None:
        """Say which sets of characters were left out: an alignment can be read without them."""
        if failures := sorted(self.sets.failures):
            (offset, words), n_others = failures[0], len(failures) - 1
            others = f", and so {'was' if n_others == 1 else 'were'} {count(n_others, 'other set')}" * bool(n_others)
            warnings.warn(
                f"{self.source}, {self.line(offset)}: {words}; it was left out{others}.", InputWarning, stacklevel=2
            )

    def positions(self, offset: int, end: int, n_characters: int, subject: str) -> set[int]:
        """Return the characters of a statement, counted from 0."""
        return self.parse_positions(self.without_comments(offset, end), n_characters, subject, offset)

    def parse_positions(self, text: str, n_characters: int, subject: str, offset: int) -> set[int]:
        """Return the characters of a text, counted from 0; charsets are not known yet."""
        try:
            return parse_set(text, n_characters, lambda _: None)
        except SetError as error:
            raise self.error(offset, f"{subject} {error}.") from None


def _make_distinct(names: list[str]) -> list[str]:
    """Make names distinct: the second and later of equal names get a number."""
    used, distinct = set(names), list[str]()
    assigned: set[str] = set()
    for name in names:
        candidate, number = name, 2
        while candidate in assigned or (candidate != name and candidate in used):
            candidate, number = f"{name}_{number}", number + 1
        assigned.add(candidate)
        distinct.append(candidate)
    return distinct


def _describe_line(text: str, message: str) -> str:
    """Return the taxon at the beginning of the line that a message names, if the line is in a matrix; otherwise nothing."""
    match = re.search(r"line (\d+)", message)
    lines = text.split("\n")
    if match is None or not re.search(r"^\s*matrix\b", "\n".join(lines[: int(match.group(1)) - 1]), re.I | re.M):
        return ""
    taxon = _TAXON.match(lines[int(match.group(1)) - 1])
    return f" That line begins with {quote(taxon.group().strip())}." if taxon else ""


def _expand_range(match: re.Match[str]) -> str:
    """Return all symbols of a range such as ``0~5``."""
    first, last = map(ord, match.groups())
    return "".join(map(chr, range(first, min(last, first + 100) + 1)))
