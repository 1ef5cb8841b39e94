// Activations with fused operations: Gelu, FastGelu, BiasGelu, QuickGelu, BiasSplitGelu; and
// BiasAdd.
#include "graph/lower/ops/contrib/standard.h"

// Computes x + bias. The bias must be a vector of the last dimension's size, or NULL.
static enum ree_status add_bias(struct ree_lower *lower, struct ree_view *x, struct ree_view *bias,
                                const char *name, struct ree_view **out) {
    REE_TRY(ree_rule_require_f32(lower, x));
    if (bias) {
        REE_TRY(ree_rule_require_rank(lower, x, "0", 1, REE_MAX_RANK));
        REE_TRY(ree_contrib_check_vector(lower, bias, name, x, x->dims[x->rank - 1]));
    }
    return ree_contrib_add(lower, x, bias, out);
}

static enum ree_status gelu(struct ree_lower *lower, struct ree_view *x, const char *approximate,
                            struct ree_view **out) {
    struct ree_standard step = {.type = "Gelu",
                                .opset = 20,
                                .in = {x},
                                .attrs = {REE_STRING_ATTR("approximate", approximate)}};
    return ree_standard_step(lower, &step, 1, out);
}

RULE(ms_gelu) {
    return gelu(lower, in[0], "none", out);
}

RULE(ms_bias_gelu) {
    struct ree_view *x;
    REE_TRY(add_bias(lower, in[0], in[1], "B", &x));
    return gelu(lower, x, "none", out);
}

RULE(ms_fast_gelu) {
    struct ree_view *x;
    REE_TRY(add_bias(lower, in[0], ree_rule_input(lower, in, 1), "bias", &x));
    return gelu(lower, x, "tanh", out);
}

RULE(ms_quick_gelu) {
    float alpha = ree_rule_float(lower, "alpha", 1.702f);
    struct ree_standard step = {
        .type = "Swish", .opset = 24, .in = {in[0]}, .attrs = {REE_FLOAT_ATTR("alpha", alpha)}};
    return ree_standard_step(lower, &step, 1, out);
}

// Computes (X + bias) + skip.
RULE(ms_bias_add) {
    struct ree_view *x = in[0], *skip = in[2];
    REE_TRY(ree_rule_require_rank(lower, x, "X", 3, 3));
    REE_TRY(ree_rule_require_rank(lower, skip, "skip", 3, 3));
    REE_TRY(ree_rule_same_type(lower, skip, "skip", x, "X"));
    REE_TRY(ree_lower_broadcast(lower, skip, 3, x->dims, &skip));
    REE_TRY(add_bias(lower, x, in[1], "bias", &x));
    return ree_contrib_add(lower, x, skip, &out[0]);
}

// Computes left * Gelu(right), where left and right are the halves of the last dimension of X +
// bias.
RULE(ms_bias_split_gelu) {
    struct ree_view *t, *left, *right;
    REE_TRY(ree_rule_require_rank(lower, in[0], "X", 3, 3));
    int64_t width = in[0]->dims[2], half = width / 2;
    if (width % 2)
        return ree_lower_fail(lower, REE_INVALID, "X has a last dimension of %lld, expected even",
                              (long long)width);
    REE_TRY(add_bias(lower, in[0], in[1], "bias", &t));
    REE_TRY(ree_lower_slice(lower, t, 2, 0, 1, half, &left));
    REE_TRY(ree_lower_slice(lower, t, 2, half, 1, half, &right));
    REE_TRY(gelu(lower, right, "none", &right));
    return ree_rule_step2(lower, REE_MAP_mul_f32, left, right, &out[0]);
}
