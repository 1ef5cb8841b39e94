// LinearAttention: a state per head, which is decayed, corrected and updated for each token.
#include "graph/lower/ops/attention/attention.h"

#include <string.h>

// Shapes, with kv = n_kv_heads:
//
//     q (batch, n_heads, len, key_dim), k (batch, kv, len, key_dim), v (batch, kv, len, value_dim)
//     decay (batch, kv, len, key_dim or 1), beta (batch, kv or 1, len, 1)
//     state (batch, kv, key_dim, value_dim)
struct linear {
    bool gated, delta;
    float scale;
    int64_t batch, n_heads, n_kv_heads, len, key_dim, value_dim;
    struct ree_view *q, *k, *v, *decay, *beta, *state;
};

static enum ree_status read_rule(struct ree_lower *lower, struct linear *a) {
    static const char *const names[] = {"linear", "gated", "delta", "gated_delta"};
    const char *name = ree_rule_string(lower, "update_rule", "gated_delta");
    for (uint32_t i = 0; i < 4; i++) {
        if (strcmp(name, names[i])) continue;
        a->gated = i & 1;
        a->delta = i >> 1;
        return REE_OK;
    }
    return ree_lower_fail(lower, REE_INVALID,
                          "update_rule is '%s', expected linear, gated, delta or gated_delta",
                          name);
}

// Checks an input that some update rules require and all others refuse.
static enum ree_status check_presence(struct ree_lower *lower, const struct ree_view *t,
                                      bool needed, const char *what) {
    if (!t == !needed) return REE_OK;
    return ree_lower_fail(lower, REE_INVALID, "the update rule %s input %s",
                          needed ? "needs" : "does not take", what);
}

// Views (batch, len, n_heads * size), in float32, as (batch, n_heads, len, size).
static enum ree_status read_packed(struct ree_lower *lower, const struct linear *a,
                                   struct ree_view *t, const char *what, int64_t n_heads,
                                   struct ree_view **out) {
    char text[128];
    if (!ree_attention_is_float(t->dtype) || t->rank != 3 || t->dims[0] != a->batch ||
        t->dims[1] != a->len)
        return ree_lower_fail(
            lower, REE_INVALID,
            "the %s is %s, expected float32, float16 or bfloat16 of [%lld,%lld,...]", what,
            ree_view_text(t, text, sizeof text), (long long)a->batch, (long long)a->len);
    REE_TRY(ree_lower_cast(lower, t, REE_F32, &t));
    return ree_lower_split_heads(lower, t, n_heads, what, out);
}

static enum ree_status read_inputs(struct ree_lower *lower, struct ree_view *const *in,
                                   struct linear *a) {
    struct ree_view *decay = ree_rule_input(lower, in, 4), *beta = ree_rule_input(lower, in, 5);
    char text[128];
    a->n_heads = ree_rule_int(lower, "q_num_heads", 0);
    a->n_kv_heads = ree_rule_int(lower, "kv_num_heads", 0);
    if (a->n_heads < 1 || a->n_kv_heads < 1 || a->n_heads % a->n_kv_heads)
        return ree_lower_fail(lower, REE_INVALID,
                              "q_num_heads is %lld and kv_num_heads %lld, expected a positive "
                              "number and one that divides it",
                              (long long)a->n_heads, (long long)a->n_kv_heads);
    REE_TRY(read_rule(lower, a));
    REE_TRY(check_presence(lower, decay, a->gated, "decay"));
    REE_TRY(check_presence(lower, beta, a->delta, "beta"));
    REE_TRY(ree_rule_require_rank(lower, in[0], "query", 3, 3));
    a->batch = in[0]->dims[0];
    a->len = in[0]->dims[1];
    REE_TRY(read_packed(lower, a, in[0], "query", a->n_heads, &a->q));
    REE_TRY(read_packed(lower, a, in[1], "key", a->n_kv_heads, &a->k));
    REE_TRY(read_packed(lower, a, in[2], "value", a->n_kv_heads, &a->v));
    a->key_dim = a->q->dims[3];
    a->value_dim = a->v->dims[3];
    if (a->k->dims[3] != a->key_dim)
        return ree_lower_fail(
            lower, REE_INVALID,
            "heads of the key have %lld elements, but those of the query have %lld",
            (long long)a->k->dims[3], (long long)a->key_dim);
    if (decay) {
        REE_TRY(read_packed(lower, a, decay, "decay", a->n_kv_heads, &a->decay));
        if (a->decay->dims[3] != 1 && a->decay->dims[3] != a->key_dim)
            return ree_lower_fail(lower, REE_INVALID,
                                  "the decay is %s, expected a last size of %lld or %lld",
                                  ree_view_text(decay, text, sizeof text), (long long)a->n_kv_heads,
                                  (long long)(a->n_kv_heads * a->key_dim));
    }
    if (beta) {
        bool shared = beta->rank == 3 && beta->dims[2] == 1;
        REE_TRY(read_packed(lower, a, beta, "beta", shared ? 1 : a->n_kv_heads, &a->beta));
        if (a->beta->dims[3] != 1)
            return ree_lower_fail(lower, REE_INVALID,
                                  "the beta is %s, expected a last size of %lld or 1",
                                  ree_view_text(beta, text, sizeof text), (long long)a->n_kv_heads);
    }
    a->scale = ree_rule_float(lower, "scale", 0);
    if (a->scale == 0) a->scale = ree_attention_default_scale(a->key_dim);
    return REE_OK;
}

static enum ree_status read_state(struct ree_lower *lower, struct ree_view *past,
                                  struct linear *a) {
    const int64_t dims[4] = {a->batch, a->n_kv_heads, a->key_dim, a->value_dim};
    if (!past) return ree_rule_fill(lower, 4, dims, 0, &a->state);
    char text[128];
    bool fits = ree_attention_is_float(past->dtype) && past->rank == 4;
    for (uint32_t i = 0; fits && i < 4; i++)
        fits = past->dims[i] == dims[i];
    if (!fits)
        return ree_lower_fail(lower, REE_INVALID,
                              "past_state is %s, expected floats of [%lld,%lld,%lld,%lld]",
                              ree_view_text(past, text, sizeof text), (long long)dims[0],
                              (long long)dims[1], (long long)dims[2], (long long)dims[3]);
    return ree_lower_cast(lower, past, REE_F32, &a->state);
}

// Selects token t of x (batch, heads, len, size), as (batch, heads, 1, size). With `standing`, it
// is a column: (batch, heads, size, 1).
static enum ree_status token(struct ree_lower *lower, struct ree_view *x, int64_t t, bool standing,
                             struct ree_view **out) {
    REE_TRY(ree_lower_slice(lower, x, 2, t, 1, 1, out));
    return standing ? ree_lower_transpose(lower, *out, (uint32_t[]){0, 1, 3, 2}, out) : REE_OK;
}

// Updates a->state with token t. *out is the result for the token, (batch, n_heads, 1, value_dim).
static enum ree_status step(struct ree_lower *lower, struct linear *a, int64_t t,
                            struct ree_view **out) {
    struct ree_view *state = a->state, *k, *row, *v, *q;
    REE_TRY(token(lower, a->k, t, true, &k));
    REE_TRY(token(lower, a->v, t, false, &v));
    struct ree_expr_builder b;
    if (a->gated) {
        struct ree_view *g;
        REE_TRY(token(lower, a->decay, t, true, &g));
        ree_expr_init(&b, lower, 4, state->dims);
        int factor = ree_expr_op1(&b, REE_MAP_exp_f32, ree_expr_tensor(&b, g));
        int value = ree_expr_op2(&b, REE_MAP_mul_f32, ree_expr_tensor(&b, state), factor);
        REE_TRY(ree_lower_map(&b, value, REE_F32, &state));
    }
    if (a->delta) {
        struct ree_view *recalled, *beta;
        REE_TRY(token(lower, a->k, t, false, &row));
        REE_TRY(token(lower, a->beta, t, false, &beta));
        REE_TRY(ree_lower_matmul(lower, row, state, &recalled));
        ree_expr_init(&b, lower, 4, v->dims);
        int value = ree_expr_op2(&b, REE_MAP_sub_f32, ree_expr_tensor(&b, v),
                                 ree_expr_tensor(&b, recalled));
        value = ree_expr_op2(&b, REE_MAP_mul_f32, ree_expr_tensor(&b, beta), value);
        REE_TRY(ree_lower_map(&b, value, REE_F32, &v));
    }
    // The outer product is a matrix product with sums of one term. Like every sum, it ends with the
    // addition of +0, so the result is never -0.
    ree_expr_init(&b, lower, 4, state->dims);
    int outer = ree_expr_op2(&b, REE_MAP_mul_f32, ree_expr_tensor(&b, k), ree_expr_tensor(&b, v));
    outer = ree_expr_op2(&b, REE_MAP_add_f32, outer, ree_expr_f32(&b, 0));
    int next = ree_expr_op2(&b, REE_MAP_add_f32, ree_expr_tensor(&b, state), outer);
    REE_TRY(ree_lower_map(&b, next, REE_F32, &a->state));

    // Query heads that share a state are rows of one product.
    int64_t group = a->n_heads / a->n_kv_heads;
    int64_t rows[4] = {a->batch, a->n_kv_heads, group, a->key_dim};
    int64_t heads[4] = {a->batch, a->n_heads, 1, a->value_dim};
    REE_TRY(token(lower, a->q, t, false, &q));
    REE_TRY(ree_lower_reshape(lower, q, 4, rows, &q));
    REE_TRY(ree_lower_matmul(lower, q, a->state, &q));
    ree_expr_init(&b, lower, 4, q->dims);
    int scaled =
        ree_expr_op2(&b, REE_MAP_mul_f32, ree_expr_f32(&b, a->scale), ree_expr_tensor(&b, q));
    REE_TRY(ree_lower_map(&b, scaled, REE_F32, &q));
    return ree_lower_reshape(lower, q, 4, heads, out);
}

enum ree_status ree_lower_op_linear_attention(struct ree_lower *lower, struct ree_view *const *in,
                                              struct ree_view **out) {
    struct linear a = {0};
    struct ree_view *past = ree_rule_input(lower, in, 3), *joined, *y, *part;
    enum ree_dtype dtype = in[0]->dtype;
    REE_TRY(read_inputs(lower, in, &a));
    REE_TRY(read_state(lower, past, &a));
    const int64_t dims[4] = {a.batch, a.len, a.n_heads, a.value_dim};
    REE_TRY(ree_lower_new(lower, REE_F32, 4, dims, &joined));
    // If the result has no elements, no token changes the state: either there is no token, or the
    // state has no elements either.
    const int64_t n = ree_view_count(joined) ? a.len : 0;
    REE_TRY(ree_lower_count_time_steps(lower, n, 1));
    for (int64_t t = 0; t < n; t++) {
        REE_TRY(step(lower, &a, t, &y));
        REE_TRY(ree_lower_slice(lower, joined, 1, t, 1, 1, &part));
        REE_TRY(ree_lower_transpose(lower, y, (uint32_t[]){0, 2, 1, 3}, &y));
        REE_TRY(ree_lower_copy_into(lower, y, part));
    }
    REE_TRY(ree_lower_reshape(lower, joined, 3,
                              (int64_t[]){a.batch, a.len, a.n_heads * a.value_dim}, &y));
    REE_TRY(ree_lower_cast(lower, y, dtype, &out[0]));
    return ree_lower_cast(lower, a.state, past ? past->dtype : dtype, &out[1]);
}
