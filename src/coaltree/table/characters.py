"""`read_characters`: character files as frames. NEXUS, FASTA, PHYLIP and folders with a CLDF data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, get_args

from .._validation import quote
from ..errors import InputError, MissingDependencyError
from .alignments import parse_fasta, parse_phylip
from .cldf import parse_cldf
from .limits import check_table_size
from .nexus_characters import parse_nexus
from .read_file import FileTable, TableFile, check_known, import_polars, open_table, read_bytes
from .symbols import DATATYPES, CharacterColumn, Characters, Gaps, find_datatype

_LIBRARIES = ("pandas", "polars")
TAXON_COLUMN = "taxon"
"""The column of a polars frame with the names of the taxa."""


def read_characters(
    path: str | Path,
    *,
    gaps: Gaps = "missing",
    datatype: str | None = None,
    library: str = "pandas",
    preserve_underscores: bool = False,
) -> Any:
    """Read the characters of some taxa from a file: an alignment, a matrix of characters, or languages.

    A cell that is known in part, such as R of DNA or ``{01}``, is a frozenset of states, as in ``frozenset({"A", "G"})``. All
    parts of coaltree take such cells; so you may write them into a frame yourself.

    Parameters
    ----------
    path : str or Path
        A NEXUS file (.nex, .nexus, .nxs), FASTA (.fasta, .fa, .fas, .fna, .faa) or PHYLIP (.phy, .phylip), each also with .gz,
        or the folder of a CLDF data set.
    gaps : {"missing", "state"}, default "missing"
        Whether a gap is a missing cell, or a state of its own named "-".
    datatype : {"dna", "rna", "protein", "standard", "restriction"}, optional
        The datatype of a FASTA or PHYLIP file, which by default is guessed from its symbols. NEXUS files say it themselves.
    library : {"pandas", "polars"}, default "pandas"
        The library of the frame.
    preserve_underscores : bool, default False
        Keep underscores of unquoted names in NEXUS files instead of reading them as blanks.

    Returns
    -------
    frame
        A row for each taxon and a column for each character. With pandas, taxa are the index, and ``frame.attrs`` has
        ``"partitions"``, the columns of each charset, part of a partition, or concept, and ``"datatypes"`` of the columns. With
        polars, taxa are the first column.

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
    file = open_table(path)
    if not file.is_characters:
        raise InputError(f"{file.name} is a table and no character file: read it with pandas or polars.")
    characters = parse_file(file, gaps=gaps, datatype=datatype, preserve_underscores=preserve_underscores)
    return _to_pandas(characters) if library == "pandas" else _to_polars(characters, TAXON_COLUMN)


def parse_file(
    file: TableFile, *, gaps: Gaps = "missing", datatype: str | None = None, preserve_underscores: bool = False
) -> Characters:
    """Parse a character file; see `read_characters`."""
    if gaps not in get_args(Gaps):
        raise InputError(f"gaps is {gaps!r}; it must be 'missing' or 'state'.")
    if datatype is not None:
        known = find_datatype(datatype) if isinstance(datatype, str) else None
        if known in (None, "continuous"):
            raise InputError(f"datatype is {datatype!r}; it must be one of {', '.join(DATATYPES[:-1])}.")
        if file.kind in ("nexus", "cldf"):
            raise InputError(f"datatype is given, but {file.name} says itself which datatypes it has.")
        datatype = known
    if file.kind == "cldf":
        folder = file.path
        assert folder is not None, "standard input is no folder"
        names = sorted(path.name for path in folder.iterdir() if path.is_file())
        found = parse_cldf(lambda name: read_bytes(folder / name), names, file.name)
    else:
        text = _decode(file.read(), file.name)
        if file.kind == "nexus":
            found = parse_nexus(text, file.name, gaps, preserve_underscores)
        else:
            found = (parse_fasta if file.kind == "fasta" else parse_phylip)(text, file.name, gaps, datatype)
    check_table_size(len(found.taxa), len(found.columns))
    return found


def read_character_table(
    file: TableFile, drop: Sequence[str] = (), gaps: Gaps | None = None, **options: Any
) -> FileTable:
    """Read a character file for the command line, as `read_file` reads a table.

    Parameters
    ----------
    file : TableFile
    drop : sequence of str
        Columns or partitions to leave out.
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
    dropped = {own for name in drop for own in characters.partitions.get(name, (name,))}
    check_known([column.name for column in characters.columns], sorted(dropped), "--drop", file.name)
    columns = [column for column in characters.columns if column.name not in dropped]
    if not columns:
        raise InputError(f"No columns of {file.name} are left to cluster by: all are dropped.")
    return FileTable(_to_polars(replace(characters, columns=columns)), characters.taxa, None, ())


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
            columns[column.name] = pd.Series(pd.Categorical(column.cells, categories=_states_of(column)), index=index)
    frame = pd.DataFrame(columns, index=index)
    frame.attrs["partitions"] = _Facts({name: list(own) for name, own in characters.partitions.items()})
    frame.attrs["datatypes"] = _Facts({column.name: column.datatype for column in characters.columns})
    return frame


class _Facts(dict[str, Any]):
    """A dictionary that all copies of a frame share.

    pandas copies the attributes of a frame, in depth, for nearly everything that is done with it or with one of its columns.
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
            own = polars.Series(column.cells, dtype=polars.Float64)
        elif column.has_sets:
            own = polars.Series(column.cells, dtype=polars.Object)
        else:
            own = polars.Series(column.cells, dtype=polars.Enum(_states_of(column)))
        columns[column.name] = own
    return polars.DataFrame(columns)


def _states_of(column: CharacterColumn) -> list[str]:
    """Return the states of a column, those of the datatype first."""
    others = {str(cell) for cell in column.cells if cell is not None} - set(column.states)
    return [*column.states, *sorted(others)]
