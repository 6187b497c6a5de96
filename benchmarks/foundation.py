"""Speed of greedy inference, as ratios measured in one run.

Run with ``python benchmarks/foundation.py``; it takes a few minutes. Every ratio is of two medians (or single runs, for the
long ones) on this machine, now. The peer is ``fastcluster.linkage(X, "average")`` on 10,000 rows of 20 columns.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import time

import fastcluster
import numpy as np

import coaltree as ct

N_JOBS = 2


def seconds(work, repeats=3):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def gaussian(n=10_000, n_columns=20):
    """A table drawn from the model: a tree of the coalescent and Brownian motion on it."""
    return ct.Brownian().simulate(ct.simulate_tree(n, random_state=0), random_state=1, n_columns=n_columns)


def independent(n=10_000, n_columns=20):
    """A table without any structure, the harder case for a search that prunes."""
    return np.random.default_rng(0).normal(size=(n, n_columns))


def holes(X, share=0.1):
    X = X.copy()
    X[np.random.default_rng(1).random(X.shape) < share] = np.nan
    return X


def binary(n=1_740, n_columns=156):
    """Rare words in short texts: as many rows and columns as the abstracts of the paper's last experiment."""
    rng = np.random.default_rng(0)
    shares = np.clip(rng.beta(1, 6, size=n_columns), 0.05, 0.9)
    rates = rng.gamma(2.0, 0.5, size=n_columns)
    process = ct.Multinomial(rates, np.column_stack([1 - shares, shares]))
    tree = ct.simulate_tree(n, random_state=0)
    heights = tree.heights * 3  # an old tree: rows share some words, not most
    X = process.simulate(ct.Tree(tree.children, heights), random_state=1)
    return X, (rng.random((n, n_columns)) < shares).astype(float), rates


def line(what, ratio, most):
    verdict = "ok" if ratio <= most else "MISSED"
    bound = f"at most {most:g}   {verdict}" if most < math.inf else "no bound"
    print(f"{what:<88} {ratio:8.3f}   {bound}", flush=True)


def peak_memory():
    """Peak memory beyond the input, in megabytes, of a fit in a process of its own (Linux)."""
    program = """
import re, sys
sys.path.insert(0, sys.argv[1])
import coaltree as ct, foundation
ct.greedy(foundation.independent(50), ct.Brownian(), n_jobs=2)
X = foundation.independent()
def memory(line):
    return int(re.search(line + r":\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024
open("/proc/self/clear_refs", "w").write("5")  # forget the peak so far
before = memory("VmRSS")
ct.greedy(X, ct.Brownian(), n_jobs=2)
print(memory("VmHWM") - before)
"""
    here = os.path.dirname(os.path.abspath(__file__))
    done = subprocess.run([sys.executable, "-c", program, here], capture_output=True, text=True, check=True)
    return float(done.stdout)


def start_up():
    """Seconds to import, of imports that a first fit brings, and of a first and a second fit of 200 rows without fitting."""
    program = """
import time
start = time.perf_counter()
import coaltree as ct
imported = time.perf_counter() - start
import numpy as np
X = np.random.default_rng(0).normal(size=(200, 10))
start = time.perf_counter()
model = ct.CoalescentClustering()
brought = time.perf_counter() - start
start = time.perf_counter()
model.fit(X)
first = time.perf_counter() - start
start = time.perf_counter()
ct.CoalescentClustering().fit(X)
print(imported, brought, first, time.perf_counter() - start)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def main():
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()  # for --help
    imported, brought, first, second = start_up()
    print(
        f"import coaltree: {imported:.2f} s, what an estimator brings: {brought:.2f} s; fits of 200 x 10 without rounds:"
    )
    print(f"the first {1000 * first:.0f} ms, the second {1000 * second:.0f} ms\n")

    for kind, X in (("from the model", gaussian()), ("without structure", independent())):
        Y = holes(X)
        peer = seconds(lambda X=X: fastcluster.linkage(X, "average"))
        own_seconds = seconds(lambda X=X: ct.greedy(X, ct.Brownian(), n_jobs=N_JOBS))
        line(f"rate1, 10,000 x 20 {kind} / fastcluster average", own_seconds / peer, 0.25)
        gaps = seconds(lambda Y=Y: ct.greedy(Y, ct.Brownian(), n_jobs=N_JOBS), repeats=1)
        line(f"rate1, 10,000 x 20 {kind}, 10 % missing / complete", gaps / own_seconds, 15)
    X = independent()
    old, unrelated, rates = binary()
    for kind, B in (("from the model", old), ("without structure", unrelated)):
        for what, rate in (("a rate per column", rates), ("one rate", 1.0)):
            peer = seconds(lambda: fastcluster.linkage(X, "average"))  # next to it: machines change their pace
            own_seconds = seconds(lambda B=B, rate=rate: ct.greedy(B, ct.Multinomial(rate), n_jobs=N_JOBS), repeats=1)
            # the bound was set for columns that differ in their rates
            bound = 5 if rate is rates else math.inf
            line(f"rate1, 1,740 x 156 binary {kind}, {what} / fastcluster 10,000 x 20", own_seconds / peer, bound)
    line("rate1, 10,000 x 20: peak memory beyond the input, MB", peak_memory(), 300)


if __name__ == "__main__":
    main()
