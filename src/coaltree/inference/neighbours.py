"""`rate1` for many rows: rounds of near neighbours among the live lineages, and merging along lists of them.

In every round each live lineage gets a list of near ones, the pairs on the lists merge, the most recent first, and what is merged
inherits the lists of its parts. When half of the lineages are gone, neighbours are looked for anew; the last few thousand are
left to the exact search.

Neighbours are found by cutting the points in two at the median of a random direction, again and again, down to cells of a few
hundred points, within which every pair is looked at; a few such divisions together overlook next to nothing. That takes
time in proportion to the number of points, whatever their shape and however many are equal, and does not depend on the
order of the rows or on threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from ..process.interface import Process
from ._neighbour_kernels import (
    Lists,
    best_partners,
    close_up,
    neighbour_merges,
    neighbours_in_cells,
    new_lists,
    start_heap,
    weigh_neighbours,
)
from .steps import Merges, in_steps

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

LIST_LENGTH = 12
DIVISIONS = 6
CELL = 400  # points in a cell, at most
PROBE_PAIRS = 2_000_000  # weighed at most, to see how good the lists are
FEWEST_PROBES, MOST_PROBES = 10, 200
KEPT = 0.5  # of the lineages are left when neighbours are looked for anew
EXACT_BELOW = 3000  # live lineages, which the exact search takes on


class Round(NamedTuple):
    """How one round began."""

    live: int
    held: float  # share of the lineages looked at whose best partner of all was on their list


def merge_neighbours(
    forest: Any, process: Process, n: int, n_threads: int, merges: Merges, report: Callable[[int], None]
) -> tuple[Lists, int, list[Round]]:
    """Merge leaves along lists of neighbours until few lineages live.

    Parameters
    ----------
    forest : forest
        The messages of n leaves, with `slots_for(n)` slots.
    process : Process
    n : int
    n_threads : int
    merges : Merges
        Where they go.
    report : callable
        Gets the number of merges made so far.

    Returns
    -------
    lists : Lists
        The live lineages, in the first slots.
    done : int
        Merges that were made.
    rounds : list of Round
    """
    lists = new_lists(n, LIST_LENGTH)
    done, rounds = 0, []
    while (live := int(lists.counts[1])) > EXACT_BELOW:
        probes = np.linspace(0, live - 1, min(max(PROBE_PAIRS // live, FEWEST_PROBES), MOST_PROBES)).astype(np.intp)
        partners, keys = np.empty(len(probes), dtype=np.intp), np.empty(len(probes))
        best_partners(forest, probes, live, partners, keys)
        clock = float(merges.heights[n + done - 1])
        height = max(float(np.median(np.where(keys < np.inf, keys, clock))) - clock, 0.0)
        neighbours = nearest(process.coordinates(forest, live, height), LIST_LENGTH, n_threads, live)
        held = (neighbours[probes] == partners[:, None]).any(axis=1) | (keys == np.inf)
        rounds.append(Round(live, float(held.mean())))
        shares = np.linspace(0, live, 17).astype(np.intp)
        Parallel(n_jobs=n_threads, require="sharedmem")(
            delayed(weigh_neighbours)(forest, lists, neighbours, first, last) for first, last in pairwise(shares)
        )
        start_heap(lists)
        goal = max(int(KEPT * live), EXACT_BELOW)
        before = done
        done = in_steps(
            lambda first, last, goal=goal: neighbour_merges(forest, lists, goal, first, last, *merges),  # type: ignore[misc]
            done,
            n - 1,
            report,
        )
        close_up(forest, lists)
        if done == before:
            break
    return lists, done, rounds


def nearest(points: NDArray[np.float32], length: int, n_threads: int, seed: int) -> IntArray:
    """Return for each point some of the nearest others, nearest first; -1 where there are none.

    Parameters
    ----------
    points : ndarray of shape (n_columns, n)
    length : int
        How many for each.
    n_threads : int
    seed : int
        Of the directions.

    Returns
    -------
    ndarray of shape (n, length)
    """
    n = points.shape[1]
    rng = np.random.default_rng(seed)
    distances = np.full((n, length), math.inf, dtype=np.float32)
    neighbours = np.full((n, length), -1)
    with Parallel(n_jobs=n_threads, require="sharedmem") as parallel:
        for _ in range(DIVISIONS if n > CELL else 1):
            order, bounds = _divided(points, rng)
            shares = np.linspace(0, len(bounds) - 1, min(len(bounds) - 1, 16) + 1).astype(np.intp)
            parallel(
                delayed(neighbours_in_cells)(points, order, bounds, first, last, distances, neighbours)
                for first, last in pairwise(shares)
            )
    return neighbours


def _divided(points: NDArray[np.float32], rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Cut points in two, again and again; return their order, and where in it the cells begin and end."""
    n_columns, n = points.shape
    order = np.arange(n)
    bounds = np.array([0, n])
    for _ in range(max(0, math.ceil(math.log2(n / CELL)))):
        direction = np.asarray(rng.standard_normal(n_columns), dtype=np.float32)
        along = np.zeros(n, dtype=np.float32)
        for weight, column in zip(direction, points, strict=True):  # in this order whatever the place of a point
            along += weight * column
        for first, last in pairwise(bounds):
            own = order[first:last]
            own[:] = own[np.argpartition(along[own], len(own) // 2)]
        bounds = np.sort(np.concatenate([bounds, (bounds[:-1] + bounds[1:]) // 2]))
    return order, bounds
