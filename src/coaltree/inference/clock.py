"""Rates of characters, fitted together with a greedy tree."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputWarning
from ..process.base import Process, WeightedTrees

FloatArray = NDArray[np.float64]

MAX_ROWS = 200  # that rates are fitted to: other rows of the same coalescent have the same clock
ROUNDS = 2  # of tree and rates


def fit_clock(process: Process, X: FloatArray, search: Callable[..., Any]) -> Process:
    """Return a process of characters with rates and frequencies that fit a greedy tree, whose height is that of a coalescent.

    The likelihood depends on the products of rates and heights only. What separates them is the prior of the tree: the waiting
    times of Kingman's coalescent, in units of their means, add up to the number of merges.

    Parameters
    ----------
    process : Process
        A resolved one, all of whose parts have a clock.
    X : ndarray of shape (n, D)
    search : callable
        Greedy inference, which takes a table and a process.
    """
    if len(X) > MAX_ROWS:
        X = X[np.sort(np.random.default_rng(0).permutation(len(X))[:MAX_ROWS])]
        process = process.without_ascertainment()
    n = len(X)
    if n < 2:
        return process
    for _ in range(ROUNDS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            tree = search(X, process).tree
        process = process.fit(WeightedTrees([tree], np.ones(1), X), hold_noise=True)
        live = np.arange(n, 1, -1)
        waited = float(np.sum(live * (live - 1) / 2 * np.diff(tree.merge_heights, prepend=0.0)))
        slower = process.rescale_clock((n - 1) / waited) if waited > 0 else None
        process = process if slower is None else slower
    return process
