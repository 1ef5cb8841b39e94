#define REE_SCALAR_LIMBS
#include "repops/scalar/elementary.h"
#include "repops/scalar/ops_shared.h"
#include "repops/scalar/soft64.h"

#include "limbs.h"

static u64 split(uint64_t v) {
    return REE_U64((u32)(v >> 32), (u32)v);
}
static uint64_t join(u64 v) {
    return (uint64_t)v.y << 32 | v.x;
}

uint32_t limbs_elementary(enum limbs_function function, uint32_t x) {
    switch (function) {
#define CASE(name)                                                                                 \
    case LIMBS_##name: return ree_int_##name##_f32(x);
        CASE(rsqrt)
        CASE(exp)
        CASE(expm1)
        CASE(log)
        CASE(log1p) CASE(sin) CASE(cos) CASE(tan) CASE(asin) CASE(acos) CASE(atan) CASE(sinh)
            CASE(cosh) CASE(tanh) CASE(asinh) CASE(acosh) CASE(atanh) CASE(erf) CASE(sigmoid)
                CASE(softplus)
    }
    return 0;
}

uint32_t limbs_pow(uint32_t x, uint32_t y) {
    return ree_int_pow_f32(x, y);
}
uint64_t limbs_philox(uint64_t counter, uint64_t key) {
    return join(ree_op_philox_b64(split(counter), split(key)));
}
uint32_t limbs_fma(uint32_t a, uint32_t b, uint32_t c) {
    return ree_soft_fma(a, b, c);
}

uint64_t limbs_f64(enum limbs_f64_op op, uint64_t a, uint64_t b, uint64_t c) {
    u64 x = split(a), y = split(b), z = split(c);
    switch (op) {
    case LIMBS_f64_add: return join(ree_f64_soft_add(x, y));
    case LIMBS_f64_mul: return join(ree_f64_soft_mul(x, y));
    case LIMBS_f64_div: return join(ree_f64_soft_div(x, y));
    case LIMBS_f64_sqrt: return join(ree_f64_soft_sqrt(x));
    case LIMBS_f64_fma: return join(ree_f64_soft_fma(x, y, z));
    }
    return 0;
}

uint64_t limbs_op(enum limbs_op op, uint64_t a, uint64_t b) {
    u64 x = split(a), y = split(b);
    switch (op) {
    case LIMBS_add: return join(ree_op_add_i64(x, y));
    case LIMBS_sub: return join(ree_op_sub_i64(x, y));
    case LIMBS_mul: return join(ree_op_mul_i64(x, y));
    case LIMBS_div_i: return join(ree_op_div_i64(x, y));
    case LIMBS_div_u: return join(ree_op_div_u64(x, y));
    case LIMBS_mod_i: return join(ree_op_mod_i64(x, y));
    case LIMBS_fmod_i: return join(ree_op_fmod_i64(x, y));
    case LIMBS_mod_u: return join(ree_op_mod_u64(x, y));
    case LIMBS_pow_i: return join(ree_op_pow_i64(x, y));
    case LIMBS_pow_u: return join(ree_op_pow_u64(x, y));
    case LIMBS_min_i: return join(ree_op_min_i64(x, y));
    case LIMBS_max_i: return join(ree_op_max_i64(x, y));
    case LIMBS_min_u: return join(ree_op_min_u64(x, y));
    case LIMBS_max_u: return join(ree_op_max_u64(x, y));
    case LIMBS_lt_i: return ree_op_lt_i64(x, y);
    case LIMBS_le_i: return ree_op_le_i64(x, y);
    case LIMBS_lt_u: return ree_op_lt_u64(x, y);
    case LIMBS_le_u: return ree_op_le_u64(x, y);
    case LIMBS_eq: return ree_op_eq_i64(x, y);
    case LIMBS_and: return join(ree_op_and_b64(x, y));
    case LIMBS_or: return join(ree_op_or_b64(x, y));
    case LIMBS_xor: return join(ree_op_xor_b64(x, y));
    case LIMBS_shl: return join(ree_op_shl_b64(x, y));
    case LIMBS_shr: return join(ree_op_shr_b64(x, y));
    case LIMBS_mulh: return join(u64_mulh(x, y));
    case LIMBS_N_OPS: break;
    }
    return 0;
}

uint64_t limbs_unary(enum limbs_unary op, uint64_t a) {
    u64 x = split(a);
    switch (op) {
    case LIMBS_neg: return join(ree_op_neg_i64(x));
    case LIMBS_abs: return join(ree_op_abs_i64(x));
    case LIMBS_sign: return join(ree_op_sign_i64(x));
    case LIMBS_not: return join(ree_op_not_b64(x));
    case LIMBS_clz: return u64_clz(x);
    case LIMBS_to_f32_i: return ree_soft_i64_to_f32(x);
    case LIMBS_to_f32_u: return ree_soft_u64_to_f32(x);
    case LIMBS_from_i32: return join(ree_op_i32_to_i64(u64_lo(x)));
    case LIMBS_from_u32: return join(ree_op_u32_to_i64(u64_lo(x)));
    case LIMBS_low: return ree_op_i64_to_i32(x);
    case LIMBS_from_f32_i: return join(ree_soft_f32_to_i64(u64_lo(x)));
    case LIMBS_from_f32_u: return join(ree_soft_f32_to_u64(u64_lo(x)));
    case LIMBS_N_UNARY: break;
    }
    return 0;
}
