"""Progress of long work for people who call the library: one line that is written over, with the time that remains."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, TypeAlias

Progress: TypeAlias = Callable[[float, str], None]
"""Called with the share of the work done, and a few words about it."""

QUIET_SECONDS = 2.0  # of work that needs no progress


def print_progress(name: str) -> Progress:
    """Return a function that shows progress: on standard error, or in the output of a notebook's cell."""
    started, write = time.monotonic(), _notebook_line() or _write_over

    def show(share: float, words: str) -> None:
        seconds = time.monotonic() - started
        if share >= 1:
            write(f"[{name}] 100 % after {_duration(seconds)}", True)
        elif seconds >= QUIET_SECONDS:
            left = f", about {_duration(seconds * (1 - share) / share)} left" if share > 0 else ""
            write(f"[{name}] {100 * share:3.0f} % {words}{left}", False)

    return show


def _write_over(line: str, last: bool) -> None:
    print(
        f"\r{line}\x1b[K" if sys.stderr.isatty() else f"\r{line}", end="\n" if last else "", file=sys.stderr, flush=True
    )


def _notebook_line() -> Callable[[str, bool], None] | None:
    """Return a function that changes one line of a notebook's output; None outside of notebooks."""
    ipython = sys.modules.get("IPython")  # which has been imported where a notebook runs
    if ipython is None or getattr(ipython.get_ipython(), "kernel", None) is None:
        return None
    handles: list[Any] = []

    def write(line: str, last: bool) -> None:
        content = {"text/plain": line}
        if handles:
            handles[0].update(content, raw=True)
        else:
            handles.append(ipython.display.display(content, raw=True, display_id=True))

    return write


def _duration(seconds: float) -> str:
    for size, unit in ((48 * 3600.0, "days"), (90 * 60.0, "h"), (90.0, "min")):
        if seconds >= size:
            return f"{seconds / {'days': 86400, 'h': 3600, 'min': 60}[unit]:.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
