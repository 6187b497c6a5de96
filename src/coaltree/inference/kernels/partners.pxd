cimport cython
from coaltree cimport _constants as const
from coaltree cimport _math as math
from coaltree cimport _stop as stop
from coaltree.inference.kernels cimport heights as pairs
from coaltree.inference.kernels cimport sketch as sketches
from coaltree.inference.kernels cimport space as points
from coaltree.process.kernels cimport messages as op

cdef Py_ssize_t NONE, STALE, LARGEST_BLOCK, SKETCHED_BLOCK, SEARCH_COST, MOST_PIECES


cdef class Partners:
    cdef readonly Py_ssize_t[::1] node
    cdef readonly unsigned char[::1] live
    cdef readonly double[:, ::1] keys
    cdef readonly Py_ssize_t[:, ::1] slots
    cdef readonly Py_ssize_t[::1] place
    cdef readonly Py_ssize_t[::1] winner
    cdef readonly Py_ssize_t[::1] new_slot
    cdef public Py_ssize_t used, n_live, size
    cdef readonly points.Space space
    cdef readonly sketches.Sketch sketch


cdef class Scratch:
    cdef readonly op.Pair pair
    cdef readonly points.Search search
    cdef readonly sketches.Glance glance
    cdef readonly double[::1] key
    cdef readonly unsigned char[::1] unsettled
    cdef readonly unsigned char[::1] rises
    cdef readonly double[::1] shift
    cdef readonly double[::1] slope
    cdef readonly double[::1] top


@cython.locals(worst=Py_ssize_t, first=Py_ssize_t, size=Py_ssize_t, last=Py_ssize_t, j=Py_ssize_t)
cdef void _scan_slots(op.Forest forest, Partners partners, Py_ssize_t i, Scratch scratch) noexcept nogil
@cython.locals(n=Py_ssize_t, left=Py_ssize_t, k=Py_ssize_t, pieces=Py_ssize_t, _=Py_ssize_t, at_floor=Py_ssize_t)
cdef void _find_keys(
    op.Forest forest, Partners partners, Py_ssize_t i, Py_ssize_t first, Py_ssize_t last, Scratch scratch
) noexcept nogil
@cython.locals(limit=double, _=Py_ssize_t, k=Py_ssize_t)
cdef Py_ssize_t _search_sketched(
    op.Forest forest, sketches.Sketch sketch, Py_ssize_t i, Py_ssize_t first, Py_ssize_t n, Py_ssize_t left,
    double above_floor, Scratch scratch,
) noexcept nogil
@cython.locals(k=Py_ssize_t, left=Py_ssize_t)
cdef Py_ssize_t _settle_sketched(
    op.Forest forest, sketches.Sketch sketch, Py_ssize_t i, Py_ssize_t first, Py_ssize_t n, double limit, Scratch scratch
) noexcept nogil
@cython.locals(k=Py_ssize_t, piece=Py_ssize_t, left=Py_ssize_t, low=double, high=double, fast=bint)
cdef Py_ssize_t _settle_rising(
    op.Forest forest, Py_ssize_t i, Py_ssize_t first, Py_ssize_t n, Py_ssize_t pieces, double limit, Scratch scratch
) noexcept nogil
@cython.locals(q=Py_ssize_t, key=double)
cdef void _find_key(op.Forest forest, Py_ssize_t i, Py_ssize_t first, Py_ssize_t k, Scratch scratch) noexcept nogil
@cython.locals(best=Py_ssize_t, k=Py_ssize_t)
cdef Py_ssize_t _least_unsettled(Scratch scratch, Py_ssize_t n) noexcept nogil

@cython.locals(i=Py_ssize_t)
cpdef enter_all(op.Forest forest, Partners partners, Scratch scratch)
cpdef find_partners(op.Forest forest, Partners partners, Py_ssize_t[::1] which, Scratch scratch)
@cython.locals(n=Py_ssize_t, at_once=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t, t=Py_ssize_t)
cdef int _find_partners(op.Forest forest, Partners partners, Py_ssize_t[::1] which, Scratch scratch) except -1 nogil
@cython.locals(k=Py_ssize_t)
cdef void _find_list(op.Forest forest, Partners partners, Py_ssize_t i, Scratch scratch) noexcept nogil
@cython.locals(t=Py_ssize_t, i=Py_ssize_t, k=Py_ssize_t)
cdef void _find_lists_in_space(op.Forest forest, Partners partners, Scratch scratch) noexcept nogil
cdef void _close_list(Partners partners, Py_ssize_t i) noexcept nogil

@cython.locals(place_a=Py_ssize_t, place_b=Py_ssize_t, slot_a=Py_ssize_t, slot_b=Py_ssize_t)
cdef bint _beats(Partners partners, Py_ssize_t a, Py_ssize_t b) noexcept nogil
@cython.locals(
    size=Py_ssize_t, last=Py_ssize_t, leaf=Py_ssize_t, game=Py_ssize_t, a=Py_ssize_t, b=Py_ssize_t
)
cpdef void start_tournament(Partners partners) noexcept nogil
@cython.locals(game=Py_ssize_t, a=Py_ssize_t, b=Py_ssize_t)
cdef void _replay_games(Partners partners, Py_ssize_t slot) noexcept nogil
@cython.locals(i=Py_ssize_t, j=Py_ssize_t)
cdef Py_ssize_t _most_recent(op.Forest forest, Partners partners, Scratch scratch) noexcept nogil

cpdef rate1_merges(
    op.Forest forest, Partners partners, Py_ssize_t first, Py_ssize_t last, Py_ssize_t[:, ::1] children, double[::1] heights,
    Scratch scratch,
)
@cython.locals(n=Py_ssize_t, k=Py_ssize_t, i=Py_ssize_t, older=Py_ssize_t, node=Py_ssize_t, h=double)
cdef int _rate1_merges(
    op.Forest forest, Partners partners, Py_ssize_t first, Py_ssize_t last, Py_ssize_t[:, ::1] children, double[::1] heights,
    Scratch scratch,
) except -1 nogil
@cython.locals(new=Py_ssize_t, k=Py_ssize_t)
cdef void _replace_pair(
    op.Forest forest, Partners partners, Py_ssize_t i, Py_ssize_t j, Py_ssize_t node, Scratch scratch
) noexcept nogil
@cython.locals(used=Py_ssize_t, target=Py_ssize_t, i=Py_ssize_t, k=Py_ssize_t)
cdef void _close_up(op.Forest forest, Partners partners, Scratch scratch) noexcept nogil
@cython.locals(end=Py_ssize_t, count=Py_ssize_t, k=Py_ssize_t, j=Py_ssize_t)
cdef void _move_list(Partners partners, Py_ssize_t i, Py_ssize_t target) noexcept nogil

@cython.locals(pair=op.Pair)
cpdef all_pairs_merges(
    op.Forest forest, bint by_probability, Py_ssize_t[::1] node, Py_ssize_t first, Py_ssize_t last,
    Py_ssize_t[:, ::1] children, double[::1] heights,
)
@cython.locals(
    n=Py_ssize_t, k=Py_ssize_t, live=Py_ssize_t, i=Py_ssize_t, j=Py_ssize_t, best_i=Py_ssize_t, best_j=Py_ssize_t,
    target=Py_ssize_t, source=Py_ssize_t, clock=double, best_h=double, best_score=double, h=double, score=double,
)
cdef int _all_pairs_merges(
    op.Forest forest, bint by_probability, Py_ssize_t[::1] node, Py_ssize_t first, Py_ssize_t last,
    Py_ssize_t[:, ::1] children, double[::1] heights, op.Pair pair,
) except -1 nogil
