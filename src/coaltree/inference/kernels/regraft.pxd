cimport cython
from coaltree cimport _math as math
from coaltree.inference.kernels cimport history as tree
from coaltree.process.kernels cimport messages as op

cdef Py_ssize_t NONE, SPLITS, STEM_SEGMENTS, CLIMBS
cdef double STRAIGHT, LIGHT, TINY, DEEPEST, TAIL, GOLDEN, WORTH_CLIMBING


cdef class BranchSegments:
    cdef public Py_ssize_t count
    cdef readonly Py_ssize_t[::1] node
    cdef readonly Py_ssize_t[::1] above
    cdef readonly double[:, ::1] edge
    cdef readonly double[:, ::1] log_f
    cdef readonly double[:, ::1] log_mass
    cdef readonly double[::1] need
    cdef readonly Py_ssize_t[::1] seen
    cdef readonly Py_ssize_t[::1] stack
    cdef readonly Py_ssize_t[::1] stack_segment
    cdef readonly op.Pair pair
    cdef readonly op.Place place
    cdef public Py_ssize_t loaded
    cdef public double lineages_below, lowest, parent_height, tail_from, log_tail


@cython.locals(at_root=bint)
cdef double log_f_at(
    op.Forest forest, tree.History history, BranchSegments segments, Py_ssize_t s, Py_ssize_t b, double h
) noexcept nogil
cdef void _set_segment(
    BranchSegments segments, Py_ssize_t c, Py_ssize_t b, Py_ssize_t above, double low, double high
) noexcept nogil
@cython.locals(c=Py_ssize_t, steps=Py_ssize_t, root=Py_ssize_t, grown=double, share=double)
cdef void _lay_stem(op.Forest forest, tree.History history, BranchSegments segments, Py_ssize_t s) noexcept nogil
@cython.locals(
    n=Py_ssize_t, waiting=Py_ssize_t, before=Py_ssize_t, count=Py_ssize_t, node=Py_ssize_t, above=Py_ssize_t, side=Py_ssize_t,
    child=Py_ssize_t, c=Py_ssize_t, k=Py_ssize_t, peak=double,
)
cdef double _lay_branches(
    op.Forest forest, tree.History history, BranchSegments segments, Py_ssize_t s, Py_ssize_t top, double ceiling,
    double valley,
) noexcept nogil
@cython.locals(b=Py_ssize_t, above=Py_ssize_t, low=double, middle=double, high=double)
cdef double _evaluate(
    op.Forest forest, tree.History history, BranchSegments segments, Py_ssize_t s, Py_ssize_t c, double peak, double valley
) noexcept nogil
cdef double _log_mass(double length, double log_a, double log_b) noexcept nogil
@cython.locals(k=Py_ssize_t)
cdef void _weigh(BranchSegments segments, Py_ssize_t c, double floor) noexcept nogil
@cython.locals(wide=bint)
cdef void _set_need(BranchSegments segments, Py_ssize_t c, double log_total) noexcept nogil
@cython.locals(c=Py_ssize_t, top=double, total=double)
cdef double _log_of_all_mass(BranchSegments segments) noexcept nogil
@cython.locals(
    c=Py_ssize_t, _=Py_ssize_t, half=Py_ssize_t, worst=Py_ssize_t, count=Py_ssize_t, b=Py_ssize_t, log_total=double
)
cdef double _halve_segments(
    op.Forest forest, tree.History history, BranchSegments segments, Py_ssize_t s, double floor
) noexcept nogil
@cython.locals(c=Py_ssize_t, k=Py_ssize_t)
cdef double _log_g_at(BranchSegments segments, Py_ssize_t b, Py_ssize_t root, double h) noexcept nogil
cdef double _draw_between(double low, double high, double log_low, double log_high, double u) noexcept nogil
@cython.locals(c=Py_ssize_t, top=double, total=double)
cdef double _log_mass_elsewhere(BranchSegments segments, Py_ssize_t b, Py_ssize_t root) noexcept nogil
@cython.locals(c=Py_ssize_t, k=Py_ssize_t, last=Py_ssize_t, left=double)
cdef (Py_ssize_t, double) _draw_place(
    BranchSegments segments, Py_ssize_t root, Py_ssize_t excluded, double log_total, double u_segment, double u_height
) noexcept nogil
@cython.locals(
    c=Py_ssize_t, k=Py_ssize_t, step=Py_ssize_t, highest=Py_ssize_t, b=Py_ssize_t, best_b=Py_ssize_t, best_h=double, best=double,
    low=double, high=double, left=double, right=double, at_left=double, at_right=double, to_left=bint,
)
cdef (Py_ssize_t, double) _highest_place(
    op.Forest forest, tree.History history, BranchSegments segments, Py_ssize_t s, double peak
) noexcept nogil
@cython.locals(c=Py_ssize_t)
cdef void _see(op.Forest forest, tree.History history, BranchSegments segments, Py_ssize_t b) noexcept nogil
@cython.locals(_=Py_ssize_t)
cdef Py_ssize_t _ancestor_of(tree.History history, Py_ssize_t s, Py_ssize_t steps) noexcept nogil
@cython.locals(count=Py_ssize_t)
cdef Py_ssize_t _generations_between(tree.History history, Py_ssize_t s, Py_ssize_t above) noexcept nogil
@cython.locals(
    p=Py_ssize_t, ancestor=Py_ssize_t, above=Py_ssize_t, grandparent=Py_ssize_t, old_below=Py_ssize_t, old_generations=Py_ssize_t,
    top=Py_ssize_t, root=Py_ssize_t, b=Py_ssize_t, h=double, gain=double, log_ratio=double, ceiling=double, best=bint, moved=bint,
    excluded=Py_ssize_t, log_total=double, log_others=double, peak=double, floor=double,
)
cdef (bint, double) regraft(
    op.Forest forest, tree.History history, BranchSegments segments, Py_ssize_t s, Py_ssize_t steps, double log_stay,
    double least_gain, bint stem, bint elsewhere, double valley, double u_segment, double u_height, double u_accept,
) noexcept nogil
