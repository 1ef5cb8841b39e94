// Scaled dot-product attention over views, for all attention operators: scores, mask, softmax and
// values as NUMERICS.md, "Attention", defines them. The rules convert their inputs to this form and
// shape the result. Splitting heads, joining caches and sharing keys between heads are views, or
// one copy.
#ifndef REE_GRAPH_LOWER_ATTENTION_H
#define REE_GRAPH_LOWER_ATTENTION_H

#include "graph/lower/ops/rules.h"

// An intermediate tensor that the caller requests.
enum ree_attention_tap {
    REE_ATTENTION_TAP_NONE,
    REE_ATTENTION_TAP_SCORES, // scale * q k
    REE_ATTENTION_TAP_CAPPED, // after the soft cap
    REE_ATTENTION_TAP_MASKED, // after mask and bias
    REE_ATTENTION_TAP_WEIGHTS // after the softmax
};

// Query i of a batch is at position p = start + starts[batch] + i among the keys. The query attends
// to key j if all of these hold:
// - p - left <= j <= p + right, for each bound that is set (causal: right = 0);
// - j < n_keys[batch];
// - allowed[batch, head, i, j] is true;
// - bias[batch, head, i, j] is not -inf.
//
// A NULL tensor sets no restriction. Each group of n_heads / n_kv_heads neighbouring query heads
// shares one head of keys and values.
struct ree_attention {
    // Strides are arbitrary. Keys and values of narrow types are widened exactly.
    struct ree_view *q; // float32 (batch, n_heads, q_len, head_dim)
    struct ree_view *k; // float32, float16 or bfloat16 (batch, n_kv_heads, kv_len, head_dim)
    struct ree_view *v; // as k: (batch, n_kv_heads, kv_len, v_head_dim)

    float scale;
    float softcap; // 0: none

    struct ree_view *allowed; // bool, broadcasts to (batch, n_heads, q_len, kv_len)
    struct ree_view *bias;    // float32, same shape, added to the scores
    struct ree_view *n_keys;  // int32 or int64 (batch)
    struct ree_view *starts;  // int32 or int64 (batch)
    int64_t start;
    int64_t left, right; // REE_ATTENTION_UNBOUNDED, or >= 0

    // float32, broadcasts to (batch, n_heads, q_len, 1): the score of one more key, after all
    // others, that has no value.
    struct ree_view *sink;

    enum ree_attention_tap tap;

    // Called with the masked scores and with the weights, float32 (batch, n_heads, q_len, kv_len).
    // *out replaces them and must have the same type and shape. NULL: no modification.
    enum ree_status (*modify_scores)(struct ree_lower *lower, struct ree_view *t,
                                     struct ree_view **out);
    enum ree_status (*modify_weights)(struct ree_lower *lower, struct ree_view *t,
                                      struct ree_view **out);
    // true: a query that attends to no key gets NaN, as softmax gives; false: zeros
    bool nan_if_empty;
};

// Sets the defaults: scale 1, no window, all else zero.
void ree_attention_init(struct ree_attention *a);
bool ree_attention_is_float(enum ree_dtype dtype); // float32, float16 or bfloat16
// Checks the attribute softmax_precision. The softmax is computed in binary32. That is at least as
// precise as every type that the attribute may name, except double; double is refused.
enum ree_status ree_attention_precision(struct ree_lower *lower);
// 1 / sqrt(head_dim), each step rounded to binary32.
float ree_attention_default_scale(int64_t head_dim);

// *out: (batch, n_heads, q_len, v_head_dim), float32, any strides. *out_tapped (out_tapped may be
// NULL without a tap): (batch, n_heads, q_len, kv_len). Checks that all shapes fit; messages call
// the inputs query, key, value, mask, bias.
enum ree_status ree_lower_attention(struct ree_lower *lower, const struct ree_attention *a,
                                    struct ree_view **out, struct ree_view **out_tapped);

// Heads. Views (batch, len, n_heads * head_dim) as (batch, n_heads, len, head_dim). Fails if the
// last size is not a multiple of n_heads, naming `what` ("query").
enum ree_status ree_lower_split_heads(struct ree_lower *lower, struct ree_view *t, int64_t n_heads,
                                      const char *what, struct ree_view **out);
// The inverse of ree_lower_split_heads. Copies unless n_heads or len is 1.
enum ree_status ree_lower_join_heads(struct ree_lower *lower, struct ree_view *t,
                                     struct ree_view **out);
// Appends t to `past` along axis 2 of (batch, n_heads, len, head_dim) or (batch, channels, len). If
// `past` is NULL: t itself.
enum ree_status ree_lower_append_keys(struct ree_lower *lower, struct ree_view *past,
                                      struct ree_view *t, const char *what, struct ree_view **out);

// Rows of a table (n, size) by index. index has any shape, int32 or int64; a negative index counts
// from the end, and an index outside the table makes the run fail. *out is (index's dims, size).
enum ree_status ree_lower_rows(struct ree_lower *lower, struct ree_view *table,
                               struct ree_view *index, struct ree_view **out);
// Rotates x by angles, given as cosines and sines: each pair (x0, x1) becomes (cos * x0 - sin * x1,
// sin * x0 + cos * x1). x is float32 of rank 4. The pairs are in its last dimension, in its first n
// = 2 * (cos's last size) elements: neighbours if `interleaved`, else n / 2 apart. Elements from n
// on are unchanged. cos and sin broadcast to (x's first three dims, n / 2). *out is dense, with x's
// dimensions in their order.
enum ree_status ree_lower_rotate(struct ree_lower *lower, struct ree_view *x, struct ree_view *cos,
                                 struct ree_view *sin, bool interleaved, struct ree_view **out);

#endif
