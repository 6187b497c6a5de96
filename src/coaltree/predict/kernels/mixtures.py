"""Mixtures of Gaussians, one for each missing cell: similar components are merged, and quantiles are found.

The components of a cell whose process describes normal scores are Gaussians of scores. The cell's number is doubled, and one is
added for these.
"""

from __future__ import annotations

import numpy as np

try:
    import cython
except ImportError:
    from ..._nocython import cython

from ... import _constants as const
from ... import _math as math
from ... import _stop as stop

# Components are merged if their standard deviations are within a tenth, and their means within a quarter of them. The
# merged component keeps mean and variance of both, so that probabilities change by less than 0.001.
SD_STEP, MEAN_STEP = 0.1, 0.25
MIDDLE_SIZE = 4_000  # class of standard deviation 1
SMALLEST_VARIANCE = 1e-300
LARGEST_PLACE = 4e15  # means further out have no digits left to tell them apart
PLACE_BITS = (1 << 30) - 1
EMPTY = -1
SPREADS = np.exp(SD_STEP * (np.arange(2.0 * MIDDLE_SIZE) - MIDDLE_SIZE))  # the least standard deviation of each class
MOST_STEPS = 80  # of the search for a quantile
TOLERANCE = 1e-7  # of its probability


class Table:
    """A hash table of components with room for `capacity` of them, a power of two."""

    def __init__(self, capacity):
        self.keys = np.full(
            (capacity, 3), EMPTY, dtype=np.intp
        )  # doubled cell, class of standard deviation and of mean
        self.sums = np.empty((capacity, 4))  # weight, first and second moments about a value near the mean, this value
        self.count = 0


class Search:
    """Scratch memory for the quantiles of a cell with at most `most` components."""

    def __init__(self, most):
        self.weight, self.mean, self.precision, self.below, self.slope = np.empty((5, most))  # precision: 1 / sd


def add(table, cell, weight, mean, variance):
    """Add a component to the table, which must have room for it. Those of unknown variance are left out."""
    if not (variance < math.inf and weight > 0):
        return
    mask = table.keys.shape[0] - 1
    size = int(math.log(max(variance, SMALLEST_VARIANCE)) / (2 * SD_STEP) + MIDDLE_SIZE)
    place = max(min(mean / (MEAN_STEP * SPREADS[size]), LARGEST_PLACE), -LARGEST_PLACE)
    key = int(place)
    if key > place:  # int() rounds towards 0
        key -= 1
    slot = _first_slot(cell, size, key, mask)
    while table.keys[slot, 0] != EMPTY and (
        table.keys[slot, 0] != cell or table.keys[slot, 1] != size or table.keys[slot, 2] != key
    ):
        slot = (slot + 1) & mask
    if table.keys[slot, 0] == EMPTY:
        table.keys[slot, 0], table.keys[slot, 1], table.keys[slot, 2] = cell, size, key
        table.sums[slot, 0] = table.sums[slot, 1] = table.sums[slot, 2] = 0.0
        table.sums[slot, 3] = mean
        table.count = table.count + 1
    gap = mean - table.sums[slot, 3]
    table.sums[slot, 0] += weight
    table.sums[slot, 1] += weight * gap
    table.sums[slot, 2] += weight * (gap * gap + variance)


def _first_slot(cell, size, key, mask):
    """Return the slot where the search for a key begins. The sum stays below 2**63."""
    mixed = cell * 1640531513 + size * 1181783497 + (key & PLACE_BITS) * 2038074743
    return (mixed ^ (mixed >> 32)) & mask


def move(table, larger):
    """Move all components to a larger table."""
    mask = larger.keys.shape[0] - 1
    with cython.nogil:
        for old in range(table.keys.shape[0]):
            if table.keys[old, 0] == EMPTY:
                continue
            slot = _first_slot(table.keys[old, 0], table.keys[old, 1], table.keys[old, 2], mask)
            while larger.keys[slot, 0] != EMPTY:
                slot = (slot + 1) & mask
            for k in range(3):
                larger.keys[slot, k] = table.keys[old, k]
            for k in range(4):
                larger.sums[slot, k] = table.sums[old, k]
        larger.count = table.count


def add_all(table, cells, weights, means, variances):
    """Add components, given with doubled cells."""
    with cython.nogil:
        for i in range(cells.shape[0]):
            add(table, cells[i], weights[i], means[i], variances[i])


def add_pairs(table, chosen, slots, pair_rows, shares, least, requested, scored, means, halves):
    """Add the points of chosen pairs as components of the requested cells of their rows, except for shares below `least`.

    scored[k] is 1 if the k-th pair's process describes normal scores.
    """
    n_columns = requested.shape[1]
    with cython.nogil:
        for k in range(chosen.shape[0]):
            stop.poll()
            p, slot = chosen[k], slots[k]
            row = pair_rows[p]
            for d in range(n_columns):
                if not requested[row, d]:
                    continue
                cell = 2 * (row * n_columns + d) + scored[k]
                for i in range(shares.shape[1]):
                    if shares[p, i] >= least and halves[slot, d, i] > 0:
                        add(table, cell, shares[p, i], means[slot, d, i], 0.5 / halves[slot, d, i])


def find_quantiles(first, middle, weights, means, sds, columns, first_knots, knots, scores, levels, deviates, out):
    """Fill out[cell] with the quantiles of cells at increasing levels, at which `deviates` are those of the standard Gaussian.

    Cell c has the components from first[c] to first[c + 1]; from middle[c] on they are of normal scores. Its column has the knots
    from first_knots[columns[c]] on.
    """
    most = 1
    for c in range(columns.shape[0]):
        most = max(most, first[c + 1] - first[c])
    search = Search(most)
    with cython.nogil:
        for c in range(columns.shape[0]):
            stop.poll()
            n, split = first[c + 1] - first[c], middle[c] - first[c]
            begin, end = first_knots[columns[c]], first_knots[columns[c] + 1]
            total = 0.0
            for i in range(n):
                total += weights[first[c] + i]
            for i in range(n):
                search.weight[i] = weights[first[c] + i] / total
                search.mean[i] = means[first[c] + i]
                search.precision[i] = 1 / sds[first[c] + i]
            x, density, before = -math.inf, 0.0, 0.0
            for j in range(levels.shape[0]):
                # The quantile of a mixture lies between those of its components, and above the one before.
                low, high = math.inf, -math.inf
                least, largest = math.inf, -math.inf
                for i in range(split):
                    value = means[first[c] + i] + deviates[j] * sds[first[c] + i]
                    low, high = min(low, value), max(high, value)
                for i in range(split, n):
                    value = means[first[c] + i] + deviates[j] * sds[first[c] + i]
                    least, largest = min(least, value), max(largest, value)
                if split < n:
                    low = min(low, _map(least, scores, knots, begin, end))
                    high = max(high, _map(largest, scores, knots, begin, end))
                low = max(low, x)
                high = max(high, low)
                guess = x + (levels[j] - before) / density if density > 0 else math.inf
                x = guess if low < guess < high else low + 0.5 * (high - low)
                for _ in range(MOST_STEPS):
                    before, density = _distribution(search, split, n, x, begin, end, knots, scores)
                    if abs(before - levels[j]) <= TOLERANCE:
                        break
                    if before < levels[j]:
                        low = x
                    else:
                        high = x
                    guess = x + (levels[j] - before) / density if density > 0 else math.inf
                    x = guess if low < guess < high else low + 0.5 * (high - low)
                    if x <= low or x >= high:
                        break
                out[c, j] = x


def _distribution(search, split, n, x, begin, end, knots, scores):
    """Return the distribution function of a cell and its density at x."""
    _add_gaussians(search, 0, split, x)
    rate = 1.0
    if split < n:
        _add_gaussians(search, split, n, _map(x, knots, scores, begin, end))
        k = _segment(x, knots, begin, end)
        rate = (scores[k + 1] - scores[k]) / (knots[k + 1] - knots[k])
    below = slope = steep = 0.0
    for i in range(n):
        below += search.below[i]
    for i in range(split):
        slope += search.slope[i]
    for i in range(split, n):
        steep += search.slope[i]
    return below, slope + steep * rate


def _add_gaussians(search, first, last, x):
    """Fill the weighted distribution functions and densities of components at x.

    By eq. 26.2.17 of Abramowitz and Stegun, with an error below 1e-7. The exponential is that of `places._put_exps`.
    """
    for i in range(first, last):
        z = (x - search.mean[i]) * search.precision[i]
        away = z if z > 0 else -z
        y = max(-0.5 * z * z, const.MOST_NEGATIVE)
        rounded = y * const.LOG2_E + math.ROUNDER
        k = rounded - math.ROUNDER
        r = (y - k * const.LN2_HIGH) - k * const.LN2_LOW
        q = 1 / 3628800.0
        q = q * r + 1 / 362880.0
        q = q * r + 1 / 40320.0
        q = q * r + 1 / 5040.0
        q = q * r + 1 / 720.0
        q = q * r + 1 / 120.0
        q = q * r + 1 / 24.0
        q = q * r + 1 / 6.0
        q = q * r + 0.5
        q = (q * r + 1.0) * r + 1.0
        density = q * math.two_to(rounded) * 0.3989422804014327
        t = 1.0 / (1.0 + 0.2316419 * away)
        tail = 1.330274429
        tail = tail * t - 1.821255978
        tail = tail * t + 1.781477937
        tail = tail * t - 0.356563782
        tail = (tail * t + 0.319381530) * t * density
        search.below[i] = search.weight[i] * (1.0 - tail if z > 0 else tail)
        search.slope[i] = search.weight[i] * search.precision[i] * density


def _map(x, points, values, begin, end):
    """Return the value at x of the function that is linear between points, and beyond them as in the outermost segments."""
    k = _segment(x, points, begin, end)
    return values[k] + (x - points[k]) * ((values[k + 1] - values[k]) / (points[k + 1] - points[k]))


def _segment(x, points, begin, end):
    """Return the last of the points from `begin` to `end` that is not above x; the first or last but one if there is none."""
    low, high = begin, end - 1
    while high - low > 1:
        middle = (low + high) // 2
        if points[middle] <= x:
            low = middle
        else:
            high = middle
    return low
