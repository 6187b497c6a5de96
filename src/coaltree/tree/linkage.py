"""scipy's linkage matrix, both directions. Its distances are the tree's heights: nothing is doubled or halved."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError


def parse(Z: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Read children and heights from a linkage matrix of shape ``(n - 1, 4)``."""
    matrix = np.asarray(Z, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] != 4:
        raise InputError(f"The linkage matrix has shape {matrix.shape}; it must be (n - 1, 4), as scipy makes it.")
    distances = matrix[:, 2]
    drops = np.flatnonzero(np.diff(distances) < 0)
    if len(drops):
        k = int(drops[0])
        raise InputError(
            f"Row {k + 1} of the linkage matrix has distance {distances[k + 1]:g}, less than {distances[k]:g} in the row "
            "before; a tree has no such inversions (centroid and median linkage make them: use another method)."
        )
    return matrix[:, :2], np.concatenate([np.zeros(len(matrix) + 1), distances])


def render(
    children: NDArray[np.intp], heights: NDArray[np.float64], leaf_counts: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Write a linkage matrix of shape ``(n - 1, 4)``."""
    n = len(children) + 1
    return np.column_stack([children.astype(np.float64), heights[n:], leaf_counts[n:].astype(np.float64)])
