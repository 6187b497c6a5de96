"""Where the nodes of a drawn tree stand, apart from any drawing library."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .tree import Tree


def node_positions(tree: Tree, leaf_places: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return the coordinate of every node across the direction of time.

    Parameters
    ----------
    tree : Tree
    leaf_places : ndarray of float, shape (n,), optional
        Where the leaves stand; by default at 0, 1, ..., n - 1 in the order of ``tree.leaf_order``.

    Returns
    -------
    ndarray of float, shape (2n - 1,)
        A merge stands halfway between its children.
    """
    own = tree.first_positions[: tree.n_leaves].astype(np.float64) if leaf_places is None else leaf_places
    places: list[float] = own.tolist()
    for left, right in zip(tree.children[:, 0].tolist(), tree.children[:, 1].tolist(), strict=True):
        places.append((places[left] + places[right]) / 2)
    return np.array(places)


def elbows(tree: Tree) -> NDArray[np.float64]:
    """Return the bracket of every merge as a line of four points.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    ndarray of float, shape (n - 1, 4, 2)
        Points (position, height): from the left child up to the merge's height, across, and down to the
        right child.
    """
    n = tree.n_leaves
    places = node_positions(tree)
    points = np.empty((n - 1, 4, 2))
    points[:, :2, 0] = places[tree.children[:, :1]]
    points[:, 2:, 0] = places[tree.children[:, 1:]]
    points[:, 0, 1] = tree.heights[tree.children[:, 0]]
    points[:, 3, 1] = tree.heights[tree.children[:, 1]]
    points[:, 1:3, 1] = tree.heights[n:, None]
    return points
