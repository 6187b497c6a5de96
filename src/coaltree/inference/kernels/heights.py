"""The best height of a pair: where ``log Z(h) - c h`` is largest, for h at or above a lowest height, eq. (6.1).

If all columns have one rate, the maximum is unique. With several rates, mixed kinds of columns or missing cells there may be
several. `search_height` therefore sweeps the heights upwards in intervals. On each interval the bounds of
`coaltree.process.kernels.messages` prove that the function rises, falls, is concave (at most one maximum inside) or is convex
(no maximum inside), so no maximum is overlooked. A search that has risen all the way to a `limit` stops there, which makes
scans for the most recent pair cheap. The bounds fail in one case: real cells that are identical and without noise pull the
merge towards height 0 as strongly as different categories push it away. A sweep with too many intervals continues on a grid
that is fine on the scale of the path length.

Three kinds of pairs have (nearly) closed forms:

- Complete Brownian rows: ``c s^2 + D s = d2`` for the path s.
- Complete stationary rows: with ``x = rate s``, where s includes the losses of the two messages, the slope has the sign of
  ``d2 - G(x)``, ``G(x) = D (1 - exp(-2 x)) + (2 c / rate) sinh(x)^2 + 4 m sinh(x / 2)^2``. If the product m of the means is not
  negative, G increases, and the only maximum is at ``G(x) = d2``.
- Sites of one rate: with ``w = 1 - exp(-rate g)`` the function is, up to a constant,
  ``F(w) = c / (2 rate) log(1 - w) + sum_d log(1 - b_d + b_d w)``, which is concave.
"""

from __future__ import annotations

from ... import _math as math
from ...process.kernels import messages as op

RESOLUTION = 1e-12  # intervals are not split below this share of their height
PATIENCE = 200  # intervals after which the sweep is content with a grid:
COARSE = 0.05  # intervals are then not split below this share of the path length
UNSURE = 1e-12  # share of the terms of a slope, far more than rounding takes from it
HALF = 0.6931471805599453  # the rate times the path for which w is a half


def _root_of_slope(forest, pair, shift, c, low, high):
    """Find the zero of the slope between a height with positive slope and one without."""
    h = high
    for _ in range(100):
        rise, drop, rise_falls, drop_falls = op.slopes(forest, pair, h)
        slope = rise - drop - c
        if slope > 0:
            low = h
        else:
            high = h
        # Newton's step for the slope times the path length, which is the straighter function of the two
        x = 2 * h - pair.heights + shift
        new = h - x * slope / (2 * slope - x * (rise_falls - drop_falls))
        if not (low < new < high):
            new = 0.5 * (low + high)
        if abs(new - h) <= 4e-16 * abs(new):
            return new
        h = new
    return h


def search_height(forest, pair, shift, c, lowest, limit):
    """Return the best height at or above `lowest`, or infinity as soon as it is known not to be below `limit`."""
    if not lowest < limit:
        return math.inf
    highest = op.highest(forest, pair, c)
    if not highest > lowest:
        return lowest
    low, best = lowest, math.nan
    goal = min(limit, highest)
    # A zero of the slope tells where to cut; the sweep proves that it is the maximum, or finds the others.
    guess = math.inf
    known = False  # whether the slopes at `low` are: those at the lowest height are seldom needed
    rise, drop, rise_falls, _ = op.slopes(forest, pair, goal)
    if not rise - drop > c:
        rise, drop, rise_falls, _ = op.slopes(forest, pair, low)
        known = True
        if rise - drop > c:
            # not from the limit: the same pair must come out the same, to the last digit, whatever the limit
            guess = _root_of_slope(forest, pair, shift, c, low, highest)
        else:
            guess = best = lowest
    width = math.nan
    intervals = 0
    while low < highest:
        intervals += 1
        if not math.isnan(best):
            goal = highest
        elif low >= limit:
            return math.inf
        if math.isnan(width):
            width = _next_width(low, guess, goal, pair.heights, shift)
        high = low + width
        if not low < high < goal:
            high = goal
        rise_h, drop_h, rise_falls_h, _ = op.slopes(forest, pair, high)
        rising = rise_h - drop_h > c and op.least_slope(forest, pair, low, high, shift) > c
        if not rising:
            if not known:
                rise, drop, rise_falls, _ = op.slopes(forest, pair, low)
                if not rise - drop > c:
                    best = lowest
            known = True
            falling = rise - drop_h + op.chain_gap(forest, pair, low, high) <= c
            least_bend = most_bend = 0.0
            if not falling:
                least_bend, most_bend = op.drop_falls_range(forest, pair, low, high)
            convex = least_bend > rise_falls
            if not (falling or convex):
                middle = 0.5 * (low + high)
                narrow = high - low <= RESOLUTION * high or not low < middle < high
                if intervals > PATIENCE:
                    narrow = narrow or 2 * (high - low) <= COARSE * (2 * high - pair.heights + shift)
                if not (most_bend < rise_falls_h or narrow):  # not concave either: split
                    width = middle - low
                    continue
                if rise - drop > c and not rise_h - drop_h > c:
                    peak = guess
                    if not low <= guess <= high:
                        peak = _root_of_slope(forest, pair, shift, c, low, high)
                    if (
                        math.isnan(best)
                        or op.log_z(forest, pair, peak) - c * peak > op.log_z(forest, pair, best) - c * best
                    ):
                        best = peak
        known = True
        # bounds of chains are as good as the interval is short, and what was short enough is nearly so again
        width = 3 * (high - low) if forest.n_chains else math.nan
        low, rise, drop, rise_falls = high, rise_h, drop_h, rise_falls_h
    return best if best < limit else math.inf


def _next_width(low, guess, goal, heights, shift):
    """Return the width of the next interval: shrinking towards a zero of the slope, across it, and growing away from it."""
    target = min(guess, goal)
    x_low = 2 * low - heights + shift
    x_target = 2 * target - heights + shift
    if x_low < 0.9 * x_target:
        width = 0.5 * (target - low) if guess < goal or x_low < 0.6 * x_target else target - low
    elif low < target:
        width = 2 * (target - low)
    else:
        width = 0.5 * x_low if x_low > 0 else goal - low
    return max(width, RESOLUTION * goal)  # so that every step is one


# -- complete stationary rows ----------------------------------------------------------------------------------------------


def best_path(n_columns, rate, d2, product, c):
    """Return x with ``G(x) = d2``, for a product >= 0, by Newton's method in a bracket; the start is exact for short paths."""
    twice = 2 * n_columns
    square = 2 * c / rate + product
    x = 2 * d2 / (twice + math.sqrt(twice * twice + 4 * square * d2))
    # the path that the prior's term alone would allow, and a little more: far from the solution the method may go astray
    low, high = 0.0, math.asinh(math.sqrt(0.5 * d2 * rate / c)) * (1 + 1e-14)
    x = min(x, high)
    for _ in range(100):
        more = math.expm1(x)  # exp(x) - 1, from which all other terms follow without a loss of digits
        kept = 1 / (1 + more)
        sinh, arc = 0.5 * (more + more * kept), 0.5 * more * (more * kept)  # arc: cosh(x) - 1 = 2 sinh(x / 2)^2
        gap = n_columns * (more * kept) * (1 + kept) + (2 * c / rate) * sinh * sinh + 2 * product * arc - d2
        slope = twice * kept * kept + (4 * c / rate) * sinh * (1 + arc) + 2 * product * sinh
        if gap > 0:
            high = x
        else:
            low = x
        new = x - gap / slope if slope > 0 else x
        # the share of the error that a step leaves is at most its square times max(1, x), and x is below 400
        if abs(new - x) <= 1e-9 * new:
            return new
        x = new if low < new < high else 0.5 * (low + high)
    return x


# -- sites of one rate -----------------------------------------------------------------------------------------------------


def _slope_and_bend(forest, pair, n, a, w):
    """Return the slope of F and minus its derivative; a is ``c / (2 rate)``."""
    for d in range(n):
        b = 1 - pair.rows[0, d]
        pair.rows[1, d] = b / ((1 - b) + b * w)
    _set_squares(forest, pair, n)
    return op.sum_of_row(pair, 1, n) - a / (1 - w), op.sum_of_row(pair, 2, n) + a / ((1 - w) * (1 - w))


def _slope_and_bend_in_u(forest, pair, n, a, u):
    """Return the slope of F in ``u = 1 - w``, which is exact where w is near 1, and minus its derivative."""
    for d in range(n):
        b = 1 - pair.rows[0, d]
        pair.rows[1, d] = b / (1 - b * u)
    _set_squares(forest, pair, n)
    return a / u - op.sum_of_row(pair, 1, n), op.sum_of_row(pair, 2, n) + a / (u * u)


def _set_squares(forest, pair, n):
    """Put the squares of row 1 into row 2, and multiply both by the weights."""
    for d in range(n):
        pair.rows[2, d] = pair.rows[1, d] * pair.rows[1, d]
    op.weigh_sites(forest, pair, 1)
    op.weigh_sites(forest, pair, 2)


def _rises(forest, pair, n, a, x):
    """Return whether F rises with the height where ``x = rate g``."""
    if x == math.inf:
        return False
    if x < HALF:
        return _slope_and_bend(forest, pair, n, a, -math.expm1(-x))[0] > 0
    return _slope_and_bend_in_u(forest, pair, n, a, math.exp(-x))[0] < 0


def _best_w(forest, pair, n, a, lowest):
    """Return where F is largest between `lowest`, where it rises, and 1/2, by Newton's method in a bracket."""
    differing = _differing(forest, pair, n)
    low, high = lowest, 0.5
    w = differing / (differing + a)
    for _ in range(100):
        if not low < w < high:
            w = 0.5 * (low + high)
        slope, bend = _slope_and_bend(forest, pair, n, a, w)
        if slope > 0:
            low = w
        else:
            high = w
        step = slope / bend
        if abs(step) <= 4e-16 * w:
            break
        w += step
    return min(max(w, low), high)


def _best_u(forest, pair, n, a, highest):
    """Return the u where F is largest, below 1/2 and below `highest`."""
    low, high = 0.5 * a / _differing(forest, pair, n), highest
    u = _first_u(forest, pair, n, a)
    if not low < u < high:
        u = low
    for _ in range(200):
        slope, bend = _slope_and_bend_in_u(forest, pair, n, a, u)
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


def _first_u(forest, pair, n, a):
    """Return the u where F would be largest if its slope were ``a / u - sum_d b_d (1 + b_d u)``."""
    for d in range(n):
        pair.rows[1, d] = 1 - pair.rows[0, d]
    _set_squares(forest, pair, n)
    apart = op.sum_of_row(pair, 1, n)
    return 2 * a / (apart + math.sqrt(apart * apart + 4 * a * op.sum_of_row(pair, 2, n)))


def _differing(forest, pair, n):
    for d in range(n):
        pair.rows[1, d] = max(1 - pair.rows[0, d], 0.0)
    op.weigh_sites(forest, pair, 1)
    return op.sum_of_row(pair, 1, n)


def _best_site_height(forest, pair, c, lowest, limit):
    if not lowest < limit:
        return math.inf
    rate, n = forest.common_rate, forest.n_sites
    a = 0.5 * c / rate
    x_low = rate * max(2 * lowest - pair.heights, 0.0)
    if not _rises(forest, pair, n, a, x_low):
        return lowest
    if _rises(forest, pair, n, a, rate * (2 * limit - pair.heights)):
        return math.inf
    if x_low < HALF and not _rises(forest, pair, n, a, HALF):
        x = -math.log1p(-_best_w(forest, pair, n, a, -math.expm1(-x_low)))
    else:
        x = -math.log(_best_u(forest, pair, n, a, min(math.exp(-x_low), 0.5)))
    h = max(0.5 * (x / rate + pair.heights), lowest)
    return h if h < limit else math.inf


# -- all kinds -------------------------------------------------------------------------------------------------------------


def _surely(forest, pair, h, c):
    """Return the sign of the slope at h, or 0 where rounding may decide on it."""
    rise, drop, _, _ = op.slopes(forest, pair, h)
    rounding = UNSURE * (rise + drop + c)
    slope = rise - drop - c
    return 1 if slope > rounding else -1 if slope < -rounding else 0


def best_height(forest, pair, shift, c, lowest, limit):
    """Return the best height at or above `lowest`, or infinity as soon as it is known not to be below `limit`."""
    if forest.complete and forest.n_brownian:
        n = forest.total_weight
        s = 2 * pair.d2[0] / (math.sqrt(n * n + 4 * c * pair.d2[0]) + n)
        h = max(0.5 * (s - pair.lost[0] + pair.heights), lowest)
        return h if h < limit else math.inf
    if forest.complete and pair.product[0] >= 0:
        if pair.lost[0] > 0:  # most pairs merge at the lowest height or not below the limit, as their slopes there say
            if _surely(forest, pair, lowest, c) < 0:
                return lowest if lowest < limit else math.inf
            if limit < math.inf and _surely(forest, pair, limit, c) > 0:
                return math.inf
        x = best_path(forest.total_weight, forest.rate[0], pair.d2[0], pair.product[0], c)
        path = (x + math.log1p(-pair.lost[0])) / forest.rate[0] if pair.lost[0] < 1 else -math.inf
        h = max(0.5 * (path + pair.heights), lowest)
        return h if h < limit else math.inf
    if forest.n_real == 0 and forest.common_rate > 0:
        return _best_site_height(forest, pair, c, lowest, limit)
    return search_height(forest, pair, shift, c, lowest, limit)


def key_up_to(forest, i, j, shift, limit, pair):
    """Return the key of slot i with an older slot j: their best height at rate 1, or infinity if it is above the limit.

    A pair whose best height is below slot i merges at the height of slot i. With noise there are many such pairs, and the most
    similar ones come first: their key is a negative number instead of a height, see `rank_by_likeness`.
    """
    op.load_pair(forest, i, j, pair)
    return _key_of(forest, i, j, shift, limit, pair)


def key_within(forest, i, j, shift, limit, pair):
    """Return the key of slot i with an older slot j, or infinity if it is above the limit, which may also be a negative key."""
    op.load_pair(forest, i, j, pair)
    # A pair that is not more alike at the floor is beyond a rank, whether it merges there or above.
    if limit < 0 and rank_by_likeness(op.log_cosine(forest, i, j, pair, forest.height[i])) > limit:
        return math.inf
    return _key_of(forest, i, j, shift, limit, pair)


def _key_of(forest, i, j, shift, limit, pair):
    floor = forest.height[i]
    # the next larger number: a pair as good as the last one kept may have the smaller index
    h = best_height(forest, pair, shift, 1.0, floor, math.nextafter(max(limit, floor), math.inf))
    if h == floor and forest.noisy:
        h = rank_by_likeness(op.log_cosine(forest, i, j, pair, floor))
    return h


def rank_by_likeness(log_cosine):
    """Return a negative number that is smaller the more similar two messages are: -1 for equal messages."""
    return -1 / (1 - log_cosine) if log_cosine < 0 else -(1 + log_cosine)


def insert_partner(keys, slots, row, length, key, slot):
    """Insert a partner into an ascending list, with the smaller slot first among equal keys; the last entry is dropped."""
    q = length
    while q > 0 and (key < keys[row, q - 1] or (key == keys[row, q - 1] and slot < slots[row, q - 1])):
        q -= 1
        if q + 1 < length:
            keys[row, q + 1] = keys[row, q]
            slots[row, q + 1] = slots[row, q]
    if q < length:
        keys[row, q] = key
        slots[row, q] = slot
