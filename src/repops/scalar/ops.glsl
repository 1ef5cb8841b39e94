// The scalar function ree_op_<name> of every MAP_OP in map_ops.def, for GLSL, which has none for
// REE_HOST_MAP_OPS. Arguments and results are raw bits: uint for class W, uvec2 for class D (x is
// the low word, y the high word). The elementary functions use only integers, unless the shader
// defines macros for them.
//
// Before including this file, a shader may define any of these macros on raw bits:
//     REE_ADD(a, b)  REE_SUB(a, b)  REE_MUL(a, b)  REE_DIV(a, b)  REE_FMA(a, b, c)  REE_SQRT(a)
//     REE_EXP(x)  REE_TANH(x)  REE_SIGMOID(x)  REE_SIN(x)  REE_COS(x)  REE_TAN(x)
// Their results must be correctly rounded, with subnormals kept. A result of the first line may be
// any NaN, because the functions here canonicalise it. Each macro that is not defined becomes the
// integer form, ree_soft_* or ree_int_*. A shader whose macros use ree_soft_* defines REE_GLSL and
// includes "repops/scalar/soft.h" first.
#ifndef REE_SCALAR_OPS_GLSL
#define REE_SCALAR_OPS_GLSL

#ifndef REE_GLSL
#define REE_GLSL
#endif
#include "repops/scalar/ops_shared.h"
#include "repops/scalar/ops_convert.h"
#include "repops/scalar/ops_formats.h"
#include "repops/scalar/elementary.h"
#include "repops/scalar/soft64.h"

#ifndef REE_ADD
#define REE_ADD(a, b) ree_soft_add(a, b)
#endif
#ifndef REE_SUB
#define REE_SUB(a, b) ree_soft_sub(a, b)
#endif
#ifndef REE_MUL
#define REE_MUL(a, b) ree_soft_mul(a, b)
#endif
#ifndef REE_DIV
#define REE_DIV(a, b) ree_soft_div(a, b)
#endif
#ifndef REE_FMA
#define REE_FMA(a, b, c) ree_soft_fma(a, b, c)
#endif
#ifndef REE_SQRT
#define REE_SQRT(a) ree_soft_sqrt(a)
#endif
#ifndef REE_EXP
#define REE_EXP(x) ree_int_exp_f32(x)
#endif
#ifndef REE_TANH
#define REE_TANH(x) ree_int_tanh_f32(x)
#endif
#ifndef REE_SIGMOID
#define REE_SIGMOID(x) ree_int_sigmoid_f32(x)
#endif
#ifndef REE_SIN
#define REE_SIN(x) ree_int_sin_f32(x)
#endif
#ifndef REE_COS
#define REE_COS(x) ree_int_cos_f32(x)
#endif
#ifndef REE_TAN
#define REE_TAN(x) ree_int_tan_f32(x)
#endif

uint ree_op_add_f32(uint a, uint b) { return ree_canon(REE_ADD(a, b)); }
uint ree_op_sub_f32(uint a, uint b) { return ree_canon(REE_SUB(a, b)); }
uint ree_op_mul_f32(uint a, uint b) { return ree_canon(REE_MUL(a, b)); }
uint ree_op_div_f32(uint a, uint b) { return ree_canon(REE_DIV(a, b)); }
uint ree_op_fma_f32(uint a, uint b, uint c) { return ree_canon(REE_FMA(a, b, c)); }
uint ree_op_sqrt_f32(uint x) { return ree_canon(REE_SQRT(x)); }

// The remainder with the sign of b. fmod is exact, so only the addition of b rounds, once.
uint ree_op_mod_f32(uint a, uint b) {
    uint r = ree_int_fmod_f32(a, b);
    if (ree_is_nan(r)) return REE_NAN;
    if (ree_is_zero(r)) return b & REE_SIGN;
    return ((r ^ b) & REE_SIGN) != 0u ? ree_canon(REE_ADD(r, b)) : r;
}

uint ree_op_floor_f32(uint x) { return ree_soft_floor(x); }
uint ree_op_ceil_f32(uint x) { return ree_soft_ceil(x); }
uint ree_op_trunc_f32(uint x) { return ree_soft_trunc(x); }
uint ree_op_round_f32(uint x) { return ree_soft_round(x); }
uint ree_op_i32_to_f32(uint x) { return ree_soft_i32_to_f32(x); }
uint ree_op_u32_to_f32(uint x) { return ree_soft_u32_to_f32(x); }
uint ree_op_i64_to_f32(uvec2 x) { return ree_soft_i64_to_f32(x); }
uint ree_op_u64_to_f32(uvec2 x) { return ree_soft_u64_to_f32(x); }

uvec2 ree_op_add_f64(uvec2 a, uvec2 b) { return ree_f64_soft_add(a, b); }
uvec2 ree_op_sub_f64(uvec2 a, uvec2 b) { return ree_f64_soft_sub(a, b); }
uvec2 ree_op_mul_f64(uvec2 a, uvec2 b) { return ree_f64_soft_mul(a, b); }
uvec2 ree_op_div_f64(uvec2 a, uvec2 b) { return ree_f64_soft_div(a, b); }
uvec2 ree_op_fma_f64(uvec2 a, uvec2 b, uvec2 c) { return ree_f64_soft_fma(a, b, c); }
uvec2 ree_op_sqrt_f64(uvec2 x) { return ree_f64_soft_sqrt(x); }

uint ree_op_pow_f32(uint a, uint b) { return ree_int_pow_f32(a, b); }
uint ree_op_rsqrt_f32(uint x) { return ree_int_rsqrt_f32(x); }
uint ree_op_exp_f32(uint x) { return REE_EXP(x); }
uint ree_op_expm1_f32(uint x) { return ree_int_expm1_f32(x); }
uint ree_op_log_f32(uint x) { return ree_int_log_f32(x); }
uint ree_op_log1p_f32(uint x) { return ree_int_log1p_f32(x); }
uint ree_op_sin_f32(uint x) { return REE_SIN(x); }
uint ree_op_cos_f32(uint x) { return REE_COS(x); }
uint ree_op_tan_f32(uint x) { return REE_TAN(x); }
uint ree_op_asin_f32(uint x) { return ree_int_asin_f32(x); }
uint ree_op_acos_f32(uint x) { return ree_int_acos_f32(x); }
uint ree_op_atan_f32(uint x) { return ree_int_atan_f32(x); }
uint ree_op_sinh_f32(uint x) { return ree_int_sinh_f32(x); }
uint ree_op_cosh_f32(uint x) { return ree_int_cosh_f32(x); }
uint ree_op_tanh_f32(uint x) { return REE_TANH(x); }
uint ree_op_asinh_f32(uint x) { return ree_int_asinh_f32(x); }
uint ree_op_acosh_f32(uint x) { return ree_int_acosh_f32(x); }
uint ree_op_atanh_f32(uint x) { return ree_int_atanh_f32(x); }
uint ree_op_erf_f32(uint x) { return ree_int_erf_f32(x); }
uint ree_op_sigmoid_f32(uint x) { return REE_SIGMOID(x); }
uint ree_op_softplus_f32(uint x) { return ree_int_softplus_f32(x); }

#endif
