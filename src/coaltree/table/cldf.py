"""Data sets in the Cross-Linguistic Data Formats (CLDF): structural features, and wordlists with cognate sets.

Only what a table needs is read: the metadata say which files and columns hold languages, parameters, values, forms and cognate
sets.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._validation import quote
from ..errors import InputError
from .labels import listing
from .symbols import Cell, CharacterColumn, Characters

_TERMS = "http://cldf.clld.org/v1.0/terms.rdf#"
_MISSING = ("", "?", "-", "NA", "N/A")
# Names of files and columns of data sets without metadata.
_FILES = {
    "ValueTable": "values.csv",
    "LanguageTable": "languages.csv",
    "CodeTable": "codes.csv",
    "FormTable": "forms.csv",
    "CognateTable": "cognates.csv",
}
_COLUMNS = {
    "id": "ID",
    "name": "Name",
    "languageReference": "Language_ID",
    "parameterReference": "Parameter_ID",
    "codeReference": "Code_ID",
    "value": "Value",
    "formReference": "Form_ID",
    "cognatesetReference": "Cognateset_ID",
}

Read = Callable[[str], bytes]


@dataclass(frozen=True)
class _Record:
    """A row of a file, by the terms of its columns."""

    source: str
    line: int
    cells: dict[str, str]

    def get(self, term: str) -> str:
        """Return a cell without surrounding blanks; empty if there is none."""
        return self.cells.get(term, "").strip()

    def require(self, term: str) -> str:
        """Return a cell that must be there."""
        value = self.get(term)
        if not value:
            raise self.error(f"the column {_COLUMNS[term]} is empty or missing")
        return value

    def error(self, words: str) -> InputError:
        """Return an error with the file and the line."""
        return InputError(f"{self.source}, line {self.line}: {words}.")


def is_cldf(folder: Path) -> bool:
    """Return whether a folder looks like a CLDF data set."""
    return any(folder.glob("*-metadata.json")) or any((folder / name).is_file() for name in ("values.csv", "forms.csv"))


def parse_cldf(read: Read, names: list[str], source: str) -> Characters:
    """Parse a data set.

    Parameters
    ----------
    read : callable
        Returns the bytes of a file of the data set.
    names : list of str
        Names of its files.
    source : str
        The name of the folder, for messages.

    Returns
    -------
    Characters
        Rows are languages. The columns of a StructureDataset are its parameters; several values of a language are a set of
        states. The columns of a Wordlist are cognate sets: 1 if a language has a form in the set, 0 if it has only other forms
        for the concept. Partitions are the concepts.

    Raises
    ------
    InputError
        If the data set is damaged. The message names file, line and language.
    """
    data = _DataSet(read, names, source)
    if data.has_table("ValueTable"):
        return _read_structure(data)
    if data.has_table("FormTable"):
        return _read_wordlist(data)
    raise InputError(f"{source} has neither values nor forms: a CLDF data set is a StructureDataset or a Wordlist.")


class _DataSet:
    """The files of a data set."""

    def __init__(self, read: Read, names: list[str], source: str) -> None:
        self.read, self.names, self.source = read, set(names), source
        # For the term of each table: its file, and the terms of its columns by name.
        self.tables: dict[str, tuple[str, dict[str, str]]] = {}
        metadata_files = sorted(name for name in names if name.endswith("-metadata.json"))
        if len(metadata_files) > 1:
            raise InputError(
                f"{source} has several metadata files, {listing(metadata_files)}: keep those of one data set."
            )
        if metadata_files:
            self._read_metadata(metadata_files[0])
        else:
            self.tables = {term: (file, {}) for term, file in _FILES.items() if file in self.names}

    def _read_metadata(self, name: str) -> None:
        try:
            metadata = json.loads(self.read(name).decode("utf-8-sig"))
            for table in metadata["tables"]:
                term = str(table.get("dc:conformsTo") or "")
                if term.startswith(_TERMS):
                    columns = table.get("tableSchema", {}).get("columns", [])
                    terms = {str(column.get("name")): str(column.get("propertyUrl") or "") for column in columns}
                    self.tables[term.removeprefix(_TERMS)] = (str(table["url"]), terms)
        except (UnicodeDecodeError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(
                f"{self.source}/{name} is not a CLDF metadata file: {type(error).__name__} at {quote(str(error))}."
            ) from None

    def has_table(self, table: str) -> bool:
        """Return whether the data set has a table."""
        return table in self.tables

    def records(self, table: str) -> Iterator[_Record]:
        """Yield the rows of a table."""
        file, terms = self.tables[table]
        name = file if file in self.names else f"{file}.zip"
        if name not in self.names:
            raise InputError(f"{self.source} lacks the file {quote(file)}, which its metadata name.")
        if name.endswith(".zip"):
            raise InputError(f"{self.source}/{name} is compressed: unzip it first.")
        source = f"{self.source}/{file}"
        try:
            text = self.read(file).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InputError(f"{source} is not text in UTF-8.") from None
        rows = csv.reader(io.StringIO(text, newline=""), strict=True)
        line = 1
        try:
            header = next(rows, [])
            by_name = {column: term for term, column in _COLUMNS.items()}
            properties = [terms.get(column, "").removeprefix(_TERMS) or by_name.get(column, "") for column in header]
            if not any(properties):
                raise InputError(f"{source}, line 1: none of the columns {listing(header)} is known in CLDF.")
            line = rows.line_num + 1
            for row in rows:
                if len(row) != len(header) and row:
                    raise InputError(
                        f"{source}, line {line}: the row begins with {quote(row[0])} and has {len(row)} cells, but the header "
                        f"has {len(header)}."
                    )
                if row:
                    yield _Record(
                        source, line, {term: cell for term, cell in zip(properties, row, strict=True) if term}
                    )
                line = rows.line_num + 1
        except csv.Error as error:
            raise InputError(f"{source}, line {line}: the row is not valid csv ({error}).") from None


def _read_languages(data: _DataSet) -> dict[str, str] | None:
    """Return the names of languages by their identifiers; None if there is no table of languages."""
    if not data.has_table("LanguageTable"):
        return None
    names: dict[str, str] = {}
    for record in data.records("LanguageTable"):
        key = record.require("id")
        if key in names:
            raise record.error(f"the language {quote(key)} occurs twice")
        names[key] = record.get("name") or key
    # Names may repeat, identifiers do not.
    return names if len(set(names.values())) == len(names) else {key: key for key in names}


def _language_name(record: _Record, known: dict[str, str] | None) -> str:
    key = record.require("languageReference")
    if known is not None and key not in known:
        raise record.error(f"the language {quote(key)} is not in the table of languages")
    return key if known is None else known[key]


def _read_structure(data: _DataSet) -> Characters:
    languages = _read_languages(data)
    codes: dict[str, str] = {}
    if data.has_table("CodeTable"):
        for record in data.records("CodeTable"):
            codes[record.require("id")] = record.get("name") or record.require("id")
    values: dict[str, dict[str, set[str]]] = {}
    taxa: dict[str, None] = {}
    for record in data.records("ValueTable"):
        language, parameter = _language_name(record, languages), record.require("parameterReference")
        taxa.setdefault(language)
        values.setdefault(parameter, {})
        code, value = record.get("codeReference"), record.get("value")
        if code and codes and code not in codes:
            raise record.error(
                f"language {quote(language)} has the code {quote(code)}, which is not in the table of codes"
            )
        if value in _MISSING and not code:
            continue
        values[parameter].setdefault(language, set()).add(codes.get(code, value or code))
    if not taxa:
        raise InputError(f"{data.source} has no values.")
    columns = []
    for parameter, cells in values.items():
        states = tuple(sorted({state for cell in cells.values() for state in cell}, key=_natural_sort_key))
        columns.append(CharacterColumn(parameter, "feature", [_to_cell(cells.get(taxon)) for taxon in taxa], states))
    return Characters(tuple(taxa), columns)


def _read_wordlist(data: _DataSet) -> Characters:
    languages = _read_languages(data)
    taxa: dict[str, None] = {}
    forms: dict[str, tuple[str, str]] = {}
    sets: dict[tuple[str, str], set[str]] = {}  # languages by concept and cognate set
    covered: dict[str, set[str]] = {}  # languages by concept
    for record in data.records("FormTable"):
        language, concept = _language_name(record, languages), record.require("parameterReference")
        key = record.require("id")
        if key in forms:
            raise record.error(f"language {quote(language)}: the form {quote(key)} occurs twice")
        taxa.setdefault(language)
        forms[key] = (language, concept)
        cognates = record.get("cognatesetReference")
        if cognates and not data.has_table("CognateTable"):
            _add_cognate(sets, covered, language, concept, cognates)
    if data.has_table("CognateTable"):
        for record in data.records("CognateTable"):
            key, cognates = record.require("formReference"), record.require("cognatesetReference")
            if key not in forms:
                raise record.error(f"the form {quote(key)} is not in the table of forms")
            _add_cognate(sets, covered, *forms[key], cognates)
    if not sets:
        raise InputError(
            f"{data.source} is a wordlist without cognate sets, so nothing can be compared: add a table of cognates."
        )
    columns, partitions = [], dict[str, list[str]]()
    for (concept, cognates), members in sorted(sets.items()):
        name = f"{concept}:{cognates}"
        cells: list[Cell] = ["1" if taxon in members else "0" if taxon in covered[concept] else None for taxon in taxa]
        columns.append(CharacterColumn(name, "cognates", cells, ("0", "1")))
        partitions.setdefault(concept, []).append(name)
    return Characters(tuple(taxa), columns, {concept: tuple(names) for concept, names in partitions.items()})


def _add_cognate(
    sets: dict[tuple[str, str], set[str]], covered: dict[str, set[str]], language: str, concept: str, cognates: str
) -> None:
    sets.setdefault((concept, cognates), set()).add(language)
    covered.setdefault(concept, set()).add(language)


def _to_cell(states: set[str] | None) -> Cell:
    if states is None:
        return None
    return next(iter(states)) if len(states) == 1 else frozenset(states)


def _natural_sort_key(state: str) -> tuple[bool, Any]:
    """Sort numbers before text."""
    return (False, int(state)) if state.isascii() and state.isdigit() and len(state) < 20 else (True, state)
