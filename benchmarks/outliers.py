"""Do outliers hide clear clusters? Three clusters of 30 rows, with outliers at many distances.

Run with ``python benchmarks/outliers.py``; it takes about two minutes, ``--quick`` some seconds.

The clusters have standard deviation 1 and four to six columns, and their centres are at least 8 apart. Outliers are at a distance
from the mean of the table, in standard deviations of a cluster: one row in all columns, one row in one column, two or three rows
in all columns far from each other, three rows in one column each, and a group of four rows, which is large enough for a cluster.
The figures are the mean adjusted Rand index of the other rows against the clusters, the mean number of clusters found, how many
outliers and how many other rows get the label -1 with ``assign_outliers=False``, and how many outliers a remark names.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.metrics import adjusted_rand_score

import coaltree as ct

N_CLUSTERS, N_ROWS, LEAST_DISTANCE = 3, 30, 8.0
DISTANCES = (10.0, 30.0, 1e2, 1e4, 1e6)


def clusters(rng, n_columns):
    """Return three clusters, and the cluster of each row."""
    while True:
        centres = rng.uniform(-8, 8, size=(N_CLUSTERS, n_columns))
        apart = np.linalg.norm(centres[:, None] - centres, axis=2)[~np.eye(N_CLUSTERS, dtype=bool)]
        if np.all(apart >= LEAST_DISTANCE):
            break
    classes = np.repeat(np.arange(N_CLUSTERS), N_ROWS)
    return centres[classes] + rng.normal(size=(len(classes), n_columns)), classes


def in_all_columns(n_rows):
    """Return a function that puts some outliers far from each other."""

    def outliers(X, distance, rng):
        signs = np.ones((n_rows, X.shape[1]))
        signs[1:] *= -1
        signs[2:, 1::2] = 1
        return X.mean(axis=0) + distance * signs

    return outliers


def in_one_column(n_rows):
    """Return a function that moves copies of some rows in one column each."""

    def outliers(X, distance, rng):
        moved = X[:n_rows].copy()
        moved[np.arange(n_rows), np.arange(n_rows)] += distance
        return moved

    return outliers


def group(X, distance, rng):
    return X.mean(axis=0) + distance + rng.normal(size=(4, X.shape[1]))


KINDS = {
    "one row": in_all_columns(1),
    "two rows": in_all_columns(2),
    "three rows": in_all_columns(3),
    "one row, one column": in_one_column(1),
    "three rows, one column each": in_one_column(3),
    "a group of four": group,
}


def measure(outliers, distance, seed):
    """Return the figures for one table."""
    rng = np.random.default_rng(seed)
    X, classes = clusters(rng, 4 + seed % 3)
    n = len(X)
    model = ct.CoalescentClustering().fit(np.vstack([X, outliers(X, distance, rng)]))
    alone = model.cut(assign_outliers=False)
    remarks = " ".join(model.remarks_)
    named = sum(f"'{row}'" in remarks or f"row {row} (" in remarks for row in range(n, len(alone)))
    index = adjusted_rand_score(classes, model.labels_[:n])
    return index, model.n_clusters_, np.sum(alone[n:] < 0), np.sum(alone[:n] < 0), named, len(alone) - n


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two tables of each kind")
    n_tables = 2 if parser.parse_args().quick else 10
    warnings.simplefilter("ignore", ct.errors.InputWarning)
    print("| outliers | distance | index | clusters | outliers labelled -1 | other rows labelled -1 | outliers named |")
    print(f"|{'---|' * 7}")
    for kind, outliers in KINDS.items():
        for distance in DISTANCES:
            results = np.array([measure(outliers, distance, seed) for seed in range(n_tables)])
            index, count = results[:, :2].mean(axis=0)
            out, other, named, total = results[:, 2:].sum(axis=0).astype(int).tolist()
            print(
                f"| {kind} | {distance:g} | {index:.2f} | {count:.1f} | {out} of {total} | {other} | {named} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
