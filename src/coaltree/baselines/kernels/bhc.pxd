cimport cython
from coaltree cimport _math as math
from coaltree cimport _stop as stop


cdef class Clusters:
    cdef readonly Py_ssize_t n, d, n_states, room, gram, few
    cdef readonly Py_ssize_t[::1] size
    cdef readonly double[::1] weight
    cdef readonly double[:, ::1] mean
    cdef readonly double[:, :, ::1] scatter
    cdef readonly double[:, :, ::1] root
    cdef readonly double[:, :, ::1] factor
    cdef readonly double[::1] log_det
    cdef readonly Py_ssize_t[:, ::1] counts
    cdef readonly double[::1] by_size
    cdef readonly double[:, ::1] by_count
    cdef readonly double kappa, nu
    cdef readonly Py_ssize_t n_live
    cdef readonly Py_ssize_t[::1] live
    cdef readonly Py_ssize_t[::1] node
    cdef readonly double[::1] best
    cdef readonly Py_ssize_t[::1] partner


@cython.locals(k=Py_ssize_t, i=Py_ssize_t, j=Py_ssize_t, log_det=double, pivot=double, entry=double)
cdef double _cholesky(Clusters clusters, Py_ssize_t slot, Py_ssize_t d) noexcept nogil
@cython.locals(
    d=Py_ssize_t, n_i=Py_ssize_t, n_j=Py_ssize_t, n=Py_ssize_t, p=Py_ssize_t, q=Py_ssize_t, between=double, shrunk=double,
    gap=double, middle=double,
)
cdef void _posterior_scale(Clusters clusters, Py_ssize_t i, Py_ssize_t j, Py_ssize_t into) noexcept nogil
@cython.locals(p=Py_ssize_t, gap_gap=double, gap_sum=double, sum_sum=double)
cdef double _log_det_of_two_rows(Clusters clusters, Py_ssize_t i, Py_ssize_t j) noexcept nogil
@cython.locals(
    d=Py_ssize_t, room=Py_ssize_t, gram=Py_ssize_t, n=Py_ssize_t, p=Py_ssize_t, q=Py_ssize_t, r=Py_ssize_t, s=Py_ssize_t,
    kappa=double, share=double, weight=double, entry=double, product=double,
)
cdef double _log_det_with_few(Clusters clusters, Py_ssize_t i, Py_ssize_t j) noexcept nogil
@cython.locals(
    i=Py_ssize_t, j=Py_ssize_t, large=Py_ssize_t, small=Py_ssize_t, n=Py_ssize_t, s=Py_ssize_t, log_det=double,
    together=double,
)
cdef double _log_odds(Clusters clusters, Py_ssize_t one, Py_ssize_t other) noexcept nogil
@cython.locals(
    d=Py_ssize_t, n_i=Py_ssize_t, n_j=Py_ssize_t, n=Py_ssize_t, p=Py_ssize_t, q=Py_ssize_t, r=Py_ssize_t, s=Py_ssize_t,
    between=double, inside=double, apart=double,
)
cdef void _merge(Clusters clusters, Py_ssize_t i, Py_ssize_t j, double odds) noexcept nogil
@cython.locals(best=Py_ssize_t, k=Py_ssize_t)
cdef Py_ssize_t _best_slot(Clusters clusters) noexcept nogil
@cython.locals(k=Py_ssize_t, j=Py_ssize_t, pair=double)
cdef void _look_again(Clusters clusters, Py_ssize_t i) noexcept nogil
@cython.locals(k=Py_ssize_t, n_live=Py_ssize_t)
cdef void _remove(Clusters clusters, Py_ssize_t slot) noexcept nogil
@cython.locals(i=Py_ssize_t, j=Py_ssize_t, k=Py_ssize_t, a=Py_ssize_t, b=Py_ssize_t, pair=double)
cpdef agglomerate(Clusters clusters, Py_ssize_t[:, ::1] merges, double[::1] odds)
@cython.locals(k=Py_ssize_t, i=Py_ssize_t, pair=double)
cdef void _find_new_partners(Clusters clusters, Py_ssize_t a, Py_ssize_t b) noexcept nogil
