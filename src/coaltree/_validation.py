"""Checks of arguments that several packages share."""

from __future__ import annotations

import numpy as np

from .errors import InputError


def check_count(value: object, name: str, minimum: int = 1) -> int:
    """Return a whole number of at least `minimum` as an int.

    Parameters
    ----------
    value : object
        The argument.
    name : str
        Its name, for the message.
    minimum : int, default 1
        The smallest allowed value.

    Raises
    ------
    InputError
        If it is not a whole number, or too small.

    Examples
    --------
    >>> check_count(3, "n_draws")
    3
    >>> check_count(2.5, "n_draws")
    Traceback (most recent call last):
        ...
    coaltree.errors.InputError: n_draws is 2.5; it must be a whole number of at least 1.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum:
        raise InputError(f"{name} is {value!r}; it must be a whole number of at least {minimum}.")
    return int(value)
