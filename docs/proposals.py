"""Compare the proposals of sequential Monte Carlo: ``python docs/proposals.py`` prints the table of docs/sampling.md.

As in the synthetic experiment of the paper: binary columns, mutation rate 1, a tree from the prior. The figure is the effective
sample size as a share of the particles, without any resampling and as a median over 10 tables, and beside it the spread of
the log evidence over the same tables, each sampled eight times with resampling.
"""

from __future__ import annotations

import warnings
from typing import get_args

import numpy as np

import coaltree as ct
from coaltree._parameters import Proposal
from coaltree.errors import InputWarning

PROPOSALS = get_args(Proposal)

N_PARTICLES = 100
SHAPES = ((6, 5), (6, 40), (12, 20), (24, 20))
warnings.simplefilter("ignore", InputWarning)


def tables(n, n_columns):
    """Yield tables from the model."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        process = ct.Multinomial(1.0, [[0.5, 0.5]] * n_columns)
        yield process.simulate(ct.simulate_tree(n, random_state=rng), random_state=rng), process


def scores(n, n_columns, proposal):
    """Return the share of effective particles and the spread of the log evidence."""
    shares, spreads = [], []
    for X, process in tables(n, n_columns):
        plain = ct.smc(X, process, proposal, N_PARTICLES, threshold=0.0, random_state=0, n_jobs=2)
        shares.append(plain.ess[-1] / N_PARTICLES)
        runs = ct.smc(X, process, proposal, N_PARTICLES, n_runs=8, random_state=0, n_jobs=2)
        spreads.append(np.std(runs.run_log_evidences, ddof=1))
    return np.median(shares), np.median(spreads)


def main():
    """Print the table."""
    print("| rows x columns | " + " | ".join(PROPOSALS) + " |")
    print("|---|" + "---|" * len(PROPOSALS))
    for n, n_columns in SHAPES:
        cells = []
        for proposal in PROPOSALS:
            share, spread = scores(n, n_columns, proposal)
            cells.append(f"{100 * share:.2g} %, {spread:.2f}")
        print(f"| {n} x {n_columns} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
