// The scalar functions ree_op_<name> for conversions from and to the formats of 8 and 4 bits, for
// conversions that round to odd, and for the operations on float64 that need no arithmetic (sign,
// comparison, minimum, rounding to integral values). C, CUDA C and GLSL share them.
#ifndef REE_SCALAR_OPS_FORMATS_H
#define REE_SCALAR_OPS_FORMATS_H

#include "repops/scalar/f64.h"
#include "repops/scalar/narrow.h"

REE_FN u32 ree_op_narrow_to_f32(u32 x, u32 format) {
    return ree_narrow_to_f32(x, format);
}
REE_FN u32 ree_op_f32_to_narrow(u32 x, u32 format) {
    return ree_f32_to_narrow(x, format);
}
REE_FN u32 ree_op_e8m0_to_f32(u32 x) {
    return ree_e8m0_to_f32(x);
}
REE_FN u32 ree_op_f32_to_e8m0(u32 x, u32 mode) {
    return ree_f32_to_e8m0(x, mode);
}
REE_FN u32 ree_op_f64_to_f32_odd(u64 x) {
    return ree_f64_to_f32_odd(x);
}
REE_FN u32 ree_op_i64_to_f32_odd(u64 x) {
    return ree_i64_to_f32_odd(x);
}
REE_FN u32 ree_op_u64_to_f32_odd(u64 x) {
    return ree_u64_to_f32_odd(x);
}

REE_FN u64 ree_op_neg_f64(u64 x) {
    if (ree_f64_is_nan(x)) return REE_F64_NAN;
    return u64_xor(x, REE_U64(REE_SIGN, 0u));
}
REE_FN u64 ree_op_abs_f64(u64 x) {
    if (ree_f64_is_nan(x)) return REE_F64_NAN;
    return ree_f64_magnitude(x);
}
REE_FN u64 ree_op_min_f64(u64 a, u64 b) {
    return ree_f64_min(a, b);
}
REE_FN u64 ree_op_max_f64(u64 a, u64 b) {
    return ree_f64_max(a, b);
}
REE_FN u64 ree_op_floor_f64(u64 x) {
    return ree_f64_floor(x);
}
REE_FN u64 ree_op_ceil_f64(u64 x) {
    return ree_f64_ceil(x);
}
REE_FN u64 ree_op_trunc_f64(u64 x) {
    return ree_f64_trunc(x);
}
REE_FN u64 ree_op_round_f64(u64 x) {
    return ree_f64_round(x);
}
REE_FN u64 ree_op_sign_f64(u64 x) {
    return ree_f64_sign(x);
}
REE_FN u32 ree_op_eq_f64(u64 a, u64 b) {
    return ree_f64_eq(a, b);
}
REE_FN u32 ree_op_lt_f64(u64 a, u64 b) {
    return ree_f64_lt(a, b);
}
REE_FN u32 ree_op_le_f64(u64 a, u64 b) {
    return ree_f64_le(a, b);
}
REE_FN u32 ree_op_isnan_f64(u64 x) {
    return ree_f64_is_nan(x) ? 1u : 0u;
}
REE_FN u32 ree_op_isposinf_f64(u64 x) {
    return u64_eq(x, REE_F64_INF) ? 1u : 0u;
}
REE_FN u32 ree_op_isneginf_f64(u64 x) {
    return u64_eq(x, REE_U64(0xFFF00000u, 0u)) ? 1u : 0u;
}

#endif
