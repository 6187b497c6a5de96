"""Trees, samples of trees and clusters as arrays for a file, and back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..tree.sample import TreeSample
from ..tree.tree import Tree
from .archive import Archive, array_bytes

IntArray = NDArray[np.intp]


class TreeMembers(NamedTuple):
    """Trees as members of an archive."""

    members: dict[str, bytes]
    n_distinct: int
    n_sampled: int | None  # None if there is one tree, and no sample


def tree_members(found: Tree | TreeSample) -> TreeMembers:
    """Return a tree, or a sample of trees, as members of an archive, each tree once."""
    drawn = found.trees if isinstance(found, TreeSample) else (found,)
    # By identity: whoever weighs trees takes the same object for the same tree.
    trees = list({id(tree): tree for tree in drawn}.values())
    members = {
        "children.npy": array_bytes(np.stack([tree.children for tree in trees]), "<i4"),
        "heights.npy": array_bytes(np.stack([tree.merge_heights for tree in trees]), "<f8"),
    }
    if not isinstance(found, TreeSample):
        return TreeMembers(members, 1, None)
    number = {id(tree): k for k, tree in enumerate(trees)}
    members["which.npy"] = array_bytes(np.array([number[id(tree)] for tree in drawn]), "<i4")
    members["weights.npy"] = array_bytes(found.weights, "<f8")
    for name, logs in (("log_joints", found.log_joints), ("log_ratios", found.log_ratios)):
        if logs is None:
            raise InputError(f"The sample has no {name}, without which it is not stored; fit the model again.")
        members[f"{name}.npy"] = array_bytes(logs, "<f8")
    return TreeMembers(members, len(trees), len(drawn))


def read_trees(archive: Archive, names: tuple[str, ...], n_trees: int, n_draws: int | None) -> Tree | TreeSample:
    """Return the tree, or the sample of trees, that `tree_members` has written."""
    n = len(names)
    if n == 0:
        raise InputError("row_names is empty, and there is no tree without leaves")
    children = archive.read_array("children.npy", "<i4", (n_trees, n - 1, 2))
    heights = archive.read_array("heights.npy", "<f8", (n_trees, n - 1))
    leaves = np.zeros(n)
    trees = [Tree(pairs, np.concatenate([leaves, ages]), names) for pairs, ages in zip(children, heights, strict=True)]
    if n_draws is None:
        if n_trees > 1:
            raise InputError(f"there are {n_trees} trees, and no sample that they are of")
        return trees[0]
    which = archive.read_array("which.npy", "<i4", (n_draws,))
    if which.min() < 0 or not np.array_equal(np.unique(which), np.arange(n_trees)):
        raise InputError("its which.npy does not name each of its trees")
    return TreeSample(
        [trees[k] for k in which.tolist()],
        archive.read_array("weights.npy", "<f8", (n_draws,)),
        log_joints=archive.read_array("log_joints.npy", "<f8", (n_draws,)),
        log_ratios=archive.read_array("log_ratios.npy", "<f8", (n_draws, n - 1)),
    )


def read_labels(archive: Archive, n_rows: int) -> IntArray:
    """Return the clusters of the rows."""
    labels = archive.read_array("labels.npy", "<i4", (n_rows,)).astype(np.intp)
    if not np.array_equal(np.unique(labels[labels != -1]), np.arange(labels.max() + 1)):
        raise InputError("its labels.npy does not number clusters 0, 1, 2, ...")
    return labels
