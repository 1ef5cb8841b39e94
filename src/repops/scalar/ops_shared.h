// The scalar functions ree_op_<name> that C, CUDA C and GLSL share: integer operations, and
// the operations on float32 that do not round. ops.h and ops.glsl define the functions whose form
// depends on the language.
#ifndef REE_SCALAR_OPS_SHARED_H
#define REE_SCALAR_OPS_SHARED_H

#include "repops/scalar/convert.h"
#include "repops/scalar/integer.h"
#include "repops/scalar/philox.h"

REE_FN u32 ree_op_neg_f32(u32 x) {
    return ree_is_nan(x) ? REE_NAN : x ^ REE_SIGN;
}
REE_FN u32 ree_op_abs_f32(u32 x) {
    return ree_is_nan(x) ? REE_NAN : x & 0x7FFFFFFFu;
}
REE_FN u32 ree_op_min_f32(u32 a, u32 b) {
    return ree_soft_min(a, b);
}
REE_FN u32 ree_op_max_f32(u32 a, u32 b) {
    return ree_soft_max(a, b);
}
REE_FN u32 ree_op_fmod_f32(u32 a, u32 b) {
    return ree_int_fmod_f32(a, b);
}
REE_FN u32 ree_op_sign_f32(u32 x) {
    if (ree_is_nan(x)) return REE_NAN;
    return ree_is_zero(x) ? 0u : (x & REE_SIGN) | REE_ONE;
}
REE_FN u32 ree_op_eq_f32(u32 a, u32 b) {
    return ree_soft_eq(a, b);
}
REE_FN u32 ree_op_lt_f32(u32 a, u32 b) {
    return ree_soft_lt(a, b);
}
REE_FN u32 ree_op_le_f32(u32 a, u32 b) {
    return ree_soft_le(a, b);
}
REE_FN u32 ree_op_isnan_f32(u32 x) {
    return ree_is_nan(x) ? 1u : 0u;
}
REE_FN u32 ree_op_isposinf_f32(u32 x) {
    return x == REE_INF ? 1u : 0u;
}
REE_FN u32 ree_op_isneginf_f32(u32 x) {
    return x == (REE_INF | REE_SIGN) ? 1u : 0u;
}

REE_FN u32 ree_op_add_i32(u32 a, u32 b) {
    return a + b;
}
REE_FN u32 ree_op_sub_i32(u32 a, u32 b) {
    return a - b;
}
REE_FN u32 ree_op_mul_i32(u32 a, u32 b) {
    return a * b;
}
REE_FN u32 ree_op_div_i32(u32 a, u32 b) {
    return ree_div_i32(a, b);
}
REE_FN u32 ree_op_div_u32(u32 a, u32 b) {
    return ree_div_u32(a, b);
}
REE_FN u32 ree_op_mod_i32(u32 a, u32 b) {
    return ree_mod_i32(a, b);
}
REE_FN u32 ree_op_fmod_i32(u32 a, u32 b) {
    return ree_fmod_i32(a, b);
}
REE_FN u32 ree_op_mod_u32(u32 a, u32 b) {
    return ree_mod_u32(a, b);
}
REE_FN u32 ree_op_pow_i32(u32 a, u32 b) {
    return ree_pow_i32(a, b);
}
REE_FN u32 ree_op_pow_u32(u32 a, u32 b) {
    return ree_pow_u32(a, b);
}
REE_FN u32 ree_op_neg_i32(u32 a) {
    return 0u - a;
}
REE_FN u32 ree_op_abs_i32(u32 a) {
    return ree_abs32(a);
}
REE_FN u32 ree_op_sign_i32(u32 a) {
    return (a & REE_SIGN) != 0u ? 0xFFFFFFFFu : (a != 0u ? 1u : 0u);
}
REE_FN u32 ree_op_min_i32(u32 a, u32 b) {
    return ree_slt32(a, b) ? a : b;
}
REE_FN u32 ree_op_max_i32(u32 a, u32 b) {
    return ree_slt32(a, b) ? b : a;
}
REE_FN u32 ree_op_min_u32(u32 a, u32 b) {
    return a < b ? a : b;
}
REE_FN u32 ree_op_max_u32(u32 a, u32 b) {
    return a < b ? b : a;
}
REE_FN u32 ree_op_eq_i32(u32 a, u32 b) {
    return a == b ? 1u : 0u;
}
REE_FN u32 ree_op_lt_i32(u32 a, u32 b) {
    return ree_slt32(a, b) ? 1u : 0u;
}
REE_FN u32 ree_op_le_i32(u32 a, u32 b) {
    return ree_slt32(b, a) ? 0u : 1u;
}
REE_FN u32 ree_op_lt_u32(u32 a, u32 b) {
    return a < b ? 1u : 0u;
}
REE_FN u32 ree_op_le_u32(u32 a, u32 b) {
    return a <= b ? 1u : 0u;
}
REE_FN u32 ree_op_and_b32(u32 a, u32 b) {
    return a & b;
}
REE_FN u32 ree_op_or_b32(u32 a, u32 b) {
    return a | b;
}
REE_FN u32 ree_op_xor_b32(u32 a, u32 b) {
    return a ^ b;
}
REE_FN u32 ree_op_not_b32(u32 a) {
    return ~a;
}
REE_FN u32 ree_op_shl_b32(u32 a, u32 n) {
    return ree_shl32(a, n);
}
REE_FN u32 ree_op_shr_b32(u32 a, u32 n) {
    return ree_shr32(a, n);
}
REE_FN u32 ree_op_wrap_i8(u32 a) {
    return ree_wrap_i8(a);
}
REE_FN u32 ree_op_wrap_u8(u32 a) {
    return a & 255u;
}
REE_FN u32 ree_op_wrap_i16(u32 a) {
    return ree_wrap_i16(a);
}
REE_FN u32 ree_op_wrap_u16(u32 a) {
    return a & 65535u;
}

REE_FN u64 ree_op_add_i64(u64 a, u64 b) {
    return u64_add(a, b);
}
REE_FN u64 ree_op_sub_i64(u64 a, u64 b) {
    return u64_sub(a, b);
}
REE_FN u64 ree_op_mul_i64(u64 a, u64 b) {
    return u64_mul(a, b);
}
REE_FN u64 ree_op_div_i64(u64 a, u64 b) {
    return ree_div_i64(a, b);
}
REE_FN u64 ree_op_div_u64(u64 a, u64 b) {
    return ree_div_u64(a, b);
}
REE_FN u64 ree_op_mod_i64(u64 a, u64 b) {
    return ree_mod_i64(a, b);
}
REE_FN u64 ree_op_fmod_i64(u64 a, u64 b) {
    return ree_fmod_i64(a, b);
}
REE_FN u64 ree_op_mod_u64(u64 a, u64 b) {
    return ree_mod_u64(a, b);
}
REE_FN u64 ree_op_pow_i64(u64 a, u64 b) {
    return ree_pow_i64(a, b);
}
REE_FN u64 ree_op_pow_u64(u64 a, u64 b) {
    return ree_pow_u64(a, b);
}
REE_FN u64 ree_op_neg_i64(u64 a) {
    return u64_neg(a);
}
REE_FN u64 ree_op_abs_i64(u64 a) {
    return ree_abs64(a);
}
REE_FN u64 ree_op_sign_i64(u64 a) {
    if (ree_neg64(a)) return REE_U64(0xFFFFFFFFu, 0xFFFFFFFFu);
    return u64_from32(u64_is_zero(a) ? 0u : 1u);
}
REE_FN u64 ree_op_min_i64(u64 a, u64 b) {
    return u64_slt(a, b) ? a : b;
}
REE_FN u64 ree_op_max_i64(u64 a, u64 b) {
    return u64_slt(a, b) ? b : a;
}
REE_FN u64 ree_op_min_u64(u64 a, u64 b) {
    return u64_lt(a, b) ? a : b;
}
REE_FN u64 ree_op_max_u64(u64 a, u64 b) {
    return u64_lt(a, b) ? b : a;
}
REE_FN u32 ree_op_eq_i64(u64 a, u64 b) {
    return u64_eq(a, b) ? 1u : 0u;
}
REE_FN u32 ree_op_lt_i64(u64 a, u64 b) {
    return u64_slt(a, b) ? 1u : 0u;
}
REE_FN u32 ree_op_le_i64(u64 a, u64 b) {
    return u64_slt(b, a) ? 0u : 1u;
}
REE_FN u32 ree_op_lt_u64(u64 a, u64 b) {
    return u64_lt(a, b) ? 1u : 0u;
}
REE_FN u32 ree_op_le_u64(u64 a, u64 b) {
    return u64_lt(b, a) ? 0u : 1u;
}
REE_FN u64 ree_op_and_b64(u64 a, u64 b) {
    return u64_and(a, b);
}
REE_FN u64 ree_op_or_b64(u64 a, u64 b) {
    return u64_or(a, b);
}
REE_FN u64 ree_op_xor_b64(u64 a, u64 b) {
    return u64_xor(a, b);
}
REE_FN u64 ree_op_not_b64(u64 a) {
    return u64_not(a);
}
REE_FN u64 ree_op_shl_b64(u64 a, u64 n) {
    return ree_shl64(a, n);
}
REE_FN u64 ree_op_shr_b64(u64 a, u64 n) {
    return ree_shr64(a, n);
}

REE_FN u32 ree_op_select_b32(u32 a, u32 b, u32 c) {
    return a != 0u ? b : c;
}
REE_FN u64 ree_op_select_b64(u32 a, u64 b, u64 c) {
    return a != 0u ? b : c;
}

REE_FN u64 ree_op_i32_to_i64(u32 x) {
    return REE_U64((x & REE_SIGN) != 0u ? 0xFFFFFFFFu : 0u, x);
}
REE_FN u64 ree_op_u32_to_i64(u32 x) {
    return u64_from32(x);
}
REE_FN u32 ree_op_i64_to_i32(u64 x) {
    return u64_lo(x);
}
REE_FN u32 ree_op_bf16_to_f32(u32 x) {
    return ree_soft_bf16_to_f32(x);
}
REE_FN u32 ree_op_f32_to_bf16(u32 x) {
    return ree_soft_f32_to_bf16(x);
}

#endif
