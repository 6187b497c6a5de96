"""The default cut on noise and on blobs: prints the tables of docs/flat_clusters.md.

Run with ``python benchmarks/cuts.py``; it takes a few minutes on two cores, ``--quick`` some seconds.

Tables of 200 rows and 5 real columns: pure Gaussian noise, which has no clusters, and blobs of standard deviation 1 whose
centres are at least 8 apart. Each table is fitted once, with default settings, and cut in every way; Brownian motion needs a fit
of its own. The figures are the median number of clusters with the smallest and the largest, and the
mean adjusted Rand index against the blobs.

A second table has blobs of scikit-learn's ``make_blobs`` with its default spread, 300 rows each, which overlap more in fewer
columns. Ward's method is given the number of blobs, the Gaussian mixture (full covariances) chooses it by BIC.

A third table counts how many tables of noise of several kinds stay in one cluster.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.cluster import HDBSCAN
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

import coaltree as ct

N_ROWS, N_COLUMNS = 200, 5
LEAST_DISTANCE = 8.0
BLOBS = (1, 3, 4, 5, 6, 7, 8)
RESOLUTIONS = (0.1, 0.2, 0.4, 0.6)
MADE_BLOBS = ((2, 2), (3, 2), (5, 2), (8, 2), (3, 1), (5, 3), (10, 3), (5, 5), (10, 5), (20, 10))  # (blobs, columns)
NOISE = ((60, 10), (200, 5), (400, 5), (30, 20))  # rows and columns
MAX_MIXTURE = 12  # components that BIC chooses from
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


def cut_made_blobs(n_blobs, n_columns, seed):
    """Return adjusted Rand indices by method on blobs of scikit-learn."""
    X, blobs = make_blobs(300, centers=n_blobs, n_features=n_columns, random_state=seed)
    model = ct.CoalescentClustering().fit(X)
    mixtures = [GaussianMixture(k, random_state=0, reg_covar=1e-3).fit(X) for k in range(1, MAX_MIXTURE + 1)]
    label_sets = {
        "default": model.labels_,
        "HDBSCAN": HDBSCAN(copy=True).fit_predict(X),
        "Gaussian mixture": min(mixtures, key=lambda mixture: mixture.bic(X)).predict(X),
        "coaltree, number known": model.cut(n_clusters=n_blobs),
        "Ward, number known": fcluster(linkage(X, "ward"), n_blobs, "maxclust"),
    }
    return {name: adjusted_rand_score(blobs, labels) for name, labels in label_sets.items()}


def compare_on_made_blobs(n_tables):
    """Print the second table."""
    for row, (n_blobs, n_columns) in enumerate(MADE_BLOBS):
        scores = [cut_made_blobs(n_blobs, n_columns, seed) for seed in range(n_tables)]
        if row == 0:
            print(f"\n| blobs, columns | {' | '.join(scores[0])} |\n|---|{'---|' * len(scores[0])}")
        means = [np.mean([score[name] for score in scores]) for name in scores[0]]
        print(f"| {n_blobs}, {n_columns} | {' | '.join(f'{mean:.2f}' for mean in means)} |", flush=True)


def count_noise(n_tables):
    """Print the third table."""
    print("\n| noise: rows, columns | Gaussian | uniform | coin tosses |\n|---|---|---|---|")
    for n_rows, n_columns in NOISE:
        counts = np.zeros(3, dtype=int)
        for seed in range(n_tables):
            rng = np.random.default_rng(seed)
            shape = n_rows, n_columns
            for kind, X in enumerate((rng.normal(size=shape), rng.random(shape), rng.random(shape) < 0.5)):
                counts[kind] += ct.CoalescentClustering().fit(X).n_clusters_ == 1
        print(f"| {n_rows}, {n_columns} | {' | '.join(f'{count} of {n_tables}' for count in counts)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two tables of each kind")
    options = parser.parse_args()
    n_tables = 2 if options.quick else 20
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
    compare_on_made_blobs(n_tables)
    count_noise(n_tables)


if __name__ == "__main__":
    main()
