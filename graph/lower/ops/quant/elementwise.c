// com.microsoft's operators on quantised tensors: arithmetic on the numbers that they represent, or
// on the integers if that suffices.
#include "graph/lower/ops/quant/quant.h"

#include <stdio.h>

// A tensor, its scale and its zero point; the latter two have one element each.
struct quantised {
    struct ree_view *q, *scale, *zero;
};

// Fails if the input is omitted. The operator table cannot check this, because zero points before
// the input may be omitted.
static enum ree_status require(struct ree_lower *lower, struct ree_view *const *in, uint32_t at,
                               const char *name, struct ree_view **out) {
    *out = ree_rule_input(lower, in, at);
    if (*out) return REE_OK;
    return ree_lower_fail(lower, REE_INVALID, "input %s (%u) is required but omitted", name, at);
}

// Reads the scale, input `at`, and the zero point, input at + 1, of a tensor of type dtype. `name`
// is the name of the tensor: "A" for A_scale and A_zero_point.
static enum ree_status read_scale(struct ree_lower *lower, struct ree_view *const *in, uint32_t at,
                                  const char *name, enum ree_dtype dtype, struct quantised *out) {
    char scale_name[32], zero_name[32];
    snprintf(scale_name, sizeof scale_name, "%s_scale", name);
    snprintf(zero_name, sizeof zero_name, "%s_zero_point", name);
    struct ree_view *scale, *zero = ree_rule_input(lower, in, at + 1);
    REE_TRY(require(lower, in, at, scale_name, &scale));
    REE_TRY(ree_quant_scale(lower, scale, scale_name, &out->scale));
    REE_TRY(ree_quant_single(lower, out->scale, scale_name, &out->scale));
    if (zero) REE_TRY(ree_quant_single(lower, zero, zero_name, &zero));
    return ree_quant_zero(lower, zero, zero_name, dtype, &out->zero);
}

static enum ree_status read_input(struct ree_lower *lower, struct ree_view *const *in, uint32_t at,
                                  const char *name, struct quantised *out) {
    REE_TRY(require(lower, in, at, name, &out->q));
    REE_TRY(ree_quant_require(lower, out->q, name));
    return read_scale(lower, in, at + 1, name, out->q->dtype, out);
}

// Adds q minus its zero point, as an int32 value.
static int centred(struct ree_expr_builder *e, const struct quantised *t) {
    int q = ree_expr_tensor(e, t->q);
    if (!t->zero) return q;
    return ree_expr_op2(e, REE_MAP_sub_i32, q, ree_expr_tensor(e, t->zero));
}

static int real(struct ree_expr_builder *e, const struct quantised *t) {
    int scale = ree_expr_tensor(e, t->scale);
    return ree_expr_op2(e, REE_MAP_mul_f32, ree_expr_op1(e, REE_MAP_i32_to_f32, centred(e, t)),
                        scale);
}

static enum ree_status read_pair(struct ree_lower *lower, struct ree_view *const *in,
                                 struct quantised *a, struct quantised *b, struct quantised *c,
                                 struct ree_expr_builder *e) {
    REE_TRY(read_input(lower, in, 0, "A", a));
    REE_TRY(read_input(lower, in, 3, "B", b));
    REE_TRY(ree_rule_same_type(lower, b->q, "B", a->q, "A"));
    REE_TRY(read_scale(lower, in, 6, "C", a->q->dtype, c));
    struct ree_view *both[2] = {a->q, b->q};
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    REE_TRY(ree_lower_broadcast_dims(lower, 2, both, &rank, dims));
    ree_expr_init(e, lower, rank, dims);
    return REE_OK;
}

RULE(qlinear_add) {
    struct quantised a, b, c;
    struct ree_expr_builder e;
    REE_TRY(read_pair(lower, in, &a, &b, &c, &e));
    int x = real(&e, &a), y = real(&e, &b);
    int value = ree_expr_op2(&e, REE_MAP_add_f32, x, y);
    value = ree_expr_op2(&e, REE_MAP_div_f32, value, ree_expr_tensor(&e, c.scale));
    value = ree_quant_expr_round(&e, value, ree_quant_expr_zero(&e, c.zero), a.q->dtype);
    return ree_lower_map(&e, value, a.q->dtype, &out[0]);
}

RULE(qlinear_mul) {
    struct quantised a, b, c;
    struct ree_expr_builder e;
    struct ree_view *factor;
    REE_TRY(read_pair(lower, in, &a, &b, &c, &e));
    REE_TRY(ree_quant_operand(lower, a.scale, b.scale, c.scale, &factor));
    int x = centred(&e, &a), y = centred(&e, &b);
    int value = ree_expr_op1(&e, REE_MAP_i32_to_f32, ree_expr_op2(&e, REE_MAP_mul_i32, x, y));
    value = ree_expr_op2(&e, REE_MAP_mul_f32, value, ree_expr_tensor(&e, factor));
    value = ree_quant_expr_round(&e, value, ree_quant_expr_zero(&e, c.zero), a.q->dtype);
    return ree_lower_map(&e, value, a.q->dtype, &out[0]);
}

// y = quantise(f(dequantise(x))), where f is a function of one float32.
static enum ree_status unary(struct ree_lower *lower, struct ree_view *const *in,
                             int (*f)(struct ree_expr_builder *e, int x), struct ree_view **out) {
    struct quantised x, y;
    REE_TRY(read_input(lower, in, 0, "X", &x));
    REE_TRY(read_scale(lower, in, 3, "Y", x.q->dtype, &y));
    struct ree_expr_builder e;
    ree_expr_init(&e, lower, x.q->rank, x.q->dims);
    int value = f(&e, real(&e, &x));
    value = ree_expr_op2(&e, REE_MAP_div_f32, value, ree_expr_tensor(&e, y.scale));
    value = ree_quant_expr_round(&e, value, ree_quant_expr_zero(&e, y.zero), x.q->dtype);
    return ree_lower_map(&e, value, x.q->dtype, &out[0]);
}

static int sigmoid(struct ree_expr_builder *e, int x) {
    return ree_expr_op1(e, REE_MAP_sigmoid_f32, x);
}

static int leaky_relu(struct ree_expr_builder *e, int x) {
    float alpha = ree_rule_float(e->lower, "alpha", 0.01f);
    int below = ree_expr_op2(e, REE_MAP_lt_f32, x, ree_expr_f32(e, 0));
    int scaled = ree_expr_op2(e, REE_MAP_mul_f32, ree_expr_f32(e, alpha), x);
    return ree_expr_op3(e, REE_MAP_select_b32, below, scaled, x);
}

RULE(qlinear_sigmoid) {
    return unary(lower, in, sigmoid, out);
}

RULE(qlinear_leaky_relu) {
    return unary(lower, in, leaky_relu, out);
}

// Moves the last axis of t to axis 1, or (`first` false) axis 1 to the end.
static enum ree_status move_channels(struct ree_lower *lower, struct ree_view *t, bool first,
                                     struct ree_view **out) {
    uint32_t perm[REE_MAX_RANK];
    if (t->rank < 3) return ree_rule_require_rank(lower, t, "X", 3, REE_MAX_RANK);
    for (uint32_t i = 0; i < t->rank; i++)
        perm[i] = i == 0             ? 0
                  : first            ? (i == 1 ? t->rank - 1 : i - 1)
                  : i == t->rank - 1 ? 1
                                     : i + 1;
    return ree_lower_transpose(lower, t, perm, out);
}

// The result is the exact sum of a plane's n integers, times x_scale / (y_scale * n).
RULE(qlinear_global_average_pool) {
    struct quantised x, y;
    struct ree_view *t, *wide, *sum, *factor, *count;
    bool last = ree_rule_int(lower, "channels_last", 0) != 0;
    REE_TRY(read_input(lower, in, 0, "X", &x));
    REE_TRY(read_scale(lower, in, 3, "Y", x.q->dtype, &y));
    t = x.q;
    if (last) REE_TRY(move_channels(lower, t, true, &t));
    REE_TRY(ree_rule_require_rank(lower, t, "X", 3, REE_MAX_RANK));
    int64_t n = 1;
    for (uint32_t i = 2; i < t->rank; i++)
        n *= t->dims[i];
    struct ree_expr_builder e;
    ree_expr_init(&e, lower, t->rank, t->dims);
    x.q = t;
    REE_TRY(ree_lower_map(&e, centred(&e, &x), REE_I32, &wide));
    uint32_t planes = (1u << t->rank) - 4;
    REE_TRY(ree_lower_reduce(lower, wide, REE_REDUCE_SUM, planes, true, false, &sum));
    REE_TRY(ree_rule_fill(lower, 0, NULL, (float)n, &count));
    REE_TRY(ree_rule_step2(lower, REE_MAP_mul_f32, y.scale, count, &count));
    REE_TRY(ree_rule_step2(lower, REE_MAP_div_f32, x.scale, count, &factor));
    REE_TRY(ree_quant_finish(lower, sum, factor, NULL, y.zero, x.q->dtype, &out[0]));
    return last ? move_channels(lower, out[0], false, &out[0]) : REE_OK;
}

// AveragePool of the dequantised input.
RULE(qlinear_average_pool) {
    struct quantised x, y;
    struct ree_view *pooled;
    bool last = ree_rule_int(lower, "channels_last", 0) != 0;
    REE_TRY(read_input(lower, in, 0, "X", &x));
    REE_TRY(read_scale(lower, in, 3, "Y", x.q->dtype, &y));
    REE_TRY(ree_quant_dequantize(lower, x.q, x.scale, x.zero, &pooled));
    if (last) REE_TRY(move_channels(lower, pooled, true, &pooled));
    REE_TRY(ree_lower_op_average_pool(lower, &pooled, &pooled));
    if (last) REE_TRY(move_channels(lower, pooled, false, &pooled));
    return ree_quant_quantize(lower, pooled, y.scale, y.zero, x.q->dtype, &out[0]);
}

// Inputs: Y_scale, Y_zero_point, then X, scale and zero_point of each tensor.
RULE(qlinear_concat) {
    struct quantised y, x;
    size_t n = (lower->node->n_inputs - 2) / 3;
    if (lower->node->n_inputs != 2 + 3 * n || n == 0)
        return ree_lower_fail(lower, REE_INVALID,
                              "has %zu inputs, expected 2 and 3 for each tensor",
                              lower->node->n_inputs);
    for (uint32_t i = 0; i < lower->node->n_inputs; i++)
        if (!in[i]) return ree_lower_fail(lower, REE_INVALID, "input %u is omitted", i);
    enum ree_dtype dtype = in[2]->dtype;
    REE_TRY(read_scale(lower, in, 0, "Y", dtype, &y));
    int64_t dims[REE_MAX_RANK] = {0};
    uint32_t rank = in[2]->rank, axis;
    REE_TRY(ree_lower_axis(lower, ree_rule_int(lower, "axis", 1), rank, &axis));
    for (size_t i = 0; i < n; i++) {
        struct ree_view *t = in[2 + 3 * i];
        char index[16];
        snprintf(index, sizeof index, "%u", (unsigned)(2 + 3 * i));
        REE_TRY(ree_rule_same_type(lower, t, index, in[2], "2"));
        REE_TRY(ree_rule_require_rank(lower, t, index, rank, rank));
        for (uint32_t d = 0; d < rank; d++) {
            if (d == axis)
                dims[d] += t->dims[d];
            else if (i > 0 && t->dims[d] != dims[d])
                return ree_lower_fail(
                    lower, REE_INVALID,
                    "dimension %u is %lld, expected %lld like in the first tensor", d,
                    (long long)t->dims[d], (long long)dims[d]);
            else
                dims[d] = t->dims[d];
        }
    }
    REE_TRY(ree_lower_new(lower, dtype, rank, dims, &out[0]));
    int64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        struct ree_view *value, *part;
        REE_TRY(read_input(lower, in, (uint32_t)(2 + 3 * i), "X", &x));
        REE_TRY(ree_quant_dequantize(lower, x.q, x.scale, x.zero, &value));
        REE_TRY(ree_quant_quantize(lower, value, y.scale, y.zero, dtype, &value));
        REE_TRY(ree_lower_slice(lower, out[0], axis, at, 1, x.q->dims[axis], &part));
        REE_TRY(ree_lower_copy_into(lower, value, part));
        at += x.q->dims[axis];
    }
    return REE_OK;
}
