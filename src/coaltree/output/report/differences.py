"""What sets groups of rows apart: how their cells differ from those of all other rows, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .facts import ColumnFacts, RealFacts

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class Differences(NamedTuple):
    """How groups differ from all other rows in one column, an entry for each group."""

    effect: FloatArray  # 0 where one of the two sides has no observed cell
    inside: FloatArray  # mean, or share of the category
    outside: FloatArray
    category: IntArray  # which one the shares are of; -1 for a real column


def tally(column: ColumnFacts, groups: IntArray, n_groups: int) -> FloatArray:
    """Return what is to be added up over groups of rows.

    Parameters
    ----------
    column : RealFacts or CategoricalFacts
    groups : ndarray of int, shape (n_rows,)
        The group of each row.
    n_groups : int

    Returns
    -------
    ndarray of shape (n_groups, k)
        Of a real column the number of observed cells and the sum of their standardised values; of others the number of cells
        of each category.
    """
    seen = ~column.missing
    if isinstance(column, RealFacts):
        standardised = (column.values[seen] - column.mean) / column.sd
        sums = np.bincount(groups[seen], weights=standardised, minlength=n_groups)
        return np.column_stack([np.bincount(groups[seen], minlength=n_groups), sums]).astype(np.float64)
    n_categories = len(column.categories)
    cells = groups[seen] * n_categories + column.codes[seen]
    counts = np.bincount(cells, minlength=n_groups * n_categories)
    return counts.reshape(n_groups, n_categories).astype(np.float64)


def differences(column: ColumnFacts, inside: FloatArray, total: FloatArray) -> Differences:
    """Compare groups with all other rows.

    Parameters
    ----------
    column : RealFacts or CategoricalFacts
    inside : ndarray of shape (n_groups, k)
        Tallies of the groups.
    total : ndarray of shape (k,)
        That of all rows.

    Returns
    -------
    Differences
        The effect of a real column is the difference of the means in standard deviations of the column. Of a categorical column
        it is that of the category which the group has more of than others, most clearly by Cohen's h: the difference of
        ``2 arcsin(sqrt(share))``, at most 3.14.
    """
    outside = total - inside
    if isinstance(column, RealFacts):
        both = (inside[:, 0] > 0) & (outside[:, 0] > 0)
        within, without = (part[:, 1] / np.maximum(part[:, 0], 1) for part in (inside, outside))
        return Differences(
            np.where(both, within - without, 0.0),
            column.mean + column.sd * within,
            column.mean + column.sd * without,
            np.full(len(inside), -1),
        )
    n_inside, n_outside = inside.sum(axis=1), outside.sum(axis=1)
    shares, others = (
        np.clip(part / np.maximum(count, 1)[:, None], 0.0, 1.0)
        for part, count in ((inside, n_inside), (outside, n_outside))
    )
    angles = 2 * (np.arcsin(np.sqrt(shares)) - np.arcsin(np.sqrt(others)))
    best = angles.argmax(axis=1)
    at = np.arange(len(inside)), best
    return Differences(np.where((n_inside > 0) & (n_outside > 0), angles[at], 0.0), shares[at], others[at], best)


def strongest(found: Sequence[Differences], group: int, most: int, least_effect: float) -> list[int]:
    """Return the columns in which a group differs most, the strongest first; none with less of an effect."""
    effects = np.array([abs(own.effect[group]) for own in found])
    order = np.argsort(-np.round(effects, 9), kind="stable")
    return [int(k) for k in order[:most] if effects[k] >= least_effect]
