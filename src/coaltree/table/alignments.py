"""Alignments in FASTA and PHYLIP files."""

from __future__ import annotations

from .._validation import quote
from ..errors import InputError
from .messages import count
from .symbols import (
    Characters,
    Gaps,
    Row,
    check_distinct_taxa,
    decode_rows,
    default_names,
    guess_datatype,
    make_alphabet,
)

NAME_LENGTH = 10  # of taxa in strict PHYLIP files


def parse_fasta(text: str, source: str, gaps: Gaps = "missing", datatype: str | None = None) -> Characters:
    r"""Parse aligned sequences in FASTA format.

    Parameters
    ----------
    text : str
    source : str
        The name of the file, for messages.
    gaps : {"missing", "state"}, default="missing"
    datatype : str, optional
        One of `DATATYPES` but "continuous"; by default guessed from the symbols.

    Returns
    -------
    Characters
        A taxon is named by the first word of its header, or by the whole header if first words repeat.

    Raises
    ------
    InputError
        If the text is no alignment, with line and taxon.

    Examples
    --------
    >>> parse_fasta(">a\nAC\nG-\n>b\nACGR\n", "x.fasta").columns[3].cells == [None, frozenset("AG")]
    True
    """
    rows: list[Row] = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip("\ufeff \t\r")
        if line.startswith(">"):
            rows.append(Row(line[1:].strip(), number))
        elif line and not line.startswith(";"):
            if not rows:
                raise InputError(
                    f"{source}, line {number}: the file begins with {quote(line)}, so it is no FASTA file, whose sequences have "
                    "a header such as >taxon."
                )
            rows[-1].add(list("".join(line.split())), number)
    if not rows:
        raise InputError(f"{source} has no sequences; a FASTA file needs a header such as >taxon and its sequence.")
    shortened = [row.taxon.split()[0] if row.taxon else "" for row in rows]
    if len(set(shortened)) == len(rows):
        for row, name in zip(rows, shortened, strict=True):
            row.taxon = name
    check_distinct_taxa(rows, source)
    for row in rows:
        if len(row.symbols) != len(rows[0].symbols) or not row.symbols:
            raise InputError(
                f"{source}, line {row.last_line}: {row.label} has {count(len(row.symbols), 'character')}, but "
                f"{quote(rows[0].taxon)} on line {rows[0].line} has {len(rows[0].symbols):,}; align the sequences, with - "
                "for gaps."
            )
    return _to_characters(rows, source, gaps, datatype)


def parse_phylip(text: str, source: str, gaps: Gaps = "missing", datatype: str | None = None) -> Characters:
    r"""Parse aligned sequences in PHYLIP format: strict or relaxed names, sequential or interleaved.

    Parameters
    ----------
    text : str
    source : str
        The name of the file, for messages.
    gaps : {"missing", "state"}, default="missing"
    datatype : str, optional
        One of `DATATYPES` but "continuous"; by default guessed from the symbols.

    Returns
    -------
    Characters

    Raises
    ------
    InputError
        If the text is no alignment, with line and taxon.

    Examples
    --------
    >>> parse_phylip("2 4\na AC\nb AG\n\nGT\nGA\n", "x.phy").columns[1].cells
    ['C', 'G']
    """
    lines = [(number, line.strip("\r")) for number, line in enumerate(text.lstrip("\ufeff").split("\n"), 1)]
    lines = [(number, line) for number, line in lines if line.strip()]
    header = lines[0][1].split() if lines else []
    if len(header) < 2 or not all(own.isascii() and own.isdigit() for own in header[:2]):
        found = f"begins with {quote(lines[0][1])}" if lines else "is empty"
        raise InputError(
            f"{source}, line {lines[0][0] if lines else 1}: the file {found}, but a PHYLIP file begins with the numbers of taxa "
            "and of characters, such as 12 898."
        )
    n_taxa, n_characters = (min(int(own), 10**9) for own in header[:2])
    if not n_taxa or not n_characters:
        raise InputError(f"{source}, line {lines[0][0]}: the header says {n_taxa} taxa and {n_characters} characters.")
    readings = [
        read(lines[1:], n_taxa, n_characters, strict)
        for strict in (False, True)
        for read in (_read_sequential, _read_interleaved)
    ]
    problems = [_find_problem(rows, n_taxa, n_characters) for rows in readings]
    for rows, problem in zip(readings, problems, strict=True):
        if problem is None:
            check_distinct_taxa(rows, source)
            return _to_characters(rows, source, gaps, datatype)
    # Of a file with one line a taxon, both relaxed readings say the same; otherwise most files are interleaved.
    line, words = problems[1] if len(lines) - 1 > n_taxa else problems[0]  # type: ignore[misc]
    raise InputError(f"{source}, line {line or lines[-1][0]}: {words}.")


def _read_sequential(lines: list[tuple[int, str]], n_taxa: int, n_characters: int, strict: bool) -> list[Row]:
    """Read the sequences one after the other."""
    rows: list[Row] = []
    for number, line in lines:
        if rows and len(rows[-1].symbols) < n_characters:
            rows[-1].add(list("".join(line.split())), number)
        else:
            rows.append(_read_named(line, number, strict))
    return rows


def _read_interleaved(lines: list[tuple[int, str]], n_taxa: int, n_characters: int, strict: bool) -> list[Row]:
    """Read blocks with a line for each taxon; only lines of the first have names, unless all have."""
    rows = [_read_named(line, number, strict) for number, line in lines[:n_taxa]]
    repeats = len(lines) > n_taxa and all(
        _read_named(line, number, strict).taxon == rows[k % n_taxa].taxon
        for k, (number, line) in enumerate(lines[: 2 * n_taxa])
    )
    for k, (number, line) in enumerate(lines[n_taxa:]):
        symbols = _read_named(line, number, strict).symbols if repeats else list("".join(line.split()))
        rows[k % n_taxa].add(symbols, number)
    return rows


def _read_named(line: str, number: int, strict: bool) -> Row:
    """Read a line that begins with a name."""
    if strict:
        name, rest = line[:NAME_LENGTH], line[NAME_LENGTH:]
    else:
        name, _, rest = line.strip().replace("\t", " ").partition(" ")
    row = Row(name.strip(), number)
    row.add(list("".join(rest.split())), number)
    return row


def _find_problem(rows: list[Row], n_taxa: int, n_characters: int) -> tuple[int, str] | None:
    """Return the line and the reason why a reading is wrong; None if it is right."""
    for row in rows[:n_taxa]:
        if len(row.symbols) != n_characters:
            return row.last_line, (
                f"{row.label}, which begins on line {row.line}, has {count(len(row.symbols), 'character')}, but the header says "
                f"{n_characters:,}"
            )
    if len(rows) == n_taxa:
        return None
    last = f"the last is {quote(rows[-1].taxon)} on line {rows[-1].line}" if rows else "there is none"
    return (
        rows[-1].last_line if rows else 0
    ), f"the file has {count(len(rows), 'taxon', 'taxa')} ({last}), but the header says {n_taxa:,}"


def _to_characters(rows: list[Row], source: str, gaps: Gaps, datatype: str | None) -> Characters:
    datatype = datatype or guess_datatype(row.symbols for row in rows)
    _match_first_row(rows)
    alphabet = make_alphabet(datatype, gaps)
    names = default_names([datatype] * len(rows[0].symbols))
    return Characters(tuple(row.taxon for row in rows), decode_rows(rows, lambda _: alphabet, names, source))


def _match_first_row(rows: list[Row]) -> None:
    """Replace points by the symbols of the first row, as PHYLIP and many programs have it."""
    first = rows[0].symbols
    for row in rows[1:]:
        if "." in row.symbols:
            row.symbols = [first[j] if own == "." else own for j, own in enumerate(row.symbols)]
