cimport cython
from coaltree cimport _constants as const
from coaltree cimport _math as math

cdef double BINS_A_NAT
cdef Py_ssize_t BINS, TOGETHER


cdef class Stretches:
    cdef readonly double[::1] begin
    cdef readonly double[::1] end
    cdef readonly double[::1] density
    cdef readonly double[::1] left_begin
    cdef readonly double[::1] left_end
    cdef readonly double[::1] left_density


@cython.locals(
    n=Py_ssize_t, n_chosen=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t, k=Py_ssize_t, p=Py_ssize_t, slot=Py_ssize_t,
    i=Py_ssize_t, d=Py_ssize_t, state=Py_ssize_t, value=double, gap=double,
)
cpdef add_logs(
    const Py_ssize_t[::1] chosen, const Py_ssize_t[::1] slots, const Py_ssize_t[::1] pair_rows,
    const double[:, ::1] x, const unsigned char[:, ::1] observed, const Py_ssize_t[:, ::1] states,
    const double[:, ::1] masses, const double[:, :, ::1] means, const double[:, :, ::1] halves,
    const double[:, :, ::1] constants, const double[:, :, ::1] log_probabilities, double least, double[:, ::1] logs,
)
@cython.locals(
    n=Py_ssize_t, slot=Py_ssize_t, g=Py_ssize_t, i=Py_ssize_t, d=Py_ssize_t, s=Py_ssize_t, top=double, total=double,
    half=double, least_half=double, largest_half=double, least_mean=double, largest_mean=double,
)
cpdef summarise(
    const double[:, ::1] masses, const double[:, :, ::1] means, const double[:, :, ::1] halves,
    const double[:, :, ::1] log_probabilities, double[::1] log_mass, double[:, ::1] low, double[:, ::1] high,
    double[:, ::1] least_sd, double[:, ::1] largest_sd, double[:, ::1] least_log_sd, double[:, ::1] largest_log_sd,
    double[:, ::1] floor, double[:, ::1] largest, Py_ssize_t first,
)
@cython.locals(
    n=Py_ssize_t, row=Py_ssize_t, g=Py_ssize_t, d=Py_ssize_t, state=Py_ssize_t, value=double, sd=double,
    log_sd=double, other=double, z=double, gaps=double[::1], densities=double[::1],
)
cpdef bound_groups(
    const double[:, ::1] x, const unsigned char[:, ::1] observed, const Py_ssize_t[:, ::1] states,
    const double[::1] log_mass, const double[:, ::1] low, const double[:, ::1] high, const double[:, ::1] least_sd,
    const double[:, ::1] largest_sd, const double[:, ::1] least_log_sd, const double[:, ::1] largest_log_sd,
    const double[:, ::1] floor, const double[:, ::1] largest, double least, double[:, ::1] out,
)
@cython.locals(
    sums=double[::1], n=Py_ssize_t, row=Py_ssize_t, i=Py_ssize_t, g=Py_ssize_t, last=Py_ssize_t, cut=double, total=double
)
cpdef find_needed(
    const double[:, ::1] bounds, const double[::1] log_totals, double log_neglected, unsigned char[:, ::1] needed
)
cdef Py_ssize_t _bin(double below) noexcept nogil
@cython.locals(
    width=Py_ssize_t, k=Py_ssize_t, p=Py_ssize_t, slot=Py_ssize_t, row=Py_ssize_t, i=Py_ssize_t, d=Py_ssize_t, s=Py_ssize_t,
    more=double, before=double, center=double, squares=double, missing=double, gap=double, half=double, apart=double,
    total=double,
)
cpdef add_moments(
    const Py_ssize_t[::1] chosen, const Py_ssize_t[::1] slots, const Py_ssize_t[::1] pair_rows,
    const double[:, ::1] shares, const double[:, :, ::1] means, const double[:, :, ::1] halves,
    const double[:, :, ::1] probabilities, double[::1] weight, double[:, ::1] mean, double[:, ::1] square,
    double[:, ::1] unknown, double[:, ::1] probability,
)
@cython.locals(
    stretches=Stretches, most_pairs=Py_ssize_t, row=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t, n=Py_ssize_t,
    p=Py_ssize_t, start=Py_ssize_t, at=Py_ssize_t, best=Py_ssize_t, branch=Py_ssize_t, k=Py_ssize_t, mean=double,
    share=double, length=double, most=double,
)
cpdef attach(
    const Py_ssize_t[::1] first_pairs, const Py_ssize_t[::1] groups, const double[:, ::1] shares,
    const Py_ssize_t[::1] starts, const Py_ssize_t[::1] stops, const Py_ssize_t[::1] branches,
    const double[::1] heights, const double[::1] low, const double[::1] high, double shortest, const double[::1] tails,
    double[::1] sums, double[:, ::1] found,
)
@cython.locals(
    k=Py_ssize_t, middle=Py_ssize_t, left=Py_ssize_t, low=double, high=double, below=double, slope=double, edge=double,
    mass=double, inside=double, begin=double, end=double, density=double,
)
cdef double _quantile(Stretches stretches, Py_ssize_t n, double tail) noexcept nogil
@cython.locals(
    n=Py_ssize_t, p=Py_ssize_t, start=Py_ssize_t, at=Py_ssize_t, i=Py_ssize_t, k=Py_ssize_t, left=Py_ssize_t,
    right=Py_ssize_t, step=Py_ssize_t, share=double,
)
cpdef add_merge_heights(
    const Py_ssize_t[::1] groups, const double[:, ::1] shares, const Py_ssize_t[::1] starts,
    const Py_ssize_t[::1] stops, const Py_ssize_t[::1] ranks, const double[::1] heights, const Py_ssize_t[::1] parent,
    const Py_ssize_t[::1] size, const double[::1] own_heights, const Py_ssize_t[::1] first_leaf,
    const Py_ssize_t[::1] leaf_order, double[:, ::1] scratch, double[::1] out,
)
@cython.locals(i=Py_ssize_t, left=Py_ssize_t)
cpdef find_clusters(
    const Py_ssize_t[::1] labels, const Py_ssize_t[::1] size, const Py_ssize_t[::1] first_leaf,
    const Py_ssize_t[::1] leaf_order, Py_ssize_t[::1] clusters,
)
@cython.locals(
    row=Py_ssize_t, p=Py_ssize_t, start=Py_ssize_t, at=Py_ssize_t, i=Py_ssize_t, k=Py_ssize_t, child=Py_ssize_t,
    _=Py_ssize_t, share=double,
)
cpdef add_to_clusters(
    const Py_ssize_t[::1] first_pairs, const Py_ssize_t[::1] groups, const double[:, ::1] shares,
    Py_ssize_t first_group, Py_ssize_t last_group, const Py_ssize_t[::1] starts, const Py_ssize_t[::1] stops,
    const Py_ssize_t[::1] ranks, const Py_ssize_t[::1] size, const Py_ssize_t[::1] clusters,
    const Py_ssize_t[::1] mixed, double[::1] scratch, double[:, ::1] out,
)
