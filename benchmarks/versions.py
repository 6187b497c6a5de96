"""Compare this version of coaltree with another: processor time, memory and trees, measured in turn in one run.

Run with ``python benchmarks/versions.py OTHER``, where OTHER is a folder that holds the other version's package ``coaltree``, for
example ``git worktree add ../other v0.1 && python benchmarks/versions.py ../other/src``. ``--cases`` names some of the cases,
``--repeats`` how often each is timed; the shortest time counts. Peers are timed in the same run, where they are installed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent.parent / "src"


def clustered(n, n_columns):
    rng = np.random.default_rng(0)
    centers = 5 * rng.normal(size=(100, n_columns))
    return centers[rng.integers(100, size=n)] + rng.normal(size=(n, n_columns))


def blobs(n, n_columns):
    """Overlapping clusters, whose boxes prune nothing."""
    rng = np.random.default_rng(0)
    return 2 * rng.normal(size=(40, n_columns))[rng.integers(40, size=n)] + rng.normal(size=(n, n_columns))


def cloud(n, n_columns):
    return np.random.default_rng(0).normal(size=(n, n_columns))


def holes(X):
    return np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)


def states(n, n_columns):
    rng = np.random.default_rng(0)
    counts = 2 + np.arange(n_columns) % 7
    prototypes = rng.integers(counts, size=(100, n_columns))[rng.integers(100, size=n)]
    return np.where(rng.random((n, n_columns)) < 0.75, prototypes, rng.integers(counts, size=(n, n_columns))).astype(
        float
    )


def holes_and_states(n, n_columns):
    return np.hstack([holes(cloud(n, n_columns // 2)), states(n, n_columns // 2)])


def rates(n_columns):
    return np.random.default_rng(0).gamma(2.0, 0.5, n_columns)


def run_both(ct):
    return ct.Mixed((ct.OrnsteinUhlenbeck(0.5, noise=0.3), range(10)), (ct.Multinomial(np.ones(10)), range(10, 20)))


def brownian(ct):
    return ct.Brownian(noise=0.1)


# by name: the table, made when it is needed, and the process, of a version of coaltree
GREEDY = {
    "exact, clustered 10,000 x 20": (lambda: clustered(10_000, 20), brownian),
    "exact, clustered 20,000 x 10": (lambda: clustered(20_000, 10), brownian),
    "exact, one cloud 10,000 x 20": (lambda: cloud(10_000, 20), brownian),
    "exact, blobs 10,000 x 20": (lambda: blobs(10_000, 20), brownian),
    "exact, blobs 20,000 x 10": (lambda: blobs(20_000, 10), brownian),
    "exact, stationary 3,000 x 10": (
        lambda: clustered(3_000, 10) / 5,
        lambda ct: ct.OrnsteinUhlenbeck(0.5, noise=0.3),
    ),
    "exact, 10 % missing 3,000 x 20": (lambda: holes(cloud(3_000, 20)), brownian),
    "exact, stationary, 10 % missing 3,000 x 20": (
        lambda: holes(cloud(3_000, 20)),
        lambda ct: ct.OrnsteinUhlenbeck(0.5),
    ),
    "neighbors, 10 % missing 10,000 x 20": (lambda: holes(cloud(10_000, 20)), brownian),
    "exact, states 1,740 x 156, one rate": (lambda: states(1_740, 156), lambda ct: ct.Multinomial(1.0)),
    "exact, states 1,740 x 156, a rate a column": (lambda: states(1_740, 156), lambda ct: ct.Multinomial(rates(156))),
    "exact, mixed with holes 2,000 x 20": (lambda: holes_and_states(2_000, 20), run_both),
    "neighbors, clustered 100,000 x 10": (lambda: clustered(100_000, 10), brownian),
    "neighbors, states 100,000 x 30": (lambda: states(100_000, 30), lambda ct: ct.Multinomial(0.5)),
    "neighbors, clustered 1,000,000 x 10": (lambda: clustered(1_000_000, 10), brownian),
}
SAMPLED = {
    "real 60 x 8": (lambda: cloud(60, 8), brownian),
    "real with holes 60 x 8": (lambda: holes(cloud(60, 8)), lambda ct: ct.OrnsteinUhlenbeck(0.5, noise=0.1)),
    "states 60 x 20": (lambda: states(60, 20), lambda ct: ct.Multinomial(rates(20))),
    "states 60 x 20, one rate": (lambda: states(60, 20), lambda ct: ct.Multinomial(0.7)),
}
CASES = [*GREEDY, *(f"{kind}, {table}" for kind in ("SMC post-post", "SMC race", "MCMC") for table in SAMPLED)]


def work(case):
    """Return a function of no arguments for a case, after a small run of its kind for warming up."""
    import coaltree as ct

    kind, what = case.split(", ", 1)
    table, process = GREEDY[case] if case in GREEDY else SAMPLED[what]
    X, process = table(), process(ct)

    def greedy(rows=None):
        result = ct.greedy(X[:rows], process, search=kind, n_jobs=1)
        return result.tree.children, result.tree.heights, result.log_joint

    def sample(size=1):
        if kind == "MCMC":
            result = ct.mcmc(X, process, 100 * size, 2, random_state=0, n_jobs=1)
        else:
            result = ct.smc(X, process, kind.removeprefix("SMC "), 20 * size, random_state=0, n_jobs=1)
        tree = result.trees[-1]
        return tree.children, tree.heights, result.trees[0].heights.sum()

    if case in GREEDY:
        greedy(25_000 if len(X) >= 100_000 else 100)
        return greedy
    sample()
    return lambda: sample(2)


PEERS = [
    "fastcluster average, one cloud 10,000 x 20",
    "genieclust, blobs 20,000 x 10",
    "genieclust, clustered 20,000 x 10",
]


def peer(case):
    X = {"one cloud 10,000 x 20": cloud(10_000, 20), "blobs 20,000 x 10": blobs(20_000, 10)}.get(
        case.split(", ", 1)[1], clustered(20_000, 10)
    )
    if case.startswith("fastcluster"):
        import fastcluster

        return lambda: fastcluster.linkage(X, "average") is None
    os.environ["OMP_NUM_THREADS"] = "1"
    import genieclust

    return lambda: genieclust.Genie(n_clusters=100).fit(X) is None


def measure(case):
    """Time a case in this process, and print what came out."""
    import resource
    import warnings

    warnings.simplefilter("ignore")
    run = peer(case) if case in PEERS else work(case)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    result = run()
    seconds = time.process_time() - start
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    facts = {"seconds": seconds, "memory": memory}
    if case not in PEERS:
        children, heights, log_joint = result
        digest = hashlib.sha256(np.ascontiguousarray(children, dtype=np.int64).tobytes()).hexdigest()
        facts |= {"children": digest, "heights": float(np.sum(heights)), "log_joint": float(log_joint)}
    print(json.dumps(facts))


def run_case(case, folder):
    environment = os.environ | {"PYTHONPATH": str(folder), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--measure", case]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd="/")
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("other", nargs="?", type=Path, help="folder with the other version's package")
    parser.add_argument("--cases", nargs="*", default=CASES + PEERS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure)
        return
    print("| work | other, s | this, s | ratio | memory, MB: other, this | tree |\n|---|---|---|---|---|---|")
    for case in arguments.cases:
        folders = [HERE] if case in PEERS or arguments.other is None else [arguments.other.resolve(), HERE]
        repeats = 1 if "1,000,000" in case or "100,000" in case else arguments.repeats
        runs = [[run_case(case, folder) for folder in folders] for _ in range(repeats)]
        seconds = [min(run[k]["seconds"] for run in runs) for k in range(len(folders))]
        memory = ", ".join(f"{run['memory']:.0f}" for run in runs[0])
        if len(folders) == 1:
            print(f"| {case} | | {seconds[0]:.3g} | | {memory} | |", flush=True)
            continue
        one, other = runs[0]
        same = one["children"] == other["children"]
        close = abs(one["heights"] - other["heights"]) <= 1e-11 * abs(one["heights"])
        tree = "same" if same and close else f"differs, log joint {one['log_joint']:.6g} and {other['log_joint']:.6g}"
        print(
            f"| {case} | {seconds[0]:.3g} | {seconds[1]:.3g} | {seconds[1] / seconds[0]:.2f} | {memory} | {tree} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
