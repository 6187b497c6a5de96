"""How many threads a user's ``n_jobs`` stands for."""

from __future__ import annotations

from joblib import effective_n_jobs

from ..errors import InputError

MOST_THREADS = 256


def thread_count(n_jobs: object) -> int:
    """Return the number of threads, as scikit-learn reads ``n_jobs``: None is 1, -1 all processors, -2 all but one."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__") or n_jobs == 0):
        raise InputError(
            f"n_jobs is {n_jobs!r}; it must be None, a whole number of threads, or -1 for as many as there are processors."
        )
    return min(int(effective_n_jobs(n_jobs)), MOST_THREADS)
