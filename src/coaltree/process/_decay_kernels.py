"""Exponential decay of many columns at once, in loops that LLVM vectorises (a call of ``exp`` each would not be)."""

from __future__ import annotations

import math

import numpy as np

from ..compiled import jit

LOG2_E = 1 / math.log(2)
LN2_HIGH = 0.693147180369123816490  # ln 2 in two parts: the first times a whole number is exact
LN2_LOW = 1.90821492927058770002e-10
ROUNDER = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to a whole number, which then stands in the low bits
EXPONENT_ONE = np.int64(1023 << 52)  # the bits of 1.0
MOST_NEGATIVE = -700.0  # exp of it is about 1e-304: as good as 0, and a normal number


@jit
def decay(rates, g, kept, lost, scratch):
    """Put ``exp(-rates g)`` into `kept` and ``1 - exp(-rates g)`` into `lost`, both to a few last digits; g >= 0.

    Cody and Waite's reduction: ``exp(x) = 2^k exp(r)`` with ``|r| <= ln 2 / 2``, and the series of ``exp(r) - 1`` for the rest,
    so that `lost` keeps its digits where it is small.
    """
    n = len(rates)
    for d in range(n):
        x = max(-rates[d] * g, MOST_NEGATIVE)
        rounded = x * LOG2_E + ROUNDER
        k = rounded - ROUNDER
        r = (x - k * LN2_HIGH) - k * LN2_LOW
        p = 1 / 6227020800
        p = p * r + 1 / 479001600
        p = p * r + 1 / 39916800
        p = p * r + 1 / 3628800
        p = p * r + 1 / 362880
        p = p * r + 1 / 40320
        p = p * r + 1 / 5040
        p = p * r + 1 / 720
        p = p * r + 1 / 120
        p = p * r + 1 / 24
        p = p * r + 1 / 6
        p = p * r + 0.5
        kept[d] = r + r * r * p  # exp(r) - 1, for the moment
        scratch[d] = rounded
    bits = scratch.view(np.int64)
    for d in range(n):
        bits[d] = (bits[d] << 52) + EXPONENT_ONE  # the bits of 2^k
    for d in range(n):
        power = scratch[d]
        lost[d] = (1 - power) - power * kept[d]
        kept[d] = power + power * kept[d]
