"""Where work runs: in threads of this process, or on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .thread_executor import ThreadExecutor


@contextmanager
def open_client(client: Any) -> Iterator[Any]:
    """Yield the Dask client that the parameter ``client`` stands for, None for None; close what was opened here."""
    if client is None:
        yield None
        return
    from .dask_executor import connect  # imports Dask

    with connect(client) as opened:
        yield opened


def make_executor(client: Any, n_threads: int, any_backend: bool = False) -> ThreadExecutor:
    """Return an executor: the workers of an open Dask client, or threads if there is none."""
    if client is None:
        return ThreadExecutor(n_threads, any_backend)
    from .dask_executor import DaskExecutor

    return DaskExecutor(client, n_threads)
