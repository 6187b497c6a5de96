cimport cython
from coaltree cimport _constants as const
from coaltree cimport _math as math
from coaltree.inference.kernels cimport heights
from coaltree.process.kernels cimport messages as op

cdef Py_ssize_t SAMPLE, COLUMNS_AT_ONCE, PROBES, DEEPEST, ROWS, FIRST_LOOKS
cdef double WORTHWHILE, SLACK, TIE, LEAST_GAP, DRIFT, ROUNDING, BLUR, LARGEST_SINGLE, SMALLEST_SINGLE


cdef class Space:
    cdef public bint boxes
    cdef public Py_ssize_t n_points, n_buckets, n_columns, width, n_levels
    cdef readonly Py_ssize_t[::1] level
    cdef readonly Py_ssize_t[::1] bucket
    cdef readonly Py_ssize_t[::1] place
    cdef readonly Py_ssize_t[::1] member
    cdef readonly double[::1] offset
    cdef readonly Py_ssize_t[::1] filled
    cdef readonly float[::1] y
    cdef readonly double[::1] norm
    cdef readonly double[::1] growth
    cdef readonly double[::1] log_norm
    cdef public double largest_norm, largest_log_norm, least_growth, most_growth
    cdef readonly double[:, :, ::1] low
    cdef readonly double[:, :, ::1] high
    cdef readonly double[::1] least_offset
    cdef readonly Py_ssize_t[::1] oldest
    cdef readonly Py_ssize_t[::1] order
    cdef readonly double[::1] along
    cdef readonly Py_ssize_t[::1] bounds


cdef class Search:
    cdef public Py_ssize_t count, looked_at
    cdef readonly Py_ssize_t[::1] row
    cdef readonly double[:, ::1] mean
    cdef readonly double[:, ::1] keys
    cdef readonly Py_ssize_t[:, ::1] slots
    cdef readonly double[::1] norm
    cdef readonly double[::1] decay
    cdef readonly double[::1] surplus
    cdef readonly double[::1] slope
    cdef readonly float[:, ::1] squares
    cdef readonly float[:, ::1] nearest
    cdef readonly float[::1] least
    cdef readonly float[::1] beyond
    cdef readonly double[::1] gaps
    cdef readonly Py_ssize_t[:, ::1] waiting
    cdef readonly double[::1] far


cpdef Py_ssize_t padded(Py_ssize_t n_columns) noexcept nogil
@cython.locals(n_buckets=Py_ssize_t, n_levels=Py_ssize_t, first=Py_ssize_t, boxes=Py_ssize_t)
cdef void set_levels(Space space, Py_ssize_t n) noexcept nogil
@cython.locals(looked_at=Py_ssize_t, all_older=Py_ssize_t, i=Py_ssize_t)
cdef void build(op.Forest forest, Space space, Py_ssize_t n, Search search, op.Pair pair) noexcept nogil
@cython.locals(bucket=Py_ssize_t, first=Py_ssize_t, size=Py_ssize_t, p=Py_ssize_t)
cdef void _build_blocks(op.Forest forest, Space space, Py_ssize_t n) noexcept nogil
@cython.locals(d=Py_ssize_t, first=Py_ssize_t, norm=double, x=double)
cdef double _store(
    op.Forest forest, Space space, Py_ssize_t bucket, Py_ssize_t p, Py_ssize_t slot, Py_ssize_t size
) noexcept nogil
cdef void _put_in_block(op.Forest forest, Space space, Py_ssize_t bucket, Py_ssize_t p, Py_ssize_t slot) noexcept nogil
@cython.locals(d=Py_ssize_t, first=Py_ssize_t)
cdef void _empty_place(Space space, Py_ssize_t bucket, Py_ssize_t p, Py_ssize_t size) noexcept nogil
@cython.locals(
    n_boxes=Py_ssize_t, row=Py_ssize_t, d=Py_ssize_t, part=Py_ssize_t, box=Py_ssize_t, p=Py_ssize_t, bucket=Py_ssize_t,
    first=Py_ssize_t, size=Py_ssize_t,
)
cdef void _build_boxes(op.Forest forest, Space space, Py_ssize_t n) noexcept nogil
@cython.locals(
    n_parts=Py_ssize_t, step=Py_ssize_t, part=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t, middle=Py_ssize_t,
    column=Py_ssize_t, p=Py_ssize_t,
)
cdef void _halve(op.Forest forest, Space space, Py_ssize_t n) noexcept nogil
@cython.locals(
    step=Py_ssize_t, widest=Py_ssize_t, d=Py_ssize_t, p=Py_ssize_t, width=double, low=double, high=double, x=double
)
cdef Py_ssize_t _widest_column(op.Forest forest, Space space, Py_ssize_t first, Py_ssize_t last) noexcept nogil
@cython.locals(
    low=Py_ssize_t, high=Py_ssize_t, a=Py_ssize_t, b=Py_ssize_t, slot=Py_ssize_t, pivot=double, x=double
)
cdef void _select(Space space, Py_ssize_t first, Py_ssize_t last, Py_ssize_t middle) noexcept nogil
@cython.locals(
    d=Py_ssize_t, within=Py_ssize_t, level=Py_ssize_t, box=Py_ssize_t, row=Py_ssize_t, part=Py_ssize_t
)
cdef void _put_in_boxes(op.Forest forest, Space space, Py_ssize_t bucket, Py_ssize_t p, Py_ssize_t slot) noexcept nogil
@cython.locals(
    size=Py_ssize_t, bucket=Py_ssize_t, p=Py_ssize_t, last=Py_ssize_t, moved=Py_ssize_t, first=Py_ssize_t, d=Py_ssize_t
)
cdef void replace(op.Forest forest, Space space, Py_ssize_t i, Py_ssize_t j, Py_ssize_t new) noexcept nogil
@cython.locals(
    oldest=Py_ssize_t, p=Py_ssize_t, within=Py_ssize_t, level=Py_ssize_t, box=Py_ssize_t, first=Py_ssize_t, part=Py_ssize_t
)
cdef void _find_oldest(Space space, Py_ssize_t bucket) noexcept nogil
@cython.locals(bucket=Py_ssize_t, p=Py_ssize_t, slot=Py_ssize_t, box=Py_ssize_t)
cdef void renumber(
    op.Forest forest, Space space, Py_ssize_t[::1] new_slot, Py_ssize_t n, Py_ssize_t used
) noexcept nogil

@cython.locals(t=Py_ssize_t, k=Py_ssize_t, d=Py_ssize_t)
cdef void _clear_lists(op.Forest forest, Search search) noexcept nogil
cdef void scan(op.Forest forest, Space space, Search search, op.Pair pair) noexcept nogil
@cython.locals(
    i=Py_ssize_t, worst=Py_ssize_t, n_waiting=Py_ssize_t, level=Py_ssize_t, within=Py_ssize_t, size=Py_ssize_t,
    k=Py_ssize_t, j=Py_ssize_t, box=Py_ssize_t, any_near=bint, younger=bint, reach=double, key=double, slack=double, far=float,
)
cdef void scan_boxes(op.Forest forest, Space space, Search search, op.Pair pair) noexcept nogil
@cython.locals(
    first=Py_ssize_t, row=Py_ssize_t, part=Py_ssize_t, d=Py_ssize_t, last=Py_ssize_t, at=Py_ssize_t, x=double, y=double
)
cdef Py_ssize_t _await_parts(
    Space space, Search search, Py_ssize_t level, Py_ssize_t group, Py_ssize_t i, double reach, Py_ssize_t n_waiting
) noexcept nogil
@cython.locals(n=double, s=double, h=double)
cdef double _brownian_key(op.Forest forest, Py_ssize_t i, Py_ssize_t j, double square, double offset) noexcept nogil
@cython.locals(n=double)
cdef double _reach(
    op.Forest forest, double least_offset, double floor, double v, double limit, double slack
) noexcept nogil
cdef double _share_of_error(Space space) noexcept nogil
cdef double _least_error(Space space) noexcept nogil
cdef double _reach_in_single(Space space, double reach) noexcept nogil
@cython.locals(
    k=Py_ssize_t, first=Py_ssize_t, count=int, at=Py_ssize_t, last=Py_ssize_t, a=float, b=float, c=float, d=float,
    gap_a=float, gap_b=float, gap_c=float, gap_d=float, so_far=float,
)
cdef bint _squares_within(Space space, Search search, Py_ssize_t bucket, float reach) noexcept nogil
@cython.locals(t=Py_ssize_t, bucket=Py_ssize_t)
cdef void _scan_blocks(op.Forest forest, Space space, Search search, op.Pair pair) noexcept nogil
@cython.locals(_=Py_ssize_t, looks=Py_ssize_t, nearest=Py_ssize_t, bucket=Py_ssize_t, at=Py_ssize_t, end=Py_ssize_t)
cdef void _start_list(op.Forest forest, Space space, Search search, Py_ssize_t t, op.Pair pair) noexcept nogil
@cython.locals(i=Py_ssize_t, j=Py_ssize_t, k=Py_ssize_t, worst=Py_ssize_t, key=double)
cdef void _look_at(
    op.Forest forest, Space space, Search search, Py_ssize_t t, Py_ssize_t at, op.Pair pair
) noexcept nogil
@cython.locals(i=Py_ssize_t, first=Py_ssize_t, k=Py_ssize_t, far=float)
cdef void _scan_block(
    op.Forest forest, Space space, Search search, Py_ssize_t bucket, Py_ssize_t t, op.Pair pair
) noexcept nogil
@cython.locals(i=Py_ssize_t)
cdef void _set_stationary_reach(op.Forest forest, Space space, Search search, Py_ssize_t t) noexcept nogil
@cython.locals(first=Py_ssize_t, k=Py_ssize_t)
cdef void _mark_rising(op.Forest forest, Space space, Search search, Py_ssize_t bucket, Py_ssize_t t) noexcept nogil
@cython.locals(first=Py_ssize_t, k=Py_ssize_t)
cdef void _mark_unlike(op.Forest forest, Space space, Search search, Py_ssize_t bucket, Py_ssize_t t) noexcept nogil
@cython.locals(k=Py_ssize_t, count=int)
cdef bint _all_beyond(Search search) noexcept nogil
@cython.locals(rises=bint, h=double)
cdef double _stationary_key(op.Forest forest, Py_ssize_t i, Py_ssize_t j, double limit, op.Pair pair) noexcept nogil
@cython.locals(
    at=Py_ssize_t, first=Py_ssize_t, to=Py_ssize_t, k=Py_ssize_t, a=float, b=float, c=float, d=float,
    gap_a=float, gap_b=float, gap_c=float, gap_d=float, so_far=float,
)
cdef void _set_block_squares(Space space, Search search, Py_ssize_t bucket, Py_ssize_t t) noexcept nogil
@cython.locals(k=Py_ssize_t, a=float, b=float, c=float, d=float, least=float)
cdef float _least_square(Search search, Py_ssize_t t, Py_ssize_t first) noexcept nogil
