"""Set this version of coaltree beside another one: processor time, memory and trees of the same work, in turn in one run.

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
    own = rng.integers(counts, size=(100, n_columns))[rng.integers(100, size=n)]
    return np.where(rng.random((n, n_columns)) < 0.75, own, rng.integers(counts, size=(n, n_columns))).astype(float)


def work(case):
    """Return a function of no arguments for a case, after a small run of its kind for warming up."""
    import coaltree as ct

    both = ct.Mixed((ct.OrnsteinUhlenbeck(0.5, noise=0.3), range(10)), (ct.Multinomial(np.ones(10)), range(10, 20)))
    tables = {
        "exact, clustered 10,000 x 20": (clustered(10_000, 20), ct.Brownian(noise=0.1), "exact"),
        "exact, clustered 20,000 x 10": (clustered(20_000, 10), ct.Brownian(noise=0.1), "exact"),
        "exact, one cloud 10,000 x 20": (cloud(10_000, 20), ct.Brownian(noise=0.1), "exact"),
        "exact, blobs 10,000 x 20": (blobs(10_000, 20), ct.Brownian(noise=0.1), "exact"),
        "exact, blobs 20,000 x 10": (blobs(20_000, 10), ct.Brownian(noise=0.1), "exact"),
        "exact, stationary 3,000 x 10": (clustered(3_000, 10) / 5, ct.OrnsteinUhlenbeck(0.5, noise=0.3), "exact"),
        "exact, 10 % missing 3,000 x 20": (holes(cloud(3_000, 20)), ct.Brownian(noise=0.1), "exact"),
        "exact, stationary, 10 % missing 3,000 x 20": (holes(cloud(3_000, 20)), ct.OrnsteinUhlenbeck(0.5), "exact"),
        "neighbors, 10 % missing 10,000 x 20": (holes(cloud(10_000, 20)), ct.Brownian(noise=0.1), "neighbors"),
        "exact, states 1,740 x 156, one rate": (states(1_740, 156), ct.Multinomial(1.0), "exact"),
        "exact, states 1,740 x 156, a rate a column": (
            states(1_740, 156),
            ct.Multinomial(np.random.default_rng(0).gamma(2.0, 0.5, 156)),
            "exact",
        ),
        "exact, mixed with holes 2,000 x 20": (np.hstack([holes(cloud(2_000, 10)), states(2_000, 10)]), both, "exact"),
        "neighbors, clustered 100,000 x 10": (None, ct.Brownian(noise=0.1), "neighbors"),
        "neighbors, clustered 1,000,000 x 10": (None, ct.Brownian(noise=0.1), "neighbors"),
        "neighbors, states 100,000 x 30": (None, ct.Multinomial(0.5), "neighbors"),
    }
    if case in tables:
        X, process, search = tables[case]
        if X is None:
            n, n_columns = (
                int(part.replace(",", "")) for part in case.rsplit(", ", 1)[1].split(" ", 1)[1].split(" x ")
            )
            X = states(n, n_columns) if "states" in case else clustered(n, n_columns)
        small = X[: min(len(X), 25_000 if search == "neighbors" else 100)]
        ct.greedy(small, process, search=search, n_jobs=1)

        def run():
            found = ct.greedy(X, process, search=search, n_jobs=1)
            return found.tree.children, found.tree.heights, found.log_joint

        return run
    kind, what = case.split(", ", 1)
    X, process = {
        "real 60 x 8": (cloud(60, 8), ct.Brownian(noise=0.1)),
        "real with holes 60 x 8": (holes(cloud(60, 8)), ct.OrnsteinUhlenbeck(0.5, noise=0.1)),
        "states 60 x 20": (states(60, 20), ct.Multinomial(np.random.default_rng(0).gamma(2.0, 0.5, 20))),
        "states 60 x 20, one rate": (states(60, 20), ct.Multinomial(0.7)),
    }[what]

    def sample(size=1):
        if kind == "MCMC":
            found = ct.mcmc(X, process, 100 * size, 2, random_state=0, n_jobs=1)
        else:
            found = ct.smc(X, process, kind.removeprefix("SMC "), 20 * size, random_state=0, n_jobs=1)
        tree = found.trees[-1]
        return tree.children, tree.heights, found.trees[0].heights.sum()

    sample()
    return lambda: sample(2)


CASES = [
    *(f"exact, {table}" for table in ("clustered 10,000 x 20", "clustered 20,000 x 10", "one cloud 10,000 x 20")),
    *(f"exact, {table}" for table in ("blobs 10,000 x 20", "blobs 20,000 x 10", "stationary 3,000 x 10")),
    *(f"exact, {table}" for table in ("10 % missing 3,000 x 20", "stationary, 10 % missing 3,000 x 20")),
    "neighbors, 10 % missing 10,000 x 20",
    *(f"exact, states 1,740 x 156, {rates}" for rates in ("one rate", "a rate a column")),
    "exact, mixed with holes 2,000 x 20",
    *(f"neighbors, {table}" for table in ("clustered 100,000 x 10", "states 100,000 x 30", "clustered 1,000,000 x 10")),
    *(
        f"{kind}, {table}"
        for kind in ("SMC post-post", "SMC race", "MCMC")
        for table in ("real 60 x 8", "real with holes 60 x 8", "states 60 x 20", "states 60 x 20, one rate")
    ),
]
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
    found = run()
    seconds = time.process_time() - start
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    facts = {"seconds": seconds, "memory": memory}
    if case not in PEERS:
        children, heights, log_joint = found
        digest = hashlib.sha256(np.ascontiguousarray(children, dtype=np.int64).tobytes()).hexdigest()
        facts |= {"children": digest, "heights": float(np.sum(heights)), "log_joint": float(log_joint)}
    print(json.dumps(facts))


def facts_of(case, folder):
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
        runs = [[facts_of(case, folder) for folder in folders] for _ in range(repeats)]
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
