"""Trees with leaves taken off, and with leaves put on.

Where a new leaf attaches to a tree, before anything is known of it.

Walking back from the present, a new lineage meets each of the k(h) lineages that live at height h at rate 1. The density of
attaching at h to one of them is ``exp(-(integral of k from 0 to h))``; over all branches and the stem above the root it adds
up to one: eq. (9.2).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .tree import Tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def without_leaves(tree: Tree, leaves: Iterable[int]) -> Tree:
    """Return the tree of all other leaves, in their order.

    Parameters
    ----------
    tree : Tree
    leaves : iterable of int
        What to take off; at least one leaf must stay.

    Returns
    -------
    Tree

    Examples
    --------
    >>> import coaltree as ct
    >>> tree = ct.Tree.from_newick("((a:1,b:1):1,c:2);")
    >>> without_leaves(tree, [0]).to_newick()
    '(b:2.0,c:2.0);'
    """
    n = tree.n_leaves
    gone = {int(leaf) for leaf in leaves}
    if not all(0 <= leaf < n for leaf in gone) or len(gone) == n:
        raise InputError(f"leaves must be some of 0 to {n - 1}, and not all of them.")
    kept = [leaf for leaf in range(n) if leaf not in gone]
    here = [-1] * n  # what each node has become, -1 if nothing of it is left
    for place, leaf in enumerate(kept):
        here[leaf] = place
    children: list[int] = []
    heights = [0.0] * len(kept)
    lefts, rights = tree.children[:, 0].tolist(), tree.children[:, 1].tolist()
    for left, right, height in zip(lefts, rights, tree.merge_heights.tolist(), strict=True):
        a, b = here[left], here[right]
        if a >= 0 and b >= 0:
            here.append(len(heights))
            children += (a, b)
            heights.append(height)
        else:
            here.append(max(a, b))
    names = [tree.leaf_names[leaf] for leaf in kept]
    return Tree(np.array(children, dtype=np.intp).reshape(-1, 2), np.array(heights), names)


def with_leaves(
    tree: Tree, nodes: IntArray, heights: FloatArray, positions: IntArray, names: Sequence[str] | None = None
) -> Tree:
    """Return the tree with leaves attached to its branches, each at its own point.

    Parameters
    ----------
    tree : Tree
    nodes : ndarray of int, shape (k,)
        The nodes below the branches.
    heights : ndarray of shape (k,)
        On these branches.
    positions : ndarray of int, shape (k,)
        Which leaves of the new tree they become; the old ones take the others, in their order.
    names : sequence of str, optional
        Names of all leaves.

    Returns
    -------
    Tree
    """
    n = tree.n_leaves + len(nodes)
    others = np.setdiff1d(np.arange(n), positions)
    grafts: dict[int, list[tuple[float, int]]] = {}
    for node, height, position in zip(nodes.tolist(), heights.tolist(), positions.tolist(), strict=True):
        grafts.setdefault(node, []).append((height, position))
    # Merges in an order in which no parent comes before its child, so that a stable sort by height keeps it so.
    ages: list[float] = []
    sides: list[int] = []  # two for each merge: leaves, or n and more for earlier merges
    top = others.tolist()  # the lineage that each node of the old tree stands for, above its grafts
    flat, old_heights = tree.children.ravel().tolist(), tree.heights.tolist()
    for node in range(tree.n_nodes):
        if node >= tree.n_leaves:
            place = 2 * (node - tree.n_leaves)
            sides += (top[flat[place]], top[flat[place + 1]])
            ages.append(old_heights[node])
            top.append(n + len(ages) - 1)
        if node in grafts:
            for height, position in sorted(grafts[node]):
                sides += (top[node], position)
                ages.append(height)
                top[node] = n + len(ages) - 1
    order = np.argsort(np.array(ages), kind="stable")
    number = np.arange(2 * n - 1)
    number[n + order] = np.arange(n, 2 * n - 1)
    children = number[np.array(sides, dtype=np.intp).reshape(-1, 2)[order]]
    return Tree(children, np.concatenate([np.zeros(n), np.array(ages)[order]]), names)


def ancestor(tree: Tree, leaf: int, height: float) -> int:
    """Return the last node on the way up from a leaf that is not above a height."""
    node, root = int(leaf), tree.n_nodes - 1
    while node != root and tree.heights[tree.parents[node]] <= height:
        node = int(tree.parents[node])
    return node


class Top(NamedTuple):
    """A tree cut down to its oldest merges."""

    tree: Tree  # its leaves are the tips, at height 0 and without their names
    nodes: NDArray[np.intp]  # (2 n_tips - 1,), which node of the whole tree each of its nodes is


def top_of(tree: Tree, n_tips: int) -> Top:
    """Cut a tree down to its oldest merges.

    Parameters
    ----------
    tree : Tree
    n_tips : int
        From 1 to the number of leaves; one more than the number of merges that are kept.

    Returns
    -------
    Top
        Sides are as in the whole tree.

    Examples
    --------
    >>> from coaltree import Tree
    >>> top = top_of(Tree.from_newick("((a:1,b:1):2,(c:2,d:2):1);"), 3)
    >>> top.nodes.tolist()
    [2, 3, 4, 5, 6]
    >>> top.tree.children.tolist()
    [[0, 1], [2, 3]]
    """
    first = tree.n_nodes - n_tips + 1
    kept = tree.children[first - tree.n_leaves :]
    tips = kept[kept < first] if n_tips > 1 else np.array([tree.root])
    nodes = np.concatenate([tips, np.arange(first, tree.n_nodes)])
    number = np.empty(tree.n_nodes, dtype=np.intp)
    number[nodes] = np.arange(len(nodes))
    heights = np.concatenate([np.zeros(n_tips), tree.heights[first:]])
    return Top(Tree(number[kept], heights), nodes)


SHORTEST = 1e-4  # cells begin to double in length at this share of the height of the branch's top
BRANCHES_AT_ONCE = 50_000
NODES, NODE_WEIGHTS = zip(*(np.polynomial.legendre.leggauss(k) for k in (1, 2, 3)), strict=True)
STEM_NODES, STEM_WEIGHTS = np.polynomial.laguerre.laggauss(6)


class Places(NamedTuple):
    """Points of the branches that stand for all places, ordered by branch, each with its share of the prior."""

    nodes: IntArray  # (points,), the node below
    heights: FloatArray  # (points,)
    low: FloatArray  # (points,), where the stretch of the branch begins that a point stands for
    high: FloatArray  # (points,), where it ends; the stretches of a branch follow one another
    log_masses: FloatArray  # (points,), adding up to one over all points


class Survival:
    """The new lineage's survival: ``log S(h)`` and the logarithm of ``integral of S from h on``, S(h) = exp(-integral of k)."""

    def __init__(self, tree: Tree) -> None:
        n = tree.n_leaves
        self.knots = np.concatenate([[0.0], tree.merge_heights])
        self.lineages = np.arange(n, 0, -1).astype(np.float64)
        steps = np.diff(self.knots) * self.lineages[:-1]
        self.log_survivals = -np.concatenate([[0.0], np.cumsum(steps)])
        own = self.log_survivals.copy()  # one lineage above the root, whose tail is its survival
        own[:-1] = own[:-1] + _log_share(steps) - np.log(self.lineages[:-1])
        self.log_tails = np.logaddexp.accumulate(own[::-1])[::-1].copy()

    def log_survival(self, heights: FloatArray) -> FloatArray:
        """Return log S at heights."""
        j = np.searchsorted(self.knots, heights, side="right") - 1
        return np.asarray(self.log_survivals[j] - self.lineages[j] * (heights - self.knots[j]))

    def log_mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the logarithm of the integral of S over intervals, whose ends may be infinite."""
        j = np.searchsorted(self.knots, low, side="right") - 1
        finite = np.where(np.isinf(high), low, high)
        same = (np.searchsorted(self.knots, finite, side="left") - 1 <= j) & ~np.isinf(high)
        within = self.log_survival(low) + _log_share(self.lineages[j] * (finite - low)) - np.log(self.lineages[j])
        across = np.flatnonzero(~same)
        ends = np.where(np.isinf(high[across]), -np.inf, self._log_tail(finite[across]))
        tails = self._log_tail(low[across])
        with np.errstate(divide="ignore", invalid="ignore"):
            within[across] = tails + np.log(-np.expm1(np.minimum(ends - tails, 0.0)))
        return within

    def _log_tail(self, heights: FloatArray) -> FloatArray:
        j = np.searchsorted(self.knots, heights, side="right") - 1
        last = j == len(self.knots) - 1
        following = np.minimum(j + 1, len(self.knots) - 1)
        left = np.where(last, 0.0, self.lineages[j] * (self.knots[following] - heights))
        start = self.log_survival(heights)
        own = start + _log_share(np.maximum(left, 0.0)) - np.log(self.lineages[j])
        return np.where(last, start, np.logaddexp(own, self.log_tails[following]))


def _log_share(x: FloatArray | float) -> FloatArray:
    """Return ``log(1 - exp(-x))``, minus infinity at 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(-np.expm1(-np.asarray(x))))


def places(tree: Tree, shift: float = 0.0, width: float = 1.1) -> Places:
    """Return points along all branches, and along the stem above the root.

    Each branch is cut into cells that are at most `width` long on the scale of ``log(height + shift)``, since likelihoods
    change with the order of magnitude of the height; a cell has one to three points of Gauss and Legendre, whose masses
    add up to the cell's.

    Parameters
    ----------
    tree : Tree
    shift : float, default 0.0
        A height that makes no difference, such as the variance of noise.
    width : float, default 1.1

    Returns
    -------
    Places
    """
    survival = Survival(tree)
    branches = range(0, tree.n_nodes - 1, BRANCHES_AT_ONCE)
    points = [_of_branches(tree, survival, slice(k, k + BRANCHES_AT_ONCE), shift, width) for k in branches]
    stem_low, stem_high = _stem_cells(tree.heights[-1], shift, width)
    root = tree.n_nodes - 1
    points.append(_points(survival, np.full(len(stem_low), root), stem_low, stem_high, np.full(len(stem_low), 3)))
    top = stem_high[-1] if len(stem_high) else float(tree.heights[-1])
    points.append(_open_end(survival, root, top))
    return Places(*(np.concatenate(parts) for parts in zip(*points, strict=True)))


def _of_branches(tree: Tree, survival: Survival, some: slice, shift: float, width: float) -> Places:
    """Return the points of some branches."""
    below, above = tree.heights[:-1][some], tree.heights[tree.parents[:-1][some]]
    shifts = np.maximum(shift, SHORTEST * above)
    with np.errstate(divide="ignore", invalid="ignore"):
        spans = np.where(above > below, np.log1p((above - below) / (below + shifts)), 0.0)
    counts = np.maximum(np.ceil(spans / width), 1).astype(np.intp)
    counts[above <= below] = 0
    nodes = np.repeat(np.arange(len(below)), counts)
    index = np.arange(len(nodes)) - np.repeat(np.cumsum(counts) - counts, counts)
    base = (below + shifts)[nodes]
    step = (spans / np.maximum(counts, 1))[nodes]
    low = below[nodes] + base * np.expm1(step * index)
    high = np.where(index + 1 == counts[nodes], above[nodes], below[nodes] + base * np.expm1(step * (index + 1)))
    found = _points(survival, some.start + nodes, low, high, 1 + (step > 0.15) + (step > 0.45))
    order = np.argsort(found.nodes, kind="stable")
    return Places(found.nodes[order], *(part[order] for part in found[1:]))


def _stem_cells(root_height: float, shift: float, width: float) -> tuple[FloatArray, FloatArray]:
    """Cut the first unit of the stem, where most of the prior is, as a branch is cut; the rest has no end."""
    start = root_height + max(shift, SHORTEST * max(root_height, 1.0))
    n_cells = math.ceil(math.log1p(1 / start) / width)
    edges = root_height + start * np.expm1(np.linspace(0.0, math.log1p(1 / start), n_cells + 1))
    return edges[:-1], edges[1:]


def _open_end(survival: Survival, root: int, low: float) -> Places:
    """Return points on the stem from a height on; the prior falls off exponentially there."""
    start = float(survival.log_survival(np.array([low]))[0])
    gaps = np.concatenate(
        [[0.0], -np.log1p(-np.cumsum(STEM_WEIGHTS[:-1])), [STEM_NODES[-1] + 1.0]]
    )  # 1: what is left, on average
    return Places(
        np.full(len(STEM_NODES), root),
        low + STEM_NODES,
        low + gaps[:-1],
        low + gaps[1:],
        start + np.log(STEM_WEIGHTS),
    )


def _points(survival: Survival, nodes: IntArray, low: FloatArray, high: FloatArray, counts: IntArray) -> Places:
    """Put so many points into each cell, and share its mass among them."""
    found = []
    masses = survival.log_mass(low, high)
    for count in (1, 2, 3):
        own = np.flatnonzero((counts == count) & (masses > -np.inf))
        x, w = NODES[count - 1], NODE_WEIGHTS[count - 1]
        edges = low[own, None] + (high - low)[own, None] * np.concatenate([[0.0], np.cumsum(0.5 * w)])
        heights = low[own, None] + 0.5 * (high - low)[own, None] * (1 + x)
        log_weights = np.log(w) + survival.log_survival(heights)
        log_weights -= np.logaddexp.reduce(log_weights, axis=1, keepdims=True)
        log_masses = masses[own, None] + log_weights
        of_points = (heights, edges[:, :-1], edges[:, 1:], log_masses)
        found.append(Places(np.repeat(nodes[own], count), *(part.ravel() for part in of_points)))
    return Places(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
