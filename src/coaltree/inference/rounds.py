"""Tree and parameters in turn: rounds of inference, each with parameters fitted to the best round before it.

Parameters fitted to one tree lag behind: the tree was found with the old noise and fits it. So noise is tried out above and below
the best so far, a tree for each, by steps that become shorter; all other parameters are fitted to the tree of the
best round, given the noise that is tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..process.brownian import Brownian
from ..process.calibration import fitted, log_parameter_prior
from ..process.gaussian import Gaussian
from ..process.interface import Process
from ..process.mixed import Mixed
from ..process.ornstein_uhlenbeck import OrnsteinUhlenbeck
from ..tree.tree import Tree

FloatArray = NDArray[np.float64]
Result = TypeVar("Result")

FIRST_FACTOR, LAST_FACTOR = (
    3.0,
    1.2,
)  # by which noise is multiplied or divided, in the first and at least in the last step
LEAST_GAIN = 0.01  # of the log posterior; a round that brings less changes nothing


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
    *,
    hold_noise: bool = False,
) -> Calibrated[Result]:
    """Find trees and fit parameters in turn, and return the best round.

    Parameters
    ----------
    find : callable
        Infers with a process; also gets the number of the round.
    process : Process
        Where to begin.
    X : ndarray of shape (n, D)
    rounds : int
        Rounds after the first, at most.
    hold_noise : bool, default False
        Leave the noise of real columns as it is.

    Returns
    -------
    Calibrated
    """
    best = find(process, 0)
    log_joints = [best.log_joint]
    best_score = _score(best, X, hold_noise) if rounds > 0 else 0.0
    searched = not hold_noise and noise_of(process) > 0
    factor, upwards, failures = FIRST_FACTOR, True, 0
    for number in range(1, rounds + 1):
        trial = best.process
        if searched:
            trial = with_noise(trial, noise_of(trial) * (factor if upwards else 1 / factor))
        trial = fitted(trial, best.trees, best.weights, X, "held" if hold_noise else "tried")
        found = find(trial, number)
        log_joints.append(found.log_joint)
        score = _score(found, X, hold_noise)
        if score > best_score + LEAST_GAIN:
            best, best_score, failures = found, score, 0
            continue
        if not searched:
            break
        upwards, failures = not upwards, failures + 1
        if failures == 2:
            factor, failures = math.sqrt(factor), 0
            if factor < LAST_FACTOR:
                break
    return Calibrated(best, log_joints)


def _score(found: Found[Result], X: FloatArray, hold_noise: bool) -> float:
    return found.log_joint + log_parameter_prior(found.process, X, hold_noise)


def noise_of(process: Process) -> float:
    """Return the noise of the first part with real columns; 0 if there is none."""
    parts = [part for part, _ in process.parts] if isinstance(process, Mixed) else [process]
    return next((part.noise for part in parts if isinstance(part, Gaussian)), 0.0)


def with_noise(process: Process, noise: float) -> Process:
    """Return a process with another noise for all real columns; a stationary one keeps its total variance."""
    if isinstance(process, Mixed):
        return Mixed(*((with_noise(part, noise), columns) for part, columns in process.parts))
    if isinstance(process, Brownian):
        return Brownian(process.variance, noise)
    if isinstance(process, OrnsteinUhlenbeck):
        variance = process.variance * ((1 + process.noise) / (1 + noise))
        return OrnsteinUhlenbeck(process.rate, process.mean, variance, noise)
    return process
