"""What makes a tree legal, and the sentences that say why one is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError


def checked_children(children: ArrayLike) -> NDArray[np.intp]:
    """Return a fresh ``(n - 1, 2)`` array in which every node but the root is a child exactly once."""
    given = _as_array(children, "children")
    if given.size == 0:
        given = np.empty((0, 2), dtype=np.intp)
    if given.ndim != 2 or given.shape[1] != 2:
        raise InputError(f"children has shape {given.shape}; it must be (n - 1, 2), two nodes for each merge.")
    with np.errstate(invalid="ignore"):
        kids = given.astype(np.intp)
    if not np.array_equal(kids, given):
        raise InputError("children must hold whole numbers: the numbers of the nodes that merge.")
    n_merges = len(kids)
    limit = np.arange(n_merges + 1, 2 * n_merges + 1)[:, None]
    wrong = np.argwhere((kids < 0) | (kids >= limit))
    if len(wrong):
        k, side = wrong[0]
        raise InputError(
            f"Merge {k} joins node {kids[k, side]}, but only nodes 0 to {limit[k, 0] - 1} exist by then; "
            "order the merges from the most recent to the oldest."
        )
    uses = np.bincount(kids.ravel(), minlength=2 * n_merges)
    if n_merges and np.any(uses != 1):
        node = int(np.argmax(uses != 1))
        raise InputError(
            f"Node {node} is a child {uses[node]} times; every node but the root must be one exactly once."
        )
    return kids


def checked_heights(heights: ArrayLike, children: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return a fresh ``(2n - 1,)`` array: leaves at 0, merges finite and non-decreasing."""
    # Adding 0.0 turns -0.0 into 0.0, so that equal trees have equal bytes and equal hashes.
    ages = _as_array(heights, "heights").astype(np.float64) + 0.0
    n_leaves = len(children) + 1
    if ages.shape != (2 * n_leaves - 1,):
        raise InputError(
            f"heights has shape {ages.shape}; a tree of {n_leaves} leaves has {2 * n_leaves - 1} nodes, "
            "leaves first, each with a height."
        )
    if not np.all(np.isfinite(ages)):
        node = int(np.argmax(~np.isfinite(ages)))
        raise InputError(f"The height of node {node} is {ages[node]}; heights must be finite numbers.")
    if np.any(ages[:n_leaves] != 0):
        leaf = int(np.argmax(ages[:n_leaves] != 0))
        raise InputError(f"Leaf {leaf} has height {ages[leaf]:g}; every leaf stands at height 0.")
    steps = np.diff(ages[n_leaves - 1 :])
    if np.any(steps < 0):
        k = int(np.argmax(steps < 0))
        before = "the leaves" if k == 0 else f"merge {k - 1}"
        raise InputError(
            f"Merge {k} has height {ages[n_leaves + k]:g}, less than {before} at {ages[n_leaves + k - 1]:g}; "
            "heights must not decrease from one merge to the next."
        )
    return ages


def _as_array(values: ArrayLike, what: str) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"{what} has rows of different lengths; it must be a regular array.") from None
    if array.size and array.dtype.kind not in "iuf":
        raise InputError(f"{what} holds {array.dtype} values; it must hold numbers.")
    return array


def checked_names(leaf_names: Sequence[str] | None, n_leaves: int) -> tuple[str, ...]:
    """Return one distinct, non-empty name for every leaf."""
    if leaf_names is None:
        return tuple(map(str, range(n_leaves)))
    names = tuple(map(str, leaf_names))
    if len(names) != n_leaves:
        raise InputError(f"{len(names)} leaf names were given for {n_leaves} leaves; one name a leaf is needed.")
    if len(set(names)) != n_leaves:
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise InputError(f"The leaf name {name!r} occurs more than once; names must be distinct.")
            seen.add(name)
    if "" in names:
        raise InputError(f"The name of leaf {names.index('')} is empty; every leaf needs a name.")
    return names
