"""Clusters of wines with cells removed, compared with Ward's method: prints a table of docs/comparison.md.

Run with ``python benchmarks/holes.py``; it takes some ten seconds.

The 178 wines that come with scikit-learn are of three cultivars. A share of the cells is removed at random, and the rows are
clustered: by coaltree with default settings, by its tree cut into three, and by Ward's method into three, after holes were filled
with the columns' means and columns were standardised. The figures are the mean adjusted Rand index against the cultivars with its
standard error over the draws, and how often coaltree without the number of clusters is ahead of Ward.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.cluster import AgglomerativeClustering
from sklearn.datasets import load_wine
from sklearn.impute import SimpleImputer
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import coaltree as ct

SHARES = (0.1, 0.2, 0.3)
METHODS = ("coaltree, number unknown", "coaltree, number given", "Ward, number given")


def indices(share, seed):
    """Return the adjusted Rand index of each method."""
    wine = load_wine()
    X = wine.data.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    model = ct.CoalescentClustering(n_jobs=-1).fit(X)
    ward = make_pipeline(SimpleImputer(), StandardScaler(), AgglomerativeClustering(3)).fit_predict(X)
    return [adjusted_rand_score(wine.target, labels) for labels in (model.labels_, model.cut(n_clusters=3), ward)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two draws instead of twenty")
    n_draws = 2 if parser.parse_args().quick else 20
    warnings.simplefilter("ignore", ct.errors.InputWarning)
    print(f"| removed | {' | '.join(METHODS)} | {METHODS[0]}, is ahead |\n|---|{'---|' * (len(METHODS) + 1)}")
    for share in SHARES:
        scores = np.array([indices(share, seed) for seed in range(n_draws)])
        errors = scores.std(axis=0, ddof=1) / np.sqrt(n_draws)
        cells = [f"{mean:.3f} ± {error:.3f}" for mean, error in zip(scores.mean(axis=0), errors, strict=True)]
        ahead = int(np.sum(scores[:, 0] > scores[:, 2]))
        print(f"| {100 * share:.0f} % | {' | '.join(cells)} | {ahead} of {n_draws} times |", flush=True)


if __name__ == "__main__":
    main()
