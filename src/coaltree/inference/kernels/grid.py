"""A density for drawing the merge height of a pair, close to ``f(h) = exp(-c (h - lowest)) Z(h)`` for ``h >= lowest``.

`lay_grid` places a few edges over the bulk of f, and connects the values of f at neighbouring edges by exponentials; an
exponential tail starts at the last edge. Draws come from these pieces and are weighted accordingly, so estimates are unbiased
however coarse the grid is; its quality affects only their variance. If f is itself an exponential, as without common columns,
the grid is exact.

The grid is laid in ``x = log path``, where the path leads from lineage to lineage through the merge and includes the variances of
the messages. There ``path f`` is smooth and nearly bell-shaped for every process; for complete real tables it is log-concave.
"""

from __future__ import annotations

import numpy as np

from ... import _math as math
from ...process.kernels import messages as op

OFFSETS = [-5.0, -3.5, -2.5, -1.7, -1.0, -0.4, 0.2, 0.8, 1.5, 2.4, 3.5, 5.0]  # edges around the peak, in widths
N_OFFSETS = 12
EXTRA = 24  # edges more on either side, where real cells that agree exactly make f steep over many orders of magnitude
STRIDE = 1.5
LEAST_PATH = 1e-280
STEEP = 5.0  # a rise by more than this before the first inner edge is overlaid by a constant, which is never too low
LEAST_WIDTH, LARGEST_WIDTH = 1e-3, 2.0


class Grid:
    """Scratch memory: the edges of a grid; the tail starts at the last edge."""

    def __init__(self):
        room = 1 + EXTRA + N_OFFSETS + EXTRA
        self.count = 0  # of the edges in use
        self.edge = np.empty(room)  # heights
        self.log_density = np.empty(room)  # at the edge
        self.slope = np.empty(room)  # of the log density from there on
        self.mass = np.empty(room)  # from there to the next edge


def _peak_by_newton(forest, pair, c, lowest, path_low):
    """Find the peak of ``path f`` by Newton's method inside a bracket: return its log path and its width."""
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


def _peak_of_complete_brownian(forest, pair, c, path_low):
    """Return log path and width of the peak of ``path f``: with s for the path, ``c s^2 + (D - 2) s = d2``."""
    b = forest.total_weight - 2.0
    root = math.sqrt(b * b + 4 * c * pair.d2[0])
    s = 2 * pair.d2[0] / (root + b) if b > 0 else (root - b) / (2 * c)
    s = max(s, path_low)
    return math.log(s), 1 / math.sqrt(pair.d2[0] / (2 * s) + 0.5 * c * s)


def _add_edge(forest, pair, c, h, grid):
    """Add an edge above the others, unless it is not above them or the density vanishes there; return whether it was added."""
    last = grid.count - 1
    if not grid.edge[last] < h < math.inf:
        return False
    log_f = op.log_z(forest, pair, h) - c * (h - grid.edge[0])
    if log_f == -math.inf and grid.log_density[last] > -math.inf:
        return False
    grid.edge[last + 1] = h
    grid.log_density[last + 1] = log_f
    grid.count = last + 2
    return True


def _set_edges(forest, pair, c, lowest, path_low, peak, width, n_left, grid):
    """Place the edges, with log f at each; `n_left` of them are below the bulk."""
    x_low = math.log(path_low)
    grid.edge[0] = lowest
    grid.log_density[0] = op.log_z(forest, pair, lowest)
    grid.count = 1
    x_first = peak + width * OFFSETS[0]
    for k in range(n_left):
        x = x_low + (x_first - x_low) * (k + 1) / (n_left + 1)
        _add_edge(forest, pair, c, lowest + 0.5 * path_low * math.expm1(x - x_low), grid)
    for k in range(N_OFFSETS):
        x = peak + width * OFFSETS[k]
        if x > x_low:
            _add_edge(forest, pair, c, lowest + 0.5 * path_low * math.expm1(x - x_low), grid)


def _integrate(c, grid):
    """Fill in slopes and masses; return log of the largest density and the integral divided by it."""
    top = -math.inf
    for k in range(grid.count):
        top = max(top, grid.log_density[k])
    if not -math.inf < top < math.inf:
        return top, 1.0
    total = 0.0
    last = grid.count - 1
    left = math.exp(grid.log_density[0] - top)
    for k in range(last):
        right = math.exp(grid.log_density[k + 1] - top)
        length = grid.edge[k + 1] - grid.edge[k]
        rise = grid.log_density[k + 1] - grid.log_density[k]
        grid.slope[k] = rise / length
        if abs(rise) < 1e-5:
            grid.mass[k] = left * length * (1 + 0.5 * rise)
        else:
            grid.mass[k] = length * (right - left) / rise
        total += grid.mass[k]
        left = right
    # The tail falls no faster than f does in the end, so that its weights stay bounded.
    slope = -c
    if last > 0 and grid.slope[last - 1] < 0:
        slope = max(slope, grid.slope[last - 1])
    slope = min(slope, -1e-3 * c)
    grid.slope[last] = slope
    grid.mass[last] = left / -slope
    return top, total + grid.mass[last]


def lay_grid(forest, pair, shift, c, lowest, grid):
    """Fill the grid of a loaded pair, whose `pair_shift` is `shift`; return the log of its integral.

    Masses are normalized by the integral; log densities are not.
    """
    path_low = max(2 * lowest - pair.heights + shift, LEAST_PATH)
    if forest.complete and forest.n_brownian:
        peak, width = _peak_of_complete_brownian(forest, pair, c, path_low)
    else:
        peak, width = _peak_by_newton(forest, pair, c, lowest, path_low)
    width = min(max(width, LEAST_WIDTH), LARGEST_WIDTH)
    _set_edges(forest, pair, c, lowest, path_low, peak, width, 0, grid)
    if grid.count > 2 and grid.log_density[2] < grid.log_density[1]:
        # f falls already at the first edge: unless it does so gently from the start, its height lies below
        fall = grid.log_density[0] - grid.log_density[1]
        if not 0 <= fall < 0.5:
            _set_edges(forest, pair, c, lowest, path_low, peak, width, EXTRA, grid)
    if grid.count > 1 and not grid.log_density[0] > grid.log_density[1] - STEEP:
        grid.log_density[0] = grid.log_density[1]
    top, total = _integrate(c, grid)
    for _ in range(EXTRA):
        # A tail that counts must not begin where f still falls much faster.
        last = grid.count - 1
        if last == 0 or grid.mass[last] < 1e-3 * total or grid.slope[last - 1] > -2 * c:
            break
        longer = path_low + math.exp(STRIDE) * (path_low + 2 * (grid.edge[last] - lowest))
        if not _add_edge(forest, pair, c, lowest + 0.5 * (longer - path_low), grid):
            break
        top, total = _integrate(c, grid)
    if not -math.inf < top < math.inf:
        return top
    for k in range(grid.count):
        grid.mass[k] /= total
    return top + math.log(total)


def draw_height(grid, u_cell, u_place):
    """Draw a height from the grid with two uniform numbers."""
    last = grid.count - 1
    k = 0
    while k < last and u_cell >= grid.mass[k]:
        u_cell -= grid.mass[k]
        k += 1
    slope = grid.slope[k]
    if k == last:
        return grid.edge[k] + math.log1p(-u_place) / slope
    length = grid.edge[k + 1] - grid.edge[k]
    rise = slope * length
    if abs(rise) < 1e-5:
        return grid.edge[k] + u_place * length
    # 1 - u from the high end, where the exponential of a long rise would overflow
    if rise > 0:
        return min(grid.edge[k + 1] + math.log1p((1 - u_place) * math.expm1(-rise)) / slope, grid.edge[k + 1])
    return grid.edge[k] + math.log1p(u_place * math.expm1(rise)) / slope


def _cell_of(grid, h):
    k = grid.count - 1
    while k > 0 and h < grid.edge[k]:
        k -= 1
    return k


def log_density_at(grid, h):
    """Return the log density of the grid at a height, not normalized."""
    k = _cell_of(grid, h)
    return grid.log_density[k] + grid.slope[k] * (h - grid.edge[k])


def log_survival(grid, h):
    """Return the log probability of a draw above a height."""
    k = _cell_of(grid, h)
    slope = grid.slope[k]
    if k == grid.count - 1:
        return math.log(grid.mass[k]) + slope * (h - grid.edge[k])
    total = 0.0
    for later in range(k + 1, grid.count):
        total += grid.mass[later]
    length = grid.edge[k + 1] - grid.edge[k]
    rise, done = slope * length, slope * (h - grid.edge[k])
    if abs(rise) < 1e-5:
        share = 1 - (h - grid.edge[k]) / length
    elif rise > 0:
        share = -math.expm1(done - rise) / -math.expm1(-rise)
    else:
        share = (math.exp(done) - math.exp(rise)) / -math.expm1(rise)
    return math.log(total + grid.mass[k] * max(share, 0.0))
