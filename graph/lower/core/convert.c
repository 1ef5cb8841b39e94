// Conversions between element types as ONNX's Cast defines them (NUMERICS.md section 5). float16,
// bfloat16 and the narrower formats are first widened exactly to float32, and are made from float32
// by one rounding. A source wider than float32 is first rounded to odd in float32; the second
// rounding then gives the same result as rounding the source directly.
#include "graph/lower/core/lower.h"
#include "repops/scalar/narrow.h"

#include <string.h>

// Sign-extends the low `bits` bits: flips the sign bit and subtracts it again.
static int wrap_signed(struct ree_expr_builder *b, int value, uint32_t bits) {
    int low = ree_expr_op2(b, REE_MAP_and_b32, value, ree_expr_i32(b, (1 << bits) - 1));
    int sign = ree_expr_i32(b, 1 << (bits - 1));
    return ree_expr_op2(b, REE_MAP_sub_i32, ree_expr_op2(b, REE_MAP_xor_b32, low, sign), sign);
}

int ree_expr_wrap(struct ree_expr_builder *b, enum ree_dtype dtype, int value) {
    switch (dtype) {
    case REE_I8: return ree_expr_op1(b, REE_MAP_wrap_i8, value);
    case REE_U8: return ree_expr_op1(b, REE_MAP_wrap_u8, value);
    case REE_I16: return ree_expr_op1(b, REE_MAP_wrap_i16, value);
    case REE_U16: return ree_expr_op1(b, REE_MAP_wrap_u16, value);
    case REE_I4: return wrap_signed(b, value, 4);
    case REE_I2: return wrap_signed(b, value, 2);
    case REE_U4: return ree_expr_op2(b, REE_MAP_and_b32, value, ree_expr_i32(b, 15));
    case REE_U2: return ree_expr_op2(b, REE_MAP_and_b32, value, ree_expr_i32(b, 3));
    default: return value;
    }
}

int ree_expr_number(struct ree_expr_builder *b, enum ree_dtype dtype, int64_t value) {
    if (dtype == REE_F32) return ree_expr_f32(b, (float)value);
    if (dtype == REE_F64) return ree_expr_f64(b, (double)value);
    if (ree_dtype_class(dtype) == REE_CLASS_D) return ree_expr_i64(b, value);
    return ree_expr_i32(b, (int32_t)value);
}

int ree_expr_select(struct ree_expr_builder *b, enum ree_dtype dtype, int condition, int x, int y) {
    bool wide = ree_dtype_class(dtype) == REE_CLASS_D;
    return ree_expr_op3(b, wide ? REE_MAP_select_b64 : REE_MAP_select_b32, condition, x, y);
}

static int op1(struct ree_expr_builder *b, enum ree_map_op op, int a) {
    return ree_expr_op1(b, op, a);
}

static int op2(struct ree_expr_builder *b, enum ree_map_op op, int a, uint32_t constant) {
    return ree_expr_op2(b, op, a, ree_expr_i32(b, (int32_t)constant));
}

// Returns the word that describes the format (scalar/narrow.h); 0 for other types.
static uint32_t narrow_format(enum ree_dtype dtype) {
    switch (dtype) {
    case REE_F8E4M3FN: return REE_NARROW_F8E4M3FN;
    case REE_F8E4M3FNUZ: return REE_NARROW_F8E4M3FNUZ;
    case REE_F8E5M2: return REE_NARROW_F8E5M2;
    case REE_F8E5M2FNUZ: return REE_NARROW_F8E5M2FNUZ;
    case REE_F4E2M1: return REE_NARROW_F4E2M1;
    default: return 0;
    }
}

static bool is_narrow_float(enum ree_dtype dtype) {
    return dtype == REE_F16 || dtype == REE_BF16 || dtype == REE_F8E8M0 || narrow_format(dtype);
}

static int widen(struct ree_expr_builder *b, int value, enum ree_dtype from) {
    switch (from) {
    case REE_F16: return op1(b, REE_MAP_f16_to_f32, value);
    case REE_BF16: return op1(b, REE_MAP_bf16_to_f32, value);
    case REE_F8E8M0: return op1(b, REE_MAP_e8m0_to_f32, value);
    default: return op2(b, REE_MAP_narrow_to_f32, value, narrow_format(from));
    }
}

static int narrow(struct ree_expr_builder *b, int value, enum ree_dtype to,
                  struct ree_cast_mode mode) {
    switch (to) {
    case REE_F16: return op1(b, REE_MAP_f32_to_f16, value);
    case REE_BF16: return op1(b, REE_MAP_f32_to_bf16, value);
    case REE_F8E8M0:
        return op2(b, REE_MAP_f32_to_e8m0, value,
                   mode.e8m0_rounding | (mode.no_saturate ? 0 : REE_E8M0_SATURATE));
    default:
        return op2(b, REE_MAP_f32_to_narrow, value,
                   narrow_format(to) | (mode.no_saturate ? 0 : REE_NARROW_SATURATE));
    }
}

static bool is_unsigned(enum ree_dtype t) {
    return t == REE_U32 || t == REE_U64;
}

static bool is_wide(enum ree_dtype t) {
    return ree_dtype_class(t) == REE_CLASS_D;
}

// Extends an integer to 64 bits.
static int extend(struct ree_expr_builder *b, int value, enum ree_dtype from) {
    if (is_wide(from)) return value;
    return op1(b, from == REE_U32 ? REE_MAP_u32_to_i64 : REE_MAP_i32_to_i64, value);
}

static int clamp(struct ree_expr_builder *b, int value, int32_t low, int32_t high) {
    value = op2(b, REE_MAP_max_i32, value, (uint32_t)low);
    return op2(b, REE_MAP_min_i32, value, (uint32_t)high);
}

// Rounds towards zero and saturates. For integer types below 8 bits it saturates to 32 bits and
// takes the low bits, as ONNX's own tests expect.
static int float_to_int(struct ree_expr_builder *b, int value, enum ree_dtype from,
                        enum ree_dtype to) {
    bool f64 = from == REE_F64;
    switch (to) {
    case REE_I64: return op1(b, f64 ? REE_MAP_f64_to_i64 : REE_MAP_f32_to_i64, value);
    case REE_U64: return op1(b, f64 ? REE_MAP_f64_to_u64 : REE_MAP_f32_to_u64, value);
    case REE_U32: return op1(b, f64 ? REE_MAP_f64_to_u32 : REE_MAP_f32_to_u32, value);
    default: value = op1(b, f64 ? REE_MAP_f64_to_i32 : REE_MAP_f32_to_i32, value);
    }
    switch (to) {
    case REE_I8: return clamp(b, value, -128, 127);
    case REE_U8: return clamp(b, value, 0, 255);
    case REE_I16: return clamp(b, value, -32768, 32767);
    case REE_U16: return clamp(b, value, 0, 65535);
    default: return ree_expr_wrap(b, to, value);
    }
}

static int int_to_int(struct ree_expr_builder *b, int value, enum ree_dtype from,
                      enum ree_dtype to) {
    if (is_wide(to)) return extend(b, value, from);
    if (is_wide(from)) value = op1(b, REE_MAP_i64_to_i32, value);
    return ree_expr_wrap(b, to, value);
}

// Converts a float or an integer to float32 or float64. With `odd`, a float32 result that is not
// exact is rounded to odd.
static int to_float(struct ree_expr_builder *b, int value, enum ree_dtype from, enum ree_dtype to,
                    bool odd) {
    if (from == to) return value;
    if (from == REE_F32) return op1(b, REE_MAP_f32_to_f64, value);
    if (from == REE_F64) return op1(b, odd ? REE_MAP_f64_to_f32_odd : REE_MAP_f64_to_f32, value);
    bool is_u64 = from == REE_U64, is_32 = from == REE_I32 || from == REE_U32;
    if (to == REE_F64)
        return op1(b, is_u64 ? REE_MAP_u64_to_f64 : REE_MAP_i64_to_f64, extend(b, value, from));
    if (odd && (is_wide(from) || is_32))
        return op1(b, is_u64 ? REE_MAP_u64_to_f32_odd : REE_MAP_i64_to_f32_odd,
                   extend(b, value, from));
    if (is_wide(from)) return op1(b, is_u64 ? REE_MAP_u64_to_f32 : REE_MAP_i64_to_f32, value);
    return op1(b, is_unsigned(from) ? REE_MAP_u32_to_f32 : REE_MAP_i32_to_f32, value);
}

// x != 0, so a NaN gives true.
static int to_bool(struct ree_expr_builder *b, int value, enum ree_dtype from) {
    int zero;
    if (from == REE_F32 || from == REE_F64)
        zero = ree_expr_op2(b, REE_MAP_eq_f32, value, ree_expr_f32(b, 0));
    else if (is_wide(from))
        zero = ree_expr_op2(b, REE_MAP_eq_i64, value, ree_expr_i64(b, 0));
    else
        zero = op2(b, REE_MAP_eq_i32, value, 0);
    return op2(b, REE_MAP_xor_b32, zero, 1);
}

int ree_expr_cast_mode(struct ree_expr_builder *b, int value, enum ree_dtype from,
                       enum ree_dtype to, struct ree_cast_mode mode) {
    if (from == to) return value;
    if (ree_dtype_class(from) == REE_CLASS_NONE || ree_dtype_class(to) == REE_CLASS_NONE) {
        if (b->status == REE_OK)
            b->status = ree_fail(b->lower->err, REE_UNSUPPORTED,
                                 "conversion from %s to %s is not supported", ree_dtype_name(from),
                                 ree_dtype_name(to));
        return 0;
    }
    if (is_narrow_float(from)) {
        value = widen(b, value, from);
        from = REE_F32;
    }
    if (from == to) return value;
    if (to == REE_BOOL) return to_bool(b, value, from);
    if (is_narrow_float(to)) return narrow(b, to_float(b, value, from, REE_F32, true), to, mode);
    if (to == REE_F32 || to == REE_F64) return to_float(b, value, from, to, false);
    if (from == REE_F32 || from == REE_F64) return float_to_int(b, value, from, to);
    return int_to_int(b, value, from, to);
}

int ree_expr_cast(struct ree_expr_builder *b, int value, enum ree_dtype from, enum ree_dtype to) {
    return ree_expr_cast_mode(b, value, from, to, (struct ree_cast_mode){0});
}

enum ree_status ree_lower_cast_mode(struct ree_lower *lower, struct ree_view *t, enum ree_dtype to,
                                    struct ree_cast_mode mode, struct ree_view **out) {
    if (t->dtype == to) {
        *out = t;
        return REE_OK;
    }
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, t->rank, t->dims);
    int value = ree_expr_cast_mode(&b, ree_expr_tensor(&b, t), t->dtype, to, mode);
    return ree_lower_map(&b, value, to, out);
}

enum ree_status ree_lower_cast(struct ree_lower *lower, struct ree_view *t, enum ree_dtype to,
                               struct ree_view **out) {
    return ree_lower_cast_mode(lower, t, to, (struct ree_cast_mode){0}, out);
}
