"""Tree and parameters in turn: rounds of inference, each with parameters fitted to the trees of the round before.

Nothing but the prior of the heights tells a slow process on a high tree from a fast one on a low tree, and the best
tree is lower than it ought to be. So the clock is set after each round, such that the trees' total of ``k (k - 1) / 2`` times the
length of every interval with k lineages is what the coalescent expects, n - 1 (this is expectation-maximisation with an expanded
parameter). The share of the real columns' variance that is noise stays as it was: the best tree would explain noise away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..process.base import NoiseMode, Process
from ..process.calibration import fit_to_trees
from ..tree.coalescent import log_prior
from ..tree.tree import Tree

FloatArray = NDArray[np.float64]
Result = TypeVar("Result")

LEAST_GAIN = 0.01  # of the log posterior; a round that brings less changes nothing
PATIENCE = 2  # rounds without a gain after which no more are tried


@dataclass(frozen=True)
class Found(Generic[Result]):
    """What one round of inference found."""

    result: Result
    process: Process
    trees: Sequence[Tree]
    weights: FloatArray
    log_joint: float  # of the tree, or the evidence of a sample


@dataclass(frozen=True)
class Calibrated(Generic[Result]):
    """The best round, and how all of them went."""

    best: Found[Result]
    log_joints: list[float]


def alternate(
    find: Callable[[Process, int], Found[Result]],
    process: Process,
    X: FloatArray,
    rounds: int,
    noise: NoiseMode = "tried",
) -> Calibrated[Result]:
    """Find trees and fit parameters in turn, and return the best round.

    Parameters
    ----------
    find : callable
        Infers with a process; also gets the number of the round.
    process : Process
        Where to begin; its share of noise stays.
    X : ndarray of shape (n, D)
    rounds : int
        Rounds after the first, at most.
    noise : {"tried", "held"}, default "tried"
        Whether noise is at least that of rounding, or may be less because the user wants it so.

    Returns
    -------
    Calibrated
        The best of the rounds with fitted parameters, if there were any.
    """
    share = process.noise_share(X) or 0.0
    best = found = find(process, 0)
    log_joints = [best.log_joint]
    best_score, failures = -math.inf, 0  # by another clock, the first round's log joint is not to be compared
    for number in range(1, rounds + 1):
        fit = fit_to_trees(found.process, found.trees, found.weights, X, noise)
        fit = fit.rescale_clock(clock_factor(found)) or fit
        found = find(fit.with_noise_share(share, X, noise), number)
        log_joints.append(found.log_joint)
        score = _score(found, X)
        if score > best_score + LEAST_GAIN:
            best, best_score, failures = found, score, 0
        else:
            failures += 1
            if failures == PATIENCE:
                break
    return Calibrated(best, log_joints)


def clock_factor(found: Found[Result]) -> float:
    """Return by what heights have to be multiplied for the trees to be as high as the coalescent expects.

    This is eq. (11.4), as if one merge more had been seen that took as long as expected: equal rows, which merge at once, say
    little of the clock.
    """
    total = -sum(float(weight) * log_prior(tree) for tree, weight in zip(found.trees, found.weights, strict=True))
    return found.trees[0].n_leaves / (total + 1)


def _score(found: Found[Result], X: FloatArray) -> float:
    return found.log_joint + found.process.log_parameter_prior(X, hold_noise=True)
