"""How good predictions are: hidden cells and held-out rows of real tables, ours beside scikit-learn's, in one run.

Run with ``python benchmarks/prediction.py``; it takes some minutes on two cores. ``--markdown`` prints the tables of
docs/prediction.md, ``--quick`` is a smoke run on one small table. Nothing is downloaded: all tables come with scikit-learn.

*The tables.* Iris, wine and breast cancer are as they come. Diabetes has its sex as a category, which densities leave out.
Digits are the first 600 rows, to keep the run short, without the pixels that are 0 in more than nine rows of ten: their
few other cells would make up most of any mean over standardised columns. "wine, mixed" has the cultivar and three of the
measurements, cut into thirds, as categories.

*Hidden cells.* A share of the cells is hidden at random, three times; a row keeps at least one. Errors are in standard
deviations of the complete column; log scores are natural logarithms of the density of the hidden cell in the same units, a
mean over cells. Everybody's density is a Gaussian with an sd of at least 0.001, everybody's interval its central 90 %.

- Ours: mean, sd and probabilities of `predictive`, with default settings, with ``noise=0.3`` held instead of fitted, and with
  the stationary diffusion. "ours, fixed tree" reads the default's cells off its greedy tree by `Beliefs.leaves`, the rows left
  where they are. A sample of trees ("ours, smc", by race) takes long, so it has tables of its own, of 60 random rows.
- SimpleImputer: the column's mean and standard deviation, or its shares.
- KNNImputer and IterativeImputer (Bayesian ridge regressions), default settings, see standardised columns, with a column of
  zeros and ones for every category but the first. They give no sd, so a further tenth of the observed cells is hidden three
  times: the sd of a column is the root mean square of what they miss there by, and probabilities are mixed with the column's
  shares in the proportion that scores best there. "own sd" is what the last round of regressions says with `return_std`.

*Held-out rows.* Five folds; mean log density of a row, in standard deviations of the fold's training rows. Digits get uniform
noise as wide as the step between their values, for a density of rounded values has no bound. GaussianMixture has one to ten
components, full and diagonal, chosen by BIC; "best" is the one that is best on the held-out rows themselves, which nobody
could know. Both mixtures have 0.001 added on the diagonal. KernelDensity chooses its bandwidth by five folds inside.

Standard errors are over repeats, or over folds; they are of each figure by itself, while differences along a line are surer.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from typing import NamedTuple

import joblib
import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KernelDensity
from sklearn.preprocessing import StandardScaler

import coaltree as ct

SHARES = (0.1, 0.3)
REPEATS = 3
N_JOBS = 2
REACH = 1.6448536269514722  # half of a central 90 % interval, in standard deviations
FLOOR = 1e-3  # of a standard deviation: no sd is taken to be smaller
WORST = -100  # figures below are not worth their digits


class Table(NamedTuple):
    """Real columns and categories as codes, NaN where missing."""

    real: np.ndarray
    codes: np.ndarray
    step: float = 0.0  # between the values of rounded columns

    def rows(self, rows):
        """Return some rows."""
        return self._replace(real=self.real[rows], codes=self.codes[rows])

    @property
    def n_states(self):
        """How many categories each categorical column has."""
        return [int(np.nanmax(column)) + 1 for column in self.codes.T]

    def frame(self):
        """Return a frame, as the estimators like it."""
        columns = {f"r{j}": column for j, column in enumerate(self.real.T)}
        for j, column in enumerate(self.codes.T):
            columns[f"c{j}"] = pd.Categorical([None if np.isnan(code) else f"{int(code)}" for code in column])
        return pd.DataFrame(columns)


class Filled(NamedTuple):
    """What a method says of all cells of a table."""

    mean: np.ndarray
    sd: np.ndarray
    probability: list[np.ndarray]  # a matrix for each categorical column; none where nothing is said of them


def real_table(X, step=0.0):
    return Table(np.asarray(X, dtype=float), np.empty((len(X), 0)), step)


def thirds(X):
    return (X[:, :, None] > np.quantile(X, [1 / 3, 2 / 3], axis=0).T).sum(axis=2).astype(float)


def all_tables():
    wine, diabetes = datasets.load_wine(), datasets.load_diabetes(scaled=False)
    digits = datasets.load_digits().data[:600]
    cut = np.isin(wine.feature_names, ["malic_acid", "hue", "proline"])
    sex = np.array(diabetes.feature_names) == "sex"
    return {
        "iris": real_table(datasets.load_iris().data),
        "wine": real_table(wine.data),
        "wine, mixed": Table(wine.data[:, ~cut], np.column_stack([wine.target, thirds(wine.data[:, cut])])),
        "breast cancer": real_table(datasets.load_breast_cancer().data),
        "diabetes": Table(diabetes.data[:, ~sex], (diabetes.data[:, sex] > diabetes.data[:, sex].min()).astype(float)),
        "digits": real_table(digits[:, (digits == 0).mean(axis=0) <= 0.9], step=1.0),
    }


# -- hidden cells -------------------------------------------------------------------------------------------------------


def hide(table, share, rng):
    """Return the table with cells hidden, and which ones were: real ones, then categorical ones."""
    shown = np.hstack([~np.isnan(table.real), ~np.isnan(table.codes)])
    hidden = shown & (rng.random(shown.shape) < share)
    for row in np.flatnonzero(shown.any(axis=1) & ~(shown & ~hidden).any(axis=1)):
        hidden[row, rng.choice(np.flatnonzero(hidden[row]))] = False
    real, codes = np.split(hidden, [table.real.shape[1]], axis=1)
    holes = table._replace(real=np.where(real, np.nan, table.real), codes=np.where(codes, np.nan, table.codes))
    return holes, real, codes


def shares_of(table):
    return [np.bincount(own[~np.isnan(own)].astype(int), minlength=2) / (~np.isnan(own)).sum() for own in table.codes.T]


def ours(holes, **options):
    """Return what the estimator says, and what its tree says as it stands."""
    frame = holes.frame()
    model = ct.CoalescentImputer(**options).fit(frame)
    cells = list(model.predictive(frame).values())
    n_real = holes.real.shape[1]
    said = Filled(
        np.column_stack([own.mean for own in cells[:n_real]]),
        np.column_stack([own.sd for own in cells[:n_real]]),
        [own.probability for own in cells[n_real:]],
    )
    center, scale = model.encoding_.center, model.encoding_.scale
    matrix = np.hstack([(holes.real - center) / scale, holes.codes])
    leaves = ct.Beliefs(model.tree_, matrix, model.process_).leaves()
    probability = np.split(leaves.probability, leaves.start[1:-1], axis=1) if n_real < len(cells) else []
    return said, Filled(center + scale * leaves.mean, scale * leaves.sd, probability)


def by_column(holes):
    """Fill in the column's mean and sd, or its shares."""
    mean = SimpleImputer().fit_transform(holes.real)
    sd = np.tile(np.nanstd(holes.real, axis=0), (len(mean), 1))
    return Filled(mean, sd, [np.tile(own, (len(mean), 1)) for own in shares_of(holes)])


class Peer:
    """An imputer of scikit-learn's on standardised columns, its spread found by hiding more."""

    def __init__(self, imputer, holes, rng):
        self.imputer, self.n_states, n = imputer, holes.n_states, holes.real.shape[1]
        said, self.own_sd = self.fill(holes)
        squares, counts = np.zeros(n), np.zeros(n)
        trials = (0.01, 0.03, 0.1, 0.3, 1.0)
        scores = np.zeros((len(self.n_states), len(trials)))
        for _ in range(3):
            more, real, codes = hide(holes, 0.1, rng)
            again, _ = self.fill(more)
            squares += np.where(real, (holes.real - again.mean) ** 2, 0.0).sum(axis=0)
            counts += real.sum(axis=0)
            for j, (own, shares) in enumerate(zip(again.probability, shares_of(holes), strict=True)):
                at = np.flatnonzero(codes[:, j])
                true = holes.codes[at, j].astype(int)
                scores[j] += [np.log((1 - t) * own[at, true] + t * shares[true] + 1e-12).sum() for t in trials]
        mixed = []
        for own, shares, score in zip(said.probability, shares_of(holes), scores, strict=True):
            t = trials[int(score.argmax())]
            mixed.append((1 - t) * own + t * shares)
        sd = np.sqrt(squares / np.maximum(counts, 1))
        self.said = said._replace(sd=np.tile(sd, (len(said.mean), 1)), probability=mixed)

    def fill(self, holes):
        """Return what the imputer fills in, and its own sd where it has one."""
        n = holes.real.shape[1]
        dummies = [
            np.where(np.isnan(own)[:, None], np.nan, own[:, None] == np.arange(1, states))
            for own, states in zip(holes.codes.T, self.n_states, strict=True)
        ]
        scaler = StandardScaler()
        Z = scaler.fit_transform(np.hstack([holes.real, *dummies]))
        filled = self.imputer.fit_transform(Z)
        sd = np.ones_like(Z)
        # later rounds come after earlier ones
        for step in {step.feat_idx: step for step in getattr(self.imputer, "imputation_sequence_", [])}.values():
            rows = np.isnan(Z[:, step.feat_idx])
            if rows.any():
                others = filled[rows][:, step.neighbor_feat_idx]
                sd[rows, step.feat_idx] = step.estimator.predict(others, return_std=True)[1]
        values = scaler.inverse_transform(filled)
        probability, start = [], n
        for states in self.n_states:
            own = values[:, start : start + states - 1]
            own = np.clip(np.column_stack([1 - own.sum(axis=1), own]), 0.0, 1.0) + 1e-9
            probability.append(own / own.sum(axis=1, keepdims=True))
            start += states - 1
        return Filled(values[:, :n], np.zeros((len(Z), n)), probability), sd[:, :n] * scaler.scale_[:n]


def score_cells(table, said, real, codes):
    """Return the scores of a method on the hidden cells."""
    scale = table.real.std(axis=0)
    gap = ((table.real - said.mean) / scale)[real]
    sd = np.maximum((said.sd / scale)[real], FLOOR)
    scores = {
        "rmse": math.sqrt(np.mean(gap**2)),
        "log": float(np.mean(-0.5 * np.log(2 * math.pi * sd**2) - 0.5 * (gap / sd) ** 2)),
        "coverage": float(np.mean(np.abs(gap) <= REACH * sd)),
    }
    if said.probability:
        right, logs = [], []
        for j, own in enumerate(said.probability):
            at = np.flatnonzero(codes[:, j])
            true = table.codes[at, j].astype(int)
            right.extend(own[at].argmax(axis=1) == true)
            logs.extend(np.log(np.maximum(own[at, true], 1e-12)))
        scores |= {"accuracy": float(np.mean(right)), "log category": float(np.mean(logs))}
    return scores


def warm_up(table):
    """Have what is imported late in memory before time is taken."""
    few, _, _ = hide(table.rows(slice(None, None, max(1, len(table.real) // 20))), 0.2, np.random.default_rng(0))
    few = few._replace(real=few.real[:, np.nanstd(few.real, axis=0) > 0])
    for process in ("ornstein-uhlenbeck", "brownian"):
        ours(few, real_process=process, calibrate=1)


def impute(table, share, repeat, with_sample=False):
    """Hide cells of a table once; return everybody's scores by name."""
    warnings.simplefilter("ignore")
    warm_up(table)
    rng = np.random.default_rng([repeat, round(100 * share)])
    holes, real, codes = hide(table, share, rng)
    said, seconds = {}, {}

    def timed(name, work):
        start = time.process_time()
        found = work()
        seconds[name] = time.process_time() - start
        return found

    said["ours"], said["ours, fixed tree"] = timed("ours", lambda: ours(holes))
    said["ours, noise 0.3"], _ = timed("ours, noise 0.3", lambda: ours(holes, noise=0.3))
    said["ours, stationary"], _ = timed("ours, stationary", lambda: ours(holes, real_process="ornstein-uhlenbeck"))
    if with_sample:
        options = {"inference": "smc", "proposal": "race", "random_state": repeat}
        said["ours, smc"], _ = timed("ours, smc", lambda: ours(holes, **options))
    said["SimpleImputer"] = timed("SimpleImputer", lambda: by_column(holes))
    said["KNNImputer"] = timed("KNNImputer", lambda: Peer(KNNImputer(), holes, rng)).said
    regressions = timed("IterativeImputer", lambda: Peer(IterativeImputer(random_state=0), holes, rng))
    said["IterativeImputer"] = regressions.said
    said["IterativeImputer, own sd"] = regressions.said._replace(sd=regressions.own_sd, probability=[])
    scores = {name: score_cells(table, own, real, codes) for name, own in said.items()}
    del scores["IterativeImputer, own sd"]["rmse"]  # the same
    for name, took in seconds.items():
        scores[name]["seconds"] = took
    return scores


# -- held-out rows ------------------------------------------------------------------------------------------------------


def mixture_scores(train, test, most):
    """Return the held-out score of the mixture that BIC chooses, and of the one that is best held out."""
    found = []
    for kind in ("full", "diag"):
        for k in range(1, most + 1):
            model = GaussianMixture(k, covariance_type=kind, reg_covar=1e-3, random_state=0).fit(train)
            found.append((model.bic(train), model.score(test)))
    return min(found)[1], max(score for _, score in found)


def densities(X, fold, n_folds, most):
    """Return everybody's mean log density of the rows of a fold."""
    warnings.simplefilter("ignore")
    inside, outside = list(KFold(n_folds, shuffle=True, random_state=0).split(X))[fold]
    scaler = StandardScaler().fit(X[inside])
    train, test = scaler.transform(X[inside]), scaler.transform(X[outside])
    scores = {}
    for name, options in {
        "ours": {},
        "ours, full": {"covariance": "full"},
        "ours, noise 0.3": {"noise": 0.3},
        "ours, brownian": {"real_process": "brownian"},
        "ours, not fitted": {"calibrate": 0},
        "brownian, not fitted": {"real_process": "brownian", "calibrate": 0},
    }.items():
        scores[name] = ct.CoalescentClustering(**options).fit(train).score(test)
    scores["GaussianMixture, BIC"], scores["GaussianMixture, best"] = mixture_scores(train, test, most)
    model = BayesianGaussianMixture(n_components=10, reg_covar=1e-3, max_iter=500, random_state=0)
    scores["BayesianGaussianMixture"] = model.fit(train).score(test)
    kernel = GridSearchCV(KernelDensity(), {"bandwidth": np.geomspace(0.05, 2, 25)}, cv=5).fit(train)
    scores["KernelDensity"] = kernel.score(test) / len(test)
    return {name: {"density": score} for name, score in scores.items()}


# -- tables of figures --------------------------------------------------------------------------------------------------


def figure(values, digits):
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    if np.mean(values) < WORST:
        return f"< {WORST}"
    error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    shown = f"{np.mean(values):.{digits}f}"
    return shown if math.isnan(error) else f"{shown} ± {error:.{digits}f}"


def show(title, results, measure, digits, markdown):
    """Print one measure: a line for each table, a column for each method."""
    methods = [
        m
        for m in next(iter(results.values()))[0]
        if any(measure in one[m] for runs in results.values() for one in runs)
    ]
    lines = [["", *methods]]
    for label, runs in results.items():
        cells = [figure([one[m].get(measure) for one in runs], digits) for m in methods]
        if any(cell != "-" for cell in cells):
            lines.append([label, *cells])
    if len(lines) == 1:
        return
    print(f"\n{title}\n")
    if markdown:
        lines.insert(1, ["---"] * len(lines[0]))
        print("\n".join("| " + " | ".join(line) + " |" for line in lines), flush=True)
    else:
        widths = [max(len(line[j]) for line in lines) for j in range(len(lines[0]))]
        for line in lines:
            print("  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]), flush=True)


def together(jobs):
    """Do labelled jobs on two cores; return the results of each label in order."""
    with joblib.parallel_config("loky", n_jobs=N_JOBS, inner_max_num_threads=1):
        done = joblib.Parallel(verbose=5 if sys.stderr.isatty() else 0)(
            joblib.delayed(work)(*args) for _, work, args in jobs
        )
    results = {}
    for (label, _, _), one in zip(jobs, done, strict=True):
        results.setdefault(label, []).append(one)
    return results


MEASURES = (
    ("Error of hidden real cells (RMSE, lower is better)", "rmse", 3),
    ("Log score of hidden real cells (higher is better)", "log", 3),
    ("Share of hidden real cells in their 90 % interval", "coverage", 3),
    ("Hidden categories: share filled in right", "accuracy", 3),
    ("Hidden categories: log score (higher is better)", "log category", 3),
    ("Seconds of processor time, spread of scikit-learn's included", "seconds", 1),
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one small table, one repeat, two folds")
    parser.add_argument("--markdown", action="store_true", help="tables for a page")
    options = parser.parse_args()
    begin = time.perf_counter()
    tables = all_tables()
    shares, repeats, n_folds, most = SHARES, REPEATS, 5, 10
    if options.quick:
        tables = {"wine, mixed": tables["wine, mixed"].rows(slice(None, None, 3))}
        shares, repeats, n_folds, most = (0.1,), 1, 2, 3

    found = together(
        [
            (f"{name}, {100 * share:.0f} %", impute, (table, share, repeat))
            for name, table in tables.items()
            for share in shares
            for repeat in range(repeats)
        ]
    )
    for title, measure, digits in MEASURES:
        show(title, found, measure, digits, options.markdown)

    if not options.quick:
        small = {name: tables[name] for name in ("iris", "wine")}
        found = together(
            [
                (f"{name}, 60 rows, 20 %", impute, (table.rows(chosen), 0.2, repeat, True))
                for name, table in small.items()
                for repeat in range(repeats)
                for chosen in [np.random.default_rng(repeat).choice(len(table.real), 60, replace=False)]
            ]
        )
        for title, measure, digits in MEASURES:
            show("With a sample of trees. " + title, found, measure, digits, options.markdown)

    jobs = []
    for name, table in tables.items():
        if name == "wine, mixed" and not options.quick:
            continue
        X = table.real + table.step * np.random.default_rng(0).random(table.real.shape)
        jobs.extend((name, densities, (X, fold, n_folds, most)) for fold in range(n_folds))
    show("Mean log density of held-out rows (higher is better)", together(jobs), "density", 2, options.markdown)
    print(f"\n{time.perf_counter() - begin:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
