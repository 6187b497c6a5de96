cimport cython
from coaltree cimport _math as math
from coaltree.inference.kernels cimport history as tree
from coaltree.process.kernels cimport messages as op

cdef Py_ssize_t NONE, TRIES


@cython.locals(
    n=Py_ssize_t, count=Py_ssize_t, node=Py_ssize_t, before=Py_ssize_t, first=Py_ssize_t, second=Py_ssize_t,
    parent=Py_ssize_t, following=Py_ssize_t, gain=double,
)
cdef double sweep_once(
    op.Forest forest, tree.History history, double[:, :, ::1] uniforms, Py_ssize_t sweep,
    op.Pair pair, op.Place place,
) noexcept nogil
@cython.locals(
    a=Py_ssize_t, b=Py_ssize_t, parent=Py_ssize_t, old_rung=Py_ssize_t, rung=Py_ssize_t, k=Py_ssize_t, height=double, low=double,
    high=double, first=double, last=double, p_low=double, level=double, v=double, w=double, h=double,
    before=double, log_density=double,
)
cdef double _draw_height(
    op.Forest forest, tree.History history, Py_ssize_t node, double[:, :, ::1] uniforms, Py_ssize_t sweep, Py_ssize_t draw,
    op.Pair pair, op.Place place,
) noexcept nogil
cdef double _log_density(
    op.Forest forest, Py_ssize_t parent, double h, double w, op.Pair pair, op.Place place
) noexcept nogil
cdef double _log_stretch(tree.History history, double w, Py_ssize_t rung) noexcept nogil
@cython.locals(low=Py_ssize_t, high=Py_ssize_t, middle=Py_ssize_t, own=double, below=double, before=double, h=double)
cdef (double, Py_ssize_t) _height_at(tree.History history, double length, Py_ssize_t old_rung, double length_at_height) noexcept nogil
@cython.locals(k=Py_ssize_t, height=double, change=double)
cdef void _move_rung(tree.History history, Py_ssize_t old_rung, Py_ssize_t rung, double h, double area) noexcept nogil
