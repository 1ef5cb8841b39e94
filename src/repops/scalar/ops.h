// The scalar function ree_op_<name> of every MAP_OP in map_ops.def, for C and CUDA C; CUDA C has
// none for REE_HOST_MAP_OPS. Arguments and results are raw bits, uint32_t for class W and uint64_t
// for class D. The functions are inline, and frequent ones have no branches, so that loops over
// arrays vectorise.
//
// Compile with -ffp-contract=off and without fast-math: the double arithmetic of the elementary
// functions is proven for exactly the operations that the source writes.
#ifndef REE_SCALAR_OPS_H
#define REE_SCALAR_OPS_H

#include "repops/scalar/elementary.h"
#include "repops/scalar/ops_f64.h"
#include "repops/scalar/ops_formats.h"
#include "repops/scalar/ops_shared.h"
#include "repops/scalar/exceptions.h"
#include "repops/scalar/fast_pow.h"
#include "repops/scalar/fast_trig.h"
#ifdef __cplusplus // CUDA C, for nvcc or for the emulator of tests
#include "repops/scalar/ops_convert.h"
#else
#include "repops/scalar/ops_convert_host.h"
#endif
#ifndef __CUDACC__
#include "repops/scalar/ops_host.h"
#endif

#ifdef __FAST_MATH__
#error "the arithmetic of RepOps is defined operation by operation: no fast-math"
#endif

REE_FN uint32_t ree_op_add_f32(uint32_t a, uint32_t b) {
    return ree_result(ree_float(a) + ree_float(b));
}
REE_FN uint32_t ree_op_sub_f32(uint32_t a, uint32_t b) {
    return ree_result(ree_float(a) - ree_float(b));
}
REE_FN uint32_t ree_op_mul_f32(uint32_t a, uint32_t b) {
    return ree_result(ree_float(a) * ree_float(b));
}
REE_FN uint32_t ree_op_div_f32(uint32_t a, uint32_t b) {
    return ree_result(ree_float(a) / ree_float(b));
}
REE_FN uint32_t ree_op_fma_f32(uint32_t a, uint32_t b, uint32_t c) {
    return ree_result(fmaf(ree_float(a), ree_float(b), ree_float(c)));
}
REE_FN uint32_t ree_op_sqrt_f32(uint32_t x) {
    return ree_result(sqrtf(ree_float(x)));
}

// The remainder with the sign of b. fmod is exact, so only the addition of b rounds, once.
REE_FN uint32_t ree_op_mod_f32(uint32_t a, uint32_t b) {
    uint32_t r = ree_int_fmod_f32(a, b);
    if (ree_is_nan(r)) return REE_NAN;
    if (ree_is_zero(r)) return b & REE_SIGN;
    return ((r ^ b) & REE_SIGN) != 0 ? ree_op_add_f32(r, b) : r;
}

REE_FN uint32_t ree_op_floor_f32(uint32_t x) {
    return ree_result(floorf(ree_float(x)));
}
REE_FN uint32_t ree_op_ceil_f32(uint32_t x) {
    return ree_result(ceilf(ree_float(x)));
}
REE_FN uint32_t ree_op_trunc_f32(uint32_t x) {
    return ree_result(truncf(ree_float(x)));
}
REE_FN uint32_t ree_op_round_f32(uint32_t x) {
    return ree_result(rintf(ree_float(x)));
}
REE_FN uint32_t ree_op_i32_to_f32(uint32_t x) {
    return ree_bits((float)(int32_t)x);
}
REE_FN uint32_t ree_op_u32_to_f32(uint32_t x) {
    return ree_bits((float)x);
}
REE_FN uint32_t ree_op_i64_to_f32(uint64_t x) {
    return ree_bits((float)(int64_t)x);
}
REE_FN uint32_t ree_op_u64_to_f32(uint64_t x) {
    return ree_bits((float)x);
}

#define REE_BY_DOUBLES(name)                                                                       \
    REE_FN uint32_t ree_op_##name##_f32(uint32_t x) {                                              \
        return ree_fast_##name##_f32(x);                                                           \
    }
#define REE_BY_DOUBLES_EXCEPT(name)                                                                \
    REE_FN uint32_t ree_op_##name##_f32(uint32_t x) {                                              \
        return ree_except_##name(x, ree_fast_##name##_f32(x));                                     \
    }
#define REE_BY_INTEGERS(name)                                                                      \
    REE_FN uint32_t ree_op_##name##_f32(uint32_t x) {                                              \
        return ree_int_##name##_f32(x);                                                            \
    }
REE_BY_DOUBLES(rsqrt)
REE_BY_DOUBLES(exp)
REE_BY_DOUBLES(expm1)
REE_BY_DOUBLES_EXCEPT(log)
REE_BY_DOUBLES(tanh)
REE_BY_DOUBLES(erf)
REE_BY_DOUBLES_EXCEPT(sigmoid)
REE_BY_DOUBLES_EXCEPT(softplus)
REE_BY_INTEGERS(log1p)
REE_BY_DOUBLES(sin)
REE_BY_DOUBLES(cos)
REE_BY_DOUBLES(tan)
REE_BY_INTEGERS(asin)
REE_BY_INTEGERS(acos)
REE_BY_INTEGERS(atan)
REE_BY_INTEGERS(sinh)
REE_BY_INTEGERS(cosh)
REE_BY_INTEGERS(asinh)
REE_BY_INTEGERS(acosh)
REE_BY_INTEGERS(atanh)
REE_FN uint32_t ree_op_pow_f32(uint32_t a, uint32_t b) {
    return REE_FAST_POW_EXPONENT(b) ? ree_fast_pow_f32(a, b) : ree_int_pow_f32(a, b);
}

#endif
