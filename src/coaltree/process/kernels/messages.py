"""Operations on messages, which summarise what the rows below a lineage tell about the state at its top.

A *forest* holds the messages of many lineages, one row per slot. Two slots that might merge form a *pair*. It is loaded once,
and then answers every query about the merge as a function of its height ``h``. ``g(h) = 2 h - height[i] - height[j]`` is the
length of the path between the two tops; ``h`` is never below either of them.

Columns are independent given the tree, eq. (2.3), so every operation is a sum over four kinds of columns:

*Brownian*, eq. (3.2) and (3.3)
    In units of the diffusion, a message is a mean ``y`` and a variance ``v``, which is infinite if nothing below was observed.
    With ``s = v_i + v_j + g``, a column contributes ``log Z = -log(2 pi s) / 2 - (y_i - y_j)^2 / (2 s)``.
*Stationary*, eq. (4.3) and (4.4)
    In units of the equilibrium, the rows below are as informative about the state ``z`` as one number ``a`` drawn from
    ``N(f z, 1 - f^2)``. A message is ``a`` and ``lost = 1 - f``, which is exact where f is close to 1; a flat message has
    ``a = 0`` and ``lost = 1``. A climb by t multiplies f by ``exp(-rate t)``. With ``rho = f_i f_j exp(-rate g)``,
    ``log Z = -log(1 - rho^2) / 2 - (a_i - a_j)^2 rho^2 / (1 - rho^2) / 2 + a_i a_j rho / (1 + rho)``.
*Sites*, eq. (5.3) and (5.4)
    A message has ``sqrt(q_k) M_k`` for each state, normalised so that ``sum_k q_k M_k = 1``. The agreement of two messages,
    ``S = sum_k q_k M_k M'_k``, is then an inner product, and ``log Z = log(S u + 1 - u)`` with ``u = exp(-rate g)``.
    Sites are ordered by their number of states, the largest first. A row has the first states of all sites side by side, then
    the second states of all sites that have one, and so on, so that every loop runs over contiguous sites.
*Chains*, eq. (5.10)
    A column whose states change by a reversible chain of its own, of which redrawing is the simplest. With the orthonormal
    eigenvectors ``U`` of its symmetric generator, and the rates r at which they are forgotten, a message is
    ``c = U^T sqrt(q) M``, of which ``c_0 = 1``. A climb by t multiplies c by ``exp(-r t)``, and with ``A = c c'``,
    ``log Z = log(sum_k A_k exp(-r_k g))``.

Real columns have one of two layouts. In the *general* layout each column has its own spread (``v`` or ``lost``). In the
*complete* layout, for tables without missing cells and with the same noise in every column, all columns of a lineage share one
spread. Where that holds for the columns of one rate in a general layout, a pair has one term for all of them *together*.

Columns have *weights*, which multiply their ``log Z`` and everything derived from it; they do not affect how messages merge. A
site of weight w represents w equal columns. Multiplying all weights by a power b raises the likelihood of a table to that power.

The slope of ``log Z`` is the difference of two decreasing functions of h: the *rise*, from cells that disagree and favour a
longer path, which is convex, and the *drop*, from cells that agree. Minus the slope of chains counts as a drop, although it may
rise; `chain_gap` says by how much. The search for the best height relies on this and on the
following bounds, see `coaltree.inference.kernels.heights`:

- Brownian: multiplied by ``x = g + shift``, with ``shift <= v_i + v_j``, the rise first increases and then decreases, so its
  minimum on an interval is at one of the ends; the drop times x increases.
- Stationary: with ``rho = exp(-rate s)`` and ``x = g + shift <= s``, the terms ``x rho^2 / (1 - rho^2)^2`` and
  ``x rho / (1 + rho)^2`` first increase and then decrease; ``x / (1 - rho^2)`` increases, ``rho`` and ``rho / (1 + rho)^2``
  decrease. Where ``a_i a_j < 0`` the last term counts as a rise of ``-a_i a_j rho``, which is convex, and a drop for the rest.
- Sites: with ``b = 1 - S``, the rise times g first increases and then decreases. The drop times g is ``2 x / (exp(x) / -b + 1)``
  with ``x = rate g``: it increases up to ``x = 1 + W(z)``, where it is ``2 W(z)``, and then decreases, with ``z = -b / e`` and
  Lambert's function W, which is at least ``z / (1 + z)`` and, being concave, at most any of its tangents.
- Chains: sums of the terms with ``A > 0`` fall with g, and so do those with ``A < 0``; this bounds Z and its derivatives between
  two paths, and thus how far the slope can be from its values at both. Where Z is nearly 0, another bound is better. Let v be the
  highest rate at which a state is left. If candidates for changes arrive at rate v, the expected number of them on the path given
  both messages is ``n(g) = g (v + d log Z / d g)``, and it increases with g.
"""

from __future__ import annotations

import numpy as np

from ... import _constants as const
from ... import _math as math

ROWS = 10  # of scratch, a number for each site
FEW_HEAVIER = 0.5  # of the sites have more than the least weight: then products of all values save logarithms


class Forest:
    """The messages of lineages, one per slot; `coaltree.process.layout` makes a forest from the declarations of processes."""

    def __init__(self, height, mean, spread, least, state, growth, chain, parameters, layout):
        self.layout = layout
        self.height = height  # (slots,)
        self.mean = mean  # (slots, real columns): y or a, 0 where nothing was observed
        self.spread = spread  # (slots, real columns), or (slots, 1) in the complete layout: v or lost
        self.least = (
            least  # (slots,), the shortest path that spreads as much as one of its real columns; infinite if none
        )
        self.state = state  # (slots, states of all sites)
        self.growth = growth  # (slots, sites), exp(rate height), or (slots, 0) where nobody scans
        self.chain = chain  # (slots, states of all chains)
        self.log_norm = np.zeros(len(height))  # (slots,), see `set_log_norm`; only greedy search with noise reads it
        self.complete = parameters.complete
        self.noisy = parameters.noisy
        self.n_real = mean.shape[1]
        self.n_brownian = len(parameters.log_scale)  # the first of the real columns; the others are stationary
        self.log_scale = parameters.log_scale  # (Brownian columns,), log of the unit of each
        self.root_variance = parameters.root_variance  # (Brownian columns,), of a proper root
        self.group = parameters.group  # (groups + 1,), where stationary columns of one rate begin
        self.n_groups = len(parameters.group) - 1
        self.together = (
            parameters.together
        )  # (1 + groups,): whether all Brownian columns, or those of a group, share one spread
        self.rate = parameters.rate  # (groups,)
        self.n_sites = len(parameters.site_rate)
        self.site_rate = parameters.site_rate  # (sites,)
        self.common_rate = parameters.common_rate  # of all sites, NaN if they have different ones
        self.fastest = parameters.site_rate.max(initial=0.0)
        self.n_ranks = len(parameters.rank) - 1
        self.rank = parameters.rank  # (ranks + 1,), where the states of each rank begin
        self.root_q = parameters.root_q  # (states,), sqrt(q)
        self.over_root_q = 1 / parameters.root_q
        self.n_chains = len(parameters.chain_start) - 1
        self.chain_start = parameters.chain_start  # (chains + 1,), where the states of each begin
        self.chain_rate = parameters.chain_rate  # (states of all chains,), of the eigenvectors; 0 for the first of each
        self.basis = parameters.basis  # (states of all chains, most states), an eigenvector in a column
        self.fastest_exit = parameters.fastest_exit  # (chains,), the highest rate at which a state is left
        self._site_weight, self._real_weight = parameters.site_weight, parameters.real_weight
        self._chain_weight = parameters.chain_weight
        self.set_power(1.0)

    def set_power(self, power):
        """Raise the likelihood of all columns to a power: their weights are those of the layout, times the power."""
        self._set_site_weight(power * self._site_weight)
        self.chain_weight = power * self._chain_weight  # (chains,)
        self.real_weight = power * self._real_weight  # (real columns,), all the same in the complete layout
        self.weighted_real = bool(np.any(np.asarray(self.real_weight) != 1))
        self.total_weight = np.asarray(self.real_weight).sum()  # of the real columns
        self.common_weight = self.real_weight[0] if self.n_real else 1.0  # of the complete layout
        weight = np.asarray(self.real_weight)
        self.total_log_scale = (weight[: self.n_brownian] * np.asarray(self.log_scale)).sum()
        # (1 + groups,), of all Brownian columns, and of those of each group
        self.sum_weight = np.diff(np.append(0.0, np.cumsum(weight))[np.append(0, self.group)])

    def set_chain_weights(self, weights):
        """Set the weights of chains."""
        self.chain_weight = weights

    def set_last_weights(self, power, weights):
        """Set the power, and add weights to the last columns with states, to which the power is not applied."""
        last = self.layout.site_of[len(self.layout.site_of) - len(weights) :]
        self._set_site_weight(power * self._site_weight + np.bincount(last, weights=weights, minlength=self.n_sites))

    def _set_site_weight(self, weight):
        """Set the weights of the sites, and list those of more than the least weight, see `log_of_sites`."""
        self.site_weight = weight  # (sites,)
        self.weighted_sites = bool(np.any(weight != 1))
        least = weight.min(initial=1.0)
        heavier = np.flatnonzero(weight > least)
        self.least_weight = least if least > 0 and len(heavier) <= FEW_HEAVIER * len(weight) else 0.0
        self.heavier = heavier if self.least_weight else np.arange(len(weight), dtype=np.intp)  # (heavier sites,)
        self.more_weight = weight[self.heavier] - self.least_weight  # (heavier sites,)


class Rows:
    """Scratch: rows of numbers, one for each site, two with one for each real column, and four for the states of chains."""

    def __init__(self, forest):
        self.rows = np.empty((ROWS, forest.n_sites))
        self.real = np.empty((2, max(forest.n_real, 1)))
        self.chain = np.empty((4, max(forest.chain.shape[1], 1)))


class Pair(Rows):
    """Two slots that might merge; allocated once and loaded many times."""

    def __init__(self, forest):
        super().__init__(forest)  # the first row has the agreements, that of chains the products of messages
        # real columns that both have: Brownian ones first, then those of each group
        self.d2 = np.empty(max(forest.n_real, 1))  # squared difference of the means
        self.product = np.empty(max(forest.n_real, 1))  # product of the means, of stationary columns
        self.correlation = np.empty(max(forest.n_real, 1))  # f_i f_j
        self.lost = np.empty(max(forest.n_real, 1))  # 1 - f_i f_j, or v_i + v_j
        self.term = np.empty(max(forest.n_real, 1))
        self.weight = np.empty(max(forest.n_real, 1))  # squares and products are multiplied by it
        self.end = np.zeros(forest.n_groups + 1, dtype=np.intp)  # of the Brownian columns, then of each group
        self.heights = 0.0  # of both together
        self.log_scale = 0.0  # of the Brownian columns that both have


class Place(Rows):
    """A branch to which a third slot may be attached at any point."""

    def __init__(self, forest):
        super().__init__(forest)
        self.below = self.beyond = self.third = 0  # slots
        self.turn = self.height_below = self.height_third = 0.0
        # complete layout: products of the differences of two means to the third, and of the third itself
        self.below_below = self.below_beyond = self.beyond_beyond = 0.0
        self.below_third = self.beyond_third = self.third_third = 0.0


# -- terms of one column, or of many that share their rho, from rho and gap = 1 - rho -----------------------------------


def _log_ratio(columns, d2, product, rho, gap):
    one = gap * (1 + rho)
    return -0.5 * (columns * math.log(one) + d2 * rho * rho / one) + product * rho / (1 + rho)


def _stationary_slopes(columns, d2, product, rho, gap):
    one = gap * (1 + rho)
    ratio = rho * rho / one
    fall = rho / ((1 + rho) * (1 + rho))
    steep = fall * gap / (1 + rho)
    apart, together = max(-product, 0.0), max(product, 0.0)
    rise = d2 * ratio / one + apart * rho
    drop = columns * ratio + together * fall + apart * (rho - fall)
    rise_falls = 2 * d2 * ratio * (1 + rho * rho) / (one * one) + apart * rho
    drop_falls = 2 * columns * ratio / one + together * steep + apart * (rho - steep)
    return rise, drop, rise_falls, drop_falls


def _stationary_least_slope(columns, d2, product, ratio, rho_low, gap_low, rho_high, gap_high):
    at_low = rho_low / (gap_low * (1 + rho_low))
    at_high = rho_high / (gap_high * (1 + rho_high))
    steep_low = rho_low / ((1 + rho_low) * (1 + rho_low))
    steep_high = rho_high / ((1 + rho_high) * (1 + rho_high))
    agree = product * steep_low if product > 0 else product * min(ratio * steep_low, steep_high)
    return (
        d2 * min(ratio * at_low * at_low, at_high * at_high)
        - columns * rho_low * rho_low / (gap_high * (1 + rho_high))
        - agree
    )


def _stationary_drop_falls(columns, product, rho_low, gap_low, rho_high, gap_high):
    at_low = rho_low / (gap_low * (1 + rho_low))
    at_high = rho_high / (gap_high * (1 + rho_high))
    one_low, one_high = 1 + rho_low, 1 + rho_high
    steep_low = rho_low * gap_low / (one_low * one_low * one_low)
    steep_high = rho_high * gap_high / (one_high * one_high * one_high)
    least, most = 2 * columns * at_high * at_high, 2 * columns * at_low * at_low
    if product > 0:
        least += product * min(steep_low, steep_high)
        most += product * (
            const.STEEPEST_FALL if rho_high < const.STEEPEST_RHO < rho_low else max(steep_low, steep_high)
        )
    else:
        least -= product * (rho_high - steep_high)
        most -= product * (rho_low - steep_low)
    return least, most


def _stationary_highest(rate, d2, apart, c):
    """Return a path beyond which ``2 rate (d2 rho^2 / (1 - rho^2)^2 + apart rho)`` is below c."""
    share = 0.5 * c if apart > 0 else c  # for each of the two terms
    path = math.asinh(math.sqrt(0.5 * rate * d2 / share)) / rate
    if apart > 0:
        path = max(path, math.log(max(2 * rate * apart / share, 1.0)) / rate)
    return path


def path_of(rate, lost):
    """Return the length of the path along which a message would lose as much as it has lost."""
    return -math.log1p(-lost) / rate if lost < 1 else math.inf


def _join_brownian(y_i, w_i, y_j, w_j):
    """Return mean and variance of two messages that meet, given their variances at the meeting point: eq. (3.3)."""
    if w_i == math.inf or w_j == math.inf:  # one side says nothing: the other passes through
        return y_i + y_j, min(w_i, w_j)  # a flat side has mean 0
    return (w_j * y_i + w_i * y_j) / (w_i + w_j), w_i * w_j / (w_i + w_j)


def _decay(x):
    """Return ``exp(-x)`` and ``1 - exp(-x)``, both accurate: the smaller one is computed, the other is the rest to 1."""
    if x > const.LN2_HIGH:
        decay = math.exp(-x)
        return decay, 1 - decay
    complement = -math.expm1(-x)
    return 1 - complement, complement


def _weights(lost, decay, complement):
    """Return the precision of a stationary message at the top of a climb, and the weight of its ``a``."""
    f = (1 - lost) * decay
    weight = f / ((lost + (1 - lost) * complement) * (1 + f))
    return f * weight, weight


def _lost_of(precision):
    f = math.sqrt(precision / (1 + precision))
    return 1 / ((1 + precision) * (1 + f))


def _half_total(scratch, first, last):
    """Return half of the sum of row 1 of some real columns, less the logarithms of row 0, which are not above 1.

    Four sums at a time do not wait for each other, and a logarithm is taken of the product of many values.
    """
    total, d = 0.0, first
    while d < last:
        start, end = d, min(d + const.COLUMN_BLOCK, last)
        one = two = three = four = 1.0
        sum_one = sum_two = sum_three = sum_four = 0.0
        while d + 4 <= end:
            one *= scratch.real[0, d]
            two *= scratch.real[0, d + 1]
            three *= scratch.real[0, d + 2]
            four *= scratch.real[0, d + 3]
            sum_one += scratch.real[1, d]
            sum_two += scratch.real[1, d + 1]
            sum_three += scratch.real[1, d + 2]
            sum_four += scratch.real[1, d + 3]
            d += 4
        while d < end:
            one *= scratch.real[0, d]
            sum_one += scratch.real[1, d]
            d += 1
        product = (one * two) * (three * four)
        total += (sum_one + sum_two) + (sum_three + sum_four)
        if product > const.SMALLEST:
            total -= math.log(product)
        else:
            for c in range(start, end):
                total -= math.log(scratch.real[0, c]) if scratch.real[0, c] > 0 else -math.inf
    return 0.5 * total


def _half_weighted_total(scratch, weight, first, last):
    """Return `_half_total` with each logarithm multiplied by a weight, as row 1 already is."""
    total = 0.0
    for d in range(first, last):
        total += scratch.real[1, d]
        if weight[d] > 0:
            total -= weight[d] * (math.log(scratch.real[0, d]) if scratch.real[0, d] > 0 else -math.inf)
    return 0.5 * total


# -- rows of sites ---------------------------------------------------------------------------------------------------------


def set_decay(forest, scratch, g, decay_row, complement_row):
    """Put ``exp(-rate g)`` of each site into one row, and ``1 - exp(-rate g)`` into another, to a few last digits; g >= 0.

    Cody and Waite's reduction: ``exp(x) = 2^k exp(r)`` with ``|r| <= ln 2 / 2``, and the series of ``exp(r) - 1`` for the rest,
    so that the complement keeps its digits where it is small. A call of ``exp`` for each site would not be vectorised.
    """
    if forest.common_rate > 0:
        decay, complement = _decay(forest.common_rate * g)
        for d in range(forest.n_sites):
            scratch.rows[decay_row, d] = decay
            scratch.rows[complement_row, d] = complement
        return
    for d in range(forest.n_sites):
        x = max(-forest.site_rate[d] * g, const.MOST_NEGATIVE)
        rounded = x * const.LOG2_E + math.ROUNDER
        k = rounded - math.ROUNDER
        r = (x - k * const.LN2_HIGH) - k * const.LN2_LOW
        p = 1 / 6227020800.0
        p = p * r + 1 / 479001600.0
        p = p * r + 1 / 39916800.0
        p = p * r + 1 / 3628800.0
        p = p * r + 1 / 362880.0
        p = p * r + 1 / 40320.0
        p = p * r + 1 / 5040.0
        p = p * r + 1 / 720.0
        p = p * r + 1 / 120.0
        p = p * r + 1 / 24.0
        p = p * r + 1 / 6.0
        p = p * r + 0.5
        exp_minus_one = r + r * r * p  # exp(r) - 1
        power = math.two_to(rounded)
        scratch.rows[complement_row, d] = (1 - power) - power * exp_minus_one
        scratch.rows[decay_row, d] = power + power * exp_minus_one


def _sum_of_each_log(scratch, values, n):
    total = 0.0
    for d in range(n):
        total += math.log(scratch.rows[values, d]) if scratch.rows[values, d] > 0 else -math.inf
    return total


def sum_of_logs(scratch, values, folded, n):
    """Return the sum of the logarithms of a row, as logarithms of products: of eight values first, then of moderate products."""
    half = (n + 1) // 2
    scratch.rows[folded, half - 1] = scratch.rows[values, half - 1]
    for d in range(n - half):
        scratch.rows[folded, d] = scratch.rows[values, d] * scratch.rows[values, half + d]
    left = half
    for _ in range(2):
        half = (left + 1) // 2
        for d in range(left - half):
            scratch.rows[folded, d] = scratch.rows[folded, d] * scratch.rows[folded, half + d]
        left = half
    total, product = 0.0, 1.0
    for d in range(left):
        if not const.SMALLEST < scratch.rows[folded, d] < const.LARGEST:
            return _sum_of_each_log(scratch, values, n)
        if not const.SMALLEST < product * scratch.rows[folded, d] < const.LARGEST:
            total += math.log(product)
            product = 1.0
        product *= scratch.rows[folded, d]
    return total + math.log(product)


def log_of_sites(forest, scratch, values, folded):
    """Return the sum of the logarithms of a row of sites, each times the weight of its site; row `folded` is used up.

    The logarithm of the product of all values counts with the least weight, and those of heavier sites with what they weigh more.
    With ``x = 2^k m`` and m between the roots of 1/2 and 2, ``log x = k log 2 + 2 artanh(s)`` with ``s = (m - 1) / (m + 1)``, by
    the series of artanh. A call of ``log`` for each site would not be vectorised.
    """
    total = 0.0
    if forest.least_weight > 0:
        total = forest.least_weight * sum_of_logs(scratch, values, folded, forest.n_sites)
    n = forest.heavier.shape[0]
    if n == 0 or total == -math.inf:
        return total
    for d in range(n):
        scratch.rows[folded, d] = scratch.rows[values, forest.heavier[d]]
    outside = 0
    for d in range(n):
        outside += not const.SMALLEST < scratch.rows[folded, d] < const.LARGEST
    if outside:
        for d in range(n):
            if forest.more_weight[d] > 0:
                log = math.log(scratch.rows[folded, d]) if scratch.rows[folded, d] > 0 else -math.inf
                total += forest.more_weight[d] * log
        return total
    for d in range(n):
        k, m = math.exponent_of(scratch.rows[folded, d]), math.mantissa_of(scratch.rows[folded, d])
        s = (m - 1) / (m + 1)
        z = s * s
        p = 1 / 21.0
        p = p * z + 1 / 19.0
        p = p * z + 1 / 17.0
        p = p * z + 1 / 15.0
        p = p * z + 1 / 13.0
        p = p * z + 1 / 11.0
        p = p * z + 1 / 9.0
        p = p * z + 1 / 7.0
        p = p * z + 1 / 5.0
        p = p * z + 1 / 3.0
        log = k * const.LN2_HIGH + (k * const.LN2_LOW + 2 * (s + s * z * p))
        scratch.rows[folded, d] = forest.more_weight[d] * log
    return total + sum_of_row(scratch, folded, n)


def weigh_sites(forest, scratch, row):
    """Multiply a row by the weights of the sites."""
    if forest.weighted_sites:
        for d in range(forest.n_sites):
            scratch.rows[row, d] *= forest.site_weight[d]


def sum_of_row(scratch, values, n):
    """Return the sum of a row, by adding its halves in vectorised loops; the row is overwritten."""
    while n > 8:
        half = (n + 1) // 2
        for d in range(n - half):
            scratch.rows[values, d] = scratch.rows[values, d] + scratch.rows[values, half + d]
        n = half
    total = 0.0
    for d in range(n):
        total += scratch.rows[values, d]
    return total


def _lambert_above(z):
    """Return an upper bound of Lambert's W: the lowest of four tangents, at 0, 1, e and 7."""
    return min(min(z, 0.2053 + 0.3619 * z), min(0.5 + 0.18395 * z, 0.9212 + 0.0863 * z))


def _set_agreements(forest, i, j, scratch, row):
    """Put the inner products of two messages into a row."""
    for d in range(forest.n_sites):
        scratch.rows[row, d] = 0.0
    for r in range(forest.n_ranks):
        first = forest.rank[r]
        for d in range(forest.rank[r + 1] - first):
            scratch.rows[row, d] += forest.state[i, first + d] * forest.state[j, first + d]


# -- chains ----------------------------------------------------------------------------------------------------------------


def _set_products(forest, i, j, pair):
    """Put the products of two messages into the first row of chains."""
    for k in range(forest.chain.shape[1]):
        pair.chain[0, k] = forest.chain[i, k] * forest.chain[j, k]


def _chain_sums(forest, pair, d, g):
    """Return, of the positive and of the negative terms of Z, the sums of ``A u``, ``A r u`` and ``A r^2 u``, all with sign +."""
    z = less_z = one = less_one = two = less_two = 0.0
    for k in range(forest.chain_start[d], forest.chain_start[d + 1]):
        rate = forest.chain_rate[k]
        term = pair.chain[0, k] * math.exp(-rate * g)
        if term > 0:
            z += term
            one += rate * term
            two += rate * rate * term
        else:
            less_z -= term
            less_one -= rate * term
            less_two -= rate * rate * term
    return z, less_z, one, less_one, two, less_two


def _chain_z(z, less_z):
    """Return Z, at least the rounding of its terms."""
    return max(z - less_z, const.ROUNDING * z)


def _chain_slopes(z, less_z, one, less_one, two, less_two):
    """Return the slope of ``log Z`` of a chain and its derivative, given its `_chain_sums`."""
    over_z = 1 / _chain_z(z, less_z)
    mean = (one - less_one) * over_z
    return -2 * mean, 4 * ((two - less_two) * over_z - mean * mean)


def _chain_log_z(forest, pair, g):
    """Return the contribution of chains to ``log Z``."""
    total = 0.0
    for d in range(forest.n_chains):
        z, less_z, _, _, _, _ = _chain_sums(forest, pair, d, g)
        impossible = g == 0 and z - less_z <= const.ROUNDING * z
        if forest.chain_weight[d] > 0:
            total += forest.chain_weight[d] * (-math.inf if impossible else math.log(_chain_z(z, less_z)))
    return total


def _chain_bounds(forest, pair, d, g_low, g_high, shift):
    """Return bounds between two paths: of the slope and of its derivative; and the slopes at the high and the low end.

    The first is one of ``(g + shift) / (g_high + shift) * slope``, if shift is positive.
    """
    z_low, z_less_low, one_low, one_less_low, two_low, two_less_low = _chain_sums(forest, pair, d, g_low)
    z_high, z_less_high, one_high, one_less_high, two_high, two_less_high = _chain_sums(forest, pair, d, g_high)
    slope_low = -2 * (one_low - one_less_low) / _chain_z(z_low, z_less_low)
    slope_high = -2 * (one_high - one_less_high) / _chain_z(z_high, z_less_high)
    least_z, most_z = z_high - z_less_low, z_low - z_less_high
    least, most, least_bend, most_bend = -math.inf, math.inf, -math.inf, math.inf
    if least_z > const.ROUNDING * z_low:
        least_one, most_one = (one_high - one_less_low) / least_z, (one_low - one_less_high) / least_z
        # of the squared mean rate, and of the mean squared rate
        nearest = max(max(least_one, -most_one), 0.0) * least_z / most_z
        largest = max(most_one, -least_one)
        least_two, most_two = two_high - two_less_low, two_low - two_less_high
        least_bend = 4 * (least_two / (most_z if least_two > 0 else least_z) - largest * largest)
        most_bend = 4 * (most_two / (least_z if most_two > 0 else most_z) - nearest * nearest)
        half = 0.5 * (g_high - g_low)
        least = max(slope_low + half * min(least_bend, 0.0), slope_high - half * max(most_bend, 0.0))
        most = min(slope_low + half * max(most_bend, 0.0), slope_high - half * min(least_bend, 0.0))
    exit_rate = forest.fastest_exit[d]
    if shift > 0:
        least = least * (g_low + shift) / (g_high + shift) if least > 0 else least
    if g_high > 0:
        changes = max(g_low * (0.5 * slope_low + exit_rate), 0.0)
        if z_low - z_less_low <= const.ROUNDING * z_low:
            changes = 1.0  # the states differ: there is a change, however short the path
        least = max(least, 2 * (changes / (g_high + shift) - exit_rate))
    if g_low > 0:
        most = min(most, 2 * (g_high * (0.5 * slope_high + exit_rate) / g_low - exit_rate))
    return least, most, least_bend, most_bend, slope_high


def _chain_least_slope(forest, pair, g_low, g_high, shift):
    """Return the contribution of chains to `least_slope`."""
    total, shift = 0.0, max(shift, const.TINY)
    for d in range(forest.n_chains):
        total += forest.chain_weight[d] * _chain_bounds(forest, pair, d, g_low, g_high, shift)[0]
    return total


def _chain_highest(forest, pair, c):
    """Return a path beyond which the slope of chains is below c: all terms are at most what they are with the slowest rate."""
    slowest, negative, rise = math.inf, 0.0, 0.0
    for d in range(forest.n_chains):
        total = 0.0
        for k in range(forest.chain_start[d] + 1, forest.chain_start[d + 1]):
            slowest = min(slowest, forest.chain_rate[k])
            total += max(-pair.chain[0, k], 0.0)
            rise += forest.chain_weight[d] * forest.chain_rate[k] * max(-pair.chain[0, k], 0.0)
        negative = max(negative, total)
    most = max(2 * negative, 4 * rise / c)  # with u below its inverse, all Z are above 1/2
    return math.log(most) / slowest if most > 1 else 0.0


def _set_state_message(forest, slot, d, climb, scratch, row):
    """Put ``sqrt(q) M`` of a chain, at the top of a climb, into a row, which is not the last."""
    first, last = forest.chain_start[d], forest.chain_start[d + 1]
    for k in range(first, last):
        scratch.chain[3, k] = forest.chain[slot, k] * math.exp(-forest.chain_rate[k] * climb)
    for s in range(first, last):
        total = 0.0
        for k in range(first, last):
            total += forest.basis[s, k - first] * scratch.chain[3, k]
        scratch.chain[row, s] = max(total, 0.0)


def _merge_chains(forest, i, j, climb_i, climb_j, into, scratch):
    """Merge the messages of all chains; returns whether all are possible."""
    possible = True
    for d in range(forest.n_chains):
        first, last = forest.chain_start[d], forest.chain_start[d + 1]
        _set_state_message(forest, i, d, climb_i, scratch, 1)
        _set_state_message(forest, j, d, climb_j, scratch, 2)
        z = 0.0
        for s in range(first, last):
            z += scratch.chain[1, s] * scratch.chain[2, s]
            scratch.chain[1, s] *= scratch.chain[2, s] / forest.basis[s, 0]
        if not z > const.POLE or (climb_i + climb_j == 0 and not z > const.ROUNDING):
            possible = False  # two states meet that no time parts: any message will do
            for k in range(first, last):
                forest.chain[into, k] = 1.0 if k == first else 0.0
            continue
        for k in range(first, last):
            total = 0.0
            for s in range(first, last):
                total += forest.basis[s, k - first] * scratch.chain[1, s]
            forest.chain[into, k] = total / z
    return possible


def _chain_log_z_at(forest, place, up, down, across):
    """Return the contribution of chains to `log_z_at`."""
    total = 0.0
    for d in range(forest.n_chains):
        _set_state_message(forest, place.below, d, up, place, 0)
        _set_state_message(forest, place.beyond, d, down, place, 1)
        _set_state_message(forest, place.third, d, across, place, 2)
        both = joint = 0.0
        for s in range(forest.chain_start[d], forest.chain_start[d + 1]):
            both += place.chain[0, s] * place.chain[1, s]
            joint += place.chain[0, s] * place.chain[1, s] * place.chain[2, s] / forest.basis[s, 0]
        if both > const.POLE and forest.chain_weight[d] > 0:  # else any message will do, as in `merge`
            total += forest.chain_weight[d] * (math.log(joint / both) if joint > 0 else -math.inf)
    return total


# -- pairs -----------------------------------------------------------------------------------------------------------------


def load_pair(forest, i, j, pair):
    """Load slots i and j as a pair."""
    pair.heights = forest.height[i] + forest.height[j]
    if forest.complete:
        d2 = product = 0.0
        for d in range(forest.n_real):
            gap = forest.mean[i, d] - forest.mean[j, d]
            d2 += gap * gap
            product += forest.mean[i, d] * forest.mean[j, d]
        pair.d2[0], pair.product[0] = forest.common_weight * d2, forest.common_weight * product
        if forest.n_brownian:
            pair.lost[0] = forest.spread[i, 0] + forest.spread[j, 0]
        else:
            pair.correlation[0] = (1 - forest.spread[i, 0]) * (1 - forest.spread[j, 0])
            pair.lost[0] = forest.spread[i, 0] + (1 - forest.spread[i, 0]) * forest.spread[j, 0]
        return
    count, log_scale = 0, 0.0
    if forest.n_brownian and forest.together[0]:
        pair.d2[0], pair.product[0] = _sums_together(forest, i, j, 0, forest.n_brownian)
        pair.lost[0], pair.weight[0] = forest.spread[i, 0] + forest.spread[j, 0], forest.sum_weight[0]
        count, log_scale = 1, forest.total_log_scale
    for d in range(0 if forest.together[0] else forest.n_brownian):
        width = forest.spread[i, d] + forest.spread[j, d]
        if width < math.inf:
            gap = forest.mean[i, d] - forest.mean[j, d]
            weight = forest.real_weight[d]
            pair.d2[count], pair.lost[count], pair.weight[count] = weight * (gap * gap), width, weight
            log_scale += weight * forest.log_scale[d]
            count += 1
    pair.end[0], pair.log_scale = count, log_scale
    for k in range(forest.n_groups):
        first, last = forest.group[k], forest.group[k + 1]
        if forest.together[k + 1]:
            lost_i, lost_j = forest.spread[i, first], forest.spread[j, first]
            pair.d2[count], pair.product[count] = _sums_together(forest, i, j, first, last)
            pair.correlation[count], pair.lost[count] = (1 - lost_i) * (1 - lost_j), lost_i + (1 - lost_i) * lost_j
            pair.weight[count] = forest.sum_weight[k + 1]
            pair.end[k + 1] = count = count + 1
            continue
        for d in range(first, last):
            lost_i, lost_j = forest.spread[i, d], forest.spread[j, d]
            correlation = (1 - lost_i) * (1 - lost_j)
            if correlation > 0:
                gap = forest.mean[i, d] - forest.mean[j, d]
                weight = forest.real_weight[d]
                pair.d2[count], pair.weight[count] = weight * (gap * gap), weight
                pair.product[count] = weight * (forest.mean[i, d] * forest.mean[j, d])
                pair.correlation[count], pair.lost[count] = correlation, lost_i + (1 - lost_i) * lost_j
                count += 1
        pair.end[k + 1] = count
    if forest.n_sites:
        _set_agreements(forest, i, j, pair, 0)
    if forest.n_chains:
        _set_products(forest, i, j, pair)


def _sums_together(forest, i, j, first, last):
    """Return the sums of squared differences and of products of the means of some columns, times their weights.

    Four sums at a time do not wait for each other.
    """
    d2_one = d2_two = d2_three = d2_four = product_one = product_two = product_three = product_four = 0.0
    d = first
    while d + 4 <= last:
        one, two = forest.mean[i, d] - forest.mean[j, d], forest.mean[i, d + 1] - forest.mean[j, d + 1]
        three, four = forest.mean[i, d + 2] - forest.mean[j, d + 2], forest.mean[i, d + 3] - forest.mean[j, d + 3]
        d2_one += forest.real_weight[d] * (one * one)
        d2_two += forest.real_weight[d + 1] * (two * two)
        d2_three += forest.real_weight[d + 2] * (three * three)
        d2_four += forest.real_weight[d + 3] * (four * four)
        product_one += forest.real_weight[d] * (forest.mean[i, d] * forest.mean[j, d])
        product_two += forest.real_weight[d + 1] * (forest.mean[i, d + 1] * forest.mean[j, d + 1])
        product_three += forest.real_weight[d + 2] * (forest.mean[i, d + 2] * forest.mean[j, d + 2])
        product_four += forest.real_weight[d + 3] * (forest.mean[i, d + 3] * forest.mean[j, d + 3])
        d += 4
    while d < last:
        one = forest.mean[i, d] - forest.mean[j, d]
        d2_one += forest.real_weight[d] * (one * one)
        product_one += forest.real_weight[d] * (forest.mean[i, d] * forest.mean[j, d])
        d += 1
    return (d2_one + d2_two) + (d2_three + d2_four), (product_one + product_two) + (product_three + product_four)


def pair_shift(forest, i, j):
    """Return the shift that bounds the slopes of slots i and j."""
    shift = forest.least[i] + forest.least[j]
    return shift if shift < math.inf else 0.0


def log_z(forest, pair, h):
    """Return the log local likelihood of the merge of the pair at height h, including all constants."""
    g = max(2 * h - pair.heights, 0.0)
    if forest.complete:
        return _complete_log_z(forest, pair, g)
    total = 0.0
    if forest.n_brownian:
        total = -pair.log_scale
        for k in range(pair.end[0]):
            s = pair.lost[k] + g
            total -= 0.5 * (pair.weight[k] * (const.LOG_2PI + math.log(s)) + pair.d2[k] / s)
    for group in range(forest.n_groups):
        decay, complement = _decay(forest.rate[group] * g)
        for k in range(pair.end[group], pair.end[group + 1]):
            rho = pair.correlation[k] * decay
            one = (pair.lost[k] + pair.correlation[k] * complement) * (1 + rho)
            pair.real[0, k] = one
            pair.real[1, k] = 2 * pair.product[k] * rho / (1 + rho) - pair.d2[k] * rho * rho / one
        if forest.weighted_real or forest.together[group + 1]:
            total += _half_weighted_total(pair, pair.weight, pair.end[group], pair.end[group + 1])
        else:
            total += _half_total(pair, pair.end[group], pair.end[group + 1])
    if forest.n_sites:
        if forest.common_rate > 0:
            decay, complement = _decay(forest.common_rate * g)
            for d in range(forest.n_sites):
                pair.rows[1, d] = pair.rows[0, d] * decay + complement
        else:
            set_decay(forest, pair, g, 1, 2)
            for d in range(forest.n_sites):
                pair.rows[1, d] = pair.rows[0, d] * pair.rows[1, d] + pair.rows[2, d]
        total += log_of_sites(forest, pair, 1, 3)
    return total + _chain_log_z(forest, pair, g) if forest.n_chains else total


def _complete_log_z(forest, pair, g):
    if forest.n_brownian:
        s = pair.lost[0] + g
        normal = const.LOG_2PI + math.log(s)
        return -0.5 * forest.total_weight * normal - forest.total_log_scale - pair.d2[0] / (2 * s)
    decay, complement = _decay(forest.rate[0] * g)
    rho, gap = pair.correlation[0] * decay, pair.lost[0] + pair.correlation[0] * complement
    return _log_ratio(forest.total_weight, pair.d2[0], pair.product[0], rho, gap)


def set_log_norm(forest, i, pair):
    """Set the log norm of a slot's message: half of its ``log Z`` with a copy of itself.

    With the inner product ``Z`` of messages, ``log Z(i, j) - log_norm[i] - log_norm[j]`` is the log cosine of the angle between
    two of them: their similarity, independent of the number of rows below each. Columns without noise, whose norm is unbounded,
    are excluded; with missing cells, so are Brownian columns, because a flat message has no norm there.
    """
    load_pair(forest, i, i, pair)
    total = 0.0
    if forest.complete:
        total = _complete_log_z(forest, pair, 0.0) if pair.lost[0] > 0 else 0.0
    else:
        for group in range(forest.n_groups):
            for k in range(pair.end[group], pair.end[group + 1]):
                if pair.lost[k] > 1e-12:  # more than what keeps the density of identical cells finite
                    total += _log_ratio(pair.weight[k], 0.0, pair.product[k], pair.correlation[k], pair.lost[k])
        if forest.n_sites:
            total += log_of_sites(forest, pair, 0, 3)
        if forest.n_chains:
            total += _chain_log_z(forest, pair, 0.0)
    forest.log_norm[i] = 0.5 * total


def set_log_norms(forest, n):
    """Set the log norms of the first n slots."""
    pair = Pair(forest)
    for i in range(n):
        set_log_norm(forest, i, pair)


def log_cosine(forest, i, j, pair, h):
    """Return the log cosine of the angle between two messages at height h; it may be above 0 by what norms exclude."""
    return log_z(forest, pair, h) - (forest.log_norm[i] + forest.log_norm[j])


def slopes(forest, pair, h):
    """Return rise and drop of ``log Z`` at h, and minus their derivatives: all four non-negative without chains."""
    g = max(2 * h - pair.heights, 0.0)
    rise = drop = rise_falls = drop_falls = 0.0
    if forest.complete:
        return _complete_slopes(forest, pair, g)
    for k in range(pair.end[0]):
        r = 1 / (pair.lost[k] + g)
        term = pair.d2[k] * r * r
        rise += term
        rise_falls += 4 * term * r
        drop += pair.weight[k] * r
        drop_falls += 2 * pair.weight[k] * r * r
    for group in range(forest.n_groups):
        rate = forest.rate[group]
        decay, complement = _decay(rate * g)
        one = two = three = four = 0.0
        for k in range(pair.end[group], pair.end[group + 1]):
            rho = pair.correlation[k] * decay
            gap = pair.lost[k] + pair.correlation[k] * complement
            terms = _stationary_slopes(pair.weight[k], pair.d2[k], pair.product[k], rho, gap)
            one += terms[0]
            two += terms[1]
            three += terms[2]
            four += terms[3]
        rise += 2 * rate * one
        drop += 2 * rate * two
        rise_falls += 4 * rate * rate * three
        drop_falls += 4 * rate * rate * four
    if forest.n_sites:
        set_decay(forest, pair, g, 1, 2)
        # terms are computed in one loop, which is vectorised, and added up in another, which must not be reordered
        for d in range(forest.n_sites):
            over_z = 1 / max(pair.rows[0, d] * pair.rows[1, d] + pair.rows[2, d], const.POLE)
            slope = 2 * forest.site_rate[d] * (1 - pair.rows[0, d]) * pair.rows[1, d] * over_z
            pair.rows[3, d] = slope
            pair.rows[4, d] = 2 * forest.site_rate[d] * slope * over_z
        weigh_sites(forest, pair, 3)
        weigh_sites(forest, pair, 4)
        for d in range(forest.n_sites):
            rise += max(pair.rows[3, d], 0.0)
            drop -= min(pair.rows[3, d], 0.0)
            rise_falls += max(pair.rows[4, d], 0.0)
            drop_falls -= min(pair.rows[4, d], 0.0)
    for d in range(forest.n_chains):
        sums = _chain_sums(forest, pair, d, g)
        chain_terms = _chain_slopes(sums[0], sums[1], sums[2], sums[3], sums[4], sums[5])
        drop -= forest.chain_weight[d] * chain_terms[0]
        drop_falls += forest.chain_weight[d] * chain_terms[1]
    return rise, drop, rise_falls, drop_falls


def _complete_slopes(forest, pair, g):
    if forest.n_brownian:
        s = pair.lost[0] + g
        rise, drop = pair.d2[0] / (s * s), forest.total_weight / s
        return rise, drop, 4 * rise / s, 2 * drop / s
    twice = 2 * forest.rate[0]
    decay, complement = _decay(forest.rate[0] * g)
    rho, gap = pair.correlation[0] * decay, pair.lost[0] + pair.correlation[0] * complement
    terms = _stationary_slopes(forest.total_weight, pair.d2[0], pair.product[0], rho, gap)
    return twice * terms[0], twice * terms[1], twice * twice * terms[2], twice * twice * terms[3]


def least_slope(forest, pair, low, high, shift):
    """Return a lower bound of ``(g(h) + shift) / (g(high) + shift) * slope(h)`` for h in [low, high].

    The factor is positive, so it does not change the sign of the slope; it removes the pole at ``g = 0``, near which all bounds
    would be useless. `shift` is the sum of the shortest paths of the two slots, or 0.
    """
    g_low, g_high = max(2 * low - pair.heights, 0.0), max(2 * high - pair.heights, 0.0)
    ratio = max(g_low + shift, const.TINY) / max(g_high + shift, const.TINY)
    total = 0.0
    if forest.complete:
        return _complete_least_slope(forest, pair, g_low, g_high, ratio)
    for k in range(pair.end[0]):
        r_low, r_high = 1 / (pair.lost[k] + g_low), 1 / (pair.lost[k] + g_high)
        total += pair.d2[k] * min(ratio * r_low * r_low, r_high * r_high) - pair.weight[k] * r_high
    for group in range(forest.n_groups):
        rate = forest.rate[group]
        kept_low, gone_low = _decay(rate * g_low)
        kept_high, gone_high = _decay(rate * g_high)
        for k in range(pair.end[group], pair.end[group + 1]):
            f, lost = pair.correlation[k], pair.lost[k]
            bound = _stationary_least_slope(
                pair.weight[k],
                pair.d2[k],
                pair.product[k],
                ratio,
                f * kept_low,
                lost + f * gone_low,
                f * kept_high,
                lost + f * gone_high,
            )
            total += 2 * rate * bound
    if forest.n_sites:
        g_low, g_high = max(g_low, const.SHORTEST), max(g_high, const.SHORTEST)
        set_decay(forest, pair, g_low, 1, 2)
        set_decay(forest, pair, g_high, 3, 4)
        _set_site_least_slopes(forest, pair, g_low, g_high, shift)
        weigh_sites(forest, pair, 5)
        total += sum_of_row(pair, 5, forest.n_sites)
    return total + _chain_least_slope(forest, pair, g_low, g_high, shift) if forest.n_chains else total


def _set_site_least_slopes(forest, pair, g_low, g_high, shift):
    """Put the bounds of all sites into row 5; rows 1 to 4 have the decay and its complement, over the low and the high path."""
    inverse = 1 / (g_high + shift)
    for d in range(forest.n_sites):
        agreement, rate = pair.rows[0, d], forest.site_rate[d]
        left_low = max(agreement * pair.rows[1, d] + pair.rows[2, d], const.POLE)
        left_high = max(agreement * pair.rows[3, d] + pair.rows[4, d], const.POLE)
        common = 2 * rate * (1 - agreement) / (left_low * left_high)
        at_low = pair.rows[1, d] * left_high * common
        at_high = pair.rows[3, d] * left_low * common
        rise = (min(g_low * at_low, g_high * at_high) + shift * at_high) * inverse
        scaled = max(agreement - 1, 0.0) * const.INVERSE_E
        most = _lambert_above(scaled)
        peak = -2 * most if rate * g_low < 1 + most else g_low * at_low
        peak = g_high * at_high if rate * g_high * (1 + scaled) <= 1 + 2 * scaled else peak
        drop = max((peak + shift * at_low) * inverse, at_low)
        pair.rows[5, d] = rise if agreement < 1 else drop


def _complete_least_slope(forest, pair, g_low, g_high, ratio):
    if forest.n_brownian:
        r_low, r_high = 1 / (pair.lost[0] + g_low), 1 / (pair.lost[0] + g_high)
        return pair.d2[0] * min(ratio * r_low * r_low, r_high * r_high) - forest.total_weight * r_high
    rate, f, lost = forest.rate[0], pair.correlation[0], pair.lost[0]
    kept_low, gone_low = _decay(rate * g_low)
    kept_high, gone_high = _decay(rate * g_high)
    bound = _stationary_least_slope(
        forest.total_weight,
        pair.d2[0],
        pair.product[0],
        ratio,
        f * kept_low,
        lost + f * gone_low,
        f * kept_high,
        lost + f * gone_high,
    )
    return 2 * rate * bound


def drop_falls_range(forest, pair, low, high):
    """Return a lower and an upper bound of minus the derivative of the drop, for all h in [low, high]."""
    g_low, g_high = max(2 * low - pair.heights, 0.0), max(2 * high - pair.heights, 0.0)
    least = most = 0.0
    if forest.complete and forest.n_brownian:
        r_low, r_high = 1 / (pair.lost[0] + g_low), 1 / (pair.lost[0] + g_high)
        return 2 * forest.total_weight * r_high * r_high, 2 * forest.total_weight * r_low * r_low
    if forest.complete:
        twice, f, lost = 2 * forest.rate[0], pair.correlation[0], pair.lost[0]
        kept_low, gone_low = _decay(forest.rate[0] * g_low)
        kept_high, gone_high = _decay(forest.rate[0] * g_high)
        bounds = _stationary_drop_falls(
            forest.total_weight, pair.product[0], f * kept_low, lost + f * gone_low, f * kept_high, lost + f * gone_high
        )
        return twice * twice * bounds[0], twice * twice * bounds[1]
    for k in range(pair.end[0]):
        r_low, r_high = 1 / (pair.lost[k] + g_low), 1 / (pair.lost[k] + g_high)
        least += 2 * pair.weight[k] * r_high * r_high
        most += 2 * pair.weight[k] * r_low * r_low
    for group in range(forest.n_groups):
        rate = forest.rate[group]
        kept_low, gone_low = _decay(rate * g_low)
        kept_high, gone_high = _decay(rate * g_high)
        for k in range(pair.end[group], pair.end[group + 1]):
            f, lost = pair.correlation[k], pair.lost[k]
            bounds = _stationary_drop_falls(
                pair.weight[k], pair.product[k], f * kept_low, lost + f * gone_low, f * kept_high, lost + f * gone_high
            )
            least += 4 * rate * rate * bounds[0]
            most += 4 * rate * rate * bounds[1]
    if forest.n_sites:
        # minus the derivative of a drop is 4 rate^2 y / (1 + y)^2 with y = -b u: largest, rate^2, where y = 1
        set_decay(forest, pair, g_low, 1, 2)
        set_decay(forest, pair, g_high, 3, 4)
        for d in range(forest.n_sites):
            rate = forest.site_rate[d]
            y_low = max(pair.rows[0, d] - 1, 0.0) * pair.rows[1, d]
            y_high = max(pair.rows[0, d] - 1, 0.0) * pair.rows[3, d]
            at_low = 4 * rate * rate * y_low / ((1 + y_low) * (1 + y_low))
            at_high = 4 * rate * rate * y_high / ((1 + y_high) * (1 + y_high))
            least += forest.site_weight[d] * min(at_low, at_high)
            most += forest.site_weight[d] * (rate * rate if y_high < 1 < y_low else max(at_low, at_high))
    for d in range(forest.n_chains):
        of_chain = _chain_bounds(forest, pair, d, g_low, g_high, 0.0)
        least += forest.chain_weight[d] * of_chain[2]
        most += forest.chain_weight[d] * of_chain[3]
    return least, most


def chain_gap(forest, pair, low, high):
    """Return at most how much the slope of chains in [low, high] exceeds that at the high end."""
    g_low, g_high = max(2 * low - pair.heights, 0.0), max(2 * high - pair.heights, 0.0)
    total = 0.0
    for d in range(forest.n_chains):
        bounds = _chain_bounds(forest, pair, d, g_low, g_high, 0.0)
        total += forest.chain_weight[d] * max(bounds[1] - bounds[4], 0.0)
    return total


def highest(forest, pair, c):
    """Return a height above which the rise is below c, so that ``log Z - c h`` falls."""
    if forest.complete and forest.n_brownian:
        return 0.5 * (math.sqrt(pair.d2[0] / c) - pair.lost[0] + pair.heights)
    if forest.complete:
        path = _stationary_highest(forest.rate[0], pair.d2[0], max(-pair.product[0], 0.0), c)
        return 0.5 * (max(path - path_of(forest.rate[0], pair.lost[0]), 0.0) + pair.heights)
    # Where the rise of each kind is below its share of c, their sum is below c: a half, a quarter and so on, and the last kind
    # has as much as the one before.
    kinds = (forest.n_brownian > 0) + forest.n_groups + (forest.n_sites > 0) + (forest.n_chains > 0)
    share, top = c, 0.0
    d2, least = 0.0, math.inf
    if forest.n_brownian:
        kinds -= 1
        share = 0.5 * share if kinds else share
    for k in range(pair.end[0]):
        d2 += pair.d2[k]
        least = min(least, pair.lost[k])
    if least < math.inf:
        top = max(top, 0.5 * (math.sqrt(d2 / share) - least + pair.heights))
    for group in range(forest.n_groups):
        kinds -= 1
        share = 0.5 * share if kinds else share
        d2, apart, least = 0.0, 0.0, math.inf
        for k in range(pair.end[group], pair.end[group + 1]):
            d2 += pair.d2[k]
            apart += max(-pair.product[k], 0.0)
            least = min(least, pair.lost[k])
        if least < math.inf:
            path = _stationary_highest(forest.rate[group], d2, apart, share) - path_of(forest.rate[group], least)
            top = max(top, 0.5 * (max(path, 0.0) + pair.heights))
    if forest.n_chains:
        kinds -= 1
        share = 0.5 * share if kinds else share
        top = max(top, 0.5 * (_chain_highest(forest, pair, share) + pair.heights))
    if forest.n_sites:
        disagreement = 0.0
        for d in range(forest.n_sites):
            disagreement += forest.site_weight[d] * max(1 - pair.rows[0, d], 0.0)
        top = max(top, 0.5 * (2 * disagreement / share + pair.heights))  # since rate b / (exp(rate g) - b) <= b / g
    return top


# -- many partners of one slot ---------------------------------------------------------------------------------------------


def start_scan(forest, i, low, high, pair):
    """Prepare `scan_slope` with slot i over [low, high]: rows 6 and 7 get what all partners have in common."""
    if forest.n_real == 0 and forest.common_rate > 0:
        pair.rows[7, 0] = math.exp(-forest.common_rate * (2 * high - forest.height[i]))  # all that is needed
        return
    for d in range(forest.n_sites):
        pair.rows[6, d] = math.exp(-forest.site_rate[d] * (2 * low - forest.height[i]))
        pair.rows[7, d] = math.exp(-forest.site_rate[d] * (2 * high - forest.height[i]))


def scan_slope(forest, i, j, low, high, shift, pair):
    """Return a less exact but fast `least_slope` of slots i and j of the general layout, none above `low`, after `start_scan`.

    For sites of one rate it is the slope at the high end, which is as good. It needs `growth`, and ``fastest * high`` of at most
    `LARGEST_EXPONENT`.
    """
    if forest.n_real == 0 and forest.common_rate > 0:
        _set_agreements(forest, i, j, pair, 0)
        return _slope_of_sites(forest, j, pair)
    heights = forest.height[i] + forest.height[j]
    g_low, g_high = max(2 * low - heights, 0.0), max(2 * high - heights, 0.0)
    ratio = max(g_low + shift, const.TINY) / max(g_high + shift, const.TINY)
    total = 0.0
    if forest.n_brownian and forest.together[0]:
        sums = _sums_together(forest, i, j, 0, forest.n_brownian)
        width = forest.spread[j, 0] + forest.spread[i, 0]
        r_low, r_high = 1 / (width + g_low), 1 / (width + g_high)
        total += sums[0] * min(ratio * r_low * r_low, r_high * r_high) - forest.sum_weight[0] * r_high
    last = 0 if forest.together[0] else forest.n_brownian
    for d in range(last):
        gap = forest.mean[j, d] - forest.mean[i, d]
        width = forest.spread[j, d] + forest.spread[i, d]  # infinite where one is flat: both reciprocals are then 0
        r_low, r_high = 1 / (width + g_low), 1 / (width + g_high)
        term = gap * gap * min(ratio * r_low * r_low, r_high * r_high) - r_high
        pair.term[d] = forest.real_weight[d] * term
    for d in range(last):
        total += pair.term[d]
    for k in range(forest.n_groups):
        rate, first, last = forest.rate[k], forest.group[k], forest.group[k + 1]
        kept_low, gone_low = _decay(rate * g_low)
        kept_high, gone_high = _decay(rate * g_high)
        if forest.together[k + 1]:
            sums = _sums_together(forest, i, j, first, last)
            f_i = 1 - forest.spread[i, first]
            f, lost = f_i * (1 - forest.spread[j, first]), forest.spread[i, first] + f_i * forest.spread[j, first]
            total += (
                2
                * rate
                * _stationary_least_slope(
                    forest.sum_weight[k + 1],
                    sums[0],
                    sums[1],
                    ratio,
                    f * kept_low,
                    lost + f * gone_low,
                    f * kept_high,
                    lost + f * gone_high,
                )
            )
            continue
        for d in range(first, last):
            gap = forest.mean[j, d] - forest.mean[i, d]
            f_i = 1 - forest.spread[i, d]
            f = f_i * (1 - forest.spread[j, d])  # 0 where one is flat, and so are all terms
            lost = forest.spread[i, d] + f_i * forest.spread[j, d]
            pair.term[d] = (
                2
                * rate
                * _stationary_least_slope(
                    1,
                    gap * gap,
                    forest.mean[i, d] * forest.mean[j, d],
                    ratio,
                    f * kept_low,
                    lost + f * gone_low,
                    f * kept_high,
                    lost + f * gone_high,
                )
            )
        for d in range(first, last):
            pair.term[d] *= forest.real_weight[d]
        for d in range(first, last):
            total += pair.term[d]
    if forest.n_sites:
        _set_agreements(forest, i, j, pair, 0)
        _set_scanned_slopes(forest, j, max(g_low, const.SHORTEST), max(g_high, const.SHORTEST), shift, pair)
        weigh_sites(forest, pair, 5)
        total += sum_of_row(pair, 5, forest.n_sites)
    if forest.n_chains:
        _set_products(forest, i, j, pair)
        total += _chain_least_slope(forest, pair, g_low, g_high, shift)
    return total


def _set_scanned_slopes(forest, j, g_low, g_high, shift, pair):
    """Put bounds of all sites into row 5, from what `start_scan` prepared and the growth of slot j."""
    inverse = 1 / (g_high + shift)
    # Only row 5 is written: with more of them a compiler cannot see to it that none is what is read.
    if forest.fastest * g_high <= 1:
        # Slow sites, and all while the tree is young, are still short of the peak of every drop.
        for d in range(forest.n_sites):
            b = 1 - pair.rows[0, d]
            bu_low, bu_high = b * pair.rows[6, d] * forest.growth[j, d], b * pair.rows[7, d] * forest.growth[j, d]
            # one division for both: bu / (1 - bu) at the low and at the high end
            left_low, left_high = max(1 - bu_low, const.POLE), max(1 - bu_high, const.POLE)
            common = 2 * forest.site_rate[d] / (left_low * left_high)
            at_low, at_high = bu_low * left_high * common, bu_high * left_low * common
            rise = (min(g_low * at_low, g_high * at_high) + shift * at_high) * inverse
            drop = max((g_high * at_high + shift * at_low) * inverse, at_low)
            pair.rows[5, d] = rise if b > 0 else drop
        return
    for d in range(forest.n_sites):
        b, rate = 1 - pair.rows[0, d], forest.site_rate[d]
        bu_low, bu_high = b * pair.rows[6, d] * forest.growth[j, d], b * pair.rows[7, d] * forest.growth[j, d]
        left_low, left_high = max(1 - bu_low, const.POLE), max(1 - bu_high, const.POLE)
        common = 2 * rate / (left_low * left_high)
        at_low, at_high = bu_low * left_high * common, bu_high * left_low * common
        rise = (min(g_low * at_low, g_high * at_high) + shift * at_high) * inverse
        scaled = max(-b, 0.0) * const.INVERSE_E
        most = _lambert_above(scaled)
        peak = -2 * most if rate * g_low < 1 + most else g_low * at_low
        peak = g_high * at_high if rate * g_high * (1 + scaled) <= 1 + 2 * scaled else peak
        drop = max((peak + shift * at_low) * inverse, at_low)
        pair.rows[5, d] = rise if b > 0 else drop


def _slope_of_sites(forest, j, pair):
    """Return the slope of ``log Z`` at the high end of a scan, for sites of one rate.

    There ``log Z - c h`` is concave in ``1 - exp(-rate g)``: if it rises here, it rises all the way up to here.
    """
    u = pair.rows[7, 0] * forest.growth[j, 0]
    for d in range(forest.n_sites):
        bu = u - pair.rows[0, d] * u
        pair.rows[5, d] = bu / max(1 - bu, const.POLE)
    weigh_sites(forest, pair, 5)
    return 2 * forest.common_rate * sum_of_row(pair, 5, forest.n_sites)


# -- merging ---------------------------------------------------------------------------------------------------------------


def merge(forest, i, j, h, into, scratch):
    """Write the message of slots i and j, merged at height h, into a slot, which may be i or j; its height is not set.

    Returns whether columns with states allow it. If not, two states meet that no time parts.
    """
    climb_i, climb_j = h - forest.height[i], h - forest.height[j]
    if forest.complete:
        _merge_complete(forest, i, j, climb_i, climb_j, into)
        return True
    least, possible = math.inf, True
    for d in range(forest.n_brownian):
        y, v = _join_brownian(
            forest.mean[i, d], forest.spread[i, d] + climb_i, forest.mean[j, d], forest.spread[j, d] + climb_j
        )
        forest.mean[into, d], forest.spread[into, d] = y, v
        least = min(least, v)
    for k in range(forest.n_groups):
        least_lost = _merge_stationary(forest, k, i, j, climb_i, climb_j, into, scratch)
        least = min(least, path_of(forest.rate[k], least_lost))
    if (
        forest.n_chains and forest.n_real == 0
    ):  # any shift bounds the slopes of chains; this one is about as tight as can be
        w_i, w_j = max(forest.least[i] + climb_i, const.TINY), max(forest.least[j] + climb_j, const.TINY)
        _, least = _join_brownian(0.0, w_i, 0.0, w_j)
    forest.least[into] = least
    if forest.n_sites:
        possible = _merge_sites(forest, i, j, max(climb_i, 0.0), max(climb_j, 0.0), into, scratch)
    if forest.n_chains:
        possible = _merge_chains(forest, i, j, max(climb_i, 0.0), max(climb_j, 0.0), into, scratch) and possible
    if forest.growth.shape[1]:
        _set_growth(forest, into, h)
    return possible


def merge_and_log_z(forest, i, j, h, into, pair):
    """Do the same for another slot than i or j, and return the log local likelihood, see `log_z`."""
    possible = merge(forest, i, j, h, into, pair)
    if possible and forest.n_sites > 0 and forest.n_real == 0 and forest.n_chains == 0:
        return -log_of_sites(forest, pair, 5, 6)  # each site's message was divided by its likelihood
    load_pair(forest, i, j, pair)
    return log_z(forest, pair, h)


def merge_copies(forest, counts):
    """Replace the messages of the first slots, which are leaves, by those of so many equal leaves, merged at height 0.

    The last slot is overwritten.
    """
    scratch = Rows(forest)
    one = forest.height.shape[0] - 1
    for i in range(counts.shape[0]):
        bit = 1
        while 2 * bit <= counts[i]:
            bit *= 2
        move(forest, i, one)
        while bit > 1:  # from the second binary digit on: twice as many copies, and one more if it is 1
            bit //= 2
            merge(forest, i, i, 0.0, i, scratch)
            if counts[i] & bit:
                merge(forest, i, one, 0.0, i, scratch)


def _merge_stationary(forest, group, i, j, climb_i, climb_j, into, scratch):
    """Merge the messages of the stationary columns of one rate; return the smallest loss of any of them.

    With ``n`` for f at the meeting point and ``q = 1 - n^2``, precisions are ``n^2 / q`` and weights ``n / q``. Both sides are
    multiplied by ``q_i q_j``, so that exact and flat messages need no branch.
    """
    first, last, rate = forest.group[group], forest.group[group + 1], forest.rate[group]
    kept_i, gone_i = _decay(rate * climb_i)
    kept_j, gone_j = _decay(rate * climb_j)
    for d in range(first, last):
        n_i, n_j = (1 - forest.spread[i, d]) * kept_i, (1 - forest.spread[j, d]) * kept_j
        q_i = (forest.spread[i, d] + (1 - forest.spread[i, d]) * gone_i) * (1 + n_i)
        q_j = (forest.spread[j, d] + (1 - forest.spread[j, d]) * gone_j) * (1 + n_j)
        weight_i, weight_j = n_i * q_j, n_j * q_i
        neither, some = q_i * q_j, n_i * weight_i + n_j * weight_j
        inverse = 1 / (neither + some)
        f = math.sqrt(some * inverse)
        joint = (weight_i * forest.mean[i, d] + weight_j * forest.mean[j, d]) * inverse
        scratch.real[0, d] = joint / max(f, const.FLATTEST)
        scratch.real[1, d] = neither * inverse / (1 + f)
    # not written at once: the slot may be one of the two, and the loop would not be vectorised
    least = 1.0
    for d in range(first, last):
        forest.mean[into, d] = scratch.real[0, d]
    for d in range(first, last):
        forest.spread[into, d] = scratch.real[1, d]
    for d in range(first, last):
        least = min(least, scratch.real[1, d])
    return least


def _merge_complete(forest, i, j, climb_i, climb_j, into):
    if forest.n_brownian:
        w_i, w_j = forest.spread[i, 0] + climb_i, forest.spread[j, 0] + climb_j
        s = w_i + w_j
        for d in range(forest.n_real):
            forest.mean[into, d] = (w_j * forest.mean[i, d] + w_i * forest.mean[j, d]) / s
        forest.spread[into, 0] = w_i * w_j / s
        forest.least[into] = w_i * w_j / s
        return
    kept_i, gone_i = _decay(forest.rate[0] * climb_i)
    kept_j, gone_j = _decay(forest.rate[0] * climb_j)
    precision_i, weight_i = _weights(forest.spread[i, 0], kept_i, gone_i)
    precision_j, weight_j = _weights(forest.spread[j, 0], kept_j, gone_j)
    precision = precision_i + precision_j
    scale = 1 / math.sqrt(precision * (1 + precision)) if precision > 0 else 0.0
    for d in range(forest.n_real):
        forest.mean[into, d] = (weight_i * forest.mean[i, d] + weight_j * forest.mean[j, d]) * scale
    forest.spread[into, 0] = _lost_of(precision)
    forest.least[into] = path_of(forest.rate[0], forest.spread[into, 0])


def _merge_sites(forest, i, j, climb_i, climb_j, into, scratch):
    """Merge the messages of all sites, eq. (5.4); row 5 gets what they are multiplied by. Returns whether all are possible."""
    n = forest.n_sites
    for d in range(n):
        scratch.rows[5, d] = 0.0
    if forest.common_rate > 0:
        _join_sites_of_one_rate(forest, i, j, climb_i, climb_j, into, scratch)
    else:
        _join_sites(forest, i, j, climb_i, climb_j, into, scratch)
    for d in range(n):
        scratch.rows[5, d] = 1 / max(scratch.rows[5, d], const.POLE)
    impossible = 0
    for d in range(n):
        impossible += scratch.rows[5, d] >= const.OVER_POLE
    for r in range(forest.n_ranks):
        first = forest.rank[r]
        for d in range(forest.rank[r + 1] - first):
            forest.state[into, first + d] = (
                forest.state[into, first + d] * forest.over_root_q[first + d] * scratch.rows[5, d]
            )
    if impossible:  # two states meet that no time parts: log Z is -inf there, and any message will do
        for r in range(forest.n_ranks):
            first = forest.rank[r]
            for d in range(forest.rank[r + 1] - first):
                if scratch.rows[5, d] >= const.OVER_POLE:
                    forest.state[into, first + d] = forest.root_q[first + d]
    return impossible == 0


def _join_sites_of_one_rate(forest, i, j, climb_i, climb_j, into, scratch):
    """Write the products of two messages into a slot, and add them to row 5."""
    keep_i, lose_i = _decay(forest.common_rate * climb_i)
    keep_j, lose_j = _decay(forest.common_rate * climb_j)
    for r in range(forest.n_ranks):
        first = forest.rank[r]
        for d in range(forest.rank[r + 1] - first):
            joint = (lose_i * forest.root_q[first + d] + keep_i * forest.state[i, first + d]) * (
                lose_j * forest.root_q[first + d] + keep_j * forest.state[j, first + d]
            )
            forest.state[into, first + d] = joint
            scratch.rows[5, d] += joint


def _join_sites(forest, i, j, climb_i, climb_j, into, scratch):
    """Write the products of two messages into a slot, and add them to row 5, with a rate for each site."""
    if into == j:  # what is in j is read last
        i, j, climb_i, climb_j = j, i, climb_j, climb_i
    set_decay(forest, scratch, climb_i, 1, 2)
    set_decay(forest, scratch, climb_j, 3, 4)
    # a few arrays a loop: with more of them a compiler cannot see to it that none is part of another
    for r in range(forest.n_ranks):
        first = forest.rank[r]
        for d in range(forest.rank[r + 1] - first):
            scratch.rows[6, d] = (
                scratch.rows[4, d] * forest.root_q[first + d] + scratch.rows[3, d] * forest.state[j, first + d]
            )
        for d in range(forest.rank[r + 1] - first):
            joint = scratch.rows[2, d] * forest.root_q[first + d] + scratch.rows[1, d] * forest.state[i, first + d]
            forest.state[into, first + d] = joint * scratch.rows[6, d]
        for d in range(forest.rank[r + 1] - first):
            scratch.rows[5, d] += forest.state[into, first + d]


def _set_growth(forest, slot, h):
    if forest.common_rate > 0:
        growth = math.exp(min(forest.common_rate * h, const.LARGEST_EXPONENT))
        for d in range(forest.n_sites):
            forest.growth[slot, d] = growth
        return
    for d in range(forest.n_sites):
        forest.growth[slot, d] = math.exp(min(forest.site_rate[d] * h, const.LARGEST_EXPONENT))


def move(forest, source, target):
    """Copy the message of a slot to another slot, without its height."""
    forest.least[target] = forest.least[source]
    forest.log_norm[target] = forest.log_norm[source]
    for d in range(forest.n_real):
        forest.mean[target, d] = forest.mean[source, d]
    for d in range(forest.spread.shape[1]):
        forest.spread[target, d] = forest.spread[source, d]
    for k in range(forest.state.shape[1]):
        forest.state[target, k] = forest.state[source, k]
    for d in range(forest.growth.shape[1]):
        forest.growth[target, d] = forest.growth[source, d]
    for k in range(forest.chain.shape[1]):
        forest.chain[target, k] = forest.chain[source, k]


def root_log_density(forest, i):
    """Return the log density that a proper root at the top of slot i adds to the likelihood; 0 where messages are ratios."""
    total = 0.0
    if forest.complete and forest.n_brownian:
        variance, d2 = forest.spread[i, 0] + forest.root_variance[0], 0.0
        for d in range(forest.n_real):
            d2 += forest.mean[i, d] * forest.mean[i, d]
        normal, d2 = const.LOG_2PI + math.log(variance), forest.common_weight * d2
        return -0.5 * forest.total_weight * normal - forest.total_log_scale - d2 / (2 * variance)
    for d in range(forest.n_brownian):
        if forest.spread[i, d] < math.inf:
            variance = forest.spread[i, d] + forest.root_variance[d]
            d2 = forest.mean[i, d] * forest.mean[i, d]
            term = 0.5 * (const.LOG_2PI + math.log(variance) + d2 / variance) + forest.log_scale[d]
            total -= forest.real_weight[d] * term
    return total


# -- places ----------------------------------------------------------------------------------------------------------------


def load_place(forest, below, beyond, turn, third, place):
    """Load a branch to which slot `third` may be attached.

    Slot `below` is at the lower end of the branch. The message in slot `beyond` travels ``turn - h`` to a point at height h.
    """
    place.below, place.beyond, place.third, place.turn = below, beyond, third, turn
    place.height_below, place.height_third = forest.height[below], forest.height[third]
    if forest.complete:
        below_below = below_beyond = beyond_beyond = below_third = beyond_third = third_third = 0.0
        for d in range(forest.n_real):
            z = forest.mean[third, d]
            x, y = forest.mean[below, d] - z, forest.mean[beyond, d] - z
            below_below += x * x
            below_beyond += x * y
            beyond_beyond += y * y
            below_third += x * z
            beyond_third += y * z
            third_third += z * z
        w = forest.common_weight
        place.below_below, place.below_beyond, place.beyond_beyond = (
            w * below_below,
            w * below_beyond,
            w * beyond_beyond,
        )
        place.below_third, place.beyond_third, place.third_third = w * below_third, w * beyond_third, w * third_third
    if forest.n_sites:
        _load_site_place(forest, place)


def _load_site_place(forest, place):
    """Set rows 0 to 3 of each site: 1, and the products of the third message with each of the two others and with both.

    Each is divided by the agreement of these two: the path between them is the same wherever they meet.
    """
    n = forest.n_sites
    below, beyond, third = place.below, place.beyond, place.third
    set_decay(forest, place, max(place.turn - place.height_below, 0.0), 4, 5)
    for r in range(4):
        for d in range(n):
            place.rows[r, d] = 0.0
    # two loops: with more arrays a compiler cannot see to it that none is part of another
    for r in range(forest.n_ranks):
        first = forest.rank[r]
        for d in range(forest.rank[r + 1] - first):
            both = forest.state[below, first + d] * forest.state[beyond, first + d]
            place.rows[0, d] += both
            place.rows[3, d] += both * forest.state[third, first + d] * forest.over_root_q[first + d]
        for d in range(forest.rank[r + 1] - first):
            place.rows[1, d] += forest.state[below, first + d] * forest.state[third, first + d]
            place.rows[2, d] += forest.state[beyond, first + d] * forest.state[third, first + d]
    for d in range(n):
        place.rows[0, d] = 1 / max(place.rows[4, d] * place.rows[0, d] + place.rows[5, d], const.POLE)
    impossible = 0
    for d in range(n):
        impossible += place.rows[0, d] >= const.OVER_POLE
    for r in range(1, 4):
        for d in range(n):
            place.rows[r, d] *= place.rows[0, d]
    if impossible:  # two states meet that no time parts: any message will do, as in `merge`
        for d in range(n):
            if place.rows[0, d] >= const.OVER_POLE:
                for r in range(4):
                    place.rows[r, d] = 1.0


def log_z_at(forest, place, h):
    """Return the log local likelihood of attaching the third slot at the point of the place at height h."""
    up, down, across = h - place.height_below, place.turn - h, max(h - place.height_third, 0.0)
    if forest.complete:
        return _complete_log_z_at(forest, place, up, down, across)
    total = 0.0
    below, beyond, third = place.below, place.beyond, place.third
    for d in range(forest.n_brownian):
        if forest.spread[third, d] == math.inf:
            continue
        y, v = _join_brownian(
            forest.mean[below, d], forest.spread[below, d] + up, forest.mean[beyond, d], forest.spread[beyond, d] + down
        )
        if v < math.inf:
            s, gap = v + forest.spread[third, d] + across, y - forest.mean[third, d]
            term = 0.5 * (const.LOG_2PI + math.log(s) + gap * gap / s) + forest.log_scale[d]
            total -= forest.real_weight[d] * term
    for k in range(forest.n_groups):
        total += _stationary_log_z_at(forest, k, place, up, down, across)
    if forest.n_sites:
        total += _site_log_z_at(forest, place, max(up, 0.0), max(down, 0.0), across)
    if forest.n_chains:
        total += _chain_log_z_at(forest, place, max(up, 0.0), max(down, 0.0), across)
    return total


def _stationary_log_z_at(forest, group, place, up, down, across):
    """Return the contribution of the stationary columns of one rate to `log_z_at`.

    The third message is the number ``a``, drawn from ``N(n z, q)`` given the state z at the point, see `_merge_stationary`.
    Given the other two messages, z is normal, so a is normal too. ``log Z`` is the log ratio of its density there and at
    equilibrium, where a is ``N(0, 1)``.
    """
    rate, below, beyond, third = forest.rate[group], place.below, place.beyond, place.third
    kept_up, gone_up = _decay(rate * up)
    kept_down, gone_down = _decay(rate * down)
    decay, complement = _decay(rate * across)
    first, last = forest.group[group], forest.group[group + 1]
    # mean and variance of z: in a loop of its own, as with all six arrays that are read none would be vectorised
    for d in range(first, last):
        n_i, n_j = (1 - forest.spread[below, d]) * kept_up, (1 - forest.spread[beyond, d]) * kept_down
        q_i = (forest.spread[below, d] + (1 - forest.spread[below, d]) * gone_up) * (1 + n_i)
        q_j = (forest.spread[beyond, d] + (1 - forest.spread[beyond, d]) * gone_down) * (1 + n_j)
        weight_i, weight_j = n_i * q_j, n_j * q_i
        neither = q_i * q_j
        inverse = 1 / (neither + (n_i * weight_i + n_j * weight_j) + const.POLE)
        place.real[0, d] = neither * inverse
        place.real[1, d] = (weight_i * forest.mean[below, d] + weight_j * forest.mean[beyond, d]) * inverse
    for d in range(first, last):
        n, a = (1 - forest.spread[third, d]) * decay, forest.mean[third, d]
        q = (forest.spread[third, d] + (1 - forest.spread[third, d]) * complement) * (1 + n)
        variance = q + n * n * place.real[0, d] + const.POLE
        gap = a - n * place.real[1, d]
        place.real[0, d] = variance
        place.real[1, d] = a * a - gap * gap / variance
    if forest.weighted_real:
        for d in range(first, last):
            place.real[1, d] *= forest.real_weight[d]
        return _half_weighted_total(place, forest.real_weight, first, last)
    return _half_total(place, first, last)


def _complete_log_z_at(forest, place, up, down, across):
    if forest.n_brownian:
        w_below, w_beyond = forest.spread[place.below, 0] + up, forest.spread[place.beyond, 0] + down
        share, other = w_beyond / (w_below + w_beyond), w_below / (w_below + w_beyond)
        d2 = share * share * place.below_below + 2 * share * other * place.below_beyond
        d2 = max(d2 + other * other * place.beyond_beyond, 0.0)
        s = share * w_below + forest.spread[place.third, 0] + across
        normal = const.LOG_2PI + math.log(s)
        return -0.5 * forest.total_weight * normal - forest.total_log_scale - d2 / (2 * s)
    rate = forest.rate[0]
    kept_up, gone_up = _decay(rate * up)
    kept_down, gone_down = _decay(rate * down)
    decay, complement = _decay(rate * across)
    precision_i, weight_i = _weights(forest.spread[place.below, 0], kept_up, gone_up)
    precision_j, weight_j = _weights(forest.spread[place.beyond, 0], kept_down, gone_down)
    precision = precision_i + precision_j
    scale = 1 / math.sqrt(precision * (1 + precision)) if precision > 0 else 0.0
    below, beyond = weight_i * scale, weight_j * scale
    excess = (
        below + beyond - 1
    )  # the mean at the point is that of the third, this much more, and shares of the differences
    d2 = below * below * place.below_below + 2 * below * beyond * place.below_beyond
    d2 += beyond * beyond * place.beyond_beyond
    d2 += excess * (2 * (below * place.below_third + beyond * place.beyond_third) + excess * place.third_third)
    product = below * place.below_third + beyond * place.beyond_third + (1 + excess) * place.third_third
    lost, third = _lost_of(precision), forest.spread[place.third, 0]
    f, both = (1 - lost) * (1 - third), lost + (1 - lost) * third
    return _log_ratio(forest.total_weight, max(d2, 0.0), product, f * decay, both + f * complement)


def _site_log_z_at(forest, place, up, down, across):
    n = forest.n_sites
    if forest.common_rate > 0:
        rate = forest.common_rate
        keep, lose = _decay(rate * across)
        keep_up, lose_up = _decay(rate * up)
        keep_down, lose_down = _decay(rate * down)
        both, one = keep * keep_up * keep_down, keep * keep_up * lose_down
        two, neither = keep * lose_up * keep_down, keep * lose_up * lose_down
        for d in range(n):
            place.rows[6, d] = (
                lose
                + neither * place.rows[0, d]
                + one * place.rows[1, d]
                + two * place.rows[2, d]
                + both * place.rows[3, d]
            )
        return log_of_sites(forest, place, 6, 7)
    set_decay(forest, place, down, 4, 5)
    for d in range(n):
        place.rows[6, d] = place.rows[5, d] * place.rows[0, d] + place.rows[4, d] * place.rows[2, d]
    for d in range(n):
        place.rows[7, d] = place.rows[5, d] * place.rows[1, d] + place.rows[4, d] * place.rows[3, d]
    set_decay(forest, place, up, 4, 5)
    for d in range(n):
        place.rows[6, d] = place.rows[5, d] * place.rows[6, d] + place.rows[4, d] * place.rows[7, d]
    set_decay(forest, place, across, 4, 5)
    for d in range(n):
        place.rows[6, d] = place.rows[5, d] + place.rows[4, d] * place.rows[6, d]
    return log_of_sites(forest, place, 6, 7)
