"""Speed of sequential Monte Carlo, as ratios measured in one run.

Run with ``python benchmarks/sampling.py``; it takes some minutes, most of them for post-post. Tables have 10 real columns and
come from the model; there are 50 particles on 2 threads, but 10 where post-post is compared with itself on twice the rows.
"""

from __future__ import annotations

import argparse
import time
import warnings

import fastcluster
import numpy as np

import coaltree as ct
from coaltree.errors import InputWarning
from foundation import N_JOBS, independent, line, seconds

warnings.simplefilter("ignore", InputWarning)  # that particles descend from one


def sampling(n, proposal, n_particles=50):
    X = ct.Brownian().simulate(ct.simulate_tree(n, random_state=0), random_state=1, n_columns=10)
    start = time.perf_counter()
    ct.smc(X, ct.Brownian(), proposal, n_particles, n_jobs=N_JOBS, random_state=0)
    return time.perf_counter() - start


def main():
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()  # for --help
    for proposal in ("race", "post-post"):
        sampling(5, proposal)  # what is imported late is there then
    table = independent()
    peer = seconds(lambda: fastcluster.linkage(table, "average"))
    line("post-post, 100 x 10 / fastcluster average 10,000 x 20", sampling(100, "post-post") / peer, 4)
    race = {n: np.median([sampling(n, "race") for _ in range(3)]) for n in (200, 400)}
    line("race, 400 rows / 200 rows", race[400] / race[200], 4.6)
    post = sampling(200, "post-post")
    line("race / post-post, 200 rows", race[200] / post, 1 / 8)
    few = {n: sampling(n, "post-post", 10) for n in (200, 400)}
    line("post-post, 400 rows / 200 rows", few[400] / few[200], 9)
    for n in (200, 400):
        print(f"race, {n} rows, 50 particles: alarms take {50 * n * (n - 1) // 2 * 8 / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
