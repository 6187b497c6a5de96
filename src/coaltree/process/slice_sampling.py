"""Slice sampling of one number (Neal, 2003): an interval is stepped out, then shrunk."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

WIDTH = 1.0  # of the first interval
MAX_STEPS = 20  # out of it, to both sides together


def slice_step(
    log_density: Callable[[float], float], x: float, allowed: tuple[float, float], rng: np.random.Generator
) -> float:
    """Make one step of a Markov chain that leaves a density invariant.

    Parameters
    ----------
    log_density : callable
    x : float
        The state of the chain.
    allowed : tuple of float
        The interval outside which the density is 0.
    rng : numpy.random.Generator

    Returns
    -------
    float
    """
    level = log_density(x) - rng.exponential()
    low = x - WIDTH * rng.random()
    high = low + WIDTH
    down = int(MAX_STEPS * rng.random())
    up = MAX_STEPS - 1 - down
    while down > 0 and low > allowed[0] and log_density(low) > level:
        low -= WIDTH
        down -= 1
    while up > 0 and high < allowed[1] and log_density(high) > level:
        high += WIDTH
        up -= 1
    low, high = max(low, allowed[0]), min(high, allowed[1])
    while high - low > 1e-12 * (1 + abs(x)):
        trial = low + (high - low) * rng.random()
        if log_density(trial) > level:
            return trial
        low, high = (trial, high) if trial < x else (low, trial)
    return x


def positive_slice_step(
    log_density: Callable[[float], float], x: float, allowed: tuple[float, float], rng: np.random.Generator
) -> float:
    """Make a step for a positive number, on the scale of its logarithm; see `slice_step`."""
    within = min(max(x, allowed[0]), allowed[1])
    logs = slice_step(
        lambda log: log_density(math.exp(log)) + log,
        math.log(within),
        (math.log(allowed[0]), math.log(allowed[1])),
        rng,
    )
    return math.exp(logs)
