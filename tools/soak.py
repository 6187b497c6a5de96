"""Test for memory leaks: many fits of all kinds in one process, whose memory must not grow.

    python tools/soak.py 2000

After a warm-up the resident memory is measured several times along the way. Printed are the growth of the least squares line
through the measurements, as a share of the first one, and fits per second; above 1 % the script fails.
"""

from __future__ import annotations

import argparse
import copy
import gc
import io
import os
import pickle
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import joblib
import numpy as np
from campaign import shorten_chains

import coaltree as ct
from coaltree.errors import InputWarning

MAX_GROWTH = 0.01
WARM_UP = 0.25  # share of the fits before the first measurement
N_MEASUREMENTS = 10


def fit_kinds() -> list[Callable[[int], Any]]:
    """Return functions that fit a model of some kind, given a seed, and use it."""
    import pandas as pd

    def table(seed: int) -> Any:
        rng = np.random.default_rng(seed % 10)  # a few sizes and contents in turn
        X = rng.normal(rng.integers(0, 3, size=25)[:, None], 1.0, size=(25, 4))
        X[rng.random(X.shape) < 0.1] = np.nan
        return X

    def cluster(seed: int, **settings: Any) -> Any:
        return ct.CoalescentClustering(random_state=0, **settings).fit(table(seed))

    def query(seed: int) -> Any:
        model = cluster(seed)
        X = table(seed)
        return model.score_samples(X[:3]), model.predict(X[:3]), model.place(X[:3]), model.cut(n_clusters=2)

    def mixed(seed: int) -> Any:
        X = pd.DataFrame(table(seed), columns=list("abcd"))
        X["e"] = list("uvwxy") * 5
        return ct.CoalescentClustering().fit(X).labels_

    def copies(seed: int) -> Any:
        model, X = cluster(seed), table(seed)[:3]
        for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            copied.predict(X)
        stored = io.BytesIO()
        joblib.dump(model, stored)

    def threads(seed: int) -> Any:
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda k: query(seed + k), range(2)))

    return [
        cluster,
        lambda seed: cluster(seed, standardize="power"),
        lambda seed: cluster(seed, real_process="brownian", refine=True),
        lambda seed: cluster(seed, rule="max-prob"),
        lambda seed: cluster(seed, inference="smc", n_particles=5),
        lambda seed: cluster(seed, inference="mcmc", n_chains=2, n_samples=20),
        lambda seed: ct.CoalescentImputer(random_state=0).fit_transform(table(seed)),
        lambda seed: cluster(seed)._repr_html_(),
        lambda seed: ct.greedy(np.nan_to_num(table(seed)), ct.Brownian(1.0, 0.1), search="neighbors"),
        mixed,
        query,
        copies,
        threads,
    ]


def resident_memory() -> int:
    """Return the resident memory of this process in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def soak(n_fits: int, report: Callable[[int, int], None] | None = None) -> tuple[float, list[int]]:
    """Fit models of all kinds in turn; return the growth of memory after the warm-up, as a share, and the measurements."""
    kinds = fit_kinds()
    sizes: list[int] = []
    first = int(WARM_UP * n_fits)
    every = max(1, (n_fits - first) // N_MEASUREMENTS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        for k in range(n_fits):
            kinds[k % len(kinds)](k // len(kinds))
            if k >= first and (k - first) % every == 0:
                gc.collect()
                sizes.append(resident_memory())
                if report:
                    report(k, sizes[-1])
    slope = np.polyfit(np.arange(len(sizes)), sizes, 1)[0] if len(sizes) > 1 else 0.0
    return float(slope * (len(sizes) - 1) / sizes[0]), sizes


def main() -> int:
    """Run the soak of the arguments."""
    parser = argparse.ArgumentParser(description="Fit many models in one process, and measure its memory.")
    parser.add_argument("number", nargs="?", type=int, default=2000, help="number of fits")
    options = parser.parse_args()
    shorten_chains()
    begin = time.perf_counter()
    growth, sizes = soak(options.number, lambda k, size: print(f"{k:>7} fits {size / 2**20:8.1f} MiB", flush=True))
    seconds = time.perf_counter() - begin
    print(
        f"{options.number} fits in {seconds:.0f} s; memory after the warm-up {sizes[0] / 2**20:.1f} MiB, growth {growth:.2%}"
    )
    return 0 if growth < MAX_GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
