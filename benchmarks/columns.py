"""Which columns matter: planted noise, tables of customers, and labelled tables with and without the columns that are left out.

Run with ``python benchmarks/columns.py`` (some minutes); ``--quick`` takes one seed. ``--shares`` instead tries other values of
`MAX_SHARE`, below which a column is left out, on the tables of `benchmarks/clusters.py`: the best on one half of the tables is
reported on the other half. Other tables come from ``--folder DIR``, as there.

- Noise of 16 kinds is planted into simulated and published tables, eight kinds at a time. A column is informative if it depends
  on the classes, which the signal does not see. Printed: how many planted columns rank below all informative ones, how many are
  left out of the tree, and how many informative ones.
- Customers: 3,000 rows in five groups, 17 columns, among them names, zip codes and notes.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import coaltree as ct
from clusters import tables_in, with_holes
from coaltree.inference import signals
from coaltree.metrics import dendrogram_purity
from coaltree.table.columns import read_columns
from coaltree.table.encoding import encode
from coaltree.workflow.fit import prepare_table
from coaltree.workflow.processes import to_matrix
from coaltree.workflow.settings import ClusterSettings
from published_tables import LABELLED, labelled_table

WORDS = [f"word{k}" for k in range(40)]
LEAST_SIGNAL = 0.1  # with the classes, of an informative column
SHARES = (0.0, 0.05, 0.1, 0.2, 0.3)
NOISE = {
    "uniform": lambda rng, n: rng.random(n),
    "normal": lambda rng, n: rng.normal(size=n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "lognormal": lambda rng, n: np.exp(2 * rng.normal(size=n)),
    "whole numbers": lambda rng, n: rng.integers(0, 10, n),
    "counts": lambda rng, n: rng.poisson(1.0, n),
    "coin": lambda rng, n: rng.choice(["h", "t"], n),
    "0 and 1": lambda rng, n: rng.integers(0, 2, n),
    "3 % yes": lambda rng, n: rng.choice(["y", "n"], n, p=[0.03, 0.97]),
    "10 categories": lambda rng, n: rng.choice(list("abcdefghij"), n),
    "100 categories": lambda rng, n: np.array([f"k{k}" for k in rng.integers(0, 100, n)]),
    "rare categories": lambda rng, n: np.array([f"k{min(k, 300)}" for k in rng.zipf(1.5, n)]),
    "zip codes": lambda rng, n: rng.integers(10_000, 99_999, n),
    "ids": lambda rng, n: rng.permutation(n) + 1,
    "dates": lambda rng, n: pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
    "texts": lambda rng, n: np.array([" ".join(rng.choice(WORDS, 5)) for _ in range(n)], object),
}


def blobs(n_blobs, n_columns, n_rows, seed):
    X, classes = make_blobs(n_rows, centers=n_blobs, n_features=n_columns, random_state=seed)
    return pd.DataFrame(X).rename(columns=str), classes


def grouped(n_groups, n_real, n_categorical, n_rows, seed):
    """Return real and categorical columns of overlapping groups."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_groups, n_rows)
    columns = {f"x{j}": rng.normal(size=n_rows) + rng.normal(0, 1.5, n_groups)[group] for j in range(n_real)}
    for j in range(n_categorical):
        shares = rng.dirichlet(np.full(4, 0.7), n_groups)
        columns[f"c{j}"] = np.array(list("wxyz"))[[rng.choice(4, p=shares[k]) for k in group]]
    return pd.DataFrame(columns), group


def customers(seed, n=3000, overlap=1.2):
    """Return customers of five groups; their names, zip codes, notes, regions and sexes have nothing to do with them."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 5, n)

    def normal(*means, sd):
        return rng.normal(np.array(means)[group], overlap * sd)

    def level(*categories, concentration=0.6):
        shares = rng.dirichlet(np.full(len(categories), concentration), 5)
        return np.array(categories, object)[[rng.choice(len(categories), p=shares[k]) for k in group]]

    columns = {
        "name": np.array([f"Name{k}" for k in range(180)], object)[rng.choice(180, n)],
        "age": np.clip(normal(27, 38, 46, 58, 67, sd=7), 18, 95).round(),
        "sex": rng.choice(["f", "m"], n).astype(object),
        "zip": rng.integers(10_000, 99_999, n),
        "region": rng.choice(list("ABCDEFGHIJ"), n).astype(object),
        "income": np.exp(normal(10.0, 10.9, 10.4, 11.3, 10.1, sd=0.35)),
        "spend": np.exp(normal(3.5, 4.6, 6.0, 5.4, 4.0, sd=0.6)),
        "orders": rng.poisson(np.exp(normal(0.7, 1.8, 3.1, 2.3, 1.4, sd=0.4))),
        "basket": np.exp(normal(2.6, 3.4, 2.9, 4.2, 3.2, sd=0.4)),
        "tenure": np.exp(normal(2.0, 3.2, 4.1, 3.7, 4.5, sd=0.7)),
        "returns": rng.binomial(20, np.array([0.25, 0.1, 0.04, 0.15, 0.02])[group]) / 20,
        "visits": rng.poisson(np.exp(normal(3.2, 2.5, 3.7, 1.8, 0.7, sd=0.4))),
        "plan": level("basic", "plus", "premium"),
        "channel": level("web", "app", "shop", "phone"),
        "device": level("ios", "android", "windows", "mac"),
        "newsletter": level("no", "yes"),
        "notes": np.where(rng.random(n) < 0.51, None, NOISE["texts"](rng, n)),
    }
    frame = pd.DataFrame(columns)
    for name in ("age", "income", "returns", "device"):
        frame[name] = frame[name].mask(rng.random(n) < 0.06)
    return frame, group


def signals_of(frame):
    """Return the signals of a table by name, and the names of the columns that are left out."""
    table, encoding = prepare_table(read_columns(frame), ClusterSettings())
    encoded = encode(table.table, encoding)
    found = signals.column_signals(to_matrix(encoded), encoded.real.shape[1])
    names = [*encoded.real_names, *encoded.categorical_names]
    idle = {name for name, is_idle in zip(names, found.is_idle, strict=True) if is_idle}
    return dict(zip(names, found.signal.tolist(), strict=True)), idle


def depends_on(column, classes):
    """Return whether a column depends on classes."""
    frame = pd.DataFrame({"column": column, "class": pd.Categorical(classes.astype(str))})
    return signals_of(frame)[0].get("column", 0.0) > LEAST_SIGNAL


def with_classes(seed):
    yield "3 blobs, 600 x 4", *blobs(3, 4, 600, seed)
    yield "5 blobs, 300 x 10", *blobs(5, 10, 300, seed)
    yield "mixed, 500 x 8", *grouped(4, 4, 4, 500, seed)
    yield "categories, 400 x 8", *grouped(3, 0, 8, 400, seed)
    yield "customers, 800 x 17", *customers(seed, 800)
    for name in LABELLED:
        if name != "digits":
            yield name, *labelled_table(name)


def planted(n_seeds):
    """Return a table in Markdown: how planted noise ranks."""
    counts = {}
    for seed in range(n_seeds):
        for name, frame, classes in with_classes(seed):
            informative = [str(column) for column in frame if depends_on(frame[column], classes)]
            frame, rng = frame.rename(columns=str), np.random.default_rng([seed, len(frame)])
            for kinds in (list(NOISE)[::2], list(NOISE)[1::2]):
                own = frame.assign(**{f"noise {kind}": NOISE[kind](rng, len(frame)) for kind in kinds})
                found, idle = signals_of(own)
                least = min(found[column] for column in informative)
                noise = [f"noise {kind}" for kind in kinds]
                below = sum(found.get(column, 0.0) < least for column in noise)
                row = (
                    below,
                    len(idle.intersection(noise)),
                    len(noise),
                    len(idle.intersection(informative)),
                    len(informative),
                )
                counts[name] = np.add(counts.get(name, 0), row)
    lines = ["| table | below all informative columns | left out | informative ones left out |", "|---|---|---|---|"]
    for name, (below, out, n, lost, n_informative) in counts.items():
        lines.append(f"| {name} | {below / n:.0%} | {out / n:.0%} | {lost} of {n_informative} |")
    total = np.sum([row[:3] for row in counts.values()], axis=0)
    lines.append(f"| all | {total[0] / total[2]:.0%} | {total[1] / total[2]:.0%} | |")
    return "\n".join(lines)


def scores(frame, classes, share):
    """Return ARI with the number of clusters unknown and known and purity, columns being left out below a share."""
    kept, signals.MAX_SHARE = signals.MAX_SHARE, share
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ct.CoalescentClustering().fit(frame)
    signals.MAX_SHARE = kept
    labels = model.labels_, model.cut(n_clusters=len(set(classes.tolist())))
    purity = dendrogram_purity(model.tree_, classes.tolist())
    return *(adjusted_rand_score(classes, own) for own in labels), purity


def gains(n_seeds):
    """Return a table in Markdown: scores of fits with all columns, and without those that are left out."""
    lines = [
        "| table | all columns: ARI, number known | purity | default: ARI, number known | purity |",
        "|---|---|---|---|---|",
    ]
    tables = {"customers, 3,000 x 17": customers}
    for name in ("iris", "wine"):
        tables[f"{name}, and eight columns of noise"] = lambda seed, name=name: with_noise(*labelled_table(name), seed)
    for name, draw in tables.items():
        all_columns, default = (
            np.mean([scores(*draw(seed), share) for seed in range(n_seeds)], axis=0)
            for share in (0.0, signals.MAX_SHARE)
        )
        lines.append(f"| {name} | {all_columns[1]:.2f} | {all_columns[2]:.2f} | {default[1]:.2f} | {default[2]:.2f} |")
    return "\n".join(lines)


def with_noise(frame, classes, seed):
    """Add eight columns of noise to a table."""
    rng = np.random.default_rng(seed)
    noise = {kind: NOISE[kind](rng, len(frame)) for kind in list(NOISE)[seed % 2 :: 2]}
    return frame.rename(columns=str).assign(**noise), classes


def choose_share(tables):
    """Print the scores for values of `MAX_SHARE`, the best on one half of the tables reported on the other."""
    rows = []
    for name, frame, classes in tables:
        for seen in (frame, with_holes(frame)):
            rows.append([scores(seen, classes, share) for share in SHARES])
        print(name, *(f"{first[1]:.3f}/{second[1]:.3f}" for first, second in zip(*rows[-2:], strict=True)), flush=True)
    table = np.array(rows)  # (tables, shares, scores)
    halves = np.arange(len(table)) // 2 % 2 == 0
    for k, share in enumerate(SHARES):
        means = (f"{part[:, k].mean(axis=0).round(3).tolist()}" for part in (table[::2], table[1::2]))
        print(f"{share}: ARI unknown, known, purity; complete and with holes:", *means)
    for half in (halves, ~halves):
        best = int(table[half][:, :, 1:].mean(axis=(0, 2)).argmax())
        others = table[~half].mean(axis=0).round(3)
        print(f"best on one half: {SHARES[best]}; on the other half {others[best]}, all columns {others[0]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one seed")
    parser.add_argument("--shares", action="store_true", help="try values of MAX_SHARE instead")
    parser.add_argument("--folder", type=Path, help="folder of other tables for --shares")
    given = parser.parse_args()
    if given.shares:
        folder = given.folder
        choose_share(
            ((name, *labelled_table(name)) for name in LABELLED)
            if folder is None
            else tables_in(folder, sorted(path.stem for path in folder.iterdir()))
        )
        return
    print(planted(1 if given.quick else 5), "", gains(1 if given.quick else 4), sep="\n", flush=True)


if __name__ == "__main__":
    main()
