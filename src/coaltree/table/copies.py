"""Columns that say the same as another column."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from .cells import FloatArray
from .columns import CategoricalColumn, Column, RealColumn
from .scaling import moments, standardised
from .wording import count

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
        later: first for first, *others in groups for later in others if _surprise(_cells(columns[first])) >= least
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
    cells = {j: _cells(column) for j, column in columns}
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


def _cells(column: Column) -> FloatArray:
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
