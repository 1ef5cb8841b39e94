// Normalisations. Those over trailing dimensions are one RepOp if fusion is on, otherwise the steps
// that define it.
#include "graph/lower/ops/rules.h"

#include <string.h>

// Layout of scale and bias over (rows, columns). Rows are x's dimensions before `first`.
enum affine {
    AFFINE_NONE,
    AFFINE_COLUMNS, // one element per column
    AFFINE_ROWS,    // one element per row, repeating after `period` rows
};

struct norm {
    bool rms;
    float epsilon;
    uint32_t first; // the first normalised axis
    enum affine affine;
    int64_t period;
    struct ree_view *scale, *bias; // broadcast to x's dimensions; NULL: none
};

static int64_t product(const struct ree_view *t, uint32_t from, uint32_t to) {
    int64_t n = 1;
    for (uint32_t i = from; i < to; i++)
        n *= t->dims[i];
    return n;
}

static uint32_t trailing_mask(const struct ree_view *x, uint32_t first) {
    return (1u << x->rank) - (1u << first);
}

// Computes d = x - mean(x) and v = mean(d * d). out_mean may be NULL.
static enum ree_status moments(struct ree_lower *lower, struct ree_view *x, uint32_t mask,
                               struct ree_view **out_mean, struct ree_view **out_d,
                               struct ree_view **out_v) {
    struct ree_view *mean;
    REE_TRY(ree_rule_mean(lower, x, mask, REE_REDUCE_SUM, &mean));
    REE_TRY(ree_rule_step2(lower, REE_MAP_sub_f32, x, mean, out_d));
    REE_TRY(ree_rule_mean(lower, *out_d, mask, REE_REDUCE_SUM_SQ, out_v));
    if (out_mean) *out_mean = mean;
    return REE_OK;
}

// Computes op(v + epsilon).
static enum ree_status with_epsilon(struct ree_lower *lower, struct ree_view *v, float epsilon,
                                    enum ree_map_op op, struct ree_view **out) {
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, v->rank, v->dims);
    int x = ree_expr_tensor(&b, v), e = ree_expr_f32(&b, epsilon);
    int value = ree_expr_op1(&b, op, ree_expr_op2(&b, REE_MAP_add_f32, x, e));
    return ree_lower_map(&b, value, REE_F32, out);
}

static enum ree_status affine_steps(struct ree_lower *lower, const struct norm *n,
                                    struct ree_view *y, struct ree_view **out) {
    *out = y;
    if (n->scale) REE_TRY(ree_rule_step2(lower, REE_MAP_mul_f32, *out, n->scale, out));
    if (n->bias) REE_TRY(ree_rule_step2(lower, REE_MAP_add_f32, *out, n->bias, out));
    return REE_OK;
}

static enum ree_status normalize(struct ree_lower *lower, struct ree_view *x, const struct norm *n,
                                 struct ree_view **out) {
    // The RepOp supports only float32.
    if (!lower->fuse || x->dtype == REE_F64) {
        struct ree_view *d = x, *v, *root, *y;
        uint32_t mask = trailing_mask(x, n->first);
        if (n->rms)
            REE_TRY(ree_rule_mean(lower, x, mask, REE_REDUCE_SUM_SQ, &v));
        else
            REE_TRY(moments(lower, x, mask, NULL, &d, &v));
        REE_TRY(with_epsilon(lower, v, n->epsilon, REE_MAP_sqrt_f32, &root));
        REE_TRY(ree_rule_step2(lower, REE_MAP_div_f32, d, root, &y));
        return affine_steps(lower, n, y, out);
    }
    union ree_params params;
    struct ree_norm_params *p = &params.norm;
    memset(p, 0, sizeof *p);
    p->rms = n->rms;
    p->rows = (uint32_t)product(x, 0, n->first);
    p->cols = (uint32_t)product(x, n->first, x->rank);
    p->epsilon = n->epsilon;
    p->scale_row_div = p->scale_row_mod = 1;
    struct ree_view *operands[4], *y;
    uint32_t n_operands = 0;
    REE_TRY(ree_lower_dense(lower, x, &operands[n_operands++]));
    if (n->affine != AFFINE_NONE) {
        p->has_scale = n->scale != NULL;
        p->has_bias = n->bias != NULL;
        if (n->affine == AFFINE_ROWS) {
            p->scale_row_mod = (uint32_t)n->period;
            p->scale_row_stride = 1;
        } else {
            p->scale_col_stride = 1;
        }
        if (n->scale) REE_TRY(ree_lower_dense(lower, n->scale, &operands[n_operands++]));
        if (n->bias) REE_TRY(ree_lower_dense(lower, n->bias, &operands[n_operands++]));
    }
    REE_TRY(ree_lower_new(lower, REE_F32, x->rank, x->dims, &y));
    operands[n_operands++] = y;
    REE_TRY(ree_lower_emit(lower, REE_REPOP_NORM, &params, operands, n_operands, 1));
    if (n->affine == AFFINE_NONE) return affine_steps(lower, n, y, out);
    *out = y;
    return REE_OK;
}

// Returns whether t, aligned with x at the right, has one element for each position of x's
// dimensions from `first` on.
static bool covers_columns(const struct ree_view *t, const struct ree_view *x, uint32_t first) {
    uint32_t lead = x->rank - t->rank;
    for (uint32_t i = first; i < x->rank; i++)
        if ((i < lead ? 1 : t->dims[i - lead]) != x->dims[i]) return false;
    for (uint32_t i = 0; i < t->rank && i + lead < first; i++)
        if (t->dims[i] != 1) return false;
    return true;
}

// Reads scale and bias of LayerNormalization and RMSNormalization, which broadcast to x, usually
// its columns.
static enum ree_status read_affine(struct ree_lower *lower, const struct ree_view *x,
                                   struct ree_view *scale, struct ree_view *bias, struct norm *n) {
    struct ree_view *both[2] = {scale, bias}, *view;
    static const char *const names[2] = {"Scale", "B"};
    bool columns = true;
    for (uint32_t i = 0; i < 2; i++) {
        if (!both[i]) continue;
        REE_TRY(ree_rule_same_type(lower, both[i], names[i], x, "X"));
        REE_TRY(ree_lower_broadcast(lower, both[i], x->rank, x->dims, &view));
        columns = columns && covers_columns(both[i], x, n->first);
    }
    n->scale = scale;
    n->bias = bias;
    n->affine = columns ? AFFINE_COLUMNS : AFFINE_NONE;
    return REE_OK;
}

static enum ree_status check_stash(struct ree_lower *lower) {
    int64_t stash = ree_rule_int(lower, "stash_type", 1);
    if (stash == REE_F32) return REE_OK;
    return ree_lower_fail(lower, REE_UNSUPPORTED,
                          "stash_type is %lld; only 1 (float32) is supported", (long long)stash);
}

RULE(layer_normalization) {
    struct ree_view *x = in[0];
    struct norm n = {.epsilon = ree_rule_float(lower, "epsilon", 1e-5f)};
    REE_TRY(ree_rule_require_f32(lower, x));
    REE_TRY(check_stash(lower));
    REE_TRY(ree_lower_axis(lower, ree_rule_int(lower, "axis", -1), x->rank, &n.first));
    REE_TRY(read_affine(lower, x, in[1], ree_rule_input(lower, in, 2), &n));
    REE_TRY(normalize(lower, x, &n, &out[0]));
    if (!ree_rule_wants(lower, 1) && !ree_rule_wants(lower, 2)) return REE_OK;
    // Mean and inverse deviation have the type of the computation, float32.
    lower->stays_wide = 1u << 1 | 1u << 2;
    struct ree_view *d, *v;
    REE_TRY(moments(lower, x, trailing_mask(x, n.first), &out[1], &d, &v));
    if (!ree_rule_wants(lower, 2)) return REE_OK;
    return with_epsilon(lower, v, n.epsilon, REE_MAP_rsqrt_f32, &out[2]);
}

RULE(rms_normalization) {
    struct ree_view *x = in[0];
    struct norm n = {.rms = true, .epsilon = ree_rule_float(lower, "epsilon", 1e-5f)};
    REE_TRY(ree_rule_require_f32(lower, x));
    REE_TRY(check_stash(lower));
    REE_TRY(ree_lower_axis(lower, ree_rule_int(lower, "axis", -1), x->rank, &n.first));
    REE_TRY(read_affine(lower, x, in[1], NULL, &n));
    return normalize(lower, x, &n, &out[0]);
}

// Checks that scale or B has one element per channel.
static enum ree_status check_channels(struct ree_lower *lower, const struct ree_view *x,
                                      const struct ree_view *t, const char *name, int64_t n) {
    REE_TRY(ree_rule_same_type(lower, t, name, x, "X"));
    return ree_rule_require_vector(lower, t, name, n);
}

RULE(instance_normalization) {
    struct ree_view *x = in[0];
    struct norm n = {
        .epsilon = ree_rule_float(lower, "epsilon", 1e-5f), .first = 2, .affine = AFFINE_ROWS};
    REE_TRY(ree_rule_require_float(lower, x));
    REE_TRY(ree_rule_require_rank(lower, x, "X", 3, REE_MAX_RANK));
    n.period = x->dims[1];
    REE_TRY(check_channels(lower, x, in[1], "scale", n.period));
    REE_TRY(check_channels(lower, x, in[2], "B", n.period));
    REE_TRY(ree_rule_channel_view(lower, in[1], x->rank, &n.scale));
    REE_TRY(ree_rule_channel_view(lower, in[2], x->rank, &n.bias));
    return normalize(lower, x, &n, &out[0]);
}

// Normalises over (channels of a group, positions). Scale and bias have one element per group
// before opset 21, and one per channel from opset 21 on.
RULE(group_normalization) {
    struct ree_view *x = in[0], *y;
    struct norm n = {.epsilon = ree_rule_float(lower, "epsilon", 1e-5f), .first = 2};
    REE_TRY(ree_rule_require_f32(lower, x));
    REE_TRY(check_stash(lower));
    REE_TRY(ree_rule_require_rank(lower, x, "X", 2, REE_MAX_RANK));
    int64_t channels = x->dims[1], groups = ree_rule_int(lower, "num_groups", 0);
    if (groups < 1 || channels % groups)
        return ree_lower_fail(lower, REE_INVALID,
                              "X has %lld channels, which is not a multiple of num_groups = %lld",
                              (long long)channels, (long long)groups);
    int64_t positions = product(x, 2, x->rank);
    bool per_group = lower->node->opset < 21;
    int64_t n_affine = per_group ? groups : channels;
    REE_TRY(check_channels(lower, x, in[1], "scale", n_affine));
    REE_TRY(check_channels(lower, x, in[2], "bias", n_affine));
    int64_t grouped[3] = {x->dims[0], groups, channels / groups * positions};
    int64_t by_channel[3] = {x->dims[0], channels, positions};
    REE_TRY(ree_lower_reshape(lower, x, 3, grouped, &y));
    if (per_group) {
        n.affine = AFFINE_ROWS;
        n.period = groups;
        REE_TRY(ree_rule_channel_view(lower, in[1], 3, &n.scale));
        REE_TRY(ree_rule_channel_view(lower, in[2], 3, &n.bias));
        REE_TRY(normalize(lower, y, &n, &y));
    } else {
        struct norm affine = {.affine = AFFINE_NONE};
        REE_TRY(normalize(lower, y, &n, &y));
        REE_TRY(ree_lower_reshape(lower, y, 3, by_channel, &y));
        REE_TRY(ree_rule_channel_view(lower, in[1], 3, &affine.scale));
        REE_TRY(ree_rule_channel_view(lower, in[2], 3, &affine.bias));
        REE_TRY(affine_steps(lower, &affine, y, &y));
    }
    return ree_lower_reshape(lower, y, x->rank, x->dims, &out[0]);
}

// Computes (old * momentum) + (fresh * (1 - momentum)), as a vector.
static enum ree_status running_statistic(struct ree_lower *lower, struct ree_view *old,
                                         struct ree_view *fresh, struct ree_view **out) {
    float momentum = ree_rule_float(lower, "momentum", 0.9f);
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, old->rank, old->dims);
    int kept =
        ree_expr_op2(&b, REE_MAP_mul_f32, ree_expr_tensor(&b, old), ree_expr_f32(&b, momentum));
    int added = ree_expr_op2(&b, REE_MAP_mul_f32, ree_expr_tensor(&b, fresh),
                             ree_expr_f32(&b, 1 - momentum));
    REE_TRY(ree_lower_map(&b, ree_expr_op2(&b, REE_MAP_add_f32, kept, added), REE_F32, out));
    return ree_lower_reshape(lower, *out, 1, (int64_t[]){ree_view_count(*out)}, out);
}

// For training: replaces the given mean and variance in views[3] and views[4] by those of the
// batch, over all axes except the channels. The outputs are the running statistics and, before
// opset 14, also those of the batch.
static enum ree_status batch_statistics(struct ree_lower *lower, struct ree_view *views[5],
                                        struct ree_view **out) {
    struct ree_view *x = views[0], *d, *batch[2];
    uint32_t mask = ((1u << x->rank) - 1) & ~(1u << 1);
    REE_TRY(moments(lower, x, mask, &batch[0], &d, &batch[1]));
    for (uint32_t i = 0; i < 2; i++) {
        if (ree_rule_wants(lower, 1 + i))
            REE_TRY(running_statistic(lower, views[3 + i], batch[i], &out[1 + i]));
        int64_t channels = x->dims[1];
        if (lower->node->opset < 14 && ree_rule_wants(lower, 3 + i))
            REE_TRY(ree_lower_reshape(lower, batch[i], 1, &channels, &out[3 + i]));
        views[3 + i] = batch[i];
    }
    return REE_OK;
}

// With given statistics: a = scale / sqrt(var + epsilon), y = (x - mean) * a + B. a has one element
// per channel and is usually constant.
RULE(batch_normalization) {
    static const char *const names[5] = {"X", "scale", "B", "input_mean", "input_var"};
    struct ree_view *x = in[0], *views[5] = {x}, *factor;
    int64_t opset = lower->node->opset;
    REE_TRY(ree_rule_require_float(lower, x));
    REE_TRY(ree_rule_require_rank(lower, x, "X", 2, REE_MAX_RANK));
    // Since opset 14 an attribute selects training. Before, training is selected if a statistics
    // output is used.
    bool training = opset >= 14 && ree_rule_int(lower, "training_mode", 0) != 0;
    for (uint32_t i = 1; i < 5 && opset < 14; i++)
        training = training || ree_rule_wants(lower, i);
    // Before opset 9, spatial = 0 selects separate statistics for each element of a sample.
    bool spatial = opset >= 9 || ree_rule_int(lower, "spatial", 1) != 0;
    for (uint32_t i = 1; i < 5; i++) {
        if (spatial) {
            REE_TRY(check_channels(lower, x, in[i], names[i], x->dims[1]));
            REE_TRY(ree_rule_channel_view(lower, in[i], x->rank, &views[i]));
        } else {
            REE_TRY(ree_rule_same_type(lower, in[i], names[i], x, "X"));
            REE_TRY(ree_lower_reshape(lower, in[i], x->rank - 1, x->dims + 1, &views[i]));
        }
    }
    if (training) {
        if (!spatial)
            return ree_lower_fail(lower, REE_UNSUPPORTED,
                                  "training with spatial = 0 is not "
                                  "supported");
        REE_TRY(batch_statistics(lower, views, out));
    }
    struct ree_expr_builder b;
    float epsilon = ree_rule_float(lower, "epsilon", 1e-5f);
    ree_expr_init(&b, lower, views[1]->rank, views[1]->dims);
    int scale = ree_expr_tensor(&b, views[1]), variance = ree_expr_tensor(&b, views[4]);
    int root = ree_expr_op1(&b, REE_MAP_sqrt_f32,
                            ree_expr_op2(&b, REE_MAP_add_f32, variance, ree_expr_f32(&b, epsilon)));
    REE_TRY(ree_lower_map(&b, ree_expr_op2(&b, REE_MAP_div_f32, scale, root), REE_F32, &factor));

    ree_expr_init(&b, lower, x->rank, x->dims);
    int value = ree_expr_tensor(&b, x);
    value = ree_expr_op2(&b, REE_MAP_sub_f32, value, ree_expr_tensor(&b, views[3]));
    value = ree_expr_op2(&b, REE_MAP_mul_f32, value, ree_expr_tensor(&b, factor));
    value = ree_expr_op2(&b, REE_MAP_add_f32, value, ree_expr_tensor(&b, views[2]));
    return ree_lower_map(&b, value, REE_F32, &out[0]);
}

// y = d / (sqrt(v) + 1e-9), with d = x - mean(x) and v = mean(d * d) over the axes
RULE(mean_variance_normalization) {
    struct ree_view *x = in[0], *d, *v;
    static const int64_t usual[] = {0, 2, 3};
    size_t n;
    REE_TRY(ree_rule_require_float(lower, x));
    const int64_t *axes = ree_rule_ints(lower, "axes", &n);
    if (!axes) {
        axes = usual;
        n = 3;
    }
    uint32_t mask = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t axis;
        REE_TRY(ree_lower_axis(lower, axes[i], x->rank, &axis));
        mask |= 1u << axis;
    }
    REE_TRY(moments(lower, x, mask, NULL, &d, &v));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, v->rank, v->dims);
    int root = ree_expr_op1(&b, REE_MAP_sqrt_f32, ree_expr_tensor(&b, v));
    int divisor = ree_expr_op2(&b, REE_MAP_add_f32, root, ree_expr_f32(&b, 1e-9f));
    REE_TRY(ree_lower_map(&b, divisor, REE_F32, &v));
    return ree_rule_step2(lower, REE_MAP_div_f32, d, v, &out[0]);
}

// y = x / norm, or 0 if the norm is 0.
RULE(lp_normalization) {
    struct ree_view *x = in[0], *norm;
    int64_t p = ree_rule_int(lower, "p", 2);
    uint32_t axis;
    REE_TRY(ree_rule_require_float(lower, x));
    REE_TRY(ree_lower_axis(lower, ree_rule_int(lower, "axis", -1), x->rank, &axis));
    if (p != 1 && p != 2)
        return ree_lower_fail(lower, REE_INVALID, "p is %lld, expected 1 or 2", (long long)p);
    enum ree_reduce_kind kind = p == 1 ? REE_REDUCE_SUM_ABS : REE_REDUCE_SUM_SQ;
    REE_TRY(ree_lower_reduce(lower, x, kind, 1u << axis, true, false, &norm));
    if (p == 2) REE_TRY(ree_rule_step1(lower, REE_MAP_sqrt_f32, norm, &norm));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, x->rank, x->dims);
    int value = ree_expr_tensor(&b, x), divisor = ree_expr_tensor(&b, norm);
    int zero = ree_expr_f32(&b, 0);
    int is_zero = ree_expr_op2(&b, REE_MAP_eq_f32, divisor, zero);
    value = ree_expr_op2(&b, REE_MAP_div_f32, value, divisor);
    value = ree_expr_op3(&b, REE_MAP_select_b32, is_zero, zero, value);
    return ree_lower_map(&b, value, REE_F32, &out[0]);
}

// y = x / (bias + alpha / size * sum of squares over neighbouring channels)^beta. The sum is a pool
// over (channels, positions). A window that exceeds the channels on both sides is cut to them.
RULE(lrn) {
    struct ree_view *x = in[0], *dense, *sums;
    REE_TRY(ree_rule_require_f32(lower, x));
    REE_TRY(ree_rule_require_rank(lower, x, "X", 2, REE_MAX_RANK));
    int64_t size = ree_rule_int(lower, "size", 0);
    if (size < 1)
        return ree_lower_fail(lower, REE_INVALID, "size is %lld, expected 1 or more",
                              (long long)size);
    float alpha = ree_rule_float(lower, "alpha", 1e-4f);
    float beta = ree_rule_float(lower, "beta", 0.75f);
    float bias = ree_rule_float(lower, "bias", 1);
    int64_t channels = x->dims[1], before = (size - 1) / 2, after = size - 1 - before;
    if (before > channels) before = channels;
    if (after > channels) after = channels;

    union ree_params params;
    struct ree_pool_params *p = &params.pool;
    memset(p, 0, sizeof *p);
    p->kind = REE_POOL_SUM_SQ;
    p->dtype = REE_F32;
    p->planes = (uint32_t)x->dims[0];
    for (uint32_t i = 0; i < 3; i++)
        p->in[i] = p->out[i] = p->kernel[i] = p->stride[i] = p->dilation[i] = 1;
    p->in[1] = p->out[1] = (uint32_t)channels;
    p->in[2] = p->out[2] = (uint32_t)product(x, 2, x->rank);
    p->kernel[1] = (uint32_t)(before + after + 1);
    p->pad_begin[1] = (int32_t)before;
    p->pad_end[1] = (int32_t)after;
    REE_TRY(ree_lower_dense(lower, x, &dense));
    REE_TRY(ree_lower_new(lower, REE_F32, x->rank, x->dims, &sums));
    struct ree_view *operands[2] = {dense, sums};
    REE_TRY(ree_lower_emit(lower, REE_REPOP_POOL, &params, operands, 2, 1));

    struct ree_expr_builder b;
    ree_expr_init(&b, lower, x->rank, x->dims);
    int value = ree_expr_tensor(&b, dense), sum = ree_expr_tensor(&b, sums);
    int scaled = ree_expr_op2(&b, REE_MAP_mul_f32, ree_expr_f32(&b, alpha / (float)size), sum);
    int base = ree_expr_op2(&b, REE_MAP_add_f32, ree_expr_f32(&b, bias), scaled);
    int divisor = ree_expr_op2(&b, REE_MAP_pow_f32, base, ree_expr_f32(&b, beta));
    return ree_lower_map(&b, ree_expr_op2(&b, REE_MAP_div_f32, value, divisor), REE_F32, &out[0]);
}
