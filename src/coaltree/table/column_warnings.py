"""Cells so far out that they decide on the scale of their column, or on the top of a tree."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .cells import FloatArray, IntArray
from .columns import CategoricalColumn, Column, RealColumn, Table
from .messages import count, row_label
from .scaling import ColumnScale, moments, standardised

# Standardised values that differ by less are equal but for rounding, also that of numbers in single precision.
_ROUNDING = 1e-6
# Columns of few values, or of few rows, are equal by chance. They are told where less than this number is expected to be.
_BY_CHANCE = 1e-3
_TOLD = 5
_MOST_IN_PAIRS = 100  # columns of a kind: up to so many, those with other holes are compared pair by pair


def describe_copies(columns: Sequence[Column]) -> list[str]:
    """Say in a sentence which columns repeat others.

    Real columns do if they are linear functions of each other, categorical ones if their categories are other names for the same.
    Every column is looked at once, and compared with those alone that look the same. Of up to 100 columns of a kind, also those
    that have other holes are compared, by the rows that have both.

    Parameters
    ----------
    columns : sequence of RealColumn or CategoricalColumn
        Those that take part.

    Returns
    -------
    list of str
        One sentence, or none.
    """
    real = [(j, column) for j, column in enumerate(columns) if isinstance(column, RealColumn)]
    categorical = [(j, column) for j, column in enumerate(columns) if not isinstance(column, RealColumn)]
    least = 2 * math.log(max(len(columns), 2)) - math.log(_BY_CHANCE)
    groups = [sorted(group) for group in (*_equal_real(real), *_equal_categorical(categorical))]
    found = {
        later: first
        for first, *others in groups
        for later in others
        if _surprise(_column_values(columns[first])) >= least
    }
    for own in (real, categorical):
        if len(own) <= _MOST_IN_PAIRS:
            _add_with_other_holes(found, [(j, column) for j, column in own if j not in found], least)
    pairs = sorted(found.items())
    if not pairs:
        return []
    told = "; ".join(f"{columns[later].name!r} of {columns[first].name!r}" for later, first in pairs[:_TOLD])
    more = f"; and {len(pairs) - _TOLD} more" if len(pairs) > _TOLD else ""
    return [
        f"{count(len(pairs), 'column is a copy of another', 'columns are copies of others')}, up to unit, sign or names of "
        f"categories, so that the same is counted twice: {told}{more}. Leave {'it' if len(pairs) == 1 else 'them'} out unless "
        "that is meant."
    ]


def _equal_real(columns: Sequence[tuple[int, RealColumn]]) -> Iterator[list[int]]:
    """Yield groups of columns that are linear functions of each other, by their positions."""
    if len(columns) < 2:
        return
    n = len(columns[0][1].values)
    direction = np.random.default_rng(0).standard_normal(n)
    own = dict(columns)
    keys = []
    for j, column in columns:
        holes = hashlib.blake2b(np.packbits(np.isnan(column.values)).tobytes(), digest_size=8).digest()
        keys.append((holes, abs(float(np.sum(_filled(column) * direction))), j))
    keys.sort()
    group = [keys[0][2]]
    for (holes, place, _), (next_holes, next_place, j) in pairwise(keys):
        near = holes == next_holes and next_place - place <= 10 * _ROUNDING * math.sqrt(n)
        if near and _are_equal(_filled(own[group[0]]), _filled(own[j])):
            group.append(j)
            continue
        if len(group) > 1:
            yield group
        group = [j]
    if len(group) > 1:
        yield group


def _filled(column: RealColumn) -> FloatArray:
    """Return a column in its own standard deviations from its mean, which holes are at."""
    center, scale, _ = moments(column.values)
    return np.nan_to_num(standardised(column.values, center, scale))


def _are_equal(a: FloatArray, b: FloatArray) -> bool:
    return bool(np.max(np.abs(a - b)) <= _ROUNDING or np.max(np.abs(a + b)) <= _ROUNDING)


def _equal_categorical(columns: Sequence[tuple[int, CategoricalColumn]]) -> list[list[int]]:
    """Return groups of columns whose rows are shared out in the same way, by their positions."""
    groups: dict[bytes, list[int]] = {}
    for j, column in columns:
        # Categories by the first row that has them, whatever they are called.
        first_rows = np.full(len(column.categories) + 1, -1, dtype=np.intp)
        first_rows[column.codes[::-1]] = np.arange(len(column.codes) - 1, -1, -1)
        first_rows[-1] = -1  # missing cells
        groups.setdefault(hashlib.blake2b(first_rows[column.codes].tobytes(), digest_size=16).digest(), []).append(j)
    return [group for group in groups.values() if len(group) > 1]


def _add_with_other_holes(found: dict[int, int], columns: Sequence[tuple[int, Column]], least: float) -> None:
    """Add columns that are equal to an earlier one wherever both are known, though their missing cells are different ones."""
    cells = {j: _column_values(column) for j, column in columns}
    known = {j: ~np.isnan(own) for j, own in cells.items()}
    real = any(isinstance(column, RealColumn) for _, column in columns)
    for later, own in cells.items():
        for first in cells:
            if first >= later:
                break
            both = known[first] & known[later]
            if first in found or np.array_equal(known[first], known[later]) or not both.any():
                continue
            a, b = cells[first][both], own[both]
            equal = _are_linear(a, b) if real else _are_renamed(a, b)
            if equal and _surprise(a) >= least:
                found[later] = first
                break


def _column_values(column: Column) -> FloatArray:
    """Return the values or codes of a column, NaN where missing."""
    if isinstance(column, RealColumn):
        return column.values
    return np.where(column.codes < 0, np.nan, column.codes)


def _are_linear(a: FloatArray, b: FloatArray) -> bool:
    """Return whether complete columns are linear functions of each other."""
    scaled = []
    for values in (a, b):
        center, scale, _ = moments(values)
        scaled.append(standardised(values, center, scale))
    # One cell far outside has nearly all of the variance: what the others say must be the same too.
    others = np.delete(scaled[0], int(np.argmax(np.abs(scaled[0]))))
    least = _ROUNDING * float(np.std(others)) if len(others) else 0.0
    apart = min(float(np.max(np.abs(scaled[0] + sign * scaled[1]))) for sign in (-1, 1))
    return apart <= least


def _are_renamed(a: FloatArray, b: FloatArray) -> bool:
    """Return whether complete columns of codes share rows out in the same way."""
    n_pairs = len(np.unique(np.column_stack([a, b]), axis=0))
    return n_pairs == len(np.unique(a)) == len(np.unique(b))


def _surprise(cells: FloatArray) -> float:
    """Return minus the log of the probability that another column with the same values in any order is equal to this one."""
    counts = np.unique(cells[~np.isnan(cells)], return_counts=True)[1].tolist()
    return math.lgamma(sum(counts) + 1) - sum(math.lgamma(own + 1) for own in counts)


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
