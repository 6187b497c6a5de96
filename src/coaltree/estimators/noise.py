"""How much of real columns is noise: as much as predicts best what was left out.

The tree that explains a table best explains noise away, so its joint density with the table asks for too little noise. Rows
that took no part in the tree do not.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..inference.alternate import Found, alternate
from ..inference.greedy import GreedyResult, greedy
from ..predict.predictor import Predictor, cell_log_scores
from ..process.base import Process
from ..process.gaussian_prior import GaussianPrior, noise_log_prior, rounding_share

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MOST_ROWS = 300  # of a larger table, rows of all kinds; a part of a coalescent's leaves has a coalescent of its own
FOLDS = 5  # one part in so many is left out
LEFT_OUT = 30  # rows at least are left out, if need be one part after the other
FEWEST_ROWS = 5
# by which noise is multiplied or divided, in the first and at least in the last step
FIRST_FACTOR, LAST_FACTOR = 3.0, 1.2
MAX_TREES_PER_PARAMETER = 14
LARGEST_SHARE = 0.9
FIRST_ROUNDS, ROUNDS = 3, 1  # in which a trial's other parameters are fitted


class Trial(NamedTuple):
    """A share of noise, with the processes that were fitted for it, one for each part left out."""

    share: float
    processes: list[Process]
    score: float


def predictive_noise(process: Process, X: FloatArray, real_columns: int, *, n_jobs: int | None = None) -> Process:
    """Return a process with the share of noise by which the cells of rows left out are best predicted from one another.

    Parameters
    ----------
    process : Process
        Where the search begins.
    X : ndarray of shape (n, D)
    real_columns : int
        The first so many columns are real.
    n_jobs : int, optional
        Threads. The result does not depend on it.

    Returns
    -------
    Process
        Its other parameters are fitted to a part of the rows, a good place to go on from.
    """
    if len(X) < FEWEST_ROWS:
        return process
    parts = _parts(X, real_columns)
    least = rounding_share(
        X[:, :real_columns]
    )  # less would be explained by values that repeat, at a density without bound

    def trial(share: float, processes: list[Process], rounds: int) -> Trial:
        fitted, score = [], noise_log_prior(share)
        for (kept, left_out), start in zip(parts, processes, strict=True):
            found = _fitted(start.with_noise_share(share, X[kept], "tried"), X[kept], rounds, n_jobs)
            fitted.append(found.process)
            predictor = Predictor.of_trees(found.trees, found.weights, X[kept], found.process, n_jobs)
            score += float(cell_log_scores(predictor, X[left_out]).sum())
        return Trial(share, fitted, score)

    best = trial(max(process.noise_share(X) or 0.0, least), [process] * len(parts), FIRST_ROUNDS)
    factor, upwards, failures = FIRST_FACTOR, True, 0
    for _ in range(MAX_TREES_PER_PARAMETER):
        share = best.share * (factor if upwards else 1 / factor)
        found = trial(share, best.processes, ROUNDS) if least <= share < LARGEST_SHARE else None
        if found and found.score > best.score:
            best, failures = found, 0
            continue
        upwards, failures = not upwards, failures + 1
        if failures == 2:
            factor, failures = math.sqrt(factor), 0
            if factor < LAST_FACTOR:
                break
    return best.processes[0].with_noise_share(best.share, X, "tried")


def _fitted(process: Process, X: FloatArray, rounds: int, n_jobs: int | None) -> Found[GreedyResult]:
    def find(process: Process, number: int) -> Found[GreedyResult]:
        result = greedy(X, process, n_jobs=n_jobs)
        return Found(result, result.process, [result.tree], np.ones(1), result.log_joint)

    return alternate(find, process, X, rounds).best


def _parts(X: FloatArray, real_columns: int) -> list[tuple[IntArray, IntArray]]:
    """Return which rows are kept and which are left out, for as many parts as give enough of them."""
    order = rows_of_all_kinds(X, real_columns, MOST_ROWS)
    n_parts = min(FOLDS, math.ceil(LEFT_OUT * FOLDS / len(order)))
    with_holes = np.isnan(X[order]).any(axis=1)
    fold = np.empty(len(order), dtype=np.intp)
    fold[~with_holes] = np.arange((~with_holes).sum()) % FOLDS
    # a few rows with holes are not all left out at once: what is kept would be complete, and another kind of table to compile for
    fold[with_holes] = FOLDS - 1 - np.arange(with_holes.sum()) % FOLDS
    parts = [fold == part for part in range(n_parts)]
    return [(np.sort(order[~left_out]), np.sort(order[left_out])) for left_out in parts]


def rows_of_all_kinds(X: FloatArray, real_columns: int, most: int) -> IntArray:
    """Return some of the rows, from the most usual to the oddest.

    They are put in order by how far they are from the middle and how rare their categories are, so that neither the order of
    rows or columns nor units count.
    """
    real = X[:, :real_columns]
    observed = ~np.isnan(real)
    prior = GaussianPrior.of(real, "held")
    squares = np.where(observed, (real - prior.middle) ** 2, 0.0)
    oddness = np.sum(squares / prior.spread, axis=1) / np.maximum(observed.sum(axis=1), 1)
    for codes in X[:, real_columns:].T:
        seen = ~np.isnan(codes)
        counts = np.bincount(codes[seen].astype(np.intp), minlength=1)
        oddness[seen] -= np.log(counts[codes[seen].astype(np.intp)] / max(int(seen.sum()), 1))
    order = np.argsort(np.round(oddness, 9), kind="stable")
    if len(order) > most:
        order = order[np.linspace(0, len(order) - 1, most).round().astype(np.intp)]
    return order
