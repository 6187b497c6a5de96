"""Messages over the states of categorical columns, laid out for work on slots here and there, as Markov chains do it.

The messages are those of `CategoricalForest`. But columns stand in the order of their numbers of states, most first, and a slot
has the first state of all columns side by side, then the second of all that have one, and so on: every loop then runs over
columns that lie together, touches few arrays, and is one that LLVM vectorises.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import jit
from . import operations as op
from ._decay_kernels import decay
from ._multinomial_kernels import POLE, CategoricalForest, decay_of, row, sum_of_logs

FloatArray = NDArray[np.float64]

WORK = 5  # rows of scratch
MOST = 1 / POLE  # of what agrees so little that it cannot be


class SiteForest(NamedTuple):
    """Messages ``sqrt(q_k) M_k`` of categorical columns, normalised so that ``sum_k q_k M_k = 1``."""

    height: FloatArray  # (slots,)
    m: FloatArray  # (states of all columns, slots), by the states' ranks in their columns
    first: NDArray[np.intp]  # (ranks + 1,), where the states of each rank begin
    root_q: FloatArray  # (states of all columns,), sqrt(q)
    over_root_q: FloatArray  # 1 / sqrt(q)
    rate: FloatArray  # (columns,)
    common_rate: float  # NaN if columns have different ones
    work: FloatArray  # (columns, WORK), scratch


def as_sites(forest: CategoricalForest) -> SiteForest:
    """Return the same messages in this order."""
    counts = np.diff(forest.start)
    columns = np.argsort(-counts, kind="stable")
    ranks = [columns[counts[columns] > rank] for rank in range(int(counts.max(initial=0)))]
    states = np.concatenate([forest.start[own] + rank for rank, own in enumerate(ranks)])
    return SiteForest(
        forest.height,
        np.asfortranarray(forest.m[states]),
        np.cumsum([0, *map(len, ranks)]),
        forest.root_q[states],
        1 / forest.root_q[states],
        forest.rate[columns],
        forest.common_rate,
        np.empty((len(columns), WORK), order="F"),
    )


# pair = [heights, then the agreement of each column, then two rows of scratch]
@op.PAIR_SIZE.supply(SiteForest)
def _(forest):
    return 1 + 3 * forest.rate.shape[0]


@op.LOAD_PAIR.supply(SiteForest)
def _(forest, i, j, pair):
    pair[0] = forest.height[i] + forest.height[j]
    _set_agreements(forest, i, j, row(pair, forest.rate.shape[0], 0))


@jit
def _set_agreements(forest, i, j, agreement):
    """Put the inner products of two messages into entries for each column."""
    m, first = forest.m, forest.first
    agreement[:] = 0.0
    for r in range(len(first) - 1):
        one, other = m[first[r] : first[r + 1], i], m[first[r] : first[r + 1], j]
        for d in range(len(one)):
            agreement[d] += one[d] * other[d]


@op.LOG_Z.supply(SiteForest)
def _(forest, pair, h):
    n = forest.rate.shape[0]
    agreement, z, scratch = row(pair, n, 0), row(pair, n, 1), row(pair, n, 2)
    lost = forest.work[:, 0]
    decay_of(forest, max(2 * h - pair[0], 0.0), z, lost, scratch)
    for d in range(n):
        z[d] = agreement[d] * z[d] + lost[d]
    return sum_of_logs(z, scratch)


@op.HIGHEST.supply(SiteForest)
def _(forest, pair, c):
    disagreement = 0.0
    for d in range(forest.rate.shape[0]):
        disagreement += max(1 - pair[1 + d], 0.0)
    return 0.5 * (2 * disagreement / c + pair[0])  # since rate b / (exp(rate g) - b) <= b / g


@op.LEAST_VARIANCE.supply(SiteForest)
def _(forest, i):
    return math.inf


@op.MERGE.supply(SiteForest)
def _(forest, i, j, h, into):
    if into == j:  # what is in j is read last
        i, j = j, i
    m, first, z = forest.m, forest.first, forest.work[:, 4]
    to_i, to_j = max(h - forest.height[i], 0.0), max(h - forest.height[j], 0.0)
    kept_i, lost_i, kept_j, lost_j = forest.work[:, 0], forest.work[:, 1], forest.work[:, 2], forest.work[:, 3]
    keep_i = lose_i = keep_j = lose_j = 0.0
    if forest.common_rate > 0:
        keep_i, lose_i = math.exp(-forest.common_rate * to_i), -math.expm1(-forest.common_rate * to_i)
        keep_j, lose_j = math.exp(-forest.common_rate * to_j), -math.expm1(-forest.common_rate * to_j)
    else:
        decay(forest.rate, to_i, kept_i, lost_i, z)
        decay(forest.rate, to_j, kept_j, lost_j, z)
    z[:] = 0.0
    # a few arrays a loop: with more of them LLVM cannot see to it that none is part of another
    for r in range(len(first) - 1):
        span = slice(first[r], first[r + 1])
        q, one, other, joint = forest.root_q[span], m[span, i], m[span, j], m[span, into]
        if forest.common_rate > 0:
            for d in range(len(q)):
                joint[d] = (lose_i * q[d] + keep_i * one[d]) * (lose_j * q[d] + keep_j * other[d])
        else:
            for d in range(len(q)):
                joint[d] = lost_i[d] * q[d] + kept_i[d] * one[d]
            for d in range(len(q)):
                joint[d] *= lost_j[d] * q[d] + kept_j[d] * other[d]
        for d in range(len(q)):
            z[d] += joint[d]
    impossible = False
    for d in range(len(z)):
        impossible |= z[d] < POLE
        z[d] = 1 / max(z[d], POLE)
    for r in range(len(first) - 1):
        over, joint = forest.over_root_q[first[r] : first[r + 1]], m[first[r] : first[r + 1], into]
        for d in range(len(over)):
            joint[d] *= over[d] * z[d]
    if impossible:  # two states meet that no time parts: log Z is -inf there, and any message will do
        for r in range(len(first) - 1):
            q, joint = forest.root_q[first[r] : first[r + 1]], m[first[r] : first[r + 1], into]
            for d in range(len(q)):
                if z[d] >= MOST:
                    joint[d] = q[d]


@op.MOVE.supply(SiteForest)
def _(forest, source, target):
    one, other = forest.m[:, source], forest.m[:, target]
    for k in range(len(one)):
        other[k] = one[k]


@op.ROOT_LOG_DENSITY.supply(SiteForest)
def _(forest, i):
    return 0.0


# place = [turn, two heights, then of each column 1 and the products of the third message with either of the two and with both,
# each over what those two agree, and room for more]; the way between the two is the same wherever they meet
PLACE_ROWS = 9


@op.PLACE_SIZE.supply(SiteForest)
def _(forest):
    return 3 + PLACE_ROWS * forest.rate.shape[0]


@op.LOAD_PLACE.supply(SiteForest)
def _(forest, below, beyond, turn, third, scratch, place):
    m, first, n = forest.m, forest.first, forest.rate.shape[0]
    place[0], place[1], place[2] = turn, forest.height[below], forest.height[third]
    rows = place[2:]
    none, with_below, with_beyond, with_both = (
        row(rows, n, 0),
        row(rows, n, 1),
        row(rows, n, 2),
        row(rows, n, 3),
    )
    kept, lost = row(rows, n, 4), row(rows, n, 5)
    decay_of(forest, max(turn - forest.height[below], 0.0), kept, lost, row(rows, n, 6))
    _set_agreements(forest, below, third, with_below)
    _set_agreements(forest, beyond, third, with_beyond)
    none[:] = 0.0
    with_both[:] = 0.0
    product = row(rows, n, 6)
    for r in range(len(first) - 1):
        one, other, own = (
            m[first[r] : first[r + 1], below],
            m[first[r] : first[r + 1], beyond],
            m[first[r] : first[r + 1], third],
        )
        over = forest.over_root_q[first[r] : first[r + 1]]
        for d in range(len(one)):
            product[d] = one[d] * other[d]
        for d in range(len(one)):
            none[d] += product[d]
        for d in range(len(one)):
            with_both[d] += product[d] * own[d] * over[d]
    impossible = False
    for d in range(n):
        z = kept[d] * none[d] + lost[d]
        impossible |= z < POLE
        none[d] = 1 / max(z, POLE)
    for d in range(n):
        with_below[d] *= none[d]
    for d in range(n):
        with_beyond[d] *= none[d]
    for d in range(n):
        with_both[d] *= none[d]
    if impossible:  # two states meet that no time parts: any message will do, as in `merge`
        for d in range(n):
            if none[d] >= MOST:
                none[d] = with_below[d] = with_beyond[d] = with_both[d] = 1.0


@op.LOG_Z_AT.supply(SiteForest)
def _(forest, place, h):
    n, rows = forest.rate.shape[0], place[2:]
    none, with_below, with_beyond, with_both = (
        row(rows, n, 0),
        row(rows, n, 1),
        row(rows, n, 2),
        row(rows, n, 3),
    )
    kept, lost, z, other, scratch = (
        row(rows, n, 4),
        row(rows, n, 5),
        row(rows, n, 6),
        row(rows, n, 7),
        row(rows, n, 8),
    )
    to_beyond, to_below, to_third = max(place[0] - h, 0.0), max(h - place[1], 0.0), max(h - place[2], 0.0)
    if forest.common_rate > 0:
        rate = -forest.common_rate
        keep, lose = math.exp(rate * to_third), -math.expm1(rate * to_third)
        keep_below, lose_below = math.exp(rate * to_below), -keep * math.expm1(rate * to_below)
        keep_beyond, lose_beyond = math.exp(rate * to_beyond), -math.expm1(rate * to_beyond)
        both, one, two, neither = (
            keep * keep_below * keep_beyond,
            keep * keep_below * lose_beyond,
            lose_below * keep_beyond,
            lose_below * lose_beyond,
        )
        for d in range(n):
            z[d] = lose + neither * none[d] + one * with_below[d] + two * with_beyond[d] + both * with_both[d]
        return sum_of_logs(z, scratch)
    decay(forest.rate, to_beyond, kept, lost, scratch)
    for d in range(n):
        z[d] = lost[d] * none[d] + kept[d] * with_beyond[d]
    for d in range(n):
        other[d] = lost[d] * with_below[d] + kept[d] * with_both[d]
    decay(forest.rate, to_below, kept, lost, scratch)
    for d in range(n):
        z[d] = lost[d] * z[d] + kept[d] * other[d]
    decay(forest.rate, to_third, kept, lost, scratch)
    for d in range(n):
        z[d] = lost[d] + kept[d] * z[d]
    return sum_of_logs(z, scratch)
