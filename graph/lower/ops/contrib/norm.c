// Normalisations with fused operations: a residual and a bias before, embeddings before, an
// activation after.
#include "graph/lower/ops/contrib/standard.h"

// Computes 1 / sqrt(mean-square(x) + epsilon) over the axes from `first` on, which remain with size
// 1.
static enum ree_status inverse_deviation(struct ree_lower *lower, struct ree_view *x,
                                         uint32_t first, float epsilon, struct ree_view **out) {
    struct ree_view *v;
    uint32_t mask = (1u << x->rank) - (1u << first);
    REE_TRY(ree_rule_mean(lower, x, mask, REE_REDUCE_SUM_SQ, &v));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, v->rank, v->dims);
    int sum = ree_expr_op2(&b, REE_MAP_add_f32, ree_expr_tensor(&b, v), ree_expr_f32(&b, epsilon));
    return ree_lower_map(&b, ree_expr_op1(&b, REE_MAP_rsqrt_f32, sum), REE_F32, out);
}

// y = RMSNormalization(X), in the type of `scale`.
RULE(ms_simplified_layer_normalization) {
    struct ree_view *x, *scale;
    int64_t axis = ree_rule_int(lower, "axis", -1);
    float epsilon = ree_rule_float(lower, "epsilon", 1e-5f);
    uint32_t first;
    REE_TRY(ree_contrib_widen(lower, in[0], &x));
    REE_TRY(ree_contrib_widen(lower, in[1], &scale));
    REE_TRY(ree_rule_require_f32(lower, x));
    REE_TRY(ree_rule_require_f32(lower, scale));
    REE_TRY(ree_lower_axis(lower, axis, x->rank, &first));
    struct ree_standard step = {
        .type = "RMSNormalization",
        .opset = 23,
        .in = {x, scale},
        .attrs = {REE_INT_ATTR("axis", first), REE_FLOAT_ATTR("epsilon", epsilon)}};
    REE_TRY(ree_standard_step(lower, &step, 1, out));
    REE_TRY(ree_lower_cast(lower, out[0], in[1]->dtype, &out[0]));
    if (!ree_rule_wants(lower, 1)) return REE_OK;
    return inverse_deviation(lower, x, first, epsilon, &out[1]);
}

// s = (input + skip) + bias, with checks. The caller then normalises the last dimension of s.
static enum ree_status skip_sum(struct ree_lower *lower, struct ree_view *x, struct ree_view *skip,
                                struct ree_view *bias, struct ree_view **out) {
    char text[128], want[128];
    REE_TRY(ree_rule_require_f32(lower, x));
    REE_TRY(ree_rule_require_rank(lower, x, "input", 2, 3));
    REE_TRY(ree_rule_same_type(lower, skip, "skip", x, "input"));
    // A batch may share one skip: (sequence, hidden) or (1, sequence, hidden).
    bool fits = skip->rank >= 2 && skip->rank <= x->rank;
    for (uint32_t i = 0; fits && i < skip->rank; i++) {
        uint32_t from_right = skip->rank - i;
        int64_t size = skip->dims[i];
        fits = size == x->dims[x->rank - from_right] || (from_right == 3 && size == 1);
    }
    if (!fits)
        return ree_lower_fail(lower, REE_INVALID,
                              "input skip is %s, expected the shape of the input, %s, with or "
                              "without its batch dimension",
                              ree_view_text(skip, text, sizeof text),
                              ree_view_text(x, want, sizeof want));
    REE_TRY(ree_contrib_check_vector(lower, bias, "bias", x, x->dims[x->rank - 1]));
    REE_TRY(ree_contrib_add(lower, x, skip, &x));
    return ree_contrib_add(lower, x, bias, out);
}

RULE(ms_skip_layer_normalization) {
    struct ree_view *x = in[0], *gamma = in[2], *beta = ree_rule_input(lower, in, 3), *sum;
    REE_TRY(skip_sum(lower, x, in[1], ree_rule_input(lower, in, 4), &sum));
    int64_t hidden = x->dims[x->rank - 1];
    REE_TRY(ree_contrib_check_vector(lower, gamma, "gamma", x, hidden));
    REE_TRY(ree_contrib_check_vector(lower, beta, "beta", x, hidden));
    float epsilon = ree_rule_float(lower, "epsilon", 1e-12f);
    struct ree_standard step = {.type = "LayerNormalization",
                                .opset = 17,
                                .in = {sum, gamma, beta},
                                .attrs = {REE_FLOAT_ATTR("epsilon", epsilon)}};
    uint32_t statistics =
        (uint32_t)ree_rule_wants(lower, 1) << 1 | (uint32_t)ree_rule_wants(lower, 2) << 2;
    if (ree_rule_wants(lower, 3)) out[3] = sum;
    return ree_standard_step(lower, &step, 1 | statistics, out);
}

RULE(ms_skip_simplified_layer_normalization) {
    struct ree_view *x = in[0], *gamma = in[2], *sum;
    REE_TRY(skip_sum(lower, x, in[1], ree_rule_input(lower, in, 3), &sum));
    REE_TRY(ree_contrib_check_vector(lower, gamma, "gamma", x, x->dims[x->rank - 1]));
    float epsilon = ree_rule_float(lower, "epsilon", 1e-12f);
    struct ree_standard step = {.type = "RMSNormalization",
                                .opset = 23,
                                .in = {sum, gamma},
                                .attrs = {REE_FLOAT_ATTR("epsilon", epsilon)}};
    if (ree_rule_wants(lower, 3)) out[3] = sum;
    REE_TRY(ree_standard_step(lower, &step, 1, out));
    if (!ree_rule_wants(lower, 2)) return REE_OK;
    lower->stays_wide = 1u << 2;
    return inverse_deviation(lower, sum, x->rank - 1, epsilon, &out[2]);
}

// Looks up rows of an embedding table (n, hidden) by ids.
static enum ree_status embed(struct ree_lower *lower, struct ree_view *table, const char *name,
                             struct ree_view *ids, int64_t hidden, struct ree_view **out) {
    REE_TRY(ree_rule_require_f32(lower, table));
    REE_TRY(ree_rule_require_rank(lower, table, name, 2, 2));
    if (table->dims[1] != hidden)
        return ree_lower_fail(lower, REE_INVALID,
                              "input %s has rows of %lld elements, expected %lld", name,
                              (long long)table->dims[1], (long long)hidden);
    struct ree_standard step = {.type = "Gather", .opset = 13, .in = {table, ids}};
    return ree_standard_step(lower, &step, 1, out);
}

static enum ree_status check_ids(struct ree_lower *lower, const struct ree_view *ids,
                                 const struct ree_view *like, const char *name, bool one_row) {
    char text[128], want[128];
    if (ids->dtype == REE_I32 && ids->rank == 2 && ids->dims[1] == like->dims[1] &&
        (ids->dims[0] == like->dims[0] || (one_row && ids->dims[0] == 1)))
        return REE_OK;
    return ree_lower_fail(lower, REE_INVALID, "input %s is %s, expected %s like input_ids", name,
                          ree_view_text(ids, text, sizeof text),
                          ree_view_text(like, want, sizeof want));
}

// Counts the ones in each row of the mask; 0 if there is no mask.
static enum ree_status mask_index(struct ree_lower *lower, struct ree_view *ids,
                                  struct ree_view *mask, struct ree_view **out) {
    struct ree_expr_builder b;
    if (!mask) {
        ree_expr_init(&b, lower, 1, ids->dims);
        return ree_lower_map(&b, ree_expr_i32(&b, 0), REE_I32, out);
    }
    REE_TRY(check_ids(lower, mask, ids, "mask", false));
    ree_expr_init(&b, lower, 2, mask->dims);
    int one = ree_expr_op2(&b, REE_MAP_eq_i32, ree_expr_tensor(&b, mask), ree_expr_i32(&b, 1));
    REE_TRY(ree_lower_map(&b, one, REE_I32, &mask));
    return ree_lower_reduce(lower, mask, REE_REDUCE_SUM, 1u << 1, false, false, out);
}

// LayerNormalization of (word + position) + segment.
RULE(ms_embed_layer_normalization) {
    struct ree_view *ids = in[0], *words, *positions, *gamma, *beta, *sum, *part;
    struct ree_view *segment_ids = ree_rule_input(lower, in, 1);
    struct ree_view *segments = ree_rule_input(lower, in, 4);
    struct ree_view *mask = ree_rule_input(lower, in, 7);
    struct ree_view *position_ids = ree_rule_input(lower, in, 8);
    REE_TRY(ree_contrib_required(lower, in, 2, "word_embedding", &words));
    REE_TRY(ree_contrib_required(lower, in, 3, "position_embedding", &positions));
    REE_TRY(ree_contrib_required(lower, in, 5, "gamma", &gamma));
    REE_TRY(ree_contrib_required(lower, in, 6, "beta", &beta));
    REE_TRY(ree_rule_require_rank(lower, ids, "input_ids", 2, 2));
    REE_TRY(check_ids(lower, ids, ids, "input_ids", false));
    REE_TRY(ree_rule_require_f32(lower, gamma));
    REE_TRY(ree_rule_require_rank(lower, gamma, "gamma", 1, 1));
    int64_t hidden = gamma->dims[0], length = ids->dims[1];
    REE_TRY(ree_contrib_check_vector(lower, beta, "beta", gamma, hidden));
    REE_TRY(embed(lower, words, "word_embedding", ids, hidden, &sum));
    if (position_ids) {
        REE_TRY(check_ids(lower, position_ids, ids, "position_ids", true));
        REE_TRY(embed(lower, positions, "position_embedding", position_ids, hidden, &part));
    } else {
        REE_TRY(ree_rule_require_rank(lower, positions, "position_embedding", 2, 2));
        if (positions->dims[0] < length)
            return ree_lower_fail(lower, REE_INVALID,
                                  "input position_embedding has %lld rows, expected %lld or more",
                                  (long long)positions->dims[0], (long long)length);
        REE_TRY(
            ree_rule_same_type(lower, positions, "position_embedding", words, "word_embedding"));
        REE_TRY(ree_lower_slice(lower, positions, 0, 0, 1, length, &part));
    }
    REE_TRY(ree_contrib_add(lower, sum, part, &sum));
    if (!segment_ids != !segments)
        return ree_lower_fail(lower, REE_INVALID,
                              "segment_ids and segment_embedding are expected together");
    if (segments) {
        REE_TRY(check_ids(lower, segment_ids, ids, "segment_ids", false));
        REE_TRY(embed(lower, segments, "segment_embedding", segment_ids, hidden, &part));
        REE_TRY(ree_contrib_add(lower, sum, part, &sum));
    }
    if (ree_rule_wants(lower, 1)) REE_TRY(mask_index(lower, ids, mask, &out[1]));
    if (ree_rule_wants(lower, 2)) out[2] = sum;
    float epsilon = ree_rule_float(lower, "epsilon", 1e-12f);
    struct ree_standard step = {.type = "LayerNormalization",
                                .opset = 17,
                                .in = {sum, gamma, beta},
                                .attrs = {REE_FLOAT_ATTR("epsilon", epsilon)}};
    return ree_standard_step(lower, &step, 1, out);
}

// GroupNormalization of x, followed by Swish if activation = 1. By default channels are the last
// dimension.
static enum ree_status group_norm(struct ree_lower *lower, struct ree_view *x,
                                  struct ree_view *const *affine, enum ree_dtype dtype,
                                  struct ree_view **out) {
    int64_t activation = ree_rule_int(lower, "activation", 0);
    bool channels_last = ree_rule_int(lower, "channels_last", 1) != 0;
    if (activation != 0 && activation != 1)
        return ree_lower_fail(lower, REE_INVALID, "activation is %lld, expected 0 or 1",
                              (long long)activation);
    if (channels_last) REE_TRY(ree_lower_transpose(lower, x, (uint32_t[]){0, 3, 1, 2}, &x));
    struct ree_standard norm = {
        .type = "GroupNormalization",
        .opset = 21,
        .in = {x},
        .attrs = {REE_FLOAT_ATTR("epsilon", ree_rule_float(lower, "epsilon", 1e-5f)),
                  REE_INT_ATTR("num_groups", ree_rule_int(lower, "groups", 0))}};
    for (uint32_t i = 0; i < 2; i++)
        REE_TRY(ree_contrib_widen(lower, affine[i], &norm.in[1 + i]));
    REE_TRY(ree_standard_step(lower, &norm, 1, &x));
    if (activation) {
        struct ree_standard swish = {.type = "Swish", .opset = 24, .in = {x}};
        REE_TRY(ree_standard_step(lower, &swish, 1, &x));
    }
    if (channels_last) REE_TRY(ree_lower_transpose(lower, x, (uint32_t[]){0, 2, 3, 1}, &x));
    return ree_lower_cast(lower, x, dtype, out);
}

RULE(ms_group_norm) {
    struct ree_view *x;
    REE_TRY(ree_rule_require_rank(lower, in[0], "X", 4, 4));
    REE_TRY(ree_contrib_widen(lower, in[0], &x));
    return group_norm(lower, x, in + 1, in[0]->dtype, &out[0]);
}

// GroupNormalization of s = (X + skip) + bias; skip may be shared by all positions.
RULE(ms_skip_group_norm) {
    struct ree_view *x, *skip, *bias = ree_rule_input(lower, in, 4), *sum;
    enum ree_dtype dtype = in[0]->dtype;
    REE_TRY(ree_rule_require_rank(lower, in[0], "X", 4, 4));
    REE_TRY(ree_rule_same_type(lower, in[3], "skip", in[0], "X"));
    bool channels_last = ree_rule_int(lower, "channels_last", 1) != 0;
    int64_t channels = in[0]->dims[channels_last ? 3 : 1];
    REE_TRY(ree_contrib_check_vector(lower, bias, "bias", in[0], channels));
    REE_TRY(ree_contrib_widen(lower, in[0], &x));
    REE_TRY(ree_contrib_widen(lower, in[3], &skip));
    int64_t row[4] = {skip->dims[0], 1, 1, 1};
    row[channels_last ? 3 : 1] = channels;
    if (skip->rank == 2) REE_TRY(ree_lower_reshape(lower, skip, 4, row, &skip));
    REE_TRY(ree_lower_broadcast(lower, skip, 4, x->dims, &skip));
    REE_TRY(ree_contrib_add(lower, x, skip, &sum));
    if (bias) {
        row[0] = 1;
        REE_TRY(ree_contrib_widen(lower, bias, &bias));
        REE_TRY(ree_lower_reshape(lower, bias, 4, row, &bias));
        REE_TRY(ree_contrib_add(lower, sum, bias, &sum));
    }
    if (ree_rule_wants(lower, 1)) REE_TRY(ree_lower_cast(lower, sum, dtype, &out[1]));
    return group_norm(lower, sum, in + 1, dtype, &out[0]);
}
