// Convolutions of 8-bit integers: exact sums, then one factor per channel.
#include "graph/lower/ops/conv/window.h"

#include "graph/lower/ops/quant/quant.h"

// Views t, which has one element or one per output channel (m), as (1, 1 or m, 1, ...).
static enum ree_status of_channels(struct ree_lower *lower, struct ree_view *t, const char *name,
                                   const struct ree_view *w, struct ree_view **out) {
    return ree_quant_along(lower, t, name, w->rank, 1, w->dims[0], out);
}

static enum ree_status byte_one(struct ree_lower *lower, uint32_t rank, const int64_t *dims,
                                struct ree_view **out) {
    static const uint8_t one = 1;
    struct ree_view *t;
    REE_TRY(ree_lower_literal(lower, REE_U8, 0, NULL, &one, &t));
    return ree_lower_broadcast(lower, t, rank, dims, out);
}

// Computes the sum of each filter, as (1, m, 1, ...).
static enum ree_status filter_sums(struct ree_lower *lower, struct ree_view *w,
                                   struct ree_view **out) {
    struct ree_view *filters, *unit;
    int64_t k = 1, dims[REE_MAX_RANK];
    for (uint32_t i = 1; i < w->rank; i++)
        k *= w->dims[i];
    REE_TRY(ree_lower_reshape(lower, w, 2, (int64_t[]){w->dims[0], k}, &filters));
    REE_TRY(byte_one(lower, 2, (int64_t[]){k, 1}, &unit));
    REE_TRY(ree_lower_matmul(lower, filters, unit, out));
    for (uint32_t i = 0; i < w->rank; i++)
        dims[i] = i == 1 ? w->dims[0] : 1;
    return ree_lower_reshape(lower, *out, w->rank, dims, out);
}

// Computes (n, groups * m, positions...): the sum of x in each window, repeated for the output
// channels of each group. For a single group the result is (n, 1, positions...), which broadcasts.
static enum ree_status window_sums(struct ree_lower *lower, struct ree_view *x, struct ree_view *w,
                                   struct ree_view *x_zero, const struct ree_window *window,
                                   int64_t groups, struct ree_view **out) {
    struct ree_view *filter, *sums;
    int64_t dims[REE_MAX_RANK], m = w->dims[0] / groups;
    for (uint32_t i = 0; i < w->rank; i++)
        dims[i] = i == 0 ? groups : w->dims[i];
    REE_TRY(byte_one(lower, w->rank, dims, &filter));
    REE_TRY(ree_conv_emit(lower, x, filter, x_zero, window, groups, 1, false, &sums));
    *out = sums;
    if (groups == 1) return REE_OK; // broadcasts over the output channels
    dims[0] = sums->dims[0];
    dims[1] = groups;
    dims[2] = 1;
    for (uint32_t i = 2; i < sums->rank; i++)
        dims[i + 1] = sums->dims[i];
    REE_TRY(ree_lower_reshape(lower, sums, sums->rank + 1, dims, out));
    dims[2] = m;
    REE_TRY(ree_lower_broadcast(lower, *out, sums->rank + 1, dims, out));
    dims[1] = groups * m;
    for (uint32_t i = 2; i < sums->rank; i++)
        dims[i] = sums->dims[i];
    return ree_lower_reshape(lower, *out, sums->rank, dims, out);
}

// Computes the sum of (x - x_zero) * (w - w_zero), int32. The padding has the value x_zero, so it
// adds nothing.
static enum ree_status convolve(struct ree_lower *lower, struct ree_view *x,
                                struct ree_view *x_zero, struct ree_view *w,
                                struct ree_view *w_zero, struct ree_view **out) {
    struct ree_window window;
    int64_t groups;
    struct ree_view *sum, *filters = NULL, *windows = NULL;
    REE_TRY(ree_quant_require_byte(lower, x, "x"));
    REE_TRY(ree_quant_require_byte(lower, w, "w"));
    REE_TRY(ree_conv_read(lower, x, w, &window, &groups));
    if (x_zero) REE_TRY(ree_quant_single(lower, x_zero, "x_zero_point", &x_zero));
    if (w_zero) REE_TRY(of_channels(lower, w_zero, "w_zero_point", w, &w_zero));
    REE_TRY(ree_quant_zero(lower, x_zero, "x_zero_point", x->dtype, &x_zero));
    REE_TRY(ree_quant_zero(lower, w_zero, "w_zero_point", w->dtype, &w_zero));
    REE_TRY(ree_conv_emit(lower, x, w, x_zero, &window, groups, w->dims[0] / groups, false, &sum));
    *out = sum;
    if (!x_zero && !w_zero) return REE_OK;
    if (x_zero) REE_TRY(filter_sums(lower, w, &filters));
    if (w_zero) REE_TRY(window_sums(lower, x, w, x_zero, &window, groups, &windows));
    int64_t k = w->dims[0] ? ree_view_count(w) / w->dims[0] : 0;
    // sum - x_zero * filters - w_zero * (windows - k * x_zero)
    struct ree_expr_builder e;
    ree_expr_init(&e, lower, sum->rank, sum->dims);
    int value = ree_expr_tensor(&e, sum), zx = 0;
    if (x_zero) {
        zx = ree_expr_tensor(&e, x_zero);
        value = ree_expr_op2(&e, REE_MAP_sub_i32, value,
                             ree_expr_op2(&e, REE_MAP_mul_i32, zx, ree_expr_tensor(&e, filters)));
    }
    if (w_zero) {
        int r = ree_expr_tensor(&e, windows);
        if (x_zero)
            r = ree_expr_op2(&e, REE_MAP_sub_i32, r,
                             ree_expr_op2(&e, REE_MAP_mul_i32, zx, ree_expr_i32(&e, (int32_t)k)));
        value = ree_expr_op2(&e, REE_MAP_sub_i32, value,
                             ree_expr_op2(&e, REE_MAP_mul_i32, ree_expr_tensor(&e, w_zero), r));
    }
    return ree_lower_map(&e, value, REE_I32, out);
}

RULE(conv_integer) {
    return convolve(lower, in[0], ree_rule_input(lower, in, 2), in[1], ree_rule_input(lower, in, 3),
                    &out[0]);
}

// Inputs: x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, B (int32).
RULE(qlinear_conv) {
    struct ree_view *w = in[3], *bias = ree_rule_input(lower, in, 8), *sum, *factor;
    struct ree_view *x_scale, *w_scale, *y_scale, *y_zero;
    enum ree_dtype to = in[7]->dtype;
    REE_TRY(ree_quant_require(lower, in[7], "y_zero_point"));
    REE_TRY(convolve(lower, in[0], in[2], w, in[5], &sum));
    REE_TRY(ree_quant_scale(lower, in[1], "x_scale", &x_scale));
    REE_TRY(ree_quant_scale(lower, in[4], "w_scale", &w_scale));
    REE_TRY(ree_quant_scale(lower, in[6], "y_scale", &y_scale));
    REE_TRY(ree_quant_single(lower, x_scale, "x_scale", &x_scale));
    REE_TRY(of_channels(lower, w_scale, "w_scale", w, &w_scale));
    REE_TRY(ree_quant_single(lower, y_scale, "y_scale", &y_scale));
    REE_TRY(ree_quant_single(lower, in[7], "y_zero_point", &y_zero));
    REE_TRY(ree_quant_zero(lower, y_zero, "y_zero_point", to, &y_zero));
    if (bias) {
        if (bias->dtype != REE_I32)
            return ree_lower_fail(lower, REE_INVALID, "input B is %s, expected int32",
                                  ree_dtype_name(bias->dtype));
        REE_TRY(ree_rule_require_vector(lower, bias, "B", w->dims[0]));
        REE_TRY(ree_rule_channel_view(lower, bias, sum->rank, &bias));
        struct ree_expr_builder e;
        ree_expr_init(&e, lower, sum->rank, sum->dims);
        int value =
            ree_expr_op2(&e, REE_MAP_add_i32, ree_expr_tensor(&e, sum), ree_expr_tensor(&e, bias));
        REE_TRY(ree_lower_map(&e, value, REE_I32, &sum));
    }
    REE_TRY(ree_quant_operand(lower, x_scale, w_scale, y_scale, &factor));
    return ree_quant_finish(lower, sum, factor, NULL, y_zero, to, &out[0]);
}
