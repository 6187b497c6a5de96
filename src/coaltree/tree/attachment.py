"""The prior of where a new leaf attaches to a tree, and quadrature points that represent it.

Going back from the present, a new lineage meets each of the k(h) lineages at height h at rate 1. The density of
attaching to one of them at height h is ``exp(-(integral of k from 0 to h))``; over all branches and the stem above the
root it integrates to one: eq. (9.2).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .tree import Tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MIN_RELATIVE_CELL = 1e-4  # length of the shortest cells, relative to the height of the upper end of the branch
BRANCH_CHUNK = 50_000
GAUSS_NODES, GAUSS_WEIGHTS = zip(*(np.polynomial.legendre.leggauss(k) for k in (1, 2, 3)), strict=True)
STEM_NODES, STEM_WEIGHTS = np.polynomial.laguerre.laggauss(6)


class AttachmentPoints(NamedTuple):
    """Quadrature points on the branches, ordered by branch, each with its prior mass."""

    nodes: IntArray  # (points,), the node below
    heights: FloatArray  # (points,)
    low: FloatArray  # (points,), lower end of the interval that the point represents
    high: FloatArray  # (points,), upper end; the intervals of a branch are adjacent
    log_masses: FloatArray  # (points,), adding up to one over all points


class Survival:
    """Survival of the new lineage, ``S(h) = exp(-integral of k from 0 to h)``.

    Parameters
    ----------
    tree : Tree
    """

    def __init__(self, tree: Tree) -> None:
        n = tree.n_leaves
        self.knots = np.concatenate([[0.0], tree.merge_heights])
        self.lineages = np.arange(n, 0, -1).astype(np.float64)
        steps = np.diff(self.knots) * self.lineages[:-1]
        self.log_survivals = -np.concatenate([[0.0], np.cumsum(steps)])
        log_masses = self.log_survivals.copy()  # one lineage above the root, whose tail is its survival
        log_masses[:-1] = log_masses[:-1] + _log_share(steps) - np.log(self.lineages[:-1])
        self.log_tails = np.logaddexp.accumulate(log_masses[::-1])[::-1].copy()

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
        log_part = start + _log_share(np.maximum(left, 0.0)) - np.log(self.lineages[j])
        return np.where(last, start, np.logaddexp(log_part, self.log_tails[following]))


def _log_share(x: FloatArray | float) -> FloatArray:
    """Return ``log(1 - exp(-x))``, minus infinity at 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(-np.expm1(-np.asarray(x))))


def attachment_points(tree: Tree, shift: float = 0.0, width: float = 1.1) -> AttachmentPoints:
    """Return quadrature points on all branches and on the stem above the root.

    Each branch is divided into cells of length at most `width` on the scale of ``log(height + shift)``, because the
    likelihood changes with the order of magnitude of the height. A cell has one to three Gauss-Legendre points, whose
    masses add up to the mass of the cell.

    Parameters
    ----------
    tree : Tree
    shift : float, default 0.0
        A negligible height, such as the variance of noise.
    width : float, default 1.1

    Returns
    -------
    AttachmentPoints
    """
    survival = Survival(tree)
    branches = range(0, tree.n_nodes - 1, BRANCH_CHUNK)
    points = [_branch_points(tree, survival, slice(k, k + BRANCH_CHUNK), shift, width) for k in branches]
    stem_low, stem_high = _stem_cells(tree.heights[-1], shift, width)
    root = tree.n_nodes - 1
    points.append(_cell_points(survival, np.full(len(stem_low), root), stem_low, stem_high, np.full(len(stem_low), 3)))
    top = stem_high[-1] if len(stem_high) else float(tree.heights[-1])
    points.append(_stem_tail_points(survival, root, top))
    return AttachmentPoints(*(np.concatenate(parts) for parts in zip(*points, strict=True)))


def _branch_points(tree: Tree, survival: Survival, branches: slice, shift: float, width: float) -> AttachmentPoints:
    """Return the points of a slice of the branches."""
    below, above = tree.heights[:-1][branches], tree.heights[tree.parents[:-1][branches]]
    shifts = np.maximum(shift, MIN_RELATIVE_CELL * above)
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
    found = _cell_points(survival, branches.start + nodes, low, high, 1 + (step > 0.15) + (step > 0.45))
    order = np.argsort(found.nodes, kind="stable")
    return AttachmentPoints(found.nodes[order], *(part[order] for part in found[1:]))


def _stem_cells(root_height: float, shift: float, width: float) -> tuple[FloatArray, FloatArray]:
    """Divide the first unit of the stem, which has most of the prior mass, into cells."""
    start = root_height + max(shift, MIN_RELATIVE_CELL * max(root_height, 1.0))
    n_cells = math.ceil(math.log1p(1 / start) / width)
    edges = root_height + start * np.expm1(np.linspace(0.0, math.log1p(1 / start), n_cells + 1))
    return edges[:-1], edges[1:]


def _stem_tail_points(survival: Survival, root: int, low: float) -> AttachmentPoints:
    """Return points on the infinite rest of the stem, where the prior decays exponentially."""
    start = float(survival.log_survival(np.array([low]))[0])
    # Beyond the last point, the mean of the rest is 1.
    gaps = np.concatenate([[0.0], -np.log1p(-np.cumsum(STEM_WEIGHTS[:-1])), [STEM_NODES[-1] + 1.0]])
    return AttachmentPoints(
        np.full(len(STEM_NODES), root),
        low + STEM_NODES,
        low + gaps[:-1],
        low + gaps[1:],
        start + np.log(STEM_WEIGHTS),
    )


def _cell_points(
    survival: Survival, nodes: IntArray, low: FloatArray, high: FloatArray, counts: IntArray
) -> AttachmentPoints:
    """Put the given number of points into each cell, and divide its mass among them."""
    found = []
    masses = survival.log_mass(low, high)
    for count in (1, 2, 3):
        cells = np.flatnonzero((counts == count) & (masses > -np.inf))
        x, w = GAUSS_NODES[count - 1], GAUSS_WEIGHTS[count - 1]
        edges = low[cells, None] + (high - low)[cells, None] * np.concatenate([[0.0], np.cumsum(0.5 * w)])
        heights = low[cells, None] + 0.5 * (high - low)[cells, None] * (1 + x)
        log_weights = np.log(w) + survival.log_survival(heights)
        log_weights -= np.logaddexp.reduce(log_weights, axis=1, keepdims=True)
        log_masses = masses[cells, None] + log_weights
        of_points = (heights, edges[:, :-1], edges[:, 1:], log_masses)
        found.append(AttachmentPoints(np.repeat(nodes[cells], count), *(part.ravel() for part in of_points)))
    return AttachmentPoints(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
