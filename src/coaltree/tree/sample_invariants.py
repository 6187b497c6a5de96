"""What makes a sample of trees legal, and the sentences that say why one is not."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from .clades import leaf_differences
from .newick_reader import short
from .tree import Tree

FloatArray = NDArray[np.float64]


def checked_trees(trees: Sequence[Tree]) -> tuple[Tree, ...]:
    """Return at least one tree, all with the same leaf names in the same order."""
    try:
        drawn = tuple(trees)
    except TypeError:
        raise InputError(f"trees is a {type(trees).__name__}; it must be a sequence of trees.") from None
    if not drawn:
        raise InputError("trees is empty; a sample needs at least one tree.")
    for k, tree in enumerate(drawn):
        if not isinstance(tree, Tree):
            raise InputError(f"Tree {k} of the sample is a {type(tree).__name__}; it must be a Tree.")
        if tree.leaf_names != drawn[0].leaf_names:
            differences = leaf_differences(tree.leaf_names, drawn[0].leaf_names)
            raise InputError(
                f"Tree {k} of the sample has other leaves than tree 0: {differences}; all trees need the same leaves."
                if differences
                else f"Tree {k} of the sample has its leaves in another order than tree 0; use Tree.reorder first."
            )
    return drawn


def checked_weights(weights: ArrayLike | None, n_trees: int) -> FloatArray:
    """Return weights that add up to 1."""
    given = np.ones(n_trees) if weights is None else _as_numbers(weights, "weights", (n_trees,))
    wrong = np.flatnonzero(~((given >= 0) & (given < np.inf)))
    if len(wrong):
        raise InputError(
            f"The weight of tree {wrong[0]} is {given[wrong[0]]:g}; weights are finite numbers of at least 0."
        )
    if not np.any(given):
        raise InputError("All weights are 0; at least one tree needs a positive weight.")
    total = math.fsum(given.tolist()) if given.max() < 1e300 else math.inf
    # Weights that add up to 1 but for rounding are kept, so that a sample written to a file comes back as it was.
    if abs(total - 1) > 4 * np.finfo(float).eps:
        given = given / given.max()
        given = given / math.fsum(given.tolist())
    shares = given + 0.0  # turns -0.0 into 0.0
    shares.setflags(write=False)
    return shares


def checked_logs(values: ArrayLike | None, what: str, shape: tuple[int, ...]) -> FloatArray | None:
    """Return log densities of the given shape without NaN, or nothing if there are none."""
    if values is None:
        return None
    logs = _as_numbers(values, what, shape)
    if np.any(np.isnan(logs)):
        raise InputError(f"{what} holds NaN for tree {np.argwhere(np.isnan(logs))[0][0]}; it must hold numbers.")
    logs.setflags(write=False)
    return logs


def _as_numbers(values: ArrayLike, what: str, shape: tuple[int, ...]) -> FloatArray:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be an array of numbers of shape {shape}.") from None
    if array.shape != shape:
        raise InputError(f"{what} has shape {array.shape}; for these trees it must be {shape}.")
    return array


def checked_row(row: object, leaf_names: tuple[str, ...]) -> int:
    """Return the number of a row that is given by number or by name."""
    if isinstance(row, str):
        if row not in leaf_names:
            raise InputError(f"There is no row named {short(row)}; pass one of leaf_names, or the number of a row.")
        return leaf_names.index(row)
    if isinstance(row, bool) or not isinstance(row, numbers.Integral) or not 0 <= int(row) < len(leaf_names):
        raise InputError(f"The row is {row!r}; it must be a name or a whole number from 0 to {len(leaf_names) - 1}.")
    return int(row)


def checked_threshold(threshold: object) -> float:
    """Return a share from 0.5 to less than 1."""
    if isinstance(threshold, numbers.Real) and 0.5 <= float(threshold) < 1:
        return float(threshold)
    raise InputError(
        f"threshold is {threshold!r}; it must be at least 0.5, so that all clades fit into one tree, and less than 1."
    )


def check_choice(heights: object, allowed: tuple[str, ...]) -> None:
    """Refuse a way to place clades that is not among those allowed."""
    if heights not in allowed:
        raise InputError(f"heights is {heights!r}; it must be one of {', '.join(map(repr, allowed))}.")
