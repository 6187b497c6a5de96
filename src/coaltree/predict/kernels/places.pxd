cimport cython
from coaltree cimport _constants as const
from coaltree cimport _math as math
from coaltree cimport _stop as stop
from coaltree.predict.kernels cimport mixtures as mix

cdef double BINS_A_NAT
cdef Py_ssize_t BINS, TOGETHER, PLACES
cdef double LEAST_SHARE


cdef class Stretches:
    cdef readonly double[::1] begin
    cdef readonly double[::1] end
    cdef readonly double[::1] density
    cdef readonly double[::1] left_begin
    cdef readonly double[::1] left_end
    cdef readonly double[::1] left_density


cdef class Conditional:
    cdef readonly Py_ssize_t[::1] holes
    cdef readonly double[:, :, ::1] lower
    cdef readonly double[:, :, ::1] inverse
    cdef readonly double[:, :, ::1] directions
    cdef readonly double[:, ::1] roots
    cdef readonly double[:, ::1] variances
    cdef readonly double[:, ::1] gaps
    cdef readonly double[:, ::1] shifts
    cdef readonly double[::1] constants
    cdef readonly double[::1] squares


@cython.locals(n_chosen=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t)
cpdef add_logs(
    const Py_ssize_t[::1] chosen, const Py_ssize_t[::1] slots, const Py_ssize_t[::1] pair_rows,
    const Py_ssize_t[::1] systems, const double[:, :, ::1] x, const unsigned char[:, :, ::1] known,
    const Py_ssize_t[:, ::1] states, const double[:, ::1] slopes, const double[:, ::1] masses,
    const double[:, ::1] whole_masses,
    const double[:, :, ::1] means,
    const double[:, :, ::1] halves, const double[:, :, ::1] constants, const double[:, :, ::1] log_probabilities,
    double least, double[:, ::1] logs,
)
@cython.locals(
    n_chosen=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t, k=Py_ssize_t, p=Py_ssize_t, row=Py_ssize_t, logs=double[:, ::1]
)
cpdef sum_logs(
    const Py_ssize_t[::1] chosen, const Py_ssize_t[::1] slots, const Py_ssize_t[::1] pair_rows,
    const Py_ssize_t[::1] systems, const double[:, :, ::1] x, const unsigned char[:, :, ::1] known,
    const Py_ssize_t[:, ::1] states, const double[:, ::1] slopes, const double[:, ::1] masses,
    const double[:, ::1] whole_masses,
    const double[:, :, ::1] means,
    const double[:, :, ::1] halves, const double[:, :, ::1] constants, const double[:, :, ::1] log_probabilities,
    double least, double far, double[::1] row_tops, double[::1] tops, double[::1] sums,
)
@cython.locals(last=Py_ssize_t)
cdef Py_ssize_t _end_of_run(const Py_ssize_t[::1] slots, Py_ssize_t first) noexcept nogil
@cython.locals(
    n=Py_ssize_t, size=Py_ssize_t, k=Py_ssize_t, p=Py_ssize_t, slot=Py_ssize_t, s=Py_ssize_t, row=Py_ssize_t,
    i=Py_ssize_t, d=Py_ssize_t, c=Py_ssize_t, step=Py_ssize_t, state=Py_ssize_t, x0=double, x1=double, x2=double,
    x3=double, slope=double, gap0=double, gap1=double, gap2=double, gap3=double,
)
cdef void _fill_run(
    const Py_ssize_t[::1] chosen, const Py_ssize_t[::1] slots, const Py_ssize_t[::1] pair_rows,
    const Py_ssize_t[::1] systems, const double[:, :, ::1] x, const unsigned char[:, :, ::1] known,
    const Py_ssize_t[:, ::1] states, const double[:, ::1] slopes, const double[:, ::1] masses,
    const double[:, ::1] whole_masses,
    const double[:, :, ::1] means,
    const double[:, :, ::1] halves, const double[:, :, ::1] constants, const double[:, :, ::1] log_probabilities,
    double least, double[:, ::1] logs, Py_ssize_t first, Py_ssize_t last, bint apart,
) noexcept nogil
@cython.locals(d=Py_ssize_t, count=Py_ssize_t)
cdef bint _is_whole(const unsigned char[:, :, ::1] known, Py_ssize_t s, Py_ssize_t row) noexcept nogil
@cython.locals(p=Py_ssize_t)
cpdef find_tops(const double[:, ::1] logs, double[::1] tops)
@cython.locals(n=Py_ssize_t, i=Py_ssize_t, a=double, b=double, c=double, d=double)
cdef double _top(const double[:, ::1] logs, Py_ssize_t p) noexcept nogil
@cython.locals(p=Py_ssize_t, i=Py_ssize_t)
cpdef put_exps(
    double[:, ::1] logs, const double[::1] row_tops, double far, const double[::1] tops,
    double[::1] sums,
)
@cython.locals(
    n=Py_ssize_t, i=Py_ssize_t, below=double, x=double, rounded=double, k=double, r=double, q=double, value=double,
    a=double, b=double, c=double, d=double,
)
cdef double _put_exps(double[:, ::1] logs, Py_ssize_t p, double top) noexcept nogil
@cython.locals(row=Py_ssize_t, j=Py_ssize_t, k=Py_ssize_t, value=double)
cpdef whiten(const double[:, ::1] x, const double[:, ::1] basis, const double[::1] origin, double[:, ::1] out)
@cython.locals(
    conditional=Conditional, n=Py_ssize_t, n_chosen=Py_ssize_t, size=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t,
    slot=Py_ssize_t, count=Py_ssize_t, start=Py_ssize_t, width=Py_ssize_t, i=Py_ssize_t, k=Py_ssize_t, p=Py_ssize_t,
    value=double,
)
cpdef add_partial_logs(
    const Py_ssize_t[::1] chosen, const Py_ssize_t[::1] slots, const Py_ssize_t[::1] pair_rows, const double[:, ::1] x,
    const Py_ssize_t[::1] patterns, const unsigned char[:, ::1] missing, const Py_ssize_t[::1] real,
    const double[:, ::1] basis, const double[:, :, ::1] means, const double[:, :, ::1] halves,
    const double[:, :, ::1] constants, double least, double[:, ::1] logs,
)
@cython.locals(
    conditional=Conditional, n=Py_ssize_t, n_chosen=Py_ssize_t, size=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t,
    slot=Py_ssize_t, count=Py_ssize_t, start=Py_ssize_t, width=Py_ssize_t, i=Py_ssize_t, k=Py_ssize_t, p=Py_ssize_t,
    row=Py_ssize_t, a=Py_ssize_t, d=Py_ssize_t, ready=bint, more=double, center=double, squares=double, gap=double,
    before=double, collects=bint, cell=Py_ssize_t,
)
cpdef add_partial_moments(
    const Py_ssize_t[::1] chosen, const Py_ssize_t[::1] slots, const Py_ssize_t[::1] pair_rows,
    const double[:, ::1] shares, const double[:, ::1] x, const Py_ssize_t[::1] patterns,
    const unsigned char[:, ::1] missing, const Py_ssize_t[::1] real, const double[:, ::1] basis, const double[::1] fill,
    const double[:, :, ::1] means, const double[:, :, ::1] halves, mix.Table table, double least, Py_ssize_t scored,
    double[:, ::1] weight, double[:, ::1] mean, double[:, ::1] square,
)
@cython.locals(last=Py_ssize_t, pattern=Py_ssize_t)
cdef Py_ssize_t _end_of_pattern(
    const Py_ssize_t[::1] chosen, const Py_ssize_t[::1] slots, const Py_ssize_t[::1] pair_rows,
    const Py_ssize_t[::1] patterns, Py_ssize_t first,
) noexcept nogil
@cython.locals(count=Py_ssize_t, k=Py_ssize_t)
cdef Py_ssize_t _find_holes(
    Conditional conditional, const unsigned char[:, ::1] missing, Py_ssize_t pattern, const Py_ssize_t[::1] real
) noexcept nogil
@cython.locals(size=Py_ssize_t, i=Py_ssize_t, k=Py_ssize_t, a=Py_ssize_t, b=Py_ssize_t, value=double)
cdef void _condition(
    Conditional conditional, Py_ssize_t count, const double[:, ::1] basis, const double[:, :, ::1] halves, Py_ssize_t slot,
    Py_ssize_t start, Py_ssize_t width, const Py_ssize_t[::1] real,
) noexcept nogil
@cython.locals(i=Py_ssize_t, k=Py_ssize_t, a=Py_ssize_t, b=Py_ssize_t)
cdef void _find_variances(Conditional conditional, Py_ssize_t count, Py_ssize_t width) noexcept nogil
@cython.locals(size=Py_ssize_t, i=Py_ssize_t, k=Py_ssize_t, a=Py_ssize_t, value=double)
cdef void _solve(
    Conditional conditional, Py_ssize_t count, const double[:, ::1] x, Py_ssize_t row, const double[:, :, ::1] means,
    Py_ssize_t slot, Py_ssize_t start, Py_ssize_t width, const Py_ssize_t[::1] real,
) noexcept nogil
@cython.locals(i=Py_ssize_t, a=Py_ssize_t, b=Py_ssize_t)
cdef void _find_shifts(Conditional conditional, Py_ssize_t count, Py_ssize_t width) noexcept nogil
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
    s=Py_ssize_t, begin=Py_ssize_t, end=Py_ssize_t, row=Py_ssize_t, g=Py_ssize_t, d=Py_ssize_t, state=Py_ssize_t,
    value=double, sd=double, log_sd=double, other=double, z=double, gaps=double[::1], densities=double[::1],
)
cpdef bound_groups(
    const Py_ssize_t[::1] first_groups, const double[:, :, ::1] x, const unsigned char[:, :, ::1] observed,
    const Py_ssize_t[:, ::1] states, const double[::1] log_mass, const double[:, ::1] low, const double[:, ::1] high,
    const double[:, ::1] least_sd, const double[:, ::1] largest_sd, const double[:, ::1] least_log_sd,
    const double[:, ::1] largest_log_sd, const double[:, ::1] floor, const double[:, ::1] largest, double least,
    double[:, ::1] out,
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
    double[::1] sums, double[:, ::1] summary,
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
    const Py_ssize_t[::1] size, const double[::1] node_heights, const Py_ssize_t[::1] first_leaf,
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
