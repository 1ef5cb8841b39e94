// Add, Sub, Mul, Div, Pow, Mod, and the variadic Min, Max, Sum, Mean.
#include "base/dtype.h"
#include "graph/lower/ops/rules.h"

#define NO REE_OP_NONE
#define RULE(name)                                                                                 \
    enum ree_status ree_lower_op_##name(struct ree_lower *lower, struct ree_view *const *in,       \
                                        struct ree_view **out)

static const struct ree_typed_op add = {REE_MAP_add_f32, REE_MAP_add_i32, REE_MAP_add_i32,
                                        REE_MAP_add_i64, REE_MAP_add_i64, NO};
static const struct ree_typed_op sub = {REE_MAP_sub_f32, REE_MAP_sub_i32, REE_MAP_sub_i32,
                                        REE_MAP_sub_i64, REE_MAP_sub_i64, NO};
static const struct ree_typed_op mul = {REE_MAP_mul_f32, REE_MAP_mul_i32, REE_MAP_mul_i32,
                                        REE_MAP_mul_i64, REE_MAP_mul_i64, NO};
static const struct ree_typed_op divide = {REE_MAP_div_f32, REE_MAP_div_i32, REE_MAP_div_u32,
                                           REE_MAP_div_i64, REE_MAP_div_u64, NO};
static const struct ree_typed_op python_mod = {REE_MAP_mod_f32, REE_MAP_mod_i32, REE_MAP_mod_u32,
                                               REE_MAP_mod_i64, REE_MAP_mod_u64, NO};
static const struct ree_typed_op c_fmod = {REE_MAP_fmod_f32, REE_MAP_fmod_i32, REE_MAP_mod_u32,
                                           REE_MAP_fmod_i64, REE_MAP_mod_u64,  NO};
static const struct ree_typed_op minimum = {REE_MAP_min_f32, REE_MAP_min_i32, REE_MAP_min_u32,
                                            REE_MAP_min_i64, REE_MAP_min_u64, NO};
static const struct ree_typed_op maximum = {REE_MAP_max_f32, REE_MAP_max_i32, REE_MAP_max_u32,
                                            REE_MAP_max_i64, REE_MAP_max_u64, NO};

static enum ree_status binary(struct ree_lower *lower, struct ree_view *const *in,
                              const struct ree_typed_op *typed, struct ree_view **out) {
    struct ree_view *ab[2] = {in[0], NULL};
    enum ree_map_op op;
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    REE_TRY(ree_rule_same_type(lower, in[1], "B", in[0], "A"));
    REE_TRY(ree_rule_typed(lower, typed, in[0]->dtype, &op));
    REE_TRY(ree_rule_legacy_broadcast(lower, in[0], in[1], &ab[1]));
    REE_TRY(ree_lower_broadcast_dims(lower, 2, ab, &rank, dims));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, rank, dims);
    int x = ree_expr_tensor(&b, ab[0]), y = ree_expr_tensor(&b, ab[1]);
    int value = ree_expr_wrap(&b, in[0]->dtype, ree_expr_op2(&b, op, x, y));
    return ree_lower_map(&b, value, in[0]->dtype, out);
}

RULE(add) {
    return binary(lower, in, &add, &out[0]);
}
RULE(sub) {
    return binary(lower, in, &sub, &out[0]);
}
RULE(mul) {
    return binary(lower, in, &mul, &out[0]);
}
RULE(div) {
    return binary(lower, in, &divide, &out[0]);
}

RULE(mod) {
    bool fmod = ree_node_int(lower->node, "fmod", 0) != 0;
    return binary(lower, in, fmod ? &c_fmod : &python_mod, &out[0]);
}

// Pow. The exponent may have another type than the base; the result has the base's type. If either
// is a float, the power is computed in float32, or in float64 if either is float64. Integer powers
// wrap; they are computed in 64 bits if either type has 64 bits.

static bool is_pow_float(enum ree_dtype t) {
    return t == REE_F32 || t == REE_F64;
}

static bool is_pow_int(enum ree_dtype t) {
    return t != REE_BOOL && ree_dtype_bits(t) >= 8 && !ree_dtype_is_float(t) &&
           ree_dtype_class(t) != REE_CLASS_NONE;
}

static bool is_unsigned(enum ree_dtype t) {
    return t == REE_U8 || t == REE_U16 || t == REE_U32 || t == REE_U64;
}

static int integer_pow(struct ree_expr_builder *b, int x, enum ree_dtype base, int y,
                       enum ree_dtype exponent) {
    bool wide = ree_dtype_class(base) == REE_CLASS_D || ree_dtype_class(exponent) == REE_CLASS_D;
    if (wide) {
        x = ree_expr_cast(b, x, base, REE_I64);
        y = ree_expr_cast(b, y, exponent, REE_I64);
        int power =
            ree_expr_op2(b, is_unsigned(exponent) ? REE_MAP_pow_u64 : REE_MAP_pow_i64, x, y);
        return ree_expr_cast(b, power, REE_I64, base);
    }
    int power = ree_expr_op2(b, is_unsigned(exponent) ? REE_MAP_pow_u32 : REE_MAP_pow_i32, x, y);
    return ree_expr_wrap(b, base, power);
}

RULE(pow) {
    struct ree_view *xy[2] = {in[0], NULL};
    enum ree_dtype base = in[0]->dtype, exponent = in[1]->dtype;
    if (!is_pow_float(base) && !is_pow_int(base)) return ree_rule_unsupported(lower, base);
    if (!is_pow_float(exponent) && !is_pow_int(exponent))
        return ree_rule_unsupported(lower, exponent);
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    REE_TRY(ree_rule_legacy_broadcast(lower, in[0], in[1], &xy[1]));
    REE_TRY(ree_lower_broadcast_dims(lower, 2, xy, &rank, dims));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, rank, dims);
    int x = ree_expr_tensor(&b, xy[0]), value;
    if (!is_pow_float(base) && !is_pow_float(exponent)) {
        value = integer_pow(&b, x, base, ree_expr_tensor(&b, xy[1]), exponent);
        return ree_lower_map(&b, value, base, &out[0]);
    }
    enum ree_dtype real = base == REE_F64 || exponent == REE_F64 ? REE_F64 : REE_F32;
    x = ree_expr_cast(&b, x, base, real);
    // x * x is the same correctly rounded number as x^2, and far cheaper.
    float known = 0;
    if (exponent == REE_F32 && ree_view_count(in[1]) == 1 && ree_lower_is_host(in[1]))
        REE_TRY(ree_lower_host_float(lower, in[1], "Y", &known));
    if (known == 2) {
        value = ree_expr_op2(&b, REE_MAP_mul_f32, x, x);
    } else {
        int y = ree_expr_cast(&b, ree_expr_tensor(&b, xy[1]), exponent, real);
        value = ree_expr_op2(&b, REE_MAP_pow_f32, x, y);
    }
    return ree_lower_map(&b, ree_expr_cast(&b, value, real, base), base, &out[0]);
}

// Combines all inputs from left to right. An expression can hold only a limited number of tensors;
// the next expression continues from its result.
static enum ree_status variadic(struct ree_lower *lower, struct ree_view *const *in,
                                const struct ree_typed_op *typed, bool mean,
                                struct ree_view **out) {
    uint32_t n = (uint32_t)lower->node->n_inputs, rank;
    int64_t dims[REE_MAX_RANK];
    enum ree_map_op op;
    for (uint32_t i = 0; i < n; i++) {
        if (!in[i]) return ree_lower_fail(lower, REE_INVALID, "input %u is omitted", i);
        if (in[i]->dtype != in[0]->dtype)
            return ree_lower_fail(lower, REE_INVALID, "input %u is %s, expected %s like input 0", i,
                                  ree_dtype_name(in[i]->dtype), ree_dtype_name(in[0]->dtype));
    }
    enum ree_dtype dtype = in[0]->dtype;
    REE_TRY(ree_rule_typed(lower, typed, dtype, &op));
    if (n == 1) {
        *out = in[0];
        return REE_OK;
    }
    REE_TRY(ree_lower_broadcast_dims(lower, n, in, &rank, dims));
    struct ree_view *acc = in[0];
    for (uint32_t i = 1; i < n;) {
        struct ree_expr_builder b;
        ree_expr_init(&b, lower, rank, dims);
        int value = ree_expr_tensor(&b, acc);
        for (; i < n && b.expr.n_operands < REE_EXPR_MAX_OPERANDS &&
               b.expr.n_instrs + 3 < REE_EXPR_MAX_INSTRS;
             i++) {
            value = ree_expr_op2(&b, op, value, ree_expr_tensor(&b, in[i]));
            value = ree_expr_wrap(&b, dtype, value);
        }
        if (mean && i == n)
            value = ree_expr_op2(&b, REE_MAP_div_f32, value, ree_expr_f32(&b, (float)n));
        REE_TRY(ree_lower_map(&b, value, dtype, &acc));
    }
    *out = acc;
    return REE_OK;
}

RULE(min) {
    return variadic(lower, in, &minimum, false, &out[0]);
}
RULE(max) {
    return variadic(lower, in, &maximum, false, &out[0]);
}

static const struct ree_typed_op float_add = {REE_MAP_add_f32, NO, NO, NO, NO, NO};
RULE(sum) {
    return variadic(lower, in, &float_add, false, &out[0]);
}
RULE(mean) {
    return variadic(lower, in, &float_add, true, &out[0]);
}
