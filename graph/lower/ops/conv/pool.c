// Pooling over windows and over whole planes.
#include "graph/lower/ops/conv/window.h"

#include <string.h>

// Reads the window. A window must not be entirely in the padding.
static enum ree_status read_window(struct ree_lower *lower, const struct ree_view *x,
                                   struct ree_window *w) {
    REE_TRY(ree_window_read(lower, x, NULL, w));
    for (uint32_t i = w->first; i < REE_WINDOW_DIMS; i++) {
        if (w->in[i] == 0)
            return ree_lower_fail(lower, REE_INVALID, "X has size 0 along axis %u",
                                  2 + i - w->first);
        int64_t pad = w->pad_begin[i] > w->pad_end[i] ? w->pad_begin[i] : w->pad_end[i];
        if (pad >= w->extent[i])
            return ree_lower_fail(
                lower, REE_INVALID,
                "padding of %lld along axis %u, expected less than the kernel's extent of %lld",
                (long long)pad, 2 + i - w->first, (long long)w->extent[i]);
    }
    return ree_window_forward(lower, w, ree_rule_int(lower, "ceil_mode", 0) != 0);
}

static enum ree_status emit_pool(struct ree_lower *lower, struct ree_view *x,
                                 const struct ree_window *w, struct ree_pool_params *settings,
                                 struct ree_view **out) {
    int64_t dims[REE_MAX_RANK] = {x->dims[0], x->dims[1]};
    for (uint32_t i = 0; i < w->n; i++)
        dims[2 + i] = w->out[w->first + i];
    union ree_params params;
    struct ree_pool_params *p = &params.pool;
    *p = *settings;
    p->dtype = (uint32_t)x->dtype;
    p->planes = (uint32_t)(x->dims[0] * x->dims[1]);
    for (uint32_t i = 0; i < REE_WINDOW_DIMS; i++) {
        p->in[i] = (uint32_t)w->in[i];
        p->kernel[i] = (uint32_t)w->kernel[i];
        p->out[i] = (uint32_t)w->out[i];
        p->stride[i] = (uint32_t)w->stride[i];
        p->dilation[i] = (uint32_t)w->dilation[i];
        p->pad_begin[i] = (int32_t)w->pad_begin[i];
        p->pad_end[i] = (int32_t)w->pad_end[i];
    }
    REE_TRY(ree_lower_dense(lower, x, &x));
    REE_TRY(ree_lower_new(lower, x->dtype, x->rank, dims, &out[0]));
    struct ree_view *operands[3] = {x, out[0]};
    if (p->has_indices) {
        REE_TRY(ree_lower_new(lower, REE_I64, x->rank, dims, &out[1]));
        operands[2] = out[1];
    }
    uint32_t n_outputs = p->has_indices ? 2 : 1;
    return ree_lower_emit(lower, REE_REPOP_POOL, &params, operands, 1 + n_outputs, n_outputs);
}

RULE(max_pool) {
    struct ree_view *x = in[0];
    struct ree_window window;
    if (x->dtype != REE_F32 && x->dtype != REE_I8 && x->dtype != REE_U8)
        return ree_rule_unsupported(lower, x->dtype);
    REE_TRY(read_window(lower, x, &window));
    struct ree_pool_params p = {.kind = REE_POOL_MAX};
    p.has_indices = ree_rule_wants(lower, 1);
    p.storage_order = ree_rule_int(lower, "storage_order", 0) != 0;
    return emit_pool(lower, x, &window, &p, out);
}

RULE(average_pool) {
    struct ree_window window;
    REE_TRY(ree_rule_require_f32(lower, in[0]));
    REE_TRY(read_window(lower, in[0], &window));
    struct ree_pool_params p = {.kind = REE_POOL_AVG};
    p.count_include_pad = ree_rule_int(lower, "count_include_pad", 0) != 0;
    return emit_pool(lower, in[0], &window, &p, out);
}

// Computes x^p, or abs(x)^p if `magnitude` is set. A power of 1 emits no step.
static enum ree_status power(struct ree_lower *lower, struct ree_view *x, bool magnitude, float p,
                             struct ree_view **out) {
    struct ree_expr_builder b;
    *out = x;
    if (p == 1 && !magnitude) return REE_OK;
    ree_expr_init(&b, lower, x->rank, x->dims);
    int value = ree_expr_tensor(&b, x);
    if (magnitude) value = ree_expr_op1(&b, REE_MAP_abs_f32, value);
    if (p != 1) value = ree_expr_op2(&b, REE_MAP_pow_f32, value, ree_expr_f32(&b, p));
    return ree_lower_map(&b, value, REE_F32, out);
}

static enum ree_status read_p(struct ree_lower *lower, int64_t *out) {
    *out = ree_rule_int(lower, "p", 2);
    if (*out >= 1) return REE_OK;
    return ree_lower_fail(lower, REE_INVALID, "p is %lld, expected 1 or more", (long long)*out);
}

// Sums each window by a convolution of each plane with ones: fma(x, 1, acc) = acc + x. So these
// sums have the chunks that all sums have.
static enum ree_status sum_windows(struct ree_lower *lower, struct ree_view *x,
                                   const struct ree_window *w, struct ree_view **out) {
    int64_t dims[REE_MAX_RANK] = {x->dims[0], x->dims[1]};
    for (uint32_t i = 0; i < w->n; i++)
        dims[2 + i] = w->out[w->first + i];
    struct ree_view *ones;
    REE_TRY(ree_rule_fill(lower, REE_WINDOW_DIMS, w->kernel, 1, &ones));
    union ree_params params;
    struct ree_conv_params *p = &params.conv;
    memset(p, 0, sizeof *p);
    p->n = (uint32_t)(x->dims[0] * x->dims[1]);
    p->groups = p->c = p->m = 1;
    p->x_dtype = p->w_dtype = REE_F32;
    for (uint32_t i = 0; i < REE_WINDOW_DIMS; i++) {
        p->in[i] = (uint32_t)w->in[i];
        p->kernel[i] = (uint32_t)w->kernel[i];
        p->out[i] = (uint32_t)w->out[i];
        p->stride[i] = (uint32_t)w->stride[i];
        p->dilation[i] = (uint32_t)w->dilation[i];
        p->pad[i] = (int32_t)w->pad_begin[i];
    }
    REE_TRY(ree_lower_dense(lower, x, &x));
    REE_TRY(ree_lower_new(lower, REE_F32, x->rank, dims, out));
    struct ree_view *operands[3] = {x, ones, *out};
    return ree_lower_emit(lower, REE_REPOP_CONV, &params, operands, 3, 1);
}

RULE(lp_pool) {
    int64_t p;
    struct ree_window window;
    struct ree_view *sums;
    REE_TRY(ree_rule_require_f32(lower, in[0]));
    REE_TRY(read_p(lower, &p));
    REE_TRY(read_window(lower, in[0], &window));
    if (p == 2) {
        struct ree_pool_params settings = {.kind = REE_POOL_SUM_SQ};
        REE_TRY(emit_pool(lower, in[0], &window, &settings, &sums));
        return ree_rule_step1(lower, REE_MAP_sqrt_f32, sums, &out[0]);
    }
    struct ree_view *powers;
    REE_TRY(power(lower, in[0], true, (float)p, &powers));
    REE_TRY(sum_windows(lower, powers, &window, &sums));
    return power(lower, sums, false, 1 / (float)p, &out[0]);
}

// Returns the mask of all axes after the channels.
static enum ree_status plane_axes(struct ree_lower *lower, const struct ree_view *x,
                                  uint32_t *out_mask) {
    REE_TRY(ree_rule_require_rank(lower, x, "X", 3, REE_MAX_RANK));
    *out_mask = (1u << x->rank) - 1 - 3;
    for (uint32_t i = 2; i < x->rank; i++)
        if (x->dims[i] == 0)
            return ree_lower_fail(lower, REE_INVALID, "X has size 0 along axis %u", i);
    return REE_OK;
}

RULE(global_max_pool) {
    uint32_t mask;
    REE_TRY(ree_rule_require_float(lower, in[0]));
    REE_TRY(plane_axes(lower, in[0], &mask));
    return ree_lower_reduce(lower, in[0], REE_REDUCE_MAX, mask, true, false, &out[0]);
}

RULE(global_average_pool) {
    uint32_t mask;
    REE_TRY(ree_rule_require_float(lower, in[0]));
    REE_TRY(plane_axes(lower, in[0], &mask));
    return ree_rule_mean(lower, in[0], mask, REE_REDUCE_SUM, &out[0]);
}

RULE(global_lp_pool) {
    int64_t p;
    uint32_t mask;
    struct ree_view *x = in[0], *sums;
    REE_TRY(ree_rule_require_f32(lower, x));
    REE_TRY(plane_axes(lower, x, &mask));
    REE_TRY(read_p(lower, &p));
    enum ree_reduce_kind kind = p == 1   ? REE_REDUCE_SUM_ABS
                                : p == 2 ? REE_REDUCE_SUM_SQ
                                         : REE_REDUCE_SUM;
    if (p > 2) REE_TRY(power(lower, x, true, (float)p, &x));
    REE_TRY(ree_lower_reduce(lower, x, kind, mask, true, false, &sums));
    if (p == 2) return ree_rule_step1(lower, REE_MAP_sqrt_f32, sums, &out[0]);
    return power(lower, sums, false, 1 / (float)p, &out[0]);
}
