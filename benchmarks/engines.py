"""Compare the neighbour search with libraries for nearest neighbours.

Run with ``python benchmarks/engines.py`` after ``pip install ".[bench]" faiss-cpu hnswlib usearch pynndescent``; engines that
are not installed are reported as missing. ``--rows N`` for other sizes, ``--quick`` for a smoke run.

Clustered points in ten dimensions, twelve neighbours of each, two threads. Every measurement is a process of its own. *Cold* is
the time to a first result for 2,000 points in a new process, with imports and compilation. *Nearest* is the share of 300
points whose true nearest neighbour is among the twelve, *recall* the share of their true twelve.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import resource
import subprocess
import sys
import time

import numpy as np

from scale import points

K = 12
N_JOBS = 2
LONGEST = 900  # seconds


def cells():
    from coaltree.inference.executors import ThreadExecutor
    from coaltree.inference.neighbors import find_nearest

    return lambda X: find_nearest(np.ascontiguousarray(X.T), K, ThreadExecutor(N_JOBS), 0)


def kd_tree():
    from scipy.spatial import cKDTree

    return lambda X: cKDTree(X).query(X, K + 1, workers=N_JOBS)[1]


def matrix_products():
    from sklearn.neighbors import NearestNeighbors

    return lambda X: NearestNeighbors(n_neighbors=K + 1, algorithm="brute", n_jobs=N_JOBS).fit(X).kneighbors(X)[1]


def faiss_flat():
    import faiss

    faiss.omp_set_num_threads(N_JOBS)

    def work(X):
        index = faiss.IndexFlatL2(X.shape[1])
        index.add(X)
        return index.search(X, K + 1)[1]

    return work


def faiss_cells():
    import faiss

    faiss.omp_set_num_threads(N_JOBS)

    def work(X):
        n_cells = int(4 * np.sqrt(len(X)))
        index = faiss.IndexIVFFlat(faiss.IndexFlatL2(X.shape[1]), X.shape[1], n_cells)
        index.train(X[:: max(1, len(X) // (40 * n_cells))])
        index.add(X)
        index.nprobe = 8
        return index.search(X, K + 1)[1]

    return work


def hnswlib_graph():
    import hnswlib

    def work(X):
        index = hnswlib.Index(space="l2", dim=X.shape[1])
        index.init_index(max_elements=len(X), ef_construction=100, M=12)
        index.set_num_threads(N_JOBS)
        index.add_items(X)
        index.set_ef(40)
        return index.knn_query(X, K + 1)[0].astype(np.intp)

    return work


def usearch_graph():
    from usearch.index import Index

    def work(X):
        index = Index(ndim=X.shape[1], metric="l2sq", connectivity=12, expansion_add=100, expansion_search=40)
        index.add(np.arange(len(X)), X, threads=N_JOBS)
        return index.search(X, K + 1, threads=N_JOBS).keys.astype(np.intp)

    return work


def pynndescent_graph():
    import pynndescent

    return lambda X: pynndescent.NNDescent(X, n_neighbors=K + 1, n_jobs=N_JOBS, random_state=0).neighbor_graph[0]


ENGINES = {
    "random cuts (ours)": (cells, None),
    "scipy cKDTree": (kd_tree, None),
    "matrix products (scikit-learn)": (matrix_products, None),
    "faiss, all pairs": (faiss_flat, "faiss-cpu"),
    "faiss, cells": (faiss_cells, "faiss-cpu"),
    "hnswlib": (hnswlib_graph, "hnswlib"),
    "usearch": (usearch_graph, "usearch"),
    "pynndescent": (pynndescent_graph, "pynndescent"),
}
ALL_PAIRS = ("matrix products (scikit-learn)", "faiss, all pairs")
MOST_FOR_ALL_PAIRS = 200_000


def weight(package):
    """Return the megabytes that a package takes on disk, those that it needs beside ours not counted; None if it is not there."""
    if package is None:
        return 0.0
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return sum(file.locate().stat().st_size for file in files if file.locate().is_file()) / 1e6


def measure(name, n):
    """Do one piece of work; print cold start, seconds, memory and how good it was."""
    start = time.perf_counter()
    find = ENGINES[name][0]()
    find(points(2_000).astype(np.float32))
    cold = time.perf_counter() - start
    X = points(n).astype(np.float32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    neighbors = np.asarray(find(X))
    took = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sample = np.linspace(0, n - 1, 300).astype(np.intp)
    n_nearest = n_recalled = 0
    for i in sample:
        square = ((X - X[i]) ** 2).sum(axis=1)
        square[i] = np.inf
        near = np.argpartition(square, K)[:K]
        near = near[np.argsort(square[near])]
        candidates = set(neighbors[i].tolist()) - {int(i)}
        n_nearest += int(near[0]) in candidates
        n_recalled += len(candidates & set(near.tolist()))
    facts = {
        "cold": cold,
        "seconds": took,
        "mb": (peak - before) / 1e3,
        "nearest": n_nearest / len(sample),
        "recall": n_recalled / (K * len(sample)),
    }
    print(json.dumps(facts))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--quick", action="store_true", help="5,000 points")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure[0], int(options.measure[1]))
        return
    print("| engine | on disk | rows | cold | seconds | memory | nearest | recall |")
    print("|---|---|---|---|---|---|---|---|")
    for n in [5_000] if options.quick else options.rows:
        for name, (_, package) in ENGINES.items():
            size = weight(package)
            if size is None:
                print(f"| {name} | not installed: left out | {n:,} | | | | | |", flush=True)
                continue
            if name in ALL_PAIRS and n > MOST_FOR_ALL_PAIRS:
                continue
            command = [sys.executable, __file__, "--measure", name, str(n)]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONGEST)
            except subprocess.TimeoutExpired:
                print(f"| {name} | {size:.0f} MB | {n:,} | | more than {LONGEST} | | | |", flush=True)
                continue
            if done.returncode:
                print(
                    f"| {name} | {size:.0f} MB | {n:,} | failed: {done.stderr.splitlines()[-1]} | | | | |", flush=True
                )
                continue
            record = json.loads(done.stdout.splitlines()[-1])
            on_disk = "with us" if package is None else f"{size:.0f} MB"
            print(
                f"| {name} | {on_disk} | {n:,} | {record['cold']:.1f} s | {record['seconds']:.1f} "
                f"| {record['mb']:.0f} MB | {record['nearest']:.3f} | {record['recall']:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
