// Functions of one element: one scalar operation each.
#include "graph/lower/ops/rules.h"

#define NO REE_OP_NONE
#define RULE(name)                                                                                 \
    enum ree_status ree_lower_op_##name(struct ree_lower *lower, struct ree_view *const *in,       \
                                        struct ree_view **out)

static enum ree_status unary(struct ree_lower *lower, struct ree_view *x,
                             const struct ree_typed_op *typed, struct ree_view **out) {
    enum ree_map_op op;
    REE_TRY(ree_rule_typed(lower, typed, x->dtype, &op));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, x->rank, x->dims);
    int value = ree_expr_op1(&b, op, ree_expr_tensor(&b, x));
    return ree_lower_map(&b, ree_expr_wrap(&b, x->dtype, value), x->dtype, out);
}

// Functions of float32; ree_typed_op_of and ree_expr_op1 extend them to float64.
#define FLOAT_RULE(name, op)                                                                       \
    RULE(name) {                                                                                   \
        static const struct ree_typed_op typed = {REE_MAP_##op, NO, NO, NO, NO, NO};               \
        return unary(lower, in[0], &typed, &out[0]);                                               \
    }

FLOAT_RULE(ceil, ceil_f32)
FLOAT_RULE(floor, floor_f32)
FLOAT_RULE(round, round_f32)
FLOAT_RULE(sqrt, sqrt_f32)
FLOAT_RULE(exp, exp_f32)
FLOAT_RULE(log, log_f32)
FLOAT_RULE(sin, sin_f32)
FLOAT_RULE(cos, cos_f32)
FLOAT_RULE(tan, tan_f32)
FLOAT_RULE(asin, asin_f32)
FLOAT_RULE(acos, acos_f32)
FLOAT_RULE(atan, atan_f32)
FLOAT_RULE(sinh, sinh_f32)
FLOAT_RULE(cosh, cosh_f32)
FLOAT_RULE(tanh, tanh_f32)
FLOAT_RULE(asinh, asinh_f32)
FLOAT_RULE(acosh, acosh_f32)
FLOAT_RULE(atanh, atanh_f32)
FLOAT_RULE(erf, erf_f32)
FLOAT_RULE(sigmoid, sigmoid_f32)
FLOAT_RULE(softplus, softplus_f32)

static bool is_unsigned(enum ree_dtype t) {
    return t == REE_U8 || t == REE_U16 || t == REE_U32 || t == REE_U64;
}

RULE(abs) {
    static const struct ree_typed_op typed = {
        REE_MAP_abs_f32, REE_MAP_abs_i32, NO, REE_MAP_abs_i64, NO, NO};
    if (is_unsigned(in[0]->dtype)) {
        out[0] = in[0];
        return REE_OK;
    }
    return unary(lower, in[0], &typed, &out[0]);
}

RULE(neg) {
    static const struct ree_typed_op typed = {
        REE_MAP_neg_f32, REE_MAP_neg_i32, NO, REE_MAP_neg_i64, NO, NO};
    return unary(lower, in[0], &typed, &out[0]);
}

RULE(sign) {
    static const struct ree_typed_op typed = {
        REE_MAP_sign_f32, REE_MAP_sign_i32, NO, REE_MAP_sign_i64, NO, NO};
    enum ree_dtype dtype = in[0]->dtype;
    if (!is_unsigned(dtype)) return unary(lower, in[0], &typed, &out[0]);
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, in[0]->rank, in[0]->dims);
    enum ree_map_op min = dtype == REE_U64 ? REE_MAP_min_u64 : REE_MAP_min_u32;
    int value = ree_expr_op2(&b, min, ree_expr_tensor(&b, in[0]), ree_expr_number(&b, dtype, 1));
    return ree_lower_map(&b, value, dtype, &out[0]);
}

RULE(reciprocal) {
    REE_TRY(ree_rule_require_float(lower, in[0]));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, in[0]->rank, in[0]->dims);
    int x = ree_expr_tensor(&b, in[0]);
    return ree_lower_map(&b, ree_expr_op2(&b, REE_MAP_div_f32, ree_expr_f32(&b, 1), x), REE_F32,
                         &out[0]);
}
