"""The command ``coaltree``, also as ``python -m coaltree``."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from importlib.util import find_spec
from types import FrameType
from typing import NoReturn

_NEEDED = ("typer", "rich", "polars", "matplotlib")


# Of addresses; with less, libraries end the process without a word. Set by `python tools/campaign.py "memory limits"`.
MIN_ADDRESSES = 1000 * 2**20
_M_ARENA_MAX = -8  # the option of mallopt in glibc


class Interrupt:
    """Handles a signal by a `KeyboardInterrupt`, and remembers it.

    Libraries may turn the exception into an error of their own, such as an import that failed; commands then still end as
    interrupted ones.
    """

    received = False

    def __call__(self, number: int, frame: FrameType | None) -> NoReturn:
        """Handle a signal."""
        self.received = True
        raise KeyboardInterrupt


def fit_into_limit() -> None:
    """Use few addresses where they are limited (``ulimit -v``): libraries reserve up to 100 MB for each of their threads."""
    try:
        import resource
    except ImportError:  # on Windows
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    if limit < MIN_ADDRESSES:
        print(
            f"coaltree: the limit of memory is {limit >> 20} MB (ulimit -v), too little for the libraries; allow at least "
            f"{MIN_ADDRESSES >> 20} MB.",
            file=sys.stderr,
        )
        sys.exit(2)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def main() -> None:
    """Run the command line."""
    fit_into_limit()
    absent = [name for name in _NEEDED if find_spec(name) is None]
    if absent:
        print(
            f'coaltree: the command line needs {" and ".join(absent)}, which is not installed: pip install "coaltree[cli]"',
            file=sys.stderr,
        )
        sys.exit(2)
    interrupt = Interrupt()
    # Batch systems send it. Files are then written completely or not at all, too.
    signal.signal(signal.SIGTERM, interrupt)
    if signal.getsignal(signal.SIGINT) not in (signal.SIG_IGN, None):  # such as in the background of a shell
        signal.signal(signal.SIGINT, interrupt)
    try:
        from .cli import run

        run()
    except KeyboardInterrupt:  # before a command has begun; commands say so themselves
        print("coaltree: interrupted.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
