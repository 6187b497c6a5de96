"""Threads of this process that share work, and the interface of all executors.

Results do not depend on the executor, bit for bit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from .._validation import quote
from ..errors import InputError
from .kernels.neighbours import neighbours_in_cells, neighbours_with_holes

IntArray = NDArray[np.intp]
Division = tuple[IntArray, IntArray]  # an order of points, and the bounds of cells in it

MAX_THREADS = 256
N_CHUNKS = 64  # of the work of a step, for threads in turn


def thread_count(n_jobs: object) -> int:
    """Return the number of threads, as scikit-learn reads ``n_jobs``: None is 1, -1 all processors, -2 all but one."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__") or n_jobs == 0):
        raise InputError(
            f"n_jobs is {quote(n_jobs)}; it must be None, a whole number of threads, or -1 for as many as there are processors."
        )
    return min(int(effective_n_jobs(n_jobs)), MAX_THREADS)


def is_cluster_address(text: str) -> bool:
    """Return whether a text is the address of a Dask scheduler, or asks for workers on this machine.

    Examples
    --------
    >>> [is_cluster_address(text) for text in ("tcp://host:8786", "local:2", "local:0", "local:1000", "host")]
    [True, True, False, False, False]
    """
    return re.fullmatch(r"local:[1-9]\d{0,2}|[a-z]+://\S+", text) is not None


def in_threads(n_threads: int, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
    """Call a function with the arguments of each task, in threads of this process; yield the results in order.

    Small tables need thousands of such calls, most with one thread, and joblib looks only every 10 ms whether threads are done.
    """
    if n_threads == 1:
        for task in tasks:
            yield function(*task)
        return
    pool = ThreadPoolExecutor(n_threads)
    try:
        for future in [pool.submit(function, *task) for task in tasks]:
            yield future.result()
    finally:  # also after Ctrl-C
        pool.shutdown(cancel_futures=True)


class ThreadExecutor:
    """Threads of this process.

    Parameters
    ----------
    n_threads : int
    any_backend : bool, default False
        Whether ``joblib.parallel_config`` may choose another backend than threads for tasks.
    """

    def __init__(self, n_threads: int, any_backend: bool = False) -> None:
        self.n_threads = n_threads
        self._any_backend = any_backend

    def share(self, n: int, work: Callable[..., None], *arguments: Any) -> None:
        """Do the work on ranges of n items, in shared memory; the ranges are short, so that Ctrl-C is not delayed."""
        bounds = np.linspace(0, n, min(n, N_CHUNKS) + 1).astype(np.intp)
        for _ in in_threads(self.n_threads, work, [(*arguments, a, b) for a, b in pairwise(bounds.tolist())]):
            pass

    def scan_cells(
        self,
        points: NDArray[np.float32],
        divisions: Iterable[Division],
        distances: NDArray[np.float32],
        neighbours: IntArray,
    ) -> Iterator[None]:
        """Compare all pairs within the cells of each division; every point keeps the nearest ones.

        Parameters
        ----------
        points : ndarray of shape (n_columns, n)
            NaN where a coordinate is missing.
        divisions : iterable of Division
            They do not depend on earlier results, so that they may be made ahead.
        distances, neighbours : ndarray of shape (n, length)
            The neighbour lists of the points, nearest first.

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
        """Call a module-level function with the arguments of each task; yield the results in order.

        A task may get a copy of its arguments, so changes to them count only if they are returned.
        """
        n_threads = min(self.n_threads, max(len(tasks), 1))
        if self._any_backend:
            yield from Parallel(n_jobs=n_threads, prefer="threads")(delayed(function)(*task) for task in tasks)
        else:
            yield from in_threads(n_threads, function, tasks)
