"""Merges as they are found, a few at a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

STEP_SECONDS = 0.2  # how long a compiled loop runs before Python gets a turn


class Merges(NamedTuple):
    """Arrays that a tree is made of."""

    children: NDArray[np.intp]  # (n - 1, 2)
    heights: NDArray[np.float64]  # (2 n - 1,)


def new_merges(n: int) -> Merges:
    """Return room for the merges of n leaves."""
    return Merges(np.zeros((n - 1, 2), dtype=np.intp), np.zeros(2 * n - 1))


def in_steps(merge: Callable[[int, int], int | None], first: int, end: int, report: Callable[[int], None]) -> int:
    """Run a compiled loop over merges a few at a time, so that Ctrl-C and progress get their turn.

    Parameters
    ----------
    merge : callable
        Makes the merges from one number up to another, and returns the next one if it stops before.
    first, end : int
        The first merge to be made, and the one after the last.
    report : callable
        Gets the number of merges made so far.

    Returns
    -------
    int
        The next merge.
    """
    step = 16
    while first < end:
        last = min(first + step, end)
        start = time.perf_counter()
        found = merge(first, last)
        elapsed = time.perf_counter() - start
        step = max(1, min(2 * step, int(step * STEP_SECONDS / max(elapsed, 1e-6))))
        reached = last if found is None else found
        report(reached)
        if reached < last:
            return reached
        first = last
    return first
