cimport cython
from coaltree cimport _constants as const
from coaltree cimport _math as math
from coaltree cimport _stop as stop


@cython.locals(
    n=Py_ssize_t, r=Py_ssize_t, moments="double[:, ::1]", free="Py_ssize_t[::1]", slot="Py_ssize_t[::1]",
    lanes="double[:, ::1]", factor="double[:, ::1]", room=Py_ssize_t, n_free=Py_ssize_t, node=Py_ssize_t, g=Py_ssize_t, k=Py_ssize_t, a=Py_ssize_t, b=Py_ssize_t,
)
cpdef log_determinants(
    const Py_ssize_t[:, ::1] children, const double[::1] sizes, const double[:, ::1] points, const double[:, ::1] spread,
    const double[::1] scales, const double[::1] weights, double[:, ::1] out
)
@cython.locals(at=Py_ssize_t, a=Py_ssize_t)
cdef void _load_leaf(
    const double[:, ::1] points, const double[:, ::1] spread, Py_ssize_t leaf, double[:, ::1] moments, Py_ssize_t i
) noexcept nogil
@cython.locals(at=Py_ssize_t, a=Py_ssize_t, b=Py_ssize_t, share=double, product=double)
cdef void _join(
    double[:, ::1] moments, Py_ssize_t i, Py_ssize_t j, double size, double other, Py_ssize_t r
) noexcept nogil
@cython.locals(product="double[8]", total="double[8]", a=Py_ssize_t, g=Py_ssize_t, square=double, own=double, weight=double)
cdef void _set_log_determinants_of_leaf(
    const double[:, ::1] points, const double[:, ::1] spread, Py_ssize_t leaf, double[:, ::1] lanes, Py_ssize_t first,
    double[:, ::1] out
) noexcept nogil
@cython.locals(
    x="double[8]", pull="double[8]", product="double[8]", at=Py_ssize_t, row=Py_ssize_t, inverse=Py_ssize_t, a=Py_ssize_t,
    b=Py_ssize_t, c=Py_ssize_t, g=Py_ssize_t, one=Py_ssize_t, other=Py_ssize_t, scatter=double, square=double,
)
cdef void _set_log_determinants(
    double[:, ::1] moments, Py_ssize_t i, double size, Py_ssize_t r, double[:, ::1] lanes, Py_ssize_t first,
    double[:, ::1] factor, double[:, ::1] out, Py_ssize_t node
) noexcept nogil
@cython.locals(n=Py_ssize_t, n_columns=Py_ssize_t, node=Py_ssize_t, g=Py_ssize_t, apart=double)
cpdef best_sums(const Py_ssize_t[:, ::1] children, const double[:, ::1] scores, double[:, ::1] best)
@cython.locals(
    n=Py_ssize_t, node=Py_ssize_t, at=Py_ssize_t, width=Py_ssize_t, a=Py_ssize_t, b=Py_ssize_t, i=Py_ssize_t, j=Py_ssize_t,
    apart=double,
)
cpdef best_counts(
    const Py_ssize_t[:, ::1] children, const double[::1] scores, const Py_ssize_t[::1] sizes, Py_ssize_t min_size,
    const Py_ssize_t[::1] starts, double[::1] best
)
@cython.locals(n=Py_ssize_t, node=Py_ssize_t, count=Py_ssize_t, a=Py_ssize_t, b=Py_ssize_t, first=Py_ssize_t, i=Py_ssize_t)
cpdef find_clusters(
    const Py_ssize_t[:, ::1] children, const double[::1] scores, const Py_ssize_t[::1] starts, const double[::1] best,
    Py_ssize_t[::1] counts
)
@cython.locals(n=Py_ssize_t, node=Py_ssize_t, apart=double, high=double, low=double)
cpdef log_sums(const Py_ssize_t[:, ::1] children, const double[::1] scores, double[::1] totals)
@cython.locals(n=Py_ssize_t, node=Py_ssize_t)
cpdef add_downwards(const Py_ssize_t[:, ::1] children, double[::1] values)
