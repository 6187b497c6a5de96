"""Tables with too few rows to say anything of."""

from __future__ import annotations

FEWEST_ROWS = 3  # that anything can be said of


def too_little(n_rows: int) -> str:
    """Say that there are too few rows to cluster.

    Examples
    --------
    >>> too_little(1)
    'one row is too little to cluster: there is nothing to compare it with'
    """
    if n_rows == 1:
        return "one row is too little to cluster: there is nothing to compare it with"
    return "two rows are too little to cluster: they meet at one merge, and there is nothing to compare it with"
