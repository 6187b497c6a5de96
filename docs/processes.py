"""Compare the two processes of real columns: ``python docs/processes.py`` prints the tables of docs/processes.md.

It takes some minutes on two cores. The tables come with scikit-learn: iris, wine and breast cancer as they are, diabetes
without sex, the first 600 digits without the pixels that are 0 in more than nine rows of ten. Digits get uniform noise as
wide as the step between their values where densities are compared. All columns are standardised.

*Log evidence* of 60 rows drawn at random: parameters by greedy fits to those rows, then eight runs of ``ct.smc`` with 200
particles by ``race``; the log of the runs' mean and the standard error of the runs' logarithms. Brownian motion has a flat root,
so its evidence is no density of the table; here every tree of its sample is weighed with a root drawn from N(0, 1), the
columns' own mean and variance. *Held-out row* is the mean log density of a row in five folds, with its standard error over
folds. *Clusters* are those of the default, which fits nothing, with the adjusted Rand index against the known classes. *Purity*
is `ct.metrics.dendrogram_purity`.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.special import logsumexp
from sklearn import datasets
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler, scale

import coaltree as ct
from coaltree.errors import InputWarning

PROCESSES = ("ornstein-uhlenbeck", "brownian")
N_ROWS, N_RUNS, N_PARTICLES = 60, 8, 200
N_JOBS = 2
ROUNDS = 10
warnings.simplefilter("ignore", InputWarning)


def tables():
    """Return by name the columns, the classes and the step between rounded values."""
    iris, wine, cancer = datasets.load_iris(), datasets.load_wine(), datasets.load_breast_cancer()
    diabetes, digits = datasets.load_diabetes(), datasets.load_digits()
    pixels, sex = digits.data[:600], np.array(diabetes.feature_names) == "sex"
    return {
        "iris": (iris.data, iris.target, 0.0),
        "wine": (wine.data, wine.target, 0.0),
        "breast cancer": (cancer.data, cancer.target, 0.0),
        "diabetes": (diabetes.data[:, ~sex], None, 0.0),
        "digits": (pixels[:, (pixels == 0).mean(axis=0) <= 0.9], digits.target[:600], 1.0),
    }


def fit(X, process):
    """Return greedy clustering of a table."""
    return ct.CoalescentClustering(real_process=process, n_jobs=N_JOBS).fit(X)


def fitted_process(X, process):
    """Return a process with parameters that were fitted to greedy trees, in rounds."""
    fitted = fit(X, process).process_
    for _ in range(ROUNDS):
        fitted = ct.calibrate(fitted, ct.greedy(X, fitted, n_jobs=N_JOBS).tree, X, hold_noise=True)
    return fitted


def log_evidence(X, process):
    """Return the log evidence of a standardised table with fitted parameters, and its standard error."""
    fitted = fitted_process(X, process)
    sample = ct.smc(X, fitted, "race", N_PARTICLES, n_runs=N_RUNS, n_jobs=N_JOBS, random_state=0)
    with np.errstate(divide="ignore"):
        # weights add up to one over all runs, which count by their evidences
        logs = np.log(sample.weights) + logsumexp(sample.run_log_evidences)
    if process == "brownian":
        logs = logs + [_root(ct.Beliefs(tree, X, fitted)) for tree in sample.trees]
    runs = logsumexp(logs.reshape(N_RUNS, N_PARTICLES), axis=1)
    return logsumexp(runs) - np.log(N_RUNS), np.std(runs, ddof=1) / np.sqrt(N_RUNS)


def _root(beliefs):
    """Return the log density of what the tree says of its root, if that is from N(0, 1) in every column."""
    root = beliefs.tree.n_nodes - 1
    said = beliefs.at([root], beliefs.tree.heights[[root]])
    variance = said.sd**2 + 1
    return float(np.sum(-0.5 * np.log(2 * np.pi * variance) - 0.5 * said.mean**2 / variance))


def held_out(X, process):
    """Return the mean log density of held-out rows, of each of five folds."""
    scores = []
    for inside, outside in KFold(5, shuffle=True, random_state=0).split(X):
        scaler = StandardScaler().fit(X[inside])
        scores.append(fit(scaler.transform(X[inside]), process).score(scaler.transform(X[outside])))
    return np.array(scores)


def densities():
    """Print evidences and held-out densities."""
    print("| | log evidence: OU | Brownian | held-out row: OU | Brownian | OU - Brownian |")
    print("|---|---|---|---|---|---|")
    for name, (X, _, step) in tables().items():
        rng = np.random.default_rng(0)
        X = X + step * rng.random(X.shape)
        rows = scale(X[rng.choice(len(X), N_ROWS, replace=False)])
        cells = [f"{mean:.1f} ± {se:.1f}" for mean, se in (log_evidence(rows, process) for process in PROCESSES)]
        ours, theirs = (held_out(X, process) for process in PROCESSES)
        for scores in (ours, theirs, ours - theirs):
            cells.append(f"{np.mean(scores):.2f} ± {np.std(scores, ddof=1) / np.sqrt(len(scores)):.2f}")
        print(f"| {name}, {X.shape[1]} columns | " + " | ".join(cells) + " |", flush=True)


def clusters():
    """Print flat clusters and purities."""
    print("| | classes | clusters, index: OU | Brownian | purity: OU | Brownian | average link | Ward |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (X, classes, _) in tables().items():
        models = [fit(X, process) for process in PROCESSES]
        if classes is None:
            print(
                f"| {name} | - | " + " | ".join(f"{m.n_clusters_}" for m in models) + " | - | - | - | - |", flush=True
            )
            continue
        scores = [f"{m.n_clusters_}, {adjusted_rand_score(classes, m.labels_):.2f}" for m in models]
        trees = [m.tree_ for m in models] + [
            ct.Tree.from_linkage(linkage(scale(X), how)) for how in ("average", "ward")
        ]
        purities = [f"{ct.metrics.dendrogram_purity(tree, classes):.3f}" for tree in trees]
        print(f"| {name} | {len(set(classes))} | " + " | ".join(scores + purities) + " |", flush=True)


def seconds(work):
    """Return the median time of three."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return np.median(times)


def times():
    """Print how much longer Ornstein-Uhlenbeck takes."""
    simulated = ct.Brownian().simulate(ct.simulate_tree(2000, random_state=0), random_state=1, n_columns=10)
    for kind, X in (
        ("from the model", scale(simulated)),
        ("without structure", np.random.default_rng(0).normal(size=(2000, 10))),
    ):
        for process in (ct.OrnsteinUhlenbeck(), ct.Brownian()):
            ct.greedy(X[:50], process)  # compile first
        one = [
            seconds(lambda p=p, X=X: ct.greedy(X, p, n_jobs=N_JOBS)) for p in (ct.OrnsteinUhlenbeck(), ct.Brownian())
        ]
        whole = [seconds(lambda p=p, X=X: fit(X, p)) for p in PROCESSES]
        print(
            f"2,000 x 10 {kind}, Ornstein-Uhlenbeck / Brownian: one tree {one[0] / one[1]:.1f}, with parameters fitted "
            f"{whole[0] / whole[1]:.1f}",
            flush=True,
        )


def main():
    """Print the tables."""
    clusters()
    print()
    densities()
    print()
    times()


if __name__ == "__main__":
    main()
