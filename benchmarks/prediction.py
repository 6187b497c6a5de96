"""Predictions compared with other methods: held-out rows and hidden cells of published tables.

Run with ``python benchmarks/prediction.py`` (long; ``--quick`` takes three small tables, ``--tables a,b`` those named,
``--only`` one part). It needs ``pip install "coaltree[bench]"``. ``--markdown FILE`` also writes the tables: into a new file,
or between the marks that docs/prediction.md and README.md have for them. ``--keep FILE`` keeps figures from one run to the
next, and measures only what is not there. Tables come from `published_tables`; of larger ones 600 random rows are taken. Real
columns of which nine tenths are one value are left out, for everybody: their density is a matter of how ties are treated.

*Densities.* Two thirds of the rows are for training (``--splits`` says how many times). Real columns are standardised by the
moments of the training rows, and get Gaussian jitter of sd 0.02 against ties. Printed is the mean log density of a held-out
row, in these units, missing cells integrated out. Neal's two tables have their own 500 rows for training, no jitter and their
own units, so that the figures that he published for his programs stand beside ours.

- Ours: `CoalescentClustering` as it comes, and with a covariance matrix where real columns are complete.
- Gaussian mixtures: size, form of the covariance and regularisation by five-fold cross-validation on the training rows, once
  among full and tied ones, once among diagonal and spherical ones. The better of the two on the held-out rows is printed, in
  their favour.
- Kernel densities: bandwidth and kernel, Gaussian or exponential, by five-fold cross-validation.
- StepMix, for tables with categories, where the two above cannot be used: number of classes by five-fold cross-validation.
- Independent columns: Gaussians, and shares of the categories, each state counted once more than it occurs.

*Imputation.* 15 % of the observed cells are hidden at random, three times (``--splits``); a row keeps at least one. Printed is
the root mean squared error of real cells, in standard deviations of the column, and the share of categorical cells that are
wrong.

- Ours: `CoalescentImputer` as it comes. Cells that the table itself lacks stay missing, for everybody.
- Nearest neighbours (`KNNImputer`) and regressions (`IterativeImputer`, Bayesian ridge), default settings, on standardised
  columns with indicators of the categories.
- Random forests in rounds, in the manner of MissForest: `IterativeImputer` with 100 trees, five rounds, categories as
  numbers.
- The column's mean, or its most frequent category.

*Coverage.* Share of the hidden real cells that lie in our 90 % intervals (`CoalescentImputer.predictive`), how wide they are
on average, and their interval score (width plus twenty times the distance of a cell outside), in standard deviations of the
column; share and score also without the calibration of intervals.

``--defaults`` compares the settings in SETTINGS: what is best on one half of the tables is reported on the other half, and
the other way round, so that what is printed was chosen without the tables that it is printed for. Where a setting cannot be
used, as a covariance matrix where there are holes, the default stands in for it.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KernelDensity
from threadpoolctl import threadpool_limits

import coaltree as ct
from coaltree.errors import InputError
from published_tables import DENSITY, LABELLED, density_table, labelled_table, names_in

# columns of the tables that are ours, and what --defaults chooses from: keywords of both estimators
OURS = {"coaltree": {}, "coaltree, diagonal": {"covariance": "diagonal"}}
SETTINGS = {"full": {}, "diagonal": {"covariance": "diagonal"}}  # the first is the default

PARTS = ("densities", "imputation", "coverage")
QUICK = ("rdata", "iris", "hepatitis")
MOST_ROWS = 600
MOST_TIED = 0.9  # share of a real column that may be one value
JITTER = 0.02
HIDDEN = 0.15
ROW_SPLITS, CELL_SPLITS = 1, 3  # errors differ between splits by more than between methods
N_TRAINING = 500  # of Neal's tables
LEVEL = 0.9
INTERVAL_FIGURES = ("covered", "width", "score", "uncalibrated, covered", "uncalibrated, score")
REGULARISATIONS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 0.3)
MIXTURES = (
    {
        "n_components": (1, 2, 3, 4, 6, 8),
        "covariance_type": ("full", "tied"),
        "reg_covar": REGULARISATIONS,
    },
    {
        "n_components": (1, 2, 4, 8, 12, 16, 24, 32),
        "covariance_type": ("diag", "spherical"),
        "reg_covar": REGULARISATIONS,
    },
)
BANDWIDTHS = np.geomspace(0.02, 2, 30)
CLASSES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15)
# mean log densities of the held-out rows that come with Neal's programs
PUBLISHED = {
    "diffusion trees (Neal)": {"rdata": -5.088, "bdata": -6.110},
    "finite mixture (Neal)": {"rdata": -5.172, "bdata": -6.099},
    "truth": {"bdata": -6.034},
}


# -- tables -------------------------------------------------------------------------------------------------------------


def is_categorical(column):
    return isinstance(column.dtype, pd.CategoricalDtype)


def codes_of(column):
    """Return the numbers of the categories, NaN where missing."""
    codes = column.cat.codes.to_numpy(float)
    return np.where(codes < 0, np.nan, codes)


def real_columns(frame):
    return [name for name in frame if not is_categorical(frame[name])]


def load(name):
    """Return a table without columns that are nearly constant."""
    frame = density_table(name) if name in DENSITY else labelled_table(name)[0]
    frame.columns = [str(column) for column in frame]
    tied = [c for c in real_columns(frame) if frame[c].value_counts(normalize=True).max() > MOST_TIED]
    return frame.drop(columns=tied)


def some_rows(frame):
    """Return a table of at most 600 rows."""
    if len(frame) <= MOST_ROWS:
        return frame
    chosen = np.random.default_rng(0).choice(len(frame), MOST_ROWS, replace=False)
    return frame.iloc[np.sort(chosen)].reset_index(drop=True)


def split(name, number):
    """Return training rows and held-out rows, standardised, and what to add to log densities for the units of the table."""
    frame = load(name)
    rng = np.random.default_rng(number)
    if name in DENSITY:
        order, n_training = np.arange(len(frame)), N_TRAINING
    else:
        frame = some_rows(frame)
        order, n_training = rng.permutation(len(frame)), round(2 * len(frame) / 3)
    inside, outside = order[:n_training], order[n_training:]
    frame = frame[[c for c in frame if frame[c].iloc[inside].nunique() > 1]].copy()
    real = real_columns(frame)
    moments = frame[real].iloc[inside]
    scale = moments.std(ddof=0)
    jitter = 0.0 if name in DENSITY else JITTER * rng.standard_normal((len(frame), len(real)))
    frame[real] = (frame[real] - moments.mean()) / scale + jitter
    log_units = -float(np.log(scale).sum()) if name in DENSITY and real else 0.0
    train, test = (frame.iloc[rows].reset_index(drop=True) for rows in (inside, outside))
    return train, test, log_units


def hide(frame, number):
    """Return the table with cells hidden, and which ones were."""
    rng = np.random.default_rng(number)
    shown = frame.notna().to_numpy()
    hidden = shown & (rng.random(shown.shape) < HIDDEN)
    for row in np.flatnonzero(shown.any(axis=1) & ~(shown & ~hidden).any(axis=1)):
        hidden[row, rng.choice(np.flatnonzero(hidden[row]))] = False
    return frame.mask(hidden), hidden


# -- densities: each method returns the mean log density of the held-out rows, None if it cannot be used ---------------------


def folds():
    return KFold(5, shuffle=True, random_state=0)


def tell_choice(choice):
    """Print what cross-validation chose, to see whether it is at the edge of what was tried."""
    print(f"    chosen: {choice}", flush=True)


def is_the_same(options, frame):
    """Whether options only concern real columns, of which there are none."""
    return set(options) == {"covariance"} and not real_columns(frame)


def ours(options, n_jobs):
    def run(train, test):
        if is_the_same(options, train):
            return None
        try:
            model = ct.CoalescentClustering(n_jobs=n_jobs, **options).fit(train)
            return model.score_samples(test).mean()
        except InputError:  # a covariance matrix for columns with holes
            return None

    return run


def mixture(n_jobs):
    def run(train, test):
        if real_columns(train) != list(train):
            return None
        X, new = train.to_numpy(), test.to_numpy()
        searches = [
            GridSearchCV(GaussianMixture(max_iter=200, random_state=0), grid, cv=folds(), n_jobs=n_jobs).fit(X)
            for grid in MIXTURES
        ]
        for search in searches:
            tell_choice(f"{search.best_params_}, {search.score(new):.3f}")
        return max(search.score(new) for search in searches)

    return run


def kernel(n_jobs):
    def run(train, test):
        if real_columns(train) != list(train):
            return None
        grid = {"bandwidth": BANDWIDTHS, "kernel": ("gaussian", "exponential")}
        search = GridSearchCV(KernelDensity(), grid, cv=folds(), n_jobs=n_jobs)
        search.fit(train.to_numpy())
        tell_choice(f"{search.best_params_['kernel']} kernel, bandwidth {search.best_params_['bandwidth']:.2f}")
        return search.best_estimator_.score_samples(test.to_numpy()).mean()

    return run


def step_mix(train, test):
    from stepmix.stepmix import StepMix

    if real_columns(train) == list(train):
        return None
    kinds = {
        "categorical_nan": [c for c in train if is_categorical(train[c])],
        "gaussian_diag_nan": real_columns(train),
    }
    measurement = {model: {"model": model, "n_columns": len(columns)} for model, columns in kinds.items() if columns}

    def matrix(frame):
        return pd.DataFrame(
            {c: codes_of(frame[c]) if is_categorical(frame[c]) else frame[c] for own in kinds.values() for c in own}
        )

    def fitted(count, rows):
        options = {"max_iter": 200, "random_state": 0, "verbose": 0, "progress_bar": 0}
        return StepMix(count, measurement=measurement, **options).fit(rows)

    X, new = matrix(train), matrix(test)

    def score(count):
        return np.mean([fitted(count, X.iloc[a]).score(X.iloc[b]) for a, b in folds().split(X)])

    best = max(CLASSES, key=score)
    tell_choice(f"{best} classes")
    return fitted(best, X).score(new)


def independent(train, test):
    total = 0.0
    for name in train:
        old, new = train[name], test[name].dropna()
        if is_categorical(old):
            counts = old.value_counts() + 1
            total += np.log(counts / counts.sum())[new].sum()
        else:
            mean, sd = old.mean(), old.std()
            total += (-0.5 * np.log(2 * math.pi * sd**2) - 0.5 * ((new - mean) / sd) ** 2).sum()
    return total / len(test)


def density_methods(n_jobs):
    return {
        **{name: ours(options, n_jobs) for name, options in OURS.items()},
        "Gaussian mixture": mixture(n_jobs),
        "kernel density": kernel(n_jobs),
        "StepMix": step_mix,
        "independent columns": independent,
    }


# -- imputation: each method returns the filled table, and for ours the model -------------------------------------------


def our_filling(options, n_jobs):
    def run(holes):
        if is_the_same(options, holes):
            return None, None
        try:
            model = ct.CoalescentImputer(n_jobs=n_jobs, **options).fit(holes)
        except InputError:
            return None, None
        return model.transform(holes), model

    return run


def indicators(column):
    """Return a column for each category, or one column for two categories."""
    codes, n_states = codes_of(column), len(column.cat.categories)
    states = np.arange(1 if n_states == 2 else 0, n_states)
    return np.where(np.isnan(codes)[:, None], np.nan, codes[:, None] == states)


def filling_by(imputer, with_indicators=True):
    """Return a method that fills standardised columns, with categories as indicators or as numbers."""

    def block(column):
        if not is_categorical(column):
            return column.to_numpy(float)[:, None]
        return indicators(column) if with_indicators else codes_of(column)[:, None]

    def column_of(values, column):
        if not is_categorical(column):
            return values[:, 0]
        if values.shape[1] > 1:
            codes = values.argmax(axis=1)
        else:
            codes = np.clip(np.rint(values[:, 0]), 0, len(column.cat.categories) - 1).astype(int)
        return pd.Categorical.from_codes(codes, dtype=column.dtype)

    def run(holes):
        blocks = [block(holes[c]) for c in holes]
        X = np.hstack(blocks).astype(float)
        mean, sd = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        sd[sd == 0] = 1.0
        filled = mean + sd * imputer.fit_transform((X - mean) / sd)
        parts = np.split(filled, np.cumsum([own.shape[1] for own in blocks])[:-1], axis=1)
        return pd.DataFrame({c: column_of(own, holes[c]) for c, own in zip(holes, parts, strict=True)}), None

    return run


def column_filling(holes):
    return pd.DataFrame(
        {c: holes[c].fillna(holes[c].mode()[0] if is_categorical(holes[c]) else holes[c].mean()) for c in holes}
    ), None


def imputation_methods(n_jobs):
    forest = RandomForestRegressor(100, max_features="sqrt", random_state=0)  # threads make small forests slower
    return {
        **{name: our_filling(options, n_jobs) for name, options in OURS.items()},
        "nearest neighbours": filling_by(KNNImputer()),
        "regressions": filling_by(IterativeImputer(random_state=0)),
        "random forests": filling_by(IterativeImputer(forest, max_iter=5, random_state=0), with_indicators=False),
        "mean or mode": column_filling,
    }


def cell_errors(whole, filled, hidden):
    """Return the error of hidden real cells, and the share of hidden categorical cells that are wrong."""
    gaps, wrong = [], []
    for j, name in enumerate(whole):
        at = hidden[:, j]
        if is_categorical(whole[name]):
            wrong.extend(whole[name][at].astype(object).to_numpy() != filled[name][at].astype(object).to_numpy())
        else:
            gaps.extend((filled[name] - whole[name])[at] / whole[name].std(ddof=0))
    return {
        "error": math.sqrt(np.mean(np.square(gaps))) if gaps else math.nan,
        "wrong": float(np.mean(wrong)) if wrong else math.nan,
    }


def interval_figures(whole, holes, hidden, model):
    """Return the share of hidden real cells in their intervals, how wide these are, and their interval scores.

    The interval score of Gneiting and Raftery is the width plus, for a cell outside, 2 / (1 - level) times its distance.
    Shares and scores are given for intervals that are not calibrated, too.
    """
    cells = model.predictive(holes)
    figures = {name: [] for name in INTERVAL_FIGURES}
    for name in real_columns(whole):
        at, scale = hidden[:, whole.columns.get_loc(name)], whole[name].std(ddof=0)
        truth = whole[name].to_numpy()[at]
        plain = replace(cells[name], codes=cells[name].codes._replace(concentration=1.0))
        for own, prefix in ((cells[name], ""), (plain, "uncalibrated, ")):
            low, high = (end[at] for end in own.interval(LEVEL))
            outside = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
            figures[f"{prefix}covered"].extend((low <= truth) & (truth <= high))
            figures[f"{prefix}score"].extend((high - low + 2 / (1 - LEVEL) * outside) / scale)
            if not prefix:
                figures["width"].extend((high - low) / scale)
    return {name: float(np.mean(values)) for name, values in figures.items()}


# -- measuring ----------------------------------------------------------------------------------------------------------


def timed(method, *tables, n_threads=None):
    """Return what a method returns, and the seconds it took."""
    with warnings.catch_warnings(), threadpool_limits(n_threads):
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        return method(*tables), time.perf_counter() - start


def threads_of(method):
    """Return how many threads linear algebra has: one for the others, whose small matrices more of them make slower."""
    return None if method in OURS else 1


class Results:
    """Figures by measure, table and method, one for each split.

    Parameters
    ----------
    path : Path, optional
        A file in which figures are kept from one run to the next.
    """

    def __init__(self, path=None):
        self.path = path
        kept = json.loads(path.read_text(encoding="utf-8")) if path is not None and path.exists() else {}
        self.done = {tuple(key) for key in kept.get("done", [])}
        self.figures = kept.get("figures", {})

    def add(self, measure, table, method, value):
        """Keep a figure, unless there is none."""
        if value is not None and not math.isnan(value):
            self.figures.setdefault(measure, {}).setdefault(table, {}).setdefault(method, []).append(float(value))

    def is_done(self, part, table, number, method):
        """Return whether a method was measured on a split before."""
        return (part, table, number, method) in self.done

    def finish(self, part, table, number, method):
        """Keep in mind that a method was measured on a split."""
        self.done.add((part, table, number, method))
        if self.path is not None:
            kept = json.dumps({"done": sorted(self.done), "figures": self.figures}, indent=1)
            self.path.write_text(kept + "\n", encoding="utf-8")

    def measures(self):
        """Return the measures that have figures, in the order of MEASURES."""
        return [measure for measure in MEASURES if measure in self.figures]

    def mean(self, measure, table, method):
        """Return the mean over splits, NaN if there is no figure."""
        return float(np.mean(self.figures.get(measure, {}).get(table, {}).get(method, [math.nan])))


def measure_densities(name, number, results, n_jobs, methods):
    train, test, log_units = split(name, number)
    print(f"\n{name}: densities, {len(train)} rows and {train.shape[1]} columns, {len(test)} rows held out", flush=True)
    for method, run in density_methods(n_jobs).items():
        if method not in methods or results.is_done("densities", name, number, method):
            continue
        density, seconds = timed(run, train, test, n_threads=threads_of(method))
        if density is not None:
            results.add("density", name, method, density + log_units)
            results.add("density seconds", name, method, seconds)
            print(f"  {method:24}{density + log_units:10.3f}{seconds:9.2f} s", flush=True)
        results.finish("densities", name, number, method)


def measure_imputation(name, number, results, n_jobs, methods, parts):
    whole = some_rows(load(name))
    holes, hidden = hide(whole, number)
    print(f"\n{name}: {hidden.sum()} cells hidden of {len(whole)} rows and {whole.shape[1]} columns", flush=True)
    for method, run in imputation_methods(n_jobs).items():
        if method not in methods or ("imputation" not in parts and method not in OURS):
            continue
        if results.is_done("imputation", name, number, method):
            continue
        (filled, model), seconds = timed(run, holes, n_threads=threads_of(method))
        if filled is None:
            results.finish("imputation", name, number, method)
            continue
        errors = cell_errors(whole, filled, hidden)
        line = f"  {method:24}{errors['error']:10.3f}{errors['wrong']:10.3f}{seconds:9.2f} s"
        if "imputation" in parts:
            for measure, value in {**errors, "imputation seconds": seconds}.items():
                results.add(measure, name, method, value)
        if "coverage" in parts and model is not None and real_columns(whole):
            intervals = interval_figures(whole, holes, hidden, model)
            for what, value in intervals.items():
                results.add("coverage", name, f"{method}: {what}", value)
            line += "".join(f", {what} {value:.3f}" for what, value in intervals.items())
        results.finish("imputation", name, number, method)
        print(line.replace("nan", "   "), flush=True)


# -- tables of figures --------------------------------------------------------------------------------------------------


# by measure: part, title, digits, and which figure is the best
MEASURES = {
    "density": ("densities", "Mean log density of a held-out row (higher is better)", 3, max),
    "density seconds": ("densities", "Seconds for densities, the choice of settings included", 2, None),
    "error": ("imputation", "Error of hidden real cells, in standard deviations (lower is better)", 3, min),
    "wrong": ("imputation", "Share of hidden categorical cells that are wrong (lower is better)", 3, min),
    "imputation seconds": ("imputation", "Seconds for imputation", 2, None),
    "coverage": (
        "coverage",
        "Share of hidden real cells in our 90 % intervals, mean width and interval score of these",
        3,
        None,
    ),
}


def names_in_order(tables):
    """Return the names of tables in the order in which they are measured."""
    return [name for name in (*DENSITY, *LABELLED) if name in tables]


def known_methods():
    """Return the names of all methods, in the order of the tables."""
    return list(dict.fromkeys([*density_methods(None), *imputation_methods(None)]))


def text_of(values, digits):
    if not values:
        return ""
    text = f"{np.mean(values):.{digits}f}"
    if len(values) == 1:
        return text
    return f"{text} ± {np.std(values, ddof=1) / math.sqrt(len(values)):.{digits}f}"


def groups_of(measure, tables):
    """Return the tables that a mean is taken over, by its title."""
    if measure not in ("density", "density seconds"):
        return {"mean": list(tables)}
    kinds = {"mean, real tables": [], "mean, tables with categories": []}
    for name in tables:
        if name not in DENSITY:  # they have units of their own
            kinds["mean, real tables" if name not in ("votes", "hepatitis") else "mean, tables with categories"].append(
                name
            )
    return kinds


def mean_lines(results, measure, methods):
    """Return means over tables, for methods that have all of them, and how often each method is the best."""
    digits, best = MEASURES[measure][2:]
    tables = results.figures[measure]
    lines = []
    for title, names in groups_of(measure, tables).items():
        means = [np.mean([results.mean(measure, name, m) for name in names]) if names else math.nan for m in methods]
        if not np.isnan(means).all():
            lines.append([title, *("" if np.isnan(mean) else f"{mean:.{digits}f}" for mean in means)])
    if best is not None:
        wins = dict.fromkeys(methods, 0)
        for name, figures in tables.items():
            measured = {m: results.mean(measure, name, m) for m in figures}
            wins[best(measured, key=measured.get)] += 1
        lines.append(["tables on which it is best", *("" if m in PUBLISHED else str(wins[m]) for m in methods)])
    return lines


def lines_of(results, measure):
    """Return the cells of a table of figures: the head, a line for each table, and lines of means."""
    tables = results.figures[measure]
    found = {m for figures in tables.values() for m in figures}
    columns = [m for m in known_methods() if m in found]
    columns += [m for own in OURS for what in INTERVAL_FIGURES if (m := f"{own}: {what}") in found]
    published = [m for m in PUBLISHED if measure == "density" and not tables.keys().isdisjoint(PUBLISHED[m])]
    methods, digits = [*columns, *published], MEASURES[measure][2]
    lines = []
    for name in names_in_order(tables):
        figures = tables[name] | {m: [PUBLISHED[m][name]] for m in published if name in PUBLISHED[m]}
        lines.append([name, *(text_of(figures.get(m, []), digits) for m in methods)])
    return [["", *methods], *lines], mean_lines(results, measure, methods)


def plain(lines):
    widths = [max(len(line[j]) for line in lines) for j in range(len(lines[0]))]
    return "\n".join("  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in lines)


def markdown(lines):
    head, *others = lines
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *others])


def blocks_of(results):
    """Return the tables in Markdown, by part, and the means of all parts."""
    blocks, means = {}, []
    for measure in results.measures():
        part, title = MEASURES[measure][:2]
        lines, last = lines_of(results, measure)
        blocks.setdefault(part, []).append(f"{title}:\n\n{markdown([*lines, *last])}")
        if not measure.endswith("seconds"):
            means.append(f"{title}:\n\n{markdown([lines[0], *last])}")
    return {part: "\n\n".join(own) for part, own in {**blocks, "means": means}.items()}


def write_markdown(path, blocks):
    """Write tables between the marks of a file, or a new file with all of them."""

    def marks(part):
        return f"<!-- begin {part}: benchmarks/prediction.py --markdown -->", f"<!-- end {part} -->"

    if not path.exists():
        path.write_text("\n\n".join("\n\n".join(marks(part)) for part in blocks) + "\n", encoding="utf-8")
    text = path.read_text(encoding="utf-8")
    found = [part for part in blocks if all(mark in text for mark in marks(part))]
    if not found:
        raise SystemExit(f"{path} has no marks for these tables: {', '.join(blocks)}.")
    for part in found:
        begin, end = marks(part)
        before, rest = text.split(begin, 1)
        text = f"{before}{begin}\n\n{blocks[part]}\n\n{end}{rest.split(end, 1)[1]}"
    path.write_text(text, encoding="utf-8")


# -- settings -----------------------------------------------------------------------------------------------------------


def setting_scores(name, options, parts, n_jobs):
    """Return the log density of a column, and minus the error of a cell, of one setting; NaN where it cannot be used."""
    scores = {}
    if "densities" in parts:
        train, test, log_units = split(name, 0)
        density, _ = timed(ours(options, n_jobs), train, test)
        scores["log density of a column"] = math.nan if density is None else (density + log_units) / train.shape[1]
    if "imputation" in parts:
        whole = some_rows(load(name))
        holes, hidden = hide(whole, 0)
        (filled, _), _ = timed(our_filling(options, n_jobs), holes)
        errors = {} if filled is None else cell_errors(whole, filled, hidden)
        known = [error for error in errors.values() if not math.isnan(error)]
        scores["minus the error of a cell"] = -float(np.mean(known)) if known else math.nan
    return scores


def choose_settings(names, parts, n_jobs):
    """Print what the settings give, the best on one half of the tables reported on the other."""
    tables = {}
    for name in names:
        for setting, options in SETTINGS.items():
            for measure, score in setting_scores(name, options, parts, n_jobs).items():
                tables.setdefault(measure, {}).setdefault(setting, []).append(score)
                print(f"{name}, {setting}: {measure} {score:.3f}", flush=True)
    even = np.arange(len(names)) % 2 == 0
    for measure, scores in tables.items():
        figures = np.array(list(scores.values()))
        figures = np.where(np.isnan(figures), figures[0], figures)
        print(f"\n{measure}: mean of all tables; of even and odd ones")
        for setting, own in zip(scores, figures, strict=True):
            print(f"  {setting:24}{own.mean():8.3f};{own[even].mean():8.3f}{own[~even].mean():8.3f}")
        for half in (even, ~even):
            best = int(figures[:, half].mean(axis=1).argmax())
            print(
                f"  best on one half: {list(scores)[best]}, {figures[best, half].mean():.3f}; on the other "
                f"{figures[best, ~half].mean():.3f}, where the default has {figures[0, ~half].mean():.3f}"
            )


def main():
    known = (*DENSITY, *LABELLED)
    methods = known_methods()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"three small tables: {', '.join(QUICK)}")
    parser.add_argument("--tables", type=lambda text: names_in(text, known), help="names, divided by commas")
    parser.add_argument("--methods", nargs="+", choices=methods, default=methods)
    parser.add_argument("--only", choices=PARTS, help="one part")
    splits = "how many times rows are held out and cells hidden; one and three times by default"
    parser.add_argument("--splits", type=int, help=splits)
    parser.add_argument("--jobs", type=int, default=-1, help="threads and processes, all by default")
    parser.add_argument("--keep", type=Path, help="a file for figures; those that are there are not measured again")
    parser.add_argument("--markdown", type=Path, help="a new file for the tables, or one with marks for them")
    parser.add_argument("--defaults", action="store_true", help="compare the settings in SETTINGS instead")
    given = parser.parse_args()
    names = given.tables or (QUICK if given.quick else known)
    parts = PARTS if given.only is None else (given.only,)
    if given.defaults:
        if given.only == "coverage":
            parser.error("settings are compared by densities and imputation, not by coverage")
        choose_settings(names, parts, given.jobs)
        return
    results = Results(given.keep)
    for name in names:
        if "densities" in parts:
            for number in range(1 if name in DENSITY else given.splits or ROW_SPLITS):  # Neal's tables have one split
                measure_densities(name, number, results, given.jobs, given.methods)
        if "imputation" in parts or ("coverage" in parts and real_columns(load(name))):
            for number in range(given.splits or CELL_SPLITS):
                measure_imputation(name, number, results, given.jobs, given.methods, parts)
    for measure in results.measures():
        lines, last = lines_of(results, measure)
        print(f"\n{MEASURES[measure][1]}\n\n{plain([*lines, *last])}", flush=True)
    if given.markdown:
        write_markdown(given.markdown, blocks_of(results))


if __name__ == "__main__":
    main()
