// ree_op_<name> for every MAP_OP in C, on raw bits: class W is uint32_t, class D uint64_t. Inline,
// and free of branches where it matters, so that loops over arrays of them vectorise.
//
// Compile with -ffp-contract=off and without fast-math: the double arithmetic of the elementary
// functions is proven for exactly the operations written.
#ifndef REE_SCALAR_OPS_H
#define REE_SCALAR_OPS_H

#include "repops/scalar/ops_shared.h"

#include <math.h>
#include <string.h>

static inline float ree_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline uint32_t ree_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
// The bits of a result, any NaN as 0x7FC00000.
static inline uint32_t ree_result(float x) {
    uint32_t bits = ree_bits(x);
    return x != x ? REE_NAN : bits;
}

static inline uint32_t ree_op_add_f32(uint32_t a, uint32_t b) {
    return ree_result(ree_float(a) + ree_float(b));
}
static inline uint32_t ree_op_sub_f32(uint32_t a, uint32_t b) {
    return ree_result(ree_float(a) - ree_float(b));
}
static inline uint32_t ree_op_mul_f32(uint32_t a, uint32_t b) {
    return ree_result(ree_float(a) * ree_float(b));
}
static inline uint32_t ree_op_div_f32(uint32_t a, uint32_t b) {
    return ree_result(ree_float(a) / ree_float(b));
}
static inline uint32_t ree_op_fma_f32(uint32_t a, uint32_t b, uint32_t c) {
    return ree_result(fmaf(ree_float(a), ree_float(b), ree_float(c)));
}
static inline uint32_t ree_op_sqrt_f32(uint32_t x) {
    return ree_result(sqrtf(ree_float(x)));
}

// The divisor's sign: fmod is exact, so that the addition rounds the true remainder once.
static inline uint32_t ree_op_mod_f32(uint32_t a, uint32_t b) {
    uint32_t r = ree_int_fmod_f32(a, b);
    if (ree_is_nan(r)) return REE_NAN;
    if (ree_is_zero(r)) return b & REE_SIGN;
    return ((r ^ b) & REE_SIGN) != 0 ? ree_op_add_f32(r, b) : r;
}

static inline uint32_t ree_op_floor_f32(uint32_t x) {
    return ree_result(floorf(ree_float(x)));
}
static inline uint32_t ree_op_ceil_f32(uint32_t x) {
    return ree_result(ceilf(ree_float(x)));
}
static inline uint32_t ree_op_trunc_f32(uint32_t x) {
    return ree_result(truncf(ree_float(x)));
}
static inline uint32_t ree_op_round_f32(uint32_t x) {
    return ree_result(rintf(ree_float(x)));
}
static inline uint32_t ree_op_i32_to_f32(uint32_t x) {
    return ree_bits((float)(int32_t)x);
}
static inline uint32_t ree_op_u32_to_f32(uint32_t x) {
    return ree_bits((float)x);
}
static inline uint32_t ree_op_i64_to_f32(uint64_t x) {
    return ree_bits((float)(int64_t)x);
}
static inline uint32_t ree_op_u64_to_f32(uint64_t x) {
    return ree_bits((float)x);
}

#define REE_BY_LIBM(name, expression)                                                              \
    static inline uint32_t ree_op_##name##_f32(uint32_t bits) {                                    \
        double x = ree_float(bits);                                                                \
        return ree_result((float)(expression));                                                    \
    }
REE_BY_LIBM(rsqrt, 1 / sqrt(x))
REE_BY_LIBM(exp, exp(x))
REE_BY_LIBM(expm1, expm1(x))
REE_BY_LIBM(log, log(x))
REE_BY_LIBM(log1p, log1p(x))
REE_BY_LIBM(sin, sin(x))
REE_BY_LIBM(cos, cos(x))
REE_BY_LIBM(tan, tan(x))
REE_BY_LIBM(asin, asin(x))
REE_BY_LIBM(acos, acos(x))
REE_BY_LIBM(atan, atan(x))
REE_BY_LIBM(sinh, sinh(x))
REE_BY_LIBM(cosh, cosh(x))
REE_BY_LIBM(tanh, tanh(x))
REE_BY_LIBM(asinh, asinh(x))
REE_BY_LIBM(acosh, acosh(x))
REE_BY_LIBM(atanh, atanh(x))
REE_BY_LIBM(erf, erf(x))
REE_BY_LIBM(sigmoid, 1 / (1 + exp(-x)))
REE_BY_LIBM(softplus, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))
static inline uint32_t ree_op_pow_f32(uint32_t a, uint32_t b) {
    return ree_result((float)pow(ree_float(a), ree_float(b)));
}

#endif
