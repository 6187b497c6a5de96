cimport cython
from coaltree cimport _math as math
from coaltree cimport _stop as stop
from coaltree.inference.kernels cimport grid as grids
from coaltree.inference.kernels cimport history as tree
from coaltree.inference.kernels cimport regraft as regrafting
from coaltree.process.kernels cimport messages as op

cdef Py_ssize_t NONE


cdef class Particles:
    cdef readonly Py_ssize_t[:, ::1] live
    cdef readonly Py_ssize_t[::1] node
    cdef readonly Py_ssize_t[:, :, ::1] children
    cdef readonly double[:, ::1] heights
    cdef readonly double[:, ::1] log_z
    cdef readonly double[:, ::1] log_ratios
    cdef readonly double[::1] log_weights
    cdef readonly Py_ssize_t[::1] ancestor


cdef class Alarms:
    cdef readonly double[:, ::1] height
    cdef readonly Py_ssize_t[:, ::1] partner


@cython.locals(i=Py_ssize_t, j=Py_ssize_t, n=Py_ssize_t)
cdef void _join(
    op.Forest forest, Particles particles, Py_ssize_t p, Py_ssize_t k, Py_ssize_t a, Py_ssize_t b, double h, op.Pair pair
) noexcept nogil
cdef double _clock(Particles particles, Py_ssize_t p, Py_ssize_t k) noexcept nogil

@cython.locals(pair=op.Pair)
cpdef extend_prior_prior(
    op.Forest forest, Particles particles, Py_ssize_t k, double[:, ::1] uniforms, Py_ssize_t first, Py_ssize_t last
)
@cython.locals(p=Py_ssize_t, a=Py_ssize_t, b=Py_ssize_t, n_live=Py_ssize_t)
cdef int _extend_prior_prior(
    op.Forest forest, Particles particles, Py_ssize_t k, double[:, ::1] uniforms, Py_ssize_t first, Py_ssize_t last,
    op.Pair pair,
) except -1 nogil

@cython.locals(pair=op.Pair, grid=grids.Grid, rows=double[::1])
cpdef extend_by_likelihood(
    op.Forest forest, Particles particles, Py_ssize_t k, double[:, ::1] uniforms, bint time_first, Py_ssize_t first,
    Py_ssize_t last,
)
@cython.locals(p=Py_ssize_t, a=Py_ssize_t, b=Py_ssize_t, n_live=Py_ssize_t, h=double, total=double)
cdef int _extend_by_likelihood(
    op.Forest forest, Particles particles, Py_ssize_t k, double[:, ::1] uniforms, bint time_first, Py_ssize_t first,
    Py_ssize_t last, op.Pair pair, grids.Grid grid, double[::1] rows,
) except -1 nogil
cdef double _score(
    op.Forest forest, Py_ssize_t i, Py_ssize_t j, double c, double clock, double h, op.Pair pair, grids.Grid grid
) noexcept nogil
cdef double _add_logs(double x, double y) noexcept nogil
@cython.locals(
    a=Py_ssize_t, b=Py_ssize_t, chosen=Py_ssize_t, partner=Py_ssize_t, total=double, row=double, left=double, share=double
)
cdef (Py_ssize_t, Py_ssize_t, double) _choose_pair(
    op.Forest forest, Particles particles, Py_ssize_t p, Py_ssize_t n_live, double c, double clock, double h, op.Pair pair,
    grids.Grid grid, double[::1] rows, double u_row, double u_partner,
) except * nogil

cdef Py_ssize_t _alarm_of(Py_ssize_t i, Py_ssize_t j) noexcept nogil
cdef double _lay_pair_grid(
    op.Forest forest, Py_ssize_t i, Py_ssize_t j, op.Pair pair, grids.Grid grid
) noexcept nogil
cdef void _set_alarm(Alarms alarms, Py_ssize_t p, Py_ssize_t i, Py_ssize_t j, double h) noexcept nogil
cdef void _note_if_first(Alarms alarms, Py_ssize_t p, Py_ssize_t i, Py_ssize_t j, double h) noexcept nogil
@cython.locals(pair=op.Pair, grid=grids.Grid)
cpdef set_first_alarms(
    op.Forest forest, Particles particles, Alarms alarms, Py_ssize_t i, double[:, :, ::1] uniforms, Py_ssize_t first,
    Py_ssize_t last,
)
@cython.locals(p=Py_ssize_t, j=Py_ssize_t, n=Py_ssize_t, h=double)
cdef int _set_first_alarms(
    op.Forest forest, Particles particles, Alarms alarms, Py_ssize_t i, double[:, :, ::1] uniforms, Py_ssize_t first,
    Py_ssize_t last, op.Pair pair, grids.Grid grid,
) except -1 nogil

@cython.locals(pair=op.Pair, grid=grids.Grid)
cpdef extend_race(
    op.Forest forest, Particles particles, Alarms alarms, Py_ssize_t k, double[:, :, ::1] uniforms, Py_ssize_t first,
    Py_ssize_t last,
)
@cython.locals(
    p=Py_ssize_t, n=Py_ssize_t, n_live=Py_ssize_t, first_slot=Py_ssize_t, a=Py_ssize_t, b=Py_ssize_t, place=Py_ssize_t,
    i=Py_ssize_t, j=Py_ssize_t, h=double, integral=double, log_weight=double,
)
cdef int _extend_race(
    op.Forest forest, Particles particles, Alarms alarms, Py_ssize_t k, double[:, :, ::1] uniforms, Py_ssize_t first,
    Py_ssize_t last, op.Pair pair, grids.Grid grid,
) except -1 nogil
@cython.locals(place=Py_ssize_t, a=Py_ssize_t, i=Py_ssize_t, best=double)
cdef Py_ssize_t _first_to_ring(
    Particles particles, Alarms alarms, Py_ssize_t p, Py_ssize_t n_live, Py_ssize_t first_slot
) noexcept nogil
cdef double _log_silence(
    op.Forest forest, Py_ssize_t i, Py_ssize_t j, double h, op.Pair pair, grids.Grid grid
) noexcept nogil
@cython.locals(place=Py_ssize_t, i=Py_ssize_t, first_slot=Py_ssize_t, h=double)
cdef void _renew_alarms(
    op.Forest forest, Particles particles, Alarms alarms, Py_ssize_t p, Py_ssize_t n_live, Py_ssize_t new, Py_ssize_t dead,
    double[:, :, ::1] uniforms, op.Pair pair, grids.Grid grid,
) noexcept nogil
@cython.locals(place=Py_ssize_t, j=Py_ssize_t, partner=Py_ssize_t)
cdef void _find_first_alarm(
    Particles particles, Alarms alarms, Py_ssize_t p, Py_ssize_t n_live, Py_ssize_t first_slot, Py_ssize_t i, Py_ssize_t new
) noexcept nogil

cpdef copy_particles(
    op.Forest forest, Particles particles, Alarms alarms, Py_ssize_t k, Py_ssize_t[::1] sources, Py_ssize_t[::1] targets
)
@cython.locals(
    n=Py_ssize_t, shift=Py_ssize_t, place=Py_ssize_t, other=Py_ssize_t, slot=Py_ssize_t, merge=Py_ssize_t, pair=Py_ssize_t
)
cdef void _copy_particle(
    op.Forest forest, Particles particles, Alarms alarms, Py_ssize_t k, Py_ssize_t source, Py_ssize_t target
) noexcept nogil
@cython.locals(at=Py_ssize_t[::1], number=Py_ssize_t[::1], p=Py_ssize_t)
cpdef regraft_particles(
    op.Forest work, tree.History history, regrafting.BranchSegments segments, op.Forest forest, Py_ssize_t bank,
    Particles particles, Py_ssize_t k, double[:, :, ::1] uniforms, Py_ssize_t first, Py_ssize_t last,
)
@cython.locals(n=Py_ssize_t, b=Py_ssize_t, j=Py_ssize_t, side=Py_ssize_t, child=Py_ssize_t)
cdef void _load(
    op.Forest work, tree.History history, op.Pair pair, Particles particles, Py_ssize_t p, Py_ssize_t k
) noexcept nogil
@cython.locals(
    n=Py_ssize_t, m=Py_ssize_t, s=Py_ssize_t, top=Py_ssize_t, moved=bint, moved_at_all=bint, _=double
)
cdef bint _move_within(
    op.Forest work, tree.History history, regrafting.BranchSegments segments, Py_ssize_t p, Py_ssize_t k,
    double[:, :, ::1] uniforms,
) except -1 nogil
@cython.locals(j=Py_ssize_t, node=Py_ssize_t, place=Py_ssize_t)
cdef void _put_in_order(op.Forest work, tree.History history, Py_ssize_t k) noexcept nogil
@cython.locals(
    n=Py_ssize_t, leaf=Py_ssize_t, j=Py_ssize_t, node=Py_ssize_t, a=Py_ssize_t, b=Py_ssize_t, i=Py_ssize_t, other=Py_ssize_t,
    place=Py_ssize_t, slot=Py_ssize_t,
)
cdef void _climb(
    op.Forest forest, tree.History history, op.Forest work, op.Pair pair, Particles particles, Py_ssize_t p, Py_ssize_t k,
    Py_ssize_t bank, Py_ssize_t[::1] number, Py_ssize_t[::1] at,
) noexcept nogil
