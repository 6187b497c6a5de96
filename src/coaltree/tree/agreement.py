"""How often two rows are in the same flat cluster, over a sample of trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .cut import cut_tree
from .tree import Tree

if TYPE_CHECKING:
    from .sample import TreeSample

FloatArray = NDArray[np.float64]


def co_clustering(sample: TreeSample, n_clusters: int | None, height: float | None) -> FloatArray:
    """Return the probability that two rows are together; see :meth:`TreeSample.co_clustering`."""
    if n_clusters is not None and height is not None:
        raise InputError("Both n_clusters and height were given; a tree is cut by one of them, so leave out the other.")
    together = np.zeros((sample.n_leaves, sample.n_leaves))
    total = 0.0
    for tree, ratios, weight in _to_cut(sample, by_ratio=n_clusters is None and height is None):
        labels = cut_tree(tree, ratios, n_clusters=n_clusters, height=height)
        total += weight
        rows = np.argsort(labels, kind="stable")
        sizes = np.bincount(labels)
        ends = np.cumsum(sizes)
        for k in np.flatnonzero(sizes > 1).tolist():
            cluster = rows[ends[k] - sizes[k] : ends[k]]
            together[cluster[:, None], cluster] += weight
    together /= total
    np.fill_diagonal(together, 1.0)
    return together


def _to_cut(sample: TreeSample, by_ratio: bool) -> list[tuple[Tree, FloatArray, float]]:
    """Return every tree to cut once, with its ratios and its weight."""
    distinct = sample._distinct
    if not by_ratio:
        nothing = np.empty(0)
        weights = sample._distinct_weights.tolist()
        return [(tree, nothing, weight) for tree, weight in zip(distinct, weights, strict=True)]
    if sample.log_ratios is None:
        raise InputError(
            "The log likelihood ratios of the merges are unknown, so trees cannot be cut by them; pass n_clusters "
            "or height, or make the sample with log_ratios."
        )
    cases: dict[tuple[int, bytes], tuple[Tree, FloatArray, float]] = {}
    for i, ratios, weight in zip(sample._which.tolist(), sample.log_ratios, sample.weights.tolist(), strict=True):
        key = i, ratios.tobytes()
        before = cases[key][2] if key in cases else 0.0
        cases[key] = distinct[i], ratios, before + weight
    return list(cases.values())
