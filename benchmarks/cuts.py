"""The default cut on noise and on blobs: prints the table of docs/flat_clusters.md.

Run with ``python benchmarks/cuts.py``; it takes a few minutes on two cores, ``--quick`` some seconds.

Tables of 200 rows and 5 real columns: pure Gaussian noise, which has no clusters, and blobs of standard deviation 1 whose
centres are at least 8 apart. Each table is fitted once, with default settings, and cut in every way; Brownian motion needs a fit
of its own. The figures are the median number of clusters with the smallest and the largest, and the
mean adjusted Rand index against the blobs.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.metrics import adjusted_rand_score

import coaltree as ct

N_ROWS, N_COLUMNS = 200, 5
LEAST_DISTANCE = 8.0
BLOBS = (1, 3, 4, 5, 6, 7, 8)
RESOLUTIONS = (0.1, 0.2, 0.4, 0.6)
CUTS = ("default", *(f"resolution {value:g}" for value in RESOLUTIONS), "default, Brownian", "number of blobs")


def draw_table(n_blobs, seed):
    """Return a table and the blob of each row."""
    rng = np.random.default_rng(seed)
    while True:
        centres = rng.uniform(-10, 10, size=(n_blobs, N_COLUMNS))
        apart = np.linalg.norm(centres[:, None] - centres, axis=2)[~np.eye(n_blobs, dtype=bool)]
        if np.all(apart >= LEAST_DISTANCE):
            break
    blobs = np.arange(N_ROWS) % n_blobs
    return centres[blobs] + rng.normal(size=(N_ROWS, N_COLUMNS)), blobs


def cut_in_all_ways(X, n_blobs):
    """Return the labels of every way to cut."""
    model = ct.CoalescentClustering().fit(X)
    brownian = ct.CoalescentClustering(real_process="brownian").fit(X)
    finer = [model.cut(resolution=value) for value in RESOLUTIONS]
    return [model.labels_, *finer, brownian.labels_, model.cut(n_clusters=n_blobs)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two tables of each kind")
    n_tables = 2 if parser.parse_args().quick else 20
    warnings.simplefilter("ignore", ct.errors.InputWarning)
    print(f"| table | {' | '.join(CUTS)} |\n|---|{'---|' * len(CUTS)}")
    for n_blobs in BLOBS:
        counts, indices = np.empty((2, n_tables, len(CUTS)))
        for seed in range(n_tables):
            X, blobs = draw_table(n_blobs, seed)
            label_sets = cut_in_all_ways(X, n_blobs)
            counts[seed] = [len(np.unique(labels)) for labels in label_sets]
            indices[seed] = [adjusted_rand_score(blobs, labels) for labels in label_sets]
        cells = [
            f"{np.median(counts_of_cut):g} ({counts_of_cut.min():.0f} to {counts_of_cut.max():.0f})"
            + (f", {index:.2f}" if n_blobs > 1 else "")
            for counts_of_cut, index in zip(counts.T, indices.mean(axis=0), strict=True)
        ]
        print(f"| {'noise' if n_blobs == 1 else f'{n_blobs} blobs'} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
