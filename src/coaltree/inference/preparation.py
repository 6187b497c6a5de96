"""The table as the search sees it: extreme real cells nearer, missing ones filled in, all in an order set by content.

*Extreme cells.* Columns are scaled to the same range, so one cell far from all others would make these look the same. Wide gaps
between such cells and the others are therefore shortened, see `shorten_gaps`. Ordinary columns have no such gaps.

*Nearest-neighbour imputation.* The search is many times faster on complete rows than on incomplete ones, and it finds better
trees: two rows with few common columns look similar by chance and merge too early. The mean over several similar rows is a
better guess than nothing. Only the search uses it; likelihoods and predictions use the observed cells. The distance of two rows
is the mean squared difference over the columns that both have, scaled such that its expectation for two random rows is 2: real
columns are scaled to the same range, as for the tree, and a difference in category counts 2 over the probability that two rows
differ. One additional column with just that expectation keeps rows with few common columns from looking similar by chance.

*Arrangement.* Tables of whole numbers and categories have many pairs of rows that are equally similar. Rounding and row numbers
would decide which of them merges first, and the same rows in another order, or in other units, would get another tree. The
search therefore works on a table whose order depends on its content only. Rows and columns get colours, 64-bit hashes, by
repeated refinement (Weisfeiler and Leman, 1968): a column is hashed from the multiset of the colours and values of its cells,
and a row likewise. A real column and its negative get the same colour, and states are known by the rows that have them, not by
their codes. Sums of integers do not depend on their order. Where columns remain that nothing distinguishes, one of them is
picked, and the refinement is repeated. Tables that only differ in the order of rows and columns, in units and in codes then
become the same, except for rare regular structures.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..process.gaussian_columns import column_moments, scale_to_range
from ..table.cells import MAX_SET_STATES, is_set, set_members
from ..table.scaling import MAX_STANDARDISED

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# extreme cells
MAX_EXTREME_SHARE = 0.05  # of a column's cells, on each side
MIN_EXTREME_CELLS = 20  # of a column with extreme cells
MIN_SPREAD = 1 / MAX_STANDARDISED  # of cells that have a scale: squares of smaller differences are 0
MIN_GAP, SHORT_GAP = 2.0, 0.5  # beside extreme cells, before and after, in units of the range of the ordinary ones

# imputation
N_NEIGHBORS = 10  # rows that are averaged; more if several are equally near
EXPECTED_DISTANCE = 2.0  # squared difference of the standardized values of two random rows
RELATIVE_TOLERANCE = 1e-9  # smaller differences of distances are ties: rounding depends on the order of rows
BLOCK_ROWS = 256  # rows whose distances to all others are in memory at the same time

Colours = NDArray[np.uint64]

# arrangement
GRID = 2.0**-30  # of standardized values: smaller differences may be rounding
MAX_CELLS = 5_000_000  # of tables to arrange
MAX_PICKS = 8
MAX_PICK_CELLS = 300_000  # that refinement after picks may read
MAX_ROUNDS = 10

_MISSING = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)


def shorten_gaps(X: FloatArray) -> tuple[FloatArray, IntArray]:
    """Move extreme cells nearer to the others, so that they do not determine the scale of their column.

    A column's ordinary cells are those without the lowest and highest 5 %, and all that can be reached from there in steps of at
    most twice the range of the ordinary cells so far. The other cells are extreme. Wider gaps next to them are shortened to half
    the range of the ordinary cells, so that it does not matter how far away they are.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        Real columns. NaN is a missing cell.

    Returns
    -------
    shortened : ndarray of shape (n, D)
        `X` itself if no cell is extreme. Columns with fewer than 20 cells have no extreme ones, nor have those in which at least
        half of the cells are equal: such a column has no scale on which the rest could be extreme.
    levels : ndarray of int, shape (n, D)
        Number of shortened gaps between a cell and the ordinary ones, negative below them; 0 for ordinary and missing cells. Of
        shape (n, 0) if no cell is extreme.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.append(np.arange(30.0), [1000.0, -40.0])[:, None]
    >>> shortened, levels = shorten_gaps(X)
    >>> shortened[-2:, 0].tolist(), levels[-2:, 0].tolist()
    ([63.5, -40.0], [1, 0])
    """
    shortened, levels = X, np.zeros((len(X), 0), dtype=np.intp)
    for column in range(X.shape[1]):
        cells = X[:, column]
        observed = ~np.isnan(cells)
        found = _shorten_column(cells[observed])
        if found is not None:
            if shortened is X:
                shortened, levels = X.copy(), np.zeros(X.shape, dtype=np.intp)
            shortened[observed, column], levels[observed, column] = found
    return shortened, levels


def _shorten_column(values: FloatArray) -> tuple[FloatArray, IntArray] | None:
    """Return the cells of a column without wide gaps and their levels, or None if no cell is extreme."""
    n = len(values)
    low, high = int(MAX_EXTREME_SHARE * n), n - 1 - int(MAX_EXTREME_SHARE * n)
    if n < MIN_EXTREME_CELLS:
        return None
    partitioned = np.partition(values, (low, high))
    widest = MIN_GAP * (partitioned[high] - partitioned[low])
    if max(partitioned[low] - values.min(), values.max() - partitioned[high]) <= widest:
        return None  # most columns end here, unsorted
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    gaps = np.diff(ordered)
    if not _has_scale(ordered):
        return None
    while True:
        spread = ordered[high] - ordered[low]
        widest = MIN_GAP * spread * (1 + RELATIVE_TOLERANCE)
        if low > 0 and gaps[low - 1] <= widest:
            low -= 1
        elif high < n - 1 and gaps[high] <= widest:
            high += 1
        else:
            break
    if low == 0 and high == n - 1:
        return None
    place, level = ordered.copy(), np.zeros(n, dtype=np.intp)
    place[high + 1 :] = ordered[high] + np.cumsum(np.where(gaps[high:] > widest, SHORT_GAP * spread, gaps[high:]))
    level[high + 1 :] = np.cumsum(gaps[high:] > widest)
    place[:low] = ordered[low] - np.cumsum(np.where(gaps[:low] > widest, SHORT_GAP * spread, gaps[:low])[::-1])[::-1]
    level[:low] = -np.cumsum(gaps[:low][::-1] > widest)[::-1]
    back = np.argsort(order)
    return place[back], level[back]


def are_extreme(new: FloatArray, X: FloatArray) -> NDArray[np.bool_]:
    """Return which new rows have a cell that would be extreme next to the cells of others, see `shorten_gaps`.

    Parameters
    ----------
    new : ndarray of shape (m, D)
        Real columns. NaN is a missing cell.
    X : ndarray of shape (n, D)
        Rows without extreme cells of their own.

    Returns
    -------
    ndarray of bool, shape (m,)
    """
    extreme = np.zeros(len(new), dtype=bool)
    for cells, column in zip(new.T, X.T, strict=True):
        ordered = np.sort(column[~np.isnan(column)])
        if not _has_scale(ordered):
            continue
        widest = MIN_GAP * (ordered[-1] - ordered[0])
        extreme |= (cells < ordered[0] - widest) | (cells > ordered[-1] + widest)
    return extreme


def _has_scale(ordered: FloatArray) -> bool:
    """Return whether cells can be extreme next to these: they are enough, and fewer than half are equal."""
    n = len(ordered)
    return n >= MIN_EXTREME_CELLS and bool(ordered[n // 4 + n // 2] - ordered[n // 4] > MIN_SPREAD)


def fill_from_neighbors(X: FloatArray, n_real: int, *, n_neighbors: int = N_NEIGHBORS) -> FloatArray:
    """Fill missing real cells with the mean over the nearest rows that have the column.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        Real columns first, then codes of categories. NaN is a missing cell.
    n_real : int
        Number of real columns. Each has at least one observed cell.
    n_neighbors : int, default 10
        Number of rows to average; fewer if fewer have the column.

    Returns
    -------
    ndarray of shape (n, D)
        Missing categories stay missing, and so do the cells of rows without any observed cell. If no cell was filled, this is
        `X` itself.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [0.1, np.nan], [0.2, 3.0], [9.0, 8.0]])
    >>> fill_from_neighbors(X, 2, n_neighbors=2)[1].tolist()
    [0.1, 2.0]
    """
    observed = ~np.isnan(X)
    observed[:, n_real:] &= X[:, n_real:] >= 0  # one of several categories counts as missing here
    missing = ~observed[:, :n_real] & observed.any(axis=1, keepdims=True)
    incomplete = np.flatnonzero(missing.any(axis=1))
    if not len(incomplete):
        return X
    values, squares = _standardize(X, observed, n_real)
    indicator = observed.astype(np.float64)
    filled = X.copy()
    for first in range(0, len(incomplete), BLOCK_ROWS):
        rows = incomplete[first : first + BLOCK_ROWS]
        total = squares[rows] @ indicator.T + indicator[rows] @ squares.T - 2 * (values[rows] @ values.T)
        distances = (np.maximum(total, 0.0) + EXPECTED_DISTANCE) / (indicator[rows] @ indicator.T + 1)
        for column in np.flatnonzero(missing[rows].any(axis=0)).tolist():
            targets = np.flatnonzero(missing[rows, column])
            donors = np.flatnonzero(observed[:, column])  # never the row itself, which lacks the cell
            donor_distances = distances[np.ix_(targets, donors)]
            last = min(n_neighbors, len(donors)) - 1
            limit = np.partition(donor_distances, last, axis=1)[:, last, None]
            near = (donor_distances <= limit * (1 + RELATIVE_TOLERANCE)).astype(np.float64)
            filled[rows[targets], column] = near @ X[donors, column] / near.sum(axis=1)
    return filled


def _standardize(X: FloatArray, observed: NDArray[np.bool_], n_real: int) -> tuple[FloatArray, FloatArray]:
    """Return coordinates of rows, 0 for missing cells, and their squared lengths in each column."""
    mean, variance = column_moments(X[:, :n_real])
    unit = np.sqrt(scale_to_range(X[:, :n_real], variance))
    real = np.where(observed[:, :n_real], X[:, :n_real] - mean, 0.0) / unit
    parts, squares = [real], [real**2]
    for codes, known in zip(X[:, n_real:].T, observed[:, n_real:].T, strict=True):
        states = np.unique(codes[known])
        indicators = (codes[:, None] == states).astype(np.float64)
        differ = 1 - np.sum((indicators.sum(axis=0) / max(known.sum(), 1)) ** 2)
        scale = 1 / differ if differ > 0 else 0.0
        parts.append(indicators * np.sqrt(scale))
        squares.append(known[:, None] * scale)
    return np.hstack(parts), np.hstack(squares)


class Arrangement(NamedTuple):
    """How to rearrange a table."""

    rows: IntArray  # (n,), old numbers
    columns: IntArray  # (D,), old numbers, real ones first
    signs: FloatArray  # (n_real,), 1 or -1, in the new order
    codes: tuple[IntArray, ...]  # for each categorical column, in the new order: the new code of every old one

    def apply(self, X: FloatArray) -> FloatArray:
        """Return the rearranged table."""
        n_real = len(self.signs)
        arranged = X[np.ix_(self.rows, self.columns)]
        arranged[:, :n_real] = arranged[:, :n_real] * self.signs + 0.0  # not -0
        for cells, codes in zip(arranged.T[n_real:], self.codes, strict=True):
            cells[:] = _recode(cells, codes)
        return arranged


def round_cells(X: FloatArray, n_real: int) -> FloatArray:
    """Return a table with its real cells on a grid, so that other units and other sums have no effect.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        Standardized real columns first. NaN is a missing cell.
    n_real : int

    Returns
    -------
    ndarray of shape (n, D)
    """
    rounded = X.copy()
    rounded[:, :n_real] = np.round(X[:, :n_real] / GRID) * GRID + 0.0  # not -0
    return rounded


def sort_rows(X: FloatArray) -> IntArray:
    """Return the order of rows by content; equal rows stay in their order."""
    return np.lexsort(np.where(np.isnan(X), np.inf, X).T)


def arrange(X: FloatArray, n_states: tuple[int, ...]) -> Arrangement:
    """Return the arrangement of a table that depends on its content only.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        Real columns first, rounded; then codes of categories. NaN is a missing cell.
    n_states : tuple of int
        Of each categorical column.

    Returns
    -------
    Arrangement

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 5.0, 0.0], [1.0, 6.0, 1.0], [1.0, 8.0, 1.0]])
    >>> other = np.array([[-8.0, 1.0, 0.0], [-5.0, 0.0, 1.0], [-6.0, 1.0, 0.0]])
    >>> np.array_equal(arrange(X, (2,)).apply(X), arrange(other, (2,)).apply(other))
    True
    """
    n, D = X.shape
    n_real = D - len(n_states)
    table = _Cells(X, n_states)
    picked = np.zeros(D, dtype=np.intp)
    colouring = _refine(table, picked, np.zeros(n, dtype=np.uint64))
    work = 0
    for pick in range(1, MAX_PICKS + 1):
        tied = _first_tied(table, colouring, picked)
        work += n * D
        if tied is None or work > MAX_PICK_CELLS:
            break
        picked[tied] = pick
        colouring = _refine(table, picked, colouring.rows)
    columns = np.concatenate(
        [
            np.argsort(colouring.columns[:n_real], kind="stable"),
            n_real + np.argsort(colouring.columns[n_real:], kind="stable"),
        ]
    )
    starts = table.starts.tolist()
    codes = []
    for j in (columns[n_real:] - n_real).tolist():
        colours = colouring.states[starts[j] : starts[j + 1]]
        if len(colours) > MAX_SET_STATES and j in table.set_columns:  # sets may hold the first states only
            codes.append(np.arange(len(colours)))
        else:
            codes.append(np.argsort(np.argsort(colours, kind="stable"), kind="stable"))
    signs = np.where(colouring.signs < 0, -1.0, 1.0)[columns[:n_real]]
    unsorted = Arrangement(np.arange(n), columns, signs, tuple(codes))
    return unsorted._replace(rows=sort_rows(unsorted.apply(X)))


class _Colouring(NamedTuple):
    """Colours after refinement."""

    rows: Colours
    columns: Colours
    signs: IntArray  # of real columns: -1, 1, or 0 if the column and its negative look the same
    states: Colours  # of all categorical columns, one after the other


class _Cells:
    """The cells of a table, as refinement reads them."""

    def __init__(self, X: FloatArray, n_states: tuple[int, ...]):
        self.n, self.n_real = len(X), X.shape[1] - len(n_states)
        real, codes = X[:, : self.n_real], X[:, self.n_real :]
        self.plus, self.minus = _hash_reals(real), _hash_reals(-real)
        self.size = _hash_reals(np.abs(real))
        self.starts = np.append(0, np.cumsum(n_states, dtype=np.intp)).astype(np.intp)
        self.set_rows, self.set_columns = np.nonzero(is_set(codes))
        members = set_members(codes[self.set_rows, self.set_columns], max(n_states, default=0))
        self.member_set, member = np.nonzero(members)  # the members of all sets
        self.member_state = self.starts[self.set_columns[self.member_set]] + member
        self.known = codes >= 0
        known_codes = np.where(self.known, codes, 0).astype(np.intp)
        self.state = known_codes + self.starts[:-1]  # numbered through all columns


def _refine(cells: _Cells, picked: IntArray, rows: Colours) -> _Colouring:
    """Refine colours until no more rows and columns are distinguished.

    Picked columns show their number, and as far as they are still open their sign and codes.
    """
    n_real = cells.n_real
    seeds = _mix(picked.astype(np.uint64))
    n_colours = 0
    for _ in range(MAX_ROUNDS):
        # real columns
        row_colours = rows[:, None]
        up, down = _mix(cells.plus ^ row_colours).sum(axis=0), _mix(cells.minus ^ row_colours).sum(axis=0)
        signs = (up > down).astype(np.intp) - (up < down)
        signs[(signs == 0) & (picked[:n_real] > 0)] = 1
        real_columns = _mix(_mix(up) + _mix(down) ^ seeds[:n_real])
        real = np.where(signs > 0, cells.plus, np.where(signs < 0, cells.minus, cells.size))
        # categorical columns
        states = np.zeros(cells.starts[-1], dtype=np.uint64)
        np.add.at(
            states, cells.state[cells.known], np.broadcast_to(_mix(rows)[:, None], cells.state.shape)[cells.known]
        )
        if len(cells.set_rows):
            np.add.at(states, cells.member_state, _mix(_mix(rows))[cells.set_rows[cells.member_set]])
        states = _mix(states)
        for j in np.flatnonzero(picked[n_real:]).tolist():
            first, last = cells.starts[j], cells.starts[j + 1]
            states[first:last] = _break_ties(states[first:last])
        codes = np.where(cells.known, states[cells.state] if len(states) else _MISSING, _MISSING)
        if len(cells.set_rows):
            codes[cells.set_rows, cells.set_columns] = _hash_sets(cells, states)
        sums = _mix(codes ^ row_colours).sum(axis=0)
        columns = np.append(real_columns, _mix(sums + np.uint64(1) ^ seeds[n_real:]))
        rows = _mix(np.hstack([real, codes]) ^ columns).sum(axis=1)
        colouring = _Colouring(rows, columns, signs, states)
        before, n_colours = n_colours, len(np.unique(rows)) + len(np.unique(columns)) + int(np.count_nonzero(signs))
        if n_colours <= before or _first_tied(cells, colouring, picked) is None:
            break
    return colouring


def _first_tied(cells: _Cells, colouring: _Colouring, picked: IntArray) -> int | None:
    """Return the column with the smallest colour that equals another, or whose sign or states are open."""
    _, inverse, counts = np.unique(colouring.columns, return_inverse=True, return_counts=True)
    tied = counts[inverse] > 1
    tied[: cells.n_real] |= colouring.signs == 0
    column = np.repeat(np.arange(len(cells.starts) - 1), np.diff(cells.starts))
    order = np.lexsort((colouring.states, column))
    equal = (np.diff(colouring.states[order]) == 0) & (np.diff(column[order]) == 0)
    tied[cells.n_real + column[order][:-1][equal]] = True
    open_columns = np.flatnonzero(tied & (picked == 0))
    return int(open_columns[np.argmin(colouring.columns[open_columns])]) if len(open_columns) else None


def _break_ties(states: Colours) -> Colours:
    """Give states of the same colour different ones, in the order of their codes."""
    order = np.argsort(states, kind="stable")
    new = np.append(True, np.diff(states[order]) != 0)
    place = np.arange(len(states)) - np.maximum.accumulate(np.where(new, np.arange(len(states)), 0))
    broken = states.copy()
    later = order[place > 0]
    broken[later] = _mix(states[later] ^ place[place > 0].astype(np.uint64))
    return broken


def _hash_sets(cells: _Cells, states: Colours) -> Colours:
    """Return colours of cells that are one of several states."""
    total = np.full(len(cells.set_rows), np.uint64(1))
    np.add.at(total, cells.member_set, states[cells.member_state])
    return _mix(total)


def _hash_reals(values: FloatArray) -> Colours:
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)  # one zero
    return np.where(np.isnan(values), _MISSING, _mix(bits))


def _mix(values: Colours) -> Colours:
    """Hash integers: the finalizer of splitmix64 (Steele, Lea and Flood, 2014)."""
    mixed = values + _MISSING
    for shift, factor in zip(_SHIFTS, _FACTORS, strict=False):
        mixed ^= mixed >> shift
        mixed *= factor
    mixed ^= mixed >> _SHIFTS[-1]
    return mixed


def _recode(cells: FloatArray, codes: IntArray) -> FloatArray:
    """Return the cells of a categorical column with other codes."""
    recoded = cells.copy()
    known = cells >= 0
    recoded[known] = codes[cells[known].astype(np.intp)]
    sets = np.flatnonzero(is_set(cells))
    if len(sets):
        members = set_members(cells[sets], len(codes))
        recoded[sets] = -(members * 2.0**codes).sum(axis=1)
    return recoded
