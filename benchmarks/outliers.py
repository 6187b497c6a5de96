"""Do outliers hide clear clusters, and are they found? Three clusters with outliers at many distances, and real tables.

Run with ``python benchmarks/outliers.py``; it takes about two minutes, ``--quick`` some seconds.

The clusters have standard deviation 1 and four to six columns, and their centres are at least 8 apart. Outliers are at a distance
from the mean of the table, in standard deviations of a cluster: one row in all columns, one row in one column, two or three rows
in all columns far from each other, three rows in one column each, and a group of four rows, which is large enough for a cluster.
The figures are the mean adjusted Rand index of the other rows against the clusters, the mean number of clusters found, how many
outliers and how many other rows get the label -1 with ``assign_outliers=False``, and how many outliers a remark names.

With ``--tables FOLDER``, detectors are compared on files ``.npz`` with X and y (1 is an outlier), such as the classical tables of
ADBench: at most 700 rows, scaled to [0, 1] on a training part of 70 % that keeps its outliers; the area under the ROC curve of
the other 30 %, complete and with a fifth of all cells removed (other methods get column means), and of the training part itself.
``--widths`` compares sets of widths of our densities: those that are best on one half of the tables are tried on the other half.
``--planted`` moves single cells by three standard deviations of their conditional distribution (in a Gaussian) and counts how
often `explain` names them first. PyOD is needed for ECOD.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import adjusted_rand_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

import coaltree as ct
from coaltree.predict.outliers import OutlierScorer

N_CLUSTERS, N_ROWS, LEAST_DISTANCE = 3, 30, 8.0
DISTANCES = (10.0, 30.0, 1e2, 1e4, 1e6)
MAX_ROWS, MISSING, N_PLANTED = 700, 0.2, 20
WIDTH_SETS = ((0.05,), (0.4,), (1.6,), (0.05, 0.8), (0.05, 0.2, 0.8), (0.05, 0.4, 1.6), (0.1, 0.4, 1.6))


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


def split_table(path, seed, missing):
    """Return the training and test part of a table and which of their rows are outliers."""
    with np.load(path) as data:
        X, y = data["X"].astype(float), data["y"].astype(int)
    if len(X) > MAX_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=MAX_ROWS, stratify=y, random_state=seed)
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    low, span = train.min(axis=0), np.ptp(train, axis=0)
    rng = np.random.default_rng(seed)
    parts = [(part - low) / np.where(span > 0, span, 1.0) for part in (train, test)]
    return [np.where(rng.random(part.shape) < missing, np.nan, part) for part in parts], y_train, y_test


def score_others(train, test, seed):
    """Return the scores of other detectors for a test table, by name: higher for outliers."""
    middle = np.nanmean(train, axis=0)
    train, test = (np.where(np.isnan(part), middle, part) for part in (train, test))
    covariance = np.cov(train.T) + 1e-6 * np.diag(np.full(train.shape[1], train.var(axis=0).mean()))
    gaps = test - train.mean(axis=0)
    scores = {
        "isolation forest": -IsolationForest(random_state=seed).fit(train).score_samples(test),
        "5 neighbours": NearestNeighbors(n_neighbors=5).fit(train).kneighbors(test)[0].mean(axis=1),
        "LOF": -LocalOutlierFactor(novelty=True).fit(train).score_samples(test),
        "one Gaussian": np.einsum("ij,ij->i", gaps @ np.linalg.inv(covariance), gaps),
    }
    try:
        from pyod.models.ecod import ECOD
    except ImportError:
        return scores
    return scores | {"ECOD": ECOD().fit(train).decision_function(test)}


def compare_detectors(folder, seeds, missing):
    """Print the areas under the ROC curve of all detectors on each table."""
    print(f"\nWith {100 * missing:g} % of the cells removed:\n", flush=True)
    areas = {}
    for path in sorted(folder.glob("*.npz")):
        runs = []
        for seed in seeds:
            (train, test), y_train, y_test = split_table(path, seed, missing)
            detector = ct.CoalescentOutlierDetector(n_jobs=1).fit(train)
            scores = {"coaltree": -detector.score_samples(test)} | score_others(train, test, seed)
            run = {name: roc_auc_score(y_test, score) for name, score in scores.items()}
            runs.append(run | {"coaltree, rows of the fit": roc_auc_score(y_train, -detector.score_samples(train))})
        areas[path.stem] = {name: np.mean([run[name] for run in runs]) for name in runs[0]}
        if len(areas) == 1:
            print(f"| table | {' | '.join(runs[0])} |\n|{'---|' * (len(runs[0]) + 1)}")
        print(f"| {path.stem} | {' | '.join(f'{area:.3f}' for area in areas[path.stem].values())} |", flush=True)
    means = np.mean([list(run.values()) for run in areas.values()], axis=0)
    print(f"| mean | {' | '.join(f'{area:.3f}' for area in means)} |")


def compare_widths(folder, seeds):
    """Print the mean areas of sets of widths, and how those that are best on one half of the tables do on the other."""
    paths = sorted(folder.glob("*.npz"))
    areas = np.zeros((len(WIDTH_SETS), len(paths)))
    for k, path in enumerate(paths):
        for seed in seeds:
            (train, test), _, y_test = split_table(path, seed, 0.0)
            detector = ct.CoalescentOutlierDetector(n_jobs=1).fit(train)
            model = detector._model
            X = model.move_tails(model.read_rows(test).matrix)
            for j, widths in enumerate(WIDTH_SETS):
                areas[j, k] += roc_auc_score(y_test, -OutlierScorer(model.predictor, widths).score(X)) / len(seeds)
        print(path.stem, areas[:, k].round(3).tolist(), flush=True)
    for widths, row in zip(WIDTH_SETS, areas, strict=True):
        print(f"{widths}: mean {row.mean():.3f}, halves {row[::2].mean():.3f} and {row[1::2].mean():.3f}")
    for half, other in ((slice(0, None, 2), slice(1, None, 2)), (slice(1, None, 2), slice(0, None, 2))):
        best = int(areas[:, half].mean(axis=1).argmax())
        print(f"chosen on one half: {WIDTH_SETS[best]}, on the other half {areas[best, other].mean():.3f}")


def name_planted_cells(folder, seeds):
    """Print how often `explain` names a moved cell first, and how often the largest deviation in one Gaussian is there."""
    shares = []
    for path in sorted(folder.glob("*.npz")):
        named = []
        for seed in seeds:
            (X, _), y, _ = split_table(path, seed, 0.0)
            X = X[y == 0][:, X.std(axis=0) > 0]
            rng = np.random.default_rng(seed)
            precision = np.linalg.inv(np.cov(X.T) + 1e-6 * np.diag(X.var(axis=0)))
            rows, columns = rng.choice(len(X), N_PLANTED, replace=False), rng.integers(X.shape[1], size=N_PLANTED)
            X[rows, columns] += 3 * rng.choice([-1, 1], N_PLANTED) / np.sqrt(np.diag(precision)[columns])
            gaps = np.abs((X[rows] - X.mean(axis=0)) @ precision) / np.sqrt(np.diag(precision))
            explained = ct.CoalescentOutlierDetector(n_jobs=1).fit(X).explain(X[rows], n_cells=1)
            ours = [row.cells[0].column == f"x{j}" for row, j in zip(explained, columns.tolist(), strict=True)]
            named.append((np.mean(ours), np.mean(gaps.argmax(axis=1) == columns)))
        shares.append(np.mean(named, axis=0))
        print(f"{path.stem}: explain {shares[-1][0]:.2f}, one Gaussian {shares[-1][1]:.2f}", flush=True)
    print(f"mean: explain {np.mean(shares, axis=0)[0]:.2f}, one Gaussian {np.mean(shares, axis=0)[1]:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two tables of each kind")
    parser.add_argument("--tables", type=Path, metavar="FOLDER", help="compare detectors on its tables")
    parser.add_argument("--widths", action="store_true", help="with --tables: compare widths of our densities")
    parser.add_argument("--planted", action="store_true", help="with --tables: explain moved cells")
    parser.add_argument("--seeds", type=int, default=3, help="number of splits of each table")
    arguments = parser.parse_args()
    n_tables = 2 if arguments.quick else 10
    warnings.simplefilter("ignore", ct.errors.InputWarning)
    if arguments.tables is not None:
        seeds = range(1 if arguments.quick else arguments.seeds)
        if arguments.widths or arguments.planted:
            (compare_widths if arguments.widths else name_planted_cells)(arguments.tables, seeds)
        else:
            compare_detectors(arguments.tables, seeds, 0.0)
            compare_detectors(arguments.tables, seeds, MISSING)
        return
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
