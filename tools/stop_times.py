"""How long functions and commands take to end after an interrupt: each runs in a process that gets a signal at random moments.

    python tools/stop_times.py --times 3
    python tools/stop_times.py greedy place --times 10

Every work takes far longer than it is given. For each, the table that is printed has the number of processes that had begun their
work, those that were still at it when the signal came, and the longest time from there to their end. `SLOW` marks those above a
second; times on a busy computer say little.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import coaltree

PATIENCE = 60.0  # seconds until a process that does not end is killed
LIMIT = 1.0

TABLES = """
import os, sys, numpy as np, coaltree as ct
rng = np.random.default_rng(0)
def real(n, d, holes=0.0):
    X = np.cumsum(rng.standard_normal((n, d)), axis=0) * 0.1 + rng.standard_normal((n, d))
    X[rng.random(X.shape) < holes] = np.nan
    return X
def sites(n, d, states):
    return rng.integers(states, size=(n, d)).astype(float)
def ready():
    print("ready", flush=True)
"""

# Statements before and after the process says that it begins its work.
FUNCTIONS = {
    "greedy": ("X = real(30_000, 12, 0.1)", "ct.greedy(X, ct.OrnsteinUhlenbeck(0.5, noise=0.2), search='exact')"),
    "greedy-threads": (
        "X = real(30_000, 12, 0.1)",
        "ct.greedy(X, ct.OrnsteinUhlenbeck(0.5, noise=0.2), search='exact', n_jobs=2)",
    ),
    "greedy-space": ("X = real(300_000, 12)", "ct.greedy(X, ct.Brownian(), search='exact')"),
    "greedy-sites": ("X = sites(20_000, 100, 4)", "ct.greedy(X, ct.Multinomial(), search='exact')"),
    "greedy-max-prob": ("X = real(3000, 5)", "ct.greedy(X, ct.Brownian(), 'max-prob')"),
    "greedy-neighbors": ("X = real(500_000, 8, 0.1)", "ct.greedy(X, ct.OrnsteinUhlenbeck(0.5), search='neighbors')"),
    "refine": (
        "X = real(4000, 20, 0.1); p = ct.OrnsteinUhlenbeck(0.5, noise=0.2); t = ct.simulate_tree(4000, 0)",
        "ct.refine(t, X, p)",
    ),
    "mcmc": ("X = real(1500, 20, 0.1)", "ct.mcmc(X, ct.OrnsteinUhlenbeck(0.5, noise=0.2), 5000, n_jobs=2)"),
    "mcmc-covariance": (
        "X = real(500, 60, 0.2)",
        "ct.mcmc(X, ct.OrnsteinUhlenbeck(covariance='full', noise=0.2), 5000, draw_parameters=True)",
    ),
    "mcmc-sites": ("X = sites(1000, 300, 4)", "ct.mcmc(X, ct.Multinomial(), 5000, draw_parameters=True)"),
    "evidence": ("X = real(600, 20)", "ct.evidence(X, ct.OrnsteinUhlenbeck(0.5, noise=0.2), n_jobs=2)"),
    "smc": ("X = real(2000, 5)", "ct.smc(X, ct.Brownian())"),
    "smc-prior-post": ("X = real(2000, 5)", "ct.smc(X, ct.Brownian(), 'prior-post', n_jobs=2)"),
    "smc-race": ("X = real(2000, 5)", "ct.smc(X, ct.Brownian(), 'race', n_jobs=2)"),
    "smc-regrafts": ("X = real(400, 5)", "ct.smc(X, ct.Brownian(), n_particles=500, regrafts=100, threshold=1.0)"),
    "fit": ("X = real(30_000, 17, 0.1)", "ct.CoalescentClustering().fit(X)"),
    "fit-mcmc": ("X = real(1500, 17, 0.1)", "ct.CoalescentClustering(inference='mcmc', n_samples=5000).fit(X)"),
    "first-prediction": (
        "X = real(20_000, 10, 0.1); m = ct.CoalescentClustering().fit(X)",
        "m.score_samples(real(100_000, 10))",
    ),
    "place": ("X = real(3000, 17, 0.1); m = ct.CoalescentClustering().fit(X)", "m.place(real(50_000, 17, 0.1))"),
    "predict_proba": (
        "X = real(3000, 17, 0.1); m = ct.CoalescentClustering().fit(X)",
        "m.predict_proba(real(50_000, 17, 0.1))",
    ),
    "impute": ("X = real(5000, 30, 0.3)", "ct.CoalescentImputer().fit_transform(X)"),
    "predictive": (
        "X = real(2000, 20, 0.2); m = ct.CoalescentImputer().fit(X)",
        "m.predictive(real(20_000, 20, 0.2))['x0'].interval(0.9)",
    ),
    "report": (
        "X = real(4000, 30, 0.1); m = ct.CoalescentClustering().fit(X)",
        "m.report(os.path.join(sys.argv[1], 'report.html'))",
    ),
    "beliefs": (
        "X = real(300_000, 30, 0.1); t = ct.simulate_tree(300_000, 0)",
        "[ct.Beliefs(t, X, ct.OrnsteinUhlenbeck(0.5, noise=0.2)).leaves() for _ in range(9)]",
    ),
    "calibrate": (
        "X = real(20_000, 30, 0.1); t = ct.simulate_tree(20_000, 0)",
        "ct.calibrate(t, X, ct.OrnsteinUhlenbeck())",
    ),
    "simulate_tree": ("", "[ct.simulate_tree(3_000_000, k) for k in range(9)]"),
    "newick": ("t = ct.simulate_tree(500_000, 0)", "[ct.Tree.from_newick(t.to_newick()) for k in range(9)]"),
    "tree-sample": (
        "s = ct.TreeSample([ct.simulate_tree(2000, k) for k in range(300)])",
        "s.summary(); s.co_clustering(); s.topology_ess()",
    ),
    "robinson_foulds": (
        "s, t = (ct.simulate_tree(100_000, k) for k in range(2))",
        "[ct.robinson_foulds(s, t) for _ in range(99)]",
    ),
    "plot_dendrogram": (
        "X = real(20_000, 5); m = ct.CoalescentClustering().fit(X)",
        "[ct.plot_dendrogram(m).figure.savefig(os.path.join(sys.argv[1], 'p.png')) for _ in range(99)]",
    ),
    "plot_heatmap": (
        "X = real(10_000, 50); m = ct.CoalescentClustering().fit(X)",
        "[ct.plot_heatmap(m).figure.savefig(os.path.join(sys.argv[1], 'p.png')) for _ in range(99)]",
    ),
    "bhc": ("X = real(1000, 10)", "ct.baselines.BayesianHierarchicalClustering().fit(X)"),
    "save-and-load": (
        "X = real(20_000, 20); m = ct.CoalescentClustering().fit(X); p = os.path.join(sys.argv[1], 'm.coaltree')",
        "[(m.save(p), ct.load_model(p)) for _ in range(99)]",
    ),
    "dask": ("X = real(300_000, 8)", "ct.greedy(X, ct.Brownian(), search='neighbors', client='local:2')"),
}

# Arguments of commands; files are those of `write_files`.
COMMANDS = {
    "fit": "fit large.csv -o {out}",
    "fit --inference mcmc": "fit small.csv -o {out} --inference mcmc --samples 20000",
    "fit --inference smc": "fit small.csv -o {out} --inference smc --particles 2000",
    "fit --evidence": "fit small.csv -o {out} --evidence",
    "fit --report": "fit small.csv -o {out} --report",
    "place": "place out/model.coaltree many.csv -o {out}.csv",
    "score": "score out/model.coaltree many.csv -o {out}.csv",
    "impute": "impute holes.csv -o {out}.csv",
    "impute --draws": "impute holes.csv -o {out}.csv --draws 50",
    "report": "report out/model.coaltree -o {out}.html",
    "plot": "plot big.nwk -o {out}.svg",
    "convert": "convert big.nwk {out}.nex",
    "simulate": "simulate 300000 -o {out}.csv --columns 50",
}


def write_files(folder: Path) -> None:
    """Write the tables that commands read, and fit a model to a table with columns of 100 categories."""
    rng = np.random.default_rng(0)

    def table(name: str, n: int, n_real: int, n_categorical: int, holes: float = 0.1) -> None:
        cells = [[f"{x:.4f}" for x in row] for row in rng.standard_normal((n, n_real)).tolist()]
        for row, states in zip(cells, rng.integers(100, size=(n, n_categorical)).tolist(), strict=True):
            row += [f"c{state}" for state in states]
        for row in cells:
            for d in np.flatnonzero(rng.random(len(row)) < holes).tolist():
                row[d] = ""
        header = ",".join(f"v{d}" for d in range(n_real + n_categorical))
        (folder / name).write_text("\n".join([header, *(",".join(row) for row in cells)]) + "\n")

    table("small.csv", 3000, 15, 2)
    table("many.csv", 50_000, 15, 2)
    table("large.csv", 200_000, 15, 2)
    table("holes.csv", 5000, 15, 2, 0.4)
    (folder / "big.nwk").write_text(coaltree.simulate_tree(200_000, 0).to_newick())
    subprocess.run([sys.executable, "-m", "coaltree", "fit", "small.csv", "-o", "out", "-q"], cwd=folder, check=True)


def time_to_end(command: list[str], folder: Path, sent: signal.Signals, wait: float) -> float | None:
    """Start a process, send it a signal, and return the seconds until it ends; None if it had ended."""
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        if command[1] == "-c" and not process.stdout.readline():
            raise RuntimeError(f"it failed before its work: {command[2][-300:]}")
        try:
            process.wait(wait)
            return None
        except subprocess.TimeoutExpired:
            begin = time.perf_counter()
            process.send_signal(sent)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            return time.perf_counter() - begin
    finally:
        process.kill()
        process.wait()


def main() -> int:
    """Interrupt every work, or those that the arguments name, and print the times."""
    parser = argparse.ArgumentParser(description="Measure how long works take to end after an interrupt.")
    parser.add_argument("works", nargs="*", help="functions and commands; by default all")
    parser.add_argument("--times", type=int, default=3, help="signals for each work")
    parser.add_argument("--longest", type=float, default=8.0, help="seconds of work until the last signal")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # processes in the background ignore it, and hand that on
    works = [
        (name, [sys.executable, "-c", f"{TABLES}\n{before}\nready()\n{work}"])
        for name, (before, work) in FUNCTIONS.items()
    ]
    works += [
        (f"coaltree {name}", [sys.executable, "-m", "coaltree", *words.split()]) for name, words in COMMANDS.items()
    ]
    n_slow = 0
    os.environ["MPLBACKEND"] = "Agg"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_files(folder)
        print(f"{'work':<32}{'begun':>6}{'running':>8}{'longest':>9}", flush=True)
        for name, command in works:
            if options.works and name not in options.works and name.removeprefix("coaltree ") not in options.works:
                continue
            times = []
            for k in range(options.times):
                sent = signal.SIGTERM if name.startswith("coaltree") and k % 2 else signal.SIGINT
                arguments = [word.replace("{out}", str(folder / "new")) for word in command]
                arguments += [temporary] if command[1] == "-c" else []
                taken = time_to_end(
                    arguments, folder, sent, 1.0 * (command[1] != "-c") + rng.random() * options.longest
                )
                times += [] if taken is None else [taken]
            longest = max(times, default=0.0)
            n_slow += longest > LIMIT
            mark = "  SLOW" if longest > LIMIT else ""
            print(f"{name:<32}{options.times:>6}{len(times):>8}{longest:>8.2f}s{mark}", flush=True)
    return int(n_slow > 0)


if __name__ == "__main__":
    sys.exit(main())
