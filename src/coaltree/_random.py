"""Conversion of ``random_state`` to a numpy generator."""

from __future__ import annotations

import numpy as np

from ._validation import quote
from .errors import InputError

RandomState = int | np.random.Generator | np.random.RandomState | None


def as_generator(random_state: object) -> np.random.Generator:
    """Convert a ``random_state``, as scikit-learn accepts it, to a numpy generator.

    Parameters
    ----------
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        ``None`` seeds from the system; a ``Generator`` is returned unchanged; one draw of a ``RandomState`` seeds a
        new generator.

    Returns
    -------
    numpy.random.Generator
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1))
    if random_state is None:
        return np.random.default_rng()
    is_other = isinstance(random_state, (bool, np.timedelta64))  # which count as integers
    if isinstance(random_state, (int, np.integer)) and not is_other and random_state >= 0:
        return np.random.default_rng(int(random_state))
    raise InputError(
        f"random_state is {quote(random_state)}; it must be None, a non-negative integer, "
        "a numpy Generator or a numpy RandomState."
    )
