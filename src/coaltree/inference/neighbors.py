"""The neighbour search: `rate1` for many rows, by rounds of merges along lists of near neighbours.

In each round every live lineage gets a list of its nearest neighbours. The pairs on the lists merge, lowest merge first, and a
merged lineage inherits the lists of its parts. When half of the lineages are gone, the next round computes new lists. The last
few thousand lineages are left to the exact search.

Neighbours are found by random projections. A division repeatedly splits the points at the median of a random direction, down
to cells of a few hundred points, and all pairs within a cell are compared. Divisions are repeated until the recall is high.
This takes time linear in the number of points, whatever their distribution and even if many are equal. The result does not
depend on the number of threads.

Probes and ties depend on the order of the lineages; callers provide a canonical order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..process.base import Process
from ..process.kernels.messages import Forest
from ..tree.arrays import Merges
from .checkpoint import Round, SearchCheckpoint
from .executors import Division, ThreadExecutor, run_in_chunks
from .kernels.neighbors import (
    Lists,
    best_keys,
    close_up,
    fill_holes,
    least_distances,
    neighbor_merges,
    start_heap,
    weigh_neighbors,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

LIST_LENGTH = 10  # with 16 trees are no better, on tables of `benchmarks/clusters.py --folder` with 5,000 rows
# After one division enough probes may be right, but trees of few columns lose more: `python benchmarks/quality.py`.
MIN_DIVISIONS, MAX_DIVISIONS = 6, 30
TARGET_RECALL = 0.97  # share of probes whose nearest point is found; below, the points are divided once more
N_RECALL_PROBES = 64
N_FILLINGS = 3  # first divisions, after each of which missing coordinates are filled from the neighbours found so far
MAX_CELL_SIZE = 400  # points
MAX_PROBE_PAIRS = 500_000  # to measure the quality of the lists
MIN_PROBES, MAX_PROBES = 10, 100
MIN_LIVE_SHARE = 0.5  # of the lineages, at which a round ends


def merge_neighbors(
    forest: Forest,
    process: Process,
    nodes: IntArray,
    min_lineages: int,
    executor: ThreadExecutor,
    merges: Merges,
    report: Callable[[float, int], None],
    checkpoint: SearchCheckpoint | None = None,
) -> tuple[Lists, int, list[Round]]:
    """Merge lineages along lists of neighbours until `min_lineages` are left.

    Parameters
    ----------
    forest : Forest
        The messages of n lineages, in the first slots in order of age, with `slots_for(n)` slots.
    process : Process
    nodes : ndarray of shape (n,)
        Their node numbers in the tree.
    min_lineages : int
        Number of lineages to leave.
    executor : ThreadExecutor
        Runs the comparison of points.
    merges : Merges
        Output for the merges.
    report : callable
        Called with the share of the work done, and the number of live lineages.
    checkpoint : SearchCheckpoint, optional
        Stores the state after each round. If it holds the state of an earlier search, that search is resumed.

    Returns
    -------
    lists : Lists
        The live lineages, in the first slots.
    done : int
        Number of merges so far.
    rounds : list of Round
    """
    n = len(merges.children) + 1
    lists = Lists(len(nodes), LIST_LENGTH)
    np.asarray(lists.node)[: len(nodes)] = nodes
    done, rounds = (checkpoint and checkpoint.resume(forest, lists, merges)) or (n - len(nodes), [])
    while (live := int(lists.counts[1])) > min_lineages:
        n_probes = min(max(MAX_PROBE_PAIRS // live, MIN_PROBES), MAX_PROBES, live)
        probes = np.random.default_rng(live).choice(live, n_probes, replace=False)
        keys = np.empty(n_probes)
        executor.share(n_probes, best_keys, forest, live, probes, keys)
        clock = float(merges.heights[n + done - 1])
        height = max(float(np.median(np.where(keys < np.inf, keys, clock))) - clock, 0.0)

        # The time of a round is proportional to its lineages. About half of it goes into finding neighbours.
        def report_neighbors(share: float, live: int = live) -> None:
            report(1 - live / n * (1 - (1 - MIN_LIVE_SHARE) * 0.5 * share), live)

        def report_merges(k: int, live: int = live) -> None:
            report(1 - 0.5 * (live * MIN_LIVE_SHARE + max(n - k, 0)) / n, n - k)

        points = process.lineage_points(forest, live, height)
        neighbors = find_nearest(points, LIST_LENGTH, executor, live, report_neighbors)
        executor.share(live, weigh_neighbors, forest, lists, neighbors)
        rounds.append(Round(live, float(np.mean(np.asarray(lists.keys)[probes, 0] <= keys))))
        start_heap(lists)
        goal = max(int(MIN_LIVE_SHARE * live), min_lineages)
        before = done
        done = run_in_chunks(
            lambda first, last, goal=goal: neighbor_merges(forest, lists, goal, first, last, *merges),  # type: ignore[misc]
            done,
            n - 1,
            report_merges,
        )
        close_up(forest, lists)
        if done == before:
            break
        if checkpoint:
            checkpoint.write(forest, lists, merges, done, rounds)
    return lists, done, rounds


def find_nearest(
    points: NDArray[np.float32],
    length: int,
    executor: ThreadExecutor,
    seed: int,
    report: Callable[[float], None] = lambda share: None,
) -> IntArray:
    """Find approximate nearest neighbours of all points, nearest first; -1 if there are fewer than `length`.

    Parameters
    ----------
    points : ndarray of shape (n_columns, n)
        NaN is a missing coordinate.
    length : int
        Number of neighbours of each point.
    executor : ThreadExecutor
        Runs the comparison of points.
    seed : int
        Seed of the random directions.
    report : callable, optional
        Called with the share of the work done.

    Returns
    -------
    ndarray of shape (n, length)
    """
    points, n = np.ascontiguousarray(points), points.shape[1]
    rng = np.random.default_rng(seed)
    distances = np.full((n, length), math.inf, dtype=np.float32)
    neighbors = np.full((n, length), -1, dtype=np.intp)
    missing = np.isnan(points)
    n_fillings = N_FILLINGS if missing.any() else 0
    filled = np.where(missing, _column_means(points), points) if n_fillings else points

    def scan(count: int) -> Iterator[None]:
        """Compare the points within the cells of `count` divisions, which do not depend on each other's results."""
        divisions: Iterator[Division] = (_divide(filled, rng) for _ in range(count))
        return executor.scan_cells(points, divisions, distances, neighbors)

    if n <= MAX_CELL_SIZE:
        list(scan(1))
        return neighbors
    probes = rng.choice(n, N_RECALL_PROBES, replace=False)
    least = np.empty(N_RECALL_PROBES, dtype=np.float32)
    executor.share(N_RECALL_PROBES, least_distances, points, probes, least)
    done, recall = 0, 0.0
    while done < MIN_DIVISIONS or (recall < TARGET_RECALL and done < MAX_DIVISIONS):
        for _ in scan(1 if done < n_fillings else max(MIN_DIVISIONS - done, 1)):
            done += 1
            report(min(done / MIN_DIVISIONS, 1.0))
        if done <= n_fillings:  # column means at first, then means over neighbours
            executor.share(n, fill_holes, points, neighbors, filled)
        recall = float(np.mean((distances[probes, 0] <= least * (1 + 1e-5)) | (least == np.inf)))
    return neighbors


def _column_means(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean of each coordinate over the points that have it, with shape (n_columns, 1)."""
    observed = ~np.isnan(points)
    totals = np.where(observed, points, 0).sum(axis=1, keepdims=True, dtype=np.float64)
    return np.asarray(totals / np.maximum(observed.sum(axis=1, keepdims=True), 1), dtype=np.float32)


def _divide(points: NDArray[np.float32], rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Split points repeatedly in two; return a permutation of the points, and the bounds of the cells in it."""
    n_columns, n = points.shape
    order = np.arange(n, dtype=np.intp)
    bounds = np.array([0, n], dtype=np.intp)
    projection, term = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32)
    for _ in range(max(0, math.ceil(math.log2(n / MAX_CELL_SIZE)))):
        direction = np.asarray(rng.standard_normal(n_columns), dtype=np.float32)
        projection[:] = 0.0
        for weight, column in zip(direction, points, strict=True):  # not `@`, whose rounding depends on a point's index
            projection += np.multiply(weight, column, out=term)
        for first, last in pairwise(bounds):
            members = order[first:last]
            members[:] = members[np.argpartition(projection[members], len(members) // 2)]
        bounds = np.sort(np.concatenate([bounds, (bounds[:-1] + bounds[1:]) // 2]))
    return order, bounds
