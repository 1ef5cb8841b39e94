// The scalar functions of repops/scalar, compiled with the type u64 as a pair of 32-bit words, as
// in GLSL. Tests compare them with the C form. Float arguments and results are passed as their
// bits.
#ifndef REE_TESTS_REPOPS_LIMBS_H
#define REE_TESTS_REPOPS_LIMBS_H

#include <stdint.h>

enum limbs_function {
    LIMBS_rsqrt,
    LIMBS_exp,
    LIMBS_expm1,
    LIMBS_log,
    LIMBS_log1p,
    LIMBS_sin,
    LIMBS_cos,
    LIMBS_tan,
    LIMBS_asin,
    LIMBS_acos,
    LIMBS_atan,
    LIMBS_sinh,
    LIMBS_cosh,
    LIMBS_tanh,
    LIMBS_asinh,
    LIMBS_acosh,
    LIMBS_atanh,
    LIMBS_erf,
    LIMBS_sigmoid,
    LIMBS_softplus,
};
uint32_t limbs_elementary(enum limbs_function function, uint32_t x);
uint32_t limbs_pow(uint32_t x, uint32_t y);
uint64_t limbs_philox(uint64_t counter, uint64_t key);
uint32_t limbs_fma(uint32_t a, uint32_t b, uint32_t c);

// float64 arithmetic in integers. Arguments and results are float64 bits. add, mul and div use a
// and b, sqrt uses a, fma computes a * b + c.
enum limbs_f64_op { LIMBS_f64_add, LIMBS_f64_mul, LIMBS_f64_div, LIMBS_f64_sqrt, LIMBS_f64_fma };
uint64_t limbs_f64(enum limbs_f64_op op, uint64_t a, uint64_t b, uint64_t c);

// Two-argument operations on 64-bit integers. Names ending in _i are signed, in _u unsigned.
// Comparisons return 0 or 1. mulh returns the upper 64 bits of the unsigned product.
enum limbs_op {
    LIMBS_add,
    LIMBS_sub,
    LIMBS_mul,
    LIMBS_div_i,
    LIMBS_div_u,
    LIMBS_mod_i,
    LIMBS_fmod_i,
    LIMBS_mod_u,
    LIMBS_pow_i,
    LIMBS_pow_u,
    LIMBS_min_i,
    LIMBS_max_i,
    LIMBS_min_u,
    LIMBS_max_u,
    LIMBS_lt_i,
    LIMBS_le_i,
    LIMBS_lt_u,
    LIMBS_le_u,
    LIMBS_eq,
    LIMBS_and,
    LIMBS_or,
    LIMBS_xor,
    LIMBS_shl,
    LIMBS_shr,
    LIMBS_mulh,
    LIMBS_N_OPS,
};
uint64_t limbs_op(enum limbs_op op, uint64_t a, uint64_t b);

// One-argument operations on 64-bit integers, and conversions.
enum limbs_unary {
    LIMBS_neg,
    LIMBS_abs,
    LIMBS_sign,
    LIMBS_not,
    LIMBS_clz,
    LIMBS_to_f32_i,
    LIMBS_to_f32_u,
    LIMBS_from_i32,
    LIMBS_from_u32,
    LIMBS_low,
    LIMBS_from_f32_i,
    LIMBS_from_f32_u,
    LIMBS_N_UNARY,
};
uint64_t limbs_unary(enum limbs_unary op, uint64_t a);

#endif
