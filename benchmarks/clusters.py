"""Clusters and trees compared with other methods, on labelled tables, complete and with missing cells.

Run with ``python benchmarks/clusters.py`` (some minutes on two cores); ``--quick`` leaves the larger tables out,
``--markdown FILE`` also writes the tables of README.md and docs/comparison.md. It needs ``pip install "coaltree[bench]"``.
Four tables come with scikit-learn; the others are read from the folder COALTREE_DATA, or downloaded (`published_tables`).

No method sees a label. Printed for each table: the adjusted Rand index (ARI) with the number of clusters unknown and known, the
dendrogram purity, the number of clusters found and the seconds taken.

- Ours: `CoalescentClustering()` as it comes (with ``standardize="power"`` only on request); the same tree cut into the true
  number; and sampled trees (Markov chains with the same parameters), cut in both ways.
- Linkages, k-means and Gaussian mixtures get standardised real columns and standardised indicators of categories, missing cells
  filled by `KNNImputer`; they are told the number of clusters. Genie and HDBSCAN get the same; HDBSCAN chooses the number itself.
  Gaussian mixtures choose the form of the covariance, and where the number is unknown also the number, by BIC.
- StepMix gets missing cells as they are, with Gaussian and categorical columns, and chooses an unknown number by BIC.
- Gower's distance handles missing cells and mixed columns itself; average linkage of it is told the number.

``--folder DIR`` compares on other tables: files of comma-separated values without header, whose last column is the class. At most
600 rows of each are used.

``--constants`` fits each tree once and tries the three constants of the default clusters: the best ones on one half of the tables
are reported on the other half, and the other way round, so that what is printed was chosen without the tables that it is printed
for.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.impute import KNNImputer
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

import coaltree as ct
from coaltree.inference import partition
from coaltree.metrics import dendrogram_purity
from coaltree.tree.cut import cut_by_count
from published_tables import LABELLED, folder_table, labelled_table, names_in

LARGE = ("digits", "yeast", "statlog")
HOLES = 0.2
COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15)  # of clusters, that BIC chooses from
SAMPLED_ROWS = 600  # up to which trees are sampled
FOLDER_ROWS = 600  # of each table of a folder
TRIED_CONSTANTS = (5, 8, 12), (50.0, 100.0, 200.0), (0.01, 0.02, 0.05, 0.1)


def tables(quick=False, names=LABELLED):
    """Yield the name, the table as a frame, and the classes."""
    for name in names:
        if not (quick and name in LARGE):
            yield name, *labelled_table(name)


def tables_in(folder, names):
    """Yield the name, the table as a frame, and the classes, of some files in a folder."""
    for path in sorted(folder.iterdir()):
        if path.stem in names:
            yield path.stem, *folder_table(path, FOLDER_ROWS)


def with_holes(frame):
    """Return the frame without a fifth of its cells."""
    hidden = np.random.default_rng(0).random(frame.shape) < HOLES
    return frame.mask(hidden)


# -- how the other methods see a table ---------------------------------------------------------------------------------


def filled(frame):
    """Return standardised columns, those of categories as indicators, missing cells filled."""
    parts = []
    for column in frame:
        own = frame[column]
        if own.dtype.name == "category":
            codes = own.cat.codes.to_numpy()
            indicators = np.eye(len(own.cat.categories))[codes]
            indicators[codes < 0] = np.nan
            parts.append(indicators)
        else:
            parts.append(own.to_numpy(float)[:, None])
    X = np.hstack(parts)
    spread = np.nanstd(X, axis=0)
    X = (X - np.nanmean(X, axis=0))[:, spread > 0] / spread[spread > 0]
    return KNNImputer().fit_transform(X) if np.isnan(X).any() else X


def gower(frame):
    """Return Gower's distances, over the columns that two rows both have."""
    total = np.zeros((len(frame), len(frame)))
    both = np.zeros_like(total)
    for column in frame:
        own = frame[column]
        if own.dtype.name == "category":
            values = own.cat.codes.to_numpy(float)
            values[values < 0] = np.nan
            apart = (values[:, None] != values).astype(float)
        else:
            values = own.to_numpy(float)
            if not np.nanmax(values) > np.nanmin(values):
                continue
            apart = np.abs(values[:, None] - values) / (np.nanmax(values) - np.nanmin(values))
        seen = ~np.isnan(values)
        pairs = seen[:, None] & seen
        total[pairs] += apart[pairs]
        both += pairs
    return np.divide(total, both, out=np.full_like(total, total.max()), where=both > 0)


# -- methods: each returns labels with the number unknown, labels with it known, and a tree; None for what it has not --


def ours(frame, k, **settings):
    model = ct.CoalescentClustering(n_jobs=-1, **settings).fit(frame)
    return model.labels_, model.cut(n_clusters=k), model.tree_


def transformed(frame, k):
    return ours(frame, k, standardize="power")


def sampled(frame, k):
    if len(frame) > SAMPLED_ROWS:
        return None, None, None
    model = ct.CoalescentClustering(inference="mcmc", n_chains=2, n_samples=100, n_jobs=-1, random_state=0).fit(frame)
    return model.labels_, model.cut(n_clusters=k), model.tree_


def by_linkage(method):
    def run(frame, k):
        tree = ct.Tree.from_linkage(linkage(filled(frame), method))
        return None, cut_by_count(tree, k), tree

    return run


def gower_average(frame, k):
    distances = gower(frame)
    np.fill_diagonal(distances, 0.0)
    tree = ct.Tree.from_linkage(linkage(squareform(distances, checks=False), "average"))
    return None, cut_by_count(tree, k), tree


def genie(frame, k):
    import genieclust

    return None, genieclust.Genie(n_clusters=k).fit_predict(filled(frame)), None


def hdbscan(frame, k):
    return HDBSCAN(copy=True).fit_predict(filled(frame)), None, None


def k_means(frame, k):
    return None, KMeans(k, n_init=10, random_state=0).fit_predict(filled(frame)), None


def mixture(frame, k):
    X = filled(frame)

    def best(counts):
        trials = [
            GaussianMixture(count, covariance_type=form, reg_covar=1e-3, random_state=0).fit(X)
            for count in counts
            for form in ("full", "tied", "diag", "spherical")
        ]
        return min(trials, key=lambda trial: trial.bic(X)).predict(X)

    return best(COUNTS), best([k]), None


def step_mix(frame, k):
    from stepmix.stepmix import StepMix

    columns = [column for column in frame if frame[column].nunique() > 1]
    data = pd.DataFrame(
        {
            str(column): frame[column].cat.codes.replace(-1, np.nan).astype(float)
            if frame[column].dtype.name == "category"
            else (frame[column] - frame[column].mean()) / frame[column].std()
            for column in columns
        }
    )
    names = {
        kind: [str(c) for c in columns if (frame[c].dtype.name == "category") == (kind == "states")]
        for kind in ("states", "real")
    }
    measurement = {
        kind: {"model": "categorical_nan" if kind == "states" else "gaussian_diag_nan", "n_columns": len(own)}
        for kind, own in names.items()
        if own
    }
    data = data[names["states"] + names["real"]]

    def fitted(count):
        return StepMix(count, measurement=measurement, max_iter=100, random_state=0, verbose=0, progress_bar=0).fit(
            data
        )

    trials = {count: fitted(count) for count in sorted({*COUNTS, k})}
    chosen, known = min(trials.values(), key=lambda trial: trial.bic(data)), trials[k]
    return chosen.predict(data), known.predict(data), None


METHODS = {
    "coaltree": ours,
    "coaltree, power": transformed,
    "coaltree, sampled": sampled,
    "Ward": by_linkage("ward"),
    "average": by_linkage("average"),
    "Gower, average": gower_average,
    "Genie": genie,
    "HDBSCAN": hdbscan,
    "k-means": k_means,
    "Gaussian mixture": mixture,
    "StepMix": step_mix,
}


DEFAULT_METHODS = [name for name in METHODS if name != "coaltree, power"]


# -- measuring -------------------------------------------------------------------------------------------------------------


def measured(method, frame, classes):
    """Return ARI unknown and known, purity, number found and seconds."""
    k = len(set(classes.tolist()))
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        free, known, tree = METHODS[method](frame, k)
    seconds = time.perf_counter() - start

    def ari(labels):
        return np.nan if labels is None else adjusted_rand_score(classes, labels)

    purity = np.nan if tree is None else dendrogram_purity(tree, classes.tolist())
    n_found = np.nan if free is None else len(set(free.tolist()) - {-1})
    return ari(free), ari(known), purity, n_found, seconds


def text_of(value, digits=2):
    return (
        ""
        if np.isnan(value)
        else f"{value:.{digits}f}".replace("0.", ".", 1)
        if abs(value) < 1
        else f"{value:.{digits}f}"
    )


def compare(methods, chosen):
    """Print all figures, table by table, and return them: {holes: {method: (tables, 5)}}."""
    results = {False: {}, True: {}}
    for name, frame, classes in chosen:
        for holes in (False, True):
            seen = with_holes(frame) if holes else frame
            print(
                f"\n{name}{', a fifth of the cells removed' if holes else ''}: {len(frame)} rows, "
                f"{len(set(classes.tolist()))} classes"
            )
            print(f"  {'':20}unknown  known  purity  found  seconds")
            for method in methods:
                found = measured(method, seen, classes)
                results[holes].setdefault(method, []).append(found)
                print(
                    f"  {method:20}{text_of(found[0]):>7}{text_of(found[1]):>7}{text_of(found[2]):>8}"
                    f"{'' if np.isnan(found[3]) else int(found[3]):>7}{found[4]:>9.2f}",
                    flush=True,
                )
    return results


def summary(results):
    """Return the means over tables as a table in Markdown."""
    lines = [
        "| | ARI, number unknown | ARI, number known | purity | 20 % removed: unknown | known | purity | median seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for method in results[False]:
        complete, holes = np.array(results[False][method]), np.array(results[True][method])
        partial = np.isnan(complete[:, :3]).all(axis=1).any()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cells = [*np.nanmean(complete[:, :3], axis=0), *np.nanmean(holes[:, :3], axis=0)]
        seconds = np.median(complete[:, 4])
        name = f"{method} (tables of up to {SAMPLED_ROWS} rows)" if partial else method
        lines.append(f"| {name} | {' | '.join(text_of(cell, 3) for cell in cells)} | {seconds:.2g} |")
    return "\n".join(lines)


def choose_constants(chosen):
    """Print what constants around ours give, the best on one half of the tables reported on the other."""
    ours_at = partition.N_DIMENSIONS, partition.FREEDOM, partition.CONCENTRATION
    tried = list(itertools.product(*TRIED_CONSTANTS))
    scores = []  # by table, complete and with holes, and by setting
    for name, frame, classes in chosen:
        for seen in (frame, with_holes(frame)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = ct.CoalescentClustering(n_jobs=-1).fit(seen)._model
            scores.append([])
            for setting in tried:
                partition.N_DIMENSIONS, partition.FREEDOM, partition.CONCENTRATION = setting
                vars(model).pop("_evidence", None)
                scores[-1].append(adjusted_rand_score(classes, model.cut(model.cluster_settings)))
        print(name, flush=True)
    partition.N_DIMENSIONS, partition.FREEDOM, partition.CONCENTRATION = ours_at
    table = np.array(scores).T
    halves = np.arange(table.shape[1]) // 2 % 2 == 0
    print("dimensions, degrees of freedom, concentration: mean ARI of all tables; on even and odd tables")
    for setting, own in zip(tried, table, strict=True):
        print(f"  {setting}: {own.mean():.3f}; {own[halves].mean():.3f} {own[~halves].mean():.3f}")
    for half in (halves, ~halves):
        best = int(table[:, half].mean(axis=1).argmax())
        print(
            f"best on one half: {tried[best]}, ARI {table[best, half].mean():.3f}; on the other "
            f"{table[best, ~half].mean():.3f}, where ours have {table[tried.index(ours_at), ~half].mean():.3f}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave the larger tables out")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=DEFAULT_METHODS)
    parser.add_argument("--markdown", type=Path, help="file for the table of means")
    parser.add_argument("--constants", action="store_true", help="try the constants of the default clusters instead")
    parser.add_argument("--folder", type=Path, help="folder of other tables")
    parser.add_argument("--tables", help="names of tables, divided by commas")
    given = parser.parse_args()
    known = sorted(path.stem for path in given.folder.iterdir()) if given.folder else LABELLED
    try:
        names = names_in(given.tables, known) if given.tables else known
    except argparse.ArgumentTypeError as error:
        parser.error(str(error))
    chosen = tables_in(given.folder, names) if given.folder else tables(given.quick, names)
    if given.constants:
        choose_constants(chosen)
        return
    results = compare(given.methods, chosen)
    text = summary(results)
    print("\nmeans over the tables\n" + text)
    if given.markdown:
        given.markdown.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
