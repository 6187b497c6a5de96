"""Likelihoods and predictions of many new rows at many attachment points.

Attachment points ("places" in names) come in groups, and each row evaluates some of the groups. Pair p is a row and a group;
row p of an array holds its numbers, one for each point of the group. Group g has the points from starts[g] to stops[g].
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
from . import mixtures as mix

BINS_A_NAT, BINS = 8, 1024  # of the logarithms of bounds
TOGETHER = 8  # rows that are evaluated at a group in one pass
LEAST_SHARE = 1e-14
PLACES = 64  # adjacent points at which missing cells are conditioned in one pass


class Stretches:
    """Segments of branches, each with a constant density of the height at which a row attaches."""

    def __init__(self, most):
        self.begin, self.end, self.density = np.empty((3, most))
        # segments that remain in the search for a quantile
        self.left_begin, self.left_end, self.left_density = np.empty((3, most))


class Conditional:
    """Scratch memory for conditioning missing cells on the observed cells of their row, at some adjacent points."""

    def __init__(self, n_columns):
        self.holes = np.empty(n_columns, dtype=np.intp)  # columns of the missing cells
        self.lower, self.inverse = np.empty((2, n_columns, n_columns, PLACES))  # Cholesky factor of their precision
        self.directions = np.empty((n_columns, n_columns, PLACES))  # orthonormal, in which missing cells move a row
        self.roots = np.empty((n_columns, PLACES))  # of the precisions of the components
        self.variances, self.gaps, self.shifts = np.empty((3, n_columns, PLACES))
        self.constants, self.squares = np.empty((2, PLACES))


def add_logs(
    chosen,
    slots,
    pair_rows,
    systems,
    x,
    known,
    states,
    slopes,
    masses,
    whole_masses,
    means,
    halves,
    constants,
    log_probabilities,
    least,
    logs,
):
    """Fill logs[p] for chosen pairs with the log of prior times likelihood, at least `least`, at the points of their slots.

    x[s] holds the rows in the coordinates of system s, known[s] which coordinates are known, and slopes[s] the log Jacobian of
    each row that is not among the constants. systems[p] is the system of a pair. whole_masses are masses plus all constants, for
    rows without missing cells.
    """
    n_chosen = chosen.shape[0]
    with cython.nogil:
        first = 0
        while first < n_chosen:
            stop.poll()
            last = _end_of_run(slots, first)
            _fill_run(
                chosen,
                slots,
                pair_rows,
                systems,
                x,
                known,
                states,
                slopes,
                masses,
                whole_masses,
                means,
                halves,
                constants,
                log_probabilities,
                least,
                logs,
                first,
                last,
                False,
            )
            first = last


def sum_logs(
    chosen,
    slots,
    pair_rows,
    systems,
    x,
    known,
    states,
    slopes,
    masses,
    whole_masses,
    means,
    halves,
    constants,
    log_probabilities,
    least,
    far,
    row_tops,
    tops,
    sums,
):
    """Do `add_logs`, `find_tops` and `put_exps` for chosen pairs, with memory for a few pairs only.

    row_tops are the maxima over earlier pairs, and are updated. A pair more than `far` below its row's maximum gets sum 0.
    """
    n_chosen = chosen.shape[0]
    logs = np.empty((TOGETHER, masses.shape[1]))
    with cython.nogil:
        first = 0
        while first < n_chosen:
            stop.poll()
            last = _end_of_run(slots, first)
            _fill_run(
                chosen,
                slots,
                pair_rows,
                systems,
                x,
                known,
                states,
                slopes,
                masses,
                whole_masses,
                means,
                halves,
                constants,
                log_probabilities,
                least,
                logs,
                first,
                last,
                True,
            )
            for k in range(first, last):
                p = chosen[k]
                row = pair_rows[p]
                tops[p] = _top(logs, k - first)
                row_tops[row] = max(row_tops[row], tops[p])
                sums[p] = _put_exps(logs, k - first, tops[p]) if tops[p] >= row_tops[row] - far else 0.0
            first = last


def _end_of_run(slots, first):
    """Return the end of a run of pairs with the same slot, of limited length."""
    last = first + 1
    while last < slots.shape[0] and last < first + TOGETHER and slots[last] == slots[first]:
        last += 1
    return last


def _fill_run(
    chosen,
    slots,
    pair_rows,
    systems,
    x,
    known,
    states,
    slopes,
    masses,
    whole_masses,
    means,
    halves,
    constants,
    log_probabilities,
    least,
    logs,
    first,
    last,
    apart,
):
    """Fill the rows of logs of a run of pairs, or its first ones if they are kept `apart`."""
    # Pairs of one slot pass by some columns at a time, while what is known of these is in the processor's cache.
    n, size, slot, s = logs.shape[1], x.shape[2], slots[first], systems[chosen[first]]
    for k in range(first, last):
        p, row = k - first if apart else chosen[k], pair_rows[chosen[k]]
        slope = slopes[s, row]
        if _is_whole(known, s, row):
            for i in range(n):
                logs[p, i] = whole_masses[slot, i] + slope
        else:
            for i in range(n):
                logs[p, i] = masses[slot, i] + slope
    d = 0
    while d < size:
        step = 4 if d + 4 <= size else 1
        for k in range(first, last):
            p, row = k - first if apart else chosen[k], pair_rows[chosen[k]]
            if not _is_whole(known, s, row):
                for c in range(d, d + step):
                    if known[s, row, c]:
                        x0 = x[s, row, c]
                        for i in range(n):
                            gap0 = x0 - means[slot, c, i]
                            logs[p, i] += constants[slot, c, i] - halves[slot, c, i] * gap0 * gap0
            elif step == 4:
                x0, x1, x2, x3 = x[s, row, d], x[s, row, d + 1], x[s, row, d + 2], x[s, row, d + 3]
                for i in range(n):
                    gap0, gap1 = x0 - means[slot, d, i], x1 - means[slot, d + 1, i]
                    gap2, gap3 = x2 - means[slot, d + 2, i], x3 - means[slot, d + 3, i]
                    logs[p, i] -= (halves[slot, d, i] * gap0 * gap0 + halves[slot, d + 1, i] * gap1 * gap1) + (
                        halves[slot, d + 2, i] * gap2 * gap2 + halves[slot, d + 3, i] * gap3 * gap3
                    )
            else:
                x0 = x[s, row, d]
                for i in range(n):
                    gap0 = x0 - means[slot, d, i]
                    logs[p, i] -= halves[slot, d, i] * gap0 * gap0
        d += step
    for d in range(states.shape[1]):
        for k in range(first, last):
            p, state = k - first if apart else chosen[k], states[pair_rows[chosen[k]], d]
            if state >= 0:
                for i in range(n):
                    logs[p, i] += log_probabilities[slot, state, i]
    for k in range(first, last):
        p = k - first if apart else chosen[k]
        for i in range(n):
            if logs[p, i] < least and masses[slot, i] > -math.inf:
                logs[p, i] = least


def _is_whole(known, s, row):
    count = 0
    for d in range(known.shape[2]):
        count += known[s, row, d]
    return count == known.shape[2]


def find_tops(logs, tops):
    """Fill tops with the maximum of each row of logs."""
    with cython.nogil:
        for p in range(logs.shape[0]):
            tops[p] = _top(logs, p)


def _top(logs, p):
    n = logs.shape[1]
    a = b = c = d = -math.inf  # four at a time, for each waits for the one before it
    i = 0
    while i + 4 <= n:
        a, b = max(a, logs[p, i]), max(b, logs[p, i + 1])
        c, d = max(c, logs[p, i + 2]), max(d, logs[p, i + 3])
        i += 4
    while i < n:
        a = max(a, logs[p, i])
        i += 1
    return max(max(a, b), max(c, d))


def put_exps(logs, row_tops, far, tops, sums):
    """Replace each row of logs by ``exp(log - top)``, and fill sums; 0 for rows more than `far` below row_tops."""
    with cython.nogil:
        for p in range(logs.shape[0]):
            if tops[p] >= row_tops[p] - far:
                sums[p] = _put_exps(logs, p, tops[p])
            else:
                sums[p] = 0.0
                for i in range(logs.shape[1]):
                    logs[p, i] = 0.0


def _put_exps(logs, p, top):
    """Put exponentials in place of a row of logs; return their sum. As in `messages.set_decay`, so that it is vectorised."""
    n = logs.shape[1]
    for i in range(n):
        below = logs[p, i] - top
        x = max(below, const.MOST_NEGATIVE)
        rounded = x * const.LOG2_E + math.ROUNDER
        k = rounded - math.ROUNDER
        r = (x - k * const.LN2_HIGH) - k * const.LN2_LOW
        q = 1 / 3628800.0  # the rest of the series is less than 1e-12
        q = q * r + 1 / 362880.0
        q = q * r + 1 / 40320.0
        q = q * r + 1 / 5040.0
        q = q * r + 1 / 720.0
        q = q * r + 1 / 120.0
        q = q * r + 1 / 24.0
        q = q * r + 1 / 6.0
        q = q * r + 0.5
        q = (q * r + 1.0) * r + 1.0
        value = q * math.two_to(rounded)
        logs[p, i] = value if below > const.MOST_NEGATIVE else 0.0
    a = b = c = d = 0.0
    i = 0
    while i + 4 <= n:
        a, b = a + logs[p, i], b + logs[p, i + 1]
        c, d = c + logs[p, i + 2], d + logs[p, i + 3]
        i += 4
    while i < n:
        a += logs[p, i]
        i += 1
    return (a + b) + (c + d)


def whiten(x, basis, origin, out):
    """Fill out with ``x @ basis + origin``, each row as if it were the only one."""
    with cython.nogil:
        for row in range(x.shape[0]):
            stop.poll()
            for k in range(x.shape[1]):
                out[row, k] = origin[k]
            for j in range(x.shape[1]):
                value = x[row, j]
                for k in range(x.shape[1]):
                    out[row, k] += value * basis[j, k]


def add_partial_logs(
    chosen, slots, pair_rows, x, patterns, missing, real, basis, means, halves, constants, least, logs
):
    """Add to logs[p] for chosen pairs the log density of the observed cells of a whitening, for rows that lack some of them.

    The whitening is of the columns `real`; missing[patterns[row]] are the missing cells of a row. x are whitened rows, with any
    value for missing cells. Pairs are sorted by slot, then by pattern: pairs that agree in both share everything that depends on
    the point only.
    """
    n, n_chosen, size = logs.shape[1], chosen.shape[0], real.shape[0]
    conditional = Conditional(size)
    with cython.nogil:
        first = 0
        while first < n_chosen:
            slot, last = slots[first], _end_of_pattern(chosen, slots, pair_rows, patterns, first)
            count = _find_holes(conditional, missing, patterns[pair_rows[chosen[first]]], real)
            start = 0 if 0 < count < size else n
            while start < n:
                stop.poll()
                width = min(n - start, PLACES)
                _condition(conditional, count, basis, halves, slot, start, width, real)
                for i in range(width):
                    conditional.constants[i] += 0.5 * count * const.LOG_2PI
                for k in range(size):
                    for i in range(width):
                        conditional.constants[i] += constants[slot, real[k], start + i]
                for k in range(first, last):
                    p = chosen[k]
                    _solve(conditional, count, x, pair_rows[p], means, slot, start, width, real)
                    for i in range(width):
                        value = logs[p, start + i] + conditional.constants[i] - conditional.squares[i]
                        if (
                            value < least and logs[p, start + i] > -math.inf
                        ):  # minus infinity: a place that the group lacks
                            value = least
                        logs[p, start + i] = value
                start += PLACES
            first = last


def add_partial_moments(
    chosen,
    slots,
    pair_rows,
    shares,
    x,
    patterns,
    missing,
    real,
    basis,
    fill,
    means,
    halves,
    table,
    least,
    scored,
    weight,
    mean,
    square,
):
    """Add chosen pairs to the moments of missing cells of a whitening: weight, mean, and sum of squares about the mean.

    Arguments are those of `add_partial_logs`; `fill` are the values of missing cells in x. Points with a negligible share are
    skipped. Those with a share of at least `least` also become components in a table of mixtures, unless it is None; scored is 1
    for components of normal scores.
    """
    n, n_chosen, size = shares.shape[1], chosen.shape[0], real.shape[0]
    collects = table is not None
    conditional = Conditional(size)
    with cython.nogil:
        first = 0
        while first < n_chosen:
            slot, last = slots[first], _end_of_pattern(chosen, slots, pair_rows, patterns, first)
            count = _find_holes(conditional, missing, patterns[pair_rows[chosen[first]]], real)
            start = 0
            while start < n:
                width, ready = min(n - start, PLACES), False
                for k in range(first, last):
                    stop.poll()
                    p = chosen[k]
                    row, more = pair_rows[p], 0.0
                    for i in range(width):
                        more += shares[p, start + i]
                    if more < LEAST_SHARE:
                        continue
                    if not ready:
                        _condition(conditional, count, basis, halves, slot, start, width, real)
                        _find_variances(conditional, count, width)
                        ready = True
                    _solve(conditional, count, x, row, means, slot, start, width, real)
                    _find_shifts(conditional, count, width)
                    for a in range(count):
                        d = real[conditional.holes[a]]
                        center = squares = 0.0
                        for i in range(width):
                            center += shares[p, start + i] * conditional.shifts[a, i]
                        center /= more
                        for i in range(width):
                            gap = conditional.shifts[a, i] - center
                            squares += shares[p, start + i] * (conditional.variances[a, i] + gap * gap)
                        before = weight[row, d]
                        weight[row, d] = before + more
                        gap = fill[conditional.holes[a]] - center - mean[row, d]
                        mean[row, d] += gap * (more / weight[row, d])
                        square[row, d] += squares + gap * gap * before * (more / weight[row, d])
                        if not collects:
                            continue
                        cell = 2 * (row * weight.shape[1] + d) + scored
                        for i in range(width):
                            if shares[p, start + i] >= least:
                                center = fill[conditional.holes[a]] - conditional.shifts[a, i]
                                mix.add(table, cell, shares[p, start + i], center, conditional.variances[a, i])
                start += PLACES
            first = last


def _end_of_pattern(chosen, slots, pair_rows, patterns, first):
    """Return the end of a run of pairs with the same slot and pattern."""
    last, pattern = first + 1, patterns[pair_rows[chosen[first]]]
    while last < chosen.shape[0] and slots[last] == slots[first] and patterns[pair_rows[chosen[last]]] == pattern:
        last += 1
    return last


def _find_holes(conditional, missing, pattern, real):
    """Find the missing columns of a whitening in a pattern; return their number."""
    count = 0
    for k in range(real.shape[0]):
        if missing[pattern, real[k]]:
            conditional.holes[count] = k
            count += 1
    return count


def _condition(conditional, count, basis, halves, slot, start, width, real):
    """Orthogonalise, at some points, the directions in which missing cells move a row whose components have variance 1.

    The precision matrix of all cells is ``basis @ diag(precisions) @ basis.T``. Its block of missing cells is their conditional
    precision given the others. By the modified Gram-Schmidt process, ``basis[holes] @ diag(roots) = lower @ directions``, so
    `lower` is the Cholesky factor of this block; `constants` becomes half the log determinant of its inverse.
    """
    size = real.shape[0]
    for k in range(size):
        for i in range(width):
            conditional.roots[k, i] = math.sqrt(2 * halves[slot, real[k], start + i])
    for i in range(width):
        conditional.constants[i] = 0.0
    for a in range(count):
        for k in range(size):
            value = basis[conditional.holes[a], k]
            for i in range(width):
                conditional.directions[a, k, i] = value * conditional.roots[k, i]
        for b in range(a):
            for i in range(width):
                conditional.lower[a, b, i] = 0.0
            for k in range(size):
                for i in range(width):
                    conditional.lower[a, b, i] += conditional.directions[a, k, i] * conditional.directions[b, k, i]
            for k in range(size):
                for i in range(width):
                    conditional.directions[a, k, i] -= conditional.lower[a, b, i] * conditional.directions[b, k, i]
        for i in range(width):
            conditional.squares[i] = 0.0
        for k in range(size):
            for i in range(width):
                conditional.squares[i] += conditional.directions[a, k, i] * conditional.directions[a, k, i]
        for i in range(width):
            conditional.lower[a, a, i] = math.sqrt(conditional.squares[i])
        for i in range(width):
            conditional.constants[i] -= 0.5 * math.log(conditional.squares[i])
        for k in range(size):
            for i in range(width):
                conditional.directions[a, k, i] /= conditional.lower[a, a, i]


def _find_variances(conditional, count, width):
    """Fill the conditional variances of the missing cells, the diagonal of the inverse of ``lower @ lower.T``."""
    for a in range(count):  # column a of the inverse of the factor
        for b in range(a, count):
            for i in range(width):
                conditional.inverse[b, a, i] = 1.0 if b == a else 0.0
            for k in range(a, b):
                for i in range(width):
                    conditional.inverse[b, a, i] -= conditional.lower[b, k, i] * conditional.inverse[k, a, i]
            for i in range(width):
                conditional.inverse[b, a, i] /= conditional.lower[b, b, i]
        for i in range(width):
            conditional.variances[a, i] = 0.0
        for b in range(a, count):
            for i in range(width):
                conditional.variances[a, i] += conditional.inverse[b, a, i] * conditional.inverse[b, a, i]


def _solve(conditional, count, x, row, means, slot, start, width, real):
    """Project a row's residuals on the directions (into `shifts`); fill half the squared distance that remains."""
    size = real.shape[0]
    for k in range(size):
        value = x[row, real[k]]
        for i in range(width):
            conditional.gaps[k, i] = (value - means[slot, real[k], start + i]) * conditional.roots[k, i]
    for a in range(count):
        for i in range(width):
            conditional.shifts[a, i] = 0.0
        for k in range(size):
            for i in range(width):
                conditional.shifts[a, i] += conditional.directions[a, k, i] * conditional.gaps[k, i]
        for k in range(size):
            for i in range(width):
                conditional.gaps[k, i] -= conditional.directions[a, k, i] * conditional.shifts[a, i]
    for i in range(width):
        conditional.squares[i] = 0.0
    for k in range(size):
        for i in range(width):
            conditional.squares[i] += 0.5 * conditional.gaps[k, i] * conditional.gaps[k, i]


def _find_shifts(conditional, count, width):
    """Turn the projections into the differences of missing cells in x from their conditional means."""
    for a in range(count - 1, -1, -1):
        for b in range(a + 1, count):
            for i in range(width):
                conditional.shifts[a, i] -= conditional.lower[b, a, i] * conditional.shifts[b, i]
        for i in range(width):
            conditional.shifts[a, i] /= conditional.lower[a, a, i]


def summarise(
    masses,
    means,
    halves,
    log_probabilities,
    log_mass,
    low,
    high,
    least_sd,
    largest_sd,
    least_log_sd,
    largest_log_sd,
    floor,
    largest,
    first,
):
    """Fill the summaries of groups from `first` on."""
    n = masses.shape[1]
    with cython.nogil:
        for slot in range(masses.shape[0]):
            stop.poll()
            g = first + slot
            top = masses[slot, 0]
            for i in range(1, n):
                top = max(top, masses[slot, i])
            total = 0.0
            for i in range(n):
                total += math.exp(masses[slot, i] - top)
            log_mass[g] = top + math.log(total)
            for d in range(means.shape[1]):
                least_half, largest_half = math.inf, 0.0
                least_mean, largest_mean = math.inf, -math.inf
                floor[d, g] = -math.inf
                for i in range(n):
                    half = halves[slot, d, i]
                    if half == 0:
                        floor[d, g] = 0.0
                        continue
                    least_mean, largest_mean = min(least_mean, means[slot, d, i]), max(largest_mean, means[slot, d, i])
                    least_half, largest_half = min(least_half, half), max(largest_half, half)
                if largest_half == 0:  # nothing is known at any place; a gap without end makes what is known impossible
                    least_half = largest_half = 0.5
                low[d, g], high[d, g] = least_mean, largest_mean
                least_sd[d, g], largest_sd[d, g] = math.sqrt(0.5 / largest_half), math.sqrt(0.5 / least_half)
                least_log_sd[d, g], largest_log_sd[d, g] = math.log(least_sd[d, g]), math.log(largest_sd[d, g])
            for s in range(log_probabilities.shape[1]):
                top = log_probabilities[slot, s, 0]
                for i in range(1, n):
                    top = max(top, log_probabilities[slot, s, i])
                largest[s, g] = top


def bound_groups(
    first_groups,
    x,
    observed,
    states,
    log_mass,
    low,
    high,
    least_sd,
    largest_sd,
    least_log_sd,
    largest_log_sd,
    floor,
    largest,
    least,
    out,
):
    """Fill out[row, group] with an upper bound on the log of prior times likelihood, summed over the group.

    Groups first_groups[s] to first_groups[s + 1] belong to system s, in whose coordinates the rows are x[s].
    """
    gaps, densities = np.empty((2, out.shape[1]))
    with cython.nogil:
        for row in range(out.shape[0]):
            for g in range(out.shape[1]):
                out[row, g] = log_mass[g]
        for s in range(x.shape[0]):
            begin, end = first_groups[s], first_groups[s + 1]
            # Column by column: what is known of a column at all groups stays in the processor's cache while rows pass by.
            for d in range(x.shape[2]):
                for row in range(out.shape[0]):
                    stop.poll()
                    if not observed[s, row, d]:
                        continue
                    value = x[s, row, d]
                    # Short loops, in which nothing is read only if something holds, are vectorised.
                    for g in range(begin, end):
                        gaps[g] = max(max(low[d, g] - value, value - high[d, g]), 0.0)
                    # the sd that makes a gap most likely: of nearly all groups it is the least or the largest
                    for g in range(begin, end):
                        log_sd, other = least_log_sd[d, g], largest_log_sd[d, g]
                        densities[g] = -0.5 * const.LOG_2PI - (log_sd if gaps[g] <= least_sd[d, g] else other)
                    for g in range(begin, end):
                        sd, other = least_sd[d, g], largest_sd[d, g]
                        z = gaps[g] / (sd if gaps[g] <= sd else other)
                        densities[g] -= 0.5 * z * z
                    for g in range(begin, end):
                        if gaps[g] > least_sd[d, g] and gaps[g] < largest_sd[d, g]:
                            densities[g] = -0.5 * const.LOG_2PI - math.log(gaps[g]) - 0.5
                    for g in range(begin, end):
                        out[row, g] += max(densities[g], floor[d, g])
        for d in range(states.shape[1]):
            for row in range(out.shape[0]):
                stop.poll()
                state = states[row, d]
                if state >= 0:
                    for g in range(out.shape[1]):
                        out[row, g] += largest[state, g]
        for row in range(out.shape[0]):
            for g in range(out.shape[1]):
                out[row, g] = max(out[row, g], least)


def find_needed(bounds, log_totals, log_neglected, needed):
    """Find the groups that each row must evaluate: the bounds of the others sum to a negligible share of its total."""
    sums = np.empty(BINS)
    n = bounds.shape[1]
    with cython.nogil:
        for row in range(bounds.shape[0]):
            stop.poll()
            cut = log_totals[row] + log_neglected
            for i in range(BINS):
                sums[i] = 0.0
            for g in range(n):
                if bounds[row, g] < cut:
                    sums[_bin(bounds[row, g] - cut)] += math.exp(bounds[row, g] - cut)
            last, total = BINS - 1, 0.0
            while last >= 0 and total + sums[last] < 1.0:
                total += sums[last]
                last -= 1
            for g in range(n):
                needed[row, g] = bounds[row, g] >= cut or _bin(bounds[row, g] - cut) <= last


def _bin(below):
    return int(min(-below * BINS_A_NAT, BINS - 1.0))


def add_moments(
    chosen, slots, pair_rows, shares, means, halves, probabilities, weight, mean, square, unknown, probability
):
    """Add chosen pairs to the moments of rows: weight, mean, sum of squares about it, share of flat messages, probabilities."""
    width = shares.shape[1]
    with cython.nogil:
        for k in range(chosen.shape[0]):
            stop.poll()
            p, slot = chosen[k], slots[k]
            row = pair_rows[p]
            more = 0.0
            for i in range(width):
                more += shares[p, i]
            if more == 0:
                continue
            before = weight[row]
            weight[row] = before + more
            for d in range(means.shape[1]):
                center = 0.0
                for i in range(width):
                    center += shares[p, i] * means[slot, d, i]
                center /= more
                squares = missing = 0.0
                for i in range(width):
                    gap, half = means[slot, d, i] - center, halves[slot, d, i]
                    squares += shares[p, i] * (gap * gap + (0.5 / half if half > 0 else 0.0))
                    missing += 0.0 if half > 0 else shares[p, i]
                square[row, d] += squares
                unknown[row, d] += missing
                apart = center - mean[row, d]
                mean[row, d] += apart * (more / weight[row])
                square[row, d] += apart * apart * before * (more / weight[row])
            for s in range(probabilities.shape[1]):
                total = 0.0
                for i in range(width):
                    total += shares[p, i] * probabilities[slot, s, i]
                probability[row, s] += total


def attach(first_pairs, groups, shares, starts, stops, branches, heights, low, high, shortest, tails, sums, summary):
    """Fill summary[row] with the most probable branch, its probability, the mean height, and quantiles of the height.

    branches[point] is the branch that a point counts for, or -1. sums is scratch, 0 for each branch before and after.
    """
    most_pairs = 0
    for row in range(first_pairs.shape[0] - 1):
        most_pairs = max(most_pairs, first_pairs[row + 1] - first_pairs[row])
    stretches = Stretches(most_pairs * shares.shape[1])
    with cython.nogil:
        for row in range(first_pairs.shape[0] - 1):
            stop.poll()
            first, last = first_pairs[row], first_pairs[row + 1]
            n, mean = 0, 0.0
            for p in range(first, last):
                start = starts[groups[p]]
                for at in range(start, stops[groups[p]]):
                    share = shares[p, at - start]
                    if share == 0:
                        continue
                    if branches[at] >= 0:
                        sums[branches[at]] += share
                    mean += share * heights[at]
                    # a place's share is spread evenly over the stretch that it stands for, and over a hair's breadth at least
                    length = max(high[at] - low[at], shortest)
                    stretches.begin[n] = low[at]
                    stretches.end[n] = low[at] + length
                    stretches.density[n] = share / length
                    n += 1
            best, most = 0, 0.0
            for p in range(first, last):
                for at in range(starts[groups[p]], stops[groups[p]]):
                    branch = branches[at]
                    if branch >= 0 and (sums[branch] > most or (sums[branch] == most and branch < best)):
                        best, most = branch, sums[branch]
            for p in range(first, last):
                for at in range(starts[groups[p]], stops[groups[p]]):
                    if branches[at] >= 0:
                        sums[branches[at]] = 0.0
            summary[row, 0], summary[row, 1], summary[row, 2] = best, min(most, 1.0), mean
            for k in range(tails.shape[0]):
                summary[row, 3 + k] = _quantile(stretches, n, tails[k])


def _quantile(stretches, n, tail):
    """Return the height with mass `tail` of the first n segments below it, by bisection over their ends.

    Segments that cover all of the remaining interval only contribute to the slope.
    """
    low, high = math.inf, -math.inf
    for k in range(n):
        stretches.left_begin[k] = stretches.begin[k]
        stretches.left_end[k] = stretches.end[k]
        stretches.left_density[k] = stretches.density[k]
        low, high = min(low, stretches.begin[k]), max(high, stretches.end[k])
    below = slope = 0.0
    while n > 0:
        middle = n // 2
        edge = stretches.left_begin[middle]
        if not low < edge < high:
            edge = stretches.left_end[middle]
        mass = below + slope * (edge - low)
        for k in range(n):
            inside = min(edge, stretches.left_end[k]) - max(low, stretches.left_begin[k])
            mass += stretches.left_density[k] * max(inside, 0.0)
        if mass < tail:
            low, below = edge, mass
        else:
            high = edge
        left = 0
        for k in range(n):
            begin, end, density = stretches.left_begin[k], stretches.left_end[k], stretches.left_density[k]
            if begin >= high or end <= low:
                continue
            if begin <= low and end >= high:
                slope += density
                continue
            stretches.left_begin[left] = begin
            stretches.left_end[left] = end
            stretches.left_density[left] = density
            left += 1
        n = left
    return min(low + (tail - below) / slope, high) if slope > 0 else high


def add_merge_heights(
    groups, shares, starts, stops, ranks, heights, parent, size, node_heights, first_leaf, leaf_order, scratch, out
):
    """Add to each leaf the expected height of its merge with a row, over groups of one tree.

    A row merges with the leaves below its attachment point there, and with other leaves where these meet that point's branch. All
    leaves of a clade without share have the same height. ranks are depth-first positions of nodes; parent, size (nodes in the
    subtree), own_heights and first_leaf are in this order. scratch is (3, nodes): share below, height, expected height; its first
    two rows are 0 before and after.
    """
    n = size.shape[0]
    with cython.nogil:
        for p in range(groups.shape[0]):
            stop.poll()
            start = starts[groups[p]]
            for at in range(start, stops[groups[p]]):
                share = shares[p, at - start]
                scratch[0, ranks[at]] += share
                scratch[1, ranks[at]] += share * heights[at]
        for i in range(n - 1, 0, -1):
            if scratch[0, i] > 0:
                scratch[0, parent[i]] += scratch[0, i]
        scratch[2, 0] = scratch[1, 0]
        i = 0
        while i < n:
            if size[i] == 1 or scratch[0, i] == 0:
                for k in range(first_leaf[i], first_leaf[i] + (size[i] + 1) // 2):
                    out[leaf_order[k]] += scratch[2, i]
                step = size[i]
            else:
                left = i + 1
                right = left + size[left]
                scratch[2, left] = scratch[2, i] + scratch[1, left] + scratch[0, right] * node_heights[i]
                scratch[2, right] = scratch[2, i] + scratch[1, right] + scratch[0, left] * node_heights[i]
                step = 1
            scratch[0, i] = scratch[1, i] = 0.0
            i += step


def find_clusters(labels, size, first_leaf, leaf_order, clusters):
    """Fill clusters with the common cluster of all leaves below each node, in depth-first order; -1 if there is none."""
    with cython.nogil:
        for i in range(size.shape[0] - 1, -1, -1):
            if size[i] == 1:
                clusters[i] = labels[leaf_order[first_leaf[i]]]
            else:
                left = clusters[i + 1]
                clusters[i] = left if left == clusters[i + 1 + size[i + 1]] else -1


def add_to_clusters(
    first_pairs, groups, shares, first_group, last_group, starts, stops, ranks, size, clusters, mixed, scratch, out
):
    """Add the share of each row in each cluster: a point counts equally for all leaves below it.

    The tree has the groups from first_group to last_group. mixed are the nodes with leaves of several clusters; like ranks and
    clusters they are in depth-first order. scratch is 0 for each node before and after.
    """
    with cython.nogil:
        for row in range(first_pairs.shape[0] - 1):
            stop.poll()
            for p in range(first_pairs[row], first_pairs[row + 1]):
                if groups[p] < first_group or groups[p] >= last_group:  # of another tree
                    continue
                start = starts[groups[p]]
                for at in range(start, stops[groups[p]]):
                    i, share = ranks[at], shares[p, at - start]
                    if clusters[i] >= 0:
                        out[row, clusters[i]] += share
                    else:
                        scratch[i] += share
            for k in range(mixed.shape[0]):
                i = mixed[k]
                if scratch[i] > 0:
                    child = i + 1
                    for _ in range(2):
                        share = scratch[i] * ((size[child] + 1) / float(size[i] + 1))  # as numbers of leaves
                        if clusters[child] >= 0:
                            out[row, clusters[child]] += share
                        else:
                            scratch[child] += share
                        child += size[child]
                    scratch[i] = 0.0
