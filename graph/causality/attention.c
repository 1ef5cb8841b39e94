// Rules for attention operators and rotary embeddings.
//
// The rules accept attention only if, in every run, the keys include all positions up to the
// query's own, and later keys are excluded. An excluded key has the weight +0, whatever the key
// contains (NUMERICS.md, "Attention"). +0 times an infinite value is NaN, so results may be NaN.
#include "graph/causality/facts.h"

#include <string.h>

static const char *const not_masked = "it is not proved that it excludes later tokens";

// Writes to *out the axis of tokens in a query, key or value of rank 3 or 4. Returns false if this
// axis does not count tokens, or if another axis does.
static bool token_axis(const struct ree_fact *x, uint32_t *out) {
    if (x->rank != 3 && x->rank != 4) return false;
    *out = x->rank == 3 ? 1 : 2;
    for (uint32_t i = 0; i < x->rank; i++)
        if (i != *out && ree_axis_is_position(&x->axes[i])) return false;
    return ree_axis_is_position(&x->axes[*out]);
}

// Writes the fact about x as (1, heads, tokens, size) to *out. x is (1, tokens, heads * size), or
// has that form already. `heads` names the attribute with the number of heads. Returns false for
// other shapes.
static bool by_heads(const struct ree_derivation *d, const struct ree_fact *x, const char *heads,
                     struct ree_fact *out) {
    uint32_t axis;
    if (!token_axis(x, &axis) || !ree_axis_is_fixed(&x->axes[0], 1)) return false;
    ree_fact_like(out, x);
    if (x->rank == 4) return true;
    int64_t n = ree_node_int(d->node, heads, 0), width = x->axes[2].size;
    if (n < 1 || width % n) return false;
    out->rank = 4;
    out->axes[1] = (struct ree_axis){REE_AXIS_FIXED, n};
    out->axes[2] = x->axes[1];
    out->axes[3] = (struct ree_axis){REE_AXIS_FIXED, width / n};
    out->follows = x->follows ? 1u << 2 : 0;
    return true;
}

// Writes to *out the fact about all keys (or all values) that the queries see. The cache `past`
// (NULL: no cache) comes first, and `fresh`, of the new tokens, follows. Output number `output` is
// the next contents of the cache.
static const char *append_keys(struct ree_derivation *d, const struct ree_fact *fresh,
                               const struct ree_fact *past, size_t output, struct ree_fact *out) {
    if (past) {
        const char *why = ree_fact_append(d, past, fresh, output, 2);
        if (!why) *out = d->out[output];
        return why;
    }
    *out = *fresh;
    if (!ree_axis_is_complete(d, &fresh->axes[2]))
        return "it sees only keys of the new tokens, and these begin at another position in each "
               "run";
    if (output < d->n_out) d->out[output] = *fresh;
    return NULL;
}

// Returns whether the mask, over (..., queries, keys), excludes the keys that are later than the
// query.
static bool is_causal_mask(const struct ree_fact *mask, const struct ree_axis *query,
                           const struct ree_axis *key) {
    if (mask->rank < 2 || mask->rank > 4) return false;
    uint32_t q = mask->rank - 2, k = mask->rank - 1;
    const struct ree_order *order = mask->dtype == REE_BOOL ? &mask->if_true : &mask->masked;
    return ree_axes_same(&mask->axes[q], query) && ree_axes_same(&mask->axes[k], key) &&
           order->holds && order->query == q && order->key == k;
}

// Returns whether the mask's shape fits: one row per query or one for all, and one column per key.
static bool fits(const struct ree_fact *mask, const struct ree_axis *query,
                 const struct ree_axis *key) {
    if (mask->rank < 2 || mask->rank > 4) return false;
    for (uint32_t i = 0; i < mask->rank; i++) {
        const struct ree_axis *axis = &mask->axes[i];
        if (i + 2 == mask->rank   ? !ree_axis_is_fixed(axis, 1) && !ree_axes_same(axis, query)
            : i + 1 == mask->rank ? !ree_axes_same(axis, key)
                                  : ree_axis_is_position(axis))
            return false;
    }
    return true;
}

const char *ree_causality_attention(struct ree_derivation *d) {
    const struct ree_fact *mask = ree_causality_in(d, 3), *past_k = ree_causality_in(d, 4),
                          *past_v = ree_causality_in(d, 5);
    const struct ree_node *node = d->node;
    struct ree_fact q, k, v, all_k, all_v;
    if (ree_causality_in(d, 6)) return "its number of keys depends on data";
    if (!by_heads(d, d->in[0], "q_num_heads", &q) || !by_heads(d, d->in[1], "kv_num_heads", &k) ||
        !by_heads(d, d->in[2], "kv_num_heads", &v))
        return "its query, key or value does not have one row for each token";
    if (q.axes[2].kind != REE_AXIS_NEW) return "its queries are not the new tokens";
    const char *why = append_keys(d, &k, past_k, 1, &all_k);
    if (!why) why = append_keys(d, &v, past_v, 2, &all_v);
    if (why) return why;
    const struct ree_axis *key = &all_k.axes[2];
    if (!ree_axes_same(key, &all_v.axes[2])) return "its values and keys have different positions";
    if (mask && !fits(mask, &q.axes[2], key))
        return "its mask does not have the shape of queries and keys";
    // is_causal and windows place the first query after the keys of the cache. This is its true
    // position only if no unused positions precede it (has_slack), and if the node has a cache
    // exactly when the model has one.
    bool is_placed = !d->prover->question->has_slack && (!past_k == !d->prover->has_cache);
    int64_t left = ree_node_int(node, "left_window_size", -1);
    int64_t right = ree_node_int(node, "right_window_size", -1);
    bool is_causal = ree_node_int(node, "is_causal", 0) != 0;
    if ((left >= 0 || right >= 0 || is_causal) && !is_placed)
        return "the positions of its queries among the keys are not proved";
    if (!is_causal && right != 0 && !(mask && is_causal_mask(mask, &q.axes[2], key)))
        return not_masked;
    for (size_t i = 3; i < d->n_out; i++)
        d->out[i].why_not = "ree has rules only for its result and its caches";
    uint32_t axis = d->in[0]->rank == 3 ? 1 : 2;
    ree_fact_like(d->out, d->in[0]);
    if (axis == 1 &&
        __builtin_mul_overflow(q.axes[1].size, all_v.axes[3].size, &d->out->axes[2].size))
        return "its result is too large";
    if (axis == 2) d->out->axes[3] = all_v.axes[3];
    d->out->follows = 1u << axis;
    d->out->may_be_nan = true;
    return NULL;
}

// Inputs: X, cos, sin. With a fourth input (the positions), cos and sin are tables over all
// positions.
const char *ree_causality_rotary(struct ree_derivation *d) {
    const struct ree_fact *x = d->in[0], *ids = ree_causality_in(d, 3);
    uint32_t axis;
    if (!token_axis(x, &axis)) return "its input does not have one row for each token";
    ree_fact_like(d->out, x);
    for (size_t i = 1; i < 3; i++) {
        const struct ree_fact *table = d->in[i];
        d->out->may_be_nan = d->out->may_be_nan || table->may_be_nan;
        if (ids ? ree_fact_is_plain(table)
                : table->rank == 3 && ree_axes_same(&table->axes[1], &x->axes[axis]) &&
                      !ree_axis_is_position(&table->axes[0]) &&
                      !ree_axis_is_position(&table->axes[2])) {
            if (table->follows) d->out->follows |= 1u << axis;
            continue;
        }
        return "its angles do not have one row for each token";
    }
    if (!ids) return NULL;
    if (ids->rank != 2 || !ree_axes_same(&ids->axes[1], &x->axes[axis]) ||
        ree_axis_is_position(&ids->axes[0]))
        return "it does not have one position for each token";
    if (ids->follows) d->out->follows |= 1u << axis;
    return NULL;
}

// RotaryEmbedding of com.microsoft. Inputs: X, positions, cos, sin.
const char *ree_causality_ms_rotary(struct ree_derivation *d) {
    if (d->n_in < 4) return "it does not have one position for each token";
    const struct ree_fact *const in[4] = {d->in[0], d->in[2], d->in[3], d->in[1]};
    struct ree_derivation other = *d;
    if (!in[1] || !in[2] || !in[3]) return "it does not have one position for each token";
    other.in = in;
    other.n_in = 4;
    return ree_causality_rotary(&other);
}

// GroupQueryAttention

enum { QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, SEQLENS, TOTAL, COS, SIN, POSITIONS, BIAS, SINK };

static bool is_count(const struct ree_fact *f, int64_t n, bool has_cache) {
    return f && f->n_counts == 1 && f->counts[0].n == n && f->counts[0].fresh == 1 &&
           f->counts[0].past == (has_cache ? 1 : 0);
}

// Writes the facts about keys and values, as (1, kv heads, tokens, size), to kv[0] and kv[1]. Keys
// and values are separate inputs, or packed with the query in input 0. Returns false if a shape
// does not fit.
static bool read_group(const struct ree_derivation *d, struct ree_fact kv[2]) {
    const struct ree_fact *q = d->in[QUERY], *const *in = d->in;
    int64_t heads = ree_node_int(d->node, "num_heads", 0);
    int64_t kv_heads = ree_node_int(d->node, "kv_num_heads", 0);
    uint32_t axis;
    if (heads < 1 || heads > INT32_MAX || kv_heads < 1 || heads % kv_heads || !q || q->rank != 3 ||
        !token_axis(q, &axis) || !ree_axis_is_fixed(&q->axes[0], 1))
        return false;
    bool packed = !in[KEY] && !in[VALUE];
    if (packed) {
        int64_t all = heads + 2 * kv_heads; // at most 3 * INT32_MAX, as kv_heads <= heads
        if (q->axes[2].size % all) return false;
        for (uint32_t i = 0; i < 2; i++) {
            struct ree_fact part = *q;
            part.axes[2].size = q->axes[2].size / all * kv_heads;
            if (!by_heads(d, &part, "kv_num_heads", &kv[i])) return false;
        }
        return true;
    }
    if (!in[KEY] || !in[VALUE] || q->axes[2].size % heads) return false;
    for (uint32_t i = 0; i < 2; i++)
        if (in[KEY + i]->rank != 3 || !by_heads(d, in[KEY + i], "kv_num_heads", &kv[i]) ||
            !ree_axes_same(&kv[i].axes[2], &q->axes[1]))
            return false;
    return true;
}

const char *ree_causality_group_query(struct ree_derivation *d) {
    bool has_cache = d->prover->has_cache;
    struct ree_fact kv[2], all;
    if (d->n_in <= TOTAL) return "its lengths are missing";
    if (!read_group(d, kv)) return "its query, key or value does not have one row for each token";
    if (d->in[QUERY]->axes[1].kind != REE_AXIS_NEW) return "its queries are not the new tokens";
    if (d->prover->question->has_slack)
        return "the positions of its queries among the keys are not proved";
    if (!ree_node_int(d->node, "causal", 1)) return not_masked;
    if (ree_causality_in(d, BIAS)) return "a bias of its scores has no rule";
    if (!is_count(d->in[TOTAL], 0, has_cache) || !is_count(d->in[SEQLENS], -1, has_cache))
        return "its lengths are not proved to be those of past and new tokens";
    if (!d->in[PAST_KEY] != !has_cache || !d->in[PAST_VALUE] != !has_cache)
        return "it has no cache, but the model has one";
    const struct ree_fact *ids = ree_causality_in(d, POSITIONS);
    if (ids && (ids->rank != 2 || ids->axes[1].kind != REE_AXIS_NEW))
        return "it does not have one position for each token";
    for (size_t i = COS; i < d->n_in; i++)
        if (d->in[i] && i != POSITIONS && !ree_fact_is_plain(d->in[i]))
            return "its angles, sinks or norms are not constant";
    for (uint32_t i = 0; i < 2; i++) {
        const char *why = append_keys(d, &kv[i], d->in[PAST_KEY + i], 1 + i, &all);
        if (why) return why;
    }
    for (size_t i = 3; i < d->n_out; i++)
        d->out[i].why_not = "ree has rules only for its result and its caches";
    ree_fact_like(d->out, d->in[QUERY]);
    if (__builtin_mul_overflow(kv[1].axes[3].size, ree_node_int(d->node, "num_heads", 0),
                               &d->out->axes[2].size))
        return "its result is too large";
    d->out->follows = 1u << 1;
    d->out->may_be_nan = true;
    return NULL;
}
