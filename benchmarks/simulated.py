"""Coverage of intervals and recovery of rates, on tables simulated from the model.

Run with ``python benchmarks/simulated.py``; it takes some minutes on two cores, ``--quick`` some seconds.

*Coverage.* Tables of 300 rows with 10 % of the cells hidden, noise of 0.03, 0.1, 0.3 and 1 in turn: the share of hidden real
cells inside the imputer's 90 % intervals, with default settings and with the process that the table was drawn from.

*Rates.* Tables of 400 rows and 6 columns of the stationary diffusion: its rate, fitted on the true tree.

Errors are standard errors over tables.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import coaltree as ct

NOISES = (0.03, 0.1, 0.3, 1.0)


def draw_table(kind, n_real, seed):
    """Return a table of the model, and the generator, which goes on."""
    rng = np.random.default_rng(seed)
    tree, noise = ct.simulate_tree(300, rng), NOISES[seed % len(NOISES)]
    mean, variance = rng.normal(size=n_real), np.exp(rng.normal(size=n_real))
    if kind == "brownian":
        return ct.Brownian(variance, noise).simulate(tree, rng, root=mean), rng
    return ct.OrnsteinUhlenbeck(0.5, mean, variance, noise).simulate(tree, rng), rng


def coverage(kind, n_real, seed):
    """Return the share of hidden cells inside their 90 % intervals."""
    X, rng = draw_table(kind, n_real, seed)
    hidden = rng.random(X.shape) < 0.1
    table = np.where(hidden, np.nan, X)
    cells = ct.CoalescentImputer(real_process=kind).fit(table).predictive(table)
    low, high = np.array([cells[f"x{j}"].interval(0.9) for j in range(n_real)]).transpose(1, 2, 0)
    return np.mean(((low <= X) & (high >= X))[hidden])


def rates(rate, seed):
    """Return the rate fitted on the true tree."""
    rng = np.random.default_rng(seed)
    tree = ct.simulate_tree(400, rng)
    X = ct.OrnsteinUhlenbeck(rate, 0.0, 1.0, 0.1).simulate(tree, rng, n_columns=6)
    start = ct.OrnsteinUhlenbeck(1.0, X.mean(axis=0), X.var(axis=0), 0.1)
    return ct.calibrate(start, tree, X).rate


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two tables of each kind")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ct.errors.InputWarning)
    print("| process | columns | tables | covered |\n|---|---|---|---|")
    for kind, n_real, n_tables in (("brownian", 6, 30), ("brownian", 12, 8), ("ornstein-uhlenbeck", 6, 12)):
        inside = np.array([coverage(kind, n_real, seed) for seed in range(2 if options.quick else n_tables)])
        error = inside.std(ddof=1) / np.sqrt(len(inside))
        print(f"| {kind} | {n_real} | {len(inside)} | {100 * inside.mean():.1f} ± {100 * error:.1f} % |", flush=True)
    print("\n| rate | tables | on the true tree |\n|---|---|---|")
    for rate in (0.2, 1.0, 3.0):
        results = np.array([rates(rate, seed) for seed in range(2 if options.quick else 5)])
        error = results.std(ddof=1) / np.sqrt(len(results))
        print(f"| {rate} | {len(results)} | {results.mean():.2f} ± {error:.2f} |", flush=True)


if __name__ == "__main__":
    main()
