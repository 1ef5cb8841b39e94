// Attention (from opset 23 on): converts queries, keys, values, caches and masks to the form that
// core.c requires. Caches keep their type, and keys and values are read from them in that type.
#include "graph/lower/ops/attention/attention.h"

#include <math.h>
#include <string.h>

static struct ree_view *input(const struct ree_lower *lower, struct ree_view *const *in,
                              uint32_t i) {
    return ree_rule_input(lower, in, i);
}

// Converts a query, key or value, (batch, len, heads * size) or (batch, heads, len, size), to the
// second form. `attribute` names the attribute with the number of heads. `rank` is the rank of the
// query, which t must have.
static enum ree_status read_heads(struct ree_lower *lower, struct ree_view *t, const char *what,
                                  const char *attribute, uint32_t rank, struct ree_view **out) {
    char text[128];
    int64_t n_heads = ree_rule_int(lower, attribute, 0);
    if (!ree_attention_is_float(t->dtype))
        return ree_lower_fail(lower, t->dtype == REE_F64 ? REE_UNSUPPORTED : REE_INVALID,
                              "the %s is %s, expected float32, float16 or bfloat16", what,
                              ree_view_text(t, text, sizeof text));
    if (t->rank != rank || (rank != 3 && rank != 4))
        return ree_lower_fail(lower, REE_INVALID,
                              "the %s is %s, expected rank 3 or 4, the same for query, key and "
                              "value",
                              what, ree_view_text(t, text, sizeof text));
    *out = t;
    if (rank == 4) {
        if (!ree_node_attr(lower->node, attribute) || n_heads == t->dims[1]) return REE_OK;
        return ree_lower_fail(lower, REE_INVALID, "%s is %lld, but the %s is %s", attribute,
                              (long long)n_heads, what, ree_view_text(t, text, sizeof text));
    }
    if (n_heads < 1)
        return ree_lower_fail(lower, REE_INVALID,
                              "%s is %lld; inputs of rank 3 require it to be 1 or more", attribute,
                              (long long)n_heads);
    return ree_lower_split_heads(lower, t, n_heads, what, out);
}

// Extends a mask to kv_len keys. Queries do not attend to keys that the mask does not cover.
static enum ree_status pad_mask(struct ree_lower *lower, struct ree_view *t, int64_t kv_len,
                                struct ree_view **out) {
    *out = t;
    if (t->rank == 0 || t->dims[t->rank - 1] >= kv_len) return REE_OK;
    uint32_t last = t->rank - 1;
    struct ree_view *padded, *part, *fill;
    int64_t n = t->dims[last], dims[REE_MAX_RANK];
    memcpy(dims, t->dims, sizeof dims);
    dims[last] = kv_len;
    REE_TRY(ree_lower_new(lower, t->dtype, t->rank, dims, &padded));
    if (n) {
        REE_TRY(ree_lower_slice(lower, padded, last, 0, 1, n, &part));
        REE_TRY(ree_lower_copy_into(lower, t, part));
    }
    const float nothing = -INFINITY;
    const uint32_t no = 0; // read as one byte
    const void *value = t->dtype == REE_BOOL ? (const void *)&no : &nothing;
    REE_TRY(ree_lower_literal(lower, t->dtype, 0, NULL, value, &fill));
    REE_TRY(ree_lower_slice(lower, padded, last, n, 1, kv_len - n, &part));
    REE_TRY(ree_lower_broadcast(lower, fill, part->rank, part->dims, &fill));
    REE_TRY(ree_lower_copy_into(lower, fill, part));
    *out = padded;
    return REE_OK;
}

static enum ree_status read_mask(struct ree_lower *lower, struct ree_view *t,
                                 struct ree_attention *a) {
    if (!t) return REE_OK;
    char text[128];
    if (t->dtype != REE_BOOL && !ree_attention_is_float(t->dtype))
        return ree_lower_fail(lower, REE_INVALID,
                              "attn_mask is %s, expected bool or the type of the query",
                              ree_view_text(t, text, sizeof text));
    if (t->dtype != REE_BOOL) REE_TRY(ree_lower_cast(lower, t, REE_F32, &t));
    REE_TRY(pad_mask(lower, t, a->k->dims[2], &t));
    *(t->dtype == REE_BOOL ? &a->allowed : &a->bias) = t;
    return REE_OK;
}

// Reads the position of the queries among the keys, and the window of keys that they attend to.
static enum ree_status read_window(struct ree_lower *lower, struct ree_view *past,
                                   struct ree_view *n_keys, struct ree_attention *a) {
    static const char *const names[2] = {"left_window_size", "right_window_size"};
    int64_t *bounds[2] = {&a->left, &a->right};
    for (uint32_t i = 0; i < 2; i++) {
        *bounds[i] = ree_rule_int(lower, names[i], REE_ATTENTION_UNBOUNDED);
        if (*bounds[i] < REE_ATTENTION_UNBOUNDED)
            return ree_lower_fail(lower, REE_INVALID, "%s is %lld, expected -1 or more", names[i],
                                  (long long)*bounds[i]);
    }
    if (ree_rule_int(lower, "is_causal", 0)) a->right = 0;
    a->start = past ? past->dims[2] : 0;
    if (!n_keys) return REE_OK;
    if (past)
        return ree_lower_fail(lower, REE_INVALID,
                              "nonpad_kv_seqlen cannot be combined with past_key");
    // The last query is at the last valid key.
    a->n_keys = a->starts = n_keys;
    a->start = -a->q->dims[2];
    return REE_OK;
}

static enum ree_status read_tap(struct ree_lower *lower, struct ree_attention *a) {
    static const enum ree_attention_tap taps[] = {
        REE_ATTENTION_TAP_SCORES, REE_ATTENTION_TAP_CAPPED, REE_ATTENTION_TAP_MASKED,
        REE_ATTENTION_TAP_WEIGHTS};
    int64_t mode = ree_rule_int(lower, "qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3)
        return ree_lower_fail(lower, REE_INVALID, "qk_matmul_output_mode is %lld, expected 0 to 3",
                              (long long)mode);
    if (ree_rule_wants(lower, 3)) a->tap = taps[mode];
    return REE_OK;
}

enum ree_status ree_attention_precision(struct ree_lower *lower) {
    int64_t precision = ree_rule_int(lower, "softmax_precision", REE_F32);
    if (precision == REE_F32 || precision == REE_F16 || precision == REE_BF16) return REE_OK;
    return ree_lower_fail(lower, precision == REE_F64 ? REE_UNSUPPORTED : REE_INVALID,
                          "softmax_precision is %s, expected float32, float16 or bfloat16",
                          ree_onnx_type_name(precision));
}

enum ree_status ree_lower_op_attention(struct ree_lower *lower, struct ree_view *const *in,
                                       struct ree_view **out) {
    struct ree_view *q, *k, *v, *y, *tapped;
    struct ree_view *past_k = input(lower, in, 4), *past_v = input(lower, in, 5);
    uint32_t rank = in[0]->rank;
    REE_TRY(read_heads(lower, in[0], "query", "q_num_heads", rank, &q));
    REE_TRY(read_heads(lower, in[1], "key", "kv_num_heads", rank, &k));
    REE_TRY(read_heads(lower, in[2], "value", "kv_num_heads", rank, &v));
    if (!past_k != !past_v)
        return ree_lower_fail(lower, REE_INVALID, "%s is given without %s",
                              past_k ? "past_key" : "past_value",
                              past_k ? "past_value" : "past_key");
    REE_TRY(ree_lower_append_keys(lower, past_k, k, "past_key", &k));
    REE_TRY(ree_lower_append_keys(lower, past_v, v, "past_value", &v));

    struct ree_attention a;
    ree_attention_init(&a);
    REE_TRY(ree_lower_cast(lower, q, REE_F32, &a.q));
    a.k = k;
    a.v = v;
    a.scale = ree_rule_float(lower, "scale", ree_attention_default_scale(q->dims[3]));
    a.softcap = ree_rule_float(lower, "softcap", 0);
    if (!(a.softcap >= 0))
        return ree_lower_fail(lower, REE_INVALID, "softcap is %g, expected 0 or more",
                              (double)a.softcap);
    REE_TRY(ree_attention_precision(lower));
    REE_TRY(read_tap(lower, &a));
    REE_TRY(read_window(lower, past_k, input(lower, in, 6), &a));
    REE_TRY(read_mask(lower, input(lower, in, 3), &a));
    REE_TRY(ree_lower_attention(lower, &a, &y, &tapped));

    REE_TRY(ree_lower_cast(lower, y, q->dtype, &y));
    if (rank == 3) REE_TRY(ree_lower_join_heads(lower, y, &y));
    out[0] = y;
    if (ree_rule_wants(lower, 1)) out[1] = k;
    if (ree_rule_wants(lower, 2)) out[2] = v;
    if (ree_rule_wants(lower, 3)) REE_TRY(ree_lower_cast(lower, tapped, q->dtype, &out[3]));
    return REE_OK;
}
