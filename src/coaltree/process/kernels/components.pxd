cimport cython
from coaltree cimport _math as math
from coaltree cimport _stop as stop

cdef Py_ssize_t P, B, UP_P, UP_B, DOWN_P, DOWN_B

cpdef contrasts(
    const Py_ssize_t[:, ::1] children, const double[::1] heights, double rate, const double[:, ::1] Z, const double[::1] noise,
    double[:, :, ::1] room, double[:, ::1] gaps, double[:, ::1] spans,
)
@cython.locals(
    n=Py_ssize_t, width=Py_ssize_t, d=Py_ssize_t, i=Py_ssize_t, k=Py_ssize_t, left=Py_ssize_t, right=Py_ssize_t, node=Py_ssize_t,
    top=double, first=double, second=double, v=double, w=double,
)
cdef int _contrasts(
    const Py_ssize_t[:, ::1] children, const double[::1] heights, double rate, const double[:, ::1] Z, const double[::1] noise,
    double[:, :, ::1] room, double[:, ::1] gaps, double[:, ::1] spans,
) except -1 nogil

cpdef send_up(
    const Py_ssize_t[:, ::1] children, const double[::1] heights, double rate, const double[:, ::1] Z, const double[::1] noise,
    double[:, :, ::1] messages,
)
@cython.locals(n=Py_ssize_t, width=Py_ssize_t, d=Py_ssize_t, i=Py_ssize_t, k=Py_ssize_t)
cdef int _send_up(
    const Py_ssize_t[:, ::1] children, const double[::1] heights, double rate, const double[:, ::1] Z, const double[::1] noise,
    double[:, :, ::1] messages,
) except -1 nogil
@cython.locals(child=Py_ssize_t, d=Py_ssize_t, survival=double, fresh=double, share=double)
cdef void _rise(
    const Py_ssize_t[:, ::1] children, const double[::1] heights, double rate, Py_ssize_t node, Py_ssize_t side,
    double[:, :, ::1] messages,
) noexcept nogil
@cython.locals(k=Py_ssize_t, left=Py_ssize_t, right=Py_ssize_t, d=Py_ssize_t)
cdef void _merge(const Py_ssize_t[:, ::1] children, Py_ssize_t node, double[:, :, ::1] messages) noexcept nogil
@cython.locals(
    k=Py_ssize_t, child=Py_ssize_t, sibling=Py_ssize_t, d=Py_ssize_t, survival=double, fresh=double, total=double, variance=double
)
cdef void _descend(
    const Py_ssize_t[:, ::1] children, const double[::1] heights, double rate, Py_ssize_t node, Py_ssize_t side,
    double[:, :, ::1] messages,
) noexcept nogil

@cython.locals(k=Py_ssize_t)
cpdef send_down(
    const Py_ssize_t[:, ::1] children, const double[::1] heights, double rate, double[:, :, ::1] messages
)
@cython.locals(d=Py_ssize_t)
cdef void _begin_at_root(const Py_ssize_t[:, ::1] children, double[:, :, ::1] messages) noexcept nogil

cpdef draw_states(
    const Py_ssize_t[:, ::1] children, const double[::1] heights, double rate, const double[:, :, ::1] messages,
    const double[:, ::1] normals, double[:, ::1] states,
)
@cython.locals(
    n=Py_ssize_t, width=Py_ssize_t, node=Py_ssize_t, d=Py_ssize_t, k=Py_ssize_t, side=Py_ssize_t, child=Py_ssize_t, survival=double,
    fresh=double, total=double, middle=double,
)
cdef int _draw_states(
    const Py_ssize_t[:, ::1] children, const double[::1] heights, double rate, const double[:, :, ::1] messages,
    const double[:, ::1] normals, double[:, ::1] states,
) except -1 nogil

cpdef draw_missing(
    const Py_ssize_t[:, ::1] children, const double[::1] heights, double rate, const double[::1] noise,
    const double[:, ::1] basis, const Py_ssize_t[::1] first, const Py_ssize_t[::1] missing, const double[::1] normals,
    double[:, :, ::1] messages, double[:, ::1] X, double[:, ::1] Z, Py_ssize_t[::1] stack, Py_ssize_t[::1] stage,
    double[:, ::1] work,
)
@cython.locals(n=Py_ssize_t, node=Py_ssize_t, depth=Py_ssize_t)
cdef int _draw_missing(
    const Py_ssize_t[:, ::1] children, const double[::1] heights, double rate, const double[::1] noise,
    const double[:, ::1] basis, const Py_ssize_t[::1] first, const Py_ssize_t[::1] missing, const double[::1] normals,
    double[:, :, ::1] messages, double[:, ::1] X, double[:, ::1] Z, Py_ssize_t[::1] stack, Py_ssize_t[::1] stage,
    double[:, ::1] work,
) except -1 nogil
@cython.locals(
    start=Py_ssize_t, count=Py_ssize_t, width=Py_ssize_t, gaps=Py_ssize_t, weights=Py_ssize_t, pull=Py_ssize_t, k=Py_ssize_t,
    i=Py_ssize_t, j=Py_ssize_t, column=Py_ssize_t, other=Py_ssize_t, z=double, variance=double, total=double,
)
cdef void _draw_row(
    Py_ssize_t row, const double[::1] noise, const double[:, ::1] basis, const Py_ssize_t[::1] first,
    const Py_ssize_t[::1] missing, const double[::1] normals, double[:, :, ::1] messages, double[:, ::1] X, double[:, ::1] Z,
    double[:, ::1] work,
) noexcept nogil
