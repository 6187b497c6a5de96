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
from .cells import Category, NumberCells
from .columns import CategoricalColumn, Column, RealColumn, Table, recode_categories
from .labels import count, listing
from .symbols import BINARY_DATATYPES, absent_state, alphabet_of, presence_states

MARK = "ascertainment"  # how the names of columns end that BEAST needs for its correction, and which hold no data
UNRECORDED = ("variable", "present")
"""The ascertainments that leave columns out."""


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
    """Return a table whose columns of states are characters: DNA if all of them are nucleotides, else standard ones.

    Parameters
    ----------
    table : Table
        Without columns of characters. Categorical columns are states, and so are whole numbers from 0 to 9 unless they were
        declared real.
    reason : str
        The parameter that is for characters, for messages.
    """
    numbers = [column.name for column in table.real if _holds_digits(column)]
    columns = [_to_states(column) if column.name in numbers else column for column in table.columns]
    categorical = [column for column in columns if isinstance(column, CategoricalColumn)]
    if not categorical:
        raise InputError(
            f"{reason} is for characters, such as the sites of an alignment, and the table has no categorical column, nor one of "
            "whole numbers from 0 to 9: declare its columns categorical, or leave it out."
        )
    states = {str(category) for column in categorical for category in column.categories}
    datatype = "dna" if states and states <= set("ACGT-") else "standard"
    remarks = table.remarks
    if numbers:
        remarks += (
            f"{count(len(numbers), 'column')} of whole numbers from 0 to 9 {'is' if len(numbers) == 1 else 'are'} read as "
            f"characters, because {reason} is given: {listing(numbers)}. Declare measurements real.",
        )
    declared: list[Column] = [
        replace(column, datatype=datatype) if isinstance(column, CategoricalColumn) else column for column in columns
    ]
    return replace(table, columns=tuple(declared), remarks=remarks)


def _holds_digits(column: RealColumn) -> bool:
    """Return whether a column that was not declared real holds whole numbers from 0 to 9 only."""
    known = column.values[~np.isnan(column.values)]
    is_open = not (column.declared or column.time or column.notation)
    return is_open and len(known) > 0 and bool(np.isin(known, np.arange(10)).all())


def _to_states(column: Column) -> CategoricalColumn:
    """Return a column of whole numbers as states."""
    assert isinstance(column, RealColumn)
    codes, states = NumberCells(column.values).as_categorical()
    return CategoricalColumn(column.name, column.index, codes, states)


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
    result = CharacterTable(table, [], list(marks), [])
    for name, group in members.items():
        if partitions is not None and name not in partitions:
            result.remarks.append(
                f"{count(len(group), 'column')} of characters {'is' if len(group) == 1 else 'are'} in no partition, and so in "
                f"one more, {quote(name)}: {listing([column.name for column in group])}."
            )
    if isinstance(ascertainment, Mapping):
        unknown = [name for name in ascertainment if name not in members]
        if unknown:
            raise InputError(
                f"ascertainment names {listing(unknown)}, and the partitions are {listing(list(members), limit=10)}."
            )
    spelled: dict[str, CategoricalColumn] = {}
    for partition, group in members.items():
        datatypes = sorted({str(column.datatype) for column in group})
        if len(datatypes) > 1:
            raise InputError(
                f"Partition {quote(partition)} has columns of several datatypes ({', '.join(datatypes)}); a partition has one."
            )
        asked = ascertainment.get(partition) if isinstance(ascertainment, Mapping) else ascertainment
        alphabets, is_binary = _find_alphabets(group, datatypes[0], share_states)
        if asked is None and is_binary and any(column.name in marks for column in group):
            asked = "present"
        if asked == "present" and not is_binary:
            raise _presence_error(partition, datatypes[0], group)
        for column, states in zip(group, alphabets, strict=True):
            codes, _, _ = recode_categories(column.codes, column.categories, states)
            spelled[column.name] = replace(column, codes=codes, categories=states)
        used = [
            spelled[column.name]
            for column in group
            if column.name not in marks and (spelled[column.name].codes != -1).any()
        ]
        if not used:
            continue
        chosen, lost = _choose_ascertainment(asked, datatypes[0], is_binary, partition, used, result.remarks)
        result.unused.extend(lost)
        kept = tuple(column.name for column in used if column.name not in lost)
        if not kept:
            raise InputError(
                f"All columns of partition {quote(partition)} {_condition(str(asked), used)}. ascertainment={asked!r} says that "
                "such columns were not recorded: leave it out."
            )
        # Standard characters of which absent ones were not recorded are what other files call restriction sites.
        kind = "restriction" if chosen == "present" and datatypes[0] == "standard" else datatypes[0]
        result.partitions.append(Partition(partition, kind, kept, chosen))
    if marks:
        result.remarks.append(
            f"{count(len(marks), 'column holds', 'columns hold')} no data but a mark of the ascertainment for BEAST, and "
            f"{'is' if len(marks) == 1 else 'are'} left out: {listing(marks)}."
        )
    return result._replace(
        table=replace(table, columns=tuple(spelled.get(column.name, column) for column in table.columns))
    )


def put_absence_first(table: Table, remarks: list[str]) -> Table:
    """Make a word for absence the first category of each column that has one; remark which category is the first elsewhere."""
    columns: list[Column] = []
    unclear: dict[str, str] = {}
    for column in table.columns:
        if isinstance(column, CategoricalColumn) and column.categories:
            absent = absent_state(column.categories)
            if absent is None:
                unclear[column.name] = str(column.categories[0])
            else:
                states = (absent, *(category for category in column.categories if category != absent))
                codes, _, _ = recode_categories(column.codes, column.categories, states)
                column = replace(column, codes=codes, categories=states)
        columns.append(column)
    if unclear:
        remarks.append(
            f"{count(len(unclear), 'column has', 'columns have')} no word for absence, and the first category is read as absent: "
            f"{listing([f'{state} of {name}' for name, state in unclear.items()])}. If that is wrong, declare the order of the "
            "categories, the absent one first."
        )
    return replace(table, columns=tuple(columns))


def _is_mark(column: CategoricalColumn) -> bool:
    """Return whether a column is 0 wherever it is known, and is named as in files for BEAST."""
    is_binary = column.datatype in (*BINARY_DATATYPES, "standard")
    states = {str(category) for category in column.categories}
    return is_binary and column.name.lower().endswith(MARK) and states <= {"0"}


def _find_alphabets(
    columns: Sequence[CategoricalColumn], datatype: str, share_states: bool
) -> tuple[list[tuple[Category, ...]], bool]:
    """Return the states of each column of a partition, and whether all columns have the states absent and present."""
    occurring = {category for column in columns for category in column.categories}
    if datatype != "standard":
        return [alphabet_of(datatype, occurring)] * len(columns), datatype in BINARY_DATATYPES
    together = presence_states(occurring)
    if together is not None:
        return [together] * len(columns), True
    each = [states for column in columns if (states := presence_states(column.categories)) is not None]
    if len(each) == len(columns):
        return list(each), True
    if share_states:
        return [alphabet_of(datatype, occurring)] * len(columns), False
    return [alphabet_of(datatype, column.categories) for column in columns], False


def _presence_error(partition: str, datatype: str, columns: Sequence[CategoricalColumn]) -> InputError:
    """Return the error for a partition whose columns do not tell what is absent."""
    if datatype != "standard":
        return InputError(
            f"Partition {quote(partition)} is {datatype}, and ascertainment='present' is for columns that say whether something "
            "is absent or present, such as cognate sets: leave it out, or use 'variable' if constant columns were not recorded."
        )
    unclear = [column for column in columns if presence_states(column.categories) is None]
    column = max(unclear, key=lambda column: len(column.categories))
    return InputError(
        f"ascertainment='present' is for columns that say whether something is absent or present, and column "
        f"{quote(column.name)} of partition {quote(partition)} holds {listing(column.categories, limit=10)}: write 0 for absent "
        "and 1 for present."
    )


def _condition(ascertainment: str, columns: Sequence[CategoricalColumn]) -> str:
    """Return what columns of a partition that were not recorded show."""
    return f"show {_state_name(columns, 0) if ascertainment == 'present' else 'one state'} only"


def _state_name(columns: Sequence[CategoricalColumn], code: int) -> str:
    """Return the name of a state of columns that say whether something is absent or present."""
    names = dict.fromkeys(str(column.categories[code]) for column in columns)
    return " or ".join(f"state {name}" if name.isdigit() else quote(name) for name in names)


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
    asked: str | None,
    datatype: str,
    is_binary: bool,
    partition: str,
    columns: Sequence[CategoricalColumn],
    remarks: list[str],
) -> tuple[str | None, list[str]]:
    """Return the ascertainment of a partition, and the names of columns that were not recorded; add remarks.

    By default it is that of the datatype. A table that has columns which would then not have been recorded shows that they were.
    """
    codes = np.stack([column.codes for column in columns], axis=1)
    lost = {name: np.flatnonzero(_is_unrecorded(codes, name)).tolist() for name in UNRECORDED}
    if asked is not None:
        names = [columns[d].name for d in lost.get(asked, [])]
        if names and len(names) < len(columns):
            remarks.append(
                f"{count(len(names), 'column')} of partition {quote(partition)} {_condition(asked, columns)}, and "
                f"{'is' if len(names) == 1 else 'are'} left out, because ascertainment={asked!r} says that such columns were "
                f"not recorded: {listing(names)}."
            )
        return (None if asked == "all" else asked), names
    usual = {"standard": ["variable", *["present"] * is_binary]}.get(
        datatype, ["present"] * (datatype in BINARY_DATATYPES)
    )
    chosen = next((name for name in usual if not lost[name]), None)
    if usual and chosen != usual[0]:
        names = [columns[d].name for d in lost[usual[0]]]
        consequence = "not conditioned on which columns were recorded"
        if chosen:
            consequence = (
                f"conditioned on columns in which some row shows {_state_name(columns, 1)} (ascertainment={chosen!r})"
            )
        remarks.append(
            f"{count(len(names), 'column')} of partition {quote(partition)} {_condition(usual[0], columns)} ({listing(names)}), "
            f"so such columns were recorded, and the likelihood is {consequence}; ascertainment={usual[0]!r} leaves them out "
            "and conditions on the others."
        )
    return chosen, []


def _is_unrecorded(codes: NDArray[np.intp], ascertainment: str) -> NDArray[np.bool_]:
    """Return which columns of codes are not recorded under an ascertainment; cells with several states do not count."""
    highest = codes.max(axis=0)
    if ascertainment == "present":
        return np.asarray(highest <= 0)
    lowest = np.min(codes, axis=0, where=codes >= 0, initial=np.iinfo(np.intp).max)
    return np.asarray(highest <= lowest)
