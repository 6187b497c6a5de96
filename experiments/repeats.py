"""Run the repeats of an experiment in several processes."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable
from typing import TypeVar

from joblib import Parallel, delayed

from coaltree.errors import InputWarning

from .outcome import Setting

Task = TypeVar("Task")
Result = TypeVar("Result")


def run_repeats(
    work: Callable[[Task], Result], tasks: Iterable[Task], n_tasks: int, setting: Setting, what: str
) -> list[Result]:
    """Call a function for every task and show the progress on standard error.

    A task contains its seed, so results do not depend on the number of processes. After an interrupt (Ctrl-C) the finished
    results are returned, and ``setting.interrupted`` is set.
    """
    start = time.monotonic()
    results: dict[int, Result] = {}
    finished_tasks = Parallel(n_jobs=min(setting.jobs, n_tasks), return_as="generator_unordered")(
        delayed(_run_task)(work, number, task) for number, task in enumerate(tasks)
    )
    try:
        for number, result in finished_tasks:
            results[number] = result
            seconds = time.monotonic() - start
            print(f"\r{what}: {len(results)} of {n_tasks}, {seconds:.0f} s ", end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        if not results:
            raise
        setting.interrupted.set()
        print(f"\n{what} was interrupted: {len(results)} of {n_tasks} are kept.", end="", file=sys.stderr)
    print(file=sys.stderr)
    return [results[number] for number in sorted(results)]


def _run_task(work: Callable[[Task], Result], number: int, task: Task) -> tuple[int, Result]:
    with warnings.catch_warnings():
        # Small samples collapse and tables have equal rows; both are expected here.
        warnings.simplefilter("ignore", InputWarning)
        return number, work(task)
