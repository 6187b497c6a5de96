"""Time and memory by number of rows, compared with other libraries in one run.

Run with ``python benchmarks/scale.py`` after ``pip install ".[bench]"``; it takes some ten minutes. ``--quick`` is a smoke run,
``--picture FILE`` draws what it measured, ``--most ROWS`` ends earlier, ``--markdown`` writes the tables of the README and of
``docs/million_rows.md``.

Clustered points in ten dimensions. Times are of the processor, with one thread, so that other work on the machine counts
little. Every measurement is a process of its own, so that its memory is its own; a small run comes before the clock starts, and
memory is what the process had at its peak beyond what it had before. A method goes on to the next size while it is expected to
take less than `LONGEST` seconds and, where it holds all distances, while those fit.

Exponents are the slope of log time against log rows over a method's last three sizes. ``--ratios`` measures, in place of all
this, the ratios that we hold ourselves to, the shortest of three times each, beside their bounds.

``--equal-rows`` prints, in place of all this, the processor time of tables of few distinct rows beside that of as many distinct
ones, of greedy inference with fixed parameters and of a default fit.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

SIZES = (3_000, 10_000, 30_000, 100_000, 1_000_000)
README_SIZES = (10_000, 100_000, 1_000_000)
README_METHODS = (
    "coaltree",
    "genieclust",
    "fast_hdbscan",
    "scikit-learn, HDBSCAN",
    "scikit-learn, Ward",
    "fastcluster, average",
    "k-means",
)
README_WORDS = (
    "Seconds of one processor core and additional memory, for clustered points in ten columns; coaltree is a default fit with "
    "its clusters (`python benchmarks/scale.py`, [all sizes and methods](docs/million_rows.md)):"
)
PAGE = "docs/million_rows.md"
PAGE_WORDS = (
    "The points are clustered in ten columns. All libraries use one thread and run once; seconds are those of the processor. "
    "`coaltree` is a default fit with its clusters, `ct.greedy` the search for one tree with the same parameters. "
    "`python benchmarks/scale.py --markdown --picture docs/images/scale.png` writes this table and that of the README and draws "
    "the plot; run it to compare the libraries on your machine. The legend shows the exponents over the last three sizes. Memory "
    "is what the fit added to the process."
)
N_COLUMNS = 10
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
LONGEST = 90.0
ROOT = Path(__file__).parents[1]
REPEATS = 3  # of ratios
ALL_DISTANCES = 20_000  # rows, beyond which 8 n^2 / 2 bytes are not asked for
EQUAL_ROWS_SIZES = (1_000, 3_000, 10_000, 100_000, 1_000_000)
DISTINCT_ROWS = (None, 1, 2, 3, 5, 10, 25, 125)  # None: all of them
EQUAL_ROWS_TABLES = {"real 1": (1, 0), "real 2": (2, 0), "categorical 8": (0, 8), "mixed 4 + 4": (4, 4)}


def points(n, n_columns=N_COLUMNS):
    """Return clustered points: a hundred round clusters."""
    rng = np.random.default_rng(0)
    centers = 5 * rng.normal(size=(100, n_columns))
    return centers[rng.integers(100, size=n)] + rng.normal(size=(n, n_columns))


def categories(n, n_columns):
    """Return clustered categories, 2 to 8 states a column: three in four cells are those of the row's cluster."""
    rng = np.random.default_rng(0)
    states = 2 + np.arange(n_columns) % 7
    prototypes = rng.integers(states, size=(100, n_columns))
    prototype_of_row = prototypes[rng.integers(100, size=n)]
    return np.where(
        rng.random((n, n_columns)) < 0.75, prototype_of_row, rng.integers(states, size=(n, n_columns))
    ).astype(float)


def coaltree_fit():
    """Return the work of a default fit."""
    import coaltree as ct

    ct.CoalescentClustering(n_jobs=1).fit(points(300))  # what is imported late is there then
    return lambda X: ct.CoalescentClustering(n_jobs=1).fit(X) is None


def coaltree_greedy(search="auto", table=points):
    """Return the work of greedy inference with the parameters of a default fit."""
    import coaltree as ct

    fitted = ct.CoalescentClustering(n_jobs=1).fit(points(1_000)).process_

    def work(X):
        if table is points:
            X, process = (X - X.mean(axis=0)) / X.std(axis=0), fitted
        else:
            process = ct.Multinomial(rate=0.5)
        result = ct.greedy(X, process, search=search, n_jobs=1)
        return {"log_joint": result.log_joint, "held": result.neighbor_recall}

    work(table(300, N_COLUMNS))  # what is imported late is there then
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

    return lambda X: HDBSCAN(copy=True, n_jobs=1).fit(X) is None


def fast_hdbscan():
    import fast_hdbscan

    fast_hdbscan.HDBSCAN().fit(points(1_000))  # compiles
    return lambda X: fast_hdbscan.HDBSCAN().fit(X) is None


def k_means():
    from sklearn.cluster import KMeans

    KMeans(10, n_init=1, random_state=0).fit(points(1_000))
    return lambda X: KMeans(100, n_init=1, random_state=0).fit(X) is None


METHODS = {
    "coaltree": coaltree_fit,
    "ct.greedy": coaltree_greedy,
    "genieclust": genie,
    "fast_hdbscan": fast_hdbscan,
    "scikit-learn, HDBSCAN": hdbscan,
    "fastcluster, Ward (vectors)": vector_ward,
    "scikit-learn, Ward": agglomerative,
    "fastcluster, average": average_linkage,
    "k-means": k_means,
}
GROWTH = {
    "coaltree": 1.1,
    "ct.greedy": 1.1,
    "genieclust": 1.2,
    "fast_hdbscan": 1.2,
    "k-means": 1.0,
}  # exponents
EXACT, CATEGORICAL = "coaltree, exact", "coaltree, categories"
WORKS = METHODS | {
    EXACT: lambda: coaltree_greedy("exact"),
    CATEGORICAL: lambda: coaltree_greedy("neighbors", categories),
}
RATIOS = (  # what is measured, against what, both with rows and columns, and the most that the ratio may be
    (EXACT, (10_000, 20), "fastcluster, average", (10_000, 20), 1 / 3),
    ("coaltree", (3_000, 10), "ct.greedy", (3_000, 10), 1.3),
    ("coaltree", (10_000, 10), "ct.greedy", (10_000, 10), 1.3),
    ("coaltree", (100_000, 10), "ct.greedy", (100_000, 10), 1.3),
    ("coaltree", (100_000, 10), "genieclust", (100_000, 10), 1.0),
    (CATEGORICAL, (100_000, 30), "ct.greedy", (100_000, 10), 10.0),
)
HOLDS_DISTANCES = ("fastcluster, average", "scikit-learn, Ward")


def measure(name, n, n_columns, repeats):
    """Do one piece of work; print the least seconds that it took, bytes, and what it says of itself."""
    work = WORKS[name]()
    X = (categories if name == CATEGORICAL else points)(n, n_columns)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    took = []
    for _ in range(repeats):
        start = time.process_time()
        output = work(X)
        took.append(time.process_time() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    facts = output if isinstance(output, dict) else {}
    print(json.dumps({"seconds": min(took), "bytes": 1024 * (peak - before), **facts}))


def measure_in_process(name, n, n_columns=N_COLUMNS, repeats=1):
    """Return the measurements of a process of its own; None if it failed."""
    command = [sys.executable, __file__, "--measure", name, str(n), str(n_columns), str(repeats)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | ONE_THREAD)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def print_ratios():
    """Print the ratios that we hold ourselves to."""
    for one, shape, other, other_shape, bound in RATIOS:
        pair = [measure_in_process(one, *shape, REPEATS), measure_in_process(other, *other_shape, REPEATS)]
        words = f"{one}, {shape[0]:,} x {shape[1]} / {other}, {other_shape[0]:,} x {other_shape[1]}"
        if all(pair):
            seconds = [measurement["seconds"] for measurement in pair]
            print(
                f"{words}: {seconds[0]:.2f} s / {seconds[1]:.2f} s = {seconds[0] / seconds[1]:.2f} (at most {bound:.2f})"
            )
        else:
            print(f"{words}: not measured, one of them failed or is not installed")


def few_rows(n, n_distinct, n_real, n_sites):
    """Return rows of few different contents, and how to search and to fit them; a tenth of the cells of mixed ones is missing."""
    import pandas as pd

    import coaltree as ct

    rng = np.random.default_rng(0)
    k = n if n_distinct is None else n_distinct
    rows = np.hstack([rng.normal(size=(k, n_real)), rng.integers(0, 8, (k, n_sites))])
    if n_real and n_sites:
        rows[rng.random(rows.shape) < 0.1] = np.nan
    X = rows if n_distinct is None else rows[rng.integers(0, k, n)]
    real, sites = ct.OrnsteinUhlenbeck(0.5, noise=0.3), ct.Multinomial(noise=0.2)
    process = real if not n_sites else sites if not n_real else None
    process = process or ct.Mixed((real, range(n_real)), (sites, range(n_real, n_real + n_sites)))
    frame = pd.DataFrame({f"x{j}": X[:, j] for j in range(n_real)})
    for j in range(n_real, n_real + n_sites):
        frame[f"s{j}"] = pd.Series(X[:, j]).map(dict(enumerate("abcdefgh")))
    return (
        lambda: ct.greedy(X, process, n_jobs=1),
        lambda: ct.CoalescentClustering(n_jobs=1).fit(frame),
    )


def print_equal_rows(most):
    """Print the processor time of few distinct rows, and that of as many distinct ones in the first column."""
    warnings.simplefilter("ignore")
    few_rows(100, None, 4, 4)[1]()  # what is imported late is there then
    last = {}
    print(f"{'table':<16}{'work':<8}{'rows':>10}" + "".join(f"{k or 'all':>9}" for k in DISTINCT_ROWS))
    for n in EQUAL_ROWS_SIZES:
        if n > most:
            break
        for name, (n_real, n_sites) in EQUAL_ROWS_TABLES.items():
            for at, work in enumerate(("greedy", "fit")):
                line = f"{name:<16}{work:<8}{n:>10,}"
                for k in DISTINCT_ROWS:
                    start = math.inf
                    if 10 * last.get((name, work, k), 0.0) < LONGEST:
                        call = few_rows(n, k, n_real, n_sites)[at]
                        start = time.process_time()
                        call()
                    last[name, work, k] = max(time.process_time() - start, 0.0) or math.inf
                    line += f"{last[name, work, k]:>9.3f}"
                print(line, flush=True)


def as_markdown(results, sizes, methods=tuple(METHODS)):
    """Return the times and memory as a table."""
    names = [name for name in methods if results[name]]
    lines = ["| rows | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for n in sizes:
        cells = [dict(results[name]).get(n) for name in names]
        texts = [
            "" if measurement is None else f"{measurement['seconds']:.2g} s, {measurement['bytes'] / 1e6:.0f} MB"
            for measurement in cells
        ]
        lines.append(f"| {n:,} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def write_tables(results):
    """Write the tables of the README and of the page about large tables between their marks."""
    begin, end = "<!-- begin scale: benchmarks/scale.py --markdown -->", "<!-- end scale -->"
    for path, words, *shown in (("README.md", README_WORDS, README_SIZES, README_METHODS), (PAGE, PAGE_WORDS, SIZES)):
        text = (ROOT / path).read_text(encoding="utf-8")
        before, rest = text.split(begin)
        new = f"{before}{begin}\n\n{words}\n\n{as_markdown(results, *shown)}\n\n{end}{rest.split(end)[1]}"
        (ROOT / path).write_text(new, encoding="utf-8")


def exponent(sizes, seconds):
    """Return the slope of log seconds over the last three sizes."""
    if len(sizes) < 2:
        return math.nan
    return float(np.polyfit(np.log(sizes[-3:]), np.log(seconds[-3:]), 1)[0])


def draw(results, path):
    """Draw time and memory against rows."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for name, measurements in results.items():
        sizes = [n for n, _ in measurements]
        seconds = [measurement["seconds"] for _, measurement in measurements]
        style = {"linewidth": 2.5} if name.startswith("coaltree") else {"linewidth": 1.2, "linestyle": "--"}
        label = f"{name} ($n^{{{exponent(sizes, seconds):.2f}}}$)" if len(sizes) > 1 else name
        axes[0].loglog(sizes, seconds, marker="o", markersize=3, label=label, **style)
        axes[1].loglog(
            sizes,
            [max(measurement["bytes"], 1e6) / 1e9 for _, measurement in measurements],
            marker="o",
            markersize=3,
            **style,
        )
    axes[0].set(xlabel="rows", ylabel="seconds", title="Time")
    axes[1].set(xlabel="rows", ylabel="gigabytes", title="Memory beyond the table")
    axes[0].legend(fontsize=7)
    for axis in axes:
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two small sizes")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="largest number of rows")
    parser.add_argument("--picture", help="file to draw into")
    parser.add_argument("--markdown", action="store_true", help="write the tables of the README and the docs")
    parser.add_argument("--ratios", action="store_true", help="only the ratios and their bounds")
    parser.add_argument("--equal-rows", action="store_true", help="only tables of few distinct rows")
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure[0], *map(int, options.measure[1:]))
        return
    if options.ratios:
        print_ratios()
        return
    if options.equal_rows:
        print_equal_rows(1_000 if options.quick else options.most)
        return
    sizes = (1_000, 5_000) if options.quick else [n for n in SIZES if n <= options.most]
    results = {name: [] for name in METHODS}
    ended = set()
    for n in sizes:
        line = []
        for name in METHODS:
            before, measured = results[name][-1] if results[name] else (n, {"seconds": 0.0})
            expected = measured["seconds"] * (n / before) ** GROWTH.get(name, 2.3)
            if name in ended or expected > LONGEST or (name in HOLDS_DISTANCES and n > ALL_DISTANCES):
                continue
            results_of_method = measure_in_process(name, n)
            if not results_of_method:
                ended.add(name)
            else:
                results[name].append((n, results_of_method))
                line.append(f"{name} {results_of_method['seconds']:.2f} s, {results_of_method['bytes'] / 1e6:.0f} MB")
        print(f"{n:>9,} rows: " + "; ".join(line), flush=True)
        if options.markdown:
            write_tables(results)
    print()
    for name, results_of_method in results.items():
        if len(results_of_method) > 1:
            slope = exponent(
                [n for n, _ in results_of_method], [measurement["seconds"] for _, measurement in results_of_method]
            )
            print(f"{name}: time grows as n^{slope:.2f} up to {results_of_method[-1][0]:,} rows")
    print("\n" + as_markdown(results, sizes) + "\n")
    if options.picture:
        draw(results, options.picture)


if __name__ == "__main__":
    main()
