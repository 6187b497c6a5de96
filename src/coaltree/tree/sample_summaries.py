"""From a sample of trees to the one tree that stands for it: by majority rule, or of maximum clade credibility."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .clade_heights import clade_heights
from .clades import join_clades
from .sample_invariants import check_choice, checked_threshold
from .summary import SummaryTree, lay_out
from .tree import Tree

if TYPE_CHECKING:
    from .sample import TreeSample

IntArray = NDArray[np.intp]

# Two sums of the same shares in different orders are equal to within this.
ROUNDING = 1e-9


def consensus(sample: TreeSample, threshold: float, heights: str) -> SummaryTree:
    """Return the majority-rule tree; see :meth:`TreeSample.consensus`."""
    share = checked_threshold(threshold)
    check_choice(heights, ("mean", "median"))
    n = sample.n_leaves
    where, merges = sample._first_seen
    # Clades of exactly the threshold stay out whichever way their shares are rounded: two such may exclude each other.
    kept = np.flatnonzero(sample._clade_shares > share + ROUNDING)
    members = [sample._distinct[where[c]].leaves_below(n + merges[c]) for c in kept]
    children, made = join_clades(n, members)
    return _summary(sample, children, np.where(made < 0, -1, kept[made]), heights, None)


def mcc(sample: TreeSample, heights: str) -> SummaryTree:
    """Return the maximum clade credibility tree; see :meth:`TreeSample.mcc`."""
    check_choice(heights, ("mean", "median", "keep"))
    drawn = sample._distinct_weights > 0
    with np.errstate(divide="ignore"):
        log_shares = np.log(sample._clade_shares[sample._clades])
    scores = np.where(drawn, log_shares.sum(axis=1), -np.inf)
    # Trees with the same clades in another order have the same sum but for rounding.
    i = int(np.argmax(scores > scores.max() - ROUNDING))
    tree = sample._distinct[i]
    return _summary(sample, tree.children, sample._clades[i], heights, tree)


def _summary(sample: TreeSample, children: ArrayLike, clades: IntArray, heights: str, tree: Tree | None) -> SummaryTree:
    """Return the tree of the given merges, each with its clade or -1 if it only resolves a polytomy."""
    real = clades >= 0
    stack = np.stack([drawn.merge_heights for drawn in sample._distinct])
    found = clade_heights(sample._clades, stack, sample._distinct_weights, clades[real])
    support, mean, median = np.full((3, len(clades)), np.nan)
    hpd = np.full((len(clades), 2), np.nan)
    support[real], mean[real], median[real], hpd[real] = sample._clade_shares[clades[real]], *found
    wanted = tree.merge_heights if tree is not None and heights == "keep" else mean if heights == "mean" else median
    kids, ages, order = lay_out(children, wanted)
    return SummaryTree(kids, ages, sample.leaf_names, support[order], mean[order], median[order], hpd[order])
