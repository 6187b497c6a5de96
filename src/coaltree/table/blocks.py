"""Tables that lie in blocks, here and there: Dask arrays."""

from __future__ import annotations

from typing import Any

import numpy as np


def computed(X: Any) -> Any:
    """Return a Dask array of numbers as one matrix, computed a block of rows at a time; anything else as it is.

    Examples
    --------
    >>> computed([[1, 2]])
    [[1, 2]]
    """
    if not (hasattr(X, "__dask_graph__") and hasattr(X, "numblocks")):  # so that Dask need not be imported to know
        return X
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        return np.asarray(X)
    blocks = (np.asarray(X.blocks[k].compute(), dtype=np.float64) for k in range(X.numblocks[0]))
    if np.isnan(X.shape).any():  # Dask does not know how many rows there are before it has them
        return np.concatenate(list(blocks))
    matrix, first = np.empty(X.shape), 0
    for block in blocks:
        matrix[first : first + len(block)] = block
        first += len(block)
    return matrix
