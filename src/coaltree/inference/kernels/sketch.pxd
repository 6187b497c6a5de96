cimport cython
from coaltree cimport _math as math
from coaltree.process.kernels cimport messages as op

cdef double LEAST, MARGIN, LARGEST, LARGEST_EXPONENT, ROUNDOFF


cdef class Sketch:
    cdef readonly Py_ssize_t n_sites, n_numbers
    cdef readonly double total_weight, error
    cdef readonly float[:, ::1] rows
    cdef readonly double[::1] length


cdef class Glance:
    cdef readonly float[::1] one
    cdef readonly float[::1] term
    cdef readonly float[::1] weight
    cdef public double error


@cython.locals(
    d=Py_ssize_t, k=Py_ssize_t, first=Py_ssize_t, begin=Py_ssize_t, growth=double, z=double, largest=double
)
cpdef void enter(op.Forest forest, Sketch sketch, Py_ssize_t slot, Glance glance) noexcept nogil
@cython.locals(d=Py_ssize_t)
cdef void move(Sketch sketch, Py_ssize_t source, Py_ssize_t target) noexcept nogil
cdef bint reaches(op.Forest forest, double limit) noexcept nogil
@cython.locals(d=Py_ssize_t, u=double)
cpdef void start(op.Forest forest, Sketch sketch, Py_ssize_t slot, double limit, Glance glance) noexcept nogil
@cython.locals(
    n=Py_ssize_t, quarter=Py_ssize_t, half=Py_ssize_t, d=Py_ssize_t, k=Py_ssize_t, first=Py_ssize_t, one=float, least=float, total=double,
    p=float, q=float, r=float, s=float, pq=float, rs=float,
)
cpdef double slope(op.Forest forest, Sketch sketch, Py_ssize_t slot, Glance glance) noexcept nogil
