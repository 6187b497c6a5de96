"""Samples of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..counts import checked_count
from ..errors import InputError
from ..streams import RandomState, as_generator


def balanced_rows(classes: ArrayLike, n_each: int, random_state: RandomState = None) -> NDArray[np.intp]:
    """Draw as many rows of each class, without replacement.

    Parameters
    ----------
    classes : array-like of shape (n_rows,)
        The class of each row.
    n_each : int
        How many rows of each class.
    random_state : int, Generator, RandomState or None, default None

    Returns
    -------
    ndarray of int, shape (n_classes * n_each,)
        Rows, those of the first class first.

    Examples
    --------
    >>> from coaltree.datasets import balanced_rows
    >>> balanced_rows(["a", "b", "b", "a"], 2, random_state=0).tolist()
    [0, 3, 1, 2]
    """
    given = np.asarray(classes)
    if given.ndim != 1:
        raise InputError(f"classes has shape {given.shape}; it must have one entry a row.")
    names, codes, counts = np.unique(given, return_inverse=True, return_counts=True)
    n_each = checked_count(n_each, "n_each")
    if len(counts) == 0 or counts.min() < n_each:
        scarce = f"class {names[counts.argmin()]!s} has {counts.min()} rows" if len(counts) else "there are no rows"
        raise InputError(f"{n_each} rows of each class were asked for, but {scarce}; ask for fewer.")
    rng = as_generator(random_state)
    drawn = [np.sort(rng.choice(np.flatnonzero(codes == c), n_each, replace=False)) for c in range(len(names))]
    return np.concatenate(drawn)
