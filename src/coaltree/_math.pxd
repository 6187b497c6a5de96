# What compiled kernels use in place of Python's math module.
cdef extern from "<math.h>" nogil:
    double asinh(double)
    double exp(double)
    double expm1(double)
    double inf "INFINITY"
    bint isnan(double)
    double log(double)
    double log1p(double)
    double nan "NAN"
    double nextafter(double, double)
    double sinh(double)
    double sqrt(double)

cdef extern from * nogil:
    """
    #include <stdint.h>
    #include <string.h>
    #define COALTREE_ROUNDER 6755399441055744.0
    /* The bits of 2^k from those of k + ROUNDER: no branch and no call, so that loops over it are vectorised. */
    static inline double coaltree_two_to(double rounded) {
        int64_t bits;
        double power;
        memcpy(&bits, &rounded, sizeof bits);
        bits = (int64_t)((uint64_t)bits << 52) + ((int64_t)1023 << 52);
        memcpy(&power, &bits, sizeof power);
        return power;
    }
    /* A positive normal x is 2^k m with m from the root of 1/2 to the root of 2. Adding the difference of the bits of 1 and of the
       root of 1/2 carries into the exponent where m would be larger; k + 1023 stands in the low bits of 2^52 + 1023 + k. */
    #define COALTREE_ROOT_HALF 0x3FE6A09E667F3BCDULL
    #define COALTREE_ONE 0x3FF0000000000000ULL
    static inline uint64_t coaltree_raised(double x) {
        uint64_t bits;
        memcpy(&bits, &x, sizeof bits);
        return bits + (COALTREE_ONE - COALTREE_ROOT_HALF);
    }
    static inline double coaltree_exponent_of(double x) {
        uint64_t bits = (coaltree_raised(x) >> 52) | 0x4330000000000000ULL;
        double shifted;
        memcpy(&shifted, &bits, sizeof shifted);
        return shifted - 4503599627371519.0; /* 2^52 + 1023 */
    }
    static inline double coaltree_mantissa_of(double x) {
        uint64_t bits = (coaltree_raised(x) & 0x000FFFFFFFFFFFFFULL) + COALTREE_ROOT_HALF;
        double m;
        memcpy(&m, &bits, sizeof m);
        return m;
    }
    """
    double ROUNDER "COALTREE_ROUNDER"
    double two_to "coaltree_two_to"(double)
    double exponent_of "coaltree_exponent_of"(double)
    double mantissa_of "coaltree_mantissa_of"(double)
