"""What ``impute`` puts into missing cells, and the files that it makes of them."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..console import Notes
from ..table.wording import count, listing
from .options import STANDARD_STREAM

if TYPE_CHECKING:
    from ..estimators.imputer import CoalescentImputer
    from ..table.cells import Category
    from ..table.columns import Table
    from ..table.filled_file import NamedFills
    from ..table.opening import TableFile
    from ..table.reading import FileTable

Fills: TypeAlias = "dict[int, tuple[list[int], list[Category]]]"
"""For a column of the model, by its position, rows and the values to put there."""


def n_missing(rows: Table) -> int:
    """Return how many cells of a table are missing; categories that the fit did not know are not."""
    from ..table.columns import missing_cells

    return sum(int(missing_cells(column).sum()) for column in rows.columns)


def fills_of(
    imputer: CoalescentImputer | None, file: FileTable, rows: Table, draws: int | None, seed: int
) -> list[Fills]:
    """Return what to put into the missing cells: once, or for each draw; nothing if none is missing."""
    if imputer is None or not n_missing(rows):
        return []
    frames = [imputer.transform(file.frame)] if draws is None else imputer.sample(file.frame, draws, seed)
    return [_fills(rows, imputer._new_rows(frame).table) for frame in frames]


def _fills(before: Table, after: Table) -> Fills:
    """Return for each column the rows that were missing and are not any more, with what they hold now."""
    import numpy as np

    from ..table.columns import RealColumn, missing_cells

    fills: Fills = {}
    for j, (old, new) in enumerate(zip(before.columns, after.columns, strict=True)):
        at = np.flatnonzero(missing_cells(old) & ~missing_cells(new))
        if len(at):
            fills[j] = (
                at.tolist(),
                new.values[at].tolist()
                if isinstance(new, RealColumn)
                else [new.categories[code] for code in new.codes[at]],
            )
    return fills


def by_name(fills: Fills, file: FileTable, rows: Table) -> NamedFills:
    """Return fills by the names of columns in the file, which a model of an array does not have."""
    return {file.frame.columns[rows.columns[j].index]: fill for j, fill in fills.items()}


def content(table: TableFile, fills: NamedFills, na_values: Sequence[str], target: Path) -> bytes:
    """Return the bytes of a filled file; without anything to fill, those of the table."""
    from ..table.filled_file import fill_file

    data = fill_file(table, fills, na_values=na_values) if fills else table.raw()
    is_text = target == STANDARD_STREAM and table.compressed
    return gzip.decompress(data) if is_text else data


def cells_csv(imputer: CoalescentImputer | None, file: FileTable, rows: Table) -> str:
    """Return a csv of the filled cells and of how sure they are, row by row."""
    from ..output.files import csv_text
    from ..questions.cells import RealCells

    cells: list[tuple[int, int, Any, float | None, float | None]] = []
    if imputer is not None and n_missing(rows):
        filled, known = imputer.transform(file.frame), imputer.predictive(file.frame)
        for j, (at, values) in _fills(rows, imputer._new_rows(filled).table).items():
            shown, own = filled.to_series(rows.columns[j].index)[at].to_list(), known[rows.columns[j].name]
            sds: list[float | None] = [None] * len(at)
            shares: list[float | None] = [None] * len(at)
            if isinstance(own, RealCells):
                sds = own.sd[at].tolist()
            else:
                code = {category: k for k, category in reversed([*enumerate(own.categories)])}
                shares = own.probability[at, [code[value] for value in values]].tolist()
            cells += zip(at, [j] * len(at), shown, sds, shares, strict=True)
    cells.sort(key=lambda cell: cell[:2])
    names = file.row_names or tuple(map(str, range(rows.n_rows)))
    return csv_text(
        {
            "row": [names[cell[0]] for cell in cells],
            "column": [file.frame.columns[rows.columns[cell[1]].index] for cell in cells],
            "value": [cell[2] for cell in cells],
            "sd": [cell[3] for cell in cells],
            "probability": [cell[4] for cell in cells],
        }
    )


def fill_facts(rows: Table, filled: Sequence[Fills], notes: Notes) -> dict[str, Any]:
    """Count the cells that were filled, and note which columns have cells that were not."""
    from ..table.columns import missing_cells

    fills = filled[0] if filled else {}
    left = {
        column.name: int(missing_cells(column).sum()) - len(fills[j][1] if j in fills else ())
        for j, column in enumerate(rows.columns)
    }
    unknown = [name for name, n_left in left.items() if n_left]
    if unknown:
        notes.add(
            [
                f"{count(sum(left.values()), 'cell stays', 'cells stay')} missing, in columns of which the model knows no "
                f"value: {listing(unknown)}."
            ]
        )
    by_column = {rows.columns[j].name: len(values) for j, (_, values) in fills.items()}
    return {
        "n_rows": rows.n_rows,
        "n_filled": sum(by_column.values()),
        "filled_by_column": by_column,
        "n_left_missing": sum(left.values()),
        "n_tables": len(filled),
    }


def closing_words(facts: Mapping[str, Any]) -> str:
    """Say how many cells were filled."""
    times = f", {count(facts['n_tables'], 'draw')}" if facts["n_tables"] > 1 else ""
    return f"filled {count(facts['n_filled'], 'cell')} in {count(len(facts['filled_by_column']), 'column')}{times}"
