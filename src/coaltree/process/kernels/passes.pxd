cimport cython
from coaltree cimport _math as math
from coaltree cimport _stop as stop
from coaltree.process.kernels cimport messages as op

@cython.locals(pair=op.Pair)
cpdef climb(
    op.Forest forest, const Py_ssize_t[:, ::1] children, const double[::1] heights, Py_ssize_t[::1] slot, double[::1] log_z,
    double[::1] log_ratios, Py_ssize_t first, Py_ssize_t last,
)
@cython.locals(k=Py_ssize_t, i=Py_ssize_t, j=Py_ssize_t, n=Py_ssize_t, h=double)
cdef int _climb(
    op.Forest forest, const Py_ssize_t[:, ::1] children, const double[::1] heights, Py_ssize_t[::1] slot, double[::1] log_z,
    double[::1] log_ratios, Py_ssize_t first, Py_ssize_t last, op.Pair pair,
) except -1 nogil

@cython.locals(pair=op.Pair)
cpdef pass_up(
    op.Forest forest, const Py_ssize_t[:, ::1] children, const double[::1] heights, Py_ssize_t first, Py_ssize_t last
)
@cython.locals(k=Py_ssize_t, n=Py_ssize_t)
cdef int _pass_up(
    op.Forest forest, const Py_ssize_t[:, ::1] children, const double[::1] heights, Py_ssize_t first, Py_ssize_t last,
    op.Pair pair,
) except -1 nogil

@cython.locals(pair=op.Pair)
cpdef best_partners(
    op.Forest forest, const Py_ssize_t[::1] slots, const Py_ssize_t[::1] candidates, const double[::1] log_weights, double height,
    Py_ssize_t[::1] best,
)
@cython.locals(k=Py_ssize_t, c=Py_ssize_t, best_score=double, score=double)
cdef int _best_partners(
    op.Forest forest, const Py_ssize_t[::1] slots, const Py_ssize_t[::1] candidates, const double[::1] log_weights, double height,
    Py_ssize_t[::1] best, op.Pair pair,
) except -1 nogil

@cython.locals(pair=op.Pair)
cpdef pass_up_and_down(op.Forest forest, const Py_ssize_t[:, ::1] children, const double[::1] heights, double[::1] turn)
@cython.locals(
    k=Py_ssize_t, n=Py_ssize_t, n_nodes=Py_ssize_t, side=Py_ssize_t, node=Py_ssize_t, sibling=Py_ssize_t, above=Py_ssize_t
)
cdef int _pass_up_and_down(
    op.Forest forest, const Py_ssize_t[:, ::1] children, const double[::1] heights, double[::1] turn, op.Pair pair
) except -1 nogil

@cython.locals(pair=op.Pair)
cpdef meet(
    op.Forest forest, const Py_ssize_t[::1] nodes, const double[::1] heights, const double[::1] turn, Py_ssize_t first
)
@cython.locals(p=Py_ssize_t, node=Py_ssize_t, n_nodes=Py_ssize_t, h=double)
cdef int _meet(
    op.Forest forest, const Py_ssize_t[::1] nodes, const double[::1] heights, const double[::1] turn, Py_ssize_t first,
    op.Pair pair,
) except -1 nogil

@cython.locals(pair=op.Pair)
cpdef contrasts(
    op.Forest forest, const Py_ssize_t[:, ::1] children, const double[::1] heights, Py_ssize_t[::1] slot, double[:, ::1] gaps,
    double[:, ::1] variances,
)
@cython.locals(k=Py_ssize_t, i=Py_ssize_t, j=Py_ssize_t, n=Py_ssize_t, d=Py_ssize_t, column=Py_ssize_t, h=double)
cdef int _contrasts(
    op.Forest forest, const Py_ssize_t[:, ::1] children, const double[::1] heights, Py_ssize_t[::1] slot, double[:, ::1] gaps,
    double[:, ::1] variances, op.Pair pair,
) except -1 nogil

@cython.locals(k=Py_ssize_t)
cpdef expected_redraws(
    op.Forest forest, const Py_ssize_t[:, ::1] children, const double[::1] heights, const double[::1] turn,
    double[::1] lengths, double[:, ::1] redraws, double[::1] draws,
)
@cython.locals(
    n=Py_ssize_t, n_nodes=Py_ssize_t, k=Py_ssize_t, r=Py_ssize_t, d=Py_ssize_t, node=Py_ssize_t, edge=Py_ssize_t,
    start_node=Py_ssize_t, other=Py_ssize_t, agreement=double, z=double, share=double,
)
cdef int _expected_redraws(
    op.Forest forest, const Py_ssize_t[:, ::1] children, const double[::1] heights, const double[::1] turn,
    double[::1] lengths, double[:, ::1] redraws, double[::1] draws,
) except -1 nogil

@cython.locals(pair=op.Pair)
cpdef draw_redraws(
    op.Forest forest, const Py_ssize_t[:, ::1] children, const double[::1] heights, const Py_ssize_t[::1] copies,
    const double[:, ::1] uniforms, Py_ssize_t[:, ::1] states, Py_ssize_t[:, ::1] redraws, Py_ssize_t[:, ::1] draws,
)
@cython.locals(
    n=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t, k=Py_ssize_t, d=Py_ssize_t, c=Py_ssize_t, side=Py_ssize_t,
    node=Py_ssize_t, above=Py_ssize_t, state=Py_ssize_t, x=double, u=double, kept=double, survival=double, redraw=double,
)
cdef int _draw_redraws(
    op.Forest forest, const Py_ssize_t[:, ::1] children, const double[::1] heights, const Py_ssize_t[::1] copies,
    const double[:, ::1] uniforms, Py_ssize_t[:, ::1] states, Py_ssize_t[:, ::1] redraws, Py_ssize_t[:, ::1] draws,
    op.Pair pair,
) except -1 nogil
@cython.locals(best=Py_ssize_t, r=Py_ssize_t, k=Py_ssize_t, most=double)
cdef Py_ssize_t _draw_state(op.Forest forest, Py_ssize_t d, Py_ssize_t node, double u) noexcept nogil

@cython.locals(pair=op.Pair, product="double[::1]")
cpdef climb_sites(op.Forest forest, const Py_ssize_t[:, ::1] children, const double[::1] heights, double[::1] log_z)
@cython.locals(
    n=Py_ssize_t, k=Py_ssize_t, i=Py_ssize_t, j=Py_ssize_t, d=Py_ssize_t, r=Py_ssize_t, a=Py_ssize_t, h=double, g=double,
    agreement=double, x=double, kept=double, redraw=double,
)
cdef int _climb_sites(
    op.Forest forest, const Py_ssize_t[:, ::1] children, const double[::1] heights, double[::1] log_z, double[::1] product,
    op.Pair pair,
) except -1 nogil

cpdef climb_unseen(
    const Py_ssize_t[:, ::1] children, const double[::1] heights, const double[::1] share, const double[::1] rate,
    double[:, ::1] lost, double[:, ::1] other, Py_ssize_t[:, ::1] count, const Py_ssize_t[::1] total, Py_ssize_t[::1] top,
)
@cython.locals(
    n=Py_ssize_t, k=Py_ssize_t, side=Py_ssize_t, child=Py_ssize_t, u=Py_ssize_t, length=double, last=double, stay=double,
    redrawn=double, q=double, above=double,
)
cdef int _climb_unseen(
    const Py_ssize_t[:, ::1] children, const double[::1] heights, const double[::1] share, const double[::1] rate,
    double[:, ::1] lost, double[:, ::1] other, Py_ssize_t[:, ::1] count, const Py_ssize_t[::1] total, Py_ssize_t[::1] top,
) except -1 nogil
