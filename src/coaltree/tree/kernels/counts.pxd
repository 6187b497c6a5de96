cimport cython


@cython.locals(n=Py_ssize_t, node=Py_ssize_t, k=Py_ssize_t)
cpdef count_leaves(const Py_ssize_t[:, ::1] children, Py_ssize_t[::1] counts)
@cython.locals(n=Py_ssize_t, k=Py_ssize_t)
cpdef set_first_positions(const Py_ssize_t[:, ::1] children, const Py_ssize_t[::1] counts, Py_ssize_t[::1] first)
