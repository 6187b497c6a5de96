cimport cython
from coaltree cimport _math as math
from coaltree cimport _stop as stop
from coaltree.inference.kernels cimport height_draws as drawing
from coaltree.inference.kernels cimport history as tree
from coaltree.inference.kernels cimport regraft as regrafting
from coaltree.process.kernels cimport messages as op

cdef Py_ssize_t SUBTREE, NEAR, LEAF, HEIGHTS, SCALE
cdef double EVERYWHERE


cpdef double make_moves(
    op.Forest forest, tree.History history, regrafting.BranchSegments segments, double[::1] shares, double log_stay,
    double valley, double stretch, double[:, ::1] uniforms, double[:, :, ::1] sweeps, double log_joint,
    Py_ssize_t[::1] tried, Py_ssize_t[::1] accepted,
)
@cython.locals(
    m=Py_ssize_t, n=Py_ssize_t, n_nodes=Py_ssize_t, sweep=Py_ssize_t, kind=Py_ssize_t, s=Py_ssize_t, steps=Py_ssize_t, log_chance=double,
    deepest=double, moved=bint, gain=double,
)
cdef double _make_moves(
    op.Forest forest, tree.History history, regrafting.BranchSegments segments, double[::1] shares, double log_stay,
    double valley, double stretch, double[:, ::1] uniforms, double[:, :, ::1] sweeps, double log_joint,
    Py_ssize_t[::1] tried, Py_ssize_t[::1] accepted,
) except? -1 nogil
@cython.locals(moves=Py_ssize_t)
cpdef Py_ssize_t climb(
    op.Forest forest, tree.History history, regrafting.BranchSegments segments, Py_ssize_t first, Py_ssize_t last,
    double least_gain,
)
@cython.locals(moves=Py_ssize_t, steps=Py_ssize_t, s=Py_ssize_t, moved=bint, _=double)
cdef Py_ssize_t _climb(
    op.Forest forest, tree.History history, regrafting.BranchSegments segments, Py_ssize_t first, Py_ssize_t last,
    double least_gain,
) except? -1 nogil
@cython.locals(accepted=bint)
cdef (bint, double) _scale(
    op.Forest forest, tree.History history, op.Pair pair, double log_joint, double factor, double u
) noexcept nogil
