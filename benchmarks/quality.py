"""Quality of trees found by the neighbour search, compared with the exact search on tables of 10,000 rows.

Run with ``python benchmarks/quality.py``; ``--quick`` for a smoke run. MNIST's 10,000 test images are read from the folder that
COALTREE_DATA names (``mnist/t10k-images-idx3-ubyte.gz`` and its labels) and left out, visibly, where they are not there.

Printed is what the search by neighbours loses against the exact one: log joint as a share, and the difference of three scores
of the tree against the true labels. So that rounds have something to do, they go on down to 1,000 lineages and not 10,000 as
usual. Noise is a tenth of the variance.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import os
from pathlib import Path

import numpy as np

import coaltree as ct
from coaltree import metrics
from coaltree.tree.cut import cut_by_count

N = 10_000
COLUMNS = (2, 10, 50)


def blobs(n, n_columns, rng):
    """Return a hundred round clusters, which overlap."""
    labels = rng.integers(100, size=n)
    return 3 * rng.normal(size=(100, n_columns))[labels] + rng.normal(size=(n, n_columns)), labels


def from_the_model(n, n_columns, rng):
    """Return a table drawn from the coalescent; the labels are a cut of the tree that it was drawn on."""
    tree = ct.simulate_tree(n, rng)
    X = ct.Brownian(1.0, 0.01).simulate(tree, rng, n_columns=n_columns)
    return X, cut_by_count(tree, 20)


def mnist(n, n_columns, rng):
    """Return pixels through principal components."""
    folder = Path(os.environ.get("COALTREE_DATA", "data")) / "mnist"
    images = _idx(folder / "t10k-images-idx3-ubyte.gz")[:n]
    labels = _idx(folder / "t10k-labels-idx1-ubyte.gz")[:n]
    pixels = images.reshape(len(images), -1) / 255.0
    pixels -= pixels.mean(axis=0)
    _, vectors = np.linalg.eigh(pixels.T @ pixels)
    return pixels @ vectors[:, ::-1][:, :n_columns], labels.astype(np.intp)


def _idx(path):
    with gzip.open(path, "rb") as file:
        data = file.read()
    n_axes = data[3]
    shape = np.frombuffer(data, ">i4", n_axes, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * n_axes).reshape(shape)


def scores(tree, labels):
    """Return subtree score, leave-one-out accuracy and dendrogram purity."""
    return np.array(
        [
            metrics.subtree_score(tree, labels),
            metrics.leave_one_out_accuracy(tree, labels),
            metrics.dendrogram_purity(tree, labels),
        ]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="2,000 rows")
    options = parser.parse_args()
    n = 2_000 if options.quick else N
    importlib.import_module("coaltree.inference.greedy").MIN_LINEAGES_IN_SPACE = 1_000
    print("| table | columns | log joint lost | recall | subtree score | leave-one-out | purity |")
    print("|---|---|---|---|---|---|---|")
    for make in (blobs, mnist, from_the_model):
        for n_columns in COLUMNS:
            try:
                X, labels = make(n, n_columns, np.random.default_rng(n_columns))
            except OSError:
                print(f"| {make.__name__} | {n_columns} | not there: left out | | | | |", flush=True)
                continue
            process = ct.Brownian(X.var(axis=0), 0.1)
            exact = ct.greedy(X, process, search="exact", n_jobs=2)
            result = ct.greedy(X, process, search="neighbors", n_jobs=2)
            loss = (exact.log_joint - result.log_joint) / abs(exact.log_joint)
            differences = scores(result.tree, labels) - scores(exact.tree, labels)
            recall = "-" if result.neighbor_recall is None else f"{result.neighbor_recall:.3f}"
            print(
                f"| {make.__name__.replace('_', ' ')} | {n_columns} | {loss:.1e} | {recall} | "
                + " | ".join(f"{difference:+.4f}" for difference in differences)
                + " |",
                flush=True,
            )


if __name__ == "__main__":
    main()
