cimport cython
from coaltree cimport _math as math
from coaltree.inference.kernels cimport history as tree
from coaltree.inference.kernels cimport particles as smc
from coaltree.inference.kernels cimport regraft as regrafting
from coaltree.process.kernels cimport messages as op

cdef Py_ssize_t NONE


@cython.locals(at=Py_ssize_t[::1], number=Py_ssize_t[::1], p=Py_ssize_t)
cpdef regraft_particles(
    op.Forest work, tree.History history, regrafting.BranchSegments segments, op.Forest forest, Py_ssize_t bank,
    smc.Particles particles, Py_ssize_t k, double[:, :, ::1] uniforms, Py_ssize_t first, Py_ssize_t last,
)
@cython.locals(n=Py_ssize_t, b=Py_ssize_t, j=Py_ssize_t, side=Py_ssize_t, child=Py_ssize_t)
cdef void _load(
    op.Forest work, tree.History history, op.Pair pair, smc.Particles particles, Py_ssize_t p, Py_ssize_t k
) noexcept nogil
@cython.locals(
    n=Py_ssize_t, m=Py_ssize_t, s=Py_ssize_t, top=Py_ssize_t, moved=bint, moved_at_all=bint, _=double
)
cdef bint _move_within(
    op.Forest work, tree.History history, regrafting.BranchSegments segments, Py_ssize_t p, Py_ssize_t k,
    double[:, :, ::1] uniforms,
) noexcept nogil
@cython.locals(j=Py_ssize_t, node=Py_ssize_t, place=Py_ssize_t)
cdef void _put_in_order(op.Forest work, tree.History history, Py_ssize_t k) noexcept nogil
@cython.locals(
    n=Py_ssize_t, leaf=Py_ssize_t, j=Py_ssize_t, node=Py_ssize_t, a=Py_ssize_t, b=Py_ssize_t, i=Py_ssize_t, other=Py_ssize_t,
    place=Py_ssize_t, slot=Py_ssize_t,
)
cdef void _climb(
    op.Forest forest, tree.History history, op.Forest work, op.Pair pair, smc.Particles particles, Py_ssize_t p, Py_ssize_t k,
    Py_ssize_t bank, Py_ssize_t[::1] number, Py_ssize_t[::1] at,
) noexcept nogil
