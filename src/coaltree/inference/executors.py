"""Executors: where work runs, in threads of this process or on the workers of a Dask cluster.

Results do not depend on the executor, bit for bit.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import operator
import pickle
import re
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from concurrent.futures import Future as ThreadFuture
from itertools import pairwise
from threading import Event
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs, parallel
from numpy.typing import NDArray

from .._stop import follow, look
from .._validation import quote, require_package
from ..errors import ExecutorError, InputError
from .kernels.neighbors import insert_neighbors, neighbors_in_cells, neighbors_with_holes

if TYPE_CHECKING:
    from distributed import Client, Future

IntArray = NDArray[np.intp]
SingleArray = NDArray[np.float32]

Division = tuple[IntArray, IntArray]  # an order of points, and the bounds of cells in it

STEP_SECONDS = 0.2  # time that a compiled loop runs before it returns to Python
WAIT_SECONDS = 0.1  # between two looks of a thread that waits for others
MAX_THREADS = 256
N_CHUNKS = 64  # parts into which the work of a step is divided for threads

BLOCK_POINTS = 20_000  # most points in a task; their positions must fit into 16 bits
BLOCK_NUMBERS = 1_000_000  # most coordinates in a task
MIN_BLOCKS = 3  # with fewer blocks, sending them takes longer than comparing points here
PENDING_PER_THREAD = 4  # pending tasks for each thread of the workers
RETRIES = 3  # attempts to repeat a task whose worker failed
CONNECT_SECONDS = 10
WORKER_SECONDS = 60  # time to wait for the first worker of a cluster

ALLOWED = (
    "it must be a distributed.Client, the address of a scheduler such as 'tcp://host:8786', 'local:2' for two worker processes "
    "on this machine, or None"
)


def thread_count(n_jobs: object) -> int:
    """Return the number of threads, as scikit-learn reads ``n_jobs``: None is 1, -1 all processors, -2 all but one."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not _is_whole(n_jobs) or n_jobs == 0):
        raise InputError(
            f"n_jobs is {quote(n_jobs)}; it must be None, a whole number of threads, or -1 for as many as there are processors."
        )
    return min(int(effective_n_jobs(n_jobs)), MAX_THREADS)


def _is_whole(value: object) -> bool:
    """Return whether a value is a whole number; arrays of several only seem to be."""
    try:
        operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def is_cluster_address(text: str) -> bool:
    """Return whether a text is the address of a Dask scheduler, or asks for workers on this machine.

    Examples
    --------
    >>> [is_cluster_address(text) for text in ("tcp://host:8786", "local:2", "local:0", "local:1000", "host")]
    [True, True, False, False, False]
    """
    return re.fullmatch(r"local:[1-9]\d{0,2}|[a-z]+://\S+", text) is not None


class Workers:
    """Threads of this process that end with the block, also if it is left by an exception such as that of Ctrl-C.

    Then their tasks are dropped, and the running ones end when they next look, see `coaltree._stop`.

    Parameters
    ----------
    n_threads : int
        With 1, tasks run in the thread that asks for their results.
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self._flag = Event()
        self._pool = (
            ThreadPoolExecutor(n_threads, initializer=follow, initargs=(self._flag,)) if n_threads > 1 else None
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._flag.set()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def run(self, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Call a function with the arguments of each task; yield the results in order."""
        if self._pool is None:
            for task in tasks:
                look()
                yield function(*task)
            return
        futures = deque(self._pool.submit(function, *task) for task in tasks)
        while futures:  # results that the caller has dropped do not stay in memory
            yield _wait_for(futures.popleft())


def _wait_for(future: ThreadFuture[Any]) -> Any:
    """Return the result of a task; wait in short steps, because signals do not end long ones on Windows."""
    while not future.done():
        look()
        wait([future], WAIT_SECONDS)
    return future.result()


def in_threads(n_threads: int, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
    """Call a function with the arguments of each task, in threads of this process; yield the results in order.

    This does not use joblib, which checks only every 10 ms whether threads are done: small tables need thousands of such calls.
    Callers that work between the results close the iterator, which ends the threads.
    """
    with Workers(n_threads) as workers:
        yield from workers.run(function, tasks)


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
        stop = merge(first, last)
        elapsed = time.perf_counter() - start
        step = max(1, min(2 * step, int(step * STEP_SECONDS / max(elapsed, 1e-6))))
        reached = last if stop is None else stop
        report(reached)
        if reached < last:
            return reached
        first = last
    return first


def shares_memory(n_threads: int) -> bool:
    """Return whether tasks run in this process: in so many threads, unless ``joblib.parallel_config`` has chosen processes."""
    backend, _ = parallel.get_active_backend(prefer="threads")
    return n_threads == 1 or getattr(backend, "supports_sharedmem", False)


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
        """Do the work on n items in shared memory, divided into ranges that are short enough not to delay Ctrl-C."""
        bounds = np.linspace(0, n, min(n, N_CHUNKS) + 1).astype(np.intp)
        for _ in in_threads(self.n_threads, work, [(*arguments, a, b) for a, b in pairwise(bounds.tolist())]):
            pass

    def scan_cells(
        self,
        points: NDArray[np.float32],
        divisions: Iterable[Division],
        distances: NDArray[np.float32],
        neighbors: IntArray,
    ) -> Iterator[None]:
        """Compare all pairs within the cells of each division; every point keeps the nearest ones.

        Parameters
        ----------
        points : ndarray of shape (n_columns, n)
            NaN where a coordinate is missing.
        divisions : iterable of Division
            They do not depend on earlier results and may be computed in advance.
        distances, neighbors : ndarray of shape (n, length)
            The neighbour lists of the points, nearest first.

        Yields
        ------
        None
            After each division.
        """
        within = neighbors_with_holes if np.isnan(points).any() else neighbors_in_cells
        for order, bounds in divisions:
            self.share(len(bounds) - 1, within, points, order, bounds, distances, neighbors)
            yield

    def run(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """Call a module-level function with the arguments of each task; yield the results in order.

        A task may get a copy of its arguments, so changes to them count only if they are returned.
        """
        n_threads = min(self.n_threads, max(len(tasks), 1))
        if self._any_backend and not shares_memory(n_threads):
            yield from Parallel(n_jobs=n_threads, prefer="threads")(delayed(function)(*task) for task in tasks)
        else:
            yield from in_threads(n_threads, function, tasks)


def check_client(client: object) -> None:
    """Raise unless the parameter ``client`` is a running client or names one to open."""
    require_package("distributed", "A Dask cluster needs", "dask")
    from distributed import Client

    if isinstance(client, str) and is_cluster_address(client):
        return
    if not isinstance(client, Client):
        raise InputError(f"client is {quote(client)}; {ALLOWED}.")
    if client.asynchronous or client.status != "running":
        state = "asynchronous" if client.asynchronous else client.status
        raise InputError(f"client is a distributed.Client that is {state}; pass one that is running, or an address.")


@contextlib.contextmanager
def open_client(client: Any) -> Iterator[Any]:
    """Yield the Dask client that the parameter ``client`` stands for, None for None; close what was opened here."""
    if client is None:
        yield None
        return
    check_client(client)
    from distributed import Client, LocalCluster

    if isinstance(client, Client):
        yield client
        return
    with contextlib.ExitStack() as stack:
        if client.startswith("local:"):
            n_workers = int(client.removeprefix("local:"))
            place = LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                dashboard_address=":0",  # any free port: the usual one may be taken
                silence_logs=logging.CRITICAL,  # workers that miss their scheduler while all is closed
            )
            stack.enter_context(place)
        else:
            place = client
        try:
            opened = Client(place, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise ExecutorError(
                f"No Dask scheduler answers at {client} ({_reason(error)}); check the address, and that the cluster is running."
            ) from None
        yield stack.enter_context(opened)


def make_executor(client: Any, n_threads: int, any_backend: bool = False) -> ThreadExecutor:
    """Return an executor: the workers of an open Dask client, or threads if there is none."""
    if client is None:
        return ThreadExecutor(n_threads, any_backend)
    return DaskExecutor(client, n_threads)


class DaskExecutor(ThreadExecutor):
    """The workers of a Dask client. Threads of this process do the work that is not worth sending.

    Tasks are small and carry all their data as bytes. A task that runs again because its worker died therefore returns the same
    result, and no state is lost with a worker. Only a few tasks per worker are pending at any time, which bounds memory.

    Parameters
    ----------
    client : distributed.Client
    n_threads : int
    """

    def __init__(self, client: Client, n_threads: int) -> None:
        super().__init__(n_threads)
        self._client = client
        self._address = client.scheduler.address if client.scheduler is not None else "an unknown address"

    def scan_cells(
        self, points: SingleArray, divisions: Iterable[Division], distances: SingleArray, neighbors: IntArray
    ) -> Iterator[None]:
        """Compare all pairs within cells: workers get blocks of cells, and every point keeps the nearest points they return.

        The result is the same as without workers: a worker returns as many of the nearest points of a cell as a list can hold,
        in the order in which the cell has them.
        """
        n_columns, n = points.shape
        most = min(BLOCK_POINTS, max(BLOCK_NUMBERS // n_columns, 1))
        if n < MIN_BLOCKS * most:
            yield from super().scan_cells(points, divisions, distances, neighbors)
            return
        holes, length = bool(np.isnan(points).any()), distances.shape[1]
        sent: deque[tuple[IntArray, bool]] = deque()

        def blocks() -> Iterator[tuple[Any, ...]]:
            for order, bounds in divisions:
                first = 0
                while first < len(bounds) - 1:
                    last = max(int(np.searchsorted(bounds, bounds[first] + most, side="right")) - 1, first + 1)
                    members = order[bounds[first] : bounds[last]]
                    sent.append((members, last == len(bounds) - 1))
                    yield points[:, members], bounds[first : last + 1] - bounds[first], holes, length
                    first = last

        for squares, places in self._in_order(find_near_in_cells, blocks()):
            members, ends = sent.popleft()
            insert_neighbors(members, squares, places, distances, neighbors)
            if ends:
                yield

    def run(self, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Call a module-level function on workers, with the arguments of each task; yield the results in order."""
        yield from self._in_order(function, tasks)

    def run_on(self, model: Any, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Do the same for a function whose first argument is shared by all tasks and too large to send with each task."""
        with self._report_loss():
            # The result of a task, which the scheduler computes again if it is lost.
            shared = self._submit(_unpack, pickle.dumps(model), name="model")
        yield from self._in_order(function, tasks, shared)

    def _in_order(
        self, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], *shared: Future[Any]
    ) -> Iterator[Any]:
        waiting = iter(tasks)
        pending: deque[Future[Any]] = deque()
        try:
            while True:
                with self._report_loss():
                    window = PENDING_PER_THREAD * max(sum(self._client.nthreads().values()), 1)
                while len(pending) < window and (task := next(waiting, None)) is not None:
                    packed = pickle.dumps((function, task))
                    with self._report_loss():
                        pending.append(self._submit(_run_task, packed, *shared, name=function.__name__))
                if not pending:
                    return
                with self._report_loss():
                    results = self._gather_front(pending)
                for packed in results:
                    outcome, error = pickle.loads(packed)
                    if error is not None:
                        raise error
                    yield outcome
        finally:
            with contextlib.suppress(Exception):  # the cluster may be gone
                self._client.cancel(list(pending))

    def _submit(self, function: Callable[..., Any], *arguments: Any, name: str) -> Future[Any]:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)  # a model may be large
            return self._client.submit(
                function, *arguments, key=f"{name.strip('_')}-{uuid4().hex}", pure=False, retries=RETRIES
            )

    def _gather_front(self, pending: deque[Future[Any]]) -> list[bytes]:
        """Remove the finished tasks at the front, at least one, and return their results."""
        while True:
            with contextlib.suppress(TimeoutError):
                pending[0].exception(timeout=WORKER_SECONDS)  # waits, and moves no data
            if pending[0].done():
                break
            if not self._client.nthreads():
                raise TimeoutError(f"it has had no worker for {WORKER_SECONDS} seconds")
        ready = 1
        while ready < len(pending) and pending[ready].done():
            ready += 1
        results: list[bytes] = self._client.gather([pending[k] for k in range(ready)])
        for _ in range(ready):
            pending.popleft()
        return results

    @contextlib.contextmanager
    def _report_loss(self) -> Iterator[None]:
        """Convert the errors of a lost cluster to an ExecutorError of one sentence."""
        from distributed import KilledWorker

        try:
            yield
        except KilledWorker as error:
            raise ExecutorError(
                f"The cluster at {self._address} gave up a task whose workers died repeatedly ({_reason(error)}): "
                "give its workers more memory"
            ) from None
        except ModuleNotFoundError as error:
            raise ExecutorError(
                f"A worker of the cluster at {self._address} cannot run coaltree ({error}): install the same version on all"
            ) from None
        except (CancelledError, OSError, TimeoutError, asyncio.CancelledError) as error:
            raise self._lost_cluster_error(_reason(error)) from None
        except Exception as error:  # a client that was closed in the meantime raises errors of any kind
            if self._client.status == "running":
                raise
            raise self._lost_cluster_error(f"its client is {self._client.status}") from error

    def _lost_cluster_error(self, reason: str) -> ExecutorError:
        return ExecutorError(f"The cluster at {self._address} was lost ({reason})")


def find_near_in_cells(
    points: SingleArray, bounds: IntArray, holes: bool, length: int
) -> tuple[SingleArray, NDArray[np.int16]]:
    """Return, for each point, the squared distances and positions of the nearest points in its cell; -1 for none."""
    n = points.shape[1]
    distances = np.full((n, length), np.inf, dtype=np.float32)
    neighbors = np.full((n, length), -1, dtype=np.intp)
    within: Callable[..., None] = neighbors_with_holes if holes else neighbors_in_cells
    within(np.ascontiguousarray(points), np.arange(n, dtype=np.intp), bounds, distances, neighbors, 0, len(bounds) - 1)
    return distances, neighbors.astype(np.int16)


def _run_task(packed: bytes, *shared: Any) -> bytes:
    """Run a task. Arguments and results are bytes, so that tasks cannot change each other's data."""
    function, arguments = pickle.loads(packed)
    try:
        return pickle.dumps((function(*shared, *arguments), None))
    except (ValueError, ArithmeticError) as error:  # caused by the table: repeating the task would not help
        return pickle.dumps((None, error))


def _unpack(packed: bytes) -> Any:
    return pickle.loads(packed)


def _reason(error: BaseException) -> str:
    """Return the message of an error on one line without a full stop, or its type if it has no message."""
    return next(iter(str(error).strip().splitlines()), "").rstrip(".:") or type(error).__name__
