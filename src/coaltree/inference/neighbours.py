"""`rate1` for many rows: rounds of near neighbours among the live lineages, and merging along lists of them.

In every round each live lineage gets a list of near ones, the pairs on the lists merge, the most recent first, and what is merged
inherits the lists of its parts. When half of the lineages are gone, neighbours are looked for anew; the last few thousand are
left to the exact search.

Neighbours are found by cutting the points in two at the median of a random direction, again and again, down to cells of a few
hundred points, within which every pair is looked at, and by doing so again until next to nothing is overlooked. That takes
time in proportion to the number of points, whatever their shape and however many are equal, and does not depend on
threads.

Which lineages are looked at, by way of trial or when there are ties, depends on their order: whoever calls sees to that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..process.base import Process
from ..process.kernels.messages import Forest
from ..process.layout import read_messages
from .checkpoint import Round, SearchCheckpoint
from .kernels.neighbours import (
    Lists,
    best_keys,
    close_up,
    fill_holes,
    least_distances,
    neighbour_merges,
    start_heap,
    weigh_neighbours,
)
from .merges import Merges, run_in_chunks
from .thread_executor import Division, ThreadExecutor

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

LIST_LENGTH = 16
MIN_DIVISIONS, MAX_DIVISIONS = 6, 30
TARGET_RECALL = 0.97  # of some points the nearest one is to be found, else points are divided once more
N_RECALL_PROBES = 64  # are those points
N_FILLINGS = 3  # divisions after which cells that are missing are put nearer to where they belong
MAX_CELL_SIZE = 400  # points in a cell, at most
PROBE_PAIRS = 500_000  # weighed at most, to see how good the lists are
MIN_PROBES, MAX_PROBES = 10, 100
MIN_LIVE_SHARE = 0.5  # of the lineages are left when neighbours are looked for anew


def merge_neighbours(
    forest: Forest,
    process: Process,
    nodes: IntArray,
    few: int,
    executor: ThreadExecutor,
    merges: Merges,
    report: Callable[[float, int], None],
    kept: SearchCheckpoint | None = None,
) -> tuple[Lists, int, list[Round]]:
    """Merge lineages along lists of neighbours until few live.

    Parameters
    ----------
    forest : Forest
        The messages of n lineages, in the first slots in order of age, with `slots_for(n)` slots.
    process : Process
    nodes : ndarray of shape (n,)
        Their numbers in the tree.
    few : int
        Lineages that are left.
    executor : ThreadExecutor
        Who looks at pairs of points.
    merges : Merges
        Where they go.
    report : callable
        Gets the share of the work that is done, and the number of live lineages.
    kept : SearchCheckpoint, optional
        Where the state after each round goes, and that of an earlier search is taken up.

    Returns
    -------
    lists : Lists
        The live lineages, in the first slots.
    done : int
        Merges that were made.
    rounds : list of Round
    """
    n = len(merges.children) + 1
    lists = Lists(len(nodes), LIST_LENGTH)
    np.asarray(lists.node)[: len(nodes)] = nodes
    done, rounds = (kept and kept.resume(forest, lists, merges)) or (n - len(nodes), [])
    while (live := int(lists.counts[1])) > few:
        n_probes = min(max(PROBE_PAIRS // live, MIN_PROBES), MAX_PROBES, live)
        probes = np.random.default_rng(live).choice(live, n_probes, replace=False)
        keys = np.empty(n_probes)
        executor.share(n_probes, best_keys, forest, live, probes, keys)
        clock = float(merges.heights[n + done - 1])
        height = max(float(np.median(np.where(keys < np.inf, keys, clock))) - clock, 0.0)

        # a round takes a time in proportion to its lineages, about half of it to find neighbours
        def found(share: float, live: int = live) -> None:
            report(1 - live / n * (1 - (1 - MIN_LIVE_SHARE) * 0.5 * share), live)

        def merged(k: int, live: int = live) -> None:
            report(1 - 0.5 * (live * MIN_LIVE_SHARE + max(n - k, 0)) / n, n - k)

        points = process.coordinates(read_messages(forest, slice(0, live)), height)
        neighbours = nearest(points, LIST_LENGTH, executor, live, found)
        executor.share(live, weigh_neighbours, forest, lists, neighbours)
        rounds.append(Round(live, float(np.mean(np.asarray(lists.keys)[probes, 0] <= keys))))
        start_heap(lists)
        goal = max(int(MIN_LIVE_SHARE * live), few)
        before = done
        done = run_in_chunks(
            lambda first, last, goal=goal: neighbour_merges(forest, lists, goal, first, last, *merges),  # type: ignore[misc]
            done,
            n - 1,
            merged,
        )
        close_up(forest, lists)
        if done == before:
            break
        if kept:
            kept.write(forest, lists, merges, done, rounds)
    return lists, done, rounds


def nearest(
    points: NDArray[np.float32],
    length: int,
    executor: ThreadExecutor,
    seed: int,
    report: Callable[[float], None] = lambda share: None,
) -> IntArray:
    """Return for each point some of the nearest others, nearest first; -1 where there are none.

    Parameters
    ----------
    points : ndarray of shape (n_columns, n)
    length : int
        How many for each.
    executor : ThreadExecutor
        Who looks at pairs.
    seed : int
        Of the directions.
    report : callable, optional
        Gets the share of the work that is done.

    Returns
    -------
    ndarray of shape (n, length)
    """
    points, n = np.ascontiguousarray(points), points.shape[1]
    rng = np.random.default_rng(seed)
    distances = np.full((n, length), math.inf, dtype=np.float32)
    neighbours = np.full((n, length), -1, dtype=np.intp)
    holes = np.isnan(points)
    fillings = N_FILLINGS if holes.any() else 0
    filled = np.where(holes, _means(points), points) if fillings else points

    def look(count: int) -> Iterator[None]:
        """Look within the cells of some divisions that do not depend on what is found in the ones before."""
        divisions: Iterator[Division] = (_divided(filled, rng) for _ in range(count))
        return executor.scan_cells(points, divisions, distances, neighbours)

    if n <= MAX_CELL_SIZE:
        list(look(1))
        return neighbours
    probes = rng.choice(n, N_RECALL_PROBES, replace=False)
    least = np.empty(N_RECALL_PROBES, dtype=np.float32)
    executor.share(N_RECALL_PROBES, least_distances, points, probes, least)
    done, found = 0, 0.0
    while done < MIN_DIVISIONS or (found < TARGET_RECALL and done < MAX_DIVISIONS):
        for _ in look(1 if done < fillings else max(MIN_DIVISIONS - done, 1)):
            done += 1
            report(min(done / MIN_DIVISIONS, 1.0))
        if done <= fillings:  # first where a row would be on average, then where its neighbours are
            executor.share(n, fill_holes, points, neighbours, filled)
        found = float(np.mean((distances[probes, 0] <= least * (1 + 1e-5)) | (least == np.inf)))
    return neighbours


def _means(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return each coordinate's mean over the points that have it, as a column."""
    seen = ~np.isnan(points)
    totals = np.where(seen, points, 0).sum(axis=1, keepdims=True, dtype=np.float64)
    return np.asarray(totals / np.maximum(seen.sum(axis=1, keepdims=True), 1), dtype=np.float32)


def _divided(points: NDArray[np.float32], rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Cut points in two, again and again; return their order, and where in it the cells begin and end."""
    n_columns, n = points.shape
    order = np.arange(n, dtype=np.intp)
    bounds = np.array([0, n], dtype=np.intp)
    along, term = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32)
    for _ in range(max(0, math.ceil(math.log2(n / MAX_CELL_SIZE)))):
        direction = np.asarray(rng.standard_normal(n_columns), dtype=np.float32)
        along[:] = 0.0
        for weight, column in zip(direction, points, strict=True):  # in this order whatever the place of a point
            along += np.multiply(weight, column, out=term)
        for first, last in pairwise(bounds):
            own = order[first:last]
            own[:] = own[np.argpartition(along[own], len(own) // 2)]
        bounds = np.sort(np.concatenate([bounds, (bounds[:-1] + bounds[1:]) // 2]))
    return order, bounds
