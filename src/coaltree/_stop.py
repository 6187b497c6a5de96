"""Stopping long work: loops look regularly whether theirs is to end, by Ctrl-C, another signal or the failure of another thread.

There is one mechanism for all threads. Compiled loops call `poll`, which every 50 ms calls `look` with the GIL held; Python calls
`look` between steps. In the main thread, Python then runs the handlers of signals, such as that of Ctrl-C, which raise. A thread
that helps another one has a flag, which the other one sets when it no longer waits for the result; `look` then raises `Stopped`.
"""

from __future__ import annotations

import threading

__all__ = ["STRIDE", "Stopped", "follow", "look", "poll"]

STRIDE = 64  # steps of less than a microsecond, such as merges, of which only every so-many-th polls


class Stopped(BaseException):
    """Ends the work of a thread whose result nobody waits for any more."""


_of_thread = threading.local()


def follow(flag: threading.Event) -> None:
    """Let the work of this thread end when a flag is set."""
    _of_thread.flag = flag


def look() -> None:
    """Raise if the work of this thread is to end."""
    flag = getattr(_of_thread, "flag", None)
    if flag is not None and flag.is_set():
        raise Stopped


def poll() -> None:
    """Look, if it is time for that; what plain Python calls in place of the function of ``_stop.pxd``."""
    look()
