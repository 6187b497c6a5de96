"""The workers of a Dask cluster as an executor.

Tasks are small and carry all their data as bytes. A task that is run again because its worker died therefore returns the same
result, and no state is lost with a worker. Only a few tasks per worker are pending at any time, which bounds memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from .._optional import require_package
from .._validation import quote
from ..errors import ExecutorError, InputError
from .kernels.neighbours import keep_found, neighbours_in_cells, neighbours_with_holes
from .thread_executor import Division, ThreadExecutor, is_cluster_address

require_package("distributed", "A Dask cluster needs", "dask")
from distributed import Client, Future, KilledWorker, LocalCluster  # noqa: E402

IntArray = NDArray[np.intp]
SingleArray = NDArray[np.float32]

BLOCK_POINTS = 20_000  # in a task, with their places counted in 16 bits;
BLOCK_NUMBERS = 1_000_000  # fewer if they have many coordinates
MIN_BLOCKS = 3  # for fewer, sending takes longer than comparing
PENDING_PER_THREAD = 4  # tasks for each thread of the workers
RETRIES = 3  # of a task that fails for a reason of its worker's
CONNECT_SECONDS = 10
WORKER_SECONDS = 60  # that a cluster may be without any worker

ALLOWED = (
    "it must be a distributed.Client, the address of a scheduler such as 'tcp://host:8786', 'local:2' for two worker processes "
    "on this machine, or None"
)


def check_client(client: object) -> None:
    """Raise unless the parameter ``client`` is a running client or names one to open."""
    if isinstance(client, str) and is_cluster_address(client):
        return
    if not isinstance(client, Client):
        raise InputError(f"client is {quote(client)}; {ALLOWED}.")
    if client.asynchronous or client.status != "running":
        state = "asynchronous" if client.asynchronous else client.status
        raise InputError(f"client is a distributed.Client that is {state}; pass one that is running, or an address.")


@contextlib.contextmanager
def connect(client: Any) -> Iterator[Client]:
    """Yield the client that the parameter ``client`` stands for; close what was opened here."""
    check_client(client)
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


class DaskExecutor(ThreadExecutor):
    """The workers of a client, and threads of this process for what is not worth sending.

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
        self, points: SingleArray, divisions: Iterable[Division], distances: SingleArray, neighbours: IntArray
    ) -> Iterator[None]:
        """Look at all pairs within cells: blocks of cells go to workers, each point keeps the best of what comes back.

        The nearest of a cell, in the order in which the cell has them, are all that any list could take from it: what comes back
        and is not kept comes after as many that are nearer or were there before.
        """
        n_columns, n = points.shape
        most = min(BLOCK_POINTS, max(BLOCK_NUMBERS // n_columns, 1))
        if n < MIN_BLOCKS * most:
            yield from super().scan_cells(points, divisions, distances, neighbours)
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

        for found, places in self._in_order(find_near_in_cells, blocks()):
            members, ends = sent.popleft()
            keep_found(members, found, places, distances, neighbours)
            if ends:
                yield

    def run(self, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Have workers call a function of some module; yield what it returns, in order."""
        yield from self._in_order(function, tasks)

    def run_on(self, model: Any, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Do the same for a function whose first argument is shared by all tasks and too large to send with each."""
        with self._report_loss():
            # the result of a task: should it get lost, the scheduler has it made again
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
                    found = self._gather_front(pending)
                for packed in found:
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
        found: list[bytes] = self._client.gather([pending[k] for k in range(ready)])
        for _ in range(ready):
            pending.popleft()
        return found

    @contextlib.contextmanager
    def _report_loss(self) -> Iterator[None]:
        """Turn errors of a lost cluster into one sentence."""
        try:
            yield
        except KilledWorker as error:
            raise ExecutorError(
                f"The cluster at {self._address} gave up a task whose workers died again and again ({_reason(error)}): "
                "give its workers more memory"
            ) from None
        except ModuleNotFoundError as error:
            raise ExecutorError(
                f"A worker of the cluster at {self._address} cannot run coaltree ({error}): install the same version on all"
            ) from None
        except (CancelledError, OSError, TimeoutError, asyncio.CancelledError) as error:
            raise self._lost(_reason(error)) from None
        except Exception as error:  # of any kind, from a client that has been closed meanwhile
            if self._client.status == "running":
                raise
            raise self._lost(f"its client is {self._client.status}") from error

    def _lost(self, reason: str) -> ExecutorError:
        return ExecutorError(f"The cluster at {self._address} was lost ({reason})")


def find_near_in_cells(
    points: SingleArray, bounds: IntArray, holes: bool, length: int
) -> tuple[SingleArray, NDArray[np.int16]]:
    """Return for each point the squared distances of the nearest in its cell, and their places among the points; -1 for none."""
    n = points.shape[1]
    distances = np.full((n, length), np.inf, dtype=np.float32)
    neighbours = np.full((n, length), -1, dtype=np.intp)
    within: Callable[..., None] = neighbours_with_holes if holes else neighbours_in_cells
    within(np.ascontiguousarray(points), np.arange(n, dtype=np.intp), bounds, distances, neighbours, 0, len(bounds) - 1)
    return distances, neighbours.astype(np.int16)


def _run_task(packed: bytes, *shared: Any) -> bytes:
    """Do a task: bytes in, bytes out, so that nothing that a task changes is seen by another."""
    function, arguments = pickle.loads(packed)
    try:
        return pickle.dumps((function(*shared, *arguments), None))
    except (ValueError, ArithmeticError) as error:  # of the table or the numbers: trying again would not help
        return pickle.dumps((None, error))


def _unpack(packed: bytes) -> Any:
    return pickle.loads(packed)


def _reason(error: BaseException) -> str:
    """Return what an error says, in one line without a full stop, and its kind if it says nothing."""
    return next(iter(str(error).strip().splitlines()), "").rstrip(".:") or type(error).__name__
