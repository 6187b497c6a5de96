cimport cython
from coaltree cimport _math as math
from coaltree.process.kernels cimport messages as op

cdef double LEAST_PATH, STEEP, STRIDE, LEAST_WIDTH, LARGEST_WIDTH
cdef double[12] OFFSETS
cdef Py_ssize_t EXTRA, N_OFFSETS


cdef class Grid:
    cdef readonly double[::1] edge
    cdef readonly double[::1] log_density
    cdef readonly double[::1] slope
    cdef readonly double[::1] mass
    cdef readonly Py_ssize_t count


@cython.locals(_=Py_ssize_t, low=double, high=double, x=double, width=double, stride=double, bracketed=bint)
cdef (double, double) _peak_by_newton(
    op.Forest forest, op.Pair pair, double c, double lowest, double path_low
) noexcept nogil
cdef (double, double) _peak_of_complete_brownian(op.Forest forest, op.Pair pair, double c, double path_low) noexcept nogil
cdef bint _add_edge(op.Forest forest, op.Pair pair, double c, double h, Grid grid) noexcept nogil
@cython.locals(k=Py_ssize_t)
cdef void _set_edges(
    op.Forest forest, op.Pair pair, double c, double lowest, double path_low, double peak, double width, Py_ssize_t n_left,
    Grid grid,
) noexcept nogil
@cython.locals(k=Py_ssize_t, last=Py_ssize_t, top=double, total=double, here=double)
cdef (double, double) _integrate(double c, Grid grid) noexcept nogil
@cython.locals(k=Py_ssize_t, _=Py_ssize_t, last=Py_ssize_t, top=double, total=double, peak=double, width=double)
cpdef double lay_grid(op.Forest forest, op.Pair pair, double shift, double c, double lowest, Grid grid) noexcept nogil
@cython.locals(k=Py_ssize_t, last=Py_ssize_t)
cpdef double draw_height(Grid grid, double u_cell, double u_place) noexcept nogil
@cython.locals(k=Py_ssize_t)
cdef Py_ssize_t _cell_of(Grid grid, double h) noexcept nogil
@cython.locals(k=Py_ssize_t)
cpdef double log_density_at(Grid grid, double h) noexcept nogil
@cython.locals(k=Py_ssize_t, later=Py_ssize_t, total=double, share=double)
cpdef double log_survival(Grid grid, double h) noexcept nogil
