"""Characters among the columns of a table: their alphabets, partitions, and which characters were recorded.

Sites of a partition have one alphabet. So the categories of a column of characters are all states that it could have, and not
only those that occur in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import quote
from ..errors import InputError
from .cells import Category
from .columns import CategoricalColumn, Column, Table, recode_categories
from .labels import count, listing
from .symbols import BINARY_DATATYPES, alphabet_of

MARK = "ascertainment"  # how the names of columns end that BEAST needs for its correction, and which hold no data
CONDITIONS = {"variable": "show one state only", "present": "show state 0 only"}
"""What columns that were not recorded show, for each ascertainment."""


class Partition(NamedTuple):
    """Columns of characters that have one model."""

    name: str
    datatype: str
    columns: tuple[str, ...]
    ascertainment: str | None


class CharacterTable(NamedTuple):
    """A table whose columns of characters have the states of their alphabets."""

    table: Table
    partitions: list[Partition]
    unused: list[str]  # columns that are left out
    remarks: list[str]


def has_characters(table: Table) -> bool:
    """Return whether columns are characters."""
    return any(column.datatype is not None for column in table.categorical)


def declare_characters(table: Table, reason: str) -> Table:
    """Return a table whose categorical columns are characters: DNA if all of them are nucleotides, else standard ones.

    Parameters
    ----------
    table : Table
        Without columns of characters.
    reason : str
        The parameter that is for characters, for messages.
    """
    categorical = table.categorical
    if not categorical:
        raise InputError(
            f"{reason} is for characters, such as the sites of an alignment, and the table has no categorical column: declare "
            "its columns categorical, or leave it out."
        )
    states = {str(category) for column in categorical for category in column.categories}
    datatype = "dna" if states and states <= set("ACGT-") else "standard"
    columns: list[Column] = [
        replace(column, datatype=datatype) if isinstance(column, CategoricalColumn) else column
        for column in table.columns
    ]
    return replace(table, columns=tuple(columns))


def spell_characters(
    table: Table,
    partitions: Mapping[str, Sequence[str]] | None = None,
    ascertainment: str | Mapping[str, str] | None = None,
    share_states: bool = False,
) -> CharacterTable:
    """Give columns of characters the categories of their alphabets, and divide them into partitions.

    Parameters
    ----------
    table : Table
    partitions : mapping of str to sequence of str, optional
        Names of the columns of each partition; columns that are in none of them form another. By default there is a partition
        for each datatype.
    ascertainment : {"variable", "present", "all"} or mapping, optional
        Which columns were recorded, or that for each partition. By default as usual for the datatype, unless the table has
        columns that would then not have been recorded.
    share_states : bool, default False
        Whether standard characters of a partition have the same states, because they share an equilibrium.

    Returns
    -------
    CharacterTable
        Columns that hold no data but declare an ascertainment, as for BEAST, are in no partition, and neither are columns that
        were not recorded according to what the user has said.
    """
    columns = {column.name: column for column in table.categorical if column.datatype is not None}
    marks = [name for name, column in columns.items() if _is_mark(column)]
    members: dict[str, list[CategoricalColumn]] = {}
    for name, partition in _divide(columns, partitions):
        members.setdefault(partition, []).append(columns[name])
    if isinstance(ascertainment, Mapping):
        unknown = [name for name in ascertainment if name not in members]
        if unknown:
            raise InputError(
                f"ascertainment names {listing(unknown)}, and the partitions are {listing(list(members), limit=10)}."
            )
    spelled: dict[str, CategoricalColumn] = {}
    result = CharacterTable(table, [], list(marks), [])
    for partition, group in members.items():
        datatypes = sorted({str(column.datatype) for column in group})
        if len(datatypes) > 1:
            raise InputError(
                f"Partition {quote(partition)} has columns of several datatypes ({', '.join(datatypes)}); a partition has one."
            )
        together = alphabet_of(datatypes[0], _occurring(group)) if share_states or datatypes[0] != "standard" else ()
        for column in group:
            states = together or alphabet_of("standard", _occurring([column]))
            codes, _, _ = recode_categories(column.codes, column.categories, states)
            spelled[column.name] = replace(column, codes=codes, categories=states)
        used = [
            spelled[column.name]
            for column in group
            if column.name not in marks and (spelled[column.name].codes != -1).any()
        ]
        if not used:
            continue
        asked = ascertainment.get(partition) if isinstance(ascertainment, Mapping) else ascertainment
        if asked is None and len(used) < len(group) and any(column.name in marks for column in group):
            asked = "present"
        chosen, lost = _choose_ascertainment(asked, datatypes[0], partition, used, result.remarks)
        result.unused.extend(lost)
        kept = tuple(column.name for column in used if column.name not in lost)
        if not kept:
            raise InputError(
                f"All columns of partition {quote(partition)} {CONDITIONS[str(asked)]}. ascertainment={asked!r} says that such "
                "columns were not recorded: leave it out."
            )
        result.partitions.append(Partition(partition, datatypes[0], kept, chosen))
    if marks:
        result.remarks.append(
            f"{count(len(marks), 'column holds', 'columns hold')} no data but a mark of the ascertainment for BEAST, and "
            f"{'is' if len(marks) == 1 else 'are'} left out: {listing(marks)}."
        )
    return result._replace(
        table=replace(table, columns=tuple(spelled.get(column.name, column) for column in table.columns))
    )


def _is_mark(column: CategoricalColumn) -> bool:
    """Return whether a column is 0 wherever it is known, and is named as in files for BEAST."""
    is_binary = column.datatype in (*BINARY_DATATYPES, "standard")
    states = {str(category) for category in column.categories}
    return is_binary and column.name.lower().endswith(MARK) and states <= {"0"}


def _occurring(columns: Sequence[CategoricalColumn]) -> list[Category]:
    """Return the categories of some columns, those of the first column first."""
    return list(dict.fromkeys(category for column in columns for category in column.categories))


def _divide(
    columns: Mapping[str, CategoricalColumn], partitions: Mapping[str, Sequence[str]] | None
) -> Iterator[tuple[str, str]]:
    """Yield the names of the columns with those of their partitions."""
    if partitions is None:
        yield from ((name, str(column.datatype)) for name, column in columns.items())
        return
    used: dict[str, str] = {}
    for partition, names in partitions.items():
        unknown = [name for name in names if name not in columns]
        if unknown:
            raise InputError(
                f"Partition {quote(partition)} names {listing(unknown)}, which "
                f"{'is no column' if len(unknown) == 1 else 'are no columns'} of characters of the table."
            )
        twice = [name for name in names if name in used]
        if twice:
            raise InputError(
                f"Column {quote(twice[0])} is in the partitions {quote(used[twice[0]])} and {quote(partition)}: a column "
                "belongs to one."
            )
        used.update(dict.fromkeys(names, partition))
    datatypes = {column.datatype for name, column in columns.items() if name not in used}
    for name, column in columns.items():
        yield name, used.get(name) or ("rest" if len(datatypes) == 1 else f"rest of {column.datatype}")


def _choose_ascertainment(
    asked: str | None, datatype: str, partition: str, columns: Sequence[CategoricalColumn], remarks: list[str]
) -> tuple[str | None, list[str]]:
    """Return the ascertainment of a partition, and the names of columns that were not recorded; add remarks.

    By default it is that of the datatype. A table that has columns which would then not have been recorded shows that they were.
    """
    codes = np.stack([column.codes for column in columns], axis=1)
    lost = {name: np.flatnonzero(_is_unrecorded(codes, name)).tolist() for name in CONDITIONS}
    if asked is not None:
        names = [columns[d].name for d in lost.get(asked, [])]
        if names and len(names) < len(columns):
            remarks.append(
                f"{count(len(names), 'column')} of partition {quote(partition)} {CONDITIONS[asked]}, and "
                f"{'is' if len(names) == 1 else 'are'} left out, because ascertainment={asked!r} says that such columns were "
                f"not recorded: {listing(names)}."
            )
        return (None if asked == "all" else asked), names
    is_binary = all([str(state) for state in column.categories] == ["0", "1"] for column in columns)
    usual = {"standard": ["variable", *["present"] * is_binary]}.get(
        datatype, ["present"] * (datatype in BINARY_DATATYPES)
    )
    chosen = next((name for name in usual if not lost[name]), None)
    if usual and chosen != usual[0]:
        names = [columns[d].name for d in lost[usual[0]]]
        if chosen:
            consequence = (
                f"the likelihood is conditioned on columns in which some row shows state 1 (ascertainment={chosen!r})"
            )
        else:
            consequence = "the likelihood is not conditioned on which columns were recorded"
        remarks.append(
            f"{count(len(names), 'column')} of partition {quote(partition)} {CONDITIONS[usual[0]]} ({listing(names)}), so such "
            f"columns were recorded, and {consequence}; ascertainment={usual[0]!r} leaves them out and conditions on the others."
        )
    return chosen, []


def _is_unrecorded(codes: NDArray[np.intp], ascertainment: str) -> NDArray[np.bool_]:
    """Return which columns of codes are not recorded under an ascertainment; cells with several states do not count."""
    highest = codes.max(axis=0)
    if ascertainment == "present":
        return np.asarray(highest <= 0)
    lowest = np.min(codes, axis=0, where=codes >= 0, initial=np.iinfo(np.intp).max)
    return np.asarray(highest <= lowest)
