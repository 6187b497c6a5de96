"""Cells so far out that they decide on the scale of their column, or on the top of a tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .cells import FloatArray, IntArray
from .columns import RealColumn, Table
from .scaling import ColumnScale, moments, standardised
from .wording import row_label

# A cell with more than this share of the variance, in a column of at least so many cells, is more than a heavy tail: without it
# the standard deviation is less than a tenth.
_SHARE, _CELLS = 0.99, 20
_COLUMNS_TOLD, _CELLS_TOLD = 5, 3
FAR = 8.0  # standard deviations of the others, from which on cells are extreme
_REMEDY = ', or fit with standardize="power", which draws heavy tails in'


class _Cell(NamedTuple):
    row: int
    value: float
    distance: float  # from the mean of all other rows, in their standard deviations


class _Tail(NamedTuple):
    column: RealColumn
    cells: list[_Cell]  # the furthest first
    lone: bool  # whether it is one cell that has nearly all of the variance


def describe_tails(table: Table, codes: Mapping[str, FloatArray], apart: Mapping[str, IntArray]) -> list[str]:
    """Say in a sentence which cells are too far out for the others to count.

    Parameters
    ----------
    table : Table
    codes : mapping of str to ndarray
        The real columns that take part, by name, as they are or after their power transform.
    apart : mapping of str to ndarray of int
        Rows that the top of a tree sets apart because of a column, by its name; see `stray_rows`.

    Returns
    -------
    list of str
        One sentence, or none.
    """
    found: list[_Tail] = []
    for column in table.real:
        if column.name not in codes:
            continue
        lone = _lone_cell(codes[column.name])
        rows = apart.get(column.name, None if lone is None else np.array([lone]))
        if rows is not None:
            found.append(_Tail(column, _cells(column.values, codes[column.name], rows), lone is not None))
    if not found:
        return []
    one, it = sum(len(tail.cells) for tail in found) == 1, len(found) == 1
    told = [f"{tail.column.name!r} ({_told(tail, table.row_names)})" for tail in found[:_COLUMNS_TOLD]]
    more = f", and {len(found) - _COLUMNS_TOLD} more" if len(found) > _COLUMNS_TOLD else ""
    effects = []
    if any(tail.lone for tail in found):
        effects.append(f"beside {'it' if one else 'them'} all others look the same")
    if apart:
        effects.append(f"the top of the tree does nothing but set {'its row' if one else 'their rows'} apart")
    helps = any(_helps(tail, codes[tail.column.name]) for tail in found)
    return [
        f"{'A cell is' if one else 'Cells are'} extreme in {'column' if it else 'columns'} {', '.join(told)}{more}: "
        f"{', and '.join(effects)}. Check {'it' if one else 'them'}, {'' if helps else 'and '}make {'it' if one else 'them'} "
        f"missing if wrong{_REMEDY if helps else ''}."
    ]


def _told(tail: _Tail, row_names: Sequence[str] | None) -> str:
    """Write the furthest cells of a column."""
    first, *others = (
        f"{cell.value:g} in {row_label(cell.row, row_names)}, {_number(cell.distance)}"
        for cell in tail.cells[:_CELLS_TOLD]
    )
    more = [f"and {len(tail.cells) - _CELLS_TOLD} more"] if len(tail.cells) > _CELLS_TOLD else []
    return "; ".join([f"{first} standard deviations from the other rows", *others, *more])


def _number(distance: float) -> str:
    return f"{distance:.2g}" if distance < 10 or distance >= 1e6 else f"{distance:,.0f}"


def _helps(tail: _Tail, codes: FloatArray) -> bool:
    """Say whether a power transform would draw the cells in."""
    if codes is not tail.column.values:  # it has been transformed already
        return False
    values = tail.column.values
    scale, _ = ColumnScale.fit(values, "power")
    rows = np.array([cell.row for cell in tail.cells])
    after = _cells(values, scale.encode(values), rows)[0].distance
    return scale.power is not None and after < min(FAR, tail.cells[0].distance / 2)


def _cells(values: FloatArray, codes: FloatArray, rows: IntArray) -> list[_Cell]:
    """Return the cells of some rows, the furthest first."""
    rows = rows[~np.isnan(values[rows])]
    center, scale, varies = moments(np.delete(codes, rows))
    with np.errstate(over="ignore"):
        distances = np.abs(standardised(codes[rows], center, scale if varies else 1.0))
    cells = [_Cell(*own) for own in zip(rows.tolist(), values[rows].tolist(), distances.tolist(), strict=True)]
    return sorted(cells, key=lambda cell: -cell.distance)


def _lone_cell(values: FloatArray) -> int | None:
    """Return the row without whose cell a column would have next to no variance, if there is one."""
    n = int(np.count_nonzero(~np.isnan(values)))
    if n < _CELLS:
        return None
    center, scale, _ = moments(values)
    row = int(np.nanargmax(np.abs(standardised(values, center, scale))))
    # A column of two values, as of yes and no, has no scale that one of them could be far out on.
    _, rest, varies = moments(np.delete(values, row))
    share = 1 - (n - 1) / n * (rest / scale) ** 2
    return row if varies and share > _SHARE else None
