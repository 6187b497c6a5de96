"""Greedy inference in rounds with fits of the parameters, as in the paper."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import coaltree as ct


def run_in_rounds(
    X: NDArray[np.float64], process: ct.Process, rounds: int, rule: str = "rate1", jobs: int = 1
) -> ct.GreedyResult:
    """Find a tree, fit the process to it, find the next, and return the last.

    The estimators fit nothing: their trees have fixed parameters.
    """
    result = ct.greedy(X, process, rule, n_jobs=jobs)
    for _ in range(rounds):
        process = ct.calibrate(result.process, result.tree, X, hold_noise=True)
        result = ct.greedy(X, process, rule, n_jobs=jobs)
    return result
