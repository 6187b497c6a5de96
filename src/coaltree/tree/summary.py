"""``SummaryTree``: one tree for a sample of trees, with support and heights of every clade."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._parameters import FLAG, check_parameter
from ..errors import InputError
from . import newick, nexus
from .tree import Tree

IntArray = NDArray[np.intp]
FloatArray = NDArray[np.float64]

# Sums of the same shares in different order are equal within this.
ROUNDING = 1e-9


class CladeHeights(NamedTuple):
    """Mean, median and HPD interval of the heights of clades, one entry per clade."""

    mean: FloatArray
    median: FloatArray
    hpd: FloatArray


def clade_heights(clades: IntArray, heights: FloatArray, weights: FloatArray, selected: IntArray) -> CladeHeights:
    """Summarise the heights of clades over the trees that have them.

    Parameters
    ----------
    clades : ndarray of int, shape (n_trees, n_merges)
        Number of each merge's clade.
    heights : ndarray of float, shape (n_trees, n_merges)
    weights : ndarray of float, shape (n_trees,)
    wanted : ndarray of int, shape (n_wanted,)
        Numbers of distinct clades of trees with positive weight.

    Returns
    -------
    CladeHeights
    """
    index = np.full(int(clades.max(initial=0)) + 1, -1, dtype=np.intp)
    index[selected] = np.arange(len(selected))
    clade_index = np.where(weights[:, None] > 0, index[clades], -1)
    at = np.nonzero(clade_index >= 0)
    groups, ages, shares = clade_index[at], heights[at], weights[at[0]]
    order = np.lexsort((ages, groups))
    ages, shares = ages[order], shares[order]
    bounds = np.searchsorted(groups[order], np.arange(len(selected) + 1)).tolist()
    mean, median = np.empty((2, len(selected)))
    hpd = np.empty((len(selected), 2))
    for k in range(len(selected)):
        members = slice(bounds[k], bounds[k + 1])
        mean[k] = np.average(ages[members], weights=shares[members])
        median[k] = weighted_median(ages[members], shares[members])
        hpd[k] = shortest_interval(ages[members], shares[members])
    return CladeHeights(mean, median, hpd)


def weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """Return the weighted median, the mean of two values if it lies between them.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
        Sorted.
    weights : ndarray of float, shape (n,)
        Positive.

    Examples
    --------
    >>> weighted_median(np.array([1.0, 2.0, 6.0]), np.array([1.0, 1.0, 2.0]))
    4.0
    """
    below = np.cumsum(weights) / np.sum(weights)
    k = int(np.searchsorted(below, 0.5 - ROUNDING))
    last = k if below[k] > 0.5 + ROUNDING or k + 1 == len(values) else k + 1
    return float((values[k] + values[last]) / 2)


def shortest_interval(values: FloatArray, weights: FloatArray, share: float = 0.95) -> tuple[float, float]:
    """Return the shortest interval between two values that contains a share of the weight, the lowest if several do.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
        Sorted.
    weights : ndarray of float, shape (n,)
        Positive.
    share : float, default 0.95

    Examples
    --------
    >>> shortest_interval(np.array([1.0, 5.0, 6.0, 7.0]), np.ones(4), 0.75)
    (5.0, 7.0)
    """
    upto = np.cumsum(weights) / np.sum(weights)
    before = np.concatenate([[0.0], upto[:-1]])
    last = np.searchsorted(upto, before + share - ROUNDING)
    starts = np.flatnonzero(last < len(values))
    k = starts[np.argmin(values[last[starts]] - values[starts])]
    return float(values[k]), float(values[last[k]])


_ANNOTATIONS = ("support", "mean_heights", "median_heights", "height_hpd")


class SummaryTree(Tree):
    """A tree that summarises a sample of trees.

    Merges that only resolve a polytomy have the height of their parent, and NaN as support and heights.

    Parameters
    ----------
    children, heights, leaf_names
        As of a :class:`Tree`.
    support : array-like of float, shape (n - 1,), optional
        Share of the sample with the clade of each merge, NaN where the merge only resolves a polytomy. This and the
        next arrays have one entry per merge, most recent first; the defaults describe a sample of one tree.
    mean_heights, median_heights : array-like of float, shape (n - 1,), optional
        Mean and median height of the clade, over the trees that have it.
    height_hpd : array-like of float, shape (n - 1, 2), optional
        The shortest interval that contains 95 % of the clade's heights.

    Examples
    --------
    >>> from coaltree import Tree
    >>> from coaltree.tree.sample import TreeSample
    >>> texts = ["((a:1,b:1):2,c:3);", "((a:2,b:2):2,c:4);", "((a:2,c:2):3,b:5);"]
    >>> tree = TreeSample([Tree.from_newick(text, "abc") for text in texts], [3, 3, 2]).mcc()
    >>> tree.to_newick()
    '((a:1.5,b:1.5)0.75:2.375,c:3.875)1;'
    >>> tree.height_hpd.tolist()
    [[1.0, 2.0], [3.0, 5.0]]
    """

    _support: FloatArray
    _mean_heights: FloatArray
    _median_heights: FloatArray
    _height_hpd: FloatArray

    def __init__(
        self,
        children: ArrayLike,
        heights: ArrayLike,
        leaf_names: Sequence[str] | None = None,
        support: ArrayLike | None = None,
        mean_heights: ArrayLike | None = None,
        median_heights: ArrayLike | None = None,
        height_hpd: ArrayLike | None = None,
    ) -> None:
        super().__init__(children, heights, leaf_names)
        merge_heights = self.merge_heights
        defaults = (
            np.ones(len(merge_heights)),
            merge_heights,
            merge_heights,
            np.column_stack([merge_heights, merge_heights]),
        )
        annotations = (support, mean_heights, median_heights, height_hpd)
        for name, values, default in zip(_ANNOTATIONS, annotations, defaults, strict=True):
            array = np.array(default if values is None else values, dtype=np.float64)
            if array.shape != default.shape:
                raise InputError(
                    f"{name} has shape {array.shape}; a tree of {len(merge_heights)} merges needs {default.shape}, "
                    "the most recent merge first."
                )
            array.setflags(write=False)
            self.__dict__["_" + name] = array
        shares, ends = self._support, self._height_hpd
        if np.any((shares < 0) | (shares > 1)):
            wrong = shares[(shares < 0) | (shares > 1)][0]
            raise InputError(f"support holds {wrong:g}; shares of a sample lie between 0 and 1.")
        if np.any(ends[:, 0] > ends[:, 1]):
            raise InputError(
                "height_hpd holds an interval that ends below its beginning; give each as lower and upper end."
            )

    # -- attributes------------------------------------------------------------------------------

    @property
    def support(self) -> FloatArray:
        """Share of the sample with the clade of each merge, NaN for merges that only resolve a polytomy."""
        return self._support

    @property
    def mean_heights(self) -> FloatArray:
        """Mean height of each merge's clade over the trees that have it, shape ``(n - 1,)``."""
        return self._mean_heights

    @property
    def median_heights(self) -> FloatArray:
        """Median height of each merge's clade over the trees that have it, shape ``(n - 1,)``."""
        return self._median_heights

    @property
    def height_hpd(self) -> FloatArray:
        """Shortest interval that holds 95 % of the heights of each merge's clade, shape ``(n - 1, 2)``."""
        return self._height_hpd

    def rename(self, leaf_names: Sequence[str]) -> SummaryTree:
        """Return the same tree with other names on its leaves, in row order."""
        return self._annotate(super().rename(leaf_names))

    def reorder(self, leaf_names: Sequence[str]) -> SummaryTree:
        """Return the same tree with its leaves numbered in the order of the given names."""
        return self._annotate(super().reorder(leaf_names))

    # -- exchange ------------------------------------------------------------------------------

    def to_newick(self, support: bool = True, *, quote_names: bool | None = None) -> str:
        """Write the tree as a Newick string, with its polytomies.

        Parameters
        ----------
        support : bool, default True
            Label merges with their support, to four digits.
        quote_names : bool, optional
            As in :meth:`Tree.to_newick`.

        Returns
        -------
        str
            :meth:`Tree.from_newick` reads it only if there is no polytomy.
        """
        check_parameter("support", support, FLAG)
        labels = [f"{share:.4g}" if support and share == share else "" for share in self._support.tolist()]
        return self._render(newick.spell_names(self._leaf_names, quote_names), labels)

    def to_nexus(self, *, quote_names: bool | None = None) -> str:
        """Write the tree as a NEXUS file, annotated as by TreeAnnotator, for FigTree and similar programs.

        Parameters
        ----------
        quote_names : bool, optional
            As in :meth:`Tree.to_newick`.

        Returns
        -------
        str
            Polytomies are preserved. Merges have ``posterior``, ``height``, ``height_mean``, ``height_median``
            and ``height_95%_HPD``.
        """
        columns = (self._support, self.merge_heights, self._mean_heights, self._median_heights, *self._height_hpd.T)
        comments = [
            f"[&posterior={share!r},height={height!r},height_mean={mean!r},height_median={median!r},"
            f"height_95%_HPD={{{low!r},{high!r}}}]"
            if share == share
            else ""
            for share, height, mean, median, low, high in zip(*(column.tolist() for column in columns), strict=True)
        ]
        keys = [str(key) for key in range(1, self.n_leaves + 1)]
        return nexus.render(self._leaf_names, [("SUMMARY", f"[&R] {self._render(keys, comments)}")], quote_names)

    def _render(self, leaf_labels: list[str], merge_labels: list[str]) -> str:
        n = self.n_leaves
        is_shown = np.concatenate([np.ones(n, dtype=bool), ~np.isnan(self._support)])
        is_shown[-1] = True
        above = self.parents.copy()
        for node in np.flatnonzero(~is_shown)[::-1].tolist():
            above[self._children[node - n]] = above[node]
        lengths = self._heights[above[:-1]] - self._heights[:-1]
        tails = [f":{length!r}" for length in lengths.tolist()] + [""]
        first = self.first_positions
        opening = np.bincount(first[n:][is_shown[n:]], minlength=n)[first[:n]].tolist()
        heads = ["," + "(" * count + label for count, label in zip(opening, leaf_labels, strict=True)]
        heads += [")" + label for label in merge_labels]
        # A node is complete after its last leaf and before its parent, which has a larger number.
        order = np.argsort(first + self.leaf_counts, kind="stable")
        return "".join(heads[node] + tails[node] for node in order[is_shown[order]].tolist())[1:] + ";"

    # -- protocols -----------------------------------------------------------------------------

    def _annotate(self, tree: Tree) -> SummaryTree:
        return SummaryTree(
            tree.children,
            tree.heights,
            tree.leaf_names,
            self._support,
            self._mean_heights,
            self._median_heights,
            self._height_hpd,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        # Never equal to a plain tree: otherwise two different summaries could equal the same tree.
        return (
            isinstance(other, SummaryTree)
            and super().__eq__(other) is True
            and all(np.array_equal(getattr(self, name), getattr(other, name), equal_nan=True) for name in _ANNOTATIONS)
        )

    __hash__ = Tree.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        annotations = tuple(getattr(self, name) for name in _ANNOTATIONS)
        return SummaryTree, (self._children, self._heights, self._leaf_names, *annotations)

    def __repr__(self) -> str:
        return f"<SummaryTree: {self.n_leaves} leaves, root height {self._heights[-1]:.4g}>"


def order_merges(children: ArrayLike, target_heights: ArrayLike) -> tuple[IntArray, FloatArray, IntArray]:
    """Assign heights to merges and number the merges by height.

    Parameters
    ----------
    children : array-like of int, shape (n - 1, 2)
        Children before parents, in any other order.
    target_heights : array-like of float, shape (n - 1,)
        Heights of the merges. A height below that of a child is raised to it; NaN stands for the height of the parent.

    Returns
    -------
    children : ndarray of int, shape (n - 1, 2)
    heights : ndarray of float, shape (2n - 1,)
        The arguments of :class:`Tree`.
    order : ndarray of int, shape (n - 1,)
        The old number of each merge.

    Examples
    --------
    >>> children, heights, order = order_merges([[0, 1], [2, 3], [4, 5]], [2.0, 1.0, 1.5])
    >>> children.tolist(), heights.tolist(), order.tolist()
    ([[2, 3], [0, 1], [5, 4]], [0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 2.0], [1, 0, 2])
    """
    kids = np.asarray(children, dtype=np.intp).reshape(-1, 2)
    targets = np.asarray(target_heights, dtype=np.float64)
    n = len(kids) + 1
    heights = [0.0] * n
    pairs = kids.tolist()
    for (left, right), height in zip(pairs, np.nan_to_num(targets, nan=0.0).tolist(), strict=True):
        heights.append(max(height, heights[left], heights[right]))
    follows_parent = [False] * n + np.isnan(targets).tolist()
    for k in range(n - 2, -1, -1):
        for child in pairs[k]:
            if follows_parent[child]:
                heights[child] = heights[n + k]
    merges = np.array(heights[n:], dtype=np.float64)
    # A stable sort keeps children before parents of the same height.
    order = np.argsort(merges, kind="stable")
    number = np.arange(2 * n - 1)
    number[n + order] = np.arange(n, 2 * n - 1)
    return number[kids[order]], np.concatenate([np.zeros(n), merges[order]]), order
