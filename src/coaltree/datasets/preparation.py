"""Principal components of a table."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._random import RandomState, as_generator
from .._validation import check_count
from ..errors import InputError


def principal_components(X: ArrayLike, n_components: int = 20, *, unit_variance: bool = False) -> NDArray[np.float64]:
    """Return the rows of a table in the coordinates of its principal components.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_columns)
        Complete real columns.
    n_components : int, default 20
        At most the smaller of the numbers of rows and columns.
    unit_variance : bool, default False
        Scale every component to variance 1 (over ``n_rows``); one that does not vary stays 0.

    Returns
    -------
    ndarray of shape (n_rows, n_components)
        Components in order of their variance. Of the two signs that each might have, the column that weighs most in it has a
        positive one.

    Examples
    --------
    >>> from coaltree.datasets import principal_components
    >>> principal_components([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]], 1).round(6).tolist()
    [[-5.0], [0.0], [5.0]]
    """
    table = np.asarray(X, dtype=np.float64)
    if table.ndim != 2:
        raise InputError(f"The table has {table.ndim} dimension(s); it must have two: rows and columns.")
    if not np.isfinite(table).all():
        raise InputError(
            "The table has cells that are missing or infinite; principal components need complete columns."
        )
    most = min(table.shape)
    if (
        isinstance(n_components, bool)
        or not isinstance(n_components, (int, np.integer))
        or not 1 <= n_components <= most
    ):
        raise InputError(
            f"n_components is {n_components!r}; of a table of shape {table.shape} it must be a whole number from 1 to {most}."
        )
    centred = table - table.mean(axis=0)
    left, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    heaviest = np.abs(axes).argmax(axis=1)
    signs = np.where(axes[np.arange(len(axes)), heaviest] < 0, -1.0, 1.0)
    scores: NDArray[np.float64] = (left * signs)[:, :n_components]
    if unit_variance:
        varies = sizes[:n_components] > sizes[0] * max(table.shape) * np.finfo(float).eps
        scores[:, ~varies] = 0.0
        return scores * math.sqrt(len(table))
    return np.asarray(scores * sizes[:n_components])


def sample_balanced_rows(classes: ArrayLike, n_each: int, random_state: RandomState = None) -> NDArray[np.intp]:
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
    >>> from coaltree.datasets import sample_balanced_rows
    >>> sample_balanced_rows(["a", "b", "b", "a"], 2, random_state=0).tolist()
    [0, 3, 1, 2]
    """
    given = np.asarray(classes)
    if given.ndim != 1:
        raise InputError(f"classes has shape {given.shape}; it must have one entry a row.")
    names, codes, counts = np.unique(given, return_inverse=True, return_counts=True)
    n_each = check_count(n_each, "n_each")
    if len(counts) == 0 or counts.min() < n_each:
        scarce = f"class {names[counts.argmin()]!s} has {counts.min()} rows" if len(counts) else "there are no rows"
        raise InputError(f"{n_each} rows of each class were asked for, but {scarce}; ask for fewer.")
    rng = as_generator(random_state)
    drawn = [np.sort(rng.choice(np.flatnonzero(codes == c), n_each, replace=False)) for c in range(len(names))]
    return np.concatenate(drawn)
