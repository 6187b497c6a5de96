"""`read_characters`: character files as frames. This module parses FASTA and PHYLIP; NEXUS and CLDF have their own modules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, get_args

from .._parameters import Gaps
from .._validation import quote
from ..errors import InputError, MissingDependencyError
from .cldf import parse_cldf
from .inputs import TAXON_COLUMN
from .labels import count
from .limits import check_table_size
from .nexus_characters import parse_nexus
from .read_file import FileTable, TableFile, import_polars, match_columns, open_table, read_bytes
from .symbols import (
    DATATYPES,
    CharacterColumn,
    Characters,
    Row,
    check_distinct_taxa,
    decode_rows,
    default_names,
    find_datatype,
    guess_datatype,
    make_alphabet,
)

NAME_LENGTH = 10  # length of the names of taxa in strict PHYLIP files

_LIBRARIES = ("pandas", "polars")


def parse_fasta(text: str, source: str, gaps: Gaps = "missing", datatype: str | None = None) -> Characters:
    r"""Parse aligned sequences in FASTA format.

    Parameters
    ----------
    text : str
    source : str
        The name of the file, for messages.
    gaps : {"missing", "state"}, default="missing"
    datatype : str, optional
        One of `DATATYPES` except "continuous"; by default guessed from the symbols.

    Returns
    -------
    Characters
        A taxon is named by the first word of its header, or by the whole header if first words repeat.

    Raises
    ------
    InputError
        If the text is not an alignment. The message names line and taxon.

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
                    f"{source}, line {number}: the file begins with {quote(line)}, but every sequence of a FASTA file needs a "
                    "header such as >taxon before it."
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

    The parameters and errors are those of `parse_fasta`.

    Examples
    --------
    >>> parse_phylip("2 4\na AC\nb AG\n\nGT\nGA\n", "x.phy").columns[1].cells
    ['C', 'G']
    """
    lines = [(number, line.strip("\r")) for number, line in enumerate(text.lstrip("\ufeff").split("\n"), 1)]
    lines = [(number, line) for number, line in lines if line.strip()]
    header = lines[0][1].split() if lines else []
    if len(header) < 2 or not all(word.isascii() and word.isdigit() for word in header[:2]):
        content = f"begins with {quote(lines[0][1])}" if lines else "is empty"
        raise InputError(
            f"{source}, line {lines[0][0] if lines else 1}: the file {content}, but a PHYLIP file begins with the numbers of "
            "taxa and of characters, such as 12 898."
        )
    n_taxa, n_characters = (min(int(word), 10**9) for word in header[:2])
    if not n_taxa or not n_characters:
        raise InputError(f"{source}, line {lines[0][0]}: the header says {n_taxa} taxa and {n_characters} characters.")
    readings = [
        read(lines[1:], n_taxa, n_characters, strict)
        for strict in (False, True)
        for read in (_read_sequential, _read_interleaved)
    ]
    readings.append(_read_side_by_side(lines[1:], n_characters))
    problems = [_find_problem(rows, n_taxa, n_characters) for rows in readings]
    for rows, problem in zip(readings, problems, strict=True):
        if problem is None:
            check_distinct_taxa(rows, source)
            return _to_characters(rows, source, gaps, datatype)
    # With one line per taxon, both relaxed readings are the same; with more lines, most files are interleaved.
    line, words = problems[1] if len(lines) - 1 > n_taxa else problems[0]  # type: ignore[misc]
    raise InputError(
        f"{source}, line {line or lines[-1][0]}: {words}. A name ends at its first blank, or, in strict files, after "
        f"{NAME_LENGTH} characters: write names with underscores instead of blanks."
    )


def _read_sequential(lines: list[tuple[int, str]], n_taxa: int, n_characters: int, strict: bool) -> list[Row]:
    """Read the sequences one after the other."""
    rows: list[Row] = []
    for number, line in lines:
        if rows and len(rows[-1].symbols) < n_characters:
            rows[-1].add(list("".join(line.split())), number)
        else:
            rows.append(_read_named(line, number, strict))
    return rows


def _read_side_by_side(lines: list[tuple[int, str]], n_characters: int) -> list[Row]:
    """Read lines that have one or more complete rows each."""
    rows: list[Row] = []
    for number, line in lines:
        row = None
        for word in line.split():
            if row is None or len(row.symbols) >= n_characters:
                row = Row(word, number)
                rows.append(row)
            else:
                row.add(list(word), number)
    return rows


def _read_interleaved(lines: list[tuple[int, str]], n_taxa: int, n_characters: int, strict: bool) -> list[Row]:
    """Read blocks with a line for each taxon. Only the lines of the first block have names, or all lines have them."""
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
    is_guess = datatype is None
    datatype = datatype or guess_datatype(row.symbols for row in rows)
    _match_first_row(rows)
    alphabet = make_alphabet(datatype, gaps, symbols=_find_states(rows) if datatype == "standard" else None)
    if datatype in ("dna", "rna", "protein"):
        alphabet.cells["~"] = alphabet.cells["-"]  # the gap at the ends of sequences, of GCG and BioEdit
    names = default_names([datatype] * len(rows[0].symbols))
    try:
        columns = decode_rows(rows, lambda _: alphabet, names, source)
    except InputError as error:
        if not is_guess:
            raise
        raise InputError(
            f"{error} Most symbols are of this datatype; if it is another one, read_characters has datatype= for it."
        ) from None
    return Characters(tuple(row.taxon for row in rows), columns)


def _find_states(rows: list[Row]) -> str | None:
    """Return the states of standard data that have more than ten: IQ-TREE and RAxML write those after 9 as A to V."""
    found = {symbol.upper() for row in rows for symbol in row.symbols}
    letters = "ABCDEFGHIJKLMNOPQRSTUV"
    if "9" not in found or found.isdisjoint(letters):
        return None
    return "0123456789" + letters[: 1 + max(letters.find(symbol) for symbol in found)]


def _match_first_row(rows: list[Row]) -> None:
    """Replace points by the symbols of the first row, as PHYLIP and many programs do."""
    first = rows[0].symbols
    for row in rows[1:]:
        if "." in row.symbols:
            row.symbols = [first[j] if symbol == "." else symbol for j, symbol in enumerate(row.symbols)]


def read_characters(
    path: str | Path,
    *,
    format: str | None = None,
    gaps: Gaps = "missing",
    datatype: str | None = None,
    library: str = "pandas",
    preserve_underscores: bool = True,
) -> Any:
    """Read the characters of taxa from a file: an alignment, a matrix of characters, or languages.

    A cell that is partly known, such as R in DNA or ``{01}``, is a frozenset of states, as in ``frozenset({"A", "G"})``. All
    parts of coaltree take such cells; so you may write them into a frame yourself.

    Parameters
    ----------
    path : str or Path
        A NEXUS file (.nex, .nexus, .nxs), FASTA (.fasta, .fa, .fas, .fna, .faa) or PHYLIP (.phy, .phylip), each also with .gz,
        or the folder of a CLDF data set. Files of these formats with other endings are recognised by how they begin.
    format : {"nexus", "fasta", "phylip", "cldf"}, optional
        The format, if it is not recognised.
    gaps : {"missing", "state"}, default "missing"
        Whether a gap is a missing cell, or a state of its own named "-".
    datatype : {"dna", "rna", "protein", "standard", "restriction"}, optional
        The datatype of a FASTA or PHYLIP file, which by default is guessed from its symbols. NEXUS files say it themselves.
    library : {"pandas", "polars"}, default "pandas"
        The library of the frame.
    preserve_underscores : bool, default True
        Keep underscores of unquoted names in NEXUS files, as ape, Biopython, MrBayes and IQ-TREE do; the standard reads them as
        blanks.

    Returns
    -------
    frame
        A row for each taxon and a column for each character. With pandas, taxa are the index, and ``frame.attrs`` has
        ``"partitions"``, the columns of each charset, part of a partition, or concept, and ``"datatypes"`` of the columns. With
        polars, taxa are the first column, and the types of the others tell their datatypes.

    Raises
    ------
    InputError
        If the file is broken, with line and taxon.
    MissingDependencyError
        If the library of the frame is not installed.

    Examples
    --------
    >>> import coaltree as ct
    >>> frame = ct.read_characters("examples/primates.nex")  # doctest: +SKIP
    >>> model = ct.CoalescentClustering().fit(frame)  # doctest: +SKIP
    """
    if library not in _LIBRARIES:
        raise InputError(f"library is {library!r}; it must be one of {', '.join(_LIBRARIES)}.")
    formats = ("nexus", "fasta", "phylip", "cldf")
    if format is not None and format not in formats:
        raise InputError(f"format is {format!r}; it must be one of {', '.join(formats)}.")
    file = open_table(path, format)
    if not file.is_characters:
        raise InputError(
            f"{file.name} is a table, not a character file: read it with pandas or polars. If it is one under another name, say "
            'which, as in format="phylip".'
        )
    characters = parse_file(file, gaps=gaps, datatype=datatype, preserve_underscores=preserve_underscores)
    return _to_pandas(characters) if library == "pandas" else _to_polars(characters, TAXON_COLUMN)


def parse_file(
    file: TableFile, *, gaps: Gaps = "missing", datatype: str | None = None, preserve_underscores: bool = True
) -> Characters:
    """Parse a character file; see `read_characters`."""
    if gaps not in get_args(Gaps):
        raise InputError(f"gaps is {gaps!r}; it must be 'missing' or 'state'.")
    if datatype is not None:
        valid_datatype = find_datatype(datatype) if isinstance(datatype, str) else None
        if valid_datatype in (None, "continuous"):
            raise InputError(f"datatype is {datatype!r}; it must be one of {', '.join(DATATYPES[:-1])}.")
        if file.kind in ("nexus", "cldf"):
            raise InputError(f"datatype is given, but {file.name} declares its own datatypes.")
        datatype = valid_datatype
    if file.kind == "cldf":
        folder = file.path
        assert folder is not None, "standard input is not a folder"
        names = sorted(path.name for path in folder.iterdir() if path.is_file())
        characters = parse_cldf(lambda name: read_bytes(folder / name), names, file.name)
    else:
        text = _decode(file.read(), file.name)
        if file.kind == "nexus":
            characters = parse_nexus(text, file.name, gaps, preserve_underscores)
        else:
            characters = (parse_fasta if file.kind == "fasta" else parse_phylip)(text, file.name, gaps, datatype)
    check_table_size(len(characters.taxa), len(characters.columns))
    return characters


def read_character_table(
    file: TableFile, drop: Sequence[str] = (), gaps: Gaps | None = None, **options: Any
) -> FileTable:
    """Read a character file for the command line, as `read_file` reads a table.

    Parameters
    ----------
    file : TableFile
    drop : sequence of str
        Columns or partitions to leave out, by names or patterns.
    gaps : {"missing", "state"}, optional
        Whether a gap is a missing cell, as by default, or a state.
    options
        Further options of `read_file`, which are for tables only.

    Returns
    -------
    FileTable
    """
    for name, option in (("id_column", "--id-column"), ("categorical", "--categorical"), ("real", "--real")):
        if options.get(name):
            raise InputError(f"{option} is for tables: the columns of {file.name} are what the file says.")
    characters = parse_file(file, gaps=gaps or "missing")
    names = [column.name for column in characters.columns]
    dropped_columns = set(match_columns(names, drop, "--drop", file.name, characters.partitions))
    columns = [column for column in characters.columns if column.name not in dropped_columns]
    if not columns:
        raise InputError(f"No columns of {file.name} are left to cluster by: all are dropped.")
    datatypes = {column.name: column.datatype for column in characters.columns}
    frame = _to_polars(replace(characters, columns=columns))
    return FileTable(frame, characters.taxa, None, (), datatypes=datatypes)


def _decode(data: bytes, source: str) -> str:
    """Return the text of a file, with the line ends of Unix."""
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        text = data.decode("latin-1")
        place = error.start
        if encoding == "utf-16" or b"\x00" in data:
            raise InputError(
                f"{source}, line {data.count(10, 0, place) + 1}: the file is no text; save it as text in UTF-8."
            ) from None
    if "\x00" in text:
        raise InputError(f"{source}, line {text.count(chr(10), 0, text.index(chr(0))) + 1}: the file is no text.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _to_pandas(characters: Characters) -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingDependencyError(
            'Frames need pandas, which is not installed: pip install pandas, or use library="polars".'
        ) from error
    index = pd.Index(characters.taxa, name=TAXON_COLUMN)
    columns: dict[str, Any] = {}
    for column in characters.columns:
        if column.datatype == "continuous":
            values = [float("nan") if cell is None else cell for cell in column.cells]
            columns[column.name] = pd.Series(values, index=index, dtype="float64")
        elif column.has_sets:
            columns[column.name] = pd.Series(column.cells, index=index, dtype=object)
        else:
            columns[column.name] = pd.Series(
                pd.Categorical(column.cells, categories=_column_states(column)), index=index
            )
    frame = pd.DataFrame(columns, index=index)
    frame.attrs["partitions"] = _Facts({name: list(columns) for name, columns in characters.partitions.items()})
    frame.attrs["datatypes"] = _Facts({column.name: column.datatype for column in characters.columns})
    return frame


class _Facts(dict[str, Any]):
    """A dictionary that is shared by all copies of a frame.

    pandas makes deep copies of the attributes of a frame in nearly every operation on it or on one of its columns.
    """

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def _to_polars(characters: Characters, taxa: str | None = None) -> Any:
    polars = import_polars()
    columns = {} if taxa is None else {taxa: polars.Series(list(characters.taxa), dtype=polars.String)}
    for column in characters.columns:
        if column.name in columns:
            raise InputError(f"A character is named {quote(column.name)}, as is the column of the taxa: rename it.")
        if column.datatype == "continuous":
            series = polars.Series(column.cells, dtype=polars.Float64)
        elif column.has_sets:
            series = polars.Series(column.cells, dtype=polars.Object)
        elif column.datatype not in DATATYPES:  # a feature of a language
            series = polars.Series(column.cells, dtype=polars.Categorical)
        else:
            states = _column_states(column)
            # Three states at least tell standard characters from those of absence and presence.
            extra = "012"[len(states) :] if column.datatype == "standard" and states == [*"012"][: len(states)] else ""
            series = polars.Series(column.cells, dtype=polars.Enum([*states, *extra]))
        columns[column.name] = series
    return polars.DataFrame(columns)


def _column_states(column: CharacterColumn) -> list[str]:
    """Return the states of a column, starting with those of the datatype."""
    others = {str(cell) for cell in column.cells if cell is not None} - set(column.states)
    return [*column.states, *sorted(others)]
