"""Time and memory against the number of rows, ours beside the peers, in one run.

Run with ``python benchmarks/scale.py`` after ``pip install ".[bench]"``; it takes some tens of minutes on two cores.
``--quick`` is a smoke run, ``--picture FILE`` draws what it measured, ``--most ROWS`` ends earlier.

Clustered points in ten dimensions. Every measurement is a process of its own, so that its memory is its own; kernels are
compiled before the clock starts, and memory is what the process had at its peak beyond what it had before. A method goes on to
the next size while it took less than `LONGEST` seconds and, where it holds all distances, while those fit.

Exponents are the slope of log time against log rows over a method's last three sizes.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time

import numpy as np

SIZES = (5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 400_000, 800_000, 1_000_000)
N_COLUMNS = 10
N_JOBS = 2
LONGEST = 150.0
ALL_DISTANCES = 30_000  # rows, beyond which 8 n^2 / 2 bytes are not asked for


def points(n):
    """Return clustered points: a hundred round clusters."""
    rng = np.random.default_rng(0)
    centers = 5 * rng.normal(size=(100, N_COLUMNS))
    return centers[rng.integers(100, size=n)] + rng.normal(size=(n, N_COLUMNS))


def ours(search):
    """Return the work of greedy inference with fixed parameters."""
    import coaltree as ct

    process = ct.Brownian(np.full(N_COLUMNS, 10.0), 0.03)
    ct.greedy(points(4_000 if search == "exact" else 25_000), process, search=search, n_jobs=N_JOBS)  # compile

    def work(X):
        found = ct.greedy(X, process, search=search, n_jobs=N_JOBS)
        return {"log_joint": found.log_joint, "held": found.neighbors_held}

    return work


def average_linkage():
    import fastcluster

    return lambda X: fastcluster.linkage(X, "average") is None


def vector_ward():
    import fastcluster

    return lambda X: fastcluster.linkage_vector(X, "ward") is None


def agglomerative():
    from sklearn.cluster import AgglomerativeClustering

    return lambda X: AgglomerativeClustering(n_clusters=100).fit(X) is None


def genie():
    import genieclust

    genieclust.Genie(n_clusters=10).fit(points(1_000))
    return lambda X: genieclust.Genie(n_clusters=100).fit(X) is None


def hdbscan():
    from sklearn.cluster import HDBSCAN

    return lambda X: HDBSCAN(copy=True, n_jobs=N_JOBS).fit(X) is None


METHODS = {
    "coaltree, exact": lambda: ours("exact"),
    "coaltree, neighbors": lambda: ours("neighbors"),
    "fastcluster, average": average_linkage,
    "fastcluster, Ward (vectors)": vector_ward,
    "scikit-learn, Ward": agglomerative,
    "genieclust": genie,
    "scikit-learn, HDBSCAN": hdbscan,
}
HOLDS_DISTANCES = ("fastcluster, average", "scikit-learn, Ward")


def measure(name, n):
    """Do one piece of work; print seconds, bytes, and what it says of itself."""
    work = METHODS[name]()
    X = points(n)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    said = work(X)
    took = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": took, "bytes": 1024 * (peak - before), **(said if isinstance(said, dict) else {})}))


def measured(name, n):
    """Return the measurements of a process of its own; None if it failed."""
    done = subprocess.run(
        [sys.executable, __file__, "--measure", name, str(n)], capture_output=True, text=True, check=False
    )
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def exponent(sizes, seconds):
    """Return the slope of log seconds over the last three sizes."""
    if len(sizes) < 2:
        return math.nan
    return float(np.polyfit(np.log(sizes[-3:]), np.log(seconds[-3:]), 1)[0])


def draw(results, path):
    """Draw time and memory against rows."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for name, found in results.items():
        sizes = [n for n, _ in found]
        seconds = [own["seconds"] for _, own in found]
        style = {"linewidth": 2.5} if name.startswith("coaltree") else {"linewidth": 1.2, "linestyle": "--"}
        label = f"{name} ($n^{{{exponent(sizes, seconds):.2f}}}$)" if len(sizes) > 1 else name
        axes[0].loglog(sizes, seconds, marker="o", markersize=3, label=label, **style)
        axes[1].loglog(sizes, [max(own["bytes"], 1e6) / 1e9 for _, own in found], marker="o", markersize=3, **style)
    axes[0].set(xlabel="rows", ylabel="seconds", title="Time")
    axes[1].set(xlabel="rows", ylabel="gigabytes", title="Memory beyond the table")
    axes[0].legend(fontsize=7)
    for own in axes:
        own.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two small sizes")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="largest number of rows")
    parser.add_argument("--picture", help="file to draw into")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure[0], int(options.measure[1]))
        return
    sizes = (1_000, 5_000) if options.quick else [n for n in SIZES if n <= options.most]
    results = {name: [] for name in METHODS}
    last = dict.fromkeys(METHODS, 0.0)
    for n in sizes:
        line = []
        for name in METHODS:
            grows = 4.0 if "neighbors" not in name and "genie" not in name else 1.5
            if last[name] * grows > LONGEST or (name in HOLDS_DISTANCES and n > ALL_DISTANCES):
                continue
            found = measured(name, n)
            last[name] = found["seconds"] if found else math.inf
            if found:
                results[name].append((n, found))
                line.append(f"{name} {found['seconds']:.2f} s, {found['bytes'] / 1e6:.0f} MB")
        print(f"{n:>9,} rows: " + "; ".join(line), flush=True)
    print()
    for name, found in results.items():
        if len(found) > 1:
            slope = exponent([n for n, _ in found], [own["seconds"] for _, own in found])
            print(f"{name}: time grows as n^{slope:.2f} up to {found[-1][0]:,} rows")
    for ratio, one, other, n in (
        ("exact / fastcluster average", "coaltree, exact", "fastcluster, average", 10_000),
        ("exact / genieclust", "coaltree, exact", "genieclust", 20_000),
        ("neighbors / genieclust", "coaltree, neighbors", "genieclust", 100_000),
    ):
        pair = [dict(results[name]).get(n) for name in (one, other)]
        if all(pair):
            print(f"{n:,} x {N_COLUMNS}, {ratio}: {pair[0]['seconds'] / pair[1]['seconds']:.2f}")
    if options.picture:
        draw(results, options.picture)


if __name__ == "__main__":
    main()
