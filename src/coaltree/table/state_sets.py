"""Sets of states: cells that are partly known, such as R in DNA, which is A or G.

In a table of codes, a set of states is a negative number: minus the sum of ``2 ** k`` over its states k. The code alone
determines the states, so sets need no declaration.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import quote
from ..errors import InputError

MAX_SET_STATES = 53
"""States of a column in which cells may be sets: a float holds this many bits."""


def state_set(*states: int) -> float:
    """Return the code of a cell that is one of several states, for tables of codes.

    Frames and lists take sets of categories as cells instead, such as ``{"A", "G"}``.

    Parameters
    ----------
    *states : int
        Codes of the states, at least one; below 53.

    Returns
    -------
    float
        Minus the sum of ``2 ** k`` over the states k; for a single state its own code.

    Raises
    ------
    InputError
        If a state is not a code, or is too large.

    Examples
    --------
    >>> import coaltree as ct
    >>> ct.state_set(0, 2), ct.state_set(1)
    (-5.0, 1.0)
    >>> process = ct.Multinomial(equilibrium=[[0.25, 0.25, 0.5]])
    >>> tree = ct.Tree.from_newick("(a:1,b:1);")
    >>> either = process.log_likelihood(tree, [[0], [ct.state_set(0, 2)]])
    >>> apart = [process.log_likelihood(tree, [[0], [k]]) for k in (0, 2)]
    >>> bool(np.isclose(either, np.logaddexp(*apart)))
    True
    """
    for state in states:
        if isinstance(state, bool) or not isinstance(state, int | np.integer) or not 0 <= state < MAX_SET_STATES:
            raise InputError(
                f"{quote(state)} is not a state; the states of a set are codes from 0 to {MAX_SET_STATES - 1}."
            )
    distinct = set(states)
    if not distinct:
        raise InputError("state_set needs at least one state; a missing cell is NaN.")
    return float(encode_set(map(int, distinct)))


def encode_set(states: Iterable[int]) -> int:
    """Return the code of a set of distinct states; a set of one state has the code of that state."""
    known = list(states)
    return known[0] if len(known) == 1 else -sum(1 << state for state in known)


def decode_set(code: float) -> list[int]:
    """Return the states of the code of a set.

    Examples
    --------
    >>> decode_set(-5)
    [0, 2]
    """
    mask = -int(code)
    return [k for k in range(mask.bit_length()) if mask >> k & 1]


def set_members(codes: NDArray[Any], n_states: int) -> NDArray[np.bool_]:
    """Return which states are in each of some sets, shape ``(sets, n_states)``."""
    masks = -codes.astype(np.int64)
    # States beyond the 63 bits of a mask are in no set.
    bits = masks[:, None] >> np.minimum(np.arange(n_states), 62)
    return np.asarray((bits & 1 > 0) & (np.arange(n_states) < MAX_SET_STATES))


def is_set(codes: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which codes are those of sets. NaN and -1, which mark missing cells, are not."""
    with np.errstate(invalid="ignore"):
        return np.asarray(codes < -1)


def is_valid_set(codes: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which negative numbers are codes of sets of at least two states."""
    whole = (np.floor(codes) == codes) & (codes > -(2.0**MAX_SET_STATES))
    masks = np.where(whole, -codes, 0).astype(np.int64)
    return np.asarray(np.bitwise_count(masks) >= 2)
