// CausalConvWithState: a separate convolution of each channel over the preceding inputs. The last
// inputs are the state for the next call.
#include "graph/lower/ops/attention/attention.h"

#include <string.h>

static enum ree_status check(struct ree_lower *lower, struct ree_view *x, struct ree_view *w,
                             struct ree_view *bias, struct ree_view *past) {
    char text[128];
    REE_TRY(ree_rule_require_f32(lower, x));
    REE_TRY(ree_rule_require_rank(lower, x, "input", 3, 3));
    REE_TRY(ree_rule_same_type(lower, w, "weight", x, "input"));
    int64_t channels = x->dims[1];
    if (w->rank != 3 || w->dims[0] != channels || w->dims[1] != 1 || w->dims[2] < 1)
        return ree_lower_fail(lower, REE_INVALID, "weight is %s, expected [%lld,1,k]",
                              ree_view_text(w, text, sizeof text), (long long)channels);
    if (bias) {
        REE_TRY(ree_rule_same_type(lower, bias, "bias", x, "input"));
        REE_TRY(ree_rule_require_vector(lower, bias, "bias", channels));
    }
    if (past && (past->dtype != x->dtype || past->rank != 3 || past->dims[0] != x->dims[0] ||
                 past->dims[1] != channels || past->dims[2] != w->dims[2] - 1))
        return ree_lower_fail(lower, REE_INVALID,
                              "past_state is %s, expected the type of input and [%lld,%lld,%lld]",
                              ree_view_text(past, text, sizeof text), (long long)x->dims[0],
                              (long long)channels, (long long)(w->dims[2] - 1));
    return REE_OK;
}

// Convolves each channel of x (batch, channels, len) separately, with `pad` zeros before the first
// element.
static enum ree_status convolve(struct ree_lower *lower, struct ree_view *x, struct ree_view *w,
                                int64_t pad, struct ree_view **out) {
    int64_t dims[3] = {x->dims[0], x->dims[1], x->dims[2] + pad - (w->dims[2] - 1)};
    REE_TRY(ree_lower_new(lower, REE_F32, 3, dims, out));
    REE_TRY(ree_lower_dense(lower, x, &x));
    REE_TRY(ree_lower_dense(lower, w, &w));
    union ree_params params;
    struct ree_conv_params *p = &params.conv;
    memset(p, 0, sizeof *p);
    p->x_dtype = p->w_dtype = REE_F32;
    p->n = (uint32_t)dims[0];
    p->groups = (uint32_t)dims[1];
    p->c = p->m = 1;
    for (uint32_t i = 0; i < 3; i++)
        p->in[i] = p->kernel[i] = p->out[i] = p->stride[i] = p->dilation[i] = 1;
    p->in[2] = (uint32_t)x->dims[2];
    p->kernel[2] = (uint32_t)w->dims[2];
    p->out[2] = (uint32_t)dims[2];
    p->pad[2] = (int32_t)pad;
    struct ree_view *operands[3] = {x, w, *out};
    return ree_lower_emit(lower, REE_REPOP_CONV, &params, operands, 3, 1);
}

enum ree_status ree_lower_op_causal_conv(struct ree_lower *lower, struct ree_view *const *in,
                                         struct ree_view **out) {
    struct ree_view *x = in[0], *w = in[1], *bias = ree_rule_input(lower, in, 2);
    struct ree_view *past = ree_rule_input(lower, in, 3), *history = x, *y;
    const char *activation = ree_rule_string(lower, "activation", "none");
    bool silu = !strcmp(activation, "silu") || !strcmp(activation, "swish");
    if (!silu && strcmp(activation, "none"))
        return ree_lower_fail(lower, REE_INVALID,
                              "activation is '%s', expected none, silu or swish", activation);
    REE_TRY(check(lower, x, w, bias, past));
    int64_t kept = w->dims[2] - 1, length = x->dims[2];
    // Zeros before the first input are padding. They are part of the state only if the state is
    // longer than the input.
    if (!past && length < kept && ree_rule_wants(lower, 1))
        REE_TRY(ree_rule_fill(lower, 3, (int64_t[]){x->dims[0], x->dims[1], kept}, 0, &past));
    if (past) REE_TRY(ree_lower_append_keys(lower, past, x, "past_state", &history));
    if (ree_rule_wants(lower, 1)) {
        if (kept)
            REE_TRY(ree_lower_slice(lower, history, 2, history->dims[2] - kept, 1, kept, &out[1]));
        else
            REE_TRY(
                ree_lower_new(lower, REE_F32, 3, (int64_t[]){x->dims[0], x->dims[1], 0}, &out[1]));
    }
    if (ree_view_count(x) == 0) {
        out[0] = x;
        return REE_OK;
    }
    REE_TRY(convolve(lower, history, w, past ? 0 : kept, &y));

    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 3, y->dims);
    int value = ree_expr_tensor(&b, y);
    if (bias) {
        REE_TRY(ree_rule_channel_view(lower, bias, 3, &bias));
        value = ree_expr_op2(&b, REE_MAP_add_f32, value, ree_expr_tensor(&b, bias));
    }
    if (silu)
        value =
            ree_expr_op2(&b, REE_MAP_mul_f32, value, ree_expr_op1(&b, REE_MAP_sigmoid_f32, value));
    out[0] = y;
    if (!bias && !silu) return REE_OK;
    return ree_lower_map(&b, value, REE_F32, &out[0]);
}
