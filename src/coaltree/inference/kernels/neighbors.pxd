cimport cython
from coaltree cimport _math as math
from coaltree cimport _stop as stop
from coaltree.inference.kernels cimport heights as best
from coaltree.process.kernels cimport messages as op

cdef Py_ssize_t NONE, TILE, BLOCK


cdef class Lists:
    cdef readonly Py_ssize_t length
    cdef readonly Py_ssize_t[::1] node
    cdef readonly Py_ssize_t[::1] heir
    cdef readonly double[:, ::1] keys
    cdef readonly Py_ssize_t[:, ::1] slots
    cdef readonly Py_ssize_t[::1] seen
    cdef readonly Py_ssize_t[::1] heap
    cdef readonly Py_ssize_t[::1] place
    cdef readonly Py_ssize_t[::1] counts


cdef class Nearest:
    cdef readonly float[:, ::1] distances
    cdef readonly Py_ssize_t[:, ::1] neighbors
    cdef readonly Py_ssize_t length


cdef class Cell:
    cdef readonly Py_ssize_t n_columns
    cdef public Py_ssize_t size
    cdef readonly Py_ssize_t[::1] members
    cdef readonly float[::1] last
    cdef readonly float[:, ::1] rows
    cdef readonly float[:, ::1] tile
    cdef readonly float[::1] squares
    cdef readonly float[:, ::1] seen
    cdef readonly float[:, ::1] tile_seen
    cdef readonly unsigned char[::1] empty


cdef class Block:
    cdef readonly float[::1] squares
    cdef readonly float[::1] shared


cpdef Py_ssize_t slots_for(Py_ssize_t n)

@cython.locals(c=Py_ssize_t, cell=Cell, nearest=Nearest)
cpdef neighbors_in_cells(
    const float[:, ::1] points, const Py_ssize_t[::1] order, const Py_ssize_t[::1] bounds, float[:, ::1] distances,
    Py_ssize_t[:, ::1] neighbors, Py_ssize_t first, Py_ssize_t last,
)
@cython.locals(c=Py_ssize_t, cell=Cell, nearest=Nearest)
cpdef neighbors_with_holes(
    const float[:, ::1] points, const Py_ssize_t[::1] order, const Py_ssize_t[::1] bounds, float[:, ::1] distances,
    Py_ssize_t[:, ::1] neighbors, Py_ssize_t first, Py_ssize_t last,
)
@cython.locals(c=Py_ssize_t, most=Py_ssize_t)
cdef Py_ssize_t _largest_cell(const Py_ssize_t[::1] bounds, Py_ssize_t first, Py_ssize_t last) noexcept nogil
@cython.locals(a=Py_ssize_t, d=Py_ssize_t)
cdef void _gather(
    const float[:, ::1] points, const Py_ssize_t[::1] order, Py_ssize_t first, Py_ssize_t last, Nearest nearest, Cell cell
) noexcept nogil
@cython.locals(a=Py_ssize_t, d=Py_ssize_t)
cdef void _note_holes(Cell cell) noexcept nogil
@cython.locals(start=Py_ssize_t, end=Py_ssize_t, a=Py_ssize_t, b=Py_ssize_t)
cdef void _look_within(Nearest nearest, Cell cell, bint holes) noexcept nogil
@cython.locals(b=Py_ssize_t, d=Py_ssize_t)
cdef void _set_tile(Cell cell, Py_ssize_t start, Py_ssize_t end, bint holes) noexcept nogil
@cython.locals(b=Py_ssize_t, d=Py_ssize_t, x=float, gap=float, squares=float[32])
cdef void _set_squares(Cell cell, Py_ssize_t a) noexcept nogil
@cython.locals(b=Py_ssize_t, d=Py_ssize_t, x=float, gap=float, far=float, squares=float[32], shared=float[32])
cdef void _set_squares_with_holes(Cell cell, Py_ssize_t a, Py_ssize_t start) noexcept nogil
@cython.locals(b=Py_ssize_t, any_nearer=int)
cdef bint _any_nearer(Cell cell, Py_ssize_t a, Py_ssize_t start) noexcept nogil
cdef void _show(Nearest nearest, Cell cell, Py_ssize_t a, Py_ssize_t b, float distance) noexcept nogil
@cython.locals(q=Py_ssize_t, known=bint)
cdef void _insert_neighbor(Nearest nearest, Py_ssize_t point, float distance, Py_ssize_t neighbor) noexcept nogil
@cython.locals(a=Py_ssize_t, q=Py_ssize_t, point=Py_ssize_t, nearest=Nearest)
cpdef insert_neighbors(
    const Py_ssize_t[::1] members, const float[:, ::1] squares, const short[:, ::1] places, float[:, ::1] distances,
    Py_ssize_t[:, ::1] neighbors,
)
@cython.locals(p=Py_ssize_t, block=Block)
cpdef least_distances(
    const float[:, ::1] points, const Py_ssize_t[::1] probes, float[::1] least, Py_ssize_t first, Py_ssize_t last
)
@cython.locals(start=Py_ssize_t, size=Py_ssize_t, j=Py_ssize_t, d=Py_ssize_t, x=float, gap=float, least=float, one=float, none=float)
cdef float _least_distance(const float[:, ::1] points, Py_ssize_t point, Block block) noexcept nogil
@cython.locals(i=Py_ssize_t, j=Py_ssize_t, d=Py_ssize_t, q=Py_ssize_t, count=Py_ssize_t, total=double)
cpdef fill_holes(
    const float[:, ::1] points, const Py_ssize_t[:, ::1] neighbors, float[:, ::1] filled, Py_ssize_t first, Py_ssize_t last
)

cdef double _pair_key(op.Forest forest, Py_ssize_t i, Py_ssize_t j, double limit, op.Pair pair) noexcept nogil
cdef Py_ssize_t _not_below(Py_ssize_t j) noexcept nogil
@cython.locals(limit=double)
cdef (double, Py_ssize_t) _weighed(
    op.Forest forest, Lists lists, Py_ssize_t i, Py_ssize_t j, Py_ssize_t first, op.Pair pair
) noexcept nogil
@cython.locals(q=Py_ssize_t)
cdef void _empty(Lists lists, Py_ssize_t i) noexcept nogil
@cython.locals(i=Py_ssize_t, j=Py_ssize_t, q=Py_ssize_t, key=double, held=Py_ssize_t, pair=op.Pair)
cpdef weigh_neighbors(
    op.Forest forest, Lists lists, const Py_ssize_t[:, ::1] neighbors, Py_ssize_t first, Py_ssize_t last
)
@cython.locals(p=Py_ssize_t, j=Py_ssize_t, pair=op.Pair)
cpdef best_keys(
    op.Forest forest, Py_ssize_t n, const Py_ssize_t[::1] probes, double[::1] keys, Py_ssize_t first, Py_ssize_t last
)

@cython.locals(slot_a=Py_ssize_t, slot_b=Py_ssize_t, old_a=Py_ssize_t, old_b=Py_ssize_t)
cdef bint _before(Lists lists, Py_ssize_t a, Py_ssize_t b) noexcept nogil
@cython.locals(slot=Py_ssize_t, above=Py_ssize_t, child=Py_ssize_t, size=Py_ssize_t)
cdef void _sift(Lists lists, Py_ssize_t at) noexcept nogil
@cython.locals(last=Py_ssize_t, at=Py_ssize_t)
cdef void _remove(Lists lists, Py_ssize_t slot) noexcept nogil
@cython.locals(i=Py_ssize_t)
cpdef start_heap(Lists lists)

cdef Py_ssize_t _heir(Lists lists, Py_ssize_t slot) noexcept nogil
@cython.locals(i=Py_ssize_t, j=Py_ssize_t, q=Py_ssize_t, key=double, held=Py_ssize_t)
cdef (Py_ssize_t, Py_ssize_t, double) _next_pair(op.Forest forest, Lists lists, op.Pair pair) noexcept nogil
@cython.locals(j=Py_ssize_t, q=Py_ssize_t, key=double, held=Py_ssize_t)
cdef void _inherit(op.Forest forest, Lists lists, Py_ssize_t parent, Py_ssize_t new, op.Pair pair) noexcept nogil
@cython.locals(reached=Py_ssize_t, pair=op.Pair)
cpdef Py_ssize_t neighbor_merges(
    op.Forest forest, Lists lists, Py_ssize_t goal, Py_ssize_t first, Py_ssize_t last, Py_ssize_t[:, ::1] children,
    double[::1] heights,
)
@cython.locals(n=Py_ssize_t, k=Py_ssize_t, i=Py_ssize_t, j=Py_ssize_t, new=Py_ssize_t, h=double)
cdef Py_ssize_t _neighbor_merges(
    op.Forest forest, Lists lists, Py_ssize_t goal, Py_ssize_t first, Py_ssize_t last, Py_ssize_t[:, ::1] children,
    double[::1] heights, op.Pair pair,
) except? -1 nogil
@cython.locals(i=Py_ssize_t, target=Py_ssize_t)
cpdef close_up(op.Forest forest, Lists lists)
