"""Constants of compiled loops; ``_constants.pxd`` has the same ones for C.

The compiler must know them: it does not vectorise a loop that reads a module variable, which might change.
"""

from __future__ import annotations

from math import exp, log, pi, sqrt

LOG_2PI = log(2 * pi)
INVERSE_E = exp(-1)
TINY = 1e-300  # keeps a ratio of path lengths from being 0 / 0, far below any real one
SHORTEST = 1e-285  # stands for a path of length 0 between sites, so that products with a pole at 0 stay numbers
POLE = 1e-290  # stands for 0 in a denominator: SHORTEST / POLE is large, and products of poles are finite
OVER_POLE = 1 / POLE  # stands for an impossible disagreement
ROUNDING = 1e-15  # of the largest terms of a sum: less is rounding
SMALLEST, LARGEST = 1e-290, 1e290  # products outside this range may have lost digits
FLATTEST = 1e-150  # stands for f = 0 of a stationary message, below what f^2 can tell from 0
LARGEST_EXPONENT = 600.0  # its exponential is finite
MOST_NEGATIVE = -700.0  # exp of it is about 1e-304: as good as 0, and a normal number
STEEPEST_RHO, STEEPEST_FALL = 2 - sqrt(3), 1 / (6 * sqrt(3))  # where rho / (1 + rho)^2 falls fastest with h
LOG2_E = 1 / log(2)
LN2_HIGH, LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10  # ln 2: the first times a whole number is exact

BUCKET = 16  # maximum number of points in a bucket
BLOCK = 128  # points of a block, where there are no boxes
FAN = 8  # boxes in a larger box
LIST_LENGTH = 5  # length of a list of best partners
COLUMN_BLOCK = 32  # real columns per product of variances
