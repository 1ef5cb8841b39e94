// Scaled dot-product attention over views, for every operator that is one: scores, mask, softmax
// and values as NUMERICS.md, "Attention", defines them. The rules bring their inputs into this form
// (splitting heads, joining caches and sharing keys between heads are views, or one copy) and shape
// the result.
#ifndef REE_GRAPH_LOWER_ATTENTION_H
#define REE_GRAPH_LOWER_ATTENTION_H

#include "graph/lower/rules.h"

// A tensor between two steps that the caller wants to have.
enum ree_attention_tap {
    REE_ATTENTION_TAP_NONE,
    REE_ATTENTION_TAP_SCORES, // scale * q k
    REE_ATTENTION_TAP_CAPPED, // after the soft cap
    REE_ATTENTION_TAP_MASKED, // after mask and bias
    REE_ATTENTION_TAP_WEIGHTS // after the softmax
};

// Query i of a batch stands at position p = start + starts[batch] + i among the keys. Key j takes
// part for it when
//   - p - left <= j <= p + right, as far as these are bounded (causal: right = 0),
//   - j < n_keys[batch],
//   - allowed[batch, head, i, j] is true, and
//   - bias[batch, head, i, j] is not -inf.
// Whatever is NULL restricts nothing. Keys and values are shared by n_heads / n_kv_heads
// neighbouring query heads.
struct ree_attention {
    // Any strides. Keys and values may be narrow, and are then widened exactly.
    struct ree_tval *q; // float32 (batch, n_heads, q_len, head_dim)
    struct ree_tval *k; // float32, float16 or bfloat16 (batch, n_kv_heads, kv_len, head_dim)
    struct ree_tval *v; // likewise (batch, n_kv_heads, kv_len, v_head_dim)

    float scale;
    float softcap; // 0: none

    struct ree_tval *allowed; // bool, broadcasts to (batch, n_heads, q_len, kv_len)
    struct ree_tval *bias;    // float32, likewise, added to the scores
    struct ree_tval *n_keys;  // int32 or int64 (batch)
    struct ree_tval *starts;  // int32 or int64 (batch)
    int64_t start;
    int64_t left, right; // REE_ATTENTION_UNBOUNDED, or 0 and more

    // float32, broadcasts to (batch, n_heads, q_len, 1): the score of one more key, behind all
    // others, that has no value.
    struct ree_tval *sink;

    enum ree_attention_tap tap;

    // Called with the masked scores and with the weights, (batch, n_heads, q_len, kv_len) float32;
    // *out takes their place and has their type and shape. NULL: nothing between the steps.
    enum ree_status (*modify_scores)(struct ree_lower *lower, struct ree_tval *t,
                                     struct ree_tval **out);
    enum ree_status (*modify_weights)(struct ree_lower *lower, struct ree_tval *t,
                                      struct ree_tval **out);
    bool nan_if_empty; // a query that no key takes part for gets NaN, as softmax gives, not zeros
};

// Zero, but for what has another default: scale 1, no window.
void ree_attention_init(struct ree_attention *a);
bool ree_attention_is_float(enum ree_dtype dtype); // float32, float16 or bfloat16
// The attribute softmax_precision. The softmax is computed in binary32, which is no less than any
// of the types but double, which is refused.
enum ree_status ree_attention_precision(struct ree_lower *lower);
// 1 / sqrt(head_dim), each step rounded to binary32.
float ree_attention_default_scale(int64_t head_dim);

// *out: (batch, n_heads, q_len, v_head_dim), float32, any strides. *out_tapped (may be NULL without
// a tap): (batch, n_heads, q_len, kv_len). Checks that all shapes fit; messages call the inputs
// query, key, value, mask, bias.
enum ree_status ree_lower_attention(struct ree_lower *lower, const struct ree_attention *a,
                                    struct ree_tval **out, struct ree_tval **out_tapped);

// Heads. (batch, len, n_heads * head_dim) as (batch, n_heads, len, head_dim), a view; fails when
// the last size does not divide, naming `what` ("query").
enum ree_status ree_lower_split_heads(struct ree_lower *lower, struct ree_tval *t, int64_t n_heads,
                                      const char *what, struct ree_tval **out);
// The way back; moves bytes unless one of n_heads and len is 1.
enum ree_status ree_lower_join_heads(struct ree_lower *lower, struct ree_tval *t,
                                     struct ree_tval **out);
// past and then t along axis 2 of (batch, n_heads, len, head_dim), or (batch, channels, len). past
// NULL: t itself.
enum ree_status ree_lower_append_keys(struct ree_lower *lower, struct ree_tval *past,
                                      struct ree_tval *t, const char *what, struct ree_tval **out);

// Rows of a table by index: table (n, size), index of any shape (int32 or int64, below 0 from the
// end; outside the table the run fails): (index's dims, size).
enum ree_status ree_lower_rows(struct ree_lower *lower, struct ree_tval *table,
                               struct ree_tval *index, struct ree_tval **out);
// x turned by angles whose cosines and sines are given: of each pair (x0, x1),
// (cos * x0 - sin * x1, sin * x0 + cos * x1). x is float32 of rank 4 with the pairs in its last
// dimension, n = 2 * (cos's last size) elements of it, as neighbours (interleaved) or n / 2 apart;
// elements from n on are left as they are. cos and sin broadcast to (x's first three dims, n / 2).
// *out: dense, in the order of x's dimensions.
enum ree_status ree_lower_rotate(struct ree_lower *lower, struct ree_tval *x, struct ree_tval *cos,
                                 struct ree_tval *sin, bool interleaved, struct ree_tval **out);

#endif
