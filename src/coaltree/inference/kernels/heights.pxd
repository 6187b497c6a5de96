cimport cython
from coaltree cimport _math as math
from coaltree.process.kernels cimport messages as op

cdef double RESOLUTION, COARSE, UNSURE, HALF
cdef Py_ssize_t PATIENCE

@cython.locals(_=Py_ssize_t, rise=double, drop=double, rise_falls=double, drop_falls=double, h=double, new=double)
cdef double _root_of_slope(op.Forest forest, op.Pair pair, double shift, double c, double low, double high) noexcept nogil
@cython.locals(
    _=double, rise=double, drop=double, rise_falls=double, rise_h=double, drop_h=double, rise_falls_h=double,
    highest=double, best=double, low=double, high=double, goal=double, guess=double, width=double, peak=double,
    least_bend=double, most_bend=double, middle=double, known=bint, rising=bint, falling=bint, convex=bint, narrow=bint,
    intervals=Py_ssize_t,
)
cpdef double search_height(
    op.Forest forest, op.Pair pair, double shift, double c, double lowest, double limit
) noexcept nogil
@cython.locals(width=double)
cdef double _next_width(double low, double guess, double goal, double heights, double shift) noexcept nogil
@cython.locals(_=Py_ssize_t, low=double, high=double, x=double, new=double)
cpdef double best_path(double n_columns, double rate, double d2, double product, double c) noexcept nogil
@cython.locals(d=Py_ssize_t)
cdef (double, double) _slope_and_bend(op.Forest forest, op.Pair pair, Py_ssize_t n, double a, double w) noexcept nogil
@cython.locals(d=Py_ssize_t)
cdef (double, double) _slope_and_bend_in_u(op.Forest forest, op.Pair pair, Py_ssize_t n, double a, double u) noexcept nogil
@cython.locals(d=Py_ssize_t)
cdef void _set_squares(op.Forest forest, op.Pair pair, Py_ssize_t n) noexcept nogil
cdef bint _rises(op.Forest forest, op.Pair pair, Py_ssize_t n, double a, double x) noexcept nogil
@cython.locals(_=Py_ssize_t, low=double, high=double, w=double, slope=double, bend=double)
cdef double _best_w(op.Forest forest, op.Pair pair, Py_ssize_t n, double a, double lowest) noexcept nogil
@cython.locals(_=Py_ssize_t, low=double, high=double, u=double, slope=double, bend=double)
cdef double _best_u(op.Forest forest, op.Pair pair, Py_ssize_t n, double a, double highest) noexcept nogil
@cython.locals(d=Py_ssize_t, apart=double)
cdef double _first_u(op.Forest forest, op.Pair pair, Py_ssize_t n, double a) noexcept nogil
@cython.locals(d=Py_ssize_t)
cdef double _differing(op.Forest forest, op.Pair pair, Py_ssize_t n) noexcept nogil
@cython.locals(n=Py_ssize_t)
cdef double _best_site_height(op.Forest forest, op.Pair pair, double c, double lowest, double limit) noexcept nogil
@cython.locals(rise=double, drop=double, _=double, rounding=double, slope=double)
cdef Py_ssize_t _surely(op.Forest forest, op.Pair pair, double h, double c) noexcept nogil
@cython.locals(n=double)
cpdef double best_height(
    op.Forest forest, op.Pair pair, double shift, double c, double lowest, double limit
) noexcept nogil
cpdef double key_up_to(
    op.Forest forest, Py_ssize_t i, Py_ssize_t j, double shift, double limit, op.Pair pair
) noexcept nogil
cpdef double key_within(
    op.Forest forest, Py_ssize_t i, Py_ssize_t j, double shift, double limit, op.Pair pair
) noexcept nogil
cdef double _key_of(
    op.Forest forest, Py_ssize_t i, Py_ssize_t j, double shift, double limit, op.Pair pair
) noexcept nogil
cpdef double rank_by_likeness(double log_cosine) noexcept nogil
@cython.locals(q=Py_ssize_t)
cdef void insert_partner(
    double[:, ::1] keys, Py_ssize_t[:, ::1] slots, Py_ssize_t row, Py_ssize_t length, double key, Py_ssize_t slot
) noexcept nogil
