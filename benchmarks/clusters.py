"""How good are clusters and trees, beside those of other methods? Labelled tables, complete and with holes.

Run with ``python benchmarks/clusters.py`` (some minutes on two cores); ``--quick`` leaves the larger tables out,
``--markdown FILE`` also writes the tables of README.md and docs/comparison.md. It needs ``pip install "coaltree[bench]"``.
Four tables come with scikit-learn; the others are read from the folder ``tables`` in COALTREE_DATA, or downloaded.

No method sees a label. Printed for each table: the adjusted Rand index (ARI) with the number of clusters unknown and known, the
dendrogram purity, the number of clusters found and the seconds taken.

- Ours: `CoalescentClustering()` as it comes; the same tree cut into the true number; and sampled trees (Markov chains with the
  same parameters), cut in both ways.
- Linkages, k-means and Gaussian mixtures get standardised real columns and standardised indicators of categories, missing cells
  filled by `KNNImputer`; they are told the number of clusters. Genie and HDBSCAN get the same; HDBSCAN chooses the number itself.
  Gaussian mixtures choose the form of the covariance, and where the number is unknown also the number, by BIC.
- StepMix gets missing cells as they are, with Gaussian and categorical columns, and chooses an unknown number by BIC.
- Gower's distance handles missing cells and mixed columns itself; average linkage of it is told the number.

``--defaults`` tries resolutions, rates and noises around the defaults: what is best on one half of the tables is reported on the
other half, and the other way round, so that what is printed was chosen without the tables that it is printed for.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import time
import urllib.request
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform
from sklearn import datasets
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.impute import KNNImputer
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

import coaltree as ct
from coaltree.estimators import modelling
from coaltree.metrics import dendrogram_purity
from coaltree.tree.cut import cut_by_count

GAGOLEWSKI = (
    "https://raw.githubusercontent.com/gagolews/clustering-data-v1/27ac73a6fd331fb18181419838d2e753dd1b5f80/uci/"
)
# by the name in the folder of the data: address, and checksum of the unpacked content
SOURCES = {
    "ecoli.data": (
        GAGOLEWSKI + "ecoli.data.gz",
        "6a5f731092c04e6a7e04e6fb21a0dba714881857ab32f64e3078dd2e096a9b57",
    ),
    "ecoli.labels": (
        GAGOLEWSKI + "ecoli.labels0.gz",
        "7d6cbfda67cb20942cafe51d3f98403a564e03a9bcc418d218ec50ab33af77e4",
    ),
    "glass.data": (
        GAGOLEWSKI + "glass.data.gz",
        "ff0df47911e82b92da63c21dbd9c0825d3944c8c4748360c04bd65d3a2630cff",
    ),
    "glass.labels": (
        GAGOLEWSKI + "glass.labels0.gz",
        "b4af227b39d04f669501dfe2f54ebb0a6c18cb63b49de95ccfbc3a7be56c4efb",
    ),
    "ionosphere.data": (
        GAGOLEWSKI + "ionosphere.data.gz",
        "933b9662b3b89a4fd5fcc791c4c0140bead4744daea9bc5df98838538e45cf06",
    ),
    "ionosphere.labels": (
        GAGOLEWSKI + "ionosphere.labels0.gz",
        "b49b9727c03cfe190693e00d6b62a36006b6d07546461e2d43684bc5a7010d3d",
    ),
    "yeast.data": (
        GAGOLEWSKI + "yeast.data.gz",
        "b5b1d03627872e9710393a606f78888c995c85216583563728c9a3c6852b4597",
    ),
    "yeast.labels": (
        GAGOLEWSKI + "yeast.labels0.gz",
        "06d6e8594116f63a70e5a7bdede2c687c9a92080cfe9298d3bda42a13c57b1d4",
    ),
    "statlog.data": (
        GAGOLEWSKI + "statlog.data.gz",
        "175ab7900a449c10c2cf0acc6e1e93e7dc740abaeddff5b2216618b488feae72",
    ),
    "statlog.labels": (
        GAGOLEWSKI + "statlog.labels0.gz",
        "6099707e6565b812317e8a2a6487ec39e8a7cbf3499a74cd83f1c7689d6d1981",
    ),
    "votes.data": (
        "https://raw.githubusercontent.com/1013mbar/KNN/4d03705d4b2dccd1bea9a335e9ddf1492c634ecb/house-votes-84.data",
        "a95567216788606c4a46e8aad9e177f826cefa0447078a2c5c86e76c7c4eb6b6",
    ),
    "hepatitis.data": (
        "https://raw.githubusercontent.com/superleader13/Clusterisasi-Hepatitis/68d723b1601f4327666f608790d35628bc6f6251/hepatitis.data",
        "9c6ad7ac2b657e0a81b613ec542cb3a23c8fd2f349db38b591a410af7af2aa1b",
    ),
}
LARGE = ("digits", "yeast", "statlog")
HOLES = 0.2
COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15)  # of clusters, that BIC chooses from
SAMPLED_ROWS = 600  # up to which trees are sampled


def content(name):
    """Return a file of labelled tables: from a folder, or downloaded and checked."""
    address, checksum = SOURCES[name]
    folder = os.environ.get("COALTREE_DATA")
    path = None if folder is None else Path(folder) / "tables" / name
    if path is not None and path.is_file():
        data = path.read_bytes()
    else:
        with urllib.request.urlopen(address) as answer:
            data = answer.read()
        data = gzip.decompress(data) if address.endswith(".gz") else data
    if hashlib.sha256(data).hexdigest() != checksum:
        raise ValueError(f"{name} is not the file that was published: its checksum differs.")
    return data.decode()


def rows_of(text, separator=None):
    """Return the cells of a text, a list for each line."""
    return [[cell.strip() for cell in line.split(separator)] for line in text.splitlines() if line.strip()]


def tables(quick=False):
    """Yield the name, the table as a frame, and the classes."""
    for name, load in (
        ("iris", datasets.load_iris),
        ("wine", datasets.load_wine),
        ("breast cancer", datasets.load_breast_cancer),
        ("digits", datasets.load_digits),
    ):
        if not (quick and name in LARGE):
            found = load()
            yield name, pd.DataFrame(found.data.astype(float)), found.target
    for name in ("ecoli", "glass", "ionosphere", "yeast", "statlog"):
        if not (quick and name in LARGE):
            cells = np.array(rows_of(content(f"{name}.data")), dtype=float)
            yield name, pd.DataFrame(cells), np.array(rows_of(content(f"{name}.labels")))[:, 0]
    for name, text in (("votes", content("votes.data")), ("hepatitis", content("hepatitis.data"))):
        header, *rows = rows_of(text, ",")
        frame = pd.DataFrame(rows, columns=header).replace(["?", "N/A", "NA", ""], None)
        classes = pd.factorize(frame.pop(header[0]))[0]
        for column in frame:
            if frame[column].nunique() == 2:
                frame[column] = frame[column].astype("category")
            else:
                frame[column] = pd.to_numeric(frame[column]).astype(float)
        yield name, frame, classes


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


def ours(frame, k):
    model = ct.CoalescentClustering(n_jobs=-1).fit(frame)
    return model.labels_, model.cut(n_clusters=k), model.tree_


def sampled(frame, k):
    if len(frame) > SAMPLED_ROWS:
        return None, None, None
    model = ct.CoalescentClustering(
        inference="mcmc", calibrate=0, n_chains=2, n_samples=100, n_jobs=-1, random_state=0
    ).fit(frame)
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


def compare(methods, quick):
    """Print all figures, table by table, and return them: {holes: {method: (tables, 5)}}."""
    results = {False: {}, True: {}}
    for name, frame, classes in tables(quick):
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


def choose_defaults(quick):
    """Print what the defaults around ours give, the best on one half of the tables reported on the other."""
    tried = [
        (rate, noise, site_noise, resolution)
        for rate in (0.25, 0.5, 1.0)
        for noise, site_noise in ((0.3, 0.1), (0.5, 0.2), (0.7, 0.4))
        for resolution in (0.12, 0.15, 0.18, 0.2, 0.22, 0.25, 0.3)
    ]
    scores = {setting: [] for setting in tried}
    kept = modelling.RATE, modelling.NOISE, modelling.SITE_RATE, modelling.SITE_NOISE
    for name, frame, classes in tables(quick):
        for seen in (frame, with_holes(frame)):
            fitted = {}
            for setting in tried:
                rate, noise, site_noise, resolution = setting
                modelling.RATE, modelling.NOISE, modelling.SITE_RATE, modelling.SITE_NOISE = (
                    rate,
                    noise,
                    2 * rate,
                    site_noise,
                )
                if setting[:3] not in fitted:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        fitted[setting[:3]] = ct.CoalescentClustering(n_jobs=-1).fit(seen)
                labels = fitted[setting[:3]].cut(resolution=resolution)
                scores[setting].append(adjusted_rand_score(classes, labels))
        print(name, flush=True)
    modelling.RATE, modelling.NOISE, modelling.SITE_RATE, modelling.SITE_NOISE = kept
    table = np.array([scores[setting] for setting in tried])
    print("rate, noise, noise of categories, resolution: mean ARI of all tables; on even and odd tables")
    halves = np.arange(table.shape[1]) // 2 % 2 == 0
    for setting, own in zip(tried, table, strict=True):
        print(f"  {setting}: {own.mean():.3f}; {own[halves].mean():.3f} {own[~halves].mean():.3f}")
    for half in (halves, ~halves):
        best = int(table[:, half].mean(axis=1).argmax())
        ours_at = tried.index((0.5, 0.5, 0.2, modelling.RESOLUTION))
        print(
            f"best on one half: {tried[best]}, ARI {table[best, half].mean():.3f}; on the other "
            f"{table[best, ~half].mean():.3f}, where the defaults have {table[ours_at, ~half].mean():.3f}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave the larger tables out")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--markdown", type=Path, help="file for the table of means")
    parser.add_argument("--defaults", action="store_true", help="try parameters around the defaults instead")
    given = parser.parse_args()
    if given.defaults:
        choose_defaults(given.quick)
        return
    results = compare(given.methods, given.quick)
    text = summary(results)
    print("\nmeans over the tables\n" + text)
    if given.markdown:
        given.markdown.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
