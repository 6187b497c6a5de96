"""A density from which a pair's merge height is drawn, close to ``f(h) = exp(-c (h - lowest)) Z(h)`` for ``h >= lowest``.

`lay_grid` puts a few edges over the bulk of f and runs a piece of an exponential from each to the next, through f at both,
and one that never ends from the last. Draws come from these pieces and are weighed with them, so that estimates stay
unbiased however coarse the grid; its quality only decides on their variance. Where f is itself an exponential, as
where no column is shared, nothing is lost at all.

The grid is laid in ``x = log path``, the path from lineage to lineage through the merge with the messages' own variances
on it: there ``path f`` is smooth and near to a bell, whatever the process (for complete real tables it is log-concave).
"""

from __future__ import annotations

import math

from ..compiled import Operation, jit
from ..process import operations as op
from ..process._brownian_kernels import CompleteForest

# A grid is a scratch array with a row each for: height of the edge, log density there, its slope from there on,
# mass from there to the next edge. Its last edge begins the tail.
EDGE, LOG_DENSITY, SLOPE, MASS = range(4)
OFFSETS = (-5.0, -3.5, -2.5, -1.7, -1.0, -0.4, 0.2, 0.8, 1.5, 2.4, 3.5, 5.0)  # edges around the peak, in widths
EXTRA = 24  # edges more on either side, where real cells that agree exactly make f steep over many orders of magnitude
STRIDE = 1.5
GRID_SHAPE = (4, 1 + EXTRA + len(OFFSETS) + EXTRA)
LEAST_PATH = 1e-280
STEEP = 5.0  # a rise by more than this before the first inner edge is overlaid by a constant, which is never too low
LEAST_WIDTH, LARGEST_WIDTH = 1e-3, 2.0


@jit
def _peak_by_newton(forest, pair, c, lowest, path_low):
    """Find the peak of ``path f`` by Newton's method inside a bracket, and its width."""
    # At twice the height where the rise is below c / 2 the peak is passed for sure.
    top = max(op.highest(forest, pair, 0.5 * c), lowest)
    low, high = math.log(path_low), math.log(max(path_low + 2 * (top - lowest), 8 / c))
    x, width, stride, bracketed = high, 1.0, 1.0, False
    for _ in range(100):
        half = 0.5 * math.exp(x)
        h = max(lowest + half - 0.5 * path_low, lowest)
        rise, drop, rise_falls, drop_falls = op.slopes(forest, pair, h)
        climb = 1 + half * (rise - drop - c)
        bend = half * half * (rise_falls - drop_falls) - half * (rise - drop - c)
        if climb > 0:
            low, bracketed = x, True
        else:
            high = x
        if bend > 0.01:
            width = 1 / math.sqrt(bend)
            step = climb / bend
            # far from the peak exponentials dominate, and Newton's steps would be short ones
            if abs(climb) < 4 and low < x + step < high:
                x += step
                if abs(step) < 0.2 * width:
                    break
                continue
        if high - low < 0.05:
            break
        if bracketed:
            x = 0.5 * (low + high)
        else:
            x, stride = max(x - stride, low), 2 * stride
    return x, width


def _peak(forest, pair, c, lowest, path_low):
    """Return log path and width of the peak of ``path f``; processes with a closed form supply it here."""


PEAK = Operation(_peak, default=_peak_by_newton)
peak_of = PEAK.function


@PEAK.supply(CompleteForest)
def _(forest, pair, c, lowest, path_low):
    # with s for the path, c s^2 + (D - 2) s = d2
    b = forest.y.shape[0] - 2.0
    root = math.sqrt(b * b + 4 * c * pair[1])
    s = 2 * pair[1] / (root + b) if b > 0 else (root - b) / (2 * c)
    s = max(s, path_low)
    return math.log(s), 1 / math.sqrt(pair[1] / (2 * s) + 0.5 * c * s)


@jit
def _add_edge(forest, pair, c, h, grid, count):
    """Add an edge above the others, unless it is not above or all is nothing there; return how many there are."""
    lowest = grid[EDGE, 0]
    if not grid[EDGE, count - 1] < h < math.inf:
        return count
    log_f = op.log_z(forest, pair, h) - c * (h - lowest)
    if log_f == -math.inf and grid[LOG_DENSITY, count - 1] > -math.inf:
        return count
    grid[EDGE, count] = h
    grid[LOG_DENSITY, count] = log_f
    return count + 1


@jit
def _set_edges(forest, pair, c, lowest, path_low, peak, width, n_left, grid):
    """Put the edges, with log f at each, and return how many there are; `n_left` of them below the bulk."""
    x_low = math.log(path_low)
    grid[EDGE, 0] = lowest
    grid[LOG_DENSITY, 0] = op.log_z(forest, pair, lowest)
    count = 1
    x_first = peak + width * OFFSETS[0]
    for k in range(n_left):
        x = x_low + (x_first - x_low) * (k + 1) / (n_left + 1)
        count = _add_edge(forest, pair, c, lowest + 0.5 * path_low * math.expm1(x - x_low), grid, count)
    for k in range(len(OFFSETS)):
        x = peak + width * OFFSETS[k]
        if x > x_low:
            count = _add_edge(forest, pair, c, lowest + 0.5 * path_low * math.expm1(x - x_low), grid, count)
    return count


@jit
def _integrate(c, grid, count):
    """Fill in slopes and masses; return log of the largest density and the integral divided by it."""
    edge, log_density, slope, mass = grid[EDGE], grid[LOG_DENSITY], grid[SLOPE], grid[MASS]
    top = -math.inf
    for k in range(count):
        top = max(top, log_density[k])
    if not -math.inf < top < math.inf:
        return top, 1.0
    total = 0.0
    here = math.exp(log_density[0] - top)
    for k in range(count - 1):
        there = math.exp(log_density[k + 1] - top)
        length = edge[k + 1] - edge[k]
        rise = log_density[k + 1] - log_density[k]
        slope[k] = rise / length
        if abs(rise) < 1e-5:
            mass[k] = here * length * (1 + 0.5 * rise)
        else:
            mass[k] = length * (there - here) / rise
        total += mass[k]
        here = there
    # The tail falls no faster than f does in the end, so that its weights stay bounded.
    last = count - 1
    slope[last] = -c
    if last > 0 and slope[last - 1] < 0:
        slope[last] = max(-c, slope[last - 1])
    slope[last] = min(slope[last], -1e-3 * c)
    mass[last] = here / -slope[last]
    return top, total + mass[last]


@jit
def lay_grid(forest, pair, shift, c, lowest, grid):
    """Fill the grid for a loaded pair; return how many edges it has and the log of its integral.

    Masses come out divided by the integral, log densities do not.
    """
    path_low = max(2 * lowest - pair[0] + shift, LEAST_PATH)
    peak, width = peak_of(forest, pair, c, lowest, path_low)
    width = min(max(width, LEAST_WIDTH), LARGEST_WIDTH)
    count = _set_edges(forest, pair, c, lowest, path_low, peak, width, 0, grid)
    log_density = grid[LOG_DENSITY]
    if count > 2 and log_density[2] < log_density[1]:
        # f falls already at the first edge: unless it does so gently from the start, its height lies below
        fall = log_density[0] - log_density[1]
        if not 0 <= fall < 0.5:
            count = _set_edges(forest, pair, c, lowest, path_low, peak, width, EXTRA, grid)
    if count > 1 and not log_density[0] > log_density[1] - STEEP:
        log_density[0] = log_density[1]
    top, total = _integrate(c, grid, count)
    for _ in range(EXTRA):
        # A tail that counts must not begin where f still falls much faster.
        last = count - 1
        if last == 0 or grid[MASS, last] < 1e-3 * total or grid[SLOPE, last - 1] > -2 * c:
            break
        longer = path_low + math.exp(STRIDE) * (path_low + 2 * (grid[EDGE, last] - lowest))
        count = _add_edge(forest, pair, c, lowest + 0.5 * (longer - path_low), grid, count)
        if count == last + 1:
            break
        top, total = _integrate(c, grid, count)
    if -math.inf < top < math.inf:
        for k in range(count):
            grid[MASS, k] /= total
        return count, top + math.log(total)
    return count, top


@jit
def draw_height(grid, count, u_cell, u_place):
    """Draw a height from the grid with two uniform numbers."""
    last = count - 1
    k = 0
    while k < last and u_cell >= grid[MASS, k]:
        u_cell -= grid[MASS, k]
        k += 1
    slope = grid[SLOPE, k]
    if k == last:
        return grid[EDGE, k] + math.log1p(-u_place) / slope
    length = grid[EDGE, k + 1] - grid[EDGE, k]
    rise = slope * length
    if abs(rise) < 1e-5:
        return grid[EDGE, k] + u_place * length
    # 1 - u from the high end, where the exponential of a long rise would overflow
    if rise > 0:
        return min(grid[EDGE, k + 1] + math.log1p((1 - u_place) * math.expm1(-rise)) / slope, grid[EDGE, k + 1])
    return grid[EDGE, k] + math.log1p(u_place * math.expm1(rise)) / slope


@jit
def _cell_of(grid, count, h):
    k = count - 1
    while k > 0 and h < grid[EDGE, k]:
        k -= 1
    return k


@jit
def log_density_at(grid, count, h):
    """Return the log density of the grid at a height, its integral not divided out."""
    k = _cell_of(grid, count, h)
    return grid[LOG_DENSITY, k] + grid[SLOPE, k] * (h - grid[EDGE, k])


@jit
def log_survival(grid, count, h):
    """Return the log probability of a draw above a height."""
    k = _cell_of(grid, count, h)
    slope = grid[SLOPE, k]
    if k == count - 1:
        return math.log(grid[MASS, k]) + slope * (h - grid[EDGE, k])
    total = 0.0
    for later in range(k + 1, count):
        total += grid[MASS, later]
    length = grid[EDGE, k + 1] - grid[EDGE, k]
    rise, done = slope * length, slope * (h - grid[EDGE, k])
    if abs(rise) < 1e-5:
        share = 1 - (h - grid[EDGE, k]) / length
    elif rise > 0:
        share = -math.expm1(done - rise) / -math.expm1(-rise)
    else:
        share = (math.exp(done) - math.exp(rise)) / -math.expm1(rise)
    return math.log(total + grid[MASS, k] * max(share, 0.0))
