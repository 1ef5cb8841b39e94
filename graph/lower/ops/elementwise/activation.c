// Activations: each is one expression over its input, as NUMERICS.md defines it step by step.
#include "graph/lower/ops/rules.h"

#include "base/dtype.h"

#include <string.h>

#define NO REE_OP_NONE
// An expression over one float32 or float64 tensor, with short names for constants and steps.
struct activation {
    struct ree_expr_builder b;
    int x;
};

static enum ree_status begin(struct activation *a, struct ree_lower *lower, struct ree_view *x) {
    REE_TRY(ree_rule_require_float(lower, x));
    ree_expr_init(&a->b, lower, x->rank, x->dims);
    a->x = ree_expr_tensor(&a->b, x);
    return REE_OK;
}

static enum ree_status finish(struct activation *a, int value, struct ree_view **out) {
    return ree_lower_map(&a->b, value, REE_F32, out);
}

static int constant(struct activation *a, float value) {
    return ree_expr_f32(&a->b, value);
}

static int attribute(struct activation *a, const char *name, float fallback) {
    return constant(a, ree_rule_float(a->b.lower, name, fallback));
}

static int step1(struct activation *a, enum ree_map_op op, int x) {
    return ree_expr_op1(&a->b, op, x);
}

static int step2(struct activation *a, enum ree_map_op op, int x, int y) {
    return ree_expr_op2(&a->b, op, x, y);
}

#define ADD(x, y) step2(&a, REE_MAP_add_f32, x, y)
#define SUB(x, y) step2(&a, REE_MAP_sub_f32, x, y)
#define MUL(x, y) step2(&a, REE_MAP_mul_f32, x, y)
#define DIV(x, y) step2(&a, REE_MAP_div_f32, x, y)
#define MIN(x, y) step2(&a, REE_MAP_min_f32, x, y)
#define MAX(x, y) step2(&a, REE_MAP_max_f32, x, y)
#define LESS(x, y) step2(&a, REE_MAP_lt_f32, x, y)
#define SELECT(c, x, y) ree_expr_op3(&a.b, REE_MAP_select_b32, c, x, y)

RULE(relu) {
    static const struct ree_typed_op maximum = {
        REE_MAP_max_f32, REE_MAP_max_i32, NO, REE_MAP_max_i64, NO, NO};
    enum ree_dtype dtype = in[0]->dtype;
    enum ree_map_op op;
    REE_TRY(ree_rule_typed(lower, &maximum, dtype, &op));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, in[0]->rank, in[0]->dims);
    int x = ree_expr_tensor(&b, in[0]);
    return ree_lower_map(&b, ree_expr_op2(&b, op, x, ree_expr_number(&b, dtype, 0)), dtype,
                         &out[0]);
}

RULE(leaky_relu) {
    struct activation a;
    REE_TRY(begin(&a, lower, in[0]));
    int scaled = MUL(attribute(&a, "alpha", 0.01f), a.x);
    return finish(&a, SELECT(LESS(a.x, constant(&a, 0)), scaled, a.x), &out[0]);
}

RULE(prelu) {
    static const struct ree_typed_op product = {REE_MAP_mul_f32, REE_MAP_mul_i32, REE_MAP_mul_i32,
                                                REE_MAP_mul_i64, REE_MAP_mul_i64, NO};
    static const struct ree_typed_op less = {REE_MAP_lt_f32, REE_MAP_lt_i32, REE_MAP_lt_u32,
                                             REE_MAP_lt_i64, REE_MAP_lt_u64, NO};
    struct ree_view *slope = in[1];
    enum ree_dtype dtype = in[0]->dtype;
    enum ree_map_op mul, lt;
    REE_TRY(ree_rule_same_type(lower, in[1], "slope", in[0], "X"));
    REE_TRY(ree_rule_typed(lower, &product, dtype, &mul));
    REE_TRY(ree_rule_typed(lower, &less, dtype, &lt));
    // Before opset 7, a slope of more than one element has one element per channel.
    if (lower->node->opset < 7 && slope->rank == 1 && slope->dims[0] != 1 && in[0]->rank > 1)
        REE_TRY(ree_rule_channel_view(lower, slope, in[0]->rank, &slope));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, in[0]->rank, in[0]->dims);
    int x = ree_expr_tensor(&b, in[0]), s = ree_expr_tensor(&b, slope);
    int scaled = ree_expr_wrap(&b, dtype, ree_expr_op2(&b, mul, s, x));
    int negative = ree_expr_op2(&b, lt, x, ree_expr_number(&b, dtype, 0));
    return ree_lower_map(&b, ree_expr_select(&b, dtype, negative, scaled, x), dtype, &out[0]);
}

RULE(thresholded_relu) {
    struct activation a;
    REE_TRY(begin(&a, lower, in[0]));
    int above = LESS(attribute(&a, "alpha", 1), a.x);
    return finish(&a, SELECT(above, a.x, constant(&a, 0)), &out[0]);
}

RULE(elu) {
    struct activation a;
    REE_TRY(begin(&a, lower, in[0]));
    int curve = MUL(attribute(&a, "alpha", 1), step1(&a, REE_MAP_expm1_f32, a.x));
    return finish(&a, SELECT(LESS(a.x, constant(&a, 0)), curve, a.x), &out[0]);
}

RULE(selu) {
    struct activation a;
    REE_TRY(begin(&a, lower, in[0]));
    bool first = lower->node->opset < 6;
    int alpha = attribute(&a, "alpha", first ? 1.6732f : 1.67326319217681884765625f);
    int gamma = attribute(&a, "gamma", first ? 1.0507f : 1.05070102214813232421875f);
    int curve = MUL(alpha, step1(&a, REE_MAP_expm1_f32, a.x));
    return finish(&a, MUL(gamma, SELECT(LESS(a.x, constant(&a, 0)), curve, a.x)), &out[0]);
}

RULE(celu) {
    struct activation a;
    REE_TRY(begin(&a, lower, in[0]));
    int alpha = attribute(&a, "alpha", 1);
    int curve = MUL(alpha, step1(&a, REE_MAP_expm1_f32, DIV(a.x, alpha)));
    return finish(&a, SELECT(LESS(a.x, constant(&a, 0)), curve, a.x), &out[0]);
}

// For the approximation "tanh", 0.5 * (1 + tanh(u)) is computed as sigmoid(2u), which has no
// cancellation.
RULE(gelu) {
    struct activation a;
    REE_TRY(begin(&a, lower, in[0]));
    const char *approximate = ree_rule_string(lower, "approximate", "none");
    if (!strcmp(approximate, "tanh")) {
        int square = MUL(a.x, a.x);
        int factor = ADD(MUL(square, constant(&a, 0x1.2444f2p-4f)), constant(&a, 0x1.988454p+0f));
        return finish(&a, MUL(a.x, step1(&a, REE_MAP_sigmoid_f32, MUL(a.x, factor))), &out[0]);
    }
    if (strcmp(approximate, "none"))
        return ree_lower_fail(lower, REE_INVALID, "approximate is '%s', expected none or tanh",
                              approximate);
    int half = MUL(a.x, constant(&a, 0.5f));
    int erf = step1(&a, REE_MAP_erf_f32, MUL(a.x, constant(&a, 0x1.6a09e6p-1f)));
    return finish(&a, MUL(half, ADD(constant(&a, 1), erf)), &out[0]);
}

// Adds max(0, min(1, alpha * x + beta)) to the expression.
static int hard_sigmoid(struct activation *pa, int alpha, int beta) {
    struct activation a = *pa;
    int value = ADD(MUL(alpha, a.x), beta);
    value = MAX(constant(&a, 0), MIN(constant(&a, 1), value));
    *pa = a;
    return value;
}

RULE(hard_sigmoid) {
    struct activation a;
    REE_TRY(begin(&a, lower, in[0]));
    int alpha = attribute(&a, "alpha", 0.2f), beta = attribute(&a, "beta", 0.5f);
    return finish(&a, hard_sigmoid(&a, alpha, beta), &out[0]);
}

RULE(hard_swish) {
    struct activation a;
    REE_TRY(begin(&a, lower, in[0]));
    int sixth = constant(&a, 0x1.555556p-3f), half = constant(&a, 0.5f);
    return finish(&a, MUL(a.x, hard_sigmoid(&a, sixth, half)), &out[0]);
}

RULE(softsign) {
    struct activation a;
    REE_TRY(begin(&a, lower, in[0]));
    int divisor = ADD(constant(&a, 1), step1(&a, REE_MAP_abs_f32, a.x));
    return finish(&a, DIV(a.x, divisor), &out[0]);
}

RULE(mish) {
    struct activation a;
    REE_TRY(begin(&a, lower, in[0]));
    int softplus = step1(&a, REE_MAP_softplus_f32, a.x);
    return finish(&a, MUL(a.x, step1(&a, REE_MAP_tanh_f32, softplus)), &out[0]);
}

RULE(swish) {
    struct activation a;
    REE_TRY(begin(&a, lower, in[0]));
    int scaled = MUL(attribute(&a, "alpha", 1), a.x);
    return finish(&a, MUL(a.x, step1(&a, REE_MAP_sigmoid_f32, scaled)), &out[0]);
}

// Shrink for integers, as in ONNX's function body: lambd and bias are first cast to x's type.
static enum ree_status shrink_integers(struct ree_lower *lower, struct ree_view *x,
                                       struct ree_view **out) {
    static const struct ree_typed_op less = {
        NO, REE_MAP_lt_i32, REE_MAP_lt_u32, REE_MAP_lt_i64, REE_MAP_lt_u64, NO};
    static const struct ree_typed_op add = {
        NO, REE_MAP_add_i32, REE_MAP_add_i32, REE_MAP_add_i64, REE_MAP_add_i64, NO};
    static const struct ree_typed_op sub = {
        NO, REE_MAP_sub_i32, REE_MAP_sub_i32, REE_MAP_sub_i64, REE_MAP_sub_i64, NO};
    enum ree_dtype t = x->dtype;
    float lambd = ree_rule_float(lower, "lambd", 0.5f);
    float bias = ree_rule_float(lower, "bias", 0);
    bool is_signed = t == REE_I8 || t == REE_I16 || t == REE_I32 || t == REE_I64;
    // Only values in the range of the smallest type are supported: the cast of a value that its
    // type cannot represent would give another result for each type.
    float low = is_signed ? -128 : 0, high = is_signed ? 127 : 255;
    if (!(lambd >= low && lambd <= high && bias >= low && bias <= high))
        return ree_lower_fail(
            lower, REE_UNSUPPORTED, "lambd %g and bias %g of %s: only %g to %g is supported",
            (double)lambd, (double)bias, ree_dtype_name(t), (double)low, (double)high);
    enum ree_map_op op_less, op_add, op_sub;
    REE_TRY(ree_rule_typed(lower, &less, t, &op_less));
    REE_TRY(ree_rule_typed(lower, &add, t, &op_add));
    REE_TRY(ree_rule_typed(lower, &sub, t, &op_sub));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, x->rank, x->dims);
    int v = ree_expr_tensor(&b, x), by = ree_expr_number(&b, t, (int64_t)bias);
    int above = ree_expr_op2(&b, op_less, ree_expr_number(&b, t, (int64_t)lambd), v);
    int value =
        ree_expr_select(&b, t, above, ree_expr_op2(&b, op_sub, v, by), ree_expr_number(&b, t, 0));
    // An unsigned value is never below -lambd.
    if (is_signed) {
        int below = ree_expr_op2(&b, op_less, v, ree_expr_number(&b, t, -(int64_t)lambd));
        value = ree_expr_select(&b, t, below, ree_expr_op2(&b, op_add, v, by), value);
    }
    return ree_lower_map(&b, ree_expr_wrap(&b, t, value), t, out);
}

RULE(shrink) {
    struct activation a;
    if (in[0]->dtype != REE_BOOL && !ree_dtype_is_float(in[0]->dtype))
        return shrink_integers(lower, in[0], &out[0]);
    REE_TRY(begin(&a, lower, in[0]));
    float lambd = ree_rule_float(lower, "lambd", 0.5f);
    int bias = attribute(&a, "bias", 0);
    int above = LESS(constant(&a, lambd), a.x), below = LESS(a.x, constant(&a, -lambd));
    int value = SELECT(above, SUB(a.x, bias), constant(&a, 0));
    return finish(&a, SELECT(below, ADD(a.x, bias), value), &out[0]);
}

// Returns a bound of Clip as a scalar tensor of x's type.
static enum ree_status bound(struct ree_lower *lower, struct ree_view *x, struct ree_view *t,
                             const char *name, struct ree_view **out) {
    char text[128];
    if (t->dtype != x->dtype || ree_view_count(t) != 1)
        return ree_lower_fail(lower, REE_INVALID, "input %s is %s, expected one %s", name,
                              ree_view_text(t, text, sizeof text), ree_dtype_name(x->dtype));
    return ree_lower_reshape(lower, t, 0, NULL, out);
}

// min(max(x, low), high): if low > high, the result is high.
RULE(clip) {
    static const struct ree_typed_op minimum = {REE_MAP_min_f32, REE_MAP_min_i32, REE_MAP_min_u32,
                                                REE_MAP_min_i64, REE_MAP_min_u64, NO};
    static const struct ree_typed_op maximum = {REE_MAP_max_f32, REE_MAP_max_i32, REE_MAP_max_u32,
                                                REE_MAP_max_i64, REE_MAP_max_u64, NO};
    enum ree_dtype dtype = in[0]->dtype;
    enum ree_map_op min, max;
    REE_TRY(ree_rule_typed(lower, &minimum, dtype, &min));
    REE_TRY(ree_rule_typed(lower, &maximum, dtype, &max));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, in[0]->rank, in[0]->dims);
    int value = ree_expr_tensor(&b, in[0]);
    if (lower->node->opset < 11) {
        bool low = ree_node_attr(lower->node, "min"), high = ree_node_attr(lower->node, "max");
        REE_TRY(ree_rule_require_float(lower, in[0]));
        if (low)
            value = ree_expr_op2(&b, max, value, ree_expr_f32(&b, ree_rule_float(lower, "min", 0)));
        if (high)
            value = ree_expr_op2(&b, min, value, ree_expr_f32(&b, ree_rule_float(lower, "max", 0)));
    } else {
        struct ree_view *low = ree_rule_input(lower, in, 1), *high = ree_rule_input(lower, in, 2);
        if (low) {
            REE_TRY(bound(lower, in[0], low, "min", &low));
            value = ree_expr_op2(&b, max, value, ree_expr_tensor(&b, low));
        }
        if (high) {
            REE_TRY(bound(lower, in[0], high, "max", &high));
            value = ree_expr_op2(&b, min, value, ree_expr_tensor(&b, high));
        }
    }
    if (b.expr.n_instrs == 0) {
        out[0] = in[0];
        return b.status;
    }
    return ree_lower_map(&b, value, dtype, &out[0]);
}
