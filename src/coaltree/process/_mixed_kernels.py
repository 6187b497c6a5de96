"""Two forests side by side as one: columns of different kinds are independent given the tree, so everything adds up.

Three or more parts nest: ``PairForest(a, PairForest(b, c))``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import operations as op


class PairForest(NamedTuple):
    """The messages of two independent groups of columns; the three ``height`` arrays are one array."""

    height: NDArray[np.float64]
    first: Any
    second: Any


@op.PAIR_SIZE.supply(PairForest)
def _(forest):
    return op.pair_size(forest.first) + op.pair_size(forest.second)


@op.LOAD_PAIR.supply(PairForest)
def _(forest, i, j, pair):
    cut = op.pair_size(forest.first)
    op.load_pair(forest.first, i, j, pair[:cut])
    op.load_pair(forest.second, i, j, pair[cut:])


@op.LOG_Z.supply(PairForest)
def _(forest, pair, h):
    cut = op.pair_size(forest.first)
    return op.log_z(forest.first, pair[:cut], h) + op.log_z(forest.second, pair[cut:], h)


@op.SLOPES.supply(PairForest)
def _(forest, pair, h):
    cut = op.pair_size(forest.first)
    rise, drop, rise_falls, drop_falls = op.slopes(forest.first, pair[:cut], h)
    more = op.slopes(forest.second, pair[cut:], h)
    return rise + more[0], drop + more[1], rise_falls + more[2], drop_falls + more[3]


@op.LEAST_VARIANCE.supply(PairForest)
def _(forest, i):
    return min(op.least_variance(forest.first, i), op.least_variance(forest.second, i))


@op.LEAST_SLOPE.supply(PairForest)
def _(forest, pair, low, high, shift):
    cut = op.pair_size(forest.first)
    return op.least_slope(forest.first, pair[:cut], low, high, shift) + op.least_slope(
        forest.second, pair[cut:], low, high, shift
    )


@op.DROP_FALLS_RANGE.supply(PairForest)
def _(forest, pair, low, high):
    cut = op.pair_size(forest.first)
    least, most = op.drop_falls_range(forest.first, pair[:cut], low, high)
    more = op.drop_falls_range(forest.second, pair[cut:], low, high)
    return least + more[0], most + more[1]


@op.HIGHEST.supply(PairForest)
def _(forest, pair, c):
    cut = op.pair_size(forest.first)
    # where each rise is below c / 2 their sum is below c
    return max(op.highest(forest.first, pair[:cut], 0.5 * c), op.highest(forest.second, pair[cut:], 0.5 * c))


@op.ADD_LEAST_SLOPES.supply(PairForest)
def _(forest, i, first, last, low, high, shifts, slopes):
    op.add_least_slopes(forest.first, i, first, last, low, high, shifts, slopes)
    op.add_least_slopes(forest.second, i, first, last, low, high, shifts, slopes)


@op.MERGE.supply(PairForest)
def _(forest, i, j, h, into):
    op.merge(forest.first, i, j, h, into)
    op.merge(forest.second, i, j, h, into)


@op.MOVE.supply(PairForest)
def _(forest, source, target):
    op.move(forest.first, source, target)
    op.move(forest.second, source, target)


@op.PLACE_SIZE.supply(PairForest)
def _(forest):
    return op.place_size(forest.first) + op.place_size(forest.second)


@op.LOAD_PLACE.supply(PairForest)
def _(forest, below, beyond, turn, third, scratch, place):
    cut = op.place_size(forest.first)
    op.load_place(forest.first, below, beyond, turn, third, scratch, place[:cut])
    op.load_place(forest.second, below, beyond, turn, third, scratch, place[cut:])


@op.LOG_Z_AT.supply(PairForest)
def _(forest, place, h):
    cut = op.place_size(forest.first)
    return op.log_z_at(forest.first, place[:cut], h) + op.log_z_at(forest.second, place[cut:], h)


@op.NOISY.supply(PairForest)
def _(forest):
    return op.noisy(forest.first) or op.noisy(forest.second)


@op.ROOT_LOG_DENSITY.supply(PairForest)
def _(forest, i):
    return op.root_log_density(forest.first, i) + op.root_log_density(forest.second, i)
