cimport cython
from coaltree cimport _constants as const
from coaltree cimport _math as math


cdef class Forest:
    cdef readonly object layout
    cdef readonly double[::1] height
    cdef readonly double[:, ::1] mean
    cdef readonly double[:, ::1] spread
    cdef readonly double[::1] least
    cdef readonly double[:, ::1] state
    cdef readonly double[:, ::1] growth
    cdef readonly double[::1] log_norm
    cdef readonly bint complete
    cdef readonly bint noisy
    cdef readonly Py_ssize_t n_real
    cdef readonly Py_ssize_t n_brownian
    cdef readonly double[::1] log_scale
    cdef readonly double total_log_scale
    cdef readonly double[::1] site_weight
    cdef readonly double[::1] real_weight
    cdef readonly double least_weight
    cdef readonly Py_ssize_t[::1] heavier
    cdef readonly double[::1] more_weight
    cdef readonly bint weighted_sites
    cdef readonly bint weighted_real
    cdef readonly double total_weight
    cdef readonly double common_weight
    cdef object _site_weight
    cdef object _real_weight
    cdef readonly double[::1] root_variance
    cdef readonly Py_ssize_t[::1] group
    cdef readonly Py_ssize_t n_groups
    cdef readonly unsigned char[::1] together
    cdef readonly double[::1] sum_weight
    cdef readonly double[::1] rate
    cdef readonly Py_ssize_t n_sites
    cdef readonly double[::1] site_rate
    cdef readonly double common_rate
    cdef readonly double fastest
    cdef readonly Py_ssize_t n_ranks
    cdef readonly Py_ssize_t[::1] rank
    cdef readonly double[::1] root_q
    cdef readonly double[::1] over_root_q
    cdef readonly double[:, ::1] chain
    cdef readonly Py_ssize_t n_chains
    cdef readonly Py_ssize_t[::1] chain_start
    cdef readonly double[::1] chain_rate
    cdef readonly double[:, ::1] basis
    cdef readonly double[::1] fastest_exit
    cdef readonly double[::1] chain_weight
    cdef object _chain_weight


cdef class Rows:
    cdef readonly double[:, ::1] rows
    cdef readonly double[:, ::1] real
    cdef readonly double[:, ::1] chain


cdef class Pair(Rows):
    cdef readonly double[::1] d2
    cdef readonly double[::1] product
    cdef readonly double[::1] correlation
    cdef readonly double[::1] lost
    cdef readonly double[::1] term
    cdef readonly double[::1] weight
    cdef readonly Py_ssize_t[::1] end
    cdef public double heights
    cdef public double log_scale


cdef class Place(Rows):
    cdef public Py_ssize_t below, beyond, third
    cdef public double turn, height_below, height_third
    cdef public double below_below, below_beyond, beyond_beyond, below_third, beyond_third, third_third


cdef double _log_ratio(double columns, double d2, double product, double rho, double gap) noexcept nogil
cdef (double, double, double, double) _stationary_slopes(
    double columns, double d2, double product, double rho, double gap
) noexcept nogil
cdef double _stationary_least_slope(
    double columns, double d2, double product, double ratio, double rho_low, double gap_low, double rho_high, double gap_high
) noexcept nogil
cdef (double, double) _stationary_drop_falls(
    double columns, double product, double rho_low, double gap_low, double rho_high, double gap_high
) noexcept nogil
cdef double _stationary_highest(double rate, double d2, double apart, double c) noexcept nogil
cpdef double path_of(double rate, double lost) noexcept nogil
cdef (double, double) _join_brownian(double y_i, double w_i, double y_j, double w_j) noexcept nogil
cdef (double, double) _decay(double x) noexcept nogil
cdef (double, double) _weights(double lost, double decay, double complement) noexcept nogil
cdef double _lost_of(double precision) noexcept nogil
@cython.locals(
    d=Py_ssize_t, c=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t, total=double, one=double, two=double, three=double, four=double,
    sum_one=double, sum_two=double, sum_three=double, sum_four=double,
)
cdef double _half_total(Rows scratch, Py_ssize_t first, Py_ssize_t last) noexcept nogil
@cython.locals(d=Py_ssize_t, total=double)
cdef double _half_weighted_total(Rows scratch, double[::1] weight, Py_ssize_t first, Py_ssize_t last) noexcept nogil

@cython.locals(d=Py_ssize_t)
cpdef void set_decay(Forest forest, Rows scratch, double g, Py_ssize_t decay_row, Py_ssize_t complement_row) noexcept nogil
@cython.locals(d=Py_ssize_t, total=double)
cdef double _sum_of_each_log(Rows scratch, Py_ssize_t values, Py_ssize_t n) noexcept nogil
@cython.locals(d=Py_ssize_t, half=Py_ssize_t, left=Py_ssize_t, _=Py_ssize_t, total=double, product=double)
cpdef double sum_of_logs(Rows scratch, Py_ssize_t values, Py_ssize_t folded, Py_ssize_t n) noexcept nogil
@cython.locals(
    d=Py_ssize_t, n=Py_ssize_t, outside=Py_ssize_t, total=double, log=double, k=double, m=double, s=double, z=double, p=double
)
cpdef double log_of_sites(Forest forest, Rows scratch, Py_ssize_t values, Py_ssize_t folded) noexcept nogil
@cython.locals(d=Py_ssize_t)
cdef void weigh_sites(Forest forest, Rows scratch, Py_ssize_t row) noexcept nogil
@cython.locals(d=Py_ssize_t, half=Py_ssize_t, total=double)
cdef double sum_of_row(Rows scratch, Py_ssize_t values, Py_ssize_t n) noexcept nogil
cpdef double _lambert_above(double z) noexcept nogil
@cython.locals(d=Py_ssize_t, r=Py_ssize_t, first=Py_ssize_t)
cdef void _set_agreements(Forest forest, Py_ssize_t i, Py_ssize_t j, Rows scratch, Py_ssize_t row) noexcept nogil

@cython.locals(k=Py_ssize_t)
cdef void _set_products(Forest forest, Py_ssize_t i, Py_ssize_t j, Pair pair) noexcept nogil
@cython.locals(
    k=Py_ssize_t, rate=double, term=double, z=double, less_z=double, one=double, less_one=double, two=double, less_two=double
)
cdef (double, double, double, double, double, double) _chain_sums(
    Forest forest, Pair pair, Py_ssize_t d, double g
) noexcept nogil
cdef double _chain_z(double z, double less_z) noexcept nogil
cdef (double, double) _chain_slopes(
    double z, double less_z, double one, double less_one, double two, double less_two
) noexcept nogil
@cython.locals(d=Py_ssize_t, total=double, z=double, less_z=double, impossible=bint, _=double)
cdef double _chain_log_z(Forest forest, Pair pair, double g) noexcept nogil
cdef (double, double, double, double, double) _chain_bounds(
    Forest forest, Pair pair, Py_ssize_t d, double g_low, double g_high, double shift
) noexcept nogil
@cython.locals(d=Py_ssize_t, total=double)
cdef double _chain_least_slope(Forest forest, Pair pair, double g_low, double g_high, double shift) noexcept nogil
@cython.locals(d=Py_ssize_t, k=Py_ssize_t, total=double, slowest=double, negative=double, rise=double, most=double)
cdef double _chain_highest(Forest forest, Pair pair, double c) noexcept nogil
@cython.locals(k=Py_ssize_t, s=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t, total=double)
cdef void _set_state_message(
    Forest forest, Py_ssize_t slot, Py_ssize_t d, double climb, Rows scratch, Py_ssize_t row
) noexcept nogil
@cython.locals(
    d=Py_ssize_t, k=Py_ssize_t, s=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t, total=double, z=double, possible=bint
)
cdef bint _merge_chains(
    Forest forest, Py_ssize_t i, Py_ssize_t j, double climb_i, double climb_j, Py_ssize_t into, Rows scratch
) noexcept nogil
@cython.locals(d=Py_ssize_t, s=Py_ssize_t, total=double, both=double, joint=double)
cdef double _chain_log_z_at(Forest forest, Place place, double up, double down, double across) noexcept nogil

@cython.locals(
    d=Py_ssize_t, d2_one=double, d2_two=double, d2_three=double, d2_four=double, product_one=double, product_two=double,
    product_three=double, product_four=double,
)
cdef (double, double) _sums_together(Forest forest, Py_ssize_t i, Py_ssize_t j, Py_ssize_t first, Py_ssize_t last) noexcept nogil
@cython.locals(
    d=Py_ssize_t, k=Py_ssize_t, count=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t, d2=double, product=double, log_scale=double,
    weight=double,
)
cpdef void load_pair(Forest forest, Py_ssize_t i, Py_ssize_t j, Pair pair) noexcept nogil
cpdef double pair_shift(Forest forest, Py_ssize_t i, Py_ssize_t j) noexcept nogil
@cython.locals(d=Py_ssize_t, k=Py_ssize_t, group=Py_ssize_t, total=double, decay=double, complement=double)
cpdef double log_z(Forest forest, Pair pair, double h) noexcept nogil
cdef double _complete_log_z(Forest forest, Pair pair, double g) noexcept nogil
@cython.locals(k=Py_ssize_t, group=Py_ssize_t, total=double)
cpdef void set_log_norm(Forest forest, Py_ssize_t i, Pair pair) noexcept nogil
@cython.locals(i=Py_ssize_t, pair=Pair)
cpdef set_log_norms(Forest forest, Py_ssize_t n)
cpdef double log_cosine(Forest forest, Py_ssize_t i, Py_ssize_t j, Pair pair, double h) noexcept nogil
@cython.locals(
    d=Py_ssize_t, k=Py_ssize_t, group=Py_ssize_t, rise=double, drop=double, rise_falls=double, drop_falls=double,
    one=double, two=double, three=double, four=double,
)
cpdef (double, double, double, double) slopes(Forest forest, Pair pair, double h) noexcept nogil
cdef (double, double, double, double) _complete_slopes(Forest forest, Pair pair, double g) noexcept nogil
@cython.locals(k=Py_ssize_t, group=Py_ssize_t, total=double)
cpdef double least_slope(Forest forest, Pair pair, double low, double high, double shift) noexcept nogil
@cython.locals(d=Py_ssize_t)
cdef void _set_site_least_slopes(Forest forest, Pair pair, double g_low, double g_high, double shift) noexcept nogil
cdef double _complete_least_slope(Forest forest, Pair pair, double g_low, double g_high, double ratio) noexcept nogil
@cython.locals(d=Py_ssize_t, k=Py_ssize_t, group=Py_ssize_t, least=double, most=double)
cpdef (double, double) drop_falls_range(Forest forest, Pair pair, double low, double high) noexcept nogil
@cython.locals(d=Py_ssize_t, total=double)
cpdef double chain_gap(Forest forest, Pair pair, double low, double high) noexcept nogil
@cython.locals(
    d=Py_ssize_t, k=Py_ssize_t, group=Py_ssize_t, kinds=Py_ssize_t, share=double, top=double, d2=double, least=double,
    apart=double, disagreement=double,
)
cpdef double highest(Forest forest, Pair pair, double c) noexcept nogil

@cython.locals(d=Py_ssize_t)
cpdef void start_scan(Forest forest, Py_ssize_t i, double low, double high, Pair pair) noexcept nogil
@cython.locals(d=Py_ssize_t, k=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t, total=double)
cpdef double scan_slope(
    Forest forest, Py_ssize_t i, Py_ssize_t j, double low, double high, double shift, Pair pair
) noexcept nogil
@cython.locals(d=Py_ssize_t)
cdef void _set_scanned_slopes(
    Forest forest, Py_ssize_t j, double g_low, double g_high, double shift, Pair pair
) noexcept nogil
@cython.locals(d=Py_ssize_t)
cdef double _slope_of_sites(Forest forest, Py_ssize_t j, Pair pair) noexcept nogil

@cython.locals(d=Py_ssize_t, k=Py_ssize_t, least=double, possible=bint)
cpdef bint merge(Forest forest, Py_ssize_t i, Py_ssize_t j, double h, Py_ssize_t into, Rows scratch) noexcept nogil
@cython.locals(i=Py_ssize_t, one=Py_ssize_t, bit=Py_ssize_t, scratch=Rows)
cpdef merge_copies(Forest forest, const Py_ssize_t[::1] counts)
@cython.locals(possible=bint)
cpdef double merge_and_log_z(
    Forest forest, Py_ssize_t i, Py_ssize_t j, double h, Py_ssize_t into, Pair pair
) noexcept nogil
@cython.locals(d=Py_ssize_t, least=double)
cdef double _merge_stationary(
    Forest forest, Py_ssize_t group, Py_ssize_t i, Py_ssize_t j, double climb_i, double climb_j, Py_ssize_t into, Rows scratch
) noexcept nogil
@cython.locals(d=Py_ssize_t, scale=double)
cdef void _merge_complete(
    Forest forest, Py_ssize_t i, Py_ssize_t j, double climb_i, double climb_j, Py_ssize_t into
) noexcept nogil
@cython.locals(d=Py_ssize_t, r=Py_ssize_t, first=Py_ssize_t, n=Py_ssize_t, impossible=Py_ssize_t)
cdef bint _merge_sites(
    Forest forest, Py_ssize_t i, Py_ssize_t j, double climb_i, double climb_j, Py_ssize_t into, Rows scratch
) noexcept nogil
@cython.locals(
    d=Py_ssize_t, r=Py_ssize_t, first=Py_ssize_t, keep_i=double, lose_i=double, keep_j=double, lose_j=double, joint=double
)
cdef void _join_sites_of_one_rate(
    Forest forest, Py_ssize_t i, Py_ssize_t j, double climb_i, double climb_j, Py_ssize_t into, Rows scratch
) noexcept nogil
@cython.locals(d=Py_ssize_t, r=Py_ssize_t, first=Py_ssize_t, joint=double)
cdef void _join_sites(
    Forest forest, Py_ssize_t i, Py_ssize_t j, double climb_i, double climb_j, Py_ssize_t into, Rows scratch
) noexcept nogil
@cython.locals(d=Py_ssize_t)
cdef void _set_growth(Forest forest, Py_ssize_t slot, double h) noexcept nogil
@cython.locals(d=Py_ssize_t, k=Py_ssize_t)
cpdef void move(Forest forest, Py_ssize_t source, Py_ssize_t target) noexcept nogil
@cython.locals(d=Py_ssize_t, total=double, d2=double)
cpdef double root_log_density(Forest forest, Py_ssize_t i) noexcept nogil

@cython.locals(
    d=Py_ssize_t, below_below=double, below_beyond=double, beyond_beyond=double, below_third=double, beyond_third=double,
    third_third=double,
)
cpdef void load_place(
    Forest forest, Py_ssize_t below, Py_ssize_t beyond, double turn, Py_ssize_t third, Place place
) noexcept nogil
@cython.locals(d=Py_ssize_t, r=Py_ssize_t, first=Py_ssize_t, n=Py_ssize_t, impossible=Py_ssize_t, both=double)
cdef void _load_site_place(Forest forest, Place place) noexcept nogil
@cython.locals(d=Py_ssize_t, k=Py_ssize_t, total=double)
cpdef double log_z_at(Forest forest, Place place, double h) noexcept nogil
@cython.locals(d=Py_ssize_t)
cdef double _stationary_log_z_at(
    Forest forest, Py_ssize_t group, Place place, double up, double down, double across
) noexcept nogil
@cython.locals(scale=double)
cdef double _complete_log_z_at(Forest forest, Place place, double up, double down, double across) noexcept nogil
@cython.locals(d=Py_ssize_t, n=Py_ssize_t)
cdef double _site_log_z_at(Forest forest, Place place, double up, double down, double across) noexcept nogil
