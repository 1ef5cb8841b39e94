// Conv and ConvTranspose: the RepOp, then the bias as a separate step, which fusion turns into an
// epilogue.
#include "graph/lower/ops/conv/window.h"

#include <string.h>

static enum ree_status check_group(struct ree_lower *lower, const struct ree_view *x,
                                   int64_t *out_groups) {
    int64_t groups = ree_rule_int(lower, "group", 1);
    if (groups < 1 || groups > INT32_MAX)
        return ree_lower_fail(lower, REE_INVALID, "group is %lld, expected 1 or more",
                              (long long)groups);
    if (x->dims[1] % groups)
        return ree_lower_fail(lower, REE_INVALID,
                              "X has %lld channels, which is not a multiple of %lld groups",
                              (long long)x->dims[1], (long long)groups);
    *out_groups = groups;
    return REE_OK;
}

enum ree_status ree_conv_emit(struct ree_lower *lower, struct ree_view *x, struct ree_view *w,
                              struct ree_view *pad_value, const struct ree_window *window,
                              int64_t groups, int64_t m, bool transposed, struct ree_view **out) {
    int64_t dims[REE_MAX_RANK] = {x->dims[0], groups * m};
    for (uint32_t i = 0; i < window->n; i++)
        dims[2 + i] = window->out[window->first + i];
    enum ree_dtype dtype = x->dtype == REE_F32 ? REE_F32 : REE_I32;
    // Sums without terms are 0.
    if (ree_view_count(x) == 0 || ree_view_count(w) == 0) {
        struct ree_expr_builder e;
        ree_expr_init(&e, lower, x->rank, dims);
        return ree_lower_map(&e, ree_expr_number(&e, dtype, 0), dtype, out);
    }
    REE_TRY(ree_lower_dense(lower, x, &x));
    REE_TRY(ree_lower_dense(lower, w, &w));
    if (pad_value) REE_TRY(ree_lower_dense(lower, pad_value, &pad_value));
    REE_TRY(ree_lower_new(lower, dtype, x->rank, dims, out));
    union ree_params params;
    struct ree_conv_params *p = &params.conv;
    memset(p, 0, sizeof *p);
    p->n = (uint32_t)x->dims[0];
    p->groups = (uint32_t)groups;
    p->c = (uint32_t)(x->dims[1] / groups);
    p->m = (uint32_t)m;
    p->transposed = transposed;
    p->x_dtype = (uint32_t)x->dtype;
    p->w_dtype = (uint32_t)w->dtype;
    p->has_pad_value = pad_value != NULL;
    for (uint32_t i = 0; i < REE_WINDOW_DIMS; i++) {
        p->in[i] = (uint32_t)window->in[i];
        p->kernel[i] = (uint32_t)window->kernel[i];
        p->out[i] = (uint32_t)window->out[i];
        p->stride[i] = (uint32_t)window->stride[i];
        p->dilation[i] = (uint32_t)window->dilation[i];
        p->pad[i] = (int32_t)window->pad_begin[i];
    }
    struct ree_view *operands[4] = {x, w};
    uint32_t n = 2;
    if (pad_value) operands[n++] = pad_value;
    operands[n++] = *out;
    return ree_lower_emit(lower, REE_REPOP_CONV, &params, operands, n, 1);
}

// Emits the convolution, and adds the bias if it is not NULL. m: number of output channels per
// group.
static enum ree_status convolve(struct ree_lower *lower, struct ree_view *x, struct ree_view *w,
                                struct ree_view *bias, const struct ree_window *window,
                                int64_t groups, int64_t m, bool transposed, struct ree_view **out) {
    if (bias) {
        REE_TRY(ree_rule_same_type(lower, bias, "B", x, "X"));
        REE_TRY(ree_rule_require_vector(lower, bias, "B", groups * m));
    }
    REE_TRY(ree_conv_emit(lower, x, w, NULL, window, groups, m, transposed, out));
    if (!bias) return REE_OK;
    REE_TRY(ree_rule_channel_view(lower, bias, (*out)->rank, &bias));
    return ree_rule_step2(lower, REE_MAP_add_f32, *out, bias, out);
}

enum ree_status ree_conv_read(struct ree_lower *lower, const struct ree_view *x,
                              const struct ree_view *w, struct ree_window *window,
                              int64_t *out_groups) {
    int64_t groups;
    REE_TRY(ree_rule_require_rank(lower, x, "X", 3, 2 + REE_WINDOW_DIMS));
    REE_TRY(ree_rule_require_rank(lower, w, "W", x->rank, x->rank));
    REE_TRY(check_group(lower, x, &groups));
    if (w->dims[1] != x->dims[1] / groups)
        return ree_lower_fail(lower, REE_INVALID,
                              "W has %lld input channels per group, X has %lld channels in %lld "
                              "groups, expected %lld",
                              (long long)w->dims[1], (long long)x->dims[1], (long long)groups,
                              (long long)(x->dims[1] / groups));
    if (w->dims[0] % groups)
        return ree_lower_fail(lower, REE_INVALID,
                              "W has %lld output channels, which is not a multiple of %lld groups",
                              (long long)w->dims[0], (long long)groups);
    *out_groups = groups;
    REE_TRY(ree_window_read(lower, x, w, window));
    return ree_window_forward(lower, window, false);
}

RULE(conv) {
    struct ree_view *x = in[0], *w = in[1];
    struct ree_window window;
    int64_t groups;
    REE_TRY(ree_rule_require_f32(lower, x));
    REE_TRY(ree_rule_same_type(lower, w, "W", x, "X"));
    REE_TRY(ree_conv_read(lower, x, w, &window, &groups));
    return convolve(lower, x, w, ree_rule_input(lower, in, 2), &window, groups, w->dims[0] / groups,
                    false, &out[0]);
}

RULE(conv_transpose) {
    struct ree_view *x = in[0], *w = in[1];
    struct ree_window window;
    int64_t groups;
    REE_TRY(ree_rule_require_f32(lower, x));
    REE_TRY(ree_rule_same_type(lower, w, "W", x, "X"));
    REE_TRY(ree_rule_require_rank(lower, x, "X", 3, 2 + REE_WINDOW_DIMS));
    REE_TRY(ree_rule_require_rank(lower, w, "W", x->rank, x->rank));
    REE_TRY(check_group(lower, x, &groups));
    if (w->dims[0] != x->dims[1])
        return ree_lower_fail(lower, REE_INVALID, "W has %lld input channels, but X has %lld",
                              (long long)w->dims[0], (long long)x->dims[1]);
    if (w->dims[1] > INT32_MAX)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "W has 2^31 output channels or more");
    REE_TRY(ree_window_read(lower, x, w, &window));
    REE_TRY(ree_window_transposed(lower, &window));
    return convolve(lower, x, w, ree_rule_input(lower, in, 2), &window, groups, w->dims[1], true,
                    &out[0]);
}
