"""Where to cut a tree into flat clusters by default.

1. If clusters are crisp, by rule 3 with a large weight of the silhouette; otherwise at a clear gap between the heights of
   successive splits, if there is one.
2. Not at all, if the splits look like those of noise and the clusters of no cut are distinct.
3. Otherwise into the number of clusters with the largest sum of modularity and weighted silhouette, both divided by their
   maximum. The silhouette has a small weight, so that it decides between numbers with nearly the same modularity. It has a
   larger weight if clusters are clear: if the largest silhouette is well above those of noise.

The *modularity* of a cut is the sum, over all pairs of rows in one cluster, of the difference between their correlation and the
mean correlation of two rows, as a share of all pairs. Correlations are those of the tree: ``exp(-2 rate h)`` for rows that merge
at height h. It prefers clusters that cover most similar pairs, hence few large ones. The *silhouette* is the mean over rows of
``(b - a) / max(a, b)``, where a is the distance of a row to the mean of its cluster, and b that to the nearest other mean, in the
coordinates of the neighbour search. It prefers compact clusters. On labelled tables the sum is at least as good as each of its
terms, and it finds more of many blobs than the modularity, which is largest for the cut at the mean correlation.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..process.base import Process
from ..tree.cut import cut_with_min_size, height_to_resolution, label_leaves, resolution_to_height, split_heights
from ..tree.tree import Tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# A gap: one of the first splits is at least `min_ratio` times as high as the next, and at least as high as `min_height`. Lower
# splits have few rows each, and their heights vary by chance, so that they must differ more.
MIN_GAP_RATIO, MIN_GAP_HEIGHT, MAX_SPLITS = 2.5, 0.3, 10
MIN_LATE_GAP_RATIO, MIN_LATE_GAP_HEIGHT, MAX_LATE_SPLITS = 8.0, 0.1, 40
# Splits look like those of noise if the highest is less than max(FLAT_RATIO, 1 + FLAT_COLUMNS / D) times as high as split
# number FLAT_SPLIT. With fewer columns the splits of noise differ more.
FLAT_RATIO, FLAT_SPLIT, FLAT_COLUMNS = 1.35, 8, 2.8
LOW_CORRELATION = 0.18  # a split is high if rows on its two sides are less correlated
# A split of a small table is also high if it is above those of noise. The highest split of a table of noise with n rows and D
# independent real columns is about a + b log D + c log(D)^2 + d log n: `python benchmarks/cuts.py --noise`.
NOISE_HEIGHT = (0.22, 0.3, 0.08, 0.23)
# Silhouettes of cuts of noise, Gaussian or uniform, are nearly always below a + b / D^2 + 1 / sqrt(n) for D dimensions.
NOISE_SILHOUETTE = (0.46, 0.22)
MAX_CLUSTERS = 25  # whose modularity and silhouette are compared
# Weights of the silhouette: usually, where the largest exceeds the bound for noise by so much, and where it is at least so large.
SILHOUETTE_WEIGHT = 0.2
CLEAR_SILHOUETTE_WEIGHT, CLEAR_EXCESS = 2.0, 0.08
CRISP_SILHOUETTE_WEIGHT, CRISP_SILHOUETTE = 8.0, 0.8
# Equal rows make silhouettes large, whatever the clusters. If fewer rows are distinct, silhouettes are not used.
MIN_DISTINCT_SHARE = 0.8
MIN_DISTINCT_ROWS = 3  # of a cluster on average, above a gap: equal rows would be separated from others by one
MAX_COVARIANCE_ROWS = 300  # that the number of dimensions is estimated from
MAX_SILHOUETTE_ROWS = 3_000  # evenly spaced in the drawing order of the tree

Reason = Literal["one row", "gap", "no structure", "no structure within", "distinct clusters"]


class DefaultCut(NamedTuple):
    """The default height of a cut, the reason for it, and the resolution if clusters are cut where they are most distinct."""

    height: float
    reason: Reason
    resolution: float | None = None


def default_cut(tree: Tree, X: FloatArray, process: Process, min_size: int, rate: float, n_real: int) -> DefaultCut:
    """Return where to cut a tree by default.

    Splits are merges with at least `min_size` leaves on both sides. If clusters are crisp, the tree is cut where they are most
    distinct. If one of the ten highest splits is at least 2.5 times as high as the next, or one of the forty highest eight
    times, it is cut between the two with the largest ratio. It is not cut at all if the first eight are about equally high, as
    for noise, or if none is high, unless clusters are distinct. If eight later ones are high and about equally so, it is cut
    above them. Otherwise it is cut where clusters are most distinct.

    Parameters
    ----------
    tree : Tree
    X : ndarray of shape (n, D)
        Its rows: real columns, then codes of categories; NaN is a missing cell.
    process : Process
        A resolved one.
    min_size : int
    rate : float
        Rate of the process that correlations refer to.
    n_real : int
        Number of real columns.

    Returns
    -------
    DefaultCut
    """
    if tree.n_leaves == 1:
        return DefaultCut(math.inf, "one row")
    heights = split_heights(tree, min_size)
    n_distinct = len(np.unique(X, axis=0))
    gap = find_gap(heights[: max(n_distinct // MIN_DISTINCT_ROWS, 1)])
    scores = score_cuts(tree, X, process, min_size, rate)
    is_crisp = scores.silhouette.max(initial=0.0) >= CRISP_SILHOUETTE
    if is_crisp and (gap is None or gap < MAX_CLUSTERS):
        return _most_distinct(heights, scores, CRISP_SILHOUETTE_WEIGHT, rate)
    if gap is not None:
        return DefaultCut(float(heights[gap]), "gap")
    n_columns = max(count_columns(X, n_real), 1.0)
    flat_ratio = max(FLAT_RATIO, 1 + FLAT_COLUMNS / max(X.shape[1], 1))
    flat = heights[: 1 - FLAT_SPLIT] < flat_ratio * heights[FLAT_SPLIT - 1 :]  # from each split to the eighth from it
    low_height = resolution_to_height(LOW_CORRELATION, rate)
    n_rows = math.sqrt(tree.n_leaves * n_distinct)  # splits are lower if rows are equal
    is_low = heights.max(initial=0.0) <= min(low_height, _noise_height(n_rows, n_columns) / (2 * rate))
    excess = scores.silhouette.max(initial=0.0) - _noise_silhouette(tree.n_leaves, scores.n_dimensions)
    is_distinct = excess >= 0
    if not len(heights) or (not is_distinct and (is_low or flat[:1].any())):
        return DefaultCut(math.inf, "no structure")
    # Many columns of noise make all splits high, also those inside of clear clusters.
    flat &= heights[FLAT_SPLIT - 1 :] > low_height
    if not is_distinct and flat[:MAX_SPLITS].any():
        return DefaultCut(float(heights[int(flat.argmax())]), "no structure within")
    weight = CLEAR_SILHOUETTE_WEIGHT if excess >= CLEAR_EXCESS else SILHOUETTE_WEIGHT
    return _most_distinct(heights, scores, weight, rate)


def _most_distinct(heights: FloatArray, scores: CutScores, weight: float, rate: float) -> DefaultCut:
    """Return the cut with the largest sum of modularity and weighted silhouette, as shares of their largest values."""
    distinctness = _share_of_largest(scores.modularity) + weight * _share_of_largest(scores.silhouette)
    n_splits = 1 + int(distinctness.argmax())
    below = heights[n_splits] if n_splits < len(heights) else 0.0
    height = float(heights[n_splits - 1] + below) / 2
    return DefaultCut(height, "distinct clusters", float(height_to_resolution(np.array(height), rate)))


def _share_of_largest(scores: FloatArray) -> FloatArray:
    """Divide scores by the largest; all are 0 if none is positive."""
    largest = scores.max(initial=0.0)
    shares: FloatArray = np.maximum(scores, 0) / largest if largest > 0 else np.zeros(len(scores))
    return shares


def find_gap(heights: FloatArray) -> int | None:
    """Return the number of splits above a clear gap, or None.

    Parameters
    ----------
    heights : ndarray
        Of splits, the highest first.

    Examples
    --------
    >>> import numpy as np
    >>> find_gap(np.array([0.5, 0.02, 0.01]))
    1
    """
    ratios = heights[:-1] / np.maximum(heights[1:], np.finfo(float).tiny)
    for min_ratio, min_height, max_splits in (
        (MIN_GAP_RATIO, MIN_GAP_HEIGHT, MAX_SPLITS),
        (MIN_LATE_GAP_RATIO, MIN_LATE_GAP_HEIGHT, MAX_LATE_SPLITS),
    ):
        first = ratios[: min(int(np.count_nonzero(heights[:-1] >= min_height)), max_splits)]
        if first.max(initial=0) >= min_ratio:
            return 1 + int(first.argmax())
    return None


class CutScores(NamedTuple):
    """Scores of the cuts into 2, 3, ... clusters, and the effective number of dimensions that rows differ in."""

    modularity: FloatArray
    silhouette: FloatArray
    n_dimensions: float


def score_cuts(tree: Tree, X: FloatArray, process: Process, min_size: int, rate: float) -> CutScores:
    """Return the modularity and the silhouette of the cuts into 2, 3, ... clusters, at most 25.

    Silhouettes are 0 if many rows are equal.

    Parameters
    ----------
    tree : Tree
    X : ndarray of shape (n, D)
    process : Process
    min_size : int
    rate : float

    Returns
    -------
    CutScores
    """
    n = tree.n_leaves
    n_cuts = min(len(split_heights(tree, min_size)), MAX_CLUSTERS - 1)
    cuts = [np.array(cut_with_min_size(tree, min_size, n_clusters=k)) for k in range(2, n_cuts + 2)]
    if not cuts:
        return CutScores(np.empty(0), np.empty(0), 1.0)
    excess = _excess_correlations(tree, rate)
    modularity = np.array([excess[nodes].sum() for nodes in cuts]) / (n * (n - 1) / 2)
    rows = np.sort(tree.leaf_order[np.linspace(0, n - 1, min(n, MAX_SILHOUETTE_ROWS)).astype(np.intp)])
    if len(np.unique(X[rows], axis=0)) < MIN_DISTINCT_SHARE * len(rows):
        return CutScores(modularity, np.zeros(len(cuts)), 1.0)
    clusters = np.unique(np.concatenate(cuts))
    member = np.array([label_leaves(tree, [node])[rows] == 0 for node in clusters])
    points = _leaf_points(X[rows], process, 1 / (2 * rate))
    distances = _distances_to_means(points, member)
    silhouette = [_mean_silhouette(distances[at], member[at]) for at in (np.searchsorted(clusters, c) for c in cuts)]
    return CutScores(modularity, np.array(silhouette), _count_dimensions(points))


def _excess_correlations(tree: Tree, rate: float) -> FloatArray:
    """Return, for each node, the sum over pairs of leaves below it of their correlation minus the mean over all pairs."""
    pairs = tree.leaf_counts[tree.children].astype(np.float64).prod(axis=1)
    correlations = height_to_resolution(tree.merge_heights, rate)
    merge_excess = pairs * (correlations - np.average(correlations, weights=pairs))
    # In the drawing order, the two sides of each merge meet at a position that no other merge has.
    first = tree.first_positions
    meets = np.zeros(tree.n_leaves)
    meets[first[tree.children].max(axis=1)] = merge_excess
    total = np.cumsum(meets)
    excess: FloatArray = total[first + tree.leaf_counts - 1] - total[first]
    return excess


def _leaf_points(X: FloatArray, process: Process, height: float) -> FloatArray:
    """Return the coordinates of rows, shape ``(n_rows, n_coordinates)``."""
    forest = process.forest(X, len(X))
    points: FloatArray = process.lineage_points(forest, len(X), height).T.astype(np.float64)
    return points


def _distances_to_means(points: FloatArray, member: NDArray[np.bool_]) -> FloatArray:
    """Return root mean squared distances of points to the means of clusters over the coordinates that both have.

    Parameters
    ----------
    points : ndarray of shape (n, C)
        NaN is unknown.
    member : ndarray of bool, shape (n_clusters, n)

    Returns
    -------
    ndarray of shape (n_clusters, n)
        Infinite if they have no coordinate in common.
    """
    is_known = ~np.isnan(points)
    known, filled = is_known.astype(np.float64), np.where(is_known, points, 0.0)
    weights = member.astype(np.float64)
    counts = weights @ known
    means = np.divide(weights @ filled, counts, out=np.zeros_like(counts), where=counts > 0)
    has_mean = (counts > 0).astype(np.float64)
    squares = has_mean @ (filled**2).T - 2 * means @ filled.T + means**2 @ known.T
    shared = has_mean @ known.T
    mean_squares = np.divide(np.maximum(squares, 0), shared, out=np.full_like(squares, np.inf), where=shared > 0)
    distances: FloatArray = np.sqrt(mean_squares)
    return distances


def _count_dimensions(points: FloatArray) -> float:
    """Return the effective number of dimensions, ``(sum l)^2 / sum l^2`` with the eigenvalues l of the covariance matrix.

    It is 1 if all columns are functions of one, and the number of columns if they are independent with equal variances.
    """
    step = -(-len(points) // MAX_COVARIANCE_ROWS)
    some = points[::step]
    known = ~np.isnan(some)
    means = np.where(known, some, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    centered = np.where(known, some - means, 0.0)
    products = centered @ centered.T
    squares = float((products**2).sum())
    return float(np.trace(products)) ** 2 / squares if squares > 0 else 1.0


def _mean_silhouette(distances: FloatArray, member: NDArray[np.bool_]) -> float:
    """Return the mean silhouette of points, from their distances to the means of clusters."""
    inside = np.flatnonzero(member.any(axis=0) & np.isfinite(distances).all(axis=0))
    if not len(inside):
        return 0.0
    distances, member = distances[:, inside], member[:, inside]
    own = distances[member.argmax(axis=0), np.arange(len(inside))]
    nearest = np.where(member, np.inf, distances).min(axis=0)
    widest = np.maximum(own, nearest)
    return float(np.mean(np.divide(nearest - own, widest, out=np.zeros_like(own), where=widest > 0)))


def count_columns(X: FloatArray, n_real: int) -> float:
    """Return the number of real columns whose noise gives splits as high as the noise of a table.

    A categorical column counts ``(1 - sum p^2)^2`` with the shares p of its categories: two rows rarely differ in a column with
    one frequent category.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        Real columns, then codes of categories; NaN is a missing cell.
    n_real : int
    """
    total = float(n_real)
    for codes in X[:, n_real:].T:
        counts = np.unique(codes[~np.isnan(codes)], return_counts=True)[1]
        shares = counts / max(int(counts.sum()), 1)
        total += (1 - float(shares @ shares)) ** 2
    return total


def _noise_height(n_rows: float, n_columns: float) -> float:
    """Return a bound on the highest split of most tables of noise, for a rate of 1/2."""
    constant, slope, bend, growth = NOISE_HEIGHT
    return constant + slope * math.log(n_columns) + bend * math.log(n_columns) ** 2 + growth * math.log(n_rows)


def _noise_silhouette(n_rows: int, n_dimensions: float) -> float:
    """Return a bound on the silhouettes of cuts of most tables of noise."""
    constant, slope = NOISE_SILHOUETTE
    return constant + slope / n_dimensions**2 + 1 / math.sqrt(n_rows)
