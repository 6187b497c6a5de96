"""The functions of `math` that kernels use; compiled kernels take those of C from ``_math.pxd``."""

from __future__ import annotations

from math import asinh, exp, expm1, frexp, inf, isnan, ldexp, log, log1p, nan, nextafter, sinh, sqrt

__all__ = [
    "ROUNDER",
    "asinh",
    "exp",
    "expm1",
    "exponent_of",
    "inf",
    "isnan",
    "log",
    "log1p",
    "mantissa_of",
    "nan",
    "nextafter",
    "sinh",
    "sqrt",
    "two_to",
]

ROUNDER = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to a whole number, which is then in the low bits


def two_to(rounded: float) -> float:
    """Return ``2**k`` for ``rounded = k + ROUNDER``, with k from -1022 to 1023."""
    return ldexp(1.0, int(rounded - ROUNDER))


def exponent_of(x: float) -> float:
    """Return k of ``x = 2**k m``, where m is between the square roots of 1/2 and 2, for positive x."""
    m, k = frexp(x)
    return k - 1.0 if m < sqrt(0.5) else float(k)


def mantissa_of(x: float) -> float:
    """Return m of ``x = 2**k m``, see `exponent_of`."""
    m, _ = frexp(x)
    return 2 * m if m < sqrt(0.5) else m
