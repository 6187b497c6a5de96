"""Repeats of an experiment, shared out over processes."""

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
Answer = TypeVar("Answer")


def repeated(
    work: Callable[[Task], Answer], tasks: Iterable[Task], n_tasks: int, setting: Setting, what: str
) -> list[Answer]:
    """Do the work on every task and say on standard error how far it is.

    A task holds its own seed, so that nothing depends on how many processes there are. An interrupt (Ctrl-C) ends it early: what
    is done by then is kept, and the setting knows of it.
    """
    begun = time.monotonic()
    answers: dict[int, Answer] = {}
    found = Parallel(n_jobs=min(setting.jobs, n_tasks), return_as="generator_unordered")(
        delayed(_quietly)(work, number, task) for number, task in enumerate(tasks)
    )
    try:
        for number, answer in found:
            answers[number] = answer
            seconds = time.monotonic() - begun
            print(f"\r{what}: {len(answers)} of {n_tasks}, {seconds:.0f} s ", end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        if not answers:
            raise
        setting.interrupted.set()
        print(f"\n{what} was interrupted: {len(answers)} of {n_tasks} are kept.", end="", file=sys.stderr)
    print(file=sys.stderr)
    return [answers[number] for number in sorted(answers)]


def _quietly(work: Callable[[Task], Answer], number: int, task: Task) -> tuple[int, Answer]:
    with warnings.catch_warnings():
        # Small samples collapse, and tables have equal rows: both are meant.
        warnings.simplefilter("ignore", InputWarning)
        return number, work(task)
