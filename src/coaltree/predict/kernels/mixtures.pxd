cimport cython
from coaltree cimport _constants as const
from coaltree cimport _math as math
from coaltree cimport _stop as stop

cdef double SD_STEP, MEAN_STEP, SMALLEST_VARIANCE, LARGEST_PLACE, TOLERANCE
cdef Py_ssize_t MIDDLE_SIZE, PLACE_BITS, EMPTY, MOST_STEPS
cdef double[::1] SPREADS


cdef class Table:
    cdef readonly Py_ssize_t[:, ::1] keys
    cdef readonly double[:, ::1] sums
    cdef readonly Py_ssize_t count


cdef class Search:
    cdef readonly double[::1] weight
    cdef readonly double[::1] mean
    cdef readonly double[::1] precision
    cdef readonly double[::1] below
    cdef readonly double[::1] slope


@cython.locals(
    mask=Py_ssize_t, size=Py_ssize_t, key=Py_ssize_t, slot=Py_ssize_t, place=double, gap=double
)
cdef void add(Table table, Py_ssize_t cell, double weight, double mean, double variance) noexcept nogil
@cython.locals(mixed=Py_ssize_t)
cdef Py_ssize_t _first_slot(Py_ssize_t cell, Py_ssize_t size, Py_ssize_t key, Py_ssize_t mask) noexcept nogil
@cython.locals(mask=Py_ssize_t, old=Py_ssize_t, k=Py_ssize_t, slot=Py_ssize_t)
cpdef move(Table table, Table larger)
@cython.locals(i=Py_ssize_t)
cpdef add_all(
    Table table, const Py_ssize_t[::1] cells, const double[::1] weights, const double[::1] means,
    const double[::1] variances,
)
@cython.locals(
    n_columns=Py_ssize_t, k=Py_ssize_t, p=Py_ssize_t, slot=Py_ssize_t, row=Py_ssize_t, d=Py_ssize_t, cell=Py_ssize_t,
    i=Py_ssize_t,
)
cpdef add_pairs(
    Table table, const Py_ssize_t[::1] chosen, const Py_ssize_t[::1] slots, const Py_ssize_t[::1] pair_rows,
    const double[:, ::1] shares, double least, const unsigned char[:, ::1] requested, const Py_ssize_t[::1] scored,
    const double[:, :, ::1] means, const double[:, :, ::1] halves,
)
@cython.locals(
    most=Py_ssize_t, search=Search, c=Py_ssize_t, n=Py_ssize_t, split=Py_ssize_t, begin=Py_ssize_t, end=Py_ssize_t,
    i=Py_ssize_t, j=Py_ssize_t, _=Py_ssize_t, total=double, x=double, density=double, before=double, low=double,
    high=double, least=double, largest=double, value=double, guess=double,
)
cpdef find_quantiles(
    const Py_ssize_t[::1] first, const Py_ssize_t[::1] middle, const double[::1] weights, const double[::1] means,
    const double[::1] sds, const Py_ssize_t[::1] columns, const Py_ssize_t[::1] first_knots, const double[::1] knots,
    const double[::1] scores, const double[::1] levels, const double[::1] deviates, double[:, ::1] out,
)
@cython.locals(i=Py_ssize_t, k=Py_ssize_t, rate=double, below=double, slope=double, steep=double)
cdef (double, double) _distribution(
    Search own, Py_ssize_t split, Py_ssize_t n, double x, Py_ssize_t begin, Py_ssize_t end, const double[::1] knots,
    const double[::1] scores,
) noexcept nogil
@cython.locals(
    i=Py_ssize_t, z=double, away=double, y=double, rounded=double, k=double, r=double, q=double, density=double,
    t=double, tail=double,
)
cdef void _add_gaussians(Search search, Py_ssize_t first, Py_ssize_t last, double x) noexcept nogil
@cython.locals(k=Py_ssize_t)
cdef double _map(
    double x, const double[::1] points, const double[::1] values, Py_ssize_t begin, Py_ssize_t end
) noexcept nogil
@cython.locals(low=Py_ssize_t, high=Py_ssize_t, middle=Py_ssize_t)
cdef Py_ssize_t _segment(double x, const double[::1] points, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
