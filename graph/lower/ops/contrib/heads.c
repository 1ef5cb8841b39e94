// Makes the bias of the scores from masks, and computes attention, for the attention operators of
// com.microsoft.
#include "graph/lower/ops/contrib/heads.h"

#include <float.h>

enum ree_status ree_heads_init(struct ree_lower *lower, struct ree_heads *h) {
    *h = (struct ree_heads){
        .n_heads = ree_rule_int(lower, "num_heads", 0),
        .causal = ree_rule_int(lower, "unidirectional", 0) != 0,
        .filter = ree_rule_float(lower, "mask_filter_value", -10000.0f),
        .scale = ree_rule_float(lower, "scale", 0),
    };
    if (h->n_heads >= 1 && h->n_heads <= INT32_MAX) return REE_OK;
    return ree_lower_fail(lower, REE_INVALID, "num_heads is %lld, expected 1 or more",
                          (long long)h->n_heads);
}

enum mask_form { MASK_NONE, MASK_KEYS, MASK_PAIRS, MASK_END, MASK_END_START };

static enum ree_status read_form(struct ree_lower *lower, const struct ree_heads *h,
                                 const struct ree_view *mask, enum mask_form *out) {
    int64_t total = h->past_len + h->kv_len;
    const int64_t *d = mask->dims;
    char text[128];
    *out = MASK_NONE;
    if (mask->dtype == REE_I32) {
        if (mask->rank == 1 && (d[0] == h->batch || d[0] == 2 * h->batch)) {
            *out = d[0] == h->batch ? MASK_END : MASK_END_START;
            return REE_OK;
        }
        if (mask->rank == 2 && d[0] == h->batch && d[1] == total) {
            *out = MASK_KEYS;
            return REE_OK;
        }
        if (mask->rank == 2 && (d[0] == h->batch || d[0] == 1) && d[1] == 1) return REE_OK;
        if (mask->rank == 3 && d[0] == h->batch && d[1] == h->q_len && d[2] == total) {
            *out = MASK_PAIRS;
            return REE_OK;
        }
    }
    return ree_lower_fail(lower, REE_UNSUPPORTED,
                          "the mask is %s, expected int32 of (%lld,%lld), (%lld,%lld,%lld), "
                          "(%lld) or (%lld)",
                          ree_view_text(mask, text, sizeof text), (long long)h->batch,
                          (long long)total, (long long)h->batch, (long long)h->q_len,
                          (long long)total, (long long)h->batch, (long long)(2 * h->batch));
}

// Writes to *out a value of the builder over (batch, 1, q_len, total): 1 if the mask excludes the
// key, else 0.
static enum ree_status left_out(struct ree_lower *lower, struct ree_expr_builder *b,
                                const struct ree_heads *h, struct ree_view *mask,
                                enum mask_form form, int *out) {
    int64_t dims[4] = {h->batch, 1, form == MASK_PAIRS ? h->q_len : 1, 1};
    if (form == MASK_KEYS || form == MASK_PAIRS) {
        dims[3] = h->past_len + h->kv_len;
        REE_TRY(ree_lower_reshape(lower, mask, 4, dims, &mask));
        *out = ree_expr_op2(b, REE_MAP_le_i32, ree_expr_tensor(b, mask), ree_expr_i32(b, 0));
        return REE_OK;
    }
    struct ree_view *end = mask, *start;
    if (form == MASK_END_START) {
        REE_TRY(ree_lower_slice(lower, mask, 0, 0, 1, h->batch, &end));
        REE_TRY(ree_lower_slice(lower, mask, 0, h->batch, 1, h->batch, &start));
        REE_TRY(ree_lower_reshape(lower, start, 4, dims, &start));
    }
    REE_TRY(ree_lower_reshape(lower, end, 4, dims, &end));
    int key = ree_expr_iota(b, REE_I32, 0, (int64_t[]){0, 0, 0, 1});
    *out = ree_expr_op2(b, REE_MAP_le_i32, ree_expr_tensor(b, end), key);
    if (form == MASK_END_START) {
        int before = ree_expr_op2(b, REE_MAP_lt_i32, key, ree_expr_tensor(b, start));
        *out = ree_expr_op2(b, REE_MAP_or_b32, *out, before);
    }
    return REE_OK;
}

static enum ree_status check_bias(struct ree_lower *lower, const struct ree_heads *h,
                                  const struct ree_view *t) {
    int64_t want[4] = {h->batch, h->n_heads, h->q_len, h->past_len + h->kv_len};
    char text[128];
    bool fits = t->rank == 4 && t->dtype == REE_F32;
    for (uint32_t i = 0; fits && i < 4; i++)
        fits = t->dims[i] == want[i] || (i < 2 && t->dims[i] == 1);
    if (fits) return REE_OK;
    return ree_lower_fail(lower, REE_INVALID,
                          "attention_bias is %s, expected (%lld or 1,%lld or 1,%lld,%lld)",
                          ree_view_text(t, text, sizeof text), (long long)want[0],
                          (long long)want[1], (long long)want[2], (long long)want[3]);
}

enum ree_status ree_heads_bias(struct ree_lower *lower, const struct ree_heads *h,
                               struct ree_view *mask, struct ree_view *attention_bias,
                               struct ree_view **out) {
    enum mask_form form = MASK_NONE;
    bool causal = h->causal && h->q_len > 1;
    if (mask) REE_TRY(read_form(lower, h, mask, &form));
    *out = NULL;
    if (form != MASK_NONE || causal) {
        int64_t dims[4] = {form == MASK_NONE ? 1 : h->batch, 1, 1, h->past_len + h->kv_len};
        if (causal || form == MASK_PAIRS) dims[2] = h->q_len;
        struct ree_expr_builder b;
        ree_expr_init(&b, lower, 4, dims);
        int value = ree_expr_f32(&b, 0), condition;
        if (form != MASK_NONE) {
            REE_TRY(left_out(lower, &b, h, mask, form, &condition));
            int filter = ree_expr_f32(&b, h->filter);
            value = ree_expr_select(&b, REE_F32, condition, filter, value);
        }
        if (causal) {
            // key - query > past_len
            int distance = ree_expr_iota(&b, REE_I32, 0, (int64_t[]){0, 0, -1, 1});
            int past = ree_expr_i32(&b, (int32_t)h->past_len);
            condition = ree_expr_op2(&b, REE_MAP_lt_i32, past, distance);
            int lowest = ree_expr_f32(&b, -FLT_MAX);
            value = ree_expr_select(&b, REE_F32, condition, lowest, value);
        }
        REE_TRY(ree_lower_map(&b, value, REE_F32, out));
    }
    if (!attention_bias) return REE_OK;
    REE_TRY(ree_contrib_widen(lower, attention_bias, &attention_bias));
    REE_TRY(check_bias(lower, h, attention_bias));
    return ree_contrib_add(lower, attention_bias, *out, out);
}

enum ree_status ree_heads_attend(struct ree_lower *lower, const struct ree_heads *h,
                                 struct ree_view *q, struct ree_view *k, struct ree_view *v,
                                 struct ree_view *bias, enum ree_dtype dtype, struct ree_view **out,
                                 struct ree_view **out_scores) {
    struct ree_attention a;
    struct ree_view *y, *tapped = NULL;
    ree_attention_init(&a);
    a.q = q;
    a.k = k;
    a.v = v;
    a.bias = bias;
    a.scale = h->scale != 0 ? h->scale : ree_attention_default_scale(q->dims[3]);
    if (out_scores) a.tap = REE_ATTENTION_TAP_MASKED;
    REE_TRY(ree_lower_attention(lower, &a, &y, &tapped));
    REE_TRY(ree_lower_join_heads(lower, y, &y));
    if (out_scores) REE_TRY(ree_lower_cast(lower, tapped, dtype, out_scores));
    return ree_lower_cast(lower, y, dtype, out);
}
