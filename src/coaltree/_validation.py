"""Whole numbers that users pass."""

from __future__ import annotations

import numpy as np

from .errors import InputError


def checked_count(value: object, name: str, least: int = 1) -> int:
    """Return a whole number as an int, and refuse what is none or too small.

    Parameters
    ----------
    value : object
        What was passed.
    name : str
        Name of the argument.
    least : int, default 1
        The smallest that is allowed.

    Raises
    ------
    InputError

    Examples
    --------
    >>> checked_count(3, "n_draws")
    3
    >>> checked_count(2.5, "n_draws")
    Traceback (most recent call last):
        ...
    coaltree.errors.InputError: n_draws is 2.5; it must be a whole number of at least 1.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name} is {value!r}; it must be a whole number of at least {least}.")
    return int(value)
