// Attention of com.microsoft. It includes the projection of the input to queries, keys and values.
#include "graph/lower/ops/contrib/heads.h"

// Reads the number of columns of queries, keys and values in the merged weights.
static enum ree_status read_sizes(struct ree_lower *lower, const struct ree_heads *h,
                                  int64_t columns, int64_t sizes[3]) {
    size_t n;
    const int64_t *given = ree_rule_ints(lower, "qkv_hidden_sizes", &n);
    if (given && n != 3)
        return ree_lower_fail(lower, REE_INVALID, "qkv_hidden_sizes has %zu entries, expected 3",
                              n);
    int64_t rest = columns;
    for (uint32_t i = 0; i < 3; i++) {
        sizes[i] = given ? given[i] : columns / 3;
        if (sizes[i] < 1 || sizes[i] > rest || sizes[i] % h->n_heads)
            return ree_lower_fail(lower, REE_INVALID,
                                  "%lld columns of the weights for queries, keys or values, "
                                  "expected a multiple of num_heads = %lld",
                                  (long long)sizes[i], (long long)h->n_heads);
        rest -= sizes[i];
    }
    if (rest != 0 || sizes[0] != sizes[1])
        return ree_lower_fail(
            lower, REE_INVALID,
            "the weights have %lld columns, expected %lld + %lld + %lld with the first two equal",
            (long long)columns, (long long)sizes[0], (long long)sizes[1], (long long)sizes[2]);
    return REE_OK;
}

// Computes queries, keys and values (batch, n_heads, length, head_dim) as input * weights + bias.
static enum ree_status project(struct ree_lower *lower, const struct ree_heads *h,
                               struct ree_view *const *in, struct ree_view *out[3]) {
    static const char *const names[3] = {"queries", "keys", "values"};
    struct ree_view *x, *weights, *bias = ree_rule_input(lower, in, 2), *merged;
    int64_t sizes[3], at = 0;
    REE_TRY(ree_rule_same_type(lower, in[1], "weights", in[0], "input"));
    REE_TRY(ree_rule_require_rank(lower, in[1], "weights", 2, 2));
    REE_TRY(read_sizes(lower, h, in[1]->dims[1], sizes));
    REE_TRY(ree_contrib_check_vector(lower, bias, "bias", in[0], in[1]->dims[1]));
    REE_TRY(ree_contrib_widen(lower, in[0], &x));
    REE_TRY(ree_contrib_widen(lower, in[1], &weights));
    REE_TRY(ree_rule_require_f32(lower, x));
    struct ree_standard product = {.type = "MatMul", .opset = 13, .in = {x, weights}};
    REE_TRY(ree_standard_step(lower, &product, 1, &merged));
    if (bias) REE_TRY(ree_contrib_widen(lower, bias, &bias));
    REE_TRY(ree_contrib_add(lower, merged, bias, &merged));
    for (uint32_t i = 0; i < 3; i++) {
        REE_TRY(ree_lower_slice(lower, merged, 2, at, 1, sizes[i], &out[i]));
        REE_TRY(ree_lower_split_heads(lower, out[i], h->n_heads, names[i], &out[i]));
        at += sizes[i];
    }
    return REE_OK;
}

// Views the keys (part 0) or values (part 1) of a cache (2, batch, n_heads, length, head_dim).
static enum ree_status cache_part(struct ree_lower *lower, struct ree_view *cache, int64_t part,
                                  struct ree_view **out) {
    REE_TRY(ree_lower_slice(lower, cache, 0, part, 1, 1, out));
    return ree_lower_reshape(lower, *out, 4, cache->dims + 1, out);
}

// Appends the keys kv[0] and the values kv[1] to the cache `past` (NULL: empty). *out is the new
// cache, of type dtype; kv[0] and kv[1] become views of it.
static enum ree_status join_cache(struct ree_lower *lower, struct ree_view *past,
                                  struct ree_view *kv[2], enum ree_dtype dtype,
                                  struct ree_view **out) {
    const struct ree_view *k = kv[0];
    int64_t past_len = past ? past->dims[3] : 0, length = k->dims[2];
    int64_t dims[5] = {2, k->dims[0], k->dims[1], past_len + length, k->dims[3]};
    if (kv[1]->dims[3] != k->dims[3])
        return ree_lower_fail(
            lower, REE_INVALID,
            "a cache requires keys and values of the same size, not %lld and %lld",
            (long long)k->dims[3], (long long)kv[1]->dims[3]);
    REE_TRY(past ? ree_lower_extend(lower, past, 3, length, out)
                 : ree_lower_new(lower, dtype, 5, dims, out));
    for (int64_t i = 0; i < 2; i++) {
        struct ree_view *part, *source, *target;
        REE_TRY(cache_part(lower, *out, i, &part));
        REE_TRY(ree_lower_cast(lower, kv[i], dtype, &source));
        REE_TRY(ree_lower_slice(lower, part, 2, past_len, 1, length, &target));
        REE_TRY(ree_lower_copy_into(lower, source, target));
        kv[i] = part;
    }
    return REE_OK;
}

static enum ree_status check_past(struct ree_lower *lower, const struct ree_heads *h,
                                  const struct ree_view *past, const struct ree_view *x) {
    char text[128];
    if (past->dtype == x->dtype && past->rank == 5 && past->dims[0] == 2 &&
        past->dims[1] == h->batch && past->dims[2] == h->n_heads)
        return REE_OK;
    return ree_lower_fail(lower, REE_INVALID, "past is %s, expected %s (2,%lld,%lld,length,size)",
                          ree_view_text(past, text, sizeof text), ree_dtype_name(x->dtype),
                          (long long)h->batch, (long long)h->n_heads);
}

RULE(ms_attention) {
    struct ree_view *mask = ree_rule_input(lower, in, 3), *past = ree_rule_input(lower, in, 4);
    struct ree_view *attention_bias = ree_rule_input(lower, in, 5), *qkv[3], *bias, *present;
    enum ree_dtype dtype = in[0]->dtype;
    struct ree_heads h;
    static const char *const refused[] = {"do_rotary", "past_present_share_buffer"};
    for (uint32_t i = 0; i < 2; i++)
        if (ree_rule_int(lower, refused[i], 0))
            return ree_lower_fail(lower, REE_UNSUPPORTED, "%s is not supported", refused[i]);
    REE_TRY(ree_heads_init(lower, &h));
    REE_TRY(ree_rule_require_rank(lower, in[0], "input", 3, 3));
    h.batch = in[0]->dims[0];
    h.q_len = h.kv_len = in[0]->dims[1];
    REE_TRY(project(lower, &h, in, qkv));
    if (past) {
        REE_TRY(check_past(lower, &h, past, in[0]));
        if (past->dims[4] != qkv[1]->dims[3])
            return ree_lower_fail(lower, REE_INVALID, "past has heads of %lld, expected %lld",
                                  (long long)past->dims[4], (long long)qkv[1]->dims[3]);
        h.past_len = past->dims[3];
    }
    if (past || ree_rule_wants(lower, 1)) {
        REE_TRY(join_cache(lower, past, qkv + 1, dtype, &present));
        if (ree_rule_wants(lower, 1)) out[1] = present;
    } else {
        // Round keys and values to the type that a cache would have.
        REE_TRY(ree_lower_cast(lower, qkv[1], dtype, &qkv[1]));
        REE_TRY(ree_lower_cast(lower, qkv[2], dtype, &qkv[2]));
    }
    REE_TRY(ree_heads_bias(lower, &h, mask, attention_bias, &bias));
    return ree_heads_attend(lower, &h, qkv[0], qkv[1], qkv[2], bias, dtype, &out[0], NULL);
}
