cimport cython
from coaltree.process.kernels cimport messages as op

cdef Py_ssize_t NONE


cdef class History:
    cdef readonly Py_ssize_t n, n_nodes
    cdef public Py_ssize_t root
    cdef readonly Py_ssize_t[::1] parent
    cdef readonly Py_ssize_t[:, ::1] children
    cdef readonly double[::1] ladder
    cdef readonly double[::1] area
    cdef readonly double[::1] log_ratio
    cdef readonly double[::1] turn
    cdef readonly Py_ssize_t[::1] path
    cdef readonly Py_ssize_t[::1] order


cdef void merge_children(op.Forest forest, History history, Py_ssize_t node, op.Rows scratch) noexcept nogil
cdef void merge_up_to(op.Forest forest, History history, Py_ssize_t node, Py_ssize_t last, op.Rows scratch) noexcept nogil
@cython.locals(k=Py_ssize_t, below=double, before=double)
cdef void set_area(History history, Py_ssize_t first, Py_ssize_t last) noexcept nogil
@cython.locals(low=Py_ssize_t, left=Py_ssize_t, half=Py_ssize_t)
cdef Py_ssize_t rung_at(History history, double h) noexcept nogil
@cython.locals(k=Py_ssize_t, first=Py_ssize_t, end=Py_ssize_t)
cdef void move_rung(History history, double old, double new) noexcept nogil
@cython.locals(k=Py_ssize_t)
cdef double lineages_up_to(History history, double h) noexcept nogil
@cython.locals(k=Py_ssize_t, live=Py_ssize_t, total=double, below=double)
cdef double log_prior_of(History history) noexcept nogil
cdef Py_ssize_t sibling_of(History history, Py_ssize_t node) noexcept nogil
cdef void replace_child(History history, Py_ssize_t p, Py_ssize_t old, Py_ssize_t new) noexcept nogil
cdef void cut_off(History history, Py_ssize_t s) noexcept nogil
cdef void hang_on(op.Forest forest, History history, Py_ssize_t s, Py_ssize_t p, Py_ssize_t b, double h) noexcept nogil
cdef void send_down(op.Forest forest, History history, Py_ssize_t b, op.Rows scratch) noexcept nogil
@cython.locals(count=Py_ssize_t)
cdef void send_down_to(op.Forest forest, History history, Py_ssize_t b, op.Rows scratch) noexcept nogil
@cython.locals(pair=op.Pair, total=double)
cpdef double log_likelihood_of(op.Forest forest, History history)
@cython.locals(k=Py_ssize_t, node=Py_ssize_t, a=Py_ssize_t, b=Py_ssize_t, total=double, log_z=double, apart=double)
cdef double climb_tree(op.Forest forest, History history, op.Pair pair) noexcept nogil
@cython.locals(
    k=Py_ssize_t, n=Py_ssize_t, n_nodes=Py_ssize_t, node=Py_ssize_t, a=Py_ssize_t, b=Py_ssize_t, total=double, h=double
)
cdef double climb_scaled_tree(op.Forest forest, History history, double factor, op.Pair pair) noexcept nogil
@cython.locals(k=Py_ssize_t, n=Py_ssize_t, n_nodes=Py_ssize_t)
cdef void scale_tree(op.Forest forest, History history, double factor) noexcept nogil
@cython.locals(k=Py_ssize_t, done=Py_ssize_t, side=Py_ssize_t, child=Py_ssize_t)
cpdef void put_in_order(History history) noexcept nogil
