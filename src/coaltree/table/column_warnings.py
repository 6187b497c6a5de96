"""Warnings about columns: numbers that may be none, copies of others, and cells so extreme that they dominate."""

from __future__ import annotations

import datetime as dt
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .._validation import quote
from .cells import FloatArray, IntArray
from .columns import CategoricalColumn, Column, RealColumn, Table
from .labels import count, row_label
from .scaling import MAX_STANDARDISED, ColumnScale, moments, standardise

# Standardised values that differ by less are equal up to rounding, even in single precision.
_ROUNDING = 1e-6
# Columns with few values or few rows may be equal by chance: warn if fewer equal pairs than this are expected.
_MAX_CHANCE_PAIRS = 1e-3
_MAX_LISTED_COPIES = 5
_MAX_PAIRWISE_COLUMNS = 100  # up to so many columns of a kind, those with different missing cells are compared in pairs


def describe_numbers(column: RealColumn) -> list[str]:
    """Describe in a sentence that the numbers of a column may not be quantities: dates such as 20200106, or long identifiers.

    Examples
    --------
    >>> describe_numbers(RealColumn("day", 0, np.array([20200106.0, 20191231.0, np.nan])))[0][:62]
    "Column 'day' holds dates as whole numbers, such as 20200106, a"
    """
    values = column.values[~np.isnan(column.values)]
    if column.declared or column.time or not len(values) or np.any(values % 1):
        return []
    name, least, most = quote(column.name), values.min(), values.max()
    if least >= 18000101 and most <= 22001231 and all(map(_is_date, np.unique(values).tolist())):
        return [
            f"Column {name} holds dates as whole numbers, such as {values[0]:.0f}, and is read as numbers, of which 20200101 is "
            "far from 20191231: write them as 2020-01-01."
        ]
    if 2**53 < most < 2**64:
        return [
            f"Column {name} holds whole numbers of {len(f'{most:.0f}')} digits, of which a float keeps 16: leave the column out "
            "if they are identifiers."
        ]
    return []


def _is_date(number: float) -> bool:
    try:
        dt.datetime.strptime(f"{number:.0f}", "%Y%m%d")
    except ValueError:
        return False
    return True


def describe_copies(columns: Sequence[Column]) -> list[str]:
    """Describe in a sentence which columns repeat others.

    Real columns repeat each other if they are linear functions of each other, categorical ones if only the names of their
    categories differ, and these occur in at least two rows on average. Columns are hashed, and only those with equal hashes are
    compared. Up to 100 columns of a kind, those with different missing cells are also compared, over the rows that both have.

    Parameters
    ----------
    columns : sequence of RealColumn or CategoricalColumn
        The columns in use.

    Returns
    -------
    list of str
        One sentence, or none.
    """
    real = [(j, column) for j, column in enumerate(columns) if isinstance(column, RealColumn)]
    categorical = [(j, column) for j, column in enumerate(columns) if not isinstance(column, RealColumn)]
    least = 2 * math.log(max(len(columns), 2)) - math.log(_MAX_CHANCE_PAIRS)
    n_rows = max((len(_column_values(column)) for column in columns[:1]), default=0)
    if math.lgamma(n_rows + 1) < least:  # even columns of distinct values may be equal by chance
        return []
    groups = [sorted(group) for group in (*_group_equal_real(real), *_group_equal_categorical(categorical))]
    copies = {
        later: first
        for first, *others in groups
        for later in others
        if _surprisal(_column_values(columns[first]), isinstance(columns[first], RealColumn)) >= least
    }
    for of_kind in (real, categorical):
        if len(of_kind) <= _MAX_PAIRWISE_COLUMNS:
            _add_partial_copies(copies, [(j, column) for j, column in of_kind if j not in copies], least)
    pairs = sorted(copies.items())
    if not pairs:
        return []
    names = "; ".join(
        f"{quote(columns[later].name)} of {quote(columns[first].name)}" for later, first in pairs[:_MAX_LISTED_COPIES]
    )
    more = f"; and {len(pairs) - _MAX_LISTED_COPIES} more" if len(pairs) > _MAX_LISTED_COPIES else ""
    return [
        f"{count(len(pairs), 'column is a copy of another', 'columns are copies of others')}, up to unit, sign or names of "
        f"categories, so the same information counts twice: {names}{more}. Drop {'it' if len(pairs) == 1 else 'them'} unless "
        "that is intended."
    ]


def _group_equal_real(columns: Sequence[tuple[int, RealColumn]]) -> Iterator[list[int]]:
    """Yield groups of columns that are linear functions of each other, by their positions."""
    if len(columns) < 2:
        return
    n = len(columns[0][1].values)
    direction = np.random.default_rng(0).standard_normal(n)
    by_position = dict(columns)
    keys = []
    for j, column in columns:
        missing_digest = hashlib.blake2b(np.packbits(np.isnan(column.values)).tobytes(), digest_size=8).digest()
        keys.append((missing_digest, abs(float(np.sum(_standardise_filled(column) * direction))), j))
    keys.sort()
    group = [keys[0][2]]
    for (missing_digest, place, _), (next_digest, next_place, j) in pairwise(keys):
        near = missing_digest == next_digest and next_place - place <= 10 * _ROUNDING * math.sqrt(n)
        if near and _are_equal(_standardise_filled(by_position[group[0]]), _standardise_filled(by_position[j])):
            group.append(j)
            continue
        if len(group) > 1:
            yield group
        group = [j]
    if len(group) > 1:
        yield group


def _standardise_filled(column: RealColumn) -> FloatArray:
    """Return a standardised column, with missing cells at its mean."""
    center, scale, _ = moments(column.values)
    return np.nan_to_num(standardise(column.values, center, scale))


def _are_equal(a: FloatArray, b: FloatArray) -> bool:
    return bool(np.max(np.abs(a - b)) <= _ROUNDING or np.max(np.abs(a + b)) <= _ROUNDING)


def _group_equal_categorical(columns: Sequence[tuple[int, CategoricalColumn]]) -> list[list[int]]:
    """Return groups of columns that partition the rows in the same way, by their positions."""
    groups: dict[bytes, list[int]] = {}
    for j, column in columns:
        # Identify categories by the first row that has them; sets count as missing cells.
        codes = np.maximum(column.codes, -1)
        first_rows = np.full(len(column.categories) + 1, -1, dtype=np.intp)
        first_rows[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
        first_rows[-1] = -1  # missing cells
        groups.setdefault(hashlib.blake2b(first_rows[codes].tobytes(), digest_size=16).digest(), []).append(j)
    return [group for group in groups.values() if len(group) > 1]


def _add_partial_copies(copies: dict[int, int], columns: Sequence[tuple[int, Column]], least: float) -> None:
    """Add columns that equal an earlier one wherever both are observed, although different cells are missing."""
    cells = {j: _column_values(column) for j, column in columns}
    observed = {j: ~np.isnan(values) for j, values in cells.items()}
    real = any(isinstance(column, RealColumn) for _, column in columns)
    for later, values in cells.items():
        for first in cells:
            if first >= later:
                break
            both_observed = observed[first] & observed[later]
            if first in copies or np.array_equal(observed[first], observed[later]) or not both_observed.any():
                continue
            a, b = cells[first][both_observed], values[both_observed]
            equal = _are_linear(a, b) if real else _have_same_groups(a, b)
            if equal and _surprisal(a, real) >= least:
                copies[later] = first
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
        scaled.append(standardise(values, center, scale))
    # An extreme cell may make up nearly all of the variance; the other cells must agree too.
    others = np.delete(scaled[0], int(np.argmax(np.abs(scaled[0]))))
    least = _ROUNDING * float(np.std(others)) if len(others) else 0.0
    apart = min(float(np.max(np.abs(scaled[0] + sign * scaled[1]))) for sign in (-1, 1))
    return apart <= least


def _have_same_groups(a: FloatArray, b: FloatArray) -> bool:
    """Return whether complete columns of codes group the rows in the same way."""
    n_pairs = len(np.unique(np.column_stack([a, b]), axis=0))
    return n_pairs == len(np.unique(a)) == len(np.unique(b))


def _surprisal(cells: FloatArray, real: bool) -> float:
    """Return minus the log probability that a column with the same values in random order repeats this one.

    Categories may have other names, so only how they group the rows is evidence. If they occur in fewer than two rows on average,
    it is none: distinct texts are one-to-one, and a row that is there twice repeats all of them.
    """
    counts = np.unique(cells[~np.isnan(cells)], return_counts=True)[1]
    if not real and counts.sum() < 2 * len(counts):
        return 0.0
    factorials = [counts] if real else [counts, np.bincount(counts)]
    return math.lgamma(counts.sum() + 1) - sum(math.lgamma(n + 1) for part in factorials for n in part.tolist())


# A cell with more than this share of the variance is extreme in a column of at least so many cells: without it the standard
# deviation is less than a tenth.
_DOMINANT_SHARE, _MIN_CELLS = 0.99, 20
_MAX_LISTED_COLUMNS, _MAX_LISTED_CELLS = 5, 3
MIN_EXTREME_DISTANCE = 8.0  # of a cell from the mean of the others, in units of their standard deviation
_REMEDY = ', or fit with standardize="power", which shortens heavy tails'


class _RankedCell(NamedTuple):
    row: int
    value: float
    distance: float  # from the mean of all other rows, in units of their standard deviation


class _ExtremeCells(NamedTuple):
    column: RealColumn
    cells: list[_RankedCell]  # the most extreme first
    dominant: bool  # whether one cell has nearly all of the variance


def describe_tails(table: Table, codes: Mapping[str, FloatArray], shortened: Mapping[str, IntArray]) -> list[str]:
    """Describe in a sentence which cells are so extreme that the others hardly count.

    Parameters
    ----------
    table : Table
    codes : mapping of str to ndarray
        The real columns in use, by name, after their power transform if there is one.
    shortened : mapping of str to ndarray of int
        For a column name, rows whose extreme cells were moved nearer to the others before the search for a tree.

    Returns
    -------
    list of str
        One sentence, or none.
    """
    extremes: list[_ExtremeCells] = []
    for column in table.real:
        if column.name not in codes:
            continue
        dominant = _find_dominant_cell(codes[column.name])
        rows: IntArray | None = shortened.get(column.name)
        if rows is None and dominant is not None:
            rows = np.array([dominant])
        if rows is None:
            continue
        ranked_cells = _rank_cells(column.values, codes[column.name], rows)
        cells = [cell for cell in ranked_cells if cell.distance >= MIN_EXTREME_DISTANCE]
        if cells:
            extremes.append(_ExtremeCells(column, cells, dominant is not None))
    if not extremes:
        return []
    is_one_cell, is_one_column = sum(len(tail.cells) for tail in extremes) == 1, len(extremes) == 1
    pronoun = "it" if is_one_cell else "them"
    descriptions = [
        f"{quote(tail.column.name)} ({_describe_cells(tail, table.row_names)})"
        for tail in extremes[:_MAX_LISTED_COLUMNS]
    ]
    more = f", and {len(extremes) - _MAX_LISTED_COLUMNS} more" if len(extremes) > _MAX_LISTED_COLUMNS else ""
    effects = []
    moved = [tail.column.name in shortened for tail in extremes]
    if any(moved):
        effects.append(f"the tree takes {pronoun} to be nearer to the others")
    if any(tail.dominant for tail, is_moved in zip(extremes, moved, strict=True) if not is_moved):
        effects.append(f"next to {pronoun}, all others look the same")
    helps = any(_power_helps(tail, codes[tail.column.name]) for tail in extremes)
    return [
        f"{'A cell is' if is_one_cell else 'Cells are'} extreme in {'column' if is_one_column else 'columns'} "
        f"{', '.join(descriptions)}{more}: {', and '.join(effects)}. Check {pronoun}, {'' if helps else 'and '}make {pronoun} "
        f"missing if wrong{_REMEDY if helps else ''}."
    ]


def _describe_cells(tail: _ExtremeCells, row_names: Sequence[str] | None) -> str:
    """Describe the most extreme cells of a column."""
    first, *others = (
        f"{cell.value:g} in {row_label(cell.row, row_names)}, {_format_distance(cell.distance)}"
        for cell in tail.cells[:_MAX_LISTED_CELLS]
    )
    more = [f"and {len(tail.cells) - _MAX_LISTED_CELLS} more"] if len(tail.cells) > _MAX_LISTED_CELLS else []
    return "; ".join([f"{first} standard deviations from the other rows", *others, *more])


def _format_distance(distance: float) -> str:
    if distance >= MAX_STANDARDISED:  # where codes end
        return f"more than {MAX_STANDARDISED:g}"
    return f"{distance:.2g}" if distance < 10 or distance >= 1e6 else f"{distance:,.0f}"


def _power_helps(tail: _ExtremeCells, codes: FloatArray) -> bool:
    """Return whether a power transform would bring the cells closer."""
    if codes is not tail.column.values:  # already transformed
        return False
    values = tail.column.values
    scale, _ = ColumnScale.fit(values, "power")
    rows = np.array([cell.row for cell in tail.cells])
    after = _rank_cells(values, scale.encode(values), rows)[0].distance
    return scale.power is not None and after < min(MIN_EXTREME_DISTANCE, tail.cells[0].distance / 2)


def _rank_cells(values: FloatArray, codes: FloatArray, rows: IntArray) -> list[_RankedCell]:
    """Return the cells of some rows, the most extreme first."""
    rows = rows[~np.isnan(values[rows])]
    center, scale, varies = moments(np.delete(codes, rows))
    with np.errstate(over="ignore"):
        distances = np.abs(standardise(codes[rows], center, scale if varies else 1.0))
    cells = [
        _RankedCell(*fields) for fields in zip(rows.tolist(), values[rows].tolist(), distances.tolist(), strict=True)
    ]
    return sorted(cells, key=lambda cell: -cell.distance)


def _find_dominant_cell(values: FloatArray) -> int | None:
    """Return the row of the cell that makes up nearly all of the variance of a column; None if there is none."""
    n = int(np.count_nonzero(~np.isnan(values)))
    if n < _MIN_CELLS:
        return None
    center, scale, _ = moments(values)
    distances = np.abs(standardise(values, center, scale))
    row = int(np.nanargmax(distances))
    if distances[row] ** 2 < 0.9 * _DOMINANT_SHARE * (n - 1):  # the share, but for rounding: most columns end here
        return None
    # In a column of two values, neither can be extreme.
    _, rest, varies = moments(np.delete(values, row))
    share = 1 - (n - 1) / n * (rest / scale) ** 2
    return row if varies and share > _DOMINANT_SHARE else None
