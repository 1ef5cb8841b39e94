// MultiHeadAttention and DecoderMaskedMultiHeadAttention: queries, keys and values are inputs,
// separate or packed. The rules add the bias.
#include "graph/lower/ops/contrib/heads.h"
#include "graph/lower/ops/data.h"

// The operands, in one order for both operators.
struct operands {
    struct ree_view *query, *key, *value, *bias, *mask, *attention_bias, *past_key, *past_value;
    bool packed_rows; // a query without a key is (batch, length, 3 * hidden)
    // Positions in use in the past's buffer, which has capacity for the new key and value; -1: all
    // of its positions are in use.
    int64_t filled;
};

// Views part `part` of t (batch, length, n_heads, n_parts, head_dim) as (batch, n_heads, length,
// head_dim).
static enum ree_status unpack(struct ree_lower *lower, const struct ree_heads *h,
                              struct ree_view *t, const char *what, int64_t n_parts, int64_t part,
                              struct ree_view **out) {
    char text[128];
    if (t->rank != 5 || t->dims[2] != h->n_heads || t->dims[3] != n_parts)
        return ree_lower_fail(
            lower, REE_INVALID, "the packed %s is %s, expected (batch,length,%lld,%lld,size)", what,
            ree_view_text(t, text, sizeof text), (long long)h->n_heads, (long long)n_parts);
    int64_t dims[4] = {t->dims[0], t->dims[1], t->dims[2], t->dims[4]};
    REE_TRY(ree_lower_slice(lower, t, 3, part, 1, 1, out));
    REE_TRY(ree_lower_reshape(lower, *out, 4, dims, out));
    return ree_lower_transpose(lower, *out, (uint32_t[]){0, 2, 1, 3}, out);
}

// Converts all supported forms to three tensors (batch, n_heads, length, head_dim). *out_cached
// tells whether key and value had that form already.
static enum ree_status split(struct ree_lower *lower, const struct ree_heads *h,
                             const struct operands *o, struct ree_view *qkv[3], bool *out_cached) {
    static const char *const names[3] = {"query", "key", "value"};
    struct ree_view *given[3] = {o->query, o->key, o->value};
    bool packed_pair = o->key && o->key->rank == 5;
    *out_cached = o->key && o->key->rank == 4;
    if (!o->value != (!o->key || packed_pair))
        return ree_lower_fail(lower, REE_INVALID,
                              "key and value are expected together, or packed in one input");
    for (uint32_t i = 0; i < 3; i++) {
        if (!o->key && !o->packed_rows) {
            REE_TRY(unpack(lower, h, o->query, "query", 3, i, &qkv[i]));
        } else if (!o->key) {
            REE_TRY(ree_rule_require_rank(lower, o->query, "query", 3, 3));
            int64_t size = o->query->dims[2] / 3;
            REE_TRY(ree_lower_slice(lower, o->query, 2, i * size, 1, size, &qkv[i]));
            REE_TRY(ree_lower_split_heads(lower, qkv[i], h->n_heads, names[i], &qkv[i]));
        } else if (i > 0 && packed_pair) {
            REE_TRY(unpack(lower, h, o->key, "key", 2, i - 1, &qkv[i]));
        } else if (i > 0 && *out_cached) {
            qkv[i] = given[i];
        } else {
            REE_TRY(ree_lower_split_heads(lower, given[i], h->n_heads, names[i], &qkv[i]));
        }
    }
    return REE_OK;
}

// Adds the bias to t. The bias holds n_heads * head_dim elements for queries, then for keys, then
// for values; t's part begins at index `at`.
static enum ree_status add_bias(struct ree_lower *lower, struct ree_view *bias, int64_t at,
                                struct ree_view **t) {
    int64_t dims[4] = {1, (*t)->dims[1], 1, (*t)->dims[3]};
    REE_TRY(ree_lower_slice(lower, bias, 0, at, 1, dims[1] * dims[3], &bias));
    REE_TRY(ree_lower_reshape(lower, bias, 4, dims, &bias));
    return ree_contrib_add(lower, *t, bias, t);
}

static enum ree_status add_biases(struct ree_lower *lower, const struct operands *o, bool cached,
                                  struct ree_view *qkv[3]) {
    int64_t sizes[3], total = 0;
    for (uint32_t i = 0; i < 3; i++)
        total += sizes[i] = qkv[i]->dims[1] * qkv[i]->dims[3];
    if (!o->bias) return REE_OK;
    struct ree_view *bias;
    REE_TRY(ree_contrib_check_vector(lower, o->bias, "bias", o->query, total));
    REE_TRY(ree_contrib_widen(lower, o->bias, &bias));
    for (uint32_t i = 0, at = 0; i < (cached ? 1 : 3); at += (uint32_t)sizes[i++])
        REE_TRY(add_bias(lower, bias, at, &qkv[i]));
    return REE_OK;
}

// Appends *t to `past`. *out_present becomes the whole buffer, *t its filled part.
static enum ree_status join(struct ree_lower *lower, const struct operands *o,
                            struct ree_view *past, const char *name, struct ree_view **t,
                            struct ree_view **out_present) {
    struct ree_view *buffer, *part;
    if (o->filled < 0) {
        REE_TRY(ree_lower_append_keys(lower, past, *t, name, t));
        *out_present = *t;
        return REE_OK;
    }
    char a[128], b[128];
    int64_t end = o->filled + (*t)->dims[2];
    bool fits = past->dtype == (*t)->dtype && past->rank == 4;
    for (uint32_t i = 0; fits && i < 4; i++)
        fits = i == 2 ? past->dims[i] >= end : past->dims[i] == (*t)->dims[i];
    if (!fits)
        return ree_lower_fail(lower, REE_INVALID,
                              "%s is %s, expected the type and shape of %s, except for its length, "
                              "which must be %lld or more",
                              name, ree_view_text(past, a, sizeof a),
                              ree_view_text(*t, b, sizeof b), (long long)end);
    REE_TRY(ree_lower_new(lower, past->dtype, 4, past->dims, &buffer));
    REE_TRY(ree_lower_copy_into(lower, past, buffer));
    REE_TRY(ree_lower_slice(lower, buffer, 2, o->filled, 1, (*t)->dims[2], &part));
    REE_TRY(ree_lower_copy_into(lower, *t, part));
    *out_present = buffer;
    return ree_lower_slice(lower, buffer, 2, 0, 1, end, t);
}

static enum ree_status attend(struct ree_lower *lower, struct ree_heads *h,
                              const struct operands *o, struct ree_view **out) {
    enum ree_dtype dtype = o->query->dtype;
    struct ree_view *qkv[3], *bias;
    bool cached;
    REE_TRY(split(lower, h, o, qkv, &cached));
    for (uint32_t i = 0; i < 3; i++) {
        if (qkv[i]->dtype != dtype)
            return ree_lower_fail(lower, REE_INVALID, "the key or value is %s, expected %s",
                                  ree_dtype_name(qkv[i]->dtype), ree_dtype_name(dtype));
        REE_TRY(ree_rule_require_rank(lower, qkv[i], "key or value", 4, 4));
        REE_TRY(ree_contrib_widen(lower, qkv[i], &qkv[i]));
    }
    REE_TRY(add_biases(lower, o, cached, qkv));
    if (!o->past_key != !o->past_value || (o->past_key && cached))
        return ree_lower_fail(
            lower, REE_INVALID,
            "past_key and past_value are expected together, and not with a key of rank 4");
    h->batch = qkv[0]->dims[0];
    h->q_len = qkv[0]->dims[2];
    h->kv_len = qkv[1]->dims[2];
    struct ree_view *past[2] = {o->past_key, o->past_value}, *present;
    static const char *const names[2] = {"past_key", "past_value"};
    for (uint32_t i = 0; i < 2; i++) {
        struct ree_view **t = &qkv[1 + i];
        if (dtype != REE_F32) REE_TRY(ree_lower_cast(lower, *t, dtype, t));
        REE_TRY(join(lower, o, past[i], names[i], t, &present));
        if (ree_rule_wants(lower, 1 + i)) out[1 + i] = present;
    }
    if (past[0]) h->past_len = o->filled < 0 ? past[0]->dims[2] : o->filled;
    REE_TRY(ree_heads_bias(lower, h, o->mask, o->attention_bias, &bias));
    return ree_heads_attend(lower, h, qkv[0], qkv[1], qkv[2], bias, dtype, &out[0],
                            ree_rule_wants(lower, 3) ? &out[3] : NULL);
}

RULE(ms_multi_head_attention) {
    struct operands o = {.query = in[0],
                         .key = ree_rule_input(lower, in, 1),
                         .value = ree_rule_input(lower, in, 2),
                         .bias = ree_rule_input(lower, in, 3),
                         .mask = ree_rule_input(lower, in, 4),
                         .attention_bias = ree_rule_input(lower, in, 5),
                         .past_key = ree_rule_input(lower, in, 6),
                         .past_value = ree_rule_input(lower, in, 7),
                         .filled = -1};
    struct ree_heads h;
    if (ree_rule_input(lower, in, 8) || ree_rule_input(lower, in, 9))
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "a cache that is shared by past and present is not supported");
    REE_TRY(ree_heads_init(lower, &h));
    return attend(lower, &h, &o, out);
}

// One query per sequence, never causal. If past and present share a buffer, an input gives its
// filled length. Beam search is refused.
RULE(ms_decoder_masked_multi_head_attention) {
    struct operands o = {.query = in[0],
                         .key = ree_rule_input(lower, in, 1),
                         .value = ree_rule_input(lower, in, 2),
                         .mask = ree_rule_input(lower, in, 3),
                         .attention_bias = ree_rule_input(lower, in, 4),
                         .past_key = ree_rule_input(lower, in, 5),
                         .past_value = ree_rule_input(lower, in, 6),
                         .bias = ree_rule_input(lower, in, 10),
                         .packed_rows = true,
                         .filled = -1};
    struct ree_heads h;
    struct ree_view *filled;
    if (ree_rule_input(lower, in, 9))
        return ree_lower_fail(lower, REE_UNSUPPORTED, "cache_indirection is not supported");
    REE_TRY(ree_heads_init(lower, &h));
    h.causal = false;
    REE_TRY(ree_rule_require_rank(lower, o.query, "query", 3, 3));
    if (o.query->dims[1] != 1)
        return ree_lower_fail(lower, REE_INVALID, "query has length %lld, expected 1",
                              (long long)o.query->dims[1]);
    if (ree_rule_int(lower, "past_present_share_buffer", 0) && o.past_key) {
        REE_TRY(ree_contrib_required(lower, in, 7, "past_sequence_length", &filled));
        REE_TRY(ree_data_int(lower, filled, "past_sequence_length", &o.filled));
        if (o.filled < 0 || o.filled > INT32_MAX)
            return ree_lower_fail(lower, REE_INVALID,
                                  "past_sequence_length is %lld, expected 0 or more",
                                  (long long)o.filled);
    }
    return attend(lower, &h, &o, out);
}
