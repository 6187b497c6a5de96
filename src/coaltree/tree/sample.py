"""``TreeSample``: a weighted sample of trees over the same leaves, its summaries and its checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._cut import Cut, check_cut, explicit_rule
from .._html import facts_html
from .._parameters import FLAG, Interval, check_parameter
from .._validation import quote, to_floats, to_whole_number
from ..errors import InputError
from . import convert, newick, nexus
from .clades import ConditionalClades, join_clades, number_clades
from .cut import cut_tree
from .newick import describe_name_differences, excerpt
from .summary import ROUNDING, clade_heights, order_merges
from .tree import SummaryTree, Tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class TreeSample:
    """An immutable weighted sample of trees over the same leaves.

    Equal trees may occur many times; every summary treats each distinct tree once.

    Parameters
    ----------
    trees : sequence of Tree
        At least one, all with the same leaf names in the same order.
    weights : array-like of float, shape (n_trees,), optional
        At least 0, not all 0; only their proportions matter. All equal by default.
    log_joints : array-like of float, shape (n_trees,), optional
        Log joint density of each tree with the data.
    log_ratios : array-like of float, shape (n_trees, n_leaves - 1), optional
        Log likelihood ratio of each tree's merges, most recent first.

    Examples
    --------
    >>> from coaltree import Tree
    >>> texts = ["((a:1,b:1):2,c:3);", "((a:2,b:2):2,c:4);", "((a:2,c:2):3,b:5);"]
    >>> sample = TreeSample([Tree.from_newick(text, "abc") for text in texts], weights=[1, 2, 1])
    >>> sample
    <TreeSample: 3 trees (3 distinct) of 3 leaves>
    >>> sample.clade_probabilities()[frozenset("ab")]
    0.75
    >>> sample.merge_heights("a", "b").tolist()
    [1.0, 2.0, 5.0]
    >>> sample.consensus().support.tolist()
    [0.75, 1.0]
    """

    _trees: tuple[Tree, ...]
    _weights: FloatArray
    _log_joints: FloatArray | None
    _log_ratios: FloatArray | None

    def __init__(
        self,
        trees: Sequence[Tree],
        weights: ArrayLike | None = None,
        *,
        log_joints: ArrayLike | None = None,
        log_ratios: ArrayLike | None = None,
    ) -> None:
        members = check_trees(trees)
        n_merges = members[0].n_leaves - 1
        self.__dict__.update(
            _trees=members,
            _weights=check_weights(weights, len(members)),
            _log_joints=check_log_densities(log_joints, "log_joints", (len(members),)),
            _log_ratios=check_log_densities(log_ratios, "log_ratios", (len(members), n_merges)),
        )

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"A {type(self).__name__} cannot be changed: {name!r} was not set. Make a new one instead."
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(
            f"A {type(self).__name__} cannot be changed: {name!r} was not deleted. Make a new one instead."
        )

    # -- attributes------------------------------------------------------------------------------

    @property
    def trees(self) -> tuple[Tree, ...]:
        """The trees."""
        return self._trees

    @property
    def weights(self) -> FloatArray:
        """Share of each tree, shape ``(n_trees,)``; they add up to 1."""
        return self._weights

    @property
    def log_joints(self) -> FloatArray | None:
        """Log joint density of each tree with the data, shape ``(n_trees,)``, if known."""
        return self._log_joints

    @property
    def log_ratios(self) -> FloatArray | None:
        """Log likelihood ratio of each tree's merges, shape ``(n_trees, n_leaves - 1)``, if known."""
        return self._log_ratios

    @property
    def leaf_names(self) -> tuple[str, ...]:
        """Names of the leaves, in row order."""
        return self._trees[0].leaf_names

    @property
    def n_leaves(self) -> int:
        """Number of leaves of every tree."""
        return self._trees[0].n_leaves

    @property
    def n_distinct(self) -> int:
        """Number of distinct trees."""
        return len(self._distinct)

    @property
    def effective_size(self) -> float:
        """Effective number of distinct trees: this many trees of equal weight would be worth as much."""
        return float(1 / np.sum(self._distinct_weights**2))

    def best(self) -> Tree:
        """Return the tree with the highest log joint density, the first if several have it."""
        if self._log_joints is None:
            raise InputError(
                "The sample has no log_joints, so no tree is known to be the best; pass log_joints, or summarise the sample "
                "with ccd0()."
            )
        return self._trees[int(np.argmax(self._log_joints))]

    # -- clades --------------------------------------------------------------------------------

    def clade_probabilities(self) -> dict[frozenset[str], float]:
        """Return the share of the sample that has each clade.

        Returns
        -------
        dict of frozenset of str to float
            All clades of at least two leaves with a positive share, ordered by probability, then by size.
        """
        shares, (trees, merges) = self._clade_shares, self._first_occurrences
        names = np.array(self.leaf_names, dtype=object)
        n = self.n_leaves
        sizes = np.array([self._distinct[i].leaf_counts[n + k] for i, k in zip(trees, merges, strict=True)], dtype=int)
        order = np.lexsort((-sizes, -shares))
        return {
            frozenset(names[self._distinct[trees[c]].leaves_below(n + merges[c])].tolist()): float(shares[c])
            for c in order
            if shares[c] > 0
        }

    def distances(self, *, normalized: bool = False) -> FloatArray:
        """Return the Robinson-Foulds distances between the trees.

        Parameters
        ----------
        normalized : bool, default False
            Divide by the largest possible value, see :func:`coaltree.tree.clades.robinson_foulds`.

        Returns
        -------
        ndarray of float, shape (n_trees, n_trees)
        """
        from scipy.sparse import csr_array

        clades = self._clades
        n_trees, n_merges = clades.shape
        starts = np.arange(n_trees + 1) * n_merges
        has = csr_array((np.ones(clades.size), clades.ravel(), starts), shape=(n_trees, len(self._clade_shares)))
        distances = 2.0 * (n_merges - (has @ has.T).toarray())
        check_parameter("normalized", normalized, FLAG)
        if normalized and n_merges > 1:
            distances /= 2 * (n_merges - 1)
        result: FloatArray = distances[np.ix_(self._tree_numbers, self._tree_numbers)]
        return result

    def topology_ess(self) -> float:
        r"""Return the effective sample size of the topologies, from the entropy of their clades.

        Divide the sample, in its order, into :math:`B` batches. For each clade, :math:`J` is the mutual information of its
        presence in a tree and the batch of the tree: the entropy of the clade in the whole sample, minus its mean entropy in
        the batches. For :math:`m` independent trees its mean is :math:`(B - 1) / 2m` nats. The effective sample size is the
        :math:`m` that gives the mean :math:`J` of all clades with a share from 10 to 90 %. Batches are few and long if
        successive trees are similar, so that batches differ only if the whole chain moves slowly.

        Returns
        -------
        float
            At most the number of trees of equal weight that the weights allow, :math:`1 / \sum w^2`, which is returned for
            fewer than 16 trees and if no clade has such a share. Chains or runs follow one another, so disagreement between
            them counts.

        Examples
        --------
        Independent trees, and the same number of trees in runs of ten equal ones:

        >>> from coaltree import simulate_tree
        >>> trees = [simulate_tree(4, seed) for seed in range(400)]
        >>> round(TreeSample(trees).topology_ess())
        386
        >>> round(TreeSample([tree for tree in trees[:40] for _ in range(10)]).topology_ess())
        34
        """
        return _topology_ess(self)

    # -- summaries -----------------------------------------------------------------------------

    def consensus(self, threshold: float = 0.5, heights: Literal["mean", "median"] = "mean") -> SummaryTree:
        """Return the majority-rule consensus: the tree of all clades with more than a given share of the sample.

        Parameters
        ----------
        threshold : float, default 0.5
            From 0.5 to less than 1.
        heights : {"mean", "median"}
            The height of a clade: its mean or median height over the trees that have it, raised to the height of the
            clades inside it where that is larger.

        Returns
        -------
        SummaryTree
            Polytomies are resolved by merges at the same height; the support of all but the last of them is NaN.
        """
        return _consensus(self, threshold, heights)

    def mcc(self, heights: Literal["mean", "median", "keep"] = "mean") -> SummaryTree:
        """Return the maximum clade credibility tree: the sampled tree with the largest product of the shares of its clades.

        Parameters
        ----------
        heights : {"mean", "median", "keep"}
            The height of a clade: its mean or median height over the trees that have it, raised to the height of the
            clades inside it where that is larger; or its height in this tree.

        Returns
        -------
        SummaryTree
            The first of several.
        """
        return _mcc(self, heights)

    def ccd0(self, heights: Literal["mean", "median"] = "mean") -> SummaryTree:
        """Return the CCD0 tree: of all trees that the clades of the sample can form, the one with the largest product of shares.

        The tree itself need not be in the sample, but all its clades are. Its product of shares is at least that of
        :meth:`mcc`, which considers only the sampled trees.

        Parameters
        ----------
        heights : {"mean", "median"}
            The height of a clade: its mean or median height over the trees that have it, raised to the height of the
            clades inside it where that is larger.

        Returns
        -------
        SummaryTree
            Ties are broken as by :meth:`coaltree.tree.clades.ConditionalClades.best_tree`.
        """
        return _ccd0(self, heights)

    def summarize(self, summary: str = "ccd0", heights: Literal["mean", "median"] = "mean") -> SummaryTree:
        """Return the summary tree of a name: "ccd0", "mcc" or "consensus"; see the methods of these names."""
        summaries: dict[str, Callable[..., SummaryTree]] = {
            "ccd0": self.ccd0,
            "mcc": self.mcc,
            "consensus": self.consensus,
        }
        if not isinstance(summary, str) or summary not in summaries:
            raise InputError(f"summary is {quote(summary)}; it must be {' or '.join(map(repr, summaries))}.")
        return summaries[summary](heights=heights)

    # -- pairs of rows -------------------------------------------------------------------------

    def merge_heights(self, a: int | str, b: int | str) -> FloatArray:
        """Return the height at which two rows merge in every tree.

        Parameters
        ----------
        a, b : int or str
            Number or name of a row.

        Returns
        -------
        ndarray of float, shape (n_trees,)
        """
        first, second = find_row(a, self.leaf_names), find_row(b, self.leaf_names)
        heights = []
        for tree in self._distinct:
            i, j = first, second
            while i != j:
                # The smaller number cannot be above the other.
                if i < j:
                    i = int(tree.parents[i])
                else:
                    j = int(tree.parents[j])
            heights.append(tree.heights[i])
        return np.array(heights)[self._tree_numbers]

    def co_clustering(self, *, n_clusters: int | None = None, height: float | None = None) -> FloatArray:
        """Return the probability that two rows are in the same flat cluster.

        Parameters
        ----------
        n_clusters : int, optional
            Cut every tree into this number of clusters.
        height : float, optional
            Cut every tree at this height. By default trees are cut where the model prefers independent trees, which
            requires ``log_ratios``.

        Returns
        -------
        ndarray of float, shape (n_leaves, n_leaves)
        """
        cut = Cut(n_clusters=n_clusters, height_threshold=height)
        check_cut(
            cut,
            self.n_leaves,
            limit=f"the trees have {self.n_leaves:,} leaves",
            spell=lambda name: name.removesuffix("_threshold"),
        )
        return co_clustering_matrix(self, cut)

    # -- exchange ------------------------------------------------------------------------------

    def to_nexus(self, *, quote_names: bool = False) -> str:
        """Write the sample as a NEXUS file: a translate table and one weighted tree a line.

        Parameters
        ----------
        quote_names : bool, default False
            As in :meth:`Tree.to_newick`.
        """
        keys = [str(key) for key in range(1, self.n_leaves + 1)]
        texts = [newick.render(tree.children, tree.heights, keys) for tree in self._distinct]
        rows = enumerate(zip(self._tree_numbers.tolist(), self._weights.tolist(), strict=True))
        return nexus.render(
            self.leaf_names,
            [(f"TREE_{k}", f"[&W {weight!r}] [&R] {texts[i]}") for k, (i, weight) in rows],
            quote_names,
        )

    @classmethod
    def from_nexus(cls, text: str, *, preserve_underscores: bool = True, tolerance: float = 1e-6) -> TreeSample:
        """Read a sample from the text of a NEXUS file.

        Parameters
        ----------
        text : str
            A file with rooted, binary, ultrametric trees over the same leaves, such as BEAST writes. Other blocks and
            comments are ignored, except weights such as ``[&W 1/3]``, without which trees have weight 1, and the support of
            nodes, see :meth:`Tree.from_newick`.
        preserve_underscores : bool, default True
            Keep underscores of unquoted names, as ape, Biopython and IQ-TREE do; the standard reads them as blanks.
        tolerance : float, default 1e-6
            Largest distance of a leaf from height 0, as a share of the root's height.

        Returns
        -------
        TreeSample
            Rows are in the order of the taxa block, of the translate table, or else of the first tree.

        Raises
        ------
        InputError
            If a tree cannot be read, with its name. It is a ``ValueError``.
        """
        names, entries = nexus.parse(text, preserve_underscores, tolerance)
        tree_of = {id(entry.tree): Tree.from_parsed(entry.tree).reorder(names) for entry in entries}
        return TreeSample([tree_of[id(entry.tree)] for entry in entries], [entry.weight for entry in entries])

    def to_xarray(self) -> Any:
        """Return the scalars of every tree as an ``xarray.Dataset`` with the dimension ``tree``.

        The variables are ``weight``, ``root_height``, ``total_length`` and, if known, ``log_joint``. An `SMCResult` adds the
        ``run`` of each tree and the log evidence as an attribute, an `MCMCResult` the ``chain`` of each tree.

        Raises
        ------
        MissingDependencyError
            If xarray is not installed.
        """
        return convert.to_xarray(self)

    def to_arviz(self) -> Any:
        """Return the scalars of every tree for arviz: an ``xarray.DataTree``, or before arviz 1.0 an ``InferenceData``.

        arviz needs draws of equal weight, so the trees are resampled systematically in proportion to their weights and
        form one chain; a sample of equal weights stays as it is. Root heights and lengths are in the group
        ``posterior``; log joints, as ``lp``, and runs are in ``sample_stats``.

        Raises
        ------
        MissingDependencyError
            If arviz is not installed.
        """
        return convert.to_arviz(self)

    # -- computed on first use ------------------------------------------------------------------

    @cached_property
    def _distinct_index(self) -> tuple[tuple[Tree, ...], IntArray]:
        """Distinct trees in order of first occurrence, and the index of each tree among them."""
        index_of: dict[Tree, int] = {}
        indices = [index_of.setdefault(tree, len(index_of)) for tree in self._trees]
        return tuple(index_of), np.array(indices, dtype=np.intp)

    @property
    def _distinct(self) -> tuple[Tree, ...]:
        return self._distinct_index[0]

    @property
    def _tree_numbers(self) -> IntArray:
        return self._distinct_index[1]

    @cached_property
    def _distinct_weights(self) -> FloatArray:
        return np.asarray(np.bincount(self._tree_numbers, weights=self._weights), dtype=np.float64)

    @cached_property
    def _clades(self) -> IntArray:
        """Number of the clade of every merge of every distinct tree."""
        return number_clades(self._distinct)

    @cached_property
    def _first_occurrences(self) -> tuple[list[int], list[int]]:
        """Distinct tree and merge in which each clade first occurs."""
        _, first = np.unique(self._clades, return_index=True)
        trees, merges = np.divmod(first, max(self.n_leaves - 1, 1))
        return trees.tolist(), merges.tolist()

    @cached_property
    def _clade_shares(self) -> FloatArray:
        """Share of the sample that has each clade."""
        if self.n_leaves == 1:
            return np.empty(0)
        shares = np.bincount(self._clades.ravel(), weights=np.repeat(self._distinct_weights, self.n_leaves - 1))
        # Divide by the root's share, summed in the same order: clades that all trees have then have a share of exactly 1.
        return np.asarray(shares / shares[self._clades[0, -1]], dtype=np.float64)

    # -- protocols -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._trees)

    def __getstate__(self) -> dict[str, Any]:
        computed = {"_distinct_index", "_distinct_weights", "_clades", "_first_occurrences", "_clade_shares"}
        return {name: value for name, value in self.__dict__.items() if name not in computed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        self.__dict__.update(state)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} trees ({self.n_distinct} distinct) of {self.n_leaves} leaves>"

    def _facts(self) -> dict[str, object]:
        """Return the facts that a notebook shows."""
        heights = np.array([tree.heights[-1] for tree in self._distinct])
        facts = {"trees": len(self), "distinct": self.n_distinct, "leaves": self.n_leaves}
        return facts | {"mean root height": float(heights @ self._distinct_weights)}

    def _repr_html_(self) -> str:
        return facts_html(type(self).__name__, self._facts())


# For the effective sample size of topologies: shares of clades, numbers of batches, and effective trees per batch.
_SHARES_OF_CLADES = (0.1, 0.9)
_N_BATCHES = (20, 10, 5)
_MIN_TREES_PER_BATCH = 4


def _topology_ess(sample: TreeSample) -> float:
    """Return the effective sample size of the topologies; see :meth:`TreeSample.topology_ess`."""
    weights = sample.weights
    largest = float(1 / np.sum(weights**2))
    low, high = _SHARES_OF_CLADES
    shares = sample._clade_shares
    frequent = np.flatnonzero((shares >= low - ROUNDING) & (shares <= high + ROUNDING))
    if len(sample) < _MIN_TREES_PER_BATCH**2 or not len(frequent):
        return largest
    n_merges = sample.n_leaves - 1
    index = np.full(len(shares), len(frequent))
    index[frequent] = np.arange(len(frequent))
    clades = index[sample._clades][sample._tree_numbers]
    ess = largest
    for n_batches in (count for count in _N_BATCHES if count * _MIN_TREES_PER_BATCH <= len(sample)):
        batches = np.arange(len(sample)) * n_batches // len(sample)
        totals = np.bincount(batches, weights=weights, minlength=n_batches)
        cells = batches[:, None] * (len(frequent) + 1) + clades
        sums = np.bincount(cells.ravel(), np.repeat(weights, n_merges), n_batches * (len(frequent) + 1))
        used = totals > 0
        within = sums.reshape(n_batches, -1)[used, :-1] / totals[used, None]
        information = float(np.sum(_binary_entropy(shares[frequent]) - totals[used] @ _binary_entropy(within)))
        expected = (np.count_nonzero(used) - 1) * len(frequent) / 2
        ess = min(expected / information, largest) if information > expected / largest else largest
        if ess >= _MIN_TREES_PER_BATCH * n_batches:
            break
    return max(ess, 1.0)


def _binary_entropy(shares: FloatArray) -> FloatArray:
    """Return the entropy of events of given probabilities, in nats."""
    from scipy.special import entr

    p = np.clip(shares, 0.0, 1.0)  # sums of weights are rounded
    return np.asarray(entr(p) + entr(1 - p), dtype=np.float64)


def co_clustering_matrix(sample: TreeSample, cut: Cut) -> FloatArray:
    """Return the probability that two rows are together; see :meth:`TreeSample.co_clustering`."""
    probabilities = np.zeros((sample.n_leaves, sample.n_leaves))
    total = 0.0
    for tree, ratios, weight in _weighted_trees_to_cut(sample, by_ratio=explicit_rule(cut, for_trees=True) is None):
        labels = cut_tree(tree, cut, ratios)
        total += weight
        rows = np.argsort(labels, kind="stable")
        sizes = np.bincount(labels)
        ends = np.cumsum(sizes)
        for k in np.flatnonzero(sizes > 1).tolist():
            cluster = rows[ends[k] - sizes[k] : ends[k]]
            probabilities[cluster[:, None], cluster] += weight
    probabilities /= total
    np.fill_diagonal(probabilities, 1.0)
    return probabilities


def _weighted_trees_to_cut(sample: TreeSample, by_ratio: bool) -> list[tuple[Tree, FloatArray, float]]:
    """Return the distinct trees to cut, with their ratios and total weights."""
    distinct = sample._distinct
    if not by_ratio:
        no_weights = np.empty(0)
        weights = sample._distinct_weights.tolist()
        return [(tree, no_weights, weight) for tree, weight in zip(distinct, weights, strict=True)]
    if sample.log_ratios is None:
        raise InputError(
            "The sample has no log_ratios, so trees cannot be cut by likelihood ratio; pass n_clusters or height, or make "
            "the sample with log_ratios."
        )
    cases: dict[tuple[int, bytes], tuple[Tree, FloatArray, float]] = {}
    for i, ratios, weight in zip(
        sample._tree_numbers.tolist(), sample.log_ratios, sample.weights.tolist(), strict=True
    ):
        key = i, ratios.tobytes()
        before = cases[key][2] if key in cases else 0.0
        cases[key] = distinct[i], ratios, before + weight
    return list(cases.values())


def _consensus(sample: TreeSample, threshold: float, heights: str) -> SummaryTree:
    """Return the majority-rule tree; see :meth:`TreeSample.consensus`."""
    share = check_threshold(threshold)
    check_heights_option(heights, ("mean", "median"))
    n = sample.n_leaves
    trees, merges = sample._first_occurrences
    # Leave out clades with a share equal to the threshold up to rounding: two of them may exclude each other.
    frequent = np.flatnonzero(sample._clade_shares > share + ROUNDING)
    members = [sample._distinct[trees[c]].leaves_below(n + merges[c]) for c in frequent]
    children, merge_of_clade = join_clades(n, members)
    return _summarize(sample, children, np.where(merge_of_clade < 0, -1, frequent[merge_of_clade]), heights, None)


def _mcc(sample: TreeSample, heights: str) -> SummaryTree:
    """Return the maximum clade credibility tree; see :meth:`TreeSample.mcc`."""
    check_heights_option(heights, ("mean", "median", "keep"))
    has_weight = sample._distinct_weights > 0
    with np.errstate(divide="ignore"):
        log_shares = np.log(sample._clade_shares[sample._clades])
    scores = np.where(has_weight, log_shares.sum(axis=1), -np.inf)
    # Trees with the same clades in another order have the same score up to rounding.
    i = int(np.argmax(scores > scores.max() - ROUNDING))
    tree = sample._distinct[i]
    return _summarize(sample, tree.children, sample._clades[i], heights, tree)


def _ccd0(sample: TreeSample, heights: str) -> SummaryTree:
    """Return the CCD0 tree; see :meth:`TreeSample.ccd0`."""
    check_heights_option(heights, ("mean", "median"))
    tree = ConditionalClades(sample).best_tree()
    # Clades are numbered by first occurrence, so the numbers agree with those of the sample.
    clades = number_clades([*sample._distinct, tree])[-1]
    return _summarize(sample, tree.children, clades, heights, None)


def _summarize(
    sample: TreeSample, children: ArrayLike, clades: IntArray, heights: str, tree: Tree | None
) -> SummaryTree:
    """Return the summary tree of given merges; the clade of a merge that only resolves a polytomy is -1."""
    real = clades >= 0
    stack = np.stack([draw.merge_heights for draw in sample._distinct])
    by_clade = clade_heights(sample._clades, stack, sample._distinct_weights, clades[real])
    support, mean, median = np.full((3, len(clades)), np.nan)
    hpd = np.full((len(clades), 2), np.nan)
    support[real], mean[real], median[real], hpd[real] = sample._clade_shares[clades[real]], *by_clade
    targets = tree.merge_heights if tree is not None and heights == "keep" else mean if heights == "mean" else median
    kids, ages, order = order_merges(children, targets)
    return SummaryTree(kids, ages, sample.leaf_names, support[order], mean[order], median[order], hpd[order])


def check_trees(trees: Sequence[Tree]) -> tuple[Tree, ...]:
    """Return the trees as a tuple, after checking that they have the same leaf names in the same order."""
    try:
        sample = tuple(trees)
    except TypeError:
        raise InputError(f"trees is a {type(trees).__name__}; it must be a sequence of trees.") from None
    if not sample:
        raise InputError("trees is empty; a sample needs at least one tree.")
    for k, tree in enumerate(sample):
        if not isinstance(tree, Tree):
            raise InputError(f"Tree {k} of the sample is a {type(tree).__name__}; it must be a Tree.")
        if tree.leaf_names != sample[0].leaf_names:
            differences = describe_name_differences(tree.leaf_names, sample[0].leaf_names)
            raise InputError(
                f"Tree {k} of the sample has other leaves than tree 0: {differences}; all trees need the same leaves."
                if differences
                else f"Tree {k} of the sample has its leaves in another order than tree 0; use Tree.reorder first."
            )
    return sample


def check_weights(weights: ArrayLike | None, n_trees: int) -> FloatArray:
    """Return weights divided by their sum, after checking that they are valid."""
    array = np.ones(n_trees) if weights is None else _to_float_array(weights, "weights", (n_trees,))
    wrong = np.flatnonzero(~((array >= 0) & (array < np.inf)))
    if len(wrong):
        raise InputError(
            f"The weight of tree {wrong[0]} is {array[wrong[0]]:g}; weights are finite numbers of at least 0."
        )
    if not np.any(array):
        raise InputError("All weights are 0; at least one tree needs a positive weight.")
    total = math.fsum(array.tolist()) if array.max() < 1e300 else math.inf
    # Weights that add up to 1 up to rounding stay, so that a sample is the same after a round trip through a file.
    if abs(total - 1) > 4 * np.finfo(float).eps:
        array = array / array.max()
        array = array / math.fsum(array.tolist())
    shares = array + 0.0  # turns -0.0 into 0.0
    shares.setflags(write=False)
    return shares


def check_log_densities(values: ArrayLike | None, subject: str, shape: tuple[int, ...]) -> FloatArray | None:
    """Return log densities of the given shape, after checking that none is NaN; None stays None."""
    if values is None:
        return None
    logs = _to_float_array(values, subject, shape)
    if np.any(np.isnan(logs)):
        raise InputError(f"{subject} holds NaN for tree {np.argwhere(np.isnan(logs))[0][0]}; it must hold numbers.")
    logs.setflags(write=False)
    return logs


def _to_float_array(values: ArrayLike, subject: str, shape: tuple[int, ...]) -> FloatArray:
    array = to_floats(values)
    if array is None:
        raise InputError(f"{subject} must be an array of numbers of shape {shape}.")
    if array.shape != shape:
        raise InputError(f"{subject} has shape {array.shape}; for these trees it must be {shape}.")
    return array


def find_row(row: object, leaf_names: tuple[str, ...]) -> int:
    """Return the number of a row, given its number or name."""
    if isinstance(row, str):
        if row not in leaf_names:
            raise InputError(f"There is no row named {excerpt(row)}; pass the name of a leaf, or the number of a row.")
        return leaf_names.index(row)
    number = to_whole_number(row)
    if number is None or not 0 <= number < len(leaf_names):
        raise InputError(
            f"The row is {quote(row)}; it must be a name or a whole number from 0 to {len(leaf_names) - 1}."
        )
    return number


def check_threshold(threshold: Any) -> float:
    """Return a threshold, after checking that it is at least 0.5 and less than 1."""
    if Interval(0.5, 1, open_high=True).accepts(threshold):
        return float(threshold)
    raise InputError(
        f"threshold is {quote(threshold)}; it must be at least 0.5, so that all clades fit into one tree, and less than 1."
    )


def check_heights_option(heights: object, allowed: tuple[str, ...]) -> None:
    """Raise unless the option is among those allowed."""
    if not isinstance(heights, str) or heights not in allowed:
        raise InputError(f"heights is {quote(heights)}; it must be one of {', '.join(map(repr, allowed))}.")
