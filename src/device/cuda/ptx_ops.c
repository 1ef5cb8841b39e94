// Operations that are written as a few PTX instructions.
#include "device/cuda/ptx_ops.h"

// $d: the result; $a $b $c: the arguments; $p: a predicate; $t: a 32-bit word; $T: a 64-bit word;
// $h: a 16-bit word. Results are rounded by the suffix .rn. No instruction has .ftz, so subnormals
// are kept.
//
// FLOATS: the result is a float whose NaN may still have any bits.
#define FLOATS true
#define NAN_OF(x) "setp.nan.f32 $p, " x ", " x ";\n"
#define CANON32 "selp.b32 $d, 0x7FC00000, $t, $p;"
#define BOOL "selp.b32 $d, 1, 0, $p;"
#define COMPARE(condition, type) "setp." condition "." type " $p, $a, $b;\n" BOOL

const struct ree_cuda_ptx_op ree_cuda_ptx_ops[REE_N_MAP_OPS] = {
    [REE_MAP_add_f32] = {"add.rn.f32 $d, $a, $b;", FLOATS},
    [REE_MAP_sub_f32] = {"sub.rn.f32 $d, $a, $b;", FLOATS},
    [REE_MAP_mul_f32] = {"mul.rn.f32 $d, $a, $b;", FLOATS},
    [REE_MAP_div_f32] = {"div.rn.f32 $d, $a, $b;", FLOATS},
    [REE_MAP_fma_f32] = {"fma.rn.f32 $d, $a, $b, $c;", FLOATS},
    [REE_MAP_sqrt_f32] = {"sqrt.rn.f32 $d, $a;", FLOATS},
    [REE_MAP_neg_f32] = {"xor.b32 $d, $a, 0x80000000;", FLOATS},
    [REE_MAP_abs_f32] = {"and.b32 $d, $a, 0x7FFFFFFF;", FLOATS},
    // For two zeros of different sign, min returns -0 and max returns +0. For a NaN and a number
    // PTX returns the number; the selection below returns the NaN instead.
    [REE_MAP_min_f32] = {"min.f32 $t, $a, $b;\nsetp.nan.f32 $p, $a, $b;\n" CANON32, false},
    [REE_MAP_max_f32] = {"max.f32 $t, $a, $b;\nsetp.nan.f32 $p, $a, $b;\n" CANON32, false},
    [REE_MAP_floor_f32] = {"cvt.rmi.f32.f32 $d, $a;", FLOATS},
    [REE_MAP_ceil_f32] = {"cvt.rpi.f32.f32 $d, $a;", FLOATS},
    [REE_MAP_trunc_f32] = {"cvt.rzi.f32.f32 $d, $a;", FLOATS},
    [REE_MAP_round_f32] = {"cvt.rni.f32.f32 $d, $a;", FLOATS},
    [REE_MAP_eq_f32] = {COMPARE("eq", "f32"), false},
    [REE_MAP_lt_f32] = {COMPARE("lt", "f32"), false},
    [REE_MAP_le_f32] = {COMPARE("le", "f32"), false},
    [REE_MAP_isnan_f32] = {NAN_OF("$a") BOOL, false},
    [REE_MAP_isposinf_f32] = {"setp.eq.b32 $p, $a, 0x7F800000;\n" BOOL, false},
    [REE_MAP_isneginf_f32] = {"setp.eq.b32 $p, $a, 0xFF800000;\n" BOOL, false},

    [REE_MAP_add_i32] = {"add.s32 $d, $a, $b;", false},
    [REE_MAP_sub_i32] = {"sub.s32 $d, $a, $b;", false},
    [REE_MAP_mul_i32] = {"mul.lo.s32 $d, $a, $b;", false},
    [REE_MAP_neg_i32] = {"neg.s32 $d, $a;", false},
    [REE_MAP_abs_i32] = {"abs.s32 $d, $a;", false},
    [REE_MAP_sign_i32] = {"min.s32 $t, $a, 1;\nmax.s32 $d, $t, -1;", false},
    [REE_MAP_min_i32] = {"min.s32 $d, $a, $b;", false},
    [REE_MAP_max_i32] = {"max.s32 $d, $a, $b;", false},
    [REE_MAP_min_u32] = {"min.u32 $d, $a, $b;", false},
    [REE_MAP_max_u32] = {"max.u32 $d, $a, $b;", false},
    [REE_MAP_eq_i32] = {COMPARE("eq", "s32"), false},
    [REE_MAP_lt_i32] = {COMPARE("lt", "s32"), false},
    [REE_MAP_le_i32] = {COMPARE("le", "s32"), false},
    [REE_MAP_lt_u32] = {COMPARE("lt", "u32"), false},
    [REE_MAP_le_u32] = {COMPARE("le", "u32"), false},
    [REE_MAP_and_b32] = {"and.b32 $d, $a, $b;", false},
    [REE_MAP_or_b32] = {"or.b32 $d, $a, $b;", false},
    [REE_MAP_xor_b32] = {"xor.b32 $d, $a, $b;", false},
    [REE_MAP_not_b32] = {"not.b32 $d, $a;", false},
    [REE_MAP_shl_b32] = {"shl.b32 $d, $a, $b;", false}, // counts above 32 act as 32
    [REE_MAP_shr_b32] = {"shr.u32 $d, $a, $b;", false},
    [REE_MAP_wrap_i8] = {"bfe.s32 $d, $a, 0, 8;", false},
    [REE_MAP_wrap_u8] = {"and.b32 $d, $a, 255;", false},
    [REE_MAP_wrap_i16] = {"bfe.s32 $d, $a, 0, 16;", false},
    [REE_MAP_wrap_u16] = {"and.b32 $d, $a, 65535;", false},
    [REE_MAP_select_b32] = {"setp.ne.s32 $p, $a, 0;\nselp.b32 $d, $b, $c, $p;", false},

    [REE_MAP_add_i64] = {"add.s64 $d, $a, $b;", false},
    [REE_MAP_sub_i64] = {"sub.s64 $d, $a, $b;", false},
    [REE_MAP_mul_i64] = {"mul.lo.s64 $d, $a, $b;", false},
    [REE_MAP_neg_i64] = {"neg.s64 $d, $a;", false},
    [REE_MAP_abs_i64] = {"abs.s64 $d, $a;", false},
    [REE_MAP_sign_i64] = {"min.s64 $T, $a, 1;\nmax.s64 $d, $T, -1;", false},
    [REE_MAP_min_i64] = {"min.s64 $d, $a, $b;", false},
    [REE_MAP_max_i64] = {"max.s64 $d, $a, $b;", false},
    [REE_MAP_min_u64] = {"min.u64 $d, $a, $b;", false},
    [REE_MAP_max_u64] = {"max.u64 $d, $a, $b;", false},
    [REE_MAP_eq_i64] = {COMPARE("eq", "s64"), false},
    [REE_MAP_lt_i64] = {COMPARE("lt", "s64"), false},
    [REE_MAP_le_i64] = {COMPARE("le", "s64"), false},
    [REE_MAP_lt_u64] = {COMPARE("lt", "u64"), false},
    [REE_MAP_le_u64] = {COMPARE("le", "u64"), false},
    [REE_MAP_and_b64] = {"and.b64 $d, $a, $b;", false},
    [REE_MAP_or_b64] = {"or.b64 $d, $a, $b;", false},
    [REE_MAP_xor_b64] = {"xor.b64 $d, $a, $b;", false},
    [REE_MAP_not_b64] = {"not.b64 $d, $a;", false},
    // The instructions take a shift count of 32 bits, so the 64-bit count is first limited to 64.
    [REE_MAP_shl_b64] = {"min.u64 $T, $b, 64;\ncvt.u32.u64 $t, $T;\nshl.b64 $d, $a, $t;", false},
    [REE_MAP_shr_b64] = {"min.u64 $T, $b, 64;\ncvt.u32.u64 $t, $T;\nshr.u64 $d, $a, $t;", false},
    [REE_MAP_select_b64] = {"setp.ne.s32 $p, $a, 0;\nselp.b64 $d, $b, $c, $p;", false},

    // Conversions to 32-bit integers saturate, and NaN becomes 0.
    [REE_MAP_f32_to_i32] = {"cvt.rzi.s32.f32 $d, $a;", false},
    [REE_MAP_f32_to_u32] = {"cvt.rzi.u32.f32 $d, $a;", false},
    [REE_MAP_i32_to_f32] = {"cvt.rn.f32.s32 $d, $a;", false},
    [REE_MAP_u32_to_f32] = {"cvt.rn.f32.u32 $d, $a;", false},
    [REE_MAP_i64_to_f32] = {"cvt.rn.f32.s64 $d, $a;", false},
    [REE_MAP_u64_to_f32] = {"cvt.rn.f32.u64 $d, $a;", false},
    [REE_MAP_i32_to_i64] = {"cvt.s64.s32 $d, $a;", false},
    [REE_MAP_u32_to_i64] = {"cvt.u64.u32 $d, $a;", false},
    [REE_MAP_i64_to_i32] = {"cvt.u32.u64 $d, $a;", false},
    [REE_MAP_f16_to_f32] = {"cvt.u16.u32 $h, $a;\ncvt.f32.f16 $d, $h;", FLOATS},
    [REE_MAP_f32_to_f16] = {"cvt.rn.f16.f32 $h, $a;\ncvt.u32.u16 $t, $h;\n" NAN_OF(
                                "$a") "selp.b32 $d, 0x7E00, $t, $p;",
                            false},
    [REE_MAP_bf16_to_f32] = {"shl.b32 $d, $a, 16;", FLOATS},
    [REE_MAP_f32_to_bf16] = {"bfe.u32 $t, $a, 16, 1;\nadd.s32 $t, $t, $a;\n"
                             "add.s32 $t, $t, 0x7FFF;\nshr.u32 $t, $t, 16;\n" NAN_OF(
                                 "$a") "selp.b32 $d, 0x7FC0, $t, $p;",
                             false},

    [REE_MAP_add_f64] = {"add.rn.f64 $d, $a, $b;", FLOATS},
    [REE_MAP_sub_f64] = {"sub.rn.f64 $d, $a, $b;", FLOATS},
    [REE_MAP_mul_f64] = {"mul.rn.f64 $d, $a, $b;", FLOATS},
    [REE_MAP_div_f64] = {"div.rn.f64 $d, $a, $b;", FLOATS},
    [REE_MAP_fma_f64] = {"fma.rn.f64 $d, $a, $b, $c;", FLOATS},
    [REE_MAP_sqrt_f64] = {"sqrt.rn.f64 $d, $a;", FLOATS},
    [REE_MAP_f32_to_f64] = {"cvt.f64.f32 $d, $a;", FLOATS},
    [REE_MAP_f64_to_f32] = {"cvt.rn.f32.f64 $d, $a;", FLOATS},
};
