"""Who does the work that can be shared: threads of this process, or the workers of a Dask cluster.

What is found does not depend on it, bit for bit.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from ..errors import InputError
from .kernels.neighbours import neighbours_in_cells, neighbours_with_holes

MOST_THREADS = 256


def thread_count(n_jobs: object) -> int:
    """Return the number of threads, as scikit-learn reads ``n_jobs``: None is 1, -1 all processors, -2 all but one."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__") or n_jobs == 0):
        raise InputError(
            f"n_jobs is {n_jobs!r}; it must be None, a whole number of threads, or -1 for as many as there are processors."
        )
    return min(int(effective_n_jobs(n_jobs)), MOST_THREADS)


def names_a_cluster(text: str) -> bool:
    """Say whether a text is the address of a scheduler, or asks for workers on this machine.

    Examples
    --------
    >>> [names_a_cluster(text) for text in ("tcp://host:8786", "local:2", "local:0", "local:1000", "host")]
    [True, True, False, False, False]
    """
    return re.fullmatch(r"local:[1-9]\d{0,2}|[a-z]+://\S+", text) is not None


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


IntArray = NDArray[np.intp]
Division = tuple[IntArray, IntArray]  # an order of points, and where in it cells begin and end

SHARES = 64  # of the work of a step, done by threads in turn


class Threads:
    """Threads of this process.

    Parameters
    ----------
    n_threads : int
    anywhere : bool, default False
        Whether joblib may let others than threads run tasks, as ``joblib.parallel_config`` says.
    """

    def __init__(self, n_threads: int, anywhere: bool = False) -> None:
        self.n_threads = n_threads
        self._hint = {"prefer": "threads"} if anywhere else {"require": "sharedmem"}

    def share(self, n: int, work: Callable[..., None], *arguments: Any) -> None:
        """Do the work on ranges of n things, in memory that is shared; short ones, so that Ctrl-C gets its turn."""
        bounds = np.linspace(0, n, min(n, SHARES) + 1).astype(np.intp)
        Parallel(n_jobs=self.n_threads, require="sharedmem")(
            delayed(work)(*arguments, a, b) for a, b in pairwise(bounds.tolist())
        )

    def look_within(
        self,
        points: NDArray[np.float32],
        divisions: Iterable[Division],
        distances: NDArray[np.float32],
        neighbours: IntArray,
    ) -> Iterator[None]:
        """Look at all pairs within the cells of each division; every point keeps the nearest that it has been shown.

        Parameters
        ----------
        points : ndarray of shape (n_columns, n)
            NaN where a coordinate is missing.
        divisions : iterable of Division
            Those that do not depend on what is found in the ones before: they may be made ahead.
        distances, neighbours : ndarray of shape (n, length)
            The lists of the points, nearest first.

        Yields
        ------
        None
            After each division.
        """
        within = neighbours_with_holes if np.isnan(points).any() else neighbours_in_cells
        for order, bounds in divisions:
            self.share(len(bounds) - 1, within, points, order, bounds, distances, neighbours)
            yield

    def run(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """Call a function of some module with the arguments of each task; yield what it returns, in order.

        A task gets its own arguments or a copy of them: what it has changed there counts only if it is returned.
        """
        yield from Parallel(n_jobs=min(self.n_threads, max(len(tasks), 1)), **self._hint)(
            delayed(function)(*task) for task in tasks
        )


@contextmanager
def opened_client(client: Any) -> Iterator[Any]:
    """Give the Dask client that a user's ``client`` stands for, None for None; what is opened here is closed at the end."""
    if client is None:
        yield None
        return
    from .dask_executor import connected  # and Dask with it

    with connected(client) as opened:
        yield opened


def carrier_of(client: Any, n_threads: int, anywhere: bool = False) -> Threads:
    """Return the workers of an open Dask client, or threads if there is none."""
    if client is None:
        return Threads(n_threads, anywhere)
    from .dask_executor import Cluster

    return Cluster(client, n_threads)
