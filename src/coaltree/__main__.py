"""The command ``coaltree``, also as ``python -m coaltree``."""

from __future__ import annotations

import signal
import sys
from importlib.util import find_spec

_NEEDED = ("typer", "rich", "polars", "matplotlib")


def main() -> None:
    """Run the command line."""
    absent = [name for name in _NEEDED if find_spec(name) is None]
    if absent:
        print(
            f'coaltree: the command line needs {" and ".join(absent)}, not installed here: pip install "coaltree[cli]"',
            file=sys.stderr,
        )
        sys.exit(2)
    # Batch systems send it: nothing is left half done then either.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        from .cli import run

        run()
    except KeyboardInterrupt:  # before a command has begun; commands say so themselves
        print("coaltree: interrupted.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
