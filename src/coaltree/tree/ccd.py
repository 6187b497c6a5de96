"""Conditional clade distributions: probabilities of all topologies that the clades of a sample can form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .clades import clade_masks
from .newick import describe_name_differences
from .summary import ROUNDING, SummaryTree
from .tree import Tree, check_tree


class WeightedTrees(Protocol):
    """The attributes of a ``TreeSample`` from which the distribution is made."""

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
        self._root = (1 << n) - 1
        weights: dict[int, float] = {}
        for tree, weight in zip(sample.trees, sample.weights.tolist(), strict=True):
            if weight > 0:
                for mask in clade_masks(tree):
                    weights[mask] = weights.get(mask, 0.0) + weight
        # All trees have the root, so its weight is the total, summed in the same order.
        self._log_shares = {mask: math.log(weight / weights[self._root]) for mask, weight in weights.items()}
        self._splits = _find_splits(n, sorted(weights, key=int.bit_count))
        self._log_sums = {1 << leaf: 0.0 for leaf in range(n)}
        for mask, splits in self._splits.items():
            self._log_sums[mask] = self._log_shares[mask] + _log_add([self._score(split) for split in splits])

    @property
    def n_clades(self) -> int:
        """Number of distinct clades of at least two leaves."""
        return len(self._splits)

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
        if isinstance(tree, SummaryTree) and np.any(np.isnan(tree.support)):
            raise InputError("The tree has polytomies; only binary trees have a probability.")
        logs = [self._log_shares.get(mask, -math.inf) for mask in clade_masks(tree)]
        return math.fsum(logs) - self._log_sums[self._root]

    def best_tree(self) -> Tree:
        """Return the most probable topology, the CCD0 tree.

        Returns
        -------
        Tree
            Its merges have the heights 1, 2, ..., smaller clades first; see :meth:`coaltree.TreeSample.ccd0` for the
            heights of the sample. If several splits of a clade are equally good, compare their parts without the first
            row of the clade: the split whose part has fewer leaves is taken, then the one whose part has the earlier rows.
        """
        best: dict[int, float] = {1 << leaf: 0.0 for leaf in range(len(self._leaf_names))}
        choice: dict[int, tuple[int, int]] = {}
        for mask, splits in self._splits.items():
            scores = [best[a] + best[b] for a, b in splits]
            highest = max(scores)
            # Equal products of shares differ by rounding.
            equal = [split for split, score in zip(splits, scores, strict=True) if score > highest - ROUNDING]
            choice[mask] = equal[0] if len(equal) == 1 else min(equal, key=_rank)
            best[mask] = self._log_shares[mask] + highest
        return self._build(choice)

    def entropy(self) -> float:
        """Return the entropy of the distribution over topologies, in nats."""
        entropies: dict[int, float] = {1 << leaf: 0.0 for leaf in range(len(self._leaf_names))}
        for mask, splits in self._splits.items():
            log_sum = self._log_sums[mask] - self._log_shares[mask]
            total = 0.0
            for a, b in splits:
                log_p = self._score((a, b)) - log_sum
                total += math.exp(log_p) * (entropies[a] + entropies[b] - log_p)
            entropies[mask] = total
        return entropies[self._root]

    def n_trees(self) -> int:
        """Return the number of topologies with positive probability."""
        counts: dict[int, int] = {1 << leaf: 1 for leaf in range(len(self._leaf_names))}
        for mask, splits in self._splits.items():
            counts[mask] = sum(counts[a] * counts[b] for a, b in splits)
        return counts[self._root]

    def __repr__(self) -> str:
        return f"<ConditionalClades: {self.n_clades} clades of {len(self._leaf_names)} leaves>"

    def _score(self, split: tuple[int, int]) -> float:
        return self._log_sums[split[0]] + self._log_sums[split[1]]

    def _build(self, choice: dict[int, tuple[int, int]]) -> Tree:
        """Return the tree in which every clade is split as chosen."""
        n = len(self._leaf_names)
        found = [self._root] if n > 1 else []
        for mask in found:  # grows while it is read
            found.extend(part for part in choice[mask] if part in choice)
        # Order by size, then by rows, so that the numbers of the merges do not depend on the order of the sample.
        found.sort(key=lambda mask: (mask.bit_count(), _rows(mask)))
        numbers = {1 << leaf: leaf for leaf in range(n)} | {mask: n + k for k, mask in enumerate(found)}
        children = np.array([sorted(numbers[part] for part in choice[mask]) for mask in found], dtype=np.intp)
        return Tree(children.reshape(-1, 2), [0.0] * n + [float(k) for k in range(1, n)], self._leaf_names)


def _find_splits(n_leaves: int, clades: list[int]) -> dict[int, list[tuple[int, int]]]:
    """Find all pairs of clades or leaves that partition a clade, for every clade.

    Exactly one part of a split has the clade's rarest leaf, the one in the fewest clades. It is the rarest leaf of that
    part too, so only clades with the same rarest leaf are compared.

    Parameters
    ----------
    n_leaves : int
    clades : list of int
        Masks of distinct clades of at least two leaves, smaller clades first.

    Returns
    -------
    dict of int to list of tuple
        Keys are in the order of ``clades``. The first part of a split has the clade's rarest leaf.
    """
    counts = [0] * n_leaves
    rows = {mask: _rows(mask) for mask in clades}
    for members in rows.values():
        for leaf in members:
            counts[leaf] += 1
    rank = {leaf: k for k, leaf in enumerate(sorted(range(n_leaves), key=counts.__getitem__))}
    known = {1 << leaf for leaf in range(n_leaves)}.union(clades)
    earlier: list[list[int]] = [[1 << leaf] for leaf in range(n_leaves)]
    splits: dict[int, list[tuple[int, int]]] = {}
    for mask in clades:
        group = earlier[min(rows[mask], key=rank.__getitem__)]
        splits[mask] = [(part, mask ^ part) for part in group if part & mask == part and mask ^ part in known]
        group.append(mask)
    return splits


def _rows(mask: int) -> list[int]:
    """Return the positions of the bits of a mask, lowest first."""
    packed = np.frombuffer(mask.to_bytes((mask.bit_length() + 7) // 8, "little"), dtype=np.uint8)
    rows: list[int] = np.flatnonzero(np.unpackbits(packed, bitorder="little")).tolist()
    return rows


def _rank(split: tuple[int, int]) -> tuple[int, list[int]]:
    """Return the size and the rows of the part without the first row; see :meth:`ConditionalClades.best_tree`."""
    a, b = split
    first = (a | b) & -(a | b)
    part = b if a & first else a
    return part.bit_count(), _rows(part)


def _log_add(logs: list[float]) -> float:
    """Return the log of a sum of exponentials."""
    highest = max(logs)
    return highest + math.log(math.fsum(math.exp(value - highest) for value in logs))
