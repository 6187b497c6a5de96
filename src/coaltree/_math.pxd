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
    """
    double ROUNDER "COALTREE_ROUNDER"
    double two_to "coaltree_two_to"(double)
