"""The neighbour search on a Dask cluster: times compared with threads, and a cost model for more rows.

Run with ``python benchmarks/cluster.py`` after ``pip install ".[bench]"``; it takes some minutes on two cores. ``--rows N`` takes
other than 200,000 rows, ``--quick`` is a smoke run.

``--parquet 2000000`` writes so many rows into a folder of parquet files, and fits them by the command line with two workers of at
most 3 GB (``--limit``), while the memory of the workers is watched.

Clustered points in ten dimensions, with fixed parameters. Trees of threads and of workers are compared merge for merge.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import pickle
import re
import resource
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

import coaltree as ct
from coaltree.inference import neighbors
from coaltree.inference.executors import BLOCK_POINTS, DaskExecutor, find_near_in_cells
from coaltree.inference.kernels.neighbors import insert_neighbors
from scale import N_COLUMNS, points

N_JOBS = 2
LENGTH = neighbors.LIST_LENGTH
BYTES_BACK = LENGTH * (4 + 2)  # a distance and a place for each neighbour
REPEATS = 3
BOUND = 1.5  # of the time of workers by that of threads
PREDICTED_ROWS, PREDICTED_WORKERS = (10_000_000, 100_000_000), (8, 32, 128)
PARTS = 16  # files of a folder


def process():
    return ct.Brownian(np.full(N_COLUMNS, 10.0), 0.03)


def run_search(X, client=None):
    """Return the tree of a table, and the seconds that it took."""
    start = time.perf_counter()
    result = ct.greedy(X, process(), search="neighbors", n_jobs=N_JOBS, client=client)
    return result.tree, time.perf_counter() - start


@contextlib.contextmanager
def two_workers(limit="auto"):
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=limit) as workers,
        Client(workers, set_as_default=False) as client,
    ):
        yield client


def peak():
    """Return the most memory that this process has had, in bytes; what getrusage says begins with that of its parent."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", status)[1])


# -- the ratio ----------------------------------------------------------------------------------------


def print_ratio(client, n, repeats):
    """Print how long workers take beside threads, in turn, and what workers have had in memory."""
    X = points(n)
    took = {"threads": [], "workers": []}
    run_search(X[:80_000], client)  # workers import now what they need
    before = max(client.run(peak).values())
    for _ in range(repeats):
        own_tree, seconds = run_search(X)
        took["threads"].append(seconds)
        remote, seconds = run_search(X, client)
        took["workers"].append(seconds)
        same = np.array_equal(own_tree.children, remote.children) and np.array_equal(own_tree.heights, remote.heights)
        print(f"  threads {took['threads'][-1]:6.2f} s, workers {seconds:6.2f} s, the same tree: {same}", flush=True)
    threads, workers = (min(times) for times in took.values())
    print(f"{n:,} x {N_COLUMNS}, two workers / two threads: {workers / threads:.2f} (at most {BOUND})")
    after = max(client.run(peak).values())
    print(f"a worker's memory: {before / 1e6:.0f} MB after 80,000 rows, {after / 1e6:.0f} MB after {n:,}")


# -- constants ----------------------------------------------------------------------------------------


def least_seconds(work, repeats=REPEATS):
    took = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        took.append(time.perf_counter() - start)
    return min(took)


def echo(block, bounds, holes, length):
    """Take a block and return as much as `find_near_in_cells` does, without looking at a pair."""
    n = block.shape[1]
    return np.zeros((n, length), dtype=np.float32), np.zeros((n, length), dtype=np.int16)


def measure_constants(client, n):
    """Return seconds for each pair, cut, byte, and row, and bytes for each row."""
    X = points(n)
    columns = np.ascontiguousarray(X.T, dtype=np.float32)
    rng = np.random.default_rng(0)
    cut = least_seconds(lambda: neighbors._divide(columns, rng))
    order, bounds = neighbors._divide(columns, rng)
    last = int(np.searchsorted(bounds, BLOCK_POINTS, side="right")) - 1
    members, block_bounds = order[: bounds[last]], bounds[: last + 1]
    block = columns[:, members]
    pairs = float(np.sum(np.diff(block_bounds) ** 2))
    similarities, places = find_near_in_cells(block, block_bounds, False, LENGTH)
    look = least_seconds(lambda: find_near_in_cells(block, block_bounds, False, LENGTH))
    distances = np.full((n, LENGTH), np.inf, dtype=np.float32)
    lists = np.full((n, LENGTH), -1)
    keep = least_seconds(lambda: insert_neighbors(members, similarities, places, distances, lists))
    executor, blocks = DaskExecutor(client, N_JOBS), 40
    arguments = (block, block_bounds, False, LENGTH)
    transfer_seconds = least_seconds(lambda: [None for _ in executor.run(echo, [arguments] * blocks)])
    moved = blocks * (len(pickle.dumps(arguments)) + BYTES_BACK * len(members))

    # What is left of a search when neighbours are there.
    counts = {"nearest": 0.0, "divisions": 0, "rounds": 0}
    nearest, divided = neighbors.find_nearest, neighbors._divide

    def time_call(*arguments):
        start = time.perf_counter()
        result = nearest(*arguments)
        counts["nearest"] += time.perf_counter() - start
        counts["rounds"] += 1
        return result

    def count_pairs(*arguments):
        counts["divisions"] += 1
        return divided(*arguments)

    neighbors.find_nearest, neighbors._divide = time_call, count_pairs
    try:
        _, total_seconds = run_search(X)
    finally:
        neighbors.find_nearest, neighbors._divide = nearest, divided
    return {
        "pair": look / pairs,
        "cut": cut / (n * levels(n)),
        "byte": transfer_seconds / moved,
        "keep": keep / len(members),
        "row": (total_seconds - counts["nearest"]) / n,
        "divisions": counts["divisions"] / counts["rounds"],
        "memory": row_bytes(n),
    }


def levels(n):
    """Return how often n points are cut in two."""
    return max(0, math.ceil(math.log2(n / neighbors.MAX_CELL_SIZE)))


def row_bytes(n):
    """Return the memory of a search for each row, beyond the table, by a process of its own."""
    command = [sys.executable, __file__, "--memory", str(n)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])


def print_memory(n):
    X = points(n)
    run_search(X[:25_000])
    before = peak()
    run_search(X)
    print((peak() - before) / n)


# -- the model ----------------------------------------------------------------------------------------


def count_rounds(n, few=10_000):
    """Yield how many lineages live at the beginning of each round."""
    while n > few:
        yield n
        n //= 2


def predict_times(n, workers, known):
    """Return seconds of workers, of the one machine that merges, and of all together, and bytes moved, for n rows."""
    look = local = total = moved = 0.0
    for live in count_rounds(n):
        size = live / 2 ** levels(live)
        work = known["divisions"] * live * size * known["pair"] / workers
        bytes_moved = known["divisions"] * live * (4 * N_COLUMNS + BYTES_BACK)
        hand = known["divisions"] * live * (levels(live) * known["cut"] + known["keep"]) + bytes_moved * known["byte"]
        rest = live * known["row"] / 2  # rounds halve: all of them come to twice the rows
        look, local, total, moved = (
            look + work,
            local + hand + rest,
            total + max(work, hand) + rest,
            moved + bytes_moved,
        )
    return look, local, total, moved


def print_model(known):
    print(
        f"\na pair {1e9 * known['pair']:.2f} ns, a cut {1e9 * known['cut']:.1f} ns, a byte there or back "
        f"{1e9 * known['byte']:.2f} ns, keeping {1e9 * known['keep']:.0f} ns a point, merging {1e6 * known['row']:.1f} us a row, "
        f"{known['divisions']:.1f} divisions a round, {known['memory']:.0f} bytes a row\n"
    )
    print(
        "| rows | workers | pairs | bytes moved | time per worker | merging machine | total | its share | its memory |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for n in PREDICTED_ROWS:
        pairs = sum(known["divisions"] * live * live / 2 ** levels(live) for live in count_rounds(n))
        for workers in PREDICTED_WORKERS:
            look, local, total, moved = predict_times(n, workers, known)
            memory = n * (known["memory"] + 8 * N_COLUMNS)
            print(
                f"| {n:,} | {workers} | {pairs:.1e} | {moved / 1e9:,.0f} GB | {look / 60:,.1f} min | {local / 60:,.1f} min "
                f"| {total / 60:,.1f} min | {local / total:.0%} | {memory / 1e9:,.0f} GB |"
            )


# -- a folder of parquet files ------------------------------------------------------------------------


def fit_folder(n, limit):
    """Fit a folder of parquet files by the command line, on two workers with little memory."""
    import polars as pl

    with tempfile.TemporaryDirectory() as name, two_workers(limit) as client:
        folder = Path(name)
        (folder / "big").mkdir()
        X = points(n)
        for k, (first, last) in enumerate(pairwise(np.linspace(0, n, PARTS + 1).astype(int).tolist())):
            part = pl.DataFrame(X[first:last], schema=[f"x{j}" for j in range(N_COLUMNS)])
            part.write_parquet(folder / "big" / f"part.{k:03d}.parquet")
        del X
        options = ["--real-process", "brownian", "--noise", "0.1", "--no-id", "--n-clusters", "100"]
        start = time.perf_counter()
        subprocess.run(
            [
                sys.executable,
                "-m",
                "coaltree",
                "fit",
                str(folder / "big"),
                "-o",
                str(folder / "out"),
                *options,
                "--dask",
                client.scheduler.address,
            ],
            check=True,
        )
        children = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        peak_bytes = max(client.run(peak).values())
        print(
            f"{n:,} rows of {PARTS} files: {time.perf_counter() - start:.0f} s, at most {peak_bytes / 1e9:.2f} GB in a worker"
        )
        print(f"the process that merges and writes: {children / 1e9:.1f} GB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--parquet", type=int, metavar="ROWS")
    parser.add_argument("--limit", default="3GB", metavar="MEMORY")
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        print_memory(options.memory)
    elif options.parquet:
        fit_folder(options.parquet, options.limit)
    else:
        n, repeats = (80_000, 1) if options.quick else (options.rows, REPEATS)
        with two_workers() as client:
            print_ratio(client, n, repeats)
            print_model(measure_constants(client, n))


if __name__ == "__main__":
    main()
