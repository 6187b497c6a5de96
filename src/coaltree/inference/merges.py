"""The merges of a search, and compiled loops over them in chunks, between which Python handles Ctrl-C and reports progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

STEP_SECONDS = 0.2  # time that a compiled loop runs before it returns to Python


class Merges(NamedTuple):
    """The arrays that define a tree."""

    children: NDArray[np.intp]  # (n - 1, 2)
    heights: NDArray[np.float64]  # (2 n - 1,)


def allocate_merges(n: int) -> Merges:
    """Return empty arrays for the merges of n leaves."""
    return Merges(np.zeros((n - 1, 2), dtype=np.intp), np.zeros(2 * n - 1))


def run_in_chunks(merge: Callable[[int, int], int | None], first: int, end: int, report: Callable[[int], None]) -> int:
    """Run a compiled loop over merges in chunks, so that Ctrl-C and progress reports are not delayed.

    Parameters
    ----------
    merge : callable
        Makes the merges from one number up to another; returns the next one if it stops earlier.
    first, end : int
        The first merge, and the one after the last.
    report : callable
        Called with the number of merges made so far.

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
