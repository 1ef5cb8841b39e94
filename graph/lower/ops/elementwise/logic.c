// Comparisons, logic on bool, bit operations on integers, and Where.
#include "graph/lower/ops/data.h"

#include <string.h>

#define NO REE_OP_NONE
static const struct ree_typed_op eq = {REE_MAP_eq_f32, REE_MAP_eq_i32, REE_MAP_eq_i32,
                                       REE_MAP_eq_i64, REE_MAP_eq_i64, REE_MAP_eq_i32};
static const struct ree_typed_op lt = {REE_MAP_lt_f32, REE_MAP_lt_i32, REE_MAP_lt_u32,
                                       REE_MAP_lt_i64, REE_MAP_lt_u64, NO};
static const struct ree_typed_op le = {REE_MAP_le_f32, REE_MAP_le_i32, REE_MAP_le_u32,
                                       REE_MAP_le_i64, REE_MAP_le_u64, NO};
// Operations on bool, then the same operations on integers.
static const struct ree_typed_op and_bool = {NO, NO, NO, NO, NO, REE_MAP_and_b32};
static const struct ree_typed_op or_bool = {NO, NO, NO, NO, NO, REE_MAP_or_b32};
static const struct ree_typed_op xor_bool = {NO, NO, NO, NO, NO, REE_MAP_xor_b32};
static const struct ree_typed_op and_bits = {
    NO, REE_MAP_and_b32, REE_MAP_and_b32, REE_MAP_and_b64, REE_MAP_and_b64, NO};
static const struct ree_typed_op or_bits = {
    NO, REE_MAP_or_b32, REE_MAP_or_b32, REE_MAP_or_b64, REE_MAP_or_b64, NO};
static const struct ree_typed_op xor_bits = {
    NO, REE_MAP_xor_b32, REE_MAP_xor_b32, REE_MAP_xor_b64, REE_MAP_xor_b64, NO};
static const struct ree_typed_op not_bits = {
    NO, REE_MAP_not_b32, REE_MAP_not_b32, REE_MAP_not_b64, REE_MAP_not_b64, NO};

// Broadcasts the two inputs to their common shape; *a and *b are their values.
static enum ree_status begin(struct ree_expr_builder *builder, struct ree_lower *lower,
                             struct ree_view *const *in, int *a, int *b) {
    struct ree_view *ab[2] = {in[0], NULL};
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    REE_TRY(ree_rule_same_type(lower, in[1], "B", in[0], "A"));
    REE_TRY(ree_rule_legacy_broadcast(lower, in[0], in[1], &ab[1]));
    REE_TRY(ree_lower_broadcast_dims(lower, 2, ab, &rank, dims));
    ree_expr_init(builder, lower, rank, dims);
    *a = ree_expr_tensor(builder, ab[0]);
    *b = ree_expr_tensor(builder, ab[1]);
    return REE_OK;
}

// Computes a op b, or b op a with `swapped`: Greater is Less with its operands swapped.
static enum ree_status compare(struct ree_lower *lower, struct ree_view *const *in,
                               const struct ree_typed_op *typed, bool swapped,
                               struct ree_view **out) {
    struct ree_expr_builder builder;
    enum ree_map_op op;
    int a, b;
    REE_TRY(ree_rule_typed(lower, typed, in[0]->dtype, &op));
    REE_TRY(begin(&builder, lower, in, &a, &b));
    int value = ree_expr_op2(&builder, op, swapped ? b : a, swapped ? a : b);
    return ree_lower_map(&builder, value, REE_BOOL, out);
}

RULE(equal) {
    // Equal strings are equal numbers. If only in[0] is a string, `compare` refuses the types.
    struct ree_view *strings[2];
    if (in[0]->dtype == REE_STRING && in[1]->dtype == REE_STRING) {
        REE_TRY(ree_data_reinterpret(lower, in[0], REE_I64, &strings[0]));
        REE_TRY(ree_data_reinterpret(lower, in[1], REE_I64, &strings[1]));
        in = strings;
    }
    return compare(lower, in, &eq, false, &out[0]);
}
RULE(less) {
    return compare(lower, in, &lt, false, &out[0]);
}
RULE(less_or_equal) {
    return compare(lower, in, &le, false, &out[0]);
}
RULE(greater) {
    return compare(lower, in, &lt, true, &out[0]);
}
RULE(greater_or_equal) {
    return compare(lower, in, &le, true, &out[0]);
}

// and, or and xor of sign- or zero-extended values are extended the same way, so no wrap is needed.
static enum ree_status bits(struct ree_lower *lower, struct ree_view *const *in,
                            const struct ree_typed_op *typed, struct ree_view **out) {
    struct ree_expr_builder builder;
    enum ree_map_op op;
    int a, b;
    REE_TRY(ree_rule_typed(lower, typed, in[0]->dtype, &op));
    REE_TRY(begin(&builder, lower, in, &a, &b));
    return ree_lower_map(&builder, ree_expr_op2(&builder, op, a, b), in[0]->dtype, out);
}

RULE(and) {
    return bits(lower, in, &and_bool, &out[0]);
}
RULE(or) {
    return bits(lower, in, &or_bool, &out[0]);
}
RULE(xor) {
    return bits(lower, in, &xor_bool, &out[0]);
}
RULE(bitwise_and) {
    return bits(lower, in, &and_bits, &out[0]);
}
RULE(bitwise_or) {
    return bits(lower, in, &or_bits, &out[0]);
}
RULE(bitwise_xor) {
    return bits(lower, in, &xor_bits, &out[0]);
}

RULE(not ) {
    if (in[0]->dtype != REE_BOOL) return ree_rule_unsupported(lower, in[0]->dtype);
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, in[0]->rank, in[0]->dims);
    int x = ree_expr_tensor(&b, in[0]);
    return ree_lower_map(&b, ree_expr_op2(&b, REE_MAP_xor_b32, x, ree_expr_i32(&b, 1)), REE_BOOL,
                         &out[0]);
}

RULE(bitwise_not) {
    enum ree_map_op op;
    REE_TRY(ree_rule_typed(lower, &not_bits, in[0]->dtype, &op));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, in[0]->rank, in[0]->dims);
    int value = ree_expr_op1(&b, op, ree_expr_tensor(&b, in[0]));
    return ree_lower_map(&b, ree_expr_wrap(&b, in[0]->dtype, value), in[0]->dtype, &out[0]);
}

static bool is_signed(enum ree_dtype t) {
    return t == REE_I8 || t == REE_I16 || t == REE_I32 || t == REE_I64;
}

// A count of at least the width gives 0, or -1 for a negative value shifted right. The 64-bit shift
// treats a negative count as a very large one. In types of less than 32 bits, the wrap removes the
// bits that are shifted out.
RULE(bit_shift) {
    static const struct ree_typed_op left = {
        NO, REE_MAP_shl_b32, REE_MAP_shl_b32, REE_MAP_shl_b64, REE_MAP_shl_b64, NO};
    static const struct ree_typed_op right = {
        NO, REE_MAP_shr_b32, REE_MAP_shr_b32, REE_MAP_shr_b64, REE_MAP_shr_b64, NO};
    const char *direction = ree_rule_string(lower, "direction", "");
    bool to_left = !strcmp(direction, "LEFT");
    if (!to_left && strcmp(direction, "RIGHT"))
        return ree_lower_fail(lower, REE_INVALID, "direction is '%s', expected LEFT or RIGHT",
                              direction);
    enum ree_dtype dtype = in[0]->dtype;
    struct ree_expr_builder builder;
    enum ree_map_op op;
    int x, n;
    REE_TRY(ree_rule_typed(lower, to_left ? &left : &right, dtype, &op));
    REE_TRY(begin(&builder, lower, in, &x, &n));
    int value;
    if (!to_left && is_signed(dtype)) {
        // For negative x, ~x is not negative, and ~(~x >> n) fills with ones.
        bool wide = dtype == REE_I64;
        enum ree_map_op invert = wide ? REE_MAP_not_b64 : REE_MAP_not_b32;
        int zero = ree_expr_number(&builder, dtype, 0);
        int negative = ree_expr_op2(&builder, wide ? REE_MAP_lt_i64 : REE_MAP_lt_i32, x, zero);
        int inverse = ree_expr_op1(
            &builder, invert, ree_expr_op2(&builder, op, ree_expr_op1(&builder, invert, x), n));
        value =
            ree_expr_select(&builder, dtype, negative, inverse, ree_expr_op2(&builder, op, x, n));
    } else {
        value = ree_expr_op2(&builder, op, x, n);
    }
    return ree_lower_map(&builder, ree_expr_wrap(&builder, dtype, value), dtype, &out[0]);
}

RULE(is_nan) {
    REE_TRY(ree_rule_require_float(lower, in[0]));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, in[0]->rank, in[0]->dims);
    int value = ree_expr_op1(&b, REE_MAP_isnan_f32, ree_expr_tensor(&b, in[0]));
    return ree_lower_map(&b, value, REE_BOOL, &out[0]);
}

RULE(is_inf) {
    REE_TRY(ree_rule_require_float(lower, in[0]));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, in[0]->rank, in[0]->dims);
    int x = ree_expr_tensor(&b, in[0]);
    bool negative = ree_rule_int(lower, "detect_negative", 1) != 0;
    bool positive = ree_rule_int(lower, "detect_positive", 1) != 0;
    int value = ree_expr_i32(&b, 0);
    if (negative) value = ree_expr_op1(&b, REE_MAP_isneginf_f32, x);
    if (positive) {
        int is = ree_expr_op1(&b, REE_MAP_isposinf_f32, x);
        value = negative ? ree_expr_op2(&b, REE_MAP_or_b32, value, is) : is;
    }
    return ree_lower_map(&b, value, REE_BOOL, &out[0]);
}

RULE(where) {
    struct ree_view *all[3] = {in[0], in[1], in[2]};
    enum ree_dtype dtype = in[1]->dtype;
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    if (in[0]->dtype != REE_BOOL)
        return ree_lower_fail(lower, REE_INVALID, "input condition is %s, expected bool",
                              ree_dtype_name(in[0]->dtype));
    REE_TRY(ree_rule_same_type(lower, in[2], "Y", in[1], "X"));
    if (ree_dtype_class(dtype) == REE_CLASS_NONE) return ree_rule_unsupported(lower, dtype);
    REE_TRY(ree_lower_broadcast_dims(lower, 3, all, &rank, dims));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, rank, dims);
    int condition = ree_expr_tensor(&b, in[0]);
    int x = ree_expr_tensor(&b, in[1]), y = ree_expr_tensor(&b, in[2]);
    return ree_lower_map(&b, ree_expr_select(&b, dtype, condition, x, y), dtype, &out[0]);
}
