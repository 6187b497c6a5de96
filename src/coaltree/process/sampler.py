"""How the parameters of a process are drawn from their posterior, in turn with the tree."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..tree.tree import Tree
from .base import Process
from .parameters import slowed

WIDTH = 1.0  # of the first interval
MOST_STEPS = 20  # out of it, to either side together


def slice_step(
    log_density: Callable[[float], float], x: float, allowed: tuple[float, float], rng: np.random.Generator
) -> float:
    """Return a draw that leaves a density as it is.

    Parameters
    ----------
    log_density : callable
    x : float
        Where the chain is.
    allowed : tuple of float
        The interval out of which the density is 0.
    rng : numpy.random.Generator

    Returns
    -------
    float
    """
    level = log_density(x) - rng.exponential()
    low = x - WIDTH * rng.random()
    high = low + WIDTH
    down = int(MOST_STEPS * rng.random())
    up = MOST_STEPS - 1 - down
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
    """Do the same for a positive number, whose logarithm is moved."""
    within = min(max(x, allowed[0]), allowed[1])
    logs = slice_step(
        lambda log: log_density(math.exp(log)) + log,
        math.log(within),
        (math.log(allowed[0]), math.log(allowed[1])),
        rng,
    )
    return math.exp(logs)


FloatArray = NDArray[np.float64]


class ParameterDraws(ABC):
    """How the parameters of one kind of process are drawn.

    Parameters
    ----------
    X : ndarray of shape (n, D)

    Attributes
    ----------
    table : ndarray of shape (n, D)
        What the messages of the tree are made of: X, or X with missing cells drawn together with the parameters.
    """

    def __init__(self, X: FloatArray) -> None:
        self.table = X

    def missing_cells(self) -> FloatArray:
        """Return the missing cells as they were drawn last, row by row; none where they are integrated out."""
        return np.zeros(0)

    def state(self) -> FloatArray:
        """Return what the draws go on from, beside the process."""
        return np.zeros(0)

    def go_on_from(self, state: FloatArray) -> None:  # noqa: B027  most draws have no state
        """Take up draws where they were left."""

    def redraw_cells(self, process: Process, tree: Tree, rng: np.random.Generator) -> None:  # noqa: B027  as above
        """Draw the missing cells alone, where they are not integrated out."""

    def first(self, process: Process) -> Process:
        """Return the process with as many numbers as will be drawn."""
        return process

    @abstractmethod
    def redrawn(self, process: Process, tree: Tree, rng: np.random.Generator) -> Process:
        """Return the process with other parameters; the posterior given the tree stays as it is."""

    @abstractmethod
    def log_prior(self, process: Process) -> float:
        """Return the log density of the parameters, up to a constant."""

    @abstractmethod
    def clock_powers(self, process: Process) -> float | None:
        """Return c's exponent in the Jacobian of slowing the process by c; None if it cannot be slowed."""

    def clock_gain(self, process: Process, log_factor: float) -> float:
        """Return what `slowed` returns as its second, for those who only weigh clocks."""
        return self.slowed(process, log_factor)[1]

    def slowed(self, process: Process, log_factor: float) -> tuple[Process, float]:
        """Return the process by another clock, and the log ratio of the densities of their parameters; see eq. (13.7)."""
        powers = self.clock_powers(process)
        if powers is None:
            return process, -math.inf
        try:
            slow = slowed(process, math.exp(log_factor))
        except InputError:  # beyond the units that a process can have
            return process, -math.inf
        return slow, self.log_prior(slow) - self.log_prior(process) + powers * log_factor
