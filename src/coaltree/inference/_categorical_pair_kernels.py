"""Best heights of pairs of categorical messages that mutate at one rate.

With ``w = 1 - exp(-rate g)``, which grows from 0 to 1 with the height, ``log Z - c h`` is up to a constant

    F(w) = c / (2 rate) log(1 - w) + sum_d log(1 - b_d + b_d w),

which is concave: there is one maximum, where the slope crosses zero, and a pair rises all the way to a limit if its slope is
positive there.
"""

from __future__ import annotations

import math

from ..compiled import jit
from ..process._multinomial_kernels import CategoricalForest
from ._pair_kernels import BEST_HEIGHT, search_height

HALF = math.log(2)  # the rate times the path for which w is a half


@jit
def _slope_and_bend(b, a, w):
    """Return the slope of F and minus its derivative; a is ``c / (2 rate)``."""
    slope = -a / (1 - w)
    bend = a / ((1 - w) * (1 - w))
    for d in range(len(b)):
        share = b[d] / ((1 - b[d]) + b[d] * w)
        slope += share
        bend += share * share
    return slope, bend


@jit
def _slope_and_bend_in_u(b, a, u):
    """Return the slope of F in ``u = 1 - w``, which has all its digits where w is near 1, and minus its derivative."""
    slope, bend = a / u, a / (u * u)
    for d in range(len(b)):
        share = b[d] / (1 - b[d] * u)
        slope -= share
        bend += share * share
    return slope, bend


@jit
def _rises(b, a, x):
    """Return whether F rises with the height where ``x = rate g``."""
    if x < HALF:
        return _slope_and_bend(b, a, -math.expm1(-x))[0] > 0
    return _slope_and_bend_in_u(b, a, math.exp(-x))[0] < 0


@jit
def _best_w(b, a, lowest):
    """Return where F is largest between `lowest`, where it rises, and a half: Newton's method in a bracket."""
    differing = _differing(b)
    low, high = lowest, 0.5
    w = differing / (differing + a)
    for _ in range(100):
        if not low < w < high:
            w = 0.5 * (low + high)
        slope, bend = _slope_and_bend(b, a, w)
        if slope > 0:
            low = w
        else:
            high = w
        step = slope / bend
        if abs(step) <= 4e-16 * w:
            break
        w += step
    return min(max(w, low), high)


@jit
def _best_u(b, a, highest):
    """Return the u where F is largest, below a half and below `highest`."""
    low, high = 0.5 * a / _differing(b), highest
    u = low
    for _ in range(200):
        slope, bend = _slope_and_bend_in_u(b, a, u)
        if slope > 0:
            low = u
        else:
            high = u
        step = slope / bend
        if abs(step) <= 4e-16 * u:
            break
        u += step
        if not low < u < high:
            u = math.sqrt(low) * math.sqrt(high)
    return min(max(u, low), high)


@jit
def _differing(b):
    total = 0.0
    for d in range(len(b)):
        total += max(b[d], 0.0)
    return total


@BEST_HEIGHT.supply(CategoricalForest)
def _(forest, pair, shift, c, lowest, limit):
    rate = forest.common_rate
    if math.isnan(rate):
        return search_height(forest, pair, shift, c, lowest, limit)
    if not lowest < limit:
        return math.inf
    b, a = pair[1 : 1 + forest.rate.shape[0]], 0.5 * c / rate
    x_low = rate * max(2 * lowest - pair[0], 0.0)
    if not _rises(b, a, x_low):
        return lowest
    if _rises(b, a, rate * (2 * limit - pair[0])):
        return math.inf
    if x_low < HALF and not _rises(b, a, HALF):
        x = -math.log1p(-_best_w(b, a, -math.expm1(-x_low)))
    else:
        x = -math.log(_best_u(b, a, min(math.exp(-x_low), 0.5)))
    h = max(0.5 * (x / rate + pair[0]), lowest)
    return h if h < limit else math.inf
