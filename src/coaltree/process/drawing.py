"""How the parameters of a process are drawn from their posterior, in turn with the tree."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..tree.tree import Tree
from .interface import Process
from .scales import slowed

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
