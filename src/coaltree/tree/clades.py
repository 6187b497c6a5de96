"""Clades, the sets of leaves below merges: numbered, compared, and the conditional clade distribution of a sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._parameters import FLAG, check_parameter
from ..errors import InputError
from .newick import describe_name_differences
from .summary import ROUNDING
from .tree import SummaryTree, Tree, check_tree

IntArray = NDArray[np.intp]
FloatArray = NDArray[np.float64]


def clade_masks(tree: Tree) -> list[int]:
    """Return the leaves below every merge as the bits of an integer, most recent merge first.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    list of int
        Bit ``i`` is set if leaf ``i`` is below the merge.

    Examples
    --------
    >>> from coaltree import Tree
    >>> [bin(mask) for mask in clade_masks(Tree.from_newick("((a:1,b:1):2,c:3);"))]
    ['0b11', '0b111']
    """
    masks = [1 << leaf for leaf in range(tree.n_leaves)]
    for left, right in tree.children.tolist():
        masks.append(masks[left] | masks[right])
    return masks[tree.n_leaves :]


def number_clades(trees: Sequence[Tree]) -> IntArray:
    """Number the clades of several trees; equal clades have equal numbers.

    Parameters
    ----------
    trees : sequence of Tree
        Over the same leaves in the same order.

    Returns
    -------
    ndarray of int, shape (n_trees, n_leaves - 1)
        The clade of every merge, numbered 0, 1, ... in order of first occurrence.
    """
    numbers: dict[int, int] = {}
    rows = [[numbers.setdefault(mask, len(numbers)) for mask in clade_masks(tree)] for tree in trees]
    return np.array(rows, dtype=np.intp)


def join_clades(n_leaves: int, members: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Build a binary tree that has the given clades.

    Parameters
    ----------
    n_leaves : int
    members : sequence of ndarray of int
        Leaves of each clade. Any two clades are nested or disjoint; one clade has all leaves, unless there is one leaf.

    Returns
    -------
    children : ndarray of int, shape (n_leaves - 1, 2)
        Children before parents.
    clades : ndarray of int, shape (n_leaves - 1,)
        The clade that each merge completes, -1 if it only resolves a polytomy.
    """
    top = np.arange(n_leaves)
    children: list[tuple[int, int]] = []
    clades: list[int] = []
    for k in sorted(range(len(members)), key=lambda k: len(members[k])):
        node, *others = np.unique(top[members[k]]).tolist()
        for other in others:
            children.append((node, other))
            clades.append(-1)
            node = n_leaves + len(children) - 1
        clades[-1] = k
        top[members[k]] = node
    return np.array(children, dtype=np.intp).reshape(-1, 2), np.array(clades, dtype=np.intp)


def robinson_foulds(a: Tree, b: Tree, *, normalized: bool = False) -> float:
    """Count the clades that only one of two rooted trees has.

    Parameters
    ----------
    a, b : Tree
        Trees over the same leaf names, in any order. Merges of a :class:`SummaryTree` that only resolve a polytomy
        count as no clades.
    normalized : bool, default False
        Divide by ``2 (n_leaves - 2)``, the largest possible value; trees of at most two leaves have distance 0.

    Returns
    -------
    int, or float if normalized

    Raises
    ------
    InputError
        If the leaf names differ.

    Examples
    --------
    >>> from coaltree import Tree
    >>> a = Tree.from_newick("(((a:1,b:1):1,c:2):1,d:3);")
    >>> b = Tree.from_newick("(((a:1,c:1):1,b:2):1,d:3);")
    >>> robinson_foulds(a, b)
    2
    >>> robinson_foulds(a, b, normalized=True)
    0.5
    """
    a, b = check_tree(a, "a"), check_tree(b, "b")
    if a.leaf_names != b.leaf_names:
        differences = describe_name_differences(b.leaf_names, a.leaf_names)
        if differences:
            raise InputError(
                f"The second tree has other leaves than the first: {differences}; only trees over the same names "
                "can be compared."
            )
        b = b.reorder(a.leaf_names)
    distance = int(_is_clade(a).sum() + _is_clade(b).sum()) - 2 * _count_shared(a, b)
    check_parameter("normalized", normalized, FLAG)
    if not normalized:
        return distance
    return distance / (2 * (a.n_leaves - 2)) if a.n_leaves > 2 else 0.0


def _count_shared(a: Tree, b: Tree) -> int:
    """Count the clades that two trees share. Both have the same leaves in the same order.

    The clades of the first tree are ranges of leaves in its drawing order. So a clade of the second is one of them only if
    its leaves are a range too. No sets of leaves are stored: their memory would grow as the square of the number of leaves.
    """
    n = a.n_leaves
    place = a.first_positions[:n]
    lefts, rights = b.children[:, 0].tolist(), b.children[:, 1].tolist()
    low, high = place.tolist(), place.tolist()
    for left, right in zip(lefts, rights, strict=True):
        low.append(min(low[left], low[right]))
        high.append(max(high[left], high[right]))
    begin, end = np.array(low[n:], dtype=np.intp), np.array(high[n:], dtype=np.intp)
    stretches = _is_clade(b) & (end - begin + 1 == b.leaf_counts[n:])
    is_shared = _is_clade(a)
    starts, counts = a.first_positions[n:][is_shared], a.leaf_counts[n:][is_shared]
    return len(np.intersect1d(starts * n + starts + counts - 1, (begin * n + end)[stretches], assume_unique=True))


def _is_clade(tree: Tree) -> NDArray[np.bool_]:
    """Return which merges are clades, and do not only resolve a polytomy."""
    return tree.is_clade if isinstance(tree, SummaryTree) else np.ones(tree.n_leaves - 1, dtype=np.bool_)


class WeightedTrees(Protocol):
    """The attributes of a ``TreeSample`` that define the distribution."""

    @property
    def trees(self) -> Sequence[Tree]:
        """The trees."""

    @property
    def weights(self) -> NDArray[np.float64]:
        """Share of each tree."""


class ConditionalClades:
    r"""The distribution CCD0 over the topologies that the clades of a sample can form.

    The probability of a topology is proportional to the product of the shares of its clades in the sample. Topologies
    with a clade that no tree of positive weight has are impossible; all others are possible, whether sampled or not.

    Parameters
    ----------
    sample : TreeSample

    Notes
    -----
    Let :math:`f(C)` be the share of a clade and let :math:`S(C) = f(C) \sum S(A) S(B)`, where the sum is over all
    splits of :math:`C` into two clades :math:`A` and :math:`B` of the sample, and :math:`S = 1` for a leaf. A clade is
    then split into :math:`A` and :math:`B` with probability :math:`f(C) S(A) S(B) / S(C)`, independently of the rest of
    the tree. The product of these probabilities over a tree is :math:`\prod f(C) / S(\text{root})`.

    References
    ----------
    Berling, Klawitter, Bouckaert, Xie, Gavryushkin and Drummond (2025). Accurate Bayesian phylogenetic point estimation
    using a tree distribution parameterized by clade probabilities. PLOS Computational Biology 21.

    Examples
    --------
    Two trees of six leaves, each with two parts, form four topologies:

    >>> from coaltree import Tree
    >>> from coaltree.tree.sample import TreeSample
    >>> texts = ["(((a:1,b:1):1,c:2):1,((d:1,e:1):1,f:2):1);", "(((a:1,c:1):1,b:2):1,((d:1,f:1):1,e:2):1);"]
    >>> clades = ConditionalClades(TreeSample([Tree.from_newick(text, "abcdef") for text in texts], weights=[3, 1]))
    >>> clades.n_trees()
    4
    >>> mixed = Tree.from_newick("(((a:1,b:1):1,c:2):1,((d:1,f:1):1,e:2):1);")
    >>> round(math.exp(clades.log_probability(mixed)), 4)
    0.1875
    >>> round(clades.entropy(), 4)
    1.1247
    """

    def __init__(self, sample: WeightedTrees) -> None:
        self._leaf_names = sample.trees[0].leaf_names
        n = len(self._leaf_names)
        weights: dict[int, float] = {}
        for tree, weight in zip(sample.trees, sample.weights.tolist(), strict=True):
            if weight > 0:
                for mask in clade_masks(tree):
                    weights[mask] = weights.get(mask, 0.0) + weight
        # Nodes are numbered as in a tree: leaves first, then clades, smaller ones first.
        clades = sorted(weights, key=int.bit_count)
        self._masks = [1 << leaf for leaf in range(n)] + clades
        # All trees have the root, so its weight is the total, summed in the same order.
        total = weights[clades[-1]] if clades else 1.0
        self._log_shares = np.log([1.0] * n + [weights[mask] / total for mask in clades])
        self._log_share_of = dict(zip(clades, self._log_shares[n:].tolist(), strict=True))
        self._splits = _find_splits(n, clades)
        self._log_sums = self._sweep(_log_add)

    @property
    def n_clades(self) -> int:
        """Number of distinct clades of at least two leaves."""
        return len(self._log_share_of)

    def log_probability(self, tree: Tree) -> float:
        """Return the log probability of a topology.

        Parameters
        ----------
        tree : Tree
            A tree over the leaf names of the sample, in any order. Its heights do not matter.

        Returns
        -------
        float
            Minus infinity if the sample does not have all clades of the tree.

        Raises
        ------
        InputError
            If the leaf names differ, or if the tree is a summary with polytomies.
        """
        tree = check_tree(tree, "tree")
        if tree.leaf_names != self._leaf_names:
            differences = describe_name_differences(tree.leaf_names, self._leaf_names)
            if differences:
                raise InputError(f"The tree has other leaves than the sample: {differences}; all need the same leaves.")
            tree = tree.reorder(self._leaf_names)
        if not np.all(_is_clade(tree)):
            raise InputError("The tree has polytomies; only binary trees have a probability.")
        logs = [self._log_share_of.get(mask, -math.inf) for mask in clade_masks(tree)]
        return math.fsum(logs) - float(self._log_sums[-1])

    def best_tree(self) -> Tree:
        """Return the most probable topology, the CCD0 tree.

        Returns
        -------
        Tree
            Its merges have the heights 1, 2, ..., smaller clades first; see :meth:`coaltree.TreeSample.ccd0` for the
            heights of the sample. If several splits of a clade are equally good, compare their parts without the first
            row of the clade: the split whose part has fewer leaves is taken, then the one whose part has the earlier rows.
        """
        n = len(self._leaf_names)
        best = self._sweep(np.maximum.reduceat)
        interior = [len(best) - 1] if n > 1 else []
        choice: dict[int, tuple[int, int]] = {}
        for node in interior:  # the list grows during the loop
            splits = slice(*self._splits.bounds[node - n : node - n + 2])
            parts = np.column_stack([self._splits.first[splits], self._splits.second[splits]])
            scores = best[parts].sum(axis=1)
            # Equal products of shares differ by rounding.
            equal = parts[scores > scores.max() - ROUNDING].tolist()
            choice[node] = min(equal, key=lambda split: _split_order(self._masks[split[0]], self._masks[split[1]]))
            interior.extend(part for part in choice[node] if part >= n)
        # Order by size, then by rows, so that the numbers of the merges do not depend on the order of the sample.
        interior.sort(key=lambda node: (self._masks[node].bit_count(), _rows(self._masks[node])))
        numbers = {leaf: leaf for leaf in range(n)} | {node: n + k for k, node in enumerate(interior)}
        children = np.array([sorted(numbers[part] for part in choice[node]) for node in interior], dtype=np.intp)
        return Tree(children.reshape(-1, 2), [0.0] * n + [float(k) for k in range(1, n)], self._leaf_names)

    def entropy(self) -> float:
        """Return the entropy of the distribution over topologies, in nats.

        Its exponential is the number of equally probable topologies with the same entropy.
        """
        first, second, bounds, levels = self._splits
        entropies = np.zeros(len(self._masks))
        n = len(self._leaf_names)
        log_sums = self._log_sums - self._log_shares
        for begin, end in levels:
            splits = slice(bounds[begin], bounds[end])
            a, b = first[splits], second[splits]
            of_clade = np.repeat(log_sums[n + begin : n + end], np.diff(bounds[begin : end + 1]))
            log_p = self._log_sums[a] + self._log_sums[b] - of_clade
            terms = np.exp(log_p) * (entropies[a] + entropies[b] - log_p)
            entropies[n + begin : n + end] = np.add.reduceat(terms, bounds[begin:end] - bounds[begin])
        return max(float(entropies[-1]), 0.0)

    def n_trees(self) -> int:
        """Return the number of topologies with positive probability."""
        first, second, bounds = (array.tolist() for array in self._splits[:3])
        counts = [1] * len(self._leaf_names)
        for begin, end in pairwise(bounds):
            counts.append(sum(counts[first[k]] * counts[second[k]] for k in range(begin, end)))
        return counts[-1]

    def __repr__(self) -> str:
        return f"<ConditionalClades: {self.n_clades} clades of {len(self._leaf_names)} leaves>"

    def _sweep(self, combine: Callable[[FloatArray, IntArray], FloatArray]) -> FloatArray:
        """Return a log value of every leaf and clade: its log share, plus the combined sums of the values of its splits."""
        first, second, bounds, levels = self._splits
        n = len(self._leaf_names)
        values = self._log_shares.copy()
        for begin, end in levels:
            splits = slice(bounds[begin], bounds[end])
            scores = values[first[splits]] + values[second[splits]]
            values[n + begin : n + end] += combine(scores, bounds[begin:end] - bounds[begin])
        return values


class _Splits(NamedTuple):
    """The splits of all clades, clade by clade; smaller clades first."""

    first: IntArray  # node of one part: a leaf, or the number of leaves plus the number of a clade
    second: IntArray
    bounds: IntArray  # the splits of clade k are those from bounds[k] to bounds[k + 1]
    levels: list[tuple[int, int]]  # ranges of clades of the same size; their parts are in earlier ranges


def _find_splits(n_leaves: int, clades: list[int]) -> _Splits:
    """Find all pairs of clades or leaves that partition a clade, for every clade.

    Exactly one part of a split has the clade's rarest leaf, the one in the fewest clades. It is the rarest leaf of that
    part too, so only clades with the same rarest leaf are compared. Every leaf has a random key and every clade the sum of
    its keys modulo 2^64, so the other part has the difference of two sums. Two bit tables rule out almost all differences
    that no clade has. The others are compared leaf by leaf, so the result is exact.

    Parameters
    ----------
    n_leaves : int
    clades : list of int
        Masks of distinct clades of at least two leaves, smaller clades first.

    Returns
    -------
    _Splits
        The first part of a split has the clade's rarest leaf.
    """
    n_bytes = (n_leaves + 7) // 8
    nodes = [1 << leaf for leaf in range(n_leaves)] + clades
    packed = np.frombuffer(b"".join(mask.to_bytes(n_bytes, "little") for mask in nodes), np.uint8)
    packed = packed.reshape(-1, n_bytes)
    sizes = np.array([mask.bit_count() for mask in nodes])
    sums, rarest = _sum_keys(packed, n_leaves)

    by_sum = np.argsort(sums, kind="stable")
    sorted_sums = sums[by_sum]
    shift = np.uint64(64 - max(10, int(16 * len(nodes)).bit_length()))
    low_bits = np.uint64((1 << (64 - int(shift))) - 1)
    high_table, low_table = np.zeros((2, int(low_bits) + 1), dtype=np.bool_)
    high_table[sums >> shift] = True
    low_table[sums & low_bits] = True

    splits = []
    groups = np.argsort(rarest, kind="stable")  # of the nodes with the same rarest leaf, smaller ones first
    ends = np.cumsum(np.bincount(rarest, minlength=n_leaves)).tolist()
    for begin, end in pairwise([0, *ends]):
        group = groups[begin:end]
        keys = sums[group]
        n_rows = max(1, _BLOCK // len(group))
        for k in range(1, len(group), n_rows):  # the first is the leaf itself, which has no parts
            last = min(k + n_rows, len(group))
            differences = keys[k:last, None] - keys[None, : last - 1]
            # Lookups are three times as fast with signed indices that need no check.
            hit = np.flatnonzero(high_table.take((differences >> shift).view(np.intp), mode="wrap"))
            rest = differences.ravel()[hit]
            is_split = low_table[rest & low_bits]
            hit, rest = hit[is_split], rest[is_split]
            at = np.minimum(np.searchsorted(sorted_sums, rest), len(nodes) - 1)
            is_split = sorted_sums[at] == rest
            row, column = np.divmod(hit[is_split], last - 1)
            splits.append((group[k + row], group[column], by_sum[at[is_split]]))
    none = np.zeros(0, dtype=np.intp)
    parent, first, second = (np.concatenate(parts) for parts in zip((none, none, none), *splits, strict=True))
    exact = np.all((packed[first] ^ packed[second]) == packed[parent], axis=1)
    exact &= sizes[first] + sizes[second] == sizes[parent]
    order = np.flatnonzero(exact)
    order = order[np.argsort(parent[order], kind="stable")]
    parent, first, second = parent[order], first[order], second[order]
    bounds = np.searchsorted(parent, np.arange(n_leaves, len(nodes) + 1))
    starts = np.flatnonzero(np.diff(sizes[n_leaves:], prepend=0)).tolist()
    return _Splits(first, second, bounds, list(pairwise([*starts, len(clades)])))


# Pairs of clades compared at once, so that they stay in the processor's cache.
_BLOCK = 1 << 16


def _sum_keys(packed: NDArray[np.uint8], n_leaves: int) -> tuple[NDArray[np.uint64], IntArray]:
    """Return the sum of the keys of each clade's leaves, and its rarest leaf."""
    keys = np.random.default_rng(0).integers(0, 2**64, size=n_leaves, dtype=np.uint64)
    blocks = [slice(k, k + _CLADES) for k in range(0, len(packed), _CLADES)]

    def unpack(block: slice) -> NDArray[np.uint8]:
        return np.unpackbits(packed[block], axis=1, count=n_leaves, bitorder="little")

    counts = sum((unpack(block).sum(axis=0, dtype=np.intp) for block in blocks), np.zeros(n_leaves, dtype=np.intp))
    order = np.argsort(counts, kind="stable")
    sums = [unpack(block).astype(np.uint64) @ keys for block in blocks]
    rarest = [order[np.argmax(unpack(block)[:, order], axis=1)] for block in blocks]
    return np.concatenate(sums), np.concatenate(rarest)


_CLADES = 4096  # masks unpacked at once


def _rows(mask: int) -> list[int]:
    """Return the positions of the bits of a mask, lowest first."""
    packed = np.frombuffer(mask.to_bytes((mask.bit_length() + 7) // 8, "little"), dtype=np.uint8)
    rows: list[int] = np.flatnonzero(np.unpackbits(packed, bitorder="little")).tolist()
    return rows


def _split_order(a: int, b: int) -> tuple[int, list[int]]:
    """Return the size and the rows of the part without the first row; see :meth:`ConditionalClades.best_tree`."""
    first = (a | b) & -(a | b)
    part = b if a & first else a
    return part.bit_count(), _rows(part)


def _log_add(logs: FloatArray, starts: IntArray) -> FloatArray:
    """Return the log of the sum of exponentials over each range of the array."""
    highest = np.maximum.reduceat(logs, starts)
    lengths = np.diff(starts, append=len(logs))
    sums: FloatArray = np.add.reduceat(np.exp(logs - np.repeat(highest, lengths)), starts)
    return highest + np.log(sums)
