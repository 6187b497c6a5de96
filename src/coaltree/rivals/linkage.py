"""Classical linkage as trees."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from ..process.interface import as_matrix
from ..tree.tree import Tree
from .shared_cells import disagreement

FloatArray = NDArray[np.float64]

METHODS = ("average", "complete", "single", "ward")
METRICS = ("euclidean", "hamming")


def linkage_tree(
    X: ArrayLike, method: str = "average", *, metric: str = "euclidean", leaf_names: Sequence[str] | None = None
) -> Tree:
    """Return the tree of a classical linkage.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_columns)
        Numbers, or codes of states with ``metric="hamming"``.
    method : {"average", "complete", "single", "ward"}, default "average"
        Which clusters are near each other, as in scipy.
    metric : {"euclidean", "hamming"}, default "euclidean"
        Which rows are: by Euclidean distance of complete rows, or by the share of cells that differ among those that both
        have, which is taken for 1 where they have none in common. Ward's method is for Euclidean distances.
    leaf_names : sequence of str, optional
        Names of the rows.

    Returns
    -------
    Tree
        Heights are scipy's distances.

    Raises
    ------
    InputError
        If cells are missing and the distance is Euclidean, or an option cannot be used.

    Notes
    -----
    scipy keeps the distances of all pairs: ``4 n (n - 1)`` bytes.

    Examples
    --------
    >>> from coaltree.rivals import linkage_tree
    >>> linkage_tree([[0.0], [1.0], [5.0]], leaf_names=["a", "b", "c"]).to_newick()
    '(c:4.5,(a:1.0,b:1.0):3.5);'
    """
    if method not in METHODS:
        raise InputError(f"method is {method!r}; it must be {' or '.join(map(repr, METHODS))}.")
    if metric not in METRICS:
        raise InputError(f"metric is {metric!r}; it must be {' or '.join(map(repr, METRICS))}.")
    if metric == "hamming" and method == "ward":
        raise InputError("method='ward' is for Euclidean distances; use another method, or metric='euclidean'.")
    table = as_matrix(X)
    if metric == "euclidean" and np.isnan(table).any():
        row, column = np.argwhere(np.isnan(table))[0]
        raise InputError(
            f"The cell in row {row}, column {column} is missing, and Euclidean distances need complete rows: fill the "
            "cells in, or use metric='hamming' for a table of states."
        )
    if len(table) == 1:
        return Tree(np.empty((0, 2)), [0.0], leaf_names)
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    # In units in which no square is too large or too small for a number; a power of 2 changes no digit.
    unit = math.ldexp(1.0, math.frexp(np.abs(table).max())[1] - 1) if metric == "euclidean" else 1.0
    given = table / unit if metric == "euclidean" else squareform(disagreement(table), checks=False)
    Z: FloatArray = linkage(given, method)  # type: ignore[arg-type, unused-ignore]  # one of METHODS
    Z[:, 2] *= unit
    # Distances that are equal but for rounding may come in the wrong order.
    Z[:, 2] = np.maximum.accumulate(Z[:, 2])
    return Tree.from_linkage(Z, leaf_names)
