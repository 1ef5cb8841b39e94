// The scalar functions ree_op_<name> for REE_HOST_MAP_OPS of map_ops.def, only for C: the
// remainders of float64, and the correctly rounded elementary functions of elementary64.h.
#ifndef REE_SCALAR_OPS_HOST_H
#define REE_SCALAR_OPS_HOST_H

#include "repops/elementary64.h"
#include "repops/scalar/ops_f64.h"

#include <math.h>

static inline uint64_t ree_op_fmod_f64(uint64_t a, uint64_t b) {
    return ree_double_result(fmod(ree_from_double_bits(a), ree_from_double_bits(b)));
}
// The remainder with the sign of b. fmod is exact, so only the addition of b rounds, once.
static inline uint64_t ree_op_mod_f64(uint64_t a, uint64_t b) {
    double y = ree_from_double_bits(b), r = fmod(ree_from_double_bits(a), y);
    if (r == 0)
        r = copysign(0, y);
    else if ((r < 0) != (y < 0))
        r = r + y;
    return ree_double_result(r);
}

#define REE_BY_MPFR(name)                                                                          \
    static inline uint64_t ree_op_##name##_f64(uint64_t x) {                                       \
        return ree_double_result(ree_exact_##name(ree_from_double_bits(x)));                       \
    }
REE_BY_MPFR(rsqrt)
REE_BY_MPFR(exp)
REE_BY_MPFR(expm1)
REE_BY_MPFR(log)
REE_BY_MPFR(log1p)
REE_BY_MPFR(sin)
REE_BY_MPFR(cos)
REE_BY_MPFR(tan)
REE_BY_MPFR(asin)
REE_BY_MPFR(acos)
REE_BY_MPFR(atan)
REE_BY_MPFR(sinh)
REE_BY_MPFR(cosh)
REE_BY_MPFR(tanh)
REE_BY_MPFR(asinh)
REE_BY_MPFR(acosh)
REE_BY_MPFR(atanh)
REE_BY_MPFR(erf)
REE_BY_MPFR(sigmoid)
REE_BY_MPFR(softplus)
static inline uint64_t ree_op_pow_f64(uint64_t a, uint64_t b) {
    return ree_double_result(ree_exact_pow(ree_from_double_bits(a), ree_from_double_bits(b)));
}

#endif
