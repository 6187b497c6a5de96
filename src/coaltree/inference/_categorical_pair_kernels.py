"""Best heights of pairs of categorical messages that mutate at one rate.

With ``w = 1 - exp(-rate g)``, which grows from 0 to 1 with the height, ``log Z - c h`` is up to a constant

    F(w) = c / (2 rate) log(1 - w) + sum_d log(1 - b_d + b_d w),

which is concave: there is one maximum, where the slope crosses zero, and a pair rises all the way to a limit if its slope is
positive there.
"""

from __future__ import annotations

import math

from ..compiled import inlined, jit
from ..process._multinomial_kernels import CategoricalForest
from ._pair_kernels import BEST_HEIGHT, search_height


@inlined
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
def _best_w(b, a, lowest):
    """Return where F is largest above `lowest`, where it rises: Newton's method in a bracket."""
    differing = 0.0
    for d in range(len(b)):
        differing += max(b[d], 0.0)
    low, high = lowest, 1.0
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
def _polished(b, a, u):
    """Return a root given by ``u = 1 - w`` with all its digits, where it is small."""
    for _ in range(2):
        slope, bend = a / u, a / (u * u)
        for d in range(len(b)):
            share = b[d] / (1 - b[d] * u)
            slope -= share
            bend += share * share
        u = min(max(u + slope / bend, 0.5 * u), 2 * u)
    return u


@BEST_HEIGHT.supply(CategoricalForest)
def _(forest, pair, shift, c, lowest, limit):
    rate = forest.common_rate
    if math.isnan(rate):
        return search_height(forest, pair, shift, c, lowest, limit)
    if not lowest < limit:
        return math.inf
    b, a = pair[1 : 1 + forest.rate.shape[0]], 0.5 * c / rate
    w_low = -math.expm1(-rate * max(2 * lowest - pair[0], 0.0))
    if not _slope_and_bend(b, a, w_low)[0] > 0:
        return lowest
    w_limit = -math.expm1(-rate * (2 * limit - pair[0]))
    if w_limit < 1 and _slope_and_bend(b, a, w_limit)[0] > 0:
        return math.inf
    w = _best_w(b, a, w_low)
    path = -math.log1p(-w) / rate if w < 0.5 else -math.log(_polished(b, a, max(1 - w, 1e-300))) / rate
    h = max(0.5 * (path + pair[0]), lowest)
    return h if h < limit else math.inf
